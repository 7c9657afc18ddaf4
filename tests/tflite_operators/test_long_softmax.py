"""Softmax over so many numbers that sums of their exponentials, which are at most 1 in Q12.19, leave 32 bits:
LiteRT's wrap, ours end at the largest.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from batch import Case, run_cases
from tflite_models import INT8, Op, T, build

COUNTS = (8191, 8192, 8193, 16385)


def case(kind: str, count: int, target: tuple[float, int], options: str | None, **given: Any) -> Case:
    """Zeros and one number that is larger."""
    x = np.zeros((2, count), np.int8)
    x[1, 5] = 60
    tensors = [T("x", x.shape, INT8, (0.1,), (0,)), T("y", x.shape, INT8, (target[0],), (target[1],))]
    return Case(f"{kind} {count}", build(tensors, [Op(kind, (0,), (1,), options, given)], [0], [1]), (x,))


def test_shares_of_many_numbers() -> None:
    cases = [case("SOFTMAX", k, (1 / 256, -128), "SoftmaxOptions", Beta=1.0) for k in COUNTS]
    for each, outcome in zip(cases, run_cases(cases, jobs=1), strict=True):
        assert outcome.status == "ok", f"{each.name}: {outcome.message}"
        real = each.inputs[0] * 0.1
        powers = np.exp(real - real.max(axis=1, keepdims=True))
        shares = np.rint(powers / powers.sum(axis=1, keepdims=True) * 256) - 128
        off = np.abs(outcome.outputs[0] - shares.clip(-128, 127)).max()
        assert off <= 1, f"{each.name}: off by {off} steps"


@pytest.mark.parametrize(("count", "taken"), [(4095, True), (4096, False)])
def test_logarithms_of_shares(count: int, taken: bool) -> None:
    (outcome,) = run_cases([case("LOG_SOFTMAX", count, (1 / 16, 127), None)], jobs=1)
    assert outcome.status == ("ok" if taken else "refused"), outcome.message
    assert taken or "more than 4095 exponentials" in outcome.message
