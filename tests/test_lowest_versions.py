"""The lowest versions of packages that pyproject.toml allows: the same C as with those that all other tests
use.

AOT_MODEL_LOWEST is the interpreter of an environment that has them; .ci/run makes one.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

import tflite_models as tfl
from aot_model.installation import REQUIREMENTS
from corpus import MODELS
from onnx_models import model, save, small_cnn, tensor, unary

ROOT = Path(__file__).resolve().parents[1]
LOWEST = os.environ.get("AOT_MODEL_LOWEST")
BOUNDS = dict(
    re.findall(
        r'^    "([a-z0-9-]+)>=([0-9.]+)",',
        re.findall(r"(?s)\ndependencies = \[\n(.*?)\n\]", (ROOT / "pyproject.toml").read_text())[0],
        re.MULTILINE,
    )
)


def test_every_package_has_a_lower_bound() -> None:
    assert set(BOUNDS) == set(REQUIREMENTS.values())


def _casts() -> onnx.ModelProto:
    """Element types that only ml-dtypes has."""
    kinds = [TensorProto.BFLOAT16, TensorProto.FLOAT8E4M3FN, TensorProto.FLOAT8E5M2, TensorProto.FLOAT16]
    nodes = [helper.make_node("Cast", ["x"], [f"c{k}"], to=kind) for k, kind in enumerate(kinds)]
    nodes += [helper.make_node("Cast", [f"c{k}"], [f"y{k}"], to=TensorProto.FLOAT) for k in range(len(kinds))]
    return model(nodes, [tensor("x", [1, 8])], [tensor(f"y{k}", [1, 8]) for k in range(len(kinds))], opset=19)


def _narrow_constants() -> onnx.ModelProto:
    """Initialisers of element types that numpy has not."""
    kinds = {"b": TensorProto.BFLOAT16, "f": TensorProto.FLOAT8E4M3FN, "i": TensorProto.INT4}
    nodes = [
        node
        for k, name in enumerate(kinds)
        for node in (
            helper.make_node("Cast", [name], [f"c{k}"], to=TensorProto.FLOAT),
            helper.make_node("Add", ["x", f"c{k}"], [f"y{k}"]),
        )
    ]
    made = model(nodes, [tensor("x", [1, 4])], [tensor(f"y{k}", [1, 4]) for k in range(len(kinds))], opset=21)
    made.graph.initializer.extend(
        helper.make_tensor(name, kind, [4], [-3, 1, 2, 7]) for name, kind in kinds.items()
    )
    made.ir_version = 10
    return made


def _loop() -> onnx.ModelProto:
    body = helper.make_graph(
        [helper.make_node("Add", ["state", "x"], ["next"]), helper.make_node("Identity", ["going"], ["on"])],
        "body",
        [tensor("i", [], TensorProto.INT64), tensor("going", [], TensorProto.BOOL), tensor("state", [1, 4])],
        [tensor("on", [], TensorProto.BOOL), tensor("next", [1, 4])],
    )
    return model(
        [helper.make_node("Loop", ["count", "", "x"], ["y"], body=body)],
        [tensor("x", [1, 4])],
        [tensor("y", [1, 4])],
        {"count": np.int64(3)},
    )


def _function() -> onnx.ModelProto:
    opsets = [helper.make_opsetid("", 18)]
    own = helper.make_function(
        "own", "Twice", ["a"], ["b"], [helper.make_node("Add", ["a", "a"], ["b"])], opsets
    )
    return model(
        [helper.make_node("Twice", ["x"], ["y"], domain="own")],
        [tensor("x", [1, 4])],
        [tensor("y", [1, 4])],
        domains={"own": 1},
        functions=[own],
    )


def _external(folder: Path) -> Path:
    path = folder / "external.onnx"
    onnx.save(small_cnn(), path, save_as_external_data=True, location="external.bin", size_threshold=0)
    return path


def _quantised() -> onnx.ModelProto:
    scale, zero, weights = (
        {"s": np.float32(0.05), "z": np.int8(3)},
        {"zw": np.int8(0)},
        {"w": np.arange(-6, 6, dtype=np.int8).reshape(4, 3), "sw": np.float32(0.02)},
    )
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "s", "z"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s", "z"], ["d"]),
        helper.make_node("DequantizeLinear", ["w", "sw", "zw"], ["dw"]),
        helper.make_node("MatMul", ["d", "dw"], ["m"]),
        helper.make_node("QuantizeLinear", ["m", "s", "z"], ["n"]),
        helper.make_node("DequantizeLinear", ["n", "s", "z"], ["y"]),
    ]
    return model(nodes, [tensor("x", [2, 4])], [tensor("y", [2, 3])], {**scale, **zero, **weights})


def _tflite(folder: Path, name: str, data: bytes) -> Path:
    path = folder / f"{name}.tflite"
    path.write_bytes(data)
    return path


SAMPLES: dict[str, Callable[[Path], Path]] = {
    "cnn": lambda folder: save(small_cnn(), folder / "cnn.onnx"),
    "casts": lambda folder: save(_casts(), folder / "casts.onnx"),
    "narrow constants": lambda folder: save(_narrow_constants(), folder / "narrow.onnx"),
    "loop": lambda folder: save(_loop(), folder / "loop.onnx"),
    "function": lambda folder: save(_function(), folder / "function.onnx"),
    "external data": _external,
    "qdq": lambda folder: save(_quantised(), folder / "qdq.onnx"),
    "old opset": lambda folder: save(
        model(
            [helper.make_node("Softmax", ["x"], ["y"])],
            [tensor("x", [2, 3, 4])],
            [tensor("y", None)],
            opset=9,
        ),
        folder / "old.onnx",
    ),
    "function of the standard": lambda folder: save(unary("HardSwish"), folder / "swish.onnx"),
    "float tflite": lambda folder: _tflite(
        folder,
        "float",
        tfl.build([tfl.floats("x", 1, 4), tfl.floats("y", 1, 4)], [tfl.Op("LOGISTIC", (0,), (1,))], [0], [1]),
    ),
    "int8 tflite": lambda folder: _tflite(
        folder,
        "int8",
        tfl.build(
            [tfl.T("x", (1, 4)), tfl.T("y", (1, 4), scale=(1 / 256,), zero=(-128,))],
            [tfl.Op("LOGISTIC", (0,), (1,))],
            [0],
            [1],
        ),
    ),
}
FROM_CORPUS = ("kws_int8.tflite", "stream_lstm.onnx", "digits_cnn_qdq.onnx", "lrt_while_multi.tflite")


def compile_(python: str, path: Path, out: Path) -> dict[str, bytes]:
    command = [
        python,
        "-B",
        str(ROOT / "compiler/aot_model"),
        "compile",
        str(path),
        "-o",
        str(out),
        "--name=m",
        "--target=c",
    ]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
    )
    assert done.returncode == 0, done.stderr
    return {file.name: file.read_bytes() for file in out.iterdir()}


@pytest.mark.skipif(LOWEST is None, reason="needs AOT_MODEL_LOWEST, an interpreter with the lowest versions")
def test_the_environment_has_the_lowest_versions() -> None:
    code = "from importlib import metadata; import sys; print(*(metadata.version(p) for p in sys.argv[1:]))"
    have = subprocess.run(
        [str(LOWEST), "-c", code, *BOUNDS], capture_output=True, text=True, check=True
    ).stdout.split()
    assert [re.sub(r"(\.0)+$", "", v) for v in have] == [re.sub(r"(\.0)+$", "", v) for v in BOUNDS.values()]


@pytest.mark.skipif(LOWEST is None, reason="needs AOT_MODEL_LOWEST, an interpreter with the lowest versions")
@pytest.mark.parametrize("name", [*SAMPLES, "digits", *(FROM_CORPUS if MODELS else ())])
def test_the_same_files(tmp_path: Path, name: str) -> None:
    if name in SAMPLES:
        path = SAMPLES[name](tmp_path)
    else:
        path = ROOT / "examples/digits/digits.onnx" if name == "digits" else Path(str(MODELS)) / name
    assert compile_(str(LOWEST), path, tmp_path / "lowest") == compile_(
        sys.executable, path, tmp_path / "newest"
    )
