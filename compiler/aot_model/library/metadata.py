"""What is known of a compiled model, in one object: written as <name>.json and as C, and read back from
either.

    facts = Metadata.read("kws.json")            # or libkws.so, firmware.elf, firmware.bin
    facts.inputs[0].quantisation, facts.pools, facts.layers, facts.macs
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aot_model.errors import fail
from aot_model.library import strict_json
from aot_model.library.binary import find
from aot_model.library.facts import Device, Layer, Parameters, Pool, Tensor, Told

SCHEMA = 2
"""Version of the JSON."""


@dataclass(frozen=True)
class Metadata:
    """A compiled model. What only the JSON has (options, notes, devices, constant pools, trace, sections,
    structure, scratch) is empty when read from a binary.
    """

    name: str
    compiler: str
    target: str
    model_file: str
    model_sha256: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    pools: tuple[Pool, ...]
    layers: tuple[Layer, ...]
    constant_bytes: int
    state_bytes: int
    lower_bound: int
    macs: int
    caller_owns_workspace: bool
    io_in_workspace: bool
    parameters: Parameters | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    devices: tuple[Device, ...] = ()
    constant_pools: tuple[Pool, ...] = ()
    trace: tuple[Told, ...] = ()

    @property
    def upper(self) -> str:
        """Prefix of the header's macros."""
        return self.name.upper()

    @property
    def workspace_size(self) -> int:
        return sum(p.size for p in self.pools)

    def macro(self, pool: Pool) -> str:
        """What the names of a pool's macros begin with: <macro>_SIZE, <macro>_ALIGN."""
        return (
            f"{self.upper}_{pool.c_name.upper()}_POOL" if len(self.pools) > 1 else f"{self.upper}_WORKSPACE"
        )

    def to_dict(self) -> dict[str, Any]:
        """As in the JSON."""
        facts: dict[str, Any] = {
            "schema": SCHEMA,
            "name": self.name,
            "c_name": self.name,
            "compiler": self.compiler,
            "model": {"file_name": self.model_file, "sha256": self.model_sha256},
            "target": self.target,
            "options": dict(self.options),
            "inputs": [t.to_dict() for t in self.inputs],
            "outputs": [t.to_dict() for t in self.outputs],
            "workspace": {"pools": [p.to_dict() for p in self.pools]},
            "lower_bound": self.lower_bound,
            "state_bytes": self.state_bytes,
            "constants_bytes": self.constant_bytes,
            "macs": self.macs,
            "layers": [layer.to_dict() for layer in self.layers],
            "notes": list(self.notes),
        }
        if self.constant_pools:
            facts["constant_pools"] = [p.to_dict() for p in self.constant_pools]
        if self.trace:
            facts["trace"] = [t.to_dict() for t in self.trace]
        if self.devices:
            facts["devices"] = [d.to_dict() for d in self.devices]
        if self.parameters is not None:
            facts["parameters"] = self.parameters.to_dict()
        return facts

    def to_json(self) -> str:
        return json.dumps(self.to_dict(), indent=1, ensure_ascii=True) + "\n"

    @staticmethod
    def from_dict(facts: Mapping[str, Any]) -> Metadata:
        """Raises KeyError, TypeError or ValueError for anything but what to_dict() gives."""
        if facts["schema"] != SCHEMA:
            raise ValueError(f"schema {facts['schema']} instead of {SCHEMA}")
        options = dict(facts["options"])
        return Metadata(
            facts["name"],
            facts["compiler"],
            facts["target"],
            facts["model"]["file_name"],
            facts["model"]["sha256"],
            tuple(map(Tensor.from_dict, facts["inputs"])),
            tuple(map(Tensor.from_dict, facts["outputs"])),
            tuple(map(Pool.from_dict, facts["workspace"]["pools"])),
            tuple(map(Layer.from_dict, facts["layers"])),
            int(facts["constants_bytes"]),
            int(facts["state_bytes"]),
            int(facts["lower_bound"]),
            int(facts["macs"]),
            options["workspace"] == "caller",
            options["io"] == "workspace",
            Parameters.from_dict(facts["parameters"]) if "parameters" in facts else None,
            options,
            tuple(facts["notes"]),
            tuple(map(Device.from_dict, facts.get("devices", ()))),
            tuple(map(Pool.from_dict, facts.get("constant_pools", ()))),
            tuple(map(Told.from_dict, facts.get("trace", ()))),
        )

    @staticmethod
    def read(path: str | Path) -> Metadata:
        """The only model of a file: see read_all(). CompileError E102 when there are several."""
        found = Metadata.read_all(path)
        if len(found) > 1:
            raise fail(
                "E102",
                f"has several models: {', '.join(m.name for m in found)}",
                where=str(path),
                hint="use Metadata.read_all()",
            )
        return found[0]

    @staticmethod
    def read_all(path: str | Path) -> Sequence[Metadata]:
        """All models of <name>.json, or of a program, shared library or flash image into which they are
        linked.

        CompileError E101 when the file cannot be read, E102 when it has no metadata of this version.
        """
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise fail("E101", f"cannot be read: {error.strerror}", where=str(path)) from None
        if Path(path).suffix != ".json":
            return [Metadata(*fields) for fields in find(data, str(path))]
        try:
            return [Metadata.from_dict(strict_json.loads(data))]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            message = f"is not the metadata of a generated library ({error!r})"
            raise fail(
                "E102",
                message,
                where=str(path),
                hint="give the .json that this version of 'aot-model compile' wrote",
            ) from None
