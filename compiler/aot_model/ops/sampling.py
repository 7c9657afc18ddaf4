"""Operators that read images at computed places: GridSample, RoiAlign, CropAndResize.

Each result is a sum over the taps of an interpolation kernel around a place that is worked out from data.
Places are clamped before they become indices. Source: ONNX operator specification.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from aot_model.ir.expr import Expr, Index, call, cast, const, fresh, logical_and, reduce, select
from aot_model.ir.index import add, less, mul
from aot_model.ir.operator import At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ops.movement import safe_index
from aot_model.ops.registry import alike, counts, ints, numeric, operator, required, static

FAR = float(1 << 22)
"""Places further out than this are as good as at it; it is exact in float32."""


def _num(x: Expr, value: float) -> Expr:
    return const(value, x.dtype)


def tame(x: Expr) -> Expr:
    """A place made finite: far ones are clamped."""
    return call("min", call("max", x, _num(x, -FAR)), _num(x, FAR))


def as_float(i: Expr, dtype: DType) -> Expr:
    return call("cast", i, dtype=dtype)


def cubic_weight(distance: Expr, a: float = -0.75) -> Expr:
    """Keys' kernel."""
    d = call("abs", distance)

    def poly(*factors: float) -> Expr:
        total: Expr = _num(d, factors[0])
        for f in factors[1:]:
            total = call("add", call("mul", total, d), _num(d, f))
        return total

    near = poly(a + 2, -(a + 3), 0, 1)
    far = poly(a, -5 * a, 8 * a, -4 * a)
    return select(
        call("le", d, _num(d, 1), dtype=DType.BOOL),
        near,
        select(call("lt", d, _num(d, 2), dtype=DType.BOOL), far, _num(d, 0)),
    )


def clamp_index(i: Expr, extent: int) -> Expr:
    return call("min", call("max", i, const(0)), const(max(extent - 1, 0)))


WRITTEN_AXES = 3
"""Axes of images whose neighbours, two for each, are written one by one; of more they are turns of loops."""


class Tap(NamedTuple):
    """One of the neighbours of a place along an axis: which, and its share."""

    place: Expr
    weight: Expr | None


def linear_taps(place: Expr) -> list[Tap]:
    """The neighbours on both sides of a finite place."""
    base = call("floor", place)
    first, rest = cast(base, DType.INT32), call("sub", place, base)
    return [Tap(first, call("sub", _num(rest, 1), rest)), Tap(add(first, 1), rest)]


def within(i: Expr, extent: int) -> Expr:
    return logical_and(less(const(-1), i), less(i, extent))


def of_taps(axes: Sequence[Sequence[Tap]], value: Callable[[list[Expr], Expr | None], Expr]) -> list[Expr]:
    """What `value` makes of each choice of a neighbour along each axis, given where they are and the product
    of their shares.
    """
    found = []
    for taps in itertools.product(*axes):
        shares = [t.weight for t in taps if t.weight is not None]
        found.append(value([t.place for t in taps], total(shares, "mul") if shares else None))
    return found


def total(terms: Sequence[Expr], op: str = "add") -> Expr:
    return functools.reduce(lambda a, b: call(op, a, b), terms)


