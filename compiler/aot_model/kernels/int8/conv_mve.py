"""Convolution and matrix products, int8, Helium: two pixels at a time through the dot-product micro-kernel.

The taps of two pixels are copied next to each other (a patch, channels last: kernel_w * in_c bytes of a
kernel row are contiguous in the image), taps outside of the image as the zero point, so that the inner loop
knows no borders. Where weights have a zero point, what it makes of the sum of a pixel's taps lies behind
them. The copy costs 2 instructions per 16 bytes and pixel, against 14 per 16 bytes and 8 outputs
in the micro-kernel; it allows the output to overwrite pixels that were consumed. Of a layer with groups, the
taps lie apart by groups in the patch (patch_mve.py).
"""

from __future__ import annotations

import numpy as np

from aot_model.ir.admissible import ANYTHING
from aot_model.kernels.base import ConvShape, KernelCode, Packed, Scratch, Tail
from aot_model.kernels.int8 import depthwise_mve
from aot_model.kernels.int8.dot_mve import LAYOUT, chunk_widths, dot, pack
from aot_model.kernels.int8.mve import BYTES
from aot_model.kernels.int8.patch_mve import BLOCK, Groups, copy_statements, groups_of, patch_copier, scatter
from aot_model.kernels.int8.requantise_mve import HEADER, Ends, Requantiser, padding, requantiser, supports
from aot_model.kernels.int8.spec import Bias, QuantSpec, Weights
from aot_model.kernels.overlap import by_pixels, residual
from aot_model.kernels.row_tail import tail_helpers, tail_loop

INCLUDES = frozenset({HEADER})
LEAST_GAIN = 1.1
"""From which on another kernel is taken: both times are estimates."""


def applicable(shape: ConvShape, spec: QuantSpec) -> bool:
    """Whether `conv` takes a layer: sums of products that stay in int32; with groups, places in
    a patch that have 16 bits, and weights without a zero point.
    """
    depth = shape.kernel_h * shape.kernel_w * shape.in_c
    plain = shape.groups == 1 or not spec.weight_zero_point
    return plain and depth < (1 << 17 if shape.groups == 1 else 1 << 16) and supports(spec)


def conv(
    shape: ConvShape,
    weights: Weights,
    bias: Bias,
    spec: QuantSpec,
    tail: Tail | None = None,
    room: int | None = None,
    compact: bool = False,
) -> KernelCode:
    """2-D convolution, any kernel, stride, dilation and padding. That of one channel is a depthwise one of
    several outputs, where those kernels are faster.

    weights: int8 [out_c, kernel_h, kernel_w, in_c / groups]. bias: int32 [out_c]. tail: gets the requantised,
    clamped outputs instead of the store to y, one at a time. The slack holds for a tail too that stores one
    byte per element. room, compact: as of `depthwise`.

    Raises:
        ValueError: a layer that is not `applicable`.
    """
    if not applicable(shape, spec):
        raise ValueError(f"not for the Helium convolution: {shape}, {spec}")
    code = _dense(shape, weights, bias, spec, tail)
    if shape.in_c > 1 or shape.one_row:
        return code
    by_taps = np.asarray(weights, np.int8)[..., 0].transpose(1, 2, 0)
    for cycles, write in reversed(depthwise_mve.writers(shape, spec, compact)):
        if LEAST_GAIN * cycles <= _cycles_of_one_channel(shape):
            code = depthwise_mve.with_room(write(shape, by_taps, bias, spec, tail), code, room)
    return code


