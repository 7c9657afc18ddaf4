"""What random TFLite networks are made of, and the registry of their layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tflite_models import INT8, INT16, INT32, INT64, UINT8, Op, T

RANGE = {INT8: (-128, 127, "int8"), UINT8: (0, 255, "uint8"), INT16: (-32768, 32767, "int16")}
ACTIVATIONS = (0, 0, 0, 1, 2, 3)
"""None, RELU, RELU_N1_TO_1, RELU6."""
MAX_ELEMENTS = 3000
MAX_PRODUCTS = 400_000


@dataclass(frozen=True)
class Activation:
    """A tensor that layers may read: its number, shape, scale and zero point."""

    number: int
    shape: tuple[int, ...]
    scale: float
    zero: int


class Network:
    """Adds random layers; `rng` decides everything."""

    def __init__(self, rng: np.random.Generator, kind: int, room: int = 1) -> None:
        self.rng, self.kind, self.room = rng, kind, room
        self.tensors: list[T] = []
        self.operators: list[Op] = []
        self.values: list[Activation] = []
        self.ends: list[int] = []
        """Tensors that no layer reads: numbers of other types."""
        self.low, self.high, self.dtype = RANGE[kind]
        self.products = 0

    def number(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high, endpoint=True))

    def pick(self, *options: Any) -> Any:
        return options[self.number(0, len(options) - 1)]

    def zero(self) -> int:
        return (
            0 if self.kind == INT16 else self.pick(self.low, self.number(self.low, self.high), self.low + 128)
        )

    def tensor(self, t: T) -> int:
        self.tensors.append(replace(t, name=f"t{len(self.tensors)}"))
        return len(self.tensors) - 1

    def activation(
        self,
        shape: tuple[int, ...],
        spread: float = 0,
        like: Activation | None = None,
        fixed: tuple[float, int] | None = None,
    ) -> Activation:
        """A new one: of numbers that spread so far in reality, of the scale of another, or of one given."""
        if like is not None:
            scale, zero = like.scale, like.zero
        elif fixed is not None:
            scale, zero = fixed
        else:
            scale, zero = 2.5 * spread / self.high * float(np.exp(self.rng.normal(0, 0.4))), self.zero()
            if self.kind == UINT8:
                scale *= 2
        scale = float(np.float32(max(scale, 1e-9)))
        return Activation(self.tensor(T("", shape, self.kind, (scale,), (zero,))), shape, scale, zero)

    def integers(self, data: object, kind: int = INT32) -> int:
        array = np.asarray(data, "int64" if kind == INT64 else "int32")
        return self.tensor(T("", array.shape, kind, (), data=array))

    def add(
        self,
        kind: str,
        inputs: tuple[int, ...],
        output: Activation,
        options: str | None = None,
        **fields: Any,
    ) -> Activation:
        self.operators.append(Op(kind, inputs, (output.number,), options, fields))
        self.values.append(output)
        return output

    def spread(self, x: Activation) -> float:
        """About the standard deviation of its numbers."""
        return x.scale * self.high * (0.2 if self.kind == UINT8 else 0.4)

    def weights(self, shape: tuple[int, ...], axis: int, terms: int, x: Activation) -> tuple[int, int, float]:
        """Weights and bias of a layer, and how far its results spread. axis: that of output channels."""
        each = self.kind != UINT8 and self.pick(True, True, False)
        channels = shape[axis]
        scale = np.asarray(0.01 * np.exp(self.rng.normal(0, 0.7, channels if each else 1)), np.float32)
        if self.kind == UINT8:
            low, high, kind, zero = 0, 255, UINT8, self.pick(128, self.number(100, 150))
        else:
            low, high, kind, zero = -127, 127, INT8, 0
        data = np.clip(np.round(self.rng.normal(zero, self.pick(20, 45), shape)), low, high)
        if self.number(0, 9) == 0:
            data = np.where(self.rng.random(shape) < 0.7, zero, data)
        w = self.tensor(
            T(
                "",
                shape,
                kind,
                tuple(map(float, scale)),
                (zero,) * len(scale),
                axis=axis if each else 0,
                data=data.astype("uint8" if kind == UINT8 else "int8"),
            )
        )
        width = float(np.sqrt(terms)) * self.spread(x) * 40 * float(np.median(scale))
        bias_scale = tuple(float(np.float32(x.scale) * s) for s in scale)
        numbers = self.rng.normal(0, 0.5, channels) * width / np.asarray(bias_scale)
        wide = self.kind == INT16
        b = self.tensor(
            T(
                "",
                (channels,),
                INT64 if wide else INT32,
                bias_scale,
                (0,) * len(scale),
                data=np.round(numbers).astype("int64" if wide else "int32"),
            )
        )
        return w, b, max(width, 1e-6)

    def window(self, x: Activation, kernel: tuple[int, int], dilated: bool = True) -> tuple[Any, ...] | None:
        """Strides, dilations, the padding (0 SAME) and the size of the output; None where nothing fits."""
        stride = (self.pick(1, 1, 1, 2, 3), self.pick(1, 1, 1, 2, 3))
        dilation = (self.pick(1, 1, 2), self.pick(1, 1, 3)) if dilated and stride == (1, 1) else (1, 1)
        padding = self.number(0, 1)
        size = []
        for d, k, s, a in zip(x.shape[1:3], kernel, stride, dilation, strict=True):
            reach = (k - 1) * a + 1
            size.append(-(-d // s) if padding == 0 else (d - reach) // s + 1)
        return (stride, dilation, padding, tuple(size)) if min(size) >= 1 else None

    def affordable(self, outputs: int, terms: int) -> bool:
        if outputs > MAX_ELEMENTS * self.room or self.products + outputs * terms > MAX_PRODUCTS * self.room:
            return False
        self.products += outputs * terms
        return True


Layer = Callable[[Network, Activation], "Activation | None"]
IMAGE: list[Layer] = []
ANY: list[Layer] = []


def image(layer: Layer) -> Layer:
    IMAGE.append(layer)
    return layer


def anywhere(layer: Layer) -> Layer:
    ANY.append(layer)
    return layer
