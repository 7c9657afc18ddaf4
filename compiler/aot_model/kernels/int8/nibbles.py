"""Weights of 4 bits for the kernels of 8-bit weights.

A kernel's packed weights, in whatever order it reads them, are packed once more, two in a byte, and unpacked
into scratch memory before the kernel runs: every kernel of every instruction set takes them so, at its own
speed. Where there is no room for a layer's weights in RAM, conv_c reads them two at a time where they lie.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from aot_model.ir.admissible import ANYTHING
from aot_model.ir.nibbles import packed
from aot_model.kernels.base import KernelCode, Packed, Scratch

ROOM = {"size": 1024, "balanced": 4096, "speed": 32768}
"""Bytes of a layer's unpacked weights that may be in scratch memory, by what the target's option `optimize`
says.
"""
_KINDS = (("int4", np.dtype(np.int8), -8, 7), ("uint4", np.dtype(np.uint8), 0, 15))


def _kind(data: np.ndarray) -> str | None:
    """The 4-bit type that holds an array of bytes, if one does."""
    return next((k for k, dtype, low, high in _KINDS
                 if data.dtype == dtype and data.size and low <= data.min() and data.max() <= high), None)


SHORT = 4
"""Words: a shorter run of packed ones is not worth its counts."""


def _runs(words: np.ndarray) -> list[tuple[int, int]]:
    """(words as they are, words of four 4-bit integers) alternately."""
    small = words.view(np.int8).reshape(-1, 4)
    fits = ((small >= -8) & (small <= 7)).all(axis=1)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], fits.view(np.int8), [0]])))
    runs, at = [], 0
    for begin, end in edges.reshape(-1, 2).tolist():
        if end - begin >= SHORT:
            runs.append((begin - at, end - begin))
            at = end
    return [*runs, (words.size - at, 0)]


def _words(code: KernelCode, room: int | None) -> KernelCode | None:
    """The kernel with streams of words, weights among other numbers, put together before; None where there
    are none, or no room.
    """
    lines, constants, scratch = [], [], []
    for c in code.constants:
        whole = c.data.nbytes % 4 == 0 and c.data.dtype.kind in "iu"
        words = np.ascontiguousarray(c.data).reshape(-1).view("<i4") if whole else np.zeros(0, "<i4")
        runs = _runs(words)
        if sum(n for _, n in runs) * 2 < max(words.size, 1) or max(max(r) for r in runs) > 65535:
            constants.append(c)
            continue
        ends = np.cumsum([a + b for a, b in runs]).tolist()
        raw = [words[end - a - b : end - b] for (a, b), end in zip(runs, ends, strict=True)]
        small = [words[end - b : end] for (_, b), end in zip(runs, ends, strict=True)]
        constants += [
            Packed(f"packed_{c.name}", packed(np.concatenate(small).view(np.int8)), 4, ANYTHING),
            Packed(f"runs_{c.name}", np.asarray(runs, np.uint16).reshape(-1), 4, code=True),
            Packed(
                f"words_{c.name}",
                np.concatenate([*raw, np.zeros(0 if any(r.size for r in raw) else 1,
                                               "<i4")]).astype(np.int32), 4, c.admissible)
        ]
        scratch.append(Scratch(c.name, c.data.nbytes, max(c.align, 4), f"{c.data.dtype}_t"))
        lines.append(
            f"aot_model_unpack_words(packed_{c.name}, words_{c.name}, runs_{c.name}, {len(runs)}, (int32_t "
            f"*)(void *){c.name});"
        )
    if not lines or (room is not None and sum(s.nbytes for s in scratch) > room):
        return None
    return _unpacked(code, lines, constants, scratch)


def staged(code: KernelCode, room: int | None) -> KernelCode | None:
    """The kernel with its weights unpacked before; None where they are not bytes by themselves, or larger
    than `room`.
    """
    found = [c for c in code.constants if _kind(c.data)]
    size = sum(c.data.size for c in found)
    others = [c for c in code.constants if not _kind(c.data) and c.data.dtype.itemsize == 1]
    if not found or others:
        return _words(code, room)
    if room is not None and size > room:
        return None
    lines = [f"aot_model_unpack_{_kind(c.data)}(packed_{c.name}, {c.name}, {c.data.size});" for c in found]
    scratch = [Scratch(c.name, c.data.size, c.align, f"{c.data.dtype}_t") for c in found]
    constants = [
        Packed(f"packed_{c.name}", packed(c.data), 4, ANYTHING) if _kind(c.data) else c
        for c in code.constants
    ]
    return _unpacked(code, lines, constants, scratch)


def _unpacked(code: KernelCode, lines: list[str], constants: list[Packed],
              scratch: list[Scratch]) -> KernelCode:  # fmt: skip
    """The kernel behind the lines that unpack its constants into scratch memory."""
    return replace(code,
                   body="\n".join([*lines, code.body]),
                   constants=tuple(constants),
                   scratch=(*code.scratch, *scratch),
                   includes=code.includes | {"aot_model/narrow.h"},
                   note=f"{code.note}; weights of 4 bits, unpacked before")
