"""The command line: `main`. arguments.py declares it; each subcommand is a function of another module here.

Nothing but argparse is imported before the arguments are known to be right: build systems call `--version`
and mistyped options must not take a second.
"""

from __future__ import annotations

import argparse
import importlib
import os
import sys
from collections.abc import Callable, Sequence

from aot_model.cli.arguments import parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit status: 0 fine, 1 the user's model or options, 2 usage, 70 our
    bug.
    """
    declared = parser()
    # the shell asks for completions: `eval "$(register-python-argcomplete aot-model)"`
    if "_ARGCOMPLETE" in os.environ:
        import argcomplete  # type: ignore[import-not-found, unused-ignore]

        argcomplete.autocomplete(declared)
    arguments = declared.parse_args(argv)
    try:
        return _guarded(arguments)
    except BrokenPipeError:
        # the reader went (`| head`); say no more
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130


def _guarded(arguments: argparse.Namespace) -> int:
    from aot_model.errors import CompileError

    try:
        if hasattr(arguments, "target_probe"):
            from aot_model.targets.detect import resolve

            arguments.target = resolve(arguments.target, arguments.target_probe)
        status = _handler(arguments.handler)(arguments)
        sys.stdout.flush()
        return status
    except CompileError as error:
        if arguments.debug:
            raise
        from aot_model.cli.terminal import coloured

        print(coloured(str(error)), file=sys.stderr)
        return 1
    except BrokenPipeError:
        raise
    except Exception as error:
        if arguments.debug:
            raise
        message, status = _unexpected(error)
        print(message, file=sys.stderr)
        return status


def _handler(path: str) -> Callable[[argparse.Namespace], int]:
    module, _, function = path.partition(":")
    found: Callable[[argparse.Namespace], int] = getattr(
        importlib.import_module(f"aot_model.cli.{module}"), function
    )
    return found


def _unexpected(error: Exception) -> tuple[str, int]:
    """What to say of an exception that is not a CompileError, and the exit status."""
    from aot_model.errors import Problem
    from aot_model.installation import REQUIREMENTS, how_to_install

    if isinstance(error, ModuleNotFoundError) and error.name in REQUIREMENTS:
        package = REQUIREMENTS[error.name]
        return str(
            Problem(
                "E902",
                f"the Python package '{package}' is not installed",
                hint=f"install it: {how_to_install([package])}",
            )
        ), 1
    if isinstance(error, MemoryError):
        return str(Problem("E903", "this machine has not enough memory to compile the model")), 1
    what = " ".join(f"{type(error).__name__}: {error}".split())[:600]
    return str(
        Problem(
            "E901",
            f"internal error: {what}",
            hint="this is a bug of aot-model; please report it with the output of the same command and "
            "--debug",
        )
    ), 70
