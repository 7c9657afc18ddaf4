"""Every optional input that an operator knows is there in one of its samples at least."""

from __future__ import annotations

import inspect
import re
from collections import defaultdict
from pathlib import Path

import onnx
import pytest
from onnx import helper
from rows import label_of, registry_rows, rows_of_sequences

from aot_model.errors import CompileError
from aot_model.ir.operator import MANY, Operator
from aot_model.ops.registry import OPERATORS, load_all
from aot_model.pipeline import Request, compile_model
from onnx_models import model, tensor

load_all()
NOT_GIVEN = {
    "com.microsoft.Attention": {6},  # refused
    "com.microsoft.GroupQueryAttention": {14, 15},  # not in ONNX Runtime here: test_attention_inputs.py
    "com.microsoft.MoE": {6},  # refused
    "com.microsoft.MultiHeadAttention": {8, 9},  # refused
    "com.microsoft.NhwcConv": {3},  # of NhwcFusedConv, which shares the class
}
NOT_READ = {
    "com.microsoft.GroupQueryAttention": {12, 13},  # scales of a quantised cache: its attributes are refused
    "com.microsoft.MoE": {7},  # comes with 6
}
KINDS = sorted(OPERATORS.values(), key=label_of)


def _asked(kind: type[Operator]) -> set[int]:
    """By the text of its classes, and the standard."""
    text = ""
    for c in kind.__mro__:
        if c.__module__.startswith("aot_model.ops") and c.__qualname__ in vars(inspect.getmodule(c)):
            text += inspect.getsource(c)
    found = {int(n) for n in re.findall(r"\b(?:present|static)\(\s*inputs, (\d+)", text)}
    if kind.domain in ("", "ai.onnx.ml") and onnx.defs.has(kind.name, kind.domain):
        inputs = onnx.defs.get_schema(kind.name, kind.domain).inputs
        optional = onnx.defs.OpSchema.FormalParameterOption.Optional
        found |= {k for k, p in enumerate(inputs) if p.option == optional}
    return found


def _given() -> dict[type[Operator], set[int]]:
    found: dict[type[Operator], set[int]] = defaultdict(set)
    for row in (*registry_rows(), *rows_of_sequences()):
        found[row.kind] |= {k for k, x in enumerate(row.sample.inputs) if x is not None}
    return found


@pytest.fixture(scope="module")
def given() -> dict[type[Operator], set[int]]:
    return _given()


@pytest.mark.parametrize("kind", KINDS, ids=label_of)
def test_inputs_are_given(kind: type[Operator], given: dict[type[Operator], set[int]]) -> None:
    assert _asked(kind) - given[kind] == NOT_GIVEN.get(label_of(kind), set())


@pytest.mark.parametrize("kind", [k for k in KINDS if k.domain == "com.microsoft"], ids=label_of)
def test_no_input_is_passed_over(kind: type[Operator], given: dict[type[Operator], set[int]]) -> None:
    """Onnx does not say how many inputs these have, and newer releases of ONNX Runtime add some."""
    if kind.name == "QLinearConcat":
        assert kind.most_inputs == MANY
        return
    known = given[kind] | NOT_GIVEN.get(label_of(kind), set()) | NOT_READ.get(label_of(kind), set())
    assert set(range(kind.most_inputs)) <= known


@pytest.mark.parametrize(
    ("domain", "name", "shapes", "words"),
    [
        ("com.microsoft", "FusedMatMul", [(3, 3)] * 3, "has 3 inputs, of which the first 2 are supported"),
        # Of opset 11, in a file of opset 1: as many as its first form has.
        ("", "GatherND", [(3, 3)] * 3, "has 3 inputs, not 2"),
    ],
)
def test_more_inputs_than_there_are(
    domain: str, name: str, shapes: list[tuple[int, ...]], words: str, tmp_path: Path
) -> None:
    names = [f"x{k}" for k in range(len(shapes))]
    node = helper.make_node(name, names, ["y"], domain=domain)
    given = [tensor(n, shape) for n, shape in zip(names, shapes, strict=True)]
    proto = model([node], given, [tensor("y", [3, 3])], {}, opset=1)
    onnx.save(proto, tmp_path / "m.onnx")
    with pytest.raises(CompileError, match=words):
        compile_model(Request(tmp_path / "m.onnx", "m"))


def test_what_is_asked_for_is_found() -> None:
    assert _asked(OPERATORS["com.microsoft", "GroupQueryAttention"]) >= {3, 4, 6, 9, 11, 14, 15}
    assert _asked(OPERATORS["", "Pad"]) >= {2, 3}
