"""What of an ONNX model is structure rather than computation: branches and loops, beside the sequences and
optionals of onnx_sequences.py.

A branch whose condition is known is imported alone. A loop whose number of turns is known is unrolled where
its values change shape or are sequences.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np
import onnx
import onnx.helper

from aot_model.c.names import printable
from aot_model.errors import Problem
from aot_model.frontends.onnx_rows import Sizes
from aot_model.ir.graph import Graph
from aot_model.ir.operator import OperatorError
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value, constant
from aot_model.ops.control import Scan
from aot_model.ops.dynamic import NonZero, NonZeroRows
from aot_model.ops.elementwise import op
from aot_model.ops.movement import Concat, Gather
from aot_model.ops.registry import Build, ints, normal_axis, static
from aot_model.ops.views import Unsqueeze


class Importer(Protocol):
    """What imports the graphs around and in a node: frontends/onnx.py."""

    problems: list[Problem]
    notes: list[str]
    sizes: Sizes

    def version(self, domain: str) -> int: ...

    def inline(self, source: onnx.GraphProto, graph: Graph, scope: Scope, prefix: str = "") -> list[Any]: ...

    def attributes(self, place: Any) -> dict[str, Any]: ...


MAX_UNROLLED = 20000
"""Nodes that unrolling a loop may make."""
MAX_NESTED = 8
"""Loops inside of each other: each is tried before it is imported, with all that are inside of it."""


@dataclass(frozen=True)
class Items:
    """A sequence, or an optional (none or one item)."""

    values: tuple[Value, ...]


Scope = dict[str, Any]
Inputs = list[Any]


@dataclass(frozen=True)
class Place:
    """A node that is being imported."""

    importer: Importer
    proto: onnx.NodeProto
    graph: Graph
    scope: Scope
    inputs: Inputs

    @property
    def build(self) -> Build:
        return Build(
            self.graph.nodes,
            self.proto.name or (self.proto.output[0] if self.proto.output else self.proto.op_type),
        )

    def attribute(self, name: str) -> Any:
        """Value of an attribute; None when absent."""
        return next(
            (onnx.helper.get_attribute_value(a) for a in self.proto.attribute if a.name == name), None
        )

    def input(self, index: int) -> Any:
        return self.inputs[index] if index < len(self.inputs) else None

    def items(self, index: int = 0) -> tuple[Value, ...]:
        found = self.input(index)
        if not isinstance(found, Items):
            raise OperatorError(f"input {index} is not a sequence")
        return found.values

    def number(self, index: int, what: str) -> int | None:
        """A constant input of one integer."""
        data = static(self.inputs, index, what)
        return None if data is None or data.size == 0 else ints(data)[0]

    def set(self, *results: Any) -> None:
        self.scope.update({n: r for n, r in zip(self.proto.output, results, strict=False) if n})


Handler = Callable[[Place], bool]
"""Imports a node; False where the general way will do."""


def _if(place: Place) -> bool:
    condition = place.input(0)
    if not isinstance(condition, Value):
        return False
    if condition.data is None:
        return _if_any(place, condition)
    body = place.attribute("then_branch" if bool(condition.data.reshape(-1)[0]) else "else_branch")
    place.set(*place.importer.inline(body, place.graph, dict(place.scope)))
    return True


def _if_any(place: Place, condition: Value) -> bool:
    """Nothing in one case, in the other rows whose number depends on data, as batched_nms() of torchvision
    has it: these, as many as there are or none.
    """
    branches = [place.attribute(f"{name}_branch") for name in ("then", "else")]
    empty = [len(b.node) == 1 and _no_rows(b.node[0]) for b in branches]
    if len(place.proto.output) != 1 or sum(empty) != 1:
        return False
    sizes, build = place.importer.sizes, place.build
    found = place.importer.inline(branches[empty[0]], place.graph, dict(place.scope))
    if place.importer.problems:
        return True
    (rows,) = found
    if rows not in sizes.counts:
        raise OperatorError("its branches give results of different shapes", "E203")
    none = build.constant([0], DType.INT32)
    way = (none, sizes.counts[rows]) if empty[0] else (sizes.counts[rows], none)
    y = build(op("Identity"), rows, output=place.proto.output[0])
    is_then = build(op("Reshape"), condition, build.constant((), DType.INT64))
    sizes.add_rows([y], build(op("Where"), is_then, *way), 0, build)
    place.set(y)
    return True


def _no_rows(proto: onnx.NodeProto) -> bool:
    return proto.op_type == "Constant" and any(
        a.name == "value" and a.t.dims[:1] == [0] for a in proto.attribute
    )


def _loop(place: Place) -> bool:
    body: onnx.GraphProto = place.attribute("body")
    limit, condition, carried = place.input(0), place.input(1), place.inputs[2:]
    structural = any(isinstance(v, Items) for v in carried)
    if _loops(body) >= MAX_NESTED:
        raise OperatorError(f"loops are nested more than {MAX_NESTED} deep", "E202")
    if not structural and not _changes(place, body, carried):
        return False
    unknown = OperatorError(
        "values change shape from turn to turn, and the number of turns is not known", "E203"
    )
    known = [v is None or v.data is not None for v in (limit, condition)]
    if not all(known):
        raise unknown
    room = MAX_UNROLLED // max(len(body.node), 1)
    most = room + 1 if limit is None else max(ints(limit.data)[0], 0)
    turns = most if condition is None or bool(condition.data.reshape(-1)[0]) else 0
    if limit is not None and turns > room:
        raise OperatorError(f"{turns} turns are too many to unroll", "E202")
    stacks: list[list[Value]] = [[] for _ in body.output[1 + len(carried) :]]
    build = place.build
    if not turns and stacks:  # what there is none of, one turn says
        with _trial(place.importer) as trial:
            results = _turn(place, body, trial, 0, carried)
        stacks = [[constant("none", np.zeros((0, *v.shape), v.dtype.numpy))] for v in results[-len(stacks) :]]
    for turn in range(turns):
        if turn == room:
            raise OperatorError(f"more than {room} turns are too many to unroll", "E202")
        results = _turn(place, body, place.graph, turn, carried)
        if place.importer.problems:
            return True
        carried = results[1 : 1 + len(carried)]
        for stack, value in zip(stacks, results[1 + len(carried) :], strict=True):
            stack.append(build(Unsqueeze(), value, build.constant([0], DType.INT64)))
        again = results[0]
        if not isinstance(again, Value) or again.data is None:
            raise unknown
        if not bool(again.data.reshape(-1)[0]):
            break
    place.set(*carried, *(build(Concat(0), *s) for s in stacks))
    return True


def _turn(place: Place, body: onnx.GraphProto, graph: Graph, turn: int, carried: Inputs) -> list[Any]:
    """One turn of a loop, put into a graph: the results of the body."""
    values = [constant("turn", np.asarray(turn, np.int64)), constant("again", np.asarray(True)), *carried]
    scope = place.scope | {i.name: v for i, v in zip(body.input, values, strict=True)}
    return place.importer.inline(body, graph, scope, f"turn{turn}")


def _loops(body: onnx.GraphProto) -> int:
    """How deep loops are nested in a body."""
    inner = [(n.op_type == "Loop", _loops(a.g)) for n in body.node for a in n.attribute if a.HasField("g")]
    return max((is_loop + n for is_loop, n in inner), default=0)


def _changes(place: Place, body: onnx.GraphProto, carried: Inputs) -> bool:
    """Whether a turn changes the types of what it carries."""
    importer = place.importer
    before = list(importer.problems)
    scope = place.scope | {v.name: v for v in loop_formals(body, carried)}
    try:
        with _trial(importer) as trial:
            results = importer.inline(body, trial, scope)
        count = len(carried)
        after = [v.type if isinstance(v, Value) else None for v in results[1 : 1 + count]]
        return bool(importer.problems != before) or after != [v.type for v in carried]
    finally:
        importer.problems[:] = before


@contextmanager
def _trial(importer: Importer) -> Iterator[Graph]:
    """A graph that is thrown away, with all that is noted meanwhile but problems."""
    notes, bounds = list(importer.notes), dict(importer.sizes.bounds)
    with importer.sizes.inside():
        yield Graph("trial")
    importer.notes[:], importer.sizes.bounds = notes, bounds


NEVER_TAKEN = (
    "a branch that is never taken is left out where its condition is known: make the input that decides it a "
    "constant (--constant INPUT=VALUE)"
)


def formals(place: Place, body: onnx.GraphProto) -> list[Value]:
    """The inputs of the body of a loop or a scan; a branch has none."""
    if place.proto.op_type == "Loop":
        return loop_formals(body, place.inputs[2:])
    return scan_formals(place, body) if place.proto.op_type == "Scan" else []


def loop_formals(body: onnx.GraphProto, carried: Inputs) -> list[Value]:
    """The inputs of a loop's body: turn, condition, carried values."""
    types = [TensorType(DType.INT64, ()), TensorType(DType.BOOL, ()), *(v.type for v in carried)]
    return [Value(i.name, t) for i, t in zip(body.input, types, strict=True)]


