"""The float32 kernels as a target sees them: which nodes they take, and how a node becomes a call."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from aot_model.ir.expr import Expr
from aot_model.ir.graph import Node
from aot_model.ir.strided import Strided, dense
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.kernels.base import ConvShape, KernelCode
from aot_model.kernels.cases import too_many_borders, too_many_phases
from aot_model.kernels.float32 import blocks, blocks_fpu, panels
from aot_model.kernels.float32 import conv as conv_kernels
from aot_model.kernels.float32 import pool as pool_kernels
from aot_model.kernels.float32.dialect import VectorDialect
from aot_model.kernels.float32.dialects import DIALECTS
from aot_model.kernels.float32.matmul import MatmulShape, matmul
from aot_model.kernels.float32.repack import GIVEN, Weights
from aot_model.kernels.reading import Reading
from aot_model.kernels.site import Coordinates, Site
from aot_model.kernels.tail import Chain, FusedTail
from aot_model.kernels.target import Kernel, Target
from aot_model.ops.convolution import Convolution, ConvolutionTranspose
from aot_model.ops.pool import Pool
from aot_model.targets.geometry import conv_shape, coordinates_of, leading_indices, pixel_coordinates, planar
from aot_model.targets.memory import memory_of_constants

FEWEST_PIXELS = 4
"""For which weights that are an input are worth being packed."""


_WRITTEN_FAST = 320
"""Most products that stand one behind the other where code is read without waiting."""


def dialect_of(target: Target) -> VectorDialect:
    return DIALECTS[target.dialect()]


def _windowed_reject(node: Node, chain: Chain, target: Target) -> str | None:
    x = node.input(0)
    if x is None or x.dtype is not DType.FLOAT32:
        return "the input is not float32"
    if x.type.rank > 5:
        return "more than three spatial axes"
    if not node.outputs[0].type.elements or not x.type.elements:
        return "nothing to compute"
    return None


def cases_reject(node: Node, each_is_code: bool = False) -> str | None:
    """Why the windows of a node have too many cases (kernels/cases.py); of those with at most three axes."""
    x, w, op = node.input(0), node.input(1), node.op
    if isinstance(op, Pool) and x is not None:
        return too_many_borders(conv_shape(x, node.outputs[0], op.kernel, op, 1))
    if x is None or w is None or not isinstance(op, (Convolution, ConvolutionTranspose)):
        return None
    shape = conv_shape(x, node.outputs[0], w.shape[1:-1], op, op.group)
    return too_many_borders(shape) if isinstance(op, Convolution) else too_many_phases(shape, each_is_code)


def _pool_reject(node: Node, chain: Chain, target: Target) -> str | None:
    op = node.op
    if isinstance(op, Pool) and op.mode == "sum":
        return "a sum, not a maximum or an average"
    return _windowed_reject(node, chain, target) or cases_reject(node)


def _weights_reject(node: Node, chain: Chain, target: Target) -> str | None:
    w = node.input(1)
    if w is None or w.dtype is not DType.FLOAT32:
        return "the weights are not float32"
    x = node.input(0)
    if x is not None and x.is_const:
        return "the input is constant, the weights are not"
    if not w.is_const and node.outputs[0].type.elements < FEWEST_PIXELS * w.shape[0]:
        return f"the weights are an input, and meet fewer than {FEWEST_PIXELS} pixels"
    return _windowed_reject(node, chain, target) or cases_reject(node)


def _begin(site: Site, flat_pixels: bool = False) -> tuple[FusedTail, np.ndarray | None, VectorDialect]:
    """The tail without the bias, the bias, the dialect. Of weights that are an input the bias stays."""
    bias = site.bias() if site.input(1).is_const else None
    dialect = dialect_of(site.target)
    out = site.node.outputs[0]
    coordinates = pixel_coordinates(out) if flat_pixels else coordinates_of(out)
    tail = site.tail(
        coordinates,  # type: ignore[arg-type]
        after=0 if bias is None else 1,
    ).with_dialect(dialect)
    return tail, bias, dialect


def _weights(w: Value, shape: ConvShape, bias: np.ndarray | None) -> Weights:
    """The weights of a convolution; zeros where they are an input."""
    planes = (shape.depth.kernel,) if shape.depth else ()
    sizes = (shape.out_c, *planes, shape.kernel_h, shape.kernel_w, shape.group_in)
    if w.data is None:
        return Weights(np.broadcast_to(np.float32(0), sizes), bias, given=True)
    return Weights(w.data.reshape(sizes), bias)


def _shapes(site: Site) -> str:
    x, w = site.input(0), site.node.input(1)
    return f"{x.type}{f' * {w.type}' if w is not None else ''} -> {site.result.type}"


def _convolution(site: Site) -> None:
    op = site.node.op
    assert isinstance(op, Convolution)
    w, window = site.input(1), site.window(0)
    shape = conv_shape(site.input(0), site.node.outputs[0], w.shape[1:-1], op, op.group, window)
    if 1 < op.group == shape.in_c and not pool_kernels.output_by_output(shape, dialect_of(site.target).lanes):
        _depthwise(site, shape, window)
        return
    name = f"conv_{_size(shape)}"
    if dialect_of(site.target).slides(shape.in_c):
        tail, bias, dialect = _begin(site)
        how = _weights(w, shape, bias), tail, _of_size(dialect, site)
        slid = pool_kernels.sliding(shape, *how, vector_tail=tail.vector)
        if slid is not None:
            _emit(site, name, slid, tail, shape.macs, window)
            return
    row = conv_kernels.pixels_in_a_row(shape)
    tail, bias, dialect = _begin(site, flat_pixels=row is not None)
    code = conv_kernels.conv(
        row or shape, _weights(w, shape, bias), tail, dialect, vector_tail=tail.vector, reading=_reading(site)
    )
    _emit(site, name, code, tail, shape.macs, window)


def _of_size(dialect: VectorDialect, site: Site) -> VectorDialect:
    """The dialect for code as large as the target's option `optimize` has it, and as its memory is fast."""
    if site.target.wish == "size":
        return replace(dialect, written=0)
    return (
        replace(dialect, written=_WRITTEN_FAST)
        if dialect.written and _reading(site).code_is_fast
        else dialect
    )


