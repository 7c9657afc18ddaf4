"""Cases of the passes over floats: folding, widening, expansion, factors into weights, transposes."""

from __future__ import annotations

from typing import Any

import numpy as np
from pass_case import PassCase, drawn, made, numbers, tensor

from aot_model.ir.graph import Graph
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.passes.expand import expand
from aot_model.passes.fold_constants import MAX_GROWTH, MAX_PASSING, fold_constants
from aot_model.passes.fuse_affine import fuse_affine
from aot_model.passes.manager import prune
from aot_model.passes.move_transposes import move_transposes
from aot_model.passes.widen import widen
from graphs import Maker

X = tensor("x", 2, 3)
IMAGE = tensor("x", 1, 4, 5, 3)
INT64 = "int64"


def _row(m: Maker, more: int) -> Value:
    """The sum of more elements than a constant may have that is made of one."""
    return m.ReduceSum(m.Expand(numbers([0.5]), numbers([MAX_GROWTH + more], INT64)), numbers([0], INT64))  # type: ignore[no-any-return]


FOLDING: dict[str, Any] = {
    "chain": made(lambda m, x: m.Add(x, m.Mul(numbers([1.0, 2, 4]), m.Neg(numbers([3.0, 0, -1])))), X),
    "as large as may be": made(lambda m: m.Expand(numbers([1.0]), numbers([MAX_GROWTH], INT64))),
    "one more": made(lambda m: m.Expand(numbers([1.0]), numbers([MAX_GROWTH + 1], INT64))),
    "small again": made(lambda m, x: m.Add(x, m.Sum(_row(m, 1), m.Neg(_row(m, 1)))), X),
    "too large between": made(lambda m, x: m.Add(x, _row(m, MAX_PASSING - MAX_GROWTH + 1)), X),
    "large, and read by what is not constant": made(
        lambda m, x: m.Mul(m.Neg(m.Expand(numbers([1.0]), numbers([MAX_GROWTH + 1], INT64))), x), tensor("x")
    ),
    "large, and no larger than it was": made(lambda m: m.Neg(numbers(np.ones(MAX_GROWTH + 1)))),
    "work that may be": made(
        lambda m: m.ReduceSum(numbers(np.ones((4095, 4))), numbers([1], INT64), keepdims=0)
    ),
    "too much work": made(
        lambda m: m.ReduceSum(numbers(np.ones((4096, 4))), numbers([1], INT64), keepdims=0)
    ),
    "work of a product": made(lambda m: m.MatMul(drawn(1, 64, 8), drawn(2, 8, 512))),
    "shape of an input": made(lambda m, x: m.Shape(m.Relu(x)), X),
    "part of a shape": made(
        lambda m, x: m.Concat(numbers([5], INT64), m.Mul(m.Shape(x, start=1), numbers([2], INT64)), axis=0),
        tensor("x", 1, 3),
    ),
    "empty": made(lambda m, x: m.Concat(x, m.Neg(numbers(np.zeros((0, 3)))), axis=0), X),
    "composite": made(lambda m, x: m.Add(x, m.Softmax(numbers([[1.0, 2, 3]]))), X),
    "several results": made(
        lambda m, x: m.Add(x, m.Split(numbers(np.arange(6.0)), axis=0, num_outputs=2)[1]), X
    ),
    "types": made(
        lambda m, x: m.Gather(
            x, m.Cast(m.Mul(numbers([2, 1], "int8"), numbers(1, "int8")), to=DType.INT64), axis=1
        ),
        X,
    ),
    "quantised": made(
        lambda m, x: m.Add(
            x, m.DequantizeLinear(numbers([4, -3, 7], "int8"), numbers(0.5), numbers(1, "int8"))
        ),
        X,
    ),
    "result": made(lambda m, x: [m.Relu(x), m.Neg(numbers([1.0]))], X),
}


def _branches(inner: Any) -> Any:
    """If(condition, inner(x), -x), x read from outside."""

    def build(m: Maker, condition: Value, x: Value) -> Value:
        bodies = []
        for make in (inner, lambda b, v: b.Neg(v)):
            maker = Maker()
            out = make(maker, x)
            bodies.append(Graph("body", [], [out], maker.nodes))
        return m.If(condition, then_branch=bodies[0], else_branch=bodies[1])  # type: ignore[no-any-return]

    return build


