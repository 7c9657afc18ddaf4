"""Where the channels of a layer go behind operators that move elements, and behind products of two tensors.

Attention splits what a layer gives into heads, transposes them and multiplies them with each other before
weights read them again. Each element is followed with the number of its channel: those numbers are moved as
the model moves the elements. What the walk does not know keeps its channels as they are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from aot_model.errors import CompileError
from aot_model.passes.qdq_site import MOVEMENTS
from aot_model.quantise.choose import Layer
from aot_model.quantise.network import Network
from aot_model.quantise.runtime import answers

MOVES = tuple(kind for kind in MOVEMENTS if kind not in ("Pad", "MaxPool"))
"""What neither puts zeros beside the elements, which have no channel, nor chooses among channels."""
SCALES = ("Mul", "Div")
"""By a scalar."""
LARGEST = 2**22
"""Elements of a tensor that is followed: their numbers are exact in float32, and little work."""
Array = np.ndarray


@dataclass
class Flow:
    """Where the channels of one tensor are found. Numbers are those of channels."""

    channels: int
    weights: list[tuple[str, int, tuple[int, ...]]] = field(default_factory=list)
    """(constant, axis, the channel that each index of the axis multiplies)."""
    fixed: set[int] = field(default_factory=set)
    """Channels that something reads which factors do not go through."""
    inner: dict[tuple[str, int], Array] = field(default_factory=dict)
    """(product of two tensors, which of its operands): by place of its batch and of its sums, the channel."""
    moved: dict[str, Array] = field(default_factory=dict)
    """Tensor -> the channel of each of its elements, in a shape that broadcasts."""


def flow(network: Network, layers: Mapping[str, Layer], tensor: str) -> Flow | None:
    """Of a tensor whose channels are its last axis; None where its shape is not known, or it is too large."""
    shape = network.shape(tensor)
    if not shape or np.prod(shape) > LARGEST:
        return None
    found = Flow(shape[-1])
    _walk(network, layers, tensor, np.broadcast_to(np.arange(shape[-1]), shape), found)
    return found


def _walk(network: Network, layers: Mapping[str, Layer], tensor: str, at: Array, found: Flow) -> None:
    if tensor in network.outputs or tensor in found.moved:
        found.fixed.update(map(int, np.unique(at)))
    found.moved[tensor] = _narrow(at)
    for node in network.readers[tensor]:
        known = _step(network, layers, node, tensor, at, found)
        if known is None:
            found.fixed.update(map(int, np.unique(at)))
            continue
        for name, numbers in known.items():
            _walk(network, layers, name, numbers, found)


def _step(
    network: Network, layers: Mapping[str, Layer], node: onnx.NodeProto, tensor: str, at: Array, found: Flow
) -> dict[str, Array] | None:
    """What a reader makes of the channels: its results' numbers. None where factors do not go through."""
    others = [n for n in node.input if n and n != tensor]
    constant = all(n in network.constants for n in others)
    if list(node.input).count(tensor) != 1:
        return None
    if node.op_type in MOVES and node.input[0] == tensor and constant:
        return _moved(network, node, at)
    if node.op_type == "Relu":
        return {node.output[0]: at}
    if node.op_type in SCALES and constant:
        by = network.constants[others[0]]
        backwards = node.op_type == "Div" and node.input[0] != tensor
        same = network.shape(node.output[0]) == at.shape
        return {node.output[0]: at} if by.size == 1 and same and not backwards else None
    layer = layers.get(node.name)
    if layer is not None and layer.kind in ("MatMul", "Gemm") and node.input[0] == tensor:
        if not _same_along(at, range(at.ndim - 1)) or len(network.readers[layer.weight]) != 1:
            return None
        axis = 1 if network.attribute(node, "transB", 0) else 0
        row = at.reshape(-1, at.shape[-1])[0]
        found.weights.append((layer.weight, axis, tuple(map(int, row))))
        return {}
    if node.op_type == "MatMul" and layer is None and not constant:
        return _product(network, node, tensor, at, found)
    return None


