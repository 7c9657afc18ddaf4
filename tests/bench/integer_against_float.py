"""Networks of integers beside the float networks that they were made of, on an emulated Cortex-M.

Instructions, RAM and flash, and how many times the float network's each is: more than 1 is what quantising
made worse.

    python tests/bench/integer_against_float.py FOLDER … [--core m4] [--only digits]
    python tests/bench/integer_against_float.py --pair INTEGER FLOAT [--pair …]

In folders the pairs are known by their names: net_int8.tflite and net_f32.tflite, net_qdq.onnx and net.onnx.
Exit status 1 when one is worse.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from cortex_m import vectors_of

from aot_model.emit.view import Options
from aot_model.errors import CompileError
from aot_model.pipeline import Request, compile_model
from firmware import run_firmware

ENDINGS = (("_int8", "_f32"), ("_int8", ""), ("_qdq", ""), ("_qop", ""), ("_qdq", "_f32"))
KINDS = (".tflite", ".onnx")


def pairs(folder: Path) -> Iterator[tuple[Path, Path]]:
    """(integers, floats), each integer network once."""
    for whole in sorted(p for p in folder.iterdir() if p.suffix in KINDS):
        names = [whole.stem.removesuffix(i) + f for i, f in ENDINGS if whole.stem.endswith(i)]
        kinds = (whole.suffix, *(k for k in KINDS if k != whole.suffix))
        real = next((p for n in names for k in kinds if (p := folder / f"{n}{k}").exists()), None)
        if real is not None and real != whole:
            yield whole, real


def measured(model: Path, core: str) -> tuple[int, int, int]:
    """(instructions, RAM with stack, flash)."""
    compiled = compile_model(
        Request(model, "model", f"cortex-{core}", library=Options(io="caller", metadata="none"))
    )
    ins, _ = vectors_of(model, compiled, 1)
    with tempfile.TemporaryDirectory() as folder:
        found = run_firmware(compiled, core, ins, Path(folder), ["-O2"])
    return found.instructions, found.workspace + found.stack, found.flash


def main() -> int:
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n\n")[0])
    parser.add_argument("folders", nargs="*", type=Path, metavar="FOLDER")
    parser.add_argument(
        "--pair", nargs=2, type=Path, action="append", default=[], metavar=("INTEGER", "FLOAT")
    )
    parser.add_argument("--core", default="m4")
    parser.add_argument("--only", default="", help="networks with this in their names")
    arguments = parser.parse_args()
    found = [(a, b) for a, b in arguments.pair] + [p for f in arguments.folders for p in pairs(f)]
    worse = 0
    columns = (f"{what} | of the float's" for what in ("instructions", "RAM", "flash"))
    print(f"| integers | floats | {' | '.join(columns)} |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for whole, real in found:
        if arguments.only not in whole.name:
            continue
        try:
            rows = [measured(p, arguments.core) for p in (whole, real)]
        except CompileError as error:
            print(f"| {whole.name} | {real.name} | {error.problems[0].code}: {error.problems[0].message} |")
            continue
        ratios = [a / b for a, b in zip(*rows, strict=True)]
        worse += max(ratios) > 1
        cells = [f"{a:,} | {r:.2f}{' (!)' if r > 1 else ''}" for a, r in zip(rows[0], ratios, strict=True)]
        print(f"| {whole.name} | {real.name} | {' | '.join(cells)} |", flush=True)
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
