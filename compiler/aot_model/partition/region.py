"""A region: a part of a graph that a target claimed, as a graph of its own, and the operator that stands for
it.

    y = Region(x)      region.graph: graph npu_0(x) { … }      region.matches: which pattern took which nodes
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from aot_model.ir.graph import Graph, Node
from aot_model.ir.pattern import Bindings
from aot_model.ir.types import TensorType
from aot_model.ir.values import Value

if TYPE_CHECKING:
    from aot_model.kernels.target import Target


@dataclass(frozen=True, eq=False)
class Match:
    """A place where a pattern fits: its nodes in the order of the graph, and what its names stand for."""

    pattern: str
    nodes: tuple[Node, ...]
    result: Node
    """The node of the pattern's own operator, the last of them."""
    named_nodes: Mapping[str, Node] = field(default_factory=dict)
    named_values: Mapping[str, Value] = field(default_factory=dict)

    @classmethod
    def of(
        cls, pattern: str, result: Node, found: Bindings, place: Callable[[Node], int] | None = None
    ) -> Match:
        """What a search found. place: where a node is in the order of the graph; without it, the nodes are in
        the order of the search: what reads is before what is read.
        """
        nodes = tuple(
            sorted(dict.fromkeys(found.nodes.values()), key=place)
            if place
            else dict.fromkeys(found.nodes.values())
        )
        values = {p.name: v for p, v in found.values.items() if p.name and v is not None}
        return cls(pattern, nodes, result, {p.name: n for p, n in found.nodes.items() if p.name}, values)

    def node(self, name: str) -> Node:
        """The node of an op(name=…). KeyError when that part of the pattern is not there."""
        return self.named_nodes[name]

    def value(self, name: str) -> Value:
        """The value of a named pattern; of op(name=…) its result. KeyError when that part of the pattern is
        not there.
        """
        return self.named_values[name]

    def has(self, name: str) -> bool:
        """Whether an optional part is there."""
        return name in self.named_values

    def attribute(self, name: str, attribute: str) -> Any:
        """An attribute of the node of op(name=…)."""
        return getattr(self.node(name).op, attribute)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of its convolutions and products."""
        return sum(_macs(n) for n in self.nodes)


def _macs(node: Node) -> int:
    """Multiply-accumulates: elements of the result times the weights that each needs."""
    if (
        node.kind not in ("Convolution", "ConvolutionTranspose", "MatMul", "Conv", "Gemm")
        or node.inputs[1] is None
    ):
        return 0
    weights, out = node.inputs[1].type, node.outputs[0].type
    if node.kind == "MatMul":
        return out.elements * (weights.shape[-2] if weights.rank > 1 else weights.elements)
    channels = (
        weights.shape[0] if node.kind != "Gemm" or getattr(node.op, "transB", False) else weights.shape[-1]
    )
    return out.elements * (weights.elements // max(channels, 1))


@dataclass(eq=False)
class Region:
    """A part of a graph. `graph` has inputs and outputs of its own; passes of the target may rewrite what is
    between.

    name: a C identifier that no other region of the model has. matches: in the order of the graph, until a
    pass of the target rewrites the nodes. constants: what update_constants made of a constant; None: the
    target has taken it over.
    """

    name: str
    target: Target
    graph: Graph
    matches: tuple[Match, ...]
    constants: dict[Value, Value | None] = field(default_factory=dict)

    @property
    def nodes(self) -> list[Node]:
        return self.graph.nodes

    def constant_values(self) -> list[Value]:
        """The constants that its nodes read, each once, in order."""
        return list(
            dict.fromkeys(v for n in self.graph.nodes for v in n.inputs if v is not None and v.is_const)
        )

    def border(self) -> tuple[list[TensorType], list[TensorType]]:
        """Types of the inputs and of the outputs."""
        return [v.type for v in self.graph.inputs], [v.type for v in self.graph.outputs]

    def __repr__(self) -> str:
        return f"{self.target.name}:{self.name}[{', '.join(m.pattern for m in self.matches)}]"
