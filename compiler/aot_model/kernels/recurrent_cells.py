"""Recurrent layers: what a layer is, which passes its cell takes, and what becomes of its gates' sums.

There are three forms of the last: scalars by any activation; quotients that are divided together
(aot_model/gates.h), where the processor's dialect says so; and, where there are functions of vectors, the
functions on vectors and the rest on scalars. The latter two take the default activations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from aot_model.c.float_vectors import FUNCTIONS, HEADER
from aot_model.c.literal import float_literal
from aot_model.c.text import CText
from aot_model.ir.types import DType
from aot_model.kernels.float32.dialect import VectorDialect

Activation = Callable[[str], str]


@dataclass(frozen=True)
class CellPass:
    """One pass over the panels. gates: rows of W and R that it takes; split_last: the last gate's products
    with x and with h are kept apart (reset gate after the product)."""

    gates: tuple[int, ...]
    split_last: bool = False

    @property
    def accumulators(self) -> int:
        return len(self.gates) + self.split_last


PASSES: dict[str, tuple[CellPass, ...]] = {
    "LSTM": (CellPass((0, 1, 2, 3)),),
    "GRU": (CellPass((0, 1)), CellPass((2,))),
    "GRU, reset after": (CellPass((0, 1, 2), split_last=True),),
    "RNN": (CellPass((0,)),),
}
GATES = {"LSTM": 4, "GRU": 3, "GRU, reset after": 3, "RNN": 1}


@dataclass(frozen=True)
class Recurrent:
    """One direction of a recurrent layer. Strides are in elements."""

    cell: str
    dtype: DType
    steps: int
    batch: int
    inputs: int
    hidden: int
    reverse: bool
    x_strides: tuple[int, int]
    """(time, batch) of x."""
    y_strides: tuple[int, int]
    """(time, batch) of y."""
    state_stride: int
    """Batch stride of initial and final states."""
    offset: int
    """Of this direction's row in the states; y begins at direction * hidden."""
    y_offset: int
    activations: tuple[Activation, ...]
    clip: float = 0.0
    couple: bool = False
    """Forget gate = 1 - input gate."""
    has: frozenset[str] = frozenset()
    """Which of lens, h0, c0, peephole, y, yh, yc are parameters."""
    direction: int = 0
    functions: tuple[str, ...] = ()
    """Operations of scalar_ops.py that the activations are; "" where one is more than that."""
    cell_clip: float = 0.0
    """Largest absolute value of the cell of an LSTM, where it is more than 0."""

    @property
    def macs(self) -> int:
        return self.steps * self.batch * GATES[self.cell] * self.hidden * (self.inputs + self.hidden)


_LOGISTIC = ("rational_logistic", "sigmoid")
_TANH = ("rational_tanh", "tanh")
_WITH_FUNCTIONS = {
    "LSTM": (_LOGISTIC, _TANH, _TANH),
    "GRU": (_LOGISTIC, _TANH),
    "GRU, reset after": (_LOGISTIC, _TANH),
    "RNN": (_TANH,),
}
"""The activations of which quotients and vectors are made."""


