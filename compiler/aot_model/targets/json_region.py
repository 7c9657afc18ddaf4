"""json: float regions as data, which a small interpreter in C reads at run time
(runtime/include/aot_model/region.h).

    blob = header, JSON text (tensors, nodes), constants

Nothing is specialised, so the code is the same for every region: the way to try an operator set, to send a
part of a network over a wire, or to let many rarely used networks share one interpreter. docs/backends.md has
the format.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from zlib import crc32

import numpy as np

from aot_model.ir.graph import Graph, Node
from aot_model.ir.pattern import op
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.kernels.target import Target
from aot_model.memory import Block, Pool, plan
from aot_model.ops import movement
from aot_model.ops.convolution import Convolution
from aot_model.ops.normalisation import Softmax
from aot_model.ops.pool import Pool as Pooling
from aot_model.ops.reduction import Reduction
from aot_model.ops.registry import normal_axis
from aot_model.partition.offload import Blob, Claim, Offload
from aot_model.partition.region import Match, Region

VERSION = 1
MAGIC = b"AOTR"
ALIGN = 16
_RANK, _OPERANDS, _LIMIT, _ELEMENTS, _ENTRY = 6, 16, 1 << 15, 1 << 26, 44
"""Limits of the interpreter: axes, operands of a node, attributes and tensors, elements; bytes of its table
for a tensor.
"""

Attributes = dict[str, int | list[int]]


@dataclass(frozen=True)
class Operation:
    """An operator of the interpreter for a node: its name, operands (None: absent) and attributes."""

    name: str
    operands: tuple[Value | None, ...]
    attributes: Attributes


# --- nodes --------------------------------------------------------------------------------------------------


def _plain(name: str, least: int = 1, most: int = 2) -> Callable[[Node], Operation | str]:
    """An operator without attributes."""

    def describe(node: Node) -> Operation | str:
        if not least <= len(node.inputs) <= most:
            return f"{len(node.inputs)} operands"
        return Operation(name, tuple(node.inputs), {})

    return describe


def _windows(node: Node) -> Attributes | str:
    o = node.op
    assert isinstance(o, (Convolution, Pooling)) and node.inputs[0] is not None
    if node.inputs[0].type.rank != 4:
        return f"{node.inputs[0].type.rank - 2} spatial axes; it has two"
    if min(o.pads) < 0:
        return "negative padding"
    return {"strides": list(o.strides), "pads": list(o.pads), "dilations": list(o.dilations)}


def _convolution(node: Node) -> Operation | str:
    windows = _windows(node)
    assert isinstance(node.op, Convolution)
    return (
        windows
        if isinstance(windows, str)
        else Operation("conv2d", tuple(node.inputs), {**windows, "groups": node.op.group})
    )


def _pool(node: Node) -> Operation | str:
    windows, o = _windows(node), node.op
    assert isinstance(o, Pooling)
    if isinstance(windows, str):
        return windows
    if o.mode not in ("max", "average"):
        return f"a {o.mode}, not a maximum or an average"
    if o.ceil_mode:
        return "windows beyond the end"
    more: Attributes = {"kernel": list(o.kernel), "include_pad": int(bool(o.count_include_pad))}
    return Operation(
        "max_pool2d" if o.mode == "max" else "avg_pool2d", tuple(node.inputs), {**windows, **more}
    )


def _dense(node: Node) -> Operation | str:
    x, w = node.inputs
    assert x is not None and w is not None
    if w.type.rank != 2 or x.type.rank < 1:
        return f"a product with {w.type}; it multiplies by one matrix"
    return Operation("dense", (x, w), {})


def _softmax(node: Node) -> Operation | str:
    x = node.inputs[0]
    assert isinstance(node.op, Softmax) and x is not None
    return Operation("softmax", (x,), {"axis": normal_axis(node.op.axis, x.type.rank)})


def _mean(node: Node) -> Operation | str:
    assert isinstance(node.op, Reduction)
    axes = node.input(1)
    if axes is not None and axes.data is None:
        return "axes that are not constant"
    return Operation("mean", (node.inputs[0],), {"axes": sorted(node.op.axes(node.inputs))})


def _reshape(node: Node) -> Operation | str:
    return Operation("reshape", (node.inputs[0],), {})


def _transpose(node: Node) -> Operation | str:
    x = node.inputs[0]
    assert isinstance(node.op, movement.Transpose) and x is not None
    return Operation("transpose", (x,), {"axes": list(node.op.permutation(x.type.rank))})


def _concatenate(node: Node) -> Operation | str:
    x = node.inputs[0]
    assert isinstance(node.op, movement.Concat) and x is not None
    if len(node.inputs) > _OPERANDS:
        return f"{len(node.inputs)} operands; it takes {_OPERANDS}"
    return Operation("concatenate", tuple(node.inputs), {"axis": normal_axis(node.op.axis, x.type.rank)})


_NODES: dict[str, Callable[[Node], Operation | str]] = {
    "Convolution": _convolution,
    "MatMul": _dense,
    "Pool": _pool,
    "Softmax": _softmax,
    "ReduceMean": _mean,
    "Reshape": _reshape,
    "ReshapeTo": _reshape,
    "Flatten": _reshape,
    "Squeeze": _reshape,
    "Unsqueeze": _reshape,
    "Transpose": _transpose,
    "Concat": _concatenate,
    "Clip": _plain("clip", 1, 3),
    "PRelu": _plain("prelu", 2),
    "Add": _plain("add", 2),
    "Sub": _plain("subtract", 2),
    "Mul": _plain("multiply", 2),
    "Div": _plain("divide", 2),
    "Max": _plain("maximum", 2),
    "Min": _plain("minimum", 2),
    "Relu": _plain("relu", 1, 1),
    "Sigmoid": _plain("sigmoid", 1, 1),
    "LibmSigmoid": _plain("sigmoid", 1, 1),
    "Tanh": _plain("tanh", 1, 1),
    "LibmTanh": _plain("tanh", 1, 1),
    "Exp": _plain("exp", 1, 1),
    "Sqrt": _plain("sqrt", 1, 1),
    "Neg": _plain("negate", 1, 1),
    "Abs": _plain("abs", 1, 1),
}


def operation(node: Node) -> Operation | str:
    """What the interpreter does for a node, or why it cannot."""
    found = _NODES[node.kind](node)
    if isinstance(found, str):
        return found
    for value in (*found.operands, *node.outputs):
        if value is not None and (
            value.dtype is not DType.FLOAT32 or value.type.rank > _RANK or value.type.elements > _ELEMENTS
        ):
            return f"{value.type}; it computes float32 of up to {_RANK} axes"
    largest = max(
        (max(a) if isinstance(a, list) else a for a in found.attributes.values() if a != []), default=0
    )
    return f"an attribute of {largest}; the largest is {_LIMIT}" if largest > _LIMIT else found


def _check(match: Match, target: Target) -> str | None:
    found = operation(match.result)
    return found if isinstance(found, str) else None


def _check_weightless(match: Match, target: Target) -> str | None:
    """Constants are operands of the region then, floats all of them."""
    found = operation(match.result)
    if isinstance(found, str):
        return found
    lost = [v for v in match.result.inputs if v is not None and v.is_const and v not in found.operands]
    return f"'{lost[0].name}' says a shape or axes, which must be in the data" if lost else None


# --- the blob -----------------------------------------------------------------------------------------------


def serialise(graph: Graph) -> tuple[bytes, int]:
    """A graph of the interpreter's operators as a blob, and the bytes of memory that it needs to run.

    The same graph gives the same bytes. ValueError for a node that the interpreter does not have.
    """
    operations = [_operation(n) for n in graph.nodes]
    values = dict.fromkeys(
        v
        for n, what in zip(graph.nodes, operations, strict=True)
        for v in (*what.operands, n.outputs[0])
        if v is not None
    )
    numbers = {v: k for k, v in enumerate(values)}
    offsets, temporary_bytes = _temporaries(graph, operations)
    constants, pieces = 0, []
    tensors = []
    for value in values:
        if value.data is not None:
            place = {"constant": constants}
            pieces.append(np.ascontiguousarray(value.data, "<f4").tobytes())
            constants += len(pieces[-1])
        elif value in graph.inputs:
            place = {"input": graph.inputs.index(value)}
        elif value in graph.outputs:
            place = {"output": graph.outputs.index(value)}
        else:
            place = {"temporary": offsets[value]}
        tensors.append({"name": value.name, "shape": list(value.shape), **place})
    nodes = [
        {
            "op": what.name,
            "name": node.name,
            "inputs": [-1 if v is None else numbers[v] for v in what.operands],
            "output": numbers[node.outputs[0]],
            **what.attributes,
        }
        for node, what in zip(graph.nodes, operations, strict=True)
    ]
    document = {
        "format": "aot-model-region",
        "version": VERSION,
        "symbol": graph.name,
        "tensors": tensors,
        "nodes": nodes,
    }
    text = json.dumps(document, separators=(",", ":")).encode()
    begin = -(-(32 + len(text)) // ALIGN) * ALIGN
    head = MAGIC + struct.pack("<6I", VERSION, len(text), begin, constants, len(tensors), temporary_bytes)
    rest = text + bytes(begin - 32 - len(text)) + b"".join(pieces)
    return head + struct.pack("<I", crc32(rest, crc32(head))) + rest, len(tensors) * _ENTRY + temporary_bytes


def _operation(node: Node) -> Operation:
    found = operation(node) if node.kind in _NODES else "it has no such operator"
    if isinstance(found, str):
        raise ValueError(f"{node.kind} '{node.name}': {found}")
    return found


def _temporaries(graph: Graph, operations: Sequence[Operation]) -> tuple[dict[Value, int], int]:
    """Offsets of the values that live only inside, and the bytes that they take together."""
    last = {v: k for k, what in enumerate(operations) for v in what.operands if v is not None}
    inner = {n.outputs[0]: k for k, n in enumerate(graph.nodes) if n.outputs[0] not in graph.outputs}
    blocks = [Block(f"{k:05d}", v.type.nbytes, 4, k, max(k, last.get(v, k))) for v, k in inner.items()]
    answer = plan(blocks, [], [], (Pool("memory", None, 4),))
    offsets = {v: answer.offsets[f"{k:05d}"].offset for v, k in inner.items()}
    return offsets, max((offsets[v] + v.type.nbytes for v in inner), default=0)


def _compile(region: Region) -> Blob:
    data, memory = serialise(region.graph)
    return Blob(data, "aot_model_region_call", "aot_model/region.h", memory, ALIGN)


def _take_over(region: Region) -> dict[Value, Value | None]:
    """The constants are in the blob, and nowhere else."""
    return dict.fromkeys(region.constant_values())


def _claims(check: Callable[[Match, Target], str | None]) -> tuple[Claim, ...]:
    return tuple(Claim(name, op(name), check) for name in _NODES)


JSON = Target(
    "json",
    "float layers as data for an interpreter in C; before any processor",
    offload=Offload(
        _claims(_check), compile_region=_compile, update_constants=_take_over, keep=frozenset({"Softmax"})
    ),
)
JSON_WEIGHTLESS = Target(
    "json-weightless",
    "json with the constants outside of the data, where parameters of the model are",
    offload=Offload(
        _claims(_check_weightless),
        compile_region=_compile,
        keep=frozenset({"Softmax"}),
        constants_as_inputs=True,
    ),
)
