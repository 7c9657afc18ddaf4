"""Cases: the front end of speech commands, beside LiteRT, which computes it in double precision."""

from __future__ import annotations

import numpy as np
from audio import options
from case import OpCase, draw, one

from tflite_models import FLOAT32, T, ints

_times = np.arange(1200)[:, None] * np.asarray([[1.0, 2.5]])
_tones = (np.sin(_times / 7) + 0.01 * draw(1200, 2)).astype(np.float32)


def _spectrogram(name: str, x: np.ndarray, window: int, step: int, squared: bool) -> OpCase:
    frames = 1 + (len(x) - window) // step
    bins = (1 << (window - 1).bit_length()) // 2 + 1
    return one(
        f"AudioSpectrogram-{name}",
        "CUSTOM:AudioSpectrogram",
        [x],
        [T("y", (x.shape[1], frames, bins), FLOAT32, scale=())],
        custom=options({"window_size": window, "stride": step, "magnitude_squared": squared}),
        tolerance=2e-6,
    )


def _mfcc(name: str, x: np.ndarray, rate: int, bands: int, count: int, low: float, high: float) -> OpCase:
    fields = {
        "upper_frequency_limit": high,
        "lower_frequency_limit": low,
        "filterbank_channel_count": bands,
        "dct_coefficient_count": count,
    }
    return one(
        f"Mfcc-{name}",
        "CUSTOM:Mfcc",
        [x, ints("rate", [rate])],
        [T("y", (*x.shape[:2], count), FLOAT32, scale=())],
        custom=options(fields),
        tolerance=2e-6,
    )


def _powers(*shape: int) -> np.ndarray:
    return np.square(draw(*shape))


CASES = [
    _spectrogram("480", _tones[:, :1], 480, 160, True),
    _spectrogram("512-magnitude", _tones, 512, 200, False),
    _spectrogram("30", _tones[:100], 30, 7, True),
    _spectrogram("2", draw(5, 1), 2, 1, True),
    _spectrogram("one", draw(100, 3), 100, 1000, False),
    _mfcc("40", _powers(1, 3, 257), 16000, 40, 13, 20.0, 4000.0),
    _mfcc("all", _powers(2, 2, 129), 8000, 12, 12, 0.0, 4000.0),
    _mfcc("narrow", _powers(1, 2, 33), 16000, 20, 7, 100.0, 3800.0),
    _mfcc("none", _powers(1, 1, 9), 16000, 3, 2, 10.0, 20.0),
    _mfcc("zeros", np.zeros((1, 2, 65), np.float32), 22050, 10, 5, 50.0, 8000.0),
]
