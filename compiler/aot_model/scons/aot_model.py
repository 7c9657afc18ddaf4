"""SCons tool: libraries of models.

    env = Environment(tools=["default", "aot_model"], toolpath=[<what `aot-model --scons-dir` prints>])
    kws = env.AotModelLibrary("kws", "models/kws.tflite")
    env.Program("app", ["main.c"], LIBS=[kws, "m"], CPPPATH=kws.include_dirs)
    env.AotModelTest("kws_test", kws, "vectors.npz")     # scons test

env.AotModelLibrary(name, model, ...) makes a static library of the generated C, compiled with the
environment's own compiler and flags. env.AotModelSources(name, model, ...) stops at the C. Both have these
arguments:

    model           the ONNX or TFLite file; one that the build makes, too
    model_name      prefix of the generated files and symbols; default: the library's name as a C identifier,
                    with `_model` where `<name>.h` would hide a header of C
    target          what to generate code for (`aot-model targets`), with its options:
                    `cortex-m4,optimize=size`; default: what the library is compiled for, which the C compiler
                    is asked
    offload         targets that take over parts of the model first, in order of preference: docs/targets.md
    target_plugins  Python files that define further targets
    dims            extents of the model's symbolic dimensions
    workspace       who owns the workspace: the library, or the caller of <name>_run(): static|caller
    io              where inputs and outputs are: caller|workspace
    pools           pools of the workspace, the most preferred first
    constant_pools  pools of the constants, the most preferred first
    pool_sections   linker sections of the pools' arrays
    pool_speeds     classes of speed: pools of a higher one are preferred (default: 0)
    pool_targets    targets that may touch a pool (default: all)
    planner         memory planner: auto (default), greedy, best-fit, local-search, optimal, or a plug-in's
    memory          what code and constants of a Cortex-M are in, for which the code is written and max_cycles
                    are estimated: 0ws, tcm, l4-art, f4-art, nrf53, m7-cache
    constants       inputs as constants: one number for each element, or one for all
    bounds          room for n rows of a value, whose number depends on data (Range, Loop)
    string_bytes    size of an element of tensors of strings, its NUL included: 64|16|32|128|256|512|1024
    params          constants in the code, or in <name>.params, which is made beside it: linked|external
    profile         count the ticks of each layer, by a clock of the program
    trace           tell each tensor to a function of the program as soon as it is complete
    interfaces      what the library offers beside its structs: module|positional|packed|tvm-ffi
    metadata_level  how much of the metadata is in flash: full|size|none
    max_ram         budget of the workspace (16k, 1m): more is an error of the build, with a table by layer
    max_flash       budget of the constants; with count_code, of the code as well
    quantise        make integers of a float model first: docs/quantise.md
    calibration     samples for `quantise`: .npz, .npy or a folder
    quantisation_plan the plan for `quantise` to carry out, with calibration or without
    accuracy        how much worse than the float model `quantise` may be on held-back samples: 0.5%
    count_code      count the code as well, when it is compiled: its size by layer is told, and max_flash is
                    of code and constants
    max_stack       budget of the stack of <name>_run(): measured when the C is compiled, with GCC
    stack_allowance what each function that max_stack cannot count may need of the stack; default: such a
                    function is an error
    max_cycles      budget of the estimated cycles of an inference on a Cortex-M (4.2M): what was compiled is
                    run in QEMU; more is an error of the build, with a table by layer
    clock           of the core (120M), for microseconds in the table of max_cycles
    options         any other arguments of `aot-model compile`
    depends         what else is read or must be there first: <file|target>
    report          receives the path of the report, and has it written; a variable that is called `html`: the
                    page (docs/report.md); SCons: True or "html"

Construction variables by keyword (CCFLAGS=...) hold for this library alone. The result is the list of nodes
that a builder returns, with the attributes .source, .header, .metadata, .params, .report, .include_dirs,
.target and, for libraries, .library. Everything generated is in <name>.aot/ of the current (variant)
directory.

env.AotModelArena(name, libraries, pool_sections={}) makes a library of memory for models that do not run at
the same time: as large as the one that needs most. It stands for the libraries too, in LIBS and with its
.include_dirs.

env.AotModelTest(name, library, vectors, atol=, rtol=, max_lsb=, alias="test") makes the program <name>, which
has the vectors in it, and runs it when `alias` is built; a test that passed runs again when the program has
changed. env.AotModelBenchmark(name, library, runs=) makes a program that prints the time of one inference.

Construction variables:

    AOT_MODEL            command that runs the compiler, a list; default: this installation's
    AOT_MODEL_PYTHON     the interpreter of that default
    AOT_MODEL_TARGET     default of `target`
    AOT_MODEL_EMULATOR   command that runs programs of the target; without one, tests of a cross build are
                         built only
    AOT_MODEL_TEST_SOURCES, AOT_MODEL_TEST_LINKFLAGS   start-up code and linker script of test programs
    AOT_MODEL_COMSTR     what is shown instead of the command line
"""

