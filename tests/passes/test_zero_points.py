"""Quantised products with zero points that kernels do not have are products without them, and sums."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from aot_model.frontends.onnx import read_onnx
from aot_model.passes.manager import run_passes
from aot_model.targets.registry import parse_target
from batch import Case, run_cases

KINDS: dict[str, tuple[str, tuple[int, ...], tuple[int, ...], dict[str, Any], int, str]] = {
    "conv": ("Conv", (2, 3, 6, 7), (5, 3, 3, 3), {"pads": [1, 0, 2, 1], "strides": [2, 1]}, 0, "Convolution"),
    "line": ("Conv", (1, 4, 12), (3, 4, 5), {"pads": [2, 2], "dilations": [2]}, 0, "Convolution"),
    "volume": ("Conv", (1, 2, 4, 4, 5), (3, 2, 2, 2, 2), {"pads": [1] * 6}, 0, "Convolution"),
    "depthwise": ("Conv", (1, 6, 5, 5), (6, 1, 3, 3), {"group": 6, "pads": [1] * 4}, 0, ""),
    "groups": ("Conv", (1, 6, 5, 5), (4, 3, 3, 3), {"group": 2}, 0, ""),
    "transposed": ("ConvTranspose", (1, 3, 4, 4), (3, 5, 3, 3), {"strides": [2, 2]}, 1, ""),
    "rows": ("MatMul", (7, 33), (33, 6), {}, 1, "MatMul"),
    "one row": ("MatMul", (1, 40), (40, 9), {}, 1, "MatMul"),
    "batches": ("MatMul", (2, 3, 5, 8), (8, 4), {}, 1, "MatMul"),
    "gemm": ("Gemm", (4, 20), (7, 20), {"transB": 1}, 0, "MatMul"),
}
"""(operator, shape of x, of the weights, attributes, the axis of channels, the kind of integers or none)."""


def _model(kind: str, weights: str, bias: bool, rng: np.random.Generator) -> onnx.ModelProto:
    name, x, w, attributes, axis, _ = KINDS[kind]
    signed = not weights.startswith("u")
    bits = 4 if "4" in weights else 8
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    channels = w[axis]
    element = getattr(TensorProto, weights.upper())

    def narrow(array: np.ndarray, label: str) -> onnx.TensorProto:
        return helper.make_tensor(label, element, array.shape, array.reshape(-1).tolist())

    zeros = rng.integers(low, high + 1, channels)
    given = [
        numpy_helper.from_array(np.float32(0.031), "sx"), numpy_helper.from_array(np.uint8(117), "zx"),
        numpy_helper.from_array(np.float32(0.2), "sy"), numpy_helper.from_array(np.uint8(131), "zy"),
        numpy_helper.from_array((rng.uniform(0.01, 0.03, channels) * 256 / 2**bits).astype(np.float32), "sw"),
        narrow(rng.integers(low, high + 1, w), "w"), narrow(zeros, "zw"),
    ]  # fmt: skip
    if bias:
        given.append(numpy_helper.from_array(rng.normal(size=channels).astype(np.float32), "b"))
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "sx", "zx"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "sx", "zx"], ["xd"]),
        helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["wd"], axis=axis),
        helper.make_node(name, ["xd", "wd", *(["b"] if bias else [])], ["t"], **attributes),
        helper.make_node("QuantizeLinear", ["t", "sy", "zy"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "zeros",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, x)],
        [helper.make_tensor_value_info("y", TensorProto.UINT8, None)],
        given,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def _run(model: onnx.ModelProto, given: dict[str, np.ndarray]) -> np.ndarray:
    """As written: the runtime's own fusion asks for one zero point."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return np.asarray(session.run(None, given)[0])


