"""Quotients of bytes by one division."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from aot_model.arithmetic import exact
from aot_model.ir.expr import Expr, Index, call, cast, const, select
from aot_model.ir.operator import Arrays, At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ops.registry import broadcast, broadcast_index, operator, required
from aot_model.ops.requantise import saturated, widened


@operator("QuantisedQuotient", domain="aot", elementwise=True)
class QuantisedQuotient(Operator):
    """a * factor / (b << places) of bytes, rounded, ties away from zero; 0 counts as 1 in b. No word has more
    than 32 bits.
    """

    a_zero_point: int
    b_zero_point: int
    factor: int
    places: int
    zero_point: int
    low: int = -128
    high: int = 127
    to: DType = DType.INT8

    def infer(self, inputs: Inputs) -> list[TensorType]:
        a, b = required(inputs, 0), required(inputs, 1)
        if any(not v.dtype.is_integer or v.dtype.bits != 8 for v in (a, b)):
            raise OperatorError(f"no quotient of bytes: {a.type} by {b.type}")
        return [TensorType(self.to, broadcast(a.shape, b.shape))]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        values = (required(inputs, 0), self.a_zero_point), (required(inputs, 1), self.b_zero_point)
        a, b = (widened(at(v, broadcast_index(v.shape, index)), zero) for v, zero in values)
        by = cast(call("max", call("abs", b), const(1)), DType.UINT32)
        places, half = (const(n, DType.UINT32) for n in (1 << self.places, 1 << self.places - 1))
        scaled = call("mul", cast(call("abs", a), DType.UINT32), const(self.factor, DType.UINT32))
        whole = call("div", call("add", scaled, call("mul", by, half)), call("mul", by, places))
        size = cast(whole, DType.INT32)
        signs = call("lt", call("bitxor", a, b), const(0), dtype=DType.BOOL)
        y = select(signs, call("neg", size), size)
        return saturated(y, self.zero_point, self.low, self.high, self.to)

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        def one(x: int, y: int) -> int:
            a, b = x - self.a_zero_point, y - self.b_zero_point
            by = max(abs(b), 1) * 2**self.places
            size = (2 * abs(a) * self.factor + by) // (2 * by)
            return exact.clamped(
                (-size if (a < 0) != (b < 0) else size) + self.zero_point, self.low, self.high
            )

        return exact.by_element(one, self.to.numpy, *arrays)

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(18)
        a, b = (rng.integers(-128, 128, n).astype(np.int8) for n in ((6, 30), (30,)))
        a[0], b[:3] = np.resize([-128, 127, -5], 30), [17, 127, -128]  # no divisor, the furthest
        some = {"a_zero_point": -5, "b_zero_point": 17, "factor": 5_665_480, "places": 20, "zero_point": -20}
        unsigned = {
            "a_zero_point": 99,
            "b_zero_point": 130,
            "factor": 1_427_700,
            "places": 22,
            "zero_point": 120,
            "high": 200,
            "low": 0,
            "to": DType.UINT8,
        }
        return [
            Sample((a, b), some),
            Sample((a, a[:, 7:8]), {**some, "low": -3}),
            Sample((b, a), {**some, "factor": 1, "places": 1}),
            Sample((a.view(np.uint8), b.view(np.uint8)), unsigned),
        ]


UNBOUNDED = 1 << 40


@dataclass(frozen=True)
class Quotient:
    """a * factor / (b << places)."""

    factor: int
    places: int


def quotient(a: np.ndarray, b: np.ndarray, results: np.ndarray, low: int, high: int) -> Quotient | str:
    """The quotient that equals results (int64 [a, b], less their zero point) for all a and b (int64, less
    theirs; 0 in b counts as 1), or why there is none. low, high: what results are clamped to.
    """
    size, by = np.abs(a)[:, None], np.maximum(np.abs(b), 1)[None, :]
    turned = (a < 0)[:, None] != (b < 0)[None, :]
    nearest, most = np.where(turned, -results, results), np.where(turned, -low, high)
    least_of = np.where(turned, -high, low)
    size = np.maximum(size, 1)
    moves = (a != 0)[:, None]
    for places in range(22, 7, -1):
        half = by << places - 1
        # size * factor + half lies from nearest to before nearest + 1 times 2 * half, clamped on a side
        from_here = -(-((2 * nearest - 1) * half) // size)
        to_here = -(-((2 * nearest + 1) * half) // size) - 1
        least = int(np.where(moves & (nearest > least_of), from_here, 1).max())
        last = int(np.where(moves & (nearest < most), to_here, UNBOUNDED).min())
        if least > last:
            return "it is no quotient, or rounds some ties up and others down"
        factor = least if last == UNBOUNDED else (least + last) // 2
        if int(size.max()) * factor + int(half.max()) < 1 << 32:
            given = (np.abs(a)[:, None] * factor + half) // (2 * half)
            agrees = np.array_equal(np.clip(np.where(turned, -given, given), low, high), results)
            return Quotient(factor, places) if agrees else "it is no quotient"
    return "no factor has room in 32 bits"
