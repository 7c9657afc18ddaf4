"""The integer kernels as a target sees them: which nodes they take, and how a node becomes a call.

They take a convolution or matrix product of int8 (uint8) activations with constant int8 weights whose
accumulators go through a constant bias and a requantisation to int8 (uint8); what follows (a residual sum, a
table) is the tail.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from textwrap import indent

import numpy as np

from aot_model.ir.expr import Const, Expr, Leaf, leaf
from aot_model.ir.graph import Node
from aot_model.ir.nibbles import NIBBLES
from aot_model.ir.strided import dense
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.kernels import column_pairs
from aot_model.kernels.base import ConvShape, KernelCode, Tail
from aot_model.kernels.int8 import conv_c, depthwise_c, nibbles, winograd, winograd_dsp
from aot_model.kernels.int8.spec import Writer
from aot_model.kernels.reading import Reading
from aot_model.kernels.site import Coordinates, Site
from aot_model.kernels.tail import Chain, FusedTail
from aot_model.kernels.target import Kernel, Target
from aot_model.kernels.transposed import phases
from aot_model.ops.convolution import Convolution, ConvolutionTranspose
from aot_model.ops.matmul import MatMul
from aot_model.ops.pool import Pool
from aot_model.targets.float32 import cases_reject
from aot_model.targets.geometry import conv_shape, coordinates_of, pixel_coordinates, unflatten_leaf
from aot_model.targets.int8_families import PLAIN, Family
from aot_model.targets.int8_part import BYTES, Integer, integer_part
from aot_model.targets.memory import memory_of_constants
from aot_model.targets.row_tails import by_rows, by_vectors

OVERLAPS = {"cortex-m4": True, "cortex-m7": False, "cortex-m33": False}
"""Cores, and whether a load begins while the one before it is under way."""


def _rejecting(family: Family) -> Callable[[Node, Chain, Target], str | None]:
    def reject(node: Node, chain: Chain, target: Target) -> str | None:
        x, w = node.input(0), node.input(1)
        if x is None or not x.type.elements or not node.outputs[0].type.elements:
            return "nothing to compute"
        if isinstance(node.op, (Convolution, ConvolutionTranspose)) and x.type.rank > 4:
            return "more than two spatial axes"
        if isinstance(node.op, MatMul) and (w is None or w.type.rank != 2):
            return "the weights are not a matrix"
        part = integer_part(node, chain)
        if isinstance(part, str):
            return part
        if not part.quant.rounding and not (family.accumulators or _sums_of_channels(family, node, part)):
            return "the accumulators are not requantised next by constants for each channel"
        return cases_reject(node, each_is_code=True) if isinstance(node.op, ConvolutionTranspose) else None

    return reject


def _sums_of_channels(family: Family, node: Node, part: Integer) -> bool:
    """Whether a node is a depthwise convolution whose sums the family's kernel gives to a tail."""
    x, w = node.input(0), node.input(1)
    if not (family.channel_sums and isinstance(node.op, Convolution) and x is not None and w is not None):
        return False
    if w.dtype is not DType.INT8:
        return False
    shape = conv_shape(x, node.outputs[0], w.shape[1:-1], node.op, node.op.group).row_of_windows
    return shape.in_c > 1 and family.depthwise_fits(shape, part.quant)


Place = Callable[[Coordinates], tuple[Expr, ...]]
"""From a kernel's (n, y, x, channel) to the index of the result."""


def _of_window(out: Value) -> Place:
    """(n, y, x, c) to the result's index. Where y is 0, x may count the pixels of an image, or of all."""
    whole, plain = pixel_coordinates(out), coordinates_of(out)

    def at(index: tuple[Expr, Expr, Expr, Expr]) -> tuple[Expr, ...]:
        n, y, x, c = index
        if not (isinstance(y, Const) and y.value == 0 and isinstance(x, Leaf)):
            return tuple(plain(index))  # type: ignore[operator]
        if isinstance(n, Const) and n.value == 0:
            return tuple(whole(index))  # type: ignore[operator]
        image = out.shape[1:-1]
        return (n, *unflatten_leaf(leaf(x.name, x.dtype, 0, math.prod(image) - 1), image), c)

    return at


