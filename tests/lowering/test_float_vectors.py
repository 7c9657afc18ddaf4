"""Loops over floats in Helium: their functions against the scalar ones, and loops against the plain ones
beside them, in QEMU at every optimisation.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from float_loops import F32, nests, plain

from aot_model.installation import include_dir
from qemu import BOARDS, available, build_and_run
from turns import in_turn

OPTIMISED = ["-O0", "-O1", "-O2", "-O3", "-Os"]
FLAGS = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Werror"]
FUNCTIONS = """
#include <stdio.h>
#include <string.h>
#include "aot_model/float_vectors.h"
#include "aot_model/rational.h"

#if !AOT_MODEL_FLOAT_VECTORS
#error "no vectors"
#endif

static uint32_t bits(float x)
{
    uint32_t b;
    memcpy(&b, &x, sizeof b);
    return b;
}

/* The same bits; any NaN for a NaN; where a subnormal number may have been 0 on the way, next to nothing. */
static int unlike(float a, float b)
{
    if (isnan(b)) {
        return !isnan(a);
    }
    if (fabsf(b) < 1e-35f) {
        return !(fabsf(a) < 1e-35f);
    }
    return bits(a) != bits(b);
}

static int wrong;
static void look(const char *name, float x, float a, float b)
{
    if (unlike(a, b)) {
        wrong++;
        printf("%s(%08lx): %08lx, not %08lx\\n", name, (unsigned long)bits(x), (unsigned long)bits(a), (unsigned long)bits(b));
    }
}

#define TRY(name, vector, scalar)                                                                                                \\
    aot_model_store_f32(y, vector(aot_model_load_f32(x)));                                                                       \\
    for (int32_t k = 0; k < 4; k++) {                                                                                            \\
        look(name, x[k], y[k], scalar(x[k]));                                                                                    \\
    }

static void four(const float *x)
{
    float y[4];
    TRY("exp", aot_model_four_exp, aot_model_short_exp)
    TRY("expm1", aot_model_four_expm1, aot_model_short_expm1)
    TRY("log", aot_model_four_log, aot_model_short_log)
    TRY("log1p", aot_model_four_log1p, aot_model_short_log1p)
    TRY("softplus_rest", aot_model_four_softplus_rest, aot_model_short_softplus_rest)
    TRY("erf", aot_model_four_erf, aot_model_short_erf)
    TRY("tanh", aot_model_four_tanh, aot_model_tanh_float32)
    TRY("logistic", aot_model_four_logistic, aot_model_logistic_float32)
    TRY("sigmoid", aot_model_four_sigmoid, aot_model_short_logistic)
    TRY("libm_tanh", aot_model_four_libm_tanh, aot_model_short_tanh)
    aot_model_store_f32(y, aot_model_four_quotients(aot_model_load_f32(x), vdupq_n_f32(x[3])));
    for (int32_t k = 0; k < 4; k++) {
        look("quotient", x[k], y[k], x[k] / x[3]);
    }
}

/* Of logarithms that are numbers. */
static void four_logs(const float *any)
{
    float x[4];
    float y[4];
    for (int32_t k = 0; k < 4; k++) {
        x[k] = isnan(any[k]) ? 3.0f : fabsf(any[k]);
    }
    TRY("log", aot_model_four_log, aot_model_short_log)
    TRY("log1p", aot_model_four_log1p, aot_model_short_log1p)
    for (int32_t k = 0; k < 4; k++) {
        x[k] = isinf(x[k]) ? 1.0f : 1.0f / (1.0f + x[k]);
    }
    TRY("log", aot_model_four_log, aot_model_short_log)
    for (int32_t k = 0; k < 4; k++) {
        x[k] = (k % 2 == 0) ? 0.5f * x[k] - 1.0f : 0.5f - x[k];
    }
    TRY("log1p", aot_model_four_log1p, aot_model_short_log1p)
}

