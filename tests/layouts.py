"""Whole corpora in memory that is laid out at random, within what calls say of their buffers.

    python tests/layouts.py networks --seed 5                  networks of both corpora: the same bits as with
                                                               the compiler's own planner
    python tests/layouts.py networks --target cortex-m4 --only 'k_*' --layouts 3
    python tests/layouts.py samples --only '*Conv*'            samples of operators, against their oracles
    python tests/layouts.py kernels --target cortex-m55        layers of the kernels' table, in QEMU
    python tests/layouts.py samples --part 3/12                every twelfth, as CI's third of twelve commits

Inputs and outputs lie in the workspace too, over each other and over everything else where they may. The exit
status is 1 when a result is wrong or differs.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import corpus
from aot_model.memory import planner
from batch import JOBS, Case, Outcome, run_cases
from scattered import Scattered

TESTS = Path(__file__).resolve().parent
FOREIGN = Path(os.environ.get("AOT_MODEL_FOREIGN", TESTS.parents[1] / "shared" / "foreign"))
BOARDS = {"c": None, "host": None, "cortex-m0": "m0", "cortex-m4": "m4", "cortex-m55": "m55"}
"""Where code for a target runs: None is this machine."""


@contextmanager
def scattered(seed: int) -> Iterator[None]:
    """The planner that is used where none is asked for, replaced by one that draws."""
    kept = planner.ALGORITHMS[planner.DEFAULT]
    planner.ALGORITHMS[planner.DEFAULT] = Scattered(seed)  # type: ignore[index]
    try:
        yield
    finally:
        planner.ALGORITHMS[planner.DEFAULT] = kept  # type: ignore[index]


def run(cases: Sequence[Case], target: str, jobs: int = JOBS, per_unit: int = 24) -> list[Outcome]:
    flags = ("-O1", *(["-march=native"] if target == "host" else []))
    return run_cases(
        [replace(case, io="workspace") for case in cases],
        target,
        sanitize=False,
        flags=flags,
        board=BOARDS[target],
        jobs=jobs,
        per_unit=per_unit,
    )


# --- networks -----------------------------------------------------------------------------------------------


def network_cases(largest: int) -> list[Case]:
    """The networks of both corpora in files of at most so many bytes, with their first vector."""
    folders = [f for f in (corpus.MODELS, FOREIGN) if f is not None and (f / "index.json").exists()]
    return [
        case
        for folder in folders
        for row in json.loads((folder / "index.json").read_text())
        if (path := folder / row["file"]).stat().st_size <= largest
        and (case := _network(path, row)) is not None
    ]


def _network(path: Path, row: Mapping[str, Any]) -> Case | None:
    """None: no vectors. row: of the index, with the arguments of `verify` that its vectors need."""
    vectors = path.with_name(path.name + ".npz")
    if not vectors.exists():
        return None
    words = row.get("verify") or []
    dims = dict(
        text.rpartition("=")[::2]
        for flag, text in zip(words[::2], words[1::2], strict=True)
        if flag == "--dim"
    )
    with np.load(vectors) as data:
        inputs = tuple(data[f"in_{k}"][0] for k in range(sum(name.startswith("in_") for name in data.files)))
    for given, array in zip(row["inputs"], inputs, strict=False):
        shape = given["shape"] if isinstance(given, dict) else ()
        dims |= {name: size for name, size in zip(shape, array.shape, strict=False) if isinstance(name, str)}
    return Case(
        path.name, path.read_bytes(), inputs, {name: int(size) for name, size in dims.items()}, runs=2
    )


def differing(
    cases: Sequence[Case], target: str, seeds: Sequence[int], jobs: int = JOBS
) -> tuple[list[str], int]:
    """What is wrong with networks in layouts that were drawn, and how many networks were compared: those that
    the compiler refuses are not. They run twice, for their states.
    """
    planned = run(cases, target, jobs, per_unit=1)
    taken = [(case, plan) for case, plan in zip(cases, planned, strict=True) if plan.status != "refused"]
    wrong = [
        f"{case.name}: as planned: {plan.status} {plan.message[:300]}"
        for case, plan in taken
        if plan.status != "ok"
    ]
    taken = [(case, plan) for case, plan in taken if plan.status == "ok"]
    for seed in seeds:
        with scattered(seed):
            drawn = run([case for case, _ in taken], target, jobs, per_unit=1)
        for (case, plan), outcome in zip(taken, drawn, strict=True):
            if outcome.status != "ok":
                wrong.append(f"{case.name}, layout {seed}: {outcome.status} {outcome.message[:300]}")
            elif [o.tobytes() for o in outcome.outputs] != [o.tobytes() for o in plan.outputs]:
                wrong.append(f"{case.name}, layout {seed}: other numbers than as planned")
    return wrong, len(taken)


# --- samples and layers -------------------------------------------------------------------------------------


def wrong_samples(target: str, only: str, part: slice, seed: int) -> tuple[list[str], int]:
    """Samples of operators that give something else than their oracles, and how many were run."""
    from oracles import expected
    from rows import registry_rows
    from verdict import verdict

    rows = [row for row in registry_rows() if fnmatch.fnmatch(row.label, only)][part]
    with scattered(seed):
        outcomes = run([row.case for row in rows], target)
    return [
        f"{row.label}: {problem}"
        for row, outcome in zip(rows, outcomes, strict=True)
        if (problem := verdict(row, outcome, expected(row)))
    ], len(rows)


def wrong_layers(target: str, only: str, part: slice, seed: int) -> tuple[list[str], int]:
    """Layers of the kernels' table that are not what is expected, and how many were run."""
    from table import GROUPS, case_of
    from test_table import problems

    chosen = [
        (group, layer)
        for group, layers in GROUPS.items()
        for layer in layers()
        if fnmatch.fnmatch(group, only) or fnmatch.fnmatch(layer.name, only)
    ][part]
    with scattered(seed):
        outcomes = run([case_of(group, layer, {}) for group, layer in chosen], target)
    return problems([layer for _, layer in chosen], outcomes), len(chosen)


