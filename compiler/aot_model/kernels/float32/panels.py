"""Many rows of floats times a matrix quantised by blocks, on processors with wide vectors and caches.

A panel of columns is dequantised into scratch memory once, then multiplied by all rows as any matrix of
floats: the more rows, the less the weights' unpacking costs. The panel is a few vectors wide, so that it
stays in the nearest cache.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aot_model.c.text import CText, total
from aot_model.c.words import counted
from aot_model.ir.admissible import ANYTHING
from aot_model.kernels.base import KernelCode, Packed, Scratch, Tail
from aot_model.kernels.float32.block import Block, Work, choose
from aot_model.kernels.float32.blocks import Blocks, tiles
from aot_model.kernels.float32.dialect import VectorDialect
from aot_model.kernels.float32.matmul import MatmulShape, matmul

_WIDEST = 4
"""Vectors of a panel: of one row more would be taken, and the panel would leave the cache."""


@dataclass(frozen=True)
class _Shifted:
    """The tail of a panel: its first column is `column`."""

    tail: Tail
    column: str

    def store(self, acc: str, index: tuple[str, str, str, str], lanes: int) -> str:
        return self.tail.store(acc, ("0", "0", index[2], total(self.column, index[3])), lanes)


def takes(rows: int, dialect: VectorDialect) -> bool:
    """Whether so many rows are worth a panel: a core without a cache has no memory for it."""
    return not dialect.costs.in_order and (dialect.name in _UNPACK or rows >= 4)


def panel_matmul(rows: int, m: Blocks, tail: Tail, dialect: VectorDialect, vector_tail: bool) -> KernelCode:
    """x (rows, depth) times the matrix."""
    columns, depth = m.q.shape
    block = choose(Work({(rows, 1, depth): 1}, columns, depth * columns), dialect, 1)
    block = Block(block.pixels, min(block.vectors, _WIDEST))
    tile = block.vectors * dialect.lanes
    packed = tiles(m.q, tile)
    if m.bits == 4:
        packed = packed[..., : tile // 2] | packed[..., tile // 2 :] << 4
    constants = [Packed("weights", np.ascontiguousarray(packed).reshape(-1), admissible=ANYTHING)]
    constants += [
        Packed("scales", np.ascontiguousarray(tiles(m.scales.astype(np.float32), tile)).reshape(-1))
    ]
    if m.zero is None:
        constants.append(
            Packed("zeros", np.ascontiguousarray(tiles(m.zeros.astype(np.float32), tile)).reshape(-1))
        )
    whole, rest = columns - columns % tile, columns % tile
    text = CText()
    text.line("const uint8_t *code = weights;")
    text.line("const float *scale = scales;")
    if m.zero is None:
        text.line("const float *zero = zeros;")
    includes, helpers = set[str](), dict[str, None]()
    for first, width, needed in ((0, tile, whole > tile), (whole, rest, False)):
        if not width or (width == tile and not whole):
            continue
        column = "column" if needed else str(first)
        with text.loop("column", str(whole), tile, needed) if needed else text.block():
            if _dequantise(text, m, tile, dialect):
                helpers[_UNPACK[dialect.name]] = None
                includes |= dialect.includes
            shape = MatmulShape((1, 1), rows, width, depth, (0, 0, depth, 1), (0, 0, tile, 1))
            code = matmul(
                shape,
                _Shifted(tail, column),
                dialect,
                b="panel",
                vector_tail=vector_tail and width % dialect.lanes == 0,
                block=block,
            )
            text.line(code.body)
            includes |= code.includes
            helpers |= dict.fromkeys(code.helpers)
    scratch = Scratch("panel", 4 * depth * tile, 4, "float")
    note = (
        f"panels of {counted(tile, 'column')}, {counted(block.pixels, 'row')} at a time; {m.bits} bits "
        f"in blocks of {m.block}"
    )
    return KernelCode(str(text), tuple(constants), (scratch,), frozenset(includes), tuple(helpers), note=note)


_UNPACK = {
    "v8": (
        """\
static inline __m256 panel_codes_v8(const uint8_t *p, int shift, int mask)
{
    const __m256i v = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(const void *)p));
    return _mm256_cvtepi32_ps(_mm256_and_si256(_mm256_srli_epi32(v, shift), _mm256_set1_epi32(mask)));
}
"""
    ),
    "v16": (
        """\
static inline __m512 panel_codes_v16(const uint8_t *p, int shift, int mask)
{
    const __m512i v = _mm512_cvtepu8_epi32(_mm_loadu_si128((const __m128i *)(const void *)p));
    return _mm512_cvtepi32_ps(_mm512_and_si512(_mm512_srli_epi32(v, (unsigned int)shift), _mm512_set1_epi32(mask)));
}
"""  # noqa: E501
    ),
}
"""By dialect: the codes of as many bytes as a vector has lanes, as floats."""


def _dequantise(text: CText, m: Blocks, tile: int, d: VectorDialect) -> bool:
    """The next panel: element k of each of its columns, then element k + 1. Whether a function of _UNPACK is
    called.
    """
    depth, count = m.q.shape[1], m.scales.shape[1]
    packed = tile // 2 if m.bits == 4 else tile
    # (first column, shift) of the codes that a byte holds.
    halves = ((0, 0), (packed, 4)) if m.bits == 4 else ((0, 0),)
    by_vector = d.name in _UNPACK and packed % d.lanes == 0
    length = str(min(m.block, depth))
    if depth % m.block and count > 1:
        length = f"(b == {count - 1} ? {depth % m.block} : {m.block})"
    text.line("float *real = panel;")
    with text.loop("b", str(count), needed=count > 1):
        with text.block(
            f"for (const float *const end = real + {length} * {tile}; real != end; real += {tile})"
        ):
            if by_vector:
                for first, shift in halves:
                    for j in range(0, packed, d.lanes):
                        column = first + j
                        codes = f"panel_codes_{d.name}({total('code', str(j))}, {shift}, {2**m.bits - 1})"
                        zero = d.load_at("zero", column) if m.zero is None else d.splat(f"{m.zero}.0f")
                        value = d.mul(d.sub(codes, zero), d.load_at("scale", column))
                        text.line(d.store(total("real", str(column)), value))
            else:
                for first, shift in halves:
                    code = "code[j]" if m.bits == 8 else "code[j] >> 4" if shift else "code[j] & 15"
                    at = total("j", str(first))
                    zero = f"zero[{at}]" if m.zero is None else f"{m.zero}.0f"
                    with text.loop("j", str(packed)):
                        text.line(f"real[{at}] = ((float)({code}) - {zero}) * scale[{at}];")
            text.line(f"code += {packed};")
        text.line(f"scale += {tile};")
        if m.zero is None:
            text.line(f"zero += {tile};")
    return by_vector
