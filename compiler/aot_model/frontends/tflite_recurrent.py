"""TFLite: recurrent layers, whose states last from run to run."""

from __future__ import annotations

import math

import numpy as np

from aot_model.arithmetic.fixed_point import quantise_multiplier
from aot_model.frontends.tflite_conversion import ACTIVATIONS, Conversion, finite, rescale, rule
from aot_model.frontends.tflite_hybrid import is_hybrid, quantised_input, real_result, signed_weights
from aot_model.frontends.tflite_layers import plain_weights
from aot_model.frontends.tflite_movement import slices
from aot_model.ir.operator import OperatorError
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.ops.conversion import Cast
from aot_model.ops.hybrid_lstm import HybridLstm
from aot_model.ops.lstm_steps import LstmScales
from aot_model.ops.matmul import MatMul
from aot_model.ops.movement import Concat
from aot_model.ops.registry import OPERATORS
from aot_model.ops.requantise import Rescale
from aot_model.ops.sequence_lstm import SequenceLstm

f32 = np.float32

# Input numbers of UNIDIRECTIONAL_SEQUENCE_LSTM; gates in the order input, forget, cell, output.
_X, _W, _R, _PEEPHOLE, _B, _PROJECTION, _PROJECTION_BIAS, _H, _C, _NORM = (
    0,
    (1, 2, 3, 4),
    (5, 6, 7, 8),
    (9, 10, 11),
    (12, 13, 14, 15),
    16,
    17,
    18,
    19,
    (20, 21, 22, 23),
)


def _stacked(n: Conversion, inputs: tuple[int, ...], x: Value, what: str) -> Value | None:
    """Constants of the gates as one; an absent input gate is zeros; None when all are absent."""
    found = [n.inputs[k] if n.has(k) else None for k in inputs]
    present = [v for v in found if v is not None]
    if not present:
        return None
    arrays: list[np.ndarray | None] = []
    for k, value in zip(inputs, found, strict=True):
        if value is None:
            arrays.append(None)
            continue
        data = (
            plain_weights(n, k, x.dtype).data if value.dtype.is_integer and x.dtype.is_float else value.data
        )
        if data is None:
            raise OperatorError(f"{what} are computed at run time", "E202")
        arrays.append(data)
    like = next(a for a in arrays if a is not None)
    whole = [np.zeros_like(like) if a is None else a for a in arrays]
    if any(a.shape != like.shape or a.dtype != like.dtype for a in whole):
        raise OperatorError(f"{what} differ in shape or type")
    if any(a is None for a in arrays[1:]):
        raise OperatorError(f"{what} of a gate are missing")
    return n.constant(np.stack(whole))


@rule("UNIDIRECTIONAL_SEQUENCE_LSTM")
def sequence_lstm(n: Conversion) -> Value:
    options = "UnidirectionalSequenceLSTMOptions"
    if _is_hybrid_lstm(n):
        return _hybrid(n)
    return lstm_layer(n, options, n.x(_X), 1, (_H, _C), _NORM)


def lstm_layer(
    n: Conversion, options: str, x: Value, first: int, states: tuple[int, int], norms: tuple[int, ...] = ()
) -> Value:
    """An LSTM whose weights begin at input `first`, in the order of UNIDIRECTIONAL_SEQUENCE_LSTM.

    states: the inputs that hold h and c. norms: the normalisation weights, if there may be any.
    """
    places = range(first - 1, first - 1 + _H)
    w, r, b = (
        _stacked(n, tuple(places[k] for k in group), x, what)
        for group, what in ((_W, "weights"), (_R, "recurrent weights"), (_B, "biases"))
    )
    if w is None or r is None or b is None:
        raise OperatorError("weights or biases are missing")
    peepholes = tuple(places[k] for k in _PEEPHOLE)
    peephole = _stacked(n, peepholes, x, "peepholes") if n.has(peepholes[1]) else None
    norm = _stacked(n, norms, x, "normalisation weights") if norms and n.has(norms[1]) else None
    projection = plain_weights(n, places[_PROJECTION], x.dtype) if n.has(places[_PROJECTION]) else None
    bias = n.inputs[places[_PROJECTION_BIAS]] if n.has(places[_PROJECTION_BIAS]) else None
    code = n.operator.options.get(options, "FusedActivationFunction")
    act = ACTIVATIONS[code] if 0 <= code < len(ACTIVATIONS) else str(code)
    if act == "NONE":
        raise OperatorError(
            "LiteRT does not compute an LSTM without an activation: it reads what is left", "E202"
        )
    cell_clip = finite(float(n.operator.options.get(options, "CellClip")), "cell_clip")
    projection_clip = finite(float(n.operator.options.get(options, "ProjClip")), "proj_clip")
    time_major = options == "LSTMOptions" or bool(n.operator.options.get(options, "TimeMajor"))
    scales = None if x.dtype.is_float else _scales(n, cell_clip)
    if scales is not None and b.dtype is not (DType.INT64 if x.dtype is DType.INT16 else DType.INT32):
        raise OperatorError(f"biases of type {b.dtype.label} do not fit {x.type}")
    node = SequenceLstm(time_major, cell_clip, projection_clip, not n.has(places[_W[0]]), act, scales)
    h, c = (n.variable(k) for k in states)
    y, h_last, c_last = n.build.many(node, x, h, c, w, r, b, peephole, norm, projection, bias)
    n.assign(states[0], h_last)
    n.assign(states[1], c_last)
    return y