def _half(*shape: int, dtype: DType = DType.FLOAT16) -> Value:
    return tensor("x", *shape, dtype=dtype)


CONDITION = tensor("c", dtype=DType.BOOL)
WIDENING = {
    "sum": made(lambda m, x: m.Add(m.Mul(x, x), numbers([1.5, 0.1, 3], "float16")), _half(2, 3)),
    "only moved": made(lambda m, x: m.Transpose(m.Concat(x, x, axis=0), perm=(1, 0)), _half(2, 3)),
    "converted": made(lambda m, x: m.Cast(m.Cast(x, to=DType.FLOAT16), to=DType.FLOAT32), X),
    "bfloat16": made(lambda m, x: m.Exp(m.Neg(x)), _half(3, dtype=DType.BFLOAT16)),
    "composite by steps": made(lambda m, x: m.Softmax(x), _half(2, 3)),
    "comparison": made(lambda m, x: m.Less(x, numbers(0.5, "float16")), _half(2, 3)),
    "wide alone": made(lambda m, x: m.Softmax(m.Add(x, x)), X),
    "nibbles that stay": made(
        lambda m, x: m.BlockMatMul(
            m.Cast(x, to=DType.FLOAT32),
            numbers(np.arange(-8, 8).reshape(2, 8), "int4"),
            drawn(1, 2, 1),
            block=8,
        ),
        _half(3, 8),
    ),
    "of no floats": made(
        lambda m, x: m.EyeLike(x, dtype=DType.FLOAT16), tensor("x", 2, 3, dtype=DType.INT32)
    ),
    "absent input": made(lambda m, x: m.Clip(x, None, numbers(1, "float16")), _half(2, 3)),
    "body": made(_branches(lambda m, x: m.Relu(m.Add(x, x))), CONDITION, _half(2, 3)),
}

EXPANSION = {
    "twice": made(lambda m, x: m.Gemm(m.Softmax(x), drawn(1, 4, 3), drawn(2, 4), transB=1, alpha=0.5), X),
    "result of another": made(lambda m, x: [m.Dropout(m.Relu(x))[0], m.Relu(x)], X),
    "what it reads": made(
        lambda m, x: [m.Relu(m.Resize(x, None, numbers([1, 1]))), m.Resize(x, None, numbers([1, 1]))], X
    ),
    "body that gives what it reads": made(
        _branches(lambda m, x: m.Resize(x, None, numbers([1, 1]))), CONDITION, X
    ),
    "body": made(_branches(lambda m, x: m.Softmax(m.Dropout(x)[0])), CONDITION, X),
    "body reads a result": made(
        lambda m, c, x: _branches(lambda b, v: b.Neg(v))(m, c, m.Dropout(x)[0]), CONDITION, X
    ),
    "nothing": made(lambda m, x: m.Relu(x), X),
    "convolution": made(
        lambda m, x: m.Conv(x, drawn(3, 2, 3, 3, 2), drawn(4, 2), pads=(1, 0, 2, 1), strides=(1, 2)),
        tensor("x", 1, 3, 5, 4),
    ),
}


def _dead(m: Maker, x: Value) -> Value:
    m.Neg(m.Exp(x))
    return m.Relu(x)  # type: ignore[no-any-return]


PRUNING = {"dead": made(_dead, X), "nothing": made(lambda m, x: m.Relu(x), X)}


def _batch_normalised(m: Maker, x: Value, *factors: Value) -> Value:
    y = m.MatMul(x, drawn(1, 3, 4))
    for factor in factors:
        y = m.Mul(m.Add(y, drawn(2, 4)), factor)
    return y  # type: ignore[no-any-return]


