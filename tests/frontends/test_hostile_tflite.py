"""TFLite files whose numbers no network has: each is refused, within seconds and with little memory."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from small_tflite import save

from aot_model.errors import CompileError
from aot_model.frontends.tflite import read_tflite
from tflite_models import INT8, INT32, INT64, Op, T, build, floats, ints

MOST = 2**31 - 1


def _resize(size: int) -> bytes:
    tensors = [T("x", (1, 4, 4, 3)), ints("size", [3, size]), T("y", ())]
    return build(tensors, [Op("RESIZE_NEAREST_NEIGHBOR", (0, 1), (2,))], [0], [2])


def _one_hot(depth: int) -> bytes:
    tensors = [T("i", (), INT32, ()), ints("depth", depth), T("on", (), data=np.int8(1)), T("off", ()),
               T("y", ())]  # fmt: skip
    return build(tensors, [Op("ONE_HOT", (0, 1, 2, 3), (4,), "OneHotOptions", {"Axis": -1})], [0, 3], [4])


def _segments(count: int) -> bytes:
    tensors = [floats("x", 3), T("i", (3,), INT32, ()), ints("count", count), floats("y")]
    return build(tensors, [Op("UNSORTED_SEGMENT_SUM", (0, 1, 2), (3,))], [0, 1], [3])


def _diagonal(size: int) -> bytes:
    return build([T("x", (size,)), T("y", ())], [Op("MATRIX_DIAG", (0,), (1,))], [0], [1])


@pytest.mark.parametrize(
    "model",
    [_resize(MOST), _one_hot(MOST), _one_hot(1 << 28), _segments(1 << 28), _diagonal(1 << 15)],
    ids=["resize", "one-hot", "one-hot-smaller", "segments", "diagonal"],
)
def test_tables_that_no_network_has(model: bytes, tmp_path: Path) -> None:
    """Memory ran out before the size of the result was looked at."""
    began = time.process_time()
    with pytest.raises(CompileError, match=r"tables would have .* numbers, more than .* \[E202\]"):
        read_tflite(save(tmp_path, model))
    assert time.process_time() - began < 5


def test_the_least_scales(tmp_path: Path) -> None:
    """Their product is 0 in single precision, by which nothing can be divided."""
    tensors = [T("x", (4,), INT8, (1.2e-38,)), T("y", (4,), INT8, (1.2e-38,))]
    with pytest.raises(CompileError, match=r"the scales are too small \[E302\]"):
        read_tflite(save(tmp_path, build(tensors, [Op("RSQRT", (0,), (1,))], [0], [1])))


@pytest.mark.parametrize("kind", ["DIV", "MUL", "ADD"])
def test_quantised_results_of_other_types(kind: str, tmp_path: Path) -> None:
    """Their limits do not fit the words that the result is computed in."""
    tensors = [T("a", (4,)), T("b", (4,)), T("y", (4,), INT64)]
    with pytest.raises(CompileError, match=r"quantised result of int64 is not supported \[E202\]"):
        read_tflite(save(tmp_path, build(tensors, [Op(kind, (0, 1), (2,))], [0, 1], [2])))
