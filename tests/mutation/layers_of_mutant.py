"""Layers of the kernels' table and of networks as a mutant compiles them: numbers, instructions, memory.

Those that execute its line are compiled, and those of them whose C is not what it was are run, some of every
target: their numbers against the operators' references, their instructions on a board against those
recorded, and with red zones between their buffers.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from executed import forget, watched

BOARDS = {"cortex-m0": "m0", "cortex-m4": "m4", "cortex-m55": "m55"}
MOST = 12
"""Layers of a target that are run."""


@dataclass(frozen=True)
class Compiled:
    """A layer for a target."""

    layer: Any
    case: Any
    target: str


def loaded() -> dict[str, Compiled]:
    """All layers, by target and name, of the compiler that this process finds first."""
    from test_instructions import layers

    return {
        f"{target} {case.name}": Compiled(layer, replace(case, name=f"{target} {case.name}"), target)
        for target in ("c", "host", *BOARDS)
        for layer, case in layers(target)
    }


def _text(row: Compiled, folder: str) -> tuple[str, Any]:
    """The hash of a layer's C, or why it has none; and what memory it takes."""
    from counted_firmware import memory

    from batch import compiled_case

    try:
        compiled = compiled_case(row.case, Path(folder) / "model", "m", row.target)
        return sha256(compiled.texts["m.c"].encode()).hexdigest(), memory(compiled)
    except Exception as error:
        return f"{type(error).__name__}: {error}"[:200], None


def written(path: Path) -> dict[str, Any]:
    """Made and written: what the compiler as it is gives for every layer, "texts"; "names" of layers, and in
    "lines" by "file:line" those that execute it, a bit each.
    """
    layers = loaded()
    texts: dict[str, str] = {}
    lines: dict[str, int] = defaultdict(int)
    with TemporaryDirectory() as folder:
        for number, (name, row) in enumerate(layers.items()):
            forget()
            with watched() as seen:
                texts[name], _ = _text(row, folder)
            for key in seen:
                lines[key] |= 1 << number
    found = {"texts": texts, "names": list(texts)}
    path.write_text(json.dumps({**found, "lines": {key: f"{bits:x}" for key, bits in lines.items()}}))
    return {}


def touched(keys: Iterable[str], known: dict[str, Any]) -> list[str]:
    """Names of the layers that execute one of some lines, "file:line" each."""
    bits = 0
    for key in keys:
        bits |= int(known["lines"].get(key, "0"), 16)
    return [name for number, name in enumerate(known["names"]) if bits >> number & 1]


def judged(layers: dict[str, Compiled], names: list[str], known: dict[str, Any]) -> dict[str, object]:
    """What some layers say of the compiler as it is loaded: caught, or nothing."""
    from test_instructions import recorded, worse

    by_target: dict[str, list[str]] = defaultdict(list)
    with TemporaryDirectory() as folder:
        for name in names:
            text, memory = _text(layers[name], folder)
            if text != known["texts"][name] and memory is None:
                return {"status": "caught", "by": f"{name}: {text}"}
            if text != known["texts"][name]:
                by_target[layers[name].target].append(name)
            target = layers[name].target
            other = memory and worse(memory, *recorded(target, name.removeprefix(target).strip()))
            if other:
                return {"status": "caught", "by": f"memory of {name}: {other}"}
    for target, changed in by_target.items():
        step = max(1, len(changed) // MOST)
        problem = _problem(target, [layers[n] for n in changed[::step]])
        if problem:
            return {"status": "caught", "by": problem}
    return {"status": "", "by": "", "changed": sum(map(len, by_target.values()))}


def _problem(target: str, rows: list[Compiled]) -> str:
    from counted_firmware import costs
    from test_instructions import recorded, worse
    from test_table import problems

    from batch import run_cases
    from red_zones import generate_guarded

    cases = [row.case for row in rows]
    flags = ("-O0", *(["-march=native"] if target == "host" else []))
    plain: dict[str, Any] = (
        {"board": BOARDS[target], "sanitize": False} if target in BOARDS else {"flags": flags}
    )
    for how in ({"flags": flags, "make": generate_guarded}, plain):
        outcomes = run_cases(cases, target, jobs=1, **how)
        run = [(row.layer, o) for row, o in zip(rows, outcomes, strict=True) if o.status != "same"]
        wrong = problems([layer for layer, _ in run], [o for _, o in run])
        if wrong:
            return f"layer for {target}: {wrong[0][:150]}"
    if target in BOARDS:
        for name, now in costs(cases, target, BOARDS[target]).items():
            found = worse(now, *recorded(target, name.removeprefix(target).strip()))
            if found:
                return f"costs of {name}: {found}"
    return ""
