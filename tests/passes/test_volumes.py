"""Convolutions of integers over three axes run as such of two, which have kernels, whatever their window."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from aot_model.frontends.model import Bindings
from aot_model.frontends.read import read_model
from aot_model.lowering.lower import lower
from aot_model.ops.convolution import Convolution
from aot_model.ops.registry import load_all
from aot_model.ops.volumes import MOST
from aot_model.passes.manager import run_passes
from aot_model.targets.registry import parse_target
from onnx_models import model, save, tensor

load_all()
RNG = np.random.default_rng(77)


def _qdq(inputs: tuple[int, ...], weights: tuple[int, ...], window: dict[str, Any]) -> onnx.ModelProto:
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["xf"]),
        helper.make_node("DequantizeLinear", ["w", "t", "zero"], ["wf"], axis=0),
        helper.make_node("Conv", ["xf", "wf"], ["c"], name="conv", **window),
        helper.make_node("QuantizeLinear", ["c", "u", "z"], ["y"]),
    ]
    w = RNG.integers(-127, 128, weights).astype(np.int8)
    constants = {
        "w": w, "s": np.float32(0.02), "z": np.int8(-5), "u": np.float32(0.3),
        "t": RNG.uniform(0.005, 0.01, weights[0]).astype(np.float32), "zero": np.zeros(weights[0], np.int8),
    }  # fmt: skip
    ends = [tensor("x", inputs, TensorProto.INT8)], [tensor("y", (), TensorProto.INT8)]
    made = model(nodes, *ends, constants)
    made.graph.output[0].type.tensor_type.ClearField("shape")
    return made


@pytest.mark.parametrize(
    ("weights", "window"),
    [
        ((16, 8, 3, 3, 3), {"pads": [1] * 6}),
        ((16, 8, 3, 3, 3), {"strides": [2, 2, 2], "pads": [0, 1, 1, 1, 0, 0]}),
        ((16, 8, 1, 3, 3), {"pads": [0, 1, 1, 0, 1, 1]}),
        ((16, 8, 3, 1, 1), {"dilations": [2, 1, 1]}),
        ((16, 8, 1, 1, 1), {}),
        ((16, 2, 2, 3, 3), {"group": 4}),
        ((8, 1, 3, 3, 3), {"group": 8, "pads": [1] * 6}),
    ],
)
@pytest.mark.parametrize("target", ["c", "cortex-m4", "cortex-m55"])
def test_a_kernel_takes_it(
    tmp_path: Path, weights: tuple[int, ...], window: dict[str, Any], target: str
) -> None:
    path = save(_qdq((1, 8, 6, 8, 8), weights, window), tmp_path / "m.onnx")
    graph, processor = read_model(path, Bindings({}, {}, {}, 64), "tflm").graph, parse_target(target, {})
    run_passes(graph, processor)
    (layer,) = (call for call in lower(graph, processor).calls() if call.macs)
    assert layer.generic is None


@pytest.mark.parametrize(("taps", "kernel"), [(MOST, True), (MOST + 1, False)])
def test_copies_of_planes_are_not_without_end(tmp_path: Path, taps: int, kernel: bool) -> None:
    path = save(_qdq((1, 2, taps + 1, 3, 3), (4, 2, taps, 2, 1), {}), tmp_path / "m.onnx")
    graph = read_model(path, Bindings({}, {}, {}, 64), "tflm").graph
    run_passes(graph, parse_target("c", {}))
    (node,) = (n for n in graph.nodes if isinstance(n.op, Convolution))
    assert node.inputs[0] is not None and (node.inputs[0].type.rank == 4) is kernel


def test_no_channels_at_all(tmp_path: Path) -> None:
    path = save(_qdq((1, 2, 4, 3, 3), (0, 2, 2, 2, 1), {}), tmp_path / "m.onnx")
    graph = read_model(path, Bindings({}, {}, {}, 64), "tflm").graph
    run_passes(graph, parse_target("c", {}))
    assert graph.outputs[0].shape == (1, 0, 3, 2, 3)
