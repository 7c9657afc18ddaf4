"""Expand composite operators (Gemm, Softmax, Conv with channels first, …) into those that remain."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

from aot_model.c.names import printable
from aot_model.errors import CompileError, Problem
from aot_model.ir.graph import Graph, Node, subgraphs
from aot_model.ir.operator import OperatorError
from aot_model.ir.values import Value
from aot_model.ops.elementwise import op
from aot_model.ops.registry import Build, bounded


def _tables(node: Node, inner: list[Node], results: Sequence[Value]) -> None:
    """OperatorError when the expansion of a node has more constants than a program should hold."""
    given = {v: v.type.elements for v in node.inputs if v is not None and v.is_const}
    made = {
        v: v.type.elements
        for read in (*(one.inputs for one in inner), results)
        for v in read
        if v is not None and v.is_const and v not in given
    }
    bounded(sum(made.values()), sum(given.values()))


def _is_what_it_reads(node: Node, kept: Collection[Value]) -> bool:
    """Whether a node copies a value that may be read in its place, as branches that are known leave them, and
    converters of Keras. Not a state, which changes before it is read, nor what a state becomes: a window of
    another one, which may change first, is copied for it.
    """
    x, y = node.inputs[0] if node.inputs else None, node.outputs[0]
    if node.kind != "Identity" or x is None or x.state or y in kept:
        return False
    return x.quantisation == y.quantisation


def expand(graph: Graph, wanted: Callable[[Node], bool] = lambda node: True, names: bool = True) -> bool:
    """Replace every composite that is wanted by its expansion, again and again. True when something changed.

    names: outputs keep theirs, which those of a body need not. CompileError with every node of which the
    inputs do not fit.
    """
    changed = False
    problems: list[Problem] = []
    nodes: list[Node] = []
    renamed: dict[Value, Value] = {}
    kept = set(graph.outputs)
    outputs = set(kept) if names else set[Value]()
    kept |= {v for node in graph.nodes if node.op.effects for v in node.inputs if v is not None}
    pending = list(reversed(graph.nodes))
    while pending:
        node = pending.pop()
        node.inputs = [renamed.get(v, v) if v is not None else None for v in node.inputs]
        for body in subgraphs(node):
            for old, new in renamed.items():
                body.replace(old, new)
            changed |= expand(body, wanted, names=False)
        if _is_what_it_reads(node, kept):
            renamed[node.outputs[0]] = node.inputs[0]  # type: ignore[assignment]
            node.inputs[0].take_over(node.outputs[0])  # type: ignore[union-attr]
            changed = True
            continue
        if not node.op.has("expand") or not wanted(node):
            nodes.append(node)
            continue
        changed = True
        inner: list[Node] = []
        try:
            results = node.op.expand(Build(inner, node.name), node.inputs)
            _tables(node, inner, results)
        except OperatorError as error:
            problems.append(
                Problem(error.code, str(error), f"node '{printable(node.name)}' ({node.kind})", error.hint)
            )
            nodes.append(node)
            continue
        # a number of the model that cannot be what an attribute says
        except (ValueError, ArithmeticError) as error:
            problems.append(
                Problem(
                    "E301",
                    f"attributes or inputs do not fit: {printable(str(error))}",
                    f"node '{printable(node.name)}' ({node.kind})",
                )
            )
            nodes.append(node)
            continue
        for old, new in zip(node.outputs, results, strict=False):
            if new.type != old.type:
                problems.append(
                    Problem(
                        "E301",
                        f"its inputs do not fit: they make {new.type}, not {old.type}",
                        f"node '{printable(node.name)}' ({node.kind})",
                    )
                )
            _rename(old, new, inner, renamed, old in outputs)
        pending.extend(reversed(inner))
    if problems:
        raise CompileError(problems)
    graph.nodes = nodes
    graph.outputs = [renamed.get(v, v) for v in graph.outputs]
    return changed


def _rename(old: Value, new: Value, inner: list[Node], renamed: dict[Value, Value], output: bool) -> None:
    """Keep the user's value in place of the expansion's result, so that its name and quantisation stay.

    output: the graph gives it; then it stays where it is another value, too, such as the node's input.
    """
    for node in inner:
        if new in node.outputs:
            node.outputs = [old if v is new else v for v in node.outputs]
            for other in inner:
                other.inputs = [old if v is new else v for v in other.inputs]
            return
    if output:
        inner.append(Node(op("Identity"), [new], [old]))
        return
    renamed[old] = new
    new.take_over(old)
