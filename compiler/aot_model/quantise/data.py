"""Calibration data: what is read from a file or folder, what is refused, and what is held back."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from aot_model.errors import CompileError, Problem, fail
from aot_model.frontends.arrays import Array, read_arrays
from aot_model.frontends.vectors import read_folder

LABELS = ("labels", "label", "y")
WHAT = "data"
"""In messages."""
FEW = 32
"""Fewer samples say little of the ranges that will be met."""


@dataclass(frozen=True)
class Port:
    """An input of the model."""

    name: str
    dtype: np.dtype[np.generic]
    shape: tuple[int, ...]


@dataclass(frozen=True)
class Samples:
    """Inputs of the model by name, the samples on a leading axis; the right answers, where they are known."""

    inputs: Mapping[str, Array]
    labels: Array | None
    files: tuple[Path, ...]
    where: str

    @property
    def count(self) -> int:
        return len(next(iter(self.inputs.values())))

    def vector(self, k: int) -> dict[str, Array]:
        return {name: np.asarray(array[k]) for name, array in self.inputs.items()}

    def take(self, rows: Array) -> Samples:
        labels = None if self.labels is None else self.labels[rows]
        return Samples({n: a[rows] for n, a in self.inputs.items()}, labels, self.files, self.where)


def read_samples(path: Path, ports: Sequence[Port]) -> Samples:
    """The samples of an .npz, an .npy or a folder. CompileError E101, E104 with everything that does not
    fit."""
    try:
        arrays, files = _folder(path, ports) if path.is_dir() else (read_arrays(path, WHAT)[0], (path,))
    except OSError as error:  # a folder that may not be listed
        raise fail("E101", f"cannot read the data: {error.strerror or error}", where=str(path)) from None
    if set(arrays) == {""}:
        if len(ports) != 1:
            raise fail(
                "E104",
                f"the data are a single array, and the model has {len(ports)} inputs",
                where=str(path),
                hint="give an .npz with an array for each input, by its name or as in_<i>",
            )
        arrays = {ports[0].name: arrays[""]}
    problems: list[Problem] = []
    found: dict[str, Array] = {}
    for number, port in enumerate(ports):
        key = next((k for k in (f"in_{number}", port.name) if k in arrays), None)
        if key is None:
            there = ", ".join(sorted(arrays)) or "no arrays"
            problems.append(
                Problem(
                    "E104",
                    f"input '{port.name}' is missing",
                    str(path),
                    f"call it in_{number} or '{port.name}'; there are: {there}",
                )
            )
            continue
        try:
            found[port.name] = _fitted(arrays[key], port)
        except ValueError as error:
            problems.append(Problem("E104", f"input '{key}' {error}", str(path)))
    counts = {len(a) for a in found.values()}
    if not problems and len(counts) != 1:
        problems.append(
            Problem("E104", f"the inputs have different numbers of samples: {sorted(counts)}", str(path))
        )
    labels = next((arrays[k] for k in LABELS if k in arrays), None)
    if labels is not None and not problems:
        labels = (
            labels.reshape(len(labels), -1).argmax(axis=1)
            if labels.ndim == 2 and labels.shape[1] > 1
            else labels
        )
        if len(labels) != min(counts):
            message = f"there are {len(labels)} labels for {min(counts)} samples"
            problems.append(Problem("E104", message, str(path)))
        labels = labels.reshape(-1)
    if problems:
        raise CompileError(problems)
    return Samples(found, labels, files, str(path))


def _folder(path: Path, ports: Sequence[Port]) -> tuple[dict[str, Array], tuple[Path, ...]]:
    """Folders of ONNX test data; else each .npz or .npy is some samples, or one without the extent of 1, in
    the order of the names."""
    files = sorted((f for f in path.iterdir() if f.suffix in (".npz", ".npy")), key=_natural)
    if not files:
        if not any(path.rglob("input_*.pb")):
            raise fail("E104", "the folder has no .npz, no .npy and no ONNX test data", where=str(path))
        stacks, used = read_folder(path)
        return dict(stacks), used
    pieces: dict[str, list[Array]] = {}
    ones: dict[str, tuple[int, ...]] = {}
    for number, port in enumerate(ports):
        if port.shape[:1] == (1,):
            keys = (port.name, f"in_{number}", *([""] if len(ports) == 1 else []))
            ones.update(dict.fromkeys(keys, port.shape[1:]))
    for file in files:
        for key, array in read_arrays(file, WHAT)[0].items():
            alone = array.shape == ones.get(key)
            pieces.setdefault(key, []).append(array[np.newaxis] if alone else array)
    try:
        if len({len(p) for p in pieces.values()}) > 1:
            raise ValueError("its files do not have the same arrays")
        return {key: np.concatenate(p) for key, p in pieces.items()}, tuple(files)
    except ValueError as error:
        raise fail("E104", f"the data cannot be read: {error}", where=str(path)) from None


def _natural(path: Path) -> list[tuple[int, str]]:
    return [(int(part or 0), "") if part.isdigit() else (0, part) for part in re.split(r"(\d+)", path.name)]


def _fitted(array: Array, port: Port) -> Array:
    """Samples of exactly the input's shape; where its first extent is 1, that axis may be the samples'."""
    if array.dtype != port.dtype:
        if not (
            array.dtype.kind == port.dtype.kind == "f"
            or (array.dtype.kind in "iu" and port.dtype.kind in "iu")
        ):
            raise ValueError(
                f"is {array.dtype}, the model says {port.dtype}: give what the model is given in use"
            )
        if array.size and array.dtype.kind in "iu":
            limits = np.iinfo(port.dtype.str)
            low, high = int(array.min()), int(array.max())
            if low < limits.min or high > limits.max:
                raise ValueError(f"has numbers from {low} to {high}, which {port.dtype} does not have")
        array = array.astype(port.dtype)
    if array.shape[1:] == port.shape and array.ndim:
        return _checked(array)
    if port.shape[:1] == (1,) and array.ndim == len(port.shape) and array.shape[1:] == port.shape[1:]:
        return _checked(array[:, np.newaxis])
    raise ValueError(f"has shape {list(array.shape)}, not [samples, {', '.join(map(str, port.shape))}]")


def _checked(array: Array) -> Array:
    if not array.size:
        raise ValueError("is empty: there is no sample")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        bad = int((~np.isfinite(array.reshape(len(array), -1))).any(axis=1).sum())
        raise ValueError(f"has NaN or infinity in {bad} of {len(array)} samples")
    return array


def doubts(samples: Samples) -> list[str]:
    """What is odd about the samples themselves. CompileError E104 when nothing can be learnt of them."""
    said = []
    for name, array in samples.inputs.items():
        if array.dtype.kind == "f" and array.min() == array.max():
            raise fail(
                "E104",
                f"all numbers of input '{name}' are {array.flat[0]:g}: ranges cannot be learnt of them",
                where=samples.where,
                hint="give samples of what the model will see",
            )
    if samples.count < FEW:
        number = f"{samples.count} sample{'s' if samples.count > 1 else ''}"
        said.append(f"only {number}: ranges of {FEW} and more can be trusted")
    if samples.count > 1 and all((a == a[:1]).all() for a in samples.inputs.values()):
        said.append("all samples are the same")
    if samples.labels is not None and samples.count > 1 and len(set(samples.labels.tolist())) == 1:
        said.append(
            f"all samples are of one class ({samples.labels[0]}): the ranges of the others may be larger"
        )
    return said


def split(samples: Samples, share: float, seed: int) -> tuple[Samples, Samples]:
    """(for calibration, held back): by a permutation that the seed decides."""
    if samples.count < 2 or share <= 0:
        return samples, samples
    order = np.random.default_rng(seed).permutation(samples.count)
    held = min(max(1, round(share * samples.count)), samples.count - 1)
    return samples.take(np.sort(order[held:])), samples.take(np.sort(order[:held]))
