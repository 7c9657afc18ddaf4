"""Weights of 4 bits for the kernels of 8-bit weights.

A kernel's packed weights, in whatever order it reads them, are packed once more, two in a byte, and unpacked into scratch
memory before the kernel runs: every kernel of every instruction set takes them so, at its own speed. Where there is no room
for a layer's weights in RAM, conv_c reads them two at a time where they lie.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from aot_model.ir.nibbles import packed
from aot_model.kernels.base import KernelCode, Packed, Scratch

ROOM = {"size": 1024, "balanced": 4096, "speed": 32768}
"""Bytes of a layer's unpacked weights that may be in scratch memory, by what the target's option `optimize` says."""
_KINDS = (("int4", np.dtype(np.int8), -8, 7), ("uint4", np.dtype(np.uint8), 0, 15))


def _kind(data: np.ndarray) -> str | None:
    """The 4-bit type that holds an array of bytes, if one does."""
    return next((k for k, dtype, low, high in _KINDS if data.dtype == dtype and data.size and low <= data.min() and data.max() <= high), None)


def staged(code: KernelCode, room: int | None) -> KernelCode | None:
    """The kernel with its weights unpacked before; None where they are not bytes by themselves, or larger than `room`."""
    found = [c for c in code.constants if _kind(c.data)]
    size = sum(c.data.size for c in found)
    others = [c for c in code.constants if not _kind(c.data) and c.data.dtype.itemsize == 1]
    if not found or others or (room is not None and size > room):
        return None
    lines = [f"aot_model_unpack_{_kind(c.data)}(packed_{c.name}, {c.name}, {c.data.size});" for c in found]
    scratch = [Scratch(c.name, c.data.size, c.align, f"{c.data.dtype}_t") for c in found]
    constants = [Packed(f"packed_{c.name}", packed(c.data), 4) if _kind(c.data) else c for c in code.constants]
    return replace(
        code, body="\n".join([*lines, code.body]), constants=tuple(constants), scratch=(*code.scratch, *scratch),
        includes=code.includes | {"aot_model/narrow.h"}, note=f"{code.note}; weights of 4 bits, unpacked before",
    )  # fmt: skip
