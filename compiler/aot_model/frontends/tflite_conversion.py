"""What the rule for one TFLite operator sees and says: its inputs, options and quantisation in, values of the
graph out.

A rule is a function `rule(n: Conversion) -> Value | list[Value]` registered under the name of its builtin
operator.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from aot_model.arithmetic.fixed_point import quantise_multiplier, round_away
from aot_model.frontends.tflite_file import File, FileOperator
from aot_model.frontends.tflite_tensors import Tensor
from aot_model.frontends.tflite_variables import Key, Variables
from aot_model.ir.graph import Graph
from aot_model.ir.operator import Operator, OperatorError
from aot_model.ir.types import MAX_BYTES, DType, Quantisation, elements_beside
from aot_model.ir.values import Value, constant
from aot_model.ops.elementwise import op
from aot_model.ops.movement import Transpose
from aot_model.ops.registry import Build, bounded
from aot_model.ops.requantise import Requantise, Rescale
from aot_model.ops.views import ReshapeTo
from aot_model.passes.fold_constants import folded

QUANTISED = (DType.INT8, DType.UINT8, DType.INT16)

Result = Value | Sequence[Value]
Rule = Callable[["Conversion"], Result]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Decorator: the rule for builtin operators of these names (or "CUSTOM:name")."""

    def register(function: Rule) -> Rule:
        for name in names:
            assert name not in RULES, name
            RULES[name] = function
        return function

    return register


class Host(Protocol):
    """The import that a rule is part of."""

    arithmetic: str
    file: File
    resized: bool
    """Whether inputs have other shapes than the file says."""
    imaginary: dict[Value, Value]
    """Real parts -> imaginary parts of complex values (tflite_spectra.py)."""
    pieces: dict[Value, Any]
    """Placeholders of slices whose size is computed -> what they are pieces of (tflite_pieces.py)."""

    def note(self, text: str) -> None:
        """Say something to the user that is no error."""

    def once(self, index: int) -> None:
        """Read a sub-graph that runs once, before the first run: assignments of constants."""

    def body(self, index: int, inputs: Sequence[Value]) -> Graph:
        """The operators of a sub-graph over these values, which it reads from the graph around it."""


class FoldingBuild(Build):
    """A Build whose nodes over constants are computed at once: shapes that the graph computes are known when
    needed.
    """

    def many(self, op: Operator, *inputs: Value | None, outputs: Sequence[str] = ()) -> list[Value]:
        results = super().many(op, *inputs, outputs=outputs)
        if any(elements_beside(v.shape) * v.dtype.size > MAX_BYTES for v in results):
            raise OperatorError(f"result {results[0].type} is larger than 2 GB", "E202")
        node = self.nodes[-1]
        data = folded(node)
        if data is None:
            return results
        self.nodes.pop()
        return [constant(v.name, d) for v, d in zip(results, data, strict=True)]


