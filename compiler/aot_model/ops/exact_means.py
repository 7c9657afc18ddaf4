"""Means of integers whose ties are exact.

Where scales are powers of two, the float computation that a model means rounds only at the end, and a
reciprocal in fixed point would decide ties by its own error.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np

from aot_model.arithmetic import exact
from aot_model.ir.expr import Expr, Index, call, cast, const, select
from aot_model.ir.operator import Arrays, At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ops.registry import operator, required
from aot_model.ops.requantise import saturated, widened


@operator("ExactQuotient", domain="aot", elementwise=True)
class ExactQuotient(Operator):
    """clamp(round((x - x_zero_point) / divisor) + zero_point, low, high), ties to even, for an even divisor.

    x: int32, of which x - x_zero_point is nowhere beyond +-most.
    """

    divisor: int
    most: int
    zero_point: int = 0
    low: int = -128
    high: int = 127
    to: DType = DType.INT8
    x_zero_point: int = 0

    def _up(self) -> int:
        """What makes every dividend positive: an even multiple of the divisor."""
        return -(-self.most // (2 * self.divisor)) * 2 * self.divisor

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        if not x.dtype.is_integer or self.divisor < 2 or self.divisor % 2:
            raise OperatorError(f"cannot divide {x.type} by {self.divisor}")
        if self._up() + self.most + self.divisor > DType.INT32.limits[1]:
            raise OperatorError(f"{self.most} and a divisor of {self.divisor} are too large", "E202")
        return [TensorType(self.to, x.shape)]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        up, d = self._up(), self.divisor
        acc = cast(widened(at(required(inputs), index), self.x_zero_point), DType.INT32)
        above = call("add", acc, const(up + d // 2))
        quotient = call("div", above, const(d))
        # Nothing left over: a tie, which was rounded up and goes to the even neighbour.
        odd = call("eq", call("bitand", quotient, const(1)), const(1), dtype=DType.BOOL)
        tie = call("eq", call("mul", quotient, const(d)), above, dtype=DType.BOOL)
        even = call("sub", quotient, select(call("and", tie, odd, dtype=DType.BOOL), const(1), const(0)))
        return saturated(call("sub", even, const(up // d)), self.zero_point, self.low, self.high, self.to)

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        def one(x: int) -> int:
            rounded = round(Fraction(x - self.x_zero_point, self.divisor))
            return exact.clamped(rounded + self.zero_point, self.low, self.high)

        return exact.by_element(one, self.to.numpy, *arrays)

    @classmethod
    def samples(cls) -> list[Sample]:
        acc = np.arange(-400, 401, dtype=np.int32).reshape(3, 267)
        return [
            Sample((acc,), {"divisor": 18, "most": 403, "zero_point": 3, "x_zero_point": -3}),
            Sample(
                (acc,),
                {"divisor": 2, "most": 400, "zero_point": 128, "low": 0, "high": 200, "to": DType.UINT8},
            ),
            Sample((acc * 5,), {"divisor": 98, "most": 2000, "low": -5}),
        ]


def exact_divisor(ratio: Fraction, scales: tuple[float, float]) -> int | None:
    """By what a sum is to be divided, where a multiplication by `ratio` in fixed point would miss ties."""
    if any(float(np.frexp(np.float32(s))[0]) != 0.5 for s in scales) or ratio.numerator != 1:
        return None
    d = ratio.denominator
    return d if d % 2 == 0 and d & (d - 1) and d < 1 << 24 else None
