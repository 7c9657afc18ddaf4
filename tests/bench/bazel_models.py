"""What many models cost in Bazel: analysis, a clean build, one with nothing to do, one after a change of one
model, and a clean build with a filled cache; and the memory of Bazel and of the compiler.

    nice -n 10 python tests/bench/bazel_models.py [--models 1000] [--build 1000] [--jobs 2]

The models are the examples' network, each with weights of its own, in packages of 50. Times are of the wall
clock and of processors. 1,000 models take about 20 minutes on two cores that have nothing else to do; --build
builds the first N alone, for all are analysed.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
from onnx import numpy_helper

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/build"))

from bazel_project import BAZEL, FLAGS, LOAD, REASON, STARTUP, Workspace  # noqa: E402

PACKAGE = 50
"""Models of one BUILD file."""


def write_models(folder: Path, numbers: range, seed: int = 0) -> None:
    """The network of the examples with other weights for each number and seed."""
    base = onnx.load(ROOT / "examples/digits/digits.onnx").graph.initializer
    weights = [(k, numpy_helper.to_array(t)) for k, t in enumerate(base) if t.data_type == 1]
    model = onnx.load(ROOT / "examples/digits/digits.onnx")
    for number in numbers:
        rng = np.random.default_rng((seed, number))
        for k, values in weights:
            noisy = (values * rng.uniform(0.9, 1.1, values.shape)).astype(np.float32)
            model.graph.initializer[k].CopyFrom(numpy_helper.from_array(noisy, base[k].name))
        onnx.save(model, folder / f"net{number}.onnx")


@dataclass
class Project:
    """A workspace of many models, and a server of its own."""

    workspace: Workspace
    models: int
    built: int
    jobs: int
    flags: list[str] = field(default_factory=list)

    def create(self) -> None:
        self.workspace.create()
        for first in range(0, self.models, PACKAGE):
            numbers = range(first, min(first + PACKAGE, self.models))
            rules = "".join(f'aot_model_library(name = "net{k}", model = "net{k}.onnx")\n' for k in numbers)
            file = self.workspace.write(f"package{first // PACKAGE}/BUILD.bazel", LOAD + rules)
            write_models(file.parent, numbers)

    def command(self, *words: str) -> list[str]:
        assert BAZEL
        return [BAZEL, f"--output_user_root={self.workspace.user_root}", *STARTUP, *words]

    def run(self, *words: str) -> str:
        done = subprocess.run(self.command(*words), cwd=self.workspace.folder, text=True, check=False,
                              env=os.environ | {"HOME": str(self.workspace.user_root)},
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip
        if done.returncode:
            sys.exit(f"{' '.join(words)}\n{done.stdout[-4000:]}")
        return done.stdout

    def build(self, what: str, *more: str) -> None:
        """Builds the first libraries; says what was done and how long it took."""
        flags = [*FLAGS, f"--jobs={self.jobs}", f"--repo_env=AOT_MODEL_PYTHON={sys.executable}", *self.flags]
        start, used = time.perf_counter(), processors(self.server())
        wanted = [f"//package{k // PACKAGE}:net{k}" for k in range(self.built)]
        log = self.run("build", *flags, *more, *(wanted if self.built < self.models else ["//..."]))
        taken = time.perf_counter() - start
        done = re.search(r"processes?: (.*)\.", log)
        print(f"{what:<22}{taken:8.1f} s, {processors(self.server()) - used:8.1f} s of processors   "
              f"actions: {done[1] if done else 0}", flush=True)  # fmt: skip

    def server(self) -> int:
        """Its process."""
        found = re.search(r"\d+", self.run("info", "server_pid"))
        assert found
        return int(found[0])

    def memory(self) -> str:
        """Of the server: its heap after collection, all of the process at most."""
        heap = self.run("info", "used-heap-size-after-gc").split()[-1]
        return f"heap {heap} in use; the process {peak_of(self.server())} MB at most"


def processors(process: int) -> float:
    """Seconds of all processors that a process and those that it waited for have had: what a machine with
    other work shows, too.
    """
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")


def peak_of(process: int) -> int:
    """The most memory that a process of this machine had, in megabytes."""
    status = Path(f"/proc/{process}/status").read_text()
    found = re.search(r"VmHWM:\s+(\d+) kB", status)
    assert found
    return int(found[1]) // 1000


def compiler_peak(model: Path) -> int:
    """The most memory that the compiler has for a model, in megabytes."""
    measured = (
        "import resource, subprocess, sys; subprocess.run(sys.argv[1:], check=True); "
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss // 1000)"
    )
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, str(ROOT / "compiler/aot_model"), "compile", str(model), "-o", folder]
        done = subprocess.run([sys.executable, "-c", measured, *command, "-q"], check=True,
                              capture_output=True, text=True)  # fmt: skip
    return int(done.stdout)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", type=int, default=1000)
    parser.add_argument("--build", type=int, default=1000)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    arguments = parser.parse_args()
    if BAZEL is None:
        sys.exit(REASON)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        built, cache = min(arguments.models, arguments.build), folder / "cache"
        project = Project(Workspace(folder / "workspace", folder / "user_root"), arguments.models, built,
                          arguments.jobs, [f"--disk_cache={cache}"])  # fmt: skip
        project.create()
        try:
            project.run("info")  # the server starts
            project.build("analysis of all", "--nobuild", "//...")
            print(f"Bazel: {project.memory()}", flush=True)
            project.build("clean")
            project.build("nothing changed")
            write_models(project.workspace.folder / "package0", range(1), seed=1)
            project.build("one model changed")
            project.run("clean")
            project.build("clean, cache filled")
            size = sum(f.stat().st_size for f in cache.rglob("*") if f.is_file())
            print(f"cache: {size / 1e6:.0f} MB")
            print(f"Bazel: {project.memory()}")
            print(f"compiler: {compiler_peak(project.workspace.folder / 'package0/net0.onnx')} MB at most")
        finally:
            project.run("shutdown")
            shutil.rmtree(folder / "user_root", ignore_errors=True)


if __name__ == "__main__":
    main()