def _cycles_of_one_channel(s: ConvShape) -> float:
    """Of a Cortex-M55, about: taps of a pixel are copied row by row, which takes longer than their
    products.
    """
    copied = max(35, 15 * s.kernel_h)
    blocks, chunks = -(-s.out_c // BLOCK), len(chunk_widths(s.kernel_h * s.kernel_w))
    return s.batch * s.out_h * s.out_w * (copied + blocks * (23 + 8 * chunks))


def _dense(shape: ConvShape, weights: Weights, bias: Bias, spec: QuantSpec, tail: Tail | None) -> KernelCode:
    weights, ends = np.asarray(weights, np.int8), Ends.of(spec)
    fill, spec = padding(spec), ends.signed(spec)
    rq = requantiser(spec, weights.reshape(shape.out_c, -1), bias)
    if shape.one_row:
        return _row(shape, weights.reshape(shape.out_c, -1), rq, spec, ends, tail)
    g = groups_of(shape, BYTES.lanes)
    zero = spec.weight_zero_point
    kernel = dot(g.taps, g.outputs, rq, 2, 4, bool(zero))
    streams = [pack(m, rq, 4, k * g.outputs) for k, m in enumerate(g.matrices(weights))]
    constants = [Packed("w", np.concatenate(streams), admissible=ANYTHING, layout=LAYOUT)]
    if shape.pointwise and tail is None and g.count == 1 and not ends.unsigned_x and not zero:
        pixels = shape.batch * shape.out_h * shape.out_w
        sizes = f"{pixels}, {g.taps}, {kernel.depth}, {shape.out_c}"
        return KernelCode(
            body=f"aot_mve_pointwise({kernel.name}, {sizes}, patch, x, w, {ends.y});\n",
            constants=tuple(constants),
            scratch=(Scratch("patch", 2 * kernel.depth),),
            includes=INCLUDES,
            helpers=(kernel.text,),
            slack=by_pixels(shape, 2, through_images=True),
            note=f"{kernel.note}, patch of {2 * kernel.depth} bytes",
        )
    # what is read behind a pixel meets weights of 0
    depth = (g.count - 1) * g.taps + kernel.depth + 4 * bool(zero)
    if g.count == 1 or shape.kernel_h * shape.kernel_w == 1:
        patch = patch_copier(shape, fill)
        copy = f"{patch.name}(patch + i * {depth}, image, oy, ox);\n"
    else:
        patch, places = scatter(g, fill, 1)
        constants.append(places)
        copy = f"{patch.name}(patch + i * {depth}, image, places, oy, ox);\n"
    copy += ends.turned(f"patch + i * {depth}", g.count * g.taps)
    copy += _zero_point(f"patch + i * {depth}", g.taps, kernel.depth, spec)
    scratch = [Scratch("patch", 2 * depth + patch.overrun)]
    if tail is not None:
        scratch.append(ends.results(2 * shape.out_c))
    return KernelCode(
        body=pairs_of_pixels(
            shape, g, kernel.name, depth, len(streams[0]), copy, tail, names=(ends.x, ends.y, ends.row)
        ),
        constants=tuple(constants),
        scratch=tuple(scratch),
        includes=INCLUDES,
        helpers=(*patch.helpers, kernel.text, *tail_helpers(tail)),
        slack=by_pixels(shape, 2),
        residual=residual(2, shape),
        note=f"{kernel.note}, patch of {2 * depth} bytes",
    )


def _zero_point(pixel: str, taps: int, depth: int, spec: QuantSpec) -> str:
    """C that puts what the weights' zero point makes of a pixel's taps behind them; none where it is 0."""
    factor = -spec.weight_zero_point
    return f"aot_mve_add_behind({pixel}, {taps}, {depth}, {factor});\n" if factor else ""


def _row(
    shape: ConvShape, matrix: np.ndarray, rq: Requantiser, spec: QuantSpec, ends: Ends, tail: Tail | None
) -> KernelCode:
    """One pixel: eight (or four) outputs at once over one read of the input."""
    block = 4 if 1 <= shape.out_c % 8 <= 4 else 8
    zero = bool(spec.weight_zero_point)
    kernel = dot(shape.in_c, shape.out_c, rq, 1, block, zero)
    copied = kernel.depth != shape.in_c or ends.unsigned_x or zero  # it would read beyond the input
    x, y = "patch" if copied else "x", ends.y if tail is None else ends.row
    body = copy_statements("patch", ends.x, shape.in_c) if copied else ""
    body += ends.turned("patch", shape.in_c) + _zero_point("patch", shape.in_c, kernel.depth, spec)
    body += f"{kernel.name}({x}, w, {shape.out_c}, {y});\n"
    scratch = [Scratch("patch", kernel.depth + 4 * zero)] if copied else []
    if tail is not None:
        scratch.append(ends.results(shape.out_c))
        body += tail_loop(shape.out_c, "row", ("0", "0", "0"), tail)
    return KernelCode(
        body=body,
        constants=(Packed("w", pack(matrix, rq, block), admissible=ANYTHING, layout=LAYOUT),),
        scratch=tuple(scratch),
        includes=INCLUDES,
        helpers=(kernel.text, *tail_helpers(tail)),
        slack=shape.in_c if copied else None,
        note=kernel.note,
    )


def pairs_of_pixels(
    shape: ConvShape,
    g: Groups,
    kernel: str,
    depth: int,
    stream: int,
    fill: str,
    tail: Tail | None,
    types: tuple[str, str] = ("int8_t", "int8_t"),
    index: tuple[str, str, str] = ("n", "oy", "ox"),
    names: tuple[str, str, str] = ("x", "y", "row"),
) -> str:
    """The loops around a micro-kernel of two pixels. depth: elements from a pixel's patch to the other's.
    stream: bytes of a call's weights. fill: C that writes the patch of pixel i. types: of x, and of the
    results. index: what the tail gets. names: C of x, of y, and of the results that wait for a tail.
    """
    (of_x, of_y), (x, y, row) = types, names
    pixels, oc = shape.out_h * shape.out_w, shape.out_c
    pair = f"(p + 1 < {pixels} ? 2 : 1)" if pixels % 2 else "2"
    to = row if tail is not None else f"out + p * {oc}"
    # of one row oy stays 0: GCC warns of what it would write behind the row (-Wstringop-overflow)
    step = f"if (++ox == {shape.out_w}) {{\n    ox = 0;\n    oy++;\n}}\n" if shape.out_h > 1 else "ox++;\n"
    inner = "const int32_t oy0 = oy, ox0 = ox;\n" if tail is not None else ""
    inner += f"for (int32_t i = 0; i < {pair}; i++) {{\n{fill}{step}}}\n"
    second = ""
    if pixels % 2:
        inner += f"const int32_t second = (p + 1 < {pixels} ? 1 : 0);\n"
        second = "second * "
    inner += f"{of_y} *to = {to};\n" if pixels % 2 or g.count > 1 else ""
    first = "to" if pixels % 2 else to
    if g.count == 1:
        inner += f"{kernel}(patch, patch + {second}{depth}, w, {oc}, {first}, {first} + {second}{oc});\n"
    else:
        inner += f"""\
for (int32_t group = 0; group < {g.count}; group++) {{
    const {of_x} *from = patch + group * {g.taps};
    {kernel}(from, from + {second}{depth}, w + group * {stream}, {g.outputs}, to, to + {second}{oc});
    to += {g.outputs};
}}
"""
    out = f"{of_y} *out = {y} + n * {pixels * oc};\n" if tail is None else ""
    if tail is not None:
        each = tail_loop(oc, f"row + i * {oc}", index, tail) + step
        inner += f"oy = oy0;\nox = ox0;\nfor (int32_t i = 0; i < {pair}; i++) {{\n{each}}}\n"
    return f"""\
for (int32_t n = 0; n < {shape.batch}; n++) {{
    const {of_x} *image = {x} + n * {shape.in_h * shape.in_w * shape.in_c};
    {out}int32_t oy = 0;
    int32_t ox = 0;
    for (int32_t p = 0; p < {pixels}; p += 2) {{
{inner}}}
}}
"""
