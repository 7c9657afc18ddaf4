"""Memory that lasts between runs."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from aot_model.ir.operator import Arrays, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import TensorType, strides_of
from aot_model.kernels.arguments import Argument, written
from aot_model.kernels.copies import copied
from aot_model.kernels.site import Site
from aot_model.ops.registry import operator, required


@operator("Assign", domain="aot", effects=True)
class Assign(Operator):
    """Store the second input into the first, a state. The result, its new value, is read by nobody.

    Nodes that read the state's old value come before it.
    """

    stores_itself: ClassVar[bool] = True

    def infer(self, inputs: Inputs) -> list[TensorType]:
        state, value = required(inputs, 0), required(inputs, 1)
        if not state.state or state.type != value.type:
            raise OperatorError(f"cannot assign {value.type} to {state.type}")
        return [state.type]

    def reads_strided(self, inputs: Inputs, index: int, strides: tuple[int, ...]) -> bool:
        """Bytes that lie one behind the other can be copied from anywhere, also from an address that is no
        word's.
        """
        return index == 1 and strides == strides_of(required(inputs, 1).shape)

    def lower(self, site: Site) -> None:
        state, source = site.input(0), Argument("x", site.window(1))
        copy, header = copied("y", "x", state.type.nbytes, site.target.dialect())
        site.call("assign", f"    {copy}", [source, written("y", state)], includes=[header])

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        return [
            Sample((x, -x), states=frozenset({0})),
            Sample((x, 2 * x), {}, frozenset({1}), states=frozenset({0})),
            Sample((np.tile(x, (4, 1)), np.tile(3 * x, (4, 1))), states=frozenset({0})),
            Sample((np.arange(75, dtype=np.int8), np.arange(1, 76, dtype=np.int8)), states=frozenset({0})),
        ]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        return [np.asarray(arrays[1])]  # what the state holds in the second run
