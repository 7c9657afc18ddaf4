"""What is written from the table of cores (compiler/aot_model/targets/cores.py): toolchain files of three
build systems.

A stale file fails; `pytest tests/build/test_cores.py --update-golden` writes it.
"""

from __future__ import annotations

import pytest
from cmake_project import ROOT

from aot_model.targets.cores import CORES, Core
from aot_model.targets.registry import targets
from written import Parts, check_written

ORDERED = sorted(CORES, key=lambda core: core.name)  # as Bazel's linter wants the keys


def cmake(core: Core) -> str:
    first = f"# GNU Arm Embedded for {core.name}: {core.description}.{f' {core.note}' if core.note else ''}"
    settings = {
        "TARGET": core.name,
        "FLAGS": f'"{" ".join(core.flags)}"',
        "BOARD": core.machine,
        "BOARD_LD": core.script,
    }
    lines = [f"set(AOT_MODEL_{name} {value})" for name, value in settings.items()]
    return "\n".join([first, *lines, 'include("${CMAKE_CURRENT_LIST_DIR}/arm-none-eabi-gcc.cmake")', ""])


def bazel() -> str:
    return "".join(
        f'    "{c.name}": struct(flags = "{" ".join(c.flags)}", machine = "{c.machine}", script = '
        f'"{c.script}"),\n'
        for c in ORDERED
    )


def scons() -> str:
    return "".join(
        f'    "{c.name}": ("{" ".join(c.flags)}",\n        "{c.machine}", "{c.script}"),\n' for c in CORES
    )


GENERATED: Parts = {
    **{f"toolchains/{c.name}.cmake": (r"(?s).*", lambda c=c: cmake(c)) for c in CORES},  # type: ignore[misc]
    "toolchains/bazel/cores.bzl": (r"(?ms)(?<=^CORES = \{\n).*?(?=^\})", bazel),
    "toolchains/scons/arm_none_eabi_gcc.py": (r"(?ms)(?<=^CORES = \{\n).*?(?=^\})", scons),
}


@pytest.mark.parametrize("name", GENERATED)
def test_written_from_the_table(name: str, pytestconfig: pytest.Config) -> None:
    check_written(GENERATED, name, pytestconfig)


def test_no_other_cores() -> None:
    """Toolchain files without a row, and rows without a target."""
    assert {path.stem for path in (ROOT / "toolchains").glob("cortex-m*.cmake")} == {
        core.name for core in CORES
    }
    assert {core.name for core in CORES} <= set(targets())
    assert all((ROOT / "toolchains/qemu" / core.script).is_file() for core in CORES)
