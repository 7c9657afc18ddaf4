"""Names of models, tensors and files that are no C identifiers, or break out of comments: the C stays clean.
And names that cannot be.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper
from rejected import compile_

from aot_model.cli import main
from aot_model.installation import include_dir
from onnx_models import model, save, small_cnn, tensor

node = helper.make_node
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-Wpedantic", "-Werror"]


NAMES = [
    "a/b:0",
    "int",
    '"; system("x")',
    " ",
    "n" * 4096,
    "*/ int x; /*",
    "abc\\\nint y;\\",
    "what??/\nfoo???/",
    "*\\",
    "/\\*",
    "a\nb",
    "é中\u202e",
    "a\0b",
    "linux",
    "workspace",
    "none",
    "NAN",
    "INT8_MAX",
    "0",
    "_",
    "%s%n",
    "{{ m }}",
    "main",
    "errno",
    "AOT_MODEL_OK",
]


def _named(name: str) -> onnx.ModelProto:
    nodes = [
        node("Relu", [name], [f"{name}_out"], name=name),
        node("Softmax", [name], [f"{name}2"], name=name),
        node("Add", [f"{name}2", f"{name}w"], [f"{name}3"]),
    ]
    constants = {f"{name}w": np.asarray([1, 2, 3, 4], np.float32)}
    proto = model(
        nodes, [tensor(name, [1, 4])], [tensor(f"{name}_out", None), tensor(f"{name}3", None)], constants
    )
    proto.graph.name = name
    return proto


def builds(folder: Path, name: str = "m") -> None:
    """The C is clean under strict flags, in GNU mode too, and C++ takes the header."""
    for command in (
        ["gcc", *STRICT, "-O1", "-c", f"{name}.c", "-o", "strict.o"],
        ["gcc", "-std=gnu11", "-Wall", "-Werror", "-O0", "-c", f"{name}.c", "-o", "gnu.o"],
        ["g++", "-std=gnu++11", "-Wall", "-Wextra", "-Werror", "-x", "c++", "-fsyntax-only", f"{name}.h"],
    ):
        done = subprocess.run(
            [*command, f"-I{include_dir()}"], cwd=folder, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("name", NAMES, ids=[repr(n[:16]) for n in NAMES])
def test_names_of_a_model(name: str, tmp_path: Path) -> None:
    assert compile_(save(_named(name), tmp_path / "m.onnx"), tmp_path / "out", "--metadata", "full") == 0
    builds(tmp_path / "out")


def test_names_that_collide(tmp_path: Path) -> None:
    nodes = [node("Relu", ["a.b"], ["a/b"]), node("Relu", ["a:b"], ["a_b"])]
    proto = model(
        nodes,
        [tensor("a.b", [2]), tensor("a:b", [2]), tensor("A_b", [2]), tensor("a_b_output", [2])],
        [tensor("a/b", None), tensor("a_b", None)],
    )
    assert compile_(save(proto, tmp_path / "m.onnx"), tmp_path / "out") == 0
    builds(tmp_path / "out")


@pytest.mark.parametrize("stem", ["int", "7", "math", "a b", "ü", "String", ".hidden", "x" * 200])
def test_name_from_the_file(stem: str, tmp_path: Path) -> None:
    path = save(small_cnn(), tmp_path / f"{stem}.onnx")
    assert main(["compile", str(path), "-o", str(tmp_path / "out"), "--target", "c"]) == 0
    (header,) = (tmp_path / "out").glob("*.h")
    assert header.stem.isidentifier() and header.stem.isascii()
    builds(tmp_path / "out", header.stem)


@pytest.mark.parametrize(
    "name", ["", "a b", "1x", "ü", "../x", "a/b", "x" * 201, "aot_model", "math", "stdio", 'a"', "-x"]
)
def test_name_that_cannot_be(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = save(small_cnn(), tmp_path / "m.onnx")
    assert main(["compile", str(path), "-o", str(tmp_path / "out"), f"--name={name}"]) == 1
    assert "[E501]" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
