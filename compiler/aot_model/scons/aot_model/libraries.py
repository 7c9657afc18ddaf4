"""AotModelLibrary, AotModelSources and AotModelArena."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

from SCons.Action import Action
from SCons.Errors import UserError
from SCons.Util import NodeList

from .compiler import Environment, Node, compiler_option, describe, identity, probe_object


class Generated(NodeList):  # type: ignore[misc]
    """The nodes that a builder returned, and what else there is to know of them."""

    source: Node
    header: Node
    metadata: Node
    params: Node | None
    report: Node | None
    include_dirs: list[Node]
    target: str
    library: Node | None = None


def identifier(env: Environment, call: str, name: str) -> str:
    """The name of a node as a C identifier that a library can have."""
    text = re.sub(r"[^A-Za-z0-9_]", "_", os.path.basename(name))
    text = f"m{text}" if text[:1].isdigit() else re.sub("^_+", "m_", text) if text.strip("_") else "model"
    if re.match("aot_model(_|$)", text.lower()):
        text = f"m_{text}"
    if text.lower() in str(describe(env).get("reserved", "")).split():
        print(
            f"{call}: its header is {text}_model.h, because programs include <{text.lower()}.h>; model_name "
            "says otherwise"
        )
        text += "_model"
    return text


def construction_variables(call: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The construction variables among keyword arguments. UserError for anything else."""
    for name in arguments:
        if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", name):
            raise UserError(f"{call}: unknown argument: {name}")
    return dict(arguments)


def _options(env: Environment, arguments: dict[str, Any]) -> list[str]:
    """The options of `aot-model compile` among keyword arguments, which are taken out. The compiler says
    which there are.
    """
    known = describe(env)["options"]
    words = [
        f"{flag}={arguments[key]}" for key, flag in known["text"].items() if arguments.get(key) is not None
    ]
    for key, flag in known["list"].items():
        words += [f"{flag}={value}" for value in arguments.get(key) or ()]
    for key, flag in known["map"].items():
        words += [f"{flag}={symbol}={value}" for symbol, value in (arguments.get(key) or {}).items()]
    words += [flag for key, flag in known["flag"].items() if arguments.get(key)]
    for kind in known.values():
        for key in kind:
            arguments.pop(key, None)
    return words


def _files(env: Environment, call: str, arguments: dict[str, Any]) -> dict[str, Node]:
    """Files that options name, by option, which are taken out."""
    found = {}
    for key, flag in describe(env)["options"].get("file", {}).items():
        given = arguments.pop(key, None)
        if given is not None:
            nodes = env.arg2nodes(given, env.fs.Entry)
            if len(nodes) != 1 or not (nodes[0].has_builder() or nodes[0].rfile().exists()):
                raise UserError(f"{call}: there is no file {given} for {key}")
            found[flag.removeprefix("--")] = nodes[0]
    return found


def _find_model(env: Environment, call: str, model: Any) -> Node:
    nodes = env.arg2nodes(model, env.fs.Entry)
    if len(nodes) != 1:
        raise UserError(f"{call}: one model is one file")
    if not nodes[0].has_builder() and not nodes[0].rfile().exists():
        raise UserError(f"{call}: there is no model {nodes[0]}")
    return nodes[0]


def _sources(
    env: Environment,
    name: str,
    model: Any,
    model_name: str | None = None,
    target: str | None = None,
    offload: Sequence[str] = (),
    target_plugins: Any = (),
    options: Sequence[str] = (),
    depends: Any = (),
    report: bool | str = False,
    call: str = "AotModelSources",
    **arguments: Any,
) -> tuple[Environment, Generated]:
    """The nodes, and the environment with the construction variables among the arguments."""
    call = f"{call}({name})"
    plugins = env.arg2nodes(target_plugins, env.fs.File)
    files = _files(env, call, arguments)
    words = [*_options(env, arguments), *options]
    overrides = construction_variables(call, arguments)
    env = env.Clone(**overrides) if overrides else env
    model_name = identifier(env, call, name) if model_name is None else model_name
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", model_name):
        raise UserError(f"{call}: model_name '{model_name}' is not a C identifier")
    target = ",".join([*offload, target or env.subst("$AOT_MODEL_TARGET") or "auto"])
    model = _find_model(env, call, model)
    folder = env.Dir(f"{name}.aot")
    follows_flags = {"auto", "host"}.intersection(target.split(","))
    probe = [probe_object(env, f"{folder}/probe")] if follows_flags else []
    if report not in (True, False, "html"):
        raise UserError(f"{call}: report is True, or 'html', not '{report}'")
    ending = ".report.html" if report == "html" else ".report.txt"
    suffixes = [
        ".c",
        ".h",
        ".json",
        *([".params"] if "--params=external" in words else []),
        *([ending] if report else []),
    ]
    nodes = env._AotModelCompile(
        [folder.File(model_name + suffix) for suffix in suffixes],
        model,
        AOT_MODEL_ARGUMENTS=[f"--name={model_name}", f"--target={target}", *words],
        AOT_MODEL_REPORT=["--report=${TARGETS[-1]}"] if report else [],
        AOT_MODEL_NAME=model_name,
        AOT_MODEL_TARGET=target,
        AOT_MODEL_FILES={
            "target-plugin": [plugin.rfile() for plugin in plugins],
            "target-probe": probe,
            **{flag: [node.rfile()] for flag, node in files.items()},
        },
    )
    env.Depends(nodes, [identity(env), *probe, *plugins, *files.values(), *env.Flatten(depends)])
    result = Generated(nodes)
    made = dict(zip(suffixes, nodes, strict=True))
    result.source, result.header, result.metadata = made[".c"], made[".h"], made[".json"]
    result.params, result.report = made.get(".params"), made.get(ending)
    result.include_dirs = [folder, env.Dir(describe(env)["include_dir"])]
    result.target = target
    return env, result


