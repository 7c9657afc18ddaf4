"""One walk over a graph in which what stands for a node is looked at again."""

from __future__ import annotations

from abc import ABC, abstractmethod

from aot_model.ir.graph import Graph, Node
from aot_model.ir.types import TensorType
from aot_model.ir.values import Value


class Sweep(ABC):
    """A walk, inputs first, that a pass makes of its rule."""

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.uses = graph.uses()
        """Readers, as they were before the walk."""
        self.outputs = set(graph.outputs)
        self.producer: dict[Value, Node] = {}
        self.renamed: dict[Value, Value] = {}
        """Values that went, and what is read in their place."""

    @abstractmethod
    def rewritten(self, node: Node) -> list[Node] | None:
        """What stands for a node; None when it stays."""

    def run(self) -> bool:
        """True when something changed."""
        done: list[Node] = []
        pending = list(reversed(self.graph.nodes))
        limit = 20 * len(pending) + 100
        changed = False
        while pending:
            node = pending.pop()
            node.inputs = [self.renamed.get(v, v) if v is not None else None for v in node.inputs]
            instead = self.rewritten(node) if limit else None
            if instead is None:
                done.append(node)
                self.producer.update((v, node) for v in node.outputs)
                continue
            changed, limit = True, limit - 1
            pending.extend(reversed(instead))
        self.graph.nodes = done
        self.graph.replace_all(self.renamed)
        self.graph.prune()
        return changed


def changed_value(like: Value, shape: tuple[int, ...], suffix: str) -> Value:
    """A value like another one, of another shape."""
    return Value(f"{like.name}.{suffix}", TensorType(like.dtype, shape), quantisation=like.quantisation)
