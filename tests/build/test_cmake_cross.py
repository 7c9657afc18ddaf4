"""The CMake rules in projects that cross to Cortex-M: toolchain files, the compiler as a host tool, tests in
QEMU.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from cmake_project import ROOT, Project, compiled_objects, has_tools, program, write_model, write_vectors

from aot_model.targets.registry import parse_target

TOOLCHAINS = ROOT / "toolchains"
CORES = sorted(path.stem for path in TOOLCHAINS.glob("cortex-m*.cmake"))

pytestmark = pytest.mark.skipif(
    not has_tools("cmake", "ninja", "arm-none-eabi-gcc"), reason="needs cmake, ninja and arm-none-eabi-gcc"
)
in_qemu = pytest.mark.skipif(not has_tools("qemu-system-arm"), reason="needs qemu-system-arm")


ARM = """
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR arm)
set(CMAKE_C_COMPILER arm-none-eabi-gcc)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
"""
CUBE = "set(CMAKE_C_COMPILER_FORCED TRUE)\nset(CMAKE_C_COMPILER_ID GNU)\n"
HARD = "-mthumb -mfloat-abi=hard -mfpu=auto"
ZEPHYR = """
add_library(zephyr_interface INTERFACE)
target_compile_options(zephyr_interface INTERFACE $<$<COMPILE_LANGUAGE:C>:-imacros> $<$<COMPILE_LANGUAGE:C>:{folder}/autoconf.h>
                       "SHELL: -mcpu=cortex-m3" -mthumb $<$<COMPILE_LANGUAGE:CXX>:-fno-rtti>)
