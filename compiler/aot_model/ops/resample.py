"""Resize: each axis on its own becomes a table of source positions, and of weights where it interpolates.

    nearest:  y[i, j] = x[p[i], q[j]]
    others:   y[i, j] = sum over taps s, t of u[i, s] * v[j, t] * x[p[i, s], q[j, t]]

The tables are worked out here in double precision, edges clamped. Source: ONNX operator specification
(Resize).
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from aot_model.ir.expr import Expr, Index, call, cast, const, fresh, reduce
from aot_model.ir.index import floordiv, mul
from aot_model.ir.operator import Arrays, At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.conversion import Cast
from aot_model.ops.elementwise import Where
from aot_model.ops.registry import (
    Build,
    axis_of,
    bounded,
    ints,
    normal_axis,
    operator,
    ranked,
    required,
    static,
)
from aot_model.ops.resize_tables import Array, between, cubic, linear, nearest, single

MAX_WRITTEN_OUT = 16
"""Taps that are no loop: what they have in common for a row or a column is then computed once."""


@dataclass(frozen=True)
class Resampling(Operator):
    """What the two have in common: `axes` are resampled, the tables of axes[k] are inputs 1 + k * step."""

    axes: tuple[int, ...] = ()

    def step(self) -> int:
        return 1

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        shape = list(x.shape)
        for k, a in enumerate(self.axes):
            step = self.step()
            tables = [ranked(required(inputs, 1 + k * step + t), step) for t in range(step)]
            if any(t.shape != tables[0].shape for t in tables):
                raise OperatorError(f"tables {tables[0].type} and {tables[1].type} have different shapes")
            positions = tables[0].data
            if (
                positions is not None
                and positions.size
                and not 0 <= positions.min() <= positions.max() < x.shape[axis_of(x, a)]
            ):
                raise OperatorError(f"positions {positions.min()} to {positions.max()} reach beyond {x.type}")
            shape[axis_of(x, a)] = tables[0].shape[0]
        return [TensorType(x.dtype, tuple(shape))]


@operator("NearestSample", domain="aot", movement=True)
class NearestSample(Resampling):
    """y[…, i, …] = x[…, table[i], …] along each axis; a table of whole steps is written as arithmetic."""

    axes: tuple[int, ...]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        place = list(index)
        for k, a in enumerate(self.axes):
            place[a] = _source(at, required(inputs, 1 + k), index[a])
        return at(required(inputs), tuple(place))

    @classmethod
    def samples(cls) -> list[Sample]:
        x, fixed = np.arange(30, dtype=np.float32).reshape(1, 5, 6), frozenset({1, 2})
        tables = [
            ([0, 0, 1, 1, 2, 2, 3, 3, 4, 4], [0, 2, 4]),
            ([4, 0, 2], [0, 1, 2, 3, 4, 5]),
            ([3], [5, 5]),
            ([0, 1], [0, 0, 0, 1, 1, 1]),
        ]
        return [
            Sample((x, *(np.asarray(t, np.int32) for t in pair)), {"axes": (1, 2)}, fixed) for pair in tables
        ]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        y = np.asarray(arrays[0])
        for axis, table in zip(self.axes, arrays[1:], strict=True):
            y = np.take(y, np.asarray(table).reshape(-1), axis)
        return [y]


def _source(at: At, table: Value, i: Expr) -> Expr:
    assert table.data is not None
    positions = table.data.reshape(-1)
    count = np.arange(positions.size)
    last = int(positions[-1]) if positions.size else 0
    for factor in (positions.size // (last + 1), 1):
        if factor > 0 and np.array_equal(positions, count // factor):
            return floordiv(i, factor)
    step = int(positions[1] - positions[0]) if positions.size > 1 else 1
    if step > 1 and np.array_equal(positions, count * step):
        return mul(i, step)
    return at(table, (i,))


@operator("Interpolation", domain="aot", reducing=True, rereads=True)
class Interpolation(Resampling):
    """Weighted sums of a few elements along each axis: tables [out, taps] of positions (int32) and of
    weights, which have the type of the sums.
    """

    axes: tuple[int, ...]

    def step(self) -> int:
        return 2

    def infer(self, inputs: Inputs) -> list[TensorType]:
        (found,) = super().infer(inputs)
        return [TensorType(required(inputs, 2).dtype, found.shape)]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x = required(inputs)
        taps = [required(inputs, 1 + 2 * k).shape[1] for k in range(len(self.axes))]

        def term(chosen: Sequence[Expr]) -> Expr:
            """A tap of each axis: the product of its weights and the element."""
            place = list(index)
            weight: Expr | None = None
            for k, (a, tap) in enumerate(zip(self.axes, chosen, strict=True)):
                place[a] = at(required(inputs, 1 + 2 * k), (index[a], tap))
                own = at(required(inputs, 2 + 2 * k), (index[a], tap))
                weight = own if weight is None else call("mul", weight, own)
            element = cast(at(x, tuple(place)), required(inputs, 2).dtype)
            return element if weight is None else call("mul", weight, element)

        if math.prod(taps) > MAX_WRITTEN_OUT:
            over = tuple(fresh("k", n) for n in taps)
            return reduce("add", over, term(over))
        terms = [term([const(k) for k in chosen]) for chosen in itertools.product(*(range(n) for n in taps))]
        return functools.reduce(partial(call, "add"), terms)

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(2)
        x = np.asarray(rng.uniform(-1, 1, (2, 4, 5)), np.float32)
        rows, columns = (
            np.asarray([[0, 1], [1, 2], [3, 3]], np.int32),
            np.asarray([[0, 1, 2, 4], [4, 3, 2, 1]], np.int32),
        )
        shares = [np.asarray(rng.uniform(-1, 1, t.shape), np.float32) for t in (rows, columns)]
        both = Sample((x, rows, shares[0], columns, shares[1]), {"axes": (1, 2)}, frozenset({1, 2, 3, 4}))
        return [
            both,
            Sample((x, columns, shares[1]), {"axes": (2,)}, frozenset({1, 2})),
            Sample((x, rows, shares[0]), {"axes": (1,)}, frozenset({1, 2})),
            Sample((np.asarray(100 * x, np.int8), rows, shares[0]), {"axes": (1,)}, frozenset({1, 2})),
        ]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        y = np.asarray(arrays[0], np.float64)
        for k, axis in enumerate(self.axes):
            places, weights = np.asarray(arrays[1 + 2 * k]), np.asarray(arrays[2 + 2 * k], np.float64)
            mixing = np.zeros((len(places), y.shape[axis]))
            for row, (place, weight) in enumerate(zip(places, weights, strict=True)):
                np.add.at(mixing[row], place, weight)
            y = np.moveaxis(np.tensordot(mixing, y, (1, axis)), 0, axis)
        return [y.astype(np.asarray(arrays[2]).dtype)]


_FARTHEST = 1 << 20
"""Of a region of interest, in images: places in it are no numbers else, or have no fractions."""


@operator("Resize")
class Resize(Operator):
    """ONNX Resize: x, roi, scales, sizes."""

    antialias: int = 0
    axes: tuple[int, ...] | None = None
    coordinate_transformation_mode: str = "half_pixel"
    cubic_coeff_a: float = -0.75
    exclude_outside: int = 0
    extrapolation_value: float = 0.0
    keep_aspect_ratio_policy: str = "stretch"
    mode: str = "nearest"
    nearest_mode: str = "round_prefer_floor"

    @property
    def picks(self) -> bool:
        """Whether every element of the result is one of the input."""
        return self.mode == "nearest" and self.coordinate_transformation_mode != "tf_crop_and_resize"

    def _axes(self, rank: int) -> list[int]:
        return list(range(rank)) if self.axes is None else [normal_axis(a, rank) for a in self.axes]

    def _plan(self, inputs: Inputs) -> dict[int, tuple[int, float]]:
        """axis -> (output extent, scale)."""
        x = required(inputs)
        scales, sizes = static(inputs, 2, "the scales"), static(inputs, 3, "the sizes")
        axes = self._axes(x.type.rank)
        if sizes is not None and sizes.size:
            wanted = ints(sizes)
            if len(wanted) != len(axes) or not all(x.shape[a] for a in axes):
                raise OperatorError(f"{len(wanted)} sizes for {len(axes)} axes of {x.type}")
            ratios = [m / x.shape[a] for m, a in zip(wanted, axes, strict=True)]
            if self.keep_aspect_ratio_policy == "stretch":
                return {a: (m, r) for a, m, r in zip(axes, wanted, ratios, strict=True)}
            common = min(ratios) if self.keep_aspect_ratio_policy == "not_larger" else max(ratios)
            return {a: (math.floor(common * x.shape[a] + 0.5), common) for a in axes}
        if scales is None or scales.size != len(axes):
            raise OperatorError("neither scales nor sizes fit the axes")
        factors = [float(s) for s in scales.reshape(-1)]
        lengths = [single(x.shape[a] * s) for a, s in zip(axes, factors, strict=True)]
        if not all(s > 0 for s in factors) or not np.isfinite(lengths).all():
            raise OperatorError(f"scales {factors} are not positive, or too large")
        return {a: (math.floor(n), s) for a, n, s in zip(axes, lengths, factors, strict=True)}

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        if self.mode not in ("nearest", "linear", "cubic"):
            raise OperatorError(f"unknown mode '{self.mode}'")
        shape = list(x.shape)
        for a, (extent, _) in self._plan(inputs).items():
            shape[a] = extent
        return [TensorType(x.dtype, tuple(shape))]

    def remarks(self, inputs: Inputs) -> list[str]:
        """Where ONNX Runtime differs from ONNX's test cases and reference evaluator."""
        x, found = required(inputs), []
        crop = self.coordinate_transformation_mode == "tf_crop_and_resize"
        spread = crop or self.coordinate_transformation_mode == "align_corners"
        plan = self._plan(inputs)
        if not all(m for m, _ in plan.values()):
            return []
        for a, (m, scale) in plan.items():
            length = single(single(scale) * x.shape[a])
            if spread and (m > 1 or crop) and length - m > 1e-3:  # less is of float32
                found.append(
                    f"pixels of axis {a} are spread over its exact length of {length:.6g}, as the standard's "
                    f"tests say; ONNX Runtime and PyTorch take {m}: give `sizes` instead of `scales` for that"
                )
        if all(m == x.shape[a] for a, (m, _) in plan.items()) and any(s != 1 for _, s in plan.values()):
            found.append("pixels move, though there are as many; ONNX Runtime copies them")
        return found

    def _positions(self, n: int, m: int, scale: float, roi: tuple[float, float]) -> Array:
        """Source position of each output index, rounded to float32 step by step as ONNX Runtime does it: from
        a quotient that is just not whole another neighbour would be the nearest.

        The length that positions are spread over is scale x n, not rounded down to m: ONNX's test cases
        (resize_downsample_scales_linear_align_corners) and evaluator say so, other than ONNX Runtime.
        """
        i: Array = np.arange(m, dtype=np.float32)
        factor, exact = single(scale), single(single(scale) * n)
        mode = self.coordinate_transformation_mode
        if mode == "align_corners":
            return i * (n - 1) / (exact - 1) if exact != 1 else np.zeros(m)
        if mode == "asymmetric":
            return i / factor
        if mode == "tf_crop_and_resize":
            first, span = roi[0] * (n - 1), (roi[1] - roi[0]) * (n - 1)
            return first + (i * span / (exact - 1) if exact != 1 else np.full(m, span / 2))
        if mode == "pytorch_half_pixel":
            return (i + 0.5) / factor - 0.5 if m > 1 else np.zeros(m)
        if mode == "half_pixel_symmetric":
            offset = single(n / 2 * (1 - single(m / exact))) if m else 0.0
            wide = offset + (i.astype(np.float64) + 0.5) / factor - 0.5  # rounded once, other than half_pixel
            return wide.astype(np.float32)
        if mode in ("half_pixel", "tf_half_pixel_for_nn"):
            return (i + 0.5) / factor - (0.5 if mode == "half_pixel" else 0.0)
        raise OperatorError(f"unknown coordinate_transformation_mode '{mode}'")

    def _taps(self, x: Array, n: int, scale: float) -> tuple[Array, Array]:
        """Positions [out, taps], clamped, and weights."""
        if self.mode == "linear" and not self.antialias and not self.exclude_outside:
            return between(x, n)
        if not math.isfinite(self.cubic_coeff_a):
            raise OperatorError(f"a cubic_coeff_a of {self.cubic_coeff_a}")
        x = x.astype(np.float64)
        shrink = min(scale, 1.0) if self.antialias and x.size else 1.0
        reach = 1 if self.mode == "linear" else 2
        start = math.floor(-reach / shrink) + 1
        bounded(len(x) * (2 - 2 * start))
        base = np.ceil(x) - 1
        offsets = np.arange(start, 2 - start)
        positions = base[:, None] + offsets
        distance = (offsets - (x - base)[:, None]) * shrink
        weights = linear(distance) if self.mode == "linear" else cubic(distance, self.cubic_coeff_a)
        if self.exclude_outside:
            weights = np.where((positions < 0) | (positions >= n), 0.0, weights)
        if self.antialias or self.exclude_outside:
            with np.errstate(invalid="ignore"):  # of what is outside nothing is left
                weights = weights / weights.sum(axis=1, keepdims=True)
        used = np.flatnonzero((weights != 0).any(axis=0))
        keep = slice(int(used[0]), int(used[-1]) + 1) if used.size else slice(0, 1)
        return np.clip(positions, 0, n - 1)[:, keep].astype(np.int32), weights[:, keep]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x = required(inputs)
        plan = self._plan(inputs)
        crop = self.coordinate_transformation_mode == "tf_crop_and_resize"
        roi_data = static(inputs, 1, "the region of interest") if crop else None
        axes = list(plan)
        roi = (
            [0.0] * len(axes) + [1.0] * len(axes)
            if roi_data is None
            else [float(v) for v in roi_data.reshape(-1)]
        )
        if len(roi) != 2 * len(axes):
            raise OperatorError(f"the region of interest has {len(roi)} numbers, not two for each axis")
        if far := [v for v in roi if not abs(v) < _FARTHEST]:
            raise OperatorError(f"the region of interest reaches to {far[0]:g} images")
        bounded(sum(m for m, _ in plan.values()))
        tables: list[Value] = []
        moved: list[int] = []
        outside = np.zeros((1,) * x.type.rank, dtype=bool)
        for k, (a, (m, scale)) in enumerate(plan.items()):
            n = x.shape[a]
            if m == n and scale == 1.0 and not crop:
                continue
            at = self._positions(n, m, scale, (roi[k], roi[len(axes) + k]))
            if crop:
                outside = outside | ((at < 0) | (at > n - 1)).reshape(
                    [-1 if d == a else 1 for d in range(x.type.rank)]
                )
            moved.append(a)
            if self.mode == "nearest":
                tables.append(
                    build.constant(np.clip(nearest(at, self.nearest_mode), 0, n - 1).astype(np.int32))
                )
            else:
                positions, weights = self._taps(at, n, scale)
                dtype = x.dtype if x.dtype.is_float else DType.FLOAT32
                tables += [build.constant(positions), build.constant(weights, dtype)]
        if not moved:
            y = x
        elif self.mode == "nearest":
            y = build(NearestSample(tuple(moved)), x, *tables)
        else:
            y = build(Interpolation(tuple(moved)), x, *tables)
            y = y if x.dtype.is_float else build(Cast(x.dtype), y)
        if outside.any():
            y = build(
                Where(),
                build.constant(np.broadcast_to(outside, y.shape).copy()),
                build.constant(self.extrapolation_value, x.dtype),
                y,
            )
        return [y]

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.asarray(np.random.default_rng(8).uniform(-1, 1, (1, 2, 4, 5)), dtype=np.float32)

        def case(height: float, width: float, **attributes: Any) -> Sample:
            return Sample(
                (x, None, np.asarray([1, 1, height, width], np.float32)), attributes, frozenset({2})
            )

        modes = ("half_pixel", "align_corners", "asymmetric", "half_pixel_symmetric")
        found = [
            case(h, w, mode=m, coordinate_transformation_mode=c)
            for m in ("nearest", "linear", "cubic")
            for c in modes
            for h, w in ((2, 2), (0.6, 1.5))
        ]
        found += [
            case(2, 3, mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode=n)
            for n in ("floor", "ceil", "round_prefer_ceil")
        ]
        found += [case(0.5, 0.6, mode=m, antialias=1) for m in ("linear", "cubic")] + [
            case(0.8, 0.8, mode="cubic", exclude_outside=1)
        ]
        found.append(case(1.2, 1.1, mode="linear"))  # as large as before, and yet moved
        found += [
            case(0.25, w, mode=m, coordinate_transformation_mode="pytorch_half_pixel")  # one row
            for m, w in (("nearest", 0.4), ("linear", 0.4), ("linear", 1.5))
        ]
        region = np.asarray([0, 0, 0.15, 0.1, 1, 1, 0.85, 1.2], np.float32)  # beyond the last column
        crop = {"coordinate_transformation_mode": "tf_crop_and_resize", "extrapolation_value": 3.0}
        found += [
            Sample((x, region, np.asarray([1, 1, h, 2], np.float32)), {**crop, "mode": m}, frozenset({1, 2}))
            for m, h in (("nearest", 2), ("linear", 0.25))  # one row is the middle of the region
        ]
        sizes: tuple[tuple[tuple[int, int], dict[str, Any]], ...] = (
            ((7, 3), {}),
            ((9, 6), {"keep_aspect_ratio_policy": "not_larger"}),
            ((9, 6), {"keep_aspect_ratio_policy": "not_smaller"}),
        )
        return found + [
            Sample(
                (x, None, None, np.asarray(s, np.int64)),
                {"axes": (2, 3), "mode": "linear", **a},
                frozenset({3}),
            )
            for s, a in sizes
        ]
