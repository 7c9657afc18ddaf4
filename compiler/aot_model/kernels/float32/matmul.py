"""Matrix products of two activations in float32: both operands are read where they lie.

A product with a constant is a pointwise convolution (conv.py), whose weights are packed.

Where the columns of B are contiguous, blocks of rows x vectors of columns are built up by outer products.
Where B is transposed, so that k is contiguous in both, each accumulator is a vector of partial sums over k,
added up at the end; where vectors gather, columns that are apart from each other are a vector all the same.
"""

from __future__ import annotations

from contextlib import ExitStack, nullcontext
from dataclasses import dataclass
from math import prod

from aot_model.c.text import CText, product, total
from aot_model.c.words import counted
from aot_model.kernels.base import KernelCode, Tail
from aot_model.kernels.float32.block import Block, Work, choose
from aot_model.kernels.float32.dialect import VectorDialect
from aot_model.kernels.float32.dialects import SCALAR
from aot_model.kernels.float32.store import Accumulators

_FEW = 4
"""Sums of a block whose operands of several steps fit in the registers."""
_UNROLLED = ((1, 8), (_FEW, 4), (12, 2))
"""Up to so many sums so many steps are unrolled."""
_OFFSETS = 255
"""Elements from a pointer that a load of a Cortex-M's FPU reaches."""


@dataclass(frozen=True)
class MatmulShape:
    """y[i, j, m, n] = sum over k of a[i, j, m, k] * b[i, j, k, n]. All sizes and strides in elements.

    A stride of 0 repeats an operand (broadcast batch); exchanged strides are a transposed operand.
    """

    batch: tuple[int, ...]
    """Two axes or more; all but the last are one index of the result, i."""
    m: int
    n: int
    k: int
    a_strides: tuple[int, ...]
    """(of the batch…, m, k)"""
    b_strides: tuple[int, ...]
    """(of the batch…, k, n)"""

    @property
    def macs(self) -> int:
        return prod(self.batch) * self.m * self.n * self.k

    @property
    def variables(self) -> tuple[str, ...]:
        """Of the loops over the batch; 0 where there is none."""
        last = len(self.batch) - 1
        names = ["j" if k == last else f"i{k}" if last > 1 else "i" for k in range(last + 1)]
        return tuple(name if size > 1 else "0" for name, size in zip(names, self.batch, strict=True))


def matmul(
    shape: MatmulShape,
    tail: Tail,
    dialect: VectorDialect,
    *,
    a: str = "x",
    b: str = "b",
    vector_tail: bool = True,
    block: Block | None = None,
) -> KernelCode:
    """Batched product of the activations named `a` and `b`; the tail gets the index (i, j, m, n)."""
    s = shape
    text = CText()
    dots = (
        dialect.lanes > 1
        and s.b_strides[-2] == 1
        and s.a_strides[-1] == 1
        and s.k >= dialect.lanes
        and not _gathered(s, dialect)
    )
    body = (
        _Dots(s, tail, dialect, a, b) if dots else _OuterProducts(s, tail, dialect, a, b, vector_tail, block)
    )
    with ExitStack() as loops:
        for name, size in zip(s.variables, s.batch, strict=True):
            if name == "j" and len(s.batch) > 2:
                body.leading(text)
            loops.enter_context(text.loop(name, str(size), needed=size > 1))
        if s.variables[-1] == "0" and len(s.batch) > 2:
            body.leading(text)
        note = body.emit(text)
    c = str(text)
    places = {"aot_model/lanes_mve.h"} if _gathered(s, dialect) else set()
    return KernelCode(
        body=c,
        includes=dialect.includes | places if dialect.ctype in c else frozenset(),
        helpers=tuple(dict.fromkeys((*dialect.helpers(c), *SCALAR.helpers(c)))),
        note=note,
    )


def _gathered(s: MatmulShape, d: VectorDialect) -> bool:
    """Whether vectors of columns are gathered: each for some rows, or it would take longer than sums of
    partial sums.
    """
    return d.gathers and s.b_strides[-1] != 1 and s.n >= d.lanes and s.m >= _FEW


@dataclass(frozen=True)
class _Product:
    shape: MatmulShape
    tail: Tail
    dialect: VectorDialect
    a: str
    b: str

    def batch(self) -> tuple[str, str]:
        """(i, j) of the result."""
        names = self.shape.variables
        return (names[0] if len(names) == 2 else "i" if prod(self.shape.batch[:-1]) > 1 else "0", names[-1])

    def leading(self, text: CText) -> None:
        """Declare i where it is made of several axes."""
        if self.batch()[0] == "0":
            return
        place = "0"
        for name, size in zip(self.shape.variables[:-1], self.shape.batch, strict=False):
            scaled = product(f"({place})" if " " in place else place, size)
            place = total(scaled, name) if name != "0" else scaled
        text.line(f"const int32_t i = {place};")

    def at(self, name: str, strides: tuple[int, ...], row: str, col: str) -> str:
        """Pointer to an element of an operand, `row` and `col` being offsets."""
        batch = [product(v, t) for v, t in zip(self.shape.variables, strides, strict=False)]
        return total(name, *batch, row, col)


