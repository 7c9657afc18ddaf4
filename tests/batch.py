"""Many small models compiled and run at once: their C goes into few translation units, one process runs a
unit.

A case that the compiler refuses, whose C does not compile, or that crashes is told apart from its neighbours:
a unit that fails is tried again case by case.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
import time
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import onnx

from aot_model.c.layout import layout
from aot_model.emit import render
from aot_model.emit.view import ModelView, Options
from aot_model.errors import CompileError
from aot_model.frontends.model import Model
from aot_model.host.program import STRICT
from aot_model.installation import include_dir
from aot_model.ir.graph import Graph
from aot_model.ir.strings import decoded
from aot_model.ops.registry import load_all
from aot_model.pipeline import Compiled, Request, compile_graph, compile_model
from aot_model.targets.registry import parse_target
from machines import MACHINES, Machine
from qemu import BOARDS, COMPILER, EMULATOR, build_and_run
from sanitizers import REPORTS, quick
from translation_unit import Generated, driver, given_bytes, write_unit

JOBS = int(os.environ.get("AOT_MODEL_TEST_JOBS", "2"))


@dataclass(frozen=True)
class Case:
    """A model and the arrays for its inputs, in the order of the model's inputs."""

    name: str
    model: onnx.ModelProto | bytes | Callable[[], Graph]
    """An ONNX model, the bytes of a TFLite file, or what makes a graph such as frontends make."""
    inputs: tuple[np.ndarray, ...]
    dims: dict[str, int] = field(default_factory=dict)
    folder: Path | None = None
    """Where the model's external data is, if it has any."""
    constants: dict[str, tuple[float, ...]] = field(default_factory=dict)
    """Inputs that are constants of the model; they are not among `inputs`."""
    bounds: dict[str, int] = field(default_factory=dict)
    options: dict[str, str] = field(default_factory=dict)
    """Of the target."""
    runs: int = 1
    """How often it runs; the outputs are those of the last run."""
    io: str = "caller"
    """Where inputs and outputs are: the option --io."""
    asked: Mapping[str, Any] = field(default_factory=dict)
    """More fields of Request: pools, the planner, budgets."""
    library: Mapping[str, Any] = field(default_factory=dict)
    """More fields of Options."""
    stirred: bool = False
    """Whether a run with other inputs comes first, whose result nobody looks at: what it left in memory must
    not matter. Not for models with a state."""


@dataclass(frozen=True)
class Outcome:
    """status: ok, refused (E1xx to E5xx), broken (internal error), uncompilable, crash; same: see
    `unlike`.
    """

    status: str
    message: str = ""
    outputs: tuple[np.ndarray, ...] = ()
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)
    """Actual shapes, by the outputs whose size depends on data."""
    made: Generated | None = None
    """What ran."""


def run_cases(
    cases: Sequence[Case],
    target: str = "c",
    *,
    sanitize: bool = True,
    flags: Sequence[str] = ("-O1",),
    per_unit: int = 48,
    board: str | None = None,
    unlike: str | Sequence[bytes | None] | None = None,
    jobs: int = JOBS,
    make: Callable[..., Generated | Outcome] | None = None,
) -> list[Outcome]:
    """The outcome of each case, in order; run on the host, on an emulated board of qemu.BOARDS, or on one of
    MACHINES.

    unlike: a case whose C is that for this other target is not run, its status is "same"; or the substance()
    of each case for the other target. jobs: 1 for this process alone. make: what makes the C of a case
    instead of generate().
    """
    with tempfile.TemporaryDirectory(prefix="aot-model-batch-") as folder, workers(jobs) as pool:
        arguments = (
            [Path(folder)] * len(cases),
            range(len(cases)),
            cases,
            [target] * len(cases),
            [unlike] * len(cases) if unlike is None or isinstance(unlike, str) else unlike,
        )
        results: list[Generated | Outcome] = list(pool.map(make or generate, *arguments, chunksize=8))
        ready = [k for k, r in enumerate(results) if isinstance(r, Generated)]
        units = [ready[i : i + per_unit] for i in range(0, len(ready), per_unit)]
        more = [*flags, *(REPORTS if sanitize else ())]
        jobs = [
            (Path(folder), n, [results[k] for k in unit], [cases[k].inputs for k in unit], more, board)
            for n, unit in enumerate(units)
        ]
        for unit, job, outcomes in zip(units, jobs, pool.map(_unit, jobs), strict=True):
            for k, made, outcome in zip(unit, job[2], outcomes, strict=True):
                results[k] = replace(outcome, made=made)
    return [r for r in results if isinstance(r, Outcome)]


class _Here:
    """An executor that computes in this process."""

    map = staticmethod(lambda function, *items, chunksize=1: map(function, *items))


