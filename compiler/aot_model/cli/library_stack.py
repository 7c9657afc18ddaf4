"""What functions of the C library, libm and libgcc need of the stack: read off the disassembly of the
toolchain's archives.

For Thumb code, whose prologues say it: registers that are pushed and what is subtracted from the stack
pointer, summed over all of a function, and the deepest of those that it calls. What this cannot see (another
architecture, a call through a pointer, a frame of a size that is computed, recursion) has no number, and
counts as not counted.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ARCHIVES = ("libm.a", "libc.a", "libc_nano.a", "libgcc.a")


@dataclass
class _Code:
    """A function as it is disassembled. `size` is None when it has no bound."""

    size: int | None = 0
    calls: set[str] = field(default_factory=set)
    returns: bool = False
    """Whether nothing falls through to what follows."""


def library_needs(compiler: Sequence[str], names: Iterable[str]) -> dict[str, int]:
    """Bytes by name, of those functions that have a bound. compiler: the command that links, with flags like
    -mcpu.
    """
    try:
        toolchain = _Toolchain.of(compiler)
        code = toolchain.closure(set(names))
    except (OSError, subprocess.SubprocessError):
        return {}
    found = {}
    for name in names:
        size = _deepest(code, name, ())
        if size is not None:
            found[name] = size
    return found


def undefined(compiler: Sequence[str], objects: Iterable[Path]) -> set[str]:
    """What objects need of others, as the linker sees it: GCC's call graph lacks helpers that it calls where
    it writes instructions, like __gnu_thumb1_case_uqi of a switch.
    """
    try:
        return {
            line.split()[-1]
            for path in objects
            if path.is_file()
            for line in _run([_tool(compiler, "nm"), "-u", str(path)]).splitlines()
            if line
        }
    except (OSError, subprocess.SubprocessError):
        return set()


@dataclass(frozen=True)
class _Toolchain:
    archives: tuple[Path, ...]
    objdump: str
    nm: str
    ar: str

    @staticmethod
    def of(compiler: Sequence[str]) -> _Toolchain:
        files = [Path(_run([*compiler, f"-print-file-name={name}"]).strip()) for name in ARCHIVES]
        tools = [_tool(compiler, tool) for tool in ("objdump", "nm", "ar")]
        return _Toolchain(tuple(file for file in files if file.is_absolute() and file.is_file()), *tools)

    def closure(self, names: set[str]) -> dict[str, list[_Code]]:
        """By name: the functions that may be called, in each archive that has one."""
        defined: dict[str, list[tuple[Path, str]]] = {}
        for archive in self.archives:
            for line in _run([self.nm, "-A", "--defined-only", str(archive)]).splitlines():
                place, _, symbol = line.rpartition(" ")
                if found := re.fullmatch(r".*:([^:]+):[0-9a-fA-F]+ [TtWwVi]", place):
                    defined.setdefault(symbol, []).append((archive, found[1]))
        code: dict[str, list[_Code]] = {}
        done: set[tuple[Path, str]] = set()
        todo = set(names)
        while todo:
            wanted = {place for name in todo for place in defined.get(name, ())} - done
            done |= wanted
            called: set[str] = set()
            for archive in self.archives:
                members = sorted(member for a, member in wanted if a == archive)
                for text in self._texts(archive, members) if members else ():
                    for name, one in disassembled(text).items():
                        code.setdefault(name, []).append(one)
                        called |= one.calls
            todo = {name for name in called if any(place not in done for place in defined.get(name, ()))}
        return code

    def _texts(self, archive: Path, members: list[str]) -> list[str]:
        """Of each member, what objdump says of it."""
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run(
                [self.ar, "x", str(archive), *members], cwd=folder, check=True, capture_output=True
            )
            files = [str(Path(folder, member)) for member in members]
            said = _run([self.objdump, "-tdr", "--no-show-raw-insn", *files])
        return re.split(r"(?m)^(?=\S.*:     file format )", said)


def disassembled(text: str) -> dict[str, _Code]:
    """The functions of an object file, from what objdump -tdr says of it; none when it is not for a 32-bit
    Arm.
    """
    if "file format elf32-littlearm" not in text:
        return {}
    found: dict[str, _Code] = {}
    places: dict[tuple[str, int], list[str]] = {}
    for address, section, symbol in re.findall(
        r"(?m)^([0-9a-f]{8}) .{7} (\S+)\t[0-9a-f]+ (?:\.hidden )?(\S+)$", text
    ):
        places.setdefault((section, int(address, 16)), []).append(symbol)
    name, before, section, target, table = "", "", "", "", ""
    for line in text.splitlines():
        if line.startswith("Disassembly of section"):
            before, section = "", line.split()[-1].rstrip(":")
        elif head := re.fullmatch(r"([0-9a-f]+) <([^>]+)>:", line):
            if before and not found[before].returns:
                found[before].calls.add(head[2])  # it goes on there
            name = before = head[2]
            found[name] = _Code()
            for alias in places.get((section, int(head[1], 16)), ()):
                found[alias] = found[name]
        elif relocation := re.search(
            r"\tR_ARM_(THM_)?(CALL|JUMP\d*|PC\d+|PLT\d*)\t(\S+)|: "
            r"R_ARM_(THM_)?(CALL|JUMP\d*|PC22|PC24)\t(\S+)",
            line,
        ):
            symbol = relocation[3] or relocation[6]
            found[name].calls.discard(target)
            _call(found[name], symbol)
        elif name and (instruction := re.fullmatch(r"\s*[0-9a-f]+:\t(\S+)\s*(.*?)\s*", line)):
            operands = instruction[2].partition(";")[0].partition("@")[0].strip()
            target = _take(found[name], name, instruction[1], operands, instruction[2], table)
            loaded = re.fullmatch(r"(\w+), \[\w+, r\w+\]", operands)
            table = loaded[1] if loaded and instruction[1] == "ldr" else ""
    return found


_CONDITIONAL = re.compile(r"(eq|ne|cs|cc|hs|lo|mi|pl|vs|vc|hi|ls|ge|lt|gt|le)$")


def _call(code: _Code, symbol: str) -> None:
    if symbol.startswith("."):
        code.size = None
    else:
        code.calls.add(symbol)


def _take(code: _Code, own: str, mnemonic: str, operands: str, whole: str, table: str) -> str:
    """Adds an instruction to a function; the name that it alone adds to the calls, which a relocation after
    it may correct. table: the register that the instruction before loaded from a table.
    """
    kind = mnemonic.partition(".")[0]
    if mnemonic != "nop" and not mnemonic.startswith("."):
        loads = re.match(r"pop|ldm|ldr|mov", kind) and re.search(r"\bpc\b", operands.partition("[")[0])
        code.returns = kind in ("b", "bx") or (loads is not None and _CONDITIONAL.search(kind) is None)
    pushed = _pushed(kind, operands)
    code.size = None if code.size is None or pushed is None else code.size + pushed
    if _goes_anywhere(kind, operands, whole, table):
        code.size = None
    elif (
        (branch := re.search(r"<([^>+]+)(\+0x[0-9a-f]+)?>", whole))
        and re.match(r"b(?!i|f|k)|cb", kind)
        and branch[1] != own
    ):
        known = branch[1] in code.calls
        code.calls.add(branch[1])
        return "" if known else branch[1]
    return ""


def _pushed(kind: str, operands: str) -> int | None:
    """What an instruction takes off the stack pointer; None when it sets it to what is not known."""
    if kind.startswith(("push", "vpush")) or (
        kind.startswith(("stmdb", "stmfd", "vstmdb")) and operands.startswith("sp!")
    ):
        return _bytes(operands)
    if kind.startswith(("str", "vstr")):
        before = re.search(r"\[sp, #-(\d+)\]!", operands)
        return int(before[1]) if before else 0
    if not operands.startswith("sp,") or kind.startswith(("cmp", "cmn", "tst")):
        return 0
    number = re.fullmatch(r"sp, (?:sp, )?#(\d+)", operands)
    if kind.startswith("sub") and number:
        return int(number[1])
    back = kind.startswith("mov") and operands in ("sp, r7", "sp, fp", "sp, r11")  # of a frame, at its end
    return 0 if back or (kind.startswith("add") and number and int(number[1]) < 1 << 31) else None


def _goes_anywhere(kind: str, operands: str, whole: str, table: str) -> bool:
    """Whether an instruction calls what a register or a word says; jumps of a switch stay inside."""
    if kind.startswith("blx"):
        return "<" not in whole
    if kind.startswith("bx"):
        return operands != "lr"
    if not operands.startswith("pc,"):
        return False
    if kind.startswith("ldr"):
        return re.search(r"\[sp\], #|\[\w+, r\w+, lsl #2\]", operands) is None
    return operands not in ("pc, lr", f"pc, {table}")


def _bytes(operands: str) -> int:
    """Of the registers in a list."""
    inside = operands[operands.index("{") + 1 : operands.index("}")]
    count = 0
    for part in inside.split(","):
        ends = [int(number) for number in re.findall(r"[rsdq](\d+)", part)]
        count += ends[1] - ends[0] + 1 if len(ends) == 2 else 1
    return count * (8 if re.search(r"\bd\d", inside) else 16 if re.search(r"\bq\d", inside) else 4)


def _deepest(code: dict[str, list[_Code]], name: str, above: tuple[str, ...]) -> int | None:
    """The most that a function needs; None when there is no bound, or no such function."""
    if name in above or name not in code:
        return None
    most = 0
    for one in code[name]:
        below = [_deepest(code, called, (*above, name)) for called in one.calls]
        if one.size is None or None in below:
            return None
        most = max(most, one.size + max((b for b in below if b is not None), default=0))
    return most


def _tool(compiler: Sequence[str], name: str) -> str:
    return _run([*compiler, f"-print-prog-name={name}"]).strip()


def _run(command: Sequence[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
