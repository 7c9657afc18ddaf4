"""As a component of ESP-IDF: aot_model_library() in a component, exported components, and objects for its
RISC-V cores.

Functions, flags and warnings are ESP-IDF's; the compiler is the distribution's for RISC-V, and programs run
in QEMU.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from cmake_project import ROOT, Project, has_tools
from packages import DIGITS, PROGRAM, SAID, exported

GCC = "riscv64-unknown-elf-gcc"
PICOLIBC = Path("/usr/lib/picolibc/riscv64-unknown-elf")
has_riscv = pytest.mark.skipif(
    not (has_tools(GCC, "cmake", "ninja") and PICOLIBC.is_dir()), reason=f"needs {GCC} and picolibc for it"
)
MARCH = ("-march=rv32imc", "-mabi=ilp32")
WARNINGS = (
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wundef",
    "-Wdouble-promotion",
    "-Wno-unused-parameter",
    "-Wno-sign-compare",
    "-Wno-enum-conversion",
    "-Wpointer-arith",
)
FLAGS = (
    *MARCH,
    "-ffunction-sections",
    "-fdata-sections",
    "-fstrict-volatile-bitfields",
    "-nostartfiles",
    "-Og",
    "-std=gnu17",
    *WARNINGS,
)
LINK = (
    *MARCH,
    "--specs=picolibc.specs",
    "--oslib=semihost",
    "--crt0=hosted",
    "-Wl,--defsym=__flash=0x80000000,--defsym=__flash_size=0x400000",
    "-Wl,--defsym=__ram=0x80400000,--defsym=__ram_size=0x400000,--defsym=__stack_size=0x4000",
)
QEMU = (
    "qemu-system-riscv32",
    "-machine",
    "virt",
    "-bios",
    "none",
    "-nographic",
    "-monitor",
    "none",
    "-serial",
    "none",
    "-semihosting-config",
    "enable=on,target=native",
    "-kernel",
)

# What ESP-IDF's functions do, as far as components see it: a first pass that asks for requirements, in script
# mode, then the build.
IDF = """
set(ESP_PLATFORM 1)
set(__IDF_OPTIONS "FLAGS")
function (idf_build_get_property var property)
    if (property STREQUAL "COMPILE_OPTIONS")
        set(${var} "${__IDF_OPTIONS}" PARENT_SCOPE)
    else ()
        set(${var} "" PARENT_SCOPE)
    endif ()
endfunction ()
macro (idf_component_register)
    cmake_parse_arguments(_component "" "" "SRCS;INCLUDE_DIRS;REQUIRES" ${ARGN})
    if (CMAKE_SCRIPT_MODE_FILE)
        return()
    endif ()
    get_filename_component(COMPONENT_NAME "${CMAKE_CURRENT_LIST_DIR}" NAME)
    set(COMPONENT_LIB "__idf_${COMPONENT_NAME}")
    if (_component_SRCS)
        add_library(${COMPONENT_LIB} STATIC ${_component_SRCS})
        target_include_directories(${COMPONENT_LIB} PUBLIC ${_component_INCLUDE_DIRS})
        target_compile_options(${COMPONENT_LIB} PRIVATE ${__IDF_OPTIONS})
    else ()
        add_library(${COMPONENT_LIB} INTERFACE)
    endif ()
    foreach (needed IN LISTS _component_REQUIRES)
        target_link_libraries(${COMPONENT_LIB} PUBLIC __idf_${needed})
    endforeach ()
