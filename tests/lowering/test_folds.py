"""Loops of reductions: what is the same in all turns is computed before them, an index that is read by
quotients has loops of its own. What the functions compute is checked by tests/operators.
"""

from __future__ import annotations

from aot_model.ir.expr import Expr, call, cast, const, load, reduce, select, var
from aot_model.ir.index import add, dense_position, floordiv, index_variables, less, mod
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.lowering.loops import loop_nest


def tensor(name: str, *shape: int) -> Value:
    return Value(name, TensorType(DType.FLOAT32, shape))


def text_of(out: Value, element: Expr, index: tuple[Expr, ...], turns: int = 1) -> str:
    return loop_nest("f", out, index, dense_position(index, out.shape), element, turns=turns).function.body


def loops_before(text: str, part: str) -> int:
    """How many loops are open where something is computed, once."""
    assert text.count(part) == 1, text
    before = text.partition(part)[0]
    return before.count("for (") - before.count("}")


def test_functions_are_called_in_the_outermost_loop_that_they_depend_on() -> None:
    x, w, y = tensor("x", 5), tensor("w", 5, 3), tensor("y", 5)
    index, r, s = index_variables(y.shape), var("r", 3), var("s", 4)
    place, scale = call("floor", load(x, index)), call("exp", load(w, (*index, r)))
    turn = call("mul", call("add", place, cast(s, DType.FLOAT32)), scale)
    text = text_of(y, reduce("add", (r, s), turn), index)
    assert loops_before(text, "aot_model_floor_float32(") == 1
    assert loops_before(text, "aot_model_exp_float32(") == 2
    assert loops_before(text, "(float)") == 3


def test_functions_of_outer_elements_are_called_before_the_last_loop() -> None:
    x, z, y = tensor("x", 5, 4), tensor("z", 3), tensor("y", 4, 5, 3)
    index = index_variables(y.shape)
    element = call("add", call("floor", load(x, (index[1], index[0]))), load(z, index[2:]))
    assert loops_before(text_of(y, element, index), "aot_model_floor_float32(") == 2


def test_what_reads_out_of_range_stays_behind_its_condition() -> None:
    x, y = tensor("x", 5), tensor("y", 6)
    index, r = index_variables(y.shape), var("r", 3)
    far = call("exp", load(x, index))  # there is no sixth
    none = const(0.0, DType.FLOAT32)
    turn = select(less(index[0], const(5)), call("mul", far, cast(r, DType.FLOAT32)), none)
    text = text_of(y, reduce("max", (r,), turn), index)
    assert loops_before(text, "aot_model_exp_float32(") == 2 and text.index("?") < text.index(
        "aot_model_exp_float32("
    )


def test_what_is_clamped_into_range_does_not() -> None:
    x, y = tensor("x", 5), tensor("y", 6)
    index, r = index_variables(y.shape), var("r", 3)
    place = call("cast", call("floor", load(x, (const(0),))), dtype=DType.INT32)
    near = call("min", call("max", add(place, index[0]), const(0)), const(4))
    inside = less(const(-1), add(place, r))
    turn = select(inside, call("exp", load(x, (near,))), const(0.0, DType.FLOAT32))
    text = text_of(y, reduce("max", (r,), turn), index)
    assert loops_before(text, "aot_model_exp_float32(") == 1


def test_quotients_of_a_turn_are_loops() -> None:
    """Windows that another tool has flattened: the rows and columns of 3 x 4 in one axis of 12."""
    x, y = tensor("x", 8, 9, 5), tensor("y", 6)
    index, r, s = index_variables(y.shape), var("r", 12), var("s", 5)
    at = load(x, (add(floordiv(r, 4), index[0]), add(mod(r, 4), index[0]), s))
    for over in ((s, r), (r, s)):
        text = text_of(y, reduce("add", over, at), index)
        assert "/" not in text and "%" not in text and text.count("for (") == 4
        assert "< 3;" in text and "< 4;" in text and "< 5;" in text


def test_quotients_of_quotients_are_loops() -> None:
    x, y = tensor("x", 4, 3, 2, 6), tensor("y", 6)
    index, r = index_variables(y.shape), var("r", 24)
    at = load(x, (mod(r, 4), mod(floordiv(r, 4), 3), floordiv(r, 12), *index))
    text = text_of(y, reduce("max", (r,), at), index)
    assert "/" not in text and "%" not in text
    places = [text.index(f"< {extent};") for extent in (6, 2, 3, 4)]
    assert places == sorted(places)


def test_quotients_of_sums_stay() -> None:
    """Those of r + i do not become loops over r."""
    x, y = tensor("x", 9), tensor("y", 6)
    index, r = index_variables(y.shape), var("r", 12)
    text = text_of(y, reduce("add", (r,), load(x, (floordiv(add(r, index[0]), 4),))), index)
    assert text.count("for (") == 2 and "/ 4" in text


def test_quotients_that_leave_a_rest_stay() -> None:
    """Ten terms are no rows of four."""
    x, y, r = tensor("x", 4, 3, 6), tensor("y", 6), var("r", 10)
    index = index_variables(y.shape)
    text = text_of(y, reduce("add", (r,), load(x, (mod(r, 4), floordiv(r, 4), *index))), index)
    assert text.count("for (") == 2 and "< 10;" in text and "/ 4" in text and "% 4" in text


def test_turns_that_are_written_out_stay_one_loop() -> None:
    x, y = tensor("x", 2, 2, 8), tensor("y", 8)
    index, r = index_variables(y.shape), var("r", 4)
    value = load(x, (mod(r, 2), floordiv(r, 2), *index))
    element = reduce("add", (r,), call("mul", value, value))
    text = text_of(y, element, index, turns=4)
    assert "/" not in text and "%" not in text and text.count("for (") == 1


def test_the_names_of_one_nest_have_no_block() -> None:
    x, y, r = tensor("x", 9), tensor("y", 1), var("r", 9)
    text = text_of(y, reduce("max", (r,), load(x, (r,))), index_variables(y.shape))
    assert text.count("{") == text.count("for (") == 1
