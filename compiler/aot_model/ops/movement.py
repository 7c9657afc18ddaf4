"""Operators that move elements: transpose, slice, concatenate, pad, gather, tile.

They are index maps, so after fusion most of them cost nothing. Source: ONNX operator specification.
"""

from __future__ import annotations

import numpy as np

from aot_model.ir.bounds import bounds
from aot_model.ir.expr import Expr, Index, call, cast, const, logical_and, select
from aot_model.ir.index import add, less, mod, mul, sub
from aot_model.ir.operator import At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.progressions import progression
from aot_model.ir.types import DType, TensorType
from aot_model.ops.registry import (
    axis_of,
    broadcast,
    broadcast_index,
    counts,
    ints,
    listed,
    normal_axis,
    operator,
    required,
    static,
)
from aot_model.ops.views import ramp

MAX_PIECES = 4096
"""Outputs of a Split."""


@operator("Transpose", movement=True)
class Transpose(Operator):
    """y.shape[k] = x.shape[perm[k]]; reversed axes without perm."""

    perm: tuple[int, ...] | None = None

    def permutation(self, rank: int) -> tuple[int, ...]:
        perm = tuple(reversed(range(rank))) if self.perm is None else tuple(self.perm)
        if sorted(perm) != list(range(rank)):
            raise OperatorError(f"perm {perm} is not a permutation of {rank} axes")
        return perm

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        return [TensorType(x.dtype, tuple(x.shape[p] for p in self.permutation(x.type.rank)))]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x = required(inputs)
        source: list[Expr] = [const(0)] * len(index)
        for k, p in enumerate(self.permutation(x.type.rank)):
            source[p] = index[k]
        return at(x, tuple(source))

    @classmethod
    def samples(cls) -> list[Sample]:
        return [Sample((ramp(2, 3, 4),), {"perm": p}) for p in [(0, 2, 1), (2, 1, 0), (1, 2, 0)]] + [
            Sample((ramp(3, 1),))
        ]


@operator("Slice", movement=True)
class Slice(Operator):
    """x[start:end:step] for the named axes; start and end are clamped as the specification says."""

    def _ranges(self, inputs: Inputs) -> list[tuple[int, int, int]]:
        """(start, step, count) for every axis."""
        x = required(inputs)
        starts, ends = static(inputs, 1, "starts"), static(inputs, 2, "ends")
        if starts is None or ends is None:
            raise OperatorError("starts or ends is missing")
        axes_data, steps_data = static(inputs, 3, "axes"), static(inputs, 4, "steps")
        axes = range(len(ints(starts))) if axes_data is None else ints(axes_data)
        steps = [1] * len(ints(starts)) if steps_data is None else ints(steps_data)
        if not len(ints(starts)) == len(ints(ends)) == len(axes) == len(steps):
            raise OperatorError(
                f"{len(ints(starts))} starts, {len(ints(ends))} ends, {len(axes)} axes and "
                f"{len(steps)} steps: there is one of each for an axis"
            )
        result = [(0, 1, d) for d in x.shape]
        for start, end, axis, step in zip(ints(starts), ints(ends), axes, steps, strict=True):
            a = axis_of(x, axis)
            if step == 0:
                raise OperatorError("a step of 0")
            span = range(x.shape[a])[slice(start, end, step)]
            result[a] = (span.start, step, len(span))
        return result

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [TensorType(required(inputs).dtype, tuple(n for _, _, n in self._ranges(inputs)))]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        return at(
            required(inputs),
            tuple(
                add(mul(i, step), start)
                for i, (start, step, _) in zip(index, self._ranges(inputs), strict=True)
            ),
        )

    @classmethod
    def samples(cls) -> list[Sample]:
        def case(x: np.ndarray, *parts: tuple[int, ...]) -> Sample:
            return Sample(
                (x, *(np.asarray(p, np.int64) for p in parts)), constants=frozenset(range(1, len(parts) + 1))
            )

        x = ramp(4, 5)
        return [
            case(x, (1,), (3,)),
            case(x, (0, -3), (4, 5), (0, 1), (2, 1)),
            case(x, (-1,), (-100,), (1,), (-1,)),
            case(x, (3,), (0,), (1,), (-2,)),
            case(x, (1,), (2**62,), (-1,)),
            case(ramp(1, 3), (0,), (1,), (0,)),
        ]


