"""Exported networks where package managers take them: PlatformIO, Arduino, CMSIS-Pack, Meson, Make, and as a
module of Zephyr.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest
import yaml
from cmake_project import ROOT, Project, has_tools
from packages import DIGITS, LOOP, PROGRAM, SAID, exported

has_arm = pytest.mark.skipif(
    not has_tools("arm-none-eabi-gcc", "qemu-system-arm"),
    reason="needs arm-none-eabi-gcc and qemu-system-arm",
)
M4 = ("-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard")
LINK = (
    "--specs=rdimon.specs",
    "-nostartfiles",
    f"-T{ROOT}/toolchains/qemu/mps2.ld",
    f"-L{ROOT}/toolchains/qemu",
    "-Wl,--no-warn-rwx-segments",
)
QEMU = (
    "qemu-system-arm",
    "-machine",
    "mps2-an386",
    "-nographic",
    "-monitor",
    "none",
    "-serial",
    "none",
    "-semihosting-config",
    "enable=on,target=native",
    "-kernel",
)


def in_qemu(elf: Path) -> str:
    return subprocess.run(
        [*QEMU, elf], capture_output=True, text=True, timeout=60, check=False, stdin=subprocess.DEVNULL
    ).stdout


# A platform for boards of Arm's as QEMU has them, with the compiler of the machine; and PlatformIO's own
# SCons, which is PyPI's.
BUILDER = """
from SCons.Script import AlwaysBuild, COMMAND_LINE_TARGETS, Default, DefaultEnvironment
env = DefaultEnvironment()
env.Replace(CC="arm-none-eabi-gcc", CXX="arm-none-eabi-g++", AR="arm-none-eabi-ar", RANLIB="arm-none-eabi-ranlib", AS="arm-none-eabi-gcc",
            LINK="arm-none-eabi-gcc", SIZETOOL="arm-none-eabi-size", PROGNAME="firmware", PROGSUFFIX=".elf",
            ARFLAGS=["rcs"], CFLAGS=["-std=gnu11"], CCFLAGS=["-Os", "-Wall", *{m4!r}], LINKFLAGS=[*{m4!r}, *{link!r}])
