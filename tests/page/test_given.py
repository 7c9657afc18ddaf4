"""What others measured, on the page: accuracy, time, an older build, a frontier, a budget; as the files
say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pytest
from onnx import helper
from reader import Element, read

from aot_model.cli import main
from onnx_models import model, save, small_cnn, tensor


@pytest.fixture
def cnn(tmp_path: Path) -> Path:
    return save(small_cnn(), tmp_path / "net.onnx")


def _page(cnn: Path, *options: object, status: int = 0) -> Element:
    page = cnn.parent / "net.html"
    assert main(["report", str(cnn), "--target", "c", "-o", str(page), *map(str, options)]) == status
    return read(page.read_text())


def _section(root: Element, name: str) -> Element:
    return next(e for e in root.all("section") if e.attributes.get("id") == name)


def _cells(section: Element, name: str) -> list[list[str]]:
    found = next(t for t in section.all("table") if t.attributes.get("id") == name)
    return [[c.text.strip() for c in row.children] for row in next(found.all("tbody")).all("tr")]


def test_accuracy(cnn: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shape = [d.dim_value for d in small_cnn().graph.input[0].type.tensor_type.shape.dim]
    np.savez(
        cnn.parent / "d.npz", in_0=np.random.default_rng(1).standard_normal((3, *shape)).astype(np.float32)
    )
    assert (
        main(
            ["compare", str(cnn), str(cnn), "--inputs", str(cnn.parent / "d.npz"), "--target", "c", "--json"]
        )
        == 0
    )
    facts = json.loads(capsys.readouterr().out)
    hostile = facts["tensors"][-1]
    hostile["findings"] = [{"kind": "saturated", "words": "<script>alert(1)</script>"}]
    hostile["own"] |= {"snr": 3.25, "identical": False}
    hostile["loses"] = True
    (cnn.parent / "c.json").write_text(json.dumps(facts))
    root = _page(cnn, "--comparison", cnn.parent / "c.json")
    section = _section(root, "accuracy")
    rows = _cells(section, "accuracy-table")
    assert len(rows) == len(facts["tensors"]) == len(list(section.all("li"))) > 2
    assert all(row[1].startswith(t["name"]) for row, t in zip(rows, facts["tensors"], strict=True))
    assert "<script>alert(1)</script>" in rows[-1][1] and rows[-1][2] == "3.2"
    [last] = [e for e in section.all("td", "number") if "h0" in e.attributes["class"].split()]
    assert last.text == "3.2"
    steps = {row[0] for row in rows if row[0]}
    assert steps and all(
        any(a.attributes.get("id") == f"step-{s}" for a in root.all("article")) for s in steps
    )
    assert len(list(root.all("rect", "heat"))) == len(steps)
    for row, t in zip(section.all("svg", "histogram"), facts["tensors"], strict=True):
        used = [
            k
            for k, pair in enumerate(zip(t["histogram"]["a"], t["histogram"]["b"], strict=True))
            if any(pair)
        ]
        line = next(row.all("path", "of-a")).attributes["d"]
        assert line.count("H") == used[-1] - used[0] + 1


def test_time(cnn: Path) -> None:
    assert main(["compile", str(cnn), "--target", "c", "-o", str(cnn.parent), "-q"]) == 0
    layers = json.loads((cnn.parent / "net.json").read_text())["layers"]
    facts = {
        "target": "c",
        "cycles": 100 * len(layers),
        "layers": [
            {
                "layer": x["name"],
                "op": x["op"],
                "macs": x["macs"],
                "cycles": 50 + 10 * k,
                "by_reason": {"issue": 40, "loads": 10 + 10 * k},
            }
            for k, x in enumerate(layers)
        ],
    }
    path = cnn.parent / "t.json"
    path.write_text(json.dumps(facts))
    section = _section(_page(cnn, "--times", path), "time")
    rows = _cells(section, "time-table")
    assert [r[2] for r in rows] == [str(50 + 10 * k) for k in range(len(layers))]
    weighing = [x for x in layers if x["macs"]]
    assert len(list(section.all("circle"))) == len(weighing) > 1
    facts["layers"].pop()
    path.write_text(json.dumps(facts))
    assert (
        main(["report", str(cnn), "--target", "c", "-o", str(cnn.parent / "x.html"), "--times", str(path)])
        == 1
    )


@pytest.mark.parametrize("number", ["Infinity", "NaN", "1e999", "1" + 400 * "0"])
def test_numbers_of_an_older_build_are_finite(
    cnn: Path, number: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compile", str(cnn), "--target", "c", "-o", str(cnn.parent)]) == 0
    text = (cnn.parent / "net.json").read_text()
    changed = re.sub(r'("constant_bytes": )[1-9]\d*', rf"\g<1>{number}", text)
    assert changed != text
    (cnn.parent / "old.json").write_text(changed)
    old = ["--against", str(cnn.parent / "old.json")]
    assert main(["report", str(cnn), "--target", "c", "-o", str(cnn.parent / "net.html"), *old]) == 1
    assert "[E102]" in capsys.readouterr().err and not (cnn.parent / "net.html").exists()


def test_against_an_older_build(cnn: Path) -> None:
    assert main(["compile", str(cnn), "--target", "c", "-o", str(cnn.parent), "-q"]) == 0
    old = json.loads((cnn.parent / "net.json").read_text())
    assert "No layer is another one" in "".join(
        e.text for e in _section(_page(cnn, "--against", cnn.parent / "net.json"), "against").all("p")
    )
    gone = {**old["layers"][0], "name": "was here"}
    old["layers"][1]["constant_bytes"] -= 4
    old["constants_bytes"] -= 4
    old["layers"].append(gone)
    (cnn.parent / "old.json").write_text(json.dumps(old))
    section = _section(_page(cnn, "--against", cnn.parent / "old.json"), "against")
    now = old["constants_bytes"] + 4
    totals = [[c.text for c in row.children] for row in next(section.all("tbody")).all("tr")]
    difference = f"+4 ({400 / (now - 4):+.1f} %)"
    assert ["constants", f"{now - 4:,}", f"{now:,}", difference] in totals
    rows = _cells(section, "against-table")
    assert {(r[1].split(" (")[0], r[2]) for r in rows} == {
        ("was here", "gone"),
        (old["layers"][1]["name"], "changed"),
    }


def test_a_frontier(cnn: Path) -> None:
    facts = {
        "title":
        "Speed",
        "x": {
            "key": "c",
            "label": "cycles",
            "better": "less"
        },
        "y": {
            "key": "a",
            "label": "accuracy",
            "better": "more"
        },
        "points": [{
            "name": "a",
            "c": 10,
            "a": 90
        }, {
            "name": "b",
            "c": 20,
            "a": 89
        }, {
            "name": "c",
            "c": 30,
            "a": 95,
            "chosen": True
        }, {
            "name": "d",
            "c": 40,
            "a": 95
        }]
    }  # fmt: skip
    path = cnn.parent / "f.json"
    path.write_text(json.dumps(facts))
    section = _section(_page(cnn, "--frontier", path), "frontier")
    assert [(r[0], r[3]) for r in _cells(section, "frontier-table")] == [
        ("a", "on the frontier"),
        ("b", ""),
        ("c", "chosen"),
        ("d", ""),
    ]
    quantised = {
        "schema":
        1,
        "kind":
        "aot-model quantisation frontier",
        "model":
        "m.onnx",
        "target":
        "c",
        "metric":
        "top1",
        "float":
        0.9,
        "points": [{
            "name": "int8",
            "value": 0.8,
            "flash": 100,
            "ram": 9,
            "cycles": None,
            "pareto": True,
            "chosen": True
        }, {
            "name": "int16",
            "value": 0.7,
            "flash": 200,
            "ram": 9,
            "cycles": None,
            "pareto": False,
            "chosen": False
        }]
    }  # fmt: skip
    path.write_text(json.dumps(quantised))
    section = _section(_page(cnn, "--frontier", path), "frontier")
    assert _cells(section, "frontier-table") == [
        ["int8", "100", "0.8", "chosen"],
        ["int16", "200", "0.7", ""],
    ]
    path.write_text("{}")
    assert main(["report", str(cnn), "-o", str(cnn.parent / "x.html"), "--frontier", str(path)]) == 1


@pytest.mark.parametrize("command", ["report", "compile"])
def test_a_page_when_a_budget_is_exceeded(
    cnn: Path, command: str, capsys: pytest.CaptureFixture[str]
) -> None:
    page = cnn.parent / "net.html"
    output = (
        ["-o", str(page)] if command == "report" else ["-o", str(cnn.parent / "out"), "--report", str(page)]
    )
    assert main([command, str(cnn), "--target", "c", *output, "--max-ram", "16", "--max-flash", "8"]) == 1
    assert "the budget is 16" in capsys.readouterr().err
    words = [p.text for p in _section(read(page.read_text()), "budget").all("p")]
    assert len(words) == 3 and "the budget is 16" in words[0] and "the budget is 8" in words[1]
    assert not (cnn.parent / "out").exists()


def test_nodes_of_the_file(tmp_path: Path) -> None:
    """A layer names all that was fused into it."""
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"], name="product"),
        helper.make_node("Relu", ["p"], ["y"], name="bend"),
    ]
    path = save(
        model(nodes, [tensor("x", (2, 3))], [tensor("y", (2, 4))], {"w": np.ones((3, 4), np.float32)}),
        tmp_path / "net.onnx",
    )
    root = _page(path)
    [article] = root.all("article")
    assert "MatMul product, Relu bend" in "".join(e.text for e in article.all("dd"))
