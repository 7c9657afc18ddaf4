"""Elementwise operators, casts, choices and reductions at the edges of what they take."""

from __future__ import annotations

import numpy as np
from edge_network import FEW, FLOATS, FOLLOWERS, WHOLE, Edge, edge, enum
from extreme_fragment import Rejected

EXACT = ("Abs", "Neg", "Relu", "Sign", "Floor", "Ceil", "Round", "Sqrt", "Reciprocal")
ROUNDED = (
    "Exp",
    "Log",
    "Sigmoid",
    "Tanh",
    "Erf",
    "Softplus",
    "Softsign",
    "Elu",
    "Selu",
    "Celu",
    "HardSigmoid",
    "HardSwish",
    "Mish",
    "LeakyRelu",
    "ThresholdedRelu",
    "Sin",
    "Cos",
    "Atan",
    "Asin",
    "Acos",
    "Asinh",
    "Acosh",
    "Atanh",
    "Sinh",
    "Cosh",
    "Gelu",
    "Shrink",
)
NUMBERS = (*FLOATS, *WHOLE)


@edge(5)
def function(n: Edge) -> str:
    kind = n.pick(*EXACT, *ROUNDED)
    given, x = {}, n.x(n.pick("float32", "float32", *FLOATS), n.shape(0, 3), 0.1)
    n.relative = kind in ROUNDED
    if kind == "Gelu":
        n.opset, given = max(n.opset, 20), {"approximate": n.pick("none", "tanh")}
    elif kind in ("Elu", "LeakyRelu", "ThresholdedRelu", "Celu"):
        given = {"alpha": n.pick(0.01, 1.0, 2.0, 0.5)}
    elif kind == "Mish":
        n.opset = max(n.opset, 18)
    elif kind == "HardSwish":
        n.opset = max(n.opset, 14)
    return n.node(kind, [x], **given)[0]


@edge(2)
def whole_function(n: Edge) -> str:
    kind, x = n.pick("Abs", "Neg", "Sign", "Relu", "BitwiseNot"), n.x(n.pick(*WHOLE), n.shape(0, 3), 0.1)
    n.opset = max(n.opset, 18)
    return n.node(kind, [x])[0]


@edge(1)
def asked(n: Edge) -> str:
    """Whether numbers are any, or infinite."""
    n.opset = max(n.opset, 20)
    x = n.x(n.pick(*FLOATS), n.shape(0, 3), 0.1)
    if n.once(2):
        return n.node("IsNaN", [x])[0]
    return n.node("IsInf", [x], detect_negative=n.number(0, 1), detect_positive=n.number(0, 1))[0]


