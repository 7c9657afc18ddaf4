"""The rules of fuse_qdq: for an operator between DequantizeLinear and QuantizeLinear, the same on integers.

A rule returns the integers that the QuantizeLinear would give, or says why it cannot. Every result is within
one unit of the literal computation in floats: sums are exact, and rounded once.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import numpy as np

from aot_model.ir.evaluate import evaluate
from aot_model.ir.expr import Expr, Index, Leaf, const, var
from aot_model.ir.graph import Node
from aot_model.ir.values import Value
from aot_model.ops.channels_first import AveragePool, Conv, ConvTranspose, channels_first, channels_last
from aot_model.ops.convolution import Convolution
from aot_model.ops.elementwise import op
from aot_model.ops.exact_means import ExactQuotient, exact_divisor
from aot_model.ops.matmul import MatMul
from aot_model.ops.movement import Concat, Transpose
from aot_model.ops.normalisation import Gemm, Softmax
from aot_model.ops.piecewise import fit
from aot_model.ops.pool import Pool
from aot_model.ops.quantised_tables import lookup
from aot_model.ops.reduction import Reduction, WideSum
from aot_model.ops.registry import MAX_TABLES
from aot_model.ops.rounded_softmax import RoundedSoftmax
from aot_model.ops.volumes import convolved, unfolded_first
from aot_model.ops.zero_points import ones, product_of_pairs, row_sums
from aot_model.passes.qdq_affine import Affine
from aot_model.passes.qdq_elements import (
    bent,
    chosen,
    dequantised,
    larger,
    largest,
    multiple,
    multiplication,
    sum_of_two,
)
from aot_model.passes.qdq_normalise import normalised
from aot_model.passes.qdq_resize import resized
from aot_model.passes.qdq_site import MOVEMENTS, NARROW, Answer, QdqSite, Scaled
from aot_model.passes.qdq_weights import (
    apart,
    constant_bias,
    constant_weights,
    finer,
    largest_sum,
    living,
    unfit,
)

MAX_TABLE_NODES = 64


def convolution(n: QdqSite, node: Node, line: Affine | None = None) -> Answer:
    """line: what is computed of each channel behind it."""
    x = n.tensor(node.inputs[0])
    if x is None:
        return "the input is not quantised with one scale"
    transposed = isinstance(node.op, ConvTranspose)
    assert isinstance(node.op, (Conv, ConvTranspose))
    channels = node.outputs[0].shape[1]
    if transposed and node.op.group != 1:
        return "a grouped transposed convolution"
    w = constant_weights(n, node.inputs[1], 1 if transposed else 0)
    if isinstance(w, str):
        return w
    bias = constant_bias(n, node.input(2), channels, 1)
    if isinstance(bias, str):
        return bias
    if line is not None:
        scaled = line.into(n, w, bias, int(transposed))
        if isinstance(scaled, str):
            return scaled
        w, bias = scaled
    w, beyond = apart(n, living(n, w, bias, x))
    if beyond is not None and (transposed or node.op.group > 1 or x.value.dtype.bits > 8):
        return "the weights have several zero points, in groups, 16 bits or a transposed convolution"
    w = w if beyond is not None else finer(n, w, bias, x)
    most = largest_sum(x, w, int(transposed), w.value.type.elements // max(channels, 1), beyond)
    if why := unfit(n, bias, x.s * w.scale, x, most):
        return why
    inner = replace(node.op._inner(x.value, w.value), x_zero_point=x.z, w_zero_point=w.z)
    build = n.build
    if isinstance(node.op, ConvTranspose):
        weights = node.op._weights(build, w.value)
    else:
        assert w.value.data is not None
        weights = n.constant("weights", w.value.data.transpose(0, *range(2, w.value.type.rank), 1))
    last = channels_last(build, x.value)
    less: Value | None = None
    if beyond is not None:
        taps = channels_last(build, ones(build, w.value))
        sums = convolved(build, replace(inner, w_zero_point=0), last, taps)
        less = build(op("Mul"), sums, beyond)
    acc = convolved(build, inner, last, weights)
    acc = acc if less is None else build(op("Sub"), acc, less)
    return unfolded_first(build, n.finish(acc, bias, x.s * w.scale, most), node.outputs[0].shape)


def _right_operand(n: QdqSite, node: Node, a: Scaled) -> Scaled | str:
    """Weights, or another quantised tensor."""
    if isinstance(node.op, Gemm):
        if node.op.alpha != 1 or node.op.transA or (node.op.beta != 1 and node.input(2) is not None):
            return "alpha, beta or transA"
        return constant_weights(n, node.inputs[1], 0 if node.op.transB else 1)
    second = n.scaled(node.inputs[1])
    if second is None or second.value.type.rank < 2:
        return "the second operand is not quantised"
    if second.value.data is not None and second.value.type.rank == 2:
        return constant_weights(n, node.inputs[1], 1)
    if not second.single or second.value.dtype not in NARROW or second.value.dtype.bits != a.value.dtype.bits:
        return "the second operand is not quantised with one scale, in as many bits"
    return second


def matrix_product(n: QdqSite, node: Node, line: Affine | None = None, extra: Value | None = None) -> Answer:
    """MatMul and Gemm; `extra` is a bias added behind, `line` what is computed of each channel."""
    a = n.tensor(node.inputs[0])
    if a is None:
        return "the first operand is not quantised with one scale"
    if node.outputs[0].type.rank < 2 or a.value.type.rank < 2:
        return "a product of vectors"
    w = _right_operand(n, node, a)
    if isinstance(w, str):
        return w
    channels = node.outputs[0].shape[-1]
    bias: np.ndarray | str | None = None
    if extra is not None:
        bias = constant_bias(n, extra, channels, node.outputs[0].type.rank)
    elif isinstance(node.op, Gemm):
        bias = constant_bias(n, node.input(2), channels, 2)
    if isinstance(bias, str):
        return bias
    if line is not None:
        axis = 0 if isinstance(node.op, Gemm) and node.op.transB else w.value.type.rank - 1
        scaled = "the second operand is no constant" if w.value.data is None else line.into(n, w, bias, axis)
        if isinstance(scaled, str):
            return scaled
        w, bias = scaled
    w, beyond = apart(n, living(n, w, bias, a))
    if beyond is not None and a.value.dtype.bits > 8:
        return "the weights have several zero points, and the activations 16 bits"
    w = w if beyond is not None else finer(n, w, bias, a)
    right = w.value
    if isinstance(node.op, Gemm):
        assert right.data is not None
        right = n.constant("weights", right.data.T if node.op.transB else right.data)
    most = largest_sum(a, replace(w, value=right), 1, a.value.shape[-1], beyond)
    if why := unfit(n, bias, a.s * w.scale, a, most):
        return why
    if right.data is None and a.value.dtype.bits == 16:
        return n.finish(product_of_pairs(n.build, a.value, right, a.z, w.z), bias, a.s * w.scale, most)
    less: Value | None = None
    if beyond is not None:
        sums = row_sums(n.build, a.value, n.constant("zero", np.int32(a.z)))
        less = n.build(op("Mul"), sums, beyond)
    acc = n.build(MatMul(a.z, w.z), a.value, right)
    acc = acc if less is None else n.build(op("Sub"), acc, less)
    return n.finish(acc, bias, a.s * w.scale, most)


def product(n: QdqSite, node: Node, line: Affine) -> Answer:
    """One of qdq_affine.PRODUCTS, with what is computed of each channel behind it."""
    return (convolution if node.kind in ("Conv", "ConvTranspose") else matrix_product)(n, node, line)


def addition(n: QdqSite, node: Node) -> Answer:
    for product, other in ((node.inputs[0], node.inputs[1]), (node.inputs[1], node.inputs[0])):
        made = None if product is None else n.producer.get(product)
        if (
            node.kind == "Add"
            and made is not None
            and isinstance(made.op, MatMul)
            and product is not None
            and n.read_once(product)
            and n.real(other) is not None
        ):
            return matrix_product(n, made, extra=other)
    return sum_of_two(n, node)


def concatenation(n: QdqSite, node: Node) -> Answer:
    assert isinstance(node.op, Concat)
    parts = [n.tensor(v) for v in node.inputs]
    values = [n.rescaled(p) for p in parts if p is not None]
    return (
        n.build(node.op, *values) if len(values) == len(parts) else "a piece is not quantised with one scale"
    )


def average(n: QdqSite, node: Node) -> Answer:
    """Means and sums over axes, and pooling whose windows all hold the same number of elements."""
    x = n.tensor(node.inputs[0])
    if x is None:
        return "the input is not quantised with one scale"
    shape = x.value.shape
    if node.kind == "AveragePool":
        assert isinstance(node.op, AveragePool)
        pool = node.op._pool(x.value)
        whole = pool.kernel == shape[2:] and not any(pool.pads)  # one window, which is the image
        padded = any(pool.pads) or pool.ceil_mode
        if padded and not whole and not pool.count_include_pad:
            return "windows at the border hold fewer elements"
        if pool.ceil_mode and not whole:
            return "ceil_mode"
        if x.value.dtype.bits > 8 and not whole:
            return "16-bit pooling"
        if not whole and shape[1] * math.prod(pool.kernel) > MAX_TABLES:
            return "more channels than there may be weights of ones"
        if not whole:
            return _window_mean(n, x, pool)
    if node.kind in ("GlobalAveragePool", "AveragePool"):
        axes, keep = tuple(range(2, len(shape))), True
    else:
        assert isinstance(node.op, Reduction)
        axes, keep = tuple(sorted(node.op.axes(node.inputs))), bool(node.op.keepdims)
    count = math.prod(shape[a] for a in axes)
    if not axes or count == 0 or count * 65536 >= 2**31:
        return "a mean over nothing, or over too much for 32 bits"
    total = n.build(WideSum(axes, keep), x.value)
    if node.kind == "ReduceSum":
        return n.requantised(total, [x.s / n.to.s], x.z * count, most=x.largest * count)
    return _divided(n, total, x, count, x.z * count)


def _divided(n: QdqSite, total: Value, x: Scaled, count: int, zero: int) -> Value:
    """The mean of `count` elements, of which the sum is `total` - `zero` units of x."""
    ratio = Fraction(float(np.float32(x.s))) / Fraction(float(np.float32(n.to.s))) / count
    divisor = exact_divisor(ratio, (x.s, n.to.s))
    most = x.largest * count
    if divisor is None:
        return n.requantised(total, [x.s / (n.to.s * count)], zero, most=most)
    return n.build(ExactQuotient(divisor, most, n.to.z, n.to.low, n.to.high, n.to.dtype, zero), total)


def _window_mean(n: QdqSite, x: Scaled, pool: Pool) -> Value:
    """Windows of equal size: a depthwise convolution with ones. Padding counts as the real number 0."""
    channels = x.value.shape[1]
    ones = n.constant("ones", np.ones((channels, *pool.kernel, 1), np.int8))
    build = n.build
    acc = build(
        Convolution(pool.strides, pool.pads, pool.dilations, channels, x.z, 0),
        channels_last(build, x.value),
        ones,
    )
    y = _divided(n, acc, x, math.prod(pool.kernel), 0)
    return channels_first(n.build, y)


def softmax(n: QdqSite, node: Node) -> Answer:
    """In fixed point, rounded once: what reads a softmax multiplies it by large numbers as often as not."""
    assert isinstance(node.op, Softmax)
    x = n.tensor(node.inputs[0])
    if x is None:
        return "the input is not quantised with one scale"
    if not 2.0**-20 <= n.to.s <= 1 or not 2.0**-24 <= x.s <= 1024:
        return "its scales are beyond those of a softmax"
    rank = x.value.type.rank
    axis = node.op.axis % max(rank, 1)
    rounded = RoundedSoftmax(x.s, n.to.s, node.op.axis, n.to.z, n.to.low, n.to.high, n.to.dtype)
    if axis < rank - 1 and replace(rounded, axis=-1).in_rows(x.value, x.value.shape[axis]):
        # rows in one piece; of channels, which convolutions have last, nothing is moved in the end
        last = (*range(axis), *range(axis + 1, rank), axis)
        back = (*range(axis), rank - 1, *range(axis, rank - 1))
        rows = n.build(Transpose(last), x.value)
        return n.build(Transpose(back), n.build(replace(rounded, axis=-1), rows))
    return n.build(rounded, x.value)


def movement(n: QdqSite, node: Node) -> Answer:
    x = n.tensor(n.quantise.inputs[0])
    return "the input is not quantised with one scale" if x is None else n.rescaled(x)


def table(n: QdqSite) -> Answer:
    """Any function of one tensor and of constants, computed for all its values: 256, or 65,536, of which
    polynomials are made that give the same integers but near a tie (ops/piecewise.py).
    """
    source: Scaled | None = None
    origin: Value | None = None
    pending, seen, numbers = [n.quantise.inputs[0]], set(), dict[Value, np.ndarray]()
    while pending:
        value = pending.pop()
        if value is None or value in seen or (value.data is not None and value.data.size == 1):
            continue
        seen.add(value)
        node = n.producer.get(value)
        if value.data is not None or node is None or len(seen) > MAX_TABLE_NODES:
            return "not a function of one quantised tensor"
        if node.op.elementwise and value.dtype.is_float:
            pending += node.inputs
            continue
        number = n.real(value)
        if number is not None and number.size == 1:
            numbers[value] = number
            continue
        if origin is not None or node.kind not in ("DequantizeLinear", *MOVEMENTS):
            return "not a function of one quantised tensor"
        origin, source = value, n.tensor(value)
    if source is None or origin is None or source.value.shape != n.quantise.outputs[0].shape:
        return "not a function of one quantised tensor with one scale"
    dtype = source.value.dtype
    low, high = dtype.limits
    steps = np.arange(low - source.z, high - source.z + 1).astype(np.float32)
    with np.errstate(over="ignore"):  # of a scale near the largest float
        reals = (steps * np.float32(source.s)).astype(origin.dtype.numpy)
    i, argument = var("i", reals.size), Leaf(origin.dtype, "x")

    def at(value: Value, index: Index) -> Expr:
        if value is origin:
            return argument
        data = numbers.get(value, value.data)
        if data is not None:
            return const(value.dtype.numpy.type(data.reshape(-1)[0]).item(), value.dtype)
        node = n.producer[value]
        return node.op.express(at, node.inputs, tuple(const(0) for _ in value.shape), 0)

    def values(element: Expr, arguments: np.ndarray) -> np.ndarray:
        return evaluate(element, (i,), arguments.shape, {argument: arguments})

    zeros = tuple(const(0) for _ in n.quantise.outputs[0].shape)
    wanted = values(n.quantise.op.express(at, n.quantise.inputs, zeros, 0), reals)
    if dtype.bits == 8:
        return n.build(lookup(dtype, [int(v) for v in wanted], n.to.dtype), source.value)
    real = n.quantise.inputs[0]
    assert real is not None
    # exponentials of doubles are the same wherever this runs, but for bits that nobody sees
    precise = values(at(real, zeros), reals.astype(np.float64)).astype(np.float64)
    made = fit(precise / n.to.s + n.to.z, wanted.astype(np.int64), dtype, n.to.dtype, n.pieces)
    return f"no {n.pieces} pieces give it within a unit" if made is None else n.build(made, source.value)


Rule = Callable[[QdqSite, Node], Answer]

WITH_RANGE: dict[str, Rule] = {
    "Conv": convolution,
    "ConvTranspose": convolution,
    "MatMul": matrix_product,
    "Gemm": matrix_product,
    "Add": addition,
    "Sub": addition,
    "Mul": multiplication,
    "Concat": concatenation,
    "GlobalAveragePool": average,
    "AveragePool": average,
    "ReduceMean": average,
    "ReduceSum": average,
    "Resize": resized,
    "Where": chosen,
    "Max": larger,
    "Min": larger,
    "ReduceMax": largest,
    "ReduceMin": largest,
    "GlobalMaxPool": largest,
    "LayerNormalization": normalised,
    "SimplifiedLayerNormalization": normalised,
    "InstanceNormalization": normalised,
    "GroupNormalization": normalised,
    "DequantizeLinear": dequantised,
}
"""Operators behind which a Relu or Clip is only a narrower range of the result."""

ALONE: dict[str, Rule] = {
    "Softmax": softmax,
    "Mul": multiple,
    "Div": multiple,
    "PRelu": bent,
    "LeakyRelu": bent,
}
