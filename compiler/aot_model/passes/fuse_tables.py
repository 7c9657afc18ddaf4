"""Functions of one 8-bit tensor become one table.

    x * sigmoid(x)  =  table[x]        as TFLite writes SiLU: LOGISTIC and MUL of the same tensor
    Q(elu(DQ(x)))   =  table[x]        what a converter leaves in floats

Whatever element-wise operators stand between, the value of all 256 arguments is computed here, by the
operators themselves. Floats may round otherwise where the library runs: where they are among them, there is a
table if all 256 integers are the same however they round (ir/enclosure.py). ONNX's QuantizeLinear, whose
meaning is that of real numbers, is fuse_qdq's.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from aot_model.ir.enclosure import enclosure
from aot_model.ir.expr import Expr, Index, Leaf, const
from aot_model.ir.graph import Graph, Node
from aot_model.ir.operator import OperatorError
from aot_model.ir.types import DType
from aot_model.ir.values import Value, constant
from aot_model.ops.quantised_linear import DequantizeLinear, QuantizeLinear
from aot_model.ops.quantised_tables import Lookup, lookup
from aot_model.passes.explain import refuse
from aot_model.passes.fold_constants import compute

LEAST = 2
"""Operators that a table replaces; one alone is hardly cheaper in a table, which takes 256 bytes of flash.
What others read too is not replaced.
"""
MOST = 32
CONVERSIONS = (QuantizeLinear, DequantizeLinear)
FLOATS = (DType.FLOAT32, DType.BOOL)


def fuse_tables(graph: Graph) -> bool:
    """Replace chains of operators on one tensor of bytes. True when something changed."""
    source = _sources(graph)
    producer, uses = graph.producers(), graph.uses()
    made: dict[Node, Node] = {}
    for node in graph.nodes:
        out, x = node.outputs[0], source.get(node.outputs[0])
        if x is None or out.dtype.bits != 8:
            continue
        if out not in graph.outputs and all(source.get(n.outputs[0]) is x for n in uses.get(out, [])):
            continue  # only what becomes tables itself reads it
        cone = between(x, out, producer)
        if _vanishing(cone, graph, uses) < LEAST and not _reads_twice(node, x):
            continue
        if len(cone) > MOST:
            refuse(node, f"a function of '{x.name}' by {len(cone)} operators, more than {MOST}")
            continue
        values = _values(x, cone)
        if values is None:
            refuse(
                node,
                f"for some value of '{x.name}' numpy does not compute it, or it is not the same integer "
                "however floats are rounded",
            )
            continue
        made[node] = Node(lookup(x.dtype, values, out.dtype), [x], [out], node.name)
    if not made:
        return False
    graph.nodes = [made.get(n, n) for n in graph.nodes]
    graph.prune()
    return True


def _sources(graph: Graph) -> dict[Value, Value]:
    """The tensor of bytes that a value is an element-wise function of, the first of them."""
    source: dict[Value, Value] = {}
    for node in graph.nodes:
        inputs = [v for v in node.inputs if v is not None and not (v.data is not None and v.data.size == 1)]
        roots = {source.get(v, v) for v in inputs}
        if len(roots) != 1 or not (node.op.elementwise or isinstance(node.op, CONVERSIONS)):
            continue
        (x,), out = roots, node.outputs[0]
        values = [v for v in (*node.inputs, out) if v is not None]
        if (
            x.dtype.bits == 8
            and x.dtype.is_integer
            and x.shape == out.shape
            and all(v.dtype in FLOATS or (v.dtype.is_integer and not v.dtype.storage) for v in values)
        ):
            source[out] = x
    return source


def between(x: Value, out: Value, producer: dict[Value, Node]) -> list[Node]:
    """The nodes from x to out, in their order."""
    found: list[Node] = []

    def visit(value: Value | None) -> None:
        if value is None or value is x or value not in producer or producer[value] in found:
            return
        node = producer[value]
        for v in node.inputs:
            visit(v)
        found.append(node)

    visit(out)
    return found


def _vanishing(cone: list[Node], graph: Graph, uses: dict[Value, list[Node]]) -> int:
    """How many nodes nothing reads once the last is a table."""
    gone = {cone[-1]}
    for node in reversed(cone[:-1]):
        out = node.outputs[0]
        if out not in graph.outputs and all(reader in gone for reader in uses.get(out, [])):
            gone.add(node)
    return len(gone)


def _reads_twice(node: Node, x: Value) -> bool:
    """A product of a tensor with itself is worth a table alone; a table is one already."""
    return not isinstance(node.op, Lookup) and sum(v is x for v in node.inputs) > 1


def _values(x: Value, cone: list[Node]) -> list[int] | None:
    """The function at all values of x, the smallest first."""
    low, high = (int(v) for v in x.dtype.limits)
    every = np.arange(low, high + 1).astype(x.dtype.numpy)
    floats = any(v is not None and v.dtype.is_float for n in cone for v in n.inputs)
    if floats:
        return surely(x, cone, every, {})
    found = computed(x, cone, every.reshape((*[1] * max(x.type.rank - 1, 0), every.size)))
    return None if found is None else [int(v) for v in found.reshape(-1)]


def surely(x: Value, cone: list[Node], every: np.ndarray, numbers: Mapping[Value, Expr]) -> list[int] | None:
    """Of floats: the integers, where all are known. numbers: what constants of several elements stand for."""
    producer = {n.outputs[0]: n for n in cone}
    argument = Leaf(x.dtype, "x")

    def at(value: Value, index: Index) -> Expr:
        if value is x:
            return argument
        if value in numbers:
            return numbers[value]
        if value.data is not None:
            return const(value.data.reshape(-1)[0].item(), value.dtype)
        node = producer[value]
        return node.op.express(at, node.inputs, index, 0)

    out = cone[-1].outputs[0]
    ends = enclosure(at(out, tuple(const(0) for _ in out.shape)), argument, every)
    if ends is None or not np.array_equal(*ends):
        return None
    return [int(v) for v in np.broadcast_to(ends[0], every.shape)]


def computed(x: Value, cone: list[Node], every: np.ndarray) -> np.ndarray | None:
    """Of integers: what the operators' own functions give where x is `every`, in that shape."""
    known: dict[Value, Value] = {x: constant("every", every)}
    for node in cone:
        inputs = [known.get(v, v) if v is not None else None for v in node.inputs]
        try:
            (made,) = node.op.infer(inputs)
            data = compute(Node(node.op, inputs, [Value("value", made)], node.name))
        except OperatorError:
            return None
        if data is None or data[0].shape != every.shape:
            return None
        known[node.outputs[0]] = constant("value", data[0])
    return known[cone[-1].outputs[0]].data
