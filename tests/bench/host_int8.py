"""int8 kernels of the host beside LiteRT (XNNPACK, one thread), layer by layer, interleaved in one run.

    python tests/bench/host_int8.py MODEL.tflite … [--rounds 30] [--cc gcc] [--flags "-O2"] [--layers]

All layers of a model that have a kernel are compiled into one library, checked against numpy, and run one after another;
the time of LiteRT is that of the whole model. Medians, microseconds.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "compiler"), str(ROOT / "tests" / "kernels"), str(ROOT / "tests" / "bench")]

from kernels_int8 import Layer, expected, layers, some_input  # noqa: E402
from qemu_int8 import STRICT, _array, function  # noqa: E402

from aot_model.kernels.base import KernelCode  # noqa: E402
from aot_model.kernels.int8 import conv_host, depthwise_host, pooling_host  # noqa: E402


def kernel(layer: Layer) -> KernelCode:
    """The layer's kernel for the host."""
    s, w, b, q = layer.shape, layer.weights, layer.bias, layer.quant
    if w is None:
        return pooling_host.pool("average", s, q.act_min, q.act_max)
    return (depthwise_host.depthwise if layer.name == "DEPTHWISE_CONV_2D" else conv_host.conv)(s, w, b, q)


def source(codes: list[KernelCode]) -> str:
    """C of all kernels, each as layer<i>(x, y)."""
    includes = {"stdint.h", "stddef.h", "string.h"}.union(*(c.includes for c in codes))
    out = [f"#include <{i}>" for i in sorted(includes)]
    out += dict.fromkeys(h for c in codes for h in c.helpers)
    for i, code in enumerate(codes):
        out.append(function(code, f"kernel{i}", "int8_t", "int8_t"))
        out += [_array(f"{c.name}{i}", f"{c.data.dtype.name}_t", c.data, c.align) for c in code.constants]
        arguments = [f"{c.name}{i}" for c in code.constants]
        for s in code.scratch:
            out.append(f"static char {s.name}{i}[{s.nbytes}] __attribute__((aligned({s.align})));")
            arguments.append(f"(void *){s.name}{i}")
        out.append(f"void layer{i}(const int8_t *x, int8_t *y);")
        out.append(f"void layer{i}(const int8_t *x, int8_t *y)\n{{\n    kernel{i}({', '.join(['x', 'y', *arguments])});\n}}\n")
        out.append(f"void many{i}(const int8_t *x, int8_t *y, int32_t times);")
        out.append(f"void many{i}(const int8_t *x, int8_t *y, int32_t times)\n{{\n    for (; times; times--) {{\n        layer{i}(x, y);\n    }}\n}}\n")
    return "\n".join(out)


def build(codes: list[KernelCode], folder: Path, compiler: str, flags: list[str]) -> ctypes.CDLL:
    (folder / "layers.c").write_text(source(codes))
    command = [compiler, *STRICT, *flags, "-march=native", "-shared", "-fPIC", "layers.c", "-o", "layers.so"]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "layers.so"))


def litert(path: Path) -> Callable[[], object]:
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(path), num_threads=1)
    interpreter.allocate_tensors()
    port = interpreter.get_input_details()[0]
    interpreter.set_tensor(port["index"], np.random.default_rng(1).integers(-128, 128, port["shape"]).astype(port["dtype"]))
    return interpreter.invoke


def once(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return (time.perf_counter() - start) * 1e6


def measure(path: Path, rounds: int, compiler: str, flags: list[str], detail: bool) -> tuple[float, float, int]:
    """(ours, LiteRT's, MACs)."""
    found = layers(path)
    codes = [kernel(layer) for layer in found]
    theirs = litert(path)
    with tempfile.TemporaryDirectory() as folder:
        library = build(codes, Path(folder), compiler, flags)
        calls = []
        for i, layer in enumerate(found):
            x, want = some_input(layer), expected(layer, some_input(layer))
            y = np.zeros_like(want)
            run, times = getattr(library, f"many{i}"), 20

            def call(run: object = run, x: np.ndarray = x, y: np.ndarray = y) -> None:
                run(x.ctypes.data_as(ctypes.c_void_p), y.ctypes.data_as(ctypes.c_void_p), 20)  # type: ignore[operator]

            call()
            assert (y == want).all(), (path.stem, i, layer.name, layer.shape)
            calls.append((call, times))
        samples: list[list[float]] = [[] for _ in calls]
        peer = []
        for _ in range(rounds):
            for sample, (call, times) in zip(samples, calls, strict=True):
                sample.append(once(call) / times)
            peer += [once(theirs) for _ in range(20)]
    medians = [statistics.median(s) for s in samples]
    if detail:
        for layer, code, t in zip(found, codes, medians, strict=True):
            s = layer.shape
            work = 0 if layer.weights is None else s.macs
            what = f"{s.in_h}x{s.in_w}x{s.in_c} -> {s.out_h}x{s.out_w}x{s.out_c} k{s.kernel_h}x{s.kernel_w} s{s.stride_h}"
            print(f"  {layer.name:18s} {what:40s} {work:8d} MACs {t:8.2f} {work / t / 1000:6.1f} GMAC/s  {code.note}")
    macs = sum(layer.shape.macs for layer in found if layer.weights is not None)
    return sum(medians), statistics.median(peer), macs


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--cc", default=os.environ.get("CC", "gcc"))
    parser.add_argument("--flags", default="-O2")
    parser.add_argument("--layers", action="store_true", help="each layer by itself")
    arguments = parser.parse_args()
    print("| model | MACs | kernels, µs | GMAC/s | LiteRT, µs | kernels / LiteRT |")
    print("| --- | --- | --- | --- | --- | --- |")
    for path in arguments.models:
        ours, theirs, macs = measure(path, arguments.rounds, arguments.cc, arguments.flags.split(), arguments.layers)
        print(f"| {path.stem} | {macs} | {ours:.1f} | {macs / ours / 1000:.1f} | {theirs:.1f} | {ours / theirs:.2f} |", flush=True)


if __name__ == "__main__":
    main()
