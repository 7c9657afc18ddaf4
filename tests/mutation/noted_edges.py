"""Which cases bring comparisons and conditions of the compiler to their edges, where a changed token shows.

    python tests/mutation/noted_edges.py layers    those of kernels/drawn_layers.json
    python tests/mutation/noted_edges.py samples   those of operators/variants.json
    python tests/mutation/noted_edges.py drawn     those of operators/drawn.json
    python tests/mutation/noted_edges.py tflite    those of tflite_operators/drawn.json

Of each comparison of numbers, and of min and max, counts whether the sides differ by -1, 0, 1, less or more;
of each condition and part of one whether it holds. Candidates are compiled one after the other, which takes a
quarter of an hour; those are chosen that together show the most for their time. From layers in which two
sides are nearest, others are sought in which they are equal, which takes as long. Golden files are updated
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
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from heapq import heapify, heappop, heappush
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType
from typing import Any

import numpy as np

TESTS = Path(__file__).resolve().parents[1]
PACKAGE = TESTS.parent / "compiler" / "aot_model"
WATCHED = ("arithmetic", "frontends", "ir", "kernels", "lowering", "memory", "ops", "partition", "passes")
ROOMS = tuple(f"{room}/" for room in WATCHED)
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
CHAIN = 1000
CANDIDATES = {"layers": 5500, "odd layers": 1600, "samples": 12000, "drawn": 40000, "drawn operators": 20000}
TRIED, STEPS = 3, 3
SPARE = 4
"""Of forms that show the same so many are tried at once."""
seen: set[Event] = set()
nearest: dict[tuple[str, int, int], float] = {}
"""By place: how far the sides of an ordering were apart where they were nearest."""


def compared(place: tuple[str, int, int], name: str, a: Any, b: Any) -> Any:
    """The comparison, which is noted."""
    p, q = (v.item() if isinstance(v, np.generic) else v for v in (a, b))
    if all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in (p, q)) and abs(p - q) < 1e300:
        by = p - q
        if name.startswith(("L", "G")) and abs(by) <= abs(nearest.get(place, by)):
            nearest[place] = by
        seen.add((*place, int(by) if by in (-1, 0, 1) else FAR if by > 0 else -FAR))
    return NAMES[name](a, b) if name else None


def least(place: tuple[str, int, int], function: Callable[..., Any], a: Any, b: Any) -> Any:
    compared(place, "", a, b)
    return function(a, b)


def chained(place: tuple[str, int, int], names: Sequence[str], first: Any, *others: Callable[[], Any]) -> Any:
    """Comparisons one after the other, of which each is noted at a column of its own: `CHAIN` apart."""
    for k, (name, other) in enumerate(zip(names, others, strict=True), 1):
        second = other()
        result = compared((*place[:2], place[2] + CHAIN * k), name, first, second)
        if not result:
            return result
        first = second
    return result


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
        named = any(isinstance(n, ast.NamedExpr) for n in ast.walk(node))
        if not self.inside or named or any(type(op) not in COMPARED for op in node.ops):
            return node
        names = [ast.Constant(type(op).__name__) for op in node.ops]
        if len(names) == 1:
            return self._call("compared", node, names[0], node.left, node.comparators[0])
        nothing = ast.arguments([], [], None, [], [], None, [])
        others = [ast.Lambda(nothing, c) for c in node.comparators]
        return self._call("chained", node, ast.Tuple(list(names), ast.Load()), node.left, *others)

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        if self.inside:
            node.values = [self._call("held", v, v) for v in node.values]
        return node

    def visit_If(self, node: ast.If | ast.IfExp | ast.While) -> ast.AST:
        self.generic_visit(node)
        if self.inside:
            node.test = self._call("held", node.test, node.test)
        return node

    visit_IfExp = visit_While = visit_If

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        self.generic_visit(node)
        if self.inside:
            node.ifs = [self._call("held", v, v) for v in node.ifs]
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        plain = len(node.args) == 2 and not any(isinstance(a, ast.Starred) for a in node.args)
        ends = isinstance(node.func, ast.Name) and node.func.id in ("min", "max")
        if self.inside and ends and plain and not node.keywords:
            return self._call("least", node, node.func, *node.args)
        return node


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
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


def approached(found: dict[str, tuple[float, set[Event]]], room: str) -> Iterator[str]:
    """Layers in which two sides are equal that were not in any that was found: from the nearest ones, one
    size after the other is changed by as much as the distance asks for.
    """
    met = {event[:3] for _, events in found.values() for event in events if event[3] == 0}
    far: dict[tuple[str, int, int], list[tuple[float, str]]] = {}
    for words in found:
        for place, by in _distances(words).items():
            if place not in met and place[0].startswith(room):
                far.setdefault(place, []).append((by, words))
    for place, starts in sorted(far.items()):
        nearest_first = sorted(starts, key=lambda one: (abs(one[0]), one[1]))
        words = None if place in met else _at(place, nearest_first[:TRIED])
        if words is not None:
            met |= {p for p, by in _distances(words).items() if by == 0}
            print(f"{place}: {words}", flush=True)
            yield words


def _at(place: tuple[str, int, int], starts: list[tuple[float, str]]) -> str | None:
    """The first layer that is found in which the sides are equal there."""
    from drawn_layers import drawn

    for far, words in starts:
        for name, size in drawn(words).sizes.items():
            others = [word for word in words.split() if not word.startswith(f"{name}=")]
            at, by, after = size, far, size + 1
            for _ in range(STEPS):
                said = " ".join([*others, f"{name}={after}"])
                now = _distances(said).get(place) if after >= 0 else None
                if now == 0:
                    return said
                if now is None or now == by or after == at:
                    break
                slope = (now - by) / (after - at)
                at, by, after = after, now, after - round(now / slope)
    return None


def _distances(words: str) -> dict[tuple[str, int, int], float]:
    """How far the sides of each comparison are apart in a layer, where they are nearest."""
    from drawn_layers import drawn
    from executed import forget

    from batch import compiled_case

    forget()
    try:
        one = drawn(words)
        nearest.clear()
        with TemporaryDirectory() as folder:
            compiled_case(one.case, Path(folder) / "model", "m", one.target)
    except Exception:
        return {}
    return dict(nearest)


Made = Callable[[], tuple[Any, str]]
"""Makes a case and says its target."""


def found_by(
    cases: Iterable[tuple[str, Made]], room: str | tuple[str, ...]
) -> dict[str, tuple[float, set[Event]]]:
    """By the name of a case: the seconds it takes, and what it shows of a room, or of several."""
    from executed import forget

    from batch import compiled_case

    found = {}
    with TemporaryDirectory() as folder:
        for name, make in cases:
            forget()
            try:
                case, target = make()
                seen.clear()
                started = time.process_time()
                compiled_case(case, Path(folder) / "model", "m", target)
            except Exception:
                continue
            taken = time.process_time() - started
            found[name] = taken, {event for event in seen if event[0].startswith(room)}
            if len(found) % 500 == 0:
                print(f"{len(found)} compiled", flush=True)
    return found


def choose(found: dict[str, tuple[float, set[Event]]], known: set[Event], each: int) -> list[str]:
    """Those that show most of what is not known for their time, each after those before it; every event as
    often as `each` says, if so many show it.
    """
    left = Counter(event for _, events in found.values() for event in events - known)
    left = Counter({event: min(count, each) for event, count in left.items()})

    def gain(name: str) -> float:
        seconds, events = found[name]
        return sum(left[event] > 0 for event in events) / (0.05 + seconds)

    queue, names = [(-gain(name), name) for name in found], list[str]()
    heapify(queue)
    while queue:
        _, name = heappop(queue)
        now = gain(name)
        if queue and now < -queue[0][0]:
            heappush(queue, (-now, name))
        elif now > 0:
            left.subtract(found[name][1])
            names.append(name)
    return names


def layers() -> None:
    from drawn_layers import ODD, drawn
    from test_drawn_layers import FILE

    def make(words: str) -> tuple[Any, str]:
        one = drawn(words)
        return one.case, one.target

    numbers = map(str, (*range(CANDIDATES["layers"]), *range(ODD, ODD + CANDIDATES["odd layers"])))
    found = found_by(((words, partial(make, words)) for words in numbers), "kernels/")
    chosen = choose(found, set(), 2)
    chosen += approached({words: found[words] for words in chosen}, "kernels/")
    by_target: dict[str, dict[str, str]] = {}
    for words in chosen:
        by_target.setdefault(drawn(words).target, {})[f"{words}:"] = ""
    FILE.write_text(json.dumps({"targets": dict(sorted(by_target.items()))}, indent=0) + "\n")


def samples() -> None:
    """What samples show is known."""
    from rows import registry_rows
    from variants import FILE, candidates, recurrences

    def cases(rows: Sequence[Any]) -> Iterator[tuple[str, Made]]:
        yield from ((row.label, lambda row=row: (row.case, "c")) for row in rows)

    rows = list(candidates())
    random.Random(1).shuffle(rows)
    known = found_by(cases([*registry_rows(), *recurrences()]), "ops/")
    events = set[Event]().union(*(e for _, e in known.values()))
    found = found_by(cases(rows[: CANDIDATES["samples"]]), "ops/")
    FILE.write_text(json.dumps(sorted(choose(found, events, 1)), indent=0) + "\n")


def drawn_forms() -> None:
    """What samples and variants show is known; forms whose numbers nobody can tell show nothing."""
    from drawn_samples import FILE, at_edges, drawn, form_of, judged

    def make(form: tuple[str, int]) -> Made:
        return lambda: (drawn(form).case, "c")

    def told(few: Sequence[tuple[str, int]]) -> list[bool]:
        said = judged(few)
        print(*(text for text in said if text), sep="\n", end="", flush=True)
        return [text == "" for text in said]

    forms = [*map(form_of, range(CANDIDATES["drawn"])), *at_edges()]
    _write_numbers(FILE, forms, make, told, _known())


def drawn_operators() -> None:
    """The same for TFLite, where the forms of ONNX are known, too."""
    from all_cases import CASES
    from drawn_operators import FILE, at_edges, computed, number_of, results_of, wrong
    from drawn_samples import at_edges as known_forms
    from drawn_samples import drawn

    from apart import Apart
    from batch import Case

    oracle = Apart(results_of)

    def make(number: tuple[str, int]) -> Made:
        one = computed(number, oracle)
        return lambda: (one and one[1], "c")

    def told(few: Sequence[tuple[str, int]]) -> list[bool]:
        found = [wrong([number])[0] for number in few]
        print(*(text for one in found for text in one), sep="\n", end="", flush=True)
        return [not one for one in found]

    known = _known()
    cases = [drawn(form).case for form in known_forms()]
    cases += [Case(c.name, c.model, c.inputs, c.dims, options={"arithmetic": c.arithmetic}) for c in CASES]
    rest = found_by(((case.name, lambda case=case: (case, "c")) for case in cases), ROOMS)
    numbers = [*map(number_of, range(CANDIDATES["drawn operators"])), *at_edges()]
    _write_numbers(FILE, numbers, make, told, known.union(*(e for _, e in rest.values())))


def _known() -> set[Event]:
    """What samples and variants show."""
    from rows import registry_rows
    from variants import chosen

    rows = [*registry_rows(), *chosen()]
    found = found_by(((row.label, lambda row=row: (row.case, "c")) for row in rows), ROOMS)
    return set[Event]().union(*(e for _, e in found.values()))


def _write_numbers(
    file: Path,
    forms: Sequence[tuple[str, int]],
    make: Callable[[tuple[str, int]], Made],
    judged: Callable[[Sequence[tuple[str, int]]], list[bool]],
    known: set[Event],
) -> None:
    """Forms that show together what is not known, by what they are drawn from. judged: which are right."""
    by_name = {str(form): form for form in forms}
    found = found_by(((name, lambda form=form: make(form)()) for name, form in by_name.items()), ROOMS)
    told: dict[str, bool] = {}
    while untold := [name for name in choose(found, known, SPARE) if name not in told]:
        told |= dict(zip(untold, judged([by_name[name] for name in untold]), strict=True))
        print(f"{sum(told.values())} of {len(told)}", flush=True)
        found = {name: shown for name, shown in found.items() if told.get(name, True)}
    numbers: dict[str, list[int]] = {}
    for label, number in sorted(by_name[name] for name in choose(found, known, 1)):
        numbers.setdefault(label, []).append(number)
    file.write_text(json.dumps(numbers, indent=0) + "\n")


if __name__ == "__main__":
    sys.modules["noted_edges"] = sys.modules[__name__]
    sys.path[:0] = [
        str(TESTS / room) for room in (".", "mutation", "operators", "kernels", "tflite_operators")
    ]
    sys.meta_path.insert(0, Finder())
    {"layers": layers, "samples": samples, "drawn": drawn_forms, "tflite": drawn_operators}[sys.argv[1]]()
