"""Every model of the corpus that must run, on the host: strict warnings, sanitizers, right outputs, tight
memory.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from aot_model.pipeline import Compiled, Request, compile_model
from corpus import MODELS, REASON, index, vectors
from sanitizers import sanitized

pytestmark = pytest.mark.skipif(MODELS is None, reason=REASON)

LARGE = 40_000_000
"""MACs from which one vector is enough under sanitizers."""

NOISE = 5e-7
"""Absolute: a few units in the last place of 1.0, what sigmoids of large negative numbers differ by between
libraries.
"""


def _running(ending: str) -> list[str]:
    return sorted(f for f, row in index().items() if f.endswith(ending) and row["status"] == "run")


def _is_float(name: str) -> bool:
    return not any(
        o.startswith(("QLinear", "DequantizeLinear", "QuantizeLinear", "com.microsoft.Q"))
        for o in index()[name]["ops"]
    )


EXPLAINED = {
    # 2 of 12 values: one activation of an early layer rounds the other way (a tie), and grows downstream
    "vww_tfqdq.onnx": 3,
    "mbv2_035_224_qdq.onnx": 2,  # 1 of 200 values, by two steps
}
"""Models with values further than one step from the reference, and how far."""

FLOAT_ONNX = [f for f in _running(".onnx") if _is_float(f)]
QUANTISED_ONNX = [f for f in _running(".onnx") if not _is_float(f)]
TFLITE = _running(".tflite")


def _outputs(name: str, folder: Path) -> tuple[Compiled, list[list[np.ndarray]], list[list[np.ndarray]]]:
    assert MODELS is not None
    row = index()[name]
    # Where TensorFlow Lite Micro cannot run a model, its vectors are those of LiteRT's reference kernels.
    options = {"arithmetic": "litert-ref"} if (row.get("tflm") or {}).get("error") else {}
    compiled = compile_model(Request(MODELS / name, "model", options=options))
    limit = 1 if (row["macs"] or 0) > LARGE else None
    inputs, expected = vectors(MODELS / name, len(compiled.view.inputs), len(compiled.view.outputs), limit)
    program = sanitized(compiled.view, compiled.texts, folder)
    # A process for each vector: vectors of models with state were made from a fresh start.
    fresh = bool(compiled.view.program.states)
    got = [program.run([v])[0] for v in inputs] if fresh else program.run(inputs)
    return compiled, got, expected


def _assert_tight(compiled: Compiled) -> None:
    """The workspace is within 5 % of its lower bound, or proven to be the smallest."""
    plan = compiled.view.addresses.plan
    assert plan.proved or compiled.view.workspace_size <= 1.05 * plan.lower_bound


@pytest.mark.parametrize("name", FLOAT_ONNX)
def test_float_onnx(name: str, tmp_path: Path) -> None:
    compiled, got, expected = _outputs(name, tmp_path)
    for row, wanted in zip(got, expected, strict=True):
        for a, b in zip(row, wanted, strict=True):
            scale = float(np.max(np.abs(b))) if b.size else 0.0
            np.testing.assert_allclose(a.reshape(b.shape), b, rtol=1e-3, atol=max(1e-4 * scale, NOISE))
    _assert_tight(compiled)


@pytest.mark.parametrize("name", TFLITE)
def test_tflite(name: str, tmp_path: Path) -> None:
    """Integer outputs are bit for bit those of TensorFlow Lite Micro; floats are within 1e-3 of the range."""
    compiled, got, expected = _outputs(name, tmp_path)
    for row, wanted in zip(got, expected, strict=True):
        for a, b in zip(row, wanted, strict=True):
            if b.dtype.kind == "f":
                np.testing.assert_allclose(
                    a.reshape(b.shape), b, atol=1e-3 * max(float(np.max(np.abs(b))), 1e-9)
                )
            else:
                np.testing.assert_array_equal(a.reshape(b.shape), b)
    _assert_tight(compiled)


@pytest.mark.parametrize("name", QUANTISED_ONNX)
def test_quantised_onnx(name: str, tmp_path: Path) -> None:
    """Within one unit of the reference for 99.9 % of the values (floats: one step of the last quantisation),
    top-1 equal.
    """
    assert MODELS is not None
    compiled, got, expected = _outputs(name, tmp_path)
    with np.load(MODELS / f"{name}.npz") as data:
        optimised = [
            [data[f"opt_out_{k}"][i] if f"opt_out_{k}" in data else e for k, e in enumerate(row)]
            for i, row in enumerate(expected)
        ]
    for row, wanted, other in zip(got, expected, optimised, strict=True):
        for a, b, c in zip(row, wanted, other, strict=True):
            steps = np.unique(np.abs(b[b != 0])) if b.dtype.kind == "f" else np.ones(1)
            gaps = np.diff(np.unique(b.ravel())) if b.dtype.kind == "f" else np.ones(1)
            unit = (
                float(np.min(gaps[gaps > 1e-7]))
                if gaps.size and (gaps > 1e-7).any()
                else float(steps[0])
                if steps.size
                else 1.0
            )
            units = EXPLAINED.get(name, 1)
            near = np.minimum(
                np.abs(a.reshape(b.shape).astype(np.float64) - b),
                np.abs(a.reshape(b.shape).astype(np.float64) - c),
            )
            assert np.mean(near <= 1.001 * units * unit) >= 0.999
            assert np.argmax(a) in (np.argmax(b), np.argmax(c))
    _assert_tight(compiled)
