"""Requantisation as a schedule: assembly on named registers, its C twin and inline C from one list; and the
plain rule.

All follow a `RequantisePlan` (see requantise.py). Constants of one channel are {multiplier, offset[,
shift]}, in that order, or both in the halves of a word (short). The C needs the header of dsp.py.

Loops in plain C read for each channel the start of its sums and the numbers of its requantisation (`Rows`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from aot_model.c.text import loop_of
from aot_model.ir.admissible import ANYTHING, SHIFTS, Range, Ranges
from aot_model.kernels.base import Packed, Tail
from aot_model.kernels.int8.dsp import SATURATIONS, Load, Schedule, op, twin
from aot_model.kernels.int8.requantise import SHORT, RequantisePlan, bounds, plan, room_for_bias
from aot_model.kernels.int8.spec import Int32, Int64, QuantSpec

_ENDS = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767), "uint16": (0, 65535)}


def wrapped(values: Int64) -> Int32:
    """Modulo 2^32, as int32."""
    return (values & 0xFFFFFFFF).astype(np.uint32).view(np.int32)


def numbers_of(rq: RequantisePlan) -> Int64:
    """[channels, words]: constants of the requantisation as the micro-kernels read them; none where
    there are none."""
    if rq.bare:
        return np.zeros((rq.multiplier.size, 0), np.int64)
    if rq.form == "short":  # both in one word
        return (rq.multiplier | rq.offset & 0xFFFF)[:, None]
    words = [rq.multiplier, rq.offset, *([] if rq.uniform_shift else [rq.shift])]
    return np.stack(words, axis=1)


def form_name(rq: RequantisePlan, out_dtype: str) -> str:
    """Suffix of a micro-kernel's name: everything of the requantisation that its text depends on."""
    if rq.form == "raw":
        return "raw"
    parts = [rq.form, str(int(rq.shift[0])) if rq.uniform_shift else "v"]
    parts.append(("u" if out_dtype.startswith("u") else "s") + out_dtype.strip("uint"))
    parts += [f"l{rq.lift}"] if rq.lift else []
    parts += ["odd"] if rq.form == "halved" and rq.offset.any() else []
    parts += [f"{n}{v}" for n, v in (("lo", rq.clamp_low), ("hi", rq.clamp_high)) if v is not None]
    return "_".join(parts).replace("-", "n")


def requantise(
    rq: RequantisePlan,
    accs: tuple[str, ...],
    align: int,
    out_dtype: str,
    constants: tuple[str, str, str, str],
    fetch: Schedule,
    clamp: bool = False,
) -> Schedule:
    """Requantises one channel's accumulators in place; they come shifted left by `align`.

    constants: multiplier, offset, a free one, variable shift. fetch: how the shift is loaded when all have
    been multiplied: it may take the place of another constant. clamp: compare with both ends where there are
    clamps at all, and do not saturate before.
    """
    if rq.form == "raw":
        return [op("asr", a, a, align) for a in accs] if align else []
    ends = _ENDS[out_dtype]
    low, high = rq.clamp_low, rq.clamp_high
    inside = (ends[0] if low is None else low, ends[1] if high is None else high)
    if inside in SATURATIONS:
        ends, low, high = inside, None, None
    saturate = SATURATIONS[ends]
    compare = clamp and not (low is None and high is None)
    if compare:
        low, high = (end if v is None else v for v, end in zip((low, high), ends, strict=True))
    m, c, free, variable = constants
    products: list[Schedule] = []
    every: list[Schedule] = []
    product = {"affine": "smmlar", "up": "smmla", "short": "smlawt"}.get(rq.form)
    fixed = int(rq.shift[0]) + (align if product else 0)
    for a in accs:
        lines: Schedule = []
        if rq.form == "halved":
            less: Schedule = [op("sub", a, a, int(rq.offset[0]))] if rq.offset.any() else []
            down: Schedule = [op("asr", a, a, align)] if align else []
            products.append([*down, op("bit", free, a, fixed), op("add", a, a, free), *less])
        elif product:
            lift: Schedule = [op("lsl", a, a, rq.lift)] if rq.lift else []
            products.append([*lift, op(product, a, a, m, c)])
        else:
            twice: Schedule = (
                [op("asr", a, a, align - 1)] if align > 1 else [] if align else [op("lsl", a, a, 1)]
            )
            products.append([*twice, op("add_sign", free, c, a), op("smmlar", a, a, m, free)])
        if not rq.uniform_shift:
            lines += [op("asr", a, a, align)] if product and align else []
            lines.append(op("asr", a, a, variable))
        if rq.uniform_shift and fixed:
            lines.append(op("asr" if compare else f"{saturate}_asr", a, a, fixed))
        elif not compare:
            lines.append(op(saturate, a, a))
        lines += [op("at_least", a, a, low)] if low is not None else []
        lines += [op("at_most", a, a, high)] if high is not None else []
        every.append(lines)
    if product:  # step by step: cores that wait for a product have others to do
        products, every = (
            [[step for steps in zip(*part, strict=True) for step in steps]] for part in (products, every)
        )
    elif rq.uniform_shift or not fetch:
        products, every = [], [a + b for a, b in zip(products, every, strict=True)]
    parts = [*products, *([] if rq.uniform_shift else [fetch]), *every]
    return [step for part in parts for step in part]


