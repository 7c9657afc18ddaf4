"""Weights of 4 bits: scales whose requantisation is short, and what they save on a Cortex-M4."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from networks import data, mobile, saved
from test_quantise import _calibration, decibels, run

from aot_model.kernels.int8.requantise import SHORT_BITS
from aot_model.pipeline import Request, compile_model
from aot_model.quantise.candidates import Calibration, Candidate
from aot_model.quantise.cost import Platform, cost_of
from aot_model.quantise.data import Samples
from aot_model.quantise.mixed import Change, mixed
from aot_model.quantise.plan import TensorPlan
from aot_model.quantise.prepare import prepared, read_float
from aot_model.quantise.weights import NEAR, weight_plan, with_short_multipliers
from qemu import available

MOBILENET = Path(__file__).parents[1] / "bench" / "mobilenet_v2.onnx"


def narrow(calibration: Calibration, base: Candidate) -> Candidate:
    names = dict.fromkeys(layer.weight for layer in base.source.choice.layers)
    return mixed(calibration, base, tuple(Change("weights", name, "int4") for name in names))


def test_factors_are_short(tmp_path: Path) -> None:
    """Scales hardly change; the factor of each channel is a whole number of 2^-16, as near as floats are."""
    calibration = _calibration(*saved(tmp_path, mobile()), tmp_path)
    base = calibration.candidate("minmax", False)
    assert base is not None
    made = narrow(calibration, base)
    choice, network, tensors = base.source.choice, base.source.network, made.plan.tensors
    whole = far = 0
    for layer in choice.layers:
        x, y = tensors[layer.input], tensors[layer.result]
        plain = weight_plan(network.constants[layer.weight], choice.weights[layer.weight], "int4").scale
        found = made.plan.weights[layer.weight].scale
        if y.type != "int8":
            assert found == plain
            continue
        factors = np.array(found) * x.scale / y.scale * 2.0**SHORT_BITS
        whole += int((np.abs(factors / np.rint(factors) - 1) < 1e-7).sum())
        far += factors.size
        step = NEAR + 1 / factors  # of small factors one more or less is more
        assert (np.abs(np.array(found) / plain - 1) <= step).all()
    assert whole > 0.95 * far > 50
    fresh = data(mobile(), 30, seed=6)
    want = run(mobile(), fresh)
    assert decibels(run(made.model(""), fresh), want) > 10


def test_what_has_no_short_factor_stays(tmp_path: Path) -> None:
    calibration = _calibration(*saved(tmp_path, mobile()), tmp_path)
    base = calibration.candidate("minmax", False)
    assert base is not None
    network, choice, tensors = base.source.network, base.source.choice, base.plan.tensors
    layer = choice.layers[0]
    wide = weight_plan(network.constants[layer.weight], choice.weights[layer.weight])
    assert with_short_multipliers(network, layer, wide, tensors) == wide
    found = weight_plan(network.constants[layer.weight], choice.weights[layer.weight], "int4")
    assert with_short_multipliers(network, layer, found, tensors) != found
    for y in (TensorPlan("int16", 0.01), TensorPlan("int8", 1e6)):  # other kernels; factors of nearly nothing
        assert with_short_multipliers(network, layer, found, {**tensors, layer.result: y}) == found
    del (without := dict(tensors))[layer.result]
    assert with_short_multipliers(network, layer, found, without) == found


@pytest.mark.skipif(not available(), reason="needs arm-none-eabi-gcc and qemu-system-arm")
def test_flash_of_code_and_constants(tmp_path: Path) -> None:
    """At most 0.6 of 8 bits, by one kernel for all convolutions; cycles and RAM hardly more."""
    model, _ = read_float(MOBILENET, {}, {})
    port = model.graph.input[0]
    shape = [d.dim_value for d in port.type.tensor_type.shape.dim]
    images = np.random.default_rng(0).uniform(0, 1, (40, *shape)).astype(np.float32)
    calibration = Calibration(
        prepared(model, tmp_path, ""), Samples({port.name: images}, None, (), ""), MOBILENET
    )
    base = calibration.candidate("minmax", False)
    assert base is not None
    costs, texts = [], []
    for name, candidate in (("8", base), ("4", narrow(calibration, base))):
        path = tmp_path / f"{name}.onnx"
        path.write_bytes(candidate.model("").SerializeToString())
        some = replace(calibration.samples, inputs={port.name: images[:1]})
        costs.append(cost_of(path, tmp_path, Platform("cortex-m4"), {}, some))
        texts.append(compile_model(Request(path, "m", "cortex-m4")).texts["m.c"])
    int8, int4 = costs
    assert int4.flash <= 0.6 * int8.flash and int4.ram <= 1.1 * int8.ram
    assert int4.cycles is not None and int8.cycles is not None and int4.cycles <= 1.4 * int8.cycles
    kernels = set(re.findall(r"\bdot2x4_nibbles_\w+", texts[1]))
    assert kernels == {"dot2x4_nibbles_short_0_s8"} and "nibbles" not in texts[0]
