"""Bazel's caches: another checkout, elsewhere, generates and compiles nothing; actions reach no network."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from bazel_project import BAZEL, LOAD, REASON, Workspace
from cmake_project import has_tools, program, write_model

pytestmark = pytest.mark.skipif(BAZEL is None or not has_tools("cc"), reason=REASON)

TWO_MODELS = """
aot_model_library(name = "kws", model = "kws.onnx")
aot_model_library(name = "vad", model = "vad.onnx", data = ["vad.weights"], params = "external")
cc_binary(name = "app", srcs = ["main.c"], deps = [":kws"])
"""
# Two models generated, three files compiled, two archives, a program.
ACTIONS = 8


@contextlib.contextmanager
def web_dav(folder: Path) -> Iterator[str]:
    """The address of an nginx on this machine whose files can be written with PUT."""
    nginx = shutil.which("nginx", path=f"{os.environ['PATH']}:/usr/sbin")
    if nginx is None:
        pytest.skip("needs nginx")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    temporary = "".join(
        f"{kind}_temp_path {folder}/{kind};\n"
        for kind in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(f"""
{"user root;" if os.getuid() == 0 else ""}
daemon off;
master_process off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
    access_log off;
    {temporary}
    server {{
        listen 127.0.0.1:{port};
        root {folder}/www;
        dav_methods PUT;
        create_full_put_path on;
        client_max_body_size 0;
    }}
}}
""")
    (folder / "www").mkdir()
    server = subprocess.Popen([nginx, "-e", folder / "error.log", "-p", folder, "-c", folder / "nginx.conf"])
    try:
        for _ in range(100):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            time.sleep(0.1)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait()


@pytest.fixture(params=["remote_cache", "disk_cache"])
def cache(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """A cache as a flag: a WebDAV server, a folder."""
    if request.param == "disk_cache":
        yield f"--disk_cache={tmp_path / 'cache'}"
    else:
        with web_dav(tmp_path) as address:
            yield f"--remote_cache={address}"


def test_another_checkout_takes_everything_from_the_cache(
    workspace: Workspace, cache: str, tmp_path: Path
) -> None:
    """Keys and outputs have nothing of the path of the workspace: every action is a hit, every output the
    same.
    """
    package = cache[2:].partition("_")[0]
    another = Workspace(tmp_path / "another_place", workspace.user_root)
    another.create()
    made = []
    for checkout in (workspace, another):
        checkout.write(f"{package}/BUILD.bazel", LOAD + TWO_MODELS)
        checkout.write(f"{package}/main.c", program("kws"))
        write_model(checkout.folder / package / "kws.onnx")
        write_model(checkout.folder / package / "vad.onnx", bias=1, external_data="vad.weights")
        log = checkout.build(cache, "-c", "dbg", f"//{package}:all", f"//{package}:vad_params")
        files = ("libkws.a", "libvad.a", "app", "vad_sources/vad.params")
        made.append([checkout.output(f"{package}/{file}").read_bytes() for file in files])
    another.bazel("shutdown")
    assert made[0] == made[1]
    counts = {
        kind: int(number)
        for number, kind in re.findall(r"(\d+) ([a-z -]+)", re.findall(r"processes?: (.*?)\.", log)[-1])
    }
    assert set(counts) <= {"remote cache hit", "disk cache hit", "internal"}, log
    assert sum(number for kind, number in counts.items() if "hit" in kind) >= ACTIONS, log


def test_actions_reach_no_network(workspace: Workspace) -> None:
    """In the sandbox that the tests of the rules run in, only an action that asks for it reaches a server of
    this machine.
    """
    with socket.create_server(("127.0.0.1", 0)) as server:
        ask = f"import socket; socket.create_connection(('127.0.0.1', {server.getsockname()[1]}), timeout=5)"
        rule = (
            'genrule(name = "{}", outs = ["{}.txt"], cmd = """python3 -c "{}" && touch $@""", tags = [{}])\n'
        )
        workspace.write(
            "network/BUILD.bazel",
            rule.format("cut", "cut", ask, "") + rule.format("open", "open", ask, '"requires-network"'),
        )
        log = workspace.bazel("build", "//network:open")
        if "1 linux-sandbox" not in log:
            pytest.skip("this machine has no namespaces for Bazel's sandbox")
        log = workspace.bazel("build", "//network:cut", ok=False)
    assert re.search("Connection refused|Network is unreachable", log)
