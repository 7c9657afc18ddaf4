"""Layers of random ONNX networks for images and signals: convolutions, pools, gates, resizing, norms."""

from __future__ import annotations

import numpy as np
from onnx_network import Network, Shape, image


def _window(n: Network, size: Shape, widest: int = 5, dilated: bool = True) -> dict[str, list[int]]:
    rank = len(size)
    kernel = [n.pick(1, 3, n.number(1, widest)) for _ in size]
    strides = [n.pick(1, 1, 1, 2, 3) for _ in size]
    dilations = [n.pick(1, 1, 1, 2) for _ in size] if dilated else [1] * rank
    reach = [(k - 1) * d for k, d in zip(kernel, dilations, strict=True)]
    pads = n.pick(
        [r // 2 for r in reach] * 2,
        [0] * 2 * rank,
        [n.number(0, min(2, k - 1)) for k in kernel] + [n.number(0, min(2, k - 1)) for k in kernel],
    )
    found = {"kernel_shape": kernel, "strides": strides, "pads": pads}
    return found | ({"dilations": dilations} if dilated else {})


def _size(
    size: Shape,
    kernel_shape: list[int],
    strides: list[int],
    pads: list[int],
    dilations: list[int] | None = None,
    up: int = 0,
) -> Shape:
    rank = len(size)
    return tuple(
        (
            d
            + pads[k]
            + pads[rank + k]
            - (kernel_shape[k] - 1) * (dilations[k] if dilations else 1)
            - 1
            + up * (strides[k] - 1)
        )
        // strides[k]
        + 1
        for k, d in enumerate(size)
    )


@image
def convolution(n: Network, x: str, shape: Shape) -> str | None:
    window = _window(n, shape[2:])
    size = _size(shape[2:], **window)
    inside = shape[1]
    groups = n.pick(1, 1, inside, *(g for g in range(1, inside + 1) if inside % g == 0))
    outside = groups * n.pick(1, 1, 2, 3) if groups > 1 else n.pick(n.number(1, 12), 8, 16, n.number(13, 40))
    terms = inside // groups * int(np.prod(window["kernel_shape"]))
    if min(size) < 1 or not n.affordable(shape[0] * outside * int(np.prod(size)), terms):
        return None
    inputs = [x, n.weights(outside, inside // groups, *window["kernel_shape"], terms=terms)]
    inputs += [n.floats(outside, spread=0.4)] if n.number(0, 5) else []
    return n.add("Conv", inputs, (shape[0], outside, *size), group=groups, **window)


@image
def transposed(n: Network, x: str, shape: Shape) -> str | None:
    rank, inside = len(shape) - 2, shape[1]
    kernel, strides = [n.number(1, 4) for _ in range(rank)], [n.number(1, 3) for _ in range(rank)]
    pads = [n.number(0, min(1, k - 1)) for k in kernel * 2]
    extra = [n.number(0, s - 1) if n.number(0, 2) == 0 else 0 for s in strides]
    size = tuple(
        (d - 1) * s + k - pads[i] - pads[rank + i] + e
        for i, (d, s, k, e) in enumerate(zip(shape[2:], strides, kernel, extra, strict=True))
    )
    groups = n.pick(1, 1, *(g for g in range(1, inside + 1) if inside % g == 0))
    each = n.number(1, 8 if groups == 1 else 2)
    terms = inside // groups * int(np.prod(kernel))
    if min(size) < 1 or not n.affordable(shape[0] * each * groups * int(np.prod(size)), terms):
        return None
    inputs = [x, n.weights(inside, each, *kernel, terms=terms)] + (
        [n.floats(each * groups, spread=0.3)] if n.number(0, 2) else []
    )
    return n.add(
        "ConvTranspose",
        inputs,
        (shape[0], each * groups, *size),
        group=groups,
        kernel_shape=kernel,
        strides=strides,
        pads=pads,
        output_padding=extra,
    )


@image
def pool(n: Network, x: str, shape: Shape) -> str | None:
    window = _window(n, shape[2:], 4, dilated=False)
    size = _size(shape[2:], **window)
    if min(size) < 1:
        return None
    kind = n.pick("MaxPool", "AveragePool")
    more = {"count_include_pad": n.number(0, 1)} if kind == "AveragePool" else {}
    return n.add(kind, [x], (*shape[:2], *size), **window, **more)


@image
def gate(n: Network, x: str, shape: Shape) -> str | None:
    """Squeeze and excite."""
    ones = (1,) * (len(shape) - 2)
    few = n.number(1, 6)
    y = n.add("GlobalAveragePool", [x], (*shape[:2], *ones))
    y = n.add("Conv", [y, n.weights(few, shape[1], *ones, terms=shape[1])], (shape[0], few, *ones))
    y = n.add("Relu", [y], (shape[0], few, *ones))
    y = n.add(
        "Conv", [y, n.weights(shape[1], few, *ones, terms=few), n.floats(shape[1])], (*shape[:2], *ones)
    )
    y = n.add(n.pick("Sigmoid", "HardSigmoid"), [y], (*shape[:2], *ones))
    return n.add("Mul", n.pick([x, y], [y, x]), shape)


@image
def resize(n: Network, x: str, shape: Shape) -> str | None:
    factors = [n.pick(1, 2, 2, 3, 0.5) for _ in shape[2:]]
    size = tuple(int(d * f) for d, f in zip(shape[2:], factors, strict=True))
    mode, place = (
        n.pick("nearest", "linear"),
        n.pick("asymmetric", "half_pixel", "align_corners", "pytorch_half_pixel"),
    )
    more = {"nearest_mode": n.pick("floor", "round_prefer_floor")} if mode == "nearest" else {}
    return (
        n.add(
            "Resize",
            [x, "", "", n.constant((*shape[:2], *size))],
            (*shape[:2], *size),
            mode=mode,
            coordinate_transformation_mode=place,
            **more,
        )
        if min(size) > 0
        else None
    )


@image
def normalised(n: Network, x: str, shape: Shape) -> str | None:
    c = shape[1]
    if n.number(0, 2):
        positive = n.constant(n.rng.uniform(0.5, 2, c), "float32")
        return n.add("BatchNormalization", [x, n.floats(c), n.floats(c), n.floats(c), positive], shape)
    return (
        n.add("InstanceNormalization", [x, n.floats(c), n.floats(c)], shape)
        if np.prod(shape[2:]) > 3
        else None
    )


@image
def rearranged(n: Network, x: str, shape: Shape) -> str | None:
    if len(shape) == 4 and shape[1] % 4 == 0:
        return n.add(
            "DepthToSpace",
            [x],
            (shape[0], shape[1] // 4, 2 * shape[2], 2 * shape[3]),
            blocksize=2,
            mode=n.pick("DCR", "CRD"),
        )
    groups = [g for g in range(2, shape[1]) if shape[1] % g == 0]
    if not groups:
        return None
    g = n.pick(*groups)  # a shuffle of channels
    five = (shape[0], g, shape[1] // g, *shape[2:])
    y = n.add("Reshape", [x, n.constant(five)], five)
    swapped = (five[0], five[2], five[1], *five[3:])
    y = n.add("Transpose", [y], swapped, perm=[0, 2, 1, *range(3, len(five))])
    return n.add("Reshape", [y, n.constant(shape)], shape)
