"""Long chains of layers: no recursion, no growth out of hand."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

from onnx_models import model, save, tensor

node = helper.make_node


def _chain(
    count: int,
    step: Callable[[int, str, str], list[onnx.NodeProto]],
    shape: list[int],
    **constants: np.ndarray,
) -> onnx.ModelProto:
    nodes = [n for k in range(count) for n in step(k, f"v{k}", f"v{k + 1}")]
    return model(nodes, [tensor("v0", shape)], [tensor(f"v{count}", None)], constants)


CHAINS: dict[str, onnx.ModelProto] = {
    "10 000 element-wise": _chain(10_000, lambda k, x, y: [node(("Relu", "Neg")[k % 2], [x], [y])], [4]),
    "x + x, 60 times": _chain(60, lambda k, x, y: [node("Add", [x, x], [y])], [4]),
    "3000 transposes": _chain(3000, lambda k, x, y: [node("Transpose", [x], [y], perm=[1, 2, 0])], [2, 3, 4]),
    "1000 reshapes": _chain(
        1000,
        lambda k, x, y: [node("Reshape", [x, f"s{k % 2}"], [y])],
        [2, 3, 4],
        s0=np.asarray([6, 4]),
        s1=np.asarray([4, 6]),
    ),
    "300 gathers": _chain(
        300, lambda k, x, y: [node("Gather", [x, "i"], [y])], [4], i=np.asarray([3, 1, 0, 2])
    ),
    "concatenated with itself": _chain(16, lambda k, x, y: [node("Concat", [x, x], [y], axis=0)], [4]),
    "halves swapped": _chain(
        40,
        lambda k, x, y: [
            node("Slice", [x, "a", "b"], [f"{y}s"]),
            node("Slice", [x, "b", "c"], [f"{y}t"]),
            node("Concat", [f"{y}t", f"{y}s"], [y], axis=0),
        ],
        [8],
        a=np.asarray([0]),
        b=np.asarray([4]),
        c=np.asarray([8]),
    ),
    "plus its transpose": _chain(
        30, lambda k, x, y: [node("Transpose", [x], [f"{y}t"]), node("Add", [x, f"{y}t"], [y])], [4, 4]
    ),
    "200 convolutions": _chain(
        200, lambda k, x, y: [node("Conv", [x, "w"], [y])], [1, 2, 3, 3], w=np.ones((2, 2, 1, 1), np.float32)
    ),
}


@pytest.mark.parametrize("case", CHAINS)
def test_long_chains(case: str, tmp_path: Path) -> None:
    """No recursion, no growth out of hand: within a minute on a slow machine, and C of a sane size."""
    path = save(CHAINS[case], tmp_path / "m.onnx")
    subprocess.run(
        [sys.executable, "-m", "aot_model", "compile", str(path), "-o", str(tmp_path / "out"), "--name", "m"],
        check=True,
        timeout=60,
    )
    assert (tmp_path / "out" / "m.c").stat().st_size < 4_000_000
