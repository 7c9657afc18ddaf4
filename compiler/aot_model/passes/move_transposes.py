"""Move transposes towards the outputs until they meet their inverse.

    T(T(x, p), q) = T(x, p∘q)            f(T(x, p), T(y, p)) = T(f(x, y), p)          T of extents 1 = reshape

ONNX says channels first, kernels want channels last: every convolution comes with a transpose on either side.
Pushing them through element-wise operators, quantisation, reductions, concatenations, pads and slices makes
them cancel, so that a network has at most one at its inputs and one at its outputs. A transpose that moves no
data becomes a reshape. One before a reshape and a product with constant weights permutes their rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from aot_model.ir.graph import Graph, Node
from aot_model.ir.operator import Operator
from aot_model.ir.values import Value, constant
from aot_model.ops.extremes import Extremes
from aot_model.ops.matmul import MatMul
from aot_model.ops.movement import Concat, Pad, Slice, Split, Transpose
from aot_model.ops.quantised_linear import DequantizeLinear, QuantizeLinear
from aot_model.ops.reduction import Reduction, WideSum
from aot_model.ops.registry import ints, normal_axis
from aot_model.ops.resample import Resampling
from aot_model.ops.views import ReshapeTo, Reshaping
from aot_model.passes.explain import refuse
from aot_model.passes.sweep import Sweep, changed_value

Perm = tuple[int, ...]

Rule = Callable[["_Sweep", Node], "list[Node] | None"]

MAX_SWEEPS = 8


def move_transposes(graph: Graph) -> bool:
    """Push transposes down until nothing moves. True when something changed."""
    for sweep in range(MAX_SWEEPS):
        if not _Sweep(graph).run():
            return sweep > 0
    return True


class _Sweep(Sweep):
    """A transpose moves through the whole graph in one walk."""

    def rewritten(self, node: Node) -> list[Node] | None:
        return _rewritten(self, node)

    def perm(self, value: Value | None) -> Perm | None:
        """The permutation of the transpose that makes a value."""
        return None if value is None else _perm(self.producer.get(value))


def inverse(perm: Perm) -> Perm:
    return tuple(int(i) for i in np.argsort(perm))


def permuted(values: tuple[int, ...], perm: Perm) -> tuple[int, ...]:
    return tuple(values[p] for p in perm)


def moves_nothing(shape: tuple[int, ...], perm: Perm) -> bool:
    """Whether the axes longer than 1 keep their order."""
    order = [p for p in perm if shape[p] != 1]
    return order == sorted(order)


def _rewritten(sweep: _Sweep, node: Node) -> list[Node] | None:
    """What stands for a node; None when it stays."""
    if isinstance(node.op, Transpose):
        return _simplified(sweep, node)
    rule = _rule_for(node)
    if rule is not None:
        return rule(sweep, node)
    if any(sweep.perm(v) is not None for v in node.inputs):
        refuse(node, "no transpose moves through it")
    return None


def _perm(node: Node | None) -> Perm | None:
    if node is None or not isinstance(node.op, Transpose):
        return None
    return node.op.permutation(node.outputs[0].type.rank)


def _simplified(sweep: _Sweep, node: Node) -> list[Node] | None:
    """Transposes of transposes, identities and those that move nothing."""
    (x,), out = node.inputs, node.outputs[0]
    perm = _perm(node)
    assert x is not None and perm is not None
    inner = sweep.perm(x)
    if inner is not None:
        return [
            Node(Transpose(tuple(inner[p] for p in perm)), [sweep.producer[x].inputs[0]], [out], node.name)
        ]
    if perm == tuple(range(len(perm))) and out not in sweep.outputs:
        sweep.renamed[out] = x
        return []
    if moves_nothing(x.shape, perm):
        return [Node(ReshapeTo(out.shape), [x], [out], node.name)]
    return None


def _rule_for(node: Node) -> Rule | None:
    if node.op.elementwise:
        return _elementwise
    for kinds, rule in _RULES:
        if isinstance(node.op, kinds):
            return rule
    return None


def _restored(node: Node, op: Operator, inputs: list[Value | None], perm: Perm) -> list[Node]:
    """op(inputs), each result followed by a transpose that restores the user's order."""
    inner = [changed_value(out, permuted(out.shape, inverse(perm)), "cl") for out in node.outputs]
    back = [
        Node(Transpose(perm), [moved], [out], node.name)
        for moved, out in zip(inner, node.outputs, strict=True)
    ]
    return [Node(op, inputs, inner, node.name), *back]


def _elementwise(sweep: _Sweep, node: Node) -> list[Node] | None:
    out = node.outputs[0]
    candidates = [p for p in map(sweep.perm, node.inputs) if p is not None]
    if not candidates:
        return None
    perm = next((p for p in candidates if len(p) == out.type.rank), None)
    if perm is None:
        refuse(node, "its result has more axes than what is transposed")
        return None
    gain = 0
    for value in node.inputs:
        if value is None or value.is_const or value.type.elements <= 1:
            continue
        if sweep.perm(value) == perm:
            gain += value.type.elements
        elif not moves_nothing(_padded(value.shape, out.type.rank), inverse(perm)):
            gain -= value.type.elements
    if gain <= 0:
        refuse(node, "more elements would be transposed on the way in than are saved")
        return None
    before: list[Node] = []
    inputs = [
        None if v is None else _reordered(sweep, node, v, perm, out.type.rank, before) for v in node.inputs
    ]
    return [*before, *_restored(node, node.op, inputs, perm)]


