"""What batch normalisations remember of the training data: calibration data that are scaled otherwise, or are
noise, give other numbers there."""

from __future__ import annotations

import numpy as np
import onnx

from aot_model.errors import CompileError
from aot_model.quantise.data import Samples
from aot_model.quantise.network import Network
from aot_model.quantise.runtime import FloatModel

MOST, FEWEST = 32, 8
"""Samples that are run, and with which something is said."""
FACTOR = 2.0
"""Batches differ by less."""


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
    count = min(MOST, samples.count)
    some = samples.take(np.arange(count) * samples.count // count)
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
