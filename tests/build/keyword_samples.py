"""A value for every keyword of a library, and the arguments of `aot-model compile` that it becomes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
from onnx import helper, numpy_helper

from aot_model.cli.keywords import LIBRARY, OPTIONS

SAMPLES: dict[str, object] = {
    "dims": {"batch": 1, "width": 4},
    "workspace": "static",
    "io": "caller",
    "pools": ["fast:64k", "slow"],
    "constant_pools": ["flash"],
    "pool_sections": {"fast": ".fast"},
    "pool_speeds": {"fast": 1},
    "pool_targets": {"fast": "c"},
    "planner": "greedy",
    "memory": "l4-art",
    "params": "linked",
    "profile": True,
    "trace": True,
    "fetch": "8k",
    "interfaces": ["module"],
    "constants": {"scale": 2},
    "bounds": {"rows": 8},
    "string_bytes": "128",
    "metadata_level": "full",
    "max_ram": 100000,
    "max_flash": "200k",
    "quantise": True,
    "calibration": "calibration.npz",
    "quantisation_plan": "plan.json",
    "accuracy": "50%",
    "metric": "cosine",
    "within": "20x",
}
"""They fit together, for the model of write_model_for_all()."""


def write_model_for_all(path: Path) -> None:
    """y = x * scale with symbolic dimensions, scale to be a constant; rows 0, 1, … up to a limit that is an
    input.
    """
    real, whole = onnx.TensorProto.FLOAT, onnx.TensorProto.INT64
    nodes = [
        helper.make_node("Mul", ["x", "scale"], ["y"], name="mul"),
        helper.make_node("Range", ["zero", "limit", "one"], ["rows"], name="range"),
    ]
    inputs = [
        helper.make_tensor_value_info(*facts)
        for facts in (("x", real, ["batch", "width"]), ("scale", real, [1]), ("limit", whole, []))
    ]
    outputs = [
        helper.make_tensor_value_info(*facts)
        for facts in (("y", real, ["batch", "width"]), ("rows", whole, ["n"]))
    ]
    constants = [numpy_helper.from_array(np.array(value), name) for value, name in ((0, "zero"), (1, "one"))]
    graph = helper.make_graph(nodes, "all", inputs, outputs, constants)
    path.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    x = np.arange(32, dtype=np.float32).reshape(8, 1, 4)
    np.savez(path.with_name("calibration.npz"), x=x, limit=np.full(8, 5, np.int64))
    path.with_name("plan.json").write_text('{"schema": 1, "tensors": {}, "weights": {}}')


def words(folder: str = "") -> list[str]:
    """In the order of the table; files are in the folder."""
    assert {*SAMPLES, *FOR_TFLITE} == {k.name for k in OPTIONS}, "each has a sample"
    found = []
    for keyword in OPTIONS:
        if keyword.name in FOR_TFLITE:
            continue
        value = SAMPLES[keyword.name]
        if isinstance(value, dict):
            found += [f"{keyword.flag}={key}={one}" for key, one in value.items()]
        elif keyword.kind == "file":
            found.append(f"{keyword.flag}={folder}{value}")
        elif isinstance(value, list):
            found += [f"{keyword.flag}={one}" for one in value]
        else:
            found.append(keyword.flag if value is True else f"{keyword.flag}={value}")
    return found


FOR_TFLITE = ("signature",)
"""Keywords that no ONNX model can have: test_same_bytes.py."""
FOR_CORTEX_M = ("max_cycles", "clock")
"""Keywords that only a library for a Cortex-M can have: test_same_bytes.py, test_budget_of_cycles."""


def spellings(system: str) -> set[str]:
    """Every other keyword that the documentation has for a library."""
    others = (*FOR_TFLITE, *FOR_CORTEX_M)
    return {k.spelling(system) for k in LIBRARY if k.name not in others and k.spelling(system)}


FILES = {"net.c", "net.h", "net.json"}
"""What a library called `net` is made of, with these values; the report comes beside them."""
