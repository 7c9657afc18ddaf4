"""Sizes and counts that no network has: each is refused, within seconds, with a message that a terminal can
show.
"""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from aot_model.errors import MAX_ALL, MAX_TEXT, CompileError, Problem
from aot_model.pipeline import Compiled, Request, compile_model
from onnx_models import model, save, small_cnn, tensor, unary

node = helper.make_node


def compiled(proto: onnx.ModelProto, tmp_path: Path, target: str = "c") -> Compiled:
    return compile_model(Request(save(proto, tmp_path / "m.onnx"), "m", target))


def _cell(op: str, gates: int, *names: str, directions: int = 1) -> onnx.ModelProto:
    weights = {
        "w": np.ones((directions, 4 * gates, 3), np.float32),
        "r": np.ones((directions, 4 * gates, 4), np.float32),
    }
    direction = "bidirectional" if directions == 2 else "forward"
    return model(
        [node(op, ["x", "w", "r"], ["y"], hidden_size=4, activations=names, direction=direction)],
        [tensor("x", [2, 1, 3])],
        [tensor("y", None)],
        weights,
    )


def _loss(op: str, weight: np.ndarray) -> onnx.ModelProto:
    inputs = [tensor("x", [3, 5]), tensor("l", [3], TensorProto.INT64)]
    return model([node(op, ["x", "l", "w"], ["y"], name="loss")], inputs, [tensor("y", None)], {"w": weight})


def _pool(op: str, kernel: int, *pads: int, **more: Any) -> onnx.ModelProto:
    return model(
        [node(op, ["x"], ["y"], kernel_shape=[kernel], pads=pads, **more)],
        [tensor("x", [1, 1, 4])],
        [tensor("y", None)],
        opset=22,
    )


def _split(extent: int, count: int) -> onnx.ModelProto:
    return model(
        [node("Split", ["x"], ["y"], num_outputs=count, axis=0)], [tensor("x", [extent])], [tensor("y", None)]
    )


def _opset(version: int, domain: str = "") -> onnx.ModelProto:
    proto = small_cnn()
    proto.opset_import.append(helper.make_opsetid(domain, version)) if domain else setattr(
        proto.opset_import[0], "version", version
    )
    return proto


def _resized(size: int) -> onnx.ModelProto:
    return model(
        [node("Resize", ["x", "", "", "s"], ["y"], mode="linear")],
        [tensor("x", [1, 1, 7])],
        [tensor("y", None)],
        {"s": np.asarray([1, 1, size])},
    )


def _grid(size: int) -> onnx.ModelProto:
    return model(
        [node("AffineGrid", ["x", "s"], ["y"])],
        [tensor("x", [1, 2, 3])],
        [tensor("y", None)],
        {"s": np.asarray([1, 1, size, 100])},
        opset=20,
    )


