"""com.microsoft: matrices of a few bits, quantised by blocks. Source: ONNX Runtime's contrib operators.

Several elements share a byte, the first in its lowest bits. Without zero points the middle of the range
stands for 0.
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
from aot_model.ops.normalisation import scalar
from aot_model.ops.registry import Build, axis_of, operator, ranked, required, static


def unpacked(data: np.ndarray, bits: int) -> np.ndarray:
    """The elements of the last axis, a byte each. OperatorError for anything but bytes."""
    if data.dtype != np.uint8:
        raise OperatorError(f"elements of {bits} bits are packed in uint8, not in {data.dtype}")
    shifts = np.arange(0, 8, bits, dtype=np.uint8)
    return np.asarray(
        (data[..., None] >> shifts & (2**bits - 1)).reshape(*data.shape[:-1], -1), dtype=np.uint8
    )


def _typed(data: np.ndarray, bits: int) -> np.ndarray:
    """In four bits where they do."""
    return data.astype(ml_dtypes.uint4) if bits <= 4 else data


def _rounded(a: Algebra, x: Value, block: int) -> Value:
    """x with each block of its last axis rounded to int8, of which 127 stands for the block's largest
    magnitude.
    """
    axis = axis_of(x, -1)
    k = x.shape[axis]
    if k % block:
        x = a.concat(axis, x, a.build.constant(np.zeros((*x.shape[:-1], -k % block), np.float32)))
    parts = a.reshape(x, *x.shape[:-1], x.shape[-1] // block, block)
    largest = a.reduced("ReduceMax", a.of("Abs", parts), axis + 1)
    some = a.of("Greater", largest, scalar(a.build, 0, DType.FLOAT32))
    inverse = a.of(
        "Where", some, a.div(scalar(a.build, 127, DType.FLOAT32), largest), scalar(a.build, 0, DType.FLOAT32)
    )
    whole = a.of("Round", a.mul(parts, inverse))
    return a.cut(a.reshape(a.mul(whole, a.div(largest, 127.0)), *x.shape), axis, 0, k)


@operator("MatMulNBits", domain="com.microsoft", inputs=6)
class MatMulNBits(Composition):
    """A times a constant matrix of N columns. Inputs: A, B (N, blocks, bytes), scales (N, blocks), zero
    points, order of the groups, bias.
    """

    K: int
    N: int
    block_size: int
    accuracy_level: int = 0
    bits: int = 4
    weight_prepacked: int = 0

    def _check(self, inputs: Inputs, blocks: int) -> None:
        group = present(inputs, 4)
        in_order = group is None or (
            group.data is not None
            and np.array_equal(group.data.reshape(-1)[: self.K], np.arange(self.K) // self.block_size)
        )
        if self.bits not in (2, 4, 8) or self.weight_prepacked or not in_order:
            what = (
                f"{self.bits} bits"
                if self.bits not in (2, 4, 8)
                else "weights packed for one processor"
                if self.weight_prepacked
                else ("groups in another order (g_idx)")
            )
            raise OperatorError(
                f"{what} is not supported", "E202", "quantise the model with 4 or 8 bits, and blocks in order"
            )
        if required(inputs, 2).type.elements != self.N * blocks:
            raise OperatorError(
                f"scales {required(inputs, 2).type} are not those of {self.N} columns with {blocks} blocks"
            )

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        if self.block_size < 1:
            raise OperatorError(f"blocks of {self.block_size} elements")
        a, n, blocks = Algebra(build), self.N, -(-self.K // self.block_size)
        self._check(inputs, blocks)
        data = static(inputs, 1, "the matrix")
        if data is None or data.size * 8 != n * blocks * self.block_size * self.bits:
            raise OperatorError(
                f"a matrix of {0 if data is None else data.size} bytes is not {n} columns of {self.K} "
                "elements"
            )
        q = _typed(unpacked(data.reshape(n, -1), self.bits)[:, : self.K], self.bits)
        scales = a.reshape(a.cast(required(inputs, 2), DType.FLOAT32), n, blocks)
        x = a.cast(required(inputs), DType.FLOAT32)
        if present(inputs, 4) is None and self._in_bytes(present(inputs, 3)):
            x = _rounded(a, x, self.block_size)
        y = build(BlockMatMul(self.block_size), x, build.constant(q), scales, self._zeros(a, inputs, blocks))
        return [a.cast(a.add(y, self._bias(a, inputs)), required(inputs).dtype)]

    def _in_bytes(self, zeros: Value | None) -> bool:
        """Whether ONNX Runtime rounds A to 8 bits: where the model allows it, and it has a kernel, which it
        has not where the groups have an order.
        """
        blocks = (32, 64, 128) if self.bits == 2 else (16, 32, 64, 128, 256)
        return (
            self.accuracy_level == 4
            and self.block_size in blocks
            and (zeros is None or not zeros.dtype.is_float)
        )

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
            if data.size != self.N * -(-blocks * self.bits // 8):
                raise OperatorError(
                    f"{data.size} bytes of zero points are not {self.N} columns of {blocks} blocks"
                )
            found = unpacked(data.reshape(self.N, -1), self.bits)[:, :blocks]
        return a.build.constant(_typed(found, self.bits))

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(9)
        found = []
        for bits, n, k, block, zeros, bias in (
            (4, 8, 32, 16, "", False),
            (4, 5, 48, 32, "packed", True),
            (4, 6, 64, 32, "float", False),
            (8, 4, 32, 16, "packed", False),
            (8, 4, 32, 16, "", True),
        ):
            blocks = -(-k // block)
            b = np.asarray(rng.integers(0, 256, (n, blocks, block * bits // 8)), np.uint8)
            z = (
                None
                if not zeros
                else drawn(3, n, blocks, most=8) + 8
                if zeros == "float"
                else np.asarray(rng.integers(0, 256, (n, -(-blocks * bits // 8))), np.uint8)
            )
            inputs = (
                drawn(1, 2, 3, k),
                b,
                drawn(2, n, blocks, most=0.1),
                z,
                None,
                drawn(4, n) if bias else None,
            )
            found.append(
                Sample(
                    inputs if bias else inputs[:4] if zeros else inputs[:3],
                    {"K": k, "N": n, "bits": bits, "block_size": block},
                    frozenset({1, 2, 3, 5}),
                )
            )
        # With zero points beside it, ONNX Runtime takes others than without.
        order = np.asarray(np.arange(32) // 16, np.int32)
        plain = found[0]
        found.append(Sample((*plain.inputs, None, order), plain.attributes, frozenset({1, 2, 4})))
        rows = drawn(5, 2, 3, 48)
        rows[0, 1, 32:] = 0
        for bits, block in ((4, 32), (8, 16), (2, 32), (2, 16)):
            b, scales = (
                np.asarray(rng.integers(0, 256, (4, -(-48 // block), block * bits // 8)), np.uint8),
                drawn(2, 4, -(-48 // block), most=0.1),
            )
            found.append(
                Sample(
                    (rows, b, scales),
                    {"K": 48, "N": 4, "bits": bits, "block_size": block, "accuracy_level": 4},
                    frozenset({1, 2}),
                )
            )
        return found


_FP4 = (0.0, 5.208333333e-03, 0.66666667, 1.0, 0.33333333, 0.5, 0.16666667, 0.25)
_CODES = {
    0: (*_FP4, *(-v for v in _FP4)),
    1: (
        -1.0,
        -0.6961928009986877,
        -0.5250730514526367,
        -0.39491748809814453,
        -0.28444138169288635,
        -0.18477343022823334,
        -0.09105003625154495,
        0.0,
        0.07958029955625534,
        0.16093020141124725,
        0.24611230194568634,
        0.33791524171829224,
        0.44070982933044434,
        0.5626170039176941,
        0.7229568362236023,
        1.0,
    ),
}
"""What the codes of FP4 and of NF4 stand for: the quantiles of a normal distribution, as QLoRA (arXiv
2305.14314) defines them.
"""


@operator("MatMulBnb4", domain="com.microsoft", inputs=3)
class MatMulBnb4(Composition):
    """A times a constant matrix of N columns in FP4 or NF4, as bitsandbytes packs it. Inputs: A, codes (the
    first in the upper half of its byte), the largest magnitude of each block. The matrix is dequantised when
    the model is compiled."""

    K: int
    N: int
    block_size: int
    quant_type: int
    training_mode: int = 0
    transB: int = 1

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        data, largest = static(inputs, 1, "the matrix"), static(inputs, 2, "the scales")
        count = self.N * self.K
        if self.quant_type not in _CODES or not self.transB or self.block_size < 1:
            raise OperatorError(
                f"quant_type {self.quant_type}, transB {self.transB}, blocks of {self.block_size} are not "
                "supported",
                "E202",
            )
        if (
            data is None
            or largest is None
            or data.size != -(-count // 2)
            or largest.size != -(-count // self.block_size)
        ):
            raise OperatorError(
                f"a matrix of {0 if data is None else data.size} bytes is not {self.N} columns of {self.K} "
                "elements"
            )
        codes = unpacked(data, 4).reshape(-1, 2)[:, ::-1].reshape(-1)[:count]
        scales = np.repeat(largest.reshape(-1).astype(np.float32), self.block_size)[:count]
        with np.errstate(invalid="ignore"):  # 0 times infinity is NaN in the runtime too
            w = np.asarray(_CODES[self.quant_type], np.float32)[codes] * scales
        a, x = Algebra(build), required(inputs)
        y = a.matmul(
            a.cast(x, DType.FLOAT32), build.constant(np.ascontiguousarray(w.reshape(self.N, self.K).T))
        )
        return [a.cast(y, x.dtype)]

    @classmethod
    def samples(cls) -> list[Sample]:
        codes = np.asarray(np.random.default_rng(11).integers(0, 256, 5 * 64 // 2), np.uint8)
        shape, short = {"K": 64, "N": 5, "block_size": 16}, {"K": 9, "N": 5, "block_size": 16}
        each = [
            Sample((drawn(1, 2, 3, 64), codes, drawn(2, 20)), {**shape, "quant_type": q}, frozenset({1, 2}))
            for q in (0, 1)
        ]
        return [
            *each,
            Sample((drawn(1, 3, 9), codes[:23], drawn(2, 3)), {**short, "quant_type": 1}, frozenset({1, 2})),
        ]


@operator("GatherBlockQuantized", domain="com.microsoft", inputs=4)
class GatherBlockQuantized(Composition):
    """Rows of a constant matrix, dequantised. Inputs: data, indices, scales, zero points."""

    takes_nibbles: ClassVar[frozenset[int]] = frozenset({0, 3})

    bits: int = 4
    block_size: int = 128
    gather_axis: int = 0
    quantize_axis: int = 1

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        data, given = static(inputs, 0, "the matrix"), static(inputs, 3, "the zero points")
        scale = ranked(required(inputs, 2), required(inputs).type.rank)
        if (
            data is None
            or DType.of(data.dtype) not in (DType.UINT8, DType.INT4, DType.UINT4)
            or self.bits not in (2, 4, 8)
        ):
            raise OperatorError(
                f"{self.bits} bits of {required(inputs).type} are not supported",
                "E202",
                "quantise the model with 4 or 8 bits",
            )
        if data.dtype == np.uint8:
            data = _typed(unpacked(data, self.bits), self.bits)
            middle = np.full(scale.shape, 1 << (self.bits - 1), np.uint8)
            given = _typed(
                middle if given is None else unpacked(given, self.bits)[..., : scale.shape[-1]], self.bits
            )
        zeros = None if given is None else build.constant(given)
        return [
            block_rows(
                build,
                build.constant(data),
                required(inputs, 1),
                scale,
                zeros,
                self.gather_axis,
                self.quantize_axis,
                self.block_size,
            )
        ]

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(10)
        packed, wide, places = (np.asarray(rng.integers(0, 256, (6, n)), np.uint8) for n in (16, 32, 1))
        scales, zeros = drawn(1, 6, 2, most=0.1), np.asarray(rng.integers(0, 256, (6, 1)), np.uint8)
        places = np.asarray([[0, 5, 2], [3, 3, 1]], np.int64)
        signed, own = (
            rng.integers(-8, 8, (6, 32)).astype(ml_dtypes.int4),
            rng.integers(-8, 8, (6, 2)).astype(ml_dtypes.int4),
        )
        block, constants = {"block_size": 16, "quantize_axis": 1}, frozenset({0, 2, 3})
        return [
            Sample((packed, places, scales), block, constants),
            Sample((packed, places.astype(np.int32), scales, zeros), {**block, "bits": 4}, constants),
            Sample((wide, places, scales), {**block, "bits": 8}, constants),
            Sample((signed, places, scales), block, constants),
            Sample((signed, places, scales, own), block, constants),
        ]
