"""Remove channels whose value is known: bit for bit the same result from smaller layers.

    acc[o] = sum over c of w[o, c] * (x[c] - z)        x[k] = constant v for every input
           = sum over c != k of w[o, c] * (x[c] - z)  +  w[o, k] * (v - z)

The last term goes into the bias, and channel k needs neither weights nor memory, nor does what computes it.
Interval analysis (ops/ranges.py) finds such channels: filters of zeros, activations that never leave a clamp.
A channel also goes when all weights that read it are zero.

Channels are removed along a chain of nodes that keep them apart (bias, requantisation, depthwise convolution,
pooling), from the node that makes them to the one that sums over them. Where padding makes the constant's
share depend on the position (v != z at a padded window) the channel stays.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from aot_model.ir.graph import Graph, Node
from aot_model.ir.types import TensorType
from aot_model.ir.values import Value, constant
from aot_model.ops.convolution import Convolution
from aot_model.ops.elementwise import op
from aot_model.ops.matmul import MatMul
from aot_model.ops.pool import Pool
from aot_model.ops.ranges import Ranges, channel_ranges
from aot_model.ops.requantise import Requantise
from aot_model.ops.views import ReshapeTo, Reshaping
from aot_model.passes.explain import refuse

MULTIPLE = 4
"""Layers keep a multiple of so many channels: kernels read words of four."""


def dead_channels(graph: Graph) -> bool:
    """Remove known channels until none is left. True when something changed."""
    changed = False
    while _remove(graph):
        changed = True
    return changed


@dataclass
class _Strand:
    """Values whose channels come and go together, the node that makes them and those that sum over them."""

    values: list[Value]
    keep: np.ndarray


def _remove(graph: Graph) -> bool:
    ranges, uses = channel_ranges(graph), graph.uses()
    for node in graph.nodes:
        if not _makes_channels(node):
            continue
        strand = _follow(graph, node, ranges, uses)
        if strand is None or strand.keep.all():
            continue
        _shrink(graph, strand, ranges, uses)
        return True
    return False


def _makes_channels(node: Node) -> bool:
    """Whether a node's output channels can be dropped one by one: a sum over its input channels."""
    w = node.input(1)
    if w is None or w.data is None or not node.outputs[0].shape:
        return False
    if isinstance(node.op, Convolution):
        return node.op.group == 1 and not node.outputs[0].dtype.is_float
    return isinstance(node.op, MatMul) and w.type.rank == 2 and not node.outputs[0].dtype.is_float


def _keeps_apart(node: Node, channels: int) -> bool:
    """Whether output channel c of a node depends on input channel c only."""
    out = node.outputs[0]
    if not out.shape or out.shape[-1] != channels:
        return False
    if isinstance(node.op, Convolution):
        w = node.input(1)
        return node.op.group == channels and w is not None and w.is_const
    if node.kind == "Add":
        return any(v is not None and v.is_const for v in node.inputs)
    return isinstance(node.op, (Reshaping, Pool, Requantise))


