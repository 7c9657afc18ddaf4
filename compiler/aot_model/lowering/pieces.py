"""Matrix products of one row, cut into products of fewer columns, so that the weights of one piece can be
copied while the piece before is computed.

    y = tanh(x W + b)        y = concat(tanh(x W[:, :n] + b[:n]), tanh(x W[:, n:] + b[n:]))

The pieces of y lie one behind the other: nothing is moved. Each column is summed as before.
"""

from __future__ import annotations

import math

from aot_model.ir.expr import Expr, Index, load
from aot_model.ir.graph import Graph, Node
from aot_model.ir.index import index_variables
from aot_model.ir.types import TensorType
from aot_model.ir.values import Value, constant
from aot_model.kernels.tail import find_chain
from aot_model.ops.matmul import MatMul
from aot_model.ops.movement import Concat
from aot_model.ops.registry import required

LARGEST = 16 * 1024
"""Bytes of weights of a piece: the larger, the longer a run waits for the first copy of a layer."""
COLUMNS = 16
"""A piece has a multiple of so many columns, as vectors have ..."""
ROWS = 4
"""... or of so many, as words of packed weights have, where those are too large."""
PER_COLUMN = 16
"""Bytes that a column has at most beside its weights: its bias, and numbers of its requantisation."""


def cut_products(graph: Graph, most: int) -> None:
    """Cut products of constants that are larger than what may be copied at a time. most: bytes that all
    copies may take, of which two are in memory at a time.
    """
    uses = graph.uses()
    for node in list(graph.nodes):
        columns = _columns(node, min(most // 2, LARGEST))
        if columns and len(uses[required(node.inputs, 1)]) == 1:  # others keep the weights whole
            _cut(graph, _chain(graph, node, uses), columns)


def _columns(node: Node, largest: int) -> int:
    """Columns of a piece; 0 where a node is not to be cut."""
    if not isinstance(node.op, MatMul):
        return 0
    weights, out = node.inputs[1], node.outputs[0]
    if weights is None or weights.data is None or weights.type.rank != 2 or weights.dtype.storage:
        return 0
    rows, every = math.prod(out.shape[:-1]), weights.shape[1]
    bytes_of_column = weights.shape[0] * weights.dtype.size + PER_COLUMN
    fitting = largest // bytes_of_column
    columns = fitting - fitting % (COLUMNS if fitting >= COLUMNS else ROWS)
    return columns if rows == 1 and columns < every else 0


def _chain(graph: Graph, node: Node, uses: dict[Value, list[Node]]) -> list[Node]:
    """The product and what is made of it, element by element, with constants alone."""
    chain = [node]
    for following in find_chain(graph, node, uses, {node.outputs[0]: 0}, set()).nodes:
        if not _by_column(following, chain[-1].outputs[0]):
            break
        chain.append(following)
    return chain


def _by_column(node: Node, source: Value) -> bool:
    """Whether what each element is made of, beside that of `source`, are constants that are one number or
    have one for its column.
    """
    if any(v is not None and v is not source and not v.is_const for v in node.inputs):
        return False
    index, apart = index_variables(source.shape), True

    def at(value: Value, where: Index) -> Expr:
        nonlocal apart
        if value is not source and value in node.inputs and value.type.elements > 1:
            # a table is read at numbers, blocks of scales at parts of the index
            apart &= where[-1] is index[-1] and value.type.elements == value.shape[-1] == source.shape[-1]
        return load(value, where)

    node.op.express(at, node.inputs, index, 0)
    return apart


def _cut(graph: Graph, chain: list[Node], columns: int) -> None:
    """Put the pieces of a chain in the place of its last node."""
    result, every = chain[-1].outputs[0], chain[0].outputs[0].shape[-1]
    nodes: list[Node] = []
    pieces: list[Value | None] = []
    for begin in range(0, every, columns):
        end = min(begin + columns, every)
        made: dict[Value, Value] = {}
        for node in chain:
            inputs = [v if v is None else made.get(v) or _part(v, begin, end) for v in node.inputs]
            out = node.outputs[0]
            kind = TensorType(out.dtype, (*out.shape[:-1], end - begin))
            made[out] = Value(f"{out.name}.part{begin}", kind, quantisation=out.quantisation)
            nodes.append(Node(node.op, inputs, [made[out]], node.name))
        pieces.append(made[result])
    nodes.append(Node(Concat(axis=len(result.shape) - 1), pieces, [result], chain[-1].name))
    last = graph.nodes.index(chain[-1])
    graph.nodes[last : last + 1] = nodes
    graph.nodes = [n for n in graph.nodes if n not in chain]


def _part(value: Value, begin: int, end: int) -> Value:
    """The columns of a constant; all of what has none, or is no constant."""
    if value.data is None or value.type.elements == 1:
        return value
    return constant(f"{value.name}.part{begin}", value.data[..., begin:end], value.quantisation)
