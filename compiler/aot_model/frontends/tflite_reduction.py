"""TFLite: reductions, softmax, normalisation, positions of extremes, running sums."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from aot_model.arithmetic.fixed_point import quantise_multiplier
from aot_model.frontends.tflite_conversion import QUANTISED, Conversion, activation, finite, rule
from aot_model.frontends.tflite_movement import slices
from aot_model.ir.graph import Graph
from aot_model.ir.operator import Operator, OperatorError
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.ops.control import Scan
from aot_model.ops.conversion import Cast
from aot_model.ops.normalisation import LogSoftmax, Softmax
from aot_model.ops.quantised_linear import Quantise
from aot_model.ops.quantised_softmax import QuantisedLogSoftmax, QuantisedSoftmax
from aot_model.ops.reduction import WideSum
from aot_model.ops.registry import OPERATORS, Build, normal_axis
from aot_model.ops.requantise import Requantise
from aot_model.ops.softmax_int16 import L2Normalise, SoftmaxInt16

_REDUCTIONS = {
    "MEAN": "ReduceMean",
    "SUM": "ReduceSum",
    "REDUCE_MAX": "ReduceMax",
    "REDUCE_MIN": "ReduceMin",
    "REDUCE_PROD": "ReduceProd",
    "REDUCE_ANY": "ReduceMax",
    "REDUCE_ALL": "ReduceMin",
}


def reduction(name: str, keep: bool = True) -> Operator:
    return OPERATORS["", name](keepdims=int(keep))  # type: ignore[call-arg]


def _axes(n: Conversion, x: Value) -> list[int]:
    """Of a scalar, axes mean nothing, as in LiteRT."""
    if not x.shape:
        return []
    return sorted({normal_axis(a, x.type.rank) for a in n.ints(1, "the axes")})


@rule(*_REDUCTIONS)
def reduce(n: Conversion) -> Value:
    kind, x = n.operator.kind, n.x()
    keep = bool(n.operator.options.get("ReducerOptions", "KeepDims"))
    axes = _axes(n, x)
    extreme = kind in ("REDUCE_MAX", "REDUCE_MIN")
    if extreme and n.quantised() and not n.same_quantisation(0):
        raise OperatorError("input and output have different quantisation", "E302")
    if not axes and (extreme or not n.quantised()):
        return x
    axis_value = n.constant(axes, DType.INT64)
    node = reduction(_REDUCTIONS[kind], keep)
    if x.dtype is DType.BOOL:
        return n.build(Cast(DType.BOOL), n.build(node, n.build(Cast(DType.INT32), x), axis_value))
    if not n.quantised() or extreme:
        return n.build(node, x, axis_value)
    count = math.prod(x.shape[a] for a in axes)
    if count == 0:
        raise OperatorError(f"a reduction of {x.type} over nothing")
    if kind == "REDUCE_PROD":
        return _product(n, axes, count, keep)
    total = n.build(WideSum(tuple(axes), keep), x)
    if kind == "SUM" and n.host.arithmetic == "litert-ref" and x.dtype is not DType.UINT8:
        return _sum_of_floats(n, total, count)
    multiplier, shift = quantise_multiplier(n.scale() / n.scale_out())
    if kind == "MEAN":
        # The division by the count goes into the multiplier, with as many bits as the shift leaves.
        bits = min(count.bit_length() - 1, 32, 31 + shift)
        multiplier, shift = (multiplier << bits) // count, shift - bits
    low, high = n.limits()
    node = Requantise(n.zero_out(), low, high, n.out_dtype(), x_zero_point=n.zero() * count)
    return n.build(node, total, n.constant(multiplier, DType.INT32), n.constant(shift, DType.INT32))


def _product(n: Conversion, axes: list[int], count: int, keep: bool) -> Value:
    """A product of `count` quantised elements: each product of two, and the result, is rescaled by the
    input's scale over the count-th root of the output's, so that they stay within 32 bits.
    """
    x = n.x()
    factor = n.scale() / n.scale_out() ** (1 / count)
    shift = quantise_multiplier(factor)[1]
    if x.dtype is DType.UINT8 or n.out_dtype() is not x.dtype or not -31 <= shift < 8:
        raise OperatorError(
            f"the product of {count} elements of {x.type}, scale {n.scale():g}, with scale "
            f"{n.scale_out():g} is not supported",
            "E202",
        )
    others = [a for a in range(x.type.rank) if a not in axes]
    extents = [x.shape[a] for a in others]
    turned = n.build(Cast(DType.INT32), n.transpose(x, [*axes, *others]))
    rows = n.add("Sub", n.reshape(turned, (count, math.prod(extents))), n.constant(n.zero(), DType.INT32))
    total = n.reshape(slices(n, rows, [(0, 1, 1), (0, rows.shape[1], 1)]), rows.shape[1:])
    if count > 1:
        following = slices(n, rows, [(1, count, 1), (0, rows.shape[1], 1)])
        before, by = (Value(f"{n.build.prefix}.{k}", total.type) for k in ("before", "by"))
        step = Graph("factor", [before, by])
        inner = replace(n, build=Build(step.nodes, f"{n.build.prefix}.factor"))
        product = inner.add("Mul", *(inner.build(Cast(DType.INT64), v) for v in (before, by)))
        step.outputs = [inner.requantise(product, [factor], DType.INT32.limits, 0, DType.INT32, "wide")]
        total = n.build(Scan(step, 1), total, following)
    wide = n.build(Cast(DType.INT64), total)
    y = n.requantise(wide, [factor], n.limits(), n.zero_out(), n.out_dtype(), "wide")
    return n.reshape(y, [1 if a in axes else e for a, e in enumerate(x.shape)] if keep else extents)


def _sum_of_floats(n: Conversion, total: Value, count: int) -> Value:
    """The sum rescaled in single precision, as LiteRT's optimised kernel does it; its reference kernel of
    signed types gives -1.
    """
    scale = np.float32(n.scale()) / np.float32(n.scale_out())
    bias = np.float32(-n.zero()) * scale * np.float32(count)
    real = n.add(
        "Add", n.add("Mul", n.build(Cast(DType.FLOAT32), total), n.constant(scale)), n.constant(bias)
    )
    return n.build(Quantise(), real, n.constant(np.float32(1)), n.constant(n.zero_out(), n.out_dtype()))


@rule("SOFTMAX")
def softmax(n: Conversion) -> Value:
    x = n.x()
    beta = finite(float(n.operator.options.get("SoftmaxOptions", "Beta")), "beta")
    if not n.quantised():
        x = n.real()
        if beta != 1:
            x = n.add("Mul", x, n.constant(beta, x.dtype))
        return n.build(Softmax(-1), x)
    if x.dtype is DType.INT16:
        n.needs_result(2.0**-15, 0)
        factor = quantise_multiplier(n.scale() * beta / (10 / 65535))
        return n.build(SoftmaxInt16(*factor, n.host.arithmetic == "litert-ref"), x)
    if not beta > 0:
        raise OperatorError(f"beta is {beta}", "E302")
    to = n.out_dtype()
    n.needs_result(2.0**-to.bits, to.limits[0])
    return n.build(QuantisedSoftmax(n.scale(), beta, -1, to), x)


@rule("LOG_SOFTMAX")
def log_softmax(n: Conversion) -> Value:
    if n.quantised():
        n.needs_result(2.0**-4, n.out_dtype().limits[1])
        return n.build(QuantisedLogSoftmax(n.scale()), n.x())
    return n.build(LogSoftmax(-1), n.real())


@rule("L2_NORMALIZATION")
def l2_normalization(n: Conversion) -> Value:
    x, act = n.x(), activation(n, "L2NormOptions")
    if act != "NONE":
        raise OperatorError(f"fused activation {act} is not supported", "E202")
    last = n.constant([x.type.rank - 1], DType.INT64)
    if not n.quantised():
        total = n.build(reduction("ReduceSumSquare"), x, last)
        return n.add("Div", x, n.add("Max", n.add("Sqrt", total), n.constant(1e-6, x.dtype)))
    to = n.out_dtype()
    if to not in (DType.INT8, DType.UINT8):
        raise OperatorError(f"{to.label} is not supported", "E202")
    n.needs_result(2.0**-7, 128 + to.limits[0])
    centred = n.add("Sub", n.build(Cast(DType.INT32), x), n.constant(n.zero(), DType.INT32))
    return n.build(L2Normalise(to), centred, n.build(reduction("ReduceSumSquare"), centred, last))


@rule("ARG_MAX", "ARG_MIN")
def arg_extremum(n: Conversion) -> Value:
    x = n.x()
    axis = normal_axis(n.ints(1, "the axis")[0], x.type.rank)
    name = "ArgMax" if n.operator.kind == "ARG_MAX" else "ArgMin"
    cls = OPERATORS.get(("", name))
    if cls is None:
        raise OperatorError(f"{n.operator.kind} is not supported", "E201")
    found = n.build(cls(axis=axis, keepdims=0), x)  # type: ignore[call-arg]
    return n.build(Cast(n.out_dtype()), found)


@rule("CUMSUM")
def cumsum(n: Conversion) -> Value:
    x = n.x()
    cls = OPERATORS.get(("", "CumSum"))
    if x.dtype in QUANTISED or cls is None:
        raise OperatorError(f"CUMSUM of {x.type} is not supported", "E202")
    flags = {k.lower(): int(n.operator.options.get("CumsumOptions", k)) for k in ("Exclusive", "Reverse")}
    return n.build(cls(**flags), x, n.constant(n.ints(1, "the axis")[0], DType.INT64))
