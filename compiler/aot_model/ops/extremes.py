"""The least and the largest number of a tensor at once, for scales that depend on the data."""

from __future__ import annotations

import numpy as np

from aot_model.ir.operator import Arrays, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.kernels.arguments import Argument, written
from aot_model.kernels.site import Site
from aot_model.ops.registry import operator, required


@operator("Extremes", domain="aot", stores_itself=True)
class Extremes(Operator):
    """The least and the largest number of a float32 tensor and 0, as two scalars. A NaN is one of them: the
    first where it has a sign. The order of elements is of no account.
    """

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        if x.dtype is not DType.FLOAT32:
            raise OperatorError(f"takes float32, not {x.type}")
        return [TensorType(DType.FLOAT32, ()), TensorType(DType.FLOAT32, ())]

    def lower(self, site: Site) -> None:
        x, (least, most) = site.input(0), site.node.outputs
        arguments = [Argument("x", x), written("least", least), written("most", most)]
        body = f"    aot_model_extremes(x, {x.type.elements}, least, most);"
        site.call("extremes", body, arguments, includes=["aot_model/extremes.h"])

    def fold(self, arrays: Arrays) -> list[np.ndarray]:
        return self.reference(arrays)

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x = np.append(np.asarray(arrays[0]).ravel(), np.float32(0))
        return [x.min(), x.max()]

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(2)
        mixed = rng.normal(size=(3, 5, 7)).astype(np.float32)
        return [
            Sample((mixed,), outputs=2),
            Sample((np.abs(mixed[:, 0]) + 1,), outputs=2),
            Sample((-np.abs(mixed[0, 0]) - 1,), outputs=2),
            Sample((np.asarray([-np.inf, 3e38, 1e-42, -1e-42], np.float32),), outputs=2),
            Sample((np.asarray(-2.5, np.float32),), outputs=2),
        ]
