"""Short sequences whose cycles are documented, on the models of the cores: each repeated, once through."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest

from aot_model.cycles.disassembly import instructions
from aot_model.cycles.estimate import pipeline_of, sequence
from aot_model.cycles.instruction import Instruction

COMPILER, OBJDUMP = "arm-none-eabi-gcc", "arm-none-eabi-objdump"
FLAGS = {
    "m0": "-mcpu=cortex-m0", "m0plus": "-mcpu=cortex-m0plus", "m3": "-mcpu=cortex-m3",
    "m4": "-mcpu=cortex-m4 -mfpu=fpv4-sp-d16 -mfloat-abi=hard",
    "m7": "-mcpu=cortex-m7 -mfpu=fpv5-d16 -mfloat-abi=hard",
    "m33": "-mcpu=cortex-m33 -mfloat-abi=hard", "m55": "-mcpu=cortex-m55 -mfloat-abi=hard",
}  # fmt: skip

LOADS = "Cortex-M3 TRM 3.3.2, load/store timings"
TABLE = "Cortex-M4 TRM 3.3, instruction set summary"
FPU = "Cortex-M4 TRM 7.2.3, FPU instruction timing"
M0 = "Cortex-M0 TRM 3.3, Cortex-M0+ TRM 3.3"
M7, M55 = "LLVM ARMScheduleM7.td", "LLVM ARMScheduleM55.td"
CASES = (
    ("m4", "add r0,r1,r2; add r3,r4,r5", 2, TABLE),
    ("m4", "ldr r0,[r1]; add r2,r2,#1", 3, TABLE),
    ("m4", "ldr r0,[r1]; ldr r1,[r2]; nop", 4, LOADS + ": LDR R0,[R1]; LDR R1,[R2] three cycles, and a NOP"),
    ("m4", "ldr r0,[r1,r5]; str r0,[r3,#20]; nop", 4, LOADS + ": three cycles, and a NOP"),
    ("m4", "ldr r0,[r1,r5]; ldr r1,[r2]; ldr r2,[r3,#4]; nop", 5, LOADS + ": four cycles, and a NOP"),
    ("m4", "ldr r0,[r1]; ldr r2,[r0]; nop", 5, LOADS + ": the address is the loaded value"),
    ("m4", "add r1,r1,#4; ldr r0,[r1]; nop", 5, LOADS + ": the address was just computed"),
    ("m4", "str r0,[r1]; nop", 2, LOADS + ": STR R0,[R1,#5] is always one cycle"),
    ("m4", "str r0,[r1,r2]; nop", 3, LOADS),
    ("m4", "ldrd r0,r2,[r3]; nop", 4, TABLE + ": 1 + N"),
    ("m4", "ldm r0,{r1,r2,r3,r4}; nop", 6, TABLE + ": 1 + N"),
    ("m4", "stm r0,{r1-r8}; nop", 10, TABLE + ": 1 + N"),
    ("m4", "push {r4-r7}; nop", 6, TABLE + ": 1 + N"),
    ("m4", "smlad r0,r1,r2,r0; smlad r0,r3,r4,r0", 2, TABLE),
    ("m4", "smlald r0,r1,r2,r3; mla r4,r5,r6,r4", 2, TABLE),
    ("m4", "umull r0,r1,r2,r3; sxtb16 r4,r5,ror #8", 2, TABLE),
    ("m4", "cmp r0,r1; it lt; movlt r0,r1", 2, TABLE + ": IT folds behind a 16-bit instruction"),
    ("m4", "vmul.f32 s0,s1,s2; vadd.f32 s3,s4,s5", 2, FPU),
    ("m4", "vmul.f32 s0,s1,s2; vadd.f32 s3,s3,s0", 3, FPU + ": consumed by the next"),
    ("m4", "vfma.f32 s0,s1,s2; vfma.f32 s3,s1,s2", 6, FPU + ": three cycles each"),
    ("m4", "vmul.f32 s0,s1,s2; vmla.f32 s0,s3,s4; nop", 5, FPU + ": an addend is consumed later"),
    ("m4", "vdiv.f32 s0,s1,s2; nop", 15, FPU),
    ("m4", "vldmia r0,{s0-s3}; nop", 6, FPU + ": 1 + N"),
    ("m4", "1: subs r0,r0,#1; bne 1b", 3, "delay loops of firmware libraries"),
    ("m3", "mla r0,r1,r2,r0; nop", 3, "Cortex-M3 TRM 3.3, table 3-1"),
    ("m3", "umull r0,r1,r2,r3; nop", 5, "Cortex-M3 TRM 3.3, table 3-1: 3 to 5"),
    ("m3", "umlal r0,r1,r2,r3; nop", 6, "Cortex-M3 TRM 3.3, table 3-1: 4 to 7"),
    ("m0plus", "ldr r0,[r1]; adds r2,#1", 3, M0),
    ("m0plus", "str r0,[r1]; muls r2,r3", 3, M0),
    ("m0plus", "ldm r0!,{r1,r2,r3}", 4, M0 + ": 1 + N"),
    ("m0plus", "1: subs r0,#1; bne 1b", 3, M0 + ": a taken branch is 2"),
    ("m0", "1: subs r0,#1; bne 1b", 4, M0 + ": a taken branch is 3"),
    ("m0", "ldr r0,[r1]; ldr r2,[r3]", 4, M0),
    ("m7", "add r0,r1,r2; add r3,r4,r5", 1, M7 + ": two ALUs"),
    ("m7", "add r0,r0,r2; add r0,r0,r5", 2, M7),
    ("m7", "ldr r0,[r1]; ldr r2,[r3]", 1, M7 + ": two load units"),
    ("m7", "str r0,[r1]; str r2,[r3]", 2, M7 + ": one store unit"),
    ("m7", "smlad r0,r1,r2,r0; ldr r3,[r4]", 1, M7),
    ("m7", "smlad r0,r1,r2,r0; smlad r3,r4,r5,r3", 2, M7 + ": one MAC unit, the addend forwarded"),
    ("m7", "sxtb16 r0,r1; sxtb16 r2,r3", 2, M7 + ": SIMD begins a group"),
    ("m7", "vfma.f32 s0,s1,s2; vfma.f32 s3,s4,s5; vfma.f32 s6,s7,s8", 3, M7),
    ("m7", "vfma.f32 s0,s1,s2", 3, M7 + ": a chain of addends, 5 - 2"),
    ("m7", "vadd.f32 s0,s0,s1", 3, M7),
    ("m33", "add.w r0,r1,r2; add.w r3,r4,r5", 2, "one wide instruction a cycle"),
    ("m55", "ldr.w r0,[r1]; add.w r2,r0,r3", 3, M55 + ": a load's result after two cycles"),
    ("m55", "vldrb.u8 q0,[r0],#16; vmladava.s8 r2,q0,q1", 2, M55 + ": loads and products overlap"),
    ("m55", "vldrb.u8 q0,[r0],#16; vldrb.u8 q1,[r1],#16", 4, M55 + ": loads do not"),
    ("m55", "vldrb.u8 q0,[r0],#16; vadd.i32 q1,q2,q3; vmul.i32 q4,q5,q6; vstrw.32 q7,[r1],#16", 5, M55),
    ("m55", "vfma.f32 q0,q1,q2; vfma.f32 q3,q4,q5", 4, M55),
)  # fmt: skip


@cache
def assembled(core: str, folder: Path) -> list[list[Instruction]]:
    """The sequences of a core, decoded from one disassembly."""
    text = [".syntax unified", ".thumb"]
    for k, (_, code, *_) in enumerate(c for c in CASES if c[0] == core):
        text += [".balign 4", f"case{k}:", *code.split(";"), " bkpt #0"]
    (folder / "cases.s").write_text("\n".join(text) + "\n")
    subprocess.run([COMPILER, *FLAGS[core].split(), "-c", "cases.s", "-o", "cases.o"], cwd=folder, check=True)
    helium = ["-m", "armv8.1-m.main"] if core == "m55" else []
    said = subprocess.run([OBJDUMP, "-d", *helium, "cases.o"], cwd=folder, check=True, capture_output=True,
                          text=True).stdout  # fmt: skip
    found: list[list[Instruction]] = [[]]
    filling = False
    for one in instructions(said.splitlines()).values():
        filling = filling and one.name == "nop" and one.address % 4 != 0
        if one.name == "bkpt":
            found.append([])
            filling = True
        elif not filling:
            found[-1].append(one)
    return found[:-1]


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {core: tmp_path_factory.mktemp(core) for core in FLAGS}


@pytest.mark.skipif(shutil.which(COMPILER) is None, reason="needs arm-none-eabi-gcc")
@pytest.mark.parametrize("number", range(len(CASES)), ids=[f"{c[0]} {c[1]}" for c in CASES])
def test_documented_cycles(number: int, folders: dict[str, Path]) -> None:
    core, code, cycles, source = CASES[number]
    mine = [c for c in CASES if c[0] == core].index(CASES[number])
    body = assembled(core, folders[core])[mine]
    assert len(body) == len(code.split(";")) and all(one.kind != "unknown" for one in body)
    assert sequence(pipeline_of(core), body) == cycles, source
