"""The cheaper forms of fixed-point operations against their definition in fractions, on this machine and on a
Cortex-M4, and when generated code takes them.
"""

from __future__ import annotations

import random
import shutil
import subprocess
from fractions import Fraction
from pathlib import Path

import pytest

from aot_model.arithmetic import exact
from aot_model.c.rescale import halves, product
from aot_model.c.statements import CWriter
from aot_model.installation import include_dir
from aot_model.ir.bounds import bounds
from aot_model.ir.expr import Expr, call, const, leaf
from aot_model.ir.types import DType
from qemu import BOARDS, available, build_and_run

RNG = random.Random(7)
MULTIPLIERS = (2**30, 2**30 + 1, 2**31 - 1, 1518500250, 1)
SHIFTS = (-31, -30, -18, -3, -1, 0, 1, 5)


def cases() -> list[tuple[int, int, int]]:
    """(x, multiplier, shift) up to the limits; halves of results, of both signs, are among them."""
    found = []
    for shift in SHIFTS:
        most = ((1 << 30) - 1) >> max(shift, 0)
        for multiplier in MULTIPLIERS:
            edges = [-most - 1, *(s * v for v in (most, most - 1, 0, 1, 2, 3, 5, 4096) for s in (1, -1))]
            halves = [s * (k << max(-shift, 0)) for k in (1, 3, 7) for s in (1, -1)]
            drawn = [RNG.randint(-most, most) for _ in range(9)]
            found += [(x, multiplier, shift) for x in (*edges, *halves, *drawn) if -most - 1 <= x <= most]
    return found


def ratios() -> list[tuple[int, int, int, int, int]]:
    """(reciprocal, power, total, bits, result), totals of one to 4,095 summands of 1 in Q12.19."""
    found = []
    for total in (2**19, 790000, 2**20 + 5, 2**28, 2**29 + 1, 2**30 - 1, 2**30, 2**31 - 1):
        for power in (0, 1, 12345678, 2**30, 2**31 - 1, RNG.randint(0, 2**31 - 1)):
            for bits in (27, 35):
                inverse, _ = exact.normalised_inverse(total)
                right = bits - (32 - total.bit_length())
                found.append(
                    (
                        inverse,
                        power,
                        total,
                        bits,
                        exact.away(Fraction(exact.product(inverse, power), 2**right)),
                    )
                )
    return found


