"""From floats to quantised integers and back. Source: ONNX QuantizeLinear and DequantizeLinear, opset 23."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from aot_model.ir.expr import Const, Expr, Index, call, cast, const
from aot_model.ir.index import floordiv
from aot_model.ir.operator import Arrays, At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.conversion import narrow, quantised
from aot_model.ops.registry import Build, axis_of, normal_axis, operator, required

_ONNX_TYPES: dict[int, DType] = {
    0: DType.UINT8,
    2: DType.UINT8,
    3: DType.INT8,
    4: DType.UINT16,
    5: DType.INT16,
    17: DType.FLOAT8E4M3FN,
    18: DType.FLOAT8E4M3FNUZ,
    19: DType.FLOAT8E5M2,
    20: DType.FLOAT8E5M2FNUZ,
    21: DType.UINT4,
    22: DType.INT4,
    23: DType.FLOAT4E2M1,
    25: DType.UINT2,
    26: DType.INT2,
}
"""ONNX's numbers of the types that a value can be quantised to; 0: not given."""
_ONNX_FLOATS: dict[int, DType] = {1: DType.FLOAT32, 10: DType.FLOAT16, 16: DType.BFLOAT16}
"""ONNX's numbers of the types that a value can be dequantised to."""


def parameter_index(value: Value, x: Value, axis: int, block: int, index: Index) -> Index:
    """Where the scale or zero point of the element of x at `index` is: one for all, one per index of an axis,
    or blocks.
    """
    if value.type.elements == 1:
        return tuple(const(0) for _ in value.shape)
    a = normal_axis(axis, x.type.rank)
    if block:
        return tuple(floordiv(i, block) if k == a else i for k, i in enumerate(index))
    return (index[a],)


def check_zero_point(x: Value, zero: Value | None) -> None:
    """OperatorError where a zero point has another type than what it belongs to."""
    if zero is not None and zero.dtype is not x.dtype:
        raise OperatorError(f"zero point {zero.type} is not of the type of {x.type}")


