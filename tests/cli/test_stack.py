"""`aot-model stack`: the sum along the calls, against a painted stack; what has no bound; functions in
assembler.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from aot_model.cli import main
from aot_model.cli.stack import call_graph, depth, naked_functions
from aot_model.errors import CompileError
from corpus import MODELS, REASON
from painted_stack import MAIN, measure
from qemu import BOARDS, available, build_and_run
from turns import commit_number

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ("k_attn_int8.tflite", "kws_int8.tflite", "sine_lstm.onnx", "digits_vit_qdq.onnx")
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
    assert main([*command, "--stack-allowance=0", "--max-stack=108"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("m_run() needs 108 bytes of stack\n")
    assert "deepest: m_run > wide\nnot counted, not of this library: expf\n" in text
    assert main([*command, "--stack-allowance=0", "--max-stack=107"]) == 1
    assert (
        "m.json: error: m_run() needs 108 bytes of stack, the budget is 107 [E402]\nfunction  own"
        in capsys.readouterr().err
    )
    assert (
        main([*command, "--stack-allowance=0", "-o", str(tmp_path / "said")]) == 0
        and (tmp_path / "said").read_text() == text
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            ("16 bytes (static)", "16 bytes (dynamic)"),
            "layer() takes stack as it runs: there is no bound [E402]",
        ),
        (
            ('targetname: "expf"', 'targetname: "m_run"'),
            "m_run() calls itself: its stack has no bound [E402]",
        ),
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
    source = """
