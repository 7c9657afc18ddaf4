"""Instructions of every int8 layer of TFLite models on a Cortex-M4 in QEMU, kernel by kernel, checked against
numpy.

usage: kernels_int8.py MODEL.tflite ... [--core m4] [--plain] [--opt=-O2]

One call of the kernel with its requantisation and store, random input; counted by SysTick (a tick is 40
instructions).
"""

from __future__ import annotations

import argparse
import math
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "compiler"), str(ROOT / "tests"), str(ROOT / "tests" / "kernels")]

import arithmetic  # noqa: E402
import tflite  # noqa: E402
from kernel_program import Case, run_board  # noqa: E402

from aot_model.kernels.base import ConvShape, KernelCode  # noqa: E402
from aot_model.kernels.int8 import conv_c, conv_dsp, depthwise_dsp, pooling  # noqa: E402
from aot_model.kernels.int8.requantise import QuantSpec  # noqa: E402

OPS = {v: k for k, v in vars(tflite.BuiltinOperator).items() if isinstance(v, int)}

HARNESS = ("check",)


def quantise_multiplier(real: float) -> tuple[int, int]:
    q, s = math.frexp(real)
    m = math.floor(q * 2**31 + 0.5)
    if m == 2**31:
        m, s = m // 2, s + 1
    return (0, 0) if s < -31 else (m, s)


class Model:
    """What the layers need of a .tflite file."""

    def __init__(self, path: Path) -> None:
        self.model = tflite.Model.GetRootAs(path.read_bytes(), 0)
        self.graph = self.model.Subgraphs(0)

    def shape(self, t: int) -> list[int]:
        return [int(d) for d in self.graph.Tensors(t).ShapeAsNumpy()]

    def scale(self, t: int) -> np.ndarray:
        return np.asarray(self.graph.Tensors(t).Quantization().ScaleAsNumpy(), np.float32)

    def zero_point(self, t: int) -> int:
        return int(self.graph.Tensors(t).Quantization().ZeroPoint(0))

    def data(self, t: int, dtype: type) -> np.ndarray:
        raw = self.model.Buffers(self.graph.Tensors(t).Buffer()).DataAsNumpy()
        return np.frombuffer(raw.tobytes(), dtype).reshape(self.shape(t))


@dataclass(frozen=True)
class Layer:
    """One layer of a model with all that a kernel takes. Pooling has no weights."""

    name: str
    shape: ConvShape
    weights: np.ndarray | None
    """[oc, kh, kw, ic]; depthwise [kh, kw, oc]."""
    bias: np.ndarray | None
    quant: QuantSpec


