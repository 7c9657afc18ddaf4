"""Windows of other memory that begin between two words, and rows that are looked up where vectors are
stored.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper

from aot_model.frontends.model import Model
from aot_model.frontends.tflite_variables import Variables
from aot_model.host import program as host_run
from aot_model.ir.graph import Graph
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value, constant
from aot_model.pipeline import Request, compile_graph, compile_model
from aot_model.targets.registry import parse_target
from graphs import Maker
from onnx_models import model, save, tensor
from tflite_models import Op, T
from tflite_models import build as build_tflite

RNG = np.random.default_rng(3)


def _check(
    proto: object,
    inputs: dict[str, np.ndarray],
    folder: Path,
    target: str = "c",
    options: dict[str, str] | None = None,
) -> None:
    path = save(proto, folder / "m.onnx")  # type: ignore[arg-type]
    compiled = compile_model(Request(path, "m", target, options=options or {}))
    got = host_run.build(compiled.view, compiled.texts, folder, host_run.SANITIZE, level="-O1").run(
        [list(inputs.values())]
    )[0]
    for a, b in zip(got, onnxruntime.InferenceSession(str(path)).run(None, inputs), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("begin", [1, 2, 3, 4, 7])
def test_a_kernel_reads_a_slice_of_bytes_that_begins_between_words(begin: int, tmp_path: Path) -> None:
    """Once behind something computed, once behind a concatenation with pieces of its own in place."""
    constants = {
        "b": np.asarray([begin]),
        "e": np.asarray([begin + 40]),
        "axis": np.asarray([0]),
        "k": np.asarray([7]),
        "one": np.asarray([1], np.int8),
    }
    nodes = [
        helper.make_node("Add", ["x", "one"], ["a"]),
        helper.make_node("Slice", ["a", "b", "e", "axis"], ["part"]),
        helper.make_node("TopK", ["part", "k"], ["v", "i"], axis=0),
        helper.make_node("Mul", ["y", "one"], ["c"]),
        helper.make_node("Concat", ["c", "a"], ["both"], axis=0),
        helper.make_node("Slice", ["both", "b", "e", "axis"], ["part2"]),
        helper.make_node("TopK", ["part2", "k"], ["v2", "i2"], axis=0),
        helper.make_node("TopK", ["both", "k"], ["v3", "i3"], axis=0),
    ]
    outputs = [
        tensor(n, (7,), t)
        for v, i in (("v", "i"), ("v2", "i2"), ("v3", "i3"))
        for n, t in ((v, TensorProto.INT8), (i, TensorProto.INT64))
    ]
    proto = model(
        nodes,
        [tensor("x", (60,), TensorProto.INT8), tensor("y", (12,), TensorProto.INT8)],
        outputs,
        constants,
    )
    values = RNG.permutation(np.arange(-60, 60)).astype(np.int8)
    _check(proto, {"x": values[:60], "y": values[60:72]}, tmp_path)


def test_elements_that_a_concatenation_holds_twice_are_written_twice(tmp_path: Path) -> None:
    """The second time in another shape, among others, where it is computed in its place too."""
    constants = {
        "axis": np.asarray(0),
        "4x2": np.asarray([4, 2]),
        "3x4": np.asarray([3, 4]),
        "w": RNG.standard_normal((2, 2)).astype(np.float32),
    }
    nodes = [
        helper.make_node("CumSum", ["x", "axis"], ["a"]),
        helper.make_node("Reshape", ["a", "4x2"], ["b"]),
        helper.make_node("Concat", ["b", "w"], ["c"], axis=0),
        helper.make_node("Reshape", ["c", "3x4"], ["d"]),
        helper.make_node("Concat", ["a", "d"], ["y"], axis=0),
        *(helper.make_node("CumSum", [v, "axis"], [f"sums of {v}"]) for v in "bcd"),
    ]
    shapes = {"y": (5, 4), "sums of b": (4, 2), "sums of c": (6, 2), "sums of d": (3, 4)}
    proto = model(nodes, [tensor("x", (2, 4))], [tensor(n, s) for n, s in shapes.items()], constants)
    _check(proto, {"x": RNG.standard_normal((2, 4)).astype(np.float32)}, tmp_path)


@pytest.mark.parametrize("taken", [True, False])
def test_what_a_branch_joins_to_its_own_was_computed_outside_of_it(taken: bool, tmp_path: Path) -> None:
    """And read by a kernel in it: it stays where it is. What has no elements is joined to it, too."""

    def branch(name: str, nodes: list[onnx.NodeProto]) -> onnx.GraphProto:
        outputs = [tensor(f"{name} {n}", s) for n, s in (("y", (4, 4)), ("sums", (2, 4)), ("none", (0, 4)))]
        for node, output in zip(nodes, outputs, strict=True):
            node.output.append(output.name)
        return helper.make_graph(nodes, name, [], outputs)

    then = [
        helper.make_node("Concat", ["a", "x"], [], axis=0),
        helper.make_node("CumSum", ["a", "axis"], []),
        helper.make_node("Slice", ["x", "2", "2"], []),
    ]
    other = [
        helper.make_node("Concat", ["x", "a"], [], axis=0),
        helper.make_node("Neg", ["a"], []),
        helper.make_node("Slice", ["a", "2", "2"], []),
    ]
    nodes = [
        helper.make_node("CumSum", ["x", "axis"], ["a"]),
        helper.make_node(
            "If",
            ["taken"],
            ["y", "sums", "none"],
            then_branch=branch("then", then),
            else_branch=branch("else", other),
        ),
        helper.make_node("Concat", ["sums", "none"], ["z"], axis=0),
        helper.make_node("CumSum", ["z", "axis"], ["w"]),
    ]
    proto = model(
        nodes,
        [tensor("x", (2, 4)), tensor("taken", (), TensorProto.BOOL)],
        [tensor("y", (4, 4)), tensor("z", (2, 4)), tensor("w", (2, 4)), tensor("none", (0, 4))],
        {"axis": np.asarray(0), "2": np.asarray([2])},
    )
    x = RNG.standard_normal((2, 4)).astype(np.float32)
    _check(proto, {"x": x, "taken": np.asarray(taken)}, tmp_path)


@pytest.mark.parametrize("width", [10, 30, 13])
def test_states_are_slices_that_begin_between_words(width: int, tmp_path: Path) -> None:
    """The streams of wake words: state = concat(state, new)[1:], of an odd number of bytes each."""
    rows = 4
    tensors = [
        T("x", (1, 1, width)),
        T("handle", (), 0),
        T("state", (1, rows, width)),
        T("all", (1, rows + 1, width)),
        T("begin", (3,), 2, (), data=np.asarray([0, 1, 0], np.int32)),
        T("size", (3,), 2, (), data=np.asarray([1, rows, width], np.int32)),
        T("next", (1, rows, width)),
        T("y", (1, rows + 1, width)),
    ]
    del tensors[1]
    pytest.importorskip("tflite")
    import tflite

    resource = T("handle", (), tflite.TensorType.RESOURCE, ())
    tensors = [tensors[0], resource, *tensors[1:]]
    operators = [
        Op("VAR_HANDLE", (), (1,), "VarHandleOptions"),
        Op("READ_VARIABLE", (1,), (2,)),
        Op("CONCATENATION", (2, 0), (3,), "ConcatenationOptions", {"Axis": 1}),
        Op("SLICE", (3, 4, 5), (6,)),
        Op("ASSIGN_VARIABLE", (1, 6), ()),
        Op("MINIMUM", (3, 3), (7,)),
    ]
    path = tmp_path / "m.tflite"
    path.write_bytes(build_tflite(tensors, operators, (0,), (7,)))
    compiled = compile_model(Request(path, "m", "c"))
    xs = [np.asarray(RNG.integers(-128, 128, (1, 1, width)), np.int8) for _ in range(6)]
    got = host_run.build(compiled.view, compiled.texts, tmp_path, host_run.SANITIZE, level="-O1").run(
        [[x] for x in xs]
    )
    past = [np.zeros((1, 1, width), np.int8)] * rows
    for x, (y,) in zip(xs, got, strict=True):
        past.append(x)
        np.testing.assert_array_equal(y, np.concatenate(past[-rows - 1 :], axis=1))


def test_variables_take_over_what_others_were(tmp_path: Path) -> None:
    """Delay lines: a variable's old value, or a window of it, goes to others while it gets a new one; two
    change places.
    """
    x_in, m = Value("x", TensorType(DType.FLOAT32, (4, 3))), Maker()
    takes = {
        "x": lambda old: x_in,
        "all": lambda old: old["x"],
        "rows": lambda old: m.Slice(old["x"], *(constant("k", np.asarray([k])) for k in (1, 3))),
        "flat": lambda old: m.ReshapeTo(old["x"], to=(12,)),
        "left": lambda old: old["right"],
        "right": lambda old: old["left"],
    }
    now = {"x": lambda x, s: x, "all": lambda x, s: s["x"], "rows": lambda x, s: s["x"][1:3]}
    now |= {"flat": lambda x, s: s["x"].reshape(12)}
    now |= {"left": lambda x, s: s["right"], "right": lambda x, s: s["left"]}
    begin = {"x": (4, 3), "all": (4, 3), "rows": (2, 3), "flat": (12,), "left": (2, 2), "right": (2, 2)}
    states = {n: RNG.standard_normal(shape).astype(np.float32) for n, shape in begin.items()}
    variables = Variables()
    old = {name: variables.own(("own", name), name, data) for name, data in states.items()}
    new = {name: take(old) for name, take in takes.items()}
    outputs = [m.Neg(v) for v in old.values()]
    for name, value in new.items():
        variables.assign(("own", name), name, value)
    graph = Graph("g", [x_in], outputs, m.nodes)
    variables.finish(graph)
    compiled = compile_graph(Request(tmp_path / "m", "m", "c"), Model(graph, (), ""), parse_target("c"))
    xs = [RNG.standard_normal((4, 3)).astype(np.float32) for _ in range(3)]
    built = host_run.build(compiled.view, compiled.texts, tmp_path, host_run.SANITIZE, level="-O1")
    for x, got in zip(xs, built.run([[x] for x in xs]), strict=True):
        for (name, state), y in zip(states.items(), got, strict=True):
            np.testing.assert_array_equal(y, -state, name)
        states = {name: take(x, states) for name, take in now.items()}


@pytest.mark.parametrize("vector", ["scalar", "v4", "v8"])
def test_a_row_that_is_looked_up_is_added_behind_a_product(vector: str, tmp_path: Path) -> None:
    """An embedding as the residual of a layer: what the tail reads is at a place that it reads too."""
    constants = {
        "table": RNG.standard_normal((50, 24)).astype(np.float32),
        "w": RNG.standard_normal((16, 24)).astype(np.float32),
    }
    nodes = [
        helper.make_node("Gather", ["table", "ids"], ["e"], axis=0),
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        helper.make_node("Add", ["p", "e"], ["y"]),
    ]
    proto = model(
        nodes,
        [tensor("ids", (1, 3), TensorProto.INT64), tensor("x", (1, 3, 16))],
        [tensor("y", (1, 3, 24))],
        constants,
    )
    _check(
        proto,
        {"ids": np.asarray([[7, 0, 49]]), "x": RNG.standard_normal((1, 3, 16)).astype(np.float32)},
        tmp_path,
        "host",
        {"vector": vector},
    )
