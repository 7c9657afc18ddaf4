"""An input or an attribute of a sample, changed to what is near."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value, constant

MOST_NUMBERS = 100
"""Of a constant that says something about lengths, axes or scales; more are weights."""
OTHER_TYPES = {"f": np.int8, "i": np.float32, "u": np.float32, "b": np.float32, "S": np.int64}


def changed(shape: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    """Shapes that are near: an axis more in front, one fewer in front, an extent more or fewer at the end,
    any other one more.
    """
    yield (1, *shape)
    if shape:
        yield shape[1:]
        yield (*shape[:-1], shape[-1] + 1)
        yield (*shape[:-1], max(shape[-1] - 1, 1))
        yield (shape[0] + 1, *shape[1:])
        yield (*shape, 1)
    for k in range(1, max(len(shape) - 1, min(len(shape), 2))):
        yield (*shape[:k], shape[k] + 1, *shape[k + 1 :])


def resized(value: Value, shape: tuple[int, ...], dtype: DType) -> Value:
    """The value with another shape and type, its numbers repeated."""
    if value.data is not None:
        with np.errstate(invalid="ignore"):
            return constant(value.name, np.resize(value.data, shape).astype(dtype.numpy))
    return Value(
        value.name,
        TensorType(dtype, shape),
        state=value.state,
        initial=None if value.initial is None else np.resize(value.initial, shape).astype(dtype.numpy),
    )


def _other_numbers(value: Value) -> Iterator[Value]:
    """A constant whose numbers are all zero, of the other sign, or larger, as no length, axis, scale or
    table is.
    """
    data = value.data
    if data is None or data.dtype.kind not in "iuf" or data.size > MOST_NUMBERS:
        return
    with np.errstate(over="ignore"):
        for numbers in (np.zeros_like(data), -data, data + data.dtype.type(7)):
            yield constant(value.name, numbers)


def variants(value: Value) -> Iterator[Value]:
    """The value with other shapes, of another type, with other numbers."""
    for shape in changed(value.shape):
        yield resized(value, shape, value.dtype)
    other = OTHER_TYPES.get(value.dtype.numpy.kind)
    if other is not None:
        yield resized(value, value.shape, DType.of(np.dtype(other)))
    yield from _other_numbers(value)


def other_values(value: object, model: bool) -> Iterator[object]:
    """What an attribute may be instead. model: the number may come from a file as it is; those of our own
    operators are made by frontends and passes.
    """
    if isinstance(value, (list, tuple)):
        if value and all(isinstance(v, (int, float)) for v in value):
            yield from ((), value[1:], (*value, value[-1]))
            yield from (tuple(factor * v + more for v in value) for factor, more in ((-1, 0), (0, 0), (1, 7)))
    elif isinstance(value, float):
        yield from (-value, value + 7, *((0.0, float("nan"), float("inf")) if model else ()))
    elif isinstance(value, int) and not isinstance(value, bool):
        yield from (-1, value + 7, *((0,) if model else ()))