def _padded(shape: tuple[int, ...], rank: int) -> tuple[int, ...]:
    return (1,) * (rank - len(shape)) + shape


def _reordered(sweep: _Sweep, node: Node, value: Value, perm: Perm, rank: int, before: list[Node]) -> Value:
    """The value as it must be before a transpose by perm; the nodes that make it are added to `before`."""
    if sweep.perm(value) == perm:
        source = sweep.producer[value].inputs[0]
        assert source is not None
        return source
    if value.type.elements == 1 and len(value.shape) < rank:
        return value
    shape = _padded(value.shape, rank)
    back = inverse(perm)
    if value.data is not None:
        return constant(
            value.name, np.ascontiguousarray(value.data.reshape(shape).transpose(back)), value.quantisation
        )
    if value.shape != shape:
        wide = changed_value(value, shape, "wide")
        before.append(Node(ReshapeTo(shape), [value], [wide], node.name))
        value = wide
    moved = changed_value(value, permuted(shape, back), "cl")
    before.append(Node(Transpose(back), [value], [moved], node.name))
    return moved


def _source(sweep: _Sweep, node: Node) -> tuple[Value, Perm] | None:
    """What the transpose before the node's first input reads, and its permutation."""
    x = node.inputs[0]
    perm = sweep.perm(x)
    if x is None or perm is None:
        return None
    source = sweep.producer[x].inputs[0]
    return None if source is None else (source, perm)


def _reduction(sweep: _Sweep, node: Node) -> list[Node] | None:
    found = _source(sweep, node)
    if found is None:
        return None
    source, perm = found
    assert isinstance(node.op, Reduction)
    axes = sorted(perm[a] for a in node.op.axes(node.inputs))
    axes_value = constant(f"{node.name}.axes", np.asarray(axes, dtype=np.int64))
    return _without(node, node.op, [source, axes_value], axes, bool(node.op.keepdims), perm)


def _without(
    node: Node, op: Operator, inputs: list[Value | None], axes: list[int], keeps: bool, perm: Perm
) -> list[Node] | None:
    """What stands for a reduction of some axes; the others must keep their order where those are dropped."""
    if keeps:
        return _restored(node, op, inputs, perm)
    kept = [p for p in perm if p not in axes]
    if kept != sorted(kept):
        refuse(node, "the axes that it keeps are out of order")
        return None
    return [Node(op, inputs, node.outputs, node.name)]


def _wide_sum(sweep: _Sweep, node: Node) -> list[Node] | None:
    found = _source(sweep, node)
    if found is None:
        return None
    source, perm = found
    assert isinstance(node.op, WideSum)
    axes = sorted(perm[a] for a in node.op.axes)
    return _without(node, replace(node.op, axes=tuple(axes)), [source], axes, bool(node.op.keepdims), perm)


def _anywhere(sweep: _Sweep, node: Node) -> list[Node] | None:
    """What does not depend on the order of elements."""
    found = _source(sweep, node)
    return None if found is None else [Node(node.op, [found[0]], node.outputs, node.name)]


def _quantisation(sweep: _Sweep, node: Node) -> list[Node] | None:
    """Between floats and integers: scales belong to all elements, or to an axis that has another place."""
    found = _source(sweep, node)
    if found is None:
        return None
    (source, perm), op = found, node.op
    assert isinstance(op, (QuantizeLinear, DequantizeLinear))
    if any(v is not None and v.type.elements > 1 for v in node.inputs[1:]):
        if op.block_size:
            refuse(node, "its scales belong to blocks")
            return None
        op = replace(op, axis=perm[normal_axis(op.axis, len(perm))])
    return _restored(node, op, [source, *node.inputs[1:]], perm)


def _concat(sweep: _Sweep, node: Node) -> list[Node] | None:
    values = [v for v in node.inputs if v is not None]
    perms = [sweep.perm(v) for v in values]
    perm = next((p for p in perms if p is not None), None)
    if perm is None:
        return None
    gain = sum(
        v.type.elements
        if p == perm
        else 0
        if v.is_const or moves_nothing(v.shape, inverse(perm))
        else -v.type.elements
        for v, p in zip(values, perms, strict=True)
    )
    if gain <= 0:
        refuse(node, "more elements would be transposed on the way in than are saved")
        return None
    assert isinstance(node.op, Concat)
    before: list[Node] = []
    inputs: list[Value | None] = [_reordered(sweep, node, v, perm, len(perm), before) for v in values]
    return [*before, *_restored(node, Concat(perm[node.op.axis % len(perm)]), inputs, perm)]


