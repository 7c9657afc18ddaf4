"""Loops that run once, which the numbers of a shape leave in the text of a kernel, are not written.

`for (int32_t i = 124; i < 125; i++) { … i … }` becomes its body with 124 for i. It stays a loop where the
body might leave it, change the variable or take its address, and where the body has text that is no plain C
(strings, assembly, directives). What the body declares keeps its braces, unless nothing follows in the block
and no name was known there before. Where numbers alone would be compared or divided, the variable becomes a
constant instead.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from aot_model.c.tokens import Token, tokens, written

_LEAVING = frozenset("break continue goto return __asm__ asm".split())
_ASSIGNING = frozenset("= += -= *= /= %= |= &= ^= <<= >>=".split())
_COMPARING = frozenset("< > <= >= == != / %".split())
_BEFORE_NUMBERS = frozenset("= ( , ? : [ return && ||".split())
_QUALIFIERS = frozenset("static const restrict".split())
_STATEMENTS = frozenset("return else goto case".split())


@dataclass(frozen=True)
class _Header:
    """Of a loop that runs once: tokens `begin` to the brace before `inside`."""

    begin: int
    inside: int
    c_type: str
    name: str
    first: str

    @property
    def number(self) -> str:
        return self.first + "u" * (self.c_type == "uint32_t")


def without_single_turns(body: str) -> str:
    """The statements of a function, with loops of one turn as plain statements."""
    if "for (" not in body:
        return body
    code, at = tokens(body), 0
    while at < len(code):
        header = _header(code, at)
        close = _closing(code, header.inside) if header else None
        turn = _turn(code, header, close) if header and close else None
        if header and close and turn is not None:
            code[header.begin : close + 1] = turn
        else:
            at += 1
    return written(code)


def _header(code: Sequence[Token], at: int) -> _Header | None:
    """Of the loop that begins there, if it is one that runs once."""
    words = [t.text for t in code[at : at + 18]] if code[at].text == "for" else []
    if "{" not in words:
        return None
    words = words[: words.index("{") + 1]
    match words:
        case [
            "for",
            "(",
            ("int32_t" | "uint32_t") as c_type,
            name,
            "=",
            first,
            ";",
            same,
            "<",
            last,
            ";",
            *by,
            ")",
            "{",
        ] if name == same and first.isdecimal() and last.isdecimal():
            step = by[2] if by[:2] == [name, "+="] and len(by) == 3 else "1"
            known = sorted(by) == sorted([name, "++"]) or (step.isdecimal() and by == [name, "+=", step])
            if known and int(first) < int(last) <= int(first) + int(step):
                return _Header(at, at + len(words), c_type, name, first)
    return None


def _turn(code: Sequence[Token], header: _Header, close: int) -> list[Token] | None:
    """What stands for the loop; None where it stays."""
    inside = code[header.inside : close]
    if any(t.text in _LEAVING or t.text[:1] in '"#' for t in inside) or _changed(inside, header.name):
        return None
    text = [replace(t, text=header.number) if is_it else t for t, is_it in _uses(inside, header.name)]
    space, end = code[header.begin].space, code[close]
    if _comparisons(text) > _comparisons(inside):
        constant = tokens(f"\nconst {header.c_type} {header.name} = {header.number};")
        return [Token("{", space), *constant, *_spaced(inside, "\n"), end]
    if _needs_braces(code, header, close):
        return [Token("{", space), *text, end]
    return _spaced(text, space)


def _spaced(code: Sequence[Token], space: str) -> list[Token]:
    """With that white space before the first one."""
    return [replace(code[0], space=space), *code[1:]] if code else []


def _closing(code: Sequence[Token], begin: int) -> int | None:
    """Where the brace closes that is open at `begin`."""
    depth = 1
    for k in range(begin, len(code)):
        depth += {"{": 1, "}": -1}.get(code[k].text, 0)
        if not depth:
            return k
    return None


def _uses(code: Sequence[Token], name: str) -> Iterator[tuple[Token, bool]]:
    """Each token, and whether it is the variable: no member of the same name."""
    before = ""
    for token in code:
        yield token, token.text == name and before not in (".", "->")
        before = token.text


def _changed(code: Sequence[Token], name: str) -> bool:
    """Whether the variable is written or its address taken."""
    for before, token, after in zip([Token(""), *code], code, [*code[1:], Token("")], strict=False):
        if token.text == name and (
            after.text in _ASSIGNING
            or "++" in (before.text, after.text)
            or "--" in (before.text, after.text)
            or (before.text == "&" and not token.space)
        ):
            return True
    return False


def _comparisons(code: Sequence[Token]) -> int:
    """How many comparisons and quotients of numbers alone there are."""
    count = 0
    for k, token in enumerate(code):
        if token.text in _COMPARING and k + 1 < len(code) and code[k + 1].text[:1].isdigit():
            at = k - 1
            while at > 0 and _is_integer(code[at]) and code[at - 1].text in ("+", "-", "*"):
                at -= 2
            count += at > 0 and _is_integer(code[at]) and code[at - 1].text in _BEFORE_NUMBERS
    return count


def _is_integer(token: Token) -> bool:
    return token.text.removesuffix("u").isdecimal()


def _needs_braces(code: Sequence[Token], header: _Header, close: int) -> bool:
    """Whether the names that the loop's body declares need a block of their own."""
    names = _declared(code[header.inside : close])
    after = next((t.text for t in code[close + 1 :] if t.text and not t.is_comment), "}")
    return bool(names) and (after != "}" or not names.isdisjoint(_known(code, header.begin)))


def _declared(code: Sequence[Token]) -> set[str]:
    """Names declared in the outermost block."""
    names: set[str] = set()
    statement: list[str] = []
    depth = 0
    for token in [*code, Token(";")]:
        depth -= token.text == "}"
        if token.text in (";", "{", "}"):
            names |= _declares(statement) if not depth else set()
            statement = []
        elif not depth and not token.is_comment:
            statement.append(token.text)
        depth += token.text == "{"
    return names


def _declares(statement: list[str]) -> set[str]:
    """Names that it declares: type, stars, name, and what is behind commas."""
    words = [w for w in statement if w not in _QUALIFIERS]
    if not words or words[0] in _STATEMENTS or not Token(words[0]).is_word:
        return set()
    names = set()
    for k, begin in enumerate([0, *(k for k, w in enumerate(words) if w == ",")]):
        rest = [w for w in words[begin + 1 :] if w != "*"] or [""]
        if Token(rest[0]).is_word and (rest[1:2] or [","])[0] in ("=", ",", *("[" * (k == 0))):
            names.add(rest[0])
        elif k == 0:
            break
    return names


def _known(code: Sequence[Token], begin: int) -> set[str]:
    """Words of the block of a place before it, with the line that opens the block."""
    depth, at = 0, begin
    while at > 0 and depth >= 0:
        at -= 1
        depth += {"}": 1, "{": -1}.get(code[at].text, 0)
    while at > 0 and "\n" not in code[at].space:
        at -= 1
    return {t.text for t in code[at:begin] if t.is_word}
