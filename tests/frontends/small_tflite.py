"""Small TFLite models, of one convolution or one choice between branches, and what becomes of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from aot_model.errors import CompileError
from aot_model.frontends.tflite import read_tflite
from aot_model.host.program import HostProgram
from aot_model.host.program import build as build_program
from aot_model.pipeline import Request, compile_model
from tflite_models import BOOL, FLOAT32, INT32, G, Op, T, build

RNG = np.random.default_rng(1)
WEIGHTS = np.asarray(RNG.integers(-127, 128, (4, 3, 3, 2)), dtype=np.int8)
BIAS = np.asarray(RNG.integers(-999, 999, 4), dtype=np.int32)

CONVOLUTION = (
    T("x", (1, 5, 6, 2), zero=(-3,)),
    T("w", WEIGHTS.shape, scale=(0.01, 0.02, 0.03, 0.04), zero=(0,) * 4, data=WEIGHTS),
    T("b", (4,), INT32, scale=(), data=BIAS),
    T("y", (1, 5, 6, 4), scale=(0.7,), zero=(5,)),
)
CONV = Op(
    "CONV_2D",
    (0, 1, 2),
    (3,),
    "Conv2DOptions",
    {"Padding": 0, "StrideH": 1, "StrideW": 1, "FusedActivationFunction": 1},
)


def save(folder: Path, data: bytes) -> Path:
    path = folder / "model.tflite"
    path.write_bytes(data)
    return path


def conv(**changed: Any) -> bytes:
    """The model of one convolution, with tensors changed: x={"scale": …}."""
    tensors = [replace(t, **changed.get(t.name, {})) for t in CONVOLUTION]
    return build(tensors, [CONV], [0], [3])


def errors_of(folder: Path, data: bytes) -> str:
    with pytest.raises(CompileError) as caught:
        read_tflite(save(folder, data))
    return str(caught.value)


def seeds() -> list[bytes]:
    """Valid models of several kinds."""
    pads = np.asarray([[0, 0], [1, 1], [1, 1], [0, 0]], dtype=np.int32)
    x, y = T("x", (1, 4, 4, 2)), T("y", (1, 4, 4, 2))
    dense = np.asarray(RNG.integers(-9, 9, (3, 32)), dtype=np.int8)
    return [
        conv(),
        branches(Op("MUL", (0, 0), (1,), "MulOptions")),
        build(
            [x, T("p", (4, 2), INT32, scale=(), data=pads), T("y", (1, 6, 6, 2))],
            [Op("PAD", (0, 1), (2,))],
            [0],
            [2],
        ),
        build(
            [x, y, T("z", (1, 4, 4, 2), zero=(3,))],
            [Op("ADD", (0, 0), (1,), "AddOptions"), Op("MUL", (1, 0), (2,), "MulOptions")],
            [0],
            [2],
        ),
        build(
            [x, T("w", (3, 32), data=dense), T("y", (1, 3))],
            [Op("FULLY_CONNECTED", (0, 1), (2,), "FullyConnectedOptions")],
            [0],
            [2],
        ),
        build(
            [x, T("y", (1, 2, 2, 2)), T("s", (1, 8), zero=(-128,), scale=(1 / 256,)), T("r", (1, 8))],
            [
                Op(
                    "AVERAGE_POOL_2D",
                    (0,),
                    (1,),
                    "Pool2DOptions",
                    {"FilterHeight": 2, "FilterWidth": 2, "StrideH": 2, "StrideW": 2, "Padding": 1},
                ),
                Op("RESHAPE", (1,), (3,), "ReshapeOptions", {"NewShape": [1, 8]}),
                Op("SOFTMAX", (3,), (2,), "SoftmaxOptions", {"Beta": 1.0}),
            ],
            [0],
            [2],
        ),
    ]


def program(path: Path, folder: Path, *flags: str, **options: str) -> HostProgram:
    compiled = compile_model(Request(path, "m", "c", options))
    return build_program(compiled.view, compiled.texts, folder, ["-O1", *flags])


def scalar(name: str, kind: int = FLOAT32, data: np.ndarray | None = None) -> T:
    return T(name, (), kind, scale=(), data=data)


def branches(*operators: Op) -> bytes:
    """if c: x + x else: x * x, with the operators of the second branch given."""
    main = [scalar("c", BOOL), scalar("x"), scalar("y")]
    body = [scalar("a"), scalar("b")]
    choice = Op("IF", (0, 1), (2,), "IfOptions", {"ThenSubgraphIndex": 1, "ElseSubgraphIndex": 2})
    then = G(body, [Op("ADD", (0, 0), (1,), "AddOptions")], [0], [1])
    return build(main, [choice], [0, 1], [2], then, G(body, operators, [0], [1]))
