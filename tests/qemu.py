"""Run C programs on emulated Cortex-M boards.

Bare metal: own vectors and start-up code, newlib with semihosting, so that the program prints, and reads and
writes files of the host in the directory in which it runs. It may count instructions with `uint32_t
ticks(void)`: the clock of SysTick, which under -icount shift=0 goes by the instruction. Needs
arm-none-eabi-gcc with newlib and qemu-system-arm.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from aot_model.targets.cores import CORES

COMPILER, EMULATOR = "arm-none-eabi-gcc", "qemu-system-arm"


@dataclass(frozen=True)
class Board:
    """An emulated board: vectors are fetched from address 0; code and RAM as the reference manual maps
    them.
    """

    machine: str
    flags: tuple[str, ...]
    code: int
    ram: int
    vectors: int = 0
    mhz: int = 25
    """Clock of SysTick."""

    def instructions(self, ticks: int) -> int:
        """With one instruction a nanosecond a tick is 1000 / mhz instructions."""
        return ticks * 1000 // self.mhz


_CORES = {core.name.removeprefix("cortex-"): core for core in CORES}


def _board(core: str, code: int, ram: int, vectors: int = 0, mhz: int = 25) -> Board:
    return Board(_CORES[core].machine, _CORES[core].flags, code, ram, vectors, mhz)


BOARDS = {
    "m0": _board("m0", 0x0000_0400, 0x2000_0000),
    "m3": _board("m3", 0x0000_0400, 0x2000_0000),
    "m4": _board("m4", 0x0000_0400, 0x2000_0000),
    "m7": _board("m7", 0x0000_0400, 0x2000_0000),
    "m33": _board("m33", 0x1000_0400, 0x3800_0000, vectors=0x1000_0000, mhz=20),
    "m55": _board("m55", 0x0100_0000, 0x2100_0000, mhz=32),
}
"""Code for Cortex-M0 runs on the board of a Cortex-M3, which executes the same instructions."""

DTCM_END = 0x2008_0000
"""Of the Cortex-M55 board: nothing is mapped there, so a read beyond a buffer that ends here faults."""

_LINKER_SCRIPT = """\
ENTRY(reset)
MEMORY {{
    vectors (rx) : ORIGIN = {vectors:#x}, LENGTH = 0x400
    code (rx) : ORIGIN = {code:#x}, LENGTH = 0x1ffc00
    ram (rwx) : ORIGIN = {ram:#x}, LENGTH = 0x400000
}}
SECTIONS {{
    .vectors : {{ LONG(stack_top) KEEP(*(.vectors)) }} > vectors
    .text : {{ *(.text*) *(.rodata*) KEEP(*(.init)) KEEP(*(.fini)) . = ALIGN(8); }} > code
    .ARM.exidx : {{ *(.ARM.exidx* .ARM.extab*) . = ALIGN(8); }} > code
    .data : {{ data_begin = .; *(.data*) . = ALIGN(8); data_end = .; }} > ram AT > code
    data_load = LOADADDR(.data);
    .bss (NOLOAD) : {{ bss_begin = .; *(.bss* COMMON) . = ALIGN(8); bss_end = .; end = .; }} > ram
    stack_top = ORIGIN(ram) + LENGTH(ram);
}}
"""

_STARTUP = """\
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
extern char data_begin[], data_end[], data_load[], bss_begin[], bss_end[], stack_top[];
extern void initialise_monitor_handles(void);
int main(int argc, char **argv);
void _init(void) {}
void _fini(void) {}
void fault(void);
void fault(void) { _Exit(125); }
#define SYST ((volatile uint32_t *)0xE000E010)
static volatile uint32_t wraps;
static void systick(void) { wraps++; }
uint32_t ticks(void);
uint32_t ticks(void)
{
    for (;;) {
        const uint32_t w = wraps, v = SYST[2];
        __asm__ volatile("isb" ::: "memory");
        if (w == wraps) { return w * 0x1000000u + (0xFFFFFFu - v); }
    }
}
__attribute__((naked)) void reset(void);
void start(void);
void start(void)
{
    memcpy(data_begin, data_load, (size_t)(data_end - data_begin));
    memset(bss_begin, 0, (size_t)(bss_end - bss_begin));
    initialise_monitor_handles();
    SYST[1] = 0xFFFFFF; SYST[2] = 0; SYST[0] = 7;
    while (SYST[2] == 0) { } /* it is 0 until the first tick */
    exit(main(0, NULL));
}
void reset(void)
{
#ifdef __ARM_FP
    /* CPACR: floating point and vector unit on, before any function saves their registers */
    __asm__ volatile("ldr r0, =0xe000ed88\\n ldr r1, [r0]\\n orr r1, r1, #0xf00000\\n str r1, [r0]\\n dsb\\n isb");
#endif
    __asm__ volatile("bl start");
}
/* after the stack pointer, which the linker script puts first */
__attribute__((section(".vectors"), used)) static void (*const vectors[15])(void) = {
    reset, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault, fault, systick,
};
"""  # noqa: E501


def available() -> bool:
    return shutil.which(COMPILER) is not None and shutil.which(EMULATOR) is not None


LINK = (
    "-nostartfiles",
    "-T",
    "board.ld",
    "--specs=nano.specs",
    "--specs=rdimon.specs",
    "-Wl,--no-warn-rwx-segments",
    "-lm",
)


def write_support(board: Board, folder: Path) -> None:
    """startup.c and board.ld, which every program for a board needs."""
    (folder / "board.ld").write_text(
        _LINKER_SCRIPT.format(code=board.code, ram=board.ram, vectors=board.vectors)
    )
    (folder / "startup.c").write_text(_STARTUP)


def build(board: Board, sources: list[str], folder: Path, flags: list[str]) -> Path:
    """The ELF of the sources of `folder`. CalledProcessError with what the compiler said, which is printed,
    too.
    """
    write_support(board, folder)
    command = [COMPILER, *board.flags, *flags, "startup.c", *sources, *LINK, "-o", "board.elf"]
    done = subprocess.run(
        command, cwd=folder, stderr=subprocess.PIPE, text=True, errors="replace", check=False
    )
    sys.stderr.write(done.stderr)
    done.check_returncode()
    return folder / "board.elf"


def run(board: Board, elf: Path, timeout: float = 120) -> str:
    """What the program printed. AssertionError when main returns anything but 0; 125 is a fault."""
    command = [
        EMULATOR,
        "-M",
        board.machine,
        "-nographic",
        "-monitor",
        "none",
        "-serial",
        "none",
        "-semihosting",
        "-icount",
        "shift=0",
    ]
    command += ["-kernel", elf.name]
    done = subprocess.run(
        command, cwd=elf.parent, timeout=timeout, stdin=subprocess.DEVNULL, capture_output=True, text=True
    )
    assert done.returncode == 0, f"exit status {done.returncode}\n{(done.stdout + done.stderr)[-3000:]}"
    return done.stdout + done.stderr


def build_and_run(
    board: Board, sources: list[str], folder: Path, flags: list[str], timeout: float = 120
) -> str:
    """Compile the sources of `folder` and run them there; what they printed."""
    return run(board, build(board, sources, folder, flags), timeout)
