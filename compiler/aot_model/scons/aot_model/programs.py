"""AotModelTest and AotModelBenchmark."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from SCons.Action import Action
from SCons.Defaults import Touch
from SCons.Errors import UserError
from SCons.Util import CLVar

from .compiler import Environment, Node, compiler_option, identity, is_native
from .libraries import Generated, construction_variables


def _program(
    env: Environment,
    call: str,
    name: str,
    library: Any,
    subcommand: str,
    arguments: Sequence[str],
    vectors: Sequence[Node],
    measured: bool = False,
) -> list[Node]:
    """measured: whether the arguments name the library, as the second source."""
    if not isinstance(library, Generated) or library.library is None:
        raise UserError(f"{call}: library was not made by AotModelLibrary()")
    main = env._AotModelMain(
        f"{name}.aot/main.c",
        [library.metadata, *([library.library] if measured else [])],
        AOT_MODEL_SUBCOMMAND=subcommand,
        AOT_MODEL_ARGUMENTS=list(arguments),
    )
    env.Depends(main, [identity(env), *vectors])
    # Start-up code is compiled beside each program: environments with other flags may use the same file.
    extra = [
        env.Object(f"{name}.aot/{Path(str(file)).stem}", file)
        for file in env.Flatten(env.get("AOT_MODEL_TEST_SOURCES", []))
    ]
    objects = env.Object(main, CPPPATH=[*library.include_dirs, "$CPPPATH"])
    libraries = [library, *([] if env["PLATFORM"] == "win32" else ["m"])]
    flags = [*CLVar(env["LINKFLAGS"]), *env.get("AOT_MODEL_TEST_LINKFLAGS", [])]
    return env.Program(  # type: ignore[no-any-return]
        name, [*objects, *extra], LIBS=[*libraries, "$LIBS"], LINKFLAGS=flags
    )


def aot_model_test(
    env: Environment,
    name: str,
    library: Any,
    vectors: Any,
    atol: float | None = None,
    rtol: float | None = None,
    max_lsb: int | None = None,
    alias: str = "test",
    **overrides: Any,
) -> list[Node]:
    call = f"AotModelTest({name})"
    env = env.Clone(**construction_variables(call, overrides)) if overrides else env
    entry = env.arg2nodes(vectors, env.fs.Entry)[0]
    path = entry.rfile() if hasattr(entry, "rfile") else entry.rdir()
    if not entry.has_builder() and not path.exists():
        raise UserError(f"{call}: there are no vectors {entry}")
    files = [entry]
    if os.path.isdir(path.get_abspath()):
        files = [env.File(str(file)) for file in sorted(Path(path.get_abspath()).rglob("*.pb"))]
    said = {"atol": atol, "rtol": rtol, "max-lsb": max_lsb}
    arguments = [f"--vectors={path}", *(f"--{k}={v}" for k, v in said.items() if v is not None)]
    program = _program(env, call, name, library, "test-main", arguments, files)
    if not env["AOT_MODEL_EMULATOR"] and not is_native(env):
        env.Alias(alias, program)
        return program
    passed = env.Command(
        f"{name}.aot/{os.path.basename(name)}.passed",
        program,
        [Action("$AOT_MODEL_EMULATOR $SOURCE.abspath", "Testing $SOURCE"), Touch("$TARGET")],
    )
    env.NoCache(passed)
    env.Alias(alias, passed)
    return program


def aot_model_benchmark(
    env: Environment, name: str, library: Any, runs: int | None = None, **overrides: Any
) -> list[Node]:
    call = f"AotModelBenchmark({name})"
    env = env.Clone(**construction_variables(call, overrides)) if overrides else env
    arguments = [] if runs is None else [f"--runs={runs}"]
    # An emulator counts no cycles: the program has the estimate of the library's in it.
    emulated = "qemu-system-arm" in " ".join(map(str, env.Flatten([env["AOT_MODEL_EMULATOR"]])))
    if emulated:
        arguments += [compiler_option(env), "--objects", "${SOURCES[1]}"]
    return _program(env, call, name, library, "benchmark-main", arguments, [], measured=emulated)
