"""Mutated models: each compiles or is refused with an error of ours, within 10 s and 2 GB.

A few hundred cases by default, AOT_MODEL_FUZZ=10000 for more; AOT_MODEL_FUZZ_SEED moves the whole set. Every case is a process
of its own, forked, so that a crash, a hang or a memory blow-up is its own failure.
"""

from __future__ import annotations

import os
import random
import resource
import signal
import sys
import traceback
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from aot_model.errors import CompileError
from aot_model.ops.registry import OPERATORS, load_all
from aot_model.pipeline import Request, compile_model
from onnx_models import model, save, small_cnn, tensor

CASES = int(os.environ.get("AOT_MODEL_FUZZ", "240"))
SEED = int(os.environ.get("AOT_MODEL_FUZZ_SEED", "0"))
BATCH = 40
SECONDS, BYTES = 10, 2 << 30

node = helper.make_node


def many_operators() -> onnx.ModelProto:
    """Operators with attributes and operands of every kind."""
    ints = {"axes": [1], "starts": [1], "ends": [3], "shape": [2, -1], "split": [1, 3], "pads": [0, 1, 0, 1], "index": [2, 0, 1], "k": [2], "reps": [1, 2]}
    nodes = [
        node("Slice", ["x", "starts", "ends", "axes"], ["s"]), node("Pad", ["s", "pads"], ["p"], mode="reflect"), node("Split", ["x", "split"], ["a", "b"], axis=1),
        node("Concat", ["a", "b", "p"], ["c"], axis=1), node("Gather", ["c", "index"], ["g"], axis=1), node("Transpose", ["g"], ["t"], perm=[1, 0]),
        node("ReduceMean", ["t", "axes"], ["m"], keepdims=1), node("Sub", ["t", "m"], ["d"]), node("Clip", ["d", "low", "high"], ["e"]),
        node("Tile", ["e", "reps"], ["f"]), node("Cast", ["f"], ["h"], to=TensorProto.INT32), node("Cast", ["h"], ["i"], to=TensorProto.FLOAT),
        node("Where", ["mask", "i", "low"], ["j"]), node("LeakyRelu", ["j"], ["l"], alpha=0.1), node("ArgMax", ["l"], ["n"], axis=1), node("TopK", ["l", "k"], ["o", "q"], axis=0),
        node("LayerNormalization", ["o", "scale"], ["r"], axis=-1), node("Reshape", ["r", "shape"], ["y"]),
    ]  # fmt: skip
    constants = {k: np.asarray(v, np.int64) for k, v in ints.items()}
    constants |= {"low": np.asarray(-1, np.float32), "high": np.asarray(1, np.float32), "mask": np.asarray([[True], [False], [True]]), "scale": np.ones(6, np.float32)}
    known = [n for n in nodes if ("", n.op_type) in OPERATORS]
    missing = {n.op_type for n in nodes} - {n.op_type for n in known}
    return model(nodes, [tensor("x", [3, 4])], [tensor("y", None), tensor("n", None, TensorProto.INT64)], constants) if not missing else small_cnn()


def recurrent() -> onnx.ModelProto:
    """A recurrent layer and a convolution in one dimension."""
    rng = np.random.default_rng(1)
    constants = {
        "w": np.asarray(rng.normal(size=(1, 16, 3)), np.float32), "r": np.asarray(rng.normal(size=(1, 16, 4)), np.float32),
        "b": np.asarray(rng.normal(size=(1, 32)), np.float32), "k": np.asarray(rng.normal(size=(5, 4, 3)), np.float32), "axes": np.asarray([1]),
    }  # fmt: skip
    nodes = [
        node("LSTM", ["x", "w", "r", "b"], ["h"], hidden_size=4), node("Squeeze", ["h", "axes"], ["q"]), node("Transpose", ["q"], ["t"], perm=[1, 2, 0]),
        node("Conv", ["t", "k"], ["y"], pads=[1, 1], dilations=[1]),
    ]  # fmt: skip
    return model(nodes, [tensor("x", [6, 1, 3])], [tensor("y", None)], constants)


