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

import jinja2
import numpy as np

from aot_model.errors import fail
from aot_model.ir.types import DType, TensorType
from aot_model.vectors import Array, load_vectors

_TEMPLATES = jinja2.Environment(
    loader=jinja2.PackageLoader("aot_model", "emit"),
    undefined=jinja2.StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    autoescape=False,  # C, not HTML
)


@dataclass(frozen=True)
class Port:
    """An input or an output of a generated library."""

    name: str
    c_name: str
    type: TensorType


@dataclass(frozen=True)
class Interface:
    """What `<name>.json` says that a caller must know."""

    name: str
    c_name: str
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]

    @staticmethod
    def read(path: Path) -> Interface:
        """The interface of a generated library; CompileError E101 or E102 when `path` does not say."""
        try:
            text = path.read_text(encoding="utf-8")
        except OSError as error:
            raise fail("E101", f"cannot be read: {error.strerror}", where=str(path)) from None
        try:
            metadata = json.loads(text)
            return Interface(
                name=metadata["name"],
                c_name=metadata["c_name"],
                inputs=tuple(map(_port, metadata["inputs"])),
                outputs=tuple(map(_port, metadata["outputs"])),
            )
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
    template = _TEMPLATES.get_template("test_main.c.j2")
    text = template.render(
        model=interface,
        vectors=data.count,
        inputs=list(zip(interface.inputs, map(_literals, data.inputs), strict=True)),
        outputs=list(zip(interface.outputs, map(_literals, data.outputs), strict=True)),
        kinds=kinds,
        has_reals=kinds != {"integer"},
        kind_of=_kind,
        tolerance=tolerance,
    )
    return text, (metadata, *data.files, Path(str(template.filename)))


def benchmark_main(metadata: Path, runs: int) -> tuple[str, tuple[Path, ...]]:
    """C of a program that runs the library `runs` times on inputs of zeros and prints the time of one; the files read."""
    template = _TEMPLATES.get_template("benchmark_main.c.j2")
    return template.render(model=Interface.read(metadata), runs=runs), (metadata, Path(str(template.filename)))


def _port(entry: Mapping[str, Any]) -> Port:
    type_ = TensorType(DType.of(str(entry["dtype"])), tuple(int(extent) for extent in entry["shape"]))
    return Port(entry["name"], entry["c_name"], type_)


def _kind(dtype: DType) -> str:
    """Which comparison of the test program an output needs."""
    if not dtype.is_float:
        return "integer"
    return dtype.label if dtype in (DType.FLOAT16, DType.BFLOAT16) else "real"


def _literals(stack: Array) -> list[list[str]]:
    """Per vector, lines of C literals, about 100 columns each."""
    return [_lines([_literal(value) for value in vector.reshape(-1)]) for vector in _as_stored(stack)]


def _as_stored(stack: Array) -> Array:
    """16-bit floats are uint16_t in C."""
    return stack.view(np.uint16) if stack.dtype.itemsize == 2 and DType.of(stack.dtype).is_float else stack


def _literal(value: Any) -> str:
    if isinstance(value, np.floating):
        if np.isnan(value):
            return "NAN"
        if np.isinf(value):
            return "INFINITY" if value > 0 else "-INFINITY"
        return str(value) + ("f" if value.dtype == np.float32 else "")  # the shortest text that reads back the same
    number = int(value)
    if number == -(1 << 63):
        return "INT64_MIN"
    if isinstance(value, (np.int64, np.uint64)):
        return f"{'' if isinstance(value, np.int64) else 'U'}INT64_C({number})"
    return f"{number}u" if isinstance(value, np.uint32) else str(number)


def _lines(items: list[str]) -> list[str]:
    lines: list[str] = []
    line = ""
    for item in items:
        if len(line) + len(item) > 100:
            lines.append(line.rstrip())
            line = ""
        line += f"{item}, "
    return [*lines, line.rstrip()]
