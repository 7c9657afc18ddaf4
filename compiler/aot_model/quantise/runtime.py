"""ONNX Runtime: the float model's preparation and its tensors. It is an optional package:
aot-model[quantise]."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import helper

from aot_model.errors import fail
from aot_model.quantise.data import Samples

LEAST_WITHOUT_INPUTS = 4
"""Version of the file format in which a constant needs not be an input."""


def _onnxruntime() -> Any:
    try:
        import onnxruntime
    except ImportError:
        raise fail(
            "E902",
            "the quantiser needs the package onnxruntime, which is not installed",
            hint="pip install 'aot-model[quantise]'",
        ) from None
    return onnxruntime


def _options(level: str) -> Any:
    """One thread: sums in the same order, so the same bytes."""
    ort = _onnxruntime()
    options = ort.SessionOptions()
    options.graph_optimization_level = getattr(ort.GraphOptimizationLevel, level)
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    return options


def _session(data: bytes, options: Any, where: str, without: Sequence[str] = ()) -> Any:
    try:
        return _onnxruntime().InferenceSession(
            data, options, providers=["CPUExecutionProvider"], disabled_optimizers=list(without)
        )
    except Exception as error:  # pybind makes a class of its own for each status
        raise fail(
            "E603", f"ONNX Runtime cannot run the float model: {str(error)[:600]}", where=where
        ) from None


def simplified(model: onnx.ModelProto, folder: Path, where: str) -> onnx.ModelProto:
    """The model with constants folded, batch normalisations in their convolutions, and no operators of ONNX
    Runtime's own."""
    path = folder / "simplified.onnx"
    options = _options("ORT_ENABLE_BASIC")
    options.optimized_model_filepath = str(path)
    fixed = onnx.ModelProto()
    fixed.CopyFrom(model)
    constants = {t.name for t in model.graph.initializer}
    inputs = [i for i in model.graph.input if i.name not in constants]
    if len(inputs) < len(
        model.graph.input
    ):  # a constant that is an input too would be kept as it is, or lost
        del fixed.graph.input[:]
        fixed.graph.input.extend(inputs)
        fixed.ir_version = max(fixed.ir_version, LEAST_WITHOUT_INPUTS)
    # A product with a bias would become a Gemm between two Reshapes.
    _session(fixed.SerializeToString(), options, where, ["MatMulAddFusion"])
    result = onnx.load(str(path))
    used = {n.domain for n in result.graph.node}
    for entry in [e for e in result.opset_import if e.domain not in used and e.domain not in ("", "ai.onnx")]:
        result.opset_import.remove(entry)
    return result


def answers(model: onnx.ModelProto, given: Mapping[str, np.ndarray]) -> list[np.ndarray]:
    """The outputs of a small model. CompileError E603."""
    loaded = _session(model.SerializeToString(), _options("ORT_DISABLE_ALL"), "")
    try:
        return [np.asarray(y) for y in loaded.run(None, dict(given))]
    except Exception as error:
        raise fail("E603", f"ONNX Runtime: {str(error)[:600]}") from None


class FloatModel:
    """A float model that tells any of its tensors."""

    def __init__(self, model: onnx.ModelProto, wanted: Sequence[str], where: str) -> None:
        copy = onnx.ModelProto()
        copy.CopyFrom(model)
        there = {o.name for o in copy.graph.output}
        copy.graph.output.extend(helper.make_empty_tensor_value_info(n) for n in wanted if n not in there)
        self.wanted = list(wanted)
        self.where = where
        self._loaded = _session(copy.SerializeToString(), _options("ORT_DISABLE_ALL"), where)

    def run(self, given: Mapping[str, np.ndarray]) -> list[np.ndarray]:
        """The wanted tensors of one sample. CompileError E603."""
        try:
            return list(self._loaded.run(self.wanted, dict(given)))
        except Exception as error:
            raise fail("E603", f"ONNX Runtime: {str(error)[:600]}", where=self.where) from None

    def each(self, samples: Samples) -> Iterator[list[np.ndarray]]:
        """The wanted tensors, sample by sample."""
        for k in range(samples.count):
            yield self.run(samples.vector(k))

    def stacked(self, samples: Samples) -> list[np.ndarray]:
        """The wanted tensors of all samples, on a leading axis."""
        columns = zip(*self.each(samples), strict=True)
        try:
            return [np.stack(rows) for rows in columns]
        except ValueError:
            why = "outputs have other shapes for other samples, which cannot be compared"
            raise fail("E203", why, where=self.where, hint="give samples of one size") from None
