"""What a network's operators cost about, without a target: for choices before anything is compiled."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from aot_model.quantise.candidates import Prepared
from aot_model.quantise.choose import ELEMENTWISE, MOVEMENTS, RANGES, Layer

MAC, PRODUCT, ELEMENT = 1.25, 4.0, 8.0
"""Cycles of a Cortex-M4, rounded: of a product of 8 bits, of one of two tensors, of writing and reading an
element."""
WIDER_MAC, WIDER_DEPTHWISE, WIDER_PRODUCT = 0.8, 5.0, 0.5
"""... more for a product with 16 bits on one side; depthwise; of two tensors, for each of them."""
WIDER = {"Add": 4.0, "Sub": 4.0, "Concat": 2.0, "LayerNormalization": 2.0, "Mul": 30.0, "Softmax": 16.0}
"""... for each element that an operator reads."""
MOVED, FUNCTION = 3.0, 14.0
"""... of a movement; of a function that is a table of 256 where it reads 8 bits, else pieces."""


def elements(source: Prepared, name: str) -> float:
    return float(np.prod(source.network.shape(name) or (0,)))


def macs(source: Prepared, layer: Layer) -> float:
    """Products of a layer."""
    weight = source.network.constants[layer.weight]
    axis = source.choice.weights[layer.weight].axis or 0
    return elements(source, layer.before) * float(weight.size / max(weight.shape[axis], 1))


def work_of(source: Prepared) -> float:
    """Of a run of the int8 model, in cycles."""
    total = MAC * sum(macs(source, layer) for layer in source.choice.layers)
    layers = {layer.node for layer in source.choice.layers}
    for node in source.network.model.graph.node:
        if node.op_type == "MatMul" and node.name not in layers:
            total += PRODUCT * elements(source, node.output[0]) * _length(source, node.input[0])
    return total + ELEMENT * sum(elements(source, n) for n in source.choice.tensors)


def _length(source: Prepared, name: str) -> int:
    return (source.network.shape(name) or (1,))[-1]


def more_with_16_bits(source: Prepared, names: Iterable[str]) -> float:
    """What tensors of 16 bits in place of 8 cost more."""
    network = source.network
    layers = {layer.node: layer for layer in source.choice.layers}
    multiples = {product for _, product, _ in source.choice.multiples}
    total = 0.0
    for name in names:
        count = elements(source, name)
        total += 2 * count
        for node in network.readers[name]:
            layer = layers.get(node.name)
            if layer is not None:
                grouped = network.attribute(node, "group", 1) != 1
                total += macs(source, layer) * (WIDER_DEPTHWISE if grouped else WIDER_MAC)
            elif node.op_type == "MatMul":
                total += elements(source, node.output[0]) * _length(source, node.input[0]) * WIDER_PRODUCT
            elif node.op_type in MOVEMENTS or node.op_type in RANGES or node.output[0] in multiples:
                total += MOVED * count
            elif node.op_type in ELEMENTWISE and node.op_type not in WIDER:
                total += FUNCTION * count
            else:
                total += WIDER.get(node.op_type, 8.0) * count
    return total
