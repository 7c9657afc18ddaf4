"""What a network's operators cost about on a Cortex-M4, for choices before anything is compiled.

The rates are rounded from `aot-model time` of networks with all tensors of 8 and with all of 16 bits;
tests/quantise/test_work.py measures others.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

import numpy as np
import onnx

from aot_model.passes.qdq_site import MOVEMENTS
from aot_model.quantise.candidates import Prepared
from aot_model.quantise.choose import JOINS, RANGES, REDUCTIONS, Layer

Widths = tuple[float, float]
"""Cycles where something is of 8 bits, and of 16."""


@dataclass(frozen=True)
class Rates:
    """Of products, in cycles."""

    mac: Widths
    """By what is read."""
    gathered: Widths
    """... for each element of a pixel's window, which all channels of the result share."""
    result: Widths
    """For each result of 8 bits, by what is read;"""
    wide: float
    """... of 16 bits, whatever is read."""


LAYER = Rates((1.0, 1.1), (6.0, 4.0), (10.0, 16.0), 38.0)
WINOGRAD = Rates((0.55, 1.1), (2.0, 4.0), (25.0, 25.0), 38.0)
"""... of many 3x3 windows of 8 bits."""
FEW = Rates((1.35, 2.05), (0.0, 0.0), (10.0, 16.0), 24.0)
"""... of so few rows that weights are hardly used twice."""
DEPTHWISE = Rates((2.2, 2.2), (0.0, 0.0), (5.0, 10.0), 32.0)
TENSORS = Rates((3.7, 3.8), (0.0, 0.0), (2.0, 2.0), 22.0)
"""... of two tensors."""
SHORT = Rates((3.4, 2.8), (0.0, 0.0), (5.5, 5.5), 12.0)
"""... of at most FEW_TERMS terms each, which have no loop."""
FEW_TERMS = 8
WINDOW = 120.0
"""For each pixel whose window is more than the pixel."""
ROWS = 4
"""Fewer rows than so are few."""
DEEP, MANY = 12, 500_000
"""Channels and products of a layer with 3x3 windows from which on Winograd's kernel pays."""

READ: dict[str, Widths] = {
    "GlobalAveragePool": (7.0, 8.0), "AveragePool": (10.0, 4.0), "ReduceMean": (7.0, 8.0),
    "Softmax": (48.0, 62.0), "LayerNormalization": (16.0, 36.0), "Split": (1.5, 2.5),
}  # fmt: skip
"""For each element that is read, by its bits."""
MADE: dict[str, Widths] = {
    "Add": (9.0, 10.0), "Sub": (9.0, 10.0), "Mul": (8.0, 12.0), "Concat": (7.0, 6.0),
    "Transpose": (9.0, 9.0), "DepthToSpace": (9.0, 9.0), "SpaceToDepth": (9.0, 9.0), "MaxPool": (3.0, 6.0),
    "Pad": (3.0, 4.0), "Slice": (1.5, 2.5), "Gather": (1.5, 2.5), "Expand": (1.5, 2.5), "Tile": (1.5, 2.5),
}  # fmt: skip
"""For each element that is made (MaxPool: and of its window), by its bits."""
RUNS: Widths = 1.5, 2.5
"""... of a transpose that moves rows as they are."""
FUNCTION: Widths = 3.0, 16.0
"""Of what is a table of 256 where 8 bits are read, else pieces."""
CURVE, FLOAT = 60.0, 4.0
"""In floats, for each element: an exponential function; anything else."""
CURVES = ("Sigmoid", "Tanh", "Exp", "Log", "Erf", "Gelu", "LogSoftmax", "Softplus", "Mish", "Swish", "Pow")
DEQUANTISED = 12.0
QUANTISED: Widths = 27.0, 17.0
"""... of what becomes floats, and integers, at the edges of such operators and of the model."""
UNMOVED = ("Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity")
"""What moves nothing."""
INTEGERS = (*JOINS, *MOVEMENTS, *REDUCTIONS)
"""What integers are computed by; others are floats between them."""


def elements(source: Prepared, name: str) -> float:
    return float(np.prod(source.network.shape(name) or (0,)))


def macs(source: Prepared, layer: Layer) -> float:
    """Products of a layer."""
    weight = source.network.constants[layer.weight]
    if layer.kind == "ConvTranspose":
        return elements(source, layer.input) * float(weight.size / max(weight.shape[0], 1))
    axis = source.choice.weights[layer.weight].axis or 0
    return elements(source, layer.before) * float(weight.size / max(weight.shape[axis], 1))


def work_of(source: Prepared, wide: Collection[str] = ()) -> float:
    """Of a run, in cycles, with integers of 16 bits for the tensors in `wide`, of 8 for the others."""
    return sum(cycles(source, wide).values())


