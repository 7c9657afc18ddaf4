"""Two checkouts in different places: the same archives and programs; ccache compiles nothing again."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import scons_project
from cmake_project import IN_TURN, ROOT, Project, has_tools, program, write_model

pytestmark = pytest.mark.skipif(
    not has_tools("cmake", "ninja", "make", "cc"), reason="needs cmake, ninja, make and cc"
)
in_arm = pytest.mark.skipif(not has_tools("arm-none-eabi-gcc"), reason="needs arm-none-eabi-gcc")

LISTS = """
aot_model_library(kws MODEL m.onnx)
add_executable(app main.c)
target_link_libraries(app PRIVATE kws)
"""
SCRIPT = """
kws = env.AotModelLibrary("kws", "m.onnx")
env.Program("app", "main.c", LIBS=[kws, "m"], CPPPATH=kws.include_dirs)
"""


def checkouts(tmp_path: Path) -> Iterator[Path]:
    for name in ("one", "another/place"):
        folder = tmp_path / name
        write_model(folder / "m.onnx")
        (folder / "main.c").write_text(program("kws"))
        yield folder


def debug(folder: Path) -> str:
    """Names of the compiler's debug information have the folder as `.`: the project's flags decide that."""
    return f"-O2 -g -ffile-prefix-map={folder}=. -ffile-prefix-map={ROOT}=aot-model"


@pytest.mark.parametrize("core", ["", pytest.param("cortex-m4", marks=in_arm)])
@pytest.mark.parametrize("generator", [IN_TURN])
def test_cmake(tmp_path: Path, generator: str, core: str) -> None:
    made = []
    for folder in checkouts(tmp_path):
        link = "add_link_options(--specs=rdimon.specs)\n" if core else ""
        project = Project(folder, f"add_compile_options({debug(folder)})\n{link}{LISTS}", generator=generator)
        project.configure(*(["--toolchain", str(ROOT / f"toolchains/{core}.cmake")] if core else []))
        project.build()
        made.append([project.executable(name).read_bytes() for name in ("libkws.a", "app")])
    assert made[0] == made[1]


@pytest.mark.skipif(not scons_project.has_scons(), reason="needs scons (pip install scons)")
@pytest.mark.parametrize("core", ["", pytest.param("cortex-m4", marks=in_arm)])
def test_scons(tmp_path: Path, core: str) -> None:
    made = []
    for folder in checkouts(tmp_path):
        lines = [f"env.Append(CCFLAGS={debug(folder)!r}.split())"]
        if core:
            tools = (
                "tools=['default', 'arm_none_eabi_gcc', 'aot_model'], "
                f"toolpath=[{str(scons_project.TOOLS)!r}, {str(scons_project.TOOLCHAINS)!r}]"
            )
            lines = [
                f"env = Environment({tools}, AOT_MODEL_CPU={core!r})",
                *lines,
                "env.Append(LINKFLAGS=['--specs=rdimon.specs'])",
            ]
        scons_project.Project(folder, "\n".join(lines) + SCRIPT).build()
        made.append([(folder / name).read_bytes() for name in ("libkws.a", "app.elf" if core else "app")])
    assert made[0] == made[1]


@pytest.mark.skipif(not has_tools("ccache"), reason="needs ccache")
def test_ccache(tmp_path: Path) -> None:
    """With CCACHE_BASEDIR, as its manual says for checkouts in other places: every compilation of the second
    is a hit.
    """
    for folder in checkouts(tmp_path):
        project = Project(folder, LISTS)
        project.environment = {
            "CCACHE_DIR": str(tmp_path / "ccache"),
            "CCACHE_BASEDIR": str(folder),
            "CCACHE_NOHASHDIR": "1",
        }
        project.configure("-DCMAKE_C_COMPILER_LAUNCHER=ccache", "-DCMAKE_BUILD_TYPE=Release")
        project.run("ccache", "--zero-stats")
        project.build()
        counts = dict(re.findall(r"^(\w+)\t(\d+)$", project.run("ccache", "--print-stats"), re.MULTILINE))
    hits = int(counts["direct_cache_hit"]) + int(counts["preprocessed_cache_hit"])
    assert (hits, int(counts["cache_miss"])) == (3, 0), counts  # the probe, the library, the program
