"""`aot-model size`: code and constants of a compiled library, by layer, and their budget.

Sizes are those of the object's sections and symbols. Whose a symbol is, the C says: a layer's are those that
its call names, and what these name. With debug information (-g) what was inlined into the function that calls
the layers is told apart as well.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from aot_model.emit.files import write_files
from aot_model.errors import CompileError, Problem, fail
from aot_model.host.compiler import words
from aot_model.host.timing import begin_of, calls_by_line
from aot_model.library.elf_object import ElfObject, Symbol
from aot_model.library.metadata import Metadata

_WORD = re.compile(r"[A-Za-z_]\w*")


@dataclass
class Part:
    """Bytes of the image: of a layer, of a function or table that several layers share, or of the rest."""

    name: str
    op: str = ""
    code: int = 0
    constants: int = 0
    shared_by: int = 0

    def add(self, size: int, is_code: bool) -> None:
        if is_code:
            self.code += size
        else:
            self.constants += size


@dataclass
class Sizes:
    """What the objects of a library bring into the image of a program."""

    name: str
    layers: list[Part]
    shared: list[Part] = field(default_factory=list)
    rest: list[Part] = field(default_factory=list)
    code: int = 0
    constants: int = 0
    elsewhere: tuple[str, ...] = ()
    """Functions of other libraries, which are not counted."""

    @property
    def flash(self) -> int:
        return self.code + self.constants

    def facts(self) -> dict[str, Any]:
        """For JSON."""

        def told(part: Part) -> dict[str, Any]:
            op = {"op": part.op} if part.op else {}
            shared = {"layers": part.shared_by} if part.shared_by else {}
            size = {"code_bytes": part.code, "constant_bytes": part.constants}
            return {"name": part.name, **op, **shared, **size}

        return {
            "name": self.name,
            "code_bytes": self.code,
            "constant_bytes": self.constants,
            "layers": [told(p) for p in self.layers],
            "shared": [told(p) for p in self.shared],
            "rest": [told(p) for p in self.rest],
            "not_counted": list(self.elsewhere),
        }  # fmt: skip


def size(arguments: argparse.Namespace) -> int:
    """Prints or writes the table. CompileError E402 when code and constants are more than --max-flash."""
    found = sizes(arguments.library, arguments.objects, words(arguments.compiler or "", "--compiler"))
    if arguments.json:
        text = json.dumps(found.facts(), indent=1)
    else:
        text = (
            f"{found.name}: {found.code:,} bytes of code, {found.constants:,} of constants\n{_table(found)}"
        )
    if arguments.max_flash is not None and found.flash > arguments.max_flash:
        said = (
            f"needs {found.flash:,} bytes of flash, {found.code:,} of code and {found.constants:,} of "
            f"constants; the budget is {arguments.max_flash:,}\n{_table(found)}"
        )
        hint = (
            "-Os, and the target option optimize=size where there is one (`aot-model targets`), make "
            "code small; int8 weights are a quarter of floats; --params external moves constants "
            "elsewhere; --metadata none leaves the metadata out"
        )
        raise CompileError([Problem("E402", said, str(arguments.library), hint)])
    if arguments.output is None:
        print(text)
    else:
        write_files({arguments.output: text + "\n"})
    return 0


def sizes(library: Path, objects: Sequence[Path], compiler: Sequence[str] = ()) -> Sizes:
    """Of the library with this .json, whose .c is beside it, compiled to these objects.

    compiler: the command that made them, whose addr2line reads debug information. CompileError E101, E102.
    """
    facts = Metadata.read(library)
    try:
        source = library.with_suffix(".c").read_text(encoding="utf-8")
    except OSError as error:
        raise fail("E101", f"cannot be read: {error.strerror}", where=str(error.filename)) from None
    files = [ElfObject.read(path) for path in objects]
    lines = source.splitlines()
    entry = next(f for f in (f"{facts.name}_layers", f"{facts.name}_run") if begin_of(lines, f) is not None)
    if not any(s.name == f"{facts.name}_run" and s.is_function for f in files for s in f.defined()):
        raise fail("E102", f"has no code of {facts.name}_run()", where=str(objects[0]),
                   hint="give the object of the same library, compiled without -flto")  # fmt: skip
    calls = calls_by_line(lines, entry)
    owners = _owners(source, lines, calls)
    found = Sizes(facts.name, [Part(layer.name, layer.op) for layer in facts.layers])
    between, rest = Part(f"{facts.name}_run(), between the layers"), Part("interfaces, metadata, other")
    shared: dict[str, Part] = {}
    for file in files:
        found.code += file.stored(is_code=True)
        found.constants += file.stored(is_code=False)
        for symbol in file.defined():
            base = symbol.name.partition(".")[0]
            if symbol.is_function and base == entry:
                inlined = _inlined(file, symbol, entry, calls, compiler)
                for call, count in inlined.items():
                    found.layers[call].add(count, is_code=True)
                between.add(symbol.size - sum(inlined.values()), is_code=True)
            elif base == f"{facts.name}_run":
                between.add(symbol.size, is_code=True)
            else:
                of = owners.get(base, frozenset())
                part = rest
                if len(of) == 1:
                    part = found.layers[min(of)]
                elif of:
                    part = shared.setdefault(base, Part(base, shared_by=len(of)))
                part.add(symbol.size, symbol.is_function)
    parts = [*found.layers, *shared.values(), between]
    rest.code = found.code - sum(p.code for p in parts)
    rest.constants = found.constants - sum(p.constants for p in parts)
    found.shared = sorted(shared.values(), key=lambda p: (-p.code - p.constants, p.name))
    found.rest = [between, rest]
    own = {s.name for f in files for s in f.defined()}
    found.elsewhere = tuple(sorted({s.name for f in files for s in f.symbols if s.section is None} - own))
    return found


def _owners(source: str, lines: Sequence[str], calls: Mapping[int, int]) -> dict[str, frozenset[int]]:
    """By name of a function or table in the C: the calls that name it, or what names it."""
    bodies = _definitions(source)
    named: dict[int, set[str]] = {}
    for line, call in calls.items():
        named.setdefault(call, set()).update(_WORD.findall(lines[line - 1]))
    owners: dict[str, set[int]] = {}
    for call, todo in named.items():
        done: set[str] = set()
        while todo:
            name = todo.pop()
            if name not in done:
                done.add(name)
                owners.setdefault(name, set()).add(call)
                todo |= bodies.get(name, frozenset()) - done
    return {name: frozenset(of) for name, of in owners.items()}


def _definitions(source: str) -> dict[str, frozenset[str]]:
    """By name: the words of what a function or a table of the C is defined as."""
    text = re.sub(r'/\*.*?\*/|"(?:\\.|[^"\\\n])*"', " ", source, flags=re.DOTALL)
    found: dict[str, frozenset[str]] = {}
    for head, body in re.findall(r"(?ms)^((?:[A-Za-z_]|\[\[)[^{};#]*?)\{$(.*?)^\}", text):
        head = re.sub(r"__attribute__\(\(.*?\)\)", " ", head, flags=re.DOTALL)
        if name := re.search(r"(\w+)\s*\[.*=" if "=" in head else r"(\w+)\s*\(", head, re.DOTALL):
            found[name[1]] = frozenset(_WORD.findall(body))
    return found


def _inlined(
    file: ElfObject, symbol: Symbol, entry: str, calls: Mapping[int, int], compiler: Sequence[str]
) -> dict[int, int]:
    """By call: bytes of the function that calls the layers. Empty where debug information does not say it."""
    if not compiler:
        return {}
    assert symbol.section is not None
    addresses = range(symbol.address, symbol.address + symbol.size)
    try:
        tool = _addr2line(compiler)
        section = file.sections[symbol.section].name
        command = [tool, "-j", section, "-a", "-i", "-f", "-e", str(file.path)]
        text = _output(command, "\n".join(f"{a:x}" for a in addresses))
    except (OSError, subprocess.CalledProcessError):
        return {}
    found: dict[int, int] = {}
    for line in _lines_of(text.splitlines(), entry):
        if line in calls:
            found[calls[line]] = found.get(calls[line], 0) + 1
    return found


def _lines_of(text: Iterable[str], function: str) -> Iterable[int]:
    """For each address that addr2line -a -i -f tells of: the line of a function that it is of."""
    name = ""
    for line in text:
        if place := re.match(r".*:(\d+)(?: \(discriminator \d+\))?$", line):
            if name.partition(".")[0] == function:
                yield int(place[1])
        elif not line.startswith("0x"):
            name = line


def _addr2line(compiler: Sequence[str]) -> str:
    """Of the compiler's binutils; Debian's cross compilers for Linux name that of the machine that builds."""
    named = _output([*compiler, "-print-prog-name=addr2line"]).strip()
    beside = re.sub(r"gcc(-\d+)?$", "addr2line", compiler[0])
    return beside if named == "addr2line" and beside != compiler[0] and shutil.which(beside) else named


def _output(command: Sequence[str], given: str | None = None) -> str:
    return subprocess.run(command, input=given, capture_output=True, text=True, check=True,
                          errors="replace").stdout  # fmt: skip


def _table(found: Sizes) -> str:
    from aot_model.c.names import printable
    from aot_model.cli.table import table

    def row(part: Part) -> Sequence[str]:
        many = f" ({part.shared_by} layers)" if part.shared_by else ""
        return (
            printable(part.name, 48) + many,
            part.op,
            f"{part.code:,}" if part.code else "-",
            f"{part.constants:,}" if part.constants else "-",
        )

    rows = [row(part) for part in (*found.layers, *found.shared, *found.rest)]
    rows.append(("together", "", f"{found.code:,}", f"{found.constants:,}"))
    lines = [table(("layer", "operator", "code", "constants"), rows, (2, 3))]
    if found.elsewhere:
        lines.append(f"not counted, of other libraries: {', '.join(found.elsewhere)}")
    return "\n".join(lines)
