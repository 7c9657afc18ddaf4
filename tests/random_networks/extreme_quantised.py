"""Layers of fragments that are quantised operators: of the standard, and those of ONNX Runtime. They mean
DequantizeLinear, the operator of floats, QuantizeLinear.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from extreme_fragment import Fragment, Rejected, Tensor, layer, stored
from extreme_layers import _window
from onnx import helper

MICROSOFT = "com.microsoft"


def whole(
    n: Fragment, kind: str, inputs: list[str], real: str, of: str = "", domain: str = "", **given: Any
) -> Tensor:
    """An operator whose result is that of a float node, quantised: scale and zero point are its last inputs,
    or where "*" is.
    """
    x = n.result(real, of or n.pick("uint8", "int8"))
    made = n.mean("QuantizeLinear", [real, *x.parameters])[0]
    at = inputs.index("*") if "*" in inputs else len(inputs)
    places = [*inputs[:at], *x.parameters, *inputs[at + 1 :]]
    n.nodes.append(helper.make_node(kind, places, [made], domain=domain, **given))
    n.kinds.append(kind)
    return n.named(x, made)


def bytes_only(x: Tensor) -> None:
    if x.kind not in ("int8", "uint8"):
        raise Rejected("not of 8 bits")


def few_weights(n: Fragment, x: Tensor, shape: tuple[int, ...], axis: int) -> tuple[list[str], str]:
    """Weights, scales and zero points of a quantised operator; the same in floats."""
    kind = n.pick("int8", "int8", "uint8")
    form: tuple[int, ...] = n.pick((), (shape[axis],))
    base = n.scale(1 / 255)
    scales = np.full(form, base, np.float64)
    if form:
        scales = scales * (
            2.0 ** n.rng.uniform(-40, 40, form) if n.odd(2) else np.exp(n.rng.normal(0, 0.5, form))
        )
    zero = 0 if kind == "int8" and not n.odd() else n.zero(kind)
    with np.errstate(over="ignore"):
        scales = np.clip(scales, 1e-45, 3e38).astype(np.float32)
    names = [
        n.constant(stored(n.steps(kind, shape), kind)),
        n.constant(scales),
        n.constant(np.full(form, zero, kind)),
    ]
    return names, n.mean("DequantizeLinear", names, **({"axis": axis} if form else {}))[0]


def whole_bias(n: Fragment, x: Tensor, w: list[str], channels: int, most: float) -> tuple[str, str] | None:
    """An int32 in units of the product of scales; the same in floats."""
    if n.number(0, 2) == 0:
        return None
    units = np.float64(x.scale) * n.known[w[1]].reshape(-1)
    with np.errstate(all="ignore"):
        drawn = np.rint(n.rng.normal(0, 1, channels) * most / units)
    if n.odd():
        drawn = np.full(channels, n.pick(0, 2**31 - 1, -(2**31), 2**30))
    b = n.constant(np.clip(np.nan_to_num(drawn), -(2**31), 2**31 - 1).astype(np.int32))
    # in doubles: the product of scales need not be a float
    n.known[by := n.name("u")] = units if units.size > 1 else units.reshape(())
    n.exact[by] = n.known[by]
    return b, n.mean("DequantizeLinear", [b, by], axis=0)[0]


@layer(3)
def quantised_convolution(n: Fragment, x: Tensor) -> Tensor:
    bytes_only(x)
    if not 3 <= len(x.shape) <= 5:
        raise Rejected("no image")
    real = n.real(x, hidden=True)
    kernel, window = _window(n, x.shape[2:])
    groups = n.pick(1, 1, x.shape[1])
    outside = groups * n.number(1, 4) if groups == 1 or not n.number(0, 2) else groups
    shape = (outside, x.shape[1] // groups, *kernel)
    n.afford(math.prod(x.shape[2:]) * math.prod(shape) * 4)
    w, reals = few_weights(n, x, shape, 0)
    bias = whole_bias(n, x, w, outside, n.suited(real) * n.suited(reals))
    more = [bias[1]] if bias else []
    made = n.mean("Conv", [real, reals, *more], kernel_shape=kernel, group=groups, **window)[0]
    inputs = [x.name, *x.parameters, *w, "*", *([bias[0]] if bias else [])]
    return whole(n, "QLinearConv", inputs, made, x.kind, kernel_shape=kernel, group=groups, **window)


@layer(3)
def quantised_product(n: Fragment, x: Tensor) -> Tensor:
    bytes_only(x)
    if not x.shape:
        raise Rejected("one number")
    real, terms, outside = n.real(x, hidden=True), x.shape[-1], n.pick(n.number(1, 9), 16)
    n.afford(math.prod(x.shape) * outside)
    if len(x.shape) == 2 and n.number(0, 1):
        turned = n.number(0, 1)
        w, reals = few_weights(n, x, (outside, terms) if turned else (terms, outside), 0 if turned else 1)
        bias = whole_bias(n, x, w, outside, n.suited(real) * n.suited(reals))
        made = n.mean("Gemm", [real, reals, *([bias[1]] if bias else [])], transB=turned)[0]
        inputs = [x.name, *x.parameters, *w, bias[0] if bias else ""]
        return whole(n, "QGemm", inputs, made, x.kind, MICROSOFT, transB=turned, alpha=1.0)
    w, reals = few_weights(n, x, (terms, outside), 1)
    made = n.mean("MatMul", [real, reals])[0]
    return whole(n, "QLinearMatMul", [x.name, *x.parameters, *w], made, x.kind)


@layer(3)
def quantised_pair(n: Fragment, x: Tensor) -> Tensor:
    bytes_only(x)
    like = [
        v for v in n.values if v.kind == x.kind and v.shape in (x.shape, x.shape[-1:], (1,) * len(x.shape))
    ]
    y = n.pick(*like)
    if n.number(0, 2):
        form = n.pick(x.shape, tuple(n.pick(d, 1) for d in x.shape), x.shape[-1:])
        name = n.constant(stored(n.steps(x.kind, form), x.kind))
        y = n.tensor(name, form, x.kind, n.scale(x.scale), n.zero(x.kind))
    kind = n.pick("Add", "Mul")
    both = [x, y] if n.number(0, 1) else [y, x]
    made = n.mean(kind, [n.real(v, hidden=True) for v in both])[0]
    inputs = [i for v in both for i in (v.name, *v.parameters)]
    return whole(n, f"QLinear{kind}", inputs, made, x.kind, MICROSOFT)


@layer(3)
def quantised_function(n: Fragment, x: Tensor) -> Tensor:
    bytes_only(x)
    real = n.real(x, hidden=True)
    kind = n.pick("Sigmoid", "LeakyRelu", "AveragePool", "GlobalAveragePool", "ReduceMean", "Concat", "Where")
    inputs = [x.name, *x.parameters]
    if kind == "LeakyRelu":
        alpha = float(n.pick(0.0, -1.0, 1.0, 1e-30, 1e30)) if n.odd() else float(n.rng.random())
        made = n.mean(kind, [real], alpha=alpha)[0]
        return whole(n, "QLinearLeakyRelu", inputs, made, x.kind, MICROSOFT, alpha=alpha)
    if kind == "Sigmoid":
        return whole(n, "QLinearSigmoid", inputs, n.mean(kind, [real])[0], x.kind, MICROSOFT)
    if kind == "ReduceMean":
        axes = sorted(set(map(int, n.rng.integers(0, max(len(x.shape), 1), n.number(1, 2)))))
        if not x.shape or n.opset < 18:
            raise Rejected("one number")
        made = n.mean(kind, [real, n.integers(axes)], keepdims=1)[0]
        return whole(n, "QLinearReduceMean", inputs, made, x.kind, MICROSOFT, axes=axes, keepdims=1)
    if kind in ("Concat", "Where"):
        form = x.shape
        y = n.tensor(
            n.constant(stored(n.steps(x.kind, form), x.kind)), form, x.kind, n.scale(x.scale), n.zero(x.kind)
        )
        other = n.real(y, hidden=True)
        if kind == "Where":
            condition = n.constant(n.rng.random(form) < 0.5)
            made = n.mean(kind, [condition, real, other])[0]
            given = [condition, *inputs, y.name, *y.parameters]
            return whole(n, "QLinearWhere", given, made, x.kind, MICROSOFT)
        if not form:
            raise Rejected("one number")
        axis = n.number(0, len(form) - 1)
        made = n.mean(kind, [real, other], axis=axis)[0]
        return whole(
            n, "QLinearConcat", ["*", *inputs, y.name, *y.parameters], made, x.kind, MICROSOFT, axis=axis
        )
    if len(x.shape) != 4:
        raise Rejected("no image")
    if kind == "GlobalAveragePool":
        made = n.mean(kind, [real])[0]
        return whole(n, "QLinearGlobalAveragePool", inputs, made, x.kind, MICROSOFT, channels_last=0)
    kernel, given = _window(n, x.shape[2:])
    del given["dilations"]
    if any(p >= k for p, k in zip(given["pads"], kernel * 2, strict=True)):
        raise Rejected("a window of padding")
    if any(d + given["pads"][k] + given["pads"][k + 2] < kernel[k] for k, d in enumerate(x.shape[2:])):
        raise Rejected("a window beyond the image")
    given["count_include_pad"] = n.number(0, 1)
    made = n.mean(kind, [real], kernel_shape=kernel, **given)[0]
    return whole(n, "QLinearAveragePool", inputs, made, x.kind, MICROSOFT, kernel_shape=kernel, **given)


@layer(2)
def integer_product(n: Fragment, x: Tensor) -> Tensor:
    """MatMulInteger or ConvInteger, whose sums become floats, some behind DynamicQuantizeLinear."""
    bytes_only(x)
    image = 3 <= len(x.shape) <= 5 and bool(n.number(0, 1))
    if not x.shape:
        raise Rejected("one number")
    name, scale, zero = x.name, *x.parameters
    if n.number(0, 1):
        real = n.real(x)
        name, scale, zero = n.node("DynamicQuantizeLinear", [real], 3)
    outside, kind = n.number(1, 6), n.pick("int8", "uint8")
    zeros = np.asarray(n.pick(0, n.zero(kind)))
    if image:
        kernel, window = _window(n, x.shape[2:])
        shape = (outside, x.shape[1], *kernel)
        n.afford(math.prod(x.shape[2:]) * math.prod(shape) * 4)
        w = [n.constant(stored(n.steps(kind, shape), kind)), n.constant(stored(zeros, kind))]
        sums = n.node("ConvInteger", [name, w[0], zero, w[1]], kernel_shape=kernel, **window)[0]
    else:
        n.afford(math.prod(x.shape) * outside)
        if n.number(0, 1):
            zeros = n.rng.choice([0, int(zeros), int(n.zero(kind))], outside)
        w = [n.constant(stored(n.steps(kind, (x.shape[-1], outside)), kind)), n.constant(stored(zeros, kind))]
        sums = n.node("MatMulInteger", [name, w[0], zero, w[1]])[0]
    real = n.node("Cast", [sums], to=1)[0]
    factor = n.node("Mul", [scale, n.floats(n.scale(1 / 255))])[0]
    return n.quantise(n.node("Mul", [real, factor])[0])
