"""The LSTM of TFLite over a sequence, in floats or in integers, with everything that its file format can ask
for.

    i, f, o = sigmoid(W x + R h + P c + b)    g = activation(W x + R h + b)    c = f * c + i * g    h = o *
                                              activation(c)

Options: peepholes P (diagonal), layer normalisation of the gates' sums, a projection of h, clipping of c and
of the projection, the input gate coupled as 1 - f. Integers: gates are int16 in Q3.12, the cell is int16,
every product is requantised. Source: TensorFlow Lite's UNIDIRECTIONAL_SEQUENCE_LSTM.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from aot_model.c.expr import CWriter, float_literal
from aot_model.ir.admissible import ANYTHING, Range, Ranges
from aot_model.ir.expr import Expr, Index, leaf
from aot_model.ir.index import flatten
from aot_model.ir.operator import Arrays, At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.kernels.arguments import Argument, written
from aot_model.kernels.base import Packed, Scratch
from aot_model.kernels.site import Site
from aot_model.ops.quantised_tables import SigmoidInt16, sigmoid_table
from aot_model.ops.registry import operator, required
from aot_model.ops.requantise import Rescale

GATES = ("input", "forget", "cell", "output")


@dataclass(frozen=True)
class LstmScales:
    """Factors of an integer LSTM; the gates' in the order of GATES."""

    x_zero_point: int
    x: tuple[Rescale, ...]
    h: tuple[Rescale, ...]
    forget: Rescale
    """Forget gate times cell, in the cell's scale."""
    input: Rescale
    """Input gate times candidate, in the cell's scale."""
    output: Rescale
    """Output gate times activated cell, in the hidden state's scale; its zero point is the hidden state's."""
    cell_argument: tuple[int, int]
    """(multiplier, shift) of the activation of the cell, see SigmoidInt16."""
    cell_clip: int = 0


