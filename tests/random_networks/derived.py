"""What users make of float networks before they compile them: quantised by ONNX Runtime, statically or
dynamically, or of float16.
"""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper
from onnxruntime import quantization
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType

Array = np.ndarray


class _Once(CalibrationDataReader):  # type: ignore[misc]
    """Few samples: the input of the comparison and others."""

    def __init__(self, samples: list[dict[str, Array]]) -> None:
        self.samples: Iterator[dict[str, Array]] = iter(samples)

    def get_next(self) -> dict[str, Array] | None:
        return next(self.samples, None)


def quantised(model: onnx.ModelProto, fed: dict[str, Array], number: int) -> onnx.ModelProto:
    """By ONNX Runtime's own quantiser, as drawn by the number. Weights have 7 bits, beside which its 8-bit
    products are exact on every x86-64.
    """
    rng = np.random.default_rng(number)

    def pick(*options: Any) -> Any:
        return options[int(rng.integers(len(options)))]

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        logging.disable(logging.WARNING)
        target = Path(folder) / "quantised.onnx"
        common = {"per_channel": pick(False, True), "reduce_range": True}
        weights = pick(QuantType.QInt8, QuantType.QUInt8)
        try:
            if number % 3 == 0:
                quantization.quantize_dynamic(model, target, weight_type=weights, **common)
            else:
                others = range(3)
                samples = [
                    fed,
                    *(
                        {k: rng.normal(0, 1, v.shape).astype(np.float32) for k, v in fed.items()}
                        for _ in others
                    ),
                ]
                form = QuantFormat.QOperator if number % 3 == 1 else QuantFormat.QDQ
                kind = pick(QuantType.QInt8, QuantType.QUInt8)
                quantization.quantize_static(
                    model,
                    target,
                    _Once(samples),
                    quant_format=form,
                    activation_type=kind,
                    weight_type=QuantType.QInt8 if kind == QuantType.QInt8 else weights,
                    extra_options={
                        "ActivationSymmetric": pick(False, True),
                        "ForceQuantizeNoInputCheck": pick(False, True),
                        "MatMulConstBOnly": pick(False, True),
                    },
                    **common,
                )
        finally:
            logging.disable(logging.NOTSET)
        return onnx.load(target)


def scales(model: onnx.ModelProto) -> dict[str, tuple[float, int]]:
    """Scale and bits of outputs that DequantizeLinear makes, by their names."""
    constants = {t.name: numpy_helper.to_array(t) for t in model.graph.initializer}
    made = {o: node for node in model.graph.node for o in node.output}
    found = {}
    for port in model.graph.output:
        node = made.get(port.name)
        if node is not None and node.op_type == "DequantizeLinear" and node.input[1] in constants:
            found[port.name] = (float(constants[node.input[1]]), 8 * constants[node.input[2]].dtype.itemsize)
    return found


def halved(model: onnx.ModelProto, fed: dict[str, Array]) -> tuple[onnx.ModelProto, dict[str, Array]]:
    """The same network of float16, inputs and outputs as well."""
    half = onnx.ModelProto.FromString(model.SerializeToString())
    for tensor in half.graph.initializer:
        if tensor.data_type == TensorProto.FLOAT:
            data = numpy_helper.to_array(tensor).astype(np.float16)
            tensor.CopyFrom(numpy_helper.from_array(data, tensor.name))
    for port in [*half.graph.input, *half.graph.output]:
        port.type.tensor_type.elem_type = TensorProto.FLOAT16
    for node in half.graph.node:
        for a in node.attribute:
            if a.name == "to" and a.i == TensorProto.FLOAT:
                a.CopyFrom(helper.make_attribute("to", TensorProto.FLOAT16))
    return half, {k: v.astype(np.float16) for k, v in fed.items()}
