"""Depthwise convolution for cores with the DSP extension: one channel's plane at a time, two taps per SMLAD.

The input of one channel is gathered into `plane`, int16, with a border of the input's zero point that is filled once
for all channels (so folding the zero point into the bias holds everywhere, and the loops know of no padding). Then the
outputs of the channel are written. Nothing of that channel is read any more: `y` may lie on `x` itself.

Neighbours in a line of the plane are a pair of taps for SMLAD. Lines run along the image's rows or columns, whichever
gives the fewer odd ones out. A 3x3 kernel keeps its weights in registers, as the pairs P = (w0, w1) and Q = (w1, w2) of
each line, and makes two outputs at a time; at stride 1, from the four neighbours A = (x0, x1) and B = (x2, x3):

    y0 += SMLAD(A, P) + SMLABT(B, Q)        y1 += SMLATB(A, P) + SMLAD(B, Q)

which is 3 LDRD and 12 multiplications for two outputs. Other kernels are written in C with the same plane.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from aot_model.kernels.base import ConvShape, KernelCode, Packed, Scratch, Tail
from aot_model.kernels.int8.conv_dsp import raw_constants
from aot_model.kernels.int8.gemm_dsp import DSP, asm_text, form_name, requantise_asm, requantise_c, requantise_words, wrapped
from aot_model.kernels.int8.requantise import Int64, QuantSpec, Requantise, bounds, fold_zero_point, plan, requantise_helper

UNROLLED_PAIRS = 8
"""Kernels of up to so many pairs of taps are written out."""
PLANE_BYTES = 6144
"""A plane larger than this is done in strips of lines."""


def applicable(shape: ConvShape, quant: QuantSpec) -> bool:
    """Whether this kernel does the layer; the plain C one does all."""
    return shape.groups == shape.in_c and quant.weight_zero_point == 0 and shape.x_strides is None


@dataclass(frozen=True)
class Axis:
    """One direction of the image: sizes in elements, strides of x and y in elements of memory."""

    size_in: int
    size_out: int
    kernel: int
    stride: int
    dilation: int
    pad: int
    x_step: int
    y_step: int

    @property
    def reach(self) -> int:
        """Input elements that one output needs, first to last."""
        return (self.kernel - 1) * self.dilation + 1

    @property
    def used(self) -> int:
        """Input elements that any output needs, from the first of the image on."""
        return max(0, min(self.size_in, (self.size_out - 1) * self.stride + self.reach - self.pad))


@dataclass(frozen=True)
class Plane:
    """Lines `u`, positions `v` within a line. length: int16 per line, even."""

    u: Axis
    v: Axis
    transposed: bool
    """Lines run along the columns of the image: v is its height."""
    length: int
    lines_out: int
    """Output lines of one strip."""

    @property
    def lines(self) -> int:
        return (self.lines_out - 1) * self.u.stride + self.u.reach

    @property
    def strips(self) -> int:
        return -(-self.u.size_out // self.lines_out)


def plane_of(shape: ConvShape, limit: int, once: bool) -> Plane:
    """Chooses the direction of lines: an even number of outputs, no dilation within a line, then fewer lines.

    once: no output may be computed twice, so strips are of one size without overlap.
    """
    s = shape
    rows = Axis(s.in_h, s.out_h, s.kernel_h, s.stride_h, s.dilation_h, s.pad_top, s.in_w * s.in_c, s.out_w * s.out_c)
    columns = Axis(s.in_w, s.out_w, s.kernel_w, s.stride_w, s.dilation_w, s.pad_left, s.in_c, s.out_c)

    def cost(u: Axis, v: Axis) -> tuple[int, int, int]:
        pairs = -(-v.kernel // 2) * u.kernel if v.dilation == 1 else v.kernel * u.kernel
        return (pairs, u.size_out * (v.size_out + (v.size_out % 2)), u.size_out)

    transposed = cost(columns, rows) < cost(rows, columns)
    u, v = (columns, rows) if transposed else (rows, columns)
    outputs = v.size_out + v.size_out % 2
    length = (outputs - 1) * v.stride + v.reach + 1
    length += length % 2
    strip = u.size_out
    while strip > 1 and 2 * length * ((strip - 1) * u.stride + u.reach) > limit:
        strip -= 1
    strip = -(-u.size_out // -(-u.size_out // strip))
    while once and u.size_out % strip:
        strip -= 1
    return Plane(u, v, transposed, length, strip)


def _advance(register: str, by: int, free: str) -> list[str]:
    if by <= 4095:
        return [f"addw {register}, {register}, #{by}"]
    return [f"movw {free}, #{by & 0xFFFF}", f"movt {free}, #{by >> 16}", f"add {register}, {register}, {free}"]


def three_by_three(plane: Plane, rq: Requantise, out_dtype: str, y_u: int, y_v: int) -> tuple[str, str]:
    """(name, text) of the micro-kernel: all outputs of one channel's plane; y_u, y_v: steps of y in elements."""
    raw = rq.form == "raw"
    size = 4 if raw else 1
    out = "int32_t" if raw else f"{out_dtype}_t"
    v, line = plane.v, 2 * plane.length
    pairs, odd = divmod(v.size_out, 2)
    name = f"depthwise3x3_{plane.lines_out}x{v.size_out}_l{plane.length}_s{plane.u.stride}{v.stride}"
    name += f"_y{y_u}_{y_v}_{form_name(rq, out_dtype)}"
    p, q = ("r2", "r4", "r6"), ("r3", "r5", "r7")
    uses_end = rq.form == "ties" or not (rq.uniform_shift or raw)
    words = len(requantise_words(rq, 0))
    step_bytes = 4 * v.stride

    def loads(k: int, last: bool, advance: int) -> list[str]:
        if last:
            return [f"ldrd r8, r9, [r0], #{advance}"]
        return [f"ldrd r8, r9, [r0, #{k * line}]"]

    pair: list[str] = []
    for k, last in ((1, False), (2, False), (0, True)):
        first = k == 1
        into0, into1 = ("r12", "r12") if first else ("r10", "r11")
        advance = 0 if v.stride == 2 else step_bytes
        pair += loads(k, last, advance) if advance or not last else ["ldrd r8, r9, [r0]"]
        pair.append(f"smlad r10, r8, {p[k]}, {into0}")
        if v.stride == 1:
            pair += [f"smlatb r11, r8, {p[k]}, {into1}", f"smlabt r10, r9, {q[k]}, r10", f"smlad r11, r9, {q[k]}, r11"]
        else:
            pair += [f"ldr r8, [r0, #{k * line + 8}]", f"smlabt r10, r9, {q[k]}, r10"]
            pair += [f"smlad r11, r9, {p[k]}, {into1}", f"smlabt r11, r8, {q[k]}, r11"]
    if v.stride == 2:
        pair.append(f"add r0, r0, #{step_bytes}")
    single: list[str] = []
    for k in (0, 1, 2):
        single += loads(k, False, 0)
        single += [f"smlad r10, r8, {p[k]}, {'r12' if k == 0 else 'r10'}", f"smlabt r10, r9, {q[k]}, r10"]

    def finish(accs: tuple[str, ...]) -> list[str]:
        load = [] if raw else ["ldrd r8, r9, [sp]"]
        return load + requantise_asm(rq, accs, 0, out_dtype, ("r8", "r9", "lr", "lr"), ["ldr lr, [sp, #8]"])

    store, y_step = ("str" if raw else "strb"), y_v * size
    if y_step <= 255:
        put = [f"{store} r10, [r1], #{y_step}", f"{store} r11, [r1], #{y_step}"]
    elif 2 * y_step <= 4095:
        put = [f"{store} r10, [r1]", f"{store} r11, [r1, #{y_step}]", f"addw r1, r1, #{2 * y_step}"]
    else:
        constant = [f"movw r8, #{y_step & 0xFFFF}", f"movt r8, #{y_step >> 16}"]
        put = [*constant, f"{store} r10, [r1]", f"{store} r11, [r1, r8]", "add r1, r1, r8, lsl #1"]
    loop = []
    if pairs:
        loop = [f"addw lr, r0, #{pairs * step_bytes}", *(["str lr, [sp, #24]"] if uses_end else []), "2:"]
        loop += [*pair, *finish(("r10", "r11")), *put]
        loop += [*(["ldr lr, [sp, #24]"] if uses_end else []), "cmp r0, lr", "bne 2b"]
    end = plane.lines_out * plane.u.stride * line
    lines = [
        "push {r4-r11, lr}",
        "sub sp, sp, #28",
        "ldr r12, [r2], #4",
        "ldrd r8, r9, [r2], #8",
        "ldr r10, [r2], #4",
        *(["ldrd r11, lr, [r2], #8", "strd r11, lr, [sp]"] if words >= 2 else []),
        *(["ldr r11, [r2]", "str r11, [sp, #8]"] if words == 3 else []),
    ]
    for k, word in enumerate(("r8", "r9", "r10")):
        lines += [f"sxtb16 r11, {word}", f"sxtb16 {word}, {word}, ror #8"]
        lines += [f"pkhbt {p[k]}, r11, {word}, lsl #16", f"pkhbt {q[k]}, {word}, r11"]
    lines += [
        f"movw r8, #{end & 0xFFFF}",
        f"movt r8, #{end >> 16}",
        "add r8, r8, r0",
        "str r8, [sp, #20]",
        "1:",
        "strd r0, r1, [sp, #12]",
        *loop,
        *([*single, *finish(("r10",)), f"{store} r10, [r1]"] if odd else []),
        "ldrd r0, r1, [sp, #12]",
        *_advance("r0", plane.u.stride * line, "r8"),
        *_advance("r1", y_u * size, "r8"),
        "ldr r8, [sp, #20]",
        "cmp r0, r8",
        "bne 1b",
        "add sp, sp, #28",
        "pop {r4-r11, pc}",
    ]
    unused = "__attribute__((unused))"
    tail = requantise_c(rq, 0, out_dtype, "            ")
    twin = "\n".join(
        [
            "    const int32_t *p = constants + 4;",
            "    (void)p;",
            "    int32_t w[9];",
            "    for (int32_t i = 0; i < 9; i++) { w[i] = (int8_t)((uint32_t)constants[1 + i / 3] >> i % 3 * 8 & 0xffu); }",
            f"    for (int32_t u = 0; u < {plane.lines_out}; u++) {{",
            f"        for (int32_t j = 0; j < {v.size_out}; j++) {{",
            f"            const int16_t *from = plane + u * {plane.u.stride * plane.length} + j * {v.stride};",
            "            uint32_t sum = (uint32_t)constants[0];",
            f"            for (int32_t i = 0; i < 9; i++) {{ sum += (uint32_t)(from[i / 3 * {plane.length} + i % 3] * w[i]); }}",
            "            int32_t v = (int32_t)sum;",
            *tail,
            f"            y[u * {y_u} + j * {y_v}] = ({out})v;",
            "        }",
            "    }",
        ]
    )
    text = f"""/* 3x3 depthwise, one channel: {plane.lines_out} lines of {v.size_out} outputs; constants = bias, weights (one word per line),
 * requantisation; y is stepped by {y_u} per line and by {y_v} within a line. */
{DSP}
__attribute__((naked, noinline, used)) static void {name}(
    {unused} const int16_t *plane, {unused} {out} *y, {unused} const int32_t *constants)
{{
    __asm__ volatile(
{asm_text(lines)}
    );
}}
#else
static void {name}(const int16_t *plane, {out} *y, const int32_t *constants)
{{
{twin}
}}
#endif
"""
    return name, text


