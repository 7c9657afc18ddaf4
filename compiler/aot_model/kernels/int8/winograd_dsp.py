"""Winograd's 3x3 convolution of stride 1 in whole numbers for the DSP extension; winograd.py says why.

For each block of tiles: the inputs of all its tiles are transformed; then, for two or four output
channels at a time, their filters, the products at each position, and the sums of a tile to its
requantised outputs. All inputs of a block are read before one of its outputs is written.

A product is four words by two at each position. A word is a pair of int16 (two channels), SMLAD sums both
products modulo 2^32. Of two operands one has four words for each pair of channels, the other two; tiles may
be the one and output channels the other, or the other way round. Per pair of channels six LDR in clusters of
four and two (8 cycles on a Cortex-M4) and eight SMLAD.

Both operands are laid out [pairs / unroll][position][unroll][words]: the transforms write all positions
of a pair at offsets that do not depend on the layer, and the loop of products reads `unroll` pairs at offsets
from its pointers.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aot_model.c.assembly import constant
from aot_model.c.text import loop_of
from aot_model.ir.admissible import ANYTHING
from aot_model.kernels.base import ConvShape, KernelCode, Packed, Scratch, Tail
from aot_model.kernels.int8.dsp import HEADER, dsp_function
from aot_model.kernels.int8.finish import Rows, form_name, requantise_helper
from aot_model.kernels.int8.requantise import bounds, fold_zero_point, plan
from aot_model.kernels.int8.spec import Bias, QuantSpec, Weights
from aot_model.kernels.int8.winograd import POSITIONS, SUMS, TILE, Variant, reach, tiles_of
from aot_model.kernels.row_tail import RowTail, tail_helpers

INVERSE_OF_9 = 0x38E38E39
LAYOUT = "[output channel][3][3][input channel, filled up to a multiple of four]"


def conv(
    shape: ConvShape, weights: Weights, bias: Bias, quant: QuantSpec, tail: Tail | None, variant: Variant
) -> KernelCode:
    """Convolution; weights [out_c, 3, 3, in_c], `fits()`. With a tail it gets the int8 value."""
    s, v = shape, variant
    w, b = fold_zero_point(weights.reshape(s.out_c, -1), bias, quant)
    rq = plan(quant, *bounds(w, b, quant))
    start = (np.zeros(s.out_c, np.int64) if bias is None else bias.astype(np.int64)) + rq.bias_shift
    name, text = product(1 if v.in_parts else v.pairs // v.unroll, v.unroll, v.in_parts)
    layer = _Layer(s, v, tail, Rows.starting(start, quant, rq), name)
    filled = np.zeros((s.out_c, 9, layer.quads), np.int8)
    filled[:, :, : s.in_c] = weights.reshape(s.out_c, 9, s.in_c)
    packed = Packed("weights", filled.reshape(-1), 4, ANYTHING, layout=LAYOUT)
    scratch = [
        Scratch("inputs", POSITIONS * v.pairs * v.tiles * 4, 4, "uint32_t"),
        Scratch("filters", POSITIONS * v.at_once * v.channels * 4, 4, "uint32_t"),
        Scratch("sums", POSITIONS * SUMS * 4, 4, "int32_t"),
    ]
    if tail is not None:
        scratch.append(Scratch("results", v.tiles * TILE * TILE * s.out_c, 4, f"{quant.out_dtype}_t"))
    when = "in parts when they are used" if v.in_parts else "when they are used"
    note = (
        f"Winograd's F(4x4, 3x3) in whole numbers, {v.tiles} tiles together, products of {v.together} "
        f"tiles x {v.channels} channels, weights transformed {when}; requantisation: {rq.form}"
    )
    return KernelCode(
        layer.text(),
        constants=(packed, layer.rows.packed("rows")),
        scratch=tuple(scratch),
        includes=frozenset({HEADER, "aot_model/int8_winograd.h"}),
        helpers=(text, *layer.rows.helpers(), layer.output(), *tail_helpers(tail)),
        slack=reach(s, v.tiles),
        note=note,
    )


@dataclass(frozen=True)
class _Layer:
    """Writes the loops over blocks of tiles and groups of channels."""

    shape: ConvShape
    variant: Variant
    tail: Tail | None
    rows: Rows
    product: str

    @property
    def quant(self) -> QuantSpec:
        return self.rows.quant

    @property
    def quads(self) -> int:
        """Input channels of the constants."""
        return -(-self.shape.in_c // 4) * 4

    @property
    def columns(self) -> int:
        """Of tiles."""
        return tiles_of(self.shape)[1]

    @property
    def whole(self) -> bool:
        """Whether all tiles have 4 x 4 outputs."""
        return self.tail is not None or self.shape.out_h % TILE == self.shape.out_w % TILE == 0

    @property
    def outputs(self) -> str:
        """The name of `output`, which layers share."""
        rq, out = self.rows.rq, self.quant.out_dtype
        rule = requantise_helper(self.quant)[0] if rq.form == "raw" else form_name(rq, out)
        return f"winograd_outputs_{rule}_{out}{'' if self.whole else '_part'}"

    def output(self) -> str:
        out = f"{self.quant.out_dtype}_t"
        finish, words, lines = self.rows.finish("constants"), self.rows.width - 1, []
        for j, shift in enumerate((6, 5, 4, 4)):
            sum_ = f"(uint32_t)((int32_t)(o[{j}] * inverse) >> {shift})"
            lines += [
                "{" if j == 0 or self.whole else f"if (columns > {j}) {{",
                f"int32_t v = (int32_t)({sum_} + start);",
                *finish,
                f"to[{j} * across] = ({out})v;",
                "}",
            ]
        text = "\n".join(lines)
        given = ", ".join(f"p[{k + 1}]" for k in range(words))
        constants = f"\n    const int32_t constants[{words}] = {{{given}}};" if words else ""
        many, rows = ("", "4") if self.whole else (", int32_t rows, int32_t columns", "rows")
        return f"""/* A tile's outputs of one channel, requantised. */
