"""`aot-model run` and `aot-model verify`: a model compiled, built with a C compiler, and run."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from aot_model.cli.build import request, tell_notes
from aot_model.errors import CompileError, Problem, fail
from aot_model.frontends.arrays import Array, read_arrays
from aot_model.frontends.vectors import Vectors, load_vectors
from aot_model.host.comparison import Comparison, Tolerance, compare, share_of
from aot_model.ir.program import Access, Role
from aot_model.ir.strings import decoded, encoded, is_text

if TYPE_CHECKING:
    from aot_model.emit.view import ModelView, Options, Port
    from aot_model.host.program import HostProgram
    from aot_model.pipeline import Compiled, Request


def built(
    arguments: argparse.Namespace, folder: Path, library: Options | None = None
) -> tuple[HostProgram, Compiled]:
    """The model compiled, and built in a folder."""
    from aot_model.host import program as host_run
    from aot_model.host.compiler import HostCompiler
    from aot_model.pipeline import compile_model

    asked = request(arguments, library)
    if arguments.on is not None:
        return _firmware(arguments, asked, folder)
    compiler = HostCompiler.find(arguments.cc, arguments.cflags, arguments.runner)
    compiled = compile_model(
        replace(asked, options=compiler.fitted(asked.target, asked.options, asked.plugins))
    )
    tell_notes(compiled.notes)
    files = [file.resolve() for file in arguments.sources]
    flags = [
        *(host_run.SANITIZE if arguments.sanitize else ()),
        *dict.fromkeys(f"-I{file.parent}" for file in files),
        *map(str, files),
    ]
    return host_run.build(
        compiled.view, compiled.texts, folder, flags, compiler, "-O1" if arguments.sanitize else "-O2"
    ), compiled


def _firmware(arguments: argparse.Namespace, asked: Request, folder: Path) -> tuple[HostProgram, Compiled]:
    """The model as firmware for what --on names."""
    from aot_model.host import firmware
    from aot_model.pipeline import compile_model
    from aot_model.targets.registry import parse_target

    if arguments.sanitize or arguments.runner:
        raise fail(
            "E501",
            "--on with --sanitize or --runner: firmware has no sanitizers, and --on says what runs it",
            hint="leave it out",
        )
    board = firmware.Board.of(
        parse_target(asked.target, asked.options, asked.plugins), arguments.on, arguments.sources
    )
    compiler = firmware.find_compiler(arguments.cc, arguments.cflags)
    compiled = compile_model(asked)
    tell_notes(compiled.notes)
    files = [file.resolve() for file in arguments.sources if file.suffix not in (".ld", ".lds")]
    flags = [*dict.fromkeys(f"-I{file.parent}" for file in files), *map(str, files)]
    return firmware.build(compiled.view, compiled.texts, folder, board, compiler, flags), compiled


def consecutive(program: HostProgram, vectors: list[list[Array]], carry_over: bool) -> list[list[Array]]:
    """Outputs of all vectors; a model with state starts afresh for each, unless the state carries over."""
    if carry_over or not program.view.program.states:
        return program.run(vectors)
    return [program.run([vector])[0] for vector in vectors]


# --- run ----------------------------------------------------------------------------------------------------


def run(arguments: argparse.Namespace) -> int:
    """Run on arrays of a file; write or print the outputs."""
    from aot_model.emit.files import write_bytes
    from aot_model.host.program import scratch_folder

    given, _ = read_arrays(arguments.inputs, "inputs")
    with scratch_folder() as folder:
        program, _ = built(arguments, Path(folder))
        vectors, stacked = _inputs(program.view, given, arguments.inputs)
        results = consecutive(program, vectors, carry_over=True)
    outputs = _named_outputs(program.view, results, stacked)
    if arguments.outputs is not None:
        write_bytes({arguments.outputs: _npz(outputs)})
        return 0
    for name, array in outputs.items():
        print(f"{name}: {array.dtype}{list(array.shape)}")
        print(np.array2string(array, threshold=64, max_line_width=118))
    return 0


def _inputs(view: ModelView, given: Mapping[str, Array], path: Path) -> tuple[list[list[Array]], bool]:
    """Input arrays of each run, and whether they were stacked (`in_<i>`) rather than one run by name."""
    if "" in given:
        names = [p.buffer.name or p.c_name for p in view.inputs]
        if len(names) != 1:
            there = f"{len(names)} inputs: {', '.join(names)}" if names else "no inputs"
            raise fail(
                "E104",
                f"the file is a single array, and the model has {there}",
                where=str(path),
                hint="give an .npz with an array for each input, by its name",
            )
        given = {names[0]: given[""]}
    stacked = bool(view.inputs) and "in_0" in given and all(p.buffer.name != "in_0" for p in view.inputs)
    problems: list[Problem] = []
    columns: list[Array] = []
    for number, port in enumerate(view.inputs):
        type_ = port.buffer.type
        keys = (f"in_{number}",) if stacked else (port.buffer.name, port.c_name)
        array = next((given[k] for k in keys if k in given), None)
        if array is None:
            problems.append(
                Problem(
                    "E104",
                    f"input '{keys[0]}' ({type_}) is missing",
                    str(path),
                    f"there are: {', '.join(sorted(given)) or 'no arrays'}",
                )
            )
            continue
        array = array if stacked else array[np.newaxis]
        if type_.dtype.is_string and is_text(array):
            try:
                array = encoded(array, type_.dtype)
            except ValueError as error:
                problems.append(Problem("E104", f"input '{keys[0]}': {error}", str(path)))
                continue
        if array.dtype != type_.dtype.numpy or array.shape[1:] != type_.shape:
            shape = list(array.shape[1:] if not stacked else array.shape)
            wanted = f"{type_.dtype.label}[{'runs, ' if stacked else ''}{', '.join(map(str, type_.shape))}]"
            problems.append(
                Problem("E104", f"input '{keys[0]}' is {array.dtype}{shape}, not {wanted}", str(path))
            )
            continue
        columns.append(array)
    if not problems and len({len(c) for c in columns}) > 1:
        problems.append(Problem("E104", "the stacked inputs have different numbers of runs", str(path)))
    if problems:
        raise CompileError(problems)
    count = len(columns[0]) if columns else 1
    return [[c[k] for c in columns] for k in range(count)], stacked


def _named_outputs(view: ModelView, results: list[list[Array]], stacked: bool) -> dict[str, Array]:
    results = [
        [decoded(array).astype(str) if array.dtype.kind == "S" else array for array in row] for row in results
    ]
    if stacked:
        empty = [np.zeros((0, *p.buffer.type.shape), p.buffer.type.dtype.numpy) for p in view.outputs]
        return {
            f"out_{k}": np.stack([r[k] for r in results]) if results else empty[k]
            for k in range(len(view.outputs))
        }
    return {p.buffer.name or p.c_name: results[0][k] for k, p in enumerate(view.outputs)}


def _npz(arrays: Mapping[str, Array]) -> bytes:
    import io

    stream = io.BytesIO()
    np.savez(stream, **dict(arrays))  # type: ignore[arg-type]  # names are keywords
    return stream.getvalue()


# --- verify -------------------------------------------------------------------------------------------------


def verify(arguments: argparse.Namespace) -> int:
    """Exit status 1 when an output differs by more than the tolerance."""
    if arguments.vectors is None:
        raise fail("E501", "--vectors is missing", hint="only --layers does without, on random inputs")
    from aot_model.host.program import scratch_folder

    with scratch_folder() as folder:
        program, _ = built(arguments, Path(folder))
        vectors = vectors_for(program.view, arguments.vectors)
        inputs = [[array[k] for array in vectors.inputs] for k in range(vectors.count)]
        results = consecutive(program, inputs, carry_over=arguments.sequence)
    rows = output_rows(program.view, results, vectors, tolerance_of(arguments, program.view))
    print(outputs_table(rows, vectors.count))
    if any(row.differing for row in rows):
        raise fail(
            "E602",
            "the outputs differ from the vectors by more than the tolerance",
            where=str(arguments.model),
        )
    return 0


def tolerance_of(arguments: argparse.Namespace, view: ModelView) -> Tolerance:
    """What the options say, and the types that a model computes in."""
    computed = {
        b.type.dtype
        for call in view.program.calls()
        for access in (Access.READ, Access.WRITE)
        for b in call.buffers(access)
        if b.role is not Role.CONSTANT
    }
    return Tolerance(arguments.atol, arguments.rtol, arguments.max_lsb, share_of(computed))


def vectors_for(view: ModelView, path: Path) -> Vectors:
    """The vectors of a file, for a model. CompileError E104."""
    ins, outs = (
        [(p.buffer.name or p.c_name, p.c_name) for p in ports] for ports in (view.inputs, view.outputs)
    )
    return load_vectors(path, [p.buffer.type for p in view.inputs], [p.buffer.type for p in view.outputs],
                        (ins, outs))  # fmt: skip


def output_rows(
    view: ModelView, results: list[list[Array]], vectors: Vectors, tolerance: Tolerance
) -> list[Comparison]:
    """Each output of all runs against the vectors."""
    return [
        compare(
            _title(p), str(p.buffer.type), np.stack([r[k] for r in results]), vectors.outputs[k], tolerance
        )
        for k, p in enumerate(view.outputs)
    ]


def _title(port: Port) -> str:
    from aot_model.c.names import printable

    return printable(port.buffer.name) or port.c_name


def outputs_table(rows: list[Comparison], count: int) -> str:
    from aot_model.cli.table import table

    head = ("output", "type", "elements", "max |difference|", "of its range", "differing", "")
    body: list[tuple[Any, ...]] = [
        (
            r.name,
            r.type,
            f"{r.elements:,}",
            f"{r.worst:.3g}",
            f"{r.worst / r.extent:.2g}" if r.extent else "-",
            f"{r.differing:,}",
            "differs" if r.differing else "ok",
        )
        for r in rows
    ]
    return f"{count} vector{'' if count == 1 else 's'}\n{table(head, body, right=(2, 3, 4, 5))}"
