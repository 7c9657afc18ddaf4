"""Products of bytes on cores with the DSP extension: which are made of pairs, and what is computed once."""

from __future__ import annotations

import numpy as np
import pytest

from aot_model.c.byte_pairs import products
from aot_model.ir.expr import Expr, Var, call, cast, const, fresh, load, reduce
from aot_model.ir.index import dense_position, flatten, index_variables, mul
from aot_model.ir.types import DType
from aot_model.ir.values import Value, constant
from aot_model.lowering.loops import loop_nest
from aot_model.ops.quantised import QuantisedMul
from aot_model.ops.quantised_div import QuantisedDiv
from aot_model.ops.requantise import Rescale
from graphs import value

BY = QuantisedMul(5, -9, Rescale(3, 1503238553, -6))
X = value("x", 3, 16, dtype=DType.INT8)
X1 = value("x1", 16, dtype=DType.INT8)


def written(op: QuantisedMul | QuantisedDiv, *inputs: Value, turns: int = 4) -> str:
    index = index_variables(X.shape)
    element = op.express(flatten_of, inputs, index, 0)
    return loop_nest("f", X, index, dense_position(index, X.shape), element, turns=turns).function.body


def flatten_of(v: Value, index: tuple[Expr, ...]) -> Expr:
    return flatten(load(v, index))


@pytest.mark.parametrize(
    ("other", "halves"),
    [
        (value("b", 3, 16, dtype=DType.INT8), "smulbb smulbb smultt smultt"),
        (value("b", 16, dtype=DType.UINT8), "smulbb smulbb smultt smultt"),
        (value("b", 3, 1, dtype=DType.INT8), "smulbb smulbb smultb smultb"),
        (value("b", 3, 1, dtype=DType.INT16), None),
        (value("b", 3, 16, dtype=DType.INT16), None),
        (constant("b", np.arange(16).astype(np.int8)), "smulbb smulbb smultt smultt"),
    ],
)
def test_products_of_neighbours(other: Value, halves: str | None) -> None:
    body = written(BY, X, other)
    found = [word[4:10] for word in body.replace("(", " ").split() if word.startswith("dsp_smul")]
    assert found == (halves.split() if halves else [])


def test_loops_of_one_turn_have_none() -> None:
    assert "dsp_" not in written(BY, X, value("b", 3, 16, dtype=DType.INT8), turns=1)


def test_bytes_that_are_no_neighbours() -> None:
    v = index_variables((8,))[0]
    assert isinstance(v, Var)
    other = value("b", 8, dtype=DType.INT8)
    for stride in (1, 2):
        places = {X1: (mul(v, stride),), other: (v,)}
        element = BY.express(lambda one, _: flatten_of(one, places[one]), (X1, other), (v,), 0)  # noqa: B023
        assert bool(products([element], v)) == (stride == 1)


def test_terms_of_sums_are_no_products_of_a_turn() -> None:
    """What a sum runs over has no value outside of it (a ConvInteger 1x1 of two channels)."""
    v, k = index_variables((8,))[0], fresh("k", 2)
    assert isinstance(v, Var)
    rows, column = value("rows", 2, 8, dtype=DType.INT8), value("column", 2, dtype=DType.INT8)

    def product(row: Expr) -> Expr:
        return call(
            "mul", *(cast(flatten_of(x, i), DType.INT32) for x, i in ((rows, (row, v)), (column, (row,))))
        )

    assert products([product(const(1))], v) and not products([reduce("add", (k,), product(k))], v)


def test_what_a_row_shares_is_computed_before_its_loop() -> None:
    body = written(QuantisedDiv(-5, 3, Rescale(-20, 1503238553, 6)), X, value("b", 3, 1, dtype=DType.INT8))
    assert (
        body.index("aot_model_reciprocal(") < body.index("for (int32_t j") and body.count("reciprocal(") == 1
    )


def test_a_loop_along_the_divisor_has_its_own() -> None:
    body = written(QuantisedDiv(-5, 3, Rescale(-20, 1503238553, 6)), X, value("b", 16, dtype=DType.INT8))
    assert body.index("aot_model_reciprocal(") > body.index("for (int32_t j")
