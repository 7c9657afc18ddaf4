"""`aot-model stack`: the sum along the calls, against a painted stack; what has no bound; functions in assembler."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from aot_model.cli import main
from aot_model.cli.stack import call_graph, depth, naked_functions
from aot_model.errors import CompileError
from aot_model.installation import include_dir
from qemu import BOARDS, available, build_and_run

ROOT = Path(__file__).resolve().parents[2]
Captured = pytest.CaptureFixture[str]

GRAPH = """graph: { title: "m.c"
node: { title: "m.c:layer" label: "layer\\nm.c:3:13\\n16 bytes (static)" }
node: { title: "m.c:wide" label: "wide\\nm.c:5:13\\n100 bytes (static)" }
node: { title: "expf" label: "expf\\n<built-in>" shape : ellipse }
node: { title: "m_run" label: "m_run\\nm.c:9:9\\n8 bytes (static)" }
edge: { sourcename: "m_run" targetname: "m.c:layer" label: "m.c:10:5" }
edge: { sourcename: "m_run" targetname: "m.c:wide" label: "m.c:11:5" }
edge: { sourcename: "m.c:layer" targetname: "expf" label: "m.c:4:5" }
}
"""


def library(folder: Path, graph: str = GRAPH) -> list[str]:
    folder.mkdir(exist_ok=True)
    (folder / "m.json").write_text(json.dumps({"c_name": "m"}))
    (folder / "m.c").write_text("")
    (folder / "m.c.ci").write_text(graph)
    return ["stack", str(folder / "m.json"), str(folder / "m.c.o")]


def test_the_deepest_way_counts(tmp_path: Path, capsys: Captured) -> None:
    command = library(tmp_path)
    assert main([*command, "--max-stack=108"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("m_run() needs 108 bytes of stack\n")
    assert "deepest: m_run > wide\nnot counted, not of this library: expf\n" in text
    assert main([*command, "--max-stack=107"]) == 1
    assert "m.json: error: m_run() needs 108 bytes of stack, the budget is 107\nfunction  own" in capsys.readouterr().err
    assert main([*command, "-o", str(tmp_path / "said")]) == 0 and (tmp_path / "said").read_text() == text


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("16 bytes (static)", "16 bytes (dynamic)"), "layer() takes stack as it runs: there is no bound [E402]"),
        (('targetname: "expf"', 'targetname: "m_run"'), "m_run() calls itself: its stack has no bound [E402]"),
        (('title: "m_run"', 'title: "n_run"'), "has no function m_run() [E102]"),
    ],
)
def test_no_bound(tmp_path: Path, capsys: Captured, change: tuple[str, str], message: str) -> None:
    assert main(library(tmp_path, GRAPH.replace(*change))) == 1
    assert message in capsys.readouterr().err


def test_files_that_are_not_there(tmp_path: Path, capsys: Captured) -> None:
    command = library(tmp_path)
    (tmp_path / "m.c.ci").unlink()
    assert main(command) == 1
    assert "-fcallgraph-info=su, without -flto" in capsys.readouterr().err
    (tmp_path / "m.json").write_text("{}")
    assert main(command) == 1
    assert "is not the metadata of a library [E102]" in capsys.readouterr().err


def test_functions_in_assembler() -> None:
    source = '''
__attribute__((naked, noinline, used)) static void one(
    __attribute__((unused)) const uint32_t *columns)
{
    __asm__ volatile(
        "push {r4-r11, lr}\\n"
        "vpush {d8-d15}\\n"
        "sub sp, sp, #28\\n"
        "pop {r4-r11, pc}\\n");
}
'''
    assert naked_functions(source) == {"one": 36 + 64 + 28}
    graph = GRAPH.replace("layer", "one").replace("16 bytes", "0 bytes")
    assert depth(call_graph(graph, source), "m_run").size == 8 + 128
    with pytest.raises(CompileError, match="no bound"):
        call_graph(GRAPH.replace("16 bytes (static)", "16 bytes (dynamic)"), "")


MAIN = """#include <stdint.h>
#include <stdio.h>
#include "m.h"
#define BELOW 8192
static %s x[%d];
static %s y[%d];
static volatile uint32_t *bottom;
__attribute__((noinline)) static void paint(void)
{
    volatile uint32_t *here = (volatile uint32_t *)__builtin_frame_address(0) - 16;
    bottom = here - BELOW / 4;
    for (volatile uint32_t *at = bottom; at != here; ++at) { *at = 0xA5A5A5A5u; }
}
int main(void)
{
    volatile uint32_t *top = (volatile uint32_t *)__builtin_frame_address(0);
    static const m_inputs in = { x };
    static const m_outputs out = { y };
    paint();
    if (m_run(&in, &out) != 0) { return 1; }
    while (*bottom == 0xA5A5A5A5u) { ++bottom; }
    printf("used %%d\\n", (int)((top - bottom) * 4));
    return 0;
}
"""


@pytest.mark.skipif(not available(), reason="needs arm-none-eabi-gcc and qemu-system-arm")
def test_against_a_painted_stack(tmp_path: Path, capsys: Captured) -> None:
    """What a run leaves on the stack of a Cortex-M4 is no more than the bound, and not much less."""
    assert main(["compile", str(ROOT / "examples/digits/digits.onnx"), "-o", str(tmp_path), "--name=m", "--target=cortex-m4"]) == 0
    (tmp_path / "main.c").write_text(MAIN % ("float", 64, "float", 10))
    board = BOARDS["m4"]
    flags = ["-O2", f"-I{include_dir()}", "-fcallgraph-info=su"]
    used = re.search(r"used (\d+)", build_and_run(board, ["main.c", "m.c"], tmp_path, flags))
    subprocess.run(["arm-none-eabi-gcc", *board.flags, "-mthumb", *flags, "-c", "m.c", "-o", "m.o"], cwd=tmp_path, check=True)
    capsys.readouterr()
    assert main(["stack", str(tmp_path / "m.json"), str(tmp_path / "m.o")]) == 0
    said = re.search(r"needs ([\d,]+) bytes", capsys.readouterr().out)
    assert used and said
    measured, bound = int(used[1]), int(said[1].replace(",", ""))
    # main()'s own frame is in what was measured; expf() and memcpy() are, and are not in the bound.
    assert bound - 64 <= measured <= bound + 256, (measured, bound)
