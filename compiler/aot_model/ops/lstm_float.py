"""One step of an LSTM in floats."""

from __future__ import annotations

import numpy as np

from aot_model.c.literal import float_literal
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.kernels.arguments import Argument
from aot_model.kernels.base import Packed, Scratch
from aot_model.kernels.float32.dialects import DIALECTS
from aot_model.kernels.recurrent import panels_for
from aot_model.kernels.recurrent_cells import Recurrent
from aot_model.kernels.site import Site
from aot_model.ops.lstm_steps import LstmLayer, results_of, states_of, step_loops
from aot_model.ops.recurrent_call import call_recurrent, packed_weights

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

ACTIVATIONS = {
    "NONE": "{0}", "TANH": "aot_model_libm_tanh_float32({0})", "RELU": "aot_model_max_float32({0}, 0.0f)",
    "RELU6": "aot_model_min_float32(aot_model_max_float32({0}, 0.0f), 6.0f)",
}  # fmt: skip


def _clip(name: str, limit: float) -> str:
    """Statement that clips a float to [-limit, limit]; nothing when there is no limit."""
    bound = float_literal(limit, DType.FLOAT32)
    return (
        f"{name} = aot_model_min_float32(aot_model_max_float32({name}, -{bound}), {bound});"
        if limit > 0
        else ""
    )


_ORDER = [0, 3, 1, 2]
"""The gates in ONNX's order, by their places in the file format's: input, output, forget, cell."""


def float_lstm(op: LstmLayer, site: Site) -> None:
    """The call of an LSTM in floats: by the loops of ONNX's LSTM, unless it asks for more than they have."""
    w, r, b, peephole, *more = (site.node.input(k) for k in range(3, 10))
    given = [v for v in (w, r, b, peephole) if v is not None]
    constants = [np.asarray(v.data) for v in given if v.data is not None]
    if op.coupled or any(v is not None for v in more) or len(constants) < len(given):
        _any_lstm(op, site)
        return
    batch, steps, inputs, units, _ = op.sizes(site)
    values: dict[str, Value | None] = {"h0": site.input(1), "c0": site.input(2)}
    values |= {name: site.wanted(k) for k, name in enumerate(("y", "yh", "yc"))}
    present = {k: v for k, v in values.items() if v is not None}
    squash = ACTIVATIONS[op.activation].format
    function = "tanh" if op.activation == "TANH" else ""
    by_time, by_row = (batch, 1) if op.time_major else (1, steps)
    layer = Recurrent(
        cell="LSTM",
        dtype=DType.FLOAT32,
        steps=steps,
        batch=batch,
        inputs=inputs,
        hidden=units,
        reverse=False,
        x_strides=(by_time * inputs, by_row * inputs),
        y_strides=(by_time * units, by_row * units),
        state_stride=units,
        offset=0,
        y_offset=0,
        activations=("aot_model_sigmoid_float32({})".format, squash, squash),
        has=frozenset(present) | ({"peephole"} if peephole is not None else set()),
        functions=("sigmoid", function, function),
        cell_clip=max(op.cell_clip, 0.0),
    )
    panels = panels_for(layer, DIALECTS[site.target.dialect()])
    weights, recurrent, bias = (a[_ORDER].reshape(4 * units, -1) for a in constants[:3])
    both = np.concatenate([bias.reshape(-1), np.zeros(4 * units, np.float32)])
    packed = packed_weights(layer, panels, weights, recurrent, both)
    if peephole is not None:
        rows = np.ascontiguousarray(constants[3][[0, 2, 1]])
        packed.append(Argument("peephole", Packed("peephole", rows)))
    call_recurrent(site, "lstm", layer, panels, present, packed, ("math.h", "aot_model/scalar.h"))


def _any_lstm(op: LstmLayer, site: Site) -> None:
    """One with layer normalisation, a projection, a coupled gate or weights that are computed: loops as they
    stand here.
    """
    _, _, inputs, units, outputs = op.sizes(site)
    peephole, norm, projection, projection_bias = (site.node.input(k) for k in range(6, 10))
    text = ACTIVATIONS[op.activation]
    gates = range(1 if op.coupled else 0, 4)
    sums = [f"float sum{k} = {'0.0f' if norm is not None else f'b[{k * units} + j]'};" for k in gates]
    for source, weights, length in (("xt", "w", inputs), ("ht", "r", outputs)):
        sums += [
            f"const float *const {weights}{k} = &{weights}[({k * units} + j) * {length}];" for k in gates
        ]
        turn = [f"    sum{k} += v * {weights}{k}[i];" for k in gates]
        sums += [
            f"for (int32_t i = 0; i < {length}; i++) {{",
            f"    const float v = {source}[i];",
            *turn,
            "}",
        ]
    sums += [f"gates[{k * units} + j] = sum{k};" for k in gates]
    parts = ["\n".join([f"for (int32_t j = 0; j < {units}; j++) {{", *(f"    {line}" for line in sums), "}"])]

    def normalised(k: str) -> str:
        return (
            f"aot_model_normalise(&gates[{k} * {units}], {units});\nfor (int32_t j = 0; j < {units}; j++) "
            f"{{\n"
            f"    gates[{k} * {units} + j] = gates[{k} * {units} + j] * norm[{k} * {units} + j] + b[{k} * "
            f"{units} + j];\n}}"
        )

    def peep(gate: int, slot: int) -> str:
        return (
            (
                f"for (int32_t j = 0; j < {units}; j++) {{\n    gates[{gate * units} + j] "
                f"+= ct[j] * p[{slot} * {units} + j];\n}}"
            )
            if peephole is not None
            else ""
        )

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
    lines = [line for part in parts for line in part.split("\n") if line.strip()]
    body = step_loops(op, site, "\n".join(lines))
    constants = {3: "w", 4: "r", 5: "b", 6: "p", 7: "norm", 8: "projection", 9: "q"}
    arguments = states_of(site)
    arguments += [Argument(name, v) for k, name in constants.items() if (v := site.node.input(k)) is not None]
    arguments.append(Argument("gates", Scratch("gates", 4 * units * 4, 4, "float")))
    helpers = (_NORMALISE,) if norm is not None else ()
    site.call(
        "lstm",
        body,
        [*arguments, *results_of(site)],
        includes=["string.h", "math.h", "aot_model/scalar.h"],
        helpers=helpers,
        macs=op.macs(site),
        note="LSTM",
    )
