"""All targets by name: those of this package, those that other packages register (entry points), those of
plug-in files.
"""

from __future__ import annotations

import difflib
import importlib.util
import os
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from aot_model.cycles.rules import memory_of
from aot_model.errors import CompileError, Problem, fail
from aot_model.kernels.target import GRAPH_PHASES, PROGRAM_PHASES, Target
from aot_model.ops.registry import OPERATORS, load_all

ENTRY_POINTS = "aot_model.targets"


@cache
def _installed() -> tuple[EntryPoint, ...]:
    """The targets that installed packages register, by name. Once in a process, like targets(): the files of
    every installed package are read for it, a quarter of what it takes to compile a small model.
    """
    return tuple(sorted(entry_points(group=ENTRY_POINTS), key=lambda e: e.name))


@cache
def targets(files: tuple[Path, ...] = ()) -> dict[str, Target]:
    """Every target by name, with those of the plug-in files given. CompileError E502 when a plug-in cannot be
    loaded.
    """
    from aot_model.targets.builtin import BUILTIN

    found = {t.name: t for t in BUILTIN}
    for entry in _installed():
        plugin = f"target plug-in '{entry.name}' ({entry.value})"
        try:
            target = entry.load()
        except (Exception, SystemExit) as error:
            raise fail("E502", f"{plugin} cannot be loaded: {error}") from error
        _add(found, plugin, [target])
    for file in files:
        _add(found, f"target plug-in {file}", _load(file))
    return found


def _load(file: Path) -> Iterable[object]:
    """The TARGETS of a Python file, which runs as a module that nobody else imports. CompileError E101,
    E502.
    """
    if not os.path.isfile(file):
        raise fail(
            "E101",
            "there is no such file",
            where=str(file),
            hint="--target-plugin takes a Python file that defines TARGETS",
        )
    name = f"aot_model_plugin_{file.stem}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise fail("E502", f"target plug-in {file} is not a Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up
    try:
        spec.loader.exec_module(module)
        return list(module.TARGETS)
    except CompileError:
        raise
    except (Exception, SystemExit) as error:
        raise fail(
            "E502",
            f"target plug-in {file} cannot be loaded: {type(error).__name__}: {error}",
            hint="it defines TARGETS, a list of Target",
        ) from error


def _add(found: dict[str, Target], plugin: str, given: Iterable[object]) -> None:
    for target in given:
        if not isinstance(target, Target):
            raise fail("E502", f"{plugin} has a {type(target).__name__}, not a Target")
        if target.name in found:
            raise fail("E502", f"{plugin}: there is a target '{target.name}' already")
        if not target.name or any(c in ",= \t\n" for c in target.name):
            raise fail(
                "E502", f"{plugin}: '{target.name}' cannot be the name of a target: no comma, '=' or space"
            )
        _check_names(target, plugin)
        found[target.name] = target


def _check_names(target: Target, plugin: str) -> None:
    """CompileError E502 for all that a target of a plug-in has for phases or operators that there are not: it
    would never run.
    """
    load_all()
    asked = [
        ("phase of graph passes", target.graph_passes, GRAPH_PHASES),
        ("phase of program passes", target.program_passes, PROGRAM_PHASES),
        ("operator", _operators_of(target), {name for _, name in OPERATORS}),
    ]
    unknown = [
        Problem(
            "E502",
            f"{plugin}: target '{target.name}' names the {kind} '{name}', which does not exist",
            hint=_near(name, known),
        )
        for kind, given, known in asked
        for name in given
        if name not in known
    ]
    if unknown:
        raise CompileError(unknown)


def _operators_of(target: Target) -> list[str]:
    """What its kernels compute, its patterns match and it keeps whole, in this order, each once."""
    found = [k.operator for k in target.kernels]
    if target.offload is not None:
        for claim in target.offload.patterns:
            found += sorted(claim.pattern.kinds())
        found += sorted(target.offload.keep)
    return list(dict.fromkeys(found))


def _near(name: str, known: Collection[str]) -> str:
    """Which of those that there are may be meant; all, where they are few."""
    near = difflib.get_close_matches(name, known, 1)
    few = f"there are: {', '.join(known)}" if len(known) < 10 else ""
    return f"did you mean '{near[0]}'?" if near else few


def plugin_sources(files: Sequence[Path] = ()) -> list[Path]:
    """The files that targets from elsewhere are made of, for depfiles: plug-in files, and loaded modules of
    packages.
    """
    packages = {e.value.partition(":")[0].split(".")[0] for e in _installed()} - {"aot_model"}
    loaded = sorted((n, m.__file__) for n, m in sys.modules.items() if n.split(".")[0] in packages)
    return [*files, *(Path(file) for _, file in loaded if file)]


def parse_target(text: str, options: Mapping[str, str] | None = None, plugins: Sequence[Path] = ()) -> Target:
    """The processor of "npu,key=value,cortex-m4,key=value", with the targets named before it in `before`.

    Settings belong to the name before them. options: go to the processor where it has them, else to the
    others that do. CompileError E501 for a target or an option that does not exist.
    """
    known = targets(tuple(plugins)) if plugins else targets()
    chosen: list[tuple[Target, dict[str, str]]] = []
    for word in text.split(","):
        key, equals, value = word.partition("=")
        if equals and chosen:
            chosen[-1][1][key] = value
        elif equals or key not in known:
            near = difflib.get_close_matches(word, known, 1)
            hint = f"did you mean '{near[0]}'?" if near else f"there are: {', '.join(known)}"
            raise fail(
                "E501",
                f"unknown target '{word}'",
                hint=f"{hint}; a target's options are of the form key=value" if chosen else hint,
            )
        else:
            chosen.append((known[key], {}))
    _check_roles([t for t, _ in chosen])
    *before, processor = chosen
    rest = dict(options or {})
    own = {
        k: rest.pop(k)
        for k in list(rest)
        if processor[0].has_option(k) or not any(t.has_option(k) for t, _ in before)
    }
    partners = tuple(
        t.with_options({**given, **{k: v for k, v in rest.items() if t.has_option(k)}}) for t, given in before
    )
    return replace(processor[0].with_options({**processor[1], **own}), before=partners)


def placed(target: Target, memory: str) -> Target:
    """The target with its code and constants in a memory, where it makes a difference. CompileError E501 for
    one that nobody knows.
    """
    name = memory_of(memory).name
    return target.with_options({"memory": name}) if target.has_option("memory") else target


def _check_roles(chosen: Sequence[Target]) -> None:
    """CompileError E501 unless all but the last take over parts of a model, and the last one computes the
    rest.
    """
    *before, last = chosen
    for target in before:
        if target.offloads is None:
            raise fail(
                "E501",
                f"target '{target.name}' takes over no parts of a model: it can only be the last one",
                hint=f"'{last.name},{target.name}'?",
            )
    if len({t.name for t in chosen}) != len(chosen):
        raise fail("E501", f"a target is named twice in '{','.join(t.name for t in chosen)}'")
    if not last.is_processor and last.offloads is not None:
        raise fail(
            "E501",
            f"target '{last.name}' takes over parts of a model only",
            hint=f"name what computes the rest: '{last.name},cortex-m4'",
        )
