"""Recurrent layers whose gates are divided together (Cortex-M4, M7, M33) or computed in vectors (Helium):
beside ONNX Runtime, with panels that are full and not, weights that are constants and inputs, sums that are
far from 0, NaN.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import helper

from batch import Case, run_cases
from onnx_models import model, tensor
from qemu import available

GATES = {"LSTM": 4, "GRU": 3, "RNN": 1}


def _case(
    op: str, hidden: int, constant: bool = True, directions: int = 1, scale: float = 1.0, **attributes: Any
) -> Case:
    rng = np.random.default_rng(hidden)
    n, gates, steps, batch, ins = directions, GATES[op], 6, 2, 3
    w, r, b = (
        np.asarray(rng.uniform(-1, 1, shape), np.float32)
        for shape in ((n, gates * hidden, ins), (n, gates * hidden, hidden), (n, 2 * gates * hidden))
    )
    x = np.asarray(rng.uniform(-1, 1, (steps, batch, ins)) * scale, np.float32)
    weights = {"w": w, "r": r, "b": b}
    outputs = ["y", "yh", "yc"] if op == "LSTM" else ["y", "yh"]
    if n == 2:
        attributes["direction"] = "bidirectional"
    node = helper.make_node(op, ["x", "w", "r", "b"], outputs, hidden_size=hidden, **attributes)
    inputs = [tensor("x", x.shape), *(() if constant else (tensor(k, v.shape) for k, v in weights.items()))]
    proto = model([node], inputs, [tensor(o, None) for o in outputs], weights if constant else None)
    name = f"{op} {hidden} {constant} {n} {scale} {sorted(attributes)}"
    return Case(name, proto, (x, *(() if constant else weights.values())))


def cases() -> list[Case]:
    after = {"linear_before_reset": 1}
    found = [
        _case(op, hidden, constant, **more)
        for op, more in (("LSTM", {}), ("GRU", {}), ("GRU", after), ("RNN", {}))
        for hidden in (1, 3, 4, 10, 16)
        for constant in (True, False)
    ]
    found += [_case(op, 6, directions=2) for op in GATES]
    found += [_case(op, 5, scale=scale) for op in GATES for scale in (1e-4, 40.0, 1e4, 1e37)]
    found += [_case("LSTM", 5, clip=0.4), _case("LSTM", 5, input_forget=1)]
    found += [_case("GRU", 5, activations=["Sigmoid", "Relu"]), _case("RNN", 5, activations=["Relu"])]
    return found


@pytest.mark.skipif(not available(), reason="arm-none-eabi-gcc or qemu-system-arm is not installed")
@pytest.mark.parametrize("board", ["m4", "m7", "m33", "m55"])
def test_cells_of_recurrent_layers(board: str) -> None:
    rows = cases()
    outcomes = run_cases(rows, f"cortex-{board}", sanitize=False, board=board, flags=("-O2",), jobs=1)
    for case, outcome in zip(rows, outcomes, strict=True):
        assert outcome.status == "ok", (case.name, outcome.message)
        assert isinstance(case.model, type(rows[0].model))
        session = onnxruntime.InferenceSession(case.model.SerializeToString())  # type: ignore[union-attr]
        names = [i.name for i in session.get_inputs()]
        want = session.run(None, dict(zip(names, case.inputs, strict=True)))
        for y, exact in zip(outcome.outputs, want, strict=True):
            size = float(np.abs(case.inputs[0]).max())
            np.testing.assert_allclose(y, exact, rtol=2e-5, atol=2e-6 * min(size, 1), err_msg=case.name)


@pytest.mark.skipif(not available(), reason="arm-none-eabi-gcc or qemu-system-arm is not installed")
@pytest.mark.parametrize("board", ["m4", "m7", "m33", "m55"])
def test_a_nan_stays_one(board: str) -> None:
    rows = []
    for op in GATES:
        case = _case(op, 5)
        case.inputs[0][2] = np.nan
        rows.append(case)
    outcomes = run_cases(rows, f"cortex-{board}", sanitize=False, board=board, flags=("-O2",), jobs=1)
    for outcome in outcomes:
        assert outcome.status == "ok", outcome.message
        y = outcome.outputs[0]
        assert np.isfinite(y[:2]).all() and np.isnan(y[2:]).all()
