"""3x3 depthwise micro-kernel for cores with the DSP extension: weights stay in registers, two outputs per
step.

Per line of the kernel the weights are the pairs P = (w0, w1) and Q = (w1, w2). At stride 1, from the four
neighbours A = (x0, x1) and B = (x2, x3) of a line of the plane:

    y0 += SMLAD(A, P) + SMLABT(B, Q)        y1 += SMLATB(A, P) + SMLAD(B, Q)

which is 3 LDRD and 12 multiplications for two outputs.
"""

from __future__ import annotations

from aot_model.kernels.int8.dsp import Reload, assembly, dsp_function
from aot_model.kernels.int8.finish import finish_c, form_name, requantise, requantise_words, stored
from aot_model.kernels.int8.plane import Plane
from aot_model.kernels.int8.requantise import RequantisePlan


def _advance(register: str, by: int, free: str) -> list[str]:
    if by <= 4095:
        return [f"addw {register}, {register}, #{by}"]
    return [
        f"movw {free}, #{by & 0xFFFF}", f"movt {free}, #{by >> 16}", f"add {register}, {register}, {free}"
    ]


def three_by_three(plane: Plane, rq: RequantisePlan, out_dtype: str, y_u: int, y_v: int,
                   overlaps: bool = True) -> tuple[str, str]:  # fmt: skip
    """(name, text) of the micro-kernel: all outputs of one channel's plane; y_u, y_v: steps of y in elements.
    overlaps: whether a load of one word begins while the one before it is under way; cores on which it does
    not can use the first of two words sooner when they come apart.
    """
    raw = rq.form == "raw"
    out, size = stored(rq, out_dtype)
    v, line = plane.v, 2 * plane.length
    pairs, odd = divmod(v.size_out, 2)
    name = f"depthwise3x3_{plane.lines_out}x{v.size_out}_l{plane.length}_s{plane.u.stride}{v.stride}"
    name += f"_y{y_u}_{y_v}_{form_name(rq, out_dtype)}"
    p, q = ("r2", "r4", "r6"), ("r3", "r5", "r7")
    uses_end = rq.form == "ties" or not (rq.uniform_shift or raw)
    words = len(requantise_words(rq, 0))
    step_bytes = 4 * v.stride

    def two(first: str, second: str, base: str, offset: int) -> list[str]:
        apart = [f"ldr.w {first}, [{base}, #{offset}]", f"ldr.w {second}, [{base}, #{offset + 4}]"]
        return [f"ldrd {first}, {second}, [{base}, #{offset}]"] if overlaps else apart

    def loads(k: int, last: bool, advance: int) -> list[str]:
        if last:
            apart = ["ldr.w r9, [r0, #4]", f"ldr r8, [r0], #{advance}"]
            return [f"ldrd r8, r9, [r0], #{advance}"] if overlaps else apart
        return two("r8", "r9", "r0", k * line)

    pair: list[str] = []
    for k, last in ((1, False), (2, False), (0, True)):
        first = k == 1
        into0, into1 = ("r12", "r12") if first else ("r10", "r11")
        advance = 0 if v.stride == 2 else step_bytes
        pair += loads(k, last and advance > 0, advance)
        pair.append(f"smlad r10, r8, {p[k]}, {into0}")
        if v.stride == 1:
            pair += [
                f"smlatb r11, r8, {p[k]}, {into1}", f"smlabt r10, r9, {q[k]}, r10",
                f"smlad r11, r9, {q[k]}, r11"
            ]
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
        load = [] if raw else two("r8", "r9", "sp", 0)
        return load + assembly(
            requantise(rq, accs, 0, out_dtype, ("r8", "r9", "lr", "lr"), [Reload("lr", 8, "p[2]")]))

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
    twin = [
        "const int32_t *p = constants + 4;", "(void)p;", "int32_t w[9];", "for (int32_t i = 0; i < 9; i++) {",
        "w[i] = (int8_t)((uint32_t)constants[1 + i / 3] >> i % 3 * 8 & 0xffu);", "}",
        f"for (int32_t u = 0; u < {plane.lines_out}; u++) {{",
        f"for (int32_t j = 0; j < {v.size_out}; j++) {{",
        f"const int16_t *from = plane + u * {plane.u.stride * plane.length} + j * {v.stride};",
        "uint32_t sum = (uint32_t)constants[0];",
        "for (int32_t i = 0; i < 9; i++) {",
        f"sum += (uint32_t)(from[i / 3 * {plane.length} + i % 3] * w[i]);", "}",
        "int32_t v = (int32_t)sum;", *([] if raw else finish_c(rq, out_dtype, "p")),
        f"y[u * {y_u} + j * {y_v}] = ({out})v;", "}", "}",
    ]  # fmt: skip
    comment = (f"3x3 depthwise, one channel: {plane.lines_out} lines of {v.size_out} outputs; constants = "
               f"bias, weights (one word per line), requantisation; y is stepped by {y_u} per line and by "
               f"{y_v} within a line.")
    parameters = ("const int16_t *plane", f"{out} *y", "const int32_t *constants")
    return name, dsp_function(name, comment, parameters, lines, twin)