def _depthwise(site: Site, shape: ConvShape, window: Strided, transposed: bool = False) -> None:
    tail, bias, dialect = _begin(site)
    code = pool_kernels.depthwise(
        shape,
        _weights(site.input(1), shape, bias),
        tail,
        _of_size(dialect, site),
        vector_tail=tail.vector,
        transposed=transposed,
    )
    name = f"depthwise_transpose_{_size(shape)}" if transposed else f"depthwise_{_size(shape)}"
    _emit(site, name, code, tail, _transposed_macs(site) if transposed else shape.macs, window)


def _reading(site: Site) -> Reading:
    """How the weights are read."""
    return Reading(memory_of_constants(site), room=site.room)


def _size(shape: ConvShape) -> str:
    """Of the windows."""
    planes = (shape.depth.kernel,) if shape.depth else ()
    return "x".join(map(str, (*planes, shape.kernel_h, shape.kernel_w)))


def _emit(site: Site, name: str, code: KernelCode, tail: FusedTail, macs: int, window: Strided) -> None:
    """The call; of weights that are an input, too."""
    if site.input(1).is_const:
        site.emit(name, code, tail, _shapes(site), macs, (window,), code.wish)
    else:
        site.emit(name, code, tail, _shapes(site), macs, (window, dense(site.input(1))), names=("x", GIVEN))


def _transposed_macs(site: Site) -> int:
    w = site.input(1)
    return site.input(0).type.elements * math.prod(w.shape[1:-1]) * w.shape[0] // site.node.op.group  # type: ignore[attr-defined,no-any-return]


