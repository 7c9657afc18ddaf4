"""Constants as C literals."""

from __future__ import annotations

import math

from aot_model.c.names import bytes_literal
from aot_model.ir.types import DType


def float_literal(value: float, dtype: DType) -> str:
    """A C literal with the same bits."""
    suffix = "f" if dtype is not DType.FLOAT64 else ""
    if math.isnan(value):
        return "NAN"
    if math.isinf(value):
        return "INFINITY" if value > 0 else "-INFINITY"
    if suffix:
        import numpy as np

        text = str(np.float32(value))
    else:
        text = repr(float(value))
    if "." not in text and "e" not in text:
        text += ".0"
    return text + suffix


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
        import numpy as np

        return hex(
            int(np.asarray(value).astype(dtype.numpy).view(np.uint16 if dtype.bits == 16 else np.uint8))
        )
    return float_literal(float(value), dtype) if dtype.is_float else int_literal(int(value), dtype)
