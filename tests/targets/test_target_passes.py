"""Patterns and passes of a target: what they see and may change, and what is said when they fail."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from vector_unit import UNIT, X, Y, compiled, elementwise, install, outputs, pair, raising, refused, unit

from aot_model.ir.graph import Graph
from aot_model.ir.pattern import op
from aot_model.ir.program import Buffer, Program, Role
from aot_model.ir.values import Value
from aot_model.kernels.arguments import Argument, written
from aot_model.partition.lower import RegionSite
from aot_model.partition.offload import Claim
from aot_model.partition.region import Region


@pytest.mark.parametrize(
    ("claim", "said"),
    [
        (Claim("add", op("Add", where=raising)), "pattern 'add' failed: ValueError: out of order"),
        (Claim("add", op("Add"), raising), "check of pattern 'add' failed: ValueError: out of order"),
        (Claim("add", op("Add"), lambda match, target: 7),
         "check of pattern 'add': returned a int, not a str"),  # type: ignore[arg-type, return-value]
        (Claim("add", op("Add"), lambda match, target: match.value("nowhere")),
         "check of pattern 'add' failed: KeyError: 'nowhere'"),  # type: ignore[arg-type, return-value]
    ])  # fmt: skip
def test_wrong_patterns(claim: Claim, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, unit(patterns=(claim,)))
    assert said in refused(pair("Add"), tmp_path)


def softmax(region: Region, build: RegionSite) -> None:
    x, y = region.graph.inputs[0], region.graph.outputs[0]
    build.call(
        "softmax",
        "    for (int k = 0; k < 8; ++k) {\n        y[k] = x[k] + 100.0f;\n    }",
        [Argument("x", x), written("y", y)],
    )


@pytest.mark.parametrize("accept", [True, False])
def test_operators_are_kept_whole_for_a_target(
    accept: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A softmax is one node for the target that asks for it, and what it always was when the target does not
    take it.
    """
    claim = Claim("softmax", op("Softmax"), lambda match, target: None if accept else "not today")
    install(monkeypatch, unit(patterns=(claim,), keep=frozenset({"Softmax"}), lower=softmax))
    result = compiled(pair("Softmax"), tmp_path, "unit,c")
    assert [(a.operator, a.pattern) for a in result.assignments] == [("Softmax", "softmax" if accept else "")]
    e = np.exp(X - X.max(1, keepdims=True))
    np.testing.assert_allclose(
        outputs(result, tmp_path, X, Y)[0], X + 100 if accept else e / e.sum(1, keepdims=True), rtol=1e-5
    )


def test_passes_see_what_their_target_lowers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    def note(phase: str) -> Any:
        def see(graph: Graph) -> bool:
            seen.append(f"{phase} {graph.name} {[n.kind for n in graph.nodes]}")
            return False

        return see

    def program_pass(program: Program) -> None:
        seen.append(f"program {[c.op for c in program.calls()]}")

    hooks = {p: (note(p),) for p in ("before-partition", "after-partition")}
    install(
        monkeypatch,
        replace(
            UNIT,
            graph_passes=hooks,
            program_passes={"after-lowering": (program_pass,), "after-planning": (program_pass,)},
        ),
    )
    compiled(pair("Add", "Tanh", "Mul"), tmp_path, "unit,c")
    assert seen == [
        "before-partition test ['Add', 'Tanh', 'Mul']",
        "after-partition unit_0 ['Add']",
        "after-partition unit_1 ['Mul']",
        *["program ['unit:add', 'Tanh', 'unit:mul']"] * 2,
    ]


def test_a_pass_before_the_partition_makes_what_patterns_take(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Subtraction becomes addition of the negative, which the unit has."""
    from aot_model.ir.graph import Node
    from aot_model.ops.elementwise import op as operator_named

    def negate(graph: Graph) -> bool:
        nodes = []
        for n in graph.nodes:
            if n.kind == "Sub" and n.inputs[1] is not None:
                negative = Value(f"{n.name}.negative", n.inputs[1].type)
                nodes.append(Node(operator_named("Neg"), [n.inputs[1]], [negative], n.name))
                n = Node(operator_named("Add"), [n.inputs[0], negative], n.outputs, n.name)
            nodes.append(n)
        graph.nodes = nodes
        return True

    install(
        monkeypatch,
        replace(unit(patterns=(elementwise("Add"),)), graph_passes={"before-partition": (negate,)}),
    )
    result = compiled(pair("Sub"), tmp_path, "unit,c")
    assert [a.pattern for a in result.assignments] == ["", "add"]
    np.testing.assert_array_equal(outputs(result, tmp_path, X, Y)[0], X - Y)


def test_a_pass_that_breaks_the_graph(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(graph: Graph) -> bool:
        graph.nodes.reverse()
        return True

    for phase in ("before-partition", "after-partition"):
        install(monkeypatch, replace(UNIT, graph_passes={phase: (broken,)}))
        said = refused(pair("Add", "Relu"), tmp_path)
        assert f"pass 'broken' ({phase})" in said and "read before it is written" in said


def test_a_pass_that_changes_the_border_of_a_region(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def drop(graph: Graph) -> bool:
        graph.outputs.pop()
        return True

    install(monkeypatch, replace(UNIT, graph_passes={"after-partition": (drop,)}))
    assert "changes the inputs or outputs of region unit_0" in refused(pair("Add", "Relu"), tmp_path)


def no_arguments(program: Program) -> None:
    for call in program.calls():
        call.arguments = ()


def no_calls(program: Program) -> None:
    program.body.clear()


def another_buffer(program: Program) -> None:
    call = next(program.calls())
    call.arguments = (Buffer("new", call.arguments[0].type, Role.WORKSPACE), *call.arguments[1:])


@pytest.mark.parametrize(("hook", "phase", "said"),
                         [(no_arguments, "after-lowering", "'add' takes 3 arguments, not 0"),
                          (no_calls, "after-lowering", "output 'z' is never written"),
                          (another_buffer, "after-planning", "'add' has 'new', which the plan does not know"),
                          (raising, "after-planning", "out of order")])  # fmt: skip
def test_wrong_program_passes(
    hook: Any, phase: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    install(monkeypatch, replace(UNIT, program_passes={phase: (hook,)}))
    message = refused(pair("Add"), tmp_path)
    assert said in message and f"pass '{hook.__name__}' ({phase})" in message
