"""Functions of one number in a header of the runtime: of whole arrays, and rows from the host or a core."""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

from aot_model.host.program import STRICT
from aot_model.installation import include_dir
from qemu import Board, build_and_run

HEADERS = include_dir() / "aot_model"
Function = Callable[[np.ndarray], np.ndarray]


def said(header: str, pattern: str) -> str:
    """What a header's comment says where the pattern's group is, its lines joined."""
    words = re.sub(r"\s*\n \*", "", (HEADERS / header).read_text())
    found = re.search(pattern, words)
    assert found is not None, (header, pattern)
    return found[1]


def _flags(flags: str) -> list[str]:
    if "-mfma" in flags and " fma " not in Path("/proc/cpuinfo").read_text():
        pytest.skip("no such processor")
    return [*STRICT, *flags.split(), f"-I{include_dir()}"]


def of_arrays(
    header: str, names: Sequence[str], folder: Path, flags: str, compiler: str = "cc"
) -> dict[str, Function]:
    """Of arrays of float32, each element's value by the function of that name, compiled with these flags."""
    loops = "".join(
        f"void all_{name}(const float *x, float *y, int32_t n);\n"
        f"void all_{name}(const float *x, float *y, int32_t n)\n{{\n"
        f"    for (int32_t i = 0; i < n; i++) {{\n        y[i] = {name}(x[i]);\n    }}\n}}\n"
        for name in names
    )
    (folder / "f.c").write_text(f'#include "aot_model/{header}"\n{loops}')
    command = [compiler, *_flags(flags), "-fPIC", "-shared", "f.c", "-lm", "-o", "f.so"]
    subprocess.run(command, cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "f.so"))

    def function(name: str) -> Function:
        def values(x: np.ndarray) -> np.ndarray:
            assert x.dtype == np.float32 and x.flags.c_contiguous
            y = np.empty_like(x)
            getattr(library, f"all_{name}")(*(ctypes.c_void_p(a.ctypes.data) for a in (x, y)), len(x))
            return y

        return values

    return {name: function(name) for name in names}


def places_off(y: np.ndarray, want: np.ndarray) -> np.ndarray:
    """How far values of float32 are from those of double precision, in units in the last place."""
    size = np.maximum(np.abs(want), 2.0**-126).astype(np.float32)
    return np.abs(y.astype(np.float64) - want) / np.spacing(size).astype(np.float64)


def program(header: str, rows: str, width: int) -> str:
    """A program that says rows of `width` floats as bits: C that, after other things, calls show(row)."""
    return f"""
#include <stdio.h>
#include "aot_model/{header}"
static void show(const float *row)
{{
    for (int32_t k = 0; k < {width}; k++) {{
        uint32_t bits;
        memcpy(&bits, &row[k], sizeof bits);
        printf("%08lx ", (unsigned long)bits);
    }}
}}
int main(void)
{{
{rows}
    return 0;
}}
"""


def columns(
    source: str, width: int, folder: Path, flags: str, *, compiler: str = "gcc", board: Board | None = None
) -> list[np.ndarray]:
    """What a program says on the host, or on a board, by column."""
    (folder / "main.c").write_text(source)
    if board is not None:
        text = build_and_run(board, ["main.c"], folder, _flags(flags))
    else:
        subprocess.run([compiler, *_flags(flags), "main.c", "-lm", "-o", "a"], cwd=folder, check=True)
        text = subprocess.run([folder / "a"], check=True, capture_output=True, text=True).stdout
    bits = np.asarray([int(word, 16) for word in text.split()], np.uint32)
    return list(bits.view(np.float32).astype(np.float64).reshape(-1, width).T)
