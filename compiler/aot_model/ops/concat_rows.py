"""Concat of values of which the number of rows depends on data (see dynamic.py)."""

from __future__ import annotations

import math

import numpy as np

from aot_model.c.text import CText, block
from aot_model.ir.operator import Arrays, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.kernels.arguments import Argument, written
from aot_model.kernels.site import Site
from aot_model.ops.dynamic import clear_rest
from aot_model.ops.registry import operator, required


@operator("ConcatRows", domain="aot", stores_itself=True)
class ConcatRows(Operator):
    """The rows of the first half of the inputs one behind the other, of each as many as the second half
    says; zeros behind them.
    """

    def infer(self, inputs: Inputs) -> list[TensorType]:
        half = len(inputs) // 2
        if not half or len(inputs) % 2:
            raise OperatorError(f"{len(inputs)} inputs are not as many numbers of rows as values")
        parts, counts = ([required(inputs, k) for k in range(n, n + half)] for n in (0, half))
        first = parts[0]
        if any(v.type != TensorType(DType.INT32, (1,)) for v in counts):
            raise OperatorError("a number of rows is not an int32")
        if any(not v.shape or v.dtype is not first.dtype or v.shape[1:] != first.shape[1:] for v in parts):
            raise OperatorError(f"{', '.join(str(v.type) for v in parts)} do not fit each other")
        return [TensorType(first.dtype, (sum(v.shape[0] for v in parts), *first.shape[1:]))]

    def only_moves(self) -> bool:
        return True

    def lower(self, site: Site) -> None:
        half, y = len(site.node.inputs) // 2, site.node.outputs[0]
        row = math.prod(y.shape[1:])
        text, arguments = CText(), []
        text.line("int32_t rows = 0;")
        for k in range(half):
            x, count = site.input(k), site.input(half + k)
            text.line(f"int32_t n{k} = count{k}[0] < 0 ? 0 : count{k}[0];")
            text.line(f"n{k} = n{k} < {x.shape[0]} ? n{k} : {x.shape[0]};")
            if x.type.elements:
                text.line(f"memcpy(y + rows * {row}, x{k}, (size_t)n{k} * {row * x.dtype.size}u);")
            else:
                text.line(f"(void)x{k};")
            text.line(f"rows += n{k};")
            arguments += [Argument(f"x{k}", x), Argument(f"count{k}", count)]
        clear_rest(text, "y", y, "rows", row)
        site.call("concat_rows", block(text), [*arguments, written("y", y)], includes={"string.h"})

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        half = len(arrays) // 2
        parts = [np.asarray(a) for a in arrays[:half]]
        used = [x[: max(int(np.asarray(n)[0]), 0)] for x, n in zip(parts, arrays[half:], strict=True)]
        y = np.zeros((sum(len(x) for x in parts), *parts[0].shape[1:]), parts[0].dtype)
        y[: sum(map(len, used))] = np.concatenate(used)
        return [y]

    @classmethod
    def samples(cls) -> list[Sample]:
        def case(counts: tuple[int, ...], *shapes: tuple[int, ...]) -> Sample:
            parts = [
                np.arange(math.prod(s), dtype=np.float32).reshape(s) + 1 + 50 * k
                for k, s in enumerate(shapes)
            ]
            return Sample((*parts, *(np.asarray([n], np.int32) for n in counts)))

        return [
            case((2, 0, 1), (3, 2), (2, 2), (1, 2)),
            case((3, 2), (3,), (2,)),
            case((0, 0), (3, 1), (2, 1)),
        ]
