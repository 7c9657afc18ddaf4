"""Interval analysis of integer values, channel by channel (the last axis), sound for every input.

A channel whose interval is one number has that value at every position, whatever the input is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from aot_model.ir.graph import Graph, Node
from aot_model.ir.scalar_ops import SCALAR_OPS
from aot_model.ir.values import Value
from aot_model.ops.convolution import Convolution
from aot_model.ops.matmul import MatMul
from aot_model.ops.pool import Pool
from aot_model.ops.requantise import ROUNDINGS, Requantise
from aot_model.ops.views import Reshaping


@dataclass(frozen=True)
class Interval:
    """Smallest and largest value of each channel, int64."""

    low: np.ndarray
    high: np.ndarray

    @property
    def constant(self) -> np.ndarray:
        """Which channels have one value only."""
        return np.asarray(self.low == self.high)


Ranges = dict[Value, Interval]
MOST = 1 << 20
"""Channels of a value: of more nothing is known."""


def channel_ranges(graph: Graph) -> Ranges:
    """The interval of every integer value of rank 1 or more, and of MOST channels at most."""
    ranges: Ranges = {}
    for value in graph.inputs:
        _set(ranges, value, None)
    for node in graph.nodes:
        rule = _RULES.get(type(node.op))
        if rule is None and isinstance(node.op, Reshaping):
            rule = _view
        found = rule(node, ranges) if rule is not None else None
        for out in node.outputs:
            _set(ranges, out, found)
    return ranges


def _set(ranges: Ranges, value: Value, found: Interval | None) -> None:
    if not value.dtype.is_integer or not value.shape or value.dtype.bits > 32 or value.shape[-1] > MOST:
        return
    low, high = value.dtype.limits
    full = Interval(np.full(value.shape[-1], low, np.int64), np.full(value.shape[-1], high, np.int64))
    if found is not None and (found.low >= low).all() and (found.high <= high).all():
        full = found
    ranges[value] = full


def of(value: Value | None, ranges: Ranges) -> Interval | None:
    """The interval of a value, constants included."""
    if value is None:
        return None
    if value.data is not None and value.dtype.is_integer:
        if not value.data.size:
            return None
        if not value.shape:
            one = np.asarray([value.data], dtype=np.int64)
            return Interval(one, one)
        flat = value.data.reshape(-1, value.shape[-1]).astype(np.int64)
        return Interval(flat.min(axis=0), flat.max(axis=0))
    return ranges.get(value)


def _convolution(node: Node, ranges: Ranges) -> Interval | None:
    op, x, w = node.op, of(node.inputs[0], ranges), node.input(1)
    assert isinstance(op, Convolution)
    if x is None or w is None or w.data is None or not w.dtype.is_integer:
        return None
    low, high = x.low - op.x_zero_point, x.high - op.x_zero_point
    if any(op.pads):
        low, high = np.minimum(low, 0), np.maximum(high, 0)  # a tap outside of the image adds nothing
    weights = w.data.astype(np.int64) - op.w_zero_point
    per_group = weights.shape[-1]
    group = np.arange(weights.shape[0]) // (weights.shape[0] // op.group)
    channels = group[:, None] * per_group + np.arange(per_group)[None, :]
    shape = (weights.shape[0], *[1] * (weights.ndim - 2), per_group)
    return _products(
        weights, low[channels].reshape(shape), high[channels].reshape(shape), tuple(range(1, weights.ndim))
    )


def _products(weights: np.ndarray, low: np.ndarray, high: np.ndarray, axes: tuple[int, ...]) -> Interval:
    a, b = weights * low, weights * high
    return Interval(np.minimum(a, b).sum(axis=axes), np.maximum(a, b).sum(axis=axes))


def _matmul(node: Node, ranges: Ranges) -> Interval | None:
    op, x, w = node.op, of(node.inputs[0], ranges), node.input(1)
    assert isinstance(op, MatMul)
    if x is None or w is None or w.data is None or w.type.rank != 2 or not w.dtype.is_integer:
        return None
    weights = w.data.astype(np.int64).T - op.w_zero_point
    return _products(weights, x.low[None, :] - op.x_zero_point, x.high[None, :] - op.x_zero_point, (1,))


def _add(node: Node, ranges: Ranges) -> Interval | None:
    a, b = of(node.inputs[0], ranges), of(node.inputs[1], ranges)
    if a is None or b is None or node.outputs[0].shape[-1] not in (a.low.size, b.low.size):
        return None
    return Interval(a.low + b.low, a.high + b.high)


def _requantise(node: Node, ranges: Ranges) -> Interval | None:
    """Requantisation is monotonic: the interval's ends go to the result's ends."""
    op, x, m, s = node.op, of(node.inputs[0], ranges), node.input(1), node.input(2)
    assert isinstance(op, Requantise)
    if (
        x is None
        or m is None
        or s is None
        or m.data is None
        or s.data is None
        or (m.data < 0).any()
        or op.rounding == "wide"
    ):
        return None
    if m.data.size not in (1, x.low.size) or s.data.size not in (1, x.low.size):
        return None
    limit = np.int64(1) << np.clip(31 - np.maximum(s.data.reshape(-1).astype(np.int64), 0), 0, 31)
    if ((np.abs(x.low - op.x_zero_point) >= limit) | (np.abs(x.high - op.x_zero_point) >= limit)).any():
        return None  # the left shift may wrap
    rounding = SCALAR_OPS[ROUNDINGS[op.rounding]].numpy
    factor, shift = m.data.reshape(-1), s.data.reshape(-1)

    def end(acc: np.ndarray) -> np.ndarray:
        scaled = rounding(acc - op.x_zero_point, factor, shift).astype(np.int64)
        return np.asarray(np.clip(scaled + op.zero_point, op.low, op.high))

    return Interval(end(x.low), end(x.high))


def _pool(node: Node, ranges: Ranges) -> Interval | None:
    """Maxima, and averages that round, lie between the smallest and the largest element."""
    op = node.op
    assert isinstance(op, Pool)
    known = not (any(op.pads) and op.count_include_pad) and not op.misses
    return of(node.inputs[0], ranges) if known else None


def _view(node: Node, ranges: Ranges) -> Interval | None:
    x = node.inputs[0]
    same = x is not None and x.shape and node.outputs[0].shape and x.shape[-1] == node.outputs[0].shape[-1]
    return of(x, ranges) if same else None


_RULES: dict[type, Callable[[Node, Ranges], Interval | None]] = {
    Convolution: _convolution,
    MatMul: _matmul,
    Pool: _pool,
    Requantise: _requantise,
}


def register_elementwise() -> None:
    """Rules for operators that the table of element-wise operators declares."""
    from aot_model.ops.elementwise import op

    _RULES[type(op("Add"))] = _add


register_elementwise()