def _tail(site: Site, part: Integer, place: Place) -> FusedTail:
    known = part.quant.rounding is not None
    return site.tail(
        place,
        after=part.after,
        low=part.quant.act_min if known else None,
        high=part.quant.act_max if known else None,
    )


def _emit(
    family: Family,
    site: Site,
    part: Integer,
    name: str,
    writer: Writer,
    shape: ConvShape,
    weights: np.ndarray,
    place: Place,
    whole: bool = True,
    wish: int | None = None,
    macs: int | None = None,
) -> None:
    """whole: the call computes all of the result, in the order of its pixels. macs: of the layer, where the
    shape has more.
    """
    tail = _tail(site, part, place)
    if part.after:
        tail = by_rows(
            family,
            tail,
            site.chain.nodes[part.after :],
            site.chain.nodes[part.after - 1].outputs[0],
            adjacent=whole,
        )
    if site.target.dialect() == "mve":
        tail = by_vectors(tail)
    w = site.node.input(1)
    kind = w.dtype if w is not None and w.dtype in NIBBLES else None
    weights = weights if kind is None else weights.astype(kind.compute.numpy)
    used = None if tail.is_identity and whole and part.quant.rounding else tail
    code = writer(shape, weights, part.bias, part.quant, used)
    if kind is not None:
        code = _with_nibbles(family, site, part, code, shape, weights, used)
    code = replace(code, body=indent(code.body.rstrip(), "    "))
    if not whole:
        code = replace(code, slack=None)
    shapes = f"{site.input(0).type} * {w.type if w is not None else ''} -> {site.result.type}"
    wishes = [least for least in (wish, code.wish) if least is not None]
    site.emit(
        name,
        code,
        used,
        shapes,
        shape.macs if macs is None else macs,
        (dense(site.input(0)),),
        min(wishes, default=None),
    )


def _with_nibbles(
    family: Family,
    site: Site,
    part: Integer,
    code: KernelCode,
    shape: ConvShape,
    weights: np.ndarray,
    tail: Tail | None,
) -> KernelCode:
    """The kernel of a layer whose weights (here a byte each) have 4 bits: unpacked before, or read where they
    lie.
    """
    plain = (part.bias, part.quant, tail)
    if shape.groups > 1:  # weights of few channels are few: there is room
        by_channel = weights.ndim == 3
        in_place = by_channel and (family.nibbles is not None or family.depthwise is PLAIN.depthwise)
        fast = None if in_place else nibbles.staged(code, None)
        if fast is not None:
            return fast
        if by_channel:
            return depthwise_c.depthwise(shape, weights, *plain, nibbles=True)
        return nibbles.staged(PLAIN.conv(shape, weights, *plain), None) or code
    matrix = weights.reshape(shape.out_c, shape.kernel_h, shape.kernel_w, -1)
    if family.nibbles is not None and (made := family.nibbles(shape, matrix, *plain)) is not None:
        return made
    room = None
    if family.dialects is None:
        once = shape.batch * shape.out_h * shape.out_w == 1
        room = 0 if once else nibbles.ROOM[site.target.wish]
    return nibbles.staged(code, room) or conv_c.conv(shape, matrix, *plain, nibbles=True)


def _part(site: Site) -> Integer:
    part = integer_part(site.node, site.chain)
    assert not isinstance(part, str), part
    return part


def _winograd(
    site: Site, part: Integer, shape: ConvShape, weights: np.ndarray
) -> tuple[winograd.Variant | None, int | None]:
    """The variant of Winograd's convolution for which there is room, and the scratch memory from which on
    there is one.
    """
    w = site.input(1)
    if site.target.wish == "size" or w.dtype in NIBBLES or not winograd.fits(shape, part.quant, weights):
        return None, None
    tail = len(site.chain.nodes) > part.after
    least = winograd.smallest(shape, tail)
    return winograd.choose(shape, tail, site.room), None if least is None else least.scratch


def _common(site: Site) -> bool:
    """Whether another product of the network has the same weights, as in loops that were unrolled."""
    w = site.node.input(1)
    if w is None or w.data is None:
        return False
    products = (n for n in site.lowering.graph.nodes if n.kind == "MatMul" and n is not site.node)
    others = (o.data for n in products if (o := n.input(1)) is not None and o.type == w.type)
    return any(data is not None and np.array_equal(data, w.data) for data in others)


