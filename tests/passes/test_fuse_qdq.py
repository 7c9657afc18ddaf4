"""Operators between dequantisation and quantisation, as integers: within one unit of ONNX Runtime's literal
results.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from qdq_network import TYPES, Net
from qdq_operators import BYTE_ONLY, CASES

from aot_model.frontends.onnx import read_onnx
from aot_model.host.program import scratch_folder
from aot_model.ir.graph import Graph
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value, constant
from aot_model.ops.registry import OPERATORS, Build
from aot_model.passes import qdq_site, qdq_weights
from aot_model.passes.fuse_qdq import fuse_qdq
from aot_model.pipeline import Request, compile_model
from onnx_models import model, save, tensor
from sanitizers import sanitized


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize("case", CASES)
def test_integers_are_within_a_unit_of_the_literal_meaning(
    case: Callable[[Net], str], kind: str, tmp_path: Path
) -> None:
    if kind == "int16" and case in BYTE_ONLY:
        pytest.skip("16 bits stay literal")
    net = Net(kind, CASES.index(case))
    proto = net.proto(net.quantised(case(net)))
    path = save(proto, tmp_path / "model.onnx")
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    low, high = np.iinfo(kind).min, np.iinfo(kind).max
    vectors = [
        [np.asarray(net.rng.integers(low, high + 1, i.shape), dtype=kind) for i in session.get_inputs()]
        for _ in range(3)
    ]

    graph = read_onnx(path).graph
    assert fuse_qdq(graph)
    assert not {n.kind for n in graph.nodes} & {"QuantizeLinear", "DequantizeLinear"}

    compiled = compile_model(Request(path, "m", "c"))
    assert "float" not in compiled.texts["m.c"].split("/* ---- metadata")[0]
    with scratch_folder() as folder:
        program = sanitized(compiled.view, compiled.texts, Path(folder))
        for vector, (got,) in zip(vectors, program.run(vectors), strict=True):
            expected = session.run(
                None, {i.name: v for i, v in zip(session.get_inputs(), vector, strict=True)}
            )[0]
            assert np.abs(got.astype(np.int64) - expected.astype(np.int64)).max(initial=0) <= 1


def _exact(
    nodes: list[onnx.NodeProto], count: int, scale: float, to: float, kind: str, folder: Path
) -> tuple[np.ndarray, np.ndarray, set[str]]:
    """What this project and ONNX Runtime make of quantised inputs x0 ... that nodes turn into r, and the
    operators that are left."""
    n = Net(kind, 3)
    zero = n.constant(0, kind)
    s, t = n.constant(scale), n.constant(to)
    inputs = [tensor(f"q{k}", (3, 50), TYPES[kind]) for k in range(count)]
    first = [helper.make_node("DequantizeLinear", [f"q{k}", s, zero], [f"x{k}"]) for k in range(count)]
    last = helper.make_node("QuantizeLinear", ["r", t, zero], ["y"])
    constants = {**n.constants, "half": np.float32(0.5)}
    proto = model([*first, *nodes, last], inputs, [tensor("y", (3, 50), TYPES[kind])], constants, opset=21)
    path = save(proto, folder / "model.onnx")
    graph = read_onnx(path).graph
    fuse_qdq(graph)
    limits = np.iinfo(kind)
    given = [np.asarray(n.rng.integers(limits.min, limits.max + 1, (3, 50)), kind) for _ in inputs]
    compiled = compile_model(Request(path, "m", "c"))
    with scratch_folder() as scratch:
        ((got,),) = sanitized(compiled.view, compiled.texts, Path(scratch)).run([given])
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    (want,) = session.run(None, {f"q{k}": x for k, x in enumerate(given)})
    return got, want, {node.kind for node in graph.nodes}


@pytest.mark.parametrize("kind", ["int8", "int16"])
def test_a_multiple_in_its_own_scale_is_the_same_integers(kind: str, tmp_path: Path) -> None:
    got, want, kinds = _exact([helper.make_node("Mul", ["x0", "half"], ["r"])], 1, 0.02, 0.01, kind, tmp_path)
    assert got.tolist() == want.tolist() and not kinds


@pytest.mark.parametrize("function", ["Add", "Sub"])
def test_a_sum_in_one_scale_rounds_nothing(function: str, tmp_path: Path) -> None:
    node = helper.make_node(function, ["x0", "x1"], ["r"])
    got, want, _ = _exact([node], 2, 0.003, 0.003, "int16", tmp_path)
    assert got.tolist() == want.tolist() and want.max() == 32767


@pytest.mark.parametrize(
    "kind, to_kind",
    [
        ("uint8", "uint8"),
        ("int8", "int8"),
        ("int16", "int8"),
        ("int16", "int16"),
        ("uint16", "uint8"),
        ("int8", "int16"),
    ],
)
@pytest.mark.parametrize("keys, scale", [(5, 0.2), (32, 0.3), (64, 0.05), (512, 0.21)])
def test_softmax_is_rounded_once(kind: str, to_kind: str, keys: int, scale: float, tmp_path: Path) -> None:
    """What multiplies a softmax by large numbers sees every unit: none but those at a tie may differ. Rows of
    equal keys are ties for powers of two, which go to even."""
    zero, to = {
        "uint8": (0, np.float32(1 / 256)),
        "int8": (-128, np.float32(0.0038751268)),
        "int16": (0, np.float32(2**-16)),
    }[to_kind]
    scale *= 2.0 ** (8 - np.iinfo(kind).bits)
    rng = np.random.default_rng(keys)
    x = np.asarray(rng.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, (40, keys)), kind)
    x[0], x[1, : keys // 2] = 7, 9
    constants = {
        "xs": np.float32(scale),
        "xz": np.asarray(3, kind),
        "ys": to,
        "yz": np.asarray(zero, to_kind),
    }
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["xf"]),
        helper.make_node("Softmax", ["xf"], ["p"], axis=-1),
        helper.make_node("QuantizeLinear", ["p", "ys", "yz"], ["y"]),
    ]
    of, result = (helper.np_dtype_to_tensor_dtype(np.dtype(k)) for k in (kind, to_kind))
    path = save(
        model(
            nodes,
            [helper.make_tensor_value_info("x", of, x.shape)],
            [helper.make_tensor_value_info("y", result, x.shape)],
            constants,
            opset=21,
        ),
        tmp_path / "m.onnx",
    )
    compiled = compile_model(Request(path, "m", "c"))
    assert not [c for c in compiled.view.program.calls() if c.op in ("Softmax", "Exp")], "it has integers"
    (got,) = sanitized(compiled.view, compiled.texts, tmp_path).run([[x]])[0]
    e = np.exp(
        float(np.float32(scale)) * (x.astype(np.float64) - x.max(axis=-1, keepdims=True).astype(np.float64))
    )
    real = e / e.sum(axis=-1, keepdims=True) / float(to)
    want = np.clip(np.rint(real) + zero, np.iinfo(to_kind).min, np.iinfo(to_kind).max)
    tie = np.abs(real - np.floor(real) - 0.5) < (2**-13 if "16" not in kind + to_kind else 2**-9)
    np.testing.assert_array_equal(got[~tie], want[~tie])
    if to_kind == "uint8" and keys == 512:  # 256 / 512 is a tie, exactly
        assert not got[0].any()


@pytest.mark.parametrize("kind", ["int8", "uint8"])
@pytest.mark.parametrize("function", ["Conv", "Gemm"])
def test_a_bias_between_units_of_the_sums(function: str, kind: str, tmp_path: Path) -> None:
    """Floats beside weights of two bits: a unit of their sums is 0.9 of a step of the result. Rounding the
    bias to whole units would be wrong in up to half of a channel, with weights times 64 hardly anywhere.
    """
    net, rng = Net(kind, 5), np.random.default_rng(5)
    middle = 0 if kind == "int8" else 128
    zero, offset = (net.constant(v, kind) for v in (3, middle))
    units = {"x": np.float32(0.05), "w": np.float32(0.36), "y": np.float32(0.02)}
    shapes = ((1, 3, 6, 6), (8, 3, 3, 3)) if function == "Conv" else ((20, 12), (8, 12))
    w = rng.integers(middle - 1, middle + 2, shapes[1]).astype(kind)
    bias = rng.uniform(-0.5, 0.5, 8).astype(np.float32)
    constants = {**units, "wq": w, "b": bias, **net.constants}
    nodes = [
        helper.make_node("DequantizeLinear", ["q", "x", zero], ["xf"]),
        helper.make_node("DequantizeLinear", ["wq", "w", offset], ["wf"]),
        helper.make_node(function, ["xf", "wf", "b"], ["r"], **({} if function == "Conv" else {"transB": 1})),
        helper.make_node("QuantizeLinear", ["r", "y", offset], ["yq"]),
    ]
    proto = model(
        nodes, [tensor("q", shapes[0], TYPES[kind])], [tensor("yq", None, TYPES[kind])], constants, opset=21
    )
    path = save(proto, tmp_path / "model.onnx")
    graph = read_onnx(path).graph
    fuse_qdq(graph)
    assert not {n.kind for n in graph.nodes} & {"QuantizeLinear", "DequantizeLinear"}
    wide = {k: v.astype(np.float64) if v.dtype == np.float32 else v for k, v in constants.items()}
    reals = model(
        nodes, [tensor("q", shapes[0], TYPES[kind])], [tensor("yq", None, TYPES[kind])], wide, opset=21
    )
    x = rng.integers(np.iinfo(kind).min // 4, np.iinfo(kind).max // 4, shapes[0]).astype(kind)
    (want,) = ReferenceEvaluator(reals).run(None, {"q": x})
    compiled = compile_model(Request(path, "m", "c"))
    ((got,),) = sanitized(compiled.view, compiled.texts, tmp_path).run([[x]])
    off = got.astype(np.int64) - want.astype(np.int64)
    assert np.abs(off).max() <= 1 and np.count_nonzero(off) <= 0.02 * off.size


def test_a_bias_between_coarse_units_stays_literal(tmp_path: Path) -> None:
    """Weights of eight bits have no room: half a unit of the sums is more than half a step of the result."""
    net = Net("int8", 6)
    x, w = net.input(4, 6), net.weights(6, 5)
    y = net.op("Gemm", x, w, net.constant(net.rng.uniform(-0.5, 0.5, 5)))
    proto = net.proto(net.quantised(y))
    for name in (proto.graph.node[-1].input[1],):
        (scale,) = (t for t in proto.graph.initializer if t.name == name)
        scale.CopyFrom(numpy_helper.from_array(np.float32(1e-5), name))
    graph = read_onnx(save(proto, tmp_path / "model.onnx")).graph
    fuse_qdq(graph)
    assert "Gemm" in {n.kind for n in graph.nodes}


def test_what_has_no_rule_stays_literal(tmp_path: Path) -> None:
    net = Net("int8", 1)
    x = net.input(1, 3, 8, 8)
    proto = net.proto(net.quantised(net.op("LpPool", x, kernel_shape=[2, 2])))
    graph = read_onnx(save(proto, tmp_path / "model.onnx")).graph
    fuse_qdq(graph)
    assert [n.kind for n in graph.nodes] == ["DequantizeLinear", "LpPool", "QuantizeLinear"]


def test_a_dequantised_result_that_is_an_output_stays(tmp_path: Path) -> None:
    net = Net("int8", 2)
    y = net.op("Relu", net.op("Conv", net.input(1, 3, 5, 5), net.weights(4, 3, 3, 3)))
    q = net.quantised(y)
    proto = net.proto(q)
    proto.graph.output.append(helper.make_tensor_value_info(y, TensorProto.FLOAT, None))
    graph = read_onnx(save(proto, tmp_path / "model.onnx")).graph
    fuse_qdq(graph)
    assert {"Conv", "Relu"} <= {n.kind for n in graph.nodes}


@pytest.mark.parametrize("kind", ["int16", "uint16"])
def test_products_of_activations_of_16_bits_are_exact(kind: str, tmp_path: Path) -> None:
    """Sums beyond 32 bits, and a factor halfway between two of 16 bits: those would be two steps of uint16
    off."""
    rng, limits = np.random.default_rng(3), np.iinfo(kind)
    of = helper.np_dtype_to_tensor_dtype(np.dtype(kind))
    a, b = (np.asarray(rng.integers(limits.max // 2, limits.max + 1, s), kind) for s in ((16, 4), (4, 16)))
    sums = a.astype(np.int64) @ b.astype(np.int64)
    factor = 16384.49 / 2.0 ** np.floor(np.log2(sums.max() / limits.max) + 15)
    scale = np.float32(1 / factor)
    constants = {"one": np.float32(1), "zero": np.asarray(0, kind), "scale": scale}
    nodes = [
        helper.make_node("DequantizeLinear", ["a", "one", "zero"], ["x"]),
        helper.make_node("DequantizeLinear", ["b", "one", "zero"], ["w"]),
        helper.make_node("MatMul", ["x", "w"], ["r"]),
        helper.make_node("QuantizeLinear", ["r", "scale", "zero"], ["y"]),
    ]
    inputs = [tensor("a", (16, 4), of), tensor("b", (4, 16), of)]
    path = save(model(nodes, inputs, [tensor("y", (16, 16), of)], constants, opset=21), tmp_path / "m.onnx")
    compiled = compile_model(Request(path, "m", "c"))
    with scratch_folder() as scratch:
        ((got,),) = sanitized(compiled.view, compiled.texts, Path(scratch)).run([[a, b]])
    want = np.clip(np.rint(sums / np.float64(scale)), limits.min, limits.max).astype(kind)
    assert want.max() > limits.max // 2 and got.tolist() == want.tolist()


@pytest.mark.parametrize(
    ("multiplier", "most", "factor"),
    [
        (2**31 - 1, 1.0, (2**31 - 1, -16)),
        (2**31 - 1, 2.0**40, (2**21 - 1, -6)),
        (3 << 29, 2.0**40, (3 << 19, -6)),
        ((3 << 29) + 511, 2.0**40, (3 << 19, -6)),
        ((3 << 29) + 512, 2.0**40, ((3 << 19) + 1, -6)),
    ],
)
def test_factors_have_as_many_bits_as_their_products_leave(
    multiplier: int, most: float, factor: tuple[int, int]
) -> None:
    assert qdq_site._wide_factor(multiplier, 0, most) == factor


@pytest.mark.parametrize(
    ("bias", "dtype", "fits"),
    [
        (2.0**31 - 1001, DType.INT8, True),
        (2.0**31 - 1000, DType.INT8, False),
        (-(2.0**31), DType.UINT8, False),
        (2.0**40, DType.INT16, True),
    ],
)
def test_sums_with_their_bias_are_within_32_bits(bias: float, dtype: DType, fits: bool) -> None:
    """Sums of up to 1000; those of 16-bit activations have 64 bits."""
    x = qdq_site.Scaled(Value("x", TensorType(dtype, (1,))), np.ones(1), np.zeros(1))
    site: Any = SimpleNamespace(to=SimpleNamespace(s=1.0))  # of the result
    assert (not qdq_weights.unfit(site, np.array([0.5 * bias]), np.array([0.5]), x, 1000.0)) is fits


def test_quantised_before_several_views() -> None:
    """What is computed between is of integers, however many shapes and orders lie between it and its
    quantisation."""
    x = Value("x", TensorType(DType.INT8, (2, 3, 4)))
    g = Graph("g", [x], [])
    build = Build(g.nodes, "n")
    scale, zero = constant("s", np.float32(0.1)), constant("z", np.int8(3))
    real = build(OPERATORS["", "DequantizeLinear"](), x, scale, zero)
    summed = build(OPERATORS["", "Tanh"](), real)
    flat = build(OPERATORS["", "Flatten"](), summed)
    again = build(OPERATORS["", "Flatten"](axis=2), flat)
    turned = build(OPERATORS["", "Transpose"](perm=(1, 0)), again)
    last = build(OPERATORS["", "Flatten"](axis=0), turned)
    g.outputs = [build(OPERATORS["", "QuantizeLinear"](), last, scale, zero)]
    assert fuse_qdq(g)
    g.verify()
    assert not {n.kind for n in g.nodes} & {"QuantizeLinear", "DequantizeLinear"}
