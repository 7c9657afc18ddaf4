"""Whether the outcome of a row is what its oracles say."""

from __future__ import annotations

from oracles import EVALUATOR, ONNX_RUNTIME, OWN, Expected, difference
from rows import Row, label_of

from batch import Outcome

ERRS: dict[tuple[str, str], str] = {
    (EVALUATOR, "GridSample"): "cubic interpolation beside the border",
    (EVALUATOR, "GlobalMaxPool"): "takes four axes for granted",
    (EVALUATOR, "LRN"): "the window of an even number of channels, and its end",
    (EVALUATOR, "LogSoftmax"): "the logarithm of 0",
    (EVALUATOR, "Loop"): "results are joined, not stacked",
    (EVALUATOR, "LpNormalization"): "p = 1 without absolute values",
    (EVALUATOR, "MaxPool"): "padding of both sides exchanged, indices of column-major order, the output's "
    "extents of auto_pad",
    (EVALUATOR, "ai.onnx.preview.training.Adam"): "the result is of float64",
    (EVALUATOR, "ai.onnx.ml.LabelEncoder"): "a key that is not a number",
    (EVALUATOR, "ai.onnx.ml.LinearClassifier"): "scores of two classes",
    (EVALUATOR, "ai.onnx.ml.LinearRegressor"): "PROBIT",
    (EVALUATOR, "ai.onnx.ml.OneHotEncoder"): "floats are not truncated",
    (EVALUATOR, "ai.onnx.ml.SVMClassifier"): "LOGISTIC",
    (EVALUATOR, "ai.onnx.ml.Scaler"): "integers stay integers",
    (EVALUATOR, "ai.onnx.ml.TreeEnsembleClassifier"): "scores of two classes",
    (ONNX_RUNTIME, "Dropout"): "other random numbers",
    (ONNX_RUNTIME, "MaxUnpool"): "counts indices in the output shape, other than the standard's test",
    (ONNX_RUNTIME, "Resize"): "cubic coefficients outside of the image",
    (ONNX_RUNTIME, "StringSplit"): "an empty string has no parts, not one",
}
"""(oracle, operator) and how that oracle errs there: it is asked only where nobody else computes the row."""


def verdict(row: Row, outcome: Outcome, expected: Expected, steps: int = 0) -> str:
    """What is wrong; empty when nothing is. steps: how far from an oracle integers may be."""
    if outcome.status == "same":
        return ""
    if outcome.status != "ok":
        return f"{outcome.status}: {outcome.message}"
    trusted = {
        oracle: outputs
        for oracle, outputs in expected.outputs.items()
        if (oracle, label_of(row.kind)) not in ERRS
    }
    asked = trusted or expected.outputs
    if not asked:
        reasons = "".join(f"\n{oracle}: {reason}" for oracle, reason in expected.refusals.items())
        return f"no oracle computes {row.label}: give {row.kind.__name__} a reference(){reasons}"
    problems = [
        f"{oracle}: {text}"
        for oracle, outputs in asked.items()
        if (text := difference(outcome.outputs, outputs, row.sample.tolerance if oracle == OWN else steps))
    ]
    return "\n".join(problems)
