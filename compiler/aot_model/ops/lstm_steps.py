"""The steps of an LSTM over a sequence, around the cell that computes one of them (lstm_float.py,
lstm_integer.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from aot_model.kernels.arguments import Argument, written
from aot_model.kernels.site import Site
from aot_model.ops.requantise import Rescale

GATES = ("input", "forget", "cell", "output")


@dataclass(frozen=True)
class LstmScales:
    """Factors of an integer LSTM; the gates' in the order of GATES."""

    x_zero_point: int
    x: tuple[Rescale, ...]
    h: tuple[Rescale, ...]
    forget: Rescale
    """Forget gate times cell, in the cell's scale."""
    input: Rescale
    """Input gate times candidate, in the cell's scale."""
    output: Rescale
    """Output gate times activated cell, in the hidden state's scale; its zero point is the hidden state's."""
    cell_argument: tuple[int, int]
    """(multiplier, shift) of the activation of the cell, see SigmoidInt16."""
    cell_clip: int = 0
    litert: int | None = None
    """The integer bits of the cell, where sums, products and activations round as LiteRT's do, not TensorFlow
    Lite Micro's.
    """


class LstmLayer(Protocol):
    """What the cells read of the operator SequenceLstm."""

    @property
    def time_major(self) -> bool: ...

    @property
    def cell_clip(self) -> float: ...

    @property
    def projection_clip(self) -> float: ...

    @property
    def coupled(self) -> bool: ...

    @property
    def activation(self) -> str: ...

    @property
    def scales(self) -> LstmScales | None: ...

    def sizes(self, site: Site) -> tuple[int, int, int, int, int]:
        """(batch, steps, inputs, units, outputs)."""

    def macs(self, site: Site) -> int:
        """Multiplications of all steps."""


def states_of(site: Site) -> list[Argument]:
    """x, the states before and after, y."""
    return [Argument(name, site.window(index)) for index, name in enumerate(("x", "h0", "c0"))]


def results_of(site: Site) -> list[Argument]:
    return [written(name, site.node.outputs[k]) for k, name in enumerate(("y", "h", "c"))]


def step_loops(op: LstmLayer, site: Site, step: str) -> str:
    """The loops over time and batch around the body of one step."""
    batch, steps, inputs, units, outputs = op.sizes(site)
    h, c = site.node.outputs[1].type, site.node.outputs[2].type
    at = f"(t * {batch} + n)" if op.time_major else f"(n * {steps} + t)"
    element = site.input(0).dtype.c_type
    pad = "            "
    return f"""    memcpy(h, h0, {h.nbytes}u);
    memcpy(c, c0, {c.nbytes}u);
    for (int32_t t = 0; t < {steps}; t++) {{
        for (int32_t n = 0; n < {batch}; n++) {{
            const {element} *const xt = &x[{at} * {inputs}];
            {h.dtype.c_type} *const ht = &h[n * {outputs}];
            {c.dtype.c_type} *const ct = &c[n * {units}];
{_indent(step, pad)}
            memcpy(&y[{at} * {outputs}], ht, {outputs * h.dtype.size}u);
        }}
    }}"""


def _indent(text: str, pad: str) -> str:
    lines = text.strip("\n").split("\n")
    return "\n".join(pad + line if line and not line.startswith("#") else line for line in lines)
