"""Constant data as C: declarations that the code reads, and definitions with the same bits at the end of the
file.

Arrays of small models are lists of values. A model with more than BULK bytes of constants has the large ones
as strings of their bytes, in a union with what the code reads: compilers take them in a fraction of the time
and memory.
"""

from __future__ import annotations

import numpy as np

from aot_model.c.literal import float_literal
from aot_model.c.names import bytes_literal
from aot_model.emit.byte_strings import ROW, string_rows
from aot_model.ir.program import Buffer
from aot_model.ir.types import DType

WIDTH = 106
BULK = 2**20
"""Bytes of constants of a model from which on the large arrays are strings."""
LARGE = 4096
"""Bytes of an array that is then one."""


def is_bulky(buffer: Buffer, total: int) -> bool:
    """Whether an array of a model with `total` bytes of constants is written as strings."""
    if total <= BULK or buffer.nbytes < LARGE or buffer.data is None:
        return False
    return buffer.data.dtype.kind != "S"


def little_endian(data: np.ndarray) -> bytes:
    """The bytes as a little-endian machine has them; an element of less than 8 bits in a byte of its own."""
    if data.dtype.kind == "V" and str(data.dtype) in ("int4", "int2", "uint4", "uint2"):
        return data.astype(np.int8).tobytes()
    return (
        data.astype(data.dtype.newbyteorder("<"), copy=False).tobytes()
        if data.dtype.kind in "iufc"
        else data.tobytes()
    )


def bulk_members(buffer: Buffer) -> str:
    """The members of the struct of strings."""
    rows, rest = divmod(buffer.nbytes, ROW)
    parts = [f"unsigned char rows[{rows}][{ROW}] AOT_MODEL_BYTES;"] if rows else []
    return " ".join([*parts, *([f"unsigned char rest[{rest}] AOT_MODEL_BYTES;"] if rest else [])])


def bulk_initialiser(buffer: Buffer, either_order: bool) -> str:
    """The lines between the braces of the union; elements of several bytes in the order of the machine, where
    that is not known.
    """
    assert buffer.data is not None
    data, size = little_endian(buffer.data), buffer.type.dtype.size
    if size == 1 or not either_order:
        return _strings(data, buffer.nbytes)
    other = np.frombuffer(data, np.uint8).reshape(-1, size)[:, ::-1].tobytes()
    return (
        "#if "
        f"AOT_MODEL_BIG_ENDIAN\n{_strings(other, buffer.nbytes)}\n#else\n"
        f"{_strings(data, buffer.nbytes)}\n#endif"
    )


def _strings(data: bytes, nbytes: int) -> str:
    rows, rest = divmod(nbytes, ROW)
    texts = string_rows(data)
    parts = ["{\n" + ",\n".join(f"    {t}" for t in texts[:rows]) + "\n}"] if rows else []
    return ",\n".join([*parts, *([f"    {texts[-1]}"] if rest else [])])


def initialiser(data: np.ndarray) -> str:
    """The lines between the braces."""
    flat = data.reshape(-1)
    kind = flat.dtype
    if kind == np.float32:
        texts = _floats(flat)
    elif kind == np.float64:
        texts = [float_literal(v, DType.FLOAT64) for v in flat.tolist()]
    elif kind.kind == "S":
        texts = [f"{{{bytes_literal(v)}}}" for v in flat.tolist()]
    elif kind == np.bool_:
        texts = ["true" if v else "false" for v in flat]
    elif kind.itemsize == 2 and kind.kind not in "iu":
        texts = [f"0x{int(v):04x}" for v in flat.view(np.uint16)]
    elif kind.itemsize == 1 and kind.kind not in "iu":
        texts = [
            str(int(v))
            for v in (flat.astype(np.int8) if str(kind).startswith(("int", "uint")) else flat.view(np.uint8))
        ]
    elif kind == np.int64:
        texts = [f"INT64_C({v})" if v != np.iinfo(np.int64).min else "INT64_MIN" for v in flat.tolist()]
    elif kind == np.uint64:
        texts = [f"UINT64_C({v})" for v in flat.tolist()]
    elif kind == np.int32:
        texts = [str(v) if v != -(2**31) else "INT32_MIN" for v in flat.tolist()]
    elif kind == np.uint32:
        texts = [f"{v}u" for v in flat.tolist()]
    else:
        texts = [str(v) for v in flat.tolist()]
    return wrap(texts)


def wrap(texts: list[str]) -> str:
    """Values separated by commas in lines of at most WIDTH characters."""
    lines: list[str] = []
    line: list[str] = []
    length = 4
    for text in texts:
        if line and length + len(text) + 2 > WIDTH:
            lines.append("    " + ", ".join(line))
            line, length = [], 4
        line.append(text)
        length += len(text) + 2
    lines.append("    " + ", ".join(line))
    return ",\n".join(lines)


def _floats(flat: np.ndarray) -> list[str]:
    specials = ("inf", "-inf", "nan")
    return [_special(text) if text in specials else f"{_special(text)}f" for text in map(str, flat)]


def _special(text: str) -> str:
    """Python's text of a float as C has it."""
    if text in ("inf", "-inf"):
        return text.replace("inf", "INFINITY")
    if text == "nan":
        return "NAN"
    return text if "." in text or "e" in text else text + ".0"


def state_fill(buffer: Buffer) -> int | None:
    """The byte that a state is filled with at first; None when its bytes differ."""
    data = np.frombuffer(b"" if buffer.data is None else buffer.data.tobytes(), np.uint8)
    if not data.size:
        return 0
    return int(data[0]) if (data == data[0]).all() else None
