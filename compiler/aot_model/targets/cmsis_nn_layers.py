"""What the target cmsis-nn reads off a match: numbers and geometry of a layer, and why the library does not
take it.
"""

from __future__ import annotations

from dataclasses import replace

from aot_model.arithmetic.fixed_point import quantise_multiplier
from aot_model.ir.nibbles import NIBBLES
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.kernels.base import ConvShape
from aot_model.kernels.tail import Chain
from aot_model.kernels.target import Target
from aot_model.ops.convolution import Convolution
from aot_model.ops.movement import Pad
from aot_model.ops.pool import Pool
from aot_model.ops.quantised import QuantisedMul, QuantisedSum
from aot_model.ops.quantised_softmax import MOST_TERMS, QuantisedSoftmax
from aot_model.ops.registry import normal_axis
from aot_model.partition.region import Match
from aot_model.targets.geometry import conv_shape
from aot_model.targets.int8_part import Integer, integer_part

# --- what is in a match -------------------------------------------------------------------------------------


def _chain(match: Match, head: str) -> Chain:
    """The nodes after the one called `head`."""
    start = match.nodes.index(match.node(head))
    return Chain(match.nodes[start + 1 :], match.result.outputs[0])


def integer(match: Match, head: str) -> Integer | str:
    """Bias and requantisation as the library does them, or why it does not."""
    part = integer_part(match.node(head), _chain(match, head))
    if isinstance(part, str):
        return part
    if (part.quant.x_dtype, part.quant.out_dtype) != ("int8", "int8"):
        return f"from {part.quant.x_dtype} to {part.quant.out_dtype}; the library computes int8"
    if part.quant.rounding != "double":
        return "rounded once; the library rounds twice"
    w = match.node(head).input(1)
    if w is not None and w.dtype in NIBBLES:
        return "weights of 4 bits, which would be widened"
    if w is not None and w.dtype is not DType.INT8:
        return f"weights of {w.dtype.label}; the library takes int8"
    return "weights with a zero point" if part.quant.weight_zero_point else part


def _geometry(match: Match, x: Value, head: str, kernel: tuple[int, ...], group: int) -> ConvShape:
    """The geometry of a convolution or pooling whose input, before padding, is x."""
    node = match.node(head)
    assert isinstance(node.op, (Convolution, Pool)) and node.inputs[0] is not None
    shape = conv_shape(node.inputs[0], node.outputs[0], kernel, node.op, group)
    if not match.has("pad"):
        return shape
    pads = _pads(match)
    top, left = ((0, 0), *pads[1:-1])[-2:]
    extents = (1, *x.shape[1:-1])[-2:]
    return replace(
        shape,
        in_h=extents[0],
        in_w=extents[1],
        pad_top=shape.pad_top + top[0],
        pad_left=shape.pad_left + left[0],
    )


def _pads(match: Match) -> list[tuple[int, int]]:
    node = match.node("pad")
    assert isinstance(node.op, Pad)
    return node.op.pads(node.inputs)


def conv_shape_of(match: Match) -> ConvShape:
    """The geometry of a convolution. A row is given as a column, which has the same elements in the same
    order: for rows the library has code of its own with Helium, which is wrong at borders of unequal width
    and refuses many strides."""
    w, node = match.value("w"), match.node("conv")
    assert isinstance(node.op, Convolution)
    s = _geometry(match, match.value("x"), "conv", w.shape[1:-1], node.op.group)
    if s.in_h != 1 or s.kernel_h != 1 or s.kernel_w == 1:
        return s
    return replace(
        s,
        in_h=s.in_w,
        in_w=1,
        out_h=s.out_w,
        out_w=s.out_h,
        kernel_h=s.kernel_w,
        kernel_w=1,
        stride_h=s.stride_w,
        stride_w=s.stride_h,
        dilation_h=s.dilation_w,
        dilation_w=s.dilation_h,
        pad_top=s.pad_left,
        pad_left=s.pad_top,
    )


def pool_shape_of(match: Match) -> ConvShape:
    node = match.node("pool")
    assert isinstance(node.op, Pool)
    return _geometry(match, match.value("x"), "pool", node.op.kernel, 1)


# --- what the library takes ---------------------------------------------------------------------------------


