"""Programs around one generated library: a test that compares its outputs with vectors, and a benchmark.

Both are plain C99 with stdio and need nothing but the generated header and `<name>.json`, so that they run wherever the
library does: on the host, in an emulator, on a board with semihosting.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from aot_model.emit.render import environment
from aot_model.errors import fail
from aot_model.ir.types import DType, TensorType
from aot_model.vectors import Array, load_vectors


@dataclass(frozen=True)
class Port:
    """An input or an output of a generated library."""

    name: str
    c_name: str
    type: TensorType


@dataclass(frozen=True)
class Pool:
    """Memory that a generated library works in, bytes."""

    name: str
    c_name: str
    size: int
    align: int


@dataclass(frozen=True)
class Interface:
    """What `<name>.json` says that a caller must know."""

    name: str
    c_name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    caller_owns_workspace: bool
    io_in_workspace: bool
    pools: tuple[Pool, ...]
    """A single one is called the workspace."""
    has_state: bool
    """Whether there is <name>_reset()."""
    devices: tuple[str, ...]
    """Names of the devices whose contexts a run gets."""
    parameters: Array | None
    """Bytes of the file of external parameters, which the program carries along."""
    parameters_path: Path | None

    @property
    def upper(self) -> str:
        """Prefix of the header's macros."""
        return self.c_name.upper()

    @property
    def call(self) -> str:
        """The call of <name>_run(), whose arguments the program names so."""
        arguments = [] if self.io_in_workspace else ["&inputs", "&outputs"]
        arguments += [self.memory] * self.caller_owns_workspace + [f"&{self.c_name}_test_devices"] * bool(self.devices)
        return f"{self.c_name}_run({', '.join(arguments)})"

    @property
    def memory(self) -> str:
        """The argument for the caller's memory."""
        return "&pools" if len(self.pools) > 1 else "workspace"

    def macro(self, pool: Pool) -> str:
        """What the names of a pool's macros begin with: <macro>_SIZE, <macro>_ALIGN."""
        return f"{self.upper}_{pool.c_name.upper()}_POOL" if len(self.pools) > 1 else f"{self.upper}_WORKSPACE"

    def files(self, metadata: Path) -> tuple[Path, ...]:
        """What was read for it."""
        return (metadata,) if self.parameters_path is None else (metadata, self.parameters_path)

    @staticmethod
    def read(path: Path) -> Interface:
        """The interface of a generated library; CompileError E101 or E102 when `path` does not say."""
        try:
            data = path.read_bytes()
        except OSError as error:
            raise fail("E101", f"cannot be read: {error.strerror}", where=str(path)) from None
        try:
            metadata = json.loads(data)
            pools = metadata["workspace"]["pools"]
            parameters = path.parent / metadata["parameters"]["file"] if "parameters" in metadata else None
            return Interface(
                name=metadata["name"],
                c_name=metadata["c_name"],
                inputs=tuple(map(_port, metadata["inputs"])),
                outputs=tuple(map(_port, metadata["outputs"])),
                caller_owns_workspace=metadata["options"]["workspace"] == "caller",
                io_in_workspace=metadata["options"]["io"] == "workspace",
                pools=tuple(Pool(p["name"], p["c_name"], int(p["bytes"]), int(p["align"])) for p in pools),
                has_state=metadata.get("state_bytes", 0) > 0,
                devices=tuple(d["name"] for d in metadata.get("devices", ()) if d["context"] is not None),
                parameters=None if parameters is None else np.fromfile(parameters, np.uint8),
                parameters_path=parameters,
            )
        except OSError as error:
            raise fail("E101", f"the parameters cannot be read: {error.strerror}", where=str(path)) from None
        except (ValueError, KeyError, TypeError) as error:
            message = f"is not the metadata of a generated library ({error!r})"
            raise fail("E102", message, where=str(path), hint="give the .json that 'aot-model compile' wrote") from None


@dataclass(frozen=True)
class Tolerance:
    """How far an output may be from its vector.

    Real numbers: |got - want| <= absolute + relative * |want|, NaN equal to NaN. Integers: |got - want| <= lsb.
    """

    absolute: float = 1e-5
    relative: float = 1e-4
    lsb: int = 0


def test_main(metadata: Path, vectors: Path, tolerance: Tolerance) -> tuple[str, tuple[Path, ...]]:
    """C of a program that runs every vector and returns 0 when all outputs are within tolerance; and the files read.

    Raises CompileError when the metadata or the vectors cannot be read or do not fit each other.
    """
    interface = Interface.read(metadata)
    data = load_vectors(vectors, [p.type for p in interface.inputs], [p.type for p in interface.outputs])
    kinds = {_kind(port.type.dtype) for port in interface.outputs}
    template = environment().get_template("test_main.c.j2")
    text = template.render(
        model=interface,
        vectors=data.count,
        inputs=list(zip(interface.inputs, data.inputs, strict=True)),
        outputs=list(zip(interface.outputs, data.outputs, strict=True)),
        kinds=kinds,
        has_numbers=bool(kinds - {"string"}),
        has_reals=bool(kinds - {"integer", "string"}),
        values_of_bytes=_values_of_bytes(interface),
        kind_of=_kind,
        tolerance=tolerance,
    )
    return text, (*interface.files(metadata), *data.files)


def benchmark_main(metadata: Path, runs: int) -> tuple[str, tuple[Path, ...]]:
    """C of a program that runs the library `runs` times on inputs of zeros and prints the time of one; the files read."""
    interface = Interface.read(metadata)
    return environment().get_template("benchmark_main.c.j2").render(model=interface, runs=runs), interface.files(metadata)


def _port(entry: Mapping[str, Any]) -> Port:
    type_ = TensorType(DType.of(str(entry["dtype"])), tuple(int(extent) for extent in entry["shape"]))
    return Port(entry["name"], entry["c_name"], type_)


def _kind(dtype: DType) -> str:
    """How the test program gets at the value of an element."""
    if dtype.is_string:
        return "string"
    if not dtype.is_float:
        return "integer"
    if dtype.bits <= 8:
        return "table"
    return dtype.label if dtype.storage else "real"


def _values_of_bytes(interface: Interface) -> dict[str, Array]:
    """By the label of each float type of at most 8 bits among the outputs: the values of the 256 bytes."""
    found = {port.type.dtype for port in interface.outputs if _kind(port.type.dtype) == "table"}
    return {
        dtype.label: (np.arange(256) & ((1 << dtype.bits) - 1)).astype(np.uint8).view(dtype.numpy).astype(np.float32)
        for dtype in sorted(found, key=lambda dtype: dtype.label)
    }
