"""TFLite: AudioSpectrogram and Mfcc, which LiteRT knows by name: the front end of speech commands.

LiteRT computes both in double precision; here they are single, as all floats of a network are. Where a band
is 120 dB below the loudest, its logarithm is that of rounding.
"""

from __future__ import annotations

import numpy as np

from aot_model.frontends.tflite_conversion import Conversion, rule
from aot_model.frontends.tflite_custom import CustomOptions
from aot_model.frontends.tflite_reduction import reduction
from aot_model.ir.operator import OperatorError
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.ops.matmul import MatMul
from aot_model.ops.movement import Pad
from aot_model.ops.signal import Frames, fourier

FLOOR = 1e-12
"""The least energy of a band."""
MOST = 1 << 22
"""Numbers in a table of weights: what is more is no sensible filter bank."""


@rule("CUSTOM:AudioSpectrogram")
def audio_spectrogram(n: Conversion) -> Value:
    """Powers or magnitudes [channels, frames, frequencies] of [samples, channels] in Hann windows."""
    options, x = CustomOptions(n.operator.custom), n.real()
    length, step = options.integer("window_size"), options.integer("stride")
    if x.type.rank != 2 or not 2 <= length <= x.shape[0] or step < 1:
        raise OperatorError(f"windows of {length} every {step} samples do not fit {x.type}")
    whole = 1 << (length - 1).bit_length()
    window = 0.5 - 0.5 * np.cos(2 * np.pi * np.arange(length) / length)
    frames = n.build(Frames(length, step), n.reshape(n.transpose(x, (1, 0)), (x.shape[1], x.shape[0], 1)))
    frames = n.add("Mul", frames, n.constant(window.reshape(length, 1), DType.FLOAT32))
    if whole > length:
        pads = n.constant([0] * 6 + [whole - length, 0], DType.INT64)
        frames = n.build(Pad(), frames, pads, n.constant(0, DType.FLOAT32))
    spectrum = fourier(n.build, frames, 2, whole, whole // 2 + 1, False)
    squares = n.add("Mul", spectrum, spectrum)
    power = n.build(reduction("ReduceSum", keep=False), squares, n.constant([3], DType.INT64))
    return power if options.flag("magnitude_squared", False) else n.add("Sqrt", power)


@rule("CUSTOM:Mfcc")
def mfcc(n: Conversion) -> Value:
    """Cosine transforms [channels, frames, coefficients] of the logarithms of bands of the mel scale."""
    options, x = CustomOptions(n.operator.custom), n.real()
    rate = n.ints(1, "the sample rate")[0]
    bands, count = options.integer("filterbank_channel_count"), options.integer("dct_coefficient_count")
    low, high = options.integer("lower_frequency_limit"), options.integer("upper_frequency_limit")
    if x.type.rank != 3 or x.shape[2] < 2 or rate < 1 or not 0 <= low < high:
        raise OperatorError(
            f"bands between {low} and {high} Hz, {rate} samples a second, do not fit {x.type}"
        )
    if not 1 <= count <= bands or bands * max(x.shape[2], bands) > MOST:
        raise OperatorError(f"{count} coefficients of {bands} bands")
    weights = _bands(x.shape[2], rate, bands, low, high)
    angles = np.outer((np.arange(bands) + 0.5) * np.pi / bands, np.arange(count))
    cosines = np.sqrt(2 / bands) * np.cos(angles)
    energy = n.build(MatMul(), n.add("Sqrt", x), n.constant(weights, DType.FLOAT32))
    logarithm = n.add("Log", n.clip(energy, FLOOR, None))
    return n.build(MatMul(), logarithm, n.constant(cosines, DType.FLOAT32))


def _mel(frequency: np.ndarray | float) -> np.ndarray:
    return np.asarray(1127.0 * np.log1p(np.asarray(frequency) / 700.0))


def _bands(bins: int, rate: int, bands: int, low: float, high: float) -> np.ndarray:
    """Weights [bins, bands]: triangles with corners evenly on the mel scale, the first bin left out."""
    spacing = 0.5 * rate / (bins - 1)
    first, last = int(1.5 + low / spacing), int(high / spacing)
    if last >= bins:
        raise OperatorError(f"its bands reach {high:g} Hz, beyond the last of {bins} frequencies")
    corners = _mel(low) + (_mel(high) - _mel(low)) / (bands + 1) * np.arange(bands + 2)
    weights = np.zeros((bins, bands))
    for k in range(first, last + 1):
        place = float(_mel(k * spacing))
        # The triangle that falls here; the next one rises by what is left of 1.
        band = min(int(np.searchsorted(corners[1:], place)), bands) - 1
        falls = (corners[band + 2] - place) / (corners[band + 2] - corners[band + 1])
        if band >= 0:
            weights[k, band] += falls
        if band + 1 < bands:
            weights[k, band + 1] += 1 - falls
    return weights
