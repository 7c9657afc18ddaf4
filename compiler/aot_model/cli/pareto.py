"""`aot-model check --pareto`: what memory buys. RAM beside cycles, or bytes of constants, of the options."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from aot_model.cli.table import table
from aot_model.emit.budgets import Budgets
from aot_model.errors import CompileError, fail
from aot_model.host.program import scratch_folder

if TYPE_CHECKING:
    from aot_model.pipeline import Compiled, Request

SCHEMA = 1
MOST_BUDGETS = 4
"""Smaller and smaller workspaces that are asked for, of each way to optimise."""
STEP = 16
"""Each by this part at least."""


@dataclass(frozen=True)
class Build:
    """One build: what was asked for beside the user's own options, and what it needs."""

    optimise: str
    max_ram: int | None
    ram: int
    flash: int
    cycles: int | None

    @property
    def name(self) -> str:
        words = [f"optimize={self.optimise}"] if self.optimise else []
        words += [] if self.max_ram is None else [f"--max-ram {self.max_ram}"]
        return " ".join(words) or "as asked"


def pareto(asked: Request, arguments: argparse.Namespace) -> int:
    """Write the builds as JSON and say them as a table."""
    from aot_model.emit.files import write_files

    builds = list(_builds(asked))
    timed = all(b.cycles is not None for b in builds)
    best = [not any(_better(other, b) for other in builds) for b in builds]
    if arguments.pareto is not None:
        write_files({arguments.pareto: _json(asked, builds, best, timed)})
    rows = [
        (b.name, f"{b.ram:,}", f"{b.flash:,}", *([f"{b.cycles:,}"] if timed else []), "" if on else "worse")
        for b, on in zip(builds, best, strict=True)
    ]
    head = ("options", "RAM", "constants", *(["cycles"] if timed else []), "")
    print(table(head, rows, right=(1, 2, 3) if timed else (1, 2)))
    return 0


def _better(one: Build, other: Build) -> bool:
    """In nothing worse, in something better."""
    a, b = ((x.ram, x.flash, x.cycles or 0) for x in (one, other))
    return all(m <= n for m, n in zip(a, b, strict=True)) and a != b


def _builds(asked: Request) -> Iterator[Build]:
    """Each way to optimise, and within smaller and smaller workspaces; those that differ in something."""
    from aot_model.pipeline import compile_model
    from aot_model.targets.registry import parse_target

    target = parse_target(asked.target, asked.options, asked.plugins)
    own = target.wish if target.has_option("optimize") else ""
    ways = [own, *(w for w in ("speed", "balanced", "size") if w != own)] if own else [""]
    known: set[tuple[int, int, int | None]] = set()
    for way in ways:
        options = {**asked.options, **({"optimize": way} if way else {})}
        most: int | None = asked.budgets.ram
        for _ in range(MOST_BUDGETS):
            request = replace(asked, options=options, budgets=Budgets(most, asked.budgets.flash))
            try:
                compiled = compile_model(request)
            except CompileError:
                if not known:
                    raise
                break
            found = Build(way, most, compiled.view.workspace_size, compiled.view.constant_bytes,
                          _cycles(request, compiled))  # fmt: skip
            key = found.ram, found.flash, found.cycles
            if key not in known:
                known.add(key)
                yield found
            if found.ram == 0:
                break
            most = found.ram - max(found.ram // STEP, 1)


def _cycles(request: Request, compiled: Compiled) -> int | None:
    """Of a run on zeros on a Cortex-M, estimated in QEMU; None on other targets."""
    import numpy as np

    from aot_model.cycles.rules import memory_of
    from aot_model.host import firmware, timing
    from aot_model.targets.registry import parse_target

    if not request.target.startswith("cortex"):
        return None
    board = firmware.Board.of(parse_target(request.target, request.options, request.plugins), firmware.QEMU)
    compiler = firmware.find_compiler(None, None)
    with scratch_folder() as folder:
        program = firmware.build(compiled.view, compiled.texts, Path(folder), board, compiler)
        inputs = [np.zeros(t.shape, t.dtype.numpy) for t in (p.buffer.type for p in program.view.inputs)]
        memory = memory_of(request.memory or "0ws").name
        [found] = timing.of_firmware(program, compiler, [inputs], [memory])
    return found.cycles


def _json(asked: Request, builds: list[Build], best: list[bool], timed: bool) -> str:
    key, label = ("cycles", "cycles of a run") if timed else ("flash", "bytes of constants")
    rows: list[dict[str, Any]] = [
        {"name": b.name, "optimize": b.optimise, "max_ram": b.max_ram, "ram": b.ram, "flash": b.flash,
         "cycles": b.cycles, "pareto": on, "chosen": k == 0}
        for k, (b, on) in enumerate(zip(builds, best, strict=True))
    ]  # fmt: skip
    facts = {
        "schema": SCHEMA, "kind": "aot-model build frontier",
        "model": asked.model.name, "target": asked.target,
        "title": f"Builds of {asked.model.name} for {asked.target}",
        "x": {"key": "ram", "label": "bytes of workspace", "better": "less"},
        "y": {"key": key, "label": label, "better": "less"},
        "points": rows,
    }  # fmt: skip
    return json.dumps(facts, indent=1) + "\n"


def refuse_with(arguments: argparse.Namespace) -> None:
    if arguments.json or arguments.explain:
        what = "--pareto with --json or --explain: it is a check of its own"
        raise fail("E501", what, hint="leave them out")
