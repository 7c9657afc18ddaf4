"""The place where a kernel is put: one node, its fused tail, the target, and the program under
construction.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from aot_model.c.function import alike
from aot_model.ir.expr import Expr, Index
from aot_model.ir.graph import Graph, Node
from aot_model.ir.index import dense_position, index_variables
from aot_model.ir.nibbles import read_parameter
from aot_model.ir.program import Access, Buffer, Call, Function, Overlap, Param, Role, Step, Wish
from aot_model.ir.strided import Strided, dense
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.kernels.arguments import Argument, bound, scratch_buffer, shapes_of
from aot_model.kernels.base import KernelCode, Packed
from aot_model.kernels.tail import Chain, FusedTail, accumulator_leaf
from aot_model.kernels.target import Kernel, Target

Coordinates = tuple[Expr, Expr, Expr, Expr]


class Lowering(Protocol):
    """The program under construction, as a kernel sees it: lowering/lower.py."""

    target: Target
    graph: Graph
    kernels: dict[Node, Kernel]
    read: set[Value]

    def window(self, node: Node, index: int) -> Strided | None: ...

    def element_of(self, chain: Chain, index: Index, start: Value, accumulator: Expr) -> Expr: ...

    def buffer(self, value: Value) -> Buffer: ...

    def read_buffer(self, value: Value) -> Buffer: ...

    def constant_buffer(self, name: str, packed: Packed) -> Buffer: ...

    def add(self, step: Step) -> None: ...

    def room(self, node: Node) -> int: ...

    def wish(self, node: Node, wish: Wish) -> None: ...

    def lower_body(
        self, graph: Graph, inputs: Mapping[Value, Buffer], outputs: Sequence[Buffer], skip: int | None
    ) -> list[Step]: ...


@dataclass(frozen=True)
class Site:
    """What `Operator.lower` and the kernels of a target see."""

    lowering: Lowering
    node: Node
    chain: Chain

    @property
    def target(self) -> Target:
        return self.lowering.target

    def emit_kernel(self) -> None:
        """Let the target's kernel for the node add its calls."""
        self.lowering.kernels[self.node].emit(self)

    @property
    def room(self) -> int:
        """Bytes of scratch memory that the node's call may take: 0 until the memory of the whole program has
        been planned without, then what was left at this step (lowering/room.py).
        """
        return self.lowering.room(self.node)

    def input(self, index: int) -> Value:
        """An input of the node that must be there; it is in memory or constant."""
        value = self.node.input(index)
        assert value is not None
        return value

    def window(self, index: int) -> Strided:
        """An input as it lies in memory; a constant that was too much to fold, too."""
        return self.lowering.window(self.node, index) or dense(self.input(index))

    @property
    def result(self) -> Value:
        """The value that the kernel stores: the end of the chain."""
        return self.chain.result

    def bias(self) -> np.ndarray | None:
        """A constant for each channel that the chain adds first: the kernel starts its accumulators with
        it.
        """
        out = self.node.outputs[0]
        first = self.chain.nodes[0] if self.chain.nodes else None
        if first is None or first.kind != "Add" or not out.shape:
            return None
        value = first.inputs[1] if first.inputs[0] is out else first.inputs[0]
        channels = out.shape[-1]
        if value is None or value.data is None or value.data.size not in (1, channels):
            return None
        if value.data.size > 1 and value.shape[-1] != channels:
            return None
        per_channel: np.ndarray = np.broadcast_to(value.data.reshape(-1), (channels,)).copy()
        return per_channel

    def tail(
        self,
        coordinates: Callable[[Coordinates], tuple[Expr, ...]],
        *,
        after: int = 0,
        low: int | None = None,
        high: int | None = None,
    ) -> FusedTail:
        """The fused tail over the accumulator, with its range if it is an integer.

        after: nodes of the chain that the kernel does itself (1 when it starts with the bias).
        """
        start = self.chain.nodes[after - 1].outputs[0] if after else self.node.outputs[0]
        index = index_variables(start.shape)
        accumulator = accumulator_leaf(start.dtype, low, high)
        rest = Chain(self.chain.nodes[after:], self.result)
        element = self.lowering.element_of(rest, index, start, accumulator)
        return FusedTail.of(
            element, accumulator, index, dense_position(index, self.result.shape), coordinates
        )

    def emit(
        self,
        name: str,
        code: KernelCode,
        tail: FusedTail | None,
        shapes: str,
        macs: int,
        inputs: tuple[Strided, ...] | None = None,
        wish: int | None = None,
        names: Sequence[str] = (),
    ) -> None:
        """Add a call of a kernel with parameters: x (x0, x1 …, or `names`), tail inputs, constants, scratch,
        y.

        wish: bytes of scratch memory from which on another kernel would be faster (`room`).
        """
        windows = (self.window(0),) if inputs is None else inputs
        values = tuple(w.source for w in windows)
        params: list[Param] = []
        arguments: list[Buffer] = []
        for k, value in enumerate(values):
            given = names[k] if names else "x" if len(values) == 1 else f"x{k}"
            params.append(Param(given, value.dtype, Access.READ))
            arguments.append(self._place(windows[k]))
        if tail is not None:
            for value, label in tail.names.items():
                params.append(read_parameter(label, value))
                arguments.append(self.lowering.read_buffer(value))
        for packed in code.constants:
            dtype = DType.of(packed.data.dtype)
            params.append(Param(packed.name, dtype, Access.READ))
            arguments.append(self.lowering.constant_buffer(f"{self.node.name}_{packed.name}", packed))
        for piece in code.scratch:
            params.append(Param(piece.name, DType.UINT8, Access.SCRATCH, piece.ctype))
            arguments.append(scratch_buffer(f"{self.node.name}_{piece.name}", piece))
        out = self.result
        params.append(Param("y", out.dtype, Access.WRITE))
        arguments.append(self.lowering.buffer(out))
        headers = frozenset(h.strip("<>") for h in code.includes) | (
            frozenset(tail.headers) if tail else frozenset()
        )
        function = Function(name, tuple(params), code.body, headers, code.helpers, code.note)
        overlaps: tuple[Overlap, ...] = ()
        width = values[0].dtype.size
        of_x, of_y = code.sizes or (width, width)
        fits = width == of_x and out.dtype.size <= of_y and alike(values[0].dtype.c_type, out.dtype.c_type)
        if code.slack is not None and fits:
            overlaps = (
                Overlap(0, len(params) - 1, code.slack, code.slack_step),
                *self._tail_overlaps(tail, values, len(params) - 1, code.residual),
            )
        elif tail is not None:
            overlaps = tuple(self._tail_overlaps(tail, values, len(params) - 1))
        call = Call(function, tuple(arguments), overlaps, self.node.name, self.node.kind, macs, shapes)
        self.lowering.add(call)
        if wish is not None:
            self.lowering.wish(self.node, Wish(call, wish))

    def buffer(self, value: Value) -> Buffer:
        """The memory of a value."""
        return self.lowering.buffer(value)

    def add(self, step: Step) -> None:
        """Add a step that the kernel made itself."""
        self.lowering.add(step)

    def body(
        self, graph: Graph, inputs: Mapping[Value, Buffer], outputs: Sequence[Buffer], skip: int | None = None
    ) -> list[Step]:
        """The steps of a body of control flow that reads and writes the given buffers; output number `skip`
        is not wanted.
        """
        return self.lowering.lower_body(graph, inputs, outputs, skip)

    def wanted(self, output: int) -> Value | None:
        """Output number `output` when something reads it, else None."""
        values = self.node.outputs
        return values[output] if output < len(values) and values[output] in self.lowering.read else None

    def call(
        self,
        name: str,
        body: str,
        arguments: Sequence[Argument],
        *,
        includes: Iterable[str] = (),
        helpers: tuple[str, ...] = (),
        overlaps: tuple[Overlap, ...] = (),
        macs: int = 0,
        note: str = "",
        fails: bool = False,
    ) -> None:
        """Add a call of a function without a tail: any number of inputs and outputs. fails: the body returns
        a status.
        """
        params, buffers = bound(arguments, self._memory, self.lowering.constant_buffer, self.node.name)
        function = Function(name, params, body, frozenset(includes), helpers, note, fails=fails)
        self.lowering.add(
            Call(function, buffers, overlaps, self.node.name, self.node.kind, macs, shapes_of(arguments))
        )

    def _memory(self, memory: Value | Strided) -> Buffer:
        return self.lowering.buffer(memory) if isinstance(memory, Value) else self._place(memory)

    def _place(self, window: Strided) -> Buffer:
        """The buffer of a window: that of its source, from the offset on."""
        buffer = self.lowering.buffer(window.source)
        if window.offset == 0:
            return buffer
        t = window.source.type
        left, begin = TensorType(t.dtype, (t.elements - window.offset,)), window.offset * t.dtype.size
        return Buffer(
            f"{buffer.name}_from_{window.offset}",
            left,
            Role.WORKSPACE,
            align=min(buffer.align, begin & -begin),
            view_of=(buffer, begin),
        )

    def _tail_overlaps(
        self, tail: FusedTail | None, inputs: tuple[Value, ...], out: int, residual: int | None = None
    ) -> list[Overlap]:
        """A residual that is read just where the result is stored may be overwritten by it, in place only:
        kernels store blocks of rows and channels, not elements in the order of memory. Where it is the input
        as well, which the result cannot take the place of, the result may begin as far before it as a block
        is large.
        """
        if tail is None:
            return []
        result = []
        for k, value in enumerate(tail.names):
            same = (
                value.type.elements == self.result.type.elements
                and value.dtype.size == self.result.dtype.size
                and alike(value.dtype.c_type, self.result.dtype.c_type)
            )
            if same and tail.reads_in_place(value):
                exact = residual is None or value not in inputs
                result.append(
                    Overlap(
                        len(inputs) + k,
                        out,
                        0 if exact else residual or 0,
                        max(value.type.nbytes, 2) if exact else 1,
                    )
                )
        return result
