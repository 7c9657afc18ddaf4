"""Integers that are all known are computed by the compiler, never where C would wrap."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from aot_model.ir.evaluate import evaluate
from aot_model.ir.expr import Const, call, cast, const, load, select, var
from aot_model.ir.index import substitute
from aot_model.ir.types import DType
from aot_model.ir.values import constant
from aot_model.pipeline import Request, compile_model
from onnx_models import model, save, tensor


@pytest.mark.parametrize(
    ("op", "a", "b", "expected"),
    [("add", -1, 6, 5), ("sub", 3, 9, -6), ("mul", -4, 5, -20), ("min", -7, 2, -7), ("max", -7, 2, 2)],
)
def test_known_integers(op: str, a: int, b: int, expected: int) -> None:
    i = var("i", 9)
    found = substitute(call(op, cast(i, DType.INT64), const(b, DType.INT64)), {i: const(a)})
    assert isinstance(found, Const) and found.value == expected and found.dtype is DType.INT64


def test_what_would_wrap_is_left_to_c() -> None:
    i = var("i", 9)
    for op, other in (("add", 2**31 - 1), ("mul", 2**31 - 1), ("sub", -(2**31))):
        assert not isinstance(substitute(call(op, i, const(other)), {i: const(3)}), Const)
    assert not isinstance(substitute(cast(call("add", i, const(300)), DType.INT8), {i: const(0)}), Const)


def test_a_constant_without_elements_is_not_read() -> None:
    """As of an attention without a past: what guards the load never holds."""
    i = var("i", 4)
    nothing = constant("past", np.zeros((2, 0), np.float32))
    guarded = select(
        call("lt", i, const(-1), dtype=DType.BOOL), load(nothing, (const(1), i)), const(2.5, DType.FLOAT32)
    )
    assert evaluate(guarded, (i,), (4,)).tolist() == [2.5] * 4


def test_a_constant_index_is_a_number(tmp_path: Path) -> None:
    nodes = [helper.make_node("Gather", ["x", "last"], ["y"], axis=1)]
    path = save(
        model(nodes, [tensor("x", [4, 6])], [tensor("y", [4])], {"last": np.asarray(-1)}), tmp_path / "m.onnx"
    )
    text = compile_model(Request(path, "m", "c")).texts["m.c"]
    assert "y[i] = x[i * 6 + 5];" in text
