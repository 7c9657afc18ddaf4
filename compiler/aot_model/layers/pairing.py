"""Which signal of one file is which of another: by name, by place where they are inputs or outputs, through
what a quantiser took away.

A quantiser drops a Relu whose work the range of the integers does: the signal before it is then the one
behind it. Files of TensorFlow have
channels last, those of ONNX first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from aot_model.layers.reference import FileNode, Key
from aot_model.layers.signals import Signal, Signals

Array = np.ndarray

_TAKEN_AWAY = frozenset(
    {
        "Relu",
        "Clip",
        "LeakyRelu",
        "Sigmoid",
        "HardSigmoid",
        "HardSwish",
        "Tanh",
        "BatchNormalization",
        "Identity",
        "Cast",
        "Dropout",
        "RELU",
        "RELU6",
    }
)
"""Operators of one input whose result has its shape, which quantisers and optimisers make part of what is
before them."""

_LEAVES_CHANNELS = frozenset(
    {
        "Relu",
        "LeakyRelu",
        "MaxPool",
        "AveragePool",
        "GlobalAveragePool",
        "Identity",
        "Dropout",
        "Flatten",
        "Reshape",
    }
)


def paired(
    a: Signals, b: Signals, a_nodes: Sequence[FileNode], b_nodes: Sequence[FileNode]
) -> list[tuple[Signal, Signal]]:
    """(signal of a, signal of b) in the order of b."""
    by_name: dict[str, Signal] = {}
    for rank in range(max((len(s.names) for s in a.all), default=0)):  # whole names before shorter ones
        for signal in a.all:
            names = list(signal.names)
            if rank < len(names):
                by_name.setdefault(names[rank], signal)
    found: dict[int, Signal] = {}
    for ours, theirs in ((a.inputs, b.inputs), (a.outputs, b.outputs)):
        if len(ours) == len(theirs):
            found.update(
                {id(b.of[k]): a.of[o] for o, k in zip(ours, theirs, strict=True) if k in b.of and o in a.of}
            )
    taken = {id(s) for s in found.values()}
    for signal in b.all:
        match = next((by_name[n] for n in signal.names if n in by_name), None)
        if id(signal) not in found and match is not None and id(match) not in taken:
            found[id(signal)] = match
            taken.add(id(match))
    _behind_what_was_taken_away(found, a, b, a_nodes, b_nodes)
    return [(found[id(signal)], signal) for signal in b.all if id(signal) in found]


def _behind_what_was_taken_away(
    found: dict[int, Signal], a: Signals, b: Signals, a_nodes: Sequence[FileNode], b_nodes: Sequence[FileNode]
) -> None:
    readers, kinds = (
        _readers(a, a_nodes),
        {k: {n.kind.removeprefix("QLinear") for n in nodes} for k, nodes in _readers(b, b_nodes).items()},
    )
    present = {id(s) for s in found.values()}
    for signal in b.all:
        match = found.get(id(signal))
        while match is not None:
            nodes = readers.get(id(match), [])
            if (
                len(nodes) != 1
                or nodes[0].kind not in _TAKEN_AWAY
                or nodes[0].kind in kinds.get(id(signal), ())
            ):
                break
            behind = a.of.get(nodes[0].outputs[0])
            if behind is None or id(behind) in present or any(o in a.outputs for o in match.keys):
                break
            match = behind
            present.add(id(behind))
            found[id(signal)] = behind


def _readers(signals: Signals, nodes: Sequence[FileNode]) -> dict[int, list[FileNode]]:
    """By signal: the nodes that read it, not those that quantise it."""
    found: dict[int, list[FileNode]] = {}
    for node in nodes:
        for key in node.inputs:
            signal = signals.of.get(key)
            if signal is not None and not any(o in signal.keys for o in node.outputs):
                found.setdefault(id(signal), []).append(node)
    return found


@dataclass(frozen=True)
class Layout:
    """How a tensor of b becomes one of a: its axes in another order, or the same elements in another
    shape."""

    shape: tuple[int, ...]
    axes: tuple[int, ...] | None = None
    other: tuple[int, ...] = ()

    def to_a(self, array: Array) -> Array:
        return array.transpose(self.axes) if self.axes is not None else array.reshape(self.shape)

    @staticmethod
    def between(a: Array, b: Array, mixed: bool) -> Layout | None:
        """None where they have no layout in common. mixed: one may have channels first, the other last;
        where both orders fit, the nearer one is it."""
        fits = [Layout(a.shape, None, b.shape)] if a.shape == b.shape else []
        if mixed and a.ndim == b.ndim and a.ndim >= 3:
            last_to_first, first_to_last = (0, a.ndim - 1, *range(1, a.ndim - 1)), (0, *range(2, a.ndim), 1)
            fits += [
                Layout(a.shape, axes, b.shape)
                for axes in (last_to_first, first_to_last)
                if tuple(b.shape[k] for k in axes) == a.shape
            ]
        if not fits and a.size == b.size and [n for n in a.shape if n > 1] == [n for n in b.shape if n > 1]:
            fits = [Layout(a.shape, None, b.shape)]
        return min(
            fits, key=lambda f: float(np.nansum((a.astype(np.float64) - f.to_a(b)) ** 2)), default=None
        )


def equalised(nodes: Sequence[FileNode], divided: Mapping[str, Array]) -> dict[Key, Array]:
    """By tensor of the float model: the factors, which go through what leaves channels alone."""
    readers: dict[Key, list[FileNode]] = {}
    for node in nodes:
        for key in node.inputs:
            readers.setdefault(key, []).append(node)
    found: dict[Key, Array] = {}
    for name, factors in divided.items():
        tensor: Key = name
        while True:
            found[tensor] = np.asarray(factors)
            after = readers.get(tensor, [])
            if len(after) != 1 or after[0].kind not in _LEAVES_CHANNELS:
                break
            tensor = after[0].outputs[0]
    return found


def channel_axis(kinds: Sequence[str], rank: int) -> int:
    """Where the channels of ONNX's operators are: the second axis of convolutions, the last of products of
    matrices."""
    if rank == 0:
        return 0
    return (
        1
        if rank > 2 and not any("MatMul" in k or "Gemm" in k or "LayerNorm" in k for k in kinds)
        else rank - 1
    )


def sources(nodes: Sequence[FileNode], known: Mapping[Key, object]) -> Mapping[Key, tuple[Key, ...]]:
    """For each known tensor the known tensors that it is computed from."""
    producer = {k: n for n in nodes for k in n.outputs}

    def before(key: Key) -> tuple[Key, ...]:
        pending, seen, found = [producer[key]] if key in producer else [], set[int](), dict[Key, None]()
        while pending:
            node = pending.pop()
            if id(node) not in seen:
                seen.add(id(node))
                found.update({k: None for k in node.inputs if k in known})
                pending += [producer[k] for k in node.inputs if k not in known and k in producer]
        return tuple(found)

    return {key: before(key) for key in known}
