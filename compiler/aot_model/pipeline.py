"""The compiler on one page: read, passes and partition, lower, plan, emit, write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from aot_model.c.names import library_name
from aot_model.emit.budgets import Budgets, check_budgets
from aot_model.emit.contradictions import check_options
from aot_model.emit.files import Product, is_page, own_files
from aot_model.emit.metadata import metadata_of
from aot_model.emit.parameters_file import parameters_file
from aot_model.emit.render import header_and_source
from aot_model.emit.report import report
from aot_model.emit.view import ModelView, Options
from aot_model.errors import CompileError, located
from aot_model.frontends.model import Bindings, Model
from aot_model.frontends.read import read_model
from aot_model.ir.expr import clear_interned
from aot_model.ir.graph import count_parameters
from aot_model.ir.program import Buffer, Program
from aot_model.kernels.target import Target
from aot_model.lowering.fetch import fetch
from aot_model.lowering.lower import lower
from aot_model.lowering.memory_plan import Addresses, plan_memory
from aot_model.lowering.pieces import cut_products
from aot_model.lowering.room import Lowered, Place, limit, with_room
from aot_model.memory import Pool
from aot_model.ops.registry import load_all
from aot_model.page.given import Given
from aot_model.page.render import page
from aot_model.partition.partition import Assignment
from aot_model.passes.manager import Observer, run_passes, run_program_passes
from aot_model.targets.registry import parse_target, placed, plugin_sources


@dataclass(frozen=True)
class Request:
    """One compilation: the model, and everything that the command line can say about it."""

    model: Path
    name: str
    target: str = "host"
    options: Mapping[str, str] = field(default_factory=dict)
    dims: Mapping[str, int] = field(default_factory=dict)
    library: Options = field(default_factory=Options)
    pools: tuple[Pool, ...] = (Pool("workspace"),)
    algorithm: str | None = None
    budgets: Budgets = field(default_factory=Budgets)
    plugins: tuple[Path, ...] = ()
    """Python files that define further targets."""
    constants: Mapping[str, Sequence[float]] = field(default_factory=dict)
    bounds: Mapping[str, int] = field(default_factory=dict)
    memory: str | None = None
    """What code and constants of a Cortex-M are in (cycles/rules.py)."""
    signature: str | None = None
    """Which of a TFLite file's signatures is the model."""


@dataclass(frozen=True)
class Compiled:
    """The result: texts by file name, the files that they were made from, notes for the user."""

    view: ModelView
    texts: Mapping[str, str]
    sources: tuple[Path, ...]
    notes: tuple[str, ...]
    operators: Mapping[str, int]
    """How often each operator is in the model as read."""
    parameters: int
    """Elements of all its constants."""
    binaries: Mapping[str, bytes] = field(default_factory=dict)
    """Files that are not text: external parameters."""
    constants: Mapping[str | int, np.ndarray] = field(default_factory=dict)
    """Inputs of the file that Request.constants made constants."""
    assignments: tuple[Assignment, ...] = ()
    """Where each node went, when other targets were asked before the processor."""
    signature: str | None = None
    """Request.signature."""


def compile_model(request: Request, observer: Observer | None = None) -> Compiled:
    """Compile a model; nothing is written. CompileError with everything that is wrong."""
    clear_interned()
    load_all()
    target = parse_target(request.target, request.options, request.plugins)
    if request.memory is not None:
        target = placed(target, request.memory)
    check_options(request.library, request.pools, [t.name for t in (*target.before, target)])
    arithmetic = target.option("arithmetic") if target.has_option("arithmetic") else "tflm"
    model = read_model(
        request.model,
        Bindings(
            request.dims, request.constants, request.bounds, request.library.string_bytes, request.signature
        ),
        arithmetic,
    )
    return compile_graph(request, model, target, observer)


def compile_graph(
    request: Request, model: Model, target: Target, observer: Observer | None = None
) -> Compiled:
    """Compile a model that has been read."""
    operators, parameters = Counter(n.kind for n in model.graph.nodes), count_parameters(model.graph)
    with located(str(request.model)):
        parts = run_passes(model.graph, target, observer)
        if request.library.fetch:
            cut_products(model.graph, request.library.fetch)
        program = lower(model.graph, target)

    def planned(lowered: Program, kept: Mapping[Buffer, Place] | None = None) -> Addresses:
        run_program_passes(lowered, target, "after-lowering")
        if request.library.fetch:
            fetch(lowered, request.library.fetch, library_name(request.name, Path(request.name)))
        return plan_memory(
            lowered,
            request.pools,
            io_in_workspace=request.library.io == "workspace",
            algorithm=request.algorithm,
            processor=target.name,
            kept=kept,
        )

    least = Lowered(program, planned(program))
    found = with_room(model.graph, target, least, planned, limit(target, least.size, request.budgets.ram))
    program, addresses = found.program, found.addresses
    run_program_passes(program, target, "after-planning", addresses.of.keys())
    view = ModelView.of(
        request.name, program, addresses, target, request.library, request.model.name, model.sha256
    )
    check_budgets(view, request.budgets, lambda: _alternatives(request, target), str(request.model))
    header, source = header_and_source(view)
    texts = {
        f"{view.name}.h": header,
        f"{view.name}.c": source,
        f"{view.name}.json": metadata_of(view).to_json(),
    }
    binaries = {f"{view.name}.params": parameters_file(view)} if view.external else {}
    return Compiled(
        view,
        texts,
        (*model.sources, *plugin_sources(request.plugins)),
        tuple(model.notes),
        operators,
        parameters,
        binaries,
        model.constants,
        tuple(parts.assignments) if target.asked() else (),
        request.signature,
    )


def _alternatives(request: Request, target: Target) -> dict[str, ModelView]:
    """The same model with options that may need less, by how the command line says them."""
    others = {}
    if request.library.io == "workspace":
        others["--io caller"] = replace(request, library=replace(request.library, io="caller"))
    if request.library.fetch:
        others["--fetch 0"] = replace(request, library=replace(request.library, fetch=0))
    for name, value in target.preferring("size").items():
        others[f"--option {name}={value}"] = replace(request, options={**request.options, name: value})
    found = {}
    for words, other in others.items():
        with suppress(CompileError):  # it does not fit the other options
            found[words] = compile_model(replace(other, budgets=Budgets())).view
    return found


def page_of(compiled: Compiled, given: Given | None = None) -> str:
    """The page that shows a compilation, as HTML, with what was measured of it."""
    return page(compiled.view, compiled.texts[f"{compiled.view.name}.c"], given)


def product(compiled: Compiled, html: str | None = None) -> Product:
    """The files of a compilation, and what they were made from. html: the report is this page, not the
    table."""
    texts = {name: text.encode() for name, text in compiled.texts.items()}
    files = {name: texts[name] for name in sorted(texts)}  # .c is the first
    shown = report(compiled.view) if html is None else html
    return Product({**files, **compiled.binaries}, shown, compiled.notes, compiled.sources, own_files())


def write(
    compiled: Compiled,
    folder: Path,
    *,
    depfile_path: Path | None = None,
    report_path: Path | None = None,
    keep_unchanged: bool = False,
) -> None:
    """Write the files of a compilation, all or none."""
    product(compiled, page_of(compiled) if is_page(report_path) else None).write(
        folder, depfile_path=depfile_path, report_path=report_path, keep_unchanged=keep_unchanged
    )
