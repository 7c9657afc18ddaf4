"""Learned rounding: which integers weights become, so that what the layers compute stays.

The nearest integers lose the least of the weights. But a layer computes w.x, its inputs are correlated, and
in the quantised model they are others, x~: what the layers before lose is noise, and for a good part the same
for all samples. So layers are taken in the order of the graph, in the float model and beside it in the
quantised one, whose layers before are settled. First come the real weights v with which v.x~ is nearest to
w.x: least squares, v (H + tI) = w (C + tI), where H are the second moments of x~, C those of x with x~, and t
keeps v near to w. Then, integers q for which (v - q)'H(v - q) is small: they are found one after the other,
each making up for the errors of those before (Babai's nearest plane, which is what GPTQ does; Frantar et al.,
2022), then each once more given all others. What is left of the mean goes into the bias. Nothing is random,
and what is summed are whole numbers, or parts of such, of which sums are exact.
"""

from __future__ import annotations

import base64
import zlib
from dataclasses import replace
from typing import Any

import numpy as np
import onnx

from aot_model.quantise.choose import Choice, Layer
from aot_model.quantise.data import Samples
from aot_model.quantise.insert import by_axis, inserted, nearest, quantised_weight
from aot_model.quantise.network import Network
from aot_model.quantise.plan import FLOAT, LIMITS, Plan, TensorPlan, WeightPlan
from aot_model.quantise.stages import Stages, affordable

Array = np.ndarray
LARGEST = 2560
"""Products of longer rows keep the nearest integers: the work grows with the third power."""
DAMPING = 0.01
SWEEPS = 2
PULL = 1.0
"""How strongly weights are held to those of the float model, as a share of the inputs' mean power: only what
inputs have much of is made up for."""
FINE = 64
"""Parts of a step that the float model's inputs are rounded to."""
MEMORY = 2**28
"""Bytes of a layer's moments; where there are more, it keeps the nearest integers."""
FEWEST = 8
"""Samples that are used however large they are."""


def learnt_by_outputs(
    network: Network, choice: Choice, plan: Plan, samples: Samples, where: str
) -> tuple[dict[str, WeightPlan], dict[str, tuple[float, ...]]]:
    """The plan's weights with `rounding`, and what is added to biases; what cannot be learnt as it is.

    CompileError E603 where the model cannot be run in parts.
    """
    return _Learning(network, choice, plan, samples, where).run()


def encoded(steps: Array) -> str:
    """What is added to the nearest integers, as text."""
    return base64.b64encode(zlib.compress(steps.astype(np.int8).tobytes(), 9)).decode()


