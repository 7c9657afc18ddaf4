"""What the command line says to people: explanations, lists that fit, what was written, colours only where
they are wanted.
"""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from aot_model.cli import main
from aot_model.cli.explanations import EXPLANATIONS, markdown
from aot_model.cli.listing import fitted
from aot_model.errors import CODES
from aot_model.installation import how_to_install
from onnx_models import model, save, small_cnn, tensor

Captured = pytest.CaptureFixture[str]
ROOT = Path(__file__).resolve().parents[2]


def test_every_code_is_explained(capsys: Captured) -> None:
    assert list(EXPLANATIONS) == list(CODES)
    assert main(["explain", "e203"]) == 0
    assert "--dim NAME=N" in capsys.readouterr().out
    assert main(["explain"]) == 0
    assert "E402" in (said := capsys.readouterr().out) and "exit status" in said
    assert main(["explain", "E999"]) == 1
    assert (ROOT / "docs/errors.md").read_text() == markdown(), (
        "python -c 'from aot_model.cli.explanations import markdown; print(markdown(), end=\"\")' > "
        "docs/errors.md"
    )


def test_operators_by_name(capsys: Captured) -> None:
    assert main(["ops", "conv", "LSTM"]) == 0
    lines = capsys.readouterr().out.splitlines()[2:]
    assert {line.split()[1] for line in lines} == {"Conv", "LSTM"}
    assert main(["ops", "Convv"]) == 1
    assert "CONV_3D, Conv" in capsys.readouterr().err


def test_operators_of_a_model(tmp_path: Path, capsys: Captured) -> None:
    assert main(["ops", "--supported", str(save(small_cnn(), tmp_path / "cnn.onnx"))]) == 0
    said = capsys.readouterr().out
    assert "Conv" in said and " no" not in said
    strange = model(
        [_node("Relu"), _node("Frobnicate", "y", "z")], [tensor("x", [2])], [tensor("z", [2])], {}
    )
    assert main(["ops", "--supported", str(save(strange, tmp_path / "strange.onnx"))]) == 1
    rows = {line.split()[1]: line.split()[-1] for line in capsys.readouterr().out.splitlines()[2:]}
    assert rows == {"Relu": "yes", "Frobnicate": "no"}


def _node(operator: str, x: str = "x", y: str = "y"):  # type: ignore[no-untyped-def]
    from onnx import helper

    return helper.make_node(operator, [x], [y])


