"""Results without elements are constants, whatever they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, helper

from aot_model.ir.graph import Graph
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.elementwise import op
from aot_model.ops.registry import OPERATORS, Build, load_all
from aot_model.passes.fold_constants import fold_constants
from batch import Case, run_cases
from onnx_models import model, tensor

load_all()


def _folded(kind: str, shape: Sequence[int], **attributes: Any) -> bool:
    x = Value("x", TensorType(DType.FLOAT32, tuple(shape)))
    graph = Graph("g", [x])
    graph.outputs = [Build(graph.nodes, "n").many(OPERATORS["", kind](**attributes), x)[0]]
    changed = fold_constants(graph)
    assert changed is graph.outputs[0].is_const is (not graph.nodes)
    return changed


@pytest.mark.parametrize(
    ("kind", "shape", "known"),
    [
        ("Relu", (0, 3), True),
        ("Relu", (2, 0), True),
        ("Relu", (2, 3), False),
        ("NonZero", (0,), False),  # how many there are is a result, too
    ],
)
def test_results_without_elements_are_known(kind: str, shape: tuple[int, ...], known: bool) -> None:
    assert _folded(kind, shape) is known


def test_sums_over_nothing_have_elements() -> None:
    assert not _folded("ReduceMax", (0,))


@pytest.mark.parametrize("mark", ["effects", "deferred"])
def test_what_runs_for_another_reason_stays(mark: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(type(op("Relu")), mark, True)
    assert not _folded("Relu", (0, 3))


def test_programs_do_not_compute_them() -> None:
    """A transform of no rows read beyond memory."""
    node = helper.make_node("DFT", ["x"], ["y"])
    proto = model([node], [tensor("x", (0, 8, 1))], [tensor("y", (0, 8, 2))], opset=20)
    (outcome,) = run_cases([Case("dft", proto, (np.zeros((0, 8, 1), np.float32),))], "c", jobs=1)
    assert outcome.status == "ok", outcome.message
    assert outcome.outputs[0].shape == (0, 8, 2)


def test_zero_points_that_make_the_result_larger_are_refused() -> None:
    """... of constants, too, which took the shape that came out."""
    node = helper.make_node("MatMulInteger", ["a", "b", "z"], ["y"], name="product")
    constants = {k: np.ones(s, np.uint8) for k, s in (("a", (3, 5)), ("b", (5, 4)), ("z", (2, 3, 1)))}
    constants["z"][0] = 0
    whole = helper.make_tensor_value_info("y", TensorProto.INT32, None)
    (outcome,) = run_cases([Case("product", model([node], [], [whole], constants), ())], "c", jobs=1)
    assert outcome.status == "refused" and "do not fit" in outcome.message, outcome
