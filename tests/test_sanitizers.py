"""Sanitizers without reports, which most tests compile with, find what those with reports find."""

from __future__ import annotations

import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import helper

import batch
from aot_model.errors import CompileError
from aot_model.pipeline import Request, compile_model
from batch import Case, Outcome, run_cases
from sanitizers import REPORTS, built_and_run, quick, sanitized
from translation_unit import Generated

DEFECTS = {
    "a byte beyond the heap is read": "return ((unsigned char *)heap)[n];",
    "a half-word beyond the heap is written": "((short *)heap)[n / 2] = 1; return heap[0] == 0;",
    "a word beyond the heap is read": "return heap[n / 4];",
    "a word before the heap is read": "return heap[-n / n];",
    "a double beyond the heap is read": "return ((double *)heap)[n / 8] > 0;",
    "a copy beyond the heap": "memcpy(heap, global, (size_t)n + 1u); return heap[0];",
    "a word that is half beyond the heap": "memcpy(global, (char *)heap + n - 6, 8); return global[1];",
    "memory that was freed": "free(heap); return heap[0];",
    "beyond a static array": "return global[n - 6];",
    "beyond an array on the stack": "int32_t a[4] = {1, 2, 3, 4}; volatile int32_t *p = a; return p[n / 4];",
    "a sum overflows": "return n + INT32_MAX;",
    "a product overflows": "return n * (INT32_MAX / 2);",
    "a negation overflows": "return -(INT32_MIN + n - 16);",
    "a division by zero": "return n / (n - 16);",
    "a division overflows": "return (INT32_MIN + n - 16) / (n - 17);",
    "a shift by all bits": "return 1 << (n + 16);",
    "a shift of the sign": "return INT32_MAX << n;",
    "a pointer that is not aligned": "return *(int32_t *)(void *)((char *)heap + n / 16);",
    "nothing is read": "return *(int32_t *)(void *)((uintptr_t)n - 16u);",
    "a bool that is neither": "bool b; char c = (char)n; memcpy(&b, &c, 1); return b ? 3 : 4;",
}
"""Bodies of functions of heap, 16 bytes, and n, which is 16."""


def _program(folder: Path) -> list[str]:
    """The arguments of a compiler after its name: the program takes the number of a defect; -1 is none."""
    lines = [
        "#include <stdbool.h>",
        "#include <stdint.h>",
        "#include <stdlib.h>",
        "#include <string.h>",
        "int32_t global[8];",
    ]
    for number, body in enumerate(DEFECTS.values()):
        lines.append(
            f"int32_t f{number}(int32_t *heap, int32_t n);\n"
            f"int32_t f{number}(int32_t *heap, int32_t n) {{ {body} }}"
        )
    calls = " ".join(f"case {number}: sink = f{number}(heap, n); break;" for number in range(len(DEFECTS)))
    freed = list(DEFECTS).index("memory that was freed")
    lines.append(f"""int main(int argc, char **argv)
{{
    volatile int32_t sink = 0;
    const int32_t n = 14 + argc, which = atoi(argv[1]);
    int32_t *heap = calloc(4, 4);
    switch (which) {{ {calls} default: break; }}
    if (which != {freed}) {{ free(heap); }}
    return 0 * sink;
}}""")
    (folder / "defects.c").write_text("\n".join(lines))
    return ["-O1", *REPORTS, "defects.c", "-o", "defects"]


@pytest.mark.parametrize("reports", [False, True])
def test_every_defect_is_noticed(reports: bool, tmp_path: Path) -> None:
    flags = _program(tmp_path)
    subprocess.run(["gcc", *(flags if reports else quick("gcc", flags))], cwd=tmp_path, check=True)
    statuses = {
        name: subprocess.run(["./defects", str(number)], cwd=tmp_path, capture_output=True).returncode
        for number, name in [(-1, ""), *enumerate(DEFECTS)]
    }
    assert statuses.pop("") == 0
    assert not [name for name, status in statuses.items() if status == 0]


def test_failures_are_reported(tmp_path: Path) -> None:
    command = ["gcc", *_program(tmp_path)]
    number = list(DEFECTS).index("a sum overflows")
    built_and_run([command], ["./defects", "-1"], tmp_path)
    with pytest.raises(AssertionError, match=r"defects\.c:\d+.*signed integer overflow"):
        built_and_run([command], ["./defects", str(number)], tmp_path)


def test_flags_of_others_stay() -> None:
    assert quick("clang-19", REPORTS) == REPORTS and quick("arm-none-eabi-gcc", ("-O1",)) == ("-O1",)
    for compiler in ("gcc", "gcc-12", "/usr/bin/gcc", "aarch64-linux-gnu-gcc"):
        assert quick(compiler, REPORTS) != REPORTS


def _negation() -> onnx.ModelProto:
    value = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, [3]) for name in "xy"]
    graph = helper.make_graph([helper.make_node("Neg", ["x"], ["y"])], "g", value[:1], value[1:])
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs gcc")
@pytest.mark.parametrize("count", [1, 2])
def test_cases_that_fail_are_reported(count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Alone and beside another one, whose outcome stays right."""
    cases = [Case(f"case {k}", _negation(), (np.zeros(3, np.float32),)) for k in range(count)]
    made = batch.generate

    def broken(folder: Path, number: int, *more: object) -> Generated | Outcome:
        found = made(folder, number, *more)  # type: ignore[arg-type]
        assert isinstance(found, Generated)
        if number == 0:
            status = "    int32_t status;\n"
            overflow = "    { volatile int32_t n = INT32_MAX; n = n + 1; }\n"
            return replace(found, driver=found.driver.replace(status, status + overflow))
        return found

    monkeypatch.delenv("CC", raising=False)
    first, *others = run_cases(cases, jobs=1, make=broken)
    assert first.status == "crash" and "signed integer overflow" in first.message
    assert all(other.status == "ok" for other in others)


def test_compiled_models_that_fail_are_reported(tmp_path: Path) -> None:
    (tmp_path / "m.onnx").write_bytes(_negation().SerializeToString())
    compiled = compile_model(Request(tmp_path / "m.onnx", "m"))
    x = np.array([1, -2, 3], np.float32)
    ((found,),) = sanitized(compiled.view, compiled.texts, tmp_path / "right").run([[x]])
    assert found.tolist() == (-x).tolist()
    overflow = "{ volatile int32_t n = INT32_MAX; n = n + 1; }\n"
    end = "    return AOT_MODEL_OK;\n"
    wrong = {name: text.replace(end, f"    {overflow}{end}") for name, text in compiled.texts.items()}
    program = sanitized(compiled.view, wrong, tmp_path / "wrong")
    with pytest.raises(CompileError, match="signed integer overflow"):
        program.run([[x]])
