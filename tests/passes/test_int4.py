"""Weights of 4 bits: two in a byte on every target, and the same results as ONNX Runtime's literal
computation.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from aot_model.kernels.int8 import nibbles
from aot_model.pipeline import Request, compile_model
from batch import Case, Outcome, compiled_case, run_cases
from onnx_models import model, save, tensor
from qemu import available

LIMITS = {"int4": (-8, 7), "uint4": (0, 15)}
TARGETS = {"c": None, "host": None, "cortex-m4": "m4", "cortex-m55": "m55"}


class Net:
    """A network of quantised activations and weights of 4 bits."""

    def __init__(self, kind: str, seed: int) -> None:
        self.kind = kind
        self.rng = np.random.default_rng(seed)
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []
        self.weight_count = 0

    def constant(self, data: object, dtype: object = np.float32) -> str:
        name = f"c{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(data).astype(dtype), name))  # type: ignore[call-overload]
        return name

    def op(self, kind: str, *inputs: str, **attributes: object) -> str:
        name = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], name=f"{kind}_{name}", **attributes))
        return name

    def activations(self, x: str, to: type = np.int8) -> str:
        wide = {np.int16: 0, np.uint16: 32700}.get(to)
        parameters = (
            self.constant(self.rng.uniform(0.02, 0.05) / (1 if wide is None else 200)),
            self.constant(self.rng.integers(-10, 10) if wide is None else wide, to),
        )
        return self.op("DequantizeLinear", self.op("QuantizeLinear", x, *parameters), *parameters)

    def weights(self, shape: tuple[int, ...], axis: int | None, zero: int = 0) -> str:
        to = np.dtype(self.kind) if self.kind.endswith("8") else getattr(ml_dtypes, self.kind)
        low, high = LIMITS[self.kind.replace("8", "4")]
        self.weight_count += int(np.prod(shape))
        count = () if axis is None else (shape[axis],)
        data = self.constant(self.rng.integers(low, high + 1, shape), to)
        return self.op(
            "DequantizeLinear",
            data,
            self.constant(self.rng.uniform(0.05, 0.1, count)),
            self.constant(np.full(count, zero), to),
            axis=axis or 0,
        )

    def proto(self, shape: tuple[int, ...], y: str) -> onnx.ModelProto:
        x, out = (
            helper.make_tensor_value_info(n, TensorProto.FLOAT, s) for n, s in (("x", shape), (y, None))
        )
        graph = helper.make_graph(self.nodes, "g", [x], [out], self.constants)
        return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def _convolution(
    channels: int, groups: int, kernel: int, wide: bool = False, to: type = np.int8
) -> Callable[[Net, int], tuple[tuple[int, ...], str]]:
    def build(n: Net, zero: int) -> tuple[tuple[int, ...], str]:
        inputs = 64 if wide else 6
        bias = n.constant(n.rng.uniform(-1, 1, channels))
        y = n.op(
            "Conv",
            n.activations("x", to),
            n.weights((channels, inputs // groups, kernel, kernel), 0, zero),
            bias,
            group=groups,
            pads=[kernel // 2] * 4,
        )
        return (1, inputs, 5, 6), n.activations(n.op("Relu", y), to)

    return build


def _dense(rows: int, columns: int, to: type = np.int8) -> Callable[[Net, int], tuple[tuple[int, ...], str]]:
    def build(n: Net, zero: int) -> tuple[tuple[int, ...], str]:
        y = n.op(
            "Gemm",
            n.activations("x", to),
            n.weights((columns, 33), None, zero),
            n.constant(n.rng.uniform(-1, 1, columns)),
            transB=1,
        )
        return (rows, 33), n.activations(
            n.op("MatMul", n.activations(y, to), n.weights((columns, 8), 1, zero)), to
        )

    return build


NETS = {
    "conv3x3": _convolution(8, 1, 3),
    "odd channels": _convolution(7, 1, 3),
    "pointwise": _convolution(11, 1, 1),
    "grouped": _convolution(9, 3, 3),
    "depthwise": _convolution(6, 6, 3),
    "larger than its room": _convolution(70, 1, 3, wide=True),
    "dense": _dense(3, 10),
    "one row": _dense(1, 11),
    "conv3x3 of int16": _convolution(8, 1, 3, to=np.int16),
    "pointwise of uint16": _convolution(11, 1, 1, wide=True, to=np.uint16),
    "grouped of int16": _convolution(9, 3, 3, to=np.int16),
    "depthwise of int16": _convolution(6, 6, 3, to=np.int16),
    "larger than its room, of int16": _convolution(70, 1, 3, wide=True, to=np.int16),
    "dense of uint16": _dense(3, 10, to=np.uint16),
    "one row of int16": _dense(1, 11, to=np.int16),
}


def _build(label: str, kind: str) -> tuple[onnx.ModelProto, np.ndarray, int]:
    net = Net(kind, list(NETS).index(label))
    shape, y = NETS[label](net, 0 if kind.startswith("int") else 8)
    return net.proto(shape, y), np.asarray(net.rng.uniform(-3, 3, shape), np.float32), net.weight_count


@cache
def _outcomes(target: str) -> dict[tuple[str, str], Outcome]:
    keys = [(label, kind) for label in NETS for kind in LIMITS]
    cases = []
    for label, kind in keys:
        proto, x, _ = _build(label, kind)
        cases.append(Case(f"{label} {kind}", proto, (x,)))
    found = run_cases(
        cases,
        target,
        sanitize=TARGETS[target] is None,
        board=TARGETS[target],
        flags=("-O2", "-march=native") if target == "host" else ("-O2",),
    )
    return dict(zip(keys, found, strict=True))


def _literally(proto: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    """ONNX Runtime's result without its optimisations, which quantise activations."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return np.asarray(
        onnxruntime.InferenceSession(
            proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
        ).run(None, {"x": x})[0]
    )