def _parts(size: int, width: int) -> list[tuple[int, int, int]]:
    """(first, number of blocks, extent of each): full blocks, then the rest."""
    full, rest = divmod(size, width)
    return ([(0, full, width)] if full else []) + ([(full * width, 1, rest)] if rest else [])


@dataclass(frozen=True)
class _OuterProducts(_Product):
    vector_tail: bool
    block: Block | None
    """Instead of the one that would be chosen."""

    def emit(self, text: CText) -> str:
        s, d, block = self.shape, self.dialect, self.block
        if _gathered(s, d):
            text.line(d.places(s.b_strides[-1]))
            block = Block(next((p for p in (6, 5) if s.m % p == 0), 4), 1)
        elif s.b_strides[-1] != 1 and d.lanes > 1:
            d = SCALAR
        vectors = s.n // d.lanes
        b = block or choose(Work({(s.m, 1, s.k): 1}, max(1, vectors) * d.lanes, s.k * s.n), d, 1)
        columns = [(d, first * d.lanes, count, width) for first, count, width in _parts(vectors, b.vectors)]
        done = vectors * d.lanes
        columns += [(SCALAR, done + first, count, width) for first, count, width in _parts(s.n - done, 4)]
        for first, count, pixels in _parts(s.m, b.pixels):
            with text.loop("mb", str(count), needed=count > 1):
                row = total(product("mb", pixels) if count > 1 else "0", str(first))
                for dialect, column, blocks, width in columns:
                    with (
                        text.loop("nb", str(blocks), needed=blocks > 1),
                        text.block() if blocks == 1 else nullcontext(),
                    ):
                        col = total(product("nb", width * dialect.lanes) if blocks > 1 else "0", str(column))
                        self._block(text, dialect, pixels, width, row, col)
        return f"{counted(b.pixels, 'row')} x {counted(b.vectors * d.lanes, 'column')} in registers"

    def _block(self, text: CText, d: VectorDialect, pixels: int, vectors: int, row: str, col: str) -> None:
        s = self.shape
        m_stride, k_stride = s.a_strides[-2:]
        m, n = _named(text, "m", row), _named(text, "n", col)
        for p in range(pixels):
            text.line(f"const float *a{p} = {self.at(self.a, s.a_strides, _scaled(m, p, m_stride), '0')};")
        text.line(f"const float *w = {self.at(self.b, s.b_strides, '0', product(n, s.b_strides[-1]))};")
        for p in range(pixels):
            for v in range(vectors):
                text.line(f"{d.ctype} acc{p}_{v} = {d.splat('0.0f')};")
        steps = self._steps(d, pixels * vectors)
        whole = s.k - s.k % steps
        with text.loop("k", str(whole), steps, needed=s.k > steps):
            self._unrolled(text, d, pixels, vectors, range(steps))
            for p in range(pixels):
                text.line(f"a{p} += {steps * k_stride};")
            text.line(f"w += {steps * s.b_strides[-2]};")
        self._unrolled(text, d, pixels, vectors, range(s.k - whole))
        i, j = self.batch()
        names = [[f"acc{p}_{v}" for v in range(vectors)] for p in range(pixels)]
        at = [(j, total(m, str(p))) for p in range(pixels)]
        Accumulators(d, names, at, i, n).store(text, self.tail, self.vector_tail)

    def _steps(self, d: VectorDialect, sums: int) -> int:
        """Steps in the body of the loop over k: several where a core issues one instruction after another and
        a step has little to do, as far as offsets are part of a load.
        """
        s = self.shape
        if not d.costs.in_order or d.lanes > 1:
            return 1
        wanted = next((steps for most, steps in _UNROLLED if sums <= most), 1)
        farthest = max(s.a_strides[-1], s.b_strides[-2], 1)
        return max(1, min(wanted, s.k, _OFFSETS // farthest))

    def _unrolled(self, text: CText, d: VectorDialect, pixels: int, vectors: int, steps: range) -> None:
        """Some steps; of few sums all loads come first, one behind the other, where they overlap."""
        if d.lanes > 1 or pixels * vectors > _FEW:
            for u in steps:
                self._step(text, d, pixels, vectors, u)
            return
        s = self.shape
        for u in steps:
            for p in range(pixels):
                text.line(f"const float e{p}_{u} = {d.load_early(f'a{p}', u * s.a_strides[-1])};")
            for v in range(vectors):
                place = u * s.b_strides[-2] + v * s.b_strides[-1]
                text.line(f"const float w{v}_{u} = {d.load_early('w', place)};")
        for u in steps:
            for p in range(pixels):
                for v in range(vectors):
                    text.line(f"acc{p}_{v} = {d.fma_element(f'w{v}_{u}', f'e{p}_{u}', f'acc{p}_{v}')};")

    def _step(self, text: CText, d: VectorDialect, pixels: int, vectors: int, step: int) -> None:
        """Outer products of column `step` of A, from where the pointers are, with that row of B."""
        s = self.shape
        with text.block():
            for p in range(pixels) if vectors >= pixels else ():
                self._element(text, d, p, step)
            for v in range(vectors):
                apart = d.lanes > 1 and s.b_strides[-1] != 1
                load = d.gather if apart else d.load_held if pixels > 1 else d.load_at
                place = step * s.b_strides[-2] + v * d.lanes * s.b_strides[-1]
                text.line(f"const {d.ctype} w{v} = {load('w', place)};")
                for p in range(pixels) if vectors >= pixels else ():
                    text.line(f"acc{p}_{v} = {d.fma_element(f'w{v}', f'e{p}', f'acc{p}_{v}')};")
            for p in range(pixels) if vectors < pixels else ():
                self._element(text, d, p, step)
                for v in range(vectors):
                    text.line(f"acc{p}_{v} = {d.fma_element(f'w{v}', f'e{p}', f'acc{p}_{v}')};")

    def _element(self, text: CText, d: VectorDialect, p: int, step: int) -> None:
        value = d.element(f"a{p}[{step * self.shape.a_strides[-1]}]")
        text.line(f"const {d.element_type} e{p} = {value};")


@dataclass(frozen=True)
class _Dots(_Product):
    """k is contiguous in both operands."""

    def emit(self, text: CText) -> str:
        s, d = self.shape, self.dialect
        wide = 4 if d.registers > 16 else 3 if d.registers > 8 else 2
        b = Block(min(s.m, wide), min(s.n, wide))
        for first, count, rows in _parts(s.m, b.pixels):
            with text.loop("mb", str(count), needed=count > 1):
                row = total(product("mb", rows) if count > 1 else "0", str(first))
                for column, blocks, cols in _parts(s.n, b.vectors):
                    with (
                        text.loop("nb", str(blocks), needed=blocks > 1),
                        text.block() if blocks == 1 else nullcontext(),
                    ):
                        col = total(product("nb", cols) if blocks > 1 else "0", str(column))
                        self._block(text, rows, cols, row, col)
        return (
            f"{counted(b.pixels, 'row')} x {counted(b.vectors, 'column')}, partial sums of {d.lanes} in "
            "registers"
        )

    def _block(self, text: CText, rows: int, cols: int, row: str, col: str) -> None:
        s, d = self.shape, self.dialect
        m, n = _named(text, "m", row), _named(text, "n", col)
        for p in range(rows):
            text.line(
                f"const float *const a{p} = "
                f"{self.at(self.a, s.a_strides, _scaled(m, p, s.a_strides[-2]), '0')};"
            )
        for q in range(cols):
            text.line(
                f"const float *const b{q} = "
                f"{self.at(self.b, s.b_strides, '0', _scaled(n, q, s.b_strides[-1]))};"
            )
        for p in range(rows):
            for q in range(cols):
                text.line(f"{d.ctype} acc{p}_{q} = {d.splat('0.0f')};")
        whole = s.k - s.k % d.lanes
        with text.loop("k", str(whole), d.lanes):
            for q in range(cols):
                text.line(f"const {d.ctype} w{q} = {d.load(f'b{q} + k')};")
            for p in range(rows):
                text.line(f"const {d.ctype} e{p} = {d.load(f'a{p} + k')};")
                for q in range(cols):
                    text.line(f"acc{p}_{q} = {d.fma(f'w{q}', f'e{p}', f'acc{p}_{q}')};")
        for p in range(rows):
            for q in range(cols):
                text.line(f"float dot{p}_{q} = {d.sum(f'acc{p}_{q}')};")
        if whole < s.k:
            with text.block(f"for (int32_t k = {whole}; k < {s.k}; k++)"):
                for p in range(rows):
                    for q in range(cols):
                        text.line(f"dot{p}_{q} += a{p}[k] * b{q}[k];")
        i, j = self.batch()
        names = [[f"dot{p}_{q}" for q in range(cols)] for p in range(rows)]
        at = [(j, total(m, str(p))) for p in range(rows)]
        Accumulators(SCALAR, names, at, i, n).store(text, self.tail, True)


def _named(text: CText, name: str, value: str) -> str:
    """A constant as it is, anything else as a variable."""
    if value.isdigit():
        return value
    text.line(f"const int32_t {name} = {value};")
    return name


def _scaled(base: str, offset: int, stride: int) -> str:
    """(base + offset) * stride"""
    if base.isdigit():
        return str((int(base) + offset) * stride)
    return product(base if offset == 0 else f"({base} + {offset})", stride)
