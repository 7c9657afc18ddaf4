"""The Bazel rules, used from another workspace: what is built again, arguments, mistakes, platforms,
caches.
"""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
from bazel_project import BAZEL, LOAD, REASON, Workspace, compiled_models
from cmake_project import ROOT, has_tools, program, write_model, write_vectors
from keyword_samples import FILES, SAMPLES, spellings, words, write_model_for_all

pytestmark = pytest.mark.skipif(BAZEL is None or not has_tools("cc"), reason=REASON)

TWO_MODELS = """
aot_model_library(name = "kws", model = "kws.onnx")
aot_model_library(name = "vad", model = "vad.onnx", data = ["vad.weights"])
cc_binary(name = "app", srcs = ["main.c"], deps = [":kws", ":vad"])
"""


def two_models(workspace: Workspace, package: str) -> Path:
    workspace.write(f"{package}/BUILD.bazel", LOAD + TWO_MODELS)
    workspace.write(f"{package}/main.c", program("kws", "vad"))
    folder = workspace.folder / package
    write_model(folder / "kws.onnx")
    write_model(folder / "vad.onnx", bias=1, external_data="vad.weights")
    return folder


def test_builds_again_exactly_what_depends_on_a_change(workspace: Workspace) -> None:
    folder = two_models(workspace, "again")
    assert compiled_models(workspace.build("//again:app")) == {"kws", "vad"}
    run = [workspace.output("again/app")]
    assert subprocess.run(run, capture_output=True, text=True).stdout == "kws 0 6 8\nvad 1 7 9\n"
    assert compiled_models(workspace.build("//again:app")) == set()
    weights = folder / "vad.weights"
    weights.write_bytes(bytes(weights.stat().st_size))
    assert compiled_models(workspace.build("//again:app")) == {"vad"}
    assert subprocess.run(run, capture_output=True, text=True).stdout == "kws 0 6 8\nvad 0 0 0\n"


def test_every_argument_reaches_the_compiler(workspace: Workspace) -> None:
    arguments = SAMPLES | {
        "model_name": "net",
        "target": "c",
        "offload": ["cmsis-nn"],
        "target_plugins": ["plugin.py"],
        "max_stack": "4k",
        "stack_allowance": "1k",
        "count_code": True,
        "options": ["--debug"],
        "data": ["other.txt"],
        "report": "html",
    }
    assert spellings("bazel") == {"model", *arguments}
    own = {
        "deps": [],
        "tags": ["own"],
        "testonly": True,
        "target_compatible_with": [],
        "visibility": ["//visibility:public"],
        "copts": ["-DOWN"],
    }
    given = ", ".join(f"{k} = {v!r}" for k, v in (arguments | own).items())
    workspace.write(
        "arguments/BUILD.bazel",
        f"""{LOAD}
aot_model_library(name = "kws", model = "m.onnx", {given})
[filegroup(name = "the_" + g, srcs = ["kws_sources"], output_group = g, testonly = True) for g in ["srcs", "hdrs", "metadata", "report", "params"]]
""",  # noqa: E501
    )
    write_model_for_all(workspace.folder / "arguments/m.onnx")
    workspace.write("arguments/other.txt", "")
    workspace.write("arguments/plugin.py", "TARGETS = ()\n")
    log = workspace.build("//arguments:all", "//arguments:the_report")
    call = re.search(r" compile (.*?)\)", log.replace("\\\n", " "))
    assert call, log
    assert set(shlex.split(call[1])) >= {
        "arguments/m.onnx",
        "--quiet",
        "--name=net",
        "--target=cmsis-nn,c",
        "--target-plugin=arguments/plugin.py",
        "--debug",
        *words("arguments/"),
    }
    assert " -DOWN " in log
    assert {path.name for path in workspace.output("arguments/kws_sources").iterdir()} == {
        *FILES,
        "net.report.html",
    }
    assert "net: " in workspace.output("arguments/kws_size/net.size.txt").read_text()
    assert "net_run() needs " in workspace.output("arguments/kws_stack/net.stack.txt").read_text()


