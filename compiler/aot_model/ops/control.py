"""Control flow: If, Loop and Scan. Bodies are graphs that may read values of the graph around them.

A loop's state lives in the memory of its final value: the initial value is copied there, each turn computes
the next one beside it and copies it back, unless it only updates parts of it. Source: ONNX operator
specification.
"""

from __future__ import annotations

from dataclasses import field
from typing import Any

import numpy as np

from aot_model.ir.graph import Graph, Node
from aot_model.ir.operator import Inputs, Operator, OperatorError, Sample
from aot_model.ir.program import Branch, Buffer, Role, Step
from aot_model.ir.program import Loop as LoopStep
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.kernels.site import Site
from aot_model.ops.loop_steps import clear_step, copy_step, count_step, count_work, is_read, updated_in_place
from aot_model.ops.movement import Gather, Slice, Transpose
from aot_model.ops.registry import OPERATORS, Build, ints, normal_axis, operator, required

ENDLESS = 1 << 62


def _same(values: list[Value], types: list[TensorType], what: str) -> None:
    for value, expected in zip(values, types, strict=True):
        if value.type != expected:
            raise OperatorError(
                f"{what} '{value.name}' is {value.type}, it should be {expected}",
                "E203",
                "shapes must be the same on every path",
            )


@operator("If", stores_itself=True, strings=True)
class If(Operator):
    """The outputs of one of two bodies."""

    then_branch: Graph = field(default_factory=lambda: Graph("then"))
    else_branch: Graph = field(default_factory=lambda: Graph("else"))

    def infer(self, inputs: Inputs) -> list[TensorType]:
        if required(inputs).type.elements != 1 or required(inputs).dtype is not DType.BOOL:
            raise OperatorError(f"the condition is {required(inputs).type}, it should be one bool")
        types = [v.type for v in self.then_branch.outputs]
        if len(types) != len(self.else_branch.outputs):
            raise OperatorError(
                "the branches have different numbers of outputs", "E203", "make the condition a constant"
            )
        _same(self.else_branch.outputs, types, "the other branch's output")
        return types

    def lower(self, site: Site) -> None:
        targets = [site.buffer(v) for v in site.node.outputs]
        chosen = site.input(0).data
        if chosen is not None:  # known only since constants were folded: the other branch is not there
            for step in site.body(self.then_branch if chosen.all() else self.else_branch, {}, targets):
                site.add(step)
            return
        condition = site.buffer(site.input(0))
        then, otherwise = (site.body(g, {}, targets) for g in (self.then_branch, self.else_branch))
        site.add(Branch(condition, then, otherwise))

    @classmethod
    def samples(cls) -> list[Sample]:
        x = Value("x", TensorType(DType.FLOAT32, (2, 3)), np.arange(6, dtype=np.float32).reshape(2, 3))
        graphs = []
        for name, function in (("then", "Neg"), ("else", "Exp")):
            graph = Graph(name)
            build = Build(graph.nodes, name)
            graph.outputs = [build(OPERATORS["", function](), x), build(OPERATORS["", "Add"](), x, x)]
            graphs.append(graph)
        given = {"then_branch": graphs[0], "else_branch": graphs[1]}
        return [Sample((np.asarray(c),), given, outputs=2) for c in (True, False)]


def _condition(inputs: Inputs) -> Value | None:
    """Of a loop: the frontend drops what is left out at the end."""
    return inputs[1] if len(inputs) > 1 else None


