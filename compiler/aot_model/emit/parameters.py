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

import struct
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from aot_model.errors import fail
from aot_model.ir.program import Buffer

if TYPE_CHECKING:
    pass

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
