"""TFLite: element-wise operators of several inputs, on floats, on plain integers and on quantised tensors."""

from __future__ import annotations

import math

import numpy as np

from aot_model.frontends.tflite_conversion import Conversion, activation, rescale, rule
from aot_model.ir.operator import OperatorError
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.ops.conversion import Cast
from aot_model.ops.elementwise import Mod
from aot_model.ops.quantised import QuantisedMul, QuantisedPRelu, QuantisedSum
from aot_model.ops.quantised_div import QuantisedDiv
from aot_model.ops.registry import alike

f32 = np.float32


def _plain(n: Conversion, name: str, options: str | None) -> Value:
    """The operator on floats or plain integers."""
    y = n.add(name, n.x(0), n.x(1))
    act = activation(n, options) if options else "NONE"
    return n.activate(y, act)


@rule("ADD", "SUB", "SQUARED_DIFFERENCE")
def add(n: Conversion) -> Value:
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
    node = QuantisedSum(
        function,
        rescale(factors[0], n.zero(0)),
        rescale(factors[1], n.zero(1)),
        rescale(factors[2], n.zero_out()),
        left,
        low,
        high,
    )
    return n.build(node, n.x(0), n.x(1))


@rule("MUL")
def mul(n: Conversion) -> Value:
    if not n.quantised(0) or not n.quantised(1):
        return _plain(n, "Mul", "MulOptions")
    real = n.scale(0) * n.scale(1) / n.scale_out()
    if n.host.arithmetic == "litert-ref":
        real = float(f32(n.scale(0)) * f32(n.scale(1)) / f32(n.scale_out()))
    factor = rescale(real, n.zero_out())
    return n.build(
        QuantisedMul(n.zero(0), n.zero(1), factor, *n.limits(activation(n, "MulOptions")), n.out_dtype()),
        n.x(0),
        n.x(1),
    )


@rule("DIV")
def div(n: Conversion) -> Value:
    if not n.quantised(0):
        return _plain(n, "Div", "DivOptions")
    if n.x(0).dtype is DType.INT16:
        # It shifts by more than 31 bits as soon as a small number is divided by a large one.
        raise OperatorError(
            "division of int16 tensors is not supported: LiteRT shifts by more bits than there are, so that "
            "its results depend on the processor, and TensorFlow Lite Micro has none",
            "E202",
            "let the quantiser leave the division in floats",
        )
    alike(n.x(0), n.x(1))
    factor = rescale(float(f32(n.scale(0)) / (f32(n.scale(1)) * f32(n.scale_out()))), n.zero_out())
    return n.build(
        QuantisedDiv(n.zero(0), n.zero(1), factor, *n.limits(activation(n, "DivOptions")), n.out_dtype()),
        n.x(0),
        n.x(1),
    )


_TWO: dict[str, str] = {
    "POW": "Pow", "LOGICAL_AND": "And", "LOGICAL_OR": "Or", "BITWISE_XOR": "BitwiseXor",
}  # fmt: skip


@rule(*_TWO)
def two(n: Conversion) -> Value:
    return n.add(_TWO[n.operator.kind], n.x(0), n.x(1))


@rule("MAXIMUM", "MINIMUM")
def extremum(n: Conversion) -> Value:
    n.as_they_are(0, 1)
    return n.add("Max" if n.operator.kind == "MAXIMUM" else "Min", n.x(0), n.x(1))


@rule("FLOOR_DIV")
def floor_div(n: Conversion) -> Value:
    a, b = n.x(0), n.x(1)
    if a.dtype.is_float:
        return n.add("Floor", n.add("Div", a, b))
    # The quotient is cut towards zero, and one less where the remainder has the wrong sign: `a` less its
    # modulus may be below the lowest number.
    quotient = n.add("Div", a, b)
    whole = n.add("Equal", n.build(Mod(), a, b), n.add("Sub", a, n.add("Mul", quotient, b)))
    return n.add("Sub", quotient, n.build(Cast(a.dtype), n.add("Not", whole)))


@rule("FLOOR_MOD")
def floor_mod(n: Conversion) -> Value:
    return n.build(Mod(), n.x(0), n.x(1))


