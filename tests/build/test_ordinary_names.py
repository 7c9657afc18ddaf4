"""Libraries with names that mean something elsewhere: to the linker, to C, to a build system, to this
project.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest
import scons_project
from bazel_project import BAZEL, LOAD, REASON, Workspace
from cmake_project import ROOT, Project, has_tools, write_model

from aot_model.c.names import RESERVED_NAMES, library_name
from aot_model.cli import main
from aot_model.errors import CompileError
from aot_model.installation import include_dir

pytestmark = pytest.mark.skipif(not has_tools("cmake", "ninja", "cc"), reason="needs cmake, ninja and cc")

NAMES = {
    "model": "model",
    "m": "m",
    "c": "c",
    "pthread": "pthread_model",
    "gcc": "gcc",
    "std": "std",
    "main": "main",
    "int": "int",
    "class": "class",
    "float": "float_model",
    "NULL": "NULL",
    "linux": "linux",
    "I": "I",
    "math": "math_model",
    "string": "string_model",
    "Time": "Time_model",
    "module": "module",
    "scalar": "scalar",
    "aot_model": "m_aot_model",
    "aot_model_x": "m_aot_model_x",
    "aot": "aot",
    "8ball": "m8ball",
    "key-word.net": "key_word_net",
    "_x": "m_x",
    "config": "config",
    "x_run": "x_run",
    "a_very_long_name_that_goes_on_and_on_until_nobody_knows_what_it_was_about": "a_very_long_name_that_goes_on_and_on_until_nobody_knows_what_it_was_about",  # noqa: E501
}
"""Name of a target: that of its header and symbols."""


BUILT = ("model", "m", "c", "main", "int", "math", "aot_model")


def program(names: Sequence[str]) -> str:
    """C that runs libraries, and uses what the C library has under these names."""
    includes = "".join(f'#include "{name}.h"\n' for name in names)
    calls = "".join(
        f"    if ({n}_run(&({n}_inputs){{x}}, &({n}_outputs){{y}}) != 0 || y[1] != 6) return 1;\n"
        for n in names
    )
    return f"""{includes}#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
int main(void)
{{
    static const float x[4] = {{1, 2, 3, 4}};
    float y[3] = {{0}};
{calls}    printf("%d %.3f\\n", (int)strlen("four") + (time(NULL) < 0), sin((double)y[0]));
    return 0;
}}
"""


def test_cmake(tmp_path: Path) -> None:
    lists = "".join(f"aot_model_library({name} MODEL model.onnx TARGET c)\n" for name in BUILT)
    lists += f"add_executable(app app.c)\ntarget_link_libraries(app PRIVATE {' '.join(BUILT)})\n"
    lists += "".join(
        f'_aot_model_name(made call "{name}")\nif (NOT made STREQUAL "{want}")\n    message(FATAL_ERROR '
        f'"${{made}}")\nendif ()\n'
        for name, want in NAMES.items()
    )
    project = Project(tmp_path, lists)
    write_model(tmp_path / "model.onnx")
    project.write("app.c", program([NAMES[name] for name in BUILT]))
    log = project.configure()
    assert (
        "aot_model_library(math): its header is math_model.h, because programs include <math.h>; NAME "
        "says otherwise"
    ) in log
    project.build()
    assert project.run(project.build_folder / "app") == "4 0.000\n"


@pytest.mark.skipif(not scons_project.has_scons(), reason="needs SCons")
def test_scons(tmp_path: Path) -> None:
    script = (
        f"for name, want in {NAMES!r}.items():\n    assert env.AotModelSources('no' + '/' + name, "
        "'model.onnx').header.name == want + '.h'\n"
    )
    script += (
        "made = [env.AotModelLibrary(name, 'model.onnx', target='c') for name in "
        f"{BUILT!r}]\nDefault('app')\n"
    )
    script += (
        "env.Program('app', 'app.c', LIBS=[*made, 'm'], CPPPATH=[d for one in made for d in "
        "one.include_dirs])\n"
    )
    project = scons_project.Project(tmp_path, script)
    write_model(tmp_path / "model.onnx")
    project.write("app.c", program([NAMES[name] for name in BUILT]))
    log = project.build()
    assert "AotModelLibrary(math): its header is math_model.h" in log and project.run("app") == "4 0.000\n"


@pytest.mark.skipif(BAZEL is None, reason=REASON)
def test_bazel(workspace: Workspace) -> None:
    """The names are those of the other build systems; a few are built."""
    few = ("m", "model", "math")
    write_model(workspace.folder / "ordinary/model.onnx")
    checks = "".join(
        f'    if identifier("{name}") != "{want}":\n        fail(identifier("{name}"))\n'
        for name, want in {**NAMES, "+": "model"}.items()
    )
    workspace.write(
        "ordinary/names.bzl", f'load("@aot_model//bazel:info.bzl", "identifier")\n\ndef check():\n{checks}'
    )
    calls = "".join(f'aot_model_library(name = "{name}", model = "model.onnx")\n' for name in few)
    calls += f'cc_binary(name = "app", srcs = ["app.c"], deps = {[f":{name}" for name in few]!r})\n'
    workspace.write("ordinary/BUILD.bazel", f'load(":names.bzl", "check")\n{LOAD}check()\n{calls}')
    workspace.write("ordinary/app.c", program([NAMES[name] for name in few]))
    workspace.build("//ordinary:app")
    assert (
        subprocess.run([workspace.output("ordinary/app")], capture_output=True, text=True, check=True).stdout
        == "4 0.000\n"
    )


FILES = {
    "model": "model",
    "my model (1)": "my_model_1",
    "8ball": "m8ball",
    "\u6a21\u578b": "model",
    "na\u00efve": "na_ve",
    "int": "int",
    "time": "time_model",
    "aot_model": "m_aot_model",
    "AOT_Model.v2": "m_AOT_Model_v2",
    "-": "model",
    "x" * 200: "x" * 60,
    "a.b-c": "a_b_c",
    "__init__": "init",
}
"""Name of a model's file, without its suffix: that of the library."""


