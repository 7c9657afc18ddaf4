"""Remote execution: no action of a build runs on the client, and another client takes all results."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from bazel_project import BAZEL, LOAD, Workspace
from cmake_project import has_tools, program, write_model
from remote_server import AVAILABLE, REASON, build_grid
from test_bazel_caches import ACTIONS, TWO_MODELS

pytestmark = pytest.mark.skipif(BAZEL is None or not has_tools("cc") or not AVAILABLE, reason=REASON)


def processes(log: str) -> dict[str, int]:
    """How many actions ran, by where."""
    said = re.findall(r"processes?: (.*?)\.", log)[-1]
    return {kind: int(number) for number, kind in re.findall(r"(\d+) ([a-z -]+)", said)}


def test_actions_run_elsewhere(workspace: Workspace, tmp_path: Path) -> None:
    """Compiling models and C, archives and links run by a worker; a second client runs nothing at all."""
    another = Workspace(tmp_path / "another_place", workspace.user_root)
    another.create()
    made, counts = [], []
    with build_grid() as address:
        for checkout in (workspace, another):
            checkout.write("remote/BUILD.bazel", LOAD + TWO_MODELS)
            checkout.write("remote/main.c", program("kws"))
            write_model(checkout.folder / "remote" / "kws.onnx")
            write_model(checkout.folder / "remote" / "vad.onnx", bias=1, external_data="vad.weights")
            flags = (f"--remote_executor={address}", "--spawn_strategy=remote", "--jobs=4")
            log = checkout.build(*flags, "//remote:all", "//remote:vad_params")
            files = ("libkws.a", "libvad.a", "app", "vad_sources/vad.params")
            made.append([checkout.output(f"remote/{file}").read_bytes() for file in files])
            counts.append(processes(log))
    another.bazel("shutdown")
    assert made[0] == made[1]
    assert set(counts[0]) <= {"remote", "internal"} and counts[0]["remote"] >= ACTIONS, counts
    assert set(counts[1]) <= {"remote cache hit", "internal"}, counts
    assert counts[1]["remote cache hit"] == counts[0]["remote"], counts
