"""Targets: options, inheritance kernel by kernel, passes of their own, and clear errors where a plug-in
fails.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from onnx import helper

from aot_model.errors import CompileError
from aot_model.ir.graph import Graph
from aot_model.ir.program import Program
from aot_model.kernels.target import Attribute, Target
from aot_model.pipeline import Request, compile_model
from aot_model.targets import registry
from aot_model.targets.builtin import BUILTIN
from aot_model.targets.registry import parse_target
from onnx_models import model, save, tensor


@pytest.fixture
def dense(tmp_path: Path) -> Path:
    w = np.asarray(np.arange(12).reshape(4, 3), dtype=np.float32)
    nodes = [helper.make_node("MatMul", ["x", "w"], ["m"]), helper.make_node("Relu", ["m"], ["y"])]
    return save(model(nodes, [tensor("x", (1, 4))], [tensor("y", (1, 3))], {"w": w}), tmp_path / "dense.onnx")


def install(monkeypatch: pytest.MonkeyPatch, target: Target) -> None:
    known = {**{t.name: t for t in BUILTIN}, target.name: target}
    monkeypatch.setattr(registry, "targets", lambda: known)


def test_kernels_are_inherited() -> None:
    """A core has its own integer kernels first, and the float kernels of portable C last."""
    names = [k.name for t in parse_target("cortex-m55").lineage() for k in t.kernels]
    assert names.index("int8 convolution (Helium)") < names.index("int8 convolution (DSP extension)")
    assert names.index("int8 convolution (DSP extension)") < names.index("int8 convolution (plain C)")
    assert "float32 convolution" in names


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("cortex-m5", "did you mean"),
        ("cortex-m4,speed", "key=value"),
        ("cortex-m4,optimize=fast", "speed, size, balanced"),
        ("c,nope=1", "has no option"),
    ],
)
def test_wrong_targets(text: str, said: str) -> None:
    with pytest.raises(CompileError, match=said) as error:
        parse_target(text)
    assert error.value.problems[0].code == "E501"


def test_options_are_typed() -> None:
    target = Target(
        "t", "a target", attributes={"lanes": Attribute(4, "how many"), "fast": Attribute(False, "whether")}
    )
    chosen = target.with_options({"lanes": "0x10", "fast": "on"})
    assert (chosen.option("lanes"), chosen.option("fast"), target.option("lanes")) == (16, True, 4)
    with pytest.raises(CompileError, match="whole number"):
        target.with_options({"lanes": "many"})


def test_passes_run_at_their_phases(dense: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def first(graph: Graph) -> bool:
        seen.append(f"graph {[n.kind for n in graph.nodes]}")
        return False

    def lowered(program: Program) -> None:
        seen.append(f"calls {len(list(program.calls()))}")

    def planned(program: Program) -> None:
        seen.append("planned")

    target = Target(
        "mine",
        "for this test",
        parse_target("cortex-m4"),
        graph_passes={"after-partition": (first,)},
        program_passes={"after-planning": (planned,), "after-lowering": (lowered,)},
    )
    install(monkeypatch, target)
    compile_model(Request(dense, "dense", "mine"))
    assert seen == ["graph ['MatMul', 'Relu']", "calls 1", "planned"]


@pytest.mark.parametrize("phase", ["before-partition", "after-lowering"])
def test_a_failing_pass_names_target_and_hook(
    phase: str, dense: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(subject: object) -> bool:
        raise ValueError("no such unit")

    hooks = (
        {"graph_passes": {phase: (broken,)}}
        if phase == "before-partition"
        else {"program_passes": {phase: (broken,)}}
    )
    install(monkeypatch, replace(Target("mine", "for this test", parse_target("cortex-m4")), **hooks))
    with pytest.raises(
        CompileError, match=f"target 'mine': pass 'broken' \\({phase}\\) failed: ValueError: no such unit"
    ) as error:
        compile_model(Request(dense, "dense", "mine"))
    assert error.value.problems[0].code == "E502"
