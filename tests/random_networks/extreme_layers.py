"""Layers of quantised fragments with extreme parameters."""

from __future__ import annotations

import math

import numpy as np
from exact_floats import INTEGERS, Array
from extreme_fragment import ODD_NUMBERS, Fragment, Rejected, Tensor, layer, stored

LONG = (33026, 70000)


def moved(n: Fragment, real: str) -> str:
    """Floats in another order or shape, or more of them."""
    shape = n.shape(real)
    if n.number(0, 4) or not shape:
        return real
    rank = len(shape)
    how = n.number(0, 7)
    if how == 0:
        return n.node("Transpose", [real], perm=list(map(int, n.rng.permutation(rank))))[0]
    if how == 1:
        return n.node("Reshape", [real, n.integers([*shape[1:], shape[0]])])[0]
    if how == 2:
        wanted = [n.pick(2, 3) if d == 1 else d for d in shape]
        return n.node(
            "Expand", [real, n.integers([2, *wanted] if n.number(0, 3) == 0 and rank < 4 else wanted)]
        )[0]
    axis = n.number(0, rank - 1)
    if how == 3 and shape[axis] > 1:
        begin, step = n.number(0, shape[axis] - 1), n.pick(1, 1, 2, -1)
        end = -1000 if step < 0 else shape[axis] + n.pick(0, 5)
        return n.node("Slice", [real, *map(n.integers, ([begin], [end], [axis], [step]))])[0]
    if how == 4 and shape[axis] > 1:
        first = n.number(1, shape[axis] - 1)
        return n.pick(*n.node("Split", [real, n.integers([first, shape[axis] - first])], 2, axis=axis))
    if how == 5:
        pads = [n.pick(0, 0, 1, 3) for _ in range(2 * rank)]
        return n.node(
            "Pad", [real, n.integers(pads), *([n.floats(n.pick(*ODD_NUMBERS))] if n.odd() else [])]
        )[0]
    if how == 6 and shape[axis]:
        places = n.rng.integers(-shape[axis], shape[axis], n.number(1, 4))
        return n.node("Gather", [real, n.integers(places)], axis=axis)[0]
    return n.node("Unsqueeze", [real, n.integers([0])])[0] if rank < 4 else real


def bounded(n: Fragment, real: str) -> str:
    """An activation behind a layer: some ends are odd, or the wrong way round."""
    for _ in range(n.pick(0, 0, 1, 1, 2)):
        if n.number(0, 2) == 0:
            real = n.node("Relu", [real])[0]
            continue
        most = n.suited(real)

        def end(sign: int, most: float = most) -> str:
            return n.floats(n.pick(*ODD_NUMBERS) if n.odd() else sign * most * float(n.rng.random()))

        ends = [n.pick(end(-1), ""), n.pick(end(1), "")]
        real = n.node("Clip", [real, *ends] if ends[1] else [real, ends[0]] if ends[0] else [real])[0]
    return real


def finished(n: Fragment, real: str) -> Tensor:
    return n.quantise(moved(n, bounded(n, real)))


