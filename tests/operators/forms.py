"""Forms of operators' samples with inputs and attributes of other kinds, and what they raise."""

from __future__ import annotations

import traceback
from pathlib import Path

from rows import Row, graph, registry_rows

from aot_model.errors import CompileError
from aot_model.ir.operator import Inputs, Operator, OperatorError
from aot_model.ir.types import MAX_BYTES
from aot_model.ir.values import Value
from aot_model.ops.registry import Build


def rows_with_inputs(ours: bool) -> list[tuple[Row, list[Value | None]]]:
    """ours: operators that only passes make, too. Those with bodies have their inputs from frontends."""
    rows = [r for r in registry_rows() if not r.has_bodies and (ours or r.kind.domain != "aot")]
    return [(row, list(graph(row).nodes[-1].inputs)) for row in rows]


def raised(row: Row, inputs: Inputs) -> str:
    """What is raised that is no error of ours, and where; empty if nothing is."""
    try:
        made = row.operator
        types = made.infer(inputs)
        if any(t.nbytes > MAX_BYTES for t in types):  # frontends refuse those
            return ""
        if type(made).expand is not Operator.expand:
            made.expand(Build([], "n"), inputs)
    except (OperatorError, CompileError):
        return ""
    except Exception as error:
        place = [f for f in traceback.extract_tb(error.__traceback__) if "aot_model" in f.filename][-1]
        given = ", ".join("-" if v is None else str(v.type) for v in inputs)
        return (
            f"{row.label} {row.sample.attributes} of {given}: {type(error).__name__}: {error} "
            f"({Path(place.filename).name}:{place.lineno})"
        )
    return ""
