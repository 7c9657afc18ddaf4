"""Expressions computed with numpy: constant folding, tables for one-input functions, and the reference of the
tests.
"""

from __future__ import annotations

import warnings
from typing import Any

import ml_dtypes
import numpy as np

from aot_model.ir.expr import Call, Const, Expr, Load, Reduce, Var, walk
from aot_model.ir.scalar_ops import SCALAR_OPS
from aot_model.ir.types import DType

_FOLDS: dict[str, Any] = {
    "add": np.add, "mul": np.multiply, "min": np.minimum, "max": np.maximum,
    "and": np.logical_and, "or": np.logical_or,
}  # fmt: skip


def convert(x: Any, dtype: DType) -> Any:
    """A cast as the generated C does it: floats truncate towards zero and saturate, NaN becomes 0; integers
    wrap. What has the type already is copied, infinities of small floats as well.
    """
    x = np.asarray(x)
    if x.dtype == dtype.numpy:
        return x
    if dtype is DType.BOOL:
        return x != 0
    if dtype.storage or DType.of(x.dtype).storage:
        return _narrow(x, dtype)
    if dtype.is_integer and x.dtype.kind not in "iub":
        low, high = dtype.limits
        wide = np.nan_to_num(x.astype(np.float64), nan=0.0, posinf=np.inf, neginf=-np.inf)
        clipped = np.clip(np.trunc(wide), float(low), float(high))
        exact = np.where(clipped >= float(high), 0.0, clipped)
        return np.where(
            clipped >= float(high), high, exact.astype(np.int64 if low < 0 else np.uint64)
        ).astype(dtype.numpy)
    return x.astype(dtype.numpy)


def _narrow(x: np.ndarray, dtype: DType, saturate: bool = True) -> np.ndarray:
    """To or from a storage type. Small floats saturate unless told otherwise; small integers wrap."""
    if dtype.is_integer and dtype.bits < 8:
        wide = convert(x.astype(DType.of(x.dtype).compute.numpy), DType.INT32).astype(np.int64) & (
            (1 << dtype.bits) - 1
        )
        wrapped: np.ndarray = (
            np.where(wide > dtype.limits[1], wide - (1 << dtype.bits), wide)
            .astype(np.int8)
            .astype(dtype.numpy)
        )
        return wrapped
    if not dtype.is_float or dtype.bits > 8 or dtype is DType.FLOAT8E8M0:
        rounded: np.ndarray = convert(x.astype(DType.of(x.dtype).compute.numpy), dtype.compute).astype(
            dtype.numpy
        )
        return rounded
    wide = x.astype(np.float32)
    if saturate or dtype.bits < 8:
        most = np.float32(ml_dtypes.finfo(dtype.numpy).max)
        wide = np.where(np.isnan(wide), wide, np.clip(wide, -most, most)).astype(np.float32)
    return wide.astype(dtype.numpy)


def evaluate(
    x: Expr, index: tuple[Expr, ...], shape: tuple[int, ...], leaves: dict[Expr, Any] | None = None
) -> np.ndarray:
    """All elements of a tensor whose element at `index` is x. Loads read the data of constants.

    index: one variable per dimension (or the constant 0 where the extent is 1). leaves: arrays for Leaf
    expressions.
    """
    env: dict[Expr, Any] = dict(leaves or {})
    rank = len(shape)
    for d, v in enumerate(index):
        if isinstance(v, Var):
            env[v] = np.arange(shape[d], dtype=np.int64).reshape([-1 if k == d else 1 for k in range(rank)])
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = _eval(x, env)
    return np.array(np.broadcast_to(np.asarray(result, dtype=x.dtype.numpy), shape))


def power_of_two_above(x: np.ndarray) -> np.ndarray:
    """float8_e8m0: the exponent of x rounded up, at most 2^127."""
    bits = np.asarray(x, dtype=np.float32).view(np.uint32)
    code = ((bits >> 23) & 255) + ((bits & 0x7FFFFF) != 0)
    return np.where(np.isnan(x), 255, np.minimum(code, 254)).astype(np.uint8).view(DType.FLOAT8E8M0.numpy)


def _eval(x: Expr, env: dict[Expr, Any]) -> Any:
    order = list(walk_outside_reductions(x, env))
    for node in order:
        env[node] = _apply(node, env)
    return env[x]


def walk_outside_reductions(x: Expr, known: dict[Expr, Any]) -> list[Expr]:
    """Sub-expressions to compute, children first, not entering bodies of reductions."""
    result: list[Expr] = []
    seen: set[Expr] = set(known)
    stack: list[tuple[Expr, bool]] = [(x, False)]
    while stack:
        node, expanded = stack.pop()
        if expanded:
            result.append(node)
        elif node not in seen:
            seen.add(node)
            stack.append((node, True))
            if not isinstance(node, Reduce):
                stack.extend((c, False) for c in reversed(node.children))
    return result


def _apply(node: Expr, env: dict[Expr, Any]) -> Any:
    if isinstance(node, Const):
        return np.asarray(node.value, dtype=node.dtype.numpy)
    if isinstance(node, Load):
        assert node.value.data is not None, f"{node.value} is not a constant"
        if not node.value.data.size:  # guarded by a condition that never holds
            return np.zeros((), node.value.data.dtype)
        return node.value.data[
            tuple(np.clip(env[i], 0, n - 1) for i, n in zip(node.index, node.value.shape, strict=True))
        ]
    if isinstance(node, Reduce):
        return _fold(node, env)
    assert isinstance(node, Call), f"free expression {node}"
    args = [env[a] for a in node.args]
    if node.op == "isum":
        return sum(
            (a * int(f) for a, f in zip(args[:-1:2], args[1::2], strict=False)), start=np.int64(args[-1])
        )
    if node.op == "cast":
        return convert(args[0], node.dtype)
    if node.op == "bitcast":
        return np.ascontiguousarray(args[0]).view(node.dtype.numpy).reshape(np.shape(args[0]))
    if node.op == "cast_unbounded":
        return _narrow(args[0], node.dtype, saturate=False)
    if node.op == "cast_up":
        return power_of_two_above(args[0])
    result = SCALAR_OPS[node.op].numpy(*args)
    return np.asarray(result).astype(node.dtype.numpy)


def _fold(node: Reduce, env: dict[Expr, Any]) -> Any:
    """A reduction: its variables become new leading axes of the arrays, which the fold removes."""
    rank = max((np.ndim(v) for v in env.values()), default=0)
    inner = {k: v for k, v in env.items() if not any(isinstance(s, Var) and s in node.over for s in walk(k))}
    count = len(node.over)
    for d, v in enumerate(node.over):
        inner[v] = np.arange(v.extent, dtype=np.int64).reshape(
            [-1 if k == d else 1 for k in range(count)] + [1] * rank
        )
    body = np.asarray(_eval(node.body, inner))
    extents = tuple(v.extent for v in node.over)
    full = np.broadcast_to(body, np.broadcast_shapes(body.shape, extents + (1,) * rank))
    fold = _FOLDS[node.op]
    return (
        fold.reduce(full, axis=tuple(range(count)), dtype=node.dtype.numpy)
        if node.op in ("add", "mul")
        else fold.reduce(full, axis=tuple(range(count)))
    )
