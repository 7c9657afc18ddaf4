"""One memory for several models: sized to the largest in each pool, the same answers as apart, and what is
refused.
"""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper

from aot_model.cli import main
from aot_model.emit.view import Options
from aot_model.host.program import SANITIZE, STRICT
from aot_model.installation import include_dir
from aot_model.memory import Pool
from aot_model.pipeline import Compiled, Request, compile_model, write
from onnx_models import model, save, small_cnn, tensor
from qemu import BOARDS, available, build_and_run

X = np.random.default_rng(1).normal(size=(1, 2, 6, 6)).astype(np.float32)
ONE = (Pool("workspace"),)
POOLS = {
    "one": (ONE, ONE),
    "several": ((Pool("fast", 320, 32), Pool("sram")), (Pool("sram", 64), Pool("ext"), Pool("unused"))),
    "mixed": ((Pool("sram"),), (Pool("fast", 64), Pool("sram"))),
}

# Runs both models by turns in the arena, which is painted at first, and compares; then looks at how far the
# paint is gone.
MAIN = """#include "arena.h"
#include <string.h>
static const float x[72] = { %s };
static const float want[2][5] = { { %s }, { %s } };
static int used(const uint8_t *pool, unsigned size)
{
    return pool[size - 1u] != 0xA5u || pool[size - 2u] != 0xA5u || pool[size - 3u] != 0xA5u || pool[size - 4u] != 0xA5u;
}
int main(void)
{
    float y[5];
    const one_inputs in1 = { x };
    const two_inputs in2 = { x };
    const one_outputs out1 = { y };
    const two_outputs out2 = { y };
    %s
    for (int run = 0; run < 4; ++run) {
        memset(y, 0, sizeof y);
        if ((run %% 2 == 0 ? one_run(&in1, &out1, ARENA_FOR_ONE) : two_run(&in2, &out2, ARENA_FOR_TWO)) != 0) { return 1; }
        for (int k = 0; k < 5; ++k) {
            const float d = y[k] - want[run %% 2][k];
            if (!(d < 1e-4f && d > -1e-4f)) { return 2; }
        }
    }
    return %s ? 0 : 3;
}
"""  # noqa: E501


def dense() -> onnx.ModelProto:
    rng = np.random.default_rng(3)
    constants = {
        "w": rng.normal(size=(72, 9)).astype(np.float32),
        "v": rng.normal(size=(9, 5)).astype(np.float32),
    }
    nodes = [
        helper.make_node("Flatten", ["x"], ["f"]),
        helper.make_node("MatMul", ["f", "w"], ["h"]),
        helper.make_node("Tanh", ["h"], ["t"]),
        helper.make_node("MatMul", ["t", "v"], ["y"]),
    ]
    return model(nodes, [tensor("x", [1, 2, 6, 6])], [tensor("y", [1, 5])], constants)


def reference(path: Path) -> np.ndarray:
    found: np.ndarray = onnxruntime.InferenceSession(str(path)).run(None, {"x": X})[0]
    return found


def _numbers(values: np.ndarray) -> str:
    return ", ".join(f"{v:.9e}f" for v in values.ravel())


def libraries(folder: Path, target: str, pools: Sequence[tuple[Pool, ...]]) -> list[Compiled]:
    """Two libraries, their arena, and a program that uses it."""
    paths = [save(small_cnn(), folder / "one.onnx"), save(dense(), folder / "two.onnx")]
    made = [
        compile_model(Request(p, p.stem, target, pools=chosen, library=Options("caller")))
        for p, chosen in zip(paths, pools, strict=True)
    ]
    for compiled in made:
        write(compiled, folder)
    assert (
        main(
            [
                "arena",
                "-o",
                str(folder),
                "--name",
                "arena",
                str(folder / "one.json"),
                str(folder / "two.json"),
            ]
        )
        == 0
    )
    sizes = largest(made)
    paint = " ".join(f"memset(arena_{name}, 0xA5, sizeof arena_{name});" for name in sizes)
    gone = " && ".join(
        f"used(arena_{name}, sizeof arena_{name}) && sizeof arena_{name} == {size}u"
        for name, size in sizes.items()
    )
    (folder / "main.c").write_text(
        MAIN % (_numbers(X), *(_numbers(reference(p)) for p in paths), paint, gone)
    )
    return made


def largest(made: Sequence[Compiled]) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for pool in (p for m in made for p in m.view.pools if p.size):
        sizes[pool.name] = max(sizes.get(pool.name, 0), pool.size)
    return sizes