@operator("GridSample", reducing=True, rereads=True)
class GridSample(Operator):
    """x read at the places of a grid of coordinates in [-1, 1], in any number of spatial dimensions."""

    align_corners: int = 0
    mode: str = "linear"
    padding_mode: str = "zeros"

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, grid = numeric(inputs), numeric(inputs, 1)
        d = x.type.rank - 2
        if d < 1 or grid.type.rank != x.type.rank or grid.shape[-1] != d or grid.shape[0] != x.shape[0]:
            raise OperatorError(f"grid {grid.type} does not fit {x.type}")
        if self._mode() not in ("linear", "nearest", "cubic") or self.padding_mode not in (
            "zeros",
            "border",
            "reflection",
        ):
            raise OperatorError(f"unknown mode '{self.mode}' or padding_mode '{self.padding_mode}'")
        return [TensorType(x.dtype, (*x.shape[:2], *grid.shape[1:-1]))]

    def _mode(self) -> str:
        return {"bilinear": "linear", "bicubic": "cubic"}.get(self.mode, self.mode)

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x, grid = required(inputs, 0), required(inputs, 1)
        d, over = x.type.rank - 2, list[Expr]()
        axes: list[list[Tap]] = []
        for k in range(d):
            extent = x.shape[2 + k]
            n = at(grid, (index[0], *index[2:], const(d - 1 - k)))
            up = call("add", n, _num(n, 1))
            if self.align_corners:
                p = call("mul", up, _num(n, (extent - 1) / 2))
            else:
                p = call("mul", call("sub", call("mul", up, _num(n, extent)), _num(n, 1)), _num(n, 0.5))
            axes.append(self._taps(tame(p), d, over))

        def value(chosen: list[Expr], weight: Expr | None) -> Expr:
            inside: Expr = const(True, DType.BOOL)
            place: list[Expr] = [index[0], index[1]]
            for i, extent in zip(chosen, x.shape[2:], strict=True):
                i = self._reflected(i, extent) if self.padding_mode == "reflection" else i
                inside = logical_and(inside, within(i, extent)) if self.padding_mode == "zeros" else inside
                place.append(clamp_index(i, extent))
            element = at(x, tuple(place))
            element = element if weight is None else call("mul", element, cast(weight, x.dtype))
            return select(inside, element, const(0, x.dtype))

        element = total(of_taps(axes, value))
        return reduce("add", tuple(over), element) if over else element

    def _taps(self, place: Expr, axes: int, over: list[Expr]) -> list[Tap]:
        """The neighbours of a place along one of so many axes; those of a loop, which is added to `over`, are
        one.
        """
        mode = self._mode()
        if mode == "nearest":
            return [Tap(cast(call("rint", place), DType.INT32), None)]
        if mode == "linear" and axes <= WRITTEN_AXES:
            return linear_taps(place)
        base, tap = call("floor", place), fresh("k", 2 if mode == "linear" else 4)
        over.append(tap)
        first, rest = cast(base, DType.INT32), call("sub", place, base)
        if mode == "linear":
            weight = call("abs", call("sub", as_float(add(mul(tap, -1), 1), place.dtype), rest))
            return [Tap(add(first, tap), weight)]
        return [
            Tap(add(add(first, tap), -1), cubic_weight(call("sub", rest, as_float(add(tap, -1), rest.dtype))))
        ]

    def _reflected(self, i: Expr, extent: int) -> Expr:
        if self.align_corners:
            period = max(2 * (extent - 1), 1)
            m = call("mod", i, const(period))
            return call("min", m, call("sub", const(period), m))
        m = call("mod", i, const(2 * extent))
        return call("min", m, call("sub", const(2 * extent - 1), m))

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(12)

        def draw(*shape: int) -> np.ndarray:
            return np.asarray(rng.uniform(-1.2, 1.2, shape), np.float32)

        x = np.asarray(rng.uniform(-1, 1, (1, 2, 4, 5)), np.float32)
        grid = np.asarray(rng.uniform(-1.4, 1.4, (1, 3, 4, 2)), np.float32)
        return [
            Sample((x, grid), {"mode": m, "padding_mode": p, "align_corners": a})
            for m in ("linear", "nearest", "cubic")
            for p in ("zeros", "border", "reflection")
            for a in (0, 1)
        ] + [
            # so many axes that neighbours are turns of loops, and as many as are not
            *(
                Sample((draw(1, 2, *(3,) * d), draw(1, *(2,) * d, d)), {"mode": "linear"})
                for d in (1, WRITTEN_AXES, WRITTEN_AXES + 1)
            ),
            # one row: a place beside it is reflected to it
            Sample(
                (np.asarray(rng.uniform(-1, 1, (2, 3, 1, 5)), np.float32), np.repeat(grid[:, :2], 2, 0)),
                {"padding_mode": "reflection", "align_corners": 1},
            ),
        ]


