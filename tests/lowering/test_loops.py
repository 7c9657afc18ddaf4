"""Loop nests: neighbours merge where that needs no division, equal loops are equal text, overlaps and MACs
are right.

What the functions compute is checked by tests/operators; here, what they look like.
"""

from __future__ import annotations

import pytest

from aot_model.c.turns import LONGEST, is_short
from aot_model.ir.expr import Expr, call, cast, const, load, reduce, select, var
from aot_model.ir.index import add, dense_position, floordiv, index_variables, less, mod, mul
from aot_model.ir.program import Overlap
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.lowering.loops import LoopNest, loop_nest


def tensor(name: str, *shape: int, dtype: DType = DType.FLOAT32) -> Value:
    return Value(name, TensorType(dtype, shape))


def loops(nest: LoopNest) -> int:
    return nest.function.body.count("for (")


def nest_of(out: Value, element: object, position: Expr | None = None) -> LoopNest:
    index = index_variables(out.shape)
    return loop_nest(
        "f", out, index, dense_position(index, out.shape) if position is None else position, element(index)
    )  # type: ignore[operator]


def test_an_element_wise_operation_is_one_loop() -> None:
    x, y = tensor("x", 2, 3, 4, 5), tensor("y", 2, 3, 4, 5)
    nest = nest_of(y, lambda i: call("neg", load(x, i)))
    assert (
        loops(nest) == 1
        and "120" in nest.function.body
        and "/" not in nest.function.body
        and "%" not in nest.function.body
    )


@pytest.mark.parametrize(
    ("perm", "expected"),
    [((1, 0, 2, 3), 3), ((0, 1, 3, 2), 3), ((3, 2, 1, 0), 4), ((2, 3, 0, 1), 2), ((0, 1, 2, 3), 1)],
)
def test_axes_that_stay_together_merge(perm: tuple[int, ...], expected: int) -> None:
    """A transpose has a loop for each group of axes that keep their order."""
    x = tensor("x", 2, 3, 4, 5)
    y = tensor("y", *(x.shape[p] for p in perm))
    nest = nest_of(y, lambda i: load(x, tuple(i[perm.index(a)] for a in range(4))))
    assert loops(nest) == expected and "/" not in nest.function.body


def test_a_tensor_that_gets_another_shape_has_the_loops_of_its_own() -> None:
    """Each index by its axis, and no division in the innermost loop."""
    a, b, c, y = tensor("a", 4), tensor("b", 6), tensor("c", 5), tensor("y", 120)

    def element(i: tuple[Expr, ...]) -> Expr:
        row, column, channel = floordiv(i[0], 30), mod(floordiv(i[0], 5), 6), mod(i[0], 5)
        return call("add", call("add", load(a, (row,)), load(b, (column,))), load(c, (channel,)))

    nest = nest_of(y, element)
    assert loops(nest) >= 2 and "/" not in nest.function.body and "%" not in nest.function.body
    assert [n in nest.function.body for n in ("< 4", "< 6")] == [True, True]


def test_loops_beside_the_one_that_is_parted_stay() -> None:
    a, b, c, y = tensor("a", 4), tensor("b", 6), tensor("c", 3, 5), tensor("y", 5, 24, 3)

    def element(i: tuple[Expr, ...]) -> Expr:
        parted = call("add", load(a, (floordiv(i[1], 6),)), load(b, (mod(i[1], 6),)))
        return call("add", parted, load(c, (i[2], i[0])))

    text = nest_of(y, element).function.body
    assert [line.split(" < ")[1][0] for line in text.splitlines() if "for (" in line] == ["5", "4", "6", "3"]


@pytest.mark.parametrize("sizes", [(8, 6), (5, 7), (7, 7)])
def test_parts_of_an_index_that_do_not_nest_stay_divisions(sizes: tuple[int, int]) -> None:
    a, b, y = tensor("a", sizes[0]), tensor("b", sizes[1]), tensor("y", 24)
    nest = nest_of(y, lambda i: call("add", load(a, (mod(i[0], sizes[0]),)), load(b, (mod(i[0], sizes[1]),))))
    assert loops(nest) == 1 and "%" in nest.function.body


