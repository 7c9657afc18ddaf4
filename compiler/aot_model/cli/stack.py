"""`aot-model stack`: what <name>_run() needs of the stack, from the call graph that GCC writes
(-fcallgraph-info=su).

The sum is an upper bound, or says of what it is not: a call through a pointer counts as one of whichever
function whose address is taken needs most; functions of the C library are read off the toolchain's archives;
each that is not counted needs what the user allows for it.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import Any

from aot_model.cli.library_stack import library_needs, undefined
from aot_model.emit.files import write_files
from aot_model.errors import CompileError, Problem, fail
from aot_model.host.compiler import words
from aot_model.installation import include_dir

_NODE = re.compile(r'^node: \{ title: "(.*?)" label: "(.*?)"', re.MULTILINE)
_EDGE = re.compile(r'^edge: \{ sourcename: "(.*?)" targetname: "(.*?)"', re.MULTILINE)


@dataclass(frozen=True)
class Function:
    """A function of the library. `size` is None for one of another library, which GCC does not see."""

    name: str
    size: int | None
    calls: tuple[str, ...]
    place: tuple[str, int] = ("", 0)
    """File and line of its definition."""


@dataclass(frozen=True)
class Depth:
    """The most stack that a function needs with those that it calls: bytes, the functions on the way, those
    not counted.
    """

    size: int
    path: tuple[str, ...]
    uncounted: frozenset[str]


def stack(arguments: argparse.Namespace) -> int:
    """Prints or writes the need of <name>_run(). CompileError E402 when it exceeds --max-stack, or has no
    bound.
    """
    library = arguments.library
    try:
        facts = json.loads(library.read_text(encoding="utf-8"))
        name = str(facts["c_name"])
        hooks = _hooks(name, facts)
        source = library.with_suffix(".c").read_text(encoding="utf-8")
        files = [path if path.suffix == ".ci" else path.with_suffix(".ci") for path in arguments.objects]
        graph = "".join(file.read_text(encoding="utf-8") for file in files)
    except OSError as error:
        hint = "compile the library with GCC 10 or newer and -fcallgraph-info=su, without -flto"
        raise fail(
            "E101", f"cannot be read: {error.strerror}", where=str(error.filename), hint=hint
        ) from None
    except (ValueError, KeyError, TypeError):
        raise fail(
            "E102",
            "is not the metadata of a library",
            where=str(library),
            hint="give the .json that 'aot-model compile' wrote",
        ) from None
    entry = f"{name}_run"
    functions = call_graph(graph, source)
    if entry not in functions:
        raise fail(
            "E102", f"has no function {entry}()", where=str(files[0]), hint="give the .ci of the same library"
        )
    functions = with_pointers(
        functions, source, entry, f"{', '.join(hooks)}, which the program has" if hooks else ""
    )
    if arguments.compiler:
        command = words(arguments.compiler, "--compiler")
        unseen = undefined(command, arguments.objects) - functions.keys()
        needs = library_needs(command, [*external(functions), *sorted(unseen)])
        functions = with_library(with_helpers(functions, unseen & needs.keys()), needs)
    allowance = arguments.stack_allowance or 0
    need = depth(functions, entry, allowance)
    text = _table(functions, entry, need, allowance)
    if arguments.max_stack is not None and need.uncounted and arguments.stack_allowance is None:
        hint = "give what each of them may need: --stack-allowance, STACK_ALLOWANCE in build rules"
        if not arguments.compiler:
            hint += "; or --compiler with the command that links, in whose libraries they are"
        said = (
            f"{entry}() needs {need.size:,} bytes of stack, and those of functions that cannot be "
            f"counted: {', '.join(sorted(need.uncounted))}"
        )
        raise CompileError([Problem("E402", f"{said}\n{text}", str(library), hint)])
    if arguments.max_stack is not None and need.size > arguments.max_stack:
        hint = (
            "optimised code (-O2, -Os) needs less than -O0; a layer that stands out may need less for "
            "another target option (`aot-model targets`)"
        )
        raise CompileError(
            [
                Problem(
                    "E402",
                    f"{entry}() needs {need.size:,} bytes of stack, the budget is {arguments.max_stack:,}\n"
                    f"{text}",
                    str(library),
                    hint,
                )
            ]
        )
    said = f"{entry}() needs {need.size:,} bytes of stack\n{text}\n"
    if arguments.output is None:
        print(said, end="")
    else:
        write_files({arguments.output: said})
    return 0


def call_graph(graph: str, source: str) -> dict[str, Function]:
    """Functions by the title that GCC gives them. CompileError E402 for one whose stack has no bound.

    graph: the text of .ci files (VCG). source: the C; functions in assembler tell GCC nothing, so their
    pushes are read there.
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
        file, _, line = ([*label.split("\\n"), ""])[1].rpartition(":")[0].rpartition(":")
        found[title] = Function(
            name, own, tuple(calls.get(title, ())), (file, int(line) if line.isdigit() else 0)
        )
    return found


POINTER = "__indirect_call"
"""The title that GCC gives to whatever a pointer points at."""


def _hooks(name: str, facts: Mapping[str, Any]) -> list[str]:
    """Pointers to functions of the program that a run calls."""
    options = facts.get("options", {})
    return [
        *([f"{name}_ticks"] if options.get("profile") else []),
        *([f"{name}_trace"] if "trace" in facts else []),
        *([f"{name}_fetch_begin", f"{name}_fetch_wait"] if options.get("fetch") else []),
    ]


