"""Which rows execute which line of the compiler when they are compiled."""

from __future__ import annotations

import ast
import json
import re
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Container, Iterator
from contextlib import contextmanager
from functools import _lru_cache_wrapper
from hashlib import sha256
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from relevant import ROOMS

TESTS = Path(__file__).resolve().parents[1]
PACKAGE = TESTS.parent / "compiler" / "aot_model"
WATCHED = tuple(str(PACKAGE / room) for room in (*ROOMS, "frontends"))
OTHER_TARGETS = re.compile("aot.Conv|MatMul|aot.Pool|QLinearConv|L[Ss][Tt][Mm]|GRU|int8|float32")
"""Rows that have kernels of their own on some targets."""
TARGETS = ("c", "host", "cortex-m4", "cortex-m55")


LOAD = 0
"""Number of the line that stands for all that runs when a module is loaded: rows that execute any other."""
SIMPLE = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)


class Watch:
    """Lines of the watched files that run."""

    def __init__(self) -> None:
        self.seen: set[tuple[str, int]] = set()
        self._known: dict[CodeType, bool] = {}

    def __call__(self, frame: FrameType, event: str, argument: Any) -> Any:
        code = frame.f_code
        if code not in self._known:
            self._known[code] = code.co_filename.startswith(WATCHED)
        return self._line if self._known[code] else None

    def _line(self, frame: FrameType, event: str, argument: Any) -> Any:
        if event == "line":
            self.seen.add((frame.f_code.co_filename, frame.f_lineno))
        return self._line


@contextmanager
def watched() -> Iterator[set[str]]:
    """The lines that run within, "file:line" each; known when it is left."""
    watch, keys = Watch(), set[str]()
    sys.settrace(watch)
    try:
        yield keys
    finally:
        sys.settrace(None)
        keys.update(f"{Path(file).relative_to(PACKAGE)}:{line}" for file, line in watch.seen)


def forget() -> None:
    """What functions of the watched files keep is computed anew: their lines run again."""
    for module in list(sys.modules.values()):
        if not (getattr(module, "__file__", None) or "").startswith(WATCHED):
            continue
        for function in vars(module).values():
            if isinstance(function, _lru_cache_wrapper):
                function.cache_clear()


def functions(text: str) -> list[tuple[int, int]]:
    """(line of its "def", last line) of each function of a text; what is inside runs when it is called."""
    return [
        (n.body[0].lineno - 1, n.end_lineno or n.lineno)
        for n in ast.walk(ast.parse(text))
        if isinstance(n, ast.FunctionDef)
    ]


def run_with(text: str, line: int, known: Container[int]) -> list[int]:
    """The lines among those known that run when the one of a text does: itself, or of a string or an
    expression over several lines those that Python tells about.
    """
    if line in known:
        return [line]
    parts = [
        (n.end_lineno or n.lineno, n.lineno)
        for n in ast.walk(ast.parse(text))
        if isinstance(n, (ast.expr, *SIMPLE)) and n.lineno <= line <= (n.end_lineno or n.lineno)
    ]
    for end, start in sorted(parts, key=lambda p: p[0] - p[1]):
        found = [k for k in range(start, end + 1) if k in known]
        if found:
            return found
    return []


def written(path: Path) -> dict[str, Any]:
    """Made and written: "lines" has [row, target] by "file:line", rows that execute few lines first, "text"
    the hash of their C.
    """
    from subjects import subjects

    from batch import compiled_case

    started, found = time.time(), defaultdict(list)
    texts: dict[str, str] = {}
    modules: dict[str, list[tuple[str, str]]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        for number, (label, subject) in enumerate(subjects().items()):
            if number % 100 == 0:
                print(f"{number} rows after {time.time() - started:.0f} s", flush=True)
            for target in TARGETS if OTHER_TARGETS.search(label) else ("c",):
                forget()
                try:
                    with watched() as seen:
                        text = compiled_case(subject.case, Path(folder) / "model", "m0", target).texts["m0.c"]
                    texts[f"{label} {target}"] = sha256(text.encode()).hexdigest()
                except Exception:
                    continue
                for key in seen:
                    found[key].append((len(seen), label, target))
                for file in {k.rsplit(":", 1)[0] for k in seen}:
                    modules[file].append((label, target))
    result = {key: _spread([(a, b) for _, a, b in sorted(rows)]) for key, rows in found.items()}
    for module, rows in modules.items():
        result[f"{module}:{LOAD}"] = _spread(rows)
    everything = {"lines": result, "text": texts}
    path.write_text(json.dumps(everything))
    print(f"which rows execute which line: {time.time() - started:.0f} s", flush=True)
    return {}


def _spread(rows: list[tuple[str, str]], most: int = 160) -> list[tuple[str, str]]:
    """One row of each operator and target, then a second one of each, and so on."""
    turns: dict[tuple[str, str], int] = defaultdict(int)
    order = []
    for k, (label, target) in enumerate(rows):
        family = label.rsplit("-", 1)[0], target
        order.append((turns[family], k, label, target))
        turns[family] += 1
    return [(label, target) for _, _, label, target in sorted(order)[:most]]
