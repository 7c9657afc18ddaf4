"""Groups of a convolution, Helium: the dense micro-kernel for each of them, one after the other.

A pixel's taps are scattered into a patch where those of a group lie one behind the other. Groups of few
outputs are taken together, as one whose weights are zeros where an output has nothing to do with an input: a
block of the micro-kernel has four outputs, whether a group has them or not.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aot_model.c.helpers import named_by_text
from aot_model.c.text import total
from aot_model.kernels.base import ConvShape, Packed
from aot_model.kernels.int8.patch_mve import Patch, of_pixel, rows_of_taps, times

BLOCK = 4
"""Outputs of a block of the micro-kernels."""
_CALL, _FINISH, _CHUNK = 20, 28, 14
"""Instructions of a call, of a block's requantisation, of the products of a vector of its taps."""


@dataclass(frozen=True)
class Groups:
    """`together` groups of a layer are one of `count` calls for a pixel."""

    shape: ConvShape
    together: int

    @property
    def count(self) -> int:
        return self.shape.groups // self.together

    @property
    def channels(self) -> int:
        """Input channels of a call."""
        return self.shape.in_c // self.count

    @property
    def taps(self) -> int:
        """Products of an output, with those that are zeros."""
        return self.shape.kernel_h * self.shape.kernel_w * self.channels

    @property
    def outputs(self) -> int:
        return self.shape.out_c // self.count

    def cost(self, lanes: int) -> tuple[int, int]:
        """(instructions of a pair of pixels, bytes of weights), about; lanes: taps of a vector."""
        blocks = -(-self.outputs // BLOCK)
        instructions = _CALL + blocks * (_FINISH + _CHUNK * -(-self.taps // lanes))
        return self.count * instructions, self.count * blocks * BLOCK * (-(-self.taps // 4) * 4 + 9)

    def matrices(self, weights: np.ndarray) -> np.ndarray:
        """weights [out_c, kernel_h, kernel_w, in_c / groups] as [call, output, tap]."""
        s = self.shape
        shape = (self.count, self.together, s.out_c // s.groups, s.kernel_h, s.kernel_w)
        own = weights.reshape(*shape, s.in_c // s.groups)
        whole = np.zeros((*shape, self.together, s.in_c // s.groups), weights.dtype)
        for k in range(self.together):
            whole[:, k, :, :, :, k] = own[:, k]
        return whole.reshape(self.count, self.outputs, self.taps)


def groups_of(shape: ConvShape, lanes: int) -> Groups:
    """The cheapest way that takes no more weights than one group after the other."""
    all_of_them = [Groups(shape, n) for n in range(1, shape.groups + 1) if shape.groups % n == 0]
    most = all_of_them[0].cost(lanes)[1]
    fitting = [g for g in all_of_them if g.cost(lanes)[1] <= most]
    return min(fitting, key=lambda g: (g.cost(lanes)[0], g.together))


def scatter(g: Groups, fill: int, size: int) -> tuple[Patch, Packed]:
    """The copier for one geometry and what its parameter `places` (behind x) is; taps outside of the image
    become `fill`. size: bytes of an element; of two bytes only 0 may be filled in.
    """
    s, ctype = g.shape, {1: "int8_t", 2: "int16_t"}[size]
    unit = next(u for u in (4, 2, 1) if g.channels * size % u == 0)
    run = s.kernel_w if s.dilation_w == 1 else 1  # columns that are moved at once
    element = np.arange(run * s.in_c * size // unit) * (unit // size)
    tap, channel = element // s.in_c, element % s.in_c
    at = channel // g.channels * g.taps + tap * g.channels + channel % g.channels
    whole = f"""\
if (iy < 0 || iy > {s.in_h - s.tall} || ix < 0 || ix > {s.in_w - s.wide}) {{
    aot_mve_fill((int8_t *)patch, {fill}, {size * g.count * g.taps});
}}
"""
    units = f"{s.in_c * size // unit}"

    def move(tap: str, pixel: str, first: str, count: str) -> str:
        to, source = f"patch + {times(tap, g.channels)}", f"x + {times(total(pixel, first), s.in_c)}"
        places = f"places + {first} * {units}, {count} * {units}"
        return f"aot_mve_scatter{unit}((int8_t *)({to}), (const int8_t *)({source}), {places});\n"

    body = of_pixel(s, ("" if s.inside else whole) + rows_of_taps(s, move))
    head = f"({ctype} *patch, const {ctype} *x, const uint16_t *places, int32_t oy, int32_t ox)\n"
    name = named_by_text("aot_mve_taps_of_groups", head + body)
    text = (
        f"/* The {s.kernel_h} x {s.kernel_w} x {s.in_c} taps of output pixel (oy, ox), those of "
        f"{g.channels} channels together. */\nAOT_MODEL_OPAQUE static void {name}{head}{body}"
    )
    places = Packed(
        "places",
        (at * size).astype(np.uint16),
        code=True,
        layout="where the units of a kernel's row go in the patch",
    )
    return Patch(name, (text,), 0), places
