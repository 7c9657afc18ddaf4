"""Quotients of quantised tensors, in fixed point as LiteRT and TensorFlow Lite Micro compute them."""

from __future__ import annotations

import numpy as np

from aot_model.arithmetic import exact
from aot_model.ir.expr import Expr, Index, call, const, select
from aot_model.ir.operator import Arrays, At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ops.registry import broadcast, broadcast_index, operator, required
from aot_model.ops.requantise import Rescale, saturated, widened


@operator("QuantisedDiv", domain="aot", elementwise=True)
class QuantisedDiv(Operator):
    """a / b of quantised tensors: a, shifted as far as it fits, times the reciprocal of b, rescaled. 0 counts
    as 1 in b.

    Quotients that are small against the result's scale are rounded too; the original shifts by more bits than
    a word has there.
    """

    a_zero_point: int
    b_zero_point: int
    result: Rescale
    low: int = -128
    high: int = 127
    to: DType = DType.INT8

    def infer(self, inputs: Inputs) -> list[TensorType]:
        a, b = required(inputs, 0), required(inputs, 1)
        if any(not v.dtype.is_integer or v.dtype.bits > 16 for v in (a, b)):
            raise OperatorError(f"cannot divide {a.type} by {b.type}")
        return [TensorType(self.to, broadcast(a.shape, b.shape))]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        values = (required(inputs, 0), self.a_zero_point), (required(inputs, 1), self.b_zero_point)
        a, b = (widened(at(v, broadcast_index(v.shape, index)), zero) for v, zero in values)
        turned = call("lt", b, const(0), dtype=DType.BOOL)
        a, b = select(turned, call("neg", a), a), call("max", call("abs", b), const(1))
        zeros = call("leading_zeros", b)
        negative = call("lt", a, const(0), dtype=DType.BOOL)
        size = select(negative, call("sub", call("mul", call("neg", a), const(2)), const(1)), a)
        room = call("sub", call("leading_zeros", size), select(negative, const(0), const(1)))
        quotient = call("high_multiply", call("shl", a, room), call("reciprocal", b))
        shift = call("sub", call("add", zeros, const(self.result.shift - 31)), room)
        bounded = call("min", call("max", shift, const(-31)), const(0))
        y = call("requantise", quotient, const(self.result.multiplier), bounded)
        vanishes = call("lt", shift, const(-31), dtype=DType.BOOL)
        if required(inputs, 1).shape[-1:] == (1,) != required(inputs, 0).shape[-1:]:
            # no branch: what is of b alone is computed once for a row
            near = call("bitand", y, select(vanishes, const(0), const(-1)))
        else:
            near = select(vanishes, const(0), y)
        return saturated(near, self.result.zero_point, self.low, self.high, self.to)

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        def one(x: int, y: int) -> int:
            a, b = x - self.a_zero_point, y - self.b_zero_point
            a, b = (-a if b < 0 else a), max(abs(b), 1)
            inverse, zeros = exact.normalised_inverse(b)
            room = 32 - (-2 * a - 1).bit_length() if a < 0 else 31 - a.bit_length()
            shift = self.result.shift - (31 - zeros) - room
            scaled = (
                exact.rescale(exact.product(a * 2**room, inverse), self.result.multiplier, min(shift, 0))
                if shift >= -31
                else 0
            )
            return exact.clamped(scaled + self.result.zero_point, self.low, self.high)

        return exact.by_element(one, self.to.numpy, *arrays)

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(16)
        a, b = (
            np.asarray(rng.integers(-128, 128, (6, 30)), np.int8),
            np.asarray(rng.integers(-128, 128, 30), np.int8),
        )
        some = {"a_zero_point": -5, "b_zero_point": 17, "result": Rescale(-20, 1503238553, 6)}
        unsigned = {
            "a_zero_point": 99,
            "b_zero_point": 130,
            "result": Rescale(120, 1303238553, 5),
            "low": 0,
            "high": 200,
            "to": DType.UINT8,
        }
        return [
            Sample((a, b), some),
            Sample((a, a[:, 7:8]), some),
            # ties, for which there is no quotient; also of a divisor of each row
            *(
                Sample((x, y), {**some, "result": Rescale(3, 2**30, -4), "low": -3})
                for x, y in ((a, b), (a, a[:, 7:8]), (a[:, 3:4], a[:, 7:8]))
            ),
            Sample((a.astype(np.uint8), b.astype(np.uint8)), unsigned),
        ]