@dataclass(frozen=True, eq=False)
class Conversion:
    """One operator of the file, with its inputs as values of the graph."""

    operator: FileOperator
    inputs: tuple[Value | None, ...]
    in_tensors: tuple[Tensor | None, ...]
    out_tensors: tuple[Tensor, ...]
    build: Build
    variables: Variables
    host: Host
    subgraph: int = 0
    """Number of the sub-graph that the operator is in."""

    # --- inputs, outputs, options ---------------------------------------------------------------------------

    def has(self, k: int) -> bool:
        return k < len(self.inputs) and self.inputs[k] is not None

    def x(self, k: int = 0) -> Value:
        """An input that must be there."""
        value = self.inputs[k] if k < len(self.inputs) else None
        if value is None:
            raise OperatorError(f"input {k} is missing")
        return value

    def real(self, k: int = 0) -> Value:
        """An input that must be there, of a floating-point type."""
        value = self.x(k)
        if not value.dtype.is_float:
            raise OperatorError(f"{value.type} is not supported", "E202")
        return value

    def tensor(self, k: int = 0) -> Tensor:
        """The file's record of an input."""
        found = self.in_tensors[k] if k < len(self.in_tensors) else None
        if found is None:
            raise OperatorError(f"input {k} is missing")
        return found

    def data(self, k: int, what: str) -> np.ndarray:
        """A constant input."""
        value = self.x(k)
        if value.data is None:
            raise OperatorError(
                f"{what} must be known at compile time",
                "E203",
                "export the model with fixed shapes, or make the inputs that it comes from constants "
                "(--constant INPUT=VALUES)",
            )
        return value.data

    def ints(self, k: int, what: str) -> tuple[int, ...]:
        """A constant input of whole numbers."""
        return tuple(int(v) for v in self.data(k, what).reshape(-1))

    def out(self, k: int = 0) -> Tensor:
        if k >= len(self.out_tensors):
            raise OperatorError(f"output {k} is missing")
        return self.out_tensors[k]

    def declared_shape(self) -> tuple[int, ...]:
        """The shape that the file gives output 0, for operators whose inputs do not say it."""
        if self.host.resized and (self.out().dynamic or not self.out().shape):
            raise OperatorError(
                "the shape of the result is computed at run time",
                "E203",
                "convert the model with fixed shapes instead of --dim",
            )
        return self.out().shape

    def out_dtype(self, k: int = 0) -> DType:
        """The type of an output that is computed; less than 8 bits are for constants."""
        dtype = self.out(k).dtype
        if dtype is None or self.out(k).bits is not None:
            raise OperatorError(f"output of type {self.out(k).kind} is not supported", "E202")
        return dtype

    # --- variables ------------------------------------------------------------------------------------------

    def _key(self, k: int) -> Key:
        return "tensor", (self.subgraph, self.operator.inputs[k])

    def variable(self, k: int) -> Value:
        """What the variable tensor in input k holds now."""
        if k >= len(self.operator.inputs) or self.operator.inputs[k] < 0:
            raise OperatorError(f"input {k}, a state, is missing")
        tensor = self.in_tensors[k]
        assert tensor is not None
        return self.variables.read(self._key(k), tensor.name, tensor)

    def assign(self, k: int, value: Value) -> None:
        """Let the variable tensor in input k hold a value."""
        tensor = self.in_tensors[k]
        assert tensor is not None
        self.variables.assign(self._key(k), tensor.name, value)

    def kept(self, what: str, initial: np.ndarray) -> Value:
        """What the operator itself holds from one run to the next."""
        return self.variables.own(self._own(what), f"{self.build.prefix}.{what}", initial)

    def keep(self, what: str, value: Value) -> None:
        """Let the operator hold a value, in the place of what is `kept`."""
        self.variables.assign(self._own(what), f"{self.build.prefix}.{what}", value)

    def _own(self, what: str) -> Key:
        return "operator", (self.subgraph, self.operator.index, what)

    # --- quantisation ---------------------------------------------------------------------------------------

    def quantised(self, k: int = 0) -> bool:
        """Whether an input is a quantised tensor."""
        return self.x(k).dtype in QUANTISED and bool(_sound(self.tensor(k)).quantisation.scale)

    def q(self, k: int = 0) -> Quantisation:
        """Parameters of an input."""
        return _parameters(self.tensor(k))

    def q_out(self, k: int = 0) -> Quantisation:
        """Parameters of an output."""
        return _parameters(self.out(k))

    def scale(self, k: int = 0) -> float:
        """The scale of an input that has one."""
        return _single(self.tensor(k))[0]

    def zero(self, k: int = 0) -> int:
        """The zero point of an input that has one scale."""
        return _single(self.tensor(k))[1]

    def scale_out(self, k: int = 0) -> float:
        return _single(self.out(k))[0]

    def zero_out(self, k: int = 0) -> int:
        return _single(self.out(k))[1]

    def limits(self, activation: str = "NONE") -> tuple[int, int]:
        """The range of the result's integers under a fused activation."""
        if self.out_dtype() not in QUANTISED:
            raise OperatorError(f"a quantised result of {self.out_dtype().label} is not supported", "E202")
        low, high = self.out_dtype().limits
        bounds = ACTIVATION_RANGES.get(activation)
        if bounds is None:
            raise OperatorError(f"fused activation {activation} is not supported on integers", "E202")
        scale, zero = np.float32(self.scale_out()), self.zero_out()
        least, most = (None if b is None else zero + round_away(float(np.float32(b) / scale)) for b in bounds)
        low, high = low if least is None else max(low, least), high if most is None else min(high, most)
        if low > high:
            raise OperatorError(f"no value of the output's type is in the range of {activation}", "E302")
        return low, high

    def intermediate(self, k: int) -> tuple[float, int] | None:
        """The scale and the zero point of a result inside of the operator, where the file gives them."""
        found = [i for i in self.operator.intermediates[k : k + 1] if i >= 0]
        tensors = [self.host.file.subgraphs[self.subgraph].tensors[i] for i in found]
        return _single(tensors[0]) if tensors and _sound(tensors[0]).quantisation.scale else None

    def same_quantisation(self, *inputs: int) -> bool:
        """Whether inputs and output 0 have the same parameters, or none."""
        wanted = _sound(self.out()).quantisation
        return all(_sound(self.tensor(k)).quantisation == wanted for k in inputs)

    def as_they_are(self, *inputs: int) -> None:
        """For operators that compare or move integers: LiteRT and TensorFlow Lite Micro do so whatever
        the quantisation of inputs and output; a note where it differs.
        """
        if any(self.quantised(k) for k in inputs) and not self.same_quantisation(*inputs):
            self.host.note(
                f"operator {self.operator.index} ({self.operator.kind}): inputs and output have different "
                "quantisation; its integers stay as they are, as in LiteRT and TensorFlow Lite Micro"
            )

    def has_result(self, scale: float, zero: int) -> bool:
        """Whether the result is quantised with these, the only ones that some operators compute."""
        return abs(self.scale_out() / scale - 1) < 1e-3 and self.zero_out() == zero

    def needs_result(self, scale: float, zero: int) -> None:
        """OperatorError unless the result is quantised with these."""
        if not self.has_result(scale, zero):
            raise OperatorError(
                f"the result is {self.out_dtype().label} with scale {self.scale_out():g} and zero point "
                f"{self.zero_out()}; {self.operator.kind} has {scale:g} and {zero}",
                "E302",
                "quantise the model again",
            )

    # --- building -------------------------------------------------------------------------------------------

    def add(self, name: str, *inputs: Value | None) -> Value:
        """An element-wise operator without attributes, by its ONNX name."""
        return self.build(op(name), *inputs)

    def constant(self, data: object, dtype: DType | None = None) -> Value:
        """OperatorError when a table of sizes has more numbers than a program should hold."""
        bounded(
            np.asarray(data).size, sum(v.type.elements for v in self.inputs if v is not None and v.is_const)
        )
        return self.build.constant(data, dtype)

    def reshape(self, x: Value, shape: Sequence[int]) -> Value:
        return x if x.shape == tuple(shape) else self.build(ReshapeTo(tuple(shape)), x)

    def transpose(self, x: Value, perm: Sequence[int]) -> Value:
        """Axes in another order; a constant's data is moved now."""
        if x.data is not None:
            return constant(x.name, np.ascontiguousarray(x.data.transpose(tuple(perm))), x.quantisation)
        return self.build(Transpose(tuple(perm)), x)

    def requantise(
        self,
        acc: Value,
        reals: Sequence[float],
        limits: tuple[int, int],
        zero_point: int,
        to: DType,
        rounding: str = "double",
        x_zero_point: int = 0,
    ) -> Value:
        """acc times real factors (one, or one per channel of the last axis), to a quantised type."""
        _check_factor(max(reals), 14 if rounding == "wide" else 30)
        pairs = [quantise_multiplier(r) for r in (reals if len(set(reals)) > 1 else reals[:1])]
        multipliers, shifts = [m for m, _ in pairs], [s for _, s in pairs]
        if rounding == "wide":
            multipliers = [(m + (1 << 15)) >> 16 if m < 0x7FFF0000 else 0x7FFF for m in multipliers]
        node = Requantise(zero_point, *limits, to, rounding, x_zero_point)
        factors = [self.constant(v if len(v) > 1 else v[0], DType.INT32) for v in (multipliers, shifts)]
        return self.build(node, acc, *factors)

    def activate(self, x: Value, activation: str) -> Value:
        """A fused activation on floats."""
        if activation == "NONE":
            return x
        if activation == "RELU":
            return self.add("Relu", x)
        bounds = ACTIVATION_RANGES.get(activation)
        if bounds is None:
            raise OperatorError(f"fused activation {activation} is not supported", "E202")
        return self.clip(x, *bounds)

    def clip(self, x: Value, low: float | None, high: float | None) -> Value:
        bounds = [None if b is None else self.constant(b, x.dtype) for b in (low, high)]
        return self.build(op("Clip"), x, *bounds)


