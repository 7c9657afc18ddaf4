"""Patterns of sub-graphs: what a target can take over.

    conv = op("Convolution", value("x"), constant("weights"), name="conv", group=1)
    biased = conv.optional(lambda p: op("Add", p, constant("bias")))
    pattern = op("Requantise", biased, constant("multiplier"), constant("shift"), name="requantise") | op("Relu", biased)

A pattern stands for a value. `a | b` takes the first that fits; a pattern used at two places must be the same value at
both (residuals); operands of commutative operators are tried in both orders. Names are how a target finds its nodes
and values again in a Match.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

from aot_model.ir.graph import Node
from aot_model.ir.types import DType
from aot_model.ir.values import Value

COMMUTATIVE = frozenset("Add Mul Max Min And Or Xor Equal".split())


@dataclass(frozen=True)
class Bindings:
    """What patterns stand for, during a search. `free`: whether a node may be taken."""

    producer: Mapping[Value, Node]
    free: Callable[[Node], bool]
    values: Mapping[Pattern, Value | None] = field(default_factory=dict)
    nodes: Mapping[Pattern, Node] = field(default_factory=dict)

    def with_value(self, pattern: Pattern, value: Value | None) -> Bindings:
        return Bindings(self.producer, self.free, {**self.values, pattern: value}, self.nodes)

    def with_node(self, pattern: Pattern, node: Node, value: Value) -> Bindings:
        return Bindings(self.producer, self.free, {**self.values, pattern: value}, {**self.nodes, pattern: node})


@dataclass(frozen=True, eq=False, kw_only=True)
class Pattern:
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
            return
        yield from self._bind(value, known)

    def _bind(self, value: Value | None, known: Bindings) -> Iterator[Bindings]:
        raise NotImplementedError

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
    where: Callable[[Value], bool] | None = None

    def _bind(self, value: Value | None, known: Bindings) -> Iterator[Bindings]:
        if value is None or (self.dtypes and value.dtype not in self.dtypes) or (self.rank is not None and value.type.rank != self.rank):
            return
        if (self.constant is not None and value.is_const is not self.constant) or (self.where is not None and not self.where(value)):
            return
        yield known.with_value(self, value)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Absent(Pattern):
    def _bind(self, value: Value | None, known: Bindings) -> Iterator[Bindings]:
        if value is None:
            yield known.with_value(self, None)


@dataclass(frozen=True, eq=False, kw_only=True)
class _Op(Pattern):
    wanted: frozenset[str]
    inputs: tuple[Pattern, ...]
    attributes: Mapping[str, Any]
    output: int
    where: Callable[[Node], bool] | None

    def _bind(self, value: Value | None, known: Bindings) -> Iterator[Bindings]:
        node = known.producer.get(value) if value is not None else None
        if value is None or node is None or not known.free(node) or not self._fits(node, value):
            return
        start = known.with_node(self, node, value)
        orders = [self.inputs]
        if node.kind in COMMUTATIVE and len(node.inputs) == 2 and self.inputs:
            first, second = self.inputs[0], self.inputs[1] if len(self.inputs) > 1 else ANY
            orders = [(first, second), (second, first)]
        for order in orders:
            yield from self._bind_inputs(node, order, start)

    def _fits(self, node: Node, value: Value) -> bool:
        if node.kind not in self.wanted or node.outputs.index(value) != self.output:
            return False
        for name, wanted in self.attributes.items():
            actual = getattr(node.op, name, None)
            if not (wanted(actual) if callable(wanted) else actual == wanted):
                return False
        return self.where is None or self.where(node)

    def _bind_inputs(self, node: Node, patterns: tuple[Pattern, ...], known: Bindings, index: int = 0) -> Iterator[Bindings]:
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


ANY: Pattern = _Value()
"""Any value, and not the same one at each place where it is used."""


def op(kinds: str | Iterable[str], *inputs: Pattern, name: str = "", output: int = 0,
       where: Callable[[Node], bool] | None = None, **attributes: Any) -> Pattern:  # fmt: skip
    """The result of an operator, by its name in dumps of the graph (`--dump-after prune`); of one of several.

    inputs: patterns of the first inputs; those that are not given are free. attributes: values that must be equal, or
    predicates on them. output: number of the result. where: any other condition on the node.
    """
    return _Op(name=name, wanted=frozenset([kinds] if isinstance(kinds, str) else kinds), inputs=inputs, attributes=attributes, output=output, where=where)


def value(name: str = "", *, dtype: DType | Iterable[DType] = (), rank: int | None = None, constant: bool | None = None,
          where: Callable[[Value], bool] | None = None) -> Pattern:  # fmt: skip
    """A value, whatever makes it. dtype: one of these element types; constant: known at compile time, or not."""
    return _Value(name=name, dtypes=(dtype,) if isinstance(dtype, DType) else tuple(dtype), rank=rank, constant=constant, where=where)


def constant(name: str = "", *, dtype: DType | Iterable[DType] = (), rank: int | None = None, where: Callable[[Value], bool] | None = None) -> Pattern:
    """A value that is known at compile time."""
    return value(name, dtype=dtype, rank=rank, constant=True, where=where)


def absent() -> Pattern:
    """An optional input that is not there."""
    return _Absent()


def sequence(first: Pattern, *kinds: str | Iterable[str]) -> Pattern:
    """Operators one after the other, each reading the result of the one before it."""
    return reduce(lambda p, k: op(k, p), kinds, first)
