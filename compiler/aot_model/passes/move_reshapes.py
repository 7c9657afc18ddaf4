"""Move reshapes behind the element-wise operators that follow a kernel.

    f(R(x), c) = R(f(x, c'))

A convolution of one axis comes as one of two axes and a reshape; bias, normalisation and activation follow
that. In front of it they are part of the kernel that makes x, or of its weights.
"""

from __future__ import annotations

import numpy as np

from aot_model.ir.graph import Graph, Node
from aot_model.ir.values import Value, constant
from aot_model.kernels.tail import behind_kernel
from aot_model.ops.views import ReshapeTo, Reshaping
from aot_model.passes.explain import refuse
from aot_model.passes.sweep import Sweep, changed_value

Shape = tuple[int, ...]


def move_reshapes(graph: Graph) -> bool:
    """Move reshapes down. True when something changed."""
    return _Sweep(graph).run()


class _Sweep(Sweep):
    def rewritten(self, node: Node) -> list[Node] | None:
        if isinstance(node.op, Reshaping):
            return self._one_view(node)
        if not node.op.elementwise or len(node.outputs) != 1:
            return None
        out = node.outputs[0]
        sources = {v: s for v in node.inputs if v is not None and (s := self._source(v, out)) is not None}
        if not sources:
            return None
        shapes = {s.shape for s in sources.values()}
        if len(shapes) > 1:
            refuse(node, "its inputs had different shapes before they were reshaped")
            return None
        (shape,) = shapes
        inputs: list[Value | None] = []
        for value in node.inputs:
            moved = None if value is None else sources.get(value) or _before(value, out.shape, shape)
            if value is not None and moved is None:
                refuse(node, f"'{value.name}' does not fit the shape before the reshape")
                return None
            inputs.append(moved)
        if any(self.uses.get(v, []).count(node) < len(self.uses.get(v, [])) for v in sources):
            refuse(node, "something else reads what was reshaped")
            return None
        inner = changed_value(out, shape, "flat")
        return [
            Node(node.op, inputs, [inner], node.name),
            Node(ReshapeTo(out.shape), [inner], [out], node.name),
        ]

    def _one_view(self, node: Node) -> list[Node] | None:
        """R(R(x)) = R(x)"""
        x, out = node.inputs[0], node.outputs[0]
        before = None if x is None else self.producer.get(x)
        if before is None or not isinstance(before.op, Reshaping):
            return None
        return [Node(ReshapeTo(out.shape), [before.inputs[0]], [out], node.name)]

    def _source(self, value: Value, out: Value) -> Value | None:
        """What was reshaped to a value as long as the result, if a kernel makes it.

        Only floats: behind a requantisation kernels of integers go on no faster than a loop of its own.
        """
        view = self.producer.get(value)
        if view is None or not isinstance(view.op, Reshaping) or value in self.outputs:
            return None
        source = view.inputs[0]
        if source is None or not source.dtype.is_float or value.shape != out.shape:
            return None
        return source if behind_kernel(source, self.producer, self.uses) else None


def _before(value: Value, after: Shape, shape: Shape) -> Value | None:
    """An operand for a result of `shape` instead of `after`, which has as many elements."""
    if value.type.elements == 1 and value.type.rank <= len(shape):
        return value
    if value.data is None:
        return None
    data = value.data.reshape((1,) * (len(after) - value.type.rank) + value.shape)
    long_after = [k for k, d in enumerate(after) if d != 1]
    long = [k for k, d in enumerate(shape) if d != 1]
    if [after[k] for k in long_after] == [shape[k] for k in long]:  # axis by axis
        extents = [1] * len(shape)
        for k, axis in zip(long, long_after, strict=True):
            extents[k] = data.shape[axis]
    elif shape[-1:] == after[-1:] and value.shape[-1:] == (data.size,):  # by the last axis
        extents = [1] * (len(shape) - 1) + [data.size]
    else:
        return None
    return constant(value.name, np.ascontiguousarray(data.reshape(extents)), value.quantisation)
