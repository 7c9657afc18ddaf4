"""Float layers whose last channels do not fill a vector of Helium: some of its lanes are loaded and stored.
Against ONNX Runtime, in QEMU.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import ModelProto, NodeProto, TensorProto, helper, numpy_helper

from batch import Case, compiled_case, run_cases
from qemu import available

TAILS = ("plain", "relu", "residual", "bytes", "words")
LAYERS = {
    "slides": {"channels": 2, "kernel": (3, 3), "pads": [1, 1, 1, 1]},
    "one channel": {"channels": 1, "kernel": (2, 4), "strides": [2, 1]},
    "blocks": {"channels": 20, "kernel": (3, 3), "pads": [1, 0, 1, 2]},
    "channels apart": {"kernel": (3, 2), "pads": [0, 1, 2, 0]},
    "maximum": {"kernel": (2, 2), "strides": [2, 2]},
    "mean": {"kernel": (3, 2), "pads": [1, 1, 1, 0]},
}
INTEGERS = {"bytes": np.uint8(100), "words": np.int16(-300)}
"""Zero points."""


def _layer(
    name: str, out: int, kernel: tuple[int, int], channels: int = 0, **attributes: Any
) -> tuple[NodeProto, list, int]:
    """(the node from "x" to "sums", constants, input channels)."""
    if name in ("maximum", "mean"):
        kind = {"maximum": "MaxPool", "mean": "AveragePool"}[name]
        return helper.make_node(kind, ["x"], ["sums"], kernel_shape=kernel, **attributes), [], out
    rng = np.random.default_rng(out)
    group = 1 if channels else out
    w = rng.standard_normal((out, channels or 1, *kernel)).astype(np.float32)
    b = rng.standard_normal(out).astype(np.float32)
    node = helper.make_node("Conv", ["x", "w", "b"], ["sums"], group=group, **attributes)
    return node, [numpy_helper.from_array(w, "w"), numpy_helper.from_array(b, "b")], channels or out


def _model(layer: str, tail: str, out: int) -> ModelProto:
    node, constants, channels = _layer(layer, out, **LAYERS[layer])  # type: ignore[arg-type]
    nodes, kind, inputs = [node], TensorProto.FLOAT, ["sums"]
    given = [helper.make_tensor_value_info("x", TensorProto.FLOAT, (1, channels, 7, 9))]
    if tail == "residual":
        nodes.append(helper.make_node("MaxPool", ["sums"], ["other"], kernel_shape=(1, 1)))
        nodes.append(helper.make_node("Add", ["sums", "other"], ["y"]))
    elif tail in INTEGERS:
        zero = INTEGERS[tail]
        constants += [numpy_helper.from_array(np.float32(0.04), "s"), numpy_helper.from_array(zero, "z")]
        nodes.append(helper.make_node("QuantizeLinear", [*inputs, "s", "z"], ["y"]))
        kind = helper.np_dtype_to_tensor_dtype(zero.dtype)
    else:
        nodes.append(helper.make_node({"plain": "Identity", "relu": "Relu"}[tail], inputs, ["y"]))
    result = helper.make_tensor_value_info("y", kind, [1, out, "h", "w"])
    graph = helper.make_graph(nodes, "g", given, [result], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def _cases(outs: Sequence[int]) -> list[Case]:
    rng = np.random.default_rng(5)
    made = []
    for layer in LAYERS:
        for tail in TAILS:
            for out in outs:
                model = _model(layer, tail, out)
                shape = [d.dim_value for d in model.graph.input[0].type.tensor_type.shape.dim]
                x = rng.standard_normal(shape).astype(np.float32)
                made.append(Case(f"{layer} {tail} {out}", model, (x,)))
    return made


@pytest.mark.skipif(not available(), reason="needs qemu-system-arm and arm-none-eabi-gcc")
@pytest.mark.parametrize("level", ["-O2", "-O3"])
def test_in_helium(level: str) -> None:
    cases = _cases((1, 2, 3, 5, 6, 7))
    for case, outcome in zip(
        cases, run_cases(cases, "cortex-m55", sanitize=False, board="m55", flags=(level,)), strict=True
    ):
        assert outcome.status == "ok", (case.name, outcome.message)
        assert isinstance(case.model, ModelProto)
        session = onnxruntime.InferenceSession(case.model.SerializeToString())
        (wanted,) = session.run(None, {"x": case.inputs[0]})
        got = outcome.outputs[0]
        if wanted.dtype == np.float32:
            np.testing.assert_allclose(got, wanted, rtol=1e-5, atol=1e-5, err_msg=case.name)
        else:  # sums in another order may be on the other side of a half
            assert np.abs(got.astype(np.int64) - wanted).max() <= 1, case.name
            assert (got != wanted).mean() < 0.02, case.name


@pytest.mark.parametrize("out", [2, 3, 6, 7])
@pytest.mark.parametrize("tail", TAILS)
@pytest.mark.parametrize("layer", LAYERS)
def test_no_whole_vector_is_stored_behind_the_last_channel(
    layer: str, tail: str, out: int, tmp_path: Path
) -> None:
    """What follows the result would be overwritten; a test of values does not see it."""
    case = Case(layer, _model(layer, tail, out), ())
    source = compiled_case(case, tmp_path / "m.onnx", "m", "cortex-m55").texts["m.c"]
    body = " ".join(source[source.index("/* ---- layers ---- */") :].split())
    floats = {int(n) for n in re.findall(r"aot_model_store_some_f32\(y[^;]*, (\d)\);", body)}
    integers = {int(n) for n in re.findall(r"vstr[bh]q_p_s32\([^;]*vctp32q\((\d)\)\);", body)}
    assert (integers if tail in INTEGERS else floats) == {out % 4}
    whole = len(re.findall(r"vstr[bh]q_s32\(|aot_model_store_f32\(y\b", body))
    if layer != "maximum" or tail not in INTEGERS:  # whose image is quantised before, in whole vectors
        assert (whole > 0) == (out > 4)
