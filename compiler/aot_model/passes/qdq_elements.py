"""The rules of fuse_qdq for what is computed element by element, and for the largest of some elements."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from aot_model.arithmetic.fixed_point import quantise_multiplier
from aot_model.ir.graph import Node
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.ops.quantised import QuantisedMul, QuantisedPRelu, QuantisedSum
from aot_model.ops.requantise import Rescale
from aot_model.ops.scaled_words import Operand, scaled_product, scaled_sum
from aot_model.passes.qdq_site import RESULTS, Answer, QdqSite, Scaled, by_ties

SLOPES = 2**14 - 1
"""Steps of the largest slope of a PRelu: products with 16 bits fit 31."""
OF_A_NUMBER = "a function of 8 bits, which a table does"


def _of_a_number(n: QdqSite, values: Sequence[Value | None]) -> bool:
    """Whether operands are one tensor of 8 bits, of the result's shape, and numbers."""
    reals = [n.real(value) for value in values]
    tensors = [value for value, real in zip(values, reals, strict=True) if real is None]
    if len(tensors) != 1 or any(real is not None and real.size != 1 for real in reals):
        return False
    x = n.tensor(tensors[0])
    return x is not None and x.value.dtype.bits == 8 and x.value.shape == n.quantise.outputs[0].shape


def _pair(n: QdqSite, node: Node) -> tuple[Scaled, Scaled] | str:
    if _of_a_number(n, node.inputs) and n.to.dtype.bits == 8:
        return OF_A_NUMBER
    a, b = n.tensor(node.inputs[0]), n.tensor(node.inputs[1])
    if a is None or b is None:
        return "an operand is not quantised with one scale"
    return a, b


def _operand(x: Scaled) -> Operand:
    return Operand(x.value.dtype, x.z)


def _wants_words(n: QdqSite, *given: Scaled) -> bool:
    """Whether 16 bits, or types that differ, ask for sums and products of half words."""
    kinds = {n.to.dtype, *(x.value.dtype for x in given)}
    return len(kinds) > 1 or n.to.dtype.bits > 8


def _with_zero_points(*given: Scaled) -> bool:
    return any(x.value.dtype.bits > 8 and (x.z or x.value.dtype is DType.UINT16) for x in given)


NO_WORDS = "a 16-bit operand with a zero point, and no room for sums of half words, or half-way results"


def _rescale(real: float, zero: int) -> Rescale:
    return Rescale(zero, *quantise_multiplier(real))


def sum_of_two(n: QdqSite, node: Node) -> Answer:
    """Add and Sub."""
    pair = _pair(n, node)
    if isinstance(pair, str):
        return pair
    a, b = pair
    parts = (a.s / n.to.s, b.s / n.to.s)
    if _wants_words(n, a, b) and not any(
        by_ties([r], x.largest) == "even" for r, x in zip(parts, pair, strict=True)
    ):
        by_b = parts[1] if node.kind == "Add" else -parts[1]
        scaled = scaled_sum(_operand(a), _operand(b), parts[0], by_b, *n.to.limits)
        if scaled is not None:
            return n.build(scaled, a.value, b.value)
    if _with_zero_points(a, b):
        return NO_WORDS
    if not a.value.dtype is b.value.dtype is n.to.dtype:
        return "operands and result have different types"
    left = 20 if n.to.dtype.bits == 8 else 15
    twice = 2 * max(a.s, b.s)
    if twice / n.to.s > 1 << (left - 3):
        return "the result's scale is too fine for sums of operands that are rounded"
    function = "add" if node.kind == "Add" else "sub"
    real = twice / ((1 << left) * n.to.s)
    sum_op = QuantisedSum(
        function,
        _rescale(a.s / twice, a.z),
        _rescale(b.s / twice, b.z),
        _rescale(real, n.to.z),
        left,
        n.to.low,
        n.to.high,
        by_ties([real], (a.largest + b.largest) << left),
    )
    return n.build(sum_op, a.value, b.value)


def multiplication(n: QdqSite, node: Node) -> Answer:
    pair = _pair(n, node)
    if isinstance(pair, str):
        return pair
    a, b = pair
    real = a.s * b.s / n.to.s
    if a.largest * b.largest * real >= RESULTS:
        return "products in the result's scale are beyond 32 bits"
    rounding = by_ties([real], a.largest * b.largest)
    if _wants_words(n, a, b) and rounding != "even":
        scaled = scaled_product(_operand(a), _operand(b), real, *n.to.limits)
        if scaled is not None:
            return n.build(scaled, a.value, b.value)
    if _with_zero_points(a, b):
        return NO_WORDS
    product = QuantisedMul(a.z, b.z, _rescale(real, n.to.z), n.to.low, n.to.high, n.to.dtype, rounding)
    return n.build(product, a.value, b.value)


