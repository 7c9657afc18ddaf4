"""A block of sums in Helium, up to two rows of x by four rows of weights, and what becomes of them.

The C is calls of aot_model/int16_mve.h, whose functions have portable twins: sums lie in `sums`, four for a
row of x, and are requantised there, four channels at a time.
"""

from __future__ import annotations

from aot_model.ir.types import DType
from aot_model.kernels.int16.dots import Dots
from aot_model.kernels.int16.finish import Finish

HEADER = "aot_model/int16_mve.h"
APART = 9362
"""Between elements that `collected` reads, at most."""
_RULES = {"up": "AOT_MODEL_UP", "away": "AOT_MODEL_AWAY", "even": "AOT_MODEL_EVEN"}


def declared(finish: Finish | None) -> list[str]:
    """C before the loops: how sums become results."""
    if finish is None:
        return []
    f, first = finish, [int(v) for v in finish.rows[0]]
    width, shift = (0 if f.literal else f.width), first[3] if f.uniform_shift else 0
    fields = (
        f".rule = {_RULES[f.rule]}, .left = {f.left}, .width = {width}, .shift = {shift}, "
        f".odd = {f.zero % 2}, .low = {f.low}, .high = {f.high}"
    )
    lines = [f"static const aot_model_finish finish = {{{fields}}};"]
    if f.literal:
        lines.append(f"static const int32_t constants[3] = {{{', '.join(str(v) for v in first[:3])}}};")
    return lines


def sums(dots: Dots, rows: int, columns: int) -> list[str]:
    """C that computes `sums` of the rows r0, r1 and `columns` rows from w on, and moves w behind them. Sums
    of more than 32 bits are made of parts that have no more.
    """
    if dots.chunk == dots.taps:
        return ["int32_t sums[8];", *sums_at(dots, rows, columns, "sums")]
    some = [4 * i + j for i in range(rows) for j in range(columns)]
    return [
        "int64_t sums[8] = {0};",
        f"for (int32_t k = 0; k < {dots.taps}; k += {dots.chunk}) {{",
        f"    const int32_t taps = {dots.taps} - k < {dots.chunk} ? {dots.taps} - k : {dots.chunk};",
        "    int32_t parts[8];",
        *("    " + t for t in _calls(dots, rows, columns, " + k", "taps", "parts")),
        *(f"    sums[{n}] += parts[{n}];" for n in some),
        "}",
        f"w += {columns * dots.taps};",
    ]


def sums_at(dots: Dots, rows: int, columns: int, to: str) -> list[str]:
    """The same of 32 bits, to eight numbers that are there."""
    return [*_calls(dots, rows, columns, "", str(dots.taps), to), f"w += {columns * dots.taps};"]


def _calls(dots: Dots, rows: int, columns: int, at: str, taps: str, to: str = "sums") -> list[str]:
    """Calls for the sums of `taps` taps; at: where they begin in a row."""
    kind, part = dots.w_type.removesuffix("_t"), "part_" if at else ""
    if rows == 1 and columns == 4:
        return [f"aot_model_{part}one_by_four_{kind}(r0{at}, w{at}, {taps}, {dots.taps}, {to});"]
    return [
        f"aot_model_{part}two_by_two_{kind}(r0{at}, r{rows - 1}{at}, {_plus('w', j * dots.taps)}{at}, "
        f"{_plus('w', min(j + 1, columns - 1) * dots.taps)}{at}, {taps}, {_plus(to, j)});"
        for j in range(0, columns, 2)
    ]


def finished(finish: Finish | None, rows: int, columns: int, channel: str) -> list[str]:
    """C that makes results of them, where there is something to do; channel: the first."""
    if finish is None:
        return []
    table = "constants" if finish.literal else f"requantisation + {channel} * {finish.width}"
    return [
        f"aot_model_finish_four(&finish, {table}, {columns}, {of_row(i)}, {of_row(i)});" for i in range(rows)
    ]


def collected(dtype: str, to: str, start: str, apart: int, shift: int, n: int) -> str:
    """C that makes int16 of n elements, which are `apart` from each other."""
    if apart == 1:
        return f"aot_model_take_{dtype}({to}, {start}, {shift}, {n});"
    return f"aot_model_collect_{dtype}({to}, {start}, {apart}, {shift}, {n});"


def put_rows(to: DType, places: list[str], n: int) -> str:
    """C that requantises and stores the n sums of a row or two, all with the constants of the code."""
    own = f"int{to.bits}_t"
    casts = [y if to.c_type == own else f"({own} *)({y})" for y in places]
    return (
        f"aot_model_finish_rows_{to.bits}(&finish, constants, sums, {n}, {', '.join((*casts, 'NULL')[:2])});"
    )


def put_four(to: DType, y: str, row: int) -> str:
    """C that stores the four results of a row."""
    own = f"int{to.bits}_t"
    cast = "" if to.c_type == own else f"({own} *)"
    return f"aot_model_put_four_{to.bits}({cast}({y}), {of_row(row)});"


def of_row(row: int) -> str:
    """C of the four sums of a row."""
    return _plus("sums", 4 * row)


def _plus(name: str, offset: int) -> str:
    return f"{name} + {offset}" if offset else name
