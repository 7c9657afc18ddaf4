"""`aot-model test-main`, `benchmark-main` and `arena`: C around generated libraries."""

from __future__ import annotations

import argparse
from pathlib import Path

from aot_model.errors import CompileError
from aot_model.host.compiler import words
from aot_model.host.firmware import COMPILER


def test_main(arguments: argparse.Namespace) -> int:
    from aot_model.emit import runner

    tolerance = runner.Tolerance(arguments.atol, arguments.rtol, arguments.max_lsb)
    return _write(arguments, *runner.test_main(arguments.library, arguments.vectors, tolerance))


def benchmark_main(arguments: argparse.Namespace) -> int:
    from aot_model.emit import runner

    return _write(arguments, *runner.benchmark_main(arguments.library, arguments.runs, _estimate(arguments)))


def _estimate(arguments: argparse.Namespace) -> str:
    """What the program says where no cycles are counted."""
    if not arguments.objects:
        return ""
    from aot_model.cli.cycles import memory_for, of_library

    command = words(arguments.compiler or COMPILER, "--compiler")
    try:
        memories = [memory_for(arguments.library, arguments.memory)]
        [found] = of_library(arguments.library, arguments.objects, command, memories, by_layer=False)
    except CompileError as error:
        return f"cycles are not estimated: {error.problems[0].message.splitlines()[0]}"
    worth = f"{found.core}, {found.memory}; error {found.error}"
    return f"{found.cycles:,} cycles per inference, estimated ({worth})"


def arena(arguments: argparse.Namespace) -> int:
    from aot_model.c.names import library_name
    from aot_model.emit.arena import arena_files
    from aot_model.emit.files import write_files

    name = library_name(arguments.name, arguments.output)
    texts = arena_files(name, arguments.libraries, dict(arguments.pool_section))
    write_files(
        {arguments.output / file: text for file, text in texts.items()},
        keep_unchanged=arguments.keep_unchanged,
    )
    return 0


def _write(arguments: argparse.Namespace, text: str, sources: tuple[Path, ...]) -> int:
    from aot_model.emit.files import depfile, write_bytes

    contents = (
        {}
        if arguments.depfile is None
        else {arguments.depfile: depfile([arguments.output], sources, arguments.depfile_target)}
    )
    write_bytes({**contents, arguments.output: text.encode()})
    return 0
