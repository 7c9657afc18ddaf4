"""Convolution of int16 with groups of any number of channels, Helium: as kernels/int8/conv_mve.py does it."""

from __future__ import annotations

import numpy as np

from aot_model.ir.admissible import ANYTHING
from aot_model.kernels.base import ConvShape, KernelCode, Packed, Scratch, Tail
from aot_model.kernels.int8.conv_mve import pairs_of_pixels
from aot_model.kernels.int8.patch_mve import groups_of, scatter
from aot_model.kernels.int8.requantise_mve import HEADER
from aot_model.kernels.int16 import block_mve, dot_mve
from aot_model.kernels.int16.dots import INT32
from aot_model.kernels.int16.finish_mve import Ending
from aot_model.kernels.overlap import by_pixels, residual


def applicable(shape: ConvShape, weights: np.ndarray, most: int, ending: Ending | None) -> bool:
    """Whether `conv` takes a layer: sums of 32 bits, signed results, places in a patch that have 16 bits.

    weights: [out_c, taps]. most: no product is larger.
    """
    if ending is None or weights.shape[1] * most > INT32:
        return False
    patch = 2 * shape.kernel_h * shape.kernel_w * shape.in_c
    return ending.finish.to.c_type + " *" == ending.pointer and patch < 1 << 16


def conv(shape: ConvShape, weights: np.ndarray, ending: Ending, tail: Tail | None, result: int) -> KernelCode:
    """weights: int8 or int16 [out_c, taps], of x with zero point 0. result: bytes of y's elements."""
    s, own = shape, ending.finish.to
    assert applicable(s, weights, 0, ending), s
    g = groups_of(s, dot_mve.LANES)
    kernel, text = dot_mve.dot(g.taps, g.outputs, 8 * weights.dtype.itemsize, 2, ending)
    matrices = g.matrices(weights.reshape(s.out_c, s.kernel_h, s.kernel_w, -1))
    streams = [dot_mve.pack(m, ending, k * g.outputs) for k, m in enumerate(matrices)]
    patch, places = scatter(g, 0, 2)
    depth = g.count * g.taps + g.count * g.taps % 2
    scratch = [Scratch("patch", 4 * depth, 4, "int16_t")]
    if tail is not None:
        scratch.append(Scratch("row", 2 * s.out_c * own.size, 4, own.c_type))
    fill = f"{patch.name}(patch + i * {depth}, image, places, oy, ox);\n"
    pixel = f"(n * {s.out_h} + oy) * {s.out_w} + ox"
    body = pairs_of_pixels(
        s, g, kernel, depth, len(streams[0]), fill, tail, ("int16_t", own.c_type), ("0", "0", pixel)
    )
    return KernelCode(
        body,
        (Packed("w", np.concatenate(streams), admissible=ANYTHING, layout=dot_mve.LAYOUT), places),
        tuple(scratch),
        frozenset({HEADER, block_mve.HEADER}),
        (*patch.helpers, text),
        by_pixels(s, 2, sizes=(2, result)),
        residual=residual(2, s, result),
        note=f"2 pixels, {g.count} x {g.outputs} channels, patch of {4 * depth} bytes",
    )
