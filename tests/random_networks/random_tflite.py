"""Random TFLite networks: layers of every kind in any order, of int8, of 16-bit activations, of uint8, of
floats with weights of floats or of 8 bits.

LiteRT's reference kernels say what they compute, to the bit. Scales are drawn so that numbers use a good
part of their range: saturated or vanishing ones would hide faults.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import tflite_functions  # noqa: F401  (adds layers)
import tflite_movements  # noqa: F401  (likewise)
from sizes import larger, room
from tflite_network import ACTIVATIONS, ANY, IMAGE, MAX_ELEMENTS, Activation, Network, anywhere, image

from tflite_models import FLOAT32, INT8, INT16, INT64, UINT8, build


@image
def convolution(n: Network, x: Activation) -> Activation | None:
    kernel = n.pick((1, 1), (3, 3), (n.number(1, 5), n.number(1, 5)))
    inside, outside = x.shape[3], n.pick(n.number(1, 9), 4, 8, 12, 16, n.number(9, 40))
    groups = (
        n.pick(*(g for g in range(1, inside + 1) if inside % g == 0))
        if (n.kind == INT8 or not (n.whole or n.hybrid)) and not n.number(0, 4)
        else 1
    )
    outside = -(-outside // groups) * groups
    fit = n.window(x, kernel)
    depth = inside // groups
    if fit is None or not n.affordable(
        x.shape[0] * int(np.prod(fit[3])) * outside, kernel[0] * kernel[1] * depth
    ):
        return None
    stride, dilation, padding, size = fit
    w, b, width = n.weights((outside, *kernel, depth), 0, kernel[0] * kernel[1] * depth, x)
    y = n.activation((x.shape[0], *size, outside), width)
    more = {"QuantizedBiasType": INT64} if n.kind == INT16 else {}
    return n.add(
        "CONV_2D",
        (x.number, w, b),
        y,
        "Conv2DOptions",
        Padding=padding,
        StrideH=stride[0],
        StrideW=stride[1],
        DilationHFactor=dilation[0],
        DilationWFactor=dilation[1],
        FusedActivationFunction=n.pick(*ACTIVATIONS),
        **more,
    )


@image
def depthwise(n: Network, x: Activation) -> Activation | None:
    kernel = n.pick((3, 3), (n.number(1, 5), n.number(1, 5)), (1, n.number(2, 9)), (n.number(2, 9), 1))
    times = n.pick(1, 1, 1, 2, 3)
    fit = n.window(x, kernel)
    outside = x.shape[3] * times
    if fit is None or not n.affordable(x.shape[0] * int(np.prod(fit[3])) * outside, kernel[0] * kernel[1]):
        return None
    stride, dilation, padding, size = fit
    # LiteRT reads a scale of each channel where there is one alone
    scales = 2 if n.hybrid else 0
    w, b, width = n.weights((1, *kernel, outside), 3, kernel[0] * kernel[1], x, scales)
    y = n.activation((x.shape[0], *size, outside), width)
    return n.add(
        "DEPTHWISE_CONV_2D",
        (x.number, w, b),
        y,
        "DepthwiseConv2DOptions",
        Padding=padding,
        StrideH=stride[0],
        StrideW=stride[1],
        DilationHFactor=dilation[0],
        DilationWFactor=dilation[1],
        DepthMultiplier=times,
        FusedActivationFunction=n.pick(*ACTIVATIONS),
    )


@image
def transposed(n: Network, x: Activation) -> Activation | None:
    kernel, stride = (n.number(1, 4), n.number(1, 4)), (n.number(1, 3), n.number(1, 3))
    padding, outside = n.number(0, 1), n.number(1, 9)
    size = tuple(
        d * s if padding == 0 else (d - 1) * s + k
        for d, s, k in zip(x.shape[1:3], stride, kernel, strict=True)
    )
    terms = kernel[0] * kernel[1] * x.shape[3]
    if n.kind == UINT8 or not n.affordable(x.shape[0] * int(np.prod(size)) * outside, terms):
        return None
    w, b, width = n.weights((outside, *kernel, x.shape[3]), 0, terms, x)
    shape = (x.shape[0], *size, outside)
    y = n.activation(shape, width)
    inputs = (n.integers(shape), w, x.number, *((b,) if n.number(0, 3) else ()))
    return n.add(
        "TRANSPOSE_CONV",
        inputs,
        y,
        "TransposeConvOptions",
        Padding=padding,
        StrideH=stride[0],
        StrideW=stride[1],
    )


@image
def pool(n: Network, x: Activation) -> Activation | None:
    kernel = (n.number(1, 4), n.number(1, 4))
    fit = n.window(x, kernel, dilated=False)
    if fit is None or not n.affordable(x.shape[0] * int(np.prod(fit[3])) * x.shape[3], kernel[0] * kernel[1]):
        return None
    stride, _, padding, size = fit
    y = n.activation((x.shape[0], *size, x.shape[3]), like=x)
    return n.add(
        n.pick("MAX_POOL_2D", "AVERAGE_POOL_2D"),
        (x.number,),
        y,
        "Pool2DOptions",
        Padding=padding,
        StrideH=stride[0],
        StrideW=stride[1],
        FilterHeight=kernel[0],
        FilterWidth=kernel[1],
        FusedActivationFunction=n.pick(*ACTIVATIONS),
    )


@image
def resize(n: Network, x: Activation) -> Activation | None:
    size = (n.number(1, 2 * x.shape[1] + 1), n.number(1, 2 * x.shape[2] + 1))
    if not n.affordable(x.shape[0] * size[0] * size[1] * x.shape[3], 1):
        return None
    kind = n.pick("BILINEAR", "NEAREST_NEIGHBOR")
    corners = n.pick((False, False), (True, False), (False, True))
    y = n.activation((x.shape[0], *size, x.shape[3]), like=x)
    options = "ResizeBilinearOptions" if kind == "BILINEAR" else "ResizeNearestNeighborOptions"
    return n.add(
        f"RESIZE_{kind}",
        (x.number, n.integers(size)),
        y,
        options,
        AlignCorners=corners[0],
        HalfPixelCenters=corners[1],
    )


@image
def depth_to_space(n: Network, x: Activation) -> Activation | None:
    if n.kind == INT16:
        return None
    if x.shape[3] % 4 == 0 and n.number(0, 1):
        y = n.activation((x.shape[0], 2 * x.shape[1], 2 * x.shape[2], x.shape[3] // 4), like=x)
        return n.add("DEPTH_TO_SPACE", (x.number,), y, "DepthToSpaceOptions", BlockSize=2)
    if x.shape[1] % 2 == 0 and x.shape[2] % 2 == 0:
        y = n.activation((x.shape[0], x.shape[1] // 2, x.shape[2] // 2, 4 * x.shape[3]), like=x)
        return n.add("SPACE_TO_DEPTH", (x.number,), y, "SpaceToDepthOptions", BlockSize=2)
    return None


@anywhere
def dense(n: Network, x: Activation) -> Activation | None:
    keep = bool(n.number(0, 1)) and len(x.shape) > 1
    inside = x.shape[-1] if keep else int(np.prod(x.shape[1:]))
    outside = n.pick(n.number(1, 12), 16, 10)
    rows = int(np.prod(x.shape)) // inside
    if not n.affordable(rows * outside, inside):
        return None
    w, b, width = n.weights((outside, inside), 0, inside, x)
    y = n.activation((*x.shape[:-1], outside) if keep else (x.shape[0], outside), width)
    asymmetric = {"AsymmetricQuantizeInputs": bool(n.number(0, 1))} if n.hybrid else {}
    return n.add(
        "FULLY_CONNECTED",
        (x.number, w, b if n.number(0, 3) else -1),
        y,
        "FullyConnectedOptions",
        KeepNumDims=keep,
        FusedActivationFunction=n.pick(*ACTIVATIONS),
        **asymmetric,
    )


@anywhere
def pair(n: Network, x: Activation) -> Activation | None:
    """A residual, a gate, a constant."""
    same = [v for v in n.values if v.shape == x.shape or v.shape == (*(1,) * (len(x.shape) - 1), x.shape[-1])]
    other = n.pick(*same)
    if n.number(0, 3) == 0:
        shape = n.pick(x.shape, (1,) * (len(x.shape) - 1) + (x.shape[-1],), (1,) * len(x.shape))
        other = n.constant(shape, x.scale * n.pick(0.3, 1, 2.2))
    kind = n.pick("ADD", "ADD", "SUB", "MUL")
    a, b = n.spread(x), n.spread(other)
    y = n.activation(x.shape, a * b if kind == "MUL" else float(np.hypot(a, b)))
    more = {} if kind == "MUL" else {"PotScaleInt16": False}
    both = (x.number, other.number) if n.number(0, 1) or other.shape != x.shape else (other.number, x.number)
    return n.add(
        kind, both, y, f"{kind.capitalize()}Options", FusedActivationFunction=n.pick(*ACTIVATIONS), **more
    )


@anywhere
def extreme(n: Network, x: Activation) -> Activation | None:
    same = [v for v in n.values if v.shape == x.shape and n.alike(v, x) and v.number != x.number]
    if not same:
        return None
    return n.add(
        n.pick("MAXIMUM", "MINIMUM"),
        (x.number, n.pick(*same).number),
        n.activation(x.shape, like=x),
        "MaximumMinimumOptions",
    )


@anywhere
def joined(n: Network, x: Activation) -> Activation | None:
    axis = n.number(1, len(x.shape) - 1) if len(x.shape) > 1 else 0

    def rest(shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape[:axis] + shape[axis + 1 :]

    same = [
        v
        for v in n.values
        if len(v.shape) == len(x.shape) and rest(v.shape) == rest(x.shape) and n.alike(v, x)
    ]
    others = [n.pick(*same) for _ in range(n.number(1, 2))]
    size = x.shape[axis] + sum(o.shape[axis] for o in others)
    shape = (*x.shape[:axis], size, *x.shape[axis + 1 :])
    if int(np.prod(shape)) > MAX_ELEMENTS * n.room:
        return None
    numbers = [x.number, *(o.number for o in others)]
    return n.add(
        "CONCATENATION",
        tuple(numbers if n.number(0, 1) else numbers[::-1]),
        n.activation(shape, like=x),
        "ConcatenationOptions",
        Axis=n.pick(axis, axis - len(shape)),
    )


@anywhere
def padded(n: Network, x: Activation) -> Activation | None:
    pads = np.asarray([[0, 0], *([n.number(0, 2), n.number(0, 2)] for _ in x.shape[1:])])
    shape = tuple(int(d + p.sum()) for d, p in zip(x.shape, pads, strict=True))
    if int(np.prod(shape)) > MAX_ELEMENTS * n.room:
        return None
    return n.add("PAD", (x.number, n.integers(pads)), n.activation(shape, like=x), "PadOptions")


@anywhere
def sliced(n: Network, x: Activation) -> Activation | None:
    begin = [n.number(0, d - 1) for d in x.shape]
    size = [n.number(1, d - b) for d, b in zip(x.shape, begin, strict=True)]
    begin[0], size[0] = 0, x.shape[0]
    if n.number(0, 1):
        return n.add(
            "SLICE",
            (x.number, n.integers(begin), n.integers(size)),
            n.activation(tuple(size), like=x),
            "SliceOptions",
        )
    steps = [n.pick(1, 1, 2) for _ in size]
    shape = tuple(-(-d // s) for d, s in zip(size, steps, strict=True))
    ends = [b + d for b, d in zip(begin, size, strict=True)]
    return n.add(
        "STRIDED_SLICE",
        (x.number, *map(n.integers, (begin, ends, steps))),
        n.activation(shape, like=x),
        "StridedSliceOptions",
    )


@anywhere
def reshaped(n: Network, x: Activation) -> Activation | None:
    elements = int(np.prod(x.shape[1:]))
    divisors = [d for d in range(1, elements + 1) if elements % d == 0]
    a = n.pick(*divisors)
    b = n.pick(*(d for d in divisors if elements // a % d == 0))
    shape = n.pick(
        (x.shape[0], elements), (x.shape[0], a, elements // a), (x.shape[0], a, b, elements // a // b)
    )
    return n.add("RESHAPE", (x.number, n.integers(shape)), n.activation(shape, like=x), "ReshapeOptions")


@anywhere
def moved(n: Network, x: Activation) -> Activation | None:
    order = [0, *(int(k) + 1 for k in n.rng.permutation(len(x.shape) - 1))]
    return n.add(
        "TRANSPOSE",
        (x.number, n.integers(order)),
        n.activation(tuple(x.shape[k] for k in order), like=x),
        "TransposeOptions",
    )


@anywhere
def mean(n: Network, x: Activation) -> Activation | None:
    axes = sorted({n.number(1, len(x.shape) - 1) for _ in range(2)}) if len(x.shape) > 1 else []
    if not axes:
        return None
    keep = bool(n.number(0, 1))
    shape = tuple(1 if k in axes else d for k, d in enumerate(x.shape) if keep or k not in axes)
    kind = n.pick("MEAN", "MEAN", "SUM", "REDUCE_MAX")
    terms = float(np.prod([x.shape[a] for a in axes]))
    y = (
        n.activation(shape, like=x)
        if kind == "REDUCE_MAX"
        else n.activation(shape, n.spread(x) * float(np.sqrt(terms)) / (terms if kind == "MEAN" else 1))
    )
    return n.add(kind, (x.number, n.integers(axes)), y, "ReducerOptions", KeepDims=keep)


@anywhere
def function(n: Network, x: Activation) -> Activation | None:
    kind = n.pick("LOGISTIC", "TANH", "SOFTMAX", "HARD_SWISH", "LEAKY_RELU", "RELU", "RELU6")
    wide = n.kind == INT16
    ends = {
        "LOGISTIC": (1 / 32768, 0) if wide else (1 / 256, n.low),
        "SOFTMAX": (1 / 32768, 0) if wide else (1 / 256, n.low),
        "TANH": (1 / 32768, 0) if wide else (1 / 128, n.low + 128),
    }
    if (kind == "HARD_SWISH" and wide) or (kind == "SOFTMAX" and (x.shape[-1] < 2 or len(x.shape) > 4)):
        return None
    # TensorFlow Lite Micro takes the scales of RELU6 for equal
    fixed = (x.scale, x.zero) if kind == "RELU6" else ends.get(kind)
    y = n.activation(x.shape, n.spread(x), fixed=fixed if n.whole else None)
    options: dict[str, tuple[str, dict[str, Any]]] = {
        "SOFTMAX": ("SoftmaxOptions", {"Beta": 1.0}),
        "LEAKY_RELU": ("LeakyReluOptions", {"Alpha": n.pick(0.1, 0.3, 0.01)}),
    }
    name, fields = options.get(kind, (None, {}))
    return n.add(kind, (x.number,), y, name, **fields)


@anywhere
def rescaled(n: Network, x: Activation) -> Activation | None:
    if not n.whole:
        return None
    return n.add(
        "QUANTIZE", (x.number,), n.activation(x.shape, n.spread(x) * n.pick(0.6, 1, 2)), "QuantizeOptions"
    )


def random_network(seed: int, floats: bool = False) -> tuple[bytes, tuple[np.ndarray, ...], Network]:
    """A model, its inputs, and what it is made of. Outputs: all that nothing reads. floats: of float32, every
    other one with weights of 8 bits.
    """
    rng = np.random.default_rng(seed)
    kind = (INT8, INT8, INT8, INT16, UINT8)[int(rng.integers(5))]
    n = Network(rng, FLOAT32 if floats else kind, room(seed), floats and bool(seed % 2))
    inputs = []
    for _ in range(n.pick(1, 1, 2)):
        batch = n.pick(1, 1, 1, 2)
        shape = n.pick(
            (batch, n.number(3, 12), n.number(3, 12), n.pick(n.number(1, 9), 8, 16)),
            (batch, n.number(4, 30), n.number(1, 12)),
            (batch, n.number(2, 60)),
            (batch, 1, n.number(8, 40), n.number(1, 8)),
        )
        shape = larger(shape, len(shape) - 1) if n.room > 1 else shape
        scale = 1 if floats else float(0.02 * np.exp(rng.normal())) / (256 if kind == INT16 else 1)
        x = n.activation(shape, fixed=(scale, n.zero()))
        inputs.append(x)
        n.values.append(x)
    for _ in range(n.number(2, 9)):
        for _ in range(4):  # some layers do not fit what they are given
            x = n.values[-1] if n.number(0, 3) else n.pick(*n.values)
            layer = n.pick(*(IMAGE if len(x.shape) == 4 and n.number(0, 2) else ANY))
            if layer(n, x) is not None:
                break
    read = {i for op in n.operators for i in op.inputs}
    outputs = [v.number for v in n.values[len(inputs) :] if v.number not in read] + n.ends
    fed = tuple(
        np.clip(np.round(rng.normal(x.zero, n.high * 0.4, x.shape)), n.low, n.high).astype(n.dtype)
        if n.whole
        else rng.normal(0, 1, x.shape).astype("float32")
        for x in inputs
        if x.number in read
    )
    given = [x.number for x in inputs if x.number in read]
    return build(n.tensors, n.operators, given, outputs), fed, n
