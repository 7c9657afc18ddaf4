"""Inputs where others belong, of any rank and type, numbers of attributes besides, one or several at once:
each form is refused or has types, and nothing else is raised.

Mutated models come upon one of these in tens of thousands, since most do not get as far as an operator.
More of them: PYTHONPATH=tests python tests/operators/test_exchanged_inputs.py SEED COUNT [PAIRS]
"""

from __future__ import annotations

import itertools
import random
import sys
from collections.abc import Iterator, Sequence
from dataclasses import fields, replace

import numpy as np
import pytest
from changes import other_values, resized, variants
from forms import raised, rows_with_inputs
from rows import Row

from aot_model.ir.operator import OperatorError
from aot_model.ir.types import DType, TensorType
from aot_model.ir.values import Value, constant
from aot_model.ops.registry import MAX_RANK, broadcast
from turns import commit_number

STRANGERS: tuple[Value, ...] = (
    Value("real", TensorType(DType.FLOAT32, ())),
    Value("whole", TensorType(DType.INT64, ())),
    Value("deep", TensorType(DType.FLOAT32, (1, 2, 1, 2, 1, 2))),
    Value("bytes", TensorType(DType.INT8, (3,))),
    Value("flags", TensorType(DType.BOOL, (2, 2))),
    Value("nothing", TensorType(DType.UINT8, (0, 4))),
    constant("two", np.asarray(2, np.int64)),
    constant("negative", np.asarray(-3, np.int32)),
    constant("empty", np.zeros(0, np.int64)),
    constant("far", np.asarray([[-1, 5], [2**40, 0]], np.int64)),
    constant("wide", np.ones((2, 3, 2, 2, 1), np.uint8)),
    constant("steps", np.asarray([0.5, 2], np.float32)),
    constant("column", np.ones((3, 1), np.float32)),
    constant("no steps", np.zeros((2, 0), np.float32)),
    constant("no number", np.asarray(np.nan, np.float32)),
    constant("endless", np.asarray([np.inf, -1.5], np.float32)),
)
PAIRS = 50
"""Of two changed inputs, in CI: of most samples there are a thousand."""


def _exchanged(inputs: Sequence[Value | None]) -> Iterator[list[Value | None]]:
    """Each input by each of the others, by strangers, by itself as a scalar and with many axes."""
    for k, value in enumerate(inputs):
        others = [v for j, v in enumerate(inputs) if j != k and v is not None]
        own = [] if value is None else [resized(value, s, value.dtype) for s in ((), (2,) * 7)]
        for other in (*others, *STRANGERS, *own):
            yield [*inputs[:k], other, *inputs[k + 1 :]]


def _pairs(inputs: Sequence[Value | None], most: int) -> Iterator[list[Value | None]]:
    """Two inputs at once: neither, another input, a stranger, or what is near; so many of each two."""
    near = [[] if v is None else list(variants(v)) for v in inputs]
    others = [[None, *STRANGERS, *(w for w in inputs if w is not None and w is not v)] for v in inputs]
    for j, k in itertools.combinations(range(len(inputs)), 2):
        every = list(itertools.product(others[j] + near[j], others[k] + near[k]))
        for one, other in every if len(every) <= most else random.Random(1).sample(every, most):
            yield [one if n == j else other if n == k else v for n, v in enumerate(inputs)]


def _drawn(rng: random.Random, row: Row, inputs: list[Value | None]) -> tuple[Row, list[Value | None]]:
    """One to three changes, each of an input or of an attribute."""
    given, attributes = list(inputs), dict(row.sample.attributes)
    names = [f.name for f in fields(row.kind)]
    for _ in range(rng.randint(1, 3)):
        what, k = rng.random(), rng.randrange(len(given)) if given else 0
        if what < 0.45 and given:
            given[k] = rng.choice([*(v for v in inputs if v is not None), *STRANGERS])
        elif what < 0.65 and given:
            value = given[k]
            given[k] = None if value is None else rng.choice(list(variants(value)))
        elif what < 0.75 and given:
            given[k] = None
        elif what < 0.8:
            given = given[:-1]
        elif names:
            name = rng.choice(names)
            now = attributes.get(name, getattr(row.operator, name, None))
            if found := list(other_values(now, True)):
                attributes[name] = rng.choice(found)
    return replace(row, sample=replace(row.sample, attributes=attributes)), given


def campaign(seed: int, count: int) -> tuple[int, list[str]]:
    """So many forms of each sample; how many that were, and what was raised."""
    rng, found, tried = random.Random(seed), list[str](), 0
    for row, inputs in rows_with_inputs(ours=False):
        for _ in range(count):
            tried += 1
            if said := raised(*_drawn(rng, row, inputs)):
                found.append(said)
    return tried, found


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_no_input_of_another_kind_is_an_internal_error() -> None:
    rows = rows_with_inputs(ours=True)
    found = [said for row, inputs in rows for new in _exchanged(inputs) if (said := raised(row, new))]
    assert not found, "\n".join(found[:20])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_no_two_inputs_of_other_kinds_are_an_internal_error() -> None:
    rows = rows_with_inputs(ours=True)
    found = [said for row, inputs in rows for new in _pairs(inputs, PAIRS) if (said := raised(row, new))]
    assert not found, "\n".join(found[:20])


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_several_changes_at_once() -> None:
    tried, found = campaign(commit_number(), 60)
    assert tried > 50_000 and not found, "\n".join(found[:20])


@pytest.mark.parametrize(("axes", "fits"), [(MAX_RANK, True), (MAX_RANK + 1, False)])
def test_results_have_so_many_axes(axes: int, fits: bool) -> None:
    try:
        assert broadcast((3,), (1,) * axes) == (*(1,) * (axes - 1), 3)
    except OperatorError as error:
        assert not fits and error.code == "E202"
    else:
        assert fits


if __name__ == "__main__":
    tried, found = campaign(int(sys.argv[1]), int(sys.argv[2]))
    for row, inputs in rows_with_inputs(ours=True) if sys.argv[3:] else ():
        for new in _pairs(inputs, int(sys.argv[3])):
            tried += 1
            found += filter(None, [raised(row, new)])
    print(f"{tried:,} forms, {len(found)} internal errors", *found[:40], sep="\n")
