"""Fragments of networks with extreme parameters, and operators at the edges of what they take. Right, or
refused.

    python tests/random_networks/extremes.py onnx --seed 1 --count 500
    python tests/random_networks/extremes.py onnx --only 17 --targets c host cortex-m4     # one of them

onnx: quantised fragments, whose scales, zero points, weights, biases, windows are extreme. Integers are
within a step of what the graph means with floats of 64 bits, each quantisation before the last one step off
at most, or of what ONNX Runtime computes; floats within the share that rounding them takes. Where floats of
32 bits overflow on the way nobody can tell; the program runs all the same. tflite: the same, equal to LiteRT,
where its own arithmetic is defined. edges: operators of ONNX and of com.microsoft, whose numbers are at the
ends of types, NaN, infinite or ties, whose extents are 0 or 1; as ONNX Runtime or the standard's evaluator.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(TESTS), str(TESTS / "random_networks"), str(TESTS / "targets")]

import edges  # noqa: E402
import extreme_onnx  # noqa: E402
import extreme_tflite  # noqa: E402
from cmsis_nn_library import library  # noqa: E402
from network_campaign import TARGETS, case_of, options_for  # noqa: E402

from apart import Apart  # noqa: E402
from batch import Case, Outcome, run_cases  # noqa: E402
from qemu import BOARDS as QEMU  # noqa: E402
from qemu import COMPILER  # noqa: E402


@dataclass(frozen=True)
class Kind:
    """What is drawn by a number, its case, what it must give (None: nobody can tell) and what is wrong with
    what it gave, on a target: empty when nothing is, None when nobody can tell.
    """

    drawn: Callable[[int], Any]
    case: Callable[[int, Any], Case]
    wanted: Callable[[int], Any]
    verdict: Callable[[Any, Any, Outcome, str], str | None]


def _of_onnx(number: int, n: Any) -> Case:
    return case_of(number, f"fragment {number}", n.model(n.outputs), n.fed.values())


def _of_tflite(number: int, n: Any) -> Case:
    case = case_of(number, f"network {number}", n.model, n.fed, arithmetic="litert-ref")
    return replace(case, stirred=not n.remembers)


def _at_edges(number: int, n: Any) -> Case:
    return case_of(number, f"edge {number}", n.model(), n.fed.values())


KINDS = {
    "onnx": Kind(extreme_onnx.fragment, _of_onnx, extreme_onnx.expected, extreme_onnx.verdict),
    "tflite": Kind(extreme_tflite.network, _of_tflite, extreme_tflite.wanted, extreme_tflite.verdict),
    "edges": Kind(edges.network, _at_edges, edges.wanted, edges.verdict),
}


def run(kind: str, numbers: Sequence[int], target: str, jobs: int = 2) -> tuple[list[str], Counter[str]]:
    """What is wrong with draws of a kind, and what became of all."""
    of = KINDS[kind]
    oracle, drawn = Apart(of.wanted), [of.drawn(k) for k in numbers]
    cases = [of.case(k, n) for k, n in zip(numbers, drawn, strict=True)]
    found, tally = [], Counter[str]()
    for number, n, outcome in zip(numbers, drawn, _outcomes(cases, numbers, target, jobs), strict=True):
        if outcome.status == "refused":
            tally[f"refused: {' '.join(outcome.message.split())[-110:]}"] += 1
            continue
        problem: str | None = f"{outcome.status}: {outcome.message[-900:]}"
        if outcome.status == "ok":
            want = oracle(number)
            problem = None if want is None else of.verdict(n, want, outcome, target)
        tally["ran" if problem is None else "wrong" if problem else "right"] += 1
        found += [f"{target}: {kind} {number}: {' '.join(n.kinds)}: {problem}"] if problem else []
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


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("kind", choices=KINDS)
    parser.add_argument("--seed", type=int, default=0, help="draws from seed * 1,000,000 on")
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--only", type=int, nargs="+", help="draws of these numbers")
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
            found, tally = run(options.kind, list(numbers[start : start + 240]), target, options.jobs)
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
