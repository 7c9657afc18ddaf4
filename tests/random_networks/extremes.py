"""Fragments of quantised networks with extreme parameters: scales, zero points, weights, biases, windows,
ends of ranges. Right, or refused.

    python tests/random_networks/extremes.py onnx --seed 1 --count 500
    python tests/random_networks/extremes.py onnx --only 17 --targets c host cortex-m4     # one of them

onnx: integers are within a step of what the graph means with floats of 64 bits, each quantisation before the
last one step off at most, or of what ONNX Runtime computes; floats within the share that rounding them takes.
Where floats of 32 bits overflow on the way nobody can tell; the program runs all the same. tflite: equal to
LiteRT, where its own arithmetic is defined.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "random_networks"), str(TESTS / "targets")]

import extreme_layers  # noqa: E402, F401  (adds layers)
import extreme_others  # noqa: E402, F401  (adds layers)
import extreme_quantised  # noqa: E402, F401  (adds layers)
import extreme_tflite  # noqa: E402
import onnxruntime as ort  # noqa: E402
from cmsis_nn_library import library  # noqa: E402
from exact_floats import Array, NoNumber, Tip, evaluated  # noqa: E402
from extreme_fragment import LAYERS, Fragment, Rejected  # noqa: E402
from network_campaign import TARGETS, case_of, options_for  # noqa: E402

from apart import Apart  # noqa: E402
from batch import Case, Outcome, run_cases  # noqa: E402
from qemu import BOARDS as QEMU  # noqa: E402
from qemu import COMPILER  # noqa: E402

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


NOTHING = Expected(None, None, None, (), "")


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
        if not found and _beyond_floats(values[o] for node in n.meaning for o in node.output):
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


def verdict(n: Fragment, want: Expected, outcome: Outcome) -> str:
    """What is wrong with an outcome; empty when nothing is."""
    if outcome.status != "ok":
        return f"{outcome.status}: {outcome.message[-900:]}"
    if want.exact is None:
        return ""
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


def run(numbers: Sequence[int], target: str, jobs: int = 2) -> tuple[list[str], Counter[str]]:
    """What is wrong with fragments, and what became of all."""
    oracle, fragments = Apart(expected), [fragment(k) for k in numbers]
    cases = [
        case_of(k, f"fragment {k}", n.model(n.outputs), n.fed.values())
        for k, n in zip(numbers, fragments, strict=True)
    ]
    found, tally = [], Counter[str]()
    for number, n, outcome in zip(numbers, fragments, _outcomes(cases, numbers, target, jobs), strict=True):
        if outcome.status == "refused":
            tally[f"refused: {' '.join(outcome.message.split())[-110:]}"] += 1
            continue
        want = oracle(number) if outcome.status == "ok" else NOTHING
        unknown = want is None or want.exact is None or (target == "cortex-m55" and _subnormal(n))
        if want is None or (outcome.status == "ok" and unknown):
            tally["ran"] += 1
        elif problem := verdict(n, want, outcome):
            tally["wrong"] += 1
            found.append(f"{target}: fragment {number}: {' '.join(n.kinds)}: {problem}")
        else:
            tally["right"] += 1
    return found, tally


def run_tflite(numbers: Sequence[int], target: str, jobs: int = 2) -> tuple[list[str], Counter[str]]:
    """The same of TFLite networks, which are LiteRT's to the bit."""
    oracle, networks = Apart(extreme_tflite.wanted), [extreme_tflite.network(k) for k in numbers]
    cases = [
        replace(case_of(k, f"network {k}", n.model, n.fed, arithmetic="litert-ref"), stirred=not n.remembers)
        for k, n in zip(numbers, networks, strict=True)
    ]
    found, tally = [], Counter[str]()
    for number, n, outcome in zip(numbers, networks, _outcomes(cases, numbers, target, jobs), strict=True):
        if outcome.status == "refused":
            tally[f"refused: {' '.join(outcome.message.split())[-110:]}"] += 1
            continue
        want = oracle(number) if outcome.status == "ok" else None
        if outcome.status == "ok" and want is None:
            tally["ran"] += 1
            continue
        problem = f"{outcome.status}: {outcome.message[-900:]}"
        if want is not None:
            pairs = zip(outcome.outputs, want, strict=True)
            equal = [
                np.array_equal(a.reshape(-1), b.reshape(-1), equal_nan=b.dtype.kind == "f") for a, b in pairs
            ]
            problem = "" if all(equal) else f"output {equal.index(False)} is not what LiteRT computes"
        tally["wrong" if problem else "right"] += 1
        found += [f"{target}: network {number}: {' '.join(n.kinds)}: {problem}"] if problem else []
    return found, tally


def _outcomes(cases: Sequence[Case], numbers: Sequence[int], target: str, jobs: int) -> list[Outcome]:
    board = TARGETS[target]
    flags = ("-O2", "-march=native") if target == "host" else ("-O1",)
    cases = [
        replace(c, options=c.options | options_for(target, k)) for c, k in zip(cases, numbers, strict=True)
    ]
    if target.startswith("cmsis-nn"):
        linked = library(*QEMU[board].flags, compiler=COMPILER) if board else library()
        flags = (*flags, *linked.flags, linked.object)
    return run_cases(cases, target, sanitize=board is None, flags=flags, board=board, jobs=jobs)


KINDS = {"onnx": run, "tflite": run_tflite}


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--seed", type=int, default=0, help="fragments from seed * 1,000,000 on")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--only", type=int, nargs="+", help="fragments of these numbers")
    parser.add_argument("--targets", nargs="+", default=["c"], choices=TARGETS)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("-v", "--verbose", action="store_true", help="what is refused, too")
    options = parser.parse_args()
    first = options.seed * 1_000_000
    numbers = options.only or range(first, first + options.count)
    wrong = 0
    for target in options.targets:
        total = Counter[str]()
        for start in range(0, len(numbers), 240):
            found, tally = KINDS[options.kind](list(numbers[start : start + 240]), target, options.jobs)
            total += tally
            wrong += len(found)
            print(*found, sep="\n", end="\n" if found else "", flush=True)
        kinds = Counter[str]()
        for k, v in total.items():
            kinds[k.partition(":")[0]] += v
        print(target, dict(kinds), flush=True)
        if options.verbose:
            print(*(f"{v:6} {k}" for k, v in total.most_common() if ":" in k), sep="\n", flush=True)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
