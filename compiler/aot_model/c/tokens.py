"""C text as tokens, each with the white space before it, and as a tree of its brackets."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""(?P<space>\s*)(?P<text>
      /\*.*?(?:\*/|$) | //[^\n]* | "(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*'
    | [A-Za-z_]\w* | \.?\d(?:[eEpP][-+]|[\w.])*
    | <<=|>>=|->|\+\+|--|<<|>>|&&|\|\||[-+*/%&|^<>=!]= | . | $)""",
    re.DOTALL | re.VERBOSE,
)
_CLOSING = {"(": ")", "[": "]"}
_KEYWORDS = frozenset("return case else goto do if for while switch sizeof break continue default".split())
_TYPES = frozenset("void char short int long float double signed unsigned bool const".split())


@dataclass(frozen=True)
class Token:
    """A word, a number, an operator, a comment, a string."""

    text: str
    space: str = ""

    @property
    def is_word(self) -> bool:
        return self.text[:1].isalpha() or self.text[:1] == "_"

    @property
    def is_name(self) -> bool:
        """Of a variable or a function; no keyword and no type, as far as its text tells."""
        return self.is_word and self.text not in _KEYWORDS and not self.is_type

    @property
    def is_type(self) -> bool:
        return self.text in _TYPES or (self.is_word and self.text.endswith("_t"))

    @property
    def is_literal(self) -> bool:
        """A number or a character."""
        return self.text[:1] == "'" or self.text.lstrip(".")[:1].isdigit()

    @property
    def is_comment(self) -> bool:
        return self.text.startswith(("/*", "//"))

    @property
    def number(self) -> int | None:
        """Of a decimal integer of type int."""
        return int(self.text) if self.text.isdecimal() and len(self.text) < 10 else None

    def __str__(self) -> str:
        return self.space + self.text


@dataclass
class Group:
    """Parentheses or square brackets and what is in them; `close` is None where the text ends before."""

    open: Token
    items: list[Item] = field(default_factory=list)
    close: Token | None = None

    @property
    def is_type(self) -> bool:
        """Whether it is a cast, as far as its text tells."""
        return (
            self.open.text == "("
            and bool(self.items)
            and all(isinstance(i, Token) and (i.is_word or i.text == "*") for i in self.items)
            and (
                str(self.items[-1]).strip() == "*"
                or any(isinstance(i, Token) and i.is_type for i in self.items)
            )
        )

    def __str__(self) -> str:
        return f"{self.open}{written(self.items)}{self.close or ''}"


Item = Token | Group


def tokens(text: str) -> list[Token]:
    """Of a text; `written` gives it back."""
    return [Token(m["text"], m["space"]) for m in _TOKEN.finditer(text) if m[0]]


def tree(text: str) -> list[Item]:
    """The tokens with parentheses and square brackets as groups."""
    top: list[Item] = []
    inside: list[Group] = []
    for token in tokens(text):
        items = inside[-1].items if inside else top
        if token.text in _CLOSING:
            inside.append(Group(token))
            items.append(inside[-1])
        elif inside and token.text == _CLOSING[inside[-1].open.text]:
            inside.pop().close = token
        else:
            items.append(token)
    return top


def written(items: Iterable[Item]) -> str:
    """The text of tokens."""
    return "".join(map(str, items))
