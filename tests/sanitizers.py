"""The sanitizers, as tests compile with them: what they find at half of what compiling with reports takes.

Undefined behaviour ends in a trap, not in a call with a description of the place; the address sanitizer's
checks are calls, not code in place. The same expressions and accesses are checked
(tests/test_sanitizers.py). Whoever sees such a program fail compiles it again with REPORTS for what a
developer wants to read.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aot_model.emit.view import ModelView
from aot_model.errors import CompileError
from aot_model.host.compiler import HostCompiler
from aot_model.host.program import SANITIZE, HostProgram, build

REPORTS = SANITIZE
"""Flags whose programs say where it was, by function and line."""

_QUICK = ("-fsanitize-undefined-trap-on-error", "--param=asan-instrumentation-with-call-threshold=0")


def quick(compiler: str, flags: Sequence[str]) -> tuple[str, ...]:
    """Flags with sanitizers among them as GCC takes least time for, without reports; others as they are."""
    if not any(flag.startswith("-fsanitize=") for flag in flags) or not is_gcc(compiler):
        return tuple(flags)
    return (*flags, "-g0", *_QUICK)


def is_gcc(compiler: str) -> bool:
    """Whether a command is a GCC by its name: clang has other flags for the same."""
    file = Path(shutil.which(compiler) or compiler)  # cc is a link
    return any(re.fullmatch(r"(.*-)?gcc(-\d+)?", name) for name in (file.name, file.resolve().name))


def built_and_run(compile_it: Sequence[Sequence[str]], run_it: Sequence[str], folder: Path) -> str:
    """What a program printed. AssertionError, with the sanitizers' reports, when compiling or running fails.

    compile_it, run_it: the commands, REPORTS among the flags of the former; they run in the folder.
    """
    fast = [[command[0], *quick(command[0], command[1:])] for command in compile_it]
    done = _all([*fast, run_it], folder)
    if done.returncode and fast != [list(command) for command in compile_it]:
        again = _all([*compile_it, run_it], folder)
        done = again if again.returncode else done
    assert done.returncode == 0, f"{done.args[0]}: {done.stdout[-2000:]}{done.stderr[-4000:]}"
    return done.stdout + done.stderr


def _all(commands: Sequence[Sequence[str]], folder: Path) -> subprocess.CompletedProcess[str]:
    """One after the other, until one fails; the last one that ran."""
    for command in commands:
        done = subprocess.run(
            command, cwd=folder, capture_output=True, text=True, errors="replace", timeout=300
        )
        if done.returncode:
            break
    return done


@dataclass(frozen=True)
class _Trapping(HostProgram):
    """A program that is made again, with reports, where it fails."""

    reporting: Callable[[], HostProgram] | None = None

    def _data(self, vectors: Sequence[bytes], timeout: float) -> bytes:
        try:
            return super()._data(vectors, timeout)
        except CompileError:
            if self.reporting is not None:
                self.reporting()._data(vectors, timeout)
            raise


def sanitized(view: ModelView, texts: Mapping[str, str], folder: Path, *flags: str) -> HostProgram:
    """A compiled model as a program of this machine with the sanitizers. CompileError E601 when building
    fails; what it raises when running fails has the sanitizers' reports.
    """
    compiler = HostCompiler.find()
    options = ("-O1", *REPORTS, *flags)
    fast = quick(compiler.command[0], options)
    program = build(view, texts, folder, fast, compiler)
    if fast == options:
        return program
    return _Trapping(
        view,
        program.executable,
        program.runner,
        program.big_endian,
        lambda: build(view, texts, folder, options, compiler),
    )