# --- mutations --------------------------------------------------------------------------------------------------------

NASTY = [0, 1, -1, 2, 3, 7, -2, 31, 64, 255, 65536, 2**31 - 1, -(2**31), 2**31, 2**40, 2**63 - 1, -(2**63)]
NAMES = ["", "x", "y", "int", "a\n", "*/", "é", "z" * 300]


def _bytes(data: bytes, rng: random.Random) -> bytes:
    """Bits flipped, pieces cut out, doubled or overwritten."""
    buffer = bytearray(data)
    for _ in range(rng.randint(1, 6)):
        at = rng.randrange(len(buffer))
        kind = rng.randrange(5)
        if kind <= 1:
            buffer[at] ^= 1 << rng.randrange(8)
        elif kind == 2:
            del buffer[at : at + rng.randint(1, 20)]
        elif kind == 3:
            buffer[at:at] = buffer[at : at + rng.randint(1, 40)]
        else:
            buffer[at] = rng.choice([0, 255, 127, 128])
        if not buffer:
            return b"\0"
    return bytes(buffer)


def _edge(proto: onnx.ModelProto, rng: random.Random) -> None:
    n = rng.choice(proto.graph.node)
    names = [v for m in proto.graph.node for v in (*m.input, *m.output)] + [t.name for t in proto.graph.initializer] + NAMES
    side = rng.choice([n.input, n.input, n.output])
    kind = rng.randrange(4)
    if kind == 0 or not side:
        side.append(rng.choice(names))
    elif kind == 1:
        del side[rng.randrange(len(side))]
    else:
        side[rng.randrange(len(side))] = rng.choice(names)


def _operator(proto: onnx.ModelProto, rng: random.Random) -> None:
    names = sorted(n for d, n in OPERATORS if d == "")
    rng.choice(proto.graph.node).op_type = rng.choice(names)


def _attribute(proto: onnx.ModelProto, rng: random.Random) -> None:
    n = rng.choice(proto.graph.node)
    if n.attribute and rng.random() < 0.7:
        a = rng.choice(n.attribute)
        kind = rng.randrange(4)
        if kind == 0:
            a.i = rng.choice(NASTY)
        elif kind == 1:
            a.f = rng.choice([float("nan"), float("inf"), 0.0, -1e38])
        elif kind == 2 and a.ints:
            a.ints[rng.randrange(len(a.ints))] = rng.choice(NASTY)
        else:
            a.ints.append(rng.choice(NASTY))
        return
    name = rng.choice(["axis", "perm", "kernel_shape", "strides", "pads", "group", "keepdims", "to", "auto_pad", "dilations", "transA", "mode"])
    value = rng.choice([rng.choice(NASTY), [rng.choice(NASTY) for _ in range(rng.randint(0, 4))], 0.5, "SAME_UPPER"])
    n.attribute.append(helper.make_attribute(name, value, attr_type=onnx.AttributeProto.INTS) if isinstance(value, list) else helper.make_attribute(name, value))


def _constant(proto: onnx.ModelProto, rng: random.Random) -> None:
    t = rng.choice(proto.graph.initializer)
    kind = rng.randrange(4)
    if kind == 0 and t.dims:
        t.dims[rng.randrange(len(t.dims))] = rng.choice(NASTY)
    elif kind == 1:
        t.dims.append(rng.choice([0, 1, 2, -1]))
    elif kind == 2:
        t.data_type = rng.randrange(25)
    elif len(t.raw_data) >= 8:
        raw = bytearray(t.raw_data)
        at = rng.randrange(len(raw) - 7)
        raw[at : at + 8] = rng.choice(NASTY).to_bytes(8, "little", signed=True)
        t.raw_data = bytes(raw)


