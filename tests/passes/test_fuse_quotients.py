"""Divisions of quantised tensors become one division of integers: the same results for all pairs of bytes, by
exact integers.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from aot_model.ir.graph import Graph, Node
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.quantised_div import QuantisedDiv
from aot_model.ops.quantised_quotient import QuantisedQuotient, Quotient, quotient
from aot_model.ops.registry import load_all
from aot_model.ops.requantise import Rescale
from aot_model.passes.explain import reasons
from aot_model.passes.fuse_quotients import fuse_quotients, pays
from aot_model.targets.registry import parse_target

I8, U8, I16 = DType.INT8, DType.UINT8, DType.INT16


def graph_of(op: QuantisedDiv, kinds: tuple[DType, DType] = (I8, I8)) -> Graph:
    load_all()
    a, b = (
        Value(n, TensorType(kind, shape))
        for n, kind, shape in zip("ab", kinds, ((256, 1), (1, 256)), strict=True)
    )
    graph = Graph("g", [a, b])
    graph.nodes = [Node(op, [a, b], [Value("y", TensorType(op.to, (256, 256)))], "n")]
    graph.outputs = list(graph.nodes[0].outputs)
    return graph


def division(scale: float, zeros: tuple[int, int, int], low: int, high: int, to: DType) -> QuantisedDiv:
    fraction, exponent = math.frexp(scale)
    return QuantisedDiv(
        zeros[0], zeros[1], Rescale(zeros[2], round(fraction * 2**31), exponent), low, high, to
    )


@pytest.mark.parametrize(
    ("scale", "zeros", "ends", "kinds", "to"),
    [
        (5.4030364, (-5, 17, -20), (-128, 127), (I8, I8), I8),
        (0.8290607, (0, 0, 0), (-128, 127), (I8, I8), I8),
        (16.5284741, (99, 130, 120), (0, 200), (U8, U8), U8),
        (0.0371937, (-128, 127, 3), (-3, 127), (I8, I8), I8),
        (103.918273, (255, 0, 255), (0, 255), (U8, U8), U8),
        (2.9173471, (-128, 128, 9), (0, 255), (I8, U8), U8),
        (0.0071357, (1, 2, -7), (-128, 127), (I8, I8), I8),
    ],
)
def test_all_pairs(
    scale: float, zeros: tuple[int, int, int], ends: tuple[int, int], kinds: tuple[DType, DType], to: DType
) -> None:
    op = division(scale, zeros, *ends, to)
    graph = graph_of(op, kinds)
    assert fuse_quotients(graph)
    (node,) = graph.nodes
    assert isinstance(node.op, QuantisedQuotient)
    arrays = [
        np.arange(k.limits[0], k.limits[1] + 1).astype(k.numpy).reshape(shape)
        for k, shape in zip(kinds, ((256, 1), (1, 256)), strict=True)
    ]
    got, want = node.op.reference(arrays)[0], op.reference(arrays)[0]
    assert len(np.unique(want)) > 1 and np.array_equal(got, want)
    # nothing of 32 bits wraps
    most = [max(abs(k.limits[0] - z), abs(k.limits[1] - z)) for k, z in zip(kinds, zeros, strict=False)]
    assert most[0] * node.op.factor + (max(most[1], 1) << node.op.places - 1) < 1 << 32
    assert max(most[1], 1) << node.op.places < 1 << 32


def test_where_halves_are_decided_by_errors_of_the_rule() -> None:
    graph = graph_of(division(0.5, (0, 0, 0), -128, 127, I8))
    with reasons() as said:
        assert not fuse_quotients(graph)
    assert any("ties" in reason for reason in map(str, said))
    assert [n.kind for n in graph.nodes] == ["QuantisedDiv"]


def test_other_functions_are_no_quotients() -> None:
    a = np.arange(-128, 128, dtype=np.int64)
    table = np.clip((a[:, None] * 3) // np.where(a == 0, 1, a)[None, :], -128, 127)
    assert isinstance(quotient(a, a, table, -128, 127), str)
    size, by = 2 * np.abs(a)[:, None] * 5_665_480, np.maximum(np.abs(a), 1)[None, :] << 20
    signs = np.where((a < 0)[:, None] != (a < 0)[None, :], -1, 1)
    table = np.clip(signs * ((size + by) // (2 * by)), -128, 127)
    assert isinstance(quotient(a, a, table, -128, 127), Quotient)
    table[128] = 5  # of nothing
    assert quotient(a, a, table, -128, 127) == "it is no quotient"


def test_words_of_16_bits_keep_the_rule() -> None:
    assert not fuse_quotients(graph_of(division(5.4, (0, 0, 0), -128, 127, I8), (I16, I8)))


def test_helium_keeps_its_vectors() -> None:
    assert pays(parse_target("cortex-m4", {})) and not pays(parse_target("cortex-m55", {}))


@pytest.mark.parametrize(
    ("a", "b", "results", "ends"),
    [
        ((1 << 22,), (1,), (3,), (-128, 127)),  # one factor alone
        ((1 << 21,), (1,), (1024,), (-32768, 32767)),  # 2^21 * 2047 + 2^21 would leave 32 bits
        ((1, 1000), (100,), (5, 10), (5, 127)),  # what is clamped does not say which factor it is
        ((1, 1000), (100,), (0, 7), (0, 7)),
        ((-1, -1000), (100,), (-5, -10), (-127, -5)),
    ],
)
def test_factors_of_few_numbers(
    a: tuple[int, ...], b: tuple[int, ...], results: tuple[int, ...], ends: tuple[int, int]
) -> None:
    x, y, wanted = (np.asarray(v, np.int64) for v in (a, b, np.reshape(results, (len(a), len(b)))))
    found = quotient(x, y, wanted, *ends)
    assert isinstance(found, Quotient)
    half = b[0] << found.places - 1
    sums = [abs(v) * found.factor + half for v in a]
    assert max(sums) < 2**32
    signs = [1 if v > 0 else -1 for v in a]
    assert tuple(np.clip([s * (n // (2 * half)) for s, n in zip(signs, sums, strict=True)], *ends)) == results
