"""Which form of its computation an operator takes where a limit is met, and numbers there."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from oracles import expected
from rows import Row, onnx_model, rows_of, taken
from verdict import verdict

from aot_model.ir.expr import Call, Expr, Index, cell, walk
from aot_model.ir.graph import Graph
from aot_model.ir.index import dense_position, index_variables
from aot_model.ir.operator import OperatorError
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.convolution import _LONGEST_PERIOD, _gathered
from aot_model.ops.matmul import MatMul
from aot_model.ops.normalisation import scalar
from aot_model.ops.normalised_rows import LARGEST_EPSILON, MOST, Normalisation
from aot_model.ops.quantised import QuantisedSum
from aot_model.ops.quantised_div import QuantisedDiv
from aot_model.ops.quantised_softmax import MOST_TERMS, QuantisedSoftmax
from aot_model.ops.quantised_tables import SigmoidInt16
from aot_model.ops.registry import OPERATORS, Build, load_all
from aot_model.ops.requantise import Rescale
from aot_model.ops.rounded_softmax import RoundedSoftmax
from aot_model.ops.scaled_words import Operand, scaled_product, scaled_sum
from aot_model.ops.signal import fourier
from aot_model.ops.softmax_rows import softmax_rows
from aot_model.ops.strings import possible
from aot_model.ops.tree_ensemble import TreeEnsemble
from aot_model.ops.windows import check_windows
from aot_model.pipeline import Request, compile_model
from aot_model.text.regular_expressions import compile_pattern
from batch import Case, run_cases

load_all()

INT32 = 2**31 - 1
SOFTMAX = QuantisedSoftmax(axis=1, to=DType.INT8, beta=1.0, scale=0.1)
HALF_WORDS = Operand(DType.INT16, 0)


def changed(name: tuple[str, str], number: int = 0, **changes: Any) -> Row:
    """A row of the suite whose sample has other inputs or attributes."""
    row = rows_of(OPERATORS[name])[number]
    attributes = {**row.sample.attributes, **changes.pop("attributes", {})}
    return replace(row, sample=replace(row.sample, attributes=attributes, **changes))


def agrees(row: Row) -> bool:
    """Whether another implementation computes the same."""
    (outcome,) = run_cases([row.case], "c", jobs=1)
    known = expected(row)
    assert known.outputs and verdict(row, outcome, known) == "", (outcome.message, outcome.outputs, known)
    return True


def text_of(row: Row, folder: Path) -> str:
    """Its C."""
    (folder / "m.onnx").write_bytes(onnx_model(row).SerializeToString())
    return compile_model(Request(folder / "m.onnx", "m", "c")).texts["m.c"]


@pytest.mark.parametrize(
    ("number", "fits"), [(-129, False), (-128, True), (127, True), (128, False), (0.5, False)]
)
def test_numbers_of_a_type(number: float, fits: bool) -> None:
    build = Build([], "test")
    if fits:
        assert scalar(build, number, DType.INT8).data == number
    else:
        with pytest.raises(OperatorError, match="no number of int8"):
            scalar(build, number, DType.INT8)


def test_keys_end_within_a_slot() -> None:
    """Of 32 bytes, the last of which is 0."""
    words = (b"", b"a" * 31, b"a" * 32, b"a" * 33, b"a\0c", 7)
    assert [possible(word, DType.STRING32) for word in words] == [True, True, False, False, False, True]


@pytest.mark.parametrize(
    ("extent", "pads", "fits"),
    [
        (INT32 - 3, (0, 0), True),
        (INT32 - 2, (0, 0), False),
        (INT32 - 7, (2, 2), True),
        (INT32 - 7, (2, 3), False),
        (INT32 - 7, (3, 2), False),
    ],
)
def test_places_of_windows_are_words(extent: int, pads: tuple[int, int], fits: bool) -> None:
    """The last of three taps is not beyond the largest int32."""
    try:
        check_windows((extent,), (3,), (1,), pads, (1,))
    except OperatorError as error:
        assert not fits and "too large" in str(error)
    else:
        assert fits


@pytest.mark.parametrize(
    ("multiplier", "shift", "clamps"),
    [((255 << 8) - 1, 15, False), (255 << 8, 15, True), ((255 << 8) - 1, 14, True), (1, 0, False)],
)
def test_arguments_beyond_a_table_are_clamped(multiplier: int, shift: int, clamps: bool) -> None:
    """-2^15 * multiplier / 2^shift rounded is at most the last place before the last entry, or beyond it."""
    assert (2**15 * multiplier / 2**shift > (255 << 8) - 1) is clamps
    x = Value("x", TensorType(DType.INT16, (4,)))
    node = SigmoidInt16(True, multiplier, shift)
    y = node.express(_at, [x], index_variables((4,)), 0)
    assert any(part.op == "min" for part in walk(y) if isinstance(part, Call)) is clamps


def _at(value: Value, index: Index) -> Expr:
    return cell(value, dense_position(index, value.shape))


@pytest.mark.parametrize(("bits", "fits"), [(8, True), (28, True), (29, False)])
def test_steps_of_a_softmax(bits: int, fits: bool) -> None:
    """A factor of 30 bits: one is left for fractions of steps of 2^-28."""
    x = Value("x", TensorType(DType.INT16, (3, 4)))
    operator = RoundedSoftmax(0.1, 2.0**-bits, 0)
    try:
        operator.expand(Build([], "test"), [x])
    except OperatorError as error:
        assert not fits and "in steps of" in str(error)
    else:
        assert fits


@pytest.mark.parametrize(("zero", "shift"), [(0, 20), (127, 20), (1 << 10, 20), (1 << 11, 19), (1 << 15, 15)])
def test_places_of_a_softmax_leave_room_for_a_zero_point(zero: int, shift: int) -> None:
    rows = softmax_rows(0.1, 1.0, zero, 10)
    assert rows is not None and rows.shift == shift
    assert rows.offset + 2.0**shift < 2**31
    assert shift == 20 or (zero + 1.5) * 2.0 ** (shift + 1) > INT32, "one more has no room"


@pytest.mark.parametrize(("terms", "wide"), [(MOST_TERMS - 1, False), (MOST_TERMS, True)])
def test_sums_of_exponentials_that_are_one(terms: int, wide: bool) -> None:
    """2^13 of 2^19 are 2^32, which 32 bits do not hold."""
    assert (terms * 2**19 >= 2**32) is wide
    build = Build([], "test")
    SOFTMAX.expand(build, [Value("x", TensorType(DType.INT8, (1, terms)))])
    assert any(v.dtype is DType.INT64 for n in build.nodes for v in n.outputs) is wide
    x = np.full((1, terms), 5, np.int8)
    (outcome,) = run_cases([Case("softmax", partial(softmax_of, terms), (x,))], "c", jobs=1)
    assert outcome.status == "ok", outcome.message
    assert (outcome.outputs[0] == -128).all()


def softmax_of(terms: int) -> Graph:
    x = Value("x", TensorType(DType.INT8, (1, terms)))
    graph = Graph("softmax", [x])
    graph.outputs.append(Build(graph.nodes, "softmax")(SOFTMAX, x))
    return graph


@pytest.mark.parametrize("dtype", [DType.INT16, DType.UINT16])
def test_quotients_of_half_words(dtype: DType) -> None:
    """At the ends of their type, a difference of 17 bits from the zero point among them."""
    low, high = (int(v) for v in dtype.limits)
    ends = np.asarray([low, low + 1, -1 if low else 1, 0, 7, high - 1, high], dtype.numpy)
    a, b = (v.reshape(-1) for v in np.meshgrid(ends, ends))
    (outcome,) = run_cases([Case("quotients", partial(quotients_of, dtype, a.size), (a, b))], "c", jobs=1)
    assert outcome.status == "ok", outcome.message
    node = quotients_of(dtype, a.size).nodes[0]
    np.testing.assert_array_equal(outcome.outputs[0], node.op.reference([a, b])[0])


def quotients_of(dtype: DType, count: int) -> Graph:
    values = [Value(n, TensorType(dtype, (count,))) for n in "ab"]
    graph, (low, high) = Graph("quotients", values), (int(v) for v in dtype.limits)
    node = QuantisedDiv(high, low, Rescale(3, 1518500250, 9), low, high, dtype)
    graph.outputs.append(Build(graph.nodes, "quotients")(node, *values))
    return graph


@pytest.mark.parametrize(("length", "fast"), [(3, False), (4, True), (1 << 16, True), (65_610, False)])
def test_transforms_that_are_fast(length: int, fast: bool) -> None:
    build = Build([], "test")
    fourier(build, Value("x", TensorType(DType.FLOAT32, (1, 4, 1))), 1, length, length, False)
    assert [n.kind for n in build.nodes] == ["FastFourier" if fast else "Fourier"]


def test_rows_of_integers_are_packed() -> None:
    """Matrices by kernels, which take any strides; a vector is none."""
    for shape, strided in (((3, 4), True), ((4,), False)):
        x, w = Value("x", TensorType(DType.INT8, shape)), Value("w", TensorType(DType.INT8, (4, 2)))
        assert MatMul().reads_strided([x, w], 0, (1,) * len(shape)) is strided


@pytest.mark.parametrize(("a", "b"), [(0, 1 << 30), (1 << 30, 0), (0, 0), (-(1 << 30), 1 << 30)])
def test_terms_without_a_factor_are_rescaled(a: int, b: int) -> None:
    node = QuantisedSum(
        "add", Rescale(0, a, 0), Rescale(0, b, 0), Rescale(0, 1 << 30, 0), 15, rounding="single"
    )
    assert node._exact(16) is None


@pytest.mark.parametrize(
    ("period", "counted"), [(2, False), (_LONGEST_PERIOD, False), (_LONGEST_PERIOD + 1, True)]
)
def test_taps_that_an_output_meets(period: int, counted: bool) -> None:
    """One of a period's, or all of them are tried, where its square is no index."""
    met = _gathered(index_variables((9,))[0], 3, period, 1, 0)
    assert (met.tap is met.over) is counted
    assert period**2 <= 2**30 or counted


