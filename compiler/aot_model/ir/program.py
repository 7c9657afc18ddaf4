"""The Program: C functions, the buffers that they read and write, and the order of the calls.

    Program ── buffers: Buffer       named memory: input, output, constant, workspace or state
       ├────── functions: Function   C text with pointer parameters; equal functions are shared by layers
       └────── body: Step            Call(function, arguments) in order, with bounded Loop and Branch around
                                     them

The memory planner sees buffers and steps only; the emitter turns the Program and its MemoryPlan into files.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from aot_model.ir.admissible import ANYTHING, Ranges
from aot_model.ir.graph import Node
from aot_model.ir.types import DType, Quantisation, TensorType
from aot_model.ir.values import ModelTensor


class Role(Enum):
    INPUT = "input"
    OUTPUT = "output"
    CONSTANT = "constant"
    WORKSPACE = "workspace"
    STATE = "state"


@dataclass(eq=False)
class Buffer:
    """A piece of memory. `view_of` = (parent, byte offset) makes it a window of another buffer.

    data: what a constant is, and what a state is before the first run (zeros when None).
    """

    name: str
    type: TensorType
    role: Role
    data: np.ndarray | None = None
    align: int = 4
    view_of: tuple[Buffer, int] | None = None
    quantisation: Quantisation | None = None
    admissible: Ranges = ANYTHING
    """Of a constant: what its elements must be where it is read from a file of parameters."""
    code: bool = False
    """Of a constant: whether it is part of the program, and never in a file of parameters."""
    layout: str = ""
    """Of a constant: the order of its elements, where it is not that of the type's axes."""

    def __post_init__(self) -> None:
        # 64-bit elements need more than a word's alignment
        self.align = max(self.align, self.type.dtype.alignment)

    @property
    def nbytes(self) -> int:
        return self.data.nbytes if self.data is not None else self.type.nbytes

    def root(self) -> tuple[Buffer, int]:
        """The buffer that owns the memory, and the byte offset of this one in it."""
        if self.view_of is None:
            return self, 0
        parent, offset = self.view_of
        owner, base = parent.root()
        return owner, base + offset


class Access(Enum):
    READ = "read"
    WRITE = "write"
    SCRATCH = "scratch"


@dataclass(frozen=True)
class Param:
    """A pointer parameter: its name in the body, element type and what the function does with it."""

    name: str
    dtype: DType
    access: Access
    c_type: str | None = None

    @property
    def element(self) -> str:
        return self.c_type or self.dtype.c_type


@dataclass(frozen=True)
class Device:
    """A device that functions run on, and the C functions of its driver. Each returns an int32_t, 0 when all
    is well.

    header: declares them, as it is written in #include "…". context: C type of what they work on, which the
    program hands to <name>_run() as `context *`; None: they take no argument. A step whose function is None
    is left out.
    """

    name: str
    header: str
    context: str | None = "void"
    activate: str | None = ""
    open: str | None = ""
    close: str | None = ""
    deactivate: str | None = ""

    def __post_init__(self) -> None:
        for step in ("activate", "open", "close", "deactivate"):
            if getattr(self, step) == "":
                object.__setattr__(self, step, f"{self.name}_{step}")

    @property
    def opaque(self) -> bool:
        """Whether pointers to the context can be declared without the header."""
        return self.context is not None and (self.context == "void" or self.context.startswith("struct "))


@dataclass(frozen=True)
class Function:
    """C text of one function. Two functions with equal fields are one in the output.

    external: it is defined elsewhere under this very name, and declared by one of `includes`. fails: it
    returns an int32_t, and <name>_run() stops with it when it is not 0. device: opened before each call and
    closed after it; its context is the last argument, called by the device's name.
    """

    name: str
    params: tuple[Param, ...]
    body: str
    includes: frozenset[str] = frozenset()
    helpers: tuple[str, ...] = ()
    note: str = ""
    external: bool = False
    fails: bool = False
    device: Device | None = None
    owner: str = ""
    """The target whose hook `emit` writes the text; empty: the body is the text."""


