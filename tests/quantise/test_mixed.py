"""Mixed precision: plans of other types are what they say, budgets are kept, the frontier is data."""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import onnx
import pytest
from networks import data, mobile, saved, tiny
from test_quantise import _calibration, decibels, run

from aot_model.cli import main
from aot_model.cli.values import times
from aot_model.errors import CompileError
from aot_model.library.metadata import Metadata
from aot_model.page.given import frontier as drawn
from aot_model.quantise.candidates import Candidate
from aot_model.quantise.cost import Budget, Cost, Platform, cost_of
from aot_model.quantise.mixed import MIN_INT4, Change, Point, Search, mixed, pareto
from aot_model.quantise.score import Score
from aot_model.quantise.session import Job, quantise

ALL = ("cycles", "ram", "flash")


def test_changes_are_carried_out(tmp_path: Path) -> None:
    """Wider tensors are closer to the float model, narrower weights are smaller: by ONNX Runtime and the
    compiler."""
    model = tiny()
    calibration = _calibration(*saved(tmp_path, model), tmp_path)
    base = calibration.candidate("minmax", False)
    assert base is not None
    choice = base.source.choice
    wide = tuple(Change("tensors", g, "int16") for g in dict.fromkeys(choice.kinds.values()))
    narrow = tuple(Change("weights", w, "int4") for w in choice.weights)
    loose = tuple(Change("weights", w, "float") for w in choice.weights)
    fresh = data(model, 30, seed=7)
    want = run(model, fresh)
    near, flash = {}, {}
    for name, changes in {"int8": (), "wide": wide, "narrow": narrow, "float": (*loose, *wide)}.items():
        made = mixed(calibration, base, changes).model("")
        onnx.checker.check_model(made, full_check=True)
        near[name] = decibels(run(made, fresh), want)
        path = tmp_path / f"{name}.onnx"
        onnx.save(made, path)
        flash[name] = cost_of(path, tmp_path, Platform(), {}, None).flash
    assert near["narrow"] < near["int8"] < near["wide"] < near["float"] and near["float"] > 75
    assert flash["narrow"] < flash["int8"] <= flash["wide"] < flash["float"]


def test_budgets_and_the_frontier(tmp_path: Path) -> None:
    file, samples = saved(tmp_path, tiny())
    job = Job(file, samples, method="minmax", mixed=True)
    free = quantise(job, tmp_path)
    facts = json.loads(free.frontier or "")
    points = facts["points"]
    assert facts["schema"] == 1 and facts["float"] == 1.0 and points[0]["changes"] == []
    assert points[0]["method"].startswith("minmax")
    assert sum(p["chosen"] for p in points) == 1 and any(p["pareto"] for p in points) and points[0]["chosen"]
    curve = tmp_path / "frontier.json"
    curve.write_text(free.frontier or "")
    assert len(drawn(curve).points) == len(points), "the page draws it"
    least = min(p["flash"] for p in points)
    assert least < points[0]["flash"]
    tight = quantise(replace(job, budget=Budget(flash=least)), tmp_path)
    found = next(p for p in json.loads(tight.frontier or "")["points"] if p["chosen"])
    assert found["flash"] == least and "int4" in str(found["changes"])
    assert tight.library is not None and len(tight.model) < len(free.model)
    assert tight.rows[tight.chosen].candidate.plan is tight.plan and tight.chosen == len(tight.rows) - 1