@pytest.mark.parametrize(
    ("by", "zero", "bits"),
    [
        (0.0, 0, 16),
        (506 / 2**25, 2**22 - 1, None),
        (504 / 2**25, 2**22 - 1, 9),
        (64.0, 0, None),
        (64 - 2.0**-25, 0, 9),
        (-64.0, 0, None),
    ],
)
def test_sums_of_half_words_have_room(by: float, zero: int, bits: int | None) -> None:
    found = scaled_sum(HALF_WORDS, HALF_WORDS, by, 0.0, zero, -32768, 32767, DType.INT16)
    assert (None if found is None else found.shift) == bits
    for size in (-32768, 32767) if found is not None else ():
        terms = found.factor_a, found.offset, found.offset + (size * found.factor_a >> 16)  # type: ignore[union-attr]
        assert max(map(abs, terms)) <= INT32


@pytest.mark.parametrize(("by", "bits"), [(2.0**-11, None), (2.0**-11 - 2.0**-42, 9), (2.0**-19, 16)])
def test_products_of_half_words_have_room(by: float, bits: int | None) -> None:
    found = scaled_product(HALF_WORDS, HALF_WORDS, by, 0, -32768, 32767, DType.INT16)
    assert (None if found is None else found.shift) == bits
    assert found is None or found.factor <= INT32


