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

from aot_model.c.assembly import assembly_function
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


def _added(shift: int, kind: type[np.int8] | type[np.uint8]) -> object:
    def lanes(a: Lanes, b: Lanes) -> Lanes:
        low, high = ((a >> s) + (b >> (s + shift)).astype(kind).astype(np.int64) for s in (0, 16))
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


def _row(
    text: str,
    count: int,
    meaning: object,
    assembly: str = "",
    operand: Operand = WORD,
    last: Operand | None = None,
) -> CoreInstruction:
    operands = (*[operand] * (count - 1), last or operand) if count else ()
    return CoreInstruction(text, operands, operand, meaning, assembly)  # type: ignore[arg-type]


def _called(
    name: str, count: int, meaning: object, operand: Operand = WORD, last: Operand | None = None
) -> CoreInstruction:
    """An instruction that the header has as a function of its name, `_ror8` for a rotated operand."""
    places = ", ".join(f"{{{k}}}" for k in range(count))
    mnemonic, _, rotated = name.partition("_")
    assembly = f"{mnemonic} {{d}}, {places}{', ror #8' * bool(rotated)}" if operand is WORD else ""
    return _row(f"dsp_{name}({places})", count, meaning, assembly, operand, last)


SATURATIONS = {
    (-128, 127): "ssat8", (0, 255): "usat8", (-32768, 32767): "ssat16", (0, 65535): "usat16",
    (0, 32767): "usat15"
}  # fmt: skip
"""Instructions that clamp to two ends; `_asr` behind the name: what was shifted right before."""


def _saturating(name: str, low: int, high: int) -> dict[str, CoreInstruction]:
    kind, bits = name[:4], name[4:]
    return {
        name: _row(f"dsp_{name}({{0}})", 1, lambda a: np.clip(a, low, high), f"{kind} {{d}}, #{bits}, {{0}}"),
        f"{name}_asr": _row(
            f"dsp_{name}({{0}} >> {{1}})",
            2,
            lambda a, s: np.clip(a >> s, low, high),
            f"{kind} {{d}}, #{bits}, {{0}}, asr {{1}}",
            last=_SHIFT,
        ),
    }


