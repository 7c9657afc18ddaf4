"""Products of two matrices of bytes that are computed at run time, in Helium: against exact integers, in QEMU
and by the portable twins under sanitizers, with the columns of the second matrix neighbours or not.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from onnx import helper, numpy_helper

from batch import Case, compiled_case, for_any_processor, run_cases
from qemu import available

SHAPES = (
    # first, second (as it lies), whether it is transposed
    ((2, 12), (12, 4), False),
    ((3, 16), (5, 16), True),
    ((2, 3, 17), (2, 17, 7), False),
    ((2, 2, 13), (2, 33, 13), True),
    ((1, 4, 5, 40), (1, 4, 39, 40), True),
    ((3, 2, 48), (48, 34), False),
    ((64, 19), (35, 19), True),
)
KINDS = ((np.int8, 3, -5), (np.uint8, 128, 7), (np.int8, 0, 0), (np.uint8, 0, 255), (np.int8, -128, 0))
"""Types, and zero points of both."""


def _scale(depth: int) -> np.float32:
    """Of the results: no sum is halfway between two of them."""
    return np.float32(2.0123 * depth)


def _case(shapes: tuple[tuple[int, ...], tuple[int, ...], bool], kind: type, za: int, zb: int) -> Case:
    """Bytes become floats, are multiplied, and bytes again."""
    first, second, transposed = shapes
    constants = {"s": np.float32(0.5), "y_s": _scale(first[-1]), "a_z": kind(za), "b_z": kind(zb)}
    nodes = [helper.make_node("DequantizeLinear", [k, "s", f"{k}_z"], [f"{k}_f"]) for k in ("a", "b")]
    axes = list(range(len(second)))
    if transposed:
        nodes.append(helper.make_node("Transpose", ["b_f"], ["b_t"], perm=[*axes[:-2], axes[-1], axes[-2]]))
    nodes += [
        helper.make_node("MatMul", ["a_f", "b_t" if transposed else "b_f"], ["y_f"]),
        helper.make_node("QuantizeLinear", ["y_f", "y_s", "a_z"], ["y"]),
    ]
    element = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    inputs = [helper.make_tensor_value_info(k, element, s) for k, s in (("a", first), ("b", second))]
    graph = helper.make_graph(
        nodes,
        "g",
        inputs,
        [helper.make_tensor_value_info("y", element, None)],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()],
    )
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    rng, limits = np.random.default_rng(first[-1]), np.iinfo(kind)
    data = tuple(rng.integers(limits.min, limits.max + 1, s).astype(kind) for s in (first, second))
    return Case(f"{kind.__name__} {shapes} {za} {zb}", proto, data)


@cache
def _cases() -> tuple[tuple[Case, ...], tuple[np.ndarray, ...]]:
    found = [(_case(s, *k), s[2], *k) for s in SHAPES for k in KINDS]
    wanted = []
    for case, transposed, kind, za, zb in found:
        a, b = (x.astype(np.int64) - z for x, z in zip(case.inputs, (za, zb), strict=True))
        sums = a @ (b.swapaxes(-1, -2) if transposed else b)
        limits = np.iinfo(kind)
        y = np.rint(sums * 0.25 / float(_scale(a.shape[-1]))) + za
        wanted.append(np.clip(y, limits.min, limits.max).astype(kind))
    return tuple(case for case, *_ in found), tuple(wanted)


def test_they_are_taken(tmp_path: Path) -> None:
    for case in _cases()[0]:
        text = compiled_case(case, tmp_path / "m.onnx", "m", "cortex-m55").texts["m.c"]
        assert "two_by_two_bytes" in text, case.name
        assert ("collect_bytes(" in text) is (", False)" in case.name), case.name


@pytest.mark.parametrize(
    "board",
    [
        None,
        pytest.param(
            "m55", marks=pytest.mark.skipif(not available(), reason="needs QEMU and arm-none-eabi-gcc")
        ),
    ],
)
def test_exact(board: str | None) -> None:
    cases, wanted = _cases()
    if board is None:
        outcomes = run_cases(cases, "cortex-m55", make=for_any_processor)
    else:
        outcomes = run_cases(cases, "cortex-m55", sanitize=False, board=board, flags=("-O2",))
    for case, outcome, want in zip(cases, outcomes, wanted, strict=True):
        assert outcome.status == "ok", f"{case.name}: {outcome.message}"
        np.testing.assert_array_equal(outcome.outputs[0], want, case.name)
