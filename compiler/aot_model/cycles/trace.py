"""A program run in QEMU with the plug-in that counts (qemu_trace.c), which the machine's C compiler builds
when it is needed.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from aot_model.cycles.disassembly import Code
from aot_model.cycles.rules import Memory
from aot_model.errors import CompileError, fail

EMULATOR = "qemu-system-arm"
OUTPUT = "trace.txt"
_SOURCE = Path(__file__).with_name("qemu_trace.c")


@dataclass(frozen=True)
class Edge:
    """A block that ran after another, for a layer (-1: before the first)."""

    source: int | None
    block: int
    layer: int
    count: int
    mispredicted: int
    misses: int
    """Lines of code that were not in the cache."""


@dataclass(frozen=True)
class Access:
    """What the accesses of an instruction cost, for a layer: accesses more because of alignment, misses of
    the cache.
    """

    address: int
    layer: int
    extra: int
    loads: int
    stores: int


@dataclass(frozen=True)
class Trace:
    """The runs of a function, added up."""

    runs: int
    blocks: dict[int, tuple[int, int]] = field(default_factory=dict)
    """Address and number of instructions."""
    edges: list[Edge] = field(default_factory=list)
    accesses: list[Access] = field(default_factory=list)


def plugin() -> Path:
    """The plug-in for the QEMU that is installed. CompileError E604 where there is none, or it cannot be
    built.
    """
    emulator = shutil.which(EMULATOR)
    if emulator is None:
        raise _missing(f"'{EMULATOR}' is not installed", "install it (Debian: qemu-system-arm)")
    said = subprocess.run([emulator, "--version"], capture_output=True, text=True, check=False).stdout
    number = re.search(r"version (\d+)", said)
    if number is None or int(number[1]) < 5:
        raise _missing(
            f"'{emulator}' is too old for plug-ins, or says no version", "QEMU 5 or newer has them"
        )
    version = 1 if int(number[1]) < 9 else 2
    compiler = shutil.which("cc") or shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        raise _missing("no C compiler of this machine, to build QEMU's plug-in with", "install gcc")
    command = [
        compiler,
        "-O2",
        "-shared",
        "-fPIC",
        "-fvisibility=hidden",
        "-undefined",
        "dynamic_lookup",
        f"-DAPI_VERSION={version}",
    ]
    if os.uname().sysname != "Darwin":
        command = [word for word in command if word not in ("-undefined", "dynamic_lookup")]
    digest = hashlib.sha256(_SOURCE.read_bytes() + repr((command, emulator)).encode()).hexdigest()[:16]
    folder = Path(tempfile.gettempdir()) / f"aot-model-{os.getuid()}"
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.stat().st_uid != os.getuid() or folder.stat().st_mode & 0o022:
        folder = Path(tempfile.mkdtemp(prefix="aot-model-"))  # somebody else made it: not to be trusted
    made = folder / f"qemu_trace-{digest}.so"
    if not made.exists():
        own = made.with_suffix(f".{os.getpid()}")
        done = subprocess.run(
            [*command, str(_SOURCE), "-o", str(own)],
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode:
            raise _missing(f"QEMU's plug-in cannot be built: {done.stderr[-2000:]}", "")
        own.replace(made)
    return made


def _missing(what: str, hint: str) -> CompileError:
    return fail("E604", f"cycles cannot be estimated: {what}", hint=hint)


def write_code(code: Code, layers: Mapping[int, int], path: Path) -> None:
    """What the plug-in has to know of each instruction."""
    lines = [
        f"{a:x} {i.size} {int(i.kind == 'branch_if')} {layers.get(a, -1)}\n"
        for a, i in sorted(code.instructions.items())
    ]  # fmt: skip
    path.write_text("".join(lines))


def arguments(
    code: Code, entry: str, memory: Memory, folder: Path, layers: Mapping[int, int], runs: int, skip: int
) -> list[str]:
    """Those of QEMU, for a plug-in that writes to OUTPUT in a folder."""
    (folder / OUTPUT).unlink(missing_ok=True)
    write_code(code, layers, folder / "code.txt")
    given = {
        "out": folder / OUTPUT,
        "code": folder / "code.txt",
        "entry": f"{code.functions[entry]:x}",
        "runs": runs,
        "skip": skip,
    }
    caches = {"lines": memory.code, "data": memory.data, "flash": int(memory.flash_only)}
    words = [f"{name}={value}" for name, value in {**given, **caches}.items() if value is not None]
    return ["-plugin", ",".join([f"file={plugin()}", *words])]


def run(command: Sequence[str], folder: Path, timeout: float) -> None:
    """QEMU, until the program ends. CompileError E604, E602."""
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise fail("E602", f"the firmware did not come to its end in {timeout:.0f} seconds") from None
    if not (folder / OUTPUT).exists():
        raise _missing(
            f"QEMU does not load the plug-in: {done.stderr.strip()[-500:]}",
            "a QEMU that was built with --enable-plugins, as Debian's is",
        )
    if done.returncode:
        raise fail(
            "E602",
            f"the firmware failed with status {done.returncode}\n{(done.stdout + done.stderr)[-2000:]}",
        )


def read(path: Path, runs: int) -> Trace:
    """What the plug-in wrote. CompileError E602 when the function was not run so often."""
    trace = Trace(runs)
    ended = False
    for line in path.read_text().splitlines():
        kind, *words = line.split()
        if kind == "block":
            trace.blocks[int(words[0])] = (int(words[1], 16), int(words[2]))
        elif kind == "edge":
            source, block, layer, count, bad, misses = map(int, words)
            trace.edges.append(Edge(None if source < 0 else source, block, layer, count, bad, misses))
        elif kind == "access":
            trace.accesses.append(Access(int(words[0], 16), *map(int, words[1:])))
        ended = kind == "end"
    if not ended:
        raise fail("E602", f"the firmware ended before {runs} runs of the model were counted")
    return trace
