"""C identifiers from the names of a model: legal, unique, and nothing that a name could smuggle in."""

from __future__ import annotations

import re
from collections.abc import Iterable

_KEYWORDS = frozenset(
    """auto break case char const continue default do double else enum extern float for goto if inline int long register
    restrict return short signed sizeof static struct switch typedef union unsigned void volatile while _Bool _Complex
    _Imaginary asm typeof bool true false NULL main alignas alignof class new delete this template namespace operator
    private protected public virtual try catch throw using friend explicit export mutable typename and or not xor
    bitand bitor compl and_eq or_eq xor_eq not_eq static_assert thread_local nullptr constexpr noexcept decltype
    concept requires wchar_t char8_t char16_t char32_t static_cast dynamic_cast const_cast reinterpret_cast typeid""".split()
)
MAX_LENGTH = 60


def identifier(text: str, fallback: str = "value") -> str:
    """A C identifier that looks like the text: other characters become '_', digits do not lead, keywords get a '_'."""
    clean = re.sub(r"[^A-Za-z0-9_]+", "_", text)[:MAX_LENGTH].strip("_")
    if not clean or not re.search(r"[A-Za-z0-9]", clean):
        clean = fallback
    if clean[0].isdigit():
        clean = f"{fallback[0]}{clean}"
    return f"{clean}_" if clean in _KEYWORDS else clean


def identifiers(texts: Iterable[str], fallback: str = "value", taken: Iterable[str] = ()) -> list[str]:
    """Identifiers for several texts; those that collide get a suffix."""
    used = {t.lower() for t in taken}
    result = []
    for text in texts:
        name = base = identifier(text, fallback)
        count = 1
        while name.lower() in used:
            count += 1
            name = f"{base}_{count}"
        used.add(name.lower())
        result.append(name)
    return result


def comment_text(text: str) -> str:
    """A name from the model made safe inside a C comment."""
    clean = "".join(c if c.isascii() and c.isprintable() else "?" for c in text)
    clean = clean.replace("*/", "* /").replace("/*", "/ *").replace("\\", "/").replace("??", "? ?")
    return clean if len(clean) <= 80 else clean[:77] + "..."


def string_literal(text: str) -> str:
    """A C string literal with the text's UTF-8 bytes."""
    out = []
    for byte in text.encode("utf-8", "surrogatepass"):
        ch = chr(byte)
        out.append(f"\\{byte:03o}" if ch in '"\\?' or not 32 <= byte < 127 else ch)
    return '"' + "".join(out) + '"'
