"""com.microsoft: attention with fewer heads of keys than of queries, and a cache. Source: ONNX Runtime's
contrib operators.

Letters of shapes as in microsoft_attention.py; K heads of keys and values.
"""

from __future__ import annotations

import math

import numpy as np

from aot_model.ir.expr import Expr, Index, call, const, select
from aot_model.ir.operator import Arrays, At, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.ops.composition import Algebra, Composition, present
from aot_model.ops.elementwise import op
from aot_model.ops.microsoft_activation import drawn
from aot_model.ops.microsoft_attention import LOWEST, angles, heads, joined, rotated
from aot_model.ops.microsoft_normalisation import simplified
from aot_model.ops.movement import safe_index
from aot_model.ops.normalisation import scalar
from aot_model.ops.registry import Build, bounded, counts, operator, ranked, required, static, whole


@operator("CacheAppend", domain="aot")
class CacheAppend(Operator):
    """Of each row of the batch: the first `lengths[b]` of the past (B, K, P, H), then the new ones (B, K, S,
    H), room for `room`.
    """

    room: int

    def infer(self, inputs: Inputs) -> list[TensorType]:
        past, new = ranked(required(inputs, 0), 4), ranked(required(inputs, 1), 4)
        lengths = ranked(required(inputs, 2), 1)
        counts(lengths)
        fits = past.dtype is new.dtype and lengths.shape == new.shape[:1]
        if not fits or past.shape[:2] + past.shape[3:] != new.shape[:2] + new.shape[3:]:
            raise OperatorError(f"a cache {past.type} of lengths {lengths.type} does not take {new.type}")
        return [TensorType(past.dtype, (*new.shape[:2], self.room, new.shape[3]))]

    def express(self, at: At, inputs: Inputs, index: Index, output: int) -> Expr:
        past, new, lengths = (required(inputs, k) for k in range(3))
        b, k, t, d = index
        length = at(lengths, (b,))
        behind = call("sub", t, length)
        old = at(past, (b, k, safe_index(call("min", t, const(past.shape[2] - 1)), past.shape[2]), d))
        most = const(new.shape[2] - 1)
        fresh = at(new, (b, k, call("max", call("min", behind, most), const(0)), d))
        return select(call("lt", t, length, dtype=DType.BOOL), old, fresh)

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        past, new, lengths = (np.asarray(v) for v in arrays)
        y = np.empty((*new.shape[:2], self.room, new.shape[3]), new.dtype)
        for b, n in enumerate(lengths.tolist()):
            y[b] = np.concatenate([past[b, :, :n], new[b], *[new[b, :, -1:]] * self.room], axis=1)[
                :, : self.room
            ]
        return [y]

    @classmethod
    def samples(cls) -> list[Sample]:
        return [
            Sample(
                (drawn(1, 3, 2, 4, 5), drawn(2, 3, 2, s, 5), np.asarray([0, 4, 2], np.int32)), {"room": 4 + s}
            )
            for s in (1, 3)
        ]


