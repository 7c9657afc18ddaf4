"""TFLite: operators that move elements. Quantisation passes through; where it changes, the elements are
rescaled.
"""

from __future__ import annotations

import math

import numpy as np

from aot_model.arithmetic.fixed_point import round_away
from aot_model.frontends.tflite_conversion import Conversion, activation, rule
from aot_model.frontends.tflite_pieces import computed_slice, joined
from aot_model.ir.operator import OperatorError
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.ops.movement import Concat, Expand, Gather, Pad, Slice, Split, Tile
from aot_model.ops.quantised_tables import lookup
from aot_model.ops.registry import broadcast, normal_axis


def rescaled(n: Conversion, k: int) -> Value:
    """An input in the quantisation of the output."""
    x = n.x(k)
    if not n.quantised(k) or n.same_quantisation(k):
        return x
    if x.dtype is DType.UINT8 and n.out_dtype() is DType.UINT8 and n.operator.kind == "CONCATENATION":
        return n.build(
            lookup(DType.UINT8, _rescaled_bytes(n.scale(k), n.zero(k), n.scale_out(), n.zero_out())), x
        )
    return n.requantise(
        x, [n.scale(k) / n.scale_out()], n.limits(), n.zero_out(), n.out_dtype(), x_zero_point=n.zero(k)
    )


def _rescaled_bytes(scale: float, zero: int, out_scale: float, out_zero: int) -> list[int]:
    """What becomes of each uint8 in another quantisation: LiteRT rescales bytes that it joins in single
    precision.
    """
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        factor = np.float32(scale) * (np.float32(1) / np.float32(out_scale))
    if not np.isfinite(factor):
        raise OperatorError(
            f"the scale {out_scale} of the result is too small", "E302", "quantise the model again"
        )
    moved = np.arange(256, dtype=np.float32) * factor + np.float32(-zero) * factor
    return [max(0, min(255, round_away(float(v)) + out_zero)) for v in moved]


def slices(n: Conversion, x: Value, parts: list[tuple[int, int, int]]) -> Value:
    """x[begin:end:step] for every axis."""
    columns = [n.constant([p[k] for p in parts], DType.INT64) for k in range(3)]
    return n.build(Slice(), x, columns[0], columns[1], n.constant(range(len(parts)), DType.INT64), columns[2])


@rule("RESHAPE")
def reshape(n: Conversion) -> Value:
    """To the shape in the second input or the options; one -1 is inferred. Old converters write [0] into the
    options for a scalar.
    """
    x = n.x()
    if n.has(1) and n.x(1).is_const:
        shape = list(n.ints(1, "the shape"))
    elif n.has(1):
        shape = list(n.declared_shape())
    else:
        shape = list(n.operator.options.ints("ReshapeOptions", "NewShape")) or list(n.declared_shape())
        shape = [] if shape == [0] else shape
    if shape.count(-1) == 1 and min(shape) >= -1:
        known = math.prod(d for d in shape if d != -1)
        shape[shape.index(-1)] = x.type.elements // known if known else 0
    if any(d < 0 for d in shape) or math.prod(shape) != x.type.elements:
        raise OperatorError(f"{x.type} does not fit shape {shape}")
    return n.reshape(x, shape)


@rule("SQUEEZE", "EXPAND_DIMS")
def squeeze(n: Conversion) -> Value:
    x = n.x()
    if n.operator.kind == "EXPAND_DIMS":
        axis = n.ints(1, "the axis")[0]
        at = normal_axis(axis, x.type.rank + 1)
        return n.reshape(x, (*x.shape[:at], 1, *x.shape[at:]))
    wanted = n.operator.options.ints("SqueezeOptions", "SqueezeDims")
    gone = {normal_axis(a, x.type.rank) for a in wanted} or {k for k, d in enumerate(x.shape) if d == 1}
    if any(x.shape[a] != 1 for a in gone):
        raise OperatorError(f"cannot squeeze axes {sorted(gone)} of {x.type}")
    return n.reshape(x, tuple(d for k, d in enumerate(x.shape) if k not in gone))


@rule("TRANSPOSE")
def transpose(n: Conversion) -> Value:
    perm = tuple(normal_axis(p, n.x().type.rank) for p in n.ints(1, "the permutation"))
    if sorted(perm) != list(range(n.x().type.rank)):
        raise OperatorError(f"{perm} is not a permutation of the axes of {n.x().type}")
    return n.transpose(n.x(), perm)


