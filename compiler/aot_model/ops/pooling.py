"""What pools, and undoes pooling, beside maxima and averages: indices of maxima, LpPool, MaxUnpool, Col2Im.

Source: ONNX operator specification.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from aot_model.ir.expr import Expr, Index, call, cast, const, fresh, logical_and, reduce, select
from aot_model.ir.index import add, flatten_index, floordiv, less, mod, mul, sub
from aot_model.ir.operator import Arrays, At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.channels_first import (
    Pooling,
    WindowPooling,
    channels_first,
    channels_last,
    padding,
    spatial,
)
from aot_model.ops.elementwise import op
from aot_model.ops.movement import Pad
from aot_model.ops.normalisation import scalar
from aot_model.ops.pool import Pool
from aot_model.ops.registry import Build, ints, numeric, operator, ranked, required, static
from aot_model.ops.scatter import ScatterElements
from aot_model.ops.views import ReshapeTo

Ints = tuple[int, ...]


def draw(*shape: int) -> np.ndarray:
    """Random numbers, for samples."""
    return np.asarray(np.random.default_rng(17).uniform(-2, 2, shape), dtype=np.float32)


def _window_counts(x: np.ndarray, given: dict[str, Any]) -> Ints:
    k, s, p, d = (given[name] for name in ("kernel", "strides", "pads", "dilations"))
    return (
        *x.shape[:2],
        *((x.shape[2 + a] + p[a] + p[2 + a] - d[a] * (k[a] - 1) - 1) // s[a] + 1 for a in range(2)),
    )


def _windows(x: np.ndarray, given: dict[str, Any]) -> list[tuple[list[float], list[int]]]:
    """For samples and references: (values, places in x) of each window of a 4-D tensor."""
    k, s, p, d = (given[name] for name in ("kernel", "strides", "pads", "dilations"))
    found = []
    for n, c, oy, ox in np.ndindex(_window_counts(x, given)):
        spots = [
            (oy * s[0] - p[0] + i * d[0], ox * s[1] - p[1] + j * d[1])
            for i in range(k[0])
            for j in range(k[1])
        ]
        inside = [(n, c, a, b) for a, b in spots if 0 <= a < x.shape[2] and 0 <= b < x.shape[3]]
        found.append(
            (
                [float(x[spot]) for spot in inside],
                [int(np.ravel_multi_index(spot, x.shape)) for spot in inside],
            )
        )
    return found


@operator("MaximumPlace", domain="aot", reducing=True, rereads=True)
class MaximumPlace(Operator):
    """Position in x of each window's maximum y: the first of them. Channels first. Inputs: x, y."""

    kernel: Ints
    strides: Ints
    pads: Ints
    dilations: Ints
    column_major: int = 0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, y = required(inputs, 0), required(inputs, 1)
        rank = len(self.kernel) + 2
        if x.type.rank != rank or y.type.rank != rank or x.dtype is not y.dtype or x.shape[:2] != y.shape[:2]:
            raise OperatorError(f"maxima {y.type} are not of windows of {x.type}")
        return [TensorType(DType.INT64, y.shape)]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x, y = required(inputs, 0), required(inputs, 1)
        d = len(self.kernel)
        taps = tuple(fresh("k", n) for n in self.kernel)
        inside: Expr = const(True, DType.BOOL)
        place: list[Expr] = list(index[:2])
        for k in range(d):
            p = add(add(mul(index[2 + k], self.strides[k]), mul(taps[k], self.dilations[k])), -self.pads[k])
            inside = logical_and(inside, logical_and(less(const(-1), p), less(p, x.shape[2 + k])))
            place.append(p)
        hit = call("eq", at(x, tuple(place)), at(y, index), dtype=DType.BOOL)
        if self.column_major:
            position = flatten_index(
                (*place[:2], *reversed(place[2:])), (*x.shape[:2], *reversed(x.shape[2:]))
            )
        else:
            position = flatten_index(tuple(place), x.shape)
        none = const(x.type.elements, DType.INT64)
        return reduce("min", taps, select(logical_and(inside, hit), cast(position, DType.INT64), none))

    @classmethod
    def samples(cls) -> list[Sample]:
        # equal numbers: the first counts
        x = np.asarray(np.random.default_rng(5).integers(0, 4, (1, 2, 5, 4)), np.float32)
        given: list[dict[str, Any]] = [
            {"kernel": (2, 3), "strides": (1, 1), "pads": (0, 0, 0, 0), "dilations": (1, 1)},
            {"kernel": (3, 2), "strides": (2, 1), "pads": (1, 1, 1, 0), "dilations": (1, 1)},
            {
                "kernel": (2, 2),
                "strides": (1, 2),
                "pads": (0, 0, 0, 0),
                "dilations": (2, 1),
                "column_major": 1,
            },
        ]
        return [
            Sample(
                (
                    x,
                    np.stack([np.max(v) for v, _ in _windows(x, g)])
                    .reshape(_window_counts(x, g))
                    .astype(np.float32),
                ),
                g,
            )
            for g in given
        ]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x, y = (np.asarray(a) for a in arrays)
        given = {
            "kernel": self.kernel,
            "strides": self.strides,
            "pads": self.pads,
            "dilations": self.dilations,
        }
        order = np.arange(x.size).reshape(x.shape)
        if self.column_major:
            order = np.arange(x.size).reshape(*x.shape[:2], x.shape[3], x.shape[2]).swapaxes(2, 3)
        places = [
            min(int(order.reshape(-1)[p]) for v, p in zip(values, at, strict=True) if v == np.max(values))
            for values, at in _windows(x, given)
        ]
        return [np.asarray(places, np.int64).reshape(y.shape)]


