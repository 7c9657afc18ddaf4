"""Learned rounding: which of its neighbours a weight becomes, so that what the layer computes stays.

The nearest integers lose the least of the weights. A layer computes w.x, and inputs are correlated:
with H the second moments of what the layer reads (as the quantised model has it), integers are wanted for
which (w - q)'H(w - q) is small. They are found one after the other, each making up for the errors of those
before (Babai's nearest plane, which is what GPTQ does; Frantar et al., 2022), then each once more given all
others. Nothing is random, and inputs are integers, whose sums are exact.
"""

from __future__ import annotations

import base64
import zlib
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import onnx

from aot_model.quantise.choose import Choice, Layer
from aot_model.quantise.data import Samples
from aot_model.quantise.insert import by_axis, inserted, nearest
from aot_model.quantise.network import Network
from aot_model.quantise.plan import FLOAT, LIMITS, Plan, TensorPlan, WeightPlan
from aot_model.quantise.runtime import FloatModel

Array = np.ndarray
LARGEST = 2560
"""Products of longer rows keep the nearest integers: the work grows with the third power."""
DAMPING = 0.01
SWEEPS = 2
MEMORY = 2**28
"""Bytes of moments that are collected in one run over the samples."""


def rounded_by_outputs(
    network: Network, choice: Choice, plan: Plan, samples: Samples, where: str
) -> dict[str, WeightPlan]:
    """The plan's weights with `rounding`; those that cannot be learnt as they are."""
    learnt = dict(plan.weights)
    model = inserted(network, choice, plan, where)
    for several in _portions(network, choice, plan):
        for name, moments in _moments(network, model, plan, several, samples, where).items():
            layer = next(layer for layer in several if layer.weight == name)
            learnt[name] = _learnt(network, layer, learnt[name], moments)
    return learnt


def encoded(steps: Array) -> str:
    """What is added to the nearest integers, as text."""
    return base64.b64encode(zlib.compress(steps.astype(np.int8).tobytes(), 9)).decode()


def _portions(network: Network, choice: Choice, plan: Plan) -> Iterator[list[Layer]]:
    """Layers whose rounding is learnt, as many at a time as memory allows; those of one weight together."""
    by_weight: dict[str, list[Layer]] = {}
    for layer in choice.layers:
        by_weight.setdefault(layer.weight, []).append(layer)
    found: list[Layer] = []
    room = MEMORY
    for name, layers in by_weight.items():
        known = plan.weights.get(name)
        if known is None or known.type == FLOAT or len({_form(network, layer) for layer in layers}) > 1:
            continue
        if layers[0].kind not in ("Conv", "Gemm", "MatMul"):
            continue
        groups, _, length = _rows(network, layers[0], network.constants[name]).shape
        need = groups * length * length * 8
        if length > LARGEST or need > MEMORY:
            continue
        if need > room:
            yield found
            found, room = [], MEMORY
        found += layers
        room -= need
    if found:
        yield found


def _form(network: Network, layer: Layer) -> tuple[object, ...]:
    node = _node(network, layer)
    return layer.kind, network.attribute(node, "group", 1), network.attribute(node, "transB", 0)


def _node(network: Network, layer: Layer) -> onnx.NodeProto:
    return next(n for n in network.model.graph.node if n.name == layer.node)


