"""Layers at the edges of what kernels take and choose between, drawn by number: sizes around fields of
instructions, lanes and limits of tables, in every type, with every kind of tail, for every family of targets.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import ml_dtypes
import numpy as np
from draw import Draw
from draw import requantised as wide_requantised
from layer import Layer, Step

from aot_model.ir.operator import OperatorError
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.conversion import Cast
from aot_model.ops.convolution import Convolution, ConvolutionTranspose
from aot_model.ops.elementwise import op
from aot_model.ops.matmul import MatMul
from aot_model.ops.pool import Pool
from aot_model.ops.quantised import QuantisedSum
from aot_model.ops.quantised_tables import Lookup, Table
from aot_model.ops.registry import OPERATORS
from aot_model.ops.requantise import Requantise, Rescale
from batch import Case

MOST = 40_000
"""Elements of a tensor of a layer."""
ATTEMPTS = 500
ODD = 100_000
"""From this number on inputs often lie otherwise, and tensors are added to results."""
EDGES = (15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 340, 341, 511, 512, 513, 1019,
         1020, 1021, 1023, 1024, 1025, 1365, 1366, 2047, 2048, 4092, 4095, 4096, 4097)  # fmt: skip
BITS = tuple(sorted({(1 << n) + more for n in (8, 10, 12, 14, 15, 16) for more in (-4, -2, -1, 0, 1, 2)}))
"""Products of sizes."""
PLACES: tuple[tuple[str, dict[str, str]], ...] = (
    ("c", {}),
    ("cortex-m0", {}),
    ("cortex-m0", {"optimize": "size"}),
    *(("cortex-m4", {"memory": m}) for m in ("", "0ws", "l4-art", "f4-art")),
    *(("cortex-m4", {"optimize": m, "memory": "l4-art"}) for m in ("speed", "size")),
    ("cortex-m7", {}),
    ("cortex-m33", {"optimize": "speed"}),
    *(("cortex-m55", {"optimize": m}) for m in ("balanced", "speed", "size")),
    *(("host", {"vector": v}) for v in ("v4", "v8", "v16", "neon")),
    ("host", {"vector": "v8", "dot": "vnni"}),
    ("host", {"vector": "neon", "dot": "sdot"}),
)
TABLE = Table(
    tuple(int(v) for v in np.clip(100 - np.arange(-128, 128) ** 2 // 90, -128, 127)), DType.INT8, -128
)
BOTH = QuantisedSum("add", Rescale(5, 2**30, 0), Rescale(-7, 1932735283, -1), Rescale(2, 1503238553, -18), 20)


@dataclass(frozen=True)
class Drawn:
    """A layer, and the target that it is compiled for."""

    layer: Layer
    target: str
    options: dict[str, str]
    sizes: dict[str, int]
    """By name."""

    @property
    def case(self) -> Case:
        return self.layer.case(self.layer.graph, self.options)


class _Sizes:
    """Sizes of a layer, mostly small, some at an edge. changes: others than those drawn, by their names."""

    def __init__(self, rng: np.random.Generator, changes: Mapping[str, int], odd: bool) -> None:
        self.rng = rng
        self.odd = odd
        self.changes = changes
        self.taken: dict[str, int] = {}

    def named(self, **drawn: int) -> list[int]:
        """The sizes, with what is changed."""
        found = {name: self.changes.get(name, int(size)) for name, size in drawn.items()}
        self.taken |= found
        return list(found.values())

    def pick(self, *values: Any) -> Any:
        return values[int(self.rng.integers(len(values)))]

    def few(self, most: int = 9) -> int:
        return int(self.rng.integers(1, most + 1))

    def size(self) -> int:
        return self.few(24) if self.rng.random() < 0.7 else int(self.pick(*EDGES))

    def factor(self, given: int) -> int:
        """What times `given` is an edge, or nearly."""
        return max(1, int(self.pick(*BITS)) // max(1, given))


def drawn(words: str) -> Drawn:
    """The same every time. words: a number, and sizes that are changed, "12 kernel0=3"."""
    number, *changed = words.split()
    draw = Draw(7_000_000 + int(number))
    changes = {name: int(size) for name, size in (word.split("=") for word in changed)}
    sizes = _Sizes(draw.rng, changes, int(number) >= ODD)
    target, options = PLACES[int(number) % len(PLACES)]
    kind = sizes.pick(*(ODD_KINDS if sizes.odd else KINDS))
    for _ in range(ATTEMPTS):
        layer = kind(draw, sizes)
        if layer is not None:
            return Drawn(layer, target, options, sizes.taken)
    raise ValueError(f"layer {words} is too large")


def _window(s: _Sizes, padded: bool = True) -> tuple[list[int], list[int], list[int], list[int], list[int]]:
    """Sizes, kernel, strides, dilations, pads of both axes."""
    kernel = [s.pick(1, 1, 1, 2, 3, 3, 3, 4, 5, 7, s.few(70)) for _ in range(2)]
    strides = [s.pick(1, 1, 1, 2, 2, 3, s.few(6)) for _ in range(2)]
    dilations = [s.pick(1, 1, 1, 1, 2, 3) if k > 1 else 1 for k in kernel]
    same = s.rng.random() < 0.4
    strides, kernel = ([strides[0]] * 2, [kernel[0]] * 2) if same else (strides, kernel)
    dilations = [dilations[0]] * 2 if same else dilations
    wide = [(k - 1) * d + 1 for k, d in zip(kernel, dilations, strict=True)]
    pads = [
        int(s.rng.integers(0, w // 2 + 1)) if padded and s.rng.random() < 0.5 else 0 for w in (*wide, *wide)
    ]
    sizes = [max(1, w + s.pick(0, 1, 3, s.few(24)) - 1) for w in wide]
    if s.rng.random() < 0.25:
        axis = int(s.rng.integers(2))
        sizes[axis] = max(sizes[axis], s.size())
    if s.rng.random() < 0.1:
        sizes[0] = kernel[0] = strides[0] = dilations[0] = wide[0] = 1
        pads[0] = pads[2] = 0
    sizes = [max(n, w - pads[k] - pads[k + 2]) for k, (n, w) in enumerate(zip(sizes, wide, strict=True))]
    return (
        s.named(size0=sizes[0], size1=sizes[1]),
        s.named(kernel0=kernel[0], kernel1=kernel[1]),
        s.named(stride0=strides[0], stride1=strides[1]),
        s.named(dilation0=dilations[0], dilation1=dilations[1]),
        s.named(top=pads[0], left=pads[1], bottom=pads[2], right=pads[3]),
    )


def _fitting(sizes: list[int], kernel: list[int], ins: int, outs: int, groups: int) -> bool:
    pixels, weights = int(np.prod(sizes)), int(np.prod(kernel)) * ins * outs // groups
    least = min(ins, outs, *sizes, *kernel)
    return least > 0 and max(pixels * max(ins, outs), weights) <= MOST and pixels * weights < 1 << 24


def _channels(s: _Sizes, row: int) -> tuple[int, int, int]:
    """Inputs, outputs, groups."""
    form = s.rng.random()
    ins = s.factor(row) if s.rng.random() < 0.2 else s.size()
    if form < 0.4:
        ins, outs = s.named(ins=ins, outs=s.size())
        return ins, outs, 1
    if form < 0.75:
        ins, times = s.named(ins=ins, times=s.pick(1, 1, 1, 2, 4, s.few(5)))
        return ins, ins * times, ins
    if form < 0.85:
        return 1, s.named(outs=s.size())[0], 1
    groups, ins, outs = s.named(groups=s.pick(2, 3, 4, 8), ins=s.few(20), outs=s.few(20))
    return groups * ins, groups * outs, groups


def _convolution(transposed: bool, draw: Draw, s: _Sizes) -> Layer | None:
    sizes, kernel, strides, dilations, pads = _window(s)
    if s.rng.random() < 0.06:  # of volumes
        sizes, kernel = [s.few(6) + 1, *sizes], [2, *kernel]
        strides, dilations = [s.pick(1, 2), *strides], [1, *dilations]
        pads = [s.pick(0, 1), *pads[:2], s.pick(0, 1), *pads[2:]]
    ins, outs, groups = _channels(s, sizes[-1] * strides[0])
    if not _fitting(sizes, kernel, ins, outs, groups):
        return None
    kind, to = s.pick(*TYPES)
    (batch,) = s.named(batch=s.pick(1, 1, 1, 2))
    window = {"strides": tuple(strides), "dilations": tuple(dilations), "pads": tuple(pads), "group": groups}
    more = {"output_padding": (0,) * len(sizes)} if transposed else {}
    middle, floats = MIDDLE.get(kind, 0), kind is np.float32
    zero = 0 if floats or kind is np.int16 else s.few(40) + middle - 20
    w, w_zero = draw.tensor(np.float32 if floats else np.int8, outs, *kernel, ins // groups), 0
    if not floats and s.rng.random() < 0.1:
        w = np.ones_like(w)
    elif kind in (np.int8, np.uint8) and s.rng.random() < 0.3:
        w, w_zero = (w, 7) if s.rng.random() < 0.3 else _nibbles(draw, s, w.shape)
    elif not floats and s.rng.random() < 0.04:
        w = draw.tensor(np.int16, *w.shape)
    node = (ConvolutionTranspose if transposed else Convolution)(
        **window, **more, x_zero_point=zero, w_zero_point=w_zero
    )
    x = draw.tensor(kind, batch, *sizes, ins)
    steps = (Step(node, (w,)), *_tail(draw, s, kind, to, w, outs))
    if s.odd:
        values = [Value(name, TensorType(DType.of(v.dtype), v.shape)) for name, v in (("x", x), ("w", w))]
        try:
            shape = node.infer(values)[0].shape
        except OperatorError:
            return None
        steps += _added(draw, s, shape, kind, steps)
    x, first = _turned(s, x)
    name = f"{x.dtype}{list(x.shape)} * {w.dtype}{list(w.shape)}{'^T' if transposed else ''}"
    return Layer(_named(name, window, steps), x, (*first, *steps))


def _added(
    draw: Draw, s: _Sizes, shape: tuple[int, ...], kind: type[Any], steps: tuple[Step, ...]
) -> tuple[Step, ...]:
    """Sometimes a tensor that is given, too, of the result's size or the same along some axes."""
    if s.rng.random() < 0.4:
        return ()
    other = tuple(s.pick(1, n) for n in shape)
    (form,) = s.named(form=s.rng.integers(4))
    shape = other if form == 3 else shape
    if kind is np.float32:
        return (Step(op("Add"), (draw.tensor(np.float32, *shape),), fed=True),)
    result = steps[-1].operator
    if not isinstance(result, Requantise) or result.to is not DType.INT8:
        return ()
    return (Step(BOTH, (draw.tensor(np.int8, *shape),), fed=True),)


