"""The subcommands that build rules call beside `compile`: programs that test and time a generated library."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    Subcommands = argparse._SubParsersAction[argparse.ArgumentParser]


def add_build_commands(commands: Subcommands) -> None:
    """Add `test-main` and `benchmark-main`; each sets `handler`, a function of the parsed arguments to a status."""
    test = commands.add_parser("test-main", help="write a C program that compares a generated library with vectors")
    _common_arguments(test)
    test.add_argument("--vectors", type=Path, required=True, help=".npz with in_<i> and out_<i>, or a folder of ONNX test data")
    test.add_argument("--atol", type=float, default=1e-5, help="real outputs: |got - want| <= ATOL + RTOL * |want| (default %(default)s)")
    test.add_argument("--rtol", type=float, default=1e-4, help="(default %(default)s)")
    test.add_argument("--max-lsb", type=int, default=0, help="integer outputs: |got - want| <= MAX_LSB (default %(default)s)")
    test.set_defaults(handler=_test_main)

    benchmark = commands.add_parser("benchmark-main", help="write a C program that prints the time of one inference")
    _common_arguments(benchmark)
    benchmark.add_argument("--runs", type=int, default=100, help="inferences to take the mean of (default %(default)s)")
    benchmark.set_defaults(handler=_benchmark_main)


def _common_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("metadata", type=Path, metavar="JSON", help="the .json that `compile` wrote")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="FILE", help="C file to write")
    parser.add_argument("--depfile", type=Path, metavar="FILE", help="write a Makefile rule with all inputs")
    parser.add_argument("--debug", action="store_true", help="show a traceback for errors")


def _test_main(arguments: argparse.Namespace) -> int:
    from aot_model.emit.runner import Tolerance, test_main

    tolerance = Tolerance(arguments.atol, arguments.rtol, arguments.max_lsb)
    return _write(arguments, *test_main(arguments.metadata, arguments.vectors, tolerance))


def _benchmark_main(arguments: argparse.Namespace) -> int:
    from aot_model.emit.runner import benchmark_main

    return _write(arguments, *benchmark_main(arguments.metadata, arguments.runs))


def _write(arguments: argparse.Namespace, text: str, inputs: tuple[Path, ...]) -> int:
    from aot_model.emit.files import depfile, write_files

    texts = {arguments.output: text}
    if arguments.depfile is not None:
        texts[arguments.depfile] = depfile([arguments.output], inputs)
    write_files(texts)
    return 0
