"""The TFLite file: from bytes to plain records, with every access guarded.

The flatbuffer classes of the `tflite` package trust what they read: offsets may point anywhere. Here each index,
length and enumeration is checked against the file before it is used, so what leaves this module is consistent: indices
are in range, the data of a constant has the size of its tensor, quantisation fits the tensor.
Source: schema.fbs of TensorFlow Lite, version 3.
"""

from __future__ import annotations

import importlib
import math
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import ml_dtypes
import numpy as np
import tflite
from flatbuffers.table import Table

from aot_model.errors import CompileError, Problem, fail
from aot_model.ir.types import DType, Quantisation

MAX_RANK = 8
MAX_BYTES = 2**31 - 1
NO_QUANTISATION = Quantisation((), ())

_BUILTIN: dict[int, str] = {v: k for k, v in vars(tflite.BuiltinOperator).items() if isinstance(v, int)}
_TYPE: dict[int, str] = {v: k for k, v in vars(tflite.TensorType).items() if isinstance(v, int)}
_OPTIONS: dict[int, str] = {v: k for k, v in vars(tflite.BuiltinOptions).items() if isinstance(v, int)}
_OPTIONS2: dict[int, str] = {v: k for k, v in vars(tflite.BuiltinOptions2).items() if isinstance(v, int)}

DTYPES: dict[str, DType] = {
    "FLOAT32": DType.FLOAT32, "FLOAT16": DType.FLOAT16, "FLOAT64": DType.FLOAT64, "BFLOAT16": DType.BFLOAT16,
    "INT64": DType.INT64, "INT32": DType.INT32, "INT16": DType.INT16, "INT8": DType.INT8, "UINT64": DType.UINT64,
    "UINT32": DType.UINT32, "UINT16": DType.UINT16, "UINT8": DType.UINT8, "BOOL": DType.BOOL, "INT4": DType.INT8,
}  # fmt: skip

DAMAGE = (struct.error, IndexError, ValueError, TypeError, OverflowError, AttributeError, KeyError, MemoryError)
"""What reading a damaged flatbuffer may raise."""

_EMPTY_TABLE = Table(bytearray(b"\x04\x00\x04\x00\x04\x00\x00\x00"), 4)


@dataclass(frozen=True, eq=False)
class Tensor:
    """A tensor of a sub-graph. `dtype` is None for RESOURCE, STRING and the like, `kind` is then its name."""

    index: int
    name: str
    kind: str
    dtype: DType | None
    shape: tuple[int, ...]
    dynamic: bool
    quantisation: Quantisation
    data: np.ndarray | None
    variable: bool


@dataclass(frozen=True, eq=False)
class Options:
    """The attributes of an operator; those that the file does not have are the schema's defaults."""

    kind: str
    table: Table

    def get(self, kind: str, field_name: str) -> Any:
        """The field of an options table `kind`; its default when the operator has no options or other ones."""
        cls = getattr(importlib.import_module(f"tflite.{kind}"), kind)
        reader = cls()
        table = self.table if self.kind == kind else _EMPTY_TABLE
        reader.Init(table.Bytes, table.Pos)
        return getattr(reader, field_name)()

    def ints(self, kind: str, field_name: str) -> tuple[int, ...]:
        """A field that is a vector of numbers; () when it is absent."""
        if self.get(kind, f"{field_name}Length") == 0:
            return ()
        found = self.get(kind, f"{field_name}AsNumpy")
        if len(found) > 64:
            raise ValueError(f"{field_name} has {len(found)} elements")
        return tuple(int(v) for v in found)


@dataclass(frozen=True, eq=False)
class FileOperator:
    """One operator: tensor indices (-1: absent) and options. `kind` is the builtin's name or "CUSTOM:name"."""

    index: int
    kind: str
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    intermediates: tuple[int, ...]
    options: Options
    custom: bytes


