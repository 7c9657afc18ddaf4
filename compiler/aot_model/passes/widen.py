"""Compute in types that C has: values of storage types (float16, bfloat16, float8, int4 …) are converted
around each operator that computes.

    y = f(x)  =  narrow(f(widen(x)))

Every operator's result is rounded to its type, as the standard says. The conversions are element-wise, so
they fuse into the loops and kernels beside them: values of these types exist in memory only, never in an
expression.
"""

from __future__ import annotations

from aot_model.ir.graph import Graph, Node, subgraphs
from aot_model.ir.nibbles import is_packed
from aot_model.ir.types import TensorType
from aot_model.ir.values import Value, constant
from aot_model.ops.conversion import Cast
from aot_model.passes.expand import expand


def widen(graph: Graph) -> bool:
    """Put conversions around operators over storage types. True when something changed."""
    changed = expand(graph, lambda node: node.op.stepwise and node.outputs[0].dtype.storage)
    nodes: list[Node] = []
    for node in graph.nodes:
        bodies = list(subgraphs(node))
        for body in bodies:
            changed |= widen(body)
        touched = any(
            v is not None and v.dtype.storage
            for k, v in enumerate([*node.inputs, *node.outputs])
            if not _kept(node, k)
        )
        if not touched or bodies or isinstance(node.op, Cast) or node.op.only_moves():
            nodes.append(node)
            continue
        inputs = [
            None if v is None else v if _kept(node, k) else _wide(v, node, nodes)
            for k, v in enumerate(node.inputs)
        ]
        types = node.infer(inputs)
        outputs, after = [], []
        for out, wide in zip(node.outputs, types, strict=False):
            if out.type == wide:
                outputs.append(out)
                continue
            value = Value(f"{out.name}.wide", wide)
            outputs.append(value)
            after.append(Node(Cast(out.dtype), [value], [out], node.name))
        changed |= inputs != node.inputs
        nodes += [Node(node.op, inputs, outputs, node.name), *after]
    graph.nodes = nodes
    return changed


def _kept(node: Node, k: int) -> bool:
    """Whether an input is a constant of 4-bit integers that the operator reads as it is."""
    value = node.input(k)
    return value is not None and k in node.op.takes_nibbles and is_packed(value)


def _wide(value: Value, node: Node, nodes: list[Node]) -> Value:
    """The value in its computing type."""
    if not value.dtype.storage:
        return value
    if value.data is not None:  # stays a constant: operators may ask for its value
        return constant(f"{value.name}.wide", value.data.astype(value.dtype.compute.numpy))
    wide = Value(f"{value.name}.wide", TensorType(value.dtype.compute, value.shape))
    nodes.append(Node(Cast(wide.dtype), [value], [wide], node.name))
    return wide
