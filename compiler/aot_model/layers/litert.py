"""LiteRT's reference kernels as a reference by layer."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

import numpy as np

from aot_model.errors import fail
from aot_model.frontends.tflite_file import File, parse, with_first
from aot_model.frontends.tflite_tensors import Tensor
from aot_model.ir.types import DType
from aot_model.layers.litert_process import Died, Process, Request
from aot_model.layers.reference import FileNode, Key, Tensors, missing


def file_nodes(path: Path, signature: str | None = None) -> tuple[FileNode, ...]:
    """The operators of the model, or of a signature."""
    main = parse(path.read_bytes(), str(path), signature).graph
    return tuple(
        FileNode(main.tensors[o.outputs[0]].name if o.outputs else "", o.kind,
                 tuple(i for i in o.inputs if i >= 0), tuple(o.outputs)) for o in main.operators)  # fmt: skip


OPTIMISED = "BUILTIN_WITHOUT_DEFAULT_DELEGATES"


def _misread(file: File) -> bool:
    """Whether it has what LiteRT's reference kernels get wrong: a SUM of signed integers with a scale, which
    they take for unsigned bytes, a local response normalisation, whose last channel they leave out, or 4-bit
    weights with a scale for each block, whose products they leave out.
    """

    def signed(tensor: Tensor) -> bool:
        return tensor.dtype in (DType.INT8, DType.INT16) and bool(tensor.quantisation.scale)

    return any(
        o.kind == "LOCAL_RESPONSE_NORMALIZATION" or (o.kind == "SUM" and signed(g.tensors[o.inputs[0]]))
        for g in file.subgraphs
        for o in g.operators
        if o.inputs and o.inputs[0] >= 0
    ) or _has_blocks(file)


def _has_blocks(file: File) -> bool:
    """Whether a layer has weights with a scale for each block. LiteRT makes bytes of its input when it runs,
    whose roundings add up to some hundredths of the range; the program computes floats.
    """
    return any(t.blocks is not None for g in file.subgraphs for t in g.tensors)


def _unwritten(file: File) -> frozenset[Key]:
    """Results of loops that LiteRT leaves without memory: nothing reads them, and the body hands them on as
    they are.
    """
    main, found = file.graph, set[Key]()
    read = {i for o in main.operators for i in o.inputs}.union(main.outputs)
    for o in main.operators:
        body = int(o.options.get("WhileOptions", "BodySubgraphIndex")) if o.kind == "WHILE" else -1
        inner = file.body(body)
        if inner is not None:
            kept = zip(o.outputs, inner.inputs, inner.outputs, strict=False)
            found.update(i for i, given, made in kept if given == made and i not in read)
    return frozenset(found)


class LiteRT:
    """The interpreter of ai-edge-litert with reference kernels; it keeps all tensors of a run."""

    clamps = True

    def __init__(self, path: Path, constants: Tensors, signature: str | None = None) -> None:
        try:
            import ai_edge_litert  # noqa: F401
        except ImportError:
            raise missing("ai-edge-litert", "a reference for TFLite files") from None
        self._version = version("ai-edge-litert")
        self.path = path
        self.constants = constants
        self._process = Process()
        data = path.read_bytes()
        self.nodes = file_nodes(path, signature)
        file = parse(data, str(path), signature)
        self.outputs = tuple(file.graph.outputs)
        self.unwritten = _unwritten(file)
        self._kernels = OPTIMISED if _misread(file) else "BUILTIN_REF"
        self.share = 2.0**-5 if _has_blocks(file) else 0.0
        self._data = with_first(data, file)
        if not self._data:
            raise fail("E603", "LiteRT can show the tensors of the first sub-graph only", where=str(path))

    @property
    def title(self) -> str:
        kind = "reference" if self._kernels == "BUILTIN_REF" else "optimised"
        return f"LiteRT {self._version}, {kind} kernels"

    def run(self, inputs: Sequence[np.ndarray], wanted: Sequence[Key]) -> Tensors:
        keys = [key for key in wanted if key not in self.unwritten]
        try:
            return self._process.run(Request(self._data, self._kernels, self.constants, inputs, keys))
        except (RuntimeError, Died) as error:
            if "Didn't find op" in str(error) and self._kernels == "BUILTIN_REF":
                # Some have no reference kernel: CEIL, ROUND, ELU.
                self._kernels = OPTIMISED
                return self.run(inputs, wanted)
            raise fail("E603", f"{self.title}: {str(error)[:500]}", where=str(self.path)) from None

    def run_apart(self, inputs: Sequence[np.ndarray], given: Tensors) -> Tensors | None:
        return None