def even_halves() -> list[tuple[int, int, int, int]]:
    """(x, bits, x / 2^bits with ties to even, to odd): small numbers, ties and their neighbours, limits."""
    found = []
    for bits in range(1, 31):
        half, most = 1 << (bits - 1), (1 << 31) - 1 - (1 << (bits - 1))
        ties = [(2 * RNG.randint(0, most // (2 * half)) - 1) * half for _ in range(4)]
        near = [s * t + d for t in (half, 3 * half, 5 * half, *ties) for s in (1, -1) for d in (-1, 0, 1)]
        edges = [*range(-9, 10), most, most - 1, -most, 1 - most]
        for x in (*near, *edges):
            if abs(x) <= most:
                exactly = Fraction(x, 2**bits)
                found.append((x, bits, round(exactly), round(exactly + 1) - 1))
    return found


TYPES = {"int8": (-128, 127), "uint8": (0, 255), "int16": (-32768, 32767)}


def shifted() -> list[str]:
    """Statements that count what is wrong of a saturated shift: results at the ends and beside them."""
    found = []
    for name, (low, high) in TYPES.items():
        for bits in range(32):
            for end in (low, high, 0, low - 1, high + 1):
                right = f"(y < {low} ? {low} : y > {high} ? {high} : y)"
                wrong = f"aot_model_saturate_shifted_{name}(x, {bits}) != {right}"
                x = f"x = at({end}, {bits}, k), y = x >> {bits}"
                found.append(f"for (int32_t k = -3; k <= 3; k++) {{ const int32_t {x}; wrong += {wrong}; }}")
    return found


def with_zero_points(rows: list[tuple[int, int, int]]) -> list[tuple[int, int, int, int, int, int, int]]:
    """(x, multiplier, shift, zero point, results of int8, uint8, int16), where all have room."""
    found = []
    for x, m, s in rows:
        for zero in (0, -128, 127, 255, -32768):
            if -s < 30 and abs(zero) << max(-s, 0) < 1 << 29:
                y = exact.rescale(x, m, s) + zero
                found.append((x, m, s, zero, *(exact.clamped(y, *TYPES[name]) for name in TYPES)))
    return found


def program(rows: list[tuple[int, int, int]]) -> str:
    shifts = [(x, m, -s) for x, m, s in rows if s <= 0]
    wide = [
        (v, 1, b)
        for b in (0, 1, 2, 7, 30, 31)
        for v in (2**31 - 1 - (b == 1), -(2**31) + 1, 2**30, -(2**30), -1, 0)
    ]
    lines = [f"{{{x}, {m}, {s}, {exact.rescale(x, m, s)}}}," for x, m, s in rows]
    lines += [f"{{{x}, 0, {b}, {exact.away(Fraction(x, 2**b))}}}," for x, _, b in (*shifts, *wide)]
    return f"""\
#include <stdio.h>
#include "aot_model/saturate.h"
static const int32_t rows[][4] = {{
{chr(10).join(lines)}
}};
static const int32_t ratios[][5] = {{
{chr(10).join("{" + ", ".join(map(str, row)) + "}," for row in ratios())}
}};
static const int32_t even_halves[][4] = {{
{chr(10).join("{" + ", ".join(map(str, row)) + "}," for row in even_halves())}
}};
static const int32_t requantised[][7] = {{
{chr(10).join("{" + ", ".join(map(str, row)) + "}," for row in with_zero_points(rows))}
}};
/* A number beside end * 2^bits, or the last one of int32. */
static int32_t at(int32_t end, int32_t bits, int32_t by)
{{
    const int64_t x = (int64_t)end * (INT64_C(1) << bits) + by;
    return x > INT32_MAX ? INT32_MAX - (by + 3) : x < INT32_MIN ? INT32_MIN + (by + 3) : (int32_t)x;
}}
int main(void)
{{
    int wrong = 0;
    {chr(10).join(shifted())}
    for (unsigned i = 0; i < sizeof requantised / sizeof requantised[0]; i++) {{
        const int32_t *r = requantised[i];
        wrong += aot_model_requantised_int8(r[0], r[1], r[2], r[3]) != r[4];
        wrong += aot_model_requantised_uint8(r[0], r[1], r[2], r[3]) != r[5];
        wrong += aot_model_requantised_int16(r[0], r[1], r[2], r[3]) != r[6];
    }}
    for (unsigned i = 0; i < sizeof even_halves / sizeof even_halves[0]; i++) {{
        const int32_t *r = even_halves[i];
        wrong += aot_model_halved_even(r[0], r[1]) != r[2];
        wrong += aot_model_to_odd(r[0], r[1]) >> r[1] != r[3];
    }}
    for (unsigned i = 0; i < sizeof ratios / sizeof ratios[0]; i++) {{
        const int32_t *r = ratios[i];
        wrong += aot_model_softmax_ratio(r[0], r[1], r[2], r[3]) != r[4];
    }}
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {{
        const int32_t *r = rows[i];
        const int32_t y = r[1] != 0 ? aot_model_requantise_small(r[0], r[1], r[2])
                                    : aot_model_rounding_shift_small(r[0], r[2]);
        wrong += y != r[3];
    }}
    for (int32_t i = -70000; i <= 70000; i += 7) {{
        const int32_t at = i > 65000 ? INT32_MAX - i : i < -65000 ? INT32_MIN - i : i;
        wrong += aot_model_saturate_int8(at) != (at < -128 ? -128 : at > 127 ? 127 : at);
        wrong += aot_model_saturate_uint8(at) != (at < 0 ? 0 : at > 255 ? 255 : at);
        wrong += aot_model_saturate_int16(at) != (at < -32768 ? -32768 : at > 32767 ? 32767 : at);
        wrong += aot_model_rescale(i, 1503238553, INT64_C(-77309411328), 32)
                 != (int32_t)((i * INT64_C(1503238553) - INT64_C(77309411328)) >> 32);
        wrong += aot_model_rescale(i, 1503238553, INT64_C(-77309411328), 38)
                 != (int32_t)((i * INT64_C(1503238553) - INT64_C(77309411328)) >> 38);
    }}
    wrong += aot_model_saturate_int8(300) != 127;
    wrong += aot_model_requantise_small(1000, 1518500250, -3) != {exact.rescale(1000, 1518500250, -3)};
    printf("%d of %u\\n", wrong, (unsigned)(sizeof rows / sizeof rows[0]));
    return 0;
}}
"""


FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Werror", f"-I{include_dir()}"]


def test_equal_to_their_definition(tmp_path: Path) -> None:
    rows = cases()
    (tmp_path / "main.c").write_text(program(rows))
    sanitisers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    subprocess.run(["gcc", "-O2", *FLAGS, *sanitisers, "main.c", "-o", "a"], cwd=tmp_path, check=True)
    said = subprocess.run([tmp_path / "a"], check=True, capture_output=True, text=True).stdout
    assert said.startswith("0 of ") and int(said.split()[-1]) > len(rows)


@pytest.mark.skipif(not available(), reason="arm-none-eabi-gcc or qemu-system-arm is not installed")
@pytest.mark.parametrize("level", ["-O0", "-O2", "-O3", "-Os"])
def test_equal_on_a_core_with_the_instruction(tmp_path: Path, level: str) -> None:
    (tmp_path / "main.c").write_text(program(cases()))
    assert build_and_run(BOARDS["m4"], ["main.c"], tmp_path, [level, *FLAGS]).startswith("0 of ")
    listing = subprocess.run(
        ["arm-none-eabi-gcc", *BOARDS["m4"].flags, level, *FLAGS, "-S", "main.c", "-o", "-"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert "smmulr" in listing and ("smmla\t" in listing or "smmla " in listing or level == "-O0")
    assert shutil.which("arm-none-eabi-gcc")


def _text(x: Expr) -> str:
    writer = CWriter(lambda cell, text: text)
    return " ".join([*writer.lines, *writer.compute(x)])


@pytest.mark.parametrize(
    ("most", "shift", "small"),
    [(2**30 - 1, 0, True), (2**30, 0, False), (2**30 - 1, -7, True), (2**25 - 1, 5, True), (2**25, 5, False)],
)
def test_taken_where_the_operand_is_small(most: int, shift: int, small: bool) -> None:
    def made(low: int | None, high: int | None) -> str:
        return _text(call("requantise", leaf("acc", DType.INT32, low, high), const(2**30 + 5), const(shift)))

    assert ("requantise_small" in made(-most, most)) is small
    assert ("requantise_small" in made(-most - 1, 0)) is small
    assert ("requantise_small" in made(0, most)) is small
    assert "requantise_small" not in made(None, most) and "requantise_small" not in made(-most, None)


def test_a_multiplier_that_is_not_known_is_not_small() -> None:
    x, m = leaf("acc", DType.INT32, -5, 5), leaf("m", DType.INT32)
    assert "small" not in _text(call("requantise", x, m, const(0)))


def test_rounding_shifts() -> None:
    def made(low: int, bits: int) -> str:
        return _text(call("rounding_shift", leaf("acc", DType.INT32, low, 2**31 - 1), const(bits)))

    assert "shift_small" in made(-(2**31) + 1, 12) and "shift_small" not in made(-(2**31), 12)
    assert "shift_small" not in made(0, 1)


@pytest.mark.parametrize(
    ("shift", "zero", "one"),
    [(-7, 5, True), (-29, 0, True), (-30, 0, False), (-8, (1 << 21) - 1, True), (-8, 1 << 21, False),
     (3, (1 << 29) - 1, True), (3, 1 << 29, False), (-8, -(1 << 21), False)],
)  # fmt: skip
def test_saturated_with_what_makes_it(shift: int, zero: int, one: bool) -> None:
    def made(multiplier: Expr, most: int) -> str:
        acc = leaf("acc", DType.INT32, -most, most)
        sum_ = call("add", call("requantise", acc, multiplier, const(shift)), const(zero))
        return _text(call("min", call("max", sum_, const(-128)), const(127)))

    most = ((1 << 30) - 1) >> max(shift, 0)
    assert ("aot_model_requantised_int8(" in made(const(2**30 + 5), most)) is one
    assert "requantised" not in made(const(2**30 + 5), most + 1) + made(const(-5), most) + made(
        leaf("m", DType.INT32), most
    )


@pytest.mark.parametrize(
    ("most", "zero", "one"),
    [(2**30, 3, "odd"), (2**30, -4, "even"), (2**30, 0, "even"), (100, 268435442, "even"),
     (100, 268435443, ""), (2**31 - 1 - (3 << 3) - 8, 3, "odd"), (2**31 - (3 << 3) - 8, 3, "")],
)  # fmt: skip
def test_zero_points_of_halves_are_added_before(most: int, zero: int, one: str) -> None:
    for less in (0, 5):
        acc = (
            call("sub", leaf("acc", DType.INT32, less - most, less + most), const(less))
            if less
            else (leaf("acc", DType.INT32, -most, most))
        )
        x = call("add", call("requantise_even", acc, const(2**30), const(-2)), const(zero))
        found = _text(call("min", call("max", x, const(-128)), const(127)))
        assert (f"aot_model_saturate_shifted_int8(aot_model_to_{one}(" in found) is bool(one), found
        assert ("halved_even" in found) is not bool(one)
        assert "- 5 " not in found or not one or zero == 0


@pytest.mark.parametrize("shift", [-9, 0, 2])
@pytest.mark.parametrize("multiplier", [2**30, 2**31 - 1, 7])
def test_bounds_of_a_requantisation_are_those_of_its_values(shift: int, multiplier: int) -> None:
    low, high = -300, 77
    x = call("requantise", leaf("acc", DType.INT32, low, high), const(multiplier), const(shift))
    values = [exact.rescale(v, multiplier, shift) for v in range(low, high + 1)]
    assert bounds(x) == (min(values), max(values))


def test_bounds_of_sums() -> None:
    from aot_model.ir.expr import Var, fresh, reduce

    k = fresh("k", 10)
    assert isinstance(k, Var)

    def summed(low: int, high: int) -> tuple[int | None, int | None]:
        return bounds(reduce("add", (k,), leaf("v", DType.INT32, low, high)))

    assert summed(-3, 5) == (-30, 50) and summed(2, 5) == (0, 50)  # the sums on the way count too
    assert summed(0, 2**31 - 1) == (None, None)


RULES = {"double": "requantise", "even": "requantise_even", "single": "requantise_single"}


@pytest.mark.parametrize("rounding", ["double", "even", "single"])
def test_one_product_equals_the_rule_on_every_integer(rounding: str) -> None:
    rng, taken = random.Random(3), 0
    for _ in range(60):
        shift = rng.randint(-17, 4)
        multiplier = rng.choice([2**30, 2**30 + 2**24, rng.randint(2**30, 2**31 - 1)])
        low, high, zero = -rng.randint(0, 9000), rng.randint(0, 9000), rng.choice([0, -128, 5])
        acc = leaf("acc", DType.INT32, low, high)
        form = product(call("add", call(RULES[rounding], acc, const(multiplier), const(shift)), const(zero)))
        if form is None:
            continue
        taken += 1
        lift = max(1 + shift, 0)
        assert form.x is acc if lift == 0 else form.x.args == (acc, const(1 << lift))
        assert form.multiplier == multiplier and 32 <= form.shift < 64
        for x in (*range(low, high + 1, 37), low, high, -1, 0, 1):
            if low <= x <= high:
                want = exact.rescale(x, multiplier, shift, rounding) + zero
                assert ((x << lift) * multiplier + form.offset) >> form.shift == want, (x, multiplier, shift)
    most = 61 if rounding == "single" else 55
    assert 10 < taken < most, "ties of powers of two have no such form, and some shifts are out of reach"


@pytest.mark.parametrize("rounding", ["even", "single"])
def test_ties_to_even_within_a_word_equal_the_rule_on_every_integer(rounding: str) -> None:
    rng, taken, whole = random.Random(5), 0, 0
    for _ in range(200):
        shift = rng.randint(-31, 3)
        multiplier = rng.choice([2**30, 3 << 29, 5 << 28, 2**31 - 2**20, rng.randint(1, 2**31 - 1)])
        low, high = -rng.randint(0, 2000), rng.randint(0, 2000) << rng.choice([0, 0, 12])
        acc = leaf("acc", DType.INT32, low, high)
        form = halves(call(RULES[rounding], acc, const(multiplier), const(shift)))
        if form is None:
            continue
        taken, whole = taken + 1, whole + (form.bits == 0)
        factor = 1 if form.x is acc else int(form.x.args[1].value)
        assert max(-low, high) * factor + (1 << form.bits >> 1) < 1 << 31
        half = (1 << form.bits >> 1) - 1
        for x in (*range(low, high + 1, 1 + (high - low) // 5000), low, high):
            v = x * factor
            got = (v + half + (v >> form.bits & 1)) >> form.bits if form.bits else v
            assert got == exact.rescale(x, multiplier, shift, rounding), (x, multiplier, shift)
    assert 80 < taken < 190 or (rounding == "single" and whole == taken)
    assert whole > 2


def test_ties_to_even_are_within_a_word_for_known_limits_and_numbers_only() -> None:
    def made(low: int | None, high: int | None, multiplier: Expr, shift: int = -7) -> str:
        return _text(call("requantise_even", leaf("acc", DType.INT32, low, high), multiplier, const(shift)))

    quarter = const(2**30)
    most = 2**31 - 1 - 2**7
    assert "halved_even(acc, 8)" in made(-most, most, quarter)
    assert "halved_even(" not in made(-most - 1, 0, quarter) + made(0, most + 1, quarter)
    assert "halved_even(" not in made(None, 9, quarter) + made(-9, 9, leaf("m", DType.INT32))
    assert "halved_even(acc * 3, 8)" in made(-(2**20), 2**20, const(3 << 29), -6)
    assert made(-9, 9, quarter, 1) == "acc" and "halved_even" in made(-9, 9, quarter, 0)


def test_one_product_is_for_known_limits_and_numbers_only() -> None:
    def made(low: int | None, high: int | None, multiplier: Expr) -> str:
        return _text(call("requantise_even", leaf("acc", DType.INT32, low, high), multiplier, const(-7)))

    m = const(1503238553)
    assert "aot_model_rescale(" in made(-65025, 65025, m)
    assert "aot_model_rescale(" not in made(None, 65025, m) + made(-(2**20), 0, m)
    assert "aot_model_rescale(" not in made(-9, 9, leaf("m", DType.INT32))


def test_clamps_to_a_type() -> None:
    x = leaf("acc", DType.INT32)

    def made(low: int, high: int) -> str:
        return _text(call("min", call("max", x, const(low)), const(high)))

    assert "saturate_int8(acc)" in made(-128, 127) and "saturate_uint8(acc)" in made(0, 255)
    assert "saturate_int16(acc)" in made(-32768, 32767) and "saturate" not in made(-127, 127)