def weights(n: Fragment, shape: tuple[int, ...], axis: int, wide: bool = False) -> str:
    """Dequantised constants: by tensor, by channel, in blocks along the other axis of matrices."""
    few = ("int4", "uint4", *(("int2", "uint2") if n.opset >= 25 else ())) if n.opset >= 21 else ()
    kind = n.pick(
        "int8", "int8", "int8", "uint8", "uint8", *few, *(("int16",) if wide and n.opset >= 21 else ())
    )
    data = n.steps(kind, shape)
    low, high = INTEGERS[kind]
    how = n.pick(
        "tensor", "tensor", "channel", "channel", "channel", "block" if few and len(shape) == 2 else "tensor"
    )
    given: dict[str, int] = {"axis": axis}
    if how == "tensor":
        form: tuple[int, ...] = n.pick((), (1,))
        given = {} if not form else {"axis": 0}
    elif how == "channel":
        form = (shape[axis],)
    else:
        size = n.pick(1, 2, 16, 32)
        given = {"axis": 1 - axis, "block_size": size}
        form = tuple(-(-d // size) if k == 1 - axis else d for k, d in enumerate(shape))
    base = n.scale(1 / (high - low))
    scales = np.full(form, base, np.float64)
    if form and n.odd(2):
        scales = scales * 2.0 ** n.rng.uniform(-40, 40, form)
    elif form:
        scales = scales * np.exp(n.rng.normal(0, 0.5, form))
    if form and scales.size and n.odd():
        flat = scales.reshape(-1)
        flat[n.number(0, flat.size - 1)] = n.pick(
            0.0, 1e-12 * base, 1e-45, -base, base * 2.0**-32, 1e12 * base
        )
    zeros = np.zeros(form, np.int64)
    if n.odd():
        zeros = n.rng.choice([low, high], form) if n.number(0, 1) else np.full(form, n.pick(low, high, 3))
    with np.errstate(over="ignore", under="ignore"):
        scales = np.clip(scales, -3e38, 3e38).astype(np.float32)
    names = [n.constant(stored(data, kind)), n.constant(scales)]
    if zeros.any() or n.number(0, 1):
        names.append(n.constant(stored(zeros, kind)))
    return n.node("DequantizeLinear", names, **given)[0]


def bias(n: Fragment, channels: int, x: Tensor, w: str, most: float) -> str | None:
    """None, floats, or dequantised integers; in units of the products or in others."""
    maker = next(m for m in n.meaning if w in m.output)
    how = n.number(0, 3) if maker.op_type == "DequantizeLinear" else n.number(0, 2)
    if how == 0:
        return None
    drawn: Array = n.rng.normal(0, 1, channels) * most
    if how < 3:
        if n.odd(2):
            at = n.rng.random(channels) < n.pick(0.3, 1)
            drawn = np.where(
                at, n.pick(0.0, 1e30, -1e30, np.inf, -np.inf, np.nan, most * 1e6, most * 1e-9), drawn
            )
        return n.floats(drawn)
    scales = n.known[maker.input[1]].reshape(-1)
    scales = (
        scales
        if scales.size in (1, channels) and "block_size" not in {a.name for a in maker.attribute}
        else scales[:1]
    )
    with np.errstate(all="ignore"):
        units = (np.float32(x.scale) * scales.astype(np.float32)).astype(np.float32)
        units = np.where(np.isfinite(units), units, np.float32(1))
        if n.odd(0.5):
            units = units * np.float32(n.pick(2, 0.5, 1e6, 1e-6))
        whole = np.nan_to_num(
            np.rint(drawn / np.where(units == 0, 1, units)), posinf=2**31 - 1, neginf=-(2**31)
        )
    if n.odd():
        whole = np.full(channels, n.pick(0, 2**31 - 1, -(2**31), 2**30))
    whole = np.clip(whole, -(2**31), 2**31 - 1).astype(np.int32)
    units = units if units.size > 1 else n.pick(units.reshape(()), units.reshape(1))
    names = [n.constant(whole), n.constant(units), n.constant(np.zeros(units.shape, np.int32))]
    return n.node("DequantizeLinear", names if n.number(0, 1) else names[:2], axis=0)[0]


def _window(n: Fragment, image: tuple[int, ...]) -> tuple[list[int], dict[str, list[int]]]:
    """A kernel, its strides, dilations and pads: beyond the image, too."""
    kernel = [n.pick(1, 2, 3, d, n.number(1, 5)) for d in image]
    far = n.odd(0.7)
    strides = [n.pick(1, 1, 2, d + 3 if far else 3) for d in image]
    dilations = [n.pick(1, 1, 2, d + 1 if far else 1) for d in image]
    pads = [n.pick(0, 0, 1, (k + 3) if far else k // 2) for k in kernel * 2]
    for k, d in enumerate(image):
        if d + pads[k] + pads[k + len(image)] < (kernel[k] - 1) * dilations[k] + 1:
            raise Rejected("a window beyond the image")
    return kernel, {"strides": strides, "dilations": dilations, "pads": pads}


@layer(6)
def convolution(n: Fragment, x: Tensor) -> Tensor:
    real = moved(n, n.real(x))
    shape = n.shape(real)
    if not 3 <= len(shape) <= 5 or not shape[1]:
        raise Rejected("no image")
    kernel, window = _window(n, shape[2:])
    flipped = n.number(0, 5) == 0
    groups = n.pick(1, 1, shape[1])
    outside = groups * n.number(1, 5) if groups == 1 or not n.number(0, 2) else groups
    if flipped:
        window["dilations"] = [1] * len(kernel)
    sides = (shape[1], outside // groups) if flipped else (outside, shape[1] // groups)
    w = weights(n, (*sides, *kernel), 1 if flipped and groups == 1 else 0)
    b = bias(n, outside, x, w, n.suited(real) * n.suited(w))
    n.afford(math.prod(shape[2:]) * math.prod(sides) * math.prod(kernel) * 4)
    kind = "ConvTranspose" if flipped else "Conv"
    made = n.node(kind, [real, w, *([b] if b else [])], kernel_shape=kernel, group=groups, **window)[0]
    if not n.known[made].size:
        raise Rejected("pads beyond the result")
    return finished(n, made)


@layer(7)
def product(n: Fragment, x: Tensor) -> Tensor:
    """MatMul and Gemm with constants, with a bias behind."""
    real = moved(n, n.real(x))
    shape = n.shape(real)
    if not shape:
        raise Rejected("one number")
    outside, terms = n.pick(n.number(1, 9), 1, 16), shape[-1]
    n.afford(math.prod(shape) * outside)
    if len(shape) == 2 and n.number(0, 1):
        turned = n.number(0, 1)
        w = weights(n, (outside, terms) if turned else (terms, outside), 0 if turned else 1, wide=True)
        b = bias(n, outside, x, w, n.suited(real) * n.suited(w))
        given = {"transB": turned} | ({"alpha": 0.5, "beta": 2.0} if n.odd(0.2) else {})
        return finished(n, n.node("Gemm", [real, w, *([b] if b else [])], **given)[0])
    w = weights(n, (terms, outside), 1, wide=True)
    if n.odd(0.4):
        w = moved(n, w)
    y = n.node("MatMul", [real, w])[0]
    if n.number(0, 1) and (b := bias(n, n.shape(y)[-1] if n.shape(y) else 1, x, w, n.suited(y))):
        y = n.node("Add", [y, b] if n.number(0, 1) else [b, y])[0]
    return finished(n, y)


@layer(3)
def two_tensors(n: Fragment, x: Tensor) -> Tensor:
    """A product of what is computed."""
    left, other = n.real(x), n.pick(*n.values)
    right = n.real(other)
    shape, second = n.shape(left), n.shape(right)
    if not shape or not second:
        raise Rejected("one number")
    if shape[-1] != second[-2 if len(second) > 1 else 0]:
        if len(second) > 1 and second[-1] == shape[-1]:
            order = [*range(len(second) - 2), len(second) - 1, len(second) - 2]
            right = n.node("Transpose", [right], perm=order)[0]
        else:
            more = n.given(
                (*n.pick((), shape[:-2], (1,) * len(shape[:-2])), shape[-1], n.number(1, 4)),
                n.pick(x.kind, n.kind()),
            )
            right = n.real(more)
    n.afford(math.prod(shape) * n.shape(right)[-1])
    return finished(n, n.node("MatMul", [left, right])[0])


def operand(n: Fragment, x: Tensor, shape: tuple[int, ...]) -> str:
    """Another tensor that broadcasts to this one: computed, quantised constants, or floats."""
    like = [
        v
        for v in n.values
        if np.broadcast_shapes((1,) * len(v.shape), shape) == shape and _fits(v.shape, shape)
    ]
    how = n.number(0, 3)
    if how < 2 and like:
        return n.real(n.pick(*like))
    form = tuple(n.pick(d, d, 1) for d in shape)
    form = n.pick(form, form, shape, shape[-1:], (), (1,))
    if how == 3:
        return n.floats(n.pick(*ODD_NUMBERS) if n.odd() else n.rng.normal(0, 1, form) * x.scale * 50)
    kind = n.pick(x.kind, x.kind, n.kind())
    if how == 2:
        y = n.tensor(
            n.constant(stored(n.steps(kind, form), kind)), form, kind, n.scale(x.scale), n.zero(kind)
        )
        return n.real(y)
    return n.real(n.given(form, kind))


def _fits(shape: tuple[int, ...], to: tuple[int, ...]) -> bool:
    return len(shape) <= len(to) and all(a in (1, b) for a, b in zip(shape[::-1], to[::-1], strict=False))


@layer(6)
def pair(n: Fragment, x: Tensor) -> Tensor:
    real = moved(n, n.real(x))
    kind = n.pick("Add", "Add", "Sub", "Mul", "Mul", "Div", "Max", "Min", "PRelu", "Pow")
    other = operand(n, x, n.shape(real))
    both = [real, other] if n.number(0, 2) or kind in ("PRelu", "Pow") else [other, real]
    return finished(n, n.node(kind, both)[0])


FUNCTIONS = (
    ("Relu", None), ("LeakyRelu", "alpha"), ("HardSwish", None), ("HardSigmoid", "alpha"), ("Sigmoid", None),
    ("Tanh", None), ("Exp", None), ("Sqrt", None), ("Reciprocal", None), ("Neg", None), ("Abs", None),
    ("Elu", "alpha"), ("Selu", None), ("Softplus", None), ("Erf", None), ("ThresholdedRelu", "alpha"),
    ("Floor", None), ("Sign", None), ("Log", None), ("Celu", "alpha"), ("Softsign", None), ("Clip", None),
    ("Sin", None),
)  # fmt: skip


@layer(4)
def function(n: Fragment, x: Tensor) -> Tensor:
    real = n.real(x)
    for _ in range(n.pick(1, 1, 2)):
        kind, attribute = n.pick(*FUNCTIONS)
        if kind == "Clip":
            real = bounded(n, real)
            continue
        given = (
            {attribute: float(n.pick(0.0, -1.0, 1.0, 2.0, 1e-30, 1e30) if n.odd() else n.rng.random())}
            if attribute
            else {}
        )
        if kind == "Celu" and not given["alpha"]:
            raise Rejected("a division by zero")
        real = n.node(kind, [real], **given)[0]
    return finished(n, real)


@layer(2)
def joined(n: Fragment, x: Tensor) -> Tensor:
    real = moved(n, n.real(x))
    shape = n.shape(real)
    if not shape:
        raise Rejected("one number")
    axis, pieces = n.number(0, len(shape) - 1), [real]
    for _ in range(n.number(1, 2)):
        form = tuple(n.number(1, 3) if k == axis else d for k, d in enumerate(shape))
        pieces.insert(n.number(0, 1), n.pick(real, n.real(n.given(form, n.pick(x.kind, n.kind())))))
    return finished(n, n.node("Concat", pieces, axis=n.pick(axis, axis - len(shape)))[0])


@layer(4)
def windows(n: Fragment, x: Tensor) -> Tensor:
    real = moved(n, n.real(x))
    shape = n.shape(real)
    kind = n.pick("MaxPool", "MaxPool", "AveragePool", "AveragePool", "GlobalAveragePool", "GlobalMaxPool")
    if not 3 <= len(shape) <= 5:
        raise Rejected("no image")
    if kind.startswith("Global"):
        return finished(n, n.node(kind, [real])[0])
    kernel, given = _window(n, shape[2:])
    if n.opset < 19 and kind == "AveragePool":
        del given["dilations"]
    if any(p >= k for p, k in zip(given["pads"], kernel * 2, strict=True)):
        raise Rejected("a window of padding")
    more = {"count_include_pad": n.number(0, 1)} if kind == "AveragePool" else {}
    return finished(
        n, n.node(kind, [real], kernel_shape=kernel, ceil_mode=n.pick(0, 0, 1), **given, **more)[0]
    )


@layer(3)
def reduced(n: Fragment, x: Tensor) -> Tensor:
    real = moved(n, n.real(x))
    shape = n.shape(real)
    kind = n.pick("ReduceMean", "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL2", "ReduceProd")
    if n.opset < 18 or not shape:
        raise Rejected("axes are attributes")
    axes = sorted(set(map(int, n.rng.integers(0, len(shape), n.number(1, 2)))))
    inputs = [real] if n.number(0, 4) == 0 else [real, n.integers(axes)]
    return finished(n, n.node(kind, inputs, keepdims=n.number(0, 1))[0])


@layer(2)
def softmax(n: Fragment, x: Tensor) -> Tensor:
    real = moved(n, n.real(x))
    if not n.shape(real):
        raise Rejected("one number")
    kind = n.pick("Softmax", "Softmax", "LogSoftmax")
    return finished(n, n.node(kind, [real], axis=n.number(-len(n.shape(real)), -1))[0])


@layer(2)
def movement(n: Fragment, x: Tensor) -> Tensor:
    return n.quantise(moved(n, moved(n, n.real(x))))


@layer(1)
def chosen(n: Fragment, x: Tensor) -> Tensor:
    real = n.real(x)
    shape = n.shape(real)
    condition = n.constant(n.rng.random(n.pick(shape, shape[-1:], ())) < 0.5)
    return finished(n, n.node("Where", [condition, real, operand(n, x, shape)])[0])
