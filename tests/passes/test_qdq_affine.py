"""Factors and offsets of each channel between a product and its QuantizeLinear: part of weights and bias,
within one unit of ONNX Runtime's literal results.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper
from qdq_network import Net

from aot_model.frontends.onnx import read_onnx
from aot_model.passes.explain import reasons
from aot_model.passes.fuse_qdq import fuse_qdq
from aot_model.pipeline import Request, compile_model
from onnx_models import save
from sanitizers import sanitized

CHANNELS = 6


class Layer:
    """A product of quantised tensors, of which there are six channels."""

    def __init__(
        self, kind: str, product: str, seed: int = 3, least: int = -127, by_channel: bool = True
    ) -> None:
        self.net = Net(kind, seed)
        n, self.product = self.net, product
        shape = {"Conv": (1, 3, 6, 5), "ConvTranspose": (1, 3, 4, 5)}.get(product, (7, 24))
        x = n.input(*shape)
        axis = 0 if product in ("Conv", "Gemm") else 1
        size = {"Conv": (CHANNELS, 3, 3, 3), "ConvTranspose": (3, CHANNELS, 3, 3), "Gemm": (CHANNELS, 24)}
        data = n.rng.integers(-127, 128, size.get(product, (24, CHANNELS)))
        data.reshape(-1)[0] = least
        scales = n.rng.uniform(0.005, 0.02, CHANNELS if by_channel else 1)
        zeros = np.zeros(scales.shape)
        quantised = [
            n.constant(v if by_channel else v[0], t) for v, t in ((scales, "float32"), (zeros, "int8"))
        ]
        w = n.op("DequantizeLinear", n.constant(data, "int8"), *quantised, axis=axis if by_channel else 1)
        self.y = n.op(product, x, w, **({"transB": 1} if product == "Gemm" else {}))

    def channels(self, *numbers: float) -> str:
        data = np.asarray(numbers) if numbers else self.net.rng.uniform(0.4, 1.6, CHANNELS)
        rest = (1, 1) if self.product.startswith("Conv") else ()
        return self.net.constant(data.reshape(-1, *rest))

    def normalised(self, scale: np.ndarray | None = None) -> None:
        n = self.net
        draw = n.rng.uniform
        numbers = (
            draw(0.4, 1.6, 6) if scale is None else scale,
            draw(-1, 1, 6),
            draw(-1, 1, 6),
            draw(0.5, 2, 6),
        )
        self.then("BatchNormalization", *(n.constant(v) for v in numbers))

    def trained(self) -> None:
        """Normalised by the mean and variance of what it is given."""
        self.normalised()
        self.net.nodes[-1].attribute.append(helper.make_attribute("training_mode", 1))

    def of_negative_variance(self) -> None:
        self.normalised()
        self.net.constants[self.net.nodes[-1].input[4]] = np.full(CHANNELS, -1, np.float32)

    def then(self, kind: str, *others: str, first: bool = True) -> None:
        self.y = self.net.op(kind, *((self.y, *others) if first else (*others, self.y)))


def _lines(layer: Layer) -> None:
    layer.then("Sub", layer.channels(), first=False)
    layer.then("Div", layer.channels())
    layer.then("Mul", layer.net.constant(-1.25), first=False)
    layer.then("Add", layer.channels(), first=False)
    layer.then("Sub", layer.channels())


def _negative(layer: Layer) -> None:
    layer.normalised(np.asarray([-1, 0.5, 0, 1e-12, -0.25, 2]))
    layer.then("Relu")


def _clipped(layer: Layer) -> None:
    layer.then("Mul", layer.channels())
    layer.normalised()
    layer.then("Clip", layer.net.constant(-0.5), layer.net.constant(1.0))


CASES: list[Callable[[Layer], None]] = [Layer.normalised, _lines, _negative, _clipped]


def literal(proto: onnx.ModelProto, x: np.ndarray) -> np.ndarray:
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    return np.asarray(session.run(None, {session.get_inputs()[0].name: x})[0])


def check(layer: Layer, folder: Path) -> None:
    """All integers, and within a unit."""
    proto = layer.net.proto(layer.net.quantised(layer.y))
    path = save(proto, folder / "model.onnx")
    graph = read_onnx(path).graph
    assert fuse_qdq(graph)
    assert not {n.kind for n in graph.nodes} & {"QuantizeLinear", "DequantizeLinear"}
    kind = layer.net.kind
    shape = [d.dim_value for d in proto.graph.input[0].type.tensor_type.shape.dim]
    x = layer.net.rng.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, shape).astype(kind)
    want = literal(proto, x)
    compiled = compile_model(Request(path, "m", "c"))
    ((got,),) = sanitized(compiled.view, compiled.texts, folder).run([[x]])
    off = np.abs(got.astype(np.int64) - want.astype(np.int64))
    assert off.max() <= 1 and np.count_nonzero(off) <= 0.02 * off.size
    assert len(np.unique(want)) > 3


@pytest.mark.parametrize("kind", ["int8", "uint8", "int16"])
@pytest.mark.parametrize("product", ["Conv", "Gemm", "MatMul", "ConvTranspose"])
@pytest.mark.parametrize("case", CASES)
def test_lines_behind_products(
    case: Callable[[Layer], None], product: str, kind: str, tmp_path: Path
) -> None:
    layer = Layer(kind, product)
    case(layer)
    check(layer, tmp_path)


@pytest.mark.parametrize("product", ["Conv", "MatMul"])
def test_one_scale_becomes_one_of_each_channel(product: str, tmp_path: Path) -> None:
    layer = Layer("int8", product, by_channel=False)
    layer.normalised()
    check(layer, tmp_path)


@pytest.mark.parametrize("factors", [(0.5, 1, -0.75, 1.25), (2, -1, 1, -0.5)])
def test_constant_matrices_of_a_batch(factors: tuple[float, ...], tmp_path: Path) -> None:
    """As many rows as columns: factors are of the columns."""
    net = Net("int8", 11)
    x = net.input(2, 5, 4)
    product = net.op("MatMul", x, net.weights(2, 4, 4))
    y = net.op("Mul", product, net.constant(factors))
    proto = net.proto(net.quantised(y))
    path = save(proto, tmp_path / "model.onnx")
    compiled = compile_model(Request(path, "m", "c"))
    x8 = net.rng.integers(-128, 128, (2, 5, 4)).astype("int8")
    ((got,),) = sanitized(compiled.view, compiled.texts, tmp_path).run([[x8]])
    assert np.abs(got.astype(int) - literal(proto, x8)).max() <= 1


def test_a_product_of_vectors_stays(tmp_path: Path) -> None:
    net = Net("int8", 12)
    product = net.op("MatMul", net.input(6), net.weights(6))
    proto = net.proto(net.quantised(net.op("Mul", product, net.constant(0.5))))
    path = save(proto, tmp_path / "model.onnx")
    compiled = compile_model(Request(path, "m", "c"))
    x8 = net.rng.integers(-128, 128, 6).astype("int8")
    ((got,),) = sanitized(compiled.view, compiled.texts, tmp_path).run([[x8]])
    assert np.abs(got.astype(int) - literal(proto, x8)).max() <= 1


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda y: y.then("Mul", y.channels(1, -1, 1, -1, 1, -1)), ""),
        (
            lambda y: y.then("Mul", y.channels(-1, 1, 1, 1, 1, 1)),
            "the least integer of the weights has no opposite",
        ),
        (lambda y: y.then("Div", y.channels(0, 1, 1, 1, 1, 1)), "not finite"),
        (lambda y: y.then("Mul", y.channels(np.inf, 1, 1, 1, 1, 1)), "not finite"),
        (lambda y: y.then("Add", y.channels(np.nan, 1, 1, 1, 1, 1)), "not finite"),
        (lambda y: y.then("Mul", y.channels(np.nan, 1, 1, 1, 1, 1)), "not finite"),
        (lambda y: y.normalised(np.asarray([np.inf, 1, 1, 1, 1, 1])), "not finite"),
        (Layer.of_negative_variance, "not finite"),
        (lambda y: y.then("Div", y.channels(), first=False), "not a function"),
        (Layer.trained, "not a function"),
        (lambda y: y.then("Add", y.net.constant(np.ones((7, 1)))), "not a function"),
        (lambda y: y.then("Mul", y.net.constant(np.ones((7, 1)))), "not a function"),
    ],
)
def test_what_stays_literal(change: Callable[[Layer], None], why: str, tmp_path: Path) -> None:
    layer = Layer("int8", "Gemm", least=-128)
    change(layer)
    proto = layer.net.proto(layer.net.quantised(layer.y))
    graph = read_onnx(save(proto, tmp_path / "model.onnx")).graph
    with reasons() as found:
        fuse_qdq(graph)
    assert ("Gemm" in {n.kind for n in graph.nodes}) == bool(why)
    assert why in str(found)


def test_a_line_that_something_else_reads_stays(tmp_path: Path) -> None:
    layer = Layer("int8", "Gemm")
    read = layer.y
    layer.normalised()
    proto = layer.net.proto(layer.net.quantised(layer.y))
    proto.graph.output.append(helper.make_tensor_value_info(read, onnx.TensorProto.FLOAT, None))
    graph = read_onnx(save(proto, tmp_path / "model.onnx")).graph
    fuse_qdq(graph)
    assert "BatchNormalization" in {n.kind for n in graph.nodes}


@pytest.mark.parametrize("product", ["Conv", "Gemm"])
def test_channels_that_are_nothing_beside_their_bias(product: str, tmp_path: Path) -> None:
    """Scales of 1e-30 and weights of 0 with a scale of 1e-9, as quantisers write them for channels that died
    in training; results are those of the bias.
    """
    net = Net("int8", 8)
    conv = product == "Conv"
    data = net.rng.integers(-127, 128, (4, 3, 3, 3) if conv else (4, 10))
    data[2] = 0
    scales = net.constant([0.01, 1e-30, 1e-12, 0.02])
    x = net.input(*((1, 3, 6, 6) if conv else (9, 10)))
    w = net.op(
        "DequantizeLinear", net.constant(data, "int8"), scales, net.constant(np.zeros(4), "int8"), axis=0
    )
    y = net.op(product, x, w, net.constant([0.1, -0.7, 0.9, 0.2]), **({} if conv else {"transB": 1}))
    proto = net.proto(net.quantised(y))
    path = save(proto, tmp_path / "model.onnx")
    graph = read_onnx(path).graph
    fuse_qdq(graph)
    assert not {n.kind for n in graph.nodes} & {"QuantizeLinear", "DequantizeLinear"}
    shape = [d.dim_value for d in proto.graph.input[0].type.tensor_type.shape.dim]
    x8 = net.rng.integers(-128, 128, shape).astype("int8")
    compiled = compile_model(Request(path, "m", "c"))
    ((got,),) = sanitized(compiled.view, compiled.texts, tmp_path).run([[x8]])
    assert np.abs(got.astype(int) - literal(proto, x8)).max() <= 1


@pytest.mark.parametrize("by_channel", [True, False])
def test_weights_that_are_transposed(by_channel: bool, tmp_path: Path) -> None:
    """DQ(w) -> Transpose -> MatMul, as PyTorch writes linear layers."""
    net = Net("uint8", 9)
    x = net.input(9, 10)
    w = net.op("Transpose", net.weights(4, 10, axis=0 if by_channel else None), perm=[1, 0])
    proto = net.proto(net.quantised(net.op("MatMul", x, w)))
    path = save(proto, tmp_path / "model.onnx")
    compiled = compile_model(Request(path, "m", "c"))
    assert "float" not in compiled.texts["m.c"].split("/* ---- metadata")[0]
    x8 = net.rng.integers(0, 256, (9, 10)).astype("uint8")
    ((got,),) = sanitized(compiled.view, compiled.texts, tmp_path).run([[x8]])
    assert np.abs(got.astype(int) - literal(proto, x8)).max() <= 1
