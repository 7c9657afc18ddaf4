"""Models whose buffers lie apart, with red zones between them: what reads or writes beyond one is noticed.

The plan is one in which every buffer has its own bytes for the whole run. Under the address sanitizer the
zones are poisoned, elsewhere they hold a pattern that is compared afterwards. The workspace is filled with
other garbage before each of two runs, whose results must be equal: memory that is read before it is written
shows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from aot_model.emit.view import ModelView, Options
from aot_model.errors import CompileError
from aot_model.frontends.model import Model
from aot_model.lowering import memory_plan
from aot_model.memory import Block, MemoryPlan, Overlap, Pool, View, plan
from aot_model.ops.registry import load_all
from aot_model.pipeline import Compiled, Request, compile_graph, compile_model
from aot_model.targets.registry import parse_target
from batch import Case, Outcome, helpers_by_text, helpers_in
from translation_unit import Generated

ZONE = 64
GARBAGE = (0xFF, 0x5A)
"""NaN as floats, -1; and numbers that are far from 0."""

GUARDS = """\
#include <string.h>
#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
static void guard(unsigned char *p, size_t n) { ASAN_POISON_MEMORY_REGION(p, n); }
static int intact(unsigned char *p, size_t n) { ASAN_UNPOISON_MEMORY_REGION(p, n); return 1; }
#else
static void guard(unsigned char *p, size_t n) { memset(p, 0xC7, n); }
static int intact(unsigned char *p, size_t n)
{
    for (; n > 0u; --n, ++p) { if (*p != 0xC7u) { return 0; } }
    return 1;
}
#endif
"""


@contextmanager
def spaced_plans() -> Iterator[None]:
    """Nothing shares memory, and there is room behind every buffer."""

    def apart(
        blocks: Sequence[Block],
        overlaps: Sequence[Overlap],
        views: Sequence[View],
        pools: Sequence[Pool],
        *algorithm: str,
    ) -> MemoryPlan:
        inside = {v.child for v in views}
        end = max((b.last for b in blocks), default=0)
        wide = [replace(b, size=b.size + (0 if b.id in inside else ZONE), first=0, last=end) for b in blocks]
        return plan(wide, [], views, pools, *algorithm)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(memory_plan, "plan", apart)
        patch.setattr(memory_plan, "_same_address", lambda *_: {})
        yield


def zones(view: ModelView) -> list[tuple[int, int]]:
    """(first, last + 1) of the bytes of the workspace that are nobody's."""
    taken = sorted(
        (offset, offset + b.nbytes) for b, (_, offset) in view.addresses.of.items() if b.view_of is None
    )
    found, at = [], 0
    for first, last in taken:
        assert first >= at, "two buffers share memory"
        found += [(at, first)] if first > at else []
        at = last
    return [*found, *([(at, view.workspace_size)] if view.workspace_size > at else [])]


def compiled_apart(case: Case, path: Path, name: str, target: str) -> Compiled:
    request = Request(
        path,
        name,
        target,
        case.options,
        case.dims,
        Options(workspace="caller", metadata="none"),
        constants=case.constants,
        bounds=case.bounds,
    )
    with spaced_plans(), helpers_by_text():
        if callable(case.model):
            load_all()
            return compile_graph(request, Model(case.model(), (), ""), parse_target(target, case.options))
        path.write_bytes(case.model if isinstance(case.model, bytes) else case.model.SerializeToString())
        return compile_model(request)


def generate_guarded(
    folder: Path, number: int, case: Case, target: str, unlike: str | None = None
) -> Generated | Outcome:
    """The C of a case with a driver that guards the zones, runs twice, and compares; status "same" where
    there is no workspace.

    Nothing in it insists on the processor: code for a Cortex-M has portable C beside its assembly, for
    compilers that do not have the instructions.
    """
    try:
        compiled = compiled_apart(case, folder / f"case{number}.onnx", f"m{number}", target)
    except CompileError as error:
        return Outcome("refused", str(error))
    view, texts = compiled.view, compiled.texts
    if view.workspace_size == 0 or view.program.states:
        return Outcome("same")
    outputs = tuple((p.buffer.name, p.buffer.type.dtype.label, p.buffer.type.shape) for p in view.outputs)
    source = re.sub(r"^#if [^\n]*\n#error [^\n]*\n#endif$", "", texts[f"{view.name}.c"], flags=re.MULTILINE)
    return Generated(
        view.name, source, texts[f"{view.name}.h"], _driver(view), helpers_in(source, view), outputs
    )


def _driver(view: ModelView) -> str:
    lines = [f"static int run_{view.name}(void)", "{", "    int32_t status;"]
    ports: list[tuple[str, Any]] = [
        (f"{kind}{k}", p.buffer)
        for kind, side in (("in", view.inputs), ("out", view.outputs))
        for k, p in enumerate(side)
    ]
    lines += [
        f"    {b.type.dtype.c_type} *const {n} = ({b.type.dtype.c_type} "
        f"*)malloc({max(b.nbytes, b.type.dtype.size)}u);"
        for n, b in ports
    ]
    results = [(n, b) for n, b in ports if n.startswith("out") and b.nbytes]
    lines += [
        f"    unsigned char *const first_{n} = (unsigned char *)malloc({b.nbytes}u);" for n, b in results
    ]
    align = max(view.workspace_align, 16)
    size = max(-(-view.workspace_size // align) * align, align)
    lines += [f"    unsigned char *const space = (unsigned char *)malloc({size + align}u);"]
    lines += [
        f"    unsigned char *const work = space + ({align}u - (unsigned)((uintptr_t)space & {align - 1}u));"
    ]
    lines += [
        f"    if (fread({n}, 1, {b.nbytes}u, source) != {b.nbytes}u) {{ return 2; }}"
        for n, b in ports
        if n.startswith("in") and b.nbytes
    ]
    ins, outs = (", ".join(n for n, _ in ports if n.startswith(kind)) or "NULL" for kind in ("in", "out"))
    lines += [
        "    {",
        f"        const {view.name}_inputs inputs = {{ {ins} }};",
        f"        const {view.name}_outputs outputs = {{ {outs} }};",
    ]
    for turn, byte in enumerate(GARBAGE):
        lines += [
            f"        memset(work, {byte}, {size}u);",
            *(f"        guard(work + {a}u, {b - a}u);" for a, b in zones(view)),
        ]
        lines += [f"        memset({n}, {byte}, {b.nbytes}u);" for n, b in results]
        lines += [
            f"        status = {view.name}_run(&inputs, &outputs, work);",
            "        if (status != 0) { return 3; }",
        ]
        lines += [f"        if (!intact(work + {a}u, {b - a}u)) {{ return 4; }}" for a, b in zones(view)]
        if turn == 0:
            lines += [f"        memcpy(first_{n}, {n}, {b.nbytes}u);" for n, b in results]
    lines += [f"        if (memcmp(first_{n}, {n}, {b.nbytes}u) != 0) {{ return 5; }}" for n, b in results]
    lines += ["    }", *(f"    fwrite({n}, 1, {b.nbytes}u, sink);" for n, b in results)]
    lines += (
        [f"    free({n});" for n, _ in ports]
        + [f"    free(first_{n});" for n, _ in results]
        + ["    free(space);"]
    )
    return "\n".join([f"#ifndef GUARDS\n#define GUARDS\n{GUARDS}#endif", *lines, "    return 0;", "}"])