def rows_normalised(count: int = 4, epsilon: float = 1.0, gain: float = 1.0, offset: float = 0.0) -> bool:
    x, each = Value("x", TensorType(DType.INT8, (2, count))), np.ones(count)
    made = Normalisation(1, epsilon, True, 0, gain * each, offset * each)
    return made.build(Build([], "test"), x, -128, 127, DType.INT8) is not None


@pytest.mark.parametrize(
    ("given", "fits"),
    [
        ({"count": 1}, False),
        ({"count": 2}, True),
        ({"count": MOST}, True),
        ({"count": MOST + 1}, False),
        ({"epsilon": 0.0}, False),
        ({"epsilon": 2.0**-60}, True),
        ({"epsilon": np.nextafter(LARGEST_EPSILON, 0)}, True),
        ({"epsilon": LARGEST_EPSILON}, False),
        ({"gain": np.inf}, False),
        ({"offset": np.nan}, False),
        # of 4 numbers none is beyond 3 / sqrt(3), which 2 bits hold: 28 are behind the point
        ({"gain": 2.0**14}, True),
        ({"gain": np.nextafter(2.0**14, np.inf)}, False),
        # with 9 bits of fractions, and 2 for what is rounded
        ({"gain": 0.0, "offset": (2**31 - 3) / 2**9 - 0.5}, True),
        ({"gain": 0.0, "offset": (2**31 - 2) / 2**9 - 0.5}, False),
    ],
)
def test_normalised_rows_have_room(given: dict[str, Any], fits: bool) -> None:
    assert rows_normalised(**given) is fits


