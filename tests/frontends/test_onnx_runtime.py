"""Operators of ONNX Runtime in graphs: what a sample of one node with outputs from the first on cannot
say.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from aot_model.errors import CompileError
from aot_model.pipeline import Request, compile_model
from batch import Case, run_cases

MS = "com.microsoft"


def _model(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, np.ndarray],
    outputs: list[str],
    constants: dict[str, np.ndarray],
) -> onnx.ModelProto:
    ports = [
        helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(v.dtype), v.shape)
        for n, v in inputs.items()
    ]
    made = [numpy_helper.from_array(v, n) for n, v in constants.items()]
    graph = helper.make_graph(nodes, "g", ports, [onnx.ValueInfoProto(name=o) for o in outputs], made)
    return helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 23), helper.make_opsetid(MS, 1)], ir_version=11
    )


def _check(
    nodes: list[onnx.NodeProto],
    inputs: dict[str, np.ndarray],
    outputs: list[str],
    constants: dict[str, np.ndarray],
    tolerance: float = 2e-5,
) -> None:
    proto = _model(nodes, inputs, outputs, constants)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1  # with more, sequences of a batch are quantised in groups
    expected = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    ).run(None, inputs)
    (outcome,) = run_cases([Case("case", proto, tuple(inputs.values()))])
    assert outcome.status == "ok", outcome.message
    for got, want in zip(outcome.outputs, expected, strict=True):
        np.testing.assert_allclose(
            got.astype(np.float64), want.astype(np.float64), rtol=tolerance, atol=tolerance
        )


def _draw(seed: int, *shape: int) -> np.ndarray:
    return np.asarray(np.random.default_rng(seed).uniform(-1, 1, shape), np.float32)


@pytest.mark.parametrize(
    ("kind", "constants"),
    [("SkipLayerNormalization", ("g", "b", "bias")), ("SkipSimplifiedLayerNormalization", ("g", "bias"))],
)
def test_the_sum_behind_a_normalisation(kind: str, constants: tuple[str, ...]) -> None:
    """Output 3, with outputs 1 and 2 left out, as the optimiser writes it; the sum goes on to the next
    layer.
    """
    node = helper.make_node(kind, ["x", "s", *constants], ["y", "", "", "total"], domain=MS, epsilon=1e-3)
    add = helper.make_node("Add", ["y", "total"], ["z"])
    _check(
        [node, add],
        {"x": _draw(1, 2, 3, 4), "s": _draw(2, 2, 3, 4)},
        ["z", "total"],
        {c: _draw(3 + k, 4) for k, c in enumerate(constants)},
    )


@pytest.mark.parametrize("rotary", [0, 1])
def test_rows_of_different_lengths_in_a_cache(rotary: int) -> None:
    """Each row of a batch has its own past; what is behind it in the cache does not count."""
    caches = ["cos", "sin"] if rotary else []
    node = helper.make_node(
        "GroupQueryAttention",
        ["q", "k", "v", "pk", "pv", "lengths", "total", *caches],
        ["y", "nk", "nv"],
        domain=MS,
        num_heads=4,
        kv_num_heads=2,
        do_rotary=rotary,
    )
    inputs = {
        "q": _draw(1, 2, 1, 64),
        "k": _draw(2, 2, 1, 32),
        "v": _draw(3, 2, 1, 32),
        "pk": _draw(4, 2, 2, 5, 16),
        "pv": _draw(5, 2, 2, 5, 16),
        "lengths": np.asarray([4, 1], np.int32),
    }
    tables = {"cos": _draw(6, 8, 8), "sin": _draw(7, 8, 8)} if rotary else {}
    _check([node], inputs, ["y"], {"total": np.asarray(5, np.int32), **tables})


@pytest.mark.parametrize("kind", ["MatMul", "Gather"])
@pytest.mark.parametrize("block", [0, 16])
@pytest.mark.parametrize("bits", [TensorProto.INT4, TensorProto.INT8])
def test_weights_of_another_type_than_their_scales(kind: str, block: int, bits: int) -> None:
    """output_dtype of opset 23: scales of float16 and products of float32."""
    whole = np.random.default_rng(2).integers(-8, 8, (64, 48))
    scale = np.asarray(_draw(3, *((64 // block, 48) if block else ())) ** 2 + 0.01, np.float16)
    axis = {"axis": 0, "block_size": block} if block else {}
    real = helper.make_node("DequantizeLinear", ["w", "s"], ["f"], output_dtype=TensorProto.FLOAT, **axis)
    wanted = whole * np.asarray(np.repeat(scale, block, axis=0) if block else scale, np.float64)
    x = _draw(4, 3, 64) if kind == "MatMul" else np.asarray([5, 0, 63], np.int64)
    reader = helper.make_node(kind, ["x", "f"] if kind == "MatMul" else ["f", "x"], ["y"])
    proto = _model([real, reader], {"x": x}, ["y"], {"s": scale})
    proto.graph.initializer.append(helper.make_tensor("w", bits, whole.shape, whole.reshape(-1).tolist()))
    (outcome,) = run_cases([Case("case", proto, (x,))])
    assert outcome.status == "ok" and outcome.outputs[0].dtype == np.float32, outcome.message
    np.testing.assert_allclose(
        outcome.outputs[0], x @ wanted if kind == "MatMul" else wanted[x], rtol=1e-5, atol=1e-5
    )


@pytest.mark.parametrize("axis", [None, 1, 0, -1, -2])
def test_the_axis_of_a_quantised_vector_does_not_matter(axis: int | None) -> None:
    """A bias with the axis of its layer's weights, as Neural Compressor writes it: there is only one."""
    rng = np.random.default_rng(8)
    scales = np.asarray(rng.uniform(0.01, 0.03, 5), np.float32)
    constants = {
        "s": np.float32(0.02).reshape(()),
        "z": np.asarray(3, np.uint8),
        "w": np.asarray(rng.integers(-127, 128, (7, 5)), np.int8),
        "ws": scales,
        "b": np.asarray(rng.integers(-5000, 5000, 5), np.int32),
        "bs": scales * np.float32(0.02),
        "t": np.float32(0.05).reshape(()),
    }
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["xq"]),
        helper.make_node("DequantizeLinear", ["xq", "s", "z"], ["xr"]),
        helper.make_node("DequantizeLinear", ["w", "ws"], ["wr"], axis=1),
        helper.make_node("DequantizeLinear", ["b", "bs"], ["br"], **({} if axis is None else {"axis": axis})),
        helper.make_node("Gemm", ["xr", "wr", "br"], ["y"]),
        helper.make_node("QuantizeLinear", ["y", "t", "z"], ["yq"]),
    ]
    x = _draw(1, 4, 7)
    (outcome,) = run_cases([Case("case", _model(nodes, {"x": x}, ["br", "yq"], constants), (x,))])
    assert outcome.status == "ok", outcome.message
    real = (constants["b"] * constants["bs"].astype(np.float64)).astype(np.float32)
    np.testing.assert_array_equal(outcome.outputs[0], real)
    whole = np.clip(np.rint(x / np.float32(0.02)) + 3, 0, 255) - 3
    sums = whole @ constants["w"].astype(np.float64) + constants["b"]
    want = np.clip(np.rint(sums * scales * 0.02 / 0.05) + 3, 0, 255)
    np.testing.assert_array_equal(outcome.outputs[1], want)