@pytest.mark.parametrize("kind", LIMITS)
@pytest.mark.parametrize("label", NETS)
@pytest.mark.parametrize(
    "target",
    [
        pytest.param(t, marks=pytest.mark.skipif(b is not None and not available(), reason="no QEMU"))
        for t, b in TARGETS.items()
    ],
)
def test_results(target: str, label: str, kind: str) -> None:
    """Within a unit of the last quantisation, on kernels and loops; floats have 16 bits of it left over."""
    outcome = _outcomes(target)[label, kind]
    assert outcome.status == "ok", outcome.message
    proto, x, _ = _build(label, kind)
    expected = _literally(proto, x)
    scale = max(
        float(numpy_helper.to_array(c))
        for c in proto.graph.initializer
        if c.data_type == TensorProto.FLOAT and not c.dims
    )
    unit = 1.01 if "16" in label else 1.001
    assert np.abs(outcome.outputs[0] - expected).max() <= unit * scale
    assert np.abs(expected).max() > 5 * scale


# --- weights only: activations are floats -------------------------------------------------------------------


def _matrix(n: Net, shape: tuple[int, int], axis: int, block: int, zero: bool, least: float = 0.05) -> str:
    """A dequantised matrix, quantised by blocks along an axis, or as `axis` says without them; `least` is
    that of the scales.
    """
    low, high = LIMITS[n.kind]
    to = getattr(ml_dtypes, n.kind)
    n.weight_count += shape[0] * shape[1]
    many: tuple[int, ...] = (
        tuple(-(-d // block) if k == axis else d for k, d in enumerate(shape)) if block else (shape[axis],)
    )
    data = n.constant(n.rng.integers(low, high + 1, shape), to)
    more = [n.constant(n.rng.integers(low, high + 1, many), to)] if zero else []
    return n.op(
        "DequantizeLinear",
        data,
        n.constant(n.rng.uniform(least, 0.1, many)),
        *more,
        axis=axis,
        **({"block_size": block} if block else {}),
    )


def _embedding(n: Net) -> tuple[tuple[int, ...], str]:
    rows = n.op("Gather", _matrix(n, (64, 64), 1, 32, True), n.op("ArgMax", "x", axis=2, keepdims=0))
    return (1, 3, 64), n.op("Add", rows, "x")


WEIGHT_ONLY: dict[str, Callable[[Net], tuple[tuple[int, ...], str]]] = {
    "product by blocks": lambda n: ((2, 3, 40), n.op("MatMul", "x", _matrix(n, (40, 24), 0, 8, True))),
    "by columns": lambda n: (
        (1, 33),
        n.op(
            "Relu",
            n.op(
                "Add",
                n.op("MatMul", "x", _matrix(n, (33, 21), 1, 0, False)),
                n.constant(n.rng.uniform(-1, 1, 21)),
            ),
        ),
    ),
    "gemm": lambda n: (
        (2, 32),
        n.op("Gemm", "x", _matrix(n, (17, 32), 1, 16, True), n.constant(n.rng.uniform(-1, 1, 17)), transB=1),
    ),
    "transposed": lambda n: (
        (2, 32),
        n.op("MatMul", "x", n.op("Transpose", _matrix(n, (17, 32), 1, 16, False), perm=[1, 0])),
    ),
    "embedding": _embedding,
    "scales of both signs": lambda n: ((2, 40), n.op("MatMul", "x", _matrix(n, (40, 24), 0, 8, True, -0.1))),
    "columns of both signs": lambda n: (
        (2, 40),
        n.op("MatMul", "x", _matrix(n, (40, 24), 1, 0, False, -0.1)),
    ),
}


@pytest.mark.parametrize("target", ["c", "host"])
@pytest.mark.parametrize("kind", LIMITS)
@pytest.mark.parametrize("label", WEIGHT_ONLY)
def test_weights_only(label: str, kind: str, target: str, tmp_path: Path) -> None:
    """The same as ONNX Runtime's, and the integers are in flash."""
    net = Net(kind, list(WEIGHT_ONLY).index(label))
    shape, y = WEIGHT_ONLY[label](net)
    proto, x = net.proto(shape, y), np.asarray(net.rng.uniform(-1, 1, shape), np.float32)
    (outcome,) = run_cases(
        [Case(label, proto, (x,))], target, flags=("-O1", "-march=native") if target == "host" else ("-O1",)
    )
    assert outcome.status == "ok", outcome.message
    expected = _literally(proto, x)
    np.testing.assert_allclose(outcome.outputs[0], expected, rtol=2e-5, atol=2e-5)
    constants = compile_model(Request(save(proto, tmp_path / "m.onnx"), "m", target)).view.constants
    weights = [b.nbytes for b in constants if b.type.dtype.label == "uint8"]
    assert net.weight_count / 2 <= max(weights) <= 0.75 * net.weight_count  # tiles of columns are filled up
    assert max((b.nbytes for b in constants if b.type.dtype.is_float), default=0) < net.weight_count


def _constant_bytes(tmp_path: Path, label: str, kind: str, target: str) -> tuple[int, int]:
    proto, _, count = _build(label, kind)
    return compile_model(Request(save(proto, tmp_path / "m.onnx"), "m", target)).view.constant_bytes, count


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("kind", LIMITS)
@pytest.mark.parametrize("label", NETS)
def test_flash(label: str, kind: str, target: str, tmp_path: Path) -> None:
    """At most 0.6 bytes for a weight, whatever the kernel."""
    small, count = _constant_bytes(tmp_path, label, kind, target)
    large, _ = _constant_bytes(tmp_path, label, kind.removesuffix("4") + "8", target)
    assert small <= large - 0.4 * count


@pytest.mark.parametrize(
    ("dialect", "flags", "needs"),
    [("v8", ("-mavx2", "-mfma"), "fma"), ("v16", ("-mavx512f",), "avx512f"), ("v4", (), "sse2")],
)
def test_panels_of_a_host(dialect: str, flags: tuple[str, ...], needs: str) -> None:
    """Columns, rows and blocks that fill no panel; one zero point, several, none that is an integer; with
    what is fused behind.
    """
    if needs not in Path("/proc/cpuinfo").read_text().split():
        pytest.skip("no such processor")
    rng, cases = np.random.default_rng(3), []
    for rows, depth, columns, bits, block, zeros, then in (
        (7, 72, 37, 4, 16, "own", "Relu"),
        (5, 70, 64, 8, 32, "", "Sigmoid"),
        (1, 64, 130, 4, 32, "float", ""),
        (13, 30, 10, 4, 32, "own", ""),
        (4, 96, 96, 8, 32, "own", "Tanh"),
    ):
        blocks = -(-depth // block)
        weights = {
            "b": rng.integers(0, 256, (columns, blocks, block * bits // 8)).astype(np.uint8),
            "s": rng.uniform(0.01, 0.1, (columns, blocks)).astype(np.float32),
        }
        if zeros:
            weights["z"] = (
                rng.uniform(0, 15, (columns, blocks)).astype(np.float32)
                if zeros == "float"
                else rng.integers(0, 256, (columns, -(-blocks * bits // 8))).astype(np.uint8)
            )
        nodes = [
            helper.make_node(
                "MatMulNBits",
                ["x", *weights],
                ["p"],
                domain="com.microsoft",
                K=depth,
                N=columns,
                bits=bits,
                block_size=block,
            )
        ]
        nodes.append(helper.make_node(then or "Identity", ["p"], ["y"]))
        proto = model(nodes, [tensor("x", [rows, depth])], [tensor("y", [rows, columns])], weights)
        proto.opset_import.append(helper.make_opsetid("com.microsoft", 1))
        cases.append(
            Case(f"{rows}x{depth}x{columns}", proto, (rng.uniform(-1, 1, (rows, depth)).astype(np.float32),))
        )
    for case, outcome in zip(
        cases, run_cases(cases, f"host,vector={dialect}", flags=("-O2", *flags)), strict=True
    ):
        assert outcome.status == "ok", outcome.message
        assert isinstance(case.model, onnx.ModelProto)
        np.testing.assert_allclose(
            outcome.outputs[0], _literally(case.model, case.inputs[0]), rtol=2e-5, atol=2e-5
        )


@pytest.mark.parametrize(
    ("target", "label", "before"),
    [
        ("cortex-m55", "conv3x3", True),
        ("cortex-m55", "larger than its room", False),
        ("cortex-m4", "grouped", True),
        ("cortex-m4", "conv3x3", False),
    ],
)
def test_weights_are_put_together_before_where_there_is_room(
    target: str, label: str, before: bool, tmp_path: Path
) -> None:
    """And where they lie among other numbers: kernels of these cores pack both. A kernel of the DSP extension
    reads those of one group as they are."""
    proto, x, _ = _build(label, "int4")
    text = compiled_case(Case("x", proto, (x,)), tmp_path / "model", "m", target).texts["m.c"]
    assert ("aot_model_unpack_words(" in text) is before
    assert ("dot2x4_nibbles" in text) is (target == "cortex-m4" and not before)


@pytest.mark.parametrize("target", ["c", "cortex-m4", "cortex-m55"])
@pytest.mark.parametrize(
    ("label", "kernel"), [(n, not n.startswith(("larger", "depthwise"))) for n in NETS if "16" in n]
)
def test_kernels_of_16_bits_take_them(label: str, kernel: bool, target: str, tmp_path: Path) -> None:
    """Unpacked before, where there is room; kernels of the DSP extension have no bytes of a channel."""
    kernel |= label.startswith("depthwise") and target == "cortex-m55"
    proto, x, _ = _build(label, "int4")
    text = compiled_case(Case("x", proto, (x,)), tmp_path / "model", "m", target).texts["m.c"]
    assert ("aot_model_unpack_" in text) is kernel


@pytest.mark.parametrize("seed", range(6))
def test_streams_of_words(seed: int) -> None:
    """What is written of a stream gives it back, as the header says it is read: regular ones, long runs,
    numbers that look like weights, weights that do not."""
    rng = np.random.default_rng(seed)
    plain, small, times = ((6, 16, 9), (1, 300, 4), (700, 900, 2), (3, 5, 600), (2, 4, 1), (12, 64, 3))[seed]
    rows = []
    for _ in range(times):
        numbers = rng.integers(-(1 << 31), 1 << 31, plain) >> rng.choice([0, 8, 16, 24, 28], plain)
        weights = rng.integers(-8, 8, 4 * small).astype(np.int8)
        weights[:: 97 if seed == 5 else weights.size] = -9 if seed == 5 else 7
        rows += [numbers.astype(np.int32), weights.view(np.int32)]
    words = np.concatenate([*rows, np.asarray([5, -70000], np.int32)])
    stream = nibbles._stream(words)
    assert stream is not None and stream.nbytes < words.nbytes
    low, high = (stream.weights & 15).astype(np.int8), (stream.weights >> 4).astype(np.int8)
    four = (np.stack([low, high], 1).reshape(-1) ^ 8) - 8
    found, section, number, weight = list[int](), 0, 0, 0
    data, known = stream.sections.tolist(), stream.numbers.tobytes()
    while section < len(data):
        count, packed, turns = data[section : section + 3]
        for _ in range(turns):
            for k in range(count):
                size = 4 - (data[section + 3 + k // 4] >> 2 * (k % 4) & 3)
                found.append(int.from_bytes(known[number : number + size], "little", signed=True))
                number += size
            found += np.ascontiguousarray(four[weight : weight + 4 * packed]).view(np.int32).tolist()
            weight += 4 * packed
        section += 3 + -(-count // 4)
    assert found == words.tolist()
    assert number == len(known) - 4, "a last number may be read as a word"
