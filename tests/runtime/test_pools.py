"""Several memory pools in the generated C: placement, spilling, sections, the caller's pools, and what is
refused.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from aot_model.cli import main
from aot_model.emit import runner
from aot_model.emit.view import Options
from aot_model.errors import CompileError
from aot_model.host.program import SANITIZE, STRICT, build
from aot_model.installation import include_dir
from aot_model.memory import Pool, algorithm_names
from aot_model.pipeline import Compiled, Request, compile_model, write
from firmware import run_firmware
from onnx_models import save, small_cnn
from qemu import available

X = np.random.default_rng(1).normal(size=(1, 2, 6, 6)).astype(np.float32)
THREE = (Pool("fast", 320, 32), Pool("sram", 640, 8), Pool("extra"))


@pytest.fixture(scope="module")
def request_(tmp_path_factory: pytest.TempPathFactory) -> Request:
    return Request(save(small_cnn(), tmp_path_factory.mktemp("model") / "cnn.onnx"), "cnn", "c")


@pytest.fixture(scope="module")
def expected(request_: Request, tmp_path_factory: pytest.TempPathFactory) -> np.ndarray:
    compiled = compile_model(request_)
    return build(compiled.view, compiled.texts, tmp_path_factory.mktemp("one")).run([[X]])[0][0]


def run_its_test(compiled: Compiled, expected: np.ndarray, folder: Path) -> None:
    """Build the test program around a library with sanitizers and run it."""
    write(compiled, folder)
    np.savez(folder / "v.npz", in_0=X[None], out_0=expected[None])
    (folder / "test.c").write_text(
        runner.test_main(folder / "cnn.json", folder / "v.npz", runner.Tolerance())[0]
    )
    flags = ["-std=c99", *STRICT[1:], *SANITIZE, f"-I{include_dir()}"]
    subprocess.run(["cc", *flags, "test.c", "cnn.c", "-lm", "-o", "test"], cwd=folder, check=True)
    subprocess.run(["./test"], cwd=folder, check=True)


@pytest.mark.parametrize("workspace", ["static", "caller"])
@pytest.mark.parametrize("io", ["caller", "workspace"])
def test_three_pools_with_spilling(
    request_: Request, expected: np.ndarray, tmp_path: Path, workspace: str, io: str
) -> None:
    compiled = compile_model(replace(request_, pools=THREE, library=Options(workspace, io)))
    pools = {p.name: p for p in compiled.view.pools}
    assert pools["fast"].size <= 320 and pools["sram"].size <= 640
    assert all(pools[name].size for name in ("fast", "sram"))
    assert {name for name, _ in compiled.view.addresses.of.values()} >= {"fast", "sram"}
    run_its_test(compiled, expected, tmp_path)
    header = compiled.texts["cnn.h"]
    facts = json.loads(compiled.texts["cnn.json"])["workspace"]["pools"]
    for pool in facts:
        assert f"#define CNN_{pool['name'].upper()}_POOL_SIZE {pool['bytes']}u" in header
        assert f"#define CNN_{pool['name'].upper()}_POOL_ALIGN {pool['align']}u" in header
    assert f"#define CNN_WORKSPACE_SIZE {sum(p['bytes'] for p in facts)}u" in header


def test_the_preferred_pool_takes_all_that_fits(request_: Request) -> None:
    view = compile_model(replace(request_, pools=(Pool("a"), Pool("b")))).view
    assert [p.size > 0 for p in view.pools] == [True, False]
    alone = compile_model(request_).view
    assert view.pools[0].size == alone.workspace_size


def test_pools_of_the_caller_are_checked(request_: Request, tmp_path: Path) -> None:
    """A pointer that is NULL or crooked is an error code for each pool that is used; an unused one may be
    NULL.
    """
    pools = (*THREE, Pool("unused"))
    write(compile_model(replace(request_, pools=pools, library=Options("caller"))), tmp_path)
    (tmp_path / "main.c").write_text("""#include "cnn.h"
