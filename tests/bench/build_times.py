"""What generation costs in a build: start-up, 20 models with -j1 and -j2, a clean build of 50 models with a
filled cache.

    python tests/bench/build_times.py [--models 20] [--cached 50]

Times of the wall clock: nothing else should run. The models are the examples' network, each with a name of
its own; Ninja runs the commands that the CMake rules make.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMPILER = [sys.executable, str(ROOT / "compiler/aot_model")]


@dataclass(frozen=True)
class Time:
    """Seconds of the wall clock, and of all processors together: what a machine with other work still
    shows.
    """

    wall: float
    cpu: float

    def __str__(self) -> str:
        return f"{self.wall:6.2f} s, {self.cpu:6.2f} s of processors"


def measure(command: list[str], repeat: int = 1, **environment: str) -> Time:
    """The shortest of some runs."""
    taken = []
    for _ in range(repeat):
        start, used = time.perf_counter(), sum(os.times()[2:4])
        subprocess.run(command, env=os.environ | environment, check=True, capture_output=True)
        taken.append((time.perf_counter() - start, sum(os.times()[2:4]) - used))
    return Time(*min(taken))


def project(folder: Path, models: int) -> None:
    """Libraries whose C is generated, and not compiled."""
    lines = [
        "cmake_minimum_required(VERSION 3.25)",
        "project(many LANGUAGES C)",
        "find_package(AotModel REQUIRED)",
        "add_custom_target(generate)",
    ]
    for k in range(models):
        lines += [
            f"aot_model_library(net{k} MODEL {ROOT}/examples/digits/digits.onnx EXCLUDE_FROM_ALL METADATA "
            "json)",
            f"add_custom_target(g{k} DEPENDS ${{json}})",
        ]
        lines += [f"add_dependencies(generate g{k})"]
    folder.mkdir()
    (folder / "CMakeLists.txt").write_text("\n".join(lines) + "\n")
    configure = [
        "cmake",
        "-S",
        folder,
        "-B",
        folder / "build",
        "-G",
        "Ninja",
        f"-DAotModel_DIR={ROOT / 'cmake'}",
        f"-DPython3_EXECUTABLE={sys.executable}",
    ]
    subprocess.run(configure, check=True, capture_output=True)


def generation(folder: Path, jobs: int, **environment: str) -> Time:
    subprocess.run(["ninja", "-C", folder / "build", "-t", "clean"], check=True, capture_output=True)
    return measure(["ninja", "-C", str(folder / "build"), f"-j{jobs}", "generate"], **environment)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--models", type=int, default=20)
    parser.add_argument("--cached", type=int, default=50)
    arguments = parser.parse_args()

    def say(what: str, taken: Time, more: str = "") -> None:
        print(f"{what:<32}{taken}{more}", flush=True)

    load = (
        "import sys; sys.path.insert(0, sys.argv[1]); import aot_model.pipeline; from "
        "aot_model.ops.registry import load_all; load_all()"
    )
    say("--version", measure([*COMPILER, "--version"], 5))
    say("all modules loaded", measure([sys.executable, "-c", load, str(ROOT / "compiler")], 5))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        say(
            "one model",
            measure(
                [*COMPILER, "compile", str(ROOT / "examples/digits/digits.onnx"), "-o", str(folder / "one")],
                5,
            ),
        )
        project(folder / "parallel", arguments.models)
        alone, both = generation(folder / "parallel", 1), generation(folder / "parallel", 2)
        say(f"{arguments.models} models, ninja -j1", alone)
        say(f"{arguments.models} models, ninja -j2", both, f"; {alone.wall / both.wall:.2f} times as fast")
        project(folder / "cached", arguments.cached)
        cache = {"AOT_MODEL_CACHE_DIR": str(folder / "cache")}
        first, second = generation(folder / "cached", 2, **cache), generation(folder / "cached", 2, **cache)
        say(f"{arguments.cached} models, -j2, cache empty", first)
        say(
            f"{arguments.cached} models, -j2, cache filled",
            second,
            f"; {second.cpu / arguments.cached * 1000:.0f} ms each",
        )


if __name__ == "__main__":
    main()
