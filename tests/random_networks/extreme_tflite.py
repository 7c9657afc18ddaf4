"""Random TFLite networks of a few layers whose scales, zero points, weights, biases and inputs are drawn from
their ends as well: equal to LiteRT's reference kernels, or refused.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import random_tflite  # noqa: F401  (adds layers)
from tflite_network import ANY, IMAGE, Activation, Network

from batch import Outcome
from tflite_models import INT4, INT8, INT16, INT32, INT64, UINT8, build
from tflite_reference import litert

Array = np.ndarray
BIAS_ENDS = (0, 2**30, -(2**30), 2**24, -(2**24))
"""Sums beyond 32 bits are undefined in LiteRT."""
UNDEFINED = {"HARD_SWISH", "GREATER", "GREATER_EQUAL", "LESS", "LESS_EQUAL", "EQUAL", "NOT_EQUAL"}
"""LiteRT compares int16 of several scales as they are, and nothing of scales from 1 on; HARD_SWISH to a scale
that is 2^15 times the input's shifts by more bits than there are.
"""


class Extreme(Network):
    """Adds random layers with extreme parameters; tame: the share of usual ones."""

    tame = 0.9

    def odd(self, share: float = 1) -> bool:
        return bool(self.rng.random() < share * (1 - self.tame))

    def zero(self) -> int:
        if self.kind == INT16 or not self.odd(3):
            return super().zero()
        return int(self.pick(self.low, self.high, self.low + 1, self.high - 1))

    def _far(self, scale: float) -> float:
        if self.odd():
            scale *= float(self.pick(2.0 ** self.number(-2, 40), 2.0 ** self.rng.uniform(-2, 20)))
        elif self.odd():
            scale = 2.0 ** np.round(np.log2(scale))
        elif self.odd():
            scale = float(self.pick(1e10, *(v.scale for v in self.values if v.scale > scale / 4)))
        return float(np.clip(scale, 1e-38, 1e38))

    def activation(
        self,
        shape: tuple[int, ...],
        spread: float = 0,
        like: Activation | None = None,
        fixed: tuple[float, int] | None = None,
    ) -> Activation:
        made = super().activation(shape, spread, like, fixed)
        if like is not None or fixed is not None:
            return made
        scale = float(np.float32(self._far(made.scale)))
        self.tensors[made.number] = replace(self.tensors[made.number], scale=(scale,))
        return replace(made, scale=scale)

    def constant(self, shape: tuple[int, ...], scale: float, zero: int | None = None) -> Activation:
        made = super().constant(shape, float(np.float32(self._far(scale))), zero)
        if self.odd():
            t = self.tensors[made.number]
            data = np.full(shape, self.pick(self.low, self.high, made.zero)).astype(self.dtype)
            self.tensors[made.number] = replace(t, data=data)
        return made

    def weights(
        self, shape: tuple[int, ...], axis: int, terms: int, x: Activation, scales: int = 0
    ) -> tuple[int, int, float]:
        w, b, width = super().weights(shape, axis, terms, x, scales)
        t, bias = self.tensors[w], self.tensors[b]
        by, most = np.asarray(t.scale, np.float32), 255 if t.type == UINT8 else 127
        if len(by) > 1 and self.odd(2):
            by = (by * 2.0 ** self.rng.uniform(-40, 2, len(by))).astype(np.float32)
        elif len(by) > 1 and self.odd(2):
            by[self.number(0, len(by) - 1)] *= np.float32(self.pick(1e-12, 1e-30, 2.0**-32))
        elif self.odd():
            by = np.asarray([self._far(float(s)) for s in by], np.float32)
        by = np.clip(by, np.float32(1e-38), np.float32(1e38))
        data = t.data
        if t.type != INT4 and self.odd(2):
            assert isinstance(data, np.ndarray)
            how = self.number(0, 2)
            if how == 0:
                data = np.full(shape, self.pick(0, most, 0 if most == 255 else -128, t.zero[0])).astype(
                    data.dtype
                )
            elif how == 1:
                data = self.rng.choice([0 if most == 255 else -128, most], shape).astype(data.dtype)
            else:
                data = np.moveaxis(np.array(data), axis, 0)
                data[self.number(0, len(data) - 1)] = t.zero[0]
                data = np.ascontiguousarray(np.moveaxis(data, 0, axis))
        numbers = np.asarray(bias.data)
        if self.odd(2):
            numbers = (
                np.full(numbers.shape, self.pick(*BIAS_ENDS))
                if self.number(0, 1)
                else self.rng.choice(BIAS_ENDS, numbers.shape)
            )
        self.tensors[w] = replace(t, scale=tuple(map(float, by)), data=data)
        with np.errstate(all="ignore"):
            units = np.clip(
                (np.float32(x.scale) * by).astype(np.float32), np.float32(1e-45), np.float32(3e38)
            )
        kept = numbers.astype(np.int64 if bias.type == INT64 else np.int32)
        self.tensors[b] = replace(bias, scale=tuple(map(float, units)), data=kept)
        return w, b, width


@dataclass(frozen=True)
class Drawn:
    model: bytes
    fed: tuple[Array, ...]
    kinds: tuple[str, ...]
    remembers: bool
    wraps: bool
    """Whether LiteRT casts results of 64 bits to 32 that may not hold them, or shifts others beyond."""


LAYERS = {"CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV"}


def _wraps(n: Extreme, inputs: tuple[int, ...], outputs: tuple[int, ...]) -> bool:
    """Whether a layer may have results beyond 32 bits, by a bound for all channels."""
    given = [n.tensors[i] for i in inputs if i >= 0]
    known = [t for t in given if t.data is not None and t.scale]
    biases = [np.abs(np.asarray(t.data, np.float64)) for t in known if t.type in (INT32, INT64)]
    weights = [t for t in known if t.type not in (INT32, INT64)]
    if not weights:
        return False
    x, w = next(t for t in given if t.data is None), weights[0]
    most = (32768.0 if n.kind == INT16 else 255.0) * float(np.abs(np.asarray(w.data, np.float64)).sum())
    most += max((float(b.max(initial=0)) for b in biases), default=0)
    return x.scale[0] * max(w.scale) / n.tensors[outputs[0]].scale[0] * most >= 2.0**31


def _far_root(n: Extreme, x: int, y: int) -> bool:
    """Whether a result's scale is so large that RSQRT shifts by more than the 31 bits that there are."""
    factor = 1 / (np.sqrt(n.tensors[x].scale[0]) * n.tensors[y].scale[0])
    return bool(np.frexp(factor)[1] - 20 < -31)


