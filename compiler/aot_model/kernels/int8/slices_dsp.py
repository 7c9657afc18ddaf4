"""Patches of a group of channels, a slice of each pixel, as int16 pairs of four output pixels.

Where the taps of four pixels lie is found once for all groups: `at`, of each tap four addresses of a pixel's
first channel, `outside` being a pixel of zero points. Then each group's slice is gathered: four channels of a
tap at a time, of what is left two channels of two taps, one channel of two taps. An odd last tap is its own
neighbour, with weights that add nothing. A dilated convolution is one group.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aot_model.kernels.base import ConvShape, Scratch
from aot_model.kernels.int8.dsp import dsp_function
from aot_model.kernels.int8.patch_dsp import PIXELS

MOST_TAPS = 32
"""Of a kernel: the addresses are on the stack."""
_FIRST, _SECOND = ("r4", "r5", "r6", "r7"), ("r8", "r9", "r10", "r11")


def fits(shape: ConvShape) -> bool:
    """Whether a pixel's channels are neighbours, and the taps are few."""
    return shape.strides[3] == 1 and shape.kernel_h * shape.kernel_w <= MOST_TAPS


@dataclass(frozen=True)
class Slices:
    """The patches of a layer's groups."""

    shape: ConvShape
    x_type: str
    zero: int

    @property
    def depth(self) -> int:
        """Channels of a group's input."""
        return self.shape.in_c // self.shape.groups

    @property
    def taps(self) -> int:
        return self.shape.kernel_h * self.shape.kernel_w

    @property
    def stored(self) -> int:
        """Taps with addresses."""
        return self.taps + (self.taps % 2 if self.depth % 4 else 0)

    @property
    def order(self) -> npt.NDArray[np.int64]:
        """The tap and channel, counted together, at each position of a column; -1: none."""
        depth, found = self.depth, []
        for first in range(0, depth - depth % 4, 4):
            found += [t * depth + first + k for t in range(self.taps) for k in (0, 2, 1, 3)]
        whole, pairs = depth - depth % 4, range(0, self.stored, 2)
        if depth & 2:
            found += [(t + k) * depth + whole + c for t in pairs for c in (0, 1) for k in (0, 1)]
        if depth & 1:
            found += [(t + k) * depth + depth - 1 for t in pairs for k in (0, 1)]
        order = np.array(found, np.int64)
        return np.where(order < self.taps * depth, order, -1)

    @property
    def widths(self) -> tuple[int, ...]:
        """Channels that are gathered together."""
        return tuple(w for w in (4, 2, 1) if (self.depth >= 4 if w == 4 else self.depth & w))

    def scratch(self) -> list[Scratch]:
        inside = self.shape.inside
        return [] if inside else [Scratch("outside", self.shape.in_c, 4, f"{self.x_type}_t")]

    def begin(self) -> list[str]:
        """Statements before all pixels."""
        return [] if self.shape.inside else [f"memset(outside, {self.zero}, {self.shape.in_c});"]

    def addresses(self, image: str) -> list[str]:
        """C that fills `at` from the windows' corners `tops` and `lefts`."""
        s = self.shape
        _, sy, sx, _ = s.strides
        place = f"{image} + (tops[i] + ky * {s.dilation_h}) * {sy} + (lefts[i] + kx * {s.dilation_w}) * {sx}"
        lines, value = [], place
        if not s.inside:
            lines = [f"const int32_t r = tops[i] + ky * {s.dilation_h};"]
            lines.append(f"const int line = r >= 0 && r < {s.in_h};")
            value = f"line && c >= 0 && c < {s.in_w} ? {image} + r * {sy} + c * {sx} : outside"
        column = [] if s.inside else [f"const int32_t c = lefts[i] + kx * {s.dilation_w};"]
        more = self.stored - self.taps
        return [
            f"const {self.x_type}_t *at[{PIXELS * self.stored}];",
            "for (int32_t i = 0; i < 4; i++) {", f"const {self.x_type}_t **to_at = at + i;",
            f"for (int32_t ky = 0; ky < {s.kernel_h}; ky++) {{", *lines,
            f"for (int32_t kx = 0; kx < {s.kernel_w}; kx++, to_at += 4) {{", *column,
            f"*to_at = {value};", "}", "}",
            *([f"at[{PIXELS * self.taps} + i] = at[{PIXELS * (self.taps - 1)} + i];"] if more else []), "}",
        ]  # fmt: skip

    def gather(self) -> list[str]:
        """C that fills `columns` with the slice of group `g`."""
        depth = self.depth
        lines = [f"const int32_t slice = {f'g * {depth}' if self.shape.groups > 1 else 0};"]
        lines.append("uint32_t *to = columns;")
        whole, last = depth - depth % 4, self.widths[-1]
        for width in self.widths:
            first = {4: 0, 2: whole, 1: depth - 1}[width]
            end = f"at, at + {PIXELS * (self.taps if width == 4 else self.stored)}"
            call = f"{_name(self.x_type, width)}(to, {end}, slice{f' + {first}' if first else ''}"
            if width == 4 and depth >= 8:
                lines += [f"for (int32_t k = 0; k < {whole}; k += 4) {{", f"to = {call} + k);", "}"]
            else:
                lines.append(f"{'' if width == last else 'to = '}{call});")
        return lines

    def helpers(self) -> list[str]:
        return [_helper(self.x_type, width) for width in self.widths]


