"""Products and rows of matrices that are quantised by blocks of neighbouring elements, each with a scale of
its own.

The matrix is a constant of 4 or 8 bits and stays one: 4-bit integers lie two in a byte (ir/nibbles.py).
"""

from __future__ import annotations

from typing import Any, ClassVar

import ml_dtypes
import numpy as np

from aot_model.ir.expr import Expr, Index, call, cast, fresh, reduce
from aot_model.ir.index import floordiv
from aot_model.ir.operator import Arrays, At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.kernels.site import Site
from aot_model.ops.movement import Gather
from aot_model.ops.quantised_linear import DequantizeLinear
from aot_model.ops.registry import Build, normal_axis, operator, required

INTEGERS = (DType.INT4, DType.UINT4, DType.INT8, DType.UINT8)


@operator("BlockMatMul", domain="aot", reducing=True, rereads=True)
class BlockMatMul(Operator):
    """y[…, n] = sum over k of x[…, k] * (q[n, k] - z[n, k / block]) * s[n, k / block].

    Inputs: x, q (constant integers), s (floats), z (integers as q, or floats; none: 0). The last block may be
    shorter.
    """

    block: int

    takes_nibbles: ClassVar[frozenset[int]] = frozenset({1, 3})

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, q, s = (required(inputs, k) for k in range(3))
        zero = inputs[3] if len(inputs) > 3 else None
        if (
            self.block < 1
            or not x.shape
            or q.type.rank != 2
            or q.shape[1] != x.shape[-1]
            or not q.is_const
            or q.dtype not in INTEGERS
        ):
            raise OperatorError(f"cannot multiply {x.type} by {q.type} in blocks of {self.block}")
        wanted = q.shape[0], -(-q.shape[1] // self.block)
        if (
            any(v is not None and v.shape != wanted for v in (s, zero))
            or not x.dtype.is_float
            or not s.dtype.is_float
        ):
            raise OperatorError(
                f"scales {s.type} or zero points do not fit {q.type} in blocks of {self.block}"
            )
        return [TensorType(x.dtype, (*x.shape[:-1], q.shape[0]))]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x, q, s = (required(inputs, k) for k in range(3))
        zero = inputs[3] if len(inputs) > 3 else None
        k = fresh("k", q.shape[1])
        place = (index[-1], floordiv(k, self.block))
        weight = _real(at(q, (index[-1], k)), x.dtype)
        weight = weight if zero is None else call("sub", weight, _real(at(zero, place), x.dtype))
        return reduce("add", (k,), call("mul", at(x, (*index[:-1], k)), call("mul", weight, at(s, place))))

    def lower(self, site: Site) -> None:
        site.emit_kernel()

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x, q, s, z = (None if v is None else np.asarray(v).astype(np.float64) for v in (*arrays, None)[:4])
        assert x is not None and q is not None and s is not None
        spread = [
            np.repeat(v, self.block, axis=1)[:, : q.shape[1]]
            for v in (s, np.zeros_like(s) if z is None else z)
        ]
        return [(x @ ((q - spread[1]) * spread[0]).T).astype(np.float32)]

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(8)
        found = []
        limits = {ml_dtypes.int4: (-8, 8), ml_dtypes.uint4: (0, 16), np.int8: (-128, 128), np.uint8: (0, 256)}
        cases: list[tuple[Any, tuple[int, ...], int, int, int, str]] = [
            (ml_dtypes.uint4, (1,), 7, 32, 16, "own"), (ml_dtypes.int4, (3,), 18, 40, 16, ""),
            (np.int8, (2, 5), 4, 16, 16, ""), (np.uint8, (), 5, 24, 8, "own"),
            (ml_dtypes.uint4, (2,), 33, 33, 16, "float"), (ml_dtypes.int4, (1,), 16, 16, 64, "own"),
            (ml_dtypes.int4, (3,), 16, 40, 16, ""), (np.uint8, (2,), 15, 21, 8, ""),
            (np.int8, (1,), 8, 24, 16, "own")
        ]  # fmt: skip
        for kind, rows, columns, depth, block, zeros in cases:
            low, high = limits[kind]
            q, shape = rng.integers(low, high, (columns, depth)).astype(kind), (columns, -(-depth // block))
            z = (
                rng.integers(low, high, shape).astype(kind)
                if zeros == "own"
                else rng.uniform(low, high, shape).astype(np.float32)
                if zeros
                else None
            )
            x, s = (np.asarray(rng.uniform(-1, 1, v), np.float32) for v in ((*rows, depth), shape))
            found.append(
                Sample((x, q, s, *([] if z is None else [z])), {"block": block}, frozenset({1, 2, 3}))
            )
        return found


def _real(x: Expr, dtype: DType) -> Expr:
    return cast(cast(x, x.dtype.compute), dtype)


def block_rows(
    build: Build,
    q: Value,
    indices: Value,
    scale: Value,
    zero: Value | None,
    axis: int,
    quantised: int,
    block: int,
) -> Value:
    """The rows `indices` along `axis` of a matrix that is quantised by blocks along the axis `quantised`."""
    a, b = normal_axis(axis, q.type.rank), normal_axis(quantised, q.type.rank)
    if a == b:
        raise OperatorError("rows along the axis that is quantised by blocks are not supported", "E202")
    rows, scales, zeros = (None if v is None else build(Gather(a), v, indices) for v in (q, scale, zero))
    moved = b + indices.type.rank - 1 if b > a else b
    return build(DequantizeLinear(moved, block), rows, scales, zeros)
