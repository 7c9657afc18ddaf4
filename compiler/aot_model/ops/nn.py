"""Convolution, pooling and matrix products, channels last, and the ONNX operators that expand into them.

Activations are (N, spatial…, C), weights (O, spatial…, I / group). Integer inputs give int32 accumulators,
from which the zero points are subtracted: acc = sum((x - x_zero_point) * (w - w_zero_point)); requantisation
follows in the tail.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from aot_model.ir.expr import Expr, Index, call, cast, const, fresh, logical_and, reduce, select
from aot_model.ir.index import add, floordiv, less, mod, mul, sub
from aot_model.ir.operator import Arrays, At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.kernels.site import Site
from aot_model.ops.registry import broadcast, operator, required

Ints = tuple[int, ...]


def accumulator(dtype: DType) -> DType:
    """The type in which products are summed."""
    # Products of 16 and 8 bits overflow 32 bits after 512 of them.
    return {8: DType.INT32, 16: DType.INT64}.get(dtype.bits, dtype) if dtype.is_integer else dtype


def product(x: Expr, x_zero_point: int, w: Expr, w_zero_point: int) -> Expr:
    """(x - x_zero_point) * (w - w_zero_point) in the accumulator's type."""
    wide, w = accumulator(x.dtype), cast(w, w.dtype.compute) if w.dtype.is_integer else w
    factors = [
        call("sub", cast(v, wide), const(zero, wide)) if zero else cast(v, wide)
        for v, zero in ((x, x_zero_point), (w, w_zero_point))
    ]  # fmt: skip
    return call("mul", *factors)


def window(extent: int, kernel: int, stride: int, dilation: int, begin: int, end: int) -> int:
    """Positions of a window along one axis."""
    return (extent + begin + end - dilation * (kernel - 1) - 1) // stride + 1


def _draw(dtype: type[Any], *shape: int) -> np.ndarray:
    rng = np.random.default_rng(shape)
    return np.asarray(
        rng.uniform(-1, 1, shape) if np.dtype(dtype).kind == "f" else rng.integers(*_RANGES[dtype], shape),
        dtype)


_RANGES: dict[type[Any], tuple[int,
                               int]] = {np.int8: (-128, 128), np.uint8: (0, 256), np.int16: (-32768, 32768)}


def _placed(x: np.ndarray, op: Convolution | ConvolutionTranspose, small: Ints,
            taps: Ints) -> tuple[Ints, Ints] | None:
    """For references: (position at the strided side, at the other) of a tap, None where that is outside."""
    other = tuple(p * s + k * d - b
                  for p, s, k, d, b in zip(small, op.strides, taps, op.dilations, op.pads, strict=False))
    return (small, other) if all(0 <= p < n for p, n in zip(other, x.shape[1:-1], strict=True)) else None


def _correlation(op: Convolution | ConvolutionTranspose, arrays: Arrays, shape: Ints,
                 transposed: bool) -> list[np.ndarray]:
    """For references: each tap's contribution, position by position."""
    x, w = (np.asarray(a).astype(np.float64 if np.asarray(a).dtype.kind == "f" else np.int64) for a in arrays)
    x, w = x - op.x_zero_point, w - op.w_zero_point
    y = np.zeros(shape, x.dtype)
    strided, other = (x, y) if transposed else (y, x)
    per_in, per_out = w.shape[-1], w.shape[0] // op.group
    for small in np.ndindex(strided.shape[1:-1]):
        for taps in np.ndindex(w.shape[1:-1]):
            found = _placed(other, op, small, taps)
            if found is None:
                continue
            source, result = found if transposed else found[::-1]
            for g in range(op.group):
                outs, ins = slice(g * per_out, (g + 1) * per_out), slice(g * per_in, (g + 1) * per_in)
                a: tuple[Any, ...] = (slice(None), *source, ins)
                b: tuple[Any, ...] = (slice(None), *result, outs)
                c: tuple[Any, ...] = (outs, *taps)
                y[b] += x[a] @ w[c].T
    return [y.astype(accumulator(DType.of(np.asarray(arrays[0]).dtype)).numpy)]


MAX_BORDER = 4096
"""Outputs along an axis whose windows are partly in the padding; the code for each is its own."""