AOT_MODEL_NAKED static void one(
    __attribute__((unused)) const uint32_t *columns)
{
    __asm__ volatile(
        "push {r4-r11, lr}\\n"
        "vpush {d8-d15}\\n"
        "sub sp, sp, #28\\n"
        "pop {r4-r11, pc}\\n");
}
"""
    assert naked_functions(source) == {"one": 36 + 64 + 28}
    graph = GRAPH.replace("layer", "one").replace("16 bytes", "0 bytes")
    assert depth(call_graph(graph, source), "m_run").size == 8 + 128
    with pytest.raises(CompileError, match="no bound"):
        call_graph(GRAPH.replace("16 bytes (static)", "16 bytes (dynamic)"), "")


def test_what_cannot_be_counted_fails_a_budget_without_an_allowance(tmp_path: Path, capsys: Captured) -> None:
    command = library(tmp_path)
    assert main([*command, "--max-stack=64k"]) == 1
    assert (
        "m_run() needs 108 bytes of stack, and those of functions that cannot be counted: expf [E402]\n"
        in capsys.readouterr().err
    )
    assert main([*command, "--max-stack=523", "--stack-allowance=500"]) == 1
    assert main([*command, "--max-stack=524", "--stack-allowance=500"]) == 0
    assert "m_run() needs 524 bytes of stack\n" in capsys.readouterr().out
    assert main(command) == 0, "without a budget it is said"


POINTERS = """graph: { title: "m.c"
node: { title: "m.c:small" label: "small\\nm.c:3:13\\n16 bytes (static)" }
node: { title: "m.c:large" label: "large\\nm.c:5:13\\n200 bytes (static)" }
node: { title: "m.c:wrapper" label: "wrapper\\nm.c:16:13\\n24 bytes (static)" }
node: { title: "m.c:k_called" label: "k_called\\nm.c:7:13\\n4000 bytes (static)" }
node: { title: "__indirect_call" label: "Indirect Call Placeholder" shape : ellipse }
node: { title: "m_run" label: "m_run\\nm.c:9:9\\n8 bytes (static)" }
edge: { sourcename: "m_run" targetname: "__indirect_call" label: "m.c:10:5" }
edge: { sourcename: "m_run" targetname: "m.c:small" label: "m.c:10:5" }
edge: { sourcename: "m.c:wrapper" targetname: "m_run" label: "m.c:10:5" }
node: { title: "m_load" label: "m_load\\nm.c:8:13\\n8 bytes (static)" }
edge: { sourcename: "m_load" targetname: "m.c:k_called" label: "m.c:10:5" }
}
"""


def test_calls_through_pointers(tmp_path: Path, capsys: Captured) -> None:
    """Of those whose address is taken before the entry; none of them, or the program's own, cannot be
    counted.
    """
    command = library(tmp_path, POINTERS)
    (tmp_path / "m.c").write_text('/* k_called */ step(&small); const char *s = "k_called";')
    assert main([*command, "--max-stack=1k"]) == 0
    assert "deepest: m_run > a call through a pointer > large\n" in capsys.readouterr().out
    (tmp_path / "m.c").write_text("step(small, large, k_called);")
    assert main([*command, "--max-stack=4k"]) == 0
    assert "needs 4,008 bytes" in capsys.readouterr().out
    for facts, hooks in (
        ({"options": {"profile": True}}, "m_ticks"),
        ({"options": {}, "trace": []}, "m_trace"),
        ({"options": {"fetch": 1024}}, "m_fetch_begin, m_fetch_wait"),
    ):
        (tmp_path / "m.json").write_text(json.dumps({"c_name": "m", **facts}))
        assert main([*command, "--max-stack=64k"]) == 1
        assert f"cannot be counted: {hooks}, which the program has" in capsys.readouterr().err
    nothing = "".join(
        line
        for line in POINTERS.splitlines(True)
        if "large" not in line and "small" not in line and "k_called" not in line and "wrapper" not in line
    )
    (tmp_path / "m.c").write_text("")
    (tmp_path / "m.c.ci").write_text(nothing)
    assert main([*command, "--max-stack=64k"]) == 1
    assert "cannot be counted: a call through a pointer" in capsys.readouterr().err


INTERRUPTED = """#include <stdint.h>
typedef struct { int none; } m_inputs, m_outputs;
/* pends the interrupt of the clock, as a run of 2^24 ticks does */
__attribute__((noipa)) static int32_t m_run(const m_inputs *in, m_outputs const *out)
{
    volatile float f = 1.0f;
    *(volatile uint32_t *)0xE000ED04u = 1u << 26;
    __asm__ volatile("dsb\\n isb" ::: "memory");
    return in == 0 || out == 0 || f != 1.0f;
}
"""


@pytest.mark.skipif(not available(), reason="needs arm-none-eabi-gcc and qemu-system-arm")
def test_an_interrupt_is_no_part_of_a_run(tmp_path: Path) -> None:
    """Its frame is on the stack of whom it interrupts: 104 bytes where that uses floats."""
    (tmp_path / "m.h").write_text(INTERRUPTED)
    (tmp_path / "main.c").write_text(MAIN.format(arrays="", ins="0", outs="0"))
    printed = build_and_run(BOARDS["m4"], ["main.c"], tmp_path, ["-O2"])
    assert (used := re.search(r"status 0 used (\d+)", printed)) and int(used[1]) <= 8, printed


@pytest.mark.skipif(not available(), reason="needs arm-none-eabi-gcc and qemu-system-arm")
@pytest.mark.parametrize("board", ["m4", "m55"])
@pytest.mark.parametrize("name", ["digits", *CORPUS])
def test_against_a_painted_stack(tmp_path: Path, board: str, name: str) -> None:
    """What a run leaves on the stack of a Cortex-M is no more than the bound; tests/painted_stack.py measures
    any model.
    """
    if name != "digits" and MODELS is None:
        pytest.skip(REASON)
    used, bound, table = measure(
        ROOT / "examples/digits/digits.onnx" if name == "digits" else Path(str(MODELS)) / name,
        board,
        tmp_path,
    )
    assert used <= bound, f"{used}\n{table}"
    assert used * 2 >= bound, "and no number out of the air"


@pytest.mark.skipif(not available(), reason="needs arm-none-eabi-gcc and qemu-system-arm")
@pytest.mark.parametrize("board", ["m4", "m55"])
def test_another_model_of_the_corpus_for_every_commit(tmp_path: Path, board: str) -> None:
    if MODELS is None:
        pytest.skip(REASON)
    small = sorted(
        p
        for p in Path(str(MODELS)).iterdir()
        if p.suffix in (".onnx", ".tflite") and p.stat().st_size < 150_000
    )
    chosen = small[commit_number() % len(small)]
    try:
        used, bound, table = measure(chosen, board, tmp_path)
    except (CompileError, subprocess.SubprocessError) as error:
        pytest.skip(f"{chosen.name} is not for this board: {error}")
    assert used <= bound, f"{chosen.name}: {used}\n{table}"
