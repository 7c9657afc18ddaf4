"""TFLite: from a file to a Graph, operator by operator. Values keep the file's layout, channels last.

The file is read and checked by tflite_file.py; each operator has a rule in one of the modules beside this
one, which says what it is in terms of ours. What is constant is folded on the way. Integer networks stay
integer: every rescaling is a fixed-point multiplication, as TensorFlow Lite Micro computes it.
"""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from aot_model.errors import CompileError, Problem, fail
from aot_model.frontends import (  # noqa: F401  (rules of operators, which are registered so)
    tflite_control,
    tflite_detection,
    tflite_elementwise,
    tflite_indexing,
    tflite_layers,
    tflite_lists,
    tflite_movement,
    tflite_recurrent,
    tflite_reduction,
    tflite_resize,
    tflite_rnn,
    tflite_signal,
    tflite_spectra,
    tflite_speech,
    tflite_tensorflow,
    tflite_types,
    tflite_unary,
    tflite_windows,
)  # fmt: skip
from aot_model.frontends.model import Bindings, Model, name_tensors
from aot_model.frontends.tflite_conversion import RULES, Conversion, FoldingBuild
from aot_model.frontends.tflite_file import DAMAGE, File, FileOperator, SubGraph, parse
from aot_model.frontends.tflite_inputs import TfliteInputs
from aot_model.frontends.tflite_pieces import OPEN, Piece
from aot_model.frontends.tflite_spectra import of_complex
from aot_model.frontends.tflite_tensors import Tensor, short
from aot_model.frontends.tflite_variables import Variables
from aot_model.ir.graph import Graph
from aot_model.ir.operator import OperatorError
from aot_model.ir.types import DType, Quantisation
from aot_model.ir.values import Value, constant
from aot_model.ops.registry import load_all

_DRAWN = "let the random numbers be an input: LiteRT draws them with a state that it keeps between runs"
NEVER = {
    **dict.fromkeys(("RANDOM_", "MULTINOMIAL", "STABLEHLO_RNG_"), _DRAWN),
    "HASHTABLE": "look up before the model: tables are filled while a program runs, by another signature",
    "CUSTOM:Flex": "it is of TensorFlow itself: replace it, so that the model converts without SELECT_TF_OPS",
    "UNIQUE": "how many values it gives depends on data, so its result has no fixed size",
}
"""Operators that will not be supported, by how their names begin, and what to do."""

MAX_BODIES = 1000
"""Bodies are read where they are used, so a file of nested branches could grow without bounds."""


def read_tflite(path: Path, bindings: Bindings | None = None, arithmetic: str = "tflm") -> Model:
    """The model in a file. CompileError E1xx to E3xx with everything that is wrong with it."""
    given = bindings or Bindings()
    for name in given.bounds:
        raise fail("E203", f"--bound {name}: no size of a TFLite model can be given a bound", where=str(path))
    try:
        data = path.read_bytes()
    except OSError as error:
        raise fail("E101", f"cannot read the model: {error.strerror or error}", where=str(path)) from None
    load_all()
    file = parse(data, str(path), given.signature)
    importer = Importer(file, str(path), arithmetic, given)
    graph = importer.run()
    return Model(
        graph, (path,), hashlib.sha256(data).hexdigest(), importer.inputs.notes, "tflite", importer.given
    )


def supported_operators() -> list[str]:
    """Names of the builtin operators that have a rule."""
    return sorted(RULES)


