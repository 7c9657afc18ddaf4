"""Softmax of 16-bit activations with the tables of LiteRT and of TensorFlow Lite Micro, which differ."""

from __future__ import annotations

import numpy as np

from batch import Case, run_cases
from tflite_models import INT16, Op, T, build
from tflite_reference import litert, tflm


def test_both_tables() -> None:
    rows, scale = 4000, 7.3e-05
    drawn = np.random.default_rng(0).normal(0, 12000, (rows, 6))
    x = np.clip(np.round(drawn), -32768, 32767).astype(np.int16)
    tensors = [T("x", x.shape, INT16, (scale,), (0,)), T("y", x.shape, INT16, (1 / 32768,), (0,))]
    model = build(tensors, [Op("SOFTMAX", (0,), (1,), "SoftmaxOptions", {"Beta": 1.0})], [0], [1])
    wanted = {"litert-ref": litert(model, (x,))[0], "tflm": tflm(model, [(x,)], 1)[0][0]}
    assert (wanted["litert-ref"] != wanted["tflm"]).any()
    for arithmetic, want in wanted.items():
        (found,) = run_cases([Case("softmax", model, (x,), options={"arithmetic": arithmetic})], "c")
        assert found.status == "ok", found.message
        np.testing.assert_array_equal(found.outputs[0].reshape(want.shape), want)
