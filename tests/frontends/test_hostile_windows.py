"""Strides, dilations and pads that no network has: a loop takes the place of kernels with a case for each
output, and numbers stay right.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from aot_model.pipeline import Request, compile_model
from batch import Case, run_cases
from onnx_models import model, save, tensor

node = helper.make_node
SECONDS, CHARACTERS = 5, 300_000


def _transposed(spatial: tuple[int, ...], kernel: tuple[int, ...], **attributes: Any) -> onnx.ModelProto:
    weights = np.random.default_rng(0).integers(-3, 4, (2, 3, *kernel)).astype(np.float32)
    return model(
        [node("ConvTranspose", ["x", "w"], ["y"], **attributes)],
        [tensor("x", [1, 2, *spatial])],
        [tensor("y", None)],
        {"w": weights},
    )


def _quantised(proto: onnx.ModelProto, zero: np.ndarray) -> onnx.ModelProto:
    """Its float input, weights and result through QDQ pairs."""
    op, shape = proto.graph.node[0], [d.dim_value for d in proto.graph.input[0].type.tensor_type.shape.dim]
    weights = onnx.numpy_helper.to_array(proto.graph.initializer[0]).astype(np.int8)
    nodes = [
        node("QuantizeLinear", ["x", "s", "z"], ["xq"]),
        node("DequantizeLinear", ["xq", "s", "z"], ["xd"]),
        node("DequantizeLinear", ["w", "s", "wz"], ["wd"]),
        node(
            op.op_type, ["xd", "wd"], ["c"], **{a.name: helper.get_attribute_value(a) for a in op.attribute}
        ),
        node("QuantizeLinear", ["c", "s", "z"], ["cq"]),
        node("DequantizeLinear", ["cq", "s", "z"], ["y"]),
    ]
    return model(
        nodes,
        [tensor("x", shape)],
        [tensor("y", None)],
        {"w": weights, "s": np.float32(0.125), "z": zero, "wz": np.int8(0)},
        opset=21,
    )


WINDOWS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "dilation": ((8,), (3,), {"dilations": [65536]}),
    "stride": ((8,), (3,), {"strides": [65536]}),
    "both": ((8,), (3,), {"strides": [65535], "dilations": [65536]}),
    "rows": ((4, 4), (3, 3), {"dilations": [65536, 1]}),
    "rows and columns": ((4, 4), (3, 3), {"dilations": [1500, 3000]}),
    "strides of both": ((4, 4), (3, 3), {"strides": [300, 700]}),
    "planes": ((3, 3, 3), (2, 2, 2), {"dilations": [1, 1, 65536]}),
    "long": ((4, 400), (3, 3), {"strides": [1, 1000], "pads": [0, 4000, 0, 4000]}),
    "of a network": ((5, 5), (64, 64), {"strides": [32, 32], "pads": [16, 16, 16, 16]}),
}


@pytest.mark.parametrize("kind", ["float", "int8", "int16"])
@pytest.mark.parametrize("case", WINDOWS)
def test_text_and_time_are_bounded(case: str, kind: str, tmp_path: Path) -> None:
    spatial, kernel, attributes = WINDOWS[case]
    proto = _transposed(spatial, kernel, **attributes)
    if kind != "float":
        proto = _quantised(proto, np.int8(3) if kind == "int8" else np.int16(0))
    path = save(proto, tmp_path / "m.onnx")
    for target in ("c", "cortex-m4"):
        began = time.process_time()
        found = compile_model(Request(path, "m", target))
        assert time.process_time() - began < SECONDS
        assert len(found.texts["m.c"]) < CHARACTERS + 20 * np.prod([6, *kernel])


def test_numbers() -> None:
    """What takes a kernel's place, and outputs without a tap, which a kernel walks over."""
    protos = [
        _transposed((8,), (3,), dilations=[3000]),
        _transposed((5,), (7,), strides=[600], dilations=[900]),
        _transposed((3, 3), (3, 2), strides=[9, 400], dilations=[1, 11]),
        _transposed((5, 2), (2, 3), strides=[7, 9], output_padding=[6, 8]),
    ]
    rng = np.random.default_rng(1)
    cases = []
    for i, proto in enumerate(protos):
        shape = [d.dim_value for d in proto.graph.input[0].type.tensor_type.shape.dim]
        cases.append(Case(f"case{i}", proto, (rng.integers(-4, 5, shape).astype(np.float32),)))
    for proto, case, outcome in zip(protos, cases, run_cases(cases, "c"), strict=True):
        session = onnxruntime.InferenceSession(proto.SerializeToString())
        assert outcome.status == "ok", outcome.message
        np.testing.assert_array_equal(outcome.outputs[0], session.run(None, {"x": case.inputs[0]})[0])
