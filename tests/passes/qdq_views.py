"""Cases of fuse_qdq where floats are read in another shape before they are quantised."""

from __future__ import annotations

from collections.abc import Callable

from pass_case import numbers
from qdq_cases import ODD, Net
from qdq_edges import Q, graph_case

from aot_model.ir.values import Value
from graphs import Maker


def _viewed(m: Maker, q: Value) -> Value:
    n = Net(m, ODD)
    flat = m.Reshape(m.Softplus(n.x(q)), numbers([3, 6], "int64"))
    return n.quantised(m.Unsqueeze(flat, numbers([1], "int64")))


def _viewed_product(m: Maker, q: Value) -> Value:
    n = Net(m, ODD)
    return n.quantised(m.Flatten(m.MatMul(n.x(q), n.weights(9, 5)), axis=0))


def _viewed_elsewhere(also: str) -> Callable[[Maker, Value], list[Value]]:
    def build(m: Maker, q: Value) -> list[Value]:
        n = Net(m, ODD)
        real = m.Softplus(n.x(q))
        flat = m.Reshape(real, numbers([3, 6], "int64"))
        return [
            n.quantised(flat),
            flat if also == "a result" else m.Neg(flat if also == "read twice" else real),
        ]

    return build


VIEWS = {
    "in another shape": graph_case(_viewed, Q),
    "product in another shape": graph_case(_viewed_product, Q),
    **{
        f"in another shape, {also}": graph_case(_viewed_elsewhere(also), Q)
        for also in ("read twice", "a result", "before it read twice")
    },
}

CASES = {f"fuse_qdq: {name}": case for name, case in VIEWS.items()}
