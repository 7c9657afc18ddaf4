"""What noted_edges.py notes of comparisons and conditions, and what its readers leave open."""

from __future__ import annotations

import ast
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import edges_of_tests
import noted_edges as edges
import pytest

SOURCE = """\
def f(a, b):
    if 0 <= a < b:
        return [x for x in (1, 3) if x > a]
    while a > b:
        a = a - 1
    return min(a, 5)
"""


def noted(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, set[edges.Event]]:
    seen: set[edges.Event] = set()
    monkeypatch.setattr(edges, "seen", seen)
    tree = edges._Noting("ops/f.py").visit(ast.parse(SOURCE))
    names: dict[str, Any] = {"__edges__": edges}
    exec(compile(ast.fix_missing_locations(tree), "f.py", "exec"), names)
    return names["f"], seen


def test_the_code_means_the_same_and_says_what_it_met(monkeypatch: pytest.MonkeyPatch) -> None:
    f, seen = noted(monkeypatch)
    assert f(1, 4) == [3] and f(6, 4) == 4 and f(-2, 0) == -2
    chain = 7
    met = {(2, chain + edges.CHAIN, by) for by in (-1, -edges.FAR, edges.FAR)}
    assert met == {e[1:] for e in seen if e[2] == chain + edges.CHAIN}
    assert (2, chain + 2 * edges.CHAIN, edges.FAR) in {e[1:] for e in seen}
    assert {e[3] for e in seen if e[1] == 4} >= {0, 1, edges.FAR, edges.HOLDS, edges.FAILS}
    assert {e[3] for e in seen if e[1] == 6} == {-1, -edges.FAR}


def test_what_is_left_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    f, seen = noted(monkeypatch)
    f(1, 4), f(1, 1)
    package, folder = tmp_path / "package", tmp_path / "seen"
    (package / "ops").mkdir(parents=True)
    (package / "ops" / "f.py").write_text(SOURCE)
    folder.mkdir()
    written = edges_of_tests._Written(folder)
    for event in seen:
        written.add(event)
    with (folder / "1").open("a") as file:
        file.write("ops/f.py:2:")  # of a process that was killed
    names = {k: v for k, v in vars(edges).items() if not k.startswith("__")}
    monkeypatch.setattr(edges_of_tests, "edges", SimpleNamespace(**{**names, "PACKAGE": package}))
    assert edges_of_tests.open_places(folder, "ops/") == [
        "ops/f.py:2: never equal [-1]: 0 <= a < b",
        "ops/f.py:4: never: a > b",
    ]
    assert edges_of_tests.open_places(folder, "kernels/") == []
