"""com.microsoft: matrices of a few bits, quantised by blocks. Source: ONNX Runtime's contrib operators.

Several elements share a byte, the first in its lowest bits. Without zero points the middle of the range stands for 0.
"""

from __future__ import annotations

from typing import ClassVar

import ml_dtypes
import numpy as np

from aot_model.ir.operator import Inputs, OperatorError, Sample
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.ops.blocks import BlockMatMul, block_rows
from aot_model.ops.composition import Algebra, Composition, present
from aot_model.ops.microsoft_activation import drawn
from aot_model.ops.registry import Build, operator, required, static


def unpacked(data: np.ndarray, bits: int) -> np.ndarray:
    """The elements of the last axis, a byte each."""
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return np.asarray((data[..., None] >> shifts & (2**bits - 1)).reshape(*data.shape[:-1], -1), dtype=np.uint8)


def _typed(data: np.ndarray, bits: int) -> np.ndarray:
    """In four bits where they do."""
    return data.astype(ml_dtypes.uint4) if bits <= 4 else data


@operator("MatMulNBits", domain="com.microsoft")
class MatMulNBits(Composition):
    """A times a constant matrix of N columns. Inputs: A, B (N, blocks, bytes), scales (N, blocks), zero points, order of the groups, bias."""

    K: int
    N: int
    block_size: int
    accuracy_level: int = 0
    bits: int = 4
    weight_prepacked: int = 0

    def _check(self, inputs: Inputs, blocks: int) -> None:
        group = present(inputs, 4)
        in_order = group is None or (group.data is not None and (group.data.reshape(-1)[: self.K] == np.arange(self.K) // self.block_size).all())
        if self.bits not in (2, 4, 8) or self.weight_prepacked or not in_order:
            what = f"{self.bits} bits" if self.bits not in (2, 4, 8) else "weights packed for one processor" if self.weight_prepacked else "groups in another order (g_idx)"
            raise OperatorError(f"{what} is not supported", "E202", "quantise the model with 4 or 8 bits, and blocks in order")
        if required(inputs, 2).type.elements != self.N * blocks:
            raise OperatorError(f"scales {required(inputs, 2).type} are not those of {self.N} columns with {blocks} blocks")

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        a, n, blocks = Algebra(build), self.N, -(-self.K // self.block_size)
        self._check(inputs, blocks)
        data = static(inputs, 1, "the matrix")
        if data is None or data.size * 8 != n * blocks * self.block_size * self.bits:
            raise OperatorError(f"a matrix of {0 if data is None else data.size} bytes is not {n} columns of {self.K} elements")
        q = _typed(unpacked(data.reshape(n, -1), self.bits)[:, : self.K], self.bits)
        scales = a.reshape(a.cast(required(inputs, 2), DType.FLOAT32), n, blocks)
        y = build(BlockMatMul(self.block_size), a.cast(required(inputs), DType.FLOAT32), build.constant(q), scales, self._zeros(a, inputs, blocks))
        return [a.cast(a.add(y, self._bias(a, inputs)), required(inputs).dtype)]

    def _bias(self, a: Algebra, inputs: Inputs) -> Value | None:
        bias = present(inputs, 5)
        return None if bias is None else a.cast(bias, DType.FLOAT32)

    def _zeros(self, a: Algebra, inputs: Inputs, blocks: int) -> Value:
        given = present(inputs, 3)
        if given is not None and given.dtype.is_float:
            return a.reshape(a.cast(given, DType.FLOAT32), self.N, blocks)
        data = static(inputs, 3, "the zero points") if given is not None else None
        if data is None:
            found = np.full((self.N, blocks), 1 << (self.bits - 1), np.uint8)
        else:
            found = unpacked(data.reshape(self.N, -1), self.bits)[:, :blocks]
        return a.build.constant(_typed(found, self.bits))

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(9)
        found = []
        for bits, n, k, block, zeros, bias in ((4, 8, 32, 16, "", False), (4, 5, 48, 32, "packed", True), (4, 6, 64, 32, "float", False), (8, 4, 32, 16, "packed", False), (8, 4, 32, 16, "", True)):
            blocks = -(-k // block)
            b = np.asarray(rng.integers(0, 256, (n, blocks, block * bits // 8)), np.uint8)
            z = None if not zeros else drawn(3, n, blocks, most=8) + 8 if zeros == "float" else np.asarray(rng.integers(0, 256, (n, -(-blocks * bits // 8))), np.uint8)
            inputs = (drawn(1, 2, 3, k), b, drawn(2, n, blocks, most=0.1), z, None, drawn(4, n) if bias else None)
            found.append(Sample(inputs if bias else inputs[:4] if zeros else inputs[:3], {"K": k, "N": n, "bits": bits, "block_size": block}, frozenset({1, 2, 3, 5})))
        return found


@operator("GatherBlockQuantized", domain="com.microsoft")
class GatherBlockQuantized(Composition):
    """Rows of a constant matrix, dequantised. Inputs: data, indices, scales, zero points."""

    takes_nibbles: ClassVar[frozenset[int]] = frozenset({0, 3})

    bits: int = 4
    block_size: int = 128
    gather_axis: int = 0
    quantize_axis: int = 1

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        data, zero = static(inputs, 0, "the matrix"), present(inputs, 3)
        given = None if zero is None else static(inputs, 3, "the zero points")
        scale = required(inputs, 2)
        if data is None or DType.of(data.dtype) not in (DType.UINT8, DType.INT4, DType.UINT4) or self.bits not in (2, 4, 8):
            raise OperatorError(f"{self.bits} bits of {required(inputs).type} are not supported", "E202", "quantise the model with 4 or 8 bits")
        if data.dtype == np.uint8:
            data = _typed(unpacked(data, self.bits), self.bits)
            middle = np.full(scale.shape, 1 << (self.bits - 1), np.uint8)
            given = _typed(middle if given is None else unpacked(given, self.bits)[..., : scale.shape[-1]], self.bits)
        zeros = None if given is None else build.constant(given)
        return [block_rows(build, build.constant(data), required(inputs, 1), scale, zeros, self.gather_axis, self.quantize_axis, self.block_size)]

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(10)
        packed, wide, places = (np.asarray(rng.integers(0, 256, (6, n)), np.uint8) for n in (16, 32, 1))
        scales, zeros = drawn(1, 6, 2, most=0.1), np.asarray(rng.integers(0, 256, (6, 1)), np.uint8)
        places = np.asarray([[0, 5, 2], [3, 3, 1]], np.int64)
        signed, own = rng.integers(-8, 8, (6, 32)).astype(ml_dtypes.int4), rng.integers(-8, 8, (6, 2)).astype(ml_dtypes.int4)
        block, constants = {"block_size": 16, "quantize_axis": 1}, frozenset({0, 2, 3})
        return [
            Sample((packed, places, scales), block, constants), Sample((packed, places.astype(np.int32), scales, zeros), {**block, "bits": 4}, constants),
            Sample((wide, places, scales), {**block, "bits": 8}, constants), Sample((signed, places, scales), block, constants), Sample((signed, places, scales, own), block, constants),
        ]  # fmt: skip
