"""Inputs of an ONNX model: types with their dimensions bound, sequences and optionals taken apart.

`--dim` says what the file leaves open: NAME=N for a symbolic dimension, INPUT:AXIS=N for one without a name,
INPUT:length=N for a sequence or an optional. `--constant` makes an input a constant, so that shapes, axes and
numbers of turns that depend on it are known when the model is compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import onnx
import onnx.helper

from aot_model.c.names import printable
from aot_model.frontends.model import Bindings, given_elements
from aot_model.frontends.onnx_checks import shape_problem
from aot_model.frontends.onnx_structure import Items
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value, constant

NAMELESS = ("", "?", "-1", "None")
"""What writers put where a dimension has no name: two of them need not be equal."""

_OF_ITEMS = ("sequence_type", "optional_type")


def dimension_name(dim: Any) -> str:
    """The name of a symbolic dimension, empty when it has none."""
    return "" if dim.dim_param.strip() in NAMELESS else str(dim.dim_param)


def _dimensions(kind: onnx.TypeProto) -> list[Any]:
    """Those of a tensor, or of the elements of a sequence or an optional."""
    while (name := kind.WhichOneof("value")) in _OF_ITEMS:
        kind = getattr(kind, str(name)).elem_type
    return list(kind.tensor_type.shape.dim)


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
        """The value of an input, constant where --constant says so; None when there is a problem."""
        if f"{info.name}:length" in self.dims and info.type.WhichOneof("value") in _OF_ITEMS:
            return self._items(info)
        value = self._input(info)
        return self._constant(value) if value is not None and value.name in self.constants else value

    def check_all_used(self, inputs: Iterable[onnx.ValueInfoProto]) -> None:
        """A problem for what --dim and --constant name that no input has. A name behind a dimension that was
        refused is none.
        """
        named = sorted({dimension_name(d) for i in inputs for d in _dimensions(i.type)} - {""})
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
        try:
            elements = given_elements(self.constants.pop(value.name), value.type)
        except ValueError as error:
            self._problem(
                "E203", f"--constant for input '{printable(value.name)}', which is {value.type}: {error}"
            )
            return value
        self.notes.append(f"input '{printable(value.name)}' is a constant")
        return constant(value.name, elements)

    def _items(self, info: onnx.ValueInfoProto) -> Items:
        """A sequence or optional as so many inputs as --dim name:length=N says (an optional: 0 or 1, or its
        sequence's).
        """
        kind = info.type
        kind = kind.optional_type.elem_type if kind.HasField("optional_type") else kind
        key = f"{info.name}:length"
        count = self.dims[key]
        self.used.add(key)
        if not kind.HasField("sequence_type") and count > 1:
            self._problem(
                "E203", f"--dim {printable(key)}={count}: the optional '{printable(info.name)}' has 0 or 1"
            )
            return Items(())
        inner = kind.sequence_type.elem_type if kind.HasField("sequence_type") else kind
        values = [
            self._item(info.name if count == 1 else f"{info.name}_{k}", f"{info.name}:{k}", inner)
            for k in range(count)
        ]
        return Items(tuple(v for v in values if v is not None))

    def _item(self, name: str, key: str, kind: onnx.TypeProto) -> Value | None:
        """An element of a sequence; `key:AXIS=N` of --dim is an extent of it, also of one without a shape."""
        if kind.WhichOneof("value") == "tensor_type" and not kind.tensor_type.HasField("shape"):
            rank = 0
            while f"{key}:{rank}" in self.dims:
                rank += 1
            kind = onnx.helper.make_tensor_type_proto(kind.tensor_type.elem_type, [None] * rank)
            self.notes.append(
                f"input '{printable(name)}' has {rank} axes; more with --dim {printable(f'{key}:{rank}')}=N"
            )
        return self._input(onnx.ValueInfoProto(name=name, type=kind), key)

    def _input(self, info: onnx.ValueInfoProto, key: str = "") -> Value | None:
        """The value of a tensor. key: what --dim calls it, where that is not its name."""
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
            extent = self._dimension(dim, f"{key or info.name}:{position}", position, info.name)
            if extent is None:
                return None
            shape.append(extent)
        why = shape_problem(shape, dtype.size)
        if why:
            self._problem("E202", f"input '{printable(info.name)}' {why}")
            return None
        return Value(info.name, TensorType(dtype, tuple(shape)))

    def _dimension(self, dim: Any, key: str, position: int, name: str) -> int | None:
        if dim.HasField("dim_value") and dim.dim_value >= 0:
            return self._fixed(dim.dim_value, key, name)
        label = dimension_name(dim)
        key = label if label and label in self.dims else key
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

    def _fixed(self, extent: int, key: str, name: str) -> int:
        """An extent of the file. --dim may say it once more, not another."""
        if self.dims.get(key, extent) == extent:
            self.used.update({key} & self.dims.keys())
            return extent
        self.used.add(key)
        self._problem(
            "E203",
            f"--dim {printable(key)}={self.dims[key]}: the file says that input '{printable(name)}' has "
            f"{extent} there",
        )
        return extent
