"""Random ONNX networks of float32, and the same with QuantizeLinear and DequantizeLinear between their
layers.
"""

from __future__ import annotations

import numpy as np
import onnx
import onnx_image_layers  # noqa: F401  (adds layers)
import onnxruntime as ort
from onnx import TensorProto, helper, numpy_helper
from onnx.reference import ReferenceEvaluator
from onnx_network import ANY, IMAGE, Array, Network, Shape
from onnx_quantiser import Quantiser
from onnx_tensor_layers import attention, recurrent
from sizes import larger, room


def float_network(rng: np.random.Generator, times: int = 1) -> Network:
    n = Network(rng, times)
    for _ in range(n.pick(1, 1, 2)):
        batch, name = n.pick(1, 1, 1, 2), f"x{len(n.values)}"
        n.shapes[name] = n.pick(
            (batch, n.pick(n.number(1, 9), 8, 16), n.number(3, 12), n.number(3, 12)),
            (batch, n.number(1, 12), n.number(6, 40)),
            (batch, n.number(2, 60)),
            (1, n.number(1, 4), n.number(2, 5), n.number(2, 6), n.number(2, 6)),
        )
        if times > 1:
            n.shapes[name] = larger(n.shapes[name], 1)
        n.values.append(name)
    for _ in range(n.number(2, 9)):
        for _ in range(4):  # some layers do not fit what they are given
            x = n.values[-1] if n.number(0, 3) else n.pick(*n.values)
            shape = n.shapes[x]
            layers = IMAGE if 3 <= len(shape) <= 5 and n.number(0, 2) else ANY
            if len(shape) == 3 and n.number(0, 2) == 0:
                layers = [recurrent, attention]
            if n.pick(*layers)(n, x, shape) is not None:
                break
    return n


def _model(
    nodes: list[onnx.NodeProto],
    constants: dict[str, Array],
    inputs: dict[str, Shape],
    outputs: dict[str, Shape],
) -> onnx.ModelProto:
    graph = helper.make_graph(
        nodes,
        "random",
        *(
            [helper.make_tensor_value_info(k, TensorProto.FLOAT, v) for k, v in ports.items()]
            for ports in (inputs, outputs)
        ),
        [numpy_helper.from_array(v, k) for k, v in constants.items()],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def runtime(model: onnx.ModelProto, fed: dict[str, Array]) -> list[Array]:
    """The outputs of ONNX Runtime, each node as the standard has it: its optimiser is off."""
    options = ort.SessionOptions()
    options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
    options.intra_op_num_threads = 1
    options.log_severity_level = 4
    return list(
        ort.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"]).run(
            None, fed
        )
    )


def in_doubles(model: onnx.ModelProto, fed: dict[str, Array]) -> list[Array] | None:
    """The outputs by the standard's reference evaluator with all floats in 64 bits: hardly a number lies so
    close to the edge between two steps that this tips it. None where it fails (pools with padding).
    """
    wide = onnx.ModelProto.FromString(model.SerializeToString())
    for tensor in wide.graph.initializer:
        if tensor.data_type in (TensorProto.FLOAT, TensorProto.FLOAT16):
            tensor.CopyFrom(
                numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name)
            )
    for port in [*wide.graph.input, *wide.graph.output]:
        port.type.tensor_type.elem_type = TensorProto.DOUBLE
    try:
        found = ReferenceEvaluator(wide).run(None, {k: v.astype(np.float64) for k, v in fed.items()})
    except (RuntimeError, TypeError, ValueError, IndexError):
        return None
    return [np.asarray(v, np.float32) for v in found]


def random_network(
    number: int, quantised: bool
) -> tuple[onnx.ModelProto, dict[str, Array], dict[str, tuple[float, int]], list[str]]:
    """A model, its inputs, scale and bits of quantised outputs by name, and the names of its layers in
    order."""
    rng = np.random.default_rng(number)
    n = float_network(rng, room(number))
    read = {i for node in n.nodes for i in node.input}
    inputs = {v: n.shapes[v] for v in n.values if v.startswith("x") and v in read}
    ends = {v: n.shapes[v] for v in n.values if not v.startswith("x") and v not in read}
    fed = {k: rng.normal(0, 1, s).astype(np.float32) for k, s in inputs.items()}
    kinds = [node.op_type for node in n.nodes]
    if not quantised:
        return _model(n.nodes, n.constants, inputs, ends), fed, {}, kinds
    every = {v: n.shapes[v] for v in n.values if not v.startswith("x")}
    found = dict(zip(every, runtime(_model(n.nodes, n.constants, inputs, every), fed), strict=True))
    quantiser = Quantiser(n, found | fed)
    nodes = quantiser.run(list(inputs))
    used = {i for node in nodes for i in node.input}
    constants = {k: v for k, v in quantiser.constants.items() if k in used}
    return (
        _model(nodes, constants, inputs, ends),
        fed,
        {k: v for k, v in quantiser.scales.items() if k in ends},
        kinds,
    )
