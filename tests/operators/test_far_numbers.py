"""Numbers that constants of lengths, axes and places do not have: each form is refused or has types, in a
moment and with little memory, whatever the numbers ask for.
"""

from __future__ import annotations

import itertools
import random
import time
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
from changes import MOST_NUMBERS
from forms import raised, rows_with_inputs
from onnx import TensorProto, helper

from aot_model.errors import CompileError
from aot_model.ir.operator import OperatorError
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value, constant
from aot_model.ops.registry import MAX_TABLES, Build
from aot_model.ops.signal import DFT
from aot_model.pipeline import Request, compile_model
from onnx_models import model, save, tensor
from room import room

WHOLE = (5_000_000, 10**9, 2**31 - 1, -(2**31), 2**40, 2**62, -(2**62))
REAL = (1e9, 2.0**40, 1e30, -1e30, 3.4e38, 1e-40, np.inf, -np.inf, np.nan)
ROOM = 4 << 30
"""Bytes beyond what the process has."""
SECONDS = 5
"""Tables of the most numbers that an operator may have take half a second."""
FORMS = 120
"""Of a sample."""


def _far(value: Value) -> Iterator[Value]:
    """All its numbers, or one, are far ones."""
    data = value.data
    if data is None or not 0 < data.size <= MOST_NUMBERS or data.dtype.kind not in "iuf":
        return
    numbers: Sequence[float] = REAL
    if data.dtype.kind != "f":
        limits = np.iinfo(data.dtype)
        numbers = [n for n in WHOLE if limits.min <= n <= limits.max]
    for number in numbers:
        yield constant(value.name, np.full(data.shape, number, data.dtype))
        for place in {0, data.size - 1} if data.size > 1 else ():
            one = data.copy()
            one.reshape(-1)[place] = number
            yield constant(value.name, one)


def _forms(inputs: Sequence[Value | None]) -> list[list[Value | None]]:
    """One constant or two."""
    far = {k: list(_far(v)) for k, v in enumerate(inputs) if v is not None}
    changes = [{k: one} for k in far for one in far[k]]
    changes += [
        {j: one, k: other} for j, k in itertools.combinations(far, 2) for one in far[j] for other in far[k]
    ]
    if len(changes) > FORMS:
        changes = random.Random(1).sample(changes, FORMS)
    return [[change.get(k, v) for k, v in enumerate(inputs)] for change in changes]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_far_numbers_are_refused_or_have_types() -> None:
    found: list[str] = []
    tried = 0
    with room(ROOM):
        for row, inputs in rows_with_inputs(ours=False):
            for new in _forms(inputs):
                start, tried = time.process_time(), tried + 1
                said = raised(row, new)
                took = time.process_time() - start
                if said or took > SECONDS:
                    numbers = [v.data.tolist() for v in new if v is not None and v.data is not None]
                    found.append(f"{said or f'{row.label} took {took:.1f} s'} {str(numbers)[:300]}")
    assert tried > 20_000 and not found, "\n".join(found[:20])


def test_tables_of_a_long_transform_count() -> None:
    signal = Value("x", TensorType(DType.FLOAT32, (1, MAX_TABLES // 2 + 1, 2)))
    with pytest.raises(OperatorError, match=f"its tables would have {MAX_TABLES + 2:,} numbers"):
        DFT().expand(Build([], "n"), [signal])


def test_constants_that_are_results_count(tmp_path: Path) -> None:
    """The mask of a dropout that keeps everything, of as many elements as the tensor."""
    node = helper.make_node("BiasDropout", ["x", "bias"], ["y", "mask"], name="drop", domain="com.microsoft")
    for elements, fits in ((1 << 16, True), (MAX_TABLES + 1, False)):
        outputs = [tensor("y", None), tensor("mask", None, TensorProto.BOOL)]
        inputs = [tensor(name, (1, elements)) for name in ("x", "bias")]
        path = save(model([node], inputs, outputs), tmp_path / "m.onnx")
        with nullcontext() if fits else pytest.raises(CompileError, match="its tables would have"):
            compile_model(Request(path, "m", "c"))
