"""Builds a bare-metal C program for Cortex-M55 and runs it in QEMU (mps3-an547), counting instructions.

The program's `int main(void)` may call `void print(const char *)` and `void print_int(long)`, and
`unsigned long now(void)`: time in units of 31.25 instructions (SysTick at 32 MHz, one instruction = 1 ns).
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

STARTUP = r"""
#include <stddef.h>
#include <stdint.h>
#define REG(a) (*(volatile uint32_t *)(a))
int main(void);
void print(const char *text);
void print_int(long value);
unsigned long now(void);
extern char stack_top[], bss_start[], bss_end[];
static int semihost(int operation, const void *argument)
{
    register int r0 __asm__("r0") = operation;
    register const void *r1 __asm__("r1") = argument;
    __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
    return r0;
}
void print(const char *text) { (void)semihost(0x04, text); }
void print_int(long value)
{
    char digits[16], *at = digits + 15;
    unsigned long rest = value < 0 ? 0ul - (unsigned long)value : (unsigned long)value;
    *at = 0;
    do { *--at = (char)('0' + rest % 10); } while ((rest /= 10) != 0);
    if (value < 0) *--at = '-';
    print(at);
}
static void stop(int code)
{
    uintptr_t a[2] = {0x20026, (uintptr_t)code};
    (void)semihost(0x20, a);
    for (;;) {}
}
unsigned long now(void) { return 0xFFFFFFul - REG(0xE000E018); }
static void fault(void) { print("FAULT cfsr "); print_int((long)REG(0xE000ED28)); print("\n"); stop(125); }
void reset(void);
void reset(void)
{
    REG(0xE000ED88) |= 0xFu << 20;  /* CPACR: FPU and MVE */
    __asm__ volatile("dsb\n\tisb");
    for (char *p = bss_start; p < bss_end; p++) *p = 0;
    REG(0xE000E014) = 0xFFFFFF;
    REG(0xE000E018) = 0;
    REG(0xE000E010) = 5;
    stop(main());
}
__attribute__((section(".vectors"), used)) static const void *const vectors[16] = {
    stack_top, (void *)reset, (void *)fault, (void *)fault, (void *)fault, (void *)fault, (void *)fault, (void *)fault,
    (void *)fault, (void *)fault, (void *)fault, (void *)fault, (void *)fault, (void *)fault, (void *)fault, (void *)fault};
"""

LINK = """
ENTRY(reset)
MEMORY {
  VEC (rx) : ORIGIN = 0x0, LENGTH = 0x100
  CODE (rx) : ORIGIN = 0x01000000, LENGTH = 2M
  RAM (rwx) : ORIGIN = 0x21000000, LENGTH = 4M
}
SECTIONS {
  .vectors : { KEEP(*(.vectors)) } > VEC
  .text : { *(.text .text.*) *(.rodata .rodata.*) . = ALIGN(16); } > CODE
  .ARM.exidx : { *(.ARM.exidx*) } > CODE
  .data : { *(.data .data.*) } > RAM
  .bss (NOLOAD) : ALIGN(16) { bss_start = .; *(.bss .bss.* COMMON) . = ALIGN(16); bss_end = .; } > RAM
  stack_top = ORIGIN(RAM) + LENGTH(RAM);
}
"""

FLAGS = ("-mcpu=cortex-m55", "-mthumb", "-mfloat-abi=hard", "-std=c99")
DTCM_END = 0x20080000
"""First address behind the data memory: nothing is mapped there, so a read beyond a buffer that ends here faults."""


def missing() -> str | None:
    """What this machine lacks for these runs, or None."""
    lacking = [tool for tool in ("arm-none-eabi-gcc", "qemu-system-arm") if shutil.which(tool) is None]
    return ", ".join(lacking) or None


def build(source: str, directory: Path, optimise: str = "-O2", flags: tuple[str, ...] = ()) -> Path:
    """Compiles and links `source`; returns the ELF."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "program.c").write_text(source)
    (directory / "startup.c").write_text(STARTUP)
    (directory / "link.ld").write_text(LINK)
    elf = directory / "program.elf"
    gcc = ["arm-none-eabi-gcc", *FLAGS, "-g"]
    link = ["-nostartfiles", "--specs=nano.specs", "-Wl,--no-warn-rwx-segments", "-T", "link.ld"]
    for command in (
        [*gcc, "-O2", "-c", "startup.c", "-o", "startup.o"],
        [*gcc, optimise, *flags, "-c", "program.c", "-o", "program.o"],
        [*gcc, *link, "program.o", "startup.o", "-o", "program.elf"],
    ):
        subprocess.run(command, cwd=directory, check=True)
    return elf


def run(elf: Path, timeout: float = 120.0) -> tuple[int, str]:
    """(exit code of main, what it printed); code 125 after a fault."""
    command = ["qemu-system-arm", "-M", "mps3-an547", "-nographic", "-monitor", "none", "-serial", "none"]
    command += ["-icount", "shift=0", "-kernel", str(elf), "-semihosting-config", "enable=on,target=native"]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=timeout)
    return done.returncode, done.stdout + done.stderr
