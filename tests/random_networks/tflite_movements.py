"""Layers of random TFLite networks that move numbers or take two tensors: splits, stacks, gathers, products
of activations, differences.
"""

from __future__ import annotations

import numpy as np
from tflite_network import MAX_ELEMENTS, Activation, Network, anywhere

from tflite_models import FLOAT32, INT8, INT16, INT32, UINT8, Op, T


@anywhere
def split(n: Network, x: Activation) -> Activation | None:
    """Two or three parts; the last one goes on, the others may be read by others."""
    axis = n.number(1, len(x.shape) - 1) if len(x.shape) > 1 else 0
    size = x.shape[axis]
    if size < 2:
        return None
    if n.number(0, 1):
        parts = n.pick(*(k for k in range(2, size + 1) if size % k == 0)) if size < 7 else 0
        sizes = [size // parts] * parts if parts else [1, size - 1]
    else:
        first = n.number(1, size - 1)
        sizes = [first, size - first]
    outputs = [n.activation((*x.shape[:axis], d, *x.shape[axis + 1 :]), like=x) for d in sizes]
    numbers = tuple(o.number for o in outputs)
    if len(set(sizes)) == 1:
        inputs = (n.integers(axis), x.number)
        n.operators.append(Op("SPLIT", inputs, numbers, "SplitOptions", {"NumSplits": len(sizes)}))
    else:
        inputs = (x.number, n.integers(sizes), n.integers(axis))
        n.operators.append(Op("SPLIT_V", inputs, numbers, "SplitVOptions", {"NumSplits": len(sizes)}))
    n.values += outputs
    return outputs[-1]


@anywhere
def stacked(n: Network, x: Activation) -> Activation | None:
    same = [v for v in n.values if v.shape == x.shape and n.alike(v, x)]
    axis, count = n.number(1, len(x.shape)), n.number(1, 3)
    if len(x.shape) > 3 or count * int(np.prod(x.shape)) > MAX_ELEMENTS * n.room:
        return None
    numbers = [x.number, *(n.pick(*same).number for _ in range(count - 1))]
    y = n.activation((*x.shape[:axis], count, *x.shape[axis:]), like=x)
    return n.add("PACK", tuple(numbers), y, "PackOptions", Axis=axis, ValuesCount=count)


@anywhere
def unstacked(n: Network, x: Activation) -> Activation | None:
    axes = [k for k in range(1, len(x.shape)) if x.shape[k] <= 4]
    if not axes or len(x.shape) < 3:
        return None
    axis = n.pick(*axes)
    outputs = [n.activation((*x.shape[:axis], *x.shape[axis + 1 :]), like=x) for _ in range(x.shape[axis])]
    numbers, options = tuple(o.number for o in outputs), {"Axis": axis, "Num": len(outputs)}
    n.operators.append(Op("UNPACK", (x.number,), numbers, "UnpackOptions", options))
    n.values += outputs
    return outputs[0]


@anywhere
def gathered(n: Network, x: Activation) -> Activation | None:
    axis = n.number(1, len(x.shape) - 1) if len(x.shape) > 1 else 0
    count = n.number(1, min(2 * x.shape[axis], 12))
    if int(np.prod(x.shape)) // x.shape[axis] * count > MAX_ELEMENTS * n.room:
        return None
    places = n.integers([n.number(0, x.shape[axis] - 1) for _ in range(count)])
    y = n.activation((*x.shape[:axis], count, *x.shape[axis + 1 :]), like=x)
    return n.add("GATHER", (x.number, places), y, "GatherOptions", Axis=axis)


@anywhere
def repeated(n: Network, x: Activation) -> Activation | None:
    times = [1, *(n.pick(1, 1, 2, 3) for _ in x.shape[1:])]
    shape = tuple(d * k for d, k in zip(x.shape, times, strict=True))
    if int(np.prod(shape)) > MAX_ELEMENTS * n.room:
        return None
    return n.add("TILE", (x.number, n.integers(times)), n.activation(shape, like=x), "TileOptions")


@anywhere
def mirrored(n: Network, x: Activation) -> Activation | None:
    mode = n.number(0, 1)  # REFLECT, SYMMETRIC
    most = [min(2, d - 1 + mode) for d in x.shape[1:]]
    pads = [[0, 0], *([n.number(0, m), n.number(0, m)] for m in most)]
    shape = tuple(d + sum(p) for d, p in zip(x.shape, pads, strict=True))
    if int(np.prod(shape)) > MAX_ELEMENTS * n.room:
        return None
    y = n.activation(shape, like=x)
    return n.add("MIRROR_PAD", (x.number, n.integers(pads)), y, "MirrorPadOptions", Mode=mode)


@anywhere
def product(n: Network, x: Activation) -> Activation | None:
    """Of two activations, with their last two axes as they fit."""
    if n.kind == UINT8 or len(x.shape) < 3:
        return None
    fitting = [
        (v, flip)
        for v in n.values
        for flip in (False, True)
        if len(v.shape) == len(x.shape)
        and v.shape[:-2] == x.shape[:-2]
        and v.shape[-1 if flip else -2] == x.shape[-1]
    ]
    if not fitting:
        return None
    other, flip = n.pick(*fitting)
    columns = other.shape[-2 if flip else -1]
    if not n.affordable(int(np.prod(x.shape[:-1])) * columns, x.shape[-1]):
        return None
    width = n.spread(x) * n.spread(other) * float(np.sqrt(x.shape[-1]))
    y = n.activation((*x.shape[:-1], columns), width)
    return n.add("BATCH_MATMUL", (x.number, other.number), y, "BatchMatMulOptions", AdjX=False, AdjY=flip)


@anywhere
def slopes(n: Network, x: Activation) -> Activation | None:
    if n.kind == INT16 or len(x.shape) < 2:
        return None
    shape = n.pick((*(1,) * (len(x.shape) - 2), x.shape[-1]), x.shape[1:])
    alpha = n.constant(shape, 0.01 if n.whole else 0.4)
    return n.add("PRELU", (x.number, alpha.number), n.activation(x.shape, n.spread(x)), None)


@anywhere
def difference(n: Network, x: Activation) -> Activation | None:
    if n.kind not in (INT8, FLOAT32):
        return None
    if n.number(0, 1):
        return n.add("ABS", (x.number,), n.activation(x.shape, n.spread(x)), "AbsOptions")
    same = [v for v in n.values if v.shape in (x.shape, (*(1,) * (len(x.shape) - 1), x.shape[-1]))]
    other = n.pick(*same)
    y = n.activation(x.shape, n.spread(x) ** 2 + n.spread(other) ** 2)
    return n.add("SQUARED_DIFFERENCE", (x.number, other.number), y, "SquaredDifferenceOptions")


@anywhere
def largest(n: Network, x: Activation) -> Activation | None:
    """An end: its numbers are places."""
    if n.kind == INT16 or n.number(0, 3):
        return None
    axis = n.number(1, len(x.shape) - 1) if len(x.shape) > 1 else 0
    shape = (*x.shape[:axis], *x.shape[axis + 1 :])
    kind = n.pick("ARG_MAX", "ARG_MIN")
    y = Activation(n.tensor(T("", shape, INT32, (), ())), shape, 1, 0)
    options = "ArgMaxOptions" if kind == "ARG_MAX" else "ArgMinOptions"
    n.operators.append(Op(kind, (x.number, n.integers(axis)), (y.number,), options, {"OutputType": INT32}))
    n.ends.append(y.number)
    return y
