"""Programs on disk: C, what it reads, what it must write."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from aot_model.installation import include_dir
from batch import split
from translation_unit import Generated, given_bytes, write_unit

from .judge import Expectation

MAIN = ("main.c", "unit.c")
_INCLUDE = re.compile(rb'^ *#include "(aot_model/[\w./]+)"', re.MULTILINE)


def _included(text: bytes) -> set[str]:
    """The headers of the runtime that C includes, and those that they include."""
    found: set[str] = set()
    new = {name.decode() for name in _INCLUDE.findall(text)}
    while new:
        found |= new
        texts = [(Path(include_dir()) / name).read_bytes() for name in new]
        new = {name.decode() for t in texts for name in _INCLUDE.findall(t)} - found
    return found


@dataclass(frozen=True)
class Program:
    """What a compiler gets. A program without cases checks itself: its exit status is 1 when something is
    wrong.
    """

    folder: Path
    sources: tuple[str, ...]
    items: tuple[Generated, ...] = ()
    inputs: tuple[tuple[np.ndarray, ...], ...] = ()
    expected: tuple[Expectation, ...] = ()
    left_out: tuple[str, ...] = ()
    """Cases that are not in it, and why."""
    macs: int = 0

    def given(self, big_endian: bool) -> bytes:
        """What is in in.bin."""
        return b"".join(_ordered(a, big_endian) for arrays in self.inputs for a in arrays)

    def differences(self, data: bytes, big_endian: bool, wide_floats: bool = False) -> dict[str, str]:
        """By case: what is wrong in out.bin."""
        wanted = sum(
            int(np.prod(shape, dtype=np.int64)) * _size(label)
            for item in self.items
            for _, label, shape in item.outputs
        )
        if len(data) != wanted:
            return {e.name: f"the program wrote {len(data)} bytes and not {wanted}" for e in self.expected}
        if big_endian:
            data = self._little(data)
        outcomes = split(self.items, data)
        found = {
            e.name: e.difference(o.outputs, wide_floats) for e, o in zip(self.expected, outcomes, strict=True)
        }
        return {name: text for name, text in found.items() if text}

    def alone(self, number: int, folder: Path) -> Program:
        """The program of one case of it."""
        folder.mkdir(exist_ok=True)
        write_unit(folder, [self.items[number]])
        return Program(folder, MAIN, (self.items[number],), (self.inputs[number],), (self.expected[number],))

    def digest(self) -> str:
        """Of everything that decides what it computes."""
        result = hashlib.sha256(self.given(False))
        headers: set[str] = set()
        for file in sorted(
            f for f in self.folder.iterdir() if f.suffix in (".c", ".h") and f.name != "startup.c"
        ):
            text = file.read_bytes()
            result.update(file.name.encode() + text)
            headers |= _included(text)
        for header in sorted(headers):
            result.update(header.encode() + (Path(include_dir()) / header).read_bytes())
        return result.hexdigest()[:16]

    def _little(self, data: bytes) -> bytes:
        parts, at = [], 0
        for item in self.items:
            for _, label, shape in item.outputs:
                count, size = int(np.prod(shape, dtype=np.int64)), _word(label)
                length = count * _size(label)
                parts.append(np.frombuffer(data[at : at + length], f"u{size}").byteswap().tobytes())
                at += length
        return b"".join(parts)


def program_of(
    folder: Path,
    items: Sequence[Generated],
    inputs: Sequence[tuple[np.ndarray, ...]],
    expected: Sequence[Expectation],
    left_out: Sequence[str] = (),
    macs: int = 0,
) -> Program:
    """A program of models, written into a folder."""
    write_unit(folder, items)
    return Program(folder, MAIN, tuple(items), tuple(inputs), tuple(expected), tuple(left_out), macs)


def _ordered(array: np.ndarray, big_endian: bool) -> bytes:
    data = given_bytes(array)
    size = len(data) // max(array.size, 1)
    word = 1 if array.dtype.kind in "SUO" else size // 2 if array.dtype.kind == "c" else size
    return np.frombuffer(data, f"u{word}").byteswap().tobytes() if big_endian and word > 1 else data


def _size(label: str) -> int:
    from aot_model.ir.types import DType

    return DType.of(label).size


def _word(label: str) -> int:
    """Bytes whose order depends on the machine."""
    from aot_model.ir.types import DType

    dtype = DType.of(label)
    return 1 if dtype.is_string else dtype.size // 2 if dtype.kind == "complex" else dtype.size