def scan_formals(place: Place, body: onnx.GraphProto) -> list[Value]:
    """The inputs of a scan's body: states, then slices."""
    count = int(place.attribute("num_scan_inputs"))
    if len(place.inputs) != len(body.input):
        raise OperatorError(f"the body takes {len(body.input)} values, not {len(place.inputs)}")
    states = place.inputs[: len(place.inputs) - count]
    axes = place.attribute("scan_input_axes") or [0] * count
    types = [v.type for v in states]
    for value, axis in zip(place.inputs[len(states) :], axes, strict=True):
        a = normal_axis(axis, value.type.rank)
        types.append(TensorType(value.dtype, value.shape[:a] + value.shape[a + 1 :]))
    return [Value(i.name, t) for i, t in zip(body.input, types, strict=True)]


def _scan(place: Place) -> bool:
    """Opset 8: one scan for each element of the batch, which is the first axis of everything. Later forms
    have no batch.
    """
    if place.importer.version("") > 8:
        return False
    if place.input(0) is not None:
        raise OperatorError(
            "sequences of different lengths in a batch are not supported",
            "E202",
            "convert the model to opset 9 or later",
        )
    build, values = place.build, place.inputs[1:]
    results: list[list[Value]] = []
    for k in range(values[0].shape[0]):
        one = replace(place, inputs=[build(Gather(), v, build.constant(k, DType.INT64)) for v in values])
        attributes = place.importer.attributes(one)
        scan = Scan(
            attributes["body"],
            attributes["num_scan_inputs"],
            scan_input_directions=attributes.get("directions"),
        )
        results.append(
            [build(Unsqueeze(), v, build.constant([0], DType.INT64)) for v in build.many(scan, *one.inputs)]
        )
    place.set(*(build(Concat(0), *column) for column in zip(*results, strict=True)))
    return True


