"""Cases: the signal library of TensorFlow Lite Micro. What keeps something between runs has more in
test_audio.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from case import OpCase, network
from flatbuffers import flexbuffers

from tflite_models import BOOL, FLOAT32, INT16, INT32, UINT32, UINT64, Op, T

_KINDS = {
    "int16": INT16,
    "int32": INT32,
    "uint32": UINT32,
    "uint64": UINT64,
    "float32": FLOAT32,
    "bool": BOOL,
}
RNG = np.random.default_rng(11)


def options(fields: dict[str, Any]) -> bytes:
    """Custom options: a flexbuffer."""
    return bytes(flexbuffers.Dumps(fields))


def tensor(name: str, kind: str, *shape: int, data: np.ndarray | None = None) -> T:
    return T(name, shape, _KINDS[kind], scale=(), data=data)


def signal(
    name: str,
    kind: str,
    inputs: Sequence[np.ndarray],
    outputs: Sequence[tuple[str, tuple[int, ...]]],
    fields: dict[str, Any],
    constants: Sequence[np.ndarray] = (),
    **more: Any,
) -> OpCase:
    """A case of one operator: inputs of the model, then constants."""
    tensors = [tensor(f"x{k}", str(x.dtype), *x.shape) for k, x in enumerate(inputs)]
    tensors += [tensor(f"c{k}", str(x.dtype), *x.shape, data=x) for k, x in enumerate(constants)]
    first = len(tensors)
    tensors += [tensor(f"y{k}", t, *shape) for k, (t, shape) in enumerate(outputs)]
    op = Op(
        f"CUSTOM:Signal{kind}",
        tuple(range(first)),
        tuple(range(first, len(tensors))),
        custom=options(fields) if fields else b"",
    )
    return network(
        f"Signal{name}",
        tensors,
        [op],
        list(range(len(inputs))),
        list(op.outputs),
        inputs,
        oracle="tflm",
        **more,
    )


def noise(dtype: str, *shape: int) -> np.ndarray:
    """Numbers of all sizes: a wide range, shifted by random counts."""
    if dtype == "float32":
        return np.asarray(RNG.uniform(-1, 1, shape), np.float32)
    limits = np.iinfo(dtype)
    return np.asarray(
        RNG.integers(limits.min, limits.max, shape, dtype, endpoint=True)
        >> RNG.integers(0, 8 * np.dtype(dtype).itemsize - 1, shape).astype(dtype),
        dtype,
    )


def loud(dtype: str, *shape: int) -> np.ndarray:
    """Numbers of the whole range, with both ends of it."""
    limits = np.iinfo(dtype)
    x = np.asarray(RNG.integers(limits.min, limits.max, shape, dtype, endpoint=True))
    return np.where(
        RNG.integers(0, 4, shape) == 0, RNG.choice(np.asarray([limits.min, limits.max], dtype), shape), x
    ).astype(dtype)


_TYPES = {"int16": 7, "int32": 2, "float32": 0}
"""Of the option T, which says the element type as the schema numbers it."""


def _rfft(dtype: str, length: int, x: np.ndarray, label: str = "") -> OpCase:
    return signal(
        f"Rfft-{dtype}-{length}{label}",
        "Rfft",
        [x],
        [(dtype, (*x.shape[:-1], length + 2))],
        {"T": _TYPES[dtype], "fft_length": length},
        tolerance=1e-6,
    )


def _irfft(dtype: str, length: int, x: np.ndarray, label: str = "") -> OpCase:
    return signal(
        f"Irfft-{dtype}-{length}{label}",
        "Irfft",
        [x],
        [(dtype, (*x.shape[:-1], length))],
        {"T": _TYPES[dtype], "fft_length": length},
        tolerance=1e-6,
    )


def transforms() -> list[OpCase]:
    """Lengths with every radix, and signals at the ends of their range."""
    cases = []
    for dtype in ("int16", "int32"):
        for length in (4, 6, 8, 10, 16, 24, 30, 50, 64, 90, 120, 250, 512, 1000):
            cases += [
                _rfft(dtype, length, loud(dtype, 2, length)),
                _irfft(dtype, length, loud(dtype, 2, length + 2)),
            ]
        limits = np.iinfo(dtype)
        for length in (60, 128):
            for label, value in (("zero", 0), ("least", limits.min), ("most", limits.max)):
                cases += [
                    _rfft(dtype, length, np.full(length, value, dtype), f"-{label}"),
                    _irfft(dtype, length, np.full(length + 2, value, dtype), f"-{label}"),
                ]
    cases += [
        _rfft("int16", 512, noise("int16", 480), "-padded"),
        _rfft("int16", 64, noise("int16", 2, 3, 1), "-one"),
    ]
    cases += [_rfft("float32", n, noise("float32", 2, n)) for n in (64, 90, 400)]
    for n in (64, 90, 400):
        y = noise("float32", 2, n + 2)
        cases.append(_irfft("float32", n, y))
    return cases


def _scale(label: str, x: Sequence[int] | np.ndarray) -> OpCase:
    array = np.asarray(x, np.int16)
    return signal(
        f"FftAutoScale-{label}", "FftAutoScale", [array], [("int16", array.shape), ("int32", ())], {}
    )


_edges32 = np.asarray(
    [0, 1, 2, 3, 4, 7, 1023, 1024, 2047, 2048, 65535, 65536, 2**20 + 7, 2**29, 2**31 - 1, 2**31, 2**32 - 1],
    np.uint32,
)
_edges64 = np.asarray(
    [0, 1, 2, 3, 6, 7, 65535**2, 65535**2 + 65536, 2**32 - 1, 2**32, 2**63, 2**64 - 1, (2**32 - 1) ** 2],
    np.uint64,
)
_many32 = np.concatenate([_edges32, noise("uint32", 400)])
_many64 = np.concatenate([_edges64, noise("uint64", 400)])
_bands = [np.asarray(t, np.int16) for t in ([0, 3, 5, 9, 20], [0, 3, 5, 9, 20], [3, 2, 4, 11, 12])]
_weights = np.asarray(RNG.integers(0, 4097, 32), np.int16)
_gain = np.asarray(RNG.integers(-32768, 32768, 125), np.int16)
SUBTRACTION = {
    "alternate_one_minus_smoothing": 15401,
    "alternate_smoothing": 983,
    "clamping": False,
    "min_signal_remaining": 819,
    "num_channels": 417,
    "one_minus_smoothing": 15975,
    "smoothing": 409,
    "smoothing_bits": 10,
    "spectral_subtraction_bits": 14,
}


def _bank(label: str, weights: np.ndarray, rest: np.ndarray) -> OpCase:
    return signal(
        f"FilterBank-{label}",
        "FilterBank",
        [loud("uint32", 40)],
        [("uint64", (4,))],
        {"num_channels": 4},
        [weights, rest, *_bands],
    )


def _window(shape: tuple[int, ...], shift: int) -> OpCase:
    x, weights = loud("int16", *shape), loud("int16", 30)
    return signal(f"Window-{shape}-{shift}", "Window", [x], [("int16", shape)], {"shift": shift}, [weights])


CASES: list[OpCase] = [
    *transforms(),
    *(_window(shape, shift) for shape in ((30,), (1, 30), (2, 3, 60)) for shift in (0, 12, 15)),
    _scale("zero", [0, 0, 0]),
    _scale("small", [1, -2, 3]),
    _scale("half", [16384, -16383]),
    _scale("below", [-16384, 16383]),
    _scale("most", [32767, -5]),
    _scale("least", [-32768, 5, -3]),
    _scale("least-last", [7, 9, -32768]),
    _scale("least-then-negative", [3, -32768, -9, -3, -7]),
    _scale("many", noise("int16", 480) >> 3),
    signal(
        "Energy-all", "Energy", [loud("int16", 66)], [("uint32", (33,))], {"end_index": 33, "start_index": 0}
    ),
    _bank("triangles", _weights, np.asarray(4096 - _weights, np.int16)),
    _bank("negative", np.asarray(-_weights, np.int16), _weights),
    *(
        signal(
            f"FilterBankSquareRoot-{b}",
            "FilterBankSquareRoot",
            [_many64, np.asarray(b, np.int32)],
            [("uint32", _many64.shape)],
            {},
        )
        for b in (0, 3, 14)
    ),
    signal(
        "FilterBankSpectralSubtraction",
        "FilterBankSpectralSubtraction",
        [_many32],
        [("uint32", (417,)), ("uint32", (417,))],
        SUBTRACTION,
    ),
    *(
        signal(
            f"PCAN-{s}",
            "PCAN",
            [np.roll(_many32, 5), _many32],
            [("uint32", (417,))],
            {"snr_shift": s},
            [_gain],
        )
        for s in (0, 6, 20)
    ),
    *(
        signal(
            f"FilterBankLog-{c}-{b}",
            "FilterBankLog",
            [_many32],
            [("int16", (417,))],
            {"input_correction_bits": b, "output_scale": c},
        )
        for c, b in ((64, 3), (1600, 0), (65536, 31), (100000, 7))
    ),
    signal("Delay", "Delay", [loud("int16", 2, 9)], [("int16", (2, 9))], {"delay_length": 4}),
    signal(
        "OverlapAdd-int16",
        "OverlapAdd",
        [loud("int16", 2, 5, 6)],
        [("int16", (2, 10))],
        {"T": 7, "frame_step": 2},
    ),
    signal(
        "OverlapAdd-float",
        "OverlapAdd",
        [noise("float32", 5, 6)],
        [("float32", (25,))],
        {"T": 0, "frame_step": 5},
    ),
    signal(
        "Framer",
        "Framer",
        [loud("int16", 2, 9)],
        [("int16", (2, 3, 7)), ("bool", ())],
        {"frame_size": 7, "frame_step": 3, "prefill": True},
    ),
    signal(
        "Stacker",
        "Stacker",
        [loud("int16", 5)],
        [("int16", (20,)), ("bool", ())],
        {"num_channels": 5, "stacker_left_context": 3, "stacker_right_context": 0, "stacker_step": 2},
    ),
]
