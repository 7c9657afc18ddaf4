"""Equalisation across layers: channels of a tensor divided by factors that the next layer's weights take up
again.

What follows a convolution, a product or a normalisation is multiplied by positive numbers, channel by
channel, as far as
operators let them through (Relu does, Clip to 6 does not); the float model stays the same but for
roundings, and
channels that used a few steps of the tensor's scale use more.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx

from aot_model.quantise.channels import Flow, flow, ties
from aot_model.quantise.choose import Choice, Layer
from aot_model.quantise.network import Network
from aot_model.quantise.plan import rounded
from aot_model.quantise.ranges import Seen

THROUGH = ("Relu", "LeakyRelu", "MaxPool", "AveragePool", "GlobalAveragePool", "Identity", "Dropout")
MOST = 64.0
"""No factor is further than this from the others."""
LEAST = 1e-6
"""Of the largest: what is smaller is nothing."""
WORTH = 0.8
"""Factors that are all larger than this share of the largest are left alone."""


@dataclass(frozen=True)
class Pair:
    """A tensor whose channels can be scaled: (constant, axis) that make it, and those that read it."""

    tensor: str
    made: tuple[tuple[str, int], ...]
    read: tuple[tuple[str, int, tuple[int, ...]], ...]
    """(constant, axis, the channel that each index of the axis multiplies)."""
    free: bool = False
    """Whether the readers have a scale for each of these channels, so that it costs them nothing."""
    fixed: frozenset[int] = frozenset()
    """Channels that stay as they are."""
    ties: Mapping[int, tuple[str, int]] = field(default_factory=dict)
    """Channel -> tensor and channel with the inverse factor: products of both are summed."""
    moved: Mapping[str, np.ndarray] = field(default_factory=dict)
    """Further tensors that have these channels: of each element the channel, in a shape that broadcasts."""


def pairs(network: Network, choice: Choice) -> list[Pair]:
    """All tensors that can be equalised, in the order of the graph."""
    found = []
    layers = {layer.node: layer for layer in choice.layers}
    for node in network.model.graph.node:
        made = _made(network, node, layers)
        if made is None:
            continue
        tensor, constants = made
        read = _read(network, tensor, layers, node.op_type == "LayerNormalization")
        several = [name for name, *_ in (*constants, *(read or ()))]
        if read and len(set(several)) == len(several) and all(len(network.readers[n]) == 1 for n in several):
            free = all(
                axis == 0 and network.constants[n].ndim == 4 and network.constants[n].shape[1] == 1
                for n, axis, _ in read
            )
            found.append(Pair(tensor, tuple(constants), tuple(read), free))
    return [*found, *_followed(network, layers, {p.tensor for p in found})]


def _followed(network: Network, layers: Mapping[str, Layer], known: set[str]) -> list[Pair]:
    """Tensors whose channels are moved, or multiplied with each other, before weights read them."""
    makers: list[tuple[str, list[tuple[str, int]]]] = []
    adders = {layer.adder: layer for layer in layers.values() if layer.kind == "MatMul"}
    for node in network.model.graph.node:
        made = _made(network, node, layers) if node.op_type != "Conv" else None
        if node.name in adders:
            made = _made_with_bias(network, adders[node.name])
        if made is not None and made[0] not in known and all(_only(network, n) for n, _ in made[1]):
            makers.append(made)
    flows: list[Flow | None] = [flow(network, layers, tensor) for tensor, _ in makers]
    tied = ties(flows)
    found = []
    for number, ((tensor, constants), one) in enumerate(zip(makers, flows, strict=True)):
        if one is None or len(one.fixed) == one.channels:
            continue
        own = {c: (makers[other][0], d) for (k, c), (other, d) in tied.items() if k == number}
        moved = {name: at for name, at in one.moved.items() if name != tensor}
        read, fixed = tuple(one.weights), frozenset(one.fixed)
        found.append(Pair(tensor, tuple(constants), read, fixed=fixed, ties=own, moved=moved))
    return found


def _made_with_bias(network: Network, layer: Layer) -> tuple[str, list[tuple[str, int]]] | None:
    """The result of a MatMul with the Add behind it."""
    made = [(layer.weight, 1)]
    if layer.bias is not None:
        if network.constants[layer.bias].size != network.constants[layer.weight].shape[1]:
            return None
        made.append((layer.bias, network.constants[layer.bias].ndim - 1))
    return layer.before, made


def _only(network: Network, name: str) -> bool:
    return len(network.readers[name]) == 1


def _made(
    network: Network, node: onnx.NodeProto, layers: Mapping[str, Layer]
) -> tuple[str, list[tuple[str, int]]] | None:
    """The result of a node whose constants scale its channels."""
    get, constants = network.attribute, network.constants
    out = node.output[0] if node.output else ""
    if node.op_type in ("Conv", "Gemm") and node.name in layers:
        axis = 1 if node.op_type == "Gemm" and not get(node, "transB", 0) else 0
        more = [n for n in node.input[2:] if n]
        if any(n not in constants or constants[n].ndim != 1 for n in more):
            return None
        return out, [(node.input[1], axis), *((n, 0) for n in more)]
    if node.op_type == "LayerNormalization" and all(
        n in constants and constants[n].ndim == 1 for n in node.input[1:] if n
    ):
        return out, [(n, 0) for n in node.input[1:] if n]
    return None


def _read(
    network: Network, tensor: str, layers: Mapping[str, Layer], last: bool
) -> list[tuple[str, int, tuple[int, ...]]] | None:
    """What reads a tensor's channels, behind operators that let factors through; None when something else
    does."""
    repeat = 1
    while not last and network.read_once(tensor):
        (reader,) = network.readers[tensor]
        shape, after = network.shape(tensor), network.shape(reader.output[0])
        if reader.op_type in THROUGH:
            tensor = reader.output[0]
        elif (
            reader.op_type in ("Flatten", "Reshape")
            and shape
            and after
            and len(after) == 2
            and shape[0] == after[0]
        ):
            repeat *= int(np.prod(shape[2:]))
            tensor = reader.output[0]
        else:
            break
    found = []
    if tensor in network.outputs:
        return None
    for reader in network.readers[tensor]:
        if (
            reader.name not in layers
            or reader.input[0] != tensor
            or (len(network.readers[tensor]) > 1 and not last)
        ):
            return None
        if reader.op_type == "Conv" and not last:
            weight = network.constants[reader.input[1]]
            group = network.attribute(reader, "group", 1)
            if group != 1 and not (weight.shape[1] == 1 and weight.shape[0] == group):
                return None
            axis = 1 if group == 1 else 0
        elif reader.op_type in ("Gemm", "MatMul"):
            axis = 1 if network.attribute(reader, "transB", 0) else 0
        else:
            return None
        extent = network.constants[reader.input[1]].shape[axis]
        if extent % repeat:
            return None
        found.append((reader.input[1], axis, tuple(k // repeat for k in range(extent))))
    return found


def factors(network: Network, several: list[Pair], seen: Mapping[str, Seen]) -> dict[str, tuple[float, ...]]:
    """By what to divide each channel of each tensor; of those tensors for which it is known."""
    reach = {p.tensor: r for p in several if (r := _reach(network, p, seen.get(p.tensor))) is not None}
    result: dict[str, tuple[float, ...]] = {}
    for pair in several:
        if pair.tensor not in reach:
            continue
        r = reach[pair.tensor]
        f, held = np.ones_like(r), np.zeros(r.size, bool)
        held[list(pair.fixed)] = True
        for channel, (tensor, other) in pair.ties.items():
            held[channel] = True
            if tensor in reach:
                f[channel] = _tied(r, channel, reach[tensor], other, pair.tensor < tensor)
        free = ~held
        if free.any():
            wanted = _wanted(network, pair, r)[free]
            # Beside channels that are given, the others fill the same range.
            level = (r / f)[held].max(initial=0.0)
            most = (r[free] / wanted).max(initial=0.0)
            wanted = wanted * most / level if level > 0 and most > 0 else wanted / wanted.max()
            top = wanted.max()
            f[free] = [rounded(float(v)) for v in np.clip(wanted, top / MOST, top)]
        result[pair.tensor] = tuple(map(float, f))
    return {n: f for n, f in result.items() if min(f) < WORTH * max(f) or _is_tied(several, n)}


def _is_tied(several: list[Pair], tensor: str) -> bool:
    return any(p.ties for p in several if p.tensor == tensor)


def _reach(network: Network, pair: Pair, seen: Seen | None) -> np.ndarray | None:
    """The largest magnitude of each channel; None where that is not known."""
    if seen is None or seen.channels is None:
        return None
    r = np.asarray(seen.channels, np.float64)
    first, axis = pair.made[0]
    if r.size != network.constants[first].shape[axis] or not r.max() > 0:
        return None
    return None if any(max(at) >= r.size for *_, at in pair.read) else r


def _tied(mine: np.ndarray, k: int, theirs: np.ndarray, other: int, first: bool) -> float:
    """The factor that makes two channels reach equally far; of the two one is the inverse of the other."""
    if mine[k] <= mine.max() * LEAST or theirs[other] <= theirs.max() * LEAST:
        return 1.0
    first = first or (mine is theirs and k < other)
    share = float(mine[k] / theirs[other]) if first else float(theirs[other] / mine[k])
    found = rounded(float(np.clip(np.sqrt(share), MOST**-0.5, MOST**0.5)))
    return found if first else 1 / found


def _wanted(network: Network, pair: Pair, r: np.ndarray) -> np.ndarray:
    """Factors with which channels and the weights that read them are equally far from their ranges."""
    w = np.zeros_like(r)
    for name, axis, at in pair.read:
        data = np.abs(np.moveaxis(network.constants[name], axis, 0)).reshape(len(at), -1)
        np.maximum.at(w, np.asarray(at), data.max(axis=1, initial=0.0))
    live = (r > r.max() * LEAST) & (w > w.max() * LEAST)
    wanted = r if pair.free else np.sqrt(r / np.maximum(w, 1e-30))
    wanted = np.where(live, wanted, wanted[live].max(initial=1.0) if live.any() else 1.0)
    return np.asarray(np.clip(wanted / wanted.max(), 1 / MOST, 1))


def equalised(network: Network, several: list[Pair], chosen: Mapping[str, tuple[float, ...]]) -> Network:
    """A copy of the model, scaled. The tensors keep their names."""
    model = onnx.ModelProto()
    model.CopyFrom(network.model)
    result = Network(model)
    for pair in several:
        f = np.asarray(chosen.get(pair.tensor, ()), np.float32)
        if not f.size:
            continue
        for name, axis in pair.made:
            result.set_constant(name, _along(result.constants[name], 1 / f, axis))
        for name, axis, at in pair.read:
            result.set_constant(name, _along(result.constants[name], f[np.asarray(at)], axis))
    return result


def divided(several: list[Pair], chosen: Mapping[str, tuple[float, ...]]) -> dict[str, list[object]]:
    """Tensor -> by what it is divided: its channels, or numbers in a shape that broadcasts (nested lists)."""
    result: dict[str, list[object]] = {name: list(f) for name, f in chosen.items()}
    for pair in several:
        if (f := chosen.get(pair.tensor)) is not None:
            for name, at in pair.moved.items():
                result[name] = (np.asarray(result.get(name, 1.0)) * np.asarray(f)[at]).tolist()
    return result


def _along(data: np.ndarray, by: np.ndarray, axis: int) -> np.ndarray:
    shape = [1] * data.ndim
    shape[axis] = -1
    return np.asarray(data * by.reshape(shape), np.float32)
