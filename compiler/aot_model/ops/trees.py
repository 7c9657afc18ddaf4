"""Decision trees of ai.onnx.ml: all trees as tables of nodes in flash, one loop that walks them.

Source: ONNX-ML operator specification (TreeEnsembleClassifier and TreeEnsembleRegressor 1 to 4).
"""

from __future__ import annotations

import operator as o
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from aot_model.c.literal import float_literal
from aot_model.c.text import CText, block
from aot_model.ir.admissible import ANYTHING, Range, Ranges
from aot_model.ir.operator import Arrays, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.kernels.arguments import Argument, written
from aot_model.kernels.base import Packed, Scratch
from aot_model.kernels.site import Site
from aot_model.ops.conversion import Cast
from aot_model.ops.elementwise import op
from aot_model.ops.forest import COMPARE, LEAF, Forest, always_voted, forest_of, is_balance, sorted_forest
from aot_model.ops.ml_scores import label_type, labels, matrix, transformed
from aot_model.ops.movement import Concat
from aot_model.ops.registry import Build, operator, required

AGGREGATES = ("AVERAGE", "SUM", "MIN", "MAX")


@operator("TreeSums", domain="aot", stores_itself=True)
class TreeSums(Operator):
    """Sums (averages, extremes) of the votes of the leaves that a sample reaches, for each target."""

    forest: Forest
    targets: int
    aggregate: str = "SUM"
    base: tuple[float, ...] = ()

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, forest = matrix(inputs), self.forest
        # The generated code reads and writes as far as these lists go.
        if {len(forest.threshold), len(forest.missing)} != {len(forest.mode)}:
            raise OperatorError("the lists of nodes have different lengths")
        if len(self.base) not in (0, self.targets):
            raise OperatorError(f"{len(self.base)} base values for {self.targets} targets")
        if not all(
            0 <= f < x.shape[1] for f, mode in zip(forest.feature, forest.mode, strict=True) if mode != LEAF
        ):
            raise OperatorError(f"a node reads a feature that {x.type} does not have")
        if not all(0 <= k < self.targets for k in forest.target):
            raise OperatorError(f"a leaf votes for another than the {self.targets} targets")
        return [TensorType(x.dtype, (x.shape[0], self.targets))]

    def lower(self, site: Site) -> None:
        x = site.input(0)
        forest = sorted_forest(self.forest)
        dtype, c_type = x.dtype.numpy, x.dtype.c_type
        branches = sorted({m for m in forest.mode if m != LEAF})
        begins = np.cumsum([0, *(len(v) for v in forest.votes)]).astype(np.int32)
        order = [p for v in forest.votes for p in v]
        child = np.stack([np.asarray(forest.yes), np.asarray(forest.no)], 1).astype(np.int32)
        last = len(forest.mode) - 1
        tables: dict[str, np.ndarray] = {
            "feature": np.asarray(
                [-1 if m == LEAF else f for f, m in zip(forest.feature, forest.mode, strict=True)], np.int32
            ),
            "threshold": np.asarray(forest.threshold, dtype),
            "child": child,
            "roots": np.asarray(forest.roots, np.int32),
            "votes": begins,
            "target": np.asarray([forest.target[p] for p in order] or [0], np.int32),
            "weight": np.asarray([forest.weight[p] for p in order] or [0], dtype),
        }
        if len(branches) > 1:
            tables["mode"] = np.asarray(
                [branches.index(m) if m != LEAF else 0 for m in forest.mode], np.uint8
            )
        if any(forest.missing):
            tables["missing"] = np.asarray(forest.missing, np.uint8)
        # Children lie behind their parents, so that a walk ends; the last node is a leaf.
        admissible: dict[str, Ranges] = {
            "feature": (Range(-1, x.shape[1] - 1), Range(-1, -1, last)),
            "child": tuple(Range(1, last, k, 2, last, 1) for k in range(2)),
            "roots": (Range(0, last),),
            "votes": (Range(0, len(order)),),
            "target": (Range(0, self.targets - 1),),
            "mode": ANYTHING,
            "missing": ANYTHING,
        }
        text = CText()
        extreme = self.aggregate in ("MIN", "MAX")
        with text.loop("n", str(x.shape[0])):
            text.line(f"const {c_type} *const row = x + n * {x.shape[1]};")
            text.line(f"{c_type} *const out = y + n * {self.targets};")
            if extreme:
                text.line(f"memset(seen, 0, {self.targets}u);")
            text.line(f"memset(out, 0, {self.targets * x.dtype.size}u);")
            with text.loop("t", str(len(forest.roots))):
                text.line("int32_t node = roots[t];")
                with text.block("while (feature[node] >= 0)"):
                    text.line(f"const {c_type} v = row[feature[node]];")
                    text.line(f"const {c_type} limit = threshold[node];")
                    tests = [f"v {COMPARE[m]} limit" for m in branches]
                    test = tests[0] if tests else "true"
                    for k, other in list(enumerate(tests))[1:]:
                        test = f"mode[node] == {k} ? {other} : {test}"
                    gone = " || (isnan(v) != 0 && missing[node] != 0)" if any(forest.missing) else ""
                    text.line(f"node = child[2 * node + (({test}){gone} ? 0 : 1)];")
                with text.block("for (int32_t k = votes[node]; k < votes[node + 1]; k++)"):
                    if extreme:
                        sign = "<" if self.aggregate == "MIN" else ">"
                        text.line(
                            f"out[target[k]] = (seen[target[k]] == 0 || weight[k] {sign} out[target[k]]) ? "
                            "weight[k] : out[target[k]];"
                        )
                        text.line("seen[target[k]] = 1;")
                    else:
                        text.line("out[target[k]] += weight[k];")
            if self.aggregate == "AVERAGE":
                with text.loop("k", str(self.targets)):
                    text.line(f"out[k] /= {float_literal(len(forest.roots), x.dtype)};")
            for k, value in enumerate(self.base):
                if value:
                    text.line(f"out[{k}] += {float_literal(value, x.dtype)};")
        arguments = [
            Argument("x", x),
            *(Argument(k, Packed(k, v, v.itemsize, admissible.get(k))) for k, v in tables.items()),
            written("y", site.node.outputs[0]),
        ]
        if extreme:
            arguments.append(Argument("seen", Scratch("seen", self.targets, 1, "uint8_t")))
        note = f"{len(forest.roots)} trees, {len(forest.feature)} nodes"
        site.call("trees", block(text), arguments, includes={"string.h"}, note=note)

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.asarray([[0.2, -1, 5], [0.5, 0, 2], [np.nan, 3, 2], [2, 2, np.nan]], np.float32)
        modes = ("BRANCH_LEQ", "BRANCH_GT", LEAF, LEAF, LEAF, "BRANCH_EQ", LEAF, LEAF)
        forest = Forest(
            (0, 1, 0, 0, 0, 2, 0, 0),
            (0.5, 0.0, 0, 0, 0, 2.0, 0, 0),
            (1, 2, 0, 0, 0, 6, 0, 0),
            (4, 3, 0, 0, 0, 7, 0, 0),
            modes,
            (1, 0, 0, 0, 0, 0, 0, 0),
            (0, 5),
            ((), (), (0,), (1, 2), (3,), (), (4,), (5,)),
            (0, 1, 0, 1, 0, 1),
            (1.0, 2.5, -3.0, 4.0, 0.25, -7.0),
        )
        plain = replace(forest, missing=(0,) * 8)
        kinds: list[dict[str, Any]] = [{"aggregate": a} for a in AGGREGATES] + [
            {"base": (0.5, -2.0)},
            {"aggregate": "AVERAGE", "base": (1.0, 0.0)},
        ]
        return [Sample((x,), {"forest": f, "targets": 2, **k}) for f in (forest, plain) for k in kinds] + [
            Sample((x.astype(np.float64),), {"forest": forest, "targets": 3})
        ]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x, forest = np.asarray(arrays[0]), self.forest
        decide: dict[str, Callable[[Any, Any], Any]] = dict(
            zip(COMPARE, (o.le, o.lt, o.ge, o.gt, o.eq, o.ne), strict=True)
        )
        y = np.zeros((len(x), self.targets))
        for row, out in zip(x, y, strict=True):
            votes: list[list[float]] = [[] for _ in out]
            for node in forest.roots:
                while forest.mode[node] != LEAF:
                    value = row[forest.feature[node]]
                    taken = (
                        bool(forest.missing[node])
                        if np.isnan(value) and forest.mode[node] != "BRANCH_NEQ"
                        else decide[forest.mode[node]](value, forest.threshold[node])
                    )
                    node = (forest.yes if taken else forest.no)[node]
                for place in forest.votes[node]:
                    votes[forest.target[place]].append(forest.weight[place])
            combine: Callable[[list[float]], float] = {
                "SUM": sum,
                "AVERAGE": lambda v: sum(v) / len(forest.roots),
                "MIN": lambda v: min(v, default=0),
                "MAX": lambda v: max(v, default=0),
            }[self.aggregate]
            out[:] = [combine(v) + b for v, b in zip(votes, self.base or (0.0,) * self.targets, strict=True)]
        return [y.astype(x.dtype)]


