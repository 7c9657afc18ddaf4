"""Winograd's convolution: which layers it computes exactly, and what there is between cycles and memory.

A tile of 4x4 outputs is made of 6x6 inputs: 36 products for each pair of channels and not 144. With every
row of the filter's transform scaled to whole numbers, transformed weights are at most 49 * 128 and
inputs, less their zero point, at most 100 * 255: both int16, so that SMLAD takes pairs of channels. Sums
may wrap. What comes out of the last transform is y * 9 * 2^n modulo 2^32, n <= 6; multiplied with the
inverse of 9 and shifted right it is y, as long as |y| < 2^25, which is proven for each layer from its
weights (`fits`).

Weights are transformed when they are used, from int8, so that constants do not grow: once for each block
of tiles. More tiles in a block are more scratch memory and fewer transforms; where there is little room,
the filters of some channels are transformed at a time, and their products added up in memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import product

import numpy as np

from aot_model.kernels.base import ConvShape
from aot_model.kernels.int8.spec import QuantSpec, Weights
from aot_model.kernels.overlap import slack, span

TILE = 4
POSITIONS = 36
SUMS = 8
"""Words that a position gives: [two][four]."""
LIMIT = 1 << 25
"""Of the sums, so that y * 2^6 is an int32."""
LEAST_SAVING = 100_000
"""Estimated cycles of a layer that are worth the code, some kilobytes once and half of one for each depth."""
FILTER, INPUT, OUTPUT = 200, 750, 525
"""Estimated cycles of the transforms: of two channels of a filter, of two channels of a tile, of an output's
tile.
"""
LARGEST = 1 << 22
"""Outputs beyond which the order of reads and writes is not followed."""


@dataclass(frozen=True)
class Variant:
    """Tiles that are transformed together, and how their products are made."""

    tiles: int
    """Transformed at a time, all their channels: a multiple of `together`."""
    together: int
    """Tiles of one product: 4 by 2 output channels, or 2 by 4."""
    pairs: int = field(repr=False)
    """Of channels, with those that are filled up; what is recorded of a choice says `unroll` and `in_parts`.
    """
    unroll: int
    """Pairs of a turn of the product."""
    in_parts: bool
    """Transformed weights of one turn are there at a time, and its products are added up in memory."""
    scratch: int
    """Bytes."""
    cycles: int
    """Estimated."""

    @property
    def channels(self) -> int:
        return SUMS // self.together

    @property
    def at_once(self) -> int:
        """Pairs whose weights are there at a time."""
        return self.unroll if self.in_parts else self.pairs


def fits(shape: ConvShape, quant: QuantSpec, weights: Weights) -> bool:
    """Whether the layer is one that this kernel computes exactly."""
    s = shape
    dense = (s.kernel_h, s.kernel_w, s.stride_h, s.stride_w, s.dilation_h, s.dilation_w, s.groups)
    low, high = quant.x_range
    if dense != (3, 3, 1, 1, 1, 1, 1) or quant.weight_zero_point or not quant.rounding:
        return False
    if s.out_c < 2 or s.in_c < TILE or s.batch * s.out_h * s.out_w * s.out_c > LARGEST:
        return False
    w = weights.reshape(s.out_c, -1).astype(np.int64)
    ends = w * (low - quant.x_zero_point), w * (high - quant.x_zero_point)
    # taps outside of the image give 0, which lies between the ends
    least, most = np.minimum(*ends).sum(axis=1), np.maximum(*ends).sum(axis=1)
    return bool(-least.min() < LIMIT and most.max() < LIMIT)


def depths(shape: ConvShape) -> list[tuple[int, int, bool]]:
    """(pairs of channels with those that are filled up, pairs of a turn of the product, in parts or not).

    In parts there are none that are filled up: their weights would have to be cleared in each.
    """
    pairs = 2 * -(-shape.in_c // 4)
    if pairs <= 4:
        return [(4, 4, False)]
    whole = [(-(-pairs // 8) * 8, 8, False)]
    return whole + [(pairs, unroll, True) for unroll in (8, 4, 2) if pairs > unroll and pairs % unroll == 0]


def tiles_of(shape: ConvShape) -> tuple[int, int]:
    """Rows and columns of tiles of an image."""
    return -(-shape.out_h // TILE), -(-shape.out_w // TILE)


def plain_cycles(shape: ConvShape) -> float:
    """Of the kernel that multiplies every tap, estimated."""
    return 1.06 * shape.macs + 2.7 * shape.macs / shape.out_c


def variants(shape: ConvShape, tail: bool) -> Iterator[Variant]:
    """All that pay. The costs of the parts were taken from estimated runs on a Cortex-M4."""
    rows, columns = tiles_of(shape)
    tiles = rows * columns
    plain = plain_cycles(shape)
    for together, (pairs, unroll, in_parts) in product((4, 2), depths(shape)):
        channels = SUMS // together
        if shape.out_c < channels:
            continue
        groups = -(-shape.out_c // channels)
        turns = pairs // unroll
        for count in (together << k for k in range(6)):
            if count >= tiles + together or (in_parts and count > together):
                break
            scratch = POSITIONS * (pairs * count + (unroll if in_parts else pairs) * channels + SUMS) * 4
            scratch += count * TILE * TILE * shape.out_c if tail else 0
            blocks = -(-tiles // count)
            one = turns * (16 * unroll + 28) + 9 if in_parts else 16 * pairs + 17 + 7 * (turns > 1) * turns
            products = blocks * (count // together) * groups * POSITIONS * one
            filters = blocks * groups * channels * pairs * FILTER
            ends = tiles * (pairs * INPUT + shape.out_c * OUTPUT)
            cycles = shape.batch * (products + filters + ends)
            if cycles + LEAST_SAVING < plain and 10 * cycles < 9 * plain:
                yield Variant(count, together, pairs, unroll, in_parts, scratch, cycles)


def choose(shape: ConvShape, tail: bool, room: int) -> Variant | None:
    """The fastest variant within `room` bytes of scratch memory; the smaller of two that are as fast."""
    return min((v for v in variants(shape, tail) if v.scratch <= room), key=lambda v: (v.cycles, v.scratch),
               default=None)  # fmt: skip


def reach(shape: ConvShape, count: int) -> int | None:
    """How far the result may lie over the input: `count` tiles, row by row, are read, then written."""
    s = shape
    n, down, across, _ = s.strides
    rows, columns = tiles_of(s)
    reads, ends = [], []
    for image in range(s.batch):
        for first in range(0, rows * columns, count):
            tiles = [divmod(t, columns) for t in range(first, min(first + count, rows * columns))]
            top, left = (np.array([TILE * t[k] for t in tiles]) for k in (0, 1))
            row, column = np.maximum(top - s.pad_top, 0), np.maximum(left - s.pad_left, 0)
            some = (top + 6 > s.pad_top) & (left + 6 > s.pad_left) & (column < s.in_w)
            at = np.where(some, image * n + row * down + column * across, span(s))
            last = np.minimum(top + TILE, s.out_h) - 1, np.minimum(left + TILE, s.out_w)
            end = ((image * s.out_h + last[0]) * s.out_w + last[1]) * s.out_c
            reads.append(int(at.min()))
            ends.append(int(end.max()))
    return slack(np.array(reads), np.array(ends), reread=False, size=span(s))


def smallest(shape: ConvShape, tail: bool) -> Variant | None:
    """The variant that needs the least memory."""
    return min(variants(shape, tail), key=lambda v: (v.scratch, v.cycles), default=None)
