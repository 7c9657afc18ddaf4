"""From a node and the nodes behind it to the integer part of a kernel: bias and requantisation as numbers."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aot_model.ir.graph import Node
from aot_model.ir.nibbles import NIBBLES
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.kernels.int8.spec import QuantSpec, Rounding
from aot_model.kernels.tail import Chain
from aot_model.ops.convolution import Convolution, ConvolutionTranspose
from aot_model.ops.matmul import MatMul
from aot_model.ops.requantise import Requantise

BYTES = (DType.INT8, DType.UINT8)
ROUNDINGS: dict[str, Rounding] = {"double": "double", "single": "single", "even": "even"}
"""Those of Requantise that the kernels know."""


@dataclass(frozen=True)
class Integer:
    """The integer part of a chain: bias and requantisation; `after` nodes of the chain are the kernel's own.

    quant.rounding None: no requantisation follows that the kernels know; the chain's tail takes the
    accumulators.
    """

    bias: np.ndarray | None
    quant: QuantSpec
    after: int


def integer_part(node: Node, chain: Chain) -> Integer | str:
    """The bias and requantisation after a node, or why there are none."""
    x, w = node.input(0), node.input(1)
    if x is None or w is None or x.dtype not in BYTES:
        return "the activations are not int8 or uint8"
    if w.data is None or w.dtype not in (*BYTES, *NIBBLES):
        return "the weights are not constant integers of 8 or 4 bits"
    op = node.op
    assert isinstance(op, (Convolution, ConvolutionTranspose, MatMul))
    if not x.dtype.limits[0] <= op.x_zero_point <= x.dtype.limits[1]:
        return f"its zero point is none of {x.dtype.label}, with which padding could be filled"
    out, after, bias = node.outputs[0], 0, None
    channels = out.shape[-1] if out.shape else 1
    first = chain.nodes[0] if chain.nodes else None
    if first is not None and first.kind == "Add":
        value = first.inputs[1] if first.inputs[0] is out else first.inputs[0]
        if value is not None and _per_channel(value, channels):
            assert value.data is not None
            bias = np.broadcast_to(value.data.reshape(-1), (channels,)).astype(np.int32)
            out, after = first.outputs[0], 1
    step = chain.nodes[after] if len(chain.nodes) > after else None
    if step is not None and isinstance(step.op, Requantise) and step.inputs[0] is out:
        quant = _requantisation(step, op, x.dtype, channels)
        if quant is not None:
            return Integer(bias, quant, after + 1)
    return Integer(bias, QuantSpec.accumulators(op.x_zero_point, x.dtype.label, op.w_zero_point), after)


def _requantisation(
    step: Node, op: Convolution | ConvolutionTranspose | MatMul, dtype: DType, channels: int
) -> QuantSpec | None:
    """The requantisation of a node, where it is of a form that the kernels know."""
    rule, multiplier, shift = step.op, step.inputs[1], step.inputs[2]
    assert isinstance(rule, Requantise)
    if (
        multiplier is None
        or shift is None
        or not _per_channel(multiplier, channels)
        or not _per_channel(shift, channels)
    ):
        return None
    if rule.to not in BYTES or rule.rounding not in ROUNDINGS or rule.x_zero_point:
        return None
    assert multiplier.data is not None and shift.data is not None
    return QuantSpec(
        op.x_zero_point,
        multiplier.data.reshape(-1).astype(np.int32),
        shift.data.reshape(-1).astype(np.int32),
        rule.zero_point,
        rule.low,
        rule.high,
        dtype.label,
        rule.to.label,
        ROUNDINGS[rule.rounding],
        op.w_zero_point,
    )


def _per_channel(value: Value, channels: int) -> bool:
    if value.data is None or value.data.size not in (1, channels):
        return False
    return value.data.size == 1 or value.shape[-1] == channels
