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
    calls = "".join(f"        layer{i}(x[{i}], y[{i}]);\n" for i in range(len(codes)))
    arguments = "const int8_t *const *x, int8_t *const *y, int32_t times"
    out.append(f"void many({arguments});\nvoid many({arguments})\n{{\n    for (; times; times--) {{\n{calls}    }}\n}}\n")
    for i in range(len(codes)):
        out.append(f"void many{i}({arguments});\nvoid many{i}({arguments})\n{{\n    for (; times; times--) {{\n        layer{i}(x[{i}], y[{i}]);\n    }}\n}}\n")
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


def pointers(arrays: list[np.ndarray]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(arrays))(*(a.ctypes.data for a in arrays))


def measure(path: Path, rounds: int, compiler: str, flags: list[str], detail: bool) -> tuple[float, float, int]:
    """(ours, LiteRT's, MACs)."""
    found = layers(path)
    codes = [kernel(layer) for layer in found]
    theirs = litert(path)
    xs = [some_input(layer) for layer in found]
    wants = [expected(layer, x) for layer, x in zip(found, xs, strict=True)]
    ys = [np.zeros_like(want) for want in wants]
    with tempfile.TemporaryDirectory() as folder:
        library = build(codes, Path(folder), compiler, flags)
        x, y = pointers(xs), pointers(ys)
        library.many(x, y, 1)
        for i, (layer, want, got) in enumerate(zip(found, wants, ys, strict=True)):
            assert (got == want).all(), (path.stem, i, layer.name, layer.shape)
        ours, peer = [], []
        repeats = max(1, int(1000 / max(once(lambda: library.many(x, y, 1)), 1)))
        for _ in range(rounds):
            ours.append(once(lambda: library.many(x, y, repeats)) / repeats)
            peer.append(once(lambda: [theirs() for _ in range(repeats)]) / repeats)
        for i, (layer, code) in enumerate(zip(found, codes, strict=True)):
            if detail:
                call = getattr(library, f"many{i}")
                t = min(once(lambda call=call: call(x, y, 50)) / 50 for _ in range(rounds))  # type: ignore[misc]
                s = layer.shape
                work = 0 if layer.weights is None else s.macs
                what = f"{s.in_h}x{s.in_w}x{s.in_c} -> {s.out_h}x{s.out_w}x{s.out_c} k{s.kernel_h}x{s.kernel_w} s{s.stride_h}"
                print(f"  {layer.name:18s} {what:40s} {work:8d} MACs {t:8.2f} {work / t / 1000:6.1f} GMAC/s  {code.note}")
    macs = sum(layer.shape.macs for layer in found if layer.weights is not None)
    return statistics.median(ours), statistics.median(peer), macs


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
