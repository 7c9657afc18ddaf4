"""Depthwise micro-kernel for cores with the DSP extension: all outputs of one channel's plane.

Which products there are is in depthwise_pairs_dsp.py. Kernels of few taps keep their weights in registers and
do two outputs per step, for 3x3 at stride 1 3 LDRD and 12 multiplications. Two lines of outputs at a time
read the lines that both take once: four lines, at stride 2 five, in the place of six. With up to four pairs,
what requantises is in registers, too. Other kernels widen a channel's weights to pairs in memory, and three
to six outputs share what they load: for four outputs a line of five taps is 2 LDRD of weights, 2 of inputs
and 12 multiplications. Weights are doubled where the requantisation begins with that.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from aot_model.c.assembly import advance, based, constant
from aot_model.kernels.int8.depthwise_pairs_dsp import Loads, MicroKernel, Pairs, reaches
from aot_model.kernels.int8.dsp import Peek, Schedule, assembly, dsp_function
from aot_model.kernels.int8.finish import finish_c, form_name, less, numbers_of, requantise, stored
from aot_model.kernels.int8.plane import Plane
from aot_model.kernels.int8.requantise import RequantisePlan

_PAIRS = ("r2", "r3", "r4", "r5", "r6", "r7")  # weights in registers, line by line
_SUMS = {
    (1, 1): ("r10",), (1, 2): ("r10", "r11"), (2, 1): ("r10", "r12"), (2, 2): ("r10", "r11", "r12", "lr"),
}  # fmt: skip
"""By rows and columns of a block of outputs: first row, second row."""
_ROW = ("r10", "r11", "r12", "lr", "r3", "r7")  # sums of a block where weights are in memory
_WRITTEN_OUT = 110  # instructions of lines that are written out, weights in memory
_WIDE = 60  # outputs with a larger stride are done one at a time
_LINE, _LINES_END, _END, _BIAS, _SPARE = 12, 20, 24, 28, 32
"""Places on the stack behind multiplier, offset and shift: where the line began in x and in y, the end of the
lines, the end of this line, the bias, room for a register."""


@dataclass(frozen=True)
class _Steps:
    """The parts of the micro-kernel. y_u, y_v: steps of y in elements."""

    plane: Plane
    pairs: Pairs
    rq: RequantisePlan
    out_dtype: str
    y_u: int
    y_v: int
    overlaps: bool
    compact: bool

    @property
    def raw(self) -> bool:
        return self.rq.form == "raw"

    @property
    def resident(self) -> bool:
        """Whether the weights stay in registers."""
        return self.pairs.in_registers and self.pairs.stride <= _WIDE and reaches(self.plane, 1)

    @property
    def twice(self) -> bool:
        """Whether weights and bias are doubled."""
        return self.rq.form == "ties"

    @property
    def line(self) -> int:
        """Bytes of a line of the plane."""
        return 2 * self.plane.length

    @property
    def held(self) -> bool:
        """Whether multiplier and offset stay in registers."""
        return self.pairs.words <= 4 and not self.raw

    @property
    def size(self) -> int:
        """Bytes of an output."""
        return stored(self.rq, self.out_dtype)[1]

    @cached_property
    def block(self) -> int:
        """Outputs of a line at a time, weights in memory: whose line takes the fewest instructions and words
        that are not aligned.
        """
        count, parts = self.plane.v.size_out, self.pairs.lines * self.pairs.parts
        most = min(count, 1 if self.pairs.stride > _WIDE else 4 if self.nested else len(_ROW))

        def cost(outputs: int) -> int:
            text = self.part(outputs, 0, 0, True)
            apart = 0 if self.aligned(outputs) else sum("[r0" in line for line in text) // 2
            return -(-count // outputs) * ((len(text) + apart + 1) * parts + 4 + 6 * outputs)

        return min(range(min(most, 3), most + 1), key=cost)

    def aligned(self, outputs: int) -> bool:
        """Whether all blocks of so many outputs begin at an even place of a line."""
        count, stride = self.plane.v.size_out, self.pairs.stride
        return count == outputs or (outputs * stride % 2 == 0 and count * stride % 2 == 0)

    @property
    def nested(self) -> bool:
        """Whether there are loops over lines and over their parts."""
        return self.pairs.lines > 1 and self.pairs.parts > 1

    def two(self, base: str, offset: int, behind_load: bool = False) -> list[str]:
        apart = [f"ldr.w r8, [{base}, #{offset}]", f"ldr.w r9, [{base}, #{offset + 4}]"]
        return [f"ldrd r8, r9, [{base}, #{offset}]"] if self.overlaps and not behind_load else apart

    def products(self, rows: int, columns: int) -> list[str]:
        """The sums of a block of outputs, weights in registers. Each line of the plane is read once for all
        outputs that take it. The first line comes last and moves the pointer on where there are two columns.
        The sums of two rows begin with the line that both take: until then the bias is in the register of the
        first sum, which gives way last.
        """
        u, sums = self.plane.u.stride, _SUMS[rows, columns]
        text: list[str] = [] if rows == 1 else [f"ldr.w {sums[0]}, [sp, #{_BIAS}]"]
        begun: set[str] = set()
        terms = self.pairs.terms(columns)
        places = sorted({t.place for t in terms})
        count, each = self.pairs.lines, len(self.pairs.kept)
        lines = range((rows - 1) * u + count)
        both = (rows - 1) * u
        order = [both, *(i for i in lines if i != both)]
        if columns == 2:
            order = [*(i for i in order if i), 0]
        for i in order:
            taken = [(i - row * u, row) for row in reversed(range(rows)) if 0 <= i - row * u < count]
            move = 4 * self.pairs.stride if columns == 2 and i == 0 else 0
            moved = 0
            offset = i * self.plane.u.dilation * self.line
            for at in range(0, len(places), 2):
                words = dict(zip(places[at : at + 2], ("r8", "r9"), strict=False))
                first = 2 * places[at] + offset - moved
                near = len(words) == 2 and places[at + 1] == places[at] + 2
                if move and not moved:
                    moved = move
                    if near and self.overlaps:
                        text.append(f"ldrd r8, r9, [r0], #{move}")
                    else:
                        text += [f"ldr.w r9, [r0, #{2 * places[1]}]"] if len(words) == 2 else []
                        text.append(f"ldr r8, [r0], #{move}")
                elif near:
                    text += self.two("r0", first, behind_load=rows == 2 and i == both)
                else:
                    text += [f"ldr.w {r}, [r0, #{2 * place + offset - moved}]" for place, r in words.items()]
                now = [
                    (t, k, row)
                    for pair in self.pairs.kept
                    for k, row in taken
                    for t in reversed(terms)
                    if t.pair == pair and t.place in words
                ]
                for t, k, row in now:
                    sum_ = sums[row * columns + t.output]
                    before = sum_ if sum_ in begun else "r12" if rows == 1 else sums[0]
                    begun.add(sum_)
                    weights = _PAIRS[k * each + self.pairs.kept.index(t.pair)]
                    text.append(f"{t.name} {sum_}, {words[t.place]}, {weights}, {before}")
        return text

    def requantised(
        self, sums: tuple[str, ...], constants: tuple[str, str, str, str], fetch: Schedule
    ) -> Schedule:
        return requantise(self.rq, sums, int(self.twice), self.out_dtype, constants, fetch)

    def finish(self, rows: int, columns: int) -> list[str]:
        if self.raw:
            return []
        sums = _SUMS[rows, columns]
        if self.held:
            variable = "r5" if self.pairs.words < 4 else "r9"
            fetch: Schedule = [] if self.pairs.words < 4 else [Peek("r9", "sp", 8, "p[2]")]
            return assembly(self.requantised(sums, ("r6", "r7", "r8", variable), fetch))
        if self.rq.bare:
            return assembly(self.requantised(sums, ("", "", "r8", ""), []))
        free, variable = ("lr", "lr") if rows == 1 else ("r0", "r8")
        shift = Peek(variable, "sp", 8, "p[2]")
        text = [*self.two("sp", 0), *assembly(self.requantised(sums, ("r8", "r9", free, variable), [shift]))]
        if rows == 2 and self.rq.form == "ties":
            return [f"str r0, [sp, #{_SPARE}]", *text, f"ldr r0, [sp, #{_SPARE}]"]
        return text

    def stores(self, sums: tuple[str, ...], below: tuple[str, ...] = ()) -> list[str]:
        """Of one line, and of the one below it; y moves on behind all columns if there are more than one."""
        store, columns = {4: "str", 2: "strh", 1: "strb"}[self.size], len(sums)
        step, at, base = self.y_v * self.size, self.y_u * self.size, "r1"
        text: list[str] = []
        if below and at + step > 4095:
            text += [*constant("r8", at), "add r8, r1, r8"]
            at, base = 0, "r8"
        if columns == 1:
            return [*text, *(f"{store}.w {r}, [{base}, #{at}]" for r in below), f"{store} {sums[0]}, [r1]"]
        if step <= 255:
            text += [f"{store}.w {r}, [{base}, #{at + k * step}]" for k, r in enumerate(below)]
            return [*text, *(f"{store} {r}, [r1], #{step}" for r in sums)]
        if columns * step <= 4095:
            for k, r in enumerate(sums):
                text.append(f"{store}.w {r}, [r1, #{k * step}]")
                text += [f"{store}.w {v}, [{base}, #{at + k * step}]" for v in below[k : k + 1]]
            return [*text, f"addw r1, r1, #{columns * step}"]
        text += [f"{store}.w {r}, [{base}, #{at}]" for r in below[:1]]
        if below and base == "r1":
            text += [f"addw r8, r1, #{at}"]
        text += constant("r9", step)
        text += [f"{store} {r}, [r8, r9]" for r in below[1:]]
        return [*text, *(line for r in sums for line in (f"{store} {r}, [r1]", "add r1, r1, r9"))]

    def across(self, rows: int) -> list[str]:
        """All columns of a line of blocks."""
        pairs, odd = divmod(self.plane.v.size_out, 2)

        def block(columns: int) -> list[str]:
            sums = _SUMS[rows, columns]
            return [*self.products(rows, columns), *self.finish(rows, columns),
                    *self.stores(sums[:columns], sums[columns:])]  # fmt: skip

        text: list[str] = []
        if pairs:
            end, rq = "r8" if rows == 2 else "lr", self.rq
            # whether it has no register while outputs are requantised
            aside = rows == 2 or not (self.held or self.raw or (rq.uniform_shift and rq.form != "ties"))
            text += based(end, "r0", pairs * 4 * self.pairs.stride)
            text += [*([f"str {end}, [sp, #{_END}]"] if aside else []), "2:", *block(2)]
            text += [*([f"ldr {end}, [sp, #{_END}]"] if aside else []), f"cmp r0, {end}", "bne 2b"]
        return [*text, *block(1)] if odd else text

    def part(self, block: int, offset: int, first: int, begun: bool) -> list[str]:
        """The sums of a block of outputs, of a line or part of the kernel, weights in memory. offset, first:
        in bytes, of its inputs behind r0, of its pairs behind r2. begun: sums have begun; else the bias is in
        the register of the first one, whose first product is the last of all first ones.
        """
        sums = _ROW[:block]
        terms = sorted(self.pairs.terms(block), key=lambda t: (t.pair, -t.output))
        doubles = {"r2": self.overlaps, "r0": self.overlaps and self.aligned(block)}
        kept = self.pairs.kept
        keys = [(("r2", first + 4 * kept.index(t.pair)), ("r0", offset + 2 * t.place)) for t in terms]
        # what stays in registers, which have pairs and words of inputs at once, depends on what comes early
        texts = []
        for early in (2, 3, 9):
            loads = Loads(["r4", "r5", "r8", "r9", *_ROW[block : 6 - self.nested]], doubles, early)
            known = set(sums) if begun else set()
            lines: list[str] = []
            for n, t in enumerate(terms):
                found, (weights, words) = loads.bring(keys[n], [k for pair in keys[n + 1 :] for k in pair])
                sum_ = sums[t.output]
                before = sum_ if sum_ in known else sums[0]
                lines += [*found, f"{t.name} {sum_}, {words}, {weights}, {before}"]
                known.add(sum_)
            texts.append(lines)
        return min(texts, key=len)

    def sums(self) -> tuple[list[str], int]:
        """(the sums of a block of outputs, weights in memory; how far r0 has moved). r2 stays."""
        pairs, reach = self.pairs, self.plane.u.dilation * self.line
        of_part, step = 4 * len(pairs.kept), 2 * pairs.taps
        bias, line = f"ldr.w {_ROW[0]}, [sp, #{_BIAS}]", step * pairs.parts
        near = pairs.lines * reach + line <= 1020  # so are the weights of what is written out: they are few
        if near and (not self.compact or pairs.lines * pairs.parts == 1):
            text = [bias]
            for i in range(pairs.lines * pairs.parts):
                k, part = divmod(i, pairs.parts)
                text += self.part(self.block, k * reach + part * step, i * of_part, i > 0)
            if len(text) <= _WRITTEN_OUT or pairs.lines * pairs.parts == 1:
                return text, 0
        text = [bias, *(f"mov {r}, {_ROW[0]}" for r in _ROW[1 : self.block])]
        body = self.part(self.block, 0, 0, True)
        if self.nested:
            text += ["4:", *based("r7", "r2", of_part * pairs.parts), "3:", *body, f"add r2, r2, #{of_part}",
                     f"add r0, r0, #{step}", "cmp r2, r7", "bne 3b", *advance("r0", reach - line, "r4"),
                     "cmp r2, r6", "bne 4b"]  # fmt: skip
        else:
            on = advance("r0", reach if pairs.lines > 1 else step, "r4")
            text += ["3:", *body, f"add r2, r2, #{of_part}", *on, "cmp r2, r6", "bne 3b"]
        moved = pairs.lines * reach if pairs.lines > 1 else line
        return [*text, *advance("r2", -4 * pairs.words, "r4")], moved

    def streamed(self) -> list[str]:
        """All blocks of a line, weights in memory; the last one begins earlier: all are of one size."""
        count, block = self.plane.v.size_out, self.block
        step, y_step = 2 * self.pairs.stride, self.y_v * self.size
        whole, rest = divmod(count, block)
        text, moved = self.sums()
        if not self.raw:
            shift, text = Peek("r5", "sp", 8, "p[2]"), [*text, *self.two("sp", 0)]
            text += assembly(self.requantised(_ROW[:block], ("r8", "r9", "r4", "r5"), [shift]))
        text += self.stores(_ROW[:block])
        if count == block:
            return text
        text = ["2:", *text, *advance("r0", block * step - moved, "r4")]
        text += advance("r1", y_step, "r4") if block == 1 else []
        text = [*based("r8", "r0", whole * block * step), f"str r8, [sp, #{_END}]", *text,
                f"ldr r8, [sp, #{_END}]", "cmp r0, r8", "bne.w 2b"]  # fmt: skip
        if rest:
            text += [f"ldr r8, [sp, #{_LINE}]", *based("r8", "r8", count * step), "cmp r0, r8", "beq.n 5f",
                     f"str r8, [sp, #{_END}]", *advance("r0", -(block - rest) * step, "r4"),
                     *advance("r1", -(block - rest) * y_step, "r4"), "b.w 2b", "5:"]  # fmt: skip
        return text

    def down(self, rows: int, blocks: int, last: bool) -> list[str]:
        """So many lines of blocks. last: nothing comes behind them."""
        step = rows * self.plane.u.stride * self.line
        move = [f"ldrd r0, r1, [sp, #{_LINE}]", *advance("r0", step, "r8"),
                *advance("r1", rows * self.y_u * self.size, "r8")]  # fmt: skip
        across = self.across(rows) if self.resident else self.streamed()
        if blocks == 1 and self.resident:
            return across if last else [f"strd r0, r1, [sp, #{_LINE}]", *across, *move]
        begin = [*constant("r8", blocks * step), "add r8, r8, r0", f"str r8, [sp, #{_LINES_END}]"]
        end = [f"ldr r8, [sp, #{_LINES_END}]", "cmp r0, r8", "bne 1b"]
        return [*begin, "1:", f"strd r0, r1, [sp, #{_LINE}]", *across, *move, *end]


def micro_kernel(
    plane: Plane,
    rq: RequantisePlan,
    out_dtype: str,
    y_u: int,
    y_v: int,
    overlaps: bool = True,
    paired: bool = False,
    zero: int = 0,
    compact: bool = False,
) -> MicroKernel:
    """The micro-kernel of one channel's plane; y_u, y_v: steps of y in elements.

    overlaps: whether a load of one word begins while the one before it is under way; cores on which it does
    not can use the first of two words sooner when they come apart. paired: two lines of outputs at a time.
    zero: of the weights, which are bytes that need nine bits without it. compact: short code.
    """
    pairs = Pairs.of(plane)
    steps = _Steps(plane, pairs, rq, out_dtype, y_u, y_v, overlaps, compact)
    resident = steps.resident
    paired = paired and resident and plane.lines_out > 1 and reaches(plane, 2)
    u, v = plane.u, plane.v
    name = f"depthwise{u.kernel}x{v.kernel}_{plane.lines_out}x{v.size_out}_l{plane.length}"
    name += f"_s{u.stride}{v.stride}"
    name += f"_d{u.dilation}_{v.dilation}" if u.dilation > 1 or v.dilation > 1 else ""
    name += f"_y{y_u}_{y_v}_{form_name(rq, out_dtype)}{f'_z{zero}'.replace('-', 'n') if zero else ''}"
    name += "_paired" if paired else ""
    blocks, rest = divmod(plane.lines_out, 2) if paired else (0, plane.lines_out)
    lines = ["push {r4-r11, lr}", "sub sp, sp, #36", "ldr r12, [r2], #4"]
    lines += [f"str r12, [sp, #{_BIAS}]"] if paired or not resident else []
    lines += constant("lr", (zero & 0xFFFF) << 16 | (zero & 0xFFFF)) if zero else []
    lines += _widened(steps, zero)
    lines += steps.down(2, blocks, not rest) if blocks else []
    lines += [f"ldr r12, [sp, #{_BIAS}]"] if blocks and rest else []
    lines += steps.down(1, rest, True) if rest else []
    lines += ["add sp, sp, #36", "pop {r4-r11, pc}"]
    words = pairs.lines * pairs.parts * pairs.quads
    of_line = 4 * pairs.parts * pairs.quads
    out, _ = stored(rq, out_dtype)
    twin = [
        f"const int32_t *p = constants + {1 + words};", "(void)p;", *(() if resident else ("(void)taps;",)),
        f"for (int32_t u = 0; u < {plane.lines_out}; u++) {{",
        f"for (int32_t j = 0; j < {v.size_out}; j++) {{",
        f"const int16_t *from = plane + u * {u.stride * plane.length} + j * {v.stride};",
        "uint32_t sum = (uint32_t)constants[0];",
        *pairs.sum_c(plane, less(zero), steps.twice),
        "}", "}", "int32_t v = (int32_t)sum;",
        *([] if steps.raw else finish_c(rq, out_dtype, "p", align=int(steps.twice))),
        f"y[u * {y_u} + j * {y_v}] = ({out})v;", "}", "}",
    ]  # fmt: skip
    each = "one word" if of_line == 4 else f"{of_line // 4} words"
    comment = (
        f"{u.kernel}x{v.kernel} depthwise, one channel: {plane.lines_out} lines of {v.size_out} "
        f"outputs; constants = bias, weights ({each} per line), requantisation; y is "
        f"stepped by {y_u} per line and by {y_v} within a line."
    )
    parameters = f"const int16_t *plane, {out} *y, const int32_t *constants"
    parameters += "" if resident else ", int32_t *taps"
    how = "two outputs per step, weights in registers"
    if not resident:
        how = f"{steps.block} outputs share their loads" if steps.block > 1 else "one output at a time"
    text, widened = dsp_function(name, comment, parameters, lines, twin), 0 if resident else pairs.words
    return MicroKernel(name, text, pairs, steps.twice, widened, how)


def _widened(steps: _Steps, zero: int) -> list[str]:
    """From the weights' bytes to pairs, in registers or at r3, and the numbers of the requantisation. r2 is
    then the first of the pairs in memory, r6 their end.
    """
    pairs, words = steps.pairs, numbers_of(steps.rq).shape[1]
    minus = "lr" if zero else ""
    lines: list[str] = []
    if not steps.resident:
        lines += [*based("r6", "r3", 4 * pairs.words), "1:"]
        turns = [("r8", "r9")[q % 2] for q in range(pairs.quads)]
        for word, text, forms in pairs.widen(turns, "r11", minus, steps.twice):
            lines += [f"ldr {word}, [r2], #4", *text]
            lines += [line for form in forms for line in (*form("r4"), "str r4, [r3], #4")]
        lines += ["cmp r3, r6", "bne 1b"] if pairs.lines * pairs.parts > 1 else []
        lines += ["ldrd r8, r9, [r2], #8", "strd r8, r9, [sp]"] if words >= 2 else []
        lines += ["ldr r8, [r2]", "str r8, [sp, #8]"] if words == 3 else []
        return [*lines, *advance("r3", -4 * pairs.words, "r4"), "mov r2, r3"]
    bytes_ = [f"r{8 + k}" for k in range(pairs.lines * pairs.quads)]
    lines += ["ldrd r8, r9, [r2], #8"] if len(bytes_) > 1 else []
    lines += [f"ldr {bytes_[-1]}, [r2], #4"] if len(bytes_) % 2 else []
    if steps.held:
        lines += ["ldrd r6, r7, [r2], #8"] if words >= 2 else []
        lines += ["ldr r5, [r2]"] if words == 3 and pairs.words < 4 else []
        lines += ["ldr r11, [r2]", "str r11, [sp, #8]"] if words == 3 and pairs.words == 4 else []
    else:
        lines += ["ldrd r4, r5, [r2], #8", "strd r4, r5, [sp]"] if words >= 2 else []
        lines += ["ldr r11, [r2]", "str r11, [sp, #8]"] if words == 3 else []
    place = iter(_PAIRS)
    for k in range(pairs.lines):
        for _, text, forms in pairs.widen(
            bytes_[k * pairs.quads :][: pairs.quads], "r11", minus, steps.twice
        ):
            lines += [*text, *(line for form in forms for line in form(next(place)))]
    return lines
