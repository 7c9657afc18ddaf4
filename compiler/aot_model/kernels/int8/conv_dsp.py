"""Convolution for cores with the DSP extension: expand four pixels' patches to int16, then all channels of
the four.

Four output pixels at a time (in memory order, across rows): their patches are gathered as int16 pairs into
`columns`, sign extension included, and the micro-kernel of gemm_dsp multiplies them with all channels. So the
input of these four pixels is consumed before one of their outputs is written, and `y` may follow over `x`
closely (see `slack`).

A patch is kernel_h runs of kernel_w * channels adjacent bytes. Runs inside of the image are read where they
lie; one that leaves it is first assembled in `border` with the input's zero point for what is outside, so
that folding the zero point into the bias holds for every pixel and the inner loop knows of no padding.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from aot_model.ir.admissible import ANYTHING
from aot_model.kernels.base import ConvShape, KernelCode, Packed, Scratch, Tail
from aot_model.kernels.int8.conv_mve import RowTail
from aot_model.kernels.int8.dsp import HEADER
from aot_model.kernels.int8.finish import raw_constants, requantise_helper
from aot_model.kernels.int8.gemm_dsp import pack_pairs
from aot_model.kernels.int8.patch_dsp import (
    PIXELS,
    Patch,
    expand_helper,
    needs_assembly,
    patch_layout,
    run_helper,
)
from aot_model.kernels.int8.products_dsp import UNKNOWN, Reading, Span, products
from aot_model.kernels.int8.requantise import fold_zero_point
from aot_model.kernels.int8.spec import QuantSpec
from aot_model.kernels.overlap import by_pixels, residual


def applicable(shape: ConvShape, quant: QuantSpec) -> bool:
    """Whether this kernel does the layer; the plain C one does all."""
    return shape.groups == 1 and quant.weight_zero_point == 0 and shape.out_h * shape.out_w > 0


def conv(
    shape: ConvShape,
    weights: npt.NDArray[np.int8],
    bias: npt.NDArray[np.int32] | None,
    quant: QuantSpec,
    tail: Tail | None = None,
    reading: Reading = UNKNOWN,
) -> KernelCode:
    """Convolution; weights [out_c, kernel_h, kernel_w, in_c], `applicable()`. With a tail it gets the int8
    value. reading: how constants are read.
    """
    oc, ic = shape.out_c, shape.in_c
    w, b = fold_zero_point(weights.reshape(oc, -1), bias, quant)
    assemble = needs_assembly(shape)
    flat = shape.kernel_h == shape.kernel_w == shape.stride_h == shape.stride_w == 1 and not assemble
    flat = flat and shape.keeps_size and shape.strides == replace(shape, x_strides=None).strides
    patch = patch_layout(shape.kernel_h, shape.kernel_w * ic)
    ordered = np.where(patch.order >= 0, w[:, np.maximum(patch.order, 0)], 0)

    separate = tail is not None or oc == 1
    stream = pack_pairs(ordered, b, quant, separate)
    if stream.requantise.form == "raw" and not separate:
        separate = True
        stream = pack_pairs(ordered, b, quant, separate)
    expand, expand_text = expand_helper(quant.x_dtype)
    raw = stream.requantise.form == "raw"
    run, run_text = run_helper(shape, quant) if assemble else ("", "")
    slots = stream.pairs.size
    scratch = [Scratch("columns", patch.length * PIXELS * 2, 4, "uint32_t")]
    cast = f"{quant.x_dtype}_t"
    if assemble:
        scratch.append(Scratch("border", PIXELS * patch.run, 4, cast))
    if patch.rest:
        scratch.append(Scratch("rest", PIXELS * patch.rest, 4, cast))
    if separate:
        out = "int32_t" if raw else f"{quant.out_dtype}_t"
        scratch.append(Scratch("results", PIXELS * slots * (4 if raw else 1), 4, out))
    taken = sum(piece.nbytes for piece in scratch)
    times = shape.batch * -(-shape.out_h * shape.out_w // PIXELS)
    made = products(stream, oc, quant.out_dtype, times, reading, taken)
    body = _Body(shape, quant, patch, separate, raw, tail, flat, assemble, made.spans)
    helpers = [*made.helpers, expand_text, *([run_text] if assemble else [])]
    constants = [Packed("weights", made.words, admissible=ANYTHING, layout=made.layout)]
    if raw:
        requantise, text = requantise_helper(quant)
        helpers += [text] if text else []
        constants += raw_constants(quant, oc)
    else:
        requantise = ""
    text = "".join(f"{line}\n" for line in made.copy) + body.text(expand, run, requantise)
    return KernelCode(
        body=text,
        constants=tuple(constants),
        scratch=(*scratch, *made.scratch),
        includes=frozenset({HEADER}),
        helpers=tuple(helpers),
        slack=by_pixels(shape, PIXELS, through_images=flat),
        wish=None if made.unit is None else taken + made.unit,
        residual=residual(PIXELS, shape),
        note=
        (f"four pixels x channel pairs, {patch.length} taps; {'one' if stream.joined else 'two'} SXTB16 per "
         "4 weights, "
         f"{5 / 16:.2f} words loaded per MAC; requantisation: {stream.requantise.form}"),
    )


@dataclass(frozen=True)
class _Body:
    """Writes the loops around the micro-kernel."""

    shape: ConvShape
    quant: QuantSpec
    patch: Patch
    separate: bool
    raw: bool
    tail: Tail | None
    flat: bool
    assemble: bool
    spans: tuple[Span, ...]

    def text(self, expand: str, run: str, requantise: str) -> str:
        s = self.shape
        count = s.out_h * s.out_w
        batch = s.batch
        if self.flat:
            count, batch = count * batch, 1
        lines = [f"for (int32_t pixel = 0; pixel < {count}; pixel += 4) {{"]
        partial = count % PIXELS != 0
        if partial:
            lines += [
                "    /* fewer than four are left: the last ones are computed twice */",
                f"    const int32_t left = {count} - pixel;",
            ]
            if self.separate:
                lines += [
                    "    const int32_t valid = left < 4 ? left : 4;",
                ]
                column = [
                    "0", "(valid > 1 ? 1 : 0)", "(valid > 2 ? 2 : valid - 1)", "(valid > 3 ? 3 : valid - 1)"
                ]
            else:
                lines += [
                    "    const int32_t step = left > 1 ? 1 : 0;",
                    "    const int32_t second = left >= 4 ? 2 : left > 1 ? left - 2 : 0;",
                ]
                column = ["0", "step", "second", "second + step"]
        else:
            column = ["0", "1", "2", "3"]
        lines += [
            "    " + line
            for line in (self._flat(expand, column) if self.flat else self._gather(expand, run, column))
        ]
        lines += [
            "    " + line
            for line in self._multiply(requantise, partial, batch > 1)
        ]
        if not self.flat:
            lines += [
                "    column += 4;",
                f"    while (column >= {s.out_w}) {{",
                f"        column -= {s.out_w};",
                "        row++;",
                "    }",
            ]
        lines.append("}")
        if not self.flat:
            lines = ["int32_t row = 0, column = 0;", *lines]
        if batch > 1:
            cast = f"{self.quant.x_dtype}_t"
            inner = [
                f"const {cast} *image = x + n * {s.strides[0]};",
                *([] if self.tail else [f"{self.quant.out_dtype}_t *out = y + n * {count * s.out_c};"]),
                *lines,
            ]
            lines = [f"for (int32_t n = 0; n < {batch}; n++) {{", *("    " + line for line in inner), "}"]
        return "\n".join(lines) + "\n"

    def _flat(self, expand: str, column: list[str]) -> list[str]:
        c, p = self.shape.in_c, self.patch
        lines = [f"const {self.quant.x_dtype}_t *from = x + pixel * {c};"]
        runs = ["from" if k == "0" else f"from + ({k}) * {c}" for k in column]
        if p.quads:
            end = "" if not p.rest else "uint32_t *more = "
            lines.append(f"{end}{expand}(columns, {', '.join(runs)}, {p.quads}u);")
        if p.rest:
            used = c - 4 * p.quads
            lines += [f"memset(rest, 0, {PIXELS * p.rest});"]
            lines += [
                f"memcpy(rest + {i * p.rest}, {r} + {4 * p.quads}, {used});" for i, r in enumerate(runs)
            ]
            where = "more" if p.quads else "columns"
            lines.append(f"{expand}({where}, {self._rest()}, {p.rest // 4}u);")
        return lines

    def _rest(self) -> str:
        return ", ".join(f"rest + {i * self.patch.rest}" for i in range(PIXELS))

    def _gather(self, expand: str, run: str, column: list[str]) -> list[str]:
        """Fills `columns`: pixels of one row whose patches lie inside of the image need no look at each of
        them.
        """
        s = self.shape
        _, _, sx, sc = s.strides
        adjacent = sc == 1 and (s.kernel_w == 1 or (sx == s.in_c and s.dilation_w == 1))
        each = self._each(expand, run, column)
        reach_h, reach_w = (s.kernel_h - 1) * s.dilation_h, s.kernel_w - 1
        last_row, last_column = s.in_h - 1 - reach_h, s.in_w - 1 - reach_w - (PIXELS - 1) * s.stride_w
        if not adjacent or s.out_w < PIXELS or last_row < 0 or last_column < 0:
            return ["uint32_t *to = columns;", *each]
        inside = [f"column <= {s.out_w - PIXELS}"]
        if s.pad_top > 0:
            inside.append("y0 >= 0")
        if (s.out_h - 1) * s.stride_h - s.pad_top > last_row:
            inside.append(f"y0 <= {last_row}")
        if s.pad_left > 0:
            inside.append("x0 >= 0")
        if (s.out_w - PIXELS) * s.stride_w - s.pad_left > last_column:
            inside.append(f"x0 <= {last_column}")
        return [
            f"const int32_t y0 = row * {s.stride_h} - {s.pad_top}, "
            f"x0 = column * {s.stride_w} - {s.pad_left};",
            "uint32_t *to = columns;", f"if ({' && '.join(inside)}) {{",
            *("    " + line for line in self._together(expand)), "} else {", *("    " + line
                                                                               for line in each), "}",
        ]

    def _together(self, expand: str) -> list[str]:
        """Four neighbours in a row, all inside."""
        s, p = self.shape, self.patch
        image = "image" if s.batch > 1 else "x"
        _, sy, sx, _ = s.strides
        step, down = s.stride_w * sx, s.dilation_h * sy
        kind = f"{self.quant.x_dtype}_t"
        lines = [f"const {kind} *at = {image} + y0 * {sy} + x0 * {sx};"]
        runs = ", ".join(f"at + {i * step}" if i else "at" for i in range(PIXELS))
        if p.quads:
            lines += [
                f"for (int32_t ky = 0; ky < {s.kernel_h}; ky++, at += {down}) {{",
                f"    to = {expand}(to, {runs}, {p.quads}u);",
                "}",
            ]
            if p.rest:
                lines.append(f"at -= {s.kernel_h * down - 4 * p.quads};")
        used = p.run - 4 * p.quads
        offsets = [ky * down + k for ky in range(s.kernel_h) for k in range(used)]
        if not p.rest:
            return lines
        if p.rest > 8:
            return [
                *lines, f"memset(rest, 0, {PIXELS * p.rest});",
                f"for (int32_t ky = 0; ky < {s.kernel_h}; ky++, at += {down}) {{",
                *(f"    memcpy(rest + {i * p.rest} + ky * {used}, at + {i * step}, {used});"
                  for i in range(PIXELS)), "}", f"{expand}(to, {self._rest()}, {p.rest // 4}u);",
            ]
        value = [f"(uint32_t)at[{o}]" if o else "(uint32_t)*at"
                 for o in offsets] + ["0u"] * (p.rest - len(offsets))

        def pair(low: str, high: str) -> str:
            return f"({low} & 0xffffu)" + ("" if high == "0u" else f" | {high} << 16")

        words = [pair(value[q + k], value[q + k + 2]) for q in range(0, p.rest, 4) for k in (0, 1)]
        return [
            *lines,
            f"for (int32_t i = 0; i < 4; i++, at += {step}, to++) {{",
            *(f"    to[{4 * k}] = {word};" for k, word in enumerate(words)),
            "}",
        ]

    def _each(self, expand: str, run: str, column: list[str]) -> list[str]:
        """Any four pixels: each finds its own runs."""
        s, p = self.shape, self.patch
        image = "image" if s.batch > 1 else "x"
        lines = [
            f"const int32_t ahead[4] = {{{', '.join(column)}}};",
            "int32_t tops[4], lefts[4];",
            "for (int32_t i = 0; i < 4; i++) {",
            "    int32_t r = row, c = column + ahead[i];",
            f"    while (c >= {s.out_w}) {{",
            f"        c -= {s.out_w};",
            "        r++;",
            "    }",
            f"    tops[i] = r * {s.stride_h} - {s.pad_top};",
            f"    lefts[i] = c * {s.stride_w} - {s.pad_left};",
            "}",
        ]
        used = p.run - 4 * p.quads
        _, sy, sx, _ = s.strides
        loop = []
        for i in range(PIXELS):
            y = f"tops[{i}] + ky * {s.dilation_h}"
            where = f"{image} + ({y}) * {sy} + lefts[{i}] * {sx}"
            if self.assemble:
                where = f"{run}({image}, {y}, lefts[{i}], border + {i * p.run})"
            loop.append(f"const {self.quant.x_dtype}_t *run{i} = {where};")
        if p.quads:
            loop.append(f"to = {expand}(to, run0, run1, run2, run3, {p.quads}u);")
        if used:
            loop.append(f"for (int32_t k = 0; k < {used}; k++) {{")
            loop += [
                f"    rest[{i * p.rest} + ky * {used} + k] = run{i}[{4 * p.quads} + k];" for i in range(4)
            ]
            loop.append("}")
        if p.rest:
            lines.append(f"memset(rest, 0, {PIXELS * p.rest});")
        lines += [f"for (int32_t ky = 0; ky < {s.kernel_h}; ky++) {{", *("    " + line for line in loop), "}"]
        if p.rest:
            lines.append(f"{expand}(to, {self._rest()}, {p.rest // 4}u);")
        return lines

    def _multiply(self, requantise: str, partial: bool, many: bool) -> list[str]:
        s, half = self.shape, self.patch.length // 2
        oc = s.out_c
        out = "out" if many and self.tail is None else "y"
        if not self.separate:
            second, step = ("second", f"(uint32_t)step * {oc}u") if partial else ("2", f"{oc}u")
            return [
                f"{self.quant.out_dtype}_t *to_y = {out} + pixel * {oc};",
                *(line for one in self.spans for line in one.calls("to_y", f"{second} * {oc}", step, half)),
            ]
        slots = oc + oc % 2
        size = 4 if self.raw else 1
        step = f"{slots * size}u"
        lines = [line for one in self.spans for line in one.calls("results", str(2 * slots), step, half)]
        lines.append(f"for (int32_t p = 0; p < {'valid' if partial else '4'}; p++) {{")
        if isinstance(self.tail, RowTail) and not self.raw:
            where = ("n" if many else "0", "0", "pixel + p", "0")
            return [*lines, "    " + self.tail.store_row(f"results + p * {slots}", where, oc).rstrip(), "}"]
        lines.append(f"    for (int32_t c = 0; c < {oc}; c++) {{")
        value = f"results[p * {slots} + c]"
        if requantise:
            value = f"{requantise}({value}, requantisation + 2 * c)"
        lines.append(f"        const int32_t v = {value};")
        if self.tail is None:
            lines.append(f"        {out}[(pixel + p) * {oc} + c] = ({self.quant.out_dtype}_t)v;")
        else:
            index = ("n" if many else "0", "0", "pixel + p", "c")
            lines += ["        " + line for line in self.tail.store("v", index, 1).splitlines()]
        return [*lines, "    }", "}"]
