"""Large arrays as C strings of their bytes, which compilers read thirty times faster than one number after
the other.

What a compiler needs is per token: 17 MB of int8 weights are 36 million tokens as numbers, 4 million as words
of eight bytes and 36 thousand as strings. C99 promises lines of 4,095 characters, and strings of as many: ROW
bytes fit. GCC keeps each string twice in blocks of 1,024 bytes: with 1,000 bytes in a string they take two.
"""

from __future__ import annotations

import numpy as np

ROW = 960
"""Bytes of a string: four characters each at most."""


_NAMED = {7: "\\a", 8: "\\b", 9: "\\t", 10: "\\n", 11: "\\v", 12: "\\f", 13: "\\r"}
_NAMED |= {ord(c): f"\\{c}" for c in '"\\?'}  # ??' would be a trigraph


def _table(digits: int) -> np.ndarray:
    """By byte: its text, filled up with zero bytes. Shorter texts are less memory of the compiler that reads
    them.
    """
    rows = np.zeros((256, 4), np.uint8)
    for value in range(256):
        text = _NAMED.get(value) or (chr(value) if 32 <= value < 127 else f"\\{value:0{digits}o}")
        rows[value, : len(text)] = np.frombuffer(text.encode(), np.uint8)
    return rows


_SHORT, _LONG = _table(1), _table(3)


def string_rows(data: bytes) -> list[str]:
    """C string literals of ROW bytes each; the last has what is left."""
    flat = np.frombuffer(data, np.uint8)
    digit = np.zeros(len(flat), bool)
    digit[:-1] = (flat[1:] >= ord("0")) & (flat[1:] <= ord("7"))  # an octal escape takes up to three digits
    result = []
    for start in range(0, len(flat), ROW):
        row = flat[start : start + ROW]
        texts = np.where(digit[start : start + ROW, None], _LONG[row], _SHORT[row]).reshape(-1)
        result.append(f'"{texts[texts != 0].tobytes().decode()}"')
    return result
