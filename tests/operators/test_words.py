"""Attributes that are words: one that nobody knows is refused, never taken for another."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import pytest
from onnx import helper
from rows import OPERATORS, label_of, onnx_model, rows_of

from aot_model.errors import CompileError
from aot_model.ops.registry import listed
from aot_model.pipeline import Request, compile_model

FREE = {"pattern", "delimiter", "default_string", "locale"}
"""Text of the user's."""
WORDS = [
    (kind, f.name)
    for _, kind in sorted(OPERATORS.items())
    for f in fields(kind)
    if str(f.type).startswith("str")
    and f.name not in FREE
    and kind.domain != "aot"
    and rows_of(kind)
    and rows_of(kind)[0].in_onnx
]


@pytest.mark.parametrize(("kind", "attribute"), WORDS, ids=[f"{label_of(k)}-{a}" for k, a in WORDS])
def test_bogus(kind: type, attribute: str, tmp_path: Path) -> None:
    proto = onnx_model(rows_of(kind)[0])
    node = proto.graph.node[0]
    others = [a for a in node.attribute if a.name != attribute]
    del node.attribute[:]
    node.attribute.extend([*others, helper.make_attribute(attribute, "bogus")])
    (tmp_path / "m.onnx").write_bytes(proto.SerializeToString())
    with pytest.raises(CompileError, match=r"bogus|E20[12]"):
        compile_model(Request(tmp_path / "m.onnx", "m", "c"))


@pytest.mark.parametrize(
    ("count", "end"), [(15, "14]"), (16, "15]"), (17, "15 and 1 more]"), (1016, "15 and 1,000 more]")]
)
def test_long_lists_of_messages_end(count: int, end: str) -> None:
    assert listed(range(count)).endswith(f", {end}")
