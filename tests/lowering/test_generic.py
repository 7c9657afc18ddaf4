"""Generic loops: which layers are one, why no kernel took them, and that they do not carry networks.

The corpora are compiled as far as the program, one slice of them for each commit; AOT_MODEL_GENERIC_ALL=1 has
all of them.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from aot_model.cli import main
from aot_model.errors import CompileError
from aot_model.frontends.model import Bindings
from aot_model.frontends.read import read_model
from aot_model.ir.expr import clear_interned
from aot_model.ir.graph import Graph
from aot_model.ir.program import Program
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value, constant
from aot_model.lowering.lower import lower
from aot_model.ops.convolution import Convolution
from aot_model.ops.matmul import MatMul
from aot_model.ops.registry import OPERATORS, Build, load_all
from aot_model.passes.manager import run_passes
from aot_model.targets.registry import parse_target
from turns import commit_number

_SHARED = Path(__file__).resolve().parents[3] / "shared"
_FOLDERS = (
    Path(os.environ.get("AOT_MODEL_MODELS", _SHARED / "models")),
    Path(os.environ.get("AOT_MODEL_FOREIGN", _SHARED / "foreign")),
)
TARGET = "cortex-m4"
MOST = 0.05
"""Of a network's MACs."""
SMALL = 20_000
"""MACs of networks that are not asked about: a few vectors."""
SLICES = 24
LARGE = 3_000_000
"""Bytes of files that only the whole run has."""
KNOWN = {
    "mk_mamba.onnx": (0.13, "a scan over time: a product of 16 states is a sum of products for each channel")
}
"""Networks beyond MOST: how much, and what it is."""


def _models() -> list[Path]:
    found = sorted(p for folder in _FOLDERS for p in folder.glob("*") if p.suffix in (".onnx", ".tflite"))
    if os.environ.get("AOT_MODEL_GENERIC_ALL"):
        return found
    slice_ = commit_number() % SLICES
    return [p for p in found if p.stat().st_size <= LARGE or p.name in KNOWN][slice_::SLICES]


def _program(path: Path) -> Program | None:
    """None: the network needs sizes that only its user knows, or has an error of its own."""
    clear_interned()
    load_all()
    target = parse_target(TARGET, {})
    try:
        model = read_model(path, Bindings({}, {}, {}, 64), "tflm")
        run_passes(model.graph, target)
        return lower(model.graph, target)
    except CompileError:
        return None


def share(program: Program) -> tuple[int, int]:
    """(MACs in generic loops, MACs)."""
    calls = list(program.calls())
    return sum(c.macs for c in calls if c.generic), sum(c.macs for c in calls)


@pytest.mark.skipif(not any(f.is_dir() for f in _FOLDERS), reason="no corpora: set AOT_MODEL_MODELS")
def test_kernels_carry_networks() -> None:
    said, whole, generic, asked = [], 0, 0, 0
    for path in _models():
        program = _program(path)
        own, macs = share(program) if program is not None else (0, 0)
        asked += program is not None
        whole, generic = whole + macs, generic + own
        if own > max(MOST, KNOWN.get(path.name, (0.0, ""))[0]) * macs and macs > SMALL:
            assert program is not None
            worst = max((c for c in program.calls() if c.generic), key=lambda c: c.macs)
            assert worst.generic is not None
            said.append(f"{path.name}: {own:,} of {macs:,} MACs; '{worst.layer}' {worst.generic.why}")
    assert asked, "no network could be compiled"
    assert not said, "\n".join(said)
    assert generic <= MOST * whole


# --- what is said of one ------------------------------------------------------------------------------------


def _lowered(dtype: DType, w: np.ndarray, fed: bool = False) -> Program:
    """A product of two steps; the second's weights are an input where `fed`."""
    load_all()
    x = Value("x", TensorType(dtype, (4, 24)))
    graph = Graph("g", [x])
    build = Build(graph.nodes, "product")
    weights = Value("w", TensorType(DType.of(w.dtype), w.shape)) if fed else constant("w", w)
    graph.inputs += [weights] if fed else []
    graph.outputs = [build(MatMul(), x, weights)]
    return lower(graph, parse_target(TARGET, {}))


