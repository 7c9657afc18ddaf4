"""com.microsoft: operators that ONNX took later, or that only move elements. Source: ONNX Runtime's contrib
operators.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from aot_model.ir.operator import Inputs, OperatorError, Sample
from aot_model.ir.values import Value
from aot_model.ops.channels_first import channels_first, channels_last
from aot_model.ops.composition import Algebra, Composition, present
from aot_model.ops.microsoft_activation import drawn
from aot_model.ops.movement import Pad
from aot_model.ops.registry import OPERATORS, Build, ints, operator, required, static, whole

Ints = tuple[int, ...]


def _standard(name: str, **attributes: Any) -> Any:
    return OPERATORS["", name](**attributes)


@operator("Trilu", domain="com.microsoft", inputs=2)
class Trilu(Composition):
    """ONNX's Trilu."""

    upper: int = 1

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        return [build(_standard("Trilu", upper=self.upper), *inputs)]

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            Sample((drawn(1, 2, 3, 4), np.asarray([1], np.int64)), {"upper": u}, frozenset({1}))
            for u in (0, 1)
        ] + [Sample((drawn(1, 3, 3),))]


@operator("ExpandDims", domain="com.microsoft", inputs=2)
class ExpandDims(Composition):
    """Unsqueeze of one axis."""

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x, axis = required(inputs), static(inputs, 1, "the axis")
        if axis is None:
            raise OperatorError("the axis is missing")
        k = whole(axis, "the axis")
        if not -x.type.rank - 1 <= k <= x.type.rank:
            raise OperatorError(f"axis {k} is out of range for rank {x.type.rank}")
        # A negative axis counts from behind the new one.
        at = k if k >= 0 else k + x.type.rank + 1
        return [Algebra(build).reshape(x, *x.shape[:at], 1, *x.shape[at:])]

    @classmethod
    def samples(cls) -> list[Sample]:
        return [Sample((drawn(1, 2, 3), np.asarray(k, np.int32)), {}, frozenset({1})) for k in (0, 1, 2, -1)]


@operator("Pad", domain="com.microsoft", inputs=3)
class MicrosoftPad(Composition):
    """ONNX's Pad."""

    mode: str = "constant"

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        pads = static(inputs, 1, "the pads")
        flat = build.constant(np.asarray(ints(pads) if pads is not None else (), np.int64))
        return [build(Pad(self.mode), required(inputs), flat, present(inputs, 2))]

    @classmethod
    def samples(cls) -> list[Sample]:
        pads = np.asarray([1, 0, 0, 2], np.int64)
        return [
            Sample((drawn(1, 2, 3), pads, np.asarray([1.5], np.float32)), {}, frozenset({1, 2})),
            Sample((drawn(1, 2, 3), pads), {"mode": "edge"}, frozenset({1})),
        ]


@operator("GatherND", domain="com.microsoft", inputs=2)
class MicrosoftGatherND(Composition):
    """ONNX's GatherND."""

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        return [build(_standard("GatherND"), *inputs)]

    @classmethod
    def samples(cls) -> list[Sample]:
        return [Sample((drawn(1, 2, 3, 4), np.asarray([[0, 1], [1, 2]], np.int64)))]


@operator("GridSample", domain="com.microsoft", inputs=2)
class MicrosoftGridSample(Composition):
    """ONNX's GridSample of opset 16."""

    align_corners: int = 0
    mode: str = "bilinear"
    padding_mode: str = "zeros"

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        mode = {"bilinear": "linear", "bicubic": "cubic"}.get(self.mode, self.mode)
        return [
            build(
                _standard(
                    "GridSample", align_corners=self.align_corners, mode=mode, padding_mode=self.padding_mode
                ),
                *inputs,
            )
        ]

    @classmethod
    def samples(cls) -> list[Sample]:
        x, grid = drawn(1, 1, 2, 4, 5), drawn(2, 1, 3, 3, 2, most=1.2)
        return [
            Sample((x, grid), {"mode": m, "padding_mode": p})
            for m, p in (("bilinear", "zeros"), ("nearest", "border"), ("bicubic", "reflection"))
        ]


@operator("Range", domain="com.microsoft", inputs=3)
class MicrosoftRange(Composition):
    """ONNX's Range; without a delta it is 1."""

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        start, limit, delta = required(inputs, 0), required(inputs, 1), present(inputs, 2)
        return [
            build(
                _standard("Range"), start, limit, build.constant(1, start.dtype) if delta is None else delta
            )
        ]

    @classmethod
    def samples(cls) -> list[Sample]:
        one, ten, three = (np.asarray(v, np.float32) for v in (1, 10, 3))
        return [
            Sample((one, ten, three), {}, frozenset({0, 1, 2})),
            Sample((one, ten), {}, frozenset({0, 1})),
        ]


@operator("NhwcMaxPool", domain="com.microsoft", inputs=1)
class NhwcMaxPool(Composition):
    """MaxPool, channels last."""

    kernel_shape: Ints
    auto_pad: str = "NOTSET"
    ceil_mode: int = 0
    dilations: Ints | None = None
    pads: Ints | None = None
    strides: Ints | None = None

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        if self.auto_pad.startswith("SAME") and any(d != 1 for d in self.dilations or ()):
            raise OperatorError(
                f"auto_pad {self.auto_pad} with dilations {list(self.dilations or ())}: give the pads"
            )  # ONNX Runtime leaves dilations out of account
        pool = _standard(
            "MaxPool",
            kernel_shape=self.kernel_shape,
            auto_pad=self.auto_pad,
            ceil_mode=self.ceil_mode,
            dilations=self.dilations,
            pads=self.pads,
            strides=self.strides,
        )
        return [channels_last(build, build(pool, channels_first(build, required(inputs))))]

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.asarray(np.random.default_rng(1).integers(-128, 128, (1, 5, 6, 3)), np.int8)
        cases: list[dict[str, Any]] = [
            {"strides": (2, 2)},
            {"pads": (1, 0, 0, 1)},
            {"ceil_mode": 1, "strides": (2, 2)},
            {"dilations": (2, 2)},
            {"auto_pad": "SAME_UPPER"},
        ]
        return [
            Sample((v,), {"kernel_shape": (2, 2), **c})
            for c in cases
            for v in (x, (x.astype(np.int16) + 128).astype(np.uint8))
        ]


@operator("CDist", domain="com.microsoft", inputs=2)
class CDist(Composition):
    """Distance of each row of the first input to each of the second."""

    metric: str = "sqeuclidean"

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        a, x, y = Algebra(build), required(inputs, 0), required(inputs, 1)
        if self.metric not in ("sqeuclidean", "euclidean") or x.type.rank != 2 or y.type.rank != 2:
            raise OperatorError(f"metric '{self.metric}' of {x.type} and {y.type} is not supported", "E202")
        apart = a.sub(a.reshape(x, x.shape[0], 1, x.shape[1]), a.reshape(y, 1, *y.shape))
        total = a.reshape(a.reduced("ReduceSum", a.mul(apart, apart), 2), x.shape[0], y.shape[0])
        return [a.of("Sqrt", total) if self.metric == "euclidean" else total]

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            Sample((drawn(1, 4, 3), drawn(2, 5, 3)), {"metric": m}, c)
            for m in ("sqeuclidean", "euclidean")
            for c in (frozenset(), frozenset({1}))
        ]
