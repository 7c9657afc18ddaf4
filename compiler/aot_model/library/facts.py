"""What is known of the parts of a compiled model: tensors, pools, layers, parameters, devices."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any

import numpy as np

from aot_model.ir.types import DType, Quantisation, TensorType


@dataclass(frozen=True)
class Tensor:
    """An input or output. `c_name` is its field in the generated struct; pool and offset are those of --io
    workspace.
    """

    name: str
    c_name: str
    type: TensorType
    quantisation: Quantisation | None = None
    pool: str | None = None
    offset: int | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Element type of numpy."""
        return self.type.dtype.numpy

    def to_dict(self) -> dict[str, Any]:
        q = self.quantisation
        facts: dict[str, Any] = {
            "name": self.name,
            "c_name": self.c_name,
            "dtype": self.type.dtype.label,
            "shape": list(self.type.shape),
            "bytes": self.type.nbytes,
            "quantisation": None
            if q is None
            else {"scale": list(q.scale), "zero_point": list(q.zero_point), "axis": q.axis},
        }
        return facts if self.offset is None else {**facts, "offset": self.offset, "pool": self.pool}

    @staticmethod
    def from_dict(facts: Mapping[str, Any]) -> Tensor:
        q = facts["quantisation"]
        quantisation = (
            None
            if q is None
            else Quantisation(tuple(map(float, q["scale"])), tuple(map(int, q["zero_point"])), q["axis"])
        )
        type_ = TensorType(DType.of(str(facts["dtype"])), tuple(map(int, facts["shape"])))
        return Tensor(
            facts["name"], facts["c_name"], type_, quantisation, facts.get("pool"), facts.get("offset")
        )


@dataclass(frozen=True)
class Pool:
    """Memory that the model works in, bytes. A single one is called the workspace in C."""

    name: str
    c_name: str
    size: int
    align: int
    section: str | None = None
    speed: int = 0
    targets: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "c_name": self.c_name,
            "bytes": self.size,
            "align": self.align,
            "section": self.section,
            "speed": self.speed,
            "targets": list(self.targets),
        }

    @staticmethod
    def from_dict(facts: Mapping[str, Any]) -> Pool:
        return Pool(
            facts["name"],
            facts["c_name"],
            int(facts["bytes"]),
            int(facts["align"]),
            facts["section"],
            int(facts["speed"]),
            tuple(facts["targets"]),
        )


@dataclass(frozen=True)
class Layer:
    """A call of the generated code. Bytes: in use in all pools while it runs, scratch of its own, its
    constants.
    """

    name: str
    op: str
    macs: int
    workspace_bytes: int
    constant_bytes: int
    scratch_bytes: int = 0
    function: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "op": self.op,
            "function": self.function,
            "macs": self.macs,
            "workspace_bytes": self.workspace_bytes,
            "scratch_bytes": self.scratch_bytes,
            "constant_bytes": self.constant_bytes,
        }

    @staticmethod
    def from_dict(facts: Mapping[str, Any]) -> Layer:
        macs, workspace, constants, scratch = (
            int(facts[k]) for k in ("macs", "workspace_bytes", "constant_bytes", "scratch_bytes")
        )
        return Layer(facts["name"], facts["op"], macs, workspace, constants, scratch, facts["function"])


@dataclass(frozen=True)
class Told:
    """What a library that was compiled with --trace tells: a tensor, all names that the file has for its
    elements, and the calls that make it, as indices of the layers. type: as it lies in memory; axes: in which
    order they make the tensor of the first name (numpy's transpose()); the others may have other shapes.
    """

    tensors: tuple[str, ...]
    type: TensorType
    layers: tuple[int, ...]
    axes: tuple[int, ...]

    def to_dict(self) -> dict[str, Any]:
        return {
            "tensors": list(self.tensors),
            "dtype": self.type.dtype.label,
            "shape": list(self.type.shape),
            "axes": list(self.axes),
            "bytes": self.type.nbytes,
            "layers": list(self.layers),
        }

    @staticmethod
    def from_dict(facts: Mapping[str, Any]) -> Told:
        type_ = TensorType(DType.of(str(facts["dtype"])), tuple(map(int, facts["shape"])))
        layers, axes = (tuple(map(int, facts[k])) for k in ("layers", "axes"))
        return Told(tuple(facts["tensors"]), type_, layers, axes)


@dataclass(frozen=True)
class Device:
    """What a run activates: the header with its functions, and the C type of the context that they get (None:
    none).
    """

    name: str
    header: str
    context: str | None

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "header": self.header, "context": self.context}

    @staticmethod
    def from_dict(facts: Mapping[str, Any]) -> Device:
        return Device(facts["name"], facts["header"], facts["context"])


@dataclass(frozen=True)
class Check:
    """What elements of a file of parameters must be: `count` of type `kind`, `step` elements apart from each
    other, from `offset` bytes behind the header on, in array number `array`; the k-th is between low + k *
    rise and high."""

    array: int
    kind: str
    offset: int
    count: int
    step: int
    low: int
    high: int
    rise: int = 0


@dataclass(frozen=True)
class Parameters:
    """External parameters: the file's bytes and alignment, the hash of the structure that it must have, that
    structure, and what is checked.
    """

    size: int
    align: int
    hash: str
    file: str | None = None
    structure: tuple[str, ...] = ()
    checks: tuple[Check, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        checks = [list(astuple(c)) for c in self.checks]
        return {
            "file": self.file,
            "bytes": self.size,
            "align": self.align,
            "hash": self.hash,
            "structure": list(self.structure),
            "checks": checks,
        }

    @staticmethod
    def from_dict(facts: Mapping[str, Any]) -> Parameters:
        checks = tuple(
            Check(int(a), str(kind), *map(int, rest)) for a, kind, *rest in facts.get("checks", ())
        )
        return Parameters(
            int(facts["bytes"]),
            int(facts["align"]),
            facts["hash"],
            facts["file"],
            tuple(map(str, facts["structure"])),
            checks,
        )
