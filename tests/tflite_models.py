"""Small TFLite models for tests, built in memory with the flatbuffer builder; nothing of them is checked."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import numpy as np
import tflite

INT8, INT32, FLOAT32, BOOL = (getattr(tflite.TensorType, n) for n in ("INT8", "INT32", "FLOAT32", "BOOL"))


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


@dataclass(frozen=True)
class Op:
    """An operator: builtin name (or "CUSTOM:name"), tensor numbers, the options table and its fields."""

    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    options: str | None = None
    fields: dict[str, Any] = field(default_factory=dict)


def _vector(b: flatbuffers.Builder, start: Callable[..., Any], items: Sequence[int], prepend: Callable[[int], Any]) -> int:
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


def build(tensors: Sequence[T], operators: Sequence[Op], inputs: Sequence[int], outputs: Sequence[int], *others: G, version: int = 3) -> bytes:
    """The bytes of a model of one sub-graph, and of others that its operators name by number, from 1 on."""
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
    buffer_vector = _vector(b, tflite.ModelStartBuffersVector, made_buffers, b.PrependUOffsetTRelative)
    tflite.ModelStart(b)
    tflite.ModelAddVersion(b, version)
    tflite.ModelAddOperatorCodes(b, code_vector)
    tflite.ModelAddSubgraphs(b, graph_vector)
    tflite.ModelAddBuffers(b, buffer_vector)
    b.Finish(tflite.ModelEnd(b), b"TFL3")
    return bytes(b.Output())


def _buffer(b: flatbuffers.Builder, data: np.ndarray | bytes | None) -> int:
    raw = None if data is None else b.CreateNumpyVector(np.frombuffer(data if isinstance(data, bytes) else data.tobytes(), dtype=np.uint8))
    tflite.BufferStart(b)
    if raw is not None:
        tflite.BufferAddData(b, raw)
    return int(tflite.BufferEnd(b))


def _tensor(b: flatbuffers.Builder, t: T, buffer: int) -> int:
    name, shape = b.CreateString(t.name), _numbers(b, t.shape, "int32")
    quantisation = None
    if t.scale:
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
    if quantisation is not None:
        tflite.TensorAddQuantization(b, quantisation)
    return int(tflite.TensorEnd(b))


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
        vectors = {k: _numbers(b, v, "int32") for k, v in o.fields.items() if isinstance(v, (list, tuple))}
        getattr(module, f"{o.options}Start")(b)
        for name, value in o.fields.items():
            getattr(module, f"{o.options}Add{name}")(b, vectors.get(name, value))
        options = getattr(module, f"{o.options}End")(b)
    ins, outs = _numbers(b, o.inputs, "int32"), _numbers(b, o.outputs, "int32")
    tflite.OperatorStart(b)
    tflite.OperatorAddOpcodeIndex(b, code)
    tflite.OperatorAddInputs(b, ins)
    tflite.OperatorAddOutputs(b, outs)
    if options is not None:
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
