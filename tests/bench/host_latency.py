"""Host latency of compiled models beside ONNX Runtime on one thread, interleaved in one run.

    python tests/bench/host_latency.py MODEL.onnx … [--rounds 30] [--cc gcc] [--flags "-O3"]

Read the ratio: both are measured in turns, so that the machine's noise meets both. Times are medians in microseconds.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnxruntime

from aot_model.installation import include_dir
from aot_model.pipeline import Compiled, Request, compile_model


def build_library(compiled: Compiled, folder: Path, compiler: str, flags: list[str]) -> ctypes.CDLL:
    """The generated C as a shared library."""
    for name, text in compiled.texts.items():
        (folder / name).write_text(text)
    name = compiled.view.name
    command = [compiler, *flags, *compiled.view.target.c_flags, "-shared", "-fPIC", f"-I{include_dir()}", f"{name}.c", "-lm", "-o", f"{name}.so"]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / f"{name}.so"))


def runner(compiled: Compiled, library: ctypes.CDLL, inputs: list[np.ndarray]) -> tuple[Callable[[], object], list[np.ndarray]]:
    """A call of the model on fixed arrays, and its outputs."""
    view = compiled.view
    outputs = [np.empty(p.buffer.type.shape, p.buffer.type.dtype.numpy) for p in view.outputs]

    def pointers(arrays: list[np.ndarray]) -> ctypes.Array[ctypes.c_void_p]:
        return (ctypes.c_void_p * max(len(arrays), 1))(*(a.ctypes.data for a in arrays))

    ins, outs = pointers(inputs), pointers(outputs)
    run = getattr(library, f"{view.name}_run")
    return lambda: run(ins, outs), outputs


def once(call: Callable[[], object], repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats * 1e6


def measure(model: Path, rounds: int, compiler: str, flags: list[str]) -> tuple[float, float, float]:
    """(ours, ONNX Runtime's, largest difference relative to the range)."""
    compiled = compile_model(Request(model, "model", "host"))
    rng = np.random.default_rng(0)
    inputs = []
    for port in compiled.view.inputs:
        t = port.buffer.type
        inputs.append(rng.uniform(0, 1, t.shape).astype(t.dtype.numpy) if t.dtype.is_float else rng.integers(0, 2, t.shape).astype(t.dtype.numpy))
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    feed = dict(zip(names, inputs, strict=True))
    binding = session.io_binding()
    for n, a in feed.items():
        binding.bind_cpu_input(n, a)
    for o in session.get_outputs():
        binding.bind_output(o.name)
    with tempfile.TemporaryDirectory() as folder:
        ours, outputs = runner(compiled, build_library(compiled, Path(folder), compiler, flags), inputs)
        theirs = lambda: session.run_with_iobinding(binding)  # noqa: E731
        ours()
        expected = session.run(None, feed)
        error = max(float(np.max(np.abs(a - b)) / max(float(np.max(np.abs(b))), 1e-9)) for a, b in zip(outputs, expected, strict=True))
        repeats = max(1, int(2000 / max(once(ours, 3), once(theirs, 3), 1)))
        pairs = [(once(ours, repeats), once(theirs, repeats)) for _ in range(rounds)]
    return statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs), error


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--cc", default=os.environ.get("CC", "gcc"))
    parser.add_argument("--flags", default="-O3")
    arguments = parser.parse_args()
    print("| model | ours, µs | ONNX Runtime, µs | ours / ONNX Runtime | difference |")
    print("| --- | --- | --- | --- | --- |")
    for model in arguments.models:
        ours, theirs, error = measure(model, arguments.rounds, arguments.cc, arguments.flags.split())
        print(f"| {model.stem} | {ours:.1f} | {theirs:.1f} | {ours / theirs:.2f} | {error:.1g} |", flush=True)


if __name__ == "__main__":
    main()
