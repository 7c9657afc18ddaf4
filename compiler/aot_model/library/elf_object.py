"""The sections and symbols of an object file in the form ELF."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from aot_model.errors import fail

_SYMTAB, _NOBITS = 2, 8
_WRITE, _ALLOC, _EXEC = 1, 2, 4
_OBJECT, _FUNCTION = 1, 2
_ARM = 40


@dataclass(frozen=True)
class Section:
    name: str
    size: int
    is_stored: bool
    """Whether its bytes are in the program's image, as those of debug information and of zeros are not."""
    is_code: bool


@dataclass(frozen=True)
class Symbol:
    """A function or an object; section is None for one of another file, whose kind is not known."""

    name: str
    section: int | None
    address: int
    size: int
    is_function: bool


@dataclass(frozen=True)
class ElfObject:
    """What an object file is made of."""

    path: Path
    sections: tuple[Section, ...]
    symbols: tuple[Symbol, ...]

    @staticmethod
    def read(path: Path) -> ElfObject:
        """CompileError E101 when it cannot be read, E102 when it is something else."""
        try:
            data = path.read_bytes()
        except OSError as error:
            raise fail("E101", f"cannot be read: {error.strerror}", where=str(path)) from None
        hint = "give the object that the C compiler made of the library's C, without -flto"
        if data[:4] != b"\x7fELF":
            raise fail("E102", "is no object file in the form ELF", where=str(path), hint=hint)
        try:
            return _parsed(path, data)
        except (struct.error, ValueError, IndexError) as error:
            raise fail("E102", f"is damaged: {error}", where=str(path), hint=hint) from None

    def stored(self, is_code: bool) -> int:
        """Bytes of the image that are code, or that are not."""
        return sum(s.size for s in self.sections if s.is_stored and s.is_code == is_code)

    def defined(self) -> Iterator[Symbol]:
        """The functions and objects of this file whose bytes are in the image."""
        for symbol in self.symbols:
            if symbol.section is not None and self.sections[symbol.section].is_stored:
                yield symbol


def _parsed(path: Path, data: bytes) -> ElfObject:
    wide, order = data[4] == 2, "<" if data[5] == 1 else ">"
    word = "Q" if wide else "I"
    header = struct.unpack_from(f"{order}HHI{word * 3}IHHHHHH", data, 16)
    machine, begin, size, count, names = header[1], header[5], header[10], header[11], header[12]
    form = f"{order}II{word * 4}II{word * 2}"
    heads = [struct.unpack_from(form, data, begin + k * size) for k in range(count)]

    def text(table: int, at: int) -> str:
        start = heads[table][4] + at
        return data[start : data.index(b"\0", start)].decode(errors="replace")

    sections = tuple(
        Section(text(names, h[0]), h[5], bool(h[2] & _ALLOC) and h[1] != _NOBITS, bool(h[2] & _EXEC))
        for h in heads
    )
    found = []
    layout = struct.Struct(order + ("IBBHQQ" if wide else "IIIBBH"))
    for head in heads:
        if head[1] != _SYMTAB:
            continue
        for row in layout.iter_unpack(data[head[4] : head[4] + head[5] // layout.size * layout.size]):
            name, info, index, address, length = [
                row[k] for k in ((0, 1, 3, 4, 5) if wide else (0, 3, 5, 1, 2))
            ]
            kind = info & 15
            if index == 0 and info >> 4 and name:
                found.append(Symbol(text(head[6], name), None, 0, 0, False))
            elif kind in (_OBJECT, _FUNCTION) and index < count:
                thumb = 1 if machine == _ARM and kind == _FUNCTION else 0
                found.append(Symbol(text(head[6], name), index, address & ~thumb, length, kind == _FUNCTION))
    return ElfObject(path, sections, tuple(found))
