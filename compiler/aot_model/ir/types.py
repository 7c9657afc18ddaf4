"""Element types, tensor types and quantisation parameters."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import Enum

import ml_dtypes
import numpy as np


class DType(Enum):
    """An element type: name, C type of its storage, kind, bits of the value."""

    FLOAT64 = ("float64", "double", "float", 64)
    FLOAT32 = ("float32", "float", "float", 32)
    FLOAT16 = ("float16", "uint16_t", "float", 16)
    BFLOAT16 = ("bfloat16", "uint16_t", "float", 16)
    INT64 = ("int64", "int64_t", "int", 64)
    INT32 = ("int32", "int32_t", "int", 32)
    INT16 = ("int16", "int16_t", "int", 16)
    INT8 = ("int8", "int8_t", "int", 8)
    UINT64 = ("uint64", "uint64_t", "uint", 64)
    UINT32 = ("uint32", "uint32_t", "uint", 32)
    UINT16 = ("uint16", "uint16_t", "uint", 16)
    UINT8 = ("uint8", "uint8_t", "uint", 8)
    BOOL = ("bool", "bool", "bool", 8)

    def __init__(self, label: str, c_type: str, kind: str, bits: int) -> None:
        self.label = label
        self.c_type = c_type
        self.kind = kind
        self.bits = bits

    @property
    def size(self) -> int:
        """Bytes of one element in memory."""
        return max(self.bits // 8, 1)

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")

    @property
    def numpy(self) -> np.dtype[np.generic]:
        return np.dtype(ml_dtypes.bfloat16) if self is DType.BFLOAT16 else np.dtype(self.label)

    @property
    def limits(self) -> tuple[int, int]:
        """Smallest and largest value of an integer type."""
        if self.kind == "int":
            return -(1 << (self.bits - 1)), (1 << (self.bits - 1)) - 1
        return 0, (1 if self is DType.BOOL else (1 << self.bits) - 1)

    @staticmethod
    def of(dtype: np.dtype[np.generic] | str) -> DType:
        """The element type of a numpy dtype or name; KeyError when there is none."""
        return _BY_NAME[str(np.dtype(dtype)) if not isinstance(dtype, str) else dtype]


_BY_NAME = {d.label: d for d in DType}


@dataclass(frozen=True)
class TensorType:
    """Element type and static shape. A scalar has shape ()."""

    dtype: DType
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        return math.prod(self.shape)

    @property
    def nbytes(self) -> int:
        return self.elements * self.dtype.size

    @property
    def rank(self) -> int:
        return len(self.shape)

    def __str__(self) -> str:
        return f"{self.dtype.label}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True)
class Quantisation:
    """Affine quantisation: real = scale * (integer - zero_point), per tensor (axis None) or per index of `axis`."""

    scale: tuple[float, ...]
    zero_point: tuple[int, ...]
    axis: int | None = None


def strides_of(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Element strides of a dense tensor, last index fastest."""
    result = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        result[i] = result[i + 1] * shape[i + 1]
    return tuple(result)
