"""TFLite: plain recurrent layers and those in both directions, of floats."""

from __future__ import annotations

import numpy as np

from aot_model.frontends.tflite_conversion import ACTIVATIONS, Conversion, rule
from aot_model.frontends.tflite_movement import slices
from aot_model.frontends.tflite_recurrent import lstm_layer
from aot_model.ir.operator import OperatorError
from aot_model.ir.values import Value
from aot_model.ops.matmul import MatMul
from aot_model.ops.movement import Concat
from aot_model.ops.recurrent import RNN

_FUNCTIONS: dict[str, tuple[str, float]] = {
    "NONE": ("Affine", 0.0),
    "RELU": ("Relu", 0.0),
    "RELU_N1_TO_1": ("Affine", 1.0),
    "RELU6": ("Relu", 6.0),
    "TANH": ("Tanh", 0.0),
}
"""ONNX's function, and what clips its argument (0: nothing)."""


def _floats(n: Conversion, *inputs: int) -> None:
    """OperatorError unless these inputs are floats: LiteRT quantises the others' partners at run time."""
    for k in inputs:
        if n.has(k) and not n.x(k).dtype.is_float:
            raise OperatorError(
                f"weights of type {n.x(k).dtype.label} are not supported here",
                "E202",
                "convert the model without quantisation of this layer",
            )


def _reversed(n: Conversion, x: Value, axis: int) -> Value:
    d = x.shape[axis]
    return slices(n, x, [(d - 1, -d - 1, -1) if k == axis else (0, e, 1) for k, e in enumerate(x.shape)])


def _layer(n: Conversion, x: Value, places: tuple[int, int, int, int], activation: str) -> Value:
    """All hidden states of steps x (steps, batch, inputs). places: the inputs W, R, bias and state."""
    w, r, bias, state = places
    _floats(n, 0, w, r, bias)
    if activation not in _FUNCTIONS:
        raise OperatorError(f"fused activation {activation} is not supported", "E202")
    function, clip = _FUNCTIONS[activation]
    weights, recurrent, b, h = n.x(w), n.x(r), n.x(bias), n.variable(state)
    if x.type.rank != 3 or weights.type.rank != 2 or recurrent.type.rank != 2 or b.type.rank != 1:
        raise OperatorError(f"{weights.type}, {recurrent.type} and {b.type} do not fit {x.type}")
    units = weights.shape[0]
    both = n.build(Concat(0), b, n.constant(np.zeros(units, np.float32)))
    inputs = [x, *(n.reshape(v, (1, *v.shape)) for v in (weights, recurrent, both))]
    y, last = n.build.many(
        RNN((1.0,), (0.0,), (function,), clip or None, hidden_size=units),  # Affine: x itself
        *inputs,
        None,
        n.reshape(h, (1, x.shape[1], units)),
    )
    n.assign(state, n.reshape(last, h.shape))
    return n.reshape(y, (*x.shape[:2], units))


def _activation(n: Conversion, options: str) -> str:
    code = n.operator.options.get(options, "FusedActivationFunction")
    return ACTIVATIONS[code] if 0 <= code < len(ACTIVATIONS) else str(code)


@rule("RNN")
def rnn(n: Conversion) -> Value:
    """One step: act(x W' + h R' + b), which is the new state as well."""
    x = n.x()
    if x.type.rank != 2:
        raise OperatorError(f"takes a row for each of a batch, not {x.type}")
    y = _layer(n, n.reshape(x, (1, *x.shape)), (1, 2, 3, 4), _activation(n, "RNNOptions"))
    return n.reshape(y, y.shape[1:])


def _steps_first(n: Conversion, x: Value, options: str) -> tuple[Value, bool]:
    """The steps of a sequence in front, and whether the file has them there."""
    time_major = bool(n.operator.options.get(options, "TimeMajor"))
    if x.type.rank != 3:
        raise OperatorError(f"takes sequences of rows, not {x.type}")
    return x if time_major else n.transpose(x, (1, 0, 2)), time_major


