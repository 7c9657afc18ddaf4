"""What sums and products of a line of C become, and what must stay as it is."""

import random
import subprocess

import pytest

from aot_model.c.layout import layout
from aot_model.c.terms import folded


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("x + row * 10 + column * 1;", "x + row * 10 + column;"),
        ("const int32_t y = oy * 1 - 0;", "const int32_t y = oy;"),
        ("from0 = x + (pixel + 0) * 64;", "from0 = x + pixel * 64;"),
        ("v = row[(n * 32 + t) * 1];", "v = row[n * 32 + t];"),
        ("memcpy(to + x * 1, p + 0, (size_t)((to - x) * 1));", "memcpy(to + x, p, (size_t)(to - x));"),
        ("a * 1 * b + c * 1 / d;", "a * b + c / d;"),
        ("y[(pixel) * 64 + c] = v;", "y[pixel * 64 + c] = v;"),
        ("v = dsp_smmlar(v, (table + 1)[0], (table + 1)[1]);", "v = dsp_smmlar(v, table[1], table[2]);"),
        ("v = (f(x));", "v = f(x);"),
        ("v = o * (f(x)) + (g(y, z));", "v = o * f(x) + g(y, z);"),
        ("v = x - -8;", "v = x + 8;"),
        ("v = f(x) + -17;", "v = f(x) - 17;"),
        ("v = f(x) + (-17), low;", "v = f(x) - 17, low;"),
        ("in += 80 - 38;", "in += 42;"),
        ("f(x + ((pixel + p) * 8), y + (i * 4));", "f(x + (pixel + p) * 8, y + i * 4);"),
        ("(out + 2 * k)[0] = a; (out + 2 * (128 - k))[0] = b;", "out[2 * k] = a; out[2 * (128 - k)] = b;"),
        ("v = (to + 2 * places[0])[1];", "v = to[2 * places[0] + 1];"),
        ("for (int32_t i = 0; i < 9; i += 1) {", "for (int32_t i = 0; i < 9; i++) {"),
        ("v = &x[(0 * 32 + t) * 20];", "v = &x[t * 20];"),
        ("v = (t + 0 * 32) * 20;", "v = t * 20;"),
        ("y = (int8_t)(x + 1)[0];", "y = (int8_t)x[1];"),
        ("y = (int8_t)(x + 2 * k)[0];", "y = (int8_t)x[2 * k];"),
        ("y = a - 2 * 3 * b;", "y = a - 6 * b;"),
        ("t = 33 - 1 - s;", "t = 32 - s;"),
        ("y[72 + 1] = v;", "y[73] = v;"),
        ("x + (tops[0] + 0 * 1) * 35;", "x + tops[0] * 35;"),
        ("y[(o * 4 + n) * 1 + 0] = v;", "y[o * 4 + n] = v;"),
        ("v = a ? (b) + 0 : 0 + c * 1, d;", "v = a ? b : c, d;"),
        ("if (x * 1 < 0 + n && y) {", "if (x < n && y) {"),
        ("v = x + 2 * 3 +", "v = x + 6 +"),
        ("v = p->x * 1 + s.y + 0;", "v = p->x + s.y;"),
        ("v = x << (3) | y + 0;", "v = x << 3 | y;"),
        ("for (i = 0, k = 2; i < 8 - 1; k += 1, i += 1) {", "for (i = 0, k = 2; i < 7; k += 1, i++) {"),
        ("f(&h[0], x + 124 * 64, 2 * 3);", "f(h, x + 7936, 6);"),
    ],
)
def test_shorter(code: str, expected: str) -> None:
    assert folded(code) == expected


