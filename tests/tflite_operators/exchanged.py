"""TFLite files with tensors where others belong, of any type, rank and quantisation, numbers that no length
or axis is, and options besides.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import flatbuffers
import numpy as np
from ai_edge_litert import schema_py_generated as schema

Draw = np.random.Generator
CHANGES = 3
WHOLE = (0, 1, -1, 2, 7, 100_000, 2**31 - 1, -(2**31), 2**40, -(2**62))
REAL = (0.0, -1.0, 0.5, 1e-40, 1e30, 3.4e38, np.inf, -np.inf, np.nan)
TYPES = {
    schema.TensorType.FLOAT32: np.float32, schema.TensorType.INT32: np.int32, schema.TensorType.INT8: np.int8,
    schema.TensorType.INT64: np.int64, schema.TensorType.BOOL: np.bool_, schema.TensorType.INT16: np.int16,
    schema.TensorType.UINT8: np.uint8, schema.TensorType.FLOAT16: np.float16,
    schema.TensorType.UINT32: np.uint32, schema.TensorType.FLOAT64: np.float64,
}  # fmt: skip
SHAPES = ((), (1,), (3,), (2, 2), (0,), (1, 4, 1), (2, 3, 2, 2), (1, 2, 1, 2, 1, 2))


def _shape(tensor: Any) -> tuple[int, ...]:
    return () if tensor.shape is None else tuple(int(d) for d in tensor.shape)


def _numbers(model: Any, tensor: Any) -> np.ndarray | None:
    """A constant's, where its type is one of those above."""
    data = model.buffers[tensor.buffer].data if tensor.buffer < len(model.buffers) else None
    if data is None or tensor.type not in TYPES:
        return None
    array = np.frombuffer(bytes(bytearray(data)), TYPES[tensor.type])
    return array.reshape(_shape(tensor)) if array.size == np.prod(_shape(tensor)) else None


def _keep(model: Any, tensor: Any, array: np.ndarray) -> None:
    """In a buffer of its own: others may read the old one."""
    buffer = schema.BufferT()
    buffer.data = np.frombuffer(array.tobytes(), np.uint8)
    model.buffers.append(buffer)
    tensor.buffer, tensor.shape = len(model.buffers) - 1, np.asarray(array.shape, np.int32)


def _stranger(model: Any, rng: Draw) -> int:
    """Another tensor: its number. It is a constant, an input of the model, or nothing computes it."""
    graph, tensor = model.subgraphs[0], schema.TensorT()
    tensor.name, tensor.type = b"stranger", list(TYPES)[rng.integers(len(TYPES))]
    shape = SHAPES[rng.integers(len(SHAPES))]
    tensor.shape, tensor.buffer = np.asarray(shape, np.int32), 0
    if rng.random() < 0.5:
        pool = REAL if np.dtype(TYPES[tensor.type]).kind == "f" else (0, 1, 2, 3)
        numbers = np.asarray([pool[k] for k in rng.integers(len(pool), size=int(np.prod(shape)))])
        with np.errstate(all="ignore"):
            _keep(model, tensor, numbers.astype(TYPES[tensor.type]).reshape(shape))
    elif rng.random() < 0.9:
        graph.inputs = np.append(graph.inputs, len(graph.tensors)).astype(np.int32)
    if rng.random() < 0.4:
        tensor.quantization = _quantisation(shape, rng)
    graph.tensors.append(tensor)
    return len(graph.tensors) - 1


def _quantisation(shape: tuple[int, ...], rng: Draw) -> Any:
    """One scale, several, or such as no tensor has."""
    given = schema.QuantizationParametersT()
    count = int(rng.choice([1, 1, 0, 2, shape[-1] if shape else 1, shape[0] if shape else 1]))
    given.scale = np.asarray(rng.choice([0.5, 0.01, 3.0, *REAL], count), np.float32)
    given.zeroPoint = np.asarray(rng.choice([0, 0, 3, -128, 128, 2**40], count), np.int64)
    given.quantizedDimension = int(rng.choice([0, 0, 1, 3, -1, 2**31 - 1]))
    return given


def _operator(model: Any, rng: Draw) -> Any:
    graphs = [g for g in model.subgraphs if g.operators]
    graph = graphs[rng.integers(len(graphs))]
    return graph.operators[rng.integers(len(graph.operators))]


def _other_input(model: Any, rng: Draw) -> None:
    graph, operator = model.subgraphs[0], _operator(model, rng)
    given = np.array(operator.inputs if operator.inputs is not None else (), np.int32)
    at = int(rng.integers(len(given) + 1))
    other = _stranger(model, rng) if rng.random() < 0.6 else int(rng.integers(-1, len(graph.tensors)))
    if at == len(given) or rng.random() < 0.1:
        given = np.insert(given, at, other)
    elif rng.random() < 0.1:
        given = np.delete(given, at)
    else:
        given[at] = other
    operator.inputs = given.astype(np.int32)


def _other_output(model: Any, rng: Draw) -> None:
    graph, operator = model.subgraphs[0], _operator(model, rng)
    given = np.array(operator.outputs if operator.outputs is not None else (), np.int32)
    if len(given) and rng.random() < 0.7:
        tensor = graph.tensors[given[0]] if given[0] < len(graph.tensors) else graph.tensors[0]
        tensor.type = list(TYPES)[rng.integers(len(TYPES))]
        tensor.quantization = _quantisation(_shape(tensor), rng)
    elif len(given):
        given[rng.integers(len(given))] = rng.integers(-1, len(graph.tensors))
        operator.outputs = given