def test_a_broadcast_axis_keeps_its_loop() -> None:
    x, b, y = tensor("x", 4, 5, 6), tensor("b", 6), tensor("y", 4, 5, 6)
    assert loops(nest_of(y, lambda i: call("add", load(x, i), load(b, i[2:])))) == 2


def test_equal_loops_are_equal_text() -> None:
    """Names of indices and of values do not show in the text, so that the function is there once."""
    texts = set()
    for prefix in ("a", "zz"):
        x, y = tensor(prefix, 3, 4), tensor(prefix + "y", 3, 4)
        index = tuple(var(f"{prefix}{k}", n) for k, n in enumerate(y.shape))
        turns = var(f"{prefix}r", 4)
        total = reduce("add", (turns,), load(x, (index[0], turns)))
        texts.add(
            loop_nest(
                "f", y, index, dense_position(index, y.shape), call("mul", total, load(x, index))
            ).function.body
        )
    assert len(texts) == 1


def test_an_input_that_is_read_where_it_is_written_may_be_overwritten() -> None:
    x, b, y = tensor("x", 4, 6), tensor("b", 6), tensor("y", 4, 6)
    nest = nest_of(y, lambda i: call("add", load(x, i), load(b, i[1:])))
    assert nest.overlaps == (Overlap(nest.reads.index(x), 2, 0),)


def test_an_input_that_is_read_elsewhere_may_not() -> None:
    x, y = tensor("x", 6, 6), tensor("y", 6, 6)
    assert nest_of(y, lambda i: load(x, i[::-1])).overlaps == ()
    backwards = nest_of(y, lambda i: load(x, (i[0], add(const(5), mul(i[1], -1)))))
    assert backwards.overlaps == ()
    assert nest_of(y, lambda i: call("add", load(x, i), load(x, i[::-1]))).overlaps == ()


@pytest.mark.parametrize("rank", [6, 7, 8])
def test_every_loop_has_a_name(rank: int) -> None:
    shape = tuple(range(2, 2 + rank))
    text = nest_of(tensor("y", *shape), lambda i: load(tensor("x", *shape[::-1]), i[::-1])).function.body
    names = [line.split()[2] for line in text.splitlines() if "for (" in line]
    assert len(set(names)) == len(names) == rank


@pytest.mark.parametrize(
    ("of", "to", "slack"),
    [(DType.INT8, DType.FLOAT32, -3 * 24), (DType.FLOAT32, DType.INT8, 0), (DType.FLOAT32, DType.INT32, 0)],
)
def test_wider_results_run_over_inputs_that_are_still_needed(of: DType, to: DType, slack: int) -> None:
    x, y = tensor("x", 4, 6, dtype=of), tensor("y", 4, 6, dtype=to)
    assert nest_of(y, lambda i: call("cast", load(x, i), dtype=to)).overlaps == (Overlap(0, 1, slack),)


@pytest.mark.parametrize(("of", "expected"), [(DType.INT8, ()), (DType.FLOAT32, (Overlap(0, 1, 0, 320),))])
def test_parts_of_a_tensor_do_not_run_over_inputs(of: DType, expected: tuple[Overlap, ...]) -> None:
    """The left half is written before the right one is read: in the very place of the input, or nowhere."""
    x, y = tensor("x", 8, 10, dtype=of), tensor("y", 8, 10)

    def element(i: tuple[Expr, ...]) -> Expr:
        value = call("cast", load(x, i), dtype=DType.FLOAT32)
        return select(less(i[1], 5), value, call("neg", value))

    nest = nest_of(y, element)
    assert loops(nest) == 4 and nest.overlaps == expected


def test_multiply_accumulates_are_counted() -> None:
    x, w, y = tensor("x", 4, 6), tensor("w", 6, 5), tensor("y", 4, 5)
    k = var("k", 6)

    def product(i: tuple[Expr, ...]) -> Expr:
        return reduce("add", (k,), call("mul", load(x, (i[0], k)), load(w, (k, i[1]))))

    nothing = const(0.0, DType.FLOAT32)

    def padded(i: tuple[Expr, ...]) -> Expr:
        return reduce("add", (k,), select(less(const(0), i[0]), product(i).children[0], nothing))

    assert nest_of(y, product).macs == nest_of(y, padded).macs == 4 * 5 * 6
    assert nest_of(tensor("z", 4, 6), lambda i: load(x, i)).macs == 0


