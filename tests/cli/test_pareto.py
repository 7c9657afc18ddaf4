"""`aot-model check --pareto`: builds are what `compile` makes with the same options; the page draws them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aot_model.cli import main
from aot_model.page.given import frontier

MODEL = Path(__file__).parents[2] / "examples" / "digits" / "digits.onnx"


def test_builds(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "builds.json"
    assert main(["check", str(MODEL), "--target", "c", "--pareto", str(file)]) == 0
    said = capsys.readouterr().out
    facts = json.loads(file.read_text())
    points = facts["points"]
    assert [p["chosen"] for p in points] == [True] + [False] * (len(points) - 1) and points[0]["optimize"]
    assert len({(p["ram"], p["flash"]) for p in points}) == len(points)
    for p in points:
        worse = any(o["ram"] <= p["ram"] and o["flash"] <= p["flash"] and o is not p for o in points)
        assert p["pareto"] is not worse and f"{p['ram']:,}" in said
    assert len(frontier(file).points) == len(points)
    last = points[-1]
    budget = [] if last["max_ram"] is None else ["--max-ram", str(last["max_ram"])]
    words = ["compile", str(MODEL), "--target", f"c,optimize={last['optimize']}", *budget]
    assert main([*words, "--name", "net", "-o", str(tmp_path / "out")]) == 0
    made = json.loads((tmp_path / "out" / "net.json").read_text())
    assert str(last["ram"]) in json.dumps(made) and str(last["flash"]) in json.dumps(made)


def test_it_is_a_check_of_its_own(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", str(MODEL), "--pareto", str(tmp_path / "b.json"), "--json"]) == 1
    assert "E501" in capsys.readouterr().err
