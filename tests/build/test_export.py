"""`aot-model export`: the archive is the same every time, and builds without the compiler in each build
system.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
import scons_project
from bazel_project import BAZEL, REASON, Workspace
from cmake_project import ROOT, has_tools, program, write_model

needs_cc = pytest.mark.skipif(not has_tools("cc"), reason="needs cc")


def export(
    output: Path, *options: str, models: tuple[str, ...] = ("m.onnx",), hash_seed: str = "0"
) -> subprocess.CompletedProcess[str]:
    for bias, model in enumerate(models):
        if not (output.parent / model).exists():
            write_model(output.parent / model, bias=bias)
    command = [
        sys.executable,
        ROOT / "compiler/aot_model",
        "export",
        *(output.parent / m for m in models),
        "-o",
        output,
        "--target=c",
        *options,
    ]
    return subprocess.run(
        command, capture_output=True, text=True, env=os.environ | {"PYTHONHASHSEED": hash_seed}, timeout=60
    )


TWO = ("kws.onnx", "vad.onnx")
BUILD_FILES = (
    "CMakeLists.txt",
    "BUILD.bazel",
    "SConscript",
    "meson.build",
    "kws.mk",
    "library.json",
    "library.properties",
    "idf_component.yml",
    "zephyr/module.yml",
    "examples/kws_zeros/kws_zeros.ino",
)
SAID = "kws 0 6 8\nvad 1 7 9\n"


@pytest.fixture
def unpacked(tmp_path: Path) -> Path:
    """A project that has the folder `nets` of an archive of two models, and a program with both."""
    done = export(tmp_path / "nets.tar.gz", "--interface=module", models=TWO)
    assert done.returncode == 0, done.stderr
    with tarfile.open(tmp_path / "nets.tar.gz") as tar:
        safely = {"filter": "data"} if hasattr(tarfile, "data_filter") else {}  # Python 3.11.4, 3.10.12
        tar.extractall(tmp_path / "project", **safely)
    (tmp_path / "project/main.c").write_text(program("kws", "vad"))
    return tmp_path / "project"


def test_the_same_bytes_every_time(tmp_path: Path) -> None:
    made = []
    for folder, seed in (("one", "1"), ("another", "2")):
        (tmp_path / folder).mkdir()
        for name in ("kws.tar.gz", "kws.tar", "kws.zip", "kws.pack"):
            assert (
                export(tmp_path / folder / name, "--name=kws", "--cmsis-pack=Acme", hash_seed=seed).returncode
                == 0
            )
            made.append((tmp_path / folder / name).read_bytes())
    assert made[:4] == made[4:]
    with tarfile.open(tmp_path / "one/kws.tar") as tar:
        names = tar.getnames()
        assert {entry.mtime for entry in tar} == {0} and {entry.uname for entry in tar} == {""}
    assert {
        f"kws/{name}"
        for name in (
            "src/kws.c",
            "src/kws.h",
            "kws.json",
            "kws.report.txt",
            "LICENSE",
            "README.md",
            *BUILD_FILES,
        )
    } <= set(names)
    with zipfile.ZipFile(tmp_path / "one/kws.zip") as archive:
        assert archive.namelist() == names
    with zipfile.ZipFile(tmp_path / "one/kws.pack") as archive:
        assert "Acme.kws.pdsc" in archive.namelist() and "src/kws.c" in archive.namelist(), (
            "a pack has no folder"
        )
    assert {
        f"kws/src/aot_model/{name}" for name in ("model.h", "module.h", "module.hpp", "tvm_ffi.h")
    } <= set(names)


def test_mistakes(tmp_path: Path) -> None:
    done = export(tmp_path / "kws.rar")
    assert (
        done.returncode == 1
        and "not a kind of archive: 'kws.rar' [E105]" in done.stderr
        and ("hint: end it with one of") in done.stderr
    )
    done = export(tmp_path / "kws.tar", "--max-flash=1", models=TWO)
    assert done.returncode == 1 and done.stderr.count("[E402]") == 2, "the problems of all models"
    done = export(tmp_path / "kws.tar", "--name=one", models=TWO)
    assert done.returncode == 1 and "--name is given 1 times for 2 models [E501]" in done.stderr
    done = export(tmp_path / "kws.tar", "--name=one", "--name=one", models=TWO)
    assert done.returncode == 1 and "'one' is the name of more than one library [E501]" in done.stderr
    for options, complaint in (
        (["--package-version=one"], "'one' is not of the form 1.2.3"),
        (["--cmsis-pack=A B"], "is not the name of a vendor"),
        (["--format=pack"], "say it with --cmsis-pack"),
    ):
        done = export(tmp_path / "kws.tar", *options)
        assert done.returncode == 1 and complaint in done.stderr and "[E501]" in done.stderr
    assert not list(tmp_path.glob("*.tar"))
    assert export(tmp_path / "kws", "--format=zip").returncode == 0 and zipfile.is_zipfile(tmp_path / "kws")


def test_external_parameters_are_in_it(tmp_path: Path) -> None:
    assert export(tmp_path / "nets.tar", "--params=external", models=TWO).returncode == 0
    with tarfile.open(tmp_path / "nets.tar") as tar:
        assert {"nets/kws.params", "nets/vad.params"} <= set(tar.getnames())


@needs_cc
@pytest.mark.skipif(not has_tools("cmake", "ninja"), reason="needs cmake and ninja")
def test_in_cmake(unpacked: Path) -> None:
    lists = (
        "cmake_minimum_required(VERSION 3.13)\nproject(app "
        "C)\nadd_subdirectory(nets)\nadd_executable(app main.c)\ntarget_link_libraries(app PRIVATE kws "
        "vad)\n"
    )
    (unpacked / "CMakeLists.txt").write_text(lists)
    for command in (["cmake", "-S", ".", "-B", "build", "-G", "Ninja"], ["cmake", "--build", "build"]):
        subprocess.run(command, cwd=unpacked, check=True, capture_output=True)
    assert subprocess.run([unpacked / "build/app"], capture_output=True, text=True).stdout == SAID


@needs_cc
@pytest.mark.skipif(not scons_project.has_scons(), reason="needs scons (pip install scons)")
def test_in_scons(unpacked: Path) -> None:
    usage = [
        line[2:] for line in (unpacked / "nets/SConscript").read_text().splitlines() if line.startswith("# ")
    ]
    (unpacked / "SConstruct").write_text("\n".join(["env = Environment()", *usage]) + "\n")
    subprocess.run(scons_project.SCONS, cwd=unpacked, check=True, capture_output=True)
    assert subprocess.run([unpacked / "app"], capture_output=True, text=True).stdout == SAID


@needs_cc
@pytest.mark.skipif(BAZEL is None, reason=REASON)
def test_in_bazel(unpacked: Path, workspace: Workspace) -> None:
    (unpacked / "nets").rename(workspace.folder / "nets")
    (unpacked / "main.c").rename(workspace.folder / "nets/main.c")
    build = workspace.folder / "nets/BUILD.bazel"
    build.write_text(
        'load("@rules_cc//cc:cc_binary.bzl", "cc_binary")\n'
        + build.read_text()
        + 'cc_binary(name = "app", srcs = ["main.c"], deps = ["kws", "vad"])\n'
    )
    workspace.build("//nets:app")
    assert subprocess.run([workspace.output("nets/app")], capture_output=True, text=True).stdout == SAID
