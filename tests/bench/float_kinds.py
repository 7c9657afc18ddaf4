"""What a MAC costs in each kind of float layer, beside the dense kernel: instructions and estimated cycles on
a Cortex-M, or the time on this host beside ONNX Runtime.

    python tests/bench/float_kinds.py [--core m4] [--memory 0ws] [--kinds lstm,gru] [--elements] [--host]

Every kind is a small network of its own; its MACs are counted from its sizes, not taken from the compiler.
What is around the products (gates, softmax) counts as part of them; transposes to channels last and back do
not. Inputs are random. The first kind is what others are compared with; the worst come first. Many kinds are
compiled and run as one network whose parts have nothing to do with each other.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from pathlib import Path

import numpy as np
import onnx
from onnx import compose, helper

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parent))

from float_shapes import ELEMENTS, PRODUCTS, Kind

from aot_model.emit.view import Options
from aot_model.errors import CompileError
from aot_model.host.timing import of_model
from aot_model.pipeline import Compiled, Request, compile_model
from onnx_models import save

TOGETHER = 16
"""Kinds in a network."""
_PORTS = (lambda g: g.input, lambda g: g.output, lambda g: g.initializer)


def _joined(kinds: list[Kind]) -> onnx.ModelProto:
    """One network of all; the names of a kind's nodes begin with its number."""
    parts = [compose.add_prefix(proto, f"k{k}_") for k, (proto, _) in enumerate(kinds)]
    graphs = [p.graph for p in parts]
    graph = helper.make_graph(
        *([n for g in graphs for n in g.node], "kinds"),
        *([v for g in graphs for v in ports(g)] for ports in _PORTS),
    )
    newest = max(o.version for p in parts for o in p.opset_import if not o.domain)
    others = {o.domain: o.version for p in parts for o in p.opset_import if o.domain}
    opsets = [helper.make_opsetid(d, v) for d, v in {"": newest, **others}.items()]
    return helper.make_model(graph, opset_imports=opsets, ir_version=9)


def _inputs(compiled: Compiled) -> list[np.ndarray]:
    random = np.random.default_rng(1)
    return [random.standard_normal(p.buffer.type.shape).astype(p.buffer.type.dtype.numpy)
            for p in compiled.view.inputs]  # fmt: skip


def on_core(kinds: list[Kind], core: str, memory: str) -> list[tuple[int, int]]:
    """(instructions, cycles) of one inference of each."""
    with tempfile.TemporaryDirectory() as folder:
        path = save(_joined(kinds), Path(folder) / "net.onnx")
        compiled = compile_model(Request(path, "model", f"cortex-{core}", library=Options(metadata="none")))
        time = of_model(compiled.view, compiled.texts, Path(folder), memory, vectors=[_inputs(compiled)])
    found = []
    for k in range(len(kinds)):
        mine = [layer for layer in time.layers if layer.layer.startswith(f"k{k}_")]
        if any(layer.macs for layer in mine):  # channels last and back: of a network at its ends alone
            mine = [layer for layer in mine if layer.op != "Transpose"]
        found.append((sum(layer.instructions for layer in mine), sum(layer.cycles for layer in mine)))
    return found


def on_host(kind: Kind) -> tuple[float, float]:
    """Microseconds: ours, ONNX Runtime's; of interleaved rounds."""
    from host_latency import once, onnx_runtime, ours

    with tempfile.TemporaryDirectory() as folder:
        path = save(kind[0], Path(folder) / "net.onnx")
        compiled = compile_model(Request(path, "model", "host", library=Options(metadata="none")))
        inputs = _inputs(compiled)
        calls = [
            ours(compiled, Path(folder), "gcc", ["-O2", "-march=native"], inputs)[0],
            onnx_runtime(path, inputs)[0],
        ]
        repeats = [max(1, int(1000 / max(once(c, 3), 1))) for c in calls]
        rounds = [[once(c, n) for c, n in zip(calls, repeats, strict=True)] for _ in range(15)]
    mine, other = (statistics.median(times) for times in zip(*rounds, strict=True))
    return mine, other


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--core", default="m4")
    parser.add_argument("--memory", default="0ws")
    parser.add_argument("--kinds", help="with these words in their names, separated by commas")
    parser.add_argument("--elements", action="store_true", help="layers without products")
    parser.add_argument("--host", action="store_true")
    arguments = parser.parse_args()
    table = ELEMENTS if arguments.elements else PRODUCTS
    words = arguments.kinds.split(",") if arguments.kinds else [""]
    names = [name for name in table if any(word in name for word in words)]
    kinds = [table[name]() for name in names]
    rows = []
    if arguments.host:
        print("| kind | MACs | us | ONNX Runtime | ours / it | GMAC/s |")
        print("| --- | --- | --- | --- | --- | --- |")
        for name, kind in zip(names, kinds, strict=True):
            try:
                mine, other = on_host(kind)
            except Exception as e:  # ONNX Runtime has not every operator
                print(f"{name}: {str(e).splitlines()[0]}", file=sys.stderr)
                continue
            rows.append(
                (
                    mine / other,
                    f"| {name} | {kind[1]:,} | {mine:.1f} | {other:.1f} | {mine / other:.2f} | "
                    f"{kind[1] / mine / 1e3:.2f} |",
                )
            )
    else:
        print("| kind | MACs | instructions per MAC | cycles per MAC | times the first |")
        print("| --- | --- | --- | --- | --- |")
        first = 0.0
        for at in range(0, len(kinds), TOGETHER):
            part = kinds[at : at + TOGETHER]
            try:
                found = on_core(part, arguments.core, arguments.memory)
            except CompileError as e:
                print(f"{names[at : at + TOGETHER]}: {e}", file=sys.stderr)
                continue
            for name, (_, macs), (instructions, cycles) in zip(names[at:], part, found, strict=False):
                first = first or cycles / macs
                rows.append(
                    (
                        cycles / macs,
                        f"| {name} | {macs:,} | {instructions / macs:.2f} | {cycles / macs:.2f} | "
                        f"{cycles / macs / first:.2f} |",
                    )
                )
    print("\n".join(row for _, row in sorted(rows, reverse=True)))


if __name__ == "__main__":
    main()
