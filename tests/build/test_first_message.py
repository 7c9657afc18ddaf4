"""Bad input: one clear message in the output of each build system, before anything that follows from it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

import cmake_project
import pytest
import scons_project
from bazel_project import BAZEL, LOAD, REASON, Workspace
from cmake_project import ROOT, has_tools, write_model

from aot_model.emit.view import ABI

pytestmark = pytest.mark.skipif(not has_tools("cmake", "ninja", "cc"), reason="needs cmake, ninja and cc")


@dataclass(frozen=True)
class Mistake:
    """A library that cannot be built. said: what the first line with the word error has; {} is the folder, as
    a pattern.
    """

    said: str
    arguments: dict[str, str] = field(default_factory=dict)
    """Of the library, as they are written in Bazel and SCons."""
    stale: bool = False
    """Whether the folder stale/ has runtime headers of another version, which are found first."""
    model: str = "m.onnx"


MISTAKES = {
    "option": Mistake(
        r"^aot-model: error: unrecognized arguments: --colour=red", {"options": '["--colour=red"]'}
    ),
    "target": Mistake(r"error: unknown target 'cortex-m5' \[E501\]", {"target": '"cortex-m5"'}),
    "budget": Mistake(
        r"m\.onnx: error: needs \d+ bytes of flash for constants, the budget is 7", {"max_flash": "7"}
    ),
    "broken": Mistake(r"b\.onnx: error: .* \[E102\]", model="b.onnx"),
    # The C of another version of the compiler than the runtime's headers: what a stale copy of either would
    # be.
    "version": Mistake(
        r'#error "kws\.h was made by another version of aot-model than the headers that it includes',
        stale=True,
    ),
    "flags": Mistake(
        r'#error "kws\.c was made for cortex-m4: compile with -mcpu of a core with the DSP extension, or pass',  # noqa: E501
        {"target": '"cortex-m4"'},
    ),
}


def first_error(log: str) -> str:
    """The first line about an error that is not the build system's own "this failed" in front of what it
    shows.
    """
    own = (
        r"^(FAILED: |ERROR: \S+BUILD\.bazel:\d+:\d+: .* failed|scons: \*\*\* |ninja: |make|gmake|Use "
        r"--|.*-Werror)"
    )
    return next(
        (
            line
            for line in log.splitlines()
            if re.search(r"\berror\b", line, re.IGNORECASE) and not re.match(own, line)
        ),
        "",
    )


def check(mistake: Mistake, log: str) -> None:
    assert re.search(mistake.said, first_error(log)), f"first: {first_error(log)}\n{log}"
    assert "Traceback" not in log


def write(folder: Path) -> None:
    write_model(folder / "m.onnx")
    (folder / "b.onnx").write_bytes(b"no model at all")
    runtime = ROOT / "compiler/aot_model/runtime/include/aot_model"
    (folder / "stale/aot_model").mkdir(parents=True)
    for header in runtime.glob("*.h"):
        text = header.read_text().replace(
            f"#define AOT_MODEL_ABI {ABI}\n", f"#define AOT_MODEL_ABI {ABI + 1}\n"
        )
        (folder / "stale/aot_model" / header.name).write_text(text)


@pytest.mark.parametrize("name", MISTAKES)
def test_cmake(tmp_path: Path, name: str) -> None:
    mistake = MISTAKES[name]
    given = " ".join(
        f"{key.upper()} {re.sub(r'[^-=.0-9a-z]', '', value)}" for key, value in mistake.arguments.items()
    )
    stale = "target_include_directories(kws BEFORE PRIVATE stale)" if mistake.stale else ""
    project = cmake_project.Project(
        tmp_path / "p", f"aot_model_library(kws MODEL {mistake.model} {given})\n{stale}"
    )
    write(project.folder)
    project.configure()
    check(mistake, project.build(ok=False))


@pytest.mark.skipif(not scons_project.has_scons(), reason="needs scons (pip install scons)")
@pytest.mark.parametrize("name", MISTAKES)
def test_scons(tmp_path: Path, name: str) -> None:
    mistake = MISTAKES[name]
    given = "".join(f", {key}={value}" for key, value in mistake.arguments.items())
    stale = ", CCFLAGS=['-Istale']" if mistake.stale else ""
    project = scons_project.Project(
        tmp_path / "p", f"env.AotModelLibrary('kws', '{mistake.model}'{given}{stale})"
    )
    write(project.folder)
    check(mistake, project.build(ok=False))


@pytest.mark.skipif(BAZEL is None, reason=REASON)
@pytest.mark.parametrize("name", MISTAKES)
def test_bazel(workspace: Workspace, name: str) -> None:
    mistake = MISTAKES[name]
    given = "".join(f", {key} = {value}" for key, value in mistake.arguments.items())
    stale = f", copts = ['-Ifirst/{name}/stale'], textual_hdrs = glob(['stale/**'])" if mistake.stale else ""
    workspace.write(
        f"first/{name}/BUILD.bazel",
        f"{LOAD}aot_model_library(name = 'kws', model = '{mistake.model}'{given}{stale})\n",
    )
    write(workspace.folder / f"first/{name}")
    check(mistake, workspace.bazel("build", f"//first/{name}:kws", ok=False))


def test_missing_models(tmp_path: Path) -> None:
    """They are found before anything is built; Bazel's own words do."""
    cmake = cmake_project.Project(tmp_path / "cmake", "aot_model_library(kws MODEL gone.onnx)")
    assert f"aot_model_library(kws): there is no model {cmake.folder}/gone.onnx" in cmake.configure(ok=False)
    if scons_project.has_scons():
        scons = scons_project.Project(tmp_path / "scons", "env.AotModelLibrary('kws', 'gone.onnx')")
        assert scons.build(ok=False).count("AotModelLibrary(kws): there is no model gone.onnx") == 1


@pytest.mark.skipif(BAZEL is None, reason=REASON)
def test_missing_model_in_bazel(workspace: Workspace) -> None:
    workspace.write("first/gone/BUILD.bazel", f'{LOAD}aot_model_library(name = "kws", model = "gone.onnx")\n')
    log = workspace.bazel("build", "//first/gone:kws", ok=False)
    assert (
        "no such target '//first/gone:gone.onnx'" in log
        or "missing input file '//first/gone:gone.onnx'" in log
    )


def test_the_runtime_and_generated_code_have_one_version() -> None:
    text = (ROOT / "compiler/aot_model/runtime/include/aot_model/model.h").read_text()
    assert f"#define AOT_MODEL_ABI {ABI}\n" in text