def _name(dtype: str, width: int) -> str:
    return f"slice4x{width}_{dtype}"


def _helper(dtype: str, width: int) -> str:
    """Text of the function that gathers `width` channels of all taps."""
    ext, byte = ("sxtb16", "ldrsb") if dtype == "int8" else ("uxtb16", "ldrb")
    load = {4: "ldr", 2: "ldrh", 1: byte}
    loaded = _FIRST if width == 4 else (*_FIRST, *_SECOND)
    lines = ["push {r4-r11, lr}", "1:", "ldmia r1!, {r4-r7}"]
    lines += ["ldmia r1!, {r8-r11}"] if width < 4 else []
    lines += [f"{load[width]} {r}, [{r}, r3]" for r in loaded]
    lines += [f"pkhbt {a}, {a}, {b}, lsl #16" for a, b in zip(_FIRST, _SECOND, strict=True) if width < 4]
    if width > 1:
        lines += [f"{ext} {b}, {a}, ror #8" for a, b in zip(_FIRST, _SECOND, strict=True)]
        lines += [f"{ext} {a}, {a}" for a in _FIRST]
    lines += [f"stmia r0!, {{r4-r{11 if width > 1 else 7}}}", "cmp r1, r2", "bne 1b", "pop {r4-r11, pc}"]
    kind = f"const {dtype}_t"
    first, second = ("v[0]", "v[2]") if width == 4 else ("v[0]", "w[0]")
    third, fourth = ("v[1]", "v[3]") if width == 4 else ("v[1]", "w[1]")
    twin = [
        f"for (; at != end; at += {4 if width == 4 else 8}, columns += {4 if width == 1 else 8}) {{",
        "for (uint32_t i = 0; i < 4; i++) {",
        f"{kind} *v = at[i] + slice;",
        *([f"{kind} *w = at[4 + i] + slice;"] if width < 4 else []),
        f"columns[i] = ((uint32_t){first} & 0xffffu) | (uint32_t){second} << 16;",
        *([f"columns[4 + i] = ((uint32_t){third} & 0xffffu) | (uint32_t){fourth} << 16;"] * (width > 1)),
        "}", "}", "return columns;",
    ]  # fmt: skip
    channels = {4: "Four channels of a tap", 2: "Two channels of two taps", 1: "A channel of two taps"}[width]
    comment = f"{channels} at a time, from `slice` on, of four pixels as int16 [k/2][4][2]."
    parameters = f"uint32_t *columns, {kind} *const *at, {kind} *const *end, int32_t slice"
    return dsp_function(_name(dtype, width), comment, parameters, lines, twin, "uint32_t *")
