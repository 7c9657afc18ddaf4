"""Fully connected layer (one row of input) for cores with the DSP extension: four output rows share the
input.

Weights are joined in pairs of rows as in gemm_dsp (one SXTB16 feeds four products). Per four inputs x four
rows:

    expanded    LDRD (int16 input), LDM (4 words of weights), 4 SXTB16, 8 SMLAD = 14 instructions for 16 MACs
    in place    LDR (int8 input), 2 SXTB16 in the LDRD's place                  = 16, without scratch
    apart       6 LDR in the place of LDRD and LDM: 18, but 19 cycles of a Cortex-M4 and not 20, since
                neighbouring LDRs overlap (six take seven cycles), and an LDM or LDRD with nothing

The input is expanded where there are enough rows to pay for it and scratch is small. Rows beyond a multiple
of four are computed as rows of zeros and not stored.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from aot_model.ir.admissible import ANYTHING
from aot_model.kernels.base import ConvShape, KernelCode, Packed, Scratch, Tail
from aot_model.kernels.int8.dsp import HEADER, Load, Peek, Schedule, assembly, dsp_function, op, twin
from aot_model.kernels.int8.finish import Rule, form_name, requantise_streamed, stored
from aot_model.kernels.int8.gemm_dsp import pack_pairs, stream_lines, stream_twin
from aot_model.kernels.int8.patch_dsp import patch_layout, sum_words, sums_of_row, with_sums
from aot_model.kernels.int8.requantise import RequantisePlan, fold_zero_point
from aot_model.kernels.int8.spec import Bias, Int32, QuantSpec, Weights

UNROLL = 4
ROWS = 4
ACCUMULATORS = ("r2", "r3", "r4", "r5")
"""A and B of the first pair of rows, of the second."""
EXPANDED_BYTES = 512
"""Scratch that the expansion of the input may take."""


def _products(joined: bool, x_dtype: str, expanded: bool, apart: bool) -> Schedule:
    """Four inputs and four rows. apart: a load for each word, in registers beyond r7 or with write-back, so
    that every instruction has 32 bits.
    """
    ext = "sxtb16" if x_dtype == "int8" else "uxtb16"
    words, low, high, free = ("r6", "r7", "r8", "r9"), "r10", "r11", "r12"
    step: Schedule = [Load(words, "r1")]
    if apart:
        words, low, high, free = ("r8", "r9", "r10", "r11"), "r6", "r12", "r7"
        step = [*(Peek(words[k], "r1", 4 * k) for k in (1, 2, 3)), Load(words[:1], "r1", skip=12)]
    if not expanded:
        step += [Load((low,), "r0", of_bytes=True), op(f"{ext}_ror8", high, low), op(ext, low, low)]
    elif apart:
        step += [Peek(high, "r0", 4), Load((low,), "r0", skip=4)]
    else:
        step.append(Load((low, high), "r0"))
    for x, loaded in ((low, words[:2]), (high, words[2:])):
        lasts: Schedule = []
        for which, w in enumerate(loaded):
            a, b = ACCUMULATORS[2 * which], ACCUMULATORS[2 * which + 1]
            if joined:
                step += [op("smlad", a, x, w, a), op("sxtb16", w, w)]
            else:
                step += [op("sxtb16_ror8", free, w), op("sxtb16", w, w), op("smlad", a, x, free, a)]
            lasts.append(op("smlad", b, x, w, b))
        step += lasts  # a Cortex-M7 has extended the second word by then, beside products
    return step


def row_kernel(
    rq: RequantisePlan,
    joined: bool,
    quant: QuantSpec,
    expanded: bool,
    shared: bool,
    apart: bool = False,
    common: bool = False,
) -> tuple[str, str]:
    """(name, text) of the micro-kernel: all groups of four rows. shared: all rows requantise alike. common:
    the stream has weights alone, `own` what belongs to this call.
    """
    raw = rq.form == "raw"
    out, size = stored(rq, quant.out_dtype)
    source = "uint32_t" if expanded else f"{quant.x_dtype}_t"
    letter = ("w" if expanded else quant.x_dtype[0]) + ("a" if apart else "") + ("c" if common else "")
    name = f"rows4_{letter}{'j' if joined else 's'}{'u' if shared else ''}_{form_name(rq, quant.out_dtype)}"
    acc = ACCUMULATORS
    step = _products(joined, quant.x_dtype, expanded, apart)
    align = 8 if joined else 0
    finish: Schedule = [op("sub", a, a, b) for a, b in (acc[:2], acc[2:])] if joined else []
    at = ("r12", "table") if shared else ("r12", "own") if common else ("r1", "")
    for i, accs in enumerate((acc[0::2], acc[1::2]) if shared else ((a,) for a in acc)):
        constants = ("r6", "r7", "r8", "r9")
        finish += requantise_streamed(rq, accs, 0 if i % 2 else align, quant.out_dtype, constants, at)
    written = {r for one in (*step, *finish) for r in ((one.to,) if isinstance(one.to, str) else one.to)}
    store = "str" if raw else "strb"
    begin, before, after = ["ldmia r1!, {r2-r5}"], ["ldr r12, [sp, #16]"] if shared else [], []
    if common:
        begin = ["ldr r12, [sp, #20]", "ldmia r12!, {r2-r5}", "str r12, [sp, #20]"]
        if not shared and not rq.bare:
            before, after = ["ldr r12, [sp, #20]"], ["str r12, [sp, #20]"]
    frame = 28 if common else 20
    arguments = [
        f"ldr r4, [sp, #{frame + 36}]",  # end of the stream
        "strd r0, r2, [sp]",
        "str r4, [sp, #8]",
        *([f"ldr r4, [sp, #{frame + 40}]", "str r4, [sp, #20]"] if common else []),
        *([f"ldr r4, [sp, #{frame + 40 + 4 * common}]", "str r4, [sp, #16]"] if shared else []),
        f"add lr, r0, r3, lsl #{3 if expanded else 2}",
    ]
    stores = ["ldr r6, [sp, #4]", *[f"{store} {a}, [r6], #{size}" for a in acc], "str r6, [sp, #4]"]
    lines = stream_lines(frame, arguments, step, UNROLL, 12, ["cmp r0, lr"], ["1:", *begin, "ldr r0, [sp]"],
                         [*before, *assembly(finish), *after, *stores, "ldr r12, [sp, #8]"],
                         "r1, r12")  # fmt: skip
    x = f"const {source} *r0 = x;" + "\nconst int32_t *table = shared;" * shared
    registers = [r for k in range(2, 13) if (r := f"r{k}") in written]
    body = stream_twin(registers, twin([Load(acc, "own" if common else "r1")]),
                       "uint32_t k = 0; k < quads; k++", step, finish, [f"*y++ = ({out}){a};" for a in acc],
                       x=x)  # fmt: skip
    parameters = f"const {source} *x, const int32_t *stream, {out} *y, uint32_t quads, const int32_t *end"
    parameters += ", const int32_t *own" * common + ", const int32_t *shared" * shared
    comment = "All groups of four output rows; stream = per group start values, weights, requantisation."
    if common:
        comment = "All groups of four output rows; stream = weights, own = start values, requantisation."
    return name, dsp_function(name, comment, parameters, lines, body)


@dataclass(frozen=True)
class RowSums:
    """Sums of an expanded row of int8 with all rows of weights: the micro-kernel and its stream."""

    name: str
    text: str
    words: Int32
    quads: int
    joined: bool

    @property
    def group(self) -> int:
        """Words of four rows."""
        return ROWS + 4 * self.quads


def row_sums(weights: Weights, start: Weights) -> RowSums:
    """weights [rows, taps] of int8, start [rows]; rows: a multiple of four. The kernel gets the row as pairs
    of int16, a multiple of four taps, and stores int32.
    """
    count, taps = weights.shape
    w, b = weights.astype(np.int64), start.astype(np.int64)
    ordered = patch_layout(1, taps).ordered(w)
    quant = QuantSpec.accumulators(0, "int8", 0)
    stream = pack_pairs(w, b, quant, ordered, np.arange(count).reshape(-1, 2))
    name, text = row_kernel(stream.requantise, stream.joined, quant, True, False)
    return RowSums(name, text, stream.words(together=2), ordered.shape[1] // 4, stream.joined)


def fully_connected(
    shape: ConvShape,
    weights: Weights,
    bias: Bias,
    quant: QuantSpec,
    tail: Tail | None = None,
    expanded_bytes: int = EXPANDED_BYTES,
    apart: bool = False,
    common: bool = False,
) -> KernelCode:
    """weights [out_c, in_c]; one row of input, dense, and a zero point of the weights that `sums_fit`.
    apart: fewer cycles of a Cortex-M4, but more instructions. common: other calls have the same weights,
    which are a constant of their own then, there once for all.
    """
    oc, ic = shape.out_c, shape.in_c
    w, b = fold_zero_point(weights.reshape(oc, ic), bias, quant)
    patch, zero = patch_layout(1, ic), quant.weight_zero_point
    taps = patch.length
    sums = sum_words(taps, zero)
    ordered = with_sums(patch.ordered(weights.reshape(oc, ic)), zero, sums)
    ordered = np.pad(ordered, ((0, 0), (0, -ordered.shape[1] % 4)))
    quads = ordered.shape[1] // 4
    rows = oc + -oc % ROWS
    stream = pack_pairs(w, b, quant, ordered, np.minimum(np.arange(rows), oc - 1).reshape(-1, 2))
    rq, joined, ends = stream.requantise, stream.joined, stream.ends
    expanded = ic % 4 != 0 or (2 * taps <= expanded_bytes and oc >= 16) or sums > 0
    shared = ends.shape[1] == 4 and bool((ends == ends[0]).all())
    table = ends[0] if shared else np.array([], np.int32)
    stream = replace(stream, ends=ends[:, :0]) if shared else stream
    own = replace(stream, taps=stream.taps[:, :0])
    if common:
        stream = replace(stream, starts=stream.starts[:, :0], ends=ends[:, :0])
    words = stream.words(together=2)
    group = ROWS * words.size // rows

    rule = Rule.of(rq, quant, oc)
    out, size = stored(rq, quant.out_dtype)
    kernel, text = row_kernel(rq, joined, quant, expanded, shared, apart, common)
    layout = "for each four inputs, two rows and two inputs in a word"
    parts = ["start values of the sums", *([] if common else [layout])]
    around = "; ".join([*parts, *([] if common and shared else ["numbers of the requantisation"])])
    packed = [Packed("weights", words if common else np.concatenate([table, words]), admissible=ANYTHING,
                     layout=f"for each four rows: {layout if common else around}")]  # fmt: skip
    if common:
        packed.append(Packed("starts", own.words(together=2), admissible=ANYTHING,
                             layout=f"for each four rows: {around}"))  # fmt: skip
    if common and shared:
        packed.append(Packed("numbers", table, admissible=ANYTHING, layout="of all rows' requantisation"))
    lines, scratch, source = [], [], "x"
    if expanded:
        widen, source = f"dsp_widen_{quant.x_dtype}", "wide"
        scratch.append(Scratch("wide", 8 * quads, 4, "uint32_t"))
        if ic // 4:
            lines.append(f"{widen}(wide, x, {ic // 4}u);")
        if ic % 4:
            last = ", ".join(f"x[{k}]" if k < ic else "0" for k in range(ic - ic % 4, taps))
            lines += [
                f"const {quant.x_dtype}_t last[4] = {{{last}}};",
                f"{widen}(wide + {ic // 4 * 2}, last, 1u);",
            ]
        lines += sums_of_row(taps, sums, 2 * quads)
    through = tail is not None or rq.form == "raw"
    direct = 0 if through else oc // ROWS
    base = 0 if common else int(table.size)

    def call(y: str, begin: int, end: int) -> str:
        """Groups of rows from the first to before the second."""
        starts = f", starts + {begin * 2 * own.pair_words}" if common else ""
        table_at = "" if not shared else ", numbers" if common else ", weights"
        return (
            f"{kernel}({source}, weights + {base + begin * group}, {y}, {quads}u, "
            f"weights + {base + end * group}{starts}{table_at});"
        )

    if direct:
        lines.append(call("y", 0, direct))
    if through or oc % ROWS:
        scratch.append(Scratch("results", (rows - direct * ROWS) * size, 4, out))
        lines.append(call("results", direct, rows // ROWS))
        offset = direct * ROWS
        to = f"{offset} + c" if offset else "c"
        lines += rule.store_each(oc - offset, "results[c]", to, quant.out_dtype, tail, ("0", "0", "0"))
    return KernelCode(
        body="\n".join(lines) + "\n",
        constants=(*packed, *rule.constants),
        scratch=tuple(scratch),
        includes=frozenset({HEADER}),
        helpers=(text, *rule.helpers),
        slack=ic if expanded or through else None,
        note=f"four rows at a time, input {'expanded once' if expanded else 'expanded on the way'}; "
        f"requantisation: {rq.form}",
    )
