"""Which tensors and constants become integers, so that every operator with an integer kernel gets it.

The compiler makes an operator on integers of what lies between DequantizeLinear and QuantizeLinear
(passes/fuse_qdq.py).
So: inputs and results of those operators are quantised; what a Relu or Clip leaves of a result, and not the
result
itself; of a chain of elementwise operators on one tensor, which becomes a table, only what the chain gives.
Everything
else stays float. Whatever is chosen here, the model means the same: only roundings and speed depend on it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import onnx

from aot_model.passes.qdq_site import MOVEMENTS
from aot_model.quantise.network import Network

PRODUCTS = ("Conv", "ConvTranspose", "Gemm", "MatMul")
JOINS = ("Add", "Sub", "Mul", "Concat")
REDUCTIONS = ("GlobalAveragePool", "AveragePool", "ReduceMean", "Softmax")
ELEMENTWISE = (
    "Relu",
    "Clip",
    "Sigmoid",
    "Tanh",
    "HardSigmoid",
    "HardSwish",
    "Gelu",
    "Erf",
    "Exp",
    "Log",
    "Sqrt",
    "Abs",
    "Neg",
    "LeakyRelu",
    "Elu",
    "Selu",
    "Celu",
    "Softplus",
    "Softsign",
    "Mish",
    "Reciprocal",
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Pow",
    "Min",
    "Max",
    "ThresholdedRelu",
    "Sin",
    "Cos",
    "Floor",
    "Ceil",
    "Round",
    "Sign",
    "Swish",
)
RANGES = ("Relu", "Clip")


@dataclass(frozen=True)
class Weight:
    """A constant that becomes integers: the axis of its scales (None: one scale), the node that reads it."""

    name: str
    axis: int | None
    node: str
    result: str = ""
    """Of an operand of a sum or the like: what that gives, which has the constant's type."""


@dataclass(frozen=True)
class Layer:
    """An operator with weights: what a user would call a layer."""

    node: str
    kind: str
    input: str
    weight: str
    bias: str | None
    adder: str
    """The node that reads the bias: the same, or an Add behind a MatMul."""
    before: str
    """What it makes, before bias by an Add behind it, Relu and Clip."""
    result: str
    """... and after them."""


@dataclass
class Choice:
    """What is quantised, in the order of the graph."""

    tensors: list[str] = field(default_factory=list)
    weights: dict[str, Weight] = field(default_factory=dict)
    layers: list[Layer] = field(default_factory=list)
    groups: dict[str, str] = field(default_factory=dict)
    """Tensor -> representative of those that have one scale, for their elements are only moved."""
    kinds: dict[str, str] = field(default_factory=dict)
    """Tensor -> representative of those that must be of one type: operands and results of sums."""
    sums: dict[str, str] = field(default_factory=dict)
    """Tensor -> representative of those that are added to each other, or only moved: with one scale, a sum
    rounds nothing."""
    multiples: list[tuple[str, str, float]] = field(default_factory=list)
    """(tensor, result, number): products with a number, which are the same integers in another scale."""
    origins: dict[str, str] = field(default_factory=dict)
    """Elementwise result -> the tensor that it is a function of."""
    powers: bool = False
    """Whether scales are powers of two."""
    ends: frozenset[str] = frozenset()
    """Tensors that only the model's user reads, through what keeps the order of elements at most."""


def choose(network: Network, powers: bool = False) -> Choice:
    """What to quantise of a float model; powers: with scales that are powers of two."""
    found = _Chooser(network).run()
    found.powers = powers
    return found