def _convolution_transpose(site: Site) -> None:
    op = site.node.op
    assert isinstance(op, ConvolutionTranspose)
    w, window = site.input(1), site.window(0)
    shape = conv_shape(site.input(0), site.node.outputs[0], w.shape[1:-1], op, op.group)
    if 1 < op.group == shape.in_c:
        _depthwise(site, shape, window, transposed=True)
        return
    tail, bias, dialect = _begin(site)
    code = conv_kernels.conv_transpose(
        shape, _weights(w, shape, bias), tail, dialect, vector_tail=tail.vector, reading=_reading(site)
    )
    _emit(site, f"conv_transpose_{_size(shape)}", code, tail, _transposed_macs(site), window)


def _pool(site: Site) -> None:
    op = site.node.op
    assert isinstance(op, Pool)
    x, out = site.input(0), site.node.outputs[0]
    shape = conv_shape(x, out, op.kernel, op, 1)
    dialect = dialect_of(site.target)
    tail = site.tail(coordinates_of(out)).with_dialect(dialect)  # type: ignore[arg-type]
    if op.mode == "max":
        code = pool_kernels.max_pool(shape, tail, dialect, vector_tail=tail.vector)
    else:
        end: tuple[int, ...] = ()
        if op.count_include_pad:
            end = op.pads[len(op.kernel) :]
            end = end if len(end) == 3 else planar(end, 0)
        code = pool_kernels.average_pool(shape, tail, dialect, count_include_pad=end, vector_tail=tail.vector)
    site.emit(f"{op.mode}_pool_{_size(shape)}", code, tail, _shapes(site), 0)


def _matmul_reject(node: Node, chain: Chain, target: Target) -> str | None:
    a, b = node.input(0), node.input(1)
    if a is None or b is None or a.dtype is not DType.FLOAT32:
        return "the operands are not float32"
    if not node.outputs[0].type.elements or not a.type.elements:
        return "nothing to compute"
    if a.is_const and not b.is_const:
        return None if b.type.rank >= 2 and a.type.rank >= 2 else "a constant vector on the left"
    return "a number, not a vector" if min(a.type.rank, b.type.rank) < 1 else None


def _matmul(site: Site) -> None:
    a, b = site.input(0), site.input(1)
    if b.data is not None and b.type.rank == 2:
        _matmul_packed(site, a, b)
    else:
        _matmul_in_place(site, a, b)


def _matmul_packed(site: Site, a: Value, b: Value) -> None:
    """A constant right operand: a pointwise convolution over the rows."""
    assert b.data is not None
    k, n = b.shape
    rows = a.type.elements // k
    window = site.window(0)
    strides = window.strides
    row_stride = strides[-2] if a.type.rank > 1 else k
    shape = ConvShape(
        1, 1, rows, k, 1, rows, n, x_strides=(rows * row_stride, rows * row_stride, row_stride, strides[-1])
    )
    tail, bias, dialect = _begin(site, flat_pixels=True)
    weights = Weights(np.ascontiguousarray(b.data.T).reshape(n, 1, 1, k), bias)
    code = conv_kernels.conv(shape, weights, tail, dialect, vector_tail=tail.vector, reading=_reading(site))
    site.emit("matmul", code, tail, _shapes(site), shape.macs, (window,), code.wish)


def _matmul_in_place(site: Site, a: Value, b: Value) -> None:
    """Two activations, or a batch of constant matrices: both are read where they lie."""
    windows, shape, coordinates = matmul_site(site)
    dialect = dialect_of(site.target)
    tail = site.tail(coordinates)
    if b.type.rank > 1:
        tail = tail.with_dialect(dialect)
    code: KernelCode = matmul(shape, tail, dialect, a="x0", b="x1", vector_tail=tail.vector)
    site.emit("matmul", code, tail, _shapes(site), shape.macs, windows)


Place = Callable[[Coordinates], tuple[Expr, ...]]