def network(number: int) -> Drawn:
    for again in range(100):
        rng = np.random.default_rng([number, again, 7])
        kind = (INT8, INT8, INT8, INT16, UINT8)[int(rng.integers(5))]
        n = Extreme(rng, kind)
        n.tame = float(rng.choice([0.6, 0.8, 0.95]))
        if (made := _drawn(n)) is not None:
            return made
    raise AssertionError("nothing fits")


def _shape(n: Extreme) -> tuple[int, ...]:
    if n.odd(0.5):
        return n.pick((1, 33026), (1, 70000), (1, 1, 1, 33026), (1, 1), (1, 1, 1, 1), (1, 300, 1, 200))
    return n.pick(
        (n.pick(1, 2), n.number(1, 9), n.number(1, 9), n.pick(n.number(1, 9), 8, 16)),
        (n.pick(1, 2), n.number(1, 20), n.number(1, 12)),
        (n.pick(1, 2), n.number(1, 60)),
    )


def _drawn(n: Extreme) -> Drawn | None:
    inputs = []
    for _ in range(n.pick(1, 1, 2)):
        x = n.activation(_shape(n), 0.02 * float(n.high) * 0.4 / (256 if n.kind == INT16 else 1))
        inputs.append(x)
        n.values.append(x)
    for _ in range(n.pick(1, 1, 2, 3)):
        for _ in range(6):
            x = n.values[-1] if n.number(0, 3) else n.pick(*n.values)
            layer: Any = n.pick(*(IMAGE if len(x.shape) == 4 and n.number(0, 2) else ANY))
            if layer(n, x) is not None:
                break
    read = {i for op in n.operators for i in op.inputs}
    outputs = [v.number for v in n.values[len(inputs) :] if v.number not in read or n.odd(0.5)] + n.ends
    if not outputs or not n.operators:
        return None
    fed = []
    for x in (x for x in inputs if x.number in read):
        wild = n.rng.integers(n.low, n.high, x.shape, endpoint=True)
        ends = n.rng.choice([n.low, n.high, x.zero], x.shape)
        fed.append(
            np.asarray(n.pick(wild, wild, ends, np.full(x.shape, n.pick(n.low, n.high)))).astype(n.dtype)
        )
    given = [x.number for x in inputs if x.number in read]
    if not given:
        return None
    model = build(n.tensors, n.operators, given, list(dict.fromkeys(outputs)))
    wraps = any(_wraps(n, tuple(op.inputs), tuple(op.outputs)) for op in n.operators if op.kind in LAYERS)
    wraps |= any(_far_root(n, op.inputs[0], op.outputs[0]) for op in n.operators if op.kind == "RSQRT")
    return Drawn(model, tuple(fed), tuple(op.kind for op in n.operators), n.remembers, wraps)


def wanted(number: int) -> list[Array] | None:
    """What LiteRT computes; None where it refuses."""
    n = network(number)
    if n.wraps or UNDEFINED & set(n.kinds):
        return None
    try:
        first = litert(n.model, n.fed)
        if "SUM" in n.kinds:  # its reference kernel of SUM reads what nothing wrote
            other = litert(n.model, n.fed, "BUILTIN_WITHOUT_DEFAULT_DELEGATES")
            if any((a != b).any() for a, b in zip(first, other, strict=True)):
                return None
    except (RuntimeError, ValueError):
        return None
    return first


def verdict(n: Drawn, want: list[Array], outcome: Outcome, _: str) -> str:
    """What is wrong with an outcome; empty when nothing is."""
    pairs = zip(outcome.outputs, want, strict=True)
    equal = [np.array_equal(a.reshape(-1), b.reshape(-1), equal_nan=b.dtype.kind == "f") for a, b in pairs]
    return "" if all(equal) else f"output {equal.index(False)} is not what LiteRT computes"
