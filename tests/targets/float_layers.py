"""ONNX models of one or a few float layers, for targets that compute floats."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from onnx import helper
from onnx.reference import ReferenceEvaluator

from onnx_models import model, tensor

_RNG = np.random.default_rng(17)


def real(*shape: int) -> np.ndarray:
    """Constants between -1 and 1."""
    return np.asarray(_RNG.uniform(-1, 1, shape), np.float32)


@dataclass(frozen=True)
class Case:
    """Nodes as (operator, inputs, outputs, attributes); x, and x2 where shapes has two, are the inputs, y the
    output.
    """

    name: str
    shapes: tuple[tuple[int, ...], ...]
    nodes: Sequence[tuple[str, str, str, Mapping[str, Any]]]
    constants: Mapping[str, np.ndarray] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.name

    def proto(self) -> onnx.ModelProto:
        nodes = [
            helper.make_node(op, ins.split(), outs.split(), name=f"{op.lower()}{k}", **more)
            for k, (op, ins, outs, more) in enumerate(self.nodes)
        ]
        inputs = [tensor(n, s) for n, s in zip(("x", "x2"), self.shapes, strict=False)]
        outputs = [
            tensor(n, None) for n in ("y", "y2") if any(n in outs.split() for _, _, outs, _ in self.nodes)
        ]
        return model(nodes, inputs, outputs, self.constants)

    def inputs(self) -> list[np.ndarray]:
        rng = np.random.default_rng(3)
        return [np.asarray(rng.uniform(-2, 2, s), np.float32) for s in self.shapes]

    def expected(self) -> list[np.ndarray]:
        """What ONNX's reference evaluator computes for the inputs."""
        return ReferenceEvaluator(self.proto()).run(None, dict(zip(("x", "x2"), self.inputs(), strict=False)))


def _conv(
    name: str, x: tuple[int, ...], w: tuple[int, ...], *, bias: bool = True, then: str = "", **more: Any
) -> Case:
    operands = "x w b" if bias else "x w"
    nodes: list[tuple[str, str, str, Mapping[str, Any]]] = [("Conv", operands, "c" if then else "y", more)]
    if then:
        nodes.append((then, "c", "y", {}))
    return Case(name, (x,), nodes, {"w": real(*w), **({"b": real(w[0])} if bias else {})})


