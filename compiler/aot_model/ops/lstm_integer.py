"""One step of an LSTM in integers: gates of int16 in Q3.12, a cell of int16, every product requantised."""

from __future__ import annotations

import numpy as np

from aot_model.c.statements import CWriter
from aot_model.ir.admissible import ANYTHING, Range, Ranges
from aot_model.ir.expr import Expr, Index, leaf
from aot_model.ir.index import flatten
from aot_model.ir.operator import At
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.kernels.arguments import Argument
from aot_model.kernels.base import Packed, Scratch
from aot_model.kernels.int8.fully_connected_dsp import RowSums, row_sums
from aot_model.kernels.site import Site
from aot_model.kernels.target import Target
from aot_model.ops.lstm_steps import LstmLayer, LstmScales, results_of, states_of, step_loops
from aot_model.ops.quantised_tables import SigmoidInt16, sigmoid_table
from aot_model.ops.requantise import Rescale

_NO_VECTORS = "#if !AOT_MODEL_ROWS_MVE"


def function_text(name: str, op: SigmoidInt16, condition: str = "") -> str:
    """A static function of the activation; condition: the line of the preprocessor under which it is
    there.
    """
    x = Value("x", TensorType(DType.INT16, ()))

    def at(value: Value, index: Index) -> Expr:
        return leaf("x", DType.INT16, *DType.INT16.limits)

    access: At = at
    writer = CWriter(lambda cell, position: f"table[{position}]")
    (text,) = writer.compute(flatten(op.express(access, [x], (), 0)))
    body = "\n".join([*writer.lines, f"    return {text};"])
    text = f"static inline int16_t {name}(const uint16_t *table, int16_t x)\n{{\n{body}\n}}"
    return f"{condition}\n{text}\n#endif" if condition else text


def _wide_gates(inputs: int, units: int, outputs: int) -> str:
    """All gates of a cell of int16, whose sums have 64 bits."""
    return f"""for (int32_t k = 0; k < 4; k++) {{
    for (int32_t j = 0; j < {units}; j++) {{
        int64_t from_x = bias_x[k * {units} + j];
        int64_t from_h = bias_h[k * {units} + j];
        for (int32_t i = 0; i < {inputs}; i++) {{
            from_x += xt[i] * w[(k * {units} + j) * {inputs} + i];
        }}
        for (int32_t i = 0; i < {outputs}; i++) {{
            from_h += ht[i] * r[(k * {units} + j) * {outputs} + i];
        }}
        const int32_t part_x = aot_model_requantise_wide(from_x, factors[2 * k], factors[2 * k + 1]);
        const int32_t part_h = aot_model_requantise_wide(from_h, factors[8 + 2 * k], factors[9 + 2 * k]);
        gates[k * {units} + j] = (int16_t)dsp_ssat16(dsp_ssat16(part_x) + dsp_ssat16(part_h));
    }}
}}"""


def _narrow_gates(
    inputs: int, units: int, outputs: int, small: bool, together: bool, litert: bool = False
) -> str:
    """All gates of a cell of int8, four units at a time. small: no sum overflows when it is
    scaled. together: vectors of sums are scaled where they are made. litert: what comes from h is added to
    what comes from x before it is saturated, not after.
    """
    scale = (
        """    const aot_model_scaling scale_x = aot_model_scaling_of(factors[2 * k], factors[2 * k + 1]);
    const aot_model_scaling scale_h = aot_model_scaling_of(factors[8 + 2 * k], factors[9 + 2 * k]);
"""
        if small
        else ""
    )
    x, h = (
        ("aot_model_scaled(from_x, scale_x)", "aot_model_scaled(from_h, scale_h)")
        if small
        else (
            "aot_model_requantise(from_x, factors[2 * k], factors[2 * k + 1])",
            "aot_model_requantise(from_h, factors[8 + 2 * k], factors[9 + 2 * k])",
        )
    )
    from_h = f"aot_model_min_int32(aot_model_max_int32({h}, -65536), 65535)" if litert else f"dsp_ssat16({h})"
    gate = f"(int16_t)dsp_ssat16(dsp_ssat16({x}) + {from_h})"
    whole = units - units % 4
    rows = f"xt, w + unit * {inputs}, {inputs}", f"ht, r + unit * {outputs}, {outputs}"
    four = f"""    for (int32_t j = 0; j < {whole}; j += 4) {{
        int32_t sums_x[4];
        int32_t sums_h[4];
        aot_model_four_rows_int8(xt, w + (k * {units} + j) * {inputs}, {inputs}, sums_x);
        aot_model_four_rows_int8(ht, r + (k * {units} + j) * {outputs}, {outputs}, sums_h);
        for (int32_t i = 0; i < 4; i++) {{
            const int32_t from_x = sums_x[i] + bias_x[k * {units} + j + i];
            const int32_t from_h = sums_h[i] + bias_h[k * {units} + j + i];
            gates[k * {units} + j + i] = {gate};
        }}
    }}
"""
    if small and together:
        four = f"""    for (int32_t unit = k * {units}; unit < k * {units} + {whole}; unit += 4) {{
        aot_model_four_gates({rows[0]}, {rows[1]}, bias_x + unit,
            bias_h + unit, scale_x, scale_h, gates + unit);
    }}
"""
    left = f"""    for (int32_t unit = k * {units} + {whole}; unit < (k + 1) * {units}; unit++) {{
        const int32_t from_x = bias_x[unit] + aot_model_row_int8(xt, w + unit * {inputs}, {inputs});
        const int32_t from_h = bias_h[unit] + aot_model_row_int8(ht, r + unit * {outputs}, {outputs});
        gates[unit] = {gate};
    }}
"""
    loops = (four if whole else "") + (left if units % 4 else "")
    return f"for (int32_t k = 0; k < 4; k++) {{\n{scale}{loops}}}"


