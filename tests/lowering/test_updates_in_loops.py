"""What a loop carries and only updates in parts is one piece of memory; results are ONNX Runtime's."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from aot_model.pipeline import Request, compile_model
from onnx_models import model, save, tensor
from sanitizers import sanitized

TURNS, WIDTH = 5, 3
X = np.asarray(np.random.default_rng(2).normal(size=(TURNS, WIDTH)), np.float32)
Node = onnx.NodeProto
node = helper.make_node


class Body:
    """The body of a loop over the rows of x: carries lists of as many rows."""

    def __init__(self, lists: int = 1) -> None:
        self.lists = lists
        self.nodes = [
            node("Reshape", ["turn", "one"], ["at"]),
            node("Gather", ["x", "turn"], ["row"]),
            node("Unsqueeze", ["row", "zero"], ["rows"]),
            node("Identity", ["again"], ["more"]),
        ]

    def add(self, kind: str, inputs: Sequence[str], output: str, **attributes: object) -> None:
        self.nodes.append(node(kind, inputs, [output], **attributes))

    def proto(self, *results: str) -> onnx.ModelProto:
        lists = [f"l{k}" for k in range(self.lists)]
        body = helper.make_graph(
            self.nodes,
            "body",
            [tensor("turn", (), TensorProto.INT64), tensor("again", (), TensorProto.BOOL)]
            + [tensor(v, (TURNS, WIDTH)) for v in lists],
            [tensor("more", (), TensorProto.BOOL), *(tensor(v, (TURNS, WIDTH)) for v in results)],
        )
        outputs = [f"y{k}" for k in range(self.lists)]
        loop = node("Loop", ["turns", "", *(["start", "other"][: self.lists])], outputs, body=body)
        constants = {
            "turns": np.asarray(TURNS - 1),
            "one": np.asarray([1, 1]),
            "zero": np.asarray([0]),
            "start": np.arange(TURNS * WIDTH, dtype=np.float32).reshape(TURNS, WIDTH),
            "other": np.ones((TURNS, WIDTH), np.float32),
            "columns": np.asarray([[2, 0, 1]]),
        }
        return model([loop], [tensor("x", X.shape)], [tensor(v, None) for v in outputs], constants)


def _rows(b: Body) -> list[str]:
    b.add("ScatterND", ["l0", "at", "rows"], "n0")
    return ["n0"]


def _elements(b: Body) -> list[str]:
    b.add("ScatterElements", ["l0", "columns", "rows"], "n0", axis=1, reduction="add")
    return ["n0"]


def _read_afterwards(b: Body) -> list[str]:
    """The new list is read in the same turn."""
    b.add("ScatterND", ["l0", "at", "rows"], "n0")
    b.add("Add", ["l1", "n0"], "n1")
    return ["n0", "n1"]


def _two(b: Body) -> list[str]:
    b.add("ScatterND", ["l0", "at", "rows"], "n0")
    b.add("Neg", ["rows"], "minus")
    b.add("ScatterND", ["l1", "at", "minus"], "n1", reduction="mul")
    return ["n0", "n1"]


def _read_before(b: Body) -> list[str]:
    """The sum of the old list is put into it."""
    b.add("ReduceSum", ["l0", "zero"], "sum")
    b.add("ScatterND", ["l0", "at", "sum"], "n0")
    return ["n0"]


def _old_kept(b: Body) -> list[str]:
    """The other value is the list of the turn before."""
    b.add("ScatterND", ["l0", "at", "rows"], "n0")
    b.add("Identity", ["l0"], "n1")
    return ["n0", "n1"]


def _old_itself(b: Body) -> list[str]:
    b.add("ScatterND", ["l0", "at", "rows"], "n0")
    return ["n0", "l0"]


def _exchanged(b: Body) -> list[str]:
    b.add("ScatterND", ["l1", "at", "rows"], "n0")
    b.add("ScatterND", ["l0", "at", "rows"], "n1")
    return ["n0", "n1"]


def _twice(b: Body) -> list[str]:
    """Two values become the same list."""
    b.add("ScatterND", ["l0", "at", "rows"], "n0")
    return ["n0", "n0"]


def _by_itself(b: Body) -> list[str]:
    """The list is what is put into it, too."""
    b.add("ScatterElements", ["l0", "turned", "l0"], "n0", axis=0)
    b.nodes.insert(4, node("Transpose", ["grid"], ["turned"], perm=[0, 1]))
    b.nodes.insert(4, node("Constant", [], ["grid"], value=onnx.numpy_helper.from_array(GRID)))
    return ["n0"]


def _in_a_branch(b: Body) -> list[str]:
    """A body inside reads the old list."""
    then, other = (
        helper.make_graph([node(kind, ["l0", "zero"], [name])], name, [], [tensor(name, None)])
        for kind, name in (("ReduceMax", "largest"), ("ReduceMin", "least"))
    )
    b.add("ReduceSum", ["row"], "size", keepdims=0)
    b.add("Greater", ["size", "size2"], "large")
    b.nodes.insert(5, node("Constant", [], ["size2"], value_float=0.0))
    b.add("If", ["large"], "put", then_branch=then, else_branch=other)
    b.add("ScatterND", ["l0", "at", "put"], "n0")
    return ["n0"]


GRID = np.asarray([[(4 - k) % TURNS] * WIDTH for k in range(TURNS)])

CASES: list[tuple[Callable[[Body], list[str]], int, int]] = [
    (_rows, 1, 0),
    (_elements, 1, 0),
    (_read_afterwards, 2, 1),
    (_two, 2, 0),
    (_read_before, 1, 1),
    (_old_kept, 2, 2),
    (_old_itself, 2, 2),
    (_exchanged, 2, 2),
    (_twice, 2, 3),
    (_by_itself, 1, 1),
    (_in_a_branch, 1, 1),
]
"""With the number of lists, and how many are copied as a whole in a turn."""


@pytest.mark.parametrize(("make", "lists", "copies"), CASES)
def test_lists_of_loops(make: Callable[[Body], list[str]], lists: int, copies: int, tmp_path: Path) -> None:
    body = Body(lists)
    proto = body.proto(*make(body))
    session = onnxruntime.InferenceSession(proto.SerializeToString(), providers=["CPUExecutionProvider"])
    compiled = compile_model(Request(save(proto, tmp_path / "model.onnx"), "m", "c"))
    program = sanitized(compiled.view, compiled.texts, tmp_path)
    for x, got in zip((X, -X), program.run([[X], [-X]]), strict=True):
        for have, want in zip(got, session.run(None, {"x": x}), strict=True):
            np.testing.assert_allclose(have, want, rtol=1e-6)
    calls = compiled.texts["m.c"].split("for (int64_t turn1")[1]
    assert calls.count("_copy(AT(float") == copies
