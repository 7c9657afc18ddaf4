"""Products that are cut, so that weights of one piece are copied while another is computed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest

from aot_model.ir.expr import Expr, Index, call, const
from aot_model.ir.graph import Graph, Node
from aot_model.ir.index import sub
from aot_model.ir.operator import At, Inputs, Operator
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value, constant
from aot_model.lowering.pieces import COLUMNS, LARGEST, PER_COLUMN, ROWS, cut_products
from aot_model.ops.elementwise import op
from aot_model.ops.matmul import MatMul
from aot_model.ops.quantised_linear import QuantizeLinear
from aot_model.ops.registry import Build, required
from aot_model.ops.requantise import Requantise
from aot_model.passes.fold_constants import compute

RNG = np.random.default_rng(11)


def of(operator: Any, *constants: np.ndarray, dtype: DType = DType.FLOAT32, columns: int = 100) -> Graph:
    """x [1, 30] W, and an operator on it with constants behind."""
    x = Value("x", TensorType(dtype, (1, 30)))
    graph = Graph("g", [x], [])
    build = Build(graph.nodes, "n")
    weights = RNG.integers(-9, 9, (30, columns)).astype(dtype.numpy)
    y = build(MatMul(), x, constant("w", weights))
    y = build(operator, y, *(constant(f"c{k}", v) for k, v in enumerate(constants)))
    graph.outputs = [y]
    return graph


def result(graph: Graph) -> np.ndarray:
    """Of a row, by the definitions of the operators."""
    rng = np.random.default_rng(2)
    x = graph.inputs[0]
    known = {x: constant("x", rng.integers(-9, 9, x.shape).astype(x.dtype.numpy))}
    for node in graph.nodes:
        now = [None if v is None else known.get(v, v) for v in node.inputs]
        arrays = compute(Node(node.op, now, node.outputs, node.name))
        assert arrays is not None
        known[node.outputs[0]] = constant(node.name, arrays[0])
    found = known[graph.outputs[0]].data
    assert found is not None
    return found


def kinds_of(graph: Graph) -> list[str]:
    return [n.kind for n in graph.nodes]


def column(columns: int = 100, dtype: type = np.float32) -> np.ndarray:
    return RNG.integers(-5, 5, columns).astype(dtype)


@pytest.mark.parametrize(
    ("graph", "together"),
    [
        (of(op("Add"), column()), True),
        (of(op("Add"), column().reshape(1, 100)), True),
        (of(op("Add"), np.float32(2)), True),
        (of(op("Relu")), True),
        (of(op("Max"), column(), np.ones((1, 1), np.float32)), True),
        (of(Requantise(), np.int32(1 << 30), np.zeros((100,), np.int32), dtype=DType.INT8), True),
        (of(QuantizeLinear(axis=1), column() + 9, column(dtype=np.int8)), True),
        (of(QuantizeLinear(axis=1, block_size=2), np.full((1, 50), 2, np.float32)), False),
        (of(op("Softmax")), False),
    ],
)  # fmt: skip
def test_what_is_cut_with_the_product(graph: Graph, together: bool) -> None:
    """Operators whose constants have one number, or one for each column; no rows, no blocks of scales."""
    kinds = kinds_of(graph)
    before = result(graph)
    cut_products(graph, 2 * 16 * (30 * 4 + PER_COLUMN))
    graph.verify()
    pieces = [n for n in graph.nodes if n.kind == "MatMul"]
    assert sum(n.outputs[0].shape[-1] for n in pieces) == 100 and len(pieces) > 1
    assert all(n.outputs[0].shape[-1] % COLUMNS == 0 for n in pieces[:-1])
    behind = kinds_of(graph)[kinds_of(graph).index("Concat") + 1 :]
    assert behind == ([] if together else kinds[1:])
    np.testing.assert_array_equal(result(graph), before)


@dataclass(frozen=True)
class FromBehind(Operator):
    """x + c[n - 1 - i]: of as many numbers as there are columns, but of other ones."""

    name: ClassVar[str] = "FromBehind"
    elementwise: ClassVar[bool] = True

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [required(inputs).type]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        c = required(inputs, 1)
        return call("add", at(required(inputs), index), at(c, (sub(const(c.shape[0] - 1), index[-1]),)))


def test_numbers_of_other_columns_are_not_cut() -> None:
    graph = of(FromBehind(), column())
    before = result(graph)
    cut_products(graph, 2 * 16 * (30 * 4 + PER_COLUMN))
    assert kinds_of(graph)[-2:] == ["Concat", "FromBehind"]
    np.testing.assert_array_equal(result(graph), before)


def plain(columns: int, rows: int = 1, taps: int = 30) -> Graph:
    """A product alone."""
    x = Value("x", TensorType(DType.INT8, (rows, taps)))
    graph = Graph("g", [x], [])
    build = Build(graph.nodes, "n")
    graph.outputs = [build(MatMul(), x, constant("w", RNG.integers(-9, 9, (taps, columns)).astype(np.int8)))]
    return graph


@pytest.mark.parametrize(
    ("columns", "most", "pieces"),
    [
        (64, 2 * 64 * (30 + PER_COLUMN), 1),
        (64, 2 * 64 * (30 + PER_COLUMN) - 1, 2),
        (64, 2 * 16 * (30 + PER_COLUMN), 4),
        (64, 2 * 16 * (30 + PER_COLUMN) - 1, 6),  # of twelve
        (64, 2 * ROWS * (30 + PER_COLUMN), 16),
        (64, 2 * ROWS * (30 + PER_COLUMN) - 1, 1),  # no piece can be copied
        (1024, 1 << 30, 3),  # LARGEST
    ],
)
def test_the_sizes_of_pieces(columns: int, most: int, pieces: int) -> None:
    graph = plain(columns)
    before = result(graph)
    cut_products(graph, most)
    products = [n for n in graph.nodes if n.kind == "MatMul"]
    assert len(products) == pieces
    largest = max(n.outputs[0].shape[-1] for n in products) * (30 + PER_COLUMN)
    assert pieces == 1 or largest <= min(most // 2, LARGEST)
    np.testing.assert_array_equal(result(graph), before)


def test_products_of_rows_and_shared_weights_stay_whole() -> None:
    """Rows of pieces do not lie one behind the other; weights of two products would be there twice."""
    graph = plain(64, rows=2)
    cut_products(graph, 1024)
    assert kinds_of(graph) == ["MatMul"]
    graph = plain(64)
    again = Node(MatMul(), list(graph.nodes[0].inputs), [Value("z", graph.outputs[0].type)], "again")
    graph.nodes.append(again)
    graph.outputs.append(again.outputs[0])
    cut_products(graph, 1024)
    assert kinds_of(graph) == ["MatMul", "MatMul"]


def test_what_others_read_is_whole() -> None:
    """A sum that is a result, and is read by what follows."""
    graph = of(op("Add"), column())
    build = Build(graph.nodes, "m")
    graph.outputs.append(build(op("Relu"), graph.outputs[0]))
    before = result(graph)
    cut_products(graph, 2 * 16 * (30 * 4 + PER_COLUMN))
    graph.verify()
    assert kinds_of(graph)[-2:] == ["Concat", "Relu"]
    np.testing.assert_array_equal(result(graph), before)
