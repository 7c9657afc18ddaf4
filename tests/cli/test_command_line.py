"""The command line as a whole: help, mistyped options, what it says of the installation, of targets, of
operators and models, and how fast it starts.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from aot_model import __version__
from aot_model.cli import main
from aot_model.cli.arguments import parser

Captured = pytest.CaptureFixture[str]


def answered(arguments: list[str], capsys: Captured) -> str:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 0
    return capsys.readouterr().out.strip()


def test_version(capsys: Captured) -> None:
    assert answered(["--version"], capsys) == f"aot-model {__version__}"
    for order in (["--version", "--json"], ["--json", "--version"]):
        facts = json.loads(answered(order, capsys))
        assert facts["version"] == __version__ and facts["missing"] == []


def test_every_command_has_help() -> None:
    (commands,) = (a for a in parser()._actions if isinstance(a, argparse._SubParsersAction))
    for name, command in commands.choices.items():
        assert f"aot-model {name}".replace("quantize", "quantise") in command.format_help()
    assert "0.5%" in commands.choices["compile"].format_help()


def test_folders(capsys: Captured) -> None:
    assert (Path(answered(["--include-dir"], capsys)) / "aot_model" / "model.h").is_file()
    assert (Path(answered(["--cmake-dir"], capsys)) / "AotModelConfig.cmake").is_file()


@pytest.mark.parametrize(
    "arguments",
    [[], ["nonsense"], ["compile"], ["compile", "m.onnx"], ["compile", "m.onnx", "-o", "x", "--nonsense"],
     ["compile", "m.onnx", "-o", "x", "--work", "static"], ["compile", "m.onnx", "-o", "x", "--dim", "N"],
     ["compile", "m.onnx", "-o", "x", "--dim", "N=0"], ["compile", "m.onnx", "-o", "x", "--max-ram", "-1"],
     ["compile", "m.onnx", "-o", "x", "--max-ram", "12q"],
     ["compile", "m.onnx", "-o", "x", "--pool", "a b:1"], ["compile", "m.onnx", "-o", "x", "--pool", "a:1:3"],
     ["verify", "m.onnx", "--vectors", "v", "--rtol", "-1"],
     ["verify", "m.onnx", "--vectors", "v", "--max-lsb", "x"],
     ["compile", "m.onnx", "-o", "x", "--metadata", "some"], ["targets", "--json", "--markdown"]],
)  # fmt: skip
def test_mistyped_options_are_usage_errors(arguments: list[str], capsys: Captured) -> None:
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 2
    assert re.match(
        r"aot-model( \w+)?: error: .*\n  hint: see aot-model( \w+)? --help\n$", capsys.readouterr().err
    )


@pytest.mark.parametrize("arguments", [["--version"], ["--include-dir"], ["--version", "--json"]])
def test_answers_import_no_packages(arguments: list[str]) -> None:
    program = (
        "import sys; from aot_model.cli import main\ntry: main(sys.argv[1:])\nexcept SystemExit: "
        "pass\nprint([m for m in ('numpy', 'onnx', 'jinja2') if m in sys.modules])"
    )
    out = subprocess.run(
        [sys.executable, "-c", program, *arguments], capture_output=True, text=True, check=True
    ).stdout
    assert out.strip().endswith("[]")


def test_compiling_imports_what_the_format_needs(tmp_path: Path) -> None:
    """Start-up is most of the time of a small model: the other formats' packages stay out."""
    program = (
        "import sys; from aot_model.cli import main\nassert main(sys.argv[1:]) == 0\nprint(*(m for m "
        "in ('onnx_ir', 'tflite', 'flatbuffers', 'onnxruntime') if m in sys.modules))"
    )
    model = Path(__file__).resolve().parents[2] / "examples/digits/digits.onnx"
    done = subprocess.run(
        [sys.executable, "-c", program, "compile", str(model), "-q", "-o", str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == ""


def test_inspect(cnn: Path, capsys: Captured) -> None:
    assert main(["inspect", str(cnn)]) == 0
    text = capsys.readouterr().out
    for word in ("Conv", "Softmax", "float32[1, 2, 6, 6]", "multiply-accumulate", "lower bound", "*|###"):
        assert word in text
    assert main(["inspect", str(cnn), "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["operators"]["Conv"] == 2 and facts["macs"] == 36 * 4 * 9 * (2 + 4) + 36 * 5
    assert max(s["bytes"] for s in facts["memory_over_time"]) <= facts["workspace"]["pools"][0]["bytes"]
    assert facts["inputs"][0]["name"] == "x"


@pytest.mark.parametrize("form", [[], ["--json"], ["--markdown"]])
@pytest.mark.parametrize(("command", "word"), [("targets", "cortex-m55"), ("ops", "Conv")])
def test_lists(command: str, word: str, form: list[str], capsys: Captured) -> None:
    assert main([command, *form]) == 0
    text = capsys.readouterr().out
    assert word in text
    if form == ["--json"]:
        assert len(json.loads(text)) > 5


def test_a_reader_that_goes_is_no_error() -> None:
    done = subprocess.run(
        f"{sys.executable} -m aot_model ops | head -1",
        shell=True,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.stderr == ""
