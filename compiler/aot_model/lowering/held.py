"""Which tensors of the model's file are in memory when the program runs, for traces and layer by layer."""

from __future__ import annotations

from collections.abc import Mapping

from aot_model.ir.graph import Graph, hand_down
from aot_model.ir.program import Buffer, Held
from aot_model.ir.values import Value


def held_tensors(graph: Graph, buffers: Mapping[Value, Buffer]) -> list[Held]:
    """Tensors of the model's file that are in memory, or are moved elements of what is."""
    for node in reversed(graph.nodes):
        if all(v not in buffers for v in node.outputs):
            hand_down(node)
    kept = {v: b for v, b in buffers.items() if v.stands_for and not v.state and v not in graph.inputs}
    direct = {t.key for v in kept for t in v.stands_for if not t.through}
    return [
        Held(b, tensors)
        for v, b in kept.items()
        if (tensors := tuple(t for t in v.stands_for if not t.through or t.key not in direct))
    ]
