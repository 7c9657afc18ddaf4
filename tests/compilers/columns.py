"""The columns of the matrix: a compiler with flags, what runs its programs, and the code that fits both."""

from __future__ import annotations

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import qemu

LEVELS = ("-O0", "-O1", "-O2", "-O3", "-Os")
MACHINES = {
    "x86-64-v2": ("sse4_2",),
    "x86-64-v3": ("avx2", "bmi2", "fma"),
    "x86-64-v4": ("avx512f", "avx512bw", "avx512vl"),
}
"""Levels of x86-64, and what /proc/cpuinfo has where they run."""

OF_BUILDS = (
    ("-Og", "-g3"),
    ("-O2", "-fstack-protector-all"),
    ("-O2", "-finstrument-functions"),
    ("-O2", "-funsigned-char", "-fshort-enums"),
    ("-O2", "-frounding-math"),
    ("-O2", "-ftrapv"),
    ("-O2", "-fPIC"),
)
OF_GCC = (
    ("-Ofast",),
    ("-O2", "-funsafe-math-optimizations"),
    ("-O2", "-fpack-struct"),
    ("-O2", "-fsingle-precision-constant"),
)
NEWER = ("gcc-13", "gcc-14", "gcc-15", "gcc-16")
"""Not among Debian 12's packages: columns for whoever has them."""
HOOKS = ("-Wl,--defsym,__cyg_profile_func_enter=_init", "-Wl,--defsym,__cyg_profile_func_exit=_init")
"""What instrumented functions call, as an empty function of the start-up code."""
OF_FIRMWARE = (
    ("-Ofast",),
    ("-O2", "-fstack-protector-all"),
    ("-O2", "-finstrument-functions", *HOOKS),
    ("-O2", "-fno-omit-frame-pointer"),
    ("-O2", "-mno-unaligned-access"),
    ("-O2", "-mslow-flash-data"),
    ("-O2", "-ffixed-r9"),
    ("-Og", "-g3"),
)
"""What the builds of real projects add: another language, code that compilers put into functions."""


@dataclass(frozen=True)
class Column:
    """A compiler with flags. targets: the code that it is given, as `aot-model --target` has it."""

    name: str
    command: tuple[str, ...]
    flags: tuple[str, ...]
    targets: tuple[str, ...]
    runner: tuple[str, ...] = ()
    board: str | None = None
    """The emulated board of qemu.BOARDS, which runs programs instead of `runner`."""
    big_endian: bool = False

    @property
    def emulated(self) -> bool:
        return bool(self.runner) or self.board is not None

    @property
    def wide_floats(self) -> bool:
        """x87 and m68k compute in 80 bits: a tie behind a quotient may fall to the other side
        (docs/compilers.md).
        """
        return "-m32" in self.flags or self.compiler.endswith("-m68k")

    @property
    def compiler(self) -> str:
        return self.name.partition(" ")[0]


def columns() -> list[Column]:
    """All columns, whether this machine has them or not."""
    return [*_x86(), *_crossed(), *_firmware()]


def _x86() -> Iterator[Column]:
    for compiler in ("gcc-12", *NEWER, "clang-14", "clang-19", "clang-22"):
        variants = [(level,) for level in LEVELS]
        variants += [("-O2", f"-march={machine}") for machine in (*MACHINES, "native")]
        variants += [("-O2", more) for more in ("-flto", "-m32", "-fno-inline", "-funroll-loops")]
        for flags in variants:
            vectors: tuple[str, ...] = ("v4",)
            if flags[1:] in (("-march=x86-64-v3",), ("-march=native",)):
                vectors = ("v8",)
            elif flags[1:] == ("-march=x86-64-v4",):
                vectors = ("v8", "v16")
            if compiler == "clang-22" and flags[1:] in (("-march=x86-64-v4",), ("-march=native",)):
                flags = (*flags, "-mno-avx512bw")  # docs/compilers.md
            yield Column(
                f"{compiler} {' '.join(flags)}",
                (compiler,),
                flags,
                ("c", *(f"host,vector={v}" for v in vectors)),
            )
    for compiler in ("gcc-12", "clang-19"):
        for flags in (*OF_BUILDS, *(OF_GCC if compiler == "gcc-12" else ())):
            yield Column(f"{compiler} {' '.join(flags)}", (compiler,), flags, ("c", "host,vector=v4"))


