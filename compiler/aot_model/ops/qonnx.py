"""qonnx.custom_op.general: networks that were trained with quantisation of any width.

A node computes floats that lie on the grid of some integers. Source: the schemas of QONNX, version 1 (Trunc:
1 and 2), by which Brevitas and QKeras are exported; domains that they had before are in the registry.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from aot_model.ir.operator import Arrays, Inputs, OperatorError, Sample
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.ops.composition import Algebra, Composition
from aot_model.ops.microsoft_activation import drawn
from aot_model.ops.normalisation import scalar
from aot_model.ops.quantised_linear import DequantizeLinear, QuantizeLinear
from aot_model.ops.registry import OPERATORS, Build, broadcast, operator, required, static

QONNX = "qonnx.custom_op.general"
_WIDEST = 32
_MAKERS: dict[str, Callable[[Algebra, Value], Value]] = {
    "ROUND": lambda a, x: a.of("Round", x),
    "HALF_EVEN": lambda a, x: a.of("Round", x),
    "CEIL": lambda a, x: a.of("Ceil", x),
    "FLOOR": lambda a, x: a.of("Floor", x),
    "UP": lambda a, x: a.mul(a.of("Sign", x), a.of("Ceil", a.of("Abs", x))),
    "DOWN": lambda a, x: a.mul(a.of("Sign", x), a.of("Floor", a.of("Abs", x))),
    "HALF_UP": lambda a, x: a.mul(a.of("Sign", x), a.of("Floor", a.add(a.of("Abs", x), 0.5))),
    "HALF_DOWN": lambda a, x: a.mul(a.of("Sign", x), a.of("Ceil", a.sub(a.of("Abs", x), 0.5))),
}


def _for_each(x: Value, *parameters: np.ndarray) -> None:
    """Each is one number, or numbers along axes of x: what is computed of several is no larger."""
    for one in parameters:
        if broadcast(x.shape, one.shape) != x.shape:
            raise OperatorError(f"a parameter of shape {one.shape} does not belong to x of shape {x.shape}")


def _maker(mode: str) -> Callable[[Algebra, Value], Value]:
    make = _MAKERS.get(mode.upper())
    if make is None:
        raise OperatorError(
            f"rounding_mode '{mode}' is not supported", "E202", f"it may be one of {', '.join(_MAKERS)}"
        )
    return make


def _limits(bits: np.ndarray, signed: int, narrow: int) -> tuple[np.ndarray, np.ndarray]:
    """The least and the greatest integer of so many bits."""
    if not (np.isfinite(bits) & (bits >= 1) & (bits <= _WIDEST) & (bits == np.floor(bits))).all():
        raise OperatorError(f"a bit width is no integer from 1 to {_WIDEST}", "E302")
    whole = bits.astype(np.int64)
    if signed:
        return (narrow != 0) - (1 << (whole - 1)), (1 << (whole - 1)) - 1
    return np.zeros_like(whole), (1 << whole) - 1 - (narrow != 0)


def _clamped(a: Algebra, x: Value, low: np.ndarray, high: np.ndarray) -> Value:
    limits = (a.build.constant(v, x.dtype) for v in (high, low))
    return a.of("Max", a.of("Min", x, next(limits)), next(limits))


def _type_of(low: int, high: int, packed: bool) -> DType | None:
    """The narrowest type of integers in which quantised tensors are held; types of 4 bits where `packed`."""
    types = (DType.INT4, DType.UINT4) if packed else ()
    every = (*types, DType.INT8, DType.UINT8, DType.INT16, DType.UINT16)
    return next((t for t in every if t.limits[0] <= low and high <= t.limits[1]), None)


def _line(scale: Value, x: Value) -> tuple[Value, int] | None:
    """A scale as QuantizeLinear takes it, with its axis: one number, or one for each place of one axis."""
    if scale.type.elements == 1:
        return scale, 0
    if not scale.type.elements:
        return None
    axes = [k for k, extent in enumerate(scale.shape) if extent > 1]
    if scale.type.rank != x.type.rank or len(axes) != 1 or scale.shape[axes[0]] != x.shape[axes[0]]:
        return None
    return scale, axes[0]


@operator("IntQuant", domain=QONNX, inputs=4)
class IntQuant(Composition):
    """x as integers of so many bits: (round(clamp(x / scale + zero point)) - zero point) * scale.

    With one width of at most 16 bits, positive constant scales of one axis at most, the zero point 0 and
    ties to even it is QuantizeLinear and DequantizeLinear, of which integer kernels are made; a constant
    becomes the integers themselves. Else it is computed in floats.
    """

    expands_to_qdq: ClassVar[bool] = True

    signed: int = 1
    narrow: int = 0
    rounding_mode: str = "ROUND"

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x, scale, zero = (required(inputs, k) for k in range(3))
        bits = static(inputs, 3, "bitwidth")
        if bits is None:
            raise OperatorError("the bit width is missing")
        low, high = _limits(np.asarray(bits, np.float64), self.signed, self.narrow)
        a, rounded = Algebra(build), _maker(self.rounding_mode)
        if self.signed and (bits == 1).all():
            y = a.add(a.div(x, scale), zero)
            ones = a.of("Where", a.of("GreaterOrEqual", y, scalar(build, 0, y.dtype)), *_ones(build, y))
            return [a.mul(a.sub(ones, zero), scale)]
        pair = self._pair(build, x, scale, zero, low, high)
        if pair is not None:
            return [pair]
        y = _clamped(a, a.add(a.div(x, scale), zero), low, high)
        return [a.mul(a.sub(rounded(a, y), zero), scale)]

    def _pair(
        self, build: Build, x: Value, scale: Value, zero: Value, low: np.ndarray, high: np.ndarray
    ) -> Value | None:
        line = _line(scale, x)
        if (
            line is None
            or low.size != 1
            or scale.data is None
            or zero.data is None
            or x.dtype is not DType.FLOAT32
            or scale.dtype is not DType.FLOAT32
            or self.rounding_mode.upper() not in ("ROUND", "HALF_EVEN")
            or not ((scale.data > 0).all() and np.isfinite(scale.data).all() and (zero.data == 0).all())
        ):
            return None
        least, most = int(low.item()), int(high.item())
        to = _type_of(least, most, x.data is not None)
        if to is None:
            return None
        steps = scale.data.reshape(-1) if line[0].type.elements > 1 else scale.data.reshape(())
        flat, point = build.constant(steps), build.constant(np.zeros(steps.shape), to)
        if x.data is not None:
            whole = np.clip(np.rint(x.data / scale.data), least, most)
            if np.isnan(whole).any():
                raise OperatorError("a constant that is quantised is not a number", "E302")
            quantised = build.constant(whole, to)
        else:
            if (least, most) != to.limits:
                if steps.ndim:
                    return None
                ends = np.asarray([least, most], np.float32) * steps
                x = build(OPERATORS["", "Clip"](), x, build.constant(ends[0]), build.constant(ends[1]))
            quantised = build(QuantizeLinear(axis=line[1]), x, flat, point)
        return build(DequantizeLinear(axis=line[1]), quantised, flat, point)

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x, scale, zero, bits = (np.asarray(v) for v in arrays)
        low, high = _numpy_limits(bits, self.signed, self.narrow)
        y = (x / scale + zero).astype(x.dtype)
        if self.signed and (bits == 1).all():
            y = np.where(y >= 0, 1.0, -1.0)
        else:
            y = _numpy_rounded(np.minimum(np.maximum(y, low), high).astype(x.dtype), self.rounding_mode)
        return [((y - zero) * scale).astype(x.dtype)]

    @classmethod
    def samples(cls) -> list[Sample]:
        x = 3 * drawn(1, 2, 3, 4)
        halves = np.asarray([[-5.5, -2.5, -1.6, -1.1, -1.0, -0.5, 0.5, 1.0, 1.1, 1.6, 2.5, 5.5]], np.float32)
        some = frozenset({1, 2, 3})
        f = np.float32

        def given(scale: object, zero: object, bits: object) -> tuple[np.ndarray, ...]:
            return np.asarray(scale, f), np.asarray(zero, f), np.asarray(bits, f)

        modes = ("ROUND", "CEIL", "FLOOR", "UP", "DOWN", "HALF_UP", "HALF_DOWN", "half_even")
        return [
            Sample((x, *given(0.125, 0, 4)), {}, some),
            Sample((x, *given(0.125, 0, 4)), {"signed": 0}, some),
            Sample((x, *given(0.03, 0, 8)), {}, some),
            Sample((x, *given(0.03, 0, 8)), {"narrow": 1}, some),
            Sample((x, *given(0.03, 0, 8)), {"narrow": 1, "signed": 0}, some),
            Sample((x, *given(0.001, 0, 16)), {}, some),
            Sample((x, *given(0.0001, 0, 20)), {}, some),
            Sample((x, *given([0.1], [0], [3])), {"narrow": 1}, some),
            Sample((x, *given([[[0.1], [0.2], [0.05]]], 0, 6)), {}, some),
            Sample((x, *given(drawn(2, 1, 3, 4) + 3, 0, 3)), {}, some),
            Sample((x, *given(0.25, 3, 4)), {"signed": 0}, some),
            Sample((x, *given(0.25, 0, [[[4], [2], [3]]])), {}, some),
            Sample((x, *given(0.5, 0, 1)), {}, some),
            Sample((x, *given(0.5, 0, 1)), {"signed": 0}, some),
            Sample((x, *given(0.25, 1, 5)), {}, frozenset({3})),
            Sample((x, *given(0.125, 0, 4)), {}, frozenset({0, 1, 2, 3})),
            Sample((x, *given([[[0.1], [0.2], [0.05]]], 0, 8)), {}, frozenset({0, 1, 2, 3})),
            *(Sample((halves, *given(1, 0, 4)), {"rounding_mode": m}, some) for m in modes),
        ]


def _ones(build: Build, y: Value) -> tuple[Value, Value]:
    return scalar(build, 1, y.dtype), scalar(build, -1, y.dtype)


def _numpy_limits(bits: np.ndarray, signed: int, narrow: int) -> tuple[np.ndarray, np.ndarray]:
    """For references, in floats."""
    span = 2.0 ** (bits - (1 if signed else 0))
    low = (-span + (1 if narrow else 0)) if signed else 0.0 * span
    return low, span - 1 - (1 if narrow and not signed else 0)


def _numpy_rounded(x: np.ndarray, mode: str) -> np.ndarray:
    size = np.abs(x)
    by: dict[str, np.ndarray] = {
        "CEIL": np.ceil(x),
        "FLOOR": np.floor(x),
        "UP": np.sign(x) * np.ceil(size),
        "DOWN": np.trunc(x),
    }
    by |= {"HALF_UP": np.sign(x) * np.floor(size + 0.5), "HALF_DOWN": np.sign(x) * np.ceil(size - 0.5)}
    return by[mode.upper()] if mode.upper() in by else np.rint(x)


@operator("Quant", domain=QONNX, inputs=4)
class Quant(IntQuant):
    """IntQuant by its former name."""


@operator("BipolarQuant", domain=QONNX, inputs=2)
class BipolarQuant(Composition):
    """scale where x is not negative, -scale elsewhere; a constant becomes integers of 4 bits."""

    expands_to_qdq: ClassVar[bool] = True

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        a, x, scale = Algebra(build), required(inputs, 0), required(inputs, 1)
        data, step = x.data, scale.data
        if data is not None and step is not None and step.size == 1 and x.dtype is DType.FLOAT32 and step > 0:
            signs = build.constant(np.where(data >= 0, 1, -1), DType.INT4)
            flat, zero = build.constant(step.reshape(())), build.constant(0, DType.INT4)
            return [build(DequantizeLinear(), signs, flat, zero)]
        signs = a.of("Where", a.of("GreaterOrEqual", x, scalar(build, 0, x.dtype)), *_ones(build, x))
        return [a.mul(signs, scale)]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x, scale = (np.asarray(v) for v in arrays)
        return [np.copysign(np.float32(1), np.where(x == 0, 0, x)).astype(x.dtype) * scale]

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.asarray([[-1.5, -0.0, 0.0, 2.0], [1e-30, -1e-30, 3.0, -7.0]], np.float32)
        return [
            Sample((x, np.asarray(0.5, np.float32)), constants=frozenset({1})),
            Sample((x, np.asarray(0.5, np.float32)), constants=frozenset({0, 1})),
            Sample((x, np.asarray([0.5, 1, 2, 3], np.float32))),
        ]


@operator("Trunc", domain=QONNX, inputs=6)
class Trunc(Composition):
    """Integers with their last bits cut off. Version 1 has five inputs (x, scale, zero point, bits before and
    after) and keeps the scale; version 2 has six (before the last a scale of the result) and clamps.
    """

    rounding_mode: str = "FLOOR"
    signed: int = 1
    narrow: int = 0

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x, scale, zero = (required(inputs, k) for k in range(3))
        a, rounded = Algebra(build), _maker(self.rounding_mode)
        y = a.of("Round", a.add(a.div(x, scale), zero))
        before, after = static(inputs, 3, "in_bitwidth"), static(inputs, len(inputs) - 1, "out_bitwidth")
        if len(inputs) < 5 or before is None or after is None:
            raise OperatorError(f"{len(inputs)} inputs, not 5 (version 1) or 6 (version 2)")
        low, high = _limits(np.asarray(after, np.float64), self.signed, self.narrow)
        _limits(np.asarray(before, np.float64), self.signed, self.narrow)
        if len(inputs) == 5:
            _for_each(x, before, after)
            factor = np.exp2(np.asarray(before, np.float64) - after)
            y = rounded(a, a.div(y, build.constant(factor, x.dtype)))
            return [a.mul(a.sub(y, zero), scale)]
        first, last = static(inputs, 1, "scale"), static(inputs, 4, "out_scale")
        if first is None or last is None or not ((first > 0).all() and (last > 0).all()):
            raise OperatorError("a scale is not a positive number", "E302", "quantise the model again")
        _for_each(x, first, last)
        divisor = build.constant(np.exp2(np.rint(np.log2(last / first))), x.dtype)
        y = rounded(a, _clamped(a, a.div(y, divisor), low, high))
        return [a.mul(a.sub(y, a.div(zero, divisor)), required(inputs, 4))]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x, scale, zero, before, *rest = (np.asarray(v) for v in arrays)
        y = np.rint((x / scale + zero).astype(x.dtype))
        if len(rest) == 1:
            y = _numpy_rounded((y / 2 ** (before - rest[0])).astype(x.dtype), self.rounding_mode)
            return [((y - zero) * scale).astype(x.dtype)]
        factor = 2 ** np.rint(np.log2(rest[0] / scale))
        low, high = _numpy_limits(rest[1], self.signed, self.narrow)
        y = _numpy_rounded(np.minimum(np.maximum(y / factor, low), high).astype(x.dtype), self.rounding_mode)
        return [((y - zero / factor) * rest[0]).astype(x.dtype)]

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.arange(-60, 60, 7, dtype=np.float32).reshape(2, 9) * np.float32(0.125)

        def given(*values: float) -> tuple[np.ndarray, ...]:
            return tuple(np.asarray(v, np.float32) for v in values)

        first, second = frozenset(range(1, 5)), frozenset(range(1, 6))
        return [
            Sample((x, *given(0.125, 0, 8, 6)), {}, first),
            Sample((x, *given(0.125, 0, 8, 5)), {"rounding_mode": "ROUND"}, first),
            Sample((x, *given(0.125, 4, 8, 6)), {"rounding_mode": "ceil"}, first),
            Sample((x, *given(0.125, 0, 8, 0.5, 4)), {}, second),
            Sample((x, *given(0.125, 0, 8, 0.5, 4)), {"signed": 0, "rounding_mode": "ROUND"}, second),
            Sample((x, *given(0.125, 4, 8, 1, 3)), {"narrow": 1}, second),
        ]
