"""Folds of floats in several accumulators (c/lane_folds.py), against doubles: rows of whole vectors and not,
at the least length, over two loops, of terms that are functions or stay the same along a row; what is no
number wherever it stands.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from aot_model.c.lane_folds import ACCUMULATORS
from aot_model.c.statements import LONG_SUM
from aot_model.pipeline import Request, compile_model
from batch import Case, run_cases
from onnx_models import model, tensor

Array = np.ndarray
LEAST = 2 * ACCUMULATORS
LONG = LONG_SUM * ACCUMULATORS
ROWS = ((3, LEAST - 1), (3, LEAST), (3, LEAST + 1), (2, LEAST + 15), (2, 5, 48), (1, LONG - 1), (1, LONG + 3))
FOLDS: dict[str, Callable[..., Array]] = {
    "ReduceSum": np.sum,
    "ReduceMean": np.mean,
    "ReduceMax": np.max,
    "ReduceMin": np.min,
    "ReduceProd": np.prod,
    "ReduceL1": lambda x, axis: np.abs(x).sum(axis=axis),
    "ReduceL2": lambda x, axis: np.sqrt((x * x).sum(axis=axis)),
    "ReduceLogSumExp": lambda x, axis: np.log(np.exp(x).sum(axis=axis)),
}


def fold(op: str, shape: tuple[int, ...], axes: tuple[int, ...]) -> onnx.ModelProto:
    node = helper.make_node(op, ["x", "axes"], ["y"], keepdims=0)
    return model([node], [tensor("x", shape)], [tensor("y", None)], {"axes": np.asarray(axes, np.int64)}, 18)


def compare(found: list[tuple[Case, Array]]) -> None:
    for (case, wanted), outcome in zip(found, run_cases([case for case, _ in found], "host"), strict=True):
        assert outcome.status == "ok", f"{case.name}: {outcome.message}"
        np.testing.assert_allclose(outcome.outputs[0], wanted, rtol=3e-6, err_msg=case.name)


def test_like_doubles() -> None:
    found = []
    for shape in ROWS:
        axes = tuple(range(1, len(shape)))
        x = np.random.default_rng(shape[-1]).uniform(0.9, 1.1, shape).astype(np.float32)
        x[..., -1] *= 1.5  # the last one counts
        found += [
            (Case(f"{op} {shape}", fold(op, shape, axes), (x,)), f(x.astype(np.float64), axis=axes))
            for op, f in FOLDS.items()
        ]
    compare(found)


@pytest.mark.parametrize("op", ["ReduceMax", "ReduceMin"])
@pytest.mark.parametrize("what", [np.nan, np.inf, -np.inf, 0.0])
def test_what_is_no_number(op: str, what: float) -> None:
    """In each lane, in the first and the last turn, beside other ones and alone."""
    count = 3 * ACCUMULATORS + 5
    x = np.random.default_rng(1).normal(0, 1, (count + 2, count)).astype(np.float32)
    x[np.arange(count), np.arange(count)] = what
    x[count] = what
    x[count + 1, ::7] = what
    x[count + 1, 3::7] = np.nan
    compare([(Case(f"{op} {what}", fold(op, x.shape, (1,)), (x,)), FOLDS[op](x, axis=1))])


def test_terms_that_stay_the_same() -> None:
    """Of two inputs, one of which has one element a row: a difference and its square."""
    x, y = (np.random.default_rng(k).uniform(1, 2, (4, n)).astype(np.float32) for k, n in enumerate((50, 1)))
    nodes = [
        helper.make_node("Sub", ["x", "y"], ["d"]),
        helper.make_node("ReduceSumSquare", ["d", "axes"], ["z"]),
    ]
    proto = model(
        nodes,
        [tensor("x", x.shape), tensor("y", y.shape)],
        [tensor("z", None)],
        {"axes": np.asarray([1])},
        18,
    )
    wide = x.astype(np.float64) - y
    compare([(Case("differences", proto, (x, y)), (wide * wide).sum(axis=1, keepdims=True))])


@pytest.mark.parametrize(
    ("op", "shape", "axes", "target", "lanes"),
    [
        ("ReduceSum", (2, LEAST), (1,), "host", True),
        ("ReduceSum", (2, LEAST - 1), (1,), "host", False),
        ("ReduceSum", (LEAST, 2), (0,), "host", False),
        ("ReduceSum", (2, LEAST), (1,), "c", False),
        ("ReduceSum", (2, LEAST), (1,), "cortex-m55", False),
    ],
)
def test_where_they_are(
    op: str, shape: tuple[int, ...], axes: tuple[int, ...], target: str, lanes: bool, tmp_path: Path
) -> None:
    onnx.save(fold(op, shape, axes), tmp_path / "m.onnx")
    texts = compile_model(Request(tmp_path / "m.onnx", "m", target)).texts
    assert ("_of_lanes(" in texts["m.c"]) == lanes