@rule("UNIDIRECTIONAL_SEQUENCE_RNN")
def sequence_rnn(n: Conversion) -> Value:
    options = "SequenceRNNOptions"
    x, time_major = _steps_first(n, n.x(), options)
    y = _layer(n, x, (1, 2, 3, 4), _activation(n, options))
    return y if time_major else n.transpose(y, (1, 0, 2))


def _merged(n: Conversion, forward: Value, backward: Value, options: str) -> Value | list[Value]:
    """Both results, or their rows side by side."""
    if n.operator.options.get(options, "MergeOutputs"):
        return n.build(Concat(2), forward, backward)
    return [forward, backward]


@rule("BIDIRECTIONAL_SEQUENCE_RNN")
def bidirectional_rnn(n: Conversion) -> Value | list[Value]:
    options = "BidirectionalSequenceRNNOptions"
    if any(n.has(k) for k in (9, 10, 11)):
        raise OperatorError("an auxiliary input is not supported", "E202")
    x, time_major = _steps_first(n, n.x(), options)
    act = _activation(n, options)
    forward = _layer(n, x, (1, 2, 3, 4), act)
    backward = _reversed(n, _layer(n, _reversed(n, x, 0), (5, 6, 7, 8), act), 0)
    both = [v if time_major else n.transpose(v, (1, 0, 2)) for v in (forward, backward)]
    return _merged(n, both[0], both[1], options)


@rule("BIDIRECTIONAL_SEQUENCE_LSTM")
def bidirectional_lstm(n: Conversion) -> Value | list[Value]:
    options = "BidirectionalSequenceLSTMOptions"
    if any(n.has(k) for k in range(39, 48)):
        raise OperatorError("an auxiliary input is not supported", "E202")
    _floats(n, *range(35))
    axis = 0 if n.operator.options.get(options, "TimeMajor") else 1
    x = n.x()
    forward = lstm_layer(n, options, x, 1, (35, 36))
    backward = _reversed(n, lstm_layer(n, options, _reversed(n, x, axis), 18, (37, 38)), axis)
    return _merged(n, forward, backward, options)


@rule("LSTM")
def lstm(n: Conversion) -> Value | list[Value]:
    """One step, with its weights apart (FULL) or in one matrix (BASIC, of older converters)."""
    options = "LSTMOptions"
    x = n.x()
    if x.type.rank != 2:
        raise OperatorError(f"takes a row for each of a batch, not {x.type}")
    if n.operator.options.get(options, "KernelType") == 1:
        return _basic_lstm(n)
    _floats(n, *range(18))
    y = lstm_layer(n, options, n.reshape(x, (1, *x.shape)), 1, (18, 19), (20, 21, 22, 23))
    return n.reshape(y, y.shape[1:])


def _basic_lstm(n: Conversion) -> list[Value]:
    """Inputs: x, the last result, weights, biases, the last cell. Results: the new ones, and what they were
    made of."""
    _floats(n, *range(5))
    x, before, w, b, cell = (n.x(k) for k in range(5))
    units = cell.shape[-1] if cell.shape else 0
    fits = before.type.rank == 2 and w.shape == (4 * units, x.shape[1] + before.shape[1])
    if not fits or b.shape != (4 * units,):
        raise OperatorError(f"{w.type} and {b.type} do not fit {x.type}, {before.type} and {cell.type}")
    joined = n.build(Concat(1), x, before)
    gates = n.add("Add", n.build(MatMul(0, 0), joined, n.transpose(w, (1, 0))), b)
    i, g, f, o = (slices(n, gates, [(0, x.shape[0], 1), (k * units, (k + 1) * units, 1)]) for k in range(4))
    kept = n.add("Mul", n.add("LibmSigmoid", f), cell)
    new = n.add("Add", n.add("Mul", n.add("LibmSigmoid", i), n.add("LibmTanh", g)), kept)
    return [n.add("Mul", n.add("LibmSigmoid", o), n.add("LibmTanh", new)), new, joined, gates]
