"""TFLite: resource variables, and operators that run other sub-graphs."""

from __future__ import annotations

from aot_model.frontends.tflite_conversion import Conversion, rule
from aot_model.frontends.tflite_variables import Key
from aot_model.ir.graph import Graph, Node
from aot_model.ir.operator import OperatorError
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.control import If, Loop
from aot_model.ops.elementwise import op
from aot_model.ops.registry import Build
from aot_model.ops.views import ReshapeTo


@rule("VAR_HANDLE")
def var_handle(n: Conversion) -> Value:
    """The handle is a placeholder; what matters is the variable's name."""
    container, name = (
        (n.operator.options.get("VarHandleOptions", k) or b"") for k in ("Container", "SharedName")
    )
    handle = n.constant(0, DType.INT32)
    n.variables.handles[handle] = (container, name)
    return handle


def _variable(n: Conversion) -> tuple[Key, str]:
    found = n.variables.handles.get(n.x(0))
    if found is None:
        raise OperatorError("the first input is not the handle of a variable")
    return ("resource", found), found[1].decode("utf-8", "replace") or "variable"


@rule("READ_VARIABLE")
def read_variable(n: Conversion) -> Value:
    key, name = _variable(n)
    return n.variables.read(key, name, n.out())


@rule("ASSIGN_VARIABLE")
def assign_variable(n: Conversion) -> list[Value]:
    key, name = _variable(n)
    n.variables.assign(key, name, n.x(1))
    return []


@rule("CALL_ONCE")
def call_once(n: Conversion) -> list[Value]:
    """Initial values of variables."""
    n.host.once(int(n.operator.options.get("CallOnceOptions", "InitSubgraphIndex")))
    return []


def _values(n: Conversion, first: int) -> list[Value]:
    return [n.x(k) for k in range(first, len(n.inputs))]


@rule("STABLEHLO_COMPOSITE", "CALL")
def call(n: Conversion) -> list[Value]:
    """The operators of a sub-graph in the place of this one: a composite is its decomposition."""
    options, name = (
        ("CallOptions", "Subgraph")
        if n.operator.kind == "CALL"
        else ("StableHLOCompositeOptions", "DecompositionSubgraphIndex")
    )
    made = n.host.body(int(n.operator.options.get(options, name)), _values(n, 0))
    n.build.nodes += made.nodes
    return list(made.outputs)


@rule("IF")
def if_(n: Conversion) -> list[Value]:
    """The branches read the values around them."""
    names = ("ThenSubgraphIndex", "ElseSubgraphIndex")
    bodies = [n.host.body(int(n.operator.options.get("IfOptions", name)), _values(n, 1)) for name in names]
    return n.build.many(If(*bodies), n.reshape(n.x(0), ()))


@rule("WHILE")
def while_(n: Conversion) -> list[Value]:
    """A loop without a limit; its condition is computed before it and at the end of each turn."""
    again, turn = (
        int(n.operator.options.get("WhileOptions", name))
        for name in ("CondSubgraphIndex", "BodySubgraphIndex")
    )
    start = _values(n, 0)
    first = _condition(n, again, start, n.build.nodes)
    label = n.build.prefix
    kept = _passed_on(n, turn)
    inside = [
        v if k in kept else Value(f"{label}.{v.name}", v.type, quantisation=v.quantisation)
        for k, v in enumerate(start)
    ]
    counter, goes_on = (
        Value(f"{label}.turn", TensorType(DType.INT64, ())),
        Value(f"{label}.again", TensorType(DType.BOOL, ())),
    )
    body = n.host.body(turn, inside)
    if len(body.outputs) != len(inside):
        raise OperatorError(f"the body gives {len(body.outputs)} values for {len(inside)}")
    changing = [k for k in range(len(start)) if k not in kept]
    body.outputs = [body.outputs[k] for k in changing]
    results = dict(zip(changing, _owned(body), strict=True))
    condition = _condition(n, again, [results.get(k, v) for k, v in enumerate(start)], body.nodes)
    body.inputs = [counter, goes_on, *(inside[k] for k in changing)]
    body.outputs = [condition, *results.values()]
    ends = n.build.many(Loop(body), None, first, *(start[k] for k in changing))
    after = dict(zip(changing, ends, strict=True))
    return [after.get(k, v) for k, v in enumerate(start)]


def _passed_on(n: Conversion, body: int) -> frozenset[int]:
    """Places of what the body of a loop hands on as it is, the sequence that the loop goes along most of all:
    the body reads it from the graph around it, and nothing is copied.
    """
    graph = n.host.file.body(body)
    if graph is None:
        return frozenset()
    written = {i for o in graph.operators for i in o.outputs}
    both = enumerate(zip(graph.inputs, graph.outputs, strict=False))
    return frozenset(
        k
        for k, (given, made) in both
        if given == made and given not in written and graph.inputs.count(given) == 1 and k < len(n.inputs)
    )


def _condition(n: Conversion, index: int, values: list[Value], nodes: list[Node]) -> Value:
    """One bool, computed by a sub-graph whose operators are added to `nodes`."""
    made = n.host.body(index, values)
    nodes += made.nodes
    if (
        len(made.outputs) != 1
        or made.outputs[0].type.elements != 1
        or made.outputs[0].dtype is not DType.BOOL
    ):
        raise OperatorError(f"sub-graph {index}, a condition, does not give one bool")
    return Build(nodes, f"{n.build.prefix}.condition")(ReshapeTo(()), made.outputs[0])


def _owned(body: Graph) -> list[Value]:
    """The results of a body, each a value of its own: what it only passes on or gives twice is copied."""
    made: set[Value] = set()
    computed = {v for node in body.nodes for v in node.outputs}
    results = []
    for value in body.outputs:
        copied = (
            value
            if value in computed and value not in made
            else Build(body.nodes, value.name)(op("Identity"), value)
        )
        made.add(copied)
        results.append(copied)
    return results