@pytest.mark.parametrize(
    "code",
    [
        "y = x * 1.0f;",
        "y = x * 1u;",
        "y = x * 10;",
        "y = x + 0u;",
        "y = x + 0.0f;",
        "y = x + 0x10;",
        "return - 0;",
        "y = (int32_t) - 0;",
        "y = a + 0 * b;",
        "y = a - 0 % b;",
        "y = 1.5 + 0;",
        "y = b + (int8_t) * p;",
        "__attribute__((unused)) int x;",
        "y = (float) * p;",
        "*to++ = 1;",
        "y = sizeof(x) + 0;",
        "y = f(a) + 0;",
        "y = f(x + 1)[0];",
        "v = (f(x) + 1);",
        "y = x - -1.5f;",
        "y = x + (i * 8) % z;",
        "y = x * (i * 8);",
        "y = x + (-8) * z;",
        "y = x + (-1.5f);",
        "y = 80 - 38 * z;",
        "y = 3 - 8;",
        "y = a - 80 - 38;",
        "y = 80u - 38u;",
        "y = (f(x) + 2 * k)[0];",
        "y = (x + 2 * k)[i];",
        "y = (x - 1)[2];",
        "y = x - -8 * z;",
        "y = x - -2147483648;",
        "s += 1;",
        "y = &x[0] + 1;",
        "y = a * 2 * 3;",
        "y = 0 * x;",
        "v = x + 0 /* c */ * y;",
        "v = x - 8 + 0 *",
        "f(x, 70000 * 70000, -(-8))",
        "2 + 3;",
        "if ((a = b) + 0 * c) {",
        "int8_t x[4], *y;",
        "y = (a, b);",
        "f((a));",
        "return (f32x4){s, s};",
        "v = x + (q8_acc)",
        "v = x + (i * 8)",
        "v = x - -8",
        "v = x + 0",
        "v = x - 0",
        "2 * 3 + x;",
        "8 - 3 - x;",
        "0 + x;",
        "y = 70000 * 70000;",
        "y = a % 0 * 3;",
        "y = a * 0 + b;",
        "y = 0u * 3u;",
    ],
)
def test_unchanged(code: str) -> None:
    """Without a semicolon: the next line may go on with what binds more."""
    assert folded(code) == code


def test_only_code() -> None:
    """Comments, strings and directives stay: `workspace + 0` is a place, assembly is not C."""
    text = "/* at workspace + 0; */\n#define X (a * 1)\n%s\nf(b{}); /* c * 1; */"
    text %= '__asm__("b + 0)" : "r"(a * 1));'
    text, expected = text.format(" * 1"), text.format("")
    assert layout(text) == expected


def test_same_values(tmp_path: object) -> None:
    """Random expressions have the values and, promoted, the types that they had, says a C compiler."""
    rng = random.Random(7)

    def expression(depth: int) -> str:
        if depth == 0:
            return rng.choice(["a", "b", "c[1]", "d", "0", "1", "3"])
        left, right = expression(depth - 1), expression(rng.randrange(depth))
        operator = rng.choice(["*", "+", "-", "*", "+", "<", "&"])
        text = f"{left} {operator} {right}"
        return rng.choice(
            [text, f"({text})", f"{text} * 1", f"{text} + 0", f"({text}) * 1 - 0", f"(int8_t)({text})"]
        )

    pairs = [(e, folded(f"({e})")) for e in (expression(rng.randrange(1, 5)) for _ in range(600))]
    assert sum(f"({e})" != short for e, short in pairs) > 300
    checks = "\n".join(
        f"    if (({e}) != {short} || sizeof(+({e})) != sizeof(+{short})) {{ return {k % 100 + 1}; }}"
        for k, (e, short) in enumerate(pairs)
    )
    source = f"""#include <stdint.h>
static int run(int8_t a, int16_t b, const int32_t *c, uint8_t d)
{{
{checks}
    return 0;
}}
int main(void)
{{
    const int32_t c[2] = {{5, -7}};
    return run(-3, 11, c, 250) + run(0, 1, c, 2);
}}
"""
    program = f"{tmp_path}/p"
    subprocess.run(["gcc", "-w", "-x", "c", "-", "-o", program], input=source, text=True, check=True)
    assert subprocess.run([program], check=False).returncode == 0
