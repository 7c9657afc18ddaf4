"""int8 convolution and matrix products on hosts: blocks of pixels by blocks of 16 output channels in
registers.

Output channels lie in the lanes; one step of the inner loop broadcasts a pair (AVX2) or a quad (VNNI, SDOT)
of adjacent inputs of each pixel of the block and multiplies it with the weights of 16 channels, which are
used for all pixels:

    for each pixel: one load with broadcast, two multiply-adds of 16 or 32 products each

Weights, in the order of reading: [block of channels][tap row][run][step][channel of the block][input of the
step]. A run is what lies adjacent in the tile: a row of taps with all its channels, or the channels of one
tap of a dilated or grouped one.
"""

from __future__ import annotations

from itertools import product

import numpy as np

from aot_model.c.words import counted
from aot_model.ir.admissible import ANYTHING
from aot_model.kernels.base import ConvShape, KernelCode, Packed, Tail
from aot_model.kernels.int8 import conv_c
from aot_model.kernels.int8.host_finish import Finish, admissible_entries, finish, table
from aot_model.kernels.int8.host_loops import Loops, Sweep, view
from aot_model.kernels.int8.instructions import InstructionSet
from aot_model.kernels.int8.requantise import bounds, fold_zero_point, plan
from aot_model.kernels.int8.spec import Bias, QuantSpec, Weights
from aot_model.kernels.int8.vectors import AVX2


def micro_kernel(
    pixels: int, blocks: int, end: Finish, weights: str, out: str, dialect: InstructionSet
) -> tuple[str, str]:
    """(name, text): `pixels` pixels x `blocks` blocks of end.block channels, all taps, finished and
    stored.
    """
    vectors, lanes, group = dialect.registers(end.block), dialect.lanes, dialect.group
    name = f"q8_conv_{pixels}x{blocks * end.block}_{weights}_{end.name.partition('_')[2]}"
    acc = [[[f"{'abcd'[v]}{p}{f'_{k}' if blocks > 1 else ''}" for v in range(vectors)]
            for p in range(pixels)] for k in range(blocks)]  # fmt: skip

    def at(pointer: str, *offsets: tuple[int, str]) -> str:
        """pointer + count * unit + ..., without what is nothing."""
        terms = [u if n == 1 else f"{n} * {u}" if u else str(n) for n, u in offsets if n]
        return " + ".join([pointer, *terms])

    def held(v: int, k: int) -> str:
        return f"{'uvwz'[v]}{k} = q8_weights_{weights}({at('w', (k, 'stride'), (lanes * group * v, ''))})"

    lines = [f"q8_acc {acc[k][0][v]} = q8_load({at('table', (k * end.words, ''), (lanes * v, ''))})"
             + "".join(f", {acc[k][p][v]} = {acc[k][0][v]}" for p in range(1, pixels)) + ";"
             for k in range(blocks) for v in range(vectors)]  # fmt: skip
    lines += [
        "for (int32_t i = 0; i < rows; i++, x += row) {",
        "for (int32_t j = 0; j < runs; j++) {",
        f"const {dialect.element} *at = x + j * run;",
        f"for (int32_t k = 0; k < steps; k++, at += {group}, w += {end.block * group}) {{",
    ]
    for p in range(pixels):
        lines.append(f"const q8_inputs x{p} = q8_splat({at('at', (p, 'pixel'))});")
        if blocks == 1:
            if p == 0:
                lines.append(f"const q8_weights {', '.join(held(v, 0) for v in range(vectors))};")
            lines += [f"{a} = q8_dot({a}, {'uvwz'[v]}0, x{p});" for v, a in enumerate(acc[0][p])]
    for k, v in product(range(blocks if blocks > 1 else 0), range(vectors)):
        lines.append(f"const q8_weights {held(v, k)};")
        lines += [f"{acc[k][p][v]} = q8_dot({acc[k][p][v]}, {'uvwz'[v]}{k}, x{p});" for p in range(pixels)]
    lines += ["}", "}", "}"]
    for k, p in product(range(blocks), range(pixels)):
        sums = ", ".join(dialect.parts.format(a) for a in acc[k][p])
        entry, y = at("table", (k * end.words, "")), at("y", (k * end.block, ""), (p, "next"))
        lines.append(f"{end.name}({sums}, {entry}, {y}, count);")
    lines += ["(void)pixel;", "(void)next;"] if pixels == 1 else []
    parameters = [
        f"const {dialect.element} *x", "int32_t pixel", "int32_t rows", "int32_t row", "int32_t runs",
        "int32_t run", "int32_t steps", f"const {weights}_t *w", *(["int32_t stride"] if blocks > 1 else []),
        "const int32_t *table", f"{out}_t *y", "int32_t next", "int32_t count",
    ]  # fmt: skip
    size = f"{counted(pixels, 'pixel')} x {counted(blocks * end.block, 'channel')}"
    return (
        name,
        f"""\
/* {size}: rows x runs x steps of {group} inputs. */
AOT_MODEL_INLINE void {name}(
    {", ".join(parameters)})
{{
{chr(10).join(lines)}
}}
""",
    )


