"""Products of two integer matrices that are computed at run time, with batches; both become int16 first.

The second operand is packed once for every matrix of the batch, less its zero point, in the order in which
the blocks read it; two rows of the first one follow at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from aot_model.c.text import CText, product, total
from aot_model.ir.types import DType
from aot_model.kernels.base import KernelCode, Scratch, Tail
from aot_model.kernels.float32.matmul import MatmulShape
from aot_model.kernels.int8.dsp import HEADER
from aot_model.kernels.int8.row_tail import VectorTail
from aot_model.kernels.int16 import block_mve
from aot_model.kernels.int16.conv import Elements
from aot_model.kernels.int16.dots import UNROLLED, Dots
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


Index = tuple[str, str, str, str]


def matmul(
    shape: MatmulShape,
    operands: Operands,
    dots: Dots,
    finish: Finish | None,
    tail: Tail,
    place: Callable[[Index], str] | None = None,
) -> KernelCode:
    """Activations x0 and x1; the tail gets the index (i, j, m, n). dots.taps: k, filled up. place: the C
    address of a result, where nothing becomes of it behind `finish` and those of a row are neighbours.
    """
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
                _rows(text, s, operands, dots, columns, height, (i, j), direct, finish, tail, place)
    pieces = [Scratch("packed", 2 * k * s.n, 4, "int16_t")]
    if not direct:
        pieces.append(Scratch("rows", 2 * k * rows, 4, "int16_t"))
    if _together(s, dots, finish, place):
        pieces.append(Scratch("sums", 32 * -(-min(s.n, TOGETHER) // columns), 4, "int32_t"))
    return KernelCode(
        str(text),
        scratch=tuple(pieces),
        includes=frozenset({HEADER, *([block_mve.HEADER] if dots.mve else [])}),
        note=f"{rows} rows x {columns} columns, {'rows' if dots.mve else 'pairs'} of int16",
    )


def _together(
    s: MatmulShape, dots: Dots, finish: Finish | None, place: Callable[[Index], str] | None
) -> bool:
    """Whether the sums of two rows are made before they are requantised, all with the same constants."""
    several = s.m > 1 and s.n >= dots.width and dots.mve and dots.chunk == dots.taps
    return several and finish is not None and finish.literal and place is not None


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
    if dots.mve and k > 1 and s.b_strides[2] <= block_mve.APART:
        with text.loop("n", str(s.n)):
            start = total("matrix", product("n", s.b_strides[3]))
            to = f"packed + n * {k}"
            text.line(block_mve.collected(b.dtype, to, start, s.b_strides[2], b.shift, k))
        return
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


def _rows(
    text: CText,
    s: MatmulShape,
    operands: Operands,
    dots: Dots,
    columns: int,
    height: int,
    at: tuple[str, str],
    direct: bool,
    finish: Finish | None,
    tail: Tail,
    place: Callable[[Index], str] | None,
) -> None:
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
        if dots.mve and s.a_strides[3] <= block_mve.APART:
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
    text.line("const int16_t *w = packed;")
    if _together(s, dots, finish, place):
        assert finish is not None and place is not None
        for first, count, width in _parts(s.n, TOGETHER):
            with text.block(f"for (int32_t c = {first}; c < {first + count * width}; c += {width})"):
                _two_rows(text, dots, height, width)
                places = [place((at[0], at[1], f"m + {i}" if i else "m", "c")) for i in range(height)]
                text.line(block_mve.put_rows(finish.to, places, width))
        return
    running = finish is not None and place is not None and not dots.mve and dots.taps <= UNROLLED
    if running and finish is not None and place is not None:
        for i in range(height):
            y = place((at[0], at[1], f"m + {i}" if i else "m", "0"))
            text.line(f"{finish.to.c_type} *to{i} = {y};")
    for first, count, width in _parts(s.n, columns):
        with text.block(f"for (int32_t n = {first}; n < {first + count * width}; n += {width})"):
            own = [f"const int16_t *r{i} = row{i};" for i in range(height)]
            own += (
                [*block_mve.sums(dots, height, width), *block_mve.finished(finish, height, width, "n")]
                if dots.mve
                else dots.lines(height, width)
            )
            text.line("\n".join(own))
            if dots.mve and finish is not None and place is not None and width == 4:
                places = [place((at[0], at[1], f"m + {i}" if i else "m", "n")) for i in range(height)]
                text.line("\n".join(block_mve.put_four(finish.to, y, i) for i, y in enumerate(places)))
                continue
            if dots.mve and isinstance(tail, VectorTail) and width == 4 and dots.chunk == dots.taps:
                for i in range(height):
                    index = (at[0], at[1], f"m + {i}" if i else "m", "n")
                    text.line(
                        tail.store_row(f"sums + {4 * i}" if i else "sums", index, 4, DType.INT32).rstrip()
                    )
                continue
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
                        text.line(
                            f"*to{i}++ = v;" if running else tail.store("v", (at[0], at[1], row, column), 1)
                        )


def _two_rows(text: CText, dots: Dots, height: int, columns: int) -> None:
    """The sums of a row or two with the next `columns` of the packed rows."""
    for first, count, width in _parts(columns, dots.width):
        with text.block(f"for (int32_t n = {first}; n < {first + count * width}; n += {width})"):
            text.line("\n".join(f"const int16_t *r{i} = row{i};" for i in range(height)))
            text.line("\n".join(block_mve.sums_at(dots, height, width, "sums + 2 * n")))
