"""Float layers of many kinds and shapes that no kernel was tuned for: networks of one layer each, with their
MACs (of layers without products: their elements), for float_kinds.py.
"""

from __future__ import annotations

from collections.abc import Callable
from math import prod

import numpy as np
import onnx
from onnx import TensorProto, helper

from onnx_models import model, tensor

Kind = tuple[onnx.ModelProto, int]
Shape = tuple[int, ...]
_DRAW = np.random.default_rng(0)


def floats(*shape: int) -> np.ndarray:
    return _DRAW.standard_normal(shape).astype(np.float32) / 8


def one(
    op: str,
    inputs: list[Shape],
    constants: dict[str, np.ndarray],
    macs: int,
    outputs: int = 1,
    opset: int = 20,
    **attributes: object,
) -> Kind:
    """A network of one node. An input whose name begins with ? is missing."""
    names = [f"x{k}" for k in range(len(inputs))]
    given = [*names, *("" if c.startswith("?") else c for c in constants)]
    domain = attributes.pop("domain", "")
    names_out = [f"y{k}" for k in range(outputs)]
    node = helper.make_node(op, given, names_out, name=op, domain=domain, **attributes)
    ins = [tensor(n, shape) for n, shape in zip(names, inputs, strict=True)]
    there = {k: v for k, v in constants.items() if not k.startswith("?")}
    kinds = [TensorProto.INT64 if (op, k) in (("ArgMax", 0), ("TopK", 1)) else TensorProto.FLOAT
             for k in range(outputs)]  # fmt: skip
    outs = [tensor(f"y{k}", None, kind) for k, kind in enumerate(kinds)]
    return model([node], ins, outs, there, opset, {domain: 1} if domain else None), macs


