"""AffineGrid: the places that GridSample reads for an affine map of an image."""

from __future__ import annotations

import math

import numpy as np

from aot_model.ir.operator import Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import TensorType
from aot_model.ir.values import Value
from aot_model.ops.matmul import MatMul
from aot_model.ops.movement import Transpose
from aot_model.ops.registry import Build, bounded, ints, operator, required, static
from aot_model.ops.views import ReshapeTo


@operator("AffineGrid")
class AffineGrid(Operator):
    """theta applied to the centres of an image's pixels, in coordinates of [-1, 1]; with align_corners the
    centres of the first and the last pixels are at -1 and 1.
    """

    align_corners: int = 0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        theta, size = required(inputs), self._size(inputs)
        d = len(size) - 2
        if d not in (2, 3) or theta.shape != (size[0], d, d + 1) or min(size) < 0:
            raise OperatorError(f"theta {theta.type} does not fit the size {list(size)}")
        if self.align_corners and 1 in size[2:]:
            raise OperatorError(
                "with align_corners, runtimes do not agree on where an axis of one pixel is", "E202"
            )
        return [TensorType(theta.dtype, (size[0], *size[2:], d))]

    def _size(self, inputs: Inputs) -> tuple[int, ...]:
        data = static(inputs, 1, "the size")
        if data is None:
            raise OperatorError("the size is missing")
        return tuple(ints(data))

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        theta, (n, _, *extents) = required(inputs), self._size(inputs)
        d = len(extents)
        bounded(math.prod(extents) * (d + 1))  # before there are tables
        centres = [
            np.linspace(-1, 1, e) if self.align_corners else (2 * np.arange(e) + 1) / e - 1 for e in extents
        ]
        places = np.stack([*reversed(np.meshgrid(*centres, indexing="ij")), np.ones(extents)], axis=-1)
        columns = build(Transpose((0, 2, 1)), theta)
        points = build.constant(places.reshape(1, -1, d + 1), theta.dtype)
        return [build(ReshapeTo((n, *extents, d)), build(MatMul(), points, columns))]

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(21)

        def draw(n: int, d: int) -> np.ndarray:
            return np.asarray(rng.uniform(-1, 1, (n, d, d + 1)), np.float32)

        return [
            Sample(
                (draw(size[0], len(size) - 2), np.asarray(size, np.int64)),
                {"align_corners": a},
                constants=frozenset({1}),
            )
            for size in ((1, 1, 3, 4), (2, 3, 2, 5), (1, 2, 2, 3, 4))
            for a in (0, 1)
        ]
