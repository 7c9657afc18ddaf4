"""What numbers of a shape leave in the text of a kernel is not written: products with 1 and 0, sums with 0,
products and differences of two numbers, signs behind signs, steps of 1 as `+= 1`, offsets of a pointer
before its index.

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
_FIRST = r"(?:(?<=[(\[])|(?<=[=,] )|(?<=return ))"
"""Where a sum begins."""
_RULES = tuple((re.compile(pattern), to) for pattern, to in (
    (rf"(?<=[\w)\]]) \* 1(?:{_LESS}|(?= [*/%] )|$)", ""),
    (rf"\b({_WORD}(?:\[\w+\])?|(?<![\w.])\d+) [-+] 0{_LESS}", r"\1"),
    (rf"(?<=[-+*=(\[,] )\(({_WORD}|\d+)\)(?= [-+*/%]|[;,)\]])", r"\1"),
    (rf"(?<=[(\[])\(({_WORD}|\d+)\)(?= [-+*/%] )", r"\1"),
    (rf"(?<=[-+*=] )\(({_WORD}\([^()]*\))\)(?=;| [-+*/] )", r"\1"),
    (r"(?<=\[)\(([^()\[\]]*)\)(?=\])", r"\1"),
    (rf" \+ \(-(\d{{1,9}})\){_LESS}", r" - \1"),
    (rf" - -(\d{{1,9}}){_LESS}", r" + \1"),
    (rf"(?<= \+ )\(((?:{_WORD}|\([^()]*\)) \* \d+)\){_LESS}", r"\1"),
    (rf" \+ -(\d{{1,9}}){_LESS}", r" - \1"),
    (rf"(?<![\w.])({_WORD}) \+= 1(?=\))", r"\1++"),
    (rf"{_FIRST}0 \* \d+{_LESS}", "0"),
    (rf"{_FIRST}0 \+ (?=[\w(&*])", ""),
    (rf"(?<= \+ )0 \* \d+{_LESS}", "0"),
    (rf"(?:(?<=[(])|(?<=[=,] ))&({_WORD})\[0\](?=[;,)])", r"\1"),
    (r"(?<=_t\))\(\(([^(),]*)\)\)", r"(\1)"),
))


_PRODUCT = re.compile(rf"(?:{_FIRST}|(?<= [-+] ))(\d{{1,4}}) \* (\d{{1,4}}){_LESS}")
_DIFFERENCE = re.compile(rf"{_FIRST}(\d{{1,9}}) - (\d{{1,9}}){_LESS}")
_INDEX = re.compile(rf"(?<![\w)\]])\(({_WORD}) \+ (\d+)\)\[(\d+)\]")
_PLACE = re.compile(rf"(?<![\w)\]])\(({_WORD}) \+ (\d+ \* (?:{_WORD}(?:\[\w+\])?|\([^()]*\)))\)\[(\d+)\]")
"""An element of a pointer behind a product."""


def without_neutral(code: str) -> str:
    """A line of C, without comments and literals of strings; the same value in fewer words."""
    before = None
    while code != before:
        before = code
        for rule, to in _RULES:
            code = rule.sub(to, code)
        code = _PRODUCT.sub(lambda m: str(int(m[1]) * int(m[2])), code)
        code = _DIFFERENCE.sub(lambda m: str(int(m[1]) - int(m[2])) if int(m[1]) >= int(m[2]) else m[0], code)
        code = _PLACE.sub(lambda m: f"{m[1]}[{m[2]}{f' + {m[3]}' * (int(m[3]) > 0)}]", code)
        code = _INDEX.sub(lambda m: f"{m[1]}[{int(m[2]) + int(m[3])}]", code)
    return code
