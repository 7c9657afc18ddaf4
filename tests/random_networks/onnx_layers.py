"""More layers of random ONNX networks: what exporters write beside convolutions and products.

They come behind the others in the lists that layers are drawn from: what a number draws depends on the order.
"""

from __future__ import annotations

import numpy as np
import onnx_image_layers  # noqa: F401  (its layers come first)
import onnx_tensor_layers  # noqa: F401  (likewise)
from onnx import TensorProto, helper
from onnx_network import Network, Shape, anywhere, image


def _size(shape: Shape) -> int:
    return int(np.prod(shape))


@image
def padded_by_name(n: Network, x: str, shape: Shape) -> str | None:
    """A convolution or a pool with auto_pad, or with the last window cut by ceil_mode."""
    rank = len(shape) - 2
    kernel, strides = [n.number(1, 4) for _ in range(rank)], [n.pick(1, 2, 3) for _ in range(rank)]
    if n.number(0, 1):
        same = n.pick("SAME_UPPER", "SAME_LOWER", "VALID")
        size = tuple(
            -(-d // s) if same != "VALID" else (d - k) // s + 1
            for d, k, s in zip(shape[2:], kernel, strides, strict=True)
        )
        outside = n.number(1, 10)
        terms = shape[1] * _size(tuple(kernel))
        if min(size) < 1 or not n.affordable(shape[0] * outside * _size(size), terms):
            return None
        w = n.weights(outside, shape[1], *kernel, terms=terms)
        more = {"kernel_shape": kernel, "strides": strides, "auto_pad": same}
        return n.add("Conv", [x, w], (shape[0], outside, *size), **more)
    pads = [n.number(0, k // 2) for k in kernel]
    size = []
    for d, k, s, p in zip(shape[2:], kernel, strides, pads, strict=True):
        count = -(-(d + 2 * p - k) // s) + 1
        size.append(count - 1 if (count - 1) * s >= d + p else count)  # no window begins behind
    if min(size) < 1 or any(d + 2 * p < k for d, k, p in zip(shape[2:], kernel, pads, strict=True)):
        return None
    more = {"kernel_shape": kernel, "strides": strides, "pads": pads * 2, "ceil_mode": 1}
    return n.add(n.pick("MaxPool", "AveragePool"), [x], (*shape[:2], *size), **more)


@image
def of_channels(n: Network, x: str, shape: Shape) -> str | None:
    kind = n.pick("LRN", "GlobalMaxPool", "GroupNormalization", "LpNormalization")
    if kind == "GlobalMaxPool":
        return n.add(kind, [x], (*shape[:2], *(1,) * (len(shape) - 2)))
    if kind == "LRN":
        if len(shape) != 4:
            return None  # ONNX Runtime has no others
        return n.add(kind, [x], shape, size=n.pick(1, 3, 5), alpha=0.3, beta=0.75, bias=1.5)
    if kind == "GroupNormalization":
        groups = n.pick(*(g for g in range(1, shape[1] + 1) if shape[1] % g == 0))
        if _size(shape[1:]) // groups < 4:
            return None
        return n.add(kind, [x, n.floats(shape[1]), n.floats(shape[1])], shape, num_groups=groups)
    few = min(shape[1], shape[-1]) < 3
    return None if few else n.add(kind, [x], shape, axis=n.pick(1, -1), p=n.pick(1, 2))


@image
def blocks(n: Network, x: str, shape: Shape) -> str | None:
    if len(shape) != 4:
        return None
    if shape[2] % 2 == 0 and shape[3] % 2 == 0 and n.number(0, 1):
        return n.add("SpaceToDepth", [x], (shape[0], 4 * shape[1], shape[2] // 2, shape[3] // 2), blocksize=2)
    size = (n.number(1, 7), n.number(1, 7))
    grid = n.constant(n.rng.uniform(-1.3, 1.3, (shape[0], *size, 2)), "float32")
    more = {"mode": "linear", "padding_mode": n.pick("zeros", "border"), "align_corners": n.number(0, 1)}
    return n.add("GridSample", [x, grid], (*shape[:2], *size), **more)


@image
def cubic(n: Network, x: str, shape: Shape) -> str | None:
    if len(shape) != 4:
        return None
    scales = [1, 1, n.pick(0.5, 1, 2, 1.5), n.pick(0.5, 1, 2, 3)]
    size = tuple(int(d * s) for d, s in zip(shape, scales, strict=True))
    place = n.pick("half_pixel", "align_corners", "asymmetric")
    if any(d * s != k for d, s, k in zip(shape, scales, size, strict=True)):
        return None  # ONNX Runtime takes the ratio of sizes for the scale there, unlike the standard
    given = [x, "", n.constant(scales, "float32")]
    return n.add("Resize", given, size, mode="cubic", coordinate_transformation_mode=place)


@anywhere
def smooth(n: Network, x: str, shape: Shape) -> str | None:
    """Functions of one number, where they are defined and small."""
    kind = n.pick("Neg", "Sin", "Cos", "Atan", "Asinh", "Softsign", "Mish", "Selu", "Celu", "Exp", "Log",
                  "Reciprocal", "LogSoftmax", "ThresholdedRelu", "Pow", "Div")  # fmt: skip
    if kind == "Exp":
        y = n.add("Abs", [x], shape)
        y = n.add("Neg", [str(y)], shape)
        return n.add(kind, [str(y)], shape)
    if kind in ("Log", "Reciprocal", "Pow"):
        y = n.add("Abs", [x], shape)
        y = n.add("Add", [str(y), n.constant(0.5, "float32")], shape)
        by = [n.constant(n.pick(0.5, 2, 3, -1, 1.7), "float32")] if kind == "Pow" else []
        return n.add(kind, [str(y), *by], shape)
    if kind == "Div":
        return n.add(kind, [x, n.constant(n.rng.uniform(0.5, 4, n.pick((1,), shape[-1:])), "float32")], shape)
    more = {"LogSoftmax": {"axis": n.pick(-1, 1)}, "Celu": {"alpha": 1.7}}
    return n.add(kind, [x], shape, **more.get(kind, {}))


@anywhere
def compared(n: Network, x: str, shape: Shape) -> str | None:
    """A mask that numbers give."""
    kind, limit = n.pick("Greater", "Less"), n.floats(*n.pick((1,), shape[-1:]), spread=0.7)
    mask = f"m{len(n.nodes)}"
    n.nodes.append(helper.make_node(kind, [x, limit], [mask]))
    if n.number(0, 1):
        other = f"m{len(n.nodes)}"
        n.nodes.append(helper.make_node("Not", [mask], [other]))
        mask = other
    if n.number(0, 1):
        as_number = f"f{len(n.nodes)}"
        n.nodes.append(helper.make_node("Cast", [mask], [as_number], to=TensorProto.FLOAT))
        return n.add("Mul", [x, as_number], shape)
    return n.add("Where", n.pick([mask, x, n.floats(1)], [mask, n.floats(1), x]), shape)


@anywhere
def several(n: Network, x: str, shape: Shape) -> str | None:
    same = [v for v in n.values if n.shapes[v] == shape]
    others = [n.pick(*same) for _ in range(n.number(1, 3))]
    return n.add(n.pick("Sum", "Mean", "Min", "Max"), [x, *others], shape)


@anywhere
def gathered(n: Network, x: str, shape: Shape) -> str | None:
    axis = n.number(0, len(shape) - 1)
    most, kind = shape[axis], n.pick("Gather", "GatherElements", "TopK", "Scatter")
    if kind == "Gather":
        places = n.rng.integers(-most, most, n.pick((n.number(1, 6),), (2, n.number(1, 3)), ()))
        to = (*shape[:axis], *places.shape, *shape[axis + 1 :])
        return n.add(kind, [x, n.constant(places)], to, axis=axis) if len(to) < 6 and len(to) > 1 else None
    if kind == "GatherElements":
        to = tuple(n.number(1, d) for d in shape)
        return n.add(kind, [x, n.constant(n.rng.integers(-most, most, to))], to, axis=axis)
    if kind == "TopK":
        k = n.number(1, most)
        to, places = (*shape[:axis], k, *shape[axis + 1 :]), f"p{len(n.nodes)}"
        y = n.add(kind, [x, n.constant([k])], to, axis=axis, largest=n.number(0, 1))
        n.nodes[-1].output.append(places)
        return y
    few = n.number(1, most)
    to = (*shape[:axis], few, *shape[axis + 1 :])
    all_places = np.arange(most).reshape(-1, *(1,) * (len(shape) - axis - 1))
    where = n.rng.permuted(np.broadcast_to(all_places, shape), axis=axis)
    where = where[tuple(slice(few) if k == axis else slice(None) for k in range(len(shape)))]
    return n.add("ScatterElements", [x, n.constant(where), n.floats(*to)], shape, axis=axis,
                 reduction=n.pick("none", "add", "max"))  # fmt: skip


@anywhere
def repeated(n: Network, x: str, shape: Shape) -> str | None:
    if n.number(0, 1):
        times = [n.pick(1, 1, 2, 3) for _ in shape]
        return n.add("Tile", [x, n.constant(times)], tuple(d * t for d, t in zip(shape, times, strict=True)))
    to = tuple(n.number(2, 4) if d == 1 else d for d in shape)
    return n.add("Expand", [x, n.constant(to)], to)


@anywhere
def along(n: Network, x: str, shape: Shape) -> str | None:
    kind = n.pick("CumSum", "Trilu", "ReduceLogSumExp", "ReduceSumSquare", "ReduceL1")
    axis = n.number(0, len(shape) - 1)
    if kind == "CumSum":
        more = {"exclusive": n.number(0, 1), "reverse": n.number(0, 1)}
        return n.add(kind, [x, n.constant(axis)], shape, **more)
    if kind == "Trilu":
        return n.add(kind, [x, n.constant(n.number(-2, 2))], shape, upper=n.number(0, 1))
    return n.add(kind, [x, n.constant([axis])], tuple(1 if k == axis else d for k, d in enumerate(shape)))


@anywhere
def summed(n: Network, x: str, shape: Shape) -> str | None:
    """Einsum with weights."""
    letters = "abcde"[: len(shape)]
    axis, outside = n.number(0, len(shape) - 1), n.number(1, 8)
    gone = letters[axis]
    kept = letters.replace(gone, "")
    if not n.affordable(_size(shape) // shape[axis] * outside, shape[axis]) or len(shape) < 2:
        return None
    order = "".join(n.rng.permutation(list(kept + "z")))
    to = tuple(outside if c == "z" else shape[letters.index(c)] for c in order)
    flipped = n.number(0, 1)
    w = n.weights(*((outside, shape[axis]) if flipped else (shape[axis], outside)), terms=shape[axis])
    text = f"{letters},{'z' + gone if flipped else gone + 'z'}->{order}"
    return n.add("Einsum", [x, w], to, equation=text)


@anywhere
def heads(n: Network, x: str, shape: Shape) -> str | None:
    """Attention of several heads over [batch, steps, width], as exporters take it apart."""
    if len(shape) != 3:
        return None
    batch, steps, inside = shape
    count, width = n.pick(1, 2, 3), n.pick(2, 4, 5)
    both = count * width
    if not n.affordable(batch * steps * (3 * inside + 2 * steps), both) or batch * count * steps**2 > 2000:
        return None

    def split(turned: bool) -> str | None:
        w = n.floats(inside, both, spread=inside**-0.5)
        y = n.add("MatMul", [x, w], (batch, steps, both))
        four = (batch, steps, count, width)
        y = n.add("Reshape", [str(y), n.constant((0, 0, count, -1))], four) if y else None
        order = [0, 2, 3, 1] if turned else [0, 2, 1, 3]
        return n.add("Transpose", [y], tuple(four[k] for k in order), perm=order) if y else None

    q, k, v = split(False), split(True), split(False)
    if q is None or k is None or v is None:
        return None
    scores = n.add("MatMul", [q, k], (batch, count, steps, steps))
    scores = n.add("Mul", [str(scores), n.constant(width**-0.5, "float32")], (batch, count, steps, steps))
    if n.number(0, 1):  # causal
        mask = np.where(np.tri(steps, dtype=bool), 0, n.pick(-1e9, -1e4, -np.inf))
        scores = n.add("Add", [str(scores), n.constant(mask, "float32")], (batch, count, steps, steps))
    shares = n.add("Softmax", [str(scores)], (batch, count, steps, steps), axis=-1)
    y = n.add("MatMul", [str(shares), v], (batch, count, steps, width))
    y = n.add("Transpose", [str(y)], (batch, steps, count, width), perm=[0, 2, 1, 3])
    return n.add("Reshape", [str(y), n.constant((0, 0, both))], (batch, steps, both)) if y else None


@anywhere
def looped(n: Network, x: str, shape: Shape) -> str | None:
    """A few steps of a loop with a state, and what each leaves."""
    steps = n.number(1, 4)
    if _size(shape) * steps > 2000:
        return None
    body = helper.make_graph(
        [
            helper.make_node("Mul", ["old", "by"], ["scaled"]),
            helper.make_node("Tanh", ["scaled"], ["new"]),
            helper.make_node("Add", ["new", "old"], ["row"]),
            helper.make_node("Identity", ["go"], ["on"]),
        ],
        f"body{len(n.nodes)}",
        [
            helper.make_tensor_value_info("turn", TensorProto.INT64, ()),
            helper.make_tensor_value_info("go", TensorProto.BOOL, ()),
            helper.make_tensor_value_info("old", TensorProto.FLOAT, shape),
        ],
        [
            helper.make_tensor_value_info("on", TensorProto.BOOL, ()),
            helper.make_tensor_value_info("new", TensorProto.FLOAT, shape),
            helper.make_tensor_value_info("row", TensorProto.FLOAT, shape),
        ],
        [helper.make_tensor("by", TensorProto.FLOAT, (), [float(n.rng.uniform(0.5, 1.5))])],
    )
    given = [n.constant(steps), n.constant(True, "bool"), x]
    y = n.add("Loop", given, shape, (steps, *shape), body=body)
    return y