def other(n: Edge, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A shape that broadcasts with this one."""
    kept = tuple(d if n.number(0, 3) else 1 for d in shape)
    return kept[n.number(0, len(kept)) if n.once(3) else 0 :]


@edge(8)
def two(n: Edge) -> str:
    name = n.pick("Add", "Sub", "Mul", "Div", "Max", "Min", "Max", "Min", "Mod", "Pow", "PRelu")
    kind, shape = n.pick("float32", "float32", *NUMBERS), n.shape(0, 4)
    n.opset = max(n.opset, 14)
    inputs, given = [n.x(kind, shape, 0.1), n.x(kind, other(n, shape), 0.4)], {}
    if n.once(4) and name in ("Add", "Mul", "Max", "Min"):
        inputs.reverse()
    if name == "Mod":
        given = {"fmod": 1 if kind in FLOATS else n.number(0, 1)}
        n.relative = kind in FLOATS
    elif name == "Pow":
        n.relative = True
        if kind in WHOLE:
            inputs = [n.x(n.pick("int32", "int64"), shape, 0.1), n.given(np.float32(n.number(-1, 5)), 0.9)]
            base, power = ((n.fed | n.constants)[k].astype(np.float64) for k in inputs)
            n.open = bool(power < 0) or float(np.abs(base).max(initial=0)) ** float(power) >= 2.0**31
    elif name in ("Max", "Min"):
        inputs += [n.x(kind, other(n, shape)) for _ in range(n.pick(0, 0, 0, 1))]
        if n.once(8):
            inputs = inputs[:1]
    if name == "Div" and kind in WHOLE:
        divisor = (n.fed | n.constants)[inputs[1]]
        n.open = bool((divisor == 0).any())  # the standard says nothing
    if name == "Mod" and kind in WHOLE:
        n.open = bool(((n.fed | n.constants)[inputs[1]] == 0).any())
    return n.node(name, inputs, **given)[0]


@edge(2)
def compared(n: Edge) -> str:
    name = n.pick("Equal", "Greater", "Less", "GreaterOrEqual", "LessOrEqual")
    kind, shape = n.pick("float32", "float32", *NUMBERS), n.shape(0, 3)
    n.opset = max(n.opset, 16)
    made = n.node(name, [n.x(kind, shape, 0.1), n.x(kind, other(n, shape), 0.4)])[0]
    return n.node("Not", [made])[0] if n.once(3) else made


@edge(2)
def bits(n: Edge) -> str:
    n.opset, shape = max(n.opset, 18), n.shape(0, 3)
    if n.once(2):
        kind = n.pick(*WHOLE)
        return n.node(
            n.pick("BitwiseAnd", "BitwiseOr", "BitwiseXor"),
            [n.x(kind, shape), n.x(kind, other(n, shape), 0.5)],
        )[0]
    kind = n.pick("uint8", "uint16", "uint32", "uint64")
    width = np.iinfo(kind).bits
    by = n.rng.integers(0, n.pick(width - 1, width + 3), other(n, shape), endpoint=True).astype(kind)
    n.open = bool((by >= width).any())
    return n.node("BitShift", [n.x(kind, shape), n.given(by, 0.5)], direction=n.pick("LEFT", "RIGHT"))[0]


@edge(5)
def cast(n: Edge) -> str | None:
    """From one type to another, by way of one of few bits as often as not."""
    kind, shape = n.pick("float32", "float32", *NUMBERS, "bool"), n.shape(0, 3)
    value = n.x(kind, shape, 0.2)
    if n.once(2):
        n.opset = max(n.opset, 23)
        few = n.pick(*FEW)
        if few in ("int4", "uint4") and kind in FLOATS:
            n.open = True  # what is beyond the type
        if "8" in few and kind not in FLOATS:
            value = n.node("Cast", [value], to=1)[0]
        given = {"saturate": n.number(0, 1)} if few.startswith("float8") else {}
        value = n.node("Cast", [value], to=enum(few), **given)[0]
        value = n.node("Cast", [value], to=n.pick(1, 1, 10))[0]
        return value
    to = n.pick(*NUMBERS, "bool", "float32")
    if kind in FLOATS and to in WHOLE:
        x = (n.fed | n.constants)[value].astype(np.float64)
        ends = np.iinfo(to)
        with np.errstate(all="ignore"):
            n.open = not bool(((x > ends.min - 1.0) & (x < ends.max + 1.0)).all())
    return n.node("Cast", [value], to=enum(to))[0]


@edge(3)
def quantised_types(n: Edge) -> str:
    """Floats of 8 and 4 bits, integers of 4 and 16, with scales by tensor, by channel, in blocks."""
    n.opset = n.pick(23, 24)
    few = n.pick(
        "float8e4m3fn",
        "float8e5m2",
        "float8e4m3fnuz",
        "float8e5m2fnuz",
        "float4e2m1",
        "int4",
        "uint4",
        "int16",
        "uint16",
        "int8",
        "uint8",
    )
    shape = n.shape(1, 3)
    axis, how = n.axis(len(shape)), n.pick("tensor", "channel", "block")
    given: dict[str, int] = {"axis": axis}
    form: tuple[int, ...] = ()
    if how == "channel":
        form = (shape[axis],)
    elif how == "block":
        given["block_size"] = size = n.pick(1, 2, 3)
        form = tuple(-(-d // size) if k == axis % len(shape) else d for k, d in enumerate(shape))
    scales = np.exp(n.rng.normal(0, 1, form)).astype(np.float32) * np.float32(n.pick(1, 0.1, 0.01))
    x = n.x("float32", shape, 0.1)
    data = (n.fed | n.constants)[x]
    if not few.startswith("float"):
        data[~np.isfinite(data)] = 3
        np.clip(data, -1e6, 1e6, out=data)
    zero = [] if few == "float4e2m1" and n.once(2) else [n.known(np.zeros(form), few)]
    if not few.startswith("float") and zero:
        ends = (
            (-8, 7)
            if few == "int4"
            else (0, 15)
            if few == "uint4"
            else (np.iinfo(few).min, np.iinfo(few).max)
        )
        n.constants[zero[0]] = n.rng.integers(*ends, form, endpoint=True).astype(n.constants[zero[0]].dtype)
    by = n.given(scales, 0.8)
    more = {"saturate": n.number(0, 1)} if few.startswith("float8") else {}
    if not zero:
        more["output_dtype"] = enum(few)
    y = n.node("QuantizeLinear", [x, by, *zero], **given, **more)[0]
    return n.node("DequantizeLinear", [y, by, *zero], **given)[0]


@edge(3)
def chosen(n: Edge) -> str:
    """By a condition, or between two ends: NaN, the wrong way round."""
    kind, shape = n.pick("float32", "float32", *NUMBERS), n.shape(0, 3)
    if n.once(2):
        return n.node("Where", [n.x("bool", other(n, shape)), n.x(kind, shape), n.x(kind, other(n, shape))])[
            0
        ]
    ends = [n.x(kind, (), 0.7) if n.number(0, 3) else "" for _ in range(2)]
    return n.node("Clip", [n.x(kind, shape, 0.1), *ends])[0]


REDUCTIONS = ("Max", "Min", "Sum", "Mean", "Prod", "L1", "L2", "LogSum", "LogSumExp", "SumSquare")


@edge(6)
def reduced(n: Edge) -> str:
    name, kind, shape = (
        n.pick("Max", "Min", *REDUCTIONS),
        n.pick("float32", "float32", *FLOATS, *WHOLE),
        n.shape(0, 4),
    )
    rank = len(shape)
    x = n.x(kind, shape, 0.1)
    axes = [int(a) - (rank if n.once(2) else 0) for a in n.rng.permutation(rank)[: n.number(0, rank)]]
    inputs, given = [x], {"keepdims": n.number(0, 1)}
    if n.opset < 18 and name != "Sum":
        given |= {"axes": axes} if axes else {}
    else:
        inputs += [n.known(axes)] if axes or n.once(2) else []
        given["noop_with_empty_axes"] = n.number(0, 1)
    if name not in ("Max", "Min"):
        n.share = 1e-3 if kind == "float16" else 1e-5
        finite = np.abs((n.fed | n.constants)[x].astype(np.float64))
        largest = finite[np.isfinite(finite)].max(initial=0)
        if (
            kind in FLOATS
            and name not in ("LogSumExp", "LogSum")
            and largest > (100 if kind == "float16" else 1e15)
        ):
            raise Rejected("the order of sums decides which are infinite")
        if name.startswith("LogSum"):  # of sums that cancel out, and of integers it says nothing
            n.open = kind in WHOLE or (bool((n.fed | n.constants)[x].min(initial=0) < 0) and name == "LogSum")
        if kind in WHOLE and name not in ("Sum",):
            n.open |= bool(largest * largest * max(1, np.prod(shape)) > np.iinfo(kind).max)
    return n.node(f"Reduce{name}", inputs, **given)[0]


@edge(3)
def places(n: Edge) -> str | None:
    """Of the largest: ties, NaN."""
    kind, shape = (
        n.pick("float32", "float32", "float16", "int8", "uint8", "int32", "int64", "float64"),
        n.shape(1, 4),
    )
    x, axis = n.x(kind, shape, 0.1), n.axis(len(shape))
    if n.once(2):
        return n.node(
            n.pick("ArgMax", "ArgMin"),
            [x],
            axis=axis,
            keepdims=n.number(0, 1),
            select_last_index=n.number(0, 1),
        )[0]
    count = n.number(0, shape[axis])
    made = n.node("TopK", [x, n.known([count])], 2, axis=axis, largest=n.number(0, 1), sorted=1)
    n.end(made[1])
    return made[0]


@edge(3)
def normalised(n: Edge) -> str:
    name, kind, shape = (
        n.pick("Softmax", "Softmax", "LogSoftmax", "Hardmax"),
        n.pick("float32", *FLOATS),
        n.shape(1, 4),
    )
    x = n.x(kind, shape, 0.1)
    n.relative, n.share = name != "Hardmax", 0 if name == "Hardmax" else 1e-3 if kind == "float16" else 1e-6
    n.open = name == "Hardmax" and bool(np.isnan((n.fed | n.constants)[x]).any())
    return n.node(name, [x], axis=n.axis(len(shape)))[0]


@edge(2)
def summed_up(n: Edge) -> str:
    kind, shape = n.pick("float32", "int32", "int64", "float64"), n.shape(1, 3)
    x = n.given(n.tame(kind, shape, 3), 0.1) if kind.startswith("float") else n.x(kind, shape, 0.1)
    n.share = 1e-6
    return n.node(
        "CumSum", [x, n.known(n.axis(len(shape)))], exclusive=n.number(0, 1), reverse=n.number(0, 1)
    )[0]


def _follower(kind: str, *others: float) -> None:
    def follow(n: Edge, value: str) -> str:
        n.opset = max(n.opset, 15)
        like = [n.node("CastLike", [n.known(abs(o), "float32"), value])[0] for o in others]
        like = [n.node("Neg", [k])[0] if o < 0 else k for k, o in zip(like, others, strict=True)]
        return n.node(kind, [value, *like])[0]

    FOLLOWERS.append(follow)


for _kind, *_others in (
    ("Relu",),
    ("Neg",),
    ("Abs",),
    ("Identity",),
    ("Clip", 0, 6),
    ("Clip", -1, 1),
    ("Max", 0),
    ("Min", 6),
    ("Max", -1),
    ("Mul", 0),
    ("Mul", 1),
    ("Add", 0),
    ("Sub", 0),
    ("Div", 1),
    ("Mul", -1),
    ("Pow", 2),
    ("Sign",),
):
    _follower(_kind, *_others)
