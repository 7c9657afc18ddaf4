"""Lists in attributes that do not fit each other: what the generated code would read or write beyond its tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from aot_model.errors import CompileError
from aot_model.pipeline import Compiled, Request, compile_model

TREE: dict[str, Any] = {
    "nodes_treeids": [0] * 3, "nodes_nodeids": [0, 1, 2], "nodes_featureids": [0] * 3, "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_values": [0.5, 0.0, 0.0], "nodes_truenodeids": [1, 0, 0], "nodes_falsenodeids": [2, 0, 0], "target_ids": [0, 0],
    "target_treeids": [0, 0], "target_nodeids": [1, 2], "target_weights": [1.0, 2.0], "n_targets": 1,
}  # fmt: skip


def compiled(path: Path, op: str, x: tuple[int, list[int]], y: tuple[int, list[int]], domain: str, attributes: dict[str, Any]) -> Compiled:
    node = helper.make_node(op, ["x"], ["y"], domain=domain, **attributes)
    graph = helper.make_graph([node], "g", [helper.make_tensor_value_info("x", *x)], [helper.make_tensor_value_info("y", *y)])
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 3)], ir_version=10)
    path.write_bytes(proto.SerializeToString())
    return compile_model(Request(path, "m", "c"))


def regressor(path: Path, attributes: dict[str, Any]) -> Compiled:
    return compiled(path, "TreeEnsembleRegressor", (TensorProto.FLOAT, [2, 2]), (TensorProto.FLOAT, [2, 1]), "ai.onnx.ml", {**TREE, **attributes})


@pytest.mark.parametrize(
    ("attributes", "why"),
    [({"base_values": [1.0, 2.0]}, "2 base values for 1"), ({"nodes_values": [0.5]}, "different lengths"),
     ({"nodes_missing_value_tracks_true": [1]}, "different lengths"), ({"target_weights": [1.0]}, "different lengths")],
)  # fmt: skip
def test_trees(attributes: dict[str, Any], why: str, tmp_path: Path) -> None:
    regressor(tmp_path / "fits.onnx", {})
    with pytest.raises(CompileError, match=why):
        regressor(tmp_path / "m.onnx", attributes)


def test_default_tensor_without_an_element(tmp_path: Path) -> None:
    numbers = {k: numpy_helper.from_array(np.zeros(n, np.int64), k) for k, n in (("values_tensor", 2), ("default_tensor", 0))}
    with pytest.raises(CompileError, match="0 values of 'default_tensor'"):
        compiled(tmp_path / "m.onnx", "LabelEncoder", (TensorProto.INT64, [2]), (TensorProto.INT64, [2]), "ai.onnx.ml", {"keys_int64s": [1, 2], **numbers})


def test_more_skips_than_words(tmp_path: Path) -> None:
    pool = {"mode": "TF", "min_gram_length": 1, "max_gram_length": 2, "ngram_counts": [0, 1], "ngram_indexes": [0, 1], "pool_int64s": [1, 2, 3]}
    many = compiled(tmp_path / "m.onnx", "TfIdfVectorizer", (TensorProto.INT64, [6]), (TensorProto.FLOAT, [2]), "", {**pool, "max_skip_count": 2**63 - 1})
    assert "step <= 7;" in many.texts["m.c"]