@rule("CONCATENATION")
def concatenation(n: Conversion) -> Value:
    if any(n.x(k) in n.host.pieces for k in range(len(n.inputs))):
        return joined(n, n.operator.options.get("ConcatenationOptions", "Axis"))
    y = n.build(
        Concat(n.operator.options.get("ConcatenationOptions", "Axis")),
        *(rescaled(n, k) for k in range(len(n.inputs))),
    )
    act = activation(n, "ConcatenationOptions")
    if y.dtype.is_float or act == "NONE":
        return n.activate(y, act)
    return n.clip(y, *n.limits(act))


@rule("PACK")
def pack(n: Conversion) -> Value:
    axis = normal_axis(n.operator.options.get("PackOptions", "Axis"), n.x().type.rank + 1)
    parts = [rescaled(n, k) for k in range(len(n.inputs))]
    return n.build(Concat(axis), *(n.reshape(p, (*p.shape[:axis], 1, *p.shape[axis:])) for p in parts))


@rule("UNPACK")
def unpack(n: Conversion) -> list[Value]:
    x = n.x()
    axis = normal_axis(n.operator.options.get("UnpackOptions", "Axis"), x.type.rank)
    if x.type.rank == 0 or x.shape[axis] != len(n.out_tensors):
        raise OperatorError(f"{x.type} does not fall into {len(n.out_tensors)} along axis {axis}")
    parts = n.build.many(Split(axis, len(n.out_tensors)), x)
    return [n.reshape(p, (*p.shape[:axis], *p.shape[axis + 1 :])) for p in parts]


@rule("SPLIT", "SPLIT_V")
def split(n: Conversion) -> list[Value]:
    if n.operator.kind == "SPLIT":
        axis, x = n.ints(0, "the axis")[0], n.x(1)
        if x.shape[normal_axis(axis, x.type.rank)] % max(len(n.out_tensors), 1):
            raise OperatorError(
                f"{x.type} does not fall into {len(n.out_tensors)} equal pieces along axis {axis}"
            )
        return n.build.many(Split(axis, len(n.out_tensors)), x)
    x, axis = n.x(0), n.ints(2, "the axis")[0]
    sizes = list(n.ints(1, "the sizes"))
    if sizes.count(-1) == 1:
        sizes[sizes.index(-1)] = x.shape[normal_axis(axis, x.type.rank)] - sum(s for s in sizes if s != -1)
    return n.build.many(Split(axis), x, n.constant(sizes, DType.INT64))


@rule("SLICE")
def slice_(n: Conversion) -> Value:
    """At places that may be computed; the sizes are constant, or those of the declared result."""
    x = n.x()
    if not n.x(1).is_const or not n.x(2).is_const:
        return computed_slice(n)
    begins, sizes = n.ints(1, "begin"), n.ints(2, "size")
    if len(begins) != x.type.rank or len(sizes) != x.type.rank:
        raise OperatorError(f"{len(begins)} begins and {len(sizes)} sizes for {x.type}")
    parts = []
    for begin, size, extent in zip(begins, sizes, x.shape, strict=True):
        end = extent if size == -1 else begin + size
        if not 0 <= begin <= end <= extent:
            raise OperatorError(f"slice from {begin}, size {size}, is outside {x.type}")
        parts.append((begin, end, 1))
    return slices(n, x, parts)


@rule("STRIDED_SLICE")
def strided_slice(n: Conversion) -> Value:
    """numpy indexing: masks say which begins and ends are ignored, where new axes are put and which axes
    vanish.
    """
    x = n.x()
    begins, ends, steps = (n.ints(k, what) for k, what in ((1, "begin"), (2, "end"), (3, "strides")))
    mask = {
        name: int(n.operator.options.get("StridedSliceOptions", name))
        for name in ("BeginMask", "EndMask", "EllipsisMask", "NewAxisMask", "ShrinkAxisMask")
    }
    offset = bool(n.operator.options.get("StridedSliceOptions", "Offset"))
    if not len(begins) == len(ends) == len(steps) <= 8 or 0 in steps:
        raise OperatorError(f"begins {begins}, ends {ends}, strides {steps} do not fit each other")

    def marked(name: str, k: int) -> bool:
        return bool(mask[name] >> k & 1)

    parts: list[tuple[int, int, int]] = []
    shape: list[int] = []
    consumed = sum(not marked("NewAxisMask", k) and not marked("EllipsisMask", k) for k in range(len(begins)))
    for k, (begin, end, step) in enumerate(zip(begins, ends, steps, strict=True)):
        if marked("EllipsisMask", k):
            for _ in range(max(x.type.rank - consumed, 0)):
                extent = x.shape[len(parts)]
                parts.append((0, extent, 1))
                shape.append(extent)
        elif marked("NewAxisMask", k):
            shape.append(1)
        elif len(parts) >= x.type.rank:
            raise OperatorError(f"more slices than axes of {x.type}")
        else:
            extent = x.shape[len(parts)]
            if marked("ShrinkAxisMask", k):
                if step < 0:
                    raise OperatorError(
                        f"a step of {step} along axis {len(parts)}, of which one index is taken"
                    )
                if marked("BeginMask", k):  # it counts here too, other than in TensorFlow
                    begin = 0
                at = begin + extent if begin < 0 else begin
                if not 0 <= at < extent:
                    raise OperatorError(f"index {begin} is outside axis {len(parts)} of {x.type}")
                parts.append((at, at + 1, 1))
                continue
            open_end = marked("EndMask", k)
            whole = slice(None if marked("BeginMask", k) else begin, None if open_end else end, step)
            start, stop, _ = whole.indices(extent)
            if offset and not open_end:  # from where it really begins
                stop = max(-1, min(start + end, extent))
            span = range(start, stop, step)
            last = span.start + len(span) * step
            parts.append((span.start, last if last >= 0 else -extent - 1, step))
            shape.append(len(span))
    for extent in x.shape[len(parts) :]:
        parts.append((0, extent, 1))
        shape.append(extent)
    return n.reshape(slices(n, x, parts), shape)


