"""Loops that run once, which the numbers of a shape leave in the text of a kernel, are not written.

`for (int32_t i = 124; i < 125; i++) { … i … }` becomes its body with 124 for i. It stays a loop where the
body might leave it, change the variable or take its address, and where the body has text that is no plain C
(strings, assembly, directives). What the body declares keeps its braces, unless nothing follows in the block
and no name was known there before. Where numbers alone would be compared or divided, the variable becomes a
constant instead.
"""

from __future__ import annotations

import re

_HEADER = re.compile(r"for \((u?int32_t) (\w+) = (\d+); \2 < (\d+); (?:\2\+\+|\+\+\2|\2 \+= (\d+))\) \{")
_COMMENT = r"/\*.*?\*/"
_PARTS = re.compile(rf'{_COMMENT}|"(?:[^"\\]|\\.)*"|[{{}}]', re.DOTALL)
_OTHER = re.compile(r'["#]|\b(?:break|continue|goto|return|__asm__|asm)\b')
_DECLARED = re.compile(r"(?:static |const )*[A-Za-z_]\w*(?: \*+|\s)(?:const |restrict )*(\w+)(?:\[| =|;|,)")
_NUMBERS = re.compile(r"(?:[=(,?:\[]\s?|return |&& |\|\| )\d+u?(?: [-+*] \d+u?)* (?:[<>]=?|[!=]=|[/%]) \d")
"""A comparison or a quotient of numbers."""
_KEYWORDS = ("return", "else", "goto", "case")


def without_single_turns(body: str) -> str:
    """The statements of a function, with loops of one turn as plain statements."""
    at = 0
    while (match := _HEADER.search(body, at)) is not None:
        at = match.end()
        turn = _turn(body, match)
        if turn is not None:
            begin, text, end = turn
            body, at = body[:begin] + text + body[end:], begin
    return body


def _turn(body: str, header: re.Match[str]) -> tuple[int, str, int] | None:
    """(begin, text, end): what stands for the loop; None where it stays."""
    c_type, name, first, limit, step = header.groups()
    if not int(first) < int(limit) <= int(first) + int(step or 1):
        return None
    close = _closing(body, header.end())
    if close is None:
        return None
    inside = body[header.end() : close]
    code = re.sub(_COMMENT, "", inside, flags=re.DOTALL)
    changed = rf"\b{name}\b *(?:[-+*/%|&^]|<<|>>)?=(?!=)|\b{name}(?:\+\+|--)|(?:\+\+|--|(?<!&)&){name}\b"
    if _OTHER.search(code) or re.search(changed, code):
        return None
    number = first + ("u" if c_type == "uint32_t" else "")
    text = re.sub(rf"{_COMMENT}|(?<![\w.])(?<!->){name}\b",
                  lambda m: number if m[0] == name else m[0], inside, flags=re.DOTALL)
    if len(_NUMBERS.findall(text)) > len(_NUMBERS.findall(inside)):
        return header.start(), f"{{\nconst {c_type} {name} = {number};\n{inside.lstrip()}}}", close + 1
    if _needs_braces(body, header.start(), code, close):
        text = f"{{{text}}}"
    return header.start(), text.strip() if text[:1] != "{" else text, close + 1


def _closing(body: str, begin: int) -> int | None:
    """Where the brace closes that is open at `begin`."""
    depth = 1
    for part in _PARTS.finditer(body, begin):
        depth += {"{": 1, "}": -1}.get(part[0], 0)
        if not depth:
            return part.start()
    return None


def _needs_braces(body: str, begin: int, code: str, close: int) -> bool:
    """Whether the names that the loop's body declares need a block of their own."""
    names = _declared(code)
    if not names:
        return False
    after = re.match(rf"\s*(?:{_COMMENT}\s*)*(\}}|$)", body[close + 1 :], re.DOTALL)
    known = set(re.findall(r"\w+", _block_before(body, begin)))
    return after is None or not known.isdisjoint(names)


def _declared(code: str) -> set[str]:
    """Names declared in the outermost block of a text."""
    depth, outer = 0, []
    for piece in re.split(r"([{}])", code):
        depth += {"{": 1, "}": -1}.get(piece, 0)
        if depth == 0 and piece not in "{}":
            outer.append(piece)
    names: set[str] = set()
    for statement in re.split(r"[;}]\s*", ";".join(outer)):
        found = _DECLARED.match(statement.strip() + ";")
        if found and statement.split(maxsplit=1)[0] not in _KEYWORDS:
            names.add(found[1])
            names.update(re.findall(r", \**(\w+)(?= =|;|,|$)", statement))
    return names


def _block_before(body: str, begin: int) -> str:
    """What stands in the block of a place before it, with the line that opens the block."""
    opened = [0]
    for part in _PARTS.finditer(body, 0, begin):
        if part[0] == "{":
            opened.append(body.rfind("\n", 0, part.start()) + 1)
        elif part[0] == "}":
            opened.pop()
    return body[opened[-1] : begin]