def _has_dsp(target: Target) -> bool:
    """Whether its code is compiled for cores with the DSP extension alone, and has no vectors."""
    conditions = (condition for t in target.lineage() for condition, _ in t.c_checks)
    return target.dialect() != "mve" and any("__ARM_FEATURE_DSP" in one for one in conditions)


def _rows_of_gates(weights: np.ndarray, bias: np.ndarray) -> RowSums:
    """weights [gate, unit, input]: the units of a gate are filled up to fours."""
    more = -weights.shape[1] % 4
    w = np.pad(weights, ((0, 0), (0, more), (0, 0)))
    return row_sums(w.reshape(-1, w.shape[2]), np.pad(bias, ((0, 0), (0, more))).reshape(-1))


def _expanded(to: str, of: str, count: int) -> str:
    """`count` bytes as pairs of int16, a multiple of four."""
    lines = [f"dsp_widen_int8({to}, {of}, {count // 4}u);"] if count // 4 else []
    if count % 4:
        begin = count - count % 4
        last = ", ".join(f"{of}[{k}]" if k < count else "0" for k in range(begin, begin + 4))
        lines.append(f"const int8_t last_{of}[4] = {{{last}}};")
        lines.append(f"dsp_widen_int8({to} + {count // 4 * 2}, last_{of}, 1u);")
    return "\n".join(lines)


