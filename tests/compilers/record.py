"""The record: in which columns a program was right, over all runs by hand, so that a run repeats only what is
new. The file belongs to the repository: a program is known by its digest, whatever made it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

from .cells import Cell

PATH = Path(__file__).with_name("record.json")

Key = tuple[str, str, str, str]
"""Column, code (`aot-model --target`), unit, digest of the program."""

SETTLED = ("right", "unsuitable")
"""What is recorded; the rest is to be mended and run again."""


def key(cell: Cell) -> Key:
    return cell.column, cell.target, cell.unit, cell.digest


def read(path: Path = PATH) -> list[Cell]:
    """All cells of the record."""
    if not path.exists():
        return []
    data = json.loads(path.read_text())
    cells: list[Cell] = []
    for name, row in data["programs"].items():
        unit, target = name.removesuffix("]").rsplit(" [", 1)
        digest, cases, *sets = row.split()
        for status, bits in zip(SETTLED, sets, strict=True):
            count = int(cases) if status == "right" else 0
            cells += (
                Cell(column, target, unit, digest, status, count)
                for k, column in enumerate(data["columns"])
                if int(bits, 16) >> k & 1
            )
    return cells


def add(cells: Iterable[Cell], path: Path = PATH) -> int:
    """Write what is settled by cells, beside what was there; of a program that is another one now, nothing
    stays. The number of cells in the file.
    """
    new = {key(c): c for c in cells if c.status in SETTLED}
    now = {(c.unit, c.target): c.digest for c in new.values()}
    all_of_them = {key(c): c for c in read(path)} | new
    kept = [c for _, c in sorted(all_of_them.items()) if now.get((c.unit, c.target), c.digest) == c.digest]
    columns = sorted({c.column for c in kept})
    place = {column: 1 << k for k, column in enumerate(columns)}
    sets: dict[tuple[str, str, str], dict[str, int]] = {}
    cases: dict[tuple[str, str, str], int] = {}
    for c in kept:
        program = (c.unit, c.target, c.digest)
        sets.setdefault(program, dict.fromkeys(SETTLED, 0))[c.status] |= place[c.column]
        cases[program] = max(cases.get(program, 0), c.cases)
    programs = {
        f"{unit} [{target}]": " ".join(
            [digest, str(cases[unit, target, digest]), *(f"{s:x}" for s in of.values())]
        )
        for (unit, target, digest), of in sorted(sets.items())
    }
    path.write_text(json.dumps({"columns": columns, "programs": programs}, indent=0) + "\n")
    return len(kept)
