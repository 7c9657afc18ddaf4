"""The loops around the host's micro-kernels: images, tiles of rows, blocks of channels, rows, blocks of
pixels.

The micro-kernels read a tile: a few rows of the input, widened and padded with the zero point. It holds what
`rows` rows of outputs need and is written once for all output channels, so that inner loops
know of no padding, no input type and no zero point, and all input of these rows is consumed before one of
their outputs is written.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from aot_model.c.text import CText, product, total
from aot_model.c.words import counted
from aot_model.kernels.base import ConvShape, KernelCode, Packed, Scratch, Tail
from aot_model.kernels.int8.instructions import InstructionSet
from aot_model.kernels.int8.spec import QuantSpec
from aot_model.kernels.overlap import by_pixels
from aot_model.kernels.row_tail import RowTail, tail_helpers

OVERRUN = 32
"""Elements behind the tile that a micro-kernel may read, for channels or taps whose weights are zero."""


@dataclass(frozen=True)
class Sweep:
    """Blocks of output channels that one micro-kernel computes."""

    channel: int
    count: int
    """How many channels."""
    step: int
    """Channels of a block; the last one of a sweep is whole unless it is the only one."""
    pixels: int
    """Most pixels of a block."""
    weights: tuple[int, int]
    """Elements of the weights before the first block, and of each block."""
    table: tuple[int, int]
    """The same of the table."""
    input: tuple[int, int]
    """Elements into the tile's pixel at which the inputs begin, and how much further for each block."""
    call: Callable[[int, str, str, str, str, int], str]
    """(pixels, x, w, table, y, channels) to the statement."""
    fold: int = 1
    """So many adjacent pixels count as one with as many times the channels."""


