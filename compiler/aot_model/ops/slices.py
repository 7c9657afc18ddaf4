"""Slices at computed places: SliceAt reads one, UpdateAt writes one. A place that would leave the tensor is
clamped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from aot_model.c.text import CText, block
from aot_model.ir.expr import Expr, Index, call, cast, const
from aot_model.ir.index import add
from aot_model.ir.operator import At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.program import Overlap
from aot_model.ir.types import DType, TensorType, strides_of
from aot_model.kernels.arguments import Argument, written
from aot_model.kernels.site import Site
from aot_model.ops.registry import operator, required


def _check(x: TensorType, begins: TensorType, sizes: tuple[int, ...]) -> None:
    if begins.shape != (x.rank,) or begins.dtype not in (DType.INT32, DType.INT64):
        raise OperatorError(f"begins {begins} are not one for each axis of {x}")
    if len(sizes) != x.rank or any(not 0 <= s <= d for s, d in zip(sizes, x.shape, strict=True)):
        raise OperatorError(f"a slice of {list(sizes)} is larger than {x}")


@operator("SliceAt", domain="aot", movement=True)
class SliceAt(Operator):
    """y[i, …] = x[begins[0] + i, …] for `sizes` elements along each axis."""

    sizes: tuple[int, ...]

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, begins = required(inputs, 0), required(inputs, 1)
        _check(x.type, begins.type, self.sizes)
        return [TensorType(x.dtype, self.sizes)]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x, begins = required(inputs, 0), required(inputs, 1)
        place = []
        for k, (i, size, extent) in enumerate(zip(index, self.sizes, x.shape, strict=True)):
            if size == extent:
                place.append(i)
                continue
            begin = at(begins, (const(k),))
            inside = call("min", call("max", begin, const(0, begin.dtype)), const(extent - size, begin.dtype))
            place.append(add(cast(inside, DType.INT32), i))
        return at(x, tuple(place))

    def reference(self, arrays: Sequence[np.ndarray | None]) -> list[np.ndarray]:
        x, begins = arrays
        assert x is not None and begins is not None
        first = [min(max(int(b), 0), d - s) for b, s, d in zip(begins, self.sizes, x.shape, strict=True)]
        return [x[tuple(slice(b, b + s) for b, s in zip(first, self.sizes, strict=True))]]

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
        return [
            Sample((x, np.asarray(b, np.int32)), {"sizes": s})
            for b, s in [((1, 0, 2), (1, 4, 2)), ((-5, 9, 0), (2, 3, 5)), ((0, 0, 0), (3, 4, 5))]
        ]


@operator("UpdateAt", domain="aot", stores_itself=True, updates=True)
class UpdateAt(Operator):
    """y = x; y[begins[0] + i, …] = update[i, …]. In place where x is not read again."""

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, update, begins = (required(inputs, k) for k in range(3))
        if update.dtype is not x.dtype:
            raise OperatorError(f"an update {update.type} does not fit {x.type}")
        _check(x.type, begins.type, update.shape)
        return [x.type]

    def only_moves(self) -> bool:
        return True

    def fold(self, arrays: Sequence[np.ndarray | None]) -> list[np.ndarray]:
        return self.reference(arrays)

    def lower(self, site: Site) -> None:
        x, update, begins = (site.input(k) for k in range(3))
        strides, rank = strides_of(x.shape), x.type.rank
        text = CText()
        if x.type.elements:
            with text.block("if (y != x)"):
                text.line(f"memmove(y, x, {x.type.nbytes}u);")
        if update.type.elements:
            free = [k for k in range(rank) if update.shape[k] != x.shape[k]]
            for k in free:
                last = x.shape[k] - update.shape[k]
                text.line(
                    f"const int32_t b{k} = begins[{k}] < 0 ? 0 : begins[{k}] > {last} ? {last} : "
                    f"(int32_t)begins[{k}];"
                )
            rows = [k for k in range(rank) if k <= max(free, default=0)]
            run = math.prod(update.shape[k] for k in range(rank) if k not in rows) * (
                update.shape[rows[-1]] if rows else 1
            )
            outer = rows[:-1]
            text.line("int32_t n = 0;")
            loops = [text.loop(f"i{k}", str(update.shape[k])) for k in outer]
            for loop in loops:
                loop.__enter__()
            parts = [f"(i{k} + b{k}) * {strides[k]}" if k in free else f"i{k} * {strides[k]}" for k in outer]
            parts += [f"b{k} * {strides[k]}" for k in rows[-1:] if k in free]
            text.line(f"memcpy(y + {' + '.join(parts) or '0'}, update + n, {run * x.dtype.size}u);")
            text.line(f"n += {run};")
            for loop in reversed(loops):
                loop.__exit__(None, None, None)
        for name, used in (
            ("x", x.type.elements),
            ("update", update.type.elements),
            ("begins", "begins[" in str(text)),
        ):
            if not used:
                text.line(f"(void){name};")
        arguments = [
            Argument("x", x),
            Argument("update", update),
            Argument("begins", begins),
            written("y", site.node.outputs[0]),
        ]
        site.call(
            "update_at",
            block(text),
            arguments,
            includes={"string.h"},
            overlaps=() if x.is_const else (Overlap(0, 3, 0),),
        )

    def reference(self, arrays: Sequence[np.ndarray | None]) -> list[np.ndarray]:
        x, update, begins = arrays
        assert x is not None and update is not None and begins is not None
        y = x.copy()
        first = [min(max(int(b), 0), d - s) for b, s, d in zip(begins, update.shape, x.shape, strict=True)]
        y[tuple(slice(b, b + s) for b, s in zip(first, update.shape, strict=True))] = update
        return [y]

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
        cases = [
            ((1, 4, 2), (1, 0, 2)),
            ((2, 3, 5), (-5, 9, 0)),
            ((3, 4, 5), (0, 0, 0)),
            ((1, 1, 1), (2, 3, 4)),
            ((3, 2, 5), (0, 1, 0)),
        ]
        numbers = np.asarray(7, np.float32), np.asarray(-3, np.float32), np.zeros(0, np.int64)
        updates = [
            Sample(
                (
                    x,
                    -np.ones(s, np.float32) - np.arange(math.prod(s), dtype=np.float32).reshape(s),
                    np.asarray(b, np.int64),
                )
            )
            for s, b in cases
        ]
        return [*updates, Sample(numbers)]
