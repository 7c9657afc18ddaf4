"""ONNX: from a ModelProto to a Graph.

Functions of the model are inlined, old opsets brought to the newest (onnx_opsets.py), shapes inferred by our
operators while nodes are added, and what is constant is folded on the way, so that shapes computed in the
graph are known when a Reshape asks for them. A symbolic leading dimension is bound to 1, with a note; others
need --dim.
"""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.checker
import onnx.inliner
import onnx.numpy_helper

from aot_model.c.names import printable
from aot_model.errors import CompileError, Problem
from aot_model.frontends.model import Bindings, Model, name_tensors
from aot_model.frontends.onnx_attributes import make_operator, plain
from aot_model.frontends.onnx_checks import AI_ONNX, check_node, shape_problem, type_problem
from aot_model.frontends.onnx_complete import complete_proto
from aot_model.frontends.onnx_functions import (
    function_body,
    has_function,
    local_body,
    local_functions,
    operand_problem,
)
from aot_model.frontends.onnx_handlers import HANDLERS, OF_ROWS
from aot_model.frontends.onnx_inputs import InputBinder
from aot_model.frontends.onnx_opsets import modernise
from aot_model.frontends.onnx_outputs import named_outputs
from aot_model.frontends.onnx_rows import Sizes
from aot_model.frontends.onnx_structure import NEVER_TAKEN, Items, Place, Scope, formals
from aot_model.frontends.onnx_unsupported import instead_of, label_of
from aot_model.ir.graph import Graph, Node
from aot_model.ir.operator import Operator, OperatorError
from aot_model.ir.strings import encoded, string_type
from aot_model.ir.types import DType
from aot_model.ir.values import Value, constant
from aot_model.ops.registry import load_all, operator_of
from aot_model.passes.count_turns import counted
from aot_model.passes.fold_constants import folded


def read_onnx(path: Path, bindings: Bindings | None = None) -> Model:
    """The model in a file. CompileError with all problems."""
    data, proto, sources = complete_proto(path)
    digest = hashlib.sha256(data)
    for extra in sources[1:]:
        digest.update(extra.read_bytes())
    importer = Importer(proto, str(path), bindings or Bindings())
    graph = importer.run()
    return Model(
        graph,
        tuple(sources),
        digest.hexdigest(),
        [*importer.binder.notes, *importer.notes],
        constants=importer.given,
    )