def chosen(n: QdqSite, node: Node) -> Answer:
    """Where: of two tensors in the result's scale, or numbers."""
    made = _in_the_results_scale(n, node.inputs[1:])
    return made if isinstance(made, str) else n.build(node.op, node.inputs[0], *made)


def _in_the_results_scale(n: QdqSite, values: Sequence[Value | None]) -> list[Value] | str:
    """Quantised tensors and constants, at least one tensor."""
    reals = [n.real(value) for value in values]
    tensors = [n.tensor(value) if real is None else None for value, real in zip(values, reals, strict=True)]
    made: list[Value] = []
    for x, real in zip(tensors, reals, strict=True):
        if x is None and real is None:
            return "an operand is not quantised with one scale"
        made.append(n.rescaled(x) if x is not None else n.integers(np.asarray(real)))
    return made if any(tensors) else "no operand is quantised"


def larger(n: QdqSite, node: Node) -> Answer:
    """Max and Min: of integers in the result's scale, which are in the same order as what they stand for."""
    if _of_a_number(n, node.inputs):
        return OF_A_NUMBER
    made = _in_the_results_scale(n, node.inputs)
    return made if isinstance(made, str) else n.build(node.op, *made)


def bent(n: QdqSite, node: Node) -> Answer:
    """PRelu and LeakyRelu: what is negative by a slope, or one for each channel."""
    x = n.tensor(node.inputs[0])
    slope = np.asarray(getattr(node.op, "alpha", 0.0)) if node.kind == "LeakyRelu" else n.real(node.inputs[1])
    if x is None or slope is None:
        return "the input is not quantised with one scale, or the slope is no constant"
    if slope.size == 1 and x.value.dtype.bits == 8:
        return OF_A_NUMBER
    if slope.size > 1 and x.value.dtype.bits > 8:
        return "slopes of several channels, whose steps 16 bits would show"
    limits = (n.to.dtype, n.to.low, n.to.high)
    if limits != (x.value.dtype, *x.value.dtype.limits):
        return "the result has another type, or a narrower range"
    most = float(np.abs(slope).max(initial=0))
    unit = float(np.float32(most / SLOPES)) or 1.0
    parts = x.s / n.to.s, x.s * unit / n.to.s
    if not math.isfinite(most) or parts[0] * x.largest >= RESULTS or parts[1] * x.largest * SLOPES >= RESULTS:
        return "its results are beyond 32 bits"
    slopes = n.constant("slopes", np.rint(slope / unit).astype(np.int16))
    both = (Rescale(n.to.z, *quantise_multiplier(part)) for part in parts)
    return n.build(QuantisedPRelu(x.z, 0, *both), x.value, slopes)


def largest(n: QdqSite, node: Node) -> Answer:
    """ReduceMax, ReduceMin, GlobalMaxPool: of the integers as they are."""
    x = n.tensor(node.inputs[0])
    if x is None:
        return "the input is not quantised with one scale"
    if 0 in x.value.shape:
        return "the largest of nothing"
    return n.rescaled(replace(x, value=n.build(node.op, x.value, *node.inputs[1:])))


def dequantised(n: QdqSite, node: Node) -> Answer:
    """What a Relu or Clip leaves of a tensor of 16 bits."""
    x = n.tensor(node.outputs[0])
    if x is None or x.value.dtype.bits == 8:
        return "8 bits, of which a table does it, or several scales"
    return n.rescaled(x)


def multiple(n: QdqSite, node: Node) -> Answer:
    """A tensor times a positive number: the same integers, where the result's scale is as much larger."""
    x, by, places = n.tensor(node.inputs[0]), n.real(node.inputs[1]), (0, 1)
    if node.kind == "Mul" and (x is None or by is None):
        x, by, places = n.tensor(node.inputs[1]), n.real(node.inputs[0]), (1, 0)
    source = node.inputs[places[0]]
    if x is None or by is None or by.size != 1 or source is None or source.shape != node.outputs[0].shape:
        return "not a quantised tensor and a number"
    number = float(by.reshape(-1)[0])
    scaled = x.s * (number if node.kind == "Mul" else 1 / number) if number > 0 else 0.0
    with np.errstate(over="ignore"):
        scaled = float(np.float32(scaled))
    if not 0 < scaled < math.inf:
        return "the number is not positive, or too large"
    if x.value.dtype.bits == 8 and (np.float32(scaled), x.z) != (np.float32(n.to.s), n.to.z):
        return "8 bits with another scale, which a table does"
    return n.rescaled(replace(x, scale=np.asarray([scaled])))
