"""Which values get memory, and which are computed where they are read.

A value is *stored* when it is an output, when a kernel writes or reads it, or when computing it at every
place of use would repeat work. Everything else is fused into its readers by substitution. What several read
whose results meet again at the same element is computed once: it is a local of one loop.
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
    made: dict[Value, Node] = {}
    """By expressions."""
    for node in graph.nodes:
        reads = memory_reads(node)
        if reads is not None:
            stored.update(reads)
            stored.update(node.outputs)
        else:
            made.update(dict.fromkeys(node.outputs, node))
    weight: dict[Value, int] = {}
    extent: dict[Value, tuple[int, int]] = {}
    reducing: set[Value] = set()
    shared: list[Value] = []
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
                if weight[out] > 0 and len(uses.get(out, [])) > 1:
                    shared.append(out)
    for value in reversed(shared):
        if _meets(value, stored, absorbed, uses, made):
            stored.remove(value)
    return stored - absorbed


def _meets(
    value: Value,
    stored: set[Value],
    absorbed: set[Value],
    uses: dict[Value, list[Node]],
    made: dict[Value, Node],
) -> bool:
    """Whether all that is made of a value is one stored value, element by element, and not too much work."""
    ends: set[Value] = set()
    waiting, seen = [value], {value}
    while waiting:
        one = waiting.pop()
        for reader in uses.get(one, []):
            (out,) = reader.outputs if len(reader.outputs) == 1 else (None,)
            if out is None or out.shape != value.shape or not reader.op.by_element(reader.inputs):
                return False
            if out in absorbed or made.get(out) is not reader:
                return False
            if out in stored:
                ends.add(out)
            elif out not in seen:
                seen.add(out)
                waiting.append(out)
    return len(ends) == 1 and _operations(ends.pop(), value, stored, made) <= MAX_FUSED_OPERATIONS


def _operations(of: Value, but: Value, stored: set[Value], made: dict[Value, Node]) -> int:
    """Of the expression of a stored value, `but` not being stored: each as often as it is written out, which
    is what the compiler's own work goes by.
    """
    known: dict[Value, int] = {}

    def count(v: Value) -> int:
        if v not in known:
            inner = (
                x for x in made[v].inputs if x is not None and x in made and (x is but or x not in stored)
            )
            known[v] = (not made[v].op.movement) + sum(count(x) for x in inner)
        return known[v]

    return count(of)


def _must_store(node: Node, out: Value, readers: list[Node], weight: int, reducing: bool) -> bool:
    if weight > MAX_FUSED_OPERATIONS:
        return True
    if weight == 0:
        return False
    if len(readers) != 1:
        return True
    reader = readers[0]
    same_shape = reader.op.by_element(reader.inputs) and all(v.shape == out.shape for v in reader.outputs)
    if reducing:
        return not same_shape
    return not (same_shape or reads_once(reader, out))


def reads_once(reader: Node, value: Value) -> bool:
    """Whether a reader reads every element of a value at most once."""
    if reader.op.by_element(reader.inputs):
        return all(v.type.elements == value.type.elements for v in reader.outputs)
    if reader.op.movement and not isinstance(reader.op, Concat):
        return sum(v.type.elements for v in reader.outputs) <= value.type.elements
    return reader.op.movement or (reader.op.reducing and not reader.op.rereads)
