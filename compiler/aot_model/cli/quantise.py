"""`aot-model quantise`: a float model to one of integers, and what that costs in accuracy."""

from __future__ import annotations

import argparse
from pathlib import Path

from aot_model.cli.build import tell_notes
from aot_model.cli.table import table
from aot_model.emit.files import depfile, write_bytes
from aot_model.errors import fail
from aot_model.host.program import scratch_folder
from aot_model.quantise.cost import Budget, Platform
from aot_model.quantise.score import Score
from aot_model.quantise.session import Job, Result, quantise

CLOSENESS = ("noise", "mse", "cosine")
"""Metrics of outputs that are no classes."""


def quantise_(arguments: argparse.Namespace) -> int:
    """Write the model, the plan if it is wanted, and a table of what was tried."""
    from aot_model.cli.terminal import patience

    with scratch_folder() as folder, patience(f"quantising {arguments.model.name}"):
        result = quantise(job(arguments), Path(folder))
    contents = {}
    if arguments.write_plan is not None and result.plan is not None:
        contents[arguments.write_plan] = result.plan.to_json().encode()
    if arguments.frontier is not None and result.frontier is not None:
        contents[arguments.frontier] = result.frontier.encode()
    if arguments.depfile is not None:
        contents[arguments.depfile] = depfile([arguments.output], result.files, arguments.depfile_target)
    contents[arguments.output] = result.model
    write_bytes(contents, keep_unchanged=arguments.keep_unchanged)
    tell_notes(result.notes)
    if not arguments.quiet:
        print(
            "\n".join(
                [
                    *([result.points, ""] if result.points else []),
                    *tables(result),
                    f"{arguments.output}: {len(result.model):,} bytes",
                ]
            )
        )
    return 0


def job(arguments: argparse.Namespace) -> Job:
    budget = Budget(arguments.max_ram, arguments.max_flash, arguments.max_cycles, arguments.within)
    searched = arguments.mixed or budget != Budget() or arguments.frontier is not None
    if arguments.max_cycles is not None and not arguments.target.startswith("cortex"):
        raise fail("E501", "--max-cycles is for Cortex-M", hint="--target cortex-m4")
    return Job(
        arguments.model,
        arguments.calibration,
        dict(arguments.dim),
        dict(arguments.constant),
        dict(arguments.bound),
        arguments.holdout,
        arguments.metric,
        arguments.method,
        arguments.seed,
        arguments.plan,
        searched,
        Platform(arguments.target),
        budget,
        arguments.max_drop,
        arguments.scales == "power-of-two",
        arguments.wide,
    )


def tables(result: Result) -> list[str]:
    """What was tried, and the chosen plan's answers."""
    if not result.rows or result.calibrated is None or result.library is None:
        return []
    best, metric = result.rows[result.chosen], result.metric
    answers = metric not in CLOSENESS  # a largest element says nothing of pictures

    def cells(found: Score) -> tuple[str, ...]:
        changed = (f"{found.changed:.2%}",) if answers else ()
        return _value(found.value, metric), *changed, f"{found.snr:.1f}"

    head = (metric.rpartition(":")[2], *(("changed answers",) if answers else ()), "SNR (dB)")
    rows = [
        (r.candidate.plan.method or "the plan given", *cells(r.score), "chosen" if r is best else "")
        for r in result.rows
    ]
    whole = [
        ("float", _value(result.float_value, metric), *[""] * (len(head) - 1)),
        ("integers, held back", *cells(best.score)),
        ("integers, calibration", *cells(result.calibrated)),
    ]
    right = tuple(range(1, len(head) + 1))
    tried = [table(("ranges", *head, ""), rows, right=right), ""] if len(rows) > 1 else []
    if result.simulated:
        tried.insert(0, f"{result.simulated} plans simulated; of those that were built and run:\n")
    needs = f"RAM {result.library.ram:,} bytes, constants {result.library.flash:,} bytes"
    agree = f"the builds of {' and '.join(result.compilers)} agree" if len(result.compilers) > 1 else (
        f"built by {result.compilers[0]} alone: no second compiler is there to agree")  # fmt: skip
    return [
        *tried,
        table(("model", *head), whole, right=right),
        f"on {best.score.samples} held-back samples; {agree}",
        f"as built for this machine: {needs}",
    ]


def _value(value: float, metric: str) -> str:
    """A metric as a person reads it: noise is as much as there is, though less of it is better."""
    if metric == "noise":
        return f"{max(-100 * value, 0.0):.2g}%"
    return f"{value + 0:.2%}" if metric == "top1" else f"{value:.6g}"
