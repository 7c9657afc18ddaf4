"""Constants as C literals."""

from __future__ import annotations

import math
import re

import numpy as np

from aot_model.c.names import bytes_literal
from aot_model.ir.types import DType


def float_literal(value: float, dtype: DType) -> str:
    """A C literal with the same bits.

    A double that no float holds is written as a long double, exactly, and cast: -fsingle-precision-constant
    of GCC makes constants without a suffix floats.
    """
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    with np.errstate(over="ignore", under="ignore"):
        single = np.float32(value)
    if dtype is not DType.FLOAT64:
        return _with_point(str(single)) + "f"
    return _with_point(repr(float(value))) if float(single) == value else f"(double){_hexadecimal(value)}L"


def _hexadecimal(value: float) -> str:
    """Of a double: a sign, 0x1., up to 13 digits and an exponent."""
    return re.sub(r"\.?0*p", "p", float(value).hex())


def _with_point(text: str) -> str:
    return text if "." in text or "e" in text else text + ".0"


def int_literal(value: int, dtype: DType) -> str:
    """A C literal of the type, the smallest value of a type included."""
    if dtype is DType.BOOL:
        return "true" if value else "false"
    if dtype is DType.UINT64:
        return f"UINT64_C({value})"
    if dtype is DType.INT64:
        return f"(-INT64_C({2**63 - 1}) - 1)" if value == -(2**63) else f"INT64_C({value})"
    if dtype is DType.UINT32:
        return f"{value}u"
    if value == -(2**31):
        return f"(-{2**31 - 1} - 1)"
    return str(value)


def literal(value: int | float | bool | bytes, dtype: DType) -> str:
    if isinstance(value, bytes):
        return f"({dtype.c_type}){{{bytes_literal(value)}}}"
    if dtype.storage and dtype.is_float:
        return hex(
            int(np.asarray(value).astype(dtype.numpy).view(np.uint16 if dtype.bits == 16 else np.uint8))
        )
    return float_literal(float(value), dtype) if dtype.is_float else int_literal(int(value), dtype)