@pytest.mark.parametrize("command", ["targets", "ops"])
def test_tables_fit_a_terminal(capsys: Captured, command: str) -> None:
    """As columns, or as paragraphs where these have no room; no word is lost."""
    assert main([command, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    head = list(found[0])
    rows = [[", ".join(c) if isinstance(c, list) else c for c in row.values()] for row in found]
    wanted = Counter("".join(str(c) for row in rows for c in row).replace(" ", ""))
    for width in (30, 60, 80, 132, 1000):
        lines = fitted(head, rows, width).splitlines()
        assert max(map(len, lines)) <= width
        said = Counter("".join(lines).replace(" ", ""))
        assert all(said[letter] >= number for letter, number in wanted.items())
    assert len(lines) == len(rows) + 2, "there is room for all"


def test_compile_says_what_it_wrote(tmp_path: Path, capsys: Captured) -> None:
    path = save(small_cnn(), tmp_path / "cnn.onnx")
    assert main(["compile", str(path), "-o", str(tmp_path / "out")]) == 0
    said = capsys.readouterr().out
    assert f"{tmp_path}/out/cnn.c, .h, .json for host: RAM " in said and "MACs" in said
    assert main(["compile", str(path), "-o", str(tmp_path / "out"), "-q"]) == 0
    assert capsys.readouterr().out == ""


def test_other_formats_are_named(tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "net.h5").write_bytes(b"\x89HDF\r\n\x1a\n" + bytes(64))
    assert main(["check", str(tmp_path / "net.h5")]) == 1
    said = capsys.readouterr().err
    assert "neither an ONNX nor a TFLite model" in said and "'.h5' is a file of Keras" in said


def test_budget_errors_have_the_whole_path(tmp_path: Path, capsys: Captured) -> None:
    path = save(small_cnn(), tmp_path / "cnn.onnx")
    assert main(["compile", str(path), "-o", str(tmp_path / "out"), "--max-ram", "1"]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"{path}: error: ")
    table = said.partition("live at the peak")[2].splitlines()[1:]
    sizes, together = [], ""
    for line in table:
        if "together" in line:
            together = line
            break
        sizes.append(int(line.split()[0]))
    assert sizes and sum(sizes) == int(together.split()[0])


@pytest.mark.parametrize(
    ("more", "coloured"), [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)]
)
def test_colours(more: dict[str, str], coloured: bool) -> None:
    """On a terminal that is one; elsewhere (all other tests) never."""
    ours, theirs = pty.openpty()
    environment = (
        {k: v for k, v in os.environ.items() if k != "NO_COLOR"}
        | {"TERM": "xterm", "PYTHONPATH": str(ROOT / "compiler")}
        | more
    )
    subprocess.run(
        [sys.executable, "-m", "aot_model", "explain", "E999"],
        stderr=theirs,
        env=environment,
        check=False,
        timeout=60,
    )
    os.close(theirs)
    said = os.read(ours, 10_000).decode()
    os.close(ours)
    assert "there is no error E999" in said and ("\x1b[" in said) == coloured


def test_long_work_is_told_on_a_terminal_only(monkeypatch: pytest.MonkeyPatch, capsys: Captured) -> None:
    import time

    from aot_model.cli import terminal

    monkeypatch.setattr(terminal, "PATIENCE", 0.01)
    for is_terminal in (False, True):
        monkeypatch.setattr(sys.stderr, "isatty", lambda answer=is_terminal: answer)
        with terminal.patience("compiling"):
            time.sleep(0.2)
        said = capsys.readouterr().err
        assert ("compiling: 0 s" in said) == is_terminal and (not said or said.endswith("\r\033[K"))


@pytest.mark.parametrize(("managed", "virtual", "said"), [
    (False, False, "{python} -m pip install numpy onnx"), (True, True, "{python} -m pip install numpy onnx"),
    (True, False, "{python} -m venv .venv && . .venv/bin/activate && pip install {tree}"),
])  # fmt: skip
def test_how_packages_are_installed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, managed: bool, virtual: bool, said: str
) -> None:
    """pip refuses to install into a Python that the system manages (PEP 668)."""
    if managed:
        (tmp_path / "EXTERNALLY-MANAGED").touch()
    monkeypatch.setattr("sysconfig.get_path", lambda _: str(tmp_path))
    monkeypatch.setattr("sys.prefix", str(tmp_path) if virtual else sys.base_prefix)
    assert how_to_install(["numpy", "onnx"]) == said.format(python=sys.executable, tree=ROOT)


@pytest.mark.parametrize(("typed", "completed"), [
    ("aot-model exp", ["export", "explain"]),
    ("aot-model compile --max-", ["--max-ram", "--max-flash", "--max-drop"]),
])  # fmt: skip
def test_completion(tmp_path: Path, typed: str, completed: list[str]) -> None:
    """As a shell asks for it after `eval "$(register-python-argcomplete aot-model)"`."""
    pytest.importorskip("argcomplete")
    said = tmp_path / "said"
    asked = {
        "_ARGCOMPLETE": "1",
        "_ARGCOMPLETE_IFS": "\n",
        "_ARGCOMPLETE_STDOUT_FILENAME": str(said),
        "COMP_LINE": typed,
        "COMP_POINT": str(len(typed)),
    }
    subprocess.run([sys.executable, "-m", "aot_model"], env=os.environ | asked, check=True)
    assert [word.strip() for word in said.read_text().splitlines()] == completed
