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


@pytest.mark.parametrize(("extents", "refused"), [((7, 6), True), ((10, 5), True), ((10, 4), False)])
def test_more_than_an_output_padding_is_asked_for(
    extents: tuple[int, int], refused: bool, tmp_path: Path
) -> None:
    """A transposed convolution of 4 x 3 with 3 x 2 taps gives 9 x 4 with strides 2 and 1."""
    weights = numpy_helper.from_array(np.ones((2, 2, 3, 2), np.float32), "w")
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], strides=(2, 1), output_shape=extents)
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 4, 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "g", [x], [y], [weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "m.onnx")
    request = Request(tmp_path / "m.onnx", "m", "c")
    if refused:
        with pytest.raises(CompileError, match="gives along axis 3"):
            compile_model(request)
    else:
        assert compile_model(request).view.outputs[0].buffer.type.shape == (1, 2, *extents)


def test_a_transposed_convolution_of_which_pads_leave_nothing(tmp_path: Path) -> None:
    weights = numpy_helper.from_array(np.ones((2, 2, 1, 1), np.float32), "w")
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], pads=(1, 0, 1, 0))
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 2, 1, 3])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    graph = helper.make_graph([node], "g", [x], [y], [weights])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), tmp_path / "m.onnx")
    with pytest.raises(CompileError, match="leave -1 x 3 elements of a result"):
        compile_model(Request(tmp_path / "m.onnx", "m", "c"))
