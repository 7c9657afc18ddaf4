"""Results of 16 and 8 bits without a sign that a kernel leaves in a row for what follows it: as large as they
get, against ONNX Runtime's literal computation. Helium's kernels write them as if they had a sign.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

from batch import Case, Outcome, run_cases
from qemu import available

LAYERS: dict[str, tuple[int, int, int, int, int]] = {
    # input and output channels, kernel, stride, groups
    "pointwise": (8, 3, 1, 1, 1),
    "of blocks": (8, 13, 3, 2, 1),
    "depthwise": (16, 16, 3, 1, 16),
    "depthwise of gathers": (5, 5, 5, 1, 5),
    "depthwise of few": (3, 3, 3, 2, 3),
    "groups": (8, 6, 3, 1, 2),
    "transposed": (4, 5, 4, 2, 0),
}
TYPES = {
    "int16 to uint16": (np.int16, np.uint16),
    "uint16 to uint16": (np.uint16, np.uint16),
    "int16 to uint8": (np.int16, np.uint8),
}
TARGETS = {"c": None, "cortex-m4": "m4", "cortex-m55": "m55"}
KEYS = [(label, types) for label in LAYERS for types in TYPES]


@cache
def _case(label: str, types: str) -> Case:
    ins, outs, kernel, stride, groups = LAYERS[label]
    x_kind, to = TYPES[types]
    rng = np.random.default_rng(KEYS.index((label, types)))
    unsigned = x_kind is np.uint16
    shape = (outs, ins // max(groups, 1), kernel, kernel) if groups else (ins, outs, kernel, kernel)
    step = 8 / np.iinfo(to).max
    constants = {
        "s": np.float32(6 / 65535),
        "z": x_kind(30000 if unsigned else 0),
        "w": rng.integers(-127, 128, shape).astype(np.int8),
        "ws": np.float32(0.03 / np.sqrt(np.prod(shape[1:]))),
        "wz": np.int8(0),
        "b": rng.normal(0, 0.3, outs).astype(np.float32),
        "o": np.float32(step),
        "oz": to(np.iinfo(to).max // 2 + 9),
        "p": np.float32(1 / 65535),
        "pz": np.uint16(0),
    }
    window = {"strides": [stride] * 2} | ({"pads": [kernel // 2] * 4, "group": groups} if groups else {})
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["f"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wf"]),
        helper.make_node("Conv" if groups else "ConvTranspose", ["f", "wf", "b"], ["c"], **window),
        helper.make_node("QuantizeLinear", ["c", "o", "oz"], ["cq"]),
        helper.make_node("DequantizeLinear", ["cq", "o", "oz"], ["cf"]),
        helper.make_node("Sigmoid", ["cf"], ["g"]),
        helper.make_node("QuantizeLinear", ["g", "p", "pz"], ["y"]),
    ]
    inner = (1, ins, 7, 9)
    graph = helper.make_graph(
        nodes,
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, inner)],
        [helper.make_tensor_value_info("y", TensorProto.UINT16, None)],
        [numpy_helper.from_array(np.asarray(v), k) for k, v in constants.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    return Case(f"{label}, {types}", model, (rng.uniform(-3, 3, inner).astype(np.float32),))


@cache
def _outcomes(target: str) -> list[Outcome]:
    cases = [_case(*key) for key in KEYS]
    return run_cases(cases, target, sanitize=TARGETS[target] is None, board=TARGETS[target])


@pytest.mark.parametrize("label", LAYERS)
@pytest.mark.parametrize("types", TYPES)
@pytest.mark.parametrize(
    "target",
    [
        pytest.param(t, marks=pytest.mark.skipif(b is not None and not available(), reason="no QEMU"))
        for t, b in TARGETS.items()
    ],
)
def test_results(target: str, types: str, label: str) -> None:
    """Within two steps of 65,536, or what a step of the results of 8 bits makes of them: a rounding of the
    sums, and one of the function.
    """
    case, outcome = _case(label, types), _outcomes(target)[KEYS.index((label, types))]
    assert outcome.status == "ok", outcome.message
    assert isinstance(case.model, onnx.ModelProto)
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = onnxruntime.InferenceSession(
        case.model.SerializeToString(), options, providers=["CPUExecutionProvider"]
    )
    wanted = session.run(None, {"x": case.inputs[0]})[0].astype(np.int64)
    assert wanted.max() > 40000 and wanted.min() < 20000
    off = np.abs(outcome.outputs[0].astype(np.int64) - wanted)
    assert off.max() <= (2 if TYPES[types][1] is np.uint16 else 65535 * 0.25 * 8 / 255 + 2)
