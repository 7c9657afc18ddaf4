"""Operators of ONNX at the edges of what they take, one or a few in a row. Right, or refused.

What is right is what ONNX Runtime gives, with its optimiser or without, or what the standard's evaluator
gives; where they err or the standard leaves it open, the program runs all the same, under sanitizers.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import edge_elements  # noqa: F401  (adds layers)
import edge_microsoft  # noqa: F401  (adds layers)
import edge_movements  # noqa: F401  (adds layers)
import edge_strings  # noqa: F401  (adds layers)
import numpy as np
import onnxruntime as ort
from edge_network import FOLLOWERS, LAYERS, Edge
from exact_floats import Array
from extreme_fragment import Rejected
from onnx.reference import ReferenceEvaluator

from batch import Outcome

RELATIVE = {"float64": 1e-9, "float16": 4e-3, "bfloat16": 4e-2}
"""How far results of float types may be from an oracle's, of themselves; 2e-5 of the others."""
LARGEST = 4000
"""Elements of an input."""
OPSETS = (13, 17, 18, 20, 21, 22, 23, 24)


def network(number: int) -> Edge:
    """Network k is the same whatever is asked for."""
    weights = np.asarray([times for _, times in LAYERS], np.float64)
    for again in range(100):
        rng = np.random.default_rng([number, again, 7])
        n = Edge(rng, int(rng.choice(OPSETS)))
        try:
            made, _ = LAYERS[int(rng.choice(len(LAYERS), p=weights / weights.sum()))]
            value = made(n)
        except Rejected:
            continue
        if value is not None and n.once(4):
            for _ in range(n.number(1, 2)):
                value = n.pick(*FOLLOWERS)(n, value)
        if value is not None:
            n.end(value)
        if n.once(6):  # what is computed before the program runs is the same
            n.constants |= n.fed
            n.fed = {}
            n.end(n.node("Identity", [n.given(np.float32([1, np.nan]), 0)])[0])
        if n.fed and all(v.size <= LARGEST for v in n.fed.values()):
            return n
    raise AssertionError("nothing fits")


@dataclass(frozen=True)
class Wanted:
    """What each oracle gives, by its name."""

    outputs: dict[str, list[Array]]
    why: str


def wanted(number: int) -> Wanted:
    n, found, why = network(number), {}, ""
    model = n.model()
    for level in ("ORT_DISABLE_ALL", "ORT_ENABLE_ALL"):
        options = ort.SessionOptions()
        options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        try:
            session = ort.InferenceSession(
                model.SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
            found[level] = [np.asarray(v) for v in session.run(None, n.fed)]
        except Exception as error:  # its exceptions have no common class
            why = str(error)
    if not any("." in kind for kind in n.kinds):
        try:
            with warnings.catch_warnings(), np.errstate(all="ignore"):
                warnings.simplefilter("ignore")
                found["evaluator"] = [np.asarray(v) for v in ReferenceEvaluator(model).run(None, n.fed)]
        except Exception as error:  # it raises whatever its numpy code raises
            why = why or str(error)
    return Wanted(found, why)


def verdict(n: Edge, want: Wanted, outcome: Outcome, _: str) -> str | None:
    """What is wrong with an outcome; empty when nothing is, None where nobody can tell."""
    if n.open or not want.outputs:
        return None
    problems = {
        oracle: " ".join(_problem(n, outcome.outputs, outputs).split())
        for oracle, outputs in want.outputs.items()
    }
    return "; ".join(f"{o}: {p}" for o, p in problems.items()) if all(problems.values()) else ""


def _problem(n: Edge, outputs: Sequence[Array], wanted: Sequence[Array]) -> str:
    for k, (got, want) in enumerate(zip(outputs, wanted, strict=True)):
        if got.size != want.size and got.ndim == want.ndim and got.size > want.size:
            got = got[tuple(slice(d) for d in want.shape)]  # the extent depends on data
        if got.shape != want.shape:
            return f"output {k} of {list(got.shape)}, not {list(want.shape)}"
        if want.dtype.kind in "OSU" or got.dtype.kind in "OSU":
            if got.tolist() != want.tolist():
                return f"output {k} is {got.tolist()}, not {want.tolist()}"
            continue
        if got.dtype != want.dtype:
            return f"output {k} of {got.dtype}, not {want.dtype}"
        right = _equal(n, got, want)
        if not right.all():
            at = int(np.argmin(right))
            return (
                f"output {k} of {got.dtype}{list(got.shape)}: {int((~right).sum())} of {got.size}, the first "
                f"at {at}: {got.reshape(-1)[at]!r} is not {want.reshape(-1)[at]!r}"
            )
    return ""


def _equal(n: Edge, got: Array, want: Array) -> Array:
    if want.dtype.kind in "biu":
        if n.steps:
            return np.asarray(np.abs(got.astype(np.int64) - want.astype(np.int64)) <= n.steps)
        return np.asarray(got == want)
    relative = RELATIVE.get(str(want.dtype), 2e-5) if n.relative or n.share else 0.0
    a, b = got.astype(np.float64), want.astype(np.float64)
    with np.errstate(all="ignore"):
        finite = np.abs(b[np.isfinite(b)]).max(initial=0)
        room = relative * np.abs(b) + n.share * finite + (1e-7 if n.relative else 0)
        return np.asarray((a == b) | (np.isnan(a) & np.isnan(b)) | (np.abs(a - b) <= room))
