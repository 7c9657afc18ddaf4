"""The DSP extension as a table: two int16 in a core register, assembly on named registers and its C twin from
one schedule.

A schedule is a list of `Op` and `Load` on registers. Printed as assembly it is the body of a micro-kernel;
printed as C, on variables of the registers' names, it is the twin for other compilers, which tests run on the
host under sanitizers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from aot_model.kernels.int8.instructions import Instruction, InstructionSet, Lanes, Operand

HEADER = "aot_model/int8_dsp.h"
WORD = Operand("int32_t", "int32")
_SHIFT = Operand("int32_t", "int32", 1, 1, 31)
_UNSIGNED = Operand("uint32_t", "uint32")


@dataclass(frozen=True)
class CoreInstruction(Instruction):
    """An instruction with its assembly over {d}, the result's register, and {0}, {1} ..."""

    assembly: str = ""


def _low(a: Lanes) -> Lanes:
    return a.astype(np.int16).astype(np.int64)


def _bytes(shift: int, kind: type[np.int8] | type[np.uint8]) -> object:
    def pair(a: Lanes) -> Lanes:
        low, high = ((a >> s).astype(kind).astype(np.int64) for s in (shift, shift + 16))
        return (low & 0xFFFF) | high << 16

    return pair


def _added(kind: type[np.int8] | type[np.uint8]) -> object:
    def lanes(a: Lanes, b: Lanes) -> Lanes:
        low, high = ((a >> s) + (b >> s).astype(kind).astype(np.int64) for s in (0, 16))
        return (low & 0xFFFF) | (high & 0xFFFF) << 16

    return lanes


def _lanes(function: Callable[[Lanes, Lanes], Lanes]) -> object:
    def lanes(a: Lanes, b: Lanes) -> Lanes:
        low, high = (function(a >> s, b >> s) for s in (0, 16))
        return (low & 0xFFFF) | (high & 0xFFFF) << 16

    return lanes


def _greater(kind: str) -> object:
    def of_bytes(a: Lanes, b: Lanes) -> Lanes:
        one, other = (v.astype(np.uint32).view(kind) for v in (a, b))
        greater: Lanes = np.maximum(one, other).view(np.uint32).astype(np.int64)
        return greater

    return of_bytes


def _row(text: str,
         count: int,
         meaning: object,
         assembly: str = "",
         operand: Operand = WORD,
         last: Operand | None = None) -> CoreInstruction:
    operands = (*[operand] * (count - 1), last or operand) if count else ()
    return CoreInstruction(text, operands, operand, meaning, assembly)  # type: ignore[arg-type]


DSP = InstructionSet(
    "DSP extension", HEADER, "", {
        "smlad": _row("dsp_smlad({0}, {1}, {2})", 3, lambda a, b, c: c + _low(a) * _low(b) + (a >> 16) *
                      (b >> 16), "smlad {d}, {0}, {1}, {2}"), "smlabt": _row(
                          "dsp_smlabt({0}, {1}, {2})", 3, lambda a, b, c: c + _low(a) *
                          (b >> 16), "smlabt {d}, {0}, {1}, {2}"), "smlatb": _row(
                              "dsp_smlatb({0}, {1}, {2})", 3, lambda a, b, c: c +
                              (a >> 16) * _low(b), "smlatb {d}, {0}, {1}, {2}"),
        "smmlar": _row("dsp_smmlar({0}, {1}, {2})",
                       3,
                       lambda a, b, c: c + ((a * b + (1 << 31)) >> 32),
                       "smmlar {d}, {0}, {1}, {2}",
                       last=Operand("int32_t", "int32", 1, -(1 << 30), 1 << 30)), "sxtb16": _row(
                           "dsp_sxtb16({0})", 1, _bytes(0, np.int8), "sxtb16 {d}, {0}"), "sxtb16_ror8": _row(
                               "dsp_sxtb16_ror8({0})", 1, _bytes(8, np.int8), "sxtb16 {d}, {0}, ror #8"),
        "uxtb16": _row("dsp_uxtb16({0})", 1, _bytes(0, np.uint8), "uxtb16 {d}, {0}"), "uxtb16_ror8": _row(
            "dsp_uxtb16_ror8({0})", 1, _bytes(8, np.uint8), "uxtb16 {d}, {0}, ror #8"), "ssat8": _row(
                "dsp_ssat8({0})", 1, lambda a: np.clip(a, -128, 127), "ssat {d}, #8, {0}"), "usat8": _row(
                    "dsp_usat8({0})", 1, lambda a: np.clip(a, 0, 255), "usat {d}, #8, {0}"),
        "ssat8_asr": _row("dsp_ssat8({0} >> {1})",
                          2,
                          lambda a, s: np.clip(a >> s, -128, 127),
                          "ssat {d}, #8, {0}, asr {1}",
                          last=_SHIFT), "usat8_asr": _row("dsp_usat8({0} >> {1})",
                                                          2,
                                                          lambda a, s: np.clip(a >> s, 0, 255),
                                                          "usat {d}, #8, {0}, asr {1}",
                                                          last=_SHIFT),
        "asr": _row("{0} >> {1}", 2, lambda a, s: a >> s, "asr {d}, {0}, {1}", last=_SHIFT), "lsl": _row(
            "(int32_t)((uint32_t){0} << {1})", 2, lambda a, s: a << s, "lsl {d}, {0}, {1}", last=_SHIFT),
        "sub": _row("dsp_sub({0}, {1})", 2, lambda a, b: a - b, "sub {d}, {0}, {1}"), "add_sign": _row(
            "{0} + ({1} >> 31)", 2, lambda a, b: a +
            (b >> 31), "add {d}, {0}, {1}, asr #31", Operand("int32_t", "int32", 1, -(1 << 30), 1 << 30)),
        "at_least": _row("{0} < {1} ? {1} : {0}", 2, np.maximum, "cmp {d}, {1}; it lt; movlt {d}, {1}"),
        "at_most": _row("{0} > {1} ? {1} : {0}", 2, np.minimum, "cmp {d}, {1}; it gt; movgt {d}, {1}"),
        "sadd16": _row("dsp_sadd16({0}, {1})", 2, _lanes(np.add), operand=_UNSIGNED),
        "ssub16": _row("dsp_ssub16({0}, {1})", 2, _lanes(np.subtract), operand=_UNSIGNED),
        "sxtab16": _row("dsp_sxtab16({0}, {1})", 2, _added(np.int8), operand=_UNSIGNED), "uxtab16": _row(
            "dsp_uxtab16({0}, {1})", 2, _added(np.uint8), operand=_UNSIGNED), "max_int8": _row(
                "dsp_max_int8({0}, {1})", 2, _greater("i1"), operand=_UNSIGNED), "max_uint8": _row(
                    "dsp_max_uint8({0}, {1})", 2, _greater("u1"), operand=_UNSIGNED),
    },
)


