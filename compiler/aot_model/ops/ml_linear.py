"""Linear models of ai.onnx.ml: a matrix product. Source: ONNX-ML operator specification."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from aot_model.ir.operator import Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.elementwise import op
from aot_model.ops.ml_scores import as_float, label_type, labels, matrix, transformed
from aot_model.ops.movement import Concat
from aot_model.ops.registry import OPERATORS, Build, operator, required


def affine(build: Build, x: Value, rows: np.ndarray, offsets: Sequence[float]) -> Value:
    """x[samples, features] times rows[results, features], plus offsets (none: nothing is added)."""
    y = build(OPERATORS["", "MatMul"](), as_float(build, x), build.constant(rows.T, DType.FLOAT32))
    return build(op("Add"), y, build.constant(offsets, DType.FLOAT32)) if len(offsets) else y


def _rows(coefficients: Sequence[float], count: int, features: int) -> np.ndarray:
    if len(coefficients) != count * features:
        raise OperatorError(f"{len(coefficients)} coefficients for {count} results of {features} features")
    return np.asarray(coefficients, np.float32).reshape(count, features)


@operator("LinearRegressor", domain="ai.onnx.ml")
class LinearRegressor(Operator):
    """x times coefficients, plus intercepts."""

    coefficients: tuple[float, ...] = ()
    intercepts: tuple[float, ...] = ()
    post_transform: str = "NONE"
    targets: int = 1

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = matrix(inputs)
        _rows(self.coefficients, self.targets, x.shape[1])
        if len(self.intercepts) not in (0, self.targets):
            raise OperatorError(f"{len(self.intercepts)} intercepts for {self.targets} targets")
        return [TensorType(DType.FLOAT32, (x.shape[0], self.targets))]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x = required(inputs)
        return [
            transformed(
                build,
                affine(build, x, _rows(self.coefficients, self.targets, x.shape[1]), self.intercepts),
                self.post_transform,
            )
        ]

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.asarray(np.random.default_rng(5).uniform(-2, 2, (4, 3)), np.float32)
        one: dict[str, Any] = {"coefficients": (0.5, -1.0, 2.0), "intercepts": (0.25,)}
        two: dict[str, Any] = {"coefficients": (0.5, -1.0, 2.0, 0.1, 0.2, 0.3), "targets": 2}
        return [Sample((x,), one), Sample((x,), two), Sample((x,), {**two, "post_transform": "SOFTMAX"})]


@operator("LinearClassifier", domain="ai.onnx.ml")
class LinearClassifier(Operator):
    """The class with the highest score, and the scores. One score for two classes: that of the second."""

    classlabels_ints: tuple[int, ...] = ()
    classlabels_strings: tuple[str, ...] = ()
    coefficients: tuple[float, ...] = ()
    intercepts: tuple[float, ...] = ()
    multi_class: int = 0
    post_transform: str = "NONE"
    string_type: DType = DType.STRING64

    def _scores(self, x: Value) -> int:
        """Number of scores that are computed."""
        classes = len(self.classlabels_ints or self.classlabels_strings)
        count = len(self.coefficients) // max(x.shape[1], 1)
        if (
            len(self.coefficients) != count * x.shape[1]
            or (count != classes and (count, classes) != (1, 2))
            or len(self.intercepts) not in (0, count)
        ):
            raise OperatorError(
                f"{len(self.coefficients)} coefficients and {len(self.intercepts)} intercepts for {classes} "
                f"classes of {x.type}"
            )
        if count == 1 and self.post_transform == "PROBIT":
            raise OperatorError("post_transform PROBIT of one score is not defined", "E202")
        return count

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = matrix(inputs)
        dtype = label_type(self.classlabels_ints, self.classlabels_strings, self.string_type)
        self._scores(x)
        return [
            TensorType(dtype, x.shape[:1]),
            TensorType(DType.FLOAT32, (x.shape[0], len(self.classlabels_ints or self.classlabels_strings))),
        ]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x = required(inputs)
        count = self._scores(x)
        scores = affine(build, x, _rows(self.coefficients, count, x.shape[1]), self.intercepts)
        if count == 1 and len(self.classlabels_ints or self.classlabels_strings) == 2:
            signed = build(Concat(1), build(op("Neg"), scores), scores)
            label = labels(build, signed, self.classlabels_ints, self.classlabels_strings, self.string_type)
            if self.post_transform == "LOGISTIC":
                return [label, transformed(build, signed, "LOGISTIC")]
            return [
                label,
                build(Concat(1), build(op("Sub"), build.constant(1, DType.FLOAT32), scores), scores),
            ]
        label = labels(build, scores, self.classlabels_ints, self.classlabels_strings, self.string_type)
        return [label, transformed(build, scores, self.post_transform)]

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.asarray([[0.5, -1.0], [2.0, 0.25], [-1.5, 1.0], [0.0, 0.0]], np.float32)
        three: dict[str, Any] = {
            "coefficients": (0.5, -1.0, 2.0, 0.1, -0.2, 0.3),
            "intercepts": (0.5, 0.0, -0.25),
        }
        one: dict[str, Any] = {"coefficients": (0.5, -1.0), "intercepts": (0.125,)}
        forms = [
            {**three, "classlabels_ints": (4, -2, 7), "post_transform": p}
            for p in ("NONE", "LOGISTIC", "SOFTMAX", "SOFTMAX_ZERO")
        ]
        forms += [
            {**one, "classlabels_strings": ("no", "yes"), "post_transform": p} for p in ("NONE", "LOGISTIC")
        ]
        two = {"coefficients": (0.5, -1.0, 2.0, 0.1), "intercepts": (0.5, -0.25)}
        forms += [
            {**three, "classlabels_strings": ("red", "grün", "blue")},
            {**two, "classlabels_ints": (3, 8)},
        ]
        return [Sample((x,), f, outputs=2) for f in forms]
