"""Integer kernels for what those of int8.py do not take: 16-bit activations, any result, two activations.

They take a convolution or a matrix product of integers of 8 or 16 bits. The sums go to whatever follows: a
requantisation to another width, a conversion to real numbers, or nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from textwrap import indent

import numpy as np

from aot_model.ir.expr import Expr
from aot_model.ir.graph import Node
from aot_model.ir.nibbles import NIBBLES
from aot_model.ir.strided import dense
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.kernels.base import ConvShape, KernelCode
from aot_model.kernels.int8 import depthwise_taps_mve, nibbles
from aot_model.kernels.int8.patch_mve import BLOCK
from aot_model.kernels.int16 import bytes_mve, depthwise_dsp, depthwise_lanes_mve, depthwise_mve, groups_mve
from aot_model.kernels.int16.conv import Conv, conv
from aot_model.kernels.int16.depthwise import depthwise
from aot_model.kernels.int16.dots import Dots
from aot_model.kernels.int16.elements import Elements, elements
from aot_model.kernels.int16.finish import Finish, Rule, finish
from aot_model.kernels.int16.finish_mve import Ending
from aot_model.kernels.int16.matmul import Operands, Product, matmul
from aot_model.kernels.site import Coordinates, Site
from aot_model.kernels.tail import Chain, FusedTail
from aot_model.kernels.target import Kernel, Target
from aot_model.kernels.transposed import phases
from aot_model.ops.convolution import Convolution, ConvolutionTranspose
from aot_model.ops.matmul import MatMul
from aot_model.ops.requantise import Requantise
from aot_model.targets.float32 import cases_reject, matmul_site
from aot_model.targets.geometry import conv_shape, pixel_coordinates
from aot_model.targets.row_tails import by_vectors

Place = Callable[[Coordinates], tuple[Expr, ...]]
"""From a kernel's (n, y, x, channel) to the index of the result."""
NARROW = (DType.INT8, DType.UINT8, DType.INT16, DType.UINT16)


@dataclass(frozen=True)
class Family:
    """An instruction set."""

    name: str
    dsp: bool
    mve: bool = False
    """Where eight products have a sum of 32 bits; else it is as with `dsp`."""

    def dots(self, taps: int, most: int, w_type: str) -> Dots:
        """The inner loop for rows of so many taps."""
        vectors = Dots(False, taps, most, w_type=w_type, mve=True)
        return vectors if self.mve and vectors.chunk else Dots(self.dsp, taps, most, w_type=w_type)


_FEWEST_GATHERED = 4
"""Taps of a channel from which on a gather of them, which brings eight, takes less than plain C."""
_GATHERED = 8 * depthwise_taps_mve.RESIDENT
"""Taps of a channel up to which gathers of them are cheaper than a patch, where it has several outputs."""
PLAIN, DSP, HELIUM = Family("plain C", False), Family("DSP extension", True), Family("Helium", True, True)


def _no_room(node: Node, target: Target) -> str | None:
    """Why weights of 4 bits cannot be unpacked before a kernel runs (kernels/int8/nibbles.py)."""
    w = node.input(1)
    if w is None or w.dtype not in NIBBLES or w.type.elements <= nibbles.ROOM[target.wish]:
        return None
    return "there is no room for its unpacked weights of 4 bits"


def _by_channel_of_nibbles(family: Family, node: Node) -> bool:
    x, w, op = node.input(0), node.input(1), node.op
    assert isinstance(op, Convolution) and x is not None and w is not None
    return w.dtype in NIBBLES and not family.mve and op.group == x.shape[-1] > 1


def _largest(x: Elements) -> int:
    """The largest number that is multiplied, and what is left of the zero point."""
    low, high = DType[x.dtype.upper()].limits
    return max(abs(int(low) - x.shift), abs(int(high) - x.shift))


