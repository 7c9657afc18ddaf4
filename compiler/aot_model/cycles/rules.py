"""The rules by which cycles are estimated: one table, each number with what it means and where it is from.

docs/cycles.md shows the same tables (tests/cycles/test_rules.py keeps them equal). How the rules are applied:
single_issue.py, dual_issue.py, in_order.py.
"""

from __future__ import annotations

from dataclasses import dataclass

from aot_model.errors import fail

SOURCES = {
    "arm": "Arm's Technical Reference Manuals: Cortex-M0 (DDI 0432) 3.3, M0+ (DDI 0484) 3.3, M3 (100165) "
    "3.3 and 3.3.2 (load/store timings, which the M4 shares), M4 (100166) 3.3",
    "fpu": "Arm Cortex-M4 TRM (100166) 7.2.3, FPU instruction timing",
    "llvm": "LLVM's scheduling models: ARMScheduleM7.td, ARMScheduleM55.td, and what it says of Cortex-M33; "
    "Arm publishes no cycles of these cores",
    "loops": "delay loops (SUBS, BNE: three cycles) of common firmware libraries for Cortex-M3 and M4",
    "measured": "one person's measurement (compendium.i-0.nl)",
    "fitted": "fitted on one program of the validation (microTVM's native ad)",
    "st": "ST's reference manuals RM0432 (STM32L4+) and RM0090 (STM32F4): sizes of the flash accelerator",
    "assumed": "assumed: no source was found",
}

CORE_COLUMNS = ("m0", "m0plus", "m3", "m4", "m7", "m33", "m55")
_TABLE = """
cycles beyond the first, where one instruction comes after the other
load                1 1 1 1 . . .  arm       a load of one word, halfword or byte; VLDR
load_overlaps       . . 1 1 . . .  arm       saved behind another single load whose result is not the address
vldr_overlaps       . . . 1 . . .  assumed   VLDR and VSTR of one word, too
writeback_overlaps  . . 1 1 . . .  assumed   loads and stores with write-back, too
store               1 1 0 0 . . .  arm       a store of one word, halfword or byte
store_offset        . . 1 1 . . .  arm       ... with a register as offset, or VSTR; saved behind a load
word                1 1 1 1 . . .  arm,fpu   each word of LDM, STM, LDRD, STRD, VLDM, VSTM, PUSH, POP
address             . . 1 1 . . .  arm       an address that the data-processing instruction before it makes
multiply_add        . . 1 0 . . .  arm       MLA, MLS
multiply_long       . . 3 0 . . .  arm       UMULL, SMULL
multiply_add_long   . . 4 0 . . .  arm       UMLAL, SMLAL, SMLALD
divide              . . 6 6 6 5 5  arm,llvm  UDIV, SDIV: 2 to 12 cycles by the operands, taken as this
float_mac           . . . 2 . . .  fpu       VMLA, VFMA and their kind
float_divide        . . . 13 14 14 14  fpu,llvm  VDIV, VSQRT (M7, M33, M55: when the result is there)
float_use           . . . 1 . . .  fpu       the next instruction reads an FPU's result, but as addend
it_folds            . . 1 1 . . .  arm       IT behind a 16-bit instruction is free
wide_run            . . 1 1 . . .  measured  the third 32-bit instruction in a row at 2 mod 4, not of memory
system              2 2 . . . . .  arm       DSB, MSR and their kind

branches
branch              2 1 1 1 0 2 2  arm,loops,llvm  taken branch
call                3 2 1 1 0 2 2  arm,llvm  BL
branch_register     2 1 2 2 0 3 3  arm,llvm  BX, BLX, a result that is the PC
branch_load         3 2 3 3 4 4 4  arm,llvm  POP, LDM, LDR of the PC (M7: 0), table branches
wide_target         . . 1 1 . 1 1  arm,assumed  ... and the target is a 32-bit instruction at 2 mod 4
mispredict          . . . . 4 . .  llvm      a conditional branch that a two-bit counter predicts wrongly
loop_start          . . . . . . 1  llvm      DLS, WLS and their kind; LE is free

several in a cycle; cycles from an instruction to one that reads its result
width               . . . . 2 . .  llvm      instructions in a cycle
loads               . . . . 2 . .  llvm      loads in a cycle; two of arithmetic, one of all else
pairs               . . . . . 1 1  llvm      two 16-bit instructions in a cycle, of which one is simple
load_use            . . . . 1 2 2  llvm      a load
narrow_use          . . . . 2 2 2  llvm      a load of a byte or halfword
multiply_use        . . . . 2 1 2  llvm      a multiplication
shift_use           . . . . 1 1 2  llvm      arithmetic with an operand that is shifted
saturate_use        . . . . 2 1 2  llvm      SSAT, USAT, QADD and their kind
float_add_use       . . . . 3 2 2  llvm      VADD, VMUL, VCVT
float_mac_use       . . . . 5 3 4  llvm      VFMA, VMLA
vector_float_use    . . . . . . 2  llvm      VFMA of single numbers beside vectors
early_address       . . . . 1 . .  llvm      addresses and what is shifted first are read so much earlier
late_addend         . . . . 1 . .  llvm      the addend of a multiplication is read so much later
late_float_addend   . . . . 2 . .  llvm      ... of a multiplication of the FPU, what VSTR stores
late_store          . . . . 1 1 1  llvm      what is stored is read so much later
port                . . . . 2 1 2  llvm      words of LDM, STM, LDRD, STRD in a cycle

vectors
beats               . . . . . . 2  llvm      cycles for which an instruction holds its pipe
gather              . . . . . . 1  assumed   each element of a gather or scatter

memory
unaligned           . . 1 1 1 1 1  arm,assumed  each further access of one that is not aligned
"""


