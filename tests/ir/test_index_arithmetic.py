"""The normal form of index expressions: the same numbers as Python's integers, before and after substitution,
and in C.
"""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aot_model.c.statements import CWriter
from aot_model.installation import include_dir
from aot_model.ir.bounds import bounds
from aot_model.ir.evaluate import evaluate
from aot_model.ir.expr import Call, Const, Expr, clear_interned, const, var, walk
from aot_model.ir.index import add, floordiv, less, mod, mul, sub, substitute

EXTENTS = (5, 7, 12)
Meaning = Callable[[tuple[int, ...]], int]


def variables() -> tuple[Expr, ...]:
    return tuple(var(f"v{k}", n) for k, n in enumerate(EXTENTS))


Case = tuple[Callable[[tuple[Expr, ...]], Expr], Meaning]


def _leaf(k: int) -> Case:
    return lambda v: v[k], lambda n: n[k]


def _number(c: int) -> Case:
    return lambda v: const(c), lambda n: c


def _binary(a: Case, b: Case) -> list[Case]:
    return [
        (lambda v: add(a[0](v), b[0](v)), lambda n: a[1](n) + b[1](n)),
        (lambda v: sub(a[0](v), b[0](v)), lambda n: a[1](n) - b[1](n)),
    ]


def _scaled(a: Case, c: int) -> list[Case]:
    result: list[Case] = [(lambda v: mul(a[0](v), c), lambda n: a[1](n) * c)]
    if c > 0:
        result += [
            (lambda v: floordiv(a[0](v), c), lambda n: a[1](n) // c),
            (lambda v: mod(a[0](v), c), lambda n: a[1](n) % c),
        ]
    return result


LEAVES: st.SearchStrategy[Case] = st.one_of(st.integers(0, 2).map(_leaf), st.integers(-20, 20).map(_number))
CASES: st.SearchStrategy[Case] = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        st.tuples(inner, inner, st.integers(0, 1)).map(lambda t: _binary(t[0], t[1])[t[2]]),
        st.tuples(inner, st.integers(-6, 13), st.integers(0, 2)).map(
            lambda t: _scaled(t[0], t[1])[t[2] % len(_scaled(t[0], t[1]))]
        ),
    ),
    max_leaves=8,
)


def table(x: Expr, v: tuple[Expr, ...]) -> np.ndarray:
    return evaluate(x, v, EXTENTS)


def truth(meaning: Meaning) -> np.ndarray:
    return np.asarray([meaning(n) for n in itertools.product(*map(range, EXTENTS))]).reshape(EXTENTS)


@settings(max_examples=250, deadline=None)
@given(CASES)
def test_same_numbers_as_integers(case: Case) -> None:
    clear_interned()
    v = variables()
    x = case[0](v)
    expected = truth(case[1])
    np.testing.assert_array_equal(table(x, v), expected)
    low, high = bounds(x)
    assert low is not None and high is not None and low <= expected.min() and expected.max() <= high


@settings(max_examples=150, deadline=None)
@given(CASES, st.integers(1, 12), st.integers(-9, 90))
def test_comparisons_decided_early_are_right(case: Case, n: int, limit: int) -> None:
    clear_interned()
    v = variables()
    got = evaluate(less(mod(case[0](v), n), limit), v, EXTENTS)
    np.testing.assert_array_equal(got, truth(lambda at: case[1](at) % n) < limit)


@settings(max_examples=150, deadline=None)
@given(CASES, CASES)
def test_substitution_is_composition(case: Case, inner: Case) -> None:
    clear_interned()
    v = variables()
    inside = mod(inner[0](v), EXTENTS[1])
    x = substitute(case[0](v), {v[1]: inside})
    np.testing.assert_array_equal(
        table(x, v), truth(lambda n: case[1]((n[0], inner[1](n) % EXTENTS[1], n[2])))
    )


@pytest.mark.parametrize("shape", [(2, 3, 4), (5, 1, 7), (8, 8)])
def test_reshape_there_and_back_costs_nothing(shape: tuple[int, ...]) -> None:
    clear_interned()
    v = tuple(var(f"i{k}", n) for k, n in enumerate(shape))
    flat: Expr = const(0)
    for i, n in zip(v, shape, strict=True):
        flat = add(mul(flat, n), i)
    rest = flat
    for i, n in reversed(list(zip(v, shape, strict=True))):
        assert mod(rest, n) is i
        rest = floordiv(rest, n)


def test_split_and_joined_index_is_itself() -> None:
    clear_interned()
    i = var("i", 60)
    assert add(mul(floordiv(i, 7), 7), mod(i, 7)) is i
    assert floordiv(floordiv(i, 3), 4) is floordiv(i, 12)
    assert mod(mod(i, 12), 4) is mod(i, 4)


def test_equal_expressions_are_one_object() -> None:
    clear_interned()
    i, j = var("i", 9), var("j", 4)
    assert add(mul(i, 4), j) is add(j, mul(i, 4))
    assert var("k", 1) is const(0)


# --- the same in C ------------------------------------------------------------------------------------------


@settings(max_examples=12, deadline=None)
@given(st.lists(CASES, min_size=15, max_size=15))
def test_c_gives_the_same_numbers(cases: list[Case]) -> None:
    """All of a batch in one program, under the undefined-behaviour sanitizer."""
    clear_interned()
    v = variables()
    built = [(x, case[1]) for case in cases if isinstance(x := case[0](v), Expr) and _small(x)]
    writer = CWriter(lambda c, text: "")
    texts = [writer.text(x) for x, _ in built]
    got = _run([f"{t}" for t in texts])
    for k, (_, meaning) in enumerate(built):
        np.testing.assert_array_equal(got[:, k].reshape(EXTENTS), truth(meaning), err_msg=texts[k])


def _small(x: Expr) -> bool:
    """Every sub-expression fits in an int32, as indices of tensors do."""
    for n in walk(x):
        low, high = bounds(n)
        if low is None or high is None or min(low, high) < -(2**30) or max(low, high) > 2**30:
            return False
    return isinstance(x, (Call, Const)) or True


def _run(texts: list[str]) -> np.ndarray:
    import tempfile

    loops = "".join(f"for (int32_t v{k} = 0; v{k} < {n}; ++v{k}) " for k, n in enumerate(EXTENTS))
    prints = "".join(f' printf("%d ", (int)({t}));' for t in texts)
    source = (
        "#include <stdint.h>\n#include <stdbool.h>\n#include <stdio.h>\n#include "
        f'"aot_model/scalar.h"\nint main(void) {{ {loops}{{{prints} }} return 0; }}\n'
    )
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "a.c").write_text(source)
        flags = ["-std=c99", "-O1", "-fsanitize=undefined", "-fno-sanitize-recover=all", f"-I{include_dir()}"]
        subprocess.run(["gcc", *flags, "a.c", "-o", "a", "-lm"], cwd=folder, check=True)
        out = subprocess.run(["./a"], cwd=folder, check=True, capture_output=True, text=True).stdout
    return np.asarray(out.split(), dtype=np.int64).reshape(-1, len(texts))
