"""Loops of known length through QEMU and the plug-in: counts, layers, caches, alignment."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

import qemu
from aot_model.cycles import trace
from aot_model.cycles.disassembly import Code
from aot_model.cycles.estimate import estimate
from aot_model.cycles.rules import MEMORIES, Cache, Memory

pytestmark = pytest.mark.skipif(not qemu.available(), reason="needs arm-none-eabi-gcc and qemu-system-arm")

_MAIN = """\
#include <stdint.h>
static const int32_t table[4096] = { 1 };
static int32_t room[4];
__attribute__((naked, noinline)) static void first(int32_t n, const void *p)
{ __asm__ volatile(".p2align 2\\n nop\\n 1: subs r0, r0, #1\\n bne.n 1b\\n bx lr"); }
__attribute__((naked, noinline)) static void second(int32_t n, const void *p)
{ __asm__ volatile(".p2align 2\\n nop\\n 1: ldr r2, [r1]\\n ldr r3, [r1, #4]\\n"
    " subs r0, r0, #1\\n bne.n 1b\\n bx lr"); }
__attribute__((naked, noinline)) static void third(int32_t n, const void *p)
{ __asm__ volatile(".p2align 2\\n nop\\n nop\\n 1: ldr r2, [r1, #2]\\n nop\\n"
    " subs r0, r0, #1\\n bne.n 1b\\n bx lr"); }
__attribute__((naked, noinline)) static void fourth(int32_t n, const void *p)
{ __asm__ volatile(".p2align 2\\n nop\\n 1: ldr r2, [r1], #16\\n nop\\n"
    " subs r0, r0, #1\\n bne.n 1b\\n bx lr"); }
int32_t f_run(void);
__attribute__((noinline)) int32_t f_run(void)
{
    first(1000, room);
    second(1000, room);
    third(1000, room);
    fourth(1000, table);
    return 0;
}
static volatile int32_t status;
int main(void)
{
    for (int k = 0; k < 3; k++) { status = f_run(); }
    return status;
}
"""
LAYERS = ("first", "second", "third", "fourth")


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Code:
    folder = tmp_path_factory.mktemp("trace")
    (folder / "main.c").write_text(_MAIN)
    elf = qemu.build(qemu.BOARDS["m4"], ["main.c"], folder, ["-O2", "-g"])
    return Code.of(elf, [qemu.COMPILER])


def traced(code: Code, memory: Memory, runs: int = 1) -> trace.Trace:
    folder = code.elf.parent
    layers = {code.functions[name]: number for number, name in enumerate(LAYERS)}
    more = trace.arguments(code, "f_run", memory, folder, layers, runs, 1)
    command = [qemu.EMULATOR, "-M", qemu.BOARDS["m4"].machine, "-nographic", "-monitor", "none",
               "-serial", "none", "-semihosting", "-icount", "shift=0", "-kernel", code.elf.name]  # fmt: skip
    trace.run([*command, *more], folder, 60)
    return trace.read(folder / trace.OUTPUT, runs)


@pytest.mark.parametrize("runs", [1, 2])
def test_loops(code: Code, runs: int) -> None:
    """SUBS, BNE 3 cycles; with two loads 6; one that is not aligned and a NOP 7; one on which the branch
    finds no aligned instruction 7: of 1000 rounds, and little around them.
    """
    found = estimate(traced(code, MEMORIES[0], runs), code.instructions, "m4", MEMORIES[0])
    assert not found.unknown
    wanted = {0: (2000, 3000), 1: (4000, 6000), 2: (4000, 7000), 3: (4000, 7000)}
    for layer, (instructions, cycles) in wanted.items():
        assert 0 < found.layers[layer].instructions - instructions < 12
        assert abs(found.layers[layer].total - cycles) < 16
    assert found.layers[2].by_reason["unaligned"] == 1000
    assert found.layers[-1].instructions < 10


def test_caches(code: Code) -> None:
    """A new line of flash in each round misses once; RAM goes past; code that fits is read once."""
    art = Memory("", "", Cache(1024, 8, 128), Cache(256, 8, 32), True, 7, 7, 7)
    found = estimate(traced(code, art), code.instructions, "m4", art)
    assert [found.layers[k].by_reason["flash data"] for k in range(4)] == [0, 0, 0, 7000]
    assert all(found.layers[k].by_reason["flash code"] <= 10 * 7 for k in range(4))
    everything = Memory("", "", Cache(1024, 8, 128), Cache(256, 8, 32), False, 7, 7, 7)
    found = estimate(traced(code, everything), code.instructions, "m4", everything)
    assert 0 < sum(found.layers[k].by_reason["flash data"] for k in range(3)) <= 7 * 8


def test_prediction(code: Code) -> None:
    """A two-bit counter is wrong at the end of a loop, and once or twice before it knows it."""
    found = traced(code, MEMORIES[0])
    bad = {layer: sum(edge.mispredicted for edge in found.edges if edge.layer == layer) for layer in range(4)}
    assert all(1 <= count <= 3 for count in bad.values())


def test_a_run_that_does_not_come(code: Code) -> None:
    with pytest.raises(Exception, match="before 5 runs"):
        traced(code, MEMORIES[0], 5)


def test_the_plugin_has_no_warnings(tmp_path: Path) -> None:
    source = Path(trace.__file__).with_name("qemu_trace.c")
    strict = ["-std=gnu99", "-Wall", "-Wextra", "-Werror", "-O2", "-shared", "-fPIC"]
    subprocess.run(["cc", *strict, str(source), "-o", str(tmp_path / "p.so")], check=True)