def _for_site(family: Family, site: Site, whole: bool) -> Family:
    """The family with what is known of how constants are read. whole: the node has no other call, so that
    there may be room for copies of them.
    """
    if family.reading is None:
        return family
    core = next((t.name for t in site.target.lineage() if t.name in OVERLAPS), "")
    w = site.node.input(1)
    known = whole and w is not None and w.dtype not in NIBBLES
    memory = memory_of_constants(site) if known else None
    return family.reading(
        family,
        Reading(
            memory, OVERLAPS.get(core, True), site.room, site.target.wish == "size", common=_common(site)
        ),
    )


def _convolution(family: Family) -> Callable[[Site], None]:
    def emit(site: Site) -> None:
        op = site.node.op
        assert isinstance(op, Convolution)
        x, w, out = site.input(0), site.input(1), site.node.outputs[0]
        shape = conv_shape(x, out, w.shape[1:-1], op, op.group)
        assert w.data is not None
        weights = w.data.reshape(shape.out_c, shape.kernel_h, shape.kernel_w, -1)
        _windows(family, site, shape, weights, _of_window(out), True)

    return emit


def _signed(family: Family, site: Site, part: Integer, weights: np.ndarray) -> tuple[Integer, np.ndarray]:
    """uint8 weights as int8, less 128 as their zero point is; but not of few channels whose sums go to a
    tail: plain C takes less than patches of four pixels do.
    """
    few = part.quant.rounding is None and weights.shape[0] < 4
    if not family.zero_points or weights.dtype != np.uint8 or site.input(1).dtype in NIBBLES or few:
        return part, weights
    quant = replace(part.quant, weight_zero_point=part.quant.weight_zero_point - 128)
    return replace(part, quant=quant), (weights.astype(np.int16) - 128).astype(np.int8)


def _of_pair(place: Place, single: ConvShape) -> Place:
    return lambda index: place(column_pairs.place_of_pair(single, index))


def _windows(
    family: Family, site: Site, shape: ConvShape, weights: np.ndarray, place: Place, whole: bool
) -> None:
    """The call of a convolution; weights [out_c, kernel_h, kernel_w, in_c / groups]."""
    part, weights = _signed(family, site, _part(site), weights)
    size, macs = f"{shape.kernel_h}x{shape.kernel_w}", shape.macs
    if whole:
        shape = shape.row_of_windows
        weights = weights.reshape(shape.out_c, shape.kernel_h, shape.kernel_w, -1)
    family = _for_site(family, site, whole) if family.packs(weights) else PLAIN
    packed = site.input(1).dtype in NIBBLES
    alone = None
    if not packed and family.one_channel_fits(shape) and family.depthwise_fits(shape, part.quant):
        alone = family.one_channel
    if family.column_pairs and whole and column_pairs.pays(shape) and not packed and alone is None:
        weights = column_pairs.weights_of_pair(shape, weights, part.quant.weight_zero_point)
        bias = None if part.bias is None else np.repeat(part.bias, 2)
        part, place = replace(part, bias=bias), _of_pair(place, shape)
        shape = column_pairs.paired(shape)
    fitting = (f.depthwise for f in (family, PLAIN) if f.depthwise_fits(shape, part.quant))
    by_channel = alone or (next(fitting, None) if shape.groups == shape.in_c > 1 else None)
    if by_channel is not None:
        taps = np.ascontiguousarray(weights[..., 0].transpose(1, 2, 0))
        _emit(family, site, part, f"depthwise_{size}", by_channel, shape, taps, place, whole)
    else:
        writer = family.conv if family.conv_fits(shape, part.quant) else PLAIN.conv
        chosen, wish = _winograd(site, part, shape, weights) if family.winograd and whole else (None, None)
        if chosen is not None:
            writer = partial(winograd_dsp.conv, variant=chosen)
        _emit(family, site, part, f"conv_{size}", writer, shape, weights, place, whole, wish, macs)


