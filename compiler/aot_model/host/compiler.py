"""The C compiler that `aot-model run` and `verify` build with, its flags, and what runs its programs.

It is asked what it compiles for (the macros that it predefines with the flags), so that what is generated
fits it.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from aot_model.errors import fail
from aot_model.kernels.target import Target
from aot_model.targets.detect import dot_for, parse_macros, vector_for
from aot_model.targets.registry import parse_target

MACHINES = ("__x86_64__", "__i386__", "__aarch64__", "__arm__", "__riscv", "__s390x__", "__powerpc__")
"""Macros that say what a compiler compiles for."""


@dataclass(frozen=True)
class HostCompiler:
    """A C compiler: the words of its command, the flags of the user, the command that programs are arguments
    of.
    """

    command: tuple[str, ...]
    cflags: tuple[str, ...] | None = None
    """In place of the optimisation and, where they name one, of the processor that the code is for; None:
    those.
    """
    runner: tuple[str, ...] = ()

    @staticmethod
    def find(cc: str | None = None, cflags: str | None = None, runner: str | None = None) -> HostCompiler:
        """The compiler that is named, else $CC, else cc or gcc. CompileError E601 when there is none."""
        source, text = (
            ("--cc", cc)
            if cc is not None
            else ("CC", os.environ.get("CC") or next((c for c in ("cc", "gcc") if shutil.which(c)), None))
        )
        if text is None:
            raise fail("E601", "no C compiler found", hint="install gcc, or name one with --cc or CC")
        command = _found(words(text, source), f"the C compiler of {source}")
        flags = None if cflags is None else words(cflags, "--cflags")
        return HostCompiler(
            command, flags, _found(words(runner, "--runner"), "the program of --runner") if runner else ()
        )

    def second(self) -> HostCompiler | None:
        """A compiler of another house on this machine, Clang for GCC and GCC for Clang; None: there is none.

        It compiles for the same machine: one that crosses, or that has flags of the user, has no second.
        """
        own = self._macros(())
        if self.runner or self.cflags is not None or own is None:
            return None
        is_clang = "__clang__" in own
        names = ("gcc",) if is_clang else ("clang", *(f"clang-{n}" for n in range(30, 10, -1)))
        found = next((path for name in names if (path := shutil.which(name))), None)
        other = None if found is None else HostCompiler((found,))
        return other if other is not None and other._machine == self._machine != "" else None

    @property
    def _machine(self) -> str:
        """What it compiles for: processor and width of pointers."""
        macros = parse_macros(self._macros(()) or "")
        known = [m for m in MACHINES if m in macros]
        return " ".join([*known, macros.get("__SIZEOF_POINTER__", "")]) if known else ""

    def flags(self, target: Target, level: str = "-O2") -> tuple[str, ...]:
        """The processor's flags and the user's or the optimisation; with those of targets before the
        processor.
        """
        if self.cflags is None:
            own = (*self._processor_flags(target), level)
        else:
            own = (*self._core_flags(target), *self.cflags)
        return (*(f for t in target.before for f in t.c_flags), *own)

    def _core_flags(self, target: Target) -> tuple[str, ...]:
        """The flags of a core where those of the user, `-O3`, do not say which it is, less what they say
        otherwise (with two -mfloat-abi GCC links a library for another instruction set); what is for `host`
        goes by the flags of the user alone.
        """
        given = {flag.partition("=")[0] for flag in self.cflags or ()}
        named = not given.isdisjoint(("-mcpu", "-march", "--target"))
        fits = not named and not _is_host(target) and self._macros(target.c_flags) is not None
        return tuple(f for f in target.c_flags if f.partition("=")[0] not in given) if fits else ()

    def _processor_flags(self, target: Target) -> tuple[str, ...]:
        """The flags of the target, where the compiler takes them. CompileError E601 when it compiles for
        another processor.

        Code for `host` is for whatever the compiler compiles for: one that crosses, which has no
        -march=native, goes without.
        """
        if not target.c_flags or self._macros(target.c_flags) is not None or self._macros(()) is None:
            return (*target.c_flags, *self._without_bytes(target.c_flags))
        if _is_host(target):
            return ()
        raise fail(
            "E601",
            f"'{shlex.join(self.command)}' does not compile for target '{target.name}': it refuses "
            f"{shlex.join(target.c_flags)}",
            hint="run and verify execute the model on this machine: take --target c or host, which compute the "  # noqa: E501
            "same values but for the rounding of floats; or, for a Cortex-M, "
            "--on qemu; or name a compiler for the target, flags that link its programs, and an emulator, "
            "with --cc, --cflags and --runner; or test it in your build: aot_model_test()",
        )

    def _without_bytes(self, flags: tuple[str, ...]) -> tuple[str, ...]:
        """What Clang 20 and newer need beside AVX-512BW, with which they may store a byte as four."""
        macros = parse_macros(self._macros(flags) or "")
        faulty = "__AVX512BW__" in macros and int(macros.get("__clang_major__", "0")) >= 20
        return ("-mno-avx512bw",) if faulty else ()

    def fitted(self, text: str, options: Mapping[str, str], plugins: Sequence[Path] = ()) -> dict[str, str]:
        """The options of a target, with the vectors that the compiler has where they would be `auto`."""
        target = parse_target(text, options, plugins)
        if not _is_host(target) or target.option("vector") != "auto":
            return dict(options)
        macros = parse_macros(self._macros(self.flags(target)) or "")
        dot = dot_for(macros)
        return {**({} if dot == "none" else {"dot": dot}), **options, "vector": vector_for(macros)}

    @property
    def big_endian(self) -> bool:
        """Whether it compiles for a machine that is; this one, when it does not say."""
        order = parse_macros(self._macros(self.cflags or ()) or "").get("__BYTE_ORDER__")
        return order == "__ORDER_BIG_ENDIAN__" if order else sys.byteorder == "big"

    @cached_property
    def _seen(self) -> dict[tuple[str, ...], str | None]:
        return {}

    def _macros(self, flags: tuple[str, ...]) -> str | None:
        """The macros that it predefines; None when it fails, or is not like GCC."""
        if flags not in self._seen:
            done = subprocess.run(
                [*self.command, *flags, "-dM", "-E", "-x", "c", os.devnull],
                capture_output=True,
                text=True,
                errors="replace",
                check=False,
            )
            self._seen[flags] = done.stdout if done.returncode == 0 and "#define" in done.stdout else None
        return self._seen[flags]


def complaint(stderr: str) -> str:
    """What a compiler or linker says, from its beginning: the rest follows from that."""
    most = 4000
    return stderr if len(stderr) <= most else f"{stderr[:most].rpartition(chr(10))[0]}\n…"


def words(text: str, source: str) -> tuple[str, ...]:
    """The words of a command, as a shell splits them. CompileError E501."""
    try:
        return tuple(shlex.split(text))
    except ValueError as error:
        raise fail("E501", f"{source}: {error}: {text}") from None


def _is_host(target: Target) -> bool:
    """Whether its vectors are those of the compiler: `host`, and what plug-ins derive from it."""
    return target.has_option("vector")


def _found(command: tuple[str, ...], what: str) -> tuple[str, ...]:
    """A command whose program exists, with its whole path where it has one. CompileError E601."""
    program = shutil.which(command[0]) if command else None
    if program is None:
        raise fail(
            "E601",
            f"{what}, '{command[0] if command else ''}', is not there or cannot be executed",
            hint="it is a command, with arguments if need be: gcc, 'ccache gcc'",
        )
    return (os.path.abspath(program) if os.path.dirname(command[0]) else command[0], *command[1:])
