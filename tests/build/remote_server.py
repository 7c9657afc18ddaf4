"""BuildGrid on this machine: content store, action cache and execution over gRPC, with workers of ours.

It is in an environment of its own (its versions of protobuf are not ours): `python3 -m venv V && V/bin/pip
install "buildgrid==0.4.4" psycopg2-binary`, told by AOT_MODEL_BUILDGRID=V. Its queue of
actions needs PostgreSQL (Debian: postgresql).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

_TOOLS = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
_ENVIRONMENT = os.environ.get("AOT_MODEL_BUILDGRID", "")
BUILDGRID = Path(_ENVIRONMENT, "bin") if _ENVIRONMENT else None
REASON = "needs BuildGrid (AOT_MODEL_BUILDGRID names its virtual environment) and PostgreSQL"
AVAILABLE = BUILDGRID is not None and (BUILDGRID / "bgd").exists() and bool(_TOOLS)
_CONFIGURATION = """
server:
  - !channel
    address: "127.0.0.1:{port}"
    insecure-mode: true
authorization:
  method: none
connections:
  - !sql-connection &sql
    connection-string: postgresql+psycopg2://postgres@/postgres?host={folder}
storages:
  - !disk-storage &storage
    path: {folder}/cas
caches:
  - !lru-action-cache &actions
    storage: *storage
    max-cached-refs: 65536
    allow-updates: true
    cache-failed-actions: false
schedulers:
  - !sql-scheduler &scheduler
    sql: *sql
    action-cache: *actions
    storage: *storage
    property-set:
      !dynamic-property-set
      match-property-keys: [OSFamily]
      wildcard-property-keys: [OSFamily]
    assigners:
      - !priority-age-assigner
        count: 1
        interval: 0.05
        priority-assignment-percentage: 100
instances:
  - name: ""
    services:
      - !action-cache
        cache: *actions
      - !execution
        scheduler: *scheduler
      - !cas
        storage: *storage
      - !bytestream
        storage: *storage
thread-pool-size: 30
"""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextlib.contextmanager
def _database(folder: Path) -> Iterator[None]:
    """A database that only a socket in the folder leads to. PostgreSQL refuses to be run by root."""
    data, bin_ = folder / "data", _TOOLS[-1].parent
    run: list[str] = []
    if os.getuid() == 0:
        data.mkdir()
        shutil.chown(data, "postgres")
        shutil.chown(folder, "postgres")
        run = ["runuser", "-u", "postgres", "--"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL, "cwd": "/"}
    subprocess.run(
        [*run, str(bin_ / "initdb"), "-D", str(data), "-U", "postgres", "--auth=trust", "--no-sync"],
        check=True,
        **quiet,
    )  # type: ignore[call-overload]
    server = subprocess.Popen(
        [*run, str(bin_ / "postgres"), "-D", str(data), "-k", str(folder), "-h", "", "-F"], **quiet
    )  # type: ignore[call-overload]
    try:
        for _ in range(100):
            asked = subprocess.run([str(bin_ / "pg_isready"), "-q", "-h", str(folder)], check=False)
            if asked.returncode == 0:
                break
            time.sleep(0.1)
        yield
    finally:
        server.terminate()
        server.wait()


@contextlib.contextmanager
def build_grid(workers: int = 1) -> Iterator[str]:
    """The address of a server with workers; all of it ends with the block."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)  # the user of the database comes through
        with _build_grid(Path(folder), workers) as address:
            yield address


@contextlib.contextmanager
def _build_grid(folder: Path, workers: int) -> Iterator[str]:
    assert BUILDGRID is not None
    port, log = _free_port(), folder / "log"
    configuration = folder / "buildgrid.yml"
    configuration.write_text(_CONFIGURATION.format(port=port, folder=folder))
    running: list[subprocess.Popen[bytes]] = []
    with _database(folder), log.open("wb") as output:
        url = f"postgresql+psycopg2://postgres@/postgres?host={folder}"
        subprocess.run([BUILDGRID / "bgd", "migrate", "apply", url], check=True, stdout=output, stderr=output)
        try:
            running.append(
                subprocess.Popen(
                    [BUILDGRID / "bgd", "server", "start", configuration], stdout=output, stderr=output
                )
            )
            for _ in range(300):
                with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                    break
                time.sleep(0.1)
            program = Path(__file__).with_name("remote_worker.py")
            running += [
                subprocess.Popen(
                    [BUILDGRID / "python", program, f"127.0.0.1:{port}", f"worker{k}"],
                    stdout=output,
                    stderr=output,
                )
                for k in range(workers)
            ]
            yield f"grpc://127.0.0.1:{port}"
        finally:
            for process in reversed(running):
                process.terminate()
                process.wait()
