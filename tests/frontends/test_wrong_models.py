"""ONNX models that say what they may not: one message with its code for each problem."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from rejected import compile_, rejected

from onnx_models import model, save, small_cnn, tensor, unary

node = helper.make_node


def _edited(edit: Callable[[onnx.ModelProto], object]) -> onnx.ModelProto:
    proto = small_cnn()
    edit(proto)
    return proto


def _function(name: str, *calls: str, inner: str = "f") -> onnx.FunctionProto:
    steps = [
        node(
            c,
            ["a" if k == 0 else f"t{k}"],
            ["b" if k == len(calls) - 1 else f"t{k + 1}"],
            domain=inner if c[0] == "F" else "",
        )
        for k, c in enumerate(calls)
    ]
    return helper.make_function(
        "f", name, ["a"], ["b"], steps, [helper.make_opsetid("", 18), helper.make_opsetid("f", 1)]
    )


def _called(*functions: onnx.FunctionProto) -> onnx.ModelProto:
    return model(
        [node("F0", ["x"], ["y"], domain="f")],
        [tensor("x", [1])],
        [tensor("y", None)],
        domains={"f": 1},
        functions=functions,
    )


def _two(first: list[onnx.NodeProto], shape: list[int] | None = None) -> onnx.ModelProto:
    return model(
        first,
        [tensor("x", shape or [2])],
        [tensor("y", None)],
        {"w": np.zeros(3, np.float32), "i": np.zeros(2, np.int64)},
    )


def _twice(made: onnx.NodeProto) -> onnx.NodeProto:
    made.attribute.append(helper.make_attribute("axis", -1))
    return made


def _loop_by_numbers() -> onnx.NodeProto:
    """Its body's condition is a tensor of numbers."""
    inputs = [tensor("t", [], TensorProto.INT64), tensor("go", [], TensorProto.BOOL), tensor("a", [2])]
    body = helper.make_graph([node("Neg", ["a"], ["b"])], "body", inputs, [tensor("b", [2])] * 2)
    return node("Loop", ["", "", "x"], ["y"], body=body)


def _packed(count: int, elements: int) -> onnx.ModelProto:
    """Four bits each."""
    w = TensorProto(name="w", data_type=TensorProto.INT4, dims=[elements], raw_data=bytes(count))
    steps = [node("Cast", ["w"], ["v"], to=TensorProto.FLOAT), node("Add", ["x", "v"], ["y"])]
    proto = model(steps, [tensor("x", [1])], [tensor("y", None)], opset=21)
    proto.graph.initializer.append(w)
    return proto


def _loop_with_default() -> onnx.ModelProto:
    """What a turn reads is a constant, and what the turn before gave, by one name."""
    made = _loop_by_numbers()
    body = made.attribute[0].g
    body.input[2].name = "v"
    body.initializer.append(numpy_helper.from_array(np.zeros(2, np.float32), "v"))
    return _two([made])


def _opset(domain: str, version: int) -> onnx.OperatorSetIdProto:
    return helper.make_opsetid(domain, version)


def _in_two_opsets() -> onnx.FunctionProto:
    made = _function("F0", "Relu")
    made.opset_import.append(_opset("ai.onnx", 11))
    return made


def _in_opset(version: int, more: Sequence[str] = ()) -> onnx.FunctionProto:
    """One that stays a function, as it has another opset than the model. more: inputs of its node."""
    made = _function("F0", "Relu")
    made.opset_import[0].version = version
    made.node[0].input.extend(more)
    return made


def _lists() -> onnx.ModelProto:
    """Branches that give sequences, by a condition that is not known."""
    branch = helper.make_graph(
        [node("SequenceConstruct", ["x", "x"], ["s"])], "branch", [], [onnx.ValueInfoProto(name="s")]
    )
    return model(
        [node("If", ["c"], ["y"], then_branch=branch, else_branch=branch)],
        [tensor("x", [2]), tensor("c", [], TensorProto.BOOL)],
        [onnx.ValueInfoProto(name="y")],
    )


