"""Networks of QONNX nodes: the same numbers as their literal meaning in operators of ONNX, by integers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from aot_model.errors import CompileError
from aot_model.pipeline import Request, compile_model
from onnx_models import model, save, tensor
from sanitizers import sanitized

DOMAINS = ("qonnx.custom_op.general", "onnx.brevitas", "finn.custom_op.general")


class Network:
    """The same network twice: with Quant nodes, and with what they mean."""

    def __init__(self, domain: str) -> None:
        self.domain, self.rng = domain, np.random.default_rng(4)
        self.short: list[onnx.NodeProto] = []
        self.long: list[onnx.NodeProto] = []
        self.constants: dict[str, np.ndarray] = {}

    def constant(self, data: object) -> str:
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(data, np.float32)
        return name

    def op(
        self, kind: str, *inputs: str, only: list[onnx.NodeProto] | None = None, **attributes: object
    ) -> str:
        out = f"t{len(self.short) + len(self.long)}"
        for nodes in (self.short, self.long) if only is None else (only,):
            nodes.append(helper.make_node(kind, inputs, [out], **attributes))
        return out

    def quant(self, x: str, scale: object, bits: int, signed: int = 1, narrow: int = 0) -> str:
        step, zero = self.constant(scale), self.constant(0)
        low, high = (narrow - 2 ** (bits - 1), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1 - narrow)
        y = self.op("Div", x, step, only=self.long)
        y = self.op("Clip", y, self.constant(low), self.constant(high), only=self.long)
        y = self.op("Round", y, only=self.long)
        y = self.op("Mul", y, step, only=self.long)
        inputs = [x, step, zero, self.constant(bits)]
        attributes = {"signed": signed, "narrow": narrow, "rounding_mode": "ROUND"}
        self.short.append(helper.make_node("Quant", inputs, [y], domain=self.domain, **attributes))
        return y

    def bipolar(self, x: str, scale: float) -> str:
        step = self.constant(scale)
        y = self.op("GreaterOrEqual", x, self.constant(0), only=self.long)
        y = self.op("Where", y, step, self.constant(-scale), only=self.long)
        self.short.append(helper.make_node("BipolarQuant", [x, step], [y], domain=self.domain))
        return y

    def normalised(self, x: str, channels: int) -> str:
        ranges = ((0.5, 1.5), (-1, 1), (-1, 1), (0.5, 2))
        numbers = (self.constant(self.rng.uniform(*r, channels)) for r in ranges)
        return self.op("BatchNormalization", x, *numbers)

    def protos(self, result: str, *shape: int) -> tuple[onnx.ModelProto, onnx.ModelProto]:
        both = []
        for nodes in (self.short, self.long):
            x, y = tensor("x", shape), tensor(result, None)
            both.append(model(nodes, [x], [y], self.constants, opset=17))
        both[0].opset_import.append(helper.make_opsetid(self.domain, 1))
        return both[0], both[1]


@pytest.mark.parametrize("domain", DOMAINS)
def test_a_network_is_one_of_integers(domain: str, tmp_path: Path) -> None:
    """Weights of 4 bits by channel, batch normalisation, activations of 4 bits, weights of one bit."""
    n = Network(domain)
    draw = n.rng.normal
    x = n.quant("x", 1 / 64, 8)
    w = n.quant(n.constant(draw(size=(8, 3, 3, 3))), n.rng.uniform(0.2, 0.4, (8, 1, 1, 1)), 4, narrow=1)
    y = n.op("Relu", n.normalised(n.op("Conv", x, w), 8))
    y = n.quant(y, 0.37, 4, signed=0)
    y = n.op("MaxPool", y, kernel_shape=[2, 2], strides=[2, 2])
    y = n.op("Conv", y, n.bipolar(n.constant(draw(size=(6, 8, 1, 1))), 0.11))
    y = n.quant(n.normalised(y, 6), 0.21, 6)
    y = n.op("Flatten", y)
    w = n.op("Transpose", n.quant(n.constant(draw(size=(5, 54))), 0.05, 3), perm=[1, 0])
    y = n.quant(n.op("MatMul", y, w), 0.04, 8)
    short, long = n.protos(y, 1, 3, 8, 8)

    compiled = compile_model(Request(save(short, tmp_path / "model.onnx"), "m", "c"))
    inputs = [np.asarray(draw(size=(1, 3, 8, 8)), np.float32) for _ in range(20)]
    program = sanitized(compiled.view, compiled.texts, tmp_path)
    got = np.concatenate([out[0] for out in program.run([[v] for v in inputs])])
    session = onnxruntime.InferenceSession(long.SerializeToString(), providers=["CPUExecutionProvider"])
    want = np.concatenate([session.run(None, {"x": v})[0] for v in inputs])
    # of the 0.1 % of the activations that are a step of 1/15 of their range off, each is seen by all results
    off = np.abs(got - want) / 0.04
    assert np.count_nonzero(off > 0.5) <= 0.2 * off.size and off.max() < 8, (off.max(), np.mean(off > 0.5))
    functions = compiled.texts["m.c"].split("AOT_MODEL_OPAQUE static")
    products = [t for t, before in zip(functions[1:], functions, strict=False) if "MACs" in before[-600:]]
    assert len(products) == 3 and not any("float" in t.split("{")[0] for t in products)


@pytest.mark.parametrize(
    ("attributes", "numbers", "code"),
    [
        ({"rounding_mode": "STOCHASTIC"}, (0.5, 0, 4), "E202"),
        ({"rounding_mode": "STOCHASTIC"}, (0.5, 0, 1), "E202"),
        ({}, (0.5, 0, 0), "E302"),
        ({}, (0.5, 0, 2.5), "E302"),
        ({}, (0.5, 0, 33), "E302"),
        ({}, (0.5, 0, np.nan), "E302"),
    ],
)
def test_what_is_no_quantisation_is_refused(
    attributes: dict[str, str], numbers: tuple[float, ...], code: str, tmp_path: Path
) -> None:
    constants = {f"c{k}": np.asarray(v, np.float32) for k, v in enumerate(numbers)}
    node = helper.make_node("Quant", ["x", *constants], ["y"], domain=DOMAINS[0], **attributes)
    proto = model([node], [tensor("x", (2, 3))], [tensor("y", None)], constants, opset=17)
    proto.opset_import.append(helper.make_opsetid(DOMAINS[0], 1))
    with pytest.raises(CompileError) as error:
        compile_model(Request(save(proto, tmp_path / "model.onnx"), "m", "c"))
    assert [p.code for p in error.value.problems] == [code]
