"""The CMake functions' arguments: every documented keyword reaches the compiler, every mistake is named."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cmake_project import ROOT, Project, has_tools, program, write_model, write_vectors
from keyword_samples import FILES, SAMPLES, spellings, words, write_model_for_all

from aot_model.cli.keywords import TEST

pytestmark = pytest.mark.skipif(not has_tools("cmake", "ninja", "cc"), reason="needs cmake, ninja and cc")


def recording_compiler(folder: Path, **answers: object) -> Path:
    """A compiler that writes the arguments of each call as a line of calls.jsonl, then does what ours does.

    `answers` replace what it says of itself.
    """
    script = folder / "recording_compiler.py"
    script.write_text(f"""#!{sys.executable}
import json, subprocess, sys
command = [sys.executable, "-m", "aot_model", *sys.argv[1:]]
if "--version" in sys.argv:
    answer = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    print(json.dumps(answer | json.loads({json.dumps(json.dumps(answers))})))
else:
    with open({str(folder / "calls.jsonl")!r}, "a") as log:
        print(json.dumps(sys.argv[1:]), file=log)
    sys.exit(subprocess.run(command).returncode)
""")
    script.chmod(0o755)
    return script


def calls(project: Project) -> dict[str, list[str]]:
    """Arguments of the recorded calls by the name of the library, or of the output."""
    lines = (project.folder / "calls.jsonl").read_text().splitlines()
    found = {}
    for arguments in map(json.loads, lines):
        names = [a.removeprefix("--name=") for a in arguments if a.startswith("--name=")]
        if arguments[0] in ("size", "stack"):
            found[arguments[0]] = arguments
        else:
            output = Path(arguments[arguments.index("-o") + 1])
            found[names[0] if names else output.parent.stem] = arguments
    return found


@pytest.fixture
def recorded(tmp_path: Path) -> Project:
    project = Project(tmp_path / "p", "")
    compiler = recording_compiler(project.folder)
    project.environment["PYTHONPATH"] = str(ROOT / "compiler")
    project.hints = (f"-DAotModel_DIR={ROOT / 'cmake'}", f"-DAotModel_COMPILER={compiler}")
    return project


def test_every_keyword_of_aot_model_library(recorded: Project) -> None:
    keywords = {
        "MODEL": "m.onnx",
        "NAME": "net",
        "TARGET": "c",
        "FLAGS_FROM": "board",
        "OFFLOAD": "cmsis-nn",
        "TARGET_PLUGINS": "plugin.py",
        "COUNT_CODE": "",
        "MAX_STACK": "4k",
        "STACK_ALLOWANCE": "1k",
        "OPTIONS": '"$<$<CONFIG:None>:--dim=never=1>" --debug',
        "DEPENDS": "other.txt",
        "METADATA": "net_json",
        "REPORT": "html",
        "EXCLUDE_FROM_ALL": "",
    }
    for name, value in SAMPLES.items():
        values = (
            [f"{k}={v}" for k, v in value.items()]
            if isinstance(value, dict)
            else value
            if isinstance(value, list)
            else [value]
        )
        keywords[name.upper()] = "" if value is True else " ".join(map(str, values))
    assert spellings("cmake") == set(keywords)
    arguments = "\n  ".join(f"{k} {v}" for k, v in keywords.items())
    recorded.write(
        "CMakeLists.txt",
        (recorded.folder / "CMakeLists.txt").read_text()
        + f"add_library(board INTERFACE)\naot_model_library(kws\n  {arguments})\nfile(WRITE "
        f'"${{CMAKE_BINARY_DIR}}/paths" "${{net_json}}\\n${{html}}")\n',
    )
    write_model_for_all(recorded.folder / "m.onnx")
    (recorded.folder / "other.txt").touch()
    recorded.write("plugin.py", "TARGETS = ()\n")
    recorded.configure()
    recorded.build()
    assert not (recorded.folder / "calls.jsonl").exists(), "EXCLUDE_FROM_ALL"
    recorded.build("--target", "kws")

    folder = recorded.build_folder / "kws.aot"
    report = folder / "net.report.html"
    call = calls(recorded)["net"]
    assert call[0] == "compile" and call[call.index("-o") + 1] == str(folder)
    assert sorted(call[1:]) == sorted(
        [
            str(recorded.folder / "m.onnx"),
            "-o",
            str(folder),
            "--quiet",
            "--name=net",
            "--target=cmsis-nn,c",
            *words(f"{recorded.folder}/"),
            f"--target-plugin={recorded.folder}/plugin.py",
            "--keep-unchanged",
            f"--report={report}",
            "--debug",
            f"--depfile={folder / 'net.d'}",
        ]
    )
    assert calls(recorded)["size"][-1] == "--max-flash=200k"
    assert calls(recorded)["stack"][-2:] == ["--stack-allowance=1k", "--max-stack=4k"]
    assert {path.name for path in folder.iterdir()} == {*FILES, "net.report.html", "net.d"}
    assert (recorded.build_folder / "paths").read_text().split() == [str(folder / "net.json"), str(report)]
    assert json.loads((folder / "net.json").read_text())["name"] == "net"
    assert report.read_text().startswith("<!DOCTYPE html>")

    (recorded.folder / "calls.jsonl").unlink()
    (recorded.folder / "other.txt").touch()
    recorded.build("--target", "kws")
    assert "net" in calls(recorded), "DEPENDS"


def test_every_keyword_of_aot_model_test_and_benchmark(recorded: Project) -> None:
    keywords = {
        "LIBRARY": "kws",
        "VECTORS": "v.npz",
        "ATOL": "0.5",
        "RTOL": "0.25",
        "MAX_LSB": "2",
        "LABELS": "a b",
    }
    assert {name for keyword in TEST if (name := keyword.spelling("cmake"))} == set(keywords)
    arguments = " ".join(f"{k} {v}" for k, v in keywords.items())
    recorded.write(
        "CMakeLists.txt",
        (recorded.folder / "CMakeLists.txt").read_text()
        + f"aot_model_library(kws MODEL m.onnx)\naot_model_test(test_kws {arguments})\n"
        + "aot_model_benchmark(bench_kws LIBRARY kws RUNS 7)\n",
    )
    write_model(recorded.folder / "m.onnx")
    vectors = write_vectors(recorded.folder / "v.npz")
    recorded.configure()
    recorded.build("--target", "test_kws", "bench_kws")
    metadata = str(recorded.build_folder / "kws.aot/kws.json")
    test, bench = recorded.build_folder / "test_kws.aot", recorded.build_folder / "bench_kws.aot"
    assert calls(recorded)["test_kws"] == [
        *("test-main", metadata, "-o", str(test / "main.c"), f"--vectors={vectors}"),
        *("--atol=0.5", "--rtol=0.25", "--max-lsb=2", f"--depfile={test / 'main.d'}"),
    ]
    assert calls(recorded)["bench_kws"] == [
        *(
            "benchmark-main",
            metadata,
            "-o",
            str(bench / "main.c"),
            "--runs=7",
            f"--depfile={bench / 'main.d'}",
        )
    ]
    for label in "ab":
        recorded.ctest("-L", label, "--no-tests=error")


MISTAKES = {
    "aot_model_library(kws MODEL m.onnx WORKSPCE caller)": "aot_model_library(kws): unknown argument: "
    "WORKSPCE;caller",
    "aot_model_library(kws MODEL m.onnx NAME)": "aot_model_library(kws): no value after: NAME",
    "aot_model_library(kws)": "aot_model_library(kws): MODEL is missing",
    "aot_model_library(kws MODEL gone.onnx)": "aot_model_library(kws): there is no model",
    "aot_model_library(kws MODEL m.onnx NAME a-b)": "aot_model_library(kws): NAME 'a-b' is not a C identifier",  # noqa: E501
    "aot_model_test(t VECTORS v.npz)": "aot_model_test(t): LIBRARY is missing",
    "aot_model_test(t LIBRARY gone VECTORS v.npz)": "aot_model_test(t): LIBRARY 'gone' was not made by "
    "aot_model_library()",
    "aot_model_test(t LIBRARY gone)": "aot_model_test(t): VECTORS is missing",
    "aot_model_test(t LIBRARY gone VECTORS gone.npz)": "aot_model_test(t): there are no vectors",
    "aot_model_test(t LIBRARY gone VECTOR v.npz)": "aot_model_test(t): unknown argument: VECTOR;v.npz",
    "aot_model_arena(a)": "aot_model_arena(a): LIBRARIES are missing",
    "aot_model_arena(a LIBRARIES gone)": "aot_model_arena(a): LIBRARIES 'gone' was not made by "
    "aot_model_library()",
    "aot_model_benchmark(b LIBRARY gone)": "aot_model_benchmark(b): LIBRARY 'gone' was not made by "
    "aot_model_library()",
    "aot_model_benchmark(b LIBRARY gone RUN 3)": "aot_model_benchmark(b): unknown argument: RUN;3",
}


def test_mistakes_stop_the_configuration_and_are_named(tmp_path: Path) -> None:
    """One project, configured again for each mistake."""
    project = Project(tmp_path / "p", "include(mistake.cmake)\n")
    write_model(project.folder / "m.onnx")
    write_vectors(project.folder / "v.npz")
    for mistake, message in MISTAKES.items():
        project.write("mistake.cmake", mistake)
        assert message in project.configure(ok=False)


def test_a_project_without_c(tmp_path: Path) -> None:
    project = Project(tmp_path / "p", "aot_model_library(kws MODEL m.onnx)", languages="CXX")
    write_model(project.folder / "m.onnx")
    assert "aot_model_library(kws): the generated code is C: enable the language" in project.configure(
        ok=False
    )


def test_target_names_that_are_no_identifiers(tmp_path: Path) -> None:
    lists = (
        "aot_model_library(key-word.net MODEL m.onnx)\nadd_executable(app "
        "main.c)\ntarget_link_libraries(app key-word.net)\n"
    )
    project = Project(tmp_path / "p", lists)
    write_model(project.folder / "m.onnx")
    project.write("main.c", program("key_word_net"))
    project.configure()
    project.build()
    assert project.run(project.build_folder / "app") == "key_word_net 0 6 8\n"


def test_a_budget_that_is_too_small_fails_the_build(tmp_path: Path) -> None:
    project = Project(tmp_path / "p", "aot_model_library(kws MODEL m.onnx MAX_FLASH 8)")
    write_model(project.folder / "m.onnx")
    project.configure()
    output = project.build(ok=False)
    assert re.search(r"error: .*budget.*\[E402\]", output, re.DOTALL)
    assert "Traceback" not in output
    assert not list((project.build_folder / "kws.aot").glob("kws.[ch]"))


def test_a_python_that_lacks_packages(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    python = tmp_path / "bare/bin/python"
    project = Project(tmp_path / "p", "")
    project.hints = (f"-DAotModel_DIR={ROOT / 'cmake'}", f"-DPython3_EXECUTABLE={python}")
    output = project.configure(ok=False)
    assert f"{python} lacks packages that the compiler needs: numpy" in output
    assert f"{python} -m pip install numpy" in output


def test_a_compiler_that_does_not_run(tmp_path: Path) -> None:
    project = Project(tmp_path / "p", "")
    project.hints = (f"-DAotModel_DIR={ROOT / 'cmake'}", "-DAotModel_COMPILER=/gone/aot-model")
    output = project.configure(ok=False)
    assert "the compiler does not run: /gone/aot-model --version --json" in output
    assert "set AotModel_COMPILER" in output


def test_a_compiler_of_another_version(recorded: Project) -> None:
    recording_compiler(recorded.folder, version="9.9.9")
    output = recorded.configure(ok=False)
    assert re.search(r"CMake files are of version \S+, but the compiler is 9\.9\.9", output)


def test_an_optional_package_that_is_not_there(tmp_path: Path) -> None:
    project = Project(
        tmp_path / "p", 'message(STATUS "found: ${AotModel_FOUND}")', find="find_package(AotModel QUIET)"
    )
    project.hints = (f"-DAotModel_DIR={ROOT / 'cmake'}", "-DAotModel_COMPILER=/gone/aot-model")
    assert "found: FALSE" in project.configure() or "found: 0" in project.configure()


@pytest.mark.parametrize(
    ("asked", "found"),
    [("", 1), ("0.1", 1), ("0.1.0", 1), ("0.0.9", 0), ("0.2", 0), ("1", 0), ("0", 1), ("0.1...<1", 1)],
)
def test_versions(tmp_path: Path, asked: str, found: int) -> None:
    script = tmp_path / "versions.cmake"
    version = (ROOT / "compiler/aot_model/__init__.py").read_text()
    assert (match := re.search(r'__version__ = "(.*)"', version))
    assert f'set(PACKAGE_VERSION "{match[1]}")' in (ROOT / "cmake/AotModelConfigVersion.cmake").read_text()
    minimum, _, maximum = asked.partition("...")
    script.write_text(f"""
        set(PACKAGE_FIND_VERSION "{minimum}")
        set(PACKAGE_FIND_VERSION_RANGE "{asked if maximum else ""}")
        set(PACKAGE_FIND_VERSION_MIN "{minimum}")
        set(PACKAGE_FIND_VERSION_MAX "{maximum.lstrip("<")}")
        set(PACKAGE_FIND_VERSION_RANGE_MAX {"EXCLUDE" if "<" in maximum else "INCLUDE"})
        include("{ROOT}/cmake/AotModelConfigVersion.cmake")
        message("compatible: ${{PACKAGE_VERSION_COMPATIBLE}}")
    """)
    done = subprocess.run(["cmake", "-P", script], capture_output=True, text=True, check=True)
    assert f"compatible: {bool(found)}".upper() in done.stderr.upper()
