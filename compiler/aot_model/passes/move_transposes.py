"""Move transposes towards the outputs until they meet their inverse.

    T(T(x, p), q) = T(x, p∘q)            f(T(x, p), T(y, p)) = T(f(x, y), p)          T of extents 1 = reshape

ONNX says channels first, kernels want channels last: every convolution comes with a transpose on either side. Pushing
them through element-wise operators, reductions, concatenations, pads and slices makes them cancel, so that a network
has at most one at its inputs and one at its outputs. A transpose that moves no data (all but one moved extents are 1)
becomes a reshape. A reshape between a transpose and a matrix product with constant weights is absorbed by permuting
the rows of the weights.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from aot_model.ir.graph import Graph, Node, Value, constant
from aot_model.ir.types import TensorType
from aot_model.ops.movement import Concat, Pad, ReshapeTo, Slice, Split, Transpose, View, ints
from aot_model.ops.nn import MatMul
from aot_model.ops.reduction import Reduction
from aot_model.ops.resample import Resampling

Perm = tuple[int, ...]


def move_transposes(graph: Graph) -> bool:
    """Push transposes down until nothing moves. True when something changed."""
    changed = False
    limit = 20 * len(graph.nodes) + 100
    while limit and _step(graph):
        changed, limit = True, limit - 1
    return changed


def inverse(perm: Perm) -> Perm:
    return tuple(int(i) for i in np.argsort(perm))


def permuted(values: tuple[int, ...], perm: Perm) -> tuple[int, ...]:
    return tuple(values[p] for p in perm)


def moves_nothing(shape: tuple[int, ...], perm: Perm) -> bool:
    """Whether the axes longer than 1 keep their order."""
    order = [p for p in perm if shape[p] != 1]
    return order == sorted(order)


def _step(graph: Graph) -> bool:
    producer, uses = graph.producers(), graph.uses()
    for node in graph.nodes:
        if isinstance(node.op, Transpose) and _simplify(graph, node, producer):
            return True
        rule = _rule_for(node)
        if rule is not None and rule(graph, node, producer, uses):
            graph.prune()
            return True
    return False


def _perm(node: Node | None) -> Perm | None:
    if node is None or not isinstance(node.op, Transpose):
        return None
    return node.op.permutation(node.outputs[0].type.rank)


def _simplify(graph: Graph, node: Node, producer: dict[Value, Node]) -> bool:
    """Transposes of transposes, identities and those that move nothing."""
    (x,), out = node.inputs, node.outputs[0]
    assert x is not None
    perm = _perm(node)
    assert perm is not None
    before = producer.get(x)
    inner = _perm(before)
    if before is not None and inner is not None:
        node.inputs = [before.inputs[0]]
        node.op = Transpose(tuple(inner[p] for p in perm))
        graph.prune()
        return True
    if perm == tuple(range(len(perm))) and out not in graph.outputs:
        graph.nodes.remove(node)
        graph.replace(out, x)
        return True
    if moves_nothing(x.shape, perm):
        node.op = ReshapeTo(out.shape)
        return True
    if before is not None and isinstance(before.op, View) and before.op.movement:
        source = before.inputs[0]
        assert source is not None
        # A reshape that only drops or adds extents of 1 can be passed through by the transpose.
        if source in producer and _perm(producer[source]) is not None and moves_nothing(x.shape, perm):
            node.op = ReshapeTo(out.shape)
            return True
    return False


def _rule_for(node: Node):  # type: ignore[no-untyped-def]
    if node.op.elementwise:
        return _elementwise
    if isinstance(node.op, Reduction):
        return _reduction
    if isinstance(node.op, Concat):
        return _concat
    if isinstance(node.op, (Pad, Slice, Split)):
        return _axis_operator
    if isinstance(node.op, Resampling):
        return _resampling
    if isinstance(node.op, View):
        return _view
    return None


def _new_value(like: Value, shape: tuple[int, ...], suffix: str) -> Value:
    return Value(f"{like.name}.{suffix}", TensorType(like.dtype, shape), quantisation=like.quantisation)


def _finish(graph: Graph, node: Node, op: object, inputs: list[Value | None], perm: Perm) -> None:
    """Replace node by op(inputs) followed by a transpose that restores the user's order."""
    outs = []
    place = graph.nodes.index(node)
    back = inverse(perm)
    after = []
    for out in node.outputs:
        inner = _new_value(out, permuted(out.shape, back), "cl")
        outs.append(inner)
        after.append(Node(Transpose(perm), [inner], [out], node.name))
    graph.nodes[place : place + 1] = [Node(op, inputs, outs, node.name), *after]  # type: ignore[arg-type]


