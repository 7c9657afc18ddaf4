"""TFLite: operators of TensorFlow itself, which converters leave in a file where the format has none of its
own (SELECT_TF_OPS, "Flex"). Only TensorFlow runs them; here they are made of the operators that there are.

Their attributes are a NodeDef of Protocol Buffers, whose fields node_def.proto and attr_value.proto of
tensorflow/core/framework name (https://github.com/tensorflow/tensorflow).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

from flatbuffers import flexbuffers

from aot_model.frontends.tflite_conversion import Conversion, rule
from aot_model.frontends.tflite_custom import DAMAGED, MAX_OPTIONS
from aot_model.frontends.tflite_movement import slices
from aot_model.frontends.tflite_tensors import short
from aot_model.ir.operator import OperatorError
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.ops.channels_first import resolved_pads
from aot_model.ops.conversion import Cast
from aot_model.ops.movement import Concat, Pad
from aot_model.ops.pool import Pool

FLEX = "CUSTOM:Flex"

# --- attributes ---------------------------------------------------------------------------------------------

_NODE_ATTRIBUTE, _KEY, _VALUE = 5, 1, 2
_LIST, _TEXT, _FLAG, _LIST_INTEGER = 1, 2, 5, 3


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = 0
    for k in range(10):
        value |= (data[at + k] & 127) << (7 * k)
        if data[at + k] < 128:
            return value, at + k + 1
    raise ValueError("a number without end")


def _fields(data: bytes) -> Iterator[tuple[int, Any]]:
    """The fields of a message of Protocol Buffers: numbers, or bytes. IndexError, ValueError when damaged."""
    at = 0
    while at < len(data):
        key, at = _varint(data, at)
        wire = key & 7
        if wire == 0:
            value, at = _varint(data, at)
            yield key >> 3, value
            continue
        if wire not in (1, 2, 5):
            raise ValueError(f"wire type {wire}")
        size, at = _varint(data, at) if wire == 2 else ((8 if wire == 1 else 4), at)
        if size > len(data) - at:
            raise ValueError("a field without end")
        yield key >> 3, data[at : at + size]
        at += size


class Attributes:
    """The attributes of an operator of TensorFlow. OperatorError when they cannot be read."""

    def __init__(self, n: Conversion) -> None:
        data = n.operator.custom
        if len(data) > MAX_OPTIONS:
            raise OperatorError(f"its options have {len(data)} bytes", "E102")
        self._of: dict[str, dict[int, Any]] = {}
        if not data:
            return
        try:
            node = flexbuffers.GetRoot(bytearray(data)).AsVector[1].AsStringBytes
            for number, entry in _fields(bytes(node)):
                if number == _NODE_ATTRIBUTE:
                    parts = dict(_fields(entry))
                    self._of[parts[_KEY].decode()] = dict(_fields(parts.get(_VALUE, b"")))
        except DAMAGED:
            raise OperatorError("its attributes are not those of a TensorFlow operator", "E102") from None

    def flag(self, name: str) -> bool:
        """False where it is not said."""
        return bool(self._of.get(name, {}).get(_FLAG, 0) == 1)

    def text(self, name: str, default: str) -> str:
        """A word, safe to show."""
        found = self._of.get(name, {}).get(_TEXT, default.encode())
        return short(found.decode(errors="replace")) if isinstance(found, bytes) else default

    def integers(self, name: str, count: int) -> tuple[int, ...]:
        """So many positive numbers."""
        found: list[int] = []
        try:
            for number, value in _fields(self._of.get(name, {}).get(_LIST, b"")):
                if number == _LIST_INTEGER and isinstance(value, int):
                    found.append(value)
                elif number == _LIST_INTEGER:
                    at = 0
                    while at < len(value):
                        each, at = _varint(value, at)
                        found.append(each)
        except DAMAGED:
            raise OperatorError(f"attribute '{name}' cannot be read", "E102") from None
        if len(found) != count or not all(0 < v < 1 << 31 for v in found):
            raise OperatorError(f"attribute '{name}' is {found[:9]}, not {count} positive numbers", "E102")
        return tuple(found)


# --- element by element -------------------------------------------------------------------------------------


def _erfc(n: Conversion, x: Value) -> Value:
    return n.add("Sub", n.constant(1, x.dtype), n.add("Erf", x))


def _expm1(n: Conversion, x: Value) -> Value:
    """exp(x) - 1 = tanh(x / 2) (exp(x) + 1), which keeps its digits near 0."""
    half = n.add("Mul", x, n.constant(0.5, x.dtype))
    return n.add("Mul", n.add("Tanh", half), n.add("Add", n.add("Exp", x), n.constant(1, x.dtype)))


def _log1p(n: Conversion, x: Value) -> Value:
    """log(1 + x); near 0 that is 2 atanh(x / (2 + x)), which keeps its digits."""
    near = n.add("Less", n.add("Abs", x), n.constant(0.5, x.dtype))
    share = n.add("Atanh", n.add("Div", x, n.add("Add", x, n.constant(2, x.dtype))))
    far = n.add("Log", n.add("Add", x, n.constant(1, x.dtype)))
    return n.add("Where", near, n.add("Mul", share, n.constant(2, x.dtype)), far)


def _is_finite(n: Conversion, x: Value) -> Value:
    return n.add("Not", n.add("Or", n.add("IsNaN", x), n.add("IsInf", x)))


_SAME = ("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cosh", "Erf", "IsInf", "Reciprocal", "Selu",
         "Sinh", "Softplus", "Softsign", "Tan")  # fmt: skip
_OTHER: dict[str, str | Callable[[Conversion, Value], Value]] = {
    "Erfc": _erfc,
    "Expm1": _expm1,
    "Inv": "Reciprocal",
    "IsFinite": _is_finite,
    "IsNan": "IsNaN",
    "Log1p": _log1p,
    "Rint": "Round",
}


@rule(*(f"{FLEX}{name}" for name in (*_SAME, *_OTHER)))
def flex(n: Conversion) -> Value:
    """Of floats alone."""
    x, name = n.x(), n.operator.kind.removeprefix(FLEX)
    if n.quantised() or not x.dtype.is_float:
        raise OperatorError(f"{x.type} is not supported", "E202")
    made = _OTHER.get(name, name)
    return n.add(made, x) if isinstance(made, str) else made(n, x)


@rule(f"{FLEX}Cast")
def cast(n: Conversion) -> Value:
    """Between types that the format's own does not take, float64 among them."""
    if Attributes(n).flag("Truncate"):
        raise OperatorError("digits are cut off instead of rounded (Truncate)", "E202")
    return n.build(Cast(n.out_dtype()), n.x())