def requantise_streamed(
    rq: RequantisePlan,
    accs: tuple[str, ...],
    align: int,
    out_dtype: str,
    constants: tuple[str, str, str, str],
    pointer: tuple[str, str] = ("r1", ""),
) -> Schedule:
    """The same with constants that are loaded before, from a pointer that moves on; pointer: as of `Load`."""
    loads: Schedule = [] if rq.bare else [Load(constants[:2], *pointer)]
    loads += [] if rq.bare or rq.uniform_shift else [Load(constants[3:], *pointer)]
    return [*loads, *requantise(rq, accs, align, out_dtype, constants, [])]


def finish_c(
    rq: RequantisePlan, out_dtype: str, constants: str, offset: str = "", align: int = 0
) -> list[str]:
    """C that turns the accumulator `v` into the clamped value; `constants`: a pointer to {multiplier,
    offset[, shift]}; offset: C of it, where it is elsewhere and the shift is one for all. align: `v` comes
    shifted left by so much.
    """
    elsewhere = offset or (f"dsp_low({constants}[0])" if rq.form == "short" else f"{constants}[1]")
    places = (f"{constants}[0]", elsewhere, "sign", f"{constants}[2]")
    lines = twin(requantise(rq, ("v",), align, out_dtype, places, [], clamp=True))
    return [f"const int32_t {line}" if line.startswith("sign =") else line for line in lines]


ROWS = "for each channel: start value of the sums, numbers of the requantisation"
"""Layout of the rows that admissible_rows is about."""


def admissible_shifts(rq: RequantisePlan, width: int, channels: int = 1) -> Ranges:
    """Of a table of rows that end with the numbers of so many channels, `width` words together."""
    if rq.bare or rq.uniform_shift:
        return ANYTHING
    return tuple(Range(0, 31, width - 1 - 3 * k, width) for k in range(channels))


def admissible_rows(rq: RequantisePlan, width: int, room: int | None) -> Ranges:
    """Of a table of rows {start of the sum, requantisation}: starts are not larger than `room`, where sums
    are signed.
    """
    least = -(1 << 31)
    start = () if room is None else (Range(-room, room, 0, width),)
    if rq.form == "raw":
        return start if width == 1 else (*start, Range(*SHIFTS, 2, width))
    offset = (Range(least + 1, -least - 1, 2, width),) if rq.form == "ties" else ()
    return (*start, *offset, *(() if rq.uniform_shift else (Range(0, 31, 3, width),)))


