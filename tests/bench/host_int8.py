"""Whole int8 models on the host beside LiteRT (XNNPACK, one thread), interleaved in one run.

    python tests/bench/host_int8.py MODEL.tflite … [--rounds 30] [--cc gcc] [--flags "-O2"] [--layers]

Medians in microseconds, and the least of all rounds: on a machine that others use, that is the undisturbed
one. Outputs are compared with those of MODEL.tflite.npz where it exists. --layers: also each layer's kernel
by itself, checked against numpy.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [
    str(ROOT / "compiler"),
    str(ROOT / "tests"),
    str(ROOT / "tests" / "kernels"),
    str(ROOT / "tests" / "bench"),
]

from host_latency import litert, once, ours  # noqa: E402
from kernel_program import ATTRIBUTES, _array, function  # noqa: E402
from kernels_int8 import Layer, expected, layers, some_input  # noqa: E402

from aot_model.host.program import STRICT  # noqa: E402
from aot_model.kernels.base import KernelCode  # noqa: E402
from aot_model.kernels.int8 import conv_host, depthwise_host, pooling  # noqa: E402
from aot_model.pipeline import Request, compile_model  # noqa: E402


def kernel(layer: Layer) -> KernelCode:
    """The layer's kernel for the host."""
    s, w, b, q = layer.shape, layer.weights, layer.bias, layer.quant
    if w is None:
        return pooling.AVX2.pool("average", s, q.act_min, q.act_max)
    return (depthwise_host.depthwise if layer.name == "DEPTHWISE_CONV_2D" else conv_host.conv)(s, w, b, q)


def source(codes: list[KernelCode]) -> str:
    """C of all kernels, each as layer<i>(x, y)."""
    includes = {"stdint.h", "stddef.h", "string.h"}.union(*(c.includes for c in codes))
    out = [f"#include <{i}>" for i in sorted(includes)] + [ATTRIBUTES]
    out += dict.fromkeys(h for c in codes for h in c.helpers)
    for i, code in enumerate(codes):
        out.append(function(code, f"kernel{i}", "int8_t", "int8_t"))
        out += [_array(f"{c.name}{i}", f"{c.data.dtype.name}_t", c.data, c.align) for c in code.constants]
        arguments = [f"{c.name}{i}" for c in code.constants]
        for s in code.scratch:
            out.append(f"static char {s.name}{i}[{s.nbytes}] __attribute__((aligned({s.align})));")
            arguments.append(f"(void *){s.name}{i}")
        out.append(f"void layer{i}(const int8_t *x, int8_t *y);")
        out.append(
            f"void layer{i}(const int8_t *x, int8_t *y)\n{{\n    "
            f"kernel{i}({', '.join(['x', 'y', *arguments])});\n}}\n"
        )
    signature = "const int8_t *const *x, int8_t *const *y, int32_t times"
    for i in range(len(codes)):
        out.append(
            f"void many{i}({signature});\nvoid many{i}({signature})\n{{\n    for (; times; times--) {{\n     "
            f"   layer{i}(x[{i}], y[{i}]);\n    }}\n}}\n"
        )
    return "\n".join(out)


def build(codes: list[KernelCode], folder: Path, compiler: str, flags: list[str]) -> ctypes.CDLL:
    (folder / "layers.c").write_text(source(codes))
    command = [compiler, *STRICT, *flags, "-march=native", "-shared", "-fPIC", "layers.c", "-o", "layers.so"]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "layers.so"))


def pointers(arrays: list[np.ndarray]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))


@dataclass(frozen=True)
class Times:
    """Microseconds of every round."""

    ours: list[float]
    theirs: list[float]
    equal: str

    def row(self, name: str) -> str:
        a, b = statistics.median(self.ours), statistics.median(self.theirs)
        c, d = min(self.ours), min(self.theirs)
        return (
            f"| {name} | {a:.1f} | {b:.1f} | {a / b:.2f} | {c:.1f} | {d:.1f} | {c / d:.2f} | {self.equal} |"
        )


