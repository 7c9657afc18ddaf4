"""Inputs of other element types: what an operator takes, it computes with operands of one type, converted
where they have to be. C converts without a word what it is told to multiply.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from changes import resized
from forms import rows_with_inputs

from aot_model.errors import CompileError
from aot_model.ir.expr import call, const, load
from aot_model.ir.operator import Inputs, Operator, OperatorError
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from mixed import mixed, mixed_in

TYPES = (
    DType.FLOAT32, DType.FLOAT16, DType.FLOAT64, DType.INT8, DType.INT16, DType.INT32, DType.INT64,
    DType.UINT8, DType.UINT16, DType.UINT32, DType.BOOL,
)  # fmt: skip


def _forms(inputs: Inputs) -> Iterator[Inputs]:
    """One input of another type, and all together that have one."""
    yield inputs
    types = [None if v is None or v.dtype.is_string else v.dtype for v in inputs]
    places = [{k} for k, t in enumerate(types) if t]
    together = [{k for k, other in enumerate(types) if other is t} for t in dict.fromkeys(types) if t]
    for those in [*places, *(t for t in together if len(t) > 1)]:
        for to in TYPES:
            if any(types[k] is not to for k in those):
                yield [
                    resized(v, v.shape, to) if v is not None and k in those else v
                    for k, v in enumerate(inputs)
                ]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_operands_have_one_type() -> None:
    found, taken = list[str](), 0
    for row, inputs in rows_with_inputs(ours=True):
        for form in _forms(inputs) if row.kind.domain != "aot" else (inputs,):
            try:
                said = mixed_in(row.operator, form)
            except (OperatorError, CompileError):
                continue
            taken += type(row.operator).express is not Operator.express
            if said:
                found.append(
                    f"{row.label} of {', '.join(str(v.type) for v in form if v is not None)}: {said}"
                )
    assert taken > 5000 and not found, "\n".join(found[:20])


def test_operands_of_two_types_are_seen() -> None:
    real, whole = const(1.0, DType.FLOAT32), const(1)
    assert mixed(call("neg", call("mul", real, whole))) == "mul of float32, int32"
    assert mixed(call("select", const(True, DType.BOOL), real, whole)) == "select of float32, int32"
    assert not mixed(call("select", const(True, DType.BOOL), real, real))
    assert mixed(call("cast", call("mul", const(True, DType.BOOL), const(True, DType.BOOL)))) == "mul of bool"
    row = Value("row", TensorType(DType.FLOAT32, (2,)))
    assert mixed(load(row, (const(True, DType.BOOL),))) == "an index of bool"
    assert not mixed(load(row, (const(1),)))