"""  # noqa: E501


FLAGS = [  # toolchain file, lists before and after the library, target, architecture of the object
    (f'set(CMAKE_C_FLAGS_INIT "-O2 -mcpu=cortex-m4 {HARD}")', "", "", "cortex-m4", "v7E-M"),
    (f'set(CMAKE_C_FLAGS_INIT "-mcpu=cortex-m7 {HARD} -flto")', "", "", "cortex-m7", "v7E-M"),
    (f'set(CMAKE_C_FLAGS_INIT "-mcpu=cortex-m55 {HARD}")', "", "", "cortex-m55", "v8.1-M.mainline"),
    (f'set(CMAKE_C_FLAGS_INIT "-mcpu=cortex-m55+nomve {HARD}")', "", "", "cortex-m33", "v8.1-M.mainline"),
    ('set(CMAKE_C_FLAGS_INIT "-mcpu=cortex-m33+nodsp -mthumb")', "", "", "cortex-m3", "v8-M.mainline"),
    ('set(CMAKE_C_FLAGS_INIT "-mcpu=cortex-m23 -mthumb")', "", "", "cortex-m0", "v8-M.baseline"),
    ('set(CMAKE_C_FLAGS_INIT "-mcpu=cortex-a9")', "", "", "c", "v7"),
    (CUBE, f'set(CMAKE_C_FLAGS "-mcpu=cortex-m4 {HARD}")', "", "cortex-m4", "v7E-M"),
    ("", "add_compile_options(-march=armv7e-m -mthumb $<$<CONFIG:Debug>:-Og>)", "", "cortex-m4", "v7E-M"),
    ("", ZEPHYR, "", "cortex-m3", "v7"),
    (
        "",
        "add_library(board INTERFACE)\ntarget_compile_options(board INTERFACE -mcpu=cortex-m0plus -mthumb)",
        "",
        "cortex-m0",
        "v6S-M",
    ),
    ("", "", "target_compile_options(kws PRIVATE -mcpu=cortex-m33 -mthumb)", "cortex-m33", "v8-M.mainline"),
    (
        "",
        "",
        "add_library(late INTERFACE)\ntarget_compile_options(late INTERFACE -mcpu=cortex-m0 -mthumb)\n"
        "target_link_libraries(kws PRIVATE late)",
        "cortex-m0",
        "v6S-M",
    ),
    (
        'set(CMAKE_C_FLAGS_INIT "-mcpu=cortex-m4")\nset(AOT_MODEL_TARGET cortex-m3)',
        "",
        "",
        "cortex-m3",
        "v7E-M",
    ),
]
HARDEST = [c for c in FLAGS if "zephyr" in c[1] or "late" in c[2] or "flto" in c[0]]


@pytest.mark.parametrize(
    ("generator", "toolchain", "before", "after", "target", "architecture"),
    [("Ninja", *c) for c in FLAGS]
    + [(g, *c) for g in ("Unix Makefiles", "Ninja Multi-Config") for c in HARDEST],
)
def test_target_follows_the_flags(
    tmp_path: Path, generator: str, toolchain: str, before: str, after: str, target: str, architecture: str
) -> None:
    """Wherever the flags come from, the library is made and compiled for the processor that they name."""
    flags_from = " FLAGS_FROM board" if "board" in before else ""
    folder = tmp_path / "p"
    before = before.replace("{folder}", folder.as_posix())
    project = Project(
        folder, f"{before}\naot_model_library(kws MODEL m.onnx{flags_from})\n{after}\n", generator=generator
    )
    project.write("autoconf.h", "#define CONFIG_SOMETHING 1\n")
    project.write("toolchain.cmake", ARM + toolchain)
    write_model(project.folder / "m.onnx")
    project.configure("--toolchain", "toolchain.cmake")
    project.build()
    metadata = next(project.build_folder.glob("kws.aot/**/kws.json"))
    assert json.loads(metadata.read_text())["target"].startswith(target)
    library = next(project.build_folder.rglob("libkws.a"))
    attributes = project.run("arm-none-eabi-readelf", "-A", library)
    if "flto" not in toolchain:
        assert f"Tag_CPU_arch: {architecture}\n" in attributes
    assert compiled_objects(project.build()) == set(), "a second build does nothing"


def test_no_core_is_an_error(tmp_path: Path) -> None:
    """Without any flag GCC compiles for Armv4T: code that links and hangs."""
    project = Project(tmp_path / "p", "aot_model_library(kws MODEL m.onnx)\n")
    project.write("toolchain.cmake", ARM)
    write_model(project.folder / "m.onnx")
    project.configure("--toolchain", "toolchain.cmake")
    output = project.build(ok=False)
    assert "the C compiler compiles for Armv4" in output and "FLAGS_FROM" in output and "[E503]" in output
    assert not (project.build_folder / "kws.aot/kws.c").exists()


@pytest.mark.skipif(not has_tools("aarch64-linux-gnu-gcc"), reason="needs aarch64-linux-gnu-gcc")
def test_aarch64_linux_has_its_vectors(tmp_path: Path) -> None:
    project = Project(tmp_path / "p", "aot_model_library(kws MODEL m.onnx)\n")
    project.write(
        "toolchain.cmake",
        "set(CMAKE_SYSTEM_NAME Linux)\nset(CMAKE_SYSTEM_PROCESSOR aarch64)\nset(CMAKE_C_COMPILER "
        "aarch64-linux-gnu-gcc)",
    )
    write_model(project.folder / "m.onnx")
    project.configure("--toolchain", "toolchain.cmake")
    project.build()
    assert "neon" in (project.build_folder / "kws.aot/kws.json").read_text()


def test_the_compiler_is_a_host_tool(tmp_path: Path) -> None:
    """A toolchain file that restricts searches to the target's files, and the CMake files given by
    AotModel_DIR.
    """
    lists = (
        "aot_model_library(kws MODEL m.onnx)\nadd_library(app STATIC main.c)\ntarget_link_libraries(app "
        "PRIVATE kws)\n"
    )
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
    """aot_model_test() on every core: right vectors pass, wrong ones fail with the program's status and
    words.
    """
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
    project = Project(
        tmp_path / "p", "aot_model_library(kws MODEL m.onnx)\naot_model_test(t LIBRARY kws VECTORS v.npz)\n"
    )
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
    project.run(
        "cmake", "-S", example, "-B", build, "-G", "Ninja", *project.hints, "-DCMAKE_BUILD_TYPE=Release"
    )
    project.run("cmake", "--build", build)
    assert "10 of 10 digits are right" in project.run(build / "digits_host")
    project.run("ctest", "--test-dir", build)
