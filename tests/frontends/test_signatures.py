"""TFLite models with several signatures: the first sub-graph is compiled, the others are nobody's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from small_tflite import program, save

from aot_model.errors import CompileError
from aot_model.frontends.tflite import read_tflite
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
        "the model has the signatures 'infer', 'train'; what is compiled is its first sub-graph, 'infer'"
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
    assert note.endswith("'one', 'two'; what is compiled is its first sub-graph")
    (far,) = _notes(tmp_path, _model(one=0, two=7))  # of a sub-graph that there is not
    assert "'two'" in far