def test_loads_and_operations_are_counted() -> None:
    """Neither numbers nor indices; what is used twice once, what is in a sum as often as it has terms."""
    x, b, y, k = tensor("x", 4, 6), tensor("b", 8), tensor("y", 4), var("k", 6)
    two = const(2.0, DType.FLOAT32)

    def element(i: tuple[Expr, ...]) -> Expr:
        other = call("neg", load(b, (add(mul(i[0], 2), 1),)))
        terms = reduce("add", (k,), call("mul", load(x, (i[0], k)), two))
        return call("add", call("mul", other, other), terms)

    assert nest_of(y, element).operations == 4 * (4 + 6 * 3)


# --- what divides floats that are rounded ------------------------------------------------------------------


def quantised(x: Value, by: object, zero: Expr, y: Value) -> str:
    """C of y = x / by, rounded to int8."""

    def element(i: tuple[Expr, ...]) -> Expr:
        limits = (const(-128), const(127))
        ratio = call("div", load(x, i), by(i), dtype=DType.FLOAT32)  # type: ignore[operator]
        return cast(call("quantise_rint", ratio, zero, *limits, dtype=DType.INT32), DType.INT8)

    return nest_of(y, element).function.body


@pytest.mark.parametrize(("axes", "loop"), [((), 0), ((0,), 1), ((0, 1), 1), ((2,), None), ((1,), 2)])
def test_a_divisor_is_prepared_outside_of_the_loops_that_it_does_not_depend_on(
    axes: tuple[int, ...], loop: int | None
) -> None:
    x, y = tensor("x", 3, 4, 5), tensor("y", 3, 4, 5, dtype=DType.INT8)
    scales = tensor("s", *(x.shape[a] for a in axes))
    body = quantised(x, lambda i: load(scales, tuple(i[a] for a in axes)), const(3), y)
    before, _, behind = body.partition("aot_model_divisor_of(")
    assert ("aot_model_rint_by(" in body) == (loop is not None) == bool(behind)
    if loop is not None:
        assert before.count("for (") == loop and behind.count("for (") == 1


def test_a_divisor_that_is_not_always_there_is_read_where_it_is() -> None:
    """Of two tensors behind each other, each has scales of its own."""
    x, scales = tensor("x", 6, 4), tensor("s", 3)
    y = tensor("y", 6, 4, dtype=DType.INT8)

    def by(i: tuple[Expr, ...]) -> Expr:
        return call("select", call("lt", i[0], const(3)), load(scales, (i[0],)), const(1.0, DType.FLOAT32))

    assert "aot_model_divisor_of(" not in quantised(x, by, const(0), y)


@pytest.mark.parametrize(
    ("zero", "by_reciprocal"), [(DType.INT8, True), (DType.UINT8, True), (DType.INT16, False)]
)
def test_zero_points_that_parts_cannot_hold(zero: DType, by_reciprocal: bool) -> None:
    x, y, scale = tensor("x", 8), tensor("y", 8, dtype=DType.INT8), tensor("s")
    moved = cast(load(tensor("z", dtype=zero), ()), DType.INT32)
    assert ("aot_model_rint_by(" in quantised(x, lambda _: load(scale, ()), moved, y)) == by_reciprocal


def test_sums_of_a_few_terms_are_no_loop_in_a_short_turn() -> None:
    """Four turns at once; squares begin their sum, what may be -0 is added to 0."""
    x, y = tensor("x", 10, 2), tensor("y", 10)
    index, k = index_variables(y.shape), var("k", 2)
    value = load(x, (*index, k))
    for body, begins in ((call("mul", value, value), True), (call("neg", value), False)):
        element = reduce("add", (k,), body)
        text = loop_nest("f", y, index, index[0], element, turns=4).function.body
        assert text.count("for (") == 1 and "i += 4" in text and text.count("y[") == 6
        assert ("0.0f" in text) != begins
        alone = loop_nest("f", y, index, index[0], element).function.body
        assert alone.count("for (") == 2 and "0.0f" in alone


