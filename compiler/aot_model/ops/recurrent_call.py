"""The call of one direction of a recurrent layer, whose loops are in kernels/recurrent.py."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from textwrap import indent

import numpy as np

from aot_model.ir.values import Value
from aot_model.kernels.arguments import Argument, written
from aot_model.kernels.base import Packed, Scratch
from aot_model.kernels.recurrent import (
    Panels,
    cell_includes,
    pack_bias,
    pack_weights,
    recurrent_text,
    scratch_rows,
)
from aot_model.kernels.recurrent_cells import PASSES, Recurrent
from aot_model.kernels.site import Site

INPUTS = {"lens": 4, "h0": 5, "c0": 6, "peephole": 7}
"""Optional inputs, by their parameters' names: their places in ONNX's operators."""
RESULTS = {"y": 0, "yh": 1, "yc": 2}


def packed_weights(
    layer: Recurrent, panels: Panels, w: np.ndarray, r: np.ndarray, b: np.ndarray
) -> list[Argument]:
    """W [gates * hidden, inputs], R [gates * hidden, hidden] and B [2 * gates * hidden] as the loops read
    them.
    """
    arguments = []
    for number, one in enumerate(PASSES[layer.cell]):
        for name, array in (
            (f"w{number}", pack_weights(layer, panels, one, w, r)),
            (f"b{number}", pack_bias(layer, panels, one, b)),
        ):
            arguments.append(Argument(name, Packed(name, array, 4)))
    return arguments


def call_recurrent(
    site: Site,
    name: str,
    layer: Recurrent,
    panels: Panels,
    present: Mapping[str, Value],
    weights: list[Argument],
    headers: Iterable[str],
    prologue: str = "",
) -> None:
    """present: what `layer.has` names, of INPUTS and RESULTS. prologue: C before the loops."""
    size = layer.dtype.size
    inputs = [Argument(k, v) for k, v in present.items() if k in INPUTS]
    results = [written(k, v) for k, v in present.items() if k in RESULTS]
    scratch = [
        Argument(k, Scratch(k, n * size, size, layer.dtype.c_type))
        for k, n in scratch_rows(layer, panels).items()
    ]
    body = prologue + recurrent_text(layer, panels)
    includes = {
        "string.h",
        *panels.dialect.includes,
        *(cell_includes(layer, panels) or headers),
        *(["aot_model/scalar.h"] if layer.clip or layer.cell_clip else []),
    }
    site.call(
        name,
        indent(body.rstrip("\n"), "    "),
        [Argument("x", site.window(0)), *inputs, *weights, *scratch, *results],
        includes=includes,
        helpers=panels.dialect.helpers(body),
        macs=layer.macs,
        note=f"{layer.cell}, {panels.units} units at a time, {'reverse' if layer.reverse else 'forward'}",
    )
