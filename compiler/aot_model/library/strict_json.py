"""JSON of files that anyone may have written or changed: its numbers are finite, as the standard has them."""

from __future__ import annotations

import json
import math
from typing import Any

LARGEST = 1 << 63


def loads(text: str | bytes) -> Any:
    """ValueError for what is no JSON, for NaN and infinities, which Python reads as numbers, and for integers
    of more than 64 bits, which may be beyond any float.
    """
    return json.loads(text, parse_float=_real, parse_int=_whole, parse_constant=_refused)


def _real(text: str) -> float:
    value = float(text)
    return value if math.isfinite(value) else _refused(text)


def _whole(text: str) -> int:
    value = int(text)
    return value if -LARGEST <= value < LARGEST else _refused(text)


def _refused(text: str) -> Any:
    raise ValueError(f"{text[:40]} is not a number that it may hold")
