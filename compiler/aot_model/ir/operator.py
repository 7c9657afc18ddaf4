"""What an operator is: its attributes, the types of its outputs, and what it means.

The operators themselves, and the registry of them, are in ops/.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from aot_model.ir.expr import Expr, Index
from aot_model.ir.types import TensorType
from aot_model.ir.values import Value

Inputs = Sequence[Value | None]


At = Callable[[Value, Index], Expr]


Arrays = Sequence["np.ndarray | None"]


class OperatorError(Exception):
    """The inputs or attributes do not fit the operator, or this form of it is not supported (code E2xx or
    E3xx).
    """

    def __init__(self, message: str, code: str = "E301", hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.hint = hint
        self.node = ""
        """The node that it is about, as a message has it, where that is known."""

    def about(self, name: str, kind: str) -> OperatorError:
        """The error, which names a node unless it names one already."""
        self.node = self.node or f"node '{name}' ({kind})"
        return self


@dataclass(frozen=True)
class Sample:
    """A small case for the conformance tests: attributes of the operator and its inputs."""

    inputs: tuple[np.ndarray | None, ...]
    attributes: dict[str, Any] = field(default_factory=dict)
    constants: frozenset[int] = frozenset()
    """Inputs that are constants of the model (shapes, axes, weights)."""
    outputs: int = 1
    states: frozenset[int] = frozenset()
    """Inputs that are states; the array is what the state holds at first."""
    tolerance: float = 0.0
    """How far the outputs may be from `reference` where that is no exact definition (0: exact, of floats the
    usual).
    """


MANY = 2**31 - 1
"""Inputs, of an operator that takes any number of them."""


@dataclass(frozen=True)
class Operator:
    """Base of all operators; the fields of a subclass are the attributes."""

    name: ClassVar[str] = ""
    domain: ClassVar[str] = ""
    most_inputs: ClassVar[int] = MANY
    effects: ClassVar[bool] = False
    draws: ClassVar[bool] = False
    """Draws random numbers: two of the same inputs give different ones."""
    elementwise: ClassVar[bool] = False
    """Output element (i, j, …) reads input element (i, j, …) only, with numpy broadcasting."""
    movement: ClassVar[bool] = False
    """Moves elements without computing; free to repeat."""
    reducing: ClassVar[bool] = False
    """`express` folds over a range, so an element is expensive."""
    rereads: ClassVar[bool] = False
    """`express` reads an element of an input for several elements of the output."""
    stores_itself: ClassVar[bool] = False
    """`lower` stores the outputs themselves: nothing is fused into its tail."""
    updates: ClassVar[bool] = False
    """`lower` writes parts of the output alone where it lies in the place of input 0."""
    deferred: ClassVar[bool] = False
    """Not computed at compile time before the pass fuse_qdq has seen it."""
    expands_to_qdq: ClassVar[bool] = False
    """`expand` gives operators on floats between DequantizeLinear and QuantizeLinear."""
    stepwise: ClassVar[bool] = False
    """Of storage types (float16 …) every step of `expand` is rounded, as in the function body that ONNX gives
    the operator.
    """
    strings: ClassVar[bool] = False
    """Takes tensors of strings; every operator with the mark `movement` does."""
    takes_nibbles: ClassVar[frozenset[int]] = frozenset()
    """Inputs that may be constants of 4-bit integers, two in a byte, which the operator takes out itself."""
    shape_only: ClassVar[bool] = False
    """The result depends on the types of the inputs, not on their data."""

    def infer(self, inputs: Inputs) -> list[TensorType]:
        """Types of the outputs. OperatorError when the inputs do not fit."""
        raise NotImplementedError(f"{self.name}.infer")

    def sized_by_data(self, inputs: Inputs) -> dict[int, int]:
        """Outputs of which an extent depends on data, and its axis. Their types are upper bounds, and behind
        all outputs come their actual shapes."""
        return {}

    def remarks(self, inputs: Inputs) -> list[str]:
        """What the user should know: runtimes do not agree about what the standard says of this."""
        return []

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        """The element of output number `output` at `index`; `at(value, index)` is an element of an input."""
        raise NotImplementedError(f"{self.name}.express")

    def expand(self, build: Any, inputs: Inputs) -> list[Value]:
        """The same in terms of other operators, which `build` makes (a Build of ops/registry.py)."""
        raise NotImplementedError(f"{self.name}.expand")

    def reads_strided(self, inputs: Inputs, index: int, strides: tuple[int, ...]) -> bool:
        """Whether `lower` takes input number `index` with these element strides instead of a dense copy."""
        return False

    def addends(self, inputs: Inputs) -> int:
        """How many numbers an element is made of, at most, where `express` folds over a range."""
        return sum(v.type.elements for v in inputs if v is not None)

    def only_moves(self) -> bool:
        """Whether elements are moved as they are, so that storage types (float16 …) need no conversion around
        it.
        """
        return self.movement

    def by_element(self, inputs: Inputs) -> bool:
        """Whether output element (i, j, …) is made of element (i, j, …) of what is not constant, so that the
        kernel that makes it may go on with it.
        """
        return self.elementwise

    def lower(self, site: Any) -> None:
        """Add the calls that compute the outputs to the program, at a Site of kernels/site.py."""
        raise NotImplementedError(f"{self.name}.lower")

    def fold(self, arrays: Sequence[np.ndarray | None]) -> list[np.ndarray]:
        """The outputs for constant inputs, for operators that have no expression."""
        raise NotImplementedError(f"{self.name}.fold")

    @classmethod
    def samples(cls) -> list[Sample]:
        """Cases of the conformance tests; every attribute and every kind of input should be in one."""
        return []

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        """The outputs in numpy, written from the specification and not from `express`, `expand` or `lower`:
        what the conformance tests compare with where neither ONNX nor ONNX Runtime has the operator."""
        raise NotImplementedError(f"{self.name}.reference")

    @classmethod
    def has(cls, method: str) -> bool:
        """Whether the class defines `express`, `expand`, `lower`, `fold` or `reference`."""
        return getattr(cls, method) is not getattr(Operator, method)