def _is_hybrid_lstm(n: Conversion) -> bool:
    """Whether a layer of floats has 8-bit weights and none of the rarer options."""
    plain = not any(n.has(k) for k in (*_PEEPHOLE, *_NORM, _PROJECTION)) and all(
        n.has(k) for k in (*_W, *_R, *_B)
    )
    small = plain and all(is_hybrid(n, _X, k) and n.q(k).zero_point == (0,) for k in (*_W, *_R))
    return small and n.operator.options.get(
        "UnidirectionalSequenceLSTMOptions", "FusedActivationFunction"
    ) == ACTIVATIONS.index("TANH")


def _hybrid(n: Conversion) -> Value:
    """The layer with its input and its hidden state quantised at every step."""
    options = n.operator.options
    asymmetric, time_major = (
        bool(options.get("UnidirectionalSequenceLSTMOptions", name))
        for name in ("AsymmetricQuantizeInputs", "TimeMajor")
    )
    clip = finite(float(options.get("UnidirectionalSequenceLSTMOptions", "CellClip")), "cell_clip")
    w, r = (np.stack([_stored(n, k) for k in gates]) for gates in (_W, _R))
    w_scales, r_scales = (tuple(n.scale(k) for k in gates) for gates in (_W, _R))
    biases = _stacked(n, _B, n.x(_X), "biases")
    y, h, c = n.build.many(
        HybridLstm(w_scales, r_scales, asymmetric, time_major, clip),
        n.x(_X),
        n.variable(_H),
        n.variable(_C),
        n.constant(w),
        n.constant(r),
        biases,
    )
    n.assign(_H, h)
    n.assign(_C, c)
    return y


def _stored(n: Conversion, k: int) -> np.ndarray:
    data = signed_weights(n, k).data
    assert data is not None
    return data


def _scales(n: Conversion, cell_clip: float) -> LstmScales:
    if any(n.has(k) and n.q(k).zero_point != (0,) for k in (*_W, *_R)):
        raise OperatorError("weights of an integer LSTM have one scale and the zero point 0", "E302")
    if n.zero(_C) != 0 or n.tensor(_C).dtype is not DType.INT16:
        raise OperatorError("the cell of an integer LSTM is int16 with zero point 0", "E302")
    if (n.scale_out(), n.zero_out()) != (n.scale(_H), n.zero(_H)):
        raise OperatorError(
            "the output of an integer LSTM has another scale than the state that it is", "E302"
        )
    cell = n.scale(_C)
    wide = n.x(_X).dtype is DType.INT16

    def gate(x_scale: float, k: int) -> Rescale:
        multiplier, shift = quantise_multiplier(float(f32(x_scale) * f32(n.scale(k))) / 2.0**-12)
        if wide:
            multiplier = (multiplier + (1 << 15)) >> 16 if multiplier < 0x7FFF0000 else 0x7FFF
        return Rescale(0, multiplier, shift)

    if abs(math.log2(cell) - round(math.log2(cell))) > 1e-3:
        raise OperatorError(f"the scale {cell:g} of the cell of an integer LSTM is no power of two", "E302")
    power = round(math.log2(cell)) + 12
    litert = n.host.arithmetic == "litert-ref" and not wide
    if litert and not -3 <= power <= 3:
        raise OperatorError(f"the scale {cell:g} of the cell is not between 2^-15 and 2^-9", "E302")
    # LiteRT takes the scale of the hidden state from a tensor of its own, which converters give that of the
    # output; TensorFlow Lite Micro does not read it.
    hidden, zero = (n.intermediate(4) if litert else None) or (n.scale(_H), n.zero(_H))
    if zero != n.zero(_H):
        raise OperatorError(f"the hidden state has zero point {zero}, the output {n.zero(_H)}", "E302")
    return LstmScales(
        n.zero(_X),
        tuple(gate(n.scale(_X), k) for k in _W),
        tuple(gate(n.scale(_H), k) for k in _R),
        rescale(2.0**-15 * cell / cell),
        rescale(2.0**-30 / cell),
        rescale(2.0**-30 / hidden, zero),
        (3 << power, 0) if power >= 0 else (3, -power),
        int(min(cell_clip / cell, 32767)) if cell_clip > 0 else 0,
        power + 3 if litert else None,
    )


