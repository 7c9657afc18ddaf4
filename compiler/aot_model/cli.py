"""The command line. Arguments only; the work is in pipeline.py and the modules that the subcommands name."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from aot_model import installation
from aot_model.build_commands import add_build_commands

FOLDERS = ("cmake", "bazel", "scons", "toolchains")
"""Folders of the installation that `--<name>-dir` prints."""


def _pair(text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not equals or not key:
        raise argparse.ArgumentTypeError(f"'{text}' is not of the form NAME=VALUE")
    return key, value


def _dimension(text: str) -> tuple[str, int]:
    key, value = _pair(text)
    if not value.isdigit() or int(value) < 1:
        raise argparse.ArgumentTypeError(f"'{text}': a dimension is a whole number of at least 1")
    return key, int(value)


def _bytes(text: str) -> int:
    units = {"k": 1024, "m": 1024**2}
    digits, factor = (text[:-1], units[text[-1].lower()]) if text[-1:].lower() in units else (text, 1)
    try:
        return int(digits, 0) * factor
    except ValueError:
        raise argparse.ArgumentTypeError(f"'{text}' is not a number of bytes") from None


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="aot-model", description="Compile a trained network into a plain C static library.")
    parser.add_argument("--version", action="store_true", help="print the version; with --json also what build rules ask for")
    parser.add_argument("--json", action="store_true", help=argparse.SUPPRESS)
    for name in FOLDERS:
        parser.add_argument(f"--{name}-dir", dest="folder", action="store_const", const=name, help=f"print the folder with the {name} files")
    parser.add_argument("--include-dir", dest="folder", action="store_const", const="include", help="print the folder with the C headers")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    compiler = commands.add_parser("compile", help="compile a model to C")
    _compile_arguments(compiler)
    compiler.add_argument("-o", "--output", type=Path, required=True, metavar="DIR", help="folder for the generated files")
    compiler.add_argument("--depfile", type=Path, metavar="FILE", help="write a Makefile rule with all inputs")
    compiler.add_argument("--report", type=Path, metavar="FILE", help="write a table of layers and memory")
    compiler.add_argument("--keep-unchanged", action="store_true", help="leave files alone that have the same content")
    compiler.set_defaults(handler=_compile)
    add_build_commands(commands)
    return parser


def _compile_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("model", type=Path, metavar="MODEL", help="ONNX or TFLite file")
    parser.add_argument("--name", help="name of the library and prefix of its symbols (default: the file's name)")
    parser.add_argument("--target", default="host", help="target, `NAME` or `NAME,key=value` (see `aot-model targets`)")
    parser.add_argument("--option", type=_pair, action="append", default=[], metavar="K=V", help="option of the target")
    parser.add_argument("--dim", type=_dimension, action="append", default=[], metavar="N=D", help="extent of a symbolic dimension")
    parser.add_argument("--workspace", choices=("static", "caller"), default="static", help="who owns the workspace")
    parser.add_argument("--io", choices=("caller", "workspace"), default="caller", help="where inputs and outputs are")
    parser.add_argument("--metadata", choices=("none", "size", "full"), default="full", help="how much of it is in flash")
    parser.add_argument("--max-ram", type=_bytes, metavar="BYTES", help="fail when the workspace is larger")
    parser.add_argument("--max-flash", type=_bytes, metavar="BYTES", help="fail when the constants are larger")
    parser.add_argument("--planner", metavar="NAME", help="memory planner")
    parser.add_argument("--dump-after", action="append", default=[], metavar="PASS", help="print the graph after a pass")
    parser.add_argument("--debug", action="store_true", help="show a traceback for errors")


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status (0 fine, 1 user's error, 2 usage, 70 our bug)."""
    parser = _parser()
    arguments = parser.parse_args(argv)
    if arguments.version or arguments.folder:
        return _describe(arguments)
    if arguments.command is None:
        parser.error("a command is missing")
    from aot_model.errors import CompileError

    try:
        status: int = arguments.handler(arguments)
        return status
    except CompileError as error:
        if arguments.debug:
            raise
        print(error, file=sys.stderr)
        return 1
    except Exception as error:
        if arguments.debug:
            raise
        print(f"error: internal error: {type(error).__name__}: {error} [E901]\n  hint: run again with --debug and report it", file=sys.stderr)
        return 70


def _describe(arguments: argparse.Namespace) -> int:
    """--version and the folders: nothing but the standard library is imported, so that they work where packages lack."""
    facts = installation.describe()
    if arguments.version:
        print(json.dumps(facts) if arguments.json else f"aot-model {facts['version']}")
        return 0
    try:
        print(installation.include_dir() if arguments.folder == "include" else installation.rules_dir(arguments.folder))
    except FileNotFoundError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def _compile(arguments: argparse.Namespace) -> int:
    from aot_model.pipeline import compile_model, write

    compiled = compile_model(_request(arguments), _observer(arguments))
    write(compiled, arguments.output, depfile_path=arguments.depfile, report_path=arguments.report, keep_unchanged=arguments.keep_unchanged)
    for note in compiled.notes:
        print(f"note: {note}", file=sys.stderr)
    return 0


def _request(arguments: argparse.Namespace):  # type: ignore[no-untyped-def]
    from aot_model.emit.names import identifier
    from aot_model.emit.view import Options
    from aot_model.pipeline import Request

    return Request(
        arguments.model, arguments.name or identifier(arguments.model.stem, "model"), arguments.target, dict(arguments.option), dict(arguments.dim),
        Options(arguments.workspace, arguments.io, arguments.metadata), algorithm=arguments.planner,
        max_ram=arguments.max_ram, max_flash=arguments.max_flash,
    )  # fmt: skip


def _observer(arguments: argparse.Namespace):  # type: ignore[no-untyped-def]
    from aot_model.passes.manager import Observer

    return Observer(frozenset(arguments.dump_after))
