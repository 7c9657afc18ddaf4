"""Depthwise micro-kernel of up to 3x3 taps for cores with the DSP extension: weights stay in registers, two
outputs per step.

Per line of the kernel the weights are the pairs P = (w0, w1) and Q = (w1, w2). At stride 1, from the four
neighbours A = (x0, x1) and B = (x2, x3) of a line of the plane:

    y0 += SMLAD(A, P) + SMLABT(B, Q)        y1 += SMLATB(A, P) + SMLAD(B, Q)

which is 3 LDRD and 12 multiplications for two outputs. Two lines of outputs at a time read the lines that
both take once: four lines, at stride 2 five, in the place of six. Lines of two taps have a third one of zero;
with fewer than three lines, what requantises is in registers, too. Dilated taps have a word each, for both
outputs.

Instructions per output of one line of three taps: 2.3 to gather an input, 0.5 LDRD, 2 multiplications, 2 of a
requantisation that is one product (5 where ties need a look at the sign, 1 more for shifts by channel), 1
STRB, 1 for the loop: 9 to 13, or 3 to 4.3 for each MAC.
"""

from __future__ import annotations

from dataclasses import dataclass

from aot_model.kernels.int8.dsp import Peek, Schedule, assembly, dsp_function
from aot_model.kernels.int8.finish import finish_c, form_name, requantise, requantise_words, stored
from aot_model.kernels.int8.plane import Plane
from aot_model.kernels.int8.requantise import RequantisePlan
from aot_model.kernels.int8.rows import less

_P, _Q = ("r2", "r4", "r6"), ("r3", "r5", "r7")
"""The pairs of weights of each line of the kernel."""
_SUMS = {
    (1, 1): ("r10",), (1, 2): ("r10", "r11"), (2, 1): ("r10", "r12"), (2, 2): ("r10", "r11", "r12", "lr"),
}  # fmt: skip
"""By rows and columns of a block of outputs: first row, second row."""
_LINE, _LINES_END, _END, _BIAS, _SPARE = 12, 20, 24, 28, 32
"""Places on the stack behind multiplier, offset and shift: where the line began in x and in y, the end of the
lines, the end of this line, the bias, room for a register."""


def applicable(plane: Plane) -> bool:
    """Whether a kernel's lines are few and short, and its loads reach them."""
    u, v = plane.u, plane.v
    close = v.kernel in (2, 3) and v.dilation == 1 and v.stride <= 2
    far = v.kernel == 3 and v.dilation <= 256 and v.stride == 1
    return u.kernel <= 3 and (close or far) and reaches(plane, 1)


def reaches(plane: Plane, rows: int) -> bool:
    """Whether a block of so many rows has lines in common, all of which its loads reach."""
    u = plane.u
    last = (rows - 1) * u.stride + u.reach - 1
    return (rows == 1 or (u.stride < u.kernel and u.dilation == 1)) and last * 2 * plane.length + 8 <= 1020


def _constant(register: str, value: int) -> list[str]:
    high = [f"movt {register}, #{value >> 16}"] if value >> 16 else []
    return [f"movw {register}, #{value & 0xFFFF}", *high]


def _advance(register: str, by: int, free: str) -> list[str]:
    if by <= 4095:
        return [f"addw {register}, {register}, #{by}"]
    return [*_constant(free, by), f"add {register}, {register}, {free}"]