def test_results_of_4_bits() -> None:
    """Quantised to 4 bits and back; the interface of ONNX Runtime has no arrays of them."""
    quantise = helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"], domain=MS)
    back = helper.make_node("DequantizeLinear", ["q", "s", "z"], ["y"], domain=MS)
    zero = helper.make_tensor("z", TensorProto.INT4, [], [-2])
    proto = _model([quantise, back], {"x": _draw(1, 3, 5)}, ["y"], {"s": np.asarray(0.13, np.float32)})
    proto.graph.initializer.append(zero)
    expected = np.clip(np.rint(_draw(1, 3, 5) / np.float32(0.13)) - 2, -8, 7)
    (outcome,) = run_cases([Case("case", proto, (_draw(1, 3, 5),))])
    np.testing.assert_allclose(outcome.outputs[0], (expected + 2) * np.float32(0.13), rtol=1e-6)


@pytest.mark.parametrize(("attributes", "extra", "reason"),
                         [({"bits": 3}, (), "3 bits is not supported"),
                          ({"bits": 4, "weight_prepacked": 1}, (), "weights packed for one processor"),
                          ({"bits": 4}, ("", "group"), "groups in another order")])  # fmt: skip
def test_what_is_not_supported_says_why(
    attributes: dict[str, int], extra: tuple[str, ...], reason: str, tmp_path: Path
) -> None:
    node = helper.make_node(
        "MatMulNBits", ["x", "b", "s", *extra], ["y"], domain=MS, N=4, K=32, block_size=16, **attributes
    )
    constants = {
        "b": np.zeros((4, 2, 8), np.uint8),
        "s": _draw(1, 4, 2),
        "group": np.asarray([1] * 16 + [0] * 16, np.int32),
    }
    (tmp_path / "m.onnx").write_bytes(
        _model([node], {"x": _draw(1, 1, 32)}, ["y"], constants).SerializeToString()
    )
    with pytest.raises(CompileError, match=reason):
        compile_model(Request(tmp_path / "m.onnx", "m", "c"))


def test_layouts_of_one_machine(tmp_path: Path) -> None:
    node = helper.make_node("ReorderInput", ["x"], ["y"], domain="com.microsoft.nchwc")
    (tmp_path / "m.onnx").write_bytes(
        _model([node], {"x": _draw(1, 1, 8, 4, 4)}, ["y"], {}).SerializeToString()
    )
    with pytest.raises(CompileError, match="ORT_ENABLE_EXTENDED"):
        compile_model(Request(tmp_path / "m.onnx", "m", "c"))


