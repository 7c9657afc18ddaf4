"""One cell of the matrix: a program built by a compiler with flags, run, and judged."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import qemu
from aot_model.host.program import STRICT
from aot_model.installation import include_dir

from .columns import Column
from .program import Program

BUILD_SECONDS, RUN_SECONDS, EMULATED_SECONDS = 600, 120, 300
EMULATED_MACS, BOARD_MACS = 60_000_000, 15_000_000
"""Multiplications that an emulator gets through in reasonable time."""


@dataclass(frozen=True)
class Cell:
    """status: right, wrong, crash, uncompilable; unsuitable: too large for the board or too slow in an
    emulator.
    """

    column: str
    target: str
    unit: str
    digest: str
    status: str
    cases: int
    faults: dict[str, str] = field(default_factory=dict)
    """By case: what is wrong."""
    seconds: float = 0.0

    def row(self) -> dict[str, object]:
        return asdict(self)


class Failure(Exception):
    """A program that could not be built or did not end well."""

    def __init__(self, status: str, text: str) -> None:
        super().__init__(text)
        self.status = status


def run_cell(column: Column, target: str, unit: str, program: Program, digest: str) -> Cell:
    """Build and run a program; case by case when that fails."""
    start = time.monotonic()
    count = max(len(program.items), 1)
    if program.macs > (BOARD_MACS if column.board else EMULATED_MACS if column.runner else program.macs):
        return Cell(
            column.name, target, unit, digest, "unsuitable", 0, {"": f"{program.macs:,} multiplications"}
        )
    try:
        faults, status = _differences(column, program), ""
    except Failure as failure:
        status, faults = failure.status, {"": str(failure)}
        if len(program.items) > 1 and len(program.sources) == 2 and program.items[0].source:
            status, faults = _one_by_one(column, program)
    status = status or ("wrong" if faults else "right")
    return Cell(
        column.name,
        target,
        unit,
        digest,
        status,
        0 if status == "unsuitable" else count,
        faults,
        round(time.monotonic() - start, 2),
    )


def _one_by_one(column: Column, program: Program) -> tuple[str, dict[str, str]]:
    """The worst status of the cases by themselves, and what is wrong with them."""
    faults: dict[str, str] = {}
    found = {"right"}
    for k, expected in enumerate(program.expected):
        single = program.alone(k, program.folder / "alone")
        try:
            differences = _differences(column, single)
            faults |= differences
            found.add("wrong" if differences else "right")
        except Failure as failure:
            faults[expected.name] = f"{failure.status}: {failure}"
            found.add(failure.status)
    return next(s for s in ("wrong", "crash", "uncompilable", "unsuitable", "right") if s in found), faults


def _differences(column: Column, program: Program) -> dict[str, str]:
    folder = program.folder
    (folder / "in.bin").write_bytes(program.given(column.big_endian))
    (folder / "out.bin").unlink(missing_ok=True)
    executable = _build(column, program)
    if column.board is not None:
        board = qemu.BOARDS[column.board]
        words = [
            qemu.EMULATOR,
            "-M",
            board.machine,
            "-nographic",
            "-monitor",
            "none",
            "-serial",
            "none",
            "-semihosting",
            "-kernel",
            executable,
        ]
    else:
        words = [*column.runner, f"./{executable}"]
    try:
        done = subprocess.run(
            words,
            cwd=folder,
            capture_output=True,
            timeout=EMULATED_SECONDS if column.emulated else RUN_SECONDS,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise Failure("unsuitable" if column.emulated else "crash", "timeout") from None
    said = (done.stdout + done.stderr).decode(errors="replace")[-1500:]
    if not program.items:
        if done.returncode not in (0, 1):
            raise Failure("crash", f"status {done.returncode}: {said}")
        lines = [line for line in said.splitlines() if not line.startswith("ticks ")]
        return {} if done.returncode == 0 else {"": "\n".join(lines[:5])}
    if done.returncode:
        raise Failure("crash", f"status {done.returncode}: {said}")
    return program.differences((folder / "out.bin").read_bytes(), column.big_endian, column.wide_floats)


def _build(column: Column, program: Program) -> str:
    folder = program.folder
    options = [*STRICT, *column.flags, f"-I{include_dir()}", "-I."]
    if column.board is None:
        commands = [[*column.command, *options, *program.sources, "-lm", "-o", "program"]]
    else:
        board = qemu.BOARDS[column.board]
        qemu.write_support(board, folder)
        more = [] if program.items else ["-DBARE"]
        # Start-up code by itself: link-time optimisation does not see that the processor jumps to it.
        commands = [
            [*column.command, *board.flags, "-mthumb", "-O2", "-c", "startup.c"],
            [*column.command, *options, *more, "startup.o", *program.sources, *qemu.LINK, "-o", "program"],
        ]
    for command in commands:
        try:
            done = subprocess.run(
                command,
                cwd=folder,
                capture_output=True,
                text=True,
                errors="replace",
                timeout=BUILD_SECONDS,
                env={**os.environ, "LC_ALL": "C"},
            )
        except subprocess.TimeoutExpired:
            raise Failure("unsuitable", "the compiler takes too long") from None
        if done.returncode:
            large = "overflowed by" in done.stderr or "will not fit in region" in done.stderr
            raise Failure("unsuitable" if large else "uncompilable", done.stderr[:1500])
    return "program"


def clean(folder: Path) -> None:
    shutil.rmtree(folder, ignore_errors=True)
