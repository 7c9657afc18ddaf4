"""Matrix-vector products, int8, Helium: eight (or four) outputs at once over one read of the input."""

from __future__ import annotations

import numpy as np

from ...ir.admissible import ANYTHING
from ..base import ConvShape, KernelCode, Packed, Scratch, Tail
from .conv_mve import INCLUDES, conv
from .conv_mve import applicable as conv_applicable
from .dot_mve import LAYOUT, chunk_widths, dot, pack
from .patch_mve import copy_statements
from .requantise_mve import requantiser
from .row_tail import tail_helpers, tail_loop
from .spec import QuantSpec


def applicable(shape: ConvShape, spec: QuantSpec) -> bool:
    """Whether `fully_connected` takes a layer."""
    return conv_applicable(shape, spec) and shape.kernel_h == shape.kernel_w == 1


def fully_connected(shape: ConvShape, weights: np.ndarray, bias: np.ndarray | None, spec: QuantSpec,
                    tail: Tail | None = None) -> KernelCode:  # fmt: skip
    """y[m, o] = sum over i of x[m, i] * w[o, i], as a 1x1 convolution over the M pixels of `shape`.

    weights: int8 [out_c, in_c]. bias, tail: as for `conv`, which computes it when there is more than one
    pixel.

    Raises:
        ValueError: as `conv`.
    """
    if not applicable(shape, spec):
        raise ValueError(f"not for the Helium matrix product: {shape}, {spec}")
    matrix = np.asarray(weights, np.int8).reshape(shape.out_c, shape.in_c)
    if shape.batch * shape.out_h * shape.out_w != 1:
        return conv(shape, matrix.reshape(shape.out_c, 1, 1, shape.in_c), bias, spec, tail)
    rq = requantiser(spec, matrix, bias)
    block = 4 if 1 <= shape.out_c % 8 <= 4 else 8
    kernel = dot(shape.in_c, shape.out_c, rq, 1, block)
    body, scratch, slack, x = "", [], None, "x"
    if sum(chunk_widths(shape.in_c)) != shape.in_c:  # would read beyond the input
        body, slack, x = copy_statements("patch", "x", shape.in_c), shape.in_c, "patch"
        scratch.append(Scratch("patch", kernel.depth))
    y = "y"
    if tail is not None:
        y = "row"
        scratch.append(Scratch("row", shape.out_c))
    body += f"{kernel.name}({x}, w, {shape.out_c}, {y});\n"
    if tail is not None:
        body += tail_loop(shape.out_c, "row", ("0", "0", "0"), tail)
    return KernelCode(
        body=body,
        constants=(Packed("w", pack(matrix, rq, block), admissible=ANYTHING, layout=LAYOUT),),
        scratch=tuple(scratch),
        includes=INCLUDES,
        helpers=(kernel.text, *tail_helpers(tail)),
        slack=slack,
        note=kernel.note,
    )
