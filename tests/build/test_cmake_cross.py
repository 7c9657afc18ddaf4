"""The CMake rules in projects that cross to Cortex-M: toolchain files, the compiler as a host tool, tests in QEMU."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from cmake_project import ROOT, Project, has_tools, program, write_model, write_vectors

from aot_model.targets.registry import parse_target

TOOLCHAINS = ROOT / "toolchains"
CORES = sorted(path.stem for path in TOOLCHAINS.glob("cortex-m*.cmake"))

pytestmark = pytest.mark.skipif(
    not has_tools("cmake", "ninja", "arm-none-eabi-gcc"), reason="needs cmake, ninja and arm-none-eabi-gcc"
)
in_qemu = pytest.mark.skipif(not has_tools("qemu-system-arm"), reason="needs qemu-system-arm")


@pytest.mark.parametrize(
    ("settings", "target"),
    [
        ("", "host"),
        ("set(CMAKE_SYSTEM_PROCESSOR x86_64)", "host"),
        ("set(CMAKE_CROSSCOMPILING TRUE)", "c"),
        ("set(CMAKE_CROSSCOMPILING TRUE)\nset(CMAKE_SYSTEM_PROCESSOR cortex-m7)", "cortex-m7"),
        ('set(CMAKE_C_FLAGS "-O2 -mcpu=cortex-m4 -mthumb")', "cortex-m4"),
        ('set(CMAKE_C_FLAGS "-mcpu=cortex-m55+nomve.fp")', "cortex-m55"),
        ('set(CMAKE_C_FLAGS "-mcpu=cortex-m0plus")\nset(CMAKE_SYSTEM_PROCESSOR arm)', "cortex-m0"),
        ("add_compile_options(-Os $<$<COMPILE_LANGUAGE:C>:-mcpu=cortex-m33>)", "cortex-m33"),
        ("set(CMAKE_CROSSCOMPILING TRUE)\nadd_compile_options(-mcpu=cortex-a53)", "c"),
        ("set(CMAKE_CROSSCOMPILING TRUE)\nset(CMAKE_SYSTEM_PROCESSOR Cortex-M85)", "cortex-m55"),
        ('set(AOT_MODEL_TARGET cortex-m3)\nset(CMAKE_C_FLAGS "-mcpu=cortex-m4")', "cortex-m3"),
    ],
)
def test_target_follows_the_c_compiler(tmp_path: Path, settings: str, target: str) -> None:
    (tmp_path / "CMakeLists.txt").write_text(f"""
        cmake_minimum_required(VERSION 3.25)
        project(p LANGUAGES NONE)
        include("{ROOT}/cmake/AotModelTarget.cmake")
        {settings}
        _aot_model_default_target(target)
        message(STATUS "target: ${{target}}.")
    """)
    command = ["cmake", "-S", tmp_path, "-B", tmp_path / "build", "-G", "Ninja"]
    assert f"target: {target}.\n" in subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_the_compiler_is_a_host_tool(tmp_path: Path) -> None:
    """A toolchain file that restricts searches to the target's files, and the CMake files given by AotModel_DIR."""
    lists = "aot_model_library(kws MODEL m.onnx)\nadd_library(app STATIC main.c)\ntarget_link_libraries(app PRIVATE kws)\n"
    project = Project(tmp_path / "p", lists)
    write_model(project.folder / "m.onnx")
    project.write("main.c", program("kws").replace("int main", "int app"))
    project.write(
        "toolchain.cmake",
        f"""
        set(CMAKE_SYSTEM_NAME Generic)
        set(CMAKE_SYSTEM_PROCESSOR arm)
        set(CMAKE_C_COMPILER arm-none-eabi-gcc)
        set(CMAKE_C_FLAGS_INIT "-mcpu=cortex-m4 -mthumb -mfloat-abi=hard -mfpu=auto")
        set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
        set(CMAKE_FIND_ROOT_PATH "{tmp_path / "sysroot"}")
        set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
        set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
        set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
        set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
        """,
    )
    project.hints = (f"-DAotModel_DIR={ROOT / 'cmake'}",)
    project.environment["PATH"] = f"{Path(sys.executable).parent}:/usr/local/bin:/usr/bin:/bin"
    project.configure("--toolchain", "toolchain.cmake")
    project.build()
    assert json.loads((project.build_folder / "kws.aot/kws.json").read_text())["target"] == "cortex-m4"
    elf = project.run("arm-none-eabi-readelf", "-A", project.build_folder / "libkws.a")
    assert "Tag_CPU_arch: v7E-M" in elf