class Importer:
    """The state of one import."""

    def __init__(self, file: File, where: str, arithmetic: str, bindings: Bindings) -> None:
        self.file = file
        self.where = where
        self.arithmetic = arithmetic
        self.problems: list[Problem] = []
        self.inputs = TfliteInputs(
            bindings, lambda code, message, hint="": self._problem(code, message, hint=hint)
        )
        self.resized = bool(bindings.dims)
        self.signature = bindings.signature
        self.given: dict[str | int, np.ndarray] = {}
        """Inputs that the user made constants."""
        self.variables = Variables()
        self.pieces: dict[Value, Piece] = {}
        self.imaginary: dict[Value, Value] = {}
        self.bodies = 0
        self.open: set[int] = set()
        """Sub-graphs that are being read: none may contain itself."""

    def run(self) -> Graph:
        self._check_operators()
        main = self.file.graph
        if len(self.file.signatures) > 1 and self.signature is None:
            names = ", ".join(f"'{short(name)}'" for name in self.file.signatures)
            first = next((name for name, number in self.file.signatures.items() if number == 0), None)
            self.note(
                f"the model has the signatures {names}; what is compiled is its first sub-graph"
                + (f", '{short(first)}'" if first is not None else "")
                + " (--signature NAME for another one)"
            )
        graph = Graph(main.name)
        scope: dict[int, Value] = {}
        for i in main.inputs:
            value = self.inputs.bind(main.tensors[i], main.labels.get(("input", i), main.tensors[i].name))
            if value is not None:
                scope[i] = value
                if value.data is None:
                    graph.inputs.append(value)
                else:
                    self.given[i] = value.data
        self.inputs.finish()
        self._raise()
        self._body(main, graph, scope)
        self._raise()
        name_tensors((i, main.tensors[i].name, value) for i, value in scope.items())
        try:
            self.variables.finish(graph)
        except OperatorError as error:
            self._problem(error.code, str(error), hint=error.hint)
        self._raise()
        return graph

    def _raise(self) -> None:
        if self.problems:
            raise CompileError(dict.fromkeys(self.problems))

    def note(self, text: str) -> None:
        if text not in self.inputs.notes:
            self.inputs.notes.append(text)

    def _problem(self, code: str, message: str, operator: FileOperator | None = None, hint: str = "") -> None:
        where = (
            self.where if operator is None else (f"{self.where}: operator {operator.index} ({operator.kind})")
        )
        self.problems.append(Problem(code, message, where, hint))

    def _check_operators(self) -> None:
        """Name every operator that nobody knows, before anything else; not of what other signatures run."""
        missing: dict[str, list[str]] = {}
        ours = self.file.run_by(self.file.main)
        others = {0, *self.file.signatures.values()} - ours if self.file.signatures else ()
        theirs = {g for s in others for g in self.file.run_by(s)} - ours
        for g, graph in enumerate(self.file.subgraphs):
            for operator in graph.operators if g not in theirs else ():
                if operator.kind not in RULES:
                    place = (
                        str(operator.index) if g == self.file.main else f"{operator.index} of sub-graph {g}"
                    )
                    missing.setdefault(operator.kind, []).append(place)
        for kind, places in sorted(missing.items()):
            listed = ", ".join(places[:8]) + (f" and {len(places) - 8} more" if len(places) > 8 else "")
            reason = next((why for start, why in NEVER.items() if kind.startswith(start)), "")
            near = difflib.get_close_matches(kind, RULES, 1, 0.75)
            hint = reason or (
                f"the nearest supported operator is {near[0]}"
                if near
                else "see `aot-model ops` for the operators that are"
            )
            label = f"custom operator '{kind[7:]}'" if kind.startswith("CUSTOM:") else f"operator {kind}"
            self._problem("E201", f"{label} is not supported (operator {listed})", hint=hint)
        self._raise()

    # --- sub-graphs -----------------------------------------------------------------------------------------

    def once(self, index: int) -> None:
        """The initial values of variables, from a sub-graph that assigns constants."""
        source = self._subgraph(index)
        if source.inputs or source.outputs:
            raise OperatorError(f"sub-graph {index}, which runs once, has inputs or outputs")
        self.variables.starting = True
        self._body(source, Graph(source.name), {})
        self.variables.starting = False

    def body(self, index: int, inputs: Sequence[Value]) -> Graph:
        """The operators of a sub-graph over these values, which it reads from the graph around it."""
        source = self._subgraph(index)
        if len(source.inputs) != len(inputs):
            raise OperatorError(f"sub-graph {index} takes {len(source.inputs)} values, not {len(inputs)}")
        for i, value in zip(source.inputs, inputs, strict=True):
            tensor = source.tensors[i]
            if tensor.kind == tflite_lists.KIND:
                continue
            if tensor.dtype is not value.dtype or (
                tensor.shape != value.shape and not tensor.dynamic and tensor.shape and not self.resized
            ):
                raise OperatorError(
                    f"sub-graph {index} takes {tensor.kind}{list(tensor.shape)}, not {value.type}"
                )
        self.bodies += 1
        if self.bodies > MAX_BODIES:
            raise OperatorError(f"branches and loops contain more than {MAX_BODIES} bodies", "E202")
        before = dict(self.variables.current)
        graph = Graph(source.name)
        count = len(self.problems)
        self._body(source, graph, dict(zip(source.inputs, inputs, strict=True)))
        if len(self.problems) > count:
            raise OperatorError(f"sub-graph {index} has errors")
        if any(
            value is not before.get(key, self.variables.states[key])
            for key, value in self.variables.current.items()
        ):
            raise OperatorError(
                "assignments to variables inside of a branch or loop are not supported", "E202"
            )
        return graph

    def _subgraph(self, index: int) -> SubGraph:
        found = self.file.body(index)
        if found is None:
            raise OperatorError(f"sub-graph {index} of {len(self.file.subgraphs)}", "E102")
        if index in self.open:
            raise OperatorError(f"sub-graph {index} runs itself", "E102")
        return found

    # --- operators ------------------------------------------------------------------------------------------

    def _body(self, source: SubGraph, graph: Graph, scope: dict[int, Value]) -> None:
        """Add the operators of a sub-graph, and its outputs."""
        number = self.file.subgraphs.index(source)
        self.open.add(number)
        for operator in source.operators:
            self._operator(source, operator, graph, scope)
        self.open.discard(number)
        for i in source.outputs:
            value = self._value(source, i, scope)
            if value is None or value in self.pieces:
                if not self.problems:
                    self._problem(
                        "E102",
                        f"output '{short(source.tensors[i].name)}' is not computed by any operator, or its "
                        "size is not known",
                    )
                continue
            if value in self.imaginary:
                self._problem(
                    "E202",
                    f"output '{short(source.tensors[i].name)}' is complex",
                    hint="let the model give its parts or its absolute value",
                )
            label = source.labels.get(("output", i))
            if label and value not in graph.inputs and not value.is_const:
                value.name = label
            graph.outputs.append(value)

    def _value(self, source: SubGraph, index: int, scope: dict[int, Value]) -> Value | None:
        if index in scope:
            return scope[index]
        tensor = source.tensors[index]
        if tensor.data is None:
            return None
        scope[index] = constant(tensor.name, tensor.data, quantisation_of(tensor))
        return scope[index]

    def _operator(
        self, source: SubGraph, operator: FileOperator, graph: Graph, scope: dict[int, Value]
    ) -> None:
        inputs: list[Value | None] = []
        for i in operator.inputs:
            value = None if i < 0 else self._value(source, i, scope)
            if value is None and i >= 0 and not source.tensors[i].variable:
                if not self.problems:
                    self._problem(
                        "E102",
                        f"reads tensor {i} ('{short(source.tensors[i].name)}'), which nothing computes "
                        "before it",
                        operator,
                    )
                return
            inputs.append(value)
        if len(set(operator.outputs)) != len(operator.outputs) or any(i in scope for i in operator.outputs):
            self._problem("E102", "writes a tensor that is written already", operator)
            return
        outs = tuple(source.tensors[i] for i in operator.outputs)
        first = len(graph.nodes)
        label = short(outs[0].name.split(";")[0]) if outs else operator.kind
        tensors = tuple(None if i < 0 else source.tensors[i] for i in operator.inputs)
        build = FoldingBuild(graph.nodes, label)
        conversion = Conversion(
            operator,
            tuple(inputs),
            tensors,
            outs,
            build,
            self.variables,
            self,
            self.file.subgraphs.index(source),
        )
        try:
            if operator.kind != "CONCATENATION" and any(v in self.pieces for v in inputs if v is not None):
                raise OperatorError(
                    f"reads a slice, and {OPEN}", "E203", "convert the model with fixed shapes"
                )
            tflite_lists.check_readers(operator, tensors)
            function = RULES[operator.kind]
            imaginary = any(v in self.imaginary for v in inputs if v is not None)
            found = of_complex(conversion, function) if imaginary else function(conversion)
            results = [found] if isinstance(found, Value) else list(found)
            self._check(results, outs)
        except OperatorError as error:
            self._problem(error.code, str(error), operator, error.hint)
            return
        except DAMAGE as error:
            self._problem(
                "E301", f"options or inputs do not fit: {short(str(error)) or type(error).__name__}", operator
            )
            return
        made = {v for node in graph.nodes[first:] for v in node.outputs}
        for i, tensor, value in zip(operator.outputs, outs, results, strict=True):
            if value in made:
                value.name = tensor.name
                value.quantisation = quantisation_of(tensor)
            scope[i] = value

    def _check(self, results: Sequence[Value], tensors: Sequence[Tensor]) -> None:
        """OperatorError when the results are not what the file says that they are."""
        if len(results) != len(tensors):
            raise OperatorError(f"has {len(tensors)} outputs, {len(results)} expected")
        for value, tensor in zip(results, tensors, strict=True):
            if tensor.kind in ("RESOURCE", tflite_lists.KIND) or value in self.pieces:
                continue
            if value.dtype is not (
                DType.FLOAT32 if tensor.kind == "COMPLEX64" and value in self.imaginary else tensor.dtype
            ):
                raise OperatorError(
                    f"output '{short(tensor.name)}' is declared as {tensor.kind}, but is {value.type}"
                )
            if value.shape != tensor.shape and tensor.shape and not tensor.dynamic and not self.resized:
                raise OperatorError(
                    f"output '{short(tensor.name)}' is declared with shape {list(tensor.shape)}, but is "
                    f"{value.type}"
                )


def quantisation_of(tensor: Tensor) -> Quantisation | None:
    """The parameters of a tensor, None when it has none."""
    return tensor.quantisation if tensor.quantisation.scale else None
