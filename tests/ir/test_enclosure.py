"""Enclosures hold what any C library and compiler may compute, and little more: against numpy's float32 and
exact fractions.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest

from aot_model.ir.enclosure import LIBRARY, enclosure
from aot_model.ir.expr import Expr, Leaf, call, cast, const, select
from aot_model.ir.types import DType

FLOAT = DType.FLOAT32
X = Leaf(DType.INT8, "x")
EVERY = np.arange(-128, 128, dtype=np.int8)
SCALE = np.float32(0.0317)


def real(value: float) -> Expr:
    return const(value, FLOAT)


def dequantised() -> Expr:
    return call("mul", cast(X, FLOAT), real(float(SCALE)))


def ends(x: Expr) -> tuple[np.ndarray, np.ndarray]:
    found = enclosure(x, X, EVERY)
    assert found is not None
    low, high = (np.broadcast_to(end, EVERY.shape) for end in found)
    return low, high


def test_what_is_rounded_once_is_known() -> None:
    low, high = ends(call("div", dequantised(), real(0.7)))
    wanted = EVERY.astype(np.float32) * SCALE / np.float32(0.7)
    assert np.array_equal(low, wanted) and np.array_equal(high, wanted)


@pytest.mark.parametrize("name", ["exp", "expm1", "tanh", "erf", "sigmoid", "atan", "sinh", "sin", "cos"])
def test_functions(name: str) -> None:
    """All floats that are up to LIBRARY units away, and hardly others."""
    from math import erf

    functions: dict[str, Callable[..., np.ndarray]] = {
        "erf": np.vectorize(erf), "sigmoid": lambda v: 1 / (1 + np.exp(-v)), "atan": np.arctan
    }  # fmt: skip
    exact = functions.get(name, getattr(np, name, None))(  # type: ignore[misc]
        (EVERY.astype(np.float32) * SCALE).astype(np.float64)
    )
    low, high = ends(call(name, dequantised()))
    unit = np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)
    assert (low <= exact - LIBRARY * unit * (exact != 0)).all()
    assert (high >= exact + LIBRARY * unit * (exact != 0)).all()
    assert (high - low <= (4 * LIBRARY + 4) * unit).all()


@pytest.mark.parametrize("hidden", [False, True])
@pytest.mark.parametrize("name", ["add", "sub"])
def test_products_that_are_added_may_be_exact(name: str, hidden: bool) -> None:
    """As one instruction computes them: also where one of two is chosen before."""
    square = call("mul", dequantised(), dequantised())
    term = (
        select(call("lt", dequantised(), real(0), dtype=DType.BOOL), square, dequantised())
        if hidden
        else square
    )
    low, high = ends(call(name, term, real(-0.3)))
    other = float(np.float32(-0.3))
    for k, v in enumerate(EVERY):
        x = np.float32(v) * SCALE
        if hidden and v >= 0:
            continue
        exact = Fraction(float(x)) ** 2
        fused = exact + Fraction(other) if name == "add" else exact - Fraction(other)
        rounded = np.float32(x * x) + np.float32(other) * (1 if name == "add" else -1)
        for value in (np.float32(float(fused)), rounded):
            assert low[k] <= value <= high[k]


def test_conditions() -> None:
    """Where both are possible, the ends of both."""
    near = call("sub", call("exp", dequantised()), real(1))
    below = call("lt", near, real(0), dtype=DType.BOOL)
    low, high = ends(select(below, real(-5), real(7)))
    assert np.array_equal(low[:128], np.full(128, -5.0)) and np.array_equal(high[129:], np.full(127, 7.0))
    assert (low[128], high[128]) == (-5, 7)  # exp(0) may be just below 1


@pytest.mark.parametrize(
    "x",
    [
        call("log", dequantised()),  # NaN
        call("div", real(1), dequantised()),  # by 0
        call("sin", call("exp", dequantised())),  # neither rises nor is its argument known
        call("add", cast(X, DType.FLOAT64), const(1, DType.FLOAT64)),
        cast(call("add", cast(X, DType.INT32), const(100)), DType.INT8),  # wraps
    ],
)
def test_what_is_not_known(x: Expr) -> None:
    assert enclosure(x, X, EVERY) is None
