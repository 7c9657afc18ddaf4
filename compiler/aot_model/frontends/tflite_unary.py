"""TFLite: element-wise operators of one input, of floats, and of quantised tensors as tables."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from aot_model.arithmetic import fixed_point
from aot_model.frontends.tflite_conversion import ACTIVATION_RANGES, Conversion, finite, rescale, rule
from aot_model.ir.operator import OperatorError
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.ops.activation import Elu, Gelu, LeakyRelu, LibmGelu
from aot_model.ops.conversion import Cast
from aot_model.ops.interpolated import InterpolatedLookup
from aot_model.ops.quantised import QuantisedPRelu
from aot_model.ops.quantised_tables import SigmoidInt16, Table, lookup
from aot_model.ops.rsqrt_int16 import RsqrtInt16

f32 = np.float32


# --- one input ----------------------------------------------------------------------------------------------

_ONE: dict[str, tuple[str, Callable[[Any], Any] | None]] = {
    # builtin: operator on floats and plain integers, and the function behind the table for 8-bit quantised
    # tensors
    "EXP": ("Exp", np.exp),
    "LOG": ("Log", np.log),
    "SIN": ("Sin", np.sin),
    "COS": ("Cos", np.cos),
    "SQRT": ("Sqrt", np.sqrt),
    "NEG": ("Neg", np.negative),
    "FLOOR": ("Floor", np.floor),
    "CEIL": ("Ceil", np.ceil),
    "ROUND": ("Round", np.rint),
    "LOGICAL_NOT": ("Not", None),
    "SIGN": ("Sign", np.sign),
    "TAN": ("Tan", np.tan),
}


@rule(*_ONE)
def one(n: Conversion) -> Value:
    name, function = _ONE[n.operator.kind]
    if not n.quantised():
        return n.add(name, n.x())
    if function is None:
        raise OperatorError(f"{n.x().type} is not supported", "E202")
    if n.x().dtype is DType.INT16 and n.operator.kind == "SQRT":
        return _root_of_words(n)
    if n.x().dtype is DType.INT16 and n.operator.kind in ("EXP", "LOG"):
        return _interpolated(
            n,
            function
            if n.operator.kind == "EXP"
            else lambda v: np.log(v) if v > 0 else f32(-32768) * f32(n.scale_out()),
        )
    if n.operator.kind == "LOG":  # of what is not positive the lowest number

        def function(v: Any) -> Any:
            lowest = f32(n.out_dtype().limits[0] - n.zero_out()) * f32(n.scale_out())
            return np.where(v > 0, np.log(v), lowest)

    return _float_table(n, function, towards_zero=n.operator.kind == "SQRT")


def _root_of_words(n: Conversion) -> Value:
    """Square roots of int16, in single precision and without what is behind the point, as LiteRT computes
    them; of negative numbers, which it refuses when it runs, 0.
    """
    if n.out_dtype() is not DType.INT16 or n.zero() or n.zero_out():
        raise OperatorError(
            f"{n.x().type} with zero points {n.zero()} and {n.zero_out()} is not supported", "E202"
        )
    real = n.build(Cast(DType.FLOAT32), n.x())
    real = n.add("Mul", n.clip(real, 0.0, 32767.0), n.constant([n.scale()], DType.FLOAT32))
    steps = n.add("Div", n.add("Sqrt", real), n.constant([n.scale_out()], DType.FLOAT32))
    return n.build(Cast(DType.INT16), n.clip(steps, 0.0, 32767.0))


def _interpolated(n: Conversion, function: Callable[[Any], Any]) -> Value:
    """A table of int16 with interpolation."""
    if n.out_dtype() is not DType.INT16 or n.zero() or n.zero_out():
        raise OperatorError(
            f"{n.x().type} with zero points {n.zero()} and {n.zero_out()} is not supported", "E202"
        )
    with np.errstate(all="ignore"):
        values = fixed_point.interpolated_table(
            n.scale(), 0, lambda v: f32(function(np.float64(v))), n.scale_out()
        )
    return n.build(InterpolatedLookup(Table(values, DType.INT16, 0)), n.x())


def _float_table(n: Conversion, function: Callable[[Any], Any], towards_zero: bool = False) -> Value:
    """A table of round(function(x)), computed in single precision as the reference does; or without what is
    behind the point.
    """
    x = n.x()
    if x.dtype.bits != 8 or n.out_dtype() is not x.dtype:
        raise OperatorError(f"{x.type} is not supported", "E202")
    low, high = x.dtype.limits
    values = f32(n.scale()) * np.arange(low - n.zero(), high - n.zero() + 1, dtype=np.int32).astype(
        np.float32
    )
    with np.errstate(all="ignore"):
        real = np.asarray(function(values), dtype=np.float32)
        real = np.trunc(real / f32(n.scale_out())) if towards_zero else real * (f32(1) / f32(n.scale_out()))
    table = [int(np.clip(_away(v) + n.zero_out(), low, high)) for v in real]
    return n.build(lookup(x.dtype, table), x)


def _away(v: Any) -> float:
    if math.isnan(v):
        return 0.0
    return float(fixed_point.round_away(float(v))) if math.isfinite(v) else math.copysign(2.0**31, float(v))


def _integer_table(n: Conversion, function: Callable[[int], int]) -> Value:
    """A table of function(x - zero point), which includes the zero point of the result; saturated."""
    x = n.x()
    low, high = x.dtype.limits
    if x.dtype.bits != 8 or n.out_dtype() is not x.dtype:
        raise OperatorError(f"{x.type} is not supported", "E202")
    return n.build(
        lookup(x.dtype, [max(low, min(high, function(v - n.zero()))) for v in range(low, high + 1)]), x
    )


@rule("ABS")
def absolute(n: Conversion) -> Value:
    if not n.quantised():
        return n.add("Abs", n.x())
    real, zero = float(f32(n.scale()) / f32(n.scale_out())), n.zero_out()
    factor = fixed_point.quantise_multiplier(real)
    if n.x().dtype is DType.INT16:
        x = n.add("Abs", n.build(Cast(DType.INT32), n.x()))
        return n.requantise(x, [real], n.limits(), zero, n.out_dtype())
    return _integer_table(
        n, lambda v: (abs(v) if real == 1 else fixed_point.requantise(abs(v), *factor)) + zero
    )


@rule("SQUARE")
def square(n: Conversion) -> Value:
    if n.quantised():
        return _float_table(n, np.square)
    return n.add("Mul", n.x(), n.x())


@rule("RSQRT")
def rsqrt(n: Conversion) -> Value:
    if not n.quantised():
        return n.add("Reciprocal", n.add("Sqrt", n.x()))
    words, zero = n.x().dtype is DType.INT16, n.zero_out()
    if words and n.host.arithmetic == "litert-ref":
        return _interpolated(n, lambda v: f32(1) / np.sqrt(v) if v > 0 else f32(32767) * f32(n.scale_out()))
    if words and n.out_dtype() is DType.INT16 and n.zero() == zero == 0:
        # By doubles, as TensorFlow Lite Micro is built; bytes do not show it.
        factor = fixed_point.quantise_multiplier(1 / (math.sqrt(n.scale()) * n.scale_out()))
        return n.build(RsqrtInt16(*factor), n.x())
    root = float(np.sqrt(f32(n.scale())) * f32(n.scale_out()))
    if root == 0:
        raise OperatorError("the scales are too small", "E302", "quantise the model again")
    multiplier, shift = fixed_point.quantise_multiplier(1 / root)

    def value(v: int) -> int:
        if v <= 0:
            return n.x().dtype.limits[1]
        inverse, exponent = fixed_point.inverse_sqrt(v)
        return (
            fixed_point.requantise(fixed_point.requantise(1, inverse, exponent + 20), multiplier, shift - 20)
            + zero
        )

    return _integer_table(n, value)


@rule("LOGISTIC", "TANH")
def sigmoid(n: Conversion) -> Value:
    x, hyperbolic = n.x(), n.operator.kind == "TANH"
    if not n.quantised():
        return n.add("LibmTanh" if hyperbolic else "LibmSigmoid", x)
    if x.dtype is DType.INT16:
        n.needs_result(2.0**-15, 0)
        if n.zero():
            raise OperatorError(f"{x.type} with zero point {n.zero()}", "E302", "quantise the model again")
        return n.build(
            SigmoidInt16(hyperbolic, *sixteen_bit_argument(n.scale(), (0, 1) if hyperbolic else (0,))), x
        )
    # The results of TensorFlow Lite Micro have scale 2^-7 around 0, or 2^-8 from the lowest value on; it does
    # not look whether the file says so. LiteRT's have the scale of the file.
    low = x.dtype.limits[0]
    usual = n.has_result(2.0**-7, low + 128) if hyperbolic else n.has_result(2.0**-8, low)
    if n.host.arithmetic == "litert-ref" or not usual:
        return _float_table(n, np.tanh if hyperbolic else lambda v: f32(1) / (f32(1) + np.exp(-v)))
    fraction, shift = math.frexp(n.scale() * 2.0**27)
    multiplier, radius = fixed_point.round_away(fraction * 2**31), fixed_point.input_radius(4, shift)
    function, bits = (fixed_point.tanh, 24) if hyperbolic else (fixed_point.logistic, 23)
    lowest, most = (-128, 127) if hyperbolic else (0, 255)
    offset = n.zero_out()

    def value(v: int) -> int:
        if abs(v) >= radius:
            return (lowest if v <= -radius else most) + offset
        y = fixed_point.rounding_shift(function(fixed_point.requantise(v, multiplier, shift), 4), bits)
        return y + offset

    return _integer_table(n, value)


def sixteen_bit_argument(scale: float, direct_shifts: tuple[int, ...]) -> tuple[int, int]:
    """(multiplier, right shift) that bring int16 of a scale to steps of 2^-12 / 3, for SigmoidInt16.

    Scales that are 2^-12 times a small power of two are exact; others take a multiplier of 16 bits.
    """
    power = math.log2(scale)
    shift = 12 + round(power)
    if abs(power - round(power)) < 1e-3 and shift in direct_shifts:
        return 3 << shift, 0
    factor, shift = scale * 4096 * 3, 0
    while factor <= 32767 / 2 and shift <= 30:
        factor, shift = factor * 2, shift + 1
    if factor > 32767:
        raise OperatorError(f"scale {scale} is too large", "E302")
    return int(factor), shift


@rule("ELU")
def elu(n: Conversion) -> Value:
    if n.quantised():
        return _float_table(n, lambda v: np.where(v < 0, np.exp(v) - f32(1), v))
    return n.build(Elu(), n.real())


def _gelu_by_tanh(v: Any) -> Any:
    """The approximation in single precision, as LiteRT's kernel for 16 bits has it."""
    x = f32(v)
    inner = f32(math.sqrt(2 / math.pi)) * (x + f32(0.044715) * x * x * x)
    return f32(0.5) * x * (f32(1) + f32(math.tanh(float(inner))))