@pytest.mark.parametrize(
    ("given", "fits"),
    [
        ({"aggregate_function": -1}, False),
        ({"aggregate_function": 0}, True),
        ({"aggregate_function": 3}, True),
        ({"aggregate_function": 4}, False),
        ({"post_transform": -1}, False),
        ({"post_transform": 4}, True),
        ({"post_transform": 5}, False),
        ({"tree_roots": (0, 2)}, True),
        ({"tree_roots": (0, 3)}, False),
        ({"tree_roots": (-1, 2)}, False),
    ],
)
def test_numbers_that_stand_for_words(given: dict[str, Any], fits: bool) -> None:
    """Ways to aggregate and to transform scores; and roots of trees, of three nodes."""
    sample = rows_of(OPERATORS["ai.onnx.ml", "TreeEnsemble"])[2].sample
    node = TreeEnsemble(**{**sample.attributes, **given})
    x = Value("x", TensorType(DType.FLOAT32, (6, 1)))
    try:
        node.infer([x])
        node.expand(Build([], "test"), [x])
    except OperatorError:
        assert not fits
    else:
        assert fits


@pytest.mark.parametrize(("modes", "told"), [((0, 0, 0), False), ((0, 1, 0), True)])
def test_trees_of_one_kind_of_node(modes: tuple[int, ...], told: bool, tmp_path: Path) -> None:
    """No table says which."""
    given = {"nodes_modes": np.asarray(modes, np.uint8)}
    row = changed(("ai.onnx.ml", "TreeEnsemble"), 2, attributes=given)
    assert agrees(row)
    assert bool(re.search(r"\w+_mode\[", text_of(row, tmp_path))) is told


@pytest.mark.parametrize(("last", "copied"), [((1, 1), False), ((0, 2), True)])
def test_boxes_of_one_column(last: tuple[int, int], copied: bool, tmp_path: Path) -> None:
    """Its elements are no rows to copy."""
    x, places = np.arange(12, dtype=np.float32).reshape(3, 4), np.asarray([(0, 1), last])
    row = changed(
        ("", "ScatterND"),
        inputs=(x, places, x[2, :2]),
        attributes={"reduction": "none"},
        constants=frozenset({1}),
    )
    assert agrees(row)
    text = text_of(row, tmp_path)
    assert bool(re.search(r"memcpy\(y \+ \w+, updates", text)) is copied, text
    assert ("row[0] = from[0]" in text) is not copied, text


