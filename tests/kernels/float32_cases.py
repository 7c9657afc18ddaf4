"""Kernels of random shapes as C functions in one translation unit, with the results that numpy computes."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np
from kernel_program import ATTRIBUTES

from aot_model.kernels.base import ConvShape, KernelCode
from aot_model.kernels.float32.dialect import VectorDialect


@dataclass(frozen=True)
class DenseTail:
    """y[n, y, x, c] = acc, dense channels last."""

    shape: tuple[int, int, int, int]
    dialect: VectorDialect
    comment: str = ""
    """Makes the tail as long as one that computes something."""

    def store(self, acc: str, index: tuple[str, str, str, str], lanes: int) -> str:
        n, y, x, c = index
        _, h, w, channels = self.shape
        at = f"((({n}) * {h} + {y}) * {w} + {x}) * {channels} + {c}"
        if lanes == 1:
            return f"y[{at}] = {acc};{self.comment}"
        return self.dialect.some(lanes).store(f"y + ({at})", acc) + self.comment


@dataclass
class Case:
    name: str
    code: KernelCode
    inputs: list[np.ndarray]
    want: np.ndarray
    names: list[str] = field(default_factory=lambda: ["x"])


HEAD = """\
#include <math.h>
#include <stdint.h>
#include <stddef.h>
#include <string.h>
"""


def function(case: Case, name: str) -> str:
    """The kernel as a function (x, ..., constants, y)."""
    parameters = [f"const float *{n}" for n in case.names]
    parameters += [f"const float *{c.name}" for c in case.code.constants]
    parameters += [f"{s.ctype} *{s.name}" for s in case.code.scratch]
    body = "\n".join("    " + line if line else "" for line in case.code.body.split("\n"))
    # windows that meet nothing have no use for their weights
    idle = [n for n in case.names if not re.search(rf"\b{n}\b", case.code.body)]
    body = "".join(f"    (void){n};\n" for n in idle) + body
    note = f"/* {case.name}: {case.code.note} */\n"
    return (
        f"{note}AOT_MODEL_OPAQUE void {name}({', '.join(parameters)}, float *y);\nvoid "
        f"{name}({', '.join(parameters)}, float *y)\n{{\n{body}}}\n"
    )


def unit(cases: list[Case]) -> str:
    """All kernels, functions k0, k1, ..."""
    includes = sorted({i for c in cases for i in c.code.includes})
    helpers: list[str] = []
    for c in cases:
        helpers += [h for h in c.code.helpers if h not in helpers]
    parts = [HEAD] + [f"#include <{i}>\n" for i in includes] + [ATTRIBUTES, *helpers]
    return "\n".join(parts + [function(c, f"k{i}") for i, c in enumerate(cases)])


def conv_reference(s: ConvShape, x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """x: [N, H, W, C]; weights [OC, KH, KW, IC]; in double precision."""
    y = np.zeros((s.batch, s.out_h, s.out_w, s.out_c))
    ic, oc = s.in_c // s.groups, s.out_c // s.groups
    for oy in range(s.out_h):
        for ox in range(s.out_w):
            for ky in range(s.kernel_h):
                for kx in range(s.kernel_w):
                    iy = oy * s.stride_h - s.pad_top + ky * s.dilation_h
                    ix = ox * s.stride_w - s.pad_left + kx * s.dilation_w
                    if 0 <= iy < s.in_h and 0 <= ix < s.in_w:
                        for g in range(s.groups):
                            y[:, oy, ox, g * oc : (g + 1) * oc] += x[:, iy, ix, g * ic : (g + 1) * ic].astype(
                                float
                            ) @ weights[g * oc : (g + 1) * oc, ky, kx].T.astype(float)
    return y


def transposed_reference(s: ConvShape, x: np.ndarray, weights: np.ndarray) -> np.ndarray:
    y = np.zeros((s.batch, s.out_h, s.out_w, s.out_c))
    ic, oc = s.in_c // s.groups, s.out_c // s.groups
    for iy in range(s.in_h):
        for ix in range(s.in_w):
            for ky in range(s.kernel_h):
                for kx in range(s.kernel_w):
                    oy = iy * s.stride_h - s.pad_top + ky * s.dilation_h
                    ox = ix * s.stride_w - s.pad_left + kx * s.dilation_w
                    if 0 <= oy < s.out_h and 0 <= ox < s.out_w:
                        for g in range(s.groups):
                            y[:, oy, ox, g * oc : (g + 1) * oc] += x[:, iy, ix, g * ic : (g + 1) * ic].astype(
                                float
                            ) @ weights[g * oc : (g + 1) * oc, ky, kx].T.astype(float)
    return y


def windows(s: ConvShape, x: np.ndarray, outside: float) -> np.ndarray:
    """[N, out_h, out_w, C, kernel_h, kernel_w]: what every window sees, `outside` beyond the input."""
    seen = np.full((s.batch, s.out_h, s.out_w, s.in_c, s.kernel_h, s.kernel_w), outside, float)
    for oy in range(s.out_h):
        for ox in range(s.out_w):
            for ky in range(s.kernel_h):
                for kx in range(s.kernel_w):
                    iy = oy * s.stride_h - s.pad_top + ky * s.dilation_h
                    ix = ox * s.stride_w - s.pad_left + kx * s.dilation_w
                    if 0 <= iy < s.in_h and 0 <= ix < s.in_w:
                        seen[:, oy, ox, :, ky, kx] = x[:, iy, ix]
    return seen


def main_source(cases: list[Case]) -> str:
    """A program that reads all arrays from in.bin (first argument) and writes all results to out.bin
    (second).

    A kernel that states a slack runs a second time with the result as far over the input as that permits.
    Every array is allocated with its exact size, so that the address sanitiser sees an access beyond it.
    """
    lines = ["#include <stdint.h>", "#include <stdio.h>", "#include <stdlib.h>", "#include <string.h>"]
    for i, c in enumerate(cases):
        count = len(c.names) + len(c.code.constants)
        types = ["const float *"] * count + [f"{s.ctype} *" for s in c.code.scratch] + ["float *"]
        lines.append(f"void k{i}({', '.join(types)});")
    lines += [
        "static void *take(FILE *f, size_t bytes)",
        "{",
        "    void *p = malloc(bytes ? bytes : 1);",
        "    if (p == NULL || fread(p, 1, bytes, f) != bytes) exit(2);",
        "    return p;",
        "}",
        "int main(int argc, char **argv)",
        "{",
        '    FILE *in = fopen(argc > 1 ? argv[1] : "in.bin", "rb");',
        '    FILE *out = fopen(argc > 2 ? argv[2] : "out.bin", "wb");',
        "    if (in == NULL || out == NULL) return 3;",
    ]
    for i, c in enumerate(cases):
        arrays = [*c.inputs, *(k.data for k in c.code.constants)]
        lines.append("    {")
        lines += [f"        void *p{j} = take(in, {a.nbytes}u);" for j, a in enumerate(arrays)]
        lines += [f"        void *s{j} = malloc({s.nbytes}u);" for j, s in enumerate(c.code.scratch)]
        lines.append(f"        void *y = malloc({c.want.size * 4}u);")
        names = [f"p{j}" for j in range(len(arrays))] + [f"s{j}" for j in range(len(c.code.scratch))] + ["y"]
        lines.append(f"        k{i}({', '.join(names)});")
        lines.append(f"        fwrite(y, 4, {c.want.size}u, out);")
        lines += _overlapped(i, c, names)
        lines += [f"        free({name});" for name in names]
        lines.append("    }")
    return "\n".join([*lines, "    fclose(out);", "    fclose(in);", "    return 0;", "}", ""])


def _overlapped(i: int, c: Case, names: list[str]) -> list[str]:
    """Run kernel i with y over x; the result must be the same to the bit."""
    if c.code.slack is None:
        return []
    x_at, y_at = max(0, -c.code.slack), max(0, c.code.slack)
    size = max(x_at + c.inputs[0].nbytes, y_at + c.want.size * 4)
    return [
        f"        char *both = malloc({size}u);",
        f"        memcpy(both + {x_at}, p0, {c.inputs[0].nbytes}u);",
        "        "
        f"k{i}({', '.join([f'(float *)(both + {x_at})', *names[1:-1], f'(float *)(both + {y_at})'])});",
        f'        if (memcmp(both + {y_at}, y, {c.want.size * 4}u) != 0) {{ fprintf(stderr, "overlap '
        f'%d\\n", {i}); return 4; }}',
        "        free(both);",
    ]


def input_bytes(cases: list[Case]) -> bytes:
    arrays = [a for c in cases for a in (*c.inputs, *(k.data for k in c.code.constants))]
    return b"".join(np.ascontiguousarray(a, np.float32).tobytes() for a in arrays)


def check(cases: list[Case], out: np.ndarray) -> None:
    """Compare the program's results with what numpy computed."""
    assert out.size == sum(c.want.size for c in cases)
    at = 0
    for c in cases:
        got = out[at : at + c.want.size].reshape(c.want.shape)
        at += c.want.size
        np.testing.assert_allclose(
            got,
            c.want,
            rtol=1e-5,
            atol=1e-5 * max(1.0, float(np.abs(c.want[np.isfinite(c.want)]).max(initial=0))),
            err_msg=c.name,
        )
