"""What is made of a tensor that only elementwise functions read: ranges are judged behind them.

What lies far below zero is of no use to a HardSwish or a GELU, and of little to a LeakyRelu: integers spent
on it are wasted.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from aot_model.errors import CompileError
from aot_model.passes.qdq_site import MOVEMENTS
from aot_model.quantise.choose import Choice
from aot_model.quantise.network import Network
from aot_model.quantise.runtime import answers

Function = Callable[[np.ndarray], list[np.ndarray]]
"""Numbers of the tensor -> what each function that reads it makes of them."""


def functions(network: Network, choice: Choice) -> dict[str, Function]:
    """By the representative of tensors of one scale, those that nothing but functions reads."""
    members: dict[str, list[str]] = {}
    for name, group in choice.groups.items():
        members.setdefault(group, []).append(name)
    found: dict[str, Function] = {}
    for group, names in members.items():
        several = [_behind(network, choice, name, names) for name in names]
        known = [f for one in several if one is not None for f in one]
        if known and all(one is not None for one in several):
            found[group] = _together(known)
    return found


def _behind(network: Network, choice: Choice, name: str, together: list[str]) -> list[Function] | None:
    """The functions that read a tensor; None where anything else does."""
    if name in network.outputs:
        return None
    made = {n for n, origin in choice.origins.items() if origin == name}
    used = False
    for node in network.readers[name]:
        if node.output[0] in made:
            used = True
        elif node.op_type not in MOVEMENTS or node.output[0] not in together:
            return None
    if not used:
        return []
    nodes = [n for n in network.model.graph.node if n.output and n.output[0] in made]
    readers = network.readers
    ends = [n for n in made if n in network.outputs or any(r.output[0] not in made for r in readers[n])]
    constants = {i: network.constants[i] for n in nodes for i in n.input if i in network.constants}
    if not ends or any(data.size != 1 for data in constants.values()):
        return None
    graph = helper.make_graph(
        nodes,
        "function",
        [helper.make_tensor_value_info(name, TensorProto.FLOAT, None)],
        [helper.make_empty_tensor_value_info(end) for end in sorted(ends)],
        [numpy_helper.from_array(data, n) for n, data in constants.items()],
    )
    opsets, version = network.model.opset_import, network.model.ir_version
    content = helper.make_model(graph, opset_imports=opsets, ir_version=version)
    return [_of(content, name)]


def _of(model: onnx.ModelProto, name: str) -> Function:
    def function(x: np.ndarray) -> list[np.ndarray]:
        return [y.reshape(-1).astype(np.float64) for y in answers(model, {name: x.astype(np.float32)})]

    return function


def _together(several: list[Function]) -> Function:
    def function(x: np.ndarray) -> list[np.ndarray]:
        try:
            found = [y for one in several for y in one(x)]
        except CompileError:  # not alone: nothing is known then
            return []
        return found if all(len(y) == len(x) and np.isfinite(y).all() for y in found) else []

    return function
