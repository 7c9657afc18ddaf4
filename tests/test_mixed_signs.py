"""Sums of int8 times (uint8 - 128), which GCC 12 gets wrong where the machine multiplies bytes of mixed signs
(docs/compilers.md).
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from aot_model.cli import main
from aot_model.emit.render import NO_MIXED_DOT

LOOP = """
#include <stdint.h>
#include <stdio.h>
__attribute__((noipa)) static int32_t sum(const int8_t *x, const uint8_t *w)
{
    int32_t s = 0;
    for (int i = 0; i < 256; i++) { s += x[i] * (w[i] - 128); }
    return s;
}
int main(void)
{
    static int8_t x[256];
    static uint8_t w[256];
    for (int i = 0; i < 256; i++) { x[i] = (int8_t)(i % 100 - 30); w[i] = (uint8_t)(i * 7); }
    printf("%d", (int)sum(x, w));
    return 0;
}
"""
PLACES = np.arange(256)
SUM = int(np.sum((PLACES % 100 - 30) * ((PLACES * 7) % 256 - 128)))
FLAGS = (
    ("gcc", ("-O2", "-march=native"), ()),
    ("gcc", ("-O3", "-march=native"), ()),
    (
        "aarch64-linux-gnu-gcc",
        ("-O3", "-march=armv8.6-a+i8mm"),
        ("qemu-aarch64", "-cpu", "max", "-L", "/usr/aarch64-linux-gnu"),
    ),
)


@pytest.mark.parametrize(("compiler", "flags", "runner"), FLAGS)
def test_the_loop(compiler: str, flags: tuple[str, ...], runner: tuple[str, ...], tmp_path: Path) -> None:
    if any(shutil.which(p) is None for p in (compiler, *runner[:1])):
        pytest.skip(f"needs {compiler} and what runs its programs")
    (tmp_path / "loop.c").write_text(NO_MIXED_DOT + LOOP)
    subprocess.run(
        [compiler, "-std=c99", "-Wall", "-Werror", *flags, "loop.c", "-o", "loop"], cwd=tmp_path, check=True
    )
    assert (
        int(subprocess.run([*runner, "./loop"], cwd=tmp_path, capture_output=True, check=True).stdout) == SUM
    )


@pytest.mark.parametrize("target", ["c", "host"])
@pytest.mark.parametrize("constant", [True, False])
@pytest.mark.parametrize(
    ("kinds", "zeros"),
    [((np.int8, np.uint8), (0, 128)), ((np.uint8, np.int8), (128, 0)), ((np.uint8, np.uint8), (128, 128))],
)
def test_integer_products(
    kinds: tuple[type, type], zeros: tuple[int, int], constant: bool, target: str, tmp_path: Path
) -> None:
    rng = np.random.default_rng(1)
    a, b = (
        rng.integers(np.iinfo(k).min, np.iinfo(k).max + 1, s).astype(k)
        for k, s in zip(kinds, ((2, 5, 64), (64, 16)), strict=True)
    )
    held = [
        numpy_helper.from_array(np.asarray(z, k), f"z{n}")
        for n, (z, k) in enumerate(zip(zeros, kinds, strict=True))
    ]
    ports = [helper.make_tensor_value_info("a", helper.np_dtype_to_tensor_dtype(a.dtype), a.shape[1:])]
    if constant:
        held.append(numpy_helper.from_array(b, "b"))
    else:
        ports.append(helper.make_tensor_value_info("b", helper.np_dtype_to_tensor_dtype(b.dtype), b.shape))
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["a", "b", "z0", "z1"], ["y"])],
        "product",
        ports,
        [helper.make_tensor_value_info("y", TensorProto.INT32, [5, 16])],
        held,
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    onnx.save(model, tmp_path / "m.onnx")
    feeds = [{"a": v, **({} if constant else {"b": b})} for v in a]
    wanted = np.stack([ReferenceEvaluator(model).run(None, f)[0] for f in feeds])
    np.savez(tmp_path / "v.npz", in_0=a, out_0=wanted, **({} if constant else {"in_1": np.stack([b, b])}))
    assert (
        main(
            [
                "verify",
                str(tmp_path / "m.onnx"),
                "--vectors",
                str(tmp_path / "v.npz"),
                "--target",
                target,
                "--cflags",
                "-O2 -march=native",
            ]
        )
        == 0
    )
