"""Inputs for two models from one file of arrays: each gets them in its own type, shape and order of axes."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from aot_model.errors import fail
from aot_model.layers.sides import Side
from aot_model.layers.signals import Steps

Array = np.ndarray


def vectors(side: Side, other: Side, arrays: Mapping[str, Array], where: str) -> list[list[Array]]:
    """The inputs of each run. CompileError E104 with what does not fit.

    arrays: by the name of an input, of either model, or `in_<i>`; the samples are on the leading axis.
    """
    columns = []
    for k, (name, dtype, shape) in enumerate(side.shapes):
        names = (name, f"in_{k}", *(n for n, _, _ in list(other.shapes)[k : k + 1]))
        found = next((arrays[n] for n in names if n in arrays), None)
        if found is None and len(arrays) == 1 == len(side.shapes):
            found = next(iter(arrays.values()))
        if found is None:
            raise fail(
                "E104",
                f"input '{name}' is missing",
                where=where,
                hint=f"there are: {', '.join(sorted(arrays)) or 'no arrays'}; say {name} or in_{k}",
            )
        column = _shaped(found, shape)
        if column is None:
            wanted = ", ".join("?" if n is None else str(n) for n in shape)
            raise fail(
                "E104",
                f"input '{name}' of {side.path.name} is {found.dtype}{list(found.shape)}, not [samples, "
                f"{wanted}]",
                where=where,
            )
        columns.append(_typed(column, dtype, _steps(side, k), _steps(other, k)))
    count = {len(c) for c in columns}
    if len(count) != 1 or count == {0}:
        raise fail(
            "E104",
            "there is no sample"
            if count in (set(), {0})
            else f"the inputs have different numbers of samples: {sorted(count)}",
            where=where,
        )
    return [list(row) for row in zip(*columns, strict=True)]


def _shaped(array: Array, shape: tuple[int | None, ...]) -> Array | None:
    """[samples, *shape]: as it is, without the axis of 1 in front, or with channels on the other side; one
    sample may have no axis of its own."""
    rank = len(shape)
    for candidate in (array, array[:, np.newaxis] if array.ndim else array, array[np.newaxis]):
        if candidate.ndim != rank + 1:
            continue
        moved = (
            (candidate, np.moveaxis(candidate, -1, 2), np.moveaxis(candidate, 2, -1))
            if rank >= 3
            else (candidate,)
        )
        for one in moved:
            if all(want is None or want == have for want, have in zip(shape, one.shape[1:], strict=True)):
                return one
    return None


def _steps(side: Side, k: int) -> Steps | None:
    if k >= len(side.signals.inputs):
        return None
    key = side.signals.inputs[k]
    return side.signals.of[key].steps.get(key)


def _typed(
    array: Array, dtype: np.dtype[np.generic] | None, own: Steps | None, others: Steps | None
) -> Array:
    """In the model's type: real numbers become integers by its scale, integers real ones by the scale of
    the model that has them."""
    if dtype is None or array.dtype == dtype:
        return np.ascontiguousarray(array)
    if array.dtype.kind == "f" and dtype.kind in "iu" and own is not None:
        return own.integers(array, dtype)
    if array.dtype.kind in "iu" and dtype.kind == "f" and others is not None:
        return others.real(array).astype(dtype)
    if array.dtype.kind in "iu" and dtype.kind in "iu" and own is not None and others is not None:
        return own.integers(others.real(array), dtype)
    return np.ascontiguousarray(array.astype(dtype))