@operator("Concat", movement=True)
class Concat(Operator):
    """Inputs one after the other along an axis."""

    axis: int = 0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        values = [required(inputs, i) for i in range(max(len(inputs), 1))]
        first = values[0]
        a = axis_of(first, self.axis)
        for v in values[1:]:
            others = v.type.rank == first.type.rank and v.shape[:a] + v.shape[a + 1 :]
            if v.dtype is not first.dtype or others != first.shape[:a] + first.shape[a + 1 :]:
                raise OperatorError(f"cannot concatenate {first.type} and {v.type} along axis {a}")
        return [
            TensorType(
                first.dtype, (*first.shape[:a], sum(v.shape[a] for v in values), *first.shape[a + 1 :])
            )
        ]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        values = [required(inputs, i) for i in range(len(inputs))]
        a = normal_axis(self.axis, values[0].type.rank)
        pieces: list[tuple[Expr, int]] = []
        begin = 0
        for v in values:
            if v.shape[a]:
                pieces.append((at(v, (*index[:a], sub(index[a], begin), *index[a + 1 :])), begin))
            begin += v.shape[a]
        result, limit = pieces[-1]
        for piece, begin in reversed(pieces[:-1]):
            result, limit = select(less(index[a], limit), piece, result), begin
        return result

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            Sample((ramp(2, 3), ramp(2, 1), ramp(2, 4)), {"axis": 1}),
            Sample((ramp(1, 3), ramp(2, 3)), {"axis": -2}),
            Sample((ramp(3),), {"axis": 0}),
        ]


@operator("Split", movement=True)
class Split(Operator):
    """Consecutive pieces along an axis: sizes from the second input, or num_outputs equal ones (the last may
    be smaller).
    """

    axis: int = 0
    num_outputs: int | None = None

    def _sizes(self, inputs: Inputs) -> list[int]:
        x = required(inputs)
        extent = x.shape[axis_of(x, self.axis)]
        data = static(inputs, 1, "the sizes")
        if data is not None:
            sizes = list(ints(data))
        else:
            count = self.num_outputs or 1
            each = -(-extent // count)
            if not 1 <= count <= max(extent, 1):
                raise OperatorError(f"{count} pieces of an axis of {extent}")
            sizes = [min(each, extent - k * each) for k in range(min(count, MAX_PIECES + 1))]
        if len(sizes) > MAX_PIECES:
            raise OperatorError(f"has more than {MAX_PIECES} outputs", "E202")
        if sum(sizes) != extent or any(s < 0 for s in sizes):
            raise OperatorError(f"{len(sizes)} pieces of {listed(sizes)} do not make {extent}")
        return sizes

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        a = normal_axis(self.axis, x.type.rank)
        return [TensorType(x.dtype, (*x.shape[:a], s, *x.shape[a + 1 :])) for s in self._sizes(inputs)]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x = required(inputs)
        a = normal_axis(self.axis, x.type.rank)
        data = static(inputs, 1, "the sizes")
        if data is None:
            begin = output * -(-x.shape[a] // (self.num_outputs or 1))
        else:
            begin = sum(ints(data)[:output])
        return at(x, (*index[:a], add(index[a], begin), *index[a + 1 :]))

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            Sample((ramp(2, 6),), {"axis": 1, "num_outputs": 3}, outputs=3),
            Sample((ramp(5), np.asarray([2, 3], np.int64)), constants=frozenset({1}), outputs=2),
        ]


@operator("Expand", movement=True)
class Expand(Operator):
    """Broadcast to the common shape of the input and the second input."""

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        shape = static(inputs, 1, "the shape")
        return [TensorType(x.dtype, broadcast(x.shape, () if shape is None else ints(shape)))]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x = required(inputs)
        return at(x, broadcast_index(x.shape, index))

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            Sample((ramp(3, 1), np.asarray(s, np.int64)), constants=frozenset({1}))
            for s in [(2, 3, 4), (1, 1), (3, 4)]
        ]


@operator("Tile", movement=True)
class Tile(Operator):
    """Repeats along every axis."""

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        repeats = static(inputs, 1, "repeats")
        if repeats is None or len(ints(repeats)) != x.type.rank:
            raise OperatorError(f"repeats do not fit {x.type}")
        return [TensorType(x.dtype, tuple(d * r for d, r in zip(x.shape, ints(repeats), strict=True)))]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x = required(inputs)
        return at(x, tuple(mod(i, d) for i, d in zip(index, x.shape, strict=True)))

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            Sample((ramp(2, 3), np.asarray(r, np.int64)), constants=frozenset({1}))
            for r in [(2, 2), (1, 1), (3, 1)]
        ]


_MOST = (1 << 31) - 1
"""What a pad may add or take off, so that places behind it can be counted."""


