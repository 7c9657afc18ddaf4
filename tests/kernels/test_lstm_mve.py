"""Steps of an integer LSTM in Helium against the same ones element by element, in QEMU: all arguments of the
functions, sums of rows of any length, scalings with ties of both signs.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from aot_model.installation import include_dir
from aot_model.ops.lstm_integer import function_text
from aot_model.ops.quantised_tables import SigmoidInt16, sigmoid_table
from qemu import BOARDS, available, build_and_run

ARGUMENTS = ((3, 0), (20000, 13), (32767, 15))

MAIN = """
static uint32_t state = 1u;
static int32_t any(void)
{{
    state = state * 1664525u + 1013904223u;
    return (int32_t)(state >> 8);
}}

static const int32_t sums[] = {{0, 1, -1, 2, -2, 3, -3, 1 << 29, -(1 << 29), (1 << 30) - 1, 1 - (1 << 30),
    12345, -12345, 8191, -8192, 8192}};

int main(void)
{{
    int wrong = 0;
    int32_t four[4];
    for (int32_t x = -32768; x < 32768; x += 4) {{
        const int32_t at[4] = {{x, x + 1, x + 2, x + 3}};
        const int32x4_t v = vldrwq_s32(at);
        vstrwq_s32(four, aot_model_four_logistic_int16(table, vmulq_n_s32(v, 3)));
        for (int32_t i = 0; i < 4; i++) {{
            wrong += four[i] != logistic(table, (int16_t)(x + i));
        }}
{functions}    }}
    for (int32_t right = 0; right <= 30; right++) {{
        const aot_model_scaling s = aot_model_scaling_of(1073741824 + any() * 63, -right);
        for (int32_t k = 0; k < 16; k += 4) {{
            vstrwq_s32(four, aot_model_four_scaled(vldrwq_s32(sums + k), s));
            for (int32_t i = 0; i < 4; i++) {{
                wrong += four[i] != aot_model_scaled(sums[k + i], s);
            }}
        }}
    }}
    for (int32_t n = 1; n < 70; n++) {{
        static int8_t x[70], w[280];
        for (int32_t k = 0; k < 280; k++) {{
            x[k % 70] = (int8_t)any();
            w[k] = (int8_t)any();
        }}
        aot_model_four_rows_int8(x, w, n, four);
        for (int32_t i = 0; i < 4; i++) {{
            wrong += four[i] != aot_model_row_int8(x, w + i * n, n);
        }}
    }}
    return wrong != 0;
}}
"""


@pytest.mark.skipif(not available(), reason="needs qemu-system-arm and arm-none-eabi-gcc")
def test_four_at_a_time(tmp_path: Path) -> None:
    functions = [function_text("logistic", SigmoidInt16(False, 3, 0))]
    calls = ""
    for k, (multiplier, shift) in enumerate(ARGUMENTS):
        functions.append(function_text(f"tanh{k}", SigmoidInt16(True, multiplier, shift)))
        scaled = f"vrshlq_n_s32(vmulq_n_s32(v, {multiplier}), -{shift})"
        calls += f"""        vstrwq_s32(four, aot_model_four_tanh_int16(table, {scaled}));
        for (int32_t i = 0; i < 4; i++) {{
            wrong += four[i] != tanh{k}(table, (int16_t)(x + i));
        }}
"""
    entries = ", ".join(str(v) for v in sigmoid_table())
    program = (
        '#include "aot_model/scalar.h"\n#include "aot_model/int8_rows.h"\n'
        f"static const uint16_t table[256] = {{{entries}}};\n"
        + "\n".join(functions)
        + MAIN.format(functions=calls)
    )
    (tmp_path / "program.c").write_text(program)
    build_and_run(BOARDS["m55"], ["program.c"], tmp_path, ["-O2", "-std=c99", "-Wall", f"-I{include_dir()}"])