def _turned(s: _Sizes, x: np.ndarray) -> tuple[np.ndarray, tuple[Step, ...]]:
    """Now and then the input lies otherwise: channels first, or rows and columns exchanged."""
    if s.rng.random() > (0.6 if s.odd else 0.08):
        return x, ()
    last = x.ndim - 1
    order = s.pick((0, *range(2, last + 1), 1), (0, *range(last - 1, 0, -1), last))
    return np.ascontiguousarray(x.transpose(np.argsort(order))), (Step(OPERATORS["", "Transpose"](order)),)


def _nibbles(draw: Draw, s: _Sizes, shape: tuple[int, ...]) -> tuple[np.ndarray, int]:
    """Weights of 4 bits, and their zero point."""
    low, high, kind = s.pick((-8, 7, ml_dtypes.int4), (0, 15, ml_dtypes.uint4))
    zero = s.pick(0, 0, 0, low, high, 3)
    most = s.pick(high, high, max(abs(zero) - 1, 1))
    return draw.rng.integers(low, most + 1, shape).astype(kind), zero


def _product(draw: Draw, s: _Sizes) -> Layer | None:
    rows, depth, columns = s.pick(1, 1, 2, 3, 4, 5, s.size()), s.size(), s.size()
    depth = s.factor(columns) if s.rng.random() < 0.2 else depth
    rows, depth, columns = s.named(rows=rows, depth=depth, columns=columns)
    if (
        min(rows, depth, columns) < 1
        or max(rows * depth, depth * columns, rows * columns) > MOST
        or rows * depth * columns >= 1 << 22
    ):
        return None
    kind, to = s.pick(*TYPES)
    floats = kind is np.float32
    fed, batch = s.rng.random() < 0.3, s.pick((), (), (), (2,), (2, 3), (1, 2))
    x = draw.tensor(kind, *batch, rows, depth)
    w = draw.tensor(kind if fed or floats else np.int8, *(batch if fed else ()), depth, columns)
    w_zero = MIDDLE.get(kind, 0) if fed else 0
    if not fed and kind in (np.int8, np.uint8) and s.rng.random() < 0.2:
        w, w_zero = _nibbles(draw, s, w.shape)
    node = MatMul(0 if floats or kind is np.int16 else MIDDLE.get(kind, 0) + s.few(30), w_zero)
    steps = (Step(node, (w,), fed=fed), *_tail(draw, s, kind, to, w, columns))
    name = f"{x.dtype}{list(x.shape)} x {'given ' if fed else ''}{w.dtype}{list(w.shape)}"
    return Layer(_named(name, {}, steps), x, steps)


