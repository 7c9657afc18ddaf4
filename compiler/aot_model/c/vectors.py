"""Loops over elements in vectors of Helium: the writer that takes them, of those there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from aot_model.c import float_vectors, integer_vectors, vector_nests
from aot_model.c.integer_vectors import Nest
from aot_model.ir.expr import Expr, Var
from aot_model.ir.types import DType
from aot_model.ir.values import Value

_WRITERS = (("INTEGER", integer_vectors.HEADER, vector_nests.vector_loops),
            ("FLOAT", float_vectors.HEADER, float_vectors.float_loops),
            ("FLOAT", float_vectors.HEADER, float_vectors.quantising_loops),
            ("FLOAT", float_vectors.HEADER, float_vectors.fold_loops))  # fmt: skip


class Vectors(NamedTuple):
    """A nest of loops in vectors: of which kind, AOT_MODEL_<kind>_VECTORS says whether they are there."""

    kind: str
    header: str
    nest: Nest


def vectors(
    loops: Sequence[Var], position: Expr, element: Expr, to: DType, names: dict[Value, str]
) -> Vectors | None:
    """The nest that stores y[position] = element, or None where it stays a plain loop."""
    for kind, header, write in _WRITERS:
        nest = write(loops, position, element, to, names)
        if nest is not None:
            return Vectors(kind, header, nest)
    return None
