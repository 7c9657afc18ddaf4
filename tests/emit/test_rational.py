"""tanh and the logistic function of float32 are those of ONNX Runtime, bit for bit: element by element, on
vectors, folded.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from onnx import helper

from aot_model.arithmetic import rational
from aot_model.host.program import build
from aot_model.pipeline import Request, compile_model
from batch import Case, run_cases
from onnx_models import model, save, tensor
from qemu import available

_CPU = Path("/proc/cpuinfo").read_text().split() if Path("/proc/cpuinfo").exists() else []
NUMPY = {"Tanh": rational.tanh, "Sigmoid": rational.logistic}
X = np.concatenate(
    [
        np.linspace(-20, 20, 6001, dtype=np.float32),
        np.arange(0, 2**32, 2**20 + 77, dtype=np.uint64).astype(np.uint32).view(np.float32),
        np.asarray(
            [np.inf, -np.inf, np.nan, 0.0, -0.0, 1e-45, -17.844, 17.844, 9, -9, 16.801476, -16.801476],
            np.float32,
        ),
    ]
)


def _bits(x: np.ndarray) -> np.ndarray:
    return np.where(np.isnan(x), np.uint32(0x7FC00000), np.asarray(x, np.float32).view(np.uint32))


@pytest.mark.skipif("fma" not in _CPU, reason="ONNX Runtime rounds twice on this processor")
@pytest.mark.parametrize("op", NUMPY)
def test_numpy_is_onnx_runtime(op: str) -> None:
    proto = model([helper.make_node(op, ["x"], ["y"])], [tensor("x", X.shape)], [tensor("y", X.shape)])
    (y,) = onnxruntime.InferenceSession(proto.SerializeToString()).run(None, {"x": X})
    np.testing.assert_array_equal(_bits(NUMPY[op](X)), _bits(y))


@pytest.mark.parametrize("flags", [[], ["-O3"], ["-mfma"]], ids=" ".join)
@pytest.mark.parametrize("op", NUMPY)
def test_scalars(op: str, flags: list[str], tmp_path: Path) -> None:
    if "fma" not in _CPU and flags == ["-mfma"]:
        pytest.skip("no such processor")
    proto = model([helper.make_node(op, ["x"], ["y"])], [tensor("x", X.shape)], [tensor("y", X.shape)])
    found = compile_model(Request(save(proto, tmp_path / "m.onnx"), "m", "c"))
    ((y,),) = build(found.view, found.texts, tmp_path, flags).run([[X]])
    np.testing.assert_array_equal(_bits(y), _bits(NUMPY[op](X)))
    if op == "Tanh":
        assert np.signbit(y[np.signbit(X) & (X == 0)]).all()


@pytest.mark.parametrize(
    ("dialect", "flags", "needs"),
    [("v8", ["-mavx2", "-mfma"], "fma"), ("v16", ["-mavx512f", "-mfma"], "avx512f"), ("v4", [], "sse2")],
)
@pytest.mark.parametrize("op", NUMPY)
def test_vectors(op: str, dialect: str, flags: list[str], needs: str, tmp_path: Path) -> None:
    """Behind a product with the identity, which is exact, in the kernel's tail."""
    if needs not in _CPU:
        pytest.skip("no such processor")
    x = X[np.isfinite(X)]
    x = x[: len(x) // 32 * 32].reshape(-1, 32)
    proto = model(
        [helper.make_node("MatMul", ["x", "w"], ["p"]), helper.make_node(op, ["p"], ["y"])],
        [tensor("x", x.shape)],
        [tensor("y", x.shape)],
        {"w": np.eye(32, dtype=np.float32)},
    )
    found = compile_model(Request(save(proto, tmp_path / "m.onnx"), "m", f"host,vector={dialect}"))
    assert (f"_{dialect}(" in found.texts["m.c"].replace("static inline", "")) == (dialect != "v4"), (
        "vectors that round twice do not compute it"
    )
    ((y,),) = build(found.view, found.texts, tmp_path, flags).run([[x]])
    np.testing.assert_array_equal(y, NUMPY[op](x + np.float32(0)))


@pytest.mark.skipif(not available(), reason="arm-none-eabi-gcc or qemu-system-arm is not installed")
def test_on_a_core() -> None:
    """Where arguments are compared as integers, and beside the limit of that comparison."""
    eight = np.arange(-40, 40) + np.float32(8).view(np.uint32)
    near = eight.astype(np.uint32).view(np.float32)
    x = np.concatenate([X, near, -near])
    x = np.where(np.isnan(x), np.float32(np.nan), x)
    cases = [Case(op, model([helper.make_node(op, ["x"], ["y"])], [tensor("x", x.shape)],
                            [tensor("y", x.shape)]), (x,)) for op in NUMPY]  # fmt: skip
    for case, outcome in zip(cases, run_cases(cases, "cortex-m4", sanitize=False, board="m4"), strict=True):
        assert outcome.status == "ok", outcome.message
        np.testing.assert_array_equal(_bits(outcome.outputs[0]), _bits(NUMPY[case.name](x)))


def test_a_nan_in_a_vector(tmp_path: Path) -> None:
    if "fma" not in _CPU:
        pytest.skip("no such processor")
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["p"]),
        *(helper.make_node(op, ["p"], [op]) for op in NUMPY),
    ]
    proto = model(
        nodes, [tensor("x", (3, 8))], [tensor(op, (3, 8)) for op in NUMPY], {"w": np.eye(8, dtype=np.float32)}
    )
    found = compile_model(Request(save(proto, tmp_path / "m.onnx"), "m", "host,vector=v8"))
    x = np.ones((3, 8), np.float32)
    x[1, 3] = np.nan
    for y in build(found.view, found.texts, tmp_path, ["-mavx2", "-mfma"]).run([[x]])[0]:
        assert np.isnan(y[1]).all() and np.isfinite(y[[0, 2]]).all()


def test_multiply_add_rounds_once() -> None:
    """The product lies halfway between two floats, and what is added is lost in double precision."""
    a, low = np.float32(1 + 2**-12), np.float32(1 + 2**-11)
    high = np.nextafter(low, np.float32(2))
    c = np.asarray([2.0**-60, 0, -(2.0**-60), 2.0**-30, -(2.0**-30), -1], np.float32)
    np.testing.assert_array_equal(
        rational.multiply_add(a, a, c),
        np.asarray([high, low, low, high, low, 2.0**-11 + 2.0**-24], np.float32),
    )
