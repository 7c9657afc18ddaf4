"""The C structs of aot_model/model.h read back: from the memory of this process, or from the file of a
program or flash image.

A model's metadata begin with the bytes AOTMODEL and contain their own address. So they are found in any file,
and in one without headers (a flash image) their address says where the file lies in memory.
"""

from __future__ import annotations

import ctypes
import struct
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from aot_model.errors import fail
from aot_model.ir.types import DType, Quantisation, TensorType
from aot_model.library.facts import Layer, Parameters, Pool, Tensor

Fields = tuple[Any, ...]

MAGIC, VERSION = b"AOTMODEL", 2

DTYPES = """FLOAT32 FLOAT64 FLOAT16 BFLOAT16 INT8 INT16 INT32 INT64 UINT8 UINT16 UINT32 UINT64 BOOL
    FLOAT8E4M3FN FLOAT8E4M3FNUZ FLOAT8E5M2 FLOAT8E5M2FNUZ FLOAT8E8M0 FLOAT6E2M3 FLOAT6E3M2
    FLOAT4E2M1 INT4 INT2 UINT4 UINT2 STRING16 STRING32 STRING64 STRING128 STRING256
    STRING512 STRING1024""".split()
"""In the order of aot_model_dtype, from 1 on."""

# Fields of the structs in order: name and kind, which is of the struct module or P for a pointer.
_METADATA = """magic:8s version:I flags:H pointer_bytes:H self:P name:P compiler:P target:P
    model_file:P model_sha256:P inputs:P outputs:P pools:P layers:P structure:P num_inputs:H
    num_outputs:H num_pools:H reserved:H num_layers:I constant_bytes:I state_bytes:I
    lower_bound:I params_size:I params_align:I macs:Q"""
_TENSOR = "name:P c_name:P shape:P scales:P zero_points:P bytes:I quantised:H axis:b rank:B dtype:B"
_POOL = "name:P c_name:P bytes:I align:I"
_LAYER = "name:P op:P macs:Q workspace_bytes:I constant_bytes:I"
_CALLER, _IO_INSIDE = 1, 2


class Memory(Protocol):
    """Bytes by address."""

    @property
    def order(self) -> str: ...

    @property
    def pointer_bytes(self) -> int: ...

    def read(self, address: int, count: int) -> bytes: ...

    def text(self, address: int) -> str: ...


@dataclass(frozen=True)
class Process:
    """The memory of this process."""

    order: str = "<" if sys.byteorder == "little" else ">"
    pointer_bytes: int = ctypes.sizeof(ctypes.c_void_p)

    def read(self, address: int, count: int) -> bytes:
        return ctypes.string_at(address, count)

    def text(self, address: int) -> str:
        return ctypes.string_at(address).decode()


@dataclass(frozen=True)
class Image:
    """What a file puts into memory: segments of (address, position in the file, bytes). LookupError outside
    of them.
    """

    data: bytes
    segments: tuple[tuple[int, int, int], ...]
    order: str
    pointer_bytes: int

    def position(self, address: int) -> int:
        for start, at, count in self.segments:
            if start <= address < start + count:
                return at + address - start
        raise LookupError(f"address {address:#x} is not in the file")

    def read(self, address: int, count: int) -> bytes:
        at = self.position(address)
        found = self.data[at : at + count]
        if len(found) != count:
            raise LookupError(f"address {address:#x} is at the end of the file")
        return found

    def text(self, address: int) -> str:
        at = self.position(address)
        return self.data[at : self.data.index(b"\0", at)].decode()


def decode(memory: Memory, address: int) -> Fields:
    """What Metadata is made of, in order, from the C structs at an address. ValueError for another version,
    LookupError for addresses that lead nowhere.
    """
    facts = _fields(memory, address, _METADATA)[0]
    if facts["magic"] != MAGIC or facts["version"] != VERSION:
        raise ValueError("it was compiled by another version of aot-model")
    if facts["self"] != address:
        raise ValueError("the bytes are not where they were linked")
    number = {k: int(v) for k, v in facts.items() if k != "magic"}

    def text(name: str) -> str:
        return memory.text(number[name])

    def tensors(name: str) -> tuple[Tensor, ...]:
        return (
            tuple(
                _tensor(memory, row) for row in _fields(memory, number[name], _TENSOR, number[f"num_{name}"])
            )
            if number[name]
            else ()
        )

    pools = _fields(memory, number["pools"], _POOL, number["num_pools"])
    layers = _fields(memory, number["layers"], _LAYER, number["num_layers"]) if number["layers"] else []
    return (
        text("name"),
        text("compiler"),
        text("target"),
        text("model_file"),
        text("model_sha256"),
        tensors("inputs"),
        tensors("outputs"),
        tuple(
            Pool(memory.text(int(p["name"])), memory.text(int(p["c_name"])), int(p["bytes"]), int(p["align"]))
            for p in pools
        ),
        tuple(
            Layer(
                memory.text(int(r["name"])),
                memory.text(int(r["op"])),
                int(r["macs"]),
                int(r["workspace_bytes"]),
                int(r["constant_bytes"]),
            )
            for r in layers
        ),
        number["constant_bytes"],
        number["state_bytes"],
        number["lower_bound"],
        number["macs"],
        bool(number["flags"] & _CALLER),
        bool(number["flags"] & _IO_INSIDE),
        Parameters(number["params_size"], number["params_align"], memory.read(number["structure"], 16).hex())
        if number["structure"]
        else None,
    )


