"""Results of the matrix: a file of one JSON object a line, and tables of it."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from .cells import Cell
from .columns import Column

BAD = ("wrong", "crash", "uncompilable")


def read(path: Path) -> dict[tuple[str, str, str], Cell]:
    """By column, target and unit: the last result."""
    if not path.exists():
        return {}
    rows = (json.loads(line) for line in path.read_text().splitlines() if line.strip())
    return {(r["column"], r["target"], r["unit"]): Cell(**r) for r in rows}


def append(path: Path, cells: Iterable[Cell]) -> None:
    with path.open("a") as file:
        for cell in cells:
            file.write(json.dumps(cell.row()) + "\n")


def everywhere(cells: Iterable[Cell]) -> set[tuple[str, str]]:
    """(unit, case) that are off in every cell that ran them, which are several: no matter of a compiler."""
    ran: Counter[str] = Counter()
    off: Counter[tuple[str, str]] = Counter()
    for cell in cells:
        if cell.status != "unsuitable":
            ran[cell.unit] += 1
            off.update((cell.unit, case) for case in cell.faults)
    return {key for key, count in off.items() if count == ran[key[0]] >= 3}


def markdown(
    columns: Sequence[Column],
    cells: Mapping[tuple[str, str, str], Cell],
    absent: Mapping[str, str],
    planned: Mapping[tuple[str, str], int],
) -> str:
    """A table by column and target, then every fault. planned: units by column and target."""
    by: dict[tuple[str, str], list[Cell]] = defaultdict(list)
    for cell in cells.values():
        by[cell.column, cell.target].append(cell)
    shared = everywhere(cells.values())
    lines = [
        "| column | code | units run | not run | cases right | wrong | crash | does not compile | too large |",  # noqa: E501
        "|" + " --- |" * 9,
    ]
    total: Counter[str] = Counter()
    for column in columns:
        if column.name in absent:
            lines.append(f"| {column.name} | | missing: {absent[column.name]} | | | | | | |")
            continue
        for target in column.targets:
            found = by[column.name, target]
            count = Counter(c.status for c in found)
            right = sum(c.cases - len(c.faults) for c in found if c.status != "unsuitable")
            ran = len(found) - count["unsuitable"]
            left = planned.get((column.name, target), len(found)) - len(found)
            total.update({"ran": ran, "left": left, "cases": right, **count})
            lines.append(
                f"| {column.name} | {target} | {ran} | {left} | {right:,} | {count['wrong']} | "
                f"{count['crash']} | {count['uncompilable']} | {count['unsuitable']} |"
            )
    lines.append(
        f"| all | | {total['ran']:,} | {total['left']:,} | {total['cases']:,} | {total['wrong']} | "
        f"{total['crash']} | {total['uncompilable']} | {total['unsuitable']} |"
    )
    lines += ["", "Faults:" if any(c.status in BAD for c in cells.values()) else "No faults.", ""]
    for cell in sorted(
        (c for c in cells.values() if c.status in BAD), key=lambda c: (c.unit, c.target, c.column)
    ):
        for case, text in cell.faults.items():
            mark = " (in every column)" if (cell.unit, case) in shared else ""
            lines.append(
                f"* {cell.unit} {case} [{cell.target}] {cell.column}: {cell.status}{mark}: "
                f"{' '.join(text.split())[:300]}"
            )
    return "\n".join(lines) + "\n"
