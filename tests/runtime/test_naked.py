"""Functions in assembly are nothing but their assembly, whatever a build has compilers put into functions."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from aot_model.c.assembly import assembly_function, naked_function
from aot_model.installation import include_dir

FLAGS = (
    ("-fstack-protector-all",),
    ("-fstack-protector-strong",),
    ("-finstrument-functions",),
    ("-pg",),
    ("--coverage",),
    ("-fprofile-generate",),
    ("-fsanitize=undefined", "-fsanitize-undefined-trap-on-error"),
    ("-fsanitize-coverage=trace-pc",),
    ("-fstack-clash-protection",),
    ("-fzero-call-used-regs=all",),
    ("-fno-omit-frame-pointer",),
    ("-ftrivial-auto-var-init=pattern",),
    ("-fpatchable-function-entry=0",),
    ("-ffixed-r9",),
    ("-fprofile-instr-generate",),
    ("-O0", "-g3"),
    ("-fno-inline", "-fharden-compares"),
)
COMPILERS = {"arm-none-eabi-gcc": (), **{f"clang-{v}": ("--target=arm-none-eabi",) for v in (14, 19, 22)}}
LINES = (
    "push {r4-r11, lr}",
    "ldr r4, [sp, #36]",
    "add r5, r0, r1",
    "add r6, r2, r3",
    "add r4, r4, r5",
    "add r0, r4, r6",
    "pop {r4-r11, pc}",
)


def test_what_has_no_short_form_is_written_without_a_width() -> None:
    """LLVM's assembler does not take it otherwise."""
    given = ("ldr.w r8, [r0, #-4]", "strb.w r0, [r2], #1", "ldr.w r1, [r2, #4]!", "cmp.w r3, #-28")
    kept = ("ldr.w r8, [r0, #4]", "ldr.w r1, [r2]", "cmp.w r3, r4", "bne.w 1b", "add.w r0, r0, #4")
    text = naked_function("f", "int x", (*given, *kept))
    assert re.findall(r'"(.*)\\n"', text) == [*(line.replace(".w", "") for line in given), *kept]


def _source() -> str:
    return (
        '#include <stdint.h>\n#include "aot_model/attributes.h"\n'
        + assembly_function(
            "#if 1",
            "five",
            "The sum of five numbers.",
            ", ".join(f"uint32_t {c}" for c in "abcde"),
            LINES,
            "    return a + b + c + d + e;",
            "uint32_t ",
        )
        + """
uint32_t call(uint32_t a);
uint32_t call(uint32_t a)
{
    return five(a, 2u, 3u, 4u, 5u);
}
"""
    )


def _instructions(command: list[str], folder: Path) -> list[str] | None:
    """Those of the function; None where the compiler has not got the flags."""
    done = subprocess.run([*command, "-c", "p.c", "-o", "p.o"], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        unknown = "unknown argument|unrecognized|unsupported|not supported|ignored"
        assert re.search(unknown, done.stderr), done.stderr
        return None
    text = subprocess.run(
        ["arm-none-eabi-objdump", "-d", "p.o"], cwd=folder, capture_output=True, text=True, check=True
    ).stdout
    body = re.search(r"<five>:\n(.*?)(?:\n\n|\Z)", text, re.DOTALL)
    assert body, text
    return [line.split("\t", 2)[2] for line in body[1].splitlines() if line.count("\t") >= 2]


@pytest.mark.parametrize("compiler", COMPILERS)
def test_flags(compiler: str, tmp_path: Path) -> None:
    if shutil.which(compiler) is None or shutil.which("arm-none-eabi-objdump") is None:
        pytest.skip(f"no {compiler}, or no binary tools for Arm")
    (tmp_path / "p.c").write_text(_source())
    command = [
        compiler,
        *COMPILERS[compiler],
        "-mcpu=cortex-m4",
        "-mthumb",
        "-std=c99",
        "-O2",
        "-ffreestanding",
        *(("-isystem", "/usr/include/newlib") if COMPILERS[compiler] else ()),
        f"-I{include_dir()}",
    ]
    plain = _instructions(command, tmp_path)
    assert plain and plain[0].startswith(("push", "stmdb")) and len(plain) >= len(LINES)
    tried = 0
    for flags in FLAGS:
        found = _instructions([*command, *flags], tmp_path)
        if found is not None:
            tried += 1
            assert found[: len(LINES)] == plain[: len(LINES)], (flags, found)
    assert tried >= 8


def test_there_is_one_way_to_write_them() -> None:
    """What is naked by another spelling has none of the attributes that the macro gives."""
    package = include_dir().parents[1]
    assert (package / "c" / "assembly.py").is_file()
    for file in sorted(package.rglob("*")):
        if file.suffix in (".py", ".h", ".j2") and file.name != "attributes.h":
            assert not re.search(r"\(\(\s*naked|\bnaked\s*[,)]\s*\)", file.read_text(encoding="utf-8")), file