def _tensor(memory: Memory, row: Mapping[str, int | bytes]) -> Tensor:
    def numbers(name: str, kind: str, count: int) -> tuple[float, ...]:
        size = struct.calcsize(kind)
        return (
            struct.unpack(f"{memory.order}{count}{kind}", memory.read(int(row[name]), count * size))
            if count
            else ()
        )

    n, axis = int(row["quantised"]), int(row["axis"])
    zero_points = tuple(map(int, numbers("zero_points", "i", n)))
    quantisation = (
        Quantisation(numbers("scales", "f", n), zero_points, None if axis < 0 else axis) if n else None
    )
    shape = tuple(map(int, numbers("shape", "i", int(row["rank"]))))
    return Tensor(
        memory.text(int(row["name"])),
        memory.text(int(row["c_name"])),
        TensorType(DType[DTYPES[int(row["dtype"]) - 1]], shape),
        quantisation,
    )


def _fields(memory: Memory, address: int, layout: str, count: int = 1) -> list[dict[str, int | bytes]]:
    """An array of structs, by the alignment of C: each member at a multiple of its size."""
    members, end, widest = [], 0, 1
    for member in layout.split():
        name, kind = member.split(":")
        kind = {4: "I", 8: "Q"}[memory.pointer_bytes] if kind == "P" else kind
        size = struct.calcsize(f"<{kind}")
        align = 1 if kind.endswith("s") else size
        end = -(-end // align) * align
        members.append((name, memory.order + kind, end))
        end, widest = end + size, max(widest, align)
    stride = -(-end // widest) * widest
    data = memory.read(address, stride * count)
    return [
        {name: struct.unpack_from(kind, data, k * stride + at)[0] for name, kind, at in members}
        for k in range(count)
    ]


def find(data: bytes, where: str) -> Sequence[Fields]:
    """All models of a file. CompileError E102 when there is none, or one of another version."""
    found, reason = [], ""
    try:
        image = _elf(data) if data[:4] == b"\x7fELF" else None
        for at in _occurrences(data):
            try:
                found.append(_at(image or _raw(data, at), at))
            except (LookupError, ValueError, struct.error) as error:
                reason = f" ({error})"
    except struct.error as error:
        reason = f" (the ELF file is damaged: {error})"
    if not found:
        hint = (
            "metadata are there with --metadata full or size, in linked files, unless the linker removed "
            "them: -Wl,-u,<name>_metadata keeps them"
        )
        raise fail("E102", f"has no metadata of a model{reason}", where=where, hint=hint)
    return sorted(found, key=lambda fields: str(fields[0]))


def _at(image: Image, at: int) -> Fields:
    for start, begin, count in image.segments:
        if begin <= at < begin + count:
            return decode(image, start + at - begin)
    raise LookupError("the file is not linked")


def _occurrences(data: bytes) -> Iterator[int]:
    at = data.find(MAGIC)
    while at >= 0:
        yield at
        at = data.find(MAGIC, at + 1)


def _raw(data: bytes, at: int) -> Image:
    """A flash image, little-endian, that lies in memory so that the metadata in it are at the address that
    they say.
    """
    (pointer_bytes,) = struct.unpack_from("<H", data, at + 14)
    if pointer_bytes not in (4, 8):
        raise ValueError("the bytes after the mark are not metadata")
    (address,) = struct.unpack_from("<I" if pointer_bytes == 4 else "<Q", data, at + 16)
    return Image(data, ((address - at, 0, len(data)),), "<", pointer_bytes)


# By machine: the relocation of an address that is the base of the file plus a number.
_RELATIVE = {3: 8, 40: 23, 62: 8, 183: 1027, 243: 3}
_LOAD, _RELA = 1, 4


def _elf(data: bytes) -> Image:
    """The segments of a linked ELF file, with addresses as if it were loaded at 0; an object file has
    none.
    """
    kind, endianness = struct.unpack_from("BB", data, 4)
    wide, order = kind == 2, "<" if endianness == 1 else ">"
    word = "Q" if wide else "I"
    header = struct.unpack_from(f"{order}HHI{word * 3}IHHHHHH", data, 16)
    machine, program, sections = header[1], header[4], header[5]
    program_size, programs, section_size, section_count = header[8], header[9], header[10], header[11]
    segments = []
    for k in range(programs):
        if wide:
            kind, _, offset, address, _, size = struct.unpack_from(
                f"{order}IIQQQQ", data, program + k * program_size
            )
        else:
            kind, offset, address, _, size = struct.unpack_from(
                f"{order}IIIII", data, program + k * program_size
            )
        if kind == _LOAD:
            segments.append((address, offset, size))
    image = Image(data, tuple(segments), order, 8 if wide else 4)
    patched = bytearray(data)
    for k in range(section_count):
        form = f"{order}IIQQQQ" if wide else f"{order}IIIIII"
        _, kind, _, _, offset, size = struct.unpack_from(form, data, sections + k * section_size)
        if kind == _RELA:
            _apply_rela(patched, image, data[offset : offset + size], _RELATIVE.get(machine))
    return Image(bytes(patched), image.segments, order, image.pointer_bytes)


def _apply_rela(patched: bytearray, image: Image, table: bytes, relative: int | None) -> None:
    """Store what the dynamic linker would. Tables without addends, and packed ones (RELR), have them in place
    already.
    """
    form = struct.Struct(image.order + ("QQq" if image.pointer_bytes == 8 else "IIi"))
    mask = 0xFFFFFFFF if image.pointer_bytes == 8 else 0xFF
    for where, info, addend in form.iter_unpack(table[: len(table) // form.size * form.size]):
        if info & mask == relative:
            try:
                at = image.position(where)
            except LookupError:
                continue
            struct.pack_into(image.order + ("q" if image.pointer_bytes == 8 else "i"), patched, at, addend)