_SMALL = Operand("int32_t", "int32", 1, -(1 << 30), 1 << 30)
_MEANINGS: dict[str, tuple[int, object]] = {
    "smlad": (3, lambda a, b, c: c + _low(a) * _low(b) + (a >> 16) * (b >> 16)),
    "smlabt": (3, lambda a, b, c: c + _low(a) * (b >> 16)),
    "smlatb": (3, lambda a, b, c: c + (a >> 16) * _low(b)),
    "sxtb16": (1, _bytes(0, np.int8)), "sxtb16_ror8": (1, _bytes(8, np.int8)),
    "uxtb16": (1, _bytes(0, np.uint8)), "uxtb16_ror8": (1, _bytes(8, np.uint8)),
    "smulbb": (2, lambda a, b: _low(a) * _low(b)), "smulbt": (2, lambda a, b: _low(a) * (b >> 16)),
    "smultb": (2, lambda a, b: (a >> 16) * _low(b)), "smultt": (2, lambda a, b: (a >> 16) * (b >> 16)),
    "sub": (2, lambda a, b: a - b),
}  # fmt: skip
_OF_LANES = {
    "sadd16": _lanes(np.add), "ssub16": _lanes(np.subtract), "sxtab16": _added(0, np.int8),
    "uxtab16": _added(0, np.uint8), "sxtab16_ror8": _added(8, np.int8), "uxtab16_ror8": _added(8, np.uint8),
    "max_int8": _greater("i1"), "max_uint8": _greater("u1"),
    "max_int16": _greater("i2"),
}  # fmt: skip
DSP = InstructionSet("DSP extension", HEADER, "", {
    **{name: _called(name, count, meaning) for name, (count, meaning) in _MEANINGS.items()},
    **{name: _called(name, 2, meaning, _UNSIGNED) for name, meaning in _OF_LANES.items()},
    "smmlar": _called("smmlar", 3, lambda a, b, c: c + ((a * b + (1 << 31)) >> 32), last=_SMALL),
    "smmla": _called("smmla", 3, lambda a, b, c: c + (a * b >> 32), last=_SMALL),
    "smlawt": _called("smlawt", 3, lambda a, b, c: c + (a * (b >> 16) >> 16), last=_SMALL),
    "sxth": _row("dsp_low({0})", 1, _low, "sxth {d}, {0}"),
    "bottoms": _row("dsp_pair({0}, {1})", 2, lambda a, b: (a & 0xFFFF) | b << 16,
                    "pkhbt {d}, {0}, {1}, lsl #16"),
    "tops": _row("dsp_pair(dsp_high({0}), dsp_high({1}))", 2, lambda a, b: (a >> 16 & 0xFFFF) | b >> 16 << 16,
                 "pkhtb {d}, {1}, {0}, asr #16"),
    "first_nibbles": _row("{0} & 0x000f000f", 1, lambda a: a & 0x000F000F, "and {d}, {0}, #0x000f000f"),
    "second_nibbles": _row("{0} & 0x00f000f0", 1, lambda a: a & 0x00F000F0, "and {d}, {0}, #0x00f000f0"),
    **{name: row for ends, saturation in SATURATIONS.items()
       for name, row in _saturating(saturation, *ends).items()},
    "asr": _row("{0} >> {1}", 2, lambda a, s: a >> s, "asr {d}, {0}, {1}", last=_SHIFT),
    "lsl": _row("(int32_t)((uint32_t){0} << {1})", 2, lambda a, s: a << s, "lsl {d}, {0}, {1}", last=_SHIFT),
    "lsr": _row("(int32_t)((uint32_t){0} >> {1})", 2, lambda a, s: (a & 0xFFFFFFFF) >> s, "lsr {d}, {0}, {1}",
                last=_SHIFT),
    "bit": _row("(int32_t)((uint32_t){0} >> {1} & 1u)", 2, lambda a, s: a >> s & 1, "ubfx {d}, {0}, {1}, #1",
                last=_SHIFT),
    "add": _row("(int32_t)((uint32_t){0} + (uint32_t){1})", 2, lambda a, b: a + b, "add {d}, {0}, {1}"),
    "add_sign": _row("{0} + ({1} >> 31)", 2, lambda a, b: a + (b >> 31), "add {d}, {0}, {1}, asr #31",
                     _SMALL),
    "at_least": _row("{0} < {1} ? {1} : {0}", 2, np.maximum, "cmp {d}, {1}; it lt; movlt {d}, {1}"),
    "at_most": _row("{0} > {1} ? {1} : {0}", 2, np.minimum, "cmp {d}, {1}; it gt; movgt {d}, {1}"),
})  # fmt: skip


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
        return row.assembly.format(
            *(o if isinstance(o, str) else f"#{o}" for o in self.operands), d=self.to
        ).split("; ")

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
    """A word at an offset in bytes from a pointer, which stays; value: what it is in C, where that differs
    (what was put aside on the stack).
    """

    to: str
    pointer: str
    offset: int
    value: str = ""

    @property
    def assembly(self) -> list[str]:
        return [f"ldr {self.to}, [{self.pointer}, #{self.offset}]"]

    @property
    def c(self) -> str:
        return f"{self.to} = {self.value or f'(int32_t){self.pointer}[{self.offset // 4}]'};"


Step = Op | Load | Peek
Schedule = list[Step]


def op(name: str, to: str, *operands: str | int) -> Op:
    """`to` = instruction(operands)."""
    return Op(name, to, operands)


def assembly(schedule: Iterable[Step]) -> list[str]:
    """The lines of a schedule on registers."""
    return [line for o in schedule for line in o.assembly]


def twin(schedule: Iterable[Step]) -> list[str]:
    """The same as C statements on variables of the registers' names."""
    return [o.c for o in schedule]


def dsp_function(
    name: str,
    comment: str,
    parameters: str,
    lines: Iterable[str],
    twin_lines: Iterable[str],
    result: str = "void ",
) -> str:
    """Text of a micro-kernel and of its twin."""
    body = "\n".join(twin_lines)
    return assembly_function("#if AOT_MODEL_DSP", name, comment, parameters, lines, body, result)