def requantise_helper(quant: QuantSpec) -> tuple[str, str]:
    """(name, C text) of the rule as it stands, for any multiplier and shift: (acc, {multiplier, shift}) ->
    clamped value. Both empty where there is no rule.
    """
    if quant.rounding is None:
        return "", ""
    name = f"requantise_{quant.rounding}_{quant.out_zero_point}_{quant.act_min}_{quant.act_max}"
    name = name.replace("-", "n")
    rule = "aot_model_requantise" + ("" if quant.rounding == "double" else f"_{quant.rounding}")
    low, high = quant.act_min - quant.out_zero_point, quant.act_max - quant.out_zero_point
    text = f"""/* The rule for one accumulator; constants = {{multiplier, shift}}. */
static int32_t {name}(int32_t acc, const int32_t *constants)
{{
    const int32_t q = {rule}(acc, constants[0], constants[1]);
    return q < {low} ? {quant.act_min} : q > {high} ? {quant.act_max} : q + {quant.out_zero_point};
}}
"""
    return name, text


def raw_constants(quant: QuantSpec, channels: int) -> list[Packed]:
    """Multiplier and shift of each channel for the plain rule."""
    if quant.rounding is None:
        return []
    rows = np.stack(quant.channels(channels), axis=1).astype(np.int32)
    return [Packed("requantisation", rows.reshape(-1), admissible=(Range(*SHIFTS, 1, 2),))]


def stored(rq: RequantisePlan, out_dtype: str) -> tuple[str, int]:
    """(C type, bytes) of what a micro-kernel stores: in raw form the accumulators."""
    return ("int32_t", 4) if rq.form == "raw" else (f"{out_dtype}_t", 2 if out_dtype.endswith("16") else 1)


@dataclass(frozen=True)
class Rule:
    """The plain rule over what a micro-kernel stored, where that is the accumulators; else nothing is left to
    do.
    """

    name: str = ""
    helpers: tuple[str, ...] = ()
    constants: tuple[Packed, ...] = ()

    @staticmethod
    def of(rq: RequantisePlan, quant: QuantSpec, channels: int) -> Rule:
        if rq.form != "raw" or quant.rounding is None:
            return Rule()
        name, text = requantise_helper(quant)
        return Rule(name, (text,), tuple(raw_constants(quant, channels)))

    def lines(self, accumulator: str, channel: str) -> list[str]:
        """C that declares `v`, what an accumulator becomes."""
        return [f"const int32_t v = {self.value(accumulator, channel)};"]

    def value(self, accumulator: str, channel: str) -> str:
        return f"{self.name}({accumulator}, requantisation + 2 * {channel})" if self.name else accumulator

    def store_each(
        self,
        count: int,
        accumulator: str,
        to: str,
        dtype: str,
        tail: Tail | None,
        pixel: tuple[str, str, str],
    ) -> list[str]:
        """C that does it for channels `c` of a pixel: they go to the tail or, as `dtype`, to y[to]."""
        store = f"y[{to}] = ({dtype}_t)v;" if tail is None else tail.store("v", (*pixel, "c"), 1).rstrip()
        return loop_of("c", count, *self.lines(accumulator, "c"), store)