@dataclass(frozen=True, eq=False)
class SubGraph:
    name: str
    tensors: tuple[Tensor, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    operators: tuple[FileOperator, ...]
    labels: dict[tuple[str, int], str] = field(default_factory=dict)
    """("input" or "output", tensor) -> the name that the model's signature gives it."""


@dataclass(frozen=True, eq=False)
class File:
    subgraphs: tuple[SubGraph, ...]


def parse(data: bytes, where: str) -> File:
    """The records of a file. CompileError E102, E202 or E302 with everything that is wrong."""
    problems: list[Problem] = []
    try:
        reader = _Reader(data, where, problems)
        file = reader.file()
    except DAMAGE as error:
        raise CompileError([Problem("E102", f"not a valid TFLite model: {short(str(error)) or type(error).__name__}", where), *problems]) from None
    if problems:
        raise CompileError(dict.fromkeys(problems))
    return file


def short(text: str) -> str:
    """A text from the model, safe to show."""
    clean = "".join(c if c.isprintable() else "?" for c in text)
    return clean if len(clean) <= 80 else clean[:77] + "..."


class _Reader:
    def __init__(self, data: bytes, where: str, problems: list[Problem]) -> None:
        self.data = data
        self.where = where
        self.problems = problems
        if len(data) < 16:
            raise ValueError("the file is too short")
        self.model = tflite.Model.GetRootAs(data, 0)

    def problem(self, code: str, message: str, hint: str = "") -> None:
        self.problems.append(Problem(code, message, self.where, hint))

    def count(self, length: int, what: str) -> int:
        """A number of records, each of which takes at least four bytes of the file."""
        if not 0 <= length <= len(self.data) // 4:
            raise ValueError(f"{length} {what} do not fit the file")
        return length

    def each(self, length: int, get: Callable[[int], Any], what: str) -> Iterator[Any]:
        for k in range(self.count(length, what)):
            yield get(k)

    def vector(self, owner: Any, name: str, most: int) -> tuple[Any, ...]:
        """A vector of numbers of at most `most` elements."""
        length = self.count(getattr(owner, f"{name}Length")(), name)
        if length > most:
            raise ValueError(f"{name} has {length} elements")
        return tuple(v.item() for v in getattr(owner, f"{name}AsNumpy")()) if length else ()

    def file(self) -> File:
        model = self.model
        if model.Version() != 3:
            raise fail("E102", f"version {model.Version()} of the TFLite format is not supported", where=self.where, hint="version 3 is")
        kinds = [self._kind(c) for c in self.each(model.OperatorCodesLength(), model.OperatorCodes, "operator codes")]
        self.buffers = self.count(model.BuffersLength(), "buffers")
        budget = len(self.data)
        subgraphs: list[SubGraph] = []
        for g in self.each(model.SubgraphsLength(), model.Subgraphs, "sub-graphs"):
            budget -= g.TensorsLength() + g.OperatorsLength()
            if budget < 0:
                raise ValueError("more tensors and operators than the file can hold")
            subgraphs.append(self._subgraph(g, len(subgraphs), kinds))
        if not subgraphs:
            raise ValueError("it has no sub-graph")
        for s in self.each(model.SignatureDefsLength(), model.SignatureDefs, "signatures"):
            self._signature(s, subgraphs)
        return File(tuple(subgraphs))

    def _kind(self, code: Any) -> str:
        number = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        name = _BUILTIN.get(number, f"builtin {number}")
        if name != "CUSTOM":
            return name
        text = code.CustomCode()
        return f"CUSTOM:{short(text.decode('utf-8', 'replace')) if text else '?'}"

    def _signature(self, signature: Any, subgraphs: list[SubGraph]) -> None:
        if not 0 <= signature.SubgraphIndex() < len(subgraphs):
            return
        graph = subgraphs[signature.SubgraphIndex()]
        for side, length, get in (("input", signature.InputsLength(), signature.Inputs), ("output", signature.OutputsLength(), signature.Outputs)):
            for entry in self.each(length, get, "signature entries"):
                name = entry.Name()
                if name:
                    graph.labels[side, entry.TensorIndex()] = name.decode("utf-8", "replace")

    # --- sub-graphs -------------------------------------------------------------------------------------------------

    def _subgraph(self, g: Any, number: int, kinds: list[str]) -> SubGraph:
        tensors = tuple(self._tensor(t, k) for k, t in enumerate(self.each(g.TensorsLength(), g.Tensors, "tensors")))
        name = (g.Name() or b"").decode("utf-8", "replace") or f"subgraph{number}"
        most = 2 * len(tensors) + 64

        def indices(owner: Any, field_name: str, what: str, optional: bool) -> tuple[int, ...]:
            result = self.vector(owner, field_name, most)
            for i in result:
                if not (-1 if optional else 0) <= i < len(tensors):
                    raise ValueError(f"{what} names tensor {i} of {len(tensors)}")
            return result

        operators = []
        for k, o in enumerate(self.each(g.OperatorsLength(), g.Operators, "operators")):
            if not 0 <= o.OpcodeIndex() < len(kinds):
                raise ValueError(f"operator {k} has code {o.OpcodeIndex()} of {len(kinds)}")
            kind = kinds[o.OpcodeIndex()]
            what = f"operator {k} ({kind})"
            custom = bytes(o.CustomOptionsAsNumpy()) if o.CustomOptionsLength() else b""
            operators.append(FileOperator(
                k, kind, indices(o, "Inputs", what, True), indices(o, "Outputs", what, False),
                indices(o, "Intermediates", what, True), self._options(o), custom,
            ))  # fmt: skip
        return SubGraph(name, tensors, indices(g, "Inputs", "the sub-graph", False), indices(g, "Outputs", "the sub-graph", False), tuple(operators))

    def _options(self, o: Any) -> Options:
        for number, table, names in ((o.BuiltinOptionsType(), o.BuiltinOptions(), _OPTIONS), (o.BuiltinOptions2Type(), o.BuiltinOptions2(), _OPTIONS2)):
            if number and table is not None:
                return Options(names.get(number, "NONE"), table)
        return Options("NONE", _EMPTY_TABLE)

    # --- tensors ----------------------------------------------------------------------------------------------------

    def _tensor(self, t: Any, index: int) -> Tensor:
        text = t.Name()
        name = text.decode("utf-8", "replace") if text else f"tensor{index}"
        kind = _TYPE.get(t.Type(), f"type {t.Type()}")
        dtype = DTYPES.get(kind)
        shape = self.vector(t, "Shape", MAX_RANK)
        signature = self.vector(t, "ShapeSignature", MAX_RANK)
        if any(d < 0 for d in shape):
            raise ValueError(f"tensor {index} ('{short(name)}') has shape {shape}")
        if dtype is not None and math.prod(shape) * dtype.size > MAX_BYTES:
            raise ValueError(f"tensor {index} ('{short(name)}') of shape {shape} is larger than 2 GB")
        if t.Sparsity() is not None:
            self.problem("E202", f"tensor {index} ('{short(name)}') is sparse", "convert the model without sparsity")
        data = self._data(t.Buffer(), index, name, kind, dtype, shape)
        quantisation = self._quantisation(t.Quantization(), index, name, dtype, shape)
        return Tensor(index, name, kind, dtype, shape, any(d < 0 for d in signature), quantisation, data, bool(t.IsVariable()))

    def _data(self, buffer: int, index: int, name: str, kind: str, dtype: DType | None, shape: tuple[int, ...]) -> np.ndarray | None:
        if not 0 <= buffer < max(self.buffers, 1):
            raise ValueError(f"tensor {index} ('{short(name)}') is in buffer {buffer} of {self.buffers}")
        if self.buffers == 0:
            return None
        record = self.model.Buffers(buffer)
        if record.Offset() > 1:
            raw: np.ndarray = np.frombuffer(self.data, dtype=np.uint8, count=record.Size(), offset=record.Offset())
        elif record.DataLength():
            raw = record.DataAsNumpy()
        else:
            # No data: computed at run time, or a constant of no elements.
            return np.zeros(shape, dtype.numpy) if dtype is not None and buffer and math.prod(shape) == 0 else None
        if dtype is None:
            return None
        count = math.prod(shape)
        wanted = (count + 1) // 2 if kind == "INT4" else count * dtype.size
        if len(raw) < wanted:
            self.problem("E102", f"tensor {index} ('{short(name)}', {kind}{list(shape)}) needs {wanted} bytes, its buffer has {len(raw)}")
            return None
        if kind == "INT4":
            return _unpack(raw[:wanted], count).reshape(shape)
        stored = np.dtype(ml_dtypes.bfloat16) if dtype is DType.BFLOAT16 else dtype.numpy.newbyteorder("<")
        if dtype is DType.BOOL:
            return np.asarray(raw[:wanted] != 0).reshape(shape)
        return np.frombuffer(raw[:wanted].tobytes(), dtype=stored).reshape(shape).astype(dtype.numpy, copy=False)

    def _quantisation(self, q: Any, index: int, name: str, dtype: DType | None, shape: tuple[int, ...]) -> Quantisation:
        """The affine parameters of a tensor, NO_QUANTISATION where it has none."""
        if q is None or q.ScaleLength() == 0 or dtype is None or not dtype.is_integer:
            return NO_QUANTISATION
        label = f"tensor {index} ('{short(name)}')"
        most = max([*shape, 1])
        if q.ScaleLength() > most or q.ZeroPointLength() > most:
            self.problem("E302", f"{label} of shape {list(shape)} has {q.ScaleLength()} scales and {q.ZeroPointLength()} zero points")
            return NO_QUANTISATION
        scales = self.vector(q, "Scale", most)
        zeros = self.vector(q, "ZeroPoint", most) or (0,) * len(scales)
        axis = q.QuantizedDimension() if len(scales) > 1 else None
        if len(zeros) == 1:
            zeros = zeros * len(scales)
        if axis is not None and not (0 <= axis < len(shape) and shape[axis] == len(scales)):
            self.problem("E302", f"{label} of shape {list(shape)} has {len(scales)} scales along axis {axis}")
        elif len(zeros) != len(scales):
            self.problem("E302", f"{label} has {len(scales)} scales and {len(zeros)} zero points")
        elif not all(math.isfinite(s) and s > 0 for s in scales) and dtype is not DType.INT32:
            bad = next(s for s in scales if not (math.isfinite(s) and s > 0))
            self.problem("E302", f"{label} has scale {bad}", "a scale is a positive number: quantise the model again")
        elif any(not dtype.limits[0] <= z <= dtype.limits[1] for z in zeros):
            self.problem("E302", f"{label} has a zero point outside {dtype.label}: {next(z for z in zeros if not dtype.limits[0] <= z <= dtype.limits[1])}")
        else:
            return Quantisation(scales, zeros, axis)
        return NO_QUANTISATION


def _unpack(raw: np.ndarray, count: int) -> np.ndarray:
    """Signed 4-bit values, the lower half of each byte first."""
    low, high = (raw << 4).astype(np.uint8).view(np.int8) >> 4, raw.view(np.int8) >> 4
    return np.stack([low, high], axis=1).reshape(-1)[:count]
