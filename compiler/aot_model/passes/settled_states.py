"""States that each run gives the value that they have: constants.

    w = w * mask  at the start of every run, with a constant mask of zeros and ones

as wrappers of pruning leave it in a network, which keep the weights as variables: they would be copied from
flash to RAM, and multiplied and stored, in every run. A state whose new value depends on itself and constants
alone is followed for two runs; if the second changes nothing, no later one does.
"""

from __future__ import annotations

import numpy as np

from aot_model.ir.graph import Graph, Node, read_values
from aot_model.ir.values import Value, constant
from aot_model.ops.state import Assign
from aot_model.passes.explain import refuse
from aot_model.passes.fold_constants import followed

MOST = 64
"""Nodes between a state and its new value."""


def settled_states(graph: Graph) -> bool:
    """Replace such states and what is computed of them. True when something changed."""
    before = len(graph.nodes)
    for node in [n for n in graph.nodes if isinstance(n.op, Assign)]:
        why = _settle(graph, node)
        if why:
            refuse(node, why)
    return len(graph.nodes) != before


def _settle(graph: Graph, assign: Node) -> str:
    """Empty, or why the state stays one."""
    state, new = assign.inputs
    assert state is not None and new is not None
    between = _between(graph, state, new)
    if isinstance(between, str):
        return between
    initial = np.zeros(state.shape, state.dtype.numpy) if state.initial is None else state.initial
    first = followed(between, {state: constant(state.name, initial)})
    second = None if first is None else followed(between, {state: first.get(new, new)})
    if first is None or second is None:
        return "numpy does not compute its new value"
    if _bytes(first.get(new, new)) != _bytes(second.get(new, new)):
        return "the next run changes it again"
    inside = {*between, assign}
    read = {v for n in graph.nodes if n not in inside for v in read_values(n)} | set(graph.outputs)
    for value in first:
        if value in read and _bytes(first[value]) != _bytes(second[value]):
            return f"'{value.name}' has another value in the first run"
    graph.replace_all(
        {v: constant(v.name, c.data, v.quantisation) for v, c in first.items() if c.data is not None}
    )
    graph.nodes = [n for n in graph.nodes if n not in inside]
    return ""


def _between(graph: Graph, state: Value, new: Value) -> list[Node] | str:
    """The nodes that make the new value of the state, in order."""
    producers = graph.producers()
    found: dict[Node, None] = {}
    waiting = [new]
    while waiting:
        value = waiting.pop()
        if value is state or value.is_const:
            continue
        node = producers.get(value)
        if node is None:
            return f"its new value depends on '{value.name}', too"
        if node not in found:
            found[node] = None
            waiting += list(read_values(node))
        if len(found) > MOST:
            return f"its new value takes more than {MOST} operators"
    return [n for n in graph.nodes if n in found]


def _bytes(value: Value) -> bytes:
    assert value.data is not None
    return value.data.tobytes()
