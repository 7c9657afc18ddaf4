"""The module of Zephyr: its files as Zephyr reads them, a stand-in of its build system, and real builds where
ZEPHYR_BASE is set.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from cmake_project import ROOT, Project, has_tools

MODULE = ROOT / "zephyr"
needs_arm = pytest.mark.skipif(
    not has_tools("cmake", "ninja", "arm-none-eabi-gcc"), reason="needs cmake, ninja and arm-none-eabi-gcc"
)
in_qemu = pytest.mark.skipif(not has_tools("qemu-system-arm"), reason="needs qemu-system-arm")

# what Zephyr's documentation of module.yml allows of what we use; older ones refuse all else
MODULE_SCHEMA = {
    "type": "map",
    "mapping": {
        "name": {"type": "str", "required": True, "pattern": r"[a-z][a-z0-9_-]*"},
        "build": {"type": "map", "mapping": {"cmake": {"type": "str"}, "kconfig": {"type": "str"}}},
        "samples": {"type": "seq", "sequence": [{"type": "str"}]},
        "tests": {"type": "seq", "sequence": [{"type": "str"}]},
    },
}
LIBC = "config REQUIRES_FULL_LIBC\n\tbool\nconfig CBPRINTF_FP_SUPPORT\n\tbool\n"


def test_module_file() -> None:
    from pykwalify.core import Core

    content = yaml.safe_load((MODULE / "module.yml").read_text())
    Core(source_data=content, schema_data=MODULE_SCHEMA).validate()
    assert (ROOT / content["build"]["cmake"] / "CMakeLists.txt").is_file()
    assert (ROOT / content["build"]["kconfig"]).is_file()
    assert all((ROOT / folder).is_dir() for folder in (*content["samples"], *content["tests"]))


@pytest.mark.parametrize(
    ("given", "wanted"),
    [
        ({}, {"REQUIRES_FULL_LIBC": 0, "CBPRINTF_FP_SUPPORT": 0, "AOT_MODEL_FULL_LIBC": 0}),
        ({"AOT_MODEL": 2}, {"REQUIRES_FULL_LIBC": 2, "CBPRINTF_FP_SUPPORT": 0}),
        ({"AOT_MODEL": 2, "AOT_MODEL_FULL_LIBC": 0}, {"REQUIRES_FULL_LIBC": 0}),
        ({"AOT_MODEL": 2, "AOT_MODEL_PROGRAMS": 2}, {"CBPRINTF_FP_SUPPORT": 2}),
    ],
)
def test_kconfig(tmp_path: Path, given: dict[str, int], wanted: dict[str, int]) -> None:
    import kconfiglib

    (tmp_path / "Kconfig").write_text(f'{LIBC}source "{MODULE / "Kconfig"}"\n')
    config = kconfiglib.Kconfig(str(tmp_path / "Kconfig"))
    assert not config.warnings
    for name, value in given.items():
        assert config.syms[name].set_value(value)
    assert {name: config.syms[name].tri_value for name in wanted} == wanted


@pytest.mark.parametrize(
    "path",
    sorted([*MODULE.rglob("sample.yaml"), *MODULE.rglob("testcase.yaml")]),
    ids=lambda p: p.parent.name,
)
def test_twister_files(path: Path) -> None:
    """Every scenario waits for a line that the program of its application can print."""
    content = yaml.safe_load(path.read_text())
    common = content.get("common", {})
    texts = "".join(
        p.read_text()
        for p in [
            *path.parent.rglob("*.c"),
            *(ROOT / "compiler/aot_model/emit/templates").glob("*_main.c.j2"),
        ]
    )
    options = set(re.findall(r"config (\w+)", "".join(p.read_text() for p in MODULE.rglob("Kconfig"))))
    assert content["tests"]
    for name, scenario in content["tests"].items():
        assert re.fullmatch(r"[a-z0-9_]+(\.[a-z0-9_]+)+", name)
        both = {**common, **scenario}
        assert both["harness"] == "console" and both["platform_allow"]
        for regex in both["harness_config"]["regex"]:
            assert regex.split()[-1] in texts
        for line in scenario.get("extra_configs", []):
            option = line.removeprefix("CONFIG_").partition("=")[0]
            assert option in options | {"FPU"}


STAND_IN = """
add_library(zephyr_interface INTERFACE)
target_compile_options(zephyr_interface INTERFACE "SHELL: -imacros ${CMAKE_CURRENT_SOURCE_DIR}/autoconf.h" -mcpu=cortex-m3 -mthumb -ffreestanding)
target_compile_definitions(zephyr_interface INTERFACE __ZEPHYR__=1 KERNEL)
target_include_directories(zephyr_interface INTERFACE include)
set(CONFIG_AOT_MODEL y)
set(CONFIG_CBPRINTF_FP_SUPPORT y)
function (dt_nodelabel var)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "NODELABEL" "")
    set(${var} "${tree_${arg_NODELABEL}}" PARENT_SCOPE)
