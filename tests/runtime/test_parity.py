"""Behaviours of ahead-of-time executors that have no test elsewhere: see docs/parity.md."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from aot_model.emit.view import Options
from aot_model.host.program import SANITIZE, STRICT
from aot_model.installation import include_dir
from aot_model.memory import Pool
from aot_model.pipeline import Request, compile_model, write
from onnx_models import model, save, small_cnn, tensor
from sanitizers import sanitized

X = np.random.default_rng(1).normal(size=(1, 2, 6, 6)).astype(np.float32)


def reference(path: Path) -> list[np.ndarray]:
    session = onnxruntime.InferenceSession(str(path))
    found: list[np.ndarray] = session.run(None, {"x": X} if session.get_inputs() else {})
    return found


PAINTED = """#include "m.h"
#include <string.h>
static uint8_t a[M_A_POOL_SIZE + 64u] AOT_MODEL_ALIGNED(64), b[M_B_POOL_SIZE + 64u] AOT_MODEL_ALIGNED(64);
static const float x[72] = { 1.0f };
static unsigned used(const uint8_t *pool, unsigned size)
{
    while (size > 0u && pool[size - 1u] == 0xA5u) { --size; }
    return size;
}
int main(void)
{
    float y[5];
    const m_inputs in = { x };
    const m_outputs out = { y };
    const m_pools pools = { a, b };
    memset(a, 0xA5, sizeof a);
    memset(b, 0xA5, sizeof b);
    if (m_run(&in, &out, &pools) != 0) { return 1; }
    return used(a, sizeof a) == M_A_POOL_SIZE && used(b, sizeof b) == M_B_POOL_SIZE ? 0 : 2;
}
"""


def test_painted_pools_show_the_reported_sizes(tmp_path: Path) -> None:
    """What a run writes reaches to the end of each pool, and not beyond."""
    request = Request(
        save(small_cnn(), tmp_path / "m.onnx"),
        "m",
        "c",
        pools=(Pool("a", 640), Pool("b")),
        library=Options("caller"),
    )
    compiled = compile_model(request)
    assert all(p.size for p in compiled.view.pools)
    write(compiled, tmp_path)
    (tmp_path / "main.c").write_text(PAINTED)
    subprocess.run(
        ["cc", *STRICT, f"-I{include_dir()}", "main.c", "m.c", "-lm", "-o", "main"], cwd=tmp_path, check=True
    )
    assert subprocess.run(["./main"], cwd=tmp_path).returncode == 0


def _constant_graph() -> onnx.ModelProto:
    constants = {"a": np.asarray([1, 2, 3], np.float32), "b": np.asarray([4, 5, 6], np.float32)}
    return model([helper.make_node("Add", ["a", "b"], ["y"])], [], [tensor("y", [3])], constants)


def _many_outputs() -> onnx.ModelProto:
    nodes = [
        helper.make_node("Split", ["x"], ["p", "q"], axis=3, num_outputs=2),
        helper.make_node("Neg", ["p"], ["n"]),
        helper.make_node("Add", ["n", "q"], ["s"]),
    ]
    return model(
        nodes, [tensor("x", [1, 2, 6, 6])], [tensor(name, [1, 2, 6, 3]) for name in ("q", "n", "s", "p")]
    )


def _transpose() -> onnx.ModelProto:
    return model(
        [
            helper.make_node("Transpose", ["x"], ["t"], perm=[0, 1, 3, 2]),
            helper.make_node("Sub", ["t", "x"], ["y"]),
        ],
        [tensor("x", [1, 2, 6, 6])],
        [tensor("y", [1, 2, 6, 6])],
    )


def _output_read_again() -> onnx.ModelProto:
    return model(
        [helper.make_node("Relu", ["x"], ["r"]), helper.make_node("Exp", ["r"], ["y"])],
        [tensor("x", [1, 2, 6, 6])],
        [tensor("r", [1, 2, 6, 6]), tensor("y", [1, 2, 6, 6])],
    )


def _identity() -> onnx.ModelProto:
    return model(
        [helper.make_node("Identity", ["x"], ["y"])], [tensor("x", [1, 2, 6, 6])], [tensor("y", [1, 2, 6, 6])]
    )


@pytest.mark.parametrize("make", [_constant_graph, _many_outputs, _transpose, _output_read_again, _identity])
def test_graphs_at_the_edge(make: object, tmp_path: Path) -> None:
    """No inputs; many outputs, also of one node and in another order; no transposition in place; outputs that
    are read or inputs.
    """
    path = save(make(), tmp_path / "m.onnx")  # type: ignore[operator]
    compiled = compile_model(Request(path, "m", "c"))
    got = sanitized(compiled.view, compiled.texts, tmp_path / "c").run([[X][: len(compiled.view.inputs)]])[0]
    for a, b in zip(got, reference(path), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


@pytest.mark.parametrize("make", [_many_outputs, _output_read_again, _identity])
def test_inputs_and_outputs_in_the_workspace(make: object, tmp_path: Path) -> None:
    """Outputs that later layers read, and several without names of their own, lie in the workspace as
    well.
    """
    request = Request(save(make(), tmp_path / "m.onnx"), "m", "c", library=Options(io="workspace"))  # type: ignore[operator]
    compiled = compile_model(request)
    write(compiled, tmp_path)
    copies = "".join(f"fwrite(out.{p.c_name}, 1, {p.buffer.nbytes}u, stdout);" for p in compiled.view.outputs)
    main = (
        '#include <stdio.h>\n#include "m.h"\nint main(void)\n{\n    const m_inputs in = '
        "m_map_inputs();\n    const m_outputs out = m_map_outputs();\n"
    )
    (tmp_path / "main.c").write_text(
        main
        + "    if (fread(in.x, 4, 72, stdin) != 72 || m_run() != 0) { return 1; }\n    "
        + copies
        + "\n    return 0;\n}\n"
    )
    subprocess.run(
        ["cc", *STRICT, *SANITIZE, f"-I{include_dir()}", "main.c", "m.c", "-lm", "-o", "main"],
        cwd=tmp_path,
        check=True,
    )
    got = np.frombuffer(
        subprocess.run(["./main"], cwd=tmp_path, input=X.tobytes(), capture_output=True, check=True).stdout,
        np.float32,
    )
    np.testing.assert_allclose(got, np.concatenate([a.ravel() for a in reference(request.model)]), rtol=1e-6)


def test_every_global_name_begins_with_the_model(tmp_path: Path) -> None:
    """Also with an upper-case letter in the name, and whatever the tensors are called."""
    write(compile_model(replace(Request(save(small_cnn(), tmp_path / "m.onnx"), "MyMod", "c"))), tmp_path)
    subprocess.run(["cc", *STRICT, f"-I{include_dir()}", "-c", "MyMod.c"], cwd=tmp_path, check=True)
    names = subprocess.run(
        ["nm", "--defined-only", "-g", "-P", "MyMod.o"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert all(line.split()[0].startswith("MyMod_") for line in names.splitlines())


def test_constants_are_read_only(tmp_path: Path) -> None:
    """Every array of constants is in a section that the linker puts into flash."""
    write(compile_model(Request(save(small_cnn(), tmp_path / "m.onnx"), "m", "c")), tmp_path)
    subprocess.run(["cc", *STRICT, "-fno-pic", f"-I{include_dir()}", "-c", "m.c"], cwd=tmp_path, check=True)
    table = subprocess.run(
        ["objdump", "-t", "m.o"], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout
    sections = {row.split()[-3] for row in table.splitlines() if "m_c_" in row}
    assert sections and all(s.startswith(".rodata") for s in sections)