int main(void)
{
    static const float ends[] = {0.0f, 1.0f, 87.0f, 87.1f, 88.8f, 89.5f, 103.0f, 105.0f, 0.92f, 0.91999996f, 4.0f, 3.9999998f, 4.1f,
        9.0f, 9.1f, 18.0f, 18.1f, 1e30f, 2e-38f, INFINITY, NAN, 0.5f, 0.25f, 1e-6f,
        0.55f, 0.54999995f, 0.55000001f, 40.0f, 40.1f, 43.5f, 43.6f, 64.1f,
        0.70710677f, 0.7071068f, 0.7071069f, 1.4142135f, 1.4142137f, 0.41421354f, 0.41421357f, 64.0f,
        33554428.0f, 33554432.0f, 16777216.0f, 16777217.0f, 1.1754944e-38f, 3.4028235e38f, 1.5f, 2.0f};
    uint32_t state = 1u;
    for (uint32_t k = 0; k + 4 <= sizeof ends / sizeof ends[0]; k++) {
        float x[4] = {ends[k], ends[k + 1], -ends[k + 2], -ends[k + 3]};
        four(x);
        four_logs(x);
        x[0] = -x[0];
        x[1] = -x[1];
        four(x);
    }
    for (int turn = 0; turn < 4000; turn++) {
        float x[4];
        for (int32_t k = 0; k < 4; k++) {
            state = state * 1664525u + 1013904223u;
            const uint32_t any = (state & 0x807fffffu) | ((114u + (state >> 24) % 22u) << 23); /* 2^-13 to 2^9 */
            memcpy(&x[k], &any, sizeof any);
        }
        four(x);
        four_logs(x);
    }
    return wrong != 0;
}
"""  # noqa: E501


@pytest.mark.skipif(not available(), reason="needs qemu-system-arm and arm-none-eabi-gcc")
@pytest.mark.parametrize("optimise", OPTIMISED)
def test_functions_have_the_bits_of_the_scalar_ones(optimise: str, tmp_path: Path) -> None:
    (tmp_path / "program.c").write_text(FUNCTIONS)
    build_and_run(BOARDS["m55"], ["program.c"], tmp_path, [optimise, *FLAGS, f"-I{include_dir()}"])


def test_what_has_vectors() -> None:
    assert all("FLOAT_VECTORS" in one.function.body for one in nests())
    assert not any("vstr" in one.function.body for one in plain())


@pytest.mark.skipif(not available(), reason="needs qemu-system-arm and arm-none-eabi-gcc")
@pytest.mark.parametrize("optimise", in_turn(OPTIMISED, 2))
def test_the_same_numbers(optimise: str, tmp_path: Path) -> None:
    rng, text, calls, found = np.random.default_rng(3), "", "", nests()
    headers = {h for one in found for h in one.function.includes}
    for k, one in enumerate(found):
        parts = re.fullmatch(
            r"#if AOT_MODEL_FLOAT_VECTORS\n(.*)\n#else\n(.*)\n#endif", one.function.body, re.DOTALL
        )
        assert parts is not None
        params, arguments = [], []
        for p, value in zip(one.function.params, (*one.reads, None), strict=True):
            if value is not None:
                if value.dtype is not F32:
                    low, high = (int(n) for n in value.dtype.limits)
                    whole = rng.integers(low, high, value.type.elements, endpoint=True)
                    text += (
                        f"static const {value.dtype.c_type} d{k}_{p.name}[] = "
                        f"{{{', '.join(map(str, whole))}}};\n"
                    )
                    arguments.append(f"d{k}_{p.name}, ")
                    params.append(f"const {p.dtype.c_type} *{p.name}")
                    continue
                data = rng.uniform(0.5, 3, value.type.elements) * rng.choice([-1, 1], value.type.elements)
                if re.search("vcmp|_four_m", one.function.body):
                    data[::7] = np.nan
                    data[1::8] = np.resize([-0.75, 0.0, -0.0, np.inf], len(data[1::8]))
                if "_odd" in one.function.body:
                    data[::29] = np.nan
                    data[2::11] = rng.choice([-np.inf, -0.75, np.inf], len(data[2::11]))
                if one.function.params[-1].dtype is not F32:  # ties, limits, what is beyond them
                    data = np.round(data * rng.choice([8, 40, 1e4, 1e30], len(data))) / 8
                    data[:5] = (np.inf, -np.inf, np.nan, 0, 3e38)[: len(data)]
                special = {"inf": "INFINITY", "-inf": "-INFINITY", "nan": "NAN"}
                numbers = ", ".join(special.get(str(v), f"{v:.6f}f") for v in data)
                text += f"static const float d{k}_{p.name}[] = {{{numbers}}};\n"
                arguments.append(f"d{k}_{p.name}, ")
            params.append(f"{'' if value is None else 'const '}{p.dtype.c_type} *{p.name}")
        for suffix, part in zip("vp", parts.groups(), strict=True):
            text += f"static void f{k}{suffix}({', '.join(params)})\n{{\n{part}\n}}\n"
        text += f"static {one.function.params[-1].dtype.c_type} y{k}v[256], y{k}p[256];\n"
        calls += f"    f{k}v({''.join(arguments)}y{k}v);\n    f{k}p({''.join(arguments)}y{k}p);\n"
        if one.function.params[-1].dtype is F32:
            calls += f"    one_nan(y{k}v, y{k}p);\n"
        calls += (
            f"    if (memcmp(y{k}v, y{k}p, sizeof y{k}v) != 0) {{\n"
            f'        printf("%d ", {k});\n        wrong = 1;\n    }}\n'
        )
    text += """
/* Any NaN for a NaN. */
static void one_nan(float *a, const float *b)
{
    for (int32_t i = 0; i < 256; i++) {
        a[i] = (isnan(a[i]) && isnan(b[i])) ? b[i] : a[i];
    }
}
"""
    names = "".join(f'#include "{h}"\n' if "/" in h else f"#include <{h}>\n" for h in sorted(headers))
    program = (
        f"#include <math.h>\n#include <stdint.h>\n#include <stdio.h>\n#include <string.h>\n{names}"
        f"{text}\nint main(void)\n{{\n    int wrong = 0;\n{calls}    return wrong;\n}}\n"
    )
    (tmp_path / "program.c").write_text(program)
    build_and_run(BOARDS["m55"], ["program.c"], tmp_path, [optimise, *FLAGS, f"-I{include_dir()}"])