def test_analysis(workspace: Workspace) -> None:
    """The tests of bazel/tests/, which run no action."""
    output = workspace.bazel("test", "@aot_model//bazel/tests:all")
    assert (
        "Executed 0 out of 4 tests: 4 tests pass" in output
        or len(re.findall(r"^@aot_model//bazel/tests:\w+ +PASSED", output, re.MULTILINE)) == 4
    )


def test_mistakes(workspace: Workspace) -> None:
    """Each is named, in one invocation: data that a rule does not declare are not there; names; arguments."""
    workspace.write(
        "mistakes/BUILD.bazel",
        f"""{LOAD}
aot_model_library(name = "forgot", model = "m.onnx")
aot_model_library(name = "misnamed", model = "m.onnx", model_name = "a b")
""",
    )
    write_model(workspace.folder / "mistakes/m.onnx", external_data="m.weights")
    output = workspace.build("-k", "//mistakes:all", ok=False)
    assert "mistakes/m.onnx: error: external data 'm.weights' of 'weights' is missing [E103]" in output
    assert "aot_model_library(misnamed_sources): model_name 'a b' is not a C identifier" in output
    unknown = 'aot_model_library(name = "kws", model = "m.onnx", io = "nowhere", colour = "red")\n'
    workspace.write("unknown/BUILD.bazel", LOAD + unknown)
    output = workspace.build("//unknown:all", ok=False)
    assert "no such attribute 'colour' in 'cc_library' rule" in output
    assert (
        "invalid value in 'io' attribute: has to be one of '', 'caller' or 'workspace' instead of 'nowhere'"
    ) in output


def test_tests_and_platforms(workspace: Workspace) -> None:
    """Tests on the host and, by --platforms, in QEMU; firmware of two cores and a host program in one build;
    the flag.
    """
    workspace.write(
        "tests/BUILD.bazel",
        f"""{LOAD}
aot_model_library(name = "kws", model = "m.onnx")
aot_model_test(name = "right", library = ":kws", vectors = "right.npz", atol = 0.01, rtol = 0, max_lsb = 1)
aot_model_test(name = "wrong", library = "//tests:kws", vectors = "wrong.npz", tags = ["manual"])
aot_model_benchmark(name = "time_it", library = "kws", runs = 3)
[aot_model_for_platform(name = "kws_" + core, srcs = ["kws", "kws_metadata"], platform = "@aot_model//toolchains/bazel:" + core) for core in ["cortex-m4", "cortex-m55"]]
""",  # noqa: E501
    )
    folder = workspace.folder / "tests"
    write_model(folder / "m.onnx")
    write_vectors(folder / "right.npz")
    write_vectors(folder / "wrong.npz", bias=1)
    output = workspace.bazel(
        "test", "--test_output=errors", "-k", "//tests:right", "//tests:wrong", "//tests:time_it", ok=False
    )
    assert re.search(r"//tests:right +PASSED", output) and re.search(r"//tests:wrong +FAILED", output)
    assert re.search(r"vector 0: y\[\d\] is -?\d\S*, should be \d", output)
    assert (
        "3"
        in subprocess.run(
            [workspace.output("tests/time_it")], capture_output=True, text=True, check=True
        ).stdout
    )

    workspace.build("--@aot_model//bazel:target=c", "//tests:kws_metadata")
    assert json.loads(workspace.output("tests/kws_sources/kws.json").read_text())["target"] == "c"

    if not has_tools("arm-none-eabi-gcc", "qemu-system-arm"):
        pytest.skip("the host is right; Cortex-M needs arm-none-eabi-gcc and qemu-system-arm")
    workspace.build("//tests:kws_cortex-m4", "//tests:kws_cortex-m55", "//tests:kws")
    made = [
        json.loads(file.read_text())["target"]
        for file in (workspace.folder / "bazel-out").resolve().glob("*-ST-*/bin/tests/kws_sources/kws.json")
    ]
    assert sorted(made) == ["cortex-m4", "cortex-m55"]
    output = workspace.bazel(
        "test",
        "--platforms=@aot_model//toolchains/bazel:cortex-m4",
        "-k",
        "//tests:right",
        "//tests:wrong",
        "//tests:time_it",
        ok=False,
    )
    assert re.search(r"//tests:right +PASSED", output) and re.search(r"//tests:wrong +FAILED", output)
    main = workspace.output("tests/time_it.main/main.c").read_text()
    assert re.search(r"\d cycles per inference, estimated \(m4, 0ws; error ", main)


