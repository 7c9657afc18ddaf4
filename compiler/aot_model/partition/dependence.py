"""What must come before what in a graph, and which groups of nodes may become one without making a cycle."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import heapify, heappop, heappush
from itertools import pairwise

from aot_model.ir.graph import Graph, Node, read_values, subgraphs


def is_ordered(node: Node) -> bool:
    """Whether a node reads or writes state, or has bodies that may: such nodes keep their order."""
    return node.op.effects or any(v.state for v in read_values(node)) or any(True for _ in subgraphs(node))


class Dependence:
    """Successors of every node, and groups of nodes that count as one."""

    def __init__(self, graph: Graph) -> None:
        self.nodes = list(graph.nodes)
        self.place = {n: k for k, n in enumerate(self.nodes)}
        producer = graph.producers()
        self.before: dict[Node, set[Node]] = {n: {producer[v] for v in read_values(n) if v in producer} for n in self.nodes}
        ordered = [n for n in self.nodes if is_ordered(n)]
        for first, second in pairwise(ordered):
            self.before[second].add(first)
        self.after: dict[Node, list[Node]] = {n: [] for n in self.nodes}
        for node in self.nodes:
            for earlier in sorted(self.before[node], key=self.place.__getitem__):
                self.after[earlier].append(node)
        self.group: dict[Node, frozenset[Node]] = {n: frozenset((n,)) for n in self.nodes}

    def makes_cycle(self, members: Iterable[Node]) -> bool:
        """Whether something outside of a group would have to run both after and before it."""
        inside = set(members)
        pending = [n for m in inside for n in self.after[m] if n not in inside]
        seen: set[Node] = set(pending)
        while pending:
            for node in self.group[pending.pop()]:
                for follower in self.after[node]:
                    if follower in inside:
                        return True
                    if follower not in seen:
                        seen.add(follower)
                        pending.append(follower)
        return False

    def join(self, members: Iterable[Node]) -> None:
        """Let a group of nodes count as one."""
        group = frozenset(members)
        for node in group:
            self.group[node] = group

    def order(self) -> list[Sequence[Node]]:
        """Groups in an order that keeps all dependences, and the order of the graph where it is free."""
        waiting: dict[frozenset[Node], set[frozenset[Node]]] = {}
        for node in self.nodes:
            waiting.setdefault(self.group[node], set()).update(self.group[b] for b in self.before[node] if self.group[b] is not self.group[node])
        last = {g: max(self.place[n] for n in g) for g in waiting}
        followers: dict[frozenset[Node], list[frozenset[Node]]] = {g: [] for g in waiting}
        for g, needs in waiting.items():
            for need in needs:
                followers[need].append(g)
        at = {last[g]: g for g in waiting}
        ready = [last[g] for g, needs in waiting.items() if not needs]
        heapify(ready)
        result: list[Sequence[Node]] = []
        while ready:
            group = at[heappop(ready)]
            result.append(sorted(group, key=self.place.__getitem__))
            for follower in followers[group]:
                waiting[follower].discard(group)
                if not waiting[follower]:
                    heappush(ready, last[follower])
        assert sum(map(len, result)) == len(self.nodes), "the groups depend on each other in a circle"
        return result
