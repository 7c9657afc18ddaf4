"""More layers of quantised fragments with extreme parameters: scales by channel and by block of what is
computed, constants behind layers, weights that the file quantises, float16, normalisations, choices.
"""

from __future__ import annotations

import math

import numpy as np
from exact_floats import INTEGERS
from extreme_fragment import ODD_NUMBERS, Fragment, Rejected, Tensor, layer, stored
from extreme_layers import bias, bounded, finished, moved, weights


def constants(n: Fragment, shape: tuple[int, ...], spread: float) -> str:
    """Floats that broadcast to a shape: by channel, one, all."""
    form = n.pick((), (1,), shape[-1:], shape, tuple(d if k == 1 else 1 for k, d in enumerate(shape)))
    if n.odd():
        return n.floats(np.full(form, n.pick(*ODD_NUMBERS)))
    data = n.rng.normal(0, 1, form) * spread
    if n.odd(2):
        data = np.where(n.rng.random(form) < 0.3, n.pick(0.0, spread * 1e6, -spread * 1e-6), data)
    return n.floats(data)


@layer(4)
def line(n: Fragment, x: Tensor) -> Tensor:
    """A layer, or a tensor as it is, times constants and plus others."""
    real = n.real(x)
    shape = n.shape(real)
    if n.number(0, 1) and shape:
        outside = n.number(1, 9)
        n.afford(math.prod(shape) * outside)
        if len(shape) == 4 and n.number(0, 1):
            real = n.node("Conv", [real, weights(n, (outside, shape[1], 1, 1), 0)])[0]
        else:
            real = n.node("MatMul", [real, weights(n, (shape[-1], outside), 1)])[0]
    for _ in range(n.number(1, 3)):
        kind = n.pick("Add", "Sub", "Mul", "Div")
        spread = n.suited(real) if kind in ("Add", "Sub") else 1.0
        other = constants(n, n.shape(real), spread)
        both = [real, other] if n.number(0, 3) or kind == "Div" else [other, real]
        real = n.node(kind, both)[0]
    return finished(n, real)


