"""LSTM, GRU and RNN of ONNX: all directions, activations, layouts. The loops are in kernels/recurrent.py.

Source: ONNX operator specification, opsets 7 to 22.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from aot_model.c.statements import CWriter
from aot_model.ir.expr import Call, Expr, call, leaf
from aot_model.ir.operator import Inputs, Operator, OperatorError, Sample
from aot_model.ir.program import Access
from aot_model.ir.scalar_ops import APART, SCALAR_OPS
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.kernels.arguments import Argument
from aot_model.kernels.base import Scratch
from aot_model.kernels.float32.dialects import DIALECTS
from aot_model.kernels.recurrent import Panels, packing_text, panels_for
from aot_model.kernels.recurrent_cells import PASSES, Recurrent
from aot_model.kernels.site import Site
from aot_model.ops.activation import Elu, HardSigmoid, LeakyRelu, ThresholdedRelu
from aot_model.ops.elementwise import one, op, relu
from aot_model.ops.recurrent_call import INPUTS, RESULTS, call_recurrent, packed_weights
from aot_model.ops.registry import alike, operator, required

_Scalar = Callable[[Expr, float, float], Expr]


def _row(name: str) -> _Scalar:
    """An element-wise operator without attributes."""
    return lambda x, a, b: type(op(name)).meaning(x)  # type: ignore[attr-defined]


_ACTIVATIONS: dict[str, tuple[_Scalar, tuple[float | None, ...]]] = {
    # name (lower case): meaning, defaults of alpha and beta. None: must be given, as the standard has no
    # default, or ONNX Runtime another one (0).
    "relu": (lambda x, a, b: relu(x), ()),
    "tanh": (_row("Tanh"), ()),
    "sigmoid": (_row("Sigmoid"), ()),
    "softsign": (_row("Softsign"), ()),
    "softplus": (_row("Softplus"), ()),
    "affine": (lambda x, a, b: call("add", call("mul", x, one(x, a)), one(x, b)), (None, None)),
    "leakyrelu": (lambda x, a, b: LeakyRelu(a).scalar(x), (0.01,)),
    "thresholdedrelu": (lambda x, a, b: ThresholdedRelu(a).scalar(x), (None,)),
    "scaledtanh": (
        lambda x, a, b: call("mul", call("tanh", call("mul", x, one(x, b))), one(x, a)),
        (None, None),
    ),
    "hardsigmoid": (lambda x, a, b: HardSigmoid(a, b).scalar(x), (0.2, 0.5)),
    "elu": (lambda x, a, b: Elu(a).scalar(x), (1.0,)),
}


_LIBM = {**_ACTIVATIONS, "tanh": (_row("LibmTanh"), ()), "sigmoid": (_row("LibmSigmoid"), ())}


@dataclass(frozen=True)
class _Activations:
    """C texts of a direction's activations, and the headers that they need."""

    texts: tuple[Callable[[str], str], ...]
    functions: tuple[str, ...]
    headers: frozenset[str]


@dataclass(frozen=True)
class RecurrentAttributes(Operator):
    """The attributes that all recurrent operators have."""

    activation_alpha: tuple[float, ...] = ()
    activation_beta: tuple[float, ...] = ()
    activations: tuple[str, ...] = ()
    clip: float | None = None
    direction: str = "forward"
    hidden_size: int | None = None

    def activation_numbers(self, names: tuple[str, ...]) -> list[tuple[float, float]]:
        """(alpha, beta) of each activation, consumed in order by those that have them; else 0."""
        if self.clip is not None and not self.clip > 0:
            raise OperatorError(f"clip is {self.clip}, it should be more than 0")
        alphas, betas = list(self.activation_alpha), list(self.activation_beta)
        numbers = []
        for name in names:
            if name.lower() not in _ACTIVATIONS:
                raise OperatorError(f"unknown activation '{name}'", "E202")
            defaults = _ACTIVATIONS[name.lower()][1]
            alpha = (alphas.pop(0) if alphas else defaults[0]) if defaults else 0.0
            beta = (betas.pop(0) if betas else defaults[1]) if len(defaults) > 1 else 0.0
            if alpha is None or beta is None:
                missing = "activation_alpha" if alpha is None else "activation_beta"
                raise OperatorError(
                    f"the activation {name} has no default that runtimes agree on",
                    "E202",
                    f"give its number in {missing}",
                )
            numbers.append((alpha, beta))
        return numbers