@pytest.mark.parametrize("name", [*CORES, "host"])
def test_toolchain_files_have_the_flags_of_the_targets(name: str) -> None:
    text = (TOOLCHAINS / f"{name}.cmake").read_text()
    assert name == "host" or f"set(AOT_MODEL_TARGET {name})" in text
    flags = re.search(r'FLAGS(?:_INIT)? "(.*)"', text)
    assert flags and tuple(flags[1].split()) == parse_target(name).c_flags


@in_qemu
@pytest.mark.parametrize("core", CORES)
def test_vectors_in_qemu(tmp_path: Path, core: str) -> None:
    """aot_model_test() on every core: right vectors pass, wrong ones fail with the program's status and words."""
    lists = """
    aot_model_library(kws MODEL m.onnx)
    aot_model_test(right LIBRARY kws VECTORS right.npz)
    aot_model_test(wrong LIBRARY kws VECTORS wrong.npz)
    """
    project = Project(tmp_path / "p", lists)
    write_model(project.folder / "m.onnx")
    write_vectors(project.folder / "right.npz")
    write_vectors(project.folder / "wrong.npz", bias=1)
    project.configure("--toolchain", str(TOOLCHAINS / f"{core}.cmake"), "-DCMAKE_BUILD_TYPE=MinSizeRel")
    project.build()
    assert json.loads((project.build_folder / "kws.aot/kws.json").read_text())["target"].startswith(core)
    project.ctest("-R", "right", "--timeout", "60")
    output = project.ctest("-R", "wrong", "--timeout", "60", ok=False)
    assert re.search(r"vector 0: y\[\d\] is -?\d\S*, should be \d", output)
    assert "Timeout" not in output


def test_without_an_emulator_tests_are_built_and_shown_as_disabled(tmp_path: Path) -> None:
    project = Project(tmp_path / "p", "aot_model_library(kws MODEL m.onnx)\naot_model_test(t LIBRARY kws VECTORS v.npz)\n")
    write_model(project.folder / "m.onnx")
    write_vectors(project.folder / "v.npz")
    project.configure("--toolchain", str(TOOLCHAINS / "cortex-m3.cmake"), "-DAotModel_QEMU=")
    project.build()
    assert "Disabled" in project.ctest()


@in_qemu
@pytest.mark.parametrize("core", ["cortex-m4", "cortex-m55"])
def test_firmware_example(tmp_path: Path, core: str) -> None:
    project = Project(tmp_path / "unused", "")
    example, build = ROOT / "examples/digits_firmware", tmp_path / "build"
    toolchain = TOOLCHAINS / f"{core}.cmake"
    project.run("cmake", "-S", example, "-B", build, "-G", "Ninja", "--toolchain", toolchain, *project.hints)
    project.run("cmake", "--build", build)
    output = project.run("cmake", "--build", build, "--target", "run")
    digits = re.findall(r"a handwritten (\d): classified as (\d)", output)
    assert len(digits) == 10 and all(is_ == said for is_, said in digits)


def test_host_example(tmp_path: Path) -> None:
    project = Project(tmp_path / "unused", "")
    example, build = ROOT / "examples/digits_host", tmp_path / "build"
    project.run("cmake", "-S", example, "-B", build, "-G", "Ninja", *project.hints, "-DCMAKE_BUILD_TYPE=Release")
    project.run("cmake", "--build", build)
    assert "10 of 10 digits are right" in project.run(build / "digits_host")
    project.run("ctest", "--test-dir", build)