@layer(3)
def by_channel(n: Fragment, x: Tensor) -> Tensor:
    """Quantised with scales by channel or by block, and floats again."""
    real = moved(n, n.real(x))
    shape = n.shape(real)
    if not shape or not math.prod(shape):
        raise Rejected("one number")
    axis, kind = n.number(0, len(shape) - 1), n.pick("int8", "uint8", n.kind())
    given = {"axis": axis}
    form: tuple[int, ...] = (shape[axis],)
    if n.opset >= 21 and n.number(0, 2) == 0:
        given["block_size"] = size = n.pick(1, 2, 5, shape[axis])
        form = tuple(-(-d // size) if k == axis else d for k, d in enumerate(shape))
    elif n.opset < 13:
        raise Rejected("one scale")
    low, high = INTEGERS[kind]
    base = n.scale(n.suited(real) / (high - low))
    far = n.odd(2)
    with np.errstate(over="ignore"):
        drawn = base * (2.0 ** n.rng.uniform(-30, 30, form) if far else np.exp(n.rng.normal(0, 0.5, form)))
        scales = n.constant(np.clip(drawn, 1e-38, 1e37).astype(np.float32))
    zeros = n.rng.integers(low, high, form, endpoint=True) if n.number(0, 1) else np.zeros(form)
    names = [scales, n.constant(stored(zeros, kind))]
    whole = n.node("QuantizeLinear", [real, *names], **given)[0]
    again = n.node("DequantizeLinear", [whole, *names], **given)[0]
    if n.number(0, 1):
        again = n.node(n.pick("Relu", "Sigmoid", "Neg"), [again])[0]
    elif n.number(0, 1):
        outside = n.number(1, 5)
        n.afford(math.prod(shape) * outside)
        again = n.node("MatMul", [again, weights(n, (shape[-1], outside), 1)])[0]
    return finished(n, again)


@layer(2)
def quantised_in_file(n: Fragment, x: Tensor) -> Tensor:
    """Floats of the file between QuantizeLinear and DequantizeLinear, as training leaves weights."""
    real = n.real(x)
    shape = n.shape(real)
    if not shape:
        raise Rejected("one number")
    outside, kind = n.number(1, 9), n.pick("int8", "uint8")
    n.afford(math.prod(shape) * outside)
    each = n.number(0, 1)
    size = (shape[-1], outside)
    data = n.rng.normal(0, 1, size) * n.pick(1, 1, 1e-6, 1e6)
    if n.odd():
        data[:, n.number(0, outside - 1)] = n.pick(0.0, np.inf, -np.inf, 1e30)
    scale = n.scale(float(np.abs(data[np.isfinite(data)]).max(initial=1e-9)) / 127)
    scales = np.full(outside, scale) * np.exp(n.rng.normal(0, 0.5, outside)) if each else np.asarray(scale)
    zero = np.full(scales.shape, 0 if kind == "int8" else n.zero(kind))
    with np.errstate(over="ignore"):
        names = [n.constant(np.clip(scales, 1e-45, 3e38).astype(np.float32)), n.constant(stored(zero, kind))]
    given = {"axis": 1} if each else {}
    w = n.node("QuantizeLinear", [n.floats(data), *names], **given)[0]
    w = n.node("DequantizeLinear", [w, *names], **given)[0]
    b = bias(n, outside, x, w, n.suited(real) * n.suited(w))
    y = n.node("MatMul", [real, w])[0]
    return finished(n, n.node("Add", [y, b])[0] if b else y)


@layer(2)
def halves(n: Fragment, x: Tensor) -> Tensor:
    """Floats of 16 bits between."""
    if n.opset < 21 or x.kind.endswith("16") or not 1e-4 < x.scale < 100:
        raise Rejected("no halves")
    by = [n.constant(np.float16(x.scale)), x.parameters[1]]
    real = n.node("DequantizeLinear", [x.name, *by])[0]
    real = n.node(n.pick("Relu", "Neg", "Sigmoid", "Abs", "LeakyRelu", "Identity"), [real])[0]
    n.halves |= {*n.nodes[-1].input, *n.nodes[-1].output}
    y = n.result(real, n.pick("int8", "uint8"))
    if not 1e-4 < y.scale < 1e4:
        raise Rejected("no halves")
    scale = n.constant(np.float16(y.scale))
    made = n.node("QuantizeLinear", [real, scale, y.parameters[1]])[0]
    out = Tensor(
        made, y.shape, y.kind, (n.floats(np.float32(np.float16(y.scale))), y.parameters[1]), y.scale, y.zero
    )
    n.values.append(out)
    return out


@layer(2)
def normalised(n: Fragment, x: Tensor) -> Tensor:
    real = moved(n, n.real(x))
    shape = n.shape(real)
    if len(shape) < 2 or not math.prod(shape):
        raise Rejected("no channels")
    kind = n.pick("BatchNormalization", "LayerNormalization", "ReduceSum", "LpNormalization")
    if kind == "LpNormalization":
        return finished(n, n.node(kind, [real], axis=n.number(0, len(shape) - 1), p=n.pick(1, 2))[0])
    if kind == "ReduceSum":
        return finished(n, n.node(kind, [real, n.integers([-1])], keepdims=1)[0])
    size = shape[1] if kind == "BatchNormalization" else shape[-1]
    if kind == "LayerNormalization" and n.opset < 17:
        raise Rejected("later")
    scale, shift = n.floats(n.rng.normal(1, 0.5, size)), n.floats(n.rng.normal(0, 1, size))
    if kind == "LayerNormalization":
        return finished(n, n.node(kind, [real, scale, shift], axis=-1, epsilon=n.pick(1e-5, 1e-12, 1.0))[0])
    spread = n.suited(real)
    mean, var = n.floats(n.rng.normal(0, 1, size) * spread), n.floats(n.rng.random(size) * spread**2)
    return finished(n, n.node(kind, [real, scale, shift, mean, var], epsilon=n.pick(1e-5, 1e-3))[0])


@layer(2)
def resized(n: Fragment, x: Tensor) -> Tensor:
    real = n.real(x)
    shape = n.shape(real)
    if len(shape) != 4 or not math.prod(shape) or n.opset < 19:
        raise Rejected("no image")
    sizes = [shape[0], shape[1], *(n.pick(1, d, 2 * d, d + 1) for d in shape[2:])]
    mode = n.pick("nearest", "linear")
    way = n.pick("half_pixel", "asymmetric", "align_corners")
    return finished(
        n,
        n.node("Resize", [real, "", "", n.integers(sizes)], mode=mode, coordinate_transformation_mode=way)[0],
    )


@layer(1)
def compared(n: Fragment, x: Tensor) -> Tensor:
    """A choice by a comparison of what is quantised with constants in the middle of two steps."""
    real = n.real(x)
    number = n.floats((n.number(0, 9) + 0.5) * x.scale if np.isfinite(9 * x.scale) else 0.5)
    condition = n.node(n.pick("Greater", "Less", "GreaterOrEqual"), [real, number])[0]
    return finished(
        n, bounded(n, n.node("Where", [condition, real, constants(n, n.shape(real), 9 * x.scale)])[0])
    )


@layer(2)
def again(n: Fragment, x: Tensor) -> Tensor:
    """Quantised once more: another type, or scale, or the same."""
    for _ in range(n.pick(1, 1, 2, 3)):
        x = n.quantise(n.real(x))
    return x


def _emptied(n: Fragment, shape: tuple[int, ...], axis: int) -> str:
    """Dequantised weights of bytes of which some channels are all the same, or their zero point."""
    data, size = n.rng.integers(-128, 128, shape), shape[axis]
    empty = n.rng.random(size) < n.pick(0.3, 0.7, 1)
    along = tuple(size if k == axis else 1 for k in range(len(shape)))
    data = np.where(empty.reshape(along), n.pick(0, 0, 0, n.number(-128, 127)), data)
    scales = np.full(size, n.scale(1 / 255)) * np.exp(n.rng.normal(0, 0.5, size))
    if n.odd():
        scales = np.where(n.rng.random(size) < 0.3, 1e-12 * scales, scales)
    names = [n.constant(stored(data, "int8")), n.constant(np.clip(scales, 1e-38, 1e38).astype(np.float32))]
    return n.node("DequantizeLinear", names, axis=axis)[0]


@layer(4)
def chain(n: Fragment, x: Tensor) -> Tensor:
    """Layers behind each other whose channels hold one number, or few."""
    image = len(x.shape) == 4
    if len(x.shape) < 2:
        raise Rejected("no channels")
    for _ in range(n.pick(2, 2, 3)):
        real, shape, outside = n.real(x), x.shape, n.number(1, 9)
        n.afford(math.prod(shape) * outside)
        if image:
            groups = shape[1] if n.number(0, 3) == 0 else 1
            outside = shape[1] if groups > 1 else outside
            taps = n.pick((1, 1), (1, 1), (min(shape[2], 2), min(shape[3], 3)))
            w = _emptied(n, (outside, shape[1] // groups, *taps), 0)
            b = bias(n, outside, x, w, n.suited(real) * n.suited(w))
            y = n.node("Conv", [real, w, *([b] if b else [])], group=groups, pads=[n.number(0, 1)] * 4)[0]
        else:
            w = _emptied(n, (shape[-1], outside), 1)
            b = bias(n, outside, x, w, n.suited(real) * n.suited(w))
            y = n.node("MatMul", [real, w])[0]
            y = n.node("Add", [y, b])[0] if b else y
        x = n.quantise(bounded(n, y))
        if image and n.number(0, 5) == 0:
            x = n.quantise(n.node("MaxPool", [n.real(x)], kernel_shape=[1, 1], strides=[2, 1])[0])
    return x
