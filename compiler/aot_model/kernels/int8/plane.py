"""One channel of the input as an int16 plane with a border: what depthwise kernels compute on.

The border holds the input's zero point and is filled once for all channels; each channel's values are
gathered inside of it. Lines of the plane run along the rows of the image or along its columns (`transposed`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aot_model.c.text import loop_of
from aot_model.kernels.base import ConvShape, Scratch, Tail
from aot_model.kernels.int8.finish import Rule
from aot_model.kernels.int8.spec import QuantSpec

_GATHERS = {"int8": ("DSP_GATHER_4(ldrsb, ", 1), "uint8": ("DSP_GATHER_4(ldrb, ", 1),
            "int16": ("DSP_GATHER_4_INT16(", 2)}  # fmt: skip
"""How a call begins that copies four elements into the plane, and the bytes of an element."""
PLANE_BYTES = 6144
"""A plane larger than this is done in strips of lines."""


@dataclass(frozen=True)
class Axis:
    """One direction of the image: sizes in elements, strides of x and y in elements of memory."""

    size_in: int
    size_out: int
    kernel: int
    stride: int
    dilation: int
    pad: int
    x_step: int
    y_step: int

    @property
    def reach(self) -> int:
        """Input elements that one output needs, first to last."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def used(self) -> int:
        """Input elements that any output needs, from the first of the image on."""
        return max(0, min(self.size_in, (self.size_out - 1) * self.stride + self.reach - self.pad))