CONVOLUTIONS = (
    _conv("conv2d", (1, 3, 7, 6), (4, 3, 3, 3), pads=[1, 1, 1, 1]),
    _conv("conv2d_without_bias", (1, 3, 7, 6), (4, 3, 3, 3), bias=False),
    _conv("conv2d_asymmetric_padding", (1, 2, 8, 7), (3, 2, 4, 2), pads=[0, 1, 2, 0], strides=[2, 2]),
    _conv("conv2d_stride_beyond_kernel", (1, 2, 9, 8), (3, 2, 2, 1), strides=[3, 5]),
    _conv("conv2d_dilation", (1, 2, 9, 9), (3, 2, 3, 3), dilations=[2, 3], pads=[2, 3, 2, 3]),
    _conv("conv2d_batch_relu", (3, 2, 5, 4), (3, 2, 3, 2), then="Relu"),
    _conv("conv2d_groups", (1, 4, 5, 5), (6, 2, 3, 3), group=2, then="Relu"),
    _conv("conv2d_depthwise", (1, 4, 5, 5), (4, 1, 3, 3), group=4, pads=[1, 1, 1, 1]),
    _conv("conv2d_depth_multiplier", (1, 3, 5, 5), (6, 1, 3, 2), group=3),
    _conv("conv2d_1x1", (2, 5, 3, 4), (7, 5, 1, 1)),
)
PRODUCTS = (
    Case("dense", ((2, 7),), [("Gemm", "x w b", "y", {"transB": 1})], {"w": real(5, 7), "b": real(5)}),
    Case(
        "dense_relu",
        ((1, 7),),
        [("Gemm", "x w b", "g", {}), ("Relu", "g", "y", {})],
        {"w": real(7, 5), "b": real(5)},
    ),
    Case("matmul", ((2, 3, 4),), [("MatMul", "x w", "y", {})], {"w": real(4, 5)}),
    Case(
        "matmul_bias",
        ((3, 4),),
        [("MatMul", "x w", "m", {}), ("Add", "m b", "y", {})],
        {"w": real(4, 5), "b": real(5)},
    ),
)
POOLS = (
    Case(
        "max_pool",
        ((2, 3, 7, 6),),
        [("MaxPool", "x", "y", {"kernel_shape": [3, 2], "strides": [2, 3], "pads": [1, 0, 1, 1]})],
    ),
    Case(
        "average_pool",
        ((1, 3, 7, 6),),
        [("AveragePool", "x", "y", {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1, 1, 1, 1]})],
    ),
    Case(
        "average_pool_counting_padding",
        ((1, 3, 6, 6),),
        [("AveragePool", "x", "y", {"kernel_shape": [3, 3], "pads": [1, 1, 1, 1], "count_include_pad": 1})],
    ),
    Case("global_average", ((1, 3, 5, 4),), [("GlobalAveragePool", "x", "y", {})]),
)
ELEMENTWISE = (
    Case("add", ((2, 5), (2, 5)), [("Add", "x x2", "y", {})]),
    Case("multiply", ((2, 5), (2, 5)), [("Mul", "x x2", "y", {})]),
    Case(
        "subtract_divide",
        ((3, 4), (3, 4)),
        [("Sub", "x x2", "s", {}), ("Div", "s c", "y", {})],
        {"c": real(3, 4) + 2},
    ),
    Case(
        "broadcast", ((2, 3, 4), (3, 1)), [("Mul", "x x2", "m", {}), ("Add", "m c", "y", {})], {"c": real(4)}
    ),
    Case(
        "extrema",
        ((2, 5), (1, 5)),
        [("Max", "x x2", "m", {}), ("Min", "m c", "y", {})],
        {"c": np.asarray(0.5, np.float32)},
    ),
    Case("relu", ((2, 3, 4, 5),), [("Relu", "x", "y", {})]),
    Case(
        "clip",
        ((2, 9),),
        [("Clip", "x low high", "y", {})],
        {"low": np.asarray(-0.5, np.float32), "high": np.asarray(1, np.float32)},
    ),
    Case("clip_below", ((2, 9),), [("Clip", "x low", "y", {})], {"low": np.asarray(-0.5, np.float32)}),
    Case(
        "functions",
        ((2, 9),),
        [
            ("Sigmoid", "x", "a", {}),
            ("Tanh", "a", "b", {}),
            ("Exp", "b", "c", {}),
            ("Sqrt", "c", "d", {}),
            ("Neg", "d", "e", {}),
            ("Abs", "e", "y", {}),
        ],
    ),
    Case("prelu", ((1, 3, 4, 4),), [("PRelu", "x s", "y", {})], {"s": real(3, 1, 1)}),
    Case(
        "batch_norm",
        ((1, 3, 4, 4),),
        [("BatchNormalization", "x s b m v", "y", {})],
        {"s": real(3), "b": real(3), "m": real(3), "v": real(3) + 1.5},
    ),
)
MOVEMENT = (
    Case("softmax", ((3, 7),), [("Softmax", "x", "y", {})]),
    Case("softmax_of_an_inner_axis", ((2, 5, 3),), [("Softmax", "x", "y", {"axis": 1})]),
    Case(
        "mean",
        ((2, 3, 4),),
        [("ReduceMean", "x axes", "y", {"keepdims": 0})],
        {"axes": np.asarray([0, 2], np.int64)},
    ),
    Case(
        "reshape",
        ((2, 3, 4),),
        [("Relu", "x", "r", {}), ("Reshape", "r to", "y", {})],
        {"to": np.asarray([6, 4], np.int64)},
    ),
    Case(
        "transpose",
        ((2, 3, 4),),
        [("Transpose", "x", "t", {"perm": [2, 0, 1]}), ("Add", "t c", "y", {})],
        {"c": real(4, 2, 3)},
    ),
    Case(
        "concatenate", ((2, 3, 2), (2, 1, 2)), [("Concat", "x x2", "c", {"axis": 1}), ("Relu", "c", "y", {})]
    ),
)
NETWORKS = (
    Case(
        "several",
        ((1, 3, 8, 8),),
        [
            ("Conv", "x w b", "c", {"pads": [1, 1, 1, 1]}),
            ("Relu", "c", "r", {}),
            ("Conv", "r w2", "d", {"pads": [1, 1, 1, 1]}),
            ("Add", "d r", "s", {}),
            ("MaxPool", "s", "p", {"kernel_shape": [2, 2], "strides": [2, 2]}),
            ("Flatten", "p", "f", {}),
            ("Gemm", "f v u", "g", {}),
            ("Softmax", "g", "y", {}),
        ],
        {"w": real(4, 3, 3, 3), "b": real(4), "w2": real(4, 4, 3, 3), "v": real(64, 6), "u": real(6)},
    ),
    Case("two_outputs", ((2, 4),), [("Relu", "x", "y", {}), ("Mul", "y c", "y2", {})], {"c": real(2, 4)}),
    Case("one_input_twice", ((2, 4),), [("Mul", "x x", "m", {}), ("Add", "m x", "y", {})]),
)
ALL = (*CONVOLUTIONS, *PRODUCTS, *POOLS, *ELEMENTWISE, *MOVEMENT, *NETWORKS)
