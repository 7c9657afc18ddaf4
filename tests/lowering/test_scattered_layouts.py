"""What calls say of results that may lie over their inputs holds at every distance, not only where planners
put them: layouts at random that obey all that was said give the same results.
"""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from aot_model.memory import planner
from batch import Case, run_cases
from onnx_models import model, tensor
from scattered import Scattered

LAYOUTS = 5
RNG = np.random.default_rng(3)


def drawn(*shape: int) -> np.ndarray:
    return RNG.uniform(-1, 1, shape).astype(np.float32)


def residual_products() -> onnx.ModelProto:
    """A sum is taken into the product whose result it is added to."""
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("MatMul", ["r", "w"], ["h"]),
        helper.make_node("Tanh", ["h"], ["t"]),
        helper.make_node("MatMul", ["t", "v"], ["p"]),
        helper.make_node("Add", ["p", "r"], ["s"]),
        helper.make_node("Softmax", ["s"], ["y"]),
    ]
    return model(
        nodes, [tensor("x", [1, 9, 24])], [tensor("y", [1, 9, 24])], {"w": drawn(24, 24), "v": drawn(24, 24)}
    )


def residual_convolutions() -> onnx.ModelProto:
    nodes = [
        helper.make_node("Conv", ["x", "u"], ["r"], pads=[1, 1, 1, 1]),
        helper.make_node("Conv", ["r", "w"], ["h"], pads=[1, 1, 1, 1]),
        helper.make_node("Relu", ["h"], ["t"]),
        helper.make_node("Conv", ["t", "v"], ["p"]),
        helper.make_node("Add", ["r", "p"], ["s"]),
        helper.make_node("Conv", ["s", "w"], ["b"], pads=[2, 1, 0, 1]),
        helper.make_node("Add", ["s", "b"], ["c"]),
        helper.make_node("Conv", ["c", "v"], ["y"]),
    ]
    return model(
        nodes,
        [tensor("x", [1, 12, 5, 4])],
        [tensor("y", [1, 12, 5, 4])],
        {"u": drawn(12, 12, 3, 3), "w": drawn(12, 12, 3, 3) / 8, "v": drawn(12, 12, 1, 1) / 4},
    )


def running_sums() -> onnx.ModelProto:
    nodes = [helper.make_node("Relu", ["x"], ["t0"])]
    for k, (axis, reverse) in enumerate([(0, 0), (1, 1), (0, 1), (1, 0)]):
        nodes.append(
            helper.make_node("CumSum", [f"t{k}", f"a{axis}"], [f"t{k + 1}"], reverse=reverse, exclusive=axis)
        )
    nodes.append(helper.make_node("Neg", ["t4"], ["y"]))
    return model(
        nodes, [tensor("x", [11, 13])], [tensor("y", [11, 13])], {"a0": np.asarray(0), "a1": np.asarray(1)}
    )


@pytest.mark.parametrize("made", [residual_products, residual_convolutions, running_sums])
def test_any_layout_that_is_permitted(made: object, monkeypatch: pytest.MonkeyPatch) -> None:
    proto = made()  # type: ignore[operator]
    shape = [d.dim_value for d in proto.graph.input[0].type.tensor_type.shape.dim]
    x = drawn(*shape)
    want = np.asarray(ReferenceEvaluator(proto).run(None, {"x": x})[0])
    monkeypatch.setitem(planner.ALGORITHMS, planner.DEFAULT, Scattered(4))  # type: ignore[misc]
    cases = [Case(f"l{k}", proto, (x,)) for k in range(LAYOUTS)]
    for outcome in run_cases(cases, "c", jobs=1, sanitize=False, flags=("-O0",)):
        assert outcome.status == "ok", outcome.message
        np.testing.assert_allclose(outcome.outputs[0], want, rtol=0, atol=1e-5)
