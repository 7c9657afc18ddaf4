"""What a row of the suite must give, from whoever computes it: the reference evaluator of ONNX, ONNX Runtime,
or the operator's own `reference`."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import onnx.reference
import onnxruntime
from onnxruntime.capi import onnxruntime_pybind11_state as refusal
from rows import RUNTIME, Row, onnx_model, version_before

TOLERANCE = {"float64": 1e-9, "float16": 2e-3, "bfloat16": 2e-2}
"""Relative and absolute, of element types; 2e-5 of the others."""
REFUSALS = (
    refusal.Fail,
    refusal.NotImplemented,
    refusal.InvalidGraph,
    refusal.InvalidArgument,
    refusal.RuntimeException,
)
EVALUATOR, ONNX_RUNTIME, OWN = "reference evaluator", "ONNX Runtime", "the operator's reference()"


@dataclass(frozen=True)
class Expected:
    """The outputs that each oracle gives, and why the others give none."""

    outputs: dict[str, list[np.ndarray]]
    refusals: dict[str, str]


def expected(row: Row) -> Expected:
    found = Expected({}, {})
    if row.in_onnx:
        if row.kind.domain != RUNTIME:
            _evaluate(row, found)
        _run(row, found)
        if not found.outputs and (before := version_before(row)):
            # nobody computes the newest version, whose types are more and whose meaning is the same
            _run(replace(row, version=before), found)
    if row.kind.has("reference"):
        arrays = [None if x is None else np.asarray(x) for x in row.sample.inputs]
        outputs = [np.asarray(y) for y in row.operator.reference(arrays)]
        found.outputs[OWN] = outputs[: row.sample.outputs] if row.in_onnx else outputs
    return found


def _evaluate(row: Row, found: Expected) -> None:
    model = onnx_model(row)
    feeds = {i.name: x for i, x in zip(model.graph.input, row.fed, strict=True)}
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            found.outputs[EVALUATOR] = [
                np.asarray(v) for v in onnx.reference.ReferenceEvaluator(model).run(None, feeds)
            ]
    except Exception as error:  # it raises whatever its numpy code raises
        found.refusals[EVALUATOR] = f"{type(error).__name__}: {error}"


def _run(row: Row, found: Expected) -> None:
    model = onnx_model(row)
    feeds = {i.name: x for i, x in zip(model.graph.input, row.fed, strict=True)}
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    try:
        session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )
        found.outputs[ONNX_RUNTIME] = [np.asarray(v) for v in session.run(None, feeds)]
    except (RuntimeError, ValueError, *REFUSALS) as error:
        found.refusals[ONNX_RUNTIME] = str(error)


def difference(outputs: Sequence[np.ndarray], wanted: Sequence[np.ndarray], allowed: float = 0) -> str:
    """What is different; empty when nothing is. allowed: how far they may be apart, 0 for the usual."""
    if len(outputs) != len(wanted):
        return f"{len(outputs)} outputs, not {len(wanted)}"
    for k, (got, want) in enumerate(zip(outputs, wanted, strict=True)):
        want = want.astype(object) if want.dtype.kind in "SU" else want
        if got.shape != want.shape or got.dtype != want.dtype:
            return f"output {k} is {got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}"
        if want.dtype.kind == "O":
            if not np.array_equal(got, want):
                return f"output {k} is {got.tolist()}, not {want.tolist()}"
            continue
        if want.dtype.kind in "biu" and not allowed:  # 64-bit integers are not exact as floats
            if not np.array_equal(got, want):
                return f"output {k} is {got.tolist()}, not {want.tolist()}"
            continue
        relative, absolute = (0.0, allowed) if allowed else (TOLERANCE.get(str(want.dtype), 2e-5),) * 2
        try:
            np.testing.assert_allclose(
                got.astype(np.float64), want.astype(np.float64), rtol=relative, atol=absolute
            )
        except AssertionError as error:
            return f"output {k}: {error}"
    return ""
