"""Helium as a table: what the vector instructions of the micro-kernels compute.

The schedules of the Helium kernels are lists of assembly lines. `asm_lines` makes the text of a statement of
them and insists that every instruction that computes is a row here; what a statement spoils follows from the
registers that its lines name.

`ordered` brings straight lines into an order: each next one is what a Cortex-M55 can begin first. The core
issues in order, on pipes of which each is held for two cycles, so neighbours ought to be a load, a product, a
sum. Registers are given; the order changes nothing of what the lines compute.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from aot_model.c.helpers import named_by_text
from aot_model.cycles.decode import decode
from aot_model.cycles.in_order import InOrder
from aot_model.cycles.instruction import Instruction as Decoded
from aot_model.kernels.int8.instructions import Instruction, Lanes, Operand

WORDS, HALVES, BYTES = Operand("q", "int32", 4), Operand("q", "int16", 8), Operand("q", "int8", 16)
CORE = Operand("r", "int32")
_LEFT, _RIGHT = Operand("q", "int32", 4, 0, 31), Operand("q", "int32", 4, -31, 0)
_AS_IT_IS = re.compile(r"v(ldr|str|mov|mvn|dup|ps|pt|ctp|msr)|[^v]")
"""Loads, stores, moves, predication, and instructions of the core."""


def _saturated(bits: int, values: Lanes) -> Lanes:
    return np.clip(values, -(1 << (bits - 1)), (1 << (bits - 1)) - 1)


def _rounded(values: Lanes, right: Lanes | int) -> Lanes:
    half = np.left_shift(1, np.maximum(np.asarray(right, np.int64) - 1, 0))
    rounded: Lanes = np.where(np.asarray(right) > 0, (values + half) >> right, values)
    return rounded


def _into(top: bool, bits: int) -> Callable[..., Lanes]:
    """Saturates lanes into the even or odd lanes of the result; the others stay."""

    def narrow(before: Lanes, values: Lanes) -> Lanes:
        after: Lanes = before.copy()
        after[int(top) :: 2] = _saturated(bits, values)
        return after

    return narrow


def _unsigned_into(before: Lanes, values: Lanes) -> Lanes:
    """The same of uint8 into the even bytes."""
    after: Lanes = before.copy()
    after[::2] = np.clip(values, 0, 255).astype(np.uint8).astype(np.int8)
    return after


def _added_up(*operands: Lanes) -> Lanes:
    """The sum of the products of the last two, and of what there was."""
    *before, a, b = operands
    return np.asarray(sum(before, (a * b).sum(keepdims=True)))


def _upper_halves(before: Lanes, values: Lanes) -> Lanes:
    """Low halves of words into the odd halves of the result."""
    after: Lanes = before.copy()
    after[1::2] = values.astype(np.int16)
    return after


def _row(
    text: str, operands: tuple[Operand, ...], meaning: Callable[..., Lanes], result: Operand = WORDS
) -> Instruction:
    return Instruction(text, operands, result, meaning)


def _immediate(
    name: str, n: int, meaning: Callable[[Lanes], Lanes], operand: Operand = WORDS
) -> tuple[str, Instruction]:
    return f"{name} #{n}", _row(f"{name} {{d}}, {{0}}, #{n}", (operand,), meaning)


TABLE: dict[str, Instruction] = {
    **{
        f"vmladav{name}": _row(f"vmladav{name} {{d}}, {operands}", (*more, lanes, lanes), _added_up, CORE)
        for bits, lanes in ((8, BYTES), (16, HALVES), (32, WORDS))
        for name, operands, more in ((f".s{bits}", "{0}, {1}", ()), (f"a.s{bits}", "{1}, {2}", (CORE,)))
    },
    **{
        f"vq{name}mulh.s32{form}": _row(f"vq{name}mulh.s32 {{d}}, {{0}}, {{1}}", (WORDS, other), meaning)
        for name, half in (("rd", 1 << 30), ("d", 0))
        for form, other in (("", WORDS), (" r", CORE))
        for meaning in [lambda a, b, half=half: _saturated(32, (a * b + half) >> 31)]
    },
    "vmulh.s32": _row("vmulh.s32 {d}, {0}, {1}", (WORDS, WORDS), lambda a, b: a * b >> 32),
    "vrmulh.s32": _row("vrmulh.s32 {d}, {0}, {1}", (WORDS, WORDS), lambda a, b: (a * b + (1 << 31)) >> 32),
    "vshl.s32": _row("vshl.s32 {d}, {0}, {1}", (WORDS, _LEFT), lambda a, b: a << b),
    "vrshl.s32": _row("vrshl.s32 {d}, {0}, {1}", (WORDS, _RIGHT), lambda a, b: _rounded(a, -b)),
    "vqshl.s32": _row("vqshl.s32 {d}, {0}, {1}", (WORDS, _LEFT), lambda a, b: _saturated(32, a << b)),
    **dict(_immediate("vshl.i32", n, lambda a, n=n: a << n) for n in (1, 16, 30)),  # type: ignore[misc]
    "vclz.i32": _row(
        "vclz.i32 {d}, {0}",
        (WORDS,),
        lambda a: 31 - np.floor(np.log2((a & 0xFFFFFFFF) + 0.5)).astype(np.int64),
    ),
    "vmla.s32": _row("vmla.s32 {d}, {1}, {2}", (WORDS, WORDS, CORE), lambda d, a, b: d + a * b),
    "vmlas.s32": _row("vmlas.s32 {d}, {1}, {2}", (WORDS, WORDS, CORE), lambda d, a, b: d * a + b),
    "vmlas.s16": _row("vmlas.s16 {d}, {1}, {2}", (HALVES, HALVES, CORE), lambda d, a, b: d * a + b, HALVES),
    **{
        f"vmull{side}.s16": _row(
            f"vmull{side}.s16 {{d}}, {{0}}, {{1}}", (HALVES, HALVES), lambda a, b, at=at: a[at::2] * b[at::2]
        )
        for side, at in (("b", 0), ("t", 1))
    },
    "vmovnt.i32": _row("vmovnt.i32 {d}, {1}", (HALVES, WORDS), _upper_halves, HALVES),
    "vmul.i16": _row("vmul.i16 {d}, {0}, {1}", (HALVES, HALVES), lambda a, b: a * b, HALVES),
    "vsub.i32": _row("vsub.i32 {d}, {0}, {1}", (WORDS, WORDS), lambda a, b: a - b),
    "vadd.i32": _row("vadd.i32 {d}, {0}, {1}", (WORDS, WORDS), lambda a, b: a + b),
    "vadd.i32 r": _row("vadd.i32 {d}, {0}, {1}", (WORDS, CORE), lambda a, b: a + b),
    "vadd.i16": _row("vadd.i16 {d}, {0}, {1}", (HALVES, HALVES), lambda a, b: a + b, HALVES),
    "vadd.i16 r": _row("vadd.i16 {d}, {0}, {1}", (HALVES, CORE), lambda a, b: a + b, HALVES),
    "vqadd.s32": _row("vqadd.s32 {d}, {0}, {1}", (WORDS, WORDS), lambda a, b: _saturated(32, a + b)),
    "vqadd.s16": _row(
        "vqadd.s16 {d}, {0}, {1}", (HALVES, HALVES), lambda a, b: _saturated(16, a + b), HALVES
    ),
    "vand": _row("vand {d}, {0}, {1}", (WORDS, WORDS), lambda a, b: a & b),
    **dict(_immediate("vshr.s32", n, lambda a, n=n: a >> n) for n in (1, 13, 31)),  # type: ignore[misc]
    **dict(_immediate("vshr.u32", n, lambda a, n=n: (a & 0xFFFFFFFF) >> n) for n in (5, 16)),  # type: ignore[misc]
    **dict(_immediate("vrshr.s32", n, lambda a, n=n: _rounded(a, n)) for n in (17, 31)),  # type: ignore[misc]
    **{
        f"vqrshrn{t}.s32 #{n}": _row(
            f"vqrshrn{t}.s32 {{d}}, {{1}}, #{n}",
            (HALVES, WORDS),
            lambda d, a, n=n, t=t: _into(t == "t", 16)(d, _rounded(a, n)),
            HALVES,
        )
        for t in "bt"
        for n in (1, 9, 16)
    },
    **{
        f"vqmovn{t}.s32": _row(f"vqmovn{t}.s32 {{d}}, {{1}}", (HALVES, WORDS), _into(t == "t", 16), HALVES)
        for t in "bt"
    },
    "vqmovunb.s16": _row("vqmovunb.s16 {d}, {1}", (BYTES, HALVES), _unsigned_into, BYTES),
    "vqmovnb.s16": _row("vqmovnb.s16 {d}, {1}", (BYTES, HALVES), _into(False, 8), BYTES),
    **{
        f"v{name}.s{bits}": _row(f"v{name}.s{bits} {{d}}, {{0}}, {{1}}", (lanes, lanes), meaning, lanes)
        for name, meaning in (("max", np.maximum), ("min", np.minimum))
        for bits, lanes in ((16, HALVES), (32, WORDS))
    },
}
"""By name, with the form of the last operand where there are several. A row whose text begins with {d}, {1}
reads its result.
"""

_NAMES = {name.split()[0] for name in TABLE}


def asm_lines(lines: Iterable[str]) -> str:
    """Lines of assembly as the literals of a statement."""
    computing = {line.split()[0] for line in lines if not _AS_IT_IS.match(line)}
    # t: in a predicated block
    strangers = sorted(n for n in computing if not {n, n.replace("t.", ".")} & _NAMES)
    assert not strangers, f"not in the table of Helium's instructions: {strangers}"
    return "\n".join(f'        "{line}\\n\\t"' for line in lines)


Pins = Sequence[tuple[str, str, str]]
"""A register, what is declared to be in it (with a `_` behind the name), and its value."""


def mve_function(
    base: str,
    comment: str,
    parameters: str,
    pins: Pins,
    operands: str,
    lines: Sequence[str],
    spoilt: str,
    twin: str,
    key: str = "",
) -> tuple[str, str]:
    """(name, text) of a function in assembly, and its twin. operands: C of the statement's outputs and
    inputs; spoilt: of what else it changes. key: what the name depends on beside the body.
    """
    pinned = "\n".join(f'    register {declared}_ __asm__("{r}") = {value};' for r, declared, value in pins)
    body = f"""\
{{
#if AOT_MODEL_MVE
{pinned}
    __asm__ volatile(
{asm_lines(lines)}
        : {operands}
        : {spoilt});
#else
{twin}#endif
}}
"""
    name = named_by_text(base, key + body)
    return name, f"/* {comment} */\nAOT_MODEL_NOINLINE static void {name}({parameters})\n{body}"


def dot_function(
    base: str,
    comment: str,
    parameters: str,
    operands: Sequence[str],
    changed: Sequence[str],
    lines: Sequence[str],
    twin: str,
) -> tuple[str, str]:
    """The same, whose lines name its parameters as operands; `left` is the count of channels. operands: in
    the order of the odd registers that they are in. changed: those that the lines change.
    """
    declared = {re.split(r"[ *]", one)[-1]: one for one in parameters.split(", ")}
    declared["left"] = declared.pop("channels").replace("channels", "left")
    pins = [(f"r{2 * k + 1}", declared[n], "channels" if n == "left" else n) for k, n in enumerate(operands)]
    outs = ", ".join(f'[{n}] "+r"({n}_)' for n in changed)
    ins = ", ".join(f'[{n}] "r"({n}_)' for n in declared if n not in changed)
    return mve_function(base, comment, parameters, pins, f"{outs}\n        : {ins}", lines, clobbers(lines),
                        twin, parameters)  # fmt: skip


def clobbers(lines: Iterable[str], operands: Iterable[str] = ()) -> str:
    """What a statement of these lines spoils: the registers that they name but for those of its operands."""
    named = {r for line in lines for r in re.findall(r"(?<!\w)(?:r1[0-24]|r\d|q[0-7]|lr)(?!\w)", line)}
    named |= {"lr"} if "r14" in named else set()
    ordered = sorted(named - set(operands) - {"r14"}, key=lambda r: (r[0] == "q", len(r), r))
    return ", ".join(f'"{r}"' for r in (*ordered, "cc", "memory"))


def ordered(lines: Sequence[str]) -> list[str]:
    """The same lines, which have no branches, labels or predicated blocks among them. Memory that is stored
    to is not loaded from again, and stores keep their order.
    """
    code = [decode(0, 4, line) for line in lines]
    before = [_needed(code, k) for k in range(len(code))]
    rank = _ranks(code, before)
    core, left, done = InOrder("m55"), list(range(len(code))), []
    issued: set[int] = set()
    while left:
        free = [k for k in left if before[k] <= issued]
        best = min(free, key=lambda k: (core.earliest(code[k]), -rank[k], k))
        core.issue(code[best])
        issued.add(best)
        left.remove(best)
        done.append(lines[best])
    return done


def _needed(code: Sequence[Decoded], k: int) -> set[int]:
    """The instructions that must come before instruction k."""
    one, found = code[k], set()
    for i, other in enumerate(code[:k]):
        shared = other.writes & (one.reads | one.writes) or other.reads & one.writes
        if shared or (one.is_store and (other.is_load or other.is_store)):
            found.add(i)
    return found


def _ranks(code: Sequence[Decoded], before: Sequence[set[int]]) -> list[int]:
    """Cycles from the begin of each instruction to the end of all that wait for it."""
    ranks = [one.latency for one in code]
    for k in reversed(range(len(code))):
        for i in before[k]:
            ranks[i] = max(ranks[i], code[i].latency + ranks[k])
    return ranks