MAX_RATIO = 1 << 12
"""Samples of a bin along one axis: those of both are counted in 32 bits, and so are their loops."""


@operator("RoiAlign", reducing=True, rereads=True)
class RoiAlign(Operator):
    """Average or maximum of bilinear samples in the bins of boxes."""

    coordinate_transformation_mode: str = "half_pixel"
    mode: str = "avg"
    output_height: int = 1
    output_width: int = 1
    sampling_ratio: int = 0
    spatial_scale: float = 1.0

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, rois, batch = numeric(inputs), required(inputs, 1), required(inputs, 2)
        if x.type.rank != 4 or rois.type.rank != 2 or rois.shape[1] != 4 or batch.shape != rois.shape[:1]:
            raise OperatorError(f"boxes {rois.type} and batch indices {batch.type} do not fit {x.type}")
        alike(x, rois)
        counts(batch)
        if self.sampling_ratio < 1:
            raise OperatorError(
                "a sampling_ratio of 0 (as many samples as the box is large) is not supported", "E202"
            )
        if self.sampling_ratio > MAX_RATIO:
            raise OperatorError(f"a sampling_ratio of {self.sampling_ratio} is more than {MAX_RATIO}", "E202")
        return [TensorType(x.dtype, (rois.shape[0], x.shape[1], self.output_height, self.output_width))]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x, rois, batch = (required(inputs, k) for k in range(3))
        roi, channel, *bin_index = index
        half = self.coordinate_transformation_mode == "half_pixel"
        steps = [fresh("s", self.sampling_ratio), fresh("s", self.sampling_ratio)]
        inside: Expr = const(True, DType.BOOL)
        axes: list[list[Tap]] = []
        for d, bins in enumerate((self.output_height, self.output_width)):
            extent = x.shape[2 + d]
            begin, end = (at(rois, (roi, const(k))) for k in (1 - d, 3 - d))
            begin, end = (
                call("sub", call("mul", v, _num(v, self.spatial_scale)), _num(v, 0.5 if half else 0.0))
                for v in (begin, end)
            )
            size = call("sub", end, begin)
            size = size if half else call("max", size, _num(size, 1))
            width = call("div", size, _num(size, bins))
            step = call(
                "div",
                call("add", as_float(steps[d], size.dtype), _num(size, 0.5)),
                _num(size, self.sampling_ratio),
            )
            p = call("add", begin, call("mul", width, call("add", as_float(bin_index[d], size.dtype), step)))
            inside = logical_and(
                inside,
                logical_and(
                    call("le", _num(p, -1), p, dtype=DType.BOOL),
                    call("le", p, _num(p, extent), dtype=DType.BOOL),
                ),
            )
            p = call("min", call("max", tame(p), _num(p, 0)), _num(p, extent - 1))
            axes.append(linear_taps(p))
        image = safe_index(at(batch, (roi,)), x.shape[0])

        def value(chosen: list[Expr], weight: Expr | None) -> Expr:
            assert weight is not None
            place = (clamp_index(i, extent) for i, extent in zip(chosen, x.shape[2:], strict=True))
            return call("mul", weight, at(x, (image, channel, *place)))

        values = of_taps(axes, value)
        nothing = const(0, x.dtype)
        if self.mode == "max":
            return reduce("max", tuple(steps), select(inside, total(values, "max"), nothing))
        whole = reduce("add", tuple(steps), select(inside, total(values), nothing))
        return call("div", whole, const(self.sampling_ratio**2, x.dtype))

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(14)
        x = np.asarray(rng.uniform(0, 1, (2, 3, 7, 8)), np.float32)
        rois = np.asarray([[0, 0, 5, 6], [2.5, 1, 7, 7.5]], np.float32)
        fixed = {"output_height": 2, "output_width": 3, "sampling_ratio": 3}
        return [
            Sample(
                (x, rois, np.asarray([0, 1], np.int64)),
                {**fixed, "mode": m, "coordinate_transformation_mode": c, "spatial_scale": s},
            )
            for m, c, s in (("avg", "half_pixel", 1.0), ("max", "output_half_pixel", 0.75))
        ]


