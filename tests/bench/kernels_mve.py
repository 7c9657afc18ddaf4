"""Instructions per MAC of the Helium int8 kernels, layer by layer, on Cortex-M55 in QEMU.

usage: kernels_mve.py MODEL.tflite ... [--mix]

Layers come from the .tflite files with their own weights and quantisation; inputs are random. Each layer runs
on its own, requantisation and stores included, and is compared with the numpy model. --mix: shares of what
the instructions are (a run of one instruction at a time, slower).
"""

from __future__ import annotations

import math
import re
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import tflite

from aot_model.kernels.base import ConvShape, KernelCode
from aot_model.kernels.int8.conv_mve import conv
from aot_model.kernels.int8.depthwise_mve import depthwise
from aot_model.kernels.int8.pooling import HELIUM
from aot_model.kernels.int8.spec import QuantSpec

sys.path[:0] = [
    str(Path(__file__).resolve().parents[1]),
    str(Path(__file__).resolve().parents[1] / "kernels"),
]
import int8_model  # noqa: E402
from int8_program import Case, program  # noqa: E402

from qemu import BOARDS, build, run  # noqa: E402


@dataclass(frozen=True)
class Tensor:
    """One tensor of a flatbuffer: data of constants, quantisation."""

    shape: tuple[int, ...]
    scale: np.ndarray
    zero_point: int
    data: np.ndarray


def tensors_of(model: tflite.Model) -> list[Tensor]:
    """All tensors of the first subgraph."""
    graph, result = model.Subgraphs(0), []
    kinds = {tflite.TensorType.INT8: np.int8, tflite.TensorType.INT32: np.int32}
    for i in range(graph.TensorsLength()):
        t = graph.Tensors(i)
        q = t.Quantization()
        scale = q.ScaleAsNumpy() if q is not None and q.ScaleLength() else np.zeros(0)
        zero = int(q.ZeroPoint(0)) if q is not None and q.ZeroPointLength() else 0
        buffer = model.Buffers(t.Buffer())
        raw = buffer.DataAsNumpy().tobytes() if buffer.DataLength() else b""
        shape = tuple(int(t.Shape(k)) for k in range(t.ShapeLength()))
        data = np.frombuffer(raw, kinds.get(t.Type(), np.uint8))
        result.append(
            Tensor(shape, np.asarray(scale, np.float64), zero, data.reshape(shape) if data.size else data)
        )
    return result


