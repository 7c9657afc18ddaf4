"""The register block: which one to take for a shape.

A block holds `pixels` x `vectors` accumulators. Every step of its inner loop reads one input element of each
pixel and one vector of weights of each channel vector, and does pixels * vectors FMAs (the outer-product form
of GEMM: Goto and van de Geijn, "Anatomy of High-Performance Matrix Multiplication", 2008).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from aot_model.kernels.float32.dialect import VectorDialect

_LIMIT = 16
"""Most vectors of a block of several pixels: beyond it the text grows and nothing is gained."""


@dataclass(frozen=True)
class Block:
    """pixels x vectors accumulators."""

    pixels: int
    vectors: int

    @property
    def accumulators(self) -> int:
        return self.pixels * self.vectors

    def fits(self, dialect: VectorDialect) -> bool:
        """Accumulators, the operands held during a step and the one that streams fit in the registers."""
        if dialect.scalar_in_vector:
            operands = min(self.pixels, self.vectors) + 1
        else:
            operands = min(self.vectors, 2) if self.vectors >= self.pixels else self.vectors
        return self.accumulators + operands <= dialect.registers


@dataclass(frozen=True)
class Work:
    """What is to be done: rectangles of (pixels, taps along y, steps of one tap row) and how many there are
    of each, for `channels` outputs."""

    rectangles: Mapping[tuple[int, int, int], int]
    channels: int
    weights: int
    """Elements of all weights."""


def channel_vectors(channels: int, lanes: int, vectors: int) -> list[tuple[int, int]]:
    """(vectors of a channel block, how many are so): full blocks, then the rest in one narrower block."""
    full, rest = divmod(ceil(channels / lanes), vectors)
    return [(full, count) for full, count in ((vectors, full), (rest, 1)) if full and count]


def cost(work: Work, block: Block, dialect: VectorDialect, unroll: int) -> float:
    """Estimated cycles of all the work with this block."""
    costs = dialect.costs
    far = costs.near is not None and 4 * work.weights > costs.near
    cycles = 0.0
    for vectors, alike in channel_vectors(work.channels, dialect.lanes, block.vectors):
        step = costs.step(block.pixels, vectors, unroll, 4 * dialect.lanes * vectors if far else 0)
        for (pixels, rows, steps), number in work.rectangles.items():
            blocks = alike * number * ceil(pixels / block.pixels)
            finish = block.pixels * (costs.pixel + 4 * vectors)
            cycles += blocks * (rows * (steps * step + costs.call + block.pixels) + finish)
    return cycles


def choose(work: Work, dialect: VectorDialect, unroll: int) -> Block:
    """The cheapest block that fits in the registers; of equals the smallest."""
    most = max((pixels for pixels, _, _ in work.rectangles), default=1)
    every = ceil(work.channels / dialect.lanes)
    blocks = [
        Block(p, v)
        for p in range(1, min(dialect.costs.pixels, most) + 1)
        for v in range(1, min(every, _LIMIT if p > 1 else dialect.registers) + 1)
    ]
    fitting = [b for b in blocks if b.fits(dialect)]
    return min(fitting, key=lambda b: (cost(work, b, dialect, unroll), b.accumulators))
