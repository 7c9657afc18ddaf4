"""Scales of constants: the largest magnitude of each channel, or what loses the least."""

from __future__ import annotations

import numpy as np

from aot_model.quantise.choose import Choice, Layer, Weight
from aot_model.quantise.insert import by_axis
from aot_model.quantise.network import Network
from aot_model.quantise.plan import LIMITS, TensorPlan, WeightPlan, rounded

SHARES = np.linspace(1.0, 0.5, 41)


def weight_plan(data: np.ndarray, weight: Weight, kind: str = "int8", powers: bool = False) -> WeightPlan:
    """Symmetric, by channel of the weight's axis. With 4 bits the largest numbers are cut where that loses
    less."""
    most = LIMITS[kind][1]
    axis = weight.axis
    rows = np.abs(
        data.reshape(1, -1) if axis is None else np.moveaxis(data, axis, 0).reshape(data.shape[axis], -1)
    )
    scale = np.maximum(rows.max(axis=1, initial=0), 1e-9).astype(np.float64) / most
    if kind == "int4" and rows.shape[1]:
        errors = []
        for share in SHARES:
            s = (scale * share)[:, np.newaxis]
            errors.append(np.square(np.minimum(np.rint(rows / s), most) * s - rows).sum(axis=1))
        scale = scale * SHARES[np.argmin(errors, axis=0)]
    return WeightPlan(kind, axis, tuple(rounded(float(s), powers) for s in scale))


def weight_plans(network: Network, choice: Choice, tensors: dict[str, TensorPlan]) -> dict[str, WeightPlan]:
    """All constants in 8 bits, with steps so large that biases fit the accumulators; operands of what has 16
    bits in 16, on its scale where that is not too small for them."""
    plans = {}
    for name, w in choice.weights.items():
        data, result = network.constants[name], tensors.get(w.result)
        wide = result is not None and result.type == "int16"
        plans[name] = weight_plan(data, w, "int16" if wide else "int8", powers=choice.powers)
        if result is not None and wide and np.abs(data).max(initial=0) <= result.range[1]:
            plans[name] = WeightPlan("int16", None, (result.scale,))
    for layer in choice.layers:
        plans[layer.weight] = roomy(network, layer, plans[layer.weight], tensors, choice.powers)
    return plans


def roomy(
    network: Network, layer: Layer, plan: WeightPlan, tensors: dict[str, TensorPlan], powers: bool = False
) -> WeightPlan:
    """Scales that leave room for a bias: a channel of zeros with a bias would need steps without end."""
    x = tensors.get(layer.input)
    if layer.bias is None or x is None or plan.axis is None:
        return plan
    bias = np.abs(network.constants[layer.bias].astype(np.float64)).reshape(-1)
    if bias.size != len(plan.scale):
        return plan
    least = bias / (x.scale * 2.0**30)
    scales = tuple(rounded(max(s, float(b)), powers) for s, b in zip(plan.scale, least, strict=True))
    return WeightPlan(plan.type, plan.axis, scales)


def error_of(data: np.ndarray, plan: WeightPlan) -> float:
    """The share of a constant's energy that its integers lose."""
    from aot_model.quantise.insert import quantised_weight

    lost = data - quantised_weight(data, plan) * by_axis(plan, data.ndim)
    return float(np.square(lost).sum() / max(float(np.square(data).sum()), 1e-30))
