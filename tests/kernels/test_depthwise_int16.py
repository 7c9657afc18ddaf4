"""Depthwise layers of 16-bit activations in planes: strips of them, several outputs per channel, batches, the
ends of activations. Bit for bit with LiteRT.
"""

from __future__ import annotations

import numpy as np
import pytest

from batch import Case, run_cases
from qemu import available
from tflite_models import INT16, INT64, Op, T, build
from tflite_reference import litert

RELU = 1
LAYERS = {
    # (height, width, channels, outputs of each, kernel, stride, activation, images)
    "strips": (40, 90, 2, 1, (3, 3), 1, 0, 1),
    "strips of two outputs, relu": (40, 90, 2, 2, (3, 3), 1, RELU, 2),
    "strips of 5x5, stride 2": (60, 60, 2, 1, (5, 5), 2, RELU, 1),
    "long lines, stride 2": (33, 101, 3, 1, (3, 3), 2, 0, 1),
    "two outputs, two images": (12, 12, 4, 2, (3, 3), 1, RELU, 2),
    "three outputs of a line": (12, 12, 4, 3, (1, 5), 1, 0, 1),
    "small": (7, 9, 5, 2, (2, 2), 1, RELU, 1),
}


def layer(
    height: int,
    width: int,
    channels: int,
    outputs: int,
    kernel: tuple[int, int],
    stride: int,
    activation: int,
    images: int,
) -> tuple[bytes, np.ndarray]:
    rng, count = np.random.default_rng(4), channels * outputs
    x = rng.integers(-32768, 32767, (images, height, width, channels), endpoint=True).astype(np.int16)
    w = rng.integers(-127, 127, (1, *kernel, count), endpoint=True).astype(np.int8)
    scales, step = rng.uniform(0.002, 0.01, count), 2.0**-15
    shape = (images, -(-height // stride), -(-width // stride), count)
    tensors = [
        T("x", x.shape, INT16, (step,), (0,)),
        T("w", w.shape, scale=tuple(scales), zero=(0,) * count, data=w, axis=3),
        T("b", (count,), INT64, tuple(step * scales), (0,) * count,
          data=rng.integers(-3_000_000, 3_000_000, count)),
        T("y", shape, INT16, (1 / 9000,), (0,)),
    ]  # fmt: skip
    fields = {"Padding": 0, "StrideW": stride, "StrideH": stride, "DepthMultiplier": outputs,
              "FusedActivationFunction": activation, "DilationWFactor": 1, "DilationHFactor": 1}  # fmt: skip
    return build(
        tensors, [Op("DEPTHWISE_CONV_2D", (0, 1, 2), (3,), "DepthwiseConv2DOptions", fields)], [0], [3]
    ), x


@pytest.mark.skipif(not available(), reason="arm-none-eabi-gcc or qemu-system-arm is not installed")
@pytest.mark.parametrize("board", ["m4", "m7"])
def test_planes(board: str) -> None:
    drawn = {name: layer(*numbers) for name, numbers in LAYERS.items()}
    litert_ref = {"arithmetic": "litert-ref"}
    cases = [Case(name, model, (x,), options=litert_ref) for name, (model, x) in drawn.items()]
    found = run_cases(cases, f"cortex-{board}", sanitize=False, flags=("-O2",), board=board, jobs=1)
    for (name, (model, x)), outcome in zip(drawn.items(), found, strict=True):
        assert outcome.status == "ok", f"{name}: {outcome.message}"
        np.testing.assert_array_equal(outcome.outputs[0], litert(model, (x,))[0], err_msg=name)
