"""`aot-model stack`: what <name>_run() needs of the stack, from the call graph that GCC writes (-fcallgraph-info=su)."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass

from aot_model.emit.files import write_files
from aot_model.errors import CompileError, Problem, fail

_NODE = re.compile(r'^node: \{ title: "(.*?)" label: "(.*?)"', re.MULTILINE)
_EDGE = re.compile(r'^edge: \{ sourcename: "(.*?)" targetname: "(.*?)"', re.MULTILINE)


@dataclass(frozen=True)
class Function:
    """A function of the library. `size` is None for one of another library, which GCC does not see."""

    name: str
    size: int | None
    calls: tuple[str, ...]


@dataclass(frozen=True)
class Depth:
    """The most stack that a function needs with those that it calls: bytes, the functions on the way, those not counted."""

    size: int
    path: tuple[str, ...]
    uncounted: frozenset[str]


def stack(arguments: argparse.Namespace) -> int:
    """Prints or writes the need of <name>_run(). CompileError E402 when it exceeds --max-stack, or has no bound."""
    library = arguments.library
    try:
        name = str(json.loads(library.read_text(encoding="utf-8"))["c_name"])
        source = library.with_suffix(".c").read_text(encoding="utf-8")
        files = [path if path.suffix == ".ci" else path.with_suffix(".ci") for path in arguments.objects]
        graph = "".join(file.read_text(encoding="utf-8") for file in files)
    except OSError as error:
        hint = "compile the library with GCC 10 or newer and -fcallgraph-info=su, without -flto"
        raise fail("E101", f"cannot be read: {error.strerror}", where=str(error.filename), hint=hint) from None
    except (ValueError, KeyError, TypeError):
        raise fail("E102", "is not the metadata of a library", where=str(library), hint="give the .json that 'aot-model compile' wrote") from None
    functions = call_graph(graph, source)
    entry = f"{name}_run"
    if entry not in functions:
        raise fail("E102", f"has no function {entry}()", where=str(files[0]), hint="give the .ci of the same library")
    need = depth(functions, entry)
    text = _table(functions, entry, need)
    if arguments.max_stack is not None and need.size > arguments.max_stack:
        hint = "optimised code (-O2, -Os) needs less than -O0; a layer that stands out may need less for another target option (`aot-model targets`)"
        raise CompileError([Problem("E402", f"{entry}() needs {need.size:,} bytes of stack, the budget is {arguments.max_stack:,}\n{text}", str(library), hint)])
    said = f"{entry}() needs {need.size:,} bytes of stack\n{text}\n"
    if arguments.output is None:
        print(said, end="")
    else:
        write_files({arguments.output: said})
    return 0


def call_graph(graph: str, source: str) -> dict[str, Function]:
    """Functions by the title that GCC gives them. CompileError E402 for one whose stack has no bound.

    graph: the text of .ci files (VCG). source: the C; functions in assembler tell GCC nothing, so their pushes are read there.
    """
    calls: dict[str, list[str]] = {}
    for caller, callee in _EDGE.findall(graph):
        calls.setdefault(caller, []).append(callee)
    assembler = naked_functions(source)
    found = {}
    for title, label in _NODE.findall(graph):
        name = label.split("\\n")[0]
        size = re.search(r"(\d+) bytes \((\w+)", label)
        if size and size[2] == "dynamic" and "bounded" not in label:
            raise fail("E402", f"{name}() takes stack as it runs: there is no bound")
        own = assembler.get(name, int(size[1])) if size else None
        found[title] = Function(name, own, tuple(calls.get(title, ())))
    return found


def naked_functions(source: str) -> dict[str, int]:
    """Bytes that functions in assembler push, by name."""
    found = {}
    for name, body in re.findall(r"__attribute__\(\(naked\b.*?(\w+)\(\n(.*?)\n}", source, re.DOTALL):
        pushed = sum(_registers(registers) * 4 for registers in re.findall(r'"push \{(.*?)\}', body))
        pushed += sum(_registers(registers) * (8 if "d" in registers else 4) for registers in re.findall(r'"vpush \{(.*?)\}', body))
        found[name] = pushed + sum(int(size) for size in re.findall(r'"sub(?:\.w)? sp, (?:sp, )?#(\d+)', body))
    return found


def _registers(text: str) -> int:
    """How many a list like `r4-r11, lr` has."""
    count = 0
    for part in text.split(","):
        ends = [int(number) for number in re.findall(r"\d+", part)]
        count += ends[1] - ends[0] + 1 if len(ends) == 2 else 1
    return count


def depth(functions: Mapping[str, Function], entry: str) -> Depth:
    """The deepest way from a function. CompileError E402 for one that calls itself."""
    known: dict[str, Depth] = {}

    def visit(title: str, above: tuple[str, ...]) -> Depth:
        if title in above:
            raise fail("E402", f"{functions[title].name}() calls itself: its stack has no bound")
        if title not in known:
            function = functions[title]
            if function.size is None:
                known[title] = Depth(0, (), frozenset([function.name.removeprefix("__builtin_")]))
            else:
                below = [visit(callee, (*above, title)) for callee in dict.fromkeys(function.calls)]
                deepest = max(below, key=lambda d: d.size, default=Depth(0, (), frozenset()))
                uncounted = frozenset[str]().union(*(d.uncounted for d in below))
                known[title] = Depth(function.size + deepest.size, (title, *deepest.path), uncounted)
        return known[title]

    return visit(entry, ())


def _table(functions: Mapping[str, Function], entry: str, need: Depth) -> str:
    """What it calls, the most expensive first, and the deepest way."""
    from aot_model.cli.table import table

    called = {title: depth(functions, title) for title in dict.fromkeys(functions[entry].calls)}
    rows = [(entry, f"{functions[entry].size or 0:,}", f"{need.size:,}")]
    rows += [
        (functions[title].name, f"{functions[title].size or 0:,}", f"{d.size:,}")
        for title, d in sorted(called.items(), key=lambda item: -item[1].size)
        if functions[title].size is not None
    ]
    lines = [table(("function", "own", "with what it calls"), rows, (1, 2))]
    lines.append("deepest: " + " > ".join(functions[title].name for title in need.path))
    if need.uncounted:
        lines.append(f"not counted, not of this library: {', '.join(sorted(need.uncounted))}")
    return "\n".join(lines)
