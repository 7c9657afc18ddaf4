"""The plan carried out: QuantizeLinear and DequantizeLinear around tensors, constants as integers."""

from __future__ import annotations

import json

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from aot_model.errors import fail
from aot_model.layers.signals import EQUALISED
from aot_model.quantise.choose import Choice, Layer
from aot_model.quantise.equalise import divided, pairs
from aot_model.quantise.network import Network
from aot_model.quantise.plan import FLOAT, LIMITS, Plan, TensorPlan, WeightPlan
from aot_model.quantise.prepare import WIDE, has_wide_types

KINDS = {
    "int8": TensorProto.INT8,
    "uint8": TensorProto.UINT8,
    "int16": TensorProto.INT16,
    "int4": TensorProto.INT4,
}


def quantised_weight(data: np.ndarray, plan: WeightPlan) -> np.ndarray:
    """The integers of a constant: the nearest, and what the plan adds."""
    low, high = LIMITS[plan.type]
    steps = nearest(data, plan).astype(np.int64) + plan.steps(data.size).reshape(data.shape)
    return np.asarray(np.clip(steps, low + 1, high), _stored(plan))


def nearest(data: np.ndarray, plan: WeightPlan) -> np.ndarray:
    """The nearest integers. Symmetric: the smallest value of the type is not used."""
    low, high = LIMITS[plan.type]
    steps = np.rint(data.astype(np.float64) / by_axis(plan, data.ndim))
    return np.asarray(np.clip(steps, low + 1, high), _stored(plan))


def _stored(plan: WeightPlan) -> type[np.integer]:
    return np.int16 if plan.type == "int16" else np.int8


def by_axis(plan: WeightPlan, rank: int) -> np.ndarray:
    """The scales in a shape that broadcasts with the constant."""
    shape = [1] * rank
    if plan.axis is not None and len(plan.scale) > 1:
        shape[plan.axis] = -1
    return np.asarray(plan.scale, np.float64).reshape(shape)


def inserted(network: Network, choice: Choice, plan: Plan, where: str) -> onnx.ModelProto:
    """The quantised model, of a plan that fits it (check.py). CompileError E202 where ONNX has not its types.
    The network is not changed.
    """
    _check(network, plan, where)
    model = onnx.ModelProto()
    model.CopyFrom(network.model)
    work = _Insertion(Network(model), plan)
    for layer in choice.layers:
        work.bias(layer)
    for name, weight in plan.weights.items():
        if weight.type != FLOAT:
            work.weight(name, weight)
    work.tensors()
    work.drop_unread()
    model.producer_name, model.producer_version = "aot-model quantise", ""
    model.doc_string = ""
    del model.metadata_props[:]
    if plan.equalisation:  # what `compare` must know: these tensors are not those of the float model
        factors = divided(pairs(network, choice), dict(plan.equalisation))
        model.metadata_props.add(key=EQUALISED, value=json.dumps(factors))
    return model


def _check(network: Network, plan: Plan, where: str) -> None:
    types = {t.type for t in plan.tensors.values()} | {w.type for w in plan.weights.values()}
    if types & {"int16", "int4"} and not has_wide_types(network.model):
        raise fail(
            "E202",
            f"integers of 16 and 4 bits need version {WIDE} of ONNX, to which the model cannot be converted",
            where=where,
            hint="export it with a newer opset_version",
        )