def _shape(proto: onnx.ModelProto, rng: random.Random) -> None:
    info = rng.choice([*proto.graph.input, *proto.graph.output])
    kind = rng.randrange(4)
    shape = info.type.tensor_type.shape
    if kind == 0:
        info.type.tensor_type.elem_type = rng.randrange(25)
    elif kind == 1 or not shape.dim:
        shape.dim.add().dim_value = rng.choice([0, 1, 2, -1, 2**40])
    elif kind == 2:
        rng.choice(shape.dim).dim_value = rng.choice(NASTY)
    else:
        rng.choice(shape.dim).dim_param = rng.choice(NAMES)


def _structure(proto: onnx.ModelProto, rng: random.Random) -> None:
    nodes = proto.graph.node
    kind = rng.randrange(4)
    if kind == 0:
        del nodes[rng.randrange(len(nodes))]
    elif kind == 1:
        nodes.add().CopyFrom(rng.choice(nodes))
    elif kind == 2:
        proto.opset_import[0].version = rng.choice([1, 6, 9, 11, 13, 22, 999, -1])
    else:
        rng.choice(nodes).domain = rng.choice(["", "ai.onnx", "aot", "com.microsoft", "ai.onnx.ml"])


MUTATIONS: list[Callable[[onnx.ModelProto, random.Random], None]] = [_edge, _operator, _attribute, _attribute, _constant, _shape, _structure]


def mutated(number: int) -> bytes:
    """The bytes of a case."""
    rng = random.Random(f"{SEED}:{number}")
    proto = [small_cnn, many_operators, recurrent][number % 3]()
    if rng.random() < 0.3:
        return _bytes(proto.SerializeToString(), rng)
    for _ in range(rng.randint(1, 3)):
        if proto.graph.node and proto.graph.initializer:
            rng.choice(MUTATIONS)(proto, rng)
    return proto.SerializeToString()


# --- running ----------------------------------------------------------------------------------------------------------


def _compile(path: Path) -> None:
    """In the child: returns if the model compiles or is refused."""
    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (used + BYTES, used + BYTES))
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(SECONDS)
    try:
        compile_model(Request(path, "m", "c"))
    except CompileError as error:
        assert len(str(error)) < 50_000
        assert all(ord(c) >= 32 or c == "\n" for c in str(error)), str(error)


def outcome(path: Path, log: Path) -> str:
    """Empty when the case is fine."""
    child = os.fork()
    if child == 0:
        try:
            _compile(path)
        except BaseException:
            log.write_text(traceback.format_exc())
            os._exit(70)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return f"took more than {SECONDS} s" if number == signal.SIGALRM else f"killed by {signal.Signals(number).name}"
    return log.read_text() if os.WEXITSTATUS(status) else ""


@pytest.mark.skipif(sys.platform != "linux", reason="forks and limits of Linux")
@pytest.mark.parametrize("batch", range((CASES + BATCH - 1) // BATCH))
def test_mutated_models(batch: int, tmp_path: Path) -> None:
    load_all()
    compile_model(Request(save(small_cnn(), tmp_path / "warm.onnx"), "m", "c"))
    bad = []
    for number in range(batch * BATCH, min(CASES, (batch + 1) * BATCH)):
        path = tmp_path / "case.onnx"
        path.write_bytes(mutated(number))
        text = outcome(path, tmp_path / "log")
        if text:
            (tmp_path / f"case{number}.onnx").write_bytes(path.read_bytes())
            bad.append(f"case {number} ({tmp_path / f'case{number}.onnx'}):\n{text[-1500:]}")
    assert not bad, "\n\n".join(bad)


def test_the_models_are_valid(tmp_path: Path) -> None:
    """The mutations start from models that compile."""
    load_all()
    for number, make in enumerate((small_cnn, many_operators, recurrent)):
        compile_model(Request(save(make(), tmp_path / f"{number}.onnx"), "m", "c"))
