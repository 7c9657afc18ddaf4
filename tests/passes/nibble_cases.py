"""Cases of keep_integers: constants of 4 and 8 bits that products and rows read as they are."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from pass_case import PassCase, drawn, made, numbers, tensor

from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.passes.weight_only import MIN_ELEMENTS, keep_integers
from graphs import Maker


def _matrix(
    m: Maker,
    rows: int,
    columns: int,
    scales: tuple[int, ...],
    kind: str = "int4",
    zero: bool = False,
    zeros: tuple[int, ...] | None = None,
    **where: int,
) -> Value:
    """A dequantised constant. zero: with as many zero points as scales; zeros: with so many."""
    dtype = getattr(DType, kind.upper())
    low, high = dtype.limits
    q = np.random.default_rng(rows).integers(low, high + 1, (rows, columns)).astype(dtype.numpy)
    of = scales if zeros is None else zeros
    points = [numbers(np.arange(1, np.prod(of) + 1).reshape(of) % 5, dtype.numpy)] if zero else []
    return m.DequantizeLinear(  # type: ignore[no-any-return]
        numbers(q, dtype.numpy), drawn(3, *scales, low=0.01, high=0.1), *points, **where
    )


def _product(
    depth: int, columns: int, scales: tuple[int, ...], kind: str = "int4", zero: bool = False, **where: Any
) -> Any:
    return made(
        lambda m, x: m.MatMul(x, _matrix(m, depth, columns, scales, kind, zero, **where)),
        tensor("x", 2, depth),
    )


def _gemm(
    scales: tuple[int, ...],
    bias: bool = True,
    flip: bool = False,
    axis: int = 1,
    block: int = 0,
    **attributes: Any,
) -> Any:
    """Of (2, 8) and (9, 8), which is transposed once, or twice with a Transpose before it."""

    def build(m: Maker, x: Value) -> Value:
        w = _matrix(m, 9, 8, scales, zero=True, axis=axis, **({"block_size": block} if block else {}))
        more = [drawn(5, 9 if attributes.get("transB", 0) != flip else 8)] if bias else []
        return m.Gemm(x, m.Transpose(w, perm=(1, 0)) if flip else w, *more, **attributes)  # type: ignore[no-any-return]

    return made(build, tensor("x", 2, 8 if attributes.get("transB", 0) != flip else 9))


def _rows(
    scales: tuple[int, ...],
    gather: int = 0,
    indices: Any = ((1, 0), (5, -1)),
    kind: str = "int4",
    **where: Any,
) -> Any:
    return made(
        lambda m: m.Gather(
            _matrix(m, 6, 16, scales, kind, zero=True, **where), numbers(indices, "int64"), axis=gather
        )
    )


def _by_input(scales: tuple[int, ...], gather: int, kind: str = "int4", **where: Any) -> Any:
    """Rows that data choose."""
    return made(
        lambda m, x: m.Gather(
            _matrix(m, 6, 16, scales, kind, **{"zero": True, **where}),
            m.Cast(m.Greater(x, numbers(0)), to=DType.INT64),
            axis=gather,
        ),
        tensor("x", 3),
    )


def _twice(m: Maker, x: Value) -> list[Value]:
    w = _matrix(m, 9, 8, ())
    return [m.MatMul(x, w), m.Neg(w)]


CASES_OF = {
    "one scale": _product(9, 8, ()),
    "one scale of one element": _product(9, 8, (1,), zero=True),
    "as few as may be": _product(8, MIN_ELEMENTS // 8, ()),
    "one row fewer": _product(7, 9, ()),
    "by columns": _product(9, 8, (8,), axis=1),
    "by columns, counted from the end": _product(9, 8, (8,), zero=True, axis=-1),
    "by rows": _product(9, 8, (9,), axis=0),
    "by columns, one zero point": _product(9, 8, (8,), "int4", True, axis=1, zeros=()),
    "one scale, zero points by columns": _product(9, 8, (1,), "int4", True, axis=1, zeros=(8,)),
    "by blocks of the sum": _product(9, 8, (3, 8), zero=True, axis=0, block_size=3),
    "by blocks that do not fill": _product(9, 8, (3, 8), axis=0, block_size=4),
    "by blocks of columns": _product(9, 8, (9, 2), axis=1, block_size=4),
    "unsigned": _product(9, 8, (8,), "uint4", True, axis=1),
    "scales of another type": made(
        lambda m, x: m.MatMul(
            x,
            m.DequantizeLinear(
                drawn(2, 9, 8, low=-8, high=7, dtype="int8"), drawn(3, 8, dtype="float16"), output_dtype=1
            ),
        ),
        tensor("x", 2, 9),
    ),
    "8 bits by blocks": _product(9, 8, (3, 8), "int8", True, axis=0, block_size=3),
    "8 bits, unsigned, by blocks": _product(9, 8, (3, 8), "uint8", axis=0, block_size=3),
    "8 bits": _product(9, 8, (8,), "int8", axis=1),
    "16 bits by blocks": _product(9, 8, (3, 8), "int16", axis=0, block_size=3),
    "gemm": _gemm((8,)),
    "gemm, transposed": _gemm((9,), axis=0, transB=1),
    "gemm, transposed, by blocks": _gemm((9, 2), block=4, transB=1),
    "gemm without a bias": _gemm((9,), False, axis=0, transB=1),
    "transposed before": _gemm((9, 2), False, True, block=4),
    "transposed twice": _gemm((8,), True, True, transB=1),
    "transposed twice, along the sum": _gemm((9,), True, True, axis=0, transB=1),
    "alpha": _gemm((8,), alpha=2.0),
    "beta": _gemm((8,), beta=0.5),
    "first transposed": made(lambda m, x: m.Gemm(x, _matrix(m, 9, 8, ()), transA=1), tensor("x", 9, 2)),
    "first operand": made(lambda m, x: m.MatMul(_matrix(m, 9, 8, ()), x), tensor("x", 8, 2)),
    "read twice": made(_twice, tensor("x", 2, 9)),
    "three axes": made(
        lambda m, x: m.MatMul(
            x, m.DequantizeLinear(numbers(np.ones((2, 4, 9)), DType.INT4.numpy), numbers(0.5))
        ),
        tensor("x", 2, 4),
    ),
    "no transpose of two axes": made(
        lambda m, x: m.MatMul(x, m.Transpose(_matrix(m, 9, 8, ()), perm=(0, 1))), tensor("x", 2, 9)
    ),
    "rows, one scale": _rows(()),
    "rows with scales of their own": _rows((6,), axis=0),
    "rows with scales of their own, one zero point": _by_input((6,), 0, axis=0, zeros=()),
    "rows with scales of their own, no zero points": _by_input((6,), 0, axis=0, zero=False),
    "rows, scales by columns": _rows((16,), axis=1),
    "rows by blocks": _by_input((6, 4), 0, axis=1, block_size=4),
    "columns by blocks": _by_input((2, 16), 1, axis=0, block_size=3),
    "rows by blocks of rows": _by_input((2, 16), 0, axis=0, block_size=3),
    "rows that data choose": _by_input((), 0),
    "columns that data choose": _by_input((), -1),
    "rows of bytes, one scale": _by_input((), 0, "int8"),
    "rows of bytes with scales of their own": _by_input((6,), 0, "uint8", axis=0),
    "columns of bytes with scales of their own": _by_input((16,), 1, "int8", axis=1),
    "columns of bytes, scales by rows": _by_input((6,), 1, "int8", axis=0),
    "one row of bytes, scales by columns": _rows((16,), 0, 3, "uint8", axis=1),
    "rows of 16 bits": _by_input((), 0, "int16"),
}
BYTES_TOO = {
    "8 bits": _product(9, 8, (8,), "int8", axis=1),
    "8 bits, unsigned, one scale": _product(9, 8, (), "uint8", True),
    "16 bits": _product(9, 8, (8,), "int16", axis=1),
    "8 bits, scales along the sum": _product(9, 8, (9,), "int8", axis=0),
}
CASES = {
    **{f"keep_integers: {name}": PassCase(keep_integers, make, 1e-5) for name, make in CASES_OF.items()},
    **{
        f"keep_integers, bytes too: {name}": PassCase(partial(keep_integers, bytes_too=True), make, 1e-5)
        for name, make in BYTES_TOO.items()
    },
}