@dataclass(frozen=True)
class _Steps:
    """The parts of the micro-kernel. y_u, y_v: steps of y in elements."""

    plane: Plane
    rq: RequantisePlan
    out_dtype: str
    y_u: int
    y_v: int
    overlaps: bool

    @property
    def raw(self) -> bool:
        return self.rq.form == "raw"

    @property
    def line(self) -> int:
        """Bytes of a line of the plane."""
        return 2 * self.plane.length

    @property
    def lines(self) -> int:
        """Of the kernel."""
        return self.plane.u.kernel

    @property
    def held(self) -> bool:
        """Whether multiplier and offset stay in registers."""
        return self.lines < 3 and not self.raw

    @property
    def uses_end(self) -> bool:
        """Whether the end of a line of outputs has no register while they are requantised."""
        return not self.held and (self.rq.form == "ties" or not (self.rq.uniform_shift or self.raw))

    def two(self, base: str, offset: int, behind_load: bool = False) -> list[str]:
        apart = [f"ldr.w r8, [{base}, #{offset}]", f"ldr.w r9, [{base}, #{offset + 4}]"]
        return [f"ldrd r8, r9, [{base}, #{offset}]"] if self.overlaps and not behind_load else apart

    def products(self, rows: int, columns: int) -> list[str]:
        """The sums of a block of outputs. Each line of the plane is read once for all outputs that take it.
        The first line comes last and moves the pointer on where there are two columns. The sums of two rows
        begin with the line that both take: until then the bias is in the register of the first sum.
        """
        u, stride, sums = self.plane.u.stride, self.plane.v.stride, _SUMS[rows, columns]
        text: list[str] = [] if rows == 1 else [f"ldr.w {sums[0]}, [sp, #{_BIAS}]"]
        begun: set[str] = set()

        def add(name: str, sum_: str, data: str, weights: str) -> None:
            before = sum_ if sum_ in begun else "r12" if rows == 1 else sums[0]
            begun.add(sum_)
            text.append(f"{name} {sum_}, {data}, {weights}, {before}")

        lines = range((rows - 1) * u + self.lines)
        both = min(1, self.lines - 1) if rows == 1 else u
        apart = self.plane.u.dilation * self.line
        advance = columns == 2
        order = [both, *(i for i in lines if i != both)]
        if advance:
            order = [*(i for i in order if i), 0]
        for i in order:
            # the bias gives way last
            taken = [(i - row * u, sums[row * columns:][:columns]) for row in reversed(range(rows))
                     if 0 <= i - row * u < self.lines]
            last = advance and i == 0
            moved = 4 * stride if last else 0
            if self.plane.v.dilation > 1:  # each word has one tap of both outputs
                step = 2 * self.plane.v.dilation
                first = f"ldr r8, [r0], #{moved}" if moved else f"ldr.w r8, [r0, #{i * apart}]"
                text += [f"ldr.w r9, [r0, #{i * apart + step}]", f"ldr.w r8, [r0, #{i * apart + 2 * step}]"]
                for data, weights, half in (("r9", _P, "t"), ("r8", _Q, "t"), ("r8", _P, "b")):
                    text += [first] * (half == "b")
                    for k, outputs in taken:
                        for which, one in zip("bt", outputs, strict=False):
                            add(f"smla{which}{half}", one, data, weights[k])
                continue
            if not moved:
                text += self.two("r0", i * apart, behind_load=rows == 2 and i == both)
            elif self.overlaps:
                text.append(f"ldrd r8, r9, [r0], #{moved}")
            else:
                text += ["ldr.w r9, [r0, #4]", f"ldr r8, [r0], #{moved}"]
            if columns == 1:
                for k, (one,) in taken:
                    add("smlad", one, "r8", _P[k])
                for k, (one,) in taken:
                    add("smlabt", one, "r9", _Q[k])
            elif stride == 1:
                for k, (one, other) in taken:
                    add("smlatb", other, "r8", _P[k])
                    add("smlad", one, "r8", _P[k])
                for k, (one, other) in taken:
                    add("smlabt", one, "r9", _Q[k])
                    add("smlad", other, "r9", _Q[k])
            else:
                for k, (one, other) in taken:
                    add("smlad", other, "r9", _P[k])
                    add("smlad", one, "r8", _P[k])
                text.append(f"ldr.w r8, [r0, #{i * apart + 8 - moved}]")
                for k, (one, other) in taken:
                    add("smlabt", one, "r9", _Q[k])
                    add("smlabt", other, "r8", _Q[k])
        return text

    def finish(self, rows: int, columns: int) -> list[str]:
        if self.raw:
            return []
        sums = _SUMS[rows, columns]
        if self.held:
            variable = "r5" if self.lines == 1 else "r9"
            fetch: Schedule = [] if self.lines == 1 else [Peek("r9", "sp", 8, "p[2]")]
            return assembly(requantise(self.rq, sums, 0, self.out_dtype, ("r6", "r7", "r8", variable), fetch))
        free, variable = ("lr", "lr") if rows == 1 else ("r0", "r8")
        shift = Peek(variable, "sp", 8, "p[2]")
        text = [*self.two("sp", 0), *assembly(requantise(
            self.rq, sums, 0, self.out_dtype, ("r8", "r9", free, variable), [shift]))]
        if rows == 2 and self.rq.form == "ties":
            return [f"str r0, [sp, #{_SPARE}]", *text, f"ldr r0, [sp, #{_SPARE}]"]
        return text

    def stores(self, rows: int, columns: int) -> list[str]:
        """y moves on behind two columns."""
        store, size = "str" if self.raw else "strb", stored(self.rq, self.out_dtype)[1]
        step, below = self.y_v * size, self.y_u * size
        sums = _SUMS[rows, columns]
        first, second = sums[:columns], sums[columns:]
        text: list[str] = []
        at, base = below, "r1"
        if second and below + step > 4095:
            text += [*_constant("r8", below), "add r8, r1, r8"]
            at, base = 0, "r8"
        if columns == 1:
            return [*text, *(f"{store}.w {r}, [{base}, #{at}]" for r in second), f"{store} {first[0]}, [r1]"]
        if step <= 255:
            text += [f"{store}.w {r}, [{base}, #{at + k * step}]" for k, r in enumerate(second)]
            return [*text, *(f"{store} {r}, [r1], #{step}" for r in first)]
        if 2 * step <= 4095:
            for k in range(2):
                text += [f"{store}.w {r}, [{p}, #{o + k * step}]"
                         for r, p, o in [(first[k], "r1", 0), *((r, base, at) for r in second[k:k + 1])]]
            return [*text, f"addw r1, r1, #{2 * step}"]
        text += [f"{store}.w {r}, [{base}, #{at}]" for r in second[:1]]
        if second and base == "r1":
            text += [f"addw r8, r1, #{at}"]
        text += [*_constant("r9", step), f"{store} {first[0]}, [r1]", f"{store} {first[1]}, [r1, r9]"]
        text += [f"{store} {r}, [r8, r9]" for r in second[1:]]
        return [*text, "add r1, r1, r9, lsl #1"]

    def across(self, rows: int) -> list[str]:
        """All columns of a line of blocks."""
        pairs, odd = divmod(self.plane.v.size_out, 2)
        text: list[str] = []
        if pairs:
            end = "r8" if rows == 2 else "lr"
            aside = rows == 2 or self.uses_end
            text += [f"addw {end}, r0, #{pairs * 4 * self.plane.v.stride}"]
            text += [*([f"str {end}, [sp, #{_END}]"] if aside else []), "2:"]
            text += [*self.products(rows, 2), *self.finish(rows, 2), *self.stores(rows, 2)]
            text += [*([f"ldr {end}, [sp, #{_END}]"] if aside else []), f"cmp r0, {end}", "bne 2b"]
        return [*text, *self.products(rows, 1), *self.finish(rows, 1), *self.stores(rows, 1)] if odd else text

    def down(self, rows: int, blocks: int, last: bool) -> list[str]:
        """So many lines of blocks. last: nothing comes behind them."""
        step = rows * self.plane.u.stride * self.line
        move = [f"ldrd r0, r1, [sp, #{_LINE}]", *_advance("r0", step, "r8"),
                *_advance("r1", rows * self.y_u * stored(self.rq, self.out_dtype)[1], "r8")]  # fmt: skip
        if blocks == 1:
            return self.across(rows) if last else [f"strd r0, r1, [sp, #{_LINE}]", *self.across(rows), *move]
        return [
            *_constant("r8", blocks * step), "add r8, r8, r0", f"str r8, [sp, #{_LINES_END}]", "1:",
            f"strd r0, r1, [sp, #{_LINE}]", *self.across(rows), *move, f"ldr r8, [sp, #{_LINES_END}]",
            "cmp r0, r8", "bne 1b"
        ]


