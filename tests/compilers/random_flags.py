"""Columns with flags drawn at random: what a compiler itself lists, switched on or off against its level.

Nobody wrote these sets down because they were thought of; they ask whether generated C rests on what an
optimisation happens to do.
"""

from __future__ import annotations

import random
import re
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

import qemu
from aot_model.installation import include_dir

from .columns import CROSSED, LEVELS, Column, missing

MOST = 8
"""Flags of a column, at most, beside its level."""

ANOTHER_LANGUAGE = {
    "-freg-struct-return": "another calling convention than the C library's",
    "-fpack-struct": "other structures than the C library's in main.c",
    "-fshort-enums": "other types than the C library's on hosted machines",
    "-fshort-wchar": "other types than the C library's",
    "-fsingle-precision-constant": "constants of the test programs in main.c lose their digits",
    "-ffinite-math-only": "main.c reads infinities",
    "-fexceptions": "for C++",
    "-fnon-call-exceptions": "for C++",
    "-funwind-tables": "the linker script of the emulated boards has no place for them",
    "-fasynchronous-unwind-tables": "the linker script of the emulated boards has no place for them",
    "-fgraphite": "GCC is built without isl",
    "-fgraphite-identity": "GCC is built without isl",
    "-floop-nest-optimize": "GCC is built without isl",
    "-floop-parallelize-all": "GCC is built without isl",
    "-flive-patching": "excludes other flags",
    "-fsection-anchors": "excludes -fno-toplevel-reorder, which programs never need",
    "-ftoplevel-reorder": "excludes -fsection-anchors",
    "-fsave-optimization-record": "writes files",
    "-fopt-info": "writes text",
    "-fvar-tracking-assignments-toggle": "for those who debug GCC",
    "-fselective-scheduling": "GCC says itself that it is not for all processors",
    "-fselective-scheduling2": "GCC says itself that it is not for all processors",
    "-fsel-sched-pipelining": "goes with -fselective-scheduling",
    "-fsel-sched-pipelining-outer-loops": "goes with -fselective-scheduling",
    "-fsel-sched-reschedule-pipelined": "goes with -fselective-scheduling",
}
"""Flags that are not drawn, with the reason."""

CLANG = (
    "-fno-vectorize",
    "-fno-slp-vectorize",
    "-fno-unroll-loops",
    "-funroll-loops",
    "-fno-strict-aliasing",
    "-fwrapv",
    "-ftrapv",
    "-fno-builtin",
    "-ffp-contract=off",
    "-ffp-contract=on",
    "-ffp-contract=fast",
    "-fno-inline",
    "-fno-inline-functions",
    "-ftrivial-auto-var-init=pattern",
    "-fstack-clash-protection",
    "-fstack-protector-all",
    "-fno-math-errno",
    "-fmath-errno",
    "-fno-trapping-math",
    "-ftrapping-math",
    "-frounding-math",
    "-fstrict-float-cast-overflow",
    "-fno-strict-float-cast-overflow",
    "-fmerge-all-constants",
    "-fno-delete-null-pointer-checks",
    "-fno-omit-frame-pointer",
    "-fno-optimize-sibling-calls",
    "-fno-jump-tables",
    "-fno-plt",
    "-fPIC",
    "-fpie",
    "-fno-common",
    "-fcommon",
    "-ffunction-sections",
    "-fdata-sections",
    "-funsigned-char",
    "-fsigned-char",
    "-fno-finite-loops",
    "-ffinite-loops",
    "-fstack-usage",
    "-fno-asynchronous-unwind-tables",
    "-fstrict-enums",
    "-fno-zero-initialized-in-bss",
    "-fno-reorder-functions",
    "-g3",
    "-flto=thin",
    "-fsplit-stack",
)
"""Clang has no list of them by name alone."""