static uint8_t fast[CNN_FAST_POOL_SIZE + 32u] AOT_MODEL_ALIGNED(64), sram[CNN_SRAM_POOL_SIZE + 8u] AOT_MODEL_ALIGNED(64);
static uint8_t extra[CNN_EXTRA_POOL_SIZE + 16u] AOT_MODEL_ALIGNED(64);
static float x[72], y[5];
int main(void)
{
    const cnn_inputs inputs = { x };
    const cnn_outputs outputs = { y };
    cnn_pools pools = { fast, sram, extra, NULL };
    if (cnn_run(&inputs, &outputs, &pools) != AOT_MODEL_OK) { return 1; }
    if (cnn_run(&inputs, &outputs, NULL) != AOT_MODEL_ERROR_NULL) { return 2; }
    pools.sram = NULL;
    if (cnn_run(&inputs, &outputs, &pools) != AOT_MODEL_ERROR_NULL) { return 3; }
    pools.sram = sram + 4;
    if (cnn_run(&inputs, &outputs, &pools) != AOT_MODEL_ERROR_ALIGNMENT) { return 4; }
    pools.sram = sram + 8;
    if (cnn_run(&inputs, &outputs, &pools) != AOT_MODEL_OK) { return 5; }
    pools.fast = fast + 16;
    return cnn_run(&inputs, &outputs, &pools) == AOT_MODEL_ERROR_ALIGNMENT ? 0 : 6;
}
""")  # noqa: E501
    subprocess.run(
        ["cc", *STRICT, *SANITIZE, f"-I{include_dir()}", "main.c", "cnn.c", "-lm", "-o", "main"],
        cwd=tmp_path,
        check=True,
    )
    subprocess.run(["./main"], cwd=tmp_path, check=True)


def test_section_of_a_pool(request_: Request, tmp_path: Path) -> None:
    library = ["--pool", "dtcm:320", "--pool", "sram", "--pool-section", "dtcm=.bss.dtcm"]
    assert (
        main(
            ["compile", str(request_.model), "-o", str(tmp_path), "--name", "cnn", "--target", "c", *library]
        )
        == 0
    )
    subprocess.run(["cc", *STRICT, f"-I{include_dir()}", "-c", "cnn.c"], cwd=tmp_path, check=True)
    table = subprocess.run(
        ["objdump", "-t", "cnn.o"], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout
    sections = {
        row.split()[-1]: row.split()[-3] for row in table.splitlines() if "cnn_pool_" in row and " O " in row
    }
    assert sections == {"cnn_pool_dtcm": ".bss.dtcm", "cnn_pool_sram": ".bss"}
    assert json.loads((tmp_path / "cnn.json").read_text())["workspace"]["pools"][0]["section"] == ".bss.dtcm"


def test_no_room_says_what_and_where(request_: Request) -> None:
    with pytest.raises(
        CompileError,
        match=r"576 bytes, live over steps 1\.\.2; fast has 64 of 64 bytes free, sram has 128 of 128 bytes free",  # noqa: E501
    ) as error:
        compile_model(replace(request_, pools=(Pool("fast", 64), Pool("sram", 128))))
    assert error.value.problems[0].code == "E401"


@pytest.mark.parametrize(("options", "message"), [
    (["--pool", "a:64", "--pool", "A"], "more than one memory pool"),
    (["--planner", "nosuch"], "unknown memory planner"),
    (["--pool", "a", "--pool-section", "b=.x"], "there is no pool 'b'"),
    (["--pool", "a", "--workspace", "caller", "--pool-section", "a=.x"], "the caller places"),
])  # fmt: skip
def test_refused(
    request_: Request, tmp_path: Path, capsys: pytest.CaptureFixture[str], options: list[str], message: str
) -> None:
    assert main(["compile", str(request_.model), "-o", str(tmp_path / "out"), *options]) == 1
    error = capsys.readouterr().err
    assert message in error and "E501" in error
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("section", ['x="', "x=", "x=.a b", 'x=a")'])
def test_section_names_are_names(request_: Request, tmp_path: Path, section: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["compile", str(request_.model), "-o", str(tmp_path), "--pool-section", section])
    assert stopped.value.code == 2


@pytest.mark.parametrize("planner", [*algorithm_names()])
def test_every_planner(request_: Request, planner: str) -> None:
    view = compile_model(replace(request_, pools=THREE, algorithm=planner)).view
    assert view.workspace_size >= view.addresses.plan.lower_bound


@pytest.mark.skipif(not available(), reason="arm-none-eabi-gcc or qemu-system-arm is not installed")
def test_three_pools_on_cortex_m4(request_: Request, expected: np.ndarray, tmp_path: Path) -> None:
    compiled = compile_model(replace(request_, target="cortex-m4", pools=THREE))
    np.testing.assert_allclose(
        run_firmware(compiled, "m4", [[X]], tmp_path).outputs[0][0], expected, rtol=1e-4, atol=1e-6
    )


def test_a_faster_pool_is_preferred(request_: Request, tmp_path: Path) -> None:
    """Whatever the order of the options; what the library says of itself keeps that order."""
    command = [
        "compile",
        str(request_.model),
        "-o",
        str(tmp_path),
        "--name",
        "cnn",
        "--target",
        "c",
        "--pool",
        "slow",
        "--pool",
        "fast:640",
        "--pool",
        "middle:320",
    ]
    assert main([*command, "--pool-speed", "fast=2", "--pool-speed", "middle=1"]) == 0
    pools = json.loads((tmp_path / "cnn.json").read_text())["workspace"]["pools"]
    assert [(p["name"], p["speed"]) for p in pools] == [("slow", 0), ("fast", 2), ("middle", 1)]
    order = [p["bytes"] for p in sorted(pools, key=lambda p: -p["speed"])]
    view = compile_model(replace(request_, pools=(Pool("fast", 640), Pool("middle", 320), Pool("slow")))).view
    assert order == [p.size for p in view.pools] and order[0] > 0
    assert main([*command, "--pool-speed", "none=2"]) == 1


def test_pools_of_a_target(request_: Request, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    command = [
        "compile",
        str(request_.model),
        "-o",
        str(tmp_path),
        "--target",
        "c",
        "--pool",
        "npu:64k",
        "--pool",
        "sram",
    ]
    assert main([*command, "--pool-targets", "npu=c+host"]) == 1
    assert "'host' is not a target of this compilation" in capsys.readouterr().err
    assert main([*command, "--pool-targets", "npu=c"]) == 0
    assert json.loads((tmp_path / "cnn.json").read_text())["workspace"]["pools"][0]["targets"] == ["c"]


def test_pools_of_constants(request_: Request, tmp_path: Path) -> None:
    """Arrays spill to the next pool, lie in its section, aligned as it says; header, JSON and object file
    agree on the bytes.
    """
    options = [
        "--constant-pool",
        "tcm:700:32",
        "--constant-pool",
        "flash",
        "--pool-section",
        "tcm=.rodata.tcm",
        "--workspace",
        "caller",
    ]
    assert (
        main(
            ["compile", str(request_.model), "-o", str(tmp_path), "--name", "cnn", "--target", "c", *options]
        )
        == 0
    )
    pools = {p["name"]: p for p in json.loads((tmp_path / "cnn.json").read_text())["constant_pools"]}
    assert 0 < pools["tcm"]["bytes"] <= 700 and pools["flash"]["bytes"] > 0
    assert f"#define CNN_TCM_CONSTANTS_SIZE {pools['tcm']['bytes']}u" in (tmp_path / "cnn.h").read_text()
    subprocess.run(["cc", *STRICT, f"-I{include_dir()}", "-c", "cnn.c"], cwd=tmp_path, check=True)
    table = subprocess.run(
        ["objdump", "-h", "cnn.o"], cwd=tmp_path, check=True, capture_output=True, text=True
    ).stdout
    row = next(r.split() for r in table.splitlines() if " .rodata.tcm " in r)
    assert int(row[2], 16) == pools["tcm"]["bytes"] and row[-1] == "2**5"
    assert (
        "READONLY" in table.splitlines()[[" .rodata.tcm " in r for r in table.splitlines()].index(True) + 1]
    )


def test_pools_of_constants_that_are_too_small(request_: Request) -> None:
    with pytest.raises(
        CompileError,
        match=r"no constant pool has room for: \[E401\]\n(  .*: \d+ bytes\n)+  a: \d+ of 64 bytes free\n"
        r"  b: \d+ of 200 bytes free",
    ) as error:
        compile_model(replace(request_, library=Options(constant_pools=(Pool("a", 64), Pool("b", 200)))))
    assert error.value.problems[0].code == "E401"
    with pytest.raises(CompileError, match="with --params external"):
        compile_model(replace(request_, library=Options(params="external", constant_pools=(Pool("a"),))))


def test_constants_in_pools_compute_the_same(request_: Request, expected: np.ndarray, tmp_path: Path) -> None:
    pools = (Pool("slow", 600), Pool("fast", 400, 64, speed=1), Pool("rest"))
    compiled = compile_model(
        replace(request_, library=Options(constant_pools=pools, sections={"fast": ".rodata.fast"}))
    )
    assert all(p.size for p in compiled.view.constant_pools)
    run_its_test(compiled, expected, tmp_path)
