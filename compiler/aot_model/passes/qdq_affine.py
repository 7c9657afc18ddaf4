"""Factors and offsets for each channel between a product and its QuantizeLinear: batch normalisation that
nobody folded, as networks have it that were trained with quantisation. They become part of the scales of the
weights and of the bias.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from aot_model.ir.graph import Node
from aot_model.ir.values import Value
from aot_model.ops.normalisation import BatchNormalization
from aot_model.passes.qdq_site import QdqSite, Scaled

PRODUCTS = {"Conv": 1, "ConvTranspose": 1, "MatMul": -1, "Gemm": -1}
"""With the axis of the channels of their results."""
LINES = ("BatchNormalization", "Mul", "Div", "Add", "Sub")


@dataclass(frozen=True)
class Affine:
    """result * factor + offset; real numbers, one for each channel."""

    factor: np.ndarray
    offset: np.ndarray

    def after(self, factor: np.ndarray, offset: np.ndarray) -> Affine:
        """This, after another one; what is not finite is found in into()."""
        with np.errstate(invalid="ignore", over="ignore"):
            return Affine(factor * self.factor, offset * self.factor + self.offset)

    def into(
        self, n: QdqSite, w: Scaled, bias: np.ndarray | None, axis: int
    ) -> tuple[Scaled, np.ndarray] | str:
        """Weights and bias of the product with it; `axis`: that of the weights' output channels."""
        assert w.value.data is not None
        if not (np.isfinite(self.factor).all() and np.isfinite(self.offset).all()):
            return "a factor or an offset is not finite"
        channels = len(self.factor)
        along = [-1 if k == axis else 1 for k in range(w.value.type.rank)]
        zero = np.broadcast_to(w.zero, (channels,)).reshape(along)
        steps = (w.value.data.astype(np.int64) - zero) * np.sign(self.factor).astype(np.int64).reshape(along)
        low, high = w.value.dtype.limits
        if ((steps + zero < low) | (steps + zero > high)).any():
            return "a factor is negative, and the least integer of the weights has no opposite"
        scale = np.broadcast_to(w.scale, (channels,)) * np.where(self.factor == 0, 1, np.abs(self.factor))
        value = n.constant("weights", (steps + zero).astype(w.value.data.dtype))
        real = self.offset if bias is None else bias * self.factor + self.offset
        if not (np.isfinite(real).all() and np.isfinite(scale).all() and (scale > 0).all()):
            return "a factor or an offset is not finite"
        return replace(w, value=value, scale=scale, axis=axis), real


def behind_lines(n: QdqSite, start: Node) -> tuple[Node, Affine] | None:
    """The product that `start` computes a line of, through others perhaps, and the line; else None."""
    chain: list[Node] = []
    node = start
    while node.kind in LINES:
        before = [v for v in node.inputs if v is not None and n.real(v) is None]
        if len(before) != 1 or before[0] not in n.producer or not n.read_once(before[0]):
            return None
        if node.kind in ("Div", "BatchNormalization") and node.inputs[0] is not before[0]:
            return None
        chain.append(node)
        node = n.producer[before[0]]
    if node.kind not in PRODUCTS or not chain:
        return None
    out = node.outputs[0]
    if not out.shape:  # of two vectors
        return None
    axis = PRODUCTS[node.kind] % out.type.rank
    total = Affine(np.ones(out.shape[axis]), np.zeros(out.shape[axis]))
    for each in reversed(chain):
        line = _line(n, each, out, axis)
        if line is None:
            return None
        total = line.after(total.factor, total.offset)
    return node, total


def _line(n: QdqSite, node: Node, out: Value, axis: int) -> Affine | None:
    channels = out.shape[axis]
    if node.outputs[0].shape != out.shape:
        return None
    if isinstance(node.op, BatchNormalization):
        numbers = [n.real(v) for v in node.inputs[1:5]]
        if axis != 1 or node.op.training_mode or any(v is None or v.shape != (channels,) for v in numbers):
            return None
        scale, b, mean, var = (v for v in numbers if v is not None)
        with np.errstate(all="ignore"):
            factor = scale / np.sqrt(var + node.op.epsilon)
            return Affine(factor, b - mean * factor)
    first = n.real(node.inputs[0])
    data = n.real(node.inputs[1]) if first is None else first
    if data is None:
        return None
    shape = (*[1] * (out.type.rank - data.ndim), *data.shape)
    if any(extent != 1 for k, extent in enumerate(shape) if k != axis):
        return None
    number = np.broadcast_to(data.reshape(-1), (channels,))
    one, none = np.ones(channels), np.zeros(channels)
    if node.kind == "Mul":
        return Affine(number, none)
    if node.kind == "Div":
        with np.errstate(divide="ignore"):
            return Affine(1 / number, none)
    if node.kind == "Add":
        return Affine(one, number)
    return Affine(one, -number) if first is None else Affine(-one, number)
