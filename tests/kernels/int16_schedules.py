"""Layers of the kernels' table for single schedules of 16-bit activations: rows in a loop, fours of channels,
sums in parts, groups, channels in lanes, ties.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from draw import Draw, requantised
from layer import Layer, Step

from aot_model.ir.types import DType
from aot_model.ops.convolution import Convolution
from aot_model.ops.elementwise import op
from aot_model.ops.quantised_tables import Lookup, Table
from aot_model.ops.requantise import Requantise


def ties(draw: Draw) -> list[Layer]:
    """Sums that are multiples of a high power of two, so that many are halfway between two results: even and
    odd zero points, one shift and shifts apart, odd counts of channels in and out, groups.
    """
    layers = []
    for turn, (kernel, ins, outs, groups, to) in enumerate(
        (
            ((1, 1), 9, 7, 1, np.int16),
            ((3, 3), 3, 5, 1, np.int16),
            ((1, 1), 16, 15, 1, np.int8),
            ((2, 3), 4, 8, 2, np.int16),
            ((1, 1), 12, 9, 1, np.uint16),
            ((3, 1), 5, 9, 1, np.uint8),
        )
    ):
        of = 256 if np.iinfo(to).bits == 16 else 16384
        x = of * (draw.tensor(np.int16, 1 + turn % 2, 5, 7, ins) // of)
        w = 8 * (draw.tensor(np.int8, outs, *kernel, ins // groups) // 8)
        limits, size = np.iinfo(to), 12 if np.iinfo(to).bits == 16 else 20
        shift = -size - (draw.rng.integers(0, 3, outs) if turn % 2 else np.zeros(outs, np.int64))
        middle = (limits.min + limits.max + 1) // 2
        low = middle if turn == 3 else limits.min
        zero = middle + (7, 0, -5, 2, 12, 1)[turn]
        node = Requantise(zero, low, limits.max, DType.of(np.dtype(to)), "even")
        factors = (np.full(outs, 1 << 30, np.int32), (1 + shift).astype(np.int32))
        bias = Step(op("Add"), (8 * of * draw.rng.integers(-90, 90, outs).astype(np.int64),))
        steps = (Step(Convolution(group=groups), (w,)), bias, Step(node, factors))
        layers.append(Layer(f"ties {turn} {list(w.shape)} {groups} {to.__name__}", x, steps))
    return layers


def channels_in_lanes(draw: Draw) -> list[Layer]:
    """Few taps or few outputs of a row, whole blocks of channels and parts, every type of results."""
    layers = []
    windows: tuple[tuple[tuple[int, int], tuple[int, int], int, dict[str, Any]], ...] = (
        ((1, 21), (1, 21), 8, {}),
        ((9, 1), (9, 1), 20, {}),
        ((1, 3), (1, 8), 6, {"pads": (0, 1, 0, 1)}),
        ((3, 3), (5, 4), 34, {"pads": (1, 1, 1, 1)}),
        ((3, 3), (5, 6), 16, {"strides": (2, 2)}),
        ((2, 2), (6, 5), 2, {"pads": (1, 0, 0, 1), "strides": (1, 2)}),
        ((1, 2), (3, 9), 70, {}),
        ((3, 2), (9, 9), 10, {"dilations": (3, 2), "pads": (2, 1, 2, 1)}),
        ((1, 1), (3, 3), 4, {}),
    )
    for turn, (kernel, size, channels, window) in enumerate(windows):
        to, rule = (np.int16, np.int8, np.uint16, np.uint8)[turn % 4], ("wide", "double", "single")[turn % 3]
        x = draw.tensor(np.int16, 1 + turn % 2, *size, channels)
        w = draw.tensor(np.int8, channels, *kernel, 1)
        steps = requantised(draw, kernel[0] * kernel[1], 1 << 21, channels, to, turn, rule)
        layers.append(
            Layer(
                f"lanes {turn} {list(w.shape)} {to.__name__} {rule}",
                x,
                (Step(Convolution(group=channels, **window), (w,)), *steps),
            )
        )
    return layers


def long_rows(draw: Draw) -> Layer:
    """Twelve vectors of taps, as many as are written out, and a rest."""
    w, x = draw.tensor(np.int8, 5, 1, 1, 99), draw.tensor(np.int16, 1, 2, 3, 99)
    return Layer(
        "long rows with a rest",
        x,
        (Step(Convolution(), (w,)), *requantised(draw, 99, 1 << 21, 5, np.int16, 0, "wide")),
    )


def groups_of_types(draw: Draw) -> list[Layer]:
    """Groups of activations with a zero point, of bytes, of weights with 16 bits; depthwise ones of those;
    sums that are the result, sums of more than 32 bits.
    """
    layers = []
    kinds = ((np.uint16, np.int8, np.uint16), (np.int8, np.int8, np.int16), (np.uint8, np.uint8, np.uint16),
             (np.int16, np.int16, np.int16))  # fmt: skip
    sizes = ((2, 3, 4), (6, 1, 1), (4, 2, 2), (5, 1, 3), (2, 10, 2), (3, 1, 1), (3, 4, 1), (2, 9, 5))
    for turn, (groups, ins, outs) in enumerate(sizes):
        x_kind, w_kind, to = kinds[turn % 4]
        x = draw.tensor(x_kind, 1 + turn % 2, 6, 7, groups * ins)
        w = draw.tensor(w_kind, groups * outs, *((3, 3), (1, 1), (2, 3))[turn % 3], ins)
        zero = {np.uint16: 32760, np.int8: -7, np.uint8: 130}.get(x_kind, 0)
        node = Convolution(
            group=groups,
            x_zero_point=zero,
            w_zero_point=130 if w_kind is np.uint8 else 0,
            pads=(0, 1, 1, 0) if turn % 2 else (0, 0, 0, 0),
            strides=(1, 1 + turn % 2),
        )
        most = int(np.iinfo(x_kind).max) * int(np.iinfo(w_kind).max) // 2
        rule = "wide" if w_kind is np.int16 else "single"
        steps = requantised(draw, w[0].size, most, groups * outs, to, turn, rule) if turn != 4 else ()
        layers.append(
            Layer(
                f"groups of types {turn} {x.dtype}{list(x.shape)} * {w.dtype}{list(w.shape)}",
                x,
                (Step(node, (w,)), *steps),
            )
        )
    x, w = draw.tensor(np.int16, 1, 4, 5, 122), draw.tensor(np.int8, 4, 3, 3, 61)
    long = requantised(draw, 549, 1 << 21, 4, np.int16, 0, "wide")
    layers.append(Layer("groups, long sums", x, (Step(Convolution(group=2), (w,)), *long)))
    return layers


def groups(draw: Draw) -> list[Layer]:
    """Groups of 1 to 6 and more channels and outputs, one by one or together; tails, one pixel left."""
    layers = []
    table = Step(
        Lookup(Table(tuple(int(v) for v in np.arange(-128, 128) ** 2 // 100 - 90), DType.INT8, -128))
    )
    kernels = ((3, 3), (1, 1), (2, 5), (1, 7), (3, 1))
    windows: tuple[dict[str, Any], ...] = (
        {"pads": (1, 1, 1, 1)}, {"strides": (2, 1)}, {"dilations": (2, 1), "pads": (2, 0, 1, 0)},
        {"strides": (1, 3), "pads": (1, 2, 0, 1)}, {"dilations": (1, 2), "pads": (0, 3, 0, 5)}, {},
    )  # fmt: skip
    sizes = ((8, 1, 2), (4, 2, 2), (3, 3, 5), (8, 4, 4), (2, 5, 3), (5, 6, 1), (2, 16, 8), (3, 1, 8),
             (6, 2, 1), (4, 7, 7), (2, 40, 6), (16, 2, 2), (5, 1, 3), (9, 1, 2), (3, 1, 2), (7, 1, 3),
             )  # fmt: skip
    for turn, (groups, ins, outs) in enumerate(sizes):
        to = (np.int16, np.int8)[turn % 3 == 1]
        x = draw.tensor(np.int16, 1 + turn % 2, 7, 9, groups * ins)
        w = draw.tensor(np.int8, groups * outs, *kernels[turn % 5], ins)
        node = Convolution(group=groups, **windows[turn % 6])
        rule = ("wide", "double", "single")[turn % 3]
        steps = requantised(draw, w[0].size, 1 << 21, groups * outs, to, turn, rule)
        more = (table,) if to is np.int8 else ()
        layers.append(
            Layer(f"groups {turn} {list(x.shape)} * {list(w.shape)}", x, (Step(node, (w,)), *steps, *more))
        )
    return layers


def fours_of_channels(draw: Draw) -> list[Layer]:
    """Layers that are worth a kernel of two rows by four channels: rows that its loop is entered in the midst
    for, one row left, patches; the largest sums."""
    layers = []
    sizes = ((64, 8, (5, 5), np.int16, "wide"), (10, 8, (13, 12), np.int8, "single"),
             (46, 12, (1, 21), np.uint16, "double"))  # fmt: skip
    for turn, (ins, outs, size, to, rule) in enumerate(sizes):
        x, w = draw.tensor(np.int16, 1, *size, ins), draw.tensor(np.int8, outs, 1, 1, ins)
        steps = requantised(draw, ins, 1 << 21, outs, to, turn, rule)
        name = f"fours {turn} {list(x.shape)} to {outs}"
        layers.append(Layer(name, x, (Step(Convolution(), (w,)), *steps)))
    x, w = draw.tensor(np.int8, 1, 6, 7, 4), draw.tensor(np.int8, 12, 3, 3, 4)
    node = Convolution(pads=(1, 1, 1, 1), x_zero_point=-5)
    steps = requantised(draw, 36, 1 << 13, 12, np.int16, 0, "single")
    layers.append(Layer("fours of patches", x, (Step(node, (w,)), *steps)))
    most = np.full((1, 1, 7, 510), -32768, np.int16), np.full((4, 1, 1, 510), -128, np.int8)
    layers.append(Layer("fours, largest sums", most[0], (Step(Convolution(), (most[1],)),)))
    return layers


def fours_of_parts() -> list[Layer]:
    """Sums of more than 32 bits: one part and four taps, whole parts, rows too far apart for two at a
    time; patches, two images, one row left; the largest sums of both signs.
    """
    draw, layers = Draw(44), []
    sizes = ((1, 512, 8, (1, 5), np.int16), (2, 1016, 4, (1, 3), np.int8), (2, 2050, 4, (1, 1), np.uint16),
             (1, 2044, 4, (3, 1), np.int16), (1, 5000, 4, (1, 1), np.int16))  # fmt: skip
    for turn, (images, ins, outs, size, to) in enumerate(sizes):
        x, w = draw.tensor(np.int16, images, *size, ins), draw.tensor(np.int8, outs, 1, 1, ins)
        steps = requantised(draw, ins, 1 << 21, outs, to, turn, ("wide", "single", "double")[turn % 3])
        name = f"parts {turn} {list(x.shape)} to {outs}"
        layers.append(Layer(name, x, (Step(Convolution(), (w,)), *steps)))
    x, w = draw.tensor(np.int16, 2, 3, 3, 58), draw.tensor(np.int8, 4, 3, 3, 58)
    steps = requantised(draw, 522, 1 << 21, 4, np.int16, 0, "wide")
    layers.append(Layer("parts of patches", x, (Step(Convolution(pads=(1, 1, 1, 1)), (w,)), *steps)))
    for depth in (512, 2060):
        w = np.full((4, 1, 1, depth), -128, np.int8)
        w[1] = 127
        x = np.full((2, 1, 3, depth), -32768, np.int16)
        layers.append(Layer(f"parts, largest sums of {depth}", x, (Step(Convolution(), (w,)),)))
    return layers


def blocks_of_rows(draw: Draw) -> list[Layer]:
    """Rows that are read in a loop, ends of rows of all lengths, every type of results, tails, one pixel."""
    layers = []
    table = Step(
        Lookup(Table(tuple(int(v) for v in np.arange(-128, 128) ** 2 // 100 - 90), DType.INT8, -128))
    )
    sizes = ((96, 4, (1, 2)), (97, 5, (3, 1)), (200, 9, (2, 2)), (131, 3, (1, 1)), (108, 8, (3, 1)),
             (4, 6, (1, 3)), (9, 13, (1, 1)), (11, 2, (5, 1)))  # fmt: skip
    for turn, (ins, outs, size) in enumerate(sizes):
        to = (np.int16, np.int8, np.uint16, np.uint8)[turn % 4]
        x, w = draw.tensor(np.int16, 1, *size, ins), draw.tensor(np.int8, outs, 1, 1, ins)
        steps = requantised(draw, ins, 1 << 21, outs, to, turn, ("wide", "double", "single")[turn % 3])
        more = (table,) if to is np.int8 else ()
        layers.append(
            Layer(
                f"rows {turn} {list(x.shape)} to {outs} {to.__name__}",
                x,
                (Step(Convolution(), (w,)), *steps, *more),
            )
        )
    windows = (
        ((5, 5), (2, 2, 2, 2), (1, 1)),
        ((2, 3), (0, 0, 0, 0), (1, 1)),
        ((3, 3), (1, 0, 1, 2), (2, 1)),
        ((1, 4), (0, 3, 0, 0), (1, 2)),
        ((7, 1), (3, 0, 3, 0), (1, 1)),
        ((3, 3), (2, 2, 2, 2), (1, 1)),
    )
    for turn, (kernel, pads, strides) in enumerate(windows):
        to, channels = (np.int16, np.int8, np.uint16, np.uint8)[turn % 4], (4, 9, 5, 16, 3, 1)[turn]
        x, w = draw.tensor(np.int16, 2, 8, 7, channels), draw.tensor(np.int8, channels, *kernel, 1)
        rule = ("double", "single", "wide")[turn % 3]
        steps = requantised(draw, kernel[0] * kernel[1], 1 << 21, channels, to, turn + 1, rule)
        node = Convolution(group=channels, pads=pads, strides=strides, dilations=(1 + turn // 5,) * 2)
        layers.append(
            Layer(
                f"depthwise rows {turn} {list(w.shape)} {to.__name__} {rule}",
                x,
                (Step(node, (w,)), *steps, *((table,) if to is np.int8 else ())),
            )
        )
    for rows, ins, outs in ((1, 1030, 6), (3, 700, 7)):  # sums of more than 32 bits, of several parts
        x, w = draw.tensor(np.int16, 1, rows, 1, ins), draw.tensor(np.int8, outs, 1, 1, ins)
        steps = requantised(draw, ins, 1 << 21, outs, np.int16, rows, "wide")
        layers.append(Layer(f"long rows {rows} x {ins} to {outs}", x, (Step(Convolution(), (w,)), *steps)))
    for rule, size in (("wide", (6, 5)), ("double", (1, 1))):  # two taps are left behind fours
        outs = 7 if size[0] > 1 else 210
        x, w = draw.tensor(np.int16, 1, *size, 10), draw.tensor(np.int8, outs, 1, 1, 10)
        steps = requantised(draw, 10, 1 << 21, outs, np.int16, 1, rule)
        layers.append(Layer(f"two left {rule} {size}", x, (Step(Convolution(), (w,)), *steps)))
    for turn, (ins, outs, size) in enumerate(((97, 5, (3, 2)), (131, 9, (3, 1)), (56, 6, (3, 3)))):
        to = (np.uint16, np.int8, np.uint8)[turn]
        x, w = draw.tensor(np.int16, 1, *size, ins), draw.tensor(np.int8, outs, 1, 1, ins)
        steps = requantised(draw, ins, 1 << 21, outs, to, turn + 1, ("double", "single", "wide")[turn])
        layers.append(
            Layer(
                f"pairs {turn} {list(size)} {ins} to {outs} {to.__name__}",
                x,
                (Step(Convolution(), (w,)), *steps, *((table,) if to is np.int8 else ())),
            )
        )
    return layers


def factors_and_ends(draw: Draw) -> list[Layer]:
    """Factors of 1 and more, for which sums are shifted to the left by several bits; zero points beyond 30
    bits when they are shifted; results of 16 bits with the ends of other types; as many taps of a channel as
    32 bits hold, and one more; weights of 16 bits in depthwise layers.
    """
    layers = []

    def add(name: str, x: np.ndarray, w: np.ndarray, *after: Step) -> None:
        node = Convolution(group=x.shape[-1] if w.shape[-1] == 1 else 1)
        layers.append(Layer(f"{name} {list(x.shape)} * {list(w.shape)}", x, (Step(node, (w,)), *after)))

    def scaled(rule: str, shift: int, zero: int = 0, ends: tuple[int, int] = (-32768, 32767)) -> Step:
        bits = 15 if rule == "wide" else 31
        m = draw.rng.integers(1 << bits - 1, 1 << bits, 1).astype(np.int32)
        to = DType.UINT16 if ends[1] > 32767 or ends == (0, 32767) else DType.INT16
        return Step(Requantise(zero, *ends, to, rule), (m, np.asarray([shift], np.int32)))

    for rule in ("single", "wide", "even", "double"):
        for shift in (0, 1, 4):
            x = draw.tensor(np.int16, 1, 5, 6, 8) // 128
            add(f"factor {rule} {shift}", x, draw.tensor(np.int8, 6, 1, 1, 8) // 16, scaled(rule, shift))
            add(f"factor {rule} {shift}", x, draw.tensor(np.int8, 8, 3, 2, 1) // 16, scaled(rule, shift))
    for shift, zero in ((-15, 32767), (-16, -32768), (-14, 16384)):
        x = draw.tensor(np.int16, 1, 5, 6, 8)
        add(f"zero point {shift}", x, draw.tensor(np.int8, 5, 1, 1, 8), scaled("single", shift, zero))
        add(f"zero point {shift}", x, draw.tensor(np.int8, 8, 2, 3, 1), scaled("wide", shift, zero))
    for ends in ((-128, 127), (0, 255), (0, 32767)):
        for kernel in ((3, 3), (1, 5)):
            x = draw.tensor(np.int16, 1, 6, 9, 3 + sum(kernel))
            add(
                f"ends {ends}", x, draw.tensor(np.int8, x.shape[-1], *kernel, 1), scaled("wide", -13, 3, ends)
            )
    for taps in (511, 512):
        x = np.full((1, 1, taps + 17, 2), -32768, np.int16)
        add("taps", x, np.full((2, 1, taps, 1), -128, np.int8))
    add("wide", draw.tensor(np.int16, 1, 6, 7, 8), draw.tensor(np.int16, 8, 3, 3, 1), scaled("wide", -16))
    return layers
