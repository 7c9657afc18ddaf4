"""Fragments of quantised ONNX networks with extreme parameters, and what they may give: by floats of 64 bits
and by ONNX Runtime.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial

import extreme_layers  # noqa: F401  (adds layers)
import extreme_others  # noqa: F401  (adds layers)
import extreme_quantised  # noqa: F401  (adds layers)
import numpy as np
import onnxruntime as ort
from exact_floats import Array, NoNumber, Tip, evaluated
from extreme_fragment import LAYERS, Fragment, Rejected

from batch import Outcome

FLOAT_ERROR = 2e-4
"""Of the largest number of float outputs."""
DRAWS = 4
"""Of quantisations that are a step off."""


def fragment(number: int) -> Fragment:
    """Fragment k is the same whatever is asked for."""
    for again in range(100):
        rng = np.random.default_rng([number, again])
        opset = int(rng.choice([13, 17, 21, 21, 21, 23, 25]))
        n = Fragment(rng, opset, float(rng.choice([0.5, 0.75, 0.9, 0.97])))
        try:
            _drawn(n)
            return n
        except Rejected:
            continue
    raise AssertionError("nothing fits")


def _shape(n: Fragment) -> tuple[int, ...]:
    if n.odd(0.4):
        return n.pick(
            (1, 33026), (1, 70000), (1, 33026, 1), (2, 33026), (1, 70000, 1, 1), (1, 1), (1,), (1, 1, 1, 1)
        )
    rank, long = n.pick(1, 2, 2, 3, 3, 4, 4, 4), n.pick(6, 6, 9, 20)
    shape = [n.pick(1, 2), *(n.number(1, long if rank < 4 else 8) for _ in range(rank - 1))]
    return tuple(shape)


def _drawn(n: Fragment) -> None:
    n.values.append(n.given(_shape(n), n.kind()))
    weights = np.asarray([times for _, times in LAYERS], np.float64)
    for _ in range(n.pick(1, 1, 1, 2, 2, 3, 4)):
        x = n.values[-1] if n.number(0, 3) else n.pick(*n.values)
        made, _ = LAYERS[int(n.rng.choice(len(LAYERS), p=weights / weights.sum()))]
        made(n, x)
    read = {i for node in n.nodes for i in node.input}
    every = [o for node in n.nodes for o in node.output]
    ends = [o for o in every if o not in read]
    for name in every:
        if name in read and name in n.known and name not in n.halves and n.number(0, 23) == 0:
            ends.append(name)
    last = n.values[-1]
    if n.number(0, 3) == 0 and last.name in ends:
        ends[ends.index(last.name)] = n.real(last)
    n.outputs = list(dict.fromkeys(ends))
    if not all(v.size for v in n.fed.values()) or sum(n.known[e].size for e in n.outputs) == 0:
        raise Rejected("nothing comes out")


@dataclass(frozen=True)
class Expected:
    """What outputs may be, by whoever computes them: floats of 64 bits first, then ONNX Runtime without and
    with its optimiser; among the first, how far results may be when quantisations before them are off.
    """

    least: tuple[Array, ...] | None
    most: tuple[Array, ...] | None
    exact: tuple[Array, ...] | None
    runtime: tuple[tuple[Array, ...], ...]
    why: str


def _tips(seed: int) -> list[Tip]:
    rng = np.random.default_rng(seed)
    return [
        lambda _: 0.0,
        lambda _: 1.0,
        lambda _: -1.0,
        lambda _: 0.0,
        *(lambda x: rng.integers(-1, 1, x.shape, endpoint=True).astype(np.float64) for _ in range(DRAWS)),
    ]


def _tip_of(tip: Tip, inner: set[str], name: str) -> Tip:
    return tip if name in inner else lambda _: 0.0


def expected(number: int) -> Expected:
    n = fragment(number)
    runtime, why = [], ""
    for level in (ort.GraphOptimizationLevel.ORT_DISABLE_ALL, ort.GraphOptimizationLevel.ORT_ENABLE_ALL):
        options = ort.SessionOptions()
        options.graph_optimization_level = level
        options.intra_op_num_threads = 1
        options.log_severity_level = 4
        try:
            session = ort.InferenceSession(
                n.model(n.outputs).SerializeToString(), options, providers=["CPUExecutionProvider"]
            )
            runtime.append(tuple(np.asarray(v) for v in session.run(None, n.fed)))
        except Exception as error:  # its exceptions have no common class
            why = str(error)
    inner = {i for node in n.meaning for i in node.input}
    found = []
    for k, tip in enumerate(_tips(number)):
        noise = np.random.default_rng([number, k]) if k > 2 else None
        known = {k: n.known[k] for k in (*n.constants, *n.fed, *n.exact)}
        try:
            tips = partial(_tip_of, tip, inner)
            values = evaluated(n.meaning, known, n.opset, tips, noise)
        except NoNumber:
            if not found:
                return Expected(None, None, None, tuple(runtime), "what is quantised is not a number")
            continue
        divided = [values[i] for node in n.meaning if node.op_type == "Div" for i in node.input]
        if not found and (
            _beyond_floats(values[o] for node in n.meaning for o in node.output) or _lost(divided)
        ):
            return Expected(None, None, None, tuple(runtime), "what is computed is beyond floats of 32 bits")
        found.append([values[o].astype(np.float64) for o in n.outputs])
    with np.errstate(all="ignore"):
        least = tuple(np.min(v, axis=0) for v in zip(*found, strict=True))
        most = tuple(np.max(v, axis=0) for v in zip(*found, strict=True))
    return Expected(least, most, tuple(found[0]), tuple(runtime), why)


def _beyond_floats(values: Iterable[Array]) -> bool:
    """Whether sums of such numbers may be infinite in float32, and differences of these no numbers."""
    sizes = (np.abs(v) for v in values if v.dtype == np.float64)
    return any(bool(((s > 1e36) & (s < np.inf)).any()) for s in sizes)


def _lost(values: Iterable[Array]) -> bool:
    """Whether a float of 32 bits is 0 where such a number is not: 0 / 0 is no number, 1e-47 / 0 is."""
    sizes = (np.abs(v) for v in values if v.dtype == np.float64)
    return any(bool(((s > 0) & (s < np.finfo(np.float32).smallest_subnormal)).any()) for s in sizes)


def verdict(n: Fragment, want: Expected, outcome: Outcome, target: str) -> str | None:
    """What is wrong with an outcome; empty when nothing is, None where nobody can tell."""
    if want.exact is None or (target == "cortex-m55" and _subnormal(n)):
        return None
    for k, got in enumerate(outcome.outputs):
        assert want.least is not None and want.most is not None
        if got.shape != want.exact[k].shape:
            return f"output {k} of shape {got.shape}, not {want.exact[k].shape}"
        others = [outputs[k].astype(np.float64) for outputs in want.runtime]
        whole = n.known[n.outputs[k]].dtype != np.float64
        problem = _difference(
            got.astype(np.float64), want.exact[k], want.least[k], want.most[k], others, whole
        )
        if problem:
            return f"output {k} of {got.shape}: {problem}"
    return ""


def _difference(got: Array, exact: Array, least: Array, most: Array, others: list[Array], whole: bool) -> str:
    largest = float(np.abs(exact[np.isfinite(exact)]).max(initial=0))
    room = 1.0 if whole else FLOAT_ERROR * largest + 1e-37
    with np.errstate(all="ignore"):
        right = (got >= least - room) & (got <= most + room)
        right |= np.isnan(exact) | np.isnan(least) | np.isnan(most)
        big = ~np.isfinite(exact) | (np.abs(exact) > 1e37)
        right |= big & (~np.isfinite(got) | (np.abs(got) > 1e37)) & (whole is False)
        for other in others:
            right |= np.abs(got - other) <= room
            right |= (got == other) | (np.isnan(got) & np.isnan(other))
    if right.all():
        return ""
    k = int(np.argmin(right))
    told = ", ".join(f"{o.reshape(-1)[k]:.9g}" for o in others)
    return (
        f"{int((~right).sum())} of {right.size} numbers, the first {got.reshape(-1)[k]:.9g} is not "
        f"{exact.reshape(-1)[k]:.9g} ({least.reshape(-1)[k]:.9g} to {most.reshape(-1)[k]:.9g}; {told})"
    )


def _subnormal(n: Fragment) -> bool:
    """Whether a scale is a float that vectors of Helium take for 0."""
    tiny = float(np.finfo(np.float32).tiny)
    floats = [v for v in n.constants.values() if v.dtype == np.float32]
    return any(bool(((np.abs(v) < tiny) & (v != 0)).any()) for v in floats)