env.Append(ENV=dict(PATH={path!r}))
env.Append(PIOBUILDFILES=[env.Object("$BUILD_DIR/startup.o", {startup!r})])
Default(env.BuildProgram())
"""  # noqa: E501
PLATFORM = "from platformio.public import PlatformBase\n\n\nclass QemuPlatform(PlatformBase):\n    pass\n"
BOARD = {
    "build": {"mcpu": "cortex-m4"},
    "name": "Arm MPS2",
    "upload": {"maximum_size": 4194304, "maximum_ram_size": 4194304},
    "url": "-",
    "vendor": "Arm",
    "frameworks": [],
}


def platformio(folder: Path) -> dict[str, str]:
    """A core directory of PlatformIO with all that a build needs, so that nothing is downloaded; the
    environment for it.
    """
    from platformio.dependencies import get_core_dependencies

    version = get_core_dependencies()["tool-scons"].strip("~^=>")
    scons, platform = folder / "packages/tool-scons", folder / "platforms/qemu"
    for path in (scons, platform / "builder", platform / "boards"):
        path.mkdir(parents=True)
    spec = {"owner": "platformio", "id": None, "name": "tool-scons", "requirements": None, "uri": None}
    (scons / "package.json").write_text(
        json.dumps({"name": "tool-scons", "version": version, "description": "-"})
    )
    (scons / ".piopm").write_text(
        json.dumps({"type": "tool", "name": "tool-scons", "version": version, "spec": spec})
    )
    (scons / "scons.py").write_text("import SCons.Script\nSCons.Script.main()\n")
    (platform / "platform.json").write_text(
        json.dumps(
            {
                "name": "qemu",
                "title": "QEMU",
                "version": "1.0.0",
                "description": "-",
                "frameworks": {},
                "packages": {},
            }
        )
    )
    (platform / "platform.py").write_text(PLATFORM)
    startup = str(ROOT / "toolchains/qemu/startup.c")
    (platform / "builder/main.py").write_text(
        BUILDER.format(m4=list(M4), link=list(LINK), path=os.environ["PATH"], startup=startup)
    )
    (platform / "boards/mps2.json").write_text(json.dumps(BOARD))
    keep = {k: v for k, v in os.environ.items() if not k.startswith("PLATFORMIO_")}
    return keep | {
        "PLATFORMIO_CORE_DIR": str(folder),
        "PLATFORMIO_SETTING_ENABLE_TELEMETRY": "no",
        "PLATFORMIO_SETTING_CHECK_PLATFORMIO_INTERVAL": "9999",
        "http_proxy": "http://127.0.0.1:9",
        "https_proxy": "http://127.0.0.1:9",
    }


@has_arm
@pytest.mark.skipif(
    importlib.util.find_spec("platformio") is None, reason="needs platformio (pip install platformio)"
)
def test_platformio(tmp_path: Path) -> None:
    """`pio run` finds the library in lib/, and its firmware runs."""
    environment = platformio(tmp_path / "core")
    project = tmp_path / "project"
    exported(project / "lib", target="cortex-m4")
    (project / "lib/digits.zip").unlink()
    (project / "src").mkdir()
    (project / "src/main.c").write_text(PROGRAM)
    shutil.copy(DIGITS / "images.h", project / "src")
    (project / "platformio.ini").write_text("[env:mps2]\nplatform = qemu\nboard = mps2\n")
    done = subprocess.run(
        [sys.executable, "-m", "platformio", "run", "-v"],
        cwd=project,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "digits @ 1.0.0" in done.stdout
    assert SAID in in_qemu(project / ".pio/build/mps2/firmware.elf")


ARDUINO_H = """#pragma once
#include <stdint.h>
#include <stddef.h>
#ifdef __cplusplus
struct Printer { void begin(long); void print(const char *); void println(double); void println(long); void println(unsigned long); };
extern Printer Serial;
extern "C" {
#endif
unsigned long micros(void);
void delay(unsigned long);
#ifdef __cplusplus
}
#endif
"""  # noqa: E501
ARDUINO_CORE = """#include <Arduino.h>
#include <stdio.h>
#include <stdlib.h>
static int loops;
Printer Serial;
void Printer::begin(long) {}
void Printer::print(const char *text) { printf("%s", text); }
void Printer::println(double x) { printf("%f\\n", x); }
void Printer::println(long x) { printf("%ld\\n", x); }
void Printer::println(unsigned long x) { printf("%lu\\n", x); }
extern "C" unsigned long micros(void) { return 1; }
extern "C" void delay(unsigned long) { if (++loops == 2) exit(0); }
void setup();
void loop();
int main() { setup(); for (;;) loop(); }
"""
ARDUINO_C = (
    "-Os",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-std=gnu11",
    "-ffunction-sections",
    "-fdata-sections",
    "-nostdlib",
    "--param",
    "max-inline-insns-single=500",
)
ARDUINO_CXX = (
    "-Os",
    "-Wall",
    "-Wextra",
    "-Werror",
    "-std=gnu++11",
    "-fno-threadsafe-statics",
    "-fno-rtti",
    "-fno-exceptions",
    "-ffunction-sections",
    "-fdata-sections",
)


@has_arm
@pytest.mark.parametrize(
    "options",
    [(), ("--workspace=caller", "--metadata=none"), ("--io=workspace",)],
    ids=lambda o: "".join(o) or "plain",
)
def test_arduino(tmp_path: Path, options: tuple[str, ...]) -> None:
    """As Arduino's builder compiles a library of the 1.5 layout: all of src/, src/ on the path; and the
    example sketch runs.
    """
    folder = exported(tmp_path, *options, target="cortex-m4")
    facts = dict(line.split("=", 1) for line in (folder / "library.properties").read_text().splitlines())
    assert {
        "name",
        "version",
        "author",
        "maintainer",
        "sentence",
        "paragraph",
        "category",
        "url",
        "architectures",
    } <= set(facts)
    (tmp_path / "Arduino.h").write_text(ARDUINO_H)
    (tmp_path / "core.cpp").write_text(ARDUINO_CORE)
    (sketch,) = (folder / "examples").rglob("*.ino")
    assert sketch.stem == sketch.parent.name
    (tmp_path / "sketch.cpp").write_text(f"#include <Arduino.h>\n{sketch.read_text()}")
    objects = []
    for source in [
        *(folder / "src").rglob("*.c"),
        tmp_path / "sketch.cpp",
        tmp_path / "core.cpp",
        ROOT / "toolchains/qemu/startup.c",
    ]:
        cxx = source.suffix == ".cpp"
        compiler, flags = ("arm-none-eabi-g++", ARDUINO_CXX) if cxx else ("arm-none-eabi-gcc", ARDUINO_C)
        objects.append(tmp_path / f"{source.name}.o")
        done = subprocess.run(
            [compiler, *M4, *flags, f"-I{folder / 'src'}", f"-I{tmp_path}", "-c", source, "-o", objects[-1]],
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0 and not done.stderr, done.stderr
    subprocess.run(
        ["arm-none-eabi-gcc", *M4, *LINK, *objects, "-lm", "-o", tmp_path / "firmware.elf"], check=True
    )
    output = in_qemu(tmp_path / "firmware.elf")
    assert output.count("microseconds: ") == 2
    assert options == ("--io=workspace",) or output.count("probabilities[0]: 0.") == 2


def test_cmsis_pack(tmp_path: Path) -> None:
    """What the schema of packs wants: the order of elements, versions, and files that are there."""
    folder = exported(
        tmp_path, "--cmsis-pack=Acme", "--package-version=1.2.3", "--package-url=https://example.org/packs/"
    )
    root = ElementTree.parse(folder / "Acme.digits.pdsc").getroot()
    assert [e.tag for e in root] == [
        "vendor",
        "name",
        "description",
        "url",
        "license",
        "releases",
        "components",
    ]
    assert (
        root.findtext("vendor") == "Acme"
        and root.findtext("name") == "digits"
        and root.find("releases/release").get("version") == "1.2.3"
    )
    component = root.find("components/component")
    assert [component.get(k) for k in ("Cclass", "Cgroup", "Csub", "Cversion")] == [
        "Machine Learning",
        "Model",
        "digits",
        "1.2.3",
    ]
    files = {f.get("name"): f.get("category") for f in component.iter("file")}
    assert {"sourceC", "header", "include"} <= set(files.values())
    assert all((folder / name).exists() for name in [*files, root.findtext("license")])


@pytest.mark.skipif(not has_tools("cc", "make"), reason="needs cc and make")
def test_make(tmp_path: Path) -> None:
    exported(tmp_path)
    shutil.copy(DIGITS / "images.h", tmp_path)
    (tmp_path / "main.c").write_text(PROGRAM)
    (tmp_path / "Makefile").write_text(
        "include digits/digits.mk\napp: main.c $(DIGITS_SRCS)\n\t$(CC) -std=c99 -Werror $(DIGITS_CPPFLAGS) "
        "$^ $(DIGITS_LDLIBS) -o $@\n"
    )
    subprocess.run(["make"], cwd=tmp_path, check=True)
    assert SAID in subprocess.run([tmp_path / "app"], capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(
    not has_tools("cc", "ninja") or importlib.util.find_spec("mesonbuild") is None,
    reason="needs cc, ninja and meson",
)
def test_meson(tmp_path: Path) -> None:
    exported(tmp_path / "subprojects")
    shutil.copy(DIGITS / "images.h", tmp_path)
    (tmp_path / "main.c").write_text(PROGRAM)
    (tmp_path / "meson.build").write_text(
        "project('app', 'c')\nsubproject('digits')\nexecutable('app', 'main.c', dependencies: "
        "dependency('digits'))\n"
    )
    for command in (["setup", "build"], ["compile", "-C", "build"]):
        subprocess.run([sys.executable, "-m", "mesonbuild.mesonmain", *command], cwd=tmp_path, check=True)
    assert SAID in subprocess.run([tmp_path / "build/app"], capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(
    not has_tools("cmake", "ninja", "arm-none-eabi-gcc"), reason="needs cmake, ninja and arm-none-eabi-gcc"
)
def test_zephyr(tmp_path: Path) -> None:
    """The exported folder is a module: Zephyr's functions get the sources and the headers."""
    folder = exported(tmp_path)
    module = yaml.safe_load((folder / "zephyr/module.yml").read_text())
    assert module == {"name": "digits", "build": {"cmake": "."}}
    functions = """
    add_library(zephyr_interface INTERFACE)
    target_compile_options(zephyr_interface INTERFACE -mcpu=cortex-m3 -mthumb)
    macro (zephyr_library_named name)
        set(ZEPHYR_CURRENT_LIBRARY ${name})
        add_library(${name} STATIC)
        target_link_libraries(${name} PUBLIC zephyr_interface)
    endmacro ()
    function (zephyr_library_sources)
        target_sources(${ZEPHYR_CURRENT_LIBRARY} PRIVATE ${ARGV})
    endfunction ()
    function (zephyr_include_directories)
        target_include_directories(zephyr_interface INTERFACE ${ARGV})
    endfunction ()
    """
    project = Project(
        tmp_path / "p",
        f'{functions}\nadd_subdirectory("{folder}" digits)\nadd_library(app STATIC '
        "main.c)\ntarget_link_libraries(app zephyr_interface)",
        find="",
    )
    project.write(
        "toolchain.cmake",
        "set(CMAKE_SYSTEM_NAME Generic)\nset(CMAKE_SYSTEM_PROCESSOR arm)\nset(CMAKE_C_COMPILER "
        "arm-none-eabi-gcc)\nset(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)\n",
    )
    project.write(
        "main.c",
        f'#include "digits.h"\n#include "{DIGITS / "images.h"}"\nint main(void)\n{{{LOOP}\n    return '
        f"right;\n}}\n",
    )
    project.configure("--toolchain", "toolchain.cmake")
    project.build()
    assert "Tag_CPU_arch: v7\n" in project.run(
        "arm-none-eabi-readelf", "-A", project.build_folder / "digits/libdigits.a"
    )


@pytest.mark.skipif(
    importlib.util.find_spec("idf_component_manager") is None, reason="needs idf-component-manager"
)
def test_idf_component_is_packed(tmp_path: Path) -> None:
    folder = exported(tmp_path, "--package-version=2.0.1")
    command = [sys.executable, "-m", "idf_component_manager.cli", "component", "pack", "--name", "digits"]
    compote = shutil.which("compote")
    done = subprocess.run(
        [compote, *command[3:]] if compote else command,
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"IDF_COMPONENT_CHECK_NEW_VERSION": "0"},
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (folder / "dist/digits_2.0.1.tgz").is_file()
    assert zipfile.is_zipfile(tmp_path / "digits.zip")
