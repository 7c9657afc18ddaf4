"""Loops that run once become their bodies; those that might do otherwise stay."""

import itertools
import random
import subprocess

import pytest

from aot_model.c.layout import layout
from aot_model.c.single_turn import without_single_turns


def shortened(text: str) -> str:
    return layout(without_single_turns(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("for (int32_t i = 0; i < 1; i++) {\ny[i] = x[n * 3 + i];\n}", "y[0] = x[n * 3];"),
        ("for (int32_t i = 124; i < 125; i += 2) {\nf(y + i * 64);\n}", "f(y + 7936);"),
        ("for (uint32_t i = 0; i < 1; i++) {\nf(i);\n}", "f(0u);"),
        ("for (int32_t i = 0; i < 1; i++) {\nfor (int32_t j = 0; j < 1; j++) {\nf(i + j);\n}\n}", "f(0);"),
        (
            "for (int32_t i = 0; i < 1; i++) { /* i stays a word */\nf(p->i, s.i, i);\n}",
            "/* i stays a word */\nf(p->i, s.i, 0);",
        ),
        (
            "for (int32_t i = 0; i < 1; i += 2) {\nint32_t v = i + 1 < 1 ? 2 : 1;\nf(v);\n}",
            "{\n    const int32_t i = 0;\n    int32_t v = i + 1 < 1 ? 2 : 1;\n    f(v);\n}",
        ),
        ("for (int32_t i = 7; i < 8; i++) {\nf(i / 5);\n}", "{\n    const int32_t i = 7;\n    f(i / 5);\n}"),
        (
            "for (int32_t i = 7; i < 8; i++) {\nfor (int32_t k = i; k < i + 2; k++) {\nf(k);\n}\n}",
            "for (int32_t k = 7; k < 9; k++) {\n    f(k);\n}",
        ),
        ("for (int32_t i = 0; i < 1; i++) {\nint32_t v = x[i];\nf(v);\n}", "int32_t v = x[0];\nf(v);"),
        (
            "for (int32_t i = 0; i < 1; i++) {\nint32_t v = x[i];\nf(v);\n} /* the last */\n",
            "int32_t v = x[0];\nf(v); /* the last */\n",
        ),
        (
            "for (int32_t i = 0; i < 1; i++) {\nint32_t v = x[i];\nf(v);\n}\ng();",
            "{\n    int32_t v = x[0];\n    f(v);\n}\ng();",
        ),
        (
            "int32_t v = 1;\nfor (int32_t i = 0; i < 1; i++) {\nint32_t v = x[i];\nf(v);\n}",
            "int32_t v = 1;\n{\n    int32_t v = x[0];\n    f(v);\n}",
        ),
        (
            "if (a) {\nint32_t v = 1;\n}\nfor (int32_t i = 0; i < 1; i++) {\nconst int8_t *w = x, *v = w;\nf(v);\n}",  # noqa: E501
            "if (a) {\n    int32_t v = 1;\n}\n{\n    const int8_t *w = x, *v = w;\n    f(v);\n}",
        ),
    ],
)
def test_shorter(text: str, expected: str) -> None:
    assert shortened(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "for (int32_t i = 0; i < 2; i++) {\n    f(i);\n}",
        "for (int32_t i = 0; i < 0; i++) {\n    f(i);\n}",
        "for (int32_t i = 2; i < 1; i++) {\n    f(i);\n}",
        "for (int32_t i = 0; i < 5; i += 4) {\n    f(i);\n}",
        "for (int32_t i = 0; i < 1; j++) {\n    f(i);\n}",
        "for (int32_t i = 0; i < 1; i++) {\n    i = f();\n}",
        "for (int32_t i = 0; i < 1; i++) {\n    i -= f();\n}",
        "for (int32_t i = 0; i < 1; i++) {\n    f(&i);\n}",
        "for (int32_t i = 0; i < 1; i++) {\n    f(i--);\n}",
        "for (int32_t i = 0; i < 1; i++) {\n    if (f(i)) {\n        break;\n    }\n}",
        "for (int32_t i = 0; i < 1; i++) {\n    if (f(i)) {\n        continue;\n    }\n}",
        "for (int32_t i = 0; i < 1; i++) {\n#if X\n    f(i);\n#endif\n}",
        'for (int32_t i = 0; i < 1; i++) {\n    f("i", i);\n}',
        "for (int64_t i = 0; i < 1; i++) {\n    f(i);\n}",
    ],
)
def test_stays(text: str) -> None:
    assert shortened(text) == text


def test_same_values(tmp_path) -> None:
    """Nests of loops at random, compiled as they were and as they are now, say the same."""
    rng = random.Random(11)
    count = itertools.count()

    def nest(names: list[str], depth: int) -> str:
        lines = []
        for _ in range(rng.randint(1, 3)):
            first, turns = rng.randint(0, 40), rng.choice((0, 1, 1, 1, 2))
            name, step = f"i{next(count)}", rng.choice((1, 1, 3))
            inside = [*names, name]
            local = rng.choice(("v", "w", f"u{next(count)}"))
            terms = " + ".join(f"{n} * {rng.choice((0, 1, 7))}" for n in inside)
            limit = first + step * turns - (step > 1 and turns > 0)
            by = f"{name} += {step}" if step > 1 else f"{name}++"
            head = f"for (int32_t {name} = {first}; {name} < {limit}; {by}) {{"
            body = [
                f"const int32_t {local} = {terms};",
                f"total = total * 31u + (uint32_t)({local} - -{name});",
            ]
            lines += [head, *body, *([nest(inside, depth - 1)] if depth else []), "}"]
        return "\n".join(lines)

    text = "#include <stdint.h>\n#include <stdio.h>\n"
    nests = [nest([], 2) for _ in range(40)]
    for k, body in enumerate(nests):
        for which, made in (("a", body), ("b", shortened(body))):
            text += f"static uint32_t {which}{k}(void) {{\nuint32_t total = 1u;\n{made}\nreturn total;\n}}\n"
    compared = " && ".join(f"a{k}() == b{k}()" for k in range(len(nests)))
    (tmp_path / "t.c").write_text(f"{text}int main(void) {{ return {compared} ? 0 : 1; }}\n")
    strict = ("-std=c99", "-Wall", "-Wextra", "-Werror")
    subprocess.run(["gcc", *strict, "-o", tmp_path / "t", tmp_path / "t.c"], check=True)
    assert subprocess.run([tmp_path / "t"], check=False).returncode == 0
    assert sum(shortened(b) != layout(b) for b in nests) > 30
