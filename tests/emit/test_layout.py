"""The text of generated C: one indentation, that of clang-format; lines of at most 110 columns; no token
touched.
"""

from __future__ import annotations

import difflib
import re
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from aot_model.c.layout import WIDTH, broken, layout
from aot_model.emit.view import Options
from aot_model.pipeline import Request, compile_model
from corpus import MODELS, REASON
from onnx_models import save, small_cnn

STYLE = Path(__file__).with_name("clang-format.yaml")
ONES = ("kws_int8.tflite", "digits_vit_qdq.onnx", "k_lstm_f32.tflite")
EVERYTHING = Options(
    workspace="caller", interfaces=("module", "positional", "packed"), profile=True, trace=True
)


def code_of(model: Path, target: str, options: Options) -> str:
    return (
        compile_model(Request(model, "m", target, library=options))
        .texts["m.c"]
        .split("\n/* ---- values of")[0]
    )


def check(code: str, folder: Path) -> None:
    long = [line for line in code.splitlines() if len(line) > WIDTH and not line.startswith("#error")]
    assert not long
    assert layout(code) == code
    if shutil.which("clang-format") is None:
        pytest.skip("no clang-format")
    (folder / "m.c").write_text(code)
    other = subprocess.run(
        ["clang-format", f"--style=file:{STYLE}", "m.c"],
        cwd=folder,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.splitlines()
    ours = code.splitlines()
    matcher = difflib.SequenceMatcher(
        None, [line.strip() for line in ours], [line.strip() for line in other], autojunk=False
    )
    pairs = [(b.a + k, b.b + k) for b in matcher.get_matching_blocks() for k in range(b.size)]
    assert len(pairs) > 0.9 * len(ours)
    # clang-format aligns what goes on behind nested parentheses and colons in ways of its own: the begin of
    # statements counts
    begins = [
        (i, j)
        for i, j in pairs
        if re.search(r"(^|[;{}]|\*/)$", ours[i - 1].rstrip())
        or (ours[i - 1].startswith("#") and not ours[i - 1].endswith("\\"))
    ]
    assert len(begins) > 0.4 * len(ours)
    assert [(ours[i], other[j]) for i, j in begins if ours[i] != other[j]] == []


@pytest.mark.parametrize("target", ["c", "host", "cortex-m4", "cortex-m55"])
def test_small_cnn_with_all_interfaces(target: str, tmp_path: Path) -> None:
    check(code_of(save(small_cnn(), tmp_path / "cnn.onnx"), target, EVERYTHING), tmp_path)


@pytest.mark.skipif(MODELS is None, reason=REASON)
@pytest.mark.parametrize("target", ["c", "host", "cortex-m4", "cortex-m55"])
@pytest.mark.parametrize("model", ONES)
def test_real_models(model: str, target: str, tmp_path: Path) -> None:
    assert MODELS is not None
    check(code_of(MODELS / model, target, Options()), tmp_path)


def test_tokens_stay() -> None:
    text = """\
static const char *s = "a /* b */ {";   /* c { */
void f(int a) {
      switch (a) {
  case 1: {
   g(a,
 "x", '{'); break; }
        default:
   break;
 }
#if A
if (a)
   h(); else { k(); }
#endif
 struct s t = { 1, { 2,
 3 },
 4 };
 int verylongname_of_a_variable = another_quite_long_function_name(argument_number_one, argument_number_two, argument_number_three ? 1 : 2) + 7; /* and why */
   while (a)
     --a;
}
"""  # noqa: E501
    laid = layout(text)

    def tokens(s: str) -> list[str]:
        return re.findall(r'"[^"]*"|/\*.*?\*/|\w+|\S', s, re.DOTALL)

    assert sorted(tokens(laid)) == sorted(tokens(text))  # a comment behind a long line goes before it
    assert (
        laid
        == """\
static const char *s = "a /* b */ {";   /* c { */
void f(int a) {
    switch (a) {
    case 1: {
        g(a,
            "x", '{'); break; }
    default:
        break;
    }
#if A
    if (a)
        h(); else { k(); }
#endif
    struct s t = { 1, { 2,
        3 },
        4 };
    /* and why */
    int verylongname_of_a_variable = another_quite_long_function_name(argument_number_one,
        argument_number_two, argument_number_three ? 1 : 2) + 7;
    while (a)
        --a;
}
"""
    )


def test_a_long_statement_takes_time_in_proportion_to_its_length() -> None:
    """Unrolled networks have statements of hundreds of thousands of characters."""
    text = f"y = {' + '.join(f'aot_model_max_i32(x[{k}], {k})' for k in range(20_000))};"
    begin = time.process_time()
    lines = broken(text, 4, 8)
    assert time.process_time() - begin < 10
    assert " ".join(line.strip() for line in lines) == text and max(map(len, lines)) <= WIDTH


def test_long_conditions() -> None:
    """Of the preprocessor: behind an operator, with what continues a line."""
    parts = [f"defined(SOME_NAME_OF_A_FLAG_{k})" for k in range(9)]
    text = layout(f"#if {' && '.join(parts)}\nx();\n#elif {' || '.join(parts[:3])}\n#endif")
    lines = text.split("\n")
    assert all(len(line) <= WIDTH for line in lines) and max(map(len, lines[:3])) > WIDTH - 40
    assert [line[-4:] for line in lines[:3]] == ["&& \\", "&& \\", lines[2][-4:]] and lines[3] == "x();"
    assert text.replace(" \\\n    ", " ").split("\n")[0] == f"#if {' && '.join(parts)}"
    assert lines[4] == f"#elif {' || '.join(parts[:3])}"
    word = "#if " + "a" * 200
    assert layout(word) == word