def test_products_that_kernels_take_are_not_generic() -> None:
    for fed in (False, True):
        program = _lowered(DType.INT8, np.ones((24, 5), np.int8), fed)
        assert share(program) == (0, 480) and not any(c.generic for c in program.calls())


def test_product_that_no_kernel_takes_says_why() -> None:
    (call,) = _lowered(DType.INT32, np.ones((24, 5), np.int32)).calls()
    assert call.generic is not None and call.macs == 480
    # two loads, a product and its addition
    assert call.generic.operations == 480 * 4
    words = call.generic.why
    assert words.startswith("MatMul 'product'") and "the activations are not int8 or uint8" in words
    assert "the operands are not integers of 8 or 16 bits" in words and "float32" in words


@pytest.mark.parametrize("count", [4, 5, 6])
def test_four_products_of_a_loop_are_named(count: int) -> None:
    load_all()
    graph = Graph("g", [Value("x", TensorType(DType.INT32, (4, 24)))])
    total = None
    for k in range(count):
        build = Build(graph.nodes, f"product {k}")
        one = build(MatMul(), graph.inputs[0], constant(f"w{k}", np.full((24, 5), k, np.int32)))
        total = one if total is None else build(OPERATORS["", "Add"](), total, one)
    assert total is not None
    graph.outputs = [total]
    (call,) = lower(graph, parse_target(TARGET, {})).calls()
    assert call.generic is not None and call.generic.why.count("MatMul 'product ") == 4
    assert call.generic.why.partition("; and ")[2] == (f"{count - 4} more" if count > 4 else "")


def test_a_product_of_another_is_named_alone() -> None:
    load_all()
    graph = Graph("g", [Value("x", TensorType(DType.INT32, (4, 5)))])
    [y] = graph.inputs
    for name in ("first", "second"):
        y = Build(graph.nodes, name)(MatMul(), y, constant(name, np.ones((5, 5), np.int32)))
    graph.outputs = [y]
    why = [c.generic.why for c in lower(graph, parse_target(TARGET, {})).calls() if c.generic]
    assert ["'first'" in w for w in why] == [True, False] and ["'second'" in w for w in why] == [False, True]


def test_loop_without_products_has_no_reason() -> None:
    load_all()
    x = Value("x", TensorType(DType.INT8, (1, 4, 4, 2)))
    graph = Graph("g", [x])
    build = Build(graph.nodes, "late")
    w = constant("w", np.ones((3, 1, 1, 2), np.int8))
    from aot_model.ops.elementwise import op

    graph.outputs = [build(Convolution(), build(op("Neg"), x), w)]
    loop, kernel = lower(graph, parse_target(TARGET, {})).calls()
    assert loop.generic is not None and not loop.generic.why and not kernel.generic


def test_check_explains(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from onnx import TensorProto, helper

    from onnx_models import model, save, tensor

    i32 = TensorProto.INT32
    nodes = [
        helper.make_node("Einsum", ["x", "w"], ["a"], equation="ij,jk->ik", name="sums"),
        helper.make_node("MatMul", ["x", "v"], ["b"], name="rows"),
    ]
    ports = [tensor("x", [4, 6], i32), tensor("w", [6, 3], i32), tensor("v", [6, 2], i32)]
    path = save(model(nodes, ports, [tensor("a", None, i32), tensor("b", None, i32)]), tmp_path / "m.onnx")
    assert main(["check", str(path), "--target", TARGET, "--explain"]) == 0
    out = capsys.readouterr().out
    assert "generic loops compute 120 of 120 MACs (100.0 %)" in out and "not int8 or uint8" in out
    assert main(["check", str(path), "--target", TARGET, "--explain", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["macs"] == 120 and {48, 72} <= {g["macs"] for g in facts["generic"]}