def check_windows(extents: Ints, kernel: Ints, strides: Ints, pads: Ints, dilations: Ints) -> None:
    """OperatorError when windows cannot be placed along each axis, or generated code could not count their
    positions.
    """
    d = len(extents)
    for k, (extent, taps, stride, dilation) in enumerate(zip(extents, kernel, strides, dilations,
                                                             strict=True)):
        begin, end, reach = pads[k], pads[d + k], dilation * (taps - 1) + 1
        if min(stride, dilation) < 1 or taps < 0:
            raise OperatorError(f"a window of {taps} taps, strides of {stride} and dilations of {dilation}")
        if max(abs(begin), abs(end), reach, stride,
               extent + abs(begin) + abs(end) + reach) > DType.INT32.limits[1]:
            raise OperatorError(
                f"a window of {reach} elements, strides of {stride} and pads of {begin} and {end} are too "
                "large",
                "E202")
        if max(begin, 0) // stride + max(end, 0) // stride > MAX_BORDER:
            raise OperatorError(
                f"pads of {begin} and {end}, of which more than {MAX_BORDER} outputs see something", "E202")


@operator("Convolution", domain="aot")
class Convolution(Operator):
    """y[n, p…, o] = sum over k…, i of x[n, p * stride + k * dilation - begin, group * I + i] * w[o, k…, i].
    """

    strides: Ints = (1, 1)
    pads: Ints = (0, 0, 0, 0)
    """Begins, then ends, one for each spatial axis."""
    dilations: Ints = (1, 1)
    group: int = 1
    x_zero_point: int = 0
    w_zero_point: int = 0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, w = required(inputs, 0), required(inputs, 1)
        d = x.type.rank - 2
        if d < 1 or w.type.rank != x.type.rank:
            raise OperatorError(f"input {x.type} and weights {w.type} do not fit each other")
        if w.shape[-1] * self.group != x.shape[-1] or w.shape[0] % self.group:
            raise OperatorError(
                f"weights {w.type} with {self.group} groups do not fit {x.shape[-1]} input channels")
        if len(self.strides) != d or len(self.dilations) != d or len(self.pads) != 2 * d:
            raise OperatorError(
                f"strides {self.strides}, dilations {self.dilations}, pads {self.pads} do not fit {d} "
                "spatial axes"
            )
        check_windows(x.shape[1:-1], w.shape[1:-1], self.strides, self.pads, self.dilations)
        spatial = tuple(
            window(x.shape[1 + k], w.shape[1 + k], self.strides[k], self.dilations[k], self.pads[k],
                   self.pads[d + k]) for k in range(d))
        if min(spatial) < 0:
            raise OperatorError(f"the window is larger than the padded input {x.type}")
        return [TensorType(accumulator(x.dtype), (x.shape[0], *spatial, w.shape[0]))]

    def express(self, at: At, inputs: Inputs, index: Index, output: int = 0) -> Expr:
        x, w = required(inputs, 0), required(inputs, 1)
        d = x.type.rank - 2
        taps = tuple(fresh("k", w.shape[1 + k]) for k in range(d))
        channel = fresh("c", w.shape[-1])
        inside: Expr = const(True, DType.BOOL)
        place: list[Expr] = [index[0]]
        for k in range(d):
            p = add(add(mul(index[1 + k], self.strides[k]), mul(taps[k], self.dilations[k])), -self.pads[k])
            inside = logical_and(inside, logical_and(less(const(-1), p), less(p, x.shape[1 + k])))
            place.append(p)
        group = floordiv(index[-1], w.shape[0] // self.group)
        place.append(add(mul(group, w.shape[-1]), channel))
        term = product(at(x, tuple(place)), self.x_zero_point, at(w, (index[-1], *taps, channel)),
                       self.w_zero_point)
        return reduce("add", (*taps, channel), select(inside, term, const(0, term.dtype)))

    def reads_strided(self, inputs: Inputs, index: int, strides: Ints) -> bool:
        """Only few channels: where they are many, one transposing copy is cheaper than strided reads for
        every tap.
        """
        return index == 0 and (required(inputs).shape[-1] <= 4
                               or strides[-1] == 1) and required(inputs).dtype.is_float and self.group == 1

    def lower(self, site: Site) -> None:
        site.emit_kernel()

    @classmethod
    def samples(cls) -> list[Sample]:
        given: list[dict[str, Any]] = [{}, {"strides": (2, 1), "pads": (1, 0, 2, 1)},
                                       {"dilations": (2, 2), "pads": (2, 2, 1, 1)},
                                       {"x_zero_point": -7, "w_zero_point": 3, "pads": (1, 1, 1, 1)}]
        kinds = ((np.float32, np.float32), (np.int8, np.int8), (np.uint8, np.int8), (np.int16, np.int8))
        plain = [
            Sample((_draw(a, 2, 6, 5, 4), _draw(b, 6, 3, 2, 4)), g, frozenset({1}))
            for a, b in kinds
            for g in given
            if not (a is np.float32 and "x_zero_point" in g)
        ]
        line = Sample((_draw(np.int8, 1, 9, 3), _draw(np.int8, 2, 4, 3)),
                      {"strides": (2,), "pads": (1, 2), "dilations": (1,)})
        return [
            *plain, line, *(Sample(
                (_draw(a, 1, 5, 5, 4), _draw(b, 8, 3, 3, 4 // n)), {"group": n}, frozenset({1}))
                            for a, b in kinds[:2]
                            for n in (2, 4))
        ]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x, w = (np.asarray(a) for a in arrays)
        d = x.ndim - 2
        spatial = ((x.shape[1 + k] + self.pads[k] + self.pads[d + k] - self.dilations[k] *
                    (w.shape[1 + k] - 1) - 1) // self.strides[k] + 1 for k in range(d))
        return _correlation(self, arrays, (x.shape[0], *spatial, w.shape[0]), False)


@operator("ConvolutionTranspose", domain="aot")
class ConvolutionTranspose(Operator):
    """The gradient of Convolution by its input: each x adds w * x to a window of y. w is (O, spatial…, I /
    group).
    """

    strides: Ints = (1, 1)
    pads: Ints = (0, 0, 0, 0)
    dilations: Ints = (1, 1)
    output_padding: Ints = (0, 0)
    group: int = 1
    x_zero_point: int = 0
    w_zero_point: int = 0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, w = required(inputs, 0), required(inputs, 1)
        d = x.type.rank - 2
        if d < 1 or w.type.rank != x.type.rank:
            raise OperatorError(f"input {x.type} and weights {w.type} do not fit each other")
        if any(
                len(v) != n
                for v, n in [(self.strides, d), (self.dilations, d), (self.pads,
                                                                      2 * d), (self.output_padding, d)]):
            raise OperatorError(
                f"strides {self.strides}, dilations {self.dilations}, pads {self.pads} do not fit {d} "
                "spatial axes"
            )
        check_windows(x.shape[1:-1], w.shape[1:-1], self.strides, self.pads, self.dilations)
        spatial = tuple(self.strides[k] * (x.shape[1 + k] - 1) + self.output_padding[k]
                        + (w.shape[1 + k] - 1) * self.dilations[k] + 1 - self.pads[k] - self.pads[d + k]
                        for k in range(d))
        if w.shape[-1] * self.group != x.shape[-1] or min(spatial, default=1) < 1:
            raise OperatorError(f"weights {w.type} with {self.group} groups do not fit {x.type}")
        return [TensorType(accumulator(x.dtype), (x.shape[0], *spatial, w.shape[0]))]

    def express(self, at: At, inputs: Inputs, index: Index, output: int = 0) -> Expr:
        x, w = required(inputs, 0), required(inputs, 1)
        d = x.type.rank - 2
        taps = tuple(fresh("k", w.shape[1 + k]) for k in range(d))
        channel = fresh("c", w.shape[-1])
        inside: Expr = const(True, DType.BOOL)
        place: list[Expr] = [index[0]]
        for k in range(d):
            reach = add(sub(index[1 + k], mul(taps[k], self.dilations[k])), self.pads[k])
            p = floordiv(reach, self.strides[k])
            hit = call("eq", mod(reach, self.strides[k]), const(0),
                       dtype=DType.BOOL) if self.strides[k] > 1 else const(True, DType.BOOL)
            inside = logical_and(inside,
                                 logical_and(hit, logical_and(less(const(-1), p), less(p, x.shape[1 + k]))))
            place.append(p)
        group = floordiv(index[-1], w.shape[0] // self.group)
        place.append(add(mul(group, w.shape[-1]), channel))
        term = product(at(x, tuple(place)), self.x_zero_point, at(w, (index[-1], *taps, channel)),
                       self.w_zero_point)
        return reduce("add", (*taps, channel), select(inside, term, const(0, term.dtype)))

    def lower(self, site: Site) -> None:
        site.emit_kernel()

    @classmethod
    def samples(cls) -> list[Sample]:
        given: list[dict[str, Any]] = [{}, {"strides": (2, 3)}, {"pads": (1, 0, 0, 1), "strides": (2, 2)},
                                       {"dilations": (2, 1), "output_padding": (1, 0), "strides": (2, 2)}]
        kinds = ((np.float32, np.float32), (np.int8, np.int8), (np.int16, np.int8))
        plain = [
            Sample((_draw(a, 2, 3, 4, 4), _draw(b, 6, 3, 2, 4)), g, frozenset({1}))
            for a, b in kinds
            for g in given
        ]
        zero = Sample((_draw(np.int8, 1, 3, 3, 2), _draw(np.int8, 3, 2, 2, 2)),
                      {"x_zero_point": 5, "w_zero_point": -2, "strides": (2, 1)}, frozenset({1}))
        return [
            *plain, zero, *(Sample(
                (_draw(a, 1, 4, 4, 4), _draw(b, 4, 3, 3, 2)), {"group": 2, "strides": (2, 2)}, frozenset({1}))
                            for a, b in kinds[:2])
        ]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x, w = (np.asarray(a) for a in arrays)
        d = x.ndim - 2
        span = [
            self.strides[k] * (x.shape[1 + k] - 1) + self.dilations[k] *
            (w.shape[1 + k] - 1) + 1 + self.output_padding[k] for k in range(d)
        ]
        return _correlation(self, arrays, (x.shape[0], *(n - self.pads[k] - self.pads[d + k]
                                                         for k, n in enumerate(span)), w.shape[0]), True)


@operator("Pool", domain="aot")
class Pool(Operator):
    """Maximum, average or sum over windows, channels last. An average counts padding only with
    count_include_pad.

    The average of integers is exact, rounded to the nearest integer with ties away from zero.
    """

    mode: str = "max"
    kernel: Ints = (1, 1)
    strides: Ints = (1, 1)
    pads: Ints = (0, 0, 0, 0)
    dilations: Ints = (1, 1)
    count_include_pad: int = 0
    ceil_mode: int = 0

    def _window(self, extent: int, k: int) -> int:
        d = len(self.kernel)
        span = extent + self.pads[k] + self.pads[d + k] - self.dilations[k] * (self.kernel[k] - 1) - 1
        count = (-(-span // self.strides[k]) if self.ceil_mode else span // self.strides[k]) + 1
        # A window that begins in the end padding is not counted (ONNX since opset 19).
        if self.ceil_mode and (count - 1) * self.strides[k] >= extent + self.pads[k]:
            count -= 1
        return count

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        d = x.type.rank - 2
        if d < 1 or any(
                len(v) != n
                for v, n in [(self.kernel, d), (self.strides, d), (self.dilations, d), (self.pads, 2 * d)]):
            raise OperatorError(f"a {len(self.kernel)}-D window does not fit {x.type}")
        check_windows(x.shape[1:-1], self.kernel, self.strides, self.pads, self.dilations)
        if any(p >= n and p > 0 for p, n in zip(self.pads, self.kernel * 2, strict=True)):
            raise OperatorError(f"pads {self.pads} are not smaller than the window {self.kernel}")
        spatial = tuple(self._window(x.shape[1 + k], k) for k in range(d))
        if min(spatial) < 1:
            raise OperatorError(f"the window {self.kernel} is larger than the padded input {x.type}")
        return [TensorType(x.dtype, (x.shape[0], *spatial, x.shape[-1]))]

    def express(self, at: At, inputs: Inputs, index: Index, output: int = 0) -> Expr:
        x = required(inputs)
        d = len(self.kernel)
        taps = tuple(fresh("k", self.kernel[k]) for k in range(d))
        inside: Expr = const(True, DType.BOOL)
        place: list[Expr] = [index[0]]
        for k in range(d):
            p = add(add(mul(index[1 + k], self.strides[k]), mul(taps[k], self.dilations[k])), -self.pads[k])
            inside = logical_and(inside, logical_and(less(const(-1), p), less(p, x.shape[1 + k])))
            place.append(p)
        element = at(x, (*place, index[-1]))
        if self.mode == "max":
            low = const(-math.inf if x.dtype.is_float else x.dtype.limits[0], x.dtype)
            return reduce("max", taps, select(inside, element, low))
        if x.dtype.is_integer:
            wide = DType.INT32 if x.dtype.bits < 32 else x.dtype
            total = reduce("add", taps, select(inside, cast(element, wide), const(0, wide)))
            count = cast(self._count(index, x.shape, DType.INT32), wide)
            half = call("div", count, const(2, wide))
            up = call("lt", const(0, wide), total, dtype=DType.BOOL)
            return cast(call("div", select(up, call("add", total, half), call("sub", total, half)), count),
                        x.dtype)
        total = reduce("add", taps, select(inside, element, const(0, x.dtype)))
        return total if self.mode == "sum" else call("div", total, self._count(index, x.shape, x.dtype))

    def _count(self, index: Index, shape: Ints, dtype: DType) -> Expr:
        """How many elements a window averages over."""
        d = len(self.kernel)
        total: Expr = const(1, dtype)
        for k in range(d):
            extent, n, dilation = shape[1 + k], self.kernel[k], self.dilations[k]
            low, high = (-self.pads[k], extent + self.pads[d + k]) if self.count_include_pad else (0, extent)
            start = add(mul(index[1 + k], self.strides[k]), -self.pads[k])
            last = self.strides[k] * (self._window(extent, k) - 1) - self.pads[k] + dilation * (n - 1)
            if -self.pads[k] >= low and last < high:
                total = call("mul", total, const(n, dtype))
                continue
            # Taps t with low <= start + t * dilation < high.
            first = call("max", floordiv(add(mul(start, -1), low + dilation - 1), dilation), const(0))
            end = call("min", floordiv(add(mul(start, -1), high + dilation - 1), dilation), const(n))
            total = call("mul", total, cast(call("sub", end, first), dtype))
        return total

    def lower(self, site: Site) -> None:
        site.emit_kernel()

    @classmethod
    def samples(cls) -> list[Sample]:
        given: list[dict[str, Any]] = [{}, {"strides": (2, 2)}, {"pads": (1, 0, 0, 1)},
                                       {"strides": (2, 3), "ceil_mode": 1},
                                       {"pads": (1, 1, 1, 1), "strides": (2, 2),
                                        "ceil_mode": 1}, {"dilations": (2, 2)}]
        kinds = [("max", np.float32), ("average", np.float32), ("sum", np.float32), ("max", np.int8),
                 ("average", np.int8), ("average", np.uint8), ("max", np.uint8), ("average", np.int16)]
        plain = [
            Sample((_draw(a, 2, 7, 6, 5),), {"mode": m, "kernel": (3, 2), **g})
            for m, a in kinds
            for g in given
        ]
        counted = [
            Sample((_draw(a, 1, 5, 4, 3),),
                   {"mode": "average", "kernel": (2, 3), "pads": (1, 1, 1, 1), "count_include_pad": 1})
            for a in (np.float32, np.int8)
        ]
        ties = np.asarray([-5, 6, -7, 8, -3, 0, 127, 126, -128, -127], np.int8).reshape(1, 10, 1)
        line = {"kernel": (2,), "strides": (1,), "pads": (0, 0), "dilations": (1,)}
        return [*plain, *counted, Sample((ties,), {"mode": "average", **line}), Sample((ties,), line)]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x, d = np.asarray(arrays[0]), len(self.kernel)
        counts = []
        for k in range(d):
            room = x.shape[1 + k] + self.pads[k] + self.pads[d + k] - self.dilations[k] * (self.kernel[k]
                                                                                           - 1) - 1
            count = (-(-room // self.strides[k]) if self.ceil_mode else room // self.strides[k]) + 1
            counts.append(count - (self.ceil_mode and
                                   (count - 1) * self.strides[k] >= x.shape[1 + k] + self.pads[k]))
        y = np.zeros((x.shape[0], *counts, x.shape[-1]), np.float64)
        for at in np.ndindex(*counts):
            spots = [
                tuple(
                    a * s - p + t * e
                    for a, s, p, t, e in zip(at, self.strides, self.pads, taps, self.dilations, strict=False))
                for taps in np.ndindex(*self.kernel)
            ]
            inside = [(slice(None), *s) for s in spots if all(0 <= v < n
                                                              for v, n in zip(s, x.shape[1:-1], strict=True))]
            seen, result = np.stack([x[s] for s in inside]).astype(np.float64), (slice(None), *at)
            counted = sum(
                all(-p <= v < n + e
                    for v, n, p, e in zip(s, x.shape[1:-1], self.pads, self.pads[d:], strict=False))
                for s in spots) if self.count_include_pad else len(seen)
            y[result] = seen.max(
                axis=0) if self.mode == "max" else seen.sum(axis=0) / (1 if self.mode == "sum" else counted)
        return [(np.copysign(np.floor(np.abs(y) + 0.5), y) if x.dtype.kind in "iu" else y).astype(x.dtype)]


@operator("MatMul")
class MatMul(Operator):
    """numpy.matmul. Integers give accumulators, from which the zero points are subtracted as in Convolution.
    """

    x_zero_point: int = 0
    w_zero_point: int = 0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        a, b = required(inputs, 0), required(inputs, 1)
        sb = b.shape if b.type.rank > 1 else (*b.shape, 1)
        if not a.shape or not b.shape or a.shape[-1] != sb[-2]:
            raise OperatorError(f"cannot multiply {a.type} by {b.type}")
        if a.dtype is not b.dtype and (a.dtype.is_float or b.dtype.is_float):
            raise OperatorError(
                f"cannot multiply {a.type} by {b.type}: real numbers need the same type on both sides")
        columns = (sb[-1],) if b.type.rank > 1 else ()
        return [TensorType(accumulator(a.dtype), broadcast(a.shape[:-2], sb[:-2]) + a.shape[-2:-1] + columns)]

    def express(self, at: At, inputs: Inputs, index: Index, output: int = 0) -> Expr:
        a, b = required(inputs, 0), required(inputs, 1)
        k = fresh("k", a.shape[-1])
        column = (index[-1],) if b.type.rank > 1 else ()
        rest = index[:-1] if b.type.rank > 1 else index
        row = (rest[-1],) if a.type.rank > 1 else ()
        batch = rest[:-1] if a.type.rank > 1 else rest
        lead_a = _batch(a.shape[:-2], batch)
        lead_b = _batch(b.shape[:-2], batch)
        left = at(a, (*lead_a, *row, k))
        right = at(b, (*lead_b, k, *column))
        return reduce("add", (k,), product(left, self.x_zero_point, right, self.w_zero_point))

    def reads_strided(self, inputs: Inputs, index: int, strides: Ints) -> bool:
        """Of floats the second operand must run through memory along its rows or its columns; rows that meet
        a constant matrix must lie one behind the other, because they are one row of pixels."""
        value, other = required(inputs, index), required(inputs, 1 - index)
        if value.dtype.is_integer and value.type.rank > 1:
            return not other.is_const  # both are packed by the kernel
        if not value.dtype.is_float or value.type.rank < 2:
            return False
        if index == 1:
            return 1 in strides[-2:]
        even = all(strides[d] == strides[d + 1] * value.shape[d + 1]
                   for d in range(value.type.rank - 2)
                   if value.shape[d] > 1)
        return even or not other.is_const or other.type.rank != 2

    def lower(self, site: Site) -> None:
        site.emit_kernel()

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(5)

        def draw(*shape: int) -> np.ndarray:
            return np.asarray(rng.uniform(-1, 1, shape), dtype=np.float32)

        shapes = [((3, 4), (4, 5)), ((1, 4), (4, 1)), ((4,), (4, 3)), ((2, 4), (4,)), ((4,), (4,)),
                  ((2, 1, 3, 4), (5, 4, 2)), ((7, 17), (17, 33))]
        return [
            Sample((draw(*a), draw(*b)), constants=c)
            for a, b in shapes
            for c in (frozenset(), frozenset({1}))
        ]


def _batch(shape: Ints, index: Index) -> Index:
    tail = index[len(index) - len(shape) :]
    return tuple(const(0) if extent == 1 else i for extent, i in zip(shape, tail, strict=True))


for _cls in (Convolution, ConvolutionTranspose, Pool, MatMul):
    _cls.reducing = True
for _cls in (Convolution, MatMul):
    _cls.takes_nibbles = frozenset({1})
