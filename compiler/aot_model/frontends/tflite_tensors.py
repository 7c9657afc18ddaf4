"""Tensors of a TFLite file: shape, data, quantisation, each checked against the file before it is used.

What only some operators need is not refused here: parameters of a quantisation that do not fit their tensor
become its `fault`, and whoever asks for them says it. Older converters give a bias the quantisation of the
weights beside it, axis and all, which nobody reads.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import flatbuffers.number_types as numbers
import ml_dtypes
import numpy as np
import tflite
from flatbuffers.table import Table

from aot_model.frontends.tflite_sparse import dense, sparsity
from aot_model.ir.types import MAX_BYTES, DType, Quantisation, elements_beside

MAX_RANK = 8
NO_QUANTISATION = Quantisation((), ())
_LEAST_NORMAL = 2.0**-126

_TYPE: dict[int, str] = {
    **{v: k for k, v in vars(tflite.TensorType).items() if isinstance(v, int)},
    19: "INT2",
    20: "UINT4",
}

DTYPES: dict[str, DType] = {
    "FLOAT32": DType.FLOAT32,
    "FLOAT16": DType.FLOAT16,
    "FLOAT64": DType.FLOAT64,
    "BFLOAT16": DType.BFLOAT16,
    "INT64": DType.INT64,
    "INT32": DType.INT32,
    "INT16": DType.INT16,
    "INT8": DType.INT8,
    "UINT64": DType.UINT64,
    "UINT32": DType.UINT32,
    "UINT16": DType.UINT16,
    "UINT8": DType.UINT8,
    "BOOL": DType.BOOL,
    "INT4": DType.INT8,
    "INT2": DType.INT8,
    "UINT4": DType.UINT8,
}

_PACKED = {"INT4": 4, "UINT4": 4, "INT2": 2}
"""Bits of the types of which a byte holds several, the first in its lowest bits."""

_BLOCKWISE = 2
"""Number of BlockwiseQuantization in the union QuantizationDetails."""


@dataclass(frozen=True, eq=False)
class Blocks:
    """Quantisation by blocks: a scale (and a zero point) for each piece of the tensor. Both have the tensor's
    rank, or stand for rows and pieces of rows."""

    scales: np.ndarray
    zeros: np.ndarray | None

    def dequantised(self, data: np.ndarray) -> np.ndarray:
        """scale * (data - zero point). ValueError when the pieces do not fit the tensor."""
        shape = self.scales.shape
        if len(shape) != data.ndim or any(
            d % max(s, 1) or not s for d, s in zip(data.shape, shape, strict=True)
        ):
            raise ValueError(f"scales {list(shape)} do not divide a tensor {list(data.shape)} into blocks")
        if self.zeros is not None and self.zeros.shape != shape:
            raise ValueError(f"zero points {list(self.zeros.shape)} do not fit scales {list(shape)}")
        wide = [
            np.asarray(a, dtype=np.float32) for a in (self.scales, 0 if self.zeros is None else self.zeros)
        ]
        for axis, (extent, pieces) in enumerate(zip(data.shape, shape, strict=True)):
            wide = [a if a.ndim == 0 else np.repeat(a, extent // pieces, axis) for a in wide]
        return np.asarray((data.astype(np.float32) - wide[1]) * wide[0], dtype=np.float32)


@dataclass(frozen=True, eq=False)
class Tensor:
    """A tensor of a sub-graph. `dtype` is None for RESOURCE, STRING and the like, `kind` is then its name."""

    index: int
    name: str
    kind: str
    dtype: DType | None
    shape: tuple[int, ...]
    signature: tuple[int, ...]
    """The shape with -1 for what the model leaves open; () when it leaves nothing open."""
    quantisation: Quantisation
    data: np.ndarray | None
    variable: bool
    fault: str = ""
    """Why the parameters of its quantisation cannot be used; they are NO_QUANTISATION then."""
    blocks: Blocks | None = None

    @property
    def dynamic(self) -> bool:
        return any(d < 0 for d in self.signature)

    @property
    def bits(self) -> int | None:
        """Of an integer that has less than a byte; None for other types."""
        return _PACKED.get(self.kind)


def short(text: str) -> str:
    """A text from the model, safe to show."""
    clean = "".join(c if c.isprintable() else "?" for c in text)
    return clean if len(clean) <= 80 else clean[:77] + "..."


def vector(owner: Any, name: str, most: int, size: int) -> tuple[Any, ...]:
    """A vector of numbers of at most `most` elements, in a file of `size` bytes."""
    length = getattr(owner, f"{name}Length")()
    if not 0 <= length <= min(most, size // 4):
        raise ValueError(f"{name} has {length} elements")
    return tuple(v.item() for v in getattr(owner, f"{name}AsNumpy")()) if length else ()


class TensorReader:
    """Makes tensors of the file's records. What is wrong goes to `problem(code, message, hint)`."""

    def __init__(self, data: bytes, model: Any, buffers: int, problem: Callable[..., None]) -> None:
        self.data = data
        self.model = model
        self.buffers = buffers
        self.problem = problem

    def all(self, records: Sequence[Any]) -> tuple[Tensor, ...]:
        """The tensors of a sub-graph."""
        tensors = [self._tensor(t, k) for k, t in enumerate(records)]
        for k, t in enumerate(records):
            q = t.Quantization()
            if q is not None and q.DetailsType():
                tensors[k] = self._with_blocks(tensors[k], q, tensors)
        return tuple(tensors)

    def _tensor(self, t: Any, index: int) -> Tensor:
        text = t.Name()
        name = text.decode("utf-8", "replace") if text else f"tensor{index}"
        kind = _TYPE.get(t.Type(), f"type {t.Type()}")
        dtype = DTYPES.get(kind)
        shape = vector(t, "Shape", MAX_RANK, len(self.data))
        signature = vector(t, "ShapeSignature", MAX_RANK, len(self.data))
        if any(d < 0 for d in shape):
            raise ValueError(f"tensor {index} ('{short(name)}') has shape {shape}")
        if dtype is not None and elements_beside(shape) * dtype.size > MAX_BYTES:
            raise ValueError(f"tensor {index} ('{short(name)}') of shape {shape} is larger than 2 GB")
        data = self._data(t, index, name, kind, dtype, shape)
        quantisation, fault = self._quantisation(t.Quantization(), index, name, dtype, shape, data)
        return Tensor(
            index, name, kind, dtype, shape, signature, quantisation, data, bool(t.IsVariable()), fault
        )

    # --- data -----------------------------------------------------------------------------------------------

    def _data(
        self, t: Any, index: int, name: str, kind: str, dtype: DType | None, shape: tuple[int, ...]
    ) -> np.ndarray | None:
        buffer = t.Buffer()
        if not 0 <= buffer < max(self.buffers, 1):
            raise ValueError(f"tensor {index} ('{short(name)}') is in buffer {buffer} of {self.buffers}")
        if self.buffers == 0:
            return None
        record = self.model.Buffers(buffer)
        if record.Offset() > 1:
            raw: np.ndarray = np.frombuffer(
                self.data, dtype=np.uint8, count=record.Size(), offset=record.Offset()
            )
        elif record.DataLength():
            raw = record.DataAsNumpy()
        else:
            # No data: computed at run time, or a constant of no elements.
            return (
                np.zeros(shape, dtype.numpy)
                if dtype is not None and buffer and math.prod(shape) == 0
                else None
            )
        if dtype is None:
            return None
        label = f"tensor {index} ('{short(name)}', {kind}{list(shape)})"
        if t.Sparsity() is None:
            flat = self._elements(raw, math.prod(shape), kind, dtype, label)
            return None if flat is None else flat.reshape(shape)
        levels = sparsity(t.Sparsity(), shape, len(self.data))
        flat = self._elements(raw, levels.count, kind, dtype, label)
        return None if flat is None else dense(flat, levels, shape)

    def _elements(
        self, raw: np.ndarray, count: int, kind: str, dtype: DType, label: str
    ) -> np.ndarray | None:
        """The first `count` elements of a buffer; None when it has less."""
        bits = _PACKED.get(kind, 8 * dtype.size)
        wanted = -(-count * bits // 8)
        if len(raw) < wanted:
            self.problem("E102", f"{label} needs {wanted} bytes, its buffer has {len(raw)}")
            return None
        if bits < 8:
            return _unpacked(raw[:wanted], count, bits, kind.startswith("U"))
        stored = np.dtype(ml_dtypes.bfloat16) if dtype is DType.BFLOAT16 else dtype.numpy.newbyteorder("<")
        if dtype is DType.BOOL:
            return np.asarray(raw[:wanted] != 0)
        return np.frombuffer(raw[:wanted].tobytes(), dtype=stored).astype(dtype.numpy, copy=False)

    # --- quantisation ---------------------------------------------------------------------------------------

    def _quantisation(
        self,
        q: Any,
        index: int,
        name: str,
        dtype: DType | None,
        shape: tuple[int, ...],
        data: np.ndarray | None,
    ) -> tuple[Quantisation, str]:
        """The affine parameters of a tensor (NO_QUANTISATION where it has none), and what is wrong with
        them.
        """
        if q is None or q.ScaleLength() == 0 or dtype is None or not dtype.is_integer:
            return NO_QUANTISATION, ""
        label = f"tensor {index} ('{short(name)}')"
        most = len(self.data) // 4
        if not 0 <= q.ScaleLength() <= most or not 0 <= q.ZeroPointLength() <= most:
            raise ValueError(f"{label} has {q.ScaleLength()} scales and {q.ZeroPointLength()} zero points")
        scales = vector(q, "Scale", most, len(self.data))
        zeros = vector(q, "ZeroPoint", most, len(self.data)) or (0,) * len(scales)
        if len(zeros) == 1:
            zeros = zeros * len(scales)
        axis = q.QuantizedDimension() if len(scales) > 1 else None
        if len(zeros) != len(scales):
            return NO_QUANTISATION, f"{label} has {len(scales)} scales and {len(zeros)} zero points"
        if axis is not None and not (0 <= axis < len(shape) and shape[axis] == len(scales)):
            return NO_QUANTISATION, (
                f"{label} of shape {list(shape)} has {len(scales)} scales along axis {axis}"
            )
        if 0 in scales and data is not None:
            scales = _scales_of_zeros(scales, zeros, axis, data)
        bad = next((s for s in scales if not (math.isfinite(s) and s > 0)), None)
        if bad is not None:
            return NO_QUANTISATION, f"{label} has scale {bad}, and a scale is a positive number"
        outside = next((z for z in zeros if not dtype.limits[0] <= z <= dtype.limits[1]), None)
        if outside is not None:
            return NO_QUANTISATION, f"{label} has a zero point outside {dtype.label}: {outside}"
        return Quantisation(scales, zeros, axis), ""

    def _with_blocks(self, tensor: Tensor, q: Any, tensors: Sequence[Tensor]) -> Tensor:
        """A tensor whose parameters are in other tensors; BlockwiseQuantization is a table {scales, zero
        points, size}.
        """
        label = f"tensor {tensor.index} ('{short(tensor.name)}')"
        if q.DetailsType() != _BLOCKWISE:
            return replace(
                tensor,
                quantisation=NO_QUANTISATION,
                fault=f"{label} has quantisation details of type {q.DetailsType()}, which is not supported",
            )
        table = q.Details()
        scales, zeros = (self._constant(table, slot, tensors) for slot in (4, 6))
        if scales is None:
            return replace(
                tensor, quantisation=NO_QUANTISATION, fault=f"the scales of {label} are not constant"
            )
        return replace(
            tensor,
            quantisation=NO_QUANTISATION,
            fault=f"{label} has a scale for each block",
            blocks=Blocks(scales, zeros),
        )

    def _constant(self, table: Table, slot: int, tensors: Sequence[Tensor]) -> np.ndarray | None:
        """The data of the tensor whose number is in a slot of a table; None when there is none."""
        at = table.Offset(slot)
        number = table.Get(numbers.Int32Flags, at + table.Pos) if at else 0
        return tensors[number].data if 0 <= number < len(tensors) else None


def _scales_of_zeros(
    scales: tuple[float, ...], zeros: tuple[int, ...], axis: int | None, data: np.ndarray
) -> tuple[float, ...]:
    """Scales with the least normal float instead of 0 where all elements of a constant are their zero point:
    converters write 0 for what has no range (the state that an unrolled LSTM begins with), and such elements
    are 0 in any scale.
    """
    parts = [data] if axis is None else np.moveaxis(data, axis, 0)
    return tuple(
        _LEAST_NORMAL if s == 0 and bool((part == z).all()) else s
        for s, z, part in zip(scales, zeros, parts, strict=True)
    )


def _unpacked(raw: np.ndarray, count: int, bits: int, unsigned: bool) -> np.ndarray:
    """Values of less than 8 bits, the lowest bits of each byte first."""
    parts = [(raw << (8 - bits - k)).astype(np.uint8) for k in range(0, 8, bits)]
    shifted = [p >> (8 - bits) if unsigned else p.view(np.int8) >> (8 - bits) for p in parts]
    return np.stack(shifted, axis=1).reshape(-1)[:count]
