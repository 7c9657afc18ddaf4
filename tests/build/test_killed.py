"""The compiler is killed before it moves each of its files to its place, and when all are there: the next
build is right.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest
import scons_project
from bazel_project import BAZEL, LOAD, REASON, Workspace
from cmake_project import ROOT, WEIGHTS, Project, has_tools, write_model

from turns import commit_number

pytestmark = pytest.mark.skipif(
    not has_tools("cmake", "ninja", "make", "cc"), reason="needs cmake, ninja, make and cc"
)

NAMES = [f"k{number}" for number in (0, 2, 3, 4)]
"""Libraries; the compiler dies before it has moved as many files as the name says, or at its end."""

COMPILER = """#!{python} -B
import os, re, signal, sys
sys.path.insert(0, {compiler!r})
from aot_model.cli import main
left = [int(number) for word in sys.argv for number in re.findall("^--name=k(.)$", word) if os.path.exists({deadly!r})]
move = os.replace
def replace(source, target):
    if left:
        if left[0] == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        left[0] -= 1
    move(source, target)
os.replace = replace
status = main()
if left:
    os.kill(os.getpid(), signal.SIGKILL)
sys.exit(status)
"""  # noqa: E501

PROGRAM = """#include <stdio.h>
#include "{name}.h"
static float x[64], y[64];
int main(void)
{{
    for (unsigned i = 0; i < {upper}_X_SIZE / sizeof *x; i++) x[i] = (float)(i + 1u);
    if ({name}_run(&({name}_inputs){{x}}, &({name}_outputs){{y}}) != 0) return 1;
    for (unsigned i = 0; i < {upper}_Y_SIZE / sizeof *y; i++) printf("%g ", (double)y[i]);
    return 0;
}}
"""


def compiler(folder: Path) -> Path:
    """A program that compiles models, and is killed while there is a file `deadly` in the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    made = folder / "compiler.py"
    made.write_text(
        COMPILER.format(python=sys.executable, compiler=str(ROOT / "compiler"), deadly=str(folder / "deadly"))
    )
    made.chmod(0o755)
    return made


def change(folder: Path, rows: int) -> str:
    """Writes another model and the programs; what these print."""
    write_model(folder / "m.onnx", shape=(rows, 4))
    for name in NAMES:
        (folder / f"{name}_main.c").write_text(PROGRAM.format(name=name, upper=name.upper()))
    x = np.arange(1, rows * 4 + 1, dtype=np.float32).reshape(rows, 4)
    return "".join(f"{v:g} " for v in np.maximum(x @ WEIGHTS, 0).ravel())


def check_that_kills_do_no_harm(
    folder: Path,
    build: Callable[[bool], object],
    program: Callable[[str], str],
    generated: Callable[[str], Path],
    names: Sequence[str] = NAMES,
) -> None:
    """Dies the first time, when nothing is there, and again when there is a library of another model."""
    for rows in (1, 5):
        want = change(folder, rows)
        (folder / "deadly").touch()
        build(False)
        (folder / "deadly").unlink()
        build(True)
        for name in names:
            assert program(name) == want, (name, rows)
            left = [path.name for path in generated(name).iterdir() if path.name.startswith(".")]
            assert not left, (name, left)


@pytest.mark.parametrize("generator", [("Ninja", "Unix Makefiles")[commit_number() % 2]])
def test_cmake(tmp_path: Path, generator: str) -> None:
    lists = "".join(
        f"aot_model_library({name} MODEL m.onnx)\nadd_executable({name}_main "
        f"{name}_main.c)\ntarget_link_libraries({name}_main PRIVATE {name})\n"
        for name in NAMES
    )
    change(tmp_path, 1)
    project = Project(tmp_path, lists, generator=generator)
    project.configure(f"-DAotModel_COMPILER={compiler(tmp_path)}")
    go_on = ("--", "-k") if generator == "Unix Makefiles" else ("--", "-k0")
    check_that_kills_do_no_harm(
        tmp_path,
        lambda ok: project.build(*go_on, ok=ok),
        lambda name: project.run(project.executable(f"{name}_main")),
        lambda name: project.build_folder / f"{name}.aot",
    )


@pytest.mark.skipif(not scons_project.has_scons(), reason="needs SCons")
def test_scons(tmp_path: Path) -> None:
    script = f"env.Replace(AOT_MODEL=[{sys.executable!r}, '-B', {str(compiler(tmp_path))!r}])\n" + "".join(
        f"made = env.AotModelLibrary({name!r}, 'm.onnx')\nenv.Program('{name}_main', '{name}_main.c', "
        "LIBS=[made, 'm'], CPPPATH=made.include_dirs)\n"
        for name in NAMES
    )
    project = scons_project.Project(tmp_path, script)
    check_that_kills_do_no_harm(
        tmp_path,
        lambda ok: project.build("-k", ok=ok),
        lambda name: project.run(f"{name}_main"),
        lambda name: tmp_path / f"{name}.aot",
    )


@pytest.mark.skipif(BAZEL is None, reason=REASON)
def test_bazel(workspace: Workspace) -> None:
    folder = workspace.folder / "killed"
    compiler(folder)
    names = ["k2"]  # what an action that failed has made does not exist for Bazel: one is as good as all
    rules = [
        f'aot_model_library(name = "{name}", model = "m.onnx")\ncc_binary(name = "{name}_main", srcs = '
        f'["{name}_main.c"], deps = ["{name}"])\n'
        for name in names
    ]
    workspace.write(
        "killed/BUILD.bazel",
        f"""{LOAD}
load("@aot_model//bazel:defs.bzl", "aot_model_toolchain")
sh_binary(name = "compiler", srcs = ["compiler.py"], data = ["@aot_model//compiler:files"])
aot_model_toolchain(name = "own_compiler", compiler = "compiler", target = "c")
toolchain(name = "own", toolchain = "own_compiler", toolchain_type = "@aot_model//bazel:toolchain_type")
{"".join(rules)}""",
    )
    check_that_kills_do_no_harm(
        folder,
        lambda ok: workspace.bazel("build", "-k", "--extra_toolchains=//killed:own", "//killed:all", ok=ok),
        lambda name: (
            subprocess.run(
                [workspace.output(f"killed/{name}_main")], capture_output=True, text=True, check=True
            ).stdout
        ),
        lambda name: workspace.output(f"killed/{name}_sources"),
        names,
    )
