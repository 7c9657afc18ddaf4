"""Recurrent cells: LSTM, GRU and simple RNN over a sequence, in one function.

Weights are packed into panels of a few units. A panel holds all gates of its units, input weights first, then
recurrent ones, in exactly the order in which the loops read them:

    panel p: for k in inputs: [gate][unit]   for k in hidden: [gate][unit]

so a panel is one pass over x(t) and h(t-1) with every gate's accumulator in a register, and the new state of
its units follows at once. A GRU whose reset gate acts before the recurrent product needs two passes: (z, r),
then the candidate. h(t-1) is read where h was stored in the step before: in the output Y, or alternately in
two scratch rows.
"""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np

from aot_model.c.literal import float_literal
from aot_model.c.text import CText
from aot_model.ir.types import DType
from aot_model.kernels.float32.dialect import VectorDialect
from aot_model.kernels.float32.dialects import SCALAR
from aot_model.kernels.recurrent_cells import GATES, PASSES, CellPass, Cells, Recurrent

FEW = 8
"""Sums of a panel that are few: to come round takes a sixth of a turn."""


@dataclass(frozen=True)
class Panels:
    """How units are grouped: `vectors` vectors of the dialect's lanes in a panel."""

    dialect: VectorDialect
    vectors: int
    hidden: int

    @property
    def units(self) -> int:
        return self.vectors * self.dialect.lanes

    @property
    def count(self) -> int:
        return -(-self.hidden // self.units)

    @property
    def padded(self) -> int:
        return self.count * self.units


def panels_for(layer: Recurrent, dialect: VectorDialect) -> Panels:
    """The panel with the least padding, the widest of those, within the registers."""
    if layer.dtype is not DType.FLOAT32:
        dialect = SCALAR
    widest = max(p.accumulators for p in PASSES[layer.cell])
    if dialect.lanes > layer.hidden:
        dialect = SCALAR
    most = min(16, dialect.registers - 2) // widest
    choices = [v for v in (1, 2, 4, 8, 16) if v <= most]
    return min((Panels(dialect, v, layer.hidden) for v in choices), key=lambda p: (p.padded, -p.vectors))


def pack_weights(layer: Recurrent, panels: Panels, one: CellPass, w: np.ndarray, r: np.ndarray) -> np.ndarray:
    """[panel][k][gate][unit] of W [gates * hidden, inputs] and R [gates * hidden, hidden], padded with
    zeros.
    """
    h, u, n = layer.hidden, panels.units, panels.count
    scales = Cells(layer, panels.dialect, CText()).scales(one)
    both = np.concatenate([w.reshape(-1, h, w.shape[-1]), r.reshape(-1, h, h)], axis=2)[list(one.gates)]
    padded = np.zeros((len(one.gates), n * u, both.shape[2]), dtype=w.dtype)
    padded[:, :h] = both if scales is None else both * scales[:, None, None]
    return np.ascontiguousarray(padded.reshape(len(one.gates), n, u, -1).transpose(1, 3, 0, 2))


def pack_bias(layer: Recurrent, panels: Panels, one: CellPass, b: np.ndarray) -> np.ndarray:
    """[panel][accumulator][unit] of B [2 * gates * hidden]: input and recurrent biases are added where they
    can be.
    """
    h, u, n = layer.hidden, panels.units, panels.count
    input_bias, recurrent = b.reshape(2, -1, h)
    rows = [input_bias[g] + recurrent[g] for g in one.gates]
    if one.split_last:
        rows[-1:] = [input_bias[one.gates[-1]], recurrent[one.gates[-1]]]
    padded = np.zeros((len(rows), n * u), dtype=b.dtype)
    scales = Cells(layer, panels.dialect, CText()).scales(one)
    if scales is not None:
        rows = [row * scales[min(k, len(scales) - 1)] for k, row in enumerate(rows)]
    padded[:, :h] = np.stack(rows)
    return np.ascontiguousarray(padded.reshape(len(rows), n, u).transpose(1, 0, 2))


def packing_text(
    layer: Recurrent, panels: Panels, number: int, one: CellPass, has_bias: bool, direction: int
) -> str:
    """C that packs weights which are not constants, at the start of a run."""
    h, i, g, u = layer.hidden, layer.inputs, GATES[layer.cell], panels.units
    text = CText()
    k_all = i + h
    first = one.gates[0]
    scales = Cells(layer, panels.dialect, text).scales(one)
    with text.loop("p", str(panels.count)), text.loop("j", str(u)):
        text.line(f"const int32_t unit = p * {u} + j;")
        with text.loop("g", str(len(one.gates))):
            text.line(f"const int32_t row = (g + {first}) * {h} + unit;")
            times = "" if scales is None else f" * {_choice('g', scales)}"
            target = f"w{number}[((p * {k_all} + k) * {len(one.gates)} + g) * {u} + j]"
            with text.loop("k", str(i)):
                text.line(f"{target} = unit < {h} ? wx[{direction * g * h * i} + row * {i} + k]{times} : 0;")
            with text.block(f"for (int32_t k = {i}; k < {k_all}; k++)"):
                text.line(
                    f"{target} = unit < {h} ? wr[{direction * g * h * h} + row * {h} + k - {i}]{times} : 0;"
                )
        with text.loop("a", str(one.accumulators)):
            split = one.split_last
            gate = f"(a < {len(one.gates)} ? a : {len(one.gates) - 1})" if split else "a"
            base = direction * 2 * g * h
            if not has_bias:
                value = "0"
            else:
                text.line(f"const int32_t row = ({gate} + {first}) * {h} + unit;")
                both = f"bias[{base} + row] + bias[{base + g * h} + row]"
                last = len(one.gates) - 1
                apart = f"a == {last} ? bias[{base} + row] : a > {last} ? bias[{base + g * h} + row] : {both}"
                times = "" if scales is None else f" * {_choice(gate, scales)}"
                value = f"unit < {h} ? ({apart if split else both}){times} : 0"
            text.line(f"b{number}[(p * {one.accumulators} + a) * {u} + j] = {value};")
    return str(text)


def _choice(gate: str, scales: np.ndarray) -> str:
    """C of a gate's scale; only the last one's is another."""
    first, last = (float_literal(scale, DType.FLOAT32) for scale in (scales[0], scales[-1]))
    return first if first == last else f"({gate} == {len(scales) - 1} ? {last} : {first})"


class _Writer:
    """Writes the body of one direction."""

    def __init__(self, layer: Recurrent, panels: Panels) -> None:
        self.layer = layer
        self.panels = panels
        self.text = CText()
        self.type = layer.dtype.c_type
        self.cells = Cells(layer, panels.dialect, self.text)

    def body(self) -> str:
        layer, text = self.layer, self.text
        h, has = layer.hidden, layer.has
        with text.loop("n", str(layer.batch)):
            state = (
                f"n * {layer.state_stride} + {layer.offset}"
                if layer.offset
                else (f"n * {layer.state_stride}")
            )
            if "lens" in has:
                text.line(
                    f"const int32_t steps = lens[n] < 0 ? 0 : lens[n] > {layer.steps} ? {layer.steps} : "
                    "(int32_t)lens[n];"
                )
            steps = "steps" if "lens" in has else str(layer.steps)
            if "h0" in has:
                text.line(f"const {self.type} *h = h0 + {state};")
            else:
                text.line(f"const {self.type} *h = zeros;")
                text.line(f"memset(zeros, 0, {h} * sizeof(*zeros));")
            if layer.cell == "LSTM":
                self._cell_state(state)
            if "y" not in has:
                text.line(f"{self.type} *next = rows;")
            with text.loop("s", steps):
                time = f"{steps} - 1 - s" if layer.reverse else "s"
                text.line(
                    f"const int32_t t = {time};" if layer.reverse or "y" in has else "const int32_t t = s;"
                )
                text.line(
                    f"const {self.type} *const xt = x + t * {layer.x_strides[0]} + n * {layer.x_strides[1]};"
                )
                if "y" in has:
                    text.line(
                        f"{self.type} *const next = y + t * {layer.y_strides[0]} + n * {layer.y_strides[1]} "
                        f"+ {layer.y_offset};"
                    )
                for number, one in enumerate(PASSES[layer.cell]):
                    self._pass(number, one)
                text.line("h = next;")
                if "y" not in has:
                    text.line(f"next = next == rows ? rows + {h} : rows;")
            if "y" in has and "lens" in has:
                with text.block(f"for (int32_t t = steps; t < {layer.steps}; t++)"):
                    text.line(
                        f"memset(y + t * {layer.y_strides[0]} + n * {layer.y_strides[1]} + {layer.y_offset}, "
                        f"0, {h} * sizeof(*y));"
                    )
            if "yh" in has:
                text.line(f"memcpy(yh + {state}, h, {h} * sizeof(*h));")
            if "lens" in has:
                # Of an empty sequence the final states are zeros, as in ONNX Runtime, whatever they began as.
                states = [f"yh + {state}"] if "yh" in has and "h0" in has else []
                states += ["c"] if "yc" in has and "c0" in has else []
                if states:
                    with text.block("if (steps == 0)"):
                        for at in states:
                            text.line(f"memset({at}, 0, {h} * sizeof(*h));")
        return str(text)

    def _cell_state(self, state: str) -> None:
        text, has, h = self.text, self.layer.has, self.layer.hidden
        text.line(f"{self.type} *const c = {'yc + ' + state if 'yc' in has else 'cell'};")
        text.line(
            f"memcpy(c, c0 + {state}, {h} * sizeof(*c));"
            if "c0" in has
            else f"memset(c, 0, {h} * sizeof(*c));"
        )

    def _pass(self, number: int, one: CellPass) -> None:
        """All panels of one pass."""
        layer, text, panels = self.layer, self.text, self.panels
        d, vectors, count = panels.dialect, panels.vectors, one.accumulators
        vector_type = d.ctype if d.lanes > 1 else self.type
        hidden = "gated" if number == 1 else "h"
        text.line(f"const {self.type} *w{number}k = w{number};")
        with text.loop("p", str(panels.count)):
            for a in range(count):
                for v in range(vectors):
                    at = (a * vectors + v) * d.lanes
                    base = f"b{number} + p * {count * panels.units}"
                    load = (
                        d.load(f"{base} + {at}")
                        if d.lanes > 1
                        else f"b{number}[p * {count * panels.units} + {at}]"
                    )
                    text.line(f"{vector_type} a{a}_{v} = {load};")
            shared = len(one.gates) - 1
            for source, length, last in (("xt", layer.inputs, shared), (hidden, layer.hidden, count - 1)):
                gates = [last if g == shared else g for g in range(len(one.gates))]
                sums = [f"a{a}_{v}" for a in gates for v in range(vectors)]
                self._products(f"w{number}k", source, length, sums)
            if self.cells.divides_together:
                for a in range(count):
                    for v in range(vectors):
                        text.line(f"sums[{a * panels.padded + v} + p * {panels.units}] = a{a}_{v};")
            else:
                self._update(number, count)
        if self.cells.divides_together:
            self.cells.together(number, panels.padded)

    def _update(self, number: int, count: int) -> None:
        """The units of a panel, of its sums."""
        layer, text, panels = self.layer, self.text, self.panels
        d, vectors = panels.dialect, panels.vectors
        text.line(f"{self.type} a[{count}][{panels.units}];")
        self.cells.on_vectors(number, vectors)
        for a in range(count):
            for v in range(vectors):
                text.line(
                    f"{d.store(f'&a[{a}][{v * d.lanes}]', f'a{a}_{v}')}"
                    if d.lanes > 1
                    else f"a[{a}][{v}] = a{a}_{v};"
                )
        bound = f"{panels.units}"
        if panels.padded != layer.hidden:
            bound += f" && p * {panels.units} + j < {layer.hidden}"
        self.cells.updates(number, panels.units, vectors, bound)

    def _products(self, weights: str, source: str, length: int, sums: list[str]) -> None:
        """All elements of a source by their weights; of few sums two turns of the loop at once."""
        text, step = self.text, len(sums) * self.panels.dialect.lanes
        turns = 2 if self.panels.dialect.divides_together and len(sums) <= FEW and length > 1 else 1
        whole = length - length % turns
        with text.loop("k", str(whole), turns):
            for at, of in ((weights, source), (f"({weights} + {step})", f"({source} + 1)"))[:turns]:
                with text.block() if turns > 1 else nullcontext():
                    self._multiply(at, of, sums)
            text.line(f"{weights} += {turns * step};")
        if whole < length:
            with text.block(f"for (int32_t k = {whole}; k < {length}; k++)"):
                self._multiply(weights, source, sums)
                text.line(f"{weights} += {step};")

    def _multiply(self, weights: str, source: str, sums: list[str]) -> None:
        """Element k of a source by a weight for each sum, loads first as far as registers go."""
        d, text = self.panels.dialect, self.text
        if d.lanes > 1:
            c_type = d.ctype if d.element_type == d.ctype else self.type
            text.line(f"const {c_type} v = {d.element(f'{source}[k]')};")
            for place, total in enumerate(sums):
                weight = d.load(f"{weights} + {place * d.lanes}")
                text.line(f"{total} = {d.fma_element(weight, 'v', total)};")
        elif self.layer.dtype is not DType.FLOAT32:
            text.line(f"const {self.type} v = {source}[k];")
            for place, total in enumerate(sums):
                text.line(f"{total} += {weights}[{place}] * v;")
        else:
            text.line(f"const float v = {d.early_text.format(a=f'{source}[k]')};")
            step = max(1, d.registers - len(sums) - 2)
            for first in range(0, len(sums), step):
                some = range(first, min(first + step, len(sums)))
                for place in some:
                    text.line(f"const float e{place} = {d.load_early(weights, place)};")
                for place in some:
                    text.line(f"{sums[place]} = {d.fma_element(f'e{place}', 'v', sums[place])};")


def recurrent_text(layer: Recurrent, panels: Panels) -> str:
    """The body: reads x, w0 (w1), b0 (b1) and what `has` names; writes y, yh, yc. Scratch: see
    `scratch_rows`.
    """
    return _Writer(layer, panels).body()


def cell_includes(layer: Recurrent, panels: Panels) -> frozenset[str]:
    """Headers that take the place of those of the activations."""
    return Cells(layer, panels.dialect, CText()).includes


def scratch_rows(layer: Recurrent, panels: Panels) -> dict[str, int]:
    """Scratch parameters and their number of elements."""
    rows: dict[str, int] = {}
    if "h0" not in layer.has:
        rows["zeros"] = layer.hidden
    if "y" not in layer.has:
        rows["rows"] = 2 * layer.hidden
    if layer.cell == "LSTM" and "yc" not in layer.has:
        rows["cell"] = layer.hidden
    if layer.cell == "GRU":
        rows["update"] = rows["gated"] = layer.hidden
    if Cells(layer, panels.dialect, CText()).divides_together:
        rows["sums"] = panels.padded * max(one.accumulators for one in PASSES[layer.cell])
    return rows