def test_a_compiler_of_ones_own(workspace: Workspace) -> None:
    """aot_model_toolchain(compiler = ...): a program with its runfiles, built for the machine that builds, is
    what runs.
    """
    workspace.write(
        "own/BUILD.bazel",
        f"""{LOAD}
load("@aot_model//bazel:defs.bzl", "aot_model_toolchain")
sh_binary(name = "compiler", srcs = ["compiler.sh"], data = ["@aot_model//compiler:files"])
aot_model_toolchain(name = "own_compiler", compiler = "compiler", target = "c,optimize=size")
toolchain(name = "own", toolchain = "own_compiler", toolchain_type = "@aot_model//bazel:toolchain_type")
aot_model_library(name = "kws", model = "m.onnx", max_stack = "64k")
""",
    )
    script = f'#!/bin/sh\nexec {sys.executable} -B "$0.runfiles/aot_model/compiler/aot_model" "$@"\n'
    workspace.write("own/compiler.sh", script).chmod(0o755)
    write_model(workspace.folder / "own/m.onnx")
    log = workspace.build("--extra_toolchains=//own", "//own:kws")
    assert re.search(r"bin/own/compiler compile .*\bown/m\.onnx ", log)
    assert json.loads(workspace.output("own/kws_sources/kws.json").read_text())["target"].startswith("c")


def test_a_python_without_the_packages(workspace: Workspace, tmp_path: Path) -> None:
    python = tmp_path / "python3"
    python.write_text('#!/bin/sh\necho \'{"missing": ["onnx", "jinja2"], "install": "do this"}\'\n')
    python.chmod(0o755)
    output = workspace.bazel("build", "@aot_model//bazel:portable_compiler", ok=False, python=str(python))
    assert f"aot_model: {python} lacks packages that the compiler needs: onnx jinja2" in output
    assert "Install them:\n    do this\n" in output
    # A compiler of one's own needs none.
    workspace.bazel("build", "--extra_toolchains=//own", "//own:kws", python=str(python))


def test_tables_are_those_of_cmake() -> None:
    text = (ROOT / "toolchains/bazel/cores.bzl").read_text()
    cores = {
        core: tuple(rest)
        for core, *rest in re.findall(
            r'"([\w-]+)": struct\(flags = "(.*?)", machine = "(.*?)", script = "(.*?)"\)', text
        )
    }
    files = {
        path.stem: dict(re.findall(r'set\((\w+) "?(.*?)"?\)', path.read_text()))
        for path in (ROOT / "toolchains").glob("cortex-m*.cmake")
    }
    assert cores == {
        c: (v["AOT_MODEL_FLAGS"], v["AOT_MODEL_BOARD"], v["AOT_MODEL_BOARD_LD"]) for c, v in files.items()
    }
    version = re.search(r'__version__ = "(.*)"', (ROOT / "compiler/aot_model/__init__.py").read_text())
    assert version and f'version = "{version[1]}"' in (ROOT / "MODULE.bazel").read_text()


@pytest.mark.skipif(
    not has_tools("buildifier"), reason="needs buildifier (npm install --global @bazel/buildifier)"
)
def test_lint() -> None:
    files = [
        f
        for pattern in (
            "bazel/*.b*",
            "bazel/tests/*.b*",
            "toolchains/**/*.b*",
            "compiler/BUILD.bazel",
            "examples/**/*.bazel",
            "MODULE.bazel",
        )
        for f in ROOT.glob(pattern)
    ]
    done = subprocess.run(
        ["buildifier", "--mode=check", "--lint=warn", *map(str, files)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(
    not has_tools("arm-none-eabi-gcc", "qemu-system-arm"),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)
def test_examples(workspace: Workspace) -> None:
    """The firmware example by its label in the other workspace, in QEMU."""
    platform = "--platforms=@aot_model//toolchains/bazel:cortex-m4"
    output = workspace.bazel(
        "test", platform, "--test_output=all", "@aot_model//examples/digits_firmware:run"
    )
    digits = re.findall(r"a handwritten (\d): classified as (\d)", output)
    assert len(digits) == 10 and all(is_ == said for is_, said in digits)