def workers(jobs: int) -> AbstractContextManager[Any]:
    return nullcontext(_Here()) if jobs == 1 else ProcessPoolExecutor(jobs)


def compiled_case(case: Case, path: Path, name: str, target: str) -> Compiled:
    """The C of a case; its model goes into a file of that path, unless it is a graph."""
    request = Request(
        path,
        name,
        target,
        case.options,
        case.dims,
        Options(**{"metadata": "none", "io": case.io, **case.library}),
        constants=case.constants,
        bounds=case.bounds,
        **case.asked,
    )
    with helpers_by_text():
        if callable(case.model):
            load_all()
            compiled = compile_graph(request, Model(case.model(), (), ""), parse_target(target, case.options))
        else:
            path.write_bytes(case.model if isinstance(case.model, bytes) else case.model.SerializeToString())
            compiled = compile_model(request)
    for b in compiled.view.program.constants():  # else the compiler's own file of parameters is refused
        fits = b.data is None or all(r.holds(b.data) for r in b.admissible)
        assert fits, f"{b.name} is not in {b.admissible}"
    return compiled


@contextmanager
def helpers_by_text() -> Iterator[None]:
    """Helpers keep the names that differ when their texts do: many models share a file in a unit."""
    with patch.object(render, "numbered", lambda text, prefix: text):
        yield


def helpers_in(source: str, view: ModelView) -> tuple[str, ...]:
    """The helpers of a model, as they are written in its C."""
    helpers = tuple(map(layout, view.helpers))
    assert all(helper in source for helper in helpers), f"{view.name}: helpers are written in another way"
    return helpers


_COMMENT = re.compile(r"/\*.*?\*/", re.DOTALL)


def substance(source: str) -> bytes:
    """A digest of C without comments and without the conditional lines before the layers: they check the
    target, advise other ones and keep compilers away from what they do wrongly.
    """
    before, mark, layers = source.partition("/* ----")
    kept, depth = [], 0
    for line in _COMMENT.sub("", before).splitlines():
        depth += line.startswith("#if")
        if depth == 0 and line:
            kept.append(line)
        depth -= line.startswith("#endif")
    assert mark and depth == 0, f"the head of a file is of another form:\n{before}"
    return sha256(("\n".join(kept) + _COMMENT.sub("", mark + layers)).encode()).digest()


def generate(
    folder: Path, number: int, case: Case, target: str, unlike: str | bytes | None = None
) -> Generated | Outcome:
    """The C of a case for a target, with names of that number; or why there is none. unlike: see
    run_cases().
    """
    place = case.folder or folder
    path = place / f"case{number}.onnx"
    name = f"m{number}"
    try:
        compiled = compiled_case(case, path, name, target)
        if unlike is not None:
            if isinstance(unlike, str):
                unlike = substance(compiled_case(case, path, name, unlike).texts[f"{name}.c"])
            if unlike == substance(compiled.texts[f"{name}.c"]):
                return Outcome("same")
    except CompileError as error:
        return Outcome("refused", str(error).replace(str(path), case.name))
    except Exception:
        return Outcome("broken", f"{case.name}: {traceback.format_exc(limit=-4)}")
    finally:
        if case.folder is not None:
            path.unlink(missing_ok=True)
    return generated_from(case, compiled)


def for_any_processor(*arguments: Any) -> Generated | Outcome:
    """The C of generate() without the check that it is compiled for the core: its portable twins."""
    made = generate(*arguments)
    if not isinstance(made, Generated):
        return made
    return replace(made, source=re.sub(r'(?m)^#error ".*was made for.*"$', "", made.source))


def generated_from(case: Case, compiled: Compiled) -> Generated | Outcome:
    """What is left of a compiled case between processes; why there is nothing where its inputs are others."""
    view = compiled.view
    mismatch = [
        p.buffer.name
        for p, a in zip(view.inputs, case.inputs, strict=False)
        if p.buffer.type.elements != a.size
    ]
    if len(view.inputs) != len(case.inputs) or mismatch:
        return Outcome(
            "broken",
            f"{case.name}: inputs {[str(p.buffer.type) for p in view.inputs]} do not fit "
            f"{[a.shape for a in case.inputs]}",
        )
    outputs = tuple((p.buffer.name, p.buffer.type.dtype.label, p.buffer.type.shape) for p in view.outputs)
    source = compiled.texts[f"{view.name}.c"]
    return Generated(
        view.name,
        source,
        compiled.texts[f"{view.name}.h"],
        driver(view, case.runs, case.stirred),
        helpers_in(source, view),
        outputs,
    )


