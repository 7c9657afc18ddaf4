"""Speed of the float32 kernels on the layer shapes of the MLPerf Tiny models.

    python tests/bench/kernels_float32.py host [v4|v8|v16|scalar]      GMAC/s, one thread
    python tests/bench/kernels_float32.py m4|m7|m33|m55 --runner run_m.sh     instructions per MAC, in QEMU

The runner builds and runs bare-metal C and prints "instructions[region]: n".
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "kernels"))
from float32_cases import Case, DenseTail, unit

from aot_model.kernels.base import ConvShape, KernelCode
from aot_model.kernels.float32 import conv as conv_kernels
from aot_model.kernels.float32 import pool
from aot_model.kernels.float32.dialect import VectorDialect
from aot_model.kernels.float32.dialects import DIALECTS
from aot_model.kernels.float32.repack import Weights

MakeLayer = Callable[[VectorDialect], Case]


def _case(name: str, s: ConvShape, d: VectorDialect, make: Callable[..., KernelCode], taps: int) -> Case:
    rng = np.random.default_rng(0)
    w = rng.standard_normal((s.out_c, s.kernel_h, s.kernel_w, taps)).astype(np.float32)
    x = rng.standard_normal((s.batch, s.in_h, s.in_w, s.in_c)).astype(np.float32)
    out = (s.batch, s.out_h, s.out_w, s.out_c)
    code = make(s, Weights(w, rng.standard_normal(s.out_c).astype(np.float32)), DenseTail(out, d), d)
    return Case(name, code, [x], np.zeros(out, np.float32))


def conv(
    name: str,
    h: int,
    w: int,
    ic: int,
    oc: int,
    k: tuple[int, int],
    stride: int,
    pad: tuple[int, int],
    out: tuple[int, int],
    nchw: bool = False,
) -> tuple[str, int, MakeLayer]:
    strides = (ic * h * w, w, 1, h * w) if nchw else None
    s = ConvShape(1, h, w, ic, *out, oc, *k, stride, stride, 1, 1, *pad, 1, strides)
    s = conv_kernels.pixels_in_a_row(s) or s
    return name, s.macs, lambda d: _case(name, s, d, conv_kernels.conv, ic)


CONVOLUTIONS = [
    conv("kws first 10x4 s2", 49, 10, 1, 64, (10, 4), 2, (4, 1), (25, 5)),
    conv("kws 1x1 64-64", 25, 5, 64, 64, (1, 1), 1, (0, 0), (25, 5)),
    conv("resnet8 first 3x3", 32, 32, 3, 16, (3, 3), 1, (1, 1), (32, 32)),
    conv("resnet8 first 3x3 NCHW", 32, 32, 3, 16, (3, 3), 1, (1, 1), (32, 32), nchw=True),
    conv("resnet8 3x3 16-16", 32, 32, 16, 16, (3, 3), 1, (1, 1), (32, 32)),
    conv("resnet8 3x3 16-32 s2", 32, 32, 16, 32, (3, 3), 2, (0, 0), (16, 16)),
    conv("resnet8 1x1 16-32 s2", 32, 32, 16, 32, (1, 1), 2, (0, 0), (16, 16)),
    conv("resnet8 3x3 32-32", 16, 16, 32, 32, (3, 3), 1, (1, 1), (16, 16)),
    conv("resnet8 3x3 32-64 s2", 16, 16, 32, 64, (3, 3), 2, (0, 0), (8, 8)),
    conv("resnet8 3x3 64-64", 8, 8, 64, 64, (3, 3), 1, (1, 1), (8, 8)),
    conv("vww first 3x3 s2", 96, 96, 3, 8, (3, 3), 2, (0, 0), (48, 48)),
    conv("vww first 3x3 s2 NCHW", 96, 96, 3, 8, (3, 3), 2, (0, 0), (48, 48), nchw=True),
    conv("vww 1x1 8-16", 48, 48, 8, 16, (1, 1), 1, (0, 0), (48, 48)),
    conv("vww 1x1 32-32", 24, 24, 32, 32, (1, 1), 1, (0, 0), (24, 24)),
    conv("vww 1x1 64-64", 12, 12, 64, 64, (1, 1), 1, (0, 0), (12, 12)),
    conv("vww 1x1 128-128", 6, 6, 128, 128, (1, 1), 1, (0, 0), (6, 6)),
    conv("vww 1x1 256-256", 3, 3, 256, 256, (1, 1), 1, (0, 0), (3, 3)),
    conv("sww 1x1 40-128", 1, 28, 40, 128, (1, 1), 1, (0, 0), (1, 28)),
    conv("ad 640-128", 1, 1, 640, 128, (1, 1), 1, (0, 0), (1, 1)),
    conv("ad 128-128", 1, 1, 128, 128, (1, 1), 1, (0, 0), (1, 1)),
    conv("ad 128-8", 1, 1, 128, 8, (1, 1), 1, (0, 0), (1, 1)),
    conv("ad 8-128", 1, 1, 8, 128, (1, 1), 1, (0, 0), (1, 1)),
    conv("ad 128-640", 1, 1, 128, 640, (1, 1), 1, (0, 0), (1, 1)),
    conv("large 3x3 128-128", 28, 28, 128, 128, (3, 3), 1, (1, 1), (28, 28)),
    conv("large 3x3 256-256", 14, 14, 256, 256, (3, 3), 1, (1, 1), (14, 14)),
    conv("large 1x1 512-512", 14, 14, 512, 512, (1, 1), 1, (0, 0), (14, 14)),
    conv("kws 64-12", 1, 1, 64, 12, (1, 1), 1, (0, 0), (1, 1)),
]


def _window_case(name: str, s: ConvShape, d: VectorDialect, pooling: bool) -> Case:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((s.batch, s.in_h, s.in_w, s.in_c)).astype(np.float32)
    out = (s.batch, s.out_h, s.out_w, s.out_c)
    tail = DenseTail(out, d)
    if pooling:
        return Case(name, pool.average_pool(s, tail, d), [x], np.zeros(out, np.float32))
    w = rng.standard_normal((s.out_c, s.kernel_h, s.kernel_w, 1)).astype(np.float32)
    weights = Weights(w, rng.standard_normal(s.out_c).astype(np.float32))
    return Case(name, pool.depthwise(s, weights, tail, d), [x], np.zeros(out, np.float32))


def window(
    name: str,
    h: int,
    w: int,
    c: int,
    k: tuple[int, int],
    stride: int,
    pad: tuple[int, int],
    out: tuple[int, int],
    pooling: bool = False,
) -> tuple[str, int, MakeLayer]:
    s = ConvShape(1, h, w, c, *out, c, *k, stride, stride, 1, 1, *pad, c)
    return name, s.macs, lambda d: _window_case(name, s, d, pooling)


WINDOWS = [
    window("kws depthwise 3x3", 25, 5, 64, (3, 3), 1, (1, 1), (25, 5)),
    window("kws average 25x5", 25, 5, 64, (25, 5), 1, (0, 0), (1, 1), pooling=True),
    window("vww depthwise 3x3 8", 48, 48, 8, (3, 3), 1, (1, 1), (48, 48)),
    window("vww depthwise 3x3 s2 16", 48, 48, 16, (3, 3), 2, (0, 0), (24, 24)),
    window("vww depthwise 3x3 32", 24, 24, 32, (3, 3), 1, (1, 1), (24, 24)),
    window("vww depthwise 3x3 s2 64", 12, 12, 64, (3, 3), 2, (0, 0), (6, 6)),
    window("vww depthwise 3x3 128", 6, 6, 128, (3, 3), 1, (1, 1), (6, 6)),
    window("vww depthwise 3x3 256", 3, 3, 256, (3, 3), 1, (1, 1), (3, 3)),
    window("sww depthwise 1x3 40", 1, 30, 40, (1, 3), 1, (0, 0), (1, 28)),
    window("sww depthwise 1x10 128", 1, 24, 128, (1, 10), 1, (0, 0), (1, 15)),
    window("sww depthwise 10x1 128", 24, 1, 128, (10, 1), 1, (0, 0), (15, 1)),
    window("sww depthwise 1x15 128", 1, 15, 128, (1, 15), 1, (0, 0), (1, 1)),
    window("resnet8 average 8x8", 8, 8, 64, (8, 8), 1, (0, 0), (1, 1), pooling=True),
]

LAYERS = CONVOLUTIONS + WINDOWS

HOST_FLAGS = {"scalar": [], "v4": [], "v8": ["-mavx2", "-mfma"], "v16": ["-mavx512f"]}


def _buffers(cases: list[Case]) -> tuple[list[str], list[str]]:
    """Declarations and calls of a program that holds all arrays statically."""
    declarations, calls = [], []
    for i, c in enumerate(cases):
        constants = [k.data for k in c.code.constants]
        names = []
        for j, a in enumerate(c.inputs):
            declarations.append(f"static float x{i}_{j}[{max(a.size, 1)}];")
            names.append(f"x{i}_{j}")
        for j, a in enumerate(constants):
            declarations.append(
                f"static const float w{i}_{j}[{max(a.size, 1)}] __attribute__((aligned(64))) = "
                f"{{{', '.join(f'{v:.9g}f' if '.' in f'{v:.9g}' or 'e' in f'{v:.9g}' else f'{v:.9g}.0f' for v in a.ravel())}}};"  # noqa: E501
            )
            names.append(f"w{i}_{j}")
        declarations.append(f"static float y{i}[{c.want.size}];")
        types = ["const float *"] * len(names) + ["float *"]
        declarations.append(f"void k{i}({', '.join(types)});")
        calls.append(f"k{i}({', '.join([*names, f'y{i}'])})")
    return declarations, calls


def host(name: str, layers: list[tuple[str, int, MakeLayer]], compiler: str, flags: list[str]) -> None:
    cases = [make(DIALECTS[name]) for _, _, make in layers]
    declarations, calls = _buffers(cases)
    lines = [
        "#include <stdio.h>",
        "#include <time.h>",
        *declarations,
        "static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return "
        "(double)t.tv_sec * 1e6 + (double)t.tv_nsec * 1e-3; }",
        "int main(void) {",
    ]
    for i, (_, macs, _) in enumerate(layers):
        count = max(1, 2_000_000 // macs)
        lines += [
            "{ double best = 1e30;",
            "for (int r = 0; r < 60; ++r) { double t = now();",
            f"for (int j = 0; j < {count}; ++j) {{ {calls[i]}; }}",
            f"t = (now() - t) / {count}; if (t < best) best = t; }}",
            f'printf("{i} %f\\n", best); }}',
        ]
    lines += ["return 0; }"]
    with tempfile.TemporaryDirectory() as folder:
        tmp = Path(folder)
        (tmp / "main.c").write_text("\n".join(lines))
        (tmp / "kernels.c").write_text(unit(cases))
        flags = ["-O2", "-std=c99", "-D_POSIX_C_SOURCE=200809L", *HOST_FLAGS[name], *flags]
        subprocess.run([compiler, *flags, "main.c", "kernels.c", "-o", "run", "-lm"], cwd=tmp, check=True)
        out = subprocess.run(["./run"], cwd=tmp, check=True, capture_output=True, text=True).stdout
    for line, (label, macs, _), case in zip(out.splitlines(), layers, cases, strict=True):
        microseconds = float(line.split()[1])
        print(
            f"{label:28} {macs:>9} MACs {microseconds:9.2f} us {macs / microseconds / 1e3:7.2f} GMAC/s   "
            f"{case.code.note}"
        )


def board(name: str, layers: list[tuple[str, int, MakeLayer]], runner: str, optimise: str) -> None:
    dialect = DIALECTS["mve" if name == "m55" else "scalar"]
    cases = [make(dialect) for _, _, make in layers]
    declarations, calls = _buffers(cases)
    lines = ['#include "qbench.h"', *declarations, "int main(void) {"]
    for i, call in enumerate(calls):
        lines += [f'qb_start("k{i}"); {call}; qb_stop();']
    lines += ["return 0; }"]
    with tempfile.TemporaryDirectory() as folder:
        tmp = Path(folder)
        (tmp / "main.c").write_text("\n".join(lines))
        (tmp / "kernels.c").write_text(unit(cases))
        command = [
            runner,
            name,
            optimise,
            "-std=c99",
            "--dir",
            str(tmp),
            str(tmp / "main.c"),
            str(tmp / "kernels.c"),
        ]
        out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        sizes = subprocess.run(
            ["arm-none-eabi-nm", "-S", str(tmp / "a.elf")], capture_output=True, text=True, check=True
        ).stdout
    counts = dict(re.findall(r"instructions\[k(\d+)\]: (\d+)", out))
    code = {m[1]: int(m[0], 16) for m in re.findall(r"^\S+ (\S+) \S k(\d+)$", sizes, re.M)}
    for i, ((label, macs, _), case) in enumerate(zip(layers, cases, strict=True)):
        n = int(counts[str(i)])
        print(
            f"{label:28} {macs:>9} MACs {n:>10} {n / macs:6.2f} /MAC {code[str(i)]:>6} bytes   "
            f"{case.code.note}"
        )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("where", choices=["host", "m4", "m7", "m33", "m55"])
    parser.add_argument("dialect", nargs="?", default="v8", choices=list(HOST_FLAGS))
    parser.add_argument(
        "--runner", default="run_m.sh", help="builds and runs on a board, prints instruction counts"
    )
    parser.add_argument("--compiler", default="gcc")
    parser.add_argument(
        "--flag", action="append", default=[], help="for the host compiler, such as --flag=-march=native"
    )
    parser.add_argument("-O", dest="optimise", default="2")
    parser.add_argument("--only", default="", help="layers whose name contains this")
    args = parser.parse_args()
    layers = [layer for layer in LAYERS if args.only in layer[0]]
    if args.where == "host":
        host(args.dialect, layers, args.compiler, args.flag)
    else:
        layers = [layer for layer in layers if not layer[0].startswith("large")]
        board(args.where, layers, args.runner, f"-O{args.optimise}")


if __name__ == "__main__":
    main()
