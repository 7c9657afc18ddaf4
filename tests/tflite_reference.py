"""What LiteRT (reference kernels) and TensorFlow Lite Micro compute: the oracles for TFLite models, where
installed.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest


def litert(model: bytes, inputs: Sequence[np.ndarray], resolver: str = "BUILTIN_REF") -> list[np.ndarray]:
    """The outputs of LiteRT's reference kernels, or of others."""
    package = pytest.importorskip("ai_edge_litert.interpreter")
    interpreter = package.Interpreter(
        model_content=model, experimental_op_resolver_type=package.OpResolverType[resolver]
    )
    for detail, array in zip(interpreter.get_input_details(), inputs, strict=True):
        if tuple(detail["shape"]) != array.shape:
            interpreter.resize_tensor_input(detail["index"], array.shape)
    interpreter.allocate_tensors()
    for detail, array in zip(interpreter.get_input_details(), inputs, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return [np.array(interpreter.get_tensor(detail["index"])) for detail in interpreter.get_output_details()]


def tflm(model: bytes, runs: Sequence[Sequence[np.ndarray]], outputs: int) -> list[list[np.ndarray]]:
    """The outputs of TensorFlow Lite Micro, run by run: state carries over."""
    runtime = pytest.importorskip("tflite_micro.python.tflite_micro.runtime")
    interpreter = runtime.Interpreter.from_bytes(model, arena_size=1 << 22)
    results = []
    for inputs in runs:
        for k, array in enumerate(inputs):
            interpreter.set_input(array, k)
        interpreter.invoke()
        results.append([np.array(interpreter.get_output(k)) for k in range(outputs)])
    return results
