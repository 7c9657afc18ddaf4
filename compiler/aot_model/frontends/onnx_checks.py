"""What must hold of an ONNX file before it is read further: names are text and written once, sizes are sane.

onnx.checker stops at its first finding, does not know sizes, and takes many files that contradict themselves;
these checks find everything of their kind at once and cost one walk over the protobuf.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import fields
from functools import cache

import onnx
import onnx.defs
import onnx.helper

from aot_model.c.names import printable
from aot_model.errors import CompileError, Problem
from aot_model.ir.operator import OperatorError
from aot_model.ir.types import MAX_BYTES, DType, elements_beside
from aot_model.ir.values import Value
from aot_model.ops.registry import MAX_RANK, load_all, operator_of

MAX_NODES = 1_000_000
"""Of a model with its functions inlined."""
MAX_FUNCTION_DEPTH = 100
MAX_OPSET = 2**31 - 1
"""What onnx counts with."""
AI_ONNX = ("", "ai.onnx")
_ONNX_TYPES = {"float32": "float", "float64": "double"}


def check_model(proto: onnx.ModelProto, where: str) -> None:
    """CompileError E102 or E202 with everything that is wrong."""
    problems = [Problem("E102", message, where) for message in _names(proto)]
    if not problems:
        problems += _opsets(proto, where)
    if not problems:
        problems += [p for graph in graphs(proto.graph) for p in _graph(graph, where)]
        problems += _bodies(proto, where)
        problems += _functions(proto, where)
        problems += _arity(proto, where)
        if not proto.graph.output:
            problems.append(Problem("E102", "the model has no outputs", where))
    if problems:
        raise CompileError(dict.fromkeys(problems))


def graphs(graph: onnx.GraphProto) -> Iterator[onnx.GraphProto]:
    """A graph and the bodies of its nodes."""
    pending = [graph]
    while pending:
        found = pending.pop()
        yield found
        pending.extend(inner_graphs(found.node))


def node_lists(proto: onnx.ModelProto) -> Iterator[Sequence[onnx.NodeProto]]:
    """The nodes of every graph and body of a model, and of its functions and their bodies."""
    for nodes in (proto.graph.node, *(f.node for f in proto.functions)):
        yield from _all_nodes(nodes)


def _all_nodes(nodes: Sequence[onnx.NodeProto]) -> Iterator[Sequence[onnx.NodeProto]]:
    """Nodes, and those of each body of theirs."""
    yield nodes
    for body in inner_graphs(nodes):
        yield from (g.node for g in graphs(body))


def tensors(proto: onnx.ModelProto) -> list[onnx.TensorProto]:
    """Every tensor of a model: initialisers, attributes, those in the bodies of nodes and of functions."""
    nodes = [n for every in node_lists(proto) for n in every]
    found = [t for g in (proto.graph, *inner_graphs(nodes)) for t in g.initializer]
    sparse = [s for g in (proto.graph, *inner_graphs(nodes)) for s in g.sparse_initializer]
    sparse += [a.sparse_tensor for n in nodes for a in n.attribute if a.HasField("sparse_tensor")]
    return (
        found
        + [t for s in sparse for t in (s.values, s.indices)]
        + [t for n in nodes for a in n.attribute for t in (*([a.t] if a.HasField("t") else []), *a.tensors)]
    )


def _initial(graph: onnx.GraphProto) -> list[str]:
    """The names of initialisers, dense and sparse."""
    return [*(t.name for t in graph.initializer), *(s.values.name for s in graph.sparse_initializer)]


def inner_graphs(nodes: Iterable[onnx.NodeProto]) -> list[onnx.GraphProto]:
    return [
        g
        for node in nodes
        for a in node.attribute
        for g in ([a.g] if a.HasField("g") else []) + list(a.graphs)
    ]


def shape_problem(shape: Sequence[int], element_bytes: int) -> str | None:
    """Why a shape is not one that can be compiled; None when it is."""
    if len(shape) > MAX_RANK:
        return f"has {len(shape)} dimensions, more than {MAX_RANK}"
    if any(d < 0 for d in shape):
        return f"has the shape {list(shape)}"
    if elements_beside(shape) * element_bytes > MAX_BYTES:
        return f"of shape {list(shape)} is larger than 2 GB"
    return None


def _names(proto: onnx.ModelProto) -> list[str]:
    """protobuf gives bytes for a string that is not UTF-8."""
    bodies = [g for graph in [proto.graph] for g in graphs(graph)]
    nodes = [n for every in node_lists(proto) for n in every]
    infos = [i for g in bodies for i in (*g.input, *g.output)]
    texts: list[object] = [o.domain for f in (proto, *proto.functions) for o in f.opset_import]
    texts += [text for t in tensors(proto) for e in t.external_data for text in (e.key, e.value)]
    texts += [t for g in bodies for t in (g.name, *_initial(g))]
    texts += [t for i in infos for t in (i.name, *(d.dim_param for d in i.type.tensor_type.shape.dim))]
    for n in nodes:
        texts += [n.name, n.op_type, n.domain, *n.input, *n.output]
        texts += [t for a in n.attribute for t in (a.name, a.ref_attr_name)]
    texts += [t for f in proto.functions for t in (f.name, f.domain, *f.input, *f.output, *f.attribute)]
    broken = [t for t in texts if not isinstance(t, str)]
    return [f"a name is not UTF-8: {printable(repr(t))}" for t in broken[:3]]


def _opsets(proto: onnx.ModelProto, where: str) -> list[Problem]:
    for opset in (o for f in (proto, *proto.functions) for o in f.opset_import):
        if opset.version > MAX_OPSET:
            return [
                Problem(
                    "E102",
                    f"the model has the opset {opset.version} of '{printable(opset.domain or 'ai.onnx')}'",
                    where,
                )
            ]
    for owner in (proto, *proto.functions):
        said = {o.version for o in owner.opset_import if o.domain in AI_ONNX}
        if len(said) > 1:
            both = " and ".join(map(str, sorted(said)))
            return [Problem("E102", f"the model has the opsets {both} of 'ai.onnx' at once", where)]
    version = next((o.version for o in proto.opset_import if o.domain in AI_ONNX), None)
    used = any(n.domain in AI_ONNX for g in graphs(proto.graph) for n in g.node)
    if version is None:
        return [Problem("E102", "the model does not say its opset", where)] if used else []
    newest = onnx.defs.onnx_opset_version()
    if version < 1:
        return [Problem("E102", f"the model has the opset {version}", where)]
    if version > newest:
        hint = "upgrade the onnx package, or export the model for an older opset"
        return [
            Problem(
                "E202",
                f"the model has opset {version}; the installed onnx package knows {newest}",
                where,
                hint,
            )
        ]
    return []


def _graph(graph: onnx.GraphProto, where: str) -> list[Problem]:
    problems = []
    written: set[str] = set()
    inputs = [i.name for i in graph.input]
    initial = _initial(graph)
    optional_inputs = set(inputs) & set(initial)
    for name in [
        *inputs,
        *(n for n in initial if n not in optional_inputs),
        *(o for node in graph.node for o in node.output),
    ]:
        if name and name in written:
            problems.append(
                Problem(
                    "E102",
                    f"'{printable(name)}' is written more than once",
                    where,
                    "names must be unique in a graph",
                )
            )
        written.add(name)
    for tensor in [
        *graph.initializer,
        *(a.t for node in graph.node for a in node.attribute if a.HasField("t")),
    ]:
        why = shape_problem(tensor.dims, 1)
        if why:
            problems.append(Problem("E102", f"constant '{printable(tensor.name)}' {why}", where))
    return problems


def _bodies(proto: onnx.ModelProto, where: str) -> list[Problem]:
    """An input of a body gets its value from the node: a constant of that name would be taken for it."""
    bodies = inner_graphs([n for every in node_lists(proto) for n in every])
    return [
        Problem("E102", f"input '{printable(i.name)}' of a body is also a constant", where)
        for body in bodies
        for i in body.input
        if i.name in _initial(body)
    ]


def wanted_bytes(tensor: onnx.TensorProto) -> int | None:
    """How many bytes its shape and type are; None of a type that is refused where it is used."""
    try:
        bits = DType.of(onnx.helper.tensor_dtype_to_np_dtype(tensor.data_type)).bits
    except (KeyError, TypeError, ValueError):
        return None
    return int(-(-math.prod(tensor.dims) * bits // 8))


def check_lengths(proto: onnx.ModelProto, where: str) -> None:
    """CompileError E102 where a tensor has more bytes or fewer than its shape says: of those with several
    elements in a byte the onnx package takes what it needs.
    """
    problems = []
    for tensor in tensors(proto):
        wanted = wanted_bytes(tensor)
        if wanted is not None and tensor.HasField("raw_data") and len(tensor.raw_data) != wanted:
            why = f"{len(tensor.raw_data)} bytes are not the {wanted} of its shape"
            problems.append(Problem("E102", f"constant '{printable(tensor.name)}' is damaged: {why}", where))
    if problems:
        raise CompileError(dict.fromkeys(problems))


def _count(names: Sequence[str]) -> int:
    """How many there are, without those at the end that are left out."""
    return max((k + 1 for k, name in enumerate(names) if name), default=0)


def _arity(proto: onnx.ModelProto, where: str) -> list[Problem]:
    """Nodes with more or fewer inputs or outputs than the standard, or a function of the model, gives their
    operator, or with more inputs than are known of one that is not the standard's.
    """
    own = {(f.domain, f.name, f.overload): f for f in proto.functions}
    load_all()
    problems = []
    for owner, nodes in ((proto, proto.graph.node), *((f, f.node) for f in proto.functions)):
        versions = {"" if o.domain in AI_ONNX else o.domain: o.version for o in owner.opset_import}
        for node in (n for every in _all_nodes(nodes) for n in every):
            name = printable(node.name or (node.output[0] if node.output else "?"))
            place = f"{where}: node '{name}' ({printable(node.op_type)})"
            called = own.get((node.domain, node.op_type, node.overload))
            domain = "" if node.domain in AI_ONNX else node.domain
            if called is not None:
                limits = (0, len(called.input)), (0, len(called.output))
            elif schema := _schema(domain, node.op_type, versions.get(domain, 1)):
                limits = (schema.min_input, schema.max_input), (schema.min_output, schema.max_output)
            else:
                known = operator_of(domain, node.op_type)
                if known is not None and _count(node.input) > known.most_inputs:
                    what = (
                        f"has {len(node.input)} inputs, of which the first {known.most_inputs} are supported"
                    )
                    problems.append(Problem("E202", what, place))
                continue
            for kind, names, (least, most) in zip(
                ("inputs", "outputs"), (node.input, node.output), limits, strict=True
            ):
                if not least <= len(names) or _count(names) > most:
                    allowed = f"{least}" if least == most else f"{least} to {most}"
                    problems.append(Problem("E102", f"has {len(names)} {kind}, not {allowed}", place))
    return problems


def _spellings(dtype: DType) -> set[str]:
    """How ONNX may spell a type: float8_e4m3fn is float8e4m3fn, float4_e2m1fn is float4e2m1."""
    if dtype.is_string:
        return {"tensor(string)"}
    name = _ONNX_TYPES.get(dtype.label, dtype.label.replace("_", ""))
    return {f"tensor({n})" for n in (name, name.removesuffix("fn"), name.removesuffix("fnu"))}


@cache
def _schema(domain: str, name: str, version: int) -> onnx.defs.OpSchema | None:
    """An operator's schema at an opset: its first one where it came later than the opset, for files that use
    such operators all the same; None for what the standard never had.
    """
    if not onnx.defs.has(name, domain):
        return None
    for at in range(max(version, 1), max(version, onnx.defs.onnx_opset_version()) + 1):
        try:
            return onnx.defs.get_schema(name, at, domain)
        except onnx.defs.SchemaError:
            continue
    return None


def type_problem(
    node: onnx.NodeProto, domain: str, version: int, dtypes: Sequence[DType | None]
) -> tuple[str, str] | None:
    """Which input has an element type that the standard does not give the operator, and what to do; None when
    all fit.
    """

    def types(schema: onnx.defs.OpSchema, k: int) -> set[str]:
        formal = list(schema.inputs)
        return set(formal[min(k, len(formal) - 1)].types) if formal else set()

    schema = _schema(domain, node.op_type, version)
    if schema is None:
        return None
    for k, dtype in enumerate(dtypes):
        allowed = types(schema, k)
        if dtype is None or not allowed or _spellings(dtype) & allowed:
            continue
        names = sorted(
            t.removeprefix("tensor(").removesuffix(")") for t in allowed if t.startswith("tensor(")
        )
        why = f"input {k} is {dtype.label}; opset {version} has {', '.join(names)}"
        for at in range(version + 1, onnx.defs.onnx_opset_version() + 1):
            later = _schema(domain, node.op_type, at)
            if later is not None and _spellings(dtype) & types(later, k):
                return why, f"export the model with opset {at} or later, which has {dtype.label}"
        return why, ""
    return None


def _functions(proto: onnx.ModelProto, where: str) -> list[Problem]:
    """Functions that call each other without end, or grow beyond measure when they are inlined."""
    bodies = {(f.domain, f.name): f.node for f in proto.functions}
    known: dict[tuple[str, str], int] = {}

    def size(nodes: Iterable[onnx.NodeProto], depth: int) -> int:
        if depth > MAX_FUNCTION_DEPTH:
            return MAX_NODES + 1
        total = 0
        for node in nodes:
            key = node.domain, node.op_type
            if key in bodies and key not in known:
                known[key] = size(bodies[key], depth + 1)
            total += known[key] if key in bodies else 1
            total += sum(size(g.node, depth + 1) for g in inner_graphs([node]))
        return min(total, MAX_NODES + 1)

    if size(proto.graph.node, 0) <= MAX_NODES:
        return []
    message = (
        f"has more than {MAX_NODES:,} nodes once its functions are inlined, or they are nested more "
        f"than {MAX_FUNCTION_DEPTH} deep"
    )
    return [Problem("E102", f"the model {message}", where)]


def check_node(domain: str, proto: onnx.NodeProto, version: int, inputs: Sequence[object]) -> None:
    """OperatorError where an attribute is there twice, or not there though the schema requires it, and where
    inputs differ whose types it says are the same: what reads them would take the numbers of one for those of
    another. Strings are of one type whatever room they have. Attributes that no operator here has were
    dropped by the standard.
    """
    names = [a.name for a in proto.attribute]
    if len(set(names)) < len(names):
        twice = next(n for n in names if names.count(n) > 1)
        raise OperatorError(f"attribute '{printable(twice)}' is there more than once")
    schema = _schema(domain, proto.op_type, version)
    if schema is None:
        return
    known = operator_of(domain, proto.op_type)
    read = [f.name for f in fields(known)] if known is not None else list(schema.attributes)
    for name in read:
        if name in schema.attributes and schema.attributes[name].required and name not in names:
            raise OperatorError(f"attribute '{name}' is missing, which the standard requires")
    formal = schema.inputs
    seen: dict[str, Value] = {}
    for k, value in enumerate(inputs):
        if not isinstance(value, Value) or not formal:
            continue
        f = formal[min(k, len(formal) - 1)]
        if f.option == onnx.defs.OpSchema.FormalParameterOption.Variadic and not f.is_homogeneous:
            continue
        first = seen.setdefault(f.type_str, value)
        alike = first.dtype is value.dtype or (first.dtype.is_string and value.dtype.is_string)
        if not alike and not f.type_str.startswith(("tensor(", "seq(", "optional(")):
            raise OperatorError(
                f"'{printable(first.name)}' {first.type} and '{printable(value.name)}' {value.type} must be "
                "of one type"
            )
