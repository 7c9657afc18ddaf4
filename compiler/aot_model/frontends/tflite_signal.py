"""TFLite: the operators of TensorFlow Lite Micro's signal library, steps from audio to features. Some keep
samples, frames or sums between runs; each of those has states of its own.
"""

from __future__ import annotations

import numpy as np

from aot_model.frontends.tflite_conversion import Conversion, rule
from aot_model.frontends.tflite_custom import CustomOptions
from aot_model.frontends.tflite_movement import slices
from aot_model.ir.operator import OperatorError
from aot_model.ir.types import MAX_BYTES, DType, elements_beside
from aot_model.ir.values import Value
from aot_model.ops.audio_features import AutoScale, ScaledWindow, SpectrumEnergy
from aot_model.ops.audio_fourier import InverseRealFourier, RealFourier
from aot_model.ops.audio_streams import Framer, OverlapAdd, SpectralSubtraction, Stacker
from aot_model.ops.filter_bank import FilterBank, FilterBankLog, FilterBankSquareRoot, GainControl
from aot_model.ops.movement import Concat


def _options(n: Conversion) -> CustomOptions:
    return CustomOptions(n.operator.custom)


@rule("CUSTOM:SignalWindow")
def window(n: Conversion) -> Value:
    x, weights = n.x(0), n.x(1)
    size = weights.type.elements
    if not size or x.type.elements % size:
        raise OperatorError(f"a window {weights.type} does not fit {x.type}")
    y = n.build(
        ScaledWindow(_options(n).integer("shift")), n.reshape(x, (x.type.elements // size, size)), weights
    )
    return n.reshape(y, x.shape)


@rule("CUSTOM:SignalFftAutoScale")
def auto_scale(n: Conversion) -> list[Value]:
    return n.build.many(AutoScale(), n.x(0))


@rule("CUSTOM:SignalRfft")
def rfft(n: Conversion) -> Value:
    return n.build(RealFourier(_options(n).integer("fft_length")), n.x(0))


@rule("CUSTOM:SignalIrfft")
def irfft(n: Conversion) -> Value:
    return n.build(InverseRealFourier(_options(n).integer("fft_length")), n.x(0))


@rule("CUSTOM:SignalEnergy")
def energy(n: Conversion) -> Value:
    options = _options(n)
    return n.build(SpectrumEnergy(options.integer("start_index"), options.integer("end_index")), n.x(0))


@rule("CUSTOM:SignalFilterBank")
def filter_bank(n: Conversion) -> Value:
    channels = _options(n).integer("num_channels")
    y = n.build(FilterBank(), *(n.x(k) for k in range(6)))
    if y.shape != (channels,):
        raise OperatorError(f"the tables of a filter bank of {channels} channels are for {y.shape[0]}")
    return y


@rule("CUSTOM:SignalFilterBankSquareRoot")
def square_root(n: Conversion) -> Value:
    return n.build(FilterBankSquareRoot(), n.x(0), n.x(1))


@rule("CUSTOM:SignalFilterBankSpectralSubtraction")
def spectral_subtraction(n: Conversion) -> list[Value]:
    options, x = _options(n), n.x(0)
    if x.shape != (options.integer("num_channels"),):
        raise OperatorError(f"{x.type} does not have {options.integer('num_channels')} channels")
    op = SpectralSubtraction(
        (options.integer("smoothing"), options.integer("alternate_smoothing")),
        (options.integer("one_minus_smoothing"), options.integer("alternate_one_minus_smoothing")),
        options.integer("min_signal_remaining"),
        options.integer("spectral_subtraction_bits"),
        options.integer("smoothing_bits"),
        options.flag("clamping"),
    )
    results = n.build.many(op, x, n.kept("noise", np.zeros(x.shape, np.uint32)))
    n.keep("noise", results[1])
    return results


@rule("CUSTOM:SignalPCAN")
def gain_control(n: Conversion) -> Value:
    return n.build(GainControl(_options(n).integer("snr_shift")), n.x(0), n.x(1), n.x(2))


@rule("CUSTOM:SignalFilterBankLog")
def filter_bank_log(n: Conversion) -> Value:
    options = _options(n)
    return n.build(
        FilterBankLog(options.integer("output_scale"), options.integer("input_correction_bits")), n.x(0)
    )


def _zeros(shape: tuple[int, ...], dtype: type[np.generic]) -> np.ndarray:
    """What a state begins with, whose size is an option."""
    if elements_beside(shape) * np.dtype(dtype).itemsize > MAX_BYTES:
        raise OperatorError(f"a state of shape {list(shape)} is larger than 2 GB", "E202")
    return np.zeros(shape, dtype)


@rule("CUSTOM:SignalDelay")
def delay(n: Conversion) -> Value:
    """What comes out is the input of so many samples before, at first zeros."""
    x, length = n.x(0), _options(n).integer("delay_length")
    if x.dtype is not DType.INT16 or not x.shape or length < 0:
        raise OperatorError(f"{x.type} delayed by {length}")
    if not length:
        return n.add("Identity", x)
    lead, size = x.shape[:-1], x.shape[-1]
    both = n.build(Concat(len(lead)), n.kept("samples", _zeros((*lead, length), np.int16)), x)
    whole = [(0, d, 1) for d in lead]
    n.keep("samples", slices(n, both, [*whole, (size, size + length, 1)]))
    return slices(n, both, [*whole, (0, size, 1)])


@rule("CUSTOM:SignalOverlapAdd")
def overlap_add(n: Conversion) -> Value:
    x = n.x(0)
    if x.type.rank < 2:
        raise OperatorError(f"{x.type} has no frames")
    y, rest = n.build.many(
        OverlapAdd(_options(n).integer("frame_step")),
        x,
        n.kept("sums", np.zeros((*x.shape[:-2], x.shape[-1]), x.dtype.numpy)),
    )
    n.keep("sums", rest)
    return y


@rule("CUSTOM:SignalFramer")
def framer(n: Conversion) -> list[Value]:
    options, x = _options(n), n.x(0)
    op = Framer(options.integer("frame_size"), options.integer("frame_step"))
    if min(op.size, op.step) < 1 or not x.shape:
        raise OperatorError(f"frames of {op.size}, {op.step} apart, of {x.type}")
    before = op.size - op.step if options.flag("prefill") else 0
    if before < 0:
        raise OperatorError(f"frames of {op.size} that are {op.step} apart cannot begin with zeros", "E202")
    return _counted(n, op, _zeros((*x.shape[:-1], max(op.kept, 1)), np.int16), before)


@rule("CUSTOM:SignalStacker")
def stacker(n: Conversion) -> list[Value]:
    options, x = _options(n), n.x(0)
    left = options.integer("stacker_left_context")
    op = Stacker(left + options.integer("stacker_right_context") + 1, left, options.integer("stacker_step"))
    if x.shape != (options.integer("num_channels"),) or op.frames < 1:
        raise OperatorError(f"{op.frames} frames of {options.integer('num_channels')} channels of {x.type}")
    return _counted(n, op, _zeros((max(op.frames - 1, 1), *x.shape), np.int16), -1)


def _counted(n: Conversion, op: Framer | Stacker, kept: np.ndarray, count: int) -> list[Value]:
    """An operator that keeps some of what it saw, and how many."""
    y, valid, rest, left = n.build.many(
        op, n.x(0), n.kept("samples", kept), n.kept("count", np.asarray([count], np.int32))
    )
    n.keep("samples", rest)
    n.keep("count", left)
    return [y, valid]
