"""From scores to labels and probabilities: what linear models, trees and support vector machines of
ai.onnx.ml share.

Source: ONNX-ML operator specification; where it is silent (two classes with one score), ONNX Runtime.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from aot_model.ir.expr import Expr, Index, call, const, select
from aot_model.ir.operator import Arrays, At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.conversion import Cast
from aot_model.ops.elementwise import Where, op
from aot_model.ops.lookup import slots
from aot_model.ops.movement import Gather
from aot_model.ops.normalisation import Softmax, reduction
from aot_model.ops.ordering import ArgMax
from aot_model.ops.registry import Build, operator, required


def as_float(build: Build, x: Value) -> Value:
    return x if x.dtype is DType.FLOAT32 else build(Cast(DType.FLOAT32), x)


def matrix(inputs: Inputs) -> Value:
    """The input as [samples, features]."""
    x = required(inputs)
    if x.type.rank != 2:
        raise OperatorError(f"takes [samples, features], not {x.type}", "E202")
    return x


def label_type(integers: Sequence[int], strings: Sequence[str], string_type: DType) -> DType:
    """Element type of labels of which one list is given."""
    if bool(integers) == bool(strings):
        raise OperatorError("has not exactly one list of class labels")
    return string_type if strings else DType.INT64


def labels(
    build: Build, scores: Value, integers: Sequence[int], strings: Sequence[str], string_type: DType
) -> Value:
    """The label of the class with the highest score, the first of equals, for each row."""
    table = build.constant(slots(strings, string_type)) if strings else build.constant(integers, DType.INT64)
    return build(Gather(0), table, build(ArgMax(1, 0), scores))


@operator("Probit", domain="aot", elementwise=True)
class Probit(Operator):
    """The quantile of the normal distribution, by Winitzki's approximation of the inverse error function
    (2008).
    """

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [required(inputs).type]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        def c(value: float) -> Expr:
            return const(value, DType.FLOAT32)

        x = call("sub", call("mul", c(2), at(required(inputs), index)), c(1))
        log = call("log", call("mul", call("sub", c(1), x), call("add", c(1), x)))
        v = call("add", c(2 / (math.pi * 0.147)), call("mul", c(0.5), log))
        root = call("sqrt", call("sub", call("mul", v, v), call("mul", c(1 / 0.147), log)))
        size = call("sqrt", call("sub", root, v))
        signed = select(call("lt", x, c(0), dtype=DType.BOOL), call("neg", size), size)
        return call("mul", c(math.sqrt(2)), signed)

    @classmethod
    def samples(cls) -> list[Sample]:
        # At 0.5 it is the root of a difference of equals: where floats are wider (x87), of their rounding.
        x = np.asarray([0.01, 0.2, 0.5, 0.62, 0.99, 0.9], np.float32)
        return [Sample((x,), tolerance=5e-4)]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x = 2 * np.asarray(arrays[0], np.float64) - 1
        log = np.log(1 - x * x)
        half = 2 / (np.pi * 0.147) + log / 2
        return [(np.sqrt(2) * np.sign(x) * np.sqrt(np.sqrt(half**2 - log / 0.147) - half)).astype(np.float32)]


def transformed(build: Build, scores: Value, transform: str) -> Value:
    """Scores [samples, classes] after the post_transform."""
    if transform == "NONE":
        return scores
    if scores.shape[1] == 1 and transform != "PROBIT":
        raise OperatorError(
            f"post_transform {transform} of one score: the standard says it, ONNX Runtime does without",
            "E202",
            "set it to NONE, and add a node for what is wanted",
        )
    if transform == "LOGISTIC":
        return build(op("LibmSigmoid"), scores)
    if transform == "SOFTMAX":
        return build(Softmax(1), scores)
    if transform == "SOFTMAX_ZERO":
        return _softmax_zero(build, scores)
    if transform == "PROBIT":
        return build(Probit(), scores)
    raise OperatorError(f"post_transform is '{transform}'")


def _softmax_zero(build: Build, scores: Value) -> Value:
    """Softmax over the scores that are not 0."""
    most = reduction("ReduceMax", build, scores, (1,))
    counts = build(op("Greater"), build(op("Abs"), scores), build.constant(1e-7, DType.FLOAT32))
    powers = build(op("Exp"), build(op("Sub"), scores, most))
    total = reduction(
        "ReduceSum", build, build(Where(), counts, powers, build.constant(0, DType.FLOAT32)), (1,)
    )
    rest = build(op("Mul"), scores, build(op("Exp"), build(op("Neg"), most)))
    return build(op("Div"), build(Where(), counts, powers, rest), total)
