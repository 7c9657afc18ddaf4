"""Products of two integer matrices that are computed at run time, with batches; both become int16 first.

The second operand is packed once for every matrix of the batch, less its zero point, in the order in which
the blocks read it; two rows of the first one follow at a time.
"""

from __future__ import annotations

from dataclasses import dataclass

from aot_model.c.text import CText, product, total
from aot_model.kernels.base import KernelCode, Scratch, Tail
from aot_model.kernels.float32.matmul import MatmulShape
from aot_model.kernels.int8.dsp import HEADER
from aot_model.kernels.int16 import block_mve
from aot_model.kernels.int16.conv import Elements
from aot_model.kernels.int16.dots import Dots
from aot_model.kernels.int16.finish import Finish


@dataclass(frozen=True)
class Operands:
    """What the two operands are, and what the tail takes."""

    a: Elements
    b: Elements
    accumulator: str
    """C type of the tail's accumulator."""


def matmul(
    shape: MatmulShape, operands: Operands, dots: Dots, finish: Finish | None, tail: Tail
) -> KernelCode:
    """Activations x0 and x1; the tail gets the index (i, j, m, n). dots.taps: k, filled up."""
    s, k = shape, dots.taps
    text = CText()
    columns, rows = min(dots.width, s.n), min(2, s.m)
    repeated = all(stride == 0 or count == 1 for stride, count in zip(s.b_strides, s.batch, strict=False))
    direct = operands.a.dtype == "int16" and s.a_strides[3] == 1 and k == s.k
    if dots.mve:
        text.line("\n".join(block_mve.declared(finish)))
    if repeated:
        _pack(text, s, operands.b, dots, columns, ("0", "0"))
    with text.turns("i", str(s.batch[0])) as i, text.turns("j", str(s.batch[1])) as j:
        if not repeated:
            _pack(text, s, operands.b, dots, columns, (i, j))
        for first, count, height in _parts(s.m, rows):
            with text.block(f"for (int32_t m = {first}; m < {first + count * height}; m += {height})"):
                _rows(text, s, operands, dots, columns, height, (i, j), direct, finish, tail)
    pieces = [Scratch("packed", 2 * k * s.n, 4, "int16_t")]
    if not direct:
        pieces.append(Scratch("rows", 2 * k * rows, 4, "int16_t"))
    return KernelCode(
        str(text),
        scratch=tuple(pieces),
        includes=frozenset({HEADER, *([block_mve.HEADER] if dots.mve else [])}),
        note=f"{rows} rows x {columns} columns, {'rows' if dots.mve else 'pairs'} of int16",
    )


def _parts(size: int, width: int) -> list[tuple[int, int, int]]:
    full, rest = divmod(size, width)
    return ([(0, full, width)] if full else []) + ([(full * width, 1, rest)] if rest else [])


def _pack(text: CText, s: MatmulShape, b: Elements, dots: Dots, columns: int, at: tuple[str, str]) -> None:
    """The columns of b as rows, in groups of `columns`."""
    k, step = dots.taps, dots.step
    source = total("x1", product(at[0], s.b_strides[0]), product(at[1], s.b_strides[1]))
    text.line(
        f"const {b.dtype}_t *const matrix = {source};"
        if at != ("0", "0")
        else f"const {b.dtype}_t *const matrix = x1;"
    )
    for first, count, width in _parts(s.n, columns):
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


def _rows(text: CText, s: MatmulShape, operands: Operands, dots: Dots, columns: int, height: int,
          at: tuple[str, str], direct: bool, finish: Finish | None, tail: Tail) -> None:  # fmt: skip
    """`height` rows of the result from row m on."""
    a, k = operands.a, dots.taps
    base = total("x0", product(at[0], s.a_strides[0]), product(at[1], s.a_strides[1]))
    for i in range(height):
        row = product(f"(m + {i})" if i else "m", s.a_strides[2])
        start = total(base, row)
        if direct:
            text.line(f"const int16_t *const row{i} = {start};")
            continue
        text.line(f"const {a.dtype}_t *const from{i} = {start};\nint16_t *const row{i} = rows + {i * k};")
    if not direct:
        if dots.mve and s.a_strides[3] == 1:
            text.line(
                "\n".join(
                    f"aot_model_take_{a.dtype}(row{i}, from{i}, {a.shift}, {s.k});" for i in range(height)
                )
            )
        else:
            place = product("t", s.a_strides[3])
            with text.loop("t", str(s.k)):
                for i in range(height):
                    text.line(f"row{i}[t] = {a.narrowed(f'from{i}[{place}]')};")
        if k > s.k:
            text.line("\n".join(f"row{i}[{s.k}] = 0;" for i in range(height)))
    text.line("const int16_t *w = packed;")
    for first, count, width in _parts(s.n, columns):
        with text.block(f"for (int32_t n = {first}; n < {first + count * width}; n += {width})"):
            own = [f"const int16_t *r{i} = row{i};" for i in range(height)]
            own += (
                [*block_mve.sums(dots, height, width), *block_mve.finished(finish, height, width, "n")]
                if dots.mve
                else dots.lines(height, width)
            )
            text.line("\n".join(own))
            for i in range(height):
                for j in range(width):
                    with text.block():
                        result = f"sums[{4 * i + j}]" if dots.mve else f"sum{i}{j}"
                        if finish is not None and dots.mve:
                            text.line(f"const {finish.to.c_type} v = ({finish.to.c_type}){result};")
                        elif finish is not None:
                            text.line("\n".join(finish.lines(result, "")))
                        else:
                            text.line(f"const {operands.accumulator} v = {result};")
                        row, column = f"m + {i}" if i else "m", f"n + {j}" if j else "n"
                        text.line(tail.store("v", (at[0], at[1], row, column), 1))
