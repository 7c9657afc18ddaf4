"""The functions of a C text, as far as it takes to say which of them have loops that a caller's compiler can
look into.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache

from aot_model.installation import include_dir

OPAQUE = ("AOT_MODEL_OPAQUE", "AOT_MODEL_FUNCTION", "AOT_MODEL_NOINLINE", "noipa", "AOT_MODEL_NAKED")
"""What makes that a compiler looks neither into a function from its callers nor the other way round."""
BARRIER = "AOT_MODEL_BARRIER"
INLINED = ("AOT_MODEL_INLINE", "always_inline")
_NOISE = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL)
_LOOP = re.compile(r"\b(?:for|while|do|goto)\b")
_CALLED = re.compile(r"\b([A-Za-z_]\w*)\s*\(")


@dataclass(frozen=True)
class CDefinition:
    """A function: its name, what stands before the parameters, its body."""

    name: str
    head: str
    body: str

    @property
    def opaque(self) -> bool:
        return any(word in self.head for word in OPAQUE)

    @property
    def guarded(self) -> bool:
        """A barrier begins the body, ends it and stands before each return."""
        statements = [s.strip() for s in re.split(r"[;{}]", self.body) if s.strip()]
        ends = [k for k, s in enumerate(statements) if re.search(r"\breturn\b", s)]
        ended = statements[-1:] == [BARRIER] or len(statements) - 1 in ends
        return statements[:1] == [BARRIER] and ended and all(statements[k - 1] == BARRIER for k in ends)

    @property
    def inlined(self) -> bool:
        return any(word in self.head for word in INLINED)


def definitions(text: str) -> Iterator[CDefinition]:
    """All functions that a text defines, those of all branches of #if."""
    text = _NOISE.sub(" ", text)
    text = re.sub(r"(?m)^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", "", text)
    text = re.sub(r"extern\s+\{", "", text)
    text = re.sub(r"(?m)^[A-Z][A-Z0-9_]*\([^\n]*\)$", "", text)  # functions that a macro writes
    start, at = 0, 0
    while (at := text.find("{", at)) >= 0:
        head, end = text[start:at], _close(text, at)
        head = head[max(head.rfind(";"), head.rfind("}")) + 1 :]
        words = re.match(
            r"(?s)(.*?)\b([A-Za-z_]\w*)\s*\((?!\()",
            re.sub(
                r"__attribute__\s*\(\((?:[^()]|\([^()]*\))*\)\)", lambda m: re.sub(r"[()]", " ", m[0]), head
            ),
        )
        if words is not None and head.rstrip().endswith(")") and "=" not in words[1]:
            yield CDefinition(words[2], words[1], text[at:end])
        start = at = end


def _close(text: str, at: int) -> int:
    """Behind the brace that closes the one at `at`."""
    depth = 0
    for found in re.finditer(r"[{}]", text[at:]):
        depth += 1 if found[0] == "{" else -1
        if depth == 0:
            return at + found.end()
    return len(text)


def exposed(text: str, known: dict[str, CDefinition]) -> list[str]:
    """Functions of a text with a loop, their own or one that is inlined into them, that are neither opaque
    nor guarded by barriers nor inlined themselves. known: what the headers define."""
    own = list(definitions(text))
    all_of_them = {**known, **{d.name: d for d in own}}

    def loops(d: CDefinition, seen: frozenset[str]) -> bool:
        if _LOOP.search(d.body):
            return True
        called = (all_of_them[n] for n in set(_CALLED.findall(d.body)) - seen if n in all_of_them)
        return any(loops(c, seen | {c.name}) for c in called if not c.opaque)

    bare = (d for d in own if d.name != "main" and not (d.opaque or d.inlined or d.guarded))
    return sorted({d.name for d in bare if loops(d, frozenset({d.name}))})


@cache
def header_functions() -> dict[str, CDefinition]:
    """What the runtime headers define."""
    return {d.name: d for p in sorted(include_dir().rglob("*.h*")) for d in definitions(p.read_text())}
