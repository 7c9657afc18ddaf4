"""Sums of floats that are read backwards, which GCC 12 gets wrong where it makes vectors of the loop
(docs/compilers.md).
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper
from onnx.reference import ReferenceEvaluator

from aot_model.c.text import IN_ORDER
from aot_model.installation import include_dir
from batch import Case, run_cases
from onnx_models import model

LOOP = """
#include "aot_model/attributes.h"
#include <stdio.h>
AOT_MODEL_OPAQUE static float sum(const float *restrict x)
{
    float s = 0.0f;
    for (int i = 0; i < 8; i++) {
        %s
        s = s + x[2];
        s = s + x[1];
        s = s + x[0];
        x += 3;
    }
    return s;
}
int main(void)
{
    static float x[24];
    for (int i = 0; i < 24; i++) { x[i] = (float)i; }
    printf("%%d", (int)sum(x));
    return 0;
}
"""
SUM = 276
FLAGS = [
    (c, f, r)
    for f in ("-O2", "-O3")
    for c, r in (
        ("gcc", ()),
        ("clang-19", ()),
        ("aarch64-linux-gnu-gcc", ("qemu-aarch64", "-L", "/usr/aarch64-linux-gnu")),
    )
]


@pytest.mark.parametrize(("compiler", "flags", "runner"), FLAGS)
def test_the_loop(compiler: str, flags: str, runner: tuple[str, ...], tmp_path: Path) -> None:
    if any(shutil.which(p) is None for p in (compiler, *runner[:1])):
        pytest.skip(f"needs {compiler} and what runs its programs")
    (tmp_path / "loop.c").write_text(LOOP % IN_ORDER)
    subprocess.run(
        [compiler, "-std=c99", "-Wall", "-Werror", flags, f"-I{include_dir()}", "loop.c", "-o", "loop"],
        cwd=tmp_path,
        check=True,
    )
    done = subprocess.run([*runner, "./loop"], cwd=tmp_path, capture_output=True, check=True)
    assert int(done.stdout) == SUM


def backwards(rows: int, columns: int, kind: str) -> Case:
    """A reduction of what was turned round, or of what was transposed."""
    numbers = {"b": [-1], "e": [-(2**40)], "a": [-1], "s": [-1], "axes": [1, 2]}
    first = [helper.make_node("Slice", ["x", "b", "e", "a", "s"], ["f"])]
    if kind == "transposed":
        first, kind = [helper.make_node("Transpose", ["x"], ["f"], perm=[0, 2, 1])], "ReduceSum"
    nodes = [*first, helper.make_node(kind, ["f", "axes"], ["y"], keepdims=0)]
    read = {i for n in nodes for i in n.input}
    info = helper.make_tensor_value_info
    made = model(
        nodes,
        [info("x", TensorProto.FLOAT, [2, rows, columns])],
        [info("y", TensorProto.FLOAT, [2])],
        {k: np.asarray(v, np.int64) for k, v in numbers.items() if k in read},
    )
    x = np.random.default_rng(rows * columns).normal(0, 1, (2, rows, columns)).astype(np.float32)
    return Case(f"{kind} {rows} x {columns}", made, (x,))


@pytest.mark.parametrize("flags", [("-O2",), ("-O2", "-march=native"), ("-O3",)])
def test_reductions(flags: tuple[str, ...]) -> None:
    cases = [
        backwards(rows, columns, kind)
        for rows in (3, 4, 8)
        for columns in (2, 3)
        for kind in ("ReduceSum", "ReduceMean", "ReduceL2", "transposed")
    ]
    for case, outcome in zip(cases, run_cases(cases, "c", sanitize=False, flags=flags), strict=True):
        assert isinstance(case.model, onnx.ModelProto)
        wanted = ReferenceEvaluator(case.model).run(None, {"x": case.inputs[0]})
        assert outcome.status == "ok", outcome.message
        np.testing.assert_allclose(outcome.outputs[0], wanted[0], rtol=1e-4, atol=1e-5, err_msg=case.name)
