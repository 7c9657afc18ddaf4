"""Short loops with several turns written one behind the other compute and read what the loops do, under
sanitizers: whatever has a loop over elements, with and without turns that are left, with indices that are
divided, with reads that are guarded.
"""

from __future__ import annotations

import numpy as np
import pytest
from onnx import helper
from oracles import expected
from rows import registry_rows
from verdict import verdict

from aot_model.c.turns import TURNS
from aot_model.kernels.target import Target
from batch import Case, run_cases
from onnx_models import model, tensor
from qemu import available

KINDS = (
    "Reduce",
    "Softmax",
    "LayerNormalization",
    "InstanceNormalization",
    "CumSum",
    "Add",
    "Mul",
    "Relu",
    "Clip",
    "Transpose",
    "Pad",
    "Tile",
    "Gather",
    "Slice",
    "Resize",
    "DepthToSpace",
    "ArgMax",
    "LpPool",
    "Concat",
    "Einsum",
    "QuantizeLinear",
    "DequantizeLinear",
    "Col2Im",
    "Where",
    "OneHot",
    "Expand",
)


def test_turns_are_those_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Target, "turns", lambda self: TURNS)
    chosen = [row for row in registry_rows() if row.label.startswith(KINDS)]
    assert len(chosen) > 200
    outcomes = run_cases([row.case for row in chosen], "c", flags=("-O1",))
    for row, outcome in zip(chosen, outcomes, strict=True):
        problem = verdict(row, outcome, expected(row))
        assert not problem, f"{row.label}: {problem}"


@pytest.mark.parametrize(
    ("target", "board"),
    [
        ("c", None),
        pytest.param("cortex-m4", "m4", marks=pytest.mark.skipif(not available(), reason="no QEMU")),
    ],
)
@pytest.mark.parametrize("extent", range(2, 7))
def test_sums_of_a_few_terms(
    target: str, board: str | None, extent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sums of two to six squares, lengths and plain numbers: bits are those of adding one by one to zero, of
    zeros with a sign as well.
    """
    monkeypatch.setattr(Target, "turns", lambda self: TURNS)
    rng = np.random.default_rng(extent)
    x = rng.normal(size=(5, 7, extent)).astype(np.float32)
    x[0] = -0.0
    x[1, 0], x[1, 1], x[1, 2, 0] = np.inf, -np.inf, np.nan
    x[2] = 1e30
    of = {"square": x * x, "length": np.abs(x), "plain": x}
    nodes = [
        helper.make_node("Mul", ["x", "x"], ["square"]),
        helper.make_node("Abs", ["x"], ["length"]),
        helper.make_node("Identity", ["x"], ["plain"]),
        *(helper.make_node("ReduceSum", [v, "last"], [f"sum_{v}"], keepdims=0) for v in of),
    ]
    proto = model(
        nodes,
        [tensor("x", x.shape)],
        [tensor(f"sum_{v}", None) for v in of],
        {"last": np.array([-1], np.int64)},
    )
    (outcome,) = run_cases([Case("sums", proto, (x,))], target, board=board, sanitize=board is None, jobs=1)
    assert outcome.status == "ok", outcome.message
    for terms, got in zip(of.values(), outcome.outputs, strict=True):
        want = np.zeros((5, 7), np.float32)
        for k in range(extent):
            want = want + terms[..., k]
        assert np.array_equal(got, want, equal_nan=True)
        numbers = ~np.isnan(want)
        assert np.array_equal(np.signbit(got[numbers]), np.signbit(want[numbers]))