MACHINE = {
    "x86": (
        "-mno-red-zone",
        "-mstackrealign",
        "-mtune=znver3",
        "-mtune=atom",
        "-mtune=skylake-avx512",
        "-mno-sse4",
        "-mprefer-vector-width=128",
        "-mprefer-vector-width=512",
        "-mcmodel=medium",
        "-mcmodel=large",
        "-fcf-protection=full",
        "-mno-vzeroupper",
        "-mfpmath=sse",
        "-march=native",
        "-mtune=bonnell",
    ),
    "arm": (
        "-mlong-calls",
        "-mpoke-function-name",
        "-mrestrict-it",
        "-mno-sched-prolog",
        "-mbranch-cost=4",
        "-mno-unaligned-access",
        "-mpure-code",
        "-mword-relocations",
        "-mslow-flash-data",
        "-mtune=cortex-m7",
        "-mtune=cortex-m0plus",
        "-mtpcs-frame",
        "-fno-jump-tables",
        "-mgeneral-regs-only",
    ),
    "aarch64": (
        "-moutline-atomics",
        "-mstrict-align",
        "-mtune=cortex-a53",
        "-mcmodel=tiny",
        "-mcmodel=large",
        "-march=armv8.2-a+dotprod",
        "-march=armv8.2-a+fp16",
        "-mbranch-protection=standard",
    ),
    "riscv64": (
        "-mstrict-align",
        "-mcmodel=medany",
        "-mno-save-restore",
        "-msave-restore",
        "-mtune=sifive-7-series",
    ),
    "s390x": ("-march=z13", "-march=z15", "-mno-vx", "-mbackchain"),
}
"""Flags of a machine by hand: those its code may have to live with."""


@dataclass(frozen=True)
class Base:
    """A compiler without flags of its own. lists: whether it lists its switches (GCC)."""

    column: Column
    machine: str
    lists: bool


def bases() -> list[Base]:
    """Every compiler, once for every machine that it writes code for."""
    found = [
        Base(Column(c, (c,), (), ("c", "host,vector=v4")), "x86", c.startswith("gcc"))
        for c in ("gcc-12", "clang-14", "clang-19", "clang-22")
    ]
    for machine in ("aarch64", "riscv64", "s390x"):
        triple, emulator, targets, big = CROSSED[machine]
        more = ("-fexcess-precision=fast",) if machine == "s390x" else ()
        found.append(
            Base(
                Column(
                    f"gcc-12-{machine}",
                    (f"{triple}-gcc", *more),
                    (),
                    targets,
                    (emulator, "-L", f"/usr/{triple}"),
                    big_endian=big,
                ),
                machine,
                True,
            )
        )
    for core, board in qemu.BOARDS.items():
        found.append(
            Base(
                Column(
                    f"arm-none-eabi-gcc-{core}",
                    (qemu.COMPILER,),
                    (*board.flags, "-mthumb"),
                    ("c", f"cortex-{core}"),
                    board=core,
                ),
                "arm",
                True,
            )
        )
    return [base for base in found if not missing(base.column)]


@cache
def switches(command: tuple[str, ...]) -> tuple[str, ...]:
    """The switches of a GCC, both ways."""
    said = subprocess.run(
        [*command, "-Q", "--help=optimizers"], capture_output=True, text=True, check=True
    ).stdout
    names = re.findall(r"^  -f([a-z][a-z0-9-]*) +\t*\[(?:enabled|disabled)\]", said, re.MULTILINE)
    kept = [n for n in names if f"-f{n}" not in ANOTHER_LANGUAGE]
    return tuple(f for n in kept for f in (f"-f{n}", f"-fno-{n}"))


def random_columns(seed: str, count: int) -> Iterator[Column]:
    """So many columns; the same for the same seed on a machine with the same compilers."""
    rng, made = random.Random(seed), 0
    compilers: Sequence[Base] = bases()
    while made < count:
        base = rng.choice(compilers)
        pool = switches(base.column.command) if base.lists else CLANG
        machine = MACHINE[base.machine]
        flags = [rng.choice((*LEVELS, "-Og", "-Ofast" if base.lists else "-O3"))]
        flags += rng.sample(pool, rng.randint(0, MOST))
        flags += rng.sample(machine, rng.choice((0, 0, 1, 2)))
        column = Column(
            f"{base.column.name} {' '.join(flags)}",
            base.column.command,
            (*base.column.flags, *flags),
            base.column.targets,
            base.column.runner,
            base.column.board,
            base.column.big_endian,
        )
        if (base.column.board is None and missing(column)) or not _compiles(column):
            continue
        made += 1
        yield column


def _compiles(column: Column) -> bool:
    """Flags that exclude one another, or that a core or generated code refuses, are no column."""
    done = subprocess.run(
        [
            *column.command,
            *column.flags,
            f"-I{include_dir()}",
            "-Werror",
            "-xc",
            "-c",
            "-",
            "-o",
            "/dev/null",
        ],
        input='#include "aot_model/precise_math.h"\nint f(float x) { return (int)(x * 3.5f); }\n',
        capture_output=True,
        text=True,
    )
    return done.returncode == 0
