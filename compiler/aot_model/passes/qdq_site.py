"""What the rules of fuse_qdq see of a graph: which floats are quantised integers, and how results become
integers again.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from aot_model.arithmetic.fixed_point import quantise_multiplier
from aot_model.ir.graph import Graph, Node
from aot_model.ir.nibbles import is_packed
from aot_model.ir.types import DType
from aot_model.ir.values import Value, constant
from aot_model.ops.elementwise import op
from aot_model.ops.movement import Pad, Split, Transpose
from aot_model.ops.piecewise import MOST
from aot_model.ops.pooling import MaxPool
from aot_model.ops.quantised_linear import DequantizeLinear, QuantizeLinear
from aot_model.ops.quantised_tables import lookup
from aot_model.ops.registry import Build
from aot_model.ops.requantise import Requantise
from aot_model.ops.resample import Resize

MOVEMENTS = (
    "Reshape",
    "Flatten",
    "Squeeze",
    "Unsqueeze",
    "Transpose",
    "Slice",
    "Split",
    "Gather",
    "Identity",
    "Expand",
    "Tile",
    "Pad",
    "MaxPool",
    "DepthToSpace",
    "SpaceToDepth",
    "Resize",
)
"""Operators that give the same elements whether they are integers or what those stand for, or zeros; the
first input is the data.
"""

Answer = Value | str
"""The integers of a result, or why there are none."""

RESULTS = 2.0**31 - 2**17
"""Results of a requantisation are smaller, before the zero point is added and the limits cut them."""
LARGEST_FACTOR = 2.0**29
"""Any accumulator but 0 leaves the limits of 16 bits with it, as with larger ones."""
LEAST_FACTOR = 2.0**-32
"""Smaller ones are 0 in fixed point, as is what they make of 32 bits."""
NARROW = (DType.INT8, DType.UINT8, DType.INT16, DType.UINT16)


@dataclass(frozen=True)
class Scaled:
    """Integers that stand for scale * (value - zero): one scale, or one per index of an axis; both are
    flat."""

    value: Value
    scale: np.ndarray
    zero: np.ndarray
    axis: int | None = None

    @property
    def single(self) -> bool:
        return self.axis is None

    @property
    def s(self) -> float:
        return float(self.scale[0])

    @property
    def z(self) -> int:
        return int(self.zero[0])

    @property
    def largest(self) -> int:
        """A bound of the size of the integers less their zero point."""
        low, high = self.value.dtype.limits
        return int(max(abs(low - self.z), abs(high - self.z)))


def parameters(node: Node) -> tuple[np.ndarray, np.ndarray] | None:
    """Constant scales (as float64) and zero points of a QuantizeLinear or DequantizeLinear, else None."""
    scale = node.inputs[1]
    zero = node.input(2)
    if scale is None or scale.data is None or (zero is not None and zero.data is None):
        return None
    assert isinstance(node.op, (QuantizeLinear, DequantizeLinear))
    if node.op.block_size or not (scale.data > 0).all():
        return None
    zeros = np.zeros(1, np.int64) if zero is None or zero.data is None else zero.data.astype(np.int64)
    return scale.data.astype(np.float64), zeros


def _meets_ties(real: float, most: float) -> bool:
    """Whether some whole number up to `most` times the fixed-point factor is half-way between two others:
    with scales that are powers of two many are, with others as good as none."""
    multiplier, shift = quantise_multiplier(real)
    # the smallest power of two that gives a half
    halves = 30 - shift - ((multiplier & -multiplier).bit_length() - 1)
    return multiplier != 0 and halves >= 0 and 2.0**halves <= most


def by_ties(reals: Sequence[float], most: float) -> str:
    """The rounding of whole numbers up to `most` by any of these factors: ties to even as the literal
    meaning has it; "single" (ties up) is less work, where there are no ties."""
    return "even" if any(_meets_ties(r, most) for r in set(reals)) else "single"


def _whole_bytes(value: Value) -> Value:
    """Constants of less than 8 bits as 8-bit ones."""
    if value.data is None or not value.dtype.is_integer or not value.dtype.storage:
        return value
    return constant(value.name, value.data.astype(value.dtype.compute.numpy))


@dataclass
class QdqResult:
    """What a QuantizeLinear makes: type, scale, zero point, and the range that activations before it
    leave.
    """

    dtype: DType
    s: float
    z: int
    low: int
    high: int

    @property
    def limits(self) -> tuple[int, int, int, DType]:
        """Zero point, range and type, as operators take them."""
        return self.z, self.low, self.high, self.dtype

    def q(self, real: float) -> int:
        """The integer of a real number."""
        least, most = self.dtype.limits
        with np.errstate(over="ignore"):
            steps = np.rint(np.float32(real) / np.float32(self.s))
        return int(min(max(steps + self.z, least), most))

    def clamp(self, low: float | None, high: float | None) -> None:
        """Take a real range into account: of what the range so far leaves."""
        if low is not None:
            self.low, self.high = (max(v, self.q(low)) for v in (self.low, self.high))
        if high is not None:
            self.low, self.high = (min(v, self.q(high)) for v in (self.low, self.high))


@dataclass
class QdqSite:
    """One QuantizeLinear, and the nodes that replace it."""

    graph: Graph
    quantise: Node
    producer: dict[Value, Node]
    uses: dict[Value, list[Node]]
    to: QdqResult
    label: str
    """Name of the layer, for the new nodes."""
    pieces: int = MOST
    """A function of 16 bits may have."""
    nodes: list[Node] = field(default_factory=list)

    @property
    def build(self) -> Build:
        return Build(self.nodes, self.label)

    def read_once(self, value: Value) -> bool:
        """Whether a value is read once, and is no output."""
        return len(self.uses.get(value, [])) == 1 and value not in self.graph.outputs

    def scaled(self, value: Value | None) -> Scaled | None:
        """The integers behind a float value: dequantised, or moved elements of what was dequantised."""
        node = None if value is None else self.producer.get(value)
        if value is None or node is None:
            return None
        if isinstance(node.op, DequantizeLinear) and node.inputs[0] is not None:
            found = parameters(node)
            source = node.inputs[0] if is_packed(node.inputs[0]) else _whole_bytes(node.inputs[0])
            if found is None or (source.dtype.storage and not is_packed(source)):
                return None
            scale, zero = found
            one = scale.size == 1 and zero.size == 1
            axis = None if one else node.op.axis % node.inputs[0].type.rank
            return Scaled(source, scale.reshape(-1), zero.reshape(-1), axis)
        if node.kind in MOVEMENTS:
            behind = self.scaled(node.inputs[0])
            if behind is not None and behind.value.data is not None and isinstance(node.op, Transpose):
                perm = node.op.permutation(behind.value.type.rank)
                axis = None if behind.axis is None else perm.index(behind.axis)
                turned = self.constant("weights", behind.value.data.transpose(perm))
                return replace(behind, value=turned, axis=axis)
            if behind is None or not behind.single:
                return None
            moved = self._moved(node, node.outputs.index(value), behind)
            return None if moved is None else Scaled(moved, behind.scale, behind.zero)
        return None

    def _moved(self, node: Node, output: int, x: Scaled) -> Value | None:
        """An output of a movement, of integers; None where it is no movement of integers."""
        if isinstance(node.op, Split):
            axis = node.op.axis % x.value.type.rank
            begin = sum(v.shape[axis] for v in node.outputs[:output])
            ends = (begin, begin + node.outputs[output].shape[axis], axis)
            return self.build(op("Slice"), x.value, *(self.constant("slice", np.asarray([v])) for v in ends))
        if isinstance(node.op, MaxPool) and node.op._pool(x.value).misses:
            return None  # its result is the smallest of floats
        if isinstance(node.op, Resize) and not node.op.picks:
            return None
        if isinstance(node.op, Pad) and node.op.mode == "constant":
            pads, fill, axes = (node.input(k) for k in (1, 2, 3))
            if x.value.dtype not in NARROW or (fill is not None and (fill.data is None or fill.data.any())):
                return None
            zero = self.constant("zero", x.zero.reshape(()).astype(x.value.dtype.numpy))
            return self.build(node.op, x.value, pads, zero, *([] if axes is None else [axes]))
        return self.build(node.op, x.value, *node.inputs[1:]) if len(node.outputs) == 1 else None

    def tensor(self, value: Value | None) -> Scaled | None:
        """Narrow integers with one scale behind a float value."""
        found = self.scaled(value)
        found = None if found is None else replace(found, value=_whole_bytes(found.value))
        return found if found is not None and found.single and found.value.dtype in NARROW else None

    def real(self, value: Value | None) -> np.ndarray | None:
        """A constant float tensor, dequantised if need be."""
        if value is None:
            return None
        if value.data is not None:
            return value.data.astype(np.float64)
        node = self.producer.get(value)
        if node is None or not isinstance(node.op, DequantizeLinear):
            return None
        found, source = parameters(node), node.inputs[0]
        if found is None or source is None or source.data is None:
            return None
        scale, zero = found
        shape = [1] * max(source.type.rank, 1)
        if scale.size > 1 or zero.size > 1:
            shape[node.op.axis] = -1
        scale, zero = (v.reshape(shape if v.size > 1 else [1] * len(shape)) for v in (scale, zero))
        return np.asarray((source.data.astype(np.float64) - zero) * scale).reshape(source.shape)

    def constant(self, name: str, data: np.ndarray) -> Value:
        return constant(f"{self.label}.{name}", np.asarray(data, order="C"))  # one number keeps its shape

    def finish(self, acc: Value, bias: np.ndarray | None, units: np.ndarray, most: float) -> Value:
        """Accumulators of `units` (a real number, or one for each channel of the last axis) to the wanted
        integers.

        bias: real numbers, one or one per channel, which with the accumulators fit their type. most: no
        accumulator is larger, whatever the input.
        """
        if bias is not None:
            most += float(np.abs(bias / units).max(initial=0))
            whole = np.broadcast_to(np.rint(bias / units), (acc.shape[-1],)).astype(acc.dtype.numpy)
            acc = self.build(op("Add"), acc, self.constant("bias", whole))
        reals = (units / self.to.s).reshape(-1)
        return self.requantised(
            acc,
            reals if len(set(reals.tolist())) > 1 else reals[:1],
            rounding="wide" if most >= 2**31 else "",
            most=most,
        )

    def requantised(
        self,
        acc: Value,
        reals: Sequence[float] | np.ndarray,
        x_zero_point: int = 0,
        *,
        rounding: str = "",
        most: float,
    ) -> Value:
        """`by_ties`, or "wide" where accumulators are beyond 32 bits. most: no accumulator less its zero
        point is larger.
        """
        reals = np.minimum(reals, LARGEST_FACTOR)
        rounding = rounding or by_ties(reals.tolist(), most)
        bounds = np.full(len(reals), most)
        if most * float(reals.max()) >= RESULTS:
            acc = self._cut(acc, reals, x_zero_point)
            bounds = np.minimum(bounds, np.floor(RESULTS / 2 / reals))
        pairs = [quantise_multiplier(float(r)) for r in reals]
        if rounding == "wide":
            pairs = [_wide_factor(m, s, most) for (m, s), most in zip(pairs, bounds.tolist(), strict=True)]
        factors = [np.asarray(v, np.int32) for v in zip(*pairs, strict=True)]
        node = Requantise(self.to.z, self.to.low, self.to.high, self.to.dtype, rounding, x_zero_point)
        return self.build(
            node, acc, self._beside(acc, "multiplier", factors[0]), self._beside(acc, "shift", factors[1])
        )

    def _beside(self, acc: Value, name: str, data: np.ndarray) -> Value:
        """Numbers for each channel of the accumulators, or one, which has no axis where these have none."""
        return self.constant(name, data) if acc.shape else constant(f"{self.label}.{name}", data.reshape(()))

    def _cut(self, acc: Value, reals: np.ndarray, zero: int) -> Value:
        """Accumulators without those whose results would leave 32 bits: what they are cut to is beyond the
        limits of the output as well."""
        ends, (low, high) = np.floor(RESULTS / 2 / reals), np.clip(acc.dtype.limits, -(2.0**62), 2.0**62)
        for kind, sign in (("Max", -1), ("Min", 1)):
            end = np.clip(zero + sign * ends, low, high).astype(acc.dtype.numpy)
            acc = self.build(op(kind), acc, self._beside(acc, kind.lower(), end))
        return acc

    def integers(self, real: np.ndarray) -> Value:
        """A constant of floats as the wanted integers."""
        with np.errstate(over="ignore", invalid="ignore"):
            steps = np.rint(real.astype(np.float32) / np.float32(self.to.s)).astype(np.float64)
        whole = np.clip(np.nan_to_num(steps) + self.to.z, self.to.low, self.to.high)
        return self.constant("integers", whole.astype(self.to.dtype.numpy))

    def rescaled(self, x: Scaled) -> Value:
        """Integers in the wanted scale: through a table, or by a multiplication."""
        to = self.to
        least, most = to.dtype.limits
        if (
            x.value.dtype is to.dtype
            and (np.float32(x.s), x.z) == (np.float32(to.s), to.z)
            and (to.low, to.high) == (least, most)
        ):
            return x.value
        if x.value.dtype.bits == 8:
            low, high = x.value.dtype.limits
            with np.errstate(over="ignore"):  # of scales far from each other
                reals = np.arange(low - x.z, high - x.z + 1).astype(np.float32) * np.float32(x.s)
                table = np.clip(np.rint(reals / np.float32(to.s)) + to.z, to.low, to.high)
            return self.build(lookup(x.value.dtype, [int(v) for v in table], to.dtype), x.value)
        return self.requantised(x.value, [x.s / to.s], x.z, most=x.largest)


def _wide_factor(multiplier: int, shift: int, most: float) -> tuple[int, int]:
    """A factor of 32 bits as multiplier * 2^(shift - 15), with as many bits as its products have room for.

    With 16 bits alone it is off by up to 2^-15, which is two steps of an output of 16 bits without a sign.
    """
    room = 47 - math.frexp(most)[1]  # |sum| < 2^(47 - room), times 2^(15 + more), and the rounding: < 2^63
    more = max(0, min(16, room, shift + 31))
    cut = 16 - more
    rounded = (multiplier + ((1 << cut) >> 1)) >> cut
    return min(rounded, (1 << (15 + more)) - 1), shift - more
