"""What must come before what in a graph, and which groups of nodes may become one without making a cycle."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from heapq import heapify, heappop, heappush
from itertools import pairwise

from aot_model.ir.graph import Graph, Node, read_values, subgraphs


def is_ordered(node: Node) -> bool:
    """Whether a node reads or writes state, or has bodies that may: such nodes keep their order."""
    return node.op.effects or any(v.state for v in read_values(node)) or any(True for _ in subgraphs(node))


@dataclass(eq=False)
class _Group:
    """Nodes that count as one; `rank`: its place in an order that keeps all dependences."""

    members: list[Node]
    rank: int
    before: set[_Group] = field(default_factory=set)
    after: set[_Group] = field(default_factory=set)


class Dependence:
    """What must come before what, and groups of nodes that count as one.

    Groups have ranks in an order of theirs, which is mended where groups are joined (Pearce and Kelly, "A
    dynamic topological sort algorithm for directed acyclic graphs", 2006): a search between two groups looks
    at those in between only.
    """

    def __init__(self, graph: Graph) -> None:
        self.nodes = list(graph.nodes)
        self.place = {n: k for k, n in enumerate(self.nodes)}
        producer = graph.producers()
        self.before: dict[Node, set[Node]] = {
            n: {producer[v] for v in read_values(n) if v in producer} for n in self.nodes
        }
        ordered = [n for n in self.nodes if is_ordered(n)]
        for first, second in pairwise(ordered):
            self.before[second].add(first)
        self.group = {n: _Group([n], k) for k, n in enumerate(self.nodes)}
        for node, earlier in self.before.items():
            for other in earlier:
                self.group[node].before.add(self.group[other])
                self.group[other].after.add(self.group[node])

    def read_by(self, node: Node) -> list[Node]:
        """A node of each group that the group of a node reads, the earliest first."""
        return [g.members[0] for g in sorted(self.group[node].before, key=lambda g: g.rank)]

    def makes_cycle(self, members: Iterable[Node]) -> bool:
        """Whether something outside of whole groups would have to run both after and before them."""
        inside = {self.group[n] for n in members}
        last = max(g.rank for g in inside)
        seen = {f for g in inside for f in g.after if f not in inside and f.rank < last}
        pending = list(seen)
        while pending:
            for follower in pending.pop().after:
                if follower in inside:
                    return True
                if follower not in seen and follower.rank < last:
                    seen.add(follower)
                    pending.append(follower)
        return False

    def join(self, members: Iterable[Node]) -> None:
        """Let whole groups, which make no cycle together, count as one."""
        joined = sorted({self.group[n] for n in members}, key=lambda g: g.rank)
        if len(joined) < 2:
            return
        low, high = joined[0].rank, joined[-1].rank
        ahead = _reached(joined, lambda g: [b for b in g.before if b.rank > low])
        behind = _reached(joined, lambda g: [f for f in g.after if f.rank < high])
        slots = sorted(g.rank for g in (*ahead, *joined, *behind))
        for group, rank in zip(ahead, slots, strict=False):
            group.rank = rank
        for group, rank in zip(behind, slots[len(slots) - len(behind) :], strict=True):
            group.rank = rank
        whole = max(joined, key=lambda g: len(g.members))  # the others move into it
        whole.rank = slots[len(ahead)]
        for group in joined:
            if group is whole:
                continue
            whole.members += group.members
            self.group.update(dict.fromkeys(group.members, whole))
            for mine, back in ((group.before, "after"), (group.after, "before")):
                for other in mine:
                    getattr(other, back).discard(group)
                    getattr(other, back).add(whole)
            whole.before |= group.before
            whole.after |= group.after
        gone = set(joined)
        whole.before -= gone
        whole.after -= gone

    def order(self) -> list[Sequence[Node]]:
        """Groups in an order that keeps all dependences, and the order of the graph where it is free."""
        groups = list(dict.fromkeys(self.group[n] for n in self.nodes))
        waiting = {g: len(g.before) for g in groups}
        last = {g: max(self.place[n] for n in g.members) for g in groups}
        at = {last[g]: g for g in groups}
        ready = [last[g] for g in groups if not waiting[g]]
        heapify(ready)
        result: list[Sequence[Node]] = []
        while ready:
            group = at[heappop(ready)]
            result.append(sorted(group.members, key=self.place.__getitem__))
            for follower in group.after:
                waiting[follower] -= 1
                if not waiting[follower]:
                    heappush(ready, last[follower])
        assert sum(map(len, result)) == len(self.nodes), "the groups depend on each other in a circle"
        return result


def _reached(start: Sequence[_Group], steps: Callable[[_Group], list[_Group]]) -> list[_Group]:
    """Groups beyond `start`, by rank."""
    seen = set(start)
    pending = list(start)
    while pending:
        for group in steps(pending.pop()):
            if group not in seen:
                seen.add(group)
                pending.append(group)
    return sorted(seen.difference(start), key=lambda g: g.rank)
