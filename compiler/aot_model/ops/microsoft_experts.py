"""com.microsoft: mixtures of experts. Source: ONNX Runtime's contrib operators."""

from __future__ import annotations

import numpy as np

from aot_model.ir.operator import Inputs, OperatorError, Sample
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.ops.activation import Gelu, Swish
from aot_model.ops.composition import Algebra, Composition, present
from aot_model.ops.elementwise import Clip
from aot_model.ops.indexing import GatherElements
from aot_model.ops.microsoft_activation import drawn
from aot_model.ops.normalisation import scalar
from aot_model.ops.ordering import TopK
from aot_model.ops.registry import Build, axis_of, operator, required


@operator("MoE", domain="com.microsoft", inputs=8)
class MoE(Composition):
    """The weighted sum of the k experts that a router rates highest, each two dense layers with an activation
    between.

    Inputs: rows, ratings (rows, experts), weights and bias of the first layer, of the second, of the third
    (the other factor of SwiGLU). Every expert is computed for every row: which are chosen depends on data.
    """

    activation_alpha: float = 1.0
    activation_beta: float = 0.0
    activation_type: str = "relu"
    k: int = 1
    normalize_routing_weights: int = 0
    swiglu_fusion: int = 0
    swiglu_limit: float | None = None
    use_sparse_mixer: int = 0

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x, ratings = required(inputs, 0), required(inputs, 1)
        if self.use_sparse_mixer:
            raise OperatorError("a sparse mixer is not supported", "E202", "export the model without it")
        if ratings.type.rank != 2 or x.type.elements != ratings.shape[0] * x.shape[axis_of(x, -1)]:
            raise OperatorError(f"ratings {ratings.type} do not fit rows {x.type}")
        a, rows = Algebra(build), ratings.shape[0]
        flat = a.reshape(x, 1, rows, x.shape[-1])
        hidden = self._activated(a, self._layer(a, flat, inputs, 2), inputs, flat)
        y = self._layer(a, hidden, inputs, 4)
        weights = a.transpose(self._weights(a, ratings), 1, 0)
        weighted = a.mul(y, a.reshape(weights, *weights.shape, 1))
        return [a.reshape(a.reduced("ReduceSum", weighted, 0), *x.shape)]

    def _layer(self, a: Algebra, x: Value, inputs: Inputs, number: int) -> Value:
        """x (experts or 1, rows, columns) through the layer of each expert, whose weights are (experts,
        results, columns).
        """
        w, bias = required(inputs, number), present(inputs, number + 1)
        if w.type.rank != 3 or w.shape[2] != x.shape[2]:
            raise OperatorError(f"weights {w.type} of experts do not fit {x.shape[2]} columns")
        y = a.matmul(x, a.transpose(w, 0, 2, 1))
        return y if bias is None else a.add(y, a.reshape(bias, w.shape[0], 1, w.shape[1]))

    def _activated(self, a: Algebra, y: Value, inputs: Inputs, x: Value) -> Value:
        if self.activation_type == "swiglu":
            return self._gated(a, y, inputs, x)
        found = {
            "relu": lambda: a.of("Relu", y),
            "gelu": lambda: a(Gelu("tanh"), y),
            "silu": lambda: a(Swish(), y),
            "identity": lambda: y,
        }.get(self.activation_type)
        if found is None or present(inputs, 6) is not None:
            raise OperatorError(
                f"the activation '{self.activation_type}'{'' if found is None else ' with a third layer'} is "
                "not supported",
                "E202",
            )
        return found()

    def _gated(self, a: Algebra, y: Value, inputs: Inputs, x: Value) -> Value:
        """gate * sigmoid(alpha * gate) * (linear + beta); both are in y where the layers are fused."""
        half = y.shape[2] // 2
        if self.swiglu_fusion == 0:
            gate, linear = y, self._layer(a, x, inputs, 6)
        elif self.swiglu_fusion == 1:
            pairs = a.reshape(y, *y.shape[:2], half, 2)
            gate, linear = (a.reshape(a.cut(pairs, 3, k, k + 1), *y.shape[:2], half) for k in (0, 1))
        else:
            gate, linear = a.cut(y, 2, 0, half), a.cut(y, 2, half, 2 * half)
        if self.swiglu_limit is not None:
            low, high = (scalar(a.build, s * self.swiglu_limit, y.dtype) for s in (-1, 1))
            gate, linear = a(Clip(), gate, None, high), a(Clip(), linear, low, high)
        return a.mul(
            a(Swish(self.activation_alpha), gate),
            linear if self.activation_beta == 0 else a.add(linear, self.activation_beta),
        )

    def _weights(self, a: Algebra, ratings: Value) -> Value:
        """(rows, experts): what the chosen experts of each row count, 0 of the others."""
        rows, experts = ratings.shape
        if not 1 <= self.k <= experts:
            raise OperatorError(f"{self.k} of {experts} experts")
        values, chosen = a.build.many(TopK(), ratings, a.ints([self.k]))
        shares = (
            a.softmax(values)
            if self.normalize_routing_weights
            else a(GatherElements(1), a.softmax(ratings), chosen)
        )
        places = a.build.constant(np.arange(experts, dtype=np.int64).reshape(1, 1, experts))
        here = a.of("Equal", a.reshape(chosen, rows, self.k, 1), places)
        spread = a.of("Where", here, a.reshape(shares, rows, self.k, 1), scalar(a.build, 0, DType.FLOAT32))
        return a.reshape(a.reduced("ReduceSum", spread, 1), rows, experts)

    @classmethod
    def samples(cls) -> list[Sample]:
        x, ratings = drawn(1, 3, 8), drawn(2, 3, 4)
        first, wide, second = drawn(3, 4, 16, 8), drawn(4, 4, 32, 8), drawn(5, 4, 8, 16)
        b1, b2 = drawn(7, 4, 16), drawn(8, 4, 8)
        weights = frozenset(range(2, 8))
        each = [
            Sample(
                (x, ratings, first, b1, second, b2),
                {"k": k, "activation_type": t, "normalize_routing_weights": n},
                weights,
            )
            for k, t, n in ((1, "relu", 0), (2, "gelu", 1), (2, "silu", 0), (4, "identity", 1))
        ]
        gated = {
            "activation_type": "swiglu",
            "k": 2,
            "swiglu_fusion": 1,
            "activation_alpha": 1.7,
            "activation_beta": 1.0,
            "swiglu_limit": 1.5,
        }
        return [
            *each,
            Sample(
                (x.reshape(1, 3, 8), ratings, first, None, second),
                {"k": 2, "normalize_routing_weights": 1},
                weights,
            ),
            Sample((x, ratings, wide, drawn(9, 4, 32), second, b2), gated, weights),
        ]
