"""Names of a model as C identifiers, comments and strings: compiled, so that the C compiler is the judge."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aot_model.c.names import comment_text, identifier, identifiers, library_name, string_literal
from aot_model.errors import CompileError

NASTY = [
    "a/b:0",
    "int",
    "*/",
    "*\\",
    "/\\*",
    "??/",
    "???/",
    "????",
    "\\\n",
    "a\0b",
    "é",
    "",
    " ",
    "x" * 5000,
    "*" * 90 + "/",
    "//",
    "/*/",
    '"',
    "%d",
    "\x7f",
    "\ud800",
]


def run(tmp_path: Path, source: str, *flags: str) -> bytes:
    (tmp_path / "a.c").write_text(source)
    command = [
        "gcc",
        "-std=c99",
        "-Wall",
        "-Wextra",
        "-Wpedantic",
        "-Wtrigraphs",
        "-Wcomment",
        "-Werror",
        *flags,
        "a.c",
        "-o",
        "a",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return subprocess.run(["./a"], cwd=tmp_path, check=True, capture_output=True).stdout


def test_comments_do_not_end_early(tmp_path: Path) -> None:
    comments = "".join(
        f"/* {comment_text(t)} */\n" for t in [*NASTY, *(a + b for a in NASTY[2:9] for b in NASTY[2:9])]
    )
    run(tmp_path, f"{comments}int main(void) {{ return 0; }}\n")


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet="*/\\?\n a", max_size=100))
def test_comment_text_has_nothing_that_ends_a_comment(text: str) -> None:
    clean = comment_text(text)
    assert (
        "*/" not in clean
        and "/*" not in clean
        and "\\" not in clean
        and "\n" not in clean
        and "??" not in clean
    )


def test_string_literals_are_the_utf8_bytes(tmp_path: Path) -> None:
    texts = [t for t in NASTY if t.isprintable() or t in ("\\\n", "a\0b", "\x7f")]
    texts = [t for t in texts if "\ud800" not in t and len(t) < 4000] + ["1\x012", "\u00e91"]
    prints = "".join(
        f"fwrite({string_literal(t)}, 1, sizeof {string_literal(t)} - 1, stdout); putchar(1); putchar(10);\n"
        for t in texts
    )
    out = run(tmp_path, f"#include <stdio.h>\nint main(void) {{\n{prints}return 0; }}\n")
    assert out.split(b"\x01\n")[:-1] == [t.encode() for t in texts]


def test_a_very_long_string_stays_within_c99() -> None:
    assert len(string_literal("é" * 5000)) < 4 * 4096


@settings(max_examples=300, deadline=None)
@given(st.lists(st.text(max_size=12), max_size=12))
def test_identifiers_are_legal_and_differ(texts: list[str]) -> None:
    names = identifiers(texts)
    assert all(n.isidentifier() and n.isascii() and not n.startswith("_") for n in names)
    assert len({n.lower() for n in names}) == len(texts)


@pytest.mark.parametrize(
    "word", ["int", "class", "errno", "NAN", "linux", "INT8_MAX", "SIZE_MAX", "template", "true", "NULL"]
)
def test_reserved_words_are_avoided(word: str) -> None:
    assert identifier(word) != word


def test_identifiers_keep_good_names() -> None:
    assert identifiers(["input", "serving_default_x:0", "x", "x"]) == [
        "input",
        "serving_default_x_0",
        "x",
        "x_2",
    ]


def test_ten_thousand_equal_names() -> None:
    assert len(set(identifiers(["w"] * 10_000))) == 10_000


def test_library_names() -> None:
    assert library_name(None, Path("a/kws f32.onnx")) == "kws_f32"
    assert library_name(None, Path("time.onnx")) == "time_model"
    assert library_name("kws", Path("x.onnx")) == "kws"
    with pytest.raises(CompileError, match="E501"):
        library_name("a b", Path("x.onnx"))