# --- windows and places -------------------------------------------------------------------------------------


def _channels_last(given: Attributes, name: str, rank: int) -> tuple[int, ...]:
    """The attribute's numbers for the axes between batch and channels, for which it says 1."""
    found = given.integers(name, rank)
    if (found[0], found[-1]) != (1, 1):
        raise OperatorError(f"{name} {found} over batch or channels", "E202")
    return found[1:-1]


def _pads(n: Conversion, given: Attributes, kernel: Any, strides: Any, dilations: Any) -> tuple[int, ...]:
    padding = given.text("padding", "")
    if padding not in ("SAME", "VALID"):
        raise OperatorError(f"padding '{padding}'", "E102")
    upper = "SAME_UPPER" if padding == "SAME" else "VALID"
    return resolved_pads(upper, None, n.x().shape[1:-1], kernel, strides, dilations)


@rule(f"{FLEX}MaxPool3D", f"{FLEX}AvgPool3D")
def pool(n: Conversion) -> Value:
    """Floats [N, D, H, W, C]."""
    x, given = n.real(), Attributes(n)
    if given.text("data_format", "NDHWC") != "NDHWC":
        raise OperatorError("channels first is not supported", "E202")
    if x.type.rank != 5 or 0 in x.shape:
        raise OperatorError(f"{x.type} is not the input of 3-D pooling")
    kernel, strides = (_channels_last(given, name, 5) for name in ("ksize", "strides"))
    mode = "max" if n.operator.kind.endswith("MaxPool3D") else "average"
    ones = (1, 1, 1)
    return n.build(Pool(mode, kernel, strides, _pads(n, given, kernel, strides, ones), ones), x)


_MOST_TAPS = 1024
"""Of patches that overlap: each tap is a slice of the image."""


@rule(f"{FLEX}ExtractImagePatches")
def patches(n: Conversion) -> Value:
    """[N, H, W, C] to [N, H', W', taps * C]: the window at each place, its rows one behind the other."""
    x, given = n.x(), Attributes(n)
    if n.quantised() or x.type.rank != 4 or 0 in x.shape:
        raise OperatorError(f"patches of {x.type} are not supported", "E202")
    kernel, strides, rates = (_channels_last(given, name, 4) for name in ("ksizes", "strides", "rates"))
    pads = _pads(n, given, kernel, strides, rates)
    if any(pads):
        edges = n.constant([0, *pads[:2], 0, 0, *pads[2:], 0], DType.INT64)
        x = n.build(Pad(), x, edges, n.constant(0, x.dtype))
    batch, *image, c = x.shape
    reach = [(k - 1) * r + 1 for k, r in zip(kernel, rates, strict=True)]
    high, wide = ((d - a) // s + 1 for d, a, s in zip(image, reach, strides, strict=True))
    if high < 1 or wide < 1:
        raise OperatorError(f"the window {kernel} is larger than the image {x.type}")
    if (strides, rates) == (kernel, (1, 1)):  # they lie side by side
        kh, kw = kernel
        whole = slices(n, x, [(0, batch, 1), (0, high * kh, 1), (0, wide * kw, 1), (0, c, 1)])
        y = n.transpose(n.reshape(whole, (batch, high, kh, wide, kw, c)), (0, 1, 3, 2, 4, 5))
        return n.reshape(y, (batch, high, wide, kh * kw * c))
    if math.prod(kernel) > _MOST_TAPS:
        raise OperatorError(f"windows {kernel} that overlap are not supported", "E202")
    rows, columns = (
        [(k * r, k * r + (count - 1) * s + 1, s) for k in range(taps)]
        for taps, r, count, s in zip(kernel, rates, (high, wide), strides, strict=True)
    )
    return n.build(
        Concat(3), *(slices(n, x, [(0, batch, 1), a, b, (0, c, 1)]) for a in rows for b in columns)
    )


@rule(f"{FLEX}Roll")
def roll(n: Conversion) -> Value:
    """Along some axes, elements move on by so many places; those of the end come to the beginning."""
    x, shifts, axes = n.x(), n.ints(1, "the shift"), n.ints(2, "the axis")
    rank = x.type.rank
    if len(shifts) != len(axes) or not all(-rank <= a < rank for a in axes):
        raise OperatorError(f"shifts {shifts[:9]} along axes {axes[:9]} of {x.type}")
    for axis in range(rank):
        extent = x.shape[axis]
        shift = sum(s for s, a in zip(shifts, axes, strict=True) if a % rank == axis) % max(extent, 1)
        if shift:
            whole = [(0, d, 1) for d in x.shape]
            ends = ((extent - shift, extent, 1), (0, extent - shift, 1))
            x = n.build(
                Concat(axis), *(slices(n, x, [*whole[:axis], end, *whole[axis + 1 :]]) for end in ends)
            )
    return n.add("Identity", x)
