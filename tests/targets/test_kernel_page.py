"""docs/developing/kernels.md: its kernel for RV32 does what the page says, here and on an emulated core."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import batch
from aot_model.installation import include_dir
from aot_model.kernels.target import Target
from aot_model.targets.registry import parse_target
from batch import compiled_case, run_cases

sys.path.append(str(Path(__file__).parents[1] / "kernels"))
from layer import Layer
from table import GROUPS, case_of

ROOT = Path(__file__).resolve().parents[2]
GROUPS_OF_PAGE = ("int8 convolution", "int8 matrix product")


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Target:
    (code,) = re.findall(
        r"```python\n(.*?)```", (ROOT / "docs" / "developing" / "kernels.md").read_text(), re.DOTALL
    )
    assert len(code.splitlines()) <= 70
    file = tmp_path_factory.mktemp("plugin") / "rv32.py"
    file.write_text(code)
    return parse_target("rv32", {}, [file])


def layers() -> list[tuple[str, Layer]]:
    return [(group, layer) for group in GROUPS_OF_PAGE for layer in GROUPS[group]()]


NOTE = "2 pixels x 4 channels in registers"


def test_all_integer_layers(target: Target, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those that fit go through the kernel, the others through plain C."""
    monkeypatch.setattr(batch, "parse_target", lambda *_: target)
    cases = [case_of(group, layer, {}) for group, layer in layers()]
    for (_, layer), outcome in zip(layers(), run_cases(cases, "rv32", jobs=1), strict=True):
        assert outcome.status == "ok", f"{layer.name}: {outcome.message[:500]}"
        np.testing.assert_array_equal(outcome.outputs[0], layer.expected(), err_msg=layer.name)


START = """\
#include <stddef.h>
#include <stdint.h>
void *memcpy(void *to, const void *from, size_t n)
{
    for (size_t i = 0; i < n; i++) { ((volatile char *)to)[i] = ((const char *)from)[i]; }
    return to;
}
void *memset(void *to, int value, size_t n)
{
    for (size_t i = 0; i < n; i++) { ((volatile char *)to)[i] = (char)value; }
    return to;
}
static void leave(int code)
{
    register int a0 __asm__("a0") = code;
    register int a7 __asm__("a7") = 93; /* exit */
    __asm__ volatile("ecall" : : "r"(a0), "r"(a7));
}
"""


@pytest.mark.skipif(
    shutil.which("riscv64-linux-gnu-gcc") is None or shutil.which("qemu-riscv32") is None,
    reason="needs gcc and qemu-user for RISC-V",
)
def test_on_rv32(target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The layers that the kernel takes, without a C library: the exit status counts wrong bytes."""
    monkeypatch.setattr(batch, "parse_target", lambda *_: target)
    (tmp_path / "gnu").mkdir()
    (tmp_path / "gnu" / "stubs-ilp32.h").write_text("")  # the C library's headers are those of 64 bits
    main, files = [START], []
    for group, layer in layers():
        k = len(files)
        texts = compiled_case(case_of(group, layer, {}), tmp_path / "model", f"m{k}", "rv32").texts
        if NOTE not in texts[f"m{k}.c"] or any(s.fed for s in layer.steps):
            continue
        for file in (f"m{k}.c", f"m{k}.h"):
            (tmp_path / file).write_text(texts[file])
        files.append(f"m{k}.c")
        x, want = layer.x.reshape(-1), layer.expected().reshape(-1)
        kind = f"{x.dtype}_t"
        main += [
            f'#include "m{k}.h"',
            f"static const {kind} x{k}[] = {{{', '.join(map(str, x))}}}, want{k}[] = "
            f"{{{', '.join(map(str, want))}}};",
            f"static int32_t run{k}(void)",
            "{",
            f"    static {kind} y[{want.size}];",
            "    int32_t bad = 0;",
            f"    const m{k}_inputs inputs = {{x{k}}};",
            f"    const m{k}_outputs outputs = {{y}};",
            f"    bad += m{k}_run(&inputs, &outputs) != 0;",
            f"    for (int32_t i = 0; i < {want.size}; i++) {{ bad += y[i] != want{k}[i]; }}",
            "    return bad;",
            "}",
        ]
    assert len(files) >= 10
    calls = " + ".join(f"run{k}()" for k in range(len(files)))
    main += [
        "void _start(void)",
        "{",
        f"    const int32_t bad = {calls};",
        "    leave(bad > 99 ? 99 : bad);",
        "}",
    ]
    (tmp_path / "main.c").write_text("\n".join(main) + "\n")
    flags = [
        "-march=rv32im",
        "-mabi=ilp32",
        "-std=gnu99",
        "-O2",
        "-ffreestanding",
        "-nostdlib",
        "-static",
        "-fno-pie",
        "-no-pie",
        "-Wl,--no-relax",
        f"-I{include_dir()}",
        "-I.",
    ]
    subprocess.run(
        ["riscv64-linux-gnu-gcc", *flags, "main.c", *files, "-o", "main"], cwd=tmp_path, check=True
    )
    assert subprocess.run(["qemu-riscv32", str(tmp_path / "main")]).returncode == 0
