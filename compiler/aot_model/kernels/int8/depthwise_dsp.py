"""Depthwise convolution for cores with the DSP extension: one channel's plane at a time, two taps per SMLAD.

The input of one channel is gathered into a plane of int16 with a border (plane.py); neighbours in a line of
it are a pair of taps for SMLAD. Then the outputs of the channel are written. Nothing of that channel is read
any more, so `y` may lie on `x` itself. 3x3 kernels are in depthwise3x3_dsp.py, all others are C with SMLAD,
four outputs at a time.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from aot_model.ir.admissible import ANYTHING, Range
from aot_model.kernels.base import ConvShape, KernelCode, Packed, Scratch, Tail
from aot_model.kernels.int8.depthwise3x3_dsp import three_by_three
from aot_model.kernels.int8.dsp import HEADER
from aot_model.kernels.int8.finish import (
    finish_c,
    raw_constants,
    requantise_helper,
    requantise_words,
    wrapped,
)
from aot_model.kernels.int8.plane import PLANE_BYTES, PlaneLoops, plane_of
from aot_model.kernels.int8.requantise import bounds, fold_zero_point, plan
from aot_model.kernels.int8.spec import Int64, QuantSpec

UNROLLED_PAIRS = 8
"""Kernels of up to so many pairs of taps are written out."""


def applicable(shape: ConvShape, quant: QuantSpec) -> bool:
    """Whether this kernel does the layer; the plain C one does all."""
    return shape.groups == shape.in_c and quant.weight_zero_point == 0


def depthwise(
    shape: ConvShape,
    weights: npt.NDArray[np.int8],
    bias: npt.NDArray[np.int32] | None,
    quant: QuantSpec,
    tail: Tail | None = None,
    plane_bytes: int = PLANE_BYTES,
) -> KernelCode:
    """Depthwise convolution; weights [kernel_h, kernel_w, channels * multiplier], `applicable()`."""
    oc = shape.out_c
    w, b = fold_zero_point(weights.reshape(-1, oc).T, bias, quant)
    rq = plan(quant, *bounds(w, b, quant))
    plane = plane_of(shape, plane_bytes, once=tail is not None)
    u, v = plane.u, plane.v
    grid = w.reshape(oc, shape.kernel_h, shape.kernel_w)
    if plane.transposed:
        grid = grid.transpose(0, 2, 1)
    register = (
        u.kernel == v.kernel == 3
        and u.dilation == v.dilation == 1
        and v.stride <= 2
        and 4 * plane.length + 8 <= 1020
        and plane.strips == 1
    )
    results = tail is not None or rq.form == "raw"
    loops = PlaneLoops(shape, quant, plane, rq, tail, results)
    start = b + rq.bias_shift
    rows = []
    for c in range(oc):
        taps = _packed_taps(grid[c], register, v.dilation)
        rows.append(
            np.concatenate(
                [wrapped(start[c:c + 1]), taps,
                 wrapped(np.array(requantise_words(rq, c), np.int64))]))
    words = int(rows[0].size)
    helpers: list[str] = []
    constants = [
        Packed("weights",
               np.concatenate(rows),
               admissible=ANYTHING if rq.form == "raw" or rq.uniform_shift else
               (Range(0, 31, words - 1, words),),
               layout="for each channel: start value of the sums, taps, numbers of the requantisation")
    ]
    scratch = [Scratch("plane", 2 * plane.length * plane.lines, 4, "int16_t")]
    if results:
        size = 4 if rq.form == "raw" else 1
        out = "int32_t" if rq.form == "raw" else f"{quant.out_dtype}_t"
        scratch.append(Scratch("results", size * plane.lines_out * v.size_out, 4, out))
    if register:
        y_u, y_v = (v.size_out, 1) if results else (u.y_step, v.y_step)
        kernel, text = three_by_three(plane, rq, quant.out_dtype, y_u, y_v)
        helpers.append(text)
        compute = [
            f"{kernel}(plane, {'results' if results else 'to_y'}, weights + {words} * {loops.channel});"
        ]
    else:
        compute = tap_pairs(loops, words, rows[0].size - 1 - len(requantise_words(rq, 0)))
        kernel = "C"
    if rq.form == "raw":
        requantise, text = requantise_helper(quant)
        helpers += [text] if text else []
        constants += raw_constants(quant, oc)
    else:
        requantise = ""
    body = loops.text(compute, requantise)
    return KernelCode(
        body=body,
        constants=tuple(constants),
        scratch=tuple(scratch),
        includes=frozenset({HEADER}),
        helpers=tuple(helpers),
        slack=loops.slack,
        slack_step=shape.in_c,
        note=(
            f"one channel at a time in a plane of {plane.lines} x {plane.length} int16, "
            + ("two outputs per step, weights in registers" if register else "taps in pairs")
            + f"; requantisation: {rq.form}"
        ),
    )


def _packed_taps(grid: Int64, register: bool, dilation: int) -> npt.NDArray[np.int32]:
    """One channel's weights [lines, taps]: bytes w0 w1 w2 0 per line (3x3 in registers), else bytes padded to
    pairs.
    """
    lines, taps = grid.shape
    if register:
        four = np.concatenate([grid, np.zeros((lines, 1), np.int64)], axis=1)
        return four.astype(np.int8).reshape(-1).view("<i4").astype(np.int32)
    wide = np.zeros((lines, (taps - 1) * dilation + 1), np.int64)
    wide[:, ::dilation] = grid
    wide = np.concatenate([wide, np.zeros((lines, wide.shape[1] % 2), np.int64)], axis=1).reshape(-1)
    wide = np.concatenate([wide, np.zeros(-wide.size % 4, np.int64)])
    return wide.astype(np.int8).view("<i4").astype(np.int32)


def tap_pairs(loops: PlaneLoops, words: int, tap_words: int) -> list[str]:
    """Any kernel in C: weights of the channel expanded to pairs, then four outputs of a line at a time.

    words: of a channel's constants, of which the bias is the first and then come tap_words of weights.
    """
    plane, rq, quant = loops.plane, loops.rq, loops.quant
    u, v = plane.u, plane.v
    pairs = -(-v.reach // 2)
    total = u.kernel * pairs
    y_u, y_v = (v.size_out, 1) if loops.results else (u.y_step, v.y_step)
    target = "results" if loops.results else "to_y"
    cast = "int32_t" if rq.form == "raw" else f"{quant.out_dtype}_t"
    lines = [
        f"const int32_t *constants = weights + {words} * {loops.channel};",
        *([f"const int32_t *finish = constants + {1 + tap_words};"] if rq.form != "raw" else []),
        f"int32_t taps[{total}];", f"for (int32_t k = 0; k < {total}; k++) {{",
        "    const uint32_t two = (uint32_t)constants[1 + k / 2] >> k % 2 * 16;",
        "    taps[k] = (int32_t)(((uint32_t)(int8_t)(two & 0xffu) & 0xffffu) | (uint32_t)(int8_t)(two >> 8 & "
        "0xffu) << 16);",
        "}", f"for (int32_t u = 0; u < {plane.lines_out}; u++) {{",
        f"    const int16_t *from = plane + u * {u.stride * plane.length};",
        f"    {cast} *to = {target} + u * {y_u};",
    ]

    def block(count: int) -> list[str]:
        def taps_at(offset: str, tap: str) -> list[str]:
            return [
                f"sum{i} = dsp_smlad_at(at + {offset}{i * v.stride}, {tap}, sum{i});" for i in range(count)
            ]

        out = [f"int32_t sum{i} = constants[0];" for i in range(count)]
        if total <= UNROLLED_PAIRS:
            for k in range(u.kernel):
                out += ["{", f"    const int16_t *at = from + {k * u.dilation * plane.length};"]
                out += [
                    "    " + t for j in range(pairs) for t in taps_at(f"{2 * j} + ", f"taps[{k * pairs + j}]")
                ]
                out.append("}")
        else:
            out += [
                "const int32_t *tap = taps;",
                f"for (int32_t k = 0; k < {u.kernel}; k++) {{",
                f"    const int16_t *at = from + k * {u.dilation * plane.length};",
                f"    for (int32_t t = 0; t < {pairs}; t++, at += 2, tap++) {{",
                *("        " + t for t in taps_at("", "*tap")),
                "    }",
                "}",
            ]
        for i in range(count):
            out += [
                "{",
                f"    int32_t v = sum{i};",
                *("    " + t for t in ([] if rq.form == "raw" else finish_c(rq, quant.out_dtype, "finish"))),
                f"    to[{i * y_v}] = ({cast})v;",
                "}",
            ]
        return out

    four, left = divmod(v.size_out, 4)
    if four:
        lines += [
            f"    for (int32_t j = 0; j < {four}; j++, from += {4 * v.stride}, to += {4 * y_v}) {{",
            *("        " + line for line in block(4)),
            "    }",
        ]
    if left:
        lines += [
            f"    for (int32_t j = 0; j < {left}; j++, from += {v.stride}, to += {y_v}) {{",
            *("        " + line for line in block(1)),
            "    }",
        ]
    return [*lines, "}"]
