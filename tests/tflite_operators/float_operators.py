"""Cases: operators of floats with a state, suppression of boxes, cube roots, numbers that are rounded as if
they were quantised.
"""

from __future__ import annotations

import numpy as np
from case import OpCase, draw, network, one, plain

from tflite_models import FLOAT32, INT32, Op, T, floats, ints


def _svdf() -> OpCase:
    units, rank, memory, depth = 3, 2, 5, 4
    tensors = [
        floats("x", 1, depth),
        floats("feature", units * rank, depth, data=draw(units * rank, depth)),
        floats("time", units * rank, memory, data=draw(units * rank, memory)),
        floats("bias", units, data=draw(units)),
        T("state", (1, memory * units * rank), FLOAT32, scale=(), variable=True),
        floats("y", 1, units),
    ]
    return network(
        "SVDF",
        tensors,
        [Op("SVDF", (0, 1, 2, 3, 4), (5,), "SVDFOptions", {"Rank": rank, "FusedActivationFunction": 1})],
        [0],
        [5],
        (draw(1, depth),),
    )


def _lstm(time_major: bool) -> OpCase:
    units, depth, steps = 3, 4, 5
    shape = (steps, 2, depth) if time_major else (2, steps, depth)
    tensors = [
        floats("x", *shape),
        *(floats(f"w{k}", units, depth, data=draw(units, depth)) for k in range(4)),
        *(floats(f"r{k}", units, units, data=draw(units, units)) for k in range(4)),
    ]
    tensors += [
        *(floats(f"b{k}", units, data=draw(units)) for k in range(4)),
        *(T(name, (2, units), FLOAT32, scale=(), variable=True) for name in ("h", "c")),
        floats("y", *shape[:2], units),
    ]
    inputs = (*range(9), -1, -1, -1, 9, 10, 11, 12, -1, -1, 13, 14, -1, -1, -1, -1)
    fields = {"FusedActivationFunction": 4, "CellClip": 0.7, "TimeMajor": time_major}
    return network(
        f"LSTM-{time_major}",
        tensors,
        [Op("UNIDIRECTIONAL_SEQUENCE_LSTM", inputs, (15,), "UnidirectionalSequenceLSTMOptions", fields)],
        [0],
        [15],
        (draw(*shape),),
    )


def _suppression() -> list[OpCase]:
    low = draw(7, 2, low=0, high=4)
    boxes, scores = (
        np.concatenate([low, low + draw(7, 2, low=1, high=4)], 1),
        np.asarray([0.3, 0.9, 0.1, 0.75, 0.5, 0.62, 0.2], np.float32),
    )
    limits = [
        ints("most", 4),
        floats("overlap", data=np.asarray(0.3, np.float32)),
        floats("least", data=np.asarray(0.15, np.float32)),
    ]
    outputs = [plain("picked", (4,), INT32), plain("scores", (4,), FLOAT32), plain("count", (), INT32)]
    soft = floats("sigma", data=np.asarray(0.0, np.float32))
    return [
        one("NMS4", "NON_MAX_SUPPRESSION_V4", [boxes, scores, *limits], [outputs[0], outputs[2]]),
        one("NMS5", "NON_MAX_SUPPRESSION_V5", [boxes, scores, *limits, soft], outputs),
    ]


CASES = [_svdf(), _lstm(False), _lstm(True), *_suppression()]

_cubes = np.asarray([-8, -0.3, 0, 1e-6, 27, 1e5], np.float32)
CASES += [
    one(
        "STABLEHLO_CBRT",
        "STABLEHLO_CBRT",
        [_cubes],
        [plain("y", (6,), FLOAT32)],
        oracle="numpy",
        expected=(np.cbrt(_cubes),),
    ),  # LiteRT's package has none
    *(
        one(
            f"FAKE_QUANT-{bits}-{low}",
            "FAKE_QUANT",
            [draw(40, low=-4, high=4)],
            [plain("y", (40,), FLOAT32)],
            "FakeQuantOptions",
            {"Min": low, "Max": 3.1, "NumBits": bits},
        )
        for bits, low in ((8, -2.7), (4, 0.0), (16, -1.3), (8, 0.6), (2, -3.1))
    ),
]
