"""Operators that only move elements keep every bit of small floats, infinities and NaN with them, where they
run and where they are folded; whatever Cast makes of a number, it makes in both.
"""

from __future__ import annotations

import itertools

import numpy as np
import onnx
from onnx import helper, numpy_helper

from aot_model.ir.types import DType
from batch import Case, run_cases

SMALL = [d for d in DType if d.is_float and d.bits == 8] + [DType.FLOAT4E2M1]
NUMBERS = (0, -0.0, 0.5, -0.5, 1.5, -1.5, 2.5, 3, -3, 7, 8, -8, -9, 15, 127.5, 128, -129, 255.5, 256, 448,
           464, 480, 57344, 61440, 65504, 65519, 65520, 1e5, -32769, 2.0**24 + 1, 2.0**31, -(2.0**31) - 1,
           2.0**32, 2.0**53 + 1, 2.0**63, -(2.0**63), 2.0**64, 1e30, -1e30, 1e39, 1e-3, 6e-8, 1e-40, 1e-46,
           2.0**-126, 2.0**-127, 1.5 * 2.0**-127, 2.0**-133, 2.0**-149, 2.0**127, np.inf, -np.inf,
           np.nan)  # fmt: skip
MOVING = {
    "Identity": ([], {}),
    "Transpose": ([], {}),
    "Reshape": ([np.asarray([-1])], {}),
    "Pad": ([np.zeros(4, np.int64)], {}),
}
CODES = {
    d: helper.np_dtype_to_tensor_dtype(d.numpy) for d in DType if not d.is_string and d.bits not in (2, 6)
}


def _twice(op: str, x: np.ndarray, result: int, more: list[np.ndarray], **attributes: int) -> onnx.ModelProto:
    """y of an input, z of the same elements as a constant."""
    names = [f"m{k}" for k in range(len(more))]
    nodes = [helper.make_node(op, [v, *names], [o], **attributes) for v, o in (("x", "y"), ("c", "z"))]
    code = helper.np_dtype_to_tensor_dtype(x.dtype)
    given = [numpy_helper.from_array(v, n) for n, v in zip(("c", *names), (x, *more), strict=True)]
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", code, x.shape)],
        [helper.make_tensor_value_info(n, result, None) for n in "yz"],
        given,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 24)], ir_version=11)


def test_bits_are_kept() -> None:
    cases, wanted = [], []
    for dtype, (op, (more, attributes)) in itertools.product(SMALL, MOVING.items()):
        x = np.arange(1 << dtype.bits, dtype=np.uint8).view(dtype.numpy).reshape(4, -1)
        cases.append(Case(f"{op} of {dtype.label}", _twice(op, x, CODES[dtype], more, **attributes), (x,)))
        wanted.append(x.T if op == "Transpose" else x)
    for case, want, outcome in zip(cases, wanted, run_cases(cases), strict=True):
        assert outcome.status == "ok", f"{case.name}: {outcome.message}"
        for found in outcome.outputs:
            assert found.tobytes() == want.tobytes(), case.name


def _numbers(dtype: DType) -> np.ndarray:
    if dtype.is_float:
        with np.errstate(all="ignore"):
            return np.asarray(NUMBERS, np.float64).astype(dtype.numpy)
    low, high = dtype.limits
    near = {v + k for v in (low, low // 2, 0, high // 2, high) for k in (-1, 0, 1)}
    wide = np.uint64 if low == 0 else np.int64
    return np.asarray(sorted(v for v in near if low <= v <= high), wide).astype(dtype.numpy)


def _same(a: np.ndarray, b: np.ndarray) -> bool:
    """The same bits, or NaN both, or zeros of either sign."""
    if a.tobytes() == b.tobytes():
        return True
    with np.errstate(invalid="ignore"):
        return np.array_equal(a.astype(np.float64), b.astype(np.float64), equal_nan=True)


def test_a_folded_cast_is_the_cast_that_runs() -> None:
    cases = []
    for before, after in itertools.product(CODES, repeat=2):
        x = _numbers(before)
        cases.append(
            Case(
                f"{before.label} to {after.label}", _twice("Cast", x, CODES[after], [], to=CODES[after]), (x,)
            )
        )
    for case, outcome in zip(cases, run_cases(cases), strict=True):
        assert outcome.status == "ok", f"{case.name}: {outcome.message}"
        assert _same(*outcome.outputs), case.name