AOT_MODEL_OPAQUE static void {self.outputs}(
    const int32_t *sums, const int32_t *p, {out} *y, int32_t down, int32_t across{many})
{{
    uint32_t z[24], inverse = {INVERSE_OF_9:#x}u;
    const uint32_t start = (uint32_t)p[0];{constants}
    for (int32_t j = 0; j < 6; j++) {{
        const uint32_t *m = (const uint32_t *)sums + {SUMS} * j;
        winograd_four({", ".join(f"m[{6 * SUMS * i}]" for i in range(6))}, z + j, 6);
    }}
    for (int32_t i = 0; i < {rows}; i++) {{
        {out} *to = y + i * down;
        const uint32_t *m = z + 6 * i;
        uint32_t o[4];
        winograd_four(m[0], m[1], m[2], m[3], m[4], m[5], o, 1);
{text}
        inverse <<= i < 2 ? 1 : 0;
    }}
}}
"""

    def text(self) -> str:
        s, v = self.shape, self.variant
        tiles = tiles_of(s)[0] * self.columns
        count = str(v.tiles)
        if tiles % v.tiles:
            count = f"{tiles} - first < {v.tiles} ? {tiles} - first : {v.tiles}"
        inner = [f"const int32_t count = {count};", *self._gather(), *self._multiply(), *self._store()]
        lines = loop_of("first", tiles, *inner, step=v.tiles)
        if s.batch > 1:
            image = f"const {self.quant.x_dtype}_t *image = x + n * {s.strides[0]};"
            to = f"{self.quant.out_dtype}_t *to = y + n * {s.out_h * s.out_w * s.out_c};"
            lines = loop_of("n", s.batch, image, *([] if self.tail else [to]), *lines)
        if self.quads // 2 < v.pairs:
            size = POSITIONS * v.at_once * v.channels * 4
            lines = [f"memset(filters, 0, {size}u); /* pairs of channels that there are not */", *lines]
        return "\n".join(lines) + "\n"

    def _gather(self) -> list[str]:
        s, v, q = self.shape, self.variant, self.quant
        _, down, across, _ = s.strides
        signed = q.x_dtype == "int8"
        outside = (q.x_zero_point & 0xFF) * 0x01010101
        block = POSITIONS * v.pairs * v.together
        return loop_of(
            "t", "count",
            f"const int32_t row = (first + t) / {self.columns}, column = (first + t) % {self.columns};",
            f"winograd_inputs_{v.unroll}_{v.together}"
            f"(inputs + t / {v.together} * {block} + t % {v.together}, "
            f"{'image' if s.batch > 1 else 'x'}, row * 4 - {s.pad_top},",
            f"column * 4 - {s.pad_left}, {s.in_h}, {s.in_w}, {down}, {across}, {s.in_c}, "
            f"{'0x80808080u' if signed else '0u'}, {outside:#x}u, sums);",
        )  # fmt: skip

    def _multiply(self) -> list[str]:
        s, v = self.shape, self.variant
        cn, oc = v.channels, s.out_c
        last = oc - cn
        channel = f"group < {last} ? group : {last}" if oc % cn else "group"
        block = POSITIONS * v.pairs * v.together
        one = 9 * self.quads
        lines = [f"const int32_t c = {channel};"]
        fill = self.quads // 2

        def call(inputs: str) -> str:
            four, two = (inputs, "filters") if v.together == 4 else ("filters", inputs)
            return f"{self.product}({four}, {two}, sums, sums + {POSITIONS * SUMS});"

        def filters(begin: str, end: str) -> list[str]:
            places = f"filters + k, weights + (c + k) * {one}, {self.quads}u,\n{begin}, {end}"
            return loop_of("k", cn, f"winograd_filters_{v.unroll}_{cn}({places});")

        if v.in_parts:
            lines += [
                f"memset(sums, 0, {POSITIONS * SUMS * 4}u);",
                f"for (uint32_t pair = 0; pair < {fill}u; pair += {v.unroll}u) {{",
                *filters("pair", f"pair + {v.unroll}u"),
                call(f"inputs + pair * {POSITIONS * v.together}u"),
                "}",
                *self._outputs("0"),
            ]
        else:
            part = [call(f"inputs + part / {v.together} * {block}"), *self._outputs("part")]
            lines += [*filters("0u", f"{fill}u"), *loop_of("part", "count", *part, step=v.together)]
        return loop_of("group", oc, *lines, step=cn)

    def _outputs(self, part: str) -> list[str]:
        s, v = self.shape, self.variant
        oc, cn = s.out_c, v.channels
        tile = "k" if part == "0" else "part + k"
        sums = "sums + 4 * j + k" if v.together == 4 else "sums + 4 * k + j"
        lines = [f"for (int32_t k = 0; k < {v.together} && {tile} < count; k++) {{"]
        if self.tail is not None:
            to, down, across = f"results + ({tile}) * {16 * oc} + c + j", 4 * oc, oc
        else:
            out = "to" if s.batch > 1 else "y"
            lines += [
                f"const int32_t row = (first + {tile}) / {self.columns} * 4;",
                f"const int32_t column = (first + {tile}) % {self.columns} * 4;",
            ]
            to, down, across = f"{out} + (row * {s.out_w} + column) * {oc} + c + j", s.out_w * oc, oc
            rows = f"{s.out_h} - row < 4 ? {s.out_h} - row : 4" if s.out_h % 4 else "4"
            cols = f"{s.out_w} - column < 4 ? {s.out_w} - column : 4" if s.out_w % 4 else "4"
        more = "" if self.whole else f", {rows}, {cols}"
        places = f"{sums}, rows + (c + j) * {self.rows.width}, {to},\n{down}, {across}{more}"
        return [*lines, *loop_of("j", cn, f"{self.outputs}({places});"), "}"]

    def _store(self) -> list[str]:
        """What is fused behind, over all outputs of the block."""
        s = self.shape
        if self.tail is None:
            return []
        pixels = 4 if isinstance(self.tail, RowTail) else 1  # of a tile's row, neighbours here and there
        n, parts, each = "n" if s.batch > 1 else "0", 16 // pixels, " / 4" if pixels == 1 else ""
        lines = [
            f"const int32_t row = (first + t / {parts}) / {self.columns} * 4 + t{each} % 4;",
            f"const int32_t column = (first + t / {parts}) % {self.columns} * 4{' + t % 4' * (pixels == 1)};",
            f"const int32_t pixel = row * {s.out_w} + column;",
        ]
        if isinstance(self.tail, RowTail):
            many = str(4 * s.out_c)
            if s.out_w % TILE:
                many = f"(column < {s.out_w - 4} ? 4 : {s.out_w} - column) * {s.out_c}"
            store = self.tail.store_row(f"results + t * {4 * s.out_c}", (n, "0", "pixel", "0"), many)
            lines += [f"if (row < {s.out_h}) {{", store.rstrip(), "}"]
        else:
            lines += [
                f"for (int32_t c = 0; row < {s.out_h} && column < {s.out_w} && c < {s.out_c}; c++) {{",
                f"const int32_t v = results[t * {s.out_c} + c];",
                self.tail.store("v", (n, "0", "pixel", "c"), 1).rstrip(),
                "}",
            ]
        return loop_of("t", f"{parts} * count", *lines)


def _step(k: int, instruction: str, advance: tuple[int, int] | None) -> list[str]:
    """Pair k of a turn; advance: bytes that both pointers move on with their last loads."""
    four, two = 16 * k, 8 * k
    end_four, end_two = (
        (f"[r0], #{advance[0]}", f"[r1], #{advance[1]}") if advance else (f"[r0, #{four}]", f"[r1, #{two}]")
    )

    def sums(x: str, lane: int) -> list[str]:
        registers = (f"r{2 + lane}", "r10"), (f"r{6 + lane}", "r11")
        return [f"{instruction} {r}, {x}, {w}" + f", {r}" * (instruction == "smlad") for r, w in registers]

    return [
        f"ldr r11, [r1, #{two + 4}]", f"ldr r10, {end_two}", f"ldr r12, [r0, #{four + 4}]",
        f"ldr lr, [r0, #{four + 8}]", *sums("r12", 1), *sums("lr", 2), f"ldr r12, [r0, #{four + 12}]",
        f"ldr lr, {end_four}", *sums("r12", 3), *sums("lr", 0),
    ]  # fmt: skip


def _add(register: str, by: int) -> list[str]:
    """register += by; r12 is free."""
    word, bits = abs(by), by.bit_length()
    if word % (1 << max(bits - 8, 0)) == 0:
        return [f"{'add' if by > 0 else 'sub'}.w {register}, {register}, #{word}"]
    return [*constant("r12", word), f"{'add' if by > 0 else 'sub'}.w {register}, {register}, r12"]


def product(turns: int, unroll: int, adds: bool) -> tuple[str, str]:
    """(name, C text) of the micro-kernel: sums of positions from m to end. unroll: pairs of channels of a
    turn. adds: the sums are added to what is there; else they begin with zero.
    """
    u, name = unroll, f"winograd_{'add_' if adds else ''}{turns}x{unroll}"
    four, two = 16 * u, 8 * u  # bytes of one position
    four_turn, two_turn = POSITIONS * four, POSITIONS * two  # from one turn to the next
    order = [*range(1, u), 0]  # pair 0 is the last, so that its loads may move the pointers
    begin = _step(order[0], "smuad", None)
    if adds:
        begin = ["ldr r12, [sp]", "ldmia r12, {r2-r9}", *_step(order[0], "smlad", None)]
    lines = ["push {r4-r11, lr}", "sub sp, sp, #12", "strd r2, r3, [sp]"]
    if turns == 1:
        lines += [".p2align 2", "1:", *begin]
        for k in order[1:]:
            lines += _step(k, "smlad", (four, two) if k == 0 else None)
    else:
        lines += ["mov r4, r0", *_add("r4", four_turn * turns), "str r4, [sp, #8]", ".p2align 2"]
        lines += ["1:", *begin, "b.w 3f", ".p2align 2", "2:",
                  *_step(order[0], "smlad", None), "3:"]  # fmt: skip
        for k in order[1:]:
            lines += _step(k, "smlad", None)
        lines += [
            *_add("r0", four_turn),
            *_add("r1", two_turn),
            "ldr r12, [sp, #8]",
            "cmp.w r0, r12",
            "bne.w 2b",
            f"add.w r12, r12, #{four}",
            "str r12, [sp, #8]",
            *_add("r0", four - four_turn * turns),
            *_add("r1", two - two_turn * turns),
        ]
    lines += ["ldrd r12, lr, [sp]", "stmia r12!, {r2-r9}", "str r12, [sp]", "cmp.w r12, lr", "bne.w 1b",
              "add sp, sp, #12", "pop {r4-r11, pc}"]  # fmt: skip
    twin = [
        f"for (; m != end; m += 8, four += {4 * u}, two += {2 * u}) {{",
        *([] if adds else ["memset(m, 0, 32);"]),
        f"for (int32_t turn = 0; turn < {turns}; turn++) {{",
        f"for (int32_t k = 0; k < {8 * u}; k++) {{",
        f"const uint32_t a = four[turn * {four_turn // 4} + k / 8 * 4 + k % 4];",
        f"const uint32_t b = two[turn * {two_turn // 4} + k / 8 * 2 + k / 4 % 2];",
        "m[k % 8] = dsp_smlad((int32_t)a, (int32_t)b, m[k % 8]);",
        "}", "}", "}",
    ]  # fmt: skip
    comment = f"{turns * u} pairs of channels, four words by two, for all positions from m to end."
    parameters = "const uint32_t *four, const uint32_t *two, int32_t *m, const int32_t *end"
    return name, dsp_function(name, comment, parameters, lines, twin)