@rule("SVDF")
def svdf(n: Conversion) -> Value:
    """Each filter's newest feature enters its memory; outputs are weighted sums over memory and over the
    filters' rank.
    """
    hybrid = is_hybrid(n, 0, 1)
    x, features, times = (
        n.x(0),
        signed_weights(n, 1) if hybrid else plain_weights(n, 1, n.x(0).dtype),
        plain_weights(n, 2, n.x(0).dtype),
    )
    state = n.variable(4)
    rank = int(n.operator.options.get("SVDFOptions", "Rank"))
    if (
        x.type.rank != 2
        or features.type.rank != 2
        or times.type.rank != 2
        or rank < 1
        or features.shape[0] % rank
    ):
        raise OperatorError(f"{features.type} and {times.type} with rank {rank} do not fit {x.type}")
    batch, filters, memory = x.shape[0], features.shape[0], times.shape[1]
    if times.shape[0] != filters or state.type.elements != batch * filters * memory:
        raise OperatorError(f"{times.type} and the state {state.type} do not fit {filters} filters")
    quantised = not x.dtype.is_float
    columns = n.transpose(features, (1, 0))
    if hybrid:
        q, scale = quantised_input(
            n, x, bool(n.operator.options.get("SVDFOptions", "AsymmetricQuantizeInputs"))
        )
        feature = real_result(n, n.build(MatMul(0, n.zero(1)), q, columns), scale, 1, -1)
    else:
        feature = n.build(MatMul(n.zero(0) if quantised else 0, 0), x, columns)
    if quantised:
        real = float(f32(n.scale(0)) * f32(n.scale(1)) / f32(n.scale(4)))
        # The reference clamps before it adds the zero point, and lets the sum wrap.
        low, high = state.dtype.limits
        feature = n.requantise(feature, [real], (low, high), 0, DType.INT32)
        if n.zero(4):
            feature = n.add("Add", feature, n.constant(n.zero(4), DType.INT32))
        feature = n.build(Cast(state.dtype), feature)
    old = n.reshape(state, (batch, filters, memory))
    kept = slices(n, old, [(0, batch, 1), (0, filters, 1), (1, memory, 1)])
    new = (
        n.build(Concat(2), kept, n.reshape(feature, (batch, filters, 1)))
        if memory > 1
        else n.reshape(feature, (batch, filters, 1))
    )
    n.assign(4, n.reshape(new, state.shape))
    weights = n.reshape(times, (1, filters, memory))
    if quantised:
        centred = n.add("Sub", n.build(Cast(DType.INT32), new), n.constant(n.zero(4), DType.INT32))
        terms = n.add("Mul", centred, n.build(Cast(DType.INT32), weights))
    else:
        terms = n.add("Mul", new, weights)
    units = filters // rank
    axes = n.constant([2], DType.INT64)
    y = n.build(
        OPERATORS["", "ReduceSum"](keepdims=0),  # type: ignore[call-arg]
        n.reshape(terms, (batch, units, rank * memory)),
        axes,
    )
    if n.has(3):
        y = n.add("Add", y, n.x(3))
    if not quantised:
        code = n.operator.options.get("SVDFOptions", "FusedActivationFunction")
        if code == ACTIVATIONS.index("TANH"):  # elsewhere LiteRT leaves it out
            return n.add("LibmTanh", y)
        return n.activate(y, ACTIVATIONS[code] if 0 <= code < len(ACTIVATIONS) else str(code))
    real = float(f32(n.scale(4)) * f32(n.scale(2)) / f32(n.scale_out()))
    return n.requantise(y, [real], n.limits(), n.zero_out(), n.out_dtype())
