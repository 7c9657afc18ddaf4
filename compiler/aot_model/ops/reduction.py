"""Reductions over axes. Source: ONNX operator specification."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from aot_model.ir.expr import Expr, Index, call, cast, const, fresh, reduce
from aot_model.ir.operator import Arrays, At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ops.registry import ints, normal_axis, numeric, operator, required, static

_Map = Callable[[Expr], Expr]
_Finish = Callable[[Expr, int], Expr]


def _same(x: Expr) -> Expr:
    return x


def _keep(x: Expr, n: int) -> Expr:
    return x


def _square(x: Expr) -> Expr:
    return call("mul", x, x)


def _wide(x: Expr) -> Expr:
    """The mean of integers is one of them, though their sum may be none of the type."""
    return cast(x, DType.INT64) if x.dtype.is_integer else x


_TABLE: list[tuple[str, str, _Map, _Finish]] = [
    # name, fold, of what, and what becomes of the result over n elements
    ("ReduceSum", "add", _same, _keep),
    ("ReduceProd", "mul", _same, _keep),
    ("ReduceMax", "max", _same, _keep),
    ("ReduceMin", "min", _same, _keep),
    ("ReduceSumSquare", "add", _square, _keep),
    ("ReduceMean", "add", _wide, lambda x, n: call("div", x, const(n, x.dtype))),
    ("ReduceL1", "add", lambda x: call("abs", x), _keep),
    ("ReduceL2", "add", _square, lambda x, n: call("sqrt", x)),
    ("ReduceLogSum", "add", _same, lambda x, n: call("log", x)),
]


@dataclass(frozen=True)
class Reduction(Operator):
    """A row of the table: axes from the second input, all of them when absent (none with
    noop_with_empty_axes).
    """

    reducing: ClassVar[bool] = True
    combine: ClassVar[str]
    of: ClassVar[_Map]
    finish: ClassVar[_Finish]

    keepdims: int = 1
    noop_with_empty_axes: int = 0

    def axes(self, inputs: Inputs) -> frozenset[int]:
        rank = required(inputs).type.rank
        data = static(inputs, 1, "the axes")
        if data is None or data.size == 0:
            return frozenset() if self.noop_with_empty_axes else frozenset(range(rank))
        return frozenset(normal_axis(a, rank) for a in ints(data))

    def infer(self, inputs: Inputs) -> list[TensorType]:
        extreme = type(self).combine in ("max", "min")  # which booleans have, too
        x, axes = required(inputs) if extreme else numeric(inputs), self.axes(inputs)
        shape = tuple(1 if i in axes else d for i, d in enumerate(x.shape) if self.keepdims or i not in axes)
        return [TensorType(x.dtype, shape)]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x, axes = required(inputs), self.axes(inputs)
        over = {a: fresh("r", x.shape[a]) for a in sorted(axes)}
        kept = iter(i for k, i in enumerate(index) if not self.keepdims or k not in axes)
        source = tuple(over[d] if d in over else next(kept) for d in range(x.type.rank))
        count = math.prod(x.shape[a] for a in axes)
        body = type(self).of(at(x, source))
        total = (
            reduce(type(self).combine, tuple(over.values()), body)
            if count
            else _empty(type(self).combine, body.dtype)
        )
        return cast(type(self).finish(total, count), x.dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.asarray(np.random.default_rng(3).uniform(0.1, 2, (2, 3, 4)), dtype=np.float32)
        axes = [(1,), (0, 2), (-1,), ()]
        return [
            Sample((x, np.asarray(a, np.int64)), {"keepdims": k}, frozenset({1}))
            for a in axes
            for k in (0, 1)
        ] + [Sample((x,))]


def _empty(fold: str, dtype: DType) -> Expr:
    """The fold of nothing."""
    if fold in ("add", "mul"):
        return const(0 if fold == "add" else 1, dtype)
    if dtype.is_float:
        return const(-math.inf if fold == "max" else math.inf, dtype)
    return const(dtype.limits[0 if fold == "max" else 1], dtype)


for _name, _fold, _of, _finish in _TABLE:
    _members = {
        "__doc__": f"ONNX {_name}.",
        "__module__": __name__,
        "combine": _fold,
        "of": staticmethod(_of),
        "finish": staticmethod(_finish),
    }
    operator(_name)(type(_name, (Reduction,), _members))


@operator("WideSum", domain="aot")
class WideSum(Operator):
    """Sum of narrow integers over axes as int32; the axes stay with extent 1 when `keepdims`."""

    reducing: ClassVar[bool] = True

    axes: tuple[int, ...]
    keepdims: bool

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        if any(not 0 <= a < x.type.rank for a in self.axes):
            raise OperatorError(f"axes {self.axes} are out of range for {x.type}")
        return [
            TensorType(
                DType.INT32,
                tuple(
                    1 if k in self.axes else d
                    for k, d in enumerate(x.shape)
                    if self.keepdims or k not in self.axes
                ),
            )
        ]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x = required(inputs)
        over = {a: fresh("r", x.shape[a]) for a in self.axes}
        kept = iter(i for k, i in enumerate(index) if not self.keepdims or k not in self.axes)
        source = tuple(over[d] if d in over else next(kept) for d in range(x.type.rank))
        return reduce("add", tuple(over.values()), cast(at(x, source), DType.INT32))

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        return [np.asarray(np.sum(np.asarray(arrays[0]), self.axes, np.int32, keepdims=self.keepdims))]

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.asarray(np.random.default_rng(8).integers(-128, 128, (2, 300, 4)), dtype=np.int8)
        return [Sample((x,), {"axes": a, "keepdims": k}) for a in [(1,), (0, 2)] for k in (False, True)]