SMLAD = f"""#ifndef AOT_MODEL_SMLAD
#define AOT_MODEL_SMLAD
/* Two products of int16 pairs, added to sum; the pair at `at` may lie at any even address. */
static inline int32_t smlad_at(const int16_t *at, int32_t weights, int32_t sum)
{{
{DSP}
    int32_t pair;
    memcpy(&pair, at, sizeof pair);
    __asm__("smlad %0, %1, %2, %3" : "=r"(sum) : "r"(pair), "r"(weights), "r"(sum));
    return sum;
#else
    return (int32_t)((uint32_t)sum + (uint32_t)(at[0] * (int16_t)(weights & 0xffff) + at[1] * (weights >> 16)));
#endif
}}
#endif
"""

SMMLAR = f"""#ifndef AOT_MODEL_SMMLAR
#define AOT_MODEL_SMMLAR
/* High word of value * multiplier, rounded, plus offset. */
static inline int32_t mulhi_round_add(int32_t value, int32_t multiplier, int32_t offset)
{{
{DSP}
    int32_t sum;
    __asm__("smmlar %0, %1, %2, %3" : "=r"(sum) : "r"(value), "r"(multiplier), "r"(offset));
    return sum;
#else
    return (int32_t)((((int64_t)value * multiplier + INT64_C(0x80000000)) >> 32) + offset);
#endif
}}
#endif
"""


