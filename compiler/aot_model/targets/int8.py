"""The integer kernels as a target sees them: which nodes they take, and how a node becomes a call.

They take a convolution or matrix product of int8 (uint8) activations with constant int8 weights whose
accumulators go through a constant bias and a requantisation to int8 (uint8); what follows (a residual sum, a
table) is the tail.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import partial
from textwrap import indent

import numpy as np

from aot_model.c.expr import SUMMAND
from aot_model.ir.graph import Node
from aot_model.ir.index import substitute
from aot_model.ir.nibbles import NIBBLES
from aot_model.ir.strided import dense
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.kernels.base import ConvShape, KernelCode, Tail
from aot_model.kernels.float32.vector_text import position_text
from aot_model.kernels.int8 import (
    conv_c,
    conv_dsp,
    conv_host,
    conv_mve,
    depthwise_c,
    depthwise_dsp,
    depthwise_host,
    depthwise_mve,
    fully_connected_dsp,
    fully_connected_mve,
    nibbles,
    pooling,
    pooling_host,
    pooling_mve,
    sum_host,
    sum_mve,
    vectors,
)
from aot_model.kernels.int8.spec import QuantSpec
from aot_model.kernels.site import Site
from aot_model.kernels.tail import Chain, FusedTail
from aot_model.kernels.target import Kernel, Target
from aot_model.ops.nn import Convolution, MatMul, Pool
from aot_model.ops.quantised import QuantisedSum, Requantise
from aot_model.targets.float32 import conv_shape, coordinates_of, pixel_coordinates

_BYTES = (DType.INT8, DType.UINT8)
_VARIANTS = {"double": 1, "single": 3, "even": 4}

Writer = Callable[[ConvShape, np.ndarray, "np.ndarray | None", QuantSpec, "Tail | None"], KernelCode]


PoolWriter = Callable[[str, ConvShape, str, "Tail | None"], KernelCode]
Fits = Callable[[ConvShape, QuantSpec], bool]


@dataclass(frozen=True)
class Family:
    """The kernels of one instruction set. Each says for which shapes it is right; conv_c does all."""

    name: str
    conv: Writer
    conv_fits: Fits
    pool: PoolWriter
    depthwise: Writer = depthwise_c.depthwise
    depthwise_fits: Fits = depthwise_c.applicable
    row: Writer | None = None
    """Fully connected, one row of input."""
    row_fits: Fits = lambda shape, quant: True
    sum_row: Callable[[sum_mve.Affine], sum_mve.RowSum] | None = None
    """The sum with another tensor, for tails that take rows."""
    dialects: tuple[str, ...] | None = None
    """Vector dialects of the target with which the family may be used; None: any."""
    dot: str | None = None
    """What the target's option `dot` must say for that."""


def _pool_c(kind: str, shape: ConvShape, dtype: str, tail: Tail | None) -> KernelCode:
    low, high = DType.of(dtype).limits
    return pooling.pool(kind, shape, low, high, dtype, False, tail)  # type: ignore[arg-type]


def _pool_dsp(kind: str, shape: ConvShape, dtype: str, tail: Tail | None) -> KernelCode:
    low, high = DType.of(dtype).limits
    return pooling.pool(kind, shape, low, high, dtype, True, tail)  # type: ignore[arg-type]


def _pool_host(kind: str, shape: ConvShape, dtype: str, tail: Tail | None) -> KernelCode:
    low, high = DType.of(dtype).limits
    return pooling_host.pool(kind, shape, low, high, dtype, tail)  # type: ignore[arg-type]


def _pool_mve(kind: str, shape: ConvShape, dtype: str, tail: Tail | None) -> KernelCode:
    if dtype != "int8" or not pooling_mve.applicable(shape):
        return _pool_c(kind, shape, dtype, tail)
    writer = pooling_mve.max_pool if kind == "max" else pooling_mve.average_pool
    return writer(shape, -128, 127, tail)


def _always(shape: ConvShape, quant: QuantSpec) -> bool:
    return True


PLAIN = Family("plain C", conv_c.conv, _always, _pool_c)
ARMV6M = replace(PLAIN, name="plain C, eight registers", conv=partial(conv_c.conv, block=(1, 2)))
HOST = Family(
    "AVX2", conv_host.conv, _always, _pool_host, depthwise_host.depthwise,
    _always, sum_row=sum_host.row_kernel, dialects=("v8", "v16"),
)  # fmt: skip
AVX512_VNNI = replace(HOST,
                      name=vectors.VNNI.name,
                      conv=partial(conv_host.conv, dialect=vectors.VNNI),
                      dot="vnni")
NEON_SDOT = replace(PLAIN,
                    name=vectors.SDOT.name,
                    conv=partial(conv_host.conv, dialect=vectors.SDOT),
                    dialects=("neon",),
                    dot="sdot")