WRONG: dict[str, tuple[onnx.ModelProto, str, tuple[str, ...]]] = {
    "unknown operators": (
        _two(
            [
                node("Foo", ["x"], ["a"], name="f1"),
                node("Bar", ["a"], ["b"], domain="com.x", name="b1"),
                node("Foo", ["b"], ["y"], name="f2"),
            ]
        ),
        "E201",
        ("Foo", "com.x.Bar", "'f1', 'f2'", "'b1'"),
    ),
    "dynamic dimensions": (unary("Relu", [1, "width", "height"]), "E203", ("'width'", "--dim width=N")),
    "nameless dynamic dimension": (unary("Relu", [1, None]), "E203", ("--dim x:1=N",)),
    "shapes that do not broadcast": (
        _two([node("Add", ["x", "w"], ["y"], name="add")]),
        "E301",
        ("'add'", "(2,)", "(3,)"),
    ),
    "an attribute twice": (
        _two([_twice(node("Softmax", ["x"], ["y"], axis=0))]),
        "E301",
        ("'axis'", "more than once"),
    ),
    "a loop whose condition is no condition": (
        _two([_loop_by_numbers()]),
        "E301",
        ("condition of the body is float32[2]",),
    ),
    "sequences of branches": (_lists(), "E203", ("a body gives a sequence",)),
    "the element of nothing": (
        _two([node("Optional", [], ["o"]), node("OptionalGetElement", ["o"], ["y"])]),
        "E301",
        ("no element",),
    ),
    "a sequence along no axis": (
        _two([node("SequenceConstruct", ["x"], ["s"]), node("ConcatFromSequence", ["s"], ["y"])]),
        "E301",
        ("'axis' is missing",),
    ),
    "types that differ": (_two([node("Add", ["x", "i"], ["y"], name="add")]), "E301", ("'add'", "int64")),
    "a type that the operator has had since a later opset": (
        model(
            [node("Elu", ["x"], ["y"])],
            [tensor("x", [2], TensorProto.BFLOAT16)],
            [tensor("y", None, TensorProto.BFLOAT16)],
            opset=20,
        ),
        "E301",
        ("opset 20 has double, float, float16", "export the model with opset 22 or later"),
    ),
    "declared type of an output": (
        model([node("Relu", ["x"], ["y"])], [tensor("x", [2])], [tensor("y", [2], TensorProto.INT8)]),
        "E301",
        ("'y'",),
    ),
    "input twice": (
        model([node("Relu", ["x"], ["y"])], [tensor("x", [2]), tensor("x", [2])], [tensor("y", None)]),
        "E102",
        ("'x'",),
    ),
    "written twice": (_two([node("Relu", ["x"], ["y"]), node("Neg", ["x"], ["y"])]), "E102", ("'y'",)),
    "too many inputs": (_two([node("Transpose", ["x", "w"], ["y"], name="t")]), "E102", ("'t'", "2 inputs")),
    "too few inputs": (_two([node("Add", ["x"], ["y"], name="add")]), "E102", ("'add'", "1 inputs")),
    "no outputs": (model([node("Relu", ["x"], ["y"])], [tensor("x", [2])], []), "E102", ("no outputs",)),
    "output of nothing": (
        model([node("Relu", ["x"], ["a"])], [tensor("x", [2])], [tensor("y", None)]),
        "E102",
        ("'y'",),
    ),
    "cycle": (
        _two([node("Add", ["x", "b"], ["a"]), node("Relu", ["a"], ["b"]), node("Relu", ["b"], ["y"])]),
        "E102",
        ("'b'",),
    ),
    "reads itself": (_two([node("Relu", ["y"], ["y"])]), "E102", ("'y'",)),
    "huge input": (unary("Relu", [1, 2**40]), "E202", ("2 GB",)),
    "overflowing input": (unary("Relu", [2**62, 2**62]), "E202", ("2 GB",)),
    "too many dimensions": (unary("Relu", [1] * 3000), "E202", ("3000 dimensions",)),
    "huge Tile": (
        model(
            [node("Tile", ["x", "n"], ["y"])],
            [tensor("x", [1])],
            [tensor("y", None)],
            {"n": np.asarray([2**62])},
        ),
        "E202",
        ("2 GB",),
    ),
    "huge ConstantOfShape": (
        model(
            [node("ConstantOfShape", ["n"], ["y"])],
            [tensor("x", [1])],
            [tensor("y", None)],
            {"n": np.asarray([2**40])},
        ),
        "E202",
        ("2 GB",),
    ),
    "huge constant": (_edited(lambda p: p.graph.initializer[0].dims.append(2**40)), "E102", ("'w1'",)),
    "negative extent": (_edited(lambda p: p.graph.initializer[0].dims.__setitem__(0, -1)), "E102", ("'w1'",)),
    "damaged constant": (
        _edited(lambda p: setattr(p.graph.initializer[0], "raw_data", b"123")),
        "E102",
        ("'w1'",),
    ),
    "a constant with more bytes than it has elements": (_packed(3, 4), "E102", ("'w'", "3 bytes")),
    "a constant with fewer": (_packed(1, 3), "E102", ("'w'", "1 bytes")),
    "an input of a body that is a constant": (_loop_with_default(), "E102", ("'v'", "of a body")),
    "two opsets": (_edited(lambda p: p.opset_import.append(_opset("ai.onnx", 11))), "E102", ("11 and 18",)),
    "two opsets of a function": (_called(_in_two_opsets()), "E102", ("11 and 18",)),
    "no opset": (_edited(lambda p: p.ClearField("opset_import")), "E102", ("opset",)),
    "opset of the future": (_edited(lambda p: setattr(p.opset_import[0], "version", 999)), "E202", ("999",)),
    "opset 0": (_edited(lambda p: setattr(p.opset_import[0], "version", 0)), "E102", ("opset",)),
    "arithmetic on strings": (
        model([node("Neg", ["x"], ["y"])], [tensor("x", [1], TensorProto.STRING)], [tensor("y", None)]),
        "E301",
        ("string",),
    ),
    "complex numbers": (
        model(
            [node("Identity", ["x"], ["y"])], [tensor("x", [1], TensorProto.COMPLEX64)], [tensor("y", None)]
        ),
        "E202",
        ("COMPLEX64",),
    ),
    "sequence": (
        model(
            [node("Relu", ["x"], ["y"])],
            [helper.make_tensor_sequence_value_info("x", 1, [1])],
            [tensor("y", None)],
        ),
        "E202",
        ("sequence",),
    ),
    "input without a type": (_edited(lambda p: p.graph.input[0].ClearField("type")), "E202", ("'x'",)),
    "input without a shape": (
        _edited(lambda p: p.graph.input[0].type.tensor_type.ClearField("shape")),
        "E203",
        ("'x'",),
    ),
    "unknown attribute": (unary("Relu", foo=3), "E202", ("'foo'",)),
    "attribute of a wrong type": (unary("LeakyRelu", alpha="abc"), "E301", ("'alpha'", "'abc'")),
    "unknown element type": (unary("Cast", to=99), "E202", ("99",)),
    "update of another rank": (
        model(
            [node("TensorScatter", ["x", "u"], ["y"])],
            [tensor("x", [1, 4, 3]), tensor("u", [4])],
            [tensor("y", None)],
            opset=24,
        ),
        "E301",
        ("axis 1",),
    ),
    "axis out of range": (unary("Softmax", axis=99), "E301", ("axis 99",)),
    "shape known at run time": (
        model(
            [node("Reshape", ["x", "s"], ["y"])],
            [tensor("x", [1, 4]), tensor("s", [2], TensorProto.INT64)],
            [tensor("y", None)],
        ),
        "E203",
        ("'s'",),
    ),
    "more inputs than a function has": (
        model(
            [node("F0", ["x", "x"], ["y"], domain="f")],
            [tensor("x", [1])],
            [tensor("y", None)],
            domains={"f": 1},
            functions=[_in_opset(17)],
        ),
        "E102",
        ("2 inputs, not 0 to 1",),
    ),
    "more inputs than an operator has, in a function": (
        _called(_in_opset(17, ["a"])),
        "E102",
        ("Relu", "2 inputs"),
    ),
    "function of itself": (_called(_function("F0", "F0")), "E102", ("functions",)),
    "functions without measure": (
        _called(*(_function(f"F{k}", *([f"F{k + 1}"] * 2 if k < 40 else ["Relu"])) for k in range(41))),
        "E102",
        ("functions",),
    ),
    "functions too deep": (
        _called(*(_function(f"F{k}", f"F{k + 1}" if k < 3000 else "Relu") for k in range(3001))),
        "E102",
        ("functions",),
    ),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_model(case: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    proto, code, words = WRONG[case]
    rejected(save(proto, tmp_path / "m.onnx"), tmp_path, capsys, code, *words)


def test_all_problems_at_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    proto = model(
        [node("Softmax", ["x"], ["a"], axis=9, name="n1"), node("Relu", ["x"], ["b"], foo=1, name="n2")],
        [tensor("x", [2, 2])],
        [tensor("a", None)],
    )
    text = rejected(save(proto, tmp_path / "m.onnx"), tmp_path, capsys, "E301", "'n1'", "'n2'")
    assert "[E202]" in text


def test_a_dimension_behind_one_that_is_refused_is_not_unknown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = save(unary("Relu", [1, None, "width"]), tmp_path / "m.onnx")
    assert compile_(path, tmp_path / "out", "--dim", "width=4") == 1
    said = capsys.readouterr().err
    assert "--dim x:1=N" in said and "unknown" not in said


@pytest.mark.parametrize("version", [1, 2, onnx.defs.onnx_opset_version()])
def test_opsets_from_the_first_to_the_newest_are_read(version: int, tmp_path: Path) -> None:
    proto = model([node("Relu", ["x"], ["y"])], [tensor("x", [2])], [tensor("y", [2])], opset=version)
    assert compile_(save(proto, tmp_path / "m.onnx"), tmp_path / "out") == 0


def test_a_branch_that_does_not_fit_may_be_left_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As of a network for two sample rates, of which one length of the input fits one."""
    branches = [
        helper.make_graph([node("MatMul", ["x", w], [y])], y, [], [tensor(y, None)])
        for w, y in (("of8k", "a"), ("of16k", "b"))
    ]
    proto = model(
        [
            node("Equal", ["rate", "low"], ["is8k"]),
            node("If", ["is8k"], ["y"], then_branch=branches[0], else_branch=branches[1]),
        ],
        [tensor("x", [1, 4]), tensor("rate", [], TensorProto.INT64)],
        [tensor("y", None)],
        {"low": np.asarray(8000), "of8k": np.ones((2, 3), np.float32), "of16k": np.ones((4, 3), np.float32)},
    )
    path = save(proto, tmp_path / "m.onnx")
    rejected(
        path, tmp_path, capsys, "E301", "make the input that decides it a constant (--constant INPUT=VALUE)"
    )
    assert compile_(path, tmp_path / "built", "--constant", "rate=16000") == 0
