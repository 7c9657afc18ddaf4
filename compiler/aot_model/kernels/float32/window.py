"""Kernels that keep channels apart: depthwise convolution and pooling, channels last.

A block is some neighbouring outputs of one row, for one vector of channels. Their windows overlap, so the
block slides over the input row: each input column is loaded once and goes to all outputs of the block that it
belongs to. Which ones these are is known for every column when the code is written, so the blocks at the left
and right border differ from those between them only in leaving out what is padding. Above and below, the loop
over tap rows is shorter.

Windows too wide for that are gathered tap by tap, several vectors of channels at a time.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property

from aot_model.c.literal import float_literal
from aot_model.c.text import IN_ORDER, CText, product, total
from aot_model.c.words import counted
from aot_model.ir.types import DType
from aot_model.kernels.base import KernelCode, Packed
from aot_model.kernels.float32.axis import Axis
from aot_model.kernels.float32.dialect import VectorDialect
from aot_model.kernels.float32.planes import each_plane, image_of, number_of, segments_of
from aot_model.kernels.float32.repack import GIVEN
from aot_model.kernels.float32.segments import Segments
from aot_model.kernels.float32.store import Accumulators
from aot_model.kernels.float32.window_plan import MAC, MAXIMUM, Columns, WindowPlan

_SPARE = 3
"""Registers that are needed beside those of a row of taps, or some are moved and spilled."""
_GATHERED = 4
"""Vectors of channels that are gathered together."""


@dataclass(frozen=True)
class Window(WindowPlan):
    """The C of one operator over windows."""

    def emit(self) -> KernelCode:
        s = self.shape
        text = CText()
        blocks = self.column_blocks()
        if self.planes:
            self._planes(self.planes).declare(text)
        self._rows.declare(text)
        if not blocks:
            self._cols.declare(text)
        batch = 1 if s.depth else s.batch
        with each_plane(text, s, self.planes), text.loop("n", str(batch), needed=batch > 1):  # noqa: SIM117
            with text.loop("r", str(self._rows.number), needed=self._rows.number > 1):
                with text.loop("j", self._rows.count, needed=self._rows.repeated):
                    self._row(text, blocks)
        body = str(text)
        dialects = {d.name: d for d, _, _ in self.channel_loops()}.values()
        note = ", ".join(
            f"{counted(b.pixels, 'output')}" + (f" {b.repeat} times" if b.repeat > 1 else "")
            for b in blocks or []
        )
        read = self.weights is not None and not self.as_given and "weights" in body
        code = KernelCode(
            body=body,
            constants=(Packed("weights", self.pack(), 4 * self.dialect.lanes),) if read else (),
            includes=frozenset().union(
                *(d.includes for d in dialects), {"math.h"} if "INFINITY" in body else set()
            ),
            helpers=tuple(dict.fromkeys(h for d in dialects for h in d.helpers(body))),
            slack=self.slack(blocks),
            note=f"each row in blocks of {note}" if blocks else "gathered tap by tap",
        )
        return self.packed_by(code) if read else code

    def _row(self, text: CText, blocks: list[Columns] | None) -> None:
        """A row of outputs."""
        s, rows, repeated = self.shape, self._rows, self._rows.repeated
        _, h, _, _ = s.strides
        start = total(
            image_of(s),
            product("n", s.strides[0]) if s.batch > 1 and not s.depth else "0",
            product(rows.first, h),
            product("j", self.rows.in_step * h) if repeated else "0",
        )
        seen = not blocks or any(g.taps for g in self.cols.segments)
        padding = f"(void){image_of(s)}; /* nothing but padding */"
        text.line(f"const float *const row = {start};" if seen else padding)
        y = total(rows.out, product("j", self.rows.out_step)) if repeated else rows.out
        if not y.isdigit():
            text.line(f"const int32_t oy = {y};")
            y = "oy"
        for b in blocks or []:
            self._slide(text, b, y)
        if not blocks:
            self._gather(text, y)

    def _planes(self, axis: Axis) -> Segments:
        return segments_of(axis, self.reduction.mean)

    @property
    def _rows(self) -> Segments:
        return Segments("rows", "r", self.rows, self.reduction.mean)

    @property
    def _cols(self) -> Segments:
        return Segments("cols", "s", self.cols, self.reduction.mean)

    def _start(self, text: CText, d: VectorDialect, accumulators: int, shared: bool) -> None:
        """Declare the accumulators; `shared`: all are of the same channels, so that one bias is for all."""
        for p in range(accumulators):
            if self.bias is None:
                value = d.splat(self.reduction.start)
            elif shared:
                value = d.load_packed("w", 0) if p == 0 else "acc0"
            else:
                value = d.load_packed(f"w{p}", 0)
            text.line(f"{d.ctype} acc{p} = {value};")

    def _step(self, d: VectorDialect, acc: str, element: str, weight: str) -> str:
        if self.reduction.step == "fma":
            fma = d.fma(weight, element, acc) if self.multiplier == 1 else d.fma_element(weight, element, acc)
            return f"{acc} = {fma};"
        if self.reduction.step == "maximum":
            return f"{acc} = {d.window_maximum(element, acc)};"
        return f"{acc} = {d.add(acc, element)};"

    def _element(self, d: VectorDialect, pointer: str, offset: int) -> tuple[str, str]:
        """(type, expression) of the input elements at an offset from `pointer`."""
        if d.lanes > 1 and self.multiplier > 1:
            return d.element_type, d.element(f"{pointer}[{offset}]")
        return d.ctype, d.load_at(pointer, offset)

    def _channel(self, d: VectorDialect, first: int, vectors: int) -> str:
        """First output channel of vector `c`."""
        return total(product("c", d.lanes) if vectors > 1 else "0", str(first))

    def _input_channel(self, channel: str) -> str:
        if self.shape.in_c == 1:
            return "0"
        if self.multiplier == 1:
            in_c = channel
        else:
            in_c = f"({channel}) / {self.multiplier}"
        return product(
            in_c if in_c.isidentifier() or self.shape.strides[3] == 1 else f"({in_c})", self.shape.strides[3]
        )

    def _weight_offset(self, d: VectorDialect, first: int, vectors: int) -> str:
        size = self.taps_size + self.head
        return total(product("c", size * d.lanes) if vectors > 1 else "0", str(first * size))

    def _slide(self, text: CText, b: Columns, y: str) -> None:
        """A block of neighbouring outputs, `b.repeat` times."""
        _, _, w, _ = self.shape.strides
        pairs = self._pairs(b)
        left = min((col for _, col, _ in pairs), default=0)
        with text.loop("k", str(b.repeat), needed=b.repeat > 1):
            along = b.pixels // self.cols.out_step * self.cols.in_step * w
            move = product("k", along) if b.repeat > 1 else "0"
            ox = total(product("k", b.pixels) if b.repeat > 1 else "0", str(b.out))
            for d, first, vectors in self.channel_loops():
                with (
                    text.loop("c", str(vectors), needed=vectors > 1),
                    text.block() if vectors == 1 else nullcontext(),
                ):
                    channel = self._channel(d, first, vectors)
                    if self.weights is not None and (pairs or self.bias is not None):
                        offset = self._weight_offset(d, first, vectors)
                        text.line(f"const float *w = {total(self._memory, offset)};")
                    self._start(text, d, b.pixels, shared=True)
                    if pairs:
                        at = total("row", move, product(str(left), w), self._input_channel(channel))
                        text.line(f"const float *a = {at};")
                        self._slide_rows(text, d, pairs, left)
                    for p in range(b.pixels if self.reduction.mean else 0):
                        self._divide(text, d, f"acc{p}", self.area(b.out + p))
                    pixels = [(y, total(ox, str(p))) for p in range(b.pixels)]
                    names = [[f"acc{p}"] for p in range(b.pixels)]
                    Accumulators(d, names, pixels, self.n, channel, d.used).store(
                        text, self.tail, self.vector_tail
                    )

    @property
    def _memory(self) -> str:
        """Where the weights are read."""
        return GIVEN if self.as_given else "weights"

    @contextmanager
    def _each_tap_plane(
        self, text: CText, d: VectorDialect, inputs: list[str], weights: list[str]
    ) -> Iterator[None]:
        """A loop over the planes of a window, for pointers to its first element and tap; of a 2-D operator
        what is in it.
        """
        if self.planes is None or self.shape.depth is None:
            yield
            return
        axis, down = self._planes(self.planes), self.planes.tap_step * self.shape.depth.x_stride
        steps = [(name, product("kz", down)) for name in inputs]
        tap = total(axis.tap, "kz")
        size = self.plane_size * d.lanes
        steps += [(name, product(f"({tap})" if " " in tap else tap, size)) for name in weights]
        for name, _ in steps:
            text.line(f"const float *const all_{name} = {name};")
        with text.loop("kz", axis.taps):
            for name, step in steps:
                text.line(f"{name} = {total(f'all_{name}', step)};")
            yield

    def _slide_rows(
        self, text: CText, d: VectorDialect, pairs: list[tuple[int, int, int]], left: int
    ) -> None:
        """All rows of taps."""
        if self.weights is not None:
            skip = total(product(self._rows.tap, self.cols.taps * d.lanes), str(self.head * d.lanes))
            if skip != "0":
                text.line(f"w += {skip};")
        pointers = ["w"] if self.weights is not None else []
        with self._each_tap_plane(text, d, ["a"], pointers):
            taps, written = self._rows.taps, self._written
            if not written:
                self._loop_over_rows(text, d, pairs, left)
            elif taps.isdigit():
                for ky in range(written):
                    with text.block():
                        self._slide_row(text, d, pairs, left, ky)
            else:
                with text.block(f"if ({taps} == {written})"):
                    for ky in range(written):
                        with text.block():
                            self._slide_row(text, d, pairs, left, ky)
                with text.block("else"):
                    self._loop_over_rows(text, d, pairs, left)

    @cached_property
    def _written(self) -> int:
        """Rows of taps that are written out: those of most windows, if they are several and products few."""
        rows = max(self.rows.segments, key=lambda g: g.count).taps
        blocks = [self._pairs(b) for b in self.column_blocks() or ()]
        few = rows * sum(map(len, blocks)) <= self.dialect.written and all(map(self._held, blocks))
        return rows if rows > 1 and few and self.reduction is MAC else 0

    def _pairs(self, b: Columns) -> list[tuple[int, int, int]]:
        """(tap, column, output) of the products of a row of taps."""
        taps = [(p, self.taps(b.out + p)) for p in range(b.pixels)]
        return [(k, col, p) for p, found in taps for k, col in found]

    def _held(self, pairs: list[tuple[int, int, int]]) -> bool:
        """Whether registers hold all that a row of taps reads, and the sums."""
        needed = sum(len(set(numbers)) for numbers in zip(*pairs, strict=True))
        return needed <= self.dialect.registers - _SPARE

    def _loop_over_rows(
        self, text: CText, d: VectorDialect, pairs: list[tuple[int, int, int]], left: int
    ) -> None:
        with text.loop("ky", self._rows.taps, needed=self._rows.taps != "1"):
            if d.lanes == 1 and self._rows.taps != "1" and self.reduction is not MAXIMUM:
                text.line(IN_ORDER)
            self._slide_row(text, d, pairs, left)
            if self._rows.taps != "1":
                if self.weights is not None:
                    text.line(f"w += {self.cols.taps * d.lanes};")
                text.line(f"a += {self.rows.tap_step * self.shape.strides[1]};")

    def _slide_row(
        self, text: CText, d: VectorDialect, pairs: list[tuple[int, int, int]], left: int, ky: int = 0
    ) -> None:
        """One row of taps: every input column once, to all outputs that it belongs to."""
        _, h, w, _ = self.shape.strides
        down, taps = ky * self.rows.tap_step * h, ky * self.cols.taps
        # hold the fewer: the taps while columns stream past, or the columns of a window while taps do;
        # backwards if rows follow, so that pointers advance right after the load at the pointer itself (see
        # conv.py)
        by_column = len({p for _, _, p in pairs}) >= len({k for k, _, _ in pairs})
        loaded: set[str] = set()
        order = sorted(
            pairs, key=lambda t: (t[1], t[0]) if by_column else (t[0], t[1]), reverse=self._rows.taps != "1"
        )
        # where loads overlap they come first, but for a single row, whose products wait for less
        if self._rows.taps != "1" and self.reduction is MAC and d.overlaps_loads and self._held(pairs):
            every, columns = sorted({k for k, _, _ in pairs}), sorted({col for _, col, _ in pairs})
            for k in every:
                text.line(f"const {d.ctype} w{k} = {d.load_early('w', taps + k)};")
            for col in columns:
                text.line(f"const {d.ctype} e{col - left} = {d.load_early('a', down + (col - left) * w)};")
            loaded = {f"w{k}" for k in every} | {f"e{col - left}" for col in columns}
        for k, col, p in order:
            weight, element = f"w{k}", f"e{col - left}"
            if self.weights is not None and weight not in loaded:
                text.line(f"const {d.ctype} {weight} = {d.load_packed('w', (taps + k) * d.lanes)};")
            if element not in loaded:
                kind, value = self._element(d, "a", down + (col - left) * w)
                text.line(f"const {kind} {element} = {value};")
            loaded |= {weight, element}
            text.line(self._step(d, f"acc{p}", element, weight))

    @property
    def n(self) -> str:
        return number_of(self.shape)

    def _divide(self, text: CText, d: VectorDialect, acc: str, area: int | str) -> None:
        """Divide an average by its number of elements: a constant, or different at the borders."""
        areas = [self._rows.area, str(area)]
        if self.planes:
            areas.insert(0, self._planes(self.planes).area)
        if all(a.isdigit() for a in areas):
            scale = float_literal(1.0 / math.prod(map(int, areas)), DType.FLOAT32)
        else:
            scale = f"(1.0f / (float)({' * '.join(areas)}))"
        text.line(f"{acc} = {d.mul(acc, d.splat(scale))};")

    def _gather(self, text: CText, y: str) -> None:
        """Output by output, tap by tap, a few vectors of channels at a time."""
        _, _, w, _ = self.shape.strides
        cols = self._cols
        repeated = cols.repeated
        with (
            text.loop("s", str(cols.number), needed=cols.number > 1),
            text.loop("k", self._cols.count, needed=repeated),
        ):
            x = total(self._cols.out, product("k", self.cols.out_step)) if repeated else self._cols.out
            move = total(
                product(self._cols.first, w), product("k", self.cols.in_step * w) if repeated else "0"
            )
            if not x.isdigit():
                text.line(f"const int32_t ox = {x};")
                x = "ox"
            for d, first, vectors in self.channel_loops():
                at_once = _GATHERED if self.multiplier == 1 else 1
                for begin, count, width in (
                    (0, vectors // at_once, at_once),
                    (vectors - vectors % at_once, 1, vectors % at_once),
                ):
                    if count and width:
                        self._gather_channels(text, d, first + begin * d.lanes, count, width, y, x, move)

    def _gather_channels(
        self, text: CText, d: VectorDialect, first: int, count: int, width: int, y: str, x: str, move: str
    ) -> None:
        """`count` times `width` vectors of channels of one output."""
        size = (self.taps_size + self.head) * d.lanes
        with text.loop("c", str(count), needed=count > 1), text.block() if count == 1 else nullcontext():
            channel = total(product("c", width * d.lanes) if count > 1 else "0", str(first))
            text.line(f"const float *a = {total('row', move, self._input_channel(channel))};")
            if self.weights is not None:
                offset = total(product("c", width * size) if count > 1 else "0", str(first // d.lanes * size))
                for v in range(width):
                    text.line(f"const float *w{v} = {total(self._memory, offset, str(v * size))};")
            self._start(text, d, width, shared=False)
            if self.weights is not None:
                tap = total(product(self._rows.tap, self.cols.taps), self._cols.tap)
                skip = total(product(tap if tap.isdigit() else f"({tap})", d.lanes), str(self.head * d.lanes))
                if skip != "0":
                    for v in range(width):
                        text.line(f"w{v} += {skip};")
            pointers = [f"w{v}" for v in range(width)] if self.weights is not None else []
            with self._each_tap_plane(text, d, ["a"], pointers):
                self._gather_rows(text, d, width)
            for v in range(width if self.reduction.mean else 0):
                self._divide(text, d, f"acc{v}", self._cols.area)
            names = [[f"acc{v}" for v in range(width)]]
            Accumulators(d, names, [(y, x)], self.n, channel, d.used).store(text, self.tail, self.vector_tail)

    def _gather_rows(self, text: CText, d: VectorDialect, width: int) -> None:
        """All rows of taps, tap by tap."""
        _, h, w, c = self.shape.strides
        with text.loop("ky", self._rows.taps):
            with text.loop("kx", self._cols.taps):
                for v in range(width):
                    kind, element = self._element(d, "a", v * d.lanes * c)
                    text.line(f"const {kind} e{v} = {element};")
                    weight = ""
                    if self.weights is not None:
                        weight = f"t{v}"
                        text.line(f"const {d.ctype} {weight} = {d.load_packed(f'w{v}', 0)};")
                        text.line(f"w{v} += {d.lanes};")
                    text.line(self._step(d, f"acc{v}", f"e{v}", weight))
                text.line(f"a += {self.cols.tap_step * w};")
            text.line(f"a += {self.rows.tap_step * h} - {product(self._cols.taps, self.cols.tap_step * w)};")
            if self.weights is not None and self._cols.taps != str(self.cols.taps):
                for v in range(width):
                    text.line(
                        f"w{v} += ({self.cols.taps} - "
                        f"{self._cols.taps}){'' if d.lanes == 1 else f' * {d.lanes}'};"
                    )
