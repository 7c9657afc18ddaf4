"""Winograd's 3x3 convolution of stride 1 in whole numbers for the DSP extension; winograd.py says why.

For each block of tiles: the inputs of all its tiles are transformed; then, for two or four output
channels at a time, their filters, the products at each position, and the sums of a tile to its
requantised outputs. All inputs of a block are read before one of its outputs is written.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aot_model.ir.admissible import ANYTHING
from aot_model.kernels.base import ConvShape, KernelCode, Packed, Scratch, Tail
from aot_model.kernels.int8.dsp import HEADER
from aot_model.kernels.int8.finish import form_name, requantise_helper
from aot_model.kernels.int8.requantise import bounds, fold_zero_point, plan
from aot_model.kernels.int8.row_tail import RowTail, tail_helpers
from aot_model.kernels.int8.rows import Rows
from aot_model.kernels.int8.spec import QuantSpec
from aot_model.kernels.int8.winograd import TILE, Variant, depths, reach, tiles_of
from aot_model.kernels.int8.winograd_gemm import POSITIONS, SUMS, Product, product

INVERSE_OF_9 = 0x38E38E39
LAYOUT = "[output channel][3][3][input channel, filled up to a multiple of four]"


def conv(
    shape: ConvShape,
    weights: npt.NDArray[np.int8],
    bias: npt.NDArray[np.int32] | None,
    quant: QuantSpec,
    tail: Tail | None,
    variant: Variant,
) -> KernelCode:
    """Convolution; weights [out_c, 3, 3, in_c], `fits()`. With a tail it gets the int8 value."""
    s, v = shape, variant
    unroll = v.unroll
    pairs = next(pairs for pairs, u, parts in depths(s) if (u, parts) == (unroll, v.in_parts))
    w, b = fold_zero_point(weights.reshape(s.out_c, -1), bias, quant)
    rq = plan(quant, *bounds(w, b, quant))
    quads = -(-s.in_c // 4) * 4
    filled = np.zeros((s.out_c, 9, quads), np.int8)
    filled[:, :, : s.in_c] = weights.reshape(s.out_c, 9, s.in_c)
    start = (np.zeros(s.out_c, np.int64) if bias is None else bias.astype(np.int64)) + rq.bias_shift
    rows = Rows.starting(start, quant, rq)
    name, text = product(Product(1 if v.in_parts else pairs // unroll, unroll, v.in_parts))
    whole = tail is not None or s.out_h % TILE == s.out_w % TILE == 0
    forms = _Transforms(rows, unroll, v, whole)
    body = _Body(s, quant, v, tail, name, forms, pairs, unroll, quads)
    scratch = [
        Scratch("inputs", POSITIONS * pairs * v.tiles * 4, 4, "uint32_t"),
        Scratch("filters", POSITIONS * (unroll if v.in_parts else pairs) * v.channels * 4, 4, "uint32_t"),
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
        body.text(),
        constants=(Packed("weights", filled.reshape(-1), 4, ANYTHING, layout=LAYOUT), rows.packed("rows")),
        scratch=tuple(scratch),
        includes=frozenset({HEADER, "aot_model/int8_winograd.h"}),
        helpers=(text, *forms.texts(), *tail_helpers(tail)),
        slack=reach(s, v.tiles),
        note=note,
    )


@dataclass(frozen=True)
class _Transforms:
    """The functions of one form of the transforms; layers of the same form share them."""

    rows: Rows
    unroll: int
    variant: Variant
    whole: bool
    """All tiles have 4 x 4 outputs."""

    @property
    def inputs(self) -> str:
        return f"winograd_inputs_{self.unroll}_{self.variant.together}"

    @property
    def filters(self) -> str:
        return f"winograd_filters_{self.unroll}_{self.variant.channels}"

    @property
    def outputs(self) -> str:
        rq, quant, out = self.rows.rq, self.rows.quant, self.rows.quant.out_dtype
        rule = requantise_helper(quant)[0] if rq.form == "raw" else form_name(rq, out)
        return f"winograd_outputs_{rule}_{out}{'' if self.whole else '_part'}"

    def texts(self) -> list[str]:
        return [*self.rows.helpers(), self._output()]

    def _output(self) -> str:
        out = f"{self.rows.quant.out_dtype}_t"
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
        many, rows = ("", "4") if self.whole else (", int32_t rows, int32_t columns", "rows")
        return f"""/* A tile's outputs of one channel, requantised. */
