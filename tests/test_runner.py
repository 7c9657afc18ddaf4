"""Generated test and benchmark programs, around hand-written libraries that copy input to output: every
element type, every way to call a library, and that a wrong element is found."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from aot_model.emit.runner import Tolerance, benchmark_main
from aot_model.emit.runner import test_main as make_test_main
from aot_model.errors import CompileError
from aot_model.installation import include_dir
from aot_model.ir.types import DType, TensorType
from aot_model.library.facts import Pool, Tensor
from aot_model.library.metadata import Metadata

pytestmark = pytest.mark.skipif(shutil.which("cc") is None, reason="needs cc")

WARNINGS = ("-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wpedantic", "-Werror")
SANITIZERS = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all")
VALUES = 5

LIBRARY = """
#include <string.h>
#include "aot_model/model.h"
#define COPY_WORKSPACE_SIZE 256u
#define COPY_WORKSPACE_ALIGN 16u
typedef struct {{ {const}{c_type} *x; }} copy_inputs;
typedef struct {{ {c_type} *y; }} copy_outputs;
"""
CALLS = {
    ("static", "caller"): """
static inline int32_t copy_run(const copy_inputs *in, const copy_outputs *out)
{ memcpy(out->y, in->x, 5 * sizeof *out->y); return 0; }
""",
    ("caller", "caller"): """
static inline int32_t copy_run(const copy_inputs *in, const copy_outputs *out, void *workspace)
{ memcpy(workspace, in->x, 5 * sizeof *out->y); memcpy(out->y, workspace, 5 * sizeof *out->y); return 0; }
""",
    ("caller", "workspace"): """
static inline copy_inputs copy_map_inputs(void *workspace) { copy_inputs r = {workspace}; return r; }
static inline copy_outputs copy_map_outputs(void *workspace) { copy_outputs r = {(void *)((char *)workspace + 128)}; return r; }
static inline int32_t copy_run(void *workspace) { memcpy((char *)workspace + 128, workspace, 128); return 0; }
""",  # noqa: E501
    ("static", "workspace"): """
static inline void *memory(void) { static uint64_t bytes[32]; return bytes; }
static inline copy_inputs copy_map_inputs(void) { copy_inputs r = {memory()}; return r; }
static inline copy_outputs copy_map_outputs(void) { copy_outputs r = {(void *)((char *)memory() + 128)}; return r; }
static inline int32_t copy_run(void) { memcpy((char *)memory() + 128, memory(), 128); return 0; }
""",  # noqa: E501
}


def write_library(folder: Path, dtype: DType, workspace: str = "static", io: str = "caller") -> Path:
    """copy.h and copy.json of a library with one input and one output of five elements."""
    const = "" if io == "workspace" else "const "
    (folder / "copy.h").write_text(LIBRARY.format(c_type=dtype.c_type, const=const) + CALLS[workspace, io])

    ports = [(Tensor(name, name, TensorType(dtype, (VALUES,))),) for name in ("x", "y")]
    pools = (Pool("workspace", "workspace", 256, 16),)
    options = {"workspace": workspace, "io": io}
    facts = Metadata(
        "copy",
        "0",
        "c",
        "copy.onnx",
        "",
        *ports,
        pools,
        (),
        0,
        0,
        0,
        0,
        workspace == "caller",
        io == "workspace",
        None,
        options,
    )
    (folder / "copy.json").write_text(facts.to_json())
    return folder / "copy.json"


def build_and_run(folder: Path, text: str) -> tuple[int, str]:
    (folder / "main.c").write_text(text)
    command = ["cc", *WARNINGS, *SANITIZERS, f"-I{include_dir()}", "-I.", "main.c", "-lm", "-o", "program"]
    subprocess.run(command, cwd=folder, check=True, timeout=60)
    done = subprocess.run(["./program"], cwd=folder, capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout + done.stderr


def extremes(dtype: DType) -> np.ndarray:
    """Values at which literals and comparisons go wrong."""
    if dtype.is_float:
        return np.array([0, -1.5, np.inf, -np.inf, np.nan], np.float64).astype(dtype.numpy)
    if dtype.is_string:
        return np.array([b"", b"x" * (dtype.size - 1), b'"\\?/\x01', "ü€".encode(), b"a"], dtype.numpy)
    low, high = dtype.limits
    return np.array([low, high, low, high, 1], dtype.numpy)


def as_filed(array: np.ndarray) -> np.ndarray:
    """Types that numpy's files have not, as bits."""
    is_small_float = array.dtype.itemsize == 1 and DType.of(array.dtype).is_float
    return array.view(np.uint8) if is_small_float else array