def finish_c(rq: Requantise, out_dtype: str, constants: str) -> list[str]:
    """C that turns the accumulator `v` into the clamped value; `constants`: a pointer to {multiplier, offset[, shift]}."""
    lo, hi = (-128, 127) if out_dtype == "int8" else (0, 255)
    lo, hi = lo if rq.clamp_low is None else rq.clamp_low, hi if rq.clamp_high is None else rq.clamp_high
    offset = f"{constants}[1]"
    lines = []
    if rq.form == "ties":
        lines.append("v *= 2;")
        offset += " + (v >> 31)"
    shift = str(int(rq.shift[0])) if rq.uniform_shift else f"{constants}[2]"
    lines.append(f"v = mulhi_round_add(v, {constants}[0], {offset}) >> {shift};")
    if (lo, hi) == ((-128, 127) if out_dtype == "int8" else (0, 255)):
        return [*lines, f"v = saturate_{out_dtype}(v);"]
    return [*lines, f"v = v < {lo} ? {lo} : v > {hi} ? {hi} : v;"]


def finish_helpers(out_dtype: str) -> list[str]:
    """Texts that finish_c's code calls."""
    op, lo, hi = ("ssat", -128, 127) if out_dtype == "int8" else ("usat", 0, 255)
    saturate = f"""static inline int32_t saturate_{out_dtype}(int32_t v)
{{
{DSP}
    __asm__("{op} %0, #8, %1" : "=r"(v) : "r"(v));
    return v;
#else
    return v < {lo} ? {lo} : v > {hi} ? {hi} : v;
#endif
}}
"""
    return [SMMLAR, saturate]


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
    writer = _Writer(shape, quant, plane, rq, tail, results)
    start = b + rq.bias_shift
    rows = []
    for c in range(oc):
        taps = _packed_taps(grid[c], register, v.dilation)
        rows.append(np.concatenate([wrapped(start[c : c + 1]), taps, wrapped(np.array(requantise_words(rq, c), np.int64))]))
    words = int(rows[0].size)
    helpers: list[str] = []
    constants = [Packed("weights", np.concatenate(rows))]
    scratch = [Scratch("plane", 2 * plane.length * plane.lines, 4, "int16_t")]
    if results:
        size = 4 if rq.form == "raw" else 1
        out = "int32_t" if rq.form == "raw" else f"{quant.out_dtype}_t"
        scratch.append(Scratch("results", size * plane.lines_out * v.size_out, 4, out))
    if register:
        y_u, y_v = (v.size_out, 1) if results else (u.y_step, v.y_step)
        kernel, text = three_by_three(plane, rq, quant.out_dtype, y_u, y_v)
        helpers.append(text)
        compute = [f"{kernel}(plane, {'results' if results else 'to_y'}, weights + {words} * {writer.channel});"]
    else:
        helpers += [SMLAD, *finish_helpers(quant.out_dtype)]
        compute = writer.general(words, rows[0].size - 1 - len(requantise_words(rq, 0)))
        kernel = "C"
    if rq.form == "raw":
        requantise, text = requantise_helper(quant)
        helpers.append(text)
        constants += raw_constants(quant, oc)
    else:
        requantise = ""
    body = writer.text(compute, requantise)
    alone = plane.strips == 1 and shape.in_c == shape.out_c and shape.batch == 1
    return KernelCode(
        body=body,
        constants=tuple(constants),
        scratch=tuple(scratch),
        includes=frozenset({"string.h"}),
        helpers=tuple(helpers),
        slack=shape.in_h * shape.in_w * shape.in_c if alone else None,
        slack_step=shape.in_c,
        note=(
            f"one channel at a time in a plane of {plane.lines} x {plane.length} int16, "
            + ("two outputs per step, weights in registers" if register else "taps in pairs")
            + f"; requantisation: {rq.form}"
        ),
    )


