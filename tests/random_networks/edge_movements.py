"""Movements, choices by index, windows and products at the edges of what they take: extents of 0 and 1,
axes and indices from the end, pieces without an element, indices that meet.
"""

from __future__ import annotations

import math

import numpy as np
from edge_network import FLOATS, WHOLE, Edge, edge
from extreme_fragment import Rejected

KINDS = ("float32", "float32", "float16", "float64", "int8", "uint8", "int32", "int64", "bool")


@edge(3)
def joined(n: Edge) -> str:
    """Pieces of any extent, also none."""
    kind, shape = n.pick(*KINDS), n.shape(1, 4)
    axis = n.axis(len(shape))
    pieces = []
    for _ in range(n.number(1, 4)):
        own = list(shape)
        own[axis] = n.pick(0, 0, 1, 2, 5)
        pieces.append(n.x(kind, own))
    made = n.node("Concat", pieces, axis=axis)[0]
    return made


@edge(3)
def cut(n: Edge) -> str:
    kind, shape = n.pick(*KINDS), n.shape(1, 4)
    x, axis = n.x(kind, shape, 0.1), n.axis(len(shape))
    if n.once(3):
        first = n.number(0, shape[axis])
        made = n.node("Split", [x, n.known([first, 0, shape[axis] - first])], 3, axis=axis)
        n.end(made[2], made[1])
        return made[0]
    far = (0, 1, -1, shape[axis], -shape[axis] - 3, 100, -100, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63) + 1)
    ends = n.known([n.pick(*far)]), n.known([n.pick(*far)])
    return n.node("Slice", [x, *ends, n.known([axis]), n.known([n.pick(1, -1, 2, -3, 100, 2**31)])])[0]


@edge(3)
def spread(n: Edge) -> str:
    kind, shape = n.pick(*KINDS), n.shape(1, 4)
    x, rank = n.x(kind, shape, 0.1), len(shape)
    how = n.number(0, 6)
    if how == 0:
        return n.node("Tile", [x, n.known([n.pick(0, 1, 2, 3) for _ in shape])])[0]
    if how == 1:
        wanted = [n.pick(0, 1, 3) if d == 1 else n.pick(d, 1) for d in shape]
        return n.node("Expand", [x, n.known([n.pick(1, 2), *wanted] if n.once(3) else wanted)])[0]
    if how == 2 and kind != "bool":
        mode = n.pick("constant", "edge", "reflect", "wrap")
        n.opset = max(n.opset, 19)
        pads = [n.pick(0, 0, 1, -1, -2, 2) for _ in range(2 * rank)]
        if mode != "constant":
            pads = [max(p, 0) if d > 0 else 0 for p, d in zip(pads, shape * 2, strict=True)]
            n.open = 1 in shape and mode == "reflect"
        if any(p < 0 for p in pads) and any(
            d + min(a, 0) + min(b, 0) < 0 for d, a, b in zip(shape, pads[:rank], pads[rank:], strict=True)
        ):
            raise Rejected("less than nothing")
        return n.node(
            "Pad", [x, n.known(pads), *([n.x(kind, (), 0.8)] if mode == "constant" else [])], mode=mode
        )[0]
    if how == 3:
        return n.node("Transpose", [x], perm=list(map(int, n.rng.permutation(rank))))[0]
    if how == 4 and rank > 1:
        lengths = n.rng.integers(0, shape[1], shape[0], endpoint=True) if shape[1] else np.zeros(shape[0])
        return n.node(
            "ReverseSequence", [x, n.given(lengths.astype(np.int64), 0.5)], batch_axis=0, time_axis=1
        )[0]
    if how == 5 and rank > 1 and kind != "bool":
        by = n.known(n.pick(-100, -1, 0, 1, 100, 2**40))
        return n.node("Trilu", [x, by], upper=n.number(0, 1))[0]
    if math.prod(shape):
        return (
            n.node("Reshape", [x, n.known([-1, *shape[n.number(1, rank) :]])])[0]
            if n.once(2)
            else n.node("Flatten", [x], axis=n.number(-rank, rank))[0]
        )
    return n.node("Reshape", [x, n.known(list(shape[::-1]))], allowzero=1)[0]


@edge(4)
def taken(n: Edge) -> str:
    kind, shape = n.pick(*KINDS), n.shape(1, 4)
    x, axis = n.x(kind, shape, 0.1), n.axis(len(shape))
    d, how = shape[axis], n.number(0, 2)
    if not math.prod(shape):
        raise Rejected("nothing to take")
    whole = n.pick("int32", "int64")
    if how == 0:
        places = n.rng.integers(-d, d, n.shape(0, 2)).astype(whole)
        return n.node("Gather", [x, n.given(places, 0.4)], axis=axis)[0]
    if how == 1:
        form = [n.number(0, s) for s in shape]
        form[axis] = n.pick(0, 1, 3, 6)
        return n.node(
            "GatherElements", [x, n.given(n.rng.integers(-d, d, form).astype(whole), 0.4)], axis=axis
        )[0]
    deep = n.number(1, len(shape))
    places = np.stack([n.rng.integers(-s, s, (n.pick(0, 1, 4),) * 1 or 1) for s in shape[:1]], -1)
    count = places.shape[0]
    places = np.stack([n.rng.integers(-s, s, count) for s in shape[:deep]], -1)
    return n.node("GatherND", [x, n.given(places.astype(np.int64), 0.4)])[0]