def _weights(w: Value, zero: int) -> np.ndarray | str:
    """Weights less their zero point, in the fewest bits, of 8 and 16."""
    if w.data is None or w.dtype not in (*NARROW, *NIBBLES):
        return "the weights are not constant integers of 4, 8 or 16 bits"
    whole = w.data.astype(np.int32) - zero
    if w.dtype in NIBBLES and whole.size and (whole.min() < -8 or whole.max() > 7):
        return "the weights without their zero point have 5 bits"  # they would be bytes in flash
    for kind in (np.int8, np.int16):
        if not whole.size or (whole.min() >= np.iinfo(kind).min and whole.max() <= np.iinfo(kind).max):
            return whole.astype(kind)
    return "the weights without their zero point have 17 bits"


@dataclass(frozen=True)
class Layer:
    """A layer with constant weights in numbers. most: no sum is larger, whatever the weights are."""

    x: Elements
    weights: np.ndarray
    dots: Dots
    start: np.ndarray
    most: int


def _layer(
    family: Family,
    x: Value,
    w: Value,
    op: Convolution | ConvolutionTranspose | MatMul,
    rows: Callable[[np.ndarray], np.ndarray],
) -> Layer | str:
    """rows: the weights [output channel, tap]."""
    found = _weights(w, op.w_zero_point)
    if isinstance(found, str):
        return found
    if x.dtype not in NARROW:
        return "the activations are not integers of 8 or 16 bits"
    if not x.dtype.limits[0] <= op.x_zero_point <= x.dtype.limits[1]:
        return f"its zero point is none of {x.dtype.label}, with which padding could be filled"
    source, matrix = elements(x.dtype.label, op.x_zero_point), rows(found)
    limit = -int(np.iinfo(matrix.dtype).min)
    dots = family.dots(matrix.shape[1], _largest(source) * limit, f"{matrix.dtype.name}_t")
    rest = source.shift - source.zero
    start = rest * matrix.astype(np.int64).sum(axis=1)
    most = dots.taps * dots.most
    if dots.sum_type == "int64_t" and x.dtype.bits == 8:
        return "the sums have more than 32 bits"
    return Layer(source, matrix, dots, start, most)


def _convolution_layer(family: Family, node: Node) -> Layer | str:
    x, w, op = node.input(0), node.input(1), node.op
    assert isinstance(op, Convolution)
    if x is None or w is None or not x.type.elements or not node.outputs[0].type.elements:
        return "nothing to compute"
    if x.type.rank > 4:
        return "more than two spatial axes"
    if op.group > 1 and family.mve and not (x.dtype is DType.INT16 and op.x_zero_point == 0):
        return "groups, and no int16 with zero point 0"
    return _layer(family, x, w, op, lambda v: v.reshape(v.shape[0], -1))


def _transposed_layer(family: Family, node: Node) -> Layer | str:
    """The layer with all taps; a phase has some of them, so that what holds for their sums holds for its."""
    x, w, op = node.input(0), node.input(1), node.op
    assert isinstance(op, ConvolutionTranspose)
    if x is None or w is None or not x.type.elements or not node.outputs[0].type.elements:
        return "nothing to compute"
    if x.type.rank > 4 or op.group > 1:
        return "more than two spatial axes, or groups"
    return _layer(family, x, w, op, lambda v: v.reshape(v.shape[0], -1))


def _product_layer(family: Family, node: Node) -> Layer | str:
    x, w, op = node.input(0), node.input(1), node.op
    assert isinstance(op, MatMul)
    if x is None or w is None or not x.type.elements or not node.outputs[0].type.elements:
        return "nothing to compute"
    if w.data is None or w.type.rank != 2 or x.is_const:
        return "the weights are not a constant matrix"
    return _layer(family, x, w, op, lambda v: np.ascontiguousarray(v.T))


def per_channel(value: Value | None, channels: int) -> np.ndarray | None:
    """A constant for each channel of the last axis, or one for all."""
    if value is None or value.data is None or value.data.size not in (1, channels):
        return None
    if value.data.size > 1 and value.shape[-1] != channels:
        return None
    return np.broadcast_to(value.data.reshape(-1), (channels,))


