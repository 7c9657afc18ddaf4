"""com.microsoft: means of quantised tensors, over windows and over axes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import replace
from typing import Any

import numpy as np

from aot_model.ir.operator import Arrays, Inputs, Operator, Sample
from aot_model.ir.values import Value
from aot_model.ops.channels_first import AveragePool, GlobalAveragePool, channels_first, channels_last
from aot_model.ops.microsoft_quantised import I8, Ints, draw, scale_zero
from aot_model.ops.normalisation import reduction
from aot_model.ops.quantised_onnx import AsQdq, dequantised, quantised
from aot_model.ops.registry import Build, operator
from aot_model.ops.views import Squeeze


class _ChannelsLast(AsQdq, ABC):
    """Pooling, of channels last where the attribute says so."""

    channels_last: int

    @abstractmethod
    def pool(self, x: Value) -> Operator:
        """x: channels first."""

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x = dequantised(build, inputs, 0)
        x = channels_first(build, x) if self.channels_last else x
        y = build(self.pool(x), x)
        return [quantised(build, channels_last(build, y) if self.channels_last else y, inputs, 3)]


@operator("QLinearGlobalAveragePool", domain="com.microsoft", inputs=5)
class QLinearGlobalAveragePool(_ChannelsLast):
    """Mean over all spatial positions."""

    channels_last: int = 0

    def pool(self, x: Value) -> Operator:
        return GlobalAveragePool()

    @classmethod
    def samples(cls) -> list[Sample]:
        x, last, scales, constants = (
            draw(1, 1, 3, 5, 4),
            draw(2, 1, 5, 4, 8),
            (*scale_zero(0.0513, 128), *scale_zero(0.0307, 120)),
            frozenset({1, 2, 3, 4}),
        )
        return [Sample((x, *scales), {}, constants), Sample((last, *scales), {"channels_last": 1}, constants)]


@operator("QLinearAveragePool", domain="com.microsoft", inputs=5)
class QLinearAveragePool(_ChannelsLast):
    """Mean over windows."""

    kernel_shape: Ints
    auto_pad: str = "NOTSET"
    ceil_mode: int = 0
    channels_last: int = 0
    count_include_pad: int = 0
    pads: Ints | None = None
    strides: Ints | None = None

    def pool(self, x: Value) -> Operator:
        given = AveragePool(
            self.kernel_shape,
            self.auto_pad,
            self.ceil_mode,
            None,
            self.pads,
            self.strides,
            self.count_include_pad,
        )
        if not (self.ceil_mode and self.count_include_pad):
            return given
        # Unlike AveragePool, it counts what the last windows have beyond the padding, too (ONNX Runtime).
        p, d = given._pool(x), x.type.rank - 2
        ends = [
            (p._window(n, k) - 1) * p.strides[k] + p.kernel[k] - n - p.pads[k]
            for k, n in enumerate(x.shape[2:])
        ]
        pads = (*p.pads[:d], *map(max, p.pads[d:], ends))
        return replace(given, auto_pad="NOTSET", ceil_mode=0, pads=pads)

    @classmethod
    def samples(cls) -> list[Sample]:
        x, scales, constants = (
            draw(1, 1, 3, 6, 5),
            (*scale_zero(0.0513, 128), *scale_zero(0.0307, 120)),
            frozenset({1, 2, 3, 4}),
        )
        cases: list[dict[str, Any]] = [
            {"strides": (2, 2)},
            {"pads": (1, 0, 0, 1)},
            {"pads": (1, 1, 1, 1), "count_include_pad": 1},
            {"channels_last": 1},
            {"ceil_mode": 1, "strides": (2, 2)},
            {"ceil_mode": 1, "strides": (2, 2), "count_include_pad": 1},
            {"ceil_mode": 1, "strides": (3, 2), "pads": (1, 0, 0, 1), "count_include_pad": 1},
        ]
        signed = (draw(1, 1, 3, 6, 5, dtype=I8), *scale_zero(0.0513, 3, I8), *scale_zero(0.0409, 3, I8))
        return [
            *(Sample((x, *scales), {"kernel_shape": (3, 2), **c}, constants) for c in cases),
            Sample(signed, {"kernel_shape": (2, 2)}, constants),
        ]


@operator("QLinearReduceMean", domain="com.microsoft", inputs=5)
class QLinearReduceMean(AsQdq):
    """Mean over axes. Inputs: x, scale, zero point, the result's scale and zero point."""

    axes: Ints
    keepdims: int

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x = dequantised(build, inputs, 0)
        y = quantised(build, reduction("ReduceMean", build, x, self.axes), inputs, 3)
        return [y if self.keepdims else build(Squeeze(), y, build.constant(np.asarray(self.axes, np.int64)))]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x, scale, zero, to, point = (np.asarray(v, np.float64) for v in arrays)
        mean = ((x - zero) * scale).mean(self.axes, keepdims=bool(self.keepdims))
        kind = np.asarray(arrays[4]).dtype
        limits = np.iinfo(kind)
        return [np.clip(np.rint(mean / to) + point, limits.min, limits.max).astype(kind)]

    @classmethod
    def samples(cls) -> list[Sample]:
        inputs, constants = (
            (draw(1, 2, 3, 5), *scale_zero(0.0513, 120), *scale_zero(0.0307, 99)),
            frozenset({1, 2, 3, 4}),
        )
        return [
            Sample(inputs, {"axes": a, "keepdims": k}, constants)
            for a, k in (((1,), 1), ((0, 2), 0), ((-1,), 0))
        ]
