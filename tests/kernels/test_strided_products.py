"""Products of pairs whose operands lie so far apart that no vector of offsets reaches them: beside the table,
for a firmware of many layers has no room for them.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from strided_products import FAR, strided_products

from aot_model.ir.graph import Graph
from batch import run_cases
from qemu import available


def _graph(number: int) -> Graph:
    return strided_products(FAR)[number].graph()


@pytest.mark.parametrize("board", ["", "m4", "m55"])
@pytest.mark.parametrize("number", range(len(FAR)))
def test_products_of_what_lies_far_apart(number: int, board: str) -> None:
    if board and not available():
        pytest.skip("arm-none-eabi-gcc or qemu-system-arm is not installed")
    layer = strided_products(FAR)[number]
    cases = [layer.case(partial(_graph, number), {})]
    if board:
        (outcome,) = run_cases(cases, f"cortex-{board}", jobs=1, board=board, sanitize=False)
    else:
        (outcome,) = run_cases(cases, "c", jobs=1)
    assert outcome.status == "ok", outcome.message
    assert np.array_equal(outcome.outputs[0], layer.expected())