def matmul_site(site: Site) -> tuple[tuple[Strided, ...], MatmulShape, Place]:
    """A product of two operands that are read where they lie: they, sizes, (i, j, m, n) to its index."""
    a, b = site.input(0), site.input(1)
    windows = (site.window(0), site.window(1))
    wide_a = (1, *a.shape) if a.type.rank == 1 else a.shape
    wide_b = (*b.shape, 1) if b.type.rank == 1 else b.shape
    strides_a = (0, *windows[0].strides) if a.type.rank == 1 else windows[0].strides
    strides_b = (*windows[1].strides, 0) if b.type.rank == 1 else windows[1].strides
    batch = tuple(int(d) for d in np.broadcast_shapes(wide_a[:-2], wide_b[:-2]))
    axes = max(2, len(batch))

    def lead(shape: tuple[int, ...], strides: tuple[int, ...]) -> tuple[int, ...]:
        own = [0 if d == 1 else s for d, s in zip(shape[:-2], strides[:-2], strict=True)]
        return (*[0] * (axes - len(own)), *own)

    shape = MatmulShape(
        (1,) * (axes - len(batch)) + batch,
        wide_a[-2],
        wide_b[-1],
        wide_a[-1],
        (*lead(wide_a, strides_a), strides_a[-2], strides_a[-1]),
        (*lead(wide_b, strides_b), strides_b[-2], strides_b[-1]),
    )

    def coordinates(at: Coordinates) -> tuple[Expr, ...]:
        leading = at[2 - len(batch) : 2]
        if len(batch) > 2:
            leading = (*leading_indices(at[0], batch[:-1]), at[1])
        full = (*leading, at[2], at[3])
        full = full if a.type.rank > 1 else (*full[:-2], full[-1])
        return full if b.type.rank > 1 else full[:-1]

    return windows, shape, coordinates


def _blocks_reject(node: Node, chain: Chain, target: Target) -> str | None:
    x, scales, zeros = node.input(0), node.input(2), node.input(3)
    if x is None or x.dtype is not DType.FLOAT32:
        return "the input is not float32"
    if scales is None or not scales.is_const or (zeros is not None and not zeros.is_const):
        return "scales or zero points are not constant"
    return None if x.type.elements and node.outputs[0].type.elements else "nothing to compute"


def _blocks(site: Site) -> None:
    x, q, scales, zeros = site.input(0), site.input(1), site.input(2), site.node.input(3)
    assert q.data is not None and scales.data is not None
    low = q.dtype.limits[0]
    shift = (
        0
        if zeros is None or zeros.data is None
        else zeros.data.astype(np.float32 if zeros.dtype.is_float else np.int16)
    )
    found = np.broadcast_to(np.asarray(shift) - np.asarray(low, np.int16), scales.shape)
    matrix = blocks.Blocks(
        (q.data.astype(np.int16) - low).astype(np.uint8),
        q.dtype.bits,
        scales.data,
        found,
        site.node.op.block,  # type: ignore[attr-defined]
    )
    rows = x.type.elements // x.shape[-1]
    dialect = dialect_of(site.target)
    tail = site.tail(pixel_coordinates(site.node.outputs[0]))  # type: ignore[arg-type]
    if panels.takes(rows, dialect):
        tail = tail.with_dialect(dialect)
        code = panels.panel_matmul(rows, matrix, tail, dialect, tail.vector)
    elif dialect.halves and blocks_fpu.takes(matrix):
        code = blocks_fpu.block_matmul(rows, matrix, tail, apart=dialect.sums_fpv4)
    else:  # a tile that is filled up costs at most a fifth
        helium = dialect.name == "mve"
        tiles = (4,) if dialect.lanes == 1 else (8,) if helium else (16, 8)
        tile = next((t for t in tiles if -q.shape[0] % t * 5 <= q.shape[0]), 4)
        code = blocks.block_matmul(rows, matrix, tail, tile, min(rows, 2), helium)
    site.emit("block_matmul", code, tail, _shapes(site), rows * q.type.elements, (dense(x),))


KERNELS = (
    Kernel("float32 times blocks of 4 or 8 bits", "BlockMatMul", _blocks, _blocks_reject),
    Kernel("float32 convolution", "Convolution", _convolution, _weights_reject),
    Kernel("float32 transposed convolution", "ConvolutionTranspose", _convolution_transpose, _weights_reject),
    Kernel("float32 pooling", "Pool", _pool, _pool_reject),
    Kernel("float32 matrix product", "MatMul", _matmul, _matmul_reject),
)
