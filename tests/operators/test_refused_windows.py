"""Windows that begin inside of the image, or have nothing in them: the standard has no pads below 0, and
kernels know neither.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper

from aot_model.errors import CompileError
from aot_model.pipeline import Request, compile_model


@pytest.mark.parametrize("kind", ["Conv", "MaxPool", "AveragePool"])
@pytest.mark.parametrize(("pads", "taps", "said"),
                         [((-1, 0, 0, 0), (3, 3), "not below 0; a Slice"),
                          ((0, 1, 0, -2), (3, 3), "not below 0"),
                          ((0, 0, 0, 0), (3, 0), "a window of 0 taps")])  # fmt: skip
def test_refused(kind: str, pads: tuple[int, ...], taps: tuple[int, int], said: str, tmp_path: Path) -> None:
    weights = numpy_helper.from_array(np.ones((4, 4, *taps), np.float32), "w")
    names = ["x", "w"] if kind == "Conv" else ["x"]
    node = helper.make_node(kind, names, ["y"], kernel_shape=taps, pads=pads)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4, 8, 8])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "g", [x], [y], [weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "m.onnx")
    with pytest.raises(CompileError, match=said):
        compile_model(Request(tmp_path / "m.onnx", "m", "c"))
