"""tanh and the logistic function of sums of products, where products and sums are rounded one by one.

They have the bits of ONNX Runtime's functions, of which each step is rounded once. A target that rounds the
products and sums of its kernels one by one (`VectorDialect.rounds_apart`), because that takes it less
time, has other arguments than ONNX Runtime has, and computes the functions of them in the same way: of what
is made of floats' sums alone. Functions of other numbers, such as quantised ones, keep their bits.
"""

from __future__ import annotations

from collections.abc import Container

from aot_model.ir.expr import Call, Cell, Expr, Leaf, Load, call, walk
from aot_model.ir.graph import Graph, Node
from aot_model.ir.index import substitute
from aot_model.ir.scalar_ops import APART, SCALAR_OPS
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.kernels.float32.dialect import VectorDialect


class Sums:
    """Floats that come from sums of floats' products by way of floats alone; none where each step is rounded
    once.
    """

    def __init__(self, graph: Graph, kernels: Container[Node], dialect: VectorDialect) -> None:
        self._apart = dialect.rounds_apart
        self._values: set[Value] = set()
        for node in graph.nodes if self._apart else ():
            floats = [v for v in node.inputs if v is not None and v.dtype is DType.FLOAT32]
            sums = bool(floats) and (node in kernels or node.op.stores_itself)
            if sums or any(v in self._values for v in floats):
                self._values.update(v for v in node.outputs if v.dtype is DType.FLOAT32)

    def rounded(self, x: Expr, start: Value | None = None) -> Expr:
        """An expression whose functions of sums are rounded as these are. start: the kernel's own result,
        where the expression is that of its tail.
        """
        if not self._apart or (start is not None and start.dtype is not DType.FLOAT32):
            return x
        changed: dict[Expr, Expr] = {}
        for node in walk(x):
            if isinstance(node, Call) and node.op + APART in SCALAR_OPS and self._has_sum(node):
                changed[node] = call(node.op + APART, *(substitute(a, changed) for a in node.args))
        return substitute(x, changed) if changed else x

    def _has_sum(self, x: Expr) -> bool:
        """Whether there is a kernel's result or a value that is made of one."""
        return any(
            isinstance(node, Leaf) or (isinstance(node, (Cell, Load)) and node.value in self._values)
            for node in walk(x)
        )
