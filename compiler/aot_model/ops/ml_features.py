"""Preparation of features in ai.onnx.ml: scale, normalise, impute, binarise, select, collect.

Source: ONNX-ML operator specification.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from aot_model.ir.expr import Expr, Index, call, cast, const
from aot_model.ir.operator import At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.elementwise import Where, op
from aot_model.ops.ml_scores import as_float
from aot_model.ops.movement import Concat, Gather
from aot_model.ops.normalisation import reduction
from aot_model.ops.registry import Build, numeric, operator, ranked, required
from aot_model.ops.views import ReshapeTo


def _draw(*shape: int) -> np.ndarray:
    return np.asarray(np.random.default_rng(len(shape)).uniform(-3, 3, shape), np.float32)


def _check_length(values: tuple[float, ...] | tuple[int, ...], x: Value, what: str) -> None:
    if len(values) != 1 and (not x.shape or len(values) != x.shape[-1]):
        raise OperatorError(f"{len(values)} values of '{what}' for {x.type}")


@operator("Scaler", domain="ai.onnx.ml")
class Scaler(Operator):
    """(x - offset) * scale, one of each or one for each feature."""

    offset: tuple[float, ...] = ()
    scale: tuple[float, ...] = ()

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        _check_length(self.offset, x, "offset")
        _check_length(self.scale, x, "scale")
        return [TensorType(DType.FLOAT32, x.shape)]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x = as_float(build, required(inputs))
        moved = build(op("Sub"), x, build.constant(self.offset, DType.FLOAT32)) if any(self.offset) else x
        y = build(op("Mul"), moved, build.constant(self.scale, DType.FLOAT32))
        return [y if y.shape == x.shape else build(ReshapeTo(x.shape), y)]

    @classmethod
    def samples(cls) -> list[Sample]:
        forms: list[dict[str, Any]] = [
            {"offset": (0.5, -1.0, 2.0), "scale": (1.0, 0.5, -3.0)},
            {"offset": (0.5,), "scale": (2.0,)},
        ]
        return [
            *(Sample((_draw(4, 3),), f) for f in forms),
            Sample((np.asarray([[1, -5, 7]], np.int64),), forms[0]),
        ]


@operator("Normalizer", domain="ai.onnx.ml")
class Normalizer(Operator):
    """Each row divided by its maximum (MAX), its sum of magnitudes (L1) or its length (L2); as it is where
    that is 0.
    """

    norm: str = "MAX"

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        if self.norm not in ("MAX", "L1", "L2") or x.type.rank not in (1, 2):
            raise OperatorError(f"norm '{self.norm}' of {x.type}")
        return [TensorType(DType.FLOAT32, x.shape)]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x = as_float(build, required(inputs))
        divisor = reduction(
            {"MAX": "ReduceMax", "L1": "ReduceL1", "L2": "ReduceL2"}[self.norm], build, x, (x.type.rank - 1,)
        )
        nothing = build(op("Equal"), divisor, build.constant(0, DType.FLOAT32))
        return [build(op("Div"), x, build(Where(), nothing, build.constant(1, DType.FLOAT32), divisor))]

    @classmethod
    def samples(cls) -> list[Sample]:
        x = _draw(4, 3)
        x[1] = 0
        return [Sample((np.abs(x) if n == "MAX" else x,), {"norm": n}) for n in ("MAX", "L1", "L2")]


@operator("Imputer", domain="ai.onnx.ml")
class Imputer(Operator):
    """Elements that equal one value (NaN: that are NaN) become another, the same for all features or one for
    each.
    """

    imputed_value_floats: tuple[float, ...] = ()
    imputed_value_int64s: tuple[int, ...] = ()
    replaced_value_float: float = 0.0
    replaced_value_int64: int = 0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        values = self.imputed_value_floats if x.dtype.is_float else self.imputed_value_int64s
        if not values:
            raise OperatorError(f"has no value to impute for {x.type}")
        if len(values) > 1:
            ranked(x, 1, 2)  # of more axes, ONNX Runtime takes another for that of the features
        _check_length(values, x, "imputed_value")
        return [x.type]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x = required(inputs)
        new = build.constant(
            self.imputed_value_floats if x.dtype.is_float else self.imputed_value_int64s, x.dtype
        )
        if x.dtype.is_float and math.isnan(self.replaced_value_float):
            found = build(op("IsNaN"), x)
        else:
            old = self.replaced_value_float if x.dtype.is_float else self.replaced_value_int64
            found = build(op("Equal"), x, build.constant(old, x.dtype))
        y = build(Where(), found, new, x)
        return [y if y.shape == x.shape else build(ReshapeTo(x.shape), y)]

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.asarray([[1, np.nan, 3], [np.nan, 0, 1]], np.float32)
        n = np.asarray([[1, -1, 3], [-1, -1, 0]], np.int64)
        return [
            Sample((x,), {"imputed_value_floats": (7.0, 8.0, 9.0), "replaced_value_float": float("nan")}),
            Sample((x,), {"imputed_value_floats": (5.0,), "replaced_value_float": 1.0}),
            Sample((n,), {"imputed_value_int64s": (4, 5, 6), "replaced_value_int64": -1}),
        ]


@operator("Binarizer", domain="ai.onnx.ml", elementwise=True)
class Binarizer(Operator):
    """1 where x is above the threshold, else 0."""

    threshold: float = 0.0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [numeric(inputs).type]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x = at(required(inputs), index)
        if x.dtype.is_float:
            above = call("lt", const(self.threshold, x.dtype), x, dtype=DType.BOOL)
        else:
            # x > t is x > floor(t) for integers; beyond the type it is always or never.
            low, high = x.dtype.limits
            whole = (
                max(min(math.floor(self.threshold), high), low - 1)
                if math.isfinite(self.threshold)
                else low - 1
                if self.threshold < 0
                else high  # nothing is above what is no number, either
            )
            above = (
                const(True, DType.BOOL)
                if whole < low
                else call("lt", const(whole, x.dtype), x, dtype=DType.BOOL)
            )
        return cast(above, x.dtype)

    @classmethod
    def samples(cls) -> list[Sample]:
        x = _draw(4, 3)
        whole = [x.astype(t) for t in (np.int64, np.int32)]
        for v in whole:
            v[0, :2] = np.iinfo(v.dtype).min, np.iinfo(v.dtype).max
        return [
            Sample((v,), {"threshold": t})
            for t in (0.0, 0.5, -1.25, 3e9, -3e9, float("inf"), float("-inf"))
            for v in (x, x.astype(np.float64), *whole)
        ]


@operator("FeatureVectorizer", domain="ai.onnx.ml")
class FeatureVectorizer(Operator):
    """Columns of all inputs side by side, as floats; those of more axes are the columns of a row."""

    inputdimensions: tuple[int, ...] = ()

    def infer(self, inputs: Inputs) -> list[TensorType]:
        values = [required(inputs, k) for k in range(len(inputs))]
        shapes = [_as_rows(v) for v in values]
        if any(v.type.rank == 0 or s[0] != shapes[0][0] for v, s in zip(values, shapes, strict=True)):
            raise OperatorError(f"inputs {', '.join(str(v.type) for v in values)} do not go side by side")
        if self.inputdimensions and self.inputdimensions != tuple(s[1] for s in shapes):
            raise OperatorError(
                f"inputdimensions {list(self.inputdimensions)} are not the columns of the inputs", "E202"
            )
        return [TensorType(DType.FLOAT32, (shapes[0][0], sum(s[1] for s in shapes)))]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        floats = [as_float(build, required(inputs, k)) for k in range(len(inputs))]
        rows = (v if v.type.rank == 2 else build(ReshapeTo(_as_rows(v)), v) for v in floats)
        return [build(Concat(1), *rows)]

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            Sample((_draw(2, 3), _draw(2, 2)), {"inputdimensions": (3, 2)}),
            Sample((_draw(2, 1, 3), _draw(2, 2, 2), _draw(2, 1)), {"inputdimensions": (3, 4, 1)}),
            Sample((_draw(3), _draw(2)), {"inputdimensions": (3, 2)}),
        ]


def _as_rows(v: Value) -> tuple[int, int]:
    return (1, v.shape[0]) if v.type.rank == 1 else (v.shape[0] if v.shape else 0, math.prod(v.shape[1:]))


@operator("ArrayFeatureExtractor", domain="ai.onnx.ml", strings=True)
class ArrayFeatureExtractor(Operator):
    """Elements of the last axis at given places; of a vector: as one row."""

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, places = required(inputs, 0), required(inputs, 1)
        if not x.shape:
            raise OperatorError(f"takes features on a last axis, not {x.type}")
        return [TensorType(x.dtype, (*(x.shape[:-1] or (1,)), places.type.elements))]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x, places = required(inputs, 0), required(inputs, 1)
        flat = build(ReshapeTo((places.type.elements,)), places)
        y = build(Gather(-1), x, flat)
        return [y if x.type.rank > 1 else build(ReshapeTo((1, *y.shape)), y)]

    @classmethod
    def samples(cls) -> list[Sample]:
        places = np.asarray([2, 0], np.int64)
        return [
            Sample((_draw(3, 4), places)),
            Sample((_draw(3, 4), places.reshape(1, 2)), {}, frozenset({1})),
            Sample((_draw(2, 2, 3), places)),
        ]
