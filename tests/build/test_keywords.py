"""What is written from the table of keywords (compiler/aot_model/cli/keywords.py): attributes of Bazel,
documentation.

A stale file fails; `pytest tests/build/test_keywords.py --update-golden` writes it.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from pathlib import Path

import pytest
from cmake_project import ROOT
from keyword_samples import FILES, words, write_model_for_all

from aot_model.c.names import RESERVED_NAMES
from aot_model.cli import keywords, main
from aot_model.cli.keywords import OPTIONS, Keyword
from written import Parts, check_written

SYSTEMS = ("cmake", "bazel", "scons")


def attribute(keyword: Keyword) -> str:
    """The attribute of the Bazel rule."""
    if keyword.kind == "file":
        return (
            f'    "{keyword.name}": attr.label(allow_single_file = True, doc = "{keyword.help[0].upper()}'
            f'{keyword.help[1:]}."),\n'
        )
    kind = {"text": "string", "list": "string_list", "map": "string_dict", "flag": "bool"}[keyword.kind]
    values = (
        f"values = {('', *keyword.choices)!r}, ".replace("'", '"').replace("(", "[").replace(")", "]")
        if keyword.choices and kind == "string"
        else ""
    )
    help = keyword.help.replace('"', '\\"')
    return f'    "{keyword.name}": attr.{kind}({values}doc = "{help[0].upper()}{help[1:]}."),\n'


def options_bzl() -> str:
    head = (
        '"""Options of the compiler that are attributes of the rules: written by '
        'tests/build/test_keywords.py from keywords.py."""\n\n'
    )
    rows = sorted(OPTIONS, key=lambda k: k.name)
    rows_of = [[k for k in OPTIONS if (k.kind == "file") == is_file] for is_file in (False, True)]
    flags, files = ("".join(f'    "{k.name}": "{k.flag}",\n' for k in found) for found in rows_of)
    names = "".join(f'    "{name}",\n' for name in RESERVED_NAMES)
    reserved = (
        "\n# Names that no library has: programs include headers that are called "
        f"so.\nRESERVED_NAMES = [\n{names}]\n"
    )
    return (
        f"{head}# The options in the order of the command line.\nOPTION_FLAGS = "
        f"{{\n{flags}}}\n\nOPTION_FILES = {{\n{files}}}\n\n"
        f"OPTION_ATTRS = {{\n{''.join(map(attribute, rows))}}}\n{reserved}"
    )


def call(function: str, rows: Sequence[Keyword], first: str) -> str:
    """A CMake function as the comment on top of its file has it."""
    lines = [f"{function}({first}"]
    for keyword in rows:
        if name := keyword.spelling("cmake"):
            value = f" {keyword.value}" if keyword.value else ""
            dots = "..." if keyword.kind in ("list", "map") else ""
            shown = (
                f"{name}{value}{dots}"
                if name in ("MODEL", "LIBRARY", "LIBRARIES", "VECTORS")
                else f"[{name}{value}{dots}]"
            )
            help = re.sub(r"; (Bazel|SCons):.*?(?=; |$)", "", keyword.help)
            lines += textwrap.wrap(help, 118, initial_indent=f"    {shown:<43} ", subsequent_indent=" " * 48)
    return "".join(f"# {line}".rstrip() + "\n" for line in [*lines, ")"])


def arguments() -> str:
    """The arguments of the methods in the documentation of the SCons tool."""
    lines = []
    for keyword in keywords.LIBRARY:
        if name := keyword.spelling("scons"):
            help = re.sub(r"; Bazel:.*?(?=; |$)", "", keyword.help) + (
                f": {keyword.value}" if keyword.choices else ""
            )
            lines += textwrap.wrap(help, 110, initial_indent=f"    {name:<15} ", subsequent_indent=" " * 20)
    return "\n".join(lines)


def table(title: str, rows: Sequence[Keyword]) -> str:
    """A table of docs/build-systems.md."""
    lines = [
        f"### {title}",
        "",
        "| what | values | CMake | Bazel | SCons |",
        "| --- | --- | --- | --- | --- |",
    ]
    for keyword in rows:
        names = " | ".join(f"`{name}`" if (name := keyword.spelling(system)) else "" for system in SYSTEMS)
        value = keyword.value.replace("|", "\\|")
        several = " …" if keyword.kind in ("list", "map") else ""
        help = re.sub(r"(<name>[\w.()]*)", r"`\1`", keyword.help.replace("|", "\\|"))
        lines.append(f"| {help} | {f'`{value}`{several}' if value else ''} | {names} |")
    return "\n".join(lines) + "\n"