def finish_of(node: Node, chain: Chain, start: np.ndarray, most: int) -> Finish | None:
    """How the kernel does bias and requantisation behind a node; None: they are left to the tail."""
    out, after, channels = node.outputs[0], 0, start.size
    if chain.nodes and chain.nodes[0].kind == "Add":
        first = chain.nodes[0]
        bias = per_channel(first.inputs[1] if first.inputs[0] is out else first.inputs[0], channels)
        if bias is None or int(np.abs(bias.astype(np.float64)).max(initial=0)) > 2**61:
            return None
        start, out, after = start + bias.astype(np.int64), first.outputs[0], 1
    step = chain.nodes[after] if len(chain.nodes) > after else None
    if (
        step is None
        or not isinstance(step.op, Requantise)
        or step.inputs[0] is not out
        or step.op.x_zero_point
    ):
        return None
    op, multiplier, shift = step.op, *(per_channel(step.inputs[k], channels) for k in (1, 2))
    if multiplier is None or shift is None:
        return None
    rule = Rule(op.rounding, multiplier, shift, op.zero_point, op.low, op.high, op.to)
    return finish(after + 1, start, rule, most)


def _end(site: Site, layer: Layer, place: Place | None = None) -> tuple[Finish | None, FusedTail | None]:
    """What becomes of the sums: what the kernel does, and the tail, None where nothing is left. place: where
    the results go, of a call that does not compute all of them in their order.
    """
    finish = finish_of(site.node, site.chain, layer.start, layer.most)
    after, low, high = (0, None, None) if finish is None else (finish.after, finish.low, finish.high)
    out = site.node.outputs[0]
    tail = site.tail(place or pixel_coordinates(out), after=after, low=low, high=high)  # type: ignore[arg-type]
    if tail.is_identity and place is None:
        return finish, None
    return finish, by_vectors(tail) if site.target.dialect() == "mve" else tail


def _add(
    site: Site, code: KernelCode, tail: FusedTail | None, shape: ConvShape, name: str, whole: bool = True
) -> None:
    """The call."""
    x, w = site.input(0), site.input(1)
    if w.dtype in NIBBLES:
        code = nibbles.staged(code, None) or code
    code = replace(code, body=indent(code.body.rstrip(), "    "), slack=code.slack if whole else None)
    site.emit(name, code, tail, f"{x.type} * {w.type} -> {site.result.type}", shape.macs, (dense(x),))


def _emit(site: Site, layer: Layer, shape: ConvShape, name: str, place: Place | None = None) -> None:
    finish, tail = _end(site, layer, place)
    start = layer.start if finish is None and layer.start.any() else None
    result, accumulator = site.result.dtype, site.node.outputs[0].dtype
    to = result.c_type, result.size
    code = conv(Conv(shape, layer.weights, layer.x, layer.dots, finish, start, tail, accumulator.c_type, to))
    _add(site, code, tail, shape, name, place is None)


def _groups_reject(node: Node, chain: Chain, layer: Layer) -> str | None:
    """Why groups of more than one channel, or that have more than one output, are not taken."""
    op, x, w, out = node.op, node.input(0), node.input(1), node.outputs[0]
    assert isinstance(op, Convolution) and x is not None and w is not None
    if op.group == 1 or op.group == x.shape[-1] == w.shape[0]:
        return None
    shape = conv_shape(x, out, w.shape[1:-1], op, op.group)
    ending = Ending.of(finish_of(node, chain, layer.start, layer.most))
    fits = groups_mve.applicable(shape, layer.weights, layer.dots.most, ending)
    return None if fits else "groups without a requantisation, or with sums of more than 32 bits"


def _groups(site: Site, layer: Layer, shape: ConvShape) -> None:
    finish, tail = _end(site, layer)
    ending = Ending.of(finish)
    assert ending is not None
    weights = layer.weights.reshape(shape.out_c, shape.kernel_h, shape.kernel_w, -1)
    weights = weights[..., 0].transpose(1, 2, 0)
    few = (shape.groups == shape.in_c and shape.out_c < BLOCK * shape.groups
           and shape.kernel_h * shape.kernel_w <= _GATHERED)  # fmt: skip
    if few and depthwise_mve.applicable(shape, weights, ending):
        code = depthwise_mve.depthwise(shape, weights, ending, tail)
    else:
        code = groups_mve.conv(shape, layer.weights, ending, tail, site.result.dtype.size)
    _add(site, code, tail, shape, f"integer_conv_{shape.kernel_h}x{shape.kernel_w}")


