"""What a model remembers of its training data: calibration data that are scaled otherwise, or are noise, give
batch normalisations other numbers; data that are much too small hardly move what first layers give."""

from __future__ import annotations

import numpy as np
import onnx

from aot_model.errors import CompileError
from aot_model.passes.qdq_site import MOVEMENTS
from aot_model.quantise.choose import Layer, choose
from aot_model.quantise.data import Samples
from aot_model.quantise.network import Network
from aot_model.quantise.runtime import FloatModel

MOST, FEWEST = 32, 8
"""Samples that are run, and with which something is said."""
FACTOR = 2.0
"""Batches differ by less."""
LEAST_MOVED = 1 / 32
"""How far a first layer's outputs spread, as a share of its biases: at least a third in 30 trained networks.
There is no most: what has hardly any biases spreads as many times as far as one likes."""


def spreads(model: onnx.ModelProto, samples: Samples, where: str) -> list[float]:
    """Of each batch normalisation, the median of its channels: how far what it gets spreads, in units of what
    was learnt. 1 where all is as in training."""
    network = Network(model)
    known = {}
    for node in model.graph.node:
        if node.op_type == "BatchNormalization" and node.input[4] in network.constants:
            known[node.input[0]] = network.constants[node.input[4]].astype(np.float64)
    if not known or samples.count < FEWEST:
        return []
    some = _some(samples)
    count = some.count
    sums = {name: np.zeros((2, variance.size)) for name, variance in known.items()}
    for tensors in FloatModel(model, list(known), where).each(some):
        for name, x in zip(known, tensors, strict=True):
            rows = np.moveaxis(x, 1, 0).reshape(x.shape[1], -1).astype(np.float64)
            sums[name] += rows.mean(axis=1), np.square(rows).mean(axis=1)
    found = []
    for name, variance in known.items():
        mean, square = sums[name] / count
        own = np.maximum(square - mean**2, 0)
        found.append(float(np.median(np.sqrt(own / np.maximum(variance, 1e-12)))))
    return found


def doubts_of_training(model: onnx.ModelProto, samples: Samples, where: str) -> list[str]:
    """Whether most normalisations see other numbers than in training."""
    try:
        found = spreads(model, samples, where)
    except CompileError:
        return []
    odd = [s for s in found if not 1 / FACTOR < s < FACTOR]
    if 2 * len(odd) <= len(found):
        return []
    return [
        f"what batch normalisations get spreads {np.median(found):.2g} times as far as in training: "
        "are the samples scaled as in training?"
    ]


def moved(model: onnx.ModelProto, samples: Samples, where: str) -> list[float]:
    """Of each layer that reads an input of the model and has biases: how far its outputs spread over samples
    and places, as a share of the biases (both the root of the mean square of the channels)."""
    network = Network(model)
    inputs = set(network.inputs)
    for node in model.graph.node:
        if node.op_type in MOVEMENTS and node.input[0] in inputs:
            inputs.update(node.output)
    layers: dict[str, tuple[Layer, float]] = {}
    for layer in choose(network).layers:
        if layer.input in inputs and layer.bias is not None:
            size = float(np.sqrt(np.square(network.constants[layer.bias], dtype=np.float64).mean()))
            layers[layer.before] = layer, size
    if not layers or samples.count < FEWEST:
        return []
    some = _some(samples)
    sums: dict[str, np.ndarray] = {}
    for tensors in FloatModel(model, list(layers), where).each(some):
        for (name, (layer, _)), x in zip(layers.items(), tensors, strict=True):
            axis = 1 if layer.kind in ("Conv", "ConvTranspose") else -1
            rows = np.moveaxis(x, axis, 0).reshape(x.shape[axis], -1).astype(np.float64)
            sums[name] = sums.get(name, 0.0) + np.stack([rows.mean(axis=1), np.square(rows).mean(axis=1)])
    found = []
    for name, (mean, square) in sums.items():
        own = np.maximum(square / some.count - (mean / some.count) ** 2, 0).mean()
        found.append(float(np.sqrt(own)) / max(layers[name][1], 1e-30))
    return found


def _some(samples: Samples) -> Samples:
    count = min(MOST, samples.count)
    return samples.take(np.arange(count) * samples.count // count)


def doubts_of_biases(model: onnx.ModelProto, samples: Samples, where: str) -> list[str]:
    """Whether no first layer is moved by the samples as by those that its biases were learnt with."""
    try:
        found = moved(model, samples, where)
    except CompileError:
        return []
    if not found or max(found) >= LEAST_MOVED:
        return []
    return [
        f"the first layer's outputs change with the samples by {max(found):.2g} of its biases only: are the "
        "samples scaled as in training (divided by 255 twice, or not multiplied)?"
    ]
