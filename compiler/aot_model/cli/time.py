"""`aot-model time`: what each layer costs where it runs."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np

from aot_model.cli.build import request
from aot_model.cli.execute import built
from aot_model.cli.layers import random_input
from aot_model.cli.table import table
from aot_model.errors import fail
from aot_model.host.firmware import QEMU, FirmwareProgram
from aot_model.host.program import scratch_folder


def time(arguments: argparse.Namespace) -> int:
    """A table of the calls of the model, the longest marked by its share."""
    arguments.on = arguments.on or QEMU
    with scratch_folder() as folder:
        program, _ = built(arguments, Path(folder), replace(request(arguments).library, profile=True))
        assert isinstance(program, FirmwareProgram) and program.board is not None
        rng = np.random.default_rng(0)
        vectors = [[random_input(p.buffer.type, rng)
                    for p in program.view.inputs]
                   for _ in range(arguments.runs)]
        program.run(vectors)
    board, view = program.board, program.view
    whole, *layers = (board.amount(ticks) // arguments.runs for ticks in program.ticks)
    calls = list(view.program.calls())
    if len(layers) != len(calls):
        raise fail("E602",
                   f"the firmware told the time of {len(layers)} layers, not of {len(calls)}",
                   where=str(arguments.model))
    facts = [{"layer": c.layer, "op": c.op, "macs": c.macs, board.unit: n}
             for c, n in zip(calls, layers, strict=True)]
    if arguments.json:
        print(
            json.dumps({"target": view.target.label, "on": arguments.on, board.unit: whole, "layers": facts},
                       indent=1))
        return 0
    from aot_model.c.names import printable

    rows = [(printable(c.layer, 48), c.op, f"{c.macs:,}", f"{n:,}", f"{100 * n / max(whole, 1):.1f} %",
             f"{n / c.macs:.2f}" if c.macs else "-") for c, n in zip(calls, layers, strict=True)]
    rows.append(("together", "", f"{view.macs:,}", f"{whole:,}", "",
                 f"{whole / view.macs:.2f}" if view.macs else "-"))
    print(table(("layer", "operator", "MACs", board.unit, "share", "per MAC"), rows, right=(2, 3, 4, 5)))
    return 0
