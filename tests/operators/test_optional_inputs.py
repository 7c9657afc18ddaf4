"""Every optional input that an operator knows is there in one of its samples at least."""

from __future__ import annotations

import inspect
import re
from collections import defaultdict

import onnx
import pytest
from rows import label_of, registry_rows, rows_of_sequences

from aot_model.ir.operator import Operator
from aot_model.ops.registry import OPERATORS, load_all

load_all()
NOT_GIVEN = {
    "com.microsoft.Attention": {6},  # refused
    "com.microsoft.GroupQueryAttention": {14, 15},  # not in ONNX Runtime here: test_attention_inputs.py
    "com.microsoft.MoE": {6},  # refused
    "com.microsoft.MultiHeadAttention": {8, 9},  # refused
    "com.microsoft.NhwcConv": {3},  # of NhwcFusedConv, which shares the class
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


def test_what_is_asked_for_is_found() -> None:
    assert _asked(OPERATORS["com.microsoft", "GroupQueryAttention"]) >= {3, 4, 6, 9, 11, 14, 15}
    assert _asked(OPERATORS["", "Pad"]) >= {2, 3}
