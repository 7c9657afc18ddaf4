"""A table at rows of bytes, as Helium's tails use it, against the table itself: in QEMU at every
optimisation, the portable twin on the host under sanitizers.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from aot_model.host.program import STRICT
from aot_model.installation import include_dir
from batch import Case, generate
from qemu import BOARDS, available, build_and_run
from sanitizers import REPORTS, built_and_run
from translation_unit import Generated

PROGRAM = """
#include "aot_model/int8_mve.h"

int main(void)
{
    int8_t table[256], x[300], y[302];
    uint8_t unsigned_x[300], unsigned_y[302];
    int wrong = 0;
    for (int32_t k = 0; k < 256; k++) {
        table[k] = (int8_t)((k * k + 3 * k) % 251 - 125);
    }
    for (int32_t n = 0; n <= 300; n += n < 40 ? 1 : 13) {
        for (int32_t k = 0; k < 302; k++) {
            y[k] = 99;
            x[k % 300] = (int8_t)((k * 37 + n) % 256 - 128);
        }
        aot_mve_lookup(x, table, y + 1, n);
        for (int32_t k = 0; k < n; k++) {
            wrong += y[1 + k] != table[x[k] + 128];
        }
        wrong += y[0] != 99 || y[1 + n] != 99;
        memset(unsigned_y, 99, sizeof unsigned_y);
        for (int32_t k = 0; k < 300; k++) {
            unsigned_x[k] = (uint8_t)(x[k] + 128);
        }
        aot_mve_lookup_uint8(unsigned_x, (const uint8_t *)table, unsigned_y + 1, n);
        for (int32_t k = 0; k < n; k++) {
            wrong += unsigned_y[1 + k] != (uint8_t)y[1 + k];
        }
        wrong += unsigned_y[0] != 99 || unsigned_y[1 + n] != 99;
        aot_mve_lookup(x, table, x, n); /* in place */
        for (int32_t k = 0; k < n; k++) {
            wrong += x[k] != y[1 + k];
        }
    }
    return wrong != 0;
}
"""


def test_twin_on_the_host(tmp_path: Path) -> None:
    (tmp_path / "program.c").write_text(PROGRAM)
    command = ["gcc", *STRICT, "-O1", *REPORTS, f"-I{include_dir()}", "program.c", "-o", "program"]
    built_and_run([command], ["./program"], tmp_path)


@pytest.mark.skipif(not available(), reason="needs qemu-system-arm and arm-none-eabi-gcc")
@pytest.mark.parametrize("optimise", ["-O0", "-O1", "-O2", "-O3", "-Os"])
def test_in_helium(optimise: str, tmp_path: Path) -> None:
    (tmp_path / "program.c").write_text(PROGRAM)
    build_and_run(
        BOARDS["m55"], ["program.c"], tmp_path, [optimise, "-std=c99", "-Wall", f"-I{include_dir()}"]
    )


def _model() -> onnx.ModelProto:
    """A quantised convolution and its logistic function."""
    numbers = {"s": 0.05, "z": 3, "ws": 0.02, "wz": 0, "o": 1 / 256, "oz": -128}
    rng = np.random.default_rng(3)
    weights = [
        numpy_helper.from_array(np.asarray(v, np.int8 if k.endswith("z") else np.float32), k)
        for k, v in numbers.items()
    ]
    weights.append(numpy_helper.from_array(rng.integers(-99, 99, (21, 4, 1, 1)).astype(np.int8), "w"))
    nodes = [
        helper.make_node("DequantizeLinear", ["x", "s", "z"], ["xf"]),
        helper.make_node("DequantizeLinear", ["w", "ws", "wz"], ["wf"]),
        helper.make_node("Conv", ["xf", "wf"], ["c"]),
        helper.make_node("QuantizeLinear", ["c", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["qf"]),
        helper.make_node("Sigmoid", ["qf"], ["l"]),
        helper.make_node("QuantizeLinear", ["l", "o", "oz"], ["y"]),
    ]  # fmt: skip
    x, y = (
        helper.make_tensor_value_info(n, onnx.TensorProto.INT8, [1, c, 5, 6])
        for n, c in (("x", 4), ("y", 21))
    )
    graph = helper.make_graph(nodes, "logistic", [x], [y], weights)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def test_tail_of_a_convolution_takes_rows(tmp_path: Path) -> None:
    x = np.zeros((1, 4, 5, 6), np.int8)
    made = generate(tmp_path, 0, Case("logistic", _model(), (x,)), "cortex-m55")
    assert isinstance(made, Generated)
    assert "aot_mve_lookup(row" in made.source
