"""Constant data as C initialisers: every value with the same bits, lines of a readable width."""

from __future__ import annotations

import numpy as np

from aot_model.c.names import bytes_literal

WIDTH = 118


def initialiser(data: np.ndarray) -> str:
    """The lines between the braces."""
    flat = data.reshape(-1)
    kind = flat.dtype
    if kind == np.float32:
        texts = _floats(flat)
    elif kind == np.float64:
        texts = [_special(repr(float(v))) for v in flat]
    elif kind.kind == "S":
        texts = [f"{{{bytes_literal(v)}}}" for v in flat.tolist()]
    elif kind == np.bool_:
        texts = ["true" if v else "false" for v in flat]
    elif kind.itemsize == 2 and kind.kind not in "iu":
        texts = [f"0x{int(v):04x}" for v in flat.view(np.uint16)]
    elif kind.itemsize == 1 and kind.kind not in "iu":
        texts = [str(int(v)) for v in (flat.astype(np.int8) if str(kind).startswith(("int", "uint")) else flat.view(np.uint8))]
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
