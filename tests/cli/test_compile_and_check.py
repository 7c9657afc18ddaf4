"""`aot-model compile` and `check`: what they write, print and return."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from onnx import TensorProto, helper

from aot_model.cli import main
from onnx_models import model, save, tensor, unary

Captured = pytest.CaptureFixture[str]


def test_compile_writes_three_files(cnn: Path, tmp_path: Path, capsys: Captured) -> None:
    assert (
        main(
            [
                "compile",
                str(cnn),
                "-q",
                "-o",
                str(tmp_path / "out"),
                "--report",
                str(tmp_path / "r.txt"),
                "--depfile",
                str(tmp_path / "d"),
            ]
        )
        == 0
    )
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["cnn.c", "cnn.h", "cnn.json"]
    assert "conv1" in (tmp_path / "r.txt").read_text()
    depfile = (tmp_path / "d").read_text()
    assert (
        depfile.startswith(str(tmp_path / "out" / "cnn.c"))
        and str(cnn) in depfile
        and "model.c.j2" in depfile
    )
    assert capsys.readouterr().out == ""


def test_unchanged_files_keep_their_time(cnn: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert main(["compile", str(cnn), "-o", str(out)]) == 0
    before = {p: p.stat().st_mtime_ns for p in out.iterdir()}
    assert main(["compile", str(cnn), "-o", str(out), "--keep-unchanged"]) == 0
    assert {p: p.stat().st_mtime_ns for p in out.iterdir()} == before
    assert main(["compile", str(cnn), "-o", str(out)]) == 0
    assert {p: p.stat().st_mtime_ns for p in out.iterdir()} != before


def test_symbolic_dimensions(tmp_path: Path, capsys: Captured) -> None:
    path = save(unary("Relu", ["N", "width"]), tmp_path / "m.onnx")
    assert main(["compile", str(path), "-o", str(tmp_path / "o"), "--dim", "width=7"]) == 0
    assert "'N'" in capsys.readouterr().err
    assert json.loads((tmp_path / "o" / "m.json").read_text())["inputs"][0]["shape"] == [1, 7]
    assert (
        main(
            [
                "compile",
                str(path),
                "-o",
                str(tmp_path / "o"),
                "--dim",
                "width=7",
                "--dim",
                "N=3",
                "--dim",
                "depth=2",
            ]
        )
        == 1
    )
    assert "depth" in capsys.readouterr().err


def test_constant_inputs(tmp_path: Path, capsys: Captured) -> None:
    """A shape that is an input is known when --constant says it; the C function does not take it."""
    inputs = [
        helper.make_tensor_value_info(n, t, s)
        for n, t, s in (("x", TensorProto.FLOAT, [2, 3]), ("shape", TensorProto.INT64, [2]))
    ]
    node = helper.make_node("Reshape", ["x", "shape"], ["y"])
    graph = helper.make_graph(
        [node], "g", inputs, [helper.make_tensor_value_info("y", TensorProto.FLOAT, [3, 2])]
    )
    path = save(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10),
        tmp_path / "m.onnx",
    )
    compiling = ["compile", str(path), "-o", str(tmp_path / "o")]
    assert main(compiling) == 1
    assert "--constant" in capsys.readouterr().err
    assert main([*compiling, "--constant", "shape=3,-1"]) == 0
    facts = json.loads((tmp_path / "o" / "m.json").read_text())
    assert [i["name"] for i in facts["inputs"]] == ["x"] and facts["outputs"][0]["shape"] == [3, 2]
    for wrong in ("shape=1,2,3", "nothing=1"):
        assert main([*compiling, "--constant", "shape=6", "--constant", wrong]) == 1
        assert "[E203]" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main([*compiling, "--constant", "shape=a"])


def test_bounds(tmp_path: Path, capsys: Captured) -> None:
    """A range with limits of run time has room for as many numbers as --bound says, and its shape is an
    output.
    """
    inputs = [tensor(n, [], TensorProto.INT32) for n in ("start", "limit", "delta")]
    path = save(
        model(
            [helper.make_node("Range", ["start", "limit", "delta"], ["r"])],
            inputs,
            [tensor("r", None, TensorProto.INT32)],
        ),
        tmp_path / "m.onnx",
    )
    compiling = ["compile", str(path), "-o", str(tmp_path / "o")]
    assert main([*compiling, "--bound", "r=10"]) == 0
    assert [
        (o["name"], o["shape"]) for o in json.loads((tmp_path / "o" / "m.json").read_text())["outputs"]
    ] == [("r", [10]), ("r.shape", [1])]
    assert main(compiling) == 1 and main([*compiling, "--bound", "s=10"]) == 1
    assert "[E203]" in capsys.readouterr().err


@pytest.mark.parametrize(("option", "limit"), [("--max-ram", "1"), ("--max-flash", "10")])
def test_budgets(option: str, limit: str, cnn: Path, tmp_path: Path, capsys: Captured) -> None:
    assert main(["compile", str(cnn), "-o", str(tmp_path / "o"), option, limit]) == 1
    text = capsys.readouterr().err
    assert "[E402]" in text and "conv1" in text and not (tmp_path / "o").exists()
    assert main(["compile", str(cnn), "-o", str(tmp_path / "o"), option, "1m"]) == 0


@pytest.mark.parametrize(
    "arguments",
    [
        ["--target", "cortex-m5"],
        ["--target", "c,nonsense=1"],
        ["--target", "c", "--option", "optimize=much"],
        ["--dump-after", "nonsense"],
        ["--explain", "x"],
    ],
)
def test_unknown_targets_options_and_passes(
    arguments: list[str], cnn: Path, tmp_path: Path, capsys: Captured
) -> None:
    assert main(["compile", str(cnn), "-o", str(tmp_path / "o"), *arguments]) == 1
    assert "[E501]" in capsys.readouterr().err


def test_dumps_and_explanations(cnn: Path, tmp_path: Path, capsys: Captured) -> None:
    assert (
        main(
            [
                "compile",
                str(cnn),
                "-o",
                str(tmp_path / "o"),
                "--dump-after",
                "expand",
                "--explain",
                "move_transposes",
            ]
        )
        == 0
    )
    out = capsys.readouterr().out
    assert "; after expand" in out and "Convolution(" in out and "; move_transposes: changed the graph" in out


def test_check_tells_everything_and_writes_nothing(cnn: Path, tmp_path: Path, capsys: Captured) -> None:
    assert main(["check", str(cnn), "--target", "cortex-m4"]) == 0
    assert "no problems" in capsys.readouterr().out
    nodes = [
        helper.make_node("Softmax", ["x"], ["a"], axis=9, name="n1"),
        helper.make_node("Relu", ["x"], ["b"], foo=1, name="n2"),
    ]
    bad = save(model(nodes, [tensor("x", [2, 2])], [tensor("a", None)]), tmp_path / "bad.onnx")
    assert main(["check", str(bad), "--target", "c"]) == 1
    captured = capsys.readouterr()
    assert "'n1'" in captured.err and "'n2'" in captured.err and "2 problems" in captured.out
    assert main(["check", str(bad), "--json"]) == 1
    assert [p["code"] for p in json.loads(capsys.readouterr().out)["problems"]] == ["E301", "E202"]
