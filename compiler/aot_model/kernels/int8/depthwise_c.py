"""Depthwise convolution in plain C, for every core and weight zero point: one channel's plane at a time
(plane.py).

Small kernels are written out tap by tap with the channel's weights in variables; others are two loops over
the taps.
"""

from __future__ import annotations

import numpy as np

from aot_model.c.text import loop_of
from aot_model.ir.admissible import ANYTHING
from aot_model.ir.nibbles import packed
from aot_model.kernels.base import ConvShape, KernelCode, Packed, Tail
from aot_model.kernels.int8.dsp import HEADER
from aot_model.kernels.int8.finish import Rows, less
from aot_model.kernels.int8.plane import PLANE_BYTES, PlaneLoops, plane_of
from aot_model.kernels.int8.requantise import fold_zero_point
from aot_model.kernels.int8.spec import Bias, QuantSpec, Weights

WRITTEN_OUT, NIBBLES_WRITTEN_OUT = 16, 25
"""Kernels of up to so many taps are written out; of 4 bits, which are taken apart once for a channel then."""


def applicable(shape: ConvShape, quant: QuantSpec) -> bool:
    """Whether this kernel does the layer: any depthwise one."""
    return shape.groups == shape.in_c


def depthwise(
    shape: ConvShape,
    weights: Weights,
    bias: Bias,
    quant: QuantSpec,
    tail: Tail | None = None,
    plane_bytes: int = PLANE_BYTES,
    nibbles: bool = False,
) -> KernelCode:
    """Depthwise convolution; weights [kernel_h, kernel_w, in_c * multiplier], groups = in_c. nibbles: weights
    of 4 bits stay two in a byte, those of a channel in whole bytes.
    """
    oc = shape.out_c
    w, b = fold_zero_point(weights.reshape(-1, oc).T, bias, quant)
    rows = Rows.of(weights.dtype, w, b, quant, short=nibbles)
    plane = plane_of(shape, plane_bytes, once=tail is not None)
    u, v = plane.u, plane.v
    taps = u.kernel * v.kernel
    out = f"{quant.out_dtype}_t"
    loops = PlaneLoops(shape, quant, plane, tail, tail is not None, (out, 1 if quant.rounding else 4))
    y_u, y_v = loops.steps
    zero = less(quant.weight_zero_point)
    sum_type, sum_cast = rows.sums()
    stored, own = np.ascontiguousarray(plane.grid(weights)).reshape(oc, taps), f"{weights.dtype.name}_t"
    each, kind, first = taps, own, "taps"
    above = 8 if weights.dtype.kind == "i" else 0  # of a nibble, that it has no sign
    if nibbles:
        each, kind, first = -(-taps // 2), "uint8_t", "own"
        stored = packed(np.pad(stored.astype(np.int16) + above, ((0, 0), (0, taps % 2))))

    def nibble(k: str, high: bool) -> str:
        """Of byte k, as a weight."""
        return f"(int32_t)(taps[{k}] {'>> 4' if high else '& 15'}){less(above)}"

    written_out = taps <= (NIBBLES_WRITTEN_OUT if nibbles else WRITTEN_OUT)
    at = [(i * u.dilation * plane.length) + j * v.dilation for i in range(u.kernel) for j in range(v.kernel)]
    if written_out:
        known = [nibble(str(k // 2), k % 2 == 1) if nibbles else f"taps[{k}]" for k in range(taps)]
        declare = [f"const int32_t w{k} = {tap}{zero};" for k, tap in enumerate(known)]
        accumulate = [f"sum += {rows.as_sum(f'from[{offset}] * w{k}')};" for k, offset in enumerate(at)]
    else:
        both = [f"own[2 * k{' + 1' * high}] = ({own})({nibble('k', high)});" for high in (False, True)]
        declare = [f"{own} own[{2 * each}];", *loop_of("k", each, *both)] if nibbles else []
        add = f"sum += {rows.as_sum(f'*at * (*tap++{zero})' if zero else '*at * *tap++')};"
        line = loop_of("t", v.kernel, add, more=f"at += {v.dilation}")
        at_line = f"const int16_t *at = from + k * {u.dilation * plane.length};"
        accumulate = [f"const {own} *tap = {first};", *loop_of("k", u.kernel, at_line, *line)]
    output = [f"{sum_type} sum = {sum_cast}constants[0];", *accumulate, f"int32_t v = {rows.as_int('sum')};"]
    output += [*rows.finish("constants + 1"), f"*to = ({out})v;"]
    lines = [f"const int16_t *from = plane + u * {u.stride * plane.length};"]
    lines.append(f"{out} *to = {loops.target} + u * {y_u};")
    lines += loop_of("j", v.size_out, *output, more=f"from += {v.stride}, to += {y_v}")
    compute = [
        f"const {kind} *taps = weights + {each} * {loops.channel};",
        f"const int32_t *constants = requantisation + {rows.width} * {loops.channel};",
        *declare,
        *loop_of("u", plane.lines_out, *lines),
    ]
    return KernelCode(
        body=loops.text(compute),
        constants=(Packed("weights", stored.reshape(-1), admissible=ANYTHING), rows.packed()),
        scratch=tuple(loops.scratch()),
        includes=frozenset({HEADER}),
        helpers=rows.helpers(),
        slack=loops.slack,
        slack_step=shape.in_c,
        note=f"one channel at a time in a plane of {plane.lines} x {plane.length} int16; "
        f"requantisation: {rows.rq.form}{'; weights of 4 bits where they lie' if nibbles else ''}",
    )