@dataclass(frozen=True)
class Overlap:
    """The output may lie over the input: address(output) - address(input) <= slack bytes, if the input dies
    here.

    step: the difference must also be a multiple of it (a kernel that goes channel by channel).
    """

    input: int
    output: int
    slack: int
    step: int = 1


@dataclass(frozen=True)
class Generic:
    """The loop of an expression, not a kernel: how many operations it is, of any kind, and why no kernel took
    the products in it (empty: there are none).
    """

    operations: int
    why: str = ""


@dataclass(eq=False)
class Call:
    """One call. `arguments` are positional; layer, op, macs (of all turns of a loop that counts) and shapes
    are for reports and comments.

    target: name of the target that took it over; empty: the processor. generic: it is the loop of an
    expression.
    """

    function: Function
    arguments: tuple[Buffer, ...]
    overlaps: tuple[Overlap, ...] = ()
    layer: str = ""
    op: str = ""
    macs: int = 0
    shapes: str = ""
    target: str = ""
    generic: Generic | None = None

    def buffers(self, *access: Access) -> Iterator[Buffer]:
        for param, argument in zip(self.function.params, self.arguments, strict=True):
            if param.access in access:
                yield argument


@dataclass(frozen=True)
class Wish:
    """A call that could be a faster one with `least` bytes of scratch memory or more."""

    call: Call
    least: int


@dataclass(eq=False)
class Loop:
    """`body` again and again: at most `limit` times (0 or more), and only while `*condition` (a bool) holds,
    if there is one.

    carried: (from, to) pairs copied after each turn by calls that are part of the body. `counter`, if any, is
    an int64 that holds the number of the turn.
    """

    body: list[Step]
    limit: int
    limit_from: Buffer | None = None
    condition: Buffer | None = None
    counter: Buffer | None = None
    kept: tuple[Buffer, ...] = ()
    """Buffers that every turn adds a piece to: they live as long as the loop."""


@dataclass(eq=False)
class Branch:
    """`then` where `*condition` holds, else `otherwise`."""

    condition: Buffer
    then: list[Step]
    otherwise: list[Step]


@dataclass(eq=False)
class Once:
    """A call that is made the first time that it is reached, and after external parameters have been
    replaced; its function can fail.

    It hands constants to a part of the program that keeps what it makes of them.
    """

    call: Call


Step = Call | Loop | Branch | Once


@dataclass(frozen=True)
class Held:
    """Memory that holds tensors of the model's file once a run has come so far."""

    buffer: Buffer
    tensors: tuple[ModelTensor, ...]


@dataclass(eq=False)
class Program:
    """What is emitted: see the module's docstring. `notes` are told to the user."""

    name: str
    inputs: list[Buffer]
    outputs: list[Buffer]
    body: list[Step]
    states: list[Buffer] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    held: list[Held] = field(default_factory=list)
    wishes: Mapping[Node, Wish] = field(default_factory=dict)

    def calls(self) -> Iterator[Call]:
        yield from walk_calls(self.body)

    def verify(self) -> None:
        """AssertionError when a call has not an argument for each parameter, or an output is never
        written.
        """
        written = {b.root()[0] for b in self.inputs}
        for call in self.calls():
            assert len(call.arguments) == len(call.function.params), (
                f"'{call.function.name}' takes {len(call.function.params)} arguments, not "
                f"{len(call.arguments)}"
            )
            written.update(b.root()[0] for b in call.buffers(Access.WRITE))
        for output in self.outputs:
            assert output.root()[0] in written or not output.type.elements, (
                f"output '{output.name}' is never written"
            )

    def constants(self) -> list[Buffer]:
        """Constant buffers in the order of first use."""
        seen: dict[Buffer, None] = {}
        for call in self.calls():
            for buffer in call.arguments:
                owner, _ = buffer.root()
                if owner.role is Role.CONSTANT:
                    seen[owner] = None
        return list(seen)


def walk_calls(steps: list[Step]) -> Iterator[Call]:
    """All calls in program order."""
    for step in steps:
        if isinstance(step, Call):
            yield step
        elif isinstance(step, Once):
            yield step.call
        elif isinstance(step, Loop):
            yield from walk_calls(step.body)
        else:
            yield from walk_calls(step.then)
            yield from walk_calls(step.otherwise)
