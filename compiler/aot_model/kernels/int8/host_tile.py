"""The tile: a few rows of the input, widened and padded with the zero point, which the host kernels read.

A tile holds what `rows` rows of outputs need. It is written once for all output channels, so that inner loops
know of no padding, no input type and no zero point, and all input of these rows is consumed before one of
their outputs is written.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from aot_model.c.text import total
from aot_model.kernels.base import ConvShape

TILE_BYTES = 16 * 1024
"""Half of a first-level data cache; the weights of a block of channels have the other half."""


@dataclass(frozen=True)
class TileView:
    """A convolution's geometry as the loops see it: rows and columns of outputs over a strided input."""

    batch: int
    in_h: int
    in_w: int
    channels: int
    out_h: int
    out_w: int
    kernel_h: int
    kernel_w: int
    stride_h: int
    stride_w: int
    dilation_h: int
    dilation_w: int
    top: int
    left: int
    strides: tuple[int, int, int, int]
    """Elements of x from one image, row, column, channel to the next."""
    origin: int = 0
    """Where in x the first row and column lie."""
    repeat: int = 1
    """Each input channel so many times (depthwise with a multiplier)."""

    @property
    def columns(self) -> int:
        """Columns of the tile."""
        return (self.out_w - 1) * self.stride_w + (self.kernel_w - 1) * self.dilation_w + 1

    def needed(self, rows: int) -> int:
        """Input rows of so many output rows."""
        return (rows - 1) * self.stride_h + (self.kernel_h - 1) * self.dilation_h + 1

    @property
    def pixel(self) -> int:
        """Elements of a pixel in the tile."""
        return self.channels * self.repeat

    @property
    def pitch(self) -> int:
        """Elements of a row of the tile."""
        return self.columns * self.pixel

    def rows(self, element_bytes: int) -> int:
        """Output rows of a tile, evenly divided."""
        most = max(1, (TILE_BYTES // (self.pitch * element_bytes) - self.needed(1)) // self.stride_h + 1)
        tiles = -(-self.out_h // most)
        return -(-self.out_h // tiles)


def view(shape: ConvShape, pixels: int, repeat: int = 1) -> TileView:
    """The view of a convolution; a pointwise one becomes rows of a length that blocks of `pixels` pixels
    divide well.
    """
    s = shape
    n, h, w, c = s.strides
    v = TileView(
        s.batch, s.in_h, s.in_w, s.in_c, s.out_h, s.out_w, s.kernel_h, s.kernel_w, s.stride_h, s.stride_w,
        s.dilation_h, s.dilation_w, s.pad_top, s.pad_left, (n, h, w, c), repeat=repeat,
    )  # fmt: skip
    if v.top < 0:
        v = replace(v, origin=v.origin - v.top * h, in_h=v.in_h + v.top, top=0)
    if v.left < 0:
        v = replace(v, origin=v.origin - v.left * w, in_w=v.in_w + v.left, left=0)
    if v.kernel_h == 1 and v.top == 0 and (v.out_h - 1) * v.stride_h < v.in_h:
        v = replace(v, in_h=v.out_h, stride_h=1, strides=(n, h * v.stride_h, w, c))
    if v.kernel_w == 1 and v.left == 0 and (v.out_w - 1) * v.stride_w < v.in_w:
        v = replace(v, in_w=v.out_w, stride_w=1, strides=(n, v.strides[1], w * v.stride_w, c))
    if (v.kernel_h, v.kernel_w, v.stride_h, v.stride_w, v.in_h, v.in_w) == (1, 1, 1, 1, v.out_h, v.out_w):
        v = _rows_of_pixels(v, pixels)
    return v


def _rows_of_pixels(v: TileView, pixels: int) -> TileView:
    """A pointwise convolution over regular pixels, cut into other rows; unchanged where the input is not
    regular.
    """
    n, h, w, c = v.strides
    if v.in_h > 1 and h != v.in_w * w:
        return v
    batch, count = v.batch, v.out_h * v.out_w
    if batch > 1 and n == count * w:
        batch, count = 1, batch * count

    def cost(width: int) -> float:
        return count // width * (sum(p * k + k for p, k in split(width, pixels)) + 2)

    widths = [d for d in range(1, count + 1) if count % d == 0 and d * v.pixel * 2 <= TILE_BYTES] or [1]
    width = min(widths, key=lambda d: (cost(d), d))
    height = count // width
    return replace(v, batch=batch, in_h=height, in_w=width, out_h=height, out_w=width,
                   strides=(n, width * w, w, c))  # fmt: skip


def split(width: int, pixels: int) -> list[tuple[int, int]]:
    """A row of `width` pixels as [(pixels of a block, how many such blocks)], sizes differing by one at
    most.
    """
    blocks = -(-width // pixels)
    small, more = divmod(width, blocks)
    return [(p, k) for p, k in ((small + 1, more), (small, blocks - more)) if k]


def tile_call(v: TileView, x_dtype: str, zero: int, image: str, first: str, rows: str) -> str:
    """Statement that fills the tile from input row `first` on."""
    width = max(0, min(v.in_w, v.columns - v.left))
    left = min(v.left, v.columns) * v.pixel
    right = v.pitch - left - width * v.pixel
    _, h, w, c = v.strides
    source = total(image, str(v.origin))
    common = f"tile, {source}, {first}, {rows}, {v.in_h}, {h}, {left}"
    if c == 1 and v.repeat == 1:
        run, runs = (width * v.channels, 1) if w == v.channels else (v.channels, width)
        return f"q8_tile_{x_dtype}({common}, {run}, {runs}, {w}, {right}, {zero});"
    return (
        f"q8_tile_strided_{x_dtype}({common}, {width}, {w}, {v.channels}, {c}, {v.repeat}, {right}, {zero});"
    )
