"""What is computed twice is computed once, and nothing else is taken for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from test_passes import keeps_meaning, kinds, onnx_op, real, value

from aot_model.frontends.read import read_model
from aot_model.ir.graph import Graph
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value, constant
from aot_model.ops.conversion import Cast
from aot_model.ops.elementwise import op
from aot_model.ops.registry import OPERATORS, Build
from aot_model.ops.state import Assign
from aot_model.passes.manager import run_passes
from aot_model.passes.share_results import share_results
from aot_model.targets.registry import parse_target
from batch import Case, run_cases


def _pair(first: Any, second: Any, *inputs: Value, of: Value | None = None) -> Graph:
    """The product of two operators on the same inputs (the second on `of`)."""
    graph = Graph("pair", list(inputs))
    build = Build(graph.nodes, "pair")
    one, two = build(first, *inputs), build(second, *((of,) if of is not None else inputs))
    graph.outputs = [build(op("Mul"), one, two)]
    return graph


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (onnx_op("LeakyRelu", alpha=0.5), onnx_op("LeakyRelu", alpha=0.5), True),
        (onnx_op("LeakyRelu", alpha=0.5), onnx_op("LeakyRelu", alpha=0.25), False),
        (onnx_op("LeakyRelu", alpha=0.0), onnx_op("LeakyRelu", alpha=-0.0), False),
        (onnx_op("Transpose", perm=(1, 0)), onnx_op("Transpose", perm=(1, 0)), True),
        (onnx_op("Sin"), onnx_op("Cos"), False),
        (onnx_op("Softmax", axis=0), onnx_op("Softmax", axis=1), False),
    ],
)
def test_operators_and_attributes(first: Any, second: Any, same: bool) -> None:
    graph = _pair(first, second, value("x", (3, 3)))
    before = kinds(graph)
    keeps_meaning(share_results, graph)
    assert kinds(graph) == (before[1:] if same else before)


@pytest.mark.parametrize(
    ("one", "two", "same"),
    [
        (np.float32([1, 2, 3]), np.float32([1, 2, 3]), True),
        (np.float32([1, 2, 0]), np.float32([1, 2, -0.0]), False),
        (np.float32([1, 2, 3]), np.float32([[1, 2, 3]]), False),
        (np.full(3, 2, np.float32), np.full((9, 3), 2, np.float32), False),
    ],
)
def test_constants_with_the_same_data(one: np.ndarray, two: np.ndarray, same: bool) -> None:
    x = value("x", (9, 3))
    graph = Graph("constants", [x])
    build = Build(graph.nodes, "constants")
    pair = [build(op("Mul"), x, constant(f"c{k}", c)) for k, c in enumerate((one, two))]
    graph.outputs = [build(op("Add"), *pair)]
    keeps_meaning(share_results, graph)
    assert len(graph.nodes) == (2 if same else 3)


def test_what_follows_what_is_the_same() -> None:
    """Chains, and nodes that read a result which was another's."""
    x = value("x", (2, 5))
    graph = Graph("chains", [x])
    build = Build(graph.nodes, "chains")
    ends = [build(op("Exp"), build(op("Neg"), x)) for _ in range(3)]
    graph.outputs = [build(op("Sub"), build(op("Add"), *ends[:2]), ends[2])]
    keeps_meaning(share_results, graph, 1e-6)
    assert kinds(graph) == ["Neg", "Exp", "Add", "Sub"]


def test_wider_types_are_computed_again_but_not_what_is_made_of_them() -> None:
    x = Value("x", TensorType(DType.INT8, (4, 4)))
    graph = Graph("wider", [x])
    build = Build(graph.nodes, "wider")
    wide = [build(Cast(DType.FLOAT32), x) for _ in range(3)]
    graph.outputs = [build(op("Add"), build(op("Exp"), wide[0]), build(op("Exp"), wide[1])),
                     build(op("Neg"), wide[2])]  # fmt: skip
    assert share_results(graph)
    assert kinds(graph) == ["Cast", "Cast", "Exp", "Add", "Neg"]


