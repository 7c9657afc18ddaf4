"""The order of an ONNX graph's nodes: what a node reads is computed before it.

The standard asks files to be in this order; some writers do not keep to it. Of several orders the one nearest
to the file's is taken.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator

import onnx

from aot_model.c.names import printable
from aot_model.errors import fail
from aot_model.frontends.onnx_checks import graphs

MOST_NAMED = 8
"""Nodes of a cycle that a message names."""


def sort_nodes(graph: onnx.GraphProto, where: str) -> None:
    """Bring the nodes of a graph and of all bodies in it into order. CompileError E102 when they read each
    other in a circle.
    """
    for body in graphs(graph):
        _sort(body, where)


def _sort(graph: onnx.GraphProto, where: str) -> None:
    maker = {name: k for k, node in enumerate(graph.node) for name in node.output if name}
    needs = [{maker[name] for name in _read(node) if name in maker} for node in graph.node]
    if all(j < k for k, found in enumerate(needs) for j in found):
        return
    readers: list[list[int]] = [[] for _ in needs]
    for k, found in enumerate(needs):
        for j in found:
            readers[j].append(k)
    missing = [len(found) for found in needs]
    ready = [k for k, count in enumerate(missing) if count == 0]
    order: list[int] = []
    while ready:
        k = heapq.heappop(ready)
        order.append(k)
        for reader in readers[k]:
            missing[reader] -= 1
            if missing[reader] == 0:
                heapq.heappush(ready, reader)
    if len(order) < len(needs):
        circle = _circle(needs, next(k for k, count in enumerate(missing) if count))
        names = [
            f"'{printable(graph.node[k].name or (graph.node[k].output[0] if graph.node[k].output else '?'))}'"
            for k in circle
        ]
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        raise fail(
            "E102",
            f"nodes read each other's results in a circle: {', '.join(names[:MOST_NAMED])}{more}",
            where=where,
            hint="use Loop or Scan for what is fed back",
        )
    nodes = [onnx.NodeProto.FromString(graph.node[k].SerializeToString()) for k in order]
    del graph.node[:]
    graph.node.extend(nodes)


def _circle(needs: list[set[int]], start: int) -> list[int]:
    """A circle that one comes to from a node of which something that it needs is never ready."""
    done: set[int] = set()
    path, places, pending = [start], {start: 0}, [iter(sorted(needs[start]))]
    while pending:
        following = next(pending[-1], None)
        if following is None:
            pending.pop()
            done.add(path.pop())
            places = {k: v for k, v in places.items() if v < len(path)}
        elif following in places:
            return path[places[following] :]
        elif following not in done:
            places[following] = len(path)
            path.append(following)
            pending.append(iter(sorted(needs[following])))
    return [start]


def _read(node: onnx.NodeProto) -> Iterator[str]:
    """Names that a node reads, those that its bodies read included."""
    yield from node.input
    for attribute in node.attribute:
        for body in ([attribute.g] if attribute.HasField("g") else []) + list(attribute.graphs):
            own = (
                {i.name for i in body.input}
                | {t.name for t in body.initializer}
                | {o for inner in body.node for o in inner.output}
            )
            yield from (o.name for o in body.output if o.name not in own)
            for inner in body.node:
                yield from (name for name in _read(inner) if name not in own)