def check_parameters(x: Value, scale: Value, zero: Value | None, axis: int, block: int) -> None:
    """OperatorError when scales or zero points do not fit the tensor."""
    for value in (scale, zero):
        if value is None or value.type.elements == 1:
            continue
        a = axis_of(x, axis)
        if block < 0:
            raise OperatorError(f"block_size {block}")
        wanted = (
            tuple(-(-d // block) if k == a else d for k, d in enumerate(x.shape)) if block else (x.shape[a],)
        )
        if value.shape != wanted:
            raise OperatorError(f"scales or zero points {value.type} do not fit axis {a} of {x.type}", "E302")
    if scale.data is not None and not np.isfinite(scale.data.astype(np.float64)).all():
        raise OperatorError(
            "a scale is not a finite number",
            "E302",
            "quantise the model again, with finite numbers calibrated: masks of -inf become "
            "a large number, or stay unquantised (nodes_to_exclude)",
        )


def check_positive(scale: Value) -> None:
    """OperatorError when a constant scale is zero or negative: what divides by it, or computes integers."""
    if scale.data is not None and not (scale.data > 0).all():
        raise OperatorError("a scale is not a positive number", "E302", "quantise the model again")


@operator("QuantizeLinear")
class QuantizeLinear(Operator):
    """saturate(round(x / scale) + zero_point), ties to even."""

    axis: int = 1
    block_size: int = 0
    output_dtype: int = 0
    saturate: int = 1
    precision: int = 0

    rounding: ClassVar[str] = "rint"

    def _to(self, inputs: Inputs) -> DType:
        zero = inputs[2] if len(inputs) > 2 else None
        if zero is not None:
            return zero.dtype
        wanted = _ONNX_TYPES.get(self.output_dtype)
        if wanted is None:
            raise OperatorError(f"output_dtype {self.output_dtype} is not supported", "E202")
        return wanted

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, scale = required(inputs, 0), required(inputs, 1)
        zero = inputs[2] if len(inputs) > 2 else None
        to = self._to(inputs)
        if to.bits > 16 or (to.is_float and to.bits > 8):
            raise OperatorError(f"quantisation to {to.label} is not supported", "E202")
        check_parameters(x, scale, zero, self.axis, self.block_size)
        check_positive(scale)
        return [TensorType(to, x.shape)]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x, scale = required(inputs, 0), required(inputs, 1)
        zero = inputs[2] if len(inputs) > 2 else None
        s = at(scale, parameter_index(scale, x, self.axis, self.block_size, index))
        real = at(x, index)
        real = real if real.dtype.is_float and real.dtype.bits >= 32 else cast(real, DType.FLOAT32)
        scaled = call("div", real, cast(s, real.dtype))
        if self._to(inputs).is_float:
            if zero is not None:
                z = at(zero, parameter_index(zero, x, self.axis, self.block_size, index))
                scaled = call("add", scaled, cast(z, scaled.dtype))
            return narrow(scaled, self._to(inputs), bool(self.saturate))
        low, high = (int(v) for v in self._to(inputs).limits)
        z = (
            const(0)
            if zero is None
            else at(zero, parameter_index(zero, x, self.axis, self.block_size, index))
        )
        point = int(z.value) if isinstance(z, Const) else z
        return quantised(self.rounding, scaled, point, low, high, self._to(inputs))

    def by_element(self, inputs: Inputs) -> bool:
        return all(v is None or v.is_const for v in inputs[1:])

    def only_moves(self) -> bool:
        return True

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.asarray([[-1.5, -0.25, 0.0, 0.25], [0.5, 0.75, 1e9, -1e9]], dtype=np.float32)
        one, many = np.asarray(0.5, np.float32), np.asarray([0.5, 0.1, 2, 1], np.float32)
        zeros = np.asarray([1, -2, 0, 7], np.int8)
        constants = frozenset({1, 2})
        row = np.asarray([[*np.arange(-60, 70, 10), 1e8, -1e8, 1e-40, 0.185, 0.555]], np.float32)
        computed: tuple[np.ndarray, ...] = (
            *(np.asarray(z, np.uint8) for z in (0, 128, 255)),
            *(np.asarray(z, np.int8) for z in (-128, 127)),
            np.asarray(65535, np.uint16),
            np.asarray(-32768, np.int16),
        )
        steps = np.linspace(0.1, 90, row.shape[1], dtype=np.float32)
        points = np.resize(np.asarray([-128, 127, 0, 5], np.int8), row.shape[1])
        return [
            Sample((x, one, np.asarray(3, np.uint8)), constants=constants),
            Sample((x, one), constants=frozenset({1})),
            Sample((x, many, zeros), {"axis": 1}, constants),
            Sample((x, many, zeros), {"axis": -1}, constants),
            Sample((x, one, np.asarray(-7, np.int16)), constants=constants),
            *(Sample((row, np.asarray(0.37, np.float32), z)) for z in computed),
            Sample((row, steps, points), {"axis": 1}),
        ]


@operator("Quantise", domain="aot")
class Quantise(QuantizeLinear):
    """QuantizeLinear with ties away from zero, as TFLite rounds."""

    rounding: ClassVar[str] = "round"

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x, scale, zero = (np.asarray(a) for a in arrays)
        real = x / scale
        whole = np.copysign(np.floor(np.abs(real) + 0.5), real) + zero
        return [np.clip(whole, np.iinfo(zero.dtype).min, np.iinfo(zero.dtype).max).astype(zero.dtype)]

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.asarray([[-1.5, -0.25, 0.0, 0.25], [0.5, 0.75, 1e9, -1e9]], np.float32)
        each, zeros = np.asarray([0.5, 0.1, 2, 1], np.float32), np.asarray([1, -2, 0, 7], np.int8)
        one = [
            Sample((x, np.asarray(0.5, np.float32), np.asarray(z, k)), constants=frozenset({1, 2}))
            for z, k in ((3, np.uint8), (-7, np.int16), (0, np.int8))
        ]
        return [*one, Sample((x, each, zeros), {"axis": 1}, frozenset({1, 2}))]


@operator("RoundAway", domain="aot", elementwise=True)
class RoundAway(Operator):
    """Nearest whole number, ties away from zero, as a float."""

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [required(inputs).type]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        return call("round", at(required(inputs), index))

    @classmethod
    def samples(cls) -> list[Sample]:
        return [Sample((np.asarray([-2.5, -1.5, -0.5, -0.4, 0.4, 0.5, 1.5, 2.5, 2.51, 1e10], np.float32),))]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x = np.asarray(arrays[0])
        return [np.copysign(np.floor(np.abs(x) + 0.5), x).astype(x.dtype)]


def rounded(build: Build, x: Value) -> Value:
    """x rounded, ties away from zero."""
    return build(RoundAway(), x)


@operator("RoundWithin", domain="aot", elementwise=True)
class RoundWithin(Operator):
    """Nearest whole number from low to high, ties away from zero, as an integer; 0 of a NaN."""

    to: DType = DType.INT8
    low: int = -128
    high: int = 127

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [TensorType(self.to, required(inputs).shape)]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        return quantised("round", at(required(inputs), index), 0, self.low, self.high, self.to)

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.asarray(
            [
                -2.5,
                -1.5,
                -0.5,
                -0.49999997,
                0.49999997,
                0.5,
                1.4999999,
                126.5,
                127.49,
                1e30,
                -1e30,
                np.inf,
                -np.inf,
                np.nan,
            ],
            np.float32,
        )
        return [Sample((x,)), Sample((x,), {"to": DType.INT16, "low": -127})]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x = np.asarray(arrays[0]).astype(np.float64)
        whole = np.clip(np.copysign(np.floor(np.abs(x) + 0.5), x), self.low, self.high)
        return [np.where(np.isnan(x), 0, whole).astype(self.to.numpy)]


@operator("DequantizeLinear")
class DequantizeLinear(Operator):
    """(x - zero_point) * scale.

    Scales may be negative, or zero: compressed weights have a negative one where the number of largest size
    is positive, which then is -128 or -8.
    """

    deferred: ClassVar[bool] = True

    axis: int = 1
    block_size: int = 0
    output_dtype: int = 0
    """ONNX's number of the type of the result; 0: that of the scale."""

    def _to(self, scale: Value) -> DType:
        to = _ONNX_FLOATS.get(self.output_dtype) if self.output_dtype else scale.dtype
        if to is None:
            raise OperatorError(
                f"output_dtype {self.output_dtype} is not supported",
                "E202",
                "float32, float16 and bfloat16 are",
            )
        return to

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, scale = required(inputs, 0), required(inputs, 1)
        zero = inputs[2] if len(inputs) > 2 else None
        if not (x.dtype.is_integer or x.dtype.storage) or not scale.dtype.is_float:
            raise OperatorError(f"cannot dequantise {x.type} with scale {scale.type}")
        check_zero_point(x, zero)
        check_parameters(x, scale, zero, self.axis, self.block_size)
        return [TensorType(self._to(scale), x.shape)]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x, scale = required(inputs, 0), required(inputs, 1)
        zero = inputs[2] if len(inputs) > 2 else None
        s = at(scale, parameter_index(scale, x, self.axis, self.block_size, index))
        s = cast(s, s.dtype.compute)
        wide = at(x, index)
        if x.dtype.is_float:
            wide = cast(wide, DType.FLOAT32)
            if zero is not None:
                z = at(zero, parameter_index(zero, x, self.axis, self.block_size, index))
                wide = call("sub", wide, cast(z, DType.FLOAT32))
        else:
            to = DType.INT32 if x.dtype.bits < 32 else DType.INT64
            if zero is not None and not (zero.data is not None and not zero.data.any()):
                z = at(zero, parameter_index(zero, x, self.axis, self.block_size, index))
                wide = call("sub", cast(wide, to), cast(z, to))
            elif to is DType.INT32:
                wide = cast(wide, to)
        return cast(call("mul", cast(wide, s.dtype), s), self._to(scale))

    def only_moves(self) -> bool:
        return True

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.asarray([[-128, 127, 3], [0, 1, -1]], dtype=np.int8)
        scale, many = np.asarray(0.1, np.float32), np.asarray([0.1, 0.2, 3], np.float32)
        constants = frozenset({1, 2})
        return [
            Sample((x, scale), constants=frozenset({1})),
            Sample((x, scale, np.asarray(-5, np.int8)), constants=constants),
            Sample((x, many, np.asarray([1, -2, 0], np.int8)), {"axis": -1}, constants),
            Sample((np.asarray([2**30, -5], np.int32), scale), constants=frozenset({1})),
            Sample((np.asarray([2**30, -5], np.int32), scale, np.asarray(7, np.int32)), constants=constants),
            Sample((x, scale), {"output_dtype": 10}, frozenset({1})),
            Sample((x, many.astype(np.float16)), {"output_dtype": 1, "axis": -1}, frozenset({1})),
            Sample(
                (x, np.asarray([-0.1, 0, 3], np.float32), np.asarray([1, -2, 0], np.int8)),
                {"axis": -1},
                constants,
            ),
        ]
