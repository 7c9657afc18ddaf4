"""The tensors of a traced run beside those of a reference, layer by layer, in the order of the model's file.

For each tensor that exists in both:

* inherited: how far it is from the reference's, with all that went wrong before it;
* own: how far it is from what the reference makes of the *program's* tensors before it, so that a layer
  answers for
  itself only. A network of integers grows one rounding the other way into large differences; its layers are
  right.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from aot_model.c.names import printable
from aot_model.emit.trace import Traced
from aot_model.host.comparison import Comparison, Tolerance, compare
from aot_model.host.program import HostProgram
from aot_model.ir.graph import Node
from aot_model.ir.values import ModelTensor, Value, constant
from aot_model.layers.growth import grown, rounds
from aot_model.layers.reference import FileNode, Key, Reference, Tensors
from aot_model.passes.fold_constants import compute

Array = np.ndarray
MOST_GROWN = 16
"""Layers of which is asked whether a step in between grew: it takes runs of the reference."""


@dataclass(frozen=True)
class Layer:
    """One tensor of the model's file that the program has too."""

    key: Key
    name: str
    type: str
    nodes: tuple[FileNode, ...]
    """Of the file: what lies between the tensors that exist in both, which the compiler made one of; the last
    makes the tensor.
    """
    functions: tuple[str, ...]
    """Of the generated code: what writes it."""
    layers: tuple[str, ...]
    """Names of the program's calls."""
    steps: bool
    """Whether differences are steps of a quantised tensor: integers of 8 or 16 bits. Wider ones are exact."""
    inherited: Comparison
    own: Comparison | None
    grown: bool = False
    """Whether a step of what the layer rounds in between makes as many of its result."""

    @property
    def status(self) -> str:
        """ "off": the layer itself is; "rounding": by a step of an integer for each rounding that it is made
        of, or by what such a step becomes; "inherited": only its inputs are.
        """
        judged = self.own or self.inherited
        if judged.differing:
            few = judged.worst <= max(1, sum(rounds(node) for node in self.nodes))
            return "rounding" if self.steps and (few or self.grown) else "off"
        return "inherited" if self.inherited.differing else "ok"


@dataclass(frozen=True)
class Measured:
    """All layers in the order of the file, and what was not compared."""

    reference: str
    vectors: int
    layers: tuple[Layer, ...]
    fused: int
    """Tensors of the file that the program does not have: it fused what makes them with what reads them."""
    refused: tuple[str, ...]
    """Tensors that both have, but the reference gives in another shape or type, or not at all."""

    @property
    def first_off(self) -> Layer | None:
        return next((layer for layer in self.layers if layer.status == "off"), None)


def _widened(tolerance: Tolerance, dtype: np.dtype, nodes: int) -> Tolerance:
    """What a chain of nodes in half precision may be off: ONNX Runtime computes it in float32 and rounds what
    it gives alone, the program rounds where the file says float16. Roundings of n nodes add up as sqrt(n).
    """
    return replace(tolerance, share=tolerance.share * nodes**0.5) if dtype == np.float16 else tolerance


def traced_tensors(program: HostProgram, row: Sequence[Array]) -> dict[Key, Array]:
    """Tensors of the file, by key, of one run of a traced program."""
    found: dict[Key, Array] = {}
    for traced, array in zip(program.view.traced, row, strict=False):
        for tensor in traced.tensors:
            found[tensor.key] = _moved(tensor, array)
    return found


def _moved(tensor: ModelTensor, array: Array) -> Array:
    """The elements as the file has them."""
    for node in tensor.through:
        inputs: list[Value | None] = [constant("x", array), *node.inputs[1:]]
        result = compute(Node(node.op, inputs, node.outputs, node.name))
        assert result is not None
        array = result[0]
    return array


@dataclass(frozen=True)
class _Known:
    """A tensor of the file that the program has."""

    label: str
    type: str
    functions: tuple[str, ...] = ()
    calls: tuple[str, ...] = ()


def _outputs(program: HostProgram, reference: Reference) -> Sequence[Key]:
    """The file's outputs in the program's order; none where a sequence is several of the program's."""
    ports = reference.outputs
    return ports if len(ports) == len(program.view.outputs) else ()


def _known(program: HostProgram, reference: Reference) -> dict[Key, _Known]:
    """What a traced program tells, and its outputs: those that are constants no step writes."""
    found = {
        key: _Known(printable(p.buffer.name), str(p.buffer.type))
        for key, p in zip(_outputs(program, reference), program.view.outputs, strict=False)
    }
    for traced in program.view.traced:
        functions, calls = _calls(program, traced)
        for t in traced.tensors:
            found[t.key] = _Known(printable(t.name), str(traced.type), functions, calls)
    return found


def _tensors(program: HostProgram, reference: Reference, row: Sequence[Array]) -> dict[Key, Array]:
    outputs = zip(_outputs(program, reference), row[len(program.view.traced) :], strict=False)
    return {**dict(outputs), **traced_tensors(program, row)}