def _depthwise(family: Family, site: Site, layer: Layer, shape: ConvShape) -> None:
    out = site.node.outputs[0]
    finish, own = _end(site, layer)
    result, weights = site.result.dtype, _by_channel(shape, layer)
    ending = Ending.of(finish) if family.mve else None
    writers = depthwise_lanes_mve.writers(shape, weights, ending) if ending is not None else []
    taps = shape.kernel_h * shape.kernel_w
    sums = family.mve and finish is None and own is not None and taps >= _FEWEST_GATHERED
    if ending is not None and writers:
        code = writers[0][1](shape, weights, ending, own)
    elif sums and depthwise_mve.applicable(shape, weights, None):
        code = depthwise_mve.depthwise(shape, weights, None, own, out.dtype.c_type)
    elif _in_planes(family, site, shape, layer):
        code = depthwise_dsp.depthwise(
            shape, weights, finish, own, out.dtype.c_type, (result.c_type, result.size)
        )
    else:
        wide, to = weights.astype(np.int16), (result.c_type, result.size)
        code = depthwise(shape, wide, layer.dots.most, finish, own, out.dtype.c_type, to)
    _add(site, code, own, shape, f"integer_depthwise_{shape.kernel_h}x{shape.kernel_w}")


def _in_planes(family: Family, site: Site, shape: ConvShape, layer: Layer) -> bool:
    if not family.dsp or family.mve:
        return False
    weights, (finish, _) = _by_channel(shape, layer), _end(site, layer)
    return depthwise_dsp.applicable(shape, weights, layer.dots.most, finish)


def _by_channel(shape: ConvShape, layer: Layer) -> np.ndarray:
    """The weights [kernel_h, kernel_w, output channel] of groups of one channel."""
    weights: np.ndarray = layer.weights.reshape(-1, shape.kernel_h, shape.kernel_w).transpose(1, 2, 0)
    return weights


def _convolution(family: Family) -> Callable[[Site], None]:

    def emit(site: Site) -> None:
        layer, op = _convolution_layer(family, site.node), site.node.op
        assert isinstance(layer, Layer) and isinstance(op, Convolution)
        x, w, out = site.input(0), site.input(1), site.node.outputs[0]
        shape = conv_shape(x, out, w.shape[1:-1], op, op.group)
        by_channel = op.group == shape.in_c > 1 and (
            shape.out_c == shape.in_c or _in_planes(family, site, shape, layer)
        )
        if by_channel and x.dtype is DType.INT16 and op.x_zero_point == 0:
            _depthwise(family, site, layer, shape)
        elif op.group > 1 and family.mve:
            _groups(site, layer, shape)
        else:
            _emit(site, layer, shape, f"integer_conv_{shape.kernel_h}x{shape.kernel_w}")

    return emit


def _transposed(family: Family) -> Callable[[Site], None]:
    """Convolutions: one for each phase of the strides, with the taps that meet it."""

    def emit(site: Site) -> None:
        layer, op = _transposed_layer(family, site.node), site.node.op
        assert isinstance(layer, Layer) and isinstance(op, ConvolutionTranspose)
        x, w, out = site.input(0), site.input(1), site.node.outputs[0]
        whole = conv_shape(x, out, w.shape[1:-1], op, 1)
        weights = layer.weights.reshape(whole.out_c, whole.kernel_h, whole.kernel_w, -1)
        rest = layer.x.shift - layer.x.zero
        for phase in phases(whole, 0):
            taps = np.ascontiguousarray(phase.weights(weights)).reshape(whole.out_c, -1)
            part = replace(
                layer,
                weights=taps,
                dots=replace(layer.dots, taps=taps.shape[1]),
                start=rest * taps.astype(np.int64).sum(axis=1),
            )
            size = f"{phase.shape.kernel_h}x{phase.shape.kernel_w}"
            _emit(site, part, phase.shape, f"integer_conv_{size}", phase.place(out.type.rank))

    return emit


