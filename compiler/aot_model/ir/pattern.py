"""Patterns of sub-graphs: what a target can take over, what a pass replaces.

    conv = op("Convolution", value("x"), constant("weights"), name="conv", group=1) biased =
    conv.optional(lambda p: op("Add", p, constant("bias"))) pattern = op("Requantise", biased,
    constant("multiplier"), constant("shift"), name="requantise") | op("Relu", biased)

A pattern stands for a value. `a | b` takes the first that fits; a pattern used at two places must be the same
value at both (residuals); operands of commutative operators are tried in both orders. Names are how nodes and
values are found again in a match. Where a pattern does not fit, Nearest tells why: the first condition that
failed in the attempt that got furthest.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import reduce
from typing import Any

from aot_model.ir.graph import Node
from aot_model.ir.types import DType
from aot_model.ir.values import Value

COMMUTATIVE = frozenset("Add Mul Max Min And Or Xor Equal".split())


Answer = bool | str
"""Of a condition: whether it holds; or, in words, why it does not."""


@dataclass
class Nearest:
    """Why a search failed, from the attempt that got furthest: the one that bound the most patterns, the
    first of those.
    """

    why: str = ""
    _reached: int = 0

    def missed(self, reached: int, why: Callable[[], str]) -> None:
        if reached > self._reached:
            self._reached, self.why = reached, why()


@dataclass(frozen=True)
class Bindings:
    """What patterns stand for, during a search. `free`: whether a node may be taken; `nearest` is told what
    does not fit.
    """

    producer: Mapping[Value, Node]
    free: Callable[[Node], bool] = lambda node: True
    values: Mapping[Pattern, Value | None] = field(default_factory=dict)
    nodes: Mapping[Pattern, Node] = field(default_factory=dict)
    nearest: Nearest | None = None

    def with_value(self, pattern: Pattern, value: Value | None) -> Bindings:
        return replace(self, values={**self.values, pattern: value})

    def with_node(self, pattern: Pattern, node: Node, value: Value) -> Bindings:
        return replace(self, values={**self.values, pattern: value}, nodes={**self.nodes, pattern: node})

    def missed(self, why: Callable[[], str]) -> None:
        """Note what does not fit."""
        if self.nearest is not None:
            self.nearest.missed(len(self.values), why)


@dataclass(frozen=True, eq=False, kw_only=True)
class Pattern(ABC):
    """A value of a graph, as a target describes it. Made by op(), value(), constant(), absent()."""

    name: str = ""

    def __or__(self, other: Pattern) -> Pattern:
        return _Alternatives(options=(self, other))

    def optional(self, tail: Callable[[Pattern], Pattern]) -> Pattern:
        """tail(this) where it is there, else this."""
        return tail(self) | self

    def bind(self, value: Value | None, known: Bindings) -> Iterator[Bindings]:
        """Every way in which the pattern stands for a value, the preferred first."""
        if self in known.values:
            if known.values[self] is value:
                yield known
            else:
                known.missed(lambda: f"{_called(value)} is not {_called(known.values[self])}")
            return
        yield from self._bind(value, known)

    @abstractmethod
    def _bind(self, value: Value | None, known: Bindings) -> Iterator[Bindings]: ...

    def kinds(self) -> frozenset[str]:
        """Every operator that is named in the pattern."""
        return frozenset()


@dataclass(frozen=True, eq=False, kw_only=True)
class _Alternatives(Pattern):
    options: tuple[Pattern, ...]

    def _bind(self, value: Value | None, known: Bindings) -> Iterator[Bindings]:
        for option in self.options:
            for found in option.bind(value, known):
                yield found.with_value(self, value)

    def kinds(self) -> frozenset[str]:
        return frozenset().union(*(o.kinds() for o in self.options))


@dataclass(frozen=True, eq=False, kw_only=True)
class _Value(Pattern):
    dtypes: tuple[DType, ...] = ()
    rank: int | None = None
    constant: bool | None = None
    where: Callable[[Value], Answer] | None = None

    def _bind(self, value: Value | None, known: Bindings) -> Iterator[Bindings]:
        why = self._objection(value)
        if why is None:
            yield known.with_value(self, value)
        else:
            known.missed(lambda: f"{_called(value, self.name)} {why}")

    def _objection(self, value: Value | None) -> str | None:
        """Why a value is none of these, None when it is one."""
        if value is None:
            return "is absent"
        if self.dtypes and value.dtype not in self.dtypes:
            return f"is {value.dtype.label}, not {' or '.join(d.label for d in self.dtypes)}"
        if self.rank is not None and value.type.rank != self.rank:
            return f"has {value.type.rank} axes, not {self.rank}"
        if self.constant is not None and value.is_const is not self.constant:
            return "is constant" if value.is_const else "is not constant"
        return None if self.where is None else _refusal(self.where(value))


@dataclass(frozen=True, eq=False, kw_only=True)
class _Absent(Pattern):
    def _bind(self, value: Value | None, known: Bindings) -> Iterator[Bindings]:
        if value is None:
            yield known.with_value(self, None)
        else:
            known.missed(lambda: f"{_called(value)} is there")


@dataclass(frozen=True, eq=False, kw_only=True)
class _Op(Pattern):
    wanted: frozenset[str]
    inputs: tuple[Pattern, ...]
    attributes: Mapping[str, Any]
    output: int
    where: Callable[[Node], Answer] | None

    def _bind(self, value: Value | None, known: Bindings) -> Iterator[Bindings]:
        node = known.producer.get(value) if value is not None else None
        if value is None or node is None or node.kind not in self.wanted:
            made = "no operator's result" if node is None else f"the result of {node.kind} '{node.name}'"
            known.missed(
                lambda: f"{_called(value)} is {made}, not that of {' or '.join(sorted(self.wanted))}"
            )
            return
        why = self._objection(node, value) if known.free(node) else "is taken already"
        if why is not None:
            # bound as well: of attempts that fail at one place, the one whose operator is right is the
            # nearest
            known.with_node(self, node, value).missed(lambda: f"{node.kind} '{node.name}' {why}")
            return
        start = known.with_node(self, node, value)
        orders = [self.inputs]
        if node.kind in COMMUTATIVE and len(node.inputs) == 2 and self.inputs:
            first, second = self.inputs[0], self.inputs[1] if len(self.inputs) > 1 else ANY
            orders = [(first, second), (second, first)]
        for order in orders:
            yield from self._bind_inputs(node, order, start)

    def _objection(self, node: Node, value: Value) -> str | None:
        """Why a node of the right kind does not fit, None when it does."""
        if node.outputs.index(value) != self.output:
            return f"makes '{value.name}' as its result {node.outputs.index(value)}, not {self.output}"
        for name, wanted in self.attributes.items():
            actual = getattr(node.op, name, None)
            if not callable(wanted) and actual != wanted:
                return f"has {name} {actual!r}, not {wanted!r}"
            if callable(wanted) and (why := _refusal(wanted(actual))) is not None:
                return f"has {name} {actual!r}: {why}"
        return None if self.where is None else _refusal(self.where(node))

    def _bind_inputs(
        self, node: Node, patterns: tuple[Pattern, ...], known: Bindings, index: int = 0
    ) -> Iterator[Bindings]:
        if index == len(patterns):
            yield known
            return
        if patterns[index] is ANY:
            yield from self._bind_inputs(node, patterns, known, index + 1)
            return
        for found in patterns[index].bind(node.input(index), known):
            yield from self._bind_inputs(node, patterns, found, index + 1)

    def kinds(self) -> frozenset[str]:
        return self.wanted.union(*(p.kinds() for p in self.inputs))


def _refusal(answer: Answer) -> str | None:
    """A condition's reason, None when it holds."""
    if isinstance(answer, str):
        return answer
    return None if answer else "does not fit"


