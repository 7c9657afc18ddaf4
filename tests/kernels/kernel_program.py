"""Builds kernels into one program and runs it, on the host under the sanitizers or on a Cortex-M in QEMU.

The program runs every case, apart and at the overlaps that the kernel permits, compares with the expected
bytes, and prints what differs and the ticks taken.
"""

from __future__ import annotations

import subprocess
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from aot_model.emit.render import KEEP_VNNI, NO_MIXED_DOT
from aot_model.host.program import STRICT
from aot_model.installation import include_dir
from aot_model.kernels.base import KernelCode
from qemu import BOARDS, COMPILER, build_and_run
from sanitizers import REPORTS, built_and_run

ATTRIBUTES = (include_dir() / "aot_model" / "attributes.h").read_text()
"""What the text of kernels and helpers takes for granted."""

_MAIN = r"""
#include <stdio.h>
#ifdef BARE
uint32_t ticks(void);
#else
static uint32_t ticks(void) { return 0; }
#endif
static int check(int32_t id, const char *what, const uint8_t *got, const uint8_t *want, int32_t n)
{
    for (int32_t i = 0; i < n; i++) {
        if (got[i] != want[i]) {
            printf("case %d %s: element %d is %d and not %d\n", (int)id, what, (int)i, (int8_t)got[i], (int8_t)want[i]);
            return 1;
        }
    }
    return 0;
}
"""  # noqa: E501


@dataclass(frozen=True)
class Case:
    code: KernelCode
    x: np.ndarray
    want: np.ndarray
    extra: str = ""
    """Declarations that the tail uses."""
    overlap: bool = True


def _array(name: str, ctype: str, data: np.ndarray, align: int, const: bool = True) -> str:
    numbers = [str(int(v)) if int(v) != -(2**31) else "(-2147483647 - 1)" for v in data.reshape(-1)] or ["0"]
    values = "\n" + "\n".join(", ".join(numbers[i : i + 16]) + "," for i in range(0, len(numbers), 16))
    qualifier = "static const" if const else "static"
    return (
        f"{qualifier} {ctype} {name}[{max(data.size, 1)}] __attribute__((aligned({align}))) = {{{values}}};"
    )


def function(code: KernelCode, name: str, x_type: str, y_type: str) -> str:
    """The kernel as a C function of x, y, its constants and its scratch."""
    parameters = [f"const {x_type} *x", f"{y_type} *y"]
    parameters += [f"const {np.dtype(c.data.dtype).name}_t *{c.name}" for c in code.constants]
    parameters += [f"{s.ctype} *{s.name}" for s in code.scratch]
    body = "".join(f"    {line}\n" if line else "\n" for line in code.body.splitlines())
    return f"/* {code.note} */\nAOT_MODEL_OPAQUE static void {name}({', '.join(parameters)})\n{{\n{body}}}\n"


def program(cases: list[Case]) -> str:
    """C text of a program that checks all cases."""
    out = [
        KEEP_VNNI + NO_MIXED_DOT,
        "#include <stdint.h>",
        "#include <stddef.h>",
        "#include <string.h>",
        ATTRIBUTES,
    ]
    seen: set[str] = set()
    for case in cases:
        for include in sorted(case.code.includes):
            if include not in seen:
                out.append(f'#include "{include}"' if "/" in include else f"#include <{include}>")
                seen.add(include)
    for case in cases:
        for helper in case.code.helpers:
            if helper not in seen:
                out.append(helper)
                seen.add(helper)
    out.append(_MAIN)
    calls = []
    for i, case in enumerate(cases):
        xt, yt = f"{case.x.dtype.name}_t", f"{case.want.dtype.name}_t"
        code, nx, ny = case.code, case.x.size, case.want.size
        out.append(case.extra)
        out.append(function(code, f"kernel{i}", xt, yt))
        out.append(_array(f"given{i}", xt, case.x, 4))
        out.append(_array(f"want{i}", yt, case.want, 4))
        for c in code.constants:
            out.append(_array(f"{c.name}{i}", f"{c.data.dtype.name}_t", c.data, c.align))
        for s in code.scratch:
            size = {"uint32_t": 4, "int32_t": 4, "int16_t": 2}.get(s.ctype, 1)
            out.append(
                f"static {s.ctype} {s.name}{i}[{-(-s.nbytes // size)}] "
                f"__attribute__((aligned({max(s.align, size)})));"
            )
        rest = "".join(f", {c.name}{i}" for c in code.constants) + "".join(
            f", {s.name}{i}" for s in code.scratch
        )
        out.append(f"static {yt} found{i}[{ny}];")
        spoil = [f"    memset({s.name}{i}, 0xa5, sizeof {s.name}{i});" for s in code.scratch]
        lines = [
            f"    memset(found{i}, 0x5a, sizeof found{i});",
            "    start = ticks();",
            *spoil,
            f"    kernel{i}(given{i}, found{i}{rest});",
            f'    printf("ticks {i} %lu\\n", (unsigned long)(ticks() - start));',
            f'    bad += check({i}, "apart", (const uint8_t *)found{i}, (const uint8_t *)want{i}, {ny});',
        ]
        if code.slack is not None and case.overlap and xt == yt:
            step = code.slack_step
            most = min(code.slack, nx) // step * step
            for offset in sorted(
                {most, most // 2 // step * step if most > 0 else most - 3 * step, min(0, most)}
            ):
                x_at, y_at = max(-offset, 0), max(offset, 0)
                name = f"both{i}_{offset}".replace("-", "n")
                out.append(f"static {xt} {name}[{max(x_at + nx, y_at + ny)}] __attribute__((aligned(4)));")
                lines += [
                    f"    memcpy({name} + {x_at}, given{i}, sizeof given{i});",
                    *spoil,
                    f"    kernel{i}({name} + {x_at}, {name} + {y_at}{rest});",
                    f'    bad += check({i}, "y - x = {offset}", (const uint8_t *){name} + {y_at}, (const '
                    f"uint8_t *)want{i}, {ny});",
                ]
        calls += lines
    main = "\n".join(calls)
    out.append(
        f"int main(void)\n{{\n    int bad = 0;\n    uint32_t start;\n{main}\n    return bad != 0;\n}}\n"
    )
    return "\n".join(out)


def run_host(
    cases: list[Case],
    directory: Path,
    flags: tuple[str, ...] = ("-O1",),
    compiler: str = "gcc",
    sanitized: bool = True,
    runner: tuple[str, ...] = (),
) -> str:
    source = directory / "host.c"
    source.write_text(program(cases))
    exe = directory / "host"
    options = [*STRICT, *flags, *(REPORTS if sanitized else ())]
    commands = [[compiler, *options, f"-I{include_dir()}", "-o", str(exe), str(source)]]
    return built_and_run(commands, [*runner, str(exe)], directory)


def run_board(cases: list[Case], directory: Path, core: str, flags: tuple[str, ...] = ("-O2",)) -> list[int]:
    """Instructions of each case on a core (m0, m4 …)."""
    board = BOARDS[core]
    (directory / "board.c").write_text(program(cases))
    subprocess.run(
        [COMPILER, *board.flags, "-mthumb", *flags, "-DBARE", *STRICT, f"-I{include_dir()}", "-c", "board.c"],
        cwd=directory,
        check=True,
    )
    text = build_and_run(board, ["board.o"], directory, list(flags), timeout=300)
    return [
        board.instructions(int(line.split()[2])) for line in text.splitlines() if line.startswith("ticks ")
    ]
