"""Functions of kernels that decide and plan, called with what is drawn at limits and beside them: shapes that
need no tensor, so that they may be as large as fields of instructions and sums are; requantisations.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
from limits import Draw, accumulators, quantisation, shape

from aot_model.cycles.rules import memory_of
from aot_model.ir.admissible import ANYTHING
from aot_model.ir.types import DType
from aot_model.kernels import cases, column_pairs, overlap
from aot_model.kernels.base import ConvShape, KernelCode, Packed
from aot_model.kernels.float32 import axis
from aot_model.kernels.int8 import (
    channel_lanes_mve,
    conv_mve,
    depthwise_channels_dsp,
    depthwise_columns_mve,
    depthwise_dsp,
    depthwise_lanes_mve,
    depthwise_taps_mve,
    gemm_dsp,
    held_dsp,
    host_loops,
    image_rows_mve,
    nibbles,
    patch_dsp,
    patch_mve,
    plane,
    pooling,
    products_dsp,
    requantise,
    requantise_mve,
    winograd,
)
from aot_model.kernels.int8.spec import QuantSpec
from aot_model.kernels.int16 import depthwise_dsp as depthwise_int16_dsp
from aot_model.kernels.int16 import depthwise_lanes_mve as depthwise_int16_lanes
from aot_model.kernels.int16 import depthwise_mve as depthwise_int16
from aot_model.kernels.int16 import groups_mve
from aot_model.kernels.int16.finish import Finish, Rule, finish
from aot_model.kernels.int16.finish_mve import Ending
from aot_model.kernels.reading import Reading

MOST_WEIGHTS = 1 << 18
FEW = 4000
"""Outputs of a shape whose windows are followed one by one."""
MEMORIES = tuple(memory_of(name) for name in ("0ws", "l4-art", "f4-art"))


@dataclass(frozen=True)
class Planned:
    """A requantisation, and its form."""

    quant: QuantSpec
    ends: tuple[np.ndarray, np.ndarray]
    align: np.ndarray | None
    rounded: bool
    found: requantise.RequantisePlan


def planned(draw: Draw) -> Planned:
    count = draw.few(4)
    quant, ends = quantisation(draw, count), accumulators(draw, count)
    align = draw.pick(None, None, np.full(count, 8), np.where(np.arange(count) % 2 == 0, 8, 0))
    rounded, short = draw.chance(0.6), draw.chance(0.15)
    if draw.chance(0.1):
        return Planned(quant, ends, None, True, requantise.lifted_plan(quant, *ends))
    lift = draw.pick(0, 0, 0, 0, 1, 3)
    return Planned(quant, ends, align, rounded, requantise.plan(quant, *ends, align, rounded, lift, short))


def _plans(draw: Draw) -> Any:
    rq = planned(draw).found
    return rq, rq.note, rq.bare, rq.narrow, rq.uniform_shift


def _helium(draw: Draw) -> Any:
    """Of sums as large as biases make them."""
    count = draw.few(6)
    quant = quantisation(draw, count)
    if draw.chance(0.1):
        quant = replace(quant, out_dtype="int16")
    elif draw.chance(0.2):
        quant = replace(
            quant,
            **{
                draw.pick("act_min", "act_max", "out_zero_point"): draw.pick(
                    -129, -128, 0, 127, 128, 255, 256
                )
            },
        )
    said = requantise_mve.supports(quant), requantise_mve.supports_sums(replace(quant, rounding=None))
    if not said[0]:
        return said
    weights = draw.rng.integers(-128, 128, (count, 3)).astype(np.int8)
    bias = np.array([draw.pick(0, -draw.power(9, 30), draw.power(9, 30)) for _ in range(count)], np.int32)
    if draw.chance(0.2):
        bias[0] = -(1 << 31) + draw.any(0, 130) * 255
    rq = requantise_mve.requantiser(quant, weights, bias)
    lanes = draw.any(0, 3) + np.arange(4)
    r = draw.pick("q", "r")
    lines = rq.vector("q0", "q1", f"{r}2", f"{r}3", f"{r}4", "r5", draw.pick("r6", "[r6]"))
    lines += rq.narrow("q0", draw.pick("q1", None), "q2", draw.pick("q3", None))
    ends = requantise_mve.Ends.of(quant)
    return (
        said, rq, rq.note, rq.head(), rq.record(lanes), rq.record_bytes, rq.numbers, rq.rounds_product,
        rq.both, rq.has_left, lines, rq.scalar("sum", "m", "l", "r", "t"), ends.signed(quant), ends.x, ends.y,
        ends.results(7), requantise_mve.padding(quant),
    )  # fmt: skip


def _finish(draw: Draw) -> Finish | None:
    count, to = draw.few(4), draw.pick(DType.INT16, DType.INT16, DType.INT8, DType.UINT16, DType.INT32)
    rounding = draw.pick("double", "single", "even", "wide")
    one, low, high = draw.any(1 << 30, (1 << 31) - 1), *to.limits
    m = np.array(
        [draw.pick(one, one, draw.any(0, 1 << 31), 1 << 30, 0, -1 if count > 3 else 7) for _ in range(count)]
    )
    m = m >> draw.any(0, 16) if rounding == "wide" else m
    least = draw.any(-33, 16)
    s = np.array([draw.pick(least, least, least, least - 1, draw.any(-34, 17)) for _ in range(count)])
    most = draw.power(8, 30)
    room = (1 << 31) - 1 - most
    start = np.array(
        [draw.pick(0, draw.any(-999, 999), room, -room, room + 1, room >> 1) for _ in range(count)]
    )
    zero = draw.pick(0, 0, 5, draw.pick(-1, 1) * draw.power(4, 15))
    ends = draw.pick((low, high), (low, high), (0, high), (low + 1, high))
    return finish(1, start, Rule(rounding, m, s, zero, *ends, to), most)


def _finished(draw: Draw) -> Any:
    found = _finish(draw)
    ending = Ending.of(found)
    if found is None or ending is None:
        return found, found and found.lines("sum", "row")
    said = found.table(), found.row("row", "c"), found.lines("sum", "row"), found.width
    return found, said, ending.saturates, ending.pointer, ending.limits()


def words(draw: Draw) -> np.ndarray:
    """A stream of words: numbers of some bytes, then weights of 4 bits, again and again."""
    found = list[int]()
    plain, small = (
        draw.pick(0, 1, 2, 3, 5, draw.beside(255), draw.beside(256)),
        draw.pick(3, 4, 5, 8, 20, draw.beside(255), 600, 900),
    )
    limits = [draw.pick(1, 2, 3, 4) for _ in range(plain)]
    for _ in range(draw.pick(1, 2, 3, 12, 300 if plain + small < 30 else 1)):
        for size in limits:
            most = 1 << 8 * size - 1
            found.append(draw.pick(draw.any(-most, most - 1), most - 1, -most, 7, 0x01020304 % most))
        count = small + draw.pick(0, 0, 0, 0, 1, -1)
        if draw.chance(0.05):
            found += [draw.any(-(1 << 31), (1 << 31) - 1) for _ in range(draw.few(5))]
        found += draw.rng.integers(-8, 8, 4 * max(count, 0)).astype(np.int8).view("<i4").tolist()
    return np.array(found or [0], np.int64).astype(np.int32)


def _narrow(draw: Draw) -> Any:
    """Constants that may be unpacked before a kernel runs."""
    stream = words(draw)
    constants = [Packed("weights", stream, 4, ANYTHING)]
    if draw.chance(0.4):
        kind, low, high = draw.pick((np.int8, -8, 7), (np.uint8, 0, 15), (np.int8, -9, 7), (np.uint8, 0, 16))
        size = draw.pick(0, 1, 7, 64)
        data = draw.rng.integers(low, high + 1, size).astype(kind)
        constants = [Packed("w", data, 1), *constants[: draw.any(0, 1)]]
    room = draw.pick(None, draw.beside(4 * stream.size), draw.beside(sum(c.data.nbytes for c in constants)))
    found = nibbles.staged(KernelCode("done();\n", constants=tuple(constants)), room)
    return found and (found.body, found.constants, found.scratch, found.note)


def _pairs(draw: Draw) -> Any:
    """Channels of matrices that are multiplied in pairs."""
    count, taps = draw.any(2, 5), draw.few(5)
    quant = replace(
        quantisation(draw, count), x_dtype="int8", x_zero_point=draw.any(-128, 127), weight_zero_point=0
    )
    w = draw.rng.integers(-128, 128, (count, taps))
    w[:, 0] = draw.pick(-128, -127, 0, 127)
    slots = gemm_dsp.channel_pairs(count, draw.chance(0.5)).reshape(-1)
    b = np.array([draw.pick(0, draw.power(8, 30), -draw.power(22, 23)) for _ in range(count)])
    lo, hi = requantise.bounds(w, b, quant)
    lo[0], hi[0] = draw.pick(
        (lo[0], hi[0]), (-draw.beside((1 << 23) - 4096), 0), (0, draw.beside((1 << 23) - 4096))
    )
    a, other = w[slots[0::2]], w[slots[1::2]] // draw.pick(1, 2)
    joined = gemm_dsp.can_join(a, other, lo[slots[0::2]], hi[slots[0::2]])
    return (
        slots,
        joined,
        gemm_dsp.plan_slots(w, b, quant, slots),
        gemm_dsp.channel_pairs(3, False, draw.few(3)),
    )


def _depthwise(draw: Draw) -> Any:
    """Which kernels take a layer, and what they say of it."""
    s = shape(draw, True)
    quant = replace(quantisation(draw, 1), rounding=draw.pick("double", None))
    taps = s.kernel_h * s.kernel_w
    said = [
        depthwise_taps_mve.applicable(s), depthwise_columns_mve.applicable(s), channel_lanes_mve.takes(s),
        depthwise_dsp.applicable(s, quant), depthwise_dsp.takes_one_channel(s),
        depthwise_channels_dsp._row(s), depthwise_channels_dsp.applicable(s, quant),
        image_rows_mve.ring_of(s, draw.pick(1, 2), draw.chance(0.5)),
        depthwise_taps_mve.tap_plan(s, draw.pick(1, 2)),
    ]  # fmt: skip
    said += [depthwise_taps_mve.cycles(s)] if said[0] else []
    said += (
        [depthwise_columns_mve.cycles(s), depthwise_columns_mve._plan(s, draw.chance(0.5))] if said[1] else []
    )
    if said[2]:
        said += [
            depthwise_lanes_mve.cycles(s, quant),
            depthwise_lanes_mve._plan(s, quant, draw.any(-128, -126)),
        ]
        said += [depthwise_int16_lanes.cycles(s)]
    if taps * s.out_c < MOST_WEIGHTS:
        weights = np.ones((s.kernel_h, s.kernel_w, s.out_c), draw.pick(np.int8, np.int8, np.int16))
        most = draw.factor(taps) if draw.chance(0.5) else max(1, ((1 << 31) - 1) // taps + draw.pick(0, 1))
        found = _finish(draw)
        ending = Ending.of(found)
        said += [depthwise_int16.applicable(s, weights, draw.pick(ending, None)),
                 depthwise_int16_dsp.applicable(s, weights, most, found)]  # fmt: skip
        said += [pooling.are_sums(s, weights, quant)]
    for windows in (pooling.AVX2, pooling.HELIUM):
        said += [
            (windows.takes(s, k), windows.name(m, s, k))
            for m in ("average", "max")
            for k in ("int8", "uint8", "int16")
        ]  # type: ignore[arg-type]
    limit = draw.pick(1024, 4096, 65536)
    return [*said, plane.plane_of(s, limit, draw.chance(0.5))] if s.out_h < FEW else said


def _dense(draw: Draw) -> Any:
    s = shape(draw, False)
    quant = quantisation(draw, 1)
    said: list[Any] = [
        conv_mve.applicable(s, quant), conv_mve._cycles_of_one_channel(s), cases.too_many_borders(s),
        cases.too_many_phases(s, draw.chance(0.5)), column_pairs.pays(s),
        overlap.span(s), overlap.residual(draw.pick(1, 2, 4), s),
        overlap.by_rows(s.batch, s.in_h, s.in_w * s.in_c, s.out_h, s.out_w * s.out_c, draw.few(3),
                        [k * s.stride_h - s.pad_top for k in range(min(s.out_h, 40))]),
        s.along_row, s.row_of_windows, s.inside, s.in_place, s.one_row, s.adjacent_taps, s.macs,
    ]  # fmt: skip
    if s.groups > 1:
        said += [
            patch_dsp.slices_fit(s),
            patch_dsp.needs_assembly(s),
            patch_mve.groups_of(s, draw.pick(8, 16)).together,
        ]
    taps = s.kernel_h * s.kernel_w * s.group_in
    if taps * s.out_c < MOST_WEIGHTS:
        weights = np.ones((s.out_c, taps), draw.pick(np.int8, np.int8, np.int16))
        most = max(1, ((1 << 31) - 1) // taps + draw.pick(0, 1))
        said += [groups_mve.applicable(s, weights, most, Ending.of(_finish(draw)))]
    if s.batch * s.out_h * s.out_w < FEW:
        said += [
            overlap.by_pixels(s, draw.pick(1, 2, 4), reread=draw.chance(0.5), through_images=draw.chance(0.5),
                              sizes=draw.pick((1, 1), (2, 2), (1, 2))),
            overlap.by_pixels(s, 1, by_channel=True), host_loops.view(s, draw.pick(3, 4, 8), draw.pick(1, 2)),
        ]  # fmt: skip
    nbytes = draw.pick(draw.few(40), draw.beside(16), draw.beside(patch_mve.LONGEST_UNROLLED))
    return [*said, patch_mve.copy_statements("to", "from", nbytes)]


def _axes(draw: Draw) -> Any:
    kernel, stride, dilation = draw.few(7), draw.few(5), draw.few(3)
    size, pad = draw.few(14), draw.any(-2, 6)
    most = draw.any(1, max(1, (size + 2 * pad - (kernel - 1) * dilation - 1) // stride + 1 + draw.any(0, 3)))
    end = draw.pick(None, None, draw.any(0, 4))
    return (
        axis.conv_axis(size, most, kernel, stride, dilation, pad, end),
        axis.transposed_axis(
            size, draw.any(1, size * stride + kernel), kernel, stride, dilation, max(pad, 0)
        ),
    )


def _winograd(draw: Draw) -> Any:
    sizes = [draw.pick(4, 5, 8, 9, 12, 16, 17, 28, draw.few(60)) for _ in range(2)]
    ins, outs = (draw.pick(3, 4, 5, 8, 12, 16, 17, 24, 32, draw.few(80)) for _ in range(2))
    pads = [draw.pick(0, 1, 1, 2) for _ in range(2)]
    batch = draw.pick(1, 1, 2)
    s = ConvShape(batch, sizes[0] + 2 - 2 * pads[0], sizes[1] + 2 - 2 * pads[1], ins, *sizes, outs, 3, 3,
                  pad_top=pads[0], pad_left=pads[1])  # fmt: skip
    if min(s.in_h, s.in_w) < 1:
        return None
    tail = draw.chance(0.4)
    found = list(winograd.variants(s, tail))
    scratch = draw.pick(*(v.scratch for v in found)) if found else 0
    quant = replace(
        quantisation(draw, 1),
        x_zero_point=draw.pick(-128, 0, 127),
        x_dtype="int8",
        weight_zero_point=draw.pick(0, 0, 0, 1),
    )
    count = draw.pick(1, 2, outs)
    weights = np.zeros((count, 3, 3, draw.pick(3, 4, 5, 900)), np.int8)
    weights.reshape(count, -1)[0] = draw.pick(-128, 127, 40)
    w = replace(
        s, out_c=count, in_c=weights.shape[3], dilation_w=draw.pick(1, 1, 1, 2), batch=draw.pick(1, 1 << 14)
    )
    return (
        found, winograd.choose(s, tail, draw.beside(scratch)), winograd.smallest(s, tail),
        winograd.reach(s, draw.pick(4, 8, 16)), winograd.plain_cycles(s), winograd.fits(w, quant, weights),
    )  # fmt: skip


def _reading(draw: Draw) -> Any:
    """What copies of constants to RAM save, and pixels that stay in registers."""
    reading = Reading(draw.pick(None, *MEMORIES), compact=draw.chance(0.1))
    nbytes = draw.pick(draw.power(4, 16), draw.power(6, 11))
    ins, outs = (
        draw.any(1, 9),
        draw.pick(draw.few(40), draw.power(4, 8), draw.few(300)) if draw.chance(0.97) else draw.beside(4000),
    )
    pixels = draw.pick(draw.few(12), draw.beside(-(-held_dsp.LEAST_SAVING // (40 + 4 * outs))))
    s = ConvShape(1, 1, max(pixels, 1), ins, 1, max(pixels, 1), outs)
    weights = np.resize(draw.rng.integers(-99, 99, 64), (outs, ins)).astype(np.int8)
    stream = cast(gemm_dsp.PairStream, SimpleNamespace(nbytes=draw.pick(nbytes, 4 * draw.beside(2500))))
    kept = held_dsp.held(s, weights, None, quantisation(draw, 1), reading)
    return (
        reading.waits(nbytes), reading.saving(nbytes, draw.few(12)),
        kept and kept.rq.form, kept and kept.words,
        products_dsp.worth_single(draw.pick(1, 2), draw.pick(1, 4, 5, 61, 64, 65, 69), stream),
    )  # fmt: skip


SUBJECTS: dict[str, tuple[Callable[[Draw], Any], int]] = {
    "requantise.plan": (_plans, 3000),
    "requantise_mve": (_helium, 3000),
    "int16 finish": (_finished, 4000),
    "nibbles": (_narrow, 500),
    "gemm_dsp": (_pairs, 1200),
    "depthwise": (_depthwise, 2500),
    "dense": (_dense, 2000),
    "axes": (_axes, 800),
    "winograd": (_winograd, 400),
    "reading": (_reading, 400),
}
"""What is called, and how often."""


def plain(value: Any) -> Any:
    """Numbers and words of what a function gives."""
    if is_dataclass(value) and not isinstance(value, type):
        return [type(value).__name__, *(plain(getattr(value, f.name)) for f in fields(value))]
    if isinstance(value, np.ndarray):
        return [str(value.dtype), *value.shape, *value.reshape(-1).tolist()]
    if isinstance(value, (list, tuple, range)):
        return [plain(v) for v in value]
    if isinstance(value, (float, np.floating)):
        return f"{float(value):.6g}"
    return int(value) if isinstance(value, (bool, int, np.number, np.bool_)) else str(value)


def said(name: str, numbers: range) -> Iterator[str]:
    """What a subject gives for each of some draws."""
    function, _ = SUBJECTS[name]
    seed = sorted(SUBJECTS).index(name)
    yield from map(str, map(plain, map(function, map(partial(Draw, seed), numbers))))