@pytest.mark.parametrize("dtype", list(DType), ids=lambda dtype: dtype.label)
def test_every_element_type(tmp_path: Path, dtype: DType) -> None:
    metadata = write_library(tmp_path, dtype)
    values = extremes(dtype)
    both = as_filed(np.stack([values, values[::-1]]))
    np.savez(tmp_path / "right.npz", in_0=both, out_0=both)
    text, files = make_test_main(metadata, tmp_path / "right.npz", Tolerance())
    assert files == (metadata, tmp_path / "right.npz")
    assert build_and_run(tmp_path, text) == (0, "copy: 2 vectors, 0 mismatches\n")

    wrong = values.copy()
    wrong[4] = b"b" if dtype.is_string else 1 if dtype.is_float else 0
    np.savez(tmp_path / "wrong.npz", in_0=as_filed(values[None]), out_0=as_filed(wrong[None]))
    status, output = build_and_run(tmp_path, make_test_main(metadata, tmp_path / "wrong.npz", Tolerance())[0])
    assert status == 1
    assert "vector 0: y[4] is" in output and "1 mismatch\n" in output


@pytest.mark.parametrize(("workspace", "io"), list(CALLS))
def test_every_way_to_call_a_library(tmp_path: Path, workspace: str, io: str) -> None:
    metadata = write_library(tmp_path, DType.FLOAT32, workspace, io)
    values = np.arange(10, dtype=np.float32).reshape(2, 5)
    np.savez(tmp_path / "v.npz", in_0=values, out_0=values)
    assert build_and_run(tmp_path, make_test_main(metadata, tmp_path / "v.npz", Tolerance())[0])[0] == 0
    status, output = build_and_run(tmp_path, benchmark_main(metadata, 3)[0])
    assert status == 0 and "ns per inference, mean of 3" in output


@pytest.mark.parametrize(
    ("dtype", "offset", "tolerance", "passes"),
    [
        (DType.FLOAT32, 0.5, Tolerance(absolute=0.5, relative=0), True),
        (DType.FLOAT32, 0.5, Tolerance(absolute=0.4, relative=0), False),
        (DType.FLOAT32, 0.5, Tolerance(absolute=0, relative=0.01), True),
        (DType.FLOAT32, 0.5, Tolerance(absolute=0, relative=0.001), False),
        (DType.INT8, 2, Tolerance(lsb=2), True),
        (DType.INT8, 2, Tolerance(lsb=1), False),
        (DType.UINT64, 2, Tolerance(lsb=2), True),
        (DType.UINT64, 2, Tolerance(lsb=1), False),
    ],
)
def test_tolerances(tmp_path: Path, dtype: DType, offset: float, tolerance: Tolerance, passes: bool) -> None:
    metadata = write_library(tmp_path, dtype)
    values = np.full((1, 5), 100).astype(dtype.numpy)
    np.savez(tmp_path / "v.npz", in_0=values, out_0=(values + offset).astype(dtype.numpy))
    status, _ = build_and_run(tmp_path, make_test_main(metadata, tmp_path / "v.npz", tolerance)[0])
    assert (status == 0) == passes


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"name": "x", "c_name": "x", "inputs": [{"dtype": "int3"}]}']
)
def test_json_that_is_no_metadata(tmp_path: Path, text: str) -> None:
    (tmp_path / "copy.json").write_text(text)
    with pytest.raises(CompileError, match="not the metadata of a generated library"):
        benchmark_main(tmp_path / "copy.json", 1)
    with pytest.raises(CompileError, match="cannot be read"):
        benchmark_main(tmp_path / "gone.json", 1)