def three_by_three(plane: Plane, rq: RequantisePlan, out_dtype: str, y_u: int, y_v: int,
                   overlaps: bool = True, paired: bool = False,
                   zero: int = 0) -> tuple[str, str]:  # fmt: skip
    """(name, text) of the micro-kernel: all outputs of one channel's plane; y_u, y_v: steps of y in elements.
    overlaps: whether a load of one word begins while the one before it is under way; cores on which it does
    not can use the first of two words sooner when they come apart. paired: two lines of outputs at a time.
    zero: of the weights, which are bytes that need nine bits without it.
    """
    steps = _Steps(plane, rq, out_dtype, y_u, y_v, overlaps)
    paired = paired and plane.lines_out > 1 and reaches(plane, 2)
    v, count = plane.v, plane.u.kernel
    apart = f" * {v.dilation}" if v.dilation > 1 else ""
    out, _ = stored(rq, out_dtype)
    name = f"depthwise{count}x{v.kernel}_{plane.lines_out}x{v.size_out}_l{plane.length}"
    name += f"_s{plane.u.stride}{v.stride}"
    name += f"_d{plane.u.dilation}_{v.dilation}" if plane.u.dilation > 1 or v.dilation > 1 else ""
    name += f"_y{y_u}_{y_v}_{form_name(rq, out_dtype)}{f'_z{zero}'.replace('-', 'n') if zero else ''}"
    name += "_paired" if paired else ""
    words = len(requantise_words(rq, 0))
    blocks, rest = divmod(plane.lines_out, 2) if paired else (0, plane.lines_out)
    lines = [
        "push {r4-r11, lr}",
        "sub sp, sp, #36",
        "ldr r12, [r2], #4",
        *([f"str r12, [sp, #{_BIAS}]"] if paired else []),
        *(["ldrd r8, r9, [r2], #8"] if count > 1 else []),
        *(["ldr r10, [r2], #4"] if count == 3 else ["ldr r8, [r2], #4"] if count == 1 else []),
    ]
    if steps.held:
        lines += ["ldrd r6, r7, [r2], #8"] if words >= 2 else []
        lines += (["ldr r5, [r2]"] if count == 1 else ["ldr r11, [r2]", "str r11, [sp, #8]"]) * (words == 3)
    else:
        lines += ["ldrd r11, lr, [r2], #8", "strd r11, lr, [sp]"] if words >= 2 else []
        lines += ["ldr r11, [r2]", "str r11, [sp, #8]"] if words == 3 else []
    lines += _constant("lr", (zero & 0xFFFF) << 16 | (zero & 0xFFFF)) if zero else []
    for k, word in enumerate(("r8", "r9", "r10")[:count]):
        lines += [f"sxtb16 r11, {word}", f"sxtb16 {word}, {word}, ror #8"]
        lines += [f"ssub16 {r}, {r}, lr" for r in ("r11", word)] if zero else []
        lines += [f"pkhbt {_P[k]}, r11, {word}, lsl #16", f"pkhbt {_Q[k]}, {word}, r11"]
    lines += steps.down(2, blocks, not rest) if blocks else []
    lines += [f"ldr r12, [sp, #{_BIAS}]"] if blocks and rest else []
    lines += steps.down(1, rest, True) if rest else []
    lines += ["add sp, sp, #36", "pop {r4-r11, pc}"]
    twin = [
        f"const int32_t *p = constants + {1 + count};", "(void)p;", f"int32_t w[{3 * count}];",
        f"for (int32_t i = 0; i < {3 * count}; i++) {{",
        f"w[i] = (int8_t)((uint32_t)constants[1 + i / 3] >> i % 3 * 8 & 0xffu){less(zero)};", "}",
        f"for (int32_t u = 0; u < {plane.lines_out}; u++) {{",
        f"for (int32_t j = 0; j < {v.size_out}; j++) {{",
        f"const int16_t *from = plane + u * {plane.u.stride * plane.length} + j * {v.stride};",
        "uint32_t sum = (uint32_t)constants[0];",
        f"for (int32_t i = 0; i < {3 * count}; i++) {{",
        f"sum += (uint32_t)(from[i / 3 * {plane.u.dilation * plane.length} + i % 3{apart}] * w[i]);", "}",
        "int32_t v = (int32_t)sum;", *([] if steps.raw else finish_c(rq, out_dtype, "p")),
        f"y[u * {y_u} + j * {y_v}] = ({out})v;", "}", "}",
    ]  # fmt: skip
    comment = (f"{count}x{v.kernel} depthwise, one channel: {plane.lines_out} lines of {v.size_out} outputs; "
               "constants = bias, weights (one word per line), requantisation; y is stepped by "
               f"{y_u} per line and by {y_v} within a line.")
    parameters = ("const int16_t *plane", f"{out} *y", "const int32_t *constants")
    return name, dsp_function(name, comment, parameters, lines, twin)
