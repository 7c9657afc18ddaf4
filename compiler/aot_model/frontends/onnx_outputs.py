"""ONNX: the outputs of a model have the names that the file gives them."""

from __future__ import annotations

from collections.abc import Sequence

import onnx

from aot_model.c.names import printable
from aot_model.frontends.onnx_masks import Repeated
from aot_model.frontends.onnx_structure import Items
from aot_model.ir.graph import Graph
from aot_model.ir.operator import OperatorError
from aot_model.ir.values import Value
from aot_model.ops.elementwise import op
from aot_model.ops.registry import Build


def named_outputs(
    graph: Graph,
    outputs: Sequence[onnx.ValueInfoProto],
    results: Sequence[Value | Items],
    shapes: dict[Value, Value],
) -> list[Value]:
    """The values of a model's outputs, each under its name; the elements of a sequence keep theirs.

    What a branch, a function or a sequence gives has the name that it has there, and may be an input, a
    constant or another output. shapes: of values whose size depends on data; they are named with them.
    OperatorError where there is no such value.
    """
    made = {v for node in graph.nodes for v in node.outputs}
    names = [o.name for o in outputs]
    found: list[Value] = []
    for name, result in zip(names, results, strict=False):  # fewer, where something is wrong
        for value in result.values if isinstance(result, Items) else (result,):
            if isinstance(value, Repeated):
                why = value.error
                raise OperatorError(f"output '{printable(name)}': {why}", why.code, why.hint)
        if isinstance(result, Items):
            if not result.values:
                raise OperatorError(f"output '{printable(name)}' is nothing: it has no elements", "E202")
            found += result.values
        elif result.name == name:
            found.append(result)
        elif result in made and result not in found and result.name not in names:
            result.name = name
            if result in shapes:
                shapes[result].name = f"{name}.shape"
            found.append(result)
        else:
            build = Build(graph.nodes, name)
            found.append(build(op("Identity"), result, output=name))
            if result in shapes:
                shapes[found[-1]] = build(op("Identity"), shapes[result], output=f"{name}.shape")
    return found
