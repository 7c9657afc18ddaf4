"""`aot-model run` and `verify`, and the programs that test or time a library: what they compute, which inputs
they take, what differs.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import pytest
from onnx import helper, numpy_helper

from aot_model.cli import main
from onnx_models import model, save, small_cnn, tensor

Captured = pytest.CaptureFixture[str]


def expected(count: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Inputs of small_cnn and the outputs of the reference evaluator, stacked."""
    from onnx.reference import ReferenceEvaluator

    x = np.asarray(np.random.default_rng(5).normal(size=(count, 1, 2, 6, 6)), np.float32)
    session = ReferenceEvaluator(small_cnn())
    return x, np.stack([session.run(None, {"x": v})[0] for v in x])


@pytest.fixture
def vectors(tmp_path: Path) -> Path:
    x, y = expected()
    np.savez(tmp_path / "v.npz", in_0=x, out_0=y)
    return tmp_path / "v.npz"


def test_run_by_name_and_stacked(cnn: Path, tmp_path: Path, capsys: Captured) -> None:
    x, y = expected()
    np.savez(tmp_path / "one.npz", x=x[0])
    assert (
        main(["run", str(cnn), "--inputs", str(tmp_path / "one.npz"), "--outputs", str(tmp_path / "o.npz")])
        == 0
    )
    np.testing.assert_allclose(np.load(tmp_path / "o.npz")["y"], y[0], rtol=1e-4, atol=1e-5)
    np.savez(tmp_path / "all.npz", in_0=x)
    assert (
        main(
            [
                "run",
                str(cnn),
                "--inputs",
                str(tmp_path / "all.npz"),
                "--outputs",
                str(tmp_path / "o.npz"),
                "--target",
                "c",
                "--sanitize",
            ]
        )
        == 0
    )
    np.testing.assert_allclose(np.load(tmp_path / "o.npz")["out_0"], y, rtol=1e-4, atol=1e-5)
    assert main(["run", str(cnn), "--inputs", str(tmp_path / "one.npz")]) == 0
    assert "y: float32[1, 5]" in capsys.readouterr().out


@pytest.mark.parametrize(
    "arrays",
    [
        {},
        {"z": np.zeros(3)},
        {"x": np.zeros((1, 2, 6, 6))},
        {"x": np.zeros((2, 6, 6), np.float32)},
        {"in_0": np.zeros((3, 2, 6, 6), np.float32)},
    ],
)
def test_run_with_wrong_inputs(
    arrays: dict[str, np.ndarray], cnn: Path, tmp_path: Path, capsys: Captured
) -> None:
    np.savez(tmp_path / "i.npz", **arrays)
    assert main(["run", str(cnn), "--inputs", str(tmp_path / "i.npz")]) == 1
    assert "[E104]" in capsys.readouterr().err


def test_inputs_that_cannot_be_read(cnn: Path, tmp_path: Path, capsys: Captured) -> None:
    (tmp_path / "i.npz").write_bytes(b"PK\x03\x04 nonsense")
    for name in ("i.npz", "none.npz"):
        assert main(["run", str(cnn), "--inputs", str(tmp_path / name)]) == 1
        assert "[E104]" in capsys.readouterr().err


def test_run_on_a_single_array(cnn: Path, tmp_path: Path, capsys: Captured) -> None:
    x, y = expected()
    np.save(tmp_path / "x.npy", x[0])
    assert (
        main(["run", str(cnn), "--inputs", str(tmp_path / "x.npy"), "--outputs", str(tmp_path / "o.npz")])
        == 0
    )
    np.testing.assert_allclose(np.load(tmp_path / "o.npz")["y"], y[0], rtol=1e-4, atol=1e-5)
    two = save(
        model(
            [helper.make_node("Add", ["a", "b"], ["c"])],
            [tensor("a", [2]), tensor("b", [2])],
            [tensor("c", [2])],
        ),
        tmp_path / "two.onnx",
    )
    assert main(["run", str(two), "--inputs", str(tmp_path / "x.npy")]) == 1
    error = capsys.readouterr().err
    assert "[E104]" in error and "the model has 2 inputs: a, b" in error and ".npz" in error


def _npy(header: bytes) -> bytes:
    return b"\x93NUMPY\x01\0" + len(header).to_bytes(2, "little") + header


