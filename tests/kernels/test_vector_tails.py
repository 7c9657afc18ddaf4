"""What is left of sums of bytes in vectors of channels (targets/row_tails.py, ByVectors): dynamically
quantised layers with activations, residuals and requantisation behind them, against ONNX Runtime; on Helium
in QEMU, and the same C without vectors on the host under sanitizers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from batch import Case, for_any_processor, run_cases
from qemu import available

RNG = np.random.default_rng(11)
TAILS = ("affine", "relu", "sigmoid", "leaky", "bytes", "residual", "sums")
CHANNELS = (1, 3, 4, 5, 8, 13)


def _floats(name: str, data: np.ndarray) -> onnx.TensorProto:
    return onnx.numpy_helper.from_array(np.asarray(data, np.float32), name)


def _tail(kind: str, shape: Sequence[int], axis: Sequence[int]) -> tuple[list[onnx.NodeProto], list, int]:
    """Nodes from "sums" (int32) to "y", constants, and the type of y. axis: a shape of one per channel."""
    if kind == "sums":
        return [helper.make_node("Identity", ["sums"], ["y"])], [], TensorProto.INT32
    nodes = [
        helper.make_node("Cast", ["sums"], ["real"], to=TensorProto.FLOAT),
        helper.make_node("Mul", ["real", "scale"], ["scaled"]),
        helper.make_node("Add", ["scaled", "bias"], ["affine"]),
    ]
    constants = [_floats("scale", RNG.uniform(1e-5, 1e-4, axis)), _floats("bias", RNG.uniform(-1, 1, axis))]
    if kind == "bytes":
        constants += [_floats("step", np.asarray(0.02)), onnx.numpy_helper.from_array(np.uint8(117), "point")]
        return [*nodes, helper.make_node("QuantizeLinear", ["affine", "step", "point"], ["y"])], constants, (
            TensorProto.UINT8)  # fmt: skip
    last = {
        "affine": ("Identity", {}), "relu": ("Relu", {}), "sigmoid": ("Sigmoid", {}),
        "leaky": ("LeakyRelu", {"alpha": 0.3}), "residual": ("Add", {})
    }[kind]  # fmt: skip
    inputs = ["affine", "other"] if kind == "residual" else ["affine"]
    return [*nodes, helper.make_node(last[0], inputs, ["y"], **last[1])], constants, TensorProto.FLOAT


def _case(kind: str, channels: int, product: bool) -> Case:
    """A convolution of 2x3 windows over an image of 5x4, or a product of 5 rows."""
    inner, out = ((5, 7), (5, channels)) if product else ((1, 3, 5, 4), (1, channels, 4, 4))
    axis = (channels,) if product else (channels, 1, 1)
    nodes, constants, to = _tail(kind, out, axis)
    weights = RNG.integers(0, 256, (7, channels) if product else (channels, 3, 2, 3)).astype(np.uint8)
    constants += [
        onnx.numpy_helper.from_array(weights, "w"),
        onnx.numpy_helper.from_array(np.uint8(121), "wz"),
    ]
    attributes = {} if product else {"pads": [0, 1, 0, 1]}
    first = helper.make_node(
        "MatMulInteger" if product else "ConvInteger", ["x", "w", "z", "wz"], ["sums"], **attributes
    )
    given = [helper.make_tensor_value_info("x", TensorProto.UINT8, inner),
             helper.make_tensor_value_info("z", TensorProto.UINT8, [])]  # fmt: skip
    arrays = [RNG.integers(0, 256, inner).astype(np.uint8), np.asarray(133, np.uint8)]
    if kind == "residual":
        given.append(helper.make_tensor_value_info("other", TensorProto.FLOAT, out))
        arrays.append(RNG.uniform(-2, 2, out).astype(np.float32))
    graph = helper.make_graph(
        [first, *nodes], "g", given, [helper.make_tensor_value_info("y", to, out)], constants
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    name = f"{'product' if product else 'convolution'} {kind} {channels}"
    return Case(name, model, tuple(arrays))


@cache
def cases() -> tuple[Case, ...]:
    return tuple(_case(kind, n, product) for product in (False, True) for kind in TAILS for n in CHANNELS)


def _check(outcomes: Sequence, tolerance: float) -> None:
    runtime = pytest.importorskip("onnxruntime")
    for case, outcome in zip(cases(), outcomes, strict=True):
        assert outcome.status == "ok", (case.name, outcome.message)
        assert isinstance(case.model, onnx.ModelProto)
        session = runtime.InferenceSession(case.model.SerializeToString(), providers=["CPUExecutionProvider"])
        names = [i.name for i in session.get_inputs()]
        (wanted,) = session.run(None, dict(zip(names, case.inputs, strict=True)))
        got = outcome.outputs[0]
        if wanted.dtype == np.float32:
            np.testing.assert_allclose(got, wanted, rtol=tolerance, atol=tolerance, err_msg=case.name)
        else:
            np.testing.assert_array_equal(got, wanted, err_msg=case.name)


@pytest.mark.skipif(not available(), reason="needs qemu-system-arm and arm-none-eabi-gcc")
def test_in_helium() -> None:
    _check(run_cases(cases(), "cortex-m55", sanitize=False, board="m55", flags=("-O2",)), 1e-6)


def test_without_vectors() -> None:
    """The code for Cortex-M55 as C for the host, under sanitizers."""
    _check(run_cases(cases(), "cortex-m55", make=for_any_processor), 1e-6)
