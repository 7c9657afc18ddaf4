"""Which cases bring comparisons and conditions of the compiler to their edges, where a changed token shows.

    python tests/mutation/edges.py layers    those of kernels/drawn_layers.json
    python tests/mutation/edges.py samples   those of operators/variants.json

Of each comparison of numbers, and of min and max, counts whether the sides differ by -1, 0, 1, less or more;
of each condition and part of one whether it holds. Candidates are compiled one after the other, which takes a
quarter of an hour; those are chosen that together show the most for their time. Golden files are updated
afterwards, and what no oracle computes leaves variants.json by hand.
"""

from __future__ import annotations

import ast
import importlib.abc
import importlib.machinery
import json
import operator
import random
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import numpy as np

TESTS = Path(__file__).resolve().parents[1]
PACKAGE = TESTS.parent / "compiler" / "aot_model"
WATCHED = ("kernels", "ops", "passes")
SKIPPED = ("samples", "reference", "__repr__", "__str__")
COMPARED: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
}
NAMES = {kind.__name__: function for kind, function in COMPARED.items()}
Event = tuple[str, int, int, int]
"""File, line and column, and how it came out."""
HOLDS, FAILS, FAR = 10, 11, 2
CANDIDATES = {"layers": 7000, "samples": 12000}
CHOSEN = {"layers": 750, "samples": 90}
seen: set[Event] = set()


def compared(place: tuple[str, int, int], name: str, a: Any, b: Any) -> Any:
    """The comparison, which is noted."""
    p, q = (v.item() if isinstance(v, np.generic) else v for v in (a, b))
    if all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in (p, q)) and abs(p - q) < 1e300:
        by = p - q
        seen.add((*place, int(by) if by in (-1, 0, 1) else FAR if by > 0 else -FAR))
    return NAMES[name](a, b) if name else None


def least(place: tuple[str, int, int], function: Callable[..., Any], a: Any, b: Any) -> Any:
    compared(place, "", a, b)
    return function(a, b)


def held(place: tuple[str, int, int], value: Any) -> Any:
    seen.add((*place, HOLDS if value else FAILS))
    return value


class _Noting(ast.NodeTransformer):
    """Every comparison and condition inside of functions becomes a call of those above."""

    def __init__(self, file: str) -> None:
        self.file = file
        self.inside = 0

    def _call(self, name: str, node: ast.expr, *arguments: ast.expr) -> ast.expr:
        place = ast.Constant((self.file, node.lineno, node.col_offset))
        function = ast.Attribute(ast.Name("__edges__", ast.Load()), name, ast.Load())
        return ast.copy_location(ast.Call(function, [place, *arguments], []), node)

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if node.name in SKIPPED:
            return node
        self.inside += 1
        node.body = [self.visit(statement) for statement in node.body]
        self.inside -= 1
        return node

    def visit_Assert(self, node: ast.Assert) -> ast.AST:
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if not self.inside or len(node.ops) > 1 or type(node.ops[0]) not in COMPARED:
            return node
        name = ast.Constant(type(node.ops[0]).__name__)
        return self._call("compared", node, name, node.left, node.comparators[0])

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        if self.inside:
            node.values = [self._call("held", v, v) for v in node.values]
        return node

    def visit_If(self, node: ast.If) -> ast.AST:
        self.generic_visit(node)
        if self.inside:
            node.test = self._call("held", node.test, node.test)
        return node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        if self.inside:
            node.test = self._call("held", node.test, node.test)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        plain = len(node.args) == 2 and not any(isinstance(a, ast.Starred) for a in node.args)
        ends = isinstance(node.func, ast.Name) and node.func.id in ("min", "max")
        if self.inside and ends and plain and not node.keywords:
            return self._call("least", node, node.func, *node.args)
        return node


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Loads the watched modules with notes."""

    def find_spec(self, name: str, path: Any, target: Any = None) -> importlib.machinery.ModuleSpec | None:
        room, _, inner = name.removeprefix("aot_model.").partition(".")
        file = PACKAGE / room / f"{inner.replace('.', '/')}.py"
        if not name.startswith("aot_model.") or room not in WATCHED or not file.is_file():
            return None
        return importlib.machinery.ModuleSpec(name, self, origin=str(file))

    def exec_module(self, module: ModuleType) -> None:
        file = Path(str(module.__spec__ and module.__spec__.origin))
        tree = _Noting(file.relative_to(PACKAGE).as_posix()).visit(ast.parse(file.read_text()))
        module.__file__ = str(file)
        vars(module)["__edges__"] = sys.modules[__name__]
        exec(compile(ast.fix_missing_locations(tree), file, "exec"), vars(module))


def found_by(cases: Iterator[tuple[str, Any, str]], room: str) -> dict[str, tuple[float, set[Event]]]:
    """By the name of a case: the seconds it takes, and what it shows of a room."""
    from executed import forget

    from batch import compiled_case

    found = {}
    with TemporaryDirectory() as folder:
        for name, case, target in cases:
            forget()
            seen.clear()
            started = time.process_time()
            try:
                compiled_case(case, Path(folder) / "model", "m", target)
            except Exception:
                continue
            taken = time.process_time() - started
            found[name] = taken, {event for event in seen if event[0].startswith(room)}
            if len(found) % 500 == 0:
                print(f"{len(found)} compiled", flush=True)
    return found


def choose(found: dict[str, tuple[float, set[Event]]], known: set[Event], most: int) -> list[str]:
    """Those that show most of what is not known for their time, each after those before it."""
    left = set[Event]().union(*(events for _, events in found.values())) - known
    names = list[str]()
    while left and len(names) < most:
        best = max(found, key=lambda n: len(found[n][1] & left) / (0.05 + found[n][0]))
        left -= found[best][1]
        names.append(best)
    print(f"{len(names)} chosen, {len(left)} edges left")
    return names


def layers() -> None:
    from drawn_layers import drawn
    from test_drawn_layers import FILE

    targets = {}

    def cases() -> Iterator[tuple[str, Any, str]]:
        for number in range(CANDIDATES["layers"]):
            one = drawn(number)
            targets[str(number)] = one.target
            yield str(number), one.case, one.target

    chosen = choose(found_by(cases(), "kernels/"), set(), CHOSEN["layers"])
    by_target = {t: {f"{n}:": "" for n in chosen if targets[n] == t} for t in sorted(set(targets.values()))}
    FILE.write_text(json.dumps({"targets": by_target}, indent=0) + "\n")


def samples() -> None:
    """What samples show is known."""
    from rows import registry_rows
    from variants import FILE, candidates, recurrences

    def cases(rows: Sequence[Any]) -> Iterator[tuple[str, Any, str]]:
        yield from ((row.label, row.case, "c") for row in rows)

    rows = list(candidates())
    random.Random(1).shuffle(rows)
    known = found_by(cases([*registry_rows(), *recurrences()]), "ops/")
    events = set[Event]().union(*(e for _, e in known.values()))
    found = found_by(cases(rows[: CANDIDATES["samples"]]), "ops/")
    FILE.write_text(json.dumps(sorted(choose(found, events, CHOSEN["samples"])), indent=0) + "\n")


if __name__ == "__main__":
    sys.modules["edges"] = sys.modules[__name__]
    sys.path[:0] = [str(TESTS / room) for room in (".", "mutation", "operators", "kernels")]
    sys.meta_path.insert(0, _Finder())
    {"layers": layers, "samples": samples}[sys.argv[1]]()
