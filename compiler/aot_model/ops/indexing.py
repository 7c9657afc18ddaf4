"""Operators that read at indices found in tensors (scatter.py has those that write). An index from memory is
clamped, never followed outside.

Source: ONNX operator specification.
"""

from __future__ import annotations

import numpy as np

from aot_model.ir.expr import Expr, Index, call, cast, const, select
from aot_model.ir.index import sub
from aot_model.ir.operator import At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ops.movement import safe_index
from aot_model.ops.registry import axis_of, counts, normal_axis, operator, required, static, whole
from aot_model.ops.views import ramp


def int64(values: object) -> np.ndarray:
    """int64, for samples."""
    return np.asarray(values, dtype=np.int64)


@operator("GatherElements", movement=True)
class GatherElements(Operator):
    """y[i, j, …] = x[i, indices[i, j, …], …] at `axis`."""

    axis: int = 0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, indices = required(inputs, 0), required(inputs, 1)
        counts(indices)
        if x.type.rank != indices.type.rank:
            raise OperatorError(f"indices {indices.type} and data {x.type} differ in rank")
        axis = axis_of(x, self.axis)
        if any(i > d for k, (i, d) in enumerate(zip(indices.shape, x.shape, strict=True)) if k != axis):
            raise OperatorError(f"indices {indices.type} reach beyond data {x.type} beside axis {axis}")
        return [TensorType(x.dtype, indices.shape)]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x, indices = required(inputs, 0), required(inputs, 1)
        a = normal_axis(self.axis, x.type.rank)
        picked = safe_index(at(indices, index), x.shape[a])
        return at(x, (*index[:a], picked, *index[a + 1 :]))

    @classmethod
    def samples(cls) -> list[Sample]:
        i = int64([[0, 2, -1], [1, 0, 0]])
        return [
            Sample((ramp(3, 3), i), {"axis": a}, c) for a in (0, 1) for c in (frozenset(), frozenset({1}))
        ]


@operator("GatherND", movement=True)
class GatherND(Operator):
    """y[b…, i…] = x[b…, indices[b…, i…, :], …]: the last axis of indices is an index into x behind the batch
    axes.
    """

    batch_dims: int = 0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, indices = required(inputs, 0), required(inputs, 1)
        counts(indices)
        b = self.batch_dims
        if (
            not indices.shape
            or b < 0
            or b + indices.shape[-1] > x.type.rank
            or x.shape[:b] != indices.shape[:b]
            or b >= indices.type.rank
        ):
            raise OperatorError(f"indices {indices.type} with {b} batch axes do not fit {x.type}")
        return [TensorType(x.dtype, indices.shape[:-1] + x.shape[b + indices.shape[-1] :])]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x, indices = required(inputs, 0), required(inputs, 1)
        b, k, lead = self.batch_dims, indices.shape[-1], indices.type.rank - 1
        picked = tuple(safe_index(at(indices, (*index[:lead], const(n))), x.shape[b + n]) for n in range(k))
        return at(x, (*index[:b], *picked, *index[lead:]))

    @classmethod
    def samples(cls) -> list[Sample]:
        x = ramp(2, 3, 4)
        return [
            Sample((x, int64([[0, 1], [1, -1]]))),
            Sample((x, int64([[[1]], [[0]]])), {"batch_dims": 1}),
            Sample((x, int64([1, 2, 3]))),
        ]


@operator("OneHot", strings=True)
class OneHot(Operator):
    """`on` where the place along a new axis is the index, else `off`; an index outside selects nothing."""

    axis: int = -1

    def _depth(self, inputs: Inputs) -> int:
        depth = static(inputs, 1, "the depth")
        if depth is None or depth.size != 1 or not depth.reshape(-1)[0] >= 0:
            raise OperatorError("the depth must be one number that is not negative")
        return whole(depth, "the depth")

    def infer(self, inputs: Inputs) -> list[TensorType]:
        indices, values = required(inputs, 0), required(inputs, 2)
        if values.shape != (2,):
            raise OperatorError(f"takes two values, off and on, not {values.type}")
        a = normal_axis(self.axis, indices.type.rank + 1)
        return [TensorType(values.dtype, (*indices.shape[:a], self._depth(inputs), *indices.shape[a:]))]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        indices, values = required(inputs, 0), required(inputs, 2)
        a, depth = normal_axis(self.axis, indices.type.rank + 1), self._depth(inputs)
        wrapped = picked = cast(at(indices, (*index[:a], *index[a + 1 :])), DType.INT64)
        if indices.dtype is not DType.UINT64:  # whose largest numbers are none from the end
            wrapped = select(
                call("lt", picked, const(0, DType.INT64), dtype=DType.BOOL),
                call("add", picked, const(depth, DType.INT64)),
                picked,
            )
        hit = call("eq", wrapped, cast(index[a], DType.INT64), dtype=DType.BOOL)
        return select(hit, at(values, (const(1),)), at(values, (const(0),)))

    @classmethod
    def samples(cls) -> list[Sample]:
        values = np.asarray([-1, 2], np.float32)
        inputs = (int64([0, 2, -1, 7]), int64(4), values)
        unsigned = (np.asarray([0, 2, 2**64 - 1, 3], np.uint64), *inputs[1:])
        return [
            *(Sample(inputs, {"axis": a}, frozenset({1})) for a in (-1, 0)),
            Sample(unsigned, {}, frozenset({1})),
        ]


@operator("ReverseSequence", movement=True)
class ReverseSequence(Operator):
    """The first sequence_lens[b] elements along the time axis backwards, the rest as they are."""

    batch_axis: int = 1
    time_axis: int = 0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, lens = required(inputs, 0), required(inputs, 1)
        if (
            {self.batch_axis, self.time_axis} != {0, 1}
            or x.type.rank < 2
            or lens.shape != (x.shape[self.batch_axis],)
        ):
            raise OperatorError(
                f"batch axis {self.batch_axis}, time axis {self.time_axis} and lengths {lens.type} do not "
                f"fit {x.type}"
            )
        return [x.type]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x, lens = required(inputs, 0), required(inputs, 1)
        steps, t = x.shape[self.time_axis], index[self.time_axis]
        length = cast(at(lens, (index[self.batch_axis],)), DType.INT64)
        length = cast(
            call("min", call("max", length, const(0, DType.INT64)), const(steps, DType.INT64)), DType.INT32
        )
        inside = call("lt", t, length, dtype=DType.BOOL)
        source = select(inside, sub(sub(length, t), 1), t)
        source = call("min", call("max", source, const(0)), const(max(steps - 1, 0)))
        place = list(index)
        place[self.time_axis] = source
        return at(x, tuple(place))

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            Sample((ramp(4, 3), int64([4, 1, 2]))),
            Sample((ramp(3, 4, 2), int64([3, 0, 9])), {"batch_axis": 0, "time_axis": 1}),
        ]