@dataclass(frozen=True)
class Plane:
    """Lines `u`, positions `v` within a line. length: int16 per line, even."""

    u: Axis
    v: Axis
    transposed: bool
    """Lines run along the columns of the image: v is its height."""
    length: int
    lines_out: int
    """Output lines of one strip."""

    @property
    def lines(self) -> int:
        return (self.lines_out - 1) * self.u.stride + self.u.reach

    @property
    def strips(self) -> int:
        return -(-self.u.size_out // self.lines_out)

    def grid(self, weights: np.ndarray) -> np.ndarray:
        """Weights [kernel_h, kernel_w, channel] as [channel, line, tap]."""
        found: np.ndarray = weights.transpose(2, 1, 0) if self.transposed else weights.transpose(2, 0, 1)
        return found


def plane_of(shape: ConvShape, limit: int, once: bool) -> Plane:
    """Chooses the direction of lines: an even number of outputs, no dilation within a line, then fewer lines.

    once: no output may be computed twice, so strips are of one size without overlap.
    """
    s = shape
    rows = Axis(
        s.in_h, s.out_h, s.kernel_h, s.stride_h, s.dilation_h, s.pad_top, s.strides[1], s.out_w * s.out_c
    )
    columns = Axis(s.in_w, s.out_w, s.kernel_w, s.stride_w, s.dilation_w, s.pad_left, s.strides[2], s.out_c)

    def cost(u: Axis, v: Axis) -> tuple[int, int, int]:
        pairs = -(-v.kernel // 2) * u.kernel if v.dilation == 1 else v.kernel * u.kernel
        return (pairs, u.size_out * (v.size_out + (v.size_out % 2)), u.size_out)

    transposed = cost(columns, rows) < cost(rows, columns)
    u, v = (columns, rows) if transposed else (rows, columns)
    outputs = v.size_out + v.size_out % 2
    length = (outputs - 1) * v.stride + v.reach + 1
    length += length % 2
    strip = u.size_out
    while strip > 1 and 2 * length * ((strip - 1) * u.stride + u.reach) > limit:
        strip -= 1
    strip = -(-u.size_out // -(-u.size_out // strip))
    while once and u.size_out % strip:
        strip -= 1
    return Plane(u, v, transposed, length, strip)


@dataclass(frozen=True)
class PlaneLoops:
    """The loops around what one channel computes: border, gathering, strips, tail."""

    shape: ConvShape
    quant: QuantSpec
    plane: Plane
    tail: Tail | None
    results: bool
    """Values go to the scratch `results` of one channel first."""
    stored: tuple[str, int]
    """C type and bytes of a value that one channel's computation stores."""
    rule: Rule = Rule()  # noqa: RUF009  (it is frozen)
    """What is left to do with it."""
    dsp: bool = False
    """There is the header of the DSP extension."""

    @property
    def multiplier(self) -> int:
        return self.shape.out_c // self.shape.in_c

    @property
    def channel(self) -> str:
        return "c" if self.multiplier == 1 else f"(c * {self.multiplier} + m)"

    @property
    def target(self) -> str:
        """Where a channel's values are stored, `steps` elements from one line and from one value to the
        next.
        """
        return "results" if self.results else "to_y"

    @property
    def steps(self) -> tuple[int, int]:
        u, v = self.plane.u, self.plane.v
        return (v.size_out, 1) if self.results else (u.y_step, v.y_step)

    def scratch(self, beyond: int = 0) -> list[Scratch]:
        """beyond: elements of the plane behind its end that are read, of any value."""
        p, (ctype, size) = self.plane, self.stored
        plane = Scratch("plane", 2 * (p.length * p.lines + beyond), 4, "int16_t")
        results = Scratch("results", size * p.lines_out * p.v.size_out, 4, ctype)
        return [plane, *([results] if self.results else [])]

    @property
    def slack(self) -> int | None:
        """A channel is consumed before one of its outputs is written: y may lie on x, or whole pixels off."""
        s = self.shape
        if self.plane.strips > 1 or s.in_c != s.out_c:
            return None
        pixels_in, pixels_out = s.in_h * s.in_w, s.out_h * s.out_w
        if s.batch == 1:
            return pixels_in * s.in_c
        return 0 if pixels_out <= pixels_in else None

    def text(self, compute: list[str]) -> str:
        s, plane = self.shape, self.plane
        u = plane.u
        if self.results:
            inner = [*compute, *self._finish()]
        else:
            first = f" + first * {u.y_step}" if plane.strips > 1 else ""
            to = f"y + n * {s.out_h * s.out_w * s.out_c} + {self.channel}{first}"
            inner = [f"{self.quant.out_dtype}_t *to_y = {to};", *compute]
        if self.multiplier > 1:
            inner = loop_of("m", self.multiplier, *inner)
        inner = [*self._gather(), *inner]
        if plane.strips > 1:
            step, last = plane.lines_out, u.size_out
            # the last strip begins earlier, so that all are of one size
            first = f"strip + {step} <= {last} ? strip : {last - step}" if last % step else "strip"
            inner = loop_of("strip", last, f"const int32_t first = {first};", *inner, step=step)
        border = loop_of("i", plane.lines * plane.length, f"plane[i] = {self.quant.x_zero_point};")
        lines = [*border, *loop_of("n", s.batch, *loop_of("c", s.in_c, *inner))]
        return "\n".join(["/* the border stays as it is for all channels */", *lines]) + "\n"

    def _gather(self) -> list[str]:
        plane, zero = self.plane, self.quant.x_zero_point
        u, v = plane.u, plane.v
        count = v.used
        if not (u.used and count):  # windows see the border alone
            return ["(void)x;"]
        lines, outside, over = list[str](), list[str](), ("i", u.used)
        line, place = "i", f"(i + {u.pad})"
        if plane.strips > 1:
            lines.append(f"const int32_t i = first * {u.stride} + line - {u.pad};")
            lines.append(f"const int outside = i < 0 || i >= {u.size_in};")
            outside = ["if (outside) {", *loop_of("k", count, f"to[k] = {zero};"), "continue;", "}"]
            over, line, place = ("line", plane.lines), "(outside ? 0 : i)", "line"
        lines += [
            f"const {self.quant.x_dtype}_t *from = x + n * {self.shape.strides[0]} + c + "
            f"{line} * {u.x_step};",
            f"int16_t *to = plane + {place} * {plane.length} + {v.pad};",
            *outside,
        ]
        unroll = next((f for f in (8, 6, 5, 7, 4) if count % f == 0), 4) if count > 8 else count
        if count <= unroll:
            return loop_of(*over, *lines, *self._copies(count))
        end = f"const int16_t *end = to + {count - count % unroll}"
        many = f"for ({end}; to != end; to += {unroll}, from += {unroll * v.x_step}) {{"
        return loop_of(*over, *lines, many, *self._copies(unroll), "}", *self._copies(count % unroll))

    def _copies(self, count: int) -> list[str]:
        """Four at a time, whose loads overlap, where their offsets fit into instructions."""
        step = self.plane.v.x_step
        gather, size = _GATHERS[self.quant.x_dtype]
        fours = count // 4 * 4 if self.dsp and (count // 4 * 4 - 1) * step * size <= 4095 else 0
        places = [", ".join(str(i * step) for i in range(k, k + 4)) for k in range(0, fours, 4)]
        return [
            *(f"{gather}to, {4 * k}, from, {four});" for k, four in enumerate(places)),
            *(f"to[{k}] = from[{k * step}];" for k in range(fours, count)),
        ]

    def _finish(self) -> list[str]:
        """From `results` to the tail or to y."""
        plane, s = self.plane, self.shape
        size = plane.v.size_out
        line = "u" if plane.strips == 1 else "(first + u)"
        row, column = ("j", line) if plane.transposed else (line, "j")
        at = f"((n * {s.out_h} + {row}) * {s.out_w} + {column}) * {s.out_c} + {self.channel}"
        store = f"y[{at}] = ({self.quant.out_dtype}_t)v;"
        if self.tail is not None:
            store = self.tail.store("v", ("n", row, column, self.channel), 1).rstrip()
        each = [*self.rule.lines(f"results[u * {size} + j]", self.channel), store]
        return loop_of("u", plane.lines_out, *loop_of("j", size, *each))
