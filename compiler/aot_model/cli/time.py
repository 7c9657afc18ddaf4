"""`aot-model time`: what each layer costs where it runs."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from aot_model.cli.build import request
from aot_model.cli.execute import built
from aot_model.cli.layers import random_input
from aot_model.cli.table import table
from aot_model.cycles.rules import memory_of
from aot_model.errors import CompileError, Problem, fail
from aot_model.host.firmware import QEMU, FirmwareProgram, find_compiler
from aot_model.host.program import scratch_folder

if TYPE_CHECKING:
    from aot_model.host.timing import Timing


def time(arguments: argparse.Namespace) -> int:
    """A table of the calls of the model: estimated cycles in QEMU; on a board, or where QEMU cannot be asked
    for more, what a clock counts.
    """
    arguments.on = arguments.on or QEMU
    asked = [
        f"--{name}" for name in ("clock", "max-cycles", "memory")
        if getattr(arguments, name.replace("-", "_")) is not None
    ]  # fmt: skip
    if arguments.on != QEMU:
        if asked and asked[0] != "--memory":  # for a memory code is written, too
            raise fail(
                "E501",
                f"{asked[0]} with --on: a board's cycles are measured, not estimated",
                hint="leave it out",
            )
        return _counted(arguments)
    try:
        return _estimated(arguments)
    except CompileError as error:
        if asked or error.problems[0].code != "E604":
            raise
        print(f"note: {error.problems[0].message}; these are instructions", file=sys.stderr)
        return _counted(arguments)


def _estimated(arguments: argparse.Namespace) -> int:
    from aot_model.host import timing

    memory = memory_of(arguments.memory or "0ws")
    with scratch_folder() as folder:
        program, _ = built(arguments, Path(folder))
        assert isinstance(program, FirmwareProgram)
        compiler = find_compiler(arguments.cc, arguments.cflags)
        [found] = timing.of_firmware(program, compiler, _inputs(program, arguments.runs), [memory.name])
    clock = arguments.clock or memory.clock
    check_cycles(found, clock, arguments.max_cycles, str(arguments.model))
    if arguments.json:
        print(
            json.dumps({
                "target": program.view.target.label,
                "on": QEMU,
                "clock": clock,
                **found.facts(clock)
            },
                       indent=1))  # fmt: skip
    else:
        print(shown(found, clock))
    return 0


def check_cycles(found: Timing, clock: float | None, limit: float | None, where: str) -> None:
    """CompileError E402 with the table by layer when the estimate is more than the budget."""
    if limit is None or found.cycles <= limit:
        return
    widest = max(found.layers, key=lambda layer: layer.cycles, default=None)
    hint = (
        ""
        if widest is None
        else (
            f"'{widest.layer[:48]}' takes {widest.cycles:,}: {widest.binding}; "
            "--option optimize=speed, where it is not the default, may need fewer"
        )
    )
    said = f"needs {found.cycles:,} cycles ({found.error}), the budget is {limit:,.0f}"
    raise CompileError([Problem("E402", f"{said}\n{shown(found, clock)}\n", where, hint)])


def shown(found: Timing, clock: float | None) -> str:
    """The table by layer, and what the estimate is worth."""
    from aot_model.c.names import printable

    def row(name: str, op: str, macs: int, instructions: int, cycles: int, binding: str) -> Sequence[str]:
        share = f"{100 * cycles / max(found.cycles, 1):.1f} %" if op else ""
        return (name, op, f"{macs:,}", f"{instructions:,}", f"{cycles:,}", share,
                f"{cycles / macs:.2f}" if macs else "-", *([f"{cycles / clock * 1e6:,.1f}"] if clock else []),
                binding)  # fmt: skip

    rows = [
        row(printable(one.layer, 48), one.op, one.macs, one.instructions, one.cycles, one.binding)
        for one in found.layers
    ]  # fmt: skip
    macs = sum(one.macs for one in found.layers)
    rows.append(row("together", "", macs, found.instructions, found.cycles, ""))
    head = ("layer", "operator", "MACs", "instructions", "cycles", "share", "per MAC",
            *(["µs"] if clock else []), "what cycles go to")  # fmt: skip
    at = f" at {clock / 1e6:g} MHz" if clock else ""
    lines = [
        f"cycles estimated for {found.core}, memory {found.memory}{at}; "
        f"error: {found.error} ({found.validation})"
    ]
    if found.unknown:
        lines.append(f"without a rule, one cycle each: {', '.join(found.unknown)}")
    return "\n".join([*lines, table(head, rows, right=(2, 3, 4, 5, 6, 7) if clock else (2, 3, 4, 5, 6))])


def _inputs(program: FirmwareProgram, runs: int) -> list[list[np.ndarray]]:
    rng = np.random.default_rng(0)
    return [[random_input(p.buffer.type, rng) for p in program.view.inputs] for _ in range(runs)]


def _counted(arguments: argparse.Namespace) -> int:
    """By the clock of the program: instructions in QEMU, cycles on a board."""
    from aot_model.c.names import printable

    with scratch_folder() as folder:
        program, _ = built(arguments, Path(folder), replace(request(arguments).library, profile=True))
        assert isinstance(program, FirmwareProgram) and program.board is not None
        program.run(_inputs(program, arguments.runs))
    board, view = program.board, program.view
    whole, *layers = (board.amount(ticks) // arguments.runs for ticks in program.ticks)
    calls = list(view.program.calls())
    if len(layers) != len(calls):
        raise fail(
            "E602",
            f"the firmware told the time of {len(layers)} layers, not of {len(calls)}",
            where=str(arguments.model),
        )
    facts = [
        {"layer": c.layer, "op": c.op, "macs": c.macs, board.unit: n}
        for c, n in zip(calls, layers, strict=True)
    ]
    if arguments.json:
        print(
            json.dumps(
                {"target": view.target.label, "on": arguments.on, board.unit: whole, "layers": facts},
                indent=1,
            )
        )
        return 0
    rows = [
        (
            printable(c.layer, 48),
            c.op,
            f"{c.macs:,}",
            f"{n:,}",
            f"{100 * n / max(whole, 1):.1f} %",
            f"{n / c.macs:.2f}" if c.macs else "-",
        )
        for c, n in zip(calls, layers, strict=True)
    ]
    rows.append(
        ("together", "", f"{view.macs:,}", f"{whole:,}", "", f"{whole / view.macs:.2f}" if view.macs else "-")
    )
    print(table(("layer", "operator", "MACs", board.unit, "share", "per MAC"), rows, right=(2, 3, 4, 5)))
    return 0
