"""From a graph to regions: match the patterns of the targets, merge neighbours, put each region in a graph of
its own.

The order of the targets decides, then the order of a target's patterns, then the largest match. A match is
taken when

* nothing outside of it reads what is inside (only its result and the other results of its last node are
  seen),
* nothing outside would have to run both before and after it,
* none of its nodes has state, bodies of control flow or empty tensors, and
* the pattern's check has no objection.

Regions of one target are merged where one reads a result of the other and the same holds for both as one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any

from aot_model.c.names import identifier
from aot_model.ir.graph import Graph, Node, read_values, subgraphs
from aot_model.ir.pattern import Bindings, Nearest, Pattern
from aot_model.ir.values import Value
from aot_model.kernels.target import Target
from aot_model.partition.dependence import Dependence, is_ordered
from aot_model.partition.hooks import checked
from aot_model.partition.lower import RegionCall
from aot_model.partition.offload import Claim
from aot_model.partition.region import Match, Region

MAX_CANDIDATES = 32
"""Ways in which one pattern may end at one value that are looked at: operands in both orders multiply."""


@dataclass(frozen=True)
class Assignment:
    """Where a node goes: target and pattern, both empty for what the processor itself computes; and who did
    not take it: (target, pattern, why not), where the pattern is empty when none of the target's fits."""

    node: str
    operator: str
    target: str = ""
    pattern: str = ""
    refused: tuple[tuple[str, str, str], ...] = ()


@dataclass
class Partition:
    """The result: the regions, in the order of the graph, and where every node went."""

    regions: list[Region] = field(default_factory=list)
    assignments: list[Assignment] = field(default_factory=list)


def partition(graph: Graph, targets: Sequence[Target]) -> Partition:
    """Put what the targets claim into regions, in place, in bodies of control flow as well.

    CompileError E502 when a predicate or a check of a target fails.
    """
    result = Partition()
    asked = [t for t in targets if t.offloads is not None]
    if asked:
        _partition(graph, asked, result)
        graph.verify()
    return result


def _partition(graph: Graph, targets: Sequence[Target], result: Partition) -> None:
    for node in graph.nodes:
        for body in subgraphs(node):
            _partition(body, targets, result)
    search = _Search(graph)
    for target in targets:
        search.claim(target)
    search.merge()
    result.assignments += search.assignments(targets)
    result.regions += search.extract(result.regions)