_COMPARISONS = {
    "EQUAL": ("Equal", False),
    "NOT_EQUAL": ("Equal", True),
    "LESS": ("Less", False),
    "LESS_EQUAL": ("LessOrEqual", False),
    "GREATER": ("Greater", False),
    "GREATER_EQUAL": ("GreaterOrEqual", False),
}


@rule(*_COMPARISONS)
def compare(n: Conversion) -> Value:
    name, negate = _COMPARISONS[n.operator.kind]
    a, b = n.x(0), n.x(1)
    if n.quantised(0) and n.quantised(1) and (n.q(0) != n.q(1) or _finer(n)):
        a, b = (_on_fine_scale(n, k) for k in (0, 1))
    y = n.add(name, a, b)
    return n.add("Not", y) if negate else y


def _finer(n: Conversion) -> bool:
    """Whether neighbouring integers of one scale are one number for TensorFlow Lite and its version for
    microcontrollers: these compare multiples of 2^-8. Order of int16 alone is that of the integers; with two
    scales LiteRT leaves it so, here it is that of the numbers.
    """
    return n.scale(0) < 2**-8 and (n.x(0).dtype.bits == 8 or _COMPARISONS[n.operator.kind][0] == "Equal")


def _on_fine_scale(n: Conversion, k: int) -> Value:
    """An input as int32 multiples of 2^-8, for comparisons of tensors with other or finer scales."""
    wide = n.build(Cast(DType.INT32), n.x(k))
    shifted = n.add(
        "Mul", n.add("Sub", wide, n.constant(n.zero(k), DType.INT32)), n.constant(256, DType.INT32)
    )
    return n.requantise(shifted, [n.scale(k)], DType.INT32.limits, 0, DType.INT32)


@rule("ATAN2")
def atan2(n: Conversion) -> Value:
    """The angle of (x, y): that of y / x, turned by half a circle to the left of the axis. A zero has a side,
    too.
    """
    y, x = n.real(0), n.real(1)
    zero, one, half, quarter = (n.constant(v, x.dtype) for v in (0, 1, math.pi, math.pi / 2))

    def below(v: Value) -> Value:
        beside = n.add("Less", n.add("Div", one, v), zero)
        return n.add("Where", n.add("Equal", v, zero), beside, n.add("Less", v, zero))

    def turned(angle: Value) -> Value:
        return n.add("Where", below(y), n.add("Neg", angle), angle)

    right = n.add("Atan", n.add("Div", y, x))
    level = n.add("Where", below(x), turned(half), y)
    upright = n.add("Where", n.add("Equal", y, zero), level, turned(quarter))
    left = n.add("Add", right, turned(half))
    return n.add(
        "Where", n.add("Equal", x, zero), upright, n.add("Where", n.add("Less", x, zero), left, right)
    )


@rule("PRELU")
def prelu(n: Conversion) -> Value:
    x, alpha = n.x(0), n.x(1)
    if not n.quantised(0):
        return n.add("PRelu", x, alpha)
    if alpha.dtype is DType.INT16:
        raise OperatorError(
            "slopes of int16 are not supported: TensorFlow Lite Micro has none, and LiteRT takes their bytes "
            "for slopes of int8",
            "E302",
        )
    real = f32 if n.host.arithmetic == "litert-ref" else np.float64
    scale, slope, y = (real(v) for v in (n.scale(0), n.scale(1), n.scale_out()))
    positive, negative = rescale(float(scale / y), n.zero_out()), rescale(float(scale * slope / y))
    return n.build(QuantisedPRelu(n.zero(0), n.zero(1), positive, negative), x, alpha)


@rule("SELECT", "SELECT_V2")
def select(n: Conversion) -> Value:
    """Bytes are copied, whatever scales the file gives them."""
    condition = n.x(0)
    if n.operator.kind == "SELECT" and condition.type.rank == 1 and n.x(1).type.rank > 1:
        condition = n.reshape(condition, (condition.shape[0], *[1] * (n.x(1).type.rank - 1)))
    return n.add("Where", condition, n.x(1), n.x(2))


@rule("ADD_N")
def add_n(n: Conversion) -> Value:
    if n.quantised(0):
        raise OperatorError("ADD_N of quantised tensors is not supported", "E202")
    return n.add("Sum", *(n.x(k) for k in range(len(n.inputs))))
