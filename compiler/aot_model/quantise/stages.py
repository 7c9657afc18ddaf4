"""A model run piece by piece over all samples: what has not run yet may still change.

Each tensor is asked for once what it depends on is settled; the nodes that lie between are run then, and
never again. What no node reads any more is forgotten.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import onnx
from onnx import helper, numpy_helper

from aot_model.errors import fail
from aot_model.quantise.data import Samples
from aot_model.quantise.runtime import FloatModel

Array = np.ndarray
MEMORY = 2**29
"""Bytes of tensors that are kept at a time, about."""
KEPT = 4
"""Tensors as large as the largest that are, about."""


def affordable(largest: int, wanted: int, least: int) -> int:
    """How many samples can be run so, if the largest tensor has so many elements."""
    return min(wanted, max(least, MEMORY // (KEPT * 4 * max(largest, 1))))


class Stages:
    """A model and samples. CompileError E603 from `tensor` where ONNX Runtime cannot run a part."""

    def __init__(self, model: onnx.ModelProto, samples: Samples, where: str) -> None:
        self.model, self.where = model, where
        self.count = samples.count
        self.left = dict(enumerate(model.graph.node))
        self.maker = {name: k for k, node in self.left.items() for name in node.output if name}
        self.reads = {k: tuple(_reads(node)) for k, node in self.left.items()}
        self.constants = {t.name: t for t in model.graph.initializer}
        vectors = [samples.vector(k) for k in range(samples.count)]
        self.known = {name: [v[name] for v in vectors] for name in vectors[0]} if vectors else {}

    def assign(self, name: str, data: Array) -> None:
        """Another value of a constant, for the nodes that have not run."""
        self.constants[name] = numpy_helper.from_array(np.ascontiguousarray(data), name)

    def tensor(self, name: str) -> list[Array]:
        """A tensor, sample by sample. It must not have been forgotten."""
        if name not in self.known and name in self.constants:
            return [numpy_helper.to_array(self.constants[name])] * self.count
        if name not in self.known:
            self._run(self._before(name), name)
        return self.known[name]

    def shift(self, name: str, by: Array) -> None:
        """Add to a tensor that is known: what is run from it on has it so."""
        self.known[name] = [np.asarray(x + by, x.dtype) for x in self.known[name]]

    def needs(self, name: str) -> set[str]:
        """The nodes that would be run for a tensor, by name."""
        return {self.left[k].name for k in self._before(name)}

    def _before(self, name: str) -> list[int]:
        """The nodes that a tensor needs and that have not run, in order."""
        found: set[int] = set()
        pending = [name]
        while pending:
            k = self.maker.get(pending.pop())
            if k is not None and k in self.left and k not in found:
                found.add(k)
                pending += [n for n in self.reads[k] if n not in self.known]
        return sorted(found)

    def _run(self, numbers: list[int], wanted: str) -> None:
        nodes = [self.left.pop(k) for k in numbers]
        made = {n for node in nodes for n in node.output if n}
        read = dict.fromkeys(n for k in numbers for n in self.reads[k])
        later = {n for k in self.left for n in self.reads[k]}
        given = [n for n in read if n in self.known]
        ends = [n for n in sorted(made) if n in later or n == wanted]
        graph = helper.make_graph(
            nodes,
            "stage",
            [_info(n, self.known[n][0]) for n in given],
            [],
            [self.constants[n] for n in read if n in self.constants and n not in made],
        )
        opsets, version = self.model.opset_import, self.model.ir_version
        model = helper.make_model(graph, opset_imports=opsets, ir_version=version)
        model.functions.extend(self.model.functions)
        part = FloatModel(model, ends, self.where)
        several = [part.run({n: self.known[n][k] for n in given}) for k in range(self.count)]
        self.known.update(zip(ends, map(list, zip(*several, strict=True)), strict=True))
        for n in given:
            if n not in later:
                del self.known[n]


def _info(name: str, example: Array) -> onnx.ValueInfoProto:
    if not isinstance(example, np.ndarray):
        raise fail("E603", f"'{name}' is no tensor, but a list of such: the model cannot be run in parts")
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(example.dtype), None)


def _reads(node: onnx.NodeProto) -> Iterator[str]:
    """What a node reads, in its bodies too."""
    yield from (n for n in node.input if n)
    for attribute in node.attribute:
        for body in (attribute.g, *attribute.graphs):
            own = {i.name for i in body.input} | {t.name for t in body.initializer}
            own |= {n for inner in body.node for n in inner.output}
            yield from (n for inner in body.node for n in _reads(inner) if n not in own)
            yield from (o.name for o in body.output if o.name not in own)