def _called(value: Value | None, name: str = "") -> str:
    """A value in a message, and what a pattern calls it."""
    return (name or "an operand") if value is None else f"'{value.name}'{f' ({name})' if name else ''}"


ANY: Pattern = _Value()
"""Any value, and not the same one at each place where it is used."""


def op(
    kinds: str | Iterable[str],
    *inputs: Pattern,
    name: str = "",
    output: int = 0,
    where: Callable[[Node], Answer] | None = None,
    **attributes: Any,
) -> Pattern:
    """The result of an operator, by its name in dumps of the graph (`--dump-after prune`); of one of several.

    inputs: patterns of the first inputs; those that are not given are free. attributes: values that must be
    equal, or conditions on them. output: number of the result. where: any other condition on the node. A
    condition returns whether it holds; or a text that says why it does not, which `--explain` shows.
    """
    return _Op(
        name=name,
        wanted=frozenset([kinds] if isinstance(kinds, str) else kinds),
        inputs=inputs,
        attributes=attributes,
        output=output,
        where=where,
    )


def value(
    name: str = "",
    *,
    dtype: DType | Iterable[DType] = (),
    rank: int | None = None,
    constant: bool | None = None,
    where: Callable[[Value], Answer] | None = None,
) -> Pattern:
    """A value, whatever makes it. dtype: one of these element types; constant: known at compile time, or
    not.
    """
    return _Value(
        name=name,
        dtypes=(dtype,) if isinstance(dtype, DType) else tuple(dtype),
        rank=rank,
        constant=constant,
        where=where,
    )


def constant(
    name: str = "",
    *,
    dtype: DType | Iterable[DType] = (),
    rank: int | None = None,
    where: Callable[[Value], Answer] | None = None,
) -> Pattern:
    """A value that is known at compile time."""
    return value(name, dtype=dtype, rank=rank, constant=True, where=where)


def absent() -> Pattern:
    """An optional input that is not there."""
    return _Absent()


def sequence(first: Pattern, *kinds: str | Iterable[str]) -> Pattern:
    """Operators one after the other, each reading the result of the one before it."""
    return reduce(lambda p, k: op(k, p), kinds, first)
