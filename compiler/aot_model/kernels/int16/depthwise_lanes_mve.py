"""Depthwise convolution of int16, Helium: eight channels in the lanes, one output after the other.

As kernels/int8/depthwise_lanes_mve.py, but what VMULLB and VMULLT multiply has 32 bits: 2 loads, 2 products
and 2 sums for 8 taps.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from aot_model.c.assembly import constant
from aot_model.ir.admissible import ANYTHING
from aot_model.kernels.base import ConvShape, KernelCode, Packed, Tail
from aot_model.kernels.choice import fastest_first
from aot_model.kernels.int8.channel_lanes_mve import LANES, Walk, takes
from aot_model.kernels.int16 import depthwise_mve
from aot_model.kernels.int16.depthwise_mve import layer_code
from aot_model.kernels.int16.finish_mve import Ending


def applicable(shape: ConvShape, weights: np.ndarray) -> bool:
    """Whether `depthwise` takes a layer: weights of int8. So few taps have sums of 32 bits."""
    return weights.dtype == np.int8 and takes(shape)


def cycles(shape: ConvShape) -> float:
    """As of `Walk`."""
    walk = Walk.of(shape.along_row, 2)
    return walk.cycles(6 * walk.taps)


def writers(
    shape: ConvShape, weights: np.ndarray, ending: Ending
) -> list[tuple[float, Callable[[ConvShape, np.ndarray, Ending, Tail | None], KernelCode]]]:
    """The kernels that take a layer, with their cycles, the fastest first."""
    gathered = depthwise_mve.applicable(shape, weights, ending)
    return fastest_first(
        (gathered, partial(depthwise_mve.cycles, shape), depthwise_mve.depthwise),
        (applicable(shape, weights), partial(cycles, shape), depthwise),
    )


def depthwise(shape: ConvShape, weights: np.ndarray, ending: Ending, tail: Tail | None) -> KernelCode:
    """weights: int8 [kernel_h, kernel_w, channel], one for each channel of x, which has zero point 0."""
    assert applicable(shape, weights), shape
    walk = Walk.of(shape.along_row, 2)
    s = walk.shape
    name, text = _row_kernel(walk, ending)
    constants = [Packed("w", walk.packed(weights.reshape(-1, s.out_c), ending.record), admissible=ANYTHING)]
    x, moves, table = walk.first, "", ""
    if walk.slots:
        constants.append(Packed("moves", walk.table()))
        table = f"const int32_t slot = oy * {s.stride_h} % {walk.slots};\n"
        x, moves = f"ring + slot * {walk.row // 2}", f"moves + slot * {s.kernel_h}, "
    return layer_code(walk, ending.finish.to, tail, (name, text), constants, table,
                      lambda to: f"{name}({x}, w, {moves}{to});\n",
                      f"{walk.taps} taps of 8 channels, {walk.slots} buffered rows")  # fmt: skip


def _row_kernel(walk: Walk, e: Ending) -> tuple[str, str]:
    """(name, text) of name(x, w[, moves], y): one row of outputs. r8 is the zero point."""
    f = e.finish
    lines = ["vldrw.32 q6, [r5], #16", "vldrw.32 q7, [r5], #16"]
    for k in range(walk.taps):
        x = ("q0", "q3")[k % 2]
        lines += [*walk.tap(k, "vldrh.u16", x), f"vldrb.s16 q1, [r5], #{LANES}",
                  f"vmullb.s16 q2, {x}, q1", f"vmullt.s16 q1, {x}, q1",
                  "vadd.i32 q6, q6, q2", "vadd.i32 q7, q7, q1"]  # fmt: skip
    for sums, multiplier, shift in (("q6", "q0", "q1"), ("q7", "q2", "q3")):
        lines.append(f"vldrw.32 {multiplier}, [r5], #16")
        lines += [] if f.uniform_shift else [f"vldrb.s32 {shift}, [r5], #4"]
        lines += e.lines(sums, multiplier, shift, "r8", multiplier)
    size = f.to.size
    lines += ["vmovnt.i32 q6, q7", f"vstr{ {1: 'b', 2: 'h'}[size] }.16 q6, [r3], #{LANES * size}"]
    begin = [*e.limits(), *(constant("r8", f.zero) if f.zero else [])]
    finish = "\n        ".join([
        "int32_t start, multiplier;",
        "memcpy(&start, record + c % 2 * 16 + 4 * lane, 4);",
        "memcpy(&multiplier, numbers + 4 * lane, 4);",
        *e.scalar("acc", "start", "multiplier", "numbers[16 + lane]"),
    ])  # fmt: skip
    put = f"(int{f.to.bits}_t){f'(uint{f.to.bits}_t)' if f.to.c_type.startswith('u') else ''}v"
    twin = walk.twin(0, len(e.record(np.arange(4))), "int16_t", "*weight", finish, put)
    return walk.kernel("int16_mve", "int16_t", e.pointer[:-2], walk.row_lines(begin, lines, size), twin)
