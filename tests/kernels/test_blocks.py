"""What is chosen by estimated costs for typical work, and the estimates, against recorded ones.

On a board instructions notice another choice where a layer is near enough to the line between two; on a host
only time would, which no test measures. So every change of a cost or of a search is seen here: python -m
pytest tests/kernels/test_blocks.py --update-golden accepts it, and the commit says what was measured.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

from aot_model.cycles.rules import memory_of
from aot_model.kernels.base import ConvShape, Tail
from aot_model.kernels.float32.axis import conv_axis
from aot_model.kernels.float32.block import Work, choose, cost
from aot_model.kernels.float32.dialects import APART, DIALECTS
from aot_model.kernels.float32.repack import Weights
from aot_model.kernels.float32.tiles import TiledConvolution
from aot_model.kernels.int8 import conv_mve, depthwise_dsp, depthwise_mve, requantise, winograd
from aot_model.kernels.int8.host_loops import view
from aot_model.kernels.int8.mve import BYTES
from aot_model.kernels.int8.patch_mve import groups_of
from aot_model.kernels.int8.spec import QuantSpec
from aot_model.kernels.int16 import depthwise_lanes_mve, dot_mve
from aot_model.kernels.int16 import depthwise_mve as int16_depthwise_mve
from aot_model.kernels.reading import UNKNOWN, Reading

FILE = Path(__file__).with_name("blocks.json")
RECTANGLES = {
    "one row of 64": {(1, 1, 64): 1},
    "49 pixels of 40": {(49, 1, 40): 1},
    "8 rows of 12 of 3 x 3 x 16": {(10, 3, 48): 8, (1, 3, 32): 16, (10, 2, 48): 2},
    "5 volumes of 3 pixels of 2 x 7": {(3, 2, 7): 5},
}
CHANNELS = (1, 3, 8, 20, 64, 100)
WEIGHTS = (100, 6144, 6145)
"""The nearest cache of a host holds 6,144."""


def blocks(name: str) -> dict[str, str]:
    """Pixels x vectors of channels by what is to be done, for a dialect of vectors."""
    found, dialect = {}, DIALECTS[name]
    for (label, rectangles), channels, weights in product(RECTANGLES.items(), CHANNELS, WEIGHTS):
        costs = dialect.costs
        if costs.near is None and weights != WEIGHTS[0]:
            continue
        work = Work(rectangles, channels, weights)
        block = choose(work, dialect, costs.unroll)
        cycles = cost(work, block, dialect, costs.unroll)
        found[f"{label}, {channels} channels, {weights} weights"] = (
            f"{block.pixels} x {block.vectors}, {cycles:.1f} cycles"
        )
    return found


def square(
    size: int, ins: int, outs: int, kernel: int = 1, stride: int = 1, groups: int = 1, width: int = 0
) -> ConvShape:
    """A convolution with a border that keeps the size, if the stride is 1; of images [size, width or
    size].
    """
    width, pad = width or size, kernel // 2
    out = tuple((n + 2 * pad - kernel) // stride + 1 for n in (size, width))
    return ConvShape(
        1,
        size,
        width,
        ins,
        *out,
        outs,
        kernel,
        kernel,
        stride,
        stride,
        pad_top=pad,
        pad_left=pad,
        groups=groups,
    )


TILED = (
    square(1, 64, 12),
    square(8, 16, 24),
    square(7, 20, 45),
    square(8, 3, 8, 3),
    square(9, 8, 17, 3, 2),
    square(12, 4, 6, 5),
    square(10, 24, 64),
    square(6, 16, 16, 3, groups=2),
    square(125, 64, 64, width=1),
)


def tilings() -> dict[str, str]:
    """Blocks of sums that are functions on a Cortex-M4, and the weights that are copied to RAM, by where
    constants are and how much RAM there is."""
    found = {}
    for s, (memory, room) in product(
        TILED,
        (
            ("", 0),
            ("0ws", 1 << 16),
            ("l4-art", 0),
            ("l4-art", 3000),
            ("l4-art", 1 << 16),
            ("f4-art", 1 << 16),
        ),
    ):
        axes = (
            conv_axis(s.in_h, s.out_h, s.kernel_h, s.stride_h, s.dilation_h, s.pad_top),
            conv_axis(s.in_w, s.out_w, s.kernel_w, s.stride_w, s.dilation_w, s.pad_left),
        )
        weights = np.ones((s.out_c, s.kernel_h, s.kernel_w, s.in_c // s.groups), np.float32)
        reading = Reading(memory_of(memory), room=room) if memory else UNKNOWN
        tiled = TiledConvolution(
            s, None, *axes, Weights(weights, None), cast("Tail", None), APART, True, reading
        )
        t = tiled.tiling()
        found[f"{_label(s)}, {memory or 'unknown memory'}, {room} bytes"] = (
            f"{tiled.order if tiled.fits() else 'written out'}: {t.pixels} x {t.channels}, {t.few} below "
            f"{t.enough}, {tiled._of_rectangles(t):.2f} cycles, {tiled.copied(t)} copied, "
            f"{tiled._saving(tiled._ends(t)[-1], t):.2f} saved, from {tiled.wish(t)} on"
        )
    return found


def _label(s: ConvShape) -> str:
    kernel = f"{s.kernel_h} x {s.kernel_w} by {s.stride_h}" + (f" in {s.groups}" if s.groups > 1 else "")
    return f"{s.in_h} x {s.in_w} x {s.in_c} to {s.out_c}, {kernel}"


def helium() -> dict[str, str]:
    """Cycles of the kernels for depthwise convolutions, the fastest first; groups that are taken together."""
    found = {}
    quant = QuantSpec(3, np.full(1, 1 << 30, np.int32), np.full(1, -7, np.int32), -2, -128, 127)
    for size, channels, times, kernel, stride in product(
        (1, 4, 9, 20), (1, 8, 24), (1, 2), (2, 3, 5), (1, 2)
    ):
        s = square(size, channels, channels * times, kernel, stride, channels)
        names = [
            (f"{cycles:.0f}", getattr(write, "func", write).__name__)
            for cycles, write in depthwise_mve.writers(s, quant, False)
        ]
        found[f"depthwise {_label(s)}"] = ", ".join(f"{cycles} {name}" for cycles, name in names)
    for ins, outs, groups, kernel in product((8, 24), (8, 48), (2, 4, 8), (1, 3)):
        s = square(6, ins, outs, kernel, groups=groups)
        for lanes in (dot_mve.LANES, BYTES.lanes):
            g = groups_of(s, lanes)
            found[f"{_label(s)}, {lanes} lanes"] = f"{g.together} together, {g.cost(lanes)}"
    return found


def winograds() -> dict[str, str]:
    found = {}
    for size, ins, outs, room, tail in product(
        (6, 13, 24), (4, 6, 16, 40), (2, 8, 20), (4000, 1 << 17), (False, True)
    ):
        s = square(size, ins, outs, 3)
        found[f"{_label(s)}, {room} bytes, {'a' if tail else 'no'} tail"] = (
            f"{winograd.choose(s, tail, room)}, not {winograd.plain_cycles(s):.1f}"
        )
    return found


def tiles() -> dict[str, str]:
    """Of integer convolutions on a host: the columns, rows and bytes of a tile."""
    found = {}
    for size, ins, kernel, stride, pixels in product(
        (1, 7, 24, 96), (1, 3, 16, 64), (1, 3, 5), (1, 2), (4, 6, 12)
    ):
        s = square(size, ins, 16, kernel, stride)
        v = view(s, pixels)
        found[f"{_label(s)}, {pixels} pixels"] = f"{v.batch} x {v.out_h} x {v.out_w}, {v.rows(2)} rows"
    return found


def depthwise() -> dict[str, str]:
    """Of a Cortex-M4: what is held in registers, and instructions of the function; with one factor for all
    channels, whose results are clamped or not, and with one for each."""
    found, rng = {}, np.random.default_rng(9)
    kernels = ((2, 2), (3, 3), (4, 1), (1, 5), (5, 5), (1, 1))
    for size, kernel, stride, factors, end in product((4, 9), kernels, (1, 2), (1, 3), (127, 80)):
        out = tuple((size + 4 - k) // stride + 1 for k in kernel)
        s = ConvShape(1, size + 4, size + 4, 3, *out, 3, *kernel, stride, stride, groups=3)
        weights = rng.integers(-128, 128, (*kernel, 3)).astype(np.int8)
        m, shift = rng.integers(1 << 30, 1 << 31, factors), rng.integers(-9, -5, factors)
        quant = QuantSpec(3, m.astype(np.int32), shift.astype(np.int32), -2, -128, end)
        code = depthwise_dsp.depthwise(s, weights, None, quant)
        lines = sum(len(re.findall(r'^ +"[^"]*\\n', h, re.MULTILINE)) for h in code.helpers)
        found[f"{_label(s)} of {kernel[1]}, {factors} factors up to {end}"] = f"{lines} lines, {code.note}"
    return found


def one_channel() -> dict[str, str]:
    """Convolutions of one channel: as depthwise ones on a Cortex-M4 for which outputs; cycles on Helium."""
    found = {}
    for rows, columns, outs in product((1, 2, 3, 4, 5, 7), (1, 3, 4, 5, 8, 10), (1, 9, 40)):
        shapes = [
            ConvShape(1, 20, 20, 1, 21 - rows, 21 - columns, n, rows, columns) for n in range(outs, outs + 16)
        ]
        taken = "".join("-+"[depthwise_dsp.takes_one_channel(s)] for s in shapes)
        found[f"{rows} x {columns}, {outs} to {outs + 15} outputs"] = (
            f"{taken}, {conv_mve._cycles_of_one_channel(shapes[0])}"
        )
    return found


def int16_depthwise() -> dict[str, str]:
    """Cycles of the kernels of 16 bits for depthwise convolutions on Helium."""
    found = {}
    for size, width, channels, kernel, stride in product((3, 8), (0, 17), (2, 8, 22), (1, 3, 5), (1, 2)):
        s = square(size, channels, channels, kernel, stride, channels, width)
        both = depthwise_lanes_mve.cycles(s), int16_depthwise_mve.cycles(s)
        found[_label(s) + f", {width} columns"] = f"{both[0]:.0f} in lanes, {both[1]:.0f} by rows"
    return found


def forms() -> dict[str, str]:
    """Of requantisations, by how large accumulators are: just below powers of two, and those; rounded high
    words and those cut off.
    """
    found = {}
    multipliers = {"no power": [1518500250], "a power": [1 << 30], "both": [1518500250, 1 << 30]}
    for rule, shift, rounded, (label, factors) in product(
        ("double", "single", "even"), (-25, -24, -17, -9, -8, -1, 0, 1), (True, False), multipliers.items()
    ):
        m, channels = np.array(factors, np.int32), len(factors)
        s = np.array([shift, shift - 1][:channels], np.int32)
        quant = QuantSpec(0, m, s, 3, -128, 127, rounding=rule)  # type: ignore[arg-type]
        powers = product((8, 15, 20, 24, 28, 29, 30, 31), (1, 0))
        sizes = [np.full(channels, (1 << power) - d) for power, d in powers]
        left = np.full(channels, 3)  # accumulators that come shifted
        plans = [requantise.plan(quant, -v, v, rounded=rounded) for v in sizes]
        plans += [requantise.plan(quant, -v, v, left, rounded) for v in sizes[4:12]]
        said = ", ".join(f"{p.form} {p.shift[0]}" for p in plans)
        found[f"{rule} 2^{shift}, {'rounded' if rounded else 'cut off'}, {label}"] = said
    return found


CHOICES: dict[str, Callable[[], dict[str, str]]] = {
    **{name: partial(blocks, name) for name in DIALECTS},
    "functions of Cortex-M4": tilings,
    "depthwise on Cortex-M4": depthwise,
    "Helium": helium,
    "one channel": one_channel,
    "depthwise of 16 bits on Helium": int16_depthwise,
    "requantisation": forms,
    "Winograd": winograds,
    "tiles of hosts": tiles,
}


@pytest.mark.parametrize("name", CHOICES)
def test_choices_are_those_recorded(name: str, request: pytest.FixtureRequest) -> None:
    now = CHOICES[name]()
    recorded: dict[str, Any] = json.loads(FILE.read_text()) if FILE.is_file() else {}
    if request.config.getoption("--update-golden"):
        FILE.write_text(json.dumps({**recorded, name: now}, indent=0) + "\n")
        return
    other = {
        work: (choice, recorded[name].get(work))
        for work, choice in now.items()
        if choice != recorded[name].get(work)
    }
    assert not other, f"other choices than recorded (now, before): {other}"