class _Learning:
    """The float model and the quantised one side by side, layer by layer."""

    def __init__(self, network: Network, choice: Choice, plan: Plan, samples: Samples, where: str) -> None:
        self.network, self.choice, self.plan = network, choice, plan
        most = max((int(np.prod(network.shape(n) or ())) for n in network.types), default=1)
        count = affordable(most, samples.count, FEWEST)
        some = samples.take(np.arange(count) * samples.count // count)
        model = inserted(network, choice, Plan(plan.tensors, {}), where)
        self.nodes = {node.name: node for node in model.graph.node}
        self.exact = Stages(network.model, some, where)
        self.coarse = Stages(model, some, where)
        self.weights = dict(plan.weights)
        for name, known in plan.weights.items():
            self._settle(name, replace(known, rounding=""))

    def run(self) -> tuple[dict[str, WeightPlan], dict[str, tuple[float, ...]]]:
        bias: dict[str, tuple[float, ...]] = {}
        waiting, used = list(self.choice.layers), set[str]()
        while waiting:
            several, settled = self._next(waiting)
            name = several[0].weight
            if settled and name not in used and self._can_learn(several):
                moments = self._moments(several)
                self._settle(name, _learnt(self.network, several[0], self.weights[name], *moments))
            used.add(name)
            known = self.plan.weights.get(name)
            for layer in several:
                waiting.remove(layer)
                if known is not None and known.type != FLOAT and has_bias(layer):
                    bias[layer.node] = self._bias(layer)
        return self.weights, bias

    def _next(self, waiting: list[Layer]) -> tuple[list[Layer], bool]:
        """All layers of the first weight for which what they read is settled; else, where a shared weight is
        behind itself, the first layer alone, and that it is not."""
        nodes = {layer.node for layer in waiting}
        for layer in waiting:
            several = [one for one in waiting if one.weight == layer.weight]
            if not any(nodes & self.coarse.needs(self._read(one)) for one in several):
                return several, True
        return waiting[:1], False

    def _settle(self, name: str, plan: WeightPlan) -> None:
        """The constant of the quantised model is what its integers stand for."""
        self.weights[name] = plan
        if plan.type != FLOAT:
            data = self.network.constants[name]
            made = quantised_weight(data, plan) * by_axis(plan, data.ndim)
            self.coarse.assign(name, made.astype(np.float32))

    def _read(self, layer: Layer) -> str:
        """What the quantised layer reads."""
        return str(self.nodes[layer.node].input[0])

    def _can_learn(self, layers: list[Layer]) -> bool:
        """Of all layers of one weight."""
        plan = self.plan.weights.get(layers[0].weight) if layers else None
        if plan is None or plan.type == FLOAT or len({_form(self.network, one) for one in layers}) > 1:
            return False
        if layers[0].kind not in ("Conv", "Gemm", "MatMul"):
            return False
        groups, _, length = _rows(self.network, layers[0], self.network.constants[layers[0].weight]).shape
        return bool(length <= LARGEST and groups * length * length * 8 <= MEMORY)

    def _moments(self, layers: list[Layer]) -> tuple[Array, Array]:
        """Of what layers of one weight read: second moments in the quantised model, and those of the float
        model's inputs with them, both around the mean where a bias makes up for it. [groups, length,
        length], in steps of the input; of the latter the first axis is the float model's."""
        squares, mixed, count = np.zeros(()), np.zeros(()), 0
        for layer in layers:
            plan = self.plan.tensors.get(layer.input)
            length = _rows(self.network, layer, self.network.constants[layer.weight]).shape[2]
            most = max(2048, 2 * length) // self.exact.count + 1
            sums, rows = np.zeros(()), 0
            own, other = np.zeros(()), np.zeros(())
            for x, y in zip(
                self.exact.tensor(layer.input), self.coarse.tensor(self._read(layer)), strict=True
            ):
                wanted = _read(self.network, layer, _in_steps(x, plan, FINE), most)
                given = _read(self.network, layer, _in_steps(y, plan, 1), most)
                own = own + np.matmul(given.transpose(0, 2, 1), given)
                other = other + np.matmul(wanted.transpose(0, 2, 1), given)
                sums = sums + np.stack([wanted.sum(axis=1), given.sum(axis=1)])
                rows += given.shape[1]
            if has_bias(layer):
                wanted, given = sums
                own = own - np.einsum("gi,gj->gij", given, given) / rows
                other = other - np.einsum("gi,gj->gij", wanted, given) / rows
            squares, mixed, count = squares + own, mixed + other, count + rows
        return squares / count, mixed / count

    def _bias(self, layer: Layer) -> tuple[float, ...]:
        """By channel the mean of what the layer still lacks, which is in the quantised model from now on."""
        made = str(self.nodes[layer.adder].output[0])
        axis = 1 if layer.kind in ("Conv", "ConvTranspose") else -1
        lacks = np.zeros(())
        for x, y in zip(self.exact.tensor(layer.before), self.coarse.tensor(made), strict=True):
            lost = np.moveaxis(x.astype(np.float64) - y, axis, 0)
            lacks = lacks + lost.reshape(len(lost), -1).mean(axis=1)
        rank = self.exact.tensor(layer.before)[0].ndim
        # As float32 with few bits: other machines round the sums otherwise.
        found = np.float32(np.float16(lacks / self.exact.count))
        self.coarse.shift(made, found.reshape(-1, *[1] * (rank - 2)) if axis == 1 else found)
        return tuple(map(float, found))


def has_bias(layer: Layer) -> bool:
    """Whether a bias can be put there for nothing."""
    return layer.kind != "MatMul" or layer.bias is not None


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


def _in_steps(x: Array, plan: TensorPlan | None, parts: int) -> Array:
    """In parts of the steps of the tensor's integers: numbers of which sums are exact."""
    if plan is None or plan.type == FLOAT:
        return np.asarray(x, np.float64)
    return np.asarray(np.rint(x.astype(np.float64) * (parts / float(np.float32(plan.scale)))) / parts)


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


def _learnt(network: Network, layer: Layer, plan: WeightPlan, moments: Array, mixed: Array) -> WeightPlan:
    data = network.constants[layer.weight].astype(np.float64)
    plain = replace(plan, rounding="")
    rows = fitted_rows(_rows(network, layer, data / by_axis(plain, data.ndim)), moments, mixed)
    low, high = LIMITS[plan.type]
    found = closest(rows, moments, low + 1, high)
    steps = np.clip(found - _rows(network, layer, nearest(data, plain)).astype(np.float64), -128, 127)
    back = steps.reshape(data.shape) if layer.kind == "Conv" else (
        steps[0] if _form(network, layer)[2] else steps[0].T)  # fmt: skip
    return replace(plan, rounding=encoded(np.ascontiguousarray(back)) if back.any() else "")


def fitted_rows(rows: Array, moments: Array, mixed: Array) -> Array:
    """Rows that make of the quantised model's inputs what `rows` make of the float model's, with the least
    squared error, but not far from these; [groups, outputs, length]."""
    length = moments.shape[-1]
    pull = PULL * np.einsum("gii->g", moments)[:, np.newaxis, np.newaxis] / length + 1e-9
    tied = pull * np.eye(length)
    wanted = np.matmul(rows, mixed + tied)
    return np.asarray(np.linalg.solve(moments + tied, wanted.transpose(0, 2, 1)).transpose(0, 2, 1))


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