@pytest.mark.parametrize("pools", POOLS)
def test_models_run_by_turns(tmp_path: Path, pools: str) -> None:
    """Every pool is exactly as large as the model that needs most of it, which reaches its end."""
    libraries(tmp_path, "c", POOLS[pools])
    command = [
        "cc",
        *STRICT,
        *SANITIZE,
        f"-I{include_dir()}",
        "main.c",
        "one.c",
        "two.c",
        "arena.c",
        "-lm",
        "-o",
        "main",
    ]
    subprocess.run(command, cwd=tmp_path, check=True)
    assert subprocess.run(["./main"], cwd=tmp_path).returncode == 0


@pytest.mark.skipif(not available(), reason="arm-none-eabi-gcc or qemu-system-arm is not installed")
@pytest.mark.parametrize("pools", ["one", "several"])
def test_on_cortex_m4(tmp_path: Path, pools: str) -> None:
    libraries(tmp_path, "cortex-m4", POOLS[pools])
    build_and_run(
        BOARDS["m4"], ["main.c", "one.c", "two.c", "arena.c"], tmp_path, ["-O2", f"-I{include_dir()}"]
    )


def test_the_same_bytes_in_cplusplus_and_in_its_section(tmp_path: Path) -> None:
    libraries(tmp_path, "c", POOLS["several"])
    command = [
        "arena",
        "-o",
        str(tmp_path / "again"),
        "--name",
        "arena",
        str(tmp_path / "one.json"),
        str(tmp_path / "two.json"),
    ]
    assert main(command) == 0
    for name in ("arena.h", "arena.c"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / name).read_bytes()
    (tmp_path / "main.cpp").write_text(
        '#include "arena.h"\nint main() { return ARENA_FOR_ONE->fast == arena_fast ? 0 : 1; }\n'
    )
    subprocess.run(
        ["c++", "-Wall", "-Wextra", "-Wpedantic", "-Werror", f"-I{include_dir()}", "-c", "main.cpp"],
        cwd=tmp_path,
        check=True,
    )
    assert main([*command, "--pool-section", "sram=.bss.ext"]) == 0
    subprocess.run(
        ["cc", *STRICT, f"-I{include_dir()}", "-I..", "-c", "arena.c"], cwd=tmp_path / "again", check=True
    )
    table = subprocess.run(
        ["objdump", "-t", "arena.o"], cwd=tmp_path / "again", check=True, capture_output=True, text=True
    ).stdout
    sections = {row.split()[-1]: row.split()[-3] for row in table.splitlines() if " O " in row}
    assert (sections["arena_fast"], sections["arena_sram"]) == (".bss", ".bss.ext")


def test_an_arena_of_another_model_does_not_compile(tmp_path: Path) -> None:
    libraries(tmp_path, "c", POOLS["one"])
    header = (tmp_path / "one.h").read_text()
    (tmp_path / "one.h").write_text(header.replace("ONE_WORKSPACE_SIZE ", "ONE_WORKSPACE_SIZE 9"))
    done = subprocess.run(
        ["cc", f"-I{include_dir()}", "-c", "arena.c"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode != 0 and "arena was made for another one: make it again" in done.stderr


def test_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save(small_cnn(), tmp_path / "one.onnx")
    for name, options in (("one", Options()), ("two", Options("caller"))):
        write(compile_model(Request(path, name, "c", library=options)), tmp_path)
    one, two = str(tmp_path / "one.json"), str(tmp_path / "two.json")
    state = (tmp_path / "two.json").read_text().replace('"state_bytes": 0', '"state_bytes": 8')
    (tmp_path / "state.json").write_text(state)
    for arguments, message in (
        ([one, two], "'one' owns its workspace"),
        ([two, two], "'two' is the name of more than one library"),
        ([str(tmp_path / "state.json")], "keeps state in its workspace"),
        ([two, "--pool-section", "dtcm=.bss"], "there is no pool 'dtcm'"),
        ([str(path)], "E102"),
        ([str(tmp_path / "none.json")], "E101"),
        ([two, "--name", "two"], "more than one library"),
        ([two, "--name", "a-b"], "is not a name"),
    ):
        assert main(["arena", "-o", str(tmp_path / "out"), "--name", "arena", *arguments]) == 1
        assert message in capsys.readouterr().err
        assert not (tmp_path / "out").exists()
