"""Element types, tensor types and quantisation parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
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
    # Storage only: values are computed in `compute`, and converted where they are read and written.
    FLOAT8E4M3FN = ("float8_e4m3fn", "uint8_t", "float", 8)
    FLOAT8E4M3FNUZ = ("float8_e4m3fnuz", "uint8_t", "float", 8)
    FLOAT8E5M2 = ("float8_e5m2", "uint8_t", "float", 8)
    FLOAT8E5M2FNUZ = ("float8_e5m2fnuz", "uint8_t", "float", 8)
    FLOAT8E8M0 = ("float8_e8m0fnu", "uint8_t", "float", 8)
    FLOAT6E2M3 = ("float6_e2m3fn", "uint8_t", "float", 6)
    FLOAT6E3M2 = ("float6_e3m2fn", "uint8_t", "float", 6)
    FLOAT4E2M1 = ("float4_e2m1fn", "uint8_t", "float", 4)
    INT4 = ("int4", "int8_t", "int", 4)
    INT2 = ("int2", "int8_t", "int", 2)
    UINT4 = ("uint4", "uint8_t", "uint", 4)
    UINT2 = ("uint2", "uint8_t", "uint", 2)
    # Slots for UTF-8 text with a NUL behind it; a model has one of these for all its strings (ir/strings.py).
    STRING16 = ("string16", "aot_model_string16", "string", 128)
    STRING32 = ("string32", "aot_model_string32", "string", 256)
    STRING64 = ("string64", "aot_model_string64", "string", 512)
    STRING128 = ("string128", "aot_model_string128", "string", 1024)
    STRING256 = ("string256", "aot_model_string256", "string", 2048)
    STRING512 = ("string512", "aot_model_string512", "string", 4096)
    STRING1024 = ("string1024", "aot_model_string1024", "string", 8192)

    def __init__(self, label: str, c_type: str, kind: str, bits: int) -> None:
        self.label = label
        self.c_type = c_type
        self.kind = kind
        self.bits = bits

    @property
    def size(self) -> int:
        """Bytes of one element in memory: a type of less than 8 bits has a byte for each element."""
        return max(self.bits // 8, 1)

    @property
    def alignment(self) -> int:
        """Bytes."""
        return 1 if self.is_string else self.size

    @property
    def is_float(self) -> bool:
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        return self.kind in ("int", "uint")

    @property
    def is_string(self) -> bool:
        return self.kind == "string"

    @property
    def numpy(self) -> np.dtype[np.generic]:
        if self.is_string:
            return np.dtype(f"S{self.size}")  # the same bytes as the C type
        return (
            np.dtype(getattr(ml_dtypes, self.label))
            if hasattr(ml_dtypes, self.label)
            else np.dtype(self.label)
        )

    @property
    def storage(self) -> bool:
        """Whether C has no arithmetic for the type."""
        return (self.is_float and self.bits < 32) or (self.is_integer and self.bits < 8)

    @property
    def compute(self) -> DType:
        """The type in which values are computed."""
        if not self.storage:
            return self
        return DType.FLOAT32 if self.is_float else DType.INT8 if self.kind == "int" else DType.UINT8

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


_BY_NAME = {name: d for d in DType for name in (d.label, str(d.numpy))}


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
    """Affine quantisation: real = scale * (integer - zero_point), per tensor (axis None) or per index of
    `axis`.
    """

    scale: tuple[float, ...]
    zero_point: tuple[int, ...]
    axis: int | None = None


MAX_BYTES = 2**31 - 1
"""Of one tensor, and of all memory and all constants of a program: generated code counts in int32_t, and
compilers for 32 bits have no larger object.
"""


def elements_beside(shape: Sequence[int]) -> int:
    """Elements of a tensor if each axis without any had one: limits of sizes must not miss the other axes of
    an empty tensor, along which there are tables.
    """
    return math.prod(max(d, 1) for d in shape)


def strides_of(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Element strides of a dense tensor, last index fastest."""
    result = [1] * len(shape)
    for i in range(len(shape) - 2, -1, -1):
        result[i] = result[i + 1] * shape[i + 1]
    return tuple(result)