def read_layer(model: Model, op: tflite.Operator) -> Layer | None:
    """The layer of an operator, None for operators that have no kernel here."""
    code = model.model.OperatorCodes(op.OpcodeIndex())
    name = OPS[max(code.BuiltinCode(), code.DeprecatedBuiltinCode())]
    if name not in ("CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "AVERAGE_POOL_2D"):
        return None
    i, o = [int(v) for v in op.InputsAsNumpy()], int(op.Outputs(0))
    options = {
        "CONV_2D": tflite.Conv2DOptions,
        "DEPTHWISE_CONV_2D": tflite.DepthwiseConv2DOptions,
        "FULLY_CONNECTED": tflite.FullyConnectedOptions,
        "AVERAGE_POOL_2D": tflite.Pool2DOptions,
    }[name]()
    table = op.BuiltinOptions()
    options.Init(table.Bytes, table.Pos)
    if name == "FULLY_CONNECTED":
        (oc, ic) = model.shape(i[1])
        shape = ConvShape(1, 1, 1, ic, 1, 1, oc)
    else:
        n, h, w, c = model.shape(i[0])
        _, oh, ow, oc = model.shape(o)
        kh, kw = (options.FilterHeight(), options.FilterWidth()) if name[0] == "A" else model.shape(i[1])[1:3]
        sh, sw = options.StrideH(), options.StrideW()
        same = options.Padding() == tflite.Padding.SAME
        pad = [
            max((b - 1) * s + k - a, 0) // 2 if same else 0
            for a, b, s, k in ((h, oh, sh, kh), (w, ow, sw, kw))
        ]
        groups = c if name[0] == "D" else 1
        shape = ConvShape(n, h, w, c, oh, ow, oc, kh, kw, sh, sw, 1, 1, pad[0], pad[1], groups)
    if name == "AVERAGE_POOL_2D":
        return Layer(
            name, shape, None, None, QuantSpec(0, np.zeros(1, np.int32), np.zeros(1, np.int32), 0, -128, 127)
        )
    product = model.scale(i[0]).astype(np.float64) * model.scale(i[1]).astype(np.float64)
    if name == "FULLY_CONNECTED":
        product = (model.scale(i[0]) * model.scale(i[1])).astype(np.float64)
    pairs = [quantise_multiplier(float(v)) for v in product / np.float64(model.scale(o)[0])]
    m, s = (np.array(v, np.int32) for v in zip(*pairs, strict=True))
    zero = model.zero_point(o)
    lo, hi = -128, 127
    if options.FusedActivationFunction() in (1, 3):
        lo = max(lo, zero)
    if options.FusedActivationFunction() == 3:
        hi = min(hi, zero + math.floor(float(np.float32(6) / model.scale(o)[0] + np.float32(0.5))))
    quant = QuantSpec(model.zero_point(i[0]), m, s, zero, lo, hi)
    weights = model.data(i[1], np.int8)
    bias = model.data(i[2], np.int32) if len(i) > 2 and i[2] >= 0 else None
    weights = (
        weights[0]
        if name == "DEPTHWISE_CONV_2D"
        else weights.reshape(shape.out_c, shape.kernel_h, shape.kernel_w, shape.in_c)
    )
    return Layer(name, shape, weights, bias, quant)


def expected(layer: Layer, x: np.ndarray) -> np.ndarray:
    """What the layer gives, by the model of the arithmetic."""
    if layer.weights is None:
        return arithmetic.average_pool(x, layer.shape, layer.quant.act_min, layer.quant.act_max)
    reference = arithmetic.depthwise if layer.name == "DEPTHWISE_CONV_2D" else arithmetic.conv
    return reference(x, layer.weights, layer.bias, layer.shape, layer.quant)


def some_input(layer: Layer) -> np.ndarray:
    s = layer.shape
    return np.random.default_rng(1).integers(-128, 128, (s.batch, s.in_h, s.in_w, s.in_c)).astype(np.int8)


def kernel(layer: Layer, plain: bool) -> KernelCode:
    """The kernel for cores with the DSP extension, or the plain C one."""
    s, w, b, q = layer.shape, layer.weights, layer.bias, layer.quant
    if w is None:
        return pooling.pool("average", s, q.act_min, q.act_max, "int8", not plain)
    if layer.name == "DEPTHWISE_CONV_2D":
        return depthwise_dsp.depthwise(s, w, b, q)
    if plain:
        return conv_c.conv(s, w, b, q)
    return conv_dsp.conv(s, w, b, q)


def layers(path: Path) -> list[Layer]:
    """All layers of a model file that have a kernel here."""
    model = Model(path)
    found = [read_layer(model, model.graph.Operators(k)) for k in range(model.graph.OperatorsLength())]
    return [layer for layer in found if layer is not None]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--core", default="m4")
    parser.add_argument("--plain", action="store_true", help="the plain C kernels")
    parser.add_argument("--opt", default="-O2")
    args = parser.parse_args()
    for path in args.models:
        found = []
        for layer in layers(path):
            x = some_input(layer)
            found.append((layer.name, layer.shape, kernel(layer, args.plain), x, expected(layer, x)))
        cases = [Case(code, x, want, overlap=False) for _, _, code, x, want in found]
        with tempfile.TemporaryDirectory() as directory:
            counts = run_board(
                cases, Path(directory), args.core, (args.opt, "-fno-inline-functions-called-once")
            )
            listing = subprocess.run(
                ["arm-none-eabi-nm", "-S", str(Path(directory) / "board.o")], capture_output=True, text=True
            ).stdout
            symbols = [line.split() for line in listing.splitlines()]
            size = sum(
                int(v[1], 16)
                for v in symbols
                if len(v) == 4 and v[2] == "t" and v[3].split(".")[0] not in HARNESS
            )
        print(f"== {path.stem}, {args.core}")
        total = macs = 0
        for (name, shape, code, _, _), count in zip(found, counts, strict=True):
            work = 0 if name[0] == "A" else shape.macs
            total, macs = total + count, macs + work
            per = f"{count / work:6.2f}" if work else "      "
            s = shape
            what = (
                f"{s.in_h}x{s.in_w}x{s.in_c} -> {s.out_h}x{s.out_w}x{s.out_c} k{s.kernel_h}x{s.kernel_w} "
                f"s{s.stride_h}"
            )
            print(
                f"{name:18s} {what:38s} {work:8d} MACs {count:9d} {per}  "
                f"{code.note.split('requantisation: ')[-1]}"
            )
        constants = sum(c.data.nbytes for _, _, code, _, _ in found for c in code.constants)
        print(
            f"{'total':57s} {macs:8d} MACs {total:9d} {total / macs:6.2f}  constants {constants} bytes, code "
            f"{size} bytes"
        )


if __name__ == "__main__":
    main()