@rule("GELU")
def gelu(n: Conversion) -> Value:
    tanh = bool(n.operator.options.get("GeluOptions", "Approximate"))
    if not n.quantised():
        return n.build(LibmGelu() if tanh else Gelu(), n.real())
    if n.x().dtype is DType.INT16:
        return _interpolated(
            n, _gelu_by_tanh if tanh else lambda v: 0.5 * v * (1 + math.erf(v * math.sqrt(0.5)))
        )
    if tanh:
        return _float_table(
            n, lambda v: 0.5 * v * (1 + np.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3)))
        )
    return _float_table(n, lambda v: [0.5 * float(e) * (1 + math.erf(float(e) * math.sqrt(0.5))) for e in v])


@rule("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1")
def relu(n: Conversion) -> Value:
    name = n.operator.kind
    bounds = ACTIVATION_RANGES[name]
    if not n.quantised():
        return n.add("Relu", n.x()) if name == "RELU" else n.clip(n.x(), *bounds)
    real = float(f32(n.scale()) / f32(n.scale_out()))
    return n.requantise(n.x(), [real], n.limits(name), n.zero_out(), n.out_dtype(), x_zero_point=n.zero())


@rule("LEAKY_RELU")
def leaky_relu(n: Conversion) -> Value:
    alpha = finite(float(n.operator.options.get("LeakyReluOptions", "Alpha")), "alpha")
    if not n.quantised():
        return n.build(LeakyRelu(alpha), n.real())
    # TensorFlow Lite Micro is built with doubles for these; bytes do not show it.
    real = f32 if n.host.arithmetic == "litert-ref" else np.float64
    scale, out = real(n.scale()), real(n.scale_out())
    positive = rescale(float(scale / out), n.zero_out())
    negative = rescale(float(scale * real(abs(alpha)) / out))
    if n.x().dtype is DType.INT16:
        sign = n.constant(-1 if alpha < 0 else 1, DType.INT16)
        return n.build(QuantisedPRelu(n.zero(), 0, positive, negative), n.x(), sign)

    def value(v: int) -> int:
        if v >= 0:
            return fixed_point.requantise(v, positive.multiplier, positive.shift) + positive.zero_point
        y = fixed_point.requantise(v, negative.multiplier, negative.shift)
        return (-y if alpha < 0 else y) + positive.zero_point

    return _integer_table(n, value)