@operator("GroupQueryAttention", domain="com.microsoft", inputs=16)
class GroupQueryAttention(Composition):
    """Causal attention where several heads of queries share one of keys. Outputs: result, present keys and
    values.

    Inputs: query (or all three packed), key, value, past keys and values, lengths - 1, the longest length
    (constant), caches of cosine and sine, positions, bias of the scores, sinks of the heads, scales of the
    cache, weights of the norms of query and key.
    """

    kv_num_heads: int
    num_heads: int
    causal: int = 1
    do_rotary: int = 0
    k_quant_type: str = "NONE"
    kv_cache_bit_width: int = 0
    local_window_size: int = -1
    qk_norm_epsilon: float = 1e-6
    qk_output: int = 0
    rotary_interleaved: int = 0
    scale: float = 0.0
    sliding_window_cache: int = 0
    smooth_softmax: int = -1
    softcap: float = 0.0
    v_quant_type: str = "NONE"

    def _check(self, inputs: Inputs) -> None:
        for what, here in (
            (
                "a quantised cache",
                self.k_quant_type != "NONE" or self.v_quant_type != "NONE" or self.kv_cache_bit_width,
            ),
            ("the output of scores", self.qk_output),
            ("a cache that is a sliding window", self.sliding_window_cache),
            ("attention that is not causal", not self.causal),
            ("a local window without keys", self.local_window_size == 0),
        ):
            if here:
                raise OperatorError(f"{what} is not supported", "E202", "export the model without it")

    def _split(self, a: Algebra, inputs: Inputs) -> tuple[Value, Value, Value]:
        """Queries, keys and values with their heads apart."""
        query, key, value = ranked(required(inputs, 0), 3), present(inputs, 1), present(inputs, 2)
        n, k = self.num_heads, self.kv_num_heads
        if min(n, k) < 1 or n % k:
            raise OperatorError(f"{n} heads of queries cannot share {k} of keys")
        if key is None or value is None:
            width = query.shape[2] // (n + 2 * k)
            ends = [0, n * width, (n + k) * width, (n + 2 * k) * width]
            query, key, value = (a.cut(query, 2, ends[i], ends[i + 1]) for i in range(3))
        return heads(a, query, n), heads(a, key, k), heads(a, value, k)

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        self._check(inputs)
        a = Algebra(build)
        query, key, value = self._split(a, inputs)
        batch, _, rows, _ = query.shape
        weights = present(inputs, 14), present(inputs, 15)
        if (weights[0] is None) != (weights[1] is None):
            raise OperatorError("queries and keys are normalised together, or neither")
        query, key = (
            v if w is None else simplified(a, v, w, self.qk_norm_epsilon)[0]
            for v, w in zip((query, key), weights, strict=True)
        )
        longest = static(inputs, 6, "the longest length (total_sequence_length)")
        if longest is None:
            raise OperatorError("the longest length is missing")
        total = whole(longest, "the longest length")
        bounded(total)  # before there is a table of places
        last = a.reshape(required(inputs, 5), batch)
        # The first call has no past, whatever the lengths are: shorter rows are padded behind.
        length = a.mul(last, 0) if total == rows else a.sub(last, rows - 1)
        if self.do_rotary:
            query, key = self._turned(a, inputs, query, key, length)
        past = present(inputs, 3), present(inputs, 4)
        before = 0 if past[0] is None else ranked(past[0], 4).shape[2]
        room = max(total, before)
        if before and past[0] is not None and past[1] is not None:
            key, value = (
                build(CacheAppend(room), p, v, length) for p, v in zip(past, (key, value), strict=True)
            )
        elif rows != room:
            raise OperatorError(f"{rows} rows, and no past, are not a length of {total}")
        y = self._attend(a, inputs, query, key, value, length)
        return [joined(a, y), key, value]

    def _turned(
        self, a: Algebra, inputs: Inputs, query: Value, key: Value, length: Value
    ) -> tuple[Value, Value]:
        cosine, sine, positions = *(ranked(required(inputs, k), 2) for k in (7, 8)), present(inputs, 9)
        if positions is None:
            steps = a.build.constant(np.arange(query.shape[2], dtype=np.int32).reshape(1, -1))
            positions = a.add(a.reshape(length, length.shape[0], 1), steps)
        by = angles(a, cosine, positions, query), angles(a, sine, positions, query)
        return rotated(a, query, *by, self.rotary_interleaved), rotated(a, key, *by, self.rotary_interleaved)

    def _attend(
        self, a: Algebra, inputs: Inputs, query: Value, key: Value, value: Value, length: Value
    ) -> Value:
        batch, n, rows, width = query.shape
        shared, keys = n // self.kv_num_heads, key.shape[2]
        # The queries of a group lie one behind the other: one product for each head of keys.
        grouped = a.reshape(query, batch, self.kv_num_heads, shared * rows, width)
        scores = a.mul(a.matmul(grouped, a.transpose(key, 0, 1, 3, 2)), self.scale or 1 / math.sqrt(width))
        scores = a.reshape(scores, batch, n, rows, keys)
        if self.softcap > 0:
            scores = a.mul(a.of("Tanh", a.div(scores, self.softcap)), self.softcap)
        scores = a.add(scores, present(inputs, 10))
        at = a.add(
            a.build.constant(np.arange(rows, dtype=np.int32).reshape(1, 1, rows, 1)),
            a.reshape(length, batch, 1, 1, 1),
        )
        place = a.build.constant(np.arange(keys, dtype=np.int32).reshape(1, 1, 1, keys))
        seen = a.of("LessOrEqual", place, at)
        if self.local_window_size > 0:
            seen = a.of("And", seen, a.of("Greater", place, a.sub(at, self.local_window_size)))
        scores = a.of("Where", seen, scores, scalar(a.build, LOWEST, scores.dtype))
        sink = present(inputs, 11)
        if sink is not None and sink.shape != (n,):
            raise OperatorError(f"the sink {sink.type} is not a number for each of {n} heads")
        share = (
            a.softmax(scores) if sink is None and self.smooth_softmax != 1 else self._smooth(a, scores, sink)
        )
        y = a.matmul(a.reshape(share, batch, self.kv_num_heads, shared * rows, keys), value)
        return a.reshape(y, batch, n, rows, width)

    @staticmethod
    def _smooth(a: Algebra, scores: Value, sink: Value | None) -> Value:
        """Softmax with one more score, of 0 or the head's own, that nothing is taken from."""
        zero = scalar(a.build, 0, scores.dtype) if sink is None else a.reshape(sink, 1, sink.shape[0], 1, 1)
        largest = a.build(op("Max"), a.reduced("ReduceMax", scores, 3), zero)
        powers = a.of("Exp", a.sub(scores, largest))
        return a.div(powers, a.add(a.reduced("ReduceSum", powers, 3), a.of("Exp", a.sub(zero, largest))))

    @classmethod
    def samples(cls) -> list[Sample]:
        q, k, v = drawn(1, 2, 3, 64), drawn(2, 2, 3, 32), drawn(3, 2, 3, 32)
        heads_of = {"num_heads": 4, "kv_num_heads": 2}
        full, three = np.asarray([2, 2], np.int32), np.asarray(3, np.int32)
        caches = drawn(4, 8, 8, most=1), drawn(5, 8, 8, most=1)
        empty = drawn(6, 2, 2, 0, 16)
        one = (
            drawn(1, 2, 1, 64),
            drawn(2, 2, 1, 32),
            drawn(3, 2, 1, 32),
            drawn(6, 2, 2, 4, 16),
            drawn(7, 2, 2, 4, 16),
        )
        now, five = np.asarray([4, 4], np.int32), np.asarray(5, np.int32)
        c, r = frozenset({6}), frozenset({6, 7, 8})
        return [
            Sample((q, k, v, empty, empty, full, three), heads_of, c, 3),
            Sample((*one, now, five), heads_of, c, 3),
            Sample((*one, now, five, *caches), {**heads_of, "do_rotary": 1}, r, 3),
            Sample((*one, now, five, *caches), {**heads_of, "do_rotary": 1, "rotary_interleaved": 1}, r, 3),
            Sample(
                (q, k, v, empty, empty, full, three, *caches),
                {**heads_of, "do_rotary": 1, "scale": 0.4},
                r,
                3,
            ),
            Sample(
                (drawn(8, 2, 1, 96), None, None, drawn(6, 2, 3, 4, 8), drawn(7, 2, 3, 4, 8), now, five),
                {"num_heads": 6, "kv_num_heads": 3},
                c,
                3,
            ),
            Sample((*one, now, five), {**heads_of, "softcap": 2.0}, c, 3),
            Sample((*one, now, five), {**heads_of, "local_window_size": 2}, c, 3),
            Sample((*one, now, five), {**heads_of, "smooth_softmax": 1}, c, 3),
            Sample((q, k, v, empty, empty, full, three), {**heads_of, "local_window_size": 2}, c, 3),
            Sample((*one, now, five, None, None, None, drawn(9, 1, 4, 1, 5)), heads_of, c, 3),
            Sample((*one, now, five, *[None] * 4, drawn(10, 4)), heads_of, c, 3),
            Sample((*one, now, five, *caches, np.asarray([[2], [7]])), {**heads_of, "do_rotary": 1}, r, 3),
            Sample((q, k, v, None, None, full, three, *[None] * 4, drawn(10, 4)), heads_of, c, 3),
        ]
