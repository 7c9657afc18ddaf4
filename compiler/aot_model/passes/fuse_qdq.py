"""Operators between DequantizeLinear and QuantizeLinear become operators on integers.

    Q(conv(DQ(x), DQ(w)) + b)  =  requantise(sum((x - zx) * (w - zw)) + b / (sx * sw), sx * sw / sy)

and likewise matrix products, sums, products, pooling, concatenation and softmax; what only moves elements
moves the integers; any function of one 8-bit tensor is a table, of a 16-bit one polynomials on pieces, where
so many do. The results are within one unit of the literal meaning. What has no rule stays as it is, in
floats. Quantised operators (QLinearConv …) are brought to this form first, and constants that nobody wanted
as integers are dequantised last.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from aot_model.ir.graph import Graph, Node
from aot_model.ir.operator import OperatorError
from aot_model.ir.types import TensorType
from aot_model.ir.values import Value, constant
from aot_model.ops.piecewise import MOST
from aot_model.ops.quantised_linear import DequantizeLinear, QuantizeLinear
from aot_model.passes.expand import expand
from aot_model.passes.explain import refuse
from aot_model.passes.fold_constants import compute
from aot_model.passes.qdq_affine import behind_lines
from aot_model.passes.qdq_rules import ALONE, WITH_RANGE, movement, product, table
from aot_model.passes.qdq_site import MOVEMENTS, NARROW, Answer, QdqResult, QdqSite, parameters
from aot_model.passes.weight_only import keep_integers

ORDERS = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Transpose")
"""Movements that give every element once, in another shape or order."""


def fuse_qdq(graph: Graph, pieces: int = MOST, bytes_too: bool = False) -> bool:
    """Replace what lies between dequantisation and quantisation. True when something changed.

    pieces: a function of a 16-bit tensor may have, each of 8 bytes. bytes_too: as keep_integers() has it.
    """
    changed = expand(graph, lambda node: getattr(node.op, "expands_to_qdq", False))
    changed |= _before_orders(graph)
    producer, uses = graph.producers(), graph.uses()
    nodes: list[Node] = []
    for node in graph.nodes:
        made = _fused(graph, node, producer, uses, pieces) if type(node.op) is QuantizeLinear else None
        if made is None:
            nodes.append(node)
            continue
        changed = True
        nodes += made
    graph.nodes = nodes
    graph.prune()
    changed |= keep_integers(graph, bytes_too)
    return _dequantise_constants(graph) or changed


def _before_orders(graph: Graph) -> bool:
    """Computed floats that nothing but a QuantizeLinear reads, in another shape or order, are quantised
    before: what computes them may be of integers then. True when something changed.
    """
    place, producer, uses = {n: k for k, n in enumerate(graph.nodes)}, graph.producers(), graph.uses()
    moved = False
    for node in [n for n in graph.nodes if type(n.op) is QuantizeLinear]:
        found, real, chain = parameters(node), node.inputs[0], list[Node]()
        while real in producer and producer[real].kind in ORDERS and uses[real] == [(chain or [node])[-1]]:
            chain.append(producer[real])
            real = chain[-1].inputs[0]
        made = None if real is None or uses[real] != chain[-1:] else producer.get(real)
        outputs = {v for n in chain for v in (*n.inputs, *n.outputs)} & set(graph.outputs)
        if not chain or made is None or made.kind in ("DequantizeLinear", *MOVEMENTS) or outputs:
            continue
        if found is None or found[0].size != 1 or found[1].size != 1 or real is None:
            continue
        if node.outputs[0].dtype not in NARROW:
            continue
        before = None
        for old, new in zip((*chain[::-1], node), (node, *chain[::-1]), strict=True):
            inputs = [real if before is None else before, *new.inputs[1:]]
            shape = real.shape if before is None else new.outputs[0].shape
            out = (
                node.outputs[0]
                if old is node
                else Value(f"{node.outputs[0].name}.{new.name}", TensorType(node.outputs[0].dtype, shape))
            )
            graph.nodes[place[old]] = Node(new.op, inputs, [out], new.name)
            before = out
        moved = True
    return moved


def _fused(
    graph: Graph, node: Node, producer: dict[Value, Node], uses: dict[Value, list[Node]], pieces: int
) -> list[Node] | None:
    """The nodes on integers that give the result of a QuantizeLinear, None when there is no rule."""
    found, real, out = parameters(node), node.inputs[0], node.outputs[0]
    if (
        found is None
        or real is None
        or real not in producer
        or out.dtype not in NARROW
        or found[0].size != 1
        or found[1].size != 1
    ):
        return None
    low, high = out.dtype.limits
    target = QdqResult(out.dtype, float(found[0].reshape(-1)[0]), int(found[1].reshape(-1)[0]), low, high)
    behind = producer[real]
    site = QdqSite(graph, node, producer, uses, target, behind.name, pieces)
    answers = []
    try:
        for attempt in _attempts(site, behind):
            site.nodes.clear()
            answer = attempt()
            if isinstance(answer, Value):
                return _named(site, answer, out)
            answers.append(answer)
    except OperatorError as error:
        answers.append(str(error))
    refuse(behind, "; ".join(dict.fromkeys(answers)))
    return None


def _attempts(site: QdqSite, behind: Node) -> Iterator[Callable[[], Answer]]:
    """What may be tried for the operator before the quantisation, in order."""
    start = behind
    site_range = (site.to.low, site.to.high)
    bounds: list[tuple[float | None, float | None]] = []
    while (
        start.kind in ("Relu", "Clip")
        and start.inputs[0] is not None
        and start.inputs[0] in site.producer
        and (site.read_once(start.inputs[0]) or site.producer[start.inputs[0]].kind == "DequantizeLinear")
    ):
        limits = _limits(start)
        if limits is None:
            break
        bounds.append(limits)
        start = site.producer[start.inputs[0]]

    def in_range(node: Node, rule: Callable[[], Answer]) -> Answer:
        for limits in reversed(bounds):
            site.to.clamp(*limits)
        site.label = node.name
        answer = rule()
        site.to.low, site.to.high = site_range
        return answer

    if start.kind in WITH_RANGE:
        yield lambda: in_range(start, lambda: WITH_RANGE[start.kind](site, start))
    lined = behind_lines(site, start)
    if lined is not None:
        yield lambda: in_range(lined[0], lambda: product(site, *lined))
    if behind.kind in ALONE:
        yield lambda: ALONE[behind.kind](site, behind)
    if behind.kind in MOVEMENTS or behind.kind == "DequantizeLinear":
        yield lambda: movement(site, behind)
    yield lambda: table(site)


def _limits(node: Node) -> tuple[float | None, float | None] | None:
    """The real range of a Relu or Clip with constant bounds."""
    if node.kind == "Relu":
        return 0.0, None
    result: list[float | None] = []
    for k in (1, 2):
        value = node.input(k)
        if value is not None and value.data is None:
            return None
        number = None if value is None or value.data is None else float(value.data.reshape(-1)[0])
        if number is not None and math.isnan(number):
            return None
        result.append(number)
    return result[0], result[1]


def _named(site: QdqSite, answer: Value, out: Value) -> list[Node]:
    """The site's nodes, with the user's value as the result."""
    for node in site.nodes:
        if answer in node.outputs:
            node.outputs = [out if v is answer else v for v in node.outputs]
            return site.nodes
    site.graph.replace_all({out: answer})
    return site.nodes


def _dequantise_constants(graph: Graph) -> bool:
    known: dict[Value, Value] = {}
    kept: list[Node] = []
    for node in graph.nodes:
        if isinstance(node.op, DequantizeLinear) and all(v is None or v.is_const for v in node.inputs):
            out = node.outputs[0]
            data = compute(node)
            assert data is not None
            known[out] = constant(out.name, data[0])
        else:
            kept.append(node)
    graph.nodes = kept
    graph.replace_all(known)
    return bool(known)