@dataclass(frozen=True)
class Rows:
    """The table of a layer, and the C of its sums."""

    quant: QuantSpec
    rq: RequantisePlan
    table: Int64
    """[channels, words]"""
    room: int | None
    """How large a start may be, so that sums stay within int32; None where they may wrap."""
    paired: bool = False
    """The rows of two channels are {start, multiplier} of each, then both offsets in a word."""

    @staticmethod
    def of(
        kind: np.dtype,
        weights: Int64,
        bias: Int64,
        quant: QuantSpec,
        paired: bool = False,
        short: bool = False,
    ) -> Rows:
        """weights [channels, taps] and bias as folded; kind: type of the weights as they lie in memory.
        paired: channels are read two at a time, so that short offsets may share a word. short: a multiplier
        of 16 bits and its offset do, where they are exact.
        """
        rq = plan(quant, *bounds(weights, bias, quant), short=short)
        if short and rq.form != "short":
            rq = plan(quant, *bounds(weights, bias, quant))
        most = room_for_bias(kind, weights.shape[1], quant)
        start = bias + rq.bias_shift
        room = most if int(np.abs(start).max(initial=0)) <= most else None
        rows = Rows.starting(start, quant, rq, room)
        short = rq.form == "affine" and rq.uniform_shift and int(np.abs(rq.offset).max()) < SHORT
        if not (paired and short):
            return rows
        both = rq.offset.reshape(-1, 2) & 0xFFFF
        pairs = rows.table[:, :2].reshape(-1, 4)
        table = np.concatenate([pairs, both[:, :1] | both[:, 1:] << 16], axis=1)
        return replace(rows, table=table, paired=True)

    @staticmethod
    def starting(start: Int64, quant: QuantSpec, rq: RequantisePlan, room: int | None = None) -> Rows:
        """Of sums that begin with `start`."""
        words = numbers_of(rq)
        if rq.form == "raw" and quant.rounding:
            words = np.stack(quant.channels(start.size), axis=1)
        return Rows(quant, rq, np.column_stack([start, words]), room)

    @property
    def width(self) -> int:
        """Words of a row; of one of two channels, if they are paired."""
        return int(self.table.shape[1])

    def packed(self, name: str = "requantisation") -> Packed:
        data = wrapped(self.table.reshape(-1))
        if not self.paired:
            return Packed(name, data, layout=ROWS, admissible=admissible_rows(self.rq, self.width, self.room))
        room = self.room
        starts = ANYTHING if room is None else tuple(Range(-room, room, k, self.width) for k in (0, 2))
        layout = (
            "for each two channels: start value of the sums and multiplier of each; two offsets in a word"
        )
        return Packed(name, data, admissible=starts, layout=layout)

    def start(self, table: str, channel: int) -> str:
        """Where in `table`, a pointer to a block of channels, the start of one's sums is."""
        return f"{table}[{channel * (2 if self.paired else self.width)}]"

    def step(self, channels: int) -> int:
        """Words of a block of channels."""
        return self.width * channels // (2 if self.paired else 1)

    def sums(self) -> tuple[str, str]:
        """(type of the sums, cast of what is added).

        Unsigned ones wrap as the rule's do, but gcc reorders them and runs out of registers: only where they
        may wrap.
        """
        return ("int32_t", "") if self.room is not None else ("uint32_t", "(uint32_t)")

    def as_sum(self, product: str) -> str:
        """A product as it is added to a sum."""
        return product if self.room is not None else f"(uint32_t)({product})"

    def as_int(self, total: str) -> str:
        """A finished sum as int32."""
        return total if self.room is not None else f"(int32_t){total}"

    def helpers(self) -> tuple[str, ...]:
        """Functions that `finish` calls."""
        return tuple(t for t in (requantise_helper(self.quant)[1],) if t and self.rq.form == "raw")

    def finish_of(self, table: str, channel: int) -> list[str]:
        """C that turns the sum `v` into the result, of a channel of the block at `table`."""
        if not self.paired:
            return self.finish(f"{table} + {channel * self.width + 1}")
        both = f"{table}[4]"
        offset = f"{both} >> 16" if channel else f"(int16_t){both}"
        return finish_c(self.rq, self.quant.out_dtype, f"({table} + {2 * channel + 1})", offset)

    def finish(self, constants: str) -> list[str]:
        """C that turns the sum `v` into the result; constants: a pointer behind the row's start."""
        if self.rq.form != "raw":
            at = constants if constants.isidentifier() else f"({constants})"
            return finish_c(self.rq, self.quant.out_dtype, at)
        rule, _ = requantise_helper(self.quant)
        return [f"v = {rule}(v, {constants});"] if rule else []


def less(zero_point: int) -> str:
    """C that subtracts a weight's zero point, behind the weight."""
    return f" - {zero_point}" if zero_point > 0 else f" + {-zero_point}" if zero_point else ""