FACTORS = {
    "product": made(lambda m, x: m.Mul(m.MatMul(x, drawn(1, 3, 4)), drawn(2, 4)), X),
    "factor first": made(lambda m, x: m.Mul(drawn(2, 1, 4), m.MatMul(x, drawn(1, 3, 4))), X),
    "one factor": made(lambda m, x: m.Mul(m.MatMul(x, drawn(1, 3, 4)), numbers(-2)), X),
    "one factor, two axes": made(lambda m, x: m.Mul(m.MatMul(x, drawn(1, 3, 4)), numbers([[3]])), X),
    "batch normalisation": made(lambda m, x: m.Add(_batch_normalised(m, x, drawn(3, 4)), drawn(4, 4)), X),
    "two of them": made(lambda m, x: _batch_normalised(m, x, drawn(3, 4), drawn(4, 1, 4)), X),
    "offset of all": made(
        lambda m, x: m.Mul(m.Add(numbers(0.5), m.MatMul(x, drawn(1, 3, 4))), drawn(2, 4)), X
    ),
    "convolution": made(lambda m, x: m.Mul(m.Convolution(x, drawn(1, 2, 3, 3, 3)), drawn(2, 2)), IMAGE),
    "square": made(lambda m, x: m.Mul(m.Convolution(x, drawn(1, 3, 3, 3, 3)), drawn(2, 3)), IMAGE),
    "integers": made(
        lambda m, x: m.Mul(m.MatMul(x, drawn(1, 3, 4, low=-3, high=3, dtype="int32")), numbers([2], "int32")),
        tensor("x", 2, 3, dtype=DType.INT32),
    ),
    "factor by row": made(lambda m, x: m.Mul(m.MatMul(x, drawn(1, 3, 4)), drawn(2, 2, 1)), X),
    "factor by row of a square": made(
        lambda m, x: m.Mul(m.MatMul(x, drawn(1, 3, 4)), drawn(2, 4, 1)), tensor("x", 4, 3)
    ),
    "factor by element": made(lambda m, x: m.Mul(m.MatMul(x, drawn(1, 3, 4)), drawn(2, 2, 4)), X),
    "offset by row": made(
        lambda m, x: m.Mul(m.Add(m.MatMul(x, drawn(1, 3, 4)), drawn(2, 2, 1)), drawn(3, 4)), X
    ),
    "spread by the factor": made(lambda m, x: m.Mul(m.MatMul(x, drawn(1, 3, 4)), drawn(2, 3, 1, 4)), X),
    "spread by the offset": made(
        lambda m, x: m.Mul(m.Add(m.MatMul(x, drawn(1, 3, 4)), drawn(2, 3, 1, 4)), numbers(2)), X
    ),
    "a row of one": made(lambda m, x: m.Mul(m.MatMul(x, drawn(1, 3, 1)), drawn(2, 4)), X),
    "vector": made(lambda m, x: m.Mul(m.MatMul(x, drawn(1, 3)), drawn(2, 2)), X),
    "scalar": made(lambda m, x: m.Mul(m.MatMul(x, drawn(1, 3)), numbers(3)), tensor("x", 3)),
}


def _result_inside(m: Maker, x: Value) -> list[Value]:
    y = m.MatMul(x, drawn(1, 3, 4))
    return [m.Mul(y, drawn(2, 4)), y]


FACTORS["result inside"] = made(_result_inside, X)

LAST, FIRST = (0, 2, 3, 1), (0, 3, 1, 2)


def _around(inner: Any, *inputs: Value) -> Any:
    """What stands between a transpose to channels first and one back."""
    return made(
        lambda m, x, *more: m.Transpose(inner(m, m.Transpose(x, perm=FIRST), *more), perm=LAST),
        IMAGE,
        *inputs,
    )


def _into(m: Maker, x: Value, columns: Any = 7, batch: int = 1) -> Value:
    return m.MatMul(m.ReshapeTo(m.Transpose(x, perm=FIRST), to=(batch, 60)), drawn(1, 60, columns))  # type: ignore[no-any-return]


def _two_readers(m: Maker, x: Value) -> list[Value]:
    rows = m.ReshapeTo(m.Transpose(x, perm=FIRST), to=(1, 60))
    return [m.MatMul(rows, drawn(1, 60, 2)), m.MatMul(rows, drawn(2, 60, 3))]