def measure(
    program: HostProgram,
    rows: Sequence[Sequence[Array]],
    inputs: Sequence[Sequence[Array]],
    reference: Reference,
    tolerance: Tolerance,
) -> Measured:
    """Compare the runs of a traced program on some vectors of inputs with a reference."""
    known = _known(program, reference)
    tolerance = replace(tolerance, share=max(tolerance.share, reference.share))
    ours = [
        {k: v for k, v in _tensors(program, reference, row).items() if v.dtype.kind in "biuf"} for row in rows
    ]
    produced = [k for node in reference.nodes for k in node.outputs]
    keys = [k for k in produced if ours and k in ours[0]]
    theirs: list[Tensors] = [reference.run(vector, keys) if keys else {} for vector in inputs]
    fits = {k for k in keys if all(_alike(o[k], t.get(k)) for o, t in zip(ours, theirs, strict=True))}
    keys_fit = [k for k in keys if k in fits]
    apart = (
        [
            reference.run_apart(vector, {k: o[k] for k in keys_fit})
            for vector, o in zip(inputs, ours, strict=True)
        ]
        if keys_fit
        else []
    )
    groups = fused_nodes(reference.nodes, set(keys_fit))
    layers: list[Layer] = []
    asked = 0
    for key in keys_fit:
        tensor = known[key]
        got = _finite(reference, np.stack([o[key] for o in ours]))
        want = _finite(reference, np.stack([t[key] for t in theirs]))
        alone = [a[key] for a in apart if a is not None and _alike(got[0], a.get(key))]
        allowed = _widened(tolerance, got.dtype, len(groups[key]))
        own = (
            compare(tensor.label, tensor.type, got, np.stack(alone), allowed)
            if len(alone) == len(got)
            else None
        )
        layer = Layer(
            key,
            tensor.label,
            _type(got),
            groups[key],
            tensor.functions,
            tensor.calls,
            got.dtype.kind in "iu" and got.dtype.itemsize <= 2,
            compare(tensor.label, tensor.type, got, want, allowed),
            own,
        )
        if own is not None and layer.status == "off" and asked < MOST_GROWN:
            asked += 1
            given = [{k: o[k] for k in keys_fit} for o in ours]
            layer = replace(layer, grown=_grown(reference, layer, inputs, given, got, alone))
        layers.append(layer)
    refused = tuple(known[k].label for k in keys if k not in fits)
    return Measured(reference.title, len(rows), tuple(layers), len(set(produced)) - len(keys), refused)


def _grown(
    reference: Reference,
    layer: Layer,
    inputs: Sequence[Sequence[Array]],
    given: Sequence[Tensors],
    got: Array,
    alone: Sequence[Array],
) -> bool:
    """Whether a step of what the layer rounds in between explains all that it is off."""
    if not layer.steps:
        return False
    for vector, tensors, ours, theirs in zip(inputs, given, got, alone, strict=True):
        steps = grown(reference, layer.nodes, layer.key, vector, tensors)
        if steps is None or bool((np.abs(ours.astype(np.int64) - theirs.astype(np.int64)) > steps).any()):
            return False
    return True


def _type(stack: Array) -> str:
    return f"{stack.dtype}[{','.join(map(str, stack.shape[1:]))}]"


def _finite(reference: Reference, stack: Array) -> Array:
    """Infinities as the largest numbers, where the reference has those."""
    if not reference.clamps or stack.dtype.kind != "f":
        return stack
    most = np.finfo(stack.dtype).max
    finite: Array = np.clip(stack, -most, most)
    return finite


def _alike(ours: Array, theirs: Array | None) -> bool:
    return theirs is not None and ours.shape == theirs.shape and ours.dtype == theirs.dtype


def _calls(program: HostProgram, traced: Traced) -> tuple[tuple[str, ...], tuple[str, ...]]:
    functions = dict.fromkeys(program.view.calls[c].name for c in traced.calls)
    return tuple(functions), tuple(dict.fromkeys(printable(c.layer) for c in traced.calls))


def fused_nodes(nodes: Sequence[FileNode], known: set[Key]) -> Mapping[Key, tuple[FileNode, ...]]:
    """For each known tensor the nodes that lie between it and the known tensors before it, in the order of
    the file.
    """
    producer = {k: n for n in nodes for k in n.outputs}
    place = {id(n): i for i, n in enumerate(nodes)}

    def behind(key: Key) -> Iterator[FileNode]:
        pending, seen = [producer[key]], set[int]()
        while pending:
            node = pending.pop()
            if id(node) in seen:
                continue
            seen.add(id(node))
            yield node
            pending += [producer[k] for k in node.inputs if k in producer and k not in known]

    return {k: tuple(sorted(behind(k), key=lambda n: place[id(n)])) for k in known}
