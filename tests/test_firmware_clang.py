"""clang for Cortex-M warns of nothing in samples of operators and layers of kernels (firmware_clang.py): a
part of them for every commit.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).parent / "kernels"))

from draw import Draw
from layer import Layer, Step

from aot_model.ir.graph import Graph
from aot_model.ops.convolution import Convolution
from batch import Case, run_cases
from firmware_clang import TARGETS, missing, rows, warned
from qemu import available
from turns import commit_number

PARTS = 40

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())


@pytest.mark.parametrize("target", TARGETS)
def test_rows(target: str) -> None:
    cases = rows()[commit_number() % PARTS :: PARTS]
    found, count = warned(target, cases)
    assert not found, "\n".join(found)
    assert count or target != "c"


def _tall() -> Layer:
    draw = Draw(5)
    x, w = draw.tensor(np.int8, 1, 2, 3, 32), draw.tensor(np.int8, 8, 3, 3, 32)
    node = Convolution((1, 1), (1, 1, 1, 1), (1, 1))
    return Layer("tall", x, (Step(node, (w,)), *draw.requantised(288, 8, np.int8, 1)))


def _tall_graph() -> Graph:
    return _tall().graph()


def test_a_window_that_never_lies_inside_of_its_image() -> None:
    layer = _tall()
    case = Case("tall", _tall_graph, (layer.x,))
    found, count = warned("cortex-m55", [case])
    assert count and not found, "\n".join(found)
    if not available():
        pytest.skip("qemu-system-arm is not installed: compiled, not run")
    (outcome,) = run_cases([case], "cortex-m55", sanitize=False, board="m55")
    np.testing.assert_array_equal(outcome.outputs[0], layer.expected())
