"""com.microsoft: activations, and additions fused before them. Source: ONNX Runtime's contrib operators."""

from __future__ import annotations

from dataclasses import fields

import numpy as np

from aot_model.ir.operator import Inputs, Operator, OperatorError, Sample
from aot_model.ir.values import Value
from aot_model.ops.activation import Elu, HardSigmoid, LeakyRelu, Selu, Swish, ThresholdedRelu
from aot_model.ops.activation import Gelu as OnnxGelu
from aot_model.ops.composition import Algebra, Composition, present
from aot_model.ops.elementwise import Clip, op
from aot_model.ops.normalisation import scalar
from aot_model.ops.registry import Build, operator, required


def drawn(seed: int, *shape: int, most: float = 2) -> np.ndarray:
    """Numbers in [-most, most), for samples."""
    return np.asarray(np.random.default_rng(seed).uniform(-most, most, shape), dtype=np.float32)


def activated(build: Build, x: Value, name: str, *numbers: float | None) -> Value:
    """x through the activation that a fused operator names. numbers: its parameters, ONNX's defaults where
    they are None.
    """
    if name == "":
        return x
    if name in ("Relu", "Tanh", "Sigmoid", "HardSwish", "Softplus", "Softsign"):
        return build(op(name), x)
    if name == "Clip":
        low, high = (None if v is None else scalar(build, v, x.dtype) for v in (*numbers, None, None)[:2])
        return build(Clip(), x, low, high)
    known = [v for v in numbers if v is not None]
    if name in ("Affine", "ScaledTanh") and len(known) == 2:  # of recurrent layers, which give both
        a, (alpha, beta) = Algebra(build), known
        if name == "Affine":
            return a.add(a.mul(x, alpha), beta)
        return a.mul(a.of("Tanh", a.mul(x, beta)), alpha)
    cls = _WITH_NUMBERS.get(name)
    if cls is None:
        raise OperatorError(
            f"the activation '{name}' is not supported", "E202", "optimise the model without fusing it"
        )
    given = [f.default if v is None else v for f, v in zip(fields(cls), (*numbers, None, None), strict=False)]
    return build(cls(*given), x)


_WITH_NUMBERS: dict[str, type[Operator]] = {
    c.name: c for c in (LeakyRelu, Elu, HardSigmoid, Selu, ThresholdedRelu)
}


@operator("Gelu", domain="com.microsoft", inputs=1)
class Gelu(Composition):
    """x / 2 * (1 + erf(x / sqrt 2))."""

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        return [build(OnnxGelu(), required(inputs))]

    @classmethod
    def samples(cls) -> list[Sample]:
        return [Sample((drawn(1, 3, 5, most=4),)), Sample((drawn(2, 7),))]


@operator("BiasGelu", domain="com.microsoft", inputs=2)
class BiasGelu(Composition):
    """gelu(x + bias), one bias for each element of the last axis."""

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        return [build(OnnxGelu(), Algebra(build).add(required(inputs), required(inputs, 1)))]

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            Sample((drawn(1, 3, 5), drawn(2, 5)), constants=frozenset({1})),
            Sample((drawn(3, 2, 2, 4), drawn(4, 4))),
        ]


@operator("FastGelu", domain="com.microsoft", inputs=2)
class FastGelu(Composition):
    """The approximation of gelu(x + bias) by tanh; the bias is optional."""

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        return [build(OnnxGelu("tanh"), Algebra(build).add(required(inputs), present(inputs, 1)))]

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            Sample((drawn(1, 3, 5, most=4),)),
            Sample((drawn(3, 2, 6), drawn(4, 6)), constants=frozenset({1})),
        ]


@operator("QuickGelu", domain="com.microsoft", inputs=1)
class QuickGelu(Composition):
    """x * sigmoid(alpha * x)."""

    alpha: float = 1.702

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        return [build(Swish(self.alpha), required(inputs))]

    @classmethod
    def samples(cls) -> list[Sample]:
        return [Sample((drawn(1, 3, 5, most=4),)), Sample((drawn(1, 3, 5, most=4),), {"alpha": 1.0})]
