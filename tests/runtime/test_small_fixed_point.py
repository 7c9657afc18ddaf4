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
from aot_model.c.rescale import product
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
#include "aot_model/scalar.h"
static const int32_t rows[][4] = {{
{chr(10).join(lines)}
}};
static const int32_t ratios[][5] = {{
{chr(10).join("{" + ", ".join(map(str, row)) + "}," for row in ratios())}
}};
int main(void)
{{
    int wrong = 0;
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
        wrong += aot_model_rescale(i, 1503238553, INT64_C(-77309411328), 38)
                 != (int32_t)((i * INT64_C(1503238553) - INT64_C(77309411328)) >> 38);
    }}
    wrong += aot_model_saturate_int8(300) != 127;
    wrong += aot_model_requantise_small(1000, 1518500250, -3) != {exact.rescale(1000, 1518500250, -3)};
    printf("%d of %u\\n", wrong, (unsigned)(sizeof rows / sizeof rows[0]));
    return 0;
}}
"""


FLAGS = ["-std=c99", "-O2", "-Wall", "-Wextra", "-Wconversion", "-Werror", f"-I{include_dir()}"]


def test_equal_to_their_definition(tmp_path: Path) -> None:
    rows = cases()
    (tmp_path / "main.c").write_text(program(rows))
    sanitisers = ["-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    subprocess.run(["gcc", *FLAGS, *sanitisers, "main.c", "-o", "a"], cwd=tmp_path, check=True)
    said = subprocess.run([tmp_path / "a"], check=True, capture_output=True, text=True).stdout
    assert said.startswith("0 of ") and int(said.split()[-1]) > len(rows)


@pytest.mark.skipif(not available(), reason="arm-none-eabi-gcc or qemu-system-arm is not installed")
def test_equal_on_a_core_with_the_instruction(tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text(program(cases()))
    assert build_and_run(BOARDS["m4"], ["main.c"], tmp_path, FLAGS).startswith("0 of ")
    listing = subprocess.run(
        ["arm-none-eabi-gcc", *BOARDS["m4"].flags, *FLAGS, "-S", "main.c", "-o", "-"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert "smmulr" in listing and shutil.which("arm-none-eabi-gcc")


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


@pytest.mark.parametrize("rounding", ["double", "even"])
def test_one_product_equals_the_rule_on_every_integer(rounding: str) -> None:
    rng, taken = random.Random(3), 0
    for _ in range(60):
        shift = rng.randint(-17, 0)
        multiplier = rng.choice([2**30, 2**30 + 2**24, rng.randint(2**30, 2**31 - 1)])
        low, high, zero = -rng.randint(0, 9000), rng.randint(0, 9000), rng.choice([0, -128, 5])
        acc = leaf("acc", DType.INT32, low, high)
        rule = "requantise" if rounding == "double" else "requantise_even"
        form = product(call("add", call(rule, acc, const(multiplier), const(shift)), const(zero)))
        if form is None:
            continue
        taken += 1
        assert form.x is acc and form.multiplier == multiplier and 32 <= form.shift < 64
        for x in (*range(low, high + 1, 37), low, high, -1, 0, 1):
            if low <= x <= high:
                want = exact.rescale(x, multiplier, shift, rounding) + zero
                assert (x * multiplier + form.offset) >> form.shift == want, (x, multiplier, shift)
    assert 10 < taken < 55, "ties of powers of two have no such form, and some shifts are out of reach"


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