def _matmul(family: Family) -> Callable[[Site], None]:

    def emit(site: Site) -> None:
        layer = _product_layer(family, site.node)
        if isinstance(layer, str):
            _activations(family, site)
            return
        k, n = site.input(1).shape
        rows = site.input(0).type.elements // k
        _emit(site, layer, ConvShape(1, 1, rows, k, 1, rows, n), "integer_matmul")

    return emit


# --- two activations ----------------------------------------------------------------------------------


def _operands(family: Family, node: Node) -> tuple[Operands, Dots] | str:
    a, b, op = node.input(0), node.input(1), node.op
    assert isinstance(op, MatMul)
    if a is None or b is None or a.dtype not in NARROW or b.dtype not in NARROW:
        return "the operands are not integers of 8 or 16 bits"
    if not a.type.elements or not node.outputs[0].type.elements:
        return "nothing to compute"
    if max(a.type.rank, b.type.rank) > 4 or min(a.type.rank, b.type.rank) < 1:
        return "more than two batch axes"
    found = elements(a.dtype.label, op.x_zero_point), elements(b.dtype.label, op.w_zero_point)
    if any(e.zero != e.shift for e in found):
        return "a 16-bit operand with a zero point"
    k = a.shape[-1]
    most = _largest(found[0]) * _largest(found[1])
    dots = family.dots(k, most, "int16_t")
    if dots.dsp:
        dots = family.dots(k + k % 2, most, "int16_t")
    if dots.sum_type == "int64_t" and node.outputs[0].dtype is not DType.INT64:
        return "the sums have more than 32 bits"
    return Operands(*found, node.outputs[0].dtype.c_type), dots


def _activations(family: Family, site: Site) -> None:
    found = _operands(family, site.node)
    assert not isinstance(found, str), found
    operands, dots = found
    windows, shape, coordinates = matmul_site(site)
    # One multiplier for all, which is a constant of the code: there is no table.
    finish = finish_of(site.node, site.chain, np.zeros(1, np.int64), dots.taps * dots.most)
    after, low, high = (0, None, None) if finish is None else (finish.after, finish.low, finish.high)
    tail = site.tail(coordinates, after=after, low=low, high=high)
    place = tail.place if tail.is_identity else None
    tail = by_vectors(tail) if dots.mve else tail
    made = Product(shape, operands, dots, finish, tail, place)
    code = bytes_mve.byte_matmul(made) if bytes_mve.takes(made) else matmul(made)
    a, b = site.input(0), site.input(1)
    site.emit("integer_matmul", code, tail, f"{a.type} * {b.type} -> {site.result.type}", shape.macs, windows)


def kernels(family: Family) -> tuple[Kernel, ...]:
    """The kernels of an instruction set."""

    def convolution(node: Node, chain: Chain, target: Target) -> str | None:
        found = _convolution_layer(family, node)
        if isinstance(found, str):
            return found
        if _by_channel_of_nibbles(family, node):
            return "weights of 4 bits of groups of one channel, which would be 16 bits in flash"
        return _no_room(node, target) or (_groups_reject(node, chain, found) if family.mve else None)

    def transposed(node: Node, chain: Chain, target: Target) -> str | None:
        found = _transposed_layer(family, node)
        if isinstance(found, str):
            return found
        return _no_room(node, target) or cases_reject(node, each_is_code=True)

    def product(node: Node, chain: Chain, target: Target) -> str | None:
        found = _product_layer(family, node)
        if not isinstance(found, str):
            return _no_room(node, target)
        other = _operands(family, node)
        return f"{found}; {other}" if isinstance(other, str) else None

    return (
        Kernel(f"integer convolution ({family.name})", "Convolution", _convolution(family), convolution),
        Kernel(
            f"integer transposed convolution ({family.name})",
            "ConvolutionTranspose",
            _transposed(family),
            transposed,
        ),
        Kernel(f"integer matrix product ({family.name})", "MatMul", _matmul(family), product),
    )