@rule("HARD_SWISH")
def hard_swish(n: Conversion) -> Value:
    if not n.quantised():
        return n.add("HardSwish", n.x())
    return _integer_table(n, fixed_point.hard_swish(n.scale(), n.scale_out(), n.zero_out()))


@rule("STABLEHLO_CBRT")
def cube_root(n: Conversion) -> Value:
    x = n.real()
    root = n.add("Pow", n.add("Abs", x), n.constant(1 / 3, x.dtype))
    return n.add("Mul", n.add("Sign", x), root)


@rule("FAKE_QUANT")
def fake_quant(n: Conversion) -> Value:
    """What integers of so many bits would keep of a number: rounded to a step of a range in which zero is a
    step, in single precision as the reference does.
    """
    x = n.real()
    low, high, bits, narrow = (
        n.operator.options.get("FakeQuantOptions", f) for f in ("Min", "Max", "NumBits", "NarrowRange")
    )
    least, most = f32(finite(float(low), "the minimum")), f32(finite(float(high), "the maximum"))
    if narrow:
        raise OperatorError("a narrow range is not supported, as in LiteRT", "E202")
    last = f32((1 << int(np.clip(bits, 2, 16))) - 1)
    with np.errstate(over="ignore"):
        step = (most - least) / last
    if x.dtype is not DType.FLOAT32 or not 2 <= bits <= 16 or not np.finfo(f32).tiny < step < np.inf:
        raise OperatorError(f"{x.type} as {bits} bits from {least} to {most}", "E202")
    zero = f32(fixed_point.round_away(float(np.clip(-least / step, 0, last))))
    bottom, top = float(-zero * step), float((last - zero) * step)
    shifted = n.add("Sub", n.clip(x, bottom, top), n.constant(bottom, x.dtype))
    steps = n.add("Mul", shifted, n.constant(f32(1) / step, x.dtype))
    whole = n.add("Floor", steps)
    up = n.add("GreaterOrEqual", n.add("Sub", steps, whole), n.constant(0.5, x.dtype))
    rounded = n.add("Add", whole, n.build(Cast(x.dtype), up))
    return n.add("Add", n.add("Mul", rounded, n.constant(step, x.dtype)), n.constant(bottom, x.dtype))
