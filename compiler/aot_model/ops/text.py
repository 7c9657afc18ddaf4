"""TfIdfVectorizer: how often n-grams of a vocabulary occur.

Words (or integers) become numbers of a vocabulary first; n-grams are then sorted rows of such numbers, found
by binary search. Source: ONNX operator specification.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from aot_model.c.text import CText, block, product
from aot_model.ir.operator import Arrays, Inputs, Operator, OperatorError, Sample
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value
from aot_model.kernels.arguments import Argument, written
from aot_model.kernels.base import Packed
from aot_model.kernels.site import Site
from aot_model.ops.lookup import FindKey
from aot_model.ops.registry import Build, operator, required
from aot_model.ops.strings import possible, texts

Gram = tuple[tuple[int, ...], int]
"""Numbers of its words, and its place in the output."""


@operator("CountGrams", domain="aot", stores_itself=True)
class CountGrams(Operator):
    """How often each n-gram occurs in a row, its words up to `skips` others apart from each other."""

    grams: tuple[tuple[Gram, ...], ...]
    """For each length: sorted."""
    outputs: int
    skips: int = 0
    weights: tuple[float, ...] | None = None
    """Factor of each output."""
    once: bool = False
    """Whether an n-gram that occurs counts as 1 however often it does."""

    def infer(self, inputs: Inputs) -> list[TensorType]:
        return [TensorType(DType.FLOAT32, (*required(inputs).shape[:-1], self.outputs))]

    def lower(self, site: Site) -> None:
        x, y = site.input(0), site.node.outputs[0]
        words = x.shape[-1]
        tables: dict[str, np.ndarray] = {}
        text = CText()
        with text.loop(
            "r", str(x.type.elements // words if words else y.type.elements // max(self.outputs, 1))
        ):
            if self.grams:
                text.line(f"const int32_t *const row = x + r * {words};")
            text.line(f"float *const out = y + r * {self.outputs};")
            text.line(f"memset(out, 0, {4 * self.outputs}u);")
            for grams in self.grams:
                n = len(grams[0][0])
                tables[f"grams{n}"] = np.asarray([g for g, _ in grams], np.int32)
                tables[f"places{n}"] = np.asarray([p for _, p in grams], np.int32)
                steps = range(1, self.skips + 2) if n > 1 else range(1, 2)
                ahead = product("step" if len(steps) > 1 else "1", n - 1)
                first = f"for (int32_t step = 1; step <= {len(steps)}; step++)"
                with (
                    text.block(first) if len(steps) > 1 else nullcontext(),
                    text.block(f"for (int32_t i = 0; i < {words} - {ahead}; i++)"),
                ):
                    text.line(
                        f"const int32_t k = find_gram(row + i, {'step' if len(steps) > 1 else 1}, grams{n}, "
                        f"{len(grams)}, {n});"
                    )
                    with text.block("if (k >= 0)"):
                        text.line(f"out[places{n}[k]] += 1.0f;")
            if self.once or self.weights is not None:
                if self.weights is not None:
                    tables["weights"] = np.asarray(self.weights, np.float32)
                with text.loop("k", str(self.outputs)):
                    count = "(out[k] > 0.0f ? 1.0f : 0.0f)" if self.once else "out[k]"
                    text.line(f"out[k] = {count}{' * weights[k]' if self.weights is not None else ''};")
        arguments = [
            Argument("x", x),
            *(Argument(k, Packed(k, v)) for k, v in tables.items()),
            written("y", y),
        ]
        note = f"{sum(map(len, self.grams))} n-grams"
        site.call(
            "count_grams",
            block(text),
            arguments,
            includes={"string.h"},
            helpers=(_FIND_GRAM,) if self.grams else (),
            note=note,
        )

    @classmethod
    def samples(cls) -> list[Sample]:
        x = np.asarray([[0, 1, 2, 1, 2, 0, 3], [2, 2, 2, 2, 9, 0, 1]], np.int32)
        one, two = (((0,), 3), ((2,), 0)), (((0, 1), 2), ((1, 2), 1), ((2, 2), 4))
        kinds: list[dict[str, Any]] = [
            {"grams": (one, two)},
            {"grams": (two,), "skips": 2},
            {"grams": (one, two), "weights": (0.5, 2, 3, 1, 0)},
            {"grams": (two,), "skips": 1, "once": True},
        ]
        kinds.append({"grams": (one,), "once": True, "weights": (0.5, 2, 3, 1, 0)})
        return [Sample((x,), {"outputs": 5, **k}) for k in kinds] + [
            Sample((x[0],), {"outputs": 5, "grams": (two,)}),
            Sample((x[:, :0],), {"outputs": 5, "grams": (one, two)}),
        ]

    def reference(self, arrays: Arrays) -> list[np.ndarray]:
        x = np.asarray(arrays[0])
        y = np.zeros((*x.shape[:-1], self.outputs), np.float32)
        rows = x.reshape(y.size // self.outputs, x.shape[-1])
        for row, out in zip(rows, y.reshape(-1, self.outputs), strict=True):
            for gram, place in (pair for grams in self.grams for pair in grams):
                for step in range(1, self.skips + 2 if len(gram) > 1 else 2):
                    ahead = (len(gram) - 1) * step
                    out[place] += sum(
                        tuple(row[i : i + ahead + 1 : step]) == gram for i in range(x.shape[-1] - ahead)
                    )
        y = np.minimum(y, 1) if self.once else y
        return [y if self.weights is None else y * np.asarray(self.weights, np.float32)]


_FIND_GRAM = """\
/* Place of the n words row[0], row[step] … among the sorted rows of n words, -1 when they are none of them. */
AOT_MODEL_OPAQUE static int32_t find_gram(const int32_t *row, int32_t step, const int32_t *grams, int32_t count, int32_t n)
{
    int32_t low = 0;
    int32_t high = count;

    while (low < high) {
        const int32_t middle = low + (high - low) / 2;
        int32_t k = 0;
        while (k < n && row[k * step] == grams[middle * n + k]) {
            ++k;
        }
        if (k == n) {
            return middle;
        }
        if (row[k * step] < grams[middle * n + k]) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    return -1;
}"""  # noqa: E501


@operator("TfIdfVectorizer", strings=True)
class TfIdfVectorizer(Operator):
    """Counts of n-grams (TF), whether they occur times a weight (IDF), or counts times weights (TFIDF)."""

    mode: str
    max_gram_length: int
    max_skip_count: int
    min_gram_length: int
    ngram_counts: tuple[int, ...]
    ngram_indexes: tuple[int, ...]
    pool_int64s: tuple[int, ...] = ()
    pool_strings: tuple[str, ...] = ()
    weights: tuple[float, ...] = ()

    def _grams(self) -> list[tuple[tuple[Any, ...], int, float]]:
        """(words, place in the output, weight) of every n-gram of the pool."""
        pool: Sequence[Any] = [w.encode() for w in self.pool_strings] or self.pool_int64s
        found: list[tuple[Any, ...]] = []
        if not self.ngram_counts:
            raise OperatorError("ngram_counts is empty")
        for n, (begin, end) in enumerate(
            zip(self.ngram_counts, (*self.ngram_counts[1:], len(pool)), strict=True), 1
        ):
            if not 0 <= begin <= end <= len(pool) or (end - begin) % n:
                raise OperatorError(
                    f"ngram_counts {list(self.ngram_counts)} do not fit a pool of {len(pool)}"
                )
            found += [tuple(pool[k : k + n]) for k in range(begin, end, n)]
        weights = self.weights or (1.0,) * len(found)
        if len(found) != len(self.ngram_indexes) or len(weights) != len(found):
            raise OperatorError(
                f"the pool has {len(found)} n-grams; there are {len(self.ngram_indexes)} indexes and "
                f"{len(weights)} weights"
            )
        if not found:
            raise OperatorError("the pool has no n-grams")
        if min(self.ngram_indexes) < 0:
            raise OperatorError("an index of an n-gram is negative")
        return list(zip(found, self.ngram_indexes, weights, strict=True))

    def infer(self, inputs: Inputs) -> list[TensorType]:
        x = required(inputs)
        if self.mode not in ("TF", "IDF", "TFIDF"):
            raise OperatorError(f"mode is '{self.mode}'")
        if x.type.rank not in (1, 2) or x.dtype.is_string != bool(self.pool_strings):
            raise OperatorError(f"{x.type} does not fit the pool")
        self._grams()
        return [TensorType(DType.FLOAT32, (*x.shape[:-1], max(self.ngram_indexes) + 1))]

    def expand(self, build: Build, inputs: Inputs) -> list[Value]:
        x, grams = required(inputs), self._grams()
        outputs = self.infer(inputs)[0].shape[-1]
        wanted = [
            (words, place)
            for words, place, _ in grams
            if all(possible(w, x.dtype) for w in words)
            and self.min_gram_length <= len(words) <= self.max_gram_length
        ]
        vocabulary = sorted({word for words, _ in wanted for word in words})
        number = {word: k for k, word in enumerate(vocabulary)}
        by_length: dict[int, dict[tuple[int, ...], int]] = {}
        for words, place in wanted:
            by_length.setdefault(len(words), {})[tuple(number[w] for w in words)] = place
        weights = np.ones(outputs, np.float32)
        weights[[place for _, place, _ in grams]] = [weight for _, _, weight in grams]
        scaled = self.mode != "TF" and bool(np.any(weights != 1))
        rows = tuple(tuple(sorted(by_length[n].items())) for n in sorted(by_length))
        skips = min(max(self.max_skip_count, 0), x.shape[-1])  # more do not fit a row, nor a C integer
        counts = CountGrams(
            rows, outputs, skips, tuple(weights.tolist()) if scaled else None, self.mode == "IDF"
        )
        return [build(counts, build(FindKey(tuple(vocabulary)), x))]

    @classmethod
    def samples(cls) -> list[Sample]:
        pool: dict[str, Any] = {
            "ngram_counts": (0, 3),
            "ngram_indexes": (0, 1, 2, 5, 4),
            "pool_int64s": (2, 3, 5, 5, 4, 4, 5),
            "weights": (0.5, 2.0, 1.0, 3.0, 0.25),
        }
        words = {k: v for k, v in pool.items() if k != "pool_int64s"} | {
            "pool_strings": ("two", "three", "five", "five", "four", "four", "five")
        }
        x = np.asarray([[1, 1, 3, 3, 3, 7], [8, 5, 4, 5, 6, 8]], np.int32)
        s = texts("five", "four", "zwei", "five", "two", "two")
        forms = [("TF", 1, 1, 0), ("TF", 1, 2, 0), ("IDF", 2, 2, 1), ("TFIDF", 1, 2, 3)]

        def form(m: str, low: int, high: int, skip: int) -> dict[str, Any]:
            return {"mode": m, "min_gram_length": low, "max_gram_length": high, "max_skip_count": skip}

        return [
            Sample((v,), {**form(*f), **p})
            for f in forms
            for v, p in ((x, pool), (x[1].astype(np.int64), pool), (s, words), (s.reshape(2, 3), words))
        ]
