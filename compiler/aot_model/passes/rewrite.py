"""Passes that replace shapes of nodes: rules over the pattern language, applied until none fits.

    Rule(op("Mul", op("Add", value("y"), constant("b")), constant("m")), distribute)      (y + b) * m  ->  y *
        m + b * m

Why a rule did not fit at a node that its pattern ends with is told to `--explain`, without a word from the
pass.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from aot_model.ir.graph import Graph, Node, read_values
from aot_model.ir.pattern import Bindings, Nearest, Pattern
from aot_model.ir.values import Value
from aot_model.partition.region import Match
from aot_model.passes.explain import refuse


@dataclass(frozen=True)
class Rule:
    """What stands for the nodes of a match: nodes of which the last writes the result's values, or why
    nothing does.

    sole_reader: the match must be the only reader of what it computes on the way, since that is gone
    afterwards. Without it the nodes on the way stay where somebody else reads them.
    """

    pattern: Pattern
    rewrite: Callable[[Match], list[Node] | str]
    sole_reader: bool = True


def apply_rules(graph: Graph, rules: Sequence[Rule]) -> bool:
    """Apply rules to a graph in place, inputs first; what a rule made is looked at again. True when something
    changed.
    """
    return _Rewriting(graph, rules).run()


class _Rewriting:
    def __init__(self, graph: Graph, rules: Sequence[Rule]) -> None:
        self.graph = graph
        self.rules = rules
        self.reads = Counter(graph.outputs)
        """How often each value is read by nodes that stay."""
        for node in graph.nodes:
            self.reads.update(read_values(node))
        self.producer: dict[Value, Node] = {}

    def run(self) -> bool:
        """True when something changed."""
        pending = list(reversed(self.graph.nodes))
        done: list[Node] = []
        changed = False
        while pending:
            node = pending.pop()
            self.producer.update((v, node) for v in node.outputs)
            instead = self._instead(node)
            if instead is None:
                done.append(node)
                continue
            changed = True
            for made in instead:
                self.reads.update(read_values(made))
            pending.extend(reversed(instead))
        self.graph.nodes = done
        if changed:
            self.graph.prune()
        return changed

    def _instead(self, node: Node) -> list[Node] | None:
        """What stands for a node by the first rule that fits, None when it stays."""
        nearest = Nearest()
        for rule in self.rules:
            for found in rule.pattern.bind(node.outputs[0], Bindings(self.producer, nearest=nearest)):
                match = Match.of("", node, found)
                made = (self._objection(match) if rule.sole_reader else None) or rule.rewrite(match)
                if not isinstance(made, str):
                    for old in match.nodes if rule.sole_reader else [node]:
                        self.reads.subtract(read_values(old))
                    return made
                found.missed(lambda made=made: made)  # type: ignore[misc]
        if nearest.why:
            refuse(node, nearest.why)
        return None

    def _objection(self, match: Match) -> str | None:
        """Why the nodes of a match cannot go, None when they can."""
        inside = Counter(v for n in match.nodes for v in read_values(n))
        for node in match.nodes:
            for out in node.outputs if node is not match.result else ():
                if self.reads[out] != inside[out]:
                    return f"the result of {node.kind} '{node.name}' is read elsewhere"
        return None
