"""TFLite: element-wise operators, on floats, on plain integers and on quantised tensors."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from aot_model.arithmetic import fixed_point
from aot_model.frontends.tflite_layers import nibbles
from aot_model.frontends.tflite_site import (
    ACTIVATION_RANGES,
    QUANTISED,
    Site,
    activation,
    finite,
    rescale,
    rule,
)
from aot_model.ir.operator import OperatorError
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.ops.activation import Elu, Gelu, LeakyRelu, LibmGelu
from aot_model.ops.conversion import Cast
from aot_model.ops.elementwise import Mod
from aot_model.ops.interpolated import InterpolatedLookup
from aot_model.ops.quantised import QuantisedMul, QuantisedPRelu, QuantisedSum
from aot_model.ops.quantised_div import QuantisedDiv
from aot_model.ops.quantised_linear import DequantizeLinear, Quantise
from aot_model.ops.quantised_tables import SigmoidInt16, Table, lookup

f32 = np.float32

# --- two inputs ---------------------------------------------------------------------------------------------


def _plain(n: Site, name: str, options: str | None) -> Value:
    """The operator on floats or plain integers."""
    y = n.add(name, n.x(0), n.x(1))
    act = activation(n, options) if options else "NONE"
    return n.activate(y, act)


@rule("ADD", "SUB", "SQUARED_DIFFERENCE")
def add(n: Site) -> Value:
    kind = n.operator.kind
    options = {"ADD": "AddOptions", "SUB": "SubOptions"}.get(kind)
    if not n.quantised(0) or not n.quantised(1):
        if kind == "SQUARED_DIFFERENCE":
            d = n.add("Sub", n.x(0), n.x(1))
            return n.add("Mul", d, d)
        return _plain(n, kind.title(), options)
    a, b, y = n.scale(0), n.scale(1), n.scale_out()
    left = 15 if n.x().dtype is DType.INT16 else 20
    if kind in ("ADD", "SUB"):
        twice = 2 * max(a, b)
        factors = a / twice, b / twice, twice / ((1 << left) * y)
    else:
        left = 0 if n.x().dtype is DType.INT16 else 7
        twice = 2 * max(a, b)
        factors = a / twice, b / twice, twice * twice / float(f32(1 << (2 * left)) * f32(y))
    low, high = n.limits(activation(n, options) if options else "NONE")
    function = {"ADD": "add", "SUB": "sub"}.get(kind, "squared difference")
    node = QuantisedSum(function, rescale(factors[0], n.zero(0)), rescale(factors[1], n.zero(1)),
                        rescale(factors[2], n.zero_out()), left, low, high)
    return n.build(node, n.x(0), n.x(1))


@rule("MUL")
def mul(n: Site) -> Value:
    if not n.quantised(0) or not n.quantised(1):
        return _plain(n, "Mul", "MulOptions")
    real = n.scale(0) * n.scale(1) / n.scale_out()
    if n.host.arithmetic == "litert-ref":
        real = float(f32(n.scale(0)) * f32(n.scale(1)) / f32(n.scale_out()))
    factor = rescale(real, n.zero_out())
    return n.build(
        QuantisedMul(n.zero(0), n.zero(1), factor, *n.limits(activation(n, "MulOptions")), n.out_dtype()),
        n.x(0), n.x(1))


@rule("DIV")
def div(n: Site) -> Value:
    if not n.quantised(0):
        return _plain(n, "Div", "DivOptions")
    if n.x(0).dtype is DType.INT16:
        raise OperatorError("division of int16 tensors is not supported", "E202")
    factor = rescale(float(f32(n.scale(0)) / (f32(n.scale(1)) * f32(n.scale_out()))), n.zero_out())
    return n.build(
        QuantisedDiv(n.zero(0), n.zero(1), factor, *n.limits(activation(n, "DivOptions")), n.out_dtype()),
        n.x(0), n.x(1))


_TWO: dict[str, str] = {
    "POW": "Pow", "LOGICAL_AND": "And", "LOGICAL_OR": "Or", "BITWISE_XOR": "BitwiseXor",
}  # fmt: skip


@rule(*_TWO)
def two(n: Site) -> Value:
    return n.add(_TWO[n.operator.kind], n.x(0), n.x(1))


@rule("MAXIMUM", "MINIMUM")
def extremum(n: Site) -> Value:
    if (n.quantised(0) or n.quantised(1)) and not n.same_quantisation(0, 1):
        raise OperatorError("inputs and output have different quantisation", "E302")
    return n.add("Max" if n.operator.kind == "MAXIMUM" else "Min", n.x(0), n.x(1))


@rule("FLOOR_DIV")
def floor_div(n: Site) -> Value:
    a, b = n.x(0), n.x(1)
    if a.dtype.is_float:
        return n.add("Floor", n.add("Div", a, b))
    return n.add("Div", n.add("Sub", a, n.build(Mod(), a, b)), b)


@rule("FLOOR_MOD")
def floor_mod(n: Site) -> Value:
    return n.build(Mod(), n.x(0), n.x(1))


_COMPARISONS = {
    "EQUAL": ("Equal", False), "NOT_EQUAL": ("Equal", True), "LESS": ("Less", False),
    "LESS_EQUAL": ("LessOrEqual", False), "GREATER": ("Greater", False),
    "GREATER_EQUAL": ("GreaterOrEqual", False),
}


@rule(*_COMPARISONS)
def compare(n: Site) -> Value:
    name, negate = _COMPARISONS[n.operator.kind]
    a, b = n.x(0), n.x(1)
    if n.quantised(0) and n.quantised(1) and n.q(0) != n.q(1):
        a, b = (_on_fine_scale(n, k) for k in (0, 1))
    y = n.add(name, a, b)
    return n.add("Not", y) if negate else y


def _on_fine_scale(n: Site, k: int) -> Value:
    """An input as int32 multiples of 2^-8, for comparisons of tensors with different scales."""
    wide = n.build(Cast(DType.INT32), n.x(k))
    shifted = n.add("Mul", n.add("Sub", wide, n.constant(n.zero(k), DType.INT32)),
                    n.constant(256, DType.INT32))
    return n.requantise(shifted, [n.scale(k)], DType.INT32.limits, 0, DType.INT32)


@rule("ATAN2")
def atan2(n: Site) -> Value:
    """The angle of (x, y): that of y / x, turned by half a circle to the left of the axis."""
    y, x = n.real(0), n.real(1)
    zero, half = n.constant(0, x.dtype), n.constant(math.pi, x.dtype)
    right = n.add("Atan", n.add("Div", y, x))
    below = n.add("Less", y, zero)
    left = n.add("Where", below, n.add("Sub", right, half), n.add("Add", right, half))
    up = n.add("Where", below, n.constant(-math.pi / 2, x.dtype), n.constant(math.pi / 2, x.dtype))
    upright = n.add("Where", n.add("Equal", y, zero), n.add("Add", y, zero), up)
    return n.add("Where", n.add("Equal", x, zero), upright, n.add("Where", n.add("Less", x, zero), left,
                                                                  right))


@rule("PRELU")
def prelu(n: Site) -> Value:
    x, alpha = n.x(0), n.x(1)
    if not n.quantised(0):
        return n.add("PRelu", x, alpha)
    y = n.scale_out()
    positive, negative = rescale(n.scale(0) / y, n.zero_out()), rescale(n.scale(0) * n.scale(1) / y)
    return n.build(QuantisedPRelu(n.zero(0), n.zero(1), positive, negative), x, alpha)


@rule("SELECT", "SELECT_V2")
def select(n: Site) -> Value:
    if n.quantised(1) and not n.same_quantisation(1, 2):
        raise OperatorError("inputs and output have different quantisation", "E302")
    condition = n.x(0)
    if n.operator.kind == "SELECT" and condition.type.rank == 1 and n.x(1).type.rank > 1:
        condition = n.reshape(condition, (condition.shape[0], *[1] * (n.x(1).type.rank - 1)))
    return n.add("Where", condition, n.x(1), n.x(2))


@rule("ADD_N")
def add_n(n: Site) -> Value:
    if n.quantised(0):
        raise OperatorError("ADD_N of quantised tensors is not supported", "E202")
    return n.add("Sum", *(n.x(k) for k in range(len(n.inputs))))


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
def one(n: Site) -> Value:
    name, function = _ONE[n.operator.kind]
    if not n.quantised():
        return n.add(name, n.x())
    if function is None:
        raise OperatorError(f"{n.x().type} is not supported", "E202")
    if n.x().dtype is DType.INT16 and n.operator.kind in ("EXP", "LOG"):
        return _interpolated(
            n, function if n.operator.kind == "EXP" else lambda v: np.log(v)
            if v > 0 else f32(-32768) * f32(n.scale_out()))
    return _float_table(n, function, towards_zero=n.operator.kind == "SQRT")


def _interpolated(n: Site, function: Callable[[Any], Any]) -> Value:
    """A table of int16 with interpolation."""
    if n.out_dtype() is not DType.INT16 or n.zero() or n.zero_out():
        raise OperatorError(f"{n.x().type} with zero points {n.zero()} and {n.zero_out()} is not supported",
                            "E202")
    with np.errstate(all="ignore"):
        values = fixed_point.interpolated_table(n.scale(), 0, function, n.scale_out())
    return n.build(InterpolatedLookup(Table(values, DType.INT16, 0)), n.x())


def _float_table(n: Site, function: Callable[[Any], Any], towards_zero: bool = False) -> Value:
    """A table of round(function(x)), computed in single precision as the reference does; or without what is
    behind the point.
    """
    x = n.x()
    if x.dtype.bits != 8 or n.out_dtype() is not x.dtype:
        raise OperatorError(f"{x.type} is not supported", "E202")
    low, high = x.dtype.limits
    values = f32(n.scale()) * np.arange(low - n.zero(), high - n.zero() + 1, dtype=np.int32).astype(
        np.float32)
    with np.errstate(all="ignore"):
        real = np.asarray(function(values), dtype=np.float32)
        real = np.trunc(real / f32(n.scale_out())) if towards_zero else real * (f32(1) / f32(n.scale_out()))
    table = [int(np.clip(_away(v) + n.zero_out(), low, high)) for v in real]
    return n.build(lookup(x.dtype, table), x)


def _away(v: Any) -> float:
    if math.isnan(v):
        return 0.0
    return float(fixed_point.round_away(float(v))) if math.isfinite(v) else math.copysign(2.0**31, float(v))


def _integer_table(n: Site, function: Callable[[int], int]) -> Value:
    """A table of function(x - zero point), which includes the zero point of the result; saturated."""
    x = n.x()
    low, high = x.dtype.limits
    if x.dtype.bits != 8 or n.out_dtype() is not x.dtype:
        raise OperatorError(f"{x.type} is not supported", "E202")
    return n.build(
        lookup(x.dtype, [max(low, min(high, function(v - n.zero()))) for v in range(low, high + 1)]), x)


@rule("ABS")
def absolute(n: Site) -> Value:
    if not n.quantised():
        return n.add("Abs", n.x())
    real, zero = float(f32(n.scale()) / f32(n.scale_out())), n.zero_out()
    factor = fixed_point.quantise_multiplier(real)
    if n.x().dtype is DType.INT16:
        x = n.add("Abs", n.build(Cast(DType.INT32), n.x()))
        return n.requantise(x, [real], n.limits(), zero, n.out_dtype())
    return _integer_table(n, lambda v: (abs(v)
                                        if real == 1 else fixed_point.requantise(abs(v), *factor)) + zero)


@rule("SQUARE")
def square(n: Site) -> Value:
    if n.quantised():
        return _float_table(n, np.square)
    return n.add("Mul", n.x(), n.x())


@rule("RSQRT")
def rsqrt(n: Site) -> Value:
    if not n.quantised():
        return n.add("Reciprocal", n.add("Sqrt", n.x()))
    if n.x().dtype is DType.INT16:
        return _interpolated(n, lambda v: f32(1) / np.sqrt(v) if v > 0 else f32(32767) * f32(n.scale_out()))
    zero = n.zero_out()
    multiplier, shift = fixed_point.quantise_multiplier(1
                                                        / float(np.sqrt(f32(n.scale())) * f32(n.scale_out())))

    def value(v: int) -> int:
        if v <= 0:
            return n.x().dtype.limits[1]
        inverse, exponent = fixed_point.inverse_sqrt(v)
        return fixed_point.requantise(fixed_point.requantise(1, inverse, exponent + 20), multiplier,
                                      shift - 20) + zero

    return _integer_table(n, value)


@rule("LOGISTIC", "TANH")
def sigmoid(n: Site) -> Value:
    x, hyperbolic = n.x(), n.operator.kind == "TANH"
    if not n.quantised():
        return n.add("LibmTanh" if hyperbolic else "LibmSigmoid", x)
    if x.dtype is DType.INT16:
        return n.build(
            SigmoidInt16(hyperbolic, *sixteen_bit_argument(n.scale(), (0, 1) if hyperbolic else (0,))), x)
    fraction, shift = math.frexp(n.scale() * 2.0**27)
    multiplier, radius = fixed_point.round_away(fraction * 2**31), fixed_point.input_radius(4, shift)
    function, bits = (fixed_point.tanh, 24) if hyperbolic else (fixed_point.logistic, 23)
    # The results have scale 2^-7 around 0, or 2^-8 from the lowest value on.
    lowest, most = (-128, 127) if hyperbolic else (0, 255)
    offset = n.zero_out() if hyperbolic or x.dtype is DType.UINT8 else -128

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
def elu(n: Site) -> Value:
    if n.quantised():
        return _float_table(n, lambda v: np.where(v < 0, np.exp(v) - f32(1), v))
    return n.build(Elu(), n.real())


@rule("GELU")
def gelu(n: Site) -> Value:
    tanh = bool(n.operator.options.get("GeluOptions", "Approximate"))
    if not n.quantised():
        return n.build(LibmGelu() if tanh else Gelu(), n.real())
    if tanh:
        return _float_table(n, lambda v: 0.5 * v *
                            (1 + np.tanh(math.sqrt(2 / math.pi) * (v + 0.044715 * v**3))))
    return _float_table(n, lambda v: [0.5 * float(e) * (1 + math.erf(float(e) * math.sqrt(0.5))) for e in v])


@rule("RELU", "RELU6", "RELU_N1_TO_1", "RELU_0_TO_1")
def relu(n: Site) -> Value:
    name = n.operator.kind
    bounds = ACTIVATION_RANGES.get(name, (0.0, 1.0))
    if not n.quantised():
        return n.add("Relu", n.x()) if name == "RELU" else n.clip(n.x(), *bounds)
    if name == "RELU_0_TO_1":
        raise OperatorError(f"{n.x().type} is not supported", "E202")
    real = float(f32(n.scale()) / f32(n.scale_out()))
    return n.requantise(n.x(), [real], n.limits(name), n.zero_out(), n.out_dtype(), x_zero_point=n.zero())


@rule("LEAKY_RELU")
def leaky_relu(n: Site) -> Value:
    alpha = finite(float(n.operator.options.get("LeakyReluOptions", "Alpha")), "alpha")
    if not n.quantised():
        return n.build(LeakyRelu(alpha), n.real())
    scale = f32(n.scale()) / f32(n.scale_out())
    slope = float(f32(n.scale()) * f32(abs(alpha)) / f32(n.scale_out()))
    positive, negative = rescale(float(scale), n.zero_out()), rescale(slope)
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
def hard_swish(n: Site) -> Value:
    if not n.quantised():
        return n.add("HardSwish", n.x())
    return _integer_table(n, fixed_point.hard_swish(n.scale(), n.scale_out(), n.zero_out()))


# --- types --------------------------------------------------------------------------------------------------


@rule("DENSIFY")
def densify(n: Site) -> Value:
    """Sparse constants are dense from the moment that they are read."""
    return n.x()


@rule("CAST")
def cast(n: Site) -> Value:
    return n.build(Cast(n.out_dtype()), n.x())


@rule("QUANTIZE")
def quantize(n: Site) -> Value:
    x, to = n.x(), n.out_dtype()
    if x.dtype.is_float:
        q = n.q_out()
        scale = np.asarray(q.scale if q.axis is not None else q.scale[0], dtype=np.float32)
        zero = np.asarray(q.zero_point if q.axis is not None else q.zero_point[0], dtype=to.numpy)
        return n.build(Quantise(axis=q.axis or 0), x, n.constant(scale), n.constant(zero))
    if x.dtype not in (*QUANTISED, DType.INT32) or to not in (*QUANTISED, DType.INT32):
        raise OperatorError(f"requantisation of {x.type} to {to.label} is not supported", "E202")
    return n.requantise(x, [n.scale() / n.scale_out()], to.limits, n.zero_out(), to, x_zero_point=n.zero())


@rule("DEQUANTIZE")
def dequantize(n: Site) -> Value:
    x = n.x()
    if x.dtype.is_float:
        return n.build(Cast(n.out_dtype()), x)
    q = n.q()
    scale = np.asarray(q.scale if q.axis is not None else q.scale[0], dtype=np.float32)
    x = nibbles(n, 0, x)
    zero = np.asarray(q.zero_point if q.axis is not None else q.zero_point[0], dtype=x.dtype.numpy)
    return n.build(DequantizeLinear(axis=q.axis or 0), x, n.constant(scale), n.constant(zero))
