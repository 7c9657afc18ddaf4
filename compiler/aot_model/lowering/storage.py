"""Which values get memory, and which are computed where they are read.

A value is *stored* when it is an output, when a kernel writes or reads it, or when computing it at every
place of use would repeat work. Everything else is fused into its readers by substitution.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from aot_model.ir.graph import Graph, Node
from aot_model.ir.values import Value
from aot_model.ops.movement import Concat

MAX_FUSED_OPERATIONS = 48
"""Longer expressions are cut: C compilers spill, and readers get lost."""
MAX_FUSED_DEPTH = 32
"""Of movements within movements, which cost nothing but the compiler's stack."""
INDEXED_COST = 4
"""How often an index that is read from memory is written out: its range is checked where it is used."""
_INDEXED = frozenset(("Gather", "GatherND", "GatherElements"))


def stored_values(
    graph: Graph, memory_reads: Callable[[Node], Iterable[Value] | None], absorbed: set[Value]
) -> set[Value]:
    """The values of a graph that live in memory.

    memory_reads: what a node that is a call of its own reads from memory; None for an expression.
    absorbed: values that exist only inside the fused tail of a kernel.
    """
    uses = graph.uses()
    stored: set[Value] = {v for v in graph.outputs if not v.is_const} | set(graph.inputs)
    for node in graph.nodes:
        reads = memory_reads(node)
        if reads is not None:
            stored.update(v for v in reads if not v.is_const)
            stored.update(node.outputs)
    weight: dict[Value, int] = {}
    extent: dict[Value, tuple[int, int]] = {}
    reducing: set[Value] = set()
    for node in graph.nodes:
        own = 0 if node.op.movement else 1
        inputs = [v for v in node.inputs if v is not None and not v.is_const]
        fused = [v for v in inputs if v not in stored and v in weight]
        total = own + sum(weight[v] for v in fused)
        depth = 1 + max((extent[v][0] for v in fused), default=0)
        cells = sum(extent[v][1] if v in weight and v not in stored else 1 for v in inputs)
        cells *= INDEXED_COST if node.op.name in _INDEXED else 1
        for out in node.outputs:
            if out in absorbed or out in stored:
                continue
            weight[out] = total
            extent[out] = depth, cells
            if node.op.reducing or any(v in reducing for v in fused):
                reducing.add(out)
            if (
                depth > MAX_FUSED_DEPTH
                or cells > MAX_FUSED_OPERATIONS
                or _must_store(node, out, uses.get(out, []), weight[out], out in reducing)
            ):
                stored.add(out)
    return stored - absorbed


def _must_store(node: Node, out: Value, readers: list[Node], weight: int, reducing: bool) -> bool:
    if weight > MAX_FUSED_OPERATIONS:
        return True
    if weight == 0:
        return False
    if len(readers) != 1:
        return True
    reader = readers[0]
    same_shape = reader.op.elementwise and all(v.shape == out.shape for v in reader.outputs)
    if reducing:
        return not same_shape
    return not (same_shape or reads_once(reader, out))


def reads_once(reader: Node, value: Value) -> bool:
    """Whether a reader reads every element of a value at most once."""
    if reader.op.elementwise:
        return all(v.type.elements == value.type.elements for v in reader.outputs)
    if reader.op.movement and not isinstance(reader.op, Concat):
        return sum(v.type.elements for v in reader.outputs) <= value.type.elements
    return reader.op.movement or (reader.op.reducing and not reader.op.rereads)
