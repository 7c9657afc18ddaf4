"""`aot-model compile`, `report`, `export`, `check` and `inputs`."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aot_model.emit.files import Product
    from aot_model.emit.view import Options
    from aot_model.ir.program import Call
    from aot_model.memory import Pool
    from aot_model.partition.partition import Assignment
    from aot_model.passes.manager import Observer
    from aot_model.pipeline import Compiled, Request


def request(arguments: argparse.Namespace, library: Options | None = None) -> Request:
    """The compilation that a command line asks for; options that a command does not have are at their
    defaults.
    """
    from aot_model.c.names import library_name
    from aot_model.emit.budgets import Budgets
    from aot_model.emit.view import Options
    from aot_model.memory import Pool
    from aot_model.pipeline import Request

    given = vars(arguments)
    pools = _pools(arguments, "pool") or (Pool("workspace"),)
    return Request(
        arguments.model,
        library_name(given.get("name"), arguments.model),
        arguments.target,
        dict(arguments.option),
        dict(arguments.dim),
        library
        or Options(
            io=given.get("io", "caller"),
            string_bytes=int(arguments.string_bytes),
            fetch=given.get("fetch") or 0,
        ),
        pools,
        given.get("planner"),
        Budgets(given.get("max_ram"), given.get("max_flash")),
        tuple(arguments.target_plugin),
        dict(arguments.constant),
        dict(arguments.bound),
        memory=given.get("memory"),
        signature=given.get("signature"),
    )


def compile_(arguments: argparse.Namespace) -> int:
    from aot_model.cli import cache
    from aot_model.cli.terminal import patience

    # What is printed on the way is not in the cache.
    kept = None if arguments.dump_after or arguments.explain else cache.from_environment()
    began = time.time_ns()
    made = kept.find(arguments) if kept else None
    if made is None:
        with patience(f"compiling {arguments.model.name}"):
            made = _compile(arguments)
        if kept:
            kept.store(arguments, made, began)
    made.write(
        arguments.output,
        depfile_path=arguments.depfile,
        depfile_target=arguments.depfile_target,
        report_path=arguments.report,
        keep_unchanged=arguments.keep_unchanged,
    )
    tell_notes(made.notes)
    if not arguments.quiet:
        print(_summary(arguments, made, (time.time_ns() - began) / 1e9))
    return 0


def _summary(arguments: argparse.Namespace, made: Product, seconds: float) -> str:
    """What was written, and what it needs."""
    from aot_model.library.metadata import Metadata

    names = list(made.files)
    facts = Metadata.read(arguments.output / next(name for name in names if name.endswith(".json")))
    return (
        f"{arguments.output / names[0]}, {', '.join(name.removeprefix(facts.name) for name in names[1:])} "
        f"for {facts.target}: RAM {facts.workspace_size:,} bytes, "
        f"constants {facts.constant_bytes:,} bytes, {facts.macs:,} MACs; {seconds:.1f} s"
    )


def _compile(arguments: argparse.Namespace) -> Product:
    from aot_model.emit.files import is_page
    from aot_model.passes.manager import Observer
    from aot_model.pipeline import product

    observer = Observer(frozenset(arguments.dump_after), frozenset(arguments.explain))
    if not is_page(arguments.report):
        return product(_compiled(arguments, observer))
    from aot_model.cli.page import page_beside_error, page_text

    with page_beside_error(request(arguments, _options(arguments)), arguments.report):
        compiled = _compiled(arguments, observer)
    return product(compiled, page_text(compiled, arguments.model))


def _compiled(arguments: argparse.Namespace, observer: Observer | None = None) -> Compiled:
    """The library that a command line asks for, of the quantised model where it says so."""
    from aot_model.pipeline import compile_model

    asked = request(arguments, _options(arguments))
    if not arguments.quantise:
        _check_no_quantisation(arguments)
        return compile_model(asked, observer)
    from aot_model.host.program import scratch_folder
    from aot_model.quantise.cost import Budget, Platform
    from aot_model.quantise.session import Job, quantise

    job = Job(
        arguments.model,
        arguments.calibration,
        asked.dims,
        asked.constants,
        asked.bounds,
        metric=arguments.metric,
        plan=arguments.plan,
        max_drop=arguments.max_drop,
        mixed=arguments.within is not None,
        budget=Budget(times=arguments.within),
    )
    if arguments.within is not None:
        job = replace(job, platform=Platform(asked.target, asked.options, asked.plugins))
    with scratch_folder() as folder:
        made = quantise(job, Path(folder))
        model = Path(folder) / arguments.model.name
        model.write_bytes(made.model)
        asked = replace(asked, model=model)
        if made.plan is not None:  # extents and constants are in the model now
            asked = replace(asked, dims={}, constants={})
        compiled = compile_model(asked, observer)
    sources = dict.fromkeys((*made.files, *(f for f in compiled.sources if f != model)))
    return replace(compiled, sources=tuple(sources), notes=(*made.notes, *compiled.notes))


def _check_no_quantisation(arguments: argparse.Namespace) -> None:
    from aot_model.errors import fail

    for option in ("calibration", "plan", "max_drop", "within"):
        if getattr(arguments, option) is not None:
            raise fail("E501", f"--{option.replace('_', '-')} without --quantise", hint="say --quantise too")


def report(arguments: argparse.Namespace) -> int:
    """The page alone."""
    from aot_model.cli.page import page_beside_error, page_text
    from aot_model.emit.files import write_files

    with page_beside_error(request(arguments, _options(arguments)), arguments.output, arguments):
        compiled = _compiled(arguments)
    text = page_text(compiled, arguments.model, arguments)
    write_files({arguments.output: text}, keep_unchanged=arguments.keep_unchanged)
    tell_notes(compiled.notes)
    return 0


def export(arguments: argparse.Namespace) -> int:
    from aot_model.c.names import identifier, library_name
    from aot_model.emit.archive import Package, archive, kind_of
    from aot_model.emit.files import write_bytes
    from aot_model.errors import CompileError, Problem, fail
    from aot_model.pipeline import product

    given = arguments.name or [None] * len(arguments.models)
    if len(given) != len(arguments.models):
        raise fail(
            "E501",
            f"--name is given {len(given)} times for {len(arguments.models)} models",
            hint="give it once for each model, in their order, or not at all",
        )
    names = [library_name(name, model) for name, model in zip(given, arguments.models, strict=True)]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise fail(
            "E501",
            f"'{twice}' is the name of more than one library",
            hint="name them with --name, once for each model",
        )
    kind = kind_of(arguments.output, arguments.format)
    folder = names[0] if len(names) == 1 else identifier(arguments.output.name.partition(".")[0], "models")
    package = Package(folder, arguments.package_version, arguments.cmsis_pack or "", arguments.package_url)
    if kind == "pack" and not package.vendor:
        raise fail("E501", "a .pack has the name of a vendor in it", hint="say it with --cmsis-pack VENDOR")
    libraries, problems, notes = [], list[Problem](), list[str]()
    for name, model in zip(names, arguments.models, strict=True):
        one = argparse.Namespace(**{**vars(arguments), "name": name, "model": model})
        try:
            compiled = _compiled(one)
        except CompileError as error:
            problems += error.problems
            continue
        libraries.append((compiled.view, product(compiled).files))
        notes += compiled.notes
    if problems:
        raise CompileError(problems)
    write_bytes({arguments.output: archive(package, libraries, kind)})
    tell_notes(notes)
    return 0


def _options(arguments: argparse.Namespace) -> Options:
    from aot_model.emit.view import Options

    return Options(
        arguments.workspace, arguments.io, arguments.metadata, dict(arguments.pool_section), arguments.params,
        tuple(dict.fromkeys(arguments.interface)), arguments.profile, int(arguments.string_bytes),
        _pools(arguments, "constant_pool"), arguments.trace, arguments.fetch or 0,
    )  # fmt: skip


def _pools(arguments: argparse.Namespace, option: str) -> tuple[Pool, ...]:
    """The pools of --pool or --constant-pool. CompileError E501 when a speed or a target is given to one that
    there is not.
    """
    from aot_model.errors import fail
    from aot_model.memory import Pool

    given = vars(arguments)
    names = [name for name, _, _ in (*(given.get("pool") or ()), *(given.get("constant_pool") or ()))]
    speeds, targets = dict(given.get("pool_speed") or ()), dict(given.get("pool_targets") or ())
    unknown = sorted({*speeds, *targets} - set(names))
    if unknown:
        raise fail(
            "E501",
            f"--pool-speed, --pool-targets: there is no pool '{unknown[0]}'",
            hint=f"the pools are {', '.join(names)}",
        )
    pools = (Pool(*pool) for pool in given.get(option) or ())
    return tuple(
        replace(
            p,
            speed=speeds.get(p.name, 0),
            targets=tuple(targets[p.name].split("+")) if p.name in targets else (),
        )
        for p in pools
    )


def check(arguments: argparse.Namespace) -> int:
    """Every problem at once; exit status 1 when there is one."""
    from aot_model.errors import CompileError, Problem
    from aot_model.pipeline import compile_model

    problems: list[Problem] = []
    notes: list[str] = []
    nodes: list[Assignment] = []
    calls: list[Call] = []
    if arguments.pareto is not None:
        from aot_model.cli.pareto import pareto, refuse_with

        refuse_with(arguments)
        return pareto(request(arguments), arguments)
    try:
        compiled = compile_model(request(arguments))
        notes += compiled.notes
        nodes += compiled.assignments
        calls += compiled.view.program.calls()
    except CompileError as error:
        problems += error.problems
    if arguments.json:
        fields = [{"code": p.code, "where": p.where, "message": p.message, "hint": p.hint} for p in problems]
        facts: dict[str, Any] = {"problems": fields, "notes": notes, "nodes": [asdict(n) for n in nodes]}
        if arguments.explain:
            loops = [
                {"layer": c.layer, "operator": c.op, "macs": c.macs, **asdict(c.generic)}
                for c in calls
                if c.generic
            ]
            facts |= {"macs": sum(c.macs for c in calls), "generic": loops}
        print(json.dumps(facts, indent=1))
        return 1 if problems else 0
    if nodes:
        print(_placement(nodes))
    if arguments.explain and not problems:
        print(_generic(calls))
    for problem in problems:
        print(problem, file=sys.stderr)
    tell_notes(notes)
    print(f"{arguments.model}: {_count(problems)} for target {arguments.target}")
    return 1 if problems else 0


def _generic(calls: Sequence[Call]) -> str:
    """The generic loops, those with most to do first. A product of a kernel counts as an operation."""
    from aot_model.c.names import printable
    from aot_model.cli.table import table

    whole = sum(c.macs for c in calls)
    work = sum(c.generic.operations if c.generic else c.macs for c in calls)
    loops = [(c, c.generic) for c in calls if c.generic]
    rows = [
        (
            printable(c.layer, 40),
            c.op,
            f"{c.macs:,}",
            _share(c.macs, whole),
            f"{g.operations:,}",
            _share(g.operations, work),
            g.why or "it multiplies no matrices or windows",
        )
        for c, g in sorted(loops, key=lambda pair: -pair[1].operations)
    ]
    head = ("generic loop", "operator", "MACs", "share", "operations", "share", "not taken by kernels")
    own = sum(c.macs for c, _ in loops)
    return (
        f"{table(head, rows, right=(2, 3, 4, 5))}\n"
        f"generic loops compute {own:,} of {whole:,} MACs ({_share(own, whole)})"
    )


def _share(part: int, whole: int) -> str:
    return f"{100 * part / max(whole, 1):.1f} %"


def _placement(nodes: Sequence[Assignment]) -> str:
    """Where every node goes, and why the patterns that fit did not take it."""
    from aot_model.c.names import printable
    from aot_model.cli.table import table

    rows = []
    for n in nodes:
        refused = "; ".join(
            f"{target}:{pattern}: {why}" if pattern else f"{target}: {why}"
            for target, pattern, why in n.refused
        )
        rows.append(
            (printable(n.node, 40), n.operator, f"{n.target}:{n.pattern}" if n.target else "-", refused)
        )
    taken = sum(1 for n in nodes if n.target)
    return (
        f"{table(('node', 'operator', 'goes to', 'not taken by'), rows)}\n{taken} of {len(nodes)} nodes "
        "are taken over"
    )


def inputs(arguments: argparse.Namespace) -> int:
    from aot_model.frontends.read import model_files

    for path in model_files(arguments.model):
        print(path.as_posix())
    return 0


def _count(problems: Sequence[object]) -> str:
    return f"{len(problems)} problem{'s' if len(problems) > 1 else ''}" if problems else "no problems"


def tell_notes(notes: list[str] | tuple[str, ...]) -> None:
    from aot_model.errors import shown

    for note in notes:
        print(f"note: {shown(note)}", file=sys.stderr)