def _axis_operator(sweep: _Sweep, node: Node) -> list[Node] | None:
    """Pad, Slice and Split with constant operands: name the axes in the new order."""
    found = _source(sweep, node)
    if found is None:
        return None
    if any(v is not None and v.data is None for v in node.inputs[1:]):
        refuse(node, "its operands are not constant")
        return None
    source, perm = found
    rank = len(perm)
    if isinstance(node.op, Split):
        return _restored(
            node, Split(perm[node.op.axis % rank], node.op.num_outputs), [source, *node.inputs[1:]], perm
        )
    data = [None if v is None else v.data for v in node.inputs]
    slot = 3
    old = data[slot] if len(data) > slot else None
    first = data[1]
    assert first is not None
    count = len(ints(first)) // (2 if isinstance(node.op, Pad) else 1)
    axes = range(count) if old is None else ints(old)
    moved = constant(f"{node.name}.axes", np.asarray([perm[a % rank] for a in axes], dtype=np.int64))
    inputs = list(node.inputs) + [None] * (slot + 1 - len(node.inputs))
    inputs[0], inputs[slot] = source, moved
    return _restored(node, node.op, inputs, perm)


def _resampling(sweep: _Sweep, node: Node) -> list[Node] | None:
    """The tables stay, their axes get the names of the new order."""
    found = _source(sweep, node)
    if found is None:
        return None
    source, perm = found
    assert isinstance(node.op, Resampling)
    return _restored(
        node, replace(node.op, axes=tuple(perm[a] for a in node.op.axes)), [source, *node.inputs[1:]], perm
    )


def _view(sweep: _Sweep, node: Node) -> list[Node] | None:
    """reshape(transpose(x)): the transpose after it, or into the weights of a product."""
    found = _source(sweep, node)
    if found is None:
        return None
    source, perm = found
    return _keeps_axes(node, perm, source) or _into_weights(sweep, node, source, perm)


def _keeps_axes(node: Node, perm: Perm, source: Value) -> list[Node] | None:
    """A reshape that only adds or removes extents of 1: transpose after it instead."""
    x, out = node.inputs[0], node.outputs[0]
    assert x is not None
    if [d for d in x.shape if d != 1] != [d for d in out.shape if d != 1]:
        return None
    # Axes of x (= transposed source) longer than 1, in order; they are the long axes of out, in order.
    long_x = [k for k, d in enumerate(x.shape) if d != 1]
    long_out = [k for k, d in enumerate(out.shape) if d != 1]
    source_rank = {axis: r for r, axis in enumerate(sorted(perm[k] for k in long_x))}
    order = [source_rank[perm[k]] for k in long_x]
    inner_shape = list(out.shape)
    inner_perm = list(range(out.type.rank))
    by_rank = sorted(range(len(order)), key=lambda i: order[i])
    for slot, i in zip(long_out, by_rank, strict=True):
        inner_shape[slot] = out.shape[long_out[i]]
    for i, r in enumerate(order):
        inner_perm[long_out[i]] = long_out[r]
    inner = changed_value(out, tuple(inner_shape), "cl")
    return [
        Node(ReshapeTo(tuple(inner_shape)), [source], [inner], node.name),
        Node(Transpose(tuple(inner_perm)), [inner], [out], node.name),
    ]


def _into_weights(sweep: _Sweep, node: Node, source: Value, perm: Perm) -> list[Node] | None:
    """matmul(reshape(transpose(x)), w) = matmul(reshape(x), w with permuted rows)."""
    out = node.outputs[0]
    readers = list(dict.fromkeys(sweep.uses.get(out, [])))
    batch = source.shape[0] if perm[0] == 0 else 0
    if not readers or out in sweep.outputs or out.type.rank != 2 or out.shape[0] != batch:
        refuse(node, "its result is not a batch of rows")
        return None
    if not all(_multiplies_rows(r, out) for r in readers):
        refuse(node, "not all of its readers are matrix products with constant weights")
        return None
    rows = np.arange(out.shape[1]).reshape([source.shape[p] for p in perm[1:]])
    order = rows.transpose([p - 1 for p in inverse(perm)[1:]]).ravel()
    for reader in readers:
        weights = reader.inputs[1]
        assert weights is not None and weights.data is not None
        reader.inputs[1] = constant(weights.name, weights.data[order], weights.quantisation)
    out.stands_for = ()  # its rows are in another order now
    return [Node(ReshapeTo(out.shape), [source], [out], node.name)]


def _multiplies_rows(reader: Node, rows: Value) -> bool:
    weights = reader.input(1)
    return (
        isinstance(reader.op, MatMul)
        and reader.inputs[0] is rows
        and weights is not None
        and weights.data is not None
        and weights.type.rank == 2
    )


_RULES: tuple[tuple[type[Operator] | tuple[type[Operator], ...], Rule], ...] = (
    (Reduction, _reduction),
    (WideSum, _wide_sum),
    (Extremes, _anywhere),
    ((QuantizeLinear, DequantizeLinear), _quantisation),
    (Concat, _concat),
    ((Pad, Slice, Split), _axis_operator),
    (Resampling, _resampling),
    (Reshaping, _view),
)
