"""Convolution and its gradient by the input (transposed convolution), channels last. channels_first.py has
ONNX's operators, which expand into them.

Activations are (N, spatial…, C), weights (O, spatial…, I / group). Integer inputs give int32 accumulators,
from which the zero points are subtracted: acc = sum((x - x_zero_point) * (w - w_zero_point)); requantisation
follows in the tail.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from aot_model.ir.expr import Expr, Index, call, const, fresh, logical_and, reduce, select
from aot_model.ir.index import add, floordiv, less, mod, mul, sub
from aot_model.ir.operator import Arrays, At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.kernels.site import Site
from aot_model.ops.products import accumulator, draw, product
from aot_model.ops.registry import operator, required
from aot_model.ops.windows import Ints, check_windows, window


def _placed(
    x: np.ndarray, op: Convolution | ConvolutionTranspose, small: Ints, taps: Ints
) -> tuple[Ints, Ints] | None:
    """For references: (position at the strided side, at the other) of a tap, None where that is outside."""
    other = tuple(
        p * s + k * d - b
        for p, s, k, d, b in zip(small, op.strides, taps, op.dilations, op.pads, strict=False)
    )
    return (small, other) if all(0 <= p < n for p, n in zip(other, x.shape[1:-1], strict=True)) else None


@dataclass(frozen=True)
class _Met:
    """The taps that an output may meet along one axis: `tap`, an expression of `over`; which element of x it
    meets there, and whether it meets one at all (before the ends of x are looked at).
    """

    over: Expr
    tap: Expr
    place: Expr
    hit: Expr


def _sum_of_taps(
    op: Convolution | ConvolutionTranspose, at: At, inputs: Inputs, index: Index, met: Callable[[int], _Met]
) -> Expr:
    """Over taps and channels of a group. met: for each axis."""
    x, w = required(inputs, 0), required(inputs, 1)
    axes = [met(k) for k in range(x.type.rank - 2)]
    channel = fresh("c", w.shape[-1])
    inside: Expr = const(True, DType.BOOL)
    place: list[Expr] = [index[0]]
    for k, a in enumerate(axes):
        within = logical_and(less(const(-1), a.place), less(a.place, x.shape[1 + k]))
        inside = logical_and(inside, logical_and(a.hit, within))
        place.append(a.place)
    group = floordiv(index[-1], w.shape[0] // op.group)
    place.append(add(mul(group, w.shape[-1]), channel))
    taps = (index[-1], *(a.tap for a in axes), channel)
    term = product(at(x, tuple(place)), op.x_zero_point, at(w, taps), op.w_zero_point)
    return reduce("add", (*(a.over for a in axes), channel), select(inside, term, const(0, term.dtype)))


_LONGEST_PERIOD = 2**15
"""The square of it is an index."""


def _gathered(out: Expr, taps: int, stride: int, dilation: int, pad: int) -> _Met:
    """The taps of a transposed convolution that an output meets: k with k * dilation = out + pad modulo the
    stride. They are the same residue modulo stride / gcd(stride, dilation), so that only they are visited.
    """
    reach, common = add(out, pad), math.gcd(stride, dilation)
    period = stride // common
    hit: Expr = const(True, DType.BOOL)
    if common > 1:
        hit = call("eq", mod(reach, common), const(0), dtype=DType.BOOL)
    if period > _LONGEST_PERIOD:
        tap = over = fresh("k", taps)
        met = mod(sub(reach, mul(tap, dilation)), stride)
        return _Met(
            over,
            tap,
            floordiv(sub(reach, mul(tap, dilation)), stride),
            call("eq", met, const(0), dtype=DType.BOOL),
        )
    over = fresh("k", -(-taps // period))
    inverse = pow(dilation // common, -1, period) if period > 1 else 0
    first = mod(mul(mod(floordiv(reach, common), period), inverse), period)
    tap = add(mul(over, period), first)
    place = floordiv(sub(reach, mul(tap, dilation)), stride)
    if dilation == 1:
        place = sub(floordiv(reach, stride), over)
    return _Met(over, tap, place, logical_and(hit, less(tap, taps)))


def _correlation(
    op: Convolution | ConvolutionTranspose, arrays: Arrays, shape: Ints, transposed: bool
) -> list[np.ndarray]:
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


@operator("Convolution", domain="aot")
class Convolution(Operator):
    """y[n, p…, o] = sum over k…, i of x[n, p * stride + k * dilation - begin, group * I + i] * w[o, k…,
    i].
    """

    reducing: ClassVar[bool] = True
    rereads: ClassVar[bool] = True
    takes_nibbles: ClassVar[frozenset[int]] = frozenset({1})

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
                f"weights {w.type} with {self.group} groups do not fit {x.shape[-1]} input channels"
            )
        if len(self.strides) != d or len(self.dilations) != d or len(self.pads) != 2 * d:
            raise OperatorError(
                f"strides {self.strides}, dilations {self.dilations}, pads {self.pads} do not fit {d} "
                "spatial axes"
            )
        check_windows(x.shape[1:-1], w.shape[1:-1], self.strides, self.pads, self.dilations)
        spatial = tuple(
            window(
                x.shape[1 + k],
                w.shape[1 + k],
                self.strides[k],
                self.dilations[k],
                self.pads[k],
                self.pads[d + k],
            )
            for k in range(d)
        )
        if min(spatial) < 0:
            raise OperatorError(f"the window is larger than the padded input {x.type}")
        return [TensorType(accumulator(x.dtype), (x.shape[0], *spatial, w.shape[0]))]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        w = required(inputs, 1)

        def met(k: int) -> _Met:
            tap = fresh("k", w.shape[1 + k])
            p = add(add(mul(index[1 + k], self.strides[k]), mul(tap, self.dilations[k])), -self.pads[k])
            return _Met(tap, tap, p, const(True, DType.BOOL))

        return _sum_of_taps(self, at, inputs, index, met)

    def reads_strided(self, inputs: Inputs, index: int, strides: Ints) -> bool:
        """Only few channels: where they are many, one transposing copy is cheaper than strided reads for
        every tap.
        """
        return (
            index == 0
            and (required(inputs).shape[-1] <= 4 or strides[-1] == 1)
            and required(inputs).dtype.is_float
            and self.group == 1
        )

    def lower(self, site: Site) -> None:
        site.emit_kernel()

    @classmethod
    def samples(cls) -> list[Sample]:
        given: list[dict[str, Any]] = [
            {},
            {"strides": (2, 1), "pads": (1, 0, 2, 1)},
            {"dilations": (2, 2), "pads": (2, 2, 1, 1)},
            {"x_zero_point": -7, "w_zero_point": 3, "pads": (1, 1, 1, 1)},
        ]
        kinds = ((np.float32, np.float32), (np.int8, np.int8), (np.uint8, np.int8), (np.int16, np.int8))
        plain = [
            Sample((draw(a, 2, 6, 5, 4), draw(b, 6, 3, 2, 4)), g, frozenset({1}))
            for a, b in kinds
            for g in given
            if not (a is np.float32 and "x_zero_point" in g)
        ]
        line = Sample(
            (draw(np.int8, 1, 9, 3), draw(np.int8, 2, 4, 3)),
            {"strides": (2,), "pads": (1, 2), "dilations": (1,)},
        )
        volumes = [
            Sample(
                (draw(np.float32, 2, 5, 4, 6, a), draw(np.float32, 6, 3, 2, 3, a // n)),
                {"strides": strides, "pads": pads, "dilations": (1, 1, dilation), "group": n},
                frozenset({1}),
            )
            for a, n, strides, pads, dilation in (
                (3, 1, (2, 1, 1), (1, 1, 0, 2, 1, 1), 1),
                (8, 2, (1, 2, 1), (2, 0, 2, 2, 1, 1), 2),
            )
        ]
        f = np.float32
        inputs = [  # weights that are no constants
            Sample((draw(f, 2, 6, 5, 4), draw(f, 9, 3, 2, 4)), {"strides": (2, 1), "pads": (1, 0, 2, 1)}),
            Sample((draw(f, 1, 5, 5, 6), draw(f, 10, 3, 3, 3)), {"group": 2, "dilations": (1, 2)}),
            Sample((draw(f, 1, 6, 6, 5), draw(f, 5, 3, 3, 1)), {"group": 5, "pads": (1, 1, 1, 1)}),
            Sample(
                (draw(f, 2, 9, 1), draw(f, 4, 3, 1)), {"strides": (1,), "pads": (1, 1), "dilations": (1,)}
            ),
            Sample((draw(f, 2, 3, 3, 7), draw(f, 5, 1, 1, 7))),
            Sample((draw(f, 1, 3, 3, 2), draw(f, 5, 3, 3, 2))),
            Sample(
                (draw(f, 2, 4, 4, 5, 3), draw(f, 6, 3, 2, 3, 3)),
                {"strides": (1, 2, 1), "pads": (1, 0, 1, 1, 0, 1), "dilations": (1, 1, 1)},
            ),
        ]
        return [
            *plain,
            *volumes,
            line,
            *inputs,
            *(
                Sample((draw(a, 1, 5, 5, 4), draw(b, 8, 3, 3, 4 // n)), {"group": n}, frozenset({1}))
                for a, b in kinds[:2]
                for n in (2, 4)
            ),
        ]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x, w = (np.asarray(a) for a in arrays)
        d = x.ndim - 2
        spatial = (
            (x.shape[1 + k] + self.pads[k] + self.pads[d + k] - self.dilations[k] * (w.shape[1 + k] - 1) - 1)
            // self.strides[k]
            + 1
            for k in range(d)
        )
        return _correlation(self, arrays, (x.shape[0], *spatial, w.shape[0]), False)


@operator("ConvolutionTranspose", domain="aot")
class ConvolutionTranspose(Operator):
    """The gradient of Convolution by its input: each x adds w * x to a window of y. w is (O, spatial…, I /
    group).
    """

    reducing: ClassVar[bool] = True
    rereads: ClassVar[bool] = True

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
            for v, n in [(self.strides, d), (self.dilations, d), (self.pads, 2 * d), (self.output_padding, d)]
        ):
            raise OperatorError(
                f"strides {self.strides}, dilations {self.dilations}, pads {self.pads} do not fit {d} "
                "spatial axes"
            )
        check_windows(x.shape[1:-1], w.shape[1:-1], self.strides, self.pads, self.dilations, crops=True)
        spatial = tuple(
            self.strides[k] * (x.shape[1 + k] - 1)
            + self.output_padding[k]
            + (w.shape[1 + k] - 1) * self.dilations[k]
            + 1
            - self.pads[k]
            - self.pads[d + k]
            for k in range(d)
        )
        if w.shape[-1] * self.group != x.shape[-1] or w.shape[0] % self.group:
            raise OperatorError(
                f"weights {w.type} with {self.group} groups do not fit {x.shape[-1]} input channels"
            )
        if min(spatial) < 1:
            raise OperatorError(
                f"pads {self.pads} leave {' x '.join(map(str, spatial))} elements of a result, not one"
            )
        return [TensorType(accumulator(x.dtype), (x.shape[0], *spatial, w.shape[0]))]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        w = required(inputs, 1)

        def met(k: int) -> _Met:
            return _gathered(index[1 + k], w.shape[1 + k], self.strides[k], self.dilations[k], self.pads[k])

        return _sum_of_taps(self, at, inputs, index, met)

    def lower(self, site: Site) -> None:
        site.emit_kernel()

    @classmethod
    def samples(cls) -> list[Sample]:
        given: list[dict[str, Any]] = [
            {},
            {"strides": (2, 3)},
            {"pads": (1, 0, 0, 1), "strides": (2, 2)},
            {"dilations": (2, 1), "output_padding": (1, 0), "strides": (2, 2)},
        ]
        kinds = ((np.float32, np.float32), (np.int8, np.int8), (np.int16, np.int8))
        plain = [
            Sample((draw(a, 2, 3, 4, 4), draw(b, 6, 3, 2, 4)), g, frozenset({1}))
            for a, b in kinds
            for g in given
        ]
        zero = Sample(
            (draw(np.int8, 1, 3, 3, 2), draw(np.int8, 3, 2, 2, 2)),
            {"x_zero_point": 5, "w_zero_point": -2, "strides": (2, 1)},
            frozenset({1}),
        )
        f = np.float32
        inputs = [  # weights that are no constants
            Sample((draw(f, 2, 3, 4, 4), draw(f, 6, 3, 2, 4)), {"strides": (2, 3), "pads": (1, 0, 0, 1)}),
            Sample((draw(f, 1, 4, 4, 4), draw(f, 6, 3, 3, 2)), {"group": 2, "strides": (2, 2)}),
            *(
                Sample((draw(a, 2, 5, 4, 4), draw(a, 6, 3, 2, 4)), {"strides": (3, 1), "dilations": (2, 2)})
                for a in (f, np.int8, np.int16, np.float64)
            ),
        ]
        # and more cases than a kernel has (kernels/cases.py)
        loops = [
            Sample(
                (draw(np.float32, 1, 4, 3, 2), draw(np.float32, 3, 5, 4, 2)),
                {"strides": s, "dilations": d, "pads": (2, 3, 1, 0), "output_padding": (0, 1)},
            )
            for s, d in (((1, 1), (2, 3)), ((3, 2), (1, 1)), ((6, 4), (4, 6)), ((5, 3), (3, 5)))
        ]
        wide = [
            Sample(
                (draw(a, 1, 3, 2), draw(np.float32 if a is np.float32 else np.int8, 3, 4, 2)),
                {"strides": (s,), "dilations": (d,), "pads": (1, 0), "output_padding": (0,)},
                frozenset({1}),
            )
            for a in (np.float32, np.int8, np.int16)
            for s, d in ((1, 3000), (3000, 1), (201, 134), (2999, 3000))
        ]
        far = Sample(
            (draw(np.float32, 1, 2, 1), draw(np.float32, 1, 2, 1)),
            {"strides": (40000,), "dilations": (3,), "pads": (0, 0), "output_padding": (0,)},
        )
        return [
            *plain,
            zero,
            *inputs,
            *loops,
            *wide,
            far,
            *(
                Sample(
                    (draw(a, 1, 4, 4, 4), draw(b, 4, 3, 3, 2)),
                    {"group": 2, "strides": (2, 2)},
                    frozenset({1}),
                )
                for a, b in kinds[:2]
            ),
        ]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x, w = (np.asarray(a) for a in arrays)
        d = x.ndim - 2
        span = [
            self.strides[k] * (x.shape[1 + k] - 1)
            + self.dilations[k] * (w.shape[1 + k] - 1)
            + 1
            + self.output_padding[k]
            for k in range(d)
        ]
        return _correlation(
            self,
            arrays,
            (x.shape[0], *(n - self.pads[k] - self.pads[d + k] for k, n in enumerate(span)), w.shape[0]),
            True,
        )
