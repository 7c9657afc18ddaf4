"""Strings as elements of tensors: slots of a fixed size, UTF-8 with a NUL behind it and zeros to the end.

A numpy array of type S<n> has the same bytes as an array of the C type aot_model_string<n>.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from aot_model.ir.types import DType

WIDTHS = tuple(d.size for d in DType if d.is_string)
"""Bytes that a slot may have."""
DEFAULT_WIDTH = 64


def string_type(width: int) -> DType:
    """The element type with slots of `width` bytes."""
    return DType[f"STRING{width}"]


def encoded(texts: Any, dtype: DType) -> np.ndarray:
    """Texts (str, or bytes in UTF-8; one or an array) as slots. ValueError for one that no slot can hold."""
    array = np.asarray(texts, dtype=object)
    slots = np.zeros(array.shape, dtype.numpy)
    for place, text in np.ndenumerate(array):
        slots[place] = slot(text, dtype)
    return slots


def slot(text: str | bytes, dtype: DType) -> bytes:
    """One text as bytes. ValueError when a slot cannot hold it."""
    data = text.encode("utf-8") if isinstance(text, str) else bytes(text)
    shown = repr(data[:40].decode("utf-8", "replace")) + ("…" if len(data) > 40 else "")
    if b"\0" in data:
        raise ValueError(f"the string {shown} has a NUL in it")
    if len(data) >= dtype.size:
        raise ValueError(
            f"the string {shown} of {len(data)} bytes does not fit the {dtype.size - 1} that strings of this "
            "model have (--string-bytes)"
        )
    return data


def decoded(slots: np.ndarray) -> np.ndarray:
    """Slots as an array of str; bytes that are not UTF-8 become U+FFFD."""
    texts = np.empty(slots.shape, object)
    for place, data in np.ndenumerate(slots):
        texts[place] = data.split(b"\0")[0].decode("utf-8", "replace")
    return texts


def is_text(array: np.ndarray) -> bool:
    """Whether an array that the user gives holds strings."""
    return array.dtype.kind in "SUO"
