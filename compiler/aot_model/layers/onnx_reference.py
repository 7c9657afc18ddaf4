"""ONNX Runtime with its optimisations off, and ONNX's own reference evaluator, as references by layer.

Both get the model with more outputs. To compute each layer from the program's own tensors, the model is cut
at them: every reader of a tensor T reads an input `T::given` instead, while T is still computed. One run
computes all layers.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx.helper

from aot_model.errors import CompileError, fail
from aot_model.layers.reference import FileNode, Key, Tensors, missing

GIVEN = "::given"


class _OnnxReference(ABC):
    """What both have in common; a subclass executes a model."""

    def __init__(self, path: Path, constants: Tensors) -> None:
        from aot_model.frontends.onnx_complete import complete_proto

        self.path = path
        self.proto = complete_proto(path)[1]
        self.constants = {str(k): v for k, v in constants.items()}
        graph = self.proto.graph
        initial = {t.name for t in graph.initializer}
        self.inputs = [i.name for i in graph.input if i.name not in initial and i.name not in constants]
        self.nodes = file_nodes(graph)
        self.outputs = tuple(o.name for o in graph.output)
        self.clamps = False
        self.share = 0.0
        self._loaded: dict[tuple[str, ...], Any] = {}

    @abstractmethod
    def _load(self, proto: onnx.ModelProto) -> Any: ...

    @abstractmethod
    def _execute(self, loaded: Any, wanted: list[str], feeds: dict[str, np.ndarray]) -> list[Any]: ...

    def _feeds(self, inputs: Sequence[np.ndarray]) -> dict[str, np.ndarray]:
        if len(inputs) != len(self.inputs):
            raise fail(
                "E603",
                f"the model file has {len(self.inputs)} inputs, the program {len(inputs)}: sequences and "
                "optionals are not handed to a reference",
                where=str(self.path),
            )
        return {**dict(zip(self.inputs, inputs, strict=True)), **self.constants}

    def run(self, inputs: Sequence[np.ndarray], wanted: Sequence[Key]) -> Tensors:
        return self._run("", self.proto, self._feeds(inputs), [str(k) for k in wanted])

    def run_apart(self, inputs: Sequence[np.ndarray], given: Tensors) -> Tensors | None:
        arrays = {str(k): v for k, v in given.items()}
        feeds = {**self._feeds(inputs), **{f"{k}{GIVEN}": v for k, v in arrays.items()}}
        return self._run("apart", cut(self.proto, arrays), feeds, list(arrays))

    def _run(
        self, label: str, proto: onnx.ModelProto, feeds: dict[str, np.ndarray], wanted: list[str]
    ) -> Tensors:
        key = (label, *wanted)
        if key not in self._loaded:
            self._loaded[key] = self._attempt(lambda: self._load(with_outputs(proto, wanted)))
        results = self._attempt(lambda: self._execute(self._loaded[key], wanted, feeds))
        return {k: a for k, a in zip(wanted, results, strict=True) if isinstance(a, np.ndarray)}

    def _attempt(self, call: Any) -> Any:
        try:
            return call()
        except CompileError:
            raise
        except Exception as error:  # what such libraries raise shares no base
            raise fail(
                "E603",
                f"{self.title}: {str(error)[:500]}",
                where=str(self.path),
                hint="give inputs that the model accepts (--vectors), or another --reference",
            ) from None

    @property
    @abstractmethod
    def title(self) -> str: ...


class OnnxRuntime(_OnnxReference):
    """ONNX Runtime on the CPU."""

    def __init__(self, path: Path, constants: Tensors) -> None:
        try:
            import onnxruntime
        except ImportError:
            raise missing("onnxruntime", "--reference onnxruntime") from None
        self._runtime = onnxruntime
        super().__init__(path, constants)

    @property
    def title(self) -> str:
        return f"ONNX Runtime {self._runtime.__version__}, optimisations off"

    def _load(self, proto: onnx.ModelProto) -> Any:
        options = self._runtime.SessionOptions()
        options.graph_optimization_level = self._runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
        options.log_severity_level = 4
        options.intra_op_num_threads = 1
        return self._runtime.InferenceSession(
            proto.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )

    def _execute(self, loaded: Any, wanted: list[str], feeds: dict[str, np.ndarray]) -> list[Any]:
        known = {i.name for i in loaded.get_inputs()}
        result: list[Any] = loaded.run(wanted, {k: v for k, v in feeds.items() if k in known})
        return result


class OnnxEvaluator(_OnnxReference):
    """onnx.reference.ReferenceEvaluator."""

    @property
    def title(self) -> str:
        return f"the reference evaluator of onnx {onnx.__version__}"

    def _load(self, proto: onnx.ModelProto) -> Any:
        from onnx.reference import ReferenceEvaluator

        return ReferenceEvaluator(proto)

    def _execute(self, loaded: Any, wanted: list[str], feeds: dict[str, np.ndarray]) -> list[Any]:
        result: list[Any] = loaded.run(wanted, feeds)
        return result


def file_nodes(graph: onnx.GraphProto) -> tuple[FileNode, ...]:
    """The nodes of a graph, those inside of others left out."""
    return tuple(
        FileNode(n.name, n.op_type, tuple(_reads(n)), tuple(filter(None, n.output))) for n in graph.node
    )


def _reads(node: onnx.NodeProto) -> Iterable[str]:
    """Tensors that a node reads, those that its bodies capture included."""
    yield from filter(None, node.input)
    for body in _bodies(node):
        own = (
            {i.name for i in body.input}
            | {t.name for t in body.initializer}
            | {o for n in body.node for o in n.output}
        )
        for inner in body.node:
            yield from (name for name in _reads(inner) if name not in own)
        yield from (o.name for o in body.output if o.name not in own)


def _bodies(node: onnx.NodeProto) -> Iterable[onnx.GraphProto]:
    for attribute in node.attribute:
        if attribute.HasField("g"):
            yield attribute.g
        yield from attribute.graphs


def with_outputs(proto: onnx.ModelProto, wanted: Sequence[str]) -> onnx.ModelProto:
    """The model with these tensors as its outputs."""
    result = onnx.ModelProto()
    result.CopyFrom(proto)
    declared = {o.name: o for o in proto.graph.output}
    del result.graph.output[:]
    result.graph.output.extend(declared.get(name) or onnx.ValueInfoProto(name=name) for name in wanted)
    return result


def cut(proto: onnx.ModelProto, given: Mapping[str, np.ndarray]) -> onnx.ModelProto:
    """The model in which all that reads one of these tensors reads an input of its own for it."""
    result = onnx.ModelProto()
    result.CopyFrom(proto)
    names = {name: f"{name}{GIVEN}" for name in given}

    def rename(nodes: Iterable[onnx.NodeProto]) -> None:
        for node in nodes:
            node.input[:] = [names.get(n, n) for n in node.input]
            for body in _bodies(node):
                rename(body.node)
                for output in body.output:  # a body may hand on what is around it
                    output.name = names.get(output.name, output.name)

    rename(result.graph.node)
    for name, array in given.items():
        kind = onnx.helper.np_dtype_to_tensor_dtype(array.dtype)
        result.graph.input.append(onnx.helper.make_tensor_value_info(names[name], kind, array.shape))
    return result