def test_as_many_terms_as_turns_begin_with_the_first() -> None:
    x, y = tensor("x", 10, 4), tensor("y", 10)
    index = index_variables(y.shape)
    k = var("k", 4)
    value = load(x, (*index, k))
    element = reduce("add", (k,), call("mul", value, value))
    text = loop_nest("f", y, index, index[0], element, turns=4).function.body
    assert "0.0f" not in text and text.count("for (") == 1


def test_what_compilers_do_better_stays_a_loop() -> None:
    """Of rows that are moved to rows of another tensor, and of long turns; what is computed is not moved."""
    x, y = tensor("x", 4, 9), tensor("y", 4, 12)
    index = index_variables(x.shape)
    long = load(x, index)
    for n in range(LONGEST):
        long = call("add", long, const(float(n + 1), DType.FLOAT32))
    for element, turns in ((load(x, index), 1), (long, 1), (call("neg", load(x, index)), 4)):
        text = loop_nest("f", y, index, dense_position(index, y.shape), element, turns=4).function.body
        assert [text.count("i++"), text.count("j++") == 1] == [1, turns == 1]
        assert text.count("for (") == text.count("}") == 2 and ("j += 4" in text) == (turns == 4)


def test_each_term_of_a_short_sum_counts() -> None:
    """A turn of four long terms is no short one, though a term is."""
    x, k = tensor("x", 4), var("k", 4)
    body = load(x, (k,))
    for n in range(LONGEST // 3):
        body = call("add", body, const(float(n + 1), DType.FLOAT32))
    assert is_short(body) and is_short(reduce("add", (var("j", 1),), body), 4)
    assert not is_short(reduce("add", (k,), body), 4)


@pytest.mark.parametrize(("dtype", "short"), [(DType.INT16, True), (DType.INT32, False)])
def test_ties_to_even_of_few_bits_are_short(dtype: DType, short: bool) -> None:
    """A shift, where 32 bits have room for it."""
    x = cast(load(tensor("x", 4, dtype=dtype), (var("k", 4),)), DType.INT32)
    assert is_short(call("requantise_even", x, const(1 << 30), const(-2))) is short


@pytest.mark.parametrize(
    ("dialect", "of", "to", "slack"),
    [
        ("scalar", DType.FLOAT16, DType.FLOAT32, -16),
        ("v8", DType.FLOAT16, DType.FLOAT32, None),
        ("v8", DType.FLOAT32, DType.FLOAT16, None),
        ("v8", DType.FLOAT16, DType.FLOAT16, 0),
        ("v8", DType.INT8, DType.FLOAT32, -24),
    ],
)
def test_short_floats_lie_apart_where_loops_become_vectors(
    dialect: str, of: DType, to: DType, slack: int | None
) -> None:
    x, y = tensor("x", 8, dtype=of), tensor("y", 8, dtype=to)
    index = index_variables((8,))
    nest = loop_nest("f", y, index, dense_position(index, (8,)), cast(load(x, index), to), dialect=dialect)
    assert [o.slack for o in nest.overlaps] == ([] if slack is None else [slack])


@pytest.mark.parametrize(
    ("kind", "loops_of_lanes"),
    [
        ("product", 2),
        ("exp", 2),
        ("of one row", 0),
        ("strided", 0),
        ("choice", 0),
        ("fold inside", 2),  # of the inner one
        ("integers", 0),
    ],
)
def test_folds_in_several_accumulators(kind: str, loops_of_lanes: int) -> None:
    dtype = DType.INT32 if kind == "integers" else DType.FLOAT32
    x, k, j = tensor("x", 64, 64, dtype=dtype), var("k", 64), var("j", 64)
    one = load(x, (const(0), k))
    body = {
        "exp": call("exp", one),
        "of one row": load(x, (const(0), const(3))),
        "strided": load(x, (k, const(0))),
        "choice": select(less(k, 3), one, const(0.0)),
        "fold inside": call("mul", one, reduce("add", (j,), load(x, (const(1), j)))),
    }.get(kind, call("mul", one, one))
    y = tensor("y", 1, dtype=dtype)
    index = index_variables((1,))
    nest = loop_nest("f", y, index, dense_position(index, (1,)), reduce("add", (k,), body), dialect="v8")
    assert nest.function.body.count("for (int32_t lane") == loops_of_lanes
