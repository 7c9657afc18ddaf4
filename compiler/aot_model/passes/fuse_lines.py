"""Functions of one 8-bit tensor that are a line for each channel become a multiply-add for each element.

    (x - 5) * (c[k] - 9) * scale  =  (x * slope[k] + offset[k]) >> shift     MUL by a tensor of one row
    x + c[k]                                                                  ADD
    x < 0 ? x * c[k] : x                                                      PRELU, with a bend at 0

What operators with constants give for all 256 values of x, beside each element of the constants, is computed
by the operators themselves and compared, as for tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from aot_model.ir.expr import const
from aot_model.ir.graph import Graph, Node
from aot_model.ir.operator import Operator
from aot_model.ir.values import Value, constant
from aot_model.kernels.tail import behind_kernel
from aot_model.kernels.target import Target
from aot_model.ops.quantised import QuantisedMul, QuantisedPRelu, QuantisedSum
from aot_model.ops.quantised_div import QuantisedDiv
from aot_model.ops.quantised_lines import QuantisedBend, QuantisedLine, bends, lines
from aot_model.ops.requantise import Requantise, RequantiseFloat
from aot_model.passes.explain import refuse
from aot_model.passes.fuse_tables import CONVERSIONS, FLOATS, between, computed, surely

WORTH = 8
"""Elements for each function: its two numbers take eight bytes of flash, a constant of bytes one."""
MOST = 4096
"""Functions of a node."""
RESCALING = (QuantisedSum, QuantisedMul, QuantisedDiv, QuantisedPRelu, Requantise, RequantiseFloat)
"""Operators that take longer than a line; of others, a maximum or a table, there may be some beside them."""


def pays(target: Target) -> bool:
    """Whether a target would rather have fewer instructions than constants."""
    return target.wish != "size"


def own_forms(target: Target) -> tuple[type[Operator], ...]:
    """Operators that a target computes faster than a line: Helium multiplies eight elements at once. Not
    behind a kernel, which goes on with four.
    """
    return (QuantisedMul,) if target.dialect() == "mve" else ()


def fuse_lines(graph: Graph, forms: tuple[type[Operator], ...] = ()) -> bool:
    """Replace operators with constants by lines, but not those of `forms`. True when something changed."""
    producer, uses = graph.producers(), graph.uses()
    source: dict[Value, Value] = {}
    made: dict[Node, Node] = {}
    for node in graph.nodes:
        roots = _roots(node, source)
        out = node.outputs[0]
        if roots and out.dtype.bits != 8:
            source[out] = roots[0]
        if isinstance(node.op, forms) and not any(behind_kernel(x, producer, uses) for x in roots):
            continue
        for x in roots if out.dtype.bits == 8 else ():
            line = _line(node, x, between(x, out, producer))
            if line is not None:
                made[node], source[out] = line, x
                break
    if not made:
        return False
    graph.nodes = [made.get(n, n) for n in graph.nodes]
    graph.prune()
    return True


def _roots(node: Node, source: dict[Value, Value]) -> list[Value]:
    """The tensors of bytes that a node's result may be a function of, the first of them first."""
    moving = list(dict.fromkeys(v for v in node.inputs if v is not None and v.data is None))
    values = [v for v in (*node.inputs, *node.outputs) if v is not None]
    converts = isinstance(node.op, CONVERSIONS) and all(
        v.type.elements == 1 for v in values if v not in moving[:1] and v.data is not None
    )
    if (
        not (node.op.elementwise or converts)
        or not all(v.dtype in FLOATS or (v.dtype.is_integer and not v.dtype.storage) for v in values)
        or not all(v.shape == node.outputs[0].shape for v in moving)
    ):
        return []
    first = {source.get(v, v) for v in moving}
    found = [*first, *moving] if len(first) == 1 else []
    return [v for v in dict.fromkeys(found) if v.dtype.bits == 8 and v.dtype.is_integer]


def _line(node: Node, x: Value, cone: list[Node]) -> Node | None:
    """The line that a node is of x, if it is one and worth it."""
    known = {x, *(n.outputs[0] for n in cone)}
    alone = all(v is None or v.data is not None or v in known for n in cone for v in n.inputs)
    if not alone or not any(isinstance(n.op, (*RESCALING, *CONVERSIONS)) for n in cone):
        return None
    shape = _together(x, (v for n in cone for v in n.inputs if v is not None and v.data is not None))
    count = math.prod(shape)
    if x.type.elements < WORTH * count or count > MOST:
        refuse(node, f"{count} lines of {x.type.elements} elements are not worth their constants")
        return None
    low, high = (int(v) for v in x.dtype.limits)
    values, out = _values(x, cone, shape), node.outputs[0]
    if values is not None and isinstance(node.op, QuantisedPRelu) and x is node.inputs[0]:
        zero = node.op.x_zero_point
        bend = bends(values, range(low, high + 1), out.dtype.limits, zero)
        if bend is not None:
            less = constant(f"{out.name}.less", bend.less.reshape(shape))
            return Node(QuantisedBend(zero, bend.slope, bend.offset, bend.shift), [x, less], [out], node.name)
    limits = out.dtype.limits
    found = "numpy does not compute it" if values is None else lines(values, range(low, high + 1), limits)
    if isinstance(found, str):
        refuse(node, f"as a function of '{x.name}': {found}")
        return None
    slopes = found.slopes[:1] if (found.slopes == found.slopes[0]).all() else found.slopes.reshape(shape)
    numbers = [
        constant(f"{out.name}.slope", slopes),
        constant(f"{out.name}.offset", found.offsets.reshape(shape)),
    ]
    op = QuantisedLine(found.shift, found.low, found.high, out.dtype)
    return Node(op, [x, *numbers], [out], node.name)


def _together(x: Value, constants: Iterable[Value]) -> tuple[int, ...]:
    """The shape over which constants change."""
    ones = (1,) * x.type.rank
    return np.broadcast_shapes(ones, *(v.shape for v in constants))


def _values(x: Value, cone: list[Node], shape: tuple[int, ...]) -> np.ndarray | None:
    """int64 [function, argument]: what the operators give for all values of x."""
    low, high = (int(v) for v in x.dtype.limits)
    every = np.arange(low, high + 1).astype(x.dtype.numpy)
    if any(v is not None and v.dtype.is_float for n in cone for v in n.inputs):
        return _surely(x, cone, shape, every)
    grid = every.reshape(-1, *[1] * len(shape))
    found = computed(x, cone, np.ascontiguousarray(np.broadcast_to(grid, (len(every), *shape))))
    if found is None:
        return None
    rows: np.ndarray = found.reshape(len(every), -1).astype(np.int64).T
    return rows


def _surely(x: Value, cone: list[Node], shape: tuple[int, ...], every: np.ndarray) -> np.ndarray | None:
    """Of floats: the integers, where all are known."""
    constants = {v for n in cone for v in n.inputs if v is not None and v.data is not None}
    spread = {v: np.broadcast_to(v.data, shape).reshape(-1) for v in constants if v.data is not None}
    rows = []
    for k in range(math.prod(shape)):
        numbers = {v: const(data[k].item(), v.dtype) for v, data in spread.items()}
        row = surely(x, cone, every, numbers)
        if row is None:
            return None
        rows.append(row)
    return np.asarray(rows, np.int64)
