"""The Graph: typed values in single static assignment, nodes in topological order.

    Graph ── inputs, outputs: Value
       └──── nodes: Node(op, inputs, outputs)      op: an Operator of ops/, whose fields are the attributes
    Value ── type, quantisation, constant data     written once: by a node, or it is an input or a constant

Passes change a graph in place through `replace` and `prune`; `verify` says whether it is still one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import cache

from aot_model.ir.operator import Operator, OperatorError
from aot_model.ir.types import TensorType
from aot_model.ir.values import ModelTensor, Value


@dataclass(eq=False)
class Node:
    """One application of an operator. An absent optional input is None."""

    op: Operator
    inputs: list[Value | None]
    outputs: list[Value]
    name: str = ""

    @property
    def kind(self) -> str:
        return self.op.name

    def input(self, index: int) -> Value | None:
        """The input at `index`, None when absent or beyond the end."""
        return self.inputs[index] if index < len(self.inputs) else None

    def infer(self, inputs: Sequence[Value | None]) -> list[TensorType]:
        """Types of the outputs for these inputs. OperatorError, which names the node."""
        try:
            return self.op.infer(inputs)
        except OperatorError as error:
            raise error.about(self.name, self.kind)  # noqa: B904

    def __str__(self) -> str:
        outs = ", ".join(map(str, self.outputs))
        ins = ", ".join("_" if v is None else f"%{v.name}" for v in self.inputs)
        attrs = ", ".join(
            f"{f.name}={getattr(self.op, f.name)!r}"
            for f in fields(self.op)
            if not isinstance(getattr(self.op, f.name), Graph)
            and repr(getattr(self.op, f.name)) != repr(f.default)
        )
        return f"{outs} = {self.op.name}({ins}){' {' + attrs + '}' if attrs else ''}"


@dataclass(eq=False)
class Graph:
    """A network, or the body of a control-flow operator (which may read values of the graph around it)."""

    name: str
    inputs: list[Value] = field(default_factory=list)
    outputs: list[Value] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)

    def __str__(self) -> str:
        head = f"graph {self.name}({', '.join(map(str, self.inputs))})"
        body = "".join(f"  {node}\n" for node in self.nodes)
        return f"{head}\n{body}  return {', '.join('%' + v.name for v in self.outputs)}\n"

    def producers(self) -> dict[Value, Node]:
        """The node that writes each value."""
        return {v: n for n in self.nodes for v in n.outputs}

    def uses(self) -> dict[Value, list[Node]]:
        """The nodes that read each value, once per read; bodies of control flow count as their node."""
        result: dict[Value, list[Node]] = {}
        for node in self.nodes:
            for value in read_values(node):
                result.setdefault(value, []).append(node)
        return result

    def replace(self, old: Value, new: Value) -> None:
        """Every reader of `old` reads `new`, in bodies of control flow as well; outputs likewise."""
        self.replace_all({old: new})

    def replace_all(self, new: Mapping[Value, Value]) -> None:
        """replace() for many values in one walk. A new value may itself be replaced."""
        if not new:
            return
        for old in new:
            target = old
            while target in new:
                target = new[target]
            target.take_over(old)
        self._rewire(new)

    def _rewire(self, new: Mapping[Value, Value]) -> None:
        def final(value: Value | None) -> Value | None:
            while value is not None and value in new:
                value = new[value]
            return value

        for node in self.nodes:
            node.inputs = [final(v) for v in node.inputs]
            for body in subgraphs(node):
                body._rewire(new)
        self.outputs = [final(v) or v for v in self.outputs]

    def prune(self) -> bool:
        """Remove nodes of which nothing is read. True when something went."""
        live = set(self.outputs)
        kept: list[Node] = []
        for node in reversed(self.nodes):
            if any(v in live for v in node.outputs) or node.op.effects:
                kept.append(node)
                live.update(read_values(node))
            else:
                hand_down(node)
        kept.reverse()
        changed = len(kept) != len(self.nodes)
        self.nodes = kept
        return changed

    def verify(self, outer: Iterable[Value] = ()) -> None:
        """AssertionError when the graph is not in SSA form, not in order, or a type is not what its operator
        says.
        """
        known = set(self.inputs) | set(outer)
        for node in self.nodes:
            for value in node.inputs:
                assert value is None or value.is_const or value.state or value in known, (
                    f"{node}: {value} is read before it is written"
                )
            for body in subgraphs(node):
                body.verify(known)
            types = node.infer(node.inputs)
            assert len(types) >= len(node.outputs), f"{node}: {len(types)} results"
            for out, expected in zip(node.outputs, types, strict=False):
                assert out not in known, f"{node}: {out} is written twice"
                assert out.type == expected, f"{node}: {out} should be {expected}"
                known.add(out)
        for value in self.outputs:
            assert value in known or value.is_const or value.state, f"output {value} is never written"


def subgraphs(node: Node) -> Iterator[Graph]:
    """The bodies of a control-flow node."""
    for name in _body_names(type(node.op)):  # type: ignore[arg-type]  # a dataclass's type is hashable
        attribute = getattr(node.op, name)
        if isinstance(attribute, Graph):
            yield attribute


@cache
def _body_names(operator: type[Operator]) -> tuple[str, ...]:
    """The attributes that are declared as graphs."""
    return tuple(f.name for f in fields(operator) if "Graph" in str(f.type))


def hand_down(node: Node) -> None:
    """What the result of a node stands for, its input stands for through the node, if it only moves elements:
    a transpose that nobody needs any more still says where the tensor of the file is."""
    if (
        not node.op.movement
        or len(node.outputs) != 1
        or not node.inputs
        or node.inputs[0] is None
        or node.inputs[0].is_const
    ):
        return
    if any(v is not None and not v.is_const for v in node.inputs[1:]):
        return
    source, out = node.inputs[0], node.outputs[0]
    step = Node(node.op, list(node.inputs), [out], node.name)
    found = {t.key for t in source.stands_for}
    source.stands_for += tuple(
        ModelTensor(t.key, t.name, (step, *t.through)) for t in out.stands_for if t.key not in found
    )


def count_parameters(graph: Graph) -> int:
    """Elements of all constants that nodes read, each once, those of bodies included."""
    found: dict[int, int] = {}
    pending = [graph]
    while pending:
        for node in pending.pop().nodes:
            found.update((id(v), v.type.elements) for v in node.inputs if v is not None and v.is_const)
            pending.extend(subgraphs(node))
    return sum(found.values())


def read_values(node: Node) -> Iterator[Value]:
    """Values that a node reads, captures of its bodies included."""
    for value in node.inputs:
        if value is not None:
            yield value
    for body in subgraphs(node):
        inner = set(body.inputs) | {v for n in body.nodes for v in n.outputs}
        for value in body.outputs:
            if value not in inner and not value.is_const:
                yield value
        for child in body.nodes:
            for value in read_values(child):
                if value not in inner and not value.is_const:
                    yield value
