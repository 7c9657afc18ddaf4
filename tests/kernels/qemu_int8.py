"""Builds kernels into one bare program and runs it, on the host under the sanitizers or on a Cortex-M in QEMU.

The program runs every case, compares with the expected bytes, and prints what differs and the instructions taken
(SysTick under -icount shift=0: one tick is 40 instructions).
"""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from aot_model.kernels.base import KernelCode

STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wpedantic", "-Werror"]
BOARD = {
    "cortex-m0": ("mps2-an385", ["-mcpu=cortex-m0", "-mthumb"]),
    "cortex-m3": ("mps2-an385", ["-mcpu=cortex-m3", "-mthumb"]),
    "cortex-m4": ("mps2-an386", ["-mcpu=cortex-m4", "-mthumb", "-mfpu=fpv4-sp-d16", "-mfloat-abi=hard"]),
    "cortex-m7": ("mps2-an500", ["-mcpu=cortex-m7", "-mthumb", "-mfpu=fpv5-d16", "-mfloat-abi=hard"]),
}

_START = r"""
#include <stdint.h>
#include <string.h>
extern char stack_top[], data_load[], data_start[], data_end[], bss_start[], bss_end[];
int main(void);
static int semihost(int op, const void *arg)
{
    register int r0 __asm__("r0") = op;
    register const void *r1 __asm__("r1") = arg;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}
void put(const char *text) { semihost(4, text); }
#define SYST ((volatile uint32_t *)0xE000E010)
static volatile uint32_t wraps;
static void systick(void) { wraps++; }
uint32_t ticks(void)
{
    for (;;) {
        const uint32_t w = wraps, v = SYST[2];
        __asm__ volatile("isb" ::: "memory");
        if (w == wraps) { return w * 0x1000000u + (0xFFFFFFu - v); }
    }
}
static void stop(uint32_t code)
{
    const uint32_t arg[2] = {0x20026, code};
    semihost(0x20, arg);
    for (;;) { }
}
static void fault(void) { put("fault\n"); stop(125); }
void reset(void)
{
#ifdef __ARM_FP
    *(volatile uint32_t *)0xE000ED88 |= 0xFu << 20;
    __asm__ volatile("dsb\n isb" ::: "memory");
#endif
    memcpy(data_start, data_load, (size_t)(data_end - data_start));
    memset(bss_start, 0, (size_t)(bss_end - bss_start));
    SYST[1] = 0xFFFFFF; SYST[2] = 0; SYST[0] = 7;
    stop((uint32_t)main());
}
__attribute__((section(".vectors"), used)) static void (*const vectors[16])(void) = {
    (void (*)(void))stack_top, reset, fault, fault, fault, fault, fault, 0, 0, 0, 0, fault, fault, 0, fault, systick};
"""
_LINK = """
MEMORY { CODE (rx) : ORIGIN = 0, LENGTH = 4M  RAM (rw) : ORIGIN = 0x20000000, LENGTH = 4M }
ENTRY(reset)
SECTIONS {
  .text : { KEEP(*(.vectors)) *(.text .text.*) *(.rodata .rodata.*) . = ALIGN(8); } > CODE
  .ARM.exidx : { *(.ARM.exidx*) } > CODE
  .data : ALIGN(8) { data_start = .; *(.data .data.*) . = ALIGN(8); data_end = .; } > RAM AT > CODE
  data_load = LOADADDR(.data);
  .bss (NOLOAD) : ALIGN(8) { bss_start = .; *(.bss .bss.* COMMON) . = ALIGN(8); bss_end = .; end = .; } > RAM
  stack_top = ORIGIN(RAM) + LENGTH(RAM);
}
"""
_MAIN = r"""
#ifdef BARE
void put(const char *text);
uint32_t ticks(void);
#else
#include <stdio.h>
static void put(const char *text) { fputs(text, stdout); }
static uint32_t ticks(void) { return 0; }
#endif
static void put_number(int32_t value)
{
    char text[16], *p = text + 15;
    uint32_t v = value < 0 ? 0u - (uint32_t)value : (uint32_t)value;
    *p = 0;
    do { *--p = (char)('0' + (char)(v % 10u)); v /= 10u; } while (v);
    if (value < 0) { *--p = '-'; }
    put(p);
}
static int check(int32_t id, const char *what, const uint8_t *got, const uint8_t *want, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        if (got[i] != want[i]) {
            put("case "); put_number(id); put(" "); put(what); put(": element "); put_number(i);
            put(" is "); put_number((int8_t)got[i]); put(" and not "); put_number((int8_t)want[i]); put("\n");
            return 1;
        }
    }
    return 0;
}
"""


@dataclass(frozen=True)
class Case:
    code: KernelCode
    x: np.ndarray
    want: np.ndarray
    extra: str = ""
    """Declarations that the tail uses."""
    overlap: bool = True


def _array(name: str, ctype: str, data: np.ndarray, align: int, const: bool = True) -> str:
    numbers = [str(int(v)) if int(v) != -(2**31) else "(-2147483647 - 1)" for v in data.reshape(-1)] or ["0"]
    values = "\n" + "\n".join(", ".join(numbers[i : i + 16]) + "," for i in range(0, len(numbers), 16))
    qualifier = "static const" if const else "static"
    return f"{qualifier} {ctype} {name}[{max(data.size, 1)}] __attribute__((aligned({align}))) = {{{values}}};"


