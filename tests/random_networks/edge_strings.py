"""Operators with strings: empty ones, of no parts, of other alphabets, numbers as text."""

from __future__ import annotations

import numpy as np
from edge_network import Edge, edge

WORDS = (
    "",
    " ",
    "a",
    "b",
    "A",
    "ab",
    "a b",
    " a  b ",
    "a,b,,c",
    "ÄÖ ü",
    "ß",
    "日本",
    "1",
    "-0",
    "nan",
    "a\tb",
    "zz",
)


def words(n: Edge, shape: tuple[int, ...]) -> np.ndarray:
    found = np.empty(shape, object)
    found.reshape(-1)[:] = [n.pick(*WORDS) for _ in range(found.size)]
    return found


@edge(2)
def text(n: Edge) -> str | None:
    n.opset = max(n.opset, 20)
    shape, how = n.shape(0, 3), n.number(0, 5)
    if how == 0:
        other = tuple(d if n.once(2) else 1 for d in shape)
        return _end(
            n, n.node("StringConcat", [n.given(words(n, shape), 0), n.given(words(n, other), 0.4)])[0]
        )
    if how == 1:
        made = n.node(
            "StringSplit",
            [n.given(words(n, shape), 0)],
            2,
            delimiter=n.pick(None, "", ",", " ", "a"),
            maxsplit=n.pick(None, 0, 1, 2),
        )
        n.end(*made)
        return None
    if how == 2:
        row = n.pick((n.number(0, 6),), (1, n.number(0, 6)))
        stop = [n.pick(*WORDS[1:]) for _ in range(n.number(0, 3))]
        return _end(
            n,
            n.node(
                "StringNormalizer",
                [n.given(words(n, row), 0)],
                case_change_action=n.pick("NONE", "LOWER", "UPPER"),
                is_case_sensitive=n.number(0, 1),
                stopwords=stop or None,
                locale="C",
            )[0],
        )
    if how == 3:
        return _end(
            n,
            n.node(
                "RegexFullMatch",
                [n.given(words(n, shape), 0)],
                pattern=n.pick("a.*", "", "[a-z]+", "(a|b)*", "."),
            )[0],
        )
    if how == 4:
        other = tuple(d if n.once(2) else 1 for d in shape)
        return _end(n, n.node("Equal", [n.given(words(n, shape), 0), n.given(words(n, other), 0.4)])[0])
    keys = list(dict.fromkeys(n.pick(*WORDS) for _ in range(4)))
    return _end(
        n,
        n.node(
            "LabelEncoder",
            [n.given(words(n, shape), 0)],
            domain="ai.onnx.ml",
            keys_strings=keys,
            values_int64s=list(range(len(keys))),
            default_int64=-7,
        )[0],
    )


def _end(n: Edge, value: str) -> None:
    n.end(value)