@dataclass(frozen=True)
class Loops:
    """Writes the body of one kernel."""

    shape: ConvShape
    view: TileView
    quant: QuantSpec
    dialect: InstructionSet
    sweeps: list[Sweep]
    tail: Tail | None
    zero: int
    """The zero point as it lies in the tile."""

    @property
    def tile_rows(self) -> int:
        return self.view.rows(self.dialect.element_bytes)

    def scratch(self) -> tuple[Scratch, ...]:
        v, d = self.view, self.dialect
        size = (v.needed(self.tile_rows) * v.pitch + OVERRUN) * d.element_bytes
        found = [Scratch("tile", size, 32, d.element)]
        if self.tail is not None:
            out = self.quant.out_dtype
            size = self.tile_rows * v.out_w * self.shape.out_c * np.dtype(out).itemsize
            found.append(Scratch("results", size, 4, f"{out}_t"))
        return tuple(found)

    def slack(self) -> int | None:
        """A tile's input is consumed before its outputs are written."""
        v = self.view
        return by_pixels(self.shape, self.tile_rows * v.out_w, through_images=v.batch < self.shape.batch)

    def code(
        self,
        constants: tuple[Packed, ...],
        finishes: Iterable[str],
        micro_kernels: Mapping[str, str],
        how: str,
    ) -> KernelCode:
        """The kernel. finishes: functions that micro-kernels call; micro_kernels: their texts, each there
        once a sweep has called it. how: they compute.
        """
        d, body = self.dialect, self.text()
        every = [*finishes, *micro_kernels.values(), *tail_helpers(self.tail)]
        return KernelCode(
            body=d.named(body),
            constants=constants,
            scratch=self.scratch(),
            includes=frozenset({d.header}),
            helpers=tuple(dict.fromkeys(d.named(h) for h in every)),
            slack=self.slack(),
            note=f"{d.name}, {how}",
        )

    @property
    def note(self) -> str:
        """The blocking of the first sweep."""
        blocks = " and ".join(
            str(p) for p, _ in split(self.view.out_w // self.sweeps[0].fold, self.sweeps[0].pixels)
        )
        return f"blocks of {blocks} pixels, tiles of {self.tile_rows} x {counted(self.view.out_w, 'output')}"

    def text(self) -> str:
        v, oc = self.view, self.shape.out_c
        rows, image = self.tile_rows, v.out_h * v.out_w * oc
        c = CText()
        with c.turns("n", str(v.batch)) as n, c.turns("top", str(v.out_h), rows) as top:
            height = str(rows)
            if v.out_h % rows:
                c.line(f"const int32_t rows = {v.out_h} - top < {rows} ? {v.out_h} - top : {rows};")
                height = "rows"
            first = product(top, v.stride_h)
            first = f"{first} - {v.pad_top}" if v.pad_top else first
            more, needed = v.needed(1) - v.stride_h, str(v.needed(rows))
            if height == "rows":
                scaled = product("rows", v.stride_h)
                needed = total(scaled, str(more)) if more >= 0 else f"rows * {v.stride_h} - {-more}"
            image_at = total("x", product(n, v.strides[0]))
            c.line(tile_call(v, self.quant.x_dtype, self.zero, image_at, first, needed))
            to = "results" if self.tail else total("y", product(n, image), product(top, v.out_w * oc))
            for sweep in self.sweeps:
                self._sweep(c, sweep, height, to)
            if self.tail is not None:
                self._tail(c, self.tail, n, top, height)
        return str(c)

    def _sweep(self, c: CText, s: Sweep, height: str, to: str) -> None:
        v, oc = self.view, self.shape.out_c
        width = min(s.step, s.count)
        with c.turns("block", str(s.count // s.step)) as block:
            w, table = (
                total(name, str(begin), product(block, step))
                for name, (begin, step) in (("weights", s.weights), ("table", s.table))
            )
            with c.turns("row", height) as row:
                input_at = str(s.input[0]), product(block, s.input[1])
                from_ = total("tile", *input_at, product(row, v.stride_h * v.pitch))
                at = total(to, str(s.channel), product(block, s.step), product(row, v.out_w * oc))
                blocks = split(v.out_w // s.fold, s.pixels)
                from_pixel, to_pixel = s.fold * v.stride_w * v.pixel, s.fold * oc
                done = 0
                for pixels, count in blocks:
                    x, y = total(from_, str(done * from_pixel)), total(at, str(done * to_pixel))
                    with c.turns("i", str(count)) as i:
                        x = total(x, product(i, pixels * from_pixel))
                        y = total(y, product(i, pixels * to_pixel))
                        c.line(s.call(pixels, x, w, table, y, width))
                    done += pixels * count

    def _tail(self, c: CText, tail: Tail, n: str, top: str, height: str) -> None:
        """Hands the results of a tile to the tail, by their place in the true result; a row tail takes them
        all.
        """
        s, v = self.shape, self.view
        row = f"pixel / {s.out_w}" + (f" % {s.out_h}" if s.batch > 1 else "")
        at = (
            f"pixel / {s.out_h * s.out_w}" if s.batch > 1 else "0",
            row if s.out_h > 1 else "0",
            f"pixel % {s.out_w}" if s.out_w > 1 else "0",
        )
        first = total(product(n, v.out_h * v.out_w), product(top, v.out_w))
        if isinstance(tail, RowTail) and tail.adjacent:
            count = product(height, v.out_w * s.out_c)
            if (v.batch, v.out_h, v.out_w) == (s.batch, s.out_h, s.out_w):
                at = (n, top, "0")
            store = tail.store_row("results", (*at, "0"), count).rstrip()
            if "pixel" in store:
                c.line(f"const int32_t pixel = {first};")
            c.line(store)
            return
        if (v.batch, v.out_h, v.out_w) == (s.batch, s.out_h, s.out_w):
            with c.turns("row", height) as row, c.turns("column", str(v.out_w)) as column:
                store = tail.store("value", (n, total(top, row), column, "c"), 1)
                self._store(c, total(product(row, v.out_w), column), store)
            return
        store = tail.store("value", (*at, "c"), 1)
        with c.loop("i", str(int(height) * v.out_w) if height.isdigit() else f"{height} * {v.out_w}"):
            c.line(f"const int32_t pixel = {total(first, 'i')};")
            self._store(c, "i", store)

    def _store(self, c: CText, place: str, store: str) -> None:
        with c.loop("c", str(self.shape.out_c)):
            pixel = product(place if place.isalnum() else f"({place})", self.shape.out_c)
            c.line(f"const int32_t value = results[{total(pixel, 'c')}];")
            c.line(store)


TILE_BYTES = 16 * 1024
"""Half of a first-level data cache; the weights of a block of channels have the other half."""


@dataclass(frozen=True)
class TileView(ConvShape):
    """A convolution's geometry as the loops see it: a pointwise one may have other rows."""

    repeat: int = 1
    """Each input channel so many times (depthwise with a multiplier)."""

    @property
    def columns(self) -> int:
        """Columns of the tile."""
        return (self.out_w - 1) * self.stride_w + self.wide

    def needed(self, rows: int) -> int:
        """Input rows of so many output rows."""
        return (rows - 1) * self.stride_h + self.tall

    @property
    def pixel(self) -> int:
        """Elements of a pixel in the tile."""
        return self.in_c * self.repeat

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
    n, h, w, c = shape.strides
    v = TileView(**{**vars(shape), "x_strides": shape.strides}, repeat=repeat)
    if v.kernel_h == 1 and v.pad_top == 0 and (v.out_h - 1) * v.stride_h < v.in_h:
        v = replace(v, in_h=v.out_h, stride_h=1, x_strides=(n, h * v.stride_h, w, c))
    if v.kernel_w == 1 and v.pad_left == 0 and (v.out_w - 1) * v.stride_w < v.in_w:
        v = replace(v, in_w=v.out_w, stride_w=1, x_strides=(n, v.strides[1], w * v.stride_w, c))
    return _rows_of_pixels(v, pixels) if v.pointwise else v


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

    most = min(count, TILE_BYTES // (2 * v.pixel))
    widths = [d for d in range(1, most + 1) if count % d == 0] or [1]
    width = min(widths, key=lambda d: (cost(d), d))
    height = count // width
    return replace(v, batch=batch, in_h=height, in_w=width, out_h=height, out_w=width,
                   x_strides=(n, width * w, w, c))  # fmt: skip


def split(width: int, pixels: int) -> list[tuple[int, int]]:
    """A row of `width` pixels as [(pixels of a block, how many such blocks)], sizes differing by one at
    most.
    """
    blocks = -(-width // pixels)
    small, more = divmod(width, blocks)
    return [(p, k) for p, k in ((small + 1, more), (small, blocks - more)) if k]


def tile_call(v: TileView, x_dtype: str, zero: int, image: str, first: str, rows: str) -> str:
    """Statement that fills the tile from input row `first` on."""
    width = max(0, min(v.in_w, v.columns - v.pad_left))
    left = min(v.pad_left, v.columns) * v.pixel
    right = v.pitch - left - width * v.pixel
    _, h, w, c = v.strides
    common = f"tile, {image}, {first}, {rows}, {v.in_h}, {h}, {left}"
    if v.repeat == 1:
        run, runs = (width * v.in_c, 1) if w == v.in_c else (v.in_c, width)
        return f"q8_tile_{x_dtype}({common}, {run}, {runs}, {w}, {right}, {zero});"
    return f"q8_tile_strided_{x_dtype}({common}, {width}, {w}, {v.in_c}, {c}, {v.repeat}, {right}, {zero});"
