"""Budgets: the error says where the bytes are, and what would help is measured."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from onnx import TensorProto, helper

from aot_model.cli import main
from aot_model.emit import budgets
from onnx_models import model, save, tensor, unary

Captured = pytest.CaptureFixture[str]


def hint(capsys: Captured, words: str) -> str:
    text = capsys.readouterr().err
    assert words in text and text.count("[E402]") == 1, text
    return text.partition("\n  hint: ")[2].strip()


def test_other_options_that_need_less_are_named_with_their_sizes(tmp_path: Path, capsys: Captured) -> None:
    path = save(unary("Relu", (1, 256)), tmp_path / "m.onnx")
    assert main(["compile", str(path), "-o", str(tmp_path / "o"), "--io=workspace", "--max-ram=1000"]) == 1
    assert hint(capsys, "needs 1,024 bytes of RAM, the budget is 1,000 [E402]\nm for host").startswith(
        "`--io caller` needs 0; no placement of these layers needs less"
    )
    assert main(["compile", str(path), "-o", str(tmp_path / "o"), "--io=caller", "--max-ram=1000"]) == 0


def test_what_is_live_at_the_peak_is_named(tmp_path: Path, capsys: Captured) -> None:
    proto = model(
        [
            helper.make_node("Softmax", ["x"], ["s"], name="wide"),
            helper.make_node("CumSum", ["s", "axis"], ["y"], name="sum"),
        ],
        [tensor("x", (1, 300))],
        [tensor("y", (1, 300))],
        {"axis": np.array(1)},
    )
    path = save(proto, tmp_path / "m.onnx")
    assert main(["compile", str(path), "-o", str(tmp_path / "o"), "--max-ram=8"]) == 1
    said = hint(capsys, "bytes of RAM, the budget is 8")
    assert "what is live at the peak must shrink, first of all '" in said and "'s' (1,200)" in said


@pytest.mark.parametrize(("kind", "said"), [(TensorProto.FLOAT, True), (TensorProto.INT32, False)])
def test_flash(kind: int, said: bool, tmp_path: Path, capsys: Captured) -> None:
    values = np.arange(1, 9, dtype=helper.tensor_dtype_to_np_dtype(kind))
    path = save(
        model(
            [helper.make_node("Mul", ["x", "c"], ["y"], name="scale")],
            [tensor("x", (1, 8), kind)],
            [tensor("y", (1, 8), kind)],
            {"c": values},
        ),
        tmp_path / "m.onnx",
    )
    command = ["compile", str(path), "-o", str(tmp_path / "o"), "--max-flash=31"]
    assert main(command) == 1
    text = hint(capsys, "needs 32 bytes of flash for constants, the budget is 31")
    assert ("32 of them are real numbers" in text) == said and "--params external" in text
    assert main([*command, "--params=external"]) == 1
    assert "--params external" not in hint(capsys, "bytes of flash")


@pytest.mark.parametrize("target", ["c", "host", "cortex-m4"])
def test_memory_beyond_what_a_program_may_have(target: str, tmp_path: Path, capsys: Captured) -> None:
    """Two tensors of 1.2 GB each: C of 32 bits has no array for both."""
    shape = (300_000_000,)
    add = helper.make_node("Add", ["a", "b"], ["y"], name="node")
    path = save(
        model([add], [tensor("a", shape), tensor("b", shape)], [tensor("y", shape)]), tmp_path / "m.onnx"
    )
    command = ["compile", str(path), "-o", str(tmp_path / "o"), f"--target={target}"]
    assert main([*command, "--io=workspace"]) == 1
    error = capsys.readouterr().err
    assert "2,400,000,000 bytes of memory, 2,147,483,647 are the most that a program may have" in error
    assert "[E401]" in error and "live at the peak" in error and not (tmp_path / "o").exists()
    assert main(command) == 0


def test_constants_beyond_what_a_program_may_have(
    tmp_path: Path, capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    add = helper.make_node("Add", ["x", "c"], ["y"], name="node")
    values = np.arange(8, dtype=np.float32)
    path = save(
        model([add], [tensor("x", (1, 8))], [tensor("y", (1, 8))], {"c": values}), tmp_path / "m.onnx"
    )
    command = ["compile", str(path), "-o", str(tmp_path / "o")]
    monkeypatch.setattr(budgets, "MAX_BYTES", 31)
    assert main(command) == 1
    assert hint(capsys, "32 bytes of constants, 31 are the most that a program may have") == ""
    monkeypatch.setattr(budgets, "MAX_BYTES", 32)
    assert main(command) == 0
