"""Products with 1 and sums with 0, which numbers of a shape leave in the text of a kernel, are not written.

Only where the value, its type and the order of the operators stay: `* 1` behind an operand, `+ 0` and `- 0`
behind one and before what binds less. Arithmetic converts small types to int with and without them; floats
are written with a point, so that -0.0f + 0.0f stays.
"""

from __future__ import annotations

import re

_LESS = r"(?= *[)\],;]| [-+<>=!?:&|])"
"""What binds less than a product, and no more than a sum."""
_WORD = (r"(?!(?:return|case|sizeof|unsigned|void|char|short|int|long|float|double)\b|\w*_t\b)"
         r"[A-Za-z_]\w*")
"""A variable: no keyword and no type."""
_RULES = tuple((re.compile(pattern), to) for pattern, to in (
    (rf"(?<=[\w)\]]) \* 1(?:{_LESS}|(?= [*/%] )|$)", ""),
    (rf"\b({_WORD}(?:\[\w+\])?|(?<![\w.])\d+) [-+] 0{_LESS}", r"\1"),
    (rf"(?<=[-+*=(\[,] )\(({_WORD}|\d+)\)(?= [-+*/%]|[;,)\]])", r"\1"),
    (r"(?<=\[)\(([^()\[\]]*)\)(?=\])", r"\1"),
    (r"(?<=_t\))\(\(([^(),]*)\)\)", r"(\1)"),
))


def without_neutral(code: str) -> str:
    """A line of C, without comments and literals of strings; the same value in fewer words."""
    before = None
    while code != before:
        before = code
        for rule, to in _RULES:
            code = rule.sub(to, code)
    return code
