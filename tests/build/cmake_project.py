"""Small CMake projects for the tests of the rules: models of two layers, a program, helpers to configure and
build.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from turns import commit_number

ROOT = Path(__file__).resolve().parents[2]
GENERATORS = ("Ninja", "Unix Makefiles", "Ninja Multi-Config")
IN_TURN = GENERATORS[commit_number() % 3]
"""For tests that build much: the generator of this commit."""
WEIGHTS = np.array([[1, -1, 2], [0.5, 0, 1], [-2, 1, 0], [1, 1, 1]], np.float32)


def write_model(
    path: Path, bias: float = 0.0, external_data: str = "", shape: tuple[int | str, ...] = (1, 4)
) -> Path:
    """An ONNX file that computes relu(x @ WEIGHTS + bias), x [1, 4] to y [1, 3]; `shape` says so in other
    words.
    """
    nodes = [
        helper.make_node("Gemm", ["x", "weights", "bias"], ["sum"], name="gemm"),
        helper.make_node("Relu", ["sum"], ["y"], name="relu"),
    ]
    graph = helper.make_graph(
        nodes,
        "tiny",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, [shape[0], 3])],
        [
            numpy_helper.from_array(WEIGHTS, "weights"),
            numpy_helper.from_array(np.full(3, bias, np.float32), "bias"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])
    model.ir_version = 8
    path.parent.mkdir(parents=True, exist_ok=True)
    if external_data:
        (path.parent / external_data).unlink(missing_ok=True)  # onnx appends
        onnx.save(model, path, save_as_external_data=True, location=external_data, size_threshold=0)
    else:
        onnx.save(model, path)
    return path


def expected(inputs: np.ndarray, bias: float = 0.0) -> np.ndarray:
    return np.maximum(inputs @ WEIGHTS + np.float32(bias), 0).astype(np.float32)


def write_vectors(path: Path, bias: float = 0.0, count: int = 3) -> Path:
    inputs = np.random.default_rng(0).standard_normal((count, 1, 4)).astype(np.float32)
    np.savez(path, in_0=inputs, out_0=expected(inputs, bias))
    return path


def program(*models: str) -> str:
    """C of a program that runs every model on (1, 2, 3, 4) and prints its outputs, one line each."""
    includes = "".join(f'#include "{m}.h"\n' for m in models)
    calls = "".join(
        f"""
    if ({m}_run(&({m}_inputs){{x}}, &({m}_outputs){{y}}) != 0) return 1;
    printf("{m} %g %g %g\\n", (double)y[0], (double)y[1], (double)y[2]);"""
        for m in models
    )
    return f"""#include <stdio.h>
{includes}
int main(void)
{{
    static const float x[4] = {{1, 2, 3, 4}};
    float y[3];{calls}
    return 0;
}}
"""


def compiled_models(log: str) -> set[str]:
    """Names of the models that the compiler was run for, in the log of a verbose build."""
    return set(re.findall(r" compile .*--name=(\w+)", log))


def compiled_objects(log: str) -> set[str]:
    """C and C++ files that were compiled, in the log of a verbose build."""
    return {Path(file.rstrip('"')).name for file in re.findall(r' -c "?(.*\.c(?:pp)?\b)', log)}


@dataclass
class Project:
    """A CMake project in a folder; `lists` becomes its CMakeLists.txt behind the usual first lines."""

    folder: Path
    lists: str
    languages: str = "C"
    generator: str = "Ninja"
    find: str = "find_package(AotModel REQUIRED)"
    environment: dict[str, str] = field(default_factory=dict)
    hints: tuple[str, ...] = (f"-DAotModel_DIR={ROOT / 'cmake'}", f"-DPython3_EXECUTABLE={sys.executable}")

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        head = (
            "cmake_minimum_required(VERSION 3.25)\nproject(app LANGUAGES "
            f"{self.languages})\nenable_testing()\n"
        )
        self.write("CMakeLists.txt", f"{head}{self.find}\n{self.lists}")

    @property
    def build_folder(self) -> Path:
        return self.folder / "build"

    def write(self, name: str, text: str) -> Path:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def run(self, *command: str | Path, ok: bool = True) -> str:
        """Output of a command, both streams; a status that is not the expected one fails the test."""
        environment = {
            k: v for k, v in os.environ.items() if not k.startswith(("AotModel", "CMAKE_"))
        } | self.environment
        done = subprocess.run(
            list(map(str, command)),
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=120,
        )
        output = done.stdout + done.stderr
        assert (done.returncode == 0) == ok, (
            f"status {done.returncode} of {' '.join(map(str, command))}\n{output}"
        )
        return output

    def configure(self, *arguments: str, ok: bool = True) -> str:
        output = self.run(
            "cmake",
            "-S",
            self.folder,
            "-B",
            self.build_folder,
            "-G",
            self.generator,
            *self.hints,
            *arguments,
            ok=ok,
        )
        return output if ok else " ".join(output.split())  # CMake wraps the lines of its messages

    def build(self, *arguments: str, ok: bool = True) -> str:
        return self.run("cmake", "--build", self.build_folder, "--verbose", *arguments, ok=ok)

    def rebuilt(self) -> set[str]:
        """Builds; the names of the models that were compiled."""
        return compiled_models(self.build())

    def ctest(self, *arguments: str, ok: bool = True) -> str:
        command = ("ctest", "--test-dir", self.build_folder, "-C", "Debug", "--output-on-failure", *arguments)
        return self.run(*command, ok=ok)

    def executable(self, name: str) -> Path:
        plain = self.build_folder / name
        return plain if plain.exists() else self.build_folder / "Debug" / name


def has_tools(*tools: str) -> bool:
    return all(shutil.which(tool) for tool in tools)
