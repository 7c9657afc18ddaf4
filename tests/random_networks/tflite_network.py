"""What random TFLite networks are made of, and the registry of their layers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tflite_models import FLOAT32, INT4, INT8, INT16, INT32, INT64, UINT8, Op, T

RANGE: dict[int, tuple[float, float, str]] = {
    INT8: (-128, 127, "int8"),
    UINT8: (0, 255, "uint8"),
    INT16: (-32768, 32767, "int16"),
    FLOAT32: (-np.inf, np.inf, "float32"),
}
ACTIVATIONS = (0, 0, 0, 1, 2, 3)
"""None, RELU, RELU_N1_TO_1, RELU6."""
MAX_ELEMENTS = 3000
MAX_PRODUCTS = 400_000


@dataclass(frozen=True)
class Activation:
    """A tensor that layers may read: its number, shape, scale and zero point. Of floats the scale is about
    their standard deviation.
    """

    number: int
    shape: tuple[int, ...]
    scale: float
    zero: int


class Network:
    """Adds random layers; `rng` decides everything. hybrid: floats times weights of 8 bits."""

    def __init__(self, rng: np.random.Generator, kind: int, room: int = 1, hybrid: bool = False) -> None:
        self.rng, self.kind, self.room, self.hybrid = rng, kind, room, hybrid
        self.tensors: list[T] = []
        self.operators: list[Op] = []
        self.values: list[Activation] = []
        self.ends: list[int] = []
        """Tensors that no layer reads: numbers of other types."""
        self.low, self.high, self.dtype = RANGE[kind]
        self.products = 0
        self.whole = kind != FLOAT32
        self.remembers = False
        """Whether a layer keeps anything from run to run."""

    def number(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high, endpoint=True))

    def pick(self, *options: Any) -> Any:
        return options[self.number(0, len(options) - 1)]

    def zero(self) -> int:
        if self.kind in (INT16, FLOAT32):
            return 0
        low, high = int(self.low), int(self.high)
        return int(self.pick(low, self.number(low, high), low + 128))

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
            unit = 1 if not self.whole else 2.5 / self.high * float(np.exp(self.rng.normal(0, 0.4)))
            scale, zero = unit * spread, self.zero()
            if self.kind == UINT8:
                scale *= 2
        scale = float(np.float32(max(scale, 1e-9)))
        return Activation(self.tensor(self.described(shape, scale, zero)), shape, scale, zero)

    def described(self, shape: tuple[int, ...], scale: float, zero: int, data: np.ndarray | None = None) -> T:
        """A tensor of this network's kind, without a name."""
        quantised = ((scale,), (zero,)) if self.whole else ((), ())
        return T("", shape, self.kind, *quantised, data=data)

    def constant(self, shape: tuple[int, ...], scale: float, zero: int | None = None) -> Activation:
        """Numbers of a third of the range, or of that standard deviation."""
        zero = self.zero() if zero is None else zero
        if self.whole:
            drawn = np.round(self.rng.normal(zero, self.high / 3, shape))
            data = np.clip(drawn, self.low, self.high).astype(self.dtype)
        else:
            data = self.rng.normal(0, scale, shape).astype("float32")
        return Activation(self.tensor(self.described(shape, scale, zero, data)), shape, scale, zero)

    def alike(self, x: Activation, y: Activation) -> bool:
        """Whether their numbers mean the same."""
        return not self.whole or (x.scale, x.zero) == (y.scale, y.zero)

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
        if not self.whole:
            return x.scale
        return x.scale * self.high * (0.2 if self.kind == UINT8 else 0.4)

    def weights(
        self, shape: tuple[int, ...], axis: int, terms: int, x: Activation, scales: int = 0
    ) -> tuple[int, int, float]:
        """Weights and bias of a layer, and how far its results spread. axis: that of output channels; scales:
        1 for one of all, 2 for one of each, 0 for either. Every eighth is of 4 bits, other than with
        activations of 16: LiteRT reads depthwise ones of them as if they had 8.
        """
        if not self.whole and not self.hybrid:
            return self._float_weights(shape, shape[axis], terms, x)
        each = self.kind != UINT8 and (scales == 2 or (scales == 0 and self.pick(True, True, False)))
        channels = shape[axis]
        scale = np.asarray(0.01 * np.exp(self.rng.normal(0, 0.7, channels if each else 1)), np.float32)
        if self.kind == UINT8:
            low, high, kind, zero = 0, 255, UINT8, self.pick(128, self.number(100, 150))
        else:
            low, high, kind, zero = -127, 127, INT8, 0
        data = np.clip(np.round(self.rng.normal(zero, self.pick(20, 45), shape)), low, high)
        if self.number(0, 9) == 0:
            data = np.where(self.rng.random(shape) < 0.7, zero, data)
        stored = data.astype("uint8" if kind == UINT8 else "int8")
        if kind == INT8 and self.kind != INT16 and scales != 1 and self.number(0, 7) == 0:
            kind, scale = INT4, scale * np.float32(16)
            data = np.clip(np.round(data / 8), -7, 7)
            stored = halves(data)
        w = self.tensor(
            T(
                "",
                shape,
                kind,
                tuple(map(float, scale)),
                (zero,) * len(scale),
                axis=axis if each else 0,
                data=stored,
            )
        )
        width = float(np.sqrt(terms)) * self.spread(x) * float(data.std() + 1) * float(np.median(scale))
        if self.hybrid:
            return w, self._floats(self.rng.normal(0, width / 2, channels)), max(width, 1e-6)
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

    def _floats(self, data: np.ndarray) -> int:
        return self.tensor(T("", data.shape, FLOAT32, (), data=data.astype("float32")))

    def _float_weights(
        self, shape: tuple[int, ...], channels: int, terms: int, x: Activation
    ) -> tuple[int, int, float]:
        size = self.pick(1, 0.3, 2) / np.sqrt(terms)
        width = float(np.sqrt(terms)) * self.spread(x) * float(size)
        data = self.rng.normal(0, size, shape)
        if self.number(0, 9) == 0:
            data = np.where(self.rng.random(shape) < 0.7, 0, data)
        b = self._floats(self.rng.normal(0, width / 2, channels))
        return self._floats(data), b, max(width, 1e-6)

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


def halves(values: np.ndarray) -> np.ndarray:
    """Integers of 4 bits, two in a byte, the first one in the lower half."""
    flat = np.append(values.reshape(-1), [0] * (values.size % 2)).astype(np.int8).astype(np.uint8) & 15
    return np.asarray(flat[::2] | flat[1::2] << 4, np.uint8)


Layer = Callable[[Network, Activation], "Activation | None"]
IMAGE: list[Layer] = []
ANY: list[Layer] = []


def image(layer: Layer) -> Layer:
    IMAGE.append(layer)
    return layer


def anywhere(layer: Layer) -> Layer:
    ANY.append(layer)
    return layer
