"""Operators that ONNX Runtime's tools write, zero points, masks, caches, groups, sizes of 1."""

from __future__ import annotations

import numpy as np
from edge_network import Edge, edge
from extreme_fragment import Rejected


def whole(n: Edge, kind: str, *shape: int) -> np.ndarray:
    """Integers of 8 bits: spread, at the ends, all the same."""
    ends = np.iinfo(kind)
    how = n.number(0, 3)
    if how == 0:
        return n.rng.choice([ends.min, ends.max], shape).astype(kind)
    if how == 1:
        return np.full(shape, n.pick(ends.min, ends.max, 0, 1), kind)
    return n.rng.integers(ends.min, ends.max, shape, endpoint=True).astype(kind)


def scale(n: Edge, *shape: int) -> np.ndarray:
    return (np.exp(n.rng.normal(0, 0.5, shape)) * n.pick(0.02, 0.02, 1e-3, 1.0)).astype(np.float32)


def zero(n: Edge, kind: str, *shape: int) -> np.ndarray:
    ends = np.iinfo(kind)
    return n.rng.choice([ends.min, ends.max, 0, (ends.min + ends.max + 1) // 2, 3], shape).astype(kind)


def optional(n: Edge, data: np.ndarray, constant: float = 1.0) -> str:
    return n.given(data, constant) if n.once(2) else ""


def floats(n: Edge, *shape: int, constant: float = 0.0, spread: float = 1.0) -> str:
    data = n.tame("float32", shape, spread)
    if n.once(4) and data.size:
        data[...] = n.pick(0.0, 1.0, -1.0, 0.5)
    return n.given(data, constant)


@edge(5)
def blocks_of_weights(n: Edge) -> str:
    """MatMulNBits."""
    bits, size = n.pick(2, 4, 4, 8), n.pick(16, 32, 64)
    k, columns = n.pick(size, size, 2 * size, size + 7, 5, 3 * size - 1), n.pick(1, 2, 3, 8, 17)
    blocks = -(-k // size)
    packed = whole(n, "uint8", columns, blocks, size * bits // 8)
    zeros = ""
    if n.once(2):
        zeros = n.known(whole(n, "uint8", columns, -(-blocks * bits // 8)).reshape(-1), "uint8")
    elif n.once(6):
        zeros = n.given(n.tame("float32", (columns * blocks,), 3), 1)
    ordered = n.once(4) and bits == 4 and not zeros and not k % size  # else ONNX Runtime errs
    groups = n.known(np.arange(k) // size, "int32") if ordered else ""
    bias = floats(n, columns, constant=0.8) if n.once(2) else ""
    if not bias and groups == "":
        groups = None  # type: ignore[assignment]
    inputs = [
        floats(n, *n.pick((1,), (3,), (2, 2), (1, 1), (0,)), k),
        n.given(packed, 1),
        n.given(scale(n, columns * blocks) * np.float32(n.pick(1, -1, 1)), 1),
        zeros,
        groups or "",
        bias,
    ]
    while not inputs[-1]:
        inputs.pop()
    n.share = 1e-4
    level = n.pick(0, 0, 1, 4)
    n.share = 2e-3 if level == 4 else n.share
    return n.runtime("MatMulNBits", inputs, K=k, N=columns, bits=bits, block_size=size, accuracy_level=level)[
        0
    ]


@edge(3)
def rows_of_blocks(n: Edge) -> str:
    """GatherBlockQuantized."""
    size, bits, rows = n.pick(16, 32), n.pick(4, 4, 8), n.number(1, 6)
    blocks = n.number(1, 3)
    data = whole(n, "uint8", rows, blocks * size * bits // 8)
    places = n.rng.integers(-rows if n.once(4) else 0, rows, n.shape(0, 2)).astype(n.pick("int32", "int64"))
    inputs = [n.given(data, 1), n.given(places, 0.2), n.given(scale(n, rows, blocks), 1)]
    if n.once(2):
        inputs.append(n.given(whole(n, "uint8", rows, -(-blocks * bits // 8)), 1))
    n.relative = True
    return n.runtime(
        "GatherBlockQuantized", inputs, bits=bits, block_size=size, gather_axis=0, quantize_axis=1
    )[0]


@edge(4)
def dynamic_products(n: Edge) -> str:
    """DynamicQuantizeMatMul, MatMulIntegerToFloat, MatMulInteger."""
    k, columns, kind = n.pick(1, 1, 4, 33), n.pick(1, 3, 9), n.pick("int8", "uint8")
    lead = n.pick((1,), (3,), (2, 3), (1, 1, 2))
    w = n.given(whole(n, kind, k, columns), 0.9)
    each = n.pick((1,), (), (columns,))
    zeros = zero(n, kind, *each)
    n.share = 1e-4
    how = n.number(0, 2)
    if how == 0:
        n.share = 2e-2  # a tie of the rounding
        inputs = [
            floats(n, *lead, k, spread=n.pick(1, 1e-3, 1e4)),
            w,
            n.given(scale(n, *each), 0.9),
            optional(n, zeros),
            floats(n, columns, constant=0.8) if n.once(2) else "",
        ]
        kind = "DynamicQuantizeMatMul"
    elif how == 1:
        of = n.pick("uint8", "uint8", "int8")
        if of == "int8" and kind == "uint8":
            raise Rejected("nobody computes it")
        inputs = [
            n.given(whole(n, of, *lead, k), 0),
            w,
            n.given(scale(n, *n.pick((), (1,))), 0.7),
            n.given(scale(n, *each), 0.9),
            optional(n, zero(n, of, 1), 0.7),
            optional(n, zeros),
            floats(n, columns, constant=0.8) if n.once(2) else "",
        ]
        kind = "MatMulIntegerToFloat"
    else:
        of = n.pick("uint8", "uint8", "int8")
        a, b = zero(n, of), zero(n, kind, *n.pick((), (columns,)))
        x = n.given(whole(n, of, *lead, k), 0)
        return n.node("MatMulInteger", [x, w, n.given(a, 0.7), n.given(b, 0.9)])[0]
    while not inputs[-1]:
        inputs.pop()
    return n.runtime(kind, inputs)[0]


@edge(3)
def quantised_lines(n: Edge) -> str:
    """QLinearSoftmax, QLinearAdd, Mul, Sigmoid, LeakyRelu, Concat and Where."""
    kind, shape, how = n.pick("int8", "uint8"), n.shape(1, 3), n.number(0, 4)
    n.steps = 1

    def by() -> list[str]:
        return [n.given(scale(n), 1), n.given(zero(n, kind), 1)]

    def x(*own: int) -> str:
        return n.given(whole(n, kind, *own), 0.1)

    if how == 0:
        y = [n.given(np.float32(1 / 256), 1), n.given(np.asarray(np.iinfo(kind).min, kind), 1)]
        y = y if n.once(2) else by()
        return n.runtime(
            "QLinearSoftmax", [x(*shape), *by(), *y], axis=n.axis(len(shape)), opset=n.pick(13, 12)
        )[0]
    if how == 1:
        other = tuple(d if n.once(2) else 1 for d in shape)
        both = [x(*shape), *by(), x(*other), *by()]
        return n.runtime(n.pick("QLinearAdd", "QLinearMul"), [*both, *by()])[0]
    if how == 2:
        return n.runtime(n.pick("QLinearSigmoid", "QLinearLeakyRelu"), [x(*shape), *by(), *by()])[0]
    if how == 3:
        axis = n.axis(len(shape))
        pieces = []
        for _ in range(n.number(1, 3)):
            own = list(shape)
            own[axis] = n.pick(0, 1, 2)
            pieces += [x(*own), *by()]
        return n.runtime("QLinearConcat", [*by(), *pieces], axis=axis)[0]
    return n.runtime(
        "QLinearWhere", [n.given(n.numbers("bool", shape), 0), x(*shape), *by(), x(*shape), *by(), *by()]
    )[0]


def _mask(n: Edge, batch: int, keys: int) -> np.ndarray:
    """0 for what nobody looks at. A row may be all 0: scores are those of floats near -10000 then."""
    found = (n.rng.random((batch, keys)) < n.pick(0.3, 0.8)).astype(np.int32)
    if n.once(4):
        found[0] = 0
    n.share = 1e-4 if found.any(-1).all() else 5e-3
    return found


@edge(3)
def attention(n: Edge) -> str:
    """Attention and QAttention: masks of lengths, of keys, of pairs; a past of any length."""
    heads, size = n.pick(1, 2), n.pick(2, 4)
    batch, rows, width, past = n.pick(1, 2), n.pick(1, 3, 4), n.pick(1, 5), n.pick(0, 0, 2)
    inner, keys = heads * size, rows + past
    masks = [
        "",
        "",
        n.given(_mask(n, batch, keys), 0.3),
        n.given(n.rng.integers(0, keys, batch, endpoint=True).astype(np.int32), 0.3) if not past else "",
        n.given((n.rng.random((batch, rows, keys)) < 0.7).astype(np.int32), 0.3),
    ]
    given = {"num_heads": heads, "unidirectional": n.number(0, 1)}
    if n.once(3):
        given["mask_filter_value"] = n.pick(-5.0, -3.4e38, -1e9)
    before = [n.given(n.tame("float32", (2, batch, heads, past, size)), 0)] if past else []
    n.share = max(n.share, 1e-4)
    if n.once(2):
        of, by = n.pick("uint8", "uint8", "int8"), n.pick("int8", "uint8")
        if of == "int8" and by == "uint8":
            raise Rejected("nobody computes it")
        each = n.pick((), (3 * inner,))
        inputs = [
            n.given(whole(n, of, batch, rows, width), 0),
            n.given(whole(n, by, width, 3 * inner), 1),
            floats(n, 3 * inner, constant=1),
            n.given(scale(n), 1),
            n.given(scale(n, *each), 1),
            n.pick(*masks[:3]),
            n.given(zero(n, of), 1),
            n.given(zero(n, by, *each), 1),
            *before,
        ]
        made = n.runtime("QAttention", inputs, 2 if past else 1, **given)
    else:
        inputs = [
            floats(n, batch, rows, width),
            floats(n, width, 3 * inner, constant=1),
            floats(n, 3 * inner, constant=1),
            n.pick(*masks),
            *(before or [""]),
        ]
        if n.once(3):
            inputs.append(n.given(n.tame("float32", (n.pick(1, batch), heads, rows, keys)), 0.3))
        while not inputs[-1]:
            inputs.pop()
        made = n.runtime("Attention", inputs, 2 if past else 1, **given)
    n.end(*made[1:])
    n.fed = {k: v for k, v in n.fed.items() if k in {i for m in n.nodes for i in m.input}}
    return made[0]


@edge(3)
def many_heads(n: Edge) -> str:
    """MultiHeadAttention with biases, masks and caches."""
    heads, size = n.pick(1, 2), n.pick(2, 4)
    batch, rows, keys, past = n.pick(1, 2), n.pick(1, 3), n.pick(1, 5), n.pick(0, 0, 2)
    wide, causal = heads * size, n.number(0, 1)
    keys = rows if causal or past else keys
    total = keys + past
    inputs = [floats(n, batch, rows, wide), floats(n, batch, keys, wide), floats(n, batch, keys, wide)]
    inputs.append(floats(n, 3 * wide, constant=1) if n.once(2) else "")
    inputs.append(n.given(_mask(n, batch, total), 0.3) if n.once(2) else "")
    inputs.append(
        n.given(n.tame("float32", (n.pick(1, batch), heads, rows, total)), 0.3) if n.once(3) else ""
    )
    if past:
        inputs += [n.given(n.tame("float32", (batch, heads, past, size)), 0) for _ in range(2)]
    while not inputs[-1]:
        inputs.pop()
    n.share = max(n.share, 1e-4)
    given = {"num_heads": heads, "unidirectional": causal}
    if n.once(3):
        given["scale"] = n.pick(0.3, 2.0)
    made = n.runtime("MultiHeadAttention", inputs, 3 if past else 1, **given)
    n.end(*made[1:])
    return made[0]


@edge(3)
def grouped_heads(n: Edge) -> str:
    """GroupQueryAttention: prompts and single tokens, windows, a soft cap, sequences that are shorter."""
    groups, size, batch = n.pick(1, 2), n.pick(8, 16), n.pick(1, 2)
    heads = groups * n.pick(1, 2)
    prompt = n.once(2)
    rows, past = (n.pick(1, 3, 4), 0) if prompt else (1, n.pick(1, 4))
    total = rows + past
    lengths = n.rng.integers(1 if prompt else past, total, batch, endpoint=True)
    if prompt:  # what rows behind an end give is open
        lengths[:] = total
    lengths[n.number(0, batch - 1)] = total
    caches = (
        [n.given(n.tame("float32", (batch, groups, past, size)), 0) for _ in range(2)] if past else [""] * 2
    )
    x = [floats(n, batch, rows, h * size) for h in (heads, groups, groups)]
    inputs = [*x, *caches, n.given((lengths - 1).astype(np.int32), 0.3), n.known(total, "int32")]
    given = {"num_heads": heads, "kv_num_heads": groups}
    if n.once(2):
        given["do_rotary"] = 1
        given["rotary_interleaved"] = n.number(0, 1)
        inputs += [n.given(n.rng.uniform(-1, 1, (8, size // 2)).astype(np.float32), 1) for _ in range(2)]
    if n.once(3):
        given["local_window_size"] = n.number(1, total)
    if n.once(3):
        given["softcap"] = n.pick(2.0, 0.5)
    if n.once(3):
        given["smooth_softmax"] = 1
    n.share = 1e-4
    return n.runtime("GroupQueryAttention", inputs, 3, **given)[0]


@edge(3)
def recurrent(n: Edge) -> str:
    """DynamicQuantizeLSTM, LSTM, GRU, RNN: sequences of other lengths, of one step, activations, clipping."""
    steps, batch, width, hidden = n.pick(1, 3), n.pick(1, 2), n.pick(1, 4), n.pick(1, 3)
    direction = n.pick("forward", "reverse", "bidirectional")
    d = 2 if direction == "bidirectional" else 1
    kind = n.pick("DynamicQuantizeLSTM", "LSTM", "GRU", "RNN")
    gates = {"GRU": 3, "RNN": 1}.get(kind, 4)
    given = {"hidden_size": hidden, "direction": direction}
    lengths = (
        n.given(n.rng.integers(0, steps, batch, endpoint=True).astype(np.int32), 0.3) if n.once(2) else ""
    )
    state = [floats(n, d, batch, hidden) if n.once(2) else "" for _ in range(2)]
    x, b = floats(n, steps, batch, width), floats(n, d, 2 * gates * hidden, constant=1) if n.once(2) else ""
    if n.once(4):
        given["clip"] = n.pick(0.1, 1.0)
    n.share = 1e-4
    if kind == "DynamicQuantizeLSTM":
        of, each = n.pick("int8", "uint8"), n.pick((d,), (d, 4 * hidden))
        w, r = (n.given(whole(n, of, d, k, 4 * hidden), 1) for k in (width, hidden))
        zeros = [zero(n, of, *each) if of == "uint8" else np.zeros(each, of) for _ in range(2)]
        n.share = 2e-2
        parts = [n.given(v, 1) for z in zeros for v in (scale(n, *each), z)]
        made = n.runtime(kind, [x, w, r, b, lengths, *state, "", *parts], 3, **given)
    else:
        w, r = (
            floats(n, d, gates * hidden, width, constant=0.9),
            floats(n, d, gates * hidden, hidden, constant=0.9),
        )
        if kind == "GRU":
            given["linear_before_reset"] = n.number(0, 1)
        inputs = [x, w, r, b, lengths, *(state if kind == "LSTM" else state[:1])]
        while not inputs[-1]:
            inputs.pop()
        made = n.node(kind, inputs, 3 if kind == "LSTM" else 2, **given)
    n.fed = {k: v for k, v in n.fed.items() if k in {i for m in n.nodes for i in m.input}}
    n.end(*made[1:])
    return made[0]


@edge(2)
def skipped(n: Edge) -> str:
    """Normalisations of what is added, of one number."""
    width = n.pick(1, 4, 9)
    shape = (n.pick(1, 2), n.pick(1, 3), width)
    simple = n.once(2)
    x = [floats(n, *shape), floats(n, *shape), floats(n, width, constant=1)]
    x += [] if simple else [floats(n, width, constant=1)]
    x += [floats(n, width, constant=1)] if n.once(2) else []
    n.share, name = 1e-4, "SkipSimplifiedLayerNormalization" if simple else "SkipLayerNormalization"
    return n.runtime(name, x, epsilon=n.pick(1e-5, 1e-12, 0.1))[0]


@edge(2)
def attended(n: Edge) -> str:
    """The standard's Attention: masks of numbers and of bits, causal, more queries than keys."""
    n.opset = n.pick(23, 24)
    heads, size, groups = n.pick(2, 4), 4, n.pick(1, 2)
    batch, rows, keys, past = n.pick(1, 2), n.pick(1, 3), n.pick(1, 5), n.pick(0, 0, 2)
    shape = [(batch, heads, rows, size), *[(batch, heads // groups, keys, size)] * 2]
    inputs = [floats(n, *s) for s in shape]
    total = keys + past
    form = n.pick((rows, total), (1, 1, rows, total), (batch, heads, rows, total))
    if n.once(2):
        mask = n.rng.random(form) < 0.7 if n.once(2) else n.tame("float32", form)
        if n.once(3) and mask.dtype != bool:
            mask[n.rng.random(form) < 0.3] = -np.inf
        if mask.ndim and (mask == False if mask.dtype == bool else mask == -np.inf).all(-1).any():  # noqa: E712
            n.open = True
        inputs.append(n.given(mask, 0.3))
    elif past:
        inputs.append("")
    if past:
        inputs += [floats(n, batch, heads // groups, past, size) for _ in range(2)]
    n.share = 1e-4
    given = {"is_causal": n.number(0, 1)}
    if n.once(3):
        given["softcap"] = 2.0
    made = n.node("Attention", inputs, 3 if past else 1, **given)
    n.end(*made[1:])
    return made[0]
