"""Programs around one generated library: a test that compares its outputs with vectors, and a benchmark.

Both are plain C99 with stdio and need nothing but the generated header and `<name>.json`, so that they run
wherever the library does: on the host, in an emulator, on a board with semihosting.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from aot_model.emit.render import environment
from aot_model.errors import fail
from aot_model.frontends.arrays import Array
from aot_model.frontends.vectors import load_vectors
from aot_model.ir.types import DType
from aot_model.library.metadata import Metadata


@dataclass(frozen=True)
class Library:
    """A generated library as a caller sees it: what its metadata say, and its external parameters, which a
    program carries along.
    """

    facts: Metadata
    parameters: Array | None
    files: tuple[Path, ...]
    """What was read for it."""

    @property
    def call(self) -> str:
        """The call of <name>_run(), whose arguments the program names so."""
        facts = self.facts
        arguments = [] if facts.io_in_workspace else ["&inputs", "&outputs"]
        arguments += [self.memory] * facts.caller_owns_workspace + [f"&{facts.name}_test_devices"] * bool(
            self.devices
        )
        return f"{facts.name}_run({', '.join(arguments)})"

    @property
    def devices(self) -> tuple[str, ...]:
        """Names of the devices whose contexts a run gets."""
        return tuple(d.name for d in self.facts.devices if d.context is not None)

    @property
    def memory(self) -> str:
        """The argument for the caller's memory."""
        return "&pools" if len(self.facts.pools) > 1 else "workspace"

    @staticmethod
    def read(path: Path) -> Library:
        """The library with this .json; CompileError E101 or E102."""
        facts = Metadata.read(path)
        if facts.parameters is None or facts.parameters.file is None:
            return Library(facts, None, (path,))
        file = path.parent / facts.parameters.file
        try:
            return Library(facts, np.fromfile(file, np.uint8), (path, file))
        except OSError as error:
            raise fail("E101", f"the parameters cannot be read: {error.strerror}", where=str(path)) from None


@dataclass(frozen=True)
class Tolerance:
    """How far an output may be from its vector.

    Real numbers: |got - want| <= absolute + relative * |want|, NaN equal to NaN. Integers: |got - want| <=
    lsb.
    """

    absolute: float = 1e-5
    relative: float = 1e-4
    lsb: int = 0


def test_main(metadata: Path, vectors: Path, tolerance: Tolerance) -> tuple[str, tuple[Path, ...]]:
    """C of a program that runs every vector and returns 0 when all outputs are within tolerance; and the
    files read.

    Raises CompileError when the metadata or the vectors cannot be read or do not fit each other.
    """
    library = Library.read(metadata)
    facts = library.facts
    ins, outs = ([(p.name, p.c_name) for p in ports] for ports in (facts.inputs, facts.outputs))
    data = load_vectors(vectors, [p.type for p in facts.inputs], [p.type for p in facts.outputs],
                        (ins, outs))  # fmt: skip
    kinds = {_kind(port.type.dtype) for port in facts.outputs}
    template = environment().get_template("test_main.c.j2")
    text = template.render(
        library=library,
        model=facts,
        vectors=data.count,
        inputs=list(zip(facts.inputs, data.inputs, strict=True)),
        outputs=list(zip(facts.outputs, data.outputs, strict=True)),
        kinds=kinds,
        has_numbers=bool(kinds - {"string"}),
        has_reals=bool(kinds - {"integer", "string"}),
        values_of_bytes=_values_of_bytes(facts),
        kind_of=_kind,
        tolerance=tolerance,
    )
    return text, (*library.files, *data.files)


def benchmark_main(metadata: Path, runs: int, estimate: str = "") -> tuple[str, tuple[Path, ...]]:
    """C of a program that runs the library `runs` times on inputs of zeros and prints the time of one, or
    `estimate` where a Cortex-M counts no cycles; the files read.
    """
    library = Library.read(metadata)
    return environment().get_template("benchmark_main.c.j2").render(
        library=library, model=library.facts, runs=runs, estimate=estimate
    ), library.files


def _kind(dtype: DType) -> str:
    """How the test program gets at the value of an element."""
    if dtype.is_string:
        return "string"
    if not dtype.is_float:
        return "integer"
    if dtype.bits <= 8:
        return "table"
    return dtype.label if dtype.storage else "real"


def _values_of_bytes(facts: Metadata) -> dict[str, Array]:
    """By the label of each float type of at most 8 bits among the outputs: the values of the 256 bytes."""
    found = {port.type.dtype for port in facts.outputs if _kind(port.type.dtype) == "table"}
    return {
        dtype.label: (np.arange(256) & ((1 << dtype.bits) - 1))
        .astype(np.uint8)
        .view(dtype.numpy)
        .astype(np.float32)
        for dtype in sorted(found, key=lambda dtype: dtype.label)
    }
