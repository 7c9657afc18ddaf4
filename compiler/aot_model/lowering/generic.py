"""Why a layer runs as a generic loop: which of the products in its expression no kernel took, and why."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from aot_model.c.names import printable
from aot_model.ir.graph import Node
from aot_model.ir.values import Value
from aot_model.kernels.tail import Chain
from aot_model.kernels.target import Target

MAX_REASONS = 4
"""Of one loop; an expression may have the products of many layers in it."""


def reasons(
    node: Node,
    target: Target,
    producer: Callable[[Value], Node | None],
    stored: Iterable[Value],
    chain_of: Callable[[Node], Chain],
) -> str:
    """Of a loop that stores a node's output: for each operator of sums in it what every kernel says."""
    known, seen, waiting = set(stored), {node}, [node]
    said: dict[str, None] = {}
    while waiting:
        one = waiting.pop(0)
        if one.op.reducing:
            said[_of(one, target, chain_of)] = None
        for value in one.inputs:
            made = producer(value) if value is not None and value not in known else None
            if made is not None and made not in seen:
                seen.add(made)
                waiting.append(made)
    words = list(said)
    more = [f"and {len(words) - MAX_REASONS} more"] if len(words) > MAX_REASONS else []
    return "; ".join([*words[:MAX_REASONS], *more])


def _of(node: Node, target: Target, chain_of: Callable[[Node], Chain]) -> str:
    kernels = [k for t in target.lineage() for k in t.kernels if k.operator == node.kind]
    if not kernels:
        return f"{node.kind} '{printable(node.name, 40)}': there is no kernel for it"
    chain = chain_of(node)
    found = {k.name: k.reject(node, chain, target) for k in kernels}
    words = "; ".join(f"{name}: {why}" for name, why in found.items())
    return f"{node.kind} '{printable(node.name, 40)}': {words}"