@dataclass(frozen=True)
class _Recurrence(RecurrentAttributes):
    """What the three operators share. Inputs: x, W, R, B, sequence_lens, initial_h (LSTM: initial_c, P)."""

    gates: ClassVar[int] = 1
    defaults: ClassVar[tuple[str, ...]] = ("Tanh",)
    stores_itself: ClassVar[bool] = True
    functions: ClassVar[dict[str, tuple[_Scalar, tuple[float | None, ...]]]] = _ACTIVATIONS

    layout: int = 0

    @property
    def directions(self) -> int:
        return 2 if self.direction == "bidirectional" else 1

    def cell(self) -> str:
        return self.name

    def states(self) -> int:
        """Outputs that are states: the hidden one, and of an LSTM the cell's."""
        return 1

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x, w, r = (required(inputs, i) for i in range(3))
        if x.type.rank != 3 or w.type.rank != 3 or r.type.rank != 3:
            raise OperatorError(f"takes x, W and R of rank 3, not {x.type}, {w.type} and {r.type}")
        if not x.type.elements:
            raise OperatorError(f"a sequence without steps, sequences or inputs: {x.type}")
        if self.direction not in ("forward", "reverse", "bidirectional"):
            raise OperatorError(f"unknown direction '{self.direction}'")
        d, h, n = self.directions, r.shape[2], x.shape[2]
        if (
            w.shape != (d, self.gates * h, n)
            or r.shape != (d, self.gates * h, h)
            or (self.hidden_size or h) != h
        ):
            raise OperatorError(
                f"W {w.type} and R {r.type} do not fit {d} directions, {n} inputs and {h} units"
            )
        alike(*(v for k, v in enumerate(inputs) if k != 4))  # that has the lengths
        if not x.dtype.is_float:
            raise OperatorError(f"takes floats, not {x.dtype.label}", "E202")
        self._activations(0, x.dtype)
        steps, batch = (x.shape[1], x.shape[0]) if self.layout else (x.shape[0], x.shape[1])
        state = (batch, d, h) if self.layout else (d, batch, h)
        shapes = {3: (d, 2 * self.gates * h), 4: (batch,), 5: state, 6: state, 7: (d, 3 * h)}
        for k, shape in shapes.items():
            value = inputs[k] if k < len(inputs) else None
            if value is not None and value.shape != shape:
                raise OperatorError(f"input {k} is {value.type}, its shape should be {list(shape)}")
        y = (batch, steps, d, h) if self.layout else (steps, d, batch, h)
        return [TensorType(x.dtype, y), *[TensorType(x.dtype, state)] * self.states()]

    def reads_strided(self, inputs: Inputs, index: int, strides: tuple[int, ...]) -> bool:
        x = required(inputs)
        return index == 0 and (strides[2] == 1 or x.shape[2] == 1)

    def lower(self, site: Site) -> None:
        for direction in range(self.directions):
            self._lower(site, direction)

    def _layer(self, site: Site, direction: int, has: frozenset[str], activations: _Activations) -> Recurrent:
        x, r = site.input(0), site.input(2)
        d, h = self.directions, r.shape[2]
        steps, batch = (x.shape[1], x.shape[0]) if self.layout else (x.shape[0], x.shape[1])
        window = site.window(0)
        strides = window.strides
        return Recurrent(
            self.cell(),
            x.dtype,
            steps,
            batch,
            x.shape[2],
            h,
            self.direction == "reverse" or direction == 1,
            (strides[1], strides[0]) if self.layout else (strides[0], strides[1]),
            (d * h, steps * d * h) if self.layout else (d * batch * h, h),
            d * h if self.layout else h,
            direction * h if self.layout else direction * batch * h,
            direction * h if self.layout else direction * batch * h,
            activations.texts,
            self.clip or 0.0,
            bool(getattr(self, "input_forget", 0)),
            has,
            direction,
            activations.functions,
        )

    def _lower(self, site: Site, direction: int) -> None:
        x, w, r, b = site.input(0), site.input(1), site.input(2), site.node.input(3)
        values = {k: site.node.input(place) for k, place in INPUTS.items()}
        values |= {k: site.wanted(place) for k, place in RESULTS.items()}
        present = {k: v for k, v in values.items() if v is not None}
        dialect = DIALECTS[site.target.dialect()]
        activations = self._activations(direction, x.dtype, dialect.name == "apart")
        layer = self._layer(site, direction, frozenset(present), activations)
        panels = panels_for(layer, dialect)
        weights, prologue = self._weights(layer, panels, w, r, b, direction)
        call_recurrent(
            site, self.name.lower(), layer, panels, present, weights, activations.headers, prologue
        )

    def _weights(
        self, layer: Recurrent, panels: Panels, w: Value, r: Value, b: Value | None, direction: int
    ) -> tuple[list[Argument], str]:
        """Packed constants; or the unpacked inputs, scratch and the C that packs them at run time."""
        if w.data is not None and r.data is not None and (b is None or b.data is not None):
            nothing = np.zeros(2 * self.gates * layer.hidden, w.data.dtype)
            bias = nothing if b is None or b.data is None else b.data[direction]
            return packed_weights(layer, panels, w.data[direction], r.data[direction], bias), ""
        arguments = [Argument("wx", w), Argument("wr", r)]
        arguments += [Argument("bias", b)] if b is not None else []
        prologue = ""
        for number, one_pass in enumerate(PASSES[layer.cell]):
            units = panels.count * panels.units
            counts = {
                f"w{number}": units * len(one_pass.gates) * (layer.inputs + layer.hidden),
                f"b{number}": units * one_pass.accumulators,
            }
            for name, count in counts.items():
                scratch = Scratch(name, count * w.dtype.size, w.dtype.size, w.dtype.c_type)
                arguments.append(Argument(name, scratch, Access.SCRATCH))
            prologue += packing_text(layer, panels, number, one_pass, b is not None, direction)
        return arguments, prologue

    def _names(self) -> tuple[str, ...]:
        """Of the activations of all directions."""
        return self.activations or self.defaults * self.directions

    def _activations(self, direction: int, dtype: DType, apart: bool = False) -> _Activations:
        """The activations of a direction; alphas and betas are consumed in order by those that have them.

        apart: products and sums are rounded one by one, as those of the gates are.
        """
        names = self._names()
        if len(names) != len(self.defaults) * self.directions:
            raise OperatorError(
                f"{len(names)} activations for {self.directions} directions of {len(self.defaults)}"
            )
        headers: set[str] = set()
        texts: list[Callable[[str], str]] = []
        functions: list[str] = []
        for name, (alpha, beta) in zip(names, self.activation_numbers(names), strict=True):
            meaning = self.functions[name.lower()][0]
            value = meaning(leaf("x", dtype), alpha, beta)
            functions.append(
                value.op if isinstance(value, Call) and value.args == (leaf("x", dtype),) else ""
            )
            texts.append(_text_of(meaning, alpha, beta, dtype, headers, apart))
        mine = slice(direction * len(self.defaults), (direction + 1) * len(self.defaults))
        return _Activations(tuple(texts[mine]), tuple(functions[mine]), frozenset(headers))


