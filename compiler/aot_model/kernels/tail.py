"""Fused tails: what becomes of an accumulator before it is stored.

After a kernel's node follow its single readers as long as they are element-wise at the same shape and
everything else that they read exists by then: bias, activation, residual addition, requantisation. The chain
becomes one expression of the accumulator, and the kernel stores the end of the chain.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from aot_model.c.expr import SUMMAND
from aot_model.c.float_vectors import HEADER as FLOAT_VECTORS
from aot_model.c.statements import CWriter
from aot_model.ir.expr import Cell, Const, Expr, Leaf, const, leaf, walk
from aot_model.ir.graph import Graph, Node
from aot_model.ir.index import flatten, substitute
from aot_model.ir.nibbles import element_text
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.kernels.float32.dialect import VectorDialect
from aot_model.kernels.float32.vector_text import (
    VectorText,
    can_vectorise,
    position_text,
    rounding_of,
    store_rounded,
)

MAX_TAIL_NODES = 24


@dataclass(frozen=True)
class Chain:
    """The nodes after a kernel's node that its tail absorbs, in order. Empty: the accumulator itself is
    stored.
    """

    nodes: tuple[Node, ...]
    result: Value

    @property
    def inner(self) -> list[Value]:
        """Values that never exist in memory."""
        return [v for n in self.nodes for v in n.outputs if v is not self.result]


def find_chain(
    graph: Graph, anchor: Node, uses: dict[Value, list[Node]], made: dict[Value, int], taken: set[Node]
) -> Chain:
    """The chain that a kernel's node may absorb. `made` is the place of each value's producer in the order of
    the graph.
    """
    value = anchor.outputs[0]
    chain: list[Node] = []
    while len(chain) < MAX_TAIL_NODES and value not in graph.outputs:
        readers = uses.get(value, [])
        reader = readers[0] if len(set(readers)) == 1 else None
        if reader is None or reader in taken or not reader.op.by_element(reader.inputs):
            break
        if len(reader.outputs) != 1 or reader.outputs[0].shape != anchor.outputs[0].shape:
            break
        others = [v for v in reader.inputs if v is not None and v is not value]
        if any(made.get(v, -1) > made[anchor.outputs[0]] for v in others):
            break
        chain.append(reader)
        value = reader.outputs[0]
    return Chain(tuple(chain), value)


def behind_kernel(value: Value, producer: Mapping[Value, Node], uses: Mapping[Value, Sequence[Node]]) -> bool:
    """Whether a value is the end of a chain: of a kernel, with element-wise operators behind it that are the
    only readers of what they read.
    """
    for _ in range(MAX_TAIL_NODES):
        node = producer.get(value)
        if node is None or len(set(uses.get(value, ()))) > 1:
            return False
        if node.op.has("lower"):
            return not node.op.stores_itself
        like = [v for v in node.inputs if v is not None and v.data is None and v.shape == value.shape]
        if not node.op.by_element(node.inputs) or not like:
            return False
        value = like[0]
    return False


@dataclass(frozen=True)
class FusedTail:
    """A Tail (see kernels/base.py) over an expression. `coordinates` maps (n, y, x, channel) to the output's
    index.
    """

    element: Expr
    accumulator: Leaf
    index: tuple[Expr, ...]
    position: Expr
    coordinates: Callable[[tuple[Expr, Expr, Expr, Expr]], tuple[Expr, ...]]
    names: dict[Value, str]
    headers: set[str]
    dialect: VectorDialect | None = None
    """The dialect in which vectors of channels are stored; None: scalars only."""

    @staticmethod
    def of(
        element: Expr,
        accumulator: Expr,
        index: tuple[Expr, ...],
        position: Expr,
        coordinates: Callable[[tuple[Expr, Expr, Expr, Expr]], tuple[Expr, ...]],
    ) -> FusedTail:
        """The tail of an expression with loads by index; its other inputs are named tail0, tail1, …"""
        assert isinstance(accumulator, Leaf)
        element = flatten(element)
        reads = dict.fromkeys(n.value for n in walk(element) if isinstance(n, Cell))
        names = {v: f"tail{k}" for k, v in enumerate(reads)}
        return FusedTail(element, accumulator, index, position, coordinates, names, set())

    def with_dialect(self, dialect: VectorDialect) -> FusedTail:
        """The tail with vector stores, where the dialect can compute it."""
        rounding = rounding_of(self.element) if dialect.quantises else None
        real = rounding.real if rounding else self.element
        takes = (
            dialect.lanes > 1
            and real.dtype is DType.FLOAT32
            and can_vectorise(real, self.index, self.accumulator, dialect)
        )
        return replace(self, dialect=dialect if takes else None)

    @property
    def vector(self) -> bool:
        return self.dialect is not None

    @property
    def is_identity(self) -> bool:
        """Whether the accumulator is stored as it is."""
        return self.element is self.accumulator

    def reads_in_place(self, value: Value) -> bool:
        """Whether every read of a value is at the position of the store."""
        cells = [n for n in walk(self.element) if isinstance(n, Cell) and n.value is value]
        return all(n.position is self.position for n in cells)

    def mapping(self, acc: str, index: tuple[str, str, str, str]) -> dict[Expr, Expr]:
        """The tail's indices and accumulator to the kernel's C texts."""
        a = self.accumulator
        return {**self.places(leaves(index)), a: leaf(_atom(acc), a.dtype, a.low, a.high)}

    def places(self, index: tuple[Expr, Expr, Expr, Expr]) -> dict[Expr, Expr]:
        """The tail's indices to those of the kernel."""
        at = zip(self.index, self.coordinates(index), strict=True)
        return {i: to for i, to in at if not isinstance(i, Const)}  # not every other 0

    def place(self, index: tuple[str, str, str, str]) -> str:
        """C of the address of an element of the result."""
        to = position_text(substitute(self.position, self.mapping("0", index)), SUMMAND)
        return "y" if to == "0" else f"y + {to}"

    def store(self, acc: str, index: tuple[str, str, str, str], lanes: int) -> str:
        """C statements that finish one accumulator and store it; see kernels/base.py."""
        mapping = self.mapping(acc, index)
        position = substitute(self.position, mapping)
        if lanes != 1:
            assert self.dialect is not None, f"not a tail of {lanes} lanes"
            dialect = self.dialect.some(lanes)
            self.headers.update(dialect.includes)
            self.headers.add("aot_model/scalar.h")
            y = self.place(index)
            writer_of = VectorText(dialect, self.names, self.index[-1], mapping)
            rounding = rounding_of(self.element) if dialect.quantises else None
            if rounding:
                self.headers.add(FLOAT_VECTORS)
                real = writer_of.text(rounding.real)
                return store_rounded(y, rounding, real, self.element.dtype, dialect.used)
            return dialect.store(y, writer_of.text(self.element))
        writer = CWriter(lambda c, text: element_text(c, self.names[c.value], text, self.headers), indent=0)
        (text,) = writer.compute(substitute(self.element, mapping))
        if self.is_identity and self.accumulator.dtype in (DType.INT8, DType.UINT8):
            text = f"({self.accumulator.dtype.c_type}){text}"  # kernels hold it as an int32_t
        writer.line(f"y[{writer.text(position)}] = {text};")
        self.headers.update(writer.headers)
        body = "\n".join(writer.lines)
        return f"{{\n{body}\n}}" if len(writer.lines) > 1 else body


def _atom(text: str) -> str:
    return text if re.fullmatch(r"[A-Za-z_0-9.]+(?:\[[^\[\]]*\])*", text) else f"({text})"


def leaves(index: tuple[str, str, str, str]) -> tuple[Expr, Expr, Expr, Expr]:
    """C of an index as expressions."""

    def one(text: str) -> Expr:
        return const(int(text)) if re.fullmatch(r"-?\d+", text) else leaf(_atom(text), DType.INT32, 0, None)

    n, y, x, c = index
    return one(n), one(y), one(x), one(c)


def accumulator_leaf(dtype: DType, low: int | None = None, high: int | None = None) -> Expr:
    """The placeholder of an accumulator in a tail; integer accumulators have a proven range."""
    return leaf("acc", dtype, low, high)
