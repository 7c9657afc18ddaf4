"""Operators that ONNX defines by a function of other operators: the function is put in the place of the node.

Source: the function bodies of onnx.defs, some of which depend on the attributes and input types of the node.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx
import onnx.defs
import onnx.helper

from aot_model.ir.values import Value


@dataclass(frozen=True)
class Body:
    """The nodes of a function with the node's attributes put in, its formal inputs and outputs, and its
    opsets.
    """

    nodes: tuple[onnx.NodeProto, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    opsets: dict[str, int]


def schema_of(domain: str, name: str, version: int) -> onnx.defs.OpSchema | None:
    """The schema of an operator at an opset version; None when there is none."""
    try:
        return onnx.defs.get_schema(name, version, domain)
    except onnx.defs.SchemaError:
        return None


def has_function(domain: str, name: str, version: int) -> bool:
    """Whether ONNX defines the operator by a function."""
    schema = schema_of(domain, name, version)
    return schema is not None and (schema.has_function or schema.has_context_dependent_function)


def function_body(proto: onnx.NodeProto, version: int, inputs: Sequence[Value | None]) -> Body | None:
    """The function of a node; None when ONNX has none for these attributes and types."""
    schema = schema_of(proto.domain, proto.op_type, version)
    if schema is None:
        return None
    if schema.has_context_dependent_function:
        opset = max(
            (v for v in schema.context_dependent_function_opset_versions if v <= version), default=version
        )
        types = [_type(v) for v in inputs]
        data = schema.get_context_dependent_function_with_opset_version(
            opset, proto.SerializeToString(), types
        )
    elif schema.has_function:
        opset = max((v for v in schema.function_opset_versions if v <= version), default=version)
        data = schema.get_function_with_opset_version(opset)
    else:
        return None
    if not data:
        return None
    function = onnx.FunctionProto()
    function.ParseFromString(data)
    given = {a.name: a for a in proto.attribute}
    for name, attribute in schema.attributes.items():
        if name not in given and attribute.default_value.type:
            given[name] = attribute.default_value
    nodes = tuple(_bound(n, given) for n in function.node)
    opsets = {o.domain: o.version for o in function.opset_import} or {proto.domain: opset}
    return Body(nodes, tuple(function.input), tuple(function.output), opsets)


def local_functions(model: onnx.ModelProto) -> dict[tuple[str, str, str], onnx.FunctionProto]:
    """The model's own functions that stayed functions: those of another opset than the model's, or all where
    one has defaults of attributes.
    """
    return {(f.domain, f.name, f.overload): f for f in model.functions}


def local_body(proto: onnx.NodeProto, function: onnx.FunctionProto) -> Body:
    """A function of the model, for one of its calls."""
    given = {a.name: a for a in (*function.attribute_proto, *proto.attribute)}
    opsets = {o.domain: o.version for o in function.opset_import}
    return Body(
        tuple(_bound(n, given) for n in function.node), tuple(function.input), tuple(function.output), opsets
    )


def operand_problem(operator: str, inputs: Sequence[Value | None]) -> str | None:
    """What the specification asks of operands and the function does not look at; None when all fit."""
    if (
        operator in ("NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss")
        and len(inputs) > 2
        and inputs[0]
        and inputs[2]
    ):
        classes = inputs[0].shape[1:2]
        if inputs[2].shape != classes:
            return f"the weights {inputs[2].type} are not one for each of the classes {list(classes)}"
    return None


def _type(value: Value | None) -> bytes:
    if value is None:
        return bytes(onnx.TypeProto().SerializeToString())
    code = onnx.helper.np_dtype_to_tensor_dtype(value.dtype.numpy)
    return bytes(onnx.helper.make_tensor_type_proto(code, value.shape).SerializeToString())


def _bound(node: onnx.NodeProto, given: dict[str, onnx.AttributeProto]) -> onnx.NodeProto:
    """The node with references to the function's attributes replaced by their values; without those that are
    not given.
    """
    result = onnx.NodeProto()
    result.CopyFrom(node)
    del result.attribute[:]
    for attribute in node.attribute:
        if attribute.ref_attr_name:
            if attribute.ref_attr_name in given:
                copy = result.attribute.add()
                copy.CopyFrom(given[attribute.ref_attr_name])
                copy.name = attribute.name
            continue
        copy = result.attribute.add()
        copy.CopyFrom(attribute)
        if attribute.type == onnx.AttributeProto.GRAPH:
            del copy.g.node[:]
            copy.g.node.extend(_bound(n, given) for n in attribute.g.node)
    return result