from __future__ import annotations

import json
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from SCons.Action import Action
from SCons.Builder import Builder
from SCons.Defaults import Touch
from SCons.Errors import UserError
from SCons.Node.Python import Value
from SCons.Scanner import Scanner
from SCons.Util import CLVar, NodeList

PACKAGE = Path(__file__).resolve().parents[1]

Environment = Any  # SCons has no types
Node = Any

_answers: dict[tuple[str, ...], dict[str, Any]] = {}
_macros: dict[tuple[str, ...], str] = {}
_model_files: dict[tuple[str, int, int], list[str]] = {}


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


# --- the compiler -------------------------------------------------------------------------------------------


def _python(env: Environment) -> str:
    """The interpreter that runs the compiler: SCons itself may run in one without the compiler's packages."""
    if given := env.get("AOT_MODEL_PYTHON") or os.environ.get("AOT_MODEL_PYTHON"):
        return str(given)
    # <prefix>/lib/python3.x/site-packages
    installed_in = PACKAGE.parents[3] if PACKAGE.parent.name == "site-packages" else None
    for candidate in (installed_in / "bin" / "python3" if installed_in else None, shutil.which("python3"),
                      sys.executable):
        if candidate and os.path.exists(candidate):
            return str(candidate)
    return sys.executable


def _describe(env: Environment) -> dict[str, Any]:
    """What the compiler says of its installation, asked once in a run of SCons. UserError when it cannot
    work.
    """
    command = tuple(map(str, env["AOT_MODEL"]))
    if command in _answers:
        return _answers[command]
    try:
        done = subprocess.run([*command, "--version", "--json"], capture_output=True, text=True)
        answer: dict[str, Any] = json.loads(done.stdout) if done.returncode == 0 else {}
        complaint = done.stderr.strip()
    except (OSError, ValueError) as error:
        answer, complaint = {}, str(error)
    if not answer:
        raise UserError(
            f"aot_model: the compiler does not run: {shlex.join(command)} --version --json\n{complaint}\n"
            "Say which Python has it with AOT_MODEL_PYTHON=<file>, or set AOT_MODEL to the command."
        )
    if missing := " ".join(answer.get("missing", ())):
        raise UserError(
            f"aot_model: {answer['executable']} lacks packages that the compiler needs: {missing}\n"
            f"Install them:\n    {answer['executable']} -m pip install {missing}\n"
            "or choose a Python that has them with AOT_MODEL_PYTHON=<file>."
        )
    _answers[command] = answer
    return answer


def _identity(env: Environment) -> Node:
    """A node that changes when the compiler does: its files, its Python, the packages that it uses."""
    answer = _describe(env)
    return Value(
        json.dumps({k: answer.get(k) for k in ("version", "python", "packages", "digest")}, sort_keys=True))


