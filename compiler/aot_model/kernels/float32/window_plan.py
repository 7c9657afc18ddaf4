"""What a kernel over windows does, before it is written: blocks of neighbouring outputs, packed weights, the
order of reads and writes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

import numpy as np

from aot_model.kernels.base import ConvShape, Tail
from aot_model.kernels.float32.axis import Axis
from aot_model.kernels.float32.dialect import VectorDialect
from aot_model.kernels.float32.dialects import SCALAR
from aot_model.kernels.overlap import MANY_COLUMNS, MANY_OUTPUTS, slack

_UNROLLED = 64
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
    """One operator over windows. weights: [out_c, kernel_h, kernel_w] for a depthwise convolution."""

    shape: ConvShape
    rows: Axis
    cols: Axis
    reduction: Reduction
    tail: Tail
    dialect: VectorDialect
    vector_tail: bool
    weights: np.ndarray | None = None
    bias: np.ndarray | None = None

    @property
    def multiplier(self) -> int:
        """Output channels per input channel."""
        return self.shape.out_c // self.shape.in_c

    # ---- channels

    def channel_loops(self) -> list[tuple[VectorDialect, int, int]]:
        """(dialect, first output channel, number of vectors): whole vectors, then the rest one by one."""
        s, d = self.shape, self.dialect
        vectors = s.out_c // d.lanes
        if d.lanes > 1 and ((self.multiplier > 1 and self.multiplier % d.lanes) or s.strides[3] != 1):
            vectors = 0
        loops = [(d, 0, vectors)] if vectors else []
        done = vectors * d.lanes
        return loops + ([(SCALAR, done, s.out_c - done)] if done < s.out_c else [])

    @property
    def head(self) -> int:
        """Vectors before the taps of a channel vector: the bias."""
        return int(self.bias is not None)

    def pack(self) -> np.ndarray:
        """[vector of channels][bias][tap row][tap column][channel of the vector]."""
        assert self.weights is not None
        w = np.asarray(self.weights, np.float32).reshape(self.shape.out_c, -1)
        if self.bias is not None:
            w = np.concatenate([np.asarray(self.bias, np.float32).reshape(-1, 1), w], axis=1)
        parts = [
            w[first : first + vectors * d.lanes].reshape(vectors, d.lanes, -1).transpose(0, 2, 1).ravel()
            for d, first, vectors in self.channel_loops()
        ]
        return np.concatenate(parts)

    # ---- columns

    def taps(self, out: int) -> list[tuple[int, int]]:
        """(tap, input column) of an output column, without those in the padding."""
        for g in self.cols.segments:
            if g.out <= out < g.out + g.count:
                first = g.first + (out - g.out) * self.cols.in_step
                return [(g.tap + i, first + i * self.cols.tap_step) for i in range(g.taps)]
        raise ValueError(f"no output column {out}")

    def area(self, out: int) -> int:
        """Elements that an average of an output column counts in a row."""
        return next(g.area for g in self.cols.segments if g.out <= out < g.out + g.count)

    def _row_cost(self, out: int, pixels: int) -> int:
        """Instructions of one tap row of a block: loads of taps and columns, FMAs."""
        pairs = [t for p in range(pixels) for t in self.taps(out + p)]
        weights = len({k for k, _ in pairs}) if self.weights is not None else 0
        return weights + len({c for _, c in pairs}) + len(pairs)

    def column_blocks(self) -> list[Columns] | None:
        """The blocks of a row with the fewest instructions, or None where windows are too wide to be
        unrolled.

        Nor is a wide window unrolled that is alone in its row: nothing would be shared.
        """
        width, kernel = self.shape.out_w, self.cols.taps
        registers = self.dialect.registers - 1
        most = min(_WIDEST, _UNROLLED // kernel, max(registers - kernel, registers // 2))
        alone = width == 1 and self.weights is not None and kernel > self.dialect.registers * 3 // 4
        if alone:
            return None
        inner = max(self.cols.segments, key=lambda g: g.count)
        # the first and last output that may be part of a repeated block
        begin, end = (inner.out, inner.out + inner.count)
        best: tuple[float, list[Columns]] | None = None
        for pixels in range(1, most + 1):
            for left in range(begin, min(begin + pixels, width + 1)):
                repeat = max(0, (end - left) // pixels)
                right = left + repeat * pixels
                blocks = [
                    *self._single(0, left, most),
                    *([Columns(left, pixels, repeat)] if repeat else []),
                    *self._single(right, width, most),
                ]
                time = sum(b.repeat * (self._row_cost(b.out, b.pixels) + 6) for b in blocks)
                size = sum(self._row_cost(b.out, b.pixels) + 8 * b.pixels + 10 for b in blocks)
                if size <= 6 * _UNROLLED and (best is None or time + size / 8 < best[0]):
                    best = (time + size / 8, blocks)
        return best[1] if best else None

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
        pieces = [(b.out + i * b.pixels, b.pixels)
                  for b in blocks or [Columns(0, 1, s.out_w)]
                  for i in range(b.repeat)]
        columns = [
            min((col for p in range(n) for _, col in self.taps(out + p)), default=-1) for out, n in pieces
        ]
        lefts = np.array([col * w if col >= 0 else size for col in columns])
        rights = np.array([(out + n) * s.out_c for out, n in pieces])
        reads, ends = [], []
        for n in range(s.batch):
            for g in self.rows.segments:
                for i in range(g.count):
                    top = n * n_stride + (g.first + i * self.rows.in_step) * h
                    reads.append(np.minimum(lefts + top, size) if g.taps else np.full_like(lefts, size))
                    ends.append((n * s.out_h + g.out + i) * s.out_w * s.out_c + rights)
        vectors = sum(count for _, _, count in self.channel_loops())
        return slack(np.concatenate(reads), np.concatenate(ends), reread=vectors > 1, size=size, element=4)
