"""ONNX convolution and pooling, channels first: they expand into the operators of convolution.py and pool.py
between two transposes.

Source: ONNX operator specification.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from aot_model.ir.operator import Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import TensorType
from aot_model.ir.values import Value
from aot_model.ops.convolution import Convolution, ConvolutionTranspose
from aot_model.ops.elementwise import op
from aot_model.ops.movement import Transpose
from aot_model.ops.pool import Pool
from aot_model.ops.registry import Build, operator, required
from aot_model.ops.views import ReshapeTo

Ints = tuple[int, ...]


def _draw(*shape: int) -> np.ndarray:
    return np.asarray(np.random.default_rng(shape).uniform(-2, 2, shape), np.float32)


def channels_last(build: Build, x: Value) -> Value:
    rank = x.type.rank
    return build(Transpose((0, *range(2, rank), 1)), x)


def channels_first(build: Build, x: Value) -> Value:
    rank = x.type.rank
    return build(Transpose((0, rank - 1, *range(1, rank - 1))), x)


def resolved_pads(
    auto_pad: str, pads: Ints | None, shape: Ints, kernel: Ints, strides: Ints, dilations: Ints
) -> Ints:
    """ONNX padding: explicit, VALID, or SAME_UPPER / SAME_LOWER."""
    d = len(kernel)
    if len(shape) != d:
        raise OperatorError(f"a window of {d} axes over {len(shape)}")
    if auto_pad in ("NOTSET", "VALID", ""):
        return padding(None if auto_pad == "VALID" else pads, d)
    begins, ends = [], []
    for k in range(d):
        out = -(-shape[k] // strides[k])
        total = max((out - 1) * strides[k] + (kernel[k] - 1) * dilations[k] + 1 - shape[k], 0)
        small = total // 2
        begins.append(total - small if auto_pad == "SAME_LOWER" else small)
        ends.append(small if auto_pad == "SAME_LOWER" else total - small)
    return (*begins, *ends)


def spatial(values: Ints | None, d: int) -> Ints:
    """Strides or dilations along `d` axes, 1 by default. OperatorError when one is missing or below 1."""
    found = (1,) * d if values is None else tuple(values)
    if len(found) != d or min(found, default=1) < 1:
        raise OperatorError(f"{list(found)} are not strides or dilations of {d} axes: a number >= 1 for each")
    return found


def padding(values: Ints | None, d: int) -> Ints:
    """Explicit pads before and behind `d` axes, 0 by default. OperatorError when one is missing."""
    found = (0,) * (2 * d) if values is None else tuple(values)
    if len(found) != 2 * d:
        raise OperatorError(f"pads {list(found)} are not two for each of {d} axes")
    return found


def check_bias(inputs: Inputs, channels: int) -> None:
    """OperatorError when the bias, if there is one, is not a number for each output channel."""
    bias = inputs[2] if len(inputs) > 2 else None
    if bias is not None and bias.shape != (channels,):
        raise OperatorError(f"a bias {bias.type} is not one of {channels} output channels")


@dataclass(frozen=True)
class Windowed(Operator):
    """The attributes of a convolution."""

    auto_pad: str = "NOTSET"
    dilations: Ints | None = None
    group: int = 1
    kernel_shape: Ints | None = None
    pads: Ints | None = None
    strides: Ints | None = None

    def convolution(self) -> Conv:
        """ONNX's, with these attributes."""
        return Conv(self.auto_pad, self.dilations, self.group, self.kernel_shape, self.pads, self.strides)


