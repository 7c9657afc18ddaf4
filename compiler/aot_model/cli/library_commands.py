"""Commands on libraries that were generated before; build rules call them."""

from __future__ import annotations

import argparse
from pathlib import Path

from aot_model.cli import values
from aot_model.cli.options import (
    Commands,
    add_command,
    add_depfile,
    add_estimate,
    add_keep_unchanged,
    add_keywords,
    add_output,
    add_plugins,
    add_tolerances,
)


def _program(commands: Commands, name: str, handler: str, help: str) -> argparse.ArgumentParser:
    command = add_command(commands, name, handler, help)
    command.add_argument("library", type=Path, metavar="JSON", help="<name>.json of a generated library")
    add_output(command, "FILE", "C file to write")
    add_depfile(command)
    return command


def add_test_main(commands: Commands) -> None:
    command = _program(
        commands, "test-main", "programs:test_main", "write the C of a program that tests a generated library"
    )
    command.add_argument(
        "--vectors",
        type=Path,
        required=True,
        metavar="FILE|FOLDER",
        help=".npz with in_<i>, out_<i> or names of tensors, or a folder of ONNX test data",
    )
    add_tolerances(command, 1e-5, 1e-4)


def add_benchmark_main(commands: Commands) -> None:
    command = _program(
        commands,
        "benchmark-main",
        "programs:benchmark_main",
        "write the C of a program that measures a generated library",
    )
    command.add_argument("--runs", type=values.whole, default=100, help="runs to measure (default: 100)")
    command.add_argument(
        "--objects",
        type=Path,
        nargs="+",
        metavar="OBJECT",
        help="of the library: their cycles are estimated, for where none are counted",
    )
    command.add_argument("--compiler", metavar="COMMAND", help="that links them, with flags like -mcpu")
    command.add_argument(
        "--memory",
        metavar="NAME",
        help="what code and constants are in: 0ws, l4-art … (default: what the library was "
        "compiled for, else 0ws)",
    )


def add_arena(commands: Commands) -> None:
    command = add_command(
        commands,
        "arena",
        "programs:arena",
        "write the C of one memory for libraries that were compiled with --workspace caller",
    )
    command.add_argument(
        "libraries", nargs="+", type=Path, metavar="JSON", help="<name>.json of a generated library"
    )
    add_output(command, "DIR", "folder for NAME.h and NAME.c")
    command.add_argument("--name", required=True, help="name of the memory, a C identifier")
    command.add_argument(
        "--pool-section",
        type=values.section,
        action="append",
        default=[],
        metavar="POOL=SECTION",
        help="linker section of a pool's array",
    )
    add_keep_unchanged(command)


def add_params(commands: Commands) -> None:
    command = add_command(
        commands,
        "params",
        "parameters:params",
        "write the parameters of a retrained model for a library built with --params external",
    )
    command.add_argument("model", type=Path, metavar="MODEL", help="ONNX or TFLite file")
    add_keywords(command, "signature", "dims", "constants", "bounds")
    add_plugins(command)
    command.add_argument(
        "--for", type=Path, required=True, dest="library", metavar="JSON", help="<name>.json of the library"
    )
    add_output(command, "FILE", "file to write")


def add_stack(commands: Commands) -> None:
    command = add_command(
        commands,
        "stack",
        "stack:stack",
        "say how much stack a compiled library needs, from what GCC wrote with -fcallgraph-info=su",
    )
    command.add_argument("library", type=Path, metavar="JSON", help="<name>.json of the library")
    command.add_argument(
        "objects",
        type=Path,
        nargs="+",
        metavar="OBJECT",
        help="its object, which has the .ci beside it, or the .ci",
    )
    command.add_argument(
        "--max-stack",
        type=values.byte_count,
        metavar="BYTES",
        help="fail when it is more, or cannot be counted",
    )
    command.add_argument(
        "--stack-allowance",
        type=values.byte_count,
        metavar="BYTES",
        help="what a function that cannot be counted may need (of other libraries, and beyond pointers)",
    )
    command.add_argument(
        "--compiler",
        metavar="COMMAND",
        help="the command that links, with its flags: functions of its libraries are counted, for Cortex-M",
    )
    command.add_argument("-o", "--output", type=Path, metavar="FILE", help="file to write (default: print)")


def add_size(commands: Commands) -> None:
    command = add_command(
        commands, "size", "size:size", "say how large code and constants of a compiled library are, by layer"
    )
    command.add_argument("library", type=Path, metavar="JSON", help="<name>.json of the library")
    command.add_argument("objects", type=Path, nargs="+", metavar="OBJECT", help="its object file")
    command.add_argument(
        "--compiler",
        metavar="COMMAND",
        help="that made it, with -g: what it inlined is told apart by layer, too",
    )
    command.add_argument(
        "--max-flash",
        type=values.byte_count,
        metavar="BYTES",
        help="fail, with the table, when code and constants are more",
    )
    command.add_argument("--json", action="store_true", help="as JSON")
    command.add_argument("-o", "--output", type=Path, metavar="FILE", help="file to write (default: print)")


def add_cycles(commands: Commands) -> None:
    command = add_command(
        commands,
        "cycles",
        "cycles:cycles",
        "estimate the cycles of a compiled library on a Cortex-M, from a run in QEMU",
    )
    command.add_argument("library", type=Path, metavar="JSON", help="<name>.json of the library")
    command.add_argument(
        "objects", type=Path, nargs="+", metavar="OBJECT", help="its object, compiled with -g, or the archive"
    )
    command.add_argument(
        "--compiler", required=True, metavar="COMMAND", help="the command that links, with flags like -mcpu"
    )
    command.add_argument(
        "--memory",
        metavar="NAME",
        help="what code and constants are in: 0ws (no wait states), tcm, l4-art, f4-art, "
        "nrf53, m7-cache (default: what the library was compiled for, else 0ws)",
    )
    add_estimate(command)
    command.add_argument("-o", "--output", type=Path, metavar="FILE", help="file to write (default: print)")
