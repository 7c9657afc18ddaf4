"""Generated files: the C comes last, what a killed run left is swept, C and header of different builds do not
fit.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from aot_model.cli import main
from aot_model.emit import files
from aot_model.installation import include_dir
from onnx_models import model, save, tensor, unary

ROOT = Path(__file__).resolve().parents[2]


def compile_(
    folder: Path, name: str, *options: str, shape: tuple[int, ...] = (1, 4), op: str = "Relu"
) -> Path:
    path = save(unary(op, shape), folder / "m.onnx")
    assert main(["compile", str(path), "-o", str(folder / name), "--target=c", *options]) == 0
    return folder / name


def c_compiler(folder: Path, *flags: str) -> subprocess.CompletedProcess[str]:
    command = [
        "gcc",
        "-std=c99",
        "-Wall",
        "-Wextra",
        "-Wundef",
        "-Wpedantic",
        "-Werror",
        *flags,
        f"-I{include_dir()}",
        "-fsyntax-only",
        "m.c",
    ]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_c_and_header_of_different_builds_do_not_fit(tmp_path: Path) -> None:
    small, large = compile_(tmp_path, "small"), compile_(tmp_path, "large", shape=(7, 4))
    for folder in (small, large):
        assert c_compiler(folder).returncode == 0
    (small / "m.c").write_bytes((large / "m.c").read_bytes())
    done = c_compiler(small)
    assert (
        done.returncode != 0
        and "#error" in done.stderr
        and "m.c and m.h are of different builds" in done.stderr
    )
    header = (large / "m.h").read_text()
    (large / "m.h").write_text(
        "".join(line for line in header.splitlines(True) if "#define M_BUILD" not in line)
    )
    assert c_compiler(large, "-Wno-undef").returncode != 0, "a header without a number is of another build"


@pytest.mark.parametrize(
    "options",
    [
        ["--workspace=caller"],
        ["--io=workspace"],
        ["--pool=a"],
        ["--interface=module"],
        ["--params=external"],
        ["--target=c,optimize=size"],
    ],
)
def test_every_option_that_the_header_depends_on_is_in_the_number(tmp_path: Path, options: list[str]) -> None:
    one, other = compile_(tmp_path, "one"), compile_(tmp_path, "other", *options)
    if (one / "m.h").read_bytes() == (other / "m.h").read_bytes():
        return  # any C of theirs fits either
    (one / "m.c").write_bytes((other / "m.c").read_bytes())
    assert "different builds" in c_compiler(one).stderr


def test_the_number_is_of_the_content(tmp_path: Path) -> None:
    """The same whenever it is made."""
    one, again = compile_(tmp_path, "one"), compile_(tmp_path, "again")
    assert (one / "m.h").read_bytes() == (again / "m.h").read_bytes()
    assert (one / "m.c").read_bytes() == (again / "m.c").read_bytes()


@pytest.mark.parametrize("large", [False, True])
def test_the_number_knows_weights_and_code(tmp_path: Path, large: bool) -> None:
    """Other weights, or other code, under a header that is the same but for the number."""

    def folder(name: str, op: str, weight: float) -> Path:
        weights = np.full((1, 9000 if large else 4), weight, np.float32)
        proto = model(
            [helper.make_node(op, ["x", "w"], ["y"])],
            [tensor("x", list(weights.shape))],
            [tensor("y", list(weights.shape))],
            {"w": weights},
        )
        path = save(proto, tmp_path / "m.onnx")
        assert main(["compile", str(path), "-o", str(tmp_path / name), "--target=c"]) == 0
        return tmp_path / name

    one = folder("one", "Mul", 0.5)
    for name, op, weight in (("weights", "Mul", 0.25), ("code", "Add", 0.5)):
        other = folder(name, op, weight)
        numbers = [re.findall(r"#define M_BUILD (\w+)", (f / "m.h").read_text()) for f in (one, other)]
        assert numbers[0] != numbers[1]
        (other / "m.h").write_bytes((one / "m.h").read_bytes())
        assert "different builds" in c_compiler(other).stderr


@pytest.mark.parametrize("options", [(), ("--params=external",), ("--keep-unchanged",)])
def test_the_c_comes_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, options: tuple[str, ...]) -> None:
    moved: list[str] = []
    move = os.replace

    def replace(source: str, target: Path) -> None:
        moved.append(target.name)
        move(source, target)

    monkeypatch.setattr(files.os, "replace", replace)
    compile_(
        tmp_path,
        "out",
        *options,
        "--report",
        str(tmp_path / "out/m.txt"),
        "--depfile",
        str(tmp_path / "out/m.d"),
    )
    assert {"m.h", "m.json", "m.txt", "m.d"} < set(moved) and moved[-1] == "m.c"


KILLED = """
import os, signal, sys
from aot_model.cli import main
os.replace = lambda source, target: os.kill(os.getpid(), signal.SIGKILL)
main(sys.argv[1:])
"""


def test_what_a_killed_run_left_is_swept(tmp_path: Path) -> None:
    out = compile_(tmp_path, "out")
    before = {path.name: path.read_bytes() for path in out.iterdir()}
    (out / ".m.c.swp").touch()  # of an editor
    model = save(unary("Relu", (9, 4)), tmp_path / "m.onnx")
    command = [sys.executable, "-c", KILLED, "compile", str(model), "-o", str(out), "--target=c"]
    done = subprocess.run(command, env=os.environ | {"PYTHONPATH": str(ROOT / "compiler")}, check=False)
    assert done.returncode == -signal.SIGKILL
    left = sorted(path.name for path in out.iterdir() if path.name.endswith(".part"))
    assert len(left) == 3
    assert all((out / name).read_bytes() == data for name, data in before.items()), "nothing was moved"
    compile_(tmp_path, "out")
    assert sorted(path.name for path in out.iterdir()) == [".m.c.swp", "m.c", "m.h", "m.json"]


def test_what_another_run_is_writing_is_left_alone(tmp_path: Path) -> None:
    handle, name = files._stage(tmp_path / "m.c")
    files.write_bytes({tmp_path / "m.c": b"1"})
    assert Path(name).exists()
    os.close(handle)
    files.write_bytes({tmp_path / "m.c": b"1"}, keep_unchanged=True)
    assert not Path(name).exists()


def test_a_file_that_was_swept_before_it_was_locked_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, swept = files._lock, []

    def late(handle: int) -> bool:
        if not swept:
            swept.extend(tmp_path.glob(".m.c.*"))
            swept[0].unlink()
        return lock(handle)

    monkeypatch.setattr(files, "_lock", late)
    files.write_bytes({tmp_path / "m.c": b"1"})
    assert swept and [path.name for path in tmp_path.iterdir()] == ["m.c"]


def test_depfiles_keep_the_bytes_of_paths(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"na\xefve #1 $x")
    folder.mkdir()
    out = compile_(folder, "out", "--depfile", str(folder / "d"))
    text = (folder / "d").read_bytes()
    where = os.fsencode(tmp_path) + b"/na\xefve\\ \\#1\\ $$x/"
    assert text.startswith(where + b"out/m.c: " + where + b"m.onnx \\\n") and (out / "m.json").exists()
    makefile = text + b"\t@echo again\n"
    (folder / "Makefile").write_bytes(makefile)
    done = subprocess.run(["make", "-s"], cwd=folder, capture_output=True, check=True)
    assert b"again" not in done.stdout
    os.utime(folder / "m.onnx", (2**31, 2**31))
    assert b"again" in subprocess.run(["make", "-s"], cwd=folder, capture_output=True, check=True).stdout


def test_a_depfile_cannot_name_a_line_feed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "two\nlines"
    folder.mkdir()
    compile_(folder, "out")
    assert (
        main(
            [
                "compile",
                str(folder / "m.onnx"),
                "-o",
                str(folder / "new"),
                "--target=c",
                "--depfile",
                str(folder / "d"),
            ]
        )
        == 1
    )
    message = capsys.readouterr().err
    assert (
        "a depfile cannot name a file with a line feed in its path [E105]" in message
        and "two\\nlines" in message
    )
    assert not (folder / "new").exists()
