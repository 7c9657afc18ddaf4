"""Signals of a model's file: what one quantity of the network is called, and how its integers become real
numbers.

A quantised ONNX file has up to three tensors for one quantity, here of a convolution:

    Conv ─► conv1 ─► QuantizeLinear ─► conv1_QuantizeLinear_Output ─► DequantizeLinear ─►
    conv1_DequantizeLinear_Output ─► readers

They are one signal; the float file that it was made of has the first of them only. What its value is, is
what its readers get:
the integers by the scale and the zero point of the dequantisation. In TFLite a tensor is a signal, with the
scale that the file says.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from aot_model.layers.reference import Key

Array = np.ndarray

EQUALISED = "aot_model.equalisation"
"""Key of an ONNX file's metadata: by tensor, what `aot-model quantise` divided its channels by, as JSON."""

_SUFFIX = re.compile(
    r"(_QuantizeLinear_(Output|Input)|_DequantizeLinear_Output|_QuantizeInput|_(de)?quantized)$"
)
"""What quantisers (of ONNX Runtime and those that are like it) append to the name of the tensor that they
quantise."""


@dataclass(frozen=True)
class Steps:
    """real = scale * (integer - zero_point); arrays of one element, or one for each index of `axis`."""

    scale: Array
    zero_point: Array
    axis: int | None = None

    def real(self, integers: Array) -> Array:
        scale, zero = self._along(integers.ndim)
        return np.asarray((integers.astype(np.float64) - zero) * scale).astype(np.float32)

    def integers(self, real: Array, dtype: np.dtype[np.generic]) -> Array:
        """The nearest integers, ties to even, as quantisation does."""
        scale, zero = self._along(real.ndim)
        limits = np.iinfo(str(dtype))
        nearest = np.round(real.astype(np.float64) / scale) + zero
        return np.asarray(np.clip(nearest, limits.min, limits.max), dtype)

    def limits(self, dtype: np.dtype[np.generic]) -> tuple[float, float]:
        """The least and the largest real number that there is an integer for."""
        info = np.iinfo(str(dtype))
        zero = self.zero_point.astype(np.float64)
        return float(np.min((info.min - zero) * self.scale)), float(np.max((info.max - zero) * self.scale))

    def same(self, other: Steps) -> bool:
        return bool(
            np.array_equal(self.scale, other.scale) and np.array_equal(self.zero_point, other.zero_point)
        )

    @property
    def size(self) -> float:
        """Of a step; the largest, where there are several."""
        return float(np.max(self.scale))

    def _along(self, rank: int) -> tuple[Array, Array]:
        if self.scale.size == 1 or self.axis is None:
            return self.scale.reshape(-1)[0], self.zero_point.reshape(-1)[0]
        shape = [1] * rank
        shape[self.axis] = -1
        return self.scale.reshape(shape), self.zero_point.reshape(shape)


@dataclass
class Signal:
    """keys: of the file's tensors, first to last; steps: of those that are integers; made: how the
    quantisation made them, where it is
    another way than the one in which they are read."""

    keys: list[Key]
    names: dict[str, None] = field(default_factory=dict)
    """What it may be called in another file, the best first."""
    steps: dict[Key, Steps] = field(default_factory=dict)
    made: dict[Key, Steps] = field(default_factory=dict)


@dataclass(frozen=True)
class Signals:
    """All signals that nodes of the file, or its user, make; by key too."""

    all: tuple[Signal, ...]
    of: Mapping[Key, Signal]
    inputs: tuple[Key, ...]
    outputs: tuple[Key, ...]
    divided: Mapping[str, Array] = field(default_factory=dict)
    """By name of a tensor of the float model: what equalisation divided its channels by; of more than one
    axis: in a shape that broadcasts."""


def of_tflite(path: Path, signature: str | None = None) -> Signals:
    """Of the model, or of a signature."""
    from aot_model.frontends.tflite_file import parse

    main = parse(path.read_bytes(), str(path), signature).graph
    of: dict[Key, Signal] = {}
    for index in (*main.inputs, *(k for o in main.operators for k in o.outputs)):
        signal, tensor = Signal([index]), main.tensors[index]
        if (q := tensor.quantisation) is not None and len(q.scale):
            signal.steps[index] = Steps(
                np.asarray(q.scale, np.float64), np.asarray(q.zero_point, np.int64), q.axis
            )
        of[index] = signal
    return collected(
        of, {key: main.tensors[int(key)].name for key in of}, list(main.inputs), list(main.outputs)
    )


def collected(
    of: dict[Key, Signal], names: Mapping[Key, str], inputs: Sequence[Key], outputs: Sequence[Key]
) -> Signals:
    signals = list({id(s): s for s in of.values()}.values())
    for signal in signals:
        for key in signal.keys:
            signal.names[names[key]] = None
        for name in list(signal.names):
            shorter = name.split(";")[0]  # TFLite's converter joins the names of what it fused
            while (stem := _SUFFIX.sub("", shorter)) != shorter:
                shorter = stem
            signal.names[shorter] = None
    return Signals(tuple(signals), of, tuple(inputs), tuple(outputs))