def _transpose(place: Place) -> bool:
    """Of NonZero: its indices in rows, which operators can go on with."""
    x, perm = place.input(0), place.attribute("perm")
    node = next((n for n in place.graph.nodes if x in n.outputs), None)
    if node is None or not isinstance(node.op, NonZero) or list(perm or (1, 0)) != [1, 0]:
        return False
    name, build = place.proto.output[0], place.build
    rows, shape = build.many(NonZeroRows(), *node.inputs, outputs=(name, f"{name}.shape"))
    place.importer.sizes.add(rows, shape, 0, place.graph.nodes[-1], build)
    place.set(rows)
    return True


def _zip_map(place: Place) -> bool:
    """Scores of classes as maps, one for each sample, are the last thing that exporters of scikit-learn add:
    the tensor stays.
    """
    x, name = place.input(0), place.proto.output[0]
    classes = place.attribute("classlabels_strings") or place.attribute("classlabels_int64s") or ()
    if not isinstance(x, Value) or not x.shape or len(classes) != x.shape[-1]:
        raise OperatorError(
            f"{len(classes)} keys do not fit {x.type if isinstance(x, Value) else 'a sequence'}"
        )
    keys = [k.decode("utf-8", "replace") if isinstance(k, bytes) else str(k) for k in classes]
    listed = ", ".join(map(printable, keys[:8])) + (f" and {len(keys) - 8} more" if len(keys) > 8 else "")
    place.importer.notes.append(
        f"'{printable(name)}' is a tensor instead of maps (ZipMap); its columns are {listed}"
    )
    place.set(place.build(op("Identity"), x, output=name))
    return True


STRUCTURES: dict[str, Handler] = {
    "ai.onnx.ml.ZipMap": _zip_map,
    "If": _if,
    "Loop": _loop,
    "Scan": _scan,
    "Transpose": _transpose,
}
