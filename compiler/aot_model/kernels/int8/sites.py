"""The integer kernels as a target sees them: which nodes they take, and how a node becomes a call.

They take a convolution or matrix product of int8 (uint8) activations with constant int8 weights whose accumulators go
through a constant bias and a requantisation to int8 (uint8); what follows (a residual sum, a table) is the tail.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from functools import partial

import numpy as np

from aot_model.ir.expr import substitute
from aot_model.ir.graph import Node, Value
from aot_model.ir.types import DType
from aot_model.kernels.base import ConvShape, KernelCode, Tail
from aot_model.kernels.float32.sites import conv_shape, coordinates_of, pixel_coordinates
from aot_model.kernels.int8 import (
    conv_c,
    conv_dsp,
    conv_mve,
    depthwise_c,
    depthwise_dsp,
    depthwise_mve,
    fully_connected_dsp,
    fully_connected_mve,
    sum_mve,
)  # fmt: skip
from aot_model.kernels.int8.spec import QuantSpec
from aot_model.lowering.site import Site
from aot_model.lowering.strided import dense
from aot_model.lowering.tail import Chain, FusedTail
from aot_model.lowering.vector_text import position_text
from aot_model.ops.nn import Convolution, MatMul
from aot_model.ops.quantised import QuantisedSum, Requantise
from aot_model.targets.target import Kernel, Target

_BYTES = (DType.INT8, DType.UINT8)
_VARIANTS = {"double": 1, "single": 3}

Writer = Callable[[ConvShape, np.ndarray, "np.ndarray | None", QuantSpec, "Tail | None"], KernelCode]


@dataclass(frozen=True)
class Family:
    """The kernels of one instruction set. Each says for which shapes it is right; conv_c does all."""

    name: str
    depthwise: Writer
    depthwise_fits: Callable[[ConvShape, QuantSpec], bool]
    conv: Writer
    conv_fits: Callable[[ConvShape, QuantSpec], bool]
    row: Writer | None
    row_fits: Callable[[ConvShape, QuantSpec], bool]
    """Fully connected, one row of input."""


def _never(shape: ConvShape, quant: QuantSpec) -> bool:
    return False


PLAIN = Family("plain C", depthwise_c.depthwise, depthwise_c.applicable, conv_c.conv, lambda s, q: True, None, _never)
ARMV6M = replace(PLAIN, name="plain C, eight registers", conv=partial(conv_c.conv, block=(1, 2)))
DSP = Family(
    "DSP extension", depthwise_dsp.depthwise, depthwise_dsp.applicable, conv_dsp.conv, conv_dsp.applicable,
    fully_connected_dsp.fully_connected, fully_connected_dsp.applicable,
)  # fmt: skip
HELIUM = Family(
    "Helium", depthwise_mve.depthwise, depthwise_mve.applicable, conv_mve.conv, conv_mve.applicable,
    fully_connected_mve.fully_connected, fully_connected_mve.applicable,
)  # fmt: skip


# --- from a node and its chain to numbers -----------------------------------------------------------------------------


@dataclass(frozen=True)
class Integer:
    """The integer part of a chain: bias and requantisation; `after` nodes of the chain are the kernel's own."""

    bias: np.ndarray | None
    quant: QuantSpec
    after: int


def integer_part(node: Node, chain: Chain) -> Integer | str:
    """The bias and requantisation after a node, or why there are none."""
    x, w = node.input(0), node.input(1)
    if x is None or w is None or x.dtype not in _BYTES:
        return "the activations are not int8 or uint8"
    if w.data is None or w.dtype not in _BYTES:
        return "the weights are not constant int8 or uint8"
    out, after, bias = node.outputs[0], 0, None
    channels = out.shape[-1] if out.shape else 1
    if chain.nodes and chain.nodes[0].kind == "Add":
        first = chain.nodes[0]
        value = first.inputs[1] if first.inputs[0] is out else first.inputs[0]
        if value is None or not _per_channel(value, channels):
            return "the bias is not a constant for each channel"
        assert value.data is not None
        bias = np.broadcast_to(value.data.reshape(-1), (channels,)).astype(np.int32)
        out, after = first.outputs[0], 1
    step = chain.nodes[after] if len(chain.nodes) > after else None
    if step is None or not isinstance(step.op, Requantise) or step.inputs[0] is not out:
        return "the accumulators are not requantised next"
    multiplier, shift = step.inputs[1], step.inputs[2]
    if multiplier is None or shift is None or not _per_channel(multiplier, channels) or not _per_channel(shift, channels):
        return "the multipliers are not constants for each channel"
    if step.op.to not in _BYTES or step.op.rounding not in _VARIANTS or step.op.x_zero_point:
        return f"requantisation to {step.op.to.label} with {step.op.rounding} rounding"
    op = node.op
    assert isinstance(op, (Convolution, MatMul)) and multiplier.data is not None and shift.data is not None
    quant = QuantSpec(
        op.x_zero_point, multiplier.data.reshape(-1).astype(np.int32), shift.data.reshape(-1).astype(np.int32), step.op.zero_point,
        step.op.low, step.op.high, x.dtype.label, step.op.to.label, _VARIANTS[step.op.rounding], op.w_zero_point,
    )  # fmt: skip
    return Integer(bias, quant, after + 1)


def _per_channel(value: Value, channels: int) -> bool:
    if value.data is None or value.data.size not in (1, channels):
        return False
    return value.data.size == 1 or value.shape[-1] == channels


