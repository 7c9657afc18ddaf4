"""Layers of the kernels' table with the mean or the largest element of windows: floats and integers."""

from __future__ import annotations

from typing import Any

import numpy as np
from draw import Draw
from layer import Layer, Step

from aot_model.ops.elementwise import op
from aot_model.ops.pool import Pool


def pools(*kinds: tuple[str, type[Any]]) -> list[Layer]:
    draw, layers = Draw(33), []
    kernels: tuple[tuple[tuple[int, int], dict[str, Any]], ...] = (
        ((2, 2), {"strides": (2, 2)}),
        ((3, 3), {"pads": (1, 1, 1, 1), "strides": (2, 1)}),
        ((7, 8), {}),
        ((1, 1), {"strides": (2, 2)}),
        ((3, 2), {"pads": (1, 0, 2, 1)}),
        ((3, 3), {"pads": (1, 1, 1, 1), "strides": (1, 2)}),
    )
    for mode, kind in kinds:
        for channels, (kernel, window) in zip((16, 5, 13, 1, 33, 8), kernels, strict=True):
            layers.append(
                Layer(
                    f"{len(layers)} {mode} {kind.__name__} {kernel} {window}",
                    draw.tensor(kind, 2, 7, 8, channels),
                    (Step(Pool(mode, kernel, **window)),),
                )
            )
        if mode == "average":  # sums around 0: halves, which are rounded away from it
            near = np.asarray(draw.rng.integers(0, 3, (1, 6, 8, 5)) - (np.dtype(kind).kind == "i"), kind)
            layers.append(
                Layer(f"{len(layers)} {mode} {kind.__name__} around 0", near, (Step(Pool(mode, (1, 2))),))
            )
    deep = {"strides": (2, 1, 2), "pads": (1, 0, 1, 0, 2, 1), "dilations": (1, 2, 1)}
    for mode, kind in kinds:
        for counted in (0, 1) if kind is np.float32 else ():
            pool = Pool(mode, (3, 3, 2), **deep, count_include_pad=counted)
            layers.append(
                Layer(
                    f"{len(layers)} {mode} {kind.__name__} volume {counted}",
                    draw.tensor(kind, 2, 5, 7, 6, 5),
                    (Step(pool),),
                )
            )
    layers += [
        Layer(
            f"{len(layers)} {mode} {kind.__name__} line",
            draw.tensor(kind, 2, 9, 6),
            (Step(Pool(mode, (3,), (2,), (1, 1), (1,))),),
        )
        for mode, kind in kinds
    ]
    return layers


def integer_pools() -> list[Layer]:
    layers = pools(("max", np.int8), ("average", np.int8), ("average", np.uint8), ("max", np.uint8),
                   ("average", np.int16), ("max", np.int16))  # fmt: skip
    draw = Draw(37)
    for rows, columns in ((18, 20), (21, 18), (40, 30)):  # means of many: all the largest, around halves
        x = np.full((1, rows, columns, 6), -32768, np.int16)
        x[..., 1] = 32767
        x[..., 2:] = draw.rng.integers(-1, 2, (1, rows, columns, 4)) + draw.tensor(np.int16, 4)
        x[..., : columns // 2, 3] += 1
        layers.append(Layer(f"mean of {rows} x {columns}", x, (Step(Pool("average", (rows, columns))),)))
    for mode in ("average", "max"):
        fed = Step(op("Add"), (draw.tensor(np.int16, 1, 4, 3, 9),), fed=True)
        layers.append(
            Layer(
                f"{mode} int16 with a sum behind",
                draw.tensor(np.int16, 1, 5, 7, 9),
                (Step(Pool(mode, (2, 3), (1, 2))), fed),
            )
        )
    return layers
