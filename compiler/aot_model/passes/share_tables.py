"""Tables of one curve with scales of their own become that curve, which is in flash once.

    logistic and tanh of each step of a loop that was unrolled: 256 bytes for each, read a few times

Only where all 256 entries are the curve's exactly (ops/quantised_curves.py). Interpolating takes about ten
instructions more for an element, so a table that is read more often than it has entries stays. Helium looks
up four elements in an instruction, beside which interpolating costs more of the time than it gives back
of the flash: there it is for `optimize=size`, and nowhere for `optimize=speed`.
"""

from __future__ import annotations

from aot_model.ir.graph import Graph, Node
from aot_model.kernels.target import Target
from aot_model.ops.quantised_curves import Curve, curve, fit
from aot_model.ops.quantised_tables import Lookup, Table
from aot_model.passes.explain import refuse

WORTH = 2
"""Times the curve's bytes that tables must have."""


def pays(target: Target) -> bool:
    """Whether a target would rather have fewer tables than read them at once."""
    return target.wish == "size" or (target.wish == "balanced" and target.dialect() != "mve")


def share_tables(graph: Graph) -> bool:
    """Replace tables that are the curve's. True when something changed."""
    readers: dict[Table, list[Node]] = {}
    for node in graph.nodes:
        if isinstance(node.op, Lookup):
            readers.setdefault(node.op.table, []).append(node)
    worth = WORTH * curve().value.type.nbytes
    seldom = {}
    for table, nodes in readers.items():
        if sum(n.outputs[0].type.elements for n in nodes) <= len(table.values):
            seldom[table] = nodes
    found: dict[Table, Curve] = {}
    if sum(t.value.type.nbytes for t in seldom) >= worth:
        for table, nodes in seldom.items():
            made = _curve(table)
            if made is None:
                refuse(nodes[0], "no multiplier and offset make its table the logistic curve")
            else:
                found[table] = made
    if sum(t.value.type.nbytes for t in found) < worth:
        return False
    for table, op in found.items():
        for node in seldom[table]:
            node.op = op
    return True


def _curve(table: Table) -> Curve | None:
    if table.dtype.bits != 8:
        return None
    lowest = int(table.dtype.limits[0])
    made = fit([v - lowest for v in table.values], table.low)
    return None if made is None else Curve(*made, table.dtype)
