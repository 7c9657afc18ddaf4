"""Options that several commands have."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from aot_model.cli import values
from aot_model.cli.keywords import OPTIONS

MODEL_OPTIONS = ("signature", "dims", "constants", "bounds", "string_bytes", "memory", "fetch")
"""Keywords of the build rules that say how a model is read."""


Commands = Any  # argparse's class for this has no public name


def add_command(
    commands: Commands, name: str, handler: str, help: str, aliases: Sequence[str] = ()
) -> argparse.ArgumentParser:
    """A subcommand. handler: `module:function` of cli/, imported when it is called."""
    found: argparse.ArgumentParser = commands.add_parser(
        name, aliases=aliases, help=help, description=help[0].upper() + help[1:] + ".", allow_abbrev=False
    )
    found.set_defaults(handler=handler)
    found.add_argument("--debug", action="store_true", help="show a traceback for errors")
    return found


def add_model(command: argparse.ArgumentParser, target: str = "host") -> None:
    """What every command that compiles a model takes."""
    command.add_argument("model", type=Path, metavar="MODEL", help="ONNX or TFLite file")
    add_generation(command, target)


def add_generation(command: argparse.ArgumentParser, target: str = "host") -> None:
    """What the code is like."""
    command.add_argument(
        "--target",
        default=target,
        help=f"`NAME` or `NAME,key=value` (see `aot-model targets`; default: {target}); "
        "targets that take over parts of the model come before it: `NAME,NAME`",
    )
    command.add_argument(
        "--target-probe",
        type=Path,
        metavar="FILE",
        help="what the C compiler is for, which --target auto takes: the output of `$CC $CFLAGS -dM -E -x c "
        "/dev/null`, "
        "or the object of the probe that `aot-model --version --json` names",
    )
    add_plugins(command)
    command.add_argument(
        "--option", type=values.pair, action="append", default=[], metavar="K=V", help="option of the target"
    )
    add_keywords(command, *MODEL_OPTIONS)


def add_keywords(command: argparse.ArgumentParser, *names: str) -> None:
    """Options that are keywords of the build rules too."""
    for keyword in OPTIONS:
        if keyword.name in names:
            command.add_argument(keyword.flag, **keyword.argparse())


def add_plugins(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--target-plugin",
        type=Path,
        action="append",
        default=[],
        metavar="FILE",
        help="Python file with further TARGETS; repeat for more",
    )


def add_planning(command: argparse.ArgumentParser) -> None:
    add_keywords(command, "io", "pools", "pool_speeds", "pool_targets", "planner")


def add_library(command: argparse.ArgumentParser) -> None:
    """What a library is like."""
    add_keywords(command, *(k.name for k in OPTIONS if k.name not in MODEL_OPTIONS))


def add_depfile(command: argparse.ArgumentParser) -> None:
    command.add_argument("--depfile", type=Path, metavar="FILE", help="write a Makefile rule with all inputs")
    command.add_argument(
        "--depfile-target",
        metavar="TEXT",
        help="its target, as it is (default: the absolute path of the C), like -MT of gcc; with -MP",
    )


def add_host_build(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--cc",
        metavar="COMMAND",
        help="C compiler to build with, of this machine or one that crosses (default: $CC, cc or gcc)",
    )
    command.add_argument(
        "--cflags",
        metavar="FLAGS",
        help="its flags, in one argument: '-O3 -flto' (default: -O2); those of a Cortex-M come with them, "
        "unless they say -mcpu or -march, and `--target host` has the vectors that the compiler has with "
        "them",
    )
    command.add_argument(
        "--runner",
        metavar="COMMAND",
        help="what runs the program, such as an emulator: --runner 'qemu-aarch64 -L /usr/aarch64-linux-gnu'",
    )
    command.add_argument(
        "--on",
        metavar="qemu|COMMAND",
        help="for Cortex-M: build firmware and run it in QEMU, or by a command that brings it to a board and "
        "shows what it "
        "prints, such as 'probe-rs run --chip … {elf}'; start-up code and linker script of the board: --with",
    )
    command.add_argument(
        "--sanitize", action="store_true", help="build with address and undefined-behaviour sanitizers"
    )
    command.add_argument(
        "--with",
        type=Path,
        action="append",
        default=[],
        dest="sources",
        metavar="FILE",
        help="C file or library that the target's functions need, such as a driver; its folder is searched for "  # noqa: E501
        "headers",
    )


def add_estimate(command: argparse.ArgumentParser) -> None:
    """What an estimate of cycles takes."""
    command.add_argument(
        "--clock",
        type=values.quantity,
        metavar="HERTZ",
        help="of the core, for microseconds: 120M (default: that of the memory)",
    )
    command.add_argument(
        "--max-cycles",
        type=values.quantity,
        metavar="N",
        help="fail, with the table, when the estimate is more: 4.2M",
    )


def add_tolerances(command: argparse.ArgumentParser, atol: float | None, rtol: float) -> None:
    said = (
        f"{atol:g}"
        if atol is not None
        else ("1e-4 of the output's range; 2^-10 or 2^-7 of it where float16 or bfloat16 is computed")
    )
    command.add_argument(
        "--atol", type=values.tolerance, default=atol, help=f"absolute tolerance of floats (default: {said})"
    )
    command.add_argument(
        "--rtol",
        type=values.tolerance,
        default=rtol,
        help=f"relative tolerance of floats (default: {rtol:g})",
    )
    command.add_argument(
        "--max-lsb",
        type=values.not_negative,
        default=0,
        metavar="N",
        help="tolerance of integers (default: 0)",
    )


def add_listing(command: argparse.ArgumentParser) -> None:
    form = command.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="as JSON")
    form.add_argument("--markdown", action="store_true", help="as a Markdown table")


def add_name(command: argparse.ArgumentParser) -> None:
    command.add_argument("--name", help="name of the library, a C identifier (default: from the file's name)")


def add_output(command: argparse.ArgumentParser, metavar: str, help: str) -> None:
    command.add_argument("-o", "--output", type=Path, required=True, metavar=metavar, help=help)


def add_keep_unchanged(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--keep-unchanged", action="store_true", help="leave files alone that have the same content"
    )