DSP = Family("DSP extension", conv_dsp.conv, conv_dsp.applicable, _pool_dsp, depthwise_dsp.depthwise,
             depthwise_dsp.applicable, fully_connected_dsp.fully_connected, fully_connected_dsp.applicable,
             )
HELIUM = Family("Helium",
                conv_mve.conv,
                conv_mve.applicable,
                _pool_mve,
                depthwise_mve.depthwise,
                depthwise_mve.applicable,
                fully_connected_mve.fully_connected,
                fully_connected_mve.applicable,
                sum_row=sum_mve.row_kernel,
                )


# --- from a node and its chain to numbers -------------------------------------------------------------------


@dataclass(frozen=True)
class Integer:
    """The integer part of a chain: bias and requantisation; `after` nodes of the chain are the kernel's own.
    """

    bias: np.ndarray | None
    quant: QuantSpec
    after: int


def integer_part(node: Node, chain: Chain) -> Integer | str:
    """The bias and requantisation after a node, or why there are none."""
    x, w = node.input(0), node.input(1)
    if x is None or w is None or x.dtype not in _BYTES:
        return "the activations are not int8 or uint8"
    if w.data is None or w.dtype not in (*_BYTES, *NIBBLES):
        return "the weights are not constant integers of 8 or 4 bits"
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
    if multiplier is None or shift is None or not _per_channel(multiplier, channels) or not _per_channel(
            shift, channels):
        return "the multipliers are not constants for each channel"
    if step.op.to not in _BYTES or step.op.rounding not in _VARIANTS or step.op.x_zero_point:
        return f"requantisation to {step.op.to.label} with {step.op.rounding} rounding"
    op = node.op
    assert isinstance(op, (Convolution, MatMul)) and multiplier.data is not None and shift.data is not None
    quant = QuantSpec(op.x_zero_point,
                      multiplier.data.reshape(-1).astype(np.int32),
                      shift.data.reshape(-1).astype(np.int32), step.op.zero_point, step.op.low, step.op.high,
                      x.dtype.label, step.op.to.label, _VARIANTS[step.op.rounding], op.w_zero_point,
                      )
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


# --- calls --------------------------------------------------------------------------------------------------


def _tail(site: Site, part: Integer, flat: bool) -> FusedTail:
    out = site.node.outputs[0]
    coordinates = pixel_coordinates(out) if flat else coordinates_of(out)
    return site.tail(coordinates, after=part.after, low=part.quant.act_min,  # type: ignore[arg-type]
                     high=part.quant.act_max)


def _emit(family: Family, site: Site, part: Integer, name: str, writer: Writer, shape: ConvShape,
          weights: np.ndarray, flat: bool) -> None:
    tail = _tail(site, part, flat)
    if family.sum_row is not None and part.after:
        tail = sum_tail(family.sum_row, tail, site.chain.nodes[part.after:],
                        site.chain.nodes[part.after - 1].outputs[0])
    w = site.node.input(1)
    kind = w.dtype if w is not None and w.dtype in NIBBLES else None
    weights = weights if kind is None else weights.astype(kind.compute.numpy)
    code = writer(shape, weights, part.bias, part.quant, None if tail.is_identity else tail)
    if kind is not None:
        code = _with_nibbles(family, site, part, code, shape, weights, None if tail.is_identity else tail)
    code = replace(code, body=indent(code.body.rstrip(), "    "))
    if site.result.dtype.size > 1:
        # The kernels' slack is for outputs of one byte; a tail that widens would overtake the input.
        code = replace(code, slack=None)
    shapes = f"{site.input(0).type} * {w.type if w is not None else ''} -> {site.result.type}"
    site.emit(name, code, None if tail.is_identity else tail, shapes, shape.macs, (dense(site.input(0)),))


def _with_nibbles(family: Family, site: Site, part: Integer, code: KernelCode, shape: ConvShape,
                  weights: np.ndarray, tail: Tail | None) -> KernelCode:
    """The kernel of a layer whose weights (here a byte each) have 4 bits: unpacked before, or read where they
    lie.
    """
    plain = (part.bias, part.quant, tail)
    if shape.groups > 1:  # weights of few channels are few: there is room
        return nibbles.staged(code, None) or nibbles.staged(
            (PLAIN.depthwise if weights.ndim == 3 else PLAIN.conv)(shape, weights, *plain), None) or code
    room = None
    if family.dialects is None:
        once = shape.batch * shape.out_h * shape.out_w == 1
        room = 0 if once else nibbles.ROOM[str(site.target.option("optimize"))] if site.target.has_option(
            "optimize") else nibbles.ROOM["balanced"]
    matrix = weights.reshape(shape.out_c, shape.kernel_h, shape.kernel_w, -1)
    return nibbles.staged(code, room) or conv_c.conv(shape, matrix, *plain, nibbles=True)


