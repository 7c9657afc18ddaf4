"""The square root and the largest whole number below are those of numpy by their bits: at the ends of all
exponents, between whole numbers, of both zeros, infinities and NaN; on this machine and on Cortex-M cores.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest

from aot_model.installation import include_dir
from qemu import BOARDS, available, build_and_run

FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror", f"-I{include_dir()}"]


def given() -> np.ndarray:
    """About 3,000 floats, by their bits."""
    fractions = (0, 1, 0x400000, 0x7FFFFE, 0x7FFFFF)
    ends = np.asarray([e << 23 | f for e in range(256) for f in fractions], np.uint32)
    whole = np.asarray([k + d for k in range(-40, 41) for d in (0, 0.25, 0.5, 0.75)], np.float32)
    beside = [np.nextafter(whole, np.float32(way)) for way in (-np.inf, np.inf)]
    floats = np.concatenate([ends.view(np.float32), whole, *beside])
    return np.concatenate([floats, -floats])


def program() -> str:
    """Prints what is not as numpy has it, and at last how many were tried."""
    x = given()
    with np.errstate(invalid="ignore"):
        wanted = np.stack([x, np.sqrt(x), np.floor(x)], 1).view(np.uint32)
    rows = ",\n".join("{" + ", ".join(f"0x{v:08x}u" for v in row) + "}" for row in wanted.tolist())
    return f"""\
#include <stdio.h>
#include <string.h>
#include "aot_model/roots.h"
static const uint32_t rows[{len(x)}][3] = {{
{rows}
}};
static void check(const char *name, float got, const uint32_t *row, uint32_t want)
{{
    uint32_t bits;
    memcpy(&bits, &got, sizeof bits);
    const int nan = (want & 0x7fffffffu) > 0x7f800000u;
    if (nan ? !isnan(got) : bits != want) {{
        printf("%s of %08lx: %08lx, not %08lx\\n", name, (unsigned long)row[0], (unsigned long)bits,
               (unsigned long)want);
    }}
}}
int main(void)
{{
    for (unsigned i = 0; i < {len(x)}; i++) {{
        float x;
        memcpy(&x, &rows[i][0], sizeof x);
        check("sqrt", aot_model_sqrt_float32(x), rows[i], rows[i][1]);
        check("floor", aot_model_floor_float32(x), rows[i], rows[i][2]);
    }}
    printf("{len(x)} tried\\n");
    return 0;
}}
"""


@pytest.mark.parametrize("flags", [["-fsanitize=undefined", "-fno-sanitize-recover=all"], ["-O3"]])
def test_on_this_machine(flags: list[str], tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(program())
    subprocess.run(
        ["gcc", *FLAGS, *flags, "main.c", "-o", "main", "-lm"], cwd=tmp_path, check=True, timeout=120
    )
    said = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True, timeout=60).stdout
    assert said == f"{len(given())} tried\n"


@pytest.mark.skipif(not available(), reason="arm-none-eabi-gcc or qemu-system-arm is not installed")
@pytest.mark.parametrize("core", ["m0", "m4", "m7", "m33", "m55"])
def test_on_a_core(core: str, tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(program())
    said = build_and_run(BOARDS[core], ["main.c"], tmp_path, [*FLAGS, "-O2"])
    assert said == f"{len(given())} tried\n"