class _Chooser:
    def __init__(self, network: Network) -> None:
        self.net = network
        self.wanted: dict[str, None] = {}
        self.choice = Choice()
        self.origin = self.choice.origins

    def run(self) -> Choice:
        nodes = list(self.net.model.graph.node)
        for node in nodes:
            self._note_origin(node)
        for node in nodes:
            self._visit(node)
        self._spread(nodes)
        order = [*self.net.inputs, *(name for node in nodes for name in node.output)]
        result = self.choice
        result.tensors = [name for name in order if name in self.wanted]
        result.groups, result.kinds, result.sums = self._unite(nodes)
        result.ends = frozenset(t for t in result.tensors if self._is_end(t))
        return result

    def _note_origin(self, node: onnx.NodeProto) -> None:
        """Which tensor the result is an elementwise function of, if of one."""
        if node.op_type not in ELEMENTWISE or len(node.output) != 1 or not self.net.is_float(node.output[0]):
            return
        origins, scalars = set(), True
        for name in node.input:
            if name in self.net.constants:
                scalars &= self.net.constants[name].size == 1
            elif name:
                origins.add(self.origin.get(name, name))
        if len(origins) != 1:
            return
        (origin,) = origins
        # By channel, a function of float inputs is as good; of integers it would be no table.
        if (scalars or origin in self.net.inputs) and self.net.shape(origin) == self.net.shape(
            node.output[0]
        ):
            self.origin[node.output[0]] = origin

    def _want(self, name: str) -> None:
        """A tensor is wanted as integers."""
        if self.net.is_float(name):
            self.wanted[name] = None

    def _visit(self, node: onnx.NodeProto) -> None:
        if (
            node.op_type not in (*PRODUCTS, *JOINS, *REDUCTIONS)
            or not node.output
            or not self.net.is_float(node.output[0])
        ):
            return
        if node.output[0] in self.origin or (node.op_type == "Softmax" and self._only_leaves(node.output[0])):
            return
        if node.op_type == "Add" and self._is_bias(node):
            return
        if node.op_type in PRODUCTS and not self._product(node):
            return
        if node.op_type in JOINS:
            for name in node.input:
                if name in self.net.constants and self.net.constants[name].dtype == "float32":
                    result = "" if node.op_type == "Mul" else self._after(node.output[0], node.op_type)
                    self.choice.weights.setdefault(name, Weight(name, None, node.name, result))
        for name in (
            node.input
            if node.op_type in JOINS
            else node.input[:2]
            if node.op_type == "MatMul"
            else node.input[:1]
        ):
            self._want(name)
        self._want(self._after(node.output[0], node.op_type))

    def _only_leaves(self, name: str) -> bool:
        """Whether a tensor is an output of the model and nothing else."""
        return name in self.net.outputs and not self.net.readers[name]

    def _is_bias(self, node: onnx.NodeProto) -> bool:
        """An Add of a constant to a product that nothing else reads: the bias of the product."""
        for product, other in (node.input, node.input[::-1]):
            made = self.net.producer.get(product)
            constant = self.net.constants.get(other)
            if (
                made is not None
                and made.op_type == "MatMul"
                and constant is not None
                and self.net.read_once(product)
            ):
                shape = self.net.shape(product)
                return (
                    shape is not None
                    and constant.size in (1, shape[-1])
                    and constant.size == (constant.shape or (1,))[-1]
                )
        return False

    def _product(self, node: onnx.NodeProto) -> bool:
        """Note the layer; False where no integer kernel is for it."""
        weight = node.input[1]
        if weight not in self.net.constants:
            return node.op_type == "MatMul" and node.input[0] not in self.net.constants
        constant = self.net.constants[weight]
        if constant.dtype != "float32" or not self.net.is_float(node.input[0]):
            return False
        get = self.net.attribute
        if node.op_type == "Gemm":
            if (
                get(node, "alpha", 1.0) != 1
                or get(node, "transA", 0)
                or (get(node, "beta", 1.0) != 1 and len(node.input) > 2)
            ):
                return False
            axis = 0 if get(node, "transB", 0) else 1
        elif node.op_type == "ConvTranspose":
            if get(node, "group", 1) != 1:
                return False
            axis = 1
        elif node.op_type == "MatMul":
            if constant.ndim != 2 or len(self.net.shape(node.input[0]) or ()) < 2:
                return False
            axis = 1
        else:
            axis = 0
        known = self.choice.weights.get(weight)
        if known is not None and known.axis != axis:
            axis = known.axis if known.axis is not None else axis
        self.choice.weights.setdefault(weight, Weight(weight, axis, node.name))
        bias = node.input[2] if len(node.input) > 2 and node.input[2] in self.net.constants else None
        adder, before = node, node.output[0]
        if node.op_type == "MatMul" and self.net.read_once(before):
            (reader,) = self.net.readers[before]
            if reader.op_type == "Add" and self._is_bias(reader):
                adder, bias, before = reader, next(n for n in reader.input if n != before), reader.output[0]
        result = self._after(node.output[0], node.op_type)
        layer = Layer(node.name, node.op_type, node.input[0], weight, bias, adder.name, before, result)
        self.choice.layers.append(layer)
        return True

    def _after(self, name: str, kind: str) -> str:
        """What bias and activations of the same kernel make of a result."""
        if kind == "Softmax":
            return name
        if kind == "MatMul" and self.net.read_once(name):
            (reader,) = self.net.readers[name]
            if reader.op_type == "Add" and self._is_bias(reader):
                name = reader.output[0]
        while self.net.read_once(name):
            (reader,) = self.net.readers[name]
            constant = all(n in self.net.constants for n in reader.input[1:] if n)
            if reader.op_type not in RANGES or reader.input[0] != name or not constant:
                break
            name = reader.output[0]
        return name

    def _spread(self, nodes: list[onnx.NodeProto]) -> None:
        """Movements pass integers on; chains of elementwise operators on integers end in integers."""
        changed = True
        while changed:
            before = len(self.wanted)
            for node in nodes:
                for out in node.output if self._moves(node) else ():
                    data = node.input[0]
                    if data in self.wanted:
                        self._want(out)
                    elif out in self.wanted and data in self.net.constants:
                        self.choice.weights.setdefault(data, Weight(data, None, node.name, out))
                    elif out in self.wanted:
                        self._want(data)
            for name, origin in self.origin.items():
                if origin in self.wanted and not self._inside(name) and not self._only_leaves(name):
                    self._want(name)
            changed = len(self.wanted) > before

    def _moves(self, node: onnx.NodeProto) -> bool:
        """Whether floats are only moved, or zeros put around them."""
        if node.op_type == "Pad" and self.net.attribute(node, "mode", b"constant") == b"constant":
            fill = self.net.constants.get(node.input[2]) if len(node.input) > 2 and node.input[2] else 0
            if fill is None or np.any(fill):
                return False
        return node.op_type in MOVEMENTS and bool(node.output) and self.net.is_float(node.output[0])

    def _inside(self, name: str) -> bool:
        """Whether an elementwise result is read only by the rest of its chain."""
        readers = self.net.readers[name]
        return (
            bool(readers)
            and name not in self.net.outputs
            and all(
                r.output[0] in self.origin and self.origin[r.output[0]] == self.origin[name] for r in readers
            )
        )

    def _unite(self, nodes: list[onnx.NodeProto]) -> tuple[dict[str, str], ...]:
        scale: dict[str, str] = {}
        kind: dict[str, str] = {}
        summed: dict[str, str] = {}
        for node in nodes:
            out = node.output[0] if node.output else ""
            for moved in node.output if self._moves(node) else ():
                for links in (scale, kind, summed) if moved in self.wanted else ():
                    _join(links, node.input[0], moved)
            result = self._after(out, node.op_type)
            if (by := self._multiple(node)) is not None:
                self.choice.multiples.append(by)
                _join(kind, by[0], by[1])
            if (
                node.op_type in ("Add", "Sub")
                and result in self.wanted
                and out not in self.origin
                and not self._is_bias(node)
            ):
                for name in node.input:
                    _join(kind, name, result)
                    _join(summed, name, result)
            if node.op_type == "Concat" and out in self.wanted:
                for name in node.input:
                    _join(kind, name, out)
                    _join(summed, name, out)
                    if self.net.read_once(name):  # finer steps would be lost there anyway
                        _join(scale, name, out)
            if node.op_type == "MatMul" and result in self.wanted and node.input[1] in self.wanted:
                _join(kind, node.input[0], node.input[1])
        return tuple({t: _root(links, t) for t in self.wanted} for links in (scale, kind, summed))

    def _multiple(self, node: onnx.NodeProto) -> tuple[str, str, float] | None:
        """A wanted tensor times a positive number, or divided by it."""
        out = node.output[0] if node.output else ""
        if node.op_type not in ("Mul", "Div") or out not in self.wanted:
            return None
        for k in (0, 1) if node.op_type == "Mul" else (0,):
            name, by = node.input[k], self.net.constants.get(node.input[1 - k])
            if name in self.wanted and by is not None and by.size == 1 and float(by.reshape(-1)[0]) > 0:
                number = float(by.reshape(-1)[0])
                same = self.net.shape(name) == self.net.shape(out)
                return (name, out, number if node.op_type == "Mul" else 1 / number) if same else None
        return None

    def _is_end(self, name: str) -> bool:
        """Whether only outputs follow: directly, through a Softmax or an elementwise function, or moved."""
        readers = self.net.readers[name]
        if not readers:
            return name in self.net.outputs
        return all(
            (
                r.op_type in ("Softmax", "LogSoftmax")
                or r.op_type in MOVEMENTS
                or self.origin.get(r.output[0]) is not None
            )
            and all(self._is_end(name) for name in r.output)
            for r in readers
        )


def _root(links: dict[str, str], name: str) -> str:
    while links.get(name, name) != name:
        name = links[name]
    return name


def _join(links: dict[str, str], a: str, b: str) -> None:
    first, second = _root(links, a), _root(links, b)
    if first != second:
        links[second] = first
