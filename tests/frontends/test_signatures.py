"""TFLite models with several signatures: one is compiled, where nothing is said the first sub-graph; the
others are nobody's.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper
from small_tflite import program, save

from aot_model.cli import main
from aot_model.errors import CompileError
from aot_model.frontends.model import Bindings
from aot_model.frontends.read import read_model
from aot_model.frontends.tflite import read_tflite
from aot_model.host.program import build as build_program
from aot_model.layers.litert import LiteRT
from aot_model.pipeline import Request, compile_model
from onnx_models import tensor
from tflite_models import BOOL, FLOAT32, G, Op, T, build
from tflite_reference import litert

X = np.arange(-3, 3, dtype=np.float32).reshape(2, 3)
PAIR = [T("a", (2, 3), FLOAT32, ()), T("b", (2, 3), FLOAT32, ())]
KNOWN = G(PAIR, [Op("ABS", (0,), (1,))], [0], [1])
UNKNOWN = G(PAIR, [Op("CUSTOM:Train", (0,), (1,))], [0], [1])
CHOICE = G(
    [*PAIR, T("c", (), BOOL, ())],
    [Op("IF", (2, 0), (1,), "IfOptions", {"ThenSubgraphIndex": 2, "ElseSubgraphIndex": 3})],
    [0, 2],
    [1],
)


def _model(*others: G, **signatures: int) -> bytes:
    """-x, and other sub-graphs."""
    return build(PAIR, [Op("NEG", (0,), (1,))], [0], [1], *others, signatures=signatures)


def _notes(folder: Path, data: bytes) -> list[str]:
    return read_tflite(save(folder, data)).notes


def test_what_other_signatures_run_need_not_be_known(tmp_path: Path) -> None:
    data = _model(CHOICE, KNOWN, UNKNOWN, infer=0, train=1)
    (found,) = program(save(tmp_path, data), tmp_path / "built").run([[X]])
    np.testing.assert_array_equal(found[0], litert(_model(), [X])[0])
    (note,) = _notes(tmp_path, data)
    assert note == (
        "the model has the signatures 'infer', 'train'; what is compiled is its first sub-graph, 'infer' "
        "(--signature NAME for another one)"
    )


@pytest.mark.parametrize(
    ("others", "signatures"),
    [
        ((UNKNOWN,), {}),  # nobody's, and not said to be another's
        ((UNKNOWN,), {"infer": 0}),
        ((KNOWN, UNKNOWN), {"infer": 0, "save": 1}),
    ],
)
def test_what_no_other_signature_runs_is_checked(
    others: tuple[G, ...], signatures: dict[str, int], tmp_path: Path
) -> None:
    with pytest.raises(CompileError, match=f"custom operator 'Train' .* of sub-graph {len(others)}"):
        read_tflite(save(tmp_path, _model(*others, **signatures)))


def test_what_both_run_is_checked(tmp_path: Path) -> None:
    main = CHOICE.tensors, CHOICE.operators, CHOICE.inputs, CHOICE.outputs
    data = build(*main, KNOWN, KNOWN, UNKNOWN, signatures={"infer": 0, "train": 3})
    with pytest.raises(CompileError, match=r"'Train' is not supported \(operator 0 of sub-graph 3\)"):
        read_tflite(save(tmp_path, data))


def test_signatures_that_are_said(tmp_path: Path) -> None:
    assert not _notes(tmp_path, _model(infer=0))
    assert not _notes(tmp_path, _model(KNOWN, infer=1))
    (note,) = _notes(tmp_path, _model(KNOWN, KNOWN, one=1, two=2))
    assert "'one', 'two'; what is compiled is its first sub-graph (" in note
    (far,) = _notes(tmp_path, _model(one=0, two=7))  # of a sub-graph that there is not
    assert "'two'" in far


# --- another one than the first -----------------------------------------------------------------------------

SCALED = G(
    [*PAIR, T("two", (), FLOAT32, (), data=np.asarray(2, np.float32)), T("c", (2, 3), FLOAT32, ())],
    [Op("ABS", (0,), (3,)), Op("MUL", (3, 2), (1,), "MulOptions")],
    [0],
    [1],
)


def _runs(path: Path, folder: Path, signature: str, *inputs: np.ndarray) -> np.ndarray:
    made = compile_model(Request(path, "m", "c", signature=signature))
    assert not made.notes
    folder.mkdir()
    found: np.ndarray = build_program(made.view, made.texts, folder, ["-O1"]).run([list(inputs)])[0][0]
    return found


@pytest.mark.parametrize(("name", "graph"), [("one", KNOWN), ("two", SCALED)])
def test_the_signature_that_is_said(name: str, graph: G, tmp_path: Path) -> None:
    path = save(tmp_path, _model(KNOWN, UNKNOWN, SCALED, first=0, one=1, train=2, two=3))
    alone = build(graph.tensors, graph.operators, graph.inputs, graph.outputs)
    np.testing.assert_array_equal(_runs(path, tmp_path / "built", name, X), litert(alone, [X])[0])


def test_what_the_first_sub_graph_runs_need_not_be_known(tmp_path: Path) -> None:
    first = UNKNOWN.tensors, UNKNOWN.operators, UNKNOWN.inputs, UNKNOWN.outputs
    path = save(tmp_path, build(*first, KNOWN, signatures={"one": 1}))
    np.testing.assert_array_equal(_runs(path, tmp_path / "built", "one", X), np.abs(X))


def test_branches_of_a_signature_are_those_that_it_numbers(tmp_path: Path) -> None:
    """The numbers of sub-graphs are the file's, the first one's too."""
    path = save(tmp_path, _model(CHOICE, KNOWN, SCALED, infer=0, choose=1))
    for k, (choice, graph) in enumerate(((True, KNOWN), (False, SCALED))):
        alone = build(graph.tensors, graph.operators, graph.inputs, graph.outputs)
        found = _runs(path, tmp_path / f"built{k}", "choose", X, np.asarray(choice))
        np.testing.assert_array_equal(found, litert(alone, [X])[0])


def test_a_signature_may_run_the_first_sub_graph(tmp_path: Path) -> None:
    path = save(tmp_path, _model(replaced(CHOICE, then=0), KNOWN, SCALED, infer=0, choose=1))
    found = _runs(path, tmp_path / "built", "choose", X, np.asarray(True))
    np.testing.assert_array_equal(found, -X)


def replaced(graph: G, then: int) -> G:
    """The choice with another branch."""
    (choice,) = graph.operators
    options = {"ThenSubgraphIndex": then, "ElseSubgraphIndex": 3}
    return replace(graph, operators=[replace(choice, fields=options)])


def test_a_signature_that_runs_itself(tmp_path: Path) -> None:
    path = save(tmp_path, _model(replaced(CHOICE, then=1), KNOWN, SCALED, infer=0, choose=1))
    with pytest.raises(CompileError, match="sub-graph 1 of 4"):
        read_tflite(path, Bindings(signature="choose"))


@pytest.mark.parametrize(
    ("signatures", "hint"),
    [
        ({"infer": 0, "train": 1}, "it has 'infer', 'train'"),
        ({}, "it has none at all"),
        ({"x": 7}, "it has 'x'"),
    ],
)
def test_a_signature_that_there_is_not(signatures: dict[str, int], hint: str, tmp_path: Path) -> None:
    with pytest.raises(CompileError) as caught:
        read_tflite(save(tmp_path, _model(KNOWN, **signatures)), Bindings(signature="x"))
    (problem,) = caught.value.problems
    assert problem.code == "E203" and problem.hint == hint and "--signature x" in problem.message


def test_onnx_has_no_signatures(tmp_path: Path) -> None:
    graph = helper.make_graph(
        [helper.make_node("Relu", ["x"], ["y"])], "g", [tensor("x", (2,))], [tensor("y", (2,))]
    )
    onnx.save(helper.make_model(graph), tmp_path / "m.onnx")
    with pytest.raises(CompileError, match="--signature infer: an ONNX model has no signatures"):
        read_model(tmp_path / "m.onnx", Bindings(signature="infer"))


def test_the_layers_of_a_signature(tmp_path: Path) -> None:
    """LiteRT shows tensors of the first sub-graph only: it gets a file in another order."""
    path = save(tmp_path, _model(KNOWN, SCALED, infer=0, one=1, two=2))
    reference = LiteRT(path, {}, "two")
    assert [n.kind for n in reference.nodes] == ["ABS", "MUL"] and reference.outputs == (1,)
    found = reference.run([X], [3, 1])
    np.testing.assert_array_equal(found[3], np.abs(X))
    np.testing.assert_array_equal(found[1], 2 * np.abs(X))
    assert [n.kind for n in LiteRT(path, {}, "infer").nodes] == ["NEG"]
    with pytest.raises(CompileError, match="the first sub-graph only"):
        LiteRT(
            save(tmp_path, _model(replaced(CHOICE, then=0), KNOWN, SCALED, infer=0, choose=1)), {}, "choose"
        )


def test_commands_take_a_signature(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save(tmp_path, _model(KNOWN, SCALED, infer=0, one=1, two=2))
    np.savez(tmp_path / "x.npz", in_0=X[None])
    given = ["--signature", "two", "--target", "c"]
    assert main(["verify", str(path), *given, "--layers"]) == 0
    assert "(1 right), 1 are fused into others" in capsys.readouterr().out  # ABS with MUL
    assert main(["compare", str(path), str(path), *given, "--inputs", str(tmp_path / "x.npz")]) == 0
    assert main(["report", str(path), *given, "-o", str(tmp_path / "r.html")]) == 0
    page = (tmp_path / "r.html").read_text()
    assert "ABS" in page and "NEG" not in page


def test_parameters_of_a_signature(tmp_path: Path) -> None:
    """Those of a retrained model are of the signature that is said."""
    weights = np.asarray([1, 2, 3, 4, 5, 6], np.float32).reshape(2, 3)

    def file(factor: float) -> Path:
        scaled = G(
            [*PAIR, T("w", (2, 3), FLOAT32, (), data=weights * np.float32(factor))],
            [Op("MUL", (0, 2), (1,), "MulOptions")],
            [0],
            [1],
        )
        return save(tmp_path, _model(scaled, infer=0, scale=1))

    given = ["--signature", "scale"]
    out = tmp_path / "out"
    made = ["compile", str(file(1)), *given, "-o", str(out), "--target", "c", "--params", "external"]
    assert main(made) == 0
    new, json = tmp_path / "new.params", out / "model.json"
    assert main(["params", str(file(3)), *given, "--for", str(json), "-o", str(new)]) == 0
    assert (3 * weights).tobytes() in new.read_bytes()
    assert main(["params", str(file(3)), "--for", str(json), "-o", str(new)]) != 0