def with_pointers(
    functions: Mapping[str, Function], source: str, entry: str, outside: str
) -> dict[str, Function]:
    """Calls through pointers are calls of every function whose address is taken.

    Those behind the entry in its file are none of them: what it does not know it does not call, and they are
    for users (interfaces that call it). outside: what else may be called so. With no such function a call is
    not counted.
    """
    if POINTER not in functions:
        return dict(functions)
    file, line = functions[entry].place
    known = {title for title, f in functions.items() if f.place[0] != file or f.place[1] < line}
    taken = [title for title in address_taken(functions, source) if title in known]
    pointer = Function("a call through a pointer", 0 if taken else None, tuple(taken))
    more = {}
    if outside and taken:
        more["outside"] = Function(outside, None, ())
        pointer = Function(pointer.name, 0, (*taken, "outside"))
    return {**functions, POINTER: pointer, **more}


def address_taken(functions: Mapping[str, Function], source: str) -> list[str]:
    """Functions that are named without being called, in the C or a header of the runtime, or of the C that
    nobody calls by name.
    """
    text = source + "".join(file.read_text(encoding="utf-8") for file in sorted(include_dir().rglob("*.h")))
    text = re.sub(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"', " ", text, flags=re.DOTALL)
    named = set(re.findall(r"\b([A-Za-z_]\w*)\b(?!\s*\()", text))
    called = {callee for function in functions.values() for callee in function.calls}
    own = [(title, function) for title, function in functions.items() if function.size is not None]
    return [
        t
        for t, f in own
        if f.name.partition(".")[0] in named
        or (":" in t and t not in called and not f.place[0].endswith(".h"))
    ]


def external(functions: Mapping[str, Function]) -> list[str]:
    """Functions of other libraries, as a linker knows them."""
    return [
        title
        for title, function in functions.items()
        if function.size is None and re.fullmatch(r"\w+", title) and title != POINTER
    ]


def with_helpers(functions: Mapping[str, Function], helpers: Collection[str]) -> dict[str, Function]:
    """Any function may call the helpers that the call graph lacks."""
    callers = {
        title: replace(f, calls=(*f.calls, *sorted(helpers))) if f.size is not None else f
        for title, f in functions.items()
    }
    return {**callers, **{name: Function(name, None, ()) for name in helpers}}


def with_library(functions: Mapping[str, Function], needs: Mapping[str, int]) -> dict[str, Function]:
    """Functions of other libraries have the sizes that are known of them."""
    return {
        title: Function(f.name, needs[title], ()) if f.size is None and title in needs else f
        for title, f in functions.items()
    }


def naked_functions(source: str) -> dict[str, int]:
    """Bytes that functions in assembler push, by name."""
    found = {}
    for name, body in re.findall(r"^AOT_MODEL_NAKED\b.*?(\w+)\(\n(.*?)\n}", source, re.DOTALL | re.MULTILINE):
        pushed = sum(_registers(registers) * 4 for registers in re.findall(r'"push \{(.*?)\}', body))
        pushed += sum(
            _registers(registers) * (8 if "d" in registers else 4)
            for registers in re.findall(r'"vpush \{(.*?)\}', body)
        )
        found[name] = pushed + sum(
            int(size) for size in re.findall(r'"sub(?:\.w)? sp, (?:sp, )?#(\d+)', body)
        )
    return found


def _registers(text: str) -> int:
    """How many a list like `r4-r11, lr` has."""
    count = 0
    for part in text.split(","):
        ends = [int(number) for number in re.findall(r"\d+", part)]
        count += ends[1] - ends[0] + 1 if len(ends) == 2 else 1
    return count


def depth(functions: Mapping[str, Function], entry: str, allowance: int = 0) -> Depth:
    """The deepest way from a function; each that is not counted needs `allowance`. CompileError E402 for one
    that calls itself.
    """
    known: dict[str, Depth] = {}

    def visit(title: str, above: tuple[str, ...]) -> Depth:
        if title in above:
            raise fail("E402", f"{functions[title].name}() calls itself: its stack has no bound")
        if title not in known:
            function = functions[title]
            if function.size is None:
                known[title] = Depth(allowance, (), frozenset([function.name.removeprefix("__builtin_")]))
            else:
                below = [visit(callee, (*above, title)) for callee in dict.fromkeys(function.calls)]
                deepest = max(below, key=lambda d: d.size, default=Depth(0, (), frozenset()))
                uncounted = frozenset[str]().union(*(d.uncounted for d in below))
                known[title] = Depth(function.size + deepest.size, (title, *deepest.path), uncounted)
        return known[title]

    return visit(entry, ())


def _table(functions: Mapping[str, Function], entry: str, need: Depth, allowance: int) -> str:
    """What it calls, the most expensive first, and the deepest way."""
    from aot_model.cli.table import table

    called = {title: depth(functions, title, allowance) for title in dict.fromkeys(functions[entry].calls)}
    rows = [(entry, f"{functions[entry].size or 0:,}", f"{need.size:,}")]
    rows += [
        (functions[title].name, f"{functions[title].size or 0:,}", f"{d.size:,}")
        for title, d in sorted(called.items(), key=lambda item: -item[1].size)
        if functions[title].size is not None
    ]
    lines = [table(("function", "own", "with what it calls"), rows, (1, 2))]
    lines.append("deepest: " + " > ".join(functions[title].name for title in need.path))
    if need.uncounted:
        how = f"{allowance:,} bytes allowed for each" if allowance else "not counted"
        lines.append(f"{how}, not of this library: {', '.join(sorted(need.uncounted))}")
    return "\n".join(lines)
