"""Loops that count: how many turns they make, where their condition is computed from counters alone.

TensorFlow's loops go on while a counter that they carry is below a limit; converters write just that. Such a
condition depends on no data: the turns are counted, and the loop is one of so many turns. For ONNX that is
done when the model is read, as its results have a known size then.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from aot_model.ir.graph import Graph, Node
from aot_model.ir.operator import Operator
from aot_model.ir.values import Value, constant
from aot_model.ops.control import Loop
from aot_model.passes.explain import refuse
from aot_model.passes.fold_constants import followed

MAX_STEPS = 20_000
"""Nodes that are computed to find out."""


def count_turns(graph: Graph) -> bool:
    """Loops that count become ones of so many turns. True when something changed."""
    changed = False
    for node in graph.nodes:
        if not isinstance(node.op, Loop) or node.op.turns(node.inputs) is not None:
            continue
        if len(node.op.body.outputs) > 1 + len(node.inputs[2:]):
            refuse(node, "every turn has results, whose shapes would change")
            continue
        inputs = _counted(node.op, node.inputs)
        if inputs is node.inputs:
            refuse(
                node, f"its condition depends on more than counters, or they take over {MAX_STEPS:,} steps"
            )
            continue
        node.inputs = inputs
        changed = True
    return changed


def counted(op: Operator, inputs: list[Value | None]) -> tuple[Operator, list[Value | None]]:
    """A node; where it is a loop that counts, with the number of its turns and without a condition, which its
    body no longer computes.
    """
    if not isinstance(op, Loop):
        return op, inputs
    inputs = _counted(op, inputs)
    has_results = len(op.body.outputs) > 1 + len(inputs[2:])
    return (replace(op, open=True) if has_results and op.turns(inputs) is None else op), inputs


def _counted(op: Loop, inputs: list[Value | None]) -> list[Value | None]:
    if len(inputs) < 2 or op.body.outputs[0].is_const:
        return inputs
    limit, condition = inputs[0], inputs[1]
    known = condition is None or (condition.data is not None and bool(condition.data.reshape(-1)[0]))
    if not known or (limit is not None and limit.data is None):
        return inputs
    most = None if limit is None or limit.data is None else max(int(limit.data.reshape(-1)[0]), 0)
    turns = _turns(op.body, inputs[2:], most)
    if turns is None:
        return inputs
    op.body.outputs[0] = constant("again", np.asarray(True))
    return [constant("turns", np.asarray(turns, np.int64)), None, *inputs[2:]]


def _turns(body: Graph, initial: list[Value | None], most: int | None) -> int | None:
    """The number of turns; None where the condition depends on more than counters, or it takes too long."""
    carried = dict(zip(body.inputs[2:], zip(initial, body.outputs[1:], strict=False), strict=True))
    chain = _chain(body, {v for v, (first, _) in carried.items() if first is not None and first.is_const})
    if chain is None:
        return None
    nodes, counters = chain
    now = {v: first for v, (first, _) in carried.items() if v in counters and first is not None}
    count = 0
    while most is None or count < most:
        if (count + 1) * (len(nodes) + 1) > MAX_STEPS:
            return None
        turn, on = constant("turn", np.asarray(count, np.int64)), constant("on", np.asarray(True))
        values = followed(nodes, {body.inputs[0]: turn, body.inputs[1]: on, **now})
        if values is None:
            return None
        count += 1
        again = values[body.outputs[0]].data
        if again is None or not bool(again.reshape(-1)[0]):
            return count
        now = {v: values.get(carried[v][1], carried[v][1]) for v in now}
    return count


def _chain(body: Graph, known: set[Value]) -> tuple[list[Node], set[Value]] | None:
    """The nodes that the condition is computed by, in order, with those that step its counters; the counters.
    None where they read anything else. known: inputs of the body whose first value is a constant.
    """
    producers, after = body.producers(), dict(zip(body.inputs[2:], body.outputs[1:], strict=False))
    waiting, seen, found = [body.outputs[0]], set[Value](), set[Node]()
    while waiting:
        value = waiting.pop()
        if value in seen or value.is_const:
            continue
        seen.add(value)
        if value in producers:
            found.add(producers[value])
            waiting += [v for v in producers[value].inputs if v is not None]
        elif value in known:
            waiting.append(after[value])
        elif value not in body.inputs[:2]:
            return None
    return [n for n in body.nodes if n in found], seen & known
