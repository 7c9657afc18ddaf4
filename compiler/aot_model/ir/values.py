"""Values of a graph: typed tensors, constants, states."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from aot_model.ir.types import DType, Quantisation, TensorType


@dataclass(frozen=True)
class ModelTensor:
    """A tensor of the model's file, as it can be found again in what was made of it.

    key: what the file calls it: the name in ONNX, the number of the tensor in TFLite. through: nodes (of
    graph.py) that move elements, first to last, which make the tensor of the value that stands for it.
    """

    key: str | int
    name: str
    through: tuple[Any, ...] = ()


@dataclass(eq=False)
class Value:
    """A tensor. `data` makes it a constant; `state` makes it memory that lasts between runs, first filled
    with `initial` (zeros when None).

    stands_for: tensors of the model's file that have the same elements. Graph.replace_all and Graph.prune
    keep it up; a pass that gives a value other elements must empty it.
    """

    name: str
    type: TensorType
    data: np.ndarray | None = None
    quantisation: Quantisation | None = None
    state: bool = False
    initial: np.ndarray | None = None
    stands_for: tuple[ModelTensor, ...] = ()

    @property
    def dtype(self) -> DType:
        return self.type.dtype

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    @property
    def is_const(self) -> bool:
        return self.data is not None

    def take_over(self, other: Value) -> None:
        """Stand for what another value stood for that is replaced by this one."""
        if other.type == self.type:
            self.stands_for = tuple(dict.fromkeys((*self.stands_for, *other.stands_for)))

    def __str__(self) -> str:
        kind = "const " if self.is_const else ""
        return f"%{self.name}: {kind}{self.type}"


def constant(name: str, data: np.ndarray, quantisation: Quantisation | None = None) -> Value:
    """A constant value of an array (made contiguous)."""
    array = np.asarray(data)
    if not array.flags["C_CONTIGUOUS"]:
        array = array.copy()
    return Value(name, TensorType(DType.of(array.dtype), array.shape), array, quantisation)
