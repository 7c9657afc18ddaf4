"""Nodes of more inputs than one expression takes are several, and give what one gives."""

from __future__ import annotations

import numpy as np
import onnx
import pytest
from onnx import helper
from onnx.reference import ReferenceEvaluator

from aot_model.ops.elementwise import MAX_INPUTS
from batch import Case, run_cases
from onnx_models import model, tensor

COUNTS = (MAX_INPUTS, MAX_INPUTS + 1, 2 * MAX_INPUTS - 1, 2 * MAX_INPUTS, 1000)


def _node(kind: str, count: int) -> onnx.ModelProto:
    """Of single numbers, rows and columns, that are broadcast."""
    shapes = [[3, 4], [1], [4], [3, 1]]
    names = [f"x{k % 4}" for k in range(count)]
    fed = [tensor(f"x{k}", shape) for k, shape in enumerate(shapes)]
    return model([helper.make_node(kind, names, ["y"])], fed, [tensor("y", [3, 4])])


@pytest.mark.parametrize("kind", ["Sum", "Mean", "Max", "Min"])
def test_many_inputs(kind: str) -> None:
    rng = np.random.default_rng(3)
    inputs = tuple(rng.normal(size=s).astype(np.float32) for s in ((3, 4), (1,), (4,), (3, 1)))
    models = [_node(kind, count) for count in COUNTS]
    cases = [Case(f"{kind}-{n}", m.SerializeToString(), inputs) for n, m in zip(COUNTS, models, strict=True)]
    for proto, outcome in zip(models, run_cases(cases, "c"), strict=True):
        (want,) = ReferenceEvaluator(proto).run(None, {f"x{k}": x for k, x in enumerate(inputs)})
        assert outcome.status == "ok", outcome.message
        np.testing.assert_allclose(outcome.outputs[0].reshape(3, 4), want, rtol=2e-5)
