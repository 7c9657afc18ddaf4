"""The rows of the conformance suite: every sample of every operator in the registry, as a model of one node.

An operator that ONNX or ONNX Runtime has is a node of an ONNX file; one of our own is a graph, as frontends
make it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np
import onnx
import onnx.defs
from onnx import helper, numpy_helper

from aot_model.ir.graph import Graph, Node
from aot_model.ir.operator import Operator, OperatorError, Sample
from aot_model.ir.strings import DEFAULT_WIDTH, decoded, encoded, is_text, string_type
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value, constant
from aot_model.ops import experimental
from aot_model.ops.registry import OPERATORS, Build, load_all
from aot_model.passes.manager import run_passes
from aot_model.targets.registry import parse_target
from batch import Case

load_all()
OPSET = min(onnx.defs.onnx_opset_version(), 23)
VERSIONS = {"": OPSET, "ai.onnx.ml": 5}
"""Newest version of a domain that both references know; 1 of the others."""
RUNTIME = "com.microsoft"
"""The domain of ONNX Runtime's own operators, of which onnx has no schema."""


@dataclass(frozen=True)
class Row:
    """One sample of one operator."""

    label: str
    kind: type[Operator]
    number: int
    sample: Sample
    version: int | None = None
    """Of the operators' domain; None for the newest one of the operator."""

    @property
    def operator(self) -> Operator:
        given = self.sample.attributes.items()
        return self.kind(**{k: _slots(v) if isinstance(v, np.ndarray) else v for k, v in given})

    @property
    def has_bodies(self) -> bool:
        """Control flow: its bodies say their own shapes and types."""
        return any(isinstance(v, Graph) for v in self.sample.attributes.values())

    @property
    def in_onnx(self) -> bool:
        return _is_onnx(self.kind)

    @property
    def fed(self) -> tuple[np.ndarray, ...]:
        """The arrays that are inputs of the model."""
        known = self.sample.constants | self.sample.states
        return tuple(
            np.asarray(x) for k, x in enumerate(self.sample.inputs) if x is not None and k not in known
        )

    @property
    def case(self) -> Case:
        model = (
            onnx_model(self)
            if self.in_onnx
            else partial(_registered, self.kind.domain, self.kind.name, self.number)
        )
        return Case(self.label, model, self.fed, runs=2 if self.sample.states else 1)


def _is_onnx(kind: type[Operator]) -> bool:
    return (
        kind.domain == RUNTIME
        or kind.__module__ == experimental.__name__
        or (kind.domain != "aot" and onnx.defs.has(kind.name, kind.domain))
    )


def label_of(kind: type[Operator]) -> str:
    return f"{kind.domain}.{kind.name}" if kind.domain else kind.name


def rows_of(kind: type[Operator]) -> list[Row]:
    return [Row(f"{label_of(kind)}-{k}", kind, k, s) for k, s in enumerate(kind.samples())]


def registry_rows() -> Iterator[Row]:
    for _, kind in sorted(OPERATORS.items()):
        yield from rows_of(kind)


def rows_of_sequences() -> Iterator[Row]:
    """Recurrent layers over sequences of different lengths, forwards and backwards."""
    for name in ("LSTM", "GRU", "RNN"):
        for row in rows_of(OPERATORS["", name]):
            inputs = [*row.sample.inputs, None][: max(len(row.sample.inputs), 5)]
            if inputs[4] is None and len(inputs) >= 5:
                for direction, lengths in (("forward", (0, 5)), ("reverse", (3, 0))):
                    inputs[4] = np.asarray(lengths, np.int32)
                    sample = replace(
                        row.sample,
                        inputs=tuple(inputs),
                        attributes={**row.sample.attributes, "direction": direction},
                    )
                    yield Row(f"{row.label}-lengths-{direction}", row.kind, row.number, sample)


def taken(operator: Operator, *inputs: Any, said: str = "") -> bool:
    """Whether an operator has types for its inputs: arrays are constants, types are not known. said: in the
    error.
    """
    values = [
        None if v is None else constant("c", v) if isinstance(v, np.ndarray) else Value("x", v)
        for v in inputs
    ]
    try:
        operator.infer(list(values))
    except OperatorError as error:
        assert said in str(error)
        return False
    return True


# --- as a graph of ours -------------------------------------------------------------------------------------


def _registered(domain: str, name: str, number: int) -> Graph:
    """The graph of a row, made where it is needed: operators that a table made cannot travel between
    processes.
    """
    return graph(rows_of(OPERATORS[domain, name])[number])


def values_of(row: Row) -> list[Value | None]:
    """The inputs of a sample: constants with their data, states, and what is given at run time."""
    sample = row.sample
    return [
        None
        if x is None
        else _value(f"x{k}", _slots(np.asarray(x)), k in sample.constants, k in sample.states)
        for k, x in enumerate(sample.inputs)
    ]


def graph(row: Row) -> Graph:
    """The operator with inputs and constants; what it stores in a state is read in the run after."""
    values = values_of(row)
    result = Graph("sample", [v for v in values if v is not None and not v.is_const and not v.state])
    build = Build(result.nodes, "node")
    before = [
        build(OPERATORS["", "Identity"](), v, output=f"before_{v.name}")
        for v in values
        if v is not None and v.state
    ]
    operator = row.operator
    sized = operator.sized_by_data(values)
    count = len(operator.infer(values)) - len(sized)
    results = build.many(
        operator, *values, outputs=[*(f"y{k}" for k in range(count)), *(f"y{k}.shape" for k in sized)]
    )
    result.outputs = before if operator.effects else results
    return result