@operator("CropAndResize", domain="com.microsoft", inputs=4, reducing=True, rereads=True)
class CropAndResize(Operator):
    """Crops of images at boxes (y1, x1, y2, x2) in units of the image, brought to one size. Source: ONNX
    Runtime's contrib operators.

    Inputs: images, boxes, the image of each box, the size. Corners meet corners; places outside give a
    number.
    """

    extrapolation_value: float = 0.0
    mode: str = "bilinear"

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, boxes, batch = numeric(inputs), required(inputs, 1), required(inputs, 2)
        counts(batch)
        size = static(inputs, 3, "the size of the crops")
        if x.type.rank != 4 or boxes.type.rank != 2 or boxes.shape[1] != 4 or batch.shape != boxes.shape[:1]:
            raise OperatorError(f"boxes {boxes.type} and batch indices {batch.type} do not fit {x.type}")
        if boxes.dtype is not x.dtype:
            raise OperatorError(f"boxes {boxes.type} are of another type than {x.type}", "E202")
        if size is None or size.size != 2 or min(ints(size)) < 1 or not x.type.elements:
            raise OperatorError("the size of the crops is not two positive numbers, or the images are empty")
        if self.mode not in ("bilinear", "nearest"):
            raise OperatorError(f"mode '{self.mode}' is not known")
        return [TensorType(x.dtype, (boxes.shape[0], x.shape[1], *ints(size)))]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        x, boxes, batch = (required(inputs, k) for k in range(3))
        size = static(inputs, 3, "the size of the crops")
        assert size is not None
        roi, channel, *pixel = index
        inside: Expr = const(True, DType.BOOL)
        axes: list[list[Tap]] = []
        for d, steps in enumerate(ints(size)):
            last = x.shape[2 + d] - 1
            begin, end = (at(boxes, (roi, const(k))) for k in (d, 2 + d))
            if steps > 1:
                step = call(
                    "div", call("mul", call("sub", end, begin), _num(end, last)), _num(end, steps - 1)
                )
                p = call(
                    "add",
                    call("mul", begin, _num(begin, last)),
                    call("mul", as_float(pixel[d], begin.dtype), step),
                )
            else:
                p = call("mul", call("mul", _num(begin, 0.5), call("add", begin, end)), _num(begin, last))
            inside = logical_and(
                inside,
                logical_and(
                    call("le", _num(p, 0), p, dtype=DType.BOOL),
                    call("le", p, _num(p, last), dtype=DType.BOOL),
                ),
            )
            p = call("min", call("max", tame(p), _num(p, 0)), _num(p, last))
            nearest = self.mode == "nearest"
            axes.append([Tap(cast(call("round", p), DType.INT32), None)] if nearest else linear_taps(p))
        image = safe_index(at(batch, (roi,)), x.shape[0])

        def value(chosen: list[Expr], weight: Expr | None) -> Expr:
            place = (clamp_index(i, extent) for i, extent in zip(chosen, x.shape[2:], strict=True))
            element = at(x, (image, channel, *place))
            return element if weight is None else call("mul", weight, element)

        return select(inside, total(of_taps(axes, value)), const(self.extrapolation_value, x.dtype))

    @classmethod
    def samples(cls) -> list[Sample]:
        rng = np.random.default_rng(15)
        x = np.asarray(rng.uniform(0, 1, (2, 3, 7, 9)), np.float32)
        # no ties: FMA would decide them
        boxes = np.asarray([[0.1, 0.2, 0.83, 0.9], [0.71, 0.9, 0.2, 0.15], [-0.2, 0.1, 0.5, 1.3]], np.float32)
        batch, constants = np.asarray([1, 0, 1], np.int32), frozenset({3})
        sizes = [np.asarray(s, np.int32) for s in ((4, 5), (1, 3), (11, 1))]
        return [
            Sample((x, boxes, batch, s), {"mode": m, "extrapolation_value": e}, constants)
            for s in sizes
            for m, e in (("bilinear", 1.25), ("nearest", -3.5))
        ]