class Cells:
    """Writes what a panel's units make of their sums: of a[accumulator][unit]."""

    def __init__(self, layer: Recurrent, dialect: VectorDialect, text: CText) -> None:
        self.layer = layer
        self.text = text
        self.type = layer.dtype.c_type
        self.dialect = dialect
        known = len(layer.functions) == len(_WITH_FUNCTIONS[layer.cell]) and all(
            f in some for f, some in zip(layer.functions, _WITH_FUNCTIONS[layer.cell], strict=True)
        )
        plain = known and layer.dtype is DType.FLOAT32 and not layer.clip and not layer.couple
        plain = plain and "peephole" not in layer.has
        several = layer.cell != "RNN" or dialect.rounds_apart  # of one function nothing is divided together
        self.divides_together = plain and dialect.divides_together and several
        self.vectors = plain and dialect.functions

    @property
    def includes(self) -> frozenset[str]:
        """Headers, apart from those of the activations."""
        headers = (("aot_model/gates.h", self.divides_together), (HEADER, self.vectors))
        return frozenset(header for header, used in headers if used)

    def scales(self, one: CellPass) -> np.ndarray | None:
        """What weights and biases of a pass's gates are multiplied by: the units of aot_model/gates.h."""
        if not self.divides_together:
            return None
        of = {"LSTM": (1, 1, 1, 2), "GRU": (1, 1, 2), "GRU, reset after": (1, 1, 2), "RNN": (2,)}
        return np.asarray([of[self.layer.cell][g] * math.log2(math.e) for g in one.gates])

    def on_vectors(self, number: int, vectors: int) -> None:
        """Functions of sums that are vectors, before these are stored."""
        if not self.vectors:
            return
        gates = {"LSTM": (0, 0, 0, 1), "GRU": ((0, 0), (1,))[number], "RNN": (0,)}
        for v in range(vectors):
            if self.layer.cell == "GRU, reset after":
                self._apply("a0", v, 0)
                self._apply("a1", v, 0)
                self.text.line(f"a2_{v} = {self.dialect.fma(f'a1_{v}', f'a3_{v}', f'a2_{v}')};")
                self._apply("a2", v, 1)
                continue
            for accumulator, activation in enumerate(gates[self.layer.cell]):
                self._apply(f"a{accumulator}", v, activation)

    def _apply(self, name: str, v: int, activation: int) -> None:
        function = FUNCTIONS[self.layer.functions[activation]]
        self.text.line(f"{name}_{v} = {function.format(f'{name}_{v}')};")

    def together(self, number: int, row: int) -> None:
        """Of all units of a step, whose sums are in rows of a scratch array."""
        call = {
            "LSTM": ("lstm_units(sums, {row}, c, next, {n})",),
            "GRU": (
                "gru_gates(sums, {row}, h, update, gated, {n})",
                "gru_candidates(sums, update, h, next, {n})",
            ),
            "GRU, reset after": ("gru_units(sums, {row}, h, next, {n})",),
            "RNN": ("rnn_units(sums, next, {n})",),
        }[self.layer.cell][number]
        call = call.format(row=row, n=self.layer.hidden)
        if self.layer.cell_clip > 0:
            limit = float_literal(self.layer.cell_clip, self.layer.dtype)
            call = call.replace("lstm_units(", "lstm_clipped_units(").replace(")", f", {limit})")
        self.text.line(f"aot_model_{call};")

    def _clipped(self, cell: str) -> str:
        """The cell within its limits."""
        if not self.layer.cell_clip > 0:
            return cell
        limit, label = float_literal(self.layer.cell_clip, self.layer.dtype), self.layer.dtype.label
        return f"aot_model_min_{label}(aot_model_max_{label}({cell}, -{limit}), {limit})"

    def updates(self, number: int, units: int, vectors: int, bound: str) -> None:
        """Of all units of a panel, of which `bound` says how many there are."""
        text, d = self.text, self.dialect
        if self.vectors and self.layer.cell == "LSTM":
            text.line(f"float cells[{units}] = {{0}};")
            with text.block(f"for (int32_t j = 0; j < {bound}; j++)"):
                text.line(f"const int32_t u = p * {units} + j;")
                text.line(f"cells[j] = {self._clipped('a[2][j] * c[u] + a[0][j] * a[3][j]')};")
                text.line("c[u] = cells[j];")
            tanh = FUNCTIONS[self.layer.functions[2]]
            for v in range(vectors):
                at = f"&cells[{v * d.lanes}]"
                text.line(d.store(at, tanh.format(d.load(at))))
            with text.block(f"for (int32_t j = 0; j < {bound}; j++)"):
                text.line(f"next[p * {units} + j] = a[1][j] * cells[j];")
            return
        with text.block(f"for (int32_t j = 0; j < {bound}; j++)"):
            text.line(f"const int32_t u = p * {units} + j;")
            update = {
                "LSTM": (self._lstm,),
                "GRU": (self._gru_gates, self._gru_candidate),
                "GRU, reset after": (self._gru_reset_after,),
                "RNN": (self._rnn,),
            }
            update[self.layer.cell][number]()

    def _gate(self, name: str, value: str, activation: int) -> None:
        """A gate's value: clipped, activated."""
        if self.vectors:
            self.text.line(f"const float {name} = {value};")
            return
        if self.layer.clip > 0:
            clip = float_literal(self.layer.clip, self.layer.dtype)
            label = self.layer.dtype.label
            value = f"aot_model_max_{label}(aot_model_min_{label}({value}, {clip}), -{clip})"
        self.text.line(f"const {self.type} {name}_in = {value};")
        self.text.line(f"const {self.type} {name} = {self.layer.activations[activation](f'{name}_in')};")

    def _lstm(self) -> None:
        text, layer = self.text, self.layer
        h, peep = layer.hidden, "peephole" in layer.has
        base = layer.direction * 3 * h
        self._gate("i", "a[0][j]" + (f" + peephole[{base} + u] * c[u]" if peep else ""), 0)
        if layer.couple:
            text.line(f"const {self.type} f = 1 - i;")
        else:
            self._gate("f", "a[2][j]" + (f" + peephole[{base + 2 * h} + u] * c[u]" if peep else ""), 0)
        self._gate("g", "a[3][j]", 1)
        text.line(f"const {self.type} cell_new = {self._clipped('f * c[u] + i * g')};")
        self._gate("o", "a[1][j]" + (f" + peephole[{base + h} + u] * cell_new" if peep else ""), 0)
        text.line("c[u] = cell_new;")
        text.line(f"next[u] = o * {layer.activations[2]('cell_new')};")

    def _gru_reset_after(self) -> None:
        self._gate("z", "a[0][j]", 0)
        if not self.vectors:
            self._gate("r", "a[1][j]", 0)
        self._gate("g", "a[2][j]" + ("" if self.vectors else " + r * a[3][j]"), 1)
        self.text.line("next[u] = (1 - z) * g + z * h[u];")

    def _gru_gates(self) -> None:
        self._gate("z", "a[0][j]", 0)
        self._gate("r", "a[1][j]", 0)
        self.text.line("update[u] = z;")
        self.text.line("gated[u] = r * h[u];")

    def _gru_candidate(self) -> None:
        self._gate("g", "a[0][j]", 1)
        self.text.line("next[u] = (1 - update[u]) * g + update[u] * h[u];")

    def _rnn(self) -> None:
        self._gate("g", "a[0][j]", 0)
        self.text.line("next[u] = g;")