def _value(name: str, array: np.ndarray, is_constant: bool, state: bool) -> Value:
    if is_constant:
        return constant(name, array)
    return Value(
        name, TensorType(DType.of(array.dtype), array.shape), state=state, initial=array if state else None
    )


def _slots(array: np.ndarray) -> np.ndarray:
    return encoded(array, string_type(DEFAULT_WIDTH)) if is_text(array) else array


# --- as ONNX ------------------------------------------------------------------------------------------------


def onnx_model(row: Row) -> onnx.ModelProto:
    """A model of one node, at the row's version or the newest one of the operator."""
    sample, domain, name = row.sample, row.kind.domain, row.kind.name
    version = row.version or last_version(domain, name)
    attributes = {k: _attribute(v) for k, v in sample.attributes.items()}
    names = ["" if x is None else f"x{k}" for k, x in enumerate(sample.inputs)]
    outputs = [f"y{k}" for k in range(sample.outputs)]
    node = helper.make_node(name, names, outputs, domain=domain, name="node", **attributes)
    inputs, constants = [], []
    for k, x in enumerate(sample.inputs):
        if x is None:
            continue
        if k in sample.constants:
            constants.append(numpy_helper.from_array(np.asarray(x), f"x{k}"))
        else:
            inputs.append(
                helper.make_tensor_value_info(
                    f"x{k}", helper.np_dtype_to_tensor_dtype(np.asarray(x).dtype), np.shape(x)
                )
            )
    graph = helper.make_graph(
        [node], "sample", inputs, [onnx.ValueInfoProto(name=o) for o in outputs], constants
    )
    opsets = [helper.make_opsetid("", version if not domain else OPSET)]
    if domain:
        opsets.append(helper.make_opsetid(domain, version))
    return helper.make_model(graph, opset_imports=opsets, ir_version=10)


def last_version(domain: str, name: str) -> int:
    """The newest opset, if there is one not above VERSIONS, in which the operator is and is not
    deprecated.
    """
    newest = VERSIONS.get(domain, 1)
    for version in (*range(newest, 0, -1), *range(newest + 1, onnx.defs.onnx_opset_version() + 1)):
        try:
            if not onnx.defs.get_schema(name, version, domain).deprecated:
                return version
        except onnx.defs.SchemaError:
            pass
    return 1


def _attribute(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return numpy_helper.from_array(value)
    if isinstance(value, Graph):
        return _body(value)
    return helper.np_dtype_to_tensor_dtype(value.numpy) if isinstance(value, DType) else value


def _body(graph: Graph) -> onnx.GraphProto:
    """The body of control flow. It consists of operators of ONNX; what it reads from outside has the name
    that it has there.
    """
    held = {v.name: v for n in graph.nodes for v in n.inputs if v is not None and v.is_const}
    held.update((v.name, v) for v in graph.outputs if v.is_const)
    constants = [numpy_helper.from_array(np.asarray(v.data), name) for name, v in held.items()]
    return helper.make_graph(
        [_node(n) for n in graph.nodes], graph.name, _ports(graph.inputs), _ports(graph.outputs), constants
    )


def _ports(values: Sequence[Value]) -> list[onnx.ValueInfoProto]:
    return [
        helper.make_tensor_value_info(v.name, helper.np_dtype_to_tensor_dtype(v.dtype.numpy), v.shape)
        for v in values
    ]


def _node(node: Node) -> onnx.NodeProto:
    known = onnx.defs.get_schema(node.kind, OPSET, node.op.domain).attributes
    given = {
        f.name: getattr(node.op, f.name)
        for f in fields(node.op)
        if f.name in known and getattr(node.op, f.name) is not None
    }  # type: ignore[arg-type]
    names = ["" if v is None else v.name for v in node.inputs]
    return helper.make_node(
        node.kind,
        names,
        [v.name for v in node.outputs],
        domain=node.op.domain,
        **{k: _attribute(v) for k, v in given.items()},
    )


# --- with nothing but constants -----------------------------------------------------------------------------


def folded(row: Row) -> list[np.ndarray] | None:
    """The outputs that the passes compute when all inputs are constants; None where some are computed at run
    time.
    """
    fresh = rows_of(row.kind)[row.number]  # passes change bodies of control flow in place
    values = [
        None if x is None else constant(f"x{k}", _slots(np.asarray(x)))
        for k, x in enumerate(fresh.sample.inputs)
    ]
    graph, operator = Graph("sample"), fresh.operator
    graph.outputs = Build(graph.nodes, "node").many(operator, *values)
    sized = operator.sized_by_data(values)
    run_passes(graph, parse_target("c"))
    count = fresh.sample.outputs if row.in_onnx else len(graph.outputs) - len(sized)
    arrays = [v.data for v in graph.outputs[:count]]
    if sized or any(a is None for a in arrays):
        return None
    return [decoded(a) if a.dtype.kind == "S" else a for a in arrays if a is not None]


def version_before(row: Row) -> int | None:
    """The last opset with an older version of a row's operator; None where it has none, or the row says one.
    Not of random numbers, which are not those of ONNX Runtime.
    """
    domain, name = row.kind.domain, row.kind.name
    if domain or row.version or name == "Multinomial":
        return None
    newest = last_version(domain, name)
    if not onnx.defs.has(name, newest, domain):
        return None
    before = onnx.defs.get_schema(name, newest, domain).since_version - 1
    return before if before and onnx.defs.has(name, before, domain) else None
