"""The floors of the compiler: each imports from floors below and from itself, and no files import each other
in a circle. No file, of the tests neither, is longer than 450 lines; docs/developing/README.md says the same
floors.

Imports for type checkers alone count, and imports inside of functions: what a reader must know is what is
imported.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "compiler" / "aot_model"

FLOORS = (
    ("errors", "installation", "arithmetic", "memory", "text"),
    ("cycles",),
    ("ir",),
    ("c", "library"),
    ("kernels",),
    ("ops",),
    ("lowering",),
    ("partition",),
    ("passes",),
    ("frontends",),
    ("targets",),
    ("emit",),
    ("page",),
    ("pipeline", "host", "plugin"),
    ("layers", "quantise"),
    ("cli", "scons"),
)
HEIGHT = {room: height for height, floor in enumerate(FLOORS) for room in floor}


def modules() -> dict[str, Path]:
    """Files by module, without the doors that are for users: aot_model itself and `python -m aot_model`."""
    found = {
        ".".join(p.relative_to(PACKAGE).with_suffix("").parts).removesuffix(".__init__"): p
        for p in PACKAGE.rglob("*.py")
    }
    return {name: path for name, path in found.items() if name not in ("__init__", "__main__")}


def imports(path: Path, known: dict[str, Path]) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (
                alias.name.removeprefix("aot_model.")
                for alias in node.names
                if alias.name.startswith("aot_model.")
            )
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "aot_model":
            inside = str(node.module).removeprefix("aot_model").removeprefix(".")
            for alias in node.names:
                whole = f"{inside}.{alias.name}".removeprefix(".")
                yield whole if whole in known else inside


def test_imports_go_down() -> None:
    known = modules()
    assert {name.split(".")[0] for name in known} == set(HEIGHT), "every room has a floor"
    upward = [
        f"{name} imports {other}"
        for name, path in known.items()
        for other in imports(path, known)
        if other and HEIGHT[other.split(".")[0]] > HEIGHT[name.split(".")[0]]
    ]
    assert not upward, "\n".join(upward)


def test_no_circles() -> None:
    known = modules()
    try:
        TopologicalSorter(
            {name: set(imports(path, known)) - {name, ""} for name, path in known.items()}
        ).prepare()
    except CycleError as error:
        raise AssertionError(" → ".join(reversed(error.args[1]))) from None


def test_the_guide_has_the_same_floors() -> None:
    guide = (ROOT / "docs/developing/README.md").read_text()
    rows = re.findall(r"^\| \d+ \| (.*) \|$", guide, re.MULTILINE)
    assert [set(re.findall(r"`(\w+)`", row)) for row in rows] == [set(floor) for floor in FLOORS]


def test_files_have_one_subject() -> None:
    """Most that is longer has two, in tests too."""
    files = [*PACKAGE.rglob("*.py"), *(ROOT / "tests").rglob("*.py")]
    long = {str(p.relative_to(ROOT)): n for p in files if (n := p.read_text().count("\n")) > 450}
    assert not long