def _summed(build: Build, x: Value, sums: TreeSums) -> Value:
    """Sums as float, computed in double where the samples are."""
    if not x.dtype.is_float:
        x = build(Cast(DType.FLOAT32), x)
    y = build(sums, x)
    return y if y.dtype is DType.FLOAT32 else build(Cast(DType.FLOAT32), y)


@dataclass(frozen=True)
class _Nodes(Operator):
    """The nodes of all trees, as TreeEnsembleClassifier and TreeEnsembleRegressor have them."""

    base_values: tuple[float, ...] = ()
    base_values_as_tensor: np.ndarray | None = None
    nodes_falsenodeids: tuple[int, ...] = ()
    nodes_featureids: tuple[int, ...] = ()
    nodes_hitrates: tuple[float, ...] = ()
    nodes_hitrates_as_tensor: np.ndarray | None = None
    nodes_missing_value_tracks_true: tuple[int, ...] = ()
    nodes_modes: tuple[str, ...] = ()
    nodes_nodeids: tuple[int, ...] = ()
    nodes_treeids: tuple[int, ...] = ()
    nodes_truenodeids: tuple[int, ...] = ()
    nodes_values: tuple[float, ...] = ()
    nodes_values_as_tensor: np.ndarray | None = None
    post_transform: str = "NONE"

    def base(self) -> tuple[float, ...]:
        """What is added to the sums."""
        return (
            self.base_values
            if self.base_values_as_tensor is None
            else tuple(self.base_values_as_tensor.reshape(-1).tolist())
        )


