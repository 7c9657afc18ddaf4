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
from dataclasses import dataclass

import numpy as np
import onnx

from aot_model.quantise.choose import Choice
from aot_model.quantise.network import Network
from aot_model.quantise.plan import rounded
from aot_model.quantise.ranges import Seen

THROUGH = ("Relu", "LeakyRelu", "MaxPool", "AveragePool", "GlobalAveragePool", "Identity", "Dropout")
MOST = 64.0
"""No factor is further than this from the others."""


@dataclass(frozen=True)
class Pair:
    """A tensor whose channels can be scaled: (constant, axis) that make it, and those that read it."""

    tensor: str
    made: tuple[tuple[str, int], ...]
    read: tuple[tuple[str, int, int], ...]
    """(constant, axis, how many neighbours on the axis belong to one channel)."""
    free: bool
    """Whether the readers have a scale for each of these channels, so that it costs them nothing."""


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
    return found


def _made(
    network: Network, node: onnx.NodeProto, layers: Mapping[str, object]
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
    network: Network, tensor: str, layers: Mapping[str, object], last: bool
) -> list[tuple[str, int, int]] | None:
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
            found.append((reader.input[1], 1 if group == 1 else 0, 1))
        elif reader.op_type in ("Gemm", "MatMul"):
            found.append((reader.input[1], 1 if network.attribute(reader, "transB", 0) else 0, repeat))
        else:
            return None
    return found


def factors(network: Network, pair: Pair, seen: Seen) -> tuple[float, ...] | None:
    """By what to divide each channel."""
    if seen.channels is None:
        return None
    r = np.asarray(seen.channels, np.float64)
    first, axis = pair.made[0]
    if r.size != network.constants[first].shape[axis] or not r.max() > 0:
        return None
    w = np.zeros_like(r)
    for name, axis, repeat in pair.read:
        data = np.abs(np.moveaxis(network.constants[name], axis, 0)).reshape(r.size, -1)
        if data.shape[0] * repeat == 0 or network.constants[name].shape[axis] != r.size * repeat:
            return None
        w = np.maximum(w, data.max(axis=1))
    live = (r > r.max() * 1e-6) & (w > w.max() * 1e-6)
    wanted = r if pair.free else np.sqrt(r / np.maximum(w, 1e-30))
    wanted = np.where(live, wanted, wanted[live].max(initial=1.0) if live.any() else 1.0)
    wanted = np.clip(wanted / wanted.max(), 1 / MOST, 1)
    return tuple(rounded(float(f)) for f in wanted)


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
        for name, axis, repeat in pair.read:
            result.set_constant(name, _along(result.constants[name], np.repeat(f, repeat), axis))
    return result


def _along(data: np.ndarray, by: np.ndarray, axis: int) -> np.ndarray:
    shape = [1] * data.ndim
    shape[axis] = -1
    return np.asarray(data * by.reshape(shape), np.float32)
