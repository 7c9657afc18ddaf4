"""Where a run with Options.trace tells its tensors: behind the step that completes each, before its memory is
used again.

    step 1: conv(…)                       tensor 0 'relu1' is complete
            <name>_trace(0, "relu1", AT(…), 4096)
    step 2: concat(…) of two pieces       …

The steps are those of the whole run: what a loop or branch computes inside is told once, behind it.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from aot_model.ir.program import Access, Buffer, Call, Program, Role, Step, walk_calls
from aot_model.ir.types import TensorType
from aot_model.ir.values import ModelTensor

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class Traced:
    """A buffer that is told behind a step, the tensors of the model's file that it holds, and the calls that
    wrote it.
    """

    buffer: Buffer
    tensors: tuple[ModelTensor, ...]
    step: Step
    calls: tuple[Call, ...]

    @property
    def _nearest(self) -> ModelTensor:
        """The tensor of the file that is the buffer but for the order of its axes, else the first."""
        near = (t for t in self.tensors if all(n.kind == "Transpose" for n in t.through))
        return next(near, self.tensors[0])

    @property
    def name(self) -> str:
        """Of one of its tensors; the others have the same elements."""
        return self._nearest.name

    @property
    def axes(self) -> tuple[int, ...]:
        """The order of the buffer's axes that makes the tensor with the name; none where it takes more."""
        order = tuple(range(len(self.type.shape)))
        for node in self._nearest.through:
            if node.kind != "Transpose":
                return ()
            order = tuple(order[k] for k in node.op.permutation(len(order)))
        return order

    @property
    def type(self) -> TensorType:
        return self.buffer.type


def traced(program: Program) -> tuple[Traced, ...]:
    """What a run tells, in its order. Tensors that lie in inputs or in states, which nothing computes, are
    left out.
    """
    written = [
        (step, call, span)
        for step in program.body
        for call in walk_calls([step])
        for b in call.buffers(Access.WRITE)
        if (span := _span(b))[2]
    ]
    order = {id(step): k for k, step in enumerate(program.body)}
    found = []
    for held in program.held:
        owner, begin, size = _span(held.buffer)
        if owner.role not in (Role.WORKSPACE, Role.OUTPUT) or not size:
            continue
        hits = [
            (step, call)
            for step, call, (other, at, length) in written
            if other is owner and at < begin + size and begin < at + length
        ]
        if hits:
            found.append(
                Traced(held.buffer, held.tensors, hits[-1][0], tuple(dict.fromkeys(call for _, call in hits)))
            )
    return tuple(sorted(found, key=lambda t: order[id(t.step)]))


def _span(buffer: Buffer) -> tuple[Buffer, int, int]:
    owner, offset = buffer.root()
    return owner, offset, buffer.nbytes