class _Search:
    """The state of the search in one graph."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.producer = graph.producers()
        self.uses = graph.uses()
        self.results = set(graph.outputs)
        self.dependence = Dependence(graph)
        self.owner: dict[Node, tuple[Target, Match]] = {}
        self.refused: dict[Node, dict[tuple[str, str, str], None]] = {}
        self.groups: list[tuple[Target, list[Match]]] = []

    # --- matching -------------------------------------------------------------------------------------------

    def claim(self, target: Target) -> None:
        """Take every match of a target's patterns."""
        assert target.offloads is not None
        for rule in target.offloads.patterns:
            for node in reversed(self.graph.nodes):
                if node not in self.owner:
                    match = self._match(target, rule, node)
                    if match is not None:
                        self.owner.update(dict.fromkeys(match.nodes, (target, match)))
                        self.groups.append((target, [match]))
                        self.dependence.join(match.nodes)

    def _match(self, target: Target, rule: Claim, node: Node) -> Match | None:
        """The first match of a pattern that ends with a node and may be taken."""
        nearest = Nearest()
        start = Bindings(self.producer, lambda n: n not in self.owner, nearest=nearest)
        for out in node.outputs:
            candidates = checked(target, f"pattern '{rule.name}'", partial(_all, rule.pattern, out, start))
            for found in candidates:
                match = Match.of(rule.name, node, found, self.dependence.place.__getitem__)
                why = self._objection(match) or checked(
                    target, f"check of pattern '{rule.name}'", partial(rule.check, match, target), str
                )
                if why is None:
                    return match
                for member in match.nodes:
                    self.refused.setdefault(member, {})[target.name, rule.name, why] = None
                nearest = Nearest()
        if nearest.why:
            self.refused.setdefault(node, {})[target.name, rule.name, nearest.why] = None
        return None

    def _objection(self, match: Match) -> str | None:
        """Why a match cannot be a region of its own, None when it can."""
        inside = set(match.nodes)
        for node in match.nodes:
            if is_ordered(node):
                return f"{node.kind} '{node.name}' has state or control flow"
            if any(v.type.elements == 0 for v in (*read_values(node), *node.outputs)):
                return f"{node.kind} '{node.name}' has an empty tensor"
            if node is not match.result:
                for out in node.outputs:
                    if self._seen_outside(out, inside):
                        return f"the result of {node.kind} '{node.name}' is read elsewhere"
        if self.dependence.makes_cycle(match.nodes):
            return "other nodes would have to run both before and after it"
        return None

    def _seen_outside(self, value: Value, inside: set[Node]) -> bool:
        return value in self.results or any(n not in inside for n in self.uses.get(value, ()))

    # --- merging --------------------------------------------------------------------------------------------

    def merge(self) -> None:
        """Join regions of one target of which one reads the other, where that makes no cycle."""
        self.groups.sort(key=lambda g: self.dependence.place[g[1][-1].nodes[-1]])
        group = self.dependence.group
        of = {group[m.nodes[-1]]: k for k, (_, matches) in enumerate(self.groups) for m in matches}
        for k, (target, _) in enumerate(self.groups):
            assert target.offloads is not None
            while target.offloads.merge and (other := self._mergeable(k, of)) is not None:
                ours, theirs = (self.groups[n][1] for n in (k, other))
                self.dependence.join([ours[-1].nodes[-1], theirs[-1].nodes[-1]])
                of[group[ours[-1].nodes[-1]]] = k
                ours[:0] = theirs
                theirs.clear()
        for _, matches in self.groups:
            matches.sort(key=lambda m: self.dependence.place[m.nodes[-1]])
        self.groups = [g for g in self.groups if g[1]]

    def _mergeable(self, k: int, of: Mapping[Any, int]) -> int | None:
        """A group that group number k reads and may be joined with. of: the numbers of groups."""
        target, matches = self.groups[k]
        node = matches[-1].nodes[-1]
        for before in self.dependence.read_by(node):
            other = of.get(self.dependence.group[before])
            if (
                other is not None
                and self.groups[other][0] is target
                and not self.dependence.makes_cycle([node, before])
            ):
                return other
        return None

    # --- results --------------------------------------------------------------------------------------------

    def assignments(self, targets: Sequence[Target]) -> Iterator[Assignment]:
        """Where each node goes, in the order of the graph."""
        for node in self.graph.nodes:
            refused = self.refused.get(node, {})
            if node in self.owner:
                target, match = self.owner[node]
                yield Assignment(node.name, node.kind, target.name, match.pattern, tuple(refused))
                continue
            silent = [t for t in targets if all(name != t.name for name, _, _ in refused)]
            yield Assignment(
                node.name, node.kind, refused=(*refused, *((t.name, "", _no_match(t, node)) for t in silent))
            )

    def extract(self, known: Sequence[Region]) -> list[Region]:
        """Put each group into a region; the graph has one node for it then."""
        names = {identifier(t.name, "part"): 0 for t, _ in self.groups}
        for region in known:
            stem = identifier(region.target.name, "part")
            names[stem] = names.get(stem, 0) + 1
        of = {matches[-1].nodes[-1]: (target, matches) for target, matches in self.groups}
        order = self.dependence.order()
        regions: list[Region] = []
        nodes: list[Node] = []
        for group in order:
            found = of.get(group[-1])
            if found is None:
                nodes += group
                continue
            target, matches = found
            stem = identifier(target.name, "part")
            region, call = self._region(f"{stem}_{names[stem]}", target, group, matches)
            names[stem] += 1
            regions.append(region)
            nodes.append(call)
        self.graph.nodes = nodes
        return regions

    def _region(
        self, name: str, target: Target, members: Sequence[Node], matches: Sequence[Match]
    ) -> tuple[Region, Node]:
        """A region of nodes, and the node that calls it. Values at the border get a copy inside."""
        assert target.offloads is not None
        made = {v for n in members for v in n.outputs}
        reads = dict.fromkeys(v for n in members for v in n.inputs if v is not None and v not in made)
        inputs = [v for v in reads if target.offloads.constants_as_inputs or not v.is_const]
        inside = set(members)
        outputs = [v for n in members for v in n.outputs if self._seen_outside(v, inside)]
        new = {v: Value(v.name, v.type, quantisation=v.quantisation) for v in (*inputs, *outputs)}
        for node in members:
            node.inputs = [v if v is None else new.get(v, v) for v in node.inputs]
            node.outputs = [new.get(v, v) for v in node.outputs]
        body = Graph(name, [new[v] for v in inputs], [new[v] for v in outputs], list(members))
        renamed = tuple(
            Match(
                m.pattern,
                m.nodes,
                m.result,
                m.named_nodes,
                {k: new.get(v, v) for k, v in m.named_values.items()},
            )
            for m in matches
        )
        region = Region(name, target, body, renamed)
        return region, Node(RegionCall(region), list(inputs), outputs, _layer(members))


def _all(pattern: Pattern, value: Value, start: Bindings) -> list[Bindings]:
    """The ways in which a pattern stands for a value, the preferred first."""
    return list(islice(pattern.bind(value, start), MAX_CANDIDATES))


def _no_match(target: Target, node: Node) -> str:
    """Why no pattern of a target fits at a node."""
    assert target.offloads is not None
    known = any(node.kind in rule.pattern.kinds() for rule in target.offloads.patterns)
    return "what is around it fits no pattern" if known else f"it has no pattern for {node.kind}"


def _layer(members: Iterable[Node]) -> str:
    """The layers of a region in reports: first to last."""
    names = list(dict.fromkeys(n.name for n in members))
    return names[0] if len(names) == 1 else f"{names[0]} to {names[-1]}"
