"""Random ONNX networks of float32, and the same with QuantizeLinear and DequantizeLinear between their
layers.

What is quantised, to which type, by tensor or by channel, is drawn as well: some tensors stay float, so that
integer layers have float neighbours. Ranges are those of the network's own numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from sizes import larger, room

Array = np.ndarray
Shape = tuple[int, ...]
MAX_ELEMENTS, MAX_PRODUCTS = 3000, 400_000
INTEGERS = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767), "uint16": (0, 65535)}
HEAVY = ("Conv", "ConvTranspose", "Gemm", "MatMul")


class Network:
    """Adds random nodes; `rng` decides everything."""

    def __init__(self, rng: np.random.Generator, room: int = 1) -> None:
        self.rng, self.room = rng, room
        self.nodes: list[onnx.NodeProto] = []
        self.constants: dict[str, Array] = {}
        self.shapes: dict[str, Shape] = {}
        self.values: list[str] = []
        self.products = 0

    def number(self, low: int, high: int) -> int:
        return int(self.rng.integers(low, high, endpoint=True))

    def pick(self, *options: Any) -> Any:
        return options[self.number(0, len(options) - 1)]

    def constant(self, data: object, dtype: str = "int64") -> str:
        self.constants[f"c{len(self.constants)}"] = np.asarray(data, dtype)
        return f"c{len(self.constants) - 1}"

    def floats(self, *shape: int, spread: float = 1, middle: float = 0) -> str:
        return self.constant(self.rng.normal(middle, spread, shape), "float32")

    def weights(self, *shape: int, terms: int) -> str:
        by_channel = np.exp(self.rng.normal(0, 0.5, (shape[0], *[1] * (len(shape) - 1))))
        return self.constant(self.rng.normal(0, 1, shape) * by_channel / np.sqrt(max(terms, 1)), "float32")

    def affordable(self, outputs: int, terms: int) -> bool:
        many, products = MAX_ELEMENTS * self.room, self.products + outputs * terms
        if not 0 < outputs <= many or products > MAX_PRODUCTS * self.room:
            return False
        self.products += outputs * terms
        return True

    def add(self, kind: str, inputs: list[str], *shapes: Shape, **attributes: Any) -> str | None:
        """A node whose results have these shapes; None where they are too large or empty."""
        if any(not 0 < np.prod(s) <= MAX_ELEMENTS * self.room for s in shapes):
            return None
        names = [f"v{len(self.shapes) + k}" for k in range(len(shapes))]
        self.nodes.append(helper.make_node(kind, inputs, names, **attributes))
        self.shapes.update(zip(names, shapes, strict=True))
        self.values += names
        return names[0]


Layer = Callable[[Network, str, Shape], "str | None"]
IMAGE: list[Layer] = []
ANY: list[Layer] = []


def image(layer: Layer) -> Layer:
    IMAGE.append(layer)
    return layer


def anywhere(layer: Layer) -> Layer:
    ANY.append(layer)
    return layer


def _window(n: Network, size: Shape, widest: int = 5, dilated: bool = True) -> dict[str, list[int]]:
    rank = len(size)
    kernel = [n.pick(1, 3, n.number(1, widest)) for _ in size]
    strides = [n.pick(1, 1, 1, 2, 3) for _ in size]
    dilations = [n.pick(1, 1, 1, 2) for _ in size] if dilated else [1] * rank
    reach = [(k - 1) * d for k, d in zip(kernel, dilations, strict=True)]
    pads = n.pick(
        [r // 2 for r in reach] * 2,
        [0] * 2 * rank,
        [n.number(0, min(2, k - 1)) for k in kernel] + [n.number(0, min(2, k - 1)) for k in kernel],
    )
    found = {"kernel_shape": kernel, "strides": strides, "pads": pads}
    return found | ({"dilations": dilations} if dilated else {})


def _size(
    size: Shape,
    kernel_shape: list[int],
    strides: list[int],
    pads: list[int],
    dilations: list[int] | None = None,
    up: int = 0,
) -> Shape:
    rank = len(size)
    return tuple(
        (
            d
            + pads[k]
            + pads[rank + k]
            - (kernel_shape[k] - 1) * (dilations[k] if dilations else 1)
            - 1
            + up * (strides[k] - 1)
        )
        // strides[k]
        + 1
        for k, d in enumerate(size)
    )


@image
def convolution(n: Network, x: str, shape: Shape) -> str | None:
    window = _window(n, shape[2:])
    size = _size(shape[2:], **window)
    inside = shape[1]
    groups = n.pick(1, 1, inside, *(g for g in range(1, inside + 1) if inside % g == 0))
    outside = groups * n.pick(1, 1, 2, 3) if groups > 1 else n.pick(n.number(1, 12), 8, 16, n.number(13, 40))
    terms = inside // groups * int(np.prod(window["kernel_shape"]))
    if min(size) < 1 or not n.affordable(shape[0] * outside * int(np.prod(size)), terms):
        return None
    inputs = [x, n.weights(outside, inside // groups, *window["kernel_shape"], terms=terms)]
    inputs += [n.floats(outside, spread=0.4)] if n.number(0, 5) else []
    return n.add("Conv", inputs, (shape[0], outside, *size), group=groups, **window)


@image
def transposed(n: Network, x: str, shape: Shape) -> str | None:
    rank, inside = len(shape) - 2, shape[1]
    kernel, strides = [n.number(1, 4) for _ in range(rank)], [n.number(1, 3) for _ in range(rank)]
    pads = [n.number(0, min(1, k - 1)) for k in kernel * 2]
    extra = [n.number(0, s - 1) if n.number(0, 2) == 0 else 0 for s in strides]
    size = tuple(
        (d - 1) * s + k - pads[i] - pads[rank + i] + e
        for i, (d, s, k, e) in enumerate(zip(shape[2:], strides, kernel, extra, strict=True))
    )
    groups = n.pick(1, 1, *(g for g in range(1, inside + 1) if inside % g == 0))
    each = n.number(1, 8 if groups == 1 else 2)
    terms = inside // groups * int(np.prod(kernel))
    if min(size) < 1 or not n.affordable(shape[0] * each * groups * int(np.prod(size)), terms):
        return None
    inputs = [x, n.weights(inside, each, *kernel, terms=terms)] + (
        [n.floats(each * groups, spread=0.3)] if n.number(0, 2) else []
    )
    return n.add(
        "ConvTranspose",
        inputs,
        (shape[0], each * groups, *size),
        group=groups,
        kernel_shape=kernel,
        strides=strides,
        pads=pads,
        output_padding=extra,
    )


@image
def pool(n: Network, x: str, shape: Shape) -> str | None:
    window = _window(n, shape[2:], 4, dilated=False)
    size = _size(shape[2:], **window)
    if min(size) < 1:
        return None
    kind = n.pick("MaxPool", "AveragePool")
    more = {"count_include_pad": n.number(0, 1)} if kind == "AveragePool" else {}
    return n.add(kind, [x], (*shape[:2], *size), **window, **more)


@image
def gate(n: Network, x: str, shape: Shape) -> str | None:
    """Squeeze and excite."""
    ones = (1,) * (len(shape) - 2)
    few = n.number(1, 6)
    y = n.add("GlobalAveragePool", [x], (*shape[:2], *ones))
    y = n.add("Conv", [y, n.weights(few, shape[1], *ones, terms=shape[1])], (shape[0], few, *ones))
    y = n.add("Relu", [y], (shape[0], few, *ones))
    y = n.add(
        "Conv", [y, n.weights(shape[1], few, *ones, terms=few), n.floats(shape[1])], (*shape[:2], *ones)
    )
    y = n.add(n.pick("Sigmoid", "HardSigmoid"), [y], (*shape[:2], *ones))
    return n.add("Mul", n.pick([x, y], [y, x]), shape)


@image
def resize(n: Network, x: str, shape: Shape) -> str | None:
    factors = [n.pick(1, 2, 2, 3, 0.5) for _ in shape[2:]]
    size = tuple(int(d * f) for d, f in zip(shape[2:], factors, strict=True))
    mode, place = (
        n.pick("nearest", "linear"),
        n.pick("asymmetric", "half_pixel", "align_corners", "pytorch_half_pixel"),
    )
    more = {"nearest_mode": n.pick("floor", "round_prefer_floor")} if mode == "nearest" else {}
    return (
        n.add(
            "Resize",
            [x, "", "", n.constant((*shape[:2], *size))],
            (*shape[:2], *size),
            mode=mode,
            coordinate_transformation_mode=place,
            **more,
        )
        if min(size) > 0
        else None
    )


@image
def normalised(n: Network, x: str, shape: Shape) -> str | None:
    c = shape[1]
    if n.number(0, 2):
        positive = n.constant(n.rng.uniform(0.5, 2, c), "float32")
        return n.add("BatchNormalization", [x, n.floats(c), n.floats(c), n.floats(c), positive], shape)
    return (
        n.add("InstanceNormalization", [x, n.floats(c), n.floats(c)], shape)
        if np.prod(shape[2:]) > 3
        else None
    )


@image
def rearranged(n: Network, x: str, shape: Shape) -> str | None:
    if len(shape) == 4 and shape[1] % 4 == 0:
        return n.add(
            "DepthToSpace",
            [x],
            (shape[0], shape[1] // 4, 2 * shape[2], 2 * shape[3]),
            blocksize=2,
            mode=n.pick("DCR", "CRD"),
        )
    groups = [g for g in range(2, shape[1]) if shape[1] % g == 0]
    if not groups:
        return None
    g = n.pick(*groups)  # a shuffle of channels
    five = (shape[0], g, shape[1] // g, *shape[2:])
    y = n.add("Reshape", [x, n.constant(five)], five)
    swapped = (five[0], five[2], five[1], *five[3:])
    y = n.add("Transpose", [y], swapped, perm=[0, 2, 1, *range(3, len(five))])
    return n.add("Reshape", [y, n.constant(shape)], shape)


@anywhere
def product(n: Network, x: str, shape: Shape) -> str | None:
    """With weights, or with another tensor."""
    if len(shape) > 2 and n.number(0, 2) == 0:
        swapped = (*shape[:-2], shape[-1], shape[-2])
        y = n.add("Transpose", [x], swapped, perm=[*range(len(shape) - 2), len(shape) - 1, len(shape) - 2])
        fits = n.affordable(int(np.prod(shape)) // shape[-1] * shape[-2], shape[-1])
        return n.add("MatMul", [x, y], (*shape[:-1], shape[-2])) if fits else None
    outside = n.pick(n.number(1, 12), 16, 10)
    if not n.affordable(int(np.prod(shape[:-1])) * outside, shape[-1]):
        return None
    if len(shape) == 2 and n.number(0, 1):
        flipped = n.number(0, 1)
        w = n.weights(*((outside, shape[1]) if flipped else (shape[1], outside)), terms=shape[1])
        return n.add("Gemm", [x, w, n.floats(outside)], (shape[0], outside), transB=flipped)
    y = n.add("MatMul", [x, n.weights(shape[-1], outside, terms=shape[-1])], (*shape[:-1], outside))
    return n.add("Add", [y, n.floats(outside)], (*shape[:-1], outside)) if y and n.number(0, 1) else y


@anywhere
def pair(n: Network, x: str, shape: Shape) -> str | None:
    same = [v for v in n.values if n.shapes[v] == shape]
    other = n.pick(*same)
    if n.number(0, 2) == 0:
        other = n.floats(
            *n.pick(shape, (shape[0], shape[1], *(1,) * (len(shape) - 2)), (1,) * len(shape), shape[-1:])
        )
    return n.add(n.pick("Add", "Add", "Sub", "Mul", "Max"), n.pick([x, other], [other, x]), shape)


@anywhere
def function(n: Network, x: str, shape: Shape) -> str | None:
    kind = n.pick(
        "Relu",
        "Relu",
        "LeakyRelu",
        "Sigmoid",
        "Tanh",
        "HardSwish",
        "HardSigmoid",
        "Elu",
        "Softplus",
        "Gelu",
        "Abs",
        "Clip",
        "PRelu",
        "Softmax",
        "Sqrt",
        "Erf",
    )
    if kind == "Clip":
        return n.add(
            kind, [x, n.constant(n.pick(-1, 0), "float32"), n.constant(n.pick(1, 6), "float32")], shape
        )
    if kind == "PRelu":
        return n.add(
            kind, [x, n.floats(*n.pick((shape[1], *(1,) * (len(shape) - 2)), shape[1:]), spread=0.3)], shape
        )
    if kind == "Sqrt":
        y = n.add("Abs", [x], shape)
        return n.add(kind, [y], shape)
    more = {"LeakyRelu": {"alpha": 0.1}, "Softmax": {"axis": n.pick(-1, 1)}}
    return n.add(kind, [x], shape, **more.get(kind, {}))


@anywhere
def joined(n: Network, x: str, shape: Shape) -> str | None:
    axis = n.number(min(1, len(shape) - 1), len(shape) - 1)
    same = [
        v
        for v in n.values
        if len(n.shapes[v]) == len(shape)
        and all(a == b for k, (a, b) in enumerate(zip(n.shapes[v], shape, strict=True)) if k != axis)
    ]
    names = [x, *(n.pick(*same) for _ in range(n.number(1, 2)))]
    names = names if n.number(0, 1) else names[::-1]
    size = sum(n.shapes[v][axis] for v in names)
    return n.add(
        "Concat", names, (*shape[:axis], size, *shape[axis + 1 :]), axis=n.pick(axis, axis - len(shape))
    )


@anywhere
def sliced(n: Network, x: str, shape: Shape) -> str | None:
    axis = n.number(0, len(shape) - 1)
    if shape[axis] % 2 == 0 and n.number(0, 1):
        half = (*shape[:axis], shape[axis] // 2, *shape[axis + 1 :])
        return n.add("Split", [x], half, half, axis=axis, num_outputs=2)
    begin, step = n.number(0, shape[axis] - 1), n.pick(1, 1, 2)
    end = n.number(begin + 1, shape[axis])
    size = -(-(end - begin) // step)
    if n.number(0, 4) == 0:
        begin, end, step, size = -1, -(2**40), -1, shape[axis]
    return n.add(
        "Slice",
        [x, *(n.constant([v]) for v in (begin, end, axis, step))],
        (*shape[:axis], size, *shape[axis + 1 :]),
    )


@anywhere
def padded(n: Network, x: str, shape: Shape) -> str | None:
    pads = [0 if k % len(shape) == 0 else n.number(0, 2) for k in range(2 * len(shape))]
    mode = n.pick("constant", "edge", "reflect") if min((2, *shape[1:])) > 2 else n.pick("constant", "edge")
    size = tuple(d + pads[k] + pads[len(shape) + k] for k, d in enumerate(shape))
    return n.add("Pad", [x, n.constant(pads)], size, mode=mode)


@anywhere
def moved(n: Network, x: str, shape: Shape) -> str | None:
    order = [int(k) for k in n.rng.permutation(len(shape))]
    return n.add("Transpose", [x], tuple(shape[k] for k in order), perm=order)


@anywhere
def reshaped(n: Network, x: str, shape: Shape) -> str | None:
    size = int(np.prod(shape))
    divisors = [d for d in range(1, size + 1) if size % d == 0]
    a = n.pick(*divisors)
    b = n.pick(*(d for d in divisors if size // a % d == 0))
    wanted = n.pick(
        (shape[0], size // shape[0]), (a, size // a), (1, a, b, size // a // b), (1, a, size // a)
    )
    return n.add("Reshape", [x, n.constant(wanted)], wanted)


@anywhere
def reduced(n: Network, x: str, shape: Shape) -> str | None:
    axes = sorted({n.number(0, len(shape) - 1) for _ in range(2)})
    keep = n.number(0, 1)
    size = tuple(1 if k in axes else d for k, d in enumerate(shape) if keep or k not in axes)
    if len(size) < 2:
        return None
    return n.add(
        n.pick("ReduceMean", "ReduceMean", "ReduceSum", "ReduceMax", "ReduceMin", "ReduceL2"),
        [x, n.constant(axes)],
        size,
        keepdims=keep,
    )


@anywhere
def layer_norm(n: Network, x: str, shape: Shape) -> str | None:
    c = shape[-1]
    return n.add("LayerNormalization", [x, n.floats(c), n.floats(c)], shape, axis=-1) if c > 3 else None


def recurrent(n: Network, x: str, shape: Shape) -> str | None:
    """Over [steps, batch, inputs]."""
    if len(shape) != 3:
        return None
    steps, batch, inside = shape
    kind, gates = n.pick(("LSTM", 4), ("GRU", 3), ("RNN", 1))
    units, direction = n.pick(n.number(1, 9), 8, 12), n.pick("forward", "reverse", "bidirectional")
    sides = 2 if direction == "bidirectional" else 1
    if not n.affordable(steps * batch * sides * units, gates * (inside + units)):
        return None
    inputs = [
        x,
        n.floats(sides, gates * units, inside, spread=inside**-0.5),
        n.floats(sides, gates * units, units, spread=units**-0.5),
    ]
    inputs += [n.floats(sides, 2 * gates * units, spread=0.3)] if n.number(0, 1) else []
    more = {"linear_before_reset": n.number(0, 1)} if kind == "GRU" else {}
    y = (steps, sides, batch, units)
    return n.add(kind, inputs, y, hidden_size=units, direction=direction, **more)


def attention(n: Network, x: str, shape: Shape) -> str | None:
    """Of one head over [batch, steps, inputs]."""
    if len(shape) != 3:
        return None
    batch, steps, inside = shape
    width = n.pick(4, 8, n.number(1, 9))
    if not n.affordable(batch * steps * (3 * inside + 2 * steps), width):
        return None
    weights = [n.floats(inside, width, spread=inside**-0.5) for _ in range(3)]
    parts = [n.add("MatMul", [x, w], (batch, steps, width)) for w in weights]
    if None in parts:
        return None
    q, k, v = (str(p) for p in parts)
    turned = n.add("Transpose", [k], (batch, width, steps), perm=[0, 2, 1])
    scores = n.add("MatMul", [q, str(turned)], (batch, steps, steps))
    if scores is None:
        return None
    by = n.constant(width**-0.5 if n.number(0, 1) else width**0.5, "float32")
    scores = n.add("Mul" if n.constants[by] < 1 else "Div", [scores, by], (batch, steps, steps))
    shares = n.add("Softmax", [str(scores)], (batch, steps, steps), axis=-1)
    return n.add("MatMul", [str(shares), v], (batch, steps, width))


@anywhere
def chosen(n: Network, x: str, shape: Shape) -> str | None:
    mask = n.constant(n.rng.random(n.pick(shape, shape[-1:])) < 0.6, "bool")
    return n.add("Where", [mask, x, n.floats(*n.pick(shape[-1:], (1,)))], shape)


def float_network(rng: np.random.Generator, times: int = 1) -> Network:
    n = Network(rng, times)
    for _ in range(n.pick(1, 1, 2)):
        batch, name = n.pick(1, 1, 1, 2), f"x{len(n.values)}"
        n.shapes[name] = n.pick(
            (batch, n.pick(n.number(1, 9), 8, 16), n.number(3, 12), n.number(3, 12)),
            (batch, n.number(1, 12), n.number(6, 40)),
            (batch, n.number(2, 60)),
            (1, n.number(1, 4), n.number(2, 5), n.number(2, 6), n.number(2, 6)),
        )
        if times > 1:
            n.shapes[name] = larger(n.shapes[name], 1)
        n.values.append(name)
    for _ in range(n.number(2, 9)):
        for _ in range(4):  # some layers do not fit what they are given
            x = n.values[-1] if n.number(0, 3) else n.pick(*n.values)
            shape = n.shapes[x]
            layers = IMAGE if 3 <= len(shape) <= 5 and n.number(0, 2) else ANY
            if len(shape) == 3 and n.number(0, 2) == 0:
                layers = [recurrent, attention]
            if n.pick(*layers)(n, x, shape) is not None:
                break
    return n


def _model(
    nodes: list[onnx.NodeProto],
    constants: dict[str, Array],
    inputs: dict[str, Shape],
    outputs: dict[str, Shape],
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "random",
        *(
            [helper.make_tensor_value_info(k, TensorProto.FLOAT, v) for k, v in ports.items()]
            for ports in (inputs, outputs)
        ),
        [numpy_helper.from_array(v, k) for k, v in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def runtime(model: onnx.ModelProto, fed: dict[str, Array]) -> list[Array]:
    """The outputs of ONNX Runtime, each node as the standard has it: its optimiser is off."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return list(
        ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(
            None, fed
        )
    )