def measure(path: Path, rounds: int, compiler: str, flags: list[str]) -> Times:
    """The whole model, ours and LiteRT's in turns."""
    compiled = compile_model(Request(path, "model", "host"))
    stored = np.load(f"{path}.npz") if Path(f"{path}.npz").exists() else None
    rng = np.random.default_rng(1)
    types = [port.buffer.type for port in compiled.view.inputs]
    if stored is not None:
        inputs = [np.ascontiguousarray(stored[f"in_{i}"][0]).reshape(t.shape) for i, t in enumerate(types)]
    else:
        inputs = [rng.integers(-128, 128, t.shape).astype(t.dtype.numpy) for t in types]
    theirs, _ = litert(path, inputs)
    with tempfile.TemporaryDirectory() as folder:
        mine, outputs = ours(compiled, Path(folder), compiler, flags, inputs)
        mine()
        equal = "-"
        if stored is not None:
            equal = (
                "yes"
                if all(
                    np.array_equal(y.reshape(-1), stored[f"out_{i}"][0].reshape(-1))
                    for i, y in enumerate(outputs)
                )
                else "NO"
            )
        repeats = max(1, int(200 / max(once(mine, 3), 1)))  # short: a sample that is preempted says nothing
        pairs = [(once(mine, repeats), once(theirs, repeats)) for _ in range(rounds)]
    return Times([a for a, _ in pairs], [b for _, b in pairs], equal)


def print_layers(path: Path, rounds: int, compiler: str, flags: list[str]) -> None:
    """The kernel of each layer: the least time of all rounds."""
    found = layers(path)
    codes = [kernel(layer) for layer in found]
    xs = [some_input(layer) for layer in found]
    wants = [expected(layer, x) for layer, x in zip(found, xs, strict=True)]
    ys = [np.zeros_like(want) for want in wants]
    with tempfile.TemporaryDirectory() as folder:
        library = build(codes, Path(folder), compiler, flags)
        x, y = pointers(xs), pointers(ys)
        for i, (layer, code, want, got) in enumerate(zip(found, codes, wants, ys, strict=True)):
            call = getattr(library, f"many{i}")
            t = min(once(lambda call=call: call(x, y, 20), 1) / 20 for _ in range(rounds))  # type: ignore[misc]
            assert (got == want).all(), (path.stem, i, layer.name, layer.shape)
            s = layer.shape
            work = 0 if layer.weights is None else s.macs
            what = (
                f"{s.in_h}x{s.in_w}x{s.in_c} -> {s.out_h}x{s.out_w}x{s.out_c} k{s.kernel_h}x{s.kernel_w} "
                f"s{s.stride_h}"
            )
            print(
                f"  {layer.name:18s} {what:40s} {work:8d} MACs {t:8.2f} us {work / t / 1000:6.1f} GMAC/s  "
                f"{code.note}"
            )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=200)
    parser.add_argument("--cc", default=os.environ.get("CC", "gcc"))
    parser.add_argument("--flags", default="-O2")
    parser.add_argument("--layers", action="store_true", help="each layer's kernel by itself")
    arguments = parser.parse_args()
    print("| model | ours | LiteRT | ours / LiteRT | ours, least | LiteRT, least | ratio | equal |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    times = []
    for path in arguments.models:
        times.append(measure(path, arguments.rounds, arguments.cc, arguments.flags.split()))
        print(times[-1].row(path.stem), flush=True)
        if arguments.layers:
            print_layers(path, arguments.rounds, arguments.cc, arguments.flags.split())
    total = Times(
        [sum(v) for v in zip(*(t.ours for t in times), strict=True)],
        [sum(v) for v in zip(*(t.theirs for t in times), strict=True)],
        "",
    )
    print(total.row("total"))


if __name__ == "__main__":
    main()