@operator("MaxPool")
class MaxPool(WindowPooling):
    """Maxima over windows, and where they were found."""

    mode: ClassVar[str] = "max"

    storage_order: int = 0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        (y,) = super().infer(inputs)
        return [y, TensorType(DType.INT64, y.shape)]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x, pool = required(inputs), self._pool(required(inputs))
        (y,) = super().expand(build, inputs)
        return [
            y,
            build(
                MaximumPlace(pool.kernel, pool.strides, pool.pads, pool.dilations, self.storage_order), x, y
            ),
        ]

    @classmethod
    def samples(cls) -> list[Sample]:
        x = draw(1, 2, 5, 6)
        forms: list[dict[str, object]] = [
            {},
            {"strides": (2, 2)},
            {"pads": (1, 0, 1, 1)},
            {"auto_pad": "SAME_UPPER"},
            {"auto_pad": "SAME_LOWER", "strides": (2, 1)},
            {"ceil_mode": 1, "strides": (2, 2)},
            {"dilations": (2, 1)},
        ]
        return [Sample((x,), {"kernel_shape": (2, 3), **f}, outputs=n) for f in forms for n in (1, 2)]


def _norms(build: Build, x: Value, p: int, pool: Pool) -> Value:
    """p-norm over the windows of a sum: the sum of |x|^p in each, to the power 1 / p."""
    if p < 1:
        raise OperatorError(f"p is {p}: a norm has p >= 1")
    power = build(op("Pow"), build(op("Abs"), channels_last(build, x)), scalar(build, p, x.dtype))
    return channels_first(build, build(op("Pow"), build(pool, power), scalar(build, 1 / p, x.dtype)))


@operator("LpPool")
class LpPool(WindowPooling):
    """p-norm over windows."""

    mode: ClassVar[str] = "sum"

    p: int = 2

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x = required(inputs)
        return [_norms(build, x, self.p, self._pool(x))]

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            Sample(
                (draw(1, 2, 5, 6),), {"kernel_shape": (2, 3), "p": p, "strides": (2, 1), "pads": (0, 1, 0, 1)}
            )
            for p in (1, 2, 3)
        ]


@operator("GlobalLpPool")
class GlobalLpPool(Pooling):
    """p-norm over all spatial positions."""

    p: int = 2

    def _pool(self, x: Value) -> Pool:
        d = x.type.rank - 2
        return Pool("sum", x.shape[2:], (1,) * d, (0,) * (2 * d), (1,) * d)

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x = required(inputs)
        return [_norms(build, x, self.p, self._pool(x))]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x = np.abs(np.asarray(arrays[0]))
        return [(x**self.p).sum(tuple(range(2, x.ndim)), keepdims=True) ** np.float32(1 / self.p)]

    @classmethod
    def samples(cls) -> list[Sample]:
        return [Sample((draw(1, 2, 3, 4),), {"p": p}) for p in (1, 2, 3)] + [Sample((draw(2, 3, 5),))]