def test_two_outputs_of_a_model_stay_two() -> None:
    x = value("x", (2, 2))
    graph = Graph("outputs", [x])
    build = Build(graph.nodes, "outputs")
    graph.outputs = [build(op("Exp"), x), build(op("Exp"), x)]
    keeps_meaning(share_results, graph)
    assert len(set(graph.outputs)) == 2


def test_a_state_before_and_after_it_changes() -> None:
    x = value("x", (3,))
    state = Value("s", x.type, state=True)
    graph = Graph("state", [x])
    build = Build(graph.nodes, "state")
    before = build(op("Neg"), state)
    build(Assign(), state, x)
    graph.outputs = [build(op("Sub"), before, build(op("Neg"), state))]
    assert not share_results(graph)
    assert kinds(graph).count("Neg") == 2


@pytest.mark.parametrize("name", sorted(n for d, n in OPERATORS if not d and n.startswith("Random")))
def test_random_numbers_are_drawn_for_each(name: str) -> None:
    like = name.endswith("Like")
    given = {} if like else {"shape": (64,)}
    case = helper.make_model(
        helper.make_graph(
            [
                helper.make_node(name, ["x"] if like else [], ["a"], name="first", **given),
                helper.make_node(name, ["x"] if like else [], ["b"], name="second", **given),
                helper.make_node("Sub", ["a", "b"], ["d"]),
                helper.make_node("Add", ["d", "x"], ["y"]),
            ],
            "random",
            [helper.make_tensor_value_info("x", TensorProto.FLOAT, (64,))],
            [helper.make_tensor_value_info("y", TensorProto.FLOAT, (64,))],
        ),
        opset_imports=[helper.make_opsetid("", 22)],
        ir_version=10,
    )
    (outcome,) = run_cases([Case(name, case, (np.zeros(64, np.float32),))], "c")
    assert outcome.status == "ok", outcome.message
    assert np.count_nonzero(outcome.outputs[0]) > 60


def _dedicated(path: Path) -> list[str]:
    """A convolution whose three readers have pairs of their own, as quantisers write on demand."""
    rng = np.random.default_rng(3)
    numbers = {"s": np.float32(0.05), "z": np.int8(3), "t": np.float32(0.02), "zero": np.int8(0),
               "w": rng.integers(-127, 128, (4, 3, 3, 3)).astype(np.int8)}  # fmt: skip
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "s", "z"], ["xd"]),
        helper.make_node("DequantizeLinear", ["w", "t", "zero"], ["wd"]),
        helper.make_node("Conv", ["xd", "wd"], ["c"]),
    ]
    for k in range(3):
        nodes += [
            helper.make_node("QuantizeLinear", ["c", "s", "z"], [f"q{k}"]),
            helper.make_node("DequantizeLinear", [f"q{k}", "s", "z"], [f"d{k}"]),
        ]
    nodes += [
        helper.make_node("Relu", ["d0"], ["r"]),
        helper.make_node("MaxPool", ["d1"], ["m"], kernel_shape=[2, 2]),
        helper.make_node("Sigmoid", ["d2"], ["g"]),
    ]
    graph = helper.make_graph(
        nodes,
        "dedicated",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, 3, 8, 8))],
        [helper.make_tensor_value_info(n, TensorProto.FLOAT, None) for n in "rmg"],
        [numpy_helper.from_array(np.asarray(a), n) for n, a in numbers.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return list("rmg")


def test_pairs_of_their_own_for_every_reader(tmp_path: Path) -> None:
    path = tmp_path / "dedicated.onnx"
    names = _dedicated(path)
    model = read_model(path)
    run_passes(model.graph, parse_target("cortex-m4"))
    assert kinds(model.graph).count("Convolution") == 1
    x = real(5, 1, 3, 8, 8)
    session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
    (outcome,) = run_cases([Case("dedicated", onnx.load(path), (x,))], "c")
    assert outcome.status == "ok", outcome.message
    for ours, theirs in zip(outcome.outputs, session.run(names, {"x": x}), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-6)
