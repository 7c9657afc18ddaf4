"""Functions of one 16-bit tensor as polynomials on pieces: every argument there is, against float64."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest
from onnx import ModelProto, NodeProto, helper

from aot_model.frontends.onnx import read_onnx
from aot_model.ops.piecewise import CLOSE, CLOSE_BYTES, MOST, Piecewise
from aot_model.passes.explain import reasons
from aot_model.passes.fuse_qdq import fuse_qdq
from aot_model.pipeline import Compiled, Request, compile_model
from firmware import run_firmware
from onnx_models import model, save
from qemu import available
from sanitizers import sanitized

Nodes = Callable[[], list[NodeProto]]
Real = Callable[[np.ndarray], np.ndarray]
erf = np.vectorize(math.erf)


def one(kind: str, **attributes: object) -> Nodes:
    return lambda: [helper.make_node(kind, ["xf"], ["yf"], **attributes)]


def silu() -> list[NodeProto]:
    return [helper.make_node("Sigmoid", ["xf"], ["g"]), helper.make_node("Mul", ["xf", "g"], ["yf"])]


def sigmoid(x: np.ndarray) -> np.ndarray:
    result: np.ndarray = 1 / (1 + np.exp(-x))
    return result


@dataclass
class Function:
    nodes: Nodes
    real: Real
    x: float = 2.0**-12
    y: float = 2.0**-15
    kinds: tuple[str, str] = ("int16", "int16")
    zeros: tuple[int, int] = (0, 0)
    shape: list[int] = field(default_factory=lambda: [65536])
    close: float = CLOSE

    def net(self) -> ModelProto:
        """Dequantised, the function, quantised."""
        constants = {
            "xs": np.float32(self.x),
            "xz": np.asarray(self.zeros[0], self.kinds[0]),
            "ys": np.float32(self.y),
            "yz": np.asarray(self.zeros[1], self.kinds[1]),
        }
        nodes = [
            helper.make_node("DequantizeLinear", ["x", "xs", "xz"], ["xf"]),
            *self.nodes(),
            helper.make_node("QuantizeLinear", ["yf", "ys", "yz"], ["y"]),
        ]
        x, y = (
            helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(np.dtype(k)), self.shape)
            for n, k in zip("xy", self.kinds, strict=True)
        )
        return model(nodes, [x], [y], constants, opset=22)

    def arguments(self) -> np.ndarray:
        limits = np.iinfo(self.kinds[0])
        return np.arange(limits.min, limits.max + 1).astype(self.kinds[0])

    def check(self, got: np.ndarray) -> None:
        """Within a unit everywhere, and rounded as real numbers are but near a tie."""
        x = self.arguments().astype(np.float64) - self.zeros[0]
        with np.errstate(over="ignore"):
            real = self.real(x * float(np.float32(self.x))) / float(np.float32(self.y)) + self.zeros[1]
        limits = np.iinfo(self.kinds[1])
        real = np.clip(real, limits.min, limits.max)
        wrong = np.abs(got.reshape(-1) - np.rint(real))
        assert wrong.max() <= 1
        near = np.abs(real - np.floor(real) - 0.5) <= self.close + 2**-7  # the float path has 24 bits
        assert not wrong[~near].any() and wrong.mean() < 0.1


FUNCTIONS = {
    "Gelu": Function(one("Gelu"), lambda x: x * (1 + erf(x / math.sqrt(2))) / 2, 2.0**-12, 2.0**-13),
    "Gelu tanh": Function(
        one("Gelu", approximate="tanh"),
        lambda x: x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))) / 2,
        2.0**-13,
        2.0**-14,
    ),
    "Gelu, wide range": Function(
        one("Gelu"), lambda x: x * (1 + erf(x / math.sqrt(2))) / 2, 2.0**-11, 2.0**-11
    ),
    "Gelu, zero points": Function(
        one("Gelu"),
        lambda x: x * (1 + erf(x / math.sqrt(2))) / 2,
        2e-4,
        1.1e-4,
        ("uint16", "uint16"),
        (33000, 1600),
    ),
    "SiLU": Function(silu, lambda x: x * sigmoid(x), 2.0**-12, 2.0**-12),
    "Sigmoid": Function(one("Sigmoid"), sigmoid),
    "Sigmoid to int8": Function(
        one("Sigmoid"), sigmoid, 2.0**-12, 2.0**-8, ("int16", "int8"), (0, -128), close=CLOSE_BYTES
    ),
    "Tanh to uint8": Function(
        one("Tanh"), np.tanh, 2.0**-14, 0.0061, ("uint16", "uint8"), (30000, 120), close=CLOSE_BYTES
    ),
    "Tanh": Function(one("Tanh"), np.tanh, 2.0**-13),
    "Tanh, wide range": Function(one("Tanh"), np.tanh, close=0.5),  # within a unit, and no more
    "Erf": Function(one("Erf"), erf, 2.0**-13),
    "Exp, saturating": Function(one("Exp"), np.exp, 2.0**-13, 2.0**-12),
    "HardSwish": Function(one("HardSwish"), lambda x: x * np.clip(x / 6 + 0.5, 0, 1), 2.0**-12, 2.0**-12),
    "Softplus": Function(one("Softplus"), lambda x: np.log1p(np.exp(x)), 2.0**-12, 2.0**-12),
    "Mish": Function(one("Mish"), lambda x: x * np.tanh(np.log1p(np.exp(x))), 2.0**-12, 2.0**-12),
    "Elu": Function(one("Elu"), lambda x: np.where(x > 0, x, np.expm1(x)), 2.0**-13, 2.0**-13),
    "Neg": Function(one("Neg"), lambda x: -x, 2.0**-12, 2.0**-13),
    "Abs": Function(one("Abs"), np.abs, 2.0**-12, 2.0**-12),
}


def compiled(function: Function, target: str, folder: Path) -> Compiled:
    result = compile_model(Request(save(function.net(), folder / "m.onnx"), "m", target))
    assert [c.op for c in result.view.program.calls()] == ["Piecewise"]
    return result


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_argument(name: str, tmp_path: Path) -> None:
    function = FUNCTIONS[name]
    made = compiled(function, "c", tmp_path)
    assert made.view.constant_bytes <= 8 * MOST
    (got,) = sanitized(made.view, made.texts, tmp_path).run([[function.arguments()]])[0]
    function.check(got)


@pytest.mark.skipif(not available(), reason="needs qemu-system-arm and arm-none-eabi-gcc")
@pytest.mark.parametrize("core", ["m4", "m55"])
@pytest.mark.parametrize("name", ["Gelu", "Gelu, zero points", "Sigmoid to int8", "Exp, saturating"])
def test_every_argument_on_a_core(name: str, core: str, tmp_path: Path) -> None:
    function = FUNCTIONS[name]
    function = Function(**{**vars(function), "shape": [8, 1021]})  # no whole number of vectors
    made = compiled(function, f"cortex-{core}", tmp_path)
    every = np.resize(function.arguments(), (9, 8, 1021))
    outputs = run_firmware(made, core, [[x] for x in every], tmp_path).outputs
    function.check(np.concatenate([y[0].reshape(-1) for y in outputs])[:65536])


def test_size_takes_half_as_many(tmp_path: Path) -> None:
    path = save(FUNCTIONS["Gelu, wide range"].net(), tmp_path / "m.onnx")
    kinds = [
        [c.op for c in compile_model(Request(path, "m", f"cortex-m4,optimize={w}")).view.program.calls()]
        for w in ("balanced", "size")
    ]
    assert kinds[0] == ["Piecewise"] and "Piecewise" not in kinds[1]


@pytest.mark.parametrize(
    "function",
    [
        Function(one("Sqrt"), np.sqrt),  # no polynomial has its slope at 0
        Function(one("Reciprocal"), np.reciprocal),
        Function(one("Tanh"), np.tanh, 2.0**-8),
        Function(one("HardSwish"), np.abs, 3.1e-4, 3.1e-4),  # corners within pieces
    ],
    ids=["Sqrt", "Reciprocal", "Tanh", "HardSwish"],
)
def test_what_has_no_pieces_stays_literal(function: Function, tmp_path: Path) -> None:
    graph = read_onnx(save(function.net(), tmp_path / "m.onnx")).graph
    with reasons() as said:
        fuse_qdq(graph)
    assert not [n for n in graph.nodes if isinstance(n.op, Piecewise)]
    assert any("within a unit" in line for line in said)
