"""Calibration data: the forms that are read, and what is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from networks import Array

from aot_model.errors import CompileError
from aot_model.quantise.data import Port, read_samples


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"x": np.full((4, 1, 3), np.nan, np.float32)}, "NaN or infinity in 4 of 4 samples"),
        ({"x": np.zeros((0, 1, 3), np.float32)}, "is empty"),
        ({"x": np.zeros((4, 1, 5), np.float32)}, "has shape"),
        ({"x": np.zeros((4, 1, 3), np.uint8)}, "is uint8"),
        ({"z": np.zeros((4, 1, 3), np.float32)}, "there are: z"),
        ({"x": np.zeros((4, 1, 3), np.float32), "labels": np.zeros(3)}, "3 labels for 4 samples"),
    ],
)
def test_bad_data(arrays: dict[str, Array], message: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "d.npz", **arrays)
    with pytest.raises(CompileError, match="E104") as caught:
        read_samples(tmp_path / "d.npz", [Port("x", np.dtype(np.float32), (1, 3))])
    assert message in str(caught.value)


def test_forms_of_data(tmp_path: Path) -> None:
    """A folder of files, the batch axis as the samples', double precision."""
    rng = np.random.default_rng(0)
    whole = rng.normal(size=(6, 3))
    for k in range(3):
        np.save(tmp_path / f"s{k + 8}.npy", whole[2 * k : 2 * k + 2])
    found = read_samples(tmp_path, [Port("x", np.dtype(np.float32), (1, 3))])
    assert np.array_equal(found.inputs["x"], whole.astype(np.float32)[:, None]) and len(found.files) == 3
    for k in range(3):
        np.save(tmp_path / f"s{k + 8}.npy", whole[k])
    port = Port("x", np.dtype(np.float32), (1, 3))
    assert np.array_equal(read_samples(tmp_path, [port]).inputs["x"][:, 0], whole[:3].astype(np.float32))
    np.savez(tmp_path / "s9.npz", in_0=whole[:2])
    with pytest.raises(CompileError, match="do not have the same arrays"):
        read_samples(tmp_path, [port])


def test_what_is_no_data(tmp_path: Path) -> None:
    port = Port("x", np.dtype(np.float32), (1, 3))
    (tmp_path / "d.npz").write_bytes(b"hello")
    np.savez(tmp_path / "o.npz", x=np.array([{}], dtype=object))
    (tmp_path / "f").mkdir()
    for name, words in (
        ("d.npz", r"neither \.npy nor \.npz"),
        ("o.npz", "not numbers or texts"),
        ("f", "no .npz, no .npy and no ONNX test data"),
    ):
        with pytest.raises(CompileError, match=words) as caught:
            read_samples(tmp_path / name, [port])
        assert str(caught.value).count("E104") == 1


@pytest.mark.parametrize(
    ("numbers", "fits"), [([-128, 127, 0], True), ([0, 128, 0], False), ([-129, 0, 0], False)]
)
def test_integers_that_an_input_does_not_have(numbers: list[int], fits: bool, tmp_path: Path) -> None:
    """Pixels from 0 to 255 for an int8 input would wrap in silence."""
    np.savez(tmp_path / "d.npz", x=np.array([numbers], np.int64))
    port = Port("x", np.dtype(np.int8), (3,))
    if fits:
        assert read_samples(tmp_path / "d.npz", [port]).inputs["x"].tolist() == [numbers]
    else:
        with pytest.raises(CompileError, match="which int8 does not have"):
            read_samples(tmp_path / "d.npz", [port])
