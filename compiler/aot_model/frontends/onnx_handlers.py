"""The operators of ONNX that are not simply nodes of the graph, and what imports each."""

from __future__ import annotations

from aot_model.frontends.onnx_gradient import gradient
from aot_model.frontends.onnx_kept import LOOPS
from aot_model.frontends.onnx_masks import MASKS
from aot_model.frontends.onnx_sequences import SEQUENCES
from aot_model.frontends.onnx_slices import SLICES
from aot_model.frontends.onnx_structure import STRUCTURES, Handler

HANDLERS: dict[str, Handler] = {
    **STRUCTURES,
    **SEQUENCES,
    **LOOPS,
    **MASKS,
    **SLICES,
    "ai.onnx.preview.training.Gradient": gradient,
}
OF_ROWS = ("If", "Identity", "Transpose", *MASKS, *SLICES)
"""Those that may read values whose size depends on data."""
