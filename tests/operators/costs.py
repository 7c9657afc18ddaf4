"""What the samples of operators cost for target c, as recorded: bytes of the workspace and characters of C.

    PYTHONPATH=tests python tests/operators/costs.py     records all anew, after a change that is meant

Numbers alone do not notice a table that is built twice, a temporary that is too large, or a loop that is
written out where none was.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from translation_unit import Generated

FILE = Path(__file__).with_name("costs.json")
Cost = tuple[int, int]


def cost_of(item: Generated) -> Cost:
    """(bytes of the workspace, characters of the C without comments, white space and the name)."""
    (size,) = re.findall(r"_WORKSPACE_SIZE (\d+)", item.header)[:1] or ("0",)
    text = re.sub(r"/\*.*?\*/", "", item.source, flags=re.DOTALL)
    text = re.sub(rf"\b{item.name}(?=[_.])", "", text, flags=re.IGNORECASE)
    return int(size), len(re.sub(r"\s", "", text))


def recorded() -> dict[str, set[Cost]]:
    """By the sample, whatever its place among the others; several for those that differ in a body."""
    return {key: {(a, b) for a, b in found} for key, found in json.loads(FILE.read_text()).items()}


def differs(key: str, item: Generated, known: dict[str, set[Cost]]) -> bool:
    """From what is recorded, if anything is."""
    return key in known and cost_of(item) not in known[key]


def main() -> None:
    from rows import registry_rows
    from test_refusals import key

    from batch import generate

    found: dict[str, set[Cost]] = {}
    with TemporaryDirectory() as folder:
        for number, row in enumerate(registry_rows()):
            made = generate(Path(folder), number, row.case, "c")
            if isinstance(made, Generated):
                found.setdefault(key(row), set()).add(cost_of(made))
    lines = [f"{json.dumps(k)}: {json.dumps(sorted(v))}" for k, v in sorted(found.items())]
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n")


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parent))
    main()
