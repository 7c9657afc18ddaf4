"""Every operator with every extent of its inputs far larger, to the largest that a tensor may have: refused,
or C without a warning.

    python tests/fuzz/extents.py [--part 3/60] [--target cortex-m4]
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence

import numpy as np
import onnx
from campaign import TARGETS, Case
from element_types import main_of
from seeds import seeds

from aot_model.ir.types import MAX_BYTES

EXTENTS = (0, 1, 40_000, 2**20 + 1)
PARTS_OF_ALL = (1, 2, 5)
"""The tensor is as large as one may be, or has a half or a fifth of it."""
Shape = tuple[int, ...]


def _others(shapes: Sequence[tuple[Shape, int]]) -> Iterator[list[Shape]]:
    """Shapes, for such and their bytes per element: axes of one extent, in all tensors, have another, and
    then one axis alone.
    """
    axes = [(k, a) for k, (shape, _) in enumerate(shapes) for a in range(len(shape))]
    alike = [
        [(k, a) for k, a in axes if shapes[k][0][a] == extent]
        for extent in sorted({n for s, _ in shapes for n in s})
    ]
    for places in [*alike, *([place] for place in axes if len(axes) > 1)]:
        rest = max(
            size * math.prod(max(n, 1) for a, n in enumerate(shapes[k][0]) if (k, a) not in places)
            for k, (_, size) in enumerate(shapes)
            if any(k == j for j, _ in places)
        )
        for extent in (*EXTENTS, *(MAX_BYTES // part // rest for part in PARTS_OF_ALL)):
            yield [
                tuple(extent if (k, a) in places else n for a, n in enumerate(shape))
                for k, (shape, _) in enumerate(shapes)
            ]


def _of_onnx(data: bytes) -> Iterator[bytes]:
    base = onnx.load_from_string(data)
    tensors = [v.type.tensor_type for v in base.graph.input]
    if not all(t.HasField("shape") and all(d.dim_value for d in t.shape.dim) for t in tensors):
        return
    sizes = [np.dtype(onnx.helper.tensor_dtype_to_np_dtype(t.elem_type)).itemsize for t in tensors]
    shapes = [tuple(d.dim_value for d in t.shape.dim) for t in tensors]
    for others in _others(list(zip(shapes, sizes, strict=True))):
        model = onnx.ModelProto()
        model.CopyFrom(base)
        for value, shape in zip(model.graph.input, others, strict=True):
            for dim, extent in zip(value.type.tensor_type.shape.dim, shape, strict=True):
                dim.dim_value = extent
        for output in model.graph.output:
            output.type.Clear()
        yield model.SerializeToString()


def _of_tflite(data: bytes) -> Iterator[bytes]:
    from exchanged import with_shapes

    yield from with_shapes(data, _others)


def cases(part: int = 0, parts: int = 1, target: str = TARGETS[0]) -> Iterator[Case]:
    """Those of one part."""
    for number, (name, data) in enumerate(dict(seeds()).items()):
        if number % parts == part % parts:
            forms = (_of_tflite if name.endswith(".tflite") else _of_onnx)(data)
            yield from (Case(f"{k}-{name}", form, target) for k, form in enumerate(forms))


if __name__ == "__main__":
    sys.exit(main_of(cases, __doc__ or ""))