@pytest.mark.parametrize("stem", FILES)
def test_command_line(tmp_path: Path, stem: str) -> None:
    model, name = write_model(tmp_path / f"{stem}.onnx"), FILES[stem]
    for options in (
        [],
        [
            "--interface=module",
            "--interface=packed",
            "--interface=positional",
            "--profile",
            "--params=external",
        ],
    ):
        assert main(["compile", str(model), "-o", str(tmp_path / "out"), "--target=c", *options]) == 0
        assert {p.name for p in (tmp_path / "out").iterdir()} - {f"{name}.params"} == {
            f"{name}.c",
            f"{name}.h",
            f"{name}.json",
        }
        command = [
            "gcc",
            "-std=c99",
            "-Wall",
            "-Wextra",
            "-Wpedantic",
            "-Werror",
            f"-I{include_dir()}",
            "-fsyntax-only",
            f"{name}.c",
        ]
        subprocess.run(command, cwd=tmp_path / "out", check=True)
        assert (
            main(
                ["compile", str(model), "-o", str(tmp_path / "out"), "--target=c", f"--name={name}", *options]
            )
            == 0
        )


@pytest.mark.parametrize(
    "name",
    [
        "aot_model",
        "AOT_MODEL_X",
        "math",
        "Time",
        "a-b",
        "8ball",
        "_x",
        "",
        "a b",
        "x" * 300,
        "\u00e9",
        "a\nb",
        "../a",
    ],
)
def test_names_that_were_given_are_taken_or_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    model = write_model(tmp_path / "model.onnx")
    assert main(["compile", str(model), "-o", str(tmp_path / "out"), f"--name={name}"]) == 1
    message = capsys.readouterr().err
    assert "[E501]" in message
    hint = message.partition("hint: '")[2].partition("'")[0]
    assert library_name(hint, model) == hint
    with pytest.raises(CompileError):
        library_name(name, model)


def test_headers_of_the_c_library_are_reserved() -> None:
    """Whatever <stdio.h>, <math.h>, <pthread.h> … include by a plain name on this machine."""
    code = "".join(
        f"#include <{h}.h>\n"
        for h in (
            "stdio",
            "stdlib",
            "string",
            "math",
            "time",
            "pthread",
            "signal",
            "setjmp",
            "locale",
            "wchar",
            "complex",
            "tgmath",
            "stdint",
        )
    )
    done = subprocess.run(
        ["gcc", "-M", "-x", "c", "-"], input=code, capture_output=True, text=True, check=True
    )
    plain = {
        Path(f).stem
        for f in done.stdout.split()
        if f.endswith(".h") and Path(f).parent.name in ("include", "x86_64-linux-gnu")
    }
    assert {"stdio", "features"} <= plain
    assert not {n for n in plain if n.isidentifier()} - set(RESERVED_NAMES) - {"stdc-predef"}
    assert (ROOT / "bazel/options.bzl").read_text().count('"features"') == 1