def cycles(source: Prepared, wide: Collection[str] = ()) -> dict[str, float]:
    """... of each node, by name; under those of inputs what quantises them."""
    work = _Work(source, frozenset(wide))
    found = {node.name: work.of(node) for node in source.network.model.graph.node}
    for name in source.network.inputs:
        gathered = all(node.op_type == "Conv" for node in source.network.readers[name])
        if name in work.integers and not gathered:  # a convolution quantises while it gathers
            found[name] = work.each(name, QUANTISED[name in work.wide])
    return found


@dataclass(frozen=True)
class _Work:
    source: Prepared
    wide: frozenset[str]
    integers: frozenset[str] = field(init=False)
    layers: dict[str, Layer] = field(init=False)
    free: frozenset[str] = field(init=False)
    """Results that cost nothing of their own: of the kernel before, or a change of scale."""

    def __post_init__(self) -> None:
        choice = self.source.choice
        object.__setattr__(self, "integers", frozenset(choice.tensors))
        object.__setattr__(self, "layers", {layer.node: layer for layer in choice.layers})
        behind = [n for layer in choice.layers for n in (layer.before, layer.result)]
        free = {*behind, *(product for _, product, _ in choice.multiples)}
        object.__setattr__(self, "free", frozenset(free))

    def each(self, name: str, rate: float) -> float:
        return rate * elements(self.source, name)

    def of(self, node: onnx.NodeProto) -> float:
        """Cycles of a node."""
        if node.name in self.layers:
            return self._layer(node, self.layers[node.name])
        if not node.output or node.output[0] in self.free or node.op_type in UNMOVED:
            return 0.0
        kind, out = node.op_type, node.output[0]
        reads = [n for n in node.input if n in self.integers]
        bits = any(n in self.wide for n in reads)
        if kind == "MatMul" and len(reads) == 2:
            terms = (self.source.network.shape(node.input[0]) or (1,))[-1]
            rates = SHORT if terms <= FEW_TERMS else TENSORS
            return self.each(out, rates.mac[bits] * terms + self._result(rates, bits, out))
        if kind in RANGES and not reads and out in self.integers:
            return 0.0
        origin = self.source.choice.origins.get(out)
        if origin in self.integers:
            return self.each(out, FUNCTION[origin in self.wide]) if out in self.integers else 0.0
        edges = 0.0
        if kind not in INTEGERS or not reads:
            edges = sum(self.each(n, DEQUANTISED) for n in dict.fromkeys(reads))
            edges += self.each(out, QUANTISED[out in self.wide]) if out in self.integers else 0.0
        if kind in READ:
            return edges + self.each(node.input[0], READ[kind][bits])
        if kind == "MaxPool":
            return self.each(out, MADE[kind][bits] * float(np.prod(self._numbers(node, "kernel_shape"))))
        if kind == "Transpose":
            return edges + self.each(out, self._transposed(node)[bits])
        if kind in MADE:
            return edges + self.each(out, MADE[kind][bits])
        largest = max(self.each(n, 1.0) for n in (*node.input, out) if n)
        return edges + largest * (CURVE if kind in CURVES else FLOAT)

    def _transposed(self, node: onnx.NodeProto) -> Widths:
        """What an element costs."""
        shape = self.source.network.shape(node.input[0]) or ()
        order = self._numbers(node, "perm") or range(len(shape))[::-1]
        moved = [k for k in order if shape[k : k + 1] != (1,)]
        if moved == sorted(moved):
            return 0.0, 0.0
        return RUNS if moved[-1] == max(moved) else MADE["Transpose"]

    def _numbers(self, node: onnx.NodeProto, name: str) -> list[int]:
        """Of an attribute; none where it is missing."""
        return [int(n) for a in node.attribute if a.name == name for n in a.ints]

    def _result(self, rates: Rates, bits: bool, name: str) -> float:
        return rates.wide if name in self.wide else rates.result[bits]

    def _layer(self, node: onnx.NodeProto, layer: Layer) -> float:
        network, bits = self.source.network, layer.input in self.wide
        weight = network.constants[layer.weight]
        results, products = elements(self.source, layer.before), macs(self.source, layer)
        channels = weight.shape[self.source.choice.weights[layer.weight].axis or 0]
        several = layer.kind == "Conv" and np.prod(weight.shape[2:]) > 1
        square = weight.shape[2:] == (3, 3) and set(self._numbers(node, "strides")) <= {1}
        rates, more = LAYER, WINDOW * several
        if network.attribute(node, "group", 1) != 1:
            rates, more = DEPTHWISE, 0.0
        elif results < ROWS * channels:
            rates = FEW
        elif square and not bits and min(weight.shape[:2]) >= DEEP and products >= MANY:
            rates, more = WINOGRAD, 0.0
        shared: float = (products * rates.gathered[bits] + results * more) / max(channels, 1)
        return shared + float(products * rates.mac[bits] + results * self._result(rates, bits, layer.result))