# --- command line -------------------------------------------------------------------------------------------


def _part(text: str) -> slice:
    number, _, count = text.partition("/")
    return slice(int(number) % int(count), None, int(count))


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("networks", "samples", "kernels"))
    parser.add_argument("--target", default="c", choices=BOARDS)
    parser.add_argument("--only", default="*", metavar="PATTERN", help="shell pattern of names")
    parser.add_argument("--part", type=_part, default=slice(None), metavar="K/N", help="every N-th, from K")
    parser.add_argument("--seed", type=int, default=0, help="of the first layout")
    parser.add_argument("--layouts", type=int, default=1, help="how many are drawn")
    parser.add_argument("--largest", type=int, default=1_500_000, metavar="BYTES", help="of networks")
    options = parser.parse_args()

    sys.path += [str(TESTS / "operators"), str(TESTS / "kernels")]
    start, count = time.time(), 0
    wrong: list[str] = []
    seeds = range(options.seed, options.seed + options.layouts)
    if options.what == "networks":
        cases = [case for case in network_cases(options.largest) if fnmatch.fnmatch(case.name, options.only)]
        wrong, count = differing(cases[options.part], options.target, seeds)
    else:
        judge = wrong_samples if options.what == "samples" else wrong_layers
        for seed in seeds:
            found, count = judge(options.target, options.only, options.part, seed)
            wrong += [f"layout {seed}: {text}" for text in found]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    print(
        f"{count} {options.what} in {len(seeds)} layouts on {options.target}: {len(wrong)} wrong, "
        f"{time.time() - start:.0f} s"
    )
    return 1 if wrong or not count else 0


if __name__ == "__main__":
    sys.exit(main())
