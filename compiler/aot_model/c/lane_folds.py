"""Folds of floats along neighbouring elements in as many accumulators as a vector has lanes, for processors
whose compilers make vectors of the loop over these: one accumulator waits for each addition.
"""

from __future__ import annotations

from aot_model.c.reading_order import step_of
from aot_model.ir.expr import Call, Cell, Reduce, walk
from aot_model.ir.types import DType

ACCUMULATORS = 16
"""Accumulators of a fold: one vector of AVX-512, two of AVX, four of SSE and NEON."""
HEADER = "aot_model/lane_folds.h"
VECTORS = frozenset({"v4", "v8", "v16", "neon"})
"""Dialects of processors whose compilers make vectors of plain loops."""
_FOLDS = frozenset({"add", "mul", "min", "max"})
_TERMS = frozenset("add sub mul neg abs min max exp expm1 log log1p erf sigmoid tanh".split())
"""Operations that compilers make vectors of."""


def takes_lanes(node: Reduce) -> bool:
    """Whether the terms of a fold are floats beside each other along its innermost loop, in such a number
    that folding the lanes costs little, and are computed without branches and folds of their own.
    """
    v = node.over[-1]
    if node.op not in _FOLDS or node.dtype is not DType.FLOAT32 or v.extent < 2 * ACCUMULATORS:
        return False
    waiting, beside = [node.body], False
    while waiting:
        term = waiting.pop()
        if isinstance(term, Cell):
            step = step_of(term.position, v)
            if step not in (0, 1) or term.dtype is not DType.FLOAT32:
                return False
            beside = beside or step == 1
        elif isinstance(term, Call) and term.op in _TERMS:
            waiting += term.children
        elif isinstance(term, Reduce) or v in walk(term):
            return False
    return beside
