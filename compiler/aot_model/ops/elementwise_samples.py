"""Samples of the element-wise operators that are rows of a table."""

from __future__ import annotations

import numpy as np

from aot_model.ir.operator import Sample


def samples(name: str, arity: int) -> list[Sample]:
    """Random values in the operator's domain, broadcasting, shape (), shape with a 1, odd sizes."""
    rng = np.random.default_rng(len(name))
    logical = name in ("And", "Or", "Xor", "Not")
    bits = name.startswith("Bitwise")
    low, high = {"Sqrt": (0, 4), "Log": (0.1, 4), "Acosh": (1, 4), "Asin": (-1, 1), "Acos": (-1, 1),
                 "Atanh": (-0.9, 0.9), "Pow": (0.1, 3)}.get(name, (-3.0, 3.0))  # fmt: skip

    def draw(shape: tuple[int, ...]) -> np.ndarray:
        if logical:
            return np.asarray(rng.integers(0, 2, shape), dtype=bool)
        if bits:
            return np.asarray(rng.integers(-99, 99, shape), dtype=np.int32)
        return np.asarray(rng.uniform(low, high, shape), dtype=np.float32)

    shapes: list[tuple[tuple[int, ...], ...]] = [
        ((3, 5), (5,)),
        ((), ()),
        ((2, 1, 7), (3, 1)),
        ((1,), (1,)),
        ((4, 3), (4, 3)),
    ]
    count = 3 if arity < 0 else arity
    return [Sample(tuple(draw(s[min(i, 1)]) for i in range(count))) for s in shapes] + corners(name, arity)


_EDGES = np.asarray(
    [-np.inf, -100, -2.5, -1.5, -0.5, -0.0, 0, 0.25, 0.5, 1.5, 2.5, 3.5, 100, np.inf], np.float32
)
_WHOLE = frozenset(
    "Add Sub Mul Div Max Min Equal Less LessOrEqual Greater GreaterOrEqual Abs Neg Sign".split()
)
_ANYWHERE = frozenset(
    "Abs Neg Ceil Floor Round Sign Relu Exp Tanh Sigmoid LibmTanh LibmSigmoid Erf Softsign HardSwish Equal "
    "Less LessOrEqual Greater GreaterOrEqual Min Max Identity".split()
)


def corners(name: str, arity: int) -> list[Sample]:
    """Whole numbers, ties and infinities, where the operator takes them."""
    found = []
    if name in _WHOLE:
        a, b = (
            np.asarray([-7, 7, 0, -128, 127, 90, -1], np.int32),
            np.asarray([2, -2, 5, 3, -100, 7, -1], np.int32),
        )
        kinds = (np.int32, np.int64) if name in ("Neg", "Sign", "Div") else (np.int32, np.int64, np.int8)
        found += [
            Sample(tuple(v.astype(k) for v in (a, b)[: max(arity, 1) if arity > 0 else 2]))
            for k in kinds
            if not (k is np.int8 and name in ("Add", "Sub", "Mul", "Abs"))
        ]
    if name in _ANYWHERE:
        found.append(Sample((_EDGES, _EDGES[::-1].copy())[: max(arity, 1) if arity > 0 else 2]))
    if name == "Pow":
        x = np.asarray([0.5, 1, 2, 3.25], np.float32)
        exponents = (0.25, 0.5, 0.75, 1, 1.25, 1.75, 2, 2.5, 3, 3.25, -1, 0.3, 5, 8, 9, -2, -7, -0.25, -1.5)
        found += [Sample((x, np.asarray(p, np.float32)), constants=frozenset({1})) for p in exponents]
        far = np.asarray([0, 1e-38, 1e-9, 0.3, 7, 1e9, 3e38, np.inf], np.float32)
        found += [
            Sample((far, np.asarray(p, np.float32)), constants=frozenset({1}))
            for p in (1 / 2.000001, 0.7500009)
        ]
        ends = np.asarray([0, -0.0, -2, 1e-45, 1e-38, 1e-7, 0.3, -30, 3e38, np.inf], np.float32)
        found += [
            Sample((ends, np.asarray(p, np.float32)), constants=frozenset({1})) for p in (4, 5, -1, -3, -0.5)
        ]
        found += [
            Sample((np.asarray([1, 2, 3, -2], np.int32), np.asarray([2.0], np.float32))),
            Sample((np.asarray([1, 2, 3, -2], np.int64), np.asarray([3], np.int64))),
        ]
    return found