def _scan_model(node: Node, env: Environment, path: object) -> list[Node]:
    """Files that a model refers to; the compiler reads them, so they are inputs."""
    file = node.rfile()  # with duplicate=False the node itself is in the build directory, and not there
    if not file.exists():
        return []  # made by the build: scanned again when it is there
    state = os.stat(file.get_abspath())
    key = (file.get_abspath(), state.st_mtime_ns, state.st_size)
    if key not in _model_files:
        found: list[str] = []
        # External data has the key "location" literally in the file: without it there is no need to start a
        # process.
        if b"location" in file.get_contents():
            done = subprocess.run([*map(str, env["AOT_MODEL"]), "inputs",
                                   file.get_abspath()],
                                  capture_output=True,
                                  text=True)
            folder = os.path.dirname(file.get_abspath())
            found = [os.path.relpath(line, folder) for line in done.stdout.splitlines()[1:]]
        _model_files[key] = found
    return [node.dir.File(location) for location in _model_files[key] if not location.startswith("..")]


# --- what to generate code for ------------------------------------------------------------------------------


def _predefined(env: Environment) -> str:
    """The macros that the environment's C compiler predefines with its flags; empty when it is not like GCC.
    """
    command = tuple(shlex.split(env.subst("$CC $CCFLAGS $CFLAGS")))
    if command not in _macros:
        try:
            done = subprocess.run([*command, "-dM", "-E", "-x", "c", os.devnull],
                                  capture_output=True,
                                  text=True,
                                  env=env["ENV"])
            _macros[command] = done.stdout if done.returncode == 0 else ""
        except OSError:
            _macros[command] = ""
    return _macros[command]


def _is_native(env: Environment) -> bool:
    """Whether programs of the environment run on this machine."""
    macros = _predefined(env)
    if not macros:
        return True
    system = {"Linux": "__linux__", "Darwin": "__APPLE__",
              "Windows": "_WIN32"}.get(platform.system(), "__unix__")
    machine = {"AMD64": "x86_64", "arm64": "aarch64"}.get(platform.machine(), platform.machine())
    return f"#define {system} " in macros and (f"#define __{machine}__ " in macros
                                               or machine not in ("x86_64", "aarch64"))


def _probe(env: Environment, path: str) -> Node:
    """The object that says what the environment's C compiler and flags are for: of the probe, compiled as the
    library is.
    """
    source = env.File(_describe(env)["probe"])
    flags = {
        name: [flag
               for flag in CLVar(env.subst(f"${name}"))
               if not flag.startswith("-flto")]
        for name in ("CCFLAGS", "CFLAGS")
    }
    return env.Object(path, source, **flags)[0]


# --- libraries ----------------------------------------------------------------------------------------------


def _identifier(env: Environment, call: str, name: str) -> str:
    """The name of a node as a C identifier that a library can have."""
    text = re.sub(r"[^A-Za-z0-9_]", "_", os.path.basename(name))
    text = f"m{text}" if text[:1].isdigit() else re.sub("^_+", "m_", text) if text.strip("_") else "model"
    if re.match("aot_model(_|$)", text.lower()):
        text = f"m_{text}"
    if text.lower() in str(_describe(env).get("reserved", "")).split():
        print(
            f"{call}: its header is {text}_model.h, because programs include <{text.lower()}.h>; model_name "
            "says otherwise"
        )
        text += "_model"
    return text


