"""More layers of random TFLite networks: functions, comparisons and choices, axes, floats within integers,
layers that remember.

Oracles decide which types an operator has: a network that none takes is left out.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from tflite_network import MAX_ELEMENTS, Activation, Network, anywhere, image

from tflite_models import BOOL, FLOAT32, INT8, INT16, INT32, UINT8, Op, T


@anywhere
def curve(n: Network, x: Activation) -> Activation | None:
    """A function of one number. EXP of what spreads far is infinite."""
    kinds = ["ELU", "GELU", "LOG_SOFTMAX", "L2_NORMALIZATION", "RELU_N1_TO_1", "RELU_0_TO_1"]
    if n.spread(x) < 3:
        kinds.append("EXP")
    if not n.whole:
        kinds += ["SQUARE", "SIN", "COS", "NEG"]
    kind = n.pick(*kinds)
    if n.kind in (UINT8, INT16) and kind not in ("LOG_SOFTMAX", "L2_NORMALIZATION", "EXP"):
        return None
    if kind == "LOG_SOFTMAX" and (x.shape[-1] < 2 or len(x.shape) > 4):
        return None
    ends = {"LOG_SOFTMAX": (16 / 256, n.low + 255), "L2_NORMALIZATION": (1 / 128, n.low + 128)}
    fixed = ends.get(kind) if n.whole else None
    size = n.spread(x)
    width = {"EXP": float(np.exp(min(size, 3))), "SQUARE": size**2}.get(kind, size)
    options: dict[str, tuple[str, dict[str, Any]]] = {
        "GELU": ("GeluOptions", {"Approximate": bool(n.number(0, 1))}),
        "LOG_SOFTMAX": ("LogSoftmaxOptions", {}),
        "L2_NORMALIZATION": ("L2NormOptions", {"FusedActivationFunction": 0}),
        "EXP": ("ExpOptions", {}),
        "NEG": ("NegOptions", {}),
        "SQUARE": ("SquareOptions", {}),
        "COS": ("CosOptions", {}),
    }
    name, fields = options.get(kind, (None, {}))
    return n.add(kind, (x.number,), n.activation(x.shape, width, fixed=fixed), name, **fields)


@anywhere
def of_positive(n: Network, x: Activation) -> Activation | None:
    """A function of what is not negative; floats are not near zero."""
    if n.kind not in (INT8, FLOAT32):
        return None
    size = n.spread(x)
    y = n.add("ABS", (x.number,), n.activation(x.shape, size), "AbsOptions")
    if not n.whole:
        least = n.tensor(T("", (1,), FLOAT32, (), data=np.asarray([0.3 * size], "float32")))
        z = n.activation(x.shape, size)
        y = n.add("ADD", (y.number, least), z, "AddOptions", FusedActivationFunction=0)
    kind = n.pick("SQRT", "RSQRT", "LOG")
    widths = {"SQRT": size**0.5, "RSQRT": size**-0.5, "LOG": 1 + abs(float(np.log(size)))}
    return n.add(kind, (y.number,), n.activation(x.shape, widths[kind]), None)


@anywhere
def quotient(n: Network, x: Activation) -> Activation | None:
    if n.kind == INT16:
        return None
    if n.whole:
        zero = int(n.low) + n.number(0, 40)
        data = n.rng.integers(zero + 40, int(n.high) + 1, (*(1,) * (len(x.shape) - 1), x.shape[-1]))
        data = data.astype(n.dtype)
        divisor = n.tensor(T("", data.shape, n.kind, (0.02,), (zero,), data=data))
        # quotients of 160 and more times the result's scale: smaller ones LiteRT shifts by more bits than are
        y = n.activation(x.shape, fixed=(x.scale / (0.02 * 160), n.zero()))
    else:
        data = n.rng.uniform(0.5, 2, (*(1,) * (len(x.shape) - 1), x.shape[-1])).astype("float32")
        divisor = n.tensor(T("", data.shape, n.kind, (), data=data))
        y = n.activation(x.shape, n.spread(x))
    return n.add("DIV", (x.number, divisor), y, "DivOptions", FusedActivationFunction=n.pick(0, 1, 3))


@image
def blocks(n: Network, x: Activation) -> Activation | None:
    """Space into the batch, or the batch back into space."""
    size = (n.number(1, 3), n.number(1, 3))
    count = size[0] * size[1]
    if x.shape[0] % count == 0 and n.number(0, 3):
        wide = tuple(d * s for d, s in zip(x.shape[1:3], size, strict=True))
        crops = [[n.number(0, min(1, d - 1)), 0] for d in wide]
        inside = tuple(d - sum(c) for d, c in zip(wide, crops, strict=True))
        y = n.activation((x.shape[0] // count, *inside, x.shape[3]), like=x)
        inputs = (x.number, n.integers(size), n.integers(crops))
        return n.add("BATCH_TO_SPACE_ND", inputs, y, "BatchToSpaceNDOptions")
    pads = [[p, -(d + p) % s] for d, s in zip(x.shape[1:3], size, strict=True) for p in (n.number(0, 1),)]
    inside = tuple((d + sum(p)) // s for d, p, s in zip(x.shape[1:3], pads, size, strict=True))
    y = n.activation((x.shape[0] * count, *inside, x.shape[3]), like=x)
    inputs = (x.number, n.integers(size), n.integers(pads))
    if int(np.prod(y.shape)) > MAX_ELEMENTS * n.room:
        return None
    return n.add("SPACE_TO_BATCH_ND", inputs, y, "SpaceToBatchNDOptions")


@image
def local(n: Network, x: Activation) -> Activation | None:
    """Floats alone: what neighbours say of a number."""
    if n.whole:
        return None
    if n.number(0, 1):
        fields = {"Radius": n.number(1, 3), "Bias": 1.0, "Alpha": 0.2, "Beta": n.pick(0.5, 0.75, 1.0)}
        y = n.activation(x.shape, n.spread(x))
        return n.add(
            "LOCAL_RESPONSE_NORMALIZATION", (x.number,), y, "LocalResponseNormalizationOptions", **fields
        )
    kernel = (n.number(1, 3), n.number(1, 3))
    fit = n.window(x, kernel, dilated=False)
    if fit is None:
        return None
    stride, _, padding, size = fit
    return n.add(
        "L2_POOL_2D",
        (x.number,),
        n.activation((x.shape[0], *size, x.shape[3]), n.spread(x)),
        "Pool2DOptions",
        Padding=padding,
        StrideH=stride[0],
        StrideW=stride[1],
        FilterHeight=kernel[0],
        FilterWidth=kernel[1],
        FusedActivationFunction=0,
    )


@anywhere
def turned(n: Network, x: Activation) -> Activation | None:
    axes = sorted({n.number(1, len(x.shape) - 1) for _ in range(n.number(1, 2))}) if len(x.shape) > 1 else [0]
    y = n.activation(x.shape, like=x)
    return n.add("REVERSE_V2", (x.number, n.integers(axes)), y, "ReverseV2Options")


@anywhere
def chosen(n: Network, x: Activation) -> Activation | None:
    """One of two numbers, as a comparison says; the comparison may be an output, too. Runtimes compare scales
    from 1 on wrongly: they take them for multipliers below 1.
    """
    if n.whole and x.scale >= 0.99:
        return None
    same = [v for v in n.values if v.shape == x.shape and n.alike(v, x) and v.number != x.number]
    other = n.pick(*same).number if same else n.constant(x.shape, x.scale, x.zero).number
    kind = n.pick("LESS", "GREATER", "LESS_EQUAL", "GREATER_EQUAL", "EQUAL", "NOT_EQUAL")
    options = {"LESS": "LessOptions", "GREATER": "GreaterOptions", "EQUAL": "EqualOptions"}
    said = n.tensor(T("", x.shape, BOOL, (), ()))
    n.operators.append(Op(kind, (x.number, other), (said,), options.get(kind), {}))
    if n.number(0, 3) == 0:
        n.ends.append(said)
    first, second = (x.number, other) if n.number(0, 1) else (other, x.number)
    kind = n.pick("SELECT", "SELECT_V2")
    return n.add(kind, (said, first, second), n.activation(x.shape, like=x), None)


@anywhere
def spread_out(n: Network, x: Activation) -> Activation | None:
    shape = tuple(n.number(2, 5) if d == 1 and k else d for k, d in enumerate(x.shape))
    if shape == x.shape or int(np.prod(shape)) > MAX_ELEMENTS * n.room:
        return None
    y = n.activation(shape, like=x)
    return n.add("BROADCAST_TO", (x.number, n.integers(shape)), y, "BroadcastToOptions")


@anywhere
def axis_more_or_less(n: Network, x: Activation) -> Activation | None:
    ones = [k for k in range(1, len(x.shape)) if x.shape[k] == 1]
    if ones and len(x.shape) > 2 and n.number(0, 1):
        axis = n.pick(*ones)
        y = n.activation((*x.shape[:axis], *x.shape[axis + 1 :]), like=x)
        return n.add("SQUEEZE", (x.number,), y, "SqueezeOptions", SqueezeDims=np.asarray([axis], "int32"))
    if len(x.shape) > 3:
        return None
    axis = n.number(1, len(x.shape))
    y = n.activation((*x.shape[:axis], 1, *x.shape[axis:]), like=x)
    return n.add("EXPAND_DIMS", (x.number, n.integers(axis)), y, "ExpandDimsOptions")


@anywhere
def running_sum(n: Network, x: Activation) -> Activation | None:
    if n.whole:
        return None
    axis = n.number(1, len(x.shape) - 1) if len(x.shape) > 1 else 0
    y = n.activation(x.shape, n.spread(x) * x.shape[axis] ** 0.5)
    fields = {"Exclusive": bool(n.number(0, 1)), "Reverse": bool(n.number(0, 1))}
    return n.add("CUMSUM", (x.number, n.integers(axis)), y, "CumsumOptions", **fields)


@anywhere
def smallest(n: Network, x: Activation) -> Activation | None:
    """Of axes; of floats also the product."""
    if len(x.shape) < 2:
        return None
    axes = sorted({n.number(1, len(x.shape) - 1) for _ in range(2)})
    keep = bool(n.number(0, 1))
    shape = tuple(1 if k in axes else d for k, d in enumerate(x.shape) if keep or k not in axes)
    terms = int(np.prod([x.shape[k] for k in axes]))
    kind = n.pick("REDUCE_MIN", "REDUCE_PROD") if not n.whole and terms < 8 else "REDUCE_MIN"
    y = n.activation(shape, n.spread(x) ** terms) if kind == "REDUCE_PROD" else n.activation(shape, like=x)
    return n.add(kind, (x.number, n.integers(axes)), y, "ReducerOptions", KeepDims=keep)


@anywhere
def best(n: Network, x: Activation) -> Activation | None:
    """The largest of each row, in order; where they stood is an output."""
    if n.kind == INT16 or x.shape[-1] < 2:
        return None
    k = n.number(1, min(x.shape[-1], 5))
    y = n.activation((*x.shape[:-1], k), like=x)
    places = n.tensor(T("", y.shape, INT32, (), ()))
    count = n.tensor(T("", (), INT32, (), data=np.asarray(k, "int32")))
    n.operators.append(Op("TOPK_V2", (x.number, count), (y.number, places), "TopKV2Options", {}))
    n.ends.append(places)
    n.values.append(y)
    return y


@anywhere
def picked(n: Network, x: Activation) -> Activation | None:
    if len(x.shape) < 2:
        return None
    deep, rows = n.number(1, len(x.shape)), n.number(1, 9)
    places = [[n.number(0, d - 1) for d in x.shape[:deep]] for _ in range(rows)]
    y = n.activation((rows, *x.shape[deep:]), like=x)
    return n.add("GATHER_ND", (x.number, n.integers(places)), y, "GatherNdOptions")


@anywhere
def island(n: Network, x: Activation) -> Activation | None:
    """Floats between two quantisations: sums and products, which round alike everywhere."""
    if not n.whole:
        return None
    size = n.spread(x)

    def floats(data: np.ndarray | None = None) -> int:
        return n.tensor(T("", x.shape if data is None else data.shape, FLOAT32, (), data=data))

    last = floats()
    n.operators.append(Op("DEQUANTIZE", (x.number,), (last,), "DequantizeOptions", {}))
    for _ in range(n.number(1, 2)):
        kind = n.pick("ADD", "MUL", "SUB", "RELU", "MAXIMUM")
        shape = n.pick(x.shape, (x.shape[-1],), (1,))
        data = (n.rng.normal(1, 0.5, shape) * (1 if kind == "MUL" else size)).astype("float32")
        inputs = (last,) if kind == "RELU" else (last, floats(data))
        options = {"RELU": None, "MAXIMUM": "MaximumMinimumOptions"}.get(kind, f"{kind.capitalize()}Options")
        fields = {"FusedActivationFunction": n.pick(0, 0, 1)} if kind in ("ADD", "MUL", "SUB") else {}
        last = floats()
        n.operators.append(Op(kind, inputs, (last,), options, fields))
    return n.add("QUANTIZE", (last,), n.activation(x.shape, 1.3 * size), "QuantizeOptions")


@anywhere
def recurrent(n: Network, x: Activation) -> Activation | None:
    """An LSTM or SVDF of floats, with weights of 8 bits where the network is hybrid: both remember."""
    if n.whole or len(x.shape) not in (2, 3):
        return None
    units, inputs = n.number(1, 12), x.shape[-1]
    if not n.affordable(int(np.prod(x.shape[:-1])) * units, 4 * (units + inputs)):
        return None
    n.remembers = True
    fields: dict[str, Any] = {"AsymmetricQuantizeInputs": bool(n.number(0, 1))} if n.hybrid else {}
    if len(x.shape) == 2:
        rank, memory = n.number(1, 2), n.number(1, 8)
        feature, _, width = n.weights((units * rank, inputs), 0, inputs, x, 1)
        time, _, _ = n.weights((units * rank, memory), 0, memory, x, 1)
        kept = T("", (x.shape[0], memory * units * rank), FLOAT32, (), variable=True)
        y = n.activation((x.shape[0], units), width * memory**0.5)
        fields |= {"Rank": rank, "FusedActivationFunction": n.pick(0, 1)}
        return n.add("SVDF", (x.number, feature, time, -1, n.tensor(kept)), y, "SVDFOptions", **fields)
    small = Activation(-1, (), 1, 0)
    places = [x.number]
    for size in (inputs, units):
        places += [n.weights((units, size), 0, size, small, 1)[0] for _ in range(4)]
    places += [-1] * 3
    places += [n.constant((units,), 0.5).number for _ in range(4)]
    places += [-1] * 2
    major = bool(n.number(0, 1))
    batch = x.shape[1] if major else x.shape[0]
    places += [n.tensor(T("", (batch, units), FLOAT32, (), variable=True)) for _ in range(2)]
    fields |= {"FusedActivationFunction": 4, "TimeMajor": major, "CellClip": n.pick(0.0, 0.0, 0.9)}
    y = n.activation((*x.shape[:-1], units), 0.4)
    kind = "UNIDIRECTIONAL_SEQUENCE_LSTM"
    return n.add(kind, (*places, *[-1] * 4), y, "UnidirectionalSequenceLSTMOptions", **fields)


@anywhere
def remembered(n: Network, x: Activation) -> Activation | None:
    """SVDF of 8 bits, its state of 16."""
    if n.kind != INT8 or len(x.shape) != 2:
        return None
    units, rank, memory, inputs = n.number(1, 9), n.number(1, 2), n.number(1, 8), x.shape[1]
    n.remembers = True
    rows = units * rank

    def whole(shape: tuple[int, ...], kind: int, scale: float, width: float, dtype: str) -> int:
        data = np.round(n.rng.normal(0, width, shape))
        data = np.clip(data, -np.iinfo(dtype).max, np.iinfo(dtype).max).astype(dtype)
        return n.tensor(T("", shape, kind, (scale,), (0,), data=data))

    feature_scale, time_scale = 0.01, 1 / 16384
    feature = whole((rows, inputs), INT8, feature_scale, 40, "int8")
    state_scale = float(np.float32(n.spread(x) * 0.4 * inputs**0.5 / 8000))
    time = whole((rows, memory), INT16, time_scale, 8000, "int16")
    bias_scale = float(np.float32(state_scale * time_scale))
    bias = whole((units,), INT32, bias_scale, 1e6, "int32")
    kept = n.tensor(T("", (x.shape[0], memory * rows), INT16, (state_scale,), (0,), variable=True))
    y = n.activation((x.shape[0], units), n.spread(x) * 0.4 * inputs**0.5 * 0.5 * (rank * memory) ** 0.5)
    fields = {"Rank": rank, "FusedActivationFunction": 0}
    return n.add("SVDF", (x.number, feature, time, bias, kept), y, "SVDFOptions", **fields)


@anywhere
def remembered_sequence(n: Network, x: Activation) -> Activation | None:
    """An LSTM of 8 bits, its cell of 16."""
    if n.kind != INT8 or len(x.shape) != 3:
        return None
    units, inputs, major = n.number(1, 12), x.shape[2], bool(n.number(0, 1))
    if not n.affordable(int(np.prod(x.shape[:-1])) * units, 4 * (units + inputs)):
        return None
    n.remembers = True
    places, biases = [x.number], []
    y = n.activation((*x.shape[:-1], units), 0.3)
    for size, of in ((inputs, x), (units, y)):
        for _ in range(4):
            # Gates reach some units, where they are saturated or nearly.
            scale = float(np.float32(n.pick(0.5, 2, 8) / (127 * n.spread(of) * size**0.5)))
            data = n.rng.integers(-127, 128, (units, size)).astype(np.int8)
            places.append(n.tensor(T("", data.shape, INT8, (scale,), (0,), data=data)))
            if of is x:
                unit = float(np.float32(x.scale) * np.float32(scale))
                data = np.clip(np.round(n.rng.normal(0, 0.5 / unit, units)), -(2.0**30), 2.0**30).astype(
                    np.int32
                )
                biases.append(n.tensor(T("", (units,), INT32, (unit,), (0,), data=data)))
    batch, cell = x.shape[1] if major else x.shape[0], 2.0 ** n.number(-15, -9)
    places += [*[-1] * 3, *biases, *[-1] * 2]
    places.append(n.tensor(T("", (batch, units), INT8, (y.scale,), (y.zero,), variable=True)))
    places.append(n.tensor(T("", (batch, units), INT16, (cell,), (0,), variable=True)))
    unused = [n.tensor(T("", (0,), FLOAT32, ())) for _ in range(4)]
    unused.append(n.tensor(T("", (0,), INT8, (y.scale,), (y.zero,))))
    fields = {"FusedActivationFunction": 4, "TimeMajor": major, "CellClip": n.pick(0.0, 0.0, 0.9)}
    options = "UnidirectionalSequenceLSTMOptions"
    found = n.add("UNIDIRECTIONAL_SEQUENCE_LSTM", (*places, *[-1] * 4), y, options, **fields)
    n.operators[-1] = replace(n.operators[-1], intermediates=tuple(unused))
    return found
