"""`aot-model targets` and `aot-model ops`: what there is."""

from __future__ import annotations

import argparse
import shutil
import sys
import textwrap
from collections.abc import Sequence

from aot_model.cli.table import Row, as_json, markdown, table

NARROW = 16
"""Fewest characters of a column whose cells are wrapped."""


def _print(arguments: argparse.Namespace, head: Sequence[str], rows: Sequence[Row]) -> int:
    if arguments.json:
        print(as_json(head, rows))
        return 0
    texts = [[", ".join(map(str, c)) if isinstance(c, (list, tuple)) else c for c in row] for row in rows]
    if arguments.markdown:
        print(markdown(head, texts))
    else:
        columns = shutil.get_terminal_size().columns
        print(fitted(head, texts, columns) if sys.stdout.isatty() else table(head, texts))
    return 0


def fitted(head: Sequence[str], rows: Sequence[Row], width: int) -> str:
    """The rows for a terminal: the widest columns wrapped until all fit, each line of a cell in a row.

    Where there are more columns than have room, each row is a paragraph with a line for each cell.
    """
    room = width - 2 * (len(head) - 1)
    widths = [max(len(str(row[k])) for row in (head, *rows)) for k in range(len(head))]
    if sum(min(w, NARROW) for w in widths) > room:
        return "\n".join(_paragraph(head, row, width) for row in rows)
    while sum(widths) > room:
        widest = widths.index(max(widths))
        widths[widest] = max(NARROW, widths[widest] - (sum(widths) - room))
    lines: list[Row] = []
    for row in rows:
        cells = [
            textwrap.wrap(str(c), w, break_on_hyphens=False) or [""] for c, w in zip(row, widths, strict=True)
        ]
        lines += [[c[k] if k < len(c) else "" for c in cells] for k in range(max(map(len, cells)))]
    return table(head, lines)


def _paragraph(head: Sequence[str], row: Row, width: int) -> str:
    cells = [f"{name}: {cell}" for name, cell in zip(head[1:], row[1:], strict=True) if str(cell)]
    return "\n".join([str(row[0]), *(
        textwrap.fill(cell, width, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False)
        for cell in cells)])  # fmt: skip


def targets_(arguments: argparse.Namespace) -> int:
    from aot_model.targets.registry import targets

    rows = []
    for name, target in sorted(targets(tuple(arguments.target_plugin)).items()):
        options = {n: a.default for t in reversed(target.lineage()) for n, a in t.attributes.items()}
        chain = [t.name for t in target.lineage()[1:]]
        patterns = (
            list(dict.fromkeys(p.name for p in target.offloads.patterns))
            if target.offloads is not None
            else []
        )
        rows.append(
            (
                name,
                target.description,
                chain,
                [f"{n}={d}" for n, d in sorted(options.items())],
                list(target.c_flags),
                patterns,
            )
        )
    return _print(
        arguments, ("target", "description", "falls back on", "options", "compiler flags", "takes over"), rows
    )


def operators(arguments: argparse.Namespace) -> int:
    rows = _operators()
    if arguments.supported is not None:
        return _of_model(arguments, {(str(row[0]), str(row[1])) for row in rows})
    if arguments.operators:
        wanted = {name.lower() for name in arguments.operators}
        rows = [row for row in rows if str(row[1]).lower() in wanted]
        missing = sorted(wanted - {str(row[1]).lower() for row in rows})
        if missing:
            from difflib import get_close_matches

            from aot_model.errors import fail

            near = get_close_matches(missing[0], [str(row[1]).lower() for row in _operators()], 3)
            spelled = sorted({str(row[1]) for row in _operators() if str(row[1]).lower() in near})
            raise fail(
                "E201",
                f"operator '{missing[0]}' is not supported",
                hint=f"there is {', '.join(spelled)}" if spelled else "`aot-model ops` lists what there is",
            )
    return _print(arguments, ("domain", "operator", "attributes", "form"), rows)


def _operators() -> list[Row]:
    from dataclasses import fields

    from aot_model.frontends.tflite import supported_operators
    from aot_model.ops.registry import OPERATORS, load_all

    load_all()
    rows: list[Row] = [
        (
            domain or "ai.onnx",
            name,
            sorted(f.name for f in fields(cls)),
            "kernel" if cls.has("lower") else "composite" if cls.has("expand") else "expression",
        )
        for (domain, name), cls in sorted(OPERATORS.items())
        if domain != "aot"
    ]
    rows += [("tflite", name, [], "rule") for name in supported_operators()]
    return rows


def _of_model(arguments: argparse.Namespace, known: set[tuple[str, str]]) -> int:
    """The operators of a file; exit status 1 when one is not supported."""
    from aot_model.frontends.read import model_operators

    counted = model_operators(arguments.supported)
    rows = [
        (domain, name, count, "yes" if (domain, name) in known else "no")
        for (domain, name), count in sorted(counted.items())
    ]
    _print(arguments, ("domain", "operator", "count", "supported"), rows)
    return int(any(row[3] == "no" for row in rows))
