"""What a kernel over windows does, before it is written: blocks of neighbouring outputs, packed weights, the
order of reads and writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

import numpy as np

from aot_model.kernels.base import ConvShape, KernelCode, Tail
from aot_model.kernels.float32.axis import Axis, Segment
from aot_model.kernels.float32.dialect import VectorDialect
from aot_model.kernels.float32.dialects import SCALAR
from aot_model.kernels.float32.repack import Weights, repacked
from aot_model.kernels.overlap import MANY_COLUMNS, MANY_OUTPUTS, slack

UNROLLED = 64
"""Most FMAs of one tap row of a block."""
_WIDEST = 8
"""Most outputs of a block."""


@dataclass(frozen=True)
class Reduction:
    """What a window does with its elements. The format strings are methods of VectorDialect by name."""

    step: str
    """fma (with a weight for each tap), maximum or add."""
    start: str = "0.0f"
    mean: bool = False
    """Divide by the number of elements."""


MAC = Reduction("fma")
MAXIMUM = Reduction("maximum", start="-INFINITY")
MEAN = Reduction("add", mean=True)


@dataclass(frozen=True)
class Columns:
    """`repeat` successive blocks of `pixels` outputs each, the first at output `out`."""

    out: int
    pixels: int
    repeat: int


@dataclass(frozen=True)
class WindowPlan:
    """One operator over windows. weights: of a depthwise convolution."""

    shape: ConvShape
    planes: Axis | None
    """The axis before the rows, of a 3-D operator."""
    rows: Axis
    cols: Axis
    reduction: Reduction
    tail: Tail
    dialect: VectorDialect
    vector_tail: bool
    weights: Weights | None = None

    @property
    def bias(self) -> np.ndarray | None:
        return self.weights.bias if self.weights else None

    @property
    def multiplier(self) -> int:
        """Output channels per input channel."""
        return self.shape.out_c // self.shape.in_c

    # ---- channels

    def channel_loops(self) -> list[tuple[VectorDialect, int, int]]:
        """(dialect, first output channel, number of vectors): whole vectors, then the rest, in one of which
        some lanes are stored or one by one; all one by one where what they read does not lie side by side.
        """
        s, d = self.shape, self.dialect
        vectors, rest = divmod(s.out_c, d.lanes)
        apart = s.in_c > 1 and (s.strides[3] != 1 or (self.multiplier > 1 and self.multiplier % d.lanes))
        if d.lanes > 1 and apart:
            vectors, rest = 0, s.out_c
        loops = [(d, 0, vectors)] if vectors else []
        done = vectors * d.lanes
        if 1 < rest < d.lanes and d.loads_some and self.vector_tail and not apart:
            return [*loops, (d.some(rest), done, 1)]
        return loops + ([(SCALAR, done, s.out_c - done)] if done < s.out_c else [])

    @property
    def head(self) -> int:
        """Vectors before the taps of a channel vector: the bias."""
        return int(self.bias is not None)

    @property
    def plane_size(self) -> int:
        """Weights of a channel in one plane."""
        return self.rows.taps * self.cols.taps

    @property
    def taps_size(self) -> int:
        """Weights of a channel."""
        return self.plane_size * (self.planes.taps if self.planes else 1)

    def _in_order(self, weights: np.ndarray) -> np.ndarray:
        """[channel, tap], in the order in which they are read, of [channel, (planes,) rows, columns, 1]."""
        w = weights[..., 0][..., list(self.rows.order), :][..., list(self.cols.order)]
        w = w[:, list(self.planes.order)] if self.planes else w
        return np.ascontiguousarray(w).reshape(len(w), self.taps_size)

    @property
    def as_given(self) -> bool:
        """Whether weights that are an input are read where they lie."""
        if self.weights is None or not self.weights.given or self.head:
            return False
        alone = all(d.lanes == 1 for d, _, _ in self.channel_loops())
        return alone and np.array_equal(
            self.weights.given_order(self._in_order), np.arange(self.weights.of_channel)
        )

    def pack(self) -> np.ndarray:
        """[vector of channels][bias][tap plane][tap row][tap column][channel of the vector]; empty where the
        weights are an input.
        """
        assert self.weights is not None
        if self.weights.given:
            return np.zeros(0, np.float32)
        w = self._in_order(np.asarray(self.weights.values, np.float32))
        if self.bias is not None:
            w = np.concatenate([np.asarray(self.bias, np.float32).reshape(-1, 1), w], axis=1)
        parts = []
        for d, first, vectors in self.channel_loops():
            of_these = np.zeros((vectors * d.lanes, w.shape[1]), np.float32)
            given = w[first : first + len(of_these)]
            of_these[: len(given)] = given
            parts.append(of_these.reshape(vectors, d.lanes, -1).transpose(0, 2, 1).ravel())
        return np.concatenate(parts)

    def packed_by(self, code: KernelCode) -> KernelCode:
        """Code that packs its weights itself where they are an input."""
        if self.weights is None or not self.weights.given or self.as_given:
            return code
        blocks = [(first, vectors, d.lanes) for d, first, vectors in self.channel_loops()]
        return repacked(
            code,
            self.weights,
            blocks,
            1,
            1,
            self.shape.out_c,
            self.weights.given_order(self._in_order),
            self.head,
        )

    # ---- columns

    def taps(self, out: int) -> list[tuple[int, int]]:
        """(tap, input column) of an output column, without those in the padding."""
        g, first = self._reached(out)
        return [(g.tap + i, first + i * self.cols.tap_step) for i in range(g.taps)]

    def _reached(self, out: int) -> tuple[Segment, int]:
        """The segment of an output column, and the input column of its first tap."""
        for g in self.cols.segments:
            turn, between = divmod(out - g.out, self.cols.out_step)
            if 0 <= turn < g.count and not between:
                return g, g.first + turn * self.cols.in_step
        raise ValueError(f"no output column {out}")

    def _lowest(self, out: int, size: int) -> int:
        """The lowest input column that an output column reads; `size` where it reads none."""
        g, first = self._reached(out)
        return first + min((g.taps - 1) * self.cols.tap_step, 0) if g.taps else size

    def area(self, out: int) -> int:
        """Elements that an average of an output column counts in a row."""
        return next(g.area for g in self.cols.segments if g.out <= out < g.out + g.count)

    def _row_cost(self, out: int, pixels: int) -> int:
        """Instructions of one tap row of a block: loads of taps and columns, FMAs."""
        pairs = [t for p in range(pixels) for t in self.taps(out + p)]
        weights = len({k for k, _ in pairs}) if self.weights is not None else 0
        return weights + len({c for _, c in pairs}) + len(pairs)

    def loads_for_each(self, b: Columns) -> float:
        """Loads for each product of a row of taps."""
        products = sum(len(self.taps(b.out + p)) for p in range(b.pixels))
        return self._row_cost(b.out, b.pixels) / max(products, 1) - 1

    def column_blocks(self) -> list[Columns] | None:
        """The blocks of a row with the fewest instructions, or None where windows are too wide to be
        unrolled.

        Nor is a wide window unrolled that is alone in its row: nothing would be shared.
        """
        width, kernel, step = self.shape.out_w, self.cols.taps, self.cols.out_step
        registers = self.dialect.registers - 1
        of_one = max(1, *(g.taps for g in self.cols.segments)) if step > 1 else kernel
        most = min(_WIDEST, UNROLLED // of_one, max(registers - kernel, registers // 2))
        if step > most:
            return None
        alone = width == 1 and self.weights is not None and kernel > self.dialect.registers * 3 // 4
        if alone:
            return None
        begin, end = self._inner()
        best: tuple[float, list[Columns]] | None = None
        for pixels in range(1, most + 1):
            for left in range(begin, min(begin + pixels, width + 1)):
                repeat = max(0, (end - left) // pixels) if pixels % step == 0 else 0
                right = left + repeat * pixels
                blocks = [
                    *self._single(0, left, most),
                    *([Columns(left, pixels, repeat)] if repeat else []),
                    *self._single(right, width, most),
                ]
                time = sum(b.repeat * (self._row_cost(b.out, b.pixels) + 6) for b in blocks)
                size = sum(self._row_cost(b.out, b.pixels) + 8 * b.pixels + 10 for b in blocks)
                if size <= 6 * UNROLLED and (best is None or time + size / 8 < best[0]):
                    best = (time + size / 8, blocks)
        return best[1] if best else None

    def _inner(self) -> tuple[int, int]:
        """The first output that may be part of a repeated block and the one behind the last: each has the
        taps of the one `out_step` before it.
        """
        step, begin, end = self.cols.out_step, 0, self.shape.out_w
        for phase in range(step):
            found = [g for g in self.cols.segments if g.out % step == phase]
            if any(g.taps for g in found):
                g = max(found, key=lambda g: g.count if g.taps else 0)
                begin = max(begin, g.out - step + 1)
                end = min(end, g.out + g.count * step)
        return begin, max(begin, end)

    @staticmethod
    def _single(begin: int, end: int, most: int) -> Iterator[Columns]:
        """Blocks of at most `most` outputs that cover begin .. end evenly."""
        parts = ceil((end - begin) / most)
        for i in range(parts):
            a, b = (begin + (end - begin) * j // parts for j in (i, i + 1))
            yield Columns(a, b - a, 1)

    # ---- order

    def slack(self, blocks: list[Columns] | None) -> int | None:
        """See overlap.py; the result is dense channels last."""
        s = self.shape
        n_stride, h, w, _ = s.strides
        size = 1 + sum((e - 1) * t for e, t in zip((s.batch, s.in_h, s.in_w, s.in_c), s.strides, strict=True))
        if s.batch * s.out_h * s.out_w > MANY_OUTPUTS or s.out_w > MANY_COLUMNS:
            return None
        if s.depth:
            if s.depth.out > 1 or s.depth.pad:
                return None
            size += (s.depth.size - 1) * s.depth.x_stride  # each output begins in the first plane
        pieces = [(b.out + i * b.pixels, b.pixels) for b in blocks or () for i in range(b.repeat)]
        if not blocks:
            pieces = [(g.out + i * self.cols.out_step, 1) for g in self.cols.segments for i in range(g.count)]
        columns = [min(self._lowest(out + p, s.in_w) for p in range(n)) for out, n in pieces]
        lefts = np.array([col * w if col < s.in_w else size for col in columns])
        rights = np.array([(out + n) * s.out_c for out, n in pieces])
        images, reads, ends = np.arange(s.batch)[:, None, None], [], []
        for g in self.rows.segments:
            i = np.arange(g.count)[:, None]
            top = images * n_stride + (g.first + i * self.rows.in_step) * h
            reads.append(np.minimum(lefts + top if g.taps else size, np.full_like(lefts + top, size)))
            row = images * s.out_h + g.out + i * self.rows.out_step
            ends.append(row * s.out_w * s.out_c + rights)
        read, end = (np.concatenate(every, axis=1).ravel() for every in (reads, ends))
        vectors = sum(count for _, _, count in self.channel_loops())
        return slack(read, end, reread=vectors > 1, size=size, element=4)