@operator("Loop", stores_itself=True, strings=True)
class Loop(Operator):
    """The body again and again; values it carries, and results of every turn stacked.

    Inputs: number of turns, condition, initial values. Body: (turn, condition, values) -> (condition, values,
    results).
    """

    body: Graph = field(default_factory=lambda: Graph("body"))
    most: int | None = None
    """Results that there is room for where the number of turns is known at run time only; as many as there
    are turns at most, when that is known."""
    open: bool | None = None
    """The number of turns was not known when results got their shapes, whatever is a constant later."""

    def sized_by_data(self, inputs: Inputs) -> dict[int, int]:
        return (
            dict.fromkeys(range(len(inputs[2:]), len(self.body.outputs) - 1), 0)
            if self.turns(inputs) is None
            else {}
        )

    def turns(self, inputs: Inputs) -> int | None:
        """The number of turns where it is known."""
        if self.open:
            return None
        limit, condition = inputs[0], _condition(inputs)
        first = condition is None or (condition.data is not None and bool(condition.data.reshape(-1)[0]))
        if condition is not None and condition.data is not None and not first:
            return 0
        again, producers = self.body.outputs[0], self.body.producers()
        while again in producers and producers[again].kind == "Identity":
            again = required(producers[again].inputs)
        goes_on = (again.data is not None and bool(again.data.reshape(-1)[0])) or again is self.body.inputs[1]
        if limit is None or limit.data is None or not first or not goes_on:
            return None
        return max(ints(limit.data)[0], 0)

    def _room(self, inputs: Inputs) -> int | None:
        """The number of results that there is memory for; None where there is no bound."""
        turns, limit = self.turns(inputs), inputs[0]
        most = max(ints(limit.data)[0], 0) if limit is not None and limit.data is not None else None
        return turns if turns is not None else self.most if self.most is not None else most

    def infer(self, inputs: Inputs) -> list[TensorType]:
        carried = [required(inputs, k) for k in range(2, len(inputs))]
        types = [v.type for v in carried]
        n = len(carried)
        if len(self.body.inputs) != n + 2 or len(self.body.outputs) < n + 1:
            raise OperatorError(
                f"the body takes {len(self.body.inputs)} values and gives {len(self.body.outputs)}, for {n} "
                "that are carried"
            )
        _same(self.body.outputs[1 : n + 1], types, "a value carried from turn to turn")
        one = (
            (inputs[0], DType.INT64, "number of turns"),
            (_condition(inputs), DType.BOOL, "condition"),
            (self.body.outputs[0], DType.BOOL, "condition of the body"),
        )
        for value, dtype, what in one:
            if value is not None and (value.dtype is not dtype or value.type.elements != 1):
                raise OperatorError(f"the {what} is {value.type}, it should be one {dtype.label}")
        results = self.body.outputs[n + 1 :]
        turns, room = self.turns(inputs), self._room(inputs)
        if results and room is None:
            raise OperatorError(
                "the number of turns is not known at compile time, and every turn has results",
                "E203",
                "give a bound: --bound OUTPUT=N",
            )
        shapes = [TensorType(DType.INT32, (v.type.rank + 1,)) for v in results] if turns is None else []
        return [*types, *(TensorType(v.dtype, (room or 0, *v.shape)) for v in results), *shapes]

    def lower(self, site: Site) -> None:
        inputs, n = site.node.inputs, len(site.node.inputs[2:])
        turns = self.turns(inputs)
        states = [site.buffer(v) for v in site.node.outputs[:n]]
        results = self.body.outputs[n + 1 :]
        stacks = [site.buffer(v) for v in site.node.outputs[n : n + len(results)]]
        shapes = [site.buffer(v) for v in site.node.outputs[n + len(results) :]]
        for k, state in enumerate(states):
            site.add(copy_step(site, site.buffer(required(inputs, 2 + k)), state))
        counter = Buffer(f"{site.node.name}.turn", TensorType(DType.INT64, ()), Role.WORKSPACE, align=8)
        condition = None
        inside = self.body.inputs[1]
        if turns is None or inside in self.body.outputs[1:] or is_read(inside, self.body.nodes):
            condition = Buffer(
                f"{site.node.name}.condition", TensorType(DType.BOOL, ()), Role.WORKSPACE, align=1
            )
            always = Value("always", TensorType(DType.BOOL, ()), np.asarray(True))
            site.add(copy_step(site, site.buffer(_condition(inputs) or always), condition))
        if turns is None:
            for stack, shape in zip(stacks, shapes, strict=True):
                site.add(clear_step(site, stack, shape))
        bindings = dict(zip(self.body.inputs, [counter, condition or counter, *states], strict=True))
        nexts = [Buffer(f"{v.name}.next", v.type, Role.WORKSPACE) for v in self.body.outputs]
        for k in updated_in_place(self.body, n):
            nexts[1 + k] = states[k]
        steps: list[Step] = site.body(self.body, bindings, nexts, skip=0 if turns is not None else None)
        if turns is None and condition is not None:
            steps.append(copy_step(site, nexts[0], condition))
        pairs = zip(nexts[1 : n + 1], states, strict=True)
        steps += [copy_step(site, new, old) for new, old in pairs if new is not old]
        room = None if turns is not None else self._room(inputs)
        steps += [
            copy_step(site, new, stack, counter, room)
            for new, stack in zip(nexts[n + 1 :], stacks, strict=True)
        ]
        steps += [count_step(site, counter, shape) for shape in shapes]
        limit = inputs[0]
        fixed = (
            turns
            if turns is not None
            else max(ints(limit.data)[0], 0)
            if limit is not None and limit.data is not None
            else ENDLESS
        )
        limit_from = site.buffer(limit) if limit is not None and limit.data is None else None
        if turns is not None:
            count_work(steps, turns)
        decides = condition if turns is None else None
        site.add(LoopStep(steps, fixed, limit_from, decides, counter, (*stacks, *shapes)))

    @classmethod
    def samples(cls) -> list[Sample]:
        turn, again, x = (
            Value("turn", TensorType(DType.INT64, ())),
            Value("again", TensorType(DType.BOOL, ())),
            Value("x", TensorType(DType.FLOAT32, (2, 3))),
        )
        graph = Graph("body", [turn, again, x])
        build = Build(graph.nodes, "body")
        more = build(
            OPERATORS["", "Add"](),
            x,
            build(
                OPERATORS["", "Cast"](to=DType.FLOAT32),  # type: ignore[call-arg]
                turn,
            ),
        )
        goes_on = build(
            OPERATORS["", "Less"](),
            build(OPERATORS["", "ReduceMax"](keepdims=0), more),  # type: ignore[call-arg]
            build.constant(9, DType.FLOAT32),
        )
        turned = build(OPERATORS["", "Where"](), again, build(OPERATORS["", "Neg"](), x), x)
        graph.outputs = [build(OPERATORS["", "Identity"](), again), more, turned]
        until = Graph("until", graph.inputs, [goes_on, *graph.outputs[1:]], graph.nodes)
        stateless = Graph("stateless", graph.inputs[:2])
        of_turn = Build(stateless.nodes, "stateless")
        stateless.outputs = [again, of_turn(OPERATORS["", "Neg"](), turn)]
        endless = Graph("endless", graph.inputs, [goes_on, more], graph.nodes)
        start, four = np.arange(6, dtype=np.float32).reshape(2, 3), np.asarray(4, np.int64)
        fixed, yes, no = frozenset({0, 1}), np.asarray(True), np.asarray(False)
        return [
            Sample((four, yes, start), {"body": graph}, fixed, 2),
            Sample((four, None, start), {"body": graph}, fixed, 2),
            Sample((four, yes, start), {"body": until}, fixed, 2),
            Sample((four, no, start), {"body": until}, frozenset({0}), 2),
            Sample((four + 3, yes, start), {"body": until}, frozenset({0}), 2),
            Sample((four, no, start), {"body": graph}, frozenset({0}), 2),
            Sample((None, yes, start), {"body": endless}),
            Sample((None, no, start), {"body": endless}, frozenset({1})),
            # fewer turns than none are none
            Sample((four - 7, yes, start), {"body": graph}, fixed, 2),
            Sample((four - 7, yes, start), {"body": until}, frozenset({0}), 2),
            Sample((np.asarray(-(2**63), np.int64), yes, start), {"body": until}, frozenset({0}), 2),
            Sample((four, None), {"body": stateless}, frozenset({0})),
        ]


