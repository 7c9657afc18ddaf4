"""Reading test vectors: both forms, and every way in which they can fail to fit a model."""

from __future__ import annotations

from pathlib import Path

import ml_dtypes
import numpy as np
import onnx
import pytest
from onnx import numpy_helper

from aot_model.errors import CompileError
from aot_model.frontends.vectors import load_vectors
from aot_model.ir.types import DType, TensorType

FLOAT = TensorType(DType.FLOAT32, (1, 4))
INTEGER = TensorType(DType.INT64, ())


def good() -> dict[str, np.ndarray]:
    return {"in_0": np.arange(12, dtype=np.float32).reshape(3, 1, 4), "out_0": np.arange(3, dtype=np.int64)}


def test_npz(tmp_path: Path) -> None:
    np.savez(tmp_path / "v.npz", **good(), input_names=np.array(["x"]))
    vectors = load_vectors(tmp_path / "v.npz", [FLOAT], [INTEGER])
    assert vectors.count == 3
    assert np.array_equal(vectors.inputs[0], good()["in_0"])
    assert vectors.outputs[0].shape == (3,)
    assert vectors.files == (tmp_path / "v.npz",)


def test_npz_by_name(tmp_path: Path) -> None:
    """The names of the file or those of C; one vector as it is, or several on a leading axis."""
    names = ([("serve/x:0", "serve_x_0")], [("y", "y")])
    one = {"in_0": good()["in_0"][1], "out_0": good()["out_0"][1]}
    for x, arrays in (("serve/x:0", good()), ("serve_x_0", one)):
        np.savez(tmp_path / "v.npz", **{x: arrays["in_0"], "y": arrays["out_0"]},
                 other=np.array([None]))  # fmt: skip
        vectors = load_vectors(tmp_path / "v.npz", [FLOAT], [INTEGER], names)
        assert np.array_equal(vectors.inputs[0], arrays["in_0"].reshape(-1, 1, 4))
        assert np.array_equal(vectors.outputs[0], arrays["out_0"].reshape(-1))
    np.savez(tmp_path / "v.npz", x=good()["in_0"], y=good()["out_0"])
    with pytest.raises(CompileError) as error:
        load_vectors(tmp_path / "v.npz", [FLOAT], [INTEGER], names)
    [problem] = error.value.problems
    assert problem.message.startswith("in_0 (float32[1,4]) is missing")
    assert problem.hint == "give in_0 or 'serve/x:0'; found: x, y"


def test_bfloat16_comes_back_from_npz(tmp_path: Path) -> None:
    values = np.array([[1.5], [-2]], dtype=ml_dtypes.bfloat16)
    np.savez(tmp_path / "v.npz", in_0=values, out_0=values)
    type_ = TensorType(DType.BFLOAT16, (1,))
    assert np.array_equal(load_vectors(tmp_path / "v.npz", [type_], [type_]).inputs[0], values)


@pytest.mark.parametrize("by_place", ["in_0", "out_0"])
def test_arrays_by_place_have_a_leading_axis(tmp_path: Path, by_place: str) -> None:
    """Also those of scalars; by name it may be left out. Where there is `in_0`, names are not looked at."""
    names = ([("x", "x")], [("y", "y")])
    wrong = {**good(), "x": good()["in_0"], "y": good()["out_0"], by_place: good()[by_place][0]}
    np.savez(tmp_path / "v.npz", **wrong)
    with pytest.raises(CompileError, match=f"{by_place} has shape") as error:
        load_vectors(tmp_path / "v.npz", [FLOAT], [INTEGER], names)
    assert len(error.value.problems) == 1


def test_bits_of_a_type_that_numpy_does_not_have(tmp_path: Path) -> None:
    values = np.array([[1.5], [-2]], dtype=ml_dtypes.bfloat16)
    np.savez(tmp_path / "v.npz", in_0=values.view(np.uint16), out_0=values.view(np.uint16))
    type_ = TensorType(DType.BFLOAT16, (1,))
    assert np.array_equal(load_vectors(tmp_path / "v.npz", [type_], [type_]).inputs[0], values)


