"""com.microsoft: attention over the heads of a batch, with masks, biases and caches. Source: ONNX Runtime's
contrib operators.

Letters of shapes: B batch, S rows of queries, P rows of the past, T = P + S keys, N heads, H size of a head.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from aot_model.ir.operator import Arrays, Inputs, OperatorError, Sample
from aot_model.ir.types import DType
from aot_model.ir.values import Value
from aot_model.ops.composition import Algebra, Composition, in_single_precision, present
from aot_model.ops.microsoft_activation import drawn
from aot_model.ops.normalisation import scalar
from aot_model.ops.registry import Build, operator, ranked, required

LOWEST = float(np.finfo(np.float32).min)


def heads(a: Algebra, x: Value, count: int) -> Value:
    """(B, S, N * H) as (B, N, S, H)."""
    if x.type.rank != 3 or count < 1 or x.shape[2] % count:
        raise OperatorError(f"{x.type} cannot be split into {count} heads")
    return a.transpose(a.reshape(x, *x.shape[:2], count, x.shape[2] // count), 0, 2, 1, 3)


def joined(a: Algebra, x: Value) -> Value:
    """(B, N, S, H) as (B, S, N * H)."""
    b, n, s, h = ranked(x, 4).shape
    return a.reshape(a.transpose(x, 0, 2, 1, 3), b, s, n * h)


def prolonged(a: Algebra, past: Value | None, new: Value) -> Value:
    """Keys or values (B, N, S, H) behind those of the past."""
    if past is None or ranked(past, 4).shape[2] == 0:
        return new
    if past.shape[:2] + past.shape[3:] != new.shape[:2] + new.shape[3:]:
        raise OperatorError(f"the past {past.type} does not fit {new.type}")
    return a.concat(2, past, new)


@dataclass(frozen=True)
class Masking:
    """What is added to the scores (B, N, S, T) before the softmax."""

    a: Algebra
    filter_value: float
    queries: int
    keys: int
    past: int
    """How many of the keys are from before the first query."""

    def blocked(self, visible: Value) -> Value:
        """0 where the mask (integers) is positive, else the filter's value."""
        a = self.a
        seen = a.of("Greater", visible, scalar(a.build, 0, visible.dtype))
        return a.of(
            "Where",
            seen,
            scalar(a.build, 0, DType.FLOAT32),
            scalar(a.build, self.filter_value, DType.FLOAT32),
        )

    def of(self, mask: Value | None, batch: int) -> Value | None:
        """From a mask: how many keys count in each row; ends, then starts; 0 and 1 for keys; or for queries
        and keys.
        """
        a = self.a
        if mask is None:
            return None
        if mask.type.rank == 1 and mask.shape[0] in (batch, 2 * batch):
            place = a.build.constant(np.arange(self.keys, dtype=np.int32).reshape(1, 1, 1, self.keys))
            end = a.reshape(a.cut(mask, 0, 0, batch), batch, 1, 1, 1)
            seen = a.of("Less", place, end)
            if mask.shape[0] == 2 * batch:
                start = a.reshape(a.cut(mask, 0, batch, 2 * batch), batch, 1, 1, 1)
                seen = a.of("And", seen, a.of("GreaterOrEqual", place, start))
            return self.blocked(a.cast(seen, DType.INT32))
        if mask.type.rank == 2 and mask.shape == (batch, self.keys):
            return self.blocked(a.reshape(mask, batch, 1, 1, self.keys))
        if mask.type.rank == 3 and mask.shape == (batch, self.queries, self.keys):
            return self.blocked(a.reshape(mask, batch, 1, self.queries, self.keys))
        if mask.type.rank == 4 and mask.shape[:2] == (batch, 1) and min(mask.shape[2:]) >= self.keys:
            past = self.keys - self.queries
            return self.blocked(a.cut(a.cut(mask, 2, past, past + self.queries), 3, 0, self.keys))
        raise OperatorError(
            f"a mask {mask.type} for {batch} rows of {self.queries} queries and {self.keys} keys is not "
            "supported",
            "E202",
        )

    def causal(self) -> Value:
        """The lowest number for keys after a query. The last query sees all, however many keys there are."""
        after = np.arange(self.keys)[None, :] > np.arange(self.queries)[:, None] + self.past
        after[-1:] = False
        return self.a.build.constant(np.where(after, np.float32(LOWEST), np.float32(0)))


