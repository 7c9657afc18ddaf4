"""Models of the corpus as firmware on emulated Cortex-M cores: right outputs, small stack, no surprise in the
symbols.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aot_model.emit.view import Options
from aot_model.pipeline import Request, compile_model
from corpus import MODELS, REASON, vectors
from firmware import run_firmware
from qemu import available

pytestmark = [
    pytest.mark.skipif(not available(), reason="arm-none-eabi-gcc or qemu-system-arm is not installed"),
    pytest.mark.skipif(MODELS is None, reason=REASON),
]

FLOAT = (
    "ad_f32",
    "kws_f32",
    "sww_f32",
    "vww_f32",
    "resnet8_f32",
    "digits_cnn",
    "mnist8",
    "sine_lstm",
    "digits_vit_sim",
)
INTEGER = (
    "ad_int8",
    "kws_int8",
    "sww_int8",
    "vww_int8",
    "resnet8_int8",
    "ard_magic_wand_int8",
    "tfm_hello_int8",
    "tfm_microspeech_int8",
    "tm_cifar10_int8",
    "tm_mnist_arduino_int8",
    "tm_mnist_dw_int8",
    "mcu_lenet300_int8",
    "k_har_int8",
    "k_har2_int8",
    "mltk_example1_int8",
    "k_seg_int8",
)
CASES = [(f"{m}.onnx", core) for m in FLOAT for core in ("m4", "m55")]
CASES += [("digits_cnn.onnx", core) for core in ("m0", "m3", "m7", "m33")]
CASES += [(f"{m}.tflite", core) for m in INTEGER for core in ("m4", "m55")]
CASES += [("kws_int8.tflite", core) for core in ("m0", "m3", "m7", "m33")]
STACK = 1024


@pytest.mark.parametrize(("model", "core"), CASES, ids=[f"{m}-{c}" for m, c in CASES])
def test_outputs_on_the_core(model: str, core: str, tmp_path: Path) -> None:
    assert MODELS is not None
    compiled = compile_model(
        Request(MODELS / model, "model", f"cortex-{core}", library=Options(metadata="none"))
    )
    inputs, expected = vectors(MODELS / model, len(compiled.view.inputs), len(compiled.view.outputs), 1)
    firmware = run_firmware(compiled, core, inputs, tmp_path)
    for got, want in zip(firmware.outputs[0], expected[0], strict=True):
        if want.dtype.kind == "f":
            scale = max(float(np.max(np.abs(want))), 1e-9)
            np.testing.assert_allclose(got.reshape(want.shape), want, rtol=1e-3, atol=1e-4 * scale)
        else:
            np.testing.assert_array_equal(got.reshape(want.shape), want)
    assert firmware.stack <= STACK
