"""Inputs of a TFLite model: what its shape signatures leave open is bound by `--dim INPUT:AXIS=N`, and
`--constant` makes an input a constant. What nothing is said of has the extent that the file gives, as in an
interpreter that nobody resized.
"""

from __future__ import annotations

from collections.abc import Callable

from aot_model.frontends.model import Bindings, given_elements
from aot_model.frontends.tflite_tensors import Tensor, short
from aot_model.ir.types import MAX_BYTES, Quantisation, TensorType, elements_beside
from aot_model.ir.values import Value, constant


class TfliteInputs:
    """Makes values of a model's inputs. What is wrong goes to `problem(code, message, hint=)`."""

    def __init__(self, bindings: Bindings, problem: Callable[..., None]) -> None:
        self.dims = dict(bindings.dims)
        self.constants = dict(bindings.constants)
        self.notes: list[str] = []
        self.open: list[str] = []
        """Dimensions that can be bound."""
        self._problem = problem

    def bind(self, tensor: Tensor, label: str) -> Value | None:
        """The value of an input; None when there is a problem."""
        if tensor.dtype is None:
            self._problem(
                "E202", f"input '{short(tensor.name)}' has element type {tensor.kind}, which is not supported"
            )
            return None
        if tensor.fault:
            self._problem("E302", tensor.fault, hint="quantise the model again")
            return None
        shape = tuple(self._extent(tensor, label, axis) for axis in range(len(tensor.shape)))
        if elements_beside(shape) * tensor.dtype.size > MAX_BYTES:
            self._problem("E202", f"input '{short(label)}' of shape {list(shape)} is larger than 2 GB")
            return None
        value = Value(label, TensorType(tensor.dtype, shape), quantisation=_quantisation(tensor))
        return self._constant(value) if label in self.constants else value

    def _extent(self, tensor: Tensor, label: str, axis: int) -> int:
        if len(tensor.signature) != len(tensor.shape) or tensor.signature[axis] >= 0:
            return tensor.shape[axis]
        key = f"{label}:{axis}"
        self.open.append(key)
        if key in self.dims:
            return self.dims.pop(key)
        self.notes.append(
            f"dimension {axis} of input '{short(label)}' is {tensor.shape[axis]}, as in the file; use --dim "
            f"{short(key)}=N for another"
        )
        return tensor.shape[axis]

    def _constant(self, value: Value) -> Value:
        """The input as the constant that --constant makes of it: a number for each element, or one for
        all.
        """
        try:
            elements = given_elements(self.constants.pop(value.name), value.type)
        except ValueError as error:
            self._problem(
                "E203", f"--constant for input '{short(value.name)}', which is {value.type}: {error}"
            )
            return value
        self.notes.append(f"input '{short(value.name)}' is a constant")
        return constant(value.name, elements, value.quantisation)

    def finish(self) -> None:
        """Problems of what was given and fits no input."""
        for name in self.dims:
            where = (
                f"those that are: {', '.join(map(short, self.open))}"
                if self.open
                else ("its shapes are fixed: convert the model with the shape that you need")
            )
            self._problem("E203", f"--dim {short(name)}: the model leaves no such dimension open", hint=where)
        for name in self.constants:
            self._problem("E203", f"--constant {short(name)}: the model has no such input")


def _quantisation(tensor: Tensor) -> Quantisation | None:
    return tensor.quantisation if tensor.quantisation.scale else None
