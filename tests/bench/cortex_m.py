"""Instructions, flash, workspace and stack of models on emulated Cortex-M cores.

    python tests/bench/cortex_m.py MODEL … [--cores m4,m55] [--vectors DIR] [--flags "-O2"] [--io workspace]

Counts come from SysTick in an emulator that executes one instruction a nanosecond: exact to 50 instructions,
the same on every machine. Outputs are compared with MODEL.npz where it is (arrays in_<i>, out_<i>).
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from aot_model.emit.view import Options
from aot_model.pipeline import Compiled, Request, compile_model
from firmware import Firmware, run_firmware


def vectors_of(
    model: Path, compiled: Compiled, limit: int
) -> tuple[list[list[np.ndarray]], list[list[np.ndarray]]]:
    """Inputs and expected outputs beside the model; zeros and nothing where there are none."""
    file = model.with_name(model.name + ".npz")
    if not file.exists():
        return [[np.zeros(p.buffer.type.shape, p.buffer.type.dtype.numpy) for p in compiled.view.inputs]], []
    data = np.load(file)
    count = min(len(data["in_0"]), limit)
    ins = [[data[f"in_{k}"][i] for k in range(len(compiled.view.inputs))] for i in range(count)]
    outs = [[data[f"out_{k}"][i] for k in range(len(compiled.view.outputs))] for i in range(count)]
    return ins, outs


def difference(measured: Firmware, expected: list[list[np.ndarray]]) -> float:
    """Largest difference: relative to the range for floats, in units for integers."""
    worst = 0.0
    for got, want in zip(measured.outputs, expected, strict=False):
        for a, b in zip(got, want, strict=True):
            d = np.abs(a.astype(np.float64) - b.reshape(a.shape).astype(np.float64))
            scale = max(float(np.max(np.abs(b))), 1e-9) if b.dtype.kind == "f" else 1.0
            worst = max(worst, float(np.max(d)) / scale)
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("models", nargs="+", type=Path)
    parser.add_argument("--cores", default="m4,m55")
    parser.add_argument("--flags", default="-O2")
    parser.add_argument("--io", default="caller", choices=("caller", "workspace"))
    parser.add_argument("--vectors", type=int, default=2, help="how many vectors to compare")
    arguments = parser.parse_args()
    print("| model | core | instructions | per MAC | flash | workspace | stack | difference |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for model in arguments.models:
        for core in arguments.cores.split(","):
            compiled = compile_model(
                Request(model, "model", f"cortex-{core}", library=Options(io=arguments.io, metadata="none"))
            )
            ins, outs = vectors_of(model, compiled, arguments.vectors)
            with tempfile.TemporaryDirectory() as folder:
                f = run_firmware(compiled, core, ins, Path(folder), arguments.flags.split())
            per = f.instructions / compiled.view.macs if compiled.view.macs else 0
            print(
                f"| {model.name} | {core} | {f.instructions:,} | {per:.2f} | {f.flash:,} | {f.workspace:,} | "
                f"{f.stack:,} | {difference(f, outs):.2g} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