@operator("SequenceLstm", domain="aot")
class SequenceLstm(Operator):
    """Inputs: x, h, c, W [4, H, I], R [4, H, O], b [4, H], P [3, H], layer norm [4, H], projection [O, H],
    its bias [O].

    x is (B, T, I), or (T, B, I) when time_major. Results: y, h after the last step, c after the last step.
    """

    stores_itself: ClassVar[bool] = True

    time_major: bool = False
    cell_clip: float = 0.0
    projection_clip: float = 0.0
    coupled: bool = False
    activation: str = "TANH"
    scales: LstmScales | None = None

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, h, c, w, r, _ = (required(inputs, k) for k in range(6))
        if x.type.rank != 3 or w.type.rank != 3 or r.type.rank != 3 or w.shape[0] != 4 or 0 in (*x.shape,
                                                                                                *w.shape,
                                                                                                *r.shape):
            raise OperatorError(f"x {x.type}, W {w.type} and R {r.type} do not fit each other")
        batch, units, out = x.shape[1 if self.time_major else 0], w.shape[1], r.shape[2]
        wanted = {
            1: (batch, out), 2: (batch, units), 3: (4, units, x.shape[2]), 4: (4, units, out), 5: (4, units),
            6: (3, units), 7: (4, units), 8: (out, units), 9: (out,)
        }
        for k, shape in wanted.items():
            value = inputs[k] if k < len(inputs) else None
            if value is not None and value.shape != shape:
                raise OperatorError(f"input {k} is {value.type}, its shape should be {list(shape)}")
        if self._input(inputs, 8) is None and out != units:
            raise OperatorError(f"{units} units give {out} outputs without a projection")
        if self.scales is not None and any(self._input(inputs, k) is not None for k in range(6, 10)):
            raise OperatorError(
                "peepholes, layer normalisation and projection of integer LSTMs are not supported", "E202")
        self._check_types(inputs)
        return [TensorType(x.dtype, (*x.shape[:2], out)), h.type, c.type]

    def _check_types(self, inputs: Inputs) -> None:
        x, h, c, w, r, b = (required(inputs, k) for k in range(6))
        if self.scales is None:
            if {v.dtype for v in inputs if v is not None} != {DType.FLOAT32}:
                raise OperatorError(
                    f"x {x.type}, states {h.type} and {c.type} and weights {w.type} without quantisation are "
                    "not all float32",
                    "E202")
            if self.activation not in _FLOAT_ACTIVATIONS:
                raise OperatorError(f"activation {self.activation} is not supported", "E202")
            return
        wide = x.dtype is DType.INT16
        fits = x.dtype in (DType.INT8, DType.INT16) and h.dtype is x.dtype and c.dtype is DType.INT16
        if not fits or {w.dtype, r.dtype} != {DType.INT8
                                              } or b.dtype is not (DType.INT64 if wide else DType.INT32):
            raise OperatorError(
                f"x {x.type}, states {h.type} and {c.type}, weights {w.type} and biases {b.type} do not go "
                "together",
                "E202")
        if w.data is None or r.data is None or b.data is None:
            raise OperatorError("weights that are computed at run time are not supported", "E202")
        if self.activation != "TANH" or self.coupled:
            raise OperatorError(
                "integer LSTMs have the activation TANH and a gate of their own for the input", "E202")

    @staticmethod
    def _input(inputs: Inputs, k: int) -> Value | None:
        return inputs[k] if k < len(inputs) else None

    def lower(self, site: Site) -> None:
        (_float_lstm if self.scales is None else _integer_lstm)(self, site)

    def sizes(self, site: Site) -> tuple[int, int, int, int, int]:
        """(batch, steps, inputs, units, outputs)."""
        x, w, r = site.input(0), site.input(3), site.input(4)
        batch, steps = (x.shape[1], x.shape[0]) if self.time_major else (x.shape[0], x.shape[1])
        return batch, steps, x.shape[2], w.shape[1], r.shape[2]

    def macs(self, site: Site) -> int:
        batch, steps, inputs, units, outputs = self.sizes(site)
        projection = outputs * units if site.node.input(8) is not None else 0
        return batch * steps * (4 * units * (inputs + outputs) + projection)

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(17)

        def real(*shape: int) -> np.ndarray:
            return np.asarray(rng.uniform(-1, 1, shape), np.float32)

        def whole(dtype: type[Any], size: int, *shape: int) -> np.ndarray:
            return np.asarray(rng.integers(-size, size, shape), dtype)

        plain = (real(2, 3, 4), real(2, 5), real(2, 5), real(4, 5, 4), real(4, 5, 5), real(4, 5))
        short = (real(3, 2, 4), real(2, 3), real(2, 5), real(4, 5, 4), real(4, 5, 3), real(4, 5), real(3, 5),
                 real(4, 5), real(3, 5), real(3))
        fixed = frozenset(range(3, 10))
        given: list[dict[str, Any]] = [{}, {"cell_clip": 0.5}, {"coupled": True}, {"activation": "RELU"},
                                       {"activation": "RELU6"}, {"activation": "NONE"}]
        samples = [Sample(plain, g, fixed, 3) for g in given] + [
            Sample((*plain, short[6]), {}, fixed, 3),
            Sample((*plain, None, short[7]), {}, fixed, 3),
            Sample((*plain, short[6], short[7]), {"coupled": True}, fixed, 3)
        ]
        samples += [
            Sample(short, {"time_major": True, "projection_clip": 0.8, "cell_clip": 0.9}, fixed, 3),
            Sample((*short[:6], None, None, short[8]), {"time_major": True}, fixed, 3)
        ]
        each = tuple(Rescale(0, 1503238553 + k * 2**26, -4 + k % 2) for k in range(4))
        scales = LstmScales(-6, each, each[::-1], Rescale(0, 2**30, -14), Rescale(0, 1503238553, -15),
                            Rescale(9, 1717986918, -21), (3, 0))
        narrow = (whole(np.int8, 128, 2, 3, 4), whole(np.int8, 128, 2, 5), whole(np.int16, 9000, 2, 5),
                  whole(np.int8, 127, 4, 5, 4), whole(np.int8, 127, 4, 5, 5), whole(np.int32, 4000, 4, 5))
        samples += [
            Sample(narrow, {"scales": s}, fixed, 3, tolerance=2)
            for s in (scales, replace(scales, cell_clip=5000))
        ]
        left = replace(scales, x=tuple(replace(v, shift=1) for v in each))
        light = (*narrow[:3], narrow[3] // 32, *narrow[4:])
        samples.append(Sample(light, {"scales": left}, fixed, 3, tolerance=2))
        samples.append(
            Sample((narrow[0][:, :1], *narrow[1:]), {"scales": replace(scales, cell_argument=(20000, 13))},
                   fixed,
                   3,
                   tolerance=3))
        wide = (narrow[0].astype(np.int16) * 200, narrow[1].astype(np.int16) * 200, *narrow[2:5],
                narrow[5].astype(np.int64) * 200)
        each = tuple(Rescale(0, 23000 + k * 1000, -12 + k % 2) for k in range(4))
        return [
            *samples,
            Sample(wide, {
                "scales": replace(scales, x=each, h=each, x_zero_point=0, output=Rescale(0, 1717986918, -14))
            },
                   fixed,
                   3,
                   tolerance=256)
        ]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x, h, c, w, r, b, *more = (None if a is None else np.asarray(a, np.float64) for a in arrays)
        p, norm, projection, q = (*more, None, None, None, None)[:4]
        assert x is not None and h is not None and c is not None
        assert w is not None and r is not None and b is not None
        s = self.scales
        steps, rows = x if self.time_major else x.swapaxes(0, 1), []

        def size(by: Rescale, word: int = 31) -> float:
            return by.multiplier * 2.0 ** (by.shift - word)

        for now in steps:
            if s is None:
                sums = np.einsum("kji,ni->knj", w, now) + np.einsum(
                    "kji,ni->knj", r, h) + (0 if norm is not None else b[:, None])
            else:  # gates in Q3.12, the cell as it is stored
                word = 15 if np.asarray(arrays[0]).dtype == np.int16 else 31
                from_x = (np.einsum("kji,ni->knj", w, now - s.x_zero_point) + b[:, None]) * np.asarray(
                    [size(v, word) for v in s.x])[:, None, None]
                from_h = np.einsum("kji,ni->knj", r, h - s.output.zero_point) * np.asarray(
                    [size(v, word) for v in s.h])[:, None, None]
                sums = np.clip(
                    np.clip(np.rint(from_x), -32768, 32767) + np.clip(np.rint(from_h), -32768, 32767), -32768,
                    32767) / 4096

            def gate(k: int, peep: np.ndarray | None, sums: np.ndarray = sums) -> np.ndarray:
                total = sums[k] if peep is None or p is None or k == 2 else sums[k] + peep * p[min(k, 2)]
                if norm is not None:
                    total = (total - total.mean(1, keepdims=True)) / np.sqrt(total.var(
                        1, keepdims=True)) * norm[k] + b[k]
                return np.asarray(total if k == 2 else 1 / (1 + np.exp(-total)))

            functions: dict[str, Callable[[np.ndarray], np.ndarray]] = {
                "TANH": np.tanh, "RELU": lambda v: np.maximum(v, 0), "RELU6": lambda v: np.clip(v, 0, 6),
                "NONE": lambda v: v
            }
            squash = functions[self.activation]
            forget = gate(1, c)
            take, candidate = 1 - forget if self.coupled else gate(0, c), squash(gate(2, None))
            if s is None:
                c = forget * c + take * candidate
                c = np.clip(c, -self.cell_clip, self.cell_clip) if self.cell_clip else c
                h = gate(3, c) * squash(c)
            else:
                c = np.rint(forget * 2**15 * c * size(s.forget)) + np.rint(
                    take * candidate * 2.0**30 * size(s.input))
                c = np.clip(c, -(s.cell_clip or 32768), s.cell_clip or 32767)
                active = np.tanh(c * s.cell_argument[0] / 2.0 ** s.cell_argument[1] / (24 * 512))
                limits = np.iinfo(np.asarray(arrays[1]).dtype)
                h = np.clip(
                    np.rint(gate(3, None) * active * 2.0**30 * size(s.output)) + s.output.zero_point,
                    limits.min, limits.max)
            if projection is not None:
                h = h @ projection.T + (0 if q is None else q)
                h = np.clip(h, -self.projection_clip, self.projection_clip) if self.projection_clip else h
            rows.append(h)
        y = np.stack(rows, 0 if self.time_major else 1)
        return [v.astype(np.asarray(a).dtype) for v, a in zip((y, h, c), arrays, strict=False)]


def _memory(site: Site) -> list[Argument]:
    """x, the states before and after, y."""
    h0, c0 = site.input(1), site.input(2)
    return [
        Argument("x", site.input(0) if site.input(0).is_const else site.window(0)),
        *(Argument(k, v if v.is_const else site.window(n)) for n, k, v in ((1, "h0", h0), (2, "c0", c0))),
    ]  # fmt: skip


def _results(site: Site) -> list[Argument]:
    return [written(name, site.node.outputs[k]) for k, name in enumerate(("y", "h", "c"))]


def _frame(op: SequenceLstm, site: Site, step: str) -> str:
    """The loops over time and batch around the body of one step."""
    batch, steps, inputs, units, outputs = op.sizes(site)
    h, c = site.node.outputs[1].type, site.node.outputs[2].type
    at = f"(t * {batch} + n)" if op.time_major else f"(n * {steps} + t)"
    element = site.input(0).dtype.c_type
    pad = "            "
    return f"""    memcpy(h, h0, {h.nbytes}u);
    memcpy(c, c0, {c.nbytes}u);
    for (int32_t t = 0; t < {steps}; t++) {{
        for (int32_t n = 0; n < {batch}; n++) {{
            const {element} *const xt = &x[{at} * {inputs}];
            {h.dtype.c_type} *const ht = &h[n * {outputs}];
            {c.dtype.c_type} *const ct = &c[n * {units}];
{_indent(step, pad)}
            memcpy(&y[{at} * {outputs}], ht, {outputs * h.dtype.size}u);
        }}
    }}"""


def _indent(text: str, pad: str) -> str:
    return "\n".join(pad + line if line else line for line in text.strip("\n").split("\n"))


# --- floats -------------------------------------------------------------------------------------------------

_NORMALISE = """/* Mean 0 and variance 1; a constant row stays finite. */
AOT_MODEL_OPAQUE static void aot_model_normalise(float *x, int32_t n)
{
    float mean = 0.0f;
    float square = 0.0f;
    for (int32_t j = 0; j < n; j++) {
        mean += x[j];
        square += x[j] * x[j];
    }
    mean /= (float)n;
    const float variance = square / (float)n - mean * mean;
    const float scale = 1.0f / sqrtf((variance > 0.0f) ? variance : 1e-8f);
    for (int32_t j = 0; j < n; j++) {
        x[j] = (x[j] - mean) * scale;
    }
}"""

_FLOAT_ACTIVATIONS = {
    "NONE": "{0}", "TANH": "tanhf({0})", "RELU": "aot_model_max_float32({0}, 0.0f)",
    "RELU6": "aot_model_min_float32(aot_model_max_float32({0}, 0.0f), 6.0f)",
}  # fmt: skip


def _clip(name: str, limit: float) -> str:
    """Statement that clips a float to [-limit, limit]; nothing when there is no limit."""
    bound = float_literal(limit, DType.FLOAT32)
    return (f"{name} = aot_model_min_float32(aot_model_max_float32({name}, -{bound}), {bound});"
            if limit > 0 else "")


def _float_lstm(op: SequenceLstm, site: Site) -> None:
    _, _, inputs, units, outputs = op.sizes(site)
    peephole, norm, projection, projection_bias = (site.node.input(k) for k in range(6, 10))
    text = _FLOAT_ACTIVATIONS[op.activation]
    start = "0.0f" if norm is not None else f"b[k * {units} + j]"
    before = f" + ct[j] * p[{{}} * {units} + j]"
    parts = [f"""for (int32_t k = {1 if op.coupled else 0}; k < 4; k++) {{
    for (int32_t j = 0; j < {units}; j++) {{
        float sum = {start};
        for (int32_t i = 0; i < {inputs}; i++) {{
            sum += xt[i] * w[(k * {units} + j) * {inputs} + i];
        }}
        for (int32_t i = 0; i < {outputs}; i++) {{
            sum += ht[i] * r[(k * {units} + j) * {outputs} + i];
        }}
        gates[k * {units} + j] = sum;
    }}
}}"""]  # fmt: skip

    def normalised(k: str) -> str:
        return (
            f"aot_model_normalise(&gates[{k} * {units}], {units});\nfor (int32_t j = 0; j < {units}; j++) "
            f"{{\n"
            f"    gates[{k} * {units} + j] = gates[{k} * {units} + j] * norm[{k} * {units} + j] + b[{k} * "
            f"{units} + j];\n}}"
        )

    def peep(gate: int, slot: int) -> str:
        return (f"for (int32_t j = 0; j < {units}; j++) {{\n    gates[{gate * units} + j] "
                f"+={before.format(slot)[2:]};\n}}") if peephole is not None else ""

    def gate(k: int) -> str:
        return f"aot_model_sigmoid_float32(gates[{k * units} + j])"

    first = 1 if op.coupled else 0
    parts += [peep(k, k) for k in (0, 1) if k >= first]
    parts += [normalised(str(k)) for k in range(first, 3)] if norm is not None else []
    forget = f"const float forget = {gate(1)};"
    take = "1.0f - forget" if op.coupled else gate(0)
    parts.append(f"""for (int32_t j = 0; j < {units}; j++) {{
    {forget}
    float cell = forget * ct[j] + ({take}) * {text.format(f"gates[{2 * units} + j]")};
    {_clip("cell", op.cell_clip)}
    ct[j] = cell;
}}""")  # fmt: skip
    parts += [peep(3, 2)]
    parts += [normalised("3")] if norm is not None else []
    target = "gates" if projection is not None else "ht"
    parts.append(
        f"for (int32_t j = 0; j < {units}; j++) {{\n    {target}[j] = {gate(3)} * {text.format('ct[j]')};\n}}"
    )
    if projection is not None:
        parts.append(f"""for (int32_t j = 0; j < {outputs}; j++) {{
    float sum = {"q[j]" if projection_bias is not None else "0.0f"};
    for (int32_t i = 0; i < {units}; i++) {{
        sum += gates[i] * projection[j * {units} + i];
    }}
    {_clip("sum", op.projection_clip)}
    ht[j] = sum;
}}""")  # fmt: skip
    body = _frame(op, site, "\n".join(line for part in parts for line in part.split("\n") if line.strip()))
    constants = {3: "w", 4: "r", 5: "b", 6: "p", 7: "norm", 8: "projection", 9: "q"}
    arguments = _memory(site)
    arguments += [Argument(name, v) for k, name in constants.items() if (v := site.node.input(k)) is not None]
    arguments.append(Argument("gates", Scratch("gates", 4 * units * 4, 4, "float")))
    helpers = (_NORMALISE,) if norm is not None else ()
    site.call("lstm",
              body, [*arguments, *_results(site)],
              includes=["string.h", "math.h", "aot_model/scalar.h"],
              helpers=helpers,
              macs=op.macs(site),
              note="LSTM")


# --- integers -----------------------------------------------------------------------------------------------


def _function(name: str, op: SigmoidInt16) -> str:
    """A static function of the activation."""
    x = Value("x", TensorType(DType.INT16, ()))

    def at(value: Value, index: Index) -> Expr:
        return leaf("x", DType.INT16, -32768, 32767)

    access: At = at
    writer = CWriter(lambda cell, position: f"table[{position}]")
    (text,) = writer.compute(flatten(op.express(access, [x], ())))
    body = "\n".join([*writer.lines, f"    return {text};"])
    return f"static inline int16_t {name}(const uint16_t *table, int16_t x)\n{{\n{body}\n}}"


_SATURATE = """static inline int16_t aot_model_saturate_int16(int32_t x)
{
    return (int16_t)dsp_ssat16(x);
}"""


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


def _narrow_gates(inputs: int, units: int, outputs: int, small: bool) -> str:
    """All gates of a cell of int8, four units at a time. small: no sum overflows when it is scaled."""
    scale = """    const aot_model_scaling scale_x = aot_model_scaling_of(factors[2 * k], factors[2 * k + 1]);
    const aot_model_scaling scale_h = aot_model_scaling_of(factors[8 + 2 * k], factors[9 + 2 * k]);
""" if small else ""
    x, h = ("aot_model_scaled(from_x, scale_x)", "aot_model_scaled(from_h, scale_h)") if small else (
        "aot_model_requantise(from_x, factors[2 * k], factors[2 * k + 1])",
        "aot_model_requantise(from_h, factors[8 + 2 * k], factors[9 + 2 * k])",
    )
    gate = f"(int16_t)dsp_ssat16(dsp_ssat16({x}) + dsp_ssat16({h}))"
    whole = units - units % 4
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
    left = f"""    for (int32_t j = {whole}; j < {units}; j++) {{
        const int32_t unit = k * {units} + j;
        const int32_t from_x = bias_x[unit] + aot_model_row_int8(xt, w + unit * {inputs}, {inputs});
        const int32_t from_h = bias_h[unit] + aot_model_row_int8(ht, r + unit * {outputs}, {outputs});
        gates[unit] = {gate};
    }}
"""
    rows = (four if whole else "") + (left if units % 4 else "")
    return f"for (int32_t k = 0; k < 4; k++) {{\n{scale}{rows}}}"


def _room(wide: bool, bits: int, taps: int) -> int:
    """How large a bias may be, so that no sum of `taps` products and it has more bits (62 of int64)."""
    return int((1 << (62 if wide else bits)) - 1 - taps * 128 * (1 << 15 if wide else 128))


def _integer_lstm(op: SequenceLstm, site: Site) -> None:
    scales = op.scales
    assert scales is not None
    _, _, inputs, units, outputs = op.sizes(site)
    w, r, b = (site.input(k).data for k in (3, 4, 5))
    assert w is not None and r is not None and b is not None
    wide = site.input(0).dtype is DType.INT16
    kind = np.int64 if wide else np.int32
    # Zero points are folded: sum((x - z) * w) = sum(x * w) - z * sum(w).
    bias_x = (b.astype(np.int64) - scales.x_zero_point * w.astype(np.int64).sum(axis=2)).astype(kind)
    bias_h = (-scales.output.zero_point * r.astype(np.int64).sum(axis=2)).astype(kind)
    factors = np.asarray([[v
                           for k in range(4)
                           for v in (s[k].multiplier, s[k].shift)]
                          for s in (scales.x, scales.h)],
                         dtype=np.int32)
    multiplier, shift = scales.cell_argument
    cell_activation = f"aot_model_tanh_int16_{multiplier}_{shift}"
    helpers: tuple[str, ...] = (_SATURATE, _function("aot_model_logistic_int16", SigmoidInt16(False, 3, 0)),
                                _function("aot_model_tanh_int16_3_0", SigmoidInt16(True, 3, 0)))
    if (multiplier, shift) != (3, 0):
        helpers = (*helpers, _function(cell_activation, SigmoidInt16(True, multiplier, shift)))
    low, high = site.node.outputs[1].dtype.limits

    def product(a: str, c: str, by: Rescale) -> str:
        return f"aot_model_requantise((int32_t){a} * {c}, {by.multiplier}, {by.shift})"

    limit = scales.cell_clip
    clip = f"cell = aot_model_min_int32(aot_model_max_int32(cell, -{limit}), {limit});" if limit else ""
    zero = f" + {scales.output.zero_point}" if scales.output.zero_point else ""
    # No sum overflows; small: nor when it is doubled, and shifts are to the right.
    shifts = (-31, 14 if wide else 30)
    room_x, room_h = (_room(wide, 31, n) for n in (inputs, outputs))
    right = bool((factors[:, 1::2] <= 0).all() and (factors[:, 1::2] >= -30).all())
    small = not wide and right and all(
        int(np.abs(v).max(initial=0)) <= _room(wide, 30, n) for v, n in ((bias_x, inputs), (bias_h, outputs)))
    if small:
        shifts = (-30, 0)
        room_x, room_h = (_room(wide, 30, n) for n in (inputs, outputs))
    gates = _wide_gates(inputs, units, outputs) if wide else _narrow_gates(inputs, units, outputs, small)
    step = f"""{gates}
for (int32_t j = 0; j < {units}; j++) {{
    const int16_t take = aot_model_logistic_int16(table, gates[j]);
    const int16_t forget = aot_model_logistic_int16(table, gates[{units} + j]);
    const int16_t candidate = aot_model_tanh_int16_3_0(table, gates[{2 * units} + j]);
    const int16_t give = aot_model_logistic_int16(table, gates[{3 * units} + j]);
    int32_t cell = aot_model_saturate_int16({product("forget", "ct[j]", scales.forget)})
        + aot_model_saturate_int16({product("take", "candidate", scales.input)});
    cell = aot_model_saturate_int16(cell);
    {clip}
    ct[j] = (int16_t)cell;
    const int32_t hidden = {product("give", f"{cell_activation}(table, (int16_t)cell)", scales.output)}{zero};
    ht[j] = ({site.node.outputs[1].dtype.c_type})aot_model_min_int32(aot_model_max_int32(hidden, {low}), {high});
}}"""  # noqa: E501
    body = _frame(op, site, "\n".join(line for line in step.split("\n") if line.strip()))
    constants: list[tuple[str, np.ndarray, Ranges | None]] = [
        ("w", w, ANYTHING), ("r", r, ANYTHING), ("bias_x", bias_x, (Range(-room_x, room_x),)),
        ("bias_h", bias_h, (Range(-room_h, room_h),)),
        ("factors", factors.reshape(-1), (Range(*shifts, 1, 2),)),
        ("table", np.asarray(sigmoid_table(), dtype=np.uint16), None),
    ]
    arguments = [
        *_memory(site),
        *(Argument(k, Packed(k, np.ascontiguousarray(v), v.itemsize, fits)) for k, v, fits in constants)
    ]
    arguments.append(Argument("gates", Scratch("gates", 4 * units * 2, 2, "int16_t")))
    site.call("lstm",
              body, [*arguments, *_results(site)],
              includes=["string.h", "aot_model/scalar.h", "aot_model/int8_rows.h"],
              helpers=helpers,
              macs=op.macs(site),
              note="integer LSTM")