@dataclass(frozen=True)
class Op:
    """One instruction on registers; an int is an immediate."""

    name: str
    to: str
    operands: tuple[str | int, ...]

    @property
    def assembly(self) -> list[str]:
        row = DSP.instructions[self.name]
        assert isinstance(row, CoreInstruction) and row.assembly
        return row.assembly.format(*(o if isinstance(o, str) else f"#{o}" for o in self.operands),
                                   d=self.to).split("; ")

    @property
    def c(self) -> str:
        return f"{self.to} = {DSP.instructions[self.name].text.format(*self.operands)};"


@dataclass(frozen=True)
class Load:
    """Words from a pointer on into registers; the pointer moves on."""

    to: tuple[str, ...]
    pointer: str
    c_pointer: str = ""
    """Of the twin, where the register is also used for something else."""
    of_bytes: bool = False
    """The pointer of the twin is one to bytes at any address."""
    skip: int = 0
    """Bytes that the pointer moves on beyond one or two words."""

    @property
    def assembly(self) -> list[str]:
        if len(self.to) > 2:
            return [f"ldmia {self.pointer}!, {{{self.to[0]}-{self.to[-1]}}}"]
        return [
            f"ldr{'d' if len(self.to) == 2 else ''} {', '.join(self.to)}, [{self.pointer}], "
            f"#{4 * len(self.to) + self.skip}"
        ]

    @property
    def c(self) -> str:
        p = self.c_pointer or self.pointer
        each = f"memcpy(&{{0}}, {p}, 4); {p} += 4;" if self.of_bytes else f"{{0}} = (int32_t)*{p}++;"
        skip = [f"{p} += {self.skip // 4};"] if self.skip else []
        return " ".join([*(each.format(r) for r in self.to), *skip])


@dataclass(frozen=True)
class Peek:
    """A word at an offset in bytes from a pointer, which stays."""

    to: str
    pointer: str
    offset: int

    @property
    def assembly(self) -> list[str]:
        return [f"ldr {self.to}, [{self.pointer}, #{self.offset}]"]

    @property
    def c(self) -> str:
        return f"{self.to} = (int32_t){self.pointer}[{self.offset // 4}];"


@dataclass(frozen=True)
class Reload:
    """A word that was put aside on the stack."""

    to: str
    offset: int
    c_value: str

    @property
    def assembly(self) -> list[str]:
        return [f"ldr {self.to}, [sp, #{self.offset}]"]

    @property
    def c(self) -> str:
        return f"{self.to} = {self.c_value};"


Step = Op | Load | Peek | Reload
Schedule = list[Step]


def op(name: str, to: str, *operands: str | int) -> Op:
    """`to` = instruction(operands)."""
    return Op(name, to, operands)


def assembly(schedule: Iterable[Step]) -> list[str]:
    """The lines of a schedule on registers."""
    return [line for o in schedule for line in o.assembly]


def twin(schedule: Iterable[Step], indent: str) -> list[str]:
    """The same as C statements on variables of the registers' names."""
    return [indent + o.c for o in schedule]
