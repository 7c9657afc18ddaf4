"""The outputs of a model have the names of the file, whatever computes them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest
from onnx import helper

from aot_model.errors import CompileError
from aot_model.pipeline import Request, compile_model, write
from batch import Case, run_cases
from onnx_models import model, save, tensor

X = np.arange(-3, 3, dtype=np.float32).reshape(2, 3)
ONE = {"one": np.asarray(1, np.int64)}


def _branches(operator: str) -> onnx.ModelProto:
    """A choice that is known: what a branch gives has the branch's name for it."""
    then, other = (
        helper.make_graph([helper.make_node(o, ["x"], [f"in_{o}"])], o, [], [tensor(f"in_{o}", (2, 3))])
        for o in (operator, "Neg")
    )
    node = helper.make_node("If", ["yes"], ["y"], then_branch=then, else_branch=other)
    return model([node], [tensor("x", (2, 3))], [tensor("y", (2, 3))], {"yes": np.asarray(True)})


def _function() -> onnx.ModelProto:
    """What a function gives has the name that it has there: one with defaults is not inlined."""
    body = [helper.make_node("LeakyRelu", ["a"], ["b"])]
    body[0].attribute.append(
        onnx.AttributeProto(name="alpha", ref_attr_name="slope", type=onnx.AttributeProto.FLOAT)
    )
    leaky = helper.make_function(
        "own", "Leaky", ["a"], ["b"], body, [helper.make_opsetid("", 17)],
        attribute_protos=[helper.make_attribute("slope", 0.5)],
    )  # fmt: skip
    return model(
        [helper.make_node("Leaky", ["x"], ["y"], domain="own")],
        [tensor("x", (2, 3))], [tensor("y", (2, 3))], domains={"own": 1}, functions=[leaky], opset=17,
    )  # fmt: skip


def _item(*outputs: str) -> onnx.ModelProto:
    """Elements of a sequence, an input and what a node computes: under their own name or another."""
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node("SequenceConstruct", ["x", "r"], ["s"]),
        helper.make_node("SequenceAt", ["s", "zero"], ["same"]),
        helper.make_node("SequenceAt", ["s", "one"], ["relu"]),
        helper.make_node("SequenceAt", ["s", "one"], ["again"]),
    ]
    known = {**ONE, "zero": np.asarray(0, np.int64)}
    return model(nodes, [tensor("x", (2, 3))], [tensor(o, (2, 3)) for o in outputs], known)


def _crossed() -> onnx.ModelProto:
    """The branches' names are those of each other's outputs."""
    nodes = []
    for name, of, operator in (("y", "z", "Relu"), ("z", "y", "Neg")):
        branch = helper.make_graph([helper.make_node(operator, ["x"], [of])], of, [], [tensor(of, (2, 3))])
        nodes.append(helper.make_node("If", ["yes"], [name], then_branch=branch, else_branch=branch))
    outputs = [tensor("y", (2, 3)), tensor("z", (2, 3))]
    return model(nodes, [tensor("x", (2, 3))], outputs, {"yes": np.asarray(True)})


RELU = np.maximum(X, 0)
CASES: list[tuple[str, onnx.ModelProto, dict[str, Any]]] = [
    ("a branch", _branches("Relu"), {"y": RELU}),
    ("a branch that gives an input", _branches("Identity"), {"y": X}),
    ("a function", _function(), {"y": np.where(X < 0, X / 2, X)}),
    ("an element", _item("relu"), {"relu": RELU}),
    ("an input as an element", _item("same"), {"same": X}),
    ("one value twice", _item("relu", "again"), {"relu": RELU, "again": RELU}),
    ("one value as an output of its own, too", _item("again", "r"), {"again": RELU, "r": RELU}),
    ("names of each other's", _crossed(), {"y": RELU, "z": -X}),
    ("all of them", _item("r", "same", "relu", "again"), {"r": RELU, "same": X, "relu": RELU, "again": RELU}),
]


@pytest.mark.parametrize(("proto", "wanted"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_outputs_have_their_names(proto: onnx.ModelProto, wanted: dict[str, Any], tmp_path: Path) -> None:
    write(compile_model(Request(save(proto, tmp_path / "m.onnx"), "m", "c")), tmp_path)
    told = json.loads((tmp_path / "m.json").read_text())
    assert [o["name"] for o in told["outputs"]] == list(wanted)
    assert [i["name"] for i in told["inputs"]] == ["x"]
    for name in wanted:
        assert f" *{name}" in (tmp_path / "m.h").read_text()
    (outcome,) = run_cases([Case("named", proto, (X,))], "c", flags=("-O0",))
    assert outcome.status == "ok", outcome.message
    for given, expected in zip(outcome.outputs, wanted.values(), strict=True):
        np.testing.assert_array_equal(given, expected)


ROWS = """<ir_version: 9, opset_import: ["" : 18]>
g (float[2,3] x, bool[2] mask) => ({outputs}) <bool yes = {{1}}>
{{
    p = Compress <axis = 0> (x, mask)
    y = If (yes) <then_branch = a () => (float[n,3] p) {{}},
                  else_branch = b () => (float[2,3] q) {{ q = Neg (x) }}>
    z = If (yes) <then_branch = a () => (float[n,3] p) {{}},
                  else_branch = b () => (float[2,3] q) {{ q = Neg (x) }}>
    r = If (yes) <then_branch = c () => (float[n,3] t) {{ t = Compress <axis = 0> (x, mask) }},
                  else_branch = b () => (float[2,3] q) {{ q = Neg (x) }}>
}}"""


@pytest.mark.parametrize("names", ["y", "yz", "yp", "zpy", "r"])
def test_rows_whose_number_depends_on_data(names: str, tmp_path: Path) -> None:
    """Each has its own name, and so has its shape."""
    proto = onnx.parser.parse_model(ROWS.format(outputs=", ".join(f"float[n,3] {n}" for n in names)))
    write(compile_model(Request(save(proto, tmp_path / "m.onnx"), "m", "c")), tmp_path)
    told = json.loads((tmp_path / "m.json").read_text())
    assert [o["name"] for o in told["outputs"]] == [*names, *(f"{n}.shape" for n in names)]
    (outcome,) = run_cases([Case("rows", proto, (X, np.asarray([False, True])))], "c", flags=("-O0",))
    assert outcome.status == "ok", outcome.message
    assert outcome.shapes == dict.fromkeys(names, (1, 3))
    for given in outcome.outputs[: len(names)]:
        np.testing.assert_array_equal(given[:1], X[1:])


@pytest.mark.parametrize("node", ["SequenceEmpty () ", "Optional <type = float[2,3]> ()"])
def test_outputs_that_are_nothing(node: str, tmp_path: Path) -> None:
    """They have no place in the program's structure, where the other outputs would move up."""
    kind = "seq" if node.startswith("Sequence") else "optional"
    text = f"""<ir_version: 9, opset_import: ["" : 18]>
        g (float[2,3] x) => ({kind}(float[2,3]) none, float[2,3] y)
        {{ none = {node}  y = Relu (x) }}"""
    proto = onnx.parser.parse_model(text)
    with pytest.raises(CompileError, match="output 'none' is nothing"):
        compile_model(Request(save(proto, tmp_path / "m.onnx"), "m", "c"))