def _tensor(model: Any, rng: Draw) -> Any:
    graph = model.subgraphs[rng.integers(len(model.subgraphs))]
    return graph.tensors[rng.integers(len(graph.tensors))] if graph.tensors else model.subgraphs[0].tensors[0]


def _other_tensor(model: Any, rng: Draw) -> None:
    """Of another type, shape or quantisation."""
    tensor = _tensor(model, rng)
    array, what = _numbers(model, tensor), rng.integers(4)
    shape = _shape(tensor)
    if what == 0:
        tensor.quantization = _quantisation(shape, rng)
    elif what == 1:
        tensor.type = list(TYPES)[rng.integers(len(TYPES))]
        if array is not None:
            with np.errstate(all="ignore"):
                _keep(model, tensor, array.astype(TYPES[tensor.type]))
    else:
        near = [(1, *shape), shape[1:], (*shape, 1), (*shape[:-1], shape[-1] + 1) if shape else (2,)]
        shape = (*near, *SHAPES)[rng.integers(len(near) + len(SHAPES))]
        if array is not None:
            _keep(model, tensor, np.resize(array, shape))
        else:
            tensor.shape = np.asarray(shape, np.int32)


def _other_numbers(model: Any, rng: Draw) -> None:
    constants = [
        (t, a)
        for g in model.subgraphs
        for t in g.tensors
        if (a := _numbers(model, t)) is not None and 0 < a.size <= 100
    ]
    if not constants:
        return
    tensor, array = constants[rng.integers(len(constants))]
    numbers = np.array(array)
    pool: tuple[float, ...] = REAL
    if numbers.dtype.kind in "iu":
        limits = np.iinfo(numbers.dtype)
        pool = tuple(n for n in WHOLE if limits.min <= n <= limits.max)
    with np.errstate(all="ignore"):  # of the largest float32 in a float16
        if rng.random() < 0.5:
            numbers.reshape(-1)[rng.integers(numbers.size)] = pool[rng.integers(len(pool))]
        else:
            numbers[...] = pool[rng.integers(len(pool))]
    _keep(model, tensor, numbers)


def _other_option(model: Any, rng: Draw) -> None:
    operator = _operator(model, rng)
    table = operator.builtinOptions or operator.builtinOptions2
    names = sorted(k for k, v in vars(table).items() if isinstance(v, (bool, int, float))) if table else []
    if not names:
        return
    name = names[rng.integers(len(names))]
    value = getattr(table, name)
    if isinstance(value, bool):
        setattr(table, name, not value)
    elif isinstance(value, float):
        setattr(table, name, REAL[rng.integers(len(REAL))])
    else:
        small = "Type" in name or "type" in name or name in ("padding", "fusedActivationFunction", "mode")
        setattr(table, name, int(rng.integers(8)) if small else WHOLE[rng.integers(8)])


_CHANGES: tuple[Callable[[Any, Draw], None], ...] = (
    _other_input, _other_input, _other_tensor, _other_tensor, _other_numbers, _other_numbers, _other_option,
    _other_output,
)  # fmt: skip


def _packed(model: Any) -> bytes:
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def other_types(
    source: bytes, retypings: Callable[[list[int], Iterable[int]], Iterator[tuple[tuple[int, ...], int]]]
) -> Iterator[bytes]:
    """Files in which tensors have another type."""
    tensors = schema.ModelT.InitFromPackedBuf(source, 0).subgraphs[0].tensors
    for places, to in retypings([t.type for t in tensors], TYPES):
        model = schema.ModelT.InitFromPackedBuf(source, 0)
        for k in places:
            tensor = model.subgraphs[0].tensors[k]
            array = _numbers(model, tensor)
            tensor.type = to
            if array is not None:
                with np.errstate(all="ignore"):
                    _keep(model, tensor, array.astype(TYPES[to]))
        yield _packed(model)


def with_shapes(
    source: bytes, others: Callable[[list[tuple[tuple[int, ...], int]]], Iterator[list[tuple[int, ...]]]]
) -> Iterator[bytes]:
    """Files in which tensors that are no constants have others than their shapes and bytes per element."""
    model = schema.ModelT.InitFromPackedBuf(source, 0)
    tensors = [
        t for t in model.subgraphs[0].tensors if model.buffers[t.buffer].data is None and t.type in TYPES
    ]
    given = [(_shape(t), np.dtype(TYPES[t.type]).itemsize) for t in tensors]
    for shapes in others(given):
        for tensor, shape in zip(tensors, shapes, strict=True):
            tensor.shape, tensor.shapeSignature = np.asarray(shape, np.int32), None
        yield _packed(model)


def changed(source: bytes, rng: Draw) -> bytes:
    """The file after one to three changes; as it was, where they are no file."""
    model = schema.ModelT.InitFromPackedBuf(source, 0)
    for _ in range(int(rng.integers(1, CHANGES + 1))):
        _CHANGES[rng.integers(len(_CHANGES))](model, rng)
    try:
        return _packed(model)
    except (struct.error, TypeError, ValueError, OverflowError):  # a number that its field does not hold
        return source
