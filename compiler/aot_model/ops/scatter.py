"""Operators that write at indices found in tensors. An index from memory is clamped, never followed outside.

Source: ONNX operator specification.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from contextlib import ExitStack
from typing import ClassVar

import numpy as np

from aot_model.c.names import snake_case
from aot_model.c.text import CText, block, product, total
from aot_model.ir.expr import Expr, Index, call, cast, const, select
from aot_model.ir.index import sub
from aot_model.ir.operator import Arrays, At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.program import Overlap
from aot_model.ir.types import DType, TensorType, strides_of
from aot_model.ir.values import Value
from aot_model.kernels.arguments import Argument, written
from aot_model.kernels.site import Site
from aot_model.ops.indexing import int64
from aot_model.ops.movement import safe_index
from aot_model.ops.registry import counts, normal_axis, operator, required
from aot_model.ops.views import ramp


def update_text(reduction: str, dtype: DType, target: str, value: str) -> str:
    """C statement that puts a value into an element: stored, added, multiplied, or the extreme of both."""
    if reduction == "none":
        return f"{target} = {value};"
    if reduction in ("max", "min"):
        wide = dtype.label if dtype.is_float or dtype.bits >= 32 else "int32"
        result = f"aot_model_{reduction}_{wide}({target}, {value})"
        return f"{target} = {result};" if wide == dtype.label else f"{target} = ({dtype.c_type}){result};"
    sign = "+" if reduction == "add" else "*"
    if dtype.is_float:
        return f"{target} {sign}= {value};"
    if dtype is DType.BOOL:
        return f"{target} = {target} {'||' if sign == '+' else '&&'} {value};"
    u = f"uint{max(dtype.bits, 32)}_t"
    return f"{target} = ({dtype.c_type})(({u}){target} {sign} ({u}){value});"


def clamped_index(text: CText, name: str, source: str, extent: int) -> None:
    """C that reads an index into `name`: negative ones from the end, what is outside clamped."""
    text.line(f"int64_t {name} = {source};")
    text.line(f"{name} += {name} < 0 ? {extent} : 0;")
    text.line(f"{name} = {name} < 0 ? 0 : {name} > {extent - 1} ? {extent - 1} : {name};")


Box = tuple[tuple[int, int], ...]
"""The first index and the extent of each axis."""


class _Scatter(Operator, ABC):
    """x with updates at indices. In place where x is not read again."""

    updates: ClassVar[bool] = True

    reduction: str = "none"

    def _check(self) -> None:
        if self.reduction not in ("none", "add", "mul", "max", "min"):
            raise OperatorError(f"unknown reduction '{self.reduction}'")

    def only_moves(self) -> bool:
        return self.reduction == "none"

    @abstractmethod
    def body(self, inputs: Inputs) -> str: ...

    def box(self, x: Value, indices: Value) -> Box | None:
        """Where constant indices write, if that is a box of x, in its order."""
        return None

    def turns(self, text: CText, inputs: Inputs, rows: int) -> str:
        """How many rows of updates there are, in C."""
        if len(inputs) < 4:
            return str(rows)
        text.line(f"const int32_t live = count[0] < {rows} ? count[0] : {rows};")
        return "live"

    def lower(self, site: Site) -> None:
        x, indices, updates = (site.input(k) for k in range(3))
        box = self.box(x, indices) if updates.type.elements else None
        text = CText()
        if x.type.elements:
            with text.block("if (y != x)"):
                text.line(f"memmove(y, x, {x.type.nbytes}u);")
            if box is not None:
                self._put_box(text, x, box)
            elif updates.type.elements:
                text.line(self.body(site.node.inputs))
        arguments = [
            Argument("x", x),
            *([Argument("indices", indices)] if box is None else []),
            Argument("updates", updates),
            *(Argument("count", v) for v in site.node.inputs[3:] if v is not None),
            written("y", site.node.outputs[0]),
        ]
        includes = {"string.h", *(["aot_model/scalar.h"] if self.reduction in ("max", "min") else [])}
        unused = (
            []
            if updates.type.elements and x.type.elements
            else ["(void)indices;", "(void)updates;"] + ([] if x.type.elements else ["(void)x;", "(void)y;"])
        )
        for line in unused:
            text.line(line)
        site.call(
            snake_case(self.name),
            block(text),
            arguments,
            includes=includes,
            overlaps=() if x.is_const else (Overlap(0, len(arguments) - 1, 0),),
        )

    def _put_box(self, text: CText, x: Value, box: Box) -> None:
        """Loops over the rows of a box that lie in one piece."""
        strides, counts = strides_of(x.shape), [count for _, count in box]
        whole = x.type.rank - 1  # from the next axis on the box is as large as x
        while whole > 0 and counts[whole] == x.shape[whole]:
            whole -= 1
        run, of_updates = math.prod(counts[whole:]), strides_of(tuple(counts))
        first = sum(begin * stride for (begin, _), stride in zip(box, strides, strict=True))
        with ExitStack() as loops:
            turns = [loops.enter_context(text.turns(f"i{d}", str(counts[d]))) for d in range(whole)]
            place = total(*(product(i, s) for i, s in zip(turns, strides, strict=False)), str(first))
            source = total(*(product(i, s) for i, s in zip(turns, of_updates, strict=False)))
            if self.reduction == "none" and run > 1 and (x.dtype.is_float or x.dtype.is_integer):
                text.line(f"memcpy(y + {place}, updates + {source}, {run * x.dtype.size}u);")
                return
            text.line(f"{x.dtype.c_type} *const row = y + {place};")
            text.line(f"const {x.dtype.c_type} *const from = updates + {source};")
            with text.loop("j", str(run)):
                text.line(update_text(self.reduction, x.dtype, "row[j]", "from[j]"))


@operator("ScatterElements", stores_itself=True, strings=True)
class ScatterElements(_Scatter):
    """y = x; y[i, indices[i, j, …], …] at `axis` = updates[i, j, …]."""

    axis: int = 0
    reduction: str = "none"

    def infer(self, inputs: Inputs) -> list[TensorType]:
        self._check()
        x, indices, updates = (required(inputs, k) for k in range(3))
        counts(indices)
        normal_axis(self.axis, x.type.rank)
        if indices.shape != updates.shape or indices.type.rank != x.type.rank or updates.dtype is not x.dtype:
            raise OperatorError(f"indices {indices.type} and updates {updates.type} do not fit {x.type}")
        a = normal_axis(self.axis, x.type.rank)
        if any(k != a and n > d for k, (n, d) in enumerate(zip(indices.shape, x.shape, strict=True))):
            raise OperatorError(f"indices {indices.type} are larger than data {x.type}")
        return [x.type]

    def body(self, inputs: Inputs) -> str:
        x, indices = required(inputs, 0), required(inputs, 1)
        a, strides, rank = normal_axis(self.axis, x.type.rank), strides_of(x.shape), x.type.rank
        text = CText()
        text.line("int32_t n = 0;")
        loops = [
            text.loop(f"i{k}", str(indices.shape[k]) if k else self.turns(text, inputs, indices.shape[0]))
            for k in range(rank)
        ]
        for loop in loops:
            loop.__enter__()
        clamped_index(text, "at", "indices[n]", x.shape[a])
        place = " + ".join(f"{'at' if k == a else f'i{k}'} * {strides[k]}" for k in range(rank))
        text.line(update_text(self.reduction, x.dtype, f"y[{place}]", "updates[n]"))
        text.line("++n;")
        for loop in reversed(loops):
            loop.__exit__(None, None, None)
        return str(text)

    def fold(self, arrays: list[np.ndarray | None]) -> list[np.ndarray]:  # type: ignore[override]
        x, indices, updates = arrays[0], arrays[1], arrays[2]
        assert x is not None and indices is not None and updates is not None
        y = x.copy()
        a = normal_axis(self.axis, x.ndim)
        for place in np.ndindex(indices.shape):
            i = int(np.clip(indices[place] + (x.shape[a] if indices[place] < 0 else 0), 0, x.shape[a] - 1))
            _put(y, (*place[:a], i, *place[a + 1 :]), updates[place], self.reduction)
        return [y]

    @classmethod
    def samples(cls) -> list[Sample]:
        x, i, u = ramp(3, 4), int64([[0, 2, -1], [1, 1, 1]]), ramp(2, 3) + 100
        return [
            Sample((x, i, u), {"axis": a, **({} if r == "none" else {"reduction": r})})
            for a in (0, 1)
            for r in ("none", "add", "mul", "max", "min")
            if not (r == "none" and a == 1)
        ] + [Sample((x % 2 == 0, i, u % 3 == 0), {"reduction": r}) for r in ("add", "mul")]


@operator("ScatterND", stores_itself=True, strings=True)
class ScatterND(_Scatter):
    """y = x; y[indices[i…, :], …] = updates[i…, …]."""

    reduction: str = "none"

    def infer(self, inputs: Inputs) -> list[TensorType]:
        self._check()
        x, indices, updates = (required(inputs, k) for k in range(3))
        counts(indices)
        if updates.dtype is not x.dtype:
            raise OperatorError(f"updates {updates.type} are of another type than {x.type}")
        if (
            not indices.shape
            or indices.shape[-1] > x.type.rank
            or updates.shape != indices.shape[:-1] + x.shape[indices.shape[-1] :]
        ):
            raise OperatorError(f"indices {indices.type} and updates {updates.type} do not fit {x.type}")
        return [x.type]

    def box(self, x: Value, indices: Value) -> Box | None:
        if indices.data is None or not indices.type.elements:
            return None
        k = indices.shape[-1]
        places = indices.data.reshape(-1, k).astype(np.int64)
        places += np.where(places < 0, np.array(x.shape[:k]), 0)
        begin, last = places.min(axis=0), places.max(axis=0)
        counts = tuple(int(v) for v in last - begin + 1)
        inside = bool((begin >= 0).all() and (last < np.array(x.shape[:k])).all())
        if not inside or math.prod(counts) != len(places):
            return None
        if not np.array_equal(places, begin + np.indices(counts).reshape(k, -1).T):
            return None
        return (*zip(begin.tolist(), counts, strict=True), *((0, d) for d in x.shape[k:]))

    def body(self, inputs: Inputs) -> str:
        x, indices = required(inputs, 0), required(inputs, 1)
        k, strides = indices.shape[-1], strides_of(x.shape)
        inner = math.prod(x.shape[k:])
        text = CText()
        each = math.prod(indices.shape[1:-1])
        turns = self.turns(text, inputs, indices.shape[0]) if len(indices.shape) > 1 else "1"
        with text.loop("n", str(int(turns) * each) if turns.isdecimal() else product(turns, each)):
            for d in range(k):
                clamped_index(text, f"i{d}", f"indices[n * {k} + {d}]", x.shape[d])
            place = " + ".join(f"i{d} * {strides[d]}" for d in range(k)) or "0"
            text.line(f"{x.dtype.c_type} *const row = y + {place};")
            with text.loop("j", str(inner)):
                text.line(update_text(self.reduction, x.dtype, "row[j]", f"updates[n * {inner} + j]"))
        return str(text)

    def fold(self, arrays: list[np.ndarray | None]) -> list[np.ndarray]:  # type: ignore[override]
        x, indices, updates = arrays[0], arrays[1], arrays[2]
        assert x is not None and indices is not None and updates is not None
        y = x.copy()
        for place in np.ndindex(indices.shape[:-1]):
            target = tuple(
                int(np.clip(i + (d if i < 0 else 0), 0, d - 1))
                for i, d in zip(indices[place], x.shape, strict=False)
            )
            _put(y, target, updates[place], self.reduction)
        return [y]

    @classmethod
    def samples(cls) -> list[Sample]:
        x = ramp(4, 3)
        rows = [
            Sample((x, int64([[0], [-1], [0]]), ramp(3, 3) + 50), {"reduction": r})
            for r in ("add", "mul", "max", "min")
        ]
        deep, known = ramp(2, 5, 4, 3), frozenset({1})
        boxes: list[tuple[np.ndarray, tuple[slice, ...]]] = [
            (x, np.s_[1:3,]), (x, np.s_[0:4, 0:3]), (deep, np.s_[0:2, 1:4, 2:3]), (deep, np.s_[1:2, 2:5]),
            (deep, np.s_[0:2, 4:5, 1:3, 0:2])
        ]  # fmt: skip
        for of, box in boxes:
            axes = (np.arange(extent)[part] for extent, part in zip(of.shape, box, strict=False))
            places = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
            places[..., -1] -= of.shape[len(box) - 1] * (len(box) == 4)  # from the end
            rows.append(Sample((of, int64(places), ramp(*of[box].shape) + 60), constants=known))
        apart = ([[0], [2]], [[1], [0]], [[2], [2]])  # no boxes, or not in their order
        rows += [Sample((x, int64(places), ramp(2, 3) + 40), constants=known) for places in apart[:2]]
        more = {"reduction": "max"}
        rows.append(Sample((x, int64([[[1, 1], [1, 2]]]), ramp(1, 2) + 5), more, known))
        rows.append(Sample((x, int64(apart[2]), ramp(2, 3)), {"reduction": "add"}, known))
        rows.append(Sample((x, np.zeros((0, 1), np.int64), ramp(0, 3))))
        deep_places = int64([[[0, 1], [3, 2], [1, 0]], [[2, -1], [-4, 0], [3, 1]]])
        return [*rows, Sample((x, deep_places, ramp(2, 3) - 7))]


def _put(y: np.ndarray, place: tuple[int, ...], value: np.ndarray, reduction: str) -> None:
    combine = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}.get(reduction)
    y[place] = value if combine is None else combine(y[place], value)


@operator("Scatter", stores_itself=True, strings=True)
class Scatter(ScatterElements):
    """The name of ScatterElements up to opset 10."""

    @classmethod
    def samples(cls) -> list[Sample]:
        return [s for s in super().samples() if "reduction" not in s.attributes]


class _Rows(_Scatter):
    """Of the rows of updates as many as the fourth input says."""

    def infer(self, inputs: Inputs) -> list[TensorType]:
        if required(inputs, 3).type != TensorType(DType.INT32, (1,)):
            raise OperatorError("the number of rows is not an int32")
        return super().infer(inputs[:3])

    def fold(self, arrays: list[np.ndarray | None]) -> list[np.ndarray]:  # type: ignore[override]
        x, indices, updates, count = arrays
        assert indices is not None and updates is not None and count is not None
        n = max(int(count[0]), 0)
        return super().fold([x, indices[:n], updates[:n]])

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x, indices, updates, count = (np.asarray(a) for a in arrays)
        n = max(int(count[0]), 0)
        y = x.copy()
        if isinstance(self, ScatterND):
            for place in np.ndindex(indices[:n].shape[:-1]):
                _put(y, tuple(indices[place]), updates[place], self.reduction)
        elif isinstance(self, ScatterElements):
            for place in np.ndindex(indices[:n].shape):
                at = (*place[: self.axis], indices[place], *place[self.axis + 1 :])
                _put(y, at, updates[place], self.reduction)
        return [y]


@operator("ScatterElementsRows", domain="aot", stores_itself=True, strings=True)
class ScatterElementsRows(_Rows, ScatterElements):
    """ScatterElements, of updates whose number of rows depends on data."""

    @classmethod
    def samples(cls) -> list[Sample]:
        x, i, u = ramp(3, 4), int64([[0, 2, -1], [1, 1, 1]]), ramp(2, 3) + 100
        return [
            Sample((x, i, u, np.asarray([n], np.int32)), {"axis": a, "reduction": r})
            for n, a, r in ((1, 0, "none"), (2, 1, "add"), (0, 0, "none"), (1, 1, "max"))
        ]


@operator("ScatterNDRows", domain="aot", stores_itself=True, strings=True)
class ScatterNDRows(_Rows, ScatterND):
    """ScatterND, of updates whose number of rows depends on data."""

    @classmethod
    def samples(cls) -> list[Sample]:
        x, i = ramp(4, 3), int64([[[0], [-1]], [[0], [2]], [[1], [1]]])
        flat = Sample((x, int64([[3, 1], [0, 2]]), ramp(2) + 9, np.asarray([1], np.int32)))
        return [flat] + [
            Sample((x, i, ramp(3, 2, 3) + 50, np.asarray([n], np.int32)), {"reduction": r})
            for n, r in ((2, "add"), (3, "none"), (0, "none"), (1, "min"))
        ]


@operator("TensorScatter")
class TensorScatter(Operator):
    """A cache with an update written at write_indices[b] along an axis; circular mode wraps around the
    end.
    """

    axis: int = -2
    mode: str = "linear"

    def infer(self, inputs: Inputs) -> list[TensorType]:
        cache, update = required(inputs, 0), required(inputs, 1)
        begin = inputs[2] if len(inputs) > 2 else None
        counts(begin)
        if self.mode not in ("linear", "circular"):
            raise OperatorError(f"mode is '{self.mode}', not linear or circular")
        a = normal_axis(self.axis, cache.type.rank)
        if a == 0:
            raise OperatorError("axis is that of the batch")
        fits = (
            update.dtype is cache.dtype
            and update.type.rank == cache.type.rank
            and update.shape[a] <= cache.shape[a]
        )
        if not fits or any(
            u != c for k, (u, c) in enumerate(zip(update.shape, cache.shape, strict=True)) if k != a
        ):
            raise OperatorError(f"an update {update.type} does not fit a cache {cache.type} on axis {a}")
        if begin is not None and begin.shape != cache.shape[:1]:
            raise OperatorError(
                f"write_indices {begin.type} are not one for each of {cache.shape[0]} batches"
            )
        return [cache.type]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        cache, update = required(inputs, 0), required(inputs, 1)
        begin = inputs[2] if len(inputs) > 2 else None
        a = normal_axis(self.axis, cache.type.rank)
        extent, count = cache.shape[a], update.shape[a]
        start = const(0) if begin is None else cast(safe_index(at(begin, (index[0],)), extent), DType.INT32)
        place = sub(index[a], start)
        if self.mode == "circular":
            place = select(
                call("lt", place, const(0), dtype=DType.BOOL), call("add", place, const(extent)), place
            )
        inside = call(
            "and",
            call("le", const(0), place, dtype=DType.BOOL),
            call("lt", place, const(count), dtype=DType.BOOL),
            dtype=DType.BOOL,
        )
        safe = call("min", call("max", place, const(0)), const(max(count - 1, 0)))
        return select(inside, at(update, (*index[:a], safe, *index[a + 1 :])), at(cache, index))

    def only_moves(self) -> bool:
        return True

    @classmethod
    def samples(cls) -> list[Sample]:
        cache, update = (
            np.arange(48, dtype=np.float32).reshape(2, 2, 4, 3),
            -1 - np.arange(24, dtype=np.float32).reshape(2, 2, 2, 3),
        )
        at = np.asarray([2, 1], np.int64)
        return [
            Sample((cache, update, at)),
            Sample((cache, update)),
            Sample((cache, update, at + 1), {"mode": "circular"}),
            Sample((cache, cache[:, :1] - 99, at[::-1] - 1), {"axis": 1}),
            Sample((cache, update, at - 1), {"axis": -2}, frozenset({2})),
        ]
