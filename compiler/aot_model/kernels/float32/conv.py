"""Direct convolution and transposed convolution in float32, channels last, without im2col.

Loops, from the outside: rectangles of outputs without borders (axis.py), blocks of pixels, blocks of output channels,
rows of taps, and the inner loop over the taps of a row and the input channels together where they lie one behind the
other in memory. The weights lie in the order in which these loops read them:

    [group][block of output channels][bias][tap row][tap column][input channel][channel of the block]
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

import numpy as np

from aot_model.kernels.base import ConvShape, KernelCode, Packed, Tail
from aot_model.kernels.float32.axis import Axis, Segment, conv_axis, transposed_axis
from aot_model.kernels.float32.block import Block, Work, choose
from aot_model.kernels.float32.dialect import VectorDialect
from aot_model.kernels.float32.overlap import slack
from aot_model.kernels.float32.store import Accumulators
from aot_model.kernels.float32.text import CText, product, total

_SMALL_STEP = 16
"""A step of fewer MACs is unrolled twice as often."""
_UNROLLED_CHANNELS = 4
"""Up to so many input channels that do not lie one behind the other are unrolled inside the loop over tap columns."""


def conv(
    shape: ConvShape,
    weights: np.ndarray,
    tail: Tail,
    dialect: VectorDialect,
    *,
    bias: np.ndarray | None = None,
    vector_tail: bool = True,
    block: Block | None = None,
) -> KernelCode:
    """Convolution of `x` [N, H, W, C].

    weights: [out_c, kernel_h, kernel_w, in_c / groups]. bias: [out_c], where the accumulators start; None: zero.
    vector_tail: the tail takes vectors of `dialect.lanes` channels. block: instead of the one that would be chosen.
    """
    s = shape
    rows = conv_axis(s.in_h, s.out_h, s.kernel_h, s.stride_h, s.dilation_h, s.pad_top)
    cols = conv_axis(s.in_w, s.out_w, s.kernel_w, s.stride_w, s.dilation_w, s.pad_left)
    return _Loops(s, rows, cols, weights, bias, tail, dialect, vector_tail).emit(block)


def conv_transpose(
    shape: ConvShape,
    weights: np.ndarray,
    tail: Tail,
    dialect: VectorDialect,
    *,
    bias: np.ndarray | None = None,
    vector_tail: bool = True,
    block: Block | None = None,
) -> KernelCode:
    """Transposed convolution of `x` [N, H, W, C], gathered: every output is finished at once.

    shape: stride, dilation and padding are those of the convolution that this one transposes (`pad_top` rows of the
    full result are cut off). weights: [out_c, kernel_h, kernel_w, in_c / groups]; the others as in `conv`.
    """
    s = shape
    rows = transposed_axis(s.in_h, s.out_h, s.kernel_h, s.stride_h, s.dilation_h, s.pad_top)
    cols = transposed_axis(s.in_w, s.out_w, s.kernel_w, s.stride_w, s.dilation_w, s.pad_left)
    return _Loops(s, rows, cols, weights, bias, tail, dialect, vector_tail).emit(block)


def pixels_in_a_row(shape: ConvShape) -> ConvShape | None:
    """A pointwise convolution over all its pixels as one row (N = H = 1), or None where the input is not that regular.

    Cheaper to index; for tails that address pixel (n, y, x) of a dense result as (0, 0, (n * H + y) * W + x).
    """
    s = shape
    n, h, w, c = s.strides
    taps = (s.kernel_h, s.kernel_w, s.stride_h, s.stride_w, s.pad_top, s.pad_left)
    if taps != (1, 1, 1, 1, 0, 0) or (s.out_h, s.out_w) != (s.in_h, s.in_w):
        return None
    if (s.in_h > 1 and h != s.in_w * w) or (s.batch > 1 and n != s.in_h * s.in_w * w):
        return None
    pixels = s.batch * s.in_h * s.in_w
    return ConvShape(1, 1, pixels, s.in_c, 1, pixels, s.out_c, groups=s.groups, x_strides=(pixels * w, pixels * w, w, c))


@dataclass(frozen=True)
class _Loops:
    """One convolution as loops over segments, pixels, channel blocks and taps."""

    shape: ConvShape
    rows: Axis
    cols: Axis
    weights: np.ndarray
    bias: np.ndarray | None
    tail: Tail
    dialect: VectorDialect
    vector_tail: bool

    @property
    def in_c(self) -> int:
        """Input channels of a group."""
        return self.shape.in_c // self.shape.groups

    @property
    def out_c(self) -> int:
        """Output channels of a group."""
        return self.shape.out_c // self.shape.groups

    @property
    def merged(self) -> bool:
        """Taps of a row and input channels are one run through memory."""
        _, _, w, c = self.shape.strides
        return self.cols.taps == 1 or self.in_c * c == self.cols.tap_step * w

    @property
    def unrolled(self) -> bool:
        """The body of the loop over tap columns contains all input channels."""
        return not self.merged and self.in_c <= _UNROLLED_CHANNELS

    def rectangles(self) -> list[tuple[Segment, Segment]]:
        return [(r, c) for r in self.rows.segments for c in self.cols.segments]

    def choose(self) -> Block:
        work = Work(
            [(r.count * c.count, r.taps, c.taps * self.in_c) for r, c in self.rectangles()],
            self.out_c,
            self.shape.out_c * self.taps_size(),
        )
        return choose(work, self.dialect, self.steps(None))

    def steps(self, block: Block | None) -> int:
        """Steps in the body of the inner loop."""
        if self.unrolled:
            return self.in_c
        small = block is not None and block.pixels * block.vectors * self.dialect.lanes < _SMALL_STEP
        wanted = self.dialect.costs.unroll * (2 if small and self.dialect.costs.unroll > 1 else 1)
        return next(u for u in range(wanted, 0, -1) if self.in_c % u == 0)

    # ---- weights

    def vectors(self, block: Block) -> list[tuple[int, int, int]]:
        """Loops over channel blocks: (first channel, number of blocks, vectors per block)."""
        width = block.vectors * self.dialect.lanes
        full, rest = divmod(self.out_c, width)
        loops = [(0, full, block.vectors)] if full else []
        return loops + ([(full * width, 1, ceil(rest / self.dialect.lanes))] if rest else [])

    def taps_size(self) -> int:
        return self.rows.taps * self.cols.taps * self.in_c

    def block_size(self, vectors: int) -> int:
        """Elements of the weights of one channel block."""
        return (self.taps_size() + (self.bias is not None)) * vectors * self.dialect.lanes

    def pack(self, block: Block) -> np.ndarray:
        s = self.shape
        w = np.asarray(self.weights, np.float32)[:, list(self.rows.order)][:, :, list(self.cols.order)]
        w = w.reshape(s.out_c, self.taps_size()).T
        if self.bias is not None:
            w = np.concatenate([np.asarray(self.bias, np.float32).reshape(1, -1), w])
        parts = []
        for group in range(s.groups):
            for first, blocks, vectors in self.vectors(block):
                width = vectors * self.dialect.lanes
                for i in range(blocks):
                    begin = group * self.out_c + first + i * width
                    end = min(begin + width, (group + 1) * self.out_c)
                    parts.append(np.pad(w[:, begin:end], ((0, 0), (0, width - (end - begin)))).ravel())
        return np.concatenate(parts) if parts else np.zeros(0, np.float32)

    # ---- order

    def slack(self, block: Block) -> int:
        """See overlap.py; the result is dense channels last."""
        s = self.shape
        n_stride, h, w, _ = s.strides
        size = 1 + sum((e - 1) * t for e, t in zip((s.batch, s.in_h, s.in_w, s.in_c), s.strides, strict=True))
        reads, ends = [], []
        for n in range(s.batch):
            for r, c in self.rectangles():
                y, x = np.divmod(np.arange(r.count * c.count), c.count)
                read = n * n_stride + (r.first + y * self.rows.in_step) * h + (c.first + x * self.cols.in_step) * w
                if r.taps * c.taps == 0:
                    read = np.full_like(read, size)
                row = n * s.out_h + r.out + y * self.rows.out_step
                end = (row * s.out_w + c.out + x * self.cols.out_step + 1) * s.out_c
                begins = np.arange(0, len(y), block.pixels)
                reads.append(np.minimum.reduceat(read, begins))
                ends.append(np.maximum.reduceat(end, begins))
        channel_blocks = s.groups * sum(count for _, count, _ in self.vectors(block))
        return slack(np.concatenate(reads), np.concatenate(ends), reread=channel_blocks > 1, size=size)

    # ---- code

    def emit(self, block: Block | None) -> KernelCode:
        block = block or self.choose()
        text = CText()
        self._tables(text)
        s = self.shape
        with text.loop("n", str(s.batch), needed=s.batch > 1):  # noqa: SIM117
            with text.loop("r", str(len(self.rows.segments)), needed=len(self.rows.segments) > 1):
                with text.loop("s", str(len(self.cols.segments)), needed=len(self.cols.segments) > 1):
                    self._rectangle(text, block)
        body = str(text)
        return KernelCode(
            body=body,
            constants=(Packed("weights", self.pack(block), 4 * self.dialect.lanes),),
            includes=self.dialect.includes,
            helpers=self.dialect.helpers(body),
            slack=self.slack(block),
            note=f"{block.pixels} pixels x {block.vectors * self.dialect.lanes} channels in registers",
        )

    def _tables(self, text: CText) -> None:
        for name, axis in (("rows", self.rows), ("cols", self.cols)):
            if len(axis.segments) > 1:
                values = [(g.out, g.count, g.first, g.tap, g.taps) for g in axis.segments]
                ctype = "int16_t" if max(map(max, values)) < 2**15 else "int32_t"
                text.line(f"/* {name}: first output, outputs, first input, first tap, taps */")
                text.line(f"static const {ctype} {name}[{len(values)}][5] = {{")
                for value in values:
                    text.line("    {" + ", ".join(map(str, value)) + "},")
                text.line("};")

    def _field(self, name: str, axis: Axis, field: int) -> str:
        """C expression of a field of the current segment."""
        if len(axis.segments) > 1:
            return f"{name}[{'r' if name == 'rows' else 's'}][{field}]"
        g = axis.segments[0]
        return str((g.out, g.count, g.first, g.tap, g.taps)[field])

    def _row(self, field: int) -> str:
        return self._field("rows", self.rows, field)

    def _col(self, field: int) -> str:
        return self._field("cols", self.cols, field)

    @property
    def one_line(self) -> bool:
        """No rectangle has more than one row of pixels."""
        return all(g.count == 1 for g in self.rows.segments)

    @property
    def one_column(self) -> bool:
        return all(g.count == 1 for g in self.cols.segments)

    def _rectangle(self, text: CText, block: Block) -> None:
        """Blocks of pixels of one rectangle, row by row."""
        n, h, w, _ = self.shape.strides
        single = all(r.count * c.count == 1 for r, c in self.rectangles())
        exact = all(r.count * c.count % block.pixels == 0 for r, c in self.rectangles())
        start = total("x", product("n", n) if self.shape.batch > 1 else "0",
                      product(self._row(2), h), product(self._col(2), w))
        y = self._row(0)
        if single:
            text.line(f"const float *const x0 = {start};")
            self._groups(text, block, [(y, self._col(0))], exact=True)
            return
        down, right = self.rows.in_step * h, self.cols.in_step * w
        text.line(f"const float *in = {start};")
        moving_y = not self.one_line
        moving_x = not self.one_column
        if moving_y:
            text.line(f"int32_t oy = {y};")
        if moving_x:
            text.line(f"int32_t ox = {self._col(0)};")
        if moving_y and moving_x:
            text.line(f"const int32_t ox_end = ox + {product(self._col(1), self.cols.out_step)};")
            advance = [f"ox += {self.cols.out_step};" if self.cols.out_step > 1 else "++ox;", f"in += {right};"]
            # from the end of one row of the rectangle to the beginning of the next one
            wrap = [f"ox = {self._col(0)};", f"oy += {self.rows.out_step};" if self.rows.out_step > 1 else "++oy;",
                    f"in += {down} - {product(self._col(1), right)};"]
            count = product(self._row(1), int(self._col(1))) if self._col(1).isdigit() else (
                product(self._col(1), int(self._row(1))) if self._row(1).isdigit() else f"{self._row(1)} * {self._col(1)}")
        elif moving_y:
            advance, wrap, count = [f"oy += {self.rows.out_step};", f"in += {down};"], [], self._row(1)
        else:
            advance, wrap, count = [f"ox += {self.cols.out_step};", f"in += {right};"], [], self._col(1)
        coordinates = []
        with text.block(f"for (int32_t left = {count}; left > 0; left -= {block.pixels})"):
            for p in range(block.pixels):
                py, px = y, self._col(0)
                if moving_y:
                    py = f"y{p}"
                    text.line(f"const int32_t {py} = oy;")
                if moving_x:
                    px = f"c{p}"
                    text.line(f"const int32_t {px} = ox;")
                coordinates.append((py, px))
                text.line(f"const float *const x{p} = in;")
                # past the last pixel the block repeats it, unless it is always full
                guarded = not exact or p + 1 == block.pixels
                if guarded:
                    with text.block(f"if (left > {p + 1})"):
                        self._advance(text, advance, wrap)
                else:
                    self._advance(text, advance, wrap)
            self._groups(text, block, coordinates, exact)

    @staticmethod
    def _advance(text: CText, advance: list[str], wrap: list[str]) -> None:
        for statement in advance:
            text.line(statement)
        if wrap:
            with text.block("if (ox == ox_end)"):
                for statement in wrap:
                    text.line(statement)

    def _groups(self, text: CText, block: Block, coordinates: list[tuple[str, str]], exact: bool) -> None:
        groups = self.shape.groups
        loops = self.vectors(block)
        per_group = sum(blocks * self.block_size(vectors) for _, blocks, vectors in loops)
        with text.loop("g", str(groups), needed=groups > 1):
            before = 0
            for first, blocks, vectors in loops:
                size = self.block_size(vectors)
                with text.loop("b", str(blocks), needed=blocks > 1):  # noqa: SIM117
                    with text.block():
                        g, b = ("g" if groups > 1 else "0"), ("b" if blocks > 1 else "0")
                        oc = total(product(g, self.out_c), product(b, vectors * self.dialect.lanes), str(first))
                        offset = total(product(g, per_group), product(b, size), str(before))
                        channels = min(vectors * self.dialect.lanes, self.out_c - first)
                        self._block(text, block.pixels, vectors, channels, oc, offset, coordinates, exact)
                before += blocks * size

    def _block(
        self,
        text: CText,
        pixels: int,
        vectors: int,
        channels: int,
        oc: str,
        offset: str,
        coordinates: list[tuple[str, str]],
        exact: bool,
    ) -> None:
        d = self.dialect
        width = vectors * d.lanes
        text.line(f"const float *w = {total('weights', offset)};")
        self._start(text, pixels, vectors)
        tap = total(product(self._row(3), self.cols.taps), self._col(3))
        skip = total(product(tap if tap.isdigit() else f"({tap})", self.in_c * width),
                     str(width if self.bias is not None else 0))
        if skip != "0":
            text.line(f"w += {skip};")
        self._taps(text, pixels, vectors)
        if not oc.isdigit() and oc != "g":
            text.line(f"const int32_t oc = {oc};")
            oc = "oc"
        names = [[f"acc{p}_{v}" for v in range(vectors)] for p in range(pixels)]
        n = "n" if self.shape.batch > 1 else "0"
        block = Accumulators(d, names, coordinates, n, oc, channels, None if exact else "left")
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
        _, h, w, c = self.shape.strides
        width = vectors * self.dialect.lanes
        group = product("g", self.in_c * c) if self.shape.groups > 1 else "0"
        several_rows = self.rows.taps > 1
        unroll = self.steps(Block(pixels, vectors))
        with text.loop("ky", self._row(4), needed=several_rows):
            if not several_rows and self._row(4) not in ("1",):
                head = text.block(f"if ({self._row(4)} > 0)")
            else:
                head = text.loop("_", "1", needed=False)
            with head:
                for p in range(pixels):
                    down = product("ky", self.rows.tap_step * h) if several_rows else "0"
                    text.line(f"const float *a{p} = {total(f'x{p}', group, down)};")
                if self.merged:
                    self._run(text, pixels, vectors, product(self._col(4), self.in_c), c, unroll)
                elif self.unrolled:
                    with text.loop("kx", self._col(4)):
                        self._steps(text, pixels, vectors, [i * c for i in range(self.in_c)], self.cols.tap_step * w)
                else:
                    with text.loop("kx", self._col(4)):
                        self._run(text, pixels, vectors, str(self.in_c), c, unroll)
                        for p in range(pixels):
                            text.line(f"a{p} += {self.cols.tap_step * w - self.in_c * c};")
                if self._col(4) != str(self.cols.taps) and several_rows:
                    text.line(f"w += ({self.cols.taps} - {self._col(4)}) * {self.in_c * width};")

    def _run(self, text: CText, pixels: int, vectors: int, count: str, stride: int, unroll: int) -> None:
        """`count` input elements, `stride` apart."""
        with text.loop("i", count, unroll, needed=count != str(unroll)):
            self._steps(text, pixels, vectors, [u * stride for u in range(unroll)], unroll * stride)

    def _steps(self, text: CText, pixels: int, vectors: int, offsets: list[int], advance: int) -> None:
        """Outer products of the input elements at `offsets` with their weights; then pointers advance.

        Weights are loaded from the last to the first: the load at the pointer itself, being next to where the pointer
        advances, becomes one that advances it. In the other order gcc 12 spends a move and an addition.
        """
        d = self.dialect
        for u, offset in enumerate(offsets):
            element = [f"a{p}[{offset}]" for p in range(pixels)]
            weight = [d.load_at("w", (u * vectors + v) * d.lanes) for v in range(vectors)]
            with text.block():
                if vectors < pixels:
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