def _rows(network: Network, layer: Layer, data: Array) -> Array:
    """A weight as [groups, outputs, what each is a sum over]."""
    node = _node(network, layer)
    if layer.kind == "Conv":
        groups = int(network.attribute(node, "group", 1))  # type: ignore[call-overload]
        return np.asarray(data.reshape(groups, data.shape[0] // groups, -1))
    return np.asarray(data if network.attribute(node, "transB", 0) else data.T)[np.newaxis]


def _moments(
    network: Network, model: onnx.ModelProto, plan: Plan, layers: list[Layer], samples: Samples, where: str
) -> dict[str, Array]:
    """Second moments of what layers read, around the mean where a bias makes up for it: [groups, length,
    length]."""
    read = {n.name: n.input[0] for n in model.graph.node}
    wanted = list(dict.fromkeys(read[layer.node] for layer in layers))
    squares: dict[str, Array] = {}
    sums: dict[str, Array] = {}
    counts: dict[str, int] = {}
    for tensors in FloatModel(model, wanted, where).each(samples):
        known = dict(zip(wanted, tensors, strict=True))
        for layer in layers:
            x = _integers(known[read[layer.node]], plan.tensors.get(layer.input))
            length = _rows(network, layer, network.constants[layer.weight]).shape[2]
            most = max(2048, 2 * length) // samples.count + 1
            rows = _read(network, layer, x, most)
            name = layer.weight
            squares[name] = squares.get(name, np.zeros(())) + np.matmul(rows.transpose(0, 2, 1), rows)
            sums[name] = sums.get(name, np.zeros(())) + rows.sum(axis=1)
            counts[name] = counts.get(name, 0) + rows.shape[1]
    # Bias correction takes the mean.
    biased = {layer.weight for layer in layers if layer.bias is not None or layer.kind != "MatMul"}
    result = {name: squares[name] / counts[name] for name in squares}
    for name in biased:
        mean = sums[name] / counts[name]
        result[name] = result[name] - np.einsum("gi,gj->gij", mean, mean)
    return result


def _integers(x: Array, plan: TensorPlan | None) -> Array:
    """Numbers of which sums are exact."""
    if plan is None or plan.type == FLOAT:
        return np.asarray(x, np.float64)
    return np.asarray(np.rint(x.astype(np.float64) / float(np.float32(plan.scale))))


def _read(network: Network, layer: Layer, x: Array, most: int) -> Array:
    """What a layer multiplies with its weights, at up to so many places: [groups, places, length]."""
    if layer.kind != "Conv":
        rows = x.reshape(-1, x.shape[-1])
        return np.asarray(rows[_some(len(rows), most)])[np.newaxis]
    node, weight = _node(network, layer), network.constants[layer.weight]
    size = weight.shape[2:]
    rank = len(size)

    def numbers(name: str, default: list[int]) -> list[int]:
        found: Any = network.attribute(node, name, default)
        return [int(v) for v in found]

    steps, wide = numbers("strides", [1] * rank), numbers("dilations", [1] * rank)
    spans = [d * (k - 1) + 1 for d, k in zip(wide, size, strict=True)]
    pads = numbers("pads", [0] * 2 * rank)
    auto: Any = network.attribute(node, "auto_pad", b"NOTSET")
    kind = auto.decode() if isinstance(auto, bytes) else str(auto)
    if kind.startswith("SAME"):
        whole = [max((-(-n // s) - 1) * s + p - n, 0)
                 for n, s, p in zip(x.shape[2:], steps, spans, strict=True)]  # fmt: skip
        less, more = [p // 2 for p in whole], [p - p // 2 for p in whole]
        pads = less + more if kind == "SAME_UPPER" else more + less
    padded = np.pad(x, [(0, 0), (0, 0), *zip(pads[:rank], pads[rank:], strict=True)])
    windows = np.lib.stride_tricks.sliding_window_view(padded, spans, axis=tuple(range(2, 2 + rank)))
    each = (slice(None), slice(None), *(slice(None, None, s) for s in (*steps, *wide)))
    windows = np.moveaxis(windows[each], 1, 1 + rank)  # [batch, places …, channels, taps …]
    places = windows.shape[: 1 + rank]
    at = np.unravel_index(_some(int(np.prod(places)), most), places)
    groups = x.shape[1] // weight.shape[1]
    found = windows[at].reshape(len(at[0]), groups, -1)
    return np.ascontiguousarray(found.transpose(1, 0, 2))


def _some(count: int, most: int) -> Array:
    """Up to `most` of so many places, evenly."""
    return np.arange(count) if count <= most else np.arange(most) * count // most


def _learnt(network: Network, layer: Layer, plan: WeightPlan, moments: Array) -> WeightPlan:
    data = network.constants[layer.weight].astype(np.float64)
    plain = replace(plan, rounding="")
    rows = _rows(network, layer, data / by_axis(plain, data.ndim))
    low, high = LIMITS[plan.type]
    found = closest(rows, moments, low + 1, high)
    steps = found - _rows(network, layer, nearest(data, plain)).astype(np.float64)
    back = steps.reshape(data.shape) if layer.kind == "Conv" else (
        steps[0] if _form(network, layer)[2] else steps[0].T)  # fmt: skip
    return replace(plan, rounding=encoded(np.ascontiguousarray(back)) if back.any() else "")


def closest(rows: Array, moments: Array, low: int, high: int) -> Array:
    """Integers q for which (rows - q)' moments (rows - q) is small; rows: [groups, outputs, length]."""
    length = moments.shape[-1]
    power = np.einsum("gii->gi", moments)
    damped = moments + np.eye(length) * (DAMPING * power.mean(axis=1) + 1e-9)[:, np.newaxis, np.newaxis]
    # The most powerful input first, that is last: what is left then has the least to make up for.
    order = np.argsort(power, axis=1, kind="stable")
    damped = np.take_along_axis(np.take_along_axis(damped, order[:, :, None], 1), order[:, None, :], 2)
    wanted = np.take_along_axis(rows, order[:, None, :], 2)
    factor = np.linalg.cholesky(damped).transpose(0, 2, 1)
    result, error = np.zeros_like(wanted), np.zeros_like(wanted)

    def settle(k: int, value: Array) -> None:
        result[:, :, k] = np.clip(np.rint(value), low, high)
        error[:, :, k] = wanted[:, :, k] - result[:, :, k]

    for k in range(length - 1, -1, -1):
        made = np.matmul(error[:, :, k + 1 :], factor[:, k, k + 1 :, np.newaxis])[:, :, 0]
        settle(k, wanted[:, :, k] + made / factor[:, k, k, np.newaxis])
    for _ in range(SWEEPS):
        for k in range(length - 1, -1, -1):
            own = damped[:, k, k, np.newaxis]
            made = np.matmul(error, damped[:, :, k, np.newaxis])[:, :, 0] - error[:, :, k] * own
            settle(k, wanted[:, :, k] + made / own)
    found = np.zeros_like(result)
    np.put_along_axis(found, np.broadcast_to(order[:, None, :], found.shape), result, 2)
    return found
