"""Layers of random ONNX networks for tensors of any shape, and for sequences: products, functions, movements,
recurrent layers, attention.
"""

from __future__ import annotations

import numpy as np
from onnx_network import Network, Shape, anywhere


@anywhere
def product(n: Network, x: str, shape: Shape) -> str | None:
    """With weights, or with another tensor."""
    if len(shape) > 2 and n.number(0, 2) == 0:
        swapped = (*shape[:-2], shape[-1], shape[-2])
        y = n.add("Transpose", [x], swapped, perm=[*range(len(shape) - 2), len(shape) - 1, len(shape) - 2])
        fits = n.affordable(int(np.prod(shape)) // shape[-1] * shape[-2], shape[-1])
        return n.add("MatMul", [x, y], (*shape[:-1], shape[-2])) if y and fits else None
    outside = n.pick(n.number(1, 12), 16, 10)
    if not n.affordable(int(np.prod(shape[:-1])) * outside, shape[-1]):
        return None
    if len(shape) == 2 and n.number(0, 1):
        flipped = n.number(0, 1)
        w = n.weights(*((outside, shape[1]) if flipped else (shape[1], outside)), terms=shape[1])
        return n.add("Gemm", [x, w, n.floats(outside)], (shape[0], outside), transB=flipped)
    y = n.add("MatMul", [x, n.weights(shape[-1], outside, terms=shape[-1])], (*shape[:-1], outside))
    return n.add("Add", [y, n.floats(outside)], (*shape[:-1], outside)) if y and n.number(0, 1) else y


@anywhere
def pair(n: Network, x: str, shape: Shape) -> str | None:
    same = [v for v in n.values if n.shapes[v] == shape]
    other = n.pick(*same)
    if n.number(0, 2) == 0:
        other = n.floats(
            *n.pick(shape, (shape[0], shape[1], *(1,) * (len(shape) - 2)), (1,) * len(shape), shape[-1:])
        )
    return n.add(n.pick("Add", "Add", "Sub", "Mul", "Max"), n.pick([x, other], [other, x]), shape)


@anywhere
def function(n: Network, x: str, shape: Shape) -> str | None:
    kind = n.pick(
        "Relu",
        "Relu",
        "LeakyRelu",
        "Sigmoid",
        "Tanh",
        "HardSwish",
        "HardSigmoid",
        "Elu",
        "Softplus",
        "Gelu",
        "Abs",
        "Clip",
        "PRelu",
        "Softmax",
        "Sqrt",
        "Erf",
    )
    if kind == "Clip":
        return n.add(
            kind, [x, n.constant(n.pick(-1, 0), "float32"), n.constant(n.pick(1, 6), "float32")], shape
        )
    if kind == "PRelu":
        return n.add(
            kind, [x, n.floats(*n.pick((shape[1], *(1,) * (len(shape) - 2)), shape[1:]), spread=0.3)], shape
        )
    if kind == "Sqrt":
        y = n.add("Abs", [x], shape)
        return n.add(kind, [y], shape)
    more = {"LeakyRelu": {"alpha": 0.1}, "Softmax": {"axis": n.pick(-1, 1)}}
    return n.add(kind, [x], shape, **more.get(kind, {}))


@anywhere
def joined(n: Network, x: str, shape: Shape) -> str | None:
    axis = n.number(min(1, len(shape) - 1), len(shape) - 1)
    same = [
        v
        for v in n.values
        if len(n.shapes[v]) == len(shape)
        and all(a == b for k, (a, b) in enumerate(zip(n.shapes[v], shape, strict=True)) if k != axis)
    ]
    names = [x, *(n.pick(*same) for _ in range(n.number(1, 2)))]
    names = names if n.number(0, 1) else names[::-1]
    size = sum(n.shapes[v][axis] for v in names)
    return n.add(
        "Concat", names, (*shape[:axis], size, *shape[axis + 1 :]), axis=n.pick(axis, axis - len(shape))
    )


@anywhere
def sliced(n: Network, x: str, shape: Shape) -> str | None:
    axis = n.number(0, len(shape) - 1)
    if shape[axis] % 2 == 0 and n.number(0, 1):
        half = (*shape[:axis], shape[axis] // 2, *shape[axis + 1 :])
        return n.add("Split", [x], half, half, axis=axis, num_outputs=2)
    begin, step = n.number(0, shape[axis] - 1), n.pick(1, 1, 2)
    end = n.number(begin + 1, shape[axis])
    size = -(-(end - begin) // step)
    if n.number(0, 4) == 0:
        begin, end, step, size = -1, -(2**40), -1, shape[axis]
    return n.add(
        "Slice",
        [x, *(n.constant([v]) for v in (begin, end, axis, step))],
        (*shape[:axis], size, *shape[axis + 1 :]),
    )


@anywhere
def padded(n: Network, x: str, shape: Shape) -> str | None:
    pads = [0 if k % len(shape) == 0 else n.number(0, 2) for k in range(2 * len(shape))]
    mode = n.pick("constant", "edge", "reflect") if min((2, *shape[1:])) > 2 else n.pick("constant", "edge")
    size = tuple(d + pads[k] + pads[len(shape) + k] for k, d in enumerate(shape))
    return n.add("Pad", [x, n.constant(pads)], size, mode=mode)


@anywhere
def moved(n: Network, x: str, shape: Shape) -> str | None:
    order = [int(k) for k in n.rng.permutation(len(shape))]
    return n.add("Transpose", [x], tuple(shape[k] for k in order), perm=order)


@anywhere
def reshaped(n: Network, x: str, shape: Shape) -> str | None:
    size = int(np.prod(shape))
    divisors = [d for d in range(1, size + 1) if size % d == 0]
    a = n.pick(*divisors)
    b = n.pick(*(d for d in divisors if size // a % d == 0))
    wanted = n.pick(
        (shape[0], size // shape[0]), (a, size // a), (1, a, b, size // a // b), (1, a, size // a)
    )
    return n.add("Reshape", [x, n.constant(wanted)], wanted)


@anywhere
def reduced(n: Network, x: str, shape: Shape) -> str | None:
    axes = sorted({n.number(0, len(shape) - 1) for _ in range(2)})
    keep = n.number(0, 1)
    size = tuple(1 if k in axes else d for k, d in enumerate(shape) if keep or k not in axes)
    if len(size) < 2:
        return None
    return n.add(
        n.pick("ReduceMean", "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL2"),
        [x, n.constant(axes)],
        size,
        keepdims=keep,
    )


@anywhere
def layer_norm(n: Network, x: str, shape: Shape) -> str | None:
    c = shape[-1]
    return n.add("LayerNormalization", [x, n.floats(c), n.floats(c)], shape, axis=-1) if c > 3 else None


def recurrent(n: Network, x: str, shape: Shape) -> str | None:
    """Over [steps, batch, inputs]."""
    if len(shape) != 3:
        return None
    steps, batch, inside = shape
    kind, gates = n.pick(("LSTM", 4), ("GRU", 3), ("RNN", 1))
    units, direction = n.pick(n.number(1, 9), 8, 12), n.pick("forward", "reverse", "bidirectional")
    sides = 2 if direction == "bidirectional" else 1
    if not n.affordable(steps * batch * sides * units, gates * (inside + units)):
        return None
    inputs = [
        x,
        n.floats(sides, gates * units, inside, spread=inside**-0.5),
        n.floats(sides, gates * units, units, spread=units**-0.5),
    ]
    inputs += [n.floats(sides, 2 * gates * units, spread=0.3)] if n.number(0, 1) else []
    more = {"linear_before_reset": n.number(0, 1)} if kind == "GRU" else {}
    y = (steps, sides, batch, units)
    return n.add(kind, inputs, y, hidden_size=units, direction=direction, **more)


def attention(n: Network, x: str, shape: Shape) -> str | None:
    """Of one head over [batch, steps, inputs]."""
    if len(shape) != 3:
        return None
    batch, steps, inside = shape
    width = n.pick(4, 8, n.number(1, 9))
    if not n.affordable(batch * steps * (3 * inside + 2 * steps), width):
        return None
    weights = [n.floats(inside, width, spread=inside**-0.5) for _ in range(3)]
    parts = [n.add("MatMul", [x, w], (batch, steps, width)) for w in weights]
    if None in parts:
        return None
    q, k, v = (str(p) for p in parts)
    turned = n.add("Transpose", [k], (batch, width, steps), perm=[0, 2, 1])
    scores = n.add("MatMul", [q, str(turned)], (batch, steps, steps))
    if scores is None:
        return None
    by = n.constant(width**-0.5 if n.number(0, 1) else width**0.5, "float32")
    scores = n.add("Mul" if n.constants[by] < 1 else "Div", [scores, by], (batch, steps, steps))
    shares = n.add("Softmax", [str(scores)], (batch, steps, steps), axis=-1)
    return n.add("MatMul", [str(shares), v], (batch, steps, width))


@anywhere
def chosen(n: Network, x: str, shape: Shape) -> str | None:
    mask = n.constant(n.rng.random(n.pick(shape, shape[-1:])) < 0.6, "bool")
    return n.add("Where", [mask, x, n.floats(*n.pick(shape[-1:], (1,)))], shape)