def test_choice() -> None:
    """The cheapest that loses no more than allowed; without a limit int8, and if that is too large the best
    that fits."""

    def point(value: float, snr: float, flash: int, cycles: int) -> Point:
        return Point((), None, Score(value, 0.0, snr, 100), Cost(100, flash, cycles, 1))  # type: ignore[arg-type]

    points = [
        point(0.97, 30, 100, 50),
        point(0.99, 40, 110, 90),
        point(0.985, 35, 60, 70),
        point(0.5, 9, 60, 80),
    ]
    search = Search(SimpleNamespace(where="m"), None, None, print)  # type: ignore[arg-type]
    search.points = points
    assert pareto(points) == [True, True, True, False]
    assert search._choose(Budget(), 1.0, None) is points[0]
    assert search._choose(Budget(), 1.0, 0.02) is points[2]
    assert search._choose(Budget(flash=70), 1.0, None) is points[2]
    assert search._choose(Budget(cycles=90), 1.0, 0.011) is points[1]
    assert search._choose(Budget(times=dict.fromkeys(ALL, 1.9)), 1.0, None) is points[1]
    assert search._choose(Budget(times=dict.fromkeys(ALL, 1.5)), 1.0, None) is points[2]
    assert search._choose(Budget(flash=105, times=dict.fromkeys(ALL, 1.9)), 1.0, None) is points[2]
    assert search._choose(Budget(times=dict.fromkeys(ALL, 1.0)), 1.0, None) is points[0]
    assert search._choose(Budget(times={"cycles": 1.8}), 1.0, None) is points[1]
    assert search._choose(Budget(times={"cycles": 1.8, "flash": 1.05}), 1.0, None) is points[2]
    coded = replace(points[1], cost=replace(points[1].cost, code=60))
    search.points = [*points, replace(points[1], score=Score(1.0, 0, 50, 1), cost=coded.cost)]
    assert search._choose(Budget(times={"flash": 1.65}), 1.0, None) is points[1], "code is flash"
    assert search._choose(Budget(flash=110, times={"flash": 2.0}), 1.0, None) is search.points[-1]
    search.points = points
    with pytest.raises(CompileError, match="no plan keeps the budgets"):
        search._choose(Budget(ram=99), 1.0, None)


def test_factors_as_they_are_written() -> None:
    assert times("1.3x") == dict.fromkeys(ALL, 1.3)
    assert times("cycles=1.3x,ram=2") == {"cycles": 1.3, "ram": 2.0}
    for wrong in ("0.9x", "x", "", "time=2x", "ram=2x,ram=3x", "1.3x,ram=2x", "ram=", "ram=nanx"):
        with pytest.raises(argparse.ArgumentTypeError):
            times(wrong)


def test_a_walk() -> None:
    """All changes in the end, more and more at a time; what does not fit is left out, what follows is not."""

    def walked(dear: set[str], names: str) -> list[str]:
        seen: list[str] = []

        def point(changes: tuple[Change, ...]) -> Point | None:
            seen.append("".join(c.name for c in changes))
            cost = Cost(0, 0, sum(c.name in dear for c in changes), 0)
            return None if "x" in seen[-1] else Point(changes, None, Score(0, 0, 0, 1), cost)  # type: ignore[arg-type]

        search = Search(SimpleNamespace(where="m"), None, None, print)  # type: ignore[arg-type]
        search._point = point  # type: ignore[method-assign]
        search._walk([Change("tensors", n, "int16") for n in names], lambda p: p.cost.cycles == 0)
        return seen

    assert walked(set(), "abcdefghi") == ["a", "ab", "abc", "abcde", "abcdefg", "abcdefghi"]
    assert walked({"c", "g"}, "abcdefg")[-1] == "abdefg" and "abdef" in walked({"c", "g"}, "abcdefg")
    assert walked({"a"}, "ab") == ["a", "b"] and walked(set(), "xb") == ["x", "b"] and walked(set(), "") == []


def test_weights_become_narrow_where_the_code_for_it_is_less(tmp_path: Path) -> None:
    """The first layer brings a kernel for all, one needs code of its own and stays as it is."""
    calibration = _calibration(*saved(tmp_path, mobile()), tmp_path)
    base = calibration.candidate("minmax", False)
    assert base is not None
    names = [w for w in base.source.choice.weights if base.source.network.constants[w].size >= MIN_INT4]
    assert len(names) >= 3
    dear = names[1]

    def evaluate(candidate: Candidate) -> tuple[Score, Cost]:
        narrow = {n for n, w in candidate.plan.weights.items() if w.type == "int4"}
        code = 150 * bool(narrow - {dear}) + 500 * (dear in narrow)
        return Score(1.0, 0.0, 40.0 - len(narrow), 10), Cost(100, 2000 - 200 * len(narrow), None, 1, code)

    search = Search(calibration, base, evaluate, print)
    search.run(Budget(), 1.0, None)
    least = min(search.points, key=lambda p: p.cost.flash)
    assert {c.name for c in least.changes} == set(names) - {dear}
    assert (Change("weights", dear, "int4"),) in {p.changes for p in search.points}, "it was looked at"


