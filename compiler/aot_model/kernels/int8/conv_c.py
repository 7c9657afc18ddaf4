"""Convolution in plain C, for every core, geometry, group count and weight zero point.

Two pixels x two channels share their loads (one x two on ARMv6-M, which has eight registers for it). A
pixel's patch is read where it lies if it is one run of bytes (1x1), else gathered into `patch` with the zero
point for what is outside of the image, so that the inner loop knows of no padding. Weights are interleaved in
the order of the loop.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aot_model.c.text import loop_of
from aot_model.c.words import counted
from aot_model.ir.admissible import ANYTHING
from aot_model.kernels.base import ConvShape, KernelCode, Packed, Scratch, Tail
from aot_model.kernels.int8.dsp import HEADER
from aot_model.kernels.int8.finish import Rows, less
from aot_model.kernels.int8.patch_dsp import needs_assembly, run_helper
from aot_model.kernels.int8.requantise import fold_zero_point
from aot_model.kernels.int8.spec import Bias, QuantSpec, Weights
from aot_model.kernels.overlap import by_pixels, residual

LONG = 64
"""Taps beside which it is nothing to take an offset from a half of a word."""


def conv(
    shape: ConvShape,
    weights: Weights,
    bias: Bias,
    quant: QuantSpec,
    tail: Tail | None = None,
    block: tuple[int, int] = (2, 2),
    nibbles: bool = False,
) -> KernelCode:
    """Convolution, grouped ones too; weights [out_c, kernel_h, kernel_w, in_c / groups]; block: pixels x
    channels.

    nibbles: weights of 4 bits, of one group, stay two in a byte, those of two channels for the same tap; a
    channel left over has bytes.
    """
    assert not nibbles or shape.groups == 1
    taps, per_out = weights[0].size, shape.group_out
    w, b = fold_zero_point(weights.reshape(shape.out_c, -1), bias, quant)
    channels = block[1] if per_out >= block[1] else 1
    paired = channels == 2 and per_out % 2 == 0 and (nibbles or taps >= LONG)
    rows = Rows.of(weights.dtype, w, b, quant, paired, nibbles)
    pixels = min(block[0], shape.batch * shape.out_h * shape.out_w)
    return _Conv(
        shape, weights.reshape(shape.out_c, taps), quant, rows, tail, pixels, channels, nibbles
    ).kernel()


@dataclass(frozen=True)
class _Conv:
    """What is computed, `pixels` by `channels` at a time."""

    shape: ConvShape
    weights: Weights
    """[out_c, taps of a group]."""
    quant: QuantSpec
    rows: Rows
    tail: Tail | None
    pixels: int
    channels: int
    nibbles: bool

    @property
    def taps(self) -> int:
        return int(self.weights.shape[1])

    @property
    def direct(self) -> bool:
        """Whether x is read where it lies."""
        return self.shape.in_place

    @property
    def x_type(self) -> str:
        return f"{self.quant.x_dtype}_t"

    @property
    def offset(self) -> int:
        """Of a nibble from the weight."""
        return 8 if self.weights.dtype.kind == "i" else 0

    def kernel(self) -> KernelCode:
        s, helpers, scratch, run = self.shape, [*self.rows.helpers()], [], ""
        if not self.direct and needs_assembly(s):
            run, text = run_helper(s, self.quant)
            helpers.append(text)
            scratch.append(Scratch("border", s.kernel_w * s.in_c, 4, self.x_type))
        if not self.direct:
            scratch.append(Scratch("patch", self.pixels * self.taps * s.groups, 4, self.x_type))
        count, lines = s.batch * s.out_h * s.out_w, []
        whole = count - count % self.pixels
        for first, end, p in ((0, whole, self.pixels), (whole, count, 1)):
            if first < end:
                loop = f"for (int32_t pixel = {first}; pixel < {end}; pixel += {p}) {{"
                lines += [loop, *self._pixels(p, run), "}"]
        block = f"{counted(self.pixels, 'pixel')} x {counted(self.channels, 'channel')}"
        return KernelCode(
            body="\n".join(lines) + "\n",
            constants=(self._packed(), self.rows.packed()),
            scratch=tuple(scratch),
            includes=frozenset({HEADER}),
            helpers=tuple(helpers),
            slack=by_pixels(s, self.pixels, reread=self.direct, through_images=True),
            residual=residual(self.pixels, s),
            note=f"{block}; requantisation: {self.rows.rq.form}",
        )

    def _packed(self) -> Packed:
        """The weights in the order of the loops."""
        parts = []
        for own in np.split(self.weights, self.shape.groups):
            whole = self.shape.group_out - self.shape.group_out % self.channels
            first = own[:whole].reshape(-1, self.channels, self.taps).transpose(0, 2, 1).reshape(-1)
            first = _pairs(first, self.offset) if self.nibbles and self.channels == 2 else first
            parts += [first, own[whole:].reshape(-1)]
        data = np.concatenate([v.view(np.uint8) for v in parts] if self.nibbles else parts)
        layout = f"for each {self.channels} channels: for each tap those of each channel"
        return Packed("weights", data, admissible=ANYTHING, layout=layout if self.channels > 1 else "")

    def _pixels(self, p: int, run: str) -> list[str]:
        """The patches, then all groups of `p` pixels: from<i> is where the taps of pixel i in a group lie."""
        s = self.shape
        if self.direct:
            lines, at = [], [f"x + (pixel + {i}) * {s.in_c}" for i in range(p)]
        else:
            group = "" if s.groups == 1 else f"g * {p * self.taps} + "
            lines, at = self._patches(p, run), [f"patch + {group}{i * self.taps}" for i in range(p)]
        if self.direct and s.groups > 1:
            lines = [f"const {self.x_type} *pixel_at{i} = {start};" for i, start in enumerate(at)]
            at = [f"pixel_at{i} + g * {self.shape.group_in}" for i in range(p)]
        starts = [f"const {self.x_type} *from{i} = {start};" for i, start in enumerate(at)]
        kind = "uint8" if self.nibbles else self.weights.dtype.name
        lines += [f"const {kind}_t *w = weights;", "const int32_t *table = requantisation;"]
        group_lines = [*starts, *self._group(p)]
        return [*lines, *(group_lines if s.groups == 1 else loop_of("g", s.groups, *group_lines))]

    def _patches(self, p: int, run: str) -> list[str]:
        """The taps of p pixels. run: the function that gives a row of them, where it may leave the image."""
        s = self.shape
        n = "" if s.batch == 1 else f" + place / {s.out_h * s.out_w} * {s.strides[0]}"
        within = "place" if s.batch == 1 else f"place % {s.out_h * s.out_w}"
        _, sy, sx, _ = s.strides
        position = f"top + ky * {s.dilation_h}"
        where = f"x{n} + ({position}) * {sy} + left * {sx}"
        where = f"{run}(x{n}, {position}, left, border)" if run else where
        copy = [f"memcpy(to, from, {s.kernel_w * s.in_c});", f"to += {s.kernel_w * s.in_c};"]
        if s.groups > 1:
            own = (
                f"memcpy(to + g * {p * self.taps} + kx * {self.shape.group_in}, from, {self.shape.group_in});"
            )
            copy = loop_of(
                "kx", s.kernel_w, *loop_of("g", s.groups, own, more=f"from += {self.shape.group_in}")
            )
            copy.append(f"to += {s.kernel_w * self.shape.group_in};")
        begin = [
            "const int32_t place = pixel + i;",
            f"const int32_t top = {within} / {s.out_w} * {s.stride_h} - {s.pad_top};",
            f"const int32_t left = {within} % {s.out_w} * {s.stride_w} - {s.pad_left};",
            f"{self.x_type} *to = patch + i * {self.taps};",
        ]
        rows = loop_of("ky", s.kernel_h, f"const {self.x_type} *from = {where};", *copy)
        return loop_of("i", p, *begin, *rows)

    def _group(self, p: int) -> list[str]:
        """All channels of a group, of p pixels."""
        per_out, channels = self.shape.group_out, self.channels
        first = f"g * {per_out}" if self.shape.groups > 1 else "0"
        whole, rest = per_out - per_out % channels, per_out % channels
        last = f"{first} + {whole}" if self.shape.groups > 1 else str(whole)
        end = f"(g + 1) * {per_out}" if self.shape.groups > 1 else str(per_out)
        lines = [f"for (int32_t c = {first}; c < {last}; c += {channels}) {{", *self._block(p, channels), "}"]
        if rest:
            lines += [f"for (int32_t c = {last}; c < {end}; c++) {{", *self._block(p, 1), "}"]
        return lines

    def _block(self, p: int, c: int) -> list[str]:
        """`p` pixels by `c` channels at from<i>, weights at `w`."""
        rows, taps = self.rows, self.taps
        sum_type, sum_cast = rows.sums()
        most = 2 if self.nibbles else 8  # 4 bits: where flash is short
        unroll = next(n for n in range(most, 0, -1) if taps % n == 0)
        starts = [f"{sum_cast}{rows.start('table', j)}" for j in range(c)]
        lines = [f"{sum_type} sum{i}{j} = {start};" for i in range(p) for j, start in enumerate(starts)]
        lines += [f"const {self.x_type} *at{i} = from{i};" for i in range(p)]
        lines.append(f"for (const {self.x_type} *end = at0 + {taps}; at0 != end;) {{")
        for k in range(unroll):
            lines += [
                "{",
                *(f"const int32_t w{j} = {self._weight(k, c, j)};" for j in range(c)),
                *(f"const int32_t x{i} = at{i}[{k}];" for i in range(p)),
                *(f"sum{i}{j} += {rows.as_sum(f'x{i} * w{j}')};" for i in range(p) for j in range(c)),
                "}",
            ]
        lines.append(f"w += {unroll if self.nibbles else unroll * c};")
        lines += [*(f"at{i} += {unroll};" for i in range(p)), "}"]
        for i in range(p):
            for j in range(c):
                sum_ = f"int32_t v = {rows.as_int(f'sum{i}{j}')};"
                lines += ["{", sum_, *rows.finish_of("table", j), self._stored(i, j), "}"]
        return [*lines, f"table += {rows.step(c)};"]

    def _weight(self, k: int, c: int, j: int) -> str:
        """Weight of channel j and step k of c channels, without its zero point."""
        zero = self.quant.weight_zero_point
        if not self.nibbles:
            return f"w[{k * c + j}]{less(zero)}"
        if c == 1:
            return f"({self.weights.dtype.name}_t)w[{k}]{less(zero)}"
        return f"(int32_t)(w[{k}] {'>> 4' if j else '& 15'})" + less(zero + self.offset)

    def _stored(self, i: int, j: int) -> str:
        """Stores v, of pixel i and channel j of the block."""
        channel, pixel = f"c + {j}", f"pixel + {i}"
        if self.tail is not None:
            return self.tail.store("v", ("0", "0", pixel, channel), 1).rstrip()
        return f"y[({pixel}) * {self.shape.out_c} + {channel}] = ({self.quant.out_dtype}_t)v;"


def _pairs(weights: Weights, offset: int) -> npt.NDArray[np.uint8]:
    """Two weights in a byte, the first in the low half, without a sign."""
    flat = weights.astype(np.int16) + offset
    return np.asarray(flat[::2] | flat[1::2] << 4, dtype=np.uint8)
