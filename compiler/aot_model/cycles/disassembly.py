"""The code of an ELF file, by what GNU's objdump, nm and addr2line (or LLVM's) say of it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from aot_model.cycles.decode import block_of_it, decode
from aot_model.cycles.instruction import Instruction
from aot_model.errors import fail

_LINE = re.compile(r"\s*([0-9a-f]+):\s+([0-9a-f]+(?: [0-9a-f]+)?)\s*\t\s*(.*)$")
_SYMBOL = re.compile(r"([0-9a-f]+) [tTwW] (.+)$")


@dataclass(frozen=True)
class Code:
    """All instructions by address, and the functions."""

    elf: Path
    tools: Mapping[str, str]
    instructions: Mapping[int, Instruction]
    functions: Mapping[str, int]
    """Addresses by name."""

    @staticmethod
    def of(elf: Path, compiler: Sequence[str]) -> Code:
        """compiler: that made it, whose binutils read it. CompileError E601 when they cannot."""
        tools = {
            tool: _run([*compiler, f"-print-prog-name={tool}"]).strip()
            for tool in ("objdump", "nm", "addr2line")
        }
        helium = "v8.1-m.main" in _run([tools["objdump"], "-f", str(elf)])
        lines = _run(
            [tools["objdump"], "-d", *(["-m", "armv8.1-m.main"] if helium else []), str(elf)]
        ).splitlines()
        found = list(_symbols(_run([tools["nm"], str(elf)]).splitlines()))
        return Code(elf, tools, instructions(lines), dict(found))

    def lines_in(self, function: str) -> dict[int, int]:
        """By address: the line of a function's source on which an instruction is, or is called from where
        it was inlined.

        Empty without debug information.
        """
        text = _run(
            [self.tools["addr2line"], "-a", "-i", "-f", "-e", str(self.elf)],
            "\n".join(f"{a:x}" for a in self.instructions),
        )
        found: dict[int, int] = {}
        address, name = 0, ""
        for line in text.splitlines():
            if re.fullmatch(r"0x[0-9a-f]+", line):
                address = int(line, 16)
            elif place := re.match(r".*:(\d+)(?: \(discriminator \d+\))?$", line):
                if name == function:
                    found[address] = int(place[1])
            else:
                name = line
        return found


def instructions(lines: Iterable[str]) -> dict[int, Instruction]:
    """By address: the instructions of a disassembly."""
    found: dict[int, Instruction] = {}
    conditions: list[str] = []
    for line in lines:
        match = _LINE.match(line)
        if match is None:
            conditions = []
            continue
        size = len(match[2].replace(" ", "")) // 2
        if size > 4 or match[3].startswith("."):
            conditions = []
            continue
        one = decode(int(match[1], 16), size, match[3], conditions.pop(0) if conditions else "")
        if one.kind == "it":
            conditions = block_of_it(one.text)
        found[one.address] = one
    return found


def _symbols(lines: Iterable[str]) -> Iterable[tuple[str, int]]:
    for line in lines:
        match = _SYMBOL.match(line)
        if match and not match[2].startswith("$"):
            yield match[2], int(match[1], 16) & ~1


def _run(command: Sequence[str], given: str | None = None) -> str:
    try:
        return subprocess.run(
            command, input=given, capture_output=True, text=True, check=True, errors="replace"
        ).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        said = getattr(error, "stderr", "") or error
        raise fail(
            "E601",
            f"'{command[0]}' is needed to read the program's code, and failed: {said}",
            hint="install the compiler's binutils",
        ) from None
