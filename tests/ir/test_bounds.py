"""Bounds of integer operations are those of all their values."""

import itertools

import pytest

from aot_model.ir.bounds import bounds
from aot_model.ir.expr import Expr, call, const, leaf, select
from aot_model.ir.types import DType

RANGES = ((-128, 127), (-127, 5), (-9, -3), (0, 0), (3, 100), (-1, 0))


def signed(v: int, bits: int) -> int:
    """Modulo 2^bits."""
    return (v + (1 << (bits - 1))) % (1 << bits) - (1 << (bits - 1))


@pytest.mark.parametrize("low, high", RANGES)
@pytest.mark.parametrize("bits", [8, 32])
@pytest.mark.parametrize("op", ["abs", "neg"])
def test_of_one(op: str, bits: int, low: int, high: int) -> None:
    x = leaf("x", DType.INT8 if bits == 8 else DType.INT32, low, high)
    values = [signed(abs(v) if op == "abs" else -v, bits) for v in range(low, high + 1)]
    least, most = bounds(call(op, x))
    assert least is not None and most is not None
    assert least <= min(values) and max(values) <= most
    if bits == 32:
        assert (least, most) == (min(values), max(values))


def test_the_smallest_integer_has_no_bounds() -> None:
    x = leaf("x", DType.INT32, -(2**31), 0)
    assert bounds(call("abs", x)) == bounds(call("neg", x)) == (None, None)


@pytest.mark.parametrize("low, high", RANGES)
@pytest.mark.parametrize("by", [0, 1, 3, 31])
def test_of_a_shift(low: int, high: int, by: int) -> None:
    values = [v >> by for v in range(low, high + 1)]
    x, n = leaf("x", DType.INT32, low, high), leaf("n", DType.INT32, 0, 3)
    assert bounds(call("sar", x, const(by))) == (min(values), max(values))
    assert bounds(call("sar", x, n)) == (None, None)


@pytest.mark.parametrize("one, other", [*itertools.product(RANGES, RANGES)])
def test_of_common_bits(one: tuple[int, int], other: tuple[int, int]) -> None:
    values = [a & b for a in range(one[0], one[1] + 1) for b in range(other[0], other[1] + 1)]
    least, most = bounds(call("bitand", leaf("x", DType.INT32, *one), leaf("y", DType.INT32, *other)))
    assert least is None or least <= min(values)
    assert most is None or most >= max(values)
    assert (least is None) == (one[0] < 0 and other[0] < 0)


@pytest.mark.parametrize(
    "low, high",
    [
        (const(0), const(255)),
        (leaf("n", DType.INT32, 0, None), const(255)),
        (const(-128), leaf("n", DType.INT32, 5, 127)),
    ],
)
def test_of_a_quantisation_whose_limits_a_function_is_given(low: Expr, high: Expr) -> None:
    x = leaf("x", DType.FLOAT32)
    least, most = bounds(call("quantise_rint", x, const(3), low, high, dtype=DType.INT32))
    assert least == min(bounds(low)[0] or 0, 0) and most == bounds(high)[1]


def test_one_bound_of_what_is_chosen_is_as_good_without_the_other() -> None:
    x, no = leaf("x", DType.INT32), leaf("no", DType.BOOL)
    low, high = call("max", x, const(-3)), call("min", x, const(5))
    assert bounds(low) == (-3, None) and bounds(high) == (None, 5)
    assert (
        bounds(call("min", low, const(27)))
        == (-3, 27)
        == bounds(call("max", call("min", x, const(27)), const(-3)))
    )
    assert bounds(select(no, low, const(-9))) == (-9, None)
    # a sum may wrap, so that nothing is known of it
    assert bounds(call("add", low, const(1))) == (None, None)
    # small types have those of their own
    assert bounds(call("max", leaf("b", DType.INT8), const(-3, DType.INT8))) == (-3, 127)
