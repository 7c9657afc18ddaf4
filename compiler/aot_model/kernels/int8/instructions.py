"""What an instruction set is to a kernel: a table of instructions, each with its C text and its meaning.

A schedule (the inner loop of conv_host, the pairs of gemm_dsp) is written over the names of a table, never
over the text of an instruction. The C is in a header of the runtime, where an instruction that a compiler
must be told of stands beside its portable twin. The meaning is Python on numpy arrays, written from the
manual of the processor: tests/kernels/ test_instruction_tables.py runs every instruction where it exists and
compares, and runs the twins under sanitizers.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

Lanes = npt.NDArray[np.int64]
"""The elements of an operand; integers of any type, computed without overflow and wrapped at the end."""


@dataclass(frozen=True)
class Operand:
    """A value as C has it: a register, or memory that the instruction reads."""

    c_type: str
    element: str
    """numpy's name of an element's type."""
    lanes: int = 1
    low: int | None = None
    high: int | None = None
    """Values for which the instruction is used; None: those of the type."""

    @property
    def memory(self) -> bool:
        return self.c_type.endswith("*")


@dataclass(frozen=True)
class Instruction:
    """One operation on lanes."""

    text: str
    """A C expression over {0}, {1} ...: mostly a call of a function of the set's header."""
    operands: tuple[Operand, ...]
    result: Operand
    meaning: Callable[..., Lanes]
    """Of the operands' elements, as int64."""


@dataclass(frozen=True)
class InstructionSet:
    """A table, and what follows from the form of its dot product."""

    name: str
    header: str
    prefix: str
    """Of the names in the header; the schedules write q8_."""
    instructions: Mapping[str, Instruction]
    lanes: int = 1
    """int32 accumulators of a register: output channels."""
    group: int = 2
    """Inputs of a channel that one step of the dot product multiplies: pairs, quads."""
    element: str = "int16_t"
    """An activation on its way into the registers."""
    flips: Mapping[str, int] = field(default_factory=dict)
    """What is added to an activation of a type for that."""
    pixels: Mapping[int, int] = field(default_factory=dict)
    """Most pixels of a block by its channels: what the registers hold, with weights and an input."""
    channels: tuple[int, ...] = ()
    """Output channel of each accumulator of a block of 16, register after register."""
    order: tuple[int, ...] = (0, 1, 2, 3)
    """Lane of each four that the multiplication of requantisation leaves at an index."""
    parts: str = "{0}"
    """An accumulator as the finishing functions take it."""
    base: InstructionSet | None = None
    """The set whose functions, and finish, it has for all that is not in its own table."""

    @property
    def element_bytes(self) -> int:
        return np.dtype(self.element.removesuffix("_t")).itemsize

    @property
    def finishing(self) -> InstructionSet:
        """The set that requantises."""
        return self.base or self

    def registers(self, block: int) -> int:
        """Of the accumulators of `block` channels."""
        return block // self.lanes

    def block_channels(self, block: int) -> npt.NDArray[np.int64]:
        """Channel, within its block, of each accumulator."""
        return np.array(self.channels if block == 16 else range(block))

    def weights_fit(self, weights: Lanes) -> bool:
        """Whether the dot product takes these weights (less their zero point)."""
        limit = 1 << (15 if self.group == 2 else 7)
        return bool((weights >= -limit).all() and (weights < limit).all())

    def named(self, text: str) -> str:
        """C text with this set's names in place of q8_."""
        return re.sub(r"\bq8_", self.prefix, text)
