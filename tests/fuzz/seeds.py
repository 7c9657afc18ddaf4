"""Where mutations start: models that compile. Every sample of every operator of ONNX, a few networks,
operators of TFLite.
"""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper

from aot_model.ops.registry import OPERATORS

_TESTS = Path(__file__).parents[1]
sys.path += [str(_TESTS), str(_TESTS / "operators"), str(_TESTS / "tflite_operators")]

node = helper.make_node
MAX_BYTES = 8000
"""Larger samples only make cases slower."""


@cache
def seeds() -> tuple[tuple[str, bytes], ...]:
    """(name, content of the file); .tflite or .onnx by the name."""
    from all_cases import CASES
    from rows import onnx_model, registry_rows

    from onnx_models import small_cnn

    found = [
        (f"{make.__name__}.onnx", make().SerializeToString())
        for make in (small_cnn, many_operators, recurrent)
    ] * 6
    found += [
        (f"{row.label}.onnx", onnx_model(row).SerializeToString()) for row in registry_rows() if row.in_onnx
    ]
    found += [(f"{case.name}.tflite", case.model) for case in CASES]
    return tuple((name, data) for name, data in found if len(data) <= MAX_BYTES)


def many_operators() -> onnx.ModelProto:
    """Operators with attributes and operands of every kind."""
    from onnx_models import model, small_cnn, tensor

    ints = {
        "axes": [1],
        "starts": [1],
        "ends": [3],
        "shape": [2, -1],
        "split": [1, 3],
        "pads": [0, 1, 0, 1],
        "index": [2, 0, 1],
        "k": [2],
        "reps": [1, 2],
    }
    nodes = [
        node("Slice", ["x", "starts", "ends", "axes"], ["s"]),
        node("Pad", ["s", "pads"], ["p"], mode="reflect"),
        node("Split", ["x", "split"], ["a", "b"], axis=1),
        node("Concat", ["a", "b", "p"], ["c"], axis=1),
        node("Gather", ["c", "index"], ["g"], axis=1),
        node("Transpose", ["g"], ["t"], perm=[1, 0]),
        node("ReduceMean", ["t", "axes"], ["m"], keepdims=1),
        node("Sub", ["t", "m"], ["d"]),
        node("Clip", ["d", "low", "high"], ["e"]),
        node("Tile", ["e", "reps"], ["f"]),
        node("Cast", ["f"], ["h"], to=TensorProto.INT32),
        node("Cast", ["h"], ["i"], to=TensorProto.FLOAT),
        node("Where", ["mask", "i", "low"], ["j"]),
        node("LeakyRelu", ["j"], ["l"], alpha=0.1),
        node("ArgMax", ["l"], ["n"], axis=1),
        node("TopK", ["l", "k"], ["o", "q"], axis=0),
        node("LayerNormalization", ["o", "scale"], ["r"], axis=-1),
        node("Reshape", ["r", "shape"], ["y"]),
    ]
    constants = {k: np.asarray(v, np.int64) for k, v in ints.items()}
    constants |= {
        "low": np.asarray(-1, np.float32),
        "high": np.asarray(1, np.float32),
        "mask": np.asarray([[True], [False], [True]]),
        "scale": np.ones(6, np.float32),
    }
    known = [n for n in nodes if ("", n.op_type) in OPERATORS]
    missing = {n.op_type for n in nodes} - {n.op_type for n in known}
    return (
        model(
            nodes, [tensor("x", [3, 4])], [tensor("y", None), tensor("n", None, TensorProto.INT64)], constants
        )
        if not missing
        else small_cnn()
    )


def recurrent() -> onnx.ModelProto:
    """A recurrent layer and a convolution in one dimension."""
    from onnx_models import model, tensor

    rng = np.random.default_rng(1)
    constants = {
        "w": np.asarray(rng.normal(size=(1, 16, 3)), np.float32),
        "r": np.asarray(rng.normal(size=(1, 16, 4)), np.float32),
        "b": np.asarray(rng.normal(size=(1, 32)), np.float32),
        "k": np.asarray(rng.normal(size=(5, 4, 3)), np.float32),
        "axes": np.asarray([1]),
    }
    nodes = [
        node("LSTM", ["x", "w", "r", "b"], ["h"], hidden_size=4),
        node("Squeeze", ["h", "axes"], ["q"]),
        node("Transpose", ["q"], ["t"], perm=[1, 2, 0]),
        node("Conv", ["t", "k"], ["y"], pads=[1, 1], dilations=[1]),
    ]
    return model(nodes, [tensor("x", [6, 1, 3])], [tensor("y", None)], constants)
