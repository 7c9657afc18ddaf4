"""The SCons tool: what is built, what is built again, in which layouts; arguments; crosses to Cortex-M."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from cmake_project import ROOT, has_tools, program, write_model, write_vectors
from keyword_samples import FILES, SAMPLES, spellings, words, write_model_for_all
from scons_project import TOOLCHAINS, TOOLS, Project, compiled_models, compiled_objects, has_scons

pytestmark = pytest.mark.skipif(
    not has_scons() or not has_tools("cc"), reason="needs scons (pip install scons) and cc"
)

TWO_MODELS = """
kws = env.AotModelLibrary("kws", "models/kws.onnx")
vad = env.AotModelLibrary("vad", "models/vad.onnx")
env.Program("app", ["main.c"], LIBS=[kws, vad, "m"], CPPPATH=[*kws.include_dirs, *vad.include_dirs])
"""


def two_models(folder: Path, script: str = TWO_MODELS) -> Project:
    """Two models in one program; one has its weights in a file of its own; the folder's name has a space."""
    project = Project(folder / "my project", script)
    write_model(project.folder / "models/kws.onnx")
    write_model(project.folder / "models/vad.onnx", bias=1, external_data="vad.weights")
    project.write("main.c", program("kws", "vad"))
    return project


def test_builds_again_exactly_what_depends_on_a_change(tmp_path: Path) -> None:
    project = two_models(tmp_path)
    assert compiled_models(project.build()) == {"kws", "vad"}
    assert project.run("app") == "kws 0 6 8\nvad 1 7 9\n"
    assert "is up to date" in project.build()

    os.utime(project.folder / "models/kws.onnx")
    assert compiled_models(project.build()) == set(), "the content decides"

    (project.folder / "models/vad.weights").write_bytes(
        bytes((project.folder / "models/vad.weights").stat().st_size)
    )
    log = project.build()
    assert compiled_models(log) == {"vad"} and compiled_objects(log) == {"vad.c", "main.c"}, (
        "the header has the number of the build"
    )
    assert project.run("app") == "kws 0 6 8\nvad 0 0 0\n"
    assert "is up to date" in project.build()

    log = project.build("-c")
    assert {"Removed kws.aot/kws.c", "Removed vad.aot/vad.json", "Removed app"} <= set(log.splitlines())
    assert not list(project.folder.rglob("*.aot/*.*"))


def test_a_changed_compiler_builds_again(tmp_path: Path) -> None:
    script = tmp_path / "compiler.py"
    script.write_text(f"""
import json, subprocess, sys
done = subprocess.run([{sys.executable!r}, {str(ROOT / "compiler/aot_model")!r}, *sys.argv[1:]], capture_output=True, text=True)
sys.stderr.write(done.stderr)
answer = done.stdout
if "--version" in sys.argv:
    answer = json.dumps(json.loads(answer) | json.load(open({str(tmp_path / "answers.json")!r})))
print(answer)
sys.exit(done.returncode)
""")  # noqa: E501
    answers = tmp_path / "answers.json"
    answers.write_text("{}")
    project = Project(
        tmp_path / "p",
        f'env["AOT_MODEL"] = [{sys.executable!r}, {str(script)!r}]\nenv.Tool("aot_model", '
        f'toolpath=[{str(TOOLS)!r}])\nenv.AotModelSources("kws", "m.onnx")',
    )
    write_model(project.folder / "m.onnx")
    assert compiled_models(project.build()) == {"kws"}
    assert compiled_models(project.build()) == set()
    answers.write_text('{"packages": {"numpy": "9.9"}}')
    assert compiled_models(project.build()) == {"kws"}
    answers.write_text('{"missing": ["onnx"], "install": "do this"}')
    log = project.build(ok=False)
    assert re.search(r"aot_model: .*python\S* lacks packages that the compiler needs: onnx\n", log)
    assert "Install them:\n    do this\n" in log


def test_variant_directories_in_parallel(tmp_path: Path) -> None:
    """One SConscript for two variants, with and without copies of the sources; -j2; a cache shared by two
    checkouts.
    """
    script = f"""
CacheDir({str(tmp_path / "cache")!r})
for variant, duplicate in (("copied", True), ("plain", False)):
    env.SConscript("src/SConscript", exports="env", variant_dir=f"build/{{variant}}", duplicate=duplicate)
"""
    for checkout in ("one", "another"):
        project = two_models(tmp_path / checkout, script)
        (project.folder / "models").rename(project.folder / "src")
        (project.folder / "src/kws.onnx").rename(project.folder / "src/first.onnx")
        (project.folder / "main.c").rename(project.folder / "src/main.c")
        project.write(
            "src/SConscript",
            'Import("env")\n' + TWO_MODELS.replace("models/kws", "first").replace("models/", ""),
        )
        log = project.build("-j2")
        for variant in ("copied", "plain"):
            assert project.run(f"build/{variant}/app") == "kws 0 6 8\nvad 1 7 9\n"
        assert "is up to date" in project.build("-j2")
    assert compiled_models(log) | compiled_objects(log) == set(), (
        "another checkout takes everything from the cache"
    )
    assert "Retrieved `build/plain/kws.aot/kws.c' from cache" in log