def _follow(graph: Graph, first: Node, ranges: Ranges, uses: dict[Value, list[Node]]) -> _Strand | None:
    """The strand that a node begins, and which of its channels must stay; None where it cannot shrink."""
    outputs = set(graph.outputs)
    start = first.outputs[0]
    channels = start.shape[-1]
    values, pending = [start], [start]
    keep = np.zeros(channels, dtype=bool)
    while pending:
        value = pending.pop()
        if value in outputs:
            refuse(first, f"its channels are in the result '{value.name}'")
            return None
        for reader in uses.get(value, []):
            if _makes_channels(reader):
                keep |= ~_foldable(reader, value, ranges)
            elif reader.inputs.count(value) == 1 and _keeps_apart(reader, channels):
                values.append(reader.outputs[0])
                pending.append(reader.outputs[0])
            else:
                refuse(reader, f"keeps all channels of '{value.name}'")
                return None
    wanted = max(-(-int(keep.sum()) // MULTIPLE) * MULTIPLE, MULTIPLE)
    spare = np.flatnonzero(~keep)[: max(min(wanted, channels) - int(keep.sum()), 0)]
    keep[spare] = True
    return _Strand(values, keep)


def _foldable(node: Node, value: Value, ranges: Ranges) -> np.ndarray:
    """Channels of the input of a sum that it can do without: constant ones whose share is the same
    everywhere, and those that meet no weight but zero."""
    weights = _weights(node)
    unread = ~np.any(weights, axis=tuple(range(weights.ndim - 1)))
    found = ranges.get(value)
    if found is None:
        return np.asarray(unread)
    zero = node.op.x_zero_point  # type: ignore[attr-defined]
    everywhere = not any(getattr(node.op, "pads", ()))
    return np.asarray(unread | (found.constant & (everywhere | (found.low == zero))))


def _weights(node: Node) -> np.ndarray:
    """Weights less their zero point, input channels last."""
    w = node.inputs[1]
    assert w is not None and w.data is not None
    data = w.data.astype(np.int64) - node.op.w_zero_point  # type: ignore[attr-defined]
    return np.asarray(data.T if isinstance(node.op, MatMul) else data)


def _shrink(graph: Graph, strand: _Strand, ranges: Ranges, uses: dict[Value, list[Node]]) -> None:
    """Drop the channels from every node of the strand."""
    keep = np.flatnonzero(strand.keep)
    producer = graph.producers()
    inside = set(strand.values)
    for value in strand.values:
        _shrink_node(producer[value], keep, first=value is strand.values[0])
        for reader in uses.get(value, []):
            if reader.outputs[0] not in inside:
                _fold_into_bias(graph, reader, value, strand.keep, ranges)
    for value in strand.values:
        value.type = TensorType(value.dtype, (*value.shape[:-1], keep.size))
        value.stands_for = ()


def _picked(value: Value, keep: np.ndarray, channels: int, axis: int) -> Value:
    """A constant with the kept channels only; one for all channels stays."""
    assert value.data is not None
    if not value.shape or value.shape[axis] != channels:
        return value
    return constant(value.name, np.take(value.data, keep, axis=axis), value.quantisation)


def _shrink_node(node: Node, keep: np.ndarray, *, first: bool) -> None:
    channels = node.outputs[0].shape[-1]
    if isinstance(node.op, Convolution):
        node.inputs[1] = _picked(_constant(node.inputs[1]), keep, channels, 0)
        if not first:
            node.op = replace(node.op, group=keep.size)
    elif isinstance(node.op, MatMul):
        node.inputs[1] = _picked(_constant(node.inputs[1]), keep, channels, 1)
    elif isinstance(node.op, Reshaping):
        node.op = ReshapeTo((*node.outputs[0].shape[:-1], keep.size))
        node.inputs = node.inputs[:1]
    else:
        node.inputs = [
            _picked(v, keep, channels, -1) if v is not None and v.is_const else v for v in node.inputs
        ]


def _constant(value: Value | None) -> Value:
    assert value is not None and value.is_const
    return value


def _fold_into_bias(graph: Graph, node: Node, value: Value, keep: np.ndarray, ranges: Ranges) -> None:
    """Take the dropped channels out of a sum and add their constant share."""
    weights = _weights(node)
    gone = ~keep
    found = ranges.get(value)
    share = np.zeros(weights.shape[0], dtype=np.int64)
    if found is not None:
        level = np.where(found.constant, found.low - node.op.x_zero_point, 0)  # type: ignore[attr-defined]
        per_channel = weights.reshape(weights.shape[0], -1, weights.shape[-1]).sum(axis=1)
        share = (per_channel[:, gone] * level[gone]).sum(axis=1)
    axis = 0 if isinstance(node.op, MatMul) else -1
    node.inputs[1] = _picked(_constant(node.inputs[1]), np.flatnonzero(keep), keep.size, axis)
    if not share.any():
        return
    out = node.outputs[0]
    readers = graph.uses().get(out, [])
    if len(readers) == 1 and readers[0].kind == "Add" and out not in graph.outputs:
        place = 1 if readers[0].inputs[0] is out else 0
        bias = readers[0].inputs[place]
        if (
            bias is not None
            and bias.data is not None
            and (bias.data.size == 1 or bias.shape[-1] == share.size)
        ):
            readers[0].inputs[place] = constant(
                bias.name, (bias.data.astype(np.int64) + share).astype(out.dtype.numpy)
            )
            out.stands_for = ()  # its share of the dropped channels is in the bias
            return
    inner = Value(f"{out.name}.live", out.type)
    node.outputs = [inner]
    bias = constant(f"{out.name}.dead", share.astype(out.dtype.numpy))
    graph.nodes.insert(graph.nodes.index(node) + 1, Node(op("Add"), [inner, bias], [out], node.name))