ACTIVATIONS = ("NONE", "RELU", "RELU_N1_TO_1", "RELU6", "TANH", "SIGN_BIT")
"""In the order of the schema."""

ACTIVATION_RANGES: dict[str, tuple[float | None, float | None]] = {
    "NONE": (None, None), "RELU": (0, None), "RELU_N1_TO_1": (-1, 1), "RELU6": (0, 6), "RELU_0_TO_1": (0, 1),
}  # fmt: skip


def activation(n: Conversion, options: str) -> str:
    """The fused activation of an operator with options of this kind."""
    code = n.operator.options.get(options, "FusedActivationFunction")
    return ACTIVATIONS[code] if 0 <= code < len(ACTIVATIONS) else f"number {code}"


def _check_factor(real: float, bits: int) -> None:
    """OperatorError for a factor that is not below 2^bits, which no shift makes."""
    if real >= 2.0**bits:
        raise OperatorError(
            f"the result's scale is too small: a factor of {real:g} leads to it, 2^{bits} is the most",
            "E302",
            "quantise the model again",
        )


def rescale(real: float, zero_point: int = 0) -> Rescale:
    """A zero point and a real factor."""
    _check_factor(real, 30)
    return Rescale(zero_point, *quantise_multiplier(real))


def _sound(t: Tensor) -> Tensor:
    """A tensor whose quantisation, if it has one, is valid."""
    if t.fault:
        raise OperatorError(t.fault, "E302", "quantise the model again")
    return t


def _parameters(t: Tensor) -> Quantisation:
    if not _sound(t).quantisation.scale:
        raise OperatorError(
            f"tensor {t.index} ('{t.name[:60]}') has no quantisation parameters",
            "E302",
            "quantise the model again",
        )
    return t.quantisation


def _single(t: Tensor) -> tuple[float, int]:
    q = _parameters(t)
    if len(q.scale) != 1:
        raise OperatorError(
            f"tensor {t.index} ('{t.name[:60]}') has {len(q.scale)} scales where one is needed", "E302"
        )
    return q.scale[0], q.zero_point[0]


def finite(x: float, what: str) -> float:
    """A number from the file that must be one."""
    if not math.isfinite(x):
        raise OperatorError(f"{what} is {x}", "E302")
    return x
