"""Host latency of compiled models beside their runtimes on one thread, interleaved in one run.

    python tests/bench/host_latency.py MODEL … [--rounds 30] [--cc gcc] [--flags "-O3"] [--emx]

ONNX models run beside ONNX Runtime, TFLite models beside LiteRT with XNNPACK; --emx adds the C of
emx-onnx-cgen (`pip install emx-onnx-cgen`). Read the ratios: all are measured in turns, so that the machine's
noise meets all. Times are medians in microseconds; the difference is the largest, relative to the range
(integers: in units).
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
from typing import Any

import numpy as np

from aot_model.installation import include_dir
from aot_model.pipeline import Compiled, Request, compile_model

Call = Callable[[], Any]


def shared_library(folder: Path, source: str, compiler: str, flags: list[str]) -> ctypes.CDLL:
    """C as a shared library."""
    subprocess.run(
        [compiler, *flags, "-shared", "-fPIC", source, "-lm", "-o", f"{source}.so"], cwd=folder, check=True
    )
    return ctypes.CDLL(str(folder / f"{source}.so"))


def ours(
    compiled: Compiled, folder: Path, compiler: str, flags: list[str], inputs: list[np.ndarray]
) -> tuple[Call, list[np.ndarray]]:
    """A call of the compiled model on fixed arrays, and its outputs."""
    view = compiled.view
    for name, text in compiled.texts.items():
        (folder / name).write_text(text)
    library = shared_library(
        folder, f"{view.name}.c", compiler, [*flags, *view.target.c_flags, f"-I{include_dir()}"]
    )
    outputs = [np.empty(p.buffer.type.shape, p.buffer.type.dtype.numpy) for p in view.outputs]

    def pointers(arrays: list[np.ndarray]) -> Any:
        return (ctypes.c_void_p * max(len(arrays), 1))(*(a.ctypes.data for a in arrays))

    ins, outs, run = pointers(inputs), pointers(outputs), getattr(library, f"{view.name}_run")
    return lambda: run(ins, outs), outputs


def onnx_runtime(model: Path, inputs: list[np.ndarray]) -> tuple[Call, list[np.ndarray]]:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])
    feed = dict(zip([i.name for i in session.get_inputs()], inputs, strict=True))
    binding = session.io_binding()
    for name, array in feed.items():
        binding.bind_cpu_input(name, array)
    for output in session.get_outputs():
        binding.bind_output(output.name)
    return lambda: session.run_with_iobinding(binding), session.run(None, feed)


def litert(model: Path, inputs: list[np.ndarray]) -> tuple[Call, list[np.ndarray]]:
    from ai_edge_litert.interpreter import Interpreter

    interpreter = Interpreter(str(model), num_threads=1)
    interpreter.allocate_tensors()
    for detail, array in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    outputs = [interpreter.get_tensor(d["index"]) for d in interpreter.get_output_details()]
    return interpreter.invoke, outputs


def emx(
    model: Path,
    folder: Path,
    compiler: str,
    flags: list[str],
    inputs: list[np.ndarray],
    outputs: list[np.ndarray],
) -> Call | None:
    """The C of emx-onnx-cgen; None where it refuses the model."""
    command = [
        sys.executable,
        "-m",
        "emx_onnx_cgen",
        "compile",
        str(model.resolve()),
        "emx.c",
        "--model-name",
        "emx",
    ]
    if subprocess.run(command, cwd=folder, capture_output=True, check=False).returncode:
        return None
    library = shared_library(folder, "emx.c", compiler, [*flags, "-march=native", "-w"])
    arrays = [*inputs, *(np.empty_like(o) for o in outputs)]
    pointers = [ctypes.c_void_p(a.ctypes.data) for a in arrays]
    return lambda: library.emx(*pointers)


def once(call: Call, repeats: int) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats * 1e6


def random_inputs(compiled: Compiled) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    result = []
    for port in compiled.view.inputs:
        t = port.buffer.type
        low, high = (0, 1) if t.dtype.is_float else (max(t.dtype.limits[0], 0), min(t.dtype.limits[1], 100))
        result.append(rng.uniform(low, high, t.shape).astype(t.dtype.numpy))
    return result


def difference(got: list[np.ndarray], wanted: list[np.ndarray]) -> float:
    worst = 0.0
    for a, b in zip(got, wanted, strict=True):
        d = float(np.max(np.abs(a.astype(np.float64).reshape(b.shape) - b)))
        worst = max(worst, d / max(float(np.max(np.abs(b))), 1e-9) if b.dtype.kind == "f" else d)
    return worst


def measure(model: Path, arguments: argparse.Namespace) -> str:
    """A row of the table."""
    compiled = compile_model(Request(model, "model", "host"))
    inputs, flags = random_inputs(compiled), arguments.flags.split()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        mine, outputs = ours(compiled, folder, arguments.cc, flags, inputs)
        theirs, expected = (litert if model.suffix == ".tflite" else onnx_runtime)(model, inputs)
        mine()
        error = difference(outputs, expected)
        calls: list[Call] = [mine, theirs]
        third = (
            emx(model, folder, arguments.cc, flags, inputs, outputs)
            if arguments.emx and model.suffix == ".onnx"
            else None
        )
        calls += [third] if third else []
        repeats = [max(1, int(2000 / max(once(c, 3), 1))) for c in calls]
        rounds = [[once(c, n) for c, n in zip(calls, repeats, strict=True)] for _ in range(arguments.rounds)]
    medians = [statistics.median(r[k] for r in rounds) for k in range(len(calls))]
    cells = [f"{medians[0]:.1f}", f"{medians[1]:.1f}", f"{medians[0] / medians[1]:.2f}"]
    if arguments.emx:
        cells += [f"{medians[2]:.1f}", f"{medians[0] / medians[2]:.2f}"] if third else ["-", "-"]
    return " | ".join(["", model.name, *cells, f"{error:.1g}", ""]).strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--cc", default=os.environ.get("CC", "gcc"))
    parser.add_argument("--flags", default="-O3")
    parser.add_argument("--emx", action="store_true")
    arguments = parser.parse_args()
    heads = [
        "model",
        "ours, µs",
        "runtime, µs",
        "ours / runtime",
        *(["emx, µs", "ours / emx"] if arguments.emx else []),
        "difference",
    ]
    print(f"| {' | '.join(heads)} |\n|{' --- |' * len(heads)}")
    for model in arguments.models:
        print(measure(model, arguments), flush=True)


if __name__ == "__main__":
    main()
