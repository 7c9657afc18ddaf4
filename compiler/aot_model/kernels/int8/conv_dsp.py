"""Convolution for cores with the DSP extension: expand four pixels' patches to int16, then all channels of
the four.

Four output pixels at a time (in memory order, across rows): their patches are gathered as int16 pairs into
`columns`, sign extension included, and the micro-kernel of gemm_dsp multiplies them with all channels. So the
input of these four pixels is consumed before one of their outputs is written, and `y` may follow over `x`
closely (see `slack`).

A patch is kernel_h runs of kernel_w * channels adjacent bytes. Runs inside of the image are read where they
lie; one that leaves it is first assembled in `border` with the input's zero point for what is outside, so
that folding the zero point into the bias holds for every pixel and the inner loop knows of no padding.
Where four pixels are always neighbours in a row, the runs of all four are assembled as one line.
A zero point of the weights is taps more, and groups of channels are done one after the other for each four
pixels; their patches are slices of pixels, and so are those of kernels whose taps in a row are not adjacent
(patch_dsp.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from aot_model.c.text import loop_of
from aot_model.ir.admissible import ANYTHING
from aot_model.kernels.base import ConvShape, KernelCode, Packed, Scratch, Tail
from aot_model.kernels.int8.dsp import HEADER
from aot_model.kernels.int8.finish import Rule, stored
from aot_model.kernels.int8.fully_connected_dsp import fully_connected
from aot_model.kernels.int8.gemm_dsp import channel_pairs, pack_pairs
from aot_model.kernels.int8.held_dsp import held
from aot_model.kernels.int8.patch_dsp import (
    PIXELS,
    Patch,
    Slices,
    column_sums,
    corners,
    expand_helper,
    needs_assembly,
    next_row,
    patch_layout,
    run_helper,
    slices_fit,
    sum_words,
    sums_fit,
    with_sums,
)
from aot_model.kernels.int8.products_dsp import Products, by_groups, products, worth_single
from aot_model.kernels.int8.requantise import RequantisePlan, fold_zero_point
from aot_model.kernels.int8.spec import Bias, QuantSpec, Weights
from aot_model.kernels.overlap import by_pixels, residual
from aot_model.kernels.reading import UNKNOWN, Reading
from aot_model.kernels.row_tail import RowTail


def applicable(shape: ConvShape, quant: QuantSpec) -> bool:
    """Whether this kernel does the layer; the plain C one does all."""
    known = sums_fit(quant.weight_zero_point)
    pixels = shape.out_h * shape.out_w  # one pixel would be computed four times
    return known and (pixels > 0 if shape.groups == 1 else pixels > 1 and slices_fit(shape))


def conv(
    shape: ConvShape,
    weights: Weights,
    bias: Bias,
    quant: QuantSpec,
    tail: Tail | None = None,
    reading: Reading = UNKNOWN,
) -> KernelCode:
    """Convolution; weights [out_c, kernel_h, kernel_w, in_c / groups], `applicable()`. With a tail it gets
    the int8 value. reading: how constants are read.
    """
    if shape.one_row:
        apart = reading.overlaps and reading.memory is not None
        return fully_connected(shape, weights, bias, quant, tail, apart=apart, common=reading.common)
    few = held(shape, weights, bias, quant, reading)
    if few is None:
        return _by_patches(shape, weights, bias, quant, tail, reading)
    code = few.code(tail, reading)
    taken = sum(piece.nbytes for piece in code.scratch)
    if not reading.waits(few.stream.nbytes):
        return code
    if taken <= reading.room:
        return replace(code, wish=taken)
    code = _by_patches(shape, weights, bias, quant, tail, reading)
    return replace(code, wish=min(taken, code.wish or taken))


def _by_patches(
    shape: ConvShape, weights: Weights, bias: Bias, quant: QuantSpec, tail: Tail | None, reading: Reading
) -> KernelCode:
    """The same with patches of four pixels as int16 pairs in memory."""
    oc, groups, zero = shape.out_c, shape.groups, quant.weight_zero_point
    w, b = fold_zero_point(weights.reshape(oc, -1), bias, quant)
    patch = patch_layout(shape.kernel_h, shape.kernel_w * shape.group_in)
    apart = groups > 1 or not shape.adjacent_taps
    by_slices = slices_fit(shape) and not shape.in_place and apart
    slices = Slices(shape, quant.x_dtype, quant.x_zero_point) if by_slices else None
    patch = replace(patch, order=slices.order, rest=0) if slices else patch
    sums = sum_words(patch.length, zero)

    taps = patch.ordered(weights.reshape(oc, -1), zero if slices else 0)  # a tap twice is in the sums, too
    taps = with_sums(taps, zero, sums)
    separate = tail is not None or oc == groups
    stream = pack_pairs(w, b, quant, taps, channel_pairs(shape.group_out, separate, groups))
    if stream.requantise.form == "raw" and not separate:
        separate = True
        stream = pack_pairs(w, b, quant, taps, channel_pairs(shape.group_out, separate, groups))
    sum_lines, sum_helpers = column_sums(patch.length, sums)
    loops = Loops(shape, quant, patch, separate, stream.requantise, tail, sum_lines, slices)
    single = not reading.compact and worth_single(loops.batch, loops.pixels, stream)
    if groups > 1:
        made = by_groups(stream, groups, oc, quant.out_dtype, reading, single)
    else:
        taken = sum(piece.nbytes for piece in loops.scratch())
        times = shape.batch * -(-shape.out_h * shape.out_w // PIXELS)
        made = products(stream, oc, quant.out_dtype, times, reading, taken, single)
    words = f"{'one' if stream.joined else 'two'} SXTB16 per 4 weights, {5 / 16:.2f} words loaded per MAC"
    note = f"four pixels x channel pairs, {patch.length} taps; {words}"
    return loops.code(made, sum_helpers, note)


@dataclass(frozen=True)
class Loops:
    """Writes the loops around the micro-kernels."""

    shape: ConvShape
    quant: QuantSpec
    patch: Patch
    separate: bool
    rq: RequantisePlan
    tail: Tail | None
    sums: list[str]
    """Statements that make one word of sums each for the weights' zero point."""
    slices: Slices | None = None
    """The patches of several groups whose runs do not lie where they are needed."""

    @property
    def rule(self) -> Rule:
        return Rule.of(self.rq, self.quant, self.shape.out_c)

    @property
    def flat(self) -> bool:
        return self.shape.in_place

    @property
    def half(self) -> int:
        """Words of a pixel in `columns`."""
        return self.patch.length // 2 + len(self.sums)

    @property
    def assemble(self) -> bool:
        return needs_assembly(self.shape) and self.slices is None

    @property
    def line(self) -> ConvShape | None:
        """Where four pixels are always neighbours in a row and some runs are assembled: a layer whose kernel
        is as wide as the windows of all four.
        """
        s = self.shape
        overlap = s.adjacent_taps and s.stride_w <= s.kernel_w
        if not self.assemble or not overlap or s.out_w % PIXELS:
            return None
        return replace(s, kernel_w=s.kernel_w + (PIXELS - 1) * s.stride_w, dilation_w=1)

    @property
    def border(self) -> int:
        """Bytes in which runs are assembled."""
        return PIXELS * self.patch.run if self.line is None else self.line.kernel_w * self.shape.in_c

    @property
    def one_way(self) -> bool:
        """Whether all pixels are gathered `_together`: up to eight taps left over need no place of their
        own.
        """
        s = self.shape
        return s.adjacent_taps and s.inside and s.out_w % PIXELS == 0 and not self.flat

    @property
    def slots(self) -> int:
        """Results of a pixel in `results`: an odd last channel of a group is there twice, until the next."""
        s = self.shape
        return s.out_c + s.group_out % 2

    @property
    def batch(self) -> int:
        """Images whose pixels are counted apart."""
        return 1 if self.flat else self.shape.batch

    @property
    def pixels(self) -> int:
        s = self.shape
        return s.out_h * s.out_w * (s.batch if self.flat else 1)

    @property
    def left(self) -> int:
        """Pixels behind the last four."""
        return self.pixels % PIXELS

    @property
    def image(self) -> str:
        return f"x + n * {self.shape.strides[0]}"

    def scratch(self) -> list[Scratch]:
        cast, p = f"{self.quant.x_dtype}_t", self.patch
        out, size = stored(self.rq, self.quant.out_dtype)
        return [
            Scratch("columns", self.half * PIXELS * 4, 4, "uint32_t"),
            *([Scratch("border", self.border, 4, cast)] if self.assemble else []),
            *([Scratch("rest", PIXELS * p.rest, 4, cast)] if p.rest > 8 * self.one_way else []),
            *([Scratch("results", PIXELS * self.slots * size, 4, out)] if self.separate else []),
            *(self.slices.scratch() if self.slices else []),
        ]

    def code(self, made: Products, sum_helpers: tuple[str, ...], note: str) -> KernelCode:
        """The kernel. sum_helpers: what `sums` call."""
        s, x_dtype, scratch, rule = self.shape, self.quant.x_dtype, self.scratch(), self.rule
        helpers = [*made.helpers, *(self.slices.helpers() if self.slices else [expand_helper(x_dtype)[1]])]
        helpers += [*sum_helpers, *([run_helper(self.line or s, self.quant)[1]] if self.assemble else [])]
        taken = sum(piece.nbytes for piece in scratch)
        again = s.groups > 1 and not self.separate
        return KernelCode(
            body="\n".join([*made.copy, *self._lines(made)]) + "\n",
            constants=(
                Packed("weights", made.words, admissible=ANYTHING, layout=made.layout),
                *rule.constants,
            ),
            scratch=(*scratch, *made.scratch),
            includes=frozenset({HEADER}),
            helpers=(*helpers, *rule.helpers),
            slack=by_pixels(s, PIXELS, through_images=self.flat, reread=again),
            wish=None if made.unit is None else taken + made.unit,
            residual=residual(PIXELS, s),
            note=f"{note}; requantisation: {self.rq.form}",
        )

    def _lines(self, made: Products) -> list[str]:
        spans, words = made.spans, made.words.size // self.shape.groups
        fewer = any(one.fewer(self.left) for one in spans)
        column, left = ["0", "1", "2", "3"], []
        if self.left:
            left = [
                "/* fewer than four are left: the last ones are computed twice */",
                f"const int32_t left = {self.pixels} - pixel;",
            ]
            if self.separate:
                left.append("const int32_t valid = left < 4 ? left : 4;")
                column = ["0", "(valid > 1 ? 1 : 0)", *(f"(valid > {k} ? {k} : valid - 1)" for k in (2, 3))]
            elif fewer and self.left == 1:
                left = [left[1], "const int32_t step = left > 1; /* a last one is read four times */"]
                column = ["0", "step", "2 * step", "3 * step"]
            elif fewer:
                left = [left[1], "const int32_t second = left > 2 ? 2 : 0; /* a last two are read twice */"]
                column = ["0", "1", "second", "second + 1"]
            else:
                left.append("const int32_t step = left > 1 ? 1 : 0;")
                left.append("const int32_t second = left >= 4 ? 2 : left > 1 ? left - 2 : 0;")
                column = ["0", "step", "second", "second + step"]
        before, begin, on = ["int32_t row = 0, column = 0;"], list[str](), ["column += 4;"]
        on += next_row(self.shape, "column", "row")
        if self.flat:
            before, gather, on = [], self._flat(column), []
        elif self.slices is None:
            gather = self._gather(column)
        else:
            begin = [*corners(self.shape, column), *self.slices.addresses(self.image)]
            gather = self.slices.gather()
        group = self._each_group([*gather, *self.sums, *self._products(made)], words)
        four = loop_of("pixel", self.pixels, *left, *begin, *group, *self._stores(), *on, step=4)
        first = self.slices.begin() if self.slices else []
        return [*first, *loop_of("n", self.batch, *before, *four)]

    def _each_group(self, lines: list[str], words: int) -> list[str]:
        """words: of a group's stream."""
        if self.shape.groups == 1:
            return lines
        return loop_of("g", self.shape.groups, f"const int32_t *group = weights + g * {words};", *lines)

    def _expand(self, to: str, runs: Iterable[str], quads: int) -> str:
        return f"{expand_helper(self.quant.x_dtype)[0]}({to}, {', '.join(runs)}, {quads}u);"

    def _expand_rest(self, to: str) -> str:
        p = self.patch
        return self._expand(to, [f"rest + {i * p.rest}" for i in range(PIXELS)], p.rest // 4)

    def _flat(self, column: list[str]) -> list[str]:
        c, p, depth = self.shape.in_c, self.patch, self.shape.group_in
        first = "" if self.shape.groups == 1 else f" + g * {depth}"
        lines = [f"const {self.quant.x_dtype}_t *from = x + pixel * {c}{first};"]
        runs = ["from" if k == "0" else f"from + ({k}) * {c}" for k in column]
        if p.quads:
            end = "uint32_t *more = " if p.rest else ""
            lines.append(f"{end}{self._expand('columns', runs, p.quads)}")
        if p.rest:
            lines.append(f"memset(rest, 0, {PIXELS * p.rest});")
            left = f" + {4 * p.quads}, {depth - 4 * p.quads});"
            lines += [f"memcpy(rest + {i * p.rest}, {r}{left}" for i, r in enumerate(runs)]
            lines.append(self._expand_rest("more" if p.quads else "columns"))
        return lines

    def _gather(self, column: list[str]) -> list[str]:
        """Fills `columns`: pixels of one row whose patches lie inside of the image need no look at each of
        them.
        """
        s = self.shape
        last_row, last_column = s.in_h - s.tall, s.in_w - s.kernel_w - (PIXELS - 1) * s.stride_w
        corner = [
            f"const int32_t y0 = row * {s.stride_h} - {s.pad_top};",
            f"const int32_t x0 = column * {s.stride_w} - {s.pad_left};",
        ]
        any_four = self._each(column) if self.line is None else self._from_lines(self.line)
        if self.line is not None and (last_row < 0 or last_column < 0):
            return [*corner, "uint32_t *to = columns;", *any_four]
        if not s.adjacent_taps or s.out_w < PIXELS or last_row < 0 or last_column < 0:
            return ["uint32_t *to = columns;", *self._each(column)]
        if self.one_way:
            return [*corner, "uint32_t *to = columns;", *self._together()]
        inside = [f"column <= {s.out_w - PIXELS}"] * (s.out_w % PIXELS != 0)
        inside += ["y0 >= 0"] * (s.pad_top > 0)
        inside += [f"y0 <= {last_row}"] * ((s.out_h - 1) * s.stride_h - s.pad_top > last_row)
        inside += ["x0 >= 0"] * (s.pad_left > 0)
        inside += [f"x0 <= {last_column}"] * ((s.out_w - PIXELS) * s.stride_w - s.pad_left > last_column)
        return [
            *corner, "uint32_t *to = columns;",
            f"if ({' && '.join(inside)}) {{", *self._together(), "} else {", *any_four, "}",
        ]  # fmt: skip

    def _together(self) -> list[str]:
        """Four neighbours in a row, all inside."""
        s, p = self.shape, self.patch
        _, sy, sx, _ = s.strides
        step, down = s.stride_w * sx, s.dilation_h * sy
        lines = [f"const {self.quant.x_dtype}_t *at = {self.image} + y0 * {sy} + x0 * {sx};"]
        rows = f"for (int32_t ky = 0; ky < {s.kernel_h}; ky++, at += {down}) {{"
        if p.quads:
            runs = [f"at + {i * step}" if i else "at" for i in range(PIXELS)]
            lines += [rows, f"to = {self._expand('to', runs, p.quads)}", "}"]
            lines += [f"at -= {s.kernel_h * down - 4 * p.quads};"] if p.rest else []
        if not p.rest:
            return lines
        used = p.run - 4 * p.quads
        if p.rest > 8:
            copies = (
                f"memcpy(rest + {i * p.rest} + ky * {used}, at + {i * step}, {used});" for i in range(PIXELS)
            )
            clear = f"memset(rest, 0, {PIXELS * p.rest});"
            return [*lines, clear, rows, *copies, "}", self._expand_rest("to")]
        offsets = [ky * down + k for ky in range(s.kernel_h) for k in range(used)]
        value = [f"(uint32_t)at[{o}]" if o else "(uint32_t)*at" for o in offsets]
        value += ["0u"] * (p.rest - len(offsets))

        def pair(low: str, high: str) -> str:
            return f"({low} & 0xffffu)" + ("" if high == "0u" else f" | {high} << 16")

        words = [pair(value[q + k], value[q + k + 2]) for q in range(0, p.rest, 4) for k in (0, 1)]
        stores = [f"to[{4 * k}] = {word};" for k, word in enumerate(words)]
        return [*lines, *loop_of("i", 4, *stores, more=f"at += {step}, to++")]

    def _each(self, column: list[str]) -> list[str]:
        """Any four pixels: each finds its own runs."""
        s, p = self.shape, self.patch
        lines = []
        _, sy, sx, _ = s.strides
        for i in range(PIXELS):
            y = f"tops[{i}] + ky * {s.dilation_h}"
            where = f"{self.image} + ({y}) * {sy} + lefts[{i}] * {sx}"
            if self.assemble:
                run, _ = run_helper(s, self.quant)
                where = f"{run}({self.image}, {y}, lefts[{i}], border + {i * p.run})"
            lines.append(f"const {self.quant.x_dtype}_t *run{i} = {where};")
        return [*corners(self.shape, column), *self._of_runs(lines)]

    def _from_lines(self, line: ConvShape) -> list[str]:
        """Four neighbours in a row: their runs overlap, so what a kernel row meets is assembled once."""
        s, cast = self.shape, f"const {self.quant.x_dtype}_t"
        run, _ = run_helper(line, self.quant)
        first = f"{run}({self.image}, y0 + ky * {s.dilation_h}, x0, border)"
        runs = (f"{cast} *run{i} = run0 + {i * s.stride_w * s.in_c};" for i in range(1, PIXELS))
        return self._of_runs([f"{cast} *run0 = {first};", *runs])

    def _of_runs(self, lines: list[str]) -> list[str]:
        """lines: C that points run0 to run3 to the pixels' runs of kernel row `ky`."""
        s, p = self.shape, self.patch
        used = p.run - 4 * p.quads
        begin = [f"memset(rest, 0, {PIXELS * p.rest});"] if p.rest > s.kernel_h * used else []
        if p.quads:
            lines.append(f"to = {self._expand('to', [f'run{i}' for i in range(PIXELS)], p.quads)}")
        if used:
            at = [(f"{i * p.rest} + ky * {used} + k", f"run{i}[{4 * p.quads} + k]") for i in range(PIXELS)]
            copies = [f"rest[{to}] = {run};" for to, run in at]
            lines += loop_of("k", used, *copies)
        return [*begin, *loop_of("ky", s.kernel_h, *lines), *([self._expand_rest("to")] if p.rest else [])]

    def _products(self, made: Products) -> list[str]:
        """The calls, for one group."""
        half, oc, spans = self.half, self.shape.out_c, made.spans
        fewer = any(one.fewer(self.left) for one in spans)
        first = "" if self.shape.groups == 1 else f" + g * {self.shape.group_out}"

        def calls(y: str, second: str, step: str) -> list[str]:
            four = [line for one in spans for line in one.calls(y, second, step, half)]
            if not fewer:
                return four
            if not self.separate:  # what is stored beyond the last pixel goes where its copies go
                step, second = step if self.left == 2 else "0u", "0"
            few = [line for one in spans for line in one.calls(y, second, step, half, self.left)]
            return [f"if (left == {self.left}) {{", *few, "} else {", *four, "}"]

        if not self.separate:
            whole = fewer or not self.left
            second, step = ("2", f"{oc}u") if whole else ("second", f"(uint32_t)step * {oc}u")
            return [
                f"{self.quant.out_dtype}_t *to_y = y + n * {self.pixels * oc} + pixel * {oc}{first};",
                *calls("to_y", f"{second} * {oc}", step),
            ]
        size = stored(self.rq, self.quant.out_dtype)[1]
        return calls(f"results{first}", str(2 * self.slots), f"{self.slots * size}u")

    def _stores(self) -> list[str]:
        """From `results` to y or to the tail."""
        if not self.separate:
            return []
        slots, oc = self.slots, self.shape.out_c
        lines = [f"for (int32_t p = 0; p < {'valid' if self.left else '4'}; p++) {{"]
        where = ("0" if self.batch == 1 else "n", "0", "pixel + p")  # pixels of all images are counted
        if isinstance(self.tail, RowTail) and self.rq.form != "raw":
            return [*lines, self.tail.store_row(f"results + p * {slots}", (*where, "0"), oc).rstrip(), "}"]
        to, source = f"n * {self.pixels * oc} + (pixel + p) * {oc} + c", f"results[p * {slots} + c]"
        return [*lines, *self.rule.store_each(oc, source, to, self.quant.out_dtype, self.tail, where), "}"]