def _product(
    network: Network, node: onnx.NodeProto, tensor: str, at: Array, found: Flow
) -> dict[str, Array] | None:
    """A product of two tensors: channels are what is summed over, or rows or columns that stay."""
    side = int(node.input[1] == tensor)
    shape = network.shape(node.output[0])
    if at.ndim < 2 or shape is None or len(shape) < 2:
        return None
    summed, kept = (-1, -2) if side == 0 else (-2, -1)
    if _same_along(at, [at.ndim + summed]):
        first = np.take(at, [0], axis=summed)
        return {node.output[0]: np.broadcast_to(first, shape)}
    if _same_along(at, [at.ndim + kept]):
        found.inner[node.name, side] = np.take(at, 0, axis=kept)
        return {}
    return None


def _moved(network: Network, node: onnx.NodeProto, at: Array) -> dict[str, Array] | None:
    constants = [numpy_helper.from_array(network.constants[n], n) for n in node.input[1:] if n]
    known = {n: network.shape(n) for n in node.output if n}
    if any(shape is None or np.prod(shape) > LARGEST for shape in known.values()):
        return None
    graph = helper.make_graph(
        [node],
        "moved",
        [helper.make_tensor_value_info(node.input[0], TensorProto.FLOAT, at.shape)],
        [helper.make_empty_tensor_value_info(n) for n in known],
        constants,
    )
    model = helper.make_model(
        graph, opset_imports=network.model.opset_import, ir_version=network.model.ir_version
    )
    try:
        results = answers(model, {node.input[0]: np.ascontiguousarray(at, np.float32)})
    except CompileError:
        return None
    return {n: y.astype(np.int64) for n, y in zip(known, results, strict=True)}


def _same_along(at: Array, axes: range | list[int]) -> bool:
    return all((at == np.take(at, [0], axis=axis)).all() for axis in axes)


def _narrow(at: Array) -> Array:
    """Without the axes along which nothing changes."""
    for axis in range(at.ndim):
        if _same_along(at, [axis]):
            at = np.take(at, [0], axis=axis)
    return at


def ties(flows: list[Flow | None]) -> dict[tuple[int, int], tuple[int, int]]:
    """Of channels that are multiplied with each other and summed: each with the other, as (flow, channel).
    Factors of such two must be each other's inverse. What is multiplied with several, or with what is not
    known, becomes fixed."""
    sides: dict[tuple[str, int], int] = {}
    for number, one in enumerate(flows):
        for key in one.inner if one is not None else ():
            sides[key] = number
    partners: dict[tuple[int, int], set[tuple[int, int]]] = {}
    lonely: set[tuple[int, int]] = set()
    for (node, side), number in sides.items():
        mine = flows[number]
        assert mine is not None
        other = sides.get((node, 1 - side))
        at = mine.inner[node, side]
        if other is None:
            lonely |= {(number, int(c)) for c in np.unique(at)}
            continue
        theirs = flows[other]
        assert theirs is not None
        for a, b in {(int(a), int(b)) for a, b in np.broadcast(at, theirs.inner[node, 1 - side])}:
            partners.setdefault((number, a), set()).add((other, b))
    for channel, several in partners.items():
        if len(several) > 1 or channel in several:
            lonely |= {channel, *several}
    for number, one in enumerate(flows):
        lonely |= {(number, c) for c in one.fixed} if one is not None else set()
    pending = list(lonely)
    while pending:  # what a fixed channel is multiplied with is fixed
        for other_one in partners.get(pending.pop(), ()):
            if other_one not in lonely:
                lonely.add(other_one)
                pending.append(other_one)
    for number, c in lonely:
        known = flows[number]
        assert known is not None
        known.fixed.add(c)
    return {key: next(iter(several)) for key, several in partners.items() if key not in lonely}
