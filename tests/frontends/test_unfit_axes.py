"""Axes that a tensor does not have, pieces that are not the whole, as many axes as there are sequences: what
ONNX Runtime refuses is refused.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import helper
from onnxruntime.capi.onnxruntime_pybind11_state import Fail, InvalidArgument, RuntimeException

from aot_model.errors import CompileError
from aot_model.pipeline import Request, compile_model
from onnx_models import model, save, tensor

node = helper.make_node
REFUSED = (Fail, InvalidArgument, RuntimeException)


def _of_a_scalar(op: str, *more: np.ndarray, **attributes: Any) -> onnx.ModelProto:
    constants = {f"c{k}": v for k, v in enumerate(more)}
    made = node(op, ["x", *constants], ["y"], **attributes)
    return model([made], [tensor("x", [])], [onnx.ValueInfoProto(name="y")], constants, opset=21)


def _pieces(sizes: Any) -> onnx.ModelProto:
    constants = {"s": np.asarray(sizes, np.int64), "k": np.asarray(0, np.int64)}
    nodes = [node("SplitToSequence", ["x", "s"], ["q"]), node("SequenceAt", ["q", "k"], ["y"])]
    return model(nodes, [tensor("x", [6, 2])], [tensor("y", None)], constants, opset=21)


def _scan(**attributes: Any) -> onnx.ModelProto:
    formals, results = ([tensor(name, [2]) for name in names] for names in ("si", "no"))
    steps = [node("Add", ["s", "i"], ["n"]), node("Mul", ["n", "i"], ["o"])]
    body = helper.make_graph(steps, "body", formals, results)
    made = node("Scan", ["s0", "x"], ["s1", "y"], num_scan_inputs=1, body=body, **attributes)
    outputs = [tensor("s1", [2]), tensor("y", None)]
    return model([made], [tensor("s0", [2]), tensor("x", [6, 2])], outputs, opset=21)


ZERO, YES = np.asarray(0, np.int64), np.asarray([True])
UNFIT: dict[str, tuple[onnx.ModelProto, str]] = {
    "ArgMax": (_of_a_scalar("ArgMax", keepdims=0), "out of range"),
    "Hardmax": (_of_a_scalar("Hardmax", axis=0), "out of range"),
    "CumSum": (_of_a_scalar("CumSum", ZERO), "out of range"),
    "Unique": (_of_a_scalar("Unique", axis=0), "out of range"),
    "Compress": (_of_a_scalar("Compress", YES, axis=0), "out of range"),
    "ReduceSum": (_of_a_scalar("ReduceSum", ZERO.reshape(1)), "out of range"),
    "ScatterElements": (_of_a_scalar("ScatterElements", ZERO, np.asarray(1, np.float32)), "out of range"),
    **{f"pieces of {s}": (_pieces(s), "pieces of") for s in ([2, 2], [4, 4], [7, -1], 0, -2)},
    "axes of results": (_scan(scan_output_axes=[0, 0]), "scan_output_axes"),
    "directions of results": (_scan(scan_output_directions=[0, 1]), "scan_output_directions"),
    "a direction of results": (_scan(scan_output_directions=[2]), "scan_output_directions"),
    "a direction of sequences": (_scan(scan_input_directions=[2]), "scan_input_directions"),
}


@pytest.mark.parametrize("case", UNFIT)
def test_refused(case: str, tmp_path: Path) -> None:
    proto, why = UNFIT[case]
    with pytest.raises(CompileError, match=why):
        compile_model(Request(save(proto, tmp_path / "m.onnx"), "m", "c"))
    shapes = {i.name: [d.dim_value for d in i.type.tensor_type.shape.dim] for i in proto.graph.input}
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    with pytest.raises(REFUSED):
        session = onnxruntime.InferenceSession(proto.SerializeToString(), options)
        session.run(None, {name: np.ones(shape, np.float32) for name, shape in shapes.items()})


def test_pieces_that_are_the_whole(tmp_path: Path) -> None:
    for sizes in ([2, 4], [6, 0], 4):
        compile_model(Request(save(_pieces(sizes), tmp_path / "m.onnx"), "m", "c"))


def test_indices_of_a_scalar(tmp_path: Path) -> None:
    """A result of no rows, in the standard."""
    with pytest.raises(CompileError, match="no indices"):
        compile_model(Request(save(_of_a_scalar("NonZero"), tmp_path / "m.onnx"), "m", "c"))
