"""Inputs of an ONNX model: types with their dimensions bound, sequences and optionals taken apart.

`--dim` says what the file leaves open: NAME=N for a symbolic dimension, INPUT:AXIS=N for one without a name,
INPUT:length=N for a sequence or an optional. `--constant` makes an input a constant, so that shapes, axes and
numbers of turns that depend on it are known when the model is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import onnx
import onnx.helper

from aot_model.c.names import printable
from aot_model.frontends.model import Bindings
from aot_model.frontends.onnx_checks import shape_problem
from aot_model.frontends.onnx_structure import Items
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value, constant

NAMELESS = ("", "?", "-1", "None")
"""What writers put where a dimension has no name: two of them need not be equal."""


def dimension_name(dim: Any) -> str:
    """The name of a symbolic dimension, empty when it has none."""
    return "" if dim.dim_param.strip() in NAMELESS else str(dim.dim_param)


class InputBinder:
    """Makes values of a model's inputs. What is wrong goes to `problem(code, message, hint=)`."""

    def __init__(
        self, bindings: Bindings, problem: Callable[..., None], dtype: Callable[[int, str], DType | None]
    ) -> None:
        self.dims = dict(bindings.dims)
        self.constants = dict(bindings.constants)
        self.used: set[str] = set()
        self.notes: list[str] = []
        self._problem = problem
        self._dtype = dtype

    def bind(self, info: onnx.ValueInfoProto) -> Value | Items | None:
        """The value of an input, constant where --dim says so; None when there is a problem."""
        value = self._items(info) or self._input(info)
        return self._constant(value) if isinstance(value, Value) and value.name in self.constants else value

    def check_all_used(self, inputs: Iterable[onnx.ValueInfoProto]) -> None:
        """A problem for what --dim and --constant name that no input has. A name behind a dimension that was
        refused is none.
        """
        named = sorted({dimension_name(d) for i in inputs for d in i.type.tensor_type.shape.dim} - {""})
        unknown = set(self.dims) - self.used - set(named)
        if unknown:
            has = f"it has: {', '.join(map(printable, named))}" if named else "it has none"
            self._problem("E203", f"--dim names unknown dimensions: {', '.join(sorted(unknown))}", hint=has)
        if self.constants:
            names = ", ".join(map(printable, sorted(self.constants)))
            self._problem("E203", f"--constant names unknown inputs: {names}")

    def _constant(self, value: Value) -> Value:
        """The input as the constant that --constant makes of it: a number for each element, or one for
        all.
        """
        given = self.constants.pop(value.name)
        if len(given) not in (1, value.type.elements):
            self._problem(
                "E203",
                f"--constant gives {len(given)} values for input '{printable(value.name)}', which is "
                f"{value.type}",
            )
            return value
        self.notes.append(f"input '{printable(value.name)}' is a constant")
        array = np.full(value.shape, given[0]) if len(given) == 1 else np.reshape(given, value.shape)
        return constant(value.name, array.astype(value.dtype.numpy))

    def _items(self, info: onnx.ValueInfoProto) -> Items | None:
        """A sequence or optional as so many inputs as --dim name:length=N says (an optional: 0 or 1, or its
        sequence's).
        """
        kind = info.type
        optional = kind.HasField("optional_type")
        kind = kind.optional_type.elem_type if optional else kind
        key = f"{info.name}:length"
        if key not in self.dims or not (optional or kind.HasField("sequence_type")):
            return None
        self.used.add(key)
        inner = kind.sequence_type.elem_type if kind.HasField("sequence_type") else kind
        values = []
        for k in range(self.dims[key]):
            item = onnx.ValueInfoProto(
                name=info.name if self.dims[key] == 1 else f"{info.name}_{k}", type=inner
            )
            given = {
                int(n.split(":")[2]): d for n, d in self.dims.items() if n.startswith(f"{info.name}:{k}:")
            }
            self.used.update(f"{info.name}:{k}:{d}" for d in given)
            rank = (
                len(inner.tensor_type.shape.dim)
                if inner.tensor_type.HasField("shape")
                else max(given, default=-1) + 1
            )
            shape = [
                given.get(
                    d, inner.tensor_type.shape.dim[d].dim_value if d < len(inner.tensor_type.shape.dim) else 1
                )
                for d in range(rank)
            ]
            dtype = self._dtype(inner.tensor_type.elem_type, f"input '{printable(item.name)}'")
            if dtype is not None:
                values.append(Value(item.name, TensorType(dtype, tuple(shape))))
        return Items(tuple(values))

    def _input(self, info: onnx.ValueInfoProto) -> Value | None:
        kind = info.type.WhichOneof("value")
        if kind != "tensor_type":
            self._problem(
                "E202",
                f"input '{printable(info.name)}' is a "
                f"{(kind or 'value without a type').replace('_type', '')}, not a tensor",
            )
            return None
        dtype = self._dtype(info.type.tensor_type.elem_type, f"input '{printable(info.name)}'")
        if dtype is None:
            return None
        if not info.type.tensor_type.HasField("shape"):
            self._problem(
                "E203",
                f"input '{printable(info.name)}' has no shape",
                hint="export the model with a shape for it",
            )
            return None
        shape = []
        for position, dim in enumerate(info.type.tensor_type.shape.dim):
            extent = self._dimension(dim, position, info.name)
            if extent is None:
                return None
            shape.append(extent)
        why = shape_problem(shape, dtype.size)
        if why:
            self._problem("E202", f"input '{printable(info.name)}' {why}")
            return None
        return Value(info.name, TensorType(dtype, tuple(shape)))

    def _dimension(self, dim: Any, position: int, name: str) -> int | None:
        if dim.HasField("dim_value") and dim.dim_value > 0:
            return int(dim.dim_value)
        if dim.HasField("dim_value") and dim.dim_value == 0 and not dim.dim_param:
            return 0
        label = dimension_name(dim)
        key = label if label and label in self.dims else f"{name}:{position}"
        called = f"dimension {position} ('{printable(label)}')" if label else f"dimension {position}"
        if key in self.dims:
            self.used.add(key)
            return self.dims[key]
        if position == 0:
            note = (
                f"{called} of input '{printable(name)}' is bound to 1; use --dim "
                f"{printable(label or key)}=N for another"
            )
            self.notes.append(note)
            return 1
        self._problem(
            "E203", f"{called} of input '{printable(name)}' is dynamic",
            hint=f"bind it: --dim {printable(label) if label else printable(key)}=N",
        )  # fmt: skip
        return None
