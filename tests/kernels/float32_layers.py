"""Layers of the kernels' table for floats: convolutions, transposed ones, matrix products."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from draw import SHAPES, WINDOWS, Draw
from layer import Layer, Step

from aot_model.ir.graph import Graph
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.convolution import Convolution, ConvolutionTranspose
from aot_model.ops.elementwise import op
from aot_model.ops.matmul import MatMul
from aot_model.ops.movement import Transpose
from aot_model.ops.registry import OPERATORS, Build


def windows_by_channel() -> list[tuple[tuple[int, ...], tuple[int, ...], bool, dict[str, Any]]]:
    """(weights, x, whether the weights are an input, attributes): of 1-D, 2-D and 3-D, grouped and depthwise,
    for convolutions and transposed ones.
    """
    window = {
        1: {"strides": (3,), "pads": (1, 0), "dilations": (2,)},
        2: {"strides": (2, 1), "pads": (0, 1, 1, 1), "dilations": (1, 2)},
        3: {"strides": (2, 1, 2), "pads": (1, 0, 1, 0, 1, 1), "dilations": (1, 2, 1)},
    }
    sizes = {1: ((17,), (5,)), 2: ((9, 8), (3, 4)), 3: ((5, 6, 7), (2, 3, 3))}
    found = []
    for k, (d, outs, ins, group) in enumerate(
        [
            (3, 6, 4, 1),
            (3, 8, 8, 2),
            (3, 10, 10, 10),
            (3, 6, 3, 3),
            (2, 16, 16, 16),
            (2, 21, 7, 7),
            (1, 8, 8, 8),
            (1, 12, 12, 3),
            (2, 9, 9, 3),
            (2, 5, 3, 1),
        ]
    ):
        (size, kernel), batch = sizes[d], 1 + k % 2
        for fed in (False, True):
            found.append(
                ((outs, *kernel, ins // group), (batch, *size, ins), fed, {"group": group, **window[d]})
            )
    return found


def float_convolutions(transposed: bool) -> list[Layer]:
    draw, layers = Draw(34), []
    operator = ConvolutionTranspose if transposed else Convolution

    def add(shape: tuple[int, ...], w: np.ndarray, **window: Any) -> None:
        turn = len(layers)
        bias, relu = Step(op("Add"), (draw.tensor(np.float32, w.shape[0]),)), Step(OPERATORS["", "Relu"]())
        tail = ((bias, relu), (bias,), (), (relu,))[turn % 4]
        layers.append(
            Layer(
                f"{turn} {list(shape)} * {list(w.shape)} {window}",
                draw.tensor(np.float32, *shape),
                (Step(operator(**window), (w,)), *tail),
            )
        )

    for k, (kernel, ins, outs) in enumerate((*SHAPES, ((3, 3), 8, 17), ((1, 1), 16, 32))):
        for window in (WINDOWS[k % 6], WINDOWS[(k + 2) % 6]):
            add((1 + k % 2, 7, 9, ins), draw.tensor(np.float32, outs, *kernel, ins), **window)
    add((1, 6, 6, 8), draw.tensor(np.float32, 6, 3, 3, 4), group=2, pads=(1, 1, 1, 1))
    add(
        (2, 15, 4),
        draw.tensor(np.float32, 6, 3, 4),
        strides=(2,),
        pads=(1, 1),
        dilations=(1,),
        **({"output_padding": (0,)} if transposed else {}),
    )
    for w, x, fed, window in windows_by_channel():
        values = draw.tensor(np.float32, *w)
        if transposed:
            window = {**window, "output_padding": (*[0] * (len(x) - 3), window["strides"][-1] - 1)}
        layers.append(
            Layer(
                f"{len(layers)} {list(x)} * {list(w)} {'given ' if fed else ''}{window}",
                draw.tensor(np.float32, *x),
                (Step(operator(**window), (values,), fed),),
            )
        )
    for channels, window in () if transposed else ((8, WINDOWS[2]), (21, WINDOWS[3]), (4, WINDOWS[5])):
        add((1, 8, 10, channels), draw.tensor(np.float32, channels, 3, 3, 1), **window, group=channels)
    one_channel: tuple[tuple[tuple[int, ...], int, tuple[int, ...], dict[str, Any]], ...] = (
        ((2, 9, 10), 8, (3, 3), {"strides": (1, 1), "pads": (1, 1, 1, 1), "dilations": (1, 1)}),
        ((1, 11, 21), 6, (5, 5), {"strides": (1, 2), "pads": (0, 2, 1, 1), "dilations": (1, 1)}),
        ((1, 21, 10), 9, (10, 4), {"strides": (2, 2), "pads": (4, 1, 5, 1), "dilations": (1, 1)}),
        ((1, 9, 14), 5, (2, 3), {"strides": (3, 1), "pads": (0, 2, 1, 0), "dilations": (1, 2)}),
        ((1, 6, 7), 5, (1, 1), {"strides": (2, 1), "pads": (0, 0, 0, 0), "dilations": (1, 1)}),
        ((2, 40), 6, (8,), {"strides": (2,), "pads": (2, 1), "dilations": (1,)}),
        ((1, 90), 4, (33,), {"strides": (1,), "pads": (0, 0), "dilations": (1,)}),
        (
            (1, 4, 5, 8),
            4,
            (2, 3, 3),
            {"strides": (2, 1, 1), "pads": (0, 1, 1, 1, 0, 1), "dilations": (1,) * 3},
        ),
    )
    for (batch, *size), outs, kernel, window in () if transposed else one_channel:
        add((batch, *size, 1), draw.tensor(np.float32, outs, *kernel, 1), **window)
    for ins, of in () if transposed else ((2, 0), (3, 1), (4, 0), (4, 3), (5, 5), (8, 0)):  # few channels
        (batch, *size), outs, kernel, window = one_channel[of]
        add((batch, *size, ins), draw.tensor(np.float32, outs, *kernel, ins), **window)
    for kernel in ((2, 1, 2), (1, 3, 1), (3, 2, 1)) if transposed else ():  # phases without a tap
        three = {"strides": (2, 2, 2), "pads": (0,) * 6, "dilations": (1, 1, 1), "output_padding": (0, 0, 1)}
        add((1, 3, 4, 5, 16), draw.tensor(np.float32, 24, *kernel, 16), **three)
    return layers


def float_products() -> list[Layer]:
    draw, layers = Draw(35), []
    relu = Step(OPERATORS["", "Relu"]())
    sizes: list[tuple[tuple[int, ...], tuple[int, ...]]] = [
        ((1, 64), (64, 12)),
        ((7, 33), (33, 17)),
        ((4, 16), (16, 16)),
        ((2, 3, 8), (8, 5)),
        ((2, 5, 9), (2, 9, 4)),
        ((3, 1, 4, 6), (1, 2, 6, 8)),
        ((6,), (6, 5)),
        ((3, 7), (7,)),
        ((1, 3, 2, 4, 6), (3, 1, 6, 5)),
        ((2, 1, 2, 1, 5), (2, 2, 5, 3)),
        ((2, 3, 5), (2, 5, 92)),
    ]
    for a, b in sizes:
        for fed in (False, True):
            layers.append(
                Layer(
                    f"{len(layers)} {a} x {b} {'input' if fed else 'constant'}",
                    draw.tensor(np.float32, *a),
                    (Step(MatMul(), (draw.tensor(np.float32, *b),), fed), *((relu,) if fed else ())),
                )
            )
    return layers


@dataclass(frozen=True)
class OfSecondOperand(Layer):
    """A product whose second operand is x with its axes turned round, so that the elements of a row are apart
    from each other in memory: the first step is the transpose, the second has the first operand.
    """

    @cached_property
    def _result(self) -> np.ndarray:
        (first,) = self.steps[1].others
        return np.asarray(first.astype(np.float64) @ self.x.astype(np.float64).T, np.float32)

    def graph(self) -> Graph:
        (a,) = self.steps[1].others
        x, first = (Value(n, TensorType(DType.FLOAT32, v.shape)) for n, v in (("x", self.x), ("a", a)))
        graph = Graph("layer", [x, first])
        build = Build(graph.nodes, "layer")
        y = build(MatMul(), first, build(self.steps[0].operator, x))
        y.name, graph.outputs = "y", [y]
        return graph


def products_of_apart() -> list[Layer]:
    """Vectors of columns that are gathered, and too few rows for that."""
    draw = Draw(71)
    return [
        OfSecondOperand(
            f"{rows} rows by columns apart",
            draw.tensor(np.float32, 9, 7),
            (Step(Transpose((1, 0))), Step(MatMul(), (draw.tensor(np.float32, rows, 7),), True)),
        )
        for rows in (3, 6)
    ]