def _unordered(n: Edge, way: str, *names: str) -> bool:
    """Whether the least of NaN and numbers is asked for, which is whatever comes last to others."""
    both = [(n.fed | n.constants)[k] for k in names]
    return way in ("max", "min") and any(bool(np.isnan(v).any()) for v in both if v.dtype.kind == "f")


@edge(4)
def scattered(n: Edge) -> str:
    """Places that meet, with every way of joining numbers there."""
    kind, shape = (
        n.pick("float32", "float32", "int8", "uint8", "int32", "int64", "float64", "float16"),
        n.shape(1, 3),
    )
    if not math.prod(shape):
        raise Rejected("nowhere")
    n.opset = max(n.opset, 18)
    x, axis, way = n.x(kind, shape), n.axis(len(shape)), n.pick("none", "add", "mul", "max", "min")
    n.share = (2e-3 if kind == "float16" else 1e-5) if way in ("add", "mul") and kind in FLOATS else 0
    form = [n.number(0, s) for s in shape]
    form[axis] = n.pick(0, 1, 3, 6) if way != "none" else n.number(0, shape[axis])
    if n.once(2):
        d = shape[axis]
        places = (
            n.rng.integers(-d, d, form)
            if way != "none"
            else np.argsort(
                n.rng.random([*form[: axis % len(shape)], d, *form[axis % len(shape) + 1 :]]), axis
            )
            .take(range(form[axis]), axis)
            .reshape(form)
        )
        updates = n.x(kind, form)
        n.open = _unordered(n, way, x, updates)
        return n.node(
            "ScatterElements", [x, n.given(places.astype(np.int64), 0.4), updates], axis=axis, reduction=way
        )[0]
    deep = n.number(1, len(shape))
    rows = math.prod(shape[:deep])
    count = n.number(0, rows)
    places = n.rng.permutation(rows)[:count] if way == "none" else n.rng.integers(0, rows, count)
    index = np.stack(np.unravel_index(places, shape[:deep]), -1) - np.asarray(shape[:deep]) * n.number(0, 1)
    updates = n.x(kind, (count, *shape[deep:]))
    n.open = _unordered(n, way, x, updates)
    return n.node("ScatterND", [x, n.given(index.astype(np.int64), 0.4), updates], reduction=way)[0]


@edge(2)
def made(n: Edge) -> str:
    """OneHot, Range, EyeLike, ConstantOfShape."""
    how = n.number(0, 3)
    if how == 0:
        depth, kind = n.number(1, 6), n.pick("int64", "int32", "float32")
        places = n.rng.integers(-depth - 3, depth + 3, n.shape(0, 3)).astype(kind)
        values = n.numbers(n.pick("float32", "int64", "int32"), (2,))
        n.open = kind == "float32" or bool(np.abs(values.astype(np.float64)).max() > 2**20)
        return n.node(
            "OneHot", [n.given(places), n.known(depth), n.given(values, 0.7)], axis=n.axis(places.ndim + 1)
        )[0]
    if how == 1:
        kind = n.pick("int32", "int64", "int16", "float32", "float64")
        first, last = (n.number(-9, 9) for _ in range(2))
        step = n.pick(1, -1, 2, -3, 7)
        ends = [n.known(v + (0.5 if kind.startswith("f") else 0), kind) for v in (first, last, step)]
        return n.node("Add", [n.node("Range", ends)[0], n.x(kind, (1,), 0)])[0]
    if how == 2:
        return n.node("EyeLike", [n.x("float32", n.shape(2, 2), 0)], k=n.pick(-100, -1, 0, 1, 3, 100))[0]
    kind = n.pick("float32", "int64")
    filled = n.node("ConstantOfShape", [n.known(n.shape(0, 3))])[0]
    return n.node("Add", [filled, n.x("float32", (1,), 0)])[0] if kind else filled


@edge(2)
def by_data(n: Edge) -> None:
    """Results whose extent depends on data."""
    kind, shape, how = n.pick("float32", "int32", "int64", "uint8", "bool"), n.shape(1, 3), n.number(0, 2)
    if how == 0:
        n.end(*n.node("NonZero", [n.x(kind, shape, 0)]))
    elif how == 1:
        axis = n.axis(len(shape))
        chosen = n.x("bool", (n.number(0, shape[axis]),), 0.3)
        n.end(*n.node("Compress", [n.x(kind, shape, 0), chosen], axis=axis))
    else:
        n.end(*n.node("Unique", [n.x(kind, shape[:1], 0)], 4, sorted=n.number(0, 1)))


