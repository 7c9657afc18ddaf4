"""Fold constants: a node whose inputs are all constant becomes its result, computed with numpy; so does one
whose results have no elements.
"""

from __future__ import annotations

import numpy as np

from aot_model.ir.evaluate import evaluate
from aot_model.ir.expr import Expr, Index, const, load
from aot_model.ir.graph import Graph, Node, subgraphs
from aot_model.ir.index import index_variables
from aot_model.ir.operator import OperatorError
from aot_model.ir.values import Value, constant
from aot_model.ops.registry import Build
from aot_model.passes.explain import refuse

MAX_GROWTH = 1 << 16
"""A fold whose result has more elements than this must not be larger than its inputs (Expand,
ConstantOfShape).
"""
MAX_WORK = 1 << 26
"""Multiply-accumulates that folding a reduction may take."""


def fold_constants(graph: Graph) -> bool:
    """Replace nodes over constants by their results. True when something changed."""
    kept: list[Node] = []
    known: dict[Value, Value] = {}
    for node in graph.nodes:
        node.inputs = [known.get(v, v) if v is not None else None for v in node.inputs]
        results = folded(node)
        if results is None:
            kept.append(node)
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
    size_out = sum(v.type.elements for v in node.outputs)
    if size_out > max(MAX_GROWTH, size_in):
        return f"its result would be {size_out:,} constant elements, made of {size_in:,}"
    if node.op.reducing and size_in * size_out > MAX_WORK:
        return f"it would take more than {MAX_WORK:,} multiplications"
    return None


def compute(node: Node) -> list[np.ndarray] | None:
    """The outputs of a node over constants, whatever their size."""
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
    except OperatorError:
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
