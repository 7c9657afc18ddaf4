"""Sums, products and PReLU of quantised tensors, integer only; requantise.py has the rescaling,
quantised_tables.py functions of one value.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from aot_model.arithmetic import exact
from aot_model.ir.expr import Expr, Index, call, const, select
from aot_model.ir.operator import Arrays, At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.kernels.int8.affine_sum import Affine, Rescaling, affine
from aot_model.ops.registry import broadcast, broadcast_index, operator, required
from aot_model.ops.requantise import Rescale, rescaled, saturated, widened


@operator("QuantisedSum", domain="aot", elementwise=True)
class QuantisedSum(Operator):
    """a + b, a - b or (a - b)^2 of quantised tensors: both brought to a common finer scale, then rescaled to
    the result's.
    """

    function: str
    a: Rescale
    b: Rescale
    result: Rescale
    left_shift: int
    low: int = -128
    high: int = 127
    rounding: str = "double"
    """Of the result; the terms have many bits more."""

    def infer(self, inputs: Inputs) -> list[TensorType]:
        a, b = required(inputs, 0), required(inputs, 1)
        if a.dtype is not b.dtype or not a.dtype.is_integer:
            raise OperatorError(f"cannot combine {a.type} and {b.type}")
        return [TensorType(a.dtype, broadcast(a.shape, b.shape))]

    def affine(self, dtype: DType, swapped: bool = False) -> Affine | None:
        """The sum or difference of bytes as one multiply-add for each; None where none is equal. swapped: for
        the second input first.
        """
        if dtype.bits != 8 or self.function not in ("add", "sub"):
            return None
        a, b, result = (Rescaling(r.zero_point, r.multiplier, r.shift) for r in (self.a, self.b, self.result))
        form = affine(
            a,
            b,
            result,
            self.left_shift,
            self.low,
            self.high,
            self.rounding,
            1 if self.function == "add" else -1,
            int(dtype.limits[0]),
        )
        return replace(form, ma=form.mb, mb=form.ma) if form is not None and swapped else form

    def _exact(self, bits: int) -> tuple[int, int, Rescale] | None:
        """(factor of a, factor of b, rescaling of the sum) where the terms of numbers of so many bits are
        whole: then nothing but the sum is rounded, and finer terms say no more. Two roundings of a sum are
        none where it is as fine as the result.
        """
        factors: list[int] = []
        for r in (self.a, self.b):
            places = self.left_shift + r.shift
            if r.multiplier <= 0 or places < 0 or bits + self.left_shift + max(r.shift, 0) > 31:
                return None
            factor, rest = divmod(r.multiplier << places, 1 << 31)
            if rest:
                return None
            factors.append(factor)
        shared = (factors[0] | factors[1]) & -(factors[0] | factors[1])
        shift = self.result.shift + shared.bit_length() - 1
        fine = self.result.multiplier == 1 << 30 and shift == 1
        if self.function not in ("add", "sub") or shift > 30 or (self.rounding == "double" and not fine):
            return None
        return factors[0] // shared, factors[1] // shared, replace(self.result, shift=shift)

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        form, dtype = self.affine(required(inputs).dtype), required(inputs).dtype
        pairs = (required(inputs, 0), self.a), (required(inputs, 1), self.b)
        if form is not None:
            total: Expr = const(form.offset)
            for (value, _), factor in zip(pairs, (form.ma, form.mb), strict=True):
                x = widened(at(value, broadcast_index(value.shape, index)), 0)
                total = call("add", call("mul", x, const(factor)), total)
            return saturated(call("sar", total, const(form.shift)), 0, self.low, self.high, dtype)
        terms, exact = [], self._exact(dtype.bits)
        factors = (1 << self.left_shift,) * 2 if exact is None else exact[:2]
        for (value, by), factor in zip(pairs, factors, strict=True):
            x = at(value, broadcast_index(value.shape, index))
            x = widened(x, by.zero_point if exact is None else 0)
            x = call("mul", x, const(factor)) if factor > 1 else x
            terms.append(rescaled(x, by) if exact is None else x)
        total = call("add" if self.function == "add" else "sub", *terms)
        result, rounding = self.result, self.rounding
        if exact is not None:
            zeros = [by.zero_point * factor for (_, by), factor in zip(pairs, factors, strict=True)]
            less = zeros[0] + zeros[1] if self.function == "add" else zeros[0] - zeros[1]
            total = call("sub", total, const(less)) if less else total
            result, rounding = exact[2], "single" if rounding == "single" else "even"
        if self.function == "squared difference":
            total = call("mul", total, total)
        return saturated(rescaled(total, result, rounding), result.zero_point, self.low, self.high, dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(14)
        a, b, wide = (np.asarray(rng.integers(-128, 128, s), np.int8) for s in ((3, 5), (3, 5), (1, 5)))
        fine, coarse = Rescale(-3, 2**30, 0), Rescale(7, 1717986918, -1)
        kinds: list[tuple[str, Rescale, dict[str, Any]]] = [
            ("add", Rescale(-9, 1288490189, -18), {}),
            ("sub", Rescale(4, 1288490189, -18), {"low": -50, "high": 60}),
            ("squared difference", Rescale(-100, 1932735283, -17), {"left_shift": 7}),
            ("add", Rescale(2, 2**30, -17), {"rounding": "single"}),
        ]
        samples = [
            Sample((a, y), {"function": f, "a": fine, "b": coarse, "result": r, "left_shift": 20, **more})
            for f, r, more in kinds
            for y in (b, wide)
        ]
        words = np.asarray(rng.integers(-32768, 32768, (2, 40)), np.int16)
        same = {"a": Rescale(3, 2**30, 0), "b": Rescale(-2, 2**30, 0), "result": Rescale(5, 2**30, -13)}
        terms = {"a": Rescale(3, 2**30, 0), "b": Rescale(5, 2**30, -1), "left_shift": 20}
        return [
            *samples,
            *(
                Sample(
                    (words[0], words[1]),
                    {**same, "function": f, "left_shift": 15, "low": -30000, "high": 32767},
                )
                for f in ("add", "sub")
            ),
            Sample(
                (words[0], words[1]),
                {
                    "function": "add",
                    "a": Rescale(0, 2**30, 0),
                    "b": Rescale(0, 2**30, 1),
                    "result": Rescale(0, 2**30, -14),
                    "left_shift": 14,
                    "low": -32768,
                    "high": 32767,
                },
            ),
            *(
                Sample(
                    (a, b), {**terms, "function": f, "result": Rescale(zero, 2**30, -18), "rounding": "even"}
                )
                for f in ("add", "sub")
                for zero in (-7, 4)
            ),
        ]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        def one(x: int, y: int) -> int:
            p, q = (
                exact.rescale(v - by.zero_point << self.left_shift, by.multiplier, by.shift)
                for v, by in ((x, self.a), (y, self.b))
            )
            total = p + q if self.function == "add" else p - q if self.function == "sub" else (p - q) ** 2
            rescaled = exact.rescale(total, self.result.multiplier, self.result.shift, self.rounding)
            return exact.clamped(rescaled + self.result.zero_point, self.low, self.high)

        return exact.by_element(one, np.asarray(arrays[0]).dtype, *arrays)


@operator("QuantisedMul", domain="aot", elementwise=True)
class QuantisedMul(Operator):
    """a * b of quantised tensors: the exact product of the centred integers, rescaled."""

    a_zero_point: int = 0
    b_zero_point: int = 0
    result: Rescale = Rescale(0, 0, 0)
    low: int = -128
    high: int = 127
    to: DType = DType.INT8
    rounding: str = "double"

    def infer(self, inputs: Inputs) -> list[TensorType]:
        a, b = required(inputs, 0), required(inputs, 1)
        if not a.dtype.is_integer or not b.dtype.is_integer:
            raise OperatorError(f"cannot multiply {a.type} and {b.type}")
        return [TensorType(self.to, broadcast(a.shape, b.shape))]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        a, b = required(inputs, 0), required(inputs, 1)
        left = widened(at(a, broadcast_index(a.shape, index)), self.a_zero_point)
        right = widened(at(b, broadcast_index(b.shape, index)), self.b_zero_point)
        return saturated(
            rescaled(call("mul", left, right), self.result, self.rounding),
            self.result.zero_point,
            self.low,
            self.high,
            self.to,
        )

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(15)
        a, b = (
            np.asarray(rng.integers(-128, 128, (4, 6)), np.int8),
            np.asarray(rng.integers(-128, 128, (4, 1)), np.int8),
        )
        words = np.asarray(rng.integers(-32768, 32768, (2, 12)), np.int16)
        given: dict[str, Any] = {
            "a_zero_point": -5,
            "b_zero_point": 17,
            "result": Rescale(-20, 1503238553, -7),
        }
        long, other = (np.asarray(rng.integers(-128, 128, (3, 13)), np.int8) for _ in range(2))
        long[0, :4], other[0, :4] = (-128, 127, 127, -128), (-128, -128, 127, 127)
        unsigned = {**given, "a_zero_point": 255, "b_zero_point": 0, "to": DType.UINT8, "low": 0, "high": 255}
        fours = [((long, y), given) for y in (other, other[:, :1], other[1])]
        fours += [((long.view(np.uint8), y.view(np.uint8)), unsigned) for y in (other, other[:1])]
        return [
            *(Sample(pair, attributes) for pair, attributes in fours),
            Sample(fours[1][0], {**given, "rounding": "even", "result": Rescale(127, 2**30 + 2**20, -6)}),
            Sample((a, b), given),
            Sample((a, b), {**given, "rounding": "single", "low": -30, "high": 40}),
            Sample((a, b), {**given, "to": DType.INT16, "low": -32768, "high": 32767}),
            Sample(
                (a.astype(np.uint8), b.astype(np.uint8)), {**given, "to": DType.UINT8, "low": 0, "high": 255}
            ),
            Sample(
                (words[0], words[1]),
                {"result": Rescale(0, 2**30, -15), "to": DType.INT16, "low": -32768, "high": 32767},
            ),
        ]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        def one(x: int, y: int) -> int:
            scaled = exact.rescale(
                (x - self.a_zero_point) * (y - self.b_zero_point),
                self.result.multiplier,
                self.result.shift,
                self.rounding,
            )
            return exact.clamped(scaled + self.result.zero_point, self.low, self.high)

        return exact.by_element(one, self.to.numpy, *arrays)


# --- activations --------------------------------------------------------------------------------------------


@operator("QuantisedPRelu", domain="aot", elementwise=True)
class QuantisedPRelu(Operator):
    """x >= 0 ? x : alpha * x of quantised tensors, each side with its own factor."""

    x_zero_point: int
    alpha_zero_point: int
    positive: Rescale
    negative: Rescale

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, alpha = required(inputs, 0), required(inputs, 1)
        if any(not v.dtype.is_integer or v.dtype.bits > 16 for v in (x, alpha)):
            raise OperatorError(f"cannot multiply {x.type} by slopes {alpha.type}")
        return [TensorType(x.dtype, broadcast(x.shape, alpha.shape))]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x, slope = required(inputs, 0), required(inputs, 1)
        real = widened(at(x, broadcast_index(x.shape, index)), self.x_zero_point)
        alpha = widened(at(slope, broadcast_index(slope.shape, index)), self.alpha_zero_point)
        below = call("lt", real, const(0), dtype=DType.BOOL)
        y = select(below, rescaled(call("mul", real, alpha), self.negative), rescaled(real, self.positive))
        low, high = x.dtype.limits
        return saturated(y, self.positive.zero_point, low, high, x.dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        x, alpha = (
            np.arange(-128, 128, dtype=np.int8).reshape(4, 64),
            np.asarray([[-90], [3], [60], [127]], np.int8),
        )
        given = {
            "x_zero_point": -10,
            "alpha_zero_point": 3,
            "positive": Rescale(-8, 1610612736, 0),
            "negative": Rescale(-8, 1288490189, -6),
        }
        return [Sample((x, alpha), given), Sample((x, alpha), given, frozenset({1}))]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        dtype = np.asarray(arrays[0]).dtype
        low, high = int(np.iinfo(dtype).min), int(np.iinfo(dtype).max)

        def one(x: int, alpha: int) -> int:
            real = x - self.x_zero_point
            by, factor = (self.positive, 1) if real >= 0 else (self.negative, alpha - self.alpha_zero_point)
            scaled = exact.rescale(real * factor, by.multiplier, by.shift)
            return exact.clamped(scaled + self.positive.zero_point, low, high)

        return exact.by_element(one, dtype, *arrays)