def _split(call: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """The construction variables among keyword arguments. UserError for anything else."""
    for name in arguments:
        if not re.fullmatch(r"[A-Z_][A-Z0-9_]*", name):
            raise UserError(f"{call}: unknown argument: {name}")
    return dict(arguments)


def _options(env: Environment, arguments: dict[str, Any]) -> list[str]:
    """The options of `aot-model compile` among keyword arguments, which are taken out. The compiler says
    which there are.
    """
    known = _describe(env)["options"]
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
    for key, flag in _describe(env)["options"].get("file", {}).items():
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
    overrides = _split(call, arguments)
    env = env.Clone(**overrides) if overrides else env
    model_name = _identifier(env, call, name) if model_name is None else model_name
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", model_name):
        raise UserError(f"{call}: model_name '{model_name}' is not a C identifier")
    target = ",".join([*offload, target or env.subst("$AOT_MODEL_TARGET") or "auto"])
    model = _find_model(env, call, model)
    folder = env.Dir(f"{name}.aot")
    follows_flags = {"auto", "host"}.intersection(target.split(","))
    probe = [_probe(env, f"{folder}/probe")] if follows_flags else []
    if report not in (True, False, "html"):
        raise UserError(f"{call}: report is True, or 'html', not '{report}'")
    ending = ".report.html" if report == "html" else ".report.txt"
    suffixes = [
        ".c", ".h", ".json", *([".params"] if "--params=external" in words else []),
        *([ending] if report else [])
    ]
    nodes = env._AotModelCompile(
        [folder.File(model_name + suffix) for suffix in suffixes],
        model,
        AOT_MODEL_ARGUMENTS=[f"--name={model_name}", f"--target={target}", *words],
        AOT_MODEL_REPORT=["--report=${TARGETS[-1]}"] if report else [],
        AOT_MODEL_NAME=model_name,
        AOT_MODEL_TARGET=target,
        AOT_MODEL_FILES={
            "target-plugin": [plugin.rfile() for plugin in plugins], "target-probe": probe,
            **{flag: [node.rfile()] for flag, node in files.items()}
        },
    )
    env.Depends(nodes, [_identity(env), *probe, *plugins, *files.values(), *env.Flatten(depends)])
    result = Generated(nodes)
    made = dict(zip(suffixes, nodes, strict=True))
    result.source, result.header, result.metadata = made[".c"], made[".h"], made[".json"]
    result.params, result.report = made.get(".params"), made.get(ending)
    result.include_dirs = [folder, env.Dir(_describe(env)["include_dir"])]
    result.target = target
    return env, result


def _file_arguments(target: Any, source: Any, env: Environment, for_signature: bool) -> list[str]:
    """Arguments that name files, when they are used: the name of a node is relative to the SConscript's
    folder while that is read.
    """
    return [f"--{option}={node}" for option, nodes in env["AOT_MODEL_FILES"].items() for node in nodes]


def _aot_model_sources(env: Environment, name: str, model: Any, **arguments: Any) -> Generated:
    return _sources(env, name, model, **arguments)[1]


def _aot_model_library(env: Environment,
                       name: str,
                       model: Any,
                       count_code: bool = False,
                       max_stack: int | str | None = None,
                       stack_allowance: int | str | None = None,
                       max_cycles: float | str | None = None,
                       clock: float | str | None = None,
                       **arguments: Any) -> Generated:
    max_flash = arguments.get("max_flash")
    env, made = _sources(env, name, model, call="AotModelLibrary", **arguments)
    include = [*made.include_dirs, "$CPPPATH"]
    measured = ["-fcallgraph-info=su"] if max_stack is not None else []
    measured += ["-g"] if count_code or max_cycles is not None else []
    base = os.path.splitext(str(made.source))[0]
    if not measured:
        objects = env.Object(made.source, CPPPATH=include)
    else:
        objects = env.Command([f"{base}$OBJSUFFIX", *([f"{base}.ci"] if max_stack is not None else [])],
                              made.source,
                              Action("$CCCOM", "$CCCOMSTR"),
                              CPPPATH=include,
                              CFLAGS=["$CFLAGS", *measured])
    result = Generated(env.StaticLibrary(name, objects[0]))
    compiler = _compiler(env)
    checked = []
    if count_code:
        words = [compiler, *([] if max_flash is None else [f"--max-flash={max_flash}"])]
        checked += env._AotModelSize(f"{base}.size.txt", [made.metadata, objects[0]],
                                     AOT_MODEL_ARGUMENTS=words)
    if max_stack is not None:
        allowed = [] if stack_allowance is None else [f"--stack-allowance={stack_allowance}"]
        words = [compiler, *allowed, f"--max-stack={max_stack}"]
        checked += env._AotModelStack(f"{base}.stack.txt", [made.metadata, objects[0]],
                                      AOT_MODEL_ARGUMENTS=words)
    if max_cycles is not None:
        more = {"memory": arguments.get("memory"), "clock": clock, "max-cycles": max_cycles}
        words = [compiler, *(f"--{option}={value}" for option, value in more.items() if value is not None)]
        checked += env._AotModelCycles(f"{base}.cycles.txt", [made.metadata, objects[0]],
                                       AOT_MODEL_ARGUMENTS=words)
    if checked:
        env.Depends(checked, [made.source, made.header, _identity(env)])
        env.Depends(result, checked)
    result.__dict__.update({k: v for k, v in made.__dict__.items() if k != "data"})
    result.library = result[0]
    return result


def _aot_model_arena(env: Environment,
                     name: str,
                     libraries: Any,
                     pool_sections: Mapping[str, str] | None = None,
                     **overrides: Any) -> Generated:
    call = f"AotModelArena({name})"
    env = env.Clone(**_split(call, overrides)) if overrides else env
    libraries = list(libraries)
    if not libraries or not all(isinstance(library, Generated) and library.library for library in libraries):
        raise UserError(f"{call}: libraries were not made by AotModelLibrary()")
    symbol, folder = _identifier(env, call, name), env.Dir(f"{name}.aot")
    arguments = [
        f"--name={symbol}",
        *(f"--pool-section={pool}={section}" for pool, section in (pool_sections or {}).items())
    ]
    nodes = env._AotModelArena(
        [folder.File(f"{symbol}.c"), folder.File(f"{symbol}.h")], [u.metadata for u in libraries],
        AOT_MODEL_ARGUMENTS=arguments)
    env.Depends(nodes, _identity(env))
    include = list(dict.fromkeys([folder, *(d for u in libraries for d in u.include_dirs)]))
    result = Generated([
        *env.StaticLibrary(name, env.Object(nodes[0], CPPPATH=[*include, "$CPPPATH"])),
        *(u.library for u in libraries)
    ])
    result.source, result.header, result.include_dirs, result.library = nodes[0], nodes[1], include, result[0]
    return result


def _compiler(env: Environment) -> str:
    """The option --compiler: the compiler, with the flags that choose a processor."""
    flags = re.findall(r"(?<!\S)-m\S+", env.subst("$CCFLAGS $CFLAGS"))
    return "--compiler=" + " ".join([env.subst("$CC"), *flags])


# --- programs -----------------------------------------------------------------------------------------------


def _program(env: Environment, call: str, name: str, library: Any, subcommand: str, arguments: Sequence[str],
             vectors: Sequence[Node], measured: bool = False) -> list[Node]:
    """measured: whether the arguments name the library, as the second source."""
    if not isinstance(library, Generated) or library.library is None:
        raise UserError(f"{call}: library was not made by AotModelLibrary()")
    main = env._AotModelMain(f"{name}.aot/main.c",
                             [library.metadata, *([library.library] if measured else [])],
                             AOT_MODEL_SUBCOMMAND=subcommand,
                             AOT_MODEL_ARGUMENTS=list(arguments))
    env.Depends(main, [_identity(env), *vectors])
    # Start-up code is compiled beside each program: environments with other flags may use the same file.
    extra = [
        env.Object(f"{name}.aot/{Path(str(file)).stem}", file)
        for file in env.Flatten(env.get("AOT_MODEL_TEST_SOURCES", []))
    ]
    objects = env.Object(main, CPPPATH=[*library.include_dirs, "$CPPPATH"])
    libraries = [library, *([] if env["PLATFORM"] == "win32" else ["m"])]
    flags = [*CLVar(env["LINKFLAGS"]), *env.get("AOT_MODEL_TEST_LINKFLAGS", [])]
    return env.Program(name, [*objects, *extra], LIBS=[*libraries, "$LIBS"],  # type: ignore[no-any-return]
                       LINKFLAGS=flags)


def _aot_model_test(env: Environment,
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
    env = env.Clone(**_split(call, overrides)) if overrides else env
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
    if not env["AOT_MODEL_EMULATOR"] and not _is_native(env):
        env.Alias(alias, program)
        return program
    passed = env.Command(f"{name}.aot/{os.path.basename(name)}.passed", program,
                         [Action("$AOT_MODEL_EMULATOR $SOURCE.abspath", "Testing $SOURCE"),
                          Touch("$TARGET")])
    env.NoCache(passed)
    env.Alias(alias, passed)
    return program


def _aot_model_benchmark(env: Environment,
                         name: str,
                         library: Any,
                         runs: int | None = None,
                         **overrides: Any) -> list[Node]:
    call = f"AotModelBenchmark({name})"
    env = env.Clone(**_split(call, overrides)) if overrides else env
    arguments = [] if runs is None else [f"--runs={runs}"]
    # An emulator counts no cycles: the program has the estimate of the library's in it.
    emulated = "qemu-system-arm" in " ".join(map(str, env.Flatten([env["AOT_MODEL_EMULATOR"]])))
    if emulated:
        arguments += [_compiler(env), "--objects", "${SOURCES[1]}"]
    return _program(env, call, name, library, "benchmark-main", arguments, [], measured=emulated)


# --- the tool -----------------------------------------------------------------------------------------------


def generate(env: Environment) -> None:
    """Add the methods and their builders to an environment; asks the compiler whether it can work."""
    env.SetDefault(
        AOT_MODEL_EMULATOR=[],
        AOT_MODEL_TEST_SOURCES=[],
        AOT_MODEL_TEST_LINKFLAGS=[],
        _AOT_MODEL_FILES=_file_arguments,
        AOT_MODEL_COM=
        "$AOT_MODEL compile $SOURCE --quiet -o $TARGET.dir $AOT_MODEL_ARGUMENTS $_AOT_MODEL_FILES "
        "$AOT_MODEL_REPORT",
        AOT_MODEL_COMSTR="Compiling model $AOT_MODEL_NAME for $AOT_MODEL_TARGET",
        AOT_MODEL_STACKCOM="$AOT_MODEL stack $SOURCES $AOT_MODEL_ARGUMENTS -o $TARGET",
        AOT_MODEL_SIZECOM="$AOT_MODEL size $SOURCES $AOT_MODEL_ARGUMENTS -o $TARGET",
        AOT_MODEL_CYCLESCOM="$AOT_MODEL cycles $SOURCES $AOT_MODEL_ARGUMENTS -o $TARGET",
        AOT_MODEL_MAINCOM="$AOT_MODEL $AOT_MODEL_SUBCOMMAND $SOURCE -o $TARGET $AOT_MODEL_ARGUMENTS",
    )
    if not env.get("AOT_MODEL"):
        # -B: no .pyc in a tree that may be read-only or shared
        env["AOT_MODEL"] = [_python(env), "-B", str(PACKAGE)]
    elif isinstance(env["AOT_MODEL"], str):
        env["AOT_MODEL"] = shlex.split(env["AOT_MODEL"])
    _describe(env)
    env["BUILDERS"]["_AotModelCompile"] = Builder(
        action=Action("$AOT_MODEL_COM", "$AOT_MODEL_COMSTR"),
        source_scanner=Scanner(function=_scan_model, name="aot-model", recursive=False),
    )
    env["BUILDERS"]["_AotModelStack"] = Builder(
        action=Action("$AOT_MODEL_STACKCOM", "Measuring the stack of $TARGET"))
    env["BUILDERS"]["_AotModelSize"] = Builder(
        action=Action("$AOT_MODEL_SIZECOM", "Counting code and constants of $TARGET"))
    env["BUILDERS"]["_AotModelCycles"] = Builder(
        action=Action("$AOT_MODEL_CYCLESCOM", "Estimating the cycles of $TARGET"))
    env["BUILDERS"]["_AotModelArena"] = Builder(
        action=Action("$AOT_MODEL arena $SOURCES -o $TARGET.dir $AOT_MODEL_ARGUMENTS", "Generating $TARGET"))
    env["BUILDERS"]["_AotModelMain"] = Builder(action=Action("$AOT_MODEL_MAINCOM", "Generating $TARGET"))
    env.AddMethod(_aot_model_sources, "AotModelSources")
    env.AddMethod(_aot_model_library, "AotModelLibrary")
    env.AddMethod(_aot_model_arena, "AotModelArena")
    env.AddMethod(_aot_model_test, "AotModelTest")
    env.AddMethod(_aot_model_benchmark, "AotModelBenchmark")


def exists(env: Environment) -> bool:
    """Whether the compiler can work here."""
    try:
        generate(env.Clone())
    except UserError:
        return False
    return True
