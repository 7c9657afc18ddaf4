"""ONNX: sparse constants as dense ones.

A sparse tensor lists its values, and where they are: positions in the flat tensor, or an index for each axis.
"""

from __future__ import annotations

import math

import numpy as np
import onnx
import onnx.numpy_helper

from aot_model.c.names import printable
from aot_model.errors import CompileError, Problem
from aot_model.frontends.onnx_checks import inner_graphs, node_lists, shape_problem


def make_dense(proto: onnx.ModelProto, where: str) -> None:
    """Put dense tensors in the place of sparse ones. CompileError E102 with all that are damaged."""
    problems = []

    def dense(sparse: onnx.SparseTensorProto) -> onnx.TensorProto:
        try:
            return _dense(sparse)
        except Exception as error:  # whatever onnx finds wrong with the two tensors
            why = printable(str(error))
            problems.append(
                Problem("E102", f"sparse constant '{printable(sparse.values.name)}' is damaged: {why}", where)
            )
            return onnx.TensorProto()

    nodes = [n for every in node_lists(proto) for n in every]
    for graph in (proto.graph, *inner_graphs(nodes)):
        graph.initializer.extend(map(dense, graph.sparse_initializer))
        del graph.sparse_initializer[:]
    for attribute in (a for n in nodes for a in n.attribute if a.name == "sparse_value"):
        made = dense(attribute.sparse_tensor)
        attribute.Clear()
        attribute.name, attribute.type = "value", onnx.AttributeProto.TENSOR
        attribute.t.CopyFrom(made)
    if problems:
        raise CompileError(dict.fromkeys(problems))


def _dense(sparse: onnx.SparseTensorProto) -> onnx.TensorProto:
    """ValueError when positions do not fit the shape or the values."""
    shape = tuple(sparse.dims)
    values = np.asarray(onnx.numpy_helper.to_array(sparse.values)).reshape(-1)
    at = np.asarray(onnx.numpy_helper.to_array(sparse.indices), np.int64)
    if values.dtype.kind not in "biufcV":
        raise ValueError("its values are no numbers")
    if (why := shape_problem(shape, values.dtype.itemsize)) is not None:
        raise ValueError(f"it {why}")
    if at.shape not in ((len(values),), (len(values), len(shape))):
        raise ValueError(f"{len(values)} values of {len(shape)} axes have indices of the shape {at.shape}")
    limits = np.asarray([math.prod(shape)] if at.ndim == 1 else shape, np.int64)
    if np.any(at < 0) or np.any(at >= limits):
        raise ValueError("an index is outside of its shape")
    result = np.zeros(shape, values.dtype)
    result[np.unravel_index(at, shape) if at.ndim == 1 else tuple(at.T)] = values
    return onnx.numpy_helper.from_array(result, sparse.values.name)
