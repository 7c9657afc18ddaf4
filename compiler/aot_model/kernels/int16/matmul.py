"""Products of two integer matrices that are computed at run time, with batches; both become int16 first.

The second operand is packed once for every matrix of the batch, less its zero point, in the order in which
the blocks read it; two rows of the first one follow at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from aot_model.c.text import CText, product, total
from aot_model.kernels.base import KernelCode, Scratch, Tail
from aot_model.kernels.float32.matmul import MatmulShape
from aot_model.kernels.int8.dsp import HEADER
from aot_model.kernels.int16 import block_mve
from aot_model.kernels.int16.blocks import Blocks, Index
from aot_model.kernels.int16.dots import UNROLLED, Dots
from aot_model.kernels.int16.elements import Elements
from aot_model.kernels.int16.finish import Finish

TOGETHER = 32
"""Columns of two rows whose sums are requantised together: 256 bytes."""


@dataclass(frozen=True)
class Operands:
    """What the two operands are, and what the tail takes."""

    a: Elements
    b: Elements
    accumulator: str
    """C type of the tail's accumulator."""


@dataclass(frozen=True)
class Product:
    """What is computed: dots.taps is k, filled up; the tail gets the index (i, j, m, n)."""

    shape: MatmulShape
    operands: Operands
    dots: Dots
    finish: Finish | None
    tail: Tail
    place: Callable[[Index], str] | None = None
    """The C address of a result, where nothing becomes of it behind `finish` and those of a row are
    neighbours.
    """

    @property
    def columns(self) -> int:
        """Of a block."""
        return min(self.dots.width, self.shape.n)

    @property
    def rows(self) -> int:
        return min(2, self.shape.m)

    @property
    def direct(self) -> bool:
        """Whether rows of x0 are read where they lie."""
        s = self.shape
        return self.operands.a.dtype == "int16" and s.a_strides[3] == 1 and self.dots.taps == s.k

    @property
    def together(self) -> bool:
        """Whether the sums of two rows are made before they are requantised, all with the same constants."""
        s, dots = self.shape, self.dots
        several = s.m > 1 and s.n >= dots.width and dots.mve and dots.chunk == dots.taps
        return several and self.finish is not None and self.place is not None

    @property
    def running(self) -> bool:
        """Whether pointers move along the results of short rows."""
        short = not self.dots.mve and self.dots.taps <= UNROLLED
        return short and self.finish is not None and self.place is not None


@dataclass(frozen=True)
class Rows:
    """Some rows of a product from row m on, where their results go."""

    product: Product
    at: tuple[str, str]
    """Of the batch."""

    @property
    def tail(self) -> Tail:
        return self.product.tail

    def index(self, row: int, column: str = "n") -> Index:
        return (*self.at, total("m", str(row)), column)

    def place(self, row: int, column: str = "n") -> str | None:
        place = self.product.place
        return place(self.index(row, column)) if place is not None else None

    def places(self, rows: int, column: str) -> list[str]:
        return [at for i in range(rows) if (at := self.place(i, column)) is not None]

    def store(self, row: int, column: str) -> list[str]:
        if self.product.running:
            return [f"*to{row}++ = v;"]
        return self.tail.store("v", self.index(row, column), 1).splitlines()


