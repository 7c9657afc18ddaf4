"""Parsing the command line: errors that say where to read on, and options that print one thing and end."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any, NoReturn

from aot_model.cli.keywords import known_options


class Answer(argparse.Action):
    """An option that prints one thing and ends the program, like --version."""

    def __init__(
        self, option_strings: Sequence[str], dest: str, tell: Callable[[argparse.Namespace], str], **more: Any
    ) -> None:
        super().__init__(option_strings, dest, nargs=0, **more)
        self._tell = tell

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,
    ) -> None:
        setattr(namespace, self.dest, self._tell)


class Command(argparse.ArgumentParser):
    """Says what is wrong first, and where to read on, instead of the usage."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message}\n  hint: see {self.prog} --help\n")


class Parser(Command):
    """Answers `--version`, `--cmake-dir` … where no subcommand is given."""

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        words = flags_joined(sys.argv[1:] if args is None else args)
        for word in words:
            option, _, value = word.partition("=")
            if option.startswith("--") and value == "--":  # to argparse an empty list
                self.error(f"{word}: a value is missing")
        arguments = super().parse_args(words, namespace)
        if tell := getattr(arguments, "answer", None):
            try:
                print(tell(arguments))
            except FileNotFoundError as error:
                self.exit(1, f"error: {error} [E101]\n")
            self.exit(0)
        if getattr(arguments, "handler", None) is None:
            self.error("a COMMAND is missing")
        return arguments


def flags_joined(words: Sequence[str]) -> list[str]:
    """`--cflags -O3` as `--cflags=-O3`: argparse takes what begins with a dash for the next option."""
    joined: list[str] = []
    for word in words:
        if joined and joined[-1] == "--cflags":
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def tell_version(arguments: argparse.Namespace) -> str:
    if arguments.json:
        from aot_model.c.names import RESERVED_NAMES
        from aot_model.installation import describe

        return json.dumps(
            {**describe(), "options": known_options(), "reserved": " ".join(RESERVED_NAMES)}, indent=1
        )
    from aot_model import __version__

    return f"aot-model {__version__}"


def tell_rules(system: str) -> Callable[[argparse.Namespace], str]:
    def tell(arguments: argparse.Namespace) -> str:
        from aot_model.installation import rules_dir

        return rules_dir(system).as_posix()

    return tell


def tell_include(arguments: argparse.Namespace) -> str:
    from aot_model.installation import include_dir

    return include_dir().as_posix()
