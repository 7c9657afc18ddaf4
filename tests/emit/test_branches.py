"""Reductions behind conditions run only where the memory that they read is there."""

from __future__ import annotations

import numpy as np
import onnx.parser
import pytest
from onnx.reference import ReferenceEvaluator

from batch import Case, run_cases

PADDED = 'p = Pad <mode = "constant"> (x, pads)  s = ReduceMin <keepdims = 0> (p, axes)'
ENDS = {
    "select": ("float[5] y", "y = Where (c, s, other)"),
    "nested": ("float[5] y", "t = Where (c, s, other)  u = Where (d, t, s)  y = Add (u, t)"),
    "and": ("bool[5] y", "b = Less (s, other)  y = And (c, b)"),
    "or": ("bool[5] y", "b = Less (s, other)  y = Or (c, b)"),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_reduction_of_padding_behind_a_condition(end: str) -> None:
    result, text = ENDS[end]
    model = onnx.parser.parse_model(f"""
        <ir_version: 10, opset_import: ["" : 20]>
        g (float[4, 3] x, bool[5] c, bool[5] d, float[5] other) => ({result})
        <int64[4] pads = {{0, 1, 0, 1}}, int64[1] axes = {{0}}>
        {{ {PADDED} {text} }}""")
    rng = np.random.default_rng(3)
    fed = {
        "x": rng.normal(0, 1, (4, 3)).astype(np.float32),
        "c": np.asarray([True, False, True, False, True]),
        "d": np.asarray([True, True, False, False, True]),
        "other": rng.normal(0, 1, 5).astype(np.float32),
    }
    (outcome,) = run_cases([Case(end, model, tuple(fed.values()))], jobs=1)
    assert outcome.status == "ok", outcome.message
    np.testing.assert_array_equal(outcome.outputs[0], ReferenceEvaluator(model).run(None, fed)[0])