MANY, LARGE = 2**22, 2**31 - 1
REFUSED: dict[str, tuple[onnx.ModelProto, str]] = {
    "LSTM": (_cell("LSTM", 4, "Sigmoid", "Tanh", "Tanh", "Tanh", "Relu"), "5 activations"),
    "GRU": (_cell("GRU", 3, "Sigmoid", "Tanh", "Tanh", "Tanh", "Relu"), "5 activations"),
    "RNN": (_cell("RNN", 1, *["Tanh"] * 5), "5 activations"),
    "LSTM, both ways": (_cell("LSTM", 4, *["Sigmoid"] * 5, directions=2), "5 activations"),
    "scalar weight": (_loss("SoftmaxCrossEntropyLoss", np.asarray(1, np.float32)), "each of the classes"),
    "scalar weight of the other loss": (
        _loss("NegativeLogLikelihoodLoss", np.asarray(1, np.float32)),
        "each of the classes",
    ),
    "few weights": (_loss("SoftmaxCrossEntropyLoss", np.ones(2, np.float32)), "each of the classes"),
    "elements of a scalar": (
        model(
            [node("Gather", ["x", "i"], ["y"])],
            [tensor("x", [])],
            [tensor("y", None)],
            {"i": np.asarray([0])},
        ),
        "scalar",
    ),
    "opset": (_opset(2**31), "opset 2147483648"),
    "opset of 64 bits": (_opset(2**63 - 1), "opset"),
    "opset of another domain": (_opset(2**31, "com.example"), "com.example"),
    "average of padding": (_pool("AveragePool", 2, LARGE, LARGE), "too large"),
    "average of a large window": (
        _pool("AveragePool", LARGE, LARGE - 1, 0, count_include_pad=1),
        "too large",
    ),
    "pads as large as the window": (_pool("AveragePool", 2, 2, 2), "not smaller"),
    "many borders": (_pool("AveragePool", 2**20, 2**20 - 1, 2**20 - 1), "pads of"),
    "maximum of a large window": (_pool("MaxPool", LARGE, LARGE - 1, 0), "too large"),
    "norm of a large window": (_pool("LpPool", LARGE, LARGE - 1, 0), "too large"),
    "dilations": (_pool("MaxPool", 2, 0, 0, dilations=[LARGE]), "too large"),
    "no strides": (_pool("MaxPool", 2, 0, 0, strides=[0]), "strides or dilations of 1 axes"),
    "pieces of what is large": (_split(MANY, MANY), "4096 outputs"),
    "pieces of what is small": (_split(4, MANY), "4194304 pieces"),
    "a table of columns": (_resized(MANY), "its tables would have"),
    "place of each pixel": (_grid(2**16), "its tables would have"),
    "permutation": (unary("Transpose", perm=[1] * MANY), "permutation"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str, tmp_path: Path) -> None:
    proto, why = REFUSED[case]
    began = time.process_time()
    with pytest.raises(CompileError, match=why) as error:
        compiled(proto, tmp_path)
    assert len(str(error.value)) < 5000
    assert time.process_time() - began < 10


@pytest.mark.parametrize(("shape", "repeats"), [((0, 3), (2, 2)), ((2, 3), (0, 2))])
def test_tile_of_nothing(shape: tuple[int, ...], repeats: tuple[int, ...], tmp_path: Path) -> None:
    """... and what is made of it: padding, which has elements again."""
    nodes = [node("Tile", ["x", "r"], ["t"]), node("Pad", ["t", "p", "v"], ["y"])]
    constants = {"r": np.asarray(repeats), "p": np.asarray([1, 0, 0, 0]), "v": np.asarray(4.5, np.float32)}
    found = compiled(
        model(nodes, [tensor("x", shape)], [tensor("t", None), tensor("y", None)], constants), tmp_path
    )
    assert [p.buffer.type.shape for p in found.view.outputs] == [(0, 6), (1, 6)]
    assert "4.5f" in found.texts["m.c"] and "% 0" not in found.texts["m.c"]


def _long_axis(kind: str) -> onnx.ModelProto:
    """One node over 2^27 places or more."""
    if kind == "windows":
        nodes = [node("MaxPool", ["x"], ["y"], kernel_shape=[3], pads=[1, 1])]
        return model(nodes, [tensor("x", [1, 1, 2**27])], [tensor("y", None)])
    values = {"s": np.float32(0.1), "z": np.int8(0), "w": np.ones((1, 1), np.int8)}
    nodes = [node("QLinearMatMul", ["x", "s", "z", "w", "s", "z", "s", "z"], ["y"])]
    ends = [tensor("x", [2**30, 1], TensorProto.INT8)], [tensor("y", None, TensorProto.INT8)]
    return model(nodes, *ends, values)


@pytest.mark.parametrize("target", ["c", "host", "cortex-m0", "cortex-m4", "cortex-m55"])
@pytest.mark.parametrize("kind", ["windows", "rows"])
def test_a_long_axis_takes_no_longer(kind: str, target: str, tmp_path: Path) -> None:
    """Windows that lie inside are one case, however many there are; rows are cut to what a cache holds."""
    began = time.process_time()
    compiled(_long_axis(kind), tmp_path, target)
    assert time.process_time() - began < 10


def _variadic(op: str, *counts: int) -> onnx.ModelProto:
    """One node after the other, each of so many inputs."""
    nodes = [node(op, [f"y{k - 1}" if k else "x", *["x"] * (n - 1)], [f"y{k}"]) for k, n in enumerate(counts)]
    return model(nodes, [tensor("x", [2, 3])], [tensor(f"y{len(counts) - 1}", None)])


@pytest.mark.parametrize("op", ["Sum", "Max", "Mean"])
def test_inputs_of_one_node(op: str, tmp_path: Path) -> None:
    """An expression is as deep as they are many."""
    assert len(compiled(_variadic(op, *[128] * 4), tmp_path).texts["m.c"]) < 100_000
    assert len(compiled(_variadic(op, 3000), tmp_path).texts["m.c"]) < 400_000


# --- messages -----------------------------------------------------------------------------------------------


def test_messages_have_no_control_characters(tmp_path: Path) -> None:
    evil = "\x1b]0;title\x07\x1b[2J\x9b\r\u202e\ud800"
    for text in ("message", "where", "hint"):
        said = str(Problem("E301", **{"message": "m", text: evil}))
        assert all(c.isprintable() or c == "\n" for c in said)
    name = evil.replace("\ud800", "")
    proto = model(
        [node("Add", [name, "w"], ["y"], name=name)],
        [tensor(name, [2])],
        [tensor("y", None)],
        {"w": np.ones(3, np.float32)},
    )
    with pytest.raises(CompileError) as error:
        compiled(proto, tmp_path)
    assert all(c.isprintable() or c == "\n" for c in str(error.value))


def test_messages_are_bounded() -> None:
    for text in ("x" * 10_000_000, "x\n" * 1_000_000):
        problem = Problem("E301", text, text, text)
        assert all(len(part) <= MAX_TEXT for part in (problem.message, problem.where, problem.hint))
        assert len(str(CompileError([problem] * 10_000))) < 2 * MAX_ALL
    said = str(CompileError(Problem("E301", f"{k}") for k in range(10_000)))
    assert "more problems" in said and said.count("error:") <= 50
    table = "\n".join(f"{k:>6} a row of a table" for k in range(500))
    assert Problem("E402", table).message == table
