"""What many layers cost: memory, and on an emulated Cortex-M instructions and flash: one firmware, every
layer a translation unit of its own.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from aot_model.host.program import STRICT
from aot_model.installation import include_dir
from aot_model.lowering.memory_plan import plan_memory
from aot_model.pipeline import Compiled
from batch import Case, compiled_case, generated_from
from qemu import BOARDS, Board, build_and_run
from translation_unit import Generated, given_bytes

TIMES = 8
"""Calls that are counted together: one tick of the clock is up to 50 instructions."""
PER_FIRMWARE = 40


@dataclass(frozen=True)
class Costs:
    """Of a layer; the clock and the sizes of code belong to one version of the C compiler."""

    ram: int
    """Bytes of its workspace with input and output in it. What may lie over each other counts once; what may
    only take the place of an input, which a model's own does not, too."""
    constants: int = 0
    """Bytes."""
    instructions: int = 0
    """Of one call."""
    flash: int = 0
    """Bytes of code and constants."""


def costs(cases: Sequence[Case], target: str, board: str | None) -> dict[str, Costs]:
    """Of each layer by the name of its case; without a board memory alone, and nothing is run. AssertionError
    for a case that does not compile.
    """
    with tempfile.TemporaryDirectory(prefix="aot-model-counts-") as folder:
        made, same = _distinct(cases, target, Path(folder))
        found: list[Costs] = [m.costs for m in made]
        for start in range(0, len(made) if board else 0, PER_FIRMWARE):
            part = Path(folder) / str(start)
            part.mkdir()
            some = range(start, min(start + PER_FIRMWARE, len(made)))
            counted = _counted([made[k] for k in some], BOARDS[str(board)], part)
            for k, (instructions, flash) in zip(some, counted, strict=True):
                found[k] = replace(found[k], instructions=instructions, flash=flash)
    return {case.name: found[same[case.name]] for case in cases}


def memory(compiled: Compiled) -> Costs:
    """What a compiled layer takes, as far as the compiler alone says it."""
    program = compiled.view.program
    plan = plan_memory(program, io_in_workspace=True).plan
    in_place = sum(
        min(call.arguments[k].nbytes for k in (o.input, o.output))
        for call in program.calls()
        for o in call.overlaps
        if o.step > 1 and o.slack >= 0
    )
    return Costs(sum(plan.pool_sizes.values()) - in_place, sum(b.nbytes for b in program.constants()))


@dataclass(frozen=True)
class _Layer:
    case: Case
    generated: Generated
    costs: Costs


def _distinct(cases: Sequence[Case], target: str, folder: Path) -> tuple[list[_Layer], dict[str, int]]:
    """The cases whose C and memory are not those of one before them, and which of them each case is."""
    made: list[_Layer] = []
    places: dict[tuple[str, Costs], int] = {}
    same: dict[str, int] = {}
    for number, case in enumerate(cases):
        compiled = compiled_case(case, folder / "layer.onnx", f"m{number}", target)
        generated = generated_from(case, compiled)
        assert isinstance(generated, Generated), f"{case.name}: {generated.status} {generated.message}"
        text = re.sub(rf"\b{generated.name}\b|\b{generated.name}_", "model_", generated.source)
        layer = _Layer(case, generated, memory(compiled))
        same[case.name] = places.setdefault((text, layer.costs), len(made))
        if same[case.name] == len(made):
            made.append(layer)
    assert len(same) == len(cases), "names of cases are different"
    return made, same


def _counted(made: Sequence[_Layer], board: Board, folder: Path) -> list[tuple[int, int]]:
    """(instructions, bytes of code and constants) of every layer."""
    names = [layer.generated.name for layer in made]
    for layer in made:
        (folder / f"{layer.generated.name}.c").write_text(layer.generated.source)
        (folder / f"{layer.generated.name}.h").write_text(layer.generated.header)
    (folder / "in.bin").write_bytes(b"".join(given_bytes(a) for layer in made for a in layer.case.inputs))
    (folder / "main.c").write_text(_main([layer.generated for layer in made]))
    flags = [*STRICT, "-O2", f"-I{include_dir()}", "-Wl,-Map=board.map"]
    printed = build_and_run(board, ["main.c", *(f"{name}.c" for name in names)], folder, flags)
    ticks = [int(line) for line in printed.split()]
    _, _, *sizes = _sizes_by_object((folder / "board.map").read_text())[: len(made) + 2]  # startup.c, main.c
    assert len(ticks) == len(sizes) == len(made)
    return [(board.instructions(t) // TIMES, size) for t, size in zip(ticks, sizes, strict=True)]


def _sizes_by_object(text: str) -> list[int]:
    """Of a linker's map: bytes of code and constants of each object, in the order in which they were
    linked.
    """
    sizes = dict.fromkeys(re.findall(r"^LOAD (\S+\.o)$", text, re.MULTILINE), 0)
    section = re.compile(r"^ \.(?:text|rodata)\S*\s+0x[0-9a-f]+\s+0x([0-9a-f]+) (\S+\.o)$", re.MULTILINE)
    for size, name in section.findall(text):
        sizes[name] = sizes.get(name, 0) + int(size, 16)
    return list(sizes.values())


def _main(made: Sequence[Generated]) -> str:
    """A program that prints the ticks of every case; what the cases write is nobody's business here."""
    begin = (
        "    const uint32_t start = ticks();\n    int k;\n    for (k = 0; k < {times}; ++k) {{\n        "
        '{call}\n    }}\n    printf("%lu\\n", (unsigned long)(ticks() - start));'
    )
    drivers = []
    for generated in made:
        call = re.search(r"status = \w+_run\([^;]*;", generated.driver)
        assert call is not None
        counted = generated.driver.replace(
            call[0], begin.format(times=TIMES, call=call[0]).replace("\n", "\n    ")
        )
        drivers.append(re.sub(r"^ *fwrite.*\n", "", counted, flags=re.MULTILINE))
    calls = "\n".join(f"    if (run_{g.name}() != 0) {{ return 1; }}" for g in made)
    includes = [
        "#include <stdio.h>",
        "#include <stdlib.h>",
        "#include <string.h>",
        *(f'#include "{g.name}.h"' for g in made),
        "static FILE *source;",
        "uint32_t ticks(void);",
    ]
    main = (
        f'int main(void)\n{{\n    source = fopen("in.bin", "rb");\n    if (source == NULL) {{ return 1; '
        f"}}\n{calls}\n    return 0;\n}}\n"
    )
    return "\n\n".join([*includes, *drivers, main])
