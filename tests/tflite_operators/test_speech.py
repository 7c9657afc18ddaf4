"""What the front end of speech commands refuses: options that are no whole numbers, windows and bands that do
not fit.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from audio import options

from batch import Case, run_cases
from tflite_models import FLOAT32, Op, T, build, ints

_SPECTROGRAM = {"window_size": 8, "stride": 4, "magnitude_squared": True}
_MFCC = {
    "upper_frequency_limit": 4000.0,
    "lower_frequency_limit": 20.0,
    "filterbank_channel_count": 10,
    "dct_coefficient_count": 5,
}


def _message(kind: str, shape: tuple[int, ...], fields: dict[str, object], rate: int = 16000) -> str:
    tensors = [T("x", shape, FLOAT32, scale=()), T("y", (1, 1, 1), FLOAT32, scale=()), ints("rate", [rate])]
    inputs = (0, 2) if kind == "Mfcc" else (0,)
    model = build(tensors, [Op(f"CUSTOM:{kind}", inputs, (1,), custom=options(fields))], [0], [1])
    (outcome,) = run_cases([Case(kind, model, (np.zeros(shape, np.float32),))], "c")
    assert outcome.status == "refused", outcome
    return outcome.message


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"window_size": 33}, "windows of 33 every 4 samples do not fit"),
        ({"window_size": 1}, "windows of 1"),
        ({"stride": 0}, "every 0 samples"),
        ({"window_size": math.inf}, "not a whole number"),
        ({"window_size": math.nan}, "not a whole number"),
        ({"window_size": 1 << 62}, "do not fit"),
    ],
)
def test_spectrogram(change: dict[str, object], said: str) -> None:
    assert said in _message("AudioSpectrogram", (32, 1), {**_SPECTROGRAM, **change})


@pytest.mark.parametrize(
    ("change", "rate", "said"),
    [
        ({"upper_frequency_limit": 9000.0}, 16000, "beyond the last of 65 frequencies"),
        ({"lower_frequency_limit": -1.0}, 16000, "do not fit"),
        ({"lower_frequency_limit": 4000.0}, 16000, "do not fit"),
        ({}, 0, "do not fit"),
        ({"dct_coefficient_count": 11}, 16000, "11 coefficients of 10 bands"),
        ({"filterbank_channel_count": 1 << 40, "dct_coefficient_count": 5}, 16000, "coefficients of"),
    ],
)
def test_mfcc(change: dict[str, object], rate: int, said: str) -> None:
    assert said in _message("Mfcc", (1, 2, 65), {**_MFCC, **change}, rate)