def in_doubles(model: onnx.ModelProto, fed: dict[str, Array]) -> list[Array] | None:
    """The outputs by the standard's reference evaluator with all floats in 64 bits: hardly a number lies so
    close to the edge between two steps that this tips it. None where it fails (pools with padding).
    """
    wide = onnx.ModelProto.FromString(model.SerializeToString())
    for tensor in wide.graph.initializer:
        if tensor.data_type in (TensorProto.FLOAT, TensorProto.FLOAT16):
            tensor.CopyFrom(
                numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name)
            )
    for port in [*wide.graph.input, *wide.graph.output]:
        port.type.tensor_type.elem_type = TensorProto.DOUBLE
    try:
        found = ReferenceEvaluator(wide).run(None, {k: v.astype(np.float64) for k, v in fed.items()})
    except (RuntimeError, TypeError, ValueError, IndexError):
        return None
    return [np.asarray(v, np.float32) for v in found]


class Quantiser:
    """Puts pairs of QuantizeLinear and DequantizeLinear behind tensors, as `rng` decides."""

    def __init__(self, n: Network, ranges: dict[str, Array]) -> None:
        self.n, self.ranges = n, ranges
        self.constants = dict(n.constants)
        self.kind = n.pick("int8", "int8", "uint8", "int16", "uint16")
        self.nodes: list[onnx.NodeProto] = []
        self.scales: dict[str, tuple[float, int]] = {}
        """And bits of tensors that are quantised, by the names of what reads them."""

    def constant(self, data: Array) -> str:
        self.constants[f"q{len(self.constants)}"] = data
        return f"q{len(self.constants) - 1}"

    def pair(self, name: str, real: str) -> None:
        """name becomes the quantised values of `real`."""
        kind = self.kind if self.n.number(0, 9) else self.n.pick(*INTEGERS)
        low, high = INTEGERS[kind]
        values = self.ranges[name]
        least, most = min(float(values.min()), 0.0), max(float(values.max()), 1e-3)
        if kind.startswith("int") and self.n.number(0, 1):
            most = max(-least, most)
            least = -most
        squeeze = self.n.pick(1, 1, 0.8)
        scale = np.float32((most - least) / (high - low) * squeeze)
        zero = np.asarray(np.clip(np.round(low - least * squeeze / scale), low, high), kind)
        names = [self.constant(np.asarray(scale)), self.constant(zero)]
        self.nodes.append(helper.make_node("QuantizeLinear", [real, *names], [f"{name}_q"]))
        self.nodes.append(helper.make_node("DequantizeLinear", [f"{name}_q", *names], [name]))
        self.scales[name] = float(scale), 16 if kind.endswith("16") else 8

    def weights(self, node: onnx.NodeProto) -> list[str]:
        """The inputs of a heavy node, its weights and its bias of integers."""
        n, inputs = self.n, list(node.input)
        if inputs[1] not in n.constants or not n.number(0, 9):
            return inputs
        data = n.constants[inputs[1]]
        flipped = any(a.name == "transB" and a.i for a in node.attribute)
        axis = 0 if node.op_type == "Conv" or flipped else 1
        groups = next((a.i for a in node.attribute if a.name == "group"), 1)
        each = n.number(0, 1) and not (node.op_type == "ConvTranspose" and groups > 1) and data.ndim >= 2
        others = tuple(k for k in range(data.ndim) if k != axis)
        scale = np.maximum(np.abs(data).max(axis=others if each else None) / 127, 1e-6).astype(np.float32)
        along = scale.reshape([-1 if k == axis else 1 for k in range(data.ndim)]) if each else scale
        whole = np.clip(np.round(data / along), -127, 127).astype(np.int8)
        names = [self.constant(whole), self.constant(scale), self.constant(np.zeros(scale.shape, np.int8))]
        self.nodes.append(
            helper.make_node("DequantizeLinear", names, [f"{inputs[1]}_w{len(self.nodes)}"], axis=axis)
        )
        inputs[1] = self.nodes[-1].output[0]
        if len(inputs) > 2 and inputs[0] in self.scales and n.number(0, 4):
            by = np.asarray(np.float32(self.scales[inputs[0]][0]) * scale, np.float32)
            bias = np.clip(
                np.round(n.constants[inputs[2]] / by.astype(np.float64)), -(2**31), 2**31 - 1
            ).astype(np.int32)
            names = [self.constant(bias), self.constant(by), self.constant(np.zeros(by.shape, np.int32))]
            self.nodes.append(
                helper.make_node("DequantizeLinear", names, [f"{inputs[2]}_b{len(self.nodes)}"], axis=0)
            )
            inputs[2] = self.nodes[-1].output[0]
        return inputs

    def run(self, inputs: list[str]) -> list[onnx.NodeProto]:
        names: dict[str, str] = {}
        for x in inputs:
            names[x] = f"{x}_dq"
            self.ranges[names[x]] = self.ranges[x]
            self.pair(names[x], x)
        for node in self.n.nodes:
            node = onnx.NodeProto.FromString(node.SerializeToString())
            for k, name in enumerate(node.input):
                node.input[k] = names.get(name, name)
            if node.op_type in HEAVY:
                node.input[:] = self.weights(node)
            ends = list(node.output)
            kept = [e not in self.ranges or not self.n.number(0, 7) for e in ends]
            node.output[:] = [e if k else f"{e}_real" for e, k in zip(ends, kept, strict=True)]
            self.nodes.append(node)
            for e, k in zip(ends, kept, strict=True):
                if not k:
                    self.pair(e, f"{e}_real")
        return self.nodes