def _pool(draw: Draw, s: _Sizes) -> Layer | None:
    sizes, kernel, strides, dilations, pads = _window(s)
    (channels,) = s.named(channels=s.size())
    if not _fitting(sizes, kernel, channels, channels, channels):
        return None
    kind, _ = s.pick(*TYPES[:7])
    mode = s.pick("max", "average")
    pads = [min(p, k - 1) for p, k in zip(pads, kernel * 2, strict=True)]
    counted = s.pick(0, 0, 1) if mode == "average" else 0
    window = {"strides": tuple(strides), "pads": tuple(pads), "dilations": tuple(dilations)}
    x = draw.tensor(kind, s.pick(1, 1, 2), *sizes, channels)
    steps: tuple[Step, ...] = (Step(Pool(mode, tuple(kernel), **window, count_include_pad=counted)),)
    if kind is np.int8 and s.rng.random() < 0.2:
        steps += (Step(Lookup(TABLE)),)
    return Layer(
        _named(f"{mode} {tuple(kernel)} {x.dtype}{list(x.shape)} {counted}", window, steps), x, steps
    )


def _tail(
    draw: Draw, s: _Sizes, kind: type[Any], to: type[Any], w: np.ndarray, outs: int
) -> tuple[Step, ...]:
    (turn,), relu = s.named(turn=s.rng.integers(0, 420)), Step(OPERATORS["", "Relu"]())
    depth = w.size // outs
    if kind is np.float32:
        bias = Step(op("Add"), (draw.tensor(np.float32, outs),))
        long = (Step(OPERATORS["", "Sigmoid"]()), Step(op("Mul"), (draw.tensor(np.float32, outs),)), relu)
        return ((), (bias,), (bias, relu), (relu,), (bias, *long), (*long, bias, *long))[turn % 6]
    wide = np.dtype(kind).itemsize == 2 or np.dtype(to).itemsize == 2
    if wide or w.dtype == np.int16:
        if turn % 5 == 4:
            return ()
        most = (1 << 15 if np.dtype(kind).itemsize == 2 else 128) * (1 << 15 if w.dtype == np.int16 else 64)
        rule = "wide" if w.dtype == np.int16 else s.pick("wide", "wide", "single", "even", "double")
        rule = "single" if rule == "wide" and np.dtype(kind).itemsize == 1 else rule
        return wide_requantised(draw, depth, most, outs, to, turn, rule)
    if turn % 7 == 0:
        return s.pick((), draw.sums(outs, (), 0), (Step(Cast(DType.FLOAT32)),))
    steps = draw.even(outs, kind, turn) if turn % 7 == 1 else draw.requantised(depth, outs, kind, turn)
    if turn % 11 == 3:
        m, shift = steps[-1].others
        steps = (*steps[:-1], replace(steps[-1], others=(m, shift + s.pick(4, 9, -9, -20, -24))))
    if kind is np.int8 and turn % 5 == 1:
        steps += (Step(Lookup(TABLE)),)
    elif kind is np.int8 and turn % 5 == 2:
        steps += (Step(BOTH, (draw.tensor(np.int8, outs),)),)
    return steps


def _named(name: str, window: dict[str, Any], steps: tuple[Step, ...]) -> str:
    said = " ".join(f"{k} {v}" for k, v in window.items() if v not in (1, (1, 1), (0, 0, 0, 0)))
    return f"{name} {said}, {' '.join(step.operator.name for step in steps[1:])}".rstrip(", ").replace(
        "  ", " "
    )


TYPES: tuple[tuple[type[Any], type[Any]], ...] = (
    *[(np.int8, np.int8)] * 3,
    (np.uint8, np.uint8),
    (np.int16, np.int16),
    *[(np.float32, np.float32)] * 2,
    (np.int16, np.int8),
    (np.uint16, np.uint16),
    (np.int8, np.int16),
)
"""Of the input and the result."""
MIDDLE: dict[type[Any], int] = {np.uint8: 128, np.uint16: 32768}
ODD_KINDS = (*[partial(_convolution, False)] * 3, partial(_convolution, True))
KINDS = (*[partial(_convolution, False)] * 6, partial(_convolution, True), _product, _product, _pool)
