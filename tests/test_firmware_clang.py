"""clang for Cortex-M warns of nothing in samples of operators and layers of kernels (firmware_clang.py): a
part of them for every commit.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path += [str(Path(__file__).parent / room) for room in ("kernels", "operators")]

from draw import Draw
from layer import Layer, Step
from oracles import expected
from rows import rows_of
from table import GROUPS, case_of
from test_table import problems
from verdict import verdict

from aot_model.c import assembly
from aot_model.ir.graph import Graph
from aot_model.kernels.int8 import held_dsp
from aot_model.ops.convolution import Convolution
from aot_model.ops.registry import OPERATORS
from batch import Case, run_cases
from firmware_clang import COMPILERS, TARGETS, WAY_OUT, missing, numbers, rows, warned
from qemu import available
from turns import commit_number, in_turn

PARTS = 40

pytestmark = pytest.mark.skipif(bool(missing()), reason=missing())


@pytest.mark.parametrize("target", TARGETS)
def test_rows(target: str) -> None:
    cases = rows()[commit_number() % PARTS :: PARTS]
    found, count = warned(target, cases)
    assert not found, "\n".join(found)
    assert count or target != "c"


@pytest.mark.skipif(not available(), reason="qemu-system-arm is not installed")
@pytest.mark.parametrize("target", ["cortex-m4", "cortex-m55"])
def test_numbers_of_layers(target: str) -> None:
    """A part of the kernels' table for every commit, at -O2 and -O3 in turn."""
    every = [(group, layer) for group, layers in GROUPS.items() for layer in layers()]
    some = in_turn(every, PARTS // 2)
    level = ("-O2", "-O3")[commit_number() // (PARTS // 2) % 2]
    outcomes = numbers([case_of(group, layer, {}) for group, layer in some], target, level)
    wrong = problems([layer for _, layer in some], outcomes)
    assert not wrong, "\n".join(wrong)


@pytest.mark.skipif(not available(), reason="qemu-system-arm is not installed")
@pytest.mark.parametrize("level", ["-O2", "-O3"])
def test_numbers_of_few_channels(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The kernel that holds two pixels in registers, of layers that are too small for it otherwise."""
    monkeypatch.setattr(held_dsp, "LEAST_SAVING", -1e9)
    layers = [
        one
        for one in GROUPS["int8 convolution"]()
        if one.steps and one.steps[0].others and one.steps[0].others[0].shape[1:3] == (1, 1)
    ]
    cases = [case_of("int8 convolution", one, {"memory": "0ws"}) for one in layers]
    outcomes = numbers(cases, "cortex-m4", level)
    assert sum(o.made is not None and "held_" in o.made.source for o in outcomes) >= 3
    wrong = problems(layers, outcomes)
    assert not wrong, "\n".join(wrong)


@pytest.mark.skipif(not available(), reason="qemu-system-arm is not installed")
def test_powers_of_two_that_a_register_has_as_a_number() -> None:
    """LLVM put the register's number in the place of the exponent (aot_model_four_of_int32)."""
    (layer,) = (one for one in GROUPS["integer convolution"]() if one.name.startswith("sums 1 "))
    (outcome,) = numbers([case_of("integer convolution", layer, {})], "cortex-m55", "-O2")
    assert not problems([layer], [outcome])


def test_assembly_that_only_gcc_takes_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """LLVM has no `.w` for what has no form of 16 bits."""
    monkeypatch.setattr(assembly, "_ONLY_WIDE", re.compile("(never)"))
    (layer,) = (
        one
        for one in GROUPS["int8 convolution"]()
        if one.name.startswith("21 ") and (1, 3) in vars(one.steps[0].operator).values()
    )
    (found,), _ = warned("cortex-m4", [case_of("int8 convolution", layer, {})])
    assert "invalid instruction" in found


@pytest.mark.skipif(not available(), reason="qemu-system-arm is not installed")
@pytest.mark.parametrize("clang", [name for name in COMPILERS if shutil.which(name)])
def test_strided_elements(clang: str) -> None:
    """They are read and written where they are, or the compiler is refused and told what helps."""
    (row,) = (row for row in rows_of(OPERATORS["", "ConvTranspose"]) if row.label == "ConvTranspose-4")
    (outcome,) = numbers([row.case], "cortex-m55", "-O2", clang)
    if outcome.status != "ok":
        assert "-fno-vectorize -DAOT_MODEL_UNVECTORIZED" in outcome.message, outcome.message
        (outcome,) = numbers([row.case], "cortex-m55", "-O2", clang, WAY_OUT["clang-19"])
    problem = verdict(row, outcome, expected(row))
    assert not problem, problem


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