def _transposed(family: Family) -> Callable[[Site], None]:
    """A transposed convolution as convolutions: one for each phase of the strides, with the taps that meet
    it."""

    def emit(site: Site) -> None:
        op = site.node.op
        assert isinstance(op, ConvolutionTranspose)
        x, w, out = site.input(0), site.input(1), site.node.outputs[0]
        whole = conv_shape(x, out, w.shape[1:-1], op, op.group)
        assert w.data is not None
        weights = w.data.reshape(whole.out_c, whole.kernel_h, whole.kernel_w, -1)
        for phase in phases(whole, op.w_zero_point):
            taken = np.ascontiguousarray(phase.weights(weights))
            _windows(family, site, phase.shape, taken, phase.place(out.type.rank), False)

    return emit


def _matmul(family: Family) -> Callable[[Site], None]:
    def emit(site: Site) -> None:
        part = _part(site)
        x, w = site.input(0), site.input(1)
        assert w.data is not None
        k, n = w.shape
        rows = x.type.elements // k
        place: Place = pixel_coordinates(site.node.outputs[0])  # type: ignore[assignment]
        shape = ConvShape(1, 1, rows, k, 1, rows, n)
        part, weights = _signed(family, site, part, np.ascontiguousarray(w.data.T))
        chosen = _for_site(family, site, True) if family.packs(weights) else PLAIN
        writer = chosen.conv if chosen.conv_fits(shape, part.quant) else PLAIN.conv
        _emit(chosen, site, part, "fully_connected", writer, shape, weights.reshape(n, 1, 1, k), place)

    return emit


def _pool(family: Family) -> Callable[[Site], None]:
    def emit(site: Site) -> None:
        op = site.node.op
        assert isinstance(op, Pool)
        x, out = site.input(0), site.node.outputs[0]
        shape = conv_shape(x, out, op.kernel, op, 1)
        low, high = x.dtype.limits
        tail = site.tail(_of_window(out), low=low, high=high)
        if site.target.dialect() == "mve":
            tail = by_vectors(tail)
        writer = _for_site(family, site, True).pool
        code = writer(op.mode, shape, x.dtype.label, None if tail.is_identity else tail)
        name = f"{op.mode}_pool_{shape.kernel_h}x{shape.kernel_w}"
        site.emit(
            name, code, None if tail.is_identity else tail, f"{x.type} -> {site.result.type}", 0, (dense(x),)
        )

    return emit


def _pool_rejecting(family: Family) -> Callable[[Node, Chain, Target], str | None]:
    def reject(node: Node, chain: Chain, target: Target) -> str | None:
        op, x, out = node.op, node.input(0), node.outputs[0]
        assert isinstance(op, Pool)
        if x is None or x.dtype not in (*BYTES, DType.INT16):
            return "the input is not of 8 or 16 bits"
        if x.type.rank > 4 or not x.type.elements or not out.type.elements:
            return "more than two spatial axes, or nothing to compute"
        if any(d != 1 for d in op.dilations) or (op.count_include_pad and any(op.pads)) or op.ceil_mode:
            return "dilated windows, counted padding or windows beyond the end"
        if any(p >= k for p, k in zip(op.pads, (*op.kernel, *op.kernel), strict=True)):
            return "a window may lie in the padding"
        if not family.pool_fits(conv_shape(x, out, op.kernel, op, 1), x.dtype.label):
            return f"windows of {x.dtype.label}"
        return None

    return reject


def _for_dialects(
    family: Family, reject: Callable[[Node, Chain, Target], str | None]
) -> Callable[[Node, Chain, Target], str | None]:
    def check(node: Node, chain: Chain, target: Target) -> str | None:
        if family.dialects is not None and target.dialect() not in family.dialects:
            return f"the target's vectors are {target.dialect()}"
        if family.dot is not None and target.option("dot") != family.dot:
            return f"the target's dot product is {target.option('dot')}"
        return reject(node, chain, target)

    return check


def kernels(family: Family) -> tuple[Kernel, ...]:
    """The kernels of an instruction set for a target: those that multiply, then pooling."""
    check = _for_dialects(family, _rejecting(family))
    return (
        Kernel(f"int8 convolution ({family.name})", "Convolution", _convolution(family), check),
        Kernel(f"int8 matrix product ({family.name})", "MatMul", _matmul(family), check),
        Kernel(
            f"int8 transposed convolution ({family.name})", "ConvolutionTranspose", _transposed(family), check
        ),
        Kernel(
            f"int8 pooling ({family.name})",
            "Pool",
            _pool(family),
            _for_dialects(family, _pool_rejecting(family)),
        ),
    )
