"""Softplus and its tanh, which needs no logarithm, beside double precision: where they are near 0, where they
are flat, where they are no numbers.
"""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from batch import Case, run_cases
from onnx_models import model, tensor
from qemu import available

X = np.concatenate(
    [
        np.linspace(-30, 30, 2001, dtype=np.float32),
        np.linspace(-87, 90, 301, dtype=np.float32),
        np.asarray([0.0, -0.0, 1e-30, -1e-30, 20, 64, -64, 3e38, -3e38, np.inf, -np.inf, np.nan], np.float32),
    ]
)
TARGETS = [("c", None), ("cortex-m4", "m4"), ("cortex-m55", "m55")]


@pytest.mark.parametrize(("target", "board"), TARGETS)
def test_softplus_and_its_tanh(target: str, board: str | None) -> None:
    if board and not available():
        pytest.skip("arm-none-eabi-gcc or qemu-system-arm is not installed")
    nodes = [
        helper.make_node("Softplus", ["x"], ["s"]),
        helper.make_node("Tanh", ["s"], ["t"]),
        helper.make_node("Mul", ["x", "t"], ["m"]),
    ]
    x = [tensor("x", X.shape)]
    cases = [Case(name, model(nodes[:k], x, [tensor(name, X.shape)]), (X,))
             for k, name in ((1, "s"), (2, "t"), (3, "m"))]  # fmt: skip
    wide = X.astype(np.float64)
    with np.errstate(all="ignore"):
        soft = np.maximum(wide, 0) + np.log1p(np.exp(-np.abs(wide)))
        want = [soft, np.tanh(soft), wide * np.tanh(soft)]
    want[2][np.isneginf(X)] = np.nan  # 0 times infinity
    outcomes = run_cases(cases, target, sanitize=board is None, board=board, jobs=1)
    for case, outcome, exact in zip(cases, outcomes, want, strict=True):
        assert outcome.status == "ok", outcome.message
        np.testing.assert_allclose(outcome.outputs[0], exact, rtol=2e-6, atol=2e-35, err_msg=case.name)
