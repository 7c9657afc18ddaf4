"""Sums and products of quantised tensors of which one has 16 bits, or another type than the others."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from aot_model.frontends.onnx import read_onnx
from aot_model.host.program import scratch_folder
from aot_model.ir.types import DType
from aot_model.ops.scaled_words import Operand, ScaledProduct, ScaledSum, scaled_product, scaled_sum
from aot_model.passes.fuse_qdq import fuse_qdq
from aot_model.pipeline import Request, compile_model
from onnx_models import model, save, tensor
from sanitizers import sanitized

NEAR = Fraction(1, 2) + Fraction(1, 1 << 7)
"""From the exact result."""
KINDS = (DType.INT8, DType.UINT8, DType.INT16, DType.UINT16)


def operands(rng: np.random.Generator) -> Iterator[tuple[Operand, np.ndarray]]:
    """With a zero point within or at an end, and numbers: all ends, and others."""
    while True:
        dtype = KINDS[int(rng.integers(4))]
        low, high = (int(v) for v in dtype.limits)
        zero = int(rng.choice([low, high, rng.integers(low, high + 1)]))
        some = np.r_[low, high, zero, rng.integers(low, high + 1, 9)]
        yield Operand(dtype, zero), some.astype(dtype.numpy)


def distances(
    made: ScaledSum | ScaledProduct, real: list[Fraction], *arrays: np.ndarray, zero: int
) -> Iterator[Fraction]:
    (y,) = made.reference(list(arrays))
    for wanted, given in zip(real, y.reshape(-1).tolist(), strict=True):
        yield abs(min(max(wanted + zero, Fraction(made.low)), Fraction(made.high)) - given)


@pytest.mark.parametrize("seed", range(60))
def test_results_are_the_nearest_integers(seed: int) -> None:
    rng = np.random.default_rng(seed)
    (a, x), (b, y), (to, _) = (next(operands(rng)) for _ in range(3))
    low, high = (int(v) for v in to.dtype.limits)
    x, y = np.repeat(x, y.size), np.tile(y, x.size)
    p, q = ([Fraction(int(v) - o.zero) for v in values] for o, values in ((a, x), (b, y)))
    by_a, by_b = (float(2.0 ** rng.uniform(-4, 2) * to.dtype.limits[1] / o.dtype.limits[1]) for o in (a, b))
    total = scaled_sum(a, b, by_a, -by_b, to.zero, low, high, to.dtype)
    assert total is not None
    real = [Fraction(by_a) * u - Fraction(by_b) * v for u, v in zip(p, q, strict=True)]
    assert max(distances(total, real, x, y, zero=to.zero)) <= NEAR
    by = float(2.0 ** rng.uniform(-4, 1) * to.dtype.limits[1] / a.dtype.limits[1] / b.dtype.limits[1])
    product = scaled_product(a, b, by, to.zero, low, high, to.dtype)
    assert product is not None
    real = [Fraction(by) * u * v for u, v in zip(p, q, strict=True)]
    assert max(distances(product, real, x, y, zero=to.zero)) <= NEAR


@pytest.mark.parametrize("by", [2.0**6, 2.0**40, 1e30])
def test_what_32_bits_have_no_room_for(by: float) -> None:
    word = Operand(DType.INT16, 5)
    assert scaled_sum(word, word, by, 1.0, 0, -32768, 32767, DType.INT16) is None
    assert scaled_product(word, word, by / 2**15, 0, -32768, 32767, DType.INT16) is None


PAIRS = [
    ("int16", "int16", "int16"),
    ("uint16", "uint16", "uint16"),
    ("int8", "uint16", "uint16"),
    ("int16", "uint8", "int8"),
    ("uint8", "int8", "uint8"),
]


@pytest.mark.parametrize("kinds", PAIRS)
@pytest.mark.parametrize("function", ["Add", "Sub", "Mul"])
def test_firmware_agrees_with_onnx_runtime(
    function: str, kinds: tuple[str, str, str], tmp_path: Path
) -> None:
    constants: dict[str, np.ndarray] = {}
    rng = np.random.default_rng(3)
    for name, kind in zip("aby", kinds, strict=True):
        low, high = np.iinfo(kind).min, np.iinfo(kind).max
        constants[f"{name}_zero"] = np.asarray((low + high) // 2 + (high - low) // 50, kind)
        constants[f"{name}_scale"] = np.asarray(rng.uniform(3, 4) / (high - low), np.float32)
    nodes = [
        helper.make_node("DequantizeLinear", [v, f"{v}_scale", f"{v}_zero"], [f"{v}_real"]) for v in "ab"
    ]
    nodes += [
        helper.make_node(function, ["a_real", "b_real"], ["real"]),
        helper.make_node("QuantizeLinear", ["real", "y_scale", "y_zero"], ["y"]),
    ]
    types = [getattr(TensorProto, kind.upper()) for kind in kinds]
    inputs = [tensor("a", (40, 30), types[0]), tensor("b", (30,), types[1])]
    proto: onnx.ModelProto = model(nodes, inputs, [tensor("y", (40, 30), types[2])], constants, opset=21)
    path = save(proto, tmp_path / "net.onnx")
    graph = read_onnx(path).graph
    assert fuse_qdq(graph)
    assert [n.kind for n in graph.nodes] == ["ScaledProduct" if function == "Mul" else "ScaledSum"]
    given = [
        rng.integers(np.iinfo(kind).min, np.iinfo(kind).max + 1, shape).astype(kind)
        for kind, shape in zip(kinds, ((40, 30), (30,)), strict=False)
    ]
    compiled = compile_model(Request(path, "net", "c"))
    with scratch_folder() as scratch:
        ((got,),) = sanitized(compiled.view, compiled.texts, Path(scratch)).run([given])
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    (want,) = session.run(None, dict(zip("ab", given, strict=True)))
    apart = np.abs(got.astype(np.int64) - want.astype(np.int64))
    assert apart.max() <= 1 and (apart > 0).mean() < 0.02
