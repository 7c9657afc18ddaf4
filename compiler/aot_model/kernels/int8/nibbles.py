"""Weights of 4 bits for the kernels of 8-bit weights.

A kernel's packed weights, in whatever order it reads them, are packed once more, two in a byte, and unpacked
into scratch memory before the kernel runs: every kernel of every instruction set takes them so, at its own
speed. Where there is no room for a layer's weights in RAM, conv_c reads them two at a time where they lie.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import groupby, pairwise

import numpy as np
import numpy.typing as npt

from aot_model.ir.admissible import ANYTHING
from aot_model.ir.nibbles import packed
from aot_model.kernels.base import KernelCode, Packed, Scratch
from aot_model.kernels.int8.spec import Int32

ROOM = {"size": 1024, "balanced": 4096, "speed": 32768}
"""Bytes of a layer's unpacked weights that may be in scratch memory, by what the target's option `optimize`
says.
"""
_KINDS = (("int4", np.dtype(np.int8), -8, 7), ("uint4", np.dtype(np.uint8), 0, 15))


def _kind(data: np.ndarray) -> str | None:
    """The 4-bit type that holds an array of bytes, if one does."""
    for kind, dtype, low, high in _KINDS:
        if data.dtype == dtype and data.size and low <= data.min() and data.max() <= high:
            return kind
    return None


SHORT = 4
"""Int32: a shorter run of packed ones is not worth its counts."""

MOST = 255
"""Of what a byte counts."""


def _runs(words: Int32) -> list[list[int]]:
    """[words as they are, words of four 4-bit integers] alternately. Numbers that happen to be four such
    integers stay beside their like, so that the runs of a stream are as regular as it is.
    """
    small = words.view(np.int8).reshape(-1, 4)
    fits = ((small >= -8) & (small <= 7)).all(axis=1)
    edges = np.flatnonzero(np.diff(np.concatenate([[0], fits.view(np.int8), [0]])))
    runs, at = list[list[int]](), 0
    for begin, end in edges.reshape(-1, 2).tolist():
        if end - begin >= SHORT:
            runs.append([begin - at, end - begin])
            at = end
    runs.append([words.size - at, 0])
    (plain, most), _ = Counter(map(tuple, runs)).most_common(1)[0]
    for run, following in pairwise(runs):
        before = min(max(plain - run[0], 0), max(run[1] - most, 0))
        behind = max(run[1] - before - most, 0) if run[1] - before - most < SHORT else 0
        run[0], run[1] = run[0] + before, run[1] - before - behind
        following[0] += behind
    return runs


@dataclass(frozen=True)
class _Stream:
    """Int32 in flash: integers of 4 bits two in a byte, of other numbers the bytes that they need."""

    weights: npt.NDArray[np.uint8]
    numbers: npt.NDArray[np.uint8]
    sections: npt.NDArray[np.uint8]
    """Runs that are alike: {numbers before the weights, words of weights, how many such runs}, then for each
    of the numbers in two bits by how many bytes it is shorter than a word, four in a byte."""

    @property
    def nbytes(self) -> int:
        return self.weights.nbytes + self.numbers.nbytes + self.sections.nbytes


def _stream(words: Int32) -> _Stream | None:
    """None where hardly any are weights."""
    runs = _runs(words)
    if sum(n for _, n in runs) * 2 < max(words.size, 1):
        return None
    weights, numbers, sections, at = [], [], list[int](), 0
    for plain, small, times in _sections(runs):
        turns = words[at : at + times * (plain + small)].reshape(times, plain + small)
        at += turns.size
        sizes = [_size(column) for column in turns[:, :plain].T]
        missing = np.array([4 - size for size in sizes] + [0] * (-plain % 4), np.int64).reshape(-1, 4)
        sections += [plain, small, times, *(missing << np.array([0, 2, 4, 6])).sum(axis=1).tolist()]
        bytes_of = np.ascontiguousarray(turns[:, :plain]).view(np.uint8).reshape(times, plain, 4)
        numbers += [bytes_of[t, k, :size] for t in range(times) for k, size in enumerate(sizes)]
        weights.append(turns[:, plain:].reshape(-1))
    beyond = np.zeros(4, np.uint8)  # the last number is read as a word, too
    return _Stream(
        packed(np.concatenate(weights).view(np.int8)),
        np.concatenate([*numbers, beyond]),
        np.asarray(sections, np.uint8),
    )


def _sections(runs: list[list[int]]) -> Iterator[tuple[int, int, int]]:
    """(words as they are, words of 4-bit integers, times) of runs that are alike, each in a byte."""
    short = []
    for plain, small in runs:
        parts = max(-(-plain // MOST), -(-small // MOST))
        before, behind = ([min(max(n - k * MOST, 0), MOST) for k in range(parts)] for n in (plain, small))
        first = -(-plain // MOST) - 1  # all numbers come before the first weight
        behind = [0] * max(first, 0) + behind
        before += [0] * (len(behind) - len(before))
        short += [(a, b) for a, b in zip(before, behind, strict=True) if a or b]
    for (plain, small), alike in groupby(short):
        times = len(list(alike))
        yield from ((plain, small, min(times - k, MOST)) for k in range(0, times, MOST))


def _size(numbers: Int32) -> int:
    """Bytes that each of them needs."""
    return next(
        n for n in (1, 2, 3, 4) if numbers.min() >= -(1 << 8 * n - 1) and numbers.max() < 1 << 8 * n - 1
    )


Unpacking = tuple[list[Packed], Scratch, str]
"""Constants, the memory that they are unpacked into, the statement that does it."""


def _of_words(c: Packed) -> Unpacking | None:
    """A stream of words, weights among other numbers; what must be in a range stays where it can be
    checked.
    """
    whole = c.data.nbytes % 4 == 0 and c.data.size and c.data.dtype.kind in "iu" and c.admissible == ANYTHING
    stream = _stream(np.ascontiguousarray(c.data).reshape(-1).view("<i4")) if whole else None
    if stream is None or stream.nbytes >= c.data.nbytes:
        return None
    packed_to, numbers, sections = (f"{part}_{c.name}" for part in ("packed", "numbers", "sections"))
    layout = "for each run: numbers, words of weights, how often; bytes that each number lacks"
    constants = [
        Packed(packed_to, stream.weights, 4, ANYTHING, layout=f"{c.layout}; weights of 4 bits"),
        Packed(numbers, stream.numbers, 4, ANYTHING, layout="what is not weights, lowest byte first"),
        Packed(sections, stream.sections, 4, code=True, layout=layout),
    ]
    scratch = Scratch(c.name, c.data.nbytes, max(c.align, 4), f"{c.data.dtype}_t")
    places = f"{packed_to}, {numbers}, {sections}, {sections} + {stream.sections.size}"
    return constants, scratch, f"aot_model_unpack_words({places}, (int32_t *)(void *){c.name});"


def _of_bytes(c: Packed) -> Unpacking | None:
    """Weights that are bytes by themselves."""
    kind = _kind(c.data)
    if kind is None:
        return None
    scratch = Scratch(c.name, c.data.size, c.align, f"{c.data.dtype}_t")
    unpack = f"aot_model_unpack_{kind}(packed_{c.name}, {c.name}, {c.data.size});"
    return [Packed(f"packed_{c.name}", packed(c.data), 4, ANYTHING)], scratch, unpack


def staged(code: KernelCode, room: int | None) -> KernelCode | None:
    """The kernel with its weights unpacked before; None where there are none that are worth it, or they are
    larger than `room`.
    """
    bytes_ = [_kind(c.data) is not None for c in code.constants if c.data.dtype.itemsize == 1]
    found = [(c, (_of_bytes if bytes_ and all(bytes_) else _of_words)(c)) for c in code.constants]
    unpacked = [made for _, made in found if made is not None]
    scratch = [memory for _, memory, _ in unpacked]
    if not unpacked or (room is not None and sum(s.nbytes for s in scratch) > room):
        return None
    return replace(
        code,
        body="\n".join([*(line for *_, line in unpacked), code.body]),
        constants=tuple(one for c, made in found for one in (made[0] if made else [c])),
        scratch=(*code.scratch, *scratch),
        includes=code.includes | {"aot_model/narrow.h"},
        note=f"{code.note}; weights of 4 bits, unpacked before",
    )
