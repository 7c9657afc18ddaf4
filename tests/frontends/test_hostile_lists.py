"""Lists in attributes that do not fit each other: what the generated code would read or write beyond its
tables.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper, numpy_helper

from aot_model.errors import CompileError
from aot_model.pipeline import Compiled, Request, compile_model

TREE: dict[str, Any] = {
    "nodes_treeids": [0] * 3,
    "nodes_nodeids": [0, 1, 2],
    "nodes_featureids": [0] * 3,
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_values": [0.5, 0.0, 0.0],
    "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0],
    "target_ids": [0, 0],
    "target_treeids": [0, 0],
    "target_nodeids": [1, 2],
    "target_weights": [1.0, 2.0],
    "n_targets": 1,
}


def compiled(
    path: Path,
    op: str,
    x: tuple[int, list[int]],
    y: tuple[int, list[int]],
    domain: str,
    attributes: dict[str, Any],
) -> Compiled:
    node = helper.make_node(op, ["x"], ["y"], domain=domain, **attributes)
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", *x)], [helper.make_tensor_value_info("y", *y)]
    )
    proto = helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", 20), helper.make_opsetid("ai.onnx.ml", 3)],
        ir_version=10,
    )
    path.write_bytes(proto.SerializeToString())
    return compile_model(Request(path, "m", "c"))


def regressor(path: Path, attributes: dict[str, Any]) -> Compiled:
    return compiled(
        path,
        "TreeEnsembleRegressor",
        (TensorProto.FLOAT, [2, 2]),
        (TensorProto.FLOAT, [2, 1]),
        "ai.onnx.ml",
        {**TREE, **attributes},
    )


@pytest.mark.parametrize(("attributes", "why"),
                         [({"base_values": [1.0, 2.0]}, "2 base values for 1"),
                          ({"nodes_values": [0.5]}, "different lengths"),
                          ({"nodes_missing_value_tracks_true": [1]}, "different lengths"),
                          ({"target_weights": [1.0]}, "different lengths")],
                         )  # fmt: skip
def test_trees(attributes: dict[str, Any], why: str, tmp_path: Path) -> None:
    regressor(tmp_path / "fits.onnx", {})
    with pytest.raises(CompileError, match=why):
        regressor(tmp_path / "m.onnx", attributes)


def test_default_tensor_without_an_element(tmp_path: Path) -> None:
    numbers = {
        k: numpy_helper.from_array(np.zeros(n, np.int64), k)
        for k, n in (("values_tensor", 2), ("default_tensor", 0))
    }
    with pytest.raises(CompileError, match="0 values of 'default_tensor'"):
        compiled(
            tmp_path / "m.onnx",
            "LabelEncoder",
            (TensorProto.INT64, [2]),
            (TensorProto.INT64, [2]),
            "ai.onnx.ml",
            {"keys_int64s": [1, 2], **numbers},
        )


def test_more_skips_than_words(tmp_path: Path) -> None:
    pool = {
        "mode": "TF",
        "min_gram_length": 1,
        "max_gram_length": 2,
        "ngram_counts": [0, 1],
        "ngram_indexes": [0, 1],
        "pool_int64s": [1, 2, 3],
    }
    many = compiled(
        tmp_path / "m.onnx",
        "TfIdfVectorizer",
        (TensorProto.INT64, [6]),
        (TensorProto.FLOAT, [2]),
        "",
        {**pool, "max_skip_count": 2**63 - 1},
    )
    assert "step <= 7;" in many.texts["m.c"]


def test_no_elements_are_not_divided_by(tmp_path: Path) -> None:
    found = compiled(
        tmp_path / "m.onnx", "NonZero", (TensorProto.FLOAT, [2, 0]), (TensorProto.INT64, [2, 0]), "", {}
    )
    assert "/ 0" not in found.texts["m.c"] and "% 0" not in found.texts["m.c"]


def test_numbers_of_vectors_below_zero(tmp_path: Path) -> None:
    lists = {
        "classlabels_ints": [0, 1],
        "vectors_per_class": [3, -1],
        "support_vectors": [1.0] * 4,
        "coefficients": [1.0] * 2,
        "rho": [0.0],
    }
    node = helper.make_node(
        "SVMClassifier", ["x"], ["label", "scores"], domain="ai.onnx.ml", kernel_type="LINEAR", **lists
    )
    outputs = [
        helper.make_tensor_value_info("label", TensorProto.INT64, [1]),
        helper.make_tensor_value_info("scores", TensorProto.FLOAT, [1, 2]),
    ]
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2])], outputs
    )
    (tmp_path / "m.onnx").write_bytes(
        helper.make_model(
            graph, opset_imports=[helper.make_opsetid("ai.onnx.ml", 3)], ir_version=10
        ).SerializeToString()
    )
    with pytest.raises(CompileError, match="negative"):
        compile_model(Request(tmp_path / "m.onnx", "m", "c"))


def test_keys_of_another_kind_than_the_elements(tmp_path: Path) -> None:
    lists = {"keys_floats": [0.5, float("nan")], "values_int64s": [1, 2]}
    with pytest.raises(CompileError, match="keys do not fit"):
        compiled(
            tmp_path / "m.onnx",
            "LabelEncoder",
            (TensorProto.INT64, [2]),
            (TensorProto.INT64, [2]),
            "ai.onnx.ml",
            lists,
        )


def test_a_degree_that_is_no_number(tmp_path: Path) -> None:
    lists = {
        "n_supports": 1,
        "support_vectors": [1.0, 1.0],
        "coefficients": [1.0],
        "rho": [0.0],
        "kernel_params": [1.0, 0.0, float("inf")],
    }
    with pytest.raises(CompileError, match="E301"):
        compiled(
            tmp_path / "m.onnx",
            "SVMRegressor",
            (TensorProto.FLOAT, [1, 2]),
            (TensorProto.FLOAT, [1, 1]),
            "ai.onnx.ml",
            {**lists, "kernel_type": "POLY"},
        )


def test_the_stack_does_not_grow_with_the_targets_of_trees(tmp_path: Path) -> None:
    many = {"n_targets": 100_000, "aggregate_function": "MIN"}
    node = {**TREE, **many}
    found = compiled(
        tmp_path / "m.onnx",
        "TreeEnsembleRegressor",
        (TensorProto.FLOAT, [1, 2]),
        (TensorProto.FLOAT, [1, 100_000]),
        "ai.onnx.ml",
        node,
    )
    assert "seen[100000]" not in found.texts["m.c"] and found.view.workspace_size >= 100_000


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        (r"(\b\w{1,40}\b ?){1,40}" + "|".join(chr(97 + k % 26) * k for k in range(1, 60)), "states"),
        (r"\b(a?){1000}b", "takes too long"),
    ],
    ids=["many states", "many steps"],
)
def test_patterns_that_are_too_large(pattern: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(CompileError, match=why):
        compiled(
            tmp_path / "m.onnx",
            "RegexFullMatch",
            (TensorProto.STRING, [1]),
            (TensorProto.BOOL, [1]),
            "",
            {"pattern": pattern},
        )
