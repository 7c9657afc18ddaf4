"""Layers of many shapes, alone, on a Cortex-M: instructions and estimated cycles per multiply-accumulate, or
per element of the output, the dearest of its kind first. It finds the shapes that no schedule was written
for.

    python tests/bench/layer_shapes.py [--core m55] [--types int8,int16,float32] [--only dense] [--check]

int16: 16-bit activations with weights of int8; `x int8` is what it takes of the cycles of the int8 layer.
Weights and inputs are random, the same ones every time. --check: outputs are compared with LiteRT's reference
kernels.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from math import prod
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from one_layer import SAME, VALID, Shape, convolution, dense, depthwise, elementwise, pool, transposed

from aot_model.emit.view import Options
from aot_model.errors import CompileError
from aot_model.host.timing import of_model
from aot_model.pipeline import Request, compile_model
from firmware import run_firmware
from tflite_reference import litert


def shapes() -> Iterator[Shape]:
    """Small, large, odd ones; those that networks for microcontrollers have most of first."""
    for size, ins, outs in (
        ((12, 12), 8, 16),
        ((12, 12), 16, 16),
        ((24, 24), 16, 24),
        ((10, 10), 32, 64),
        ((10, 10), 64, 64),
        ((6, 6), 96, 40),
        ((3, 3), 128, 256),
        ((9, 7), 13, 21),
        ((20, 20), 3, 8),
        ((14, 14), 24, 144),
        ((14, 14), 144, 24),
        ((1, 49), 40, 33),
        ((16, 16), 1, 8),
        ((12, 12), 32, 1),
        ((12, 12), 48, 5),
    ):
        yield convolution("pointwise", size, ins, outs, (1, 1))
    yield convolution("pointwise", (12, 12), 32, 32, (1, 1), (2, 2))
    for size, ins, outs, kernel, stride in (
        ((24, 24), 3, 8, (3, 3), (2, 2)),
        ((32, 32), 3, 16, (3, 3), (1, 1)),
        ((28, 28), 1, 8, (3, 3), (1, 1)),
        ((28, 28), 1, 6, (5, 5), (1, 1)),
        ((12, 12), 8, 16, (3, 3), (1, 1)),
        ((12, 12), 16, 16, (3, 3), (1, 1)),
        ((8, 8), 32, 32, (3, 3), (1, 1)),
        ((8, 8), 64, 64, (3, 3), (1, 1)),
        ((12, 12), 16, 32, (3, 3), (2, 2)),
        ((9, 9), 12, 10, (3, 3), (1, 1)),
        ((11, 13), 7, 9, (3, 3), (1, 1)),
        ((10, 10), 6, 12, (5, 5), (1, 1)),
        ((49, 10), 1, 64, (10, 4), (2, 2)),
        ((12, 12), 16, 16, (1, 3), (1, 1)),
        ((12, 12), 16, 16, (3, 1), (1, 1)),
        ((12, 12), 16, 24, (2, 2), (2, 2)),
        ((24, 24), 3, 16, (4, 4), (4, 4)),
        ((24, 24), 3, 16, (7, 7), (2, 2)),
    ):
        yield convolution("convolution", size, ins, outs, kernel, stride)
    yield convolution("convolution", (12, 12), 16, 16, (3, 3), padding=VALID)
    yield convolution("dilated", (12, 12), 16, 16, (3, 3), dilation=2)
    yield convolution("dilated", (12, 12), 3, 8, (3, 3), dilation=2)
    yield convolution("1-D", (1, 64), 16, 16, (1, 3))
    yield convolution("1-D", (1, 128), 6, 16, (1, 5), padding=VALID)
    yield convolution("1-D", (1, 128), 1, 16, (1, 9), (1, 2))
    yield convolution("1-D", (1, 128), 3, 8, (1, 7))
    yield convolution("1-D", (64, 1), 16, 16, (3, 1))
    yield convolution("1-D", (1, 64), 24, 24, (1, 3), dilation=4)
    yield convolution("grouped", (12, 12), 16, 16, (3, 3), groups=2)
    yield convolution("grouped", (12, 12), 32, 32, (3, 3), groups=8)
    yield convolution("grouped", (12, 12), 32, 32, (3, 3), groups=16)
    yield convolution("grouped", (12, 12), 64, 64, (1, 1), groups=4)
    for size, channels, kernel in (
        ((12, 12), 8, (3, 3)),
        ((12, 12), 16, (3, 3)),
        ((25, 5), 64, (3, 3)),
        ((6, 6), 128, (3, 3)),
        ((24, 24), 8, (3, 3)),
        ((9, 9), 13, (3, 3)),
        ((3, 3), 256, (3, 3)),
        ((16, 16), 3, (3, 3)),
        ((12, 12), 16, (5, 5)),
        ((7, 7), 48, (5, 5)),
        ((12, 12), 16, (7, 7)),
        ((12, 12), 16, (1, 3)),
        ((12, 12), 16, (3, 1)),
        ((12, 12), 16, (1, 5)),
        ((12, 12), 16, (5, 1)),
        ((12, 12), 16, (1, 7)),
        ((1, 64), 32, (1, 3)),
        ((1, 64), 32, (1, 5)),
        ((1, 64), 32, (1, 9)),
        ((1, 98), 64, (1, 9)),
        ((49, 1), 40, (9, 1)),
        ((1, 49), 64, (1, 15)),
        ((1, 49), 64, (1, 21)),
        ((12, 12), 16, (2, 2)),
        ((12, 12), 16, (4, 4)),
        ((12, 12), 10, (1, 9)),
    ):
        yield depthwise(size, channels, kernel)
    for size, channels, kernel, stride in (
        ((12, 12), 16, (3, 3), (2, 2)),
        ((24, 24), 8, (3, 3), (2, 2)),
        ((12, 12), 16, (5, 5), (2, 2)),
        ((12, 12), 48, (3, 3), (2, 2)),
        ((1, 98), 32, (1, 5), (1, 2)),
        ((49, 10), 8, (10, 4), (2, 2)),
    ):
        yield depthwise(size, channels, kernel, stride)
    yield depthwise((12, 12), 16, (3, 3), padding=VALID)
    yield depthwise((12, 12), 16, (3, 3), dilation=2)
    yield depthwise((1, 64), 32, (1, 3), dilation=4)
    yield depthwise((12, 12), 16, (5, 5), padding=VALID)
    yield depthwise((12, 12), 16, (1, 3), padding=VALID)
    yield depthwise((12, 12), 8, (3, 3), multiplier=2)
    yield depthwise((28, 28), 1, (3, 3), multiplier=8)
    yield depthwise((49, 40), 1, (10, 8), (2, 2), multiplier=8)
    yield depthwise((12, 12), 3, (3, 3), (2, 2), multiplier=8)
    yield depthwise((12, 12), 8, (5, 5), multiplier=2)
    for size, ins, outs, kernel, stride in (
        ((8, 8), 16, 8, (2, 2), (2, 2)),
        ((8, 8), 16, 16, (3, 3), (2, 2)),
        ((8, 8), 8, 8, (4, 4), (2, 2)),
        ((8, 8), 24, 12, (3, 3), (1, 1)),
    ):
        yield transposed(size, ins, outs, kernel, stride)
    for rows, ins, outs in (
        (1, 64, 10),
        (1, 128, 128),
        (1, 640, 128),
        (1, 784, 32),
        (1, 32, 1),
        (1, 13, 7),
        (1, 8, 640),
        (16, 32, 32),
        (49, 40, 24),
        (7, 65, 33),
    ):
        yield dense(rows, ins, outs)
    for mode in ("MAX", "AVERAGE"):
        for size, channels, kernel, stride in (
            ((12, 12), 16, (2, 2), (2, 2)),
            ((24, 24), 6, (2, 2), (2, 2)),
            ((11, 11), 13, (3, 3), (2, 2)),
            ((7, 7), 64, (7, 7), (1, 1)),
            ((25, 5), 64, (25, 5), (1, 1)),
            ((12, 12), 1, (2, 2), (2, 2)),
            ((1, 128), 16, (1, 2), (1, 2)),
        ):
            yield pool(mode, size, channels, kernel, stride)
        yield pool(mode, (12, 12), 16, (3, 3), (1, 1), SAME)
    image = (1, 12, 12, 16)
    for x in (image, (1, 9, 9, 13), (1, 64)):
        yield elementwise("ADD", x, 2, options="AddOptions")
        yield elementwise("MUL", x, 2, options="MulOptions")
    yield elementwise("SUB", image, 2, options="SubOptions")
    yield elementwise("CONCATENATION", image, 2, (1, 12, 12, 32), "ConcatenationOptions", {"Axis": 3})
    yield elementwise("CONCATENATION", (1, 9, 9, 5), 2, (1, 9, 9, 10), "ConcatenationOptions", {"Axis": 3})
    yield elementwise(
        "RESIZE_BILINEAR",
        image,
        1,
        (1, 24, 24, 16),
        "ResizeBilinearOptions",
        {"HalfPixelCenters": True},
        ((24, 24),),
    )
    yield elementwise(
        "RESIZE_NEAREST_NEIGHBOR", image, 1, (1, 24, 24, 16), "ResizeNearestNeighborOptions", {}, ((24, 24),)
    )
    yield elementwise("SOFTMAX", (1, 10), options="SoftmaxOptions", fields={"Beta": 1.0})
    yield elementwise("SOFTMAX", (32, 32), options="SoftmaxOptions", fields={"Beta": 1.0})
    for operator in ("LOGISTIC", "TANH", "HARD_SWISH", "RELU", "LEAKY_RELU"):
        yield elementwise(
            operator,
            image,
            options="LeakyReluOptions" if operator[:2] == "LE" else None,
            fields={"Alpha": 0.1} if operator[:2] == "LE" else {},
        )
    mean = elementwise("MEAN", image, 1, (1, 16), "ReducerOptions", {"KeepDims": False}, ((1, 2),))
    yield Shape(
        mean.kind,
        mean.name,
        prod(image),
        *[getattr(mean, f) for f in ("operator", "x", "y", "w", "options", "fields", "inputs", "constants")],
    )
    yield elementwise("QUANTIZE", image)
    yield elementwise("PAD", image, 1, (1, 14, 14, 16), "PadOptions", {}, ((0, 0, 1, 1, 1, 1, 0, 0),))
    yield elementwise("TRANSPOSE", image, 1, (1, 16, 12, 12), "TransposeOptions", {}, ((0, 3, 1, 2),))


def measured(shape: Shape, of: str, core: str, check: bool) -> tuple[int, int]:
    """(instructions, cycles) of one inference. AssertionError for numbers that are not LiteRT's."""
    model, inputs = shape.network(of)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "net.tflite").write_bytes(model)
        request = Request(
            folder / "net.tflite", "model", f"cortex-{core}", library=Options(io="caller", metadata="none")
        )
        if check:
            (folder / "check").mkdir()
            rounded = compile_model(replace(request, options={"arithmetic": "litert-ref"}))
            got = run_firmware(rounded, core, [inputs], folder / "check").outputs[0][0]
            want = litert(model, inputs)[0]
            close = np.abs(got.reshape(want.shape).astype(np.float64) - want).max()
            allowed = 1e-4 if of == "float32" else 0
            assert close <= allowed, f"{shape.kind} {shape.name} {of}: off by {close}"
        compiled = compile_model(request)
        time = of_model(compiled.view, compiled.texts, folder, "0ws", vectors=[inputs])
    return time.instructions, time.cycles


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--core", default="m55")
    parser.add_argument("--types", default="int8,int16,float32")
    parser.add_argument("--only", default="", help="shapes with this in their kind or name")
    parser.add_argument("--check", action="store_true")
    arguments = parser.parse_args()
    types = arguments.types.split(",")
    found: list[tuple[Shape, dict[str, tuple[int, int]]]] = []
    for shape in shapes():
        if arguments.only not in f"{shape.kind} {shape.name}":
            continue
        row = {}
        for of in types:
            try:
                row[of] = measured(shape, of, arguments.core, arguments.check)
            except CompileError as error:
                print(f"{shape.kind} {shape.name} {of}: {error.problems[0].message}", file=sys.stderr)
            except AssertionError as error:
                print(error, file=sys.stderr)
        found.append((shape, row))
    kinds = list(dict.fromkeys(shape.kind for shape, _ in found))
    beside = "  x int8" if "int8" in types else ""
    head = "".join(f"{of:>9} c/MAC{beside if of == 'int16' else ''}" for of in types)
    print(f"{'':52}{head}")
    for kind in kinds:
        rows = [(s, r) for s, r in found if s.kind == kind and types[0] in r]
        for shape, row in sorted(rows, key=lambda one: -one[1][types[0]][1] / one[0].work):
            cells = []
            for of in types:
                n, c = (v / shape.work for v in row.get(of, (float("nan"),) * 2))
                ratio = row[of][1] / row["int8"][1] if of == "int16" and {"int8", of} <= row.keys() else None
                cells.append(
                    f"{n:9.3f} {c:5.2f}"
                    + (
                        f"{ratio:8.2f}"
                        if ratio is not None
                        else " " * 8
                        if of == "int16" and "int8" in types
                        else ""
                    )
                )
            print(f"{kind:12} {shape.name:38} {''.join(cells)}")


if __name__ == "__main__":
    main()