@dataclass(frozen=True)
class SumTail(FusedTail):
    """The sum with one other tensor, a row at a time."""

    row_sum: sum_mve.RowSum = field(default_factory=lambda: sum_mve.RowSum(""))

    @property
    def row_helpers(self) -> tuple[str, ...]:
        """Texts of the functions that store_row's statement calls."""
        return self.row_sum.helpers

    def store_row(self, source: str, index: tuple[str, str, str, str], count: int | str) -> str:
        """`count` results from a pixel's first channel on; see kernels/int8/conv_mve.py."""
        at = position_text(substitute(self.position, self.mapping("acc", index)), SUMMAND)
        (other,) = self.names.values()
        where = "" if at == "0" else f" + {at}"
        self.headers.update({self.row_sum.header} - {""})
        return self.row_sum.call(source, f"{other}{where}", f"y{where}", str(count))


def sum_tail(row_kernel: Callable[[sum_mve.Affine], sum_mve.RowSum], tail: FusedTail, nodes: tuple[Node, ...],
             before: Value) -> FusedTail:
    """The tail as a SumTail where it is one QuantisedSum of the kernel's result and a tensor of the same
    place.
    """
    if len(nodes) != 1 or not isinstance(nodes[0].op, QuantisedSum) or len(tail.names) != 1:
        return tail
    node, op = nodes[0], nodes[0].op
    (other,) = tail.names
    if op.function != "add" or {v.dtype for v in (*node.inputs, *node.outputs) if v is not None
                                } != {DType.INT8}:
        return tail
    if not tail.reads_in_place(other) or other.type.elements != node.outputs[0].type.elements:
        return tail
    own, its = (op.a, op.b) if node.inputs[0] is before else (op.b, op.a)
    a, b, result = (sum_mve.Rescaling(r.zero_point, r.multiplier, r.shift) for r in (own, its, op.result))
    form = sum_mve.affine(a, b, result, op.left_shift, op.low, op.high)
    if form is None:
        return tail
    return SumTail(**{f.name: getattr(tail, f.name) for f in fields(tail)}, row_sum=row_kernel(form))


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
        by_channel = next((f for f in (family, PLAIN) if f.depthwise_fits(shape, part.quant)), None)
        if op.group == shape.in_c > 1 and by_channel is not None:
            taps = np.ascontiguousarray(weights[..., 0].transpose(1, 2, 0))
            _emit(family, site, part, f"depthwise_{size}", by_channel.depthwise, shape, taps, flat=False)
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
            _emit(family,
                  site,
                  part,
                  "fully_connected",
                  writer,
                  shape,
                  weights.reshape(n, 1, 1, k),
                  flat=True)

    return emit


def _pool(family: Family) -> Callable[[Site], None]:
    def emit(site: Site) -> None:
        op = site.node.op
        assert isinstance(op, Pool)
        x, out = site.input(0), site.node.outputs[0]
        shape = conv_shape(x, out, op.kernel, op, 1)
        low, high = x.dtype.limits
        tail = site.tail(coordinates_of(out), low=low, high=high)  # type: ignore[arg-type]
        code = family.pool(op.mode, shape, x.dtype.label, None if tail.is_identity else tail)
        name = f"{op.mode}_pool_{shape.kernel_h}x{shape.kernel_w}"
        site.emit(name, code, None if tail.is_identity else tail, f"{x.type} -> {site.result.type}", 0,
                  (dense(x),))

    return emit


def _pool_reject(node: Node, chain: Chain, target: Target) -> str | None:
    op, x = node.op, node.input(0)
    assert isinstance(op, Pool)
    if x is None or x.dtype not in _BYTES:
        return "the input is not int8 or uint8"
    if x.type.rank > 4 or not x.type.elements or not node.outputs[0].type.elements:
        return "more than two spatial axes, or nothing to compute"
    if any(d != 1 for d in op.dilations) or (op.count_include_pad and any(op.pads)) or op.ceil_mode:
        return "dilated windows, counted padding or windows beyond the end"
    if any(p >= k for p, k in zip(op.pads, (*op.kernel, *op.kernel), strict=True)):
        return "a window may lie in the padding"
    return None


def _for_dialects(
        family: Family, reject: Callable[[Node, Chain, Target],
                                         str | None]) -> Callable[[Node, Chain, Target], str | None]:
    def check(node: Node, chain: Chain, target: Target) -> str | None:
        if family.dialects is not None and target.dialect() not in family.dialects:
            return f"the target's vectors are {target.dialect()}"
        if family.dot is not None and target.option("dot") != family.dot:
            return f"the target's dot product is {target.option('dot')}"
        return reject(node, chain, target)

    return check


def kernels(family: Family) -> tuple[Kernel, ...]:
    """The kernels of an instruction set for a target."""
    return (Kernel(f"int8 convolution ({family.name})", "Convolution", _convolution(family),
                   _for_dialects(family, _reject)),
            Kernel(f"int8 matrix product ({family.name})", "MatMul", _matmul(family),
                   _for_dialects(family, _reject)),
            Kernel(f"int8 pooling ({family.name})", "Pool", _pool(family),
                   _for_dialects(family, _pool_reject)),
            )