def _one_reader_is_none(m: Maker, x: Value) -> list[Value]:
    rows = m.ReshapeTo(m.Transpose(x, perm=FIRST), to=(1, 60))
    return [m.MatMul(rows, drawn(1, 60, 2)), m.Relu(rows)]


def _rows_are_a_result(m: Maker, x: Value) -> list[Value]:
    rows = m.ReshapeTo(m.Transpose(x, perm=FIRST), to=(1, 60))
    return [m.MatMul(rows, drawn(1, 60, 2)), rows]


def _weights_from_outside(m: Maker, x: Value, w: Value) -> Value:
    return m.MatMul(m.ReshapeTo(m.Transpose(x, perm=FIRST), to=(1, 60)), w)  # type: ignore[no-any-return]


def _on_the_right(m: Maker, x: Value) -> Value:
    rows = m.ReshapeTo(m.Transpose(x, perm=FIRST), to=(1, 60))
    return m.MatMul(drawn(1, 5, 1), rows)  # type: ignore[no-any-return]


SAME, OTHER = tensor("y", 1, 3, 4, 5), tensor("y", 1, 4, 5, 3)
AXES = lambda *a: numbers(a, INT64)  # noqa: E731
TRANSPOSES = {
    "element by element": _around(lambda m, x: m.Mul(m.Relu(x), numbers(np.arange(3.0).reshape(3, 1, 1)))),
    "number": _around(lambda m, x: m.Add(x, numbers(2))),
    "one number of four axes": _around(lambda m, x: m.Add(x, numbers([[[[2]]]]))),
    "number from outside": made(
        lambda m, x, y: m.Mul(m.Transpose(x, perm=FIRST), y), IMAGE, tensor("y", 1, 1, 1)
    ),
    "padded with an input": made(
        lambda m, x, y: m.Pad(m.Transpose(x, perm=FIRST), AXES(0, 1, 0, 0, 0, 0, 2, 0), y), IMAGE, tensor("y")
    ),
    "rows of an input": made(lambda m, x, y: m.Add(m.Transpose(x, perm=FIRST), y), IMAGE, tensor("y", 5)),
    "input of three axes": made(
        lambda m, x, y: m.Add(m.Transpose(x, perm=FIRST), y), IMAGE, tensor("y", 4, 5)
    ),
    "as many elements": made(lambda m, x, y: m.Add(m.Transpose(x, perm=FIRST), y), IMAGE, SAME),
    "both": made(lambda m, x, y: m.Sub(m.Transpose(x, perm=FIRST), m.Transpose(y, perm=FIRST)), IMAGE, OTHER),
    "both, another order": made(
        lambda m, x, y: m.Sub(m.Transpose(x, perm=(0, 3, 1, 2)), m.Transpose(y, perm=(0, 1, 3, 2))),
        IMAGE,
        tensor("y", 1, 3, 5, 4),
    ),
    "a long one and its like": made(
        lambda m, x, y: m.Where(m.Greater(y, numbers(0)), m.Transpose(x, perm=FIRST), numbers(0)),
        IMAGE,
        tensor("y", 1, 3, 1, 1),
    ),
    "more axes than it": made(lambda m, x: m.Add(m.Transpose(x, perm=(1, 0)), drawn(1, 2, 3, 2)), X),
    "identity": made(lambda m, x: m.Relu(m.Transpose(x, perm=(0, 1))), X),
    "identity is a result": made(lambda m, x: m.Transpose(m.Relu(x), perm=(0, 1)), X),
    "twice": made(
        lambda m, x: m.Transpose(m.Transpose(x, perm=(2, 0, 1)), perm=(2, 0, 1)), tensor("x", 2, 3, 4)
    ),
    "twice is none": made(
        lambda m, x: m.Relu(m.Transpose(m.Transpose(x, perm=(2, 0, 1)), perm=(1, 2, 0))), tensor("x", 2, 3, 4)
    ),
    "extents of one": made(lambda m, x: m.Transpose(x, perm=(1, 2, 0)), tensor("x", 1, 6, 1)),
    "one extent is longer": made(lambda m, x: m.Transpose(x, perm=(1, 2, 0)), tensor("x", 2, 6, 1)),
    "mean of axes": _around(lambda m, x: m.ReduceMean(x, AXES(1), keepdims=1)),
    "negative axes": _around(lambda m, x: m.ReduceMax(x, AXES(-1, -2), keepdims=1)),
    "mean without axes": made(
        lambda m, x: m.ReduceMean(m.Transpose(x, perm=FIRST), AXES(2, 3), keepdims=0), IMAGE
    ),
    "kept axes in another order": made(
        lambda m, x: m.ReduceMean(m.Transpose(x, perm=(0, 3, 2, 1)), AXES(1), keepdims=0), IMAGE
    ),
    "mean of all": made(lambda m, x: m.ReduceSum(m.Transpose(x, perm=FIRST), keepdims=0), IMAGE),
    "concatenation": made(
        lambda m, x, y: m.Concat(m.Transpose(x, perm=FIRST), m.Transpose(y, perm=FIRST), axis=1), IMAGE, OTHER
    ),
    "concatenation by the last": made(
        lambda m, x, y: m.Concat(m.Transpose(x, perm=FIRST), m.Transpose(y, perm=FIRST), axis=-1),
        IMAGE,
        OTHER,
    ),
    "concatenation with a constant": _around(lambda m, x: m.Concat(x, drawn(1, 1, 2, 4, 5), axis=1)),
    "concatenation with as much": made(
        lambda m, x, y: m.Concat(m.Transpose(x, perm=FIRST), y, axis=1), IMAGE, SAME
    ),
    "concatenation with less": made(
        lambda m, x, y: m.Concat(m.Transpose(x, perm=FIRST), y, axis=1), IMAGE, tensor("y", 1, 2, 4, 5)
    ),
    "concatenation with more that needs none": made(
        lambda m, x, *y: m.Concat(*y, m.Transpose(x, perm=(0, 2, 1)), axis=2),
        tensor("x", 2, 2, 4),
        *(tensor(name, 2, 4, 1) for name in "abc"),
    ),
    "concatenation with what needs none": made(
        lambda m, x, y: m.Concat(m.Transpose(x, perm=(0, 2, 1)), y, axis=2),
        tensor("x", 1, 1, 4),
        tensor("y", 1, 4, 6),
    ),
    "padding": _around(lambda m, x: m.Pad(x, AXES(0, 1, 0, 2, 0, 0, 3, 0))),
    "padding of axes": _around(lambda m, x: m.Pad(x, AXES(1, 2, 3, 0), numbers(7), AXES(-1, 1))),
    "padding of axes, no number": _around(lambda m, x: m.Pad(x, AXES(1, 2, 3, 0), None, AXES(3, 1))),
    "dequantised by blocks": made(
        lambda m, x: m.Relu(
            m.DequantizeLinear(m.Transpose(x, perm=(1, 0)), drawn(1, 4, 2), axis=1, block_size=2)
        ),
        tensor("x", 3, 4, dtype=DType.INT8),
    ),
    "dequantised by two numbers": made(
        lambda m, x: m.Relu(m.DequantizeLinear(m.Transpose(x, perm=(1, 0)), drawn(1, 2), axis=-2)),
        tensor("x", 3, 2, dtype=DType.INT8),
    ),
    "dequantised by one number": made(
        lambda m, x: m.Relu(m.DequantizeLinear(m.Transpose(x, perm=(1, 0)), numbers(0.3))),
        tensor("x", 3, 4, dtype=DType.INT8),
    ),
    "padding, a number": _around(lambda m, x: m.Pad(x, AXES(0, 1, 0, 2, 0, 0, 3, 0), numbers(-4))),
    "slice": _around(lambda m, x: m.Slice(x, AXES(1, 0), AXES(3, 9), AXES(3, 1), AXES(2, 1))),
    "slice of the first axes": made(
        lambda m, x: m.Slice(m.Transpose(x, perm=FIRST), AXES(0, 1), AXES(1, 3)), IMAGE
    ),
    "split": made(lambda m, x: list(m.Split(m.Transpose(x, perm=FIRST), AXES(1, 2), axis=1)), IMAGE),
    "split in halves": made(
        lambda m, x: list(m.Split(m.Transpose(x, perm=FIRST), axis=-2, num_outputs=2)), IMAGE
    ),
    "slice by an input": made(
        lambda m, x, b: m.GatherElements(m.Transpose(x, perm=(1, 0)), b, axis=0),
        X,
        tensor("b", 1, 2, dtype=DType.INT64),
    ),
    "reshape to one axis more": made(lambda m, x: m.ReshapeTo(m.Transpose(x, perm=(1, 0)), to=(3, 1, 2)), X),
    "reshape to fewer": made(
        lambda m, x: m.ReshapeTo(m.Transpose(x, perm=(2, 1, 0)), to=(4, 3)), tensor("x", 3, 1, 4)
    ),
    "reshape of three": made(
        lambda m, x: m.ReshapeTo(m.Transpose(x, perm=(2, 0, 1)), to=(1, 4, 2, 1, 3)), tensor("x", 2, 3, 4)
    ),
    "reshape that mixes": made(lambda m, x: m.ReshapeTo(m.Transpose(x, perm=(1, 0)), to=(6,)), X),
    "reshape of nothing moved": made(
        lambda m, x: m.ReshapeTo(m.Transpose(x, perm=(1, 0, 2)), to=(12,)), tensor("x", 3, 1, 4)
    ),
    "into weights": made(_into, IMAGE),
    "into weights of two": made(_two_readers, IMAGE),
    "not into weights of one of two": made(_one_reader_is_none, IMAGE),
    "rows are a result": made(_rows_are_a_result, IMAGE),
    "weights are an input": made(_weights_from_outside, IMAGE, tensor("w", 60, 2)),
    "rows on the right": made(_on_the_right, IMAGE),
    "rows of a batch": made(lambda m, x: _into(m, x, batch=2), tensor("x", 2, 4, 5, 3)),
    "the batch moves": made(
        lambda m, x: m.MatMul(m.ReshapeTo(m.Transpose(x, perm=(1, 0, 2)), to=(2, 12)), drawn(1, 12, 2)),
        tensor("x", 3, 2, 4),
    ),
    "weights of three axes": made(
        lambda m, x: m.MatMul(m.ReshapeTo(m.Transpose(x, perm=FIRST), to=(1, 60)), drawn(1, 2, 60, 3)), IMAGE
    ),
    "through nothing": made(lambda m, x: m.CumSum(m.Transpose(x, perm=(1, 0)), numbers(0, INT64)), X),
    "constant weights stay": made(
        lambda m, x: m.Relu(m.Transpose(m.Transpose(x, perm=(1, 0)), perm=(1, 0))), X
    ),
    "an absent input": made(lambda m, x: m.Clip(m.Transpose(x, perm=(1, 0)), None, numbers(0.5)), X),
}


def _expanded_first(graph: Graph) -> bool:
    changed = [p(graph) for p in (expand, fold_constants, move_transposes)]
    return any(changed)


COMPOSITES = {"resampling": _around(lambda m, x: m.Resize(x, None, None, AXES(1, 3, 7, 4), mode="linear"))}

CASES: dict[str, PassCase] = {
    **{f"fold_constants: {k}": PassCase(fold_constants, v, special=True) for k, v in FOLDING.items()},
    **{f"widen: {k}": PassCase(widen, v, special=True) for k, v in WIDENING.items()},
    **{f"expand: {k}": PassCase(expand, v, 1e-6) for k, v in EXPANSION.items()},
    **{f"prune: {k}": PassCase(prune, v, special=True) for k, v in PRUNING.items()},
    **{f"fuse_affine: {k}": PassCase(fuse_affine, v, 1e-5) for k, v in FACTORS.items()},
    **{f"move_transposes: {k}": PassCase(move_transposes, v, 1e-6) for k, v in TRANSPOSES.items()},
    **{f"move_transposes: {k}": PassCase(_expanded_first, v, 1e-6) for k, v in COMPOSITES.items()},
}