@operator("MaxUnpool")
class MaxUnpool(Operator):
    """Maxima put back to the positions that MaxPool says, zeros elsewhere."""

    kernel_shape: Ints = ()
    pads: Ints | None = None
    strides: Ints | None = None

    def _inner(self, x: Value) -> Ints:
        d = len(self.kernel_shape)
        strides, pads = spatial(self.strides, d), padding(self.pads, d)
        if d < 1:
            raise OperatorError("kernel_shape has no axes")
        return (
            *ranked(x, 2 + d).shape[:2],
            *(
                (x.shape[2 + k] - 1) * strides[k] - pads[k] - pads[d + k] + self.kernel_shape[k]
                for k in range(d)
            ),
        )

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, indices = required(inputs, 0), required(inputs, 1)
        inner = self._inner(x)
        if indices.shape != x.shape or indices.dtype is not DType.INT64:
            raise OperatorError(f"indices {indices.type} do not fit {x.type}")
        shape = static(inputs, 2, "the output shape")
        result = inner if shape is None else ints(shape)
        if len(result) != len(inner) or any(b < a for a, b in zip(inner, result, strict=True)):
            raise OperatorError(f"the output shape {list(result)} is smaller than {list(inner)}")
        return [TensorType(x.dtype, result)]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x, indices = required(inputs, 0), required(inputs, 1)
        inner, shape = self._inner(x), self.infer(inputs)[0].shape
        count = math.prod(inner)
        zeros = build.constant(np.zeros(count, dtype=x.dtype.numpy))
        flat = (x.type.elements,)
        y = build(ScatterElements(0), zeros, build(ReshapeTo(flat), indices), build(ReshapeTo(flat), x))
        y = build(ReshapeTo(inner), y)
        more = [b - a for a, b in zip(inner, shape, strict=True)]
        return [build(Pad(), y, build.constant([0] * len(inner) + more, DType.INT64)) if any(more) else y]

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.asarray([[[[1, 2], [3, 4]]]], np.float32)
        return [
            Sample(
                (x, np.asarray([[[[5, 7], [13, 15]]]], np.int64)), {"kernel_shape": (2, 2), "strides": (2, 2)}
            ),
            Sample(
                (x, np.asarray([[[[5, 7], [13, 15]]]], np.int64), np.asarray([1, 1, 4, 5], np.int64)),
                {"kernel_shape": (2, 2), "strides": (2, 2)},
                constants=frozenset({2}),
            ),
        ]


@operator("Col2Im", reducing=True)
class Col2Im(Operator):
    """Columns of windows added up into the image that they came from."""

    dilations: Ints | None = None
    pads: Ints | None = None
    strides: Ints | None = None

    def _shapes(self, inputs: Inputs) -> tuple[Ints, Ints, Ints, Ints, Ints, Ints]:
        """(image, window, strides, dilations, pads, windows along each axis)."""
        image, block = static(inputs, 1, "the image's shape"), static(inputs, 2, "the window's shape")
        if image is None or block is None:
            raise OperatorError("the shape of the image or of the window is missing")
        h, k = ints(image), ints(block)
        d = len(h)
        strides, dilations = spatial(self.strides, d), spatial(self.dilations, d)
        pads = padding(self.pads, d)
        if len(k) != d or min((*h, *k, 1)) < 0 or 0 in k:
            raise OperatorError(f"a window {list(k)} does not fit an image {list(h)}")
        counts = tuple(
            (h[i] + pads[i] + pads[d + i] - dilations[i] * (k[i] - 1) - 1) // strides[i] + 1 for i in range(d)
        )
        return h, k, strides, dilations, pads, counts

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = numeric(inputs)
        h, k, _, _, _, counts = self._shapes(inputs)
        taps = math.prod(k)
        if x.type.rank != 3 or x.shape[1] % taps or x.shape[2] != math.prod(counts):
            raise OperatorError(f"{x.type} does not hold {list(counts)} windows of {list(k)}")
        return [TensorType(x.dtype, (x.shape[0], x.shape[1] // taps, *h))]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x = required(inputs)
        _, k, strides, dilations, pads, counts = self._shapes(inputs)
        taps = tuple(fresh("k", n) for n in k)
        inside: Expr = const(True, DType.BOOL)
        window: list[Expr] = []
        for d, tap in enumerate(taps):
            reach = add(sub(index[2 + d], mul(tap, dilations[d])), pads[d])
            p = floordiv(reach, strides[d])
            hit = (
                call("eq", mod(reach, strides[d]), const(0), dtype=DType.BOOL)
                if strides[d] > 1
                else const(True, DType.BOOL)
            )
            inside = logical_and(
                inside, logical_and(hit, logical_and(less(const(-1), p), less(p, counts[d])))
            )
            window.append(p)
        row = add(mul(index[1], math.prod(k)), flatten_index(taps, k))
        element = at(x, (index[0], row, flatten_index(tuple(window), counts)))
        return reduce("add", taps, select(inside, element, const(0, x.dtype)))

    @classmethod
    def samples(cls) -> list[Sample]:
        x = draw(1, 8, 9)
        return [
            Sample((x, np.asarray([4, 4], np.int64), np.asarray([2, 2], np.int64)), {}, frozenset({1, 2})),
            Sample(
                (draw(2, 6, 12), np.asarray([4, 6], np.int64), np.asarray([3, 1], np.int64)),
                {"pads": (1, 0, 2, 1), "strides": (1, 2), "dilations": (2, 1)},
                frozenset({1, 2}),
            ),
        ]