def _elementwise(graph: Graph, node: Node, producer: dict[Value, Node], uses: dict[Value, list[Node]]) -> bool:
    out = node.outputs[0]
    if len(node.outputs) != 1:
        return False
    perms = [_perm(producer.get(v)) for v in node.inputs if v is not None]
    candidates = [p for p in perms if p is not None and len(p) == out.type.rank]
    if not candidates:
        return False
    perm = candidates[0]
    gain = 0
    for value in node.inputs:
        if value is None or value.is_const or value.type.elements <= 1:
            continue
        own = _perm(producer.get(value))
        if own == perm:
            gain += value.type.elements
        elif not moves_nothing(_padded(value.shape, out.type.rank), inverse(perm)):
            gain -= value.type.elements
    if gain <= 0:
        return False
    inputs: list[Value | None] = []
    for value in node.inputs:
        inputs.append(None if value is None else _reordered(graph, node, value, perm, producer, out.type.rank))
    _finish(graph, node, node.op, inputs, perm)
    return True


def _padded(shape: tuple[int, ...], rank: int) -> tuple[int, ...]:
    return (1,) * (rank - len(shape)) + shape


def _reordered(graph: Graph, node: Node, value: Value, perm: Perm, producer: dict[Value, Node], rank: int) -> Value:
    """The value as it must be before a transpose by perm."""
    before = producer.get(value)
    if _perm(before) == perm:
        assert before is not None
        source = before.inputs[0]
        assert source is not None
        return source
    if value.type.elements == 1 and len(value.shape) < rank:
        return value
    shape = _padded(value.shape, rank)
    back = inverse(perm)
    if value.data is not None:
        return constant(value.name, np.ascontiguousarray(value.data.reshape(shape).transpose(back)), value.quantisation)
    place = graph.nodes.index(node)
    if value.shape != shape:
        wide = _new_value(value, shape, "wide")
        graph.nodes.insert(place, Node(ReshapeTo(shape), [value], [wide], node.name))
        value, place = wide, place + 1
    moved = _new_value(value, permuted(shape, back), "cl")
    graph.nodes.insert(place, Node(Transpose(back), [value], [moved], node.name))
    return moved


def _only_input(node: Node, producer: dict[Value, Node]) -> tuple[Value, Perm] | None:
    x = node.inputs[0]
    before = producer.get(x) if x is not None else None
    perm = _perm(before)
    if before is None or perm is None or before.inputs[0] is None:
        return None
    return before.inputs[0], perm


def _reduction(graph: Graph, node: Node, producer: dict[Value, Node], uses: dict[Value, list[Node]]) -> bool:
    found = _only_input(node, producer)
    if found is None or (len(node.inputs) > 1 and node.inputs[1] is not None and node.inputs[1].data is None):
        return False
    source, perm = found
    assert isinstance(node.op, Reduction)
    axes = sorted(perm[a] for a in node.op.axes(node.inputs))
    axes_value = constant(f"{node.name}.axes", np.asarray(axes, dtype=np.int64))
    if node.op.keepdims:
        _finish(graph, node, node.op, [source, axes_value], perm)
        return True
    kept = [p for k, p in enumerate(perm) if p not in axes]
    if kept != sorted(kept):
        return False
    node.inputs = [source, axes_value]
    return True


def _concat(graph: Graph, node: Node, producer: dict[Value, Node], uses: dict[Value, list[Node]]) -> bool:
    values = [v for v in node.inputs if v is not None]
    perms = [_perm(producer.get(v)) for v in values]
    perm = next((p for p in perms if p is not None), None)
    if perm is None:
        return False
    gain = sum(
        v.type.elements if p == perm else 0 if v.is_const or moves_nothing(v.shape, inverse(perm)) else -v.type.elements
        for v, p in zip(values, perms, strict=True)
    )
    if gain <= 0:
        return False
    assert isinstance(node.op, Concat)
    rank = len(perm)
    inputs: list[Value | None] = [_reordered(graph, node, v, perm, producer, rank) for v in values]
    _finish(graph, node, Concat(perm[node.op.axis % rank]), inputs, perm)
    return True