endfunction ()
function (dt_prop var)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "PATH;PROPERTY" "")
    set(${var} "${tree_${arg_PATH}_${arg_PROPERTY}}" PARENT_SCOPE)
endfunction ()
function (dt_reg_size var)
    cmake_parse_arguments(PARSE_ARGV 1 arg "" "PATH" "")
    set(${var} "${tree_${arg_PATH}_size}" PARENT_SCOPE)
endfunction ()
set(tree_fast "/memory@21000000")
set("tree_/memory@21000000_zephyr,memory-region" "FAST-RAM")
set("tree_/memory@21000000_size" 0x4000)
set(tree_odd "/soc/uart")
add_library(app STATIC app.c)
target_link_libraries(app PRIVATE zephyr_interface)
add_subdirectory("@MODULE@" modules/aot-model)
""".replace("@MODULE@", MODULE.as_posix())  # noqa: E501
TOOLCHAIN = """
set(CMAKE_SYSTEM_NAME Generic)
set(CMAKE_SYSTEM_PROCESSOR arm)
set(CMAKE_C_COMPILER arm-none-eabi-gcc)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
"""
KERNEL = """#pragma once
#include <stdint.h>
uint32_t k_cycle_get_32(void);
int sys_clock_hw_cycles_per_sec(void);
"""
PRINTK = "#pragma once\nvoid printk(const char *format, ...);\n"


def stand_in(folder: Path, lists: str) -> Project:
    """A project that keeps flags, device tree and the application where Zephyr does."""
    project = Project(folder, f"{STAND_IN}\n{lists}\n", find="")
    project.write("app.c", "extern int app_is_here;\n")
    project.write("autoconf.h", "#define CONFIG_AOT_MODEL 1\n")
    project.write("include/zephyr/kernel.h", KERNEL)
    project.write("include/zephyr/sys/printk.h", PRINTK)
    project.write("toolchain.cmake", TOOLCHAIN)
    (project.folder / "digits").symlink_to(ROOT / "examples/digits")
    return project


@needs_arm
@pytest.mark.parametrize(
    "program",
    ["aot_model_test(t LIBRARY net VECTORS digits/digits.npz)", "aot_model_benchmark(b LIBRARY net)"],
)
def test_stand_in(tmp_path: Path, program: str) -> None:
    """The library has the flags of zephyr_interface, its pool is in the region of the device tree, main() is
    the application's.
    """
    lists = (
        f"aot_model_library(net MODEL digits/digits.onnx POOLS ram:&fast POOL_SECTIONS ram=&fast)\n{program}"
    )
    project = stand_in(tmp_path / "p", lists)
    project.configure("--toolchain", "toolchain.cmake")
    log = project.build("-t", "app", "net")
    assert "-lm" not in log
    facts = json.loads((project.build_folder / "net.aot/net.json").read_text())
    assert facts["target"] == "cortex-m3" and [p["name"] for p in facts["workspace"]["pools"]] == ["ram"]
    assert "FAST_RAM" in project.run("arm-none-eabi-objdump", "-h", project.build_folder / "libnet.a")
    symbols = project.run("arm-none-eabi-nm", project.build_folder / "libapp.a")
    assert (
        " T main" in symbols and "U printk" in symbols and "U net_run" in symbols and "printf" not in symbols
    )
    attributes = project.run("arm-none-eabi-readelf", "-A", project.build_folder / "libnet.a")
    assert "Tag_CPU_arch: v7\n" in attributes


@needs_arm
@pytest.mark.parametrize(
    ("pools", "complaint"),
    [
        ("POOL_SECTIONS ram=&nowhere", "the device tree has no node that is labelled nowhere"),
        ("POOLS ram:&odd", "the node /soc/uart is no memory region"),
        ("POOLS ram:&fast", "needs"),
    ],
)
def test_stand_in_complains(tmp_path: Path, pools: str, complaint: str) -> None:
    project = stand_in(tmp_path / "p", f"aot_model_library(net MODEL digits/digits.onnx {pools})")
    if complaint == "needs":  # the size of the region is the pool's: too small a one is an error of the build
        lists = (project.folder / "CMakeLists.txt").read_text().replace("0x4000", "64")
        (project.folder / "CMakeLists.txt").write_text(lists)
        project.configure("--toolchain", "toolchain.cmake")
        assert "[E401]" in project.build("-t", "net", ok=False)
        return
    assert complaint in project.configure("--toolchain", "toolchain.cmake", ok=False)


def test_labels_are_zephyrs(tmp_path: Path) -> None:
    project = Project(tmp_path / "p", "aot_model_library(net MODEL digits.onnx POOL_SECTIONS ram=&fast)")
    assert "there is no device tree here" in project.configure(ok=False)


REAL = [  # application, board, QEMU's machine, option, what it says, target
    ("samples/digits", "mps2_an385", "mps2-an385", "", "10 of 10 digits are right", "cortex-m3"),
    ("samples/digits", "mps2_an521", "mps2-an521", "", "10 of 10 digits are right", "cortex-m3"),
    ("samples/digits", "mps3_an547", "mps3-an547", "", "10 of 10 digits are right", "cortex-m"),
    ("samples/digits", "mps3_an547", "mps3-an547", "-DCONFIG_FPU=y", "10 of 10 digits are right", "cortex-m"),
    ("tests/digits", "mps2_an385", "mps2-an385", "", "vectors, 0 mismatches", "cortex-m3"),
    (
        "tests/digits",
        "mps2_an385",
        "mps2-an385",
        "-DCONFIG_AOT_MODEL_DIGITS_BENCHMARK=y",
        "ns per inference",
        "cortex-m3",
    ),
]


@needs_arm
@in_qemu
@pytest.mark.skipif("ZEPHYR_BASE" not in os.environ, reason="ZEPHYR_BASE is not set: no Zephyr to build with")
@pytest.mark.parametrize(("application", "board", "machine", "option", "said", "target"), REAL)
def test_real_build(
    tmp_path: Path, application: str, board: str, machine: str, option: str, said: str, target: str
) -> None:
    """With the user's Zephyr, its toolchain from the environment; AOT_MODEL_ZEPHYR_MODULES has what it needs
    besides, AOT_MODEL_ZEPHYR_PYTHON runs its scripts.
    """
    modules = ";".join(filter(None, (os.environ.get("AOT_MODEL_ZEPHYR_MODULES"), str(ROOT))))
    python = os.environ.get("AOT_MODEL_ZEPHYR_PYTHON", sys.executable)
    compiler = f"-DAotModel_COMPILER={sys.executable};-m;aot_model"
    command = [
        "cmake",
        "-GNinja",
        "-S",
        MODULE / application,
        "-B",
        tmp_path,
        f"-DBOARD={board}",
        f"-DZEPHYR_MODULES={modules}",
        f"-DPython3_EXECUTABLE={python}",
        compiler,
    ]
    subprocess.run([*command, *filter(None, [option])], check=True)
    subprocess.run(["cmake", "--build", tmp_path], check=True)
    assert json.loads((tmp_path / "digits.aot/digits.json").read_text())["target"].startswith(target)
    qemu = [
        "qemu-system-arm",
        "-machine",
        machine,
        "-display",
        "none",
        "-monitor",
        "none",
        "-serial",
        "stdio",
        "-kernel",
        tmp_path / "zephyr/zephyr.elf",
    ]
    with subprocess.Popen(qemu, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout is not None
        try:
            lines = []
            for line in running.stdout:
                lines.append(line)
                if said in line or "mismatches" in line or "are right" in line or len(lines) > 200:
                    break
        finally:
            running.kill()
    assert any(said in line for line in lines), "".join(lines)