def conv(x: Shape, outs: int, kernel: Shape, group: int = 1, **attributes: object) -> Kind:
    """Padded so that the size stays, but for strides."""
    d = len(kernel)
    dilations = attributes.get("dilations", [1] * d)
    strides = attributes.get("strides", [1] * d)
    pads = [(k - 1) * e // 2 for k, e in zip(kernel, dilations, strict=True)]
    out = [
        (n + 2 * p - e * (k - 1) - 1) // s + 1
        for n, p, e, k, s in zip(x[2:], pads, dilations, kernel, strides, strict=True)
    ]
    macs = x[0] * outs * prod(out) * prod(kernel) * x[1] // group
    weights = {"w": floats(outs, x[1] // group, *kernel), "b": floats(outs)}
    return one("Conv", [x], weights, macs, group=group, pads=pads * 2, **attributes)


def transposed(x: Shape, outs: int, kernel: Shape, group: int = 1, **attributes: object) -> Kind:
    weights = {"w": floats(x[1], outs // group, *kernel), "b": floats(outs)}
    macs = prod(x) * outs // group * prod(kernel)
    return one("ConvTranspose", [x], weights, macs, group=group, **attributes)


def dense(rows: int, ins: int, outs: int) -> Kind:
    return one("Gemm", [(rows, ins)], {"w": floats(ins, outs), "b": floats(outs)}, rows * ins * outs)


def products(a: Shape, b: Shape) -> Kind:
    batch = np.broadcast_shapes(a[:-2], b[:-2])
    return one("MatMul", [a, b], {}, prod(batch) * a[-2] * a[-1] * b[-1])


def einsum(equation: str, *shapes: Shape, macs: int = 0) -> Kind:
    sizes: dict[str, int] = {}
    for term, shape in zip(equation.split("->")[0].split(","), shapes, strict=True):
        sizes |= dict(zip(term, shape, strict=True))
    return one("Einsum", list(shapes), {}, macs or prod(sizes.values()), equation=equation)


def recurrent(
    op: str, gates: int, steps: int, ins: int, units: int, directions: int = 1, **attributes: object
) -> Kind:
    n = directions
    weights = {
        "w": floats(n, gates * units, ins),
        "r": floats(n, gates * units, units),
        "b": floats(n, 2 * gates * units),
    }
    more: dict[str, object] = {"direction": "bidirectional"} if n == 2 else {}
    return one(
        op,
        [(steps, 1, ins)],
        weights,
        n * steps * gates * units * (ins + units),
        hidden_size=units,
        **more,
        **attributes,
    )


def attention(length: int = 32, heads: int = 4, depth: int = 16) -> Kind:
    """softmax(q k') v of the heads of one tensor."""
    width = heads * depth
    shape = np.array([1, length, heads, depth])
    nodes = [helper.make_node("Reshape", [n, "shape"], [f"{n}_heads"], name=f"{n}_heads") for n in "qkv"]
    nodes += [
        helper.make_node("Transpose", [f"{n}_heads"], [f"{n}_t"], perm=perm, name=f"{n}_t")
        for n, perm in (("q", [0, 2, 1, 3]), ("k", [0, 2, 3, 1]), ("v", [0, 2, 1, 3]))
    ]
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


def dft(length: int, frames: int, onesided: int = 1, parts: int = 1, inverse: int = 0) -> Kind:
    """As a product with the matrix would cost."""
    bins = length // 2 + 1 if onesided else length
    return one(
        "DFT",
        [(frames, length, parts)],
        {"?length": np.zeros(0), "axis": np.array(1)},
        frames * 2 * length * bins * parts,
        onesided=onesided,
        inverse=inverse,
    )


def stft(length: int, step: int, signal: int) -> Kind:
    frames = (signal - length) // step + 1
    constants = {
        "step": np.array(step),
        "window": np.hanning(length).astype(np.float32),
        "length": np.array(length),
    }
    return one("STFT", [(1, signal, 1)], constants, frames * 2 * length * (length // 2 + 1))


def _chain(ops: list[tuple[str, list[np.ndarray | str], dict[str, object]]], x: Shape, macs: int) -> Kind:
    """Nodes that follow each other, each with constants behind its input; "x" is the chain's input."""
    nodes, constants, at = [], {}, "x"
    for k, (op, more, attributes) in enumerate(ops):
        names = []
        for j, c in enumerate(more):
            names.append(c if isinstance(c, str) else f"c{k}_{j}")
            if not isinstance(c, str):
                constants[names[-1]] = c
        to = f"t{k}" if k + 1 < len(ops) else "y0"
        nodes.append(helper.make_node(op, [at, *names], [to], name=f"n{k}", **attributes))
        at = to
    return model(nodes, [tensor("x", x)], [tensor("y0", None)], constants, 20), macs


def _one_element(
    op: str, x: Shape = (1, 16, 12, 12), constants: dict[str, np.ndarray] | None = None, **attributes: object
) -> Kind:
    return one(op, [x], constants or {}, prod(x), **attributes)


PRODUCTS: dict[str, Callable[[], Kind]] = {
    "dense 24x64x48": lambda: dense(24, 64, 48),
    "dense 1x128x96": lambda: dense(1, 128, 96),
    "dense 1x37x5": lambda: dense(1, 37, 5),
    "dense 1x10x200": lambda: dense(1, 10, 200),
    "dense 1x400x1": lambda: dense(1, 400, 1),
    "dense 7x33x3": lambda: dense(7, 33, 3),
    "dense 50x3x50": lambda: dense(50, 3, 50),
    "dense 3 axes": lambda: one("MatMul", [(2, 5, 32)], {"w": floats(32, 20)}, 10 * 32 * 20),
    "constant times x": lambda: _chain(
        [("Transpose", [], {"perm": [1, 0]}), ("Gemm", [floats(32, 20)], {"transA": 1})],
        (24, 32),
        24 * 32 * 20,
    ),
    "conv 3x3": lambda: conv((1, 16, 12, 12), 24, (3, 3)),
    "conv 3x3 odd": lambda: conv((1, 5, 11, 9), 7, (3, 3)),
    "conv 3x3 of 1": lambda: conv((1, 1, 20, 20), 8, (3, 3)),
    "conv 3x3 of 3 s2": lambda: conv((1, 3, 24, 24), 16, (3, 3), strides=[2, 2]),
    "conv 3x3 to 1": lambda: conv((1, 16, 12, 12), 1, (3, 3)),
    "conv 5x5": lambda: conv((1, 8, 12, 12), 8, (5, 5)),
    "conv 7x7 of 3 s2": lambda: conv((1, 3, 32, 32), 8, (7, 7), strides=[2, 2]),
    "conv 2x2 s2": lambda: one(
        "Conv", [(1, 8, 12, 12)], {"w": floats(16, 8, 2, 2)}, 36 * 16 * 32, strides=[2, 2]
    ),
    "conv 1x3": lambda: conv((1, 8, 12, 12), 16, (1, 3)),
    "conv 3x1": lambda: conv((1, 8, 12, 12), 16, (3, 1)),
    "pointwise 16-24": lambda: conv((1, 16, 12, 12), 24, (1, 1)),
    "pointwise 13-5": lambda: conv((1, 13, 9, 9), 5, (1, 1)),
    "pointwise 3-3": lambda: conv((1, 3, 16, 16), 3, (1, 1)),
    "pointwise s2": lambda: conv((1, 16, 12, 12), 24, (1, 1), strides=[2, 2]),
    "dilated": lambda: conv((1, 16, 12, 12), 24, (3, 3), dilations=[2, 2]),
    "dilated 1-D": lambda: conv((1, 16, 64), 16, (3,), dilations=[4]),
    "1-D k9 of 1": lambda: conv((1, 1, 128), 8, (9,)),
    "1-D k5 s2": lambda: conv((1, 12, 64), 20, (5,), strides=[2]),
    "3-D": lambda: conv((1, 8, 6, 8, 8), 16, (3, 3, 3)),
    "3-D of 1": lambda: conv((1, 1, 8, 10, 10), 8, (3, 3, 3)),
    "3-D depthwise": lambda: conv((1, 8, 6, 8, 8), 8, (3, 3, 3), 8),
    "3-D s2": lambda: conv((1, 4, 8, 8, 8), 8, (3, 3, 3), strides=[2, 2, 2]),
    "grouped 4": lambda: conv((1, 32, 12, 12), 32, (3, 3), 4),
    "grouped pointwise": lambda: conv((1, 24, 10, 10), 24, (1, 1), 3),
    "grouped by two": lambda: conv((1, 32, 12, 12), 32, (3, 3), 16),
    "grouped odd": lambda: conv((1, 15, 9, 9), 10, (3, 3), 5),
    "grouped 1-D": lambda: conv((1, 32, 40), 32, (3,), 8),
    "depthwise 3x3": lambda: conv((1, 32, 12, 12), 32, (3, 3), 32),
    "depthwise 3x3 s2": lambda: conv((1, 32, 12, 12), 32, (3, 3), 32, strides=[2, 2]),
    "depthwise 5x5": lambda: conv((1, 16, 12, 12), 16, (5, 5), 16),
    "depthwise 5x5 s2": lambda: conv((1, 16, 12, 12), 16, (5, 5), 16, strides=[2, 2]),
    "depthwise 7x7": lambda: conv((1, 12, 10, 10), 12, (7, 7), 12),
    "depthwise 1x5": lambda: conv((1, 16, 12, 12), 16, (1, 5), 16),
    "depthwise 1-D k9": lambda: conv((1, 24, 50), 24, (9,), 24),
    "depthwise dilated": lambda: conv((1, 16, 12, 12), 16, (3, 3), 16, dilations=[2, 2]),
    "depthwise x2": lambda: conv((1, 16, 12, 12), 32, (3, 3), 16),
    "depthwise x8 of 1": lambda: conv((1, 1, 16, 16), 8, (3, 3), 1),
    "depthwise 13": lambda: conv((1, 13, 9, 9), 13, (3, 3), 13),
    "depthwise whole": lambda: one("Conv", [(1, 32, 6, 6)], {"w": floats(32, 1, 6, 6)}, 32 * 36, group=32),
    "transposed 2x2 s2": lambda: transposed((1, 16, 8, 8), 8, (2, 2), strides=[2, 2]),
    "transposed 3x3 s2": lambda: transposed(
        (1, 16, 8, 8), 8, (3, 3), strides=[2, 2], pads=[1, 1, 1, 1], output_padding=[1, 1]
    ),
    "transposed 4x4 s2": lambda: transposed((1, 8, 8, 8), 8, (4, 4), strides=[2, 2], pads=[1, 1, 1, 1]),
    "transposed 3x3": lambda: transposed((1, 8, 8, 8), 8, (3, 3), pads=[1, 1, 1, 1]),
    "transposed 1-D s4": lambda: transposed((1, 16, 20), 8, (8,), strides=[4], pads=[2, 2]),
    "transposed depthwise": lambda: transposed((1, 16, 8, 8), 16, (3, 3), 16, strides=[2, 2]),
    "transposed 3-D": lambda: transposed((1, 4, 4, 6, 6), 4, (2, 2, 2), strides=[2, 2, 2]),
    "weights of activations": lambda: one("Conv", [(1, 8, 10, 10), (12, 8, 3, 3)], {}, 8 * 8 * 12 * 72),
    "pointwise of activations": lambda: one("Conv", [(1, 8, 10, 10), (12, 8, 1, 1)], {}, 100 * 12 * 8),
    "depthwise of activations": lambda: one("Conv", [(1, 8, 10, 10), (8, 1, 3, 3)], {}, 64 * 8 * 9, group=8),
    "1-D of activations": lambda: one("Conv", [(1, 4, 60), (6, 4, 5)], {}, 56 * 6 * 20),
    "transposed of activations": lambda: one(
        "ConvTranspose", [(1, 8, 6, 6), (8, 4, 2, 2)], {}, 8 * 36 * 16, strides=[2, 2]
    ),
    "product 24x32x24": lambda: products((24, 32), (32, 24)),
    "product of one row": lambda: products((1, 64), (64, 48)),
    "product of one column": lambda: products((48, 64), (64, 1)),
    "product of vectors": lambda: products((8, 1, 64), (8, 64, 1)),
    "product outer": lambda: products((40, 1), (1, 40)),
    "product odd": lambda: products((3, 7, 13), (3, 13, 5)),
    "product batch": lambda: products((4, 24, 32), (4, 32, 24)),
    "product broadcast left": lambda: products((24, 32), (4, 32, 16)),
    "product broadcast right": lambda: products((4, 24, 32), (1, 32, 16)),
    "product of many axes": lambda: products((2, 1, 2, 16, 32), (1, 2, 2, 32, 16)),
    "Gemm transB": lambda: one("Gemm", [(24, 32), (24, 32)], {}, 24 * 32 * 24, transB=1),
    "Gemm transA": lambda: one("Gemm", [(32, 24), (32, 24)], {}, 24 * 32 * 24, transA=1),
    "Gemm transA transB": lambda: one("Gemm", [(32, 24), (24, 32)], {}, 24 * 32 * 24, transA=1, transB=1),
    "Gemm of three": lambda: one("Gemm", [(16, 32), (32, 24), (24,)], {}, 16 * 32 * 24, alpha=0.5, beta=2.0),
    "einsum bik,bjk->bij": lambda: einsum("bik,bjk->bij", (4, 24, 32), (4, 24, 32)),
    "einsum bhid,bhjd->bhij": lambda: einsum("bhid,bhjd->bhij", (1, 4, 16, 8), (1, 4, 16, 8)),
    "einsum bihd,bjhd->bhij": lambda: einsum("bihd,bjhd->bhij", (1, 16, 4, 8), (1, 16, 4, 8)),
    "einsum nct,ncp->ntp": lambda: einsum("nct,ncp->ntp", (1, 16, 20), (1, 16, 20)),
    "einsum ncw,vw->ncv": lambda: einsum("nctv,vw->nctw", (1, 8, 10, 17), (17, 17)),
    "einsum i,j->ij": lambda: einsum("i,j->ij", (40,), (40,)),
    "einsum bij,bjk,bkl->bil": lambda: einsum(
        "bij,bjk,bkl->bil", (2, 8, 12), (2, 12, 10), (2, 10, 6), macs=2 * (8 * 12 * 10 + 8 * 10 * 6)
    ),
    "einsum ij->": lambda: einsum("ij,ij->i", (30, 40), (30, 40)),
    "einsum nkctv,kvw->nctw": lambda: einsum("nkctv,kvw->nctw", (1, 3, 6, 8, 17), (3, 17, 17)),
    "sum of products": lambda: (
        model(
            [
                helper.make_node("Mul", ["a", "b"], ["m"], name="mul"),
                helper.make_node("ReduceSum", ["m", "axes"], ["y0"], name="sum", keepdims=0),
            ],
            [tensor(n, (24, 64)) for n in "ab"],
            [tensor("y0", None)],
            {"axes": np.array([1])},
        ),
        24 * 64,
    ),
    "attention": attention,
    "attention 10 x 1 x 64": lambda: attention(10, 1, 64),
    "attention 49 x 3 x 8": lambda: attention(49, 3, 8),
    "Attention-23": lambda: one("Attention", [(1, 4, 32, 16)] * 3, {}, 2 * 4 * 32 * 32 * 16, opset=23),
    "Attention-23 GQA": lambda: one(
        "Attention",
        [(1, 4, 32, 16), (1, 2, 32, 16), (1, 2, 32, 16)],
        {},
        2 * 4 * 32 * 32 * 16,
        opset=23,
        is_causal=1,
    ),
    "MultiHeadAttention": lambda: one(
        "MultiHeadAttention", [(1, 32, 64)] * 3, {}, 2 * 32 * 32 * 64, domain="com.microsoft", num_heads=4
    ),
    "lstm 16x32x32": lambda: recurrent("LSTM", 4, 16, 32, 32),
    "lstm 20x3x10": lambda: recurrent("LSTM", 4, 20, 3, 10),
    "lstm both ways": lambda: recurrent("LSTM", 4, 10, 16, 24, 2),
    "gru 16x32x32": lambda: recurrent("GRU", 3, 16, 32, 32),
    "gru reset after": lambda: recurrent("GRU", 3, 16, 16, 20, linear_before_reset=1),
    "rnn 16x32x32": lambda: recurrent("RNN", 1, 16, 32, 32),
    "dft 64": lambda: dft(64, 8),
    "dft 60": lambda: dft(60, 4),
    "dft 62": lambda: dft(62, 4),
    "dft 49 two-sided": lambda: dft(49, 4, 0),
    "dft 32 complex": lambda: dft(32, 4, 0, 2),
    "dft 32 inverse": lambda: dft(32, 4, 0, 2, 1),
    "stft 64/32": lambda: stft(64, 32, 256),
}
"""By name: a network and its MACs."""

_INDICES = np.random.default_rng(3).integers(0, 16, (20, 1))

ELEMENTS: dict[str, Callable[[], Kind]] = {
    "relu": lambda: _one_element("Relu"),
    "sigmoid": lambda: _one_element("Sigmoid"),
    "tanh": lambda: _one_element("Tanh"),
    "gelu": lambda: _one_element("Gelu"),
    "gelu tanh": lambda: _one_element("Gelu", approximate="tanh"),
    "mish": lambda: _one_element("Mish"),
    "softplus": lambda: _one_element("Softplus"),
    "hardswish": lambda: _one_element("HardSwish"),
    "pow 2.5": lambda: _one_element("Pow", constants={"e": np.array(2.5, np.float32)}),
    "log": lambda: _one_element("Log"),
    "sin": lambda: _one_element("Sin"),
    "softmax last": lambda: _one_element("Softmax", (24, 40), axis=-1),
    "softmax channels": lambda: _one_element("Softmax", axis=1),
    "logsoftmax": lambda: _one_element("LogSoftmax", (24, 40), axis=-1),
    "layer norm": lambda: _one_element("LayerNormalization", (24, 48), {"s": floats(48), "b": floats(48)}),
    "rms norm": lambda: one("RMSNormalization", [(24, 48)], {"s": floats(48)}, 24 * 48, opset=23),
    "instance norm": lambda: _one_element(
        "InstanceNormalization", constants={"s": floats(16), "b": floats(16)}
    ),
    "group norm": lambda: one(
        "GroupNormalization",
        [(1, 16, 12, 12)],
        {"s": floats(16), "b": floats(16)},
        2304,
        opset=21,
        num_groups=4,
    ),
    "lp norm": lambda: _one_element("LpNormalization", (24, 48), axis=-1),
    "lrn": lambda: _one_element("LRN", size=5),
    "batch norm": lambda: _one_element(
        "BatchNormalization",
        constants={"s": floats(16), "b": floats(16), "m": floats(16), "v": np.abs(floats(16)) + 1},
    ),
    "max pool 2x2": lambda: _one_element("MaxPool", kernel_shape=[2, 2], strides=[2, 2]),
    "max pool 3x3 s2": lambda: _one_element("MaxPool", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4),
    "average pool 3x3": lambda: _one_element("AveragePool", kernel_shape=[3, 3], pads=[1] * 4),
    "global average": lambda: _one_element("GlobalAveragePool"),
    "global max": lambda: _one_element("GlobalMaxPool"),
    "lp pool": lambda: _one_element("LpPool", kernel_shape=[2, 2], strides=[2, 2]),
    "mean of last": lambda: _one_element("ReduceMean", (24, 48), {"axes": np.array([-1])}),
    "mean of first": lambda: _one_element("ReduceMean", (24, 48), {"axes": np.array([0])}),
    "sum of middle": lambda: _one_element("ReduceSum", (8, 24, 16), {"axes": np.array([1])}),
    "l2 of last": lambda: _one_element("ReduceL2", (24, 48), {"axes": np.array([-1])}),
    "log sum exp": lambda: _one_element("ReduceLogSumExp", (24, 48), {"axes": np.array([-1])}),
    "argmax": lambda: _one_element("ArgMax", (24, 48), axis=-1),
    "argmax channels": lambda: _one_element("ArgMax", axis=1),
    "resize nearest x2": lambda: _one_element(
        "Resize", (1, 8, 8, 8), {"?r": np.zeros(0), "s": np.array([1, 1, 2, 2], np.float32)}, mode="nearest"
    ),
    "resize linear x2": lambda: _one_element(
        "Resize", (1, 8, 8, 8), {"?r": np.zeros(0), "s": np.array([1, 1, 2, 2], np.float32)}, mode="linear"
    ),
    "resize cubic x2": lambda: _one_element(
        "Resize", (1, 8, 8, 8), {"?r": np.zeros(0), "s": np.array([1, 1, 2, 2], np.float32)}, mode="cubic"
    ),
    "transpose": lambda: _one_element("Transpose", (1, 16, 12, 12), perm=[0, 2, 3, 1]),
    "pixel shuffle": lambda: _one_element("DepthToSpace", (1, 16, 8, 8), blocksize=2),
    "pad": lambda: _one_element("Pad", (1, 8, 8, 8), {"p": np.array([0, 0, 1, 1, 0, 0, 1, 1])}),
    "pad reflect": lambda: _one_element(
        "Pad", (1, 8, 8, 8), {"p": np.array([0, 0, 2, 2, 0, 0, 2, 2])}, mode="reflect"
    ),
    "tile": lambda: _one_element("Tile", (8, 16), {"r": np.array([3, 2])}),
    "gather": lambda: _one_element("Gather", (24, 16), {"i": _INDICES[:, 0]}),
    "gather elements": lambda: _one_element("GatherElements", (24, 16), {"i": np.tile(_INDICES, (1, 16))}),
    "scatter nd": lambda: one(
        "ScatterND", [(24, 16)], {"i": np.arange(12)[:, None] * 2, "u": floats(12, 16)}, 24 * 16
    ),
    "scatter elements": lambda: one(
        "ScatterElements",
        [(24, 16)],
        {"i": np.tile(_INDICES[:8], (1, 16)), "u": floats(8, 16)},
        24 * 16,
        reduction="add",
    ),
    "cumsum last": lambda: _one_element("CumSum", (24, 48), {"a": np.array(1)}),
    "cumsum first": lambda: _one_element("CumSum", (24, 48), {"a": np.array(0)}),
    "top k": lambda: _one_element("TopK", (4, 64), {"k": np.array([5])}, outputs=2),
    "grid sample": lambda: one("GridSample", [(1, 4, 10, 10), (1, 8, 8, 2)], {}, 4 * 64),
    "add row": lambda: _one_element("Add", (24, 48), {"c": floats(48)}),
    "add channel": lambda: _one_element("Add", constants={"c": floats(16, 1, 1)}),
    "mul two": lambda: one("Mul", [(1, 16, 12, 12), (1, 16, 1, 1)], {}, 2304),
    "div": lambda: one("Div", [(24, 48), (24, 1)], {}, 24 * 48),
    "where": lambda: _one_element(
        "Clip", (24, 48), {"lo": np.array(-0.5, np.float32), "hi": np.array(0.5, np.float32)}
    ),
    "prelu": lambda: _one_element("PRelu", constants={"c": floats(16, 1, 1)}),
    "concat": lambda: one("Concat", [(1, 8, 8, 8), (1, 4, 8, 8)], {}, 12 * 64, axis=1),
    "split": lambda: _one_element("Split", (1, 12, 8, 8), outputs=3, axis=1, num_outputs=3),
    "slice": lambda: _one_element(
        "Slice",
        (24, 48),
        {"b": np.array([1, 2]), "e": np.array([23, 40]), "a": np.array([0, 1]), "s": np.array([2, 3])},
    ),
    "col2im": lambda: one("Col2Im", [(1, 36, 25)], {"i": np.array([6, 6]), "b": np.array([2, 2])}, 900),
    "det": lambda: one("Det", [(4, 4, 4)], {}, 4 * 16),
    "mel": lambda: _chain(
        [("Mul", ["x"], {}), ("MatMul", [floats(65, 20)], {}), ("Log", [], {})], (8, 65), 8 * 65 * 20
    ),
    "resize then conv": lambda: _chain(
        [
            ("Resize", ["", np.array([1, 1, 2, 2], np.float32)], {"mode": "linear"}),
            ("Conv", [floats(8, 8, 3, 3)], {"pads": [1] * 4}),
        ],
        (1, 8, 8, 8),
        256 * 8 * 72,
    ),
    "exp then sum": lambda: _chain([("Exp", [], {}), ("ReduceSum", [np.array([1])], {})], (24, 48), 24 * 48),
    "exp then max pool": lambda: _chain(
        [("Exp", [], {}), ("MaxPool", [], {"kernel_shape": [3, 3], "pads": [1] * 4})], (1, 16, 12, 12), 2304
    ),
    "resize then max pool": lambda: _chain(
        [
            ("Resize", ["", np.array([1, 1, 2, 2], np.float32)], {"mode": "linear"}),
            ("MaxPool", [], {"kernel_shape": [3, 3], "pads": [1] * 4}),
        ],
        (1, 8, 8, 8),
        2048,
    ),
    "tanh then instance norm": lambda: _chain(
        [("Tanh", [], {}), ("InstanceNormalization", [floats(16), floats(16)], {})], (1, 16, 12, 12), 2304
    ),
    "exp then transposed": lambda: _chain(
        [("Exp", [], {}), ("ConvTranspose", [floats(8, 4, 2, 2)], {"strides": [2, 2]})],
        (1, 8, 8, 8),
        512 * 16,
    ),
}
"""By name: a network and its elements."""