@edge(3)
def pooled(n: Edge) -> str:
    """Windows over infinities and NaN, images without a batch, windows larger than images with pads."""
    name = n.pick("MaxPool", "MaxPool", "AveragePool", "LpPool", "GlobalMaxPool", "GlobalAveragePool")
    kind = n.pick("int8", "uint8", "float32") if name == "MaxPool" else "float32"
    shape = (n.pick(0, 1, 1, 2), n.number(1, 3), *(n.number(1, 6) for _ in range(n.number(1, 2))))
    x = n.x(kind, shape, 0)
    n.share = 0 if "Max" in name else 1e-5
    n.open = kind == "float32" and bool(np.isnan(n.fed[x]).any())  # left out by some
    if n.share and np.abs(np.nan_to_num(n.fed[x], nan=0, posinf=0, neginf=0)).max(initial=0) > 1e15:
        raise Rejected("the order of sums decides which are infinite")
    if name.startswith("Global"):
        return n.node(name, [x])[0]
    k = len(shape) - 2
    kernel = [n.number(1, 3) for _ in range(k)]
    pads = [n.number(0, q - 1) for q in kernel] * 2
    given = {"kernel_shape": kernel, "pads": pads, "strides": [n.number(1, 3) for _ in range(k)]}
    if name == "AveragePool":
        given["count_include_pad"] = n.number(0, 1)
    if name == "MaxPool" and n.once(3):
        given["dilations"] = [n.number(1, 2) for _ in range(k)]
    return n.node(
        name, [x], **given, ceil_mode=n.number(0, 1) if n.opset >= 18 or name != "LpPool" else None
    )[0]


@edge(3)
def product(n: Edge) -> str:
    """Products over no numbers, of no rows, of a vector."""
    n.share = 1e-5
    a, k, b = n.pick(0, 1, 3), n.pick(0, 1, 4), n.pick(0, 1, 5)
    kind = n.pick("float32", "float32", "float64", "int32", "int64", "uint32")

    def x(*shape: int) -> str:
        return n.x(kind, shape) if kind in WHOLE else n.given(n.tame(kind, shape), 0.4)

    how = n.number(0, 3)
    if how == 0:
        lead = n.pick((), (1,), (2,), (0,), (2, 1))
        return n.node("MatMul", [x(*lead, a, k), x(*n.pick((), lead), k, b)])[0]
    if how == 1:
        return n.node("MatMul", n.pick([x(k), x(k, b)], [x(a, k), x(k)], [x(k), x(k)]))[0]
    if how == 2:
        flip = n.number(0, 1), n.number(0, 1)
        more = [x(*n.pick((b,), (a, b), (1, b), (a, 1), ()))] if n.once(2) else []
        first, second = ((k, a) if flip[0] else (a, k)), ((b, k) if flip[1] else (k, b))
        return n.node(
            "Gemm",
            [x(*first), x(*second), *more],
            transA=flip[0],
            transB=flip[1],
            alpha=1.0 if kind in WHOLE else n.pick(1.0, 0.5, 0.0),
            beta=1.0 if kind in WHOLE else n.pick(1.0, 0.0, 2.0),
        )[0]
    kind = "float32"
    size = n.number(1, 5)
    form = (n.pick(0, 1, 2), 2, size, size)
    name = n.pick("Conv", "ConvTranspose")
    return n.node(
        name,
        [x(*form), x(*n.pick((2, 2, 1, 1), (2, 2, 3, 3))), *([x(2)] if n.once(2) else [])],
        pads=[1] * 4,
        strides=[n.number(1, 2)] * 2,
    )[0]


@edge(3)
def resized(n: Edge) -> str:
    """Images of one element, NaN and infinities, rounding of places that are ties."""
    n.opset = max(n.opset, 18)
    shape = (1, n.number(1, 2), n.pick(1, 2, 3, 5), n.pick(1, 2, 4, 7))
    mode = n.pick("nearest", "nearest", "linear", "cubic")
    given = {
        "coordinate_transformation_mode": n.pick(
            "half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel", "half_pixel_symmetric"
        )
    }
    if mode == "nearest":
        given["nearest_mode"] = n.pick("round_prefer_floor", "round_prefer_ceil", "floor", "ceil")
    else:
        n.share = 1e-5
    x = n.x("float32", shape, 0) if mode == "nearest" else n.given(n.tame("float32", shape), 0)
    if n.once(2):
        sizes = [1, shape[1], n.number(1, 9), n.number(1, 9)]
        return n.node("Resize", [x, "", "", n.known(sizes)], mode=mode, **given)[0]
    scales = [1, 1, n.pick(0.5, 2, 3, 1, 0.4, 1.5), n.pick(0.5, 2, 4, 1, 0.7, 2.5)]
    if any(int(d * s) < 1 for d, s in zip(shape, scales, strict=True)):
        raise Rejected("nothing is left")
    whole = all(d * s == int(d * s) for d, s in zip(shape, scales, strict=True))
    n.open = not whole and (mode != "nearest" or "align" in given["coordinate_transformation_mode"])
    return n.node("Resize", [x, "", n.known(scales, "float32")], mode=mode, **given)[0]