@operator("TreeEnsembleClassifier", domain="ai.onnx.ml")
class TreeEnsembleClassifier(_Nodes):
    """Votes of trees for classes: the best class, and the score of each. Where two classes have one sum, it
    is the score of the second; that of the first is what is left of 1, or the opposite where there are
    negative weights. Forms in which ONNX Runtime's label is not the class with the best score are refused.
    """

    class_ids: tuple[int, ...] = ()
    class_nodeids: tuple[int, ...] = ()
    class_treeids: tuple[int, ...] = ()
    class_weights: tuple[float, ...] = ()
    class_weights_as_tensor: np.ndarray | None = None
    classlabels_int64s: tuple[int, ...] = ()
    classlabels_strings: tuple[str, ...] = ()
    string_type: DType = DType.STRING64

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = matrix(inputs)
        dtype = label_type(self.classlabels_int64s, self.classlabels_strings, self.string_type)
        count = len(self.classlabels_int64s or self.classlabels_strings)
        return [TensorType(dtype, (x.shape[0],)), TensorType(DType.FLOAT32, (x.shape[0], count))]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x, forest, base = required(inputs), forest_of(self, "class"), self.base()
        count = len(self.classlabels_int64s or self.classlabels_strings)
        names = self.classlabels_int64s, self.classlabels_strings, self.string_type
        voted = set(forest.target)
        self._check_votes(forest, count, base)
        if count != 2 or voted != {0}:
            scores = _summed(build, x, TreeSums(forest, count, "SUM", base))
            compared = scores
            if count == 2 and min(forest.weight) >= 0:  # of probabilities of the second class alone
                half = build.constant([0.5, 0], DType.FLOAT32)
                compared = build(op("Add"), scores, half)
            return [labels(build, compared, *names), transformed(build, scores, self.post_transform)]
        one = _summed(build, x, TreeSums(forest, 1, "SUM", base))
        opposite = build(op("Neg"), one)
        other = (
            build(op("Sub"), build.constant(1, DType.FLOAT32), one) if min(forest.weight) >= 0 else opposite
        )
        scores = build(Concat(1), other, one)
        logistic = self.post_transform == "LOGISTIC"
        return [
            labels(build, scores, *names),
            transformed(build, build(Concat(1), opposite, one), "LOGISTIC") if logistic else scores,
        ]

    def _check_votes(self, forest: Forest, count: int, base: tuple[float, ...]) -> None:
        if count == 2:
            voted = set(forest.target)
            known = len(voted) == 1 or is_balance(forest)  # then the best score is the one above 0
            if not known or len(base) > (voted == {0}) or self.post_transform == "PROBIT":
                raise OperatorError(
                    "two classes with votes of their own, base values for both, or PROBIT: ONNX Runtime's "
                    "label is the sign of the second score, not the class with the best one",
                    "E202",
                    "train it as a binary classifier, whose votes are for one class or the opposite for both",
                )
        elif len(base) != count and min(forest.weight, default=0) < 0:
            missing = sorted(set(range(count)) - always_voted(forest))
            if missing:
                raise OperatorError(
                    f"class {missing[0]} may be without a vote beside negative ones: whether it counts as 0 "
                    "then the standard does not say, and for ONNX Runtime it does not",
                    "E202",
                    "give the class votes of 0, or each class a base value",
                )

    @classmethod
    def samples(cls) -> list[Sample]:
        tree: dict[str, Any] = {**_TREES, "class_treeids": (0, 0, 1, 1), "class_nodeids": (1, 2, 1, 2)}
        three = {**tree, "class_ids": (0, 2, 1, 0), "class_weights": (1.0, 2.0, 0.5, 4.0)}
        plus, minus = (
            {**tree, "class_ids": (0,) * 4, "class_weights": w, "classlabels_int64s": (3, 9)}
            for w in ((0.25, 0.5, 0.125, 0.5), (1.0, -2.0, 0.5, 0.75))
        )
        forms = [
            {**three, "classlabels_strings": ("a", "ü", "c")},
            {**three, "classlabels_int64s": (5, -1, 7), "post_transform": "SOFTMAX"},
        ]
        forms += [
            plus,
            {**minus, "base_values": (0.375,)},
            {**plus, "class_weights": (0.0, 0.5, 0.125, 0.5), "base_values": (0.125,),
             "post_transform": "LOGISTIC"},
            {**minus, "post_transform": "LOGISTIC"},
            {**plus, "class_ids": (1,) * 4, "class_weights": (0.125, 0.5, 0.0, 0.25)},
            {**tree, "class_treeids": (0, 0, 0, 0, 1, 1, 1, 1), "class_nodeids": (1, 1, 2, 2, 1, 1, 2, 2),
             "class_ids": (0, 1) * 4, "class_weights": (0.5, -0.5, -0.25, 0.25, 0.0, -0.0, -2.0, 2.0),
             "classlabels_int64s": (0, 1), "post_transform": "LOGISTIC"},
            {**minus, "class_ids": (1,) * 4},
            {**three, "class_weights": (1.0, -2.0, 0.5, -4.0), "base_values": (0.5, -0.25, 0.75),
             "classlabels_int64s": (5, -1, 7)},
            {**three, "class_treeids": (0, 0, 0, 0, 1, 1), "class_nodeids": (1, 1, 2, 2, 1, 2),
             "class_ids": (0, 1, 0, 1, 2, 2), "class_weights": (-1.0, -2.0, -0.5, -4.0, -0.75, -3.0),
             "classlabels_int64s": (5, -1, 7)},
        ]  # fmt: skip
        return [Sample((_SAMPLES,), f, outputs=2) for f in forms]