def conv(
    shape: ConvShape,
    weights: Weights,
    bias: Bias,
    quant: QuantSpec,
    tail: Tail | None = None,
    dialect: InstructionSet = AVX2,
) -> KernelCode:
    """Convolution of any geometry; weights [out_c, kernel_h, kernel_w, in_c / groups], int8 or uint8.

    With a tail, it gets the requantised and clamped value. Layers that an int8 dot product cannot take
    (weights with a zero point) are computed by the set's base, or in plain C.
    """
    s = shape.along_row
    oc, per_in, per_out = s.out_c, s.group_in, s.group_out
    w, b = fold_zero_point(weights.reshape(oc, -1), bias, quant)
    if not dialect.weights_fit(w):
        if dialect.base is None:
            return conv_c.conv(shape, weights, bias, quant, tail)
        dialect = dialect.base
    flip = dialect.flips.get(quant.x_dtype, 0)
    rq = plan(quant, *bounds(w, b, quant), rounded=False)
    start = b + rq.bias_shift - flip * w.sum(axis=1)

    v = view(s, dialect.pixels[16])
    merged = s.groups == 1 and s.dilation_w == 1
    run, runs, apart = (s.kernel_w * per_in, 1, 0) if merged else (per_in, s.kernel_w, s.dilation_w * v.pixel)
    steps = -(-run // dialect.group)
    padded = np.zeros((oc, s.kernel_h, runs, steps * dialect.group), np.int64)
    padded[..., :run] = w.reshape(oc, s.kernel_h, runs, run)
    stored = np.int8 if (np.abs(w * 2 + 1) <= 255).all() else np.int16
    kind = np.dtype(stored).name

    ends: dict[int, Finish] = {}
    texts: dict[str, str] = {}
    packed: list[np.ndarray] = []
    entries: list[np.ndarray] = []
    sweeps: list[Sweep] = []

    def caller(blocks: int, end: Finish, stride: int):  # type: ignore[no-untyped-def]
        def call(pixels: int, x: str, at: str, entry: str, y: str, count: int) -> str:
            name, text = micro_kernel(pixels, blocks, end, kind, quant.out_dtype, dialect)
            texts[name] = text
            rows = f"{s.kernel_h}, {s.dilation_h * v.pitch}, {runs}, {apart}, {steps}"
            weights_at = f"{at}, {stride}" if blocks > 1 else at
            results = f"{y}, {oc}, {min(count, end.block)}"
            return f"{name}({x}, {v.stride_w * v.pixel}, {rows}, {weights_at}, {entry}, {results});"

        return call

    def sweep(group: int, first: int, count: int, block: int, blocks: int) -> None:
        """Channels first .. first + count - 1 of a group."""
        end = ends.setdefault(block, finish(block, rq, quant, dialect))
        size = block * s.kernel_h * runs * steps * dialect.group
        before = sum(p.size for p in packed), sum(e.size for e in entries)
        for at in range(first, first + count, block):
            channels = group * per_out + np.arange(at, at + block)
            channels = np.where(np.arange(at, at + block) < per_out, channels, -1)
            entries.append(table(block, rq, start, channels, dialect))
            lane = channels[dialect.block_channels(block)]
            rows = np.where(lane[:, None, None, None] >= 0, padded[np.maximum(lane, 0)], 0)
            rows = rows.reshape(block, s.kernel_h, runs, steps, dialect.group)
            packed.append(rows.transpose(1, 2, 3, 0, 4).astype(stored).reshape(-1))
        pixels = dialect.pixels[block] if blocks == 1 else v.out_w
        steps_of = [(at, step * blocks) for at, step in zip(before, (size, end.words), strict=True)]
        call = caller(blocks, end, size)
        sweeps.append(Sweep(group * per_out + first, count, block * blocks, pixels, steps_of[0], steps_of[1],
                            (group * per_in, 0), call))  # fmt: skip

    blocks = {1: 4, 2: 2, 3: 2}.get(v.out_w if v.out_h == 1 else 0, 1)
    for group in range(s.groups):
        done = 0
        for step, block, many in ((16 * blocks, 16, blocks), (16, 16, 1)):
            whole = (per_out - done) // step * step
            if whole:
                sweep(group, done, whole, block, many)
                done += whole
        if done < per_out:
            sweep(group, done, per_out - done, 8 if per_out - done <= 8 and 8 in dialect.pixels else 16, 1)
    loops = Loops(shape, v, quant, dialect, sweeps, tail, quant.x_zero_point + flip)
    finishes = [text for end in ends.values() for text in end.helpers]
    layout = (
        f"for each block of channels: for each row of taps, for each {dialect.group} taps those of "
        "each channel"
    )
    constants = (
        Packed("weights", np.concatenate(packed), 32, ANYTHING, layout=layout),
        Packed("table", np.concatenate(entries), 32, admissible_entries(rq, entries)),
    )
    return loops.code(constants, finishes, texts, f"{loops.note}; requantisation: {rq.note}")