@pytest.mark.parametrize("nested", [True, False])
def test_onnx_test_data(tmp_path: Path, nested: bool) -> None:
    """Sets and tensors are in numeric order: 10 comes after 2."""
    numbers = (0, 2, 10) if nested else (0,)
    for number in numbers:
        folder = tmp_path / f"test_data_set_{number}" if nested else tmp_path
        folder.mkdir(exist_ok=True)
        for file, array in (
            ("input_0", np.full((1, 4), number, np.float32)),
            ("output_0", np.array(number, np.int64)),
        ):
            onnx.save_tensor(numpy_helper.from_array(array), str(folder / f"{file}.pb"))
    vectors = load_vectors(tmp_path, [FLOAT], [INTEGER])
    assert vectors.outputs[0].tolist() == list(numbers)
    assert len(vectors.files) == 2 * len(numbers)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"in_0": None}, "in_0 (float32[1,4]) is missing"),
        ({"out_0": np.zeros(3, np.int32)}, "out_0 is int32, the model says int64"),
        ({"in_0": np.zeros((3, 4), np.float32)}, "in_0 has shape [3, 4], not [vectors, *[1, 4]]"),
        ({"in_0": np.array(1, np.float32)}, "in_0 has shape []"),
        ({"in_1": np.zeros((3, 4), np.float32)}, "in_1: the model has only 1 of these"),
        ({"out_0": np.zeros(2, np.int64)}, "different numbers of vectors: [2, 3]"),
        ({"in_0": np.zeros((0, 1, 4), np.float32), "out_0": np.zeros(0, np.int64)}, "there is no vector"),
    ],
)
def test_vectors_that_do_not_fit(tmp_path: Path, change: dict[str, np.ndarray | None], message: str) -> None:
    arrays = {k: v for k, v in (good() | change).items() if v is not None}
    np.savez(tmp_path / "v.npz", **arrays)
    with pytest.raises(CompileError) as caught:
        load_vectors(tmp_path / "v.npz", [FLOAT], [INTEGER])
    assert message in str(caught.value)
    assert all(problem.code == "E104" for problem in caught.value.problems)


def test_all_problems_at_once(tmp_path: Path) -> None:
    np.savez(tmp_path / "v.npz", in_0=np.zeros((3, 5), np.float32))
    with pytest.raises(CompileError) as caught:
        load_vectors(tmp_path / "v.npz", [FLOAT], [INTEGER])
    assert len(caught.value.problems) == 2


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04 not a zip", b"\x93NUMPY garbage"])
def test_files_that_are_no_vectors(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "v.npz").write_bytes(content)
    with pytest.raises(CompileError, match=r"E104|cannot be read"):
        load_vectors(tmp_path / "v.npz", [FLOAT], [INTEGER])
    with pytest.raises(CompileError, match="cannot be read"):
        load_vectors(tmp_path / "gone.npz", [FLOAT], [INTEGER])


def test_folders_that_are_no_test_data(tmp_path: Path) -> None:
    with pytest.raises(CompileError, match=r"no input_<i>\.pb"):
        load_vectors(tmp_path, [FLOAT], [INTEGER])
    (tmp_path / "input_0.pb").write_bytes(b"\xff\xff\xff garbage")
    with pytest.raises(CompileError, match="not a TensorProto"):
        load_vectors(tmp_path, [FLOAT], [INTEGER])


@pytest.mark.parametrize("dtype", [d for d in DType if d.is_integer and d.storage], ids=lambda d: d.label)
def test_small_integers_come_in_bytes_that_hold_them(dtype: DType, tmp_path: Path) -> None:
    """Each that there is; one more would become another number."""
    kind, (low, high) = TensorType(dtype, ()), dtype.limits
    wide = dtype.compute.numpy
    every = np.arange(low, high + 1).astype(wide)
    np.savez(tmp_path / "v.npz", in_0=every, out_0=every)
    found = load_vectors(tmp_path / "v.npz", [kind], [kind])
    assert found.inputs[0].dtype == dtype.numpy and found.outputs[0].tolist() == every.tolist()
    for more in (v for v in (low - 1, high + 1) if v >= np.iinfo(wide).min):
        np.savez(tmp_path / "v.npz", in_0=every, out_0=np.asarray([*every[:-1], more], wide))
        with pytest.raises(CompileError, match=f"out_0 has elements that are none of {low} to {high}"):
            load_vectors(tmp_path / "v.npz", [kind], [kind])
