"""The headers of the C standard library that generated code needs, from what is named in it.

Kernels and expressions say which headers they use; what follows from the data of a model (an infinite
constant, the start of a fold) no author sees when a kernel is written. So what is in a file decides, at the
place where it is put together.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache

import numpy as np

from aot_model.installation import include_dir

_FUNCTIONS = {
    "math.h": """acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp2
        expm1 fabs fdim floor fma fmax fmin fmod frexp hypot ldexp lgamma log log10 log1p
        log2 logb lrint lround modf nearbyint nextafter pow remainder rint round scalbn sin
        sinh sqrt tan tanh tgamma trunc""",
    "string.h": "memcpy memmove memset memcmp memchr strlen strcmp strncmp",
    "stdlib.h": "abs labs llabs qsort bsearch",
}
_WORDS = {
    "math.h": "INFINITY NAN HUGE_VAL isnan isinf isfinite signbit fpclassify",
    "float.h": "FLT_MAX FLT_MIN FLT_EPSILON DBL_MAX DBL_MIN DBL_EPSILON",
    "limits.h": "CHAR_BIT INT_MAX INT_MIN UINT_MAX LONG_MAX LONG_MIN",
}


def _pattern(header: str) -> re.Pattern[str]:
    words, calls = ("|".join(table.get(header, "").split()) for table in (_WORDS, _FUNCTIONS))
    suffix = "f?" if header == "math.h" else ""
    parts = [*([rf"(?:{words})\b"] if words else []), *([rf"(?:{calls}){suffix}\s*\("] if calls else [])]
    return re.compile(rf"\b(?:{'|'.join(parts)})")


_PATTERNS = {header: _pattern(header) for header in sorted({*_FUNCTIONS, *_WORDS})}


def missing_headers(declared: Iterable[str], texts: Iterable[str], arrays: Iterable[np.ndarray]) -> set[str]:
    """Headers for what is named in C texts, and in the initialisers of arrays, that those declared do not
    include.
    """
    present = {h for d in declared for h in _included(d)}
    pending = {h: p for h, p in _PATTERNS.items() if h not in present}
    found: set[str] = set()
    for text in texts:
        found |= {h for h, pattern in pending.items() if h not in found and pattern.search(text)}
    if "math.h" in pending and any(
        a.dtype in (np.float32, np.float64) and not np.isfinite(a).all() for a in arrays
    ):
        found.add("math.h")
    return found


def uses_double(text: str) -> bool:
    """Whether C text computes in double, by itself or by functions of the runtime headers."""
    return re.search(r"\bdouble\b|_float64\b", text) is not None


@cache
def _included(header: str) -> frozenset[str]:
    """A header and those that it includes, as far as they are ours."""
    file = include_dir() / header
    if not file.is_file():
        return frozenset({header})
    inner = re.findall(r'^#include [<"]([^>"]+)[>"]', file.read_text(encoding="utf-8"), re.MULTILINE)
    return frozenset({header}).union(
        *(
            _included(h if "/" in h or not (include_dir() / "aot_model" / h).is_file() else f"aot_model/{h}")
            for h in inner
        )
    )