def _unit(
    arguments: tuple[Path, int, list[Generated], list[tuple[np.ndarray, ...]], list[str], str | None],
) -> list[Outcome]:
    """Compile and run a unit; case by case when that fails. Models that work alone and not together have
    helpers of one name and different texts, which a model with both would have too: none of them is right.
    """
    folder, number, items, inputs, flags, board = arguments
    fast = quick(_compiler(board), flags)
    together = _build_and_run(folder / f"unit{number}", items, inputs, fast, board)
    if together[0].status == "ok" or (len(items) == 1 and fast == tuple(flags)):
        return together
    result: list[Outcome] = []
    for k, (item, arrays) in enumerate(zip(items, inputs, strict=True)):
        result += _build_and_run(folder / f"unit{number}_{k}", [item], [arrays], flags, board)
    if all(outcome.status == "ok" for outcome in result):  # or without reports, which is as wrong
        message = f"right alone, not beside its neighbours: {together[0].message}"
        return [Outcome(together[0].status, message)] * len(items)
    return result


def _compiler(board: str | None) -> str:
    """Of this machine, of one of MACHINES, or of the boards."""
    if board is None:
        return os.environ.get("CC", "gcc")
    return MACHINES[board].compiler if board in MACHINES else COMPILER


def _build_and_run(
    folder: Path,
    items: list[Generated],
    inputs: list[tuple[np.ndarray, ...]],
    flags: Sequence[str],
    board: str | None,
) -> list[Outcome]:
    folder.mkdir()
    write_unit(folder, items)
    (folder / "in.bin").write_bytes(b"".join(given_bytes(a) for arrays in inputs for a in arrays))
    options = [*STRICT, *flags, f"-I{include_dir()}", "-I."]
    try:
        if board is None or board in MACHINES:
            machine = MACHINES[board] if board else Machine("this one", _compiler(None))
            subprocess.run(
                [machine.compiler, *options, *machine.flags, "main.c", "unit.c", "-lm", "-o", "unit"],
                cwd=folder,
                capture_output=True,
                text=True,
                check=True,
            )
            subprocess.run(
                [*machine.runner, str(folder / "unit")],
                cwd=folder,
                capture_output=True,
                text=True,
                errors="replace",
                check=True,
                timeout=120,
            )
        else:
            build_and_run(BOARDS[board], ["main.c", "unit.c"], folder, options)
    except subprocess.TimeoutExpired:
        return [Outcome("crash", "timeout")] * len(items)
    except subprocess.CalledProcessError as error:
        status = "crash" if str(folder / "unit") in error.cmd or error.cmd[0] == EMULATOR else "uncompilable"
        return [Outcome(status, (error.stderr or "")[:3000])] * len(items)
    return split(items, (folder / "out.bin").read_bytes())


def split(items: Sequence[Generated], data: bytes) -> list[Outcome]:
    """The outcomes of a unit from what it wrote."""
    from aot_model.ir.types import DType

    outcomes, at = [], 0
    for item in items:
        arrays = []
        for _, label, shape in item.outputs:
            dtype = DType.of(label)
            count = int(np.prod(shape, dtype=np.int64))
            raw = np.frombuffer(data, dtype=np.uint8, count=count * dtype.size, offset=at)
            if dtype.bits < 8 and dtype.is_integer:
                arrays.append(
                    raw.view(np.int8 if dtype.kind == "int" else np.uint8).astype(dtype.numpy).reshape(shape)
                )
            elif dtype.is_string:
                arrays.append(decoded(raw.view(dtype.numpy).reshape(shape)))
            else:
                arrays.append(raw.view(dtype.numpy).reshape(shape).copy())
            at += count * dtype.size
        outcomes.append(Outcome("ok", "", *_trimmed(item, arrays)))
    return outcomes


def _trimmed(
    item: Generated, arrays: list[np.ndarray]
) -> tuple[tuple[np.ndarray, ...], dict[str, tuple[int, ...]]]:
    """(outputs, shapes): those whose size depends on data are cut to the shape that the model says, unless
    that is larger than there was room for."""
    named = list(zip((n for n, _, _ in item.outputs), arrays, strict=True))
    shapes = {n.removesuffix(".shape"): tuple(int(v) for v in a) for n, a in named if n.endswith(".shape")}
    found = []
    for name, array in named:
        actual = shapes.get(name, array.shape)
        count = int(np.prod(actual, dtype=np.int64))
        if not name.endswith(".shape"):
            found.append(array.reshape(-1)[:count].reshape(actual) if count <= array.size else array)
    return tuple(found), shapes


def elapsed(start: float) -> str:
    """Seconds since a point in time, for progress lines."""
    return f"{time.time() - start:.1f} s"