AOT_MODEL_OPAQUE static void {self.outputs}(
    const int32_t *sums, const int32_t *p, {out} *y, int32_t down, int32_t across{many})
{{
    uint32_t z[24], inverse = {INVERSE_OF_9:#x}u;
    const uint32_t start = (uint32_t)p[0];
    const int32_t constants[{words}] = {{{", ".join(f"p[{k + 1}]" for k in range(words))}}};
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


@dataclass(frozen=True)
class _Body:
    """Writes the loops over blocks of tiles and groups of channels."""

    shape: ConvShape
    quant: QuantSpec
    variant: Variant
    tail: Tail | None
    product: str
    forms: _Transforms
    pairs: int
    unroll: int
    quads: int

    def text(self) -> str:
        s, v = self.shape, self.variant
        rows, columns = tiles_of(s)
        tiles = rows * columns
        count = str(v.tiles)
        if tiles % v.tiles:
            count = f"{tiles} - first < {v.tiles} ? {tiles} - first : {v.tiles}"
        lines = [
            f"for (int32_t first = 0; first < {tiles}; first += {v.tiles}) {{",
            f"const int32_t count = {count};",
            *self._gather(columns),
            *self._multiply(columns),
            *self._store(columns),
            "}",
        ]
        filled = self.quads // 2 < self.pairs
        size = POSITIONS * (self.unroll if v.in_parts else self.pairs) * v.channels * 4
        if s.batch > 1:
            to = f"{self.quant.out_dtype}_t *to = y + n * {s.out_h * s.out_w * s.out_c};"
            lines = [
                f"for (int32_t n = 0; n < {s.batch}; n++) {{",
                f"const {self.quant.x_dtype}_t *image = x + n * {s.strides[0]};",
                *([] if self.tail else [to]),
                *lines,
                "}",
            ]
        if filled:
            lines = [f"memset(filters, 0, {size}u); /* pairs of channels that there are not */", *lines]
        return "\n".join(lines) + "\n"

    def _gather(self, columns: int) -> list[str]:
        s, v, q = self.shape, self.variant, self.quant
        _, down, across, _ = s.strides
        signed = q.x_dtype == "int8"
        outside = (q.x_zero_point & 0xFF) * 0x01010101
        block = POSITIONS * self.pairs * v.together
        return [
            "for (int32_t t = 0; t < count; t++) {",
            f"const int32_t row = (first + t) / {columns}, column = (first + t) % {columns};",
            f"{self.forms.inputs}(inputs + t / {v.together} * {block} + t % {v.together}, "
            f"{'image' if s.batch > 1 else 'x'}, row * 4 - {s.pad_top},",
            f"column * 4 - {s.pad_left}, {s.in_h}, {s.in_w}, {down}, {across}, {s.in_c}, "
            f"{'0x80808080u' if signed else '0u'}, {outside:#x}u, sums);",
            "}",
        ]

    def _multiply(self, columns: int) -> list[str]:
        s, v = self.shape, self.variant
        cn, oc = v.channels, s.out_c
        last = oc - cn
        channel = f"group < {last} ? group : {last}" if oc % cn else "group"
        block = POSITIONS * self.pairs * v.together
        one = 9 * self.quads
        lines = [f"for (int32_t group = 0; group < {oc}; group += {cn}) {{", f"const int32_t c = {channel};"]
        fill = self.quads // 2

        def call(inputs: str) -> str:
            four, two = (inputs, "filters") if v.together == 4 else ("filters", inputs)
            return f"{self.product}({four}, {two}, sums, sums + {POSITIONS * SUMS});"

        def filters(begin: str, end: str) -> list[str]:
            return [
                f"for (int32_t k = 0; k < {cn}; k++) {{",
                f"{self.forms.filters}(filters + k, weights + (c + k) * {one}, {self.quads}u,",
                f"{begin}, {end});",
                "}",
            ]

        if v.in_parts:
            u = self.unroll
            lines += [
                f"memset(sums, 0, {POSITIONS * SUMS * 4}u);",
                f"for (uint32_t pair = 0; pair < {fill}u; pair += {u}u) {{",
                *filters("pair", f"pair + {u}u"),
                call(f"inputs + pair * {POSITIONS * v.together}u"),
                "}",
                *self._outputs("0", columns),
            ]
        else:
            lines += [
                *filters("0u", f"{fill}u"),
                f"for (int32_t part = 0; part < count; part += {v.together}) {{",
                call(f"inputs + part / {v.together} * {block}"),
                *self._outputs("part", columns),
                "}",
            ]
        return [*lines, "}"]

    def _outputs(self, part: str, columns: int) -> list[str]:
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
                f"const int32_t row = (first + {tile}) / {columns} * 4;",
                f"const int32_t column = (first + {tile}) % {columns} * 4;",
            ]
            to, down, across = f"{out} + (row * {s.out_w} + column) * {oc} + c + j", s.out_w * oc, oc
            rows = f"{s.out_h} - row < 4 ? {s.out_h} - row : 4" if s.out_h % 4 else "4"
            cols = f"{s.out_w} - column < 4 ? {s.out_w} - column : 4" if s.out_w % 4 else "4"
        more = "" if self.forms.whole else f", {rows}, {cols}"
        return [
            *lines,
            f"for (int32_t j = 0; j < {cn}; j++) {{",
            f"{self.forms.outputs}({sums}, rows + (c + j) * {self.forms.rows.width}, {to},",
            f"{down}, {across}{more});",
            "}",
            "}",
        ]

    def _store(self, columns: int) -> list[str]:
        """What is fused behind, over all outputs of the block."""
        s = self.shape
        if self.tail is None:
            return []
        pixels = 4 if isinstance(self.tail, RowTail) else 1  # of a tile's row, neighbours here and there
        n, parts, each = "n" if s.batch > 1 else "0", 16 // pixels, " / 4" if pixels == 1 else ""
        lines = [
            f"for (int32_t t = 0; t < {parts} * count; t++) {{",
            f"const int32_t row = (first + t / {parts}) / {columns} * 4 + t{each} % 4;",
            f"const int32_t column = (first + t / {parts}) % {columns} * 4{' + t % 4' * (pixels == 1)};",
            f"const int32_t pixel = row * {s.out_w} + column;",
        ]
        if isinstance(self.tail, RowTail):
            many = str(4 * s.out_c)
            if s.out_w % TILE:
                many = f"(column < {s.out_w - 4} ? 4 : {s.out_w} - column) * {s.out_c}"
            store = self.tail.store_row(f"results + t * {4 * s.out_c}", (n, "0", "pixel", "0"), many)
            return [*lines, f"if (row < {s.out_h}) {{", store.rstrip(), "}", "}"]
        return [
            *lines,
            f"for (int32_t c = 0; row < {s.out_h} && column < {s.out_w} && c < {s.out_c}; c++) {{",
            f"const int32_t v = results[t * {s.out_c} + c];",
            self.tail.store("v", (n, "0", "pixel", "c"), 1).rstrip(),
            "}",
            "}",
        ]
