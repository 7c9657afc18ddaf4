"""Compiled models as firmware on an emulated Cortex-M: outputs, instructions, stack, code size."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from aot_model.host.program import STRICT
from aot_model.installation import include_dir
from aot_model.pipeline import Compiled
from qemu import BOARDS, build_and_run

_MAIN = """\
#include <stdio.h>
#include <string.h>
#include "{name}.h"

/* For every vector in in.bin: run, append the outputs to out.bin. Then count one more run and its stack. */
{statics}
uint32_t ticks(void);
#define STACK 16384

static {name}_inputs inputs;
static {name}_outputs outputs;
static volatile int32_t status;

static int32_t call(void);
static int32_t call(void)
{{
    return {name}_run({arguments});
}}

__attribute__((noinline)) static uint32_t counted(void)
{{
    const uint32_t start = ticks();
    status = call();
    return ticks() - start;
}}

__attribute__((noinline)) static uint32_t painted(void)
{{
    volatile uint8_t *const here = (volatile uint8_t *)__builtin_frame_address(0) - 96;
    uint32_t k;
    for (k = 1u; k < STACK; ++k) {{
        here[-(int32_t)k] = 0xA5u;
    }}
    status = call();
    for (k = STACK - 1u; k > 0u && here[-(int32_t)k] == 0xA5u; --k) {{
    }}
    return k + 96u;
}}

int main(void)
{{
    FILE *const in = fopen("in.bin", "rb");
    FILE *const out = fopen("out.bin", "wb");
    FILE *const log = fopen("log.txt", "w");
    uint32_t count;
    if (in == NULL || out == NULL || log == NULL) {{
        return 2;
    }}
{bind}
    for (count = {vectors}u; count > 0u; --count) {{
{reads}
        status = call();
        if (status != 0) {{
            return 1;
        }}
{writes}
    }}
    {{
        const uint32_t n = counted();
        const uint32_t s = painted();
        fprintf(log, "%lu %lu\\n", (unsigned long)n, (unsigned long)s);
    }}
    fclose(log);
    fclose(out);
    return 0;
}}
"""


@dataclass(frozen=True)
class Firmware:
    """What a run of a model on a board gave. instructions: one call; stack, code, constants, workspace:
    bytes.
    """

    outputs: list[list[np.ndarray]]
    instructions: int
    stack: int
    text: int
    workspace: int

    @property
    def flash(self) -> int:
        return self.text


def run_firmware(
    compiled: Compiled,
    board: str,
    vectors: Sequence[Sequence[np.ndarray]],
    folder: Path,
    flags: Sequence[str] = ("-O2",),
    timeout: float = 600,
    objects: Sequence[str] = (),
) -> Firmware:
    """Build a compiled model for a board, run it on all vectors, and measure one more run. objects: linked
    with it.
    """
    view = compiled.view
    for name, text in compiled.texts.items():
        (folder / name).write_text(text)
    inside = view.options.io == "workspace"
    sides = [("inputs", view.inputs), ("outputs", view.outputs)]
    statics, bind = [], []
    for side, ports in sides:
        if inside:
            bind.append(f"    {side} = {view.name}_map_{side}();")
            continue
        for k, p in enumerate(ports):
            statics.append(
                f"static {p.buffer.type.dtype.c_type} {side}{k}[{max(p.buffer.type.elements, 1)}];"
            )
            bind.append(f"    {side}.{p.c_name} = {side}{k};")

    def transfer(side: str, ports: Sequence[object], function: str, stream: str) -> str:
        lines = []
        for p in ports:
            n = p.buffer.nbytes  # type: ignore[attr-defined]
            target = f"(void *){side}.{p.c_name}"  # type: ignore[attr-defined]
            lines.append(
                f"        if ({function}({target}, 1, {n}u, {stream}) != {n}u) {{\n            return 3;\n   "
                f"     }}"
            )
        return "\n".join(lines)

    main = _MAIN.format(
        name=view.name,
        statics="\n".join(statics),
        bind="\n".join(bind),
        vectors=len(vectors),
        arguments="" if inside else "&inputs, &outputs",
        reads=transfer("inputs", view.inputs, "fread", "in"),
        writes=transfer("outputs", view.outputs, "fwrite", "out"),
    )
    (folder / "main.c").write_text(main)
    data = b"".join(
        np.ascontiguousarray(a, dtype=p.buffer.type.dtype.numpy).tobytes()
        for v in vectors
        for p, a in zip(view.inputs, v, strict=True)
    )
    (folder / "in.bin").write_bytes(data)
    include = f"-I{include_dir()}"
    cross = "arm-none-eabi-"
    model = [
        f"{cross}gcc",
        *BOARDS[board].flags,
        "-mthumb",
        *STRICT,
        *flags,
        "-g",
        include,
        "-c",
        f"{view.name}.c",
        "-o",
        "model.o",
    ]
    subprocess.run(model, cwd=folder, check=True)
    build_and_run(BOARDS[board], ["main.c", "model.o", *objects], folder, ["-O2", include], timeout)
    sizes = (
        subprocess.run([f"{cross}size", "model.o"], cwd=folder, check=True, capture_output=True, text=True)
        .stdout.splitlines()[1]
        .split()
    )
    ticks, stack = map(int, (folder / "log.txt").read_text().split())
    outputs = _outputs(compiled, (folder / "out.bin").read_bytes(), len(vectors))
    return Firmware(
        outputs, BOARDS[board].instructions(ticks), stack, int(sizes[0]) + int(sizes[1]), view.workspace_size
    )


def _outputs(compiled: Compiled, data: bytes, count: int) -> list[list[np.ndarray]]:
    result, at = [], 0
    for _ in range(count):
        row = []
        for p in compiled.view.outputs:
            t = p.buffer.type
            row.append(np.frombuffer(data, dtype=t.dtype.numpy, count=t.elements, offset=at).reshape(t.shape))
            at += t.nbytes
        result.append(row)
    return result