def tables() -> str:
    titles = [
        ("`aot_model_library`, `AotModelLibrary`", keywords.LIBRARY),
        ("`aot_model_arena`, `AotModelArena`", keywords.ARENA),
        ("`aot_model_test`, `AotModelTest`", keywords.TEST),
        ("`aot_model_benchmark`, `AotModelBenchmark`", keywords.BENCHMARK),
    ]
    return "\n".join(table(title, rows) for title, rows in titles)


def test_every_option_has_a_sample_that_compiles(tmp_path: Path) -> None:
    """A new row of the table needs one in keyword_samples.py, and is tried in each build system then."""
    write_model_for_all(tmp_path / "m.onnx")
    assert (
        main(
            [
                "compile",
                str(tmp_path / "m.onnx"),
                "-o",
                str(tmp_path / "o"),
                "--name=net",
                "--target=cmsis-nn,c",
                *words(f"{tmp_path}/"),
            ]
        )
        == 0
    )
    assert {path.name for path in (tmp_path / "o").iterdir()} == FILES


GENERATED: Parts = {
    "bazel/options.bzl": (r"(?s).*", options_bzl),
    "cmake/AotModelLibrary.cmake": (
        r"(?ms)^# aot_model_library\(.*?^# \)\n",
        lambda: call("aot_model_library", keywords.LIBRARY, "<target>"),
    ),
    "cmake/AotModelArena.cmake": (
        r"(?ms)^# aot_model_arena\(.*?^# \)\n",
        lambda: call("aot_model_arena", keywords.ARENA, "<target>"),
    ),
    "cmake/AotModelTest.cmake": (
        r"(?ms)^# aot_model_test\(.*?^# \)\n",
        lambda: call("aot_model_test", keywords.TEST, "<target>"),
    ),
    "compiler/aot_model/scons/aot_model/__init__.py": (
        r"(?s)(?<=have these\narguments:\n\n).*?(?=\n\n)",
        arguments,
    ),
    "docs/build-systems.md": (r"(?ms)(?<=^## Keywords\n\n).*?(?=^## )", lambda: tables() + "\n"),
}


@pytest.mark.parametrize("name", GENERATED)
def test_written_from_the_table(name: str, pytestconfig: pytest.Config) -> None:
    check_written(GENERATED, name, pytestconfig)


RULES = {
    "library": keywords.LIBRARY,
    "arena": keywords.ARENA,
    "test": keywords.TEST,
    "benchmark": keywords.BENCHMARK,
}
OF_EVERY_RULE = {"name", "deps", "tags", "testonly", "visibility", "target_compatible_with"}


@pytest.mark.parametrize("kind", RULES)
def test_rules_have_the_keywords_of_the_table(kind: str) -> None:
    """Parameters in the text of the rules; the compiler's options come by **kwargs, from the table itself."""
    rows = [k for k in RULES[kind] if kind != "library" or k not in OPTIONS]
    bazel = "".join(path.read_text() for path in (ROOT / "bazel").glob("*.bzl"))
    scons = "".join(path.read_text() for path in (ROOT / "compiler/aot_model/scons/aot_model").glob("*.py"))
    cmake = "".join(path.read_text() for path in (ROOT / "cmake").glob("*.cmake"))

    found = re.search(rf"def aot_model_{kind}\((.*?)\*\*", bazel, re.DOTALL)
    assert found and set(re.findall(r"(\w+)(?: = [^,]+)?,", found[1])) - OF_EVERY_RULE == {
        k.spelling("bazel") for k in rows
    } - {"", "tags"}

    parts = re.findall(
        rf"def (?:aot_model_{kind}{'|_sources' if kind == 'library' else ''})\((.*?)\*\*", scons, re.DOTALL
    )
    names = {name for part in parts for name in re.findall(r"(\w+): ", part)}
    assert names - {"env", "name", "call"} == {k.spelling("scons") for k in rows} - {""}

    call = re.search(
        rf"function\(aot_model_{kind} target\).*?cmake_parse_arguments\((.*?)\)", cmake, re.DOTALL
    )
    assert call and set(re.findall(r"[A-Z][A-Z_]+", call[1])) - {"PARSE_ARGV"} == {
        k.spelling("cmake") for k in rows
    } - {""}
