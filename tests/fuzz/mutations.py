"""Mutations of models: of their structure, their values and their bytes. `rng` decides everything."""

from __future__ import annotations

import importlib.util
import random
import struct
from collections.abc import Callable

import numpy as np
import onnx
from onnx import TensorProto, helper

from aot_model.ops.registry import OPERATORS

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
    names = (
        [v for m in proto.graph.node for v in (*m.input, *m.output)]
        + [t.name for t in proto.graph.initializer]
        + NAMES
    )
    side = rng.choice([n.input, n.input, n.output])
    kind = rng.randrange(4)
    if kind == 0 or not side:
        side.append(rng.choice(names))
    elif kind == 1:
        del side[rng.randrange(len(side))]
    else:
        side[rng.randrange(len(side))] = rng.choice(names)


def _text(proto: onnx.ModelProto, rng: random.Random) -> None:
    """An attribute that is text says something else."""
    texts = [
        a
        for n in proto.graph.node
        for a in n.attribute
        if a.type in (onnx.AttributeProto.STRING, onnx.AttributeProto.STRINGS)
    ]
    if texts:
        a = rng.choice(texts)
        word = rng.choice(
            [b"", b"bogus", b"\x1b[2J", b"\xff\xfe", b"linear", b"constant", b"add", b"%s" * 50]
        )
        if a.type == onnx.AttributeProto.STRING:
            a.s = word
        elif a.strings:
            a.strings[rng.randrange(len(a.strings))] = word


def _values(proto: onnx.ModelProto, rng: random.Random) -> None:
    """Elements of a constant become extreme, in the type that it has."""
    constants = [t for t in proto.graph.initializer if t.raw_data and t.data_type in _EXTREME]
    if constants:
        t = rng.choice(constants)
        code = _EXTREME[t.data_type]
        size = struct.calcsize(code)
        raw = bytearray(t.raw_data)
        for _ in range(rng.randint(1, 3)):
            at = rng.randrange(max(len(raw) // size, 1)) * size
            pool = _REALS if code in "fd" else [v for v in NASTY if _fits(code, v)]
            raw[at : at + size] = struct.pack(f"<{code}", rng.choice(pool))
        t.raw_data = bytes(raw)


def _fits(code: str, value: int) -> bool:
    bits = 8 * struct.calcsize(code)
    return 0 <= value < 1 << bits if code.isupper() else -(1 << bits - 1) <= value < 1 << bits - 1


_EXTREME = {
    TensorProto.FLOAT: "f",
    TensorProto.DOUBLE: "d",
    TensorProto.INT8: "b",
    TensorProto.UINT8: "B",
    TensorProto.INT16: "h",
    TensorProto.UINT16: "H",
    TensorProto.INT32: "i",
    TensorProto.UINT32: "I",
    TensorProto.INT64: "q",
    TensorProto.UINT64: "Q",
}
_REALS = [0.0, -0.0, float("nan"), float("inf"), -float("inf"), 1e-45, 3.4e38, -1.0]


def _constant_or_input(proto: onnx.ModelProto, rng: random.Random) -> None:
    """A constant becomes an input of the model."""
    if proto.graph.initializer:
        at = rng.randrange(len(proto.graph.initializer))
        t = proto.graph.initializer[at]
        if rng.random() < 0.5:
            proto.graph.input.append(helper.make_tensor_value_info(t.name, t.data_type, list(t.dims)))
            del proto.graph.initializer[at]


def _follow(proto: onnx.ModelProto, rng: random.Random) -> None:
    """Another operator reads what one computes."""
    n = rng.choice(proto.graph.node)
    if n.output:
        name = f"more{len(proto.graph.node)}"
        op = rng.choice(
            [
                "Relu",
                "Neg",
                "Cast",
                "Softmax",
                "Transpose",
                "ReduceMax",
                "Flatten",
                "Identity",
                "Shape",
                "Exp",
                "ArgMax",
                "Not",
            ]
        )
        more = {"to": rng.choice([1, 2, 3, 5, 6, 7, 9, 10, 11, 16])} if op == "Cast" else {}
        proto.graph.node.append(helper.make_node(op, [rng.choice(list(n.output))], [name], **more))
        proto.graph.output.append(onnx.ValueInfoProto(name=name))


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
    name = rng.choice(
        [
            "axis",
            "perm",
            "kernel_shape",
            "strides",
            "pads",
            "group",
            "keepdims",
            "to",
            "auto_pad",
            "dilations",
            "transA",
            "mode",
        ]
    )
    value = rng.choice(
        [rng.choice(NASTY), [rng.choice(NASTY) for _ in range(rng.randint(0, 4))], 0.5, "SAME_UPPER"]
    )
    n.attribute.append(
        helper.make_attribute(name, value, attr_type=onnx.AttributeProto.INTS)
        if isinstance(value, list)
        else helper.make_attribute(name, value)
    )


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


MUTATIONS: list[Callable[[onnx.ModelProto, random.Random], None]] = [
    _edge,
    _operator,
    _attribute,
    _attribute,
    _constant,
    _shape,
    _structure,
    _text,
    _values,
    _values,
    _constant_or_input,
    _follow,
    _follow,
]


def mutated_onnx(proto: onnx.ModelProto, rng: random.Random) -> bytes:
    """The bytes of a model after one to four mutations; some are not of the structure."""
    if rng.random() < 0.12:
        return _bytes(proto.SerializeToString(), rng)
    for _ in range(rng.randint(1, 4)):
        if proto.graph.node:
            try:
                rng.choice(MUTATIONS)(proto, rng)
            except (ValueError, IndexError, TypeError):
                continue  # the model has nothing of the kind, or protobuf refuses the value
    return proto.SerializeToString()


def mutated_tflite(data: bytes, rng: random.Random) -> bytes:
    """Bits and words of a flatbuffer changed: lengths, offsets, enumerations and values alike. Or its
    structure, where what reads the format is installed.
    """
    if rng.random() < 0.5 and importlib.util.find_spec("ai_edge_litert"):
        from exchanged import changed

        try:
            return changed(data, np.random.default_rng(rng.randrange(2**32)))
        except (struct.error, IndexError, ValueError, TypeError, AttributeError):
            pass  # it is no flatbuffer any more: guided by coverage, mutations follow each other
    if rng.random() < 0.3:
        return _bytes(data, rng)
    buffer = bytearray(data)
    for _ in range(rng.randint(1, 5)):
        at = rng.randrange(8, max(len(buffer) - 8, 9)) & ~3
        kind = rng.randrange(4)
        if kind == 0:
            buffer[at] = rng.choice([0, 1, 2, 3, 4, 7, 9, 127, 128, 255])
        elif kind == 1:
            buffer[at : at + 4] = struct.pack("<i", rng.choice([v for v in NASTY if _fits("i", v)]))
        elif kind == 2:
            buffer[at : at + 4] = struct.pack("<f", rng.choice(_REALS))
        else:
            word = struct.unpack_from("<i", buffer, at)[0]
            buffer[at : at + 4] = struct.pack("<I", (word + rng.choice([-4, -1, 1, 4])) & 0xFFFFFFFF)
    return bytes(buffer)
