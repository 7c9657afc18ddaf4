"""What functions of the C library and libgcc need of the stack: read off a disassembly, against a painted
stack, for every helper that GCC calls and all of libm.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from aot_model.cli import main
from aot_model.cli.library_stack import disassembled, library_needs
from qemu import BOARDS, COMPILER, available, build_and_run

DISASSEMBLY = """
x.o:     file format elf32-littlearm

SYMBOL TABLE:
00000000 g     F .text\t0000000c first
00000000 g     F .text\t0000000c alias

Disassembly of section .text:

00000000 <first>:
   0:\tpush\t{r4-r6, lr}
   2:\tvpush\t{d8-d9}
   4:\tsub.w\tsp, sp, #24
   6:\tbl\t0 <second>
\t\t\t6: R_ARM_THM_CALL\tsecond
   8:\tadd\tsp, #24
   a:\tpopne\t{r4, pc}

0000000c <second>:
   c:\tstrd\tr4, r5, [sp, #-16]!
   e:\tbx\tlr

00000010 <third>:
  10:\tblx\tr3
  12:\tpop\t{pc}

00000014 <fourth>:
  14:\tsub\tsp, r3
  16:\tb.w\t0 <.text>
\t\t\t16: R_ARM_THM_JUMP24\telsewhere
"""


def test_disassembly() -> None:
    code = disassembled(DISASSEMBLY)
    assert code["first"] is code["alias"] and (code["first"].size, code["first"].calls) == (
        16 + 16 + 24,
        {"second"},
    ), "it goes on in the next"
    assert (code["second"].size, code["second"].calls) == (16, set())
    assert (
        code["third"].size is None and code["fourth"].size is None and code["fourth"].calls == {"elsewhere"}
    )
    assert not disassembled(DISASSEMBLY.replace("littlearm", "x86-64"))


def body(*instructions: str) -> int | None:
    """What a function of these instructions needs."""
    lines = "".join(f"   {2 * at:x}:\t{text}\n" for at, text in enumerate(instructions))
    head = "x.o:     file format elf32-littlearm\n\nDisassembly of section .text:\n\n00000000 <f>:\n"
    return disassembled(head + lines)["f"].size


@pytest.mark.parametrize(
    ("size", "instructions"),
    [
        (8, "push {r7, lr}|mov r7, sp|mov sp, r7|pop {r7, pc}"),
        (None, "mov sp, r3"),
        (None, "ldr.w sp, [r0, #4]"),
        (None, "add sp, r4"),
        (None, "add.w sp, sp, #4294967280"),
        (24, "stmdb sp!, {r4, r5, r6, r7, r8, lr}|ldmia.w sp!, {r4, r5, r6, r7, r8, pc}"),
        (40, "vpush {d8-d9}|subw sp, sp, #24|addw sp, sp, #24"),
        (32, "vstmdb sp!, {s16-s19}|vstrw.32 q4, [sp, #-16]!"),
        (4, "str.w lr, [sp, #-4]!|str r0, [sp, #12]|ldr.w pc, [sp], #4"),
        (None, "bx r3"),
        (None, "blx r3"),
        (None, "ldr pc, [r3, #8]"),
        (None, "ldr.w pc, [pc, #4]"),
        (0, "ldr.w pc, [r0, r2, lsl #2]"),
        (0, "lsls r3, r3, #2|ldr r3, [r2, r3]|mov pc, r3"),
        (None, "ldr r3, [r2, #4]|mov pc, r3"),
        (None, "ldr r3, [r2, r3]|movs r3, r1|mov pc, r3"),
        (0, "tbb [pc, r0]|mov pc, lr"),
    ],
)
def test_instructions_that_move_the_stack_pointer_or_jump(size: int | None, instructions: str) -> None:
    assert body(*(one.replace(" ", "\t", 1) for one in instructions.split("|"))) == size


def test_a_call_stays_a_call_when_another_at_the_same_place_is_corrected() -> None:
    code = disassembled("""x.o:     file format elf32-littlearm
Disassembly of section .text:

00000000 <f>:
   0:\tbl\t10 <g>
   4:\tbl\t10 <g>
\t\t\t4: R_ARM_THM_CALL\th
""")
    assert code["f"].calls == {"g", "h"}


SWITCH = """int g(int);
int32_t m_run(int32_t x, int32_t y) { switch (x) { case 0: return g(y); case 1: return g(y * 5); case 2: return g(y + 3);
case 3: return g(y * 7); case 4: return g(y * y); case 5: return 9; case 6: return g(1); } return y; }
int g(int x) { return x + 3; }
"""  # noqa: E501


@pytest.mark.skipif(not available(), reason="needs arm-none-eabi-gcc and qemu-system-arm")
def test_helpers_that_the_call_graph_lacks(tmp_path: Path) -> None:
    """A switch for Cortex-M0 at -Os calls __gnu_thumb1_case_uqi, which is in no call graph."""
    (tmp_path / "m.c").write_text(f"#include <stdint.h>\n{SWITCH}")
    (tmp_path / "m.json").write_text(json.dumps({"c_name": "m"}))
    command = [COMPILER, *BOARDS["m0"].flags, "-mthumb", "-Os", "-fno-inline"]
    subprocess.run([*command, "-fcallgraph-info=su", "-c", "m.c"], cwd=tmp_path, check=True)
    assert "case" not in (tmp_path / "m.ci").read_text()
    said = tmp_path / "said"
    assert (
        main(
            [
                "stack",
                str(tmp_path / "m.json"),
                str(tmp_path / "m.o"),
                f"--compiler={' '.join(command)}",
                "--max-stack=1k",
                "-o",
                str(said),
            ]
        )
        == 0
    )
    assert "m_run() needs 12 bytes" in said.read_text() and "__gnu_thumb1_case_" in said.read_text()


ONE = (
    "sin cos tan asin acos atan sinh cosh tanh asinh acosh atanh exp exp2 expm1 log log2 log10 log1p sqrt "
    "cbrt erf erfc tgamma lgamma floor ceil round rint nearbyint trunc fabs lrint llrint lround llround"
)
TWO = "pow atan2 fmod remainder fmin fmax fma copysign nextafter hypot ldexp"
MATH = [f"{name}{kind}" for name in f"{ONE} {TWO}".split() for kind in ("f", "")]
LARGE_FRAMES = {"lgamma", "lgammaf", "tgamma", "sin", "cos", "tan"}
"""On Cortex-M0, where a frame that no instruction can subtract is computed: these have no number."""
MEMORY = ["memcpy", "memset", "memmove"]
WITH_POINTERS = ["frexpf", "frexp"]
NOT_ARITHMETIC = re.compile("__aeabi_(unwind|uread|uwrite|read_tp)")


@pytest.mark.skipif(not available(), reason="needs arm-none-eabi-gcc and qemu-system-arm")
@pytest.mark.parametrize("board", ["m0", "m4", "m55"])
def test_functions_against_a_painted_stack(tmp_path: Path, board: str) -> None:
    """Every helper of the ABI and the functions of libm, with hostile arguments: numbers small and huge,
    infinities, NaN, integers of all sizes, in the registers of integers and of floats.
    """
    command = [COMPILER, *BOARDS[board].flags, "-mthumb"]
    libgcc = subprocess.run([*command, "-print-libgcc-file-name"], capture_output=True, text=True, check=True)
    nm = subprocess.run(
        ["arm-none-eabi-nm", "--defined-only", libgcc.stdout.strip()],
        capture_output=True,
        text=True,
        check=True,
    )
    defined = set(re.findall(r" [TW] (__aeabi_\w+)", nm.stdout))
    helpers = sorted(name for name in defined if not NOT_ARITHMETIC.match(name))
    assert len(helpers) > 50
    names = [*helpers, *MATH, *MEMORY, *WITH_POINTERS]
    needs = library_needs(command, names)
    uncounted = set(names) - set(needs)
    assert uncounted <= LARGE_FRAMES and (board == "m0" or not uncounted), uncounted
    kinds = {**dict.fromkeys(MEMORY, 1), **dict.fromkeys(WITH_POINTERS, 2)}
    (tmp_path / "main.c").write_text(
        PAINTED
        % (
            "".join(f"extern void {n}(void);\n" for n in needs),
            "".join(f'    {{"{n}", {n}, {size}, {kinds.get(n, 0)}}},\n' for n, size in needs.items()),
        )
    )
    printed = build_and_run(BOARDS[board], ["main.c"], tmp_path, ["-O2", "-fno-builtin", "-w"])
    used = {name: int(size) for name, size in re.findall(r"(\w+) used (\d+)", printed)}
    assert set(used) == set(needs)
    over = {name: (used[name], needs[name]) for name in used if used[name] > needs[name]}
    assert not over, over
    air = {name: (used[name], needs[name]) for name in helpers if used[name] * 4 < needs[name] - 32}
    assert not air, f"no number out of the air: {air}"


PAINTED = """#include <stdint.h>
#include <stdio.h>
%s
/* Integers are in r0 to r3, floats and doubles in d0 and d1 or r0 to r3: any function finds its arguments. */
typedef double any(uint32_t, uint32_t, uint32_t, uint32_t, double, double);
static const struct { const char *name; void (*f)(void); int32_t needs, kind; } table[] = {
%s};
static const uint32_t words[] = {0, 1, 7, 0x3f000000u, 0x3fe00000u, 0x3f800000u, 0xc0e00000u, 0x42c80000u, 0x4e8f0d18u,
    0x41b00000u, 0x7f7fffffu, 0x7fefffffu, 0x7ff00000u, 0xff800000u, 0x7fc00000u, 0x80000000u, 0xffffffffu, 0xdf3c4000u};
#define COUNT (sizeof words / sizeof *words)
static volatile double sink;
__attribute__((noinline)) static int32_t used(any *f, const uint32_t *w, int32_t below)
{
    union { uint32_t w[2]; double d; } a = {{w[0], w[1]}}, b = {{w[2], w[3]}};
    register volatile uint32_t *sp __asm__("sp");
    volatile uint32_t *const top = sp;
    volatile uint32_t *at;
    for (at = top - below / 4; at != top; ++at) { *at = 0xA5A5A5A5u; }
    sink = f(w[0], w[1], w[2], w[3], a.d, b.d);
    for (at = top - below / 4; at != top && *at == 0xA5A5A5A5u; ++at) { }
    return (int32_t)((top - at) * 4);
}
static uint32_t buffer[64];
int main(void)
{
    for (unsigned t = 0; t < sizeof table / sizeof *table; ++t) {
        int32_t most = 0;
        uint32_t random = 1;
        __asm__ volatile("cpsid i" ::: "memory");
        for (unsigned i = 0; i < COUNT * COUNT; ++i) {
            const uint32_t p = (uint32_t)(uintptr_t)buffer;
            uint32_t w[4] = {words[i / COUNT], words[i %% COUNT]};
            for (int k = 2; k < 4; ++k) { random = random * 1664525u + 1013904223u; w[k] = words[(random >> 8) %% COUNT]; }
            if (table[t].kind == 1) { w[0] = p + i %% 5; w[1] = p + 64 + i %% 7; w[2] = i %% 67; }
            if (table[t].kind == 2) { w[0] = w[1] = w[2] = w[3] = p; }
            const int32_t u = used((any *)table[t].f, w, (table[t].needs + 256) / 4 * 4);
            most = u > most ? u : most;
        }
        __asm__ volatile("cpsie i" ::: "memory");
        printf("%%s used %%d\\n", table[t].name, (int)most);
    }
    return 0;
}
"""  # noqa: E501
