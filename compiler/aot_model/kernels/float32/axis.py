"""Which taps of a kernel meet which input elements, along one spatial axis.

Outputs that meet the same taps are a segment. Padding is thereby settled before any loop starts: inside a
segment every tap is valid, and a pair of segments (rows, columns) is a rectangle of outputs without any
borders.

A transposed convolution is gathered: output o takes taps k with o + pad = i * stride + k * dilation. The
outputs of one residue class of o modulo the stride meet the same residue class of taps; with the taps sorted
by class, it is an ordinary convolution whose outputs are `stride` apart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import gcd


@dataclass(frozen=True)
class Segment:
    """Outputs out, out + out_step, ... (`count` of them) that take the packed taps tap .. tap + taps - 1."""

    out: int
    count: int
    first: int
    """Input index that the first output meets with its first tap (0 where there is no tap)."""
    tap: int
    taps: int
    area: int
    """Taps that count in an average, at least 1: the valid ones, or those that lie in the padded input."""


@dataclass(frozen=True)
class Axis:
    """Geometry along one axis; steps are in elements of that axis."""

    segments: tuple[Segment, ...]
    out_step: int
    in_step: int
    """From one output of a segment to the next the input index grows by this."""
    tap_step: int
    """From one packed tap to the next the input index grows by this."""
    order: Sequence[int]
    """Kernel index of each packed tap."""

    @property
    def taps(self) -> int:
        return len(self.order)


def _segments(outputs: list[Segment]) -> list[Segment]:
    """Join successive outputs that agree in their taps."""
    found: list[Segment] = []
    for o in outputs:
        last = found[-1] if found else None
        if last and o.taps and (last.tap, last.taps, last.area) == (o.tap, o.taps, o.area):
            found[-1] = replace(last, count=last.count + o.count)
        else:
            found.append(o)
    return found


def conv_axis(
    size_in: int,
    size_out: int,
    kernel: int,
    stride: int,
    dilation: int,
    pad: int,
    padded_end: int | None = None,
) -> Axis:
    """Axis of a convolution or of pooling.

    padded_end: padding at the end; given where an average counts the padding.
    """
    # Outputs inner .. outer - 1 have all their taps inside: one of them stands for all.
    inner = min(size_out, -(-max(pad, 0) // stride))
    outer = max(inner, min(size_out, (size_in - 1 - dilation * (kernel - 1) + pad) // stride + 1))
    outputs = []
    for out in (*range(min(inner + 1, size_out)), *range(max(outer, inner + 1), size_out)):
        start = out * stride - pad
        tap = max(0, -(start // dilation)) if start < 0 else 0
        taps = max(0, min(kernel, -((start - size_in) // dilation)) - tap)
        area = taps if padded_end is None else min(kernel, -((start - size_in - padded_end) // dilation))
        outputs.append(
            Segment(out, 1, start + tap * dilation if taps else 0, tap if taps else 0, taps, max(1, area))
        )
    if outer > inner:
        outputs[inner] = replace(outputs[inner], count=outer - inner)
    return Axis(tuple(_segments(outputs)), 1, stride, dilation, range(kernel))


def transposed_axis(size_in: int, size_out: int, kernel: int, stride: int, dilation: int, pad: int) -> Axis:
    """Axis of a transposed convolution; `pad` outputs are cut off at the beginning."""
    order: list[int] = []
    segments: list[Segment] = []
    classes: dict[int, list[int]] = {}
    for k in reversed(range(kernel)):
        classes.setdefault(k * dilation % stride, []).append(k)
    for phase in range(min(stride, size_out)):
        taps = classes.get((phase + pad) % stride, [])
        number = -(-(size_out - phase) // stride)
        if not taps:  # outputs as many as elements, over which the kernels walk without reading
            segments += [
                Segment(phase + i * stride, min(size_in, number - i), 0, 0, 0, 1)
                for i in range(0, number, size_in)
            ]
            continue
        met = [(phase + pad - k * dilation) // stride for k in taps]
        # Outputs inner .. outer - 1 meet all the taps: one of them stands for all.
        inner = min(number, max(0, -met[0]))
        outer = max(inner, min(number, size_in - met[-1]))
        outputs = []
        for i in (*range(min(inner + 1, number)), *range(max(outer, inner + 1), number)):
            valid = [j for j, first in enumerate(met) if 0 <= first + i < size_in]
            count = outer - inner if i == inner < outer else 1
            if valid:
                outputs.append(
                    Segment(
                        phase + i * stride,
                        count,
                        met[valid[0]] + i,
                        len(order) + valid[0],
                        len(valid),
                        len(valid),
                    )
                )
            else:
                outputs.append(Segment(phase + i * stride, 1, 0, 0, 0, 1))
        segments += _segments(outputs)
        order += taps
    return Axis(tuple(segments), stride, 1, dilation // gcd(stride, dilation), tuple(order))
