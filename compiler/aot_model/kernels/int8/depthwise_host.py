"""int8 depthwise convolution with AVX2: channels in the lanes, taps in pairs.

Two taps of 16 channels are interleaved to pairs of int16 and multiplied with the pairs of their weights: per
pixel and pair two loads, two interleavings and two multiply-adds, 32 products. Weights: [block of 16
channels][pair of taps][channel][2].
"""

from __future__ import annotations

import numpy as np

from aot_model.c.words import counted
from aot_model.ir.admissible import ANYTHING
from aot_model.kernels.base import ConvShape, KernelCode, Packed, Tail
from aot_model.kernels.int8.host_finish import Finish, admissible_entries, finish, table
from aot_model.kernels.int8.host_loops import Loops, Sweep, view
from aot_model.kernels.int8.requantise import bounds, fold_zero_point, plan
from aot_model.kernels.int8.spec import Bias, QuantSpec, Weights
from aot_model.kernels.int8.vectors import AVX2

PIXELS = 4
BLOCK = 16


def micro_kernel(pixels: int, end: Finish, weights: str, out: str) -> tuple[str, str]:
    """(name, text): `pixels` pixels x 16 channels, all taps, finished and stored."""
    name = f"q8_depthwise_{pixels}_{weights}_{end.name.partition('_')[2]}"
    places = [f" + {p} * pixel" if p > 1 else " + pixel" if p else "" for p in range(pixels)]
    lines = [
        f"q8_acc {v}0 = q8_load({at}){''.join(f', {v}{p} = {v}0' for p in range(1, pixels))};"
        for v, at in (("a", "table"), ("b", "table + 8"))
    ]
    lines += [
        f"for (int32_t k = 0; k < pairs; k++, offsets += 2, w += {2 * BLOCK}) {{",
        f"const q8_weights u = q8_weights_{weights}(w), v = q8_weights_{weights}(w + {BLOCK});",
        "const int16_t *one = x + offsets[0], *other = x + offsets[1];",
    ]
    for p, place in enumerate(places):
        lines += [
            f"const __m256i s{p} = q8_load(one{place}), t{p} = q8_load(other{place});",
            f"a{p} = q8_dot(a{p}, u, q8_low_channels(s{p}, t{p}));",
            f"b{p} = q8_dot(b{p}, v, q8_high_channels(s{p}, t{p}));",
        ]
    ends = [place.replace("pixel", "next") for place in places]
    lines += ["}", *(f"{end.name}(a{p}, b{p}, table, y{place}, count);" for p, place in enumerate(ends))]
    lines += ["(void)pixel;", "(void)next;"] if pixels == 1 else []
    return (
        name,
        f"""\
/* {counted(pixels, "pixel")} x {counted(BLOCK, "channel")}, taps in pairs at x + offsets. */
AOT_MODEL_INLINE void {name}(
    const int16_t *x, int32_t pixel, const int32_t *offsets, int32_t pairs, const {weights}_t *w,
    const int32_t *table, {out}_t *y, int32_t next, int32_t count)
{{
{chr(10).join(lines)}
}}
""",
    )


def depthwise(
    shape: ConvShape, weights: Weights, bias: Bias, quant: QuantSpec, tail: Tail | None = None
) -> KernelCode:
    """Depthwise convolution with any multiplier; weights [kernel_h, kernel_w, out_c].

    With a tail, it gets the requantised and clamped value.
    """
    s, oc = shape.along_row, shape.out_c
    taps = np.asarray(weights).reshape(s.kernel_h * s.kernel_w, oc)
    w, b = fold_zero_point(np.ascontiguousarray(taps.T), bias, quant)
    rq = plan(quant, *bounds(w, b, quant), rounded=False)
    v = view(s, PIXELS, oc // s.in_c)
    kind = "int8" if (np.abs(w * 2 + 1) <= 255).all() else "int16"

    # few channels: adjacent pixels of a row are adjacent in the tile and in the output, so they are channels
    # as well
    fold = BLOCK // oc if BLOCK % oc == 0 and s.stride_w == 1 and v.out_w % (BLOCK // oc) == 0 else 1
    count, lanes_used = taps.shape[0], oc * fold
    down, across = (
        np.arange(s.kernel_h) * s.dilation_h * v.pitch,
        np.arange(s.kernel_w) * s.dilation_w * v.pixel,
    )
    places = np.add.outer(down, across).reshape(-1)
    offsets = np.append(places, places[-1:])[: count + count % 2].astype(np.int32)
    pairs = offsets.size // 2
    padded = np.zeros((-(-lanes_used // BLOCK) * BLOCK, 2 * pairs), np.int64)
    padded[:lanes_used, :count] = np.tile(w, (fold, 1))
    end = finish(BLOCK, rq, quant, AVX2)
    packed, entries = [], []
    for first in range(0, lanes_used, BLOCK):
        rows = padded[first + AVX2.block_channels(BLOCK)].reshape(BLOCK, pairs, 2)
        packed.append(rows.transpose(1, 0, 2).astype(kind).reshape(-1))
        channels = np.arange(first, first + BLOCK)
        channels = np.where(channels < lanes_used, channels % oc, -1)
        entries.append(table(BLOCK, rq, b + rq.bias_shift, channels, AVX2))

    texts: dict[str, str] = {}

    def call(pixels: int, x: str, at: str, entry: str, y: str, channels: int) -> str:
        name, text = micro_kernel(pixels, end, kind, quant.out_dtype)
        texts[name] = text
        step = fold * v.stride_w * v.pixel
        return f"{name}({x}, {step}, offsets, {pairs}, {at}, {entry}, {y}, {lanes_used}, {channels});"

    whole, size = lanes_used // BLOCK * BLOCK, packed[0].size
    sweeps = []
    for first, n in ((0, whole), (whole, lanes_used - whole)):
        if n:
            weights_at, table_at = (first // BLOCK * size, size), (first // BLOCK * end.words, end.words)
            sweeps.append(Sweep(first, n, BLOCK, PIXELS, weights_at, table_at, (first, BLOCK), call, fold))
    loops = Loops(shape, v, quant, AVX2, sweeps, tail, quant.x_zero_point)
    layout = f"for each {BLOCK} channels: for each two taps those of each channel"
    constants = (
        Packed("weights", np.concatenate(packed), 32, ANYTHING, layout=layout),
        Packed("table", np.concatenate(entries), 32, admissible_entries(rq, entries)),
        Packed("offsets", offsets, 4),
    )
    return loops.code(
        constants, end.helpers, texts, f"16 channels, taps in pairs, {loops.note}; requantisation: {rq.note}"
    )
