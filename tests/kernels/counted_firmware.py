"""Instructions of many layers on an emulated Cortex-M: one firmware, every layer a translation unit of its
own.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from pathlib import Path

from aot_model.host.program import STRICT
from aot_model.installation import include_dir
from batch import Case, Generated, generate, given_bytes
from qemu import BOARDS, build_and_run

TIMES = 8
"""Calls that are counted together: one tick of the clock is up to 50 instructions."""
PER_FIRMWARE = 40


def instructions(cases: Sequence[Case], target: str, board: str) -> dict[str, int]:
    """Instructions of one call by the name of the case. AssertionError for a case that does not compile."""
    with tempfile.TemporaryDirectory(prefix="aot-model-counts-") as folder:
        made, same = _distinct(cases, target, Path(folder))
        ticks: list[int] = []
        for start in range(0, len(made), PER_FIRMWARE):
            part = Path(folder) / str(start)
            part.mkdir()
            ticks += _ticks(made[start : start + PER_FIRMWARE], board, part)
    return {case.name: BOARDS[board].instructions(ticks[same[case.name]]) // TIMES for case in cases}


def _distinct(cases: Sequence[Case], target: str,
              folder: Path) -> tuple[list[tuple[Case, Generated]], dict[str, int]]:
    """The cases whose C is not that of one before them, and which of them each case is."""
    made: list[tuple[Case, Generated]] = []
    places: dict[str, int] = {}
    same: dict[str, int] = {}
    for number, case in enumerate(cases):
        generated = generate(folder, number, case, target)
        assert isinstance(generated, Generated), f"{case.name}: {generated.status} {generated.message}"
        text = re.sub(rf"\b{generated.name}\b|\b{generated.name}_", "model_", generated.source)
        same[case.name] = places.setdefault(text, len(made))
        if same[case.name] == len(made):
            made.append((case, generated))
    assert len(same) == len(cases), "names of cases are different"
    return made, same


def _ticks(made: Sequence[tuple[Case, Generated]], board: str, folder: Path) -> list[int]:
    """Of TIMES calls of every case."""
    for _, generated in made:
        (folder / f"{generated.name}.c").write_text(generated.source)
        (folder / f"{generated.name}.h").write_text(generated.header)
    (folder / "in.bin").write_bytes(b"".join(given_bytes(a) for case, _ in made for a in case.inputs))
    (folder / "main.c").write_text(_main([generated for _, generated in made]))
    sources = ["main.c", *(f"{generated.name}.c" for _, generated in made)]
    printed = build_and_run(BOARDS[board], sources, folder, [*STRICT, "-O2", f"-I{include_dir()}"])
    ticks = [int(line) for line in printed.split()]
    assert len(ticks) == len(made)
    return ticks


def _main(made: Sequence[Generated]) -> str:
    """A program that prints the ticks of every case; what the cases write is nobody's business here."""
    begin = ("    const uint32_t start = ticks();\n    int k;\n    for (k = 0; k < {times}; ++k) {{\n        "
             "{call}\n    }}\n    printf(\"%lu\\n\", (unsigned long)(ticks() - start));")
    drivers = []
    for generated in made:
        call = re.search(r"status = \w+_run\([^;]*;", generated.driver)
        assert call is not None
        counted = generated.driver.replace(call[0],
                                           begin.format(times=TIMES, call=call[0]).replace("\n", "\n    "))
        drivers.append(re.sub(r"^ *fwrite.*\n", "", counted, flags=re.MULTILINE))
    calls = "\n".join(f"    if (run_{g.name}() != 0) {{ return 1; }}" for g in made)
    includes = [
        "#include <stdio.h>", "#include <stdlib.h>", *(f'#include "{g.name}.h"' for g in made),
        "static FILE *source;", "uint32_t ticks(void);"
    ]
    main = (f'int main(void)\n{{\n    source = fopen("in.bin", "rb");\n    if (source == NULL) {{ return 1; '
            f'}}\n{calls}\n    return 0;\n}}\n')
    return "\n\n".join([*includes, *drivers, main])