def file_arguments(target: Any, source: Any, env: Environment, for_signature: bool) -> list[str]:
    """Arguments that name files, when they are used: the name of a node is relative to the SConscript's
    folder while that is read.
    """
    return [f"--{option}={node}" for option, nodes in env["AOT_MODEL_FILES"].items() for node in nodes]


def aot_model_sources(env: Environment, name: str, model: Any, **arguments: Any) -> Generated:
    return _sources(env, name, model, **arguments)[1]


def aot_model_library(
    env: Environment,
    name: str,
    model: Any,
    count_code: bool = False,
    max_stack: int | str | None = None,
    stack_allowance: int | str | None = None,
    max_cycles: float | str | None = None,
    clock: float | str | None = None,
    **arguments: Any,
) -> Generated:
    max_flash = arguments.get("max_flash")
    env, made = _sources(env, name, model, call="AotModelLibrary", **arguments)
    include = [*made.include_dirs, "$CPPPATH"]
    measured = ["-fcallgraph-info=su"] if max_stack is not None else []
    measured += ["-g"] if count_code or max_cycles is not None else []
    base = os.path.splitext(str(made.source))[0]
    if not measured:
        objects = env.Object(made.source, CPPPATH=include)
    else:
        objects = env.Command(
            [f"{base}$OBJSUFFIX", *([f"{base}.ci"] if max_stack is not None else [])],
            made.source,
            Action("$CCCOM", "$CCCOMSTR"),
            CPPPATH=include,
            CFLAGS=["$CFLAGS", *measured],
        )
    result = Generated(env.StaticLibrary(name, objects[0]))
    compiler = compiler_option(env)
    checked = []
    if count_code:
        words = [compiler, *([] if max_flash is None else [f"--max-flash={max_flash}"])]
        checked += env._AotModelSize(
            f"{base}.size.txt", [made.metadata, objects[0]], AOT_MODEL_ARGUMENTS=words
        )
    if max_stack is not None:
        allowed = [] if stack_allowance is None else [f"--stack-allowance={stack_allowance}"]
        words = [compiler, *allowed, f"--max-stack={max_stack}"]
        checked += env._AotModelStack(
            f"{base}.stack.txt", [made.metadata, objects[0]], AOT_MODEL_ARGUMENTS=words
        )
    if max_cycles is not None:
        more = {"memory": arguments.get("memory"), "clock": clock, "max-cycles": max_cycles}
        words = [compiler, *(f"--{option}={value}" for option, value in more.items() if value is not None)]
        checked += env._AotModelCycles(
            f"{base}.cycles.txt", [made.metadata, objects[0]], AOT_MODEL_ARGUMENTS=words
        )
    if checked:
        env.Depends(checked, [made.source, made.header, identity(env)])
        env.Depends(result, checked)
    result.__dict__.update({k: v for k, v in made.__dict__.items() if k != "data"})
    result.library = result[0]
    return result


def aot_model_arena(
    env: Environment,
    name: str,
    libraries: Any,
    pool_sections: Mapping[str, str] | None = None,
    **overrides: Any,
) -> Generated:
    call = f"AotModelArena({name})"
    env = env.Clone(**construction_variables(call, overrides)) if overrides else env
    libraries = list(libraries)
    if not libraries or not all(isinstance(library, Generated) and library.library for library in libraries):
        raise UserError(f"{call}: libraries were not made by AotModelLibrary()")
    symbol, folder = identifier(env, call, name), env.Dir(f"{name}.aot")
    arguments = [
        f"--name={symbol}",
        *(f"--pool-section={pool}={section}" for pool, section in (pool_sections or {}).items()),
    ]
    nodes = env._AotModelArena(
        [folder.File(f"{symbol}.c"), folder.File(f"{symbol}.h")],
        [u.metadata for u in libraries],
        AOT_MODEL_ARGUMENTS=arguments,
    )
    env.Depends(nodes, identity(env))
    include = list(dict.fromkeys([folder, *(d for u in libraries for d in u.include_dirs)]))
    result = Generated(
        [
            *env.StaticLibrary(name, env.Object(nodes[0], CPPPATH=[*include, "$CPPPATH"])),
            *(u.library for u in libraries),
        ]
    )
    result.source, result.header, result.include_dirs, result.library = nodes[0], nodes[1], include, result[0]
    return result
