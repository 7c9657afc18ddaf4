"""`verify --layers`: a rounding that grew to several steps is told from a fault."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from aot_model.cli import main
from aot_model.emit.view import Options
from aot_model.host import program as host_run
from aot_model.host.comparison import Tolerance
from aot_model.layers.choice import open_reference
from aot_model.layers.growth import grown
from aot_model.layers.measure import measure
from aot_model.pipeline import Request, compile_model
from onnx_models import model, save, tensor
from tflite_models import INT8, Op, T
from tflite_models import build as build_tflite

RNG = np.random.default_rng(46)


def _growing(folder: Path) -> Path:
    """A product that rounds otherwise in LiteRT than in TensorFlow Lite Micro, behind which a table has a
    step of two or three.
    """
    w = RNG.integers(-127, 128, (64, 32)).astype(np.int8)
    tensors = [
        T("x", (16, 32), INT8, (0.02,), (3,)),
        T("w", (64, 32), INT8, (0.004,), (0,), data=w),
        T("h", (16, 64), INT8, (0.05,), (-2,)),
        T("y", (16, 64), INT8, (0.02,), (0,)),
    ]
    operators = [
        Op("FULLY_CONNECTED", (0, 1, -1), (2,), "FullyConnectedOptions"),
        Op("GELU", (2,), (3,), "GeluOptions", {"Approximate": False}),
    ]
    path = folder / "m.tflite"
    path.write_bytes(build_tflite(tensors, operators, (0,), (3,)))
    return path


def test_steps_that_grew_are_told_from_a_fault(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("ai_edge_litert")
    asked = ["verify", str(_growing(tmp_path)), "--layers", "--random", "64", "--target", "c"]
    assert main(asked) == 1
    assert "hint: with --option arithmetic=litert-ref" in capsys.readouterr().err
    assert main([*asked, "--option", "arithmetic=litert-ref"]) == 0
    assert "arithmetic" not in capsys.readouterr().err


FACTORS = np.asarray([[2, 4, 20, 2, -8, 2, 2, 2]], np.int8)
"""In halves."""
GROWN = np.asarray([[1, 2, 10, 1, 4, 1, 1, 1]])
"""What a step becomes."""


def _gated(folder: Path, last: str) -> Path:
    """A product by a matrix of ones on its diagonal, quantised, and multiplied by the other input."""
    constants = {
        "s": np.float32(0.05), "z": np.int8(0), "one": np.float32(1), "half": np.float32(0.5),
        "w": np.eye(8, dtype=np.int8),
    }  # fmt: skip
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["xf"]),
        helper.make_node("DequantizeLinear", ["w", "one", "z"], ["wf"]),
        helper.make_node("MatMul", ["xf", "wf"], ["m"]),
        helper.make_node("QuantizeLinear", ["m", "s", "z"], ["mq"]),
        helper.make_node("DequantizeLinear", ["mq", "s", "z"], ["mf"]),
        helper.make_node("DequantizeLinear", ["f", "half", "z"], ["ff"]),
        helper.make_node(last, ["mf", "ff"], ["p"]),
        helper.make_node("QuantizeLinear", ["p", "s", "z"], ["y"]),
    ]
    int8 = TensorProto.INT8
    factors = (1, 8) if last == "Mul" else (8, 8)
    ends = [tensor("x", (1, 8), int8), tensor("f", factors, int8)], [tensor("y", (1, 8), int8)]
    return save(model(nodes, *ends, constants), folder / "m.onnx")


@pytest.mark.parametrize(("more", "status"), [(0, "ok"), (1, "rounding"), (2, "off")])
def test_a_step_inside_of_a_layer_is_as_large_as_what_it_becomes(
    tmp_path: Path, more: int, status: str
) -> None:
    path, x = _gated(tmp_path, "Mul"), np.asarray([[4, 4, -4, 20, 8, 0, 60, -60]], np.int8)
    reference = open_reference(path, "onnx", None, {})
    compiled = compile_model(Request(path, "m", "c", library=Options(trace=True)))
    program = host_run.build(compiled.view, compiled.texts, tmp_path / "b")
    (row,) = program.run([[x, FACTORS]])
    off = [(array + GROWN * (more > 0) + more).astype(np.int8) for array in row]
    (layer,) = measure(program, [off], [[x, FACTORS]], reference, Tolerance()).layers
    assert layer.name == "y" and layer.own is not None and layer.own.worst == (10 + more if more else 0)
    assert layer.status == status


def test_a_sum_of_many_elements_has_no_such_bound(tmp_path: Path) -> None:
    x = np.asarray([[1, 1, 1, 1, 1, 127, -128, 1]], np.int8)  # of ends there is a step one way alone
    for last, factors, wanted in (("Mul", FACTORS, GROWN + 1), ("MatMul", np.diag(FACTORS[0]), None)):
        reference = open_reference(_gated(tmp_path, last), "onnx", None, {})
        found = grown(reference, reference.nodes, "y", [x, factors], {"y": x})
        assert found is None if wanted is None else (found == wanted).all()