def test_generated_models_and_their_external_data(tmp_path: Path) -> None:
    """A model made by the build; its data are found once it is there."""
    project = Project(
        tmp_path / "p",
        """
env.Command(["gen/m.onnx"], "in/m.onnx", Copy("$TARGET", "$SOURCE"))
env.Command(["gen/m.weights"], "in/m.weights", Copy("$TARGET", "$SOURCE"))
env.AotModelSources("kws", "gen/m.onnx", depends=["gen/m.weights"])
""",
    )
    write_model(project.folder / "in/m.onnx", external_data="m.weights")
    assert compiled_models(project.build()) == {"kws"}
    weights = project.folder / "in/m.weights"
    weights.write_bytes(bytes(weights.stat().st_size))
    assert compiled_models(project.build()) == {"kws"}


def test_every_argument_reaches_the_compiler(tmp_path: Path) -> None:
    arguments = SAMPLES | {
        "model_name": "net",
        "target": "c",
        "offload": ["cmsis-nn"],
        "target_plugins": ["plugin.py"],
        "options": ["--debug"],
        "depends": ["other.txt"],
        "report": "html",
    }
    assert spellings("scons") == {"model", "count_code", "max_stack", "stack_allowance", *arguments}
    given = ", ".join(f"{k}={v!r}" for k, v in arguments.items())
    project = Project(
        tmp_path / "p",
        f"""
env["AOT_MODEL_COMSTR"] = ""
made = env.AotModelLibrary("kws", "m.onnx", {given}, CPPDEFINES=["OWN"],
    count_code=True, max_stack="4k", stack_allowance="1k")
env.AotModelSources("again", "m.onnx", {given})
print("made", made.source, made.header, made.metadata, made.params, made.report, made.library, made.target)
""",
    )
    write_model_for_all(project.folder / "m.onnx")
    project.write("other.txt", "")
    project.write("plugin.py", "TARGETS = ()\n")
    log = project.build("kws.aot", "libkws.a")
    assert (
        "made kws.aot/net.c kws.aot/net.h kws.aot/net.json None kws.aot/net.report.html libkws.a cmsis-nn,c"
    ) in log
    call = re.search(r"compile (m\.onnx .*)$", log, re.MULTILINE)
    assert call and sorted(shlex.split(call[1])) == sorted(
        [
            "m.onnx",
            "--quiet",
            "-o",
            "kws.aot",
            "--name=net",
            "--target=cmsis-nn,c",
            *words(),
            "--target-plugin=plugin.py",
            "--debug",
            "--report=kws.aot/net.report.html",
        ]
    )
    assert (
        " stack kws.aot/net.json kws.aot/net.ci --compiler=gcc --stack-allowance=1k --max-stack=4k -o "
        "kws.aot/net.stack.txt"
    ) in log or "Measuring the stack of" in log
    assert {path.name for path in (project.folder / "kws.aot").iterdir()} >= {
        *FILES,
        "net.report.html",
        "net.stack.txt",
        "net.size.txt",
        "net.ci",
    }
    assert "-DOWN" in log
    assert (project.folder / "kws.aot/net.report.html").stat().st_size
    assert json.loads((project.folder / "kws.aot/net.json").read_text())["name"] == "net"
    project.write("other.txt", "changed")
    assert " compile m.onnx " in project.build("kws.aot")


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            'env.AotModelLibrary("kws", "m.onnx", colour="red")',
            "AotModelLibrary(kws): unknown argument: colour",
        ),
        ('env.AotModelLibrary("kws", "gone.onnx")', "AotModelLibrary(kws): there is no model gone.onnx"),
        (
            'env.AotModelLibrary("kws", "m.onnx", model_name="a b")',
            "AotModelLibrary(kws): model_name 'a b' is not a C identifier",
        ),
        ('env.AotModelLibrary("kws", ["m.onnx", "v.npz"])', "AotModelLibrary(kws): one model is one file"),
        ('env.AotModelArena("a", ["x"])', "AotModelArena(a): libraries were not made by AotModelLibrary()"),
        (
            'env.AotModelTest("t", ["x"], "v.npz")',
            "AotModelTest(t): library was not made by AotModelLibrary()",
        ),
        (
            'env.AotModelTest("t", env.AotModelLibrary("kws", "m.onnx"), "gone.npz")',
            "AotModelTest(t): there are no vectors gone.npz",
        ),
    ],
)
def test_mistakes_are_named(tmp_path: Path, call: str, words: str) -> None:
    project = Project(tmp_path / "p", call)
    write_model(project.folder / "m.onnx")
    write_vectors(project.folder / "v.npz")
    assert words in project.build(ok=False)


