"""TFLite: resizing of images."""

from __future__ import annotations

import numpy as np

from aot_model.arithmetic.fixed_point import round_away
from aot_model.frontends.tflite_conversion import Conversion, rule
from aot_model.ir.operator import OperatorError
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.ops.conversion import Cast
from aot_model.ops.movement import Gather
from aot_model.ops.registry import bounded
from aot_model.ops.resize_bilinear import ResizeBilinear


def _size(n: Conversion) -> tuple[int, int]:
    size = n.ints(1, "the size")
    if len(size) != 2 or min(size) < 1 or n.x().type.rank != 4:
        raise OperatorError(f"size {size} does not fit {n.x().type}")
    n.as_they_are(0)
    return size[0], size[1]


@rule("RESIZE_BILINEAR")
def resize_bilinear(n: Conversion) -> Value:
    options = "ResizeBilinearOptions"
    flags = (bool(n.operator.options.get(options, name)) for name in ("AlignCorners", "HalfPixelCenters"))
    node, x = ResizeBilinear(*_size(n), *flags), n.x()
    if x.dtype is not DType.UINT8:
        return n.build(node, x)
    # The first type of quantised networks: the reference interpolates floats.
    real = n.build(node, n.build(Cast(DType.FLOAT32), x))
    return n.build(Cast(DType.UINT8), n.add("Add", real, n.constant(0.5, DType.FLOAT32)))


@rule("RESIZE_NEAREST_NEIGHBOR")
def resize_nearest(n: Conversion) -> Value:
    """A gather of rows and one of columns."""
    options = "ResizeNearestNeighborOptions"
    aligned, centred = (
        bool(n.operator.options.get(options, name)) for name in ("AlignCorners", "HalfPixelCenters")
    )
    y = n.x()
    for axis, wanted in enumerate(_size(n), 1):
        bounded(wanted)
        size = y.shape[axis]
        corners = aligned and wanted > 1
        scale = (
            np.float32(size - 1) / np.float32(wanted - 1)
            if corners
            else np.float32(size) / np.float32(wanted)
        )
        at = (np.arange(wanted, dtype=np.float32) + np.float32(0.5 if centred else 0)) * scale
        places = [round_away(float(v)) for v in at] if aligned else np.floor(at)
        y = n.build(Gather(axis), y, n.constant(np.clip(places, 0, size - 1), DType.INT64))
    return y
