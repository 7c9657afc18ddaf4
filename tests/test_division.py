"""Quotients by numbers that are known, as two products (arithmetic/division.py), against exact ones."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from aot_model.arithmetic.division import two_products


def rounded(x: Fraction) -> np.float32:
    """The nearest float, ties to even, of a normal number."""
    near = np.float32(float(x))
    around = (np.nextafter(near, np.float32(-np.inf)), near, np.nextafter(near, np.float32(np.inf)))
    return min(around, key=lambda f: (abs(Fraction(float(f)) - x), int(f.view(np.int32)) & 1))


def products(x: np.float32, parts: tuple[float, float]) -> np.float32:
    return rounded(Fraction(float(x)) * Fraction(parts[0]) + Fraction(float(x * np.float32(parts[1]))))


@pytest.mark.parametrize(("low", "high"), [(-128, 127), (0, 255), (-255, 0), (-32768, 32767)])
def test_beside_halves(low: int, high: int) -> None:
    rng = np.random.default_rng(high)
    for exponent in rng.uniform(-20, 4, 40):
        scale = np.float32(np.exp(exponent))
        parts = two_products(float(scale), low, high)
        assert parts is not None and min(parts) > 0
        for half in rng.integers(low, high, 40):
            x = np.float32((half + 0.5) * float(scale))
            for one in (x, np.nextafter(x, np.float32(1e9)), np.nextafter(x, np.float32(-1e9))):
                assert products(one, parts) == one / scale


def test_powers_of_two_are_one_product() -> None:
    for exponent in (-30, -3, 0, 5):
        assert two_products(2.0**exponent, -128, 127) == (2.0**-exponent, 0.0)


def test_what_is_out_of_range() -> None:
    for divisor in (0.0, -0.5, 1e-30, 1e30, float("inf"), float("nan")):
        assert two_products(divisor, -128, 127) is None


def test_one_product_is_not_enough() -> None:
    scale = float(np.float32(0.0235))
    parts = two_products(scale, -128, 127)
    assert parts is not None
    halves = ((np.arange(-128, 127) + 0.5) * scale).astype(np.float32)
    x = np.concatenate([np.nextafter(halves, np.float32(way)) for way in (-1e9, 1e9)] + [halves])
    assert np.any(x * np.float32(parts[0]) != x / np.float32(scale))
