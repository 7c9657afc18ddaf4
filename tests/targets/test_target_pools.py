"""Pools that only some targets may touch, where several compute a model."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper
from vector_unit import UNIT, compiled, install, outputs

from aot_model.errors import CompileError
from aot_model.memory import Pool
from onnx_models import model, tensor

X = np.asarray([[1, 2, 3, 4], [0, -1, 2, -3]], np.float32)


def mixed() -> onnx.ModelProto:
    """The unit takes Relu; Softmax, in several steps, stays on the processor."""
    kinds = ["Relu", "Softmax", "Relu"]
    names = ["x", *(f"t{k}" for k in range(1, len(kinds))), "z"]
    nodes = [
        helper.make_node(kind, [a], [b], name=b) for kind, a, b in zip(kinds, names, names[1:], strict=False)
    ]
    return model(nodes, [tensor("x", [2, 4])], [tensor("z", [2, 4])])


def touched(result: object, target: str) -> set[str]:
    """Pools of the arguments of a target's calls."""
    view = result.view  # type: ignore[attr-defined]
    return {
        view.addresses.of[b][0]
        for call in view.program.calls()
        if call.target == target
        for b in call.arguments
        if b in view.addresses.of
    }


def test_each_target_stays_in_the_pools_that_are_open_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The processor's own memory is preferred, and not for what the unit reads or writes."""
    install(monkeypatch, UNIT)
    pools = (Pool("own", targets=("c",)), Pool("shared", targets=("c", "unit")))
    result = compiled(mixed(), tmp_path, "unit,c", pools=pools)
    assert touched(result, "unit") == {"shared"} and "own" in touched(result, "")
    (got,) = outputs(result, tmp_path, X)
    e = np.exp(np.maximum(X, 0))
    np.testing.assert_allclose(got, e / e.sum(1, keepdims=True), rtol=1e-5)


def test_no_pool_is_open_to_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, UNIT)
    with pytest.raises(
        CompileError,
        match=r"no pool is open to all targets that touch '.*' \(.*\) \[E401\]\n"
        r"  a: open to c\n  b: open to unit",
    ) as error:
        compiled(mixed(), tmp_path, "unit,c", pools=(Pool("a", targets=("c",)), Pool("b", targets=("unit",))))
    assert error.value.problems[0].code == "E401"
    with pytest.raises(CompileError, match="'npu' is not a target of this compilation"):
        compiled(mixed(), tmp_path, "unit,c", pools=(Pool("a", targets=("npu",)),))
