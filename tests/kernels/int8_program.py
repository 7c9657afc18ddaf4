"""A C program that runs kernels on given inputs and compares them with the expected bytes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from kernel_program import ATTRIBUTES

from aot_model.kernels.base import KernelCode
from qemu import DTCM_END

GUARD = 64


@dataclass(frozen=True)
class Case:
    """One kernel, its input and what it must give."""

    label: str
    code: KernelCode
    x: np.ndarray
    expected: np.ndarray


def _c_type(data: np.ndarray) -> str:
    return f"{data.dtype.name}_t"


def _array(name: str, data: np.ndarray, align: int = 4) -> str:
    flat = [str(int(v)) for v in data.reshape(-1)]
    values = ",\n".join(",".join(flat[i : i + 24]) for i in range(0, len(flat), 24))
    return f"static const {_c_type(data)} {name}[] __attribute__((aligned({align}))) = {{{values}}};\n"


def program(cases: list[Case], device: bool, count: bool = False) -> str:
    """The program: exit status 0 when every case gives its bytes, apart and at the declared overlap.

    device: for a Cortex-M55 in QEMU, where inputs end at the end of a memory, instead of a host. count: print
    the ticks of each case.
    """
    includes = sorted(
        {i for c in cases for i in c.code.includes} | {"<stdint.h>", "<string.h>", "<stdlib.h>"}
    )
    text = "".join(f'#include "{i}"\n' if "/" in i else f"#include {i}\n" for i in includes)
    text += ATTRIBUTES + (DEVICE if device else HOST)
    seen: set[str] = set()
    for case in cases:
        for helper in case.code.helpers:
            if helper not in seen:
                seen.add(helper)
                text += helper + "\n"
    calls = ""
    for i, case in enumerate(cases):
        x, y = case.x.size, case.expected.size
        for packed in case.code.constants:
            text += _array(f"const{i}_{packed.name}", packed.data, packed.align)
        text += _array(f"input{i}", case.x) + _array(f"want{i}", case.expected)
        for scratch in case.code.scratch:
            text += f"static {scratch.ctype} s{i}_{scratch.name}[{scratch.nbytes} / sizeof({scratch.ctype})] "
            text += f"__attribute__((aligned({scratch.align})));\n"
        text += f"AOT_MODEL_OPAQUE static void k{i}(const int8_t *input, int8_t *output)\n{{\n"
        of_x, of_y = _c_type(case.x), _c_type(case.expected)
        text += f"    const {of_x} *const x = (const {of_x} *)input;\n"
        text += f"    {of_y} *const y = ({of_y} *)output;\n"
        for packed in case.code.constants:
            text += f"    const {_c_type(packed.data)} *const {packed.name} = const{i}_{packed.name};\n"
        for scratch in case.code.scratch:
            text += f"    {scratch.ctype} *const {scratch.name} = s{i}_{scratch.name};\n"
        text += case.code.body + "}\n"
        data = f"(const int8_t *)input{i}, {x}, (const int8_t *)want{i}, {y}"
        calls += f'    failures += check("{case.label}", k{i}, {data}, 0, 0);\n'
        if case.code.slack is not None:
            slack = max(min(case.code.slack, x), -y)
            calls += f'    failures += check("{case.label} overlap", k{i}, {data}, 1, {slack});\n'
    largest = max(2 * GUARD + 2 * (c.x.size + c.expected.size) for c in cases)
    text += f"static int8_t arena[{largest}];\n#define COUNT {int(count)}\n" + CHECK
    return text + f"int main(void)\n{{\n    int failures = 0;\n{calls}    return failures != 0;\n}}\n"


DEVICE = f"""
#include <stdio.h>
uint32_t ticks(void);
#define DEVICE 1
#define DTCM_END {DTCM_END:#x}
"""

HOST = """
#include <stdio.h>
#define DEVICE 0
static uint32_t ticks(void) { return 0; }
"""

CHECK = """
static int check(const char *label, void (*kernel)(const int8_t *, int8_t *), const int8_t *x, int32_t x_bytes,
                 const int8_t *expected, int32_t y_bytes, int overlap, int32_t slack)
{
    int8_t *input, *output;
    const int32_t low = overlap && slack < 0 ? slack : 0;
    memset(arena, 0x5a, sizeof arena);
    if (overlap) {
        input = arena + 64 - low;
        output = input + slack;
    } else {
        output = arena + 64;
#if DEVICE
        input = (int8_t *)DTCM_END - x_bytes;
#else
        input = malloc((size_t)x_bytes);
#endif
    }
    memcpy(input, x, (size_t)x_bytes);
    const uint32_t start = ticks();
    kernel(input, output);
    const uint32_t stop = ticks();
    int failures = 0;
    for (int32_t i = 0; i < y_bytes; i++) {
        if (output[i] != expected[i]) {
            if (failures++ < 5) {
                printf("%s: at %d is %d, expected %d\\n", label, (int)i, output[i], expected[i]);
            }
        }
    }
    for (int8_t *p = arena; p < arena + sizeof arena; p++) {
        const int inside = (p >= output && p < output + y_bytes) || (overlap && p >= input && p < input + x_bytes);
        if (!inside && *p != 0x5a) {
            printf("%s: wrote outside of y at %d\\n", label, (int)(p - output));
            failures++;
            break;
        }
    }
    if (COUNT && !overlap) {
        printf("ticks %lu %s\\n", (unsigned long)(stop - start), label);
    }
    if (!overlap) {
#if !DEVICE
        free(input);
#endif
    }
    return failures != 0;
}
"""  # noqa: E501
