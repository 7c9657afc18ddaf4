"""GroupNormalization before opset 21 has a scale and a bias for each group, not for each channel."""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper

from batch import Case, run_cases
from onnx_models import model, tensor


@pytest.mark.parametrize(("opset", "groups"), [(18, 3), (20, 2), (18, 1), (21, 3)])
def test_scales_by_group(opset: int, groups: int) -> None:
    rng, channels = np.random.default_rng(groups), 6
    x = rng.normal(2, 3, (2, channels, 4, 5)).astype(np.float32)
    count = groups if opset < 21 else channels
    scale, bias = rng.normal(size=(2, count)).astype(np.float32)
    node = helper.make_node("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=groups, epsilon=0.01)
    given = model([node], [tensor("x", x.shape)], [tensor("y", x.shape)], {"s": scale, "b": bias}, opset)
    (outcome,) = run_cases([Case("groups", given, (x,))], "c")
    assert outcome.status == "ok", outcome.message
    wide = x.astype(np.float64).reshape(2, groups, -1)
    centred = wide - wide.mean(axis=-1, keepdims=True)
    plain = (centred / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + 0.01)).reshape(x.shape)
    each = [np.repeat(v, channels // count).reshape(1, channels, 1, 1) for v in (scale, bias)]
    np.testing.assert_allclose(outcome.outputs[0], plain * each[0] + each[1], rtol=1e-5, atol=1e-5)
