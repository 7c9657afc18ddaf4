"""Names of helper functions whose text depends on many numbers.

While kernels are made, such a name ends with a digest of the text, so that equal helpers of several layers
are one and different ones never meet. In the file of a model, where all of them are known, the ends are left
out, or are small numbers where several helpers share a name.
"""

from __future__ import annotations

import hashlib
import re

_MARKED = re.compile(r"\b(\w+?)_x[0-9a-f]{6}(?=\()")


def named_by_text(base: str, text: str) -> str:
    """A name for a helper of this text (its parameters included)."""
    return f"{base}_x{hashlib.sha256(text.encode()).hexdigest()[:6]}"


def numbered(text: str, prefix: str) -> str:
    """The text of a file with short names of those helpers whose names begin with the prefix."""
    bases: dict[str, list[str]] = {}
    for found in _MARKED.finditer(text):
        names = bases.setdefault(found[1], []) if found[1].startswith(prefix) else []
        if found[0] not in names:
            names.append(found[0])
    short: dict[str, str] = {}
    taken = set(re.findall(r"\w+", text))
    for base, names in bases.items():
        candidates = (
            n
            for k in range(len(taken) + len(names) + 1)
            if (n := f"{base}_{k + 1}" if k else base) not in taken
        )
        short.update(zip(names, candidates, strict=False))
    return re.sub(r"\w+", lambda m: short.get(m[0], m[0]), text) if short else text