def attention(
    a: Algebra, query: Value, key: Value, value: Value, scale: float, added: list[Value | None]
) -> Value:
    """softmax(scale * Q K' + added) V, everything (B, N, rows, size of a head)."""
    scores = a.mul(a.matmul(query, a.transpose(key, 0, 1, 3, 2)), scale or 1 / math.sqrt(query.shape[3]))
    for term in added:
        scores = a.add(scores, term)
    return a.matmul(a.softmax(scores), value)


@dataclass(frozen=True)
class Projected:
    """Attention after the projection: queries, keys and values in one tensor (B, S, columns)."""

    num_heads: int
    scale: float
    unidirectional: int
    mask_filter_value: float
    sizes: tuple[int, ...] = ()
    """Columns of queries, keys and values; thirds when empty."""

    def expand(
        self, a: Algebra, qkv: Value, mask: Value | None, past: Value | None, bias: Value | None
    ) -> list[Value]:
        """[result, present]: keys and values as one tensor (2, B, N, T, H)."""
        columns = ranked(qkv, 3).shape[-1]
        sizes = self.sizes or (columns // 3,) * 3
        if len(sizes) != 3 or sum(sizes) != columns or sizes[0] != sizes[1]:
            raise OperatorError(f"{columns} columns are not queries, keys and values of {sizes}")
        ends = [0, sizes[0], sizes[0] + sizes[1], columns]
        query, key, value = (heads(a, a.cut(qkv, 2, ends[k], ends[k + 1]), self.num_heads) for k in range(3))
        if past is not None:
            if past.type.rank != 5 or past.shape[0] != 2 or sizes[2] != sizes[1]:
                raise OperatorError(f"a past {past.type} is not supported", "E202")
            parts = [a.reshape(a.cut(past, 0, k, k + 1), *past.shape[1:]) for k in (0, 1)]
            key, value = prolonged(a, parts[0], key), prolonged(a, parts[1], value)
        masking = Masking(
            a, self.mask_filter_value, query.shape[2], key.shape[2], key.shape[2] - query.shape[2]
        )
        added = [masking.of(mask, query.shape[0]), masking.causal() if self.unidirectional else None, bias]
        result = [joined(a, attention(a, query, key, value, self.scale, added))]
        if key.shape == value.shape:
            result.append(a.concat(0, a.reshape(key, 1, *key.shape), a.reshape(value, 1, *value.shape)))
        return result


def _refuse(reason: str) -> OperatorError:
    return OperatorError(
        f"{reason} is not supported", "E202", "export the model for the CPU, or without this fusion"
    )


@operator("Attention", domain="com.microsoft", inputs=7)
class Attention(Composition):
    """Self-attention with its projection. Inputs: input, weights, bias, mask, past, bias of the scores.
    Outputs: result, present.
    """

    num_heads: int
    do_rotary: int = 0
    mask_filter_value: float = -10000.0
    past_present_share_buffer: int = 0
    qkv_hidden_sizes: tuple[int, ...] = ()
    rotary_embedding_dim: int = 0
    scale: float = 0.0
    unidirectional: int = 0

    @in_single_precision
    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        if self.do_rotary or self.past_present_share_buffer or present(inputs, 6) is not None:
            raise _refuse("rotation, or a buffer that past and present share, in Attention")
        a = Algebra(build)
        qkv = a.add(a.matmul(required(inputs, 0), required(inputs, 1)), present(inputs, 2))
        core = Projected(
            self.num_heads, self.scale, self.unidirectional, self.mask_filter_value, self.qkv_hidden_sizes
        )
        return core.expand(a, qkv, present(inputs, 3), present(inputs, 4), present(inputs, 5))

    @classmethod
    def samples(cls) -> list[Sample]:
        x, w, b, weights = drawn(1, 2, 3, 4), drawn(2, 4, 24), drawn(3, 24), frozenset({1, 2})
        ends, both = np.asarray([2, 3], np.int32), np.asarray([2, 3, 0, 1], np.int32)
        keys, pairs = (
            np.asarray([[1, 1, 0], [0, 1, 1]], np.int32),
            np.asarray(np.tril(np.ones((2, 3, 3))), np.int32),
        )
        past, longer = drawn(4, 2, 2, 2, 2, 4), np.asarray([[1, 1, 0, 1, 1], [1, 1, 1, 1, 0]], np.int32)
        two = {"num_heads": 2}
        return [
            Sample((x, w, b), two, weights),
            Sample((x, w, b, ends), two, weights),
            Sample((drawn(1, 3, 3, 4), w, b, np.asarray([2, 3, 1, 0, 1, 0], np.int32)), two, weights),
            Sample((x[:1], w, b, both[1:3]), two, weights),
            Sample((x, w, b, keys), two, weights),
            Sample((x, w, b, pairs), two, weights),
            Sample((x, w, b), {**two, "unidirectional": 1, "scale": 0.7}, weights),
            Sample((x, w, b, None, past), {**two, "unidirectional": 1}, weights, 2),
            Sample((x, w, b, longer, past), two, weights, 2),
            Sample((x, w, b, None, past[:, :, :, :0]), two, weights, 2),
            Sample((x, w, b, keys, None, drawn(5, 1, 2, 3, 3)), {**two, "mask_filter_value": -5.0}, weights),
            Sample((x, drawn(6, 4, 20), drawn(7, 20)), {**two, "qkv_hidden_sizes": (8, 8, 4)}, weights),
            Sample((*(v.astype(np.float16) for v in (x, w, b)), keys), {**two, "unidirectional": 1}, weights),
        ]


def _unpacked(a: Algebra, query: Value, key: Value | None, value: Value | None) -> tuple[Value, Value, Value]:
    """Queries, keys and values apart: all three may be one tensor (B, S, N, 3, H), or keys and values one (B,
    S, N, 2, H).
    """

    def parts(packed: Value, count: int) -> list[Value]:
        b, s, n, together, h = packed.shape
        if together != count:
            raise OperatorError(f"{packed.type} does not hold {count} tensors")
        return [a.reshape(a.cut(packed, 3, k, k + 1), b, s, n * h) for k in range(count)]

    if query.type.rank == 5 and key is None and value is None:
        query, key, value = parts(query, 3)
    elif key is not None and key.type.rank == 5 and value is None:
        key, value = parts(key, 2)
    if query.type.rank != 3 or key is None or value is None or key.type.rank == 5:
        raise OperatorError(f"queries {query.type} without keys or values")
    return query, key, value


@operator("MultiHeadAttention", domain="com.microsoft", inputs=10)
class MultiHeadAttention(Composition):
    """Attention of projected queries. Inputs: query, key, value (or in one tensor), bias of the three, mask
    of the keys, bias of the scores, past keys and values (B, N, P, H). Keys and values may have their heads
    split already. Outputs: result, present keys, values."""

    num_heads: int
    mask_filter_value: float = -10000.0
    scale: float = 0.0
    unidirectional: int = 0

    @in_single_precision
    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        query, key, value, bias = (present(inputs, k) for k in range(4))
        if present(inputs, 8) is not None or present(inputs, 9) is not None:
            raise _refuse("a cache with beams (past_sequence_length, cache_indirection)")
        a, n = Algebra(build), self.num_heads
        query, key, value = _unpacked(a, required(inputs), key, value)
        width = query.shape[2]
        if bias is not None:
            ends = [0, width, 2 * width, ranked(bias, 1).shape[0]]
            parts = [a.cut(bias, 0, ends[k], ends[k + 1]) for k in range(3)]
            query = a.add(query, parts[0])
            if key.type.rank == 3:
                key, value = a.add(key, parts[1]), a.add(value, parts[2])
        if key.type.rank != value.type.rank:
            raise OperatorError(f"keys {key.type} and values {value.type} do not fit each other")
        query = heads(a, query, n)
        key, value = (v if v.type.rank == 4 else heads(a, v, n) for v in (key, value))
        new = key.shape[2]
        key, value = prolonged(a, present(inputs, 6), key), prolonged(a, present(inputs, 7), value)
        masking = Masking(a, self.mask_filter_value, query.shape[2], key.shape[2], key.shape[2] - new)
        added = [
            masking.of(present(inputs, 4), query.shape[0]),
            masking.causal() if self.unidirectional else None,
            present(inputs, 5),
        ]
        return [joined(a, attention(a, query, key, value, self.scale, added)), key, value]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        """With a mask of the keys at the most: ONNX Runtime refuses packed tensors on a CPU."""
        kind = np.asarray(arrays[0]).dtype
        query, key, value, bias, mask, added, *past = (
            None if v is None else np.asarray(v, np.float64) for v in (*arrays, *[None] * 8)[:8]
        )
        assert query is not None
        if query.ndim == 5:
            query, key, value = (query[..., k, :].reshape(*query.shape[:2], -1) for k in range(3))
        elif key is not None and key.ndim == 5:
            key, value = (key[..., k, :].reshape(*key.shape[:2], -1) for k in range(2))
        parts = (
            np.split(bias, [query.shape[2], 2 * query.shape[2]]) if bias is not None else [np.zeros(1)] * 3
        )
        q, k, v = (
            (x if x.ndim == 4 else (x + b).reshape(*x.shape[:2], self.num_heads, -1).transpose(0, 2, 1, 3))
            for x, b in zip((query, key, value), parts, strict=True)
            if x is not None
        )
        k, v = (x if p is None else np.concatenate([p, x], 2) for x, p in zip((k, v), past, strict=True))
        scores = q @ k.transpose(0, 1, 3, 2) * (self.scale or q.shape[3] ** -0.5) + (
            0 if added is None else added
        )
        scores = (
            scores
            if mask is None
            else scores + np.where(mask > 0, 0, self.mask_filter_value)[:, None, None, :]
        )
        if self.unidirectional:
            before = 0 if past[0] is None else past[0].shape[2]
            seen = np.tri(scores.shape[2], scores.shape[3], before)
            seen[-1] = 1
            scores = np.where(seen, scores, -np.inf)
        powers = np.exp(scores - scores.max(-1, keepdims=True))
        y = (powers / powers.sum(-1, keepdims=True)) @ v
        return [x.astype(kind) for x in (y.transpose(0, 2, 1, 3).reshape(*y.shape[:1], y.shape[2], -1), k, v)]

    @classmethod
    def samples(cls) -> list[Sample]:
        q, k, v, bias = drawn(1, 2, 3, 8), drawn(2, 2, 5, 8), drawn(3, 2, 5, 8), drawn(4, 24)
        keys, past = (
            np.asarray([[1, 1, 0, 1, 0], [1, 1, 1, 1, 1]], np.int32),
            (drawn(5, 2, 2, 2, 4), drawn(6, 2, 2, 2, 4)),
        )
        two, same = {"num_heads": 2}, (q, drawn(7, 2, 3, 8), drawn(8, 2, 3, 8))
        return [
            Sample((q, k, v), two),
            Sample((q, k, v, bias), two, frozenset({3})),
            Sample((q, k, v, bias, keys), two, frozenset({3})),
            Sample((q, k, v, None, None, drawn(9, 1, 2, 3, 5)), {**two, "scale": 0.3}),
            Sample((*same, None, None, None, *past), two, outputs=3),
            Sample((*same, None, None, None), {**two, "unidirectional": 1}),
            Sample((q, k, v), {**two, "unidirectional": 1}),
            Sample((q, k, drawn(3, 2, 5, 4)), two),
            Sample((q, drawn(2, 2, 2, 5, 4), drawn(3, 2, 2, 5, 4)), two),
            Sample((*same, None, None, drawn(9, 2, 2, 3, 5), *past), {**two, "unidirectional": 1}, outputs=3),
            Sample((drawn(7, 2, 3, 2, 3, 4),), two),
            Sample((drawn(7, 2, 3, 2, 3, 4), None, None, bias), two, frozenset({3})),
            Sample((q, drawn(8, 2, 5, 2, 2, 4)), {**two, "scale": 0.4}),
            Sample((*(v.astype(np.float16) for v in (q, k, v, bias)), keys), two, frozenset({3}), 3),
        ]


def rotated(a: Algebra, x: Value, cosine: Value, sine: Value, interleaved: int) -> Value:
    """x (B, N, S, H) turned by pairs of elements: cosine and sine are (B or 1, 1, S, half of what is
    turned).
    """
    half = cosine.shape[-1]
    turned = a.cut(x, 3, 0, 2 * half)
    if interleaved:
        pairs = a.reshape(turned, *x.shape[:3], half, 2)
        first, second = (a.reshape(a.cut(pairs, 4, k, k + 1), *x.shape[:3], half) for k in (0, 1))
    else:
        first, second = a.cut(turned, 3, 0, half), a.cut(turned, 3, half, 2 * half)
    real = a.sub(a.mul(first, cosine), a.mul(second, sine))
    imaginary = a.add(a.mul(first, sine), a.mul(second, cosine))
    if interleaved:
        pairs = a.concat(4, *(a.reshape(v, *v.shape, 1) for v in (real, imaginary)))
        y = a.reshape(pairs, *x.shape[:3], 2 * half)
    else:
        y = a.concat(3, real, imaginary)
    return y if 2 * half == x.shape[3] else a.concat(3, y, a.cut(x, 3, 2 * half, x.shape[3]))


def angles(a: Algebra, cache: Value, positions: Value, x: Value) -> Value:
    """Rows of a cache of cosines or sines for positions (B, S) or (1, S) of x (B, N, S, H), as (B, 1, S,
    half).

    Raises OperatorError where positions do not fit x.
    """
    batch, _, steps, _ = x.shape
    if positions.shape not in ((batch, steps), (1, steps)):
        raise OperatorError(f"positions {positions.type} are not one for each of {batch} x {steps} rows")
    rows = a.gather(cache, positions)
    return a.reshape(rows, rows.shape[0], 1, *rows.shape[1:])


@operator("RotaryEmbedding", domain="com.microsoft", inputs=4)
class RotaryEmbedding(Composition):
    """Rotation of queries or keys by their positions. Inputs: x (B, S, N * H) or (B, N, S, H), positions (B,
    S) or the first, caches.
    """

    interleaved: int = 0
    is_packed_batching: int = 0
    num_heads: int = 0
    rotary_embedding_dim: int = 0
    scale: float = 1.0

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        a, x, positions, cosine, sine = Algebra(build), *(required(inputs, k) for k in range(4))
        if self.is_packed_batching:
            raise _refuse("packed batching")
        flat = ranked(x, 3, 4).type.rank == 3
        if not ranked(cosine, 2).type.elements or sine.shape != cosine.shape:
            raise OperatorError(f"caches {cosine.type} and {sine.type} are not of positions and angles")
        count = self.num_heads or (x.shape[-1] // (2 * cosine.shape[-1]) if flat else 0)
        y = heads(a, x, count) if flat else x
        turned = 2 * cosine.shape[-1]
        if turned != (self.rotary_embedding_dim or y.shape[3]):
            raise OperatorError(
                f"caches turn {turned} of the {y.shape[3]} elements of {x.type}, which "
                "rotary_embedding_dim does not say"
            )
        if positions.type.elements == 1 and positions.type.rank == 1:
            steps = build.constant(np.arange(y.shape[2], dtype=np.int64).reshape(1, -1))
            positions = a.add(steps, positions)
        by = angles(a, cosine, positions, y), angles(a, sine, positions, y)
        y = rotated(a, y, *by, self.interleaved)
        return [joined(a, y) if flat else y]

    @classmethod
    def samples(cls) -> list[Sample]:
        x, first, each = (
            drawn(1, 2, 3, 16),
            np.asarray([1], np.int64),
            np.asarray([[0, 4, 2], [1, 1, 3]], np.int64),
        )
        caches, small = (
            (drawn(2, 8, 4, most=1), drawn(3, 8, 4, most=1)),
            (drawn(2, 8, 2, most=1), drawn(3, 8, 2, most=1)),
        )
        tables = frozenset({2, 3})
        return [
            Sample((x, first, *caches), {}, tables),
            Sample((x, each, *caches), {"interleaved": 1}, tables),
            Sample((drawn(4, 2, 2, 3, 8), each, *caches), {}, tables),
            Sample((x, each, *small), {"num_heads": 2, "rotary_embedding_dim": 4}, tables),
        ]
