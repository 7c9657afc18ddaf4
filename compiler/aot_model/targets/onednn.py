"""onednn: float layers as primitives of oneDNN, on the host.

Layers are described to the runtime header aot_model/onednn.h, which creates their primitives once and keeps
them in a context of the program's. Activations stay channels last; constant weights are re-ordered by the
library. Source: oneDNN developer guide, version 2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import inf

from aot_model.ir.pattern import Pattern, constant, op, value
from aot_model.ir.program import Device
from aot_model.ir.types import DType, strides_of
from aot_model.ir.values import Value
from aot_model.kernels.arguments import Argument, written
from aot_model.kernels.target import Target
from aot_model.ops.convolution import Convolution
from aot_model.ops.normalisation import Softmax
from aot_model.ops.pool import Pool
from aot_model.ops.registry import normal_axis
from aot_model.partition.lower import RegionSite
from aot_model.partition.offload import Claim, Offload
from aot_model.partition.region import Match, Region
from aot_model.targets.geometry import planar

Ints = tuple[int, ...]
_RANK = 5

DEVICE = Device(
    "onednn",
    "aot_model/onednn.h",
    "struct aot_model_onednn",
    "aot_model_onednn_activate",
    open=None,
    close=None,
    deactivate=None,
)


@dataclass(frozen=True)
class Layer:
    """The fields of an aot_model_onednn_layer, and the values behind its operands (None: absent)."""

    kind: str
    algorithm: str
    operands: tuple[tuple[Value, Ints, Ints] | None, ...]
    """Value, logical dimensions, distances in elements."""
    y: tuple[Ints, Ints]
    windows: dict[str, Ints] = field(default_factory=dict)
    numbers: dict[str, str] = field(default_factory=dict)


def _images(shape: Ints) -> tuple[Ints, Ints]:
    """(N, H, W, C) or (N, W, C) in memory as dimensions (N, C, H, W)."""
    n, c, (h, w) = shape[0], shape[-1], planar(shape[1:-1], 1)
    return (n, c, h, w), (h * w * c, 1, w * c, c)


def _weights(shape: Ints, groups: int) -> tuple[Ints, Ints]:
    """(O, KH, KW, I) in memory as dimensions (O, I, KH, KW), or (G, O / G, I, KH, KW)."""
    o, i, (kh, kw) = shape[0], shape[-1], planar(shape[1:-1], 1)
    steps = (kh * kw * i, 1, kw * i, i)
    return (
        ((o, i, kh, kw), steps)
        if groups == 1
        else ((groups, o // groups, i, kh, kw), (o // groups * kh * kw * i, *steps))
    )


def _dense(shape: Ints) -> tuple[Ints, Ints]:
    return shape, strides_of(shape)


def _windows(o: Convolution | Pool) -> dict[str, Ints]:
    d = len(o.strides)
    return {
        "strides": planar(o.strides, 1), "dilations": planar(tuple(k - 1 for k in o.dilations), 0),
        "begin": planar(o.pads[:d], 0), "end": planar(o.pads[d:], 0),
    }  # fmt: skip


# --- layers -------------------------------------------------------------------------------------------------


def _convolution(match: Match) -> Layer | str:
    node, x, w, out = match.node("conv"), match.value("x"), match.value("w"), match.result.outputs[0]
    o = node.op
    assert isinstance(o, Convolution)
    if x.type.rank not in (3, 4):
        return f"{x.type.rank - 2} spatial axes"
    if min(o.pads) < 0:
        return "negative padding"
    bias = _bias(match, out.shape[-1])
    if isinstance(bias, str):
        return bias
    operands = ((x, *_images(x.shape)), (w, *_weights(w.shape, o.group)), bias)
    return Layer(
        "CONVOLUTION", "dnnl_convolution_direct", operands, _images(out.shape), _windows(o), _relu(match)
    )


def _matmul(match: Match) -> Layer | str:
    x, w, out = match.value("x"), match.value("w"), match.result.outputs[0]
    k, n = w.shape
    rows = x.type.elements // k
    bias = _bias(match, n, rank=2)
    if isinstance(bias, str):
        return bias
    operands = ((x, *_dense((rows, k))), (w, *_dense((k, n))), bias)
    return Layer(
        "MATMUL", "dnnl_alg_kind_undef", operands, _dense((out.type.elements // n, n)), numbers=_relu(match)
    )


def _bias(match: Match, channels: int, rank: int = 1) -> tuple[Value, Ints, Ints] | str | None:
    """One constant for each channel, the last axis of the result."""
    if not match.has("bias"):
        return None
    bias = match.value("bias")
    if bias.type.elements != channels or (channels > 1 and bias.shape[-1] != channels):
        return f"{bias.type} is not a bias of {channels} channels"
    return bias, *_dense((1,) * (rank - 1) + (channels,))


def _relu(match: Match) -> dict[str, str]:
    return {"relu": "true"} if match.has("relu") else {}


def _pool(match: Match) -> Layer | str:
    node, x, out = match.result, match.value("x"), match.result.outputs[0]
    o = node.op
    assert isinstance(o, Pool)
    if x.type.rank not in (3, 4):
        return f"{x.type.rank - 2} spatial axes"
    if o.mode not in ("max", "average"):
        return f"a {o.mode}, not a maximum or an average"
    if o.ceil_mode:
        return "windows beyond the end"
    if any(p >= k for p, k in zip(o.pads, (*o.kernel, *o.kernel), strict=True)):
        return "a window may lie in the padding"
    average = f"avg_{'include' if o.count_include_pad else 'exclude'}_padding"
    windows = {**_windows(o), "kernel": planar(o.kernel, 1)}
    return Layer(
        "POOLING",
        f"dnnl_pooling_{'max' if o.mode == 'max' else average}",
        ((x, *_images(x.shape)), None, None),
        _images(out.shape),
        windows,
    )


_BINARY = {"Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "Max": "max", "Min": "min"}


def _binary(match: Match) -> Layer | str:
    node, out = match.result, match.result.outputs[0]
    values = [v for v in node.inputs if v is not None]
    if len(values) != 2:
        return f"{len(values)} operands"
    a, b = values
    if a.shape != out.shape and b.shape == out.shape and node.kind not in ("Sub", "Div"):
        a, b = b, a
    if a.shape != out.shape:
        return f"the first operand {a.type} is broadcast"
    if not 1 <= out.type.rank <= _RANK:
        return f"{out.type.rank} axes"
    second = (1,) * (out.type.rank - b.type.rank) + b.shape
    return Layer(
        "BINARY",
        f"dnnl_binary_{_BINARY[node.kind]}",
        ((a, *_dense(a.shape)), (b, *_dense(second)), None),
        _dense(out.shape),
    )


_ELTWISE = {
    "Relu": "relu",
    "Sigmoid": "logistic",
    "LibmSigmoid": "logistic",
    "Tanh": "tanh",
    "LibmTanh": "tanh",
    "Exp": "exp",
    "Sqrt": "sqrt",
    "Abs": "abs",
    "Clip": "clip",
}


def _eltwise(match: Match) -> Layer | str:
    node = match.result
    x = node.inputs[0]
    assert x is not None
    numbers = {}
    if node.kind == "Clip":
        bounds = []
        for default, limit in ((-inf, node.input(1)), (inf, node.input(2))):
            if limit is not None and (limit.data is None or limit.data.size != 1):
                return "limits that are not constants"
            bounds.append(
                default if limit is None or limit.data is None else float(limit.data.reshape(-1)[0])
            )
        if not bounds[0] <= bounds[1]:
            return f"limits {bounds[0]:g} and {bounds[1]:g}"
        # The largest numbers instead of infinities, which have no literal.
        numbers = {
            n: f"{min(max(b, -3.4028234663852886e38), 3.4028234663852886e38)!r}f"
            for n, b in zip(("alpha", "beta"), bounds, strict=True)
        }
    flat = _dense((x.type.elements,))
    return Layer(
        "ELTWISE", f"dnnl_eltwise_{_ELTWISE[node.kind]}", ((x, *flat), None, None), flat, numbers=numbers
    )


def _softmax(match: Match) -> Layer | str:
    node, x = match.result, match.value("x")
    assert isinstance(node.op, Softmax)
    if not 1 <= x.type.rank <= _RANK:
        return f"{x.type.rank} axes"
    axis = normal_axis(node.op.axis, x.type.rank)
    return Layer(
        "SOFTMAX",
        "dnnl_alg_kind_undef",
        ((x, *_dense(x.shape)), None, None),
        _dense(x.shape),
        numbers={"axis": str(axis)},
    )


# --- calls --------------------------------------------------------------------------------------------------


def _check(describe: Callable[[Match], Layer | str]) -> Callable[[Match, Target], str | None]:
    def check(match: Match, target: Target) -> str | None:
        found = describe(match)
        if isinstance(found, str):
            return found
        types = [v.type for v in (*(o[0] for o in found.operands if o is not None), match.result.outputs[0])]
        return next((f"{t}; it computes float32" for t in types if t.dtype is not DType.FLOAT32), None)

    return check


def _list(values: Sequence[int]) -> str:
    return f"{{ {', '.join(map(str, values))} }}"


def _tensor(dims: Ints, steps: Ints) -> str:
    return f"{{ {len(dims)}, {_list(dims)}, {_list(steps)} }}"


def _body(layer: Layer) -> str:
    fields = [f".kind = AOT_MODEL_ONEDNN_{layer.kind}", f".algorithm = {layer.algorithm}"]
    fields += [f".operands[{k}] = {_tensor(*o[1:])}" for k, o in enumerate(layer.operands) if o is not None]
    fields += [
        f".y = {_tensor(*layer.y)}",
        *(f".{n} = {_list(v)}" for n, v in layer.windows.items()),
        *(f".{n} = {v}" for n, v in layer.numbers.items()),
    ]
    text = "".join(f"        {f},\n" for f in fields)
    names = [n if o is not None else "NULL" for n, o in zip(("x", "w", "bias"), layer.operands, strict=True)]
    return (
        f"    static const aot_model_onednn_layer layer = {{\n{text}    }};\n\n    return "
        f"aot_model_onednn_run(onednn, &layer, {', '.join(names)}, y);"
    )


def _lower(region: Region, build: RegionSite) -> None:
    for match in region.matches:
        layer = _DESCRIBE[match.pattern](match)
        assert isinstance(layer, Layer)
        arguments = [
            Argument(n, o[0])
            for n, o in zip(("x", "w", "bias"), layer.operands, strict=True)
            if o is not None
        ]
        note = (
            "oneDNN: "
            + layer.kind.lower()
            + (f", {layer.algorithm}" if layer.algorithm != "dnnl_alg_kind_undef" else "")
        )
        build.call(
            f"onednn_{match.pattern}",
            _body(layer),
            [*arguments, written("y", match.result.outputs[0])],
            match=match,
            fails=True,
            note=note,
        )


def _finished(accumulators: Pattern) -> Pattern:
    """A layer with bias and rectifier, where they are there."""
    biased = accumulators.optional(lambda p: op("Add", p, constant("bias")))
    return biased.optional(lambda p: op("Relu", p, name="relu"))


def _plain(accumulators: Pattern) -> Pattern:
    return accumulators.optional(lambda p: op("Relu", p, name="relu"))


_X, _CONV = (
    value("x", constant=False),
    op("Convolution", value("x", constant=False), constant("w"), name="conv"),
)
_PRODUCT = op("MatMul", value("x", constant=False), constant("w", rank=2), name="product")

_DESCRIBE: dict[str, Callable[[Match], Layer | str]] = {
    "convolution": _convolution,
    "matmul": _matmul,
    "pool": _pool,
    "binary": _binary,
    "eltwise": _eltwise,
    "softmax": _softmax,
}
_PATTERNS: tuple[tuple[str, Pattern], ...] = (
    ("convolution", _finished(_CONV)),
    ("convolution", _plain(_CONV)),
    ("matmul", _finished(_PRODUCT)),
    ("matmul", _plain(_PRODUCT)),
    ("pool", op("Pool", _X)),
    ("softmax", op("Softmax", _X)),
    ("binary", op(_BINARY)),
    ("eltwise", op(_ELTWISE)),
)

ONEDNN = Target(
    "onednn", "float layers as primitives of oneDNN 2; before host",
    offload=Offload(
        tuple(Claim(name, pattern, _check(_DESCRIBE[name])) for name, pattern in _PATTERNS), lower=_lower,
        keep=frozenset({"Softmax"}), merge=False, device=DEVICE,
    ),
)  # fmt: skip
