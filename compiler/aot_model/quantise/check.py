"""Whether a plan that somebody may have edited fits a model: everything that does not, at once."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from aot_model.errors import CompileError, Problem
from aot_model.quantise.choose import Choice, Layer
from aot_model.quantise.equalise import Pair
from aot_model.quantise.network import Network
from aot_model.quantise.plan import FLOAT, Plan


def check(network: Network, choice: Choice, several: list[Pair], plan: Plan, where: str) -> None:
    """CompileError E302 where the plan does not fit the float model. several: what can be equalised."""
    messages = [
        *_tensors(network, plan),
        *_weights(network, plan),
        *_equalisation(network, several, plan),
        *_biases(network, choice, plan),
    ]
    if messages:
        raise CompileError([Problem("E302", message, where) for message in messages])


def _tensors(network: Network, plan: Plan) -> Iterator[str]:
    for name in plan.tensors:
        if not network.is_float(name):
            yield f"the plan has a tensor '{name}', which the model has not as float32"


def _weights(network: Network, plan: Plan) -> Iterator[str]:
    for name, weight in plan.weights.items():
        data, axis = network.constants.get(name), weight.axis
        if data is None or data.dtype != np.float32:
            yield f"the plan has a constant '{name}', which the model has not as float32"
            continue
        if weight.type == FLOAT:
            continue
        if axis is not None and not 0 <= axis < data.ndim:
            yield f"'{name}' of {data.ndim} axes has scales along axis {axis}"
        elif len(weight.scale) != (1 if axis is None else data.shape[axis]):
            yield f"'{name}' of shape {list(data.shape)} has {len(weight.scale)} scales"
        try:
            weight.steps(data.size)
        except ValueError as error:
            yield f"'{name}': {error}"


def _equalisation(network: Network, several: list[Pair], plan: Plan) -> Iterator[str]:
    known = {pair.tensor: pair for pair in several}
    for name, factors in plan.equalisation:
        if name not in known:
            yield f"the plan equalises '{name}', which has no channels that could be scaled"
            continue
        constant, axis = known[name].made[0]
        channels = network.constants[constant].shape[axis]
        if len(factors) != channels:
            yield f"'{name}' of {channels} channels has {len(factors)} factors of equalisation"


def _biases(network: Network, choice: Choice, plan: Plan) -> Iterator[str]:
    layers = {layer.node: layer for layer in choice.layers}
    for name, added in plan.bias.items():
        layer = layers.get(name)
        if layer is None:
            yield f"the plan adds to the bias of '{name}', which is no layer with weights"
        elif layer.bias is None and layer.kind == "MatMul":
            yield f"the plan adds to the bias of '{name}', which has none"
        elif (channels := _channels(network, layer)) not in (None, len(added)):
            yield f"'{name}' of {channels} channels has {len(added)} numbers for its bias"


def _channels(network: Network, layer: Layer) -> int | None:
    """How many numbers its bias has; None where the model does not say."""
    if layer.bias is not None:
        return int(network.constants[layer.bias].size)
    shape = network.shape(layer.before)
    return None if shape is None else shape[1 if layer.kind.startswith("Conv") else -1]
