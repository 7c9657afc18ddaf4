"""TreeEnsemble of ai.onnx.ml opset 5: the tables of ops/trees.py from lists of another form.

Source: ONNX-ML operator specification.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from aot_model.ir.operator import Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import TensorType
from aot_model.ir.values import Value
from aot_model.ops.forest import COMPARE, LEAF, Forest, check_acyclic
from aot_model.ops.ml_scores import matrix, transformed
from aot_model.ops.registry import Build, operator, required
from aot_model.ops.trees import AGGREGATES, TreeSums

_TRANSFORMS = ("NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT")


@operator("TreeEnsemble", domain="ai.onnx.ml")
class TreeEnsemble(Operator):
    """Sums of what the leaves of trees say; inner nodes and leaves are lists of their own, tests may ask for
    members of a set.
    """

    leaf_targetids: tuple[int, ...]
    leaf_weights: np.ndarray
    nodes_falseleafs: tuple[int, ...]
    nodes_falsenodeids: tuple[int, ...]
    nodes_featureids: tuple[int, ...]
    nodes_modes: np.ndarray
    nodes_splits: np.ndarray
    nodes_trueleafs: tuple[int, ...]
    nodes_truenodeids: tuple[int, ...]
    tree_roots: tuple[int, ...]
    aggregate_function: int = 1
    membership_values: np.ndarray | None = None
    n_targets: int = 1
    nodes_hitrates: np.ndarray | None = None
    nodes_missing_value_tracks_true: tuple[int, ...] = ()
    post_transform: int = 0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = matrix(inputs)
        if not 0 <= self.aggregate_function < len(AGGREGATES) or not 0 <= self.post_transform < len(
            _TRANSFORMS
        ):
            raise OperatorError(
                f"aggregate_function is {self.aggregate_function}, post_transform {self.post_transform}"
            )
        if self.post_transform in (1, 2):
            ours, theirs = (_TRANSFORMS[k] for k in (self.post_transform, 3 - self.post_transform))
            raise OperatorError(
                f"post_transform {self.post_transform} is {ours} in the standard, {theirs} for ONNX Runtime",
                "E202",
                "set it to 0, and add a node for what is wanted",
            )
        return [TensorType(x.dtype, (x.shape[0], self.n_targets))]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        sums = TreeSums(self._forest(), self.n_targets, AGGREGATES[self.aggregate_function])
        y = build(sums, required(inputs))
        return [transformed(build, y, _TRANSFORMS[self.post_transform])]

    def _forest(self) -> Forest:
        """One list of nodes: the inner ones, those of tests of sets, the leaves."""
        modes = [int(m) for m in self.nodes_modes.reshape(-1)]
        inner, leaves = len(modes), len(self.leaf_targetids)
        lists = (
            self.nodes_splits.reshape(-1),
            self.nodes_featureids,
            self.nodes_truenodeids,
            self.nodes_falsenodeids,
            self.nodes_trueleafs,
            self.nodes_falseleafs,
        )
        missing = list(self.nodes_missing_value_tracks_true or (0,) * inner)
        if any(len(v) != inner for v in (*lists, missing)) or self.leaf_weights.size != leaves:
            raise OperatorError("the lists of nodes or of leaves have different lengths")
        if any(not 0 <= m <= len(COMPARE) for m in modes) or any(not 0 <= r < inner for r in self.tree_roots):
            raise OperatorError("a kind of node or a root is not known")
        sets = self._sets(modes)
        first_leaf = inner + sum(max(len(s) - 1, 0) for s in sets.values())

        def child(name: int, leaf: int) -> int:
            if not 0 <= name < (leaves if leaf else inner):
                raise OperatorError(
                    f"a node leads to {'leaf' if leaf else 'node'} {name}, which is not there"
                )
            return name + (first_leaf if leaf else 0)

        kinds = [*COMPARE, "BRANCH_EQ"]
        mode = [kinds[m] for m in modes]
        feature, threshold = list(self.nodes_featureids), [float(v) for v in self.nodes_splits.reshape(-1)]
        yes = [child(n, leaf) for n, leaf in zip(self.nodes_truenodeids, self.nodes_trueleafs, strict=True)]
        no = [child(n, leaf) for n, leaf in zip(self.nodes_falsenodeids, self.nodes_falseleafs, strict=True)]
        for node, members in sets.items():
            # Member of {a, b, …}: equal to a, else equal to b, else …
            threshold[node] = members[0] if members else math.nan
            last, otherwise = node, no[node]
            for member in members[1:]:
                no[last] = last = len(mode)
                mode.append("BRANCH_EQ")
                feature.append(feature[node])
                threshold.append(member)
                yes.append(yes[node])
                no.append(otherwise)
                missing.append(0)
        votes = (*((),) * len(mode), *((k,) for k in range(leaves)))
        blank = (0,) * leaves
        mode += [LEAF] * leaves
        yes, no = [*yes, *blank], [*no, *blank]
        check_acyclic(yes, no, mode)
        return Forest(
            (*feature, *blank),
            (*threshold, *map(float, blank)),
            tuple(yes),
            tuple(no),
            tuple(mode),
            (*missing, *blank),
            self.tree_roots,
            votes,
            self.leaf_targetids,
            tuple(float(v) for v in self.leaf_weights.reshape(-1)),
        )

    def _sets(self, modes: Sequence[int]) -> dict[int, list[float]]:
        """The members of each node that tests a set: runs of membership_values between NaN."""
        nodes = [k for k, m in enumerate(modes) if m == len(COMPARE)]
        runs: list[list[float]] = [[]]
        for value in () if self.membership_values is None else self.membership_values.reshape(-1).tolist():
            if math.isnan(value):
                runs.append([])
            else:
                runs[-1].append(float(value))
        if len(runs) == len(nodes) + 1 and not runs[-1]:
            runs.pop()
        if nodes and len(runs) != len(nodes):
            raise OperatorError(f"{len(runs)} sets of members for {len(nodes)} nodes")
        return dict(zip(nodes, runs, strict=False))

    @classmethod
    def samples(cls) -> list[Sample]:
        def real(*values: float) -> np.ndarray:
            return np.asarray(values, np.float32)

        x = np.asarray([[1.2], [3.4], [-0.12], [np.nan], [12.0], [7.0]], np.float32)
        trees: dict[str, Any] = {
            "nodes_featureids": (0, 0, 0),
            "nodes_splits": real(11.0, 1.5, 3.0),
            "nodes_modes": np.asarray([0, 6, 6], np.uint8),
            "nodes_truenodeids": (1, 0, 1),
            "nodes_falsenodeids": (2, 2, 3),
            "nodes_trueleafs": (0, 1, 1),
            "nodes_falseleafs": (0, 1, 1),
            "leaf_targetids": (0, 1, 2, 3),
            "leaf_weights": real(1.0, 10.0, 1000.0, 100.0),
            "n_targets": 4,
            "tree_roots": (0,),
            "membership_values": real(1.2, 3.7, 8.0, 9.0, np.nan, 12.0, 7.0, np.nan),
        }
        two = {k: v for k, v in trees.items() if k != "membership_values"}
        two |= {"nodes_modes": np.asarray([0, 1, 5], np.uint8), "tree_roots": (0, 2)}
        # where no leaf votes, an extreme is 0 for some and the largest float for others
        one = {**two, "leaf_targetids": (0,) * 4, "n_targets": 1}
        last = {"membership_values": trees["membership_values"][:-1]}  # NaN is between sets, or behind them
        return [
            Sample((x,), trees),
            Sample((x,), {**two, "aggregate_function": 0, "nodes_missing_value_tracks_true": (0, 1, 0)}),
            Sample((x,), two),
            Sample((x,), {**trees, **last, "nodes_missing_value_tracks_true": (0, 1, 1)}),
            *(Sample((x,), {**one, "aggregate_function": a}) for a in (2, 3)),
        ]
