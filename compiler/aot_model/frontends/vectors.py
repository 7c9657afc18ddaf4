"""Test vectors: the inputs of a model and the outputs that it must give, from a file.

Two forms are read:

* `.npz` of numpy: arrays `in_<i>` and `out_<i>` in the order of the model's inputs and outputs, or by the
  names of its tensors, the vectors stacked on a leading axis (`in_0` of 5 vectors for an input [1, 64] is
  [5, 1, 64]); an array by name that has the shape of the tensor is one vector;
* ONNX test data (onnx/docs/OnnxBackendTest.md): a folder with `input_<i>.pb` and `output_<i>.pb`, one
  TensorProto each, which is one vector, or a folder with several such `test_data_set_<n>`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from aot_model.errors import CompileError, Problem, fail
from aot_model.frontends.arrays import Array, read_arrays
from aot_model.ir.strings import encoded, is_text
from aot_model.ir.types import TensorType


@dataclass(frozen=True)
class Vectors:
    """`count` vectors; every array is [count, *shape of the tensor]."""

    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    files: tuple[Path, ...]

    @property
    def count(self) -> int:
        """Number of vectors."""
        return len((self.inputs or self.outputs)[0])


Names = Sequence[Sequence[str]]
"""For each tensor, what it is called: in the file, in C."""


def load_vectors(
    path: Path,
    inputs: Sequence[TensorType],
    outputs: Sequence[TensorType],
    names: tuple[Names, Names] = ((), ()),
) -> Vectors:
    """The vectors of `path` for a model with these inputs and outputs, whose arrays may have these names.

    Raises CompileError E104, with all mismatches at once, when they do not fit the model or cannot be read.
    """
    known = {name for side in names for tensor in side for name in tensor}
    if path.is_dir():
        stacks, files = read_folder(path)
        there = sorted(stacks)
    else:
        stacks, there = _read_npz(path, known)
        files = (path,)
    problems: list[Problem] = []

    def fitted(prefix: str, types: Sequence[TensorType], called: Names) -> tuple[Array, ...]:
        arrays = []
        by_name = f"{prefix}_0" not in stacks
        for index, type_ in enumerate(types):
            key = f"{prefix}_{index}"
            if by_name and index < len(called):
                key = next((name for name in called[index] if name in stacks), key)
            array = stacks.get(key)
            if array is None:
                either = [key, *(repr(name) for name in called[index][:1])] if index < len(called) else [key]
                problems.append(
                    _problem(
                        path,
                        f"{key} ({type_}) is missing",
                        f"give {' or '.join(either)}; found: {', '.join(there)}",
                    )
                )
                continue
            if by_name and array.shape == type_.shape:
                array = array[np.newaxis]
            try:
                arrays.append(_fit(array, type_))
            except ValueError as error:
                problems.append(_problem(path, f"{key} {error}"))
        surplus = sorted(
            k for k in stacks if re.fullmatch(rf"{prefix}_\d+", k) and int(k[len(prefix) + 1 :]) >= len(types)
        )
        if surplus:
            problems.append(_problem(path, f"{', '.join(surplus)}: the model has only {len(types)} of these"))
        return tuple(arrays)

    ins, outs = fitted("in", inputs, names[0]), fitted("out", outputs, names[1])
    counts = {len(array) for array in (*ins, *outs)}
    if len(counts) > 1:
        problems.append(_problem(path, f"the arrays have different numbers of vectors: {sorted(counts)}"))
    elif counts <= {0} and not problems:
        problems.append(_problem(path, "there is no vector"))
    if problems:
        raise CompileError(problems)
    return Vectors(ins, outs, files)


def _problem(path: Path, message: str, hint: str = "") -> Problem:
    return Problem("E104", message, str(path), hint)


def _fit(stack: Array, type_: TensorType) -> Array:
    """`stack` with the dtype of the tensor, its shape checked; ValueError says what does not fit."""
    want = type_.dtype.numpy
    if type_.dtype.is_string and is_text(stack):
        stack = encoded(stack, type_.dtype)
    if stack.dtype != want:
        is_bits = stack.dtype.kind == "V" or (stack.dtype.kind == "u" and type_.dtype.is_float)
        if type_.dtype.storage and is_bits and stack.dtype.itemsize == want.itemsize:
            # numpy's files keep such types as anonymous bytes, if at all; or given as bits
            stack = stack.view(want)
        elif (
            type_.dtype.storage
            and type_.dtype.is_integer
            and stack.dtype == np.dtype(type_.dtype.compute.numpy)
        ):
            low, high = type_.dtype.limits
            if np.any((stack < low) | (stack > high)):
                raise ValueError(f"has elements that are none of {low} to {high}")
            stack = stack.astype(want)
        else:
            raise ValueError(f"is {stack.dtype}, the model says {want}")
    if stack.ndim == 0 or stack.shape[1:] != type_.shape:
        raise ValueError(f"has shape {list(stack.shape)}, not [vectors, *{list(type_.shape)}]")
    return stack


def _read_npz(path: Path, known: Collection[str]) -> tuple[dict[str, Array], list[str]]:
    """The arrays `in_<i>`, `out_<i>` and those of known names; the names of all."""
    arrays, names = read_arrays(
        path, "vectors", lambda name: name in known or bool(re.fullmatch(r"(in|out)_\d+", name))
    )
    if "" in arrays:
        raise fail("E104", "the vectors are a single array: give an .npz archive", where=str(path))
    return arrays, names


def read_folder(path: Path) -> tuple[dict[str, Array], tuple[Path, ...]]:
    """ONNX test data, stacked like an .npz; and its files."""
    sets = sorted(path.glob("test_data_set_*"), key=_number) or [path]
    stacks: dict[str, list[Array]] = {}
    files: list[Path] = []
    for folder in sets:
        tensors = sorted(
            (*folder.glob("input_*.pb"), *folder.glob("output_*.pb")), key=lambda f: (f.name[0], _number(f))
        )
        for file in tensors:
            kind = "in" if file.name.startswith("input") else "out"
            stacks.setdefault(f"{kind}_{_number(file)}", []).append(_read_tensor(file))
            files.append(file)
    if not files:
        raise fail("E104", "the folder has no input_<i>.pb and output_<i>.pb", where=str(path))
    try:
        return {key: np.stack(arrays) for key, arrays in stacks.items()}, tuple(files)
    except ValueError as error:
        raise fail("E104", f"the test data sets do not agree: {error}", where=str(path)) from None


def _number(path: Path) -> int:
    match = re.search(r"(\d+)(\.pb)?$", path.name)
    return int(match[1]) if match else -1


def _read_tensor(file: Path) -> Array:
    import onnx
    from onnx import numpy_helper

    try:
        return np.asarray(numpy_helper.to_array(onnx.load_tensor(str(file))))
    except Exception as error:  # protobuf's DecodeError and onnx's own, which share no base
        raise fail("E104", f"not a TensorProto: {error}", where=str(file)) from None
