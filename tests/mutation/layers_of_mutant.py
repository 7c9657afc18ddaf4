"""Layers of the kernels' table and of networks as a mutant compiles them: numbers, instructions, memory.

Only those whose C is not what it was are run, some of every target: their numbers against the operators'
references, their instructions on a board against those of the compiler as it is, and with red zones between
their buffers.
"""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

BOARDS = {"cortex-m0": "m0", "cortex-m4": "m4", "cortex-m55": "m55"}
MOST = 12
"""Layers of a target that are run."""


@dataclass(frozen=True)
class Compiled:
    """A layer for a target."""

    layer: Any
    case: Any
    target: str


def _layers(file: str) -> dict[str, Compiled]:
    """Those that a module of kernels may touch, by name and target."""
    from network_layers import float_layers, int8_layers, network_case
    from table import GROUPS

    cases = [(layer, layer.case(group, {}), f"{group}: {layer.name}")
             for group, layers in GROUPS.items()
             for layer in layers()]
    cases += [(layer, network_case(layer, words), f"{' '.join(words.values())} {layer.name}")
              for words in ({}, {"optimize": "speed"}, {"optimize": "size"})
              for layer in int8_layers()]
    cases += [(layer, network_case(layer, {}), layer.name) for layer in float_layers()]
    found = {}
    for layer, case, name in cases:
        floats = layer.x.dtype.kind == "f"
        if ("int8" in file and floats) or ("float32" in file and not floats):
            continue
        for target in ("c", "host", *BOARDS):
            if not (target == "cortex-m0" and floats) and not (target in ("c", "host") and case.options):
                found[f"{target} {name}"] = Compiled(layer, replace(case, name=f"{target} {name}"), target)
    return found


def _texts(layers: dict[str, Compiled]) -> dict[str, str]:
    from batch import compiled_case

    found = {}
    with TemporaryDirectory() as folder:
        for name, row in layers.items():
            try:
                found[name] = sha256(
                    compiled_case(row.case,
                                  Path(folder) / "model", "m", row.target).texts["m.c"].encode()).hexdigest()
            except Exception as error:
                found[name] = f"{type(error).__name__}: {error}"[:200]
    return found


def written(path: Path) -> dict[str, Any]:
    """Made and written: what the compiler as it is gives for every layer, "texts" and "instructions"."""
    from counted_firmware import instructions

    layers = _layers("")
    counts: dict[str, int] = {}
    for target, board in BOARDS.items():
        counts |= instructions([row.case for row in layers.values() if row.target == target], target, board)
    path.write_text(json.dumps({"texts": _texts(layers), "instructions": counts}))
    return {}


def outcome(place: Path, file: str, known: dict[str, Any]) -> dict[str, object]:
    """What the layers say of the compiler in a folder: caught, or nothing."""
    sys.path.insert(0, str(place))
    sys.dont_write_bytecode = True
    layers = _layers(file)
    texts = _texts(layers)
    by_target: dict[str, list[str]] = defaultdict(list)
    for name, text in texts.items():
        if text != known["texts"][name]:
            if ":" in text:
                return {"status": "caught", "by": f"{name}: {text}"}
            by_target[layers[name].target].append(name)
    for target, names in by_target.items():
        problem = _problem(target, [layers[n]
                                    for n in names[::max(1,
                                                         len(names) // MOST)]], known["instructions"])
        if problem:
            return {"status": "caught", "by": problem}
    return {"status": "", "by": "", "changed": sum(map(len, by_target.values()))}


def _problem(target: str, rows: list[Compiled], counts: dict[str, int]) -> str:
    from counted_firmware import instructions
    from test_instructions import SLACK, WORSE
    from test_table import problems

    from batch import run_cases
    from red_zones import generate_guarded

    cases = [row.case for row in rows]
    flags = ("-O0", *(["-march=native"] if target == "host" else []))
    plain: dict[str,
                Any] = {"board": BOARDS[target], "sanitize": False} if target in BOARDS else {"flags": flags}
    for how in ({"flags": flags, "make": generate_guarded}, plain):
        outcomes = run_cases(cases, target, jobs=1, **how)
        run = [(row.layer, o) for row, o in zip(rows, outcomes, strict=True) if o.status != "same"]
        wrong = problems([layer for layer, _ in run], [o for _, o in run])
        if wrong:
            return f"layer for {target}: {wrong[0][:150]}"
    if target in BOARDS:
        for name, now in instructions(cases, target, BOARDS[target]).items():
            if now > WORSE * counts[name] + SLACK:
                return f"instructions of {name}: {now}, not {counts[name]}"
    return ""
