"""Comparisons of the compiler whose sides are equal in no test, and conditions that always come out one way.

    python tests/mutation/edges_of_tests.py run FOLDER tests/passes tests/operators -n 2
    python tests/mutation/edges_of_tests.py report FOLDER ops/

The first runs pytest with notes of every comparison (noted_edges.py), half as slow again. The second
prints what they leave open of the modules of a room: orderings that were met and whose sides never were
equal, with the differences that were seen (2: more than 1), and conditions that never held, or always did.
Of these a changed token is noticed by no test, or nothing can notice it and the code may be simpler.
"""

from __future__ import annotations

import ast
import os
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import noted_edges as edges

FOLDER = "AOT_MODEL_EDGES"
"""Where each process of a run writes what it sees; this module is a plugin of pytest where it is set."""
ORDERINGS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
Place = tuple[str, int, int]


class _Written(set[edges.Event]):
    """Events, each of which is written when it is first seen: a forked process may end without a word."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self._folder = folder
        self._files: dict[int, IO[str]] = {}

    def add(self, event: edges.Event) -> None:
        if event in self:
            return
        super().add(event)
        pid = os.getpid()
        if pid not in self._files:
            self._files[pid] = (self._folder / str(pid)).open("a", buffering=1)
        self._files[pid].write(":".join(map(str, event)) + "\n")


def _known(folder: Path) -> dict[Place, set[int]]:
    found: dict[Place, set[int]] = defaultdict(set)
    for file in folder.iterdir():
        for line in file.read_text().splitlines():
            name, *numbers = line.split(":")
            if len(numbers) == 3:  # else the process was killed while it wrote
                row, column, event = map(int, numbers)
                found[name, row, column].add(event)
    return found


def _nodes(tree: ast.AST) -> Iterator[ast.AST]:
    """Those inside of functions, apart from samples and references."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and function.name not in edges.SKIPPED:
            yield from (n for statement in function.body for n in ast.walk(statement))


def _conditions(node: ast.AST) -> list[ast.expr]:
    if isinstance(node, (ast.If, ast.IfExp, ast.While)):
        return [node.test]
    if isinstance(node, ast.BoolOp):
        return node.values
    return node.ifs if isinstance(node, ast.comprehension) else []


def open_places(folder: Path, room: str) -> list[str]:
    """Lines for a reader, in the order of the sources."""
    known = _known(folder)
    found: dict[tuple[str, int, str], None] = {}
    files = [p for watched in edges.WATCHED for p in sorted((edges.PACKAGE / watched).rglob("*.py"))]
    for file in files:
        name = file.relative_to(edges.PACKAGE).as_posix()
        if not name.startswith(room) or name.endswith("_samples.py"):
            continue
        for node in _nodes(ast.parse(file.read_text())):
            for k, op in enumerate(node.ops if isinstance(node, ast.Compare) else (), 1):
                assert isinstance(node, ast.Compare)
                column = node.col_offset + (edges.CHAIN * k if len(node.ops) > 1 else 0)
                seen = known.get((name, node.lineno, column), set()) - {edges.HOLDS, edges.FAILS}
                if isinstance(op, ORDERINGS) and seen and 0 not in seen:
                    found[name, node.lineno, f"never equal {sorted(seen)}: {ast.unparse(node)}"] = None
            for test in _conditions(node):
                seen = known.get((name, test.lineno, test.col_offset), set()) & {edges.HOLDS, edges.FAILS}
                if len(seen) == 1:
                    way = "always" if edges.HOLDS in seen else "never"
                    found[name, test.lineno, f"{way}: {ast.unparse(test)}"] = None
    return [f"{name}:{line}: {text}" for name, line, text in sorted(found)]


def main() -> int:
    command, folder, *rest = sys.argv[1:]
    if command == "report":
        print(*open_places(Path(folder), rest[0] if rest else ""), sep="\n")
        return 0
    Path(folder).mkdir(parents=True, exist_ok=True)
    os.environ[FOLDER] = str(Path(folder).resolve())
    here = str(Path(__file__).resolve().parent)
    os.environ["PYTHONPATH"] = os.pathsep.join([here, *filter(None, [os.environ.get("PYTHONPATH")])])
    os.execv(sys.executable, [sys.executable, "-m", "pytest", "-p", "edges_of_tests", *rest])


if FOLDER in os.environ and __name__ != "__main__":
    edges.seen = _Written(Path(os.environ[FOLDER]))
    sys.meta_path.insert(0, edges.Finder())


if __name__ == "__main__":
    sys.exit(main())