def _text_of(
    meaning: _Scalar, alpha: float, beta: float, dtype: DType, headers: set[str], apart: bool
) -> Callable[[str], str]:
    def text(name: str) -> str:
        writer = CWriter(lambda c, t: t)
        value = meaning(leaf(name, dtype), alpha, beta)
        if apart and isinstance(value, Call) and value.op + APART in SCALAR_OPS:
            value = call(value.op + APART, *value.args)
        result = writer.text(value)
        headers.update(writer.headers)
        return f"({result})"

    text("x")
    return text


@operator("LSTM")
class LSTM(_Recurrence):
    """i, o, f = sigmoid(gates); c = f * c + i * tanh(g); h = o * tanh(c)."""

    gates: ClassVar[int] = 4
    defaults: ClassVar[tuple[str, ...]] = ("Sigmoid", "Tanh", "Tanh")

    input_forget: int = 0

    def states(self) -> int:
        return 2

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            *_samples(4, 8),
            *_samples(4, 3, initial=True, cell=True),
            _samples(4, 4, initial=True, cell=True, peephole=True)[0],
        ]


@operator("GRU")
class GRU(_Recurrence):
    """z, r = sigmoid(gates); g = tanh(x W + (r * h) R), or r * (h R) with linear_before_reset; h = (1 - z) g
    + z h.
    """

    gates: ClassVar[int] = 3
    defaults: ClassVar[tuple[str, ...]] = ("Sigmoid", "Tanh")

    linear_before_reset: int = 0

    def cell(self) -> str:
        return "GRU, reset after" if self.linear_before_reset else "GRU"

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            *_samples(3, 8),
            *_samples(3, 5, initial=True),
            *_samples(3, 5, initial=True, linear_before_reset=1),
        ]


@operator("RNN")
class RNN(_Recurrence):
    """h = tanh(x W + h R); ONNX Runtime takes the C library's functions here."""

    functions: ClassVar[dict[str, tuple[_Scalar, tuple[float | None, ...]]]] = _LIBM

    def _names(self) -> tuple[str, ...]:
        """The standard's default has two whatever the direction is, and ONNX Runtime writes it out: one
        direction uses the first.
        """
        names = super()._names()
        return names[:1] if len(names) == 2 and self.directions == 1 else names

    @classmethod
    def samples(cls) -> list[Sample]:
        return [*_samples(1, 8), *_samples(1, 3, initial=True), *_samples(1, 5, activations=("Relu", "Tanh"))]


def _samples(
    gates: int, hidden: int, initial: bool = False, cell: bool = False, peephole: bool = False, **more: Any
) -> list[Sample]:
    """Forward only: the reference evaluator of onnx knows no other direction. With weights constant, and as
    inputs.
    """
    rng = np.random.default_rng(hidden)

    def draw(*shape: int) -> np.ndarray:
        return np.asarray(rng.uniform(-1, 1, shape), dtype=np.float32)

    steps, batch, inputs = 5, 2, 3
    values: list[np.ndarray | None] = [
        draw(steps, batch, inputs),
        draw(1, gates * hidden, inputs),
        draw(1, gates * hidden, hidden),
        draw(1, 2 * gates * hidden),
    ]
    values += [None, draw(1, batch, hidden)] if initial else []
    values += [draw(1, batch, hidden)] if cell else []
    values += [draw(1, 3 * hidden)] if peephole else []
    attributes = {"hidden_size": hidden, **more}
    weights = frozenset({1, 2, 3})
    return [Sample(tuple(values), attributes, constants=c, outputs=2) for c in (weights, frozenset())]
