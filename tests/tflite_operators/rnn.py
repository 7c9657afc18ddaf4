"""Cases: plain recurrent layers, and those in both directions."""

from __future__ import annotations

from case import OpCase, draw, network

from tflite_models import FLOAT32, Op, T, floats

BATCH, STEPS, DEPTH, UNITS = 2, 5, 4, 3
ACTIVATIONS = (0, 1, 2, 3, 4)


def _cell() -> list[T]:
    """W, R, bias and state of a direction."""
    return [
        floats("w", UNITS, DEPTH, data=draw(UNITS, DEPTH)),
        floats("r", UNITS, UNITS, data=draw(UNITS, UNITS)),
        floats("b", UNITS, data=draw(UNITS)),
        T("h", (BATCH, UNITS), FLOAT32, scale=(), variable=True),
    ]


def _gates() -> list[T]:
    """Weights, recurrent weights and biases of an LSTM in one direction."""
    return [
        *(floats("w", UNITS, DEPTH, data=draw(UNITS, DEPTH)) for _ in range(4)),
        *(floats("r", UNITS, UNITS, data=draw(UNITS, UNITS)) for _ in range(4)),
        *(floats("b", UNITS, data=draw(UNITS)) for _ in range(4)),
    ]


def _states() -> list[T]:
    return [T(name, (BATCH, UNITS), FLOAT32, scale=(), variable=True) for name in ("h", "c")]


def _step(act: int) -> OpCase:
    tensors = [floats("x", BATCH, DEPTH), *_cell(), floats("y", BATCH, UNITS)]
    op = Op("RNN", (0, 1, 2, 3, 4), (5,), "RNNOptions", {"FusedActivationFunction": act})
    return network(f"RNN-{act}", tensors, [op], [0], [5], (draw(BATCH, DEPTH),))


def _sequence(act: int, time_major: bool) -> OpCase:
    rows = (STEPS, BATCH) if time_major else (BATCH, STEPS)
    tensors = [floats("x", *rows, DEPTH), *_cell(), floats("y", *rows, UNITS)]
    op = Op(
        "UNIDIRECTIONAL_SEQUENCE_RNN",
        (0, 1, 2, 3, 4),
        (5,),
        "SequenceRNNOptions",
        {"FusedActivationFunction": act, "TimeMajor": time_major},
    )
    return network(f"SEQUENCE_RNN-{act}-{time_major}", tensors, [op], [0], [5], (draw(*rows, DEPTH),))


def _both(kind: str, time_major: bool, merged: bool) -> OpCase:
    rows = (STEPS, BATCH) if time_major else (BATCH, STEPS)
    results = [floats("y", *rows, 2 * UNITS)] if merged else [floats(n, *rows, UNITS) for n in ("y", "z")]
    fields = {"FusedActivationFunction": 4, "TimeMajor": time_major, "MergeOutputs": merged}
    if kind == "RNN":
        tensors = [floats("x", *rows, DEPTH), *_cell(), *_cell()]
        inputs: tuple[int, ...] = (*range(9), -1, -1, -1)
    else:
        tensors = [floats("x", *rows, DEPTH), *_gates(), *_gates(), *_states(), *_states()]
        one, two, end = range(1, 13), range(13, 25), (25, 26, 27, 28)
        none = [-1] * 9
        inputs = (0, *one[:8], *none[:3], *one[8:], -1, -1,
                  *two[:8], *none[:3], *two[8:], -1, -1, *end, *none)  # fmt: skip
    first = len(tensors)
    outputs = tuple(range(first, first + len(results)))
    op = Op(f"BIDIRECTIONAL_SEQUENCE_{kind}", inputs, outputs, f"BidirectionalSequence{kind}Options", fields)
    return network(
        f"BIDIRECTIONAL_{kind}-{time_major}-{merged}",
        [*tensors, *results],
        [op],
        [0],
        outputs,
        (draw(*rows, DEPTH),),
    )


def _lstm_step() -> OpCase:
    tensors = [floats("x", BATCH, DEPTH), *_gates(), *_states(), floats("y", BATCH, UNITS)]
    inputs = (*range(9), -1, -1, -1, 9, 10, 11, 12, -1, -1, 13, 14)
    fields = {"FusedActivationFunction": 4, "CellClip": 0.9, "KernelType": 0}
    op = Op("LSTM", inputs, (15,), "LSTMOptions", fields)
    return network("LSTM-full", tensors, [op], [0], [15], (draw(BATCH, DEPTH),))


def _basic() -> OpCase:
    width = DEPTH + UNITS
    tensors = [
        floats("x", BATCH, DEPTH),
        floats("h", BATCH, UNITS),
        floats("w", 4 * UNITS, width, data=draw(4 * UNITS, width)),
        floats("b", 4 * UNITS, data=draw(4 * UNITS)),
        floats("c", BATCH, UNITS),
        floats("y", BATCH, UNITS),
        floats("cell", BATCH, UNITS),
        floats("joined", BATCH, width),
        floats("gates", BATCH, 4 * UNITS),
    ]
    fields = {"FusedActivationFunction": 4, "KernelType": 1}
    op = Op("LSTM", (0, 1, 2, 3, 4), (5, 6, 7, 8), "LSTMOptions", fields)
    return network(
        "LSTM-basic",
        tensors,
        [op],
        [0, 1, 4],
        [5, 6],
        (draw(BATCH, DEPTH), draw(BATCH, UNITS), draw(BATCH, UNITS)),
    )


# LiteRT overwrites a part of its own results where an LSTM's are merged and the batch comes first.
CASES = [
    *map(_step, ACTIVATIONS),
    *(_sequence(act, major) for act in (1, 4) for major in (False, True)),
    *(
        _both(kind, major, merged)
        for kind in ("RNN", "LSTM")
        for major in (False, True)
        for merged in (False, True)
        if kind == "RNN" or major or not merged
    ),
    _lstm_step(),
    _basic(),
]
