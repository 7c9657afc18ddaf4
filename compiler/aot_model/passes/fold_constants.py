"""Fold constants: a node whose inputs are all constant becomes its result, computed with numpy; so does one
whose results have no elements.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from aot_model.ir.evaluate import convert, evaluate
from aot_model.ir.expr import Expr, Index, const, load
from aot_model.ir.graph import Graph, Node, subgraphs
from aot_model.ir.index import index_variables
from aot_model.ir.nibbles import is_packed
from aot_model.ir.operator import OperatorError
from aot_model.ir.values import Value, constant
from aot_model.ops.conversion import Cast
from aot_model.ops.registry import Build
from aot_model.passes.explain import refuse

MAX_GROWTH = 1 << 16
"""A fold whose result has more elements than this must not be larger than its inputs (Expand,
ConstantOfShape).
"""
MAX_WORK = 1 << 26
"""Multiply-accumulates that folding a reduction may take."""
MAX_PASSING = 1 << 23
"""Elements that nodes between constants and a fold may have together, which no constant keeps."""


def fold_constants(graph: Graph) -> bool:
    """Replace nodes over constants by their results. True when something changed."""
    kept: list[Node] = []
    known: dict[Value, Value] = {}
    large: dict[Value, Node] = {}
    for node in graph.nodes:
        node.inputs = [known.get(v, v) if v is not None else None for v in node.inputs]
        results = folded(node) or _through(node, large)
        if results is None:
            kept.append(node)
            if _why_it_runs(node) is None and all(v is None or v.is_const or v in large for v in node.inputs):
                large.update(dict.fromkeys(node.outputs, node))
            continue
        for out, data in zip(node.outputs, results, strict=True):
            known[out] = constant(out.name, data, out.quantisation)
    graph.replace_all(known)
    changed = len(kept) != len(graph.nodes)
    graph.nodes = kept
    return changed


def folded(node: Node) -> list[np.ndarray] | None:
    """The outputs of a node as arrays; None when they are not known now."""
    if node.op.shape_only:
        return _expanded(node)
    if _has_no_elements(node):
        return [np.zeros(v.shape, v.dtype.numpy) for v in node.outputs]
    if any(v is not None and not v.is_const for v in node.inputs):
        return None
    why = _objection(node)
    data = compute(node) if why is None else None
    if data is None:
        refuse(node, why or "numpy cannot compute it here")
    return data


def followed(nodes: list[Node], known: Mapping[Value, Value]) -> dict[Value, Value] | None:
    """Constants, with what nodes make of them one after the other; None when one is not known now."""
    values = dict(known)
    for node in nodes:
        inputs = [v if v is None else values.get(v, v) for v in node.inputs]
        data = folded(Node(node.op, inputs, node.outputs, node.name))
        if data is None:
            return None
        values.update({v: constant(v.name, d) for v, d in zip(node.outputs, data, strict=True)})
    return values


def _through(node: Node, large: dict[Value, Node]) -> list[np.ndarray] | None:
    """The outputs of a node over results of constants that were too large to be folded, where it makes
    something small of them. None when it does not, or there is too much between.
    """
    if not any(v in large for v in node.inputs) or _why_it_runs(node) is not None:
        return None
    if any(v is not None and not v.is_const and v not in large for v in node.inputs):
        return None
    needed, sources = _made_of(node, large)
    between = sum(v.type.elements for n in needed[:-1] for v in n.outputs)
    size_in = sum(v.type.elements for v in sources)
    if between > MAX_PASSING or _too_large(node, size_in) or any(_too_much_work(n) for n in needed):
        return None
    arrays: dict[Value, Value] = {}
    for one in needed:
        inputs = [arrays.get(v, v) if v is not None else None for v in one.inputs]
        results = compute(Node(one.op, inputs, one.outputs, one.name))
        if results is None or one is node:
            return results
        arrays.update({v: constant(v.name, r) for v, r in zip(one.outputs, results, strict=True)})
    return None


def _made_of(node: Node, large: dict[Value, Node]) -> tuple[list[Node], list[Value]]:
    """The nodes that a result takes, itself last, and their constants."""
    found: dict[Node, None] = {}
    sources: dict[Value, None] = {}
    stack = [(node, False)]
    while stack:
        one, ready = stack.pop()
        if ready:
            found[one] = None
        elif one not in found:
            stack.append((one, True))
            stack.extend((large[v], False) for v in one.inputs if v is not None and v in large)
            sources.update(dict.fromkeys(v for v in one.inputs if v is not None and v not in large))
    return list(found), list(sources)


def _has_no_elements(node: Node) -> bool:
    """Whether no result has any: nothing is left to compute, by whatever means. Actual shapes of what depends
    on data are results, too.
    """
    return not any(v.type.elements for v in node.outputs) and _why_it_runs(node) is None


def _why_it_runs(node: Node) -> str | None:
    """Why a node is computed when the library runs, whatever its operands are; None when it need not be."""
    if node.op.effects:
        return "it has effects"
    if node.op.deferred:
        return "it is computed later on purpose"
    return "it has a body" if any(True for _ in subgraphs(node)) else None


def _objection(node: Node) -> str | None:
    """Why a node over constants is computed when the library runs, None when it need not be."""
    runs = _why_it_runs(node)
    if runs is not None:
        return runs
    size_in = sum(v.type.elements for v in node.inputs if v is not None)
    return _too_large(node, size_in) or _too_much_work(node)


def _too_large(node: Node, size_in: int) -> str | None:
    size_out = sum(v.type.elements for v in node.outputs)
    if size_out > max(MAX_GROWTH, size_in):
        return f"its result would be {size_out:,} constant elements, made of {size_in:,}"
    return None


def _too_much_work(node: Node) -> str | None:
    size_out = sum(v.type.elements for v in node.outputs)
    if node.op.reducing and node.op.addends(node.inputs) * size_out > MAX_WORK:
        return f"it would take more than {MAX_WORK:,} multiplications"
    return None


def compute(node: Node) -> list[np.ndarray] | None:
    """The outputs of a node over constants, whatever their size. Storage types are converted around it as by
    the pass `widen`, where it runs: within an operator nothing is rounded to them.
    """
    with np.errstate(all="ignore"):  # infinities and NaN are numbers like others
        wide = _widened(node)
        if wide is None:
            return _computed(node)
        results = _computed(wide)
        if results is None:
            return None
        return [convert(r, v.dtype) for r, v in zip(results, node.outputs, strict=True)]


def _widened(node: Node) -> Node | None:
    """The node in the types that it computes in; None where these are its own."""
    if isinstance(node.op, Cast) or node.op.only_moves() or node.op.stepwise:
        return None
    inputs: list[Value | None] = []
    for k, v in enumerate(node.inputs):
        if v is not None and v.data is None:
            return None
        nibbles = v is not None and k in node.op.takes_nibbles and is_packed(v)
        wide = v is not None and v.data is not None and v.dtype.storage and not nibbles
        inputs.append(constant(v.name, convert(v.data, v.dtype.compute)) if wide and v is not None else v)
    if all(a is b for a, b in zip(inputs, node.inputs, strict=True)):
        return None
    types = node.infer(inputs)
    outputs = [Value(v.name, t) for v, t in zip(node.outputs, types, strict=False)]
    return Node(node.op, inputs, outputs, node.name)


def _computed(node: Node) -> list[np.ndarray] | None:
    if node.op.has("express"):
        return [_element_wise(node, k) for k in range(len(node.outputs))]
    if node.op.has("fold"):
        return node.op.fold([None if v is None else v.data for v in node.inputs])[: len(node.outputs)]
    return _expanded(node) if node.op.has("expand") else None


def _at(value: Value, index: Index) -> Expr:
    if value.data is not None and value.data.size == 1:
        return const(value.data.reshape(-1)[0].item(), value.dtype)
    return load(value, index)


def _element_wise(node: Node, number: int) -> np.ndarray:
    shape = node.outputs[number].shape
    if 0 in shape:
        return np.zeros(shape, dtype=node.outputs[number].dtype.numpy)
    index = index_variables(shape)
    return evaluate(node.op.express(_at, node.inputs, index, number), index, shape)


def _expanded(node: Node) -> list[np.ndarray] | None:
    inner: list[Node] = []
    try:
        results = node.op.expand(Build(inner, node.name), node.inputs)
    except (OperatorError, ValueError, ArithmeticError):
        return None  # the pass that expands it says why
    if any(new.type != old.type for old, new in zip(node.outputs, results, strict=False)):
        return None
    known: dict[Value, Value] = {}
    for child in inner:
        child.inputs = [known.get(v, v) if v is not None else None for v in child.inputs]
        data = folded(child)
        if data is None:
            return None
        known.update({v: constant(v.name, d) for v, d in zip(child.outputs, data, strict=True)})
    arrays = [known.get(v, v).data for v in results[: len(node.outputs)]]
    return None if any(a is None for a in arrays) else [a for a in arrays if a is not None]
