"""TFLite: variables. Each is a state of the graph; what is read after an assignment is the value assigned.

Tensors marked as variables belong to one operator (LSTM, SVDF), and some operators have what no tensor shows;
resource variables are named, and shared by all sub-graphs. States get their new values at the end of a run.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from aot_model.frontends.tflite_tensors import Tensor
from aot_model.ir.graph import Graph, Node
from aot_model.ir.operator import OperatorError
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.elementwise import op
from aot_model.ops.registry import Build, listed
from aot_model.ops.state import Assign

Key = tuple[str, object]


@dataclass
class Variables:
    """The states of a model, and what each holds at this point of the program."""

    states: dict[Key, Value] = field(default_factory=dict)
    current: dict[Key, Value] = field(default_factory=dict)
    initial: dict[Key, np.ndarray] = field(default_factory=dict)
    handles: dict[Value, tuple[bytes, bytes]] = field(default_factory=dict)
    """Placeholders of resource tensors -> (container, name)."""
    starting: bool = False
    """While operators that run once, before the first run, are read."""

    def read(self, key: Key, name: str, tensor: Tensor) -> Value:
        """What a variable holds now."""
        if key in self.current:
            return self.current[key]
        if tensor.dtype is None:
            raise OperatorError(f"variable of type {tensor.kind} is not supported", "E202")
        return self._state(key, name, TensorType(tensor.dtype, tensor.shape), tensor)

    def own(self, key: Key, name: str, initial: np.ndarray) -> Value:
        """What an operator holds now; `initial` before the first run."""
        if key not in self.current:
            self.initial.setdefault(key, initial)
            self._state(key, name, TensorType(DType.of(initial.dtype), initial.shape), None)
        return self.current[key]

    def _state(self, key: Key, name: str, kind: TensorType, tensor: Tensor | None) -> Value:
        if self.starting:
            raise OperatorError("reads a variable before the first run", "E202")
        state = Value(
            name,
            kind,
            quantisation=tensor.quantisation if tensor is not None and tensor.quantisation.scale else None,
            state=True,
        )
        if key in self.initial:
            state.initial = self.initial[key]
            if TensorType(kind.dtype, state.initial.shape) != kind or state.initial.dtype != kind.dtype.numpy:
                raise OperatorError(
                    f"variable '{name}' is {kind}, its initial value {list(state.initial.shape)}"
                )
        elif tensor is not None and tensor.variable and kind.dtype.is_integer and tensor.quantisation.scale:
            # A variable tensor begins with the real number 0.
            state.initial = np.full(kind.shape, tensor.quantisation.zero_point[0], dtype=kind.dtype.numpy)
        self.states[key] = state
        self.current[key] = state
        return state

    def assign(self, key: Key, name: str, value: Value) -> None:
        """Let a variable hold a value from here on."""
        if self.starting:
            if value.data is None:
                raise OperatorError("the initial value of a variable is not constant", "E202")
            self.initial[key] = value.data
            return
        if key not in self.states:
            self._state(key, name, value.type, None)
        if self.states[key].type != value.type:
            raise OperatorError(
                f"variable '{name}' is {self.states[key].type}, the new value is {value.type}"
            )
        self.current[key] = value

    def finish(self, graph: Graph) -> None:
        """Add the assignments to the end of the graph; outputs that are states are copied before.

        A resource variable that gets no value at all has none in LiteRT either, which stops there: weights
        that the converter left in the program that it converted. What a run assigns begins with 0, as in
        TensorFlow Lite Micro.
        """
        unset = [
            state.name
            for key, state in self.states.items()
            if key[0] == "resource" and key not in self.initial and self.current[key] is state
        ]
        if unset:
            raise OperatorError(
                f"nothing gives a value to {listed(unset)}, which the model reads",
                "E202",
                "convert from a SavedModel or a Keras model, or freeze the variables: a "
                "concrete function alone leaves weights behind; a signature that sets them "
                "is not run",
            )
        for k, value in enumerate(graph.outputs):
            if value.state:
                graph.outputs[k] = Build(graph.nodes, value.name)(
                    op("Identity"), value, output=f"{value.name}.before"
                )
        news = {key: value for key, value in self.current.items() if value is not self.states[key]}
        producers, assigned = graph.producers(), set[Value]()
        for key, value in news.items():
            if _moved_from(value, producers) & assigned:
                # The old value of a state, or a window of it, which has its new one before this is copied.
                news[key] = Build(graph.nodes, value.name)(op("Identity"), value)
            assigned.add(self.states[key])
        for key, value in news.items():
            state = self.states[key]
            graph.nodes.append(
                Node(
                    Assign(),
                    [state, value],
                    [Value(f"{state.name}.after", state.type)],
                    f"state {state.name}",
                )
            )


def _moved_from(value: Value, producers: dict[Value, Node]) -> set[Value]:
    """The states of which a value may be a window: what is only moved may be read where it is."""
    waiting, seen = [value], {value}
    while waiting:
        node = producers.get(waiting.pop())
        if node is not None and (node.op.movement or node.op.has("expand")):
            more = {v for v in node.inputs if v is not None} - seen
            waiting += more
            seen |= more
    return {v for v in seen if v.state}
