"""Constants as C: strings of bytes in large models have the same bits, with every compiler and either order
of bytes.
"""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from aot_model.emit.byte_strings import ROW, string_rows
from aot_model.emit.constants import BULK
from aot_model.host.program import STRICT
from aot_model.installation import include_dir
from aot_model.pipeline import Request, compile_model, write
from onnx_models import model, save, tensor

node = helper.make_node
SIZE = 520  # its square is more than a quarter of BULK


def test_strings_have_all_bytes_in_every_surrounding(tmp_path: Path) -> None:
    """Each byte behind and before each other one: escapes, digits behind escapes, trigraphs, quotes."""
    pairs = np.stack(np.meshgrid(np.arange(256), np.arange(256)), -1).reshape(-1).astype(np.uint8)
    # digits, '?', and what is around them
    random = np.random.default_rng(1).integers(0x2F, 0x40, 5000).astype(np.uint8)
    data = pairs.tobytes() + random.tobytes() + b"??/" * 9
    rows = string_rows(data)
    count, rest = divmod(len(data), ROW)
    assert len(rows) == count + 1 and max(map(len, rows)) < 4090
    text = ",\n".join(rows[:-1])
    (tmp_path / "a.c").write_text(
        f"#include <stdio.h>\n#include <aot_model/attributes.h>\n"
        f"static const struct {{ unsigned char rows[{count}][{ROW}] AOT_MODEL_BYTES; unsigned char "
        f"rest[{rest}] AOT_MODEL_BYTES; }} all = {{ {{\n{text}\n}}, {rows[-1]} }};\n"
        "int main(void) { return fwrite(&all, 1, sizeof all, stdout) != sizeof all; }\n"
    )
    subprocess.run(["gcc", *STRICT, f"-I{include_dir()}", "a.c", "-o", "a"], cwd=tmp_path, check=True)
    assert subprocess.run(["./a"], cwd=tmp_path, capture_output=True, check=True).stdout == data


def large(kind: str) -> tuple[onnx.ModelProto, np.ndarray]:
    """A model with more than BULK bytes of constants of one type, and its output for ones."""
    rng = np.random.default_rng(2)
    if kind == "float32":
        w = rng.standard_normal((SIZE, SIZE)).astype(np.float32)
        assert w.nbytes > BULK
        nodes = [node("MatMul", ["x", "w"], ["y"])]
        return model(nodes, [tensor("x", [1, SIZE])], [tensor("y", [1, SIZE])], {"w": w}), w.astype(
            np.float64
        ).sum(0, keepdims=True)
    values = rng.integers(-128, 128, BULK + 3 * ROW + 1 if kind == "int8" else BULK // 4 + 7).astype(kind)
    if kind == "int8":
        values[-1] = 77  # the last byte, behind the last full row
    wanted = np.asarray([values[0], values[ROW], values[-1], values.astype(np.int64).sum()], np.float64)
    nodes = [
        node("Gather", ["values", "at"], ["some"]),
        node("Cast", ["some"], ["real"], to=1),
        node("Cast", ["values"], ["all"], to=1),
        node("Add", ["all", "x"], ["moved"]),
        node("ReduceSum", ["moved", "axis"], ["sum"], keepdims=1),
        node("Concat", ["real", "sum"], ["y"], axis=0),
    ]
    constants = {"values": values, "at": np.asarray([0, ROW, len(values) - 1]), "axis": np.asarray([0])}
    wanted[3] += len(values)
    return model(nodes, [tensor("x", [1])], [tensor("y", [4])], constants), wanted


MAIN = """\
#include <stdio.h>
#include "large.h"
int main(void)
{
    static float x[LARGE_X_SIZE / 4u], y[LARGE_Y_SIZE / 4u];
    for (unsigned k = 0; k < LARGE_X_SIZE / 4u; ++k) {
        x[k] = 1.0f;
    }
    if (large_run(&(large_inputs){ .x = x }, &(large_outputs){ .y = y }) != 0) {
        return 1;
    }
    for (unsigned k = 0; k < LARGE_Y_SIZE / 4u; ++k) {
        printf("%.9g\\n", (double)y[k]);
    }
    return 0;
}
"""
COMPILERS = {
    "gcc": [["gcc"], []], "m32": [["gcc", "-m32"], []], "clang": [["clang-22"], []],
    "packed": [["gcc", "-fpack-struct"], []],
    "s390x": [["s390x-linux-gnu-gcc"], ["qemu-s390x", "-L", "/usr/s390x-linux-gnu"]],
}  # fmt: skip


@pytest.mark.parametrize("compiler", COMPILERS)
@pytest.mark.parametrize("kind", ["int8", "float32", "int32"])
def test_large_models_have_the_same_bits_everywhere(kind: str, compiler: str, tmp_path: Path) -> None:
    command, runner = COMPILERS[compiler]
    if shutil.which(command[0]) is None or (runner and shutil.which(runner[0]) is None):
        pytest.skip(f"no {command[0]}, or nothing to run its programs")
    if "-m32" in command and not Path("/usr/lib32/crt1.o").exists():
        pytest.skip("no 32-bit C library")
    proto, wanted = large(kind)
    compiled = compile_model(Request(save(proto, tmp_path / "large.onnx"), "large", "c"))
    assert (
        "AOT_MODEL_BYTES" in compiled.texts["large.c"]
        and max(map(len, compiled.texts["large.c"].splitlines())) < 4096
    )
    write(compiled, tmp_path)
    (tmp_path / "main.c").write_text(MAIN)
    subprocess.run(
        [*command, *STRICT, "-O1", f"-I{include_dir()}", "main.c", "large.c", "-lm", "-o", "a"],
        cwd=tmp_path,
        check=True,
    )
    printed = subprocess.run(
        [*runner, "./a"], cwd=tmp_path, capture_output=True, text=True, check=True
    ).stdout.split()
    np.testing.assert_allclose(
        np.asarray(printed, np.float64), wanted.reshape(-1), rtol=2e-4, atol=2e-4 * np.abs(wanted).max()
    )
