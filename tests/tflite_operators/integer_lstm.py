"""Cases: LSTMs of int8 and int16 with a cell of int16. LiteRT and TensorFlow Lite Micro have an arithmetic of
their own each; LiteRT has none of int16.
"""

from __future__ import annotations

from case import RNG, OpCase, network, whole

from tflite_models import FLOAT32, INT8, INT16, INT32, INT64, Op, T


def _lstm(
    name: str,
    oracle: str,
    cell: float,
    weight: float,
    clip: float = 0.0,
    major: bool = False,
    units: int = 3,
    wide: bool = False,
    steps: int = 9,
    fine: float = 0.0078,
    inner: float = 1.0,
) -> OpCase:
    """inner: how much coarser than the output the hidden state is said to be, to LiteRT alone. cell, weight,
    fine: the scales of the cell, of the weights and of a hidden state of int8; large weights
    saturate the gates, a fine hidden state shows the last bits of activations.
    """
    depth, batch = 6, 2
    shape = (steps, batch, depth) if major else (batch, steps, depth)

    def rows(tag: str, columns: int) -> list[T]:
        data = [whole(-127, 127, units, columns, dtype="int8") for _ in range(4)]
        return [
            T(f"{tag}{k}", d.shape, INT8, (weight * (1 + k / 7),), (0,), data=d) for k, d in enumerate(data)
        ]

    kind, x_scale, x_zero, scale, zero = (
        (INT16, 0.00012, 0, 0.000031, 0) if wide else (INT8, 0.017, -5, fine, 3)
    )
    x = T("x", shape, kind, (x_scale,), (x_zero,))
    w, r = rows("w", depth), rows("r", units)
    most = 400_000 if wide else 3000
    starts = [whole(-most, most, units, dtype="int64" if wide else "int32") for _ in range(4)]
    b = [
        T(f"b{k}", (units,), INT64 if wide else INT32, (x_scale * one.scale[0],), (0,), data=start)
        for k, (one, start) in enumerate(zip(w, starts, strict=True))
    ]
    h = T("h", (batch, units), kind, (scale,), (zero,), variable=True)
    c = T("c", (batch, units), INT16, (cell,), (0,), variable=True)
    unused = [T(f"i{k}", (0,), FLOAT32, scale=()) for k in range(4)]
    hidden = T("i4", (0,), kind, (inner * scale,), (zero,))
    y = T("y", (*shape[:2], units), kind, (scale,), (zero,))
    tensors = [x, *w, *r, *b, h, c, y, *unused, hidden]
    inputs = (*range(9), -1, -1, -1, 9, 10, 11, 12, -1, -1, 13, 14, -1, -1, -1, -1)
    operator = Op(
        "UNIDIRECTIONAL_SEQUENCE_LSTM",
        inputs,
        (15,),
        "UnidirectionalSequenceLSTMOptions",
        {"FusedActivationFunction": 4, "CellClip": clip, "TimeMajor": major},
        intermediates=(16, 17, 18, 19, 20),
    )
    return network(
        f"LSTM-int{16 if wide else 8}-{name}-{oracle}",
        tensors,
        [operator],
        [0],
        [15],
        (whole(-32768, 32767, *shape, dtype="int16") if wide else whole(-128, 127, *shape, dtype="int8"),),
        oracle=oracle,
        arithmetic="tflm" if oracle == "tflm" else "litert-ref",
    )


CASES = [
    case
    for oracle in ("litert", "tflm")
    for case in (
        _lstm("plain", oracle, 2.0**-11, 0.006),
        _lstm("major", oracle, 2.0**-12, 0.01, major=True, units=8),
        _lstm("fine-cell", oracle, 2.0**-15, 0.004),
        _lstm("coarse-cell", oracle, 2.0**-9, 0.02, units=5),
        _lstm("six", oracle, 2.0**-11, 0.01, units=6),
        _lstm("saturated", oracle, 2.0**-10, 0.2, units=4),
        _lstm("beyond", oracle, 2.0**-11, 3.0, units=13),
        _lstm("bits", oracle, 2.0**-11, 0.01, units=48, steps=24, fine=2e-5),
        _lstm("more-bits", oracle, 2.0**-13, 0.03, units=48, steps=24, fine=6e-5),
        _lstm("clip", oracle, 2.0**-11, 0.02, clip=0.6, units=4),
    )
]
CASES += [
    _lstm("plain", "tflm", 2.0**-11, 0.006, wide=True),
    _lstm("major", "tflm", 2.0**-13, 0.02, major=True, units=5, wide=True),
    _lstm("saturated", "tflm", 2.0**-10, 0.3, clip=0.8, units=4, wide=True),
]
# The cases of other modules, of which drawn.json names forms, keep their numbers.
_drawn = RNG.bit_generator.state
CASES += [_lstm("inner", oracle, 2.0**-11, 0.006, inner=1.3) for oracle in ("litert", "tflm")]
RNG.bit_generator.state = _drawn
