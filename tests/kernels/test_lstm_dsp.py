"""Integer LSTMs of odd sizes by kernels of the DSP extension, in QEMU and their C on this machine: the bytes
of plain C, whose products are other code, and near the rule in floating point.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from aot_model.ir.graph import Graph
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value, constant
from aot_model.ops.lstm_steps import LstmScales
from aot_model.ops.registry import OPERATORS, Build, load_all
from aot_model.ops.requantise import Rescale
from batch import Case, run_cases
from qemu import available

SIZES = ((28, 20), (7, 3), (1, 1), (12, 8), (33, 6), (4, 5), (3, 9))
EACH = tuple(Rescale(0, 1503238553 + k * 2**26, (-6, -5, 0, -7)[k]) for k in range(4))
SCALES = LstmScales(
    -6,
    EACH,
    EACH[::-1],
    Rescale(0, 2**30, -14),
    Rescale(0, 1503238553, -15),
    Rescale(9, 1717986918, -21),
    (3, 0),
    32767,
)


def arrays(inputs: int, units: int, most: int) -> list[np.ndarray]:
    """x, both states, weights of -`most` - 1 to `most`, bias."""
    rng = np.random.default_rng(inputs)
    x, h = (rng.integers(-128, 128, s).astype(np.int8) for s in ((2, 3, inputs), (2, units)))
    c = rng.integers(-9000, 9000, (2, units)).astype(np.int16)
    w, r = (rng.integers(-most - 1, most + 1, (4, units, n)).astype(np.int8) for n in (inputs, units))
    return [x, h, c, w, r, rng.integers(-4000, 4000, (4, units)).astype(np.int32)]


load_all()


def network(inputs: int, units: int, most: int) -> Graph:
    given = arrays(inputs, units, most)
    values = [Value(f"x{k}", TensorType(DType.of(a.dtype), a.shape)) for k, a in enumerate(given[:3])]
    graph = Graph("lstm", list(values))
    fixed = [constant(f"x{k}", given[k]) for k in (3, 4, 5)]
    graph.outputs = Build(graph.nodes, "node").many(
        OPERATORS["aot", "SequenceLstm"](scales=SCALES), *values, *fixed, outputs=["y", "h", "c"]
    )
    return graph


def cases() -> list[Case]:
    """With weights whose pairs are joined in 16 bits, and with others: -128 beside a negative one is not."""
    return [
        Case(f"{n} {u} {most}", partial(network, n, u, most), tuple(arrays(n, u, most)[:3]))
        for n, u in SIZES
        for most in (60, 127)
    ]


HERE = ("-O1", "-D__ARM_FEATURE_DSP=1", "-D__ARM_FEATURE_SIMD32=1")
"""The code of a core on this machine: without assembly, the C beside it."""


@pytest.mark.parametrize("board", [None, "m4", "m7", "m33"])
def test_the_bytes_of_plain_c(board: str | None) -> None:
    if board and not available():
        pytest.skip("needs qemu-system-arm and arm-none-eabi-gcc")
    found = run_cases(
        cases(),
        f"cortex-{board or 'm4'}",
        board=board,
        flags=("-O2",) if board else HERE,
        sanitize=board is None,
    )
    plain = run_cases(cases(), "c")
    for case, got, want in zip(cases(), found, plain, strict=True):
        assert got.status == want.status == "ok", (case.name, got, want)
        for a, b in zip(got.outputs, want.outputs, strict=True):
            np.testing.assert_array_equal(a, b, case.name)
        inputs, units, most = map(int, case.name.split())
        near = OPERATORS["aot", "SequenceLstm"](scales=SCALES).reference(arrays(inputs, units, most))
        assert np.abs(want.outputs[0].astype(int) - near[0]).max() <= 3, case.name
