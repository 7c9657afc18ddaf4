"""The headers of generated code side by side: a model may need any of them, so no two may use a name for
different things.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from aot_model.installation import include_dir
from aot_model.targets.cores import CORES

ARM = "arm-none-eabi-gcc"
STRICT = ("-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-fsyntax-only")
BUILDS = {
    **{core.name: (ARM, *core.flags) for core in CORES},
    "x86-64": ("gcc", "-march=x86-64"),
    "AVX2": ("gcc", "-march=x86-64-v3"),
    "AVX-512 VNNI": ("gcc", "-march=x86-64-v4", "-mavx512vnni"),
    "SDOT": ("aarch64-linux-gnu-gcc", "-march=armv8.2-a+dotprod"),
}
LIBRARIES = ("onednn.h", "tvm_ffi.h")
"""Headers that need others, which are not ours."""


def _fits(compiler: Sequence[str], headers: Sequence[Path], folder: Path) -> subprocess.CompletedProcess[str]:
    lines = [f'#include "aot_model/{h.name}"' for h in headers]
    (folder / "all.c").write_text("\n".join([*lines, "int none;", ""]))
    return subprocess.run(
        [*compiler, *STRICT, f"-I{include_dir()}", "all.c"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("build", BUILDS)
def test_names(build: str, tmp_path: Path) -> None:
    compiler = BUILDS[build]
    if shutil.which(compiler[0]) is None:
        pytest.skip(f"{compiler[0]} is not installed")
    if _fits(compiler, (), tmp_path).returncode:
        pytest.skip(f"{' '.join(compiler)} does not compile here")
    headers = sorted(h for h in Path(include_dir(), "aot_model").glob("*.h") if h.name not in LIBRARIES)
    own = [h for h in headers if _fits(compiler, [h], tmp_path).returncode == 0]
    assert len(own) > 10, _fits(compiler, headers[:1], tmp_path).stderr
    for order in (own, own[::-1]):
        together = _fits(compiler, order, tmp_path)
        assert together.returncode == 0, together.stderr


def test_assembly_that_reads_memory_is_volatile() -> None:
    """GCC 12 (gcse) takes other assembly for a function of its operands, whether it clobbers "memory" or not:
    at -O3 two turns of a loop over rows in one buffer got the sums of the first.
    """
    found = 0
    for path in sorted(Path(include_dir(), "aot_model").glob("*.h")):
        for statement in re.findall(r"\b(?:__asm__|asm)\b([^;]*);", path.read_text()):
            if re.search(r"\bv?(?:ldr|str|ldm|stm|ld2|ld4|st2|st4)\w*\b|\"memory\"", statement):
                found += 1
                assert statement.split("(")[0].split() == ["volatile"], f"{path.name}: {statement[:200]}"
    assert found > 10
