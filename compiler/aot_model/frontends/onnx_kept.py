"""Loops without the states that no turn changes: exporters of JAX carry all that a body reads, weights and
whole sequences, from turn to turn. Such a state is a value of the graph around the body, a constant where
that is one; carried, it would be copied to memory and back every turn.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from aot_model.frontends.onnx_checks import AI_ONNX
from aot_model.frontends.onnx_structure import STRUCTURES, Handler, Place
from aot_model.ir.values import Value
from aot_model.ops.elementwise import op


def _unchanged(body: onnx.GraphProto, formals: Sequence[str], results: Sequence[str]) -> list[int]:
    """The states that a body gives as it got them."""
    same: dict[str, str] = {}
    for node in body.node:
        if node.op_type == "Identity" and node.domain in AI_ONNX and len(node.input) == len(node.output) == 1:
            same[node.output[0]] = same.get(node.input[0], node.input[0])
    return [k for k, (a, b) in enumerate(zip(formals, results, strict=True)) if same.get(b, b) == a]


def _without_kept(place: Place, count: int, before: tuple[int, int, int]) -> bool:
    """A loop of fewer states; False where each turn changes all `count` of them. before: inputs of the node,
    inputs and outputs of the body that come before the states.
    """
    body = place.attribute("body")
    of_node, of_inputs, of_outputs = before
    formals = [i.name for i in body.input][of_inputs : of_inputs + count]
    results = [o.name for o in body.output][of_outputs : of_outputs + count]
    values = place.inputs[of_node : of_node + count]
    if not len(formals) == len(results) == len(values) or len({i.name for i in body.input}) != len(
        body.input
    ):
        return False
    kept = [k for k in _unchanged(body, formals, results) if isinstance(values[k], Value)]
    if not kept:
        return False
    node, scope = onnx.NodeProto(), dict(place.scope)
    node.CopyFrom(place.proto)
    inner = next(a.g for a in node.attribute if a.name == "body")
    # The body's names for its states become names of the graph around it, where others may have them.
    for k, name in enumerate(node.input):
        if name:
            while node.input[k] in scope or node.input[k] in formals:
                node.input[k] += "'"
            scope[node.input[k]] = place.scope[name]
    for k in reversed(kept):
        del node.input[of_node + k], node.output[k : k + 1]
        del inner.input[of_inputs + k], inner.output[of_outputs + k]
        scope[formals[k]] = values[k]
    place.importer.inline(onnx.GraphProto(node=[node]), place.graph, scope)
    place.scope.update({name: scope[name] for name in node.output if name in scope})
    for k in kept:
        if k < len(place.proto.output) and (name := place.proto.output[k]):
            place.scope[name] = place.build(op("Identity"), values[k], output=name)
    return True


def _loop(place: Place) -> bool:
    return _without_kept(place, len(place.inputs) - 2, (2, 2, 1)) or STRUCTURES["Loop"](place)


def _scan(place: Place) -> bool:
    count = len(place.inputs) - int(place.attribute("num_scan_inputs") or 0)
    of_states = place.importer.version("") > 8 and _without_kept(place, count, (0, 0, 0))
    return of_states or STRUCTURES["Scan"](place)


LOOPS: dict[str, Handler] = {"Loop": _loop, "Scan": _scan}