def test_tensors_without_room_are_no_steps(tmp_path: Path) -> None:
    """Of the groups that may be wider, those that break the budget of RAM alone are not tried with others."""
    calibration = _calibration(*saved(tmp_path, mobile()), tmp_path)
    base = calibration.candidate("minmax", False)
    assert base is not None
    large = next(name for name, kind in base.source.choice.kinds.items() if kind == "n9")

    def ram(candidate: Candidate) -> int:
        return 200 if candidate.plan.tensors[large].type == "int16" else 110

    def evaluate(candidate: Candidate) -> tuple[Score, Cost]:
        wide = sum(t.type == "int16" for t in candidate.plan.tensors.values())
        return Score(1.0, 0.0, 30.0 + wide, 10), Cost(ram(candidate) if wide > 1 else 100, 100, None, 1)

    for known in (ram, None):
        search = Search(calibration, base, evaluate, print, ram_of=known)
        best = search.run(Budget(times={"ram": 1.3}), 1.0, None)
        tried = {c.name for p in search.points for c in p.changes}
        assert ("n9" in tried) is (known is None) and len(tried) > 3
        assert "n9" not in {c.name for c in best.changes}


def test_rounding_is_learnt_of_what_is_chosen(tmp_path: Path) -> None:
    calibration = _calibration(*saved(tmp_path, tiny()), tmp_path)
    base = calibration.candidate("minmax", False)
    assert base is not None

    def evaluate(candidate: Candidate) -> tuple[Score, Cost]:
        wide = sum(t.type == "int16" for t in candidate.plan.tensors.values())
        learnt = any(w.rounding for w in candidate.plan.weights.values())
        return Score(1.0, 0.0, 30.0 + wide + 5 * learnt, 10), Cost(100, 100, None, 1)

    search = Search(calibration, base, evaluate, print)
    best = search.run(Budget(times={"ram": 1.3}), 1.0, None)
    assert best.changes and any(w.rounding for w in best.candidate.plan.weights.values())
    assert sum(p.changes == best.changes for p in search.points) == 2
    assert not any(c.type == "int4" for p in search.points for c in p.changes)


def test_a_plan_is_measured_beside_8_bits(tmp_path: Path) -> None:
    """`within` of a plan that is given: more is an error, and so is nothing to measure by."""
    file, samples = saved(tmp_path, tiny())
    calibration = _calibration(file, samples, tmp_path)
    base = calibration.candidate("minmax", False)
    assert base is not None
    groups = dict.fromkeys(base.source.choice.kinds.values())
    wide = mixed(calibration, base, tuple(Change("tensors", g, "int16") for g in groups))
    plan = tmp_path / "plan.json"
    plan.write_text(wide.plan.to_json())
    job = Job(file, samples, plan=plan, mixed=True, budget=Budget(times=dict.fromkeys(ALL, 1.05)))
    words = r"the plan needs more than 1\.05 times 8 bits alone: RAM"
    with pytest.raises(CompileError, match=words) as error:
        quantise(job, tmp_path)
    assert error.value.problems[0].code == "E402"
    assert quantise(replace(job, budget=Budget(times=dict.fromkeys(ALL, 4.0))), tmp_path).plan == wide.plan
    with pytest.raises(CompileError, match="--within without --calibration"):
        quantise(replace(job, calibration=None), tmp_path)


def test_within_of_compile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The library is of the best plan within the budget, for the target that it is compiled for."""
    file, samples = saved(tmp_path, tiny())
    asked = ["compile", str(file), "-o", str(tmp_path / "o"), "--target", "c", "-q", "--within", "1.5x"]
    assert main(asked) == 1 and "--within without --quantise" in capsys.readouterr().err
    assert main([*asked, "--quantise", "--calibration", str(samples)]) == 0
    free = quantise(Job(file, samples, mixed=True, budget=Budget(times=dict.fromkeys(ALL, 1.5))), tmp_path)
    made = tmp_path / "free.onnx"
    made.write_bytes(free.model)
    facts = Metadata.read(next((tmp_path / "o").glob("*.json")))
    assert facts.constant_bytes == cost_of(made, tmp_path, Platform(), {}, None).flash