def random_network(
    number: int, quantised: bool
) -> tuple[onnx.ModelProto, dict[str, Array], dict[str, tuple[float, int]], list[str]]:
    """A model, its inputs, scale and bits of quantised outputs by name, and the names of its layers in
    order."""
    rng = np.random.default_rng(number)
    n = float_network(rng, room(number))
    read = {i for node in n.nodes for i in node.input}
    inputs = {v: n.shapes[v] for v in n.values if v.startswith("x") and v in read}
    ends = {v: n.shapes[v] for v in n.values if not v.startswith("x") and v not in read}
    fed = {k: rng.normal(0, 1, s).astype(np.float32) for k, s in inputs.items()}
    kinds = [node.op_type for node in n.nodes]
    if not quantised:
        return _model(n.nodes, n.constants, inputs, ends), fed, {}, kinds
    every = {v: n.shapes[v] for v in n.values if not v.startswith("x")}
    found = dict(zip(every, runtime(_model(n.nodes, n.constants, inputs, every), fed), strict=True))
    quantiser = Quantiser(n, found | fed)
    nodes = quantiser.run(list(inputs))
    used = {i for node in nodes for i in node.input}
    constants = {k: v for k, v in quantiser.constants.items() if k in used}
    return (
        _model(nodes, constants, inputs, ends),
        fed,
        {k: v for k, v in quantiser.scales.items() if k in ends},
        kinds,
    )
