"""Searches for integer forms of functions of quantised tensors, with drawn functions: what is found equals
the function at all arguments, and is what is recorded, so that a limit or the order of a search that moves
shows.

After a change that is meant: python -m pytest tests/operators/test_drawn_numbers.py --update-golden.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from aot_model.ir.types import DType
from aot_model.kernels.int8 import affine_sum
from aot_model.ops import exact_means, piecewise, quantised_curves, quantised_lines, quantised_quotient
from aot_model.ops.quantised import QuantisedSum
from aot_model.ops.requantise import Rescale

FILE = Path(__file__).with_name("drawn_numbers.json")
BYTES = np.arange(-128, 128)
Random = np.random.Generator


def _pick(rng: Random, *values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


def _rescaling(rng: Random, least: int, most: int) -> Rescale:
    m = int(_pick(rng, 1 << 30, 3 << 29, 5 << 28, rng.integers(1 << 30, 1 << 31)))
    return Rescale(int(rng.integers(-128, 128)), m, int(rng.integers(least, most + 1)))


def sums(rng: Random) -> str:
    """a + b or a - b of bytes as one multiply-add."""
    a, b, result = (
        affine_sum.Rescaling(r.zero_point, r.multiplier, r.shift)
        for r in (_rescaling(rng, -4, 0), _rescaling(rng, -4, 0), _rescaling(rng, -19, -16))
    )
    if rng.random() < 0.2:  # a scale that vanishes, or is beyond all results
        a = replace(a, **_pick(rng, {"multiplier": 0}, {"shift": -30}, {"shift": -31}, {"shift": -32}))
    low, high = _pick(rng, (-128, 127), (-128, 127), (0, 127), (-100, 90))
    rest = (20, low, high, _pick(rng, "double", "single"), _pick(rng, 1, -1), _pick(rng, -128, 0))
    form = affine_sum.affine(a, b, result, *rest)
    if form is not None:
        x = np.arange(rest[-1], rest[-1] + 256, dtype=np.int64)
        value = (x[:, None] * form.ma + x[None, :] * form.mb + form.offset) >> form.shift
        assert (np.clip(value, low, high) == affine_sum.sum_table(a, b, result, *rest)).all()
    return str(form)


def exact_sums(rng: Random) -> str:
    """Sums of terms that are whole numbers."""
    left = int(_pick(rng, 0, rng.integers(0, 24)))
    a, b = (_rescaling(rng, _pick(rng, 1, -left, 3) - 4, 5) for _ in range(2))
    result, name = _rescaling(rng, -24, 32), _pick(rng, "add", "sub", "add", "add", "mul")
    if rng.random() < 0.3:
        result = replace(result, multiplier=1 << 30, shift=int(rng.integers(-9, 3)))
    node = QuantisedSum(name, a, b, result, left, -128, 127, rounding=_pick(rng, "double", "single"))
    bits = _pick(rng, 8, 16)
    found = node._exact(bits)
    if found is not None:
        for x in (-(1 << bits - 1), -3, 5, (1 << bits - 1) - 1):
            for y in (-(1 << bits - 1), 0, 7):
                terms = [
                    Fraction(v * r.multiplier << left) * Fraction(2) ** (r.shift - 31)
                    for v, r in ((x, a), (y, b))
                ]
                whole = terms[0] + terms[1]
                times = Fraction(found[2].multiplier) * Fraction(2) ** found[2].shift
                real = whole * result.multiplier * Fraction(2) ** result.shift
                assert times * (found[0] * x + found[1] * y) == real
    return str(found)


def functions_of_lines(rng: Random) -> str:
    """Rounded lines, clamped or not, one of which may be none."""
    count, far = int(rng.integers(1, 5)), _pick(rng, 1, 4, 40, 3000)
    slope = rng.uniform(-far, far, count if rng.random() < 0.6 else 1)
    real = slope[:, None] * BYTES + rng.uniform(-200, 200, (count, 1)) * _pick(rng, 1, far)
    if rng.random() < 0.15:
        real[-1] += (BYTES / 40) ** 2
    limits = _pick(rng, (-128, 127), (0, 255), (-32768, 32767))
    values = np.clip(np.floor(real + 0.5), *limits).astype(np.int64)
    found = quantised_lines.lines(values, range(-128, 128), limits)
    if isinstance(found, str):
        return found
    given = found.slopes[:, None].astype(np.int64) * BYTES + found.offsets[:, None]
    assert (np.clip(given >> found.shift, found.low, found.high) == values).all()
    return f"{found.slopes.tolist()} {found.offsets.tolist()} {found.shift} {found.low} {found.high}"


def quotients(rng: Random) -> str:
    """Rounded quotients, ties away from zero, of bytes less their zero points."""
    zeros = rng.integers(-128, 128, 2)
    a, b = (BYTES - int(_pick(rng, z, 0, -128)) for z in zeros)
    factor = float(rng.uniform(0.01, 40) * _pick(rng, 1, 1, 30, 3000))
    low, high = _pick(rng, (-128, 127), (0, 255), (-20, 100))
    real = a[:, None] * factor / np.where(b == 0, 1, b)[None, :]
    results = np.clip(np.sign(real) * np.floor(np.abs(real) + 0.5), low, high).astype(np.int64)
    if rng.random() < 0.1:
        results[200, 7] += 1
    found = quantised_quotient.quotient(a, b, np.clip(results, low, high), low, high)
    if isinstance(found, str):
        return found
    top, by = np.abs(a)[:, None] * found.factor, np.maximum(np.abs(b), 1)[None, :] << found.places
    given = (2 * top + by) // (2 * by) * np.where((a < 0)[:, None] != (b < 0)[None, :], -1, 1)
    assert (np.clip(given, low, high) == np.clip(results, low, high)).all()
    return str(found)


def curves(rng: Random) -> str:
    """Levels of logistic curves; some that are none."""
    scale, shift = float(rng.uniform(0.005, 0.4)), float(rng.uniform(-3, 3))
    low = _pick(rng, -128, 0)
    x = np.arange(low, low + 256)
    levels = np.clip(np.round(256 / (1 + np.exp(-(x * scale * _pick(rng, 1, -1) + shift)))), 0, 255).astype(
        int
    )
    if rng.random() < 0.2:
        levels[100] = levels[100] // 2
    found = quantised_curves.fit(levels.tolist(), low)
    if found is not None:
        given = quantised_curves.Curve(*found, DType.UINT8)
        (got,) = given.reference([x.astype(np.int8 if low < 0 else np.uint8)])
        assert (got == levels).all()
    return str(found)


def pieces(rng: Random) -> str:
    """Smooth functions of 16 bits."""
    x = np.arange(-32768, 32768) / 32768 * _pick(rng, 1, 4, 12)
    curve = _pick(rng, np.tanh, np.sin, np.cbrt, np.exp, lambda v: np.maximum(v, 0), lambda v: v * v * v)
    to = _pick(rng, DType.INT16, DType.INT16, DType.INT8, DType.UINT8)
    least, most = (int(v) for v in to.limits)
    real = curve(x) * float(rng.uniform(0.2, 1.3)) * most + float(rng.uniform(-0.1, 0.1)) * most
    wanted = np.clip(np.rint(real), least, most).astype(np.int64)
    found = piecewise.fit(real, wanted, DType.INT16, to)
    if found is None:
        return "none"
    got = found.reference([np.arange(-32768, 32768).astype(np.int16)])[0].astype(np.int64)
    assert np.abs(got - wanted).max() <= 1
    # the numbers of the pieces are as exact as the library's functions
    return f"{len(found.values.values)} pieces, {found.point} {found.curved} {found.to}"


def divisors(rng: Random) -> str:
    d = int(_pick(rng, rng.integers(1, 40), 3 << 22, (1 << 24) - 2, (1 << 24) + 2, 1 << 12, 6 << 9))
    scales = tuple(float(_pick(rng, 0.5, 0.25, 2.0, 0.3)) for _ in range(2))
    return str(exact_means.exact_divisor(Fraction(int(rng.integers(1, 3)), d), (scales[0], scales[1])))


SEARCHES: dict[str, tuple[Callable[[Random], str], int]] = {
    "sums": (sums, 60),
    "exact sums": (exact_sums, 4000),
    "lines": (functions_of_lines, 150),
    "quotients": (quotients, 120),
    "curves": (curves, 300),
    "pieces": (pieces, 40),
    "divisors": (divisors, 600),
}
"""What is drawn, and how often."""


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", SEARCHES)
def test_forms_equal_their_functions(name: str, request: pytest.FixtureRequest) -> None:
    search, count = SEARCHES[name]
    found = [search(np.random.default_rng(number)) for number in range(count)]
    now = {"different": len(set(found)), "sum": f"{crc32(chr(10).join(found).encode()):08x}"}
    recorded = json.loads(FILE.read_text()) if FILE.is_file() else {}
    if request.config.getoption("--update-golden"):
        FILE.write_text(json.dumps(dict(sorted({**recorded, name: now}.items())), indent=0) + "\n")
        return
    assert now == recorded[name]
