"""Files beside the model, mutated: what was measured, an older build's metadata, a frontier, a plan, vectors.

    python tests/fuzz/other_files.py --cases 500 --seed 7

They are JSON that people edit and archives of arrays; each command that reads one takes it or says what is
wrong with it.
"""

from __future__ import annotations

import contextlib
import copy
import io
import json
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from command_lines import Fault, campaign, fault_of, folder_of_files

REPORT = ("report", "digits.onnx", "--target", "cortex-m4", "-o", "page.html")
READERS: dict[str, tuple[str, ...]] = {
    "times.json": (*REPORT, "--times"),
    "comparison.json": (*REPORT, "--comparison"),
    "frontier.json": (*REPORT, "--frontier"),
    "out/digits.json": (*REPORT, "--against"),
    "plan.json": ("quantise", "digits.onnx", "-o", "mutated.onnx", "--plan"),
    "digits.npz": ("compare", "digits.onnx", "digits.onnx", "--inputs"),
}
"""A file -> the command that takes it as its last word."""
VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 1e308, -1e308, 2**70, 1.5, -0.0, 1e-320, float("nan"), float("inf")),
    *("", "x", "ü" * 50, "</script>", "a" * 5000, [], {}, [None], ["x"], {"x": 1}, [1, 2, 3], [[1]]),
)


def make_seeds() -> set[str]:
    """The files, in the working directory, as the commands write them; those that could be made."""
    quantised = (
        "quantise",
        "digits.onnx",
        "--calibration",
        "digits.npz",
        "-o",
        "q.onnx",
        "--method",
        "minmax",
    )
    commands: tuple[tuple[str, tuple[str, ...]], ...] = (
        ("times.json", ("time", "digits.onnx", "--target", "cortex-m4", "--json")),
        ("comparison.json", ("compare", "digits.onnx", "digits.onnx", "--inputs", "digits.npz", "--json")),
        ("", ("compile", "digits.onnx", "-o", "out", "--name", "digits", "--target", "cortex-m4")),
        (
            "",
            (*quantised, "--write-plan", "plan.json", "--frontier", "frontier.json", "--target", "cortex-m4"),
        ),
    )
    for file, words in commands:
        _written(file, words)
    return {file for file in READERS if Path(file).is_file() and Path(file).stat().st_size}


def _written(file: str, words: tuple[str, ...]) -> None:

    from aot_model.cli import main

    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(io.StringIO()):
        status = main(list(words))
    if file and status == 0:
        Path(file).write_text(said.getvalue())


def mutated(rng: random.Random, data: bytes, name: str) -> bytes:
    """One to some changes."""
    return _of_json(rng, data) if name.endswith(".json") else _of_bytes(rng, data)


def _of_bytes(rng: random.Random, data: bytes) -> bytes:
    changed = bytearray(data)
    for _ in range(rng.choice((1, 2, 8))):
        changed[rng.randrange(len(changed))] = rng.randrange(256)
    return bytes(changed[: rng.randrange(len(changed))] if rng.random() < 0.2 else changed)


def _of_json(rng: random.Random, data: bytes) -> bytes:
    facts = json.loads(data)
    for _ in range(rng.choice((1, 1, 1, 2, 4))):
        places = [place for place in _places(facts) if place]
        if not places:
            break
        *way, key = rng.choice(places)
        parent = _at(facts, way)
        change = rng.choice(("gone", "value", "value", "another", "renamed"))
        if change == "gone":
            del parent[key]
        elif change == "another":
            parent[key] = copy.deepcopy(_at(facts, rng.choice(places)))
        elif change == "renamed" and isinstance(parent, dict):
            parent[rng.choice(("x", "", f"{key}2"))] = parent.pop(key)
        else:
            parent[key] = copy.deepcopy(rng.choice(VALUES))
    return json.dumps(facts).encode()


def _places(x: Any, way: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    yield way
    for key in x if isinstance(x, dict) else range(len(x)) if isinstance(x, list) else ():
        yield from _places(x[key], (*way, key))


def _at(x: Any, way: Any) -> Any:
    for key in way:
        x = x[key]
    return x


def faults(seed: int, cases: int, heard: Callable[[set[str]], None] = lambda made: None) -> list[Fault]:
    """Of so many mutated files. heard: is told which files could be made here."""
    rng, found = random.Random(seed), []
    with folder_of_files():
        made = make_seeds()
        heard(made)
        for _ in range(cases):
            name = rng.choice(sorted(made))
            file = Path(f"mutated{Path(name).suffix}")
            file.write_bytes(mutated(rng, Path(name).read_bytes(), name))
            fault = fault_of([*READERS[name], str(file)])
            if fault is not None:
                text = file.read_text() if file.suffix == ".json" else file.read_bytes().hex()
                found.append(Fault(fault.words, f"{fault.what}\n{text[:4000]}"))
    return found


if __name__ == "__main__":
    sys.exit(campaign(__doc__, 500, "files", faults))
