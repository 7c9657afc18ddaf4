"""Parameters apart from code: the file <name>.params, and what two models must share to use the same code.

    header (64 bytes, or one alignment of the data when that is more; zeros to its end), little-endian:
       0  char[8]  "AOTPARAM"
       8  uint32   version of the format: 1
      12  uint32   bytes of the header: where the data begin
      16  uint32   bytes of the data
      20  uint32   number of arrays
      24  byte[16] hash of the structure: first half of the SHA-256 of the lines of structure()
      40  byte[16] hash of the data: first half of their SHA-256
      56  uint32   0
      60  uint32   CRC-32 (IEEE 802.3) of the file without these four bytes
    data: the arrays in the order of the structure, each at a multiple of its alignment, zeros between
"""

from __future__ import annotations

import hashlib
import re
import struct
import zlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from aot_model.errors import fail
from aot_model.ir.program import Branch, Buffer, Call, Loop, Once, Role, Step

if TYPE_CHECKING:
    from aot_model.emit.view import ModelView, Port

MAGIC, VERSION = b"AOTPARAM", 1
HEADER = struct.Struct("<8sIIII16s16sI")
LEAST_ALIGN = 16
_LIMIT = 2**32


def alignment(constants: Iterable[Buffer]) -> int:
    """Of the base of the file in memory, bytes."""
    return max([LEAST_ALIGN, *(b.align for b in constants)])


def data_offset(constants: Iterable[Buffer]) -> int:
    """Bytes of the header."""
    return max(HEADER.size + 4, alignment(constants))


def offsets(constants: Iterable[Buffer]) -> dict[Buffer, int]:
    """By constant: its distance from the beginning of the data, bytes."""
    result, end = {}, 0
    for buffer in constants:
        align = max(buffer.align, buffer.type.dtype.alignment)
        result[buffer] = end = -(-end // align) * align
        end += buffer.nbytes
    return result


def file_size(constants: Mapping[Buffer, str]) -> int:
    """Bytes of the whole file. CompileError E202 when C has no number for them."""
    size = data_offset(constants) + max((at + b.nbytes for b, at in offsets(constants).items()), default=0)
    if size >= _LIMIT:
        raise fail("E202", f"external parameters of {size:,} bytes; the format has room for {_LIMIT - 1:,}")
    return size


def structure(view: ModelView) -> list[str]:
    """Everything that the code takes for granted, line by line: ports, arrays, states, and each call with its text.

    Free of names and addresses: a model that was trained again has the same lines although its tensors are called
    otherwise, and pools do not matter. Values that are part of the code (scalars, quantisation) are in the calls.
    """
    known: dict[Buffer, str] = {}
    for kind, buffers in (("input", view.program.inputs), ("output", view.program.outputs), ("state", view.program.states), ("array", list(view.constants))):
        known.update({b: f"{kind} {k}" for k, b in enumerate(buffers) if b not in known})

    def place(buffer: Buffer) -> str:
        owner, offset = buffer.root()
        known.setdefault(owner, f"memory {len(known)}")
        return f"{known[owner]}+{offset}" if offset else known[owner]

    def steps(body: Sequence[Step]) -> Iterable[str]:
        for step in body:
            if isinstance(step, Call):
                f = step.function
                text = hashlib.sha256(repr((f.params, f.body, sorted(f.includes), f.helpers, *((f.name,) if f.external else ()))).encode()).hexdigest()
                yield f"call {step.op} ({', '.join(map(place, step.arguments))}) {text[:16]}"
            elif isinstance(step, Once):
                yield from ("once", *steps([step.call]))
            elif isinstance(step, Branch):
                yield from (f"if {place(step.condition)}", *steps(step.then), "else", *steps(step.otherwise), "end")
            else:
                yield from (loop(step), *steps(step.body), "end")

    def loop(step: Loop) -> str:
        ends = [place(b) if b is not None else "-" for b in (step.limit_from, step.condition, step.counter)]
        return f"loop {step.limit} {' '.join(ends)}"

    def port(p: Port) -> str:
        q = p.quantisation
        return f"{known[p.buffer]}: {p.buffer.type}" + (f" scale {list(q.scale)} zero point {list(q.zero_point)} axis {q.axis}" if q else "")

    states = [f"{known[b]}: {b.type} {hashlib.sha256(b'' if b.data is None else b.data.tobytes()).hexdigest()[:16]}" for b in view.program.states]
    arrays = [f"{known[b]}: {b.type.dtype.label}[{b.nbytes // b.type.dtype.size}] at {at}" for b, at in offsets(view.constants).items()]
    return [*map(port, (*view.inputs, *view.outputs)), *states, *arrays, *steps(view.program.body)]


def structure_hash(view: ModelView) -> bytes:
    """16 bytes that the generated code and the file share."""
    return hashlib.sha256("\n".join(structure(view)).encode()).digest()[:16]


def difference(ours: Sequence[str], theirs: Sequence[str]) -> str | None:
    """Where two structures part, in words; None when they do not."""
    for a, b in zip(ours, theirs, strict=False):
        if a != b:
            same = a.startswith("call") and a[:-16] == b[:-16]
            return f"the code of '{_words(a)}' has other values in it (quantisation or scalars)" if same else f"it has '{_words(a)}', the library has '{_words(b)}'"
    if len(ours) != len(theirs):
        more, longer = ("more", ours) if len(ours) > len(theirs) else ("less", theirs)
        return f"it has {more} than the library: '{_words(longer[min(len(ours), len(theirs))])}'"
    return None


def _words(line: str) -> str:
    return re.sub(r" [0-9a-f]{16}$", "", line)


def parameters_file(view: ModelView) -> bytes:
    """The content of <name>.params."""
    start, size = data_offset(view.constants), file_size(view.constants)
    data = bytearray(size - start)
    for buffer, at in offsets(view.constants).items():
        raw = _bytes(buffer)
        data[at : at + len(raw)] = raw
    digest = hashlib.sha256(data).digest()[:16]
    head = HEADER.pack(MAGIC, VERSION, start, len(data), len(view.constants), structure_hash(view), digest, 0)
    rest = bytes(start - HEADER.size - 4) + bytes(data)
    return head + struct.pack("<I", zlib.crc32(rest, zlib.crc32(head))) + rest


def _bytes(buffer: Buffer) -> bytes:
    """As C has them: little-endian, an element of less than 8 bits in a byte of its own."""
    assert buffer.role is Role.CONSTANT and buffer.data is not None
    data = buffer.data
    if data.dtype.kind == "V" and str(data.dtype) in ("int4", "int2", "uint4", "uint2"):
        return data.astype(np.int8).tobytes()
    return data.astype(data.dtype.newbyteorder("<"), copy=False).tobytes() if data.dtype.kind in "iufc" else data.tobytes()
