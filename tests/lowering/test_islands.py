"""A float operator between integers takes the memory of its own tensors: no copy in another order, no float
result that is quantised afterwards.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from aot_model.emit.view import Options
from aot_model.ops.quantised_linear import QuantizeLinear
from aot_model.pipeline import Compiled, Request, compile_model
from onnx_models import model, save, tensor
from sanitizers import sanitized

EDGE, INS, OUTS = 16, 12, 20
FLOATS = 4 * EDGE * EDGE * INS
"""Bytes of what the convolution reads, as floats."""


def island(edge: int, by_channel: bool = False) -> onnx.ModelProto:
    """int8 -> a convolution of floats, channels first -> int8."""
    rng = np.random.default_rng(edge)
    scales = rng.uniform(0.02, 0.05, OUTS if by_channel else ()).astype(np.float32)
    constants = {
        "s": np.float32(0.04), "z": np.int8(-7), "b": rng.normal(0, 0.1, OUTS).astype(np.float32),
        "w": rng.normal(0, 0.1, (OUTS, INS, edge, edge)).astype(np.float32), "t": scales,
        "u": rng.integers(-20, 20, scales.shape).astype(np.int8),
    }  # fmt: skip
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["f"], name="from"),
        helper.make_node("Conv", ["f", "w", "b"], ["g"], name="conv", pads=[edge // 2] * 4),
        helper.make_node("Relu", ["g"], ["h"], name="relu"),
        helper.make_node("QuantizeLinear", ["h", "t", "u"], ["y"], name="to", axis=1),
    ]
    return model(nodes, [tensor("x", (1, INS, EDGE, EDGE), TensorProto.INT8)],
                 [tensor("y", (1, OUTS, EDGE, EDGE), TensorProto.INT8)], constants)  # fmt: skip


def compiled(proto: onnx.ModelProto, folder: Path, target: str) -> Compiled:
    return compile_model(
        Request(save(proto, folder / "net.onnx"), "net", target, library=Options(io="caller"))
    )


@pytest.mark.parametrize("edge", [1, 3])
def test_memory_of_an_island(edge: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    proto = island(edge)
    least = FLOATS + EDGE * EDGE * OUTS
    assert compiled(proto, tmp_path, "cortex-m4").view.workspace_size <= least
    monkeypatch.setattr(QuantizeLinear, "by_element", lambda self, inputs: False)
    assert compiled(proto, tmp_path, "cortex-m4").view.workspace_size > least


@pytest.mark.parametrize("by_channel", [False, True])
@pytest.mark.parametrize("target", ["c", "host"])
@pytest.mark.parametrize("edge", [1, 3])
def test_values_of_an_island(edge: int, target: str, by_channel: bool, tmp_path: Path) -> None:
    proto = island(edge, by_channel)
    made = compiled(proto, tmp_path, target)
    x = np.random.default_rng(4).integers(-128, 128, (1, INS, EDGE, EDGE)).astype(np.int8)
    plain = onnxruntime.SessionOptions()  # else it quantises the weights by itself
    plain.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(proto.SerializeToString(), plain, ["CPUExecutionProvider"])
    (wanted,) = session.run(None, {"x": x})
    assert np.ptp(wanted.astype(int)) > 60
    program = sanitized(made.view, made.texts, tmp_path)
    ((found,),) = program.run([[x]])
    off = np.abs(found.reshape(wanted.shape).astype(int) - wanted.astype(int))
    assert off.max() <= 1 and (off > 0).mean() < 0.002, "sums in another order may round the other way"