def _packed_taps(grid: Int64, register: bool, dilation: int) -> npt.NDArray[np.int32]:
    """One channel's weights [lines, taps]: bytes w0 w1 w2 0 per line (3x3 in registers), else bytes padded to pairs."""
    lines, taps = grid.shape
    if register:
        four = np.concatenate([grid, np.zeros((lines, 1), np.int64)], axis=1)
        return four.astype(np.int8).reshape(-1).view("<i4").astype(np.int32)
    wide = np.zeros((lines, (taps - 1) * dilation + 1), np.int64)
    wide[:, ::dilation] = grid
    wide = np.concatenate([wide, np.zeros((lines, wide.shape[1] % 2), np.int64)], axis=1).reshape(-1)
    wide = np.concatenate([wide, np.zeros(-wide.size % 4, np.int64)])
    return wide.astype(np.int8).view("<i4").astype(np.int32)


@dataclass(frozen=True)
class _Writer:
    shape: ConvShape
    quant: QuantSpec
    plane: Plane
    rq: Requantise
    tail: Tail | None
    results: bool

    @property
    def multiplier(self) -> int:
        return self.shape.out_c // self.shape.in_c

    @property
    def channel(self) -> str:
        return "c" if self.multiplier == 1 else f"(c * {self.multiplier} + m)"

    def text(self, compute: list[str], requantise: str) -> str:
        s, plane = self.shape, self.plane
        u = plane.u
        cells = plane.lines * plane.length
        x = "x" if s.batch == 1 else f"(x + n * {s.in_h * s.in_w * s.in_c})"
        y = "y" if s.batch == 1 else f"(y + n * {s.out_h * s.out_w * s.out_c})"
        lines = [
            "/* the border stays as it is for all channels */",
            f"for (int32_t i = 0; i < {cells}; i++) {{",
            f"    plane[i] = {self.quant.x_zero_point};",
            "}",
        ]
        inner = compute
        if not self.results:
            first = f" + first * {u.y_step}" if plane.strips > 1 else ""
            inner = [f"{self.quant.out_dtype}_t *to_y = {y} + {self.channel}{first};", *inner]
        else:
            inner = [*inner, *self._finish(requantise)]
        if self.multiplier > 1:
            inner = [f"for (int32_t m = 0; m < {self.multiplier}; m++) {{", *("    " + line for line in inner), "}"]
        inner = [*self._gather(x), *inner]
        if plane.strips > 1:
            step, last = plane.lines_out, u.size_out
            head = [f"for (int32_t strip = 0; strip < {last}; strip += {step}) {{"]
            if last % step:  # the last strip begins earlier, so that all are of one size
                head.append(f"    const int32_t first = strip + {step} <= {last} ? strip : {last - step};")
            else:
                head.append("    const int32_t first = strip;")
            inner = [*head, *("    " + line for line in inner), "}"]
        loop = [f"for (int32_t c = 0; c < {s.in_c}; c++) {{", *("    " + line for line in inner), "}"]
        if s.batch > 1:
            loop = [f"for (int32_t n = 0; n < {s.batch}; n++) {{", *("    " + line for line in loop), "}"]
        return "\n".join([*lines, *loop]) + "\n"

    def _gather(self, x: str) -> list[str]:
        plane = self.plane
        u, v = plane.u, plane.v
        cast = f"{self.quant.x_dtype}_t"
        skip = v.pad
        if plane.strips == 1:
            head = [f"for (int32_t i = 0; i < {u.used}; i++) {{"]
            source, target = f"{x} + c + i * {u.x_step}", f"plane + (i + {u.pad}) * {plane.length} + {skip}"
            inside: list[str] = []
        else:
            head = [f"for (int32_t line = 0; line < {plane.lines}; line++) {{"]
            inside = [
                f"    const int32_t i = first * {u.stride} + line - {u.pad};",
                f"    const int outside = i < 0 || i >= {u.size_in};",
            ]
            source, target = f"{x} + c + (outside ? 0 : i) * {u.x_step}", f"plane + line * {plane.length} + {skip}"
        body = [f"    const {cast} *from = {source};", f"    int16_t *to = {target};"]
        count = v.used
        unroll = next((f for f in (8, 6, 5, 7, 4) if count % f == 0), 4) if count > 8 else count

        def copy(k: int) -> str:
            return f"to[{k}] = from[{k * v.x_step}];"

        if count <= unroll:
            body += ["    " + copy(k) for k in range(count)]
        else:
            whole = count - count % unroll
            body += [
                f"    for (const int16_t *end = to + {whole}; to != end; to += {unroll}, from += {unroll * v.x_step}) {{",
                *("        " + copy(k) for k in range(unroll)),
                "    }",
                *("    " + copy(k) for k in range(count - whole)),
            ]
        if plane.strips > 1:
            blank = [
                "    if (outside) {",
                f"        for (int32_t k = 0; k < {count}; k++) {{ to[k] = {self.quant.x_zero_point}; }}",
                "        continue;",
                "    }",
            ]
            body = [*body[:2], *blank, *body[2:]]
        return [*head, *inside, *body, "}"]

    def general(self, words: int, tap_words: int) -> list[str]:
        """Any kernel in C: weights of the channel expanded to pairs, then four outputs of a line at a time."""
        plane, rq = self.plane, self.rq
        u, v = plane.u, plane.v
        pairs = -(-v.reach // 2)
        total = u.kernel * pairs
        y_u, y_v = (v.size_out, 1) if self.results else (u.y_step, v.y_step)
        target = "results" if self.results else "to_y"
        cast = "int32_t" if rq.form == "raw" else f"{self.quant.out_dtype}_t"
        lines = [
            f"const int32_t *constants = weights + {words} * {self.channel};",
            *([f"const int32_t *finish = constants + {1 + tap_words};"] if rq.form != "raw" else []),
            f"int32_t taps[{total}];",
            f"for (int32_t k = 0; k < {total}; k++) {{",
            "    const uint32_t two = (uint32_t)constants[1 + k / 2] >> k % 2 * 16;",
            "    taps[k] = (int32_t)(((uint32_t)(int8_t)(two & 0xffu) & 0xffffu) | (uint32_t)(int8_t)(two >> 8 & 0xffu) << 16);",
            "}",
            f"for (int32_t u = 0; u < {plane.lines_out}; u++) {{",
            f"    const int16_t *from = plane + u * {u.stride * plane.length};",
            f"    {cast} *to = {target} + u * {y_u};",
        ]

        def block(count: int) -> list[str]:
            def taps_at(offset: str, tap: str) -> list[str]:
                return [f"sum{i} = smlad_at(at + {offset}{i * v.stride}, {tap}, sum{i});" for i in range(count)]

            out = [f"int32_t sum{i} = constants[0];" for i in range(count)]
            if total <= UNROLLED_PAIRS:
                for k in range(u.kernel):
                    out += ["{", f"    const int16_t *at = from + {k * u.dilation * plane.length};"]
                    out += ["    " + t for j in range(pairs) for t in taps_at(f"{2 * j} + ", f"taps[{k * pairs + j}]")]
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
                    *("    " + t for t in ([] if rq.form == "raw" else finish_c(rq, self.quant.out_dtype, "finish"))),
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

    def _finish(self, requantise: str) -> list[str]:
        """From `results` to the tail or to y."""
        plane, s = self.plane, self.shape
        v = plane.v
        line = "u" if plane.strips == 1 else "(first + u)"
        row, column = ("j", line) if plane.transposed else (line, "j")
        value = f"results[u * {v.size_out} + j]"
        if self.rq.form == "raw":
            value = f"{requantise}({value}, requantisation + 2 * {self.channel})"
        n = "0" if s.batch == 1 else "n"
        if self.tail is not None:
            store = self.tail.store("v", (n, row, column, self.channel), 1).splitlines()
        else:
            at = f"(({n} * {s.out_h} + {row}) * {s.out_w} + {column}) * {s.out_c} + {self.channel}"
            store = [f"y[{at}] = ({self.quant.out_dtype}_t)v;"]
        return [
            f"for (int32_t u = 0; u < {plane.lines_out}; u++) {{",
            f"    for (int32_t j = 0; j < {v.size_out}; j++) {{",
            f"        const int32_t v = {value};",
            *("        " + text for text in store),
            "    }",
            "}",
        ]
