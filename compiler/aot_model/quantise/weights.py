"""Scales of constants: the largest magnitude of each channel, or what loses the least."""

from __future__ import annotations

from functools import cache

import numpy as np

from aot_model.arithmetic.fixed_point import quantise_multiplier
from aot_model.kernels.int8.requantise import SHORT_BITS, plan
from aot_model.kernels.int8.spec import QuantSpec
from aot_model.quantise.choose import Choice, Layer, Weight
from aot_model.quantise.insert import by_axis
from aot_model.quantise.network import Network
from aot_model.quantise.plan import LIMITS, TensorPlan, WeightPlan, rounded

SHARES = np.linspace(1.0, 0.5, 41)
NEAR = 0.012
"""Share by which a scale of 4 bits may change for a short multiplier: a step of SHARES."""
MOST_TRIED = 16


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


def with_short_multipliers(
    network: Network, layer: Layer, found: WeightPlan, tensors: dict[str, TensorPlan]
) -> WeightPlan:
    """Scales of 4-bit weights for which the requantisation of each channel has a multiplier of 16 bits, where
    there are such nearby: kernels read two bytes less for each channel then, and more layers share one."""
    x, y = tensors.get(layer.input), tensors.get(layer.result)
    if found.type != "int4" or x is None or y is None or {x.type, y.type} - {"int8", "uint8"}:
        return found
    taps = network.constants[layer.weight].size // max(len(found.scale), 1)
    most = min(taps * 8 * 255, 1 << 26)
    scales = tuple(_short(x.scale, scale, y, most) for scale in found.scale)
    return WeightPlan(found.type, found.axis, scales)


@cache
def _short(x: float, wanted: float, y: TensorPlan, most: int) -> float:
    """The scale of weights near the wanted one, which it is where there is none. most: no sum is larger."""
    unit = 2.0**-SHORT_BITS * y.scale / x
    whole = wanted / unit
    least, last = int(np.floor(whole * (1 - NEAR))), int(np.ceil(whole * (1 + NEAR)))
    several = []
    for n in range(max(least, 1), min(last + 1, 1 << (SHORT_BITS - 1))):
        scale = float(np.float32(n * unit))
        several.append((abs(scale / (n * unit) - 1), abs(n - whole), scale))
    for _, _, scale in sorted(several)[:MOST_TRIED]:
        if _has_short(x * scale / y.scale, y, most):
            return scale
    return wanted


def _has_short(factor: float, y: TensorPlan, most: int) -> bool:
    """Whether a kernel's multiplier of 16 bits gives the same integers as the exact factor for all sums."""
    m, s = (np.full(2, v, np.int32) for v in quantise_multiplier(factor))
    low, high = LIMITS[y.type]
    quant = QuantSpec(0, m, s, y.zero_point, low, high, "int8", y.type, "even")
    ends = np.full(2, most, np.int64)
    return plan(quant, -ends, ends, np.array([0, 4]), short=True).form == "short"
