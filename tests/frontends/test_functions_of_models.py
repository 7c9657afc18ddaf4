"""A model's own functions, of another opset than the model's, and what it declares of its results."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.helper import make_node as node

from aot_model.cli import main
from aot_model.pipeline import Request, compile_model
from onnx_models import save, tensor

ort = pytest.importorskip("onnxruntime")


def opset(version: int) -> onnx.OperatorSetIdProto:
    return helper.make_opsetid("", version)


def inner_function() -> onnx.FunctionProto:
    """Softmax of opset 12 flattens; the axis is the function's attribute, with a default."""
    softmax = node("Softmax", ["a"], ["s"])
    softmax.attribute.append(
        onnx.AttributeProto(name="axis", type=onnx.AttributeProto.INT, ref_attr_name="axis")
    )
    mean = node("ReduceMean", ["a"], ["m"], axes=[1], keepdims=1)
    nodes = [softmax, mean, node("Add", ["s", "m"], ["b"])]
    return helper.make_function(
        "own", "Inner", ["a"], ["b"], nodes, [opset(12)], [], [helper.make_attribute("axis", 1)]
    )


def outer_function() -> onnx.FunctionProto:
    """A call in a branch, and two calls with other attributes."""

    def branch(call: onnx.NodeProto) -> onnx.GraphProto:
        return helper.make_graph([call], "branch", [], [tensor("c", [2, 3, 4])])

    chosen = node(
        "If",
        ["flag"],
        ["e"],
        then_branch=branch(node("Inner", ["a"], ["c"], domain="own")),
        else_branch=branch(node("Inner", ["a"], ["c"], domain="own", axis=2)),
    )
    again = node("Inner", ["a"], ["d"], domain="own", axis=2)
    nodes = [chosen, again, node("Mul", ["e", "d"], ["f"])]
    return helper.make_function(
        "own", "Outer", ["a", "flag"], ["f"], nodes, [opset(17), helper.make_opsetid("own", 1)]
    )


def with_functions() -> onnx.ModelProto:
    inputs = [tensor("x", [2, 3, 4]), tensor("flag", [], TensorProto.BOOL)]
    call = node("Outer", ["x", "flag"], ["y"], domain="own")
    graph = helper.make_graph([call], "g", inputs, [tensor("y", [2, 3, 4])])
    return helper.make_model(
        graph,
        opset_imports=[opset(20), helper.make_opsetid("own", 1)],
        ir_version=9,
        functions=[inner_function(), outer_function()],
    )


def inner(x: np.ndarray, axis: int) -> np.ndarray:
    """What Inner means: the softmax of opset 12 is over all axes from `axis` on."""
    e = np.exp(x)
    return np.asarray(e / e.sum(tuple(range(axis, x.ndim)), keepdims=True) + x.mean(1, keepdims=True))


def computed(path: Path, rows: list[dict[str, np.ndarray]]) -> list[list[np.ndarray]]:
    """What ONNX Runtime computes."""
    options = ort.SessionOptions()
    options.log_severity_level = 3
    session = ort.InferenceSession(str(path), options, providers=["CPUExecutionProvider"])
    return [session.run(None, row) for row in rows]


def verified(path: Path, rows: list[dict[str, np.ndarray]], outputs: list[list[np.ndarray]]) -> int:
    """The status of verify."""
    vectors = {f"in_{k}": np.stack([r[name] for r in rows]) for k, name in enumerate(rows[0])}
    vectors |= {f"out_{k}": np.stack([o[k] for o in outputs]) for k in range(len(outputs[0]))}
    np.savez(path.with_suffix(".npz"), **vectors)
    return main(["verify", str(path), "--vectors", str(path.with_suffix(".npz")), "--target", "c"])


def test_functions_of_another_opset_than_the_model(tmp_path: Path) -> None:
    path = save(with_functions(), tmp_path / "m.onnx")
    x = np.asarray(np.random.default_rng(1).normal(size=(2, 3, 4)), np.float32)
    rows = [{"x": x, "flag": np.asarray(flag)} for flag in (True, False)]
    outputs = [[inner(x, 1 if flag else 2) * inner(x, 2)] for flag in (True, False)]
    assert verified(path, rows, outputs) == 0