endmacro ()
""".replace("FLAGS", ";".join(f for f in FLAGS if f not in MARCH))
TOOLCHAIN = f"""
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_C_COMPILER {GCC})
set(CMAKE_C_FLAGS_INIT "{" ".join(MARCH)} --specs=picolibc.specs")
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
"""


def runs(elf: Path) -> str:
    if not has_tools("qemu-system-riscv32"):
        pytest.skip("needs qemu-system-riscv32")
    done = subprocess.run(
        [*QEMU, elf],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=60,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    return done.stdout


def idf_project(folder: Path, components: dict[str, str]) -> Project:
    """A project of components, in this order, whose application is the component `main`."""
    lists = "".join(f'add_subdirectory("components/{name}")\n' for name in components)
    link = " ".join(LINK[len(MARCH) + 1 :])  # the others are in the toolchain file
    lists += (
        "add_executable(app empty.c)\ntarget_link_libraries(app PRIVATE -Wl,--whole-archive "
        f"__idf_main -Wl,--no-whole-archive {link})\n"
    )
    project = Project(folder, f"{IDF}\n{lists}", find="")
    project.write("empty.c", "typedef int empty;\n")
    project.write("toolchain.cmake", TOOLCHAIN)
    for name, text in components.items():
        if text:
            project.write(f"components/{name}/CMakeLists.txt", text)
    project.write("components/main/main.c", PROGRAM)
    shutil.copy(DIGITS / "images.h", project.folder / "components/main")
    return project


@has_riscv
def test_a_model_in_a_component(tmp_path: Path) -> None:
    """The library has the flags of the project, without a warning; the program with it runs."""
    main = f"""
    idf_component_register(SRCS main.c INCLUDE_DIRS . REQUIRES aot-model)
    aot_model_library(digits MODEL "{DIGITS}/digits.onnx")
    target_link_libraries(${{COMPONENT_LIB}} PRIVATE digits)
    """
    project = idf_project(tmp_path / "p", {"aot-model": "", "main": main})
    (project.folder / "components/aot-model").symlink_to(ROOT)
    project.configure("--toolchain", "toolchain.cmake")
    log = project.build()
    (command,) = [line for line in log.splitlines() if re.search(r"-c \S*digits\.c", line)]
    assert "-Wdouble-promotion" in command and "-Werror" in command and "rv32imc" in command
    assert "warning:" not in log
    library = next(project.build_folder.rglob("libdigits.a"))
    assert "rv32i2p" in project.run("riscv64-unknown-elf-readelf", "-A", library)
    assert SAID in runs(project.build_folder / "app")


@has_riscv
def test_an_exported_component(tmp_path: Path) -> None:
    main = "idf_component_register(SRCS main.c INCLUDE_DIRS . REQUIRES digits)\n"
    project = idf_project(tmp_path / "p", {"digits": "", "main": main})
    exported(project.folder / "components")
    project.configure("--toolchain", "toolchain.cmake")
    assert "warning:" not in project.build()
    assert SAID in runs(project.build_folder / "app")


def test_requirements_are_asked_in_script_mode(tmp_path: Path) -> None:
    """ESP-IDF runs the CMakeLists.txt of components as scripts first, where project() and add_library() are
    errors.
    """
    exported(tmp_path)
    for folder in (ROOT, tmp_path / "digits"):
        script = tmp_path / "early.cmake"
        script.write_text(f'{IDF}\ninclude("{folder}/CMakeLists.txt")\n')
        done = subprocess.run(["cmake", "-P", script], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr


def test_this_component_is_packed(tmp_path: Path) -> None:
    """What the component manager packs of this repository is enough to compile a model."""
    compote = shutil.which("compote", path=f"{Path(sys.executable).parent}")
    if compote is None:
        pytest.skip("needs compote (pip install idf-component-manager)")
    facts = yaml.safe_load((ROOT / "idf_component.yml").read_text())
    from aot_model import __version__

    assert facts["version"] == __version__
    done = subprocess.run(
        [compote, "component", "pack", "--name", "aot-model", "--dest-dir", tmp_path],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    shutil.unpack_archive(tmp_path / f"aot-model_{__version__}.tgz", tmp_path / "unpacked")
    assert not [p for p in (tmp_path / "unpacked").rglob("*") if p.name in ("tests", "__pycache__")]
    command = [
        sys.executable,
        tmp_path / "unpacked/compiler/aot_model",
        "compile",
        DIGITS / "digits.onnx",
        "-o",
        tmp_path / "out",
        "--target=c",
    ]
    subprocess.run(command, check=True, env={"PATH": "/usr/bin:/bin"})