def check_convolution(match: Match, target: Target) -> str | None:
    part, x, node = integer(match, "conv"), match.value("x"), match.node("conv")
    if isinstance(part, str):
        return part
    assert isinstance(node.op, Convolution)
    if x.type.rank not in (3, 4):
        return f"{x.type.rank - 2} spatial axes; the library has two"
    if node.op.group not in (1, x.shape[-1]):
        return (
            f"{node.op.group} groups of {x.shape[-1]} channels; not all versions of the library have "
            "grouped convolutions"
        )
    if set(match.value("w").shape[1:-1]) == {1} and (any(node.op.pads) or match.has("pad")):
        return "padding of a kernel of one element, where the library expects as many pixels out as in"
    return _check_pad(match, part.quant.x_zero_point) if match.has("pad") else None


def _check_pad(match: Match, zero_point: int) -> str | None:
    """Padding before a convolution, which pads with what stands for zero."""
    node, pads = match.node("pad"), _pads(match)
    fill = node.input(2)
    assert isinstance(node.op, Pad)
    if node.op.mode != "constant" or (fill is not None and fill.data is None):
        return f"padding of mode {node.op.mode}"
    if (0 if fill is None or fill.data is None else int(fill.data.reshape(-1)[0])) != zero_point:
        return "padding with another value than the zero point"
    if pads[0] != (0, 0) or pads[-1] != (0, 0) or min(min(p) for p in pads) < 0:
        return "padding of channels or batches, or cropping"
    conv = match.node("conv").op
    assert isinstance(conv, Convolution)
    return "padding before a convolution that pads as well" if any(conv.pads) else None


def check_product(match: Match, target: Target) -> str | None:
    part = integer(match, "product")
    return part if isinstance(part, str) else None


def check_pool(match: Match, target: Target) -> str | None:
    node, x = match.node("pool"), match.value("x")
    assert isinstance(node.op, Pool)
    if x.type.rank not in (3, 4):
        return f"{x.type.rank - 2} spatial axes; the library has two"
    if node.op.mode not in ("max", "average"):
        return f"a {node.op.mode}, not a maximum or an average"
    if any(d != 1 for d in node.op.dilations):
        return "dilated windows"
    if node.op.count_include_pad and any(node.op.pads) and node.op.mode == "average":
        return "padding counts in the average"
    kernel = node.op.kernel
    if any(p >= k for p, k in zip(node.op.pads, (*kernel, *kernel), strict=True)):
        return "a window may lie in the padding"
    if match.has("clip") and not all(
        v is None or (v.data is not None and v.data.size == 1) for v in match.node("clip").inputs[1:]
    ):
        return "limits that are not constants"
    return None


def check_sum(match: Match, target: Target) -> str | None:
    node = match.result
    assert isinstance(node.op, QuantisedSum)
    if node.op.function != "add":
        return f"a {node.op.function}; the library adds"
    return _check_pairs(match, node.op.rounding)


def check_mul(match: Match, target: Target) -> str | None:
    node = match.result
    assert isinstance(node.op, QuantisedMul)
    return _check_pairs(match, node.op.rounding)


def _check_pairs(match: Match, rounding: str) -> str | None:
    node = match.result
    values = [v for v in (*node.inputs, *node.outputs) if v is not None]
    if any(v.dtype is not DType.INT8 for v in values):
        return f"from {values[0].dtype.label} to {values[-1].dtype.label}; the library computes int8"
    if any(v.shape != values[-1].shape for v in values):
        return (
            f"{values[0].type} and {values[1].type} are of different shapes; the library does not broadcast"
        )
    return None if rounding == "double" else "rounded once; the library rounds twice"


def check_softmax(match: Match, target: Target) -> str | None:
    node, x = match.result, match.value("x")
    assert isinstance(node.op, QuantisedSoftmax)
    if x.dtype is not DType.INT8 or node.op.to is not DType.INT8:
        return f"from {x.dtype.label} to {node.op.to.label}; the library computes int8"
    if normal_axis(node.op.axis, x.type.rank) != x.type.rank - 1:
        return f"along axis {node.op.axis}; the library takes the last"
    if x.shape[-1] >= MOST_TERMS:
        return f"over {x.shape[-1]} numbers; the library's sums wrap"
    _, shift = softmax_factor(node.op)
    return (
        None
        if shift >= 0
        else (
            f"an input scale of {node.op.scale:g} times beta {node.op.beta:g}, which "
            "its fixed-point format does not hold"
        )
    )


def softmax_factor(o: QuantisedSoftmax) -> tuple[int, int]:
    """beta * scale as a fixed-point factor to Q5.26."""
    return quantise_multiplier(min(o.beta * o.scale * 2**26, 2.0**31 - 1))
