"""Support vector machines of ai.onnx.ml: kernel functions of all support vectors, then matrix products.

Source: ONNX-ML operator specification and its reference evaluator; probabilities after Wu, Lin and Weng,
"Probability estimates for multi-class classification by pairwise coupling" (2004), as libsvm has them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from aot_model.c.text import CText, block
from aot_model.ir.operator import Arrays, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.kernels.arguments import Argument, written
from aot_model.kernels.base import Scratch
from aot_model.kernels.site import Site
from aot_model.ops.conversion import Cast
from aot_model.ops.elementwise import op
from aot_model.ops.ml_linear import affine
from aot_model.ops.ml_scores import as_float, label_type, labels, matrix, transformed
from aot_model.ops.movement import Concat
from aot_model.ops.registry import OPERATORS, Build, operator, ranked, required
from aot_model.ops.views import ReshapeTo


@dataclass(frozen=True)
class _Machine(Operator):
    """What both operators have: support vectors, and the function that compares them with a sample."""

    coefficients: tuple[float, ...] = ()
    kernel_params: tuple[float, ...] = ()
    kernel_type: str = "LINEAR"
    post_transform: str = "NONE"
    rho: tuple[float, ...] = ()
    support_vectors: tuple[float, ...] = ()

    def vectors(self, features: int, count: int) -> np.ndarray:
        """[vectors, features]"""
        if (
            count < 0
            or len(self.support_vectors) != count * features
            or len(self.kernel_params) not in (0, 3)
        ):
            raise OperatorError(
                f"{len(self.support_vectors)} values of support vectors for {count} of {features} features"
            )
        if self.kernel_type not in ("LINEAR", "POLY", "RBF", "SIGMOID"):
            raise OperatorError(f"kernel_type is '{self.kernel_type}'")
        if self.kernel_type != "LINEAR" and not self.kernel_params:
            raise OperatorError(f"kernel_type {self.kernel_type} without kernel_params")
        return np.asarray(self.support_vectors, np.float32).reshape(count, features)

    def compared(self, build: Build, x: Value, vectors: np.ndarray) -> Value:
        """The kernel function of each sample and vector."""
        gamma, offset, degree = self.kernel_params or (0.0, 0.0, 0.0)
        x = as_float(build, x)

        def c(value: float) -> Value:
            return build.constant(value, DType.FLOAT32)

        if self.kernel_type == "RBF":
            apart = build(
                op("Sub"), build(ReshapeTo((x.shape[0], 1, x.shape[1])), x), build.constant(vectors)
            )
            distance = build(
                OPERATORS["", "ReduceSumSquare"](keepdims=0),  # type: ignore[call-arg]
                apart,
                build.constant([2], DType.INT64),
            )
            return build(op("Exp"), build(op("Mul"), distance, c(-gamma)))
        product = affine(build, x, vectors, ())
        if self.kernel_type == "LINEAR":
            return product
        scaled = build(op("Add"), build(op("Mul"), product, c(gamma)), c(offset))
        return (
            build(op("Pow"), scaled, c(float(int(degree))))
            if self.kernel_type == "POLY"
            else build(op("Tanh"), scaled)
        )


@operator("SVMRegressor", domain="ai.onnx.ml")
class SVMRegressor(_Machine):
    """Sum of the kernel functions times coefficients, plus rho; one_class: its sign. Without support vectors:
    linear.
    """

    n_supports: int = 0
    one_class: int = 0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = matrix(inputs)
        self.vectors(x.shape[1], self.n_supports)
        if len(self.coefficients) != (self.n_supports or x.shape[1]) or len(self.rho) != 1:
            raise OperatorError(
                f"{len(self.coefficients)} coefficients and {len(self.rho)} values of rho for {x.type}"
            )
        if self.post_transform == "PROBIT":
            raise OperatorError("post_transform PROBIT of one score is not defined", "E202")
        return [TensorType(DType.FLOAT32, (x.shape[0], 1))]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x = required(inputs)
        values = self.compared(build, x, self.vectors(x.shape[1], self.n_supports)) if self.n_supports else x
        y = affine(build, values, np.asarray([self.coefficients], np.float32), self.rho)
        if self.one_class:
            inside = build(Cast(DType.FLOAT32), build(op("Greater"), y, build.constant(0, DType.FLOAT32)))
            return [affine(build, inside, np.asarray([[2]], np.float32), (-1.0,))]
        return [transformed(build, y, self.post_transform)]

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.asarray(np.random.default_rng(2).uniform(-1, 1, (4, 2)), np.float32)
        some: dict[str, Any] = {
            "coefficients": (0.5, -1.0, 0.75),
            "n_supports": 3,
            "rho": (0.1,),
            "support_vectors": (0.1, 0.9, -0.5, 0.5, 1.0, -1.0),
        }
        kinds = [
            {"kernel_type": k, "kernel_params": (0.7, 0.2, 3.0)} for k in ("LINEAR", "POLY", "RBF", "SIGMOID")
        ]
        return [
            *(Sample((x,), {**some, **k}) for k in kinds),
            Sample((x,), {**some, **kinds[2], "one_class": 1}),
            Sample((x,), {"coefficients": (0.5, -1.0), "rho": (0.25,)}),
        ]


@operator("SVMClassifier", domain="ai.onnx.ml")
class SVMClassifier(_Machine):
    """Each pair of classes votes for one of them; the scores are those of the pairs, or probabilities of the
    classes.

    Without support vectors: a linear score for each class.
    """

    classlabels_ints: tuple[int, ...] = ()
    classlabels_strings: tuple[str, ...] = ()
    prob_a: tuple[float, ...] = ()
    prob_b: tuple[float, ...] = ()
    vectors_per_class: tuple[int, ...] = ()
    string_type: DType = DType.STRING64

    @property
    def _classes(self) -> int:
        return len(self.classlabels_ints or self.classlabels_strings)

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = matrix(inputs)
        dtype = label_type(self.classlabels_ints, self.classlabels_strings, self.string_type)
        n, total = self._classes, sum(self.vectors_per_class)
        if any(count < 0 for count in self.vectors_per_class):
            raise OperatorError(f"vectors_per_class {list(self.vectors_per_class)} has a negative number")
        if not total:
            if len(self.coefficients) != n * x.shape[1] or not self.rho:
                raise OperatorError(f"{len(self.coefficients)} coefficients for {n} classes of {x.type}")
            return [TensorType(dtype, x.shape[:1]), TensorType(DType.FLOAT32, (x.shape[0], n))]
        pairs = n * (n - 1) // 2
        self.vectors(x.shape[1], total)
        counts = (
            len(self.vectors_per_class),
            len(self.coefficients),
            len(self.rho),
            len(self.prob_a),
            len(self.prob_b),
        )
        if n < 2 or counts[:3] != (n, (n - 1) * total, pairs) or counts[3:] not in ((0, 0), (pairs, pairs)):
            raise OperatorError(f"the lists do not fit {n} classes and {total} support vectors")
        columns = n if self.prob_a or n == 2 else pairs
        return [TensorType(dtype, x.shape[:1]), TensorType(DType.FLOAT32, (x.shape[0], columns))]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x, n, total = required(inputs), self._classes, sum(self.vectors_per_class)
        names = self.classlabels_ints, self.classlabels_strings, self.string_type
        if not total:
            scores = affine(
                build, x, np.asarray(self.coefficients, np.float32).reshape(n, -1), self.rho[:1] * n
            )
            return [labels(build, scores, *names), transformed(build, scores, self.post_transform)]
        compared = self.compared(build, x, self.vectors(x.shape[1], total))
        decisions = affine(build, compared, self._pairs(total), self.rho)
        label = labels(build, self._votes(build, decisions), *names)
        if self.prob_a:
            logits = build(
                op("Add"),
                build(op("Mul"), decisions, build.constant(self.prob_a, DType.FLOAT32)),
                build.constant(self.prob_b, DType.FLOAT32),
            )
            scores = build(PairwiseCoupling(n), build(op("LibmSigmoid"), build(op("Neg"), logits)))
        else:
            scores = build(Concat(1), build(op("Neg"), decisions), decisions) if n == 2 else decisions
        return [label, transformed(build, scores, self.post_transform)]

    def _pairs(self, total: int) -> np.ndarray:
        """[pairs, vectors]: the coefficients of the vectors of the two classes of each pair, 0 for all
        others.
        """
        table = np.asarray(self.coefficients, np.float32).reshape(-1, total)
        begins = np.cumsum([0, *self.vectors_per_class])
        rows = []
        for i, j in combinations(range(self._classes), 2):
            row = np.zeros(total, np.float32)
            row[begins[i] : begins[i + 1]] = table[j - 1, begins[i] : begins[i + 1]]
            row[begins[j] : begins[j + 1]] = table[i, begins[j] : begins[j + 1]]
            rows.append(row)
        return np.stack(rows)

    def _votes(self, build: Build, decisions: Value) -> Value:
        """[samples, classes]: a pair votes for its first class where its decision is above 0."""
        first = build(Cast(DType.FLOAT32), build(op("Greater"), decisions, build.constant(0, DType.FLOAT32)))
        gain = np.zeros((self._classes, decisions.shape[1]), np.float32)
        least = np.zeros(self._classes, np.float32)
        for k, (i, j) in enumerate(combinations(range(self._classes), 2)):
            gain[i, k], gain[j, k] = 1, -1
            least[j] += 1
        return affine(build, first, gain, least.tolist())

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.asarray(np.random.default_rng(4).uniform(-1, 1, (5, 2)), np.float32)
        vectors = (0.1, 0.9, -0.5, 0.5, 1.0, -1.0, 0.3, -0.2)
        two: dict[str, Any] = {
            "coefficients": (0.5, 1.0, -0.75, -0.5),
            "rho": (0.05,),
            "vectors_per_class": (2, 2),
            "support_vectors": vectors,
            "classlabels_ints": (3, 8),
        }
        three: dict[str, Any] = {
            "coefficients": (0.5, 1.0, -0.75, -0.5, 0.25, -1.0, 0.5, -0.125),
            "rho": (0.05, -0.1, 0.02),
            "vectors_per_class": (2, 1, 1),
            "support_vectors": vectors,
            "classlabels_strings": ("a", "b", "c"),
        }
        rbf = {"kernel_type": "RBF", "kernel_params": (0.8, 0.0, 0.0)}
        odds = {"prob_a": (-1.0, -0.5, -2.0), "prob_b": (0.1, 0.0, -0.2)}
        forms = [
            two,
            three,
            {**two, **rbf, "prob_a": (-1.5,), "prob_b": (0.1,)},
            {**three, **rbf},
            {**three, **rbf, **odds},
        ]
        forms.append({"coefficients": (0.5, -1.0, 0.25, 0.75), "rho": (0.1,), "classlabels_ints": (4, 6)})
        pairs = np.random.default_rng(58).uniform(-1, 1, 12 + 6).round(3)  # no class wins against all
        forms.append(
            {
                "coefficients": tuple(pairs[:12].tolist()),
                "rho": tuple(pairs[12:].tolist()),
                "vectors_per_class": (1, 1, 1, 1),
                "support_vectors": vectors,
                "classlabels_ints": (7, 5, 6, 4),
            }
        )
        return [Sample((x,), f, outputs=2) for f in forms]


@operator("PairwiseCoupling", domain="aot", stores_itself=True)
class PairwiseCoupling(Operator):
    """Probabilities of classes from those of the first of each pair."""

    classes: int

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [TensorType(DType.FLOAT32, (ranked(required(inputs), 2).shape[0], self.classes))]

    def lower(self, site: Site) -> None:
        x, n = site.input(0), self.classes
        text = CText()
        with text.loop("s", str(x.shape[0])):
            text.line(f"couple_pairs(x + s * {x.shape[1]}, {n}, work, work + {n * n}, y + s * {n});")
        scratch = Argument("work", Scratch("work", 4 * (n * n + n), 4, "float"))
        site.call(
            "pairwise_coupling",
            block(text),
            [Argument("x", x), scratch, written("y", site.node.outputs[0])],
            helpers=(_COUPLE,),
            includes={"math.h"},
        )

    @classmethod
    def samples(cls) -> list[Sample]:
        wins = np.asarray([[0.7, 0.6, 0.4], [0.9, 0.2, 0.1], [0.5, 0.5, 0.5], [0.999, 0.01, 0.3]], np.float32)
        return [
            Sample((wins,), {"classes": 3}, tolerance=1e-3),
            Sample((np.asarray([[0.2], [0.85]], np.float32),), {"classes": 2}, tolerance=1e-3),
        ]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        results = []
        for row in np.asarray(arrays[0], np.float64):
            r = np.zeros((self.classes, self.classes))
            r[np.triu_indices(self.classes, 1)] = row
            r += np.tril(1 - r.T, -1)
            q = -r.T * r
            np.fill_diagonal(q, (r.T**2).sum(axis=1) - np.diag(r) ** 2)
            # The minimum of p' q p with sum 1, as a linear system (Wu, Lin and Weng 2004).
            system = np.block(
                [[q, np.ones((self.classes, 1))], [np.ones((1, self.classes)), np.zeros((1, 1))]]
            )
            results.append(np.linalg.solve(system, np.append(np.zeros(self.classes), 1))[: self.classes])
        return [np.asarray(results, np.float32)]


_COUPLE = """\
/* Minimise the sum over pairs of (r_ji p_i - r_ij p_j)^2, sum of p = 1; pairs: r_ij for i < j. q: n * n, qp: n values of work. */
AOT_MODEL_OPAQUE static void couple_pairs(const float *pairs, int32_t n, float *q, float *qp, float *p)
{
    int32_t pair = 0;

    for (int32_t i = 0; i < n; i++) {
        q[i * n + i] = 0.0f;
        p[i] = 1.0f / (float)n;
    }
    for (int32_t i = 0; i < n; i++) {
        for (int32_t j = i + 1; j < n; j++) {
            const float first = fminf(fmaxf(pairs[pair], 1e-7f), 1.0f - 1e-7f);
            const float second = 1.0f - first;
            q[i * n + i] += second * second;
            q[j * n + j] += first * first;
            q[i * n + j] = -second * first;
            q[j * n + i] = -second * first;
            ++pair;
        }
    }
    for (int32_t turn = 0; turn < (n > 100 ? n : 100); turn++) {
        float total = 0.0f;
        float worst = 0.0f;
        for (int32_t i = 0; i < n; i++) {
            qp[i] = 0.0f;
            for (int32_t j = 0; j < n; j++) {
                qp[i] += q[i * n + j] * p[j];
            }
            total += p[i] * qp[i];
        }
        for (int32_t i = 0; i < n; i++) {
            worst = fmaxf(worst, fabsf(qp[i] - total));
        }
        if (worst < 0.005f / (float)n) {
            break;
        }
        for (int32_t i = 0; i < n; i++) {
            const float step = (total - qp[i]) / q[i * n + i];
            const float scale = 1.0f + step;
            p[i] += step;
            total = (total + step * (step * q[i * n + i] + 2.0f * qp[i])) / (scale * scale);
            for (int32_t j = 0; j < n; j++) {
                qp[j] = (qp[j] + step * q[i * n + j]) / scale;
                p[j] /= scale;
            }
        }
    }
}"""  # noqa: E501
