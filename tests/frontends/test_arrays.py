"""Files of arrays that are damaged or meant to harm: one error, nothing else."""

from __future__ import annotations

import io
import random
import zipfile
from pathlib import Path

import numpy as np
import pytest

from aot_model.errors import CompileError
from aot_model.frontends.arrays import read_arrays


def npy(shape: str = "(2,)", dtype: str = "'<f4'", data: bytes = bytes(8)) -> bytes:
    """An .npy with that header, whatever follows it."""
    header = f"{{'descr': {dtype}, 'fortran_order': False, 'shape': {shape}}}\n".encode()
    return b"\x93NUMPY\1\0" + len(header).to_bytes(2, "little") + header + data


HOSTILE = {
    "an array of 4 TB": npy("(1099511627776,)"),
    "a negative extent": npy("(-5,)"),
    "data that end": npy("(3,)"),
    "an expression": npy("(9**9**9,)"),
    "objects": npy(dtype="'|O'", data=b"cos\nsystem\n(S'exit'\ntR."),
    "parentheses without end": b"\x93NUMPY\1\0" + (9000).to_bytes(2, "little") + b"(" * 9000,
    "a header that ends": b"\x93NUMPY\1\0\xff\xff{",
    "text": b"hello",
    "nothing": b"",
}


@pytest.mark.parametrize("name", HOSTILE)
@pytest.mark.parametrize("archive", [False, True])
def test_hostile_files(name: str, archive: bool, tmp_path: Path) -> None:
    path = tmp_path / "x"
    if archive:
        with zipfile.ZipFile(path, "w") as file:
            file.writestr("in_0.npy" if name != "text" else "in_0", HOSTILE[name])
    else:
        path.write_bytes(HOSTILE[name])
    with pytest.raises(CompileError, match=r"x: error: the vectors cannot be read: .+ \[E104\]") as caught:
        read_arrays(path, "vectors")
    assert ("Python objects" in str(caught.value)) == (name == "objects")


def test_files_that_are_as_numpy_writes_them(tmp_path: Path) -> None:
    arrays = {"x": np.arange(6, dtype=np.int16).reshape(2, 3), "y": np.array(["text"])}
    np.savez(tmp_path / "a.npz", **arrays)
    np.save(tmp_path / "a.npy", arrays["x"])
    found, names = read_arrays(tmp_path / "a.npz", "inputs")
    assert names == ["x", "y"] and all(np.array_equal(found[k], arrays[k]) for k in arrays)
    found, names = read_arrays(tmp_path / "a.npz", "inputs", lambda name: name == "y")
    assert list(found) == ["y"] and names == ["x", "y"]
    found, names = read_arrays(tmp_path / "a.npy", "inputs")
    assert names == [""] and np.array_equal(found[""], arrays["x"])


def test_damaged_files(tmp_path: Path) -> None:
    """Bytes changed, left out, cut off: arrays or E104."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, x=np.arange(40.0), name_of_another=np.ones((2, 3), np.int8))
    whole, rng, refused = buffer.getvalue(), random.Random(5), 0
    for _ in range(400):
        data = bytearray(whole)
        for _ in range(rng.randrange(1, 4)):
            at = rng.randrange(len(data))
            data[at : at + rng.choice([0, 1, 1, 1, 9])] = bytes(rng.choice([[], [rng.randrange(256)]]))
        path = tmp_path / "x.npz"
        path.write_bytes(data[: rng.choice([len(data), rng.randrange(len(data))])])
        try:
            read_arrays(path, "data")
        except CompileError as error:
            refused += [p.code for p in error.problems] == ["E104"]
    assert refused > 200
