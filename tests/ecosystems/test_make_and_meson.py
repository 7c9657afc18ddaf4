"""The recipes for Make and Meson: built, built again when the model changes, and for other processors."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cmake_project import ROOT, has_tools, write_model

from aot_model.cli import main

SAID = "10 of 10 digits are right"
needs_cc = pytest.mark.skipif(not has_tools("cc", "make"), reason="needs cc and make")
needs_meson = pytest.mark.skipif(
    not has_tools("cc", "ninja") or importlib.util.find_spec("mesonbuild") is None,
    reason="needs cc, ninja and meson",
)
CROSS = """[binaries]
c = 'arm-none-eabi-gcc'
ar = 'arm-none-eabi-ar'
[built-in options]
c_args = ['-mcpu=cortex-m4', '-mthumb', '-mfloat-abi=hard', '-mfpu=fpv4-sp-d16']
[host_machine]
system = 'none'
cpu_family = 'arm'
cpu = 'cortex-m4'
endian = 'little'
"""


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """A copy of the example, with aot-model of this source tree on PATH."""
    for name in ("digits", "digits_host"):
        shutil.copytree(ROOT / "examples" / name, tmp_path / name, ignore=shutil.ignore_patterns("build"))
    command = tmp_path / "bin/aot-model"
    command.parent.mkdir()
    command.write_text(
        f'#!/bin/sh\nPYTHONPATH="{ROOT / "compiler"}" exec "{sys.executable}" -m aot_model "$@"\n'
    )
    command.chmod(0o755)
    return tmp_path / "digits_host"


def run(folder: Path, *command: str | Path) -> str:
    environment = os.environ | {"PATH": f"{folder.parent / 'bin'}:{os.environ['PATH']}"}
    done = subprocess.run(
        list(map(str, command)),
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr


def other_model(folder: Path) -> None:
    """The same network with an extra in the file, and a newer time."""
    model = folder.parent / "digits/digits.onnx"
    model.write_bytes(model.read_bytes())
    os.utime(model, (4e9, 4e9))


@needs_cc
def test_make(example: Path) -> None:
    assert SAID in run(example, "make", "run")
    assert " compile " not in run(example, "make", "run")
    other_model(example)
    assert " compile " in run(example, "make", "run")


@needs_cc
@pytest.mark.skipif(not has_tools("arm-none-eabi-gcc"), reason="needs arm-none-eabi-gcc")
def test_make_crosses(example: Path) -> None:
    run(
        example,
        "make",
        "CC=arm-none-eabi-gcc",
        "AR=arm-none-eabi-ar",
        "CFLAGS=-O2 -mcpu=cortex-m4 -mthumb",
        "library",
    )
    assert json.loads((example / "build/digits.json").read_text())["target"] == "cortex-m4"
    assert "Tag_CPU_arch: v7E-M" in run(example, "arm-none-eabi-readelf", "-A", "build/libdigits.a")


@needs_meson
def test_meson(example: Path) -> None:
    meson = (sys.executable, "-m", "mesonbuild.mesonmain")
    run(example, *meson, "setup", "build")
    run(example, "ninja", "-C", "build")
    assert SAID in run(example, "build/digits_host")
    assert "no work to do" in run(example, "ninja", "-C", "build")
    external = ROOT / "compiler/aot_model/emit/templates/model.c.j2"
    assert str(external) in run(example, "ninja", "-C", "build", "-t", "deps", "digits.c"), (
        "what the compiler reads is known to Ninja"
    )
    other_model(example)
    assert "Generating digits" in run(example, "ninja", "-C", "build")


@needs_meson
@pytest.mark.skipif(not has_tools("arm-none-eabi-gcc"), reason="needs arm-none-eabi-gcc")
def test_meson_crosses(example: Path) -> None:
    (example / "cross.ini").write_text(CROSS)
    run(example, sys.executable, "-m", "mesonbuild.mesonmain", "setup", "build", "--cross-file", "cross.ini")
    run(example, "ninja", "-C", "build")
    assert json.loads((example / "build/digits.json").read_text())["target"] == "cortex-m4"
    assert "Tag_CPU_arch: v7E-M" in run(
        example, "arm-none-eabi-readelf", "-A", "build/libdigits.a.p/meson-generated_.._digits.c.o"
    )


def test_depfile_target(tmp_path: Path) -> None:
    """The text that is given, and no input that has to be there for ever."""
    model = write_model(tmp_path / "m.onnx")
    arguments = [
        "compile",
        str(model),
        "-o",
        str(tmp_path / "out"),
        "--target=c",
        "--depfile",
        str(tmp_path / "m.d"),
    ]
    assert main([*arguments, "--depfile-target", "out/m.c"]) == 0
    lines = (tmp_path / "m.d").read_text().splitlines()
    assert lines[0].startswith(f"out/m.c: {model}") and f"{model}:" in lines
    assert main(arguments) == 0
    text = (tmp_path / "m.d").read_text()
    assert text.startswith(f"{tmp_path}/out/m.c: ") and f"{model}:\n" not in text
    assert (
        main(
            [
                "test-main",
                str(tmp_path / "out/m.json"),
                "-o",
                str(tmp_path / "t.c"),
                "--vectors",
                str(_vectors(tmp_path)),
                "--depfile",
                str(tmp_path / "t.d"),
                "--depfile-target",
                "t.c",
            ]
        )
        == 0
    )
    assert (tmp_path / "t.d").read_text().startswith("t.c: ")


def _vectors(folder: Path) -> Path:
    from cmake_project import write_vectors

    return write_vectors(folder / "v.npz")