def function(code: KernelCode, name: str, x_type: str, y_type: str) -> str:
    """The kernel as a C function of x, y, its constants and its scratch."""
    parameters = [f"const {x_type} *x", f"{y_type} *y"]
    parameters += [f"const {np.dtype(c.data.dtype).name}_t *{c.name}" for c in code.constants]
    parameters += [f"{s.ctype} *{s.name}" for s in code.scratch]
    body = "".join(f"    {line}\n" if line else "\n" for line in code.body.splitlines())
    return f"/* {code.note} */\nstatic void {name}({', '.join(parameters)})\n{{\n{body}}}\n"


def program(cases: list[Case]) -> str:
    """C text of a program that checks all cases."""
    out = ["#include <stdint.h>", "#include <stddef.h>", "#include <string.h>"]
    seen: set[str] = set()
    for case in cases:
        for include in sorted(case.code.includes):
            if include not in seen:
                out.append(f"#include <{include}>")
                seen.add(include)
    for case in cases:
        for helper in case.code.helpers:
            if helper not in seen:
                out.append(helper)
                seen.add(helper)
    out.append(_MAIN)
    calls = []
    for i, case in enumerate(cases):
        xt, yt = f"{case.x.dtype.name}_t", f"{case.want.dtype.name}_t"
        code, nx, ny = case.code, case.x.size, case.want.size
        out.append(case.extra)
        out.append(function(code, f"kernel{i}", xt, yt))
        out.append(_array(f"given{i}", xt, case.x, 4))
        out.append(_array(f"want{i}", yt, case.want, 4))
        for c in code.constants:
            out.append(_array(f"{c.name}{i}", f"{c.data.dtype.name}_t", c.data, c.align))
        for s in code.scratch:
            size = {"uint32_t": 4, "int32_t": 4, "int16_t": 2}.get(s.ctype, 1)
            out.append(f"static {s.ctype} {s.name}{i}[{-(-s.nbytes // size)}] __attribute__((aligned({max(s.align, size)})));")
        rest = "".join(f", {c.name}{i}" for c in code.constants) + "".join(f", {s.name}{i}" for s in code.scratch)
        out.append(f"static {yt} found{i}[{ny}];")
        lines = [
            f"    memset(found{i}, 0x5a, sizeof found{i});",
            "    start = ticks();",
            f"    kernel{i}(given{i}, found{i}{rest});",
            f'    put("ticks "); put_number({i}); put(" "); put_number((int32_t)(ticks() - start)); put("\\n");',
            f'    bad += check({i}, "apart", (const uint8_t *)found{i}, (const uint8_t *)want{i}, {ny});',
        ]
        if code.slack is not None and case.overlap and xt == yt:
            step = code.slack_step
            most = min(code.slack, nx) // step * step
            for offset in sorted({most, most // 2 // step * step if most > 0 else most - 3 * step, min(0, most)}):
                x_at, y_at = max(-offset, 0), max(offset, 0)
                name = f"both{i}_{offset}".replace("-", "n")
                out.append(f"static {xt} {name}[{max(x_at + nx, y_at + ny)}] __attribute__((aligned(4)));")
                lines += [
                    f"    memcpy({name} + {x_at}, given{i}, sizeof given{i});",
                    f"    kernel{i}({name} + {x_at}, {name} + {y_at}{rest});",
                    f'    bad += check({i}, "y - x = {offset}", (const uint8_t *){name} + {y_at}, (const uint8_t *)want{i}, {ny});',
                ]
        calls += lines
    main = "\n".join(calls)
    out.append(f"int main(void)\n{{\n    int bad = 0;\n    uint32_t start;\n{main}\n    return bad != 0;\n}}\n")
    return "\n".join(out)


def run_host(cases: list[Case], directory: Path, flags: tuple[str, ...] = ("-O1",), compiler: str = "gcc", sanitized: bool = True) -> str:
    source = directory / "host.c"
    source.write_text(program(cases))
    exe = directory / "host"
    sanitize = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"] if sanitized else []
    _compile([compiler, *STRICT, *flags, *sanitize, "-o", exe, source])
    return _run([str(exe)])


def run_board(cases: list[Case], directory: Path, core: str, flags: tuple[str, ...] = ("-O2",)) -> tuple[str, list[int]]:
    """(output, ticks of each case)."""
    elf = build_board(cases, directory, core, flags)
    board = BOARD[core][0]
    command = ["qemu-system-arm", "-M", board, "-nographic", "-monitor", "none", "-serial", "none"]
    command += ["-semihosting-config", "enable=on,target=native", "-icount", "shift=0", "-kernel", str(elf)]
    text = _run(command)
    taken = [int(line.split()[2]) for line in text.splitlines() if line.startswith("ticks ")]
    return text, taken


def build_board(cases: list[Case], directory: Path, core: str, flags: tuple[str, ...]) -> Path:
    (directory / "board.c").write_text(program(cases))
    (directory / "start.c").write_text(_START)
    (directory / "link.ld").write_text(_LINK)
    arch = BOARD[core][1]
    base = ["arm-none-eabi-gcc", *arch, *flags, "-DBARE"]
    _compile([*base, *STRICT, "-c", "-o", directory / "board.o", directory / "board.c"])
    _compile([*base, "-c", "-o", directory / "start.o", directory / "start.c"])
    elf = directory / f"{core}.elf"
    link = ["-nostartfiles", "-T", str(directory / "link.ld"), "-o", str(elf)]
    _compile([*base, directory / "board.o", directory / "start.o", *link])
    return elf


def available() -> bool:
    return shutil.which("qemu-system-arm") is not None and shutil.which("arm-none-eabi-gcc") is not None


def _compile(command: list[object]) -> None:
    done = subprocess.run([str(c) for c in command], capture_output=True, text=True)
    assert done.returncode == 0, "\n".join(line[:200] for line in done.stderr.splitlines()[:40])


def _run(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    return done.stdout + done.stderr