@dataclass(frozen=True)
class Rule:
    """A parameter: its value by core (where a core has none, it does not apply), its sources, what it
    means.
    """

    part: str
    name: str
    values: dict[str, int]
    sources: tuple[str, ...]
    meaning: str


def _read(table: str) -> tuple[Rule, ...]:
    rules = []
    for block in table.strip().split("\n\n"):
        part, *rows = block.splitlines()
        for row in rows:
            name, *words = row.split(None, len(CORE_COLUMNS) + 2)
            numbers = zip(CORE_COLUMNS, words, strict=False)
            values = {core: int(number) for core, number in numbers if number != "."}
            rules.append(Rule(part, name, values, tuple(words[-2].split(",")), words[-1]))
    return tuple(rules)


RULES = _read(_TABLE)


@dataclass(frozen=True)
class Cache:
    """A cache between core and memory; the least recently used line of a set is replaced."""

    bytes: int
    line: int
    ways: int

    def __str__(self) -> str:
        return f"{self.bytes}:{self.line}:{self.ways}"


@dataclass(frozen=True)
class Memory:
    """What code and data are in. Without caches every access is as fast as the core."""

    name: str
    meaning: str
    code: Cache | None = None
    data: Cache | None = None
    flash_only: bool = True
    """Whether accesses to RAM go past the data cache."""
    code_miss: int = 0
    load_miss: int = 0
    store_miss: int = 0
    clock: float | None = None
    """Hertz, that the wait states are of."""
    sources: tuple[str, ...] = ()


MEMORIES = (
    Memory("0ws", "no wait states"),
    Memory("tcm", "tightly coupled memory for code and data"),
    Memory("l4-art", "flash of an STM32L4+ at 120 MHz behind its accelerator; data in SRAM",
           Cache(1024, 8, 128), Cache(256, 8, 32), True, 7, 7, 7, 120e6, ("st", "fitted")),
    Memory("f4-art", "flash of an STM32F4 at 168 MHz behind its accelerator; data in SRAM",
           Cache(1024, 16, 64), Cache(128, 16, 8), True, 5, 5, 5, 168e6, ("st", "assumed")),
    Memory("nrf53", "flash of an nRF5340 at 128 MHz behind its cache, taken as two halves",
           Cache(4096, 16, 2), Cache(4096, 16, 2), True, 7, 7, 7, 128e6, ("assumed",)),
    Memory("m7-cache", "caches of 16 KiB before memory that is 12 cycles away, as of an STM32H7",
           Cache(16384, 32, 2), Cache(16384, 32, 4), False, 12, 12, 2, None, ("assumed",)),
)  # fmt: skip