@pytest.mark.parametrize("threshold", [-(2.0**31), -(2.0**31) - 0.5, np.nan, 2.0**31, -np.inf])
def test_thresholds_at_the_ends_of_integers(threshold: float) -> None:
    """The least one is above no threshold of its own; nothing is above what is no number."""
    x = np.asarray([[-(2**31), -(2**31) + 1, 0, 2**31 - 1]], np.int32)
    given = {"threshold": threshold}
    (outcome,) = run_cases(
        [changed(("ai.onnx.ml", "Binarizer"), 3, inputs=(x,), attributes=given).case], "c", jobs=1
    )
    assert outcome.status == "ok", outcome.message
    np.testing.assert_array_equal(outcome.outputs[0], x.astype(np.float64) > np.float32(threshold))


def test_one_place_that_is_written() -> None:
    """Its coordinates are a vector, not a list of them."""
    x, update = np.arange(12, dtype=np.float32).reshape(3, 4), np.asarray([7, 8, 9, 10], np.float32)
    for at, what in (([-1], update), ([1, 2], update[0])):
        row = changed(("", "ScatterND"), inputs=(x, np.asarray(at), what), constants=frozenset())
        assert agrees(row)


@pytest.mark.parametrize(
    ("low", "high", "fits"),
    [
        (0.0, 4096.0, True),
        (0.0, 8192.0, True),  # one band does not reach it
        (-1.0, 4096.0, False),
        (300.0, 300.0, True),
        (301.0, 300.0, False),
        (0.0, 8193.0, False),
        (4300.0, 4345.0, True),  # the last of 9 frequencies, and one more
        (4300.0, 4500.0, False),
    ],
)
def test_bands_of_a_filter_bank(low: float, high: float, fits: bool) -> None:
    given = [np.asarray(v) for v in (1, 16, 8192)] + [np.asarray(v, np.float32) for v in (low, high)]
    row = changed(("", "MelWeightMatrix"), inputs=tuple(given))
    assert agrees(row) if fits else not taken(row.operator, *given, said="its bands")


def test_slices_to_the_first_element_and_beyond() -> None:
    """-5 is the first of five, which is left out as an end; -6 is before it."""
    x, least, most = np.arange(5, dtype=np.float32), -(2**63), 2**63 - 1
    ends = [(4, -5), (4, -6), (4, -7), (4, least), (-1, 0), (7, -6), (-5, 4), (-6, 5), (0, most)]
    rows = [
        changed(
            ("", "Slice"),
            inputs=(x, *(np.asarray([v], np.int64) for v in (start, end, 0, step))),
            constants=frozenset({1, 2, 3, 4}),
        )
        for start, end in ends
        for step in (-1, -2, 1)
        if len(x[start:end:step])
    ]
    assert len(rows) > 10
    outcomes = run_cases([row.case for row in rows], "c", jobs=1, flags=("-O0",), sanitize=False)
    for row, outcome in zip(rows, outcomes, strict=True):
        known = expected(row)
        assert known.outputs and verdict(row, outcome, known) == "", row.sample.inputs


@pytest.mark.parametrize(("states", "bits"), [(256, 8), (257, 16)])
def test_automata_of_as_many_states_as_a_byte_tells_apart(states: int, bits: int, tmp_path: Path) -> None:
    """Words of 25 letters, which have no state in common but those of the beginning and the end."""
    words = [*(letter * 25 for letter in "abcdefghij"), "k" * (states - 242)]
    pattern = "|".join(words)
    assert len(compile_pattern(pattern).accepts) == states
    x = np.asarray([*words, *(w[:-1] for w in words), *(w + w[0] for w in words), ""], object)
    row = changed(("", "RegexFullMatch"), inputs=(x,), attributes={"pattern": pattern})
    assert agrees(row)
    assert set(re.findall(r"(\w+) \w+_next\[", text_of(row, tmp_path))) == {f"uint{bits}_t"}
