"""Small TFLite models for tests, built in memory with the flatbuffer builder; nothing of them is checked."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import numpy as np
import tflite

INT8, INT32, FLOAT32, BOOL, INT16, INT64, UINT8, INT4, COMPLEX64, FLOAT16, UINT32, UINT64 = (
    getattr(tflite.TensorType, n)
    for n in (
        "INT8",
        "INT32",
        "FLOAT32",
        "BOOL",
        "INT16",
        "INT64",
        "UINT8",
        "INT4",
        "COMPLEX64",
        "FLOAT16",
        "UINT32",
        "UINT64",
    )
)
_DTYPES = {INT8: "int8", INT32: "int32", INT16: "int16", INT64: "int64", UINT8: "uint8", BOOL: "bool"}


@dataclass(frozen=True)
class Sparsity:
    """How a sparse constant is stored: levels are a size (dense) or (segments, indices)."""

    order: tuple[int, ...]
    levels: tuple[int | tuple[Sequence[int], Sequence[int]], ...]
    blocks: tuple[int, ...] = ()
    width: str = "int32"
    """Of segments and indices: or uint16, uint8."""


@dataclass(frozen=True)
class T:
    """A tensor: shape, element type, scales and zero points, data (bytes as they are, or an array)."""

    name: str
    shape: tuple[int, ...]
    type: int = INT8
    scale: Sequence[float] = (0.5,)
    zero: Sequence[int] = (0,)
    data: np.ndarray | bytes | None = None
    axis: int = 0
    variable: bool = False
    signature: tuple[int, ...] = ()
    blocks: tuple[int, int, int] | None = None
    """Numbers of the tensors with the scales and the zero points of blocks, and the size of a block."""
    sparsity: Sparsity | None = None


@dataclass(frozen=True)
class Op:
    """An operator: builtin name (or "CUSTOM:name"), tensor numbers, the options table and its fields."""

    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: str | None = None
    fields: dict[str, Any] = field(default_factory=dict)
    custom: bytes = b""
    intermediates: tuple[int, ...] = ()


def floats(name: str, *shape: int, data: np.ndarray | None = None) -> T:
    """A tensor of floats."""
    return T(name, shape, FLOAT32, scale=(), data=data)


def ints(name: str, data: object, type: int = INT32) -> T:
    """A constant of whole numbers."""
    array = np.asarray(data, dtype=_DTYPES[type])
    return T(name, array.shape, type, scale=(), data=array)


def _vector(
    b: flatbuffers.Builder, start: Callable[..., Any], items: Sequence[int], prepend: Callable[[int], Any]
) -> int:
    start(b, len(items))
    for item in reversed(items):
        prepend(item)
    return int(b.EndVector())


def _numbers(b: flatbuffers.Builder, values: Sequence[float], dtype: str) -> int:
    return int(b.CreateNumpyVector(np.asarray(values, dtype=dtype)))


@dataclass(frozen=True)
class G:
    """A sub-graph; inputs and outputs are tensor numbers."""

    tensors: Sequence[T]
    operators: Sequence[Op]
    inputs: Sequence[int]
    outputs: Sequence[int]


def build(
    tensors: Sequence[T],
    operators: Sequence[Op],
    inputs: Sequence[int],
    outputs: Sequence[int],
    *others: G,
    version: int = 3,
    signatures: Mapping[str, int] | None = None,
) -> bytes:
    """The bytes of a model of one sub-graph, and of others that its operators name by number, from 1 on.

    signatures: the names of sub-graphs that a program may run.
    """
    b = flatbuffers.Builder(1024)
    graphs = (G(tensors, operators, inputs, outputs), *others)
    made_buffers = [_buffer(b, None)]
    numbers = []
    for g in graphs:
        numbers.append(len(made_buffers))
        made_buffers += [_buffer(b, t.data) for t in g.tensors]
    kinds = list(dict.fromkeys(o.kind for g in graphs for o in g.operators))
    made = [_graph(b, g, first, kinds) for g, first in zip(graphs, numbers, strict=True)]
    codes = [_code(b, kind) for kind in kinds]
    graph_vector = _vector(b, tflite.ModelStartSubgraphsVector, made, b.PrependUOffsetTRelative)
    code_vector = _vector(b, tflite.ModelStartOperatorCodesVector, codes, b.PrependUOffsetTRelative)
    signed = [_signature(b, name, number) for name, number in (signatures or {}).items()]
    signature_vector = _vector(b, tflite.ModelStartSignatureDefsVector, signed, b.PrependUOffsetTRelative)
    buffer_vector = _vector(b, tflite.ModelStartBuffersVector, made_buffers, b.PrependUOffsetTRelative)
    tflite.ModelStart(b)
    tflite.ModelAddVersion(b, version)
    tflite.ModelAddOperatorCodes(b, code_vector)
    tflite.ModelAddSubgraphs(b, graph_vector)
    tflite.ModelAddBuffers(b, buffer_vector)
    if signed:
        tflite.ModelAddSignatureDefs(b, signature_vector)
    b.Finish(tflite.ModelEnd(b), b"TFL3")
    return bytes(b.Output())


def _signature(b: flatbuffers.Builder, name: str, number: int) -> int:
    key = b.CreateString(name)
    tflite.SignatureDefStart(b)
    tflite.SignatureDefAddSignatureKey(b, key)
    tflite.SignatureDefAddSubgraphIndex(b, number)
    return int(tflite.SignatureDefEnd(b))


def _buffer(b: flatbuffers.Builder, data: np.ndarray | bytes | None) -> int:
    raw = (
        None
        if data is None
        else b.CreateNumpyVector(
            np.frombuffer(data if isinstance(data, bytes) else data.tobytes(), dtype=np.uint8)
        )
    )
    tflite.BufferStart(b)
    if raw is not None:
        tflite.BufferAddData(b, raw)
    return int(tflite.BufferEnd(b))


def _tensor(b: flatbuffers.Builder, t: T, buffer: int) -> int:
    name, shape = b.CreateString(t.name), _numbers(b, t.shape, "int32")
    quantisation = sparsity = None
    signature = _numbers(b, t.signature, "int32") if t.signature else None
    if t.sparsity is not None:
        sparsity = _sparsity(b, t.sparsity)
    if t.blocks is not None:
        b.StartObject(3)  # BlockwiseQuantization
        for slot, number in enumerate(t.blocks):
            b.PrependInt32Slot(slot, number, 0)
        details = b.EndObject()
        tflite.QuantizationParametersStart(b)
        tflite.QuantizationParametersAddDetailsType(b, 2)
        tflite.QuantizationParametersAddDetails(b, details)
        quantisation = tflite.QuantizationParametersEnd(b)
    elif t.scale:
        scale, zero = _numbers(b, t.scale, "float32"), _numbers(b, t.zero, "int64")
        tflite.QuantizationParametersStart(b)
        tflite.QuantizationParametersAddScale(b, scale)
        tflite.QuantizationParametersAddZeroPoint(b, zero)
        tflite.QuantizationParametersAddQuantizedDimension(b, t.axis)
        quantisation = tflite.QuantizationParametersEnd(b)
    tflite.TensorStart(b)
    tflite.TensorAddName(b, name)
    tflite.TensorAddShape(b, shape)
    tflite.TensorAddType(b, t.type)
    tflite.TensorAddBuffer(b, buffer)
    tflite.TensorAddIsVariable(b, t.variable)
    if signature is not None:
        tflite.TensorAddShapeSignature(b, signature)
    if sparsity is not None:
        tflite.TensorAddSparsity(b, sparsity)
    if quantisation is not None:
        tflite.TensorAddQuantization(b, quantisation)
    return int(tflite.TensorEnd(b))


def _sparsity(b: flatbuffers.Builder, s: Sparsity) -> int:
    made = []
    kind = ("int32", "uint16", "uint8").index(s.width) + 1  # in the union of vectors
    vector = f"{s.width.title()}Vector"
    for level in s.levels:
        pair = None
        if not isinstance(level, int):
            pair = []
            for numbers in level:
                values = _numbers(b, numbers, s.width)
                getattr(tflite, f"{vector}Start")(b)
                getattr(tflite, f"{vector}AddValues")(b, values)
                pair.append(getattr(tflite, f"{vector}End")(b))
        tflite.DimensionMetadataStart(b)
        if pair is None:
            tflite.DimensionMetadataAddDenseSize(b, level)
        else:
            tflite.DimensionMetadataAddFormat(b, 1)
            tflite.DimensionMetadataAddArraySegmentsType(b, kind)
            tflite.DimensionMetadataAddArraySegments(b, pair[0])
            tflite.DimensionMetadataAddArrayIndicesType(b, kind)
            tflite.DimensionMetadataAddArrayIndices(b, pair[1])
        made.append(tflite.DimensionMetadataEnd(b))
    metadata = _vector(b, tflite.SparsityParametersStartDimMetadataVector, made, b.PrependUOffsetTRelative)
    order = _numbers(b, s.order, "int32")
    blocks = _numbers(b, s.blocks, "int32") if s.blocks else None
    tflite.SparsityParametersStart(b)
    tflite.SparsityParametersAddTraversalOrder(b, order)
    tflite.SparsityParametersAddDimMetadata(b, metadata)
    if blocks is not None:
        tflite.SparsityParametersAddBlockMap(b, blocks)
    return int(tflite.SparsityParametersEnd(b))


def _graph(b: flatbuffers.Builder, g: G, first_buffer: int, kinds: Sequence[str]) -> int:
    tensors = [_tensor(b, t, first_buffer + k) for k, t in enumerate(g.tensors)]
    operators = [_operator(b, o, kinds.index(o.kind)) for o in g.operators]
    ins, outs = _numbers(b, g.inputs, "int32"), _numbers(b, g.outputs, "int32")
    tensor_vector = _vector(b, tflite.SubGraphStartTensorsVector, tensors, b.PrependUOffsetTRelative)
    operator_vector = _vector(b, tflite.SubGraphStartOperatorsVector, operators, b.PrependUOffsetTRelative)
    tflite.SubGraphStart(b)
    tflite.SubGraphAddTensors(b, tensor_vector)
    tflite.SubGraphAddInputs(b, ins)
    tflite.SubGraphAddOutputs(b, outs)
    tflite.SubGraphAddOperators(b, operator_vector)
    return int(tflite.SubGraphEnd(b))


def _operator(b: flatbuffers.Builder, o: Op, code: int) -> int:
    options = None
    if o.options is not None:
        module = importlib.import_module(f"tflite.{o.options}")
        vectors = {
            k: _numbers(b, v, "float32" if any(isinstance(e, float) for e in v) else "int32")
            for k, v in o.fields.items()
            if isinstance(v, (list, tuple))
        }
        vectors |= {k: _numbers(b, v, v.dtype.name) for k, v in o.fields.items() if isinstance(v, np.ndarray)}
        vectors |= {k: b.CreateString(v) for k, v in o.fields.items() if isinstance(v, str)}
        getattr(module, f"{o.options}Start")(b)
        for name, value in o.fields.items():
            getattr(module, f"{o.options}Add{name}")(b, vectors.get(name, value))
        options = getattr(module, f"{o.options}End")(b)
    ins, outs = _numbers(b, o.inputs, "int32"), _numbers(b, o.outputs, "int32")
    custom = _numbers(b, list(o.custom), "uint8") if o.custom else None
    between = _numbers(b, o.intermediates, "int32") if o.intermediates else None
    tflite.OperatorStart(b)
    tflite.OperatorAddOpcodeIndex(b, code)
    tflite.OperatorAddInputs(b, ins)
    tflite.OperatorAddOutputs(b, outs)
    if custom is not None:
        tflite.OperatorAddCustomOptions(b, custom)
    if between is not None:
        tflite.OperatorAddIntermediates(b, between)
    if options is not None and not hasattr(tflite.BuiltinOptions, str(o.options)):
        tflite.OperatorAddBuiltinOptions2Type(b, getattr(tflite.BuiltinOptions2, str(o.options)))
        tflite.OperatorAddBuiltinOptions2(b, options)
    elif options is not None:
        tflite.OperatorAddBuiltinOptionsType(b, getattr(tflite.BuiltinOptions, o.options))
        tflite.OperatorAddBuiltinOptions(b, options)
    return int(tflite.OperatorEnd(b))


def _code(b: flatbuffers.Builder, kind: str) -> int:
    custom = b.CreateString(kind[7:]) if kind.startswith("CUSTOM:") else None
    number = tflite.BuiltinOperator.CUSTOM if custom is not None else getattr(tflite.BuiltinOperator, kind)
    tflite.OperatorCodeStart(b)
    tflite.OperatorCodeAddDeprecatedBuiltinCode(b, min(number, 127))
    tflite.OperatorCodeAddBuiltinCode(b, number)
    if custom is not None:
        tflite.OperatorCodeAddCustomCode(b, custom)
    return int(tflite.OperatorCodeEnd(b))
