"""Every pass keeps the meaning of a graph: the result of numpy before and after, and what the pass is for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aot_model.errors import CompileError
from aot_model.ir.graph import Graph, Node
from aot_model.ir.operator import Inputs, Operator, OperatorError
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value, constant
from aot_model.ops.conversion import Cast
from aot_model.ops.elementwise import op
from aot_model.ops.matmul import MatMul
from aot_model.ops.movement import Concat, Pad, Slice, Split, Transpose
from aot_model.ops.quantised_linear import DequantizeLinear, QuantizeLinear
from aot_model.ops.quantised_onnx import DynamicQuantizeLinear
from aot_model.ops.reduction import WideSum
from aot_model.ops.registry import OPERATORS, Build, load_all, required
from aot_model.ops.views import ReshapeTo
from aot_model.passes.expand import expand
from aot_model.passes.explain import reasons
from aot_model.passes.fold_constants import compute, fold_constants
from aot_model.passes.fuse_affine import fuse_affine
from aot_model.passes.manager import ORDER, Observer, run_passes
from aot_model.passes.move_transposes import move_transposes
from aot_model.targets.registry import parse_target

load_all()
Array = np.ndarray


def value(name: str, shape: Sequence[int]) -> Value:
    return Value(name, TensorType(DType.FLOAT32, tuple(shape)))


def run(graph: Graph, inputs: Sequence[Array]) -> list[Array]:
    """The outputs of a graph, node by node."""
    known: dict[Value, Value] = {v: constant(v.name, a) for v, a in zip(graph.inputs, inputs, strict=True)}
    for node in graph.nodes:
        results = compute(
            Node(
                node.op,
                [None if v is None else known.get(v, v) for v in node.inputs],
                node.outputs,
                node.name,
            )
        )
        assert results is not None, f"{node} cannot be computed"
        known.update((v, constant(v.name, a)) for v, a in zip(node.outputs, results, strict=True))
    return [known.get(v, v).data for v in graph.outputs]  # type: ignore[misc]


def real(seed: int, *shape: int) -> Array:
    return np.asarray(np.random.default_rng(seed).normal(size=shape), dtype=np.float32)


def kinds(graph: Graph) -> list[str]:
    return [n.kind for n in graph.nodes]


def keeps_meaning(change: Callable[[Graph], Any], graph: Graph, tolerance: float = 0.0) -> None:
    inputs = [real(k, *v.shape) for k, v in enumerate(graph.inputs)]
    before = run(graph, inputs)
    change(graph)
    graph.verify()
    for a, b in zip(before, run(graph, inputs), strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(b, a, rtol=tolerance, atol=tolerance)


def onnx_op(name: str, **attributes: Any) -> Operator:
    return OPERATORS["", name](**attributes)


# --- move_transposes ----------------------------------------------------------------------------------------


def _step(data: st.DataObject, build: Build, values: list[Value]) -> Value:
    """A random node over what is there."""
    x = data.draw(st.sampled_from(values))
    rank = len(x.shape)
    kind = data.draw(
        st.sampled_from(
            [
                "transpose",
                "transpose",
                "relu",
                "add",
                "bias",
                "concat",
                "pad",
                "slice",
                "mean",
                "reshape",
                "split",
                "quantise",
                "count",
            ]
        )
    )
    axis = data.draw(st.integers(0, rank - 1)) if rank else 0
    if kind == "transpose":
        return build(Transpose(tuple(data.draw(st.permutations(range(rank))))), x)
    if kind == "relu" or rank == 0:
        return build(op("Relu"), x)
    if kind == "add":
        return build(op("Add"), x, data.draw(st.sampled_from([v for v in values if v.shape == x.shape])))
    if kind == "bias":
        return build(op("Mul"), x, build.constant(real(rank, *x.shape[data.draw(st.integers(0, rank)) :])))
    if kind == "concat":
        return build(Concat(axis), x, data.draw(st.sampled_from([v for v in values if v.shape == x.shape])))
    if kind == "pad":
        pads = np.asarray(
            data.draw(st.lists(st.integers(0, 2), min_size=2 * rank, max_size=2 * rank)), np.int64
        )
        return build(Pad("constant"), x, build.constant(pads))
    if kind == "slice" and x.shape[axis] > 1:
        begin = data.draw(st.integers(0, x.shape[axis] - 2))
        numbers = [build.constant(np.asarray([n], np.int64)) for n in (begin, x.shape[axis], axis)]
        return build(Slice(), x, *numbers)
    if kind == "mean":
        return build(
            onnx_op("ReduceMean", keepdims=data.draw(st.integers(0, 1))),
            x,
            build.constant(np.asarray([axis], np.int64)),
        )
    if kind == "reshape":
        shape = (
            [d for d in x.shape if d != 1]
            if data.draw(st.booleans())
            else [*x.shape[:axis], 1, *x.shape[axis:]]
        )
        return build(ReshapeTo(tuple(shape)), x)
    if kind == "quantise":
        size = x.shape[axis] if data.draw(st.booleans()) else 1
        each = [build.constant(np.abs(real(axis, size)) / 8 + 0.01), build.constant(np.zeros(size, np.int8))]
        place = axis - data.draw(st.sampled_from([0, rank]))
        return build(DequantizeLinear(place), build(QuantizeLinear(place), x, *each), *each)
    if kind == "count":
        step = [build.constant(np.float32(0.25)), build.constant(np.int8(3))]
        axes = tuple(sorted(data.draw(st.sets(st.integers(0, rank - 1), min_size=1))))
        sums = build(WideSum(axes, data.draw(st.booleans())), build(QuantizeLinear(), x, *step))
        return build(Cast(), sums)
    if kind == "split" and x.shape[axis] % 2 == 0:
        return build.many(Split(axis, 2), x)[1]
    return build(op("Neg"), x)


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_moving_transposes_keeps_the_meaning(data: st.DataObject) -> None:
    x = value("x", data.draw(st.sampled_from([(2, 3, 4), (1, 3, 2, 2), (4, 2), (1, 1, 5)])))
    graph = Graph("g", [x])
    build = Build(graph.nodes, "n")
    values = [x]
    for _ in range(data.draw(st.integers(1, 10))):
        made = _step(data, build, values)
        if made.type.elements <= 4000:
            values.append(made)
    graph.outputs = list(dict.fromkeys(values[-2:]))
    graph.prune()
    keeps_meaning(move_transposes, graph, 1e-5)


def test_transposes_around_an_elementwise_chain_cancel() -> None:
    x = value("x", (1, 3, 4, 5))
    graph = Graph("g", [x])
    build = Build(graph.nodes, "n")
    a = build(op("Relu"), build(Transpose((0, 2, 3, 1)), x))
    graph.outputs = [build(Transpose((0, 3, 1, 2)), build(op("Mul"), a, build.constant(real(1, 3))))]
    keeps_meaning(move_transposes, graph)
    assert "Transpose" not in kinds(graph)


def test_transposes_around_quantisation_cancel() -> None:
    """Scales of an axis follow it."""
    x = value("x", (2, 3, 4))
    graph = Graph("g", [x])
    build = Build(graph.nodes, "n")
    each = [build.constant(np.abs(real(1, 3)) + 0.1), build.constant(np.asarray([3, 0, -7], np.int8))]
    one = [build.constant(np.float32(0.1)), build.constant(np.int8(0))]
    whole = build(QuantizeLinear(-1), build(Transpose((2, 0, 1)), x), *each)
    y = build(QuantizeLinear(), build(DequantizeLinear(2), whole, *each), *one)
    sums = build(WideSum((0,), False), y)
    graph.outputs = [build(DequantizeLinear(), build(Transpose((1, 2, 0)), y), *one), build(Cast(), sums)]
    keeps_meaning(move_transposes, graph)
    assert "Transpose" not in kinds(graph)


def test_extremes_do_not_ask_for_an_order() -> None:
    """Quantised by scales of its own, a tensor that is turned there and back is not turned."""
    x = value("x", (2, 3, 4))
    graph = Graph("g", [x])
    build = Build(graph.nodes, "n")
    quantised, scale, zero = build.many(DynamicQuantizeLinear(), build(Transpose((2, 0, 1)), x))
    graph.outputs = [build(Transpose((1, 2, 0)), quantised), scale, zero]
    expand(graph)
    keeps_meaning(move_transposes, graph)
    assert "Transpose" not in kinds(graph) and "Extremes" in kinds(graph)


def test_a_transpose_before_a_product_goes_into_the_weights() -> None:
    x = value("x", (1, 4, 5, 3))
    graph = Graph("g", [x])
    build = Build(graph.nodes, "n")
    rows = build(ReshapeTo((1, 60)), build(Transpose((0, 3, 1, 2)), x))
    graph.outputs = [build(MatMul(), rows, build.constant(real(1, 60, 7)))]
    keeps_meaning(move_transposes, graph, 1e-5)
    assert kinds(graph) == ["ReshapeTo", "MatMul"]


def test_a_transpose_of_extents_1_is_a_reshape() -> None:
    x = value("x", (1, 6, 1))
    graph = Graph("g", [x])
    graph.outputs = [Build(graph.nodes, "n")(Transpose((1, 2, 0)), x)]
    keeps_meaning(move_transposes, graph)
    assert kinds(graph) == ["ReshapeTo"]


def test_a_pass_says_why_it_did_not_fire() -> None:
    x, y = value("x", (2, 3)), value("y", (3, 2))
    graph = Graph("g", [x, y])
    build = Build(graph.nodes, "node")
    graph.outputs = [build(op("Add"), build(Transpose((1, 0)), x), y)]
    with reasons() as said:
        move_transposes(graph)
    assert any("Add 'node'" in line for line in said)


# --- fold_constants, expand, prune --------------------------------------------------------------------------


def test_constants_are_folded_through_several_nodes() -> None:
    x = value("x", (3,))
    graph = Graph("g", [x])
    build = Build(graph.nodes, "n")
    total = build(
        op("Add"),
        build(op("Mul"), build.constant(real(0, 3)), build.constant(real(1, 3))),
        build.constant(real(2, 3)),
    )
    graph.outputs = [build(op("Add"), x, total), total]
    keeps_meaning(fold_constants, graph)
    assert kinds(graph) == ["Add"] and graph.outputs[1].is_const
    assert not fold_constants(graph)


def test_a_fold_does_not_blow_constants_up() -> None:
    graph = Graph("g")
    build = Build(graph.nodes, "n")
    graph.outputs = [
        build(
            onnx_op("Expand"), build.constant(np.float32(1)), build.constant(np.asarray([1 << 20], np.int64))
        )
    ]
    assert not fold_constants(graph)


@pytest.mark.parametrize("name", ["Softmax", "Gemm", "Conv", "BatchNormalization"])
def test_expansion_keeps_the_meaning(name: str) -> None:
    inputs = {
        "Softmax": ([(2, 5)], {}),
        "Gemm": ([(2, 3), (4, 3), (4,)], {"transB": 1, "alpha": 0.5}),
        "Conv": ([(1, 2, 5, 5), (3, 2, 3, 3), (3,)], {"pads": (1, 0, 1, 2), "strides": (2, 1)}),
        "BatchNormalization": ([(1, 3, 2, 2), (3,), (3,), (3,), (3,)], {}),
    }[name]
    values = [value(f"x{k}", shape) for k, shape in enumerate(inputs[0])]
    graph = Graph("g", values)
    graph.outputs = [Build(graph.nodes, "n")(onnx_op(name, **inputs[1]), *values)]
    arrays = [np.abs(real(k, *v.shape)) + 0.5 for k, v in enumerate(values)]
    before = run(graph, arrays)
    assert expand(graph)
    graph.verify()
    np.testing.assert_allclose(run(graph, arrays)[0], before[0], rtol=1e-5, atol=1e-6)
    assert not any(n.op.has("expand") for n in graph.nodes)


def test_an_expansion_that_does_not_fit_names_the_node() -> None:
    x, w, b = value("x", (1, 2, 5, 5)), value("w", (3, 2, 3, 3)), value("b", (4,))
    graph = Graph("g", [x, w, b])
    out = value("y", (1, 3, 3, 3))
    graph.nodes.append(Node(onnx_op("Conv"), [x, w, b], [out], "conv7"))
    graph.outputs = [out]
    with pytest.raises(CompileError, match=r"conv7.*E301"):
        expand(graph)


# --- fuse_affine --------------------------------------------------------------------------------------------


def product(scaled: bool, biased: bool, read_twice: bool = False) -> Graph:
    """(x @ w + b) * m + a"""
    x = value("x", (2, 3))
    graph = Graph("g", [x])
    build = Build(graph.nodes, "n")
    y = build(MatMul(), x, build.constant(real(1, 3, 4)))
    first = y
    if biased:
        y = build(op("Add"), y, build.constant(real(2, 4)))
    if scaled:
        y = build(op("Mul"), y, build.constant(real(3, 4)))
    graph.outputs = [build(op("Add"), y, build.constant(real(4, 4))), *([first] if read_twice else [])]
    return graph


@pytest.mark.parametrize("biased", [False, True])
def test_a_scale_after_a_product_goes_into_its_weights(biased: bool) -> None:
    graph = product(True, biased)
    keeps_meaning(lambda g: (fuse_affine(g), fold_constants(g)), graph, 1e-5)
    assert "Mul" not in kinds(graph)


def test_a_product_that_others_read_keeps_its_weights() -> None:
    graph = product(True, True, read_twice=True)
    keeps_meaning(fuse_affine, graph, 1e-5)


# --- the manager --------------------------------------------------------------------------------------------


def test_every_pass_can_be_dumped_and_explained() -> None:
    lines: list[str] = []
    names = frozenset(n for n, _ in ORDER)
    run_passes(product(True, True), parse_target("c"), Observer(names, names, lines.append))
    text = "\n".join(lines)
    assert all(f"; after {n}" in text and f"; {n}: " in text for n in names)


@pytest.mark.parametrize("field", ["dump_after", "explain"])
def test_an_unknown_pass_is_an_error(field: str) -> None:
    with pytest.raises(CompileError, match="E501"):
        run_passes(product(True, True), parse_target("c"), Observer(**{field: frozenset({"nonsense"})}))


# --- refusals -----------------------------------------------------------------------------------------------


class StorageOnly(Operator):
    """Takes float16 and nothing else; it is not in the registry."""

    name = "StorageOnly"

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        if x.dtype is not DType.FLOAT16:
            raise OperatorError(f"takes float16, not {x.type}", "E202", "make it float16")
        return [x.type]


def of_float16(name: str) -> tuple[Graph, Value]:
    x = Value("x", TensorType(DType.FLOAT16, (3,)))
    y = Value("y", TensorType(DType.FLOAT16, (3,)))
    return Graph("g", [x], [y], [Node(StorageOnly(), [x], [y], name)]), x


def test_what_an_operator_refuses_in_a_pass_is_for_the_user() -> None:
    """widen gives it float32: that is no internal error, and the message names the node."""
    graph, _ = of_float16("the node")
    with pytest.raises(CompileError) as caught:
        run_passes(graph, parse_target("c"))
    (problem,) = caught.value.problems
    assert (problem.code, problem.hint) == ("E202", "make it float16")
    assert problem.where == "node 'the node' (StorageOnly)"
    assert problem.message == "takes float16, not float32[3]"


def test_what_a_pass_builds_and_an_operator_refuses_is_for_the_user(monkeypatch: pytest.MonkeyPatch) -> None:
    def pass_that_builds(graph: Graph) -> bool:
        Build(graph.nodes, "made")(StorageOnly(), value("z", (2,)))
        return True

    monkeypatch.setattr("aot_model.passes.manager.ORDER", (("pass_that_builds", pass_that_builds),))
    with pytest.raises(CompileError, match=r"node 'made' \(StorageOnly\): error: takes float16"):
        run_passes(of_float16("n")[0], parse_target("c"))
