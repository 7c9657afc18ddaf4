"""What runs one side of a comparison: a reference implementation of its file, or the program that was
generated of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import numpy as np

from aot_model.c.names import printable
from aot_model.errors import fail
from aot_model.frontends.read import model_format
from aot_model.host.program import HostProgram
from aot_model.layers.choice import open_reference
from aot_model.layers.measure import traced_tensors
from aot_model.layers.reference import FileNode, Key, Reference, Tensors
from aot_model.layers.signals import Signals, of_tflite

Array = np.ndarray


@dataclass(frozen=True)
class Made:
    """What the program makes a tensor with: functions of the generated code, names of layers, numbers of
    calls."""

    functions: tuple[str, ...]
    layers: tuple[str, ...]
    calls: tuple[int, ...]


class Side(Protocol):
    """One of two that are compared."""

    path: Path
    signals: Signals

    @property
    def title(self) -> str:
        """Who runs it."""

    @property
    def channels_last(self) -> bool:
        """Whether the file is of a kind that has channels last."""

    @property
    def nodes(self) -> Sequence[FileNode]:
        """Of the file."""

    @property
    def shapes(self) -> Sequence[tuple[str, np.dtype[np.generic] | None, tuple[int | None, ...]]]:
        """Of the inputs: name, type and shape."""

    def can_tell(self, key: Key) -> bool:
        """Whether a run has the tensor."""

    def run(self, vectors: Sequence[Sequence[Array]], wanted: Sequence[Key]) -> list[Tensors]:
        """Tensors of each run."""

    def run_apart(self, vector: Sequence[Array], given: Tensors) -> Tensors | None:
        """As Reference.run_apart; None where it cannot."""

    def made(self, key: Key) -> Made | None:
        """What the program computes it with; None where there is no program."""


class ReferenceSide:
    """A model's file, run by ONNX Runtime, ONNX's evaluator or LiteRT."""

    def __init__(
        self, path: Path, name: str | None, constants: Tensors, signature: str | None = None
    ) -> None:
        kind = model_format(path)
        if (name == "litert") != (kind == "tflite"):
            name = None  # it is the other side's
        self.path = path
        self.channels_last = kind == "tflite"
        self.reference: Reference = open_reference(path, kind, name, constants, signature)
        self.nodes = self.reference.nodes
        self.signals, self.shapes = read_signals(path, constants, signature)

    @property
    def title(self) -> str:
        return self.reference.title

    def can_tell(self, key: Key) -> bool:
        return True

    def run(self, vectors: Sequence[Sequence[Array]], wanted: Sequence[Key]) -> list[Tensors]:
        given = dict(zip(self.signals.inputs, zip(*vectors, strict=True), strict=True))
        made = [key for key in wanted if key not in given]
        runs = [dict(self.reference.run(vector, made)) for vector in vectors]
        for k, run in enumerate(runs):
            run.update({key: arrays[k] for key, arrays in given.items() if key in wanted})
        return list(runs)

    def run_apart(self, vector: Sequence[Array], given: Tensors) -> Tensors | None:
        inputs = set(self.signals.inputs)
        return self.reference.run_apart(vector, {k: v for k, v in given.items() if k not in inputs})

    def made(self, key: Key) -> Made | None:
        return None


class ProgramSide:
    """A built program that was compiled with Options.trace."""

    def __init__(
        self, path: Path, program: HostProgram, constants: Tensors, where: str, signature: str | None = None
    ) -> None:
        self.path = path
        self.channels_last = model_format(path) == "tflite"
        self.program = program
        self.title = where
        self.signals, self.shapes = read_signals(path, constants, signature)
        self.nodes = nodes_of(path, signature)
        view = program.view
        self._made = {
            tensor.key:
            Made(
                tuple(dict.fromkeys(view.calls[c].name for c in traced.calls)),
                tuple(dict.fromkeys(printable(c.layer) for c in traced.calls)),
                tuple(view.call_numbers[c] for c in traced.calls),
            )
            for traced in view.traced
            for tensor in traced.tensors
        }  # fmt: skip
        if len(self.signals.inputs) != len(view.inputs):
            raise fail(
                "E603",
                f"the model file has {len(self.signals.inputs)} inputs, the program {len(view.inputs)}: "
                f"sequences and optionals cannot be compared",
                where=str(path),
            )

    def can_tell(self, key: Key) -> bool:
        return key in self._made or key in self.signals.inputs

    def run(self, vectors: Sequence[Sequence[Array]], wanted: Sequence[Key]) -> list[Tensors]:
        state = bool(self.program.view.program.states)
        rows = [self.program.run([v])[0] for v in vectors] if state else self.program.run(vectors)
        return [
            traced_tensors(self.program, row) | dict(zip(self.signals.inputs, vector, strict=True))
            for row, vector in zip(rows, vectors, strict=True)
        ]

    def run_apart(self, vector: Sequence[Array], given: Tensors) -> Tensors | None:
        return None

    def made(self, key: Key) -> Made | None:
        return self._made.get(key)


Shapes = Sequence[tuple[str, "np.dtype[np.generic] | None", tuple[int | None, ...]]]


def read_signals(
    path: Path, constants: Mapping[str | int, Array], signature: str | None = None
) -> tuple[Signals, Shapes]:
    """The signals of a file, or of a signature of it, and its inputs."""
    if model_format(path) == "tflite":
        from aot_model.frontends.tflite_file import parse

        main = parse(path.read_bytes(), str(path), signature).graph
        tensors = [main.tensors[k] for k in main.inputs]
        return of_tflite(path, signature), [
            (t.name, None if t.dtype is None else t.dtype.numpy, t.shape) for t in tensors
        ]
    from aot_model.frontends.onnx_complete import complete_proto
    from aot_model.layers.onnx_signals import input_types, of_onnx

    proto = complete_proto(path)[1]
    signals = of_onnx(proto, [str(k) for k in constants])
    return signals, [one for one in input_types(proto) if one[0] in signals.inputs]


def nodes_of(path: Path, signature: str | None = None) -> tuple[FileNode, ...]:
    """The nodes of a model's file, or of a signature of it, in their order."""
    if model_format(path) == "tflite":
        from aot_model.layers.litert import file_nodes

        return file_nodes(path, signature)
    from aot_model.frontends.onnx_complete import complete_proto
    from aot_model.layers.onnx_reference import file_nodes as onnx_nodes

    return onnx_nodes(complete_proto(path)[1].graph)