def quantise(scale: float) -> tuple[int, int]:
    """Multiplier in Q0.31 and exponent of a positive scale."""
    fraction, exponent = math.frexp(scale)
    multiplier = math.floor(fraction * 2**31 + 0.5)
    return (multiplier // 2, exponent + 1) if multiplier == 2**31 else (multiplier, exponent)


def spec_of(x: Tensor, w: Tensor, y: Tensor, relu: int) -> QuantSpec:
    """Requantisation of a convolution or matrix product."""
    pairs = [quantise(float(x.scale[0] * s / y.scale[0])) for s in w.scale]
    low = max(-128, y.zero_point) if relu in (1, 3) else -128
    high = min(127, y.zero_point + round(6 / float(y.scale[0]))) if relu == 3 else 127
    m, s = (np.array(column, np.int32) for column in zip(*pairs, strict=True))
    return QuantSpec(x.zero_point, m, s, y.zero_point, low, high)


def shape_of(
    x: Tensor, y: Tensor, kernel: tuple[int, int], stride: tuple[int, int], same: bool, groups: int
) -> ConvShape:
    """Geometry, undilated."""
    n, h, w, c = x.shape
    _, oh, ow, oc = y.shape
    top, left = (
        max((o - 1) * s + k - i, 0) // 2 if same else 0
        for i, o, k, s in zip((h, w), (oh, ow), kernel, stride, strict=True)
    )
    return ConvShape(n, h, w, c, oh, ow, oc, *kernel, *stride, 1, 1, top, left, groups)


def layers(path: Path, rng: np.random.Generator) -> list[tuple[Case, int]]:
    """(case, MACs) of all convolutions, matrix products and average pools of a model."""
    model = tflite.Model.GetRootAsModel(path.read_bytes(), 0)
    graph, tensors = model.Subgraphs(0), tensors_of(model)
    found: list[tuple[Case, int]] = []
    for i in range(graph.OperatorsLength()):
        op = graph.Operators(i)
        code = model.OperatorCodes(op.OpcodeIndex())
        kind = max(code.BuiltinCode(), code.DeprecatedBuiltinCode())
        x, y = tensors[op.Inputs(0)], tensors[op.Outputs(0)]
        raw = op.BuiltinOptions()
        builtin = tflite.BuiltinOperator
        data = rng.integers(-128, 128, x.shape).astype(np.int8)
        if kind in (builtin.CONV_2D, builtin.DEPTHWISE_CONV_2D):
            by_channel = kind == builtin.DEPTHWISE_CONV_2D
            options = tflite.DepthwiseConv2DOptions() if by_channel else tflite.Conv2DOptions()
            options.Init(raw.Bytes, raw.Pos)
            w, bias = tensors[op.Inputs(1)], tensors[op.Inputs(2)].data
            stride = (options.StrideH(), options.StrideW())
            spec = spec_of(x, w, y, options.FusedActivationFunction())
            groups = x.shape[3] if by_channel else 1
            shape = shape_of(x, y, w.shape[1:3], stride, options.Padding() == 0, groups)
            result: KernelCode
            if by_channel:
                weights = w.data[0]
                result = depthwise(shape, weights, bias, spec)
                expected = int8_model.depthwise(shape, data, weights, bias, spec)
            else:
                result = conv(shape, w.data, bias, spec)
                expected = int8_model.conv(shape, data, w.data, bias, spec)
        elif kind == builtin.FULLY_CONNECTED:
            fc = tflite.FullyConnectedOptions()
            fc.Init(raw.Bytes, raw.Pos)
            w, bias = tensors[op.Inputs(1)], tensors[op.Inputs(2)].data
            spec = spec_of(x, w, y, fc.FusedActivationFunction())
            shape = ConvShape(1, 1, 1, w.shape[1], 1, 1, w.shape[0])
            result = conv(shape, w.data, bias, spec)
            data = data.reshape(1, 1, 1, -1)
            expected = int8_model.conv(shape, data, w.data[:, None, None, :], bias, spec)
        elif kind == builtin.AVERAGE_POOL_2D:
            pool = tflite.Pool2DOptions()
            pool.Init(raw.Bytes, raw.Pos)
            kernel, stride = (pool.FilterHeight(), pool.FilterWidth()), (pool.StrideH(), pool.StrideW())
            shape = shape_of(x, y, kernel, stride, pool.Padding() == 0, x.shape[3])
            result = HELIUM.pool("average", shape, -128, 127)
            expected = int8_model.average_pool(shape, data, -128, 127)
        else:
            continue
        label = f"{path.stem} {shape.in_h}x{shape.in_w}x{shape.in_c} {shape.kernel_h}x{shape.kernel_w}"
        label += (
            f"/{shape.stride_h} -> "
            f"{shape.out_h}x{shape.out_w}x{shape.out_c}{' dw' if shape.groups > 1 else ''}"
        )
        found.append((Case(label, result, data, expected), shape.macs))
    return found


KINDS = (
    ("multiply", r"vmla"),
    ("load", r"vldr|vld\d|ldr|ldm|pop|vpop"),
    ("store", r"vstr|vst\d|str|stm|push|vpush"),
    ("vector", r"v"),
    ("loop", r"le|wls|dls|b|cb|cmp|subs|it"),
    ("scalar", r""),
)


def mixes(elf: Path, count: int) -> list[Counter[str]]:
    """Executed instructions of each of the first `count` kernels by kind, from QEMU's log of executed
    blocks.
    """
    listing = subprocess.run(
        ["arm-none-eabi-objdump", "-d", "-m", "armv8.1-m.main", str(elf)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    kind_at: dict[int, tuple[str, str]] = {}
    function = ""
    for line in listing.splitlines():
        if match := re.match(r"[0-9a-f]+ <(.+)>:", line):
            function = match[1]
        elif match := re.match(r"\s*([0-9a-f]+):\t[0-9a-f ]+\t(\S+)", line):
            kind_at[int(match[1], 16)] = (
                function,
                next(k for k, pattern in KINDS if re.match(pattern, match[2])),
            )
    command = [
        "qemu-system-arm",
        "-M",
        "mps3-an547",
        "-nographic",
        "-monitor",
        "none",
        "-serial",
        "none",
        "-kernel",
        str(elf),
    ]
    command += ["-semihosting-config", "enable=on,target=native", "-singlestep", "-d", "exec,nochain"]
    found: list[Counter[str]] = [Counter() for _ in range(count)]
    current, passes = -1, [0] * count
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True
    ) as run:
        assert run.stderr is not None
        for line in run.stderr:
            if not (match := re.search(r"\[[0-9a-f]+/0*([0-9a-f]+)/", line)):
                continue
            where, kind = kind_at.get(int(match[1], 16), ("", ""))
            if where == "check" or where.startswith("check."):
                current = -1
            elif match_k := re.fullmatch(r"k(\d+)", where):
                if current < 0:
                    passes[int(match_k[1])] += 1
                current = int(match_k[1])
            if current >= 0 and passes[current] == 1:
                found[current][kind or "scalar"] += 1
    return found


def main(arguments: list[str]) -> None:
    """Prints the table. AssertionError when a layer gives wrong bytes."""
    rng = np.random.default_rng(1)
    print(f"{'layer':58}{'MACs':>10}{'instr':>10}{'/MAC':>8}{'const':>8}{'scratch':>8}{'slack':>8}")
    for name in (a for a in arguments if not a.startswith("--")):
        cases = layers(Path(name), rng)
        with tempfile.TemporaryDirectory() as directory:
            (Path(directory) / "program.c").write_text(
                program([c for c, _ in cases], device=True, count=True)
            )
            elf = build(BOARDS["m55"], ["program.c"], Path(directory), ["-g", "-O2"])
            output = run(BOARDS["m55"], elf)
            mix = mixes(elf, len(cases)) if "--mix" in arguments else []
        counts = {line.split(None, 2)[2]: [] for line in output.splitlines() if line.startswith("ticks ")}
        for line in output.splitlines():
            if line.startswith("ticks "):
                counts[line.split(None, 2)[2]].append(BOARDS["m55"].instructions(int(line.split()[1])))
            else:
                print(line)
        totals = np.zeros(3, np.int64)
        for i, (case, macs) in enumerate(cases):
            count = counts[case.label].pop(0)
            constants = sum(c.data.nbytes for c in case.code.constants)
            scratch = sum(s.nbytes for s in case.code.scratch)
            totals += (macs, count, constants)
            ratio = count / max(macs, 1)
            print(
                f"{case.label:58}{macs:10}{count:10}{ratio:8.3f}{constants:8}{scratch:8}{case.code.slack!s:>8}"
            )
            if mix:
                whole = max(sum(mix[i].values()), 1)
                print("    " + ", ".join(f"{k} {100 * mix[i][k] / whole:.0f} %" for k, _ in KINDS))
        print(
            f"{Path(name).stem + ' total':58}{totals[0]:10}{totals[1]:10}{totals[1] / totals[0]:8.3f}{totals[2]:8}\n"  # noqa: E501
        )


if __name__ == "__main__":
    main(sys.argv[1:])