def _gates_by_rows(x: RowSums, h: RowSums, inputs: int, units: int, outputs: int) -> str:
    """All gates of a cell of int8, whose rows are expanded once for all of them."""
    whole = units + -units % 4
    size_x, size_h = (whole // 4 * one.group for one in (x, h))
    behind = f"wide + {2 * x.quads}"
    return f"""{_expanded("wide", "xt", inputs)}
{_expanded(behind, "ht", outputs)}
for (int32_t k = 0; k < 4; k++) {{
    {x.name}(wide, w + k * {size_x}, sums, {x.quads}u, w + (k + 1) * {size_x});
    {h.name}({behind}, r + k * {size_h}, sums + {whole}, {h.quads}u, r + (k + 1) * {size_h});
    const aot_model_scaling scale_x = aot_model_scaling_of(factors[2 * k], factors[2 * k + 1]);
    const aot_model_scaling scale_h = aot_model_scaling_of(factors[8 + 2 * k], factors[9 + 2 * k]);
    aot_model_gates_of_sums(sums, sums + {whole}, &scale_x, &scale_h, gates + k * {units}, {units});
}}"""


def _starts(rows: RowSums, room: int) -> Ranges:
    """Of a stream: no start of a sum is larger than `room`; of joined sums the first is made of 24 bits."""
    return tuple(Range(-room, room, k, rows.group) for k in ((1, 3) if rows.joined else range(4)))


def _four_cells(scales: LstmScales, units: int, limits: tuple[int, int]) -> str:
    """Cells and hidden states, four units at a time, in Helium."""
    whole = units % 4 == 0
    z, p, inside = ("", "", "") if whole else ("_z", "_p", ", inside")

    def gate(k: int) -> str:
        at = f"{k * units} + j" if k else "j"
        return f"vmulq_n_s32(vldrhq{z}_s32(aot_model_read_int16_t(gates + {at}){inside}), 3)"

    def scaled(product: str, by: Rescale) -> str:
        return f"aot_model_four_scaled({product}, aot_model_scaling_of({by.multiplier}, {by.shift}))"

    multiplier, shift = scales.cell_argument
    argument = f"vmulq_n_s32(cell, {multiplier})"
    argument = f"vrshlq_n_s32({argument}, -{shift})" if shift else argument
    clip = scales.cell_clip
    bits = "b" if limits[1] == 127 else "h"
    lines = [
        "" if whole else f"const mve_pred16_t inside = vctp32q((uint32_t)({units} - j));",
        f"const int32x4_t take = aot_model_four_logistic_int16(table, {gate(0)});",
        f"const int32x4_t forget = aot_model_four_logistic_int16(table, {gate(1)});",
        f"const int32x4_t candidate = aot_model_four_tanh_int16(table, {gate(2)});",
        f"const int32x4_t give = aot_model_four_logistic_int16(table, {gate(3)});",
        f"const int32x4_t before = vldrhq{z}_s32(aot_model_read_int16_t(ct + j){inside});",
        f"const int32x4_t kept = {scaled('vmulq_s32(forget, before)', scales.forget)};",
        f"const int32x4_t taken = {scaled('vmulq_s32(take, candidate)', scales.input)};",
        "int32x4_t cell = vmovlbq_s16(aot_model_saturated_sum(kept, taken));",
        f"cell = vminq_s32(vmaxq_s32(cell, vdupq_n_s32(-{clip})), vdupq_n_s32({clip}));" if clip else "",
        f"vstrhq{p}_s32(aot_model_written_int16_t(ct + j), cell{inside});",
        f"const int32x4_t activated = aot_model_four_tanh_int16(table, {argument});",
        f"int32x4_t hidden = {scaled('vmulq_s32(give, activated)', scales.output)};",
        f"hidden = vaddq_n_s32(hidden, {scales.output.zero_point});" if scales.output.zero_point else "",
        f"hidden = vminq_s32(vmaxq_s32(hidden, vdupq_n_s32({limits[0]})), vdupq_n_s32({limits[1]}));",
        f"vstr{bits}q{p}_s32(aot_model_written_int{8 if bits == 'b' else 16}_t(ht + j), hidden{inside});",
    ]
    body = "\n".join(f"    {line}" for line in lines if line)
    return f"for (int32_t j = 0; j < {units}; j += 4) {{\n{body}\n}}"


def _room(wide: bool, bits: int, taps: int) -> int:
    """How large a bias may be, so that no sum of `taps` products and it has more bits (62 of int64)."""
    return int((1 << (62 if wide else bits)) - 1 - taps * 128 * (1 << 15 if wide else 128))


def integer_lstm(op: LstmLayer, site: Site) -> None:
    """The call of an LSTM in integers."""
    scales = op.scales
    assert scales is not None
    _, _, inputs, units, outputs = op.sizes(site)
    w, r, b = (site.input(k).data for k in (3, 4, 5))
    assert w is not None and r is not None and b is not None
    wide = site.input(0).dtype is DType.INT16
    kind = np.int64 if wide else np.int32
    # Zero points are folded: sum((x - z) * w) = sum(x * w) - z * sum(w).
    # Beyond the type they stay beyond what sums have room for, and are refused.
    ends = np.iinfo(kind)
    bias_x = b.astype(np.int64) - scales.x_zero_point * w.astype(np.int64).sum(axis=2)
    bias_x = np.clip(bias_x, ends.min, ends.max).astype(kind)
    bias_h = (-scales.output.zero_point * r.astype(np.int64).sum(axis=2)).astype(kind)
    factors = np.asarray(
        [[v for k in range(4) for v in (s[k].multiplier, s[k].shift)] for s in (scales.x, scales.h)],
        dtype=np.int32,
    )
    multiplier, shift = scales.cell_argument
    bits = scales.litert
    litert = bits is not None
    to_the_right = all(-30 <= by.shift <= 0 for by in (scales.forget, scales.input, scales.output))
    vectors = site.target.dialect() == "mve" and to_the_right and not litert
    # Under a condition they have other names, for layers of both kinds may be in one file.
    end, condition = ("_plain", _NO_VECTORS) if vectors else ("", "")
    names = [
        f"aot_model_{name}{end}"
        for name in ("logistic_int16", "tanh_int16_3_0", f"tanh_int16_{multiplier}_{shift}")
    ]
    kinds = SigmoidInt16(False, 3, 0), SigmoidInt16(True, 3, 0), SigmoidInt16(True, multiplier, shift)
    helpers = tuple(
        function_text(*named, condition) for named in dict(zip(names, kinds, strict=True)).items()
    )
    logistic, gate_activation, cell_activation = (f"{name}(table, " for name in names)
    low, high = site.node.outputs[1].dtype.limits

    def product(a: str, c: str, by: Rescale) -> str:
        """Of a logistic function (0 to 32767) and an int16: less than 2^30."""
        small = "_small" if by.shift <= 0 else ""
        return f"aot_model_requantise{small}((int32_t){a} * {c}, {by.multiplier}, {by.shift})"

    kept, taken = product("forget", "ct[j]", scales.forget), product("take", "candidate", scales.input)
    if bits is not None:
        helpers, logistic = (), "aot_model_q15_logistic("
        gate_activation, cell_activation = "aot_model_q15_tanh(3, ", f"aot_model_q15_tanh({bits}, "
        kept = "aot_model_rounding_shift((int32_t)forget * ct[j], 15)"
        taken = f"aot_model_rounding_shift((int32_t)take * candidate, {15 + bits})"
    limit = scales.cell_clip
    clip = f"cell = aot_model_min_int32(aot_model_max_int32(cell, -{limit}), {limit});" if limit else ""
    zero = f" + {scales.output.zero_point}" if scales.output.zero_point else ""
    # No sum overflows; small: nor when it is doubled, and shifts are to the right.
    shifts, right = Range(-31, 14 if wide else 30, 1, 2), Range(-30, 0, 1, 2)
    room_x, room_h = (_room(wide, 31, n) for n in (inputs, outputs))
    small = (
        not wide
        and right.holds(factors)
        and all(
            int(np.abs(v).max(initial=0)) <= _room(wide, 30, n)
            for v, n in ((bias_x, inputs), (bias_h, outputs))
        )
    )
    if small:
        shifts = right
        room_x, room_h = (_room(wide, 30, n) for n in (inputs, outputs))
    rows = (
        (_rows_of_gates(w, bias_x), _rows_of_gates(r, bias_h))
        if small and not litert and _has_dsp(site.target)
        else None
    )
    gates = (
        _gates_by_rows(*rows, inputs, units, outputs)
        if rows
        else _wide_gates(inputs, units, outputs)
        if wide
        else _narrow_gates(
            inputs, units, outputs, small, site.target.dialect() == "mve" and not litert, litert
        )
    )
    inside = (
        "dsp_ssat8(hidden)"
        if (low, high) == (-128, 127)
        else (f"aot_model_min_int32(aot_model_max_int32(hidden, {low}), {high})")
    )
    cells = f"""for (int32_t j = 0; j < {units}; j++) {{
    const int16_t take = {logistic}gates[j]);
    const int16_t forget = {logistic}gates[{units} + j]);
    const int16_t candidate = {gate_activation}gates[{2 * units} + j]);
    const int16_t give = {logistic}gates[{3 * units} + j]);
    int32_t cell = aot_model_saturate_int16({kept})
        + aot_model_saturate_int16({taken});
    cell = aot_model_saturate_int16(cell);
    {clip}
    ct[j] = (int16_t)cell;
    const int32_t hidden = {product("give", f"{cell_activation}(int16_t)cell)", scales.output)}{zero};
    ht[j] = ({site.node.outputs[1].dtype.c_type}){inside};
}}"""
    if vectors:
        four = _four_cells(scales, units, (int(low), int(high)))
        cells = f"#if AOT_MODEL_ROWS_MVE\n{four}\n#else\n{cells}\n#endif"
    step = f"{gates}\n{cells}"
    body = step_loops(op, site, "\n".join(line for line in step.split("\n") if line.strip()))
    constants: list[tuple[str, np.ndarray, Ranges | None]] = (
        [("w", rows[0].words, _starts(rows[0], room_x)), ("r", rows[1].words, _starts(rows[1], room_h))]
        if rows
        else [
            ("w", w, ANYTHING),
            ("r", r, ANYTHING),
            ("bias_x", bias_x, (Range(-room_x, room_x),)),
            ("bias_h", bias_h, (Range(-room_h, room_h),)),
        ]
    )
    constants.append(("factors", factors.reshape(-1), (shifts,)))
    if not litert:
        constants.append(("table", np.asarray(sigmoid_table(), dtype=np.uint16), None))
    arguments = [
        *states_of(site),
        *(Argument(k, Packed(k, np.ascontiguousarray(v), v.itemsize, fits)) for k, v, fits in constants),
    ]
    arguments.append(Argument("gates", Scratch("gates", 4 * units * 2, 2, "int16_t")))
    if rows:
        helpers += tuple(dict.fromkeys(one.text for one in rows))
        pieces = (
            Scratch("wide", 8 * (rows[0].quads + rows[1].quads), 4, "uint32_t"),
            Scratch("sums", 8 * (units + -units % 4), 4, "int32_t"),
        )
        arguments += [Argument(one.name, one) for one in pieces]
    site.call(
        "lstm",
        body,
        [*arguments, *results_of(site)],
        includes=[
            "string.h",
            "aot_model/saturate.h",
            "aot_model/scalar.h",
            "aot_model/int8_rows.h",
            *(["aot_model/fixed_point16.h"] if litert else []),
        ],
        helpers=helpers,
        macs=op.macs(site),
        note="integer LSTM",
    )
