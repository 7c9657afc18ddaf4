"""Conformance of every operator: each of its samples, as generated C, against the reference evaluator of ONNX."""

from __future__ import annotations

import contextlib
import json
import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.defs
import onnx.helper
import onnx.reference
import onnxruntime
import pytest

from aot_model.ir.types import DType
from aot_model.ops.registry import OPERATORS, Sample, load_all
from batch import Case, Outcome, run_cases

load_all()
OPSET = min(onnx.defs.onnx_opset_version(), 23)
DOMAINS = {"": OPSET, "ai.onnx.ml": 5}


def model_of(domain: str, name: str, sample: Sample) -> onnx.ModelProto:
    """A model of one node."""
    names = ["" if x is None else f"x{k}" for k, x in enumerate(sample.inputs)]
    version = last_version(domain, name)
    attributes = {k: _attribute(v) for k, v in sample.attributes.items()}
    outputs = [f"y{k}" for k in range(sample.outputs)]
    node = onnx.helper.make_node(name, names, outputs, domain=domain, name="node", **attributes)
    inputs, constants = [], []
    for k, x in enumerate(sample.inputs):
        if x is None:
            continue
        if k in sample.constants:
            constants.append(onnx.numpy_helper.from_array(np.asarray(x), f"x{k}"))
        else:
            inputs.append(onnx.helper.make_tensor_value_info(f"x{k}", onnx.helper.np_dtype_to_tensor_dtype(np.asarray(x).dtype), np.shape(x)))
    graph = onnx.helper.make_graph([node], "sample", inputs, [onnx.ValueInfoProto(name=o) for o in outputs], constants)
    opsets = [onnx.helper.make_opsetid("", version if not domain else OPSET)]
    if domain:
        opsets.append(onnx.helper.make_opsetid(domain, version))
    return onnx.helper.make_model(graph, opset_imports=opsets, ir_version=10)


def last_version(domain: str, name: str) -> int:
    """The newest opset in which the operator is not deprecated."""
    version = DOMAINS.get(domain, 1)
    while version > 1:
        try:
            if not onnx.defs.get_schema(name, version, domain).deprecated:
                return version
        except onnx.defs.SchemaError:
            pass
        version -= 1
    return version


def _attribute(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return onnx.numpy_helper.from_array(value)
    return onnx.helper.np_dtype_to_tensor_dtype(value.numpy) if isinstance(value, DType) else value


def fed(sample: Sample) -> tuple[np.ndarray, ...]:
    """The arrays that are inputs of the model."""
    return tuple(np.asarray(x) for k, x in enumerate(sample.inputs) if x is not None and k not in sample.constants)


def all_samples() -> list[tuple[str, str, int, Sample]]:
    """(domain, operator, number, sample) of every operator that ONNX knows."""
    found = []
    for (domain, name), cls in sorted(OPERATORS.items()):
        if domain != "aot" and onnx.defs.has(name, last_version(domain, name), domain):
            found += [(domain, name, k, s) for k, s in enumerate(cls.samples())]
    return found


SAMPLES = all_samples()
LABELS = [f"{f'{d}.' if d else ''}{n}-{k}" for d, n, k, _ in SAMPLES]


@cache
def outcomes(target: str) -> dict[str, Outcome]:
    cases = [Case(label, model_of(d, n, s), fed(s)) for label, (d, n, _, s) in zip(LABELS, SAMPLES, strict=True)]
    flags = ("-O1", "-march=native") if target == "host" else ("-O1",)
    return dict(zip(LABELS, run_cases(cases, target, flags=flags), strict=True))


def references(model: onnx.ModelProto, feeds: dict[str, np.ndarray]) -> Iterator[list[np.ndarray]]:
    """What the reference evaluator says; then ONNX Runtime, because the evaluator errs in places (pads of pools,
    negative pads, negative indices, channels of LRN)."""
    with warnings.catch_warnings(), contextlib.suppress(Exception):
        warnings.simplefilter("ignore")
        yield [np.asarray(v) for v in onnx.reference.ReferenceEvaluator(model).run(None, feeds)]
    with contextlib.suppress(onnxruntime.capi.onnxruntime_pybind11_state.Fail, onnxruntime.capi.onnxruntime_pybind11_state.NotImplemented):
        yield list(onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds))


def difference(outputs: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> str:
    """What is different; empty when nothing is."""
    for k, (got, want) in enumerate(zip(outputs, expected, strict=True)):
        want = want.astype(object) if want.dtype.kind in "SU" else want
        if got.shape != want.shape or got.dtype != want.dtype:
            return f"output {k} is {got.dtype}{list(got.shape)}, not {want.dtype}{list(want.shape)}"
        if want.dtype.kind == "O":
            if not np.array_equal(got, want):
                return f"output {k} is {got.tolist()}, not {want.tolist()}"
            continue
        tolerance = {"float64": 1e-9, "float16": 2e-3, "bfloat16": 2e-2}.get(str(want.dtype), 2e-5) if want.dtype.kind in "fV" else 0
        try:
            np.testing.assert_allclose(got.astype(np.float64), want.astype(np.float64), rtol=tolerance, atol=tolerance)
        except AssertionError as error:
            return f"output {k}: {error}"
    return ""


@pytest.mark.parametrize("target", ["c", "host"])
@pytest.mark.parametrize(("label", "entry"), list(zip(LABELS, SAMPLES, strict=True)), ids=LABELS)
def test_sample(label: str, entry: tuple[str, str, int, Sample], target: str) -> None:
    domain, name, _, sample = entry
    outcome = outcomes(target)[label]
    assert outcome.status == "ok", outcome.message
    model = model_of(domain, name, sample)
    feeds = {i.name: x for i, x in zip(model.graph.input, fed(sample), strict=True)}
    found = []
    for expected in references(model, feeds):
        found.append(difference(outcome.outputs, expected))
        if not found[-1]:
            return
    if not found:
        pytest.skip("neither the reference evaluator nor ONNX Runtime computes it")
    pytest.fail("\n".join(found))


def test_every_operator_is_tested() -> None:
    """By samples of its own, or by cases of the conformance suite."""
    results = json.loads((Path(__file__).parent / "conformance" / "results.json").read_text())
    covered = {name for case in results["cases"].values() if case["status"] == "pass" for name in case["operators"]}
    ours = {name: (f"{domain}.{name}" if domain else name) for (domain, name) in OPERATORS if domain in ("", "ai.onnx.ml")}
    missing = [label for (domain, name), cls in OPERATORS.items() if (label := ours.get(name)) and not cls.samples() and label not in covered]
    missing = [m for m in missing if onnx.defs.has(m, last_version("", m))]
    assert not missing, f"operators that nothing tests: {missing}"