def test_a_python_without_the_compiler(tmp_path: Path) -> None:
    project = Project(tmp_path / "p", "", environment={"AOT_MODEL_PYTHON": "/gone/python3"})
    output = project.build(ok=False)
    assert (
        "aot_model: the compiler does not run: /gone/python3 -B" in output
        and "AOT_MODEL_PYTHON=<file>" in output
    )


TEST = """
kws = env.AotModelLibrary("kws", "m.onnx")
env.AotModelTest("right", kws, "right.npz", atol=0.01, rtol=0, max_lsb=1)
env.AotModelTest("wrong", kws, "wrong.npz", alias="wrong_ones")
env.Alias("bench", env.AotModelBenchmark("time_it", kws, runs=3))
"""


def write_test(project: Project) -> None:
    write_model(project.folder / "m.onnx")
    write_vectors(project.folder / "right.npz")
    write_vectors(project.folder / "wrong.npz", bias=1)


def test_tests_and_benchmarks(tmp_path: Path) -> None:
    project = Project(tmp_path / "p", TEST)
    write_test(project)
    assert "Testing right" in project.build("test")
    assert "up to date" in project.build("test"), "passed, and nothing changed"
    output = project.build("wrong_ones", ok=False)
    assert re.search(r"vector 0: y\[\d\] is -?\d\S*, should be \d", output)
    project.build("bench")
    assert "3" in project.run("time_it")


@pytest.mark.skipif(
    not has_tools("arm-none-eabi-gcc", "qemu-system-arm"),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)
def test_crosses_to_cortex_m(tmp_path: Path) -> None:
    """One SConstruct for host and two cores: the target follows the toolchain, tests run in QEMU."""
    cross = """
env.AotModelLibrary("host_kws", "m.onnx", model_name="kws")
for core, memory in (("cortex-m4", "l4-art"), ("cortex-m55", None)):
    tools = ["default", "arm_none_eabi_gcc", "aot_model"]
    cross = Environment(tools=tools, toolpath=[TOOLS], AOT_MODEL_CPU=core)
    kws = cross.AotModelLibrary(f"{core}/kws", "m.onnx", memory=memory)
    cross.AotModelTest(f"{core}/right", kws, "right.npz")
    cross.AotModelBenchmark(f"{core}/time_it", kws, runs=3)
for name, flags in (("own", "-mcpu=cortex-m33 -mthumb -flto"), ("plain", "-mcpu=cortex-m33+nodsp -mthumb"), ("old", "-mcpu=arm926ej-s")):
    env.Clone(CC="arm-none-eabi-gcc", CCFLAGS=flags).AotModelSources(name, "m.onnx", model_name="kws")
""".replace("[TOOLS]", repr([str(TOOLS), str(TOOLCHAINS)]))  # noqa: E501
    project = Project(tmp_path / "p", cross)
    write_test(project)
    log = project.build(".", "test")
    for name, target in (
        ("own", "cortex-m33"),
        ("plain", "cortex-m3"),
        ("old", "c"),
        ("cortex-m4/kws", "cortex-m4"),
        ("cortex-m55/kws", "cortex-m55"),
    ):
        assert json.loads((project.folder / f"{name}.aot/kws.json").read_text())["target"] == target
    for core, memory in (("cortex-m4", "l4-art"), ("cortex-m55", "0ws")):
        assert f"Testing {core}/right.elf" in log
        main = (project.folder / f"{core}/time_it.aot/main.c").read_text()
        assert f" cycles per inference, estimated ({core.replace('cortex-', '')}, {memory}; error " in main
    assert json.loads((project.folder / "host_kws.aot/kws.json").read_text())["target"].startswith("host")
    attributes = subprocess.run(
        ["arm-none-eabi-readelf", "-A", project.folder / "cortex-m4/libkws.a"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert "Tag_CPU_arch: v7E-M" in attributes


@pytest.mark.skipif(not has_tools("arm-none-eabi-gcc"), reason="needs arm-none-eabi-gcc")
def test_no_core_is_an_error(tmp_path: Path) -> None:
    project = Project(tmp_path / "p", 'env.Clone(CC="arm-none-eabi-gcc").AotModelLibrary("kws", "m.onnx")\n')
    write_model(project.folder / "m.onnx")
    assert "the C compiler compiles for Armv4" in project.build(ok=False)
    assert not (project.folder / "kws.aot/kws.c").exists()


@pytest.mark.skipif(
    not has_tools("arm-none-eabi-gcc", "qemu-system-arm"),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)
def test_examples(tmp_path: Path) -> None:
    """From a copy: the host program, its test, the firmware in QEMU."""
    for folder in ("examples", "toolchains", "compiler"):
        shutil.copytree(
            ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "*.egg-info")
        )
    project = Project(tmp_path / "unused", "")
    output = project.build("-C", str(tmp_path / "examples"), "cores=cortex-m55", "test", "run")
    assert "digits: 8 vectors, 0 mismatches" in output
    digits = re.findall(r"a handwritten (\d): classified as (\d)", output)
    assert len(digits) == 10 and all(is_ == said for is_, said in digits)