@operator("TreeEnsembleRegressor", domain="ai.onnx.ml")
class TreeEnsembleRegressor(_Nodes):
    """Sums of what the leaves of trees say."""

    aggregate_function: str = "SUM"
    n_targets: int = 1
    target_ids: tuple[int, ...] = ()
    target_nodeids: tuple[int, ...] = ()
    target_treeids: tuple[int, ...] = ()
    target_weights: tuple[float, ...] = ()
    target_weights_as_tensor: np.ndarray | None = None

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = matrix(inputs)
        if self.aggregate_function not in AGGREGATES:
            raise OperatorError(f"aggregate_function is '{self.aggregate_function}'")
        return [TensorType(DType.FLOAT32, (x.shape[0], self.n_targets))]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        sums = TreeSums(forest_of(self, "target"), self.n_targets, self.aggregate_function, self.base())
        return [transformed(build, _summed(build, required(inputs), sums), self.post_transform)]

    @classmethod
    def samples(cls) -> list[Sample]:
        tree = {
            **_TREES,
            "target_ids": (0, 0, 0, 0),
            "target_treeids": (0, 0, 1, 1),
            "target_nodeids": (1, 2, 1, 2),
            "target_weights": (1.0, -2.0, 0.5, 4.0),
        }
        gaps = np.asarray([[np.nan, 0.0], [0.6, np.nan], [np.nan, np.nan]], np.float32)
        forms: list[dict[str, Any]] = [
            {**tree, "n_targets": 1, "aggregate_function": a} for a in ("SUM", "MIN", "MAX", "AVERAGE")
        ]
        forms.append(
            {
                **tree,
                "n_targets": 1,
                "base_values": (0.5,),
                "nodes_missing_value_tracks_true": (1, 0, 0, 0, 0, 0),
            }
        )
        return [Sample((x,), f) for f in forms for x in (_SAMPLES, gaps)]


_TREES = {
    "nodes_treeids": (0, 0, 0, 1, 1, 1),
    "nodes_nodeids": (0, 1, 2, 0, 1, 2),
    "nodes_featureids": (0, 0, 0, 1, 0, 0),
    "nodes_modes": ("BRANCH_LEQ", "LEAF", "LEAF", "BRANCH_LT", "LEAF", "LEAF"),
    "nodes_values": (0.5, 0.0, 0.0, -0.25, 0.0, 0.0),
    "nodes_truenodeids": (1, 0, 0, 1, 0, 0),
    "nodes_falsenodeids": (2, 0, 0, 2, 0, 0),
}
_SAMPLES = np.asarray([[0.5, 0.0], [0.6, -1.0], [-3.0, -0.25]], np.float32)