@dataclass(frozen=True)
class Trust:
    """How far the estimate of a core was compared with silicon: the error as it is shown, and where it is
    from.
    """

    error: str
    meaning: str


CORES = {
    "m0": ("cortex-m0", Trust("not validated", "rules of Arm's manual; compared with no silicon")),
    "m0plus": ("cortex-m0plus",
               Trust("-28 to -5 %", "four published results of an STM32G0B1 at 64 MHz, whose flash waits")),
    "m3": ("cortex-m3", Trust("not validated", "rules of Arm's manual; compared with no silicon")),
    "m4": ("cortex-m4", Trust("±10 %", "twelve published results of an STM32L4R5 at 120 MHz, l4-art")),
    "m7": ("cortex-m7",
           Trust("±7 %", "eight published results of an STM32H7A3 and an STM32F746, m7-cache")),
    "m33": ("cortex-m33",
            Trust("±12 %", "eight published results of an nRF5340 and an STM32U575, nrf53")),
    "m55": ("cortex-m55", Trust("not validated", "rules of LLVM; compared with no silicon")),
}  # fmt: skip
"""By the names of the table: what -mcpu calls the core, and how far its rules are right."""


def trust_of(core: str, memory: Memory) -> Trust:
    """How far an estimate of a core before a memory is right."""
    trust = CORES[core][1]
    if memory.code is None or memory.name in trust.meaning:
        return trust
    return Trust(trust.error, f"{trust.meaning}; memory {memory.name} was compared with no silicon")


def core_of(mcpu: str) -> str | None:
    """The core of the table that -mcpu means."""
    return next((name for name, (called, _) in CORES.items() if called == mcpu.partition("+")[0]), None)


def memory_named(name: str) -> Memory | None:
    """A memory of the table."""
    return next((memory for memory in MEMORIES if memory.name == name), None)


def memory_of(name: str) -> Memory:
    """The memory that is named. CompileError E501."""
    memory = memory_named(name)
    if memory is None:
        there = "; ".join(f"{m.name}: {m.meaning}" for m in MEMORIES)
        raise fail("E501", f"there is no memory '{name}' whose time is known", hint=there)
    return memory


def values_of(core: str) -> dict[str, int]:
    """The rules of a core; 0 where it has none."""
    return {rule.name: rule.values.get(core, 0) for rule in RULES}


def markdown() -> str:
    """The tables of docs/cycles.md."""
    cores = [CORES[core][0].removeprefix("cortex-").upper().replace("PLUS", "+") for core in CORE_COLUMNS]
    lines = [f"| rule | {' | '.join(cores)} | what takes the cycles | from |", "| --- |" + " --- |" * 9]
    part = ""
    for rule in RULES:
        if rule.part != part:
            part = rule.part
            lines.append(f"| **{part}** |" + " |" * 9)
        values = " | ".join(str(rule.values.get(core, "")) for core in CORE_COLUMNS)
        lines.append(f"| `{rule.name}` | {values} | {rule.meaning} | {', '.join(rule.sources)} |")
    lines += ["", "| `--memory` | what it is | code: cache, a miss | data: cache, a miss | clock | from |"]
    lines += ["| --- | --- | --- | --- | --- | --- |"]
    for m in MEMORIES:
        code = f"{_cache(m.code)}: {m.code_miss}" if m.code else ""
        data = f"{_cache(m.data)}: {m.load_miss}, stores {m.store_miss}" if m.data else ""
        clock = f"{m.clock / 1e6:g} MHz" if m.clock else ""
        lines.append(f"| `{m.name}` | {m.meaning} | {code} | {data} | {clock} | {', '.join(m.sources)} |")
    lines += ["", "| from | |", "| --- | --- |"]
    lines += [f"| {name} | {said} |" for name, said in SOURCES.items()]
    return "\n".join([*lines, ""])


def _cache(cache: Cache | None) -> str:
    return f"{cache.bytes:,} bytes, lines of {cache.line}, {cache.ways} ways" if cache else ""
