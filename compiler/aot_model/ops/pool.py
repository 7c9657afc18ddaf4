"""Pool: maximum, average or sum over windows, channels last. channels_first.py has ONNX's operators, which
expand into it.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from aot_model.ir.expr import Expr, Index, call, cast, const, fresh, logical_and, reduce, select
from aot_model.ir.index import add, floordiv, less, mul
from aot_model.ir.operator import Arrays, At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.kernels.site import Site
from aot_model.ops.products import draw
from aot_model.ops.registry import operator, required
from aot_model.ops.windows import Ints, check_windows


@operator("Pool", domain="aot")
class Pool(Operator):
    """Maximum, average or sum over windows, channels last. An average counts padding only with
    count_include_pad.

    The average of integers is exact, rounded to the nearest integer with ties away from zero.
    """

    reducing: ClassVar[bool] = True
    rereads: ClassVar[bool] = True

    mode: str
    kernel: Ints
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

    @property
    def misses(self) -> bool:
        """Whether windows may have no element: all taps in the padding, the image between them."""
        return any(self.pads) and max(self.dilations) > 1

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        d = x.type.rank - 2
        if d < 1 or any(
            len(v) != n
            for v, n in [(self.kernel, d), (self.strides, d), (self.dilations, d), (self.pads, 2 * d)]
        ):
            raise OperatorError(f"a {len(self.kernel)}-D window does not fit {x.type}")
        check_windows(x.shape[1:-1], self.kernel, self.strides, self.pads, self.dilations)
        if any(p >= n for p, n in zip(self.pads, self.kernel * 2, strict=True)):
            raise OperatorError(f"pads {self.pads} are not smaller than the window {self.kernel}")
        spatial = tuple(self._window(x.shape[1 + k], k) for k in range(d))
        if min(spatial) < 1:
            raise OperatorError(f"the window {self.kernel} is larger than the padded input {x.type}")
        return [TensorType(x.dtype, (x.shape[0], *spatial, x.shape[-1]))]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
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
            return cast(
                call("div", select(up, call("add", total, half), call("sub", total, half)), count), x.dtype
            )
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
        given: list[dict[str, Any]] = [
            {},
            {"strides": (2, 2)},
            {"pads": (1, 0, 0, 1)},
            {"strides": (2, 3), "ceil_mode": 1},
            {"pads": (1, 1, 1, 1), "strides": (2, 2), "ceil_mode": 1},
            {"dilations": (2, 2)},
        ]
        kinds = [
            ("max", np.float32),
            ("average", np.float32),
            ("sum", np.float32),
            ("max", np.int8),
            ("average", np.int8),
            ("average", np.uint8),
            ("max", np.uint8),
            ("average", np.int16),
        ]
        plain = [
            Sample((draw(a, 2, 7, 6, 5),), {"mode": m, "kernel": (3, 2), **g})
            for m, a in kinds
            for g in given
        ]
        counted = [
            Sample(
                (draw(a, 1, 5, 4, 3),),
                {"mode": "average", "kernel": (2, 3), "pads": (1, 1, 1, 1), "count_include_pad": 1},
            )
            for a in (np.float32, np.int8)
        ]
        ties = np.asarray([-5, 6, -7, 8, -3, 0, 127, 126, -128, -127], np.int8).reshape(1, 10, 1)
        line = {"kernel": (2,), "strides": (1,), "pads": (0, 0), "dilations": (1,)}
        return [*plain, *counted, *(Sample((ties,), {"mode": m, **line}) for m in ("average", "max"))]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x, d = np.asarray(arrays[0]), len(self.kernel)
        counts = []
        for k in range(d):
            room = (
                x.shape[1 + k]
                + self.pads[k]
                + self.pads[d + k]
                - self.dilations[k] * (self.kernel[k] - 1)
                - 1
            )
            count = (-(-room // self.strides[k]) if self.ceil_mode else room // self.strides[k]) + 1
            counts.append(
                count - (self.ceil_mode and (count - 1) * self.strides[k] >= x.shape[1 + k] + self.pads[k])
            )
        y = np.zeros((x.shape[0], *counts, x.shape[-1]), np.float64)
        for at in np.ndindex(*counts):
            spots = [
                tuple(
                    a * s - p + t * e
                    for a, s, p, t, e in zip(at, self.strides, self.pads, taps, self.dilations, strict=False)
                )
                for taps in np.ndindex(*self.kernel)
            ]
            inside = [
                (slice(None), *s)
                for s in spots
                if all(0 <= v < n for v, n in zip(s, x.shape[1:-1], strict=True))
            ]
            seen, result = np.stack([x[s] for s in inside]).astype(np.float64), (slice(None), *at)
            counted = (
                sum(
                    all(
                        -p <= v < n + e
                        for v, n, p, e in zip(s, x.shape[1:-1], self.pads, self.pads[d:], strict=False)
                    )
                    for s in spots
                )
                if self.count_include_pad
                else len(seen)
            )
            y[result] = (
                seen.max(axis=0)
                if self.mode == "max"
                else seen.sum(axis=0) / (1 if self.mode == "sum" else counted)
            )
        return [(np.copysign(np.floor(np.abs(y) + 0.5), y) if x.dtype.kind in "iu" else y).astype(x.dtype)]
