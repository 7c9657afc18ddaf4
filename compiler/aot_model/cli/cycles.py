"""`aot-model cycles`: the estimated cycles of a library that a build has compiled, and its budget.

The object is linked as it is, with a program that runs the model on zeros, and runs in QEMU.
"""

from __future__ import annotations

import argparse
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path

from aot_model.cli.time import check_cycles, shown
from aot_model.cycles.rules import CORES as RULES
from aot_model.cycles.rules import memory_of
from aot_model.emit import runner
from aot_model.emit.files import write_files
from aot_model.errors import fail
from aot_model.host import timing
from aot_model.host.compiler import HostCompiler, complaint, words
from aot_model.host.firmware import QEMU, Board
from aot_model.host.program import scratch_folder
from aot_model.installation import include_dir
from aot_model.library.metadata import Metadata
from aot_model.targets.cores import CORES, Core


def cycles(arguments: argparse.Namespace) -> int:
    """Prints or writes the table by layer. CompileError E402 when it is more than --max-cycles; E601, E602 or
    E604 when it cannot be said.
    """
    library = arguments.library
    memory = memory_of(memory_for(library, arguments.memory))
    clock = arguments.clock or memory.clock
    [found] = of_library(library, arguments.objects, words(arguments.compiler, "--compiler"), [memory.name])
    check_cycles(found, clock, arguments.max_cycles, str(library))
    text = shown(found, clock) + "\n"
    if arguments.output is None:
        print(text, end="")
    else:
        write_files({arguments.output: text})
    return 0


def memory_for(library: Path, asked: str | None) -> str:
    """The memory that is asked for, else the one that the code of the library was written for, else one
    without wait states.
    """
    return str(asked or Metadata.read(library).options.get("memory") or "0ws")


def of_library(
    library: Path,
    objects: Sequence[Path],
    command: Sequence[str],
    memories: Sequence[str],
    by_layer: bool = True,
) -> list[timing.Timing]:
    """For each memory, the estimate for the objects of the library with this .json, which `command` (a
    compiler, and flags like -mcpu) links. by_layer: needs objects with debug information.
    """
    facts = Metadata.read(library)
    compiler = HostCompiler.find(shlex.join(command))
    core, name = _core(facts, compiler.command)
    board = Board.for_core(core, QEMU)
    flags = () if any(word.startswith(("-mcpu=", "-march=")) for word in command) else core.flags
    text, _ = runner.benchmark_main(library, 1)
    with scratch_folder() as folder:
        main, elf = Path(folder) / "main.c", Path(folder) / "library.elf"
        main.write_text(text)
        link = [
            *compiler.command,
            *flags,
            "-O2",
            f"-I{library.parent.absolute()}",
            f"-I{include_dir()}",
            str(main),
            *(str(one.absolute()) for one in objects),
            *board.sources,
            *board.link,
            "-lm",
            "-o",
            str(elf),
        ]
        done = subprocess.run(link, capture_output=True, text=True, errors="replace", check=False)
        if done.returncode:
            said = f"a program for QEMU cannot be linked: {shlex.join(link)}\n{complaint(done.stderr)}"
            raise fail(
                "E601",
                said,
                where=str(library),
                hint="the compiler must have newlib; other libraries cannot be linked",
            )
        rows = [(one.name, one.op, one.macs) for one in facts.layers if by_layer]
        source = library.with_suffix(".c")
        run = timing.Run(elf, facts.name, source, rows, compiler.command, board.runner, 1)
        return run.timings(name, [memory_of(memory) for memory in memories])


def _core(facts: Metadata, command: Sequence[str]) -> tuple[Core, str]:
    """The core whose board runs the program, and the one whose rules count: of the compiler's flags, else of
    the library's target.
    """
    named = [word.removeprefix("-mcpu=") for word in command if word.startswith("-mcpu=")]
    words = facts.target.replace(":", ",").split(",")
    called = named[-1] if named else next((word for word in words if any(word == c.name for c in CORES)), "")
    name = timing.core_for(called or facts.target, ())
    board = RULES[name][0].removesuffix("plus")
    return next(core for core in CORES if core.name == board), name
