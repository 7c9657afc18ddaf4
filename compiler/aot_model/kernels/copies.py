"""Copies of memory, as the vectors of a target do them."""

from __future__ import annotations

from aot_model.kernels.int8 import requantise_mve

LONG = 64
"""Bytes from which on vectors of 16 are copied faster than memcpy() of common libraries does it."""


def copied(to: str, source: str, nbytes: int, dialect: str) -> tuple[str, str]:
    """(statement, header that it needs); dialect: the target's."""
    if dialect == "mve" and nbytes >= LONG:
        copy = f"aot_mve_copy((int8_t *){to}, (const int8_t *){source}, {nbytes});"
        return copy, requantise_mve.HEADER
    return f"memcpy({to}, {source}, {nbytes}u);", "string.h"