@pytest.mark.parametrize(
    "attributes, peepholes",
    [
        ({}, False),
        ({"direction": "reverse"}, True),
        ({"direction": "bidirectional"}, False),
        ({"clip": 2.0}, True),
        ({"input_forget": 1}, False),
    ],
)
def test_a_dynamically_quantised_lstm_is_onnx_runtimes_bit_for_bit(
    attributes: dict[str, object], peepholes: bool
) -> None:
    """The hidden state is quantised in every step: where a last bit differs, all digits do later."""
    both, units, rng = 1 + (attributes.get("direction") == "bidirectional"), 24, np.random.default_rng(1)
    x = np.asarray(rng.standard_normal((60, 1, 10)), np.float32)
    constants = {
        "w": np.asarray(rng.integers(-128, 128, (both, 10, 4 * units)), np.int8),
        "r": np.asarray(rng.integers(-128, 128, (both, units, 4 * units)), np.int8),
        "b": _draw(2, both, 8 * units),
        "p": _draw(3, both, 3 * units),
        "ws": np.full(both, 0.011, np.float32),
        "rs": np.full(both, 0.017, np.float32),
        "z": np.zeros(both, np.int8),
    }
    if not peepholes:
        del constants["p"]
    node = helper.make_node(
        "DynamicQuantizeLSTM",
        ["x", "w", "r", "b", "", "", "", "p" if peepholes else "", "ws", "z", "rs", "z"],
        ["y", "h", "c"],
        domain=MS,
        hidden_size=units,
        **attributes,
    )
    _check([node], {"x": x}, ["y", "h", "c"], constants, tolerance=0)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
@pytest.mark.parametrize("lengths", [(7, 3, 7), (5, 0, 2), (7, 7, 7), (0, 0, 0)])
@pytest.mark.parametrize("constant", [False, True])
def test_a_dynamically_quantised_lstm_of_sequences_of_different_lengths(
    direction: str, constant: bool, lengths: tuple[int, ...]
) -> None:
    """States, peepholes, and large inputs behind the ends; sequences that are empty."""
    both, units, rng = 1 + (direction == "bidirectional"), 6, np.random.default_rng(1)
    x = np.asarray(rng.standard_normal((7, 3, 5)), np.float32)
    x[6] *= 50
    constants = {
        "w": np.asarray(rng.integers(-128, 128, (both, 5, 4 * units)), np.int8),
        "r": np.asarray(rng.integers(-128, 128, (both, units, 4 * units)), np.int8),
        "b": _draw(2, both, 8 * units),
        "p": _draw(3, both, 3 * units),
        "h0": _draw(4, both, 3, units),
        "c0": _draw(5, both, 3, units),
        "ws": np.full(both, 0.011, np.float32),
        "rs": np.full(both, 0.017, np.float32),
        "z": np.zeros(both, np.int8),
    }
    inputs = {"x": x, "lens": np.asarray(lengths, np.int32)}
    if constant:
        constants["lens"] = inputs.pop("lens")
    node = helper.make_node(
        "DynamicQuantizeLSTM",
        ["x", "w", "r", "b", "lens", "h0", "c0", "p", "ws", "z", "rs", "z"],
        ["y", "h", "c"],
        domain=MS,
        hidden_size=units,
        direction=direction,
    )
    _check([node], inputs, ["y", "h", "c"], constants, tolerance=0)


@pytest.mark.parametrize(
    ("names", "alphas", "betas"),
    [
        (("HardSigmoid", "Affine", "ScaledTanh"), (0.3, 0.8, 1.2), (0.4, 0.1, 0.7)),
        (("sigmoid", "LeakyRelu", "Elu"), (0.2,), ()),
        (("Sigmoid", "ThresholdedRelu", "Softsign"), (0.3, 9.0), (8.0,)),
        (("HardSigmoid", "Softplus", "Relu"), (), (0.25,)),
    ],
)
def test_activations_of_a_dynamically_quantised_lstm(
    names: tuple[str, ...], alphas: tuple[float, ...], betas: tuple[float, ...]
) -> None:
    """Their numbers are taken in order by those that have them; defaults where there are too few."""
    units, rng = 6, np.random.default_rng(1)
    constants = {
        "w": np.asarray(rng.integers(-128, 128, (1, 5, 4 * units)), np.int8),
        "r": np.asarray(rng.integers(-128, 128, (1, units, 4 * units)), np.int8),
        "ws": np.full(1, 0.005, np.float32),
        "rs": np.full(1, 0.004, np.float32),
        "z": np.zeros(1, np.int8),
    }
    node = helper.make_node(
        "DynamicQuantizeLSTM",
        ["x", "w", "r", "", "", "", "", "", "ws", "z", "rs", "z"],
        ["y", "h", "c"],
        domain=MS,
        hidden_size=units,
        activations=names,
        **({"activation_alpha": alphas} if alphas else {}),
        **({"activation_beta": betas} if betas else {}),
    )
    _check([node], {"x": _draw(9, 6, 1, 5)}, ["y", "h", "c"], constants)
