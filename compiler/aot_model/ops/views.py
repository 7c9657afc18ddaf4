"""Operators that give a tensor another shape and leave its elements where they are: reshape, flatten,
squeeze.

Source: ONNX operator specification.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod

import numpy as np

from aot_model.ir.expr import Expr, Index, const
from aot_model.ir.index import flatten_index, unflatten
from aot_model.ir.operator import Arrays, At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import TensorType
from aot_model.ops.registry import ints, normal_axis, operator, required, static


def ramp(*shape: int) -> np.ndarray:
    """0, 1, 2 … in a shape, for samples."""
    return np.arange(math.prod(shape), dtype=np.float32).reshape(shape)


class Reshaping(Operator, ABC):
    """Same elements in the same order, another shape."""

    @abstractmethod
    def shape(self, inputs: Inputs) -> tuple[int, ...]: ...

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        shape = self.shape(inputs)
        if math.prod(shape) != x.type.elements:
            raise OperatorError(f"{x.type.elements} elements do not fit shape {shape}")
        return [TensorType(x.dtype, shape)]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x, shape = required(inputs), self.infer(inputs)[0].shape
        if [d for d in x.shape if d != 1] == [d for d in shape if d != 1]:
            # Only extents of 1 come and go: the indices are the same, also where they are outside (padding).
            kept = iter(i for i, d in zip(index, shape, strict=True) if d != 1)
            return at(x, tuple(const(0) if d == 1 else next(kept) for d in x.shape))
        return at(x, unflatten(flatten_index(index, shape), x.shape))


@operator("Reshape", movement=True)
class Reshape(Reshaping):
    """Shape from the second input; 0 copies a dimension (unless allowzero), -1 is inferred."""

    allowzero: int = 0

    def shape(self, inputs: Inputs) -> tuple[int, ...]:
        x = required(inputs)
        data = static(inputs, 1, "the shape")
        if data is None:
            raise OperatorError("the shape is missing")
        wanted = list(ints(data))
        for i, d in enumerate(wanted):
            if d == 0 and not self.allowzero:
                if i >= x.type.rank:
                    raise OperatorError(
                        f"dimension {i} of shape {wanted} copies a dimension that {x.type} does not have"
                    )
                wanted[i] = x.shape[i]
        if wanted.count(-1) > 1 or any(d < -1 for d in wanted):
            raise OperatorError(f"invalid shape {wanted}")
        if -1 in wanted:
            known = math.prod(d for d in wanted if d != -1)
            wanted[wanted.index(-1)] = x.type.elements // known if known else 0
        return tuple(wanted)

    @classmethod
    def samples(cls) -> list[Sample]:
        cases = [((2, 3, 4), (4, -1)), ((2, 3, 4), (0, 12)), ((1,), ()), ((6,), (1, 6, 1)), ((2, 3), (3, 2))]
        return [Sample((ramp(*a), np.asarray(b, np.int64)), constants=frozenset({1})) for a, b in cases]


@operator("ReshapeTo", domain="aot", movement=True)
class ReshapeTo(Reshaping):
    """Reshape to a shape that is an attribute."""

    to: tuple[int, ...]

    def shape(self, inputs: Inputs) -> tuple[int, ...]:
        return self.to

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            Sample((ramp(*a),), {"to": b})
            for a, b in [((2, 3, 4), (4, 6)), ((6,), (1, 6, 1)), ((1, 1), ()), ((2, 3), (3, 2))]
        ]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        return [np.asarray(arrays[0]).reshape(self.to)]


@operator("Flatten", movement=True)
class Flatten(Reshaping):
    """[product of dimensions before axis, product of the rest]."""

    axis: int = 1

    def shape(self, inputs: Inputs) -> tuple[int, ...]:
        shape = required(inputs).shape
        axis = self.axis + len(shape) if self.axis < 0 else self.axis
        return math.prod(shape[:axis]), math.prod(shape[axis:])

    @classmethod
    def samples(cls) -> list[Sample]:
        return [Sample((ramp(2, 3, 4, 5),), {"axis": a}) for a in (0, 1, 2, 4, -1, -3)] + [Sample((ramp(6),))]


@operator("Squeeze", movement=True)
class Squeeze(Reshaping):
    """Without the named axes of extent 1; without all of them when none is named."""

    def shape(self, inputs: Inputs) -> tuple[int, ...]:
        shape = required(inputs).shape
        axes = static(inputs, 1, "the axes")
        gone = (
            {i for i, d in enumerate(shape) if d == 1}
            if axes is None
            else {normal_axis(a, len(shape)) for a in ints(axes)}
        )
        if any(shape[a] != 1 for a in gone):
            raise OperatorError(f"cannot squeeze axes {sorted(gone)} of shape {shape}")
        return tuple(d for i, d in enumerate(shape) if i not in gone)

    @classmethod
    def samples(cls) -> list[Sample]:
        x = ramp(1, 3, 1, 2, 1)
        return [
            Sample((x,)),
            *(
                Sample((x, np.asarray(a, np.int64)), constants=frozenset({1}))
                for a in ([0], [2, 4], [-1], [-3, 0])
            ),
        ]


@operator("Unsqueeze", movement=True)
class Unsqueeze(Reshaping):
    """With new axes of extent 1 at the named places."""

    def shape(self, inputs: Inputs) -> tuple[int, ...]:
        shape = list(required(inputs).shape)
        data = static(inputs, 1, "the axes")
        axes = () if data is None else ints(data)
        rank = len(shape) + len(axes)
        for a in sorted(normal_axis(a, rank) for a in axes):
            shape.insert(a, 1)
        return tuple(shape)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            Sample((ramp(3, 2), np.asarray(a, np.int64)), constants=frozenset({1}))
            for a in ([0], [1, 3], [-1], [3, 0, 1], [-2])
        ]