def _axis_operator(graph: Graph, node: Node, producer: dict[Value, Node], uses: dict[Value, list[Node]]) -> bool:
    """Pad, Slice and Split with constant operands: name the axes in the new order."""
    found = _only_input(node, producer)
    if found is None or any(v is not None and v.data is None for v in node.inputs[1:]):
        return False
    source, perm = found
    rank = len(perm)
    data = [None if v is None else v.data for v in node.inputs]
    if isinstance(node.op, Split):
        op: object = Split(perm[node.op.axis % rank], node.op.num_outputs)
        _finish(graph, node, op, [source, *node.inputs[1:]], perm)
        return True
    slot = 3
    old = data[slot] if len(data) > slot else None
    first = data[1]
    assert first is not None
    count = len(ints(first)) // (2 if isinstance(node.op, Pad) else 1)
    axes = range(count) if old is None else ints(old)
    moved = constant(f"{node.name}.axes", np.asarray([perm[a % rank] for a in axes], dtype=np.int64))
    inputs = list(node.inputs) + [None] * (slot + 1 - len(node.inputs))
    inputs[0], inputs[slot] = source, moved
    _finish(graph, node, node.op, inputs, perm)
    return True


def _resampling(graph: Graph, node: Node, producer: dict[Value, Node], uses: dict[Value, list[Node]]) -> bool:
    """The tables stay, their axes get the names of the new order."""
    found = _only_input(node, producer)
    if found is None:
        return False
    source, perm = found
    assert isinstance(node.op, Resampling)
    _finish(graph, node, replace(node.op, axes=tuple(perm[a] for a in node.op.axes)), [source, *node.inputs[1:]], perm)
    return True


def _view(graph: Graph, node: Node, producer: dict[Value, Node], uses: dict[Value, list[Node]]) -> bool:
    """reshape(transpose(x)): drop the transpose where the reshape needs none, or into the weights of a product."""
    found = _only_input(node, producer)
    if found is None:
        return False
    source, perm = found
    out = node.outputs[0]
    if moves_nothing(source.shape, perm):
        node.op, node.inputs = ReshapeTo(out.shape), [source]
        return True
    if _keeps_axes(node, perm, source, graph):
        return True
    return _into_weights(graph, node, source, perm, uses)


def _keeps_axes(node: Node, perm: Perm, source: Value, graph: Graph) -> bool:
    """A reshape that only adds or removes extents of 1: transpose after it instead."""
    x, out = node.inputs[0], node.outputs[0]
    assert x is not None
    if [d for d in x.shape if d != 1] != [d for d in out.shape if d != 1]:
        return False
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
    inner = _new_value(out, tuple(inner_shape), "cl")
    place = graph.nodes.index(node)
    graph.nodes[place : place + 1] = [
        Node(ReshapeTo(tuple(inner_shape)), [source], [inner], node.name),
        Node(Transpose(tuple(inner_perm)), [inner], [out], node.name),
    ]
    return True


def _into_weights(graph: Graph, node: Node, source: Value, perm: Perm, uses: dict[Value, list[Node]]) -> bool:
    """matmul(reshape(transpose(x)), w) = matmul(reshape(x), w with permuted rows)."""
    out = node.outputs[0]
    readers = uses.get(out, [])
    batch = source.shape[0] if perm[0] == 0 else 0
    if not readers or out in graph.outputs or out.type.rank != 2 or out.shape[0] != batch:
        return False
    if any(not isinstance(r.op, MatMul) or r.inputs[0] is not out or r.inputs[1] is None or r.inputs[1].data is None for r in readers):
        return False
    rows = np.arange(out.shape[1]).reshape([source.shape[p] for p in perm[1:]])
    order = rows.transpose([p - 1 for p in inverse(perm)[1:]]).ravel()
    for reader in readers:
        weights = reader.inputs[1]
        assert weights is not None and weights.data is not None
        if weights.type.rank != 2:
            return False
    for reader in dict.fromkeys(readers):
        weights = reader.inputs[1]
        assert weights is not None and weights.data is not None
        reader.inputs[1] = constant(weights.name, weights.data[order])
    node.op, node.inputs = ReshapeTo(out.shape), [source]
    return True