@pytest.mark.parametrize(
    ("data", "said"),
    [(None, "No such file"), (b"", "neither .npy nor .npz"), (b"nonsense", "neither .npy nor .npz"),
     (b"\x80\x04N.", "neither .npy nor .npz"), (np.array([{}], dtype=object), "Python objects"),
     (np.zeros((2, 6, 6), np.float32), "is float32[2, 6, 6], not float32[1, 2, 6, 6]"),
     (np.zeros((1, 2, 6, 6)), "is float64"),
     (np.zeros((1, 2, 6, 6), [("a", "<f4")]), "not float32[1, 2, 6, 6]"),
     (np.zeros((), np.float32), "is float32[], not float32"), (_npy(b""), "cannot be read"),
     (b"\x93NUMPY", "cannot be read"),
     (_npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999,)}\n"), "cannot be read"),
     (_npy(b"{'descr': '<f4', 'fortran_order': False, 'shape': (4,)}\n") + b"12345", "cannot be read"),
     (_npy(b"((((" * 900 + b"\n"), "cannot be read")])  # fmt: skip
def test_a_single_array_that_does_not_fit(
    data: bytes | np.ndarray | None, said: str, cnn: Path, tmp_path: Path, capsys: Captured
) -> None:
    path = tmp_path / "x.npy"
    if isinstance(data, bytes):
        path.write_bytes(data)
    elif data is not None:
        np.save(path, data, allow_pickle=True)
    assert main(["run", str(cnn), "--inputs", str(path)]) == 1
    error = capsys.readouterr().err
    assert "[E104]" in error and said in error and "allow_pickle" not in error


@pytest.mark.parametrize("more", [[], ["--target", "c"], ["--sanitize"], ["--sequence"]])
def test_verify_agrees(more: list[str], cnn: Path, vectors: Path, capsys: Captured) -> None:
    assert main(["verify", str(cnn), "--vectors", str(vectors), *more]) == 0
    assert "3 vectors" in (text := capsys.readouterr().out) and " ok" in text


def test_verify_finds_a_difference(cnn: Path, tmp_path: Path, capsys: Captured) -> None:
    x, y = expected()
    y[1, 0, 2] += 0.01
    np.savez(tmp_path / "v.npz", in_0=x, out_0=y)
    assert main(["verify", str(cnn), "--vectors", str(tmp_path / "v.npz")]) == 1
    captured = capsys.readouterr()
    assert "[E602]" in captured.err and "differs" in captured.out
    assert main(["verify", str(cnn), "--vectors", str(tmp_path / "v.npz"), "--atol", "0.02"]) == 0


def test_verify_on_onnx_test_data(cnn: Path, tmp_path: Path) -> None:
    x, y = expected(2)
    for k in range(2):
        folder = tmp_path / "data" / f"test_data_set_{k}"
        folder.mkdir(parents=True)
        (folder / "input_0.pb").write_bytes(numpy_helper.from_array(x[k]).SerializeToString())
        (folder / "output_0.pb").write_bytes(numpy_helper.from_array(y[k]).SerializeToString())
    assert main(["verify", str(cnn), "--vectors", str(tmp_path / "data")]) == 0


def test_programs(cnn: Path, vectors: Path, tmp_path: Path) -> None:
    from aot_model.installation import include_dir

    out = tmp_path / "out"
    assert main(["compile", str(cnn), "-o", str(out)]) == 0
    assert (
        main(
            [
                "test-main",
                str(out / "cnn.json"),
                "--vectors",
                str(vectors),
                "-o",
                str(out / "test.c"),
                "--depfile",
                str(out / "test.d"),
            ]
        )
        == 0
    )
    assert main(["benchmark-main", str(out / "cnn.json"), "-o", str(out / "bench.c"), "--runs", "3"]) == 0
    assert str(vectors) in (out / "test.d").read_text()
    for name in ("test", "bench"):
        subprocess.run(
            ["gcc", "-O1", "-march=native", f"-I{include_dir()}", f"{name}.c", "cnn.c", "-lm", "-o", name],
            cwd=out,
            check=True,
        )
        subprocess.run([f"./{name}"], cwd=out, check=True, capture_output=True)
