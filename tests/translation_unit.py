"""The C of a translation unit with many models: for each a function that reads its inputs, runs it and writes
its outputs, and the program around them.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from aot_model.emit.view import ModelView
from aot_model.ir.strings import DEFAULT_WIDTH, encoded, is_text, string_type
from aot_model.ir.types import DType


@dataclass(frozen=True)
class Generated:
    """The C of one case, small enough to travel between processes. outputs: (name, label of the type,
    shape).
    """

    name: str
    source: str
    header: str
    driver: str
    helpers: tuple[str, ...]
    outputs: tuple[tuple[str, str, tuple[int, ...]], ...]


def driver(view: ModelView, runs: int = 1, stirred: bool = False) -> str:
    """A C function that reads the inputs, runs the model and writes the outputs. Buffers are of the exact
    size, and outputs hold something else before. stirred: see Case.
    """
    lines = [f"static int run_{view.name}(void)", "{"]
    for kind, ports in (("in", view.inputs), ("out", view.outputs)):
        for k, p in enumerate(ports):
            t = p.buffer.type
            lines.append(
                f"    {t.dtype.c_type} *const {kind}{k} = ({t.dtype.c_type} "
                f"*)malloc({max(t.nbytes, t.dtype.size)}u);"
            )
    lines += [
        f"    memset(out{k}, 0x7f, {p.buffer.nbytes}u);"  # no small number in any type
        for k, p in enumerate(view.outputs)
        if p.buffer.nbytes
    ]
    ins = ", ".join(f"in{k}" for k in range(len(view.inputs))) or "NULL"
    outs = ", ".join(f"out{k}" for k in range(len(view.outputs))) or "NULL"
    lines.append("    int32_t status;")
    if view.options.io == "workspace":
        run = _run_in_place(view)
    else:
        run = [
            "    {",
            f"        const {view.name}_inputs inputs = {{ {ins} }};",
            f"        const {view.name}_outputs outputs = {{ {outs} }};",
            f"        status = {view.name}_run(&inputs, &outputs);",
            "    }",
        ]
    if stirred:
        given = {k: p.buffer for k, p in enumerate(view.inputs) if p.buffer.nbytes}
        lines += [
            f"    memset(in{k}, {1 if b.type.dtype is DType.BOOL else 0x3C}, {b.nbytes}u);"
            for k, b in given.items()
        ]
        lines += run
    for k, p in enumerate(view.inputs):
        if p.buffer.nbytes:
            lines.append(
                f"    if (fread(in{k}, 1, {p.buffer.nbytes}u, source) != {p.buffer.nbytes}u) {{ return 2; }}"
            )
    lines += run * runs
    lines.append("    if (status != 0) { return 3; }")
    lines += [
        f"    fwrite(out{k}, 1, {p.buffer.nbytes}u, sink);"
        for k, p in enumerate(view.outputs)
        if p.buffer.nbytes
    ]
    lines += [
        f"    free({kind}{k});"
        for kind, ports in (("in", view.inputs), ("out", view.outputs))
        for k in range(len(ports))
    ]
    return "\n".join([*lines, "    return 0;", "}"])


def _run_in_place(view: ModelView) -> list[str]:
    """Of a model whose inputs and outputs lie in its workspace: one run."""
    inputs = [
        f"        memcpy(inputs.{p.c_name}, in{k}, {p.buffer.nbytes}u);" for k, p in enumerate(view.inputs)
    ]
    outputs = [
        f"        memcpy(out{k}, outputs.{p.c_name}, {p.buffer.nbytes}u);" for k, p in enumerate(view.outputs)
    ]
    return [
        "    {",
        *([f"        const {view.name}_inputs inputs = {view.name}_map_inputs();"] if inputs else []),
        *inputs,
        f"        status = {view.name}_run();",
        *([f"        const {view.name}_outputs outputs = {view.name}_map_outputs();"] if outputs else []),
        *outputs,
        "    }",
    ]


def write_unit(folder: Path, items: Sequence[Generated]) -> None:
    """unit.c: the models; main.c: a program that reads the inputs of all from in.bin and writes their outputs
    to out.bin.
    """
    parts: list[str] = []
    drivers = [
        "#include <stdio.h>",
        "#include <stdlib.h>",
        "#include <string.h>",
        *(f'#include "{item.name}.h"' for item in items),
        "static FILE *source;",
        "static FILE *sink;",
    ]
    seen: set[str] = set()
    for item in items:
        (folder / f"{item.name}.h").write_text(item.header)
        text = item.source
        for helper in item.helpers:
            text = text.replace(helper, "", 1) if helper in seen else text
            seen.add(helper)
        # places in the workspace and among the parameters
        local = re.findall(r"^#define (\w+)\(type, offset\)", text, re.MULTILINE)
        parts += [text, *(f"#undef {name}" for name in local)]
        drivers.append(item.driver)
    calls = "\n".join(
        f'    if (run_{i.name}() != 0) {{ fprintf(stderr, "{i.name} failed\\n"); return 1; }}' for i in items
    )
    files = (
        '    source = fopen("in.bin", "rb");\n    sink = fopen("out.bin", "wb");\n    if (source == '
        "NULL || sink == NULL) { return 1; }\n"
    )
    drivers.append(f"int main(void)\n{{\n{files}{calls}\n    return fclose(sink);\n}}\n")
    (folder / "unit.c").write_text("\n\n".join(parts) + "\n")
    (folder / "main.c").write_text("\n\n".join(drivers))


def given_bytes(array: np.ndarray) -> bytes:
    """As the generated code has it: integers of less than 8 bits are sign-extended bytes, strings are
    slots.
    """
    if is_text(array):
        return encoded(array, string_type(DEFAULT_WIDTH)).tobytes()
    name = str(array.dtype)
    small = {"int4": np.int8, "int2": np.int8, "uint4": np.uint8, "uint2": np.uint8}
    return np.ascontiguousarray(array.astype(small[name]) if name in small else array).tobytes()
