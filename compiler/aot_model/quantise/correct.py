"""Bias correction: what rounding the weights does to a layer's mean, channel by channel, is put into its
bias."""

from __future__ import annotations

import numpy as np
import onnx
from onnx import numpy_helper

from aot_model.quantise.choose import Choice
from aot_model.quantise.data import Samples
from aot_model.quantise.insert import by_axis, quantised_weight
from aot_model.quantise.network import Network
from aot_model.quantise.plan import FLOAT, WeightPlan
from aot_model.quantise.runtime import FloatModel


def corrections(
    network: Network, choice: Choice, weights: dict[str, WeightPlan], samples: Samples, where: str
) -> dict[str, tuple[float, ...]]:
    """Layer -> mean of (w - quantised w) * x over the samples, by channel."""
    model = onnx.ModelProto()
    model.CopyFrom(network.model)
    wanted, axes = {}, {}
    for layer in choice.layers:
        plan = weights.get(layer.weight)
        if plan is None or plan.type == FLOAT or (layer.kind == "MatMul" and layer.bias is None):
            continue
        w = network.constants[layer.weight]
        lost = w - quantised_weight(w, plan) * by_axis(plan, w.ndim)
        node = onnx.NodeProto()
        node.CopyFrom(next(n for n in model.graph.node if n.name == layer.node))
        name = f"{layer.node}/lost"
        model.graph.initializer.append(numpy_helper.from_array(lost.astype(np.float32), f"{name}/weight"))
        node.name, node.output[0], node.input[1] = name, name, f"{name}/weight"
        del node.input[2:]
        model.graph.node.append(node)
        wanted[layer.node], axes[layer.node] = name, 1 if layer.kind in ("Conv", "ConvTranspose") else -1
    if not wanted:
        return {}
    sums: dict[str, np.ndarray] = {}
    for tensors in FloatModel(model, list(wanted.values()), where).each(samples):
        for layer_name, array in zip(wanted, tensors, strict=True):
            flat = np.moveaxis(array, axes[layer_name], 0).reshape(array.shape[axes[layer_name]], -1)
            sums[layer_name] = sums.get(layer_name, 0.0) + flat.mean(axis=1, dtype=np.float64)
    # As float32 with few bits: other machines round the sums otherwise.
    return {n: tuple(float(v) for v in np.float32(np.float16(s / samples.count))) for n, s in sums.items()}
