"""Direct convolution: the loops inside a block of pixels, without im2col.

Loops, from the outside: blocks of pixels (pixels.py), blocks of output channels, rows of taps, and the inner
loop over the taps of a row and the input channels together where they lie one behind the other in memory.
Weights too large for the caches exchange the first two. The weights lie in the order in which these loops
read them:

    [group][block of output channels][bias][tap row][tap column][input channel][channel of the block]
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from math import ceil

import numpy as np

from aot_model.c.text import CText, product, total
from aot_model.c.words import counted
from aot_model.kernels.base import ConvShape, KernelCode, Packed, Tail
from aot_model.kernels.float32.axis import Axis, Segment
from aot_model.kernels.float32.block import Block, Work, choose
from aot_model.kernels.float32.dialect import VectorDialect
from aot_model.kernels.float32.pixels import Pixels, Walk
from aot_model.kernels.float32.planes import each_plane, image_of, number_of, segments_of
from aot_model.kernels.float32.repack import Weights, repacked
from aot_model.kernels.float32.segments import Segments
from aot_model.kernels.float32.store import Accumulators
from aot_model.kernels.overlap import MANY_OUTPUTS, slack

_SMALL_STEP = 16
"""A step of fewer MACs is unrolled twice as often."""
_UNROLLED_CHANNELS = 4
"""Up to so many input channels that do not lie one behind the other are unrolled inside the loop over tap
columns.
"""


@dataclass(frozen=True)
class _Channels:
    """A block of output channels. `first` and `weights` are C expressions: channel, offset into the
    weights.
    """

    vectors: int
    number: int
    first: str
    weights: str


@dataclass(frozen=True)
class DirectConvolution:
    """One convolution as loops over pixels, channel blocks and taps, as in conv.conv()."""

    shape: ConvShape
    planes: Axis | None
    """The axis before the rows, of a 3-D convolution."""
    rows: Axis
    cols: Axis
    weights: Weights
    tail: Tail
    dialect: VectorDialect
    vector_tail: bool

    @property
    def bias(self) -> np.ndarray | None:
        return self.weights.bias

    @property
    def merged(self) -> bool:
        """Taps of a row and input channels are one run through memory."""
        _, _, w, c = self.shape.strides
        return self.cols.taps == 1 or self.shape.group_in * c == self.cols.tap_step * w

    @property
    def unrolled(self) -> bool:
        """The body of the loop over tap columns contains all input channels."""
        return not self.merged and self.shape.group_in <= _UNROLLED_CHANNELS

    def rectangles(self) -> list[tuple[Segment, Segment]]:
        return [(r, c) for r in self.rows.segments for c in self.cols.segments]

    def kinds(self) -> dict[tuple[int, int, int], int]:
        """(pixels, tap rows, taps of a row) of the rectangles, and how many are so: a transposed convolution
        has thousands, of few kinds.
        """
        rows, cols = (Counter((g.count, g.taps) for g in axis.segments) for axis in (self.rows, self.cols))
        found: Counter[tuple[int, int, int]] = Counter()
        for (high, down), m in rows.items():
            for (wide, along), n in cols.items():
                found[high * wide, down, along] += m * n
        return found

    def choose(self) -> Block:
        planes = max(g.taps for g in self.planes.segments) if self.planes else 1
        work = Work(
            {
                (pixels, down * planes, along * self.shape.group_in): number
                for (pixels, down, along), number in self.kinds().items()
            },
            self.shape.group_out,
            self.shape.out_c * self.taps_size(),
        )
        return choose(work, self.dialect, self.steps(None))

    def steps(self, block: Block | None) -> int:
        """Steps in the body of the inner loop."""
        if self.unrolled:
            return self.shape.group_in
        small = block is not None and block.pixels * block.vectors * self.dialect.lanes < _SMALL_STEP
        wanted = self.dialect.costs.unroll * (2 if small and self.dialect.costs.unroll > 1 else 1)
        return next(u for u in range(wanted, 0, -1) if self.shape.group_in % u == 0)

    # ---- weights

    def vectors(self, block: Block) -> list[tuple[int, int, int]]:
        """Loops over channel blocks: (first channel, number of blocks, vectors per block)."""
        width = block.vectors * self.dialect.lanes
        full, rest = divmod(self.shape.group_out, width)
        loops = [(0, full, block.vectors)] if full else []
        return loops + ([(full * width, 1, ceil(rest / self.dialect.lanes))] if rest else [])

    def taps_size(self) -> int:
        return self.plane_size * (self.planes.taps if self.planes else 1)

    @property
    def plane_size(self) -> int:
        """Weights of a channel in one plane."""
        return self.rows.taps * self.cols.taps * self.shape.group_in

    def block_size(self, vectors: int) -> int:
        """Elements of the weights of one channel block."""
        return (self.taps_size() + (self.bias is not None)) * vectors * self.dialect.lanes

    def in_order(self, weights: np.ndarray) -> np.ndarray:
        """Weights [channel][tap row][tap column][input channel] in the order in which they are read."""
        return weights

    def _reordered(self, weights: np.ndarray) -> np.ndarray:
        """[channel][tap], in the order in which they are read."""
        w = weights[..., list(self.rows.order), :, :][..., list(self.cols.order), :]
        if self.planes:
            w = w[:, list(self.planes.order)]
        return self.in_order(w).reshape(len(w), self.taps_size())

    def packed_by(self, code: KernelCode, block: Block) -> KernelCode:
        """Code that packs its weights itself where they are an input."""
        if not self.weights.given:
            return code
        return repacked(
            code,
            self.weights,
            self.vectors(block),
            self.dialect.lanes,
            self.shape.groups,
            self.shape.group_out,
            self.weights.given_order(self._reordered),
            int(self.bias is not None),
        )

    def pack(self, block: Block) -> np.ndarray:
        """Empty where the weights are an input."""
        if self.weights.given:
            return np.zeros(0, np.float32)
        w = self._reordered(np.asarray(self.weights.values, np.float32)).T
        if self.bias is not None:
            w = np.concatenate([np.asarray(self.bias, np.float32).reshape(1, -1), w])
        parts = []
        for group in range(self.shape.groups):
            for first, blocks, vectors in self.vectors(block):
                width = vectors * self.dialect.lanes
                begin, beyond = group * self.shape.group_out + first, (group + 1) * self.shape.group_out
                channels = w[:, begin : min(begin + blocks * width, beyond)]
                channels = np.pad(channels, ((0, 0), (0, blocks * width - channels.shape[1])))
                parts.append(channels.reshape(len(w), blocks, width).transpose(1, 0, 2).ravel())
        return np.concatenate(parts) if parts else np.zeros(0, np.float32)

    # ---- order

    def slack(
        self, block: Block, begins: Callable[[int], np.ndarray] | None = None, reread: bool = True
    ) -> tuple[int | None, int | None]:
        """See overlap.py: of the input, and of a residual; the result is dense channels last.

        begins: the first pixels of the blocks of a rectangle of so many. reread: each block of channels reads
        its pixels again.
        """
        s = self.shape
        n_stride, h, w, _ = s.strides
        if s.batch * s.out_h * s.out_w > MANY_OUTPUTS or s.depth:
            return None, None
        size = 1 + sum((e - 1) * t for e, t in zip((s.batch, s.in_h, s.in_w, s.in_c), s.strides, strict=True))
        reads, begun, ends = [], [], []  # of one image
        for r, c in self.rectangles():
            y, x = np.divmod(np.arange(r.count * c.count), c.count)
            read = (r.first + y * self.rows.in_step) * h + (c.first + x * self.cols.in_step) * w
            row = r.out + y * self.rows.out_step
            end = (row * s.out_w + c.out + x * self.cols.out_step + 1) * s.out_c
            at = np.arange(0, len(y), block.pixels) if begins is None else begins(len(y))
            none = r.taps * c.taps == 0
            reads.append(np.full(len(at), size) if none else np.minimum.reduceat(read, at))
            ends.append(np.maximum.reduceat(end, at))
            begun.append(np.minimum.reduceat(end - s.out_c, at))
        images, image = np.arange(s.batch)[:, None], s.out_h * s.out_w * s.out_c
        read_first = np.concatenate(reads)
        every_read = np.where(read_first < size, images * n_stride + read_first, size).ravel()
        every = (images * image + np.concatenate(ends)).ravel()
        every_begun = (images * image + np.concatenate(begun)).ravel()
        channel_blocks = s.groups * sum(count for _, count, _ in self.vectors(block))
        reread = reread and channel_blocks > 1
        return (
            slack(every_read, every, reread=reread, size=size, element=4),
            slack(every_begun, every, reread=True, size=int(every.max()), element=4),
        )

    # ---- code

    def emit(self) -> KernelCode:
        block = self.choose()
        text = CText()
        flat = replace(self.shape, batch=1) if self.shape.depth else self.shape
        walk = Walk(flat, self._rows, self._cols, block.pixels, image_of(self.shape))
        self._declare(text)
        blocks = self.shape.groups * sum(count for _, count, _ in self.vectors(block))
        channels_outside = blocks > 1 and self._channels_outside(block)
        with each_plane(text, self.shape, self.planes):
            if channels_outside:
                for channels in self._channels(text, block):
                    walk.emit(text, partial(self._block, text, channels))
            else:
                walk.emit(text, partial(self._all_channels, text, block))
        body = str(text)
        order = "; channels outside" if channels_outside else ""
        over, residual = (None, None) if channels_outside else self.slack(block)
        code = KernelCode(
            body=body,
            constants=(
                Packed(
                    "weights",
                    self.pack(block),
                    4 * self.dialect.lanes,
                    layout="for each block of channels: bias, if any; for each tap those of the block",
                ),
            ),
            includes=self.dialect.includes,
            helpers=self.dialect.helpers(body),
            slack=over,
            residual=residual,
            note=f"{counted(block.pixels, 'pixel')} x "
            f"{counted(block.vectors * self.dialect.lanes, 'channel')} in registers{order}",
        )
        return self.packed_by(code, block)

    def _declare(self, text: CText) -> None:
        """Tables of segments."""
        if self.planes:
            segments_of(self.planes).declare(text)
        self._rows.declare(text)
        self._cols.declare(text)

    @property
    def _rows(self) -> Segments:
        return Segments("rows", "r", self.rows)

    @property
    def _cols(self) -> Segments:
        return Segments("cols", "s", self.cols)

    def _channels_outside(self, block: Block) -> bool:
        """Whether the weights of all channels are too many to be read again for every block of pixels."""
        cache = self.dialect.costs.cache
        pixels = self.shape.batch * self.shape.out_h * self.shape.out_w
        return cache is not None and 4 * self.weights.values.size > cache and pixels > 4 * block.pixels

    def _all_channels(self, text: CText, block: Block, pixels: Pixels) -> None:
        for channels in self._channels(text, block):
            self._block(text, channels, pixels)

    def _channels(self, text: CText, block: Block) -> Iterator[_Channels]:
        """Loops over the channel blocks; what is written between two steps is their body."""
        groups = self.shape.groups
        loops = self.vectors(block)
        per_group = sum(blocks * self.block_size(vectors) for _, blocks, vectors in loops)
        with text.loop("g", str(groups), needed=groups > 1):
            before = 0
            for first, blocks, vectors in loops:
                size = self.block_size(vectors)
                g, b = ("g" if groups > 1 else "0"), ("b" if blocks > 1 else "0")
                width = vectors * self.dialect.lanes
                with text.loop("b", str(blocks)) if blocks > 1 else text.block():
                    yield _Channels(
                        vectors,
                        min(width, self.shape.group_out - first),
                        total(product(g, self.shape.group_out), product(b, width), str(first)),
                        total(product(g, per_group), product(b, size), str(before)),
                    )
                before += blocks * size

    def _block(self, text: CText, channels: _Channels, pixels: Pixels) -> None:
        """One register block: start, taps, tail."""
        d = self.dialect
        number, vectors = len(pixels.at), channels.vectors
        text.line(f"const float *w = {total('weights', channels.weights)};")
        self._start(text, number, vectors)
        tap = total(product(self._rows.tap, self.cols.taps), self._cols.tap)
        taps = product(tap if tap.isdigit() else f"({tap})", self.shape.group_in * vectors * d.lanes)
        skip = total(taps, str(vectors * d.lanes if self.bias is not None else 0))
        if skip != "0":
            text.line(f"w += {skip};")
        self._taps(text, number, vectors)
        oc = channels.first
        if not oc.isdigit() and oc != "g":
            text.line(f"const int32_t oc = {oc};")
            oc = "oc"
        names = [[f"acc{p}_{v}" for v in range(vectors)] for p in range(number)]
        block = Accumulators(d, names, pixels.at, number_of(self.shape), oc, channels.number, pixels.left)
        block.store(text, self.tail, self.vector_tail)

    def _start(self, text: CText, pixels: int, vectors: int) -> None:
        """Accumulators begin at the bias, which is at the head of the block's weights."""
        d = self.dialect
        for p in range(pixels):
            for v in range(vectors):
                begin = d.splat("0.0f") if self.bias is None else d.load_at("w", v * d.lanes)
                value = begin if self.bias is None or p == 0 else f"acc0_{v}"
                text.line(f"{d.ctype} acc{p}_{v} = {value};")

    def _taps(self, text: CText, pixels: int, vectors: int) -> None:
        *_, c = self.shape.strides
        width = vectors * self.dialect.lanes
        group = product("g", self.shape.group_in * c) if self.shape.groups > 1 else "0"
        unroll = self.steps(Block(pixels, vectors))
        depth = self.shape.depth
        deep = "0"
        with ExitStack() as planes:
            if depth is not None and self.planes:
                axis = segments_of(self.planes)
                text.line("const float *const of_planes = w;")
                planes.enter_context(text.loop("kz", axis.taps))
                size = product(f"({total(axis.tap, 'kz')})", self.plane_size * width)
                text.line(f"w = {total('of_planes', size)};")
                deep = product("kz", self.planes.tap_step * depth.x_stride)
            self._rows_of_taps(text, pixels, vectors, unroll, (group, deep))

    def _rows_of_taps(
        self, text: CText, pixels: int, vectors: int, unroll: int, offsets: tuple[str, str]
    ) -> None:
        """The taps of a plane."""
        _, h, w, c = self.shape.strides
        width = vectors * self.dialect.lanes
        several_rows = self.rows.taps > 1
        with text.loop("ky", self._rows.taps, needed=several_rows):
            always = several_rows or self._rows.taps == "1"
            with nullcontext() if always else text.block(f"if ({self._rows.taps} > 0)"):
                for p in range(pixels):
                    down = product("ky", self.rows.tap_step * h) if several_rows else "0"
                    text.line(f"const float *a{p} = {total(f'x{p}', *offsets, down)};")
                if self.merged:
                    self._run(text, pixels, vectors, product(self._cols.taps, self.shape.group_in), c, unroll)
                elif self.unrolled:
                    with text.loop("kx", self._cols.taps):
                        self._steps(
                            text,
                            pixels,
                            vectors,
                            [i * c for i in range(self.shape.group_in)],
                            self.cols.tap_step * w,
                        )
                else:
                    with text.loop("kx", self._cols.taps):
                        self._run(text, pixels, vectors, str(self.shape.group_in), c, unroll)
                        for p in range(pixels):
                            text.line(f"a{p} += {self.cols.tap_step * w - self.shape.group_in * c};")
                if self._cols.taps != str(self.cols.taps) and several_rows:
                    text.line(f"w += ({self.cols.taps} - {self._cols.taps}) * {self.shape.group_in * width};")

    def _run(self, text: CText, pixels: int, vectors: int, count: str, stride: int, unroll: int) -> None:
        """`count` input elements, `stride` apart."""
        with text.loop("i", count, unroll, needed=count != str(unroll)):
            self._steps(text, pixels, vectors, [u * stride for u in range(unroll)], unroll * stride)

    def _steps(self, text: CText, pixels: int, vectors: int, offsets: list[int], advance: int) -> None:
        """Outer products of the input elements at `offsets` with their weights; then pointers advance.

        Weights are loaded from the last to the first: the load at the pointer itself, being next to where the
        pointer advances, becomes one that advances it. In the other order gcc 12 spends a move and an
        addition.
        """
        d = self.dialect
        for u, offset in enumerate(offsets):
            element = [f"a{p}[{offset}]" for p in range(pixels)]
            load = d.load_held if pixels > 1 else d.load_at
            weight = [load("w", (u * vectors + v) * d.lanes) for v in range(vectors)]
            with text.block():
                if vectors < pixels and d.scalar_in_vector:
                    for v in reversed(range(vectors)):
                        text.line(f"const {d.ctype} w{v} = {weight[v]};")
                    for p in range(pixels):
                        value = d.element(element[p])
                        text.line(f"const {d.element_type} e{p} = {value};")
                        for v in range(vectors):
                            text.line(f"acc{p}_{v} = {d.fma_element(f'w{v}', f'e{p}', f'acc{p}_{v}')};")
                else:
                    for p in range(pixels):
                        text.line(f"const {d.element_type} e{p} = {d.element(element[p])};")
                    for v in reversed(range(vectors)):
                        text.line(f"const {d.ctype} w{v} = {weight[v]};")
                        for p in range(pixels):
                            text.line(f"acc{p}_{v} = {d.fma_element(f'w{v}', f'e{p}', f'acc{p}_{v}')};")
        for p in range(pixels):
            text.line(f"a{p} += {advance};")
        text.line(f"w += {len(offsets) * vectors * d.lanes};")