class _Insertion:
    def __init__(self, network: Network, plan: Plan) -> None:
        self.net = network
        self.plan = plan
        self.graph = network.model.graph

    def _constant(self, name: str, data: np.ndarray) -> str:
        name = self.net.fresh(name)
        self.graph.initializer.append(numpy_helper.from_array(np.ascontiguousarray(data), name))
        self.net.constants[name] = data
        return name

    def _integers(self, name: str, data: np.ndarray, kind: str) -> str:
        if kind != "int4":
            return self._constant(name, data)
        name = self.net.fresh(name)
        self.graph.initializer.append(
            helper.make_tensor(name, TensorProto.INT4, data.shape, data.reshape(-1).tolist())
        )
        self.net.constants[name] = data
        return name

    def _dequantise(
        self, source: str, scale: str, zero: str, result: str, axis: int | None = None
    ) -> onnx.NodeProto:
        more = {} if axis is None else {"axis": axis}
        return helper.make_node(
            "DequantizeLinear", [source, scale, zero], [result], name=f"{result}/dequantise", **more
        )

    def weight(self, name: str, plan: WeightPlan) -> None:
        """A constant under its own name, dequantised."""
        data = self.net.constants[name]
        each = plan.axis is not None
        scale = np.asarray(plan.scale, np.float32) if each else np.float32(plan.scale[0])
        integers = self._integers(f"{name}/integers", quantised_weight(data, plan), plan.type)
        zero = self._integers(f"{name}/zero", np.zeros(np.shape(scale), _stored(plan)), plan.type)
        node = self._dequantise(
            integers, self._constant(f"{name}/scale", np.asarray(scale)), zero, name, plan.axis
        )
        self._remove(name)
        self.graph.node.insert(0, node)

    def _remove(self, name: str) -> None:
        kept = [t for t in self.graph.initializer if t.name != name]
        del self.graph.initializer[:]
        self.graph.initializer.extend(kept)
        inputs = [i for i in self.graph.input if i.name != name]  # IR 3 lists constants as inputs
        del self.graph.input[:]
        self.graph.input.extend(inputs)

    def bias(self, layer: Layer) -> None:
        """The bias in units of the accumulator, with what the plan adds; float where the layer is, and in
        an Add."""
        node = next(n for n in self.graph.node if n.name == layer.adder)
        more, bias = self.plan.bias.get(layer.node), layer.bias
        x, w = self.plan.tensors.get(layer.input), self.plan.weights.get(layer.weight)
        if more is not None and (bias is not None or layer.kind != "MatMul"):
            old = np.float32(0) if bias is None else self.net.constants[bias]
            added = self._constant(
                f"{layer.node}/bias", np.asarray(old + np.asarray(more, np.float32), np.float32)
            )
            if bias is None:
                del node.input[2:]
                node.input.append(added)
            else:
                node.input[list(node.input).index(bias)] = added
            bias = added
        if bias is None or x is None or w is None or FLOAT in (x.type, w.type) or layer.kind == "MatMul":
            return
        data = self.net.constants[bias]
        units = np.float32(x.scale) * np.asarray(w.scale, np.float32)
        if data.ndim != 1 or units.size != data.size or w.axis is None:
            return
        whole = np.rint(data.astype(np.float64) / units)
        if np.abs(whole).max(initial=0) >= 2**31 - 1:
            return  # stays float: the compiler takes it as exactly as it can
        result = self.net.fresh(f"{layer.node}/bias_dequantised")
        integers = self._constant(f"{layer.node}/bias_integers", whole.astype(np.int32))
        zero = self._constant(f"{layer.node}/bias_zero", np.zeros(units.shape, np.int32))
        scale = self._constant(f"{layer.node}/bias_scale", units)
        self.graph.node.insert(0, self._dequantise(integers, scale, zero, result, 0))
        node.input[2] = result

    def tensors(self) -> None:
        """Q and DQ behind what makes each tensor; its readers keep its name."""
        places: dict[str, int] = {}
        nodes = list(self.graph.node)
        for k, node in enumerate(nodes):
            places.update(dict.fromkeys(node.output, k))
        behind: dict[int, list[onnx.NodeProto]] = {}
        for name, tensor in self.plan.tensors.items():
            if tensor.type == FLOAT:
                continue
            place = places.get(name, -1)
            if place < 0:  # an input of the model: the readers read another name
                result, source = self.net.fresh(f"{name}/quantised"), name
                for node in nodes:
                    for k, given in enumerate(node.input):
                        if given == name:
                            node.input[k] = result
                if name in self.net.outputs:
                    raise fail("E202", f"'{name}' is an input and an output", hint="plan it as float")
            else:
                result, source = name, self.net.fresh(f"{name}/real")
                node = nodes[place]
                node.output[list(node.output).index(name)] = source
            behind.setdefault(place, []).extend(self._pair(name, source, result, tensor))
        ordered = [*behind.get(-1, [])]
        for k, node in enumerate(nodes):
            ordered += [node, *behind.get(k, [])]
        del self.graph.node[:]
        self.graph.node.extend(ordered)
        self._retype()

    def _pair(self, name: str, source: str, result: str, plan: TensorPlan) -> list[onnx.NodeProto]:
        scale = self._constant(f"{name}/scale", np.asarray(plan.scale, np.float32))
        zero = self._constant(f"{name}/zero_point", np.asarray(plan.zero_point, plan.type))
        integers = self.net.fresh(f"{name}/integers")
        first = helper.make_node("QuantizeLinear", [source, scale, zero], [integers], name=f"{name}/quantise")
        return [first, self._dequantise(integers, scale, zero, result)]

    def _retype(self) -> None:
        """Noted types are of tensors that are still there."""
        del self.graph.value_info[:]

    def drop_unread(self) -> None:
        read = {name for node in self.graph.node for name in node.input} | {o.name for o in self.graph.output}
        for tensor in [t for t in self.graph.initializer if t.name not in read]:
            self._remove(tensor.name)