class Importer:
    """The state of one import."""

    def __init__(self, proto: onnx.ModelProto, where: str, bindings: Bindings) -> None:
        load_all()
        self.proto = proto
        self.where = where
        self.notes: list[str] = []
        self.opsets = {o.domain: o.version for o in proto.opset_import}
        self.functions = local_functions(proto)
        self.problems: list[Problem] = []
        self.binder = InputBinder(bindings, self._problem, self._dtype)
        self.strings = string_type(bindings.string_bytes)
        """Element type of all tensors of strings."""
        self.given: dict[str | int, np.ndarray] = {}
        """Inputs that the user made constants."""
        self.sizes = Sizes(bindings.bounds)

    def run(self) -> Graph:
        self._check_operators(self.proto.graph)
        graph = Graph(self.proto.graph.name or "model")
        initial = {t.name for t in self.proto.graph.initializer}
        scope: Scope = {}
        for info in self.proto.graph.input:
            if info.name not in initial:
                value = self.binder.bind(info)
                if isinstance(value, Value) and value.data is not None:
                    self.given[info.name] = value.data
                if value is not None:
                    graph.inputs += (
                        list(value.values) if isinstance(value, Items) else [] if value.is_const else [value]
                    )
                    scope[info.name] = (
                        value.values[0]
                        if isinstance(value, Items)
                        and info.type.optional_type.elem_type.HasField("tensor_type")
                        and value.values
                        else value
                    )
        self.binder.check_all_used(self.proto.graph.input)
        self._raise()
        results = self.inline(self.proto.graph, graph, scope)
        try:
            graph.outputs = named_outputs(graph, self.proto.graph.output, results, self.sizes.shapes)
        except OperatorError as error:
            self._problem(error.code, str(error), hint=error.hint)
        graph.outputs += [self.sizes.shapes[v] for v in graph.outputs if v in self.sizes.shapes]
        if self.sizes.bounds and not self.problems:
            self._problem(
                "E203",
                "--bound names values of which the size does not depend on data: "
                f"{', '.join(map(printable, sorted(self.sizes.bounds)))}",
            )
        self._raise()
        name_tensors(
            (name, name, value)
            for name, value in scope.items()
            if isinstance(value, Value) and value not in self.sizes.shapes
        )
        return graph

    def _raise(self) -> None:
        if self.problems:
            raise CompileError(dict.fromkeys(self.problems))

    def _problem(self, code: str, message: str, node: onnx.NodeProto | None = None, hint: str = "") -> None:
        where = self.where
        if node is not None:
            where += (
                f": node '{printable(node.name or (node.output[0] if node.output else '?'))}' "
                f"({printable(node.op_type)})"
            )
        self.problems.append(Problem(code, message, where, hint))

    def element_type(self, code: int) -> DType:
        """The element type of an ONNX code. KeyError, TypeError or ValueError when there is none."""
        return (
            self.strings
            if code == onnx.TensorProto.STRING
            else DType.of(onnx.helper.tensor_dtype_to_np_dtype(code))
        )

    # --- nodes ----------------------------------------------------------------------------------------------

    def _check_operators(self, graph: onnx.GraphProto) -> None:
        """Name every operator that nobody knows, before anything else."""
        missing: dict[str, list[str]] = {}
        pending = [graph]
        while pending:
            for node in pending.pop().node:
                domain = "" if node.domain in AI_ONNX else node.domain
                if not self._knows(node, domain):
                    missing.setdefault(printable(label_of(domain, node.op_type)), []).append(
                        printable(node.name or (node.output[0] if node.output else "?"))
                    )
                pending.extend(a.g for a in node.attribute if a.HasField("g"))
        for label, names in sorted(missing.items()):
            listed = ", ".join(f"'{n}'" for n in names[:8]) + (
                f" and {len(names) - 8} more" if len(names) > 8 else ""
            )
            self._problem(
                "E201", f"operator {label} is not supported (node {listed})", hint=instead_of(label)
            )
        self._raise()

    def _knows(self, node: onnx.NodeProto, domain: str) -> bool:
        """Whether there is a rule, an operator or a function for a node."""
        return (
            label_of(domain, node.op_type) in ("Constant", *HANDLERS)
            or (node.domain, node.op_type, node.overload) in self.functions
            or self._class(domain, node.op_type) is not None
            or has_function(domain, node.op_type, self.version(domain))
        )

    def version(self, domain: str) -> int:
        """The opset version of a domain that holds for the nodes at hand."""
        return int(self.opsets.get(domain, self.opsets.get("ai.onnx", 1) if not domain else 1))

    def _class(self, domain: str, name: str) -> type[Operator] | None:
        name = "Resize" if (domain, name) == ("", "Upsample") else name
        return operator_of(domain, name) if domain != "aot" else None

    def inline(self, source: onnx.GraphProto, graph: Graph, scope: Scope, prefix: str = "") -> list[Any]:
        """Import nodes into `graph`: the values of its outputs. What goes wrong is in `problems`."""
        for tensor in source.initializer:
            value = self._tensor(tensor, tensor.name)
            if value is not None:
                scope[tensor.name] = value
        for node in source.node:
            self._node(node, graph, scope, prefix)
        for info in source.output:
            if info.name not in scope:
                if not self.problems:
                    self._problem("E102", f"output '{printable(info.name)}' is not computed by any node")
                continue
            found = scope[info.name]
            if not prefix and isinstance(found, Value):
                self._check_declared(info, found)
        return [scope[info.name] for info in source.output if info.name in scope]

    def _check_declared(self, info: onnx.ValueInfoProto, value: Value) -> None:
        """The element type that the file declares for an output must be the one that follows from the inputs.
        Exporters declare wrong shapes, which ONNX Runtime takes as they are.
        """
        declared = info.type.tensor_type
        if (
            info.type.WhichOneof("value") != "tensor_type"
            or not isinstance(value, Value)
            or value in self.sizes.shapes
        ):
            return
        dims = [
            d.dim_value if d.HasField("dim_value") and d.dim_value >= 0 else None for d in declared.shape.dim
        ]
        known = declared.HasField("shape") and not self.binder.used and not self.binder.notes
        wrong_shape = known and (
            len(dims) != value.type.rank
            or any(d not in (None, n) for d, n in zip(dims, value.shape, strict=True))
        )
        dtype = (
            self._dtype(declared.elem_type, f"output '{printable(info.name)}'")
            if declared.elem_type
            else None
        )
        shape = ["?" if d is None else d for d in dims] if declared.HasField("shape") else ""
        said = f"output '{printable(info.name)}' is declared {dtype.label if dtype else 'tensor'}{shape}"
        if dtype is not None and dtype is not value.dtype:
            self._problem(
                "E301",
                f"{said}, but computed as {value.type}",
                hint="export the model anew, or correct its declaration",
            )
        elif wrong_shape:  # as ONNX Runtime, which computes what follows from the inputs
            self.notes.append(f"{said}, but is {value.type}, which follows from the inputs")

    def _dtype(self, code: int, what: str) -> DType | None:
        try:
            return self.element_type(code)
        except (KeyError, TypeError, ValueError):
            name = (
                onnx.TensorProto.DataType.Name(code)
                if code in onnx.TensorProto.DataType.values()
                else str(code)
            )
            self._problem("E202", f"{what} has element type {name}, which is not supported")
            return None

    def _tensor(self, tensor: onnx.TensorProto, name: str) -> Value | None:
        if self._dtype(tensor.data_type, f"constant '{printable(name)}'") is None:
            return None
        try:
            if tensor.data_location == onnx.TensorProto.EXTERNAL:
                # onnx would read it from the current directory
                raise ValueError("its data are in another file, which was not read")
            if tensor.data_type == onnx.TensorProto.STRING:
                return self._strings(list(tensor.string_data), name, tuple(tensor.dims))
            return constant(name, np.array(onnx.numpy_helper.to_array(tensor)))
        except Exception as error:
            self._problem("E102", f"constant '{printable(name)}' is damaged: {printable(str(error))}")
            return None

    def _strings(self, texts: list[bytes], name: str, shape: tuple[int, ...]) -> Value | None:
        try:
            return constant(name, encoded(texts, self.strings).reshape(shape))
        except ValueError as error:
            self._problem("E202", f"constant '{printable(name)}': {error}")
            return None

    def _node(self, proto: onnx.NodeProto, graph: Graph, scope: Scope, prefix: str = "") -> None:
        absent = [n for n in proto.input if n and n not in scope]
        if absent:
            if not self.problems:
                self._problem(
                    "E102", f"reads '{printable(absent[0])}', which nothing computes before it", proto
                )
            return
        if proto.op_type == "Constant" and proto.domain in AI_ONNX:
            value = self._constant_node(proto)
            if value is not None:
                scope[proto.output[0]] = value
            return
        inputs = [scope[n] if n else None for n in proto.input]
        while inputs and inputs[-1] is None:
            inputs.pop()
        if (proto.domain, proto.op_type, proto.overload) in self.functions:
            self._function(proto, graph, scope, inputs)
            return
        domain = "" if proto.domain in AI_ONNX else proto.domain
        why = type_problem(
            proto, domain, self.version(domain), [v.dtype if isinstance(v, Value) else None for v in inputs]
        )
        if why:
            self._problem("E301", why[0], proto, why[1])
            return
        place = Place(self, proto, graph, scope, inputs)
        try:
            handler = HANDLERS.get(label_of(domain, proto.op_type))
            if handler is not None and proto.op_type not in OF_ROWS:
                for value in self.sizes.among(inputs):
                    raise OperatorError(f"reads '{value.name}', whose size depends on data", "E203")
            check_node(domain, proto, self.version(domain), inputs)
            if handler is not None and handler(place):
                return
            if self._class(domain, proto.op_type) is None:
                self._function(proto, graph, scope, inputs)
                return
            self._add(place, domain, prefix)
        except OperatorError as error:
            self._problem(error.code, str(error), proto, error.hint)
        except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError, MemoryError) as error:
            self._problem("E301", f"attributes or inputs do not fit: {printable(str(error))}", proto)

    def _operator(self, place: Place, domain: str) -> tuple[Operator, list[Value | None]]:
        """The operator of a node in its newest form, and its inputs. OperatorError when there is none."""
        proto, version = place.proto, self.version(domain)
        name, attributes, inputs = modernise(
            domain,
            proto.op_type,
            version,
            self.attributes(place),
            place.inputs,
            len(proto.output),
            place.build,
        )
        cls = self._class(domain, name)
        if cls is None:
            raise OperatorError(
                f"the form of opset {version} is not supported", "E202", "convert the model to a newer opset"
            )
        op = self.sizes.bounded(make_operator(cls, attributes, self.element_type, self.strings), proto.output)
        if not (op.movement or op.strings) and any(
            isinstance(v, Value) and v.dtype.is_string for v in inputs
        ):
            raise OperatorError("is not supported on strings", "E202")
        return counted(op, inputs)

    def _add(self, place: Place, domain: str, prefix: str) -> None:
        """Add a node to the graph, or its results where they are known. OperatorError when the inputs do not
        fit.
        """
        op, inputs, count, lead = self.sizes.settled(*self._operator(place, domain), place.build)
        types, axes = op.infer(inputs), op.sized_by_data(inputs)
        for why in filter(None, (shape_problem(t.shape, t.dtype.size) for t in types)):
            raise OperatorError(f"the result {why}", "E202")
        proto, wanted, most = place.proto, list(place.proto.output), len(types) - len(axes)
        if len(wanted) > most:
            raise OperatorError(f"has {len(wanted)} outputs; {most} are supported", "E202")
        label = f"{prefix}{'.' if prefix else ''}{proto.name or (wanted[0] if wanted else proto.op_type)}"
        self.notes += [f"{proto.op_type} '{printable(label)}': {text}" for text in op.remarks(inputs)]
        names = [*wanted, *([""] * (most - len(wanted)) if axes else [])]
        outputs = [Value(n or f"{label}.{k}", t) for k, (n, t) in enumerate(zip(names, types, strict=False))]
        shapes = {k: Value(f"{outputs[k].name}.shape", t) for k, t in zip(axes, types[most:], strict=False)}
        node = Node(op, inputs, [*outputs, *shapes.values()], label)
        data = folded(node) if count is None else None
        if data is not None:
            outputs = [constant(v.name, d) for v, d in zip(outputs, data, strict=False)]
        else:
            place.graph.nodes.append(node)
            for k, shape in shapes.items():
                self.sizes.add(outputs[k], shape, axes[k], node, place.build)
            if count is not None:
                self.sizes.add_rows(outputs, count, lead, place.build)
        place.scope.update({n: v for n, v in zip(wanted, outputs, strict=False) if n})

    def _function(
        self, proto: onnx.NodeProto, graph: Graph, scope: Scope, inputs: list[Value | None]
    ) -> None:
        """The nodes of an operator that ONNX defines by a function, in the operator's place."""
        own = self.functions.get((proto.domain, proto.op_type, proto.overload))
        body = local_body(proto, own) if own else function_body(proto, self.version(proto.domain), inputs)
        if body is None:
            self._problem("E201", "the operator is not supported", proto, instead_of(proto.op_type))
            return
        why = operand_problem(proto.op_type, inputs)
        if why:
            self._problem("E301", why, proto)
            return
        inner = {name: value for name, value in zip(body.inputs, inputs, strict=False) if value is not None}
        omitted = set(body.inputs) - set(inner)
        outer_opsets, self.opsets = self.opsets, {**self.opsets, **body.opsets}
        label = proto.name or (proto.output[0] if proto.output else proto.op_type)
        for node in body.nodes:
            node.input[:] = ["" if name in omitted else name for name in node.input]
            node.name = f"{label}.{node.output[0]}" if node.output else label
            self._node(node, graph, inner)
            if self.problems:
                break
        self.opsets = outer_opsets
        for formal, name in zip(body.outputs, proto.output, strict=False):
            if name and formal in inner:
                scope[name] = inner[formal]

    def _constant_node(self, proto: onnx.NodeProto) -> Value | None:
        name = proto.output[0] if proto.output else "constant"
        for a in proto.attribute:
            if a.name == "value":
                return self._tensor(a.t, name)
            if a.name in ("value_float", "value_floats"):
                return constant(
                    name, np.asarray(a.f if a.name == "value_float" else list(a.floats), dtype=np.float32)
                )
            if a.name in ("value_int", "value_ints"):
                return constant(
                    name, np.asarray(a.i if a.name == "value_int" else list(a.ints), dtype=np.int64)
                )
            if a.name in ("value_string", "value_strings"):
                texts = [a.s] if a.name == "value_string" else list(a.strings)
                return self._strings(texts, name, () if a.name == "value_string" else (len(texts),))
        self._problem("E202", "this form of constant is not supported", proto)
        return None

    def attributes(self, place: Place) -> dict[str, Any]:
        """The attributes of a node, bodies imported."""
        result: dict[str, Any] = {}
        for a in place.proto.attribute:
            if a.type == onnx.AttributeProto.GRAPH:
                result[a.name] = self._subgraph(a.g, place)
            elif a.type == onnx.AttributeProto.TENSOR:
                value = self._tensor(a.t, a.name)
                result[a.name] = None if value is None else value.data
            elif a.type == onnx.AttributeProto.UNDEFINED:
                raise OperatorError(f"attribute '{printable(a.name)}' does not say what its type is")
            else:
                result[a.name] = plain(onnx.helper.get_attribute_value(a))
        return result

    def _subgraph(self, source: onnx.GraphProto, place: Place) -> Graph:
        """The body of a control-flow operator; the types of its inputs come from the node's inputs."""
        body = Graph(source.name or "body", formals(place, source))
        before = len(self.problems)
        with self.sizes.inside():
            found = self.inline(source, body, {**place.scope, **{v.name: v for v in body.inputs}})
        if any(isinstance(value, Items) and len(value.values) != 1 for value in found):
            hint = "make the condition of a branch a constant"
            raise OperatorError("a body gives a sequence or nothing", "E203", hint)
        body.outputs = [v.values[0] if isinstance(v, Items) else v for v in found]
        if place.proto.op_type == "If":
            self.problems[before:] = [replace(p, hint=p.hint or NEVER_TAKEN) for p in self.problems[before:]]
        self._raise()
        for value in self.sizes.among(body.outputs):
            raise OperatorError(f"the size of '{value.name}', a result of its body, depends on data", "E203")
        return body