CROSSED = {
    "aarch64": ("aarch64-linux-gnu", "qemu-aarch64", ("c", "host,vector=neon"), False),
    "riscv64": ("riscv64-linux-gnu", "qemu-riscv64", ("c", "host,vector=v4"), False),
    "s390x": ("s390x-linux-gnu", "qemu-s390x", ("c", "host,vector=v4"), True),
    "powerpc": ("powerpc-linux-gnu", "qemu-ppc", ("c", "host,vector=v4"), True),
    "m68k": ("m68k-linux-gnu", "qemu-m68k", ("c", "host,vector=v4"), True),
    "sparc64": ("sparc64-linux-gnu", "qemu-sparc64", ("c", "host,vector=v4"), True),
}
"""By machine: the name of its tools, its emulator, the code that fits, whether it is big-endian.

What is rare about them: m68k aligns to two bytes and computes floats in 80 bits, sparc64 faults where an
address is not aligned.
"""
ONE_LEVEL = ("powerpc", "m68k", "sparc64")
"""Machines that programs are built for with -O2 alone."""


def _crossed() -> Iterator[Column]:
    for machine, (triple, emulator, targets, big) in CROSSED.items():
        # In ISO C mode GCC computes floats as doubles there (FLT_EVAL_METHOD 1), which rounds otherwise:
        # docs/compilers.md.
        precision = ("-fexcess-precision=fast",) if machine == "s390x" else ()
        compilers = {f"gcc-12-{machine}": (f"{triple}-gcc", *precision)}
        if machine == "aarch64":
            compilers |= {f"clang-{v}-{machine}": (f"clang-{v}", f"--target={triple}") for v in (14, 19, 22)}
        for name, command in compilers.items():
            for level in ("-O2",) if machine in ONE_LEVEL else LEVELS:
                yield Column(
                    f"{name} {level}",
                    command,
                    (level,),
                    targets,
                    (emulator, "-L", f"/usr/{triple}"),
                    big_endian=big,
                )


def _firmware() -> Iterator[Column]:
    for core, board in qemu.BOARDS.items():
        for flags in (*((level,) for level in LEVELS), ("-O2", "-flto"), *OF_FIRMWARE):
            if "-mslow-flash-data" in flags and core == "m0":
                continue  # the compiler has it from ARMv7-M on
            name = " ".join(f for f in flags if not f.startswith("-Wl"))
            yield Column(
                f"arm-none-eabi-gcc-{core} {name}",
                (qemu.COMPILER,),
                (*board.flags, "-mthumb", *flags),
                ("c", f"cortex-{core}"),
                board=core,
            )


@cache
def missing(column: Column) -> str:
    """Why this machine has not got a column; empty when it has."""
    programs = [column.command[0], *column.runner[:1], *([qemu.EMULATOR] if column.board else [])]
    for program in programs:
        if shutil.which(program) is None:
            return f"no {program}"
    machine = next((f.removeprefix("-march=") for f in column.flags if f.startswith("-march=")), "")
    lacking = [feature for feature in MACHINES.get(machine, ()) if feature not in _features()]
    if lacking:
        return f"the processor has no {lacking[0]}"
    if column.board is not None:
        return ""
    with tempfile.TemporaryDirectory(prefix="aot-model-column-") as folder:
        (Path(folder) / "probe.c").write_text(
            '#include <math.h>\n#include <stdio.h>\nint main(void) { return printf("%f", sqrt(2.0)) < 0; }\n'
        )
        done = subprocess.run(
            [*column.command, *column.flags, "probe.c", "-lm", "-o", "probe"],
            cwd=folder,
            capture_output=True,
            text=True,
        )
        if done.returncode:
            return f"it cannot build a program: {' '.join(done.stderr.split())[:120]}"
        done = subprocess.run([*column.runner, "./probe"], cwd=folder, capture_output=True, text=True)
        return (
            ""
            if done.returncode == 0
            else (f"its programs do not run: {' '.join(done.stderr.split())[:120]}")
        )


@cache
def _features() -> frozenset[str]:
    """The processor's features as Linux names them."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return frozenset()
    return frozenset(next((line for line in lines if line.startswith("flags")), "").split())
