"""Layers of the sizes that networks have, where other tiles and schedules pay than in the small ones of the
table.
"""

from __future__ import annotations

from functools import cache, partial

import numpy as np
from draw import WINDOWS, Draw
from layer import Layer, ProductLayer, Step

from aot_model.ir.graph import Graph
from aot_model.ops.convolution import Convolution
from aot_model.ops.elementwise import op
from aot_model.ops.matmul import MatMul
from aot_model.ops.pool import Pool
from batch import Case


@cache
def int8_layers() -> list[Layer]:
    draw, layers = Draw(41), []

    def convolution(
        size: tuple[int, int],
        ins: int,
        outs: int,
        kernel: tuple[int, int],
        group: int = 1,
        **window: tuple[int, ...],
    ) -> None:
        w = draw.tensor(np.int8, outs, *kernel, ins // group)
        node = Convolution(**window, group=group, x_zero_point=-128)  # type: ignore[arg-type]
        layers.append(
            Layer(
                f"{size} {ins} to {outs} by {kernel} {window}",
                draw.tensor(np.int8, 1, *size, ins),
                (Step(node, (w,)), *draw.requantised(w[0].size, outs, np.int8, 0)),
            )
        )

    for ins, outs in ((8, 16), (16, 16), (32, 24), (24, 64), (64, 64), (12, 10)):
        convolution((6, 7), ins, outs, (1, 1))
    convolution((1, 1), 64, 32, (1, 1))
    for ins, outs in ((3, 8), (8, 8), (16, 16), (20, 6)):
        convolution((8, 8), ins, outs, (3, 3), pads=(1, 1, 1, 1))
        convolution((9, 8), ins, outs, (3, 3), strides=(2, 2), pads=(0, 0, 1, 1))
    convolution((24, 10), 1, 16, (10, 4), strides=(2, 2), pads=(4, 1, 5, 1))
    convolution((30, 1), 12, 16, (5, 1), strides=(2, 1), pads=(2, 0, 2, 0))
    for channels in (8, 24, 64):
        convolution((8, 9), channels, channels, (3, 3), channels, **WINDOWS[2])
        convolution((8, 9), channels, channels, (3, 3), channels, strides=(2, 2), pads=(0, 0, 1, 1))
    convolution((9, 9), 16, 16, (5, 5), 16, pads=(2, 2, 2, 2))
    convolution((25, 1), 24, 24, (9, 1), 24)

    def product(rows: int, depth: int, columns: int) -> None:
        x, w = draw.tensor(np.int8, rows, depth), draw.tensor(np.int8, depth, columns)
        # the reference: a product is a 1x1 convolution
        sums = Step(Convolution((1,), (0, 0), (1,), x_zero_point=3), (w.T.reshape(columns, 1, depth),))
        layers.append(
            ProductLayer(
                f"{rows} x {depth} x {columns}",
                x,
                (Step(MatMul(3, 0), (w,)), *draw.requantised(depth, columns, np.int8, 1)),
                sums,
            )
        )

    for sizes in ((1, 256, 32), (1, 64, 10), (1, 128, 128), (8, 64, 32), (16, 24, 40)):
        product(*sizes)
    for mode in ("max", "average"):
        layers.append(
            Layer(
                f"{mode} 2 x 2",
                draw.tensor(np.int8, 1, 8, 8, 24),
                (Step(Pool(mode, (2, 2), strides=(2, 2))),),
            )
        )
        layers.append(Layer(f"{mode} of all", draw.tensor(np.int8, 1, 6, 6, 40), (Step(Pool(mode, (6, 6))),)))
    for ins in (192, 193):  # as many vectors of 16 bytes as are written out, and one more
        convolution((2, 2), ins, 5, (1, 1))
    product(1, 64, 16)
    convolution((24, 24), 8, 24, (3, 3), pads=(1, 1, 1, 1))  # large enough for Winograd's
    convolution((46, 90), 2, 2, (3, 3), 2, pads=(1, 1, 1, 1))  # an image in strips
    return layers


@cache
def float_layers() -> list[Layer]:
    draw, layers = Draw(42), []
    for size, ins, outs, kernel, group in (
        ((6, 7), 16, 24, (1, 1), 1),
        ((8, 8), 8, 16, (3, 3), 1),
        ((8, 8), 3, 8, (3, 3), 1),
        ((8, 9), 16, 16, (3, 3), 16),
        ((10, 6), 1, 12, (4, 3), 1),
    ):
        w, bias = draw.tensor(np.float32, outs, *kernel, ins // group), draw.tensor(np.float32, outs)
        pads = (1, 1, 1, 1) if kernel == (3, 3) else (0, 0, 0, 0)
        layers.append(
            Layer(
                f"float32 {size} {ins} to {outs} by {kernel}",
                draw.tensor(np.float32, 1, *size, ins),
                (Step(Convolution(group=group, pads=pads), (w,)), Step(op("Add"), (bias,))),
            )
        )
    for rows, depth, columns in ((1, 128, 64), (12, 32, 24), (7, 20, 33)):
        layers.append(
            Layer(
                f"float32 {rows} x {depth} x {columns}",
                draw.tensor(np.float32, rows, depth),
                (Step(MatMul(), (draw.tensor(np.float32, depth, columns),)),),
            )
        )
    return layers


def network_case(layer: Layer, options: dict[str, str]) -> Case:
    """With a graph that is made where it is needed: operators that a table made cannot travel between
    processes.
    """
    return Case(layer.name, partial(_graph, layer.name), (layer.x,), options=options)


def _graph(name: str) -> Graph:
    return next(layer for layer in (*int8_layers(), *float_layers()) if layer.name == name).graph()