@pytest.mark.parametrize("kind", KINDS)
def test_channels_with_zero_points_of_their_own(kind: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(sum(map(ord, kind)))
    types = ("int8", "uint8", "int4", "uint4")
    biases = (False, True) if KINDS[kind][0] != "MatMul" else (False,)
    models = {(t, b): _model(kind, t, b, rng) for t in types for b in biases}
    x = rng.normal(size=KINDS[kind][1]).astype(np.float32)
    outcomes = run_cases([Case(f"{t} {b}", m, (x,)) for (t, b), m in models.items()], "c")
    for (key, model), outcome in zip(models.items(), outcomes, strict=True):
        assert outcome.status == "ok", (key, outcome.message)
        theirs = _run(model, {"x": x}).astype(int)
        away = np.abs(outcome.outputs[0].astype(int) - theirs)
        assert away.max() <= 1 and np.count_nonzero(away) <= 1 + away.size // 50, (key, away.max())
        assert np.ptp(theirs) > 20, key
    integer = KINDS[kind][5]
    path = tmp_path / "zeros.onnx"
    onnx.save(models["int8", False], path)
    graph = read_onnx(path).graph
    run_passes(graph, parse_target("c"))
    products = [n for n in graph.nodes if n.kind.startswith("Convolution") or n.kind == "MatMul"]
    assert all(n.outputs[0].dtype.is_integer == bool(integer) for n in products) and products


PAIRS: dict[str, tuple[type[Any], int, int, tuple[int, ...], tuple[int, ...]]] = {
    "int16": (np.int16, -321, 1234, (2, 5, 9), (2, 9, 4)),
    "the first has one": (np.int16, 517, 0, (3, 7), (3, 7, 6)),
    "the second has one": (np.int16, 0, -900, (2, 1, 3, 8), (4, 8, 5)),
    "none has one": (np.int16, 0, 0, (4, 6), (6, 5)),
    "uint16": (np.uint16, 31000, 34021, (2, 3, 5, 16), (2, 3, 16, 5)),
    "uint16 as kernels have it": (np.uint16, 32768, 32768, (4, 6), (6, 3)),
    "at the ends": (np.uint16, 0, 65535, (5, 33), (33, 7)),
}
"""(type, zero points, shapes) of two computed 16-bit tensors."""


@pytest.mark.parametrize("kind", PAIRS)
def test_products_of_16_bits_with_zero_points(kind: str) -> None:
    dtype, a_zero, b_zero, a_shape, b_shape = PAIRS[kind]
    far = b_zero == 65535  # all products are negative
    scalars = {"sa": np.float32(1e-4), "za": dtype(a_zero), "sb": np.float32(1.3e-4), "zb": dtype(b_zero),
               "sy": np.float32(0.014 if far else 1e-3), "zy": dtype(b_zero if far else a_zero)}  # fmt: skip
    nodes = [
        made
        for x in "ab"
        for made in (
            helper.make_node("QuantizeLinear", [x, f"s{x}", f"z{x}"], [f"{x}q"]),
            helper.make_node("DequantizeLinear", [f"{x}q", f"s{x}", f"z{x}"], [f"{x}d"]),
        )
    ]
    nodes += [
        helper.make_node("MatMul", ["ad", "bd"], ["t"]),
        helper.make_node("QuantizeLinear", ["t", "sy", "zy"], ["y"]),
    ]
    graph = helper.make_graph(
        nodes,
        "pairs",
        [
            helper.make_tensor_value_info("a", TensorProto.FLOAT, a_shape),
            helper.make_tensor_value_info("b", TensorProto.FLOAT, b_shape),
        ],
        [helper.make_tensor_value_info("y", helper.np_dtype_to_tensor_dtype(np.dtype(dtype)), None)],
        [numpy_helper.from_array(np.asarray(v), n) for n, v in scalars.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    rng = np.random.default_rng(len(kind))
    least, most = np.iinfo(dtype).min, np.iinfo(dtype).max
    a, b = (
        (rng.integers(least, most, shape, endpoint=True) - zero).astype(np.float32) * scale
        for shape, zero, scale in ((a_shape, a_zero, scalars["sa"]), (b_shape, b_zero, scalars["sb"]))
    )
    (outcome,) = run_cases([Case(kind, model, (a, b))], "c")
    assert outcome.status == "ok", outcome.message
    theirs = _run(model, {"a": a, "b": b}).astype(int)
    assert np.abs(outcome.outputs[0].astype(int) - theirs).max() <= 1
    assert np.ptp(theirs) > 10_000


@pytest.mark.parametrize(
    ("w", "zero"), [((5,), ()), ((5,), (1,)), ((5, 3), (3,)), ((5, 1), (1,)), ((2, 5, 3), (2, 1, 3))]
)
def test_zero_points_that_are_inputs(w: tuple[int, ...], zero: tuple[int, ...]) -> None:
    """Of MatMulInteger: of a vector, a column, one for each column, and one for each matrix's columns."""
    rng = np.random.default_rng(len(w))
    given = [rng.integers(0, 256, shape).astype(np.uint8) for shape in ((4, 5), w, (), zero)]
    node = helper.make_node("MatMulInteger", ["a", "b", "za", "zb"], ["y"])
    ports = [
        helper.make_tensor_value_info(n, TensorProto.UINT8, v.shape)
        for n, v in zip(("a", "b", "za", "zb"), given, strict=True)
    ]
    graph = helper.make_graph(
        [node], "inputs", ports, [helper.make_tensor_value_info("y", TensorProto.INT32, None)]
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    (outcome,) = run_cases([Case("inputs", model, tuple(given))], "c")
    assert outcome.status == "ok", outcome.message
    a, b, za, zb = (v.astype(np.int64) for v in given)
    np.testing.assert_array_equal(outcome.outputs[0], (a - za) @ (b - zb))