@rule("PAD", "PADV2", "MIRROR_PAD")
def pad(n: Conversion) -> Value:
    """Pads with the real number 0 (the zero point of the output), a given value, or mirrored elements."""
    x = n.x()
    pads = n.data(1, "the paddings")
    if pads.shape != (x.type.rank, 2) or (pads.size and int(pads.min()) < 0):
        raise OperatorError(f"paddings {list(pads.shape)} do not fit {x.type}")
    flat = n.constant([*pads[:, 0], *pads[:, 1]], DType.INT64)
    if n.operator.kind == "MIRROR_PAD":
        if not n.operator.options.get("MirrorPadOptions", "Mode"):
            return n.build(Pad("reflect"), x, flat)
        return _symmetric(n, x, [(int(a), int(b)) for a, b in pads])
    n.as_they_are(0)
    if n.operator.kind == "PADV2":
        if n.quantised() and not n.same_quantisation(2):
            raise OperatorError("the padding value has another quantisation than the tensor", "E302")
        return n.build(Pad(), x, flat, n.reshape(n.x(2), ()))
    return n.build(Pad(), x, flat, n.constant(n.zero_out() if n.quantised() else 0, x.dtype))


def _symmetric(n: Conversion, x: Value, pads: list[tuple[int, int]]) -> Value:
    """Mirrored with the border element repeated: a gather along each padded axis."""
    for axis, (before, after) in enumerate(pads):
        extent = x.shape[axis]
        if max(before, after) > extent:
            raise OperatorError(f"paddings {before} and {after} are larger than axis {axis} of {x.type}")
        if before or after:
            order = np.pad(np.arange(extent), (before, after), mode="symmetric")
            x = n.build(Gather(axis), x, n.constant(order, DType.INT64))
    return x


@rule("TILE")
def tile(n: Conversion) -> Value:
    return n.build(Tile(), n.x(), n.constant(n.ints(1, "the multiples"), DType.INT64))


@rule("BROADCAST_TO")
def broadcast_to(n: Conversion) -> Value:
    return n.build(Expand(), n.x(), n.constant(n.ints(1, "the shape"), DType.INT64))


@rule("BROADCAST_ARGS")
def broadcast_args(n: Conversion) -> Value:
    return n.constant(broadcast(n.ints(0, "a shape"), n.ints(1, "a shape")), n.out_dtype())


@rule("REVERSE_V2")
def reverse(n: Conversion) -> Value:
    x = n.x()
    axes = {normal_axis(a, x.type.rank) for a in n.ints(1, "the axes")}
    return slices(n, x, [(d - 1, -d - 1, -1) if k in axes else (0, d, 1) for k, d in enumerate(x.shape)])


