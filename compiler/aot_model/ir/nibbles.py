"""Constants of 4-bit integers stay as they are in the model's file, two in a byte: whoever reads one takes it
out there.

What a program writes (workspace, outputs, states) has a byte for each element.
"""

from __future__ import annotations

import numpy as np

from aot_model.ir.expr import Cell
from aot_model.ir.program import Access, Param
from aot_model.ir.types import DType
from aot_model.ir.values import Value

NIBBLES = (DType.INT4, DType.UINT4)


def is_packed(value: Value) -> bool:
    """Whether a value is a constant of which two elements share a byte."""
    return value.is_const and value.dtype in NIBBLES


def packed(data: np.ndarray) -> np.ndarray:
    """4-bit integers in bytes, the first of a pair in the low half."""
    flat = data.reshape(-1).astype(np.int16) & 15
    even = np.append(flat, 0) if flat.size % 2 else flat
    return np.asarray(even[::2] | even[1::2] << 4, dtype=np.uint8)


def read_parameter(name: str, value: Value) -> Param:
    """The parameter through which a function reads a value."""
    return Param(name, DType.UINT8 if is_packed(value) else value.dtype, Access.READ)


def element_text(cell: Cell, name: str, position: str, headers: set[str]) -> str:
    """C of an element of a value whose memory is called `name`."""
    if not is_packed(cell.value):
        return f"{name}[{position}]"
    headers.add("aot_model/narrow.h")
    return f"aot_model_{cell.value.dtype.label}_at({name}, {position})"
