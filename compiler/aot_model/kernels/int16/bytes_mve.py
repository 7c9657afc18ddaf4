"""Products of two matrices of bytes of one type that are computed at run time, in Helium: sixteen products at
a time, where matmul.py makes int16 of them and multiplies eight.

The rows of the first operand are read where they lie, the columns of the second one, too, where the elements
of each are neighbours; else they are packed. What zero points add to the sums is computed once for each row
and each column.
"""

from __future__ import annotations

from aot_model.c.text import CText, product, total
from aot_model.kernels.base import KernelCode, Scratch
from aot_model.kernels.int16 import block_mve
from aot_model.kernels.int16.matmul import TOGETHER, Product, Rows, loops, parts

HEADER = "aot_model/bytes_mve.h"
DEPTHS = range(12, 8193)
"""Products of a sum: of fewer it is made as fast in matmul.py, of more it has, with what zero points add,
more than 32 bits."""


def takes(p: Product) -> bool:
    """Whether a product is one of such matrices, with one requantisation for all results."""
    a, b, s = p.operands.a, p.operands.b, p.shape
    alike = a.dtype == b.dtype and a.size == 1 and s.k in DEPTHS
    return alike and p.together and s.a_strides[3] == 1 and s.b_strides[2] <= block_mve.APART


def byte_matmul(p: Product) -> KernelCode:
    """The kernel of activations x0 and x1, which `takes` allows."""
    s, text = p.shape, CText()
    text.line("\n".join(block_mve.declared(p.finish)))
    loops(text, p, _columns, _rows)
    scratch = [
        Scratch("sums", 32 * -(-min(s.n, TOGETHER) // p.columns), 4, "int32_t"),
        Scratch("begin", 4 * (s.n + s.n % 2), 4, "int32_t"),
    ]
    if s.b_strides[2] != 1:
        scratch.append(Scratch("packed", s.k * s.n, 4, f"{p.operands.b.dtype}_t"))
    return KernelCode(
        str(text),
        scratch=tuple(scratch),
        includes=frozenset({HEADER}),
        note=f"{p.rows} rows x {p.columns} columns, sixteen bytes at a time",
    )


def _apart(p: Product) -> int:
    """Bytes from a column to the next one."""
    return p.shape.b_strides[3] if p.shape.b_strides[2] == 1 else p.shape.k


def _columns(text: CText, p: Product, at: tuple[str, str]) -> None:
    """The columns of the second operand, and what zero points add to their sums."""
    s, (a, b) = p.shape, (p.operands.a, p.operands.b)
    source = total("x1", product(at[0], s.b_strides[0]), product(at[1], s.b_strides[1]))
    text.line(f"const {b.dtype}_t *const matrix = {source};")
    near = s.b_strides[2] == 1
    if near:
        text.line(f"const {b.dtype}_t *const columns = matrix;")
    else:
        text.line(f"const {b.dtype}_t *const columns = packed;")
    with text.loop("n", str(s.n)):
        place = product("n", _apart(p))
        if not near:
            to, start = f"packed + {place}", total("matrix", product("n", s.b_strides[3]))
            if b.dtype == "int8":
                to, start = f"(uint8_t *)({to})", f"(const uint8_t *)({start})"
            text.line(f"aot_model_collect_bytes({to}, {start}, {s.b_strides[2]}, {s.k});")
        begin = str(s.k * a.zero * b.zero)
        if a.zero:
            sign = "-" if a.zero > 0 else "+"
            begin += f" {sign} {abs(a.zero)} * aot_model_sum_{b.dtype}(columns + {place}, {s.k})"
        text.line(f"begin[n] = {begin};")
    if s.n % 2:
        text.line(f"begin[{s.n}] = 0;")


def _rows(text: CText, rows: Rows, height: int) -> None:
    """`height` rows of the result from row m on."""
    p = rows.product
    s, (a, b), finish = p.shape, (p.operands.a, p.operands.b), p.finish
    assert finish is not None
    base = total("x0", product(rows.at[0], s.a_strides[0]), product(rows.at[1], s.a_strides[1]))
    for i in range(height):
        start = total(base, product(f"(m + {i})" if i else "m", s.a_strides[2]))
        text.line(f"const {a.dtype}_t *const row{i} = {start};")
        begin = f"{-b.zero} * aot_model_sum_{a.dtype}(row{i}, {s.k})" if b.zero else "0"
        text.line(f"const int32_t begin{i} = {begin};")
    for first, count, width in parts(s.n, TOGETHER):
        with text.block(f"for (int32_t c = {first}; c < {first + count * width}; c += {width})"):
            _sums(text, p, height, width)
            text.line(block_mve.put_rows(finish.to, rows.places(height, "c"), width))


def _sums(text: CText, p: Product, height: int, columns: int) -> None:
    """The sums of a row or two with `columns` columns from column c on."""
    last, apart = height - 1, _apart(p)
    for first, count, width in parts(columns, p.columns):
        with text.block(f"for (int32_t n = {first}; n < {first + count * width}; n += {width})"):
            text.line(f"const {p.operands.b.dtype}_t *const w = columns + (c + n) * {apart};")
            for j in range(0, width, 2):
                sides = (
                    f"row0, row{last}",
                    *(total("w", str(k * apart)) for k in (j, min(j + 1, width - 1))),
                )
                begin = f"begin0, begin{last}, begin + {total('c + n', str(j))}"
                to = f"sums + {total('2 * n', str(j))}"
                arguments = f"{', '.join(sides)}, {p.shape.k}, {begin}, {to}"
                text.line(f"aot_model_two_by_two_bytes_{p.operands.b.dtype}({arguments});")