@rule("SPACE_TO_DEPTH", "DEPTH_TO_SPACE")
def blocks(n: Conversion) -> Value:
    x = n.x()
    deep = n.operator.kind == "SPACE_TO_DEPTH"
    b = int(n.operator.options.get("SpaceToDepthOptions" if deep else "DepthToSpaceOptions", "BlockSize"))
    if x.type.rank != 4 or b < 1:
        raise OperatorError(f"blocks of {b} of {x.type}")
    batch, h, w, c = x.shape
    if deep:
        if h % b or w % b:
            raise OperatorError(f"{x.type} does not fall into blocks of {b}")
        y = n.transpose(n.reshape(x, (batch, h // b, b, w // b, b, c)), (0, 1, 3, 2, 4, 5))
        return n.reshape(y, (batch, h // b, w // b, b * b * c))
    if c % (b * b):
        raise OperatorError(f"{x.type} does not fall into blocks of {b}")
    y = n.transpose(n.reshape(x, (batch, h, w, b, b, c // (b * b))), (0, 1, 3, 2, 4, 5))
    return n.reshape(y, (batch, h * b, w * b, c // (b * b)))


@rule("SPACE_TO_BATCH_ND", "BATCH_TO_SPACE_ND")
def space_to_batch(n: Conversion) -> Value:
    x, block = n.x(), n.ints(1, "the block shape")
    pads = n.data(2, "the paddings")
    m, rank = len(block), x.type.rank
    if pads.shape != (m, 2) or not 1 <= m < rank or min(block) < 1 or int(pads.min()) < 0:
        raise OperatorError(f"blocks {block} and paddings {list(pads.shape)} do not fit {x.type}")
    pairs = [(int(a), int(b)) for a, b in pads]
    if n.operator.kind == "SPACE_TO_BATCH_ND":
        begins, ends = ([0, *(p[k] for p in pairs), *[0] * (rank - 1 - m)] for k in range(2))
        zero = n.constant(n.zero() if n.quantised() else 0, x.dtype)
        x = n.build(Pad(), x, n.constant([*begins, *ends], DType.INT64), zero)
        inner = x.shape[1 : 1 + m]
        if any(d % b for d, b in zip(inner, block, strict=True)):
            raise OperatorError(f"{x.type} does not fall into blocks of {block}")
        split_up = n.reshape(
            x,
            (
                x.shape[0],
                *(v for d, b in zip(inner, block, strict=True) for v in (d // b, b)),
                *x.shape[1 + m :],
            ),
        )
        perm = (
            *(2 + 2 * k for k in range(m)),
            0,
            *(1 + 2 * k for k in range(m)),
            *range(1 + 2 * m, split_up.type.rank),
        )
        y = n.transpose(split_up, perm)
        return n.reshape(
            y,
            (
                math.prod(block) * x.shape[0],
                *(d // b for d, b in zip(inner, block, strict=True)),
                *x.shape[1 + m :],
            ),
        )
    if x.shape[0] % math.prod(block):
        raise OperatorError(f"{x.type} does not fall into blocks of {block}")
    batch = x.shape[0] // math.prod(block)
    inner = x.shape[1 : 1 + m]
    split_up = n.reshape(x, (*block, batch, *x.shape[1:]))
    perm = (m, *(v for k in range(m) for v in (m + 1 + k, k)), *range(2 * m + 1, split_up.type.rank))
    whole = n.reshape(
        n.transpose(split_up, perm),
        (batch, *(d * b for d, b in zip(inner, block, strict=True)), *x.shape[1 + m :]),
    )
    parts = [
        (0, batch, 1),
        *((a, d - b, 1) for (a, b), d in zip(pairs, whole.shape[1 : 1 + m], strict=True)),
        *((0, d, 1) for d in whole.shape[1 + m :]),
    ]
    if any(a > b for a, b, _ in parts):
        raise OperatorError(f"crops {pairs} are larger than {whole.type}")
    return slices(n, whole, parts)


# --- shapes and fills ---------------------------------------------------------------------------------------


@rule("SHAPE")
def shape(n: Conversion) -> Value:
    return n.constant(n.x().shape, n.out_dtype())


@rule("RANK")
def rank(n: Conversion) -> Value:
    return n.constant(n.x().type.rank, n.out_dtype())


@rule("ZEROS_LIKE")
def zeros_like(n: Conversion) -> Value:
    return n.build(
        Expand(),
        n.constant(n.zero() if n.quantised() else 0, n.x().dtype),
        n.constant(n.x().shape, DType.INT64),
    )


@rule("FILL")
def fill(n: Conversion) -> Value:
    return n.build(Expand(), n.reshape(n.x(1), ()), n.constant(n.ints(0, "the shape"), DType.INT64))


@rule("RANGE")
def range_(n: Conversion) -> Value:
    start, limit, delta = (n.data(k, what).reshape(()) for k, what in enumerate(("start", "limit", "delta")))
    if delta == 0 or abs((float(limit) - float(start)) / float(delta)) > 2**24:
        raise OperatorError(f"a range from {start} to {limit} in steps of {delta}")
    if not n.x().dtype.is_float:
        return n.constant(np.arange(start.item(), limit.item(), delta.item()), n.x().dtype)
    # In the precision of the type, which decides how many there are, and step by step.
    with np.errstate(over="ignore"):
        count = max(math.ceil((limit - start) / delta), 0)
    steps = np.full(count, delta, start.dtype)
    steps[:1] = start
    return n.constant(np.add.accumulate(steps), n.x().dtype)
