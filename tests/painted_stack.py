"""What a run leaves on the painted stack of an emulated Cortex-M, beside the bound of `aot-model stack`.

python tests/painted_stack.py m4|m55 MODEL...      a line for each model that fits; exit status 1 when one
                                                   needs more than its bound
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from aot_model.cli import main
from aot_model.errors import CompileError
from aot_model.installation import include_dir
from aot_model.library.metadata import Metadata
from qemu import BOARDS, build_and_run

MAIN = """#include <stdint.h>
#include <stdio.h>
#include "m.h"
#define BELOW 24576
{arrays}
static const m_inputs in = {{ {ins} }};
static const m_outputs out = {{ {outs} }};
int main(void)
{{
    register volatile uint32_t *sp __asm__("sp");
    volatile uint32_t *const top = sp; /* the run begins here: this function pushes nothing around its calls */
    volatile uint32_t *at;
    int32_t status;
    __asm__ volatile("cpsid i" ::: "memory"); /* the clock's interrupt would push its own (104 bytes with floats) */
    for (at = top - BELOW / 4; at != top; ++at) {{ *at = 0xA5A5A5A5u; }}
    status = m_run(&in, &out);
    for (at = top - BELOW / 4; at != top && *at == 0xA5A5A5A5u; ++at) {{ }}
    __asm__ volatile("cpsie i" ::: "memory");
    printf("status %d used %d\\n", (int)status, (int)((top - at) * 4));
    return 0;
}}
"""  # noqa: E501


def measure(model: Path, board: str, folder: Path, *options: str) -> tuple[int, int, str]:
    """(bytes that a run used, the bound, the table). CompileError or CalledProcessError when the model does
    not fit.
    """
    core = BOARDS[board]
    command = ["compile", str(model), "-o", str(folder), "--name=m", f"--target=cortex-{board}", *options]
    if main(command) != 0:
        raise CompileError([])
    facts = Metadata.read(folder / "m.json")
    ports = [
        *(("x", k, p) for k, p in enumerate(facts.inputs)),
        *(("y", k, p) for k, p in enumerate(facts.outputs)),
    ]
    arrays = "\n".join(
        f"static {p.type.dtype.c_type} {side}{k}[{max(p.type.elements, 1)}];" for side, k, p in ports
    )
    text = MAIN.format(
        arrays=arrays,
        ins=", ".join(f"x{k}" for k in range(len(facts.inputs))),
        outs=", ".join(f"y{k}" for k in range(len(facts.outputs))),
    )
    (folder / "main.c").write_text(text)
    flags = ["-O2", f"-I{include_dir()}", "-fcallgraph-info=su"]
    subprocess.run(
        ["arm-none-eabi-gcc", *core.flags, "-mthumb", *flags, "-c", "m.c", "-o", "m.o"],
        cwd=folder,
        check=True,
    )
    printed = build_and_run(core, ["main.c", "m.o"], folder, ["-O2", f"-I{include_dir()}"])
    used = re.search(r"status (-?\d+) used (\d+)", printed)
    assert used and int(used[1]) == 0, printed
    compiler = " ".join(["arm-none-eabi-gcc", *core.flags, "-mthumb"])
    assert (
        main(
            [
                "stack",
                str(folder / "m.json"),
                str(folder / "m.o"),
                f"--compiler={compiler}",
                "--max-stack=1m",
                "-o",
                str(folder / "said"),
            ]
        )
        == 0
    )
    said = (folder / "said").read_text()
    bound = re.search(r"needs ([\d,]+) bytes", said)
    assert bound
    return int(used[2]), int(bound[1].replace(",", "")), said


def run(board: str, models: list[Path]) -> int:
    bad = 0
    for model in models:
        with tempfile.TemporaryDirectory() as folder:
            try:
                used, bound, _ = measure(model, board, Path(folder))
            except (CompileError, subprocess.SubprocessError, AssertionError) as error:
                print(
                    f"{model.name} {board}: not measured: {type(error).__name__} {str(error)[:100]!r}",
                    flush=True,
                )
                continue
        bad += used > bound
        print(
            json.dumps(
                {"model": model.name, "board": board, "used": used, "bound": bound, "ok": used <= bound}
            ),
            flush=True,
        )
    return bad > 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1], [Path(word) for word in sys.argv[2:]]))
