"""What generation costs in a build: start-up, 20 models with -j1 and -j2, a clean build of 50 models with a filled cache.

    python tests/bench/build_times.py [--models 20] [--cached 50]

Times of the wall clock: nothing else should run. The models are the examples' network, each with a name of its own; Ninja
runs the commands that the CMake rules make.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COMPILER = [sys.executable, str(ROOT / "compiler/aot_model")]


def seconds(command: list[str], repeat: int = 1, **environment: str) -> float:
    """The shortest of some runs."""
    taken = []
    for _ in range(repeat):
        start = time.perf_counter()
        subprocess.run(command, env=os.environ | environment, check=True, capture_output=True)
        taken.append(time.perf_counter() - start)
    return min(taken)


def project(folder: Path, models: int) -> None:
    """Libraries whose C is generated, and not compiled."""
    lines = ["cmake_minimum_required(VERSION 3.25)", "project(many LANGUAGES C)", "find_package(AotModel REQUIRED)", "add_custom_target(generate)"]
    for k in range(models):
        lines += [f"aot_model_library(net{k} MODEL {ROOT}/examples/digits/digits.onnx EXCLUDE_FROM_ALL METADATA json)", f"add_custom_target(g{k} DEPENDS ${{json}})"]
        lines += [f"add_dependencies(generate g{k})"]
    folder.mkdir()
    (folder / "CMakeLists.txt").write_text("\n".join(lines) + "\n")
    configure = ["cmake", "-S", folder, "-B", folder / "build", "-G", "Ninja", f"-DAotModel_DIR={ROOT / 'cmake'}", f"-DPython3_EXECUTABLE={sys.executable}"]
    subprocess.run(configure, check=True, capture_output=True)


def generation(folder: Path, jobs: int, **environment: str) -> float:
    subprocess.run(["ninja", "-C", folder / "build", "-t", "clean"], check=True, capture_output=True)
    return seconds(["ninja", "-C", str(folder / "build"), f"-j{jobs}", "generate"], **environment)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", type=int, default=20)
    parser.add_argument("--cached", type=int, default=50)
    arguments = parser.parse_args()

    print(f"--version                        {seconds([*COMPILER, '--version'], 5):6.2f} s")
    check = "import sys; sys.path.insert(0, sys.argv[1]); import aot_model.pipeline; from aot_model.ops.registry import load_all; load_all()"
    print(f"all modules loaded               {seconds([sys.executable, '-c', check, str(ROOT / 'compiler')], 5):6.2f} s")
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        one = [*COMPILER, "compile", str(ROOT / "examples/digits/digits.onnx"), "-o", str(folder / "one")]
        print(f"one model                        {seconds(one, 5):6.2f} s")
        project(folder / "parallel", arguments.models)
        alone, both = generation(folder / "parallel", 1), generation(folder / "parallel", 2)
        print(f"{arguments.models} models, ninja -j1             {alone:6.2f} s")
        print(f"{arguments.models} models, ninja -j2             {both:6.2f} s   {alone / both:.2f} times as fast")
        project(folder / "cached", arguments.cached)
        cache = {"AOT_MODEL_CACHE_DIR": str(folder / "cache")}
        first, second = generation(folder / "cached", 2, **cache), generation(folder / "cached", 2, **cache)
        print(f"{arguments.cached} models, -j2, cache empty      {first:6.2f} s")
        print(f"{arguments.cached} models, -j2, cache filled     {second:6.2f} s   {second / arguments.cached * 1000:.0f} ms each")
        shutil.rmtree(folder / "cache")


if __name__ == "__main__":
    main()
