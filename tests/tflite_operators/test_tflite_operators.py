"""Operators of TFLite, each as a small model: the generated C against LiteRT's reference kernels or
TensorFlow Lite Micro.
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import cache
from pathlib import Path

import hybrid
import lists
import numpy as np
import pytest
import tflite
import tflite_page
from all_cases import CASES
from case import OpCase
from flatbuffers import flexbuffers
from tensorflow_operators import FLOAT64, node
from tflite_page import ELSEWHERE, operators_of

from aot_model.errors import CompileError
from aot_model.frontends import tflite as _frontend  # noqa: F401  # registers the rules
from aot_model.frontends.model import Bindings
from aot_model.frontends.read import read_model
from aot_model.frontends.tflite_conversion import RULES
from aot_model.ops.registry import MAX_TABLES
from aot_model.pipeline import Request, compile_model
from batch import Case, Outcome, run_cases
from tflite_models import FLOAT32, INT8, INT32, Op, T, build, ints
from tflite_reference import litert, tflm

pytestmark = pytest.mark.xdist_group("tflite-operators")
"""All cases are compiled together: by one worker."""

NAMES = [c.name for c in CASES]


@cache
def outcomes() -> dict[str, Outcome]:
    cases = [Case(c.name, c.model, c.inputs, c.dims, options={"arithmetic": c.arithmetic}) for c in CASES]
    return dict(zip(NAMES, run_cases(cases, "c"), strict=True))


def wanted(case: OpCase, outputs: int) -> list[np.ndarray]:
    if case.oracle.startswith("litert"):
        return litert(case.model, case.inputs, case.kernels)
    return tflm(case.model, [case.inputs], outputs)[0] if case.oracle == "tflm" else list(case.expected)


@pytest.mark.parametrize("case", CASES, ids=NAMES)
def test_an_operator_gives_what_its_oracle_gives(case: OpCase) -> None:
    outcome = outcomes()[case.name]
    assert outcome.status == "ok", outcome.message
    for k, (got, want) in enumerate(zip(outcome.outputs, wanted(case, len(outcome.outputs)), strict=True)):
        assert got.dtype == want.dtype and got.size == want.size, (
            k,
            got.dtype,
            got.shape,
            want.dtype,
            want.shape,
        )
        if want.dtype.kind == "f":
            bound = case.tolerance * max(
                float(np.nanmax(np.abs(np.where(np.isfinite(want), want, 0)), initial=0)), 1e-30
            )
            np.testing.assert_allclose(got.reshape(want.shape), want, rtol=0, atol=bound)
        else:
            np.testing.assert_array_equal(got.reshape(want.shape), want)


@pytest.mark.parametrize("name", hybrid.PACKED)
def test_constants_stay_as_small_as_they_are_in_the_file(name: str, tmp_path: Path) -> None:
    """Integers of 4 bits, and rows of 8 bits, with a scale of 4 bytes for each 8 elements at most."""
    path = tmp_path / "m.tflite"
    path.write_bytes(next(c for c in hybrid.CASES if c.name == name).model)
    constants = sorted(b.type.nbytes for b in compile_model(Request(path, "m", "c")).view.program.constants())
    assert sum(constants) <= hybrid.PACKED[name] + 64 * 4 + 64, constants


def test_every_rule_of_the_frontend_has_a_case() -> None:
    """Rules for names that the schema does not have cannot be reached."""
    run = set().union(*(operators_of(c.model) for c in CASES))
    wanted = {kind for kind in RULES if kind.startswith("CUSTOM:") or hasattr(tflite.BuiltinOperator, kind)}
    assert not wanted - run - set(ELSEWHERE), (
        f"operators that nothing tests: {sorted(wanted - run - set(ELSEWHERE))}"
    )
    assert not run & set(ELSEWHERE), f"they have cases now: {sorted(run & set(ELSEWHERE))}"


def test_the_page_of_operators_is_current() -> None:
    assert tflite_page.PAGE.read_text() == tflite_page.page(), "run tests/tflite_operators/tflite_page.py"


def test_names_are_unique() -> None:
    assert len(set(NAMES)) == len(NAMES)


@pytest.mark.parametrize(("kind", "reason"), [("PRELU", "slopes of int16"), ("DIV", "division of int16")])
def test_what_no_runtime_computes_is_refused(kind: str, reason: str) -> None:
    """LiteRT takes slopes of int16 for bytes, and shifts quotients of int16 by more than 31 bits."""
    tensors = [T(name, (4,), 7, (0.01,), (0,)) for name in "aby"]
    words = np.arange(1, 5, dtype=np.int16)
    model = build(tensors, [Op(kind, (0, 1), (2,))], [0, 1], [2])
    (outcome,) = run_cases([Case(kind, model, (words, words))], "c")
    assert outcome.status == "refused" and reason in outcome.message


def test_a_list_that_grows_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    grows = node("TensorListSetItem", resize_if_index_out_of_bounds=True)
    path.write_bytes(lists.loop(5, 5, custom=grows).model)
    with pytest.raises(CompileError, match=r"a list that grows is not supported \[E202\]"):
        compile_model(Request(path, "m", "c"))


@pytest.mark.parametrize(("items", "fits"), [(MAX_TABLES // 6, True), (MAX_TABLES // 6 + 1, False)])
def test_a_list_is_no_larger_than_other_tables(tmp_path: Path, items: int, fits: bool) -> None:
    """A file of some hundred bytes may ask for any number of items."""
    path = tmp_path / "m.tflite"
    path.write_bytes(lists.loop(items, 5).model)
    with nullcontext() if fits else pytest.raises(CompileError, match=r"its tables would have .* \[E202\]"):
        read_model(path, Bindings({}, {}, {}, 64), "tflm")


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        (Op("ADD", (3, 3), (4,), "AddOptions"), r"reads a list of tensors, which only .* \[E102\]"),
        (Op("CUSTOM:FlexTensorListStack", (0, 2), (4,)), r"is FLOAT32, not a list of tensors \[E102\]"),
        (Op("CUSTOM:FlexTensorListSetItem", (3, 1, 0), (3,)), "written already"),
        (Op("CUSTOM:FlexTensorListSetItem", (3, 1, 0), (5,)), r"an item .* does not fit a list .* \[E203\]"),
        (Op("CUSTOM:FlexTensorListReserve", (2, 1), (5,)), r"must be known at compile time \[E203\]"),
        (
            Op("CUSTOM:FlexTensorListReserve", (2, 6), (5,)),
            r"list.s items or its length is not known \[E203\]",
        ),
    ],
)
def test_what_is_no_list_is_refused(changed: Op, reason: str, tmp_path: Path) -> None:
    tensors = [
        T("x", (2, 3), 0, scale=()),
        lists.number("i"),
        T("shape", (1,), 2, scale=(), data=np.asarray([3], np.int32)),
        lists.variant("list"),
        T("y", (2, 3), 0, scale=()),
        lists.variant("other"),
        lists.number("n", 4),
    ]
    first = Op("CUSTOM:FlexTensorListFromTensor", (0, 2), (3,))
    path = tmp_path / "m.tflite"
    path.write_bytes(build(tensors, [first, changed], [0, 1], [4]))
    with pytest.raises(CompileError, match=reason):
        compile_model(Request(path, "m", "c"))


def test_what_a_loop_hands_on_is_not_copied(tmp_path: Path) -> None:
    """The sequence that it goes along is read where it is."""
    path = tmp_path / "m.tflite"
    path.write_bytes(lists.loop(1, 200).model)
    assert compile_model(Request(path, "m", "c")).view.workspace_size < 200 * 2 * 3 * 4 // 4


_CUBE = {"ksize": (1, 2, 2, 2, 1), "strides": (1, 2, 2, 2, 1), "padding": "VALID", "data_format": "NDHWC"}
_TILE = {"ksizes": (1, 2, 2, 1), "strides": (1, 1, 1, 1), "rates": (1, 1, 1, 1), "padding": "VALID"}


_CUT = bytes(flexbuffers.Dumps(["", "*\x04\n\x03ab"]))
"""An attribute whose name would be longer than the attribute."""


def _cube(**other: object) -> bytes:
    return node("", **(_CUBE | other))


@pytest.mark.parametrize(
    ("kind", "shape", "custom", "reason"),
    [
        ("MaxPool3D", (1, 4, 4, 4, 2), _cube(data_format="NCDHW"), r"channels first .*E202"),
        ("MaxPool3D", (1, 4, 4, 4, 2), _cube(padding="EXPLICIT"), r"padding 'EXPLICIT'.*E102"),
        ("MaxPool3D", (1, 4, 4, 4, 2), _cube(padding="\x1b[2J\n"), r"padding '\?\[2J\?'.*E102"),
        ("MaxPool3D", (1, 4, 4, 4, 2), _cube(ksize=(2, 2, 2, 2, 1)), r"over batch.*E202"),
        ("MaxPool3D", (1, 4, 4, 4, 2), _cube(ksize=(1, 2, 2, 2, 2)), r"over batch or channels.*E202"),
        ("MaxPool3D", (1, 4, 4, 4, 2), _CUT, r"attributes are not those.*E102"),
        ("AvgPool3D", (1, 4, 4, 4, 2), _cube(ksize=(1, 2, 2, 1)), r"'ksize' is .*E102"),
        ("AvgPool3D", (1, 4, 4, 4, 2), _cube(strides=(1, 0, 2, 2, 1)), r"'strides' is .*E102"),
        ("AvgPool3D", (1, 4, 4, 4, 2), b"", r"'ksize' is \[\].*E102"),
        ("AvgPool3D", (1, 4, 4, 4, 2), _cube()[:-9], r"attributes are not those .*E102"),
        ("AvgPool3D", (4, 4, 4, 2), _cube(), r"not the input of 3-D pooling"),
        ("Cast", (4,), node("", Truncate=True), r"Truncate.*E202"),
        ("ExtractImagePatches", (1, 4, 4, 2), node("", **_TILE | {"ksizes": (1, 5, 2, 1)}), r"larger than"),
        ("ExtractImagePatches", (1, 4, 4, 2), node("", **_TILE | {"ksizes": (1, 2, 5, 1)}), r"larger than"),
        ("ExtractImagePatches", (1, 64, 64, 1), node("", **_TILE | {"ksizes": (1, 33, 32, 1)}), r"overlap"),
        ("Selu", (4,), b"", r"E202"),
        ("ExtractImagePatches", (1, 4, 5, 2), node("", **_TILE), r"patches of .* are not supported .E202"),
    ],
)
def test_forms_of_tensorflow_that_are_refused(
    kind: str, shape: tuple[int, ...], custom: bytes, reason: str, tmp_path: Path
) -> None:
    path = tmp_path / "m.tflite"
    of = INT32 if kind == "Selu" else FLOAT64 if kind == "Cast" else FLOAT32
    x = T("x", shape, INT8, (0.5,), (3,)) if shape == (1, 4, 5, 2) else T("x", shape, of, scale=())
    tensors = [x, T("y", shape, FLOAT32, scale=())]
    path.write_bytes(build(tensors, [Op(f"CUSTOM:Flex{kind}", (0,), (1,), custom=custom)], [0], [1]))
    with pytest.raises(CompileError, match=reason):
        read_model(path, Bindings({}, {}, {}, 64), "tflm")


@pytest.mark.parametrize(("shifts", "axis"), [([1, 2], 1), ([1], 2), ([1], -3)])
def test_a_roll_needs_an_axis_for_each_shift(shifts: list[int], axis: int, tmp_path: Path) -> None:
    path = tmp_path / "m.tflite"
    tensors = [
        T("x", (3, 4), FLOAT32, scale=()),
        ints("shift", np.asarray(shifts, np.int32)),
        ints("axis", np.asarray([axis], np.int32)),
        T("y", (3, 4), FLOAT32, scale=()),
    ]
    path.write_bytes(build(tensors, [Op("CUSTOM:FlexRoll", (0, 1, 2), (3,))], [0], [3]))
    with pytest.raises(CompileError, match=r"shifts .* along axes .* of float32\[3,4\]"):
        read_model(path, Bindings({}, {}, {}, 64), "tflm")
