"""What a MAC costs in each kind of float layer, beside the dense kernel: instructions and estimated cycles on
a Cortex-M.

    python tests/bench/float_kinds.py [--core m4] [--memory 0ws] [--kinds lstm,gru]

Every kind is a small network of its own; its MACs are counted from its sizes, not taken from the compiler.
What is around the products (gates, softmax) counts as part of them. Inputs are random. The
first kind is what others are compared with.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable
from math import prod
from pathlib import Path

import numpy as np
import onnx
from onnx import helper

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from aot_model.emit.view import Options
from aot_model.host.timing import of_model
from aot_model.pipeline import Request, compile_model
from firmware import run_firmware
from onnx_models import model, save, tensor

Kind = tuple[onnx.ModelProto, int]
_DRAW = np.random.default_rng(0)


def _floats(*shape: int) -> np.ndarray:
    return _DRAW.standard_normal(shape).astype(np.float32) / 8


def _one(op: str, inputs: list[tuple[int, ...]], constants: dict[str, np.ndarray], macs: int,
         **attributes: object) -> Kind:
    """A network of one node."""
    names = [f"x{k}" for k in range(len(inputs))]
    node = helper.make_node(op, [*names, *constants], ["y0"], name=op, **attributes)
    ins = [tensor(n, shape) for n, shape in zip(names, inputs, strict=True)]
    return model([node], ins, [tensor("y0", None)], constants), macs


def _convolution(x: tuple[int, ...], w: tuple[int, ...], out: tuple[int, ...], **attributes: object) -> Kind:
    macs = prod(out) * w[0] * prod(w[1:]) * x[0]
    return _one("Conv", [x], {"w": _floats(*w), "b": _floats(w[0])}, macs, **attributes)


def _recurrent(op: str, gates: int, steps: int = 16, ins: int = 32, units: int = 32) -> Kind:
    weights = {"w": _floats(1, gates * units, ins), "r": _floats(1, gates * units, units),
               "b": _floats(1, 2 * gates * units)}
    return _one(op, [(steps, 1, ins)], weights, steps * gates * units * (ins + units), hidden_size=units)


def _attention(length: int = 32, heads: int = 4, depth: int = 16) -> Kind:
    """softmax(q k') v of the heads of one tensor."""
    width = heads * depth
    shape = np.array([1, length, heads, depth])
    nodes = [helper.make_node("Reshape", [n, "shape"], [f"{n}_heads"], name=f"{n}_heads") for n in "qkv"]
    nodes += [helper.make_node("Transpose", [f"{n}_heads"], [f"{n}_t"], perm=perm, name=f"{n}_t")
              for n, perm in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3]))]
    nodes += [
        helper.make_node("MatMul", ["q_t", "k_t"], ["scores"], name="scores"),
        helper.make_node("Softmax", ["scores"], ["shares"], axis=-1, name="softmax"),
        helper.make_node("MatMul", ["shares", "v_t"], ["mixed"], name="mixed"),
        helper.make_node("Transpose", ["mixed"], ["mixed_t"], perm=[0, 2, 1, 3], name="back"),
        helper.make_node("Reshape", ["mixed_t", "flat"], ["y0"], name="flat"),
    ]
    ins = [tensor(n, (1, length, width)) for n in "qkv"]
    proto = model(nodes, ins, [tensor("y0", None)], {"shape": shape, "flat": np.array([1, length, width])})
    return proto, 2 * heads * length * length * depth


def _dft(length: int = 64, frames: int = 8) -> Kind:
    """As a product with the matrix would cost."""
    return _one("DFT", [(frames, length, 1)], {}, frames * 2 * length * (length // 2 + 1), axis=1, onesided=1)


KINDS: dict[str, Callable[[], Kind]] = {
    "dense": lambda: _one("MatMul", [(24, 64)], {"w": _floats(64, 48)}, 24 * 64 * 48),
    "dense of one row": lambda: _one("MatMul", [(1, 128)], {"w": _floats(128, 96)}, 128 * 96),
    "convolution 3x3": lambda: _convolution((1, 16, 12, 12), (24, 16, 3, 3), (12, 12), pads=[1, 1, 1, 1]),
    "dilated": lambda: _convolution((1, 16, 12, 12), (24, 16, 3, 3), (12, 12), pads=[2, 2, 2, 2],
                                    dilations=[2, 2]),
    "dilated 1-D": lambda: _convolution((1, 16, 64), (16, 16, 3), (64,), pads=[4, 4], dilations=[4]),
    "grouped": lambda: _convolution((1, 32, 12, 12), (32, 8, 3, 3), (12, 12), pads=[1, 1, 1, 1], group=4),
    "grouped by two": lambda: _convolution((1, 32, 12, 12), (32, 2, 3, 3), (12, 12), pads=[1, 1, 1, 1],
                                           group=16),
    "depthwise": lambda: _convolution((1, 32, 12, 12), (32, 1, 3, 3), (12, 12), pads=[1, 1, 1, 1], group=32),
    "3-D": lambda: _convolution((1, 8, 6, 8, 8), (16, 8, 3, 3, 3), (6, 8, 8), pads=[1] * 6),
    "weights of activations": lambda: _one("Conv", [(1, 8, 10, 10), (12, 8, 3, 3)], {}, 8 * 8 * 12 * 72),
    "batch product": lambda: _one("MatMul", [(4, 24, 32), (4, 32, 24)], {}, 4 * 24 * 32 * 24),
    "batch product of many axes": lambda: _one("MatMul", [(2, 2, 2, 16, 32), (2, 2, 2, 32, 16)], {},
                                             8 * 16 * 32 * 16),
    "product transposed": lambda: _one("Gemm", [(24, 32), (24, 32)], {}, 24 * 32 * 24, transB=1),
    "einsum": lambda: _one("Einsum", [(4, 24, 32), (4, 24, 32)], {}, 4 * 24 * 24 * 32,
                           equation="bik,bjk->bij"),
    "attention": _attention,
    "lstm": lambda: _recurrent("LSTM", 4),
    "gru": lambda: _recurrent("GRU", 3),
    "rnn": lambda: _recurrent("RNN", 1),
    "dft": _dft,
}


def measure(proto: onnx.ModelProto, core: str, memory: str, folder: Path) -> tuple[int, int]:
    """(instructions, cycles) of one inference."""
    compiled = compile_model(Request(save(proto, folder / "net.onnx"), "model", f"cortex-{core}",
                                     library=Options(metadata="none")))
    random = np.random.default_rng(1)
    drawn = [random.standard_normal(p.buffer.type.shape).astype(p.buffer.type.dtype.numpy)
             for p in compiled.view.inputs]  # fmt: skip
    f = run_firmware(compiled, core, [drawn], folder)
    time = of_model(compiled.view, compiled.texts, folder, memory, vectors=[drawn])
    return f.instructions, time.cycles


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--core", default="m4")
    parser.add_argument("--memory", default="0ws")
    parser.add_argument("--kinds", default=",".join(KINDS))
    arguments = parser.parse_args()
    print("| kind | MACs | instructions per MAC | cycles per MAC | times dense |")
    print("| --- | --- | --- | --- | --- |")
    dense = 0.0
    for kind in arguments.kinds.split(","):
        proto, macs = KINDS[kind]()
        with tempfile.TemporaryDirectory() as folder:
            instructions, cycles = measure(proto, arguments.core, arguments.memory, Path(folder))
        dense = dense or cycles / macs
        print(f"| {kind} | {macs:,} | {instructions / macs:.2f} | {cycles / macs:.2f} | "
              f"{cycles / macs / dense:.2f} |", flush=True)


if __name__ == "__main__":
    main()