@operator("Pad", movement=True)
class Pad(Operator):
    """Constant, edge, reflect or wrap padding; negative pads crop."""

    mode: str = "constant"

    def pads(self, inputs: Inputs) -> list[tuple[int, int]]:
        x = required(inputs)
        data, axes_data = static(inputs, 1, "the pads"), static(inputs, 3, "the axes")
        pads = () if data is None else ints(data)
        axes = (
            range(x.type.rank)
            if axes_data is None
            else [normal_axis(a, x.type.rank) for a in ints(axes_data)]
        )
        if len(pads) != 2 * len(axes):
            raise OperatorError(f"{len(pads)} pads for {len(axes)} axes")
        result = [(0, 0)] * x.type.rank
        for k, a in enumerate(axes):
            result[a] = (pads[k], pads[k + len(axes)])
        if far := [p for p in pads if abs(p) > _MOST]:
            raise OperatorError(f"a pad of {far[0]} elements")
        return result

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        shape = tuple(d + b + e for d, (b, e) in zip(x.shape, self.pads(inputs), strict=True))
        if any(d < 0 for d in shape):
            raise OperatorError(f"pads leave shape {shape}")
        left = [n + min(b, 0) + min(e, 0) for n, (b, e) in zip(x.shape, self.pads(inputs), strict=True)]
        if self.mode != "constant" and any(n <= 0 < d for n, d in zip(left, shape, strict=True)):
            raise OperatorError(f"{x.type} has no elements to pad an axis with")
        fill = inputs[2] if len(inputs) > 2 else None
        if fill is not None and (fill.dtype is not x.dtype or fill.type.elements != 1):
            raise OperatorError(f"{x.type} is padded with one element of its type, not {fill.type}")
        return [TensorType(x.dtype, shape)]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x = required(inputs)
        source: list[Expr] = []
        inside: Expr = const(True, DType.BOOL)
        for i, extent, (before, after) in zip(index, x.shape, self.pads(inputs), strict=True):
            j, first = sub(i, before), max(-before, 0)
            last = extent - 1 + min(after, 0)  # what is padded is what is left of the axis: first to last
            if before <= 0 and after <= 0:
                pass
            elif self.mode == "constant":
                inside = logical_and(inside, logical_and(less(const(-1), j), less(j, extent)))
            elif self.mode == "edge":
                j = call("min", call("max", j, const(first)), const(last))
            elif self.mode == "wrap":
                j = add(mod(sub(j, first), last - first + 1), first)
            else:
                period = 2 * (last - first)
                j = const(0) if period == 0 else mod(sub(j, first), period)
                j = add(call("min", j, sub(const(period), j)) if period else j, first)
            source.append(j)
        element = at(x, tuple(source))
        if self.mode != "constant":
            return element
        value = inputs[2] if len(inputs) > 2 else None
        fill = const(0, x.dtype) if value is None else at(value, tuple(const(0) for _ in value.shape))
        return select(inside, element, fill)

    @classmethod
    def samples(cls) -> list[Sample]:
        def case(pads: tuple[int, ...], mode: str = "constant") -> Sample:
            return Sample((ramp(3, 4), np.asarray(pads, np.int64)), {"mode": mode}, frozenset({1}))

        filled = np.asarray([2, 1]), np.asarray(-2.5, np.float32)
        more = [
            Sample((ramp(5), *filled), {}, frozenset({1})),
            Sample(
                (ramp(2, 3, 4), np.asarray([1, 2, 3, -1]), filled[1], np.asarray([2, 0])),
                {},
                frozenset({1, 3}),
            ),
            Sample((ramp(1, 4), np.asarray([2, 0, 1, 0])), {"mode": "reflect"}, frozenset({1})),
        ]
        return [case((1, 0, 0, 2)), case((0, 0, 0, 0)), case((-1, 2, 1, -1)), case((2, 1, 1, 3), "edge"),
                case((2, 3, 1, 2), "reflect"), case((1, 1, 1, 1), "wrap"),
                *(case((-1, 2, 1, -1), mode) for mode in ("edge", "reflect", "wrap")),
                *(case((1, -1, -1, 2), mode) for mode in ("edge", "reflect", "wrap")), *more]  # fmt: skip


def safe_index(i: Expr, extent: int) -> Expr:
    """An index read from memory made safe: negative ones count from the end, what is out of range is
    clamped. Those of constants that can be counted are.
    """
    counted = progression(i, extent)
    if counted is not None:
        return counted
    low, high = bounds(i)
    if low is not None and high is not None and low >= 0 and high < extent:
        # smaller ones are int wherever they are computed with
        return cast(i, DType.INT32) if i.dtype.bits >= 32 else i
    i = cast(i, DType.INT32) if i.dtype.bits < 32 else i
    wrapped = select(
        call("lt", i, const(0, i.dtype), dtype=DType.BOOL), call("add", i, const(extent, i.dtype)), i
    )
    clamped = call("min", call("max", wrapped, const(0, i.dtype)), const(max(extent - 1, 0), i.dtype))
    return cast(clamped, DType.INT32)


@operator("Gather", movement=True)
class Gather(Operator):
    """y[.., i.., ..] = x[.., indices[i..], ..] along an axis. Indices out of range are clamped, never
    followed.
    """

    axis: int = 0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, indices = required(inputs, 0), required(inputs, 1)
        counts(indices)
        a = axis_of(x, self.axis)
        return [TensorType(x.dtype, x.shape[:a] + indices.shape + x.shape[a + 1 :])]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x, indices = required(inputs, 0), required(inputs, 1)
        a = normal_axis(self.axis, x.type.rank)
        picked = at(indices, index[a : a + indices.type.rank])
        return at(x, (*index[:a], safe_index(picked, x.shape[a]), *index[a + indices.type.rank :]))

    @classmethod
    def samples(cls) -> list[Sample]:
        x = ramp(4, 3)
        cases = [(0, [0, 3, 1]), (1, [[0, 2], [-1, 1]]), (0, 2), (0, [-4])]
        return [
            Sample((x, np.asarray(i, np.int64)), {"axis": a}, c)
            for a, i in cases
            for c in (frozenset(), frozenset({1}))
        ]