@pytest.mark.parametrize("declared", [[3], [5, 1], [1, 3, 1], []])
def test_a_wrong_shape_of_a_result_is_a_note(declared: list[int], tmp_path: Path) -> None:
    result = tensor("y", declared)
    graph = helper.make_graph([node("Relu", ["x"], ["y"])], "g", [tensor("x", [3, 1])], [result])
    path = save(helper.make_model(graph, opset_imports=[opset(20)], ir_version=9), tmp_path / "m.onnx")
    rows = [{"x": np.asarray([[-1], [2], [3]], np.float32)}]
    assert verified(path, rows, computed(path, rows)) == 0
    (note,) = compile_model(Request(path, "m", "c")).notes
    assert "'y' is declared float32" in note and "is float32[3,1]" in note


@pytest.mark.parametrize("version", [9, 13, 17])
def test_reductions_before_they_were_functions(version: int, tmp_path: Path) -> None:
    """ReduceLogSumExp is a function of ONNX from opset 18 on."""
    call = node("ReduceLogSumExp", ["x"], ["y"], axes=[1], keepdims=0)
    graph = helper.make_graph([call], "g", [tensor("x", [2, 5])], [tensor("y", [2])])
    path = save(helper.make_model(graph, opset_imports=[opset(version)], ir_version=8), tmp_path / "m.onnx")
    rows = [
        {"x": np.asarray(np.random.default_rng(k).normal(size=(2, 5)) * 60, np.float32)} for k in range(3)
    ]
    rows[0]["x"][0], rows[1]["x"][0, 1] = -np.inf, np.inf
    assert verified(path, rows, computed(path, rows)) == 0


def test_defaults_of_attributes(tmp_path: Path) -> None:
    """Of functions of the model's own opset; a call that says nothing, one that does, one in a function whose
    caller says nothing.
    """

    def referring(kind: str, inner: str, outer: str, **others: str) -> onnx.NodeProto:
        made = node(kind, ["a"], ["b"], **others)
        made.attribute.append(
            onnx.AttributeProto(name=inner, type=onnx.AttributeProto.FLOAT, ref_attr_name=outer)
        )
        return made

    opsets = [opset(20), helper.make_opsetid("own", 1)]
    leaky = helper.make_function(
        "own",
        "Leaky",
        ["a"],
        ["b"],
        [referring("LeakyRelu", "alpha", "slope")],
        opsets,
        [],
        [helper.make_attribute("slope", 0.25)],
    )
    around = helper.make_function(
        "own", "Around", ["a"], ["b"], [referring("Leaky", "slope", "given", domain="own")], opsets, ["given"]
    )
    calls = [
        node("Leaky", ["x"], ["p"], domain="own"),
        node("Leaky", ["x"], ["q"], domain="own", slope=3.0),
        node("Around", ["x"], ["r"], domain="own"),
    ]
    graph = helper.make_graph(calls, "g", [tensor("x", [4])], [tensor(name, [4]) for name in "pqr"])
    path = save(
        helper.make_model(graph, opset_imports=opsets, ir_version=10, functions=[leaky, around]),
        tmp_path / "m.onnx",
    )
    x = np.asarray([-1, -4, 2, 0], np.float32)
    assert verified(path, [{"x": x}], [[np.where(x < 0, x * s, x) for s in (0.25, 3, 0.25)]]) == 0


@pytest.mark.parametrize("stays", [False, True])  # a function with defaults is not inlined by onnx
@pytest.mark.parametrize("spelled", [("", "ai.onnx"), ("ai.onnx", ""), ("ai.onnx", "ai.onnx"), ("", "")])
def test_the_opset_of_a_function_in_either_spelling(
    spelled: tuple[str, str], stays: bool, tmp_path: Path
) -> None:
    """A softmax over all axes but the first in the function, over the last one around it."""
    outer, own = (helper.make_opsetid(domain, v) for domain, v in zip(spelled, (17, 11), strict=True))
    flat = helper.make_function("own", "F", ["a"], ["b"], [node("Softmax", ["a"], ["b"])], [own])
    if stays:
        flat.attribute_proto.append(helper.make_attribute("unused", 1))
    nodes = [node("F", ["x"], ["t"], domain="own"), node("Softmax", ["t"], ["y"])]
    graph = helper.make_graph(nodes, "g", [tensor("x", [2, 3, 4])], [tensor("y", [2, 3, 4])])
    opsets = [outer, helper.make_opsetid("own", 1)]
    path = save(
        helper.make_model(graph, opset_imports=opsets, ir_version=9, functions=[flat]), tmp_path / "m.onnx"
    )
    x = np.asarray(np.random.default_rng(1).normal(size=(2, 3, 4)), np.float32)
    e = np.exp(x)
    e = np.exp(e / e.sum((1, 2), keepdims=True))
    assert verified(path, [{"x": x}], [[e / e.sum(-1, keepdims=True)]]) == 0