@operator("Conv")
class Conv(Windowed):
    """ONNX Conv, channels first."""

    def _inner(self, x: Value, w: Value) -> Convolution:
        d = x.type.rank - 2
        if d < 1 or w.type.rank != x.type.rank:
            raise OperatorError(f"input {x.type} and weights {w.type} do not fit each other")
        strides, dilations = spatial(self.strides, d), spatial(self.dilations, d)
        if self.kernel_shape is not None and tuple(self.kernel_shape) != w.shape[2:]:
            raise OperatorError(
                f"kernel_shape {tuple(self.kernel_shape)} is not that of the weights {w.type}"
            )
        pads = resolved_pads(self.auto_pad, self.pads, x.shape[2:], w.shape[2:], strides, dilations)
        return Convolution(strides, pads, dilations, self.group)

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, w = required(inputs, 0), required(inputs, 1)
        inner = self._inner(x, w)
        check_bias(inputs, w.shape[0])
        last = inner.infer(
            [_typed(x, (0, *range(2, x.type.rank), 1)), _typed(w, (0, *range(2, w.type.rank), 1))]
        )[0]
        return [TensorType(last.dtype, (last.shape[0], last.shape[-1], *last.shape[1:-1]))]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x, w = required(inputs, 0), required(inputs, 1)
        y = build(self._inner(x, w), channels_last(build, x), channels_last(build, w))
        if len(inputs) > 2 and inputs[2] is not None:
            y = build(op("Add"), y, inputs[2])
        return [channels_first(build, y)]

    @classmethod
    def samples(cls) -> list[Sample]:
        x, w, bias = _draw(1, 4, 7, 6), _draw(6, 4, 3, 2), _draw(6)
        cases: list[dict[str, Any]] = [
            {},
            {"strides": (2, 1)},
            {"pads": (1, 0, 2, 1)},
            {"dilations": (2, 3)},
            {"auto_pad": "SAME_UPPER", "strides": (2, 2)},
            {"auto_pad": "SAME_LOWER", "dilations": (2, 3)},
            {"auto_pad": "VALID"},
            {"kernel_shape": (3, 2), "pads": (1, 1, 1, 1), "strides": (3, 2)},
        ]
        fixed = frozenset({1, 2})
        groups = [
            Sample((x, _draw(o, 4 // g, 3, 2), _draw(o)), {"group": g, "pads": (1, 1, 1, 1)}, fixed)
            for o, g in ((6, 2), (4, 4), (8, 4))
        ]
        line, space = (
            Sample((_draw(2, 3, 9), _draw(5, 3, 3)), {"pads": (1, 1)}, fixed),
            Sample((_draw(1, 2, 4, 4, 3), _draw(3, 2, 2, 3, 2)), {}, fixed),
        )
        return [
            *(Sample((x, w, bias), c, fixed) for c in cases),
            Sample((x, w)),
            Sample((x, w, bias)),
            Sample((x, _draw(5, 4, 1, 1)), {}, fixed),
            *groups,
            line,
            space,
        ]


def _typed(value: Value, perm: Ints) -> Value:
    return Value(value.name, TensorType(value.dtype, tuple(value.shape[p] for p in perm)))


@operator("ConvTranspose")
class ConvTranspose(Operator):
    """ONNX ConvTranspose, channels first; weights (I, O / group, spatial…)."""

    auto_pad: str = "NOTSET"
    dilations: Ints | None = None
    group: int = 1
    kernel_shape: Ints | None = None
    output_padding: Ints | None = None
    output_shape: Ints | None = None
    pads: Ints | None = None
    strides: Ints | None = None

    def _inner(self, x: Value, w: Value) -> ConvolutionTranspose:
        d = x.type.rank - 2
        strides, dilations = spatial(self.strides, d), spatial(self.dilations, d)
        extra = (0,) * d if self.output_padding is None else tuple(self.output_padding)
        pads = padding(self.pads, d)
        if len(extra) != d or (self.output_shape is not None and len(self.output_shape) < d):
            raise OperatorError(
                f"output_padding {list(extra)} or output_shape {self.output_shape} is not one for each "
                f"of {d} axes"
            )
        if self.output_shape is not None or self.auto_pad.startswith("SAME"):
            begins, ends = [], []
            for k in range(d):
                wanted = (
                    self.output_shape[-d + k]
                    if self.output_shape is not None
                    else x.shape[2 + k] * strides[k]
                )
                total = (
                    strides[k] * (x.shape[2 + k] - 1)
                    + extra[k]
                    + (w.shape[2 + k] - 1) * dilations[k]
                    + 1
                    - wanted
                )
                if self.output_shape is not None and total <= -strides[k]:
                    raise OperatorError(
                        f"output_shape {list(self.output_shape)} is {-total} more than {x.type} gives along "
                        f"axis {2 + k}, at most {strides[k] - 1} can be added"
                    )
                # Where the windows do not reach the end, nothing is added in front, as in ONNX Runtime: zeros
                # lie behind them for output_shape, and without it the result stays smaller.
                small, large = max(total, 0) // 2, -(-max(total, 0) // 2)
                upper = self.auto_pad == "SAME_UPPER"
                begins.append(small if upper else large)
                ends.append(
                    (large if upper else small) + (min(total, 0) if self.output_shape is not None else 0)
                )
            pads = (*begins, *ends)
        return ConvolutionTranspose(strides, pads, dilations, extra, self.group)

    def _weights(self, build: Build, w: Value) -> Value:
        """(I, O / g, k…) to (O, k…, I / g)."""
        g, i, o, k = self.group, w.shape[0], w.shape[1], w.shape[2:]
        split = build(ReshapeTo((g, i // g, o, *k)), w)
        d = len(k)
        moved = build(Transpose((0, 2, *range(3, 3 + d), 1)), split)
        return build(ReshapeTo((g * o, *k, i // g)), moved)

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, w = required(inputs, 0), required(inputs, 1)
        if (
            x.type.rank < 3
            or w.type.rank != x.type.rank
            or w.shape[0] != x.shape[1]
            or self.group < 1
            or w.shape[0] % self.group
        ):
            raise OperatorError(f"weights {w.type} with {self.group} groups do not fit {x.type}")
        inner = self._inner(x, w)
        out_c = w.shape[1] * self.group
        check_bias(inputs, out_c)
        weights = Value("w", TensorType(w.dtype, (out_c, *w.shape[2:], w.shape[0] // self.group)))
        last = inner.infer([_typed(x, (0, *range(2, x.type.rank), 1)), weights])[0]
        return [TensorType(last.dtype, (last.shape[0], last.shape[-1], *last.shape[1:-1]))]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x, w = required(inputs, 0), required(inputs, 1)
        y = build(self._inner(x, w), channels_last(build, x), self._weights(build, w))
        if len(inputs) > 2 and inputs[2] is not None:
            y = build(op("Add"), y, inputs[2])
        return [channels_first(build, y)]

    @classmethod
    def samples(cls) -> list[Sample]:
        x, w, bias = _draw(1, 4, 4, 3), _draw(4, 5, 3, 2), _draw(5)
        cases: list[dict[str, Any]] = [
            {},
            {"strides": (2, 3)},
            {"pads": (1, 0, 2, 1)},
            {"dilations": (2, 1)},
            {"strides": (2, 2), "output_padding": (1, 0)},
            {"strides": (2, 2), "output_shape": (9, 7)},
            {"strides": (2, 2), "output_shape": (7, 6), "auto_pad": "SAME_UPPER"},
            {"auto_pad": "SAME_UPPER", "strides": (2, 2)},
            {"auto_pad": "SAME_LOWER", "strides": (2, 2), "dilations": (2, 3)},
            {"kernel_shape": (3, 2)},
        ]
        fixed = frozenset({1, 2})
        others = [
            Sample((x, w)),
            Sample((x, _draw(4, 2, 3, 2)), {"group": 2, "strides": (2, 1)}, fixed),
            Sample((_draw(2, 3, 5), _draw(3, 2, 3)), {"strides": (2,)}, fixed),
        ]
        return [*(Sample((x, w, bias), c, fixed) for c in cases), *others]


class Pooling(Operator, ABC):
    """Common part of MaxPool and AveragePool."""

    @abstractmethod
    def _pool(self, x: Value) -> Pool: ...

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        if x.type.rank < 3:
            raise OperatorError(
                f"pooling needs a batch, channels and at least one spatial axis, not {x.type}"
            )
        last = self._pool(x).infer([_typed(x, (0, *range(2, x.type.rank), 1))])[0]
        return [TensorType(last.dtype, (last.shape[0], last.shape[-1], *last.shape[1:-1]))]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x = required(inputs)
        return [channels_first(build, build(self._pool(x), channels_last(build, x)))]


@dataclass(frozen=True)
class WindowPooling(Pooling):
    """Pooling over windows with the attributes that ONNX gives it."""

    mode: ClassVar[str]
    """As of Pool."""

    kernel_shape: Ints = ()
    auto_pad: str = "NOTSET"
    ceil_mode: int = 0
    dilations: Ints | None = None
    pads: Ints | None = None
    strides: Ints | None = None

    def _pool(self, x: Value) -> Pool:
        d = len(self.kernel_shape)
        strides, dilations = spatial(self.strides, d), spatial(self.dilations, d)
        pads = resolved_pads(
            self.auto_pad, self.pads, x.shape[2:], tuple(self.kernel_shape), strides, dilations
        )
        return Pool(self.mode, tuple(self.kernel_shape), strides, pads, dilations, ceil_mode=self.ceil_mode)


@operator("AveragePool")
class AveragePool(WindowPooling):
    """ONNX AveragePool."""

    mode: ClassVar[str] = "average"

    count_include_pad: int = 0

    def _pool(self, x: Value) -> Pool:
        return replace(super()._pool(x), count_include_pad=self.count_include_pad)

    @classmethod
    def samples(cls) -> list[Sample]:
        x = _draw(1, 2, 7, 6)
        cases: list[dict[str, Any]] = [
            {},
            {"strides": (2, 2)},
            {"pads": (1, 0, 0, 1)},
            {"pads": (1, 1, 1, 1), "count_include_pad": 1},
            {"ceil_mode": 1, "strides": (2, 3)},
            {"dilations": (2, 1)},
            {"auto_pad": "SAME_UPPER", "strides": (2, 2)},
            {"auto_pad": "SAME_LOWER", "strides": (1, 2)},
            {"auto_pad": "VALID"},
            {"ceil_mode": 1, "strides": (2, 2), "pads": (1, 1, 1, 1), "count_include_pad": 1},
        ]
        line, space = (
            Sample((_draw(2, 3, 9),), {"kernel_shape": (4,), "strides": (2,)}),
            Sample((_draw(1, 2, 3, 4, 3),), {"kernel_shape": (2, 2, 2)}),
        )
        return [*(Sample((x,), {"kernel_shape": (3, 2), **c}) for c in cases), line, space]


class _GlobalPool(Pooling):
    mode = "max"

    def _pool(self, x: Value) -> Pool:
        d = x.type.rank - 2
        return Pool(self.mode, x.shape[2:], (1,) * d, (0,) * (2 * d), (1,) * d)

    @classmethod
    def samples(cls) -> list[Sample]:
        return [Sample((_draw(*s),)) for s in ((1, 3, 4, 5), (2, 5, 7), (1, 2, 3, 2, 2), (2, 9, 1, 1))]


@operator("GlobalMaxPool")
class GlobalMaxPool(_GlobalPool):
    """Maximum over all spatial positions."""


@operator("GlobalAveragePool")
class GlobalAveragePool(_GlobalPool):
    """Mean over all spatial positions."""

    mode = "average"
