"""Tables of 16 bits: every bit of the interpolation between their entries, beyond their ends too."""

from __future__ import annotations

import numpy as np
import pytest

from aot_model.ir.graph import Graph
from aot_model.ir.values import constant
from aot_model.ops.quantised_tables import SigmoidInt16, sigmoid_table
from aot_model.ops.registry import Build, load_all
from aot_model.passes.manager import run_passes
from aot_model.targets.registry import parse_target

load_all()


def interpolated(x: int, hyperbolic: bool, multiplier: int, shift: int) -> int:
    """As TensorFlow Lite Micro does: |x| in Q8 or Q9 above the entries, the result rounded, ties up where x
    is not negative, down where it is.
    """
    argument = x * multiplier + (1 << shift >> 1) >> shift
    bits = 8 if hyperbolic else 9
    place, part = divmod(abs(argument), 1 << bits)
    table = sigmoid_table()
    if place >= 255:
        y = 0xFFFF << 8 if hyperbolic else 0x7FFF << 10
    else:
        y = (int(table[place]) << bits) + part * (int(table[place + 1]) - int(table[place]))
    if hyperbolic:
        y -= 1 << 23
        return (y + 128 if argument >= 0 else -y + 127) >> 8
    return (y + 512 if argument >= 0 else (1 << 25) - y + 511) >> 10


@pytest.mark.parametrize("hyperbolic", [False, True])
@pytest.mark.parametrize(("multiplier", "shift"), [(3, 0), (20000, 14), (9, 0), (32000, 12)])
def test_every_bit_is_that_of_the_definition(hyperbolic: bool, multiplier: int, shift: int) -> None:
    x = np.r_[np.arange(-32768, 32768, 97), -1, 0, 1, 32767].astype(np.int16)
    graph, operator = Graph("table"), SigmoidInt16(hyperbolic, multiplier, shift)
    graph.outputs = [Build(graph.nodes, "table")(operator, constant("x", x))]
    run_passes(graph, parse_target("c"))
    found = graph.outputs[0].data
    wanted = [interpolated(int(v), hyperbolic, multiplier, shift) for v in x]
    np.testing.assert_array_equal(found, np.asarray(wanted, np.int16))