def matmul(p: Product) -> KernelCode:
    """The kernel of activations x0 and x1."""
    s, k, dots = p.shape, p.dots.taps, p.dots
    text = CText()
    if dots.mve:
        text.line("\n".join(block_mve.declared(p.finish)))
    loops(text, p, _pack, _rows)
    pieces = [Scratch("packed", 2 * k * s.n, 4, "int16_t")]
    if not p.direct:
        pieces.append(Scratch("rows", 2 * k * p.rows, 4, "int16_t"))
    if p.together:
        pieces.append(Scratch("sums", 32 * -(-min(s.n, TOGETHER) // p.columns), 4, "int32_t"))
    return KernelCode(
        str(text),
        scratch=tuple(pieces),
        includes=frozenset({HEADER, *([block_mve.HEADER] if dots.mve else [])}),
        note=f"{p.rows} rows x {p.columns} columns, {'rows' if dots.mve else 'pairs'} of int16",
    )


def loops(
    text: CText,
    p: Product,
    prepare: Callable[[CText, Product, tuple[str, str]], None],
    rows: Callable[[CText, Rows, int], None],
) -> None:
    """The batch and the rows of a product: `prepare` the second matrix, once where it is the same for all of
    the batch, and then `rows` of the result, as many as its last argument says.
    """
    s = p.shape
    repeated = all(stride == 0 or count == 1 for stride, count in zip(s.b_strides, s.batch, strict=False))
    if repeated:
        prepare(text, p, ("0", "0"))
    with text.turns("i", str(s.batch[0])) as i, text.turns("j", str(s.batch[1])) as j:
        if not repeated:
            prepare(text, p, (i, j))
        for first, count, height in parts(s.m, p.rows):
            with text.block(f"for (int32_t m = {first}; m < {first + count * height}; m += {height})"):
                rows(text, Rows(p, (i, j)), height)


def parts(size: int, width: int) -> list[tuple[int, int, int]]:
    """(first, how many, as wide as) of what whole pieces of `width` take, and of the rest."""
    full, rest = divmod(size, width)
    return ([(0, full, width)] if full else []) + ([(full * width, 1, rest)] if rest else [])


def _pack(text: CText, p: Product, at: tuple[str, str]) -> None:
    """The columns of b as rows, in groups of `columns`."""
    s, b, dots, columns = p.shape, p.operands.b, p.dots, p.columns
    k, step = dots.taps, dots.step
    source = total("x1", product(at[0], s.b_strides[0]), product(at[1], s.b_strides[1]))
    text.line(
        f"const {b.dtype}_t *const matrix = {source};"
        if at != ("0", "0")
        else f"const {b.dtype}_t *const matrix = x1;"
    )
    if dots.mve and k > 1 and s.b_strides[2] <= block_mve.APART:
        with text.loop("n", str(s.n)):
            start = total("matrix", product("n", s.b_strides[3]))
            to = f"packed + n * {k}"
            text.line(block_mve.collected(b.dtype, to, start, s.b_strides[2], b.shift, k))
        return
    for first, count, width in parts(s.n, columns):
        with text.block(f"for (int32_t n = {first}; n < {first + count * width}; n += {width})"):
            for j in range(width):
                where = total(product("n" if j == 0 else f"(n + {j})", s.b_strides[3]))
                text.line(f"const {b.dtype}_t *from{j} = matrix + {where};")
            text.line(f"int16_t *to = packed + n * {k};")
            advance = [f"from{j} += {s.b_strides[2]};" for j in range(width)]
            if step == 1:
                with text.loop("t", str(s.k)):
                    for j in range(width):
                        text.line(f"to[{f'{j * k} + ' if j else ''}t] = {b.narrowed(f'from{j}[0]')};")
                    text.line("\n".join(advance))
                continue
            with text.loop("t", str(s.k // 2)):
                for j in range(width):
                    second = f"from{j}[{s.b_strides[2]}]"
                    text.line(
                        f"to[{2 * j}] = {b.narrowed(f'from{j}[0]')};\nto[{2 * j + 1}] = {b.narrowed(second)};"
                    )
                    text.line(f"from{j} += {2 * s.b_strides[2]};")
                text.line(f"to += {2 * width};")
            if s.k % 2:
                for j in range(width):
                    text.line(f"to[{2 * j}] = {b.narrowed(f'from{j}[0]')};\nto[{2 * j + 1}] = 0;")


def _rows(text: CText, rows: Rows, height: int) -> None:
    """`height` rows of the result from row m on."""
    p = rows.product
    s, dots, finish = p.shape, p.dots, p.finish
    _sources(text, p, rows.at, height)
    text.line("const int16_t *w = packed;")
    if p.together and finish is not None:
        for first, count, width in parts(s.n, TOGETHER):
            with text.block(f"for (int32_t c = {first}; c < {first + count * width}; c += {width})"):
                _two_rows(text, dots, height, width)
                text.line(block_mve.put_rows(finish.to, rows.places(height, "c"), width))
        return
    if p.running and finish is not None:
        for i, y in enumerate(rows.places(height, "0")):
            text.line(f"{finish.to.c_type} *to{i} = {y};")
    blocks = Blocks(dots, finish, p.operands.accumulator, rows, "n")
    for first, count, width in parts(s.n, p.columns):
        with text.block(f"for (int32_t n = {first}; n < {first + count * width}; n += {width})"):
            starts = [f"const int16_t *r{i} = row{i};" for i in range(height)]
            text.line("\n".join([*starts, *blocks.lines(height, width)]))


def _sources(text: CText, p: Product, at: tuple[str, str], height: int) -> None:
    """Pointers to rows of int16, which are made where x0 has none."""
    s, a, k = p.shape, p.operands.a, p.dots.taps
    base = total("x0", product(at[0], s.a_strides[0]), product(at[1], s.a_strides[1]))
    for i in range(height):
        row = product(f"(m + {i})" if i else "m", s.a_strides[2])
        start = total(base, row)
        if p.direct:
            text.line(f"const int16_t *const row{i} = {start};")
            continue
        text.line(f"const {a.dtype}_t *const from{i} = {start};\nint16_t *const row{i} = rows + {i * k};")
    if p.direct:
        return
    if p.dots.mve and s.a_strides[3] <= block_mve.APART:
        for i in range(height):
            apart = s.a_strides[3]
            text.line(block_mve.collected(a.dtype, f"row{i}", f"from{i}", apart, a.shift, s.k))
    else:
        at_t = product("t", s.a_strides[3])
        with text.loop("t", str(s.k)):
            for i in range(height):
                text.line(f"row{i}[t] = {a.narrowed(f'from{i}[{at_t}]')};")
    if k > s.k:
        text.line("\n".join(f"row{i}[{s.k}] = 0;" for i in range(height)))


def _two_rows(text: CText, dots: Dots, height: int, columns: int) -> None:
    """The sums of a row or two with the next `columns` of the packed rows."""
    for first, count, width in parts(columns, dots.width):
        with text.block(f"for (int32_t n = {first}; n < {first + count * width}; n += {width})"):
            text.line("\n".join(f"const int16_t *r{i} = row{i};" for i in range(height)))
            text.line("\n".join(block_mve.sums_at(dots, height, width, "sums + 2 * n")))
