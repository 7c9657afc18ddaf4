"""The file <name>.params of a model, and the structure that two models must share to use the same code."""

from __future__ import annotations

import hashlib
import re
import struct
import zlib
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from aot_model.emit.constants import little_endian
from aot_model.emit.parameters import HEADER, MAGIC, VERSION, data_offset, file_size, offsets
from aot_model.ir.admissible import Range, beyond_type
from aot_model.ir.program import Branch, Buffer, Call, Loop, Once, Role, Step
from aot_model.ir.types import DType
from aot_model.library.facts import Check

if TYPE_CHECKING:
    from aot_model.emit.view import ModelView, Port


def structure(view: ModelView) -> list[str]:
    """Everything that the code takes for granted, line by line: ports, arrays, states, and each call with its
    text.

    Free of names and addresses: a model that was trained again has the same lines although its tensors are
    called otherwise, and pools do not matter. Values that are part of the code (scalars, quantisation) are in
    the calls.
    """
    known: dict[Buffer, str] = {}
    for kind, buffers in (
        ("input", view.program.inputs),
        ("output", view.program.outputs),
        ("state", view.program.states),
        ("array", list(view.parameters)),
        ("code", list(view.linked_constants)),
    ):
        known.update({b: f"{kind} {k}" for k, b in enumerate(buffers) if b not in known})

    def place(buffer: Buffer) -> str:
        owner, offset = buffer.root()
        known.setdefault(owner, f"memory {len(known)}")
        return f"{known[owner]}+{offset}" if offset else known[owner]

    def steps(body: Sequence[Step]) -> Iterable[str]:
        for step in body:
            if isinstance(step, Call):
                f = step.function
                text = hashlib.sha256(
                    repr(
                        (f.params, f.body, sorted(f.includes), f.helpers, *((f.name,) if f.external else ()))
                    ).encode()
                ).hexdigest()
                yield f"call {step.op} ({', '.join(map(place, step.arguments))}) {text[:16]}"
            elif isinstance(step, Once):
                yield from ("once", *steps([step.call]))
            elif isinstance(step, Branch):
                yield from (
                    f"if {place(step.condition)}",
                    *steps(step.then),
                    "else",
                    *steps(step.otherwise),
                    "end",
                )
            else:
                yield from (loop(step), *steps(step.body), "end")

    def loop(step: Loop) -> str:
        ends = [place(b) if b is not None else "-" for b in (step.limit_from, step.condition, step.counter)]
        return f"loop {step.limit} {' '.join(ends)}"

    def port(p: Port) -> str:
        q = p.quantisation
        return f"{known[p.buffer]}: {p.buffer.type}" + (
            f" scale {list(q.scale)} zero point {list(q.zero_point)} axis {q.axis}" if q else ""
        )

    states = [
        f"{known[b]}: {b.type} {hashlib.sha256(b'' if b.data is None else b.data.tobytes()).hexdigest()[:16]}"
        for b in view.program.states
    ]
    arrays = [
        f"{known[b]}: {b.type.dtype.label}[{b.nbytes // b.type.dtype.size}] at {at}"
        for b, at in offsets(view.parameters).items()
    ]
    arrays += [
        f"{known[b]}: {b.type.dtype.label} {hashlib.sha256(little_endian(b.data)).hexdigest()[:16]}"
        for b in view.linked_constants
        if b.data is not None
    ]
    return [*map(port, (*view.inputs, *view.outputs)), *states, *arrays, *steps(view.program.body)]


def structure_hash(view: ModelView) -> bytes:
    """16 bytes that the generated code and the file share."""
    return hashlib.sha256("\n".join(structure(view)).encode()).digest()[:16]


def difference(ours: Sequence[str], theirs: Sequence[str]) -> str | None:
    """Where two structures part, in words; None when they do not."""
    for a, b in zip(ours, theirs, strict=False):
        if a != b:
            same = a.startswith("call") and a[:-16] == b[:-16]
            if same:
                return f"the code of '{_words(a)}' has other values in it (quantisation or scalars)"
            return f"it has '{_words(a)}', the library has '{_words(b)}'"
    if len(ours) != len(theirs):
        more, longer = ("more", ours) if len(ours) > len(theirs) else ("less", theirs)
        return f"it has {more} than the library: '{_words(longer[min(len(ours), len(theirs))])}'"
    return None


def _words(line: str) -> str:
    return re.sub(r" [0-9a-f]{16}$", "", line)


def checks(view: ModelView) -> list[Check]:
    """What is looked at when a file of parameters is opened, beside its CRC."""
    found = []
    for number, (buffer, at) in enumerate(offsets(view.parameters).items()):
        assert buffer.data is not None
        dtype, size = buffer.type.dtype, buffer.data.size
        for r in beyond_type(buffer.admissible, dtype):
            count = r.elements(size)
            assert r.holds(buffer.data.view(np.uint8) if dtype.is_float or dtype.bits < 8 else buffer.data), (
                f"'{buffer.name}' itself is not {r}"
            )
            if count:
                signed = not dtype.is_float and dtype.kind != "uint" and dtype is not DType.BOOL
                found.append(
                    Check(
                        number,
                        f"{'' if signed else 'u'}int{8 * dtype.size}",
                        at + r.first * dtype.size,
                        count,
                        r.step,
                        r.low,
                        r.high,
                        r.rise,
                    )
                )
    return found


def outside(checks: Sequence[Check], data: bytes) -> Check | None:
    """The first check that the data of a file do not pass."""
    for check in checks:
        kind = np.dtype(check.kind).newbyteorder("<")
        row = np.frombuffer(data, kind, (check.count - 1) * check.step + 1, check.offset)[:: check.step]
        if not Range(check.low, check.high, rise=check.rise).holds(row):
            return check
    return None


def parameters_file(view: ModelView) -> bytes:
    """The content of <name>.params."""
    start, size = data_offset(view.parameters), file_size(view.parameters)
    data = bytearray(size - start)
    for buffer, at in offsets(view.parameters).items():
        assert buffer.role is Role.CONSTANT and buffer.data is not None
        raw = little_endian(buffer.data)
        data[at : at + len(raw)] = raw
    digest = hashlib.sha256(data).digest()[:16]
    head = HEADER.pack(
        MAGIC, VERSION, start, len(data), len(view.parameters), structure_hash(view), digest, 0
    )
    rest = bytes(start - HEADER.size - 4) + bytes(data)
    return head + struct.pack("<I", zlib.crc32(rest, zlib.crc32(head))) + rest