def _ways(
    ranks: list[int], axes: tuple[int, ...] | None, directions: tuple[int, ...] | None, what: str
) -> list[tuple[int, int]]:
    """The axis of each sequence, counted from the front, and whether it runs from the end."""
    some = tuple(0 for _ in ranks)
    axes, directions = axes or some, directions or some
    if not len(axes) == len(directions) == len(ranks) or not {*directions} <= {0, 1}:
        raise OperatorError(
            f"{len(ranks)} sequences with scan_{what}_axes {list(axes)} and scan_{what}_directions "
            f"{list(directions)}: one of each, 0 or 1 for a direction"
        )
    return [(normal_axis(a, rank), d) for a, rank, d in zip(axes, ranks, directions, strict=True)]


@operator("Scan", strings=True)
class Scan(Operator):
    """A loop over slices of sequences: it becomes a Loop whose body takes its slices itself."""

    body: Graph = field(default_factory=lambda: Graph("body"))
    num_scan_inputs: int = 0
    scan_input_axes: tuple[int, ...] | None = None
    scan_input_directions: tuple[int, ...] | None = None
    scan_output_axes: tuple[int, ...] | None = None
    scan_output_directions: tuple[int, ...] | None = None

    def _parts(self, inputs: Inputs) -> tuple[list[Value], list[tuple[Value, int, int]], int]:
        """(states, (sequence, axis, direction) each, number of turns)."""
        values = [required(inputs, k) for k in range(len(inputs))]
        count = self.num_scan_inputs
        sequences = values[len(values) - count :]
        if not 0 <= count <= len(values):
            raise OperatorError(f"{count} of {len(values)} inputs are scanned")
        ways = _ways(
            [v.type.rank for v in sequences], self.scan_input_axes, self.scan_input_directions, "input"
        )
        found = [(v, a, d) for v, (a, d) in zip(sequences, ways, strict=True)]
        lengths = {v.shape[a] for v, a, _ in found}
        if len(lengths) != 1:
            raise OperatorError(f"the sequences have different lengths {sorted(lengths)}")
        return values[: len(values) - count], found, lengths.pop()

    def infer(self, inputs: Inputs) -> list[TensorType]:
        states, _, turns = self._parts(inputs)
        n = len(states)
        _same(self.body.outputs[:n], [v.type for v in states], "a value carried from turn to turn")
        types = [v.type for v in states]
        for v, (axis, _) in zip(self.body.outputs[n:], self._results(n), strict=True):
            types.append(TensorType(v.dtype, (*v.shape[:axis], turns, *v.shape[axis:])))
        return types

    def _results(self, states: int) -> list[tuple[int, int]]:
        """The axis and the direction of each output that the body's results are stacked in."""
        ranks = [v.type.rank + 1 for v in self.body.outputs[states:]]
        return _ways(ranks, self.scan_output_axes, self.scan_output_directions, "output")

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        states, sequences, turns = self._parts(inputs)
        n = len(states)
        turn = Value(f"{build.prefix}.turn", TensorType(DType.INT64, ()))
        again = Value(f"{build.prefix}.again", TensorType(DType.BOOL, ()))
        nodes: list[Node] = []
        inner = Build(nodes, f"{build.prefix}.slice")
        body = Graph(self.body.name, [turn, again, *self.body.inputs[:n]], [again, *self.body.outputs])
        from aot_model.ops.elementwise import op

        for (sequence, axis, direction), formal in zip(sequences, self.body.inputs[n:], strict=True):
            place = inner(op("Sub"), inner.constant(turns - 1, DType.INT64), turn) if direction else turn
            piece = Value(formal.name, formal.type)
            nodes.append(Node(Gather(axis), [sequence, place], [piece], build.prefix))
            body.nodes = self.body.nodes
            body.replace(formal, piece)
        body.nodes = [*nodes, *self.body.nodes]
        results = build.many(Loop(body), build.constant(turns, DType.INT64), None, *states)
        final = results[:n]
        for stack, (axis, direction) in zip(results[n:], self._results(n), strict=True):
            if direction:
                ends = [build.constant([v], DType.INT64) for v in (-1, -(1 << 62), 0, -1)]
                stack = build(Slice(), stack, *ends)
            perm = [d for d in range(stack.type.rank) if d != 0]
            perm.insert(axis, 0)
            final.append(build(Transpose(tuple(perm)), stack) if axis else stack)
        return final

    @classmethod
    def samples(cls) -> list[Sample]:
        total, item = (
            Value("total", TensorType(DType.FLOAT32, (3,))),
            Value("item", TensorType(DType.FLOAT32, (3,))),
        )
        graph = Graph("body", [total, item])
        build = Build(graph.nodes, "body")
        new = build(OPERATORS["", "Add"](), total, item)
        graph.outputs = [new, build(OPERATORS["", "Mul"](), new, item)]
        start, items = np.zeros(3, np.float32), np.arange(12, dtype=np.float32).reshape(4, 3)
        given: dict[str, Any] = {"body": graph, "num_scan_inputs": 1}
        more: list[dict[str, Any]] = [
            {},
            {"scan_input_directions": (1,)},
            {"scan_output_directions": (1,)},
            {"scan_output_axes": (1,)},
            {"scan_output_axes": (-1,), "scan_output_directions": (1,)},
        ]
        return [
            *(Sample((start, items), {**given, **m}, outputs=2) for m in more),
            Sample((start, items.T.copy()), {**given, "scan_input_axes": (1,)}, outputs=2),
            *cls._two_of_each(),
        ]

    @staticmethod
    def _two_of_each() -> list[Sample]:
        """Two states, two sequences and two results, each with an axis and a direction of its own."""
        shapes = {"total": (2, 3), "last": (3,), "item": (2, 3), "row": (3,)}
        formals = {k: Value(k, TensorType(DType.FLOAT32, shape)) for k, shape in shapes.items()}
        graph = Graph("body", list(formals.values()))
        build = Build(graph.nodes, "body")
        total, last, item, row = formals.values()
        new = build(OPERATORS["", "Add"](), total, item)
        both = build(OPERATORS["", "Sub"](), new, last)
        graph.outputs = [
            new,
            build(OPERATORS["", "Neg"](), row),
            both,
            build(OPERATORS["", "Mul"](), row, last),
        ]
        rng = np.random.default_rng(3)
        whole = [rng.integers(-9, 10, s).astype(np.float32) for s in ((2, 3), (3,), (2, 5, 3), (3, 5))]
        given: dict[str, Any] = {"body": graph, "num_scan_inputs": 2, "scan_input_axes": (1, -1)}
        forms: list[dict[str, Any]] = [
            {"scan_input_directions": (0, 1), "scan_output_axes": (2, 1), "scan_output_directions": (1, 0)},
            {"scan_input_directions": (1, 0), "scan_output_axes": (-2, 0), "scan_output_directions": (0, 1)},
        ]
        return [Sample(tuple(whole), {**given, **form}, outputs=4) for form in forms]
