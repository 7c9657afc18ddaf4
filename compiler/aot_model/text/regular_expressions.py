"""Regular expressions in RE2's syntax as deterministic automata over the bytes of UTF-8.

    pattern ─ Parser ─► tree ─ Nfa ─► nondeterministic automaton ─ determinise, minimise ─► Automaton (tables)

An assertion (^ $ \\A \\z \\b \\B) is an edge without a byte that can be taken where its condition holds: the
states of the deterministic automaton remember what was before, and the byte that follows decides. Whether a
repetition is lazy does not matter, because the whole text must match. Source:
https://github.com/google/re2/wiki/Syntax; the construction of subsets, Rabin and Scott 1959; minimal
automata, Moore 1956.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise

from aot_model.text.pattern import (
    Assertion,
    Choice,
    Letters,
    PatternError,
    Repetition,
    Sequence,
    Tree,
    parse,
    word,
)

MAX_NODES = 20000
"""Of the nondeterministic automaton."""
MAX_STATES = 2000
MAX_STEPS = 5_000_000
"""Of making the automaton: some seconds."""
"""Of the deterministic one, before it is minimised."""
_START, _AFTER_OTHER, _AFTER_WORD = range(3)


@dataclass(frozen=True)
class Automaton:
    """next[state * classes + class_of[byte]]: the state after a byte; state 0 leads to nothing."""

    start: int
    classes: int
    class_of: tuple[int, ...]
    next: tuple[int, ...]
    accepts: tuple[bool, ...]

    def matches(self, data: bytes) -> bool:
        """Whether the whole text matches."""
        state = self.start
        for byte in data:
            state = self.next[state * self.classes + self.class_of[byte]]
        return self.accepts[state]


@dataclass
class _Node:
    free: list[int] = field(default_factory=list)
    asserting: list[tuple[Assertion, int]] = field(default_factory=list)
    bytes: list[tuple[int, int, int]] = field(default_factory=list)
    """(first byte, last byte, node)."""


class _Nfa:
    """Nodes; every tree is built between two of them (Thompson 1968)."""

    def __init__(self, tree: Tree) -> None:
        self.nodes: list[_Node] = []
        self.first, self.last = self._node(), self._node()
        self._build(tree, self.first, self.last)

    def _node(self) -> int:
        if len(self.nodes) >= MAX_NODES:
            raise PatternError("is too large (counted repetitions multiply)")
        self.nodes.append(_Node())
        return len(self.nodes) - 1

    def _build(self, tree: Tree, begin: int, end: int) -> None:
        if isinstance(tree, Letters):
            for low, high in tree.ranges:
                for path in utf8_paths(low, high):
                    places = [begin, *(self._node() for _ in path[1:]), end]
                    for (first, last), (a, b) in zip(path, pairwise(places), strict=True):
                        self.nodes[a].bytes.append((first, last, b))
        elif isinstance(tree, Assertion):
            self.nodes[begin].asserting.append((tree, end))
        elif isinstance(tree, Sequence):
            places = [begin, *(self._node() for _ in tree.parts[1:]), end]
            for part, (a, b) in zip(tree.parts, pairwise(places), strict=False):
                self._build(part, a, b)
            if not tree.parts:
                self.nodes[begin].free.append(end)
        elif isinstance(tree, Choice):
            for part in tree.parts:
                self._build(part, begin, end)
        else:
            self._repeat(tree, begin, end)

    def _repeat(self, tree: Repetition, begin: int, end: int) -> None:
        for _ in range(tree.least):
            following = self._node()
            self._build(tree.part, begin, following)
            begin = following
        if tree.most is None:
            again = self._node()
            self.nodes[begin].free.append(again)
            back = self._node()
            self._build(tree.part, again, back)
            self.nodes[back].free.append(again)
            self.nodes[again].free.append(end)
            return
        for _ in range(tree.most - tree.least):
            self.nodes[begin].free.append(end)
            following = self._node()
            self._build(tree.part, begin, following)
            begin = following
        self.nodes[begin].free.append(end)

    def reach(self, nodes: Iterable[int], before: int, byte: int | None) -> set[int]:
        """Nodes that can be reached without a byte; `byte` follows, None: the text ends."""
        found = set(nodes)
        pending = list(found)
        while pending:
            node = self.nodes[pending.pop()]
            held = [to for assertion, to in node.asserting if _holds(assertion, before, byte)]
            new = {*node.free, *held} - found
            found |= new
            pending += new
        return found


def _holds(assertion: Assertion, before: int, byte: int | None) -> bool:
    if assertion is Assertion.BEGIN:
        return before == _START
    if assertion is Assertion.END:
        return byte is None
    changes = (before == _AFTER_WORD) != (byte is not None and word(byte))
    return changes == (assertion is Assertion.BOUNDARY)


def utf8_paths(low: int, high: int) -> Iterator[tuple[tuple[int, int], ...]]:
    """The code points low … high (without surrogates) as ranges of bytes, one behind the other."""
    for border in (0x7F, 0x7FF, 0xD7FF, 0xDFFF, 0xFFFF):
        if low <= border < high:
            yield from utf8_paths(low, border)
            yield from utf8_paths(border + 1, high)
            return
    if 0xD800 <= low <= 0xDFFF:
        return
    for k in (1, 2, 3):
        mask = (1 << (6 * k)) - 1
        if high > 0x7F and low & ~mask != high & ~mask:
            if low & mask:
                yield from utf8_paths(low, low | mask)
                yield from utf8_paths((low | mask) + 1, high)
                return
            if high & mask != mask:
                yield from utf8_paths(low, (high & ~mask) - 1)
                yield from utf8_paths(high & ~mask, high)
                return
    yield tuple(zip(chr(low).encode(), chr(high).encode(), strict=True))


@cache
def compile_pattern(pattern: str) -> Automaton:
    """The minimal automaton of a pattern. PatternError says what is wrong, not supported or too large."""
    nfa = _Nfa(parse(pattern))
    return _minimise(*_determinise(nfa))


def _determinise(nfa: _Nfa) -> tuple[list[int], list[list[int]], list[bool]]:
    """(class of each byte, rows of following states, whether a state accepts); state 0 is dead, state 1 the
    start.
    """
    kinds = {assertion for node in nfa.nodes for assertion, _ in node.asserting}
    borders = {b for node in nfa.nodes for low, high, _ in node.bytes for b in (low, high + 1)}
    if kinds & {Assertion.BOUNDARY, Assertion.NO_BOUNDARY}:
        borders |= {b for b in range(1, 256) if word(b) != word(b - 1)}
    first = sorted((borders | {0}) - {256})
    class_of = [max(k for k, b in enumerate(first) if b <= byte) for byte in range(256)]

    def after(byte: int) -> int:
        if not kinds:
            return _START  # nobody asks
        return _AFTER_WORD if word(byte) and kinds != {Assertion.BEGIN} else _AFTER_OTHER

    known: dict[tuple[frozenset[int], int], int] = {(frozenset(), -1): 0, (frozenset({nfa.first}), _START): 1}
    pending = [(frozenset({nfa.first}), _START)]
    rows = [[0] * len(first), [0] * len(first)]
    accepts = [False, False]
    steps = 0
    while pending:
        nodes, before = pending.pop()
        state = known[nodes, before]
        at_end = nfa.reach(nodes, before, None)
        accepts[state] = nfa.last in at_end
        for k, byte in enumerate(first):
            reached = nfa.reach(nodes, before, byte) if kinds else at_end  # only assertions ask for the byte
            steps += len(reached)
            if steps > MAX_STEPS:
                raise PatternError("is too large: it takes too long to make an automaton of it")
            targets = frozenset(
                to for n in reached for low, high, to in nfa.nodes[n].bytes if low <= byte <= high
            )
            key = (targets, after(byte) if targets else -1)
            if key not in known:
                if len(known) >= MAX_STATES:
                    raise PatternError(f"needs more than {MAX_STATES} states")
                known[key] = len(known)
                rows.append([0] * len(first))
                accepts.append(False)
                pending.append(key)
            rows[state][k] = known[key]
    return class_of, rows, accepts


def _bytes_to_go(rows: list[list[int]], accepts: list[bool]) -> list[int]:
    """Least bytes from each state to one that accepts, -1: there is none. States that differ in it are
    different, which saves a chain of states one round of refinement for each of its links."""
    before: list[set[int]] = [set() for _ in rows]
    for state, row in enumerate(rows):
        for following in row:
            before[following].add(state)
    distance = [0 if a else -1 for a in accepts]
    front = [state for state, a in enumerate(accepts) if a]
    while front:
        step = distance[front[0]] + 1
        front = sorted({b for state in front for b in before[state] if distance[b] < 0})
        for state in front:
            distance[state] = step
    return distance


def _minimise(class_of: list[int], rows: list[list[int]], accepts: list[bool]) -> Automaton:
    """States that no text tells apart become one, and so do bytes that no state tells apart."""
    groups = _bytes_to_go(rows, accepts)
    while True:
        numbers: dict[tuple[int, ...], int] = {}
        refined = [
            numbers.setdefault((group, *(groups[n] for n in row)), len(numbers))
            for group, row in zip(groups, rows, strict=True)
        ]
        if len(numbers) == len(set(groups)):
            break
        groups = refined
    # The dead state comes first, and so has number 0.
    place = {group: k for k, group in enumerate(dict.fromkeys(groups))}
    one_of = [groups.index(group) for group in place]
    table = [[place[groups[n]] for n in rows[state]] for state in one_of]
    columns: dict[tuple[int, ...], int] = {}
    merged = [columns.setdefault(column, len(columns)) for column in zip(*table, strict=True)]
    following = tuple(n for row in zip(*columns, strict=True) for n in row)
    return Automaton(
        place[groups[1]],
        len(columns),
        tuple(merged[c] for c in class_of),
        following,
        tuple(accepts[s] for s in one_of),
    )
