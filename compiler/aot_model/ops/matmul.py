"""MatMul: matrix products, of floats and of integers, whose sums are int32 or int64 accumulators."""

from __future__ import annotations

import itertools
from typing import ClassVar

import numpy as np

from aot_model.ir.expr import Expr, Index, const, fresh, reduce
from aot_model.ir.operator import At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import TensorType
from aot_model.kernels.site import Site
from aot_model.ops.products import accumulator, product
from aot_model.ops.registry import broadcast, numeric, operator, required
from aot_model.ops.windows import Ints


@operator("MatMul")
class MatMul(Operator):
    """numpy.matmul. Integers give accumulators, from which the zero points are subtracted as in
    Convolution.
    """

    reducing: ClassVar[bool] = True
    rereads: ClassVar[bool] = True
    takes_nibbles: ClassVar[frozenset[int]] = frozenset({1})

    x_zero_point: int = 0
    w_zero_point: int = 0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        a, b = numeric(inputs), numeric(inputs, 1)
        sb = b.shape if b.type.rank > 1 else (*b.shape, 1)
        if not a.shape or not b.shape or a.shape[-1] != sb[-2]:
            raise OperatorError(f"cannot multiply {a.type} by {b.type}")
        if a.dtype is not b.dtype and (a.dtype.is_float or b.dtype.is_float):
            raise OperatorError(
                f"cannot multiply {a.type} by {b.type}: real numbers need the same type on both sides"
            )
        columns = (sb[-1],) if b.type.rank > 1 else ()
        return [TensorType(accumulator(a.dtype), broadcast(a.shape[:-2], sb[:-2]) + a.shape[-2:-1] + columns)]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        a, b = required(inputs, 0), required(inputs, 1)
        k = fresh("k", a.shape[-1])
        column = (index[-1],) if b.type.rank > 1 else ()
        rest = index[:-1] if b.type.rank > 1 else index
        row = (rest[-1],) if a.type.rank > 1 else ()
        batch = rest[:-1] if a.type.rank > 1 else rest
        lead_a = _batch(a.shape[:-2], batch)
        lead_b = _batch(b.shape[:-2], batch)
        left = at(a, (*lead_a, *row, k))
        right = at(b, (*lead_b, k, *column))
        return reduce("add", (k,), product(left, self.x_zero_point, right, self.w_zero_point))

    def addends(self, inputs: Inputs) -> int:
        return required(inputs, 0).shape[-1]

    def reads_strided(self, inputs: Inputs, index: int, strides: Ints) -> bool:
        """Of floats the second operand must run through memory along its rows or its columns; rows that meet
        a constant matrix must lie one behind the other, because they are one row of pixels."""
        value, other = required(inputs, index), required(inputs, 1 - index)
        if value.dtype.is_integer and value.type.rank > 1:
            return not other.is_const  # both are packed by the kernel
        if not value.dtype.is_float or value.type.rank < 2:
            return False
        if index == 1:
            return 1 in strides[-2:]
        axes = list(zip(value.shape[:-1], strides, strict=False))
        rows = [(n, s) for n, s in axes[:-1] if n > 1] + axes[-1:]
        even = all(outer == n * inner for (_, outer), (n, inner) in itertools.pairwise(rows))
        return even or not other.is_const or other.type.rank != 2

    def lower(self, site: Site) -> None:
        site.emit_kernel()

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(5)

        def draw(*shape: int) -> np.ndarray:
            return np.asarray(rng.uniform(-1, 1, shape), dtype=np.float32)

        shapes = [
            ((3, 4), (4, 5)),
            ((1, 4), (4, 1)),
            ((4,), (4, 3)),
            ((2, 4), (4,)),
            ((4,), (4,)),
            ((2, 1, 3, 4), (5, 4, 2)),
            ((7, 17), (17, 33)),
            ((2, 1, 2, 3, 4), (3, 1, 4, 2)),
        ]
        return [
            Sample((draw(*a), draw(*b)), constants=c)
            for a, b in shapes
            for c in (frozenset(), frozenset({1}))
        ]


def _batch(shape: Ints, index: Index) -> Index:
    tail = index[len(index) - len(shape) :]
    return tuple(const(0) if extent == 1 else i for extent, i in zip(shape, tail, strict=True))
