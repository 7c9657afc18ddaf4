"""lower(graph, target) -> Program: decides what is stored, then walks the nodes in order and emits calls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from aot_model.c.names import printable, snake_case
from aot_model.errors import CompileError, Problem
from aot_model.ir.admissible import ANYTHING, observed, wanted
from aot_model.ir.expr import Cell, Const, Expr, Index, const, load
from aot_model.ir.graph import Graph, Node, read_values
from aot_model.ir.index import add, dense_position, flatten, index_variables, mul, sub
from aot_model.ir.nibbles import is_packed, packed
from aot_model.ir.operator import OperatorError
from aot_model.ir.program import Buffer, Call, Generic, Program, Role, Step, Wish
from aot_model.ir.strided import Strided, dense, strided
from aot_model.ir.types import DType, TensorType, strides_of
from aot_model.ir.values import Value
from aot_model.kernels.base import Packed
from aot_model.kernels.float32.dialects import DIALECTS
from aot_model.kernels.site import Site
from aot_model.kernels.tail import Chain, find_chain
from aot_model.kernels.target import Kernel, Target
from aot_model.lowering.generic import reasons
from aot_model.lowering.held import held_tensors
from aot_model.lowering.loops import LoopNest, loop_nest
from aot_model.lowering.storage import stored_values
from aot_model.lowering.sums import Sums
from aot_model.ops.movement import Concat
from aot_model.ops.registry import normal_axis, required
from aot_model.ops.views import Reshaping

PIECE_ALIGNMENT = 4
"""Bytes: pieces of a concatenation and of a slice that begin elsewhere are copied, because kernels read
words.
"""


def lower(graph: Graph, target: Target, rooms: Mapping[Node, int] | None = None) -> Program:
    """The program of a graph for a target. Buffers have no addresses yet.

    rooms: bytes of scratch memory that kernels may take beyond what they need (lowering/room.py).
    """
    lowering = Lowering(graph, target, rooms=rooms)
    lowering.run()
    lowering.check_constants()
    states = [lowering.buffers[v] for v in lowering.states]
    inputs = [lowering.buffers[v] for v in graph.inputs]
    held = held_tensors(graph, lowering.buffers)
    return Program(
        graph.name, inputs, lowering.outputs, lowering.steps, states, held=held, wishes=lowering.wishes
    )


class Lowering:
    """The state of one lowering: buffers of stored values and the steps so far."""

    def __init__(
        self,
        graph: Graph,
        target: Target,
        outer: Lowering | None = None,
        rooms: Mapping[Node, int] | None = None,
    ) -> None:
        self.graph = graph
        self.target = target
        self.outer = outer
        self.steps: list[Step] = []
        self.buffers: dict[Value, Buffer] = {}
        self.outputs: list[Buffer] = []
        self.states: list[Value] = []
        self._packed: dict[tuple[str, bytes, int, bool], Buffer] = outer._packed if outer else {}
        self._elements: dict[tuple[Value, Index], Expr] = {}
        """What several of one loop read: loops within it are the same ones."""
        self._values: dict[Value, Buffer] = outer._values if outer else {}
        self._rooms: Mapping[Node, int] = outer._rooms if outer else rooms or {}
        self.wishes: dict[Node, Wish] = outer.wishes if outer else {}
        self._producer = graph.producers()
        self._made = {v: k for k, n in enumerate(graph.nodes) for v in n.outputs}
        self.read = {v for n in graph.nodes for v in read_values(n)} | set(graph.outputs)
        """Values that something reads; kernels do not compute the others."""
        self.kernels: dict[Node, Kernel] = {}
        self._chains = self._find_chains()
        self._sums = Sums(graph, self.kernels, DIALECTS[target.dialect()])
        absorbed = {v for n, c in self._chains.items() for v in (*n.outputs, *c.inner) if v is not c.result}
        self.stored = stored_values(graph, self._memory_reads, absorbed)
        for chain in self._chains.values():
            self.stored.add(chain.result)

    # --- decisions ------------------------------------------------------------------------------------------

    def is_kernel(self, node: Node) -> bool:
        """Whether a node becomes calls of its own rather than an expression."""
        return node in self.kernels or (node.op.has("lower") and not node.op.has("express"))

    def _find_chains(self) -> dict[Node, Chain]:
        uses = self.graph.uses()
        taken: set[Node] = set()
        chains: dict[Node, Chain] = {}
        for node in self.graph.nodes:
            if not node.op.has("lower") or node.op.stores_itself:
                continue
            chain = find_chain(self.graph, node, uses, self._made, taken)
            kernel = self.target.kernel_for(node, chain)
            if kernel is not None:
                self.kernels[node] = kernel
            if self.is_kernel(node):
                taken.update(chain.nodes)
                chains[node] = chain
        return chains

    def _memory_reads(self, node: Node) -> list[Value] | None:
        """What the call of a node reads from memory; None where the node is no call."""
        if not self.is_kernel(node):
            return None
        window = {k: self.window(node, k) for k in range(len(node.inputs))}
        direct = [w.source for w in window.values() if w is not None]
        inner = [v for v in read_values(node) if v not in node.inputs]
        return [*direct, *inner]

    def window(self, node: Node, index: int) -> Strided | None:
        """An input of a kernel as it lies in memory; None for an absent or constant one."""
        value = node.input(index)
        if value is None or value.is_const:
            return None
        found = strided(value, self._producer)
        if found is not None and node.op.reads_strided(node.inputs, index, found.strides):
            return found
        return dense(value)

    # --- elements -------------------------------------------------------------------------------------------

    def at(self, value: Value, index: Index) -> Expr:
        """The element of a value: a literal, a load, or the expression of its producer."""
        if not value.type.elements:
            # there is none; an operator that reads one guards it with a condition or a clamp
            return const(0, value.dtype)
        if value.data is not None:
            if value.data.size == 1:
                return const(value.data.item(), value.dtype)
            return load(value, index)
        node = self._producer.get(value)
        if value in self.stored or node is None:
            return load(value, index)
        key = value, index
        if key not in self._elements:
            self._elements[key] = node.op.express(self.at, node.inputs, index, node.outputs.index(value))
        return self._elements[key]

    def element_of(self, chain: Chain, index: Index, start: Value, accumulator: Expr) -> Expr:
        """The element of a chain's result, given that of its start at the same index."""
        known: dict[Value, Expr] = {start: accumulator}

        def at(value: Value, where: Index) -> Expr:
            return known[value] if value in known else self.at(value, where)

        for node in chain.nodes:
            known[node.outputs[0]] = node.op.express(at, node.inputs, index, 0)
        return self._sums.rounded(known[chain.result], start)

    # --- buffers --------------------------------------------------------------------------------------------

    def buffer(self, value: Value) -> Buffer:
        """The buffer of a value in memory."""
        if value.data is not None:
            return self._constant(value, value.data, value.dtype.alignment)
        if value not in self.buffers:
            if self.outer is not None and value not in self._producer:
                return self.outer.buffer(value)
            if value.state:
                self.states.append(value)
                self.buffers[value] = Buffer(
                    value.name, value.type, Role.STATE, value.initial, quantisation=value.quantisation
                )
            else:
                self.buffers[value] = Buffer(
                    value.name, value.type, Role.WORKSPACE, quantisation=value.quantisation
                )
        return self.buffers[value]

    def read_buffer(self, value: Value) -> Buffer:
        """The buffer of a value for a function that takes packed constants (ir/nibbles.py)."""
        if value.data is not None and is_packed(value):
            return self._constant(value, packed(value.data), 1)
        return self.buffer(value)

    def _constant(self, value: Value, data: np.ndarray, align: int) -> Buffer:
        """The buffer of a constant value. What the code relies on is known when all of it has been
        written.
        """
        found = self.constant_buffer(value.name, Packed(value.name, data, align, ANYTHING))
        self._values[value] = found
        return found

    def constant_buffer(self, name: str, packed: Packed) -> Buffer:
        """A constant in flash; equal data is there once, and what one reader or the other wants of it
        holds.
        """
        data, align = packed.data, packed.align
        key = (str(data.dtype), data.tobytes(), align, packed.code)
        if key not in self._packed:
            self._packed[key] = Buffer(
                name,
                TensorType(DType.of(data.dtype), data.shape),
                Role.CONSTANT,
                np.ascontiguousarray(data),
                align,
                code=packed.code,
                layout=packed.layout,
            )
        found = self._packed[key]
        found.admissible += observed(data) if packed.admissible is None else packed.admissible
        return found

    def check_constants(self) -> None:
        """Have the buffers of constant values say what the code relies on."""
        for value, buffer in self._values.items():
            buffer.admissible += wanted(value)

    def add(self, step: Step) -> None:
        self.steps.append(step)

    def room(self, node: Node) -> int:
        """Bytes of scratch memory that the call of a node may take."""
        return self._rooms.get(node, 0)

    def wish(self, node: Node, wish: Wish) -> None:
        self.wishes[node] = wish

    # --- the walk -------------------------------------------------------------------------------------------

    def lower_body(
        self, graph: Graph, inputs: Mapping[Value, Buffer], outputs: Sequence[Buffer], skip: int | None
    ) -> list[Step]:
        """The steps of a body of control flow, between given buffers."""
        wanted = [(v, b) for k, (v, b) in enumerate(zip(graph.outputs, outputs, strict=True)) if k != skip]
        part = Graph(graph.name, graph.inputs, [v for v, _ in wanted], graph.nodes)
        # what only the output that is not wanted needs may read inputs that have no memory of their own
        part.prune()
        inner = Lowering(part, self.target, self)
        inner.run(inputs, [b for _, b in wanted])
        self.states += inner.states
        return inner.steps

    def run(
        self, inputs: Mapping[Value, Buffer] | None = None, outputs: Sequence[Buffer] | None = None
    ) -> None:
        """Lower the graph; a body of control flow gets its buffers from around it."""
        for value in self.graph.inputs:
            given = inputs[value] if inputs is not None else None
            self.buffers[value] = given or Buffer(
                value.name, value.type, Role.INPUT, quantisation=value.quantisation
            )
        self._place_outputs(outputs)
        self._place_concatenations()
        tails = {n for c in self._chains.values() for n in c.nodes}
        problems: list[Problem] = []
        for node in self.graph.nodes:
            if node in tails:
                continue
            try:
                self._lower_node(node)
            except OperatorError as error:
                problems.append(
                    Problem(
                        error.code, str(error), f"node '{printable(node.name)}' ({node.kind})", error.hint
                    )
                )
        if problems:
            raise CompileError(problems)
        for value, buffer in self._copies:
            self._copy(value, buffer)

    def _lower_node(self, node: Node) -> None:
        """The calls of a node, and of the chain that is fused into it. OperatorError when its form is not
        supported.
        """
        if node in self._chains or self.is_kernel(node):
            node.op.lower(Site(self, node, self._chains.get(node) or Chain((), node.outputs[0])))
            return
        for number, out in enumerate(node.outputs):
            if out in self.stored:
                self._store(node, number, out)

    def _place_outputs(self, given: Sequence[Buffer] | None) -> None:
        """Output buffers. A value that is an output twice, an input or a constant is copied at the end."""
        self._copies: list[tuple[Value, Buffer]] = []
        for number, value in enumerate(self.graph.outputs):
            buffer = (
                given[number]
                if given is not None
                else Buffer(value.name, value.type, Role.OUTPUT, quantisation=value.quantisation)
            )
            self.outputs.append(buffer)
            produced = value in self._producer and value not in self.buffers
            if not produced:
                self._copies.append((value, buffer))
                continue
            self.buffers[value] = buffer
            self._forward(value, buffer)

    def _forward(self, value: Value, buffer: Buffer) -> None:
        """What `buffer`, the place of `value`, is made of is computed there: the source of a view, the pieces
        of a concatenation that lie one behind the other."""
        node = self._producer[value]
        if isinstance(node.op, Reshaping):
            self._claim(required(node.inputs), buffer, 0)
        elif isinstance(node.op, Concat):
            axis = normal_axis(node.op.axis, value.type.rank)
            offset = 0
            for k in range(len(node.inputs)):
                piece = required(node.inputs, k)
                if all(d == 1 for d in value.shape[:axis]) and offset % PIECE_ALIGNMENT == 0:
                    self._claim(piece, buffer, offset)
                offset += piece.type.nbytes

    def _claim(self, value: Value, parent: Buffer, offset: int) -> None:
        """Let a stored value that has no place yet be computed at an offset of a buffer."""
        if value not in self.stored or value in self.buffers or value not in self._producer:
            return
        self.buffers[value] = Buffer(
            value.name, value.type, Role.WORKSPACE, view_of=(parent, offset), quantisation=value.quantisation
        )
        self._forward(value, self.buffers[value])

    def _place_concatenations(self) -> None:
        for node in reversed(self.graph.nodes):
            result = node.outputs[0]
            if isinstance(node.op, Concat) and result in self.stored and result not in self.buffers:
                self._forward(result, self.buffer(result))

    def _store(self, node: Node, number: int, out: Value) -> None:
        """Bring an expression's value into memory: as a view where its elements are there already, else by a
        loop.
        """
        if isinstance(node.op, Concat):
            return self._store_concat(node, out)
        if out.type.elements == 0:
            self.buffer(out)
            return None
        self._elements.clear()
        index = index_variables(out.shape)
        element = self._sums.rounded(node.op.express(self.at, node.inputs, index, number))
        if node.op.movement and out not in self.buffers and self._view(node, out, element, index):
            return None
        if isinstance(node.op, Reshaping) and self._in_place(required(node.inputs), out, 0):
            return None
        self._loops(node, snake_case(node.kind), out, (index, dense_position(index, out.shape), element))
        return None

    def _view(self, node: Node, out: Value, element: Expr, index: Index) -> bool:
        """Make `out` a window of a stored value when it is a contiguous piece of it."""
        piece = flatten(element)
        if not isinstance(piece, Cell) or piece.value.is_const:
            return False
        offset = sub(piece.position, dense_position(index, out.shape))
        if not isinstance(offset, Const):
            return False
        parent, begin = self.buffer(piece.value), int(offset.value) * out.dtype.size
        if (parent.root()[1] + begin) % PIECE_ALIGNMENT:
            return False
        self.buffers[out] = Buffer(out.name, out.type, Role.WORKSPACE, view_of=(parent, begin))
        return True

    def _store_concat(self, node: Node, out: Value) -> None:
        """One loop for each piece, or none where the piece was computed in its place."""
        axis = normal_axis(node.op.axis, out.type.rank)  # type: ignore[attr-defined]
        strides = strides_of(out.shape)
        begin = 0
        for value in node.inputs:
            assert value is not None
            if value.type.elements and not self._in_place(value, out, begin * strides[axis] * out.dtype.size):
                index = index_variables(value.shape)
                position: Expr = const(begin * strides[axis])
                for i, stride in zip(index, strides, strict=True):
                    position = add(position, mul(i, stride))
                self._elements.clear()
                element = self._sums.rounded(self.at(value, index))
                self._loops(node, "concat", out, (index, position, element))
            begin += value.shape[axis]

    def _in_place(self, value: Value, out: Value, offset: int) -> bool:
        """Whether a piece of a concatenation, or what a view is of, was computed where it belongs."""
        if value not in self.buffers:
            return False
        (root, own), (target, base) = self.buffers[value].root(), self.buffer(out).root()
        return root is target and own == base + offset

    def _loops(self, node: Node, name: str, out: Value, what: tuple[Index, Expr, Expr]) -> None:
        """Store elements. what: their index, where they go, what they are."""
        dialect, turns = self.target.dialect(), self.target.turns()
        self._call(node, loop_nest(name, out, *what, dialect=dialect, turns=turns), out)

    def _call(self, node: Node, nest: LoopNest, out: Value) -> None:
        arguments = (*(self.read_buffer(v) for v in nest.reads), self.buffer(out))
        shapes = f"{', '.join(str(v.type) for v in nest.reads)} -> {out.type}"
        why = reasons(node, self.target, self._producer.get, self.stored, self._chain) if nest.macs else ""
        self.add(
            Call(
                nest.function,
                arguments,
                nest.overlaps,
                node.name,
                node.kind,
                nest.macs,
                shapes,
                generic=Generic(nest.operations, why),
            )
        )

    def _chain(self, node: Node) -> Chain:
        """The chain that a kernel of the node would have had."""
        return find_chain(self.graph, node, self.graph.uses(), self._made, set(self.kernels))

    def _copy(self, value: Value, buffer: Buffer) -> None:
        if not value.type.elements:
            return
        index = index_variables(value.shape)
        nest = loop_nest("copy", value, index, dense_position(index, value.shape), load(value, index))
        buffers = (*(self.read_buffer(v) for v in nest.reads), buffer)
        self.add(Call(nest.function, buffers, (), value.name, "Identity"))