def _reject(node: Node, chain: Chain, target: Target) -> str | None:
    x = node.input(0)
    if x is None or not x.type.elements or not node.outputs[0].type.elements:
        return "nothing to compute"
    if isinstance(node.op, Convolution) and x.type.rank > 4:
        return "more than two spatial axes"
    w = node.input(1)
    if isinstance(node.op, MatMul) and (w is None or w.type.rank != 2):
        return "the weights are not a matrix"
    part = integer_part(node, chain)
    return part if isinstance(part, str) else None


# --- calls ------------------------------------------------------------------------------------------------------------


def _tail(site: Site, part: Integer, flat: bool) -> FusedTail:
    out = site.node.outputs[0]
    coordinates = pixel_coordinates(out) if flat else coordinates_of(out)
    return site.tail(coordinates, after=part.after, low=part.quant.act_min, high=part.quant.act_max)  # type: ignore[arg-type]


def _emit(family: Family, site: Site, part: Integer, name: str, writer: Writer, shape: ConvShape, weights: np.ndarray, flat: bool) -> None:
    tail = _tail(site, part, flat)
    if family is HELIUM and part.after:
        tail = helium_sum(tail, site.chain.nodes[part.after :], site.chain.nodes[part.after - 1].outputs[0])
    code = writer(shape, weights, part.bias, part.quant, None if tail.is_identity else tail)
    w = site.node.input(1)
    shapes = f"{site.input(0).type} * {w.type if w is not None else ''} -> {site.result.type}"
    site.emit(name, code, None if tail.is_identity else tail, shapes, shape.macs, (dense(site.input(0)),))


@dataclass(frozen=True)
class SumTail(FusedTail):
    """The sum with one other tensor, a row at a time."""

    row_kernel: str = ""
    row_helpers: tuple[str, ...] = ()

    def store_row(self, source: str, index: tuple[str, str, str, str], count: int) -> str:
        """The results of `count` channels of a pixel; see kernels/int8/conv_mve.py."""
        at = position_text(substitute(self.position, self.mapping("acc", index)), 13)
        (other,) = self.names.values()
        return f"{self.row_kernel}({source}, {other} + {at}, y + {at}, {count});\n"


def helium_sum(tail: FusedTail, nodes: tuple[Node, ...], before: Value) -> FusedTail:
    """The tail as a SumTail where it is one QuantisedSum of the kernel's result and a tensor of the same place."""
    if len(nodes) != 1 or not isinstance(nodes[0].op, QuantisedSum) or len(tail.names) != 1:
        return tail
    node, op = nodes[0], nodes[0].op
    (other,) = tail.names
    if op.function != "add" or {v.dtype for v in (*node.inputs, *node.outputs) if v is not None} != {DType.INT8}:
        return tail
    if not tail.reads_in_place(other) or other.type.elements != node.outputs[0].type.elements:
        return tail
    own, its = (op.a, op.b) if node.inputs[0] is before else (op.b, op.a)
    a, b, result = (sum_mve.Rescaling(r.zero_point, r.multiplier, r.shift) for r in (own, its, op.result))
    form = sum_mve.affine(a, b, result, op.left_shift, op.low, op.high)
    if form is None:
        return tail
    name, helpers = sum_mve.row_kernel(form)
    return SumTail(**{f.name: getattr(tail, f.name) for f in fields(tail)}, row_kernel=name, row_helpers=helpers)


def _part(site: Site) -> Integer:
    part = integer_part(site.node, site.chain)
    assert not isinstance(part, str), part
    return part


def _convolution(family: Family) -> Callable[[Site], None]:
    def emit(site: Site) -> None:
        op, part = site.node.op, _part(site)
        assert isinstance(op, Convolution)
        x, w, out = site.input(0), site.input(1), site.node.outputs[0]
        shape = conv_shape(x, out, w.shape[1:-1], op, op.group)
        assert w.data is not None
        weights = w.data.reshape(shape.out_c, shape.kernel_h, shape.kernel_w, -1)
        size = f"{shape.kernel_h}x{shape.kernel_w}"
        if op.group == shape.in_c and op.group > 1:
            by_channel = np.ascontiguousarray(weights[..., 0].transpose(1, 2, 0))
            depthwise = family.depthwise if family.depthwise_fits(shape, part.quant) else PLAIN.depthwise
            _emit(family, site, part, f"depthwise_{size}", depthwise, shape, by_channel, flat=False)
        elif family.conv_fits(shape, part.quant):
            _emit(family, site, part, f"conv_{size}", family.conv, shape, weights, flat=False)
        else:
            _emit(family, site, part, f"conv_{size}", PLAIN.conv, shape, weights, flat=False)

    return emit


def _matmul(family: Family) -> Callable[[Site], None]:
    def emit(site: Site) -> None:
        part = _part(site)
        x, w = site.input(0), site.input(1)
        assert w.data is not None
        k, n = w.shape
        rows = x.type.elements // k
        shape = ConvShape(1, 1, rows, k, 1, rows, n)
        weights = np.ascontiguousarray(w.data.T)
        if rows == 1 and family.row is not None and family.row_fits(shape, part.quant):
            _emit(family, site, part, "fully_connected", family.row, shape, weights, flat=True)
        else:
            writer = family.conv if family.conv_fits(shape, part.quant) else PLAIN.conv
            _emit(family, site, part, "fully_connected", writer, shape, weights.reshape(n, 1, 1, k), flat=True)

    return emit


def kernels(family: Family) -> tuple[Kernel, ...]:
    """The kernels of an instruction set for a target."""
    return (
        Kernel(f"int8 convolution ({family.name})", "Convolution", _convolution(family), _reject),
        Kernel(f"int8 matrix product ({family.name})", "MatMul", _matmul(family), _reject),
    )
