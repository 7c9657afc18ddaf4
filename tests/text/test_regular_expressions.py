"""Automata of regular expressions: what they match, against Python's engine; what is refused; that they are
minimal.
"""

from __future__ import annotations

import itertools
import re
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aot_model.text.pattern import LAST, PatternError, any_case, inverse, merged
from aot_model.text.regular_expressions import Automaton, compile_pattern, utf8_paths

PATTERNS = [
    "",
    "a|",
    "()",
    "(a*)*b",
    "(a|b)+",
    "[^a-c]*",
    "a?b{2,3}|ab",
    "^ab$",
    r".*\bb\b.*",
    "[à-ÿ].*",
    "(?i)ab",
    "(?s).*",
    r"\S+",
    r"\Ba\B",
    r"a\b\bb|c",
    "(?:^a|b)c$|$",
    "x{0}",
    "[]a]+",
    "[^]]",
    "(ab){2,}c?",
    "[а-я]+",
    ".",
    "..",
    "(?P<n>a)(b|c)??",
    r"a\.b|a\sb",
    r"[\w-]+",
    "(?i:A)b",
    "[a-]+",
    r"www\.[\w.-]+\.\bcom\b",
    r"(\W|^)[\w.\-]{0,25}@(yahoo|gmail)\.com(\W|$)",
]
TEXTS = [
    *("".join(t) for n in range(5) for t in itertools.product("ab c", repeat=n)),
    "é",
    "éé",
    "😀",
    "абв",
    "]",
    "]a",
    "a-",
    "\n",
    "a\nb",
    "A",
    "AB",
    "Ab",
    "a.b",
    "_",
    "www.google.com",
    "www.bbc.co.uk",
    "account@gmail.com",
    "not email",
    "account2@yahoo.com!",
]


@pytest.mark.parametrize("pattern", PATTERNS)
def test_automata_match_what_pythons_engine_does(pattern: str) -> None:
    automaton, engine = compile_pattern(pattern), re.compile(pattern, re.ASCII)
    wrong = [t for t in TEXTS if automaton.matches(t.encode()) != (engine.fullmatch(t) is not None)]
    assert not wrong


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        (r"\x{1F600}|\x41", "😀"),
        (r"\x{1F600}|\x41", "A"),
        ("[[:alpha:]]+", "aZ"),
        (r"\Qa.b\E+", "a.bbb"),
        (r"\101", "A"),
        ("(?i)k", "K"),
    ],
)
def test_syntax_that_python_has_not(pattern: str, text: str) -> None:
    assert compile_pattern(pattern).matches(text.encode())
    assert not compile_pattern(pattern).matches(b"")


@pytest.mark.parametrize(("pattern", "why"), [("(", "lacks"), (")", "too many"), ("a**", "repeats"),
                                              ("*a", "nothing to repeat"), ("[a", "lacks"), ("[a-", "lacks"),
                                              ("a{" + "9" * 5000 + "}", "repetition"), ("\\", "backslash"),
                                              ("(?=a)", "group"), ("a{2,1}", "repetition"),
                                              (r"\p{L}", "escape"), ("(?i)é", "ASCII"), ("(?m)^a", "flag"),
                                              ("a{1001}", "repetition"), ("((a{1000}){1000})", "too large"),
                                              ("(a|b)*a(a|b){14}", "states"), ("[b-a]", "range"),
                                              (r"\1", "escape"), (r"\C", "escape"), ("[[:x:]]", "class"),
                                              ("(" * 200 + ")" * 200, "nested")],
                         )  # fmt: skip
def test_patterns_that_are_refused(pattern: str, why: str) -> None:
    with pytest.raises(PatternError, match=why):
        compile_pattern(pattern)


def test_a_long_literal_is_minimal_at_once() -> None:
    text = "".join(chr(97 + k % 26) for k in range(1500))
    start = time.process_time()
    automaton = compile_pattern(text)
    assert time.process_time() - start < 10  # one refinement for each letter takes far longer
    assert automaton.matches(text.encode()) and not automaton.matches(text[:-1].encode())
    assert len(automaton.accepts) == 1502


LETTERS = st.sampled_from(["a", "b", "[ab]", "[^a]", ".", r"\b", "^", "$", r"\w", "é"])
EXPRESSIONS = st.recursive(
    LETTERS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=1, max_size=3).map("".join),
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: f"({'|'.join(parts)})"),
        st.tuples(inner, st.sampled_from(["*", "+", "?", "{2}", "{1,3}", "{0,2}?"])).map(
            lambda pair: f"(?:{pair[0]}){pair[1]}"
        ),
    ),
    max_leaves=6,
)
SHORT = ["".join(t) for n in range(5) for t in itertools.product("ab ", repeat=n)] + ["é", "aé", "éa", "éé b"]


@settings(max_examples=200, deadline=None)
@given(EXPRESSIONS)
def test_random_expressions(pattern: str) -> None:
    automaton, engine = compile_pattern(pattern), re.compile(pattern, re.ASCII)
    assert [t for t in SHORT if automaton.matches(t.encode()) != (engine.fullmatch(t) is not None)] == []
    assert told_apart(automaton)


def told_apart(automaton: Automaton) -> bool:
    """Whether some text tells each two states apart: no automaton with fewer states matches the same
    texts.
    """
    states, classes = len(automaton.accepts), automaton.classes
    different = {
        (a, b) for a in range(states) for b in range(a) if automaton.accepts[a] != automaton.accepts[b]
    }
    while True:
        more = {
            (a, b)
            for a in range(states)
            for b in range(a)
            if (a, b) not in different
            and any(
                (max(x, y), min(x, y)) in different
                for x, y in (
                    (automaton.next[a * classes + k], automaton.next[b * classes + k]) for k in range(classes)
                )
            )
        }
        if not more:
            return len(different) == states * (states - 1) // 2
        different |= more


@pytest.mark.parametrize(
    ("low", "high"),
    [(0, 0x7F), (0, LAST), (0x7FF, 0x801), (0xD000, 0xE100), (0x10FFF0, LAST), (0x80, 0x10000)],
)
def test_ranges_as_bytes(low: int, high: int) -> None:
    """Exactly the UTF-8 of the code points, without surrogates."""
    paths = list(utf8_paths(low, high))
    edges = {low, high, 0x7F, 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000, 0xFFFF, 0x10000, LAST}
    for code in sorted(c + d for c in edges for d in (-1, 0, 1)):
        if 0 <= code <= LAST and not 0xD800 <= code <= 0xDFFF:
            text = chr(code).encode()
            found = sum(
                len(path) == len(text) and all(a <= b <= c for (a, c), b in zip(path, text, strict=True))
                for path in paths
            )
            assert found == (low <= code <= high), hex(code)


def test_sets_of_letters() -> None:
    assert merged([(5, 9), (1, 3), (4, 4), (20, 30), (25, 26)]) == ((1, 9), (20, 30))
    assert (
        inverse(((0, 4), (10, LAST))) == ((5, 9),)
        and inverse(()) == ((0, LAST),)
        and inverse(((0, LAST),)) == ()
    )
    assert any_case(((ord("a"), ord("b")),)) == ((ord("A"), ord("B")), (ord("a"), ord("b")))
    assert (0x212A, 0x212A) in any_case(((ord("k"), ord("k")),))
