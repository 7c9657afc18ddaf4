"""Tables as aligned text, Markdown or JSON."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence

Row = Sequence[object]


def table(head: Row, rows: Sequence[Row], right: Collection[int] = ()) -> str:
    """Columns as wide as their widest cell; `right` are the numbers of those that are aligned to the
    right.
    """
    cells = [[str(c) for c in row] for row in (head, *rows)]
    widths = [max(len(row[k]) for row in cells) for k in range(len(head))]
    lines = [
        "  ".join(
            c.rjust(w) if k in right else c.ljust(w) for k, (c, w) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in cells
    ]
    return "\n".join([lines[0], "  ".join("-" * w for w in widths), *lines[1:]])


def markdown(head: Row, rows: Sequence[Row]) -> str:
    """A Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(str(c).replace("|", "\\|") for c in line) + " |" for line in lines)


def as_json(head: Sequence[str], rows: Sequence[Row]) -> str:
    """A list of objects."""
    return json.dumps([dict(zip(head, row, strict=True)) for row in rows], indent=1)
