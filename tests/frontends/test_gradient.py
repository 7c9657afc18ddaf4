"""Derivatives that Gradient gives, against differences of the function itself in double precision."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from aot_model.errors import CompileError
from aot_model.pipeline import Request, compile_model
from batch import Case, run_cases

Function = Callable[..., np.ndarray]


def _sigmoid(x: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-x)))


CASES: dict[str, tuple[list[onnx.NodeProto], Function, list[tuple[int, ...]]]] = {
    "broadcast": (
        [helper.make_node("Mul", ["a", "b"], ["t"]), helper.make_node("Sub", ["t", "b"], ["y"])],
        lambda a, b: a * b - b,
        [(2, 3), (3,)],
    ),
    "quotient": ([helper.make_node("Div", ["a", "b"], ["y"])], lambda a, b: a / b, [(2, 3), (2, 1)]),
    "layer": (
        [
            helper.make_node("MatMul", ["a", "b"], ["t"]),
            helper.make_node("Tanh", ["t"], ["u"]),
            helper.make_node("Sigmoid", ["u"], ["v"]),
            helper.make_node("ReduceMean", ["v"], ["y"], keepdims=0),
        ],
        lambda a, b: _sigmoid(np.tanh(a @ b)).mean(),
        [(2, 3), (3, 4)],
    ),
    "functions": (
        [
            helper.make_node("Exp", ["a"], ["e"]),
            helper.make_node("Sqrt", ["e"], ["r"]),
            helper.make_node("Sin", ["b"], ["s"]),
            helper.make_node("Cos", ["s"], ["c"]),
            helper.make_node("Transpose", ["c"], ["p"]),
            helper.make_node("Mul", ["r", "p"], ["m"]),
            helper.make_node("Relu", ["m"], ["n"]),
            helper.make_node("Log", ["e"], ["l"]),
            helper.make_node("Neg", ["l"], ["k"]),
            helper.make_node("Add", ["n", "k"], ["o"]),
            helper.make_node("Flatten", ["o"], ["f"]),
            helper.make_node("ReduceSum", ["f"], ["y"]),
        ],
        lambda a, b: (np.maximum(np.sqrt(np.exp(a)) * np.cos(np.sin(b)).T, 0) - a).sum(),
        [(2, 3), (3, 2)],
    ),
    "not read": ([helper.make_node("Identity", ["a"], ["y"])], lambda a, b: a, [(2,), (3,)]),
}


def _model(nodes: list[onnx.NodeProto], shapes: list[tuple[int, ...]]) -> onnx.ModelProto:
    gradient = helper.make_node(
        "Gradient", ["a", "b"], ["da", "db"], domain="ai.onnx.preview.training", xs=["a", "b"], y="y"
    )
    inputs = [
        helper.make_tensor_value_info(n, TensorProto.DOUBLE, s) for n, s in zip("abc", shapes, strict=False)
    ]
    graph = helper.make_graph(
        [*nodes, gradient], "g", inputs, [onnx.ValueInfoProto(name=n) for n in ("da", "db")]
    )
    return helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid("ai.onnx.preview.training", 1)],
        ir_version=10,
    )


def _differences(f: Function, arrays: list[np.ndarray], which: int) -> np.ndarray:
    result = np.zeros_like(arrays[which])
    for place in np.ndindex(result.shape):
        sides = []
        for step in (1e-6, -1e-6):
            moved = [a.copy() for a in arrays]
            moved[which][place] += step
            sides.append(f(*moved).sum())
        result[place] = (sides[0] - sides[1]) / 2e-6
    return result


def test_derivatives() -> None:
    rng = np.random.default_rng(5)
    cases, wanted = [], []
    for name, (nodes, f, shapes) in CASES.items():
        arrays = [rng.uniform(0.5, 2, s) for s in shapes]
        cases.append(Case(name, _model(nodes, shapes), tuple(arrays)))
        wanted.append([_differences(f, arrays, k) for k in range(2)])
    for case, outcome, want in zip(cases, run_cases(cases), wanted, strict=True):
        assert outcome.status == "ok", outcome.message
        for got, expected in zip(outcome.outputs, want, strict=True):
            np.testing.assert_allclose(got, expected, rtol=1e-5, atol=1e-7, err_msg=case.name)


@pytest.mark.parametrize("kind", ["Erf", "ReduceMax"])
def test_no_rule(kind: str, tmp_path: Path) -> None:
    path = tmp_path / "m.onnx"
    path.write_bytes(_model([helper.make_node(kind, ["a"], ["y"])], [(2,), (3,)]).SerializeToString())
    with pytest.raises(CompileError, match=f"derivative of {kind}"):
        compile_model(Request(path, "m"))


def _of_body(kind: str) -> list[onnx.NodeProto]:
    """y by a body that reads `a` from the graph around it."""
    double = helper.make_tensor_value_info
    found = [double(n, TensorProto.DOUBLE, [2]) for n in ("s", "t")]
    product, copy = (helper.make_node(n, i, ["t"]) for n, i in (("Mul", ["a", "a"]), ("Identity", ["a"])))
    if kind == "If":
        then, other = (helper.make_graph([n], "branch", [], found[1:]) for n in (product, copy))
        return [
            helper.make_node("ReduceMax", ["c"], ["m"], keepdims=0),
            helper.make_node("Cast", ["m"], ["which"], to=TensorProto.BOOL),
            helper.make_node("If", ["which"], ["y"], then_branch=then, else_branch=other),
        ]
    turn, on = double("i", TensorProto.INT64, []), double("on", TensorProto.BOOL, [])
    step = helper.make_node("Mul", ["s", "a"], ["t"])
    body = helper.make_graph([step], "turn", [turn, on, found[0]], [on, found[1]])
    return [
        helper.make_node("Constant", [], ["n"], value_int=3),
        helper.make_node("Loop", ["n", "", "c"], ["y"], body=body),
    ]


@pytest.mark.parametrize(
    ("nodes", "why"),
    [
        (_of_body("If"), "derivative of If"),
        (_of_body("Loop"), "derivative of Loop"),
        (
            [
                helper.make_node("Split", ["a"], ["p", "q"], num_outputs=2),
                helper.make_node("Mul", ["q", "q"], ["y"]),
            ],
            "derivative of Split",
        ),
        ([helper.make_node("MatMul", ["a", "b"], ["y"])], "product with a vector"),
        ([helper.make_node("Neg", ["a"], ["t"])], "what to derive"),
    ],
)
def test_ways_on_which_no_derivative_goes_are_refused(
    nodes: list[onnx.NodeProto], why: str, tmp_path: Path
) -> None:
    """Whatever output of a node leads to y, and whatever body reads `a`."""
    path = tmp_path / "m.onnx"
    path.write_bytes(_model(nodes, [(2,)] * 3).SerializeToString())
    with pytest.raises(CompileError, match=why):
        compile_model(Request(path, "m"))


def test_in_a_body_that_reads_the_graph_around_it(tmp_path: Path) -> None:
    """Part of the way to y is outside, where a body does not see it."""
    info = helper.make_tensor_value_info
    gradient = helper.make_node("Gradient", ["a"], ["da"], domain="ai.onnx.preview.training", xs=["a"], y="y")
    inner = [helper.make_node("Mul", ["t", "t"], ["y"]), gradient]
    then = helper.make_graph(inner, "then", [], [info("da", TensorProto.DOUBLE, [2])])
    copy = helper.make_node("Identity", ["a"], ["c"])
    other = helper.make_graph([copy], "other", [], [info("c", TensorProto.DOUBLE, [2])])
    net = _model([], [(2,)] * 3)
    del net.graph.node[:], net.graph.output[1]
    net.graph.node.extend(
        [
            helper.make_node("Exp", ["a"], ["t"]),
            helper.make_node("ReduceMax", ["c"], ["m"], keepdims=0),
            helper.make_node("Cast", ["m"], ["which"], to=TensorProto.BOOL),
            helper.make_node("If", ["which"], ["da"], then_branch=then, else_branch=other),
        ]
    )
    path = tmp_path / "m.onnx"
    path.write_bytes(net.SerializeToString())
    with pytest.raises(CompileError, match="in a body that reads the graph around it"):
        compile_model(Request(path, "m"))
