"""The walk over all outputs of a convolution, block of pixels by block of pixels.

The outer loops go over the rectangles of outputs without borders; inside a rectangle the blocks run on from
row to row, so that narrow images fill them, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from aot_model.c.text import CText, product, total
from aot_model.kernels.base import ConvShape
from aot_model.kernels.float32.segments import Segments


@dataclass(frozen=True)
class Pixels:
    """Where the body finds the pixels of its block: pointers x0, x1, ... to the input of their first taps."""

    at: list[tuple[str, str]]
    """C expressions (y, x) of each pixel."""
    left: str | None
    """C expression: how many of them are of the result; None: all. The others repeat the last one."""


@dataclass(frozen=True)
class Walk:
    """All pixels of a shape, `pixels` at a time."""

    shape: ConvShape
    rows: Segments
    cols: Segments
    pixels: int
    image: str = "x"
    """The input, or one of its planes."""

    @property
    def sizes(self) -> list[int]:
        """Pixels of each rectangle."""
        return [r.count * c.count for r in self.rows.axis.segments for c in self.cols.axis.segments]

    def emit(self, text: CText, body: Callable[[Pixels], None]) -> None:
        with text.loop("n", str(self.shape.batch), needed=self.shape.batch > 1):  # noqa: SIM117
            with text.loop("r", str(self.rows.number), needed=self.rows.number > 1):
                with text.loop("s", str(self.cols.number), needed=self.cols.number > 1):
                    self._rectangle(text, body)

    def _rectangle(self, text: CText, body: Callable[[Pixels], None]) -> None:
        n, h, w, _ = self.shape.strides
        rows, cols = self.rows, self.cols
        batch = product("n", n) if self.shape.batch > 1 else "0"
        start = total(self.image, batch, product(rows.first, h), product(cols.first, w))
        if max(self.sizes) == 1:
            text.line(f"const float *const x0 = {start};")
            body(Pixels([(rows.out, cols.out)], None))
            return
        text.line(f"const float *in = {start};")
        if rows.repeated:
            text.line(f"int32_t oy = {rows.out};")
        if cols.repeated:
            text.line(f"int32_t ox = {cols.out};")
        if rows.repeated and cols.repeated:
            text.line(f"const int32_t ox_end = ox + {product(cols.count, cols.axis.out_step)};")
        exact = all(size % self.pixels == 0 for size in self.sizes)
        at = []
        with text.block(
            f"for (int32_t left = {times(rows.count, cols.count)}; left > 0; left -= {self.pixels})"
        ):
            for p in range(self.pixels):
                at.append(self._pixel(text, p))
                # past the last pixel the block repeats it, unless it is always full
                if exact and p + 1 < self.pixels:
                    next_pixel(text, self.shape, self.rows, self.cols)
                else:
                    with text.block(f"if (left > {p + 1})"):
                        next_pixel(text, self.shape, self.rows, self.cols)
            body(Pixels(at, None if exact else "left"))

    def _pixel(self, text: CText, p: int) -> tuple[str, str]:
        """Keep the current pixel as number p of the block."""
        y, x = self.rows.out, self.cols.out
        if self.rows.repeated:
            y = f"y{p}"
            text.line(f"const int32_t {y} = oy;")
        if self.cols.repeated:
            x = f"c{p}"
            text.line(f"const int32_t {x} = ox;")
        text.line(f"const float *const x{p} = in;")
        return y, x


def next_pixel(text: CText, shape: ConvShape, rows: Segments, cols: Segments) -> None:
    """To the next pixel of a rectangle: its place in the output, (oy, ox), and `in`, where its taps begin."""
    _, h, w, _ = shape.strides
    down, right = rows.axis.in_step * h, cols.axis.in_step * w
    if not cols.repeated:
        text.line(f"oy += {rows.axis.out_step};")
        text.line(f"in += {down};")
        return
    text.line(f"ox += {cols.axis.out_step};")
    text.line(f"in += {right};")
    if rows.repeated:
        with text.block("if (ox == ox_end)"):
            text.line(f"ox = {cols.out};")
            text.line(f"oy += {rows.axis.out_step};")
            text.line(f"in += {down} - {product(cols.count, right)};")


def times(a: str, b: str) -> str:
    """a * b of two C expressions."""
    if b.isdigit():
        return product(a, int(b))
    return product(b, int(a)) if a.isdigit() else f"{a} * {b}"
