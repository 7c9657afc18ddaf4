"""The steps around the body of a loop: copies between turns, counters, what is updated in place."""

from __future__ import annotations

from dataclasses import replace

from aot_model.ir.graph import Graph, Node, subgraphs
from aot_model.ir.program import Access, Buffer, Call, Function, Param, Step, walk_calls
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.kernels.site import Site


def copy_step(
    site: Site, source: Buffer, target: Buffer, counter: Buffer | None = None, room: int | None = None
) -> Call:
    """Copy a buffer; with a counter, to element number *counter of a larger one, with `room` only while it is
    below that.
    """
    t = source.type
    params = [
        Param("x", t.dtype, Access.READ),
        *([Param("turn", DType.INT64, Access.READ)] if counter else []),
        Param("y", t.dtype, Access.WRITE),
    ]
    lines = [f"memcpy({f'y + *turn * {t.elements}' if counter else 'y'}, x, {t.nbytes}u);"]
    if not t.nbytes:
        lines = [f"(void){p.name};" for p in params]
    elif room is not None:
        lines = [f"if (*turn < {room}) {{", f"    {lines[0]}", "}"]
    arguments = (source, *([counter] if counter else []), target)
    function = Function(
        "copy", tuple(params), "\n".join(f"    {line}" for line in lines), frozenset({"string.h"})
    )
    return Call(function, arguments, (), site.node.name, site.node.kind, 0, f"{t} -> {target.type}")


def clear_step(site: Site, stack: Buffer, shape: Buffer) -> Call:
    """No results yet: zeros, and a shape that says so."""
    lines = [f"    memset(y, 0, {stack.type.nbytes}u);" if stack.type.nbytes else "    (void)y;"]
    lines += [f"    shape[{k}] = {n};" for k, n in enumerate((0, *stack.type.shape[1:]))]
    params = (Param("y", stack.type.dtype, Access.WRITE), Param("shape", DType.INT32, Access.WRITE))
    function = Function("no_results", params, "\n".join(lines), frozenset({"string.h"}))
    return Call(function, (stack, shape), (), site.node.name, site.node.kind, 0, f"-> {stack.type}")


def count_work(steps: list[Step], turns: int) -> None:
    """What reports say of a body that runs so many times: the work of all turns."""
    for call in walk_calls(steps):
        call.macs *= turns
        if call.generic is not None:
            call.generic = replace(call.generic, operations=call.generic.operations * turns)


def count_step(site: Site, counter: Buffer, shape: Buffer) -> Call:
    """One result more."""
    params = (Param("turn", DType.INT64, Access.READ), Param("shape", DType.INT32, Access.WRITE))
    body = "    shape[0] = *turn < INT32_MAX ? (int32_t)*turn + 1 : INT32_MAX;"
    return Call(
        Function("count_results", params, body),
        (counter, shape),
        (),
        site.node.name,
        site.node.kind,
        0,
        f"-> {shape.type}",
    )


def is_read(value: Value, nodes: list[Node]) -> bool:
    """Whether nodes, or bodies inside of them, read a value."""
    inner = (body for node in nodes for body in subgraphs(node))
    return any(value in node.inputs for node in nodes) or any(
        value in body.outputs or is_read(value, body.nodes) for body in inner
    )


def updated_in_place(body: Graph, carried: int) -> list[int]:
    """Which of the values that a body carries are the same memory before and after a turn: an operator that
    writes its result over its first input is the only one that reads the value. A list to which each turn
    adds an element is copied as a whole in every turn otherwise.
    """
    producers = body.producers()
    places = []
    for k, (old, new) in enumerate(
        zip(body.inputs[2 : 2 + carried], body.outputs[1 : 1 + carried], strict=True)
    ):
        node = producers.get(new)
        if (
            node is not None
            and node.op.updates
            and node.inputs[0] is old
            and node.inputs.count(old) == 1
            and body.outputs.count(new) == 1
            and not is_read(old, [n for n in body.nodes if n is not node])
            and old not in body.outputs
        ):
            places.append(k)
    return places
